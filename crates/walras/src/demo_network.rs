//! The demo's validators: separate processes, restarted when they end, and accessed over HTTP like any node.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ::founding::{Founder, Founding};
use anyhow::{Context, ensure};
use api::ResultBody;
use client::NodeClient;
use ledger::{BlockReceipts, Genesis, LaneBls, RULES_NEWEST};
use node::HOME_PORTS;
use primitives::venue::VenueOperator;
use primitives::{Address, AssetId, Digest, Transaction};
use store::RealDisk;
use zeroize::Zeroizing;

use crate::demo_people::{DEMO_VENUE, with_venue};
use crate::venue::run;
use crate::{keystore, lane, validator_keys};

/// Protects nothing: the keys of a demo have no value.
pub const PASSPHRASE: &str = client::keystore::PUBLIC_PASSPHRASE;
/// The key of an account with money, for trying the payment lane.
pub const PAYER_KEY: &str = "payer-key.json";
/// Its balance of the first two assets, in units.
const PAYER_UNITS: u64 = 10_000_000_000;
/// Heights of a lane epoch: an hour of blocks each half second.
const LANE_EPOCH_HEIGHTS: u64 = 7_200;
/// Number of fees that the account of a validator can pay, for proposals and votes, about contested outputs too.
const VALIDATOR_FEES: u64 = 4_000;
/// Heights of an epoch where rules change by vote: twenty seconds of blocks each half second.
const EPOCH_HEIGHTS: u64 = 40;
/// The setting for the number of blocks that a validator keeps, and its value in a demo.
const KEEP_BLOCKS: &str = "WALRAS_STORE__KEEP_BLOCKS";
pub const KEPT_BLOCKS: u64 = 1_000;
/// Where the venue takes orders, if these ports are free.
const VENUE_DOORS: ([u8; 4], u16) = ([127, 0, 0, 1], 8070);
/// Pause before a validator that ended is restarted.
const PAUSE: Duration = Duration::from_secs(2);
/// Maximum time for validators to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum time of an answer: a validator that is down does not hold up the others.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

struct Validator {
    home: PathBuf,
    http: SocketAddr,
    ethereum: SocketAddr,
    /// It, asked over HTTP.
    node: NodeClient,
    process: Child,
    /// When it ended; `None` once it is restarted.
    ended: Option<Instant>,
}

/// The validators of a demo.
pub struct DemoNetwork {
    folder: PathBuf,
    /// The identity of the network, for which transactions are signed.
    identity: Digest,
    validators: Vec<Validator>,
    next_height: u64,
    /// Where the first validator's venue takes orders: HTTP, and OUCH.
    venue: (SocketAddr, SocketAddr),
    /// Where the venue's market edge has its root, if it has one.
    venue_edge: Option<SocketAddr>,
    operator: VenueOperator,
}

/// Makes a validator's home with its keys: who founds the network, and its place in the payment lane.
fn make_validator(
    home: &Path,
    address: &SocketAddr,
    passphrase: &Zeroizing<String>,
) -> anyhow::Result<(Founder, lane::FoundingMember)> {
    crate::init::make_home(home)?;
    let keys = validator_keys::make(home, passphrase)?;
    let address = validator_keys::address_of(&keys.links, &address.to_string());
    let registrar = keystore::create_under(&home.join(lane::LANE_KEY_FILE), passphrase)?.public();
    let data = home.join("data");
    RealDisk::new(&data).with_context(|| data.display().to_string())?;
    let (shards, account) = (lane::make_first_keys(home, 1, passphrase)?, keys.account.address());
    let founder = Founder { key: keys.votes, address, account, stake: 1 };
    Ok((founder, lane::FoundingMember { registrar, shards, account: Some(account) }))
}

/// What every validator's `walras.toml` begins with.
fn settings([http, ethereum, network]: [SocketAddr; 3], interval_ms: u64, is_upgraded: bool) -> String {
    let approves = if is_upgraded { format!("approve = {RULES_NEWEST}\n") } else { String::new() };
    format!(
        "[http]\nlisten = \"{http}\"\n\n[ethereum]\nlisten = \"{ethereum}\"\n\n[network]\nlisten = \"{network}\"\n\
         {approves}\n[blocks]\ninterval_ms = {interval_ms}\n"
    )
}

/// What the `walras.toml` of the venue's node adds, and the root of its market edge with the secret.
fn settings_of_venue(doors: &[SocketAddr], edge: Option<(SocketAddr, &Path)>) -> String {
    let of_edge = edge.map_or(String::new(), |(root, secret)| {
        let secret = toml_string(&secret.display().to_string());
        format!(
            "edge_listen = \"{root}\"\nedge_secret = {secret}\nedge_shared_machine = true\nedge_clock_error_ns = 0\n"
        )
    });
    format!(
        "\n[venue]\nrun = true\nlisten = \"{}\"\nouch_listen = \"{}\"\nmaker_ppm = -50\ntaker_ppm = 200\n\
         covers_entries = false\n{of_edge}",
        doors[0], doors[1]
    )
}

impl DemoNetwork {
    /// Makes homes under `folder`, and starts a process for each. The first validator serves HTTP and Ethereum's
    /// JSON-RPC at the addresses in `listen`. Its venue is the root of a market edge whose secret is in `edge_secret`.
    pub fn start(
        folder: &Path,
        genesis: &Genesis,
        count: usize,
        listen: [SocketAddr; 2],
        interval_ms: u64,
        edge_secret: Option<&Path>,
    ) -> anyhow::Result<DemoNetwork> {
        let https = door_addresses(listen[0], count)?;
        let ethereums = door_addresses(listen[1], count)?;
        let listens = free_addresses(count, 1)?;
        let homes: Vec<PathBuf> = (0..count).map(|index| folder.join(format!("validator-{index}"))).collect();
        let passphrase = Zeroizing::new(PASSPHRASE.to_string());
        let payer = keystore::create_under(&folder.join(PAYER_KEY), &passphrase)?.public().address();
        let made = homes.iter().zip(&listens).map(|(home, address)| make_validator(home, address, &passphrase));
        let (founders, lane_keys): (Vec<_>, Vec<_>) = made.collect::<anyhow::Result<Vec<_>>>()?.into_iter().unzip();
        let operator = run::prepare(&homes[0], DEMO_VENUE, 0, &passphrase)?;
        let venue = door_addresses(SocketAddr::from(VENUE_DOORS), 2)?;
        let venue_edge = edge_secret.map(|_| free_addresses(1, 1).map(|free| free[0])).transpose()?;
        let genesis = &with_venue(with_lane(genesis, &lane_keys, payer, &founders), &operator);
        let lanes = free_addresses(count, HOME_PORTS)?;
        let lanes = lanes.iter().map(|at| format!("\"{at}\"")).collect::<Vec<_>>().join(", ");
        let mut founding = Founding::new(::founding::FoundingEngine::Dbft, founders);
        founding.interval = Duration::from_millis(interval_ms);
        let is_upgraded = genesis.rules < RULES_NEWEST;
        if is_upgraded {
            founding.succession.epoch_heights = EPOCH_HEIGHTS;
        }
        let mut validators = Vec::new();
        for (index, home) in homes.into_iter().enumerate() {
            ::founding::genesis_file::write_with_founding(&home.join("genesis.json"), genesis, Some(&founding))?;
            let doors = [https[index], ethereums[index], listens[index]];
            let mut config = settings(doors, interval_ms, is_upgraded)
                + &format!("\n[lane]\naddresses = [{lanes}]\nmember = {index}\n");
            if index == 0 {
                config += &settings_of_venue(&venue, venue_edge.zip(edge_secret));
            }
            std::fs::write(home.join("walras.toml"), config).with_context(|| home.display().to_string())?;
            node::validator::create_votes(&home.join("data"))?;
            let process = spawn(&home)?;
            let (http, ethereum) = (https[index], ethereums[index]);
            let node = NodeClient::within(format!("http://{http}"), ANSWER_PATIENCE);
            validators.push(Validator { home, http, ethereum, node, process, ended: None });
        }
        let network = DemoNetwork {
            folder: folder.into(),
            identity: founding.digest(genesis),
            validators,
            next_height: 1,
            venue: (venue[0], venue[1]),
            venue_edge,
            operator,
        };
        network.wait_until_ready()?;
        Ok(network)
    }

    /// Where the venue takes orders: HTTP, and OUCH.
    pub fn venue_addresses(&self) -> (SocketAddr, SocketAddr) {
        self.venue
    }

    /// Where the venue's market edge has its root.
    pub fn venue_edge(&self) -> Option<SocketAddr> {
        self.venue_edge
    }

    /// The venue's operator.
    pub fn operator(&self) -> VenueOperator {
        self.operator
    }

    /// The identity of the network, for which transactions are signed.
    pub fn identity(&self) -> &Digest {
        &self.identity
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !(0..self.validators.len()).all(|index| self.is_ready(index)) {
            let log = self.validators[0].home.join("log");
            ensure!(begun.elapsed() < PATIENCE, "the validators did not start in time; see {}", log.display());
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// A validator, asked over HTTP.
    pub fn node(&self, index: usize) -> &NodeClient {
        &self.validators[index].node
    }

    fn is_ready(&self, index: usize) -> bool {
        matches!(self.node(index).unready(), Ok(None))
    }

    /// The address of a validator's page.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.validators[index].http
    }

    /// Where a validator serves Ethereum's JSON-RPC.
    pub fn ethereum_address(&self, index: usize) -> SocketAddr {
        self.validators[index].ethereum
    }

    /// A validator's process id.
    pub fn process(&self, index: usize) -> u32 {
        self.validators[index].process.id()
    }

    /// The folder of all homes, and of the payer's key.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A validator's home.
    pub fn home(&self, index: usize) -> &Path {
        &self.validators[index].home
    }

    /// Restarts validators that have ended and reports it.
    pub fn tend(&mut self, say: &impl Fn(String)) -> anyhow::Result<()> {
        for (index, validator) in self.validators.iter_mut().enumerate() {
            match validator.ended {
                None => {
                    if let Some(status) = validator.process.try_wait()? {
                        say(format!("validator {index} has ended ({status}); the others keep working"));
                        validator.ended = Some(Instant::now());
                    }
                }
                Some(since) if since.elapsed() >= PAUSE => {
                    validator.process = spawn(&validator.home)?;
                    validator.ended = None;
                    say(format!("validator {index} restarts, process {}", validator.process.id()));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Sends transactions to a validator, or to the next that answers. Returns for each whether it was accepted.
    pub fn submit(&self, first: usize, transactions: &[Transaction]) -> Vec<bool> {
        let count = self.validators.len();
        for index in (0..count).map(|turn| (first + turn) % count) {
            if let Ok(results) = self.node(index).submit_all(transactions) {
                return results.iter().map(|result| matches!(result, ResultBody::Taken(_))).collect();
            }
        }
        vec![false; transactions.len()]
    }

    /// The receipts of blocks that were not returned yet, and the solver's utility ratio where it is known, from the
    /// first validator that answers.
    pub fn new_blocks(&mut self) -> Vec<(BlockReceipts, Option<f64>)> {
        let mut blocks = Vec::new();
        for index in 0..self.validators.len() {
            while let Some(receipts) = self.receipts(index, self.next_height) {
                let batch = self.node(index).batch(self.next_height).ok().flatten();
                let utility = batch.and_then(|batch| batch.solver?.unrealized_utility_ratio);
                blocks.push((receipts, utility));
                self.next_height += 1;
            }
        }
        blocks
    }

    /// The height after the newest one that was read.
    pub fn next_height(&self) -> u64 {
        self.next_height
    }

    fn receipts(&self, index: usize, height: u64) -> Option<BlockReceipts> {
        let (status, bytes) = self.node(index).bytes(&format!("/v1/blocks/{height}/receipts")).ok()?;
        (status == 200).then(|| borsh::from_slice(&bytes).ok())?
    }

    /// The heights of all validators, in one line.
    pub fn standing(&self) -> String {
        let of = |index: usize| match self.node(index).validator() {
            Ok(Some(status)) => {
                let silent = if status.silent { " (listening)" } else { "" };
                format!("{index}: {}{silent}", status.decided)
            }
            _ => format!("{index}: down"),
        };
        (0..self.validators.len()).map(of).collect::<Vec<_>>().join(", ")
    }

    /// Stops all in order and waits for them.
    pub fn stop(&mut self) {
        for validator in &mut self.validators {
            // The id is that of a child that was not waited for, so no other process can have it.
            if validator.process.try_wait().is_ok_and(|ended| ended.is_none()) {
                let terminate = Command::new("kill").arg(validator.process.id().to_string()).status();
                if terminate.is_err() {
                    drop(validator.process.kill());
                }
            }
        }
        for validator in &mut self.validators {
            drop(validator.process.wait());
        }
    }
}

impl Drop for DemoNetwork {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The genesis with a payment lane, and with money for its payer and the validators' fees.
fn with_lane(genesis: &Genesis, keys: &[lane::FoundingMember], payer: Address, founders: &[Founder]) -> Genesis {
    let mut genesis = genesis.clone();
    genesis.balances.extend([0, 1].map(|asset| (payer, AssetId(asset), PAYER_UNITS)));
    let fees = genesis.fee.saturating_mul(VALIDATOR_FEES);
    genesis.balances.extend(founders.iter().map(|founder| (founder.account, AssetId(0), fees)));
    genesis.lane = Some(lane::terms(&genesis, LANE_EPOCH_HEIGHTS, LaneBls::None, keys));
    genesis
}

fn spawn(home: &Path) -> anyhow::Result<Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(home.join("log"))
        .context("cannot open the log of a validator")?;
    let errors = log.try_clone().context("cannot open the log of a validator")?;
    let walras = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(walras);
    command.arg("node").arg("--home").arg(home).env("WALRAS_PASSPHRASE", PASSPHRASE);
    if std::env::var_os(KEEP_BLOCKS).is_none() {
        command.env(KEEP_BLOCKS, KEPT_BLOCKS.to_string());
    }
    command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().context("cannot start a validator's process")
}

/// Addresses for an interface: from `listen` on if those ports are free, otherwise any free ones.
pub fn door_addresses(listen: SocketAddr, count: usize) -> anyhow::Result<Vec<SocketAddr>> {
    let ports = (0..count as u16).map(|index| listen.port().checked_add(index));
    let wanted = ports.map(|port| port.map(|port| SocketAddr::new(listen.ip(), port))).collect::<Option<Vec<_>>>();
    let is_free = |wanted: &Vec<SocketAddr>| wanted.iter().all(|door| sockets::reserve_door(*door));
    match wanted.filter(|wanted| listen.port() != 0 && is_free(wanted)) {
        Some(wanted) => Ok(wanted),
        None => {
            let any = free_addresses(count, 1)?;
            Ok(any.iter().map(|address| SocketAddr::new(listen.ip(), address.port())).collect())
        }
    }
}

/// Addresses on this machine, each with `ports` consecutive free ports.
pub fn free_addresses(count: usize, ports: u16) -> anyhow::Result<Vec<SocketAddr>> {
    (0..count).map(|_| sockets::free_ports(ports).context("no ports are free on this machine")).collect()
}

/// Text as a string of TOML.
fn toml_string(text: &str) -> String {
    toml::Value::from(text).to_string()
}
