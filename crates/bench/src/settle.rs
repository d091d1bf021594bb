//! Settles of continuous markets on the ledger: what applying them costs against their signatures, against payments,
//! and right after a checkpoint, and what chains pay that have no venue. Everything runs on one ledger, block after
//! block, in turns, so that each ratio is of one run and of one state.

mod day;

use std::path::PathBuf;
use std::time::Instant;

use ledger::{FillVerdict, Genesis, GenesisError, Ledger, Listing, Outcome, Signatures, VenueTerms};
use primitives::venue::{
    Delay, KeyScope, Mandate, MarketMandate, MarketTerms, OrderLife, OrderNumber, SelfTradeRule, Settle, SettledFill,
    SettledOrder, SignedOrder, VenueOperation, VenueOperator, VenueOrder, VenueSide, possession_bytes,
};
use primitives::{Address, AssetId, Body, Fraction, Operation, SecretKey, Sequence, SubBlock, Superblock, Transaction};
use serde_json::{Value, json};

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count};
use crate::scaling::median;

/// Settles of continuous markets on the ledger, against their signatures, payments, checkpoints, and no venue.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  walras-lab bench settle --json\n  walras-lab bench settle --day 1000000 --home ./day   # then: walras venue audit --home ./day"
)]
pub struct SettleOptions {
    /// Traders, each with a key, two deposits and two balances: at least twice as many as fills.
    #[arg(long, default_value_t = 20_000)]
    pub traders: usize,
    /// Fills of a settle, each of two new orders of two traders.
    #[arg(long, default_value_t = 2_000, value_parser = count(1..=2_500))]
    pub fills: usize,
    /// Turns; medians are reported.
    #[arg(long, default_value_t = 9, value_parser = count(1..))]
    pub runs: usize,
    /// Measure nothing: settle so many fills into a home, which can be audited.
    #[arg(long, value_name = "FILLS", requires = "home")]
    pub day: Option<u64>,
    /// With --day: the home, in a folder that has none.
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
}

impl Measurement for SettleOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        Ok(BenchShown::Figures(run(&self, say)?))
    }
}

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const RICH: u64 = 1_000_000_000;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum SettleBenchError {
    /// The ledger refuses.
    #[error("the ledger refuses: {0}")]
    Ledger(String),
    /// The home cannot be made.
    #[error("the home: {0}")]
    Home(String),
    /// The options do not fit together.
    #[error("--fills {fills} needs {needs} traders at least: give --traders {needs}")]
    TooFewTraders {
        /// The fills.
        fills: usize,
        /// The traders that they need.
        needs: usize,
    },
}

impl From<GenesisError> for SettleBenchError {
    fn from(error: GenesisError) -> SettleBenchError {
        SettleBenchError::Ledger(error.to_string())
    }
}

/// A chain with a venue, and everybody who trades on it.
struct Chain {
    genesis: Genesis,
    ledger: Ledger,
    kept: Option<day::Kept>,
    owner: SecretKey,
    accounts: Vec<SecretKey>,
    trading: Vec<SecretKey>,
    sequences: Vec<Sequence>,
    operated: Sequence,
    reference: u32,
    settled: u64,
}

fn seeded(kind: u8, number: usize) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
    SecretKey::from_seed(seed)
}

fn terms() -> VenueTerms {
    VenueTerms {
        delay: Delay { heights: 32, ms: 10_000 },
        bond_min: 1_000,
        bond_delay: Delay { heights: 1_000, ms: 1_000_000 },
        settle_bytes: 1 << 20,
        entries_max: 1 << 40,
        penalty_min: 1,
        venues_max: 1,
        per_block: 1 << 20,
        life_max: 1 << 20,
    }
}

impl Chain {
    fn new(traders: usize, has_venues: bool) -> Result<Chain, SettleBenchError> {
        let owner = seeded(1, 0);
        let accounts: Vec<SecretKey> = (0..traders).map(|number| seeded(2, number)).collect();
        let everybody = accounts.iter().chain([&owner]).map(|key| key.public().address());
        let balances = everybody.flat_map(|account| [USD, EUR].map(|asset| (account, asset, RICH))).collect();
        let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, Address([9; 20]))).to_vec();
        let (mu, venues) = (Fraction::power_of_two(10), has_venues.then(terms));
        let genesis = Genesis { chain: 1, fee: 1, mu, assets, balances, venues, ..Genesis::default() };
        let trading = (0..traders).map(|number| seeded(3, number)).collect();
        let (ledger, sequences) = (Ledger::new(&genesis)?, vec![0; traders]);
        let (operated, reference, settled) = (0, 0, 0);
        Ok(Chain { genesis, ledger, kept: None, owner, accounts, trading, sequences, operated, reference, settled })
    }

    /// A venue with a market, and keys and deposits of all traders.
    fn found(&mut self) -> Result<(), SettleBenchError> {
        let operator = VenueOperator { account: self.owner.public().address(), report_key: self.owner.public() };
        let open = VenueOperation::Open { venue: 0, operator, fee_cap_ppm: 0, bond: RICH / 2 };
        let open = self.operate(open);
        self.must(vec![open])?;
        let list = VenueOperation::List { venue: 0, market: 0, terms: market() };
        let list = self.operate(list);
        self.must(vec![list])?;
        for asset in [USD, EUR] {
            let deposit = VenueOperation::Deposit { venue: 0, asset, units: RICH / 2 };
            let all = (0..self.accounts.len()).map(|at| self.act(at, Operation::Venue(Box::new(deposit.clone()))));
            let all = all.collect();
            self.must(all)?;
        }
        let network = self.ledger.network();
        let all = (0..self.accounts.len()).map(|at| {
            let (account, key) = (self.accounts[at].public().address(), self.trading[at].public());
            let possession = self.trading[at].sign(&possession_bytes(&network, 0, &account, &key));
            let markets = vec![MarketMandate { market: 0, tick_min: 1, tick_max: 1_000 }];
            let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(USD, RICH), (EUR, RICH)] };
            self.act(at, Operation::Venue(Box::new(VenueOperation::Authorize { venue: 0, key, mandate, possession })))
        });
        let all = all.collect();
        self.must(all)
    }

    fn operate(&mut self, operation: VenueOperation) -> Transaction {
        self.operated += 1;
        let (account, sequence) = (self.owner.public().address(), self.operated);
        let (until, operation) = (self.ledger.height() + 8, Operation::Venue(Box::new(operation)));
        Body { chain: 1, account, sequence, until, operation }.sign(&self.ledger.network(), &self.owner)
    }

    fn act(&mut self, at: usize, operation: Operation) -> Transaction {
        self.sequences[at] += 1;
        let (account, sequence) = (self.accounts[at].public().address(), self.sequences[at]);
        let body = Body { chain: 1, account, sequence, until: self.ledger.height() + 8, operation };
        body.sign(&self.ledger.network(), &self.accounts[at])
    }

    fn block(&self, native: Vec<Transaction>) -> Superblock {
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        Superblock { height, parent, time_ms: 1_000 * height, sub_blocks, ..Superblock::default() }
    }

    /// Applies a block whose transactions all count; returns milliseconds.
    fn apply(&mut self, native: Vec<Transaction>, signatures: Signatures<'_>) -> Result<f64, SettleBenchError> {
        let mut block = self.block(native);
        self.kept.as_mut().map_or(Ok(()), |kept| kept.log(&mut block))?;
        let begun = Instant::now();
        let applied = self.ledger.apply(&block, signatures, &mut |_| {});
        let taken = begun.elapsed().as_secs_f64() * 1_000.0;
        let applied = applied.map_err(|fault| SettleBenchError::Ledger(fault.to_string()))?;
        self.kept.as_mut().map_or(Ok(()), |kept| kept.archive(&block, &applied))?;
        if let Some(other) = applied.outcomes.iter().find(|of| **of != Outcome::Applied) {
            return Err(SettleBenchError::Ledger(format!("an operation is {other:?}")));
        }
        let busts = applied.venues.iter().flat_map(|of| &of.verdicts).filter(|of| **of != FillVerdict::Applied).count();
        if busts > 0 {
            return Err(SettleBenchError::Ledger(format!("{busts} fills are bust")));
        }
        Ok(taken)
    }

    fn must(&mut self, native: Vec<Transaction>) -> Result<(), SettleBenchError> {
        self.apply(native, Signatures::Valid).map(drop)
    }

    /// A settle of new orders, each of another trader than the one before it. Turns begin at other traders.
    fn settle(&mut self, fills: usize, turn: usize) -> Settle {
        let network = self.ledger.network();
        let number = OrderNumber { incarnation: 0, day: 0, reference: 0 };
        let mut orders = Vec::with_capacity(2 * fills);
        for at in 0..2 * fills {
            self.reference += 1;
            let side = if at % 2 == 0 { VenueSide::Buy } else { VenueSide::Sell };
            let key = &self.trading[(at + turn * 2 * fills) % self.trading.len()];
            let order = VenueOrder {
                market: 0,
                number: OrderNumber { reference: self.reference, ..number },
                floor: number,
                side,
                life: OrderLife::Rests,
                self_trade: SelfTradeRule::ExpireTaker,
                tick: 100,
                lots: 1,
                expiry: self.ledger.height() + 8,
                until_ms: None,
                fee_cap_ppm: 0,
            };
            orders.push(SettledOrder::from(SignedOrder::sign(&network, 0, key, order)));
        }
        let pairs: Vec<[SettledOrder; 2]> = orders.chunks(2).map(|two| [two[0].clone(), two[1].clone()]).collect();
        orders.sort_by_key(|of| (of.key, of.order.number));
        let at =
            |of: &SettledOrder| orders.binary_search_by_key(&(of.key, of.order.number), |of| (of.key, of.order.number));
        let fill = |[buy, sell]: &[SettledOrder; 2]| SettledFill {
            buy: at(buy).expect("it is there") as u16,
            sell: at(sell).expect("it is there") as u16,
            lots: 1,
            tick: 100,
            fee_buy: 0,
            fee_sell: 0,
            taker: VenueSide::Buy,
        };
        let fills: Vec<SettledFill> = pairs.iter().map(fill).collect();
        let from = self.settled;
        self.settled += fills.len() as u64;
        Settle { venue: 0, incarnation: 0, from, orders, fills }
    }

    fn settle_block(&mut self, fills: usize, turn: usize) -> Vec<Transaction> {
        let settle = self.settle(fills, turn);
        vec![self.operate(VenueOperation::Settle(settle))]
    }

    /// As many payments, each of another account.
    fn payments(&mut self, count: usize, turn: usize) -> Vec<Transaction> {
        let traders = self.accounts.len();
        let pay = |at: usize| ((at + turn * count) % traders, (at + turn * count + 1) % traders);
        let all = (0..count).map(pay).map(|(from, to)| {
            let to = self.accounts[to].public().address();
            self.act(from, Operation::Pay { to, asset: EUR, amount: 1 })
        });
        all.collect()
    }
}

fn market() -> MarketTerms {
    MarketTerms { base: EUR, quote: USD, lot_units: 1, tick_units: 1, lots_max: 1_000, fee_cap_ppm: 0, penalty: 1 }
}

/// Runs everything; `say` is called with each step.
///
/// # Errors
/// [`SettleBenchError`].
///
/// # Panics
/// If no run is asked for.
pub fn run(options: &SettleOptions, say: &mut dyn FnMut(&str)) -> Result<Value, SettleBenchError> {
    let SettleOptions { traders, fills, runs, .. } = *options;
    if traders < 2 * fills {
        return Err(SettleBenchError::TooFewTraders { fills, needs: 2 * fills });
    }
    say("a chain with a venue");
    if let (Some(day), Some(home)) = (options.day, &options.home) {
        return day::make((traders, fills, day), home, say);
    }
    let mut chain = Chain::new(traders, true)?;
    chain.found()?;
    say("a chain without venues");
    let mut without = Chain::new(traders, false)?;
    let mut times: [Vec<f64>; 7] = Default::default();
    for turn in 0..runs {
        say(&format!("turn {} of {runs}", turn + 1));
        let settle = chain.settle(fills, turn);
        let begun = Instant::now();
        settle.verify(&chain.ledger.network()).map_err(|fault| SettleBenchError::Ledger(fault.to_string()))?;
        times[0].push(begun.elapsed().as_secs_f64() * 1_000.0);
        let signed = chain.operate(VenueOperation::Settle(settle));
        times[1].push(chain.apply(vec![signed], Signatures::Unchecked)?);
        let unsigned = chain.settle_block(fills, turn);
        times[2].push(chain.apply(unsigned, Signatures::Valid)?);
        let payments = chain.payments(2 * fills, turn);
        times[3].push(chain.apply(payments, Signatures::Valid)?);
        // A checkpoint holds the state while it is written: the next block copies what it changes.
        let held = chain.ledger.clone();
        let unsigned = chain.settle_block(fills, turn);
        times[4].push(chain.apply(unsigned, Signatures::Valid)?);
        drop(held);
        let payments = chain.payments(2 * fills, turn + 1);
        times[5].push(chain.apply(payments, Signatures::Valid)?);
        let payments = without.payments(2 * fills, turn);
        without.must(payments)?;
        let payments = without.payments(2 * fills, turn + 1);
        times[6].push(without.apply(payments, Signatures::Valid)?);
    }
    let [verify, signed, unsigned, payments, held, idle, none] = times.map(median);
    let bar = |ratio: f64, bar: f64, is_least: bool| {
        let holds = if is_least { ratio >= bar } else { ratio <= bar };
        json!({ "ratio": ratio, (if is_least { "least" } else { "most" }): bar, "holds": holds })
    };
    Ok(json!({
        "traders": traders, "fills": fills, "runs": runs,
        "verify_all_ms": verify, "settle_ms": signed, "settle_without_signatures_ms": unsigned,
        "payments_ms": payments, "settle_after_checkpoint_ms": held,
        "payments_beside_a_venue_ms": idle, "payments_without_venues_ms": none,
        "verify_over_settle": bar(verify / signed, 0.8, true),
        "fills_over_payments": bar(unsigned / payments, 2.0, false),
        "after_checkpoint_over_ordinary": bar(held / unsigned, 1.2, false),
        "without_venues_over_beside_a_venue": bar(none / idle, 1.01, false),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settle_bench_settles_and_compares() {
        let options = SettleOptions { traders: 64, fills: 16, runs: 1, day: None, home: None };
        let figures = run(&options, &mut |_| {}).expect("it runs");
        for name in ["verify_all_ms", "settle_ms", "payments_ms", "settle_after_checkpoint_ms"] {
            assert!(figures[name].as_f64().is_some_and(|ms| ms > 0.0), "{figures}");
        }
        assert!(run(&SettleOptions { traders: 3, ..options.clone() }, &mut |_| {}).is_err());
        let folder = tempfile::tempdir().expect("a folder");
        let home = Some(folder.path().join("day"));
        let day = SettleOptions { day: Some(40), home, ..options };
        let made = run(&day, &mut |_| {}).expect("it is made");
        assert_eq!(made["fills"], 40);
        assert!(run(&day, &mut |_| {}).is_err(), "a home is not overwritten");
    }
}
