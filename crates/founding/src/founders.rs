//! The founders of a network of validators and their common settings: the section `consensus` of a genesis file.
//!
//! A genesis without this section is that of a chain with one node. With it, the chain's identity is
//! [`Founding::digest`], which every validator sends at the beginning of every connection: a validator whose settings
//! differ in anything but an address belongs to another network. Addresses are left out of the digest, so that one
//! may be corrected in a single validator's copy. The ledger's registry has no address of a founder either until its
//! account sets one.

use std::time::Duration;

use borsh::BorshSerialize;
use consensus::MEMBERS_MAX;
use consensus::{Chain, Index, Rules};
use ledger::{
    BLOCK_BYTES_MAX, Genesis, Member, Membership, Restart, RestartedLane, Schedule, Terms, VOTES_BYTES_MAX, votes_bytes,
};
use primitives::{Address, Amount, Digest, Fraction, PublicKey, is_network_address};
use replica::{EthereumSection, Lineage, Network, OwnKeys, PeerAddress};
use serde::{Deserialize, Serialize};

/// Bounds of the settings, so that a typing error does not create a network that cannot work.
const WINDOW_MAX: u64 = 64;
/// Windows from the drawing of a committee to the last height of the committee before.
const DELAY_WINDOWS: u64 = 2;
const PAYLOAD_BYTES: std::ops::RangeInclusive<usize> = 1 << 10..=64 << 20;
const EPOCH_HEIGHTS_MAX: u64 = 1_000_000_000;
const UNBONDING_EPOCHS_MAX: u64 = 10_000;
const TIME_MS: std::ops::RangeInclusive<u64> = 1..=60_000;

/// How blocks are agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, BorshSerialize)]
#[serde(rename_all = "lowercase")]
pub enum FoundingEngine {
    /// DBFT: superblocks of the sub-blocks of all validators.
    #[default]
    Dbft,
    /// Tendermint: blocks of one proposer each.
    Tendermint,
}

impl FoundingEngine {
    /// The default rules of networks with this engine.
    pub fn rules(self) -> Rules {
        match self {
            FoundingEngine::Dbft => Rules::default(),
            FoundingEngine::Tendermint => Rules::tendermint(),
        }
    }
}

/// A validator at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founder {
    /// The key for its signatures and its links.
    pub key: PublicKey,
    /// Host and port (UDP) at which the others reach it.
    pub address: String,
    /// The account that holds its stake and receives its rewards.
    pub account: Address,
    /// Its stake in units of the first asset.
    pub stake: Amount,
}

/// How committees change, and what validators earn and risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Succession {
    /// Heights from one drawing of a committee to the next; 0 if the founders stay forever.
    pub epoch_heights: u64,
    /// Size of a drawn committee.
    pub committee: u32,
    /// Minimum stake of a validator, in units.
    pub minimum_stake: Amount,
    /// Epochs for which a stake can still be punished after the last epoch in which it counted.
    pub unbonding_epochs: u64,
    /// Units paid to the proposer of a sub-block.
    pub reward: Amount,
    /// Units from which rewards are paid.
    pub reward_pool: Amount,
    /// The part of its stake that a validator loses if it signs contradictory statements.
    pub slash: Fraction,
}

/// The first validators and the common settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    /// How blocks are agreed on.
    pub engine: FoundingEngine,
    /// The founding validators, by index.
    pub validators: Vec<Founder>,
    /// How committees change.
    pub succession: Succession,
    /// The rules of consensus.
    pub rules: Rules,
    /// The unit of the round timers: about twice a round trip between the farthest validators.
    pub unit: Duration,
    /// How long to wait for missing sub-blocks once enough have arrived.
    pub grace: Duration,
    /// The interval after which an empty sub-block is proposed.
    pub heartbeat: Duration,
    /// The least time between two heights, of clocks and of blocks.
    pub interval: Duration,
    /// What the network restarted with, if it has.
    pub restarted: Option<Restarted>,
}

/// The beginning of a network that restarted from a state of an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// The restart number and the snapshot; with the first network's identity they make the new identity.
    pub restart: Restart,
    /// The height of the state.
    pub height: u64,
    /// The committee of the next height, from the state.
    pub keys: Vec<PublicKey>,
}

/// [`Restarted`] in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RestartEntry {
    number: u32,
    snapshot: String,
    height: u64,
    keys: Vec<String>,
    /// The accounts that took the seats, if they were named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    committee: Vec<String>,
    /// What the payment lane begins with, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<RestartLaneEntry>,
    /// The rules that it began with, if they are not those of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rules: Option<u32>,
}

/// [`RestartedLane`] in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RestartLaneEntry {
    list: String,
    members: Vec<Vec<String>>,
}

/// The section of the file, with defaults for omitted fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    engine: FoundingEngine,
    validators: Vec<FounderEntry>,
    /// Z; n−f by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enough: Option<usize>,
    #[serde(default)]
    fast_path: bool,
    /// The engine's default if omitted.
    #[serde(default)]
    window: Option<u64>,
    #[serde(default = "defaults::root_lag")]
    root_lag: u64,
    /// The engine's default if omitted.
    #[serde(default)]
    bench_after: Option<u32>,
    #[serde(default = "defaults::sub_block_bytes")]
    sub_block_bytes: usize,
    #[serde(default = "defaults::timer_unit_ms")]
    timer_unit_ms: u64,
    #[serde(default = "defaults::grace_ms")]
    grace_ms: u64,
    #[serde(default = "defaults::heartbeat_ms")]
    heartbeat_ms: u64,
    #[serde(default = "defaults::interval_ms")]
    interval_ms: u64,
    #[serde(default)]
    epoch_heights: u64,
    /// By default the number of founders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    committee: Option<u32>,
    /// By default a quarter of the smallest founder's stake, and at least a 1024th of all of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    minimum_stake: Option<String>,
    #[serde(default = "defaults::unbonding_epochs")]
    unbonding_epochs: u64,
    #[serde(default = "defaults::nothing")]
    reward: String,
    #[serde(default = "defaults::nothing")]
    reward_pool: String,
    #[serde(default = "defaults::slash")]
    slash: String,
    /// Only in a network that restarted from a state; `walras restart` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restart: Option<RestartEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FounderEntry {
    key: String,
    address: String,
    /// By default the key's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    stake: String,
}

mod defaults {
    use consensus::Rules;
    use primitives::Fraction;

    pub(super) fn root_lag() -> u64 {
        Rules::default().lag
    }

    pub(super) fn sub_block_bytes() -> usize {
        Rules::default().payload_bytes
    }

    pub(super) fn timer_unit_ms() -> u64 {
        200
    }

    pub(super) fn grace_ms() -> u64 {
        50
    }

    pub(super) fn heartbeat_ms() -> u64 {
        1_000
    }

    pub(super) fn interval_ms() -> u64 {
        500
    }

    pub(super) fn unbonding_epochs() -> u64 {
        2
    }

    pub(super) fn nothing() -> String {
        "0".into()
    }

    pub(super) fn slashed() -> Fraction {
        Fraction::power_of_two(4)
    }

    pub(super) fn slash() -> String {
        slashed().to_string()
    }
}

/// The field, and what is wrong with it.
type Fault = (String, String);

impl Founding {
    /// A network of these validators with the default settings.
    pub fn new(engine: FoundingEngine, validators: Vec<Founder>) -> Founding {
        let succession = Succession {
            epoch_heights: 0,
            committee: validators.len() as u32,
            minimum_stake: usual_minimum_stake(&validators),
            unbonding_epochs: defaults::unbonding_epochs(),
            reward: 0,
            reward_pool: 0,
            slash: defaults::slashed(),
        };
        Founding {
            engine,
            validators,
            succession,
            rules: engine.rules(),
            unit: Duration::from_millis(defaults::timer_unit_ms()),
            grace: Duration::from_millis(defaults::grace_ms()),
            heartbeat: Duration::from_millis(defaults::heartbeat_ms()),
            interval: Duration::from_millis(defaults::interval_ms()),
            restarted: None,
        }
    }

    /// The identity of the network that these validators and a genesis make; after a restart, that of the restarted
    /// network.
    pub fn digest(&self, genesis: &Genesis) -> Digest {
        let first = self.first_digest(genesis);
        self.restarted.as_ref().map_or(first, |restarted| restarted.restart.identity(&first))
    }

    /// The identity of the network when it was founded.
    pub fn first_digest(&self, genesis: &Genesis) -> Digest {
        // The protocol follows from the engine.
        let Rules { enough, fast, window, lag, bench_after, payload_bytes, protocol: _, begins: _ } = self.rules;
        let founder = |one: &Founder| (one.key, one.account, one.stake);
        let validators: Vec<(PublicKey, Address, Amount)> = self.validators.iter().map(founder).collect();
        let rules = (enough.map(|enough| enough as u64), fast, window, lag, bench_after, payload_bytes as u64);
        let times = [self.unit, self.grace, self.heartbeat, self.interval].map(|time| time.as_millis() as u64);
        let genesis = genesis.digest_without_validators();
        let all = borsh::to_vec(&(genesis, self.engine, validators, rules, times, self.succession));
        Digest::of("walras 2026 founding of a network v2", &all.expect("writing to memory cannot fail"))
    }

    /// The genesis with these validators in its ledger.
    pub fn found(&self, genesis: Genesis) -> Genesis {
        let Succession { epoch_heights: _, committee, minimum_stake, unbonding_epochs, reward, reward_pool, slash } =
            self.succession;
        let schedule = self.schedule();
        let network = self.digest(&genesis);
        let terms = Terms { network, schedule, committee, minimum_stake, unbonding_epochs, reward, slash };
        let founder = |one: &Founder| {
            let (account, key, stake) = (one.account, one.key, one.stake);
            Member { account, key, address: String::new(), stake }
        };
        let founders = self.validators.iter().map(founder).collect();
        Genesis { membership: Some(Membership { terms, reward_pool, founders }), ..genesis }
    }

    /// The index of the validator that has this key.
    pub fn index_of(&self, key: &PublicKey) -> Option<Index> {
        self.validators.iter().position(|one| one.key == *key).map(|index| index as Index)
    }

    /// The first epoch of the chain.
    pub fn chain(&self, genesis: &Genesis) -> Chain {
        if let Some(Restarted { height, keys, .. }) = &self.restarted {
            let (schedule, first) = (self.schedule(), height + 1);
            let epoch = schedule.epoch_of(first);
            let heights = first..=schedule.last_height(epoch);
            return Chain { genesis: self.digest(genesis), epoch, heights, keys: keys.clone() };
        }
        let keys = self.validators.iter().map(|one| one.key).collect();
        Chain { genesis: self.digest(genesis), epoch: 0, heights: 1..=self.schedule().last_height(0), keys }
    }

    /// The trust of a client that has only the genesis.
    pub fn lineage(&self, genesis: &Genesis) -> Lineage {
        let schedule = genesis.membership.as_ref().map_or(Schedule::default(), |membership| membership.terms.schedule);
        Lineage { schedule, lag: self.rules.lag, begins: self.rules.begins, chain: self.chain(genesis) }
    }

    /// When committees change. A committee begins two windows after its drawing, so that no validator works on a
    /// height that the others are not close to.
    fn schedule(&self) -> Schedule {
        Schedule { epoch_heights: self.succession.epoch_heights, delay: DELAY_WINDOWS * self.rules.window }
    }

    /// The network at its beginning, as the holder of a key sees it; the node is a follower if the key is no
    /// founder's.
    pub fn network(&self, genesis: &Genesis, own: OwnKeys, listen: std::net::SocketAddr) -> Network {
        let peer = |one: &Founder| PeerAddress { key: one.key, address: one.address.clone() };
        let mut peers: Vec<PeerAddress> = self.validators.iter().map(peer).collect();
        let key = own.votes.public();
        let me = self.index_of(&key).unwrap_or_else(|| {
            peers.push(PeerAddress { key, address: listen.to_string() });
            self.validators.len() as Index
        });
        Network {
            chain: self.chain(genesis),
            rules: self.rules,
            ledger_rules: genesis.rules,
            ethereum: EthereumSection::of(genesis.chain, &genesis.limits),
            me,
            own,
            listen,
            peers,
            committee_max: self.validators.len().max(self.succession.committee as usize),
            unit: self.unit,
            grace: self.grace,
            heartbeat: self.heartbeat,
            interval: self.interval,
        }
    }

    pub(crate) fn part(&self) -> Part {
        let founder = |one: &Founder| FounderEntry {
            key: one.key.to_string(),
            address: one.address.clone(),
            account: (one.account != one.key.address()).then(|| one.account.to_string()),
            stake: one.stake.to_string(),
        };
        let ms = |time: Duration| time.as_millis() as u64;
        Part {
            engine: self.engine,
            validators: self.validators.iter().map(founder).collect(),
            enough: self.rules.enough,
            fast_path: self.rules.fast,
            window: Some(self.rules.window),
            root_lag: self.rules.lag,
            bench_after: Some(self.rules.bench_after),
            sub_block_bytes: self.rules.payload_bytes,
            timer_unit_ms: ms(self.unit),
            grace_ms: ms(self.grace),
            heartbeat_ms: ms(self.heartbeat),
            interval_ms: ms(self.interval),
            epoch_heights: self.succession.epoch_heights,
            committee: Some(self.succession.committee),
            minimum_stake: Some(self.succession.minimum_stake.to_string()),
            unbonding_epochs: self.succession.unbonding_epochs,
            reward: self.succession.reward.to_string(),
            reward_pool: self.succession.reward_pool.to_string(),
            slash: self.succession.slash.to_string(),
            restart: self.restarted.as_ref().map(|Restarted { restart, height, keys }| RestartEntry {
                number: restart.number,
                snapshot: restart.snapshot.to_string(),
                committee: restart.committee.iter().map(Address::to_string).collect(),
                rules: restart.rules,
                height: *height,
                keys: keys.iter().map(PublicKey::to_string).collect(),
                lane: restart.lane.as_ref().map(|lane| RestartLaneEntry {
                    list: lane.list.to_string(),
                    members: lane.members.iter().map(|of| of.iter().map(PublicKey::to_string).collect()).collect(),
                }),
            }),
        }
    }
}

impl Part {
    /// Checks the section and converts it; otherwise names the wrong field and the remedy.
    pub(crate) fn read(self) -> Result<Founding, Fault> {
        let size = self.validators.len();
        within("validators", size, 1..=MEMBERS_MAX)?;
        let mut validators: Vec<Founder> = Vec::with_capacity(size);
        for (index, entry) in self.validators.iter().enumerate() {
            let one = founder(index, entry)?;
            if let Some(other) = validators.iter().position(|other| other.key == one.key) {
                return Err(at(index, "key", format!("validator {other} has it already; give each its own")));
            }
            validators.push(one);
        }
        let succession = self.succession(&validators)?;
        if let Some(enough) = self.enough {
            within("enough", enough, 1..=size)?;
        }
        let defaults = self.engine.rules();
        let window = self.window.unwrap_or(defaults.window);
        within("window", window, 1..=WINDOW_MAX)?;
        within("root_lag", self.root_lag, 1..=WINDOW_MAX)?;
        within("sub_block_bytes", self.sub_block_bytes, PAYLOAD_BYTES)?;
        if succession.epoch_heights > 0 && self.root_lag > DELAY_WINDOWS * window {
            let most = DELAY_WINDOWS * window;
            let why = format!("{}: choose at most {most}, or no committee certifies the next one", self.root_lag);
            return Err(("consensus.root_lag".into(), why));
        }
        check_sizes(self.sub_block_bytes as u64, size.max(succession.committee as usize) as u64, window)?;
        for (field, ms) in [
            ("timer_unit_ms", self.timer_unit_ms),
            ("grace_ms", self.grace_ms),
            ("heartbeat_ms", self.heartbeat_ms),
            ("interval_ms", self.interval_ms),
        ] {
            within(field, ms, TIME_MS)?;
        }
        let restarted = self.restart.map(restarted).transpose()?;
        let rules = Rules {
            begins: restarted.as_ref().map_or(0, |restarted| restarted.height),
            protocol: defaults.protocol,
            enough: self.enough,
            fast: self.fast_path,
            window,
            lag: self.root_lag,
            bench_after: self.bench_after.unwrap_or(defaults.bench_after),
            payload_bytes: self.sub_block_bytes,
        };
        Ok(Founding {
            engine: self.engine,
            validators,
            succession,
            rules,
            unit: Duration::from_millis(self.timer_unit_ms),
            grace: Duration::from_millis(self.grace_ms),
            heartbeat: Duration::from_millis(self.heartbeat_ms),
            interval: Duration::from_millis(self.interval_ms),
            restarted,
        })
    }
}

/// Converts the restart entry.
fn restarted(entry: RestartEntry) -> Result<Restarted, Fault> {
    let wrong = |field: &str, why: String| (format!("consensus.restart.{field}"), why);
    let snapshot =
        entry.snapshot.parse().map_err(|_| wrong("snapshot", format!("{:?} is not a digest", entry.snapshot)))?;
    let key = |text: &String| text.parse().map_err(|_| wrong("keys", format!("{text:?} is not a public key")));
    let keys: Vec<PublicKey> = entry.keys.iter().map(key).collect::<Result<_, _>>()?;
    if entry.number == 0 {
        return Err(wrong(
            "number",
            "0: restarts are counted from 1; take the genesis that `walras restart` wrote".into(),
        ));
    }
    let account = |text: &String| text.parse().map_err(|_| wrong("committee", format!("{text:?} is not an account")));
    let committee: Vec<Address> = entry.committee.iter().map(account).collect::<Result<_, _>>()?;
    let lane = entry.lane.as_ref().map(restarted_lane).transpose()?;
    within("restart.height", entry.height, 1..=consensus::HEIGHT_MAX)?;
    within("restart.keys", keys.len(), 1..=MEMBERS_MAX)?;
    Ok(Restarted {
        restart: Restart { number: entry.number, snapshot, committee, lane, rules: entry.rules },
        height: entry.height,
        keys,
    })
}

fn restarted_lane(entry: &RestartLaneEntry) -> Result<RestartedLane, Fault> {
    let wrong = |field: &str, text: &str, what| (format!("consensus.restart.lane.{field}"), format!("{text:?} {what}"));
    let list = entry.list.parse().map_err(|_| wrong("list", &entry.list, "is not a digest"))?;
    let key = |text: &String| text.parse().map_err(|_| wrong("members", text, "is not a public key"));
    let shards = |of: &Vec<String>| of.iter().map(key).collect::<Result<_, Fault>>();
    Ok(RestartedLane { list, members: entry.members.iter().map(shards).collect::<Result<_, Fault>>()? })
}

impl Part {
    fn succession(&self, founders: &[Founder]) -> Result<Succession, Fault> {
        let committee = self.committee.unwrap_or(founders.len() as u32);
        let minimum_stake = match &self.minimum_stake {
            Some(text) => number("minimum_stake", text)?,
            None => usual_minimum_stake(founders),
        };
        within("epoch_heights", self.epoch_heights, 0..=EPOCH_HEIGHTS_MAX)?;
        within("committee", committee, 1..=MEMBERS_MAX as u32)?;
        within("unbonding_epochs", self.unbonding_epochs, 0..=UNBONDING_EPOCHS_MAX)?;
        Ok(Succession {
            epoch_heights: self.epoch_heights,
            committee,
            minimum_stake,
            unbonding_epochs: self.unbonding_epochs,
            reward: number("reward", &self.reward)?,
            reward_pool: number("reward_pool", &self.reward_pool)?,
            slash: number("slash", &self.slash)?,
        })
    }
}

/// The proposals of a committee at a time must fit into a block and into a vote log.
fn check_sizes(sub_block_bytes: u64, members: u64, window: u64) -> Result<(), Fault> {
    let heights = Rules { window, ..Rules::default() }.horizon();
    let sizes = [
        ("a block", members.saturating_mul(sub_block_bytes), BLOCK_BYTES_MAX),
        ("a vote log", votes_bytes(heights, members, sub_block_bytes), VOTES_BYTES_MAX),
    ];
    let Some((what, needed, most)) = sizes.into_iter().find(|(_, needed, most)| needed > most) else { return Ok(()) };
    let why = format!(
        "{sub_block_bytes}: with {members} validators and a window of {window}, {what} may need {needed} bytes, and at \
         most {most} fit: lower it, or consensus.committee"
    );
    Err(("consensus.sub_block_bytes".into(), why))
}

/// A quarter of the smallest founder's stake, so that no stranger's pocket money makes a validator, and at least a
/// 1024th of all founders' stakes and one unit.
fn usual_minimum_stake(founders: &[Founder]) -> Amount {
    let staked: u128 = founders.iter().map(|founder| u128::from(founder.stake)).sum();
    let smallest = founders.iter().map(|founder| founder.stake).min().unwrap_or(0);
    u64::try_from(staked / 1_024).unwrap_or(Amount::MAX).max(smallest / 4).max(1)
}

fn number<T: std::str::FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|error| (format!("consensus.{field}"), format!("{text:?}: {error}")))
}

fn founder(index: usize, entry: &FounderEntry) -> Result<Founder, Fault> {
    let key: PublicKey = entry.key.parse().map_err(|error| at(index, "key", format!("{error}")))?;
    let stake = entry.stake.parse().ok().filter(|stake| *stake > 0);
    let stake = stake.ok_or_else(|| at(index, "stake", format!("{:?} is not a positive whole number", entry.stake)))?;
    let account =
        entry.account.as_ref().map(|text| text.parse().map_err(|error| at(index, "account", format!("{error}"))));
    let account = account.transpose()?.unwrap_or_else(|| key.address());
    if !is_network_address(&entry.address) {
        return Err(at(index, "address", format!("{:?} is not host:port, such as a.example:9100", entry.address)));
    }
    Ok(Founder { key, address: entry.address.clone(), account, stake })
}

fn at(index: usize, field: &str, message: String) -> Fault {
    (format!("consensus.validators[{index}].{field}"), message)
}

fn within<T: PartialOrd + std::fmt::Display>(
    field: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<(), Fault> {
    if range.contains(&value) {
        return Ok(());
    }
    Err((format!("consensus.{field}"), format!("{value}: choose from {} to {}", range.start(), range.end())))
}
