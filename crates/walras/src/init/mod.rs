//! `walras init`: a new node's home.

mod aside;
pub mod forks;
pub mod founding;
pub mod ports;
mod venue;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ::founding::Succession;
use anyhow::{Context, bail, ensure};
use ledger::{Genesis, Limits, Listing, ListingTerms, PoolTerms, VenueTerms};
use primitives::{Address, Amount, AssetId, Fraction, PublicKey};

use self::aside::Aside;
use self::founding::EngineName;
use self::ports::Ports;
use self::venue::FoundedVenue;
use crate::decimal::to_units;
use crate::keystore::{self, Passphrase};
use crate::lane;
use std::process::ExitCode;

/// The number of the demo's chain, which is that of all development chains.
pub const DEMO_CHAIN: u64 = ledger::DEVELOPERS_CHAIN;

/// Writes a new node's home.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras init --home ./exchange
  walras init --home ./exchange --asset USD:6 --asset EUR:6 --asset BTC:8 --supply 1000000
  walras init --home ./exchange --contracts --chain 70417 # with Ethereum transactions
  walras init --home ./exchange --contracts --chain 70417 --fork bpo1@100000 --fork bpo2@200000
  walras init --home ./exchange --venue                   # with a venue, which one command opens
  walras init --home ./exchange --genesis genesis.json    # join a chain that exists
  walras init --home ./network --validators 4             # the homes of four validators on this machine
  walras init --home ./network --validators 4 --lane      # the same, with a payment lane
  walras init --home ./second --validators 4 --base-port 20000 # beside it, on ports from 20000 on
  walras init --home ./network --validators 4 --listings  # assets are listed on the running chain
  walras init --home ./network --validators 4 --address a.example:9100 --address b.example:9100 \\
    --address c.example:9100 --address d.example:9100")]
pub struct Init {
    /// Directory to make.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    pub home: PathBuf,
    /// An asset, as symbol and decimals; the first pays fees.
    #[arg(long = "asset", value_name = "SYMBOL:DECIMALS", default_values = ["USD:6", "EUR:6", "BTC:8"])]
    assets: Vec<String>,
    /// Initial balance of the issuer in each asset.
    #[arg(long, default_value = "1000000")]
    supply: String,
    /// Number of the chain.
    #[arg(long, default_value_t = DEMO_CHAIN)]
    chain: u64,
    /// Fee of a transaction, in decimals of the first asset; the default is 0.0001, or its smallest unit if that is
    /// more.
    #[arg(long)]
    fee: Option<String>,
    /// Minimum units of an asset that an offer sells or asks for; at least 2 / (mu - epsilon).
    #[arg(long, default_value_t = ledger::LEAST_UNITS)]
    least_units: u64,
    /// Commission ε.
    #[arg(long, default_value = "2^-15")]
    epsilon: Fraction,
    /// Band μ.
    #[arg(long, default_value = "2^-10")]
    mu: Fraction,
    /// Execute Ethereum transactions. The chain needs a unique number (--chain), because wallets sign for it.
    #[arg(long)]
    contracts: bool,
    /// Gas of a block. By default what takes at most half a second of one core of this machine in the worst case, which
    /// is measured. With several machines give the value of the slowest.
    #[arg(long, value_name = "GAS", requires = "contracts")]
    block_gas: Option<u64>,
    /// A fork of Ethereum and the height of its first block, such as bpo1@1000; given once for each. Without it Osaka
    /// stands from the genesis on. Forks cannot be added later.
    #[arg(long = "fork", value_name = "FORK@HEIGHT", requires = "contracts")]
    forks: Vec<forks::ForkArg>,
    /// Use this genesis instead of making one.
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["assets", "supply", "chain", "fee", "least_units", "epsilon", "mu"])]
    #[arg(conflicts_with_all = ["contracts", "block_gas", "forks"])]
    genesis: Option<PathBuf>,
    /// Make the homes of this many validators, and the genesis that they share.
    #[arg(long, value_name = "N", conflicts_with = "genesis", value_parser = clap::value_parser!(u8).range(1..))]
    validators: Option<u8>,
    /// How validators agree on blocks; with one node and no validators, solo.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    /// Where the others reach a validator (UDP), host and port: given once for each validator, in order.
    #[arg(long = "address", value_name = "HOST:PORT", requires = "validators")]
    pub addresses: Vec<String>,
    /// The first port of a network on this machine: all others count up from it. They are those of HTTP, then of
    /// Ethereum's JSON-RPC, of the other validators, of venues and of the payment lane.
    #[arg(long, value_name = "PORT", requires = "validators", conflicts_with = "addresses",
        value_parser = clap::value_parser!(u16).range(1..))]
    base_port: Option<u16>,
    /// Stake of each validator, in decimals of the first asset, such as 25000. The default is a tenth of the supply, so
    /// that nobody has a large part of all stakes by accident.
    #[arg(long, value_name = "AMOUNT", requires = "validators")]
    stake: Option<String>,
    /// Found a chain with a payment lane, whose committee is the validators (or this node alone); their lane keys are
    /// made.
    #[arg(long, conflicts_with = "genesis")]
    pub lane: bool,
    /// Constant-product pools, which anybody opens and which trade in every batch. Whoever has enormous units of an
    /// asset can open pools far from every price, beside which batches of their group may not be full.
    #[arg(long, conflicts_with = "genesis")]
    pub pools: bool,
    /// Venues of continuous markets. The first one is prepared in the first validator's home, or in that of the only
    /// node: its keys are made, its operator has units for fees, and its node runs it. The printed command opens it.
    #[arg(long, conflicts_with = "genesis")]
    pub venue: bool,
    /// Everybody lists assets on the running chain, for ten million fees at first. Without it nobody does.
    #[arg(long, conflicts_with = "genesis")]
    pub listings: bool,
    /// The committee makes a sealing key: as few seats as are safe open what is sealed to it, or a quorum.
    #[arg(long, value_name = "THRESHOLD", requires = "validators", conflicts_with = "genesis",
        value_parser = ["fewest", "quorum"])]
    pub seals: Option<String>,
    /// Blocks of an epoch of the payment lane. Money there can be spent in its own epoch and the next one, and must
    /// be renewed by then; validators keep records of spent money for three epochs.
    #[arg(long, value_name = "BLOCKS", default_value_t = lane::EPOCH_HEIGHTS, requires = "lane",
        value_parser = clap::value_parser!(u64).range(2..=u64::from(u32::MAX)))]
    pub lane_epoch_heights: u64,
    /// Shards of each member of the payment lane. Each owner's money is in one of them: more of them sign more.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "lane",
        value_parser = clap::value_parser!(u16).range(1..=payments::SHARDS_MAX as i64))]
    pub shards: u16,
    /// Have the shards run in processes of their own: see `walras shard`.
    #[arg(long, requires = "lane")]
    pub apart: bool,
    /// BLS keys of the payment lane, from its second epoch on, for certificates of constant size.
    #[arg(long, value_enum, default_value_t = lane::BlsKeys::None, requires = "lane")]
    pub lane_bls: lane::BlsKeys,
    /// Least milliseconds between two blocks of the validators, by their clocks and by the time of blocks: what lasts
    /// for a number of heights lasts for as many of these.
    #[arg(long, default_value_t = 500, requires = "validators",
        value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub interval_ms: u64,
    #[command(flatten)]
    pub succession: SuccessionOptions,
    #[command(flatten)]
    pub passphrase: Passphrase,
}

/// How other validators can replace the founders.
#[derive(clap::Args)]
pub struct SuccessionOptions {
    /// Blocks from one drawing of a committee to the next; 0 keeps the first validators for ever. Who follows
    /// reconnects at each: make it an hour or more, never less than a minute.
    #[arg(long, default_value_t = 0, requires = "validators")]
    epoch_heights: u64,
    /// Number of validators drawn by stake; by default as many as at the start.
    #[arg(long, requires = "validators", value_parser = clap::value_parser!(u32).range(1..=256))]
    committee: Option<u32>,
    /// Minimum that a validator stakes, in decimals of the first asset; by default a quarter of the first validators'
    /// stake, and at least a 1024th of all of theirs.
    #[arg(long, value_name = "AMOUNT", requires = "validators")]
    minimum_stake: Option<String>,
    /// Epochs for which a stake can be punished after the last epoch in which it counted; then it is paid back.
    #[arg(long, default_value_t = 2, requires = "validators")]
    unbonding_epochs: u64,
    /// What the proposer of a sub-block is paid, in decimals of the first asset.
    #[arg(long, value_name = "AMOUNT", default_value = "0", requires = "validators")]
    reward: String,
    /// What rewards are paid from, in decimals of the first asset.
    #[arg(long, value_name = "AMOUNT", default_value = "0", requires = "validators")]
    reward_pool: String,
    /// The part of its stake that a validator loses if it contradicts itself.
    #[arg(long, default_value = "2^-4", requires = "validators")]
    slash: Fraction,
}

impl SuccessionOptions {
    /// The given options, with what follows from the founders where nothing was given. Amounts have the decimals of
    /// the first asset.
    pub fn over(&self, founders: Succession, decimals: u8) -> anyhow::Result<Succession> {
        let minimum_stake = match &self.minimum_stake {
            Some(minimum) => positive(minimum, decimals).context("--minimum-stake")?,
            None => founders.minimum_stake,
        };
        Ok(Succession {
            epoch_heights: self.epoch_heights,
            committee: self.committee.unwrap_or(founders.committee),
            minimum_stake,
            unbonding_epochs: self.unbonding_epochs,
            reward: to_units(&self.reward, decimals).context("--reward")?,
            reward_pool: to_units(&self.reward_pool, decimals).context("--reward-pool")?,
            slash: self.slash,
        })
    }
}

/// The part of the supply that each founder stakes if nothing is said: with four of them, two tenths of the supply
/// are needed for a third of all stakes.
const STAKE_OF_SUPPLY: Amount = 10;

/// An amount above zero, in units.
fn positive(text: &str, decimals: u8) -> anyhow::Result<Amount> {
    let units = to_units(text, decimals)?;
    ensure!(units > 0, "{text:?} is nothing: give a positive amount");
    Ok(units)
}

/// The home of one node.
struct Made {
    genesis: Genesis,
    issuer: Option<Address>,
    /// The key of a node that joins validators.
    validator: Option<PublicKey>,
    venue: Option<FoundedVenue>,
}

impl Init {
    pub fn run(mut self, json: bool) -> anyhow::Result<ExitCode> {
        let home = self.home.clone();
        self.shards()?.check(self.lane_bls)?;
        let engine = self.engine.unwrap_or(if self.validators.is_some() { EngineName::Dbft } else { EngineName::Solo });
        let founders = match (self.validators, engine.engine()) {
            (Some(size), Some(engine)) => Some((engine, size)),
            (Some(_), None) => bail!("--engine solo is for one node: leave --validators out"),
            (None, Some(_)) => bail!("this engine needs validators: give their number with --validators"),
            (None, None) => None,
        };
        let aside = Aside::of(&home)?;
        self.home = aside.path().into();
        if let Some((engine, size)) = founders {
            let founded = founding::found(&self, engine, size)?;
            aside.finish()?;
            founded.report(&home, json);
        } else {
            let made = self.write()?;
            aside.finish()?;
            made.report(&home, json);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the home of one node.
    fn write(&self) -> anyhow::Result<Made> {
        let home = &self.home;
        let file = |name: &str| home.join(name);
        let mut issuer = None;
        let (genesis, founding) = match &self.genesis {
            Some(path) => ::founding::genesis_file::read_with_founding(path)?,
            None => {
                let key = keystore::create(&file("issuer-key.json"), &self.passphrase)?;
                issuer = Some(key.public().address());
                (self.make(key.public().address())?, None)
            }
        };
        let (mut genesis, config) = match self.lane {
            true => self.found_lane(genesis)?,
            false => (genesis, node::config::TEMPLATE.into()),
        };
        std::fs::write(file("walras.toml"), config).with_context(|| home.display().to_string())?;
        let fees = genesis.fee.saturating_mul(self::founding::FOUNDER_FEES);
        let found = || FoundedVenue::make(home, &mut genesis, fees, &self.passphrase.read_new()?);
        let venue = self.venue.then(found).transpose()?;
        genesis.issued_assets()?;
        ::founding::genesis_file::write_with_founding(&file("genesis.json"), &genesis, founding.as_ref())?;
        let validator = founding.map(|_| founding::make_newcomer(home, &self.passphrase)).transpose()?;
        Ok(Made { genesis, issuer, validator, venue })
    }

    /// Founds the lane of a node that is its whole committee and makes its keys. Also returns the configuration of
    /// its home.
    fn found_lane(&self, genesis: Genesis) -> anyhow::Result<(Genesis, String)> {
        let passphrase = self.passphrase.read_new()?;
        let key = keystore::create_under(&self.home.join(lane::LANE_KEY_FILE), &passphrase)?.public();
        let data = self.home.join("data");
        store::RealDisk::new(&data).with_context(|| data.display().to_string())?;
        let founded = self.shards()?;
        let shards = lane::make_first_keys(&self.home, founded.count, &passphrase)?;
        let addresses = lane::addresses(&[], 1, founded)?;
        let apart = founded.set_apart(&self.home, &addresses[0], &passphrase)?;
        let config = lane::configure(node::config::TEMPLATE, 0, &addresses, &apart);
        let member = lane::FoundingMember { registrar: key, shards, account: None };
        let lane = Some(lane::terms(&genesis, self.lane_epoch_heights, self.lane_bls.into(), &[member]));
        let mut genesis = Genesis { lane, ..genesis };
        // The account of the lane key pays for registrations and votes.
        // Where nothing costs a fee, a unit makes it exist: without it no keys are registered, and no epoch ends.
        let fees = genesis.fee.saturating_mul(founding::FOUNDER_FEES).max(1);
        genesis.balances.push((key.address(), AssetId(0), fees));
        founded.make_first_logs(&self.home, 0, &genesis)?;
        Ok((genesis, config))
    }

    /// How the shards of a lane are founded.
    ///
    /// # Errors
    /// If there are too few ports.
    pub fn shards(&self) -> anyhow::Result<lane::FoundingShards> {
        Ok(lane::FoundingShards { count: self.shards, apart: self.apart, ports: self.ports()? })
    }

    /// Where the first validator listens.
    fn ports(&self) -> anyhow::Result<Ports> {
        let shards = if self.lane { self.shards } else { 0 };
        match (self.base_port, self.validators) {
            (Some(base), Some(size)) => Ports::counted_from(base, size, shards),
            _ => Ok(Ports::default()),
        }
    }

    /// What each founder stakes, in units of the first asset.
    pub fn founders_stake(&self, decimals: u8) -> anyhow::Result<Amount> {
        match &self.stake {
            Some(stake) => positive(stake, decimals).context("--stake"),
            None => Ok((to_units(&self.supply, decimals).context("--supply")? / STAKE_OF_SUPPLY).max(1)),
        }
    }

    /// The genesis of the ledger that the arguments describe.
    pub fn make(&self, issuer: Address) -> anyhow::Result<Genesis> {
        let mut assets: Vec<Listing> = Vec::new();
        let mut balances = Vec::new();
        for (number, text) in self.assets.iter().enumerate() {
            let (symbol, decimals) = text
                .split_once(':')
                .with_context(|| format!("--asset {text:?}: write SYMBOL:DECIMALS, such as EUR:2"))?;
            let wrong = || format!("--asset {text:?}: decimals are a whole number from 0 to 18, as in EUR:2");
            let decimals: u8 = decimals.parse().ok().with_context(wrong)?;
            assets.push(Listing { least_units: self.least_units, ..Listing::new(symbol, decimals, issuer) });
            balances.push((issuer, AssetId(number as u32), to_units(&self.supply, decimals).context("--supply")?));
        }
        let decimals = assets.first().context("--asset: name at least one")?.decimals;
        let fee = self.fee.as_ref().map(|fee| to_units(fee, decimals)).transpose().context("--fee")?;
        Ok(Genesis {
            chain: self.chain,
            fee: fee.unwrap_or_else(|| ledger::usual_fee(decimals)),
            epsilon: self.epsilon,
            mu: self.mu,
            limits: self.limits()?,
            assets,
            balances,
            pools: self.pools.then(PoolTerms::default),
            venues: self.venue.then(VenueTerms::default),
            listings: if self.listings { ListingTerms::priced() } else { ListingTerms::default() },
            forks: forks::schedule(&self.forks)?,
            ..Genesis::default()
        })
    }

    fn limits(&self) -> anyhow::Result<Limits> {
        let limits = Limits::default();
        if !self.contracts {
            return Ok(limits);
        }
        ensure!(
            self.chain != DEMO_CHAIN,
            "--contracts: {DEMO_CHAIN} is the number of all development chains, and transactions signed for it can be \
             replayed here; choose another number with --chain"
        );
        let founders = self.validators.unwrap_or(1).into();
        let committee = self.succession.committee.unwrap_or(founders);
        Ok(match self.block_gas {
            Some(gas) => limits.with_block_gas(committee, gas),
            None => measured_gas(limits, committee),
        })
    }
}

impl Made {
    fn report(&self, home: &Path, json: bool) {
        let Made { genesis, issuer, validator, venue } = self;
        let key = home.join("issuer-key.json");
        let digest = genesis.digest();
        if json {
            let made = serde_json::json!({
                "home": home,
                "chain": genesis.chain,
                "genesis": digest.to_string(),
                "issuer": issuer.map(|address| address.to_string()),
                "validator_key": validator.map(|key| key.to_string()),
                "venue": venue.as_ref().map(|venue| venue.to_json(&key)),
            });
            println!("{made}");
            return;
        }
        println!("Home       {}", home.display());
        println!("Chain      {}", genesis.chain);
        println!("Genesis    {digest}");
        if let Some(issuer) = issuer {
            println!("Issuer     {issuer} (key in {})", key.display());
        }
        if let Some(key) = validator {
            println!("Validator  {key} (it follows until an account has staked for it: walras wallet stake)");
        }
        println!("\nStart it:  walras node --home {}", home.display());
        venue.iter().for_each(|venue| venue.report(&key));
    }
}

/// Seconds that one core may spend on the contracts of a block, in the worst case.
const CONTRACT_SECONDS: f64 = 0.5;

/// The gas of a block by the slowest gas of this machine, which is said.
fn measured_gas(limits: Limits, committee: u32) -> Limits {
    let slowest = gas::slowest_gas();
    let fitting = (CONTRACT_SECONDS * 1e9 / slowest.ns) as u64;
    let limits = limits.with_block_gas(committee, fitting.min(ledger::USUAL_BLOCK_GAS));
    let (gas, seconds) = (limits.block_gas, slowest.ns * limits.block_gas as f64 / 1e9);
    eprintln!(
        "block_gas {gas}: the slowest gas of this machine ({}) takes {:.1} ns, so a block takes one core {seconds:.1} \
         s at most; `walras-lab bench hostile` searches longer, --block-gas sets another value",
        slowest.program, slowest.ns
    );
    limits
}

/// Makes a directory that only its owner can access, unless it is a home already.
pub fn make_home(home: &Path) -> anyhow::Result<()> {
    ensure!(!home.join("genesis.json").exists(), "{} is a home already; choose another --home", home.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home).with_context(|| home.display().to_string())
}
