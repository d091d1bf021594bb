//! The worst block within the limits, against an ordinary one of the same size: no block may take more than twice the
//! time, nor may the block after it.
//!
//! What a block does is drawn from `Genes`: how its transactions are mixed, how the pairs of its offers hang
//! together, how far limits and amounts spread, what rests in the book that it meets. Hill climbing changes a gene or
//! two at a time and keeps what is slower, from several beginnings. Offers keep to the minimum sizes and accounts to
//! what they hold, as everybody must. Both blocks have the same bytes, meet books of as many resting offers, and run on
//! one thread: apply and the tries' hashing, the time that a validator needs for them whatever else it does.
//!
//! A row is one kind of ledger. Other phases of a block add rows of their own with [`Row`].
//!
//! The second question is what a proposer can do to prices. It chooses the order of transactions, how they are spread
//! over sub-blocks, who proposes which, and its clock. [`basis_points`] tries all of these on a block and says by how
//! much a valuation moved at most.

use std::time::Instant;

use ledger::{Applied, LEAST_UNITS, Ledger, Roots, Signatures};
use primitives::{AssetId, Operation, Price, SubBlock, Superblock, Transaction};
use serde_json::{Value, json};

use crate::population::{Population, Unsigned, block};
use crate::trading::Trading;
use ::clearing::workload::Seeded;

/// How much to measure.
#[derive(Clone, Debug)]
pub struct HostileOptions {
    /// Transactions of the ordinary block; the hostile one has as many bytes.
    pub transactions: usize,
    /// Offers that rest before the block.
    pub resting: usize,
    /// Accounts.
    pub accounts: usize,
    /// Blocks that are tried in each row.
    pub tries: usize,
    /// Of the search.
    pub seed: u64,
}

/// A kind of ledger.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// In the report.
    pub name: &'static str,
    /// Assets of the ledger.
    pub assets: u32,
}

/// The rows that there are.
pub const ROWS: [Row; 2] = [Row { name: "50 assets", assets: 50 }, Row { name: "200 assets", assets: 200 }];

/// What a block is made of: each gene from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
struct Genes([f64; GENES.len()]);

/// The genes by name.
const GENES: [&str; 14] = [
    "offers",
    "cancels",
    "missed cancels",
    "payments",
    "new accounts",
    "overdrafts",
    "conflicts",
    "shape",
    "assets",
    "spread of limits",
    "spread of amounts",
    "equal limits",
    "one account",
    "crossing",
];

impl Genes {
    /// Offers alone, of any asset for any other, that cross by a little: what trades most.
    fn trading() -> Genes {
        let one = ["offers", "assets", "crossing"];
        let gene = |name: &str| match name {
            "shape" => 0.7,
            name if one.contains(&name) => 1.0,
            _ => 0.0,
        };
        Genes(std::array::from_fn(|at| gene(GENES[at])))
    }

    fn random(random: &mut Seeded) -> Genes {
        Genes(std::array::from_fn(|_| random.unit()))
    }

    fn get(&self, name: &str) -> f64 {
        self.0[GENES.iter().position(|gene| *gene == name).expect("a gene of that name")]
    }

    /// One or two genes are drawn anew, or moved a little.
    fn changed(&self, random: &mut Seeded) -> Genes {
        let mut changed = self.clone();
        for _ in 0..=random.below(2) {
            let gene = &mut changed.0[random.below(GENES.len() as u64) as usize];
            *gene = match random.below(3) {
                0 => random.unit(),
                1 => {
                    if random.below(2) == 0 {
                        0.0
                    } else {
                        1.0
                    }
                }
                _ => (*gene + random.between(-0.2, 0.2)).clamp(0.0, 1.0),
            };
        }
        changed
    }

    fn json(&self) -> Value {
        GENES.iter().zip(self.0).map(|(name, gene)| (name.to_string(), json!((gene * 100.0).round() / 100.0))).collect()
    }
}

/// What a block took, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Took {
    block: f64,
    next: f64,
}

/// Runs everything; `say` hears each step.
///
/// # Panics
/// If the system gives no thread.
pub fn run(options: &HostileOptions, rows: &[Row], say: &mut (dyn FnMut(&str) + Send)) -> Value {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let rows: Vec<Value> = rows.iter().map(|row| one.install(|| measure(options, *row, say))).collect();
    say("what a proposer can do to prices");
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

/// A ledger with its traders, in which nothing happens but what is asked for.
struct Arena {
    assets: u32,
    options: HostileOptions,
}

impl Arena {
    fn trading(&self, seed: u64) -> (Ledger, Trading) {
        let population = Population::new(self.options.accounts, self.assets, false);
        let ledger = Ledger::new(&population.genesis()).expect("a sound genesis");
        (ledger, Trading::new(population, self.assets, seed))
    }

    /// The paper's block on the paper's book: what it took, and its bytes.
    fn ordinary(&self) -> (Took, usize) {
        let (mut ledger, mut trading) = self.trading(7);
        let resting = trading.resting(&ledger, self.options.resting);
        let native = trading.population.sign(resting, None);
        let mut roots = Roots::of(&ledger);
        drop(apply(&mut ledger, &mut roots, native));
        let unsigned = trading.block(&ledger, self.options.transactions);
        let native = trading.population.sign(unsigned, None);
        let bytes = bytes_of(&native);
        let took = self.timed(ledger, roots, trading, native);
        (took, bytes)
    }

    /// The block of these genes, on the book of these genes.
    fn hostile(&self, genes: &Genes, bytes: usize) -> Took {
        let (mut ledger, trading) = self.trading(7);
        let mut maker = Maker { genes, trading, random: Seeded::new(self.options.seed), assets: self.assets };
        let mut roots = Roots::of(&ledger);
        while ledger.book().len() < self.options.resting {
            let before = ledger.book().len();
            let resting = maker.resting(self.options.resting - before);
            let native = maker.trading.population.sign(resting, None);
            drop(apply(&mut ledger, &mut roots, native));
            // What cannot rest, or is too far from any price, is left out of the book.
            if ledger.book().len() <= before + self.options.resting / 10 {
                break;
            }
        }
        let native = maker.block(&ledger, bytes);
        self.timed(ledger, roots, maker.trading, native)
    }

    /// The least of three times, of the block and of an ordinary small one after it.
    fn timed(&self, ledger: Ledger, roots: Roots, mut trading: Trading, native: Vec<Transaction>) -> Took {
        drop(roots);
        let mut took = Took { block: f64::MAX, next: f64::MAX };
        let mut after = ledger.clone();
        drop(apply(&mut after, &mut Roots::of(&ledger), native.clone()));
        let next = trading.block(&after, self.options.transactions);
        let next = trading.population.sign(next, None);
        for _ in 0..3 {
            let (mut ledger, mut roots) = (ledger.clone(), Roots::of(&ledger));
            roots.parts();
            let (_, block) = apply(&mut ledger, &mut roots, native.clone());
            let (_, next) = apply(&mut ledger, &mut roots, next.clone());
            took = Took { block: took.block.min(block), next: took.next.min(next) };
        }
        took
    }
}

/// Applies a block and hashes what it changed; how long that took.
fn apply(ledger: &mut Ledger, roots: &mut Roots, native: Vec<Transaction>) -> (Applied, f64) {
    let block = block(ledger, native);
    let begun = Instant::now();
    let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    roots.apply(&applied.changes);
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    (applied, took)
}

fn bytes_of(native: &[Transaction]) -> usize {
    native.iter().map(|transaction| borsh::object_length(transaction).expect("in memory")).sum()
}

/// Makes transactions by genes.
struct Maker<'a> {
    genes: &'a Genes,
    trading: Trading,
    random: Seeded,
    assets: u32,
}

impl Maker<'_> {
    /// Offers that rest: they ask for more than anybody pays.
    fn resting(&mut self, count: usize) -> Vec<Unsigned> {
        let mut block = Vec::with_capacity(count);
        for at in 0..count {
            self.offer(at as u64, 1.06, &mut block);
        }
        block
    }

    /// So many bytes of transactions.
    fn block(&mut self, ledger: &Ledger, bytes: usize) -> Vec<Transaction> {
        let kinds = ["offers", "cancels", "missed cancels", "payments", "new accounts", "overdrafts", "conflicts"];
        let weights: Vec<f64> = kinds.iter().map(|kind| self.genes.get(kind).powi(2) + 1e-3).collect();
        let resting: Vec<_> = ledger
            .book()
            .iter()
            .flat_map(|(pair, offers)| offers.iter().map(move |offer| (pair, offer.place)))
            .take(200_000)
            .collect();
        let (mut unsigned, mut length, mut at) = (Vec::new(), 0, 0);
        while length < bytes {
            let before = unsigned.len();
            match self.random.weighted(&weights) {
                0 => self.offer(at, if self.genes.get("crossing") < 0.5 { 1.0 } else { 0.9 }, &mut unsigned),
                1 if !resting.is_empty() => {
                    let (pair, place) = resting[self.random.below(resting.len() as u64) as usize];
                    self.trading.cancel_one(pair, place, &mut unsigned);
                }
                2 => {
                    let (sell, buy) = self.pair(at);
                    let offer = self.random.bits() >> 40;
                    let account = self.account(sell);
                    let cancel = Operation::CancelOffer { sell, buy, limit: self.limit(sell, buy, 1.0), offer };
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
                _ => self.trading.pay(&mut unsigned),
            }
            // The encoding of all kinds but stakes and accusations is below 250 bytes; an exact sum is taken at the
            // end.
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

    /// The assets that offers are of, at the position `at`.
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

    /// Around the true price times `over`, as far as prices and minimum sizes allow.
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

    fn offer(&mut self, at: u64, over: f64, block: &mut Vec<Unsigned>) {
        let (sell, buy) = self.pair(at);
        let limit = self.limit(sell, buy, over);
        let least = (LEAST_UNITS as f64).max(LEAST_UNITS as f64 / limit.to_f64()) + 1.0;
        let decades = 6.0 * self.genes.get("spread of amounts");
        let amount = (least * 10f64.powf(self.random.between(0.0, decades.max(1e-9)))).min(1e11) as u64;
        let account = self.account(sell);
        let operation = Operation::CreateOffer { sell, buy, amount, limit };
        block.push(self.trading.population.act(account, operation));
    }
}

fn measure(options: &HostileOptions, row: Row, say: &mut (dyn FnMut(&str) + Send)) -> Value {
    say(&format!("an ordinary block, {}", row.name));
    let arena = Arena { assets: row.assets, options: options.clone() };
    let (ordinary, bytes) = arena.ordinary();
    let mut random = Seeded::new(options.seed);
    let mut best: Option<(Genes, Took)> = None;
    let mut here: Option<(Genes, f64)> = None;
    let (mut kept, mut stuck) = (0, 0);
    for attempt in 0..options.tries {
        // After so many steps that lead nowhere the search begins elsewhere.
        let genes = match &here {
            _ if attempt == 0 => Genes::trading(),
            Some((genes, _)) if stuck < 12 => genes.changed(&mut random),
            _ => Genes::random(&mut random),
        };
        if stuck >= 12 {
            (here, stuck) = (None, 0);
        }
        let took = arena.hostile(&genes, bytes);
        let score = (took.block / ordinary.block).max(took.next / ordinary.next);
        if best.as_ref().is_none_or(|(_, best)| took.block > best.block) {
            say(&format!("try {attempt}, {}: {:.1} ms against {:.1}", row.name, took.block, ordinary.block));
            best = Some((genes.clone(), took));
        }
        if here.as_ref().is_none_or(|(_, before)| score > *before) {
            (here, stuck) = (Some((genes, score)), 0);
            kept += 1;
        } else {
            stuck += 1;
        }
    }
    let (genes, worst) = best.expect("at least one try");
    json!({
        "row": row.name,
        "bytes": bytes,
        "tries": options.tries,
        "kept": kept,
        "ordinary_ms": ordinary.block,
        "worst_ms": worst.block,
        "ratio": worst.block / ordinary.block,
        "next_ordinary_ms": ordinary.next,
        "next_ms": worst.next,
        "next_ratio": worst.next / ordinary.next,
        "genes": genes.json(),
    })
}

/// By how many basis points a valuation moves at most if a proposer orders and spreads the transactions of a block, and
/// sets its clock, in every way that is tried.
pub fn basis_points(options: &HostileOptions) -> f64 {
    let arena = Arena { assets: 20, options: options.clone() };
    let (mut ledger, mut trading) = arena.trading(11);
    let resting = trading.resting(&ledger, options.resting.min(20_000));
    let native = trading.population.sign(resting, None);
    drop(apply(&mut ledger, &mut Roots::default(), native));
    let unsigned = trading.block(&ledger, options.transactions.min(5_000));
    let native = trading.population.sign(unsigned, None);
    let prices = |sub_blocks: Vec<SubBlock>, time_ms: u64| {
        let mut ledger = ledger.clone();
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let block = Superblock { height, parent, time_ms, sub_blocks, ..Superblock::default() };
        let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
        drop(applied);
        ledger.assets().iter().map(|asset| asset.valuation.map_or(0.0, Price::to_f64)).collect::<Vec<f64>>()
    };
    let first = prices(vec![SubBlock { native: native.clone(), ..SubBlock::default() }], 1);
    let mut random = Seeded::new(options.seed);
    let mut most = 0.0f64;
    for attempt in 0..12u32 {
        let mut native = native.clone();
        for at in (1..native.len()).rev() {
            native.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut sub_blocks = vec![SubBlock::default(); 1 + attempt as usize % 4];
        for (slot, sub_block) in (0..).zip(&mut sub_blocks) {
            (sub_block.proposer, sub_block.time_ms) = (slot + attempt, random.bits());
        }
        let slots = sub_blocks.len() as u64;
        for transaction in native {
            sub_blocks[random.below(slots) as usize].native.push(transaction);
        }
        let other = prices(sub_blocks, 1 + random.below(60_000));
        let moves =
            first.iter().zip(&other).map(|(a, b)| if a == b { 0.0 } else { 1e4 * ((a - b) / a.max(1e-300)).abs() });
        most = moves.fold(most, f64::max);
    }
    most
}
