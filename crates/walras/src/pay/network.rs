//! The lane of a purse: pinned when the purse is made, so that no node can substitute other validators later.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, ensure};
use api::{LaneAssetBody, LaneBoardBody, LaneBody, LaneRegistrationBody};
use ledger::Ledger;
use payments::{AssetRule, HomeEpoch, LaneCommittee, LaneRegistration, LaneRules, with_told_board};
use primitives::{Amount, AssetId, Digest, PublicKey};

use super::ledger_trust::LedgerTrust;
use super::pinned::{PinnedLane, PinnedMoney};
use super::registrations::{registration, registration_body};
use crate::decimal::{from_units, to_units};
use crate::durable::write_durable;
use crate::wallet::server::Server;

/// An asset of the lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneMoney {
    pub asset: AssetId,
    pub symbol: String,
    pub decimals: u8,
    pub rule: AssetRule,
}

impl LaneMoney {
    /// An amount in decimals with its symbol.
    pub fn money(&self, units: Amount) -> String {
        format!("{} {}", from_units(units, self.decimals), self.symbol)
    }
}

/// Keys of lane epochs by epoch and member: those that the ledger has registered.
type EpochKeys = BTreeMap<(HomeEpoch, u8), LaneRegistration>;

/// Number of epochs whose keys are kept: those whose receipts may still have value, and some more.
const EPOCHS_KEPT: HomeEpoch = 16;
/// Proved keys of lane epochs. Files of earlier versions have another name, since nothing proved their keys.
pub const EPOCHS: &str = "proved-epochs.json";
const BOARDS: &str = "boards.json";

/// What was learned about lane epochs.
#[derive(Debug, Default)]
struct Learned {
    keys: EpochKeys,
    /// The boards on which members made group keys, in hexadecimal.
    boards: BTreeMap<HomeEpoch, String>,
    /// Committees whose boards were checked.
    checked: BTreeMap<HomeEpoch, LaneCommittee>,
}

/// The constants of a lane, and what was learned about its epochs.
#[derive(Clone, Debug)]
pub struct LaneNetwork {
    /// The network identity that is part of everything signed.
    pub id: Digest,
    /// The keys of each member's shards in the first epoch.
    pub members: Vec<Vec<PublicKey>>,
    /// For each member the key that registers its keys of later epochs; empty if keys do not change.
    pub registrars: Vec<PublicKey>,
    pub assets: Vec<LaneMoney>,
    /// What proves the keys of later epochs.
    pub ledger: LedgerTrust,
    /// Shared by all clones.
    learned: Arc<Mutex<Learned>>,
    /// The folder in which learned keys are stored.
    folder: Option<PathBuf>,
}

impl PartialEq for LaneNetwork {
    /// Whether both pin the same lane.
    fn eq(&self, other: &LaneNetwork) -> bool {
        let pinned = |of: &LaneNetwork| PinnedLane { validators: None, ..of.encode() };
        pinned(self) == pinned(other)
    }
}

impl LaneNetwork {
    /// Reads it from a genesis file of a trusted source.
    pub fn of_genesis(path: &Path) -> anyhow::Result<LaneNetwork> {
        let (genesis, founding) = ::founding::genesis_file::read_with_founding(path)?;
        let state = Ledger::new(&genesis)?;
        let lane = state.lane().with_context(|| format!("{}: this chain has no payment lane", path.display()))?;
        let money = |entry: &ledger::LaneAsset| {
            let listing = &genesis.assets[entry.asset.0 as usize];
            LaneMoney {
                asset: entry.asset,
                symbol: listing.symbol.clone(),
                decimals: listing.decimals,
                rule: AssetRule { least_units: entry.least_units, fee: entry.fee },
            }
        };
        let (terms, ledger) = (lane.terms(), LedgerTrust::of_genesis(&genesis, founding.as_ref()));
        let assets = terms.assets.iter().map(money).collect();
        // The first committee of a restarted network has keys of its own.
        let restarted = founding.and_then(|founding| founding.restarted?.restart.lane);
        let members = restarted.map_or_else(|| terms.members.clone(), |lane| lane.members);
        Ok(LaneNetwork { ledger, ..LaneNetwork::new(lane.network(), members, terms.registrars.clone(), assets) })
    }

    /// Reads it from a node, which the purse trusts with it, as it trusts it with the validators of the chain.
    pub fn of_server(server: &Server) -> anyhow::Result<LaneNetwork> {
        let lane: LaneBody = server.node().get("/v1/lane").context("cannot get the lane from the node")?;
        let listed = server.node().assets()?;
        let money = |entry: &LaneAssetBody| {
            let known = listed.find(&entry.asset)?;
            let units =
                |text: &str| text.parse::<Amount>().context("invalid amount in the node's answer about the lane");
            Ok(PinnedMoney {
                asset: known.asset.0,
                symbol: known.symbol.clone(),
                decimals: known.decimals,
                least_units: units(&entry.least_units)?,
                fee: units(&entry.fee)?,
            })
        };
        let assets = lane.assets.iter().map(money).collect::<anyhow::Result<_>>()?;
        let LaneBody { network, members, registrars, .. } = lane;
        let network = LaneNetwork::parse(&PinnedLane { network, members, registrars, assets, validators: None })?;
        let ledger = LedgerTrust::of_server(server, &network.id)?;
        Ok(LaneNetwork { ledger, ..network })
    }

    /// A lane whose ledger proves nothing.
    pub fn new(
        id: Digest,
        members: Vec<Vec<PublicKey>>,
        registrars: Vec<PublicKey>,
        assets: Vec<LaneMoney>,
    ) -> LaneNetwork {
        let ledger = LedgerTrust::Unknown;
        LaneNetwork { id, members, registrars, assets, ledger, learned: Arc::default(), folder: None }
    }

    /// Adds what was learned before from this folder, and stores there what is learned later.
    pub fn kept_in(mut self, folder: &Path) -> anyhow::Result<LaneNetwork> {
        let path = folder.join(EPOCHS);
        if path.exists() {
            let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
            let damaged = || format!("{} is damaged: remove it, and it is fetched from a node again", path.display());
            let known: Vec<LaneRegistrationBody> = serde_json::from_slice(&text).with_context(damaged)?;
            for one in known {
                self.admit(registration(&one).with_context(damaged)?).with_context(damaged)?;
            }
        }
        let path = folder.join(BOARDS);
        if path.exists() {
            let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
            let damaged = || format!("{} is damaged: remove it, and it is fetched from a node again", path.display());
            self.known().boards = serde_json::from_slice(&text).with_context(damaged)?;
        }
        self.folder = Some(folder.into());
        Ok(self)
    }

    /// Learns the group keys of the epochs that a node lists. The node cannot invent one: members have signed their
    /// dealings.
    fn learn_boards(&self, server: &Server, lane: &LaneBody) -> anyhow::Result<()> {
        let mut is_new = false;
        for &epoch in &lane.group_keys {
            if self.known().boards.contains_key(&epoch) {
                continue;
            }
            // The board may be discarded by now; without it aggregates are used.
            let told: LaneBoardBody = match server.node().get(&format!("/v1/lane/boards/{epoch}")) {
                Err(error) if error.code().is_some() => continue,
                told => told?,
            };
            let board = told.board.trim_start_matches("0x").to_string();
            let committee = with_board(self.plain_committee(epoch), &board).with_context(|| {
                format!("the node's group key of lane epoch {epoch} is not that of its members: give another --server")
            })?;
            let mut known = self.known();
            known.checked.insert(epoch, committee);
            is_new |= known.boards.insert(epoch, board).is_none();
        }
        if let (true, Some(folder)) = (is_new, &self.folder) {
            let mut known = self.known();
            let last = known.boards.last_key_value().map_or(0, |(epoch, _)| *epoch);
            known.boards = known.boards.split_off(&last.saturating_sub(EPOCHS_KEPT));
            write_durable(&folder.join(BOARDS), serde_json::to_string_pretty(&known.boards)?.as_bytes())?;
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts proved keys of a member in an epoch, if its registrar has signed them.
    fn admit(&self, registration: LaneRegistration) -> anyhow::Result<()> {
        let registrar =
            self.registrars.get(usize::from(registration.member)).context("the keys belong to no member")?;
        registration.verify(&self.id, registrar)?;
        let key = (registration.epoch, registration.member);
        self.known().keys.entry(key).or_insert(registration);
        Ok(())
    }

    /// Learns the keys of epochs that have begun from a node's answer about the lane. The ledger proves them: a
    /// registrar may have signed other keys, too. A single node cannot prove them, but it cannot add any either that
    /// the pinned registrars have not signed.
    fn learn(&self, server: &Server, lane: &LaneBody) -> anyhow::Result<()> {
        if let Some(folder) = &self.folder {
            self.ledger.keep_fresh(&self.id, server, folder)?;
        }
        const OTHER: &str = "the node's keys of the lane are not those that the ledger has: give another --server";
        let now = lane.epoch;
        let told: Vec<LaneRegistration> = lane.registrations.iter().map(registration).collect::<anyhow::Result<_>>()?;
        let begun = || told.iter().filter(|of| of.epoch <= now);
        let is_known = |of: &LaneRegistration| self.known().keys.contains_key(&(of.epoch, of.member));
        if let Some(from) = begun().filter(|of| !is_known(of)).map(|of| of.epoch).min() {
            let proved = match self.ledger {
                LedgerTrust::SoloNode => begun().cloned().collect(),
                _ => self.ledger.registrations(&self.id, server, from, self.folder.as_deref())?,
            };
            proved.into_iter().filter(|of| of.epoch <= now).try_for_each(|of| self.admit(of)).context(OTHER)?;
            self.keep_keys()?;
        }
        let known = self.known();
        let epochs: BTreeSet<HomeEpoch> = known.keys.keys().map(|(epoch, _)| *epoch).collect();
        let is_other = |of: &&LaneRegistration| known.keys.get(&(of.epoch, of.member)) != Some(of);
        ensure!(!begun().filter(|of| epochs.contains(&of.epoch)).any(|of| is_other(&of)), OTHER);
        Ok(())
    }

    /// Stores the known keys, without those of epochs that are long over.
    fn keep_keys(&self) -> anyhow::Result<()> {
        if let Some(folder) = &self.folder {
            let mut known = self.known();
            let keys = &mut known.keys;
            let last = keys.last_key_value().map_or(0, |((epoch, _), _)| *epoch);
            *keys = keys.split_off(&(last.saturating_sub(EPOCHS_KEPT), 0));
            let encoded: Vec<LaneRegistrationBody> = keys.values().map(registration_body).collect();
            write_durable(&folder.join(EPOCHS), serde_json::to_string_pretty(&encoded)?.as_bytes())?;
        }
        Ok(())
    }

    /// Whether the keys of a quorum are known for an epoch.
    pub fn knows(&self, epoch: HomeEpoch) -> bool {
        let known = || self.known().keys.range((epoch, 0)..=(epoch, u8::MAX)).count();
        let quorum = || payments::Quorums::new(self.registrars.len()).certificate;
        epoch == 0 || self.registrars.is_empty() || known() >= quorum()
    }

    /// Reads what [`LaneNetwork::encode`] writes.
    pub fn parse(pinned: &PinnedLane) -> anyhow::Result<LaneNetwork> {
        let key = |key: &String| key.parse::<PublicKey>().context("invalid key of a shard");
        let shards = |shards: &Vec<String>| shards.iter().map(key).collect();
        let money = |entry: &PinnedMoney| LaneMoney {
            asset: AssetId(entry.asset),
            symbol: entry.symbol.clone(),
            decimals: entry.decimals,
            rule: AssetRule { least_units: entry.least_units, fee: entry.fee },
        };
        let members: Vec<Vec<PublicKey>> = pinned.members.iter().map(shards).collect::<anyhow::Result<_>>()?;
        let registrars: Vec<PublicKey> = pinned.registrars.iter().map(key).collect::<anyhow::Result<_>>()?;
        ensure!(registrars.is_empty() || registrars.len() == members.len(), "each member has a registrar, or none has");
        let sound = (1..=payments::VALIDATORS_MAX).contains(&members.len()) && members.iter().all(|of| !of.is_empty());
        ensure!(sound, "a lane has 1 to 256 members, each with a shard");
        let id = pinned.network.parse().context("invalid identity of the lane's network")?;
        let ledger = LedgerTrust::parse(pinned.validators.as_ref())?;
        let assets = pinned.assets.iter().map(money).collect();
        Ok(LaneNetwork { ledger, ..LaneNetwork::new(id, members, registrars, assets) })
    }

    /// The lane and its trust, as a file has them.
    pub fn encode(&self) -> PinnedLane {
        let money = |money: &LaneMoney| PinnedMoney {
            asset: money.asset.0,
            symbol: money.symbol.clone(),
            decimals: money.decimals,
            least_units: money.rule.least_units,
            fee: money.rule.fee,
        };
        let texts = |keys: &Vec<PublicKey>| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        PinnedLane {
            network: self.id.to_string(),
            members: self.members.iter().map(texts).collect(),
            registrars: texts(&self.registrars),
            assets: self.assets.iter().map(money).collect(),
            validators: self.ledger.encode(),
        }
    }

    /// A short digest of network and keys, for people to compare. It contains the keys of the chain's validators if
    /// they never change.
    pub fn fingerprint(&self) -> String {
        let mut bytes = self.id.0.to_vec();
        for shards in &self.members {
            bytes.extend((shards.len() as u32).to_le_bytes());
            shards.iter().for_each(|key| bytes.extend(key.0));
        }
        self.registrars.iter().chain(self.ledger.fixed_keys()).for_each(|key| bytes.extend(key.0));
        Digest::of("walras 2026 lane fingerprint v2", &bytes).to_string()[2..18].into()
    }

    /// The committee of an epoch, with the known keys.
    pub fn committee(&self, epoch: HomeEpoch) -> LaneCommittee {
        let plain = self.plain_committee(epoch);
        let board = {
            let known = self.known();
            if let Some(checked) = known.checked.get(&epoch) {
                return checked.clone();
            }
            known.boards.get(&epoch).cloned()
        };
        // A file may be damaged: without a group key aggregates are used.
        let Some(with) = board.and_then(|board| with_board(plain.clone(), &board).ok()) else { return plain };
        self.known().checked.insert(epoch, with.clone());
        with
    }

    fn plain_committee(&self, epoch: HomeEpoch) -> LaneCommittee {
        if epoch == 0 || self.registrars.is_empty() {
            return LaneCommittee::new(self.id, epoch, self.members.clone());
        }
        let mut committee = LaneCommittee::unregistered(self.id, epoch, self.members.len());
        for registration in self.known().keys.range((epoch, 0)..=(epoch, u8::MAX)).map(|(_, registration)| registration)
        {
            committee.seat(registration).expect("it was verified when it was admitted");
        }
        committee
    }

    pub fn rules(&self) -> LaneRules {
        let assets = self.assets.iter().map(|money| (money.asset, money.rule)).collect();
        LaneRules { network: self.id, assets, other: AssetRule { least_units: 1, fee: 0 } }
    }

    pub fn find(&self, symbol: &str) -> anyhow::Result<&LaneMoney> {
        let known = || self.assets.iter().map(|money| money.symbol.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.assets.iter().find(|money| money.symbol == symbol);
        found.with_context(|| format!("the lane carries no asset {symbol:?}; there are {}", known()))
    }

    pub fn units(&self, symbol: &str, amount: &str) -> anyhow::Result<(AssetId, Amount)> {
        let money = self.find(symbol)?;
        Ok((money.asset, to_units(amount, money.decimals)?))
    }

    pub fn symbol(&self, asset: AssetId) -> String {
        let found = self.assets.iter().find(|money| money.asset == asset);
        found.map_or_else(|| format!("asset {asset}"), |money| money.symbol.clone())
    }

    /// An amount in decimals with its symbol.
    pub fn money(&self, asset: AssetId, units: Amount) -> String {
        let found = self.assets.iter().find(|money| money.asset == asset);
        found.map_or_else(|| format!("{units} units of asset {asset}"), |money| money.money(units))
    }
}

/// The same committee with the group key of a board, which is given in hexadecimal.
fn with_board(committee: LaneCommittee, board: &str) -> anyhow::Result<LaneCommittee> {
    let bytes = crate::hexadecimal::hex_bytes(board).context("the board is not hexadecimal")?;
    Ok(with_told_board(committee, &bytes)?)
}

/// Asks a node of this network for the state of the lane, and learns the keys of epochs from it.
pub fn learn(server: &Server, network: &LaneNetwork) -> anyhow::Result<LaneBody> {
    let lane: LaneBody = server.node().get("/v1/lane").context("cannot get the lane from the node")?;
    let PinnedLane { network: id, members, registrars, .. } = network.encode();
    ensure!(
        lane.network == id && lane.members == members && lane.registrars == registrars,
        "the node has another lane than this purse, or other keys: nothing was sent. Give another --server"
    );
    network.learn(server, &lane)?;
    network.learn_boards(server, &lane)?;
    Ok(lane)
}

/// The state of the lane, as a node reports it.
#[derive(Clone, Debug)]
pub struct LaneNow {
    pub epoch: HomeEpoch,
    pub heights_left: u64,
    pub halted: bool,
    pub case_deposit: Amount,
    /// Members that were convicted of contradicting themselves.
    pub convicted: BTreeSet<u8>,
    addresses: Vec<Vec<SocketAddr>>,
    tls: bool,
    home_ports: u64,
}

impl LaneNow {
    /// Asks a node, which must be of this network and have the same keys of its members. The network learns the keys
    /// of epochs from the answer.
    pub fn ask(server: &Server, network: &LaneNetwork) -> anyhow::Result<LaneNow> {
        let lane = learn(server, network)?;
        let address = |address: &String| address.parse::<SocketAddr>().context("invalid address of a shard");
        let shards = |shards: &Vec<String>| shards.iter().map(address).collect();
        let addresses: Vec<Vec<SocketAddr>> = lane.addresses.iter().map(shards).collect::<anyhow::Result<_>>()?;
        let counts = network.members.iter().map(Vec::len);
        ensure!(
            addresses.iter().map(Vec::len).eq(counts),
            "the node does not know where the lane's shards are: give the --server of a member, or set [lane] addresses"
        );
        Ok(LaneNow {
            epoch: lane.epoch,
            heights_left: lane.heights_left,
            halted: lane.halted,
            convicted: lane.convicted.into_iter().collect(),
            case_deposit: lane.case_deposit.parse().context("invalid deposit of a case")?,
            addresses,
            tls: lane.tls,
            home_ports: u64::from(lane.home_ports.max(1)),
        })
    }

    /// The shards of a home.
    pub fn directory(&self, network: &LaneNetwork, home: HomeEpoch) -> lane::LaneDirectory {
        let above = (home % self.home_ports) as u16;
        let at = |address: &SocketAddr| SocketAddr::new(address.ip(), address.port().saturating_add(above));
        let addresses = self.addresses.iter().map(|shards| shards.iter().map(at).collect()).collect();
        lane::LaneDirectory { committee: network.committee(home), addresses, tls: self.tls }
    }
}
