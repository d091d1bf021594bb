//! `walras demo`: an exchange with traders, in one command.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ledger::{BlockReceipts, Genesis, SealTerms};
use primitives::{AssetId, Transaction, UNTIL_USUAL};
use serde_json::json;
use store::{Options, RealDisk};

use crate::demo_developer::DeveloperDemo;
use crate::demo_network::{DemoNetwork, KEPT_BLOCKS, PASSPHRASE, PAYER_KEY};
use crate::demo_upgrade::{DemoUpgrade, with_upgrade};
use crate::demo_venue::DemoVenue;
use crate::developers::{DEVELOPER_KEYS, developers};
use crate::edge::DemoEdge;
use crate::init::DEMO_CHAIN;
use crate::node_command::StopSignals;
use crate::traders::{Sent, Traders, genesis};

/// How often the traders act.
const TICK: Duration = Duration::from_millis(50);
/// How often the height of each validator is printed.
const STANDING: Duration = Duration::from_secs(5);
/// Milliseconds between blocks.
const INTERVAL_MS: u64 = 500;

/// Starts an exchange of four validators, each a process of its own, with simulated traders and the page.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras demo                          # until Ctrl-C, page at the address that it prints
  walras demo --seconds 20 --json      # a summary at the end, for scripts
  walras demo --assets 50 --traders 2000 --rate 10000
  walras demo --edge                   # with 20 participants behind proxies, and a page of fairness
  walras demo --upgrade                # rules change by vote, and then a fee
  walras demo --seals                  # orders may be sealed until their batch is fixed
  walras demo --developer              # a chain to develop contracts on, with anvil's methods
  walras demo --developer --fork amsterdam

Kill any one of the processes that it names: the others keep working; the demo restarts it, and it catches up.")]
pub struct Demo {
    /// Stop after this many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Run a chain for people who develop contracts: one node without traders, a block as soon as a transaction is
    /// pending, and the methods with which anvil and hardhat change accounts and time and go back to snapshots.
    #[arg(long, conflicts_with_all = ["validators", "traders", "rate", "seed"])]
    developer: bool,
    /// A fork of Ethereum that contracts run under, with the height of its first block if that is not the first one,
    /// such as amsterdam or bpo1@100: osaka, bpo1, bpo2, and amsterdam, which is not final.
    #[arg(long = "fork", value_name = "FORK[@HEIGHT]", requires = "developer")]
    forks: Vec<crate::init::forks::ForkArg>,
    /// Also run a market edge, fed with the prices of each batch: 20 participants behind two layers of proxies, and a
    /// page of fairness. The orders of a quarter of all traders come through it, in signed bundles.
    #[arg(long, conflicts_with = "developer")]
    edge: bool,
    /// Begin under the rules before the newest, let the validators agree on those, and let them vote a dearer fee: both
    /// act within two minutes, and a line tells of each step.
    #[arg(long, conflicts_with = "developer")]
    upgrade: bool,
    /// Let the validators make a sealing key, so that orders can be sealed (`--sealed`). It takes at least two.
    #[arg(long, conflicts_with = "developer")]
    seals: bool,
    /// Where the page of fairness is; another port is used if this is not free.
    #[arg(long, default_value = "127.0.0.1:8090", requires = "edge")]
    edge_listen: SocketAddr,
    /// Number of validators, 1 to 16.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    validators: u8,
    /// Number of assets, 2 to 200.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(2..=200))]
    assets: u16,
    /// Number of traders, at least 2.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    traders: u32,
    /// Transactions per second, all traders together.
    #[arg(long, default_value_t = 2_000)]
    rate: u64,
    /// Milliseconds between blocks: 500 by default; with --developer none, so a block follows each transaction.
    #[arg(long)]
    interval_ms: Option<u64>,
    /// Seed of everything that the traders do.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the first validator listens; the others use the ports above. Other ports are used if these are not free.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where the first validator serves Ethereum's JSON-RPC; the others use the ports above. Other ports are used if
    /// these are not free.
    #[arg(long, default_value = "127.0.0.1:8545")]
    ethereum_listen: SocketAddr,
    /// Keep the validators' homes in this directory, for `walras node`, `export` and other commands; otherwise they
    /// are deleted at the end. The keys' passphrase is "demo".
    #[arg(long)]
    home: Option<PathBuf>,
}

/// Totals over the blocks of a run.
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
    fn add(&mut self, block: &BlockReceipts, utility: Option<f64>) {
        // Several validators get the orders of a bundle: an order is counted once.
        let outcomes = ledger::outcomes_by_id(block.outcomes.iter().cloned());
        let refused = outcomes.iter().filter(|(_, outcome)| outcome.refusal().is_some()).count();
        self.blocks += 1;
        self.committed += (outcomes.len() - refused) as u64;
        self.refused += refused as u64;
        self.fills += block.batch.fills.len() as u64;
        self.pairs += block.batch.trades.len() as u64;
        self.not_full += u64::from(!block.batch.full());
        self.volume += volume(block);
        // Without new orders almost nothing is traded and the ratio is meaningless.
        self.utility.extend(utility.filter(|_| !block.batch.fills.is_empty() && !block.outcomes.is_empty()));
    }
}

/// Value of the sales of a batch, in units of asset 0.
fn volume(block: &BlockReceipts) -> f64 {
    let batch = &block.batch;
    let valuation = |asset: AssetId| batch.valuations[asset.0 as usize].to_f64();
    let worth = |trade: &ledger::PairTrade| trade.sold as f64 * valuation(trade.pair.sell) / valuation(AssetId(0));
    // An empty sum is -0.
    batch.trades.iter().map(worth).sum::<f64>() + 0.0
}

impl Demo {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let temporary = tempfile::tempdir().context("cannot make a temporary directory")?;
        let folder = self.home.clone().unwrap_or_else(|| temporary.path().to_path_buf());
        if self.developer {
            return self.develop(&folder, json);
        }
        let say = |line: String| {
            // With --json, standard output carries only the result.
            if json { eprintln!("{line}") } else { println!("{line}") }
        };
        say(format!("{} validators start, each a process of its own: a moment.", self.validators));
        let traders = Traders::new(self.traders as usize, self.assets as usize, self.seed);
        let genesis = genesis(&traders, self.assets as usize, self.validators.into());
        let mut genesis = if self.upgrade { with_upgrade(genesis) } else { genesis };
        if self.seals {
            ensure!(self.validators > 1, "--seals: one validator alone reads everything; add --validators 2 or more");
            genesis.seals = SealTerms::named("fewest");
        }
        let stopped = stop_flag()?;
        let count = usize::from(self.validators);
        let interval_ms = self.interval_ms.unwrap_or(INTERVAL_MS);
        let secret = self.edge.then(|| DemoEdge::secret(&folder)).transpose()?;
        let listen = [self.listen, self.ethereum_listen];
        let mut network = DemoNetwork::start(&folder, &genesis, count, listen, interval_ms, secret.as_deref())?;
        let upgrade = self.upgrade.then(|| DemoUpgrade::new(&network, count, genesis.fee)).transpose()?;
        self.greet(&network, &say);
        let mut edge = self.edge.then(|| DemoEdge::start(&folder, self.edge_listen)).transpose()?;
        let doors = match edge.as_mut().zip(network.venue_edge()) {
            Some((edge, root)) => edge.add_venue(root, network.venue_addresses().0, &say)?,
            None => Vec::new(),
        };
        edge.iter().for_each(|edge| greet_edge(edge, &say));
        let (address, operator) = (network.venue_addresses().0, network.operator());
        let mut venue = DemoVenue::new(address, operator, doors, self.assets.into(), self.seed);
        let begun = Instant::now();
        let tally = self.trade(&mut network, traders, &stopped, (&mut edge, &mut venue, upgrade), &say)?;
        let seconds = begun.elapsed().as_secs_f64();
        let at_venue = venue.report();
        say(venue.line());
        network.stop();
        let disk =
            RealDisk::existing(network.home(0).join("data")).context("cannot open the first validator's store")?;
        let genesis = ::founding::genesis_file::read(&network.home(0).join("genesis.json"))?;
        let restored = node::recover_state(disk, Options::default(), &genesis)?;
        let audit = restored.ledger.audit();
        let sound = audit.is_ok();
        self.report(&tally, seconds, audit, (edge.as_ref(), at_venue), json);
        Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn develop(self, folder: &Path, json: bool) -> anyhow::Result<ExitCode> {
        // Two traders that hold something of each asset; nobody trades.
        let holders = Traders::new(2, self.assets as usize, self.seed);
        let forks = crate::init::forks::schedule(&self.forks)?;
        let genesis = Genesis { forks, ..genesis(&holders, self.assets as usize, 1) };
        let Demo { listen, ethereum_listen, seconds, .. } = self;
        let interval_ms = self.interval_ms.unwrap_or(0);
        DeveloperDemo { listen, ethereum_listen, interval_ms, seconds }.run(folder, genesis, json)
    }

    fn greet(&self, network: &DemoNetwork, say: &impl Fn(String)) {
        say(format!("Walras is running: http://{}", network.address(0)));
        for index in 0..usize::from(self.validators) {
            say(format!("validator {index}: http://{}, process {}", network.address(index), network.process(index)));
        }
        if !doors::page_is_embedded() {
            say("The page is not in this binary, because Node.js was missing when it was built; everything else runs."
                .into());
        }
        say(format!("Ethereum JSON-RPC: http://{}, chain {DEMO_CHAIN}", network.ethereum_address(0)));
        say("The usual accounts for development hold 10,000 USD and 10,000 EUR each. Everybody knows their keys:"
            .into());
        for (account, key) in developers().zip(DEVELOPER_KEYS) {
            say(format!("  {}  {key}", account.checked()));
        }
        self.greet_payers(network, say);
        greet_traders(network, say);
        let Demo { traders, assets, rate, .. } = self;
        say(format!(
            "Each validator keeps some {KEPT_BLOCKS} blocks on the disk; WALRAS_STORE__KEEP_BLOCKS=0 keeps all."
        ));
        say(format!("{traders} traders in {assets} assets, {rate} transactions a second. Ctrl-C stops."));
    }

    /// Prints how to try the payment lane.
    fn greet_payers(&self, network: &DemoNetwork, say: &impl Fn(String)) {
        let key = network.folder().join(PAYER_KEY);
        let key = std::path::absolute(&key).unwrap_or(key);
        let key = key.display();
        say("Payments in one round trip: paste this into another terminal.".into());
        for line in [
            &format!("export WALRAS_PASSPHRASE={PASSPHRASE} WALRAS_SERVER=http://{}", network.address(0)),
            "walras pay new --purse alice && walras pay new --purse bob",
            &format!("walras pay deposit --purse alice --key {key} --asset EUR --amount 100"),
            "walras pay send --purse alice --to $(walras pay address --purse bob) --asset EUR --amount 12.50 --receipt r",
            "walras pay receive --purse bob r",
            &format!("walras pay redeem --purse bob --key {key} --asset EUR --amount 12.50"),
        ] {
            say(format!("  {line}"));
        }
    }

    /// Lets the traders act until the time is over or the demo is stopped.
    fn trade(
        &self,
        network: &mut DemoNetwork,
        mut traders: Traders,
        stopped: &AtomicBool,
        (edge, venue, mut upgrade): (&mut Option<DemoEdge>, &mut DemoVenue, Option<DemoUpgrade>),
        say: &impl Fn(String),
    ) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        let begun = Instant::now();
        let (mut last, mut told) = (begun, begun);
        let mut owed = 0.0;
        let over = || self.seconds.is_some_and(|seconds| begun.elapsed().as_secs() >= seconds);
        while !over() && !stopped.load(Ordering::Relaxed) && !terminal::output::reader_is_gone() {
            let passed = last.elapsed().as_secs_f64();
            last = Instant::now();
            traders.drift(passed);
            owed = (owed + passed * self.rate as f64).min(self.rate as f64);
            let count = owed as usize;
            owed -= count as f64;
            let until = network.next_height() + UNTIL_USUAL;
            let acts = traders.act(network.identity(), until, count);
            tally.rejected += match edge {
                Some(edge) => self.submit_by_edge(network, edge, &mut traders, acts),
                None => self.submit(network, &mut traders, acts),
            };
            network.tend(say)?;
            venue.tend(network, say);
            upgrade.iter_mut().for_each(|upgrade| upgrade.tend(network, say));
            edge.as_mut().map_or(Ok(()), |edge| edge.tend(say))?;
            for (block, utility) in network.new_blocks() {
                edge.iter_mut().for_each(|edge| edge.publish(&block));
                tally.add(&block, utility);
                for fill in block.batch.fills.iter().filter(|fill| fill.left == 0) {
                    traders.filled(&fill.place.account, fill.place.id);
                }
                say(line(&block));
            }
            if told.elapsed() >= STANDING {
                told = Instant::now();
                say(format!("validators at heights {}", network.standing()));
                edge.iter().for_each(|edge| say(edge.line()));
                say(venue.line());
            }
            std::thread::sleep(TICK.saturating_sub(last.elapsed()));
        }
        Ok(tally)
    }

    /// Each trader uses one validator. Returns how many transactions were rejected.
    fn submit(&self, network: &DemoNetwork, traders: &mut Traders, acts: Vec<(Sent, Transaction)>) -> u64 {
        let count = usize::from(self.validators);
        let mut parts: Vec<(Vec<Sent>, Vec<Transaction>)> = (0..count).map(|_| Default::default()).collect();
        for (sent, transaction) in acts {
            let part = &mut parts[usize::from(transaction.body.account.0[0]) % count];
            part.0.push(sent);
            part.1.push(transaction);
        }
        let mut rejected = 0;
        for (index, (sent, transactions)) in parts.into_iter().enumerate().filter(|(_, part)| !part.1.is_empty()) {
            let taken = network.submit(index, &transactions);
            for sent in sent.iter().zip(taken).filter(|(_, taken)| !taken).map(|(sent, _)| sent) {
                rejected += 1;
                traders.gone(sent);
            }
        }
        rejected
    }

    /// A quarter of all accounts are behind the edge: their orders come back from it in signed bundles, which f + 1
    /// validators get in the order of their numbers.
    fn submit_by_edge(
        &self,
        network: &DemoNetwork,
        edge: &mut DemoEdge,
        traders: &mut Traders,
        acts: Vec<(Sent, Transaction)>,
    ) -> u64 {
        let is_behind = |act: &(Sent, Transaction)| act.1.body.account.0[1].is_multiple_of(4);
        let (behind, others): (Vec<_>, Vec<_>) = acts.into_iter().partition(is_behind);
        edge.order(behind.iter().map(|(_, transaction)| transaction));
        let mut rejected = 0;
        for bundle in edge.bundles().into_iter().filter(|bundle| !bundle.is_empty()) {
            let most_faulty = (usize::from(self.validators) - 1) / 3;
            let answers: Vec<_> = (0..=most_faulty).map(|index| network.submit(index, &bundle)).collect();
            for (place, transaction) in bundle.iter().enumerate() {
                if !answers.iter().any(|taken| taken.get(place) == Some(&true)) {
                    rejected += 1;
                    traders.filled(&transaction.body.account, transaction.body.sequence);
                }
            }
        }
        rejected + self.submit(network, traders, others)
    }

    fn report(
        &self,
        tally: &Tally,
        seconds: f64,
        audit: Result<Vec<ledger::Audit>, ledger::AuditError>,
        (edge, at_venue): (Option<&DemoEdge>, serde_json::Value),
        json: bool,
    ) {
        let mean = tally.utility.iter().sum::<f64>() / tally.utility.len().max(1) as f64;
        let worst = tally.utility.iter().copied().fold(0.0, f64::max);
        let conservation = audit.as_ref().map_or_else(ToString::to_string, |_| "holds".to_string());
        if json {
            let report = json!({
                "seconds": seconds,
                "blocks": tally.blocks,
                "transactions": {"committed": tally.committed, "rejected": tally.rejected,
                    "refused_in_blocks": tally.refused},
                "transactions_per_second": tally.committed as f64 / seconds,
                "trades": tally.fills,
                "pairs_traded": tally.pairs,
                "batches_not_full": tally.not_full,
                "volume": {"asset": "USD", "units": format!("{:.0}", tally.volume)},
                "unrealized_utility_ratio": {"mean": mean, "max": worst},
                "conservation": conservation,
                "validators": self.validators,
                "assets": self.assets,
                "traders": self.traders,
                "seed": self.seed,
                "edge": edge.map(DemoEdge::report),
                "venue": at_venue,
            });
            println!("{report}");
            return;
        }
        println!("\n{} blocks in {seconds:.1} s", tally.blocks);
        println!(
            "transactions   {} committed, {} rejected at intake, {} refused in blocks",
            tally.committed, tally.rejected, tally.refused
        );
        println!("trades         {} fills, worth {:.2} USD", tally.fills, tally.volume / 10_000.0);
        println!(
            "utility        unrealized / realized {:.3} % on average, {:.3} % at worst",
            mean * 100.0,
            worst * 100.0
        );
        println!("fullness       {} of {} batches not full", tally.not_full, tally.blocks);
        println!("conservation   {conservation}: every unit of every asset is accounted for");
        edge.iter().for_each(|edge| println!("{}", edge.line()));
    }
}

/// Prints how to trade at the venue.
fn greet_traders(network: &DemoNetwork, say: &impl Fn(String)) {
    let key = network.folder().join(PAYER_KEY);
    let key = std::path::absolute(&key).unwrap_or(key);
    let (http, ouch) = network.venue_addresses();
    say(format!("Continuous markets M0 EUR/USD and M1 JPY/USD at http://{http}, OUCH on {ouch}. To trade there:"));
    for line in [
        "walras wallet new --key trading.json",
        &format!("walras wallet deposit --key {} --venue 0 --asset USD --amount 1000", key.display()),
        &format!(
            "walras wallet authorize --key {} --venue 0 --trading-key trading.json --market 0:0.5:2 --lose USD:1000",
            key.display()
        ),
        &format!("walras bridge --trading-key trading.json --venue http://{http} --ouch {ouch}"),
        &format!("walras venue status --at http://{http}"),
        "walras venue audit",
    ] {
        say(format!("  {line}"));
    }
}

fn greet_edge(edge: &DemoEdge, say: &impl Fn(String)) {
    say(format!("The market edge: fairness at http://{}", edge.page()));
    for (name, process) in edge.processes() {
        say(format!("  {name}: process {process}"));
    }
}

/// One line that describes a block.
fn line(block: &BlockReceipts) -> String {
    let applied = block.outcomes.iter().filter(|(_, outcome)| outcome.refusal().is_none()).count();
    let full = if block.batch.full() { "full" } else { "not full" };
    let height = if std::io::stdout().is_terminal() {
        format!("\x1b[1m{:>6}\x1b[0m", block.height)
    } else {
        format!("{:>6}", block.height)
    };
    format!(
        "block {height}  {applied:>6} transactions  {:>6} fills  {:>4} pairs  {full}  worth {:>14.2} USD",
        block.batch.fills.len(),
        block.batch.trades.len(),
        volume(block) / 10_000.0
    )
}

/// A flag that Ctrl-C or SIGTERM sets; a second signal ends the process at once.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("threads")?;
    let mut stop = runtime.block_on(async { StopSignals::new() }).context("signals")?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            stop.next().await;
            raised.store(true, Ordering::Relaxed);
            stop.next().await;
            std::process::exit(130);
        });
    });
    Ok(flag)
}
