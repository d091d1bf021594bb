//! The worst block within the limits, compared with an ordinary one of the same size: no block may take more than
//! twice the time, nor may the block after it.
//!
//! The contents of a block are determined by `Genes`: the mix of its transactions, how the pairs of its offers are
//! connected, how far limits and amounts spread, and which offers rest in its book. Hill climbing changes a gene or
//! two at a time and keeps slower results, from several starting points, including the worst known ones. Offers
//! respect the minimum sizes and accounts their balances, as the rules require. Both blocks have the same bytes, meet
//! books with the same number of resting offers, and run on one thread. The measured time is that of apply and of
//! hashing the tries, which every validator needs.
//!
//! A row is one kind of ledger. Other phases of a block add their own rows with [`Row`].
//!
//! The second question is how far a proposer can move prices. It chooses the order of transactions, how they are
//! spread over sub-blocks, which validator proposes which, and its clock. [`basis_points`] tries all of these on a
//! block and returns the largest move of a valuation.

mod genes;
mod listed;
mod prices;

use std::time::Instant;

use kernel::Dice;
use ledger::{LEAST_UNITS, Ledger, Roots, Signatures};
use primitives::{AssetId, ClientId, ExactSide, Life, Operation, Price, Transaction};
use serde_json::{Value, json};

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count};
use crate::population::{Population, Unsigned, block};
use crate::trading::Trading;

pub use prices::basis_points;

use genes::{BEGINNINGS, Genes, KINDS};

/// The worst block within the limits that a search finds, compared with an ordinary one of the same size.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench hostile --json
  walras-lab bench hostile --tries 2000 --transactions 50000 --resting 500000")]
pub struct HostileOptions {
    /// Transactions of the ordinary block; the hostile one has as many bytes.
    #[arg(long, default_value_t = 10_000, value_parser = count(10..))]
    pub transactions: usize,
    /// Offers that rest before the block.
    #[arg(long, default_value_t = 50_000)]
    pub resting: usize,
    /// Accounts.
    #[arg(long, default_value_t = 20_000, value_parser = count(1_000..))]
    pub accounts: usize,
    /// Blocks tried in each row; the default takes a minute or two in all.
    #[arg(long, default_value_t = 40, value_parser = count(1..))]
    pub tries: usize,
    /// Seed of the search.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Measurement for HostileOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        Ok(BenchShown::Figures(run(&self, &ROWS, say)))
    }
}

/// A kind of ledger.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name in the report.
    pub name: &'static str,
    /// Assets of the ledger.
    pub assets: u32,
    /// Of those, assets of the genesis; the others were listed.
    pub founded: u32,
}

/// Number of timings of blocks that decide the result.
const TIMES: usize = 3;

/// All rows.
pub const ROWS: [Row; 3] = [
    Row { name: "50 assets", assets: 50, founded: 50 },
    Row { name: "200 assets", assets: 200, founded: 200 },
    // As many as a chain lists, unless its genesis says otherwise (`ListingTerms::assets_max`).
    Row { name: "1024 assets, 1000 of them listed", assets: 1_024, founded: 24 },
];

/// The times of a block, in milliseconds.
#[derive(Clone, Debug)]
struct Took {
    block: f64,
    next: f64,
    /// Times of the block's stages.
    stages: Vec<(&'static str, f64)>,
}

impl Took {
    /// The lesser of two values in each field.
    fn least(self, other: Took) -> Took {
        let next = self.next.min(other.next);
        if other.block < self.block { Took { next, ..other } } else { Took { next, ..self } }
    }

    fn stages(&self) -> Value {
        self.stages.iter().map(|(name, took)| (name.to_string(), json!(took))).collect()
    }
}

/// Runs everything; `say` is called with each step.
///
/// # Panics
/// If the system cannot start a thread.
pub fn run(options: &HostileOptions, rows: &[Row], say: &mut (dyn FnMut(&str) + Send)) -> Value {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let rows: Vec<Value> = rows.iter().map(|row| one.install(|| measure(options, *row, say))).collect();
    say("how far a proposer can move prices");
    let moved = one.install(|| basis_points(options));
    let contracts = crate::hostile_evm::run(options.tries, options.seed, say);
    let worst = |field: &str| rows.iter().filter_map(|row| row[field].as_f64()).fold(0.0, f64::max);
    json!({
        "worst_over_ordinary": worst("ratio"),
        "next_over_ordinary": worst("next_ratio"),
        "bar": 2.0,
        "proposer_moves_basis_points": moved,
        "contracts": contracts,
        "rows": rows,
    })
}

/// A ledger with its traders, on which only the requested blocks are applied.
struct Arena {
    assets: u32,
    options: HostileOptions,
    ledger: Ledger,
    roots: Roots,
    population: Population,
}

/// A block that can be timed repeatedly, and an ordinary one after it.
struct Timed {
    ledger: Ledger,
    roots: Roots,
    native: Vec<Transaction>,
    next: Vec<Transaction>,
}

impl Arena {
    fn new(options: &HostileOptions, assets: u32, founded: u32) -> Arena {
        let population = Population::new(options.accounts, assets, false);
        let plain = Ledger::new(&listed::named(population.genesis(), founded)).expect("a sound genesis");
        let ledger = if founded < assets { listed::listed(&plain, founded) } else { plain };
        Arena { assets, options: options.clone(), roots: Roots::of(&ledger), ledger, population }
    }

    fn trading(&self, seed: u64) -> (Ledger, Trading) {
        (self.ledger.clone(), Trading::new(self.population.clone(), self.assets, seed))
    }

    /// The paper's block on the paper's book, and its bytes.
    fn ordinary(&self) -> (Timed, usize) {
        let (mut ledger, mut trading) = self.trading(7);
        let resting = trading.resting(&ledger, self.options.resting);
        let native = trading.population.sign(resting, None);
        let mut roots = self.roots.clone();
        apply(&mut ledger, &mut roots, native);
        let unsigned = trading.block(&ledger, self.options.transactions);
        let native = trading.population.sign(unsigned, None);
        let bytes = bytes_of(&native);
        (self.with_next(ledger, roots, trading, native), bytes)
    }

    /// The block of these genes, on the book of these genes.
    fn hostile(&self, genes: &Genes, bytes: usize) -> Timed {
        let (mut ledger, trading) = self.trading(7);
        let mut maker = Maker { genes, trading, random: Dice::new(self.options.seed), assets: self.assets };
        let mut roots = self.roots.clone();
        while ledger.book().len() < self.options.resting {
            let before = ledger.book().len();
            let resting = maker.resting(&ledger, self.options.resting - before);
            let native = maker.trading.population.sign(resting, None);
            apply(&mut ledger, &mut roots, native);
            // Offers that cannot rest, or are too far from any price, are left out of the book.
            if ledger.book().len() <= before + self.options.resting / 10 {
                break;
            }
        }
        let native = maker.block(&ledger, bytes);
        self.with_next(ledger, roots, maker.trading, native)
    }

    fn with_next(&self, ledger: Ledger, roots: Roots, mut trading: Trading, native: Vec<Transaction>) -> Timed {
        let mut after = ledger.clone();
        after.apply(&block(&ledger, native.clone()), Signatures::Valid, &mut |_| {}).expect("applies");
        let next = trading.block(&after, self.options.transactions);
        Timed { ledger, roots, native, next: trading.population.sign(next, None) }
    }
}

impl Timed {
    fn time(&self) -> Took {
        let (mut ledger, mut roots) = (self.ledger.clone(), self.roots.clone());
        let stages = apply(&mut ledger, &mut roots, self.native.clone());
        let next = apply(&mut ledger, &mut roots, self.next.clone());
        let sum = |stages: &[(&str, f64)]| stages.iter().map(|stage| stage.1).sum();
        Took { block: sum(&stages), next: sum(&next), stages }
    }

    /// The least of several times.
    fn time_often(&self) -> Took {
        (1..TIMES).fold(self.time(), |least, _| least.least(self.time()))
    }
}

/// Applies a block and hashes its changes; returns the milliseconds of each stage.
fn apply(ledger: &mut Ledger, roots: &mut Roots, native: Vec<Transaction>) -> Vec<(&'static str, f64)> {
    let block = block(ledger, native);
    let (mut stages, mut begun) = (Vec::new(), Instant::now());
    let mut end = |name: &'static str| {
        let now = Instant::now();
        stages.push((name, (now - begun).as_secs_f64() * 1_000.0));
        begun = now;
    };
    let applied = ledger.apply(&block, Signatures::Valid, &mut |stage| end(stage.name())).expect("applies");
    roots.apply(&applied.changes);
    end("tries");
    stages
}

fn bytes_of(native: &[Transaction]) -> usize {
    native.iter().map(|transaction| borsh::object_length(transaction).expect("in memory")).sum()
}

/// Makes transactions from genes.
struct Maker<'a> {
    genes: &'a Genes,
    trading: Trading,
    random: Dice,
    assets: u32,
}

impl Maker<'_> {
    /// Offers that rest: they ask for more than anybody pays. Those that end do so with the block after theirs.
    fn resting(&mut self, ledger: &Ledger, count: usize) -> Vec<Unsigned> {
        let mut block = Vec::with_capacity(count);
        for at in 0..count {
            self.offer(at as u64, 1.06, Life::Until(ledger.height() + 2), &mut block);
        }
        block
    }

    /// Transactions with the given total of bytes.
    fn block(&mut self, ledger: &Ledger, bytes: usize) -> Vec<Transaction> {
        let weights: Vec<f64> = KINDS.iter().map(|kind| self.genes.get(kind).powi(2) + 1e-3).collect();
        let resting: Vec<_> = ledger
            .book()
            .iter()
            .flat_map(|(pair, offers)| offers.iter().map(move |offer| (pair, offer)))
            .take(200_000)
            .collect();
        let (mut unsigned, mut length, mut at) = (Vec::new(), 0, 0);
        while length < bytes {
            let before = unsigned.len();
            match self.random.weighted(&weights) {
                0 => {
                    let over = if self.genes.get("crossing") < 0.5 { 1.0 } else { 0.9 };
                    self.offer(at, over, Life::OneBatch, &mut unsigned);
                }
                1 if !resting.is_empty() => {
                    let (pair, offer) = resting[self.random.below(resting.len() as u64) as usize];
                    self.trading.cancel_one(pair, offer.place, &mut unsigned);
                }
                2 => {
                    let (sell, buy) = self.pair(at);
                    let offer = self.random.bits() >> 40;
                    let account = self.account(sell);
                    let cancel = Operation::cancel(sell, buy, self.limit(sell, buy, 1.0), offer);
                    unsigned.push(self.trading.population.act(account, cancel));
                }
                4 => self.trading.open_account(&mut unsigned),
                5 => {
                    let (sell, _) = self.pair(at);
                    let account = self.account(sell);
                    let to = self.trading.population.address((account + 1) % self.trading.population.len());
                    let pay = Operation::Pay { to, asset: sell, amount: i64::MAX as u64 };
                    unsigned.push(self.trading.population.act(account, pay));
                }
                6 if before > 0 => {
                    let of = self.random.below(before as u64) as usize;
                    let Unsigned { account, body } = &unsigned[of];
                    let mut body = body.clone();
                    body.operation = Operation::Burn { asset: AssetId(0), amount: 1 };
                    let copy = Unsigned { account: *account, body };
                    unsigned.push(copy);
                }
                7 => self.exact(at, &mut unsigned),
                8 if !resting.is_empty() => {
                    let (pair, offer) = resting[self.random.below(resting.len() as u64) as usize];
                    let limit = self.limit(pair.sell, pair.buy, 0.9);
                    self.trading.replace_one(pair, &offer, limit, &mut unsigned);
                }
                _ => self.trading.pay(&mut unsigned),
            }
            // The encoding of all kinds but stakes and accusations is below 250 bytes; the exact sum is computed at
            // the end.
            length += unsigned[before..].len() * 190;
            at += 1;
        }
        let mut native = self.trading.population.sign(unsigned, None);
        let mut length = bytes_of(&native);
        while length > bytes {
            let last = native.pop().expect("there are bytes");
            length -= borsh::object_length(&last).expect("in memory");
        }
        native
    }

    /// The assets of the offer at position `at`.
    fn pair(&mut self, at: u64) -> (AssetId, AssetId) {
        let all = u64::from(self.assets);
        let count = (3.0 + self.genes.get("assets") * (all as f64 - 3.0)) as u64;
        let (one, other) = match (self.genes.get("shape") * 5.0) as u32 {
            0 => (at / 2 % (count - 1) + at % 2, at / 2 % (count - 1) + 1 - at % 2),
            1 => (at % count, self.random.below(1 + count / 64)),
            2 => (at % count, (at + 1) % count),
            3 => (self.random.below(count), self.random.below(count)),
            _ => ((3 * (at / 4) + at % 4) % count, (3 * (at / 4) + (at % 4 + 1) % 4) % count),
        };
        let other = if one == other { (other + 1) % count } else { other };
        (AssetId(one as u32), AssetId(other as u32))
    }

    /// A limit around the true price times `over`, as far as prices and minimum sizes allow.
    fn limit(&mut self, sell: AssetId, buy: AssetId, over: f64) -> Price {
        let decades = 6.0 * self.genes.get("spread of limits").powi(3);
        let mut limit = self.trading.rate(sell, buy) * over * 10f64.powf(self.random.between(-decades, decades));
        if self.random.unit() < self.genes.get("equal limits") {
            limit = 2f64.powf(limit.log2().round());
        }
        Price::from_f64(limit.clamp(1e-8, 1e8)).expect("in range")
    }

    fn account(&mut self, sell: AssetId) -> usize {
        let first = sell.0 as usize;
        let one = self.random.unit() < self.genes.get("one account") && self.trading.population.may_act(first);
        if one { first } else { self.trading.population.draw_holder(sell, &mut self.random) }
    }

    /// An exact order, a purchase or a sale: of a few units to as many as an offer has, with a bound beyond every rate.
    fn exact(&mut self, at: u64, block: &mut Vec<Unsigned>) {
        let (sell, buy) = self.pair(at);
        let units = LEAST_UNITS as f64 * 10f64.powf(self.random.between(0.0, 6.0));
        let (side, bound) = match self.random.below(2) {
            0 => (ExactSide::Buy, 4.0 * units * self.trading.rate(buy, sell)),
            _ => (ExactSide::Sell, 1.0),
        };
        let (units, bound) = (units.min(1e11) as u64, bound.clamp(1.0, 1e11) as u64);
        let account = self.account(sell);
        let exact = Operation::exact(sell, buy, side, units, bound);
        block.push(self.trading.population.act(account, exact));
    }

    /// An offer; as the gene of ends says it has the given end.
    fn offer(&mut self, at: u64, over: f64, end: Life, block: &mut Vec<Unsigned>) {
        let (sell, buy) = self.pair(at);
        let limit = self.limit(sell, buy, over);
        let least = (LEAST_UNITS as f64).max(LEAST_UNITS as f64 / limit.to_f64()) + 1.0;
        let decades = 6.0 * self.genes.get("spread of amounts");
        let amount = (least * 10f64.powf(self.random.between(0.0, decades.max(1e-9)))).min(1e11) as u64;
        let account = self.account(sell);
        let ends = self.random.unit() < self.genes.get("ends");
        let (life, client) = (if ends { end } else { Life::Rests }, ClientId::NONE);
        let operation = Operation::CreateOffer { sell, buy, amount, limit, life, client };
        block.push(self.trading.population.act(account, operation));
    }
}

/// How the slowest block so far was made, and how much longer it took than an ordinary one.
#[derive(Clone)]
struct Worst {
    genes: Genes,
    ratio: f64,
}

/// Selects one of the two times of a block: its own, or that of the next block.
type Which = fn(&Took) -> f64;
const WHICH: [Which; 2] = [|took| took.block, |took| took.next];

fn measure(options: &HostileOptions, row: Row, say: &mut (dyn FnMut(&str) + Send)) -> Value {
    say(&format!("an ordinary block, {}", row.name));
    let arena = Arena::new(options, row.assets, row.founded);
    let (ordinary, bytes) = arena.ordinary();
    let usual = ordinary.time_often();
    let (worst, kept) = search(&arena, bytes, &usual, &mut |attempt, took, worst| {
        let (tries, name, usual) = (options.tries, row.name, usual.block);
        say(&format!("try {attempt} of {tries}, {name}: {took:.1} ms against {usual:.1}; at most {worst:.2} times"));
    });
    // The reported time is measured in turns with the ordinary block: the machine may have changed meanwhile.
    let [own, next] = worst.map(|worst| {
        let timed = arena.hostile(&worst.genes, bytes);
        let in_turns = (0..TIMES).map(|_| (ordinary.time(), timed.time()));
        let (usual, took) = in_turns.reduce(|a, b| (a.0.least(b.0), a.1.least(b.1))).expect("several times");
        (worst.genes, usual, took)
    });
    json!({
        "row": row.name,
        "bytes": bytes,
        "tries": options.tries,
        "kept": kept,
        "ordinary_ms": own.1.block,
        "worst_ms": own.2.block,
        "ratio": own.2.block / own.1.block,
        "genes": own.0.json(),
        "ordinary_stages_ms": own.1.stages(),
        "worst_stages_ms": own.2.stages(),
        "next_ordinary_ms": next.1.next,
        "next_ms": next.2.next,
        "next_ratio": next.2.next / next.1.next,
        "next_genes": next.0.json(),
    })
}

/// Searches for the block that takes longest, and for the one after which the next takes longest; returns also the
/// number of successful steps. `say` is called with each try: its number, its time, and the largest ratio so far.
fn search(arena: &Arena, bytes: usize, usual: &Took, say: &mut dyn FnMut(usize, f64, f64)) -> ([Worst; 2], usize) {
    let mut random = Dice::new(arena.options.seed);
    let mut worst = WHICH.map(|_| Worst { genes: Genes::beginning(0), ratio: 0.0 });
    let mut here: Option<(Genes, f64)> = None;
    let (mut kept, mut stuck) = (0, 0);
    for attempt in 0..arena.options.tries {
        // After this many steps without progress the search starts elsewhere.
        let genes = match &here {
            _ if attempt < BEGINNINGS.len() => Genes::beginning(attempt),
            Some((genes, _)) if stuck < 12 => genes.changed(&mut random),
            _ => Genes::random(&mut random),
        };
        if stuck >= 12 {
            (here, stuck) = (None, 0);
        }
        let timed = arena.hostile(&genes, bytes);
        let mut took = timed.time();
        let ratios = |took: &Took| WHICH.map(|which| which(took) / which(usual));
        // A single long time may be chance.
        if ratios(&took).iter().zip(&worst).any(|(ratio, worst)| *ratio > worst.ratio) {
            took = took.least(timed.time_often());
        }
        let ratios = ratios(&took);
        for (worst, ratio) in worst.iter_mut().zip(ratios).filter(|(worst, ratio)| *ratio > worst.ratio) {
            *worst = Worst { genes: genes.clone(), ratio };
        }
        say(attempt + 1, took.block, worst[0].ratio);
        let score = f64::max(ratios[0], ratios[1]);
        if here.as_ref().is_none_or(|(_, before)| score > *before) {
            (here, stuck) = (Some((genes, score)), 0);
            kept += 1;
        } else {
            stuck += 1;
        }
    }
    (worst, kept)
}
