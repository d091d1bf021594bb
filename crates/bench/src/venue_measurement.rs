//! What the measurement of a venue is asked: its flow, its pipeline alone, or files for another engine.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use primitives::venue::Delay;

use crate::flow::{FlowEvent, FlowParameters, from_itch};
use crate::measurement::{BenchFolder, BenchResult, BenchShown, BenchSteps, Measurement, count, of_file};
use crate::paper::exhibit::ExhibitError;
use crate::venue::{self, VenueBenchOptions};
use crate::venue_latency::LatencyOptions;
use crate::venue_memory;
use crate::venue_pipeline::{self, PipelineOptions};

/// The root of a venue: orders a second, its journal against the disk, signatures, a Soup session, market data.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench venue --json
  walras-lab bench venue --latency --picture latency.svg
  walras-lab bench venue --file 01302020.NASDAQ_ITCH50 --security AAPL   # orders of a day instead of a drawn flow")]
pub struct VenueArgs {
    /// Arrivals of a drawn flow.
    #[arg(long, default_value_t = 200_000)]
    arrivals: usize,
    /// A file of framed ITCH 5.0 messages, whose orders are replayed.
    #[arg(long)]
    file: Option<PathBuf>,
    /// With --file: the security; the first one that has orders by default.
    #[arg(long, requires = "file")]
    security: Option<String>,
    /// Arrivals of a step: what waits when the disk is ready.
    #[arg(long, default_value_t = 256, value_parser = count(1..=4_096))]
    batch: usize,
    /// Round trips over each socket in a run.
    #[arg(long, default_value_t = 5_000)]
    trips: usize,
    /// Runs; medians are reported.
    #[arg(long, default_value_t = 5, value_parser = count(1..))]
    runs: usize,
    #[command(flatten)]
    folder: BenchFolder,
    /// Only risk, engine and journal, with the commands that --flow writes.
    #[arg(long, conflicts_with = "file")]
    pipeline: bool,
    /// Write the commands of --pipeline into flow.txt in this folder, for another engine, and measure nothing.
    #[arg(long, requires = "pipeline")]
    flow: Option<PathBuf>,
    /// Only memory: so many orders rest, of a tenth as many traders.
    #[arg(long, conflicts_with_all = ["file", "pipeline"], value_parser = count(10..=10_000_000))]
    resting: Option<usize>,
    /// Only latency: orders over OUCH, FIX, HTTP and WebSocket at a tenth, half and four fifths of the highest rate.
    #[arg(long, conflicts_with_all = ["file", "pipeline", "resting"])]
    latency: bool,
    /// With --latency: seconds of each rate.
    #[arg(long, default_value_t = 5, requires = "latency", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// With --latency: a file for the picture of the distributions (SVG).
    #[arg(long, requires = "latency")]
    picture: Option<PathBuf>,
}

impl Measurement for VenueArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        let VenueArgs { arrivals, file, security, batch, trips, runs, folder, .. } = self;
        let VenueArgs { pipeline, flow, resting, latency, seconds, picture, .. } = self;
        if latency {
            let (time, delay) = (Duration::from_secs(seconds), Delay { heights: 128, ms: 4_000 });
            let options = LatencyOptions { time, orders: 40_000, traders: 128, delay, picture };
            return folder.with(|folder| crate::venue_latency::run(&options, folder, say));
        }
        if let Some(path) = flow.map(|into| into.join("flow.txt")) {
            let file = File::create(&path).map_err(of_file(&path))?;
            venue_pipeline::write_flow(arrivals, &mut BufWriter::new(file)).map_err(of_file(&path))?;
            return Ok(BenchShown::Files(vec![path]));
        }
        if let Some(resting) = resting.map(|resting| resting as u32) {
            return folder.with(|folder| venue_memory::run(resting, resting / 10, folder, say));
        }
        if pipeline {
            let options = PipelineOptions { arrivals, batch, runs };
            return folder.with(|folder| venue_pipeline::run(&options, folder, say));
        }
        let flow = FlowParameters::default();
        let replayed = file.map(|file| replayed(&file, security.as_deref(), flow.owners)).transpose()?;
        let options = VenueBenchOptions { flow, arrivals, replayed, batch, trips, runs };
        folder.with(|folder| venue::run(&options, folder, say))
    }
}

/// The orders of a file of ITCH 5.0 messages.
fn replayed(file: &Path, security: Option<&str>, owners: u32) -> Result<Vec<FlowEvent>, ExhibitError> {
    let bytes = std::fs::read(file).map_err(of_file(file))?;
    let padded = |text: &str| {
        let mut symbol = [b' '; 8];
        let place = symbol.get_mut(..text.len());
        place
            .ok_or(format!("--security {text}: a symbol has at most eight characters"))?
            .copy_from_slice(text.as_bytes());
        Ok::<_, String>(symbol)
    };
    let security = security.map(padded).transpose()?;
    from_itch(&bytes, security, owners).map_err(|what| format!("{}: {what}", file.display()).into())
}
