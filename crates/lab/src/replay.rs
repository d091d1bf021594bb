//! `walras-lab replay`: the daily batches of SPEEDEX §6.2, through the whole ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, ensure};
use bench::daily::{History, history};
use clearing::{Clearing, Report, Trade};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernel::Dice;
use ledger::{Applied, Genesis, Ledger, Listing, PairOffers, Roots, Signatures, Stage};
use primitives::{
    Address, AssetId, Body, Fraction, MAX_ISSUED, Operation, SecretKey, Sequence, Signature, SubBlock, Superblock,
    Transaction,
};
use serde_json::{Value, json};

/// Accounts that share a day's offers.
const ACCOUNTS: usize = 2_000;

/// Runs historical market data through the whole ledger, a batch a day.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab replay ../shared/data/coingecko
  walras-lab replay ../shared/data/coingecko --days 500 --json

Offers are drawn by the day's volumes with limits near the day's rates; offers that do not trade rest for later days;
some are cancelled each day. Each batch is verified independently of the solver.")]
pub struct ReplayCommand {
    /// Directory with one SYMBOL-usd-max.csv per asset.
    directory: PathBuf,
    /// Number of days, the last ones of the data.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    days: u32,
    /// New offers a day.
    #[arg(long, default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..=120_000))]
    offers: u32,
    /// Cancellations a day.
    #[arg(long, default_value_t = 3_000)]
    cancels: u32,
    /// Maximum distance of limits from the day's rate.
    #[arg(long, default_value_t = 0.02)]
    spread: f64,
    /// Seed of the draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Commission ε.
    #[arg(long, default_value = "2^-15")]
    epsilon: Fraction,
    /// Band μ.
    #[arg(long, default_value = "2^-10")]
    mu: Fraction,
    /// Also sign every transaction and check every signature.
    #[arg(long)]
    signed: bool,
}

/// An account of the replay.
struct Trader {
    key: SecretKey,
    address: Address,
    next: Sequence,
}

/// The results of one day.
struct DayResult {
    date: String,
    offers: usize,
    fills: usize,
    full: bool,
    violation: Option<String>,
    utility: f64,
    iterations: u32,
    solve_ms: f64,
    block_ms: f64,
    /// Median and largest deviation of an asset's price from its market price of the day.
    deviation: (f64, f64),
    volume: f64,
    resting: usize,
}

impl ReplayCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let history = history(&self.directory, self.days as usize).context("reading the market data")?;
        let mut traders = traders();
        let genesis = self.genesis(&history, &traders);
        let mut ledger = Ledger::new(&genesis)?;
        let mut roots = Roots::of(&ledger);
        let mut random = Dice::new(self.seed);
        let progress = self.progress(history.days.len());
        let mut results = Vec::new();
        for day in 0..history.days.len() {
            let block = self.block(&history, day, &ledger, &mut traders, &mut random);
            let result = self.day(&history, day, &mut ledger, &mut roots, &block)?;
            if !json {
                progress.suspend(|| println!("{}", line(&result)));
            }
            progress.inc(1);
            results.push(result);
        }
        progress.finish_and_clear();
        let audit = ledger.audit().map_or_else(|error| error.to_string(), |_| "holds".into());
        let total = total(&results, &audit, &self);
        if json {
            println!("{}", json!({"total": total, "batches": results.iter().map(as_json).collect::<Vec<_>>()}));
        } else {
            println!("\n{}", serde_json::to_string_pretty(&total)?);
        }
        let good = audit == "holds" && results.iter().all(|result| result.violation.is_none());
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn progress(&self, days: usize) -> ProgressBar {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} days, {eta} left").expect("a sound template");
        ProgressBar::with_draw_target(Some(days as u64), ProgressDrawTarget::stderr()).with_style(style)
    }

    fn genesis(&self, history: &History, traders: &[Trader]) -> Genesis {
        let issuer = SecretKey::from_seed([0xfe; 32]).public().address();
        let listed = history.symbols.iter().zip(&history.decimals);
        // As small as the band permits, because the historical data has no least sizes.
        let least_units = clearing::least_units(self.epsilon, self.mu);
        let listing = |(symbol, decimals): (&String, &u32)| Listing {
            least_units,
            ..Listing::new(symbol.clone(), *decimals as u8, issuer)
        };
        let assets: Vec<_> = listed.map(listing).collect();
        let share = MAX_ISSUED / 2 / traders.len() as u64;
        let holdings = |trader: &Trader| {
            let address = trader.address;
            (0..history.symbols.len()).map(move |asset| (address, AssetId(asset as u32), share)).collect::<Vec<_>>()
        };
        let balances = traders.iter().flat_map(holdings).collect();
        Genesis { chain: 1, fee: 0, epsilon: self.epsilon, mu: self.mu, assets, balances, ..Genesis::default() }
    }

    /// A day's block: its offers, and cancellations of resting offers.
    fn block(
        &self,
        history: &History,
        day: usize,
        ledger: &Ledger,
        traders: &mut [Trader],
        random: &mut Dice,
    ) -> Superblock {
        let offers = history.offers(day, self.offers as usize, self.spread, self.seed);
        let creations = offers.iter().enumerate().map(|(i, offer)| {
            let (sell, buy, amount, limit) = (offer.sell, offer.buy, offer.amount, offer.limit);
            (i % ACCOUNTS, Operation::offer(sell, buy, amount, limit))
        });
        let mut operations: Vec<(usize, Operation)> = creations.collect();
        operations.extend(self.cancellations(ledger, traders, random));
        let network = ledger.network();
        let native = operations.into_iter().map(|(trader, operation)| {
            let trader = &mut traders[trader];
            let body = Body { chain: 1, account: trader.address, sequence: trader.next, until: 50_000, operation };
            trader.next += 1;
            match self.signed {
                true => body.sign(&network, &trader.key),
                false => Transaction::by_key(body, trader.key.public(), Signature([0; 64])),
            }
        });
        Superblock {
            height: ledger.height() + 1,
            parent: ledger.last_block(),
            time_ms: 0,
            parent_root: Default::default(),
            sub_blocks: vec![SubBlock { native: native.collect(), ..SubBlock::default() }],
            ..Superblock::default()
        }
    }

    fn cancellations(&self, ledger: &Ledger, traders: &[Trader], random: &mut Dice) -> Vec<(usize, Operation)> {
        let by_address: BTreeMap<Address, usize> =
            traders.iter().enumerate().map(|(i, trader)| (trader.address, i)).collect();
        let mut wanted: Vec<usize> =
            (0..self.cancels).map(|_| random.below(ledger.book().len().max(1) as u64) as usize).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut wanted = wanted.into_iter().peekable();
        let mut cancels = Vec::new();
        let mut before = 0;
        for (pair, offers) in ledger.book().iter() {
            for (at, ledger::Offer { place, .. }) in offers.iter().enumerate() {
                if wanted.next_if_eq(&(before + at)).is_none() {
                    continue;
                }
                let (sell, buy) = (pair.sell, pair.buy);
                let operation = Operation::cancel(sell, buy, place.limit, place.id);
                cancels.push((by_address[&place.account], operation));
            }
            before += offers.len();
        }
        cancels
    }

    fn day(
        &self,
        history: &History,
        day: usize,
        ledger: &mut Ledger,
        roots: &mut Roots,
        block: &Superblock,
    ) -> anyhow::Result<DayResult> {
        let begun = Instant::now();
        let mut solve_ms = 0.0;
        let mut last = Instant::now();
        let signatures = if self.signed { Signatures::Unchecked } else { Signatures::Valid };
        let applied = ledger.apply(block, signatures, &mut |stage| {
            if stage == Stage::Clearing {
                solve_ms = last.elapsed().as_secs_f64() * 1_000.0;
            }
            last = Instant::now();
        })?;
        roots.apply(&applied.changes);
        let block_ms = begun.elapsed().as_secs_f64() * 1_000.0;
        let refused = applied.outcomes.iter().filter_map(|outcome| outcome.refusal()).next();
        ensure!(refused.is_none(), "day {}: {}", history.days[day].date, refused.expect("some"));
        let report = applied.report.clone().context("the day has no offers")?;
        Ok(DayResult {
            date: history.days[day].date.clone(),
            offers: self.offers as usize,
            fills: applied.batch.fills.len(),
            full: applied.batch.full(),
            violation: self.verify(ledger, &applied, &report),
            utility: report.unrealized_utility_ratio,
            iterations: report.iterations,
            solve_ms,
            block_ms,
            deviation: deviation(history, day, &applied),
            volume: volume(history, day, &applied),
            resting: ledger.book().len(),
        })
    }

    /// Verifies the batch against the book before it, without solving; returns the first violation.
    fn verify(&self, ledger: &Ledger, applied: &Applied, report: &Report) -> Option<String> {
        let batch = &applied.batch;
        let mut before: BTreeMap<_, PairOffers> = BTreeMap::new();
        for (pair, offers) in ledger.book().iter() {
            before.insert(pair, offers.as_met_by(batch, pair));
        }
        for trade in &batch.trades {
            before.entry(trade.pair).or_insert_with(|| PairOffers::default().as_met_by(batch, trade.pair));
        }
        let pairs = before.iter().map(|(pair, offers)| offers.view(*pair));
        let book =
            clearing::Book { assets: ledger.assets().len() as u32, pairs: pairs.collect(), ..Default::default() };
        let trade = |trade: &ledger::PairTrade| Trade { sell: trade.pair.sell, buy: trade.pair.buy, sold: trade.sold };
        let claim = Clearing {
            valuations: batch.valuations.clone(),
            trades: batch.trades.iter().map(trade).collect(),
            full: batch.full(),
            report: report.clone(),
            ..Clearing::default()
        };
        let params = clearing::Params { epsilon: self.epsilon, mu: self.mu, ..Default::default() };
        clearing::verify(&book, &params, &claim).err().map(|violation| violation.to_string())
    }
}

fn traders() -> Vec<Trader> {
    let trader = |i: usize| {
        let mut seed = [0x5a; 32];
        seed[..8].copy_from_slice(&(i as u64).to_le_bytes());
        let key = SecretKey::from_seed(seed);
        Trader { address: key.public().address(), key, next: 1 }
    };
    (0..ACCOUNTS).map(trader).collect()
}

/// Deviation of batch prices from the day's: median and largest, over assets that traded in the batch. What nobody
/// sold or bought there has a valuation and no price. Valuations have no unit, so they are scaled to agree for the
/// median asset before they are compared.
fn deviation(history: &History, day: usize, applied: &Applied) -> (f64, f64) {
    let trades = applied.batch.trades.iter().filter(|trade| trade.sold > 0);
    let traded: BTreeSet<usize> =
        trades.flat_map(|trade| [trade.pair.sell, trade.pair.buy]).map(|asset| asset.0 as usize).collect();
    let ratio = |asset: usize| applied.batch.valuations[asset].to_f64() / history.unit_price(day, asset);
    let mut ratios: Vec<f64> = traded.into_iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let Some(middle) = ratios.get(ratios.len() / 2).copied() else { return (0.0, 0.0) };
    let mut deviations: Vec<f64> = ratios.iter().map(|ratio| (ratio / middle - 1.0).abs()).collect();
    deviations.sort_by(f64::total_cmp);
    (deviations[deviations.len() / 2], deviations.last().copied().unwrap_or_default())
}

/// Value in dollars of the day's sales at the day's prices.
fn volume(history: &History, day: usize, applied: &Applied) -> f64 {
    let worth = |trade: &ledger::PairTrade| trade.sold as f64 * history.unit_price(day, trade.pair.sell.0 as usize);
    applied.batch.trades.iter().map(worth).sum()
}

fn line(day: &DayResult) -> String {
    format!(
        "{}  {:>6} offers  {:>6} fills  {:>8} rest  {}  {}  utility lost {:>6.3} %  prices off by {:>6.3} % ({:>7.3} % at most)  {:>14.0} USD  solved in {:>6.1} ms ({} steps), block {:>6.0} ms",
        day.date,
        day.offers,
        day.fills,
        day.resting,
        if day.full { "full    " } else { "not full" },
        day.violation.as_deref().unwrap_or("verified"),
        day.utility * 100.0,
        day.deviation.0 * 100.0,
        day.deviation.1 * 100.0,
        day.volume,
        day.solve_ms,
        day.iterations,
        day.block_ms
    )
}

fn as_json(day: &DayResult) -> Value {
    json!({
        "date": day.date,
        "offers": day.offers,
        "fills": day.fills,
        "resting": day.resting,
        "full": day.full,
        "verified": day.violation.is_none(),
        "violation": day.violation,
        "unrealized_utility_ratio": day.utility,
        "price_deviation": {"median": day.deviation.0, "max": day.deviation.1},
        "volume_usd": format!("{:.0}", day.volume),
        "solve_ms": day.solve_ms,
        "solver_iterations": day.iterations,
        "block_ms": day.block_ms,
    })
}

fn total(days: &[DayResult], audit: &str, replay: &ReplayCommand) -> Value {
    let sorted = |of: fn(&DayResult) -> f64| {
        let mut values: Vec<f64> = days.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let quantiles = |of: fn(&DayResult) -> f64| {
        let values = sorted(of);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        json!({"p50": at(0.5), "p99": at(0.99), "max": at(1.0)})
    };
    let mean = |of: fn(&DayResult) -> f64| sorted(of).iter().sum::<f64>() / days.len() as f64;
    json!({
        "batches": days.len(),
        "verified": days.iter().filter(|day| day.violation.is_none()).count(),
        "solved_to_epsilon_mu": days.iter().filter(|day| day.full).count(),
        "epsilon": replay.epsilon.to_string(),
        "mu": replay.mu.to_string(),
        "offers": days.iter().map(|day| day.offers).sum::<usize>(),
        "fills": days.iter().map(|day| day.fills).sum::<usize>(),
        "resting_at_the_end": days.last().map_or(0, |day| day.resting),
        "volume_usd": format!("{:.0}", days.iter().map(|day| day.volume).sum::<f64>()),
        "unrealized_utility_ratio": {"mean": mean(|day| day.utility), "max": sorted(|day| day.utility).last()},
        "price_deviation": {"median": quantiles(|day| day.deviation.0)["p50"],
            "worst": sorted(|day| day.deviation.1).last()},
        "solve_ms": quantiles(|day| day.solve_ms),
        "block_ms": quantiles(|day| day.block_ms),
        "signatures": if replay.signed { "signed and checked" } else { "not signed; use --signed" },
        "threads": rayon::current_num_threads(),
        "conservation": audit,
    })
}
