//! The matching engine alone: a steady book of a given depth under a mix of new orders, cancels, replaces and orders
//! that trade. Clients name orders by their references, so each look-up is part of what is timed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use ::matching::{Book, BookEvent, BookLimits, Command, NewOrder, Replacement, SelfTrade, Side, Sink, TimeInForce};
use kernel::Dice;
use serde_json::{Value, json};

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count, of_file};
use crate::scaling::median;

/// Where resting orders are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FlowPrices {
    /// Most are near the middle: each doubling of the distance has half as many, so the best levels are long.
    Near,
    /// Evenly over as many ticks as there are orders: a level has one order or none, which suits a book whose look-up
    /// walks along a level.
    Wide,
}

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct MatchingOptions {
    /// Where resting orders are.
    #[arg(long, value_enum, default_value = "near")]
    pub prices: FlowPrices,
    /// Resting orders of the book.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000usize, 20_000, 500_000])]
    pub depths: Vec<usize>,
    /// Commands of a run.
    #[arg(long, default_value_t = 2_000_000)]
    pub commands: usize,
    /// Runs of each depth; medians are reported.
    #[arg(long, default_value_t = 5, value_parser = count(1..))]
    pub runs: usize,
}

/// The matching engine alone: a steady book under a mix of commands.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  walras-lab bench matching --json")]
pub struct MatchingArgs {
    #[command(flatten)]
    options: MatchingOptions,
    /// Write the commands of each depth into this folder for another engine, and measure nothing.
    #[arg(long)]
    flow: Option<PathBuf>,
}

impl Measurement for MatchingArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        let MatchingOptions { prices, commands, .. } = self.options;
        let Some(folder) = self.flow else { return Ok(BenchShown::Figures(run(&self.options, say))) };
        let written = self.options.depths.iter().map(|&depth| {
            let path = folder.join(format!("flow-{depth}.txt"));
            let file = File::create(&path).map_err(of_file(&path))?;
            write_flow(prices, depth, commands, &mut BufWriter::new(file)).map_err(of_file(&path))?;
            Ok(path)
        });
        written.collect::<Result<_, _>>().map(BenchShown::Files)
    }
}

/// The middle of the market.
const MIDDLE: u32 = 30_000;
/// Half of them buy and half sell: nobody meets an order of their own, which engines treat differently.
const OWNERS: u32 = 64;
/// Most ticks between a resting order and the middle.
const WIDEST: u64 = 20_000;

/// Runs everything; `say` is called with each step.
///
/// # Panics
/// If no depth or no run is asked for.
pub fn run(options: &MatchingOptions, say: &mut dyn FnMut(&str)) -> Value {
    let rows: Vec<Value> = options
        .depths
        .iter()
        .map(|depth| {
            say(&format!("a book of {depth} orders"));
            row(*depth, options)
        })
        .collect();
    json!({ "commands": options.commands, "rows": rows })
}

fn limits(depth: usize) -> BookLimits {
    let orders = (depth as u32 * 2).max(1 << 10);
    BookLimits { orders, owners: OWNERS, orders_of_owner: orders, ..BookLimits::default() }
}

/// Which orders are open, as a client would know it.
#[derive(Default)]
struct Open {
    all: Vec<(u32, u32)>,
    places: std::collections::HashMap<(u32, u32), usize>,
    trades: usize,
}

impl Open {
    fn remove(&mut self, owner: u32, reference: u32) {
        if let Some(at) = self.places.remove(&(owner, reference)) {
            self.all.swap_remove(at);
            if let Some(moved) = self.all.get(at) {
                self.places.insert(*moved, at);
            }
        }
    }

    fn insert(&mut self, owner: u32, reference: u32) {
        self.places.insert((owner, reference), self.all.len());
        self.all.push((owner, reference));
    }
}

impl Sink for Open {
    fn event(&mut self, event: BookEvent) {
        match event {
            BookEvent::Accepted { party, .. } => self.insert(party.owner, party.reference),
            BookEvent::Cancelled { party, .. } => self.remove(party.owner, party.reference),
            BookEvent::Executed { maker, taker, maker_left, taker_left, .. } => {
                self.trades += 1;
                for (party, left) in [(maker, maker_left), (taker, taker_left)] {
                    if left == 0 {
                        self.remove(party.owner, party.reference);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A book of a depth, and the commands that keep it there.
struct Flow {
    /// The orders that fill the book.
    orders: Vec<Command>,
    book: Book,
    commands: Vec<Command>,
    trades: usize,
}

fn flow(prices: FlowPrices, depth: usize, commands: usize) -> Flow {
    let most = match prices {
        FlowPrices::Near => None,
        FlowPrices::Wide => Some((depth as u64).clamp(1, WIDEST)),
    };
    let mut random = Dice::new(depth as u64);
    let mut book = Book::new(limits(depth), 7).expect("sound limits");
    let (mut open, mut all, mut reference) = (Open::default(), Vec::with_capacity(commands), 0);
    let mut orders = Vec::with_capacity(depth);
    while open.all.len() < depth {
        reference += 1;
        let order = Command::New(passive(&mut random, most, reference));
        book.apply(&order, &mut open);
        orders.push(order);
    }
    let full = book.clone();
    open.trades = 0;
    while all.len() < commands {
        reference += 1;
        let one = |random: &mut Dice, open: &Open| open.all[random.below(open.all.len() as u64) as usize];
        let command = match random.below(100) {
            0..4 => Command::New(aggressive(&mut random, most, reference)),
            4..10 => {
                let (owner, reference) = one(&mut random, &open);
                let NewOrder { tick, lots, .. } = passive(&mut random, most, 0);
                Command::Replace(Replacement { owner, reference, new_reference: reference, tick, lots })
            }
            _ if open.all.len() < depth => Command::New(passive(&mut random, most, reference)),
            _ => {
                let (owner, reference) = one(&mut random, &open);
                Command::Cancel { owner, reference }
            }
        };
        book.apply(&command, &mut open);
        all.push(command);
    }
    Flow { orders, book: full, commands: all, trades: open.trades }
}

/// Writes the commands of a depth for another engine: the orders that fill the book, a line `-`, and the commands.
/// `N owner reference B|S tick lots R|I` is a new order that rests or not, `C owner reference` cancels, and
/// `R owner reference tick lots` replaces.
///
/// # Errors
/// Those of `out`.
pub fn write_flow(prices: FlowPrices, depth: usize, commands: usize, out: &mut impl Write) -> io::Result<()> {
    let flow = flow(prices, depth, commands);
    flow.orders.iter().try_for_each(|command| write_command(command, out))?;
    writeln!(out, "-")?;
    flow.commands.iter().try_for_each(|command| write_command(command, out))
}

fn write_command(command: &Command, out: &mut impl Write) -> io::Result<()> {
    match command {
        Command::New(NewOrder { owner, reference, side, tick, lots, time_in_force, .. }) => {
            let side = if *side == Side::Buy { 'B' } else { 'S' };
            let rests = if *time_in_force == TimeInForce::ImmediateOrCancel { 'I' } else { 'R' };
            writeln!(out, "N {owner} {reference} {side} {tick} {lots} {rests}")
        }
        Command::Cancel { owner, reference } => writeln!(out, "C {owner} {reference}"),
        Command::Replace(Replacement { owner, reference, tick, lots, .. }) => {
            writeln!(out, "R {owner} {reference} {tick} {lots}")
        }
        other => unreachable!("a flow has no {other:?}"),
    }
}

/// An order that rests: evenly up to `most` ticks from the middle, or mostly near it.
fn passive(random: &mut Dice, most: Option<u64>, reference: u32) -> NewOrder {
    let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
    let distance = 1 + match most {
        Some(most) => random.below(most),
        None => {
            let doublings = 1 + random.below(1 << 16).trailing_zeros().min(9);
            random.below(1 << doublings)
        }
    } as u32;
    let tick = if side == Side::Buy { MIDDLE - distance } else { MIDDLE + distance };
    NewOrder {
        owner: 2 * random.below(u64::from(OWNERS) / 2) as u32 + u32::from(side == Side::Sell),
        reference,
        side,
        tick,
        lots: 1 + random.below(100) as u32,
        time_in_force: TimeInForce::GoodTillCancelled,
        post_only: false,
        self_trade: SelfTrade::ExpireMaker,
    }
}

fn aggressive(random: &mut Dice, most: Option<u64>, reference: u32) -> NewOrder {
    let new = passive(random, most, reference);
    let tick = if new.side == Side::Buy { MIDDLE + 16 } else { MIDDLE - 16 };
    NewOrder { tick, time_in_force: TimeInForce::ImmediateOrCancel, ..new }
}

fn row(depth: usize, options: &MatchingOptions) -> Value {
    let Flow { book, commands, trades, .. } = flow(options.prices, depth, options.commands);
    let mut totals = Vec::new();
    for _ in 0..options.runs {
        let mut book = book.clone();
        let begun = Instant::now();
        commands.iter().for_each(|command| book.apply(command, &mut ()));
        totals.push(begun.elapsed().as_nanos() as f64 / commands.len() as f64);
    }
    let ns = median(totals);
    let latencies = latencies(book, &commands);
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    json!({
        "resting": depth,
        "trades_per_command": trades as f64 / commands.len() as f64,
        "ns_per_command": ns,
        "commands_per_second": 1e9 / ns,
        "p50_ns": at(0.5), "p99_ns": at(0.99), "p999_ns": at(0.999), "worst_ns": at(1.0),
    })
}

/// The time of each command, ascending, less what reading the clock costs.
fn latencies(mut book: Book, commands: &[Command]) -> Vec<f64> {
    let mut clock: Vec<f64> = (0..10_001)
        .map(|_| {
            let begun = Instant::now();
            begun.elapsed().as_nanos() as f64
        })
        .collect();
    clock.sort_by(f64::total_cmp);
    let cost = clock[clock.len() / 2];
    let mut all: Vec<f64> = commands
        .iter()
        .map(|command| {
            let begun = Instant::now();
            book.apply(command, &mut ());
            (begun.elapsed().as_nanos() as f64 - cost).max(0.0)
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another engine replays is what ours is timed with.
    #[test]
    fn a_written_flow_has_every_command_in_its_order() {
        let mut text = Vec::new();
        write_flow(FlowPrices::Near, 50, 200, &mut text).expect("memory");
        let text = String::from_utf8(text).expect("text");
        let (orders, commands) = text.split_once("-\n").expect("two parts");
        let flow = flow(FlowPrices::Near, 50, 200);
        assert_eq!((orders.lines().count(), commands.lines().count()), (flow.orders.len(), 200));
        for (line, command) in commands.lines().zip(&flow.commands) {
            let kind = match command {
                Command::New(_) => "N ",
                Command::Cancel { .. } => "C ",
                _ => "R ",
            };
            assert!(line.starts_with(kind), "{line} {command:?}");
        }
    }

    #[test]
    fn the_matching_bench_keeps_its_depth_and_trades() {
        for prices in [FlowPrices::Near, FlowPrices::Wide] {
            let options = MatchingOptions { prices, depths: vec![500], commands: 5_000, runs: 1 };
            let figures = run(&options, &mut |_| {});
            let row = &figures["rows"][0];
            assert!(row["trades_per_command"].as_f64().is_some_and(|trades| trades > 0.01), "{row}");
            assert!(row["ns_per_command"].as_f64().is_some_and(|ns| ns > 0.0), "{row}");
        }
    }
}
