//! The root of a venue: orders a second with its journal on a disk, and the journal against the bare disk; signed
//! orders, alone and in lists, against what signatures cost. Then a Soup round trip against a bare socket, and the
//! encoding of market data against the engine. The load is a flow of orders ([`crate::flow`]), drawn or from a file.
//!
//! The chain is played: after so many orders comes a block that settles everything, so that matching never pauses.

use std::path::Path;
use std::time::Instant;

use ::venue::{MarketEvent, VenueEffect};
use primitives::venue::{STEP_REPORTS_RULES, SignedOrder};
use serde_json::{Value, json};
use store::{RealDisk, Store};

use crate::flow::{FlowEvent, FlowParameters, hawkes};
use crate::scaling::median;
pub use crate::venue_ahead::VenueBenchError;
use crate::venue_ahead::trade_ahead;
pub(crate) use crate::venue_ahead::{STEPS_OF_BLOCK, inputs};
use crate::venue_feed::encoded;
use crate::venue_lists::{ListTimes, ladders};
use crate::venue_wire::{RoundTrips, round_trips};
use crate::venue_world::{VenueWorld, check, sign};

/// What to measure.
#[derive(Clone, Debug)]
pub struct VenueBenchOptions {
    /// The flow's parameters.
    pub flow: FlowParameters,
    /// Arrivals of a run.
    pub arrivals: usize,
    /// Arrivals instead of a drawn flow, from a file.
    pub replayed: Option<Vec<FlowEvent>>,
    /// Arrivals of a step: what waits when the disk is ready.
    pub batch: usize,
    /// Round trips of a run.
    pub trips: usize,
    /// Runs; medians are reported.
    pub runs: usize,
}

/// Times of one run, in seconds.
pub(crate) struct Turn {
    /// Of the signatures alone.
    check: f64,
    /// Of the root alone, if nothing needs to be checked.
    pub step: f64,
    /// The same where each report has a signature of its own.
    singles: f64,
    /// From the first signature until the last step, while another thread checks ahead of the root.
    signed: f64,
    pub records: u64,
    bytes: u64,
    pub refused: u64,
    pub fills: u64,
    /// Lots that traded.
    pub lots: u64,
    events: Vec<VenueEffect>,
}

/// Runs everything in turns; `say` is called with each step. The journals are made below `directory`.
///
/// # Errors
/// [`VenueBenchError`].
///
/// # Panics
/// If no run is asked for.
pub fn run(options: &VenueBenchOptions, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, VenueBenchError> {
    let drawn = || hawkes(options.flow, options.arrivals, 1);
    let flow = options.replayed.clone().unwrap_or_else(drawn);
    if flow.is_empty() {
        return Err(VenueBenchError::Empty);
    }
    say("signing orders");
    let of_block = options.batch * STEPS_OF_BLOCK;
    let orders = sign(&flow, 0, |at| VenueWorld::<RealDisk>::expiry(at, of_block));
    let signed = orders.iter().flatten().count();
    let owners = flow.iter().map(|event| event.owner + 1).max().unwrap_or(1);
    let (mut turns, mut journal, mut bare, mut feed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut engine = Vec::new();
    let mut trips: Vec<RoundTrips> = Vec::new();
    let mut lists: Vec<ListTimes> = Vec::new();
    for run in 0..options.runs {
        say(&format!("run {} of {}: the root", run + 1, options.runs));
        let folder = directory.join(format!("root-{run}"));
        let mut turn = trade(&flow, &orders, options.batch, owners, &folder)?;
        std::fs::remove_dir_all(&folder)?;
        say(&format!("run {} of {}: the root, with a signature for each report", run + 1, options.runs));
        let world = VenueWorld::under(STEP_REPORTS_RULES - 1, RealDisk::new(&folder)?, owners)?;
        turn.singles = trade_in(world, &flow, &orders, options.batch, &folder)?.step;
        std::fs::remove_dir_all(&folder)?;
        say(&format!("run {} of {}: the root, with signatures checked ahead of it", run + 1, options.runs));
        turn.signed = trade_signed(&flow, &orders, options.batch, owners, &folder)?;
        say(&format!("run {} of {}: the root, with lists of orders checked ahead of it", run + 1, options.runs));
        lists.push(ladders(&flow, options.batch, owners, &folder)?);
        say(&format!("run {} of {}: disk, sockets, market data", run + 1, options.runs));
        let (of_store, of_file) = journals(&turn, &directory.join(format!("journal-{run}")))?;
        journal.push(of_store);
        bare.push(of_file);
        trips.push(round_trips(options.trips)?);
        engine.push(crate::venue_feed::engine(&flow));
        feed.push(encoded(&turn.events));
        std::fs::remove_dir_all(&folder)?;
        turns.push(turn);
    }
    let of = |what: fn(&Turn) -> f64| median(turns.iter().map(what).collect());
    let (check, step) = (of(|turn| turn.check), of(|turn| turn.step));
    let (journal, bare) = (median(journal), median(bare));
    let wire = |what: fn(&RoundTrips) -> f64| median(trips.iter().map(what).collect());
    let (soup, echo) = (wire(|of| of.soup_us), wire(|of| of.echo_us));
    let (engine, feed) = (median(engine), median(feed));
    let arrivals = flow.len() as f64;
    let of_lists = |what: fn(&ListTimes) -> f64| median(lists.iter().map(what).collect());
    let first = &turns[0];
    let source = options.replayed.as_ref().map_or_else(|| options.flow.to_json(), |_| json!("replayed"));
    Ok(json!({
        "flow": source, "arrivals": flow.len(), "signed_orders": signed, "batch": options.batch, "runs": options.runs,
        "fills": first.fills, "refused": first.refused, "records": first.records, "journal_bytes": first.bytes,
        "commands_per_second": arrivals / step,
        "single_reports_commands_per_second": arrivals / of(|turn| turn.singles),
        "steps_over_single_reports": of(|turn| turn.singles) / step,
        "checked_commands_per_second": arrivals / of(|turn| turn.signed),
        "signature_limit_per_second": signed as f64 / check,
        "engine_commands_per_second": 1e9 / engine, "feed_events_per_second": 1e9 / feed,
        "soup_us": soup, "echo_us": echo,
        "journal_over_disk": bar(bare / journal, 0.9, true),
        "signed_over_signature_limit": bar(check / of(|turn| turn.signed), 0.8, true),
        "signed_on_one_thread_over_signature_limit": check / (check + step),
        "list_orders_per_second": of_lists(|of| of.orders / of.lists),
        "lists_over_signature_limit": bar(of_lists(|of| of.check / of.lists), 8.0, true),
        "ladder_singles_over_signature_limit": of_lists(|of| of.check / of.singles),
        "list_refused": lists[0].refused, "list_fills": lists[0].fills,
        "soup_over_echo": bar(soup / echo, 3.0, false),
        "feed_over_engine": bar(engine / feed, 5.0, true),
    }))
}

pub(crate) fn bar(ratio: f64, bar: f64, is_least: bool) -> Value {
    let holds = if is_least { ratio >= bar } else { ratio <= bar };
    json!({ "ratio": ratio, (if is_least { "least" } else { "most" }): bar, "holds": holds })
}

/// A root takes the flow, with its journal on the disk. The signatures are checked in the same batches, and timed
/// apart.
pub(crate) fn trade(
    flow: &[FlowEvent],
    orders: &[Option<SignedOrder>],
    batch: usize,
    owners: u32,
    folder: &Path,
) -> Result<Turn, VenueBenchError> {
    trade_in(VenueWorld::new(RealDisk::new(folder)?, owners)?, flow, orders, batch, folder)
}

fn trade_in(
    mut world: VenueWorld<RealDisk>,
    flow: &[FlowEvent],
    orders: &[Option<SignedOrder>],
    batch: usize,
    folder: &Path,
) -> Result<Turn, VenueBenchError> {
    let mut turn = Turn {
        check: 0.0,
        step: 0.0,
        singles: 0.0,
        signed: 0.0,
        records: 0,
        bytes: 0,
        refused: 0,
        fills: 0,
        lots: 0,
        events: Vec::new(),
    };
    let (size, records) = (bytes_of(folder)?, world.root().last_record());
    for (at, (events, orders)) in flow.chunks(batch).zip(orders.chunks(batch)).enumerate() {
        let signed: Vec<SignedOrder> = orders.iter().flatten().copied().collect();
        let begun = Instant::now();
        let checked = check(&signed);
        turn.check += begun.elapsed().as_secs_f64();
        let mut inputs = inputs(events, orders, &checked, at * batch);
        if at % STEPS_OF_BLOCK == STEPS_OF_BLOCK - 1 {
            inputs.push(world.next_block());
        }
        let begun = Instant::now();
        let effects = world.step(&inputs)?;
        turn.step += begun.elapsed().as_secs_f64();
        turn.lots += effects.iter().map(traded).sum::<u64>();
        turn.events.extend(effects.into_iter().filter(|effect| matches!(effect, VenueEffect::Market(..))));
    }
    turn.records = world.root().last_record() - records;
    turn.bytes = bytes_of(folder)? - size;
    (turn.refused, turn.fills) = (world.refused, world.root().counts().0);
    Ok(turn)
}

/// A root takes the flow as in [`trade`], while another thread checks signatures ahead of it, as gateways do. Returns
/// how long all of it took.
fn trade_signed(
    flow: &[FlowEvent],
    orders: &[Option<SignedOrder>],
    batch: usize,
    owners: u32,
    folder: &Path,
) -> Result<f64, VenueBenchError> {
    let batches = flow.chunks(batch).zip(orders.chunks(batch)).enumerate();
    let checked = batches.map(|(at, (events, orders))| {
        let signed: Vec<SignedOrder> = orders.iter().flatten().copied().collect();
        inputs(events, orders, &check(&signed), at * batch)
    });
    trade_ahead(&mut VenueWorld::new(RealDisk::new(folder)?, owners)?, checked)
}

/// Lots of the fill that an effect tells of, once.
pub(crate) fn traded(effect: &VenueEffect) -> u64 {
    match effect {
        VenueEffect::Market(_, _, MarketEvent::Executed { lots, .. }) => u64::from(*lots),
        _ => 0,
    }
}

pub(crate) fn bytes_of(folder: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

/// Seconds of a journal of as many records of the same size, by the store and by a bare file, in turns.
fn journals(turn: &Turn, folder: &Path) -> Result<(f64, f64), VenueBenchError> {
    use std::io::Write;
    let size = (turn.bytes / turn.records.max(1)).max(2) as usize;
    let (record, outcome) = (vec![7; size - size / 4], vec![8; size / 4]);
    let (mut store, _) = Store::open(RealDisk::new(folder.join("store"))?, store::Options::default())?;
    let mut file = std::fs::File::create(folder.join("bare"))?;
    let (mut of_store, mut of_file) = (0.0, 0.0);
    for number in 1..=turn.records {
        let begun = Instant::now();
        store.append(number, &record)?;
        store.append_receipts(number, &outcome)?;
        store.sync()?;
        of_store += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        file.write_all(&record)?;
        file.write_all(&outcome)?;
        file.sync_data()?;
        of_file += begun.elapsed().as_secs_f64();
    }
    drop((store, file));
    std::fs::remove_dir_all(folder)?;
    Ok((of_store, of_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_venue_bench_trades_and_compares() {
        let directory = tempfile::tempdir().expect("a folder");
        let options = VenueBenchOptions {
            flow: FlowParameters { owners: 8, ..FlowParameters::default() },
            arrivals: 600,
            replayed: None,
            batch: 50,
            trips: 20,
            runs: 1,
        };
        let figures = run(&options, directory.path(), &mut |_| {}).expect("it runs");
        assert!(figures["fills"].as_u64().is_some_and(|fills| fills > 10), "{figures}");
        // Cancels of what has traded are refused, and little else.
        let refused = figures["refused"].as_u64().expect("a number");
        assert!(refused < 300, "{figures}");
        let fills = figures["list_fills"].as_u64().expect("a number");
        assert!(fills > 10 && figures["list_refused"].as_u64().is_some_and(|refused| refused < 100), "{figures}");
        for name in [
            "lists_over_signature_limit",
            "journal_over_disk",
            "signed_over_signature_limit",
            "soup_over_echo",
            "feed_over_engine",
        ] {
            assert!(figures[name]["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{figures}");
        }
    }
}
