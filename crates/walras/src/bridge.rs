//! `walras bridge`: plain OUCH or FIX on loopback, signed for a venue.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use client::NodeClient;
use pit::bridge::fix::FixSettings;
use pit::bridge::{self, BridgeNews, BridgeSettings, GATHER_US_MAX, ReportSink};
use pit::door::VenueStatusBody;
use primitives::to_hex;
use protocols::fix::FixText;
use tokio::net::TcpListener;
use tokio::sync::watch;
use venue::RequestScope;

use crate::decimal::to_units;
use crate::keystore::{self, Passphrase};
use crate::node_command::StopSignals;

/// How often the venue is asked how it stands.
const ASK: Duration = Duration::from_secs(1);

/// Signs the orders of a program that speaks plain OUCH 5.0 or FIX 4.4, and passes them on to a venue.
#[derive(clap::Args)]
#[command(after_help = "Example, for a program on this machine that connects to 127.0.0.1:9071:
  walras bridge --trading-key alice-trading.json --venue http://127.0.0.1:8070 --ouch 127.0.0.1:8071 \\
    --listen 127.0.0.1:9071 --reports alice-reports.txt

and for an order system that speaks FIX 4.4 as ALICE with WALRAS:
  walras bridge --trading-key alice-trading.json --fix-journal alice-fix --fix-names WALRAS:ALICE \
    --listen 127.0.0.1:9072 --cancel-after 5000 --reports alice-reports.txt

Whoever reaches the address that it listens on trades with the key, within the key's mandate.")]
pub struct BridgeCommand {
    /// Key file of the trading key.
    #[arg(long, value_name = "FILE")]
    trading_key: PathBuf,
    /// Where the venue takes orders over HTTP: its status says what is signed for.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8070")]
    venue: String,
    /// Where the venue takes orders over OUCH.
    #[arg(long, default_value = "127.0.0.1:8071")]
    ouch: SocketAddr,
    /// Where programs connect, on loopback.
    #[arg(long, default_value = "127.0.0.1:9071")]
    listen: SocketAddr,
    /// The session among those of the key, so that several bridges can use one key.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    session: u32,
    /// End open orders when the link to the venue breaks.
    #[arg(long)]
    ends_orders: bool,
    /// End open orders if the bridge says nothing for so many milliseconds.
    #[arg(long, value_name = "MS")]
    dead_man: Option<u64>,
    /// The most that an order pays in fees, in percent of what it trades. A venue takes 0.05 of takers by default, and
    /// refuses an order that permits less.
    #[arg(long, value_name = "PERCENT", default_value = "0.2")]
    fee_cap: String,
    /// Heights that an order lives.
    #[arg(long, value_name = "HEIGHTS", default_value_t = 10_000)]
    life: u64,
    /// Sign orders that come within so many microseconds as one list: fewer signatures, and each order may wait so
    /// long. 0 signs each by itself at once.
    #[arg(long, value_name = "US", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=GATHER_US_MAX))]
    gather_us: u64,
    /// File to which signed reports of fills are added, a line of hexadecimal each: they convict a venue that cheats.
    #[arg(long, value_name = "FILE")]
    reports: Option<PathBuf>,
    /// Speak FIX 4.4 instead of OUCH, with a journal in this directory: numbers and reports go on after a restart.
    #[arg(long, value_name = "DIR")]
    fix_journal: Option<PathBuf>,
    /// The names of the FIX session: this side's and the participant's.
    #[arg(long, value_name = "OWN:OTHER", default_value = "WALRAS:TRADER", requires = "fix_journal")]
    fix_names: String,
    /// Cancel the open orders of the FIX session so many milliseconds after its connection breaks.
    #[arg(long, value_name = "MS", requires = "fix_journal")]
    cancel_after: Option<u64>,
    /// Number orders of a new FIX journal above this reference: those of the key on this day must be below.
    #[arg(long, value_name = "REFERENCE", default_value_t = 0, requires = "fix_journal")]
    above: u32,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl BridgeCommand {
    /// How it speaks FIX, if it does.
    fn fix(&self) -> anyhow::Result<Option<FixSettings>> {
        let Some(journal) = self.fix_journal.clone() else { return Ok(None) };
        let names =
            self.fix_names.split_once(':').and_then(|(own, other)| Some((FixText::new(own)?, FixText::new(other)?)));
        let (sender, target) = names.context("--fix-names: two names with a colon between them, as WALRAS:TRADER")?;
        Ok(Some(FixSettings { journal, sender, target, cancel_after_ms: self.cancel_after, last: self.above }))
    }

    pub fn run(self) -> anyhow::Result<ExitCode> {
        ensure!(self.listen.ip().is_loopback(), "--listen: whoever reaches it trades with the key: listen on loopback");
        let fee_cap_ppm = to_units(&self.fee_cap, 4).ok().and_then(|ppm| u32::try_from(ppm).ok());
        let settings = BridgeSettings {
            venue: self.ouch,
            trading: keystore::open(&self.trading_key, &self.passphrase)?,
            session: self.session,
            ends_orders: self.ends_orders,
            dead_man_ms: self.dead_man,
            fee_cap_ppm: fee_cap_ppm.filter(|ppm| *ppm <= 1_000_000).context("--fee-cap: a percentage up to 100")?,
            life_heights: self.life,
            gather_us: self.gather_us,
        };
        let (sink, fix) = (sink(self.reports.as_ref())?, self.fix()?);
        let (tell, news) = watch::channel(None);
        let url = self.venue.clone();
        std::thread::spawn(move || ask(&url, &tell));
        let runtime = tokio::runtime::Runtime::new().context("threads")?;
        runtime.block_on(async {
            let mut stop = StopSignals::new().context("signals")?;
            let listener =
                TcpListener::bind(self.listen).await.with_context(|| format!("cannot listen on {}", self.listen))?;
            let (protocol, address) = (if fix.is_some() { "FIX" } else { "OUCH" }, listener.local_addr()?);
            println!("plain {protocol} on {address}");
            let speak = async {
                match fix {
                    Some(fix) => bridge::fix::run(settings, fix, listener, news, sink).await,
                    None => bridge::run(settings, listener, news, sink).await,
                }
            };
            tokio::select! {
                done = speak => done.context("the bridge")?,
                () = stop.next() => {}
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Keeps reports in a file, each durable before the participant is told of its fill.
fn sink(path: Option<&PathBuf>) -> anyhow::Result<ReportSink> {
    let Some(path) = path else { return Ok(Box::new(|_| Ok(()))) };
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Box::new(move |report| {
        writeln!(file, "0x{}", to_hex(&report.to_bytes()))?;
        file.sync_data()
    }))
}

/// Asks the venue how it stands, for as long as somebody listens.
fn ask(url: &str, tell: &watch::Sender<Option<BridgeNews>>) {
    let node = NodeClient::at(url);
    while !tell.is_closed() {
        match node.get::<VenueStatusBody>("/v1/venue") {
            Ok(status) => drop(tell.send_replace(news(&status))),
            // The last news hold: without the venue nothing is signed, either.
            Err(error) => tracing::warn!(%error, "the venue does not answer"),
        }
        std::thread::sleep(ASK);
    }
}

fn news(status: &VenueStatusBody) -> Option<BridgeNews> {
    let network = status.network.as_ref()?.parse().ok()?;
    let (venue, incarnation) = (status.venue, status.incarnation?);
    let scope = RequestScope { network, venue, incarnation };
    Some(BridgeNews { scope, height: status.height?, takes_lists: status.takes_lists })
}
