//! Whole blocks through the ledger: with and without signatures, on one thread and on more, and what state weighs.

use std::collections::BTreeMap;
use std::time::Instant;

use ledger::{Genesis, Ledger, Roots, Signatures};
use primitives::{
    Address, AssetId, Body, Fraction, Operation, Price, SecretKey, Sequence, SubBlock, Superblock, Transaction,
};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::workload::Seeded;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Accounts, each with two assets.
    pub accounts: usize,
    /// Assets.
    pub assets: u32,
    /// Transactions in a block.
    pub transactions: usize,
    /// Measured blocks; two more come before them.
    pub blocks: usize,
    /// Numbers of threads.
    pub threads: Vec<usize>,
}

impl Default for Options {
    /// 1,000,000 accounts, 50 assets, blocks of 100,000 on one and two threads.
    fn default() -> Options {
        Options { accounts: 1_000_000, assets: 50, transactions: 100_000, blocks: 5, threads: vec![1, 2] }
    }
}

/// Blocks that warm caches and fill the book.
const WARM_UP: usize = 2;

struct Trader {
    key: SecretKey,
    address: Address,
    next: Sequence,
}

/// Runs everything; `say` hears each step.
///
/// # Panics
/// If the system gives no threads.
pub fn run(options: &Options, say: &mut dyn FnMut(&str)) -> Value {
    say(&format!("making {} accounts", options.accounts));
    let traders: Vec<Trader> = (0..options.accounts).into_par_iter().map(trader).collect();
    let genesis = genesis(options, &traders);
    let initial = Ledger::new(&genesis).expect("a sound genesis");
    let account_bytes = initial.accounts().bytes() as f64 / options.accounts as f64;
    drop(initial);
    say(&format!("making {} signed blocks of {}", options.blocks + WARM_UP, options.transactions));
    let (blocks, full) = blocks(options, &genesis, traders);
    let mut roots = Roots::of(&full);
    let (account_trie, offer_trie) = roots.bytes();
    roots.parts();
    let offers = full.book().len().max(1) as f64;
    let weight = json!({
        "account_bytes": account_bytes,
        "offer_bytes": full.book().bytes() as f64 / offers,
        "account_trie_bytes": account_trie as f64 / full.accounts().len() as f64,
        "offer_trie_bytes": offer_trie as f64 / offers,
        "accounts": full.accounts().len(),
        "offers": full.book().len(),
    });
    drop((roots, full));
    let mut runs = Vec::new();
    for signatures in [false, true] {
        for &threads in &options.threads {
            say(&format!("{threads} threads, signatures {}", if signatures { "checked" } else { "not checked" }));
            runs.push(measure(&genesis, &blocks, threads, signatures));
        }
    }
    json!({
        "accounts": options.accounts,
        "assets": options.assets,
        "transactions_per_block": options.transactions,
        "blocks": options.blocks,
        "memory": weight,
        "runs": runs.iter().map(Run::as_json).collect::<Vec<_>>(),
        "speedup": speedups(&runs),
    })
}

fn trader(i: usize) -> Trader {
    let mut seed = [0x77; 32];
    seed[..8].copy_from_slice(&(i as u64).to_le_bytes());
    let key = SecretKey::from_seed(seed);
    Trader { address: key.public().address(), key, next: 1 }
}

/// The two assets of an account.
fn held(account: usize, assets: u32) -> [u32; 2] {
    let first = account as u32 % assets;
    [first, (first + 1 + (account as u32 / assets) % (assets - 1)) % assets]
}

fn genesis(options: &Options, traders: &[Trader]) -> Genesis {
    let issuer = SecretKey::from_seed([0xee; 32]).public().address();
    let assets: Vec<_> = (0..options.assets).map(|i| (format!("A{i:02}"), 4, issuer)).collect();
    let holdings = |(i, trader): (usize, &Trader)| {
        held(i, options.assets).map(|asset| (trader.address, AssetId(asset), 1_000_000_000_000))
    };
    let balances = traders.iter().enumerate().flat_map(holdings).collect();
    let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
    Genesis { chain: 1, fee: 0, epsilon, mu, assets, balances }
}

/// Blocks after SPEEDEX §7: three quarters offers, a fifth cancellations, some payments, a few new accounts. They are
/// made by applying them, so the ledger that has them all comes along.
fn blocks(options: &Options, genesis: &Genesis, mut traders: Vec<Trader>) -> (Vec<Superblock>, Ledger) {
    let mut ledger = Ledger::new(genesis).expect("a sound genesis");
    let mut random = Seeded::new(7);
    let mut valuations: Vec<f64> = (0..options.assets).map(|_| random.between(1.0, 1_000.0)).collect();
    let owners: BTreeMap<Address, usize> = traders.iter().enumerate().map(|(i, t)| (t.address, i)).collect();
    let mut blocks = Vec::new();
    for number in 0..options.blocks + WARM_UP {
        let mut operations = cancellations(&ledger, &owners, options.transactions / 5, &mut random);
        while operations.len() < options.transactions {
            operations.push(draw(options, &traders, &valuations, number, &mut random));
        }
        for valuation in &mut valuations {
            *valuation *= 1.0 + random.between(-0.01, 0.01);
        }
        let bodies: Vec<(usize, Body)> = operations
            .into_iter()
            .map(|(i, operation)| {
                let sequence = traders[i].next;
                traders[i].next += 1;
                (i, Body { chain: 1, account: traders[i].address, sequence, operation })
            })
            .collect();
        let native: Vec<Transaction> = bodies.into_par_iter().map(|(i, body)| body.sign(&traders[i].key)).collect();
        let block = Superblock {
            height: ledger.height() + 1,
            parent: ledger.last_block(),
            time_ms: 0,
            parent_root: Default::default(),
            sub_blocks: vec![SubBlock { native, ..SubBlock::default() }],
        };
        ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
        blocks.push(block);
    }
    (blocks, ledger)
}

fn draw(
    options: &Options,
    traders: &[Trader],
    valuations: &[f64],
    block: usize,
    random: &mut Seeded,
) -> (usize, Operation) {
    // Squaring draws small numbers more often: a few accounts are busy, most are not. The busiest few of a million stay
    // within their windows.
    let i = loop {
        let share = random.unit();
        let i = ((share * share) * traders.len() as f64) as usize;
        if traders[i].next < 60 * (block as u64 + 1) {
            break i;
        }
    };
    let [own, other] = held(i, options.assets);
    match random.below(1_000) {
        0..=40 => {
            let to = traders[random.below(traders.len() as u64) as usize].address;
            let to = if to == traders[i].address { Address([9; 20]) } else { to };
            (i, Operation::Pay { to, asset: AssetId(own), amount: random.below(1_000_000) + 1 })
        }
        41 => {
            let mut seed = [0x11; 32];
            seed[..8].copy_from_slice(&random.bits().to_le_bytes());
            let key = SecretKey::from_seed(seed).public();
            (i, Operation::CreateAccount { account: key.address(), key })
        }
        _ => {
            let sell = if random.below(2) == 0 { own } else { other };
            let buy = (sell + 1 + random.below(u64::from(options.assets) - 1) as u32) % options.assets;
            let rate = valuations[sell as usize] / valuations[buy as usize];
            let bad = random.below(10) == 0;
            let margin = if bad { random.between(0.0, 0.02) } else { -random.between(0.0, 0.02) };
            let limit = Price::from_f64(rate * (1.0 + margin)).expect("in range");
            let amount = random.below(100_000_000) + 10_000;
            (i, Operation::CreateOffer { sell: AssetId(sell), buy: AssetId(buy), amount, limit })
        }
    }
}

fn cancellations(
    ledger: &Ledger,
    owners: &BTreeMap<Address, usize>,
    count: usize,
    random: &mut Seeded,
) -> Vec<(usize, Operation)> {
    let share = count as f64 / ledger.book().len().max(1) as f64;
    let mut cancels = Vec::new();
    for (pair, offers) in ledger.book().iter() {
        for offer in offers.iter().filter(|_| random.unit() < share) {
            let place = offer.place;
            let (sell, buy) = (pair.sell, pair.buy);
            let operation = Operation::CancelOffer { sell, buy, limit: place.limit, offer: place.id };
            cancels.push((owners[&place.account], operation));
        }
    }
    cancels.truncate(count);
    cancels
}

struct Run {
    threads: usize,
    signatures: bool,
    /// Medians, in milliseconds.
    block_ms: f64,
    tries_ms: f64,
    stages: BTreeMap<&'static str, f64>,
    transactions: usize,
}

fn measure(genesis: &Genesis, blocks: &[Superblock], threads: usize, signatures: bool) -> Run {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let mut ledger = Ledger::new(genesis).expect("a sound genesis");
        let mut roots = Roots::of(&ledger);
        roots.parts();
        let mut times: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
        for (number, block) in blocks.iter().enumerate() {
            let check = if signatures { Signatures::Unchecked } else { Signatures::Valid };
            let mut stages = Vec::new();
            let begun = Instant::now();
            let mut last = begun;
            let applied = ledger.apply(block, check, &mut |stage| {
                stages.push((stage.name(), last.elapsed()));
                last = Instant::now();
            });
            stages.push(("block", begun.elapsed()));
            let applied = applied.expect("applies");
            let begun = Instant::now();
            roots.apply(&applied.changes);
            stages.push(("tries", begun.elapsed()));
            if number >= WARM_UP {
                for (stage, time) in stages {
                    times.entry(stage).or_default().push(time.as_secs_f64() * 1_000.0);
                }
            }
        }
        let mut stages: BTreeMap<&'static str, f64> =
            times.into_iter().map(|(stage, ms)| (stage, median(ms))).collect();
        let block_ms = stages.remove("block").expect("timed");
        let tries_ms = stages.remove("tries").expect("timed");
        let transactions = blocks.last().map_or(0, Superblock::native_len);
        Run { threads, signatures, block_ms, tries_ms, stages, transactions }
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Run {
    fn per_second(&self, ms: f64) -> f64 {
        (self.transactions as f64 * 1_000.0 / ms).round()
    }

    fn as_json(&self) -> Value {
        json!({
            "threads": self.threads,
            "signatures": self.signatures,
            "transactions_per_second": self.per_second(self.block_ms),
            "transactions_per_second_with_tries": self.per_second(self.block_ms + self.tries_ms),
            "block_ms": self.block_ms,
            "tries_ms": self.tries_ms,
            "stages_ms": self.stages,
        })
    }
}

/// How much faster more threads are than the fewest, with and without signatures.
fn speedups(runs: &[Run]) -> Vec<Value> {
    let one = |signatures| runs.iter().find(|run| run.signatures == signatures);
    let others = runs.iter().filter_map(|run| {
        let base = one(run.signatures).filter(|base| base.threads < run.threads)?;
        Some(json!({
            "threads": [base.threads, run.threads],
            "signatures": run.signatures,
            "block": base.block_ms / run.block_ms,
            "block_and_tries": (base.block_ms + base.tries_ms) / (run.block_ms + run.tries_ms),
        }))
    });
    others.collect()
}
