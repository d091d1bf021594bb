//! How long an order takes at a venue: from its bytes at the socket until its acceptance and its execution are told.
//!
//! A node, its venue and all traders share this machine; the whole product runs: doors, signatures, journal, fills that
//! settle in blocks. Each order is signed, or entered into a bridge that signs, and takes a lot of one that rests. At
//! first a window of orders in flight finds the highest rate of a way, which waits while half a backlog is unsettled:
//! so it is a rate that blocks keep up with. Then orders come at shares of it by a clock that waits for nobody. Each is
//! timed from the moment at which it was due, so what a late order delays counts.
//!
//! It is done with files on a disk, and with files in memory, where nothing is synced. Beside it stand the floors: an
//! echo over a bare socket, and a sync of the disk.

mod heard;
mod market;
mod ways;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use primitives::venue::Delay;
use serde_json::{Value, json};

use crate::exchange::Error;
use crate::paper::chart::{Chart, ChartPlot};
use crate::venue_wire::echoes;
use heard::{Heard, Latencies};
use market::Market;
use ways::{Line, Way};

/// What to measure.
#[derive(Clone, Debug)]
pub(crate) struct LatencyOptions {
    /// How long each rate lasts.
    pub time: Duration,
    /// Orders that find the highest rate.
    pub orders: usize,
    /// Traders of each way, each with a connection; half of them over FIX, whose bridges run here, too.
    pub traders: usize,
    /// How late a settle may be. Matching pauses after half of it; and what an order leaves behind, of which a key has
    /// few, lasts as long.
    pub delay: Delay,
    /// Where a picture of the distributions goes.
    pub picture: Option<PathBuf>,
}

/// Shares of the highest rate, in percent.
const SHARES: [u32; 3] = [10, 50, 80];
/// Orders in flight of a trader, while the highest rate is found.
const IN_FLIGHT: usize = 8;
/// Fills that are unsettled at most while the highest rate is found: about half of what two settles hold.
const UNSETTLED: u64 = 4_000;
/// Without any answer for so long, a measurement ends.
const SILENCE: Duration = Duration::from_secs(60);
/// Bytes that are synced where a floor is measured: about a step's record of the journal.
const SYNCED: usize = 1 << 10;
const FLOORS: usize = 1_000;
/// Linux keeps these files in memory.
const MEMORY: &str = "/dev/shm";

/// Measures all ways, with files below `directory` and in memory.
///
/// # Errors
/// If a node, a venue or a connection fails, or an order is refused.
pub(crate) fn run(options: &LatencyOptions, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
    let mut rows = Vec::new();
    let mut figures = json!({
        "echo_us": Latencies::of(echoes(FLOORS)?).to_json(),
        "sync_us": Latencies::of(syncs(directory)?).to_json(),
    });
    figures["disk"] = all_ways(options, directory, ("disk", &mut rows), say)?;
    if Path::new(MEMORY).is_dir() {
        let memory = tempfile::tempdir_in(MEMORY)?;
        figures["memory"] = all_ways(options, memory.path(), ("memory", &mut rows), say)?;
    }
    if let Some(path) = &options.picture {
        std::fs::write(path, picture(&rows)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(figures)
}

/// Microseconds of an append and its sync.
fn syncs(directory: &Path) -> Result<Vec<f64>, Error> {
    let mut file = tempfile::tempfile_in(directory)?;
    let mut timed = || -> Result<f64, Error> {
        let begun = Instant::now();
        file.write_all(&[7; SYNCED])?;
        file.sync_data()?;
        Ok(begun.elapsed().as_secs_f64() * 1e6)
    };
    (0..FLOORS).map(|_| timed()).collect()
}

/// A market of its own for each way, so that no way has the unsettled fills of another.
fn all_ways(
    options: &LatencyOptions,
    directory: &Path,
    (files, rows): (&str, &mut Vec<Value>),
    say: &mut dyn FnMut(&str),
) -> Result<Value, Error> {
    let mut figures = json!({});
    for way in Way::ALL {
        say(&format!("{}, files on {files}", way.name()));
        let folder = directory.join(way.name());
        let market = Market::open(&folder, way.traders(options.traders), options.delay)?;
        let measured = one_way(options, way, &market, say);
        market.stop();
        std::fs::remove_dir_all(&folder)?;
        let (value, spreads) = measured?;
        figures[way.name()] = value;
        for (share, spread) in spreads {
            rows.extend(spread.quantiles().map(|(nines, us)| {
                json!({ "nines": nines, "us": us, "which": format!("{} {share} %, {files}", way.name()) })
            }));
        }
    }
    Ok(figures)
}

/// The figures of a way, and its latencies until execution at each share of the highest rate.
type Measured = (Value, Vec<(u32, Latencies)>);

fn one_way(options: &LatencyOptions, way: Way, market: &Market, say: &mut dyn FnMut(&str)) -> Result<Measured, Error> {
    let mut lines = (0..market.traders()).map(|trader| way.connect(market, trader)).collect::<Result<Vec<_>, _>>()?;
    // A way of fewer traders has fewer orders, since a key may leave few entries behind.
    let orders = options.orders * market.traders() / options.traders;
    // What the first orders warm up is not measured.
    drive(market, &mut lines, orders.div_ceil(8), Pace::Window)?;
    let found = drive(market, &mut lines, orders, Pace::Window)?;
    let highest = orders as f64 / found.seconds;
    let (mut figures, mut spreads) = (json!({ "highest_per_second": highest.round() }), Vec::new());
    for share in SHARES {
        let rate = highest * f64::from(share) / 100.0;
        say(&format!("{}: {rate:.0} orders a second", way.name()));
        let orders = ((rate * options.time.as_secs_f64()) as usize).max(market.traders());
        let Driven { accepted, executed, seconds } = drive(market, &mut lines, orders, Pace::Rate(rate))?;
        figures[format!("at_{share}_percent")] = json!({
            "orders": orders,
            "per_second": (orders as f64 / seconds).round(),
            "accepted_us": accepted.to_json(),
            "executed_us": executed.to_json(),
        });
        spreads.push((share, executed));
    }
    Ok((figures, spreads))
}

/// When orders are sent.
#[derive(Clone, Copy)]
enum Pace {
    /// As long as few are in flight.
    Window,
    /// So many a second, whatever becomes of those before.
    Rate(f64),
}

impl Pace {
    /// Orders that are signed ahead: those of a tenth of a second.
    fn ahead(self) -> usize {
        match self {
            Pace::Window => 256,
            Pace::Rate(rate) => (rate / 10.0) as usize + 1,
        }
    }
}

/// What came of some orders.
struct Driven {
    accepted: Latencies,
    executed: Latencies,
    seconds: f64,
}

/// Sends so many orders over all lines in turn, and waits until all are executed. They are signed as late as can be, or
/// their lives would have to be long.
fn drive(market: &Market, lines: &mut [Line], orders: usize, pace: Pace) -> Result<Driven, Error> {
    market.until_few_unsettled()?;
    market.refill()?;
    let heard = Heard::new(market.references(orders), orders);
    let (heard, count) = (&heard, lines.len());
    let (mut encoders, mut senders) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut due = Vec::with_capacity(orders);
    std::thread::scope(|scope| {
        for Line { encode, send, hear } in lines {
            encoders.push(encode);
            senders.push(send);
            scope.spawn(move || heard.read(hear));
        }
        let (signed, messages) = sync_channel(pace.ahead());
        scope.spawn(move || {
            let message = |order: usize| encoders[order % count](&market.buy(order % count, heard.reference(order)));
            (0..orders).map(message).try_for_each(|message| signed.send(message))
        });
        for (order, message) in messages.iter().enumerate() {
            due.push(match pace {
                Pace::Window => {
                    let is_behind = || market.unsettled() > UNSETTLED && !heard.is_over();
                    while order % IN_FLIGHT == 0 && is_behind() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    heard.until_room(order, count * IN_FLIGHT)
                }
                Pace::Rate(rate) => heard.until((order as f64 / rate * 1e9) as u64),
            });
            heard.check(senders[order % count](&message));
            if heard.is_over() {
                break;
            }
        }
        heard.until_done(SILENCE);
    });
    let seconds = heard.seconds();
    let (accepted, executed) = heard.latencies(&due)?;
    Ok(Driven { accepted, executed, seconds })
}

/// Distributions as traders draw them: nines to the right, microseconds up.
fn picture(rows: &[Value]) -> String {
    let columns = [("1 / (1 - share)", "/nines"), ("µs", "/us"), ("which", "/which")];
    let plot = ChartPlot { x: "1 / (1 - share)", y: "µs", by: &["which"], log: (true, true) };
    let method = "an order from its bytes at the socket until its execution is told";
    let taken = crate::paper::provenance::here();
    let chart = Chart::of(method, &columns, rows);
    crate::paper::picture::svg(("an order until its execution", &taken), &chart, Some(&plot), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_every_way_is_accepted_and_executed() {
        let folder = tempfile::tempdir().expect("a folder");
        let picture = Some(folder.path().join("latency.svg"));
        // However busy the machine is, nothing pauses.
        let delay = Delay { heights: 1_000, ms: 60_000 };
        let options = LatencyOptions { time: Duration::from_millis(50), orders: 40, traders: 4, delay, picture };
        let figures = run(&options, folder.path(), &mut |_| {}).expect("it runs");
        for way in Way::ALL {
            let of = &figures["disk"][way.name()];
            for share in SHARES {
                let at = &of[format!("at_{share}_percent")];
                for what in ["accepted_us", "executed_us"] {
                    assert!(at[what]["p50"].as_f64().is_some_and(|us| us > 0.0), "{} {share}: {of}", way.name());
                }
            }
        }
        let drawn = std::fs::read_to_string(folder.path().join("latency.svg")).expect("drawn");
        assert!(drawn.contains("ouch 50 %, disk"), "{drawn}");
    }
}
