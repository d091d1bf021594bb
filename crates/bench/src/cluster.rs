//! Validators in one process, joined by a [`Switch`]: for measurements and tests on real sockets and disks.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use consensus::{ALL_HEIGHTS, Chain, Rules};
use kernel::Dice;
use ledger::{Genesis, LaneTerms, Limits, Listing};
use node::{Config, EthereumSection, Exchange, ExchangeError, Network, OwnKeys, PeerAddress, ReplicaError};
use primitives::{Address, AssetId, Body, Digest, Fraction, Operation, Price, SecretKey, Transaction};
use rayon::prelude::*;
use sockets::free_address;
use store::StoreError;

use crate::switch::Switch;

/// The chain number.
const CHAIN: u64 = 1;
const ASSETS: u32 = 20;
const BALANCE: u64 = 1 << 40;
/// Maximum time for a stopped validator to release its files.
const PATIENCE: Duration = Duration::from_secs(30);

/// The settings of a cluster's validators.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Number of validators.
    pub validators: usize,
    /// The rules that all follow.
    pub rules: Rules,
    /// The configuration of each.
    pub config: Config,
    /// The unit of the timers of rounds.
    pub unit: Duration,
    /// How long the engine waits for absent sub-blocks.
    pub grace: Duration,
    /// Number of accounts that trade.
    pub traders: u64,
    /// The limits in the genesis.
    pub limits: Limits,
    /// Ethereum accounts that can pay for much gas.
    pub rich: Vec<Address>,
    /// The payment lane, if there is one; its shards are started separately.
    pub lane: Option<LaneTerms>,
}

impl ClusterSettings {
    /// Settings for one machine.
    pub fn local(validators: usize) -> ClusterSettings {
        let mut config = Config::default();
        config.blocks.interval_ms = 50;
        config.blocks.threads = 1;
        ClusterSettings {
            validators,
            rules: Rules::default(),
            config,
            unit: Duration::from_millis(200),
            grace: Duration::from_millis(50),
            traders: 20_000,
            limits: Limits::default(),
            rich: Vec::new(),
            lane: None,
        }
    }
}

/// The validators and the switch between them. A stopped validator is `None`.
pub struct Cluster {
    settings: ClusterSettings,
    directory: PathBuf,
    networks: Vec<Network>,
    genesis: Genesis,
    /// The links.
    pub switch: Switch,
    /// The validators by index.
    pub nodes: Vec<Option<Exchange>>,
}

fn secret(index: usize) -> SecretKey {
    SecretKey::from_seed(std::array::from_fn(|at| if at == 0 { index as u8 } else { 0x77 }))
}

/// The key of an account that trades.
pub(crate) fn trader(index: u64) -> SecretKey {
    let mut seed = [0x55; 32];
    seed[..8].copy_from_slice(&index.to_le_bytes());
    SecretKey::from_seed(seed)
}

impl Cluster {
    /// Starts validators with homes in a directory.
    ///
    /// # Errors
    /// [`ExchangeError`] if a validator does not start.
    pub fn start(settings: ClusterSettings, directory: &Path) -> Result<Cluster, ExchangeError> {
        let io = |error| ExchangeError::directory("the sockets of a cluster", error);
        let listen: Vec<SocketAddr> =
            (0..settings.validators).map(|_| free_address()).collect::<Result<_, _>>().map_err(io)?;
        let switch = Switch::start(&listen, 1).map_err(io)?;
        let keys: Vec<_> = (0..settings.validators).map(|index| secret(index).public()).collect();
        let genesis = genesis(&settings);
        // Without a registry the genesis determines the network's identity.
        let identity = genesis.digest();
        let network = |me: usize| {
            let address = |to: usize| if to == me { listen[to] } else { switch.address(me, to) };
            Network {
                chain: Chain { genesis: identity, epoch: 0, heights: ALL_HEIGHTS, keys: keys.clone() },
                rules: settings.rules,
                ledger_rules: ledger::RULES_NEWEST,
                ethereum: EthereumSection::of(CHAIN, &settings.limits),
                me: me as u8,
                own: OwnKeys::one(secret(me)),
                listen: listen[me],
                peers: keys
                    .iter()
                    .enumerate()
                    .map(|(to, key)| PeerAddress { key: *key, address: address(to).to_string() })
                    .collect(),
                committee_max: settings.validators,
                unit: settings.unit,
                grace: settings.grace,
                heartbeat: Duration::from_secs(1),
                interval: Duration::from_millis(settings.config.blocks.interval_ms),
            }
        };
        let networks = (0..settings.validators).map(network).collect();
        let nodes = (0..settings.validators).map(|_| None).collect();
        let (validators, directory) = (settings.validators, directory.to_path_buf());
        let mut cluster = Cluster { settings, directory, networks, genesis, switch, nodes };
        for index in 0..validators {
            node::validator::create_votes(&cluster.home(index))?;
            cluster.start_one(index)?;
        }
        Ok(cluster)
    }

    /// The home of a validator.
    pub fn home(&self, index: usize) -> PathBuf {
        self.directory.join(index.to_string())
    }

    /// Starts a stopped validator.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub fn start_one(&mut self, index: usize) -> Result<(), ExchangeError> {
        let begun = Instant::now();
        loop {
            let network = self.networks[index].clone();
            match Exchange::start(self.settings.config.clone(), &self.genesis, &self.home(index), Some(network)) {
                // A checkpoint that was being written when it stopped is finished first.
                Err(ExchangeError::Replica(ReplicaError::Store(StoreError::Locked(_))))
                    if begun.elapsed() < PATIENCE =>
                {
                    std::thread::sleep(Duration::from_millis(50));
                }
                started => {
                    self.nodes[index] = Some(started?);
                    return Ok(());
                }
            }
        }
    }

    /// The identity of the network, for which transactions are signed.
    pub fn identity(&self) -> Digest {
        self.genesis.digest()
    }

    /// The setup of a validator, for an impostor that takes its place.
    pub fn network(&self, index: usize) -> &Network {
        &self.networks[index]
    }

    /// The running validators.
    pub fn running(&self) -> impl Iterator<Item = &Exchange> {
        self.nodes.iter().flatten()
    }

    /// Whether the running validators have applied the same blocks.
    pub fn agrees(&self) -> bool {
        let blocks: Vec<_> = self.running().map(|node| node.read(|ledger| ledger.last_block())).collect();
        blocks.windows(2).all(|two| two[0] == two[1])
    }
}

fn genesis(settings: &ClusterSettings) -> Genesis {
    let issuer = Address([1; 20]);
    let addresses: Vec<Address> =
        (0..settings.traders).into_par_iter().map(|index| trader(index).public().address()).collect();
    let balance =
        |account: Address| (0..ASSETS).map(move |asset| (account, AssetId(asset), BALANCE / u64::from(ASSETS)));
    let rich = settings.rich.iter().map(|account| (*account, AssetId(0), BALANCE));
    Genesis {
        chain: CHAIN,
        fee: 0,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: (0..ASSETS).map(|asset| Listing::new(format!("A{asset:02}"), 2, issuer)).collect(),
        balances: addresses.into_iter().flat_map(balance).chain(rich).collect(),
        limits: settings.limits,
        lane: settings.lane.clone(),
        ..Genesis::default()
    }
}

/// A transaction of an account that trades.
pub(crate) fn signed(network: &Digest, index: u64, sequence: u64, until: u64, operation: Operation) -> Transaction {
    let key = trader(index);
    Body { chain: CHAIN, account: key.public().address(), sequence, until, operation }.sign(network, &key)
}

/// Offers signed for a network, with the accounts in turn, that ask for one and a half times what is usual or more,
/// and so stay in the book.
pub fn resting(network: &Digest, traders: u64, from: u64, count: u64) -> Vec<Transaction> {
    let one = |number: u64| {
        let (key, mut random) = (trader(number % traders), Dice::new(number));
        let sell = random.below(u64::from(ASSETS)) as u32;
        let buy = (sell + 1 + random.below(u64::from(ASSETS) - 1) as u32) % ASSETS;
        let limit = Price::from_f64(1.5 + random.unit()).expect("a price near one");
        let operation = Operation::offer(AssetId(sell), AssetId(buy), 5_000, limit);
        let account = key.public().address();
        Body { chain: CHAIN, account, sequence: number / traders + 1, until: 50_000, operation }.sign(network, &key)
    };
    (from..from + count).into_par_iter().map(one).collect()
}

/// Transactions signed for a network, with the accounts in turn: three offers near par, then a payment.
pub fn transactions(network: &Digest, traders: u64, from: u64, count: u64) -> Vec<Transaction> {
    let one = |number: u64| {
        let mut random = Dice::new(number);
        let key = trader(number % traders);
        let sell = random.below(u64::from(ASSETS)) as u32;
        let buy = (sell + 1 + random.below(u64::from(ASSETS) - 1) as u32) % ASSETS;
        let amount = 5_000 + random.below(100_000);
        let operation = if number % 4 == 3 {
            Operation::Pay { to: Address([random.below(255) as u8; 20]), asset: AssetId(sell), amount }
        } else {
            let limit = Price::from_f64(0.97 + 0.06 * random.unit()).expect("a price near one");
            Operation::offer(AssetId(sell), AssetId(buy), amount, limit)
        };
        let account = key.public().address();
        Body { chain: CHAIN, account, sequence: number / traders + 1, until: 50_000, operation }.sign(network, &key)
    };
    (from..from + count).into_par_iter().map(one).collect()
}
