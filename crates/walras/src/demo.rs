//! `walras demo`: an exchange with traders, in one command.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use node::views::Committed;
use node::{Answer, Config, Node, StartError};
use primitives::AssetId;
use serde_json::json;
use tokio::sync::broadcast::error::TryRecvError;

use crate::node_command::stop_signal;
use crate::traders::{Sent, Traders, genesis};
use std::process::ExitCode;

/// How often the traders act.
const TICK: Duration = Duration::from_millis(50);

/// Starts an exchange with simulated traders and the page.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras demo                          # until Ctrl-C, page at the address that it prints
  walras demo --seconds 20 --json      # a summary at the end, for scripts
  walras demo --assets 50 --traders 2000 --rate 10000")]
pub struct Demo {
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Number of assets, 2 to 200.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(2..=200))]
    assets: u16,
    /// Number of traders, at least 2.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    traders: u32,
    /// Transactions per second, all traders together.
    #[arg(long, default_value_t = 2_000)]
    rate: u64,
    /// Milliseconds between blocks.
    #[arg(long, default_value_t = 500)]
    interval_ms: u64,
    /// Decides everything that the traders do.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to listen; another port is taken if this one is not free.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Keep the exchange in this home, for `walras node`, `export` and the others; else it is gone at the end.
    #[arg(long)]
    home: Option<PathBuf>,
}

/// What the blocks of a run add up to.
#[derive(Default)]
struct Tally {
    blocks: u64,
    committed: u64,
    refused: u64,
    rejected: u64,
    fills: u64,
    pairs: u64,
    not_full: u64,
    volume: f64,
    utility: Vec<f64>,
}

impl Tally {
    fn add(&mut self, block: &Committed) {
        let (summary, batch) = (&block.summary, &block.batch.batch);
        self.blocks += 1;
        self.committed += summary.applied as u64;
        self.refused += (summary.transactions - summary.applied) as u64;
        self.fills += summary.fills as u64;
        self.pairs += summary.pairs as u64;
        self.not_full += u64::from(!summary.full);
        self.volume += volume(block);
        self.utility.extend(
            block.batch.report.as_ref().filter(|_| !batch.fills.is_empty()).map(|r| r.unrealized_utility_ratio),
        );
    }
}

/// Units of asset 0 that the sales of a batch were worth.
fn volume(block: &Committed) -> f64 {
    let batch = &block.batch.batch;
    let valuation = |asset: AssetId| batch.valuations[asset.0 as usize].to_f64();
    batch.trades.iter().map(|trade| trade.sold as f64 * valuation(trade.pair.sell) / valuation(AssetId(0))).sum()
}

impl Demo {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Runtime::new().context("threads")?;
        runtime.block_on(self.serve(json))
    }

    async fn serve(self, json: bool) -> anyhow::Result<ExitCode> {
        let temporary = tempfile::tempdir().context("a temporary directory")?;
        let home = self.home.clone().unwrap_or_else(|| temporary.path().to_path_buf());
        let traders = Traders::new(self.traders as usize, self.assets as usize, self.seed);
        let node = self.start(&traders, &home).await?;
        let say = |line: String| {
            // With --json, standard output belongs to the result.
            if json { eprintln!("{line}") } else { println!("{line}") }
        };
        say(format!("Walras is running: http://{}", node.address()));
        if !node::page_is_embedded() {
            say("The page is not in this binary, because Node.js was missing when it was built; everything else runs."
                .into());
        }
        say(format!(
            "{} traders in {} assets, {} transactions a second. Ctrl-C stops.",
            self.traders, self.assets, self.rate
        ));
        let begun = Instant::now();
        let mut tally = self.trade(&node, traders, &say).await?;
        let exchange = node.exchange().clone();
        let mut rest = exchange.subscribe();
        node.stop().await;
        while let Ok(block) = rest.try_recv() {
            tally.add(&block);
        }
        let audit = exchange.read(|ledger| ledger.audit());
        let sound = audit.is_ok();
        self.report(&tally, begun.elapsed().as_secs_f64(), audit, json)?;
        Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn start(&self, traders: &Traders, home: &std::path::Path) -> anyhow::Result<Node> {
        let mut config = Config::load(None, std::env::vars())?;
        config.http.listen = self.listen;
        config.blocks.interval_ms = self.interval_ms;
        let genesis = genesis(traders, self.assets as usize, 1);
        std::fs::create_dir_all(home).with_context(|| home.display().to_string())?;
        node::genesis_file::write(&home.join("genesis.json"), &genesis)?;
        let data = home.join("data");
        match Node::start(config.clone(), &genesis, &data, None).await {
            Err(StartError::Listen(..)) => {
                config.http.listen.set_port(0);
                Ok(Node::start(config, &genesis, &data, None).await?)
            }
            started => Ok(started?),
        }
    }

    /// Lets the traders act until the time is over or somebody stops the demo.
    async fn trade(&self, node: &Node, mut traders: Traders, say: &impl Fn(String)) -> anyhow::Result<Tally> {
        let exchange = node.exchange();
        let mut events = exchange.subscribe();
        let mut tally = Tally::default();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let begun = Instant::now();
        let mut last = begun;
        let mut owed = 0.0;
        let stop = stop_signal();
        tokio::pin!(stop);
        let failed = exchange.failed();
        tokio::pin!(failed);
        loop {
            tokio::select! {
                () = &mut stop => break,
                reason = &mut failed => anyhow::bail!("the exchange stopped itself: {reason}"),
                _ = tick.tick() => {}
            }
            if self.seconds.is_some_and(|seconds| begun.elapsed().as_secs() >= seconds) {
                break;
            }
            let passed = last.elapsed().as_secs_f64();
            last = Instant::now();
            traders.drift(passed);
            owed = (owed + passed * self.rate as f64).min(self.rate as f64);
            let count = owed as usize;
            owed -= count as f64;
            let (sent, transactions): (Vec<Sent>, Vec<_>) = traders.act(count).into_iter().unzip();
            if let Ok(answers) = exchange.submit(transactions, false) {
                let answers = answers.await.context("the exchange stopped")?;
                for (sent, answer) in sent.iter().zip(&answers) {
                    if matches!(answer, Answer::Full | Answer::Refused(_)) {
                        tally.rejected += 1;
                        traders.gone(sent);
                    }
                }
            }
            self.hear(&mut events, &mut tally, &mut traders, say);
        }
        Ok(tally)
    }

    fn hear(
        &self,
        events: &mut tokio::sync::broadcast::Receiver<Arc<Committed>>,
        tally: &mut Tally,
        traders: &mut Traders,
        say: &impl Fn(String),
    ) {
        loop {
            match events.try_recv() {
                Ok(block) => {
                    tally.add(&block);
                    for fill in block.batch.batch.fills.iter().filter(|fill| fill.left == 0) {
                        traders.filled(&fill.place.account, fill.place.id);
                    }
                    say(line(&block));
                }
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn report(
        &self,
        tally: &Tally,
        seconds: f64,
        audit: Result<Vec<ledger::Audit>, ledger::AuditError>,
        json: bool,
    ) -> anyhow::Result<()> {
        let mean = tally.utility.iter().sum::<f64>() / tally.utility.len().max(1) as f64;
        let worst = tally.utility.iter().copied().fold(0.0, f64::max);
        let conservation = audit.as_ref().map_or_else(ToString::to_string, |_| "holds".to_string());
        let mut out = std::io::stdout().lock();
        if json {
            let report = json!({
                "seconds": seconds,
                "blocks": tally.blocks,
                "transactions": {"committed": tally.committed, "rejected": tally.rejected, "refused_in_blocks": tally.refused},
                "transactions_per_second": tally.committed as f64 / seconds,
                "trades": tally.fills,
                "pairs_traded": tally.pairs,
                "batches_not_full": tally.not_full,
                "volume": {"asset": "USD", "units": format!("{:.0}", tally.volume)},
                "unrealized_utility_ratio": {"mean": mean, "max": worst},
                "conservation": conservation,
                "assets": self.assets,
                "traders": self.traders,
                "seed": self.seed,
            });
            writeln!(out, "{report}")?;
            return Ok(());
        }
        writeln!(out, "\n{} blocks in {seconds:.1} s", tally.blocks)?;
        writeln!(
            out,
            "transactions   {} committed, {} rejected at the door, {} refused in blocks",
            tally.committed, tally.rejected, tally.refused
        )?;
        writeln!(out, "trades         {} fills, worth {:.2} USD", tally.fills, tally.volume / 10_000.0)?;
        writeln!(
            out,
            "utility        unrealized / realized {:.3} % on average, {:.3} % at worst",
            mean * 100.0,
            worst * 100.0
        )?;
        writeln!(out, "fullness       {} of {} batches not full", tally.not_full, tally.blocks)?;
        writeln!(out, "conservation   {conservation}: every unit of every asset is accounted for")?;
        Ok(())
    }
}

/// A line for a block.
fn line(block: &Committed) -> String {
    let summary = &block.summary;
    let ms: f64 = summary.stages_ms.iter().filter(|(name, _)| *name != "log").map(|(_, ms)| ms).sum();
    let clearing = summary.stages_ms.iter().find(|(name, _)| *name == "clearing").map_or(0.0, |(_, ms)| *ms);
    let full = if summary.full { "full" } else { "not full" };
    let height = if std::io::stdout().is_terminal() {
        format!("\x1b[1m{:>6}\x1b[0m", summary.height)
    } else {
        format!("{:>6}", summary.height)
    };
    format!(
        "block {height}  {:>6} transactions  {:>6} fills  {:>4} pairs  {full}  {ms:>7.1} ms (prices {clearing:.1})  worth {:>14.2} USD",
        summary.applied,
        summary.fills,
        summary.pairs,
        volume(block) / 10_000.0
    )
}
