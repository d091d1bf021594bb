//! Risk, engine and journal of a venue's root, without signatures of orders, sockets and market data. It is compared
//! with the pipeline of another engine, which gets the same commands. Beside it, in the same run, stand the same root
//! whose steps do not overlap, and a plain loop that only matches, and writes and syncs as many bytes.
//!
//! The flow is drawn ([`crate::flow`]) and then changed so that both engines do the same with it. An owner only buys or
//! only sells, so that nobody meets an own order. A replacement keeps the size and changes the price, as a move does.
//! No order expires.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use ::matching::Side;
use ::venue::{VenueEffect, VenueInput};
use primitives::venue::SignedOrder;
use serde_json::{Value, json};
use store::RealDisk;

use crate::flow::{FlowAction, FlowEvent, FlowParameters, hawkes};
use crate::scaling::median;
use crate::venue::{STEPS_OF_BLOCK, VenueBenchError, bar, bytes_of, inputs, traded};
use crate::venue_feed::{book, commands};
use crate::venue_world::{VenueWorld, check, sign};

/// Traders: so many that none of them has too many filled orders.
const OWNERS: u32 = 1_024;
/// The last height of every order.
const EXPIRY: u64 = 80_000;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct PipelineOptions {
    /// Commands.
    pub arrivals: usize,
    /// Commands of a step, which has one sync.
    pub batch: usize,
    /// Runs; medians are reported.
    pub runs: usize,
}

/// What an order was when it arrived, or after its last replacement.
#[derive(Clone, Copy)]
struct Known {
    /// The position at which it arrived first.
    first: usize,
    side: Side,
    tick: u32,
    lots: u32,
}

/// The commands, and for each of them the order that it is about.
fn flow(arrivals: usize) -> (Vec<FlowEvent>, Vec<usize>) {
    let mut events = hawkes(FlowParameters { owners: OWNERS, ..FlowParameters::default() }, arrivals, 1);
    let mut known: Vec<Known> = Vec::with_capacity(events.len());
    for (first, event) in events.iter_mut().enumerate() {
        let of = match &mut event.action {
            FlowAction::Rest(side, tick, lots) | FlowAction::Take(side, tick, lots) => {
                Known { first, side: *side, tick: *tick, lots: *lots }
            }
            FlowAction::Cancel(of) => known[*of],
            FlowAction::Replace(of, tick, lots) => {
                let before = known[*of];
                *lots = before.lots;
                if *tick == before.tick {
                    *tick = if before.side == Side::Buy { *tick - 1 } else { *tick + 1 };
                }
                Known { tick: *tick, ..before }
            }
        };
        event.owner = event.owner & !1 | u32::from(of.side == Side::Sell);
        known.push(of);
    }
    let first = known.iter().map(|of| of.first).collect();
    (events, first)
}

/// Writes the commands for another engine: `N owner order B|S tick lots R|I` is a new order that rests or not,
/// `R owner order tick` moves one, and `C owner order` cancels it.
///
/// # Errors
/// Those of `out`.
pub fn write_flow(arrivals: usize, out: &mut impl Write) -> io::Result<()> {
    let (events, orders) = flow(arrivals);
    for (FlowEvent { owner, action, .. }, order) in events.iter().zip(orders) {
        let letter = |side: Side| if side == Side::Buy { 'B' } else { 'S' };
        let order = order + 1;
        match *action {
            FlowAction::Rest(side, tick, lots) => writeln!(out, "N {owner} {order} {} {tick} {lots} R", letter(side))?,
            FlowAction::Take(side, tick, lots) => writeln!(out, "N {owner} {order} {} {tick} {lots} I", letter(side))?,
            FlowAction::Replace(_, tick, _) => writeln!(out, "R {owner} {order} {tick}")?,
            FlowAction::Cancel(_) => writeln!(out, "C {owner} {order}")?,
        }
    }
    Ok(())
}

/// Runs the root over the flow. Signatures of orders are checked before, and not timed; reports of fills are signed
/// within the step, as always.
///
/// # Errors
/// [`VenueBenchError`].
///
/// # Panics
/// If no run is asked for.
pub fn run(options: &PipelineOptions, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, VenueBenchError> {
    let (flow, _) = flow(options.arrivals);
    if flow.is_empty() {
        return Err(VenueBenchError::Empty);
    }
    say("signing orders");
    let orders = sign(&flow, 0, |_| EXPIRY);
    let steps = steps(&flow, &orders, options.batch);
    let (mut times, mut alone, mut plain, mut last) = (Vec::new(), Vec::new(), Vec::new(), None);
    for run in 0..options.runs {
        say(&format!("run {} of {}", run + 1, options.runs));
        let folder = directory.join(format!("pipeline-{run}"));
        alone.push(trade(&steps, &folder, false)?.time * 1e9 / flow.len() as f64);
        std::fs::remove_dir_all(&folder)?;
        let turn = trade(&steps, &folder, true)?;
        times.push(turn.time * 1e9 / flow.len() as f64);
        let bytes = bytes_of(&folder)?;
        std::fs::remove_dir_all(&folder)?;
        plain.push(plain_loop(&flow, options.batch, bytes, &directory.join("plain"))?);
        last = Some((turn, bytes));
    }
    let (turn, bytes) = last.expect("there is a run");
    let (time, alone, plain) = (median(times), median(alone), median(plain));
    Ok(json!({
        "commands": flow.len(), "batch": options.batch, "runs": options.runs, "ns_per_command": time,
        "one_stage_ns_per_command": alone, "one_stage_over_two": alone / time,
        "plain_loop_ns_per_command": plain, "over_plain_loop": bar(plain / time, 0.6, true),
        "traded_lots": turn.lots, "fills": turn.fills, "refused": turn.refused, "syncs": turn.records,
        "journal_bytes": bytes,
    }))
}

/// Commands of a step each, of orders whose signatures are checked.
fn steps(flow: &[FlowEvent], orders: &[Option<SignedOrder>], batch: usize) -> Vec<Vec<VenueInput>> {
    let chunks = flow.chunks(batch).zip(orders.chunks(batch)).enumerate();
    let step = |(at, (events, orders)): (usize, (&[FlowEvent], &[Option<SignedOrder>]))| {
        let signed: Vec<SignedOrder> = orders.iter().flatten().copied().collect();
        inputs(events, orders, &check(&signed), at * batch)
    };
    chunks.map(step).collect()
}

/// What a root did with the steps.
struct PipelineTurn {
    /// Seconds.
    time: f64,
    lots: u64,
    fills: u64,
    refused: u64,
    records: u64,
}

/// A root takes the steps, with its journal on the disk: one after the other, or each while the one before is written.
fn trade(steps: &[Vec<VenueInput>], folder: &Path, overlaps: bool) -> Result<PipelineTurn, VenueBenchError> {
    let mut world = VenueWorld::new(RealDisk::new(folder)?, OWNERS)?;
    let records = world.root().last_record();
    let mut steps = steps.to_vec();
    let mut lots = 0;
    let mut see = |effects: Vec<VenueEffect>| lots += effects.iter().map(traded).sum::<u64>();
    let begun = Instant::now();
    for (at, step) in steps.iter_mut().enumerate() {
        if at % STEPS_OF_BLOCK == STEPS_OF_BLOCK - 1 {
            step.push(world.next_block());
        }
        see(if overlaps { world.begin(step)? } else { world.step(step)? });
    }
    see(world.finish()?);
    let time = begun.elapsed().as_secs_f64();
    let (fills, refused, records) = (world.root().counts().0, world.refused, world.root().last_record() - records);
    Ok(PipelineTurn { time, lots, fills, refused, records })
}

/// Nanoseconds a command of a loop that matches a step, writes its share of so many bytes, and syncs them.
fn plain_loop(flow: &[FlowEvent], batch: usize, bytes: u64, path: &Path) -> Result<f64, VenueBenchError> {
    let (mut book, commands) = (book(flow), commands(flow));
    let record = vec![7; bytes as usize * batch / flow.len()];
    let mut file = std::fs::File::create(path)?;
    let begun = Instant::now();
    for step in commands.chunks(batch) {
        step.iter().for_each(|command| book.apply(command, &mut ()));
        file.write_all(&record)?;
        file.sync_data()?;
    }
    let time = begun.elapsed().as_nanos() as f64 / flow.len() as f64;
    drop(file);
    std::fs::remove_file(path)?;
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipelines_flow_is_the_same_for_both_engines() {
        let mut text = Vec::new();
        write_flow(2_000, &mut text).expect("memory");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text.lines().count(), 2_000);
        let mut sides = std::collections::BTreeMap::new();
        let mut orders = std::collections::BTreeMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (owner, order) = (words[1], words[2]);
            if words[0] == "N" {
                assert_eq!(*sides.entry(owner).or_insert(words[3]), words[3], "an owner buys or sells");
                assert_eq!(orders.insert(order, (owner, words[4])), None);
            } else {
                let of = orders.get_mut(order).expect("an order is placed before");
                assert_eq!(of.0, owner);
                if words[0] == "R" {
                    assert_ne!(of.1, words[3], "a replacement changes the price");
                    of.1 = words[3];
                }
            }
        }
        let directory = tempfile::tempdir().expect("a folder");
        let options = PipelineOptions { arrivals: 2_000, batch: 64, runs: 1 };
        let figures = run(&options, directory.path(), &mut |_| {}).expect("it runs");
        assert!(figures["traded_lots"].as_u64().is_some_and(|lots| lots > 100), "{figures}");
        assert_eq!(figures["syncs"], 2_000_u64.div_ceil(64), "{figures}");
    }
}
