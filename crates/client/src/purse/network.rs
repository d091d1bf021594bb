//! The lane of a purse: pinned when the purse is made, so that no node can substitute other validators later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{LaneAssetBody, LaneBoardBody, LaneBody, LaneRegistrationBody};
use payments::{
    AssetRule, HomeEpoch, LaneCommittee, LaneRefusal, LaneRegistration, LaneRules, Quorums, VALIDATORS_MAX,
    with_told_board,
};
use primitives::{Amount, AssetId, Digest, PublicKey, parse_units};

use super::error::{Invalid, PurseError};
use super::files::{BOARDS, EPOCHS, TERMS, read_json_or, write_json};
use super::pinned::{PinnedLane, PinnedMoney};
use super::registrations::{registration, registration_body};
use super::terms::{LaneMoney, ToldTerms};
use super::trust::LedgerTrust;
use crate::error::ClientError;
use crate::hexadecimal::hex_bytes;
use crate::node::NodeClient;

/// Keys of lane epochs by epoch and member: those that the ledger has registered.
type EpochKeys = BTreeMap<(HomeEpoch, u8), LaneRegistration>;

/// The rule of an asset about which nothing is known.
const NO_RULE: AssetRule = AssetRule { least_units: 1, fee: 0 };
/// Number of epochs whose keys are kept: those whose receipts may still have value, and some more.
const EPOCHS_KEPT: HomeEpoch = 16;
/// What to do about a damaged file of what was learned.
const FETCHED_AGAIN: &str = "remove it, and it is fetched from a node again";

/// What was learned about lane epochs.
#[derive(Debug, Default)]
struct Learned {
    keys: EpochKeys,
    /// The boards on which members made group keys, in hexadecimal.
    boards: BTreeMap<HomeEpoch, String>,
    /// Committees whose boards were checked.
    checked: BTreeMap<HomeEpoch, LaneCommittee>,
    terms: ToldTerms,
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
    /// The assets that it carried when it was pinned.
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
        // What it carries changes; which lane it is does not.
        let pinned = |of: &LaneNetwork| PinnedLane { validators: None, assets: Vec::new(), ..of.encode() };
        pinned(self) == pinned(other)
    }
}

impl LaneNetwork {
    /// Reads it from a node, which the purse trusts with it, as it trusts it with the validators of the chain.
    ///
    /// # Errors
    /// [`PurseError`].
    pub fn of_node(node: &NodeClient) -> Result<LaneNetwork, PurseError> {
        let lane: LaneBody = node.get("/v1/lane")?;
        let listed = node.assets()?;
        let money = |entry: &LaneAssetBody| {
            let known = listed.find(&entry.asset)?;
            Ok(PinnedMoney {
                asset: known.asset.0,
                symbol: known.symbol.clone(),
                decimals: known.decimals,
                least_units: node.number("least amount of the lane", &entry.least_units)?,
                fee: node.number("fee of the lane", &entry.fee)?,
            })
        };
        let assets = lane.assets.iter().map(money).collect::<Result<_, ClientError>>()?;
        let LaneBody { network, members, registrars, .. } = lane;
        let pinned = PinnedLane { network, members, registrars, assets, validators: None };
        let network = LaneNetwork::parse(&pinned).map_err(|error| node.foreign(&format!("its lane has an {error}")))?;
        let ledger = LedgerTrust::of_node(node, &network.id)?;
        Ok(network.proved_by(ledger))
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

    /// The same lane with what proves the keys of its later epochs.
    pub fn proved_by(self, ledger: LedgerTrust) -> LaneNetwork {
        LaneNetwork { ledger, ..self }
    }

    /// Adds what was learned before from this folder, and stores there what is learned later.
    ///
    /// # Errors
    /// [`PurseError::Node`] if a file cannot be used; the error says what to do.
    pub fn kept_in(mut self, folder: &Path) -> Result<LaneNetwork, PurseError> {
        let path = folder.join(EPOCHS);
        if path.exists() {
            let known: Vec<LaneRegistrationBody> = read_json_or(&path, FETCHED_AGAIN)?;
            let damaged =
                |error: String| ClientError::contents(&path, format!("it is damaged ({error}): {FETCHED_AGAIN}"));
            for one in known {
                let one = registration(&one).map_err(|error| damaged(error.to_string()))?;
                self.admit(one).map_err(|error| damaged(error.to_string()))?;
            }
        }
        let path = folder.join(BOARDS);
        if path.exists() {
            self.known().boards = read_json_or(&path, FETCHED_AGAIN)?;
        }
        let path = folder.join(TERMS);
        if path.exists() {
            let damaged = |error| ClientError::contents(&path, format!("it is damaged ({error}): {FETCHED_AGAIN}"));
            self.known().terms = ToldTerms::parse(read_json_or(&path, FETCHED_AGAIN)?).map_err(damaged)?;
        }
        self.folder = Some(folder.into());
        Ok(self)
    }

    /// Learns the group keys of the epochs that a node lists and that have begun: only their members' keys are known,
    /// and a group key is made in the epoch before. The node cannot invent one: members have signed their dealings.
    fn learn_boards(&self, node: &NodeClient, lane: &LaneBody) -> Result<(), PurseError> {
        let mut is_new = false;
        for &epoch in lane.group_keys.iter().filter(|epoch| **epoch <= lane.epoch) {
            if self.known().boards.contains_key(&epoch) {
                continue;
            }
            // The board may be discarded by now; without it aggregates are used.
            let told: LaneBoardBody = match node.get(&format!("/v1/lane/boards/{epoch}")) {
                Err(error) if error.code().is_some() => continue,
                told => told?,
            };
            let board = told.board.trim_start_matches("0x").to_string();
            let other = |cause| PurseError::OtherBoard { server: node.url().into(), epoch, cause: Box::new(cause) };
            let committee = with_board(self.plain_committee(epoch), &board).map_err(other)?;
            let mut known = self.known();
            known.checked.insert(epoch, committee);
            is_new |= known.boards.insert(epoch, board).is_none();
        }
        if let (true, Some(folder)) = (is_new, &self.folder) {
            let mut known = self.known();
            let last = known.boards.last_key_value().map_or(0, |(epoch, _)| *epoch);
            known.boards = known.boards.split_off(&last.saturating_sub(EPOCHS_KEPT));
            write_json(&folder.join(BOARDS), &known.boards)?;
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts proved keys of a member in an epoch, if its registrar has signed them.
    fn admit(&self, registration: LaneRegistration) -> Result<(), LaneRefusal> {
        let registrar = self.registrars.get(usize::from(registration.member));
        registration.verify(&self.id, registrar.ok_or(LaneRefusal::Malformed("the keys belong to no member"))?)?;
        let key = (registration.epoch, registration.member);
        self.known().keys.entry(key).or_insert(registration);
        Ok(())
    }

    /// Learns the keys of epochs that have begun from a node's answer about the lane. The ledger proves them: a
    /// registrar may have signed other keys, too. A single node cannot prove them, but it cannot add any either that
    /// the pinned registrars have not signed.
    fn learn_keys(&self, node: &NodeClient, lane: &LaneBody) -> Result<(), PurseError> {
        if let Some(folder) = &self.folder {
            self.ledger.keep_fresh(&self.id, node, folder)?;
        }
        let other = |cause: Option<LaneRefusal>| {
            let cause = cause.map(Box::new);
            PurseError::OtherKeys { server: node.url().into(), cause }
        };
        let now = lane.epoch;
        let told = registrations(node, &lane.registrations)?;
        let begun = || told.iter().filter(|of| of.epoch <= now);
        let is_known = |of: &LaneRegistration| self.known().keys.contains_key(&(of.epoch, of.member));
        if let Some(from) = begun().filter(|of| !is_known(of)).map(|of| of.epoch).min() {
            let proved = match self.ledger {
                LedgerTrust::SoloNode => begun().cloned().collect(),
                _ => self.ledger.registrations(&self.id, node, from, self.folder.as_deref())?,
            };
            let mut begun = proved.into_iter().filter(|of| of.epoch <= now);
            begun.try_for_each(|of| self.admit(of)).map_err(|cause| other(Some(cause)))?;
            self.keep_keys()?;
        }
        let known = self.known();
        let epochs: BTreeSet<HomeEpoch> = known.keys.keys().map(|(epoch, _)| *epoch).collect();
        let is_other = |of: &&LaneRegistration| known.keys.get(&(of.epoch, of.member)) != Some(of);
        if begun().filter(|of| epochs.contains(&of.epoch)).any(|of| is_other(&of)) {
            return Err(other(None));
        }
        Ok(())
    }

    /// Stores the known keys, without those of epochs that are long over.
    fn keep_keys(&self) -> Result<(), ClientError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut known = self.known();
        let keys = &mut known.keys;
        let last = keys.last_key_value().map_or(0, |((epoch, _), _)| *epoch);
        *keys = keys.split_off(&(last.saturating_sub(EPOCHS_KEPT), 0));
        let encoded: Vec<LaneRegistrationBody> = keys.values().map(registration_body).collect();
        write_json(&folder.join(EPOCHS), &encoded)
    }

    /// Takes the terms of assets that a node tells, if it calls assets as before. Nodes of older versions tell none.
    fn learn_terms(&self, node: &NodeClient, lane: &LaneBody) -> Result<(), PurseError> {
        if lane.terms.is_empty() || lane.terms == self.known().terms.bodies() {
            return Ok(());
        }
        let told =
            ToldTerms::parse(lane.terms.clone()).map_err(|error| node.foreign(&format!("its lane has an {error}")))?;
        told.check_names(&self.carried(), node.url())?;
        if let Some(folder) = &self.folder {
            write_json(&folder.join(TERMS), &told.bodies())?;
        }
        self.known().terms = told;
        Ok(())
    }

    /// Asks a node of this network for the state of the lane, and learns terms of assets and keys of epochs from it.
    ///
    /// # Errors
    /// [`PurseError::OtherLane`], [`PurseError::OtherAsset`], or what the node proves otherwise than it says.
    pub fn learn(&self, node: &NodeClient) -> Result<LaneBody, PurseError> {
        let lane: LaneBody = node.get("/v1/lane")?;
        let PinnedLane { network, members, registrars, .. } = self.encode();
        if lane.network != network || lane.members != members || lane.registrars != registrars {
            return Err(PurseError::OtherLane { server: node.url().into() });
        }
        self.learn_terms(node, &lane)?;
        self.learn_keys(node, &lane)?;
        self.learn_boards(node, &lane)?;
        Ok(lane)
    }

    /// Whether the keys of a quorum are known for an epoch.
    pub fn knows(&self, epoch: HomeEpoch) -> bool {
        let known = || self.known().keys.range((epoch, 0)..=(epoch, u8::MAX)).count();
        let quorum = || Quorums::new(self.registrars.len()).certificate;
        epoch == 0 || self.registrars.is_empty() || known() >= quorum()
    }

    /// Reads what [`LaneNetwork::encode`] writes.
    ///
    /// # Errors
    /// [`Invalid`] names what is wrong.
    pub fn parse(pinned: &PinnedLane) -> Result<LaneNetwork, Invalid> {
        let key = |key: &String| key.parse::<PublicKey>().map_err(|_| Invalid("key of a shard"));
        let shards = |shards: &Vec<String>| shards.iter().map(key).collect();
        let money = |entry: &PinnedMoney| LaneMoney {
            asset: AssetId(entry.asset),
            symbol: entry.symbol.clone(),
            decimals: entry.decimals,
            rule: AssetRule { least_units: entry.least_units, fee: entry.fee },
        };
        let members: Vec<Vec<PublicKey>> = pinned.members.iter().map(shards).collect::<Result<_, _>>()?;
        let registrars: Vec<PublicKey> = pinned.registrars.iter().map(key).collect::<Result<_, _>>()?;
        if !registrars.is_empty() && registrars.len() != members.len() {
            return Err(Invalid("list of registrars: each member has one, or none has"));
        }
        if !(1..=VALIDATORS_MAX).contains(&members.len()) || members.iter().any(Vec::is_empty) {
            return Err(Invalid("list of members: a lane has 1 to 256, each with a shard"));
        }
        let id = pinned.network.parse().map_err(|_| Invalid("identity of the lane's network"))?;
        let ledger = LedgerTrust::parse(pinned.validators.as_ref())?;
        let assets = pinned.assets.iter().map(money).collect();
        Ok(LaneNetwork::new(id, members, registrars, assets).proved_by(ledger))
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

    /// The assets that are known: those that were pinned, and those that a node told since.
    pub fn carried(&self) -> Vec<LaneMoney> {
        let is_new = |money: &LaneMoney| self.assets.iter().all(|pinned| pinned.asset != money.asset);
        let told = self.known().terms.assets();
        self.assets.iter().cloned().chain(told.into_iter().filter(is_new)).collect()
    }

    /// The rule of an asset for payments of a home.
    pub fn rule(&self, asset: AssetId, home: HomeEpoch) -> AssetRule {
        let pinned = || self.assets.iter().find(|money| money.asset == asset).map(|money| money.rule);
        let told = self.known().terms.rule(asset, home);
        told.or_else(pinned).unwrap_or(NO_RULE)
    }

    /// What the members of a home check.
    pub fn rules(&self, home: HomeEpoch) -> LaneRules {
        let assets = self.carried().into_iter().map(|money| (money.asset, self.rule(money.asset, home)));
        LaneRules { network: self.id, assets: assets.collect(), other: NO_RULE }
    }

    /// Checks a deposit in an epoch, as far as the purse knows the terms.
    ///
    /// # Errors
    /// [`PurseError::NoWayIn`] or [`PurseError::Refused`].
    pub fn check_deposit(&self, asset: AssetId, amount: Amount, epoch: HomeEpoch) -> Result<(), PurseError> {
        if self.known().terms.takes_deposits(asset, epoch) == Some(false) {
            return Err(PurseError::NoWayIn { symbol: self.symbol(asset) });
        }
        let least = self.rule(asset, epoch).least_units;
        if amount >= least { Ok(()) } else { Err(LaneRefusal::TooSmall { asset, amount, least }.into()) }
    }

    /// The asset with a symbol.
    ///
    /// # Errors
    /// [`PurseError::NotCarried`].
    pub fn find(&self, symbol: &str) -> Result<LaneMoney, PurseError> {
        let carried = self.carried();
        let known = || carried.iter().map(|money| money.symbol.as_str()).collect::<Vec<_>>().join(", ");
        let found = carried.iter().find(|money| money.symbol == symbol).cloned();
        found.ok_or_else(|| PurseError::NotCarried { symbol: symbol.into(), known: known() })
    }

    /// An asset by its number.
    pub fn get(&self, asset: AssetId) -> Option<LaneMoney> {
        self.carried().into_iter().find(|money| money.asset == asset)
    }

    /// An asset and its units, of a symbol and decimals.
    ///
    /// # Errors
    /// [`PurseError::NotCarried`] or [`PurseError::Amount`].
    pub fn units(&self, symbol: &str, amount: &str) -> Result<(AssetId, Amount), PurseError> {
        let money = self.find(symbol)?;
        Ok((money.asset, parse_units(amount, money.decimals)?))
    }

    /// The symbol of an asset.
    pub fn symbol(&self, asset: AssetId) -> String {
        self.get(asset).map_or_else(|| format!("asset {asset}"), |money| money.symbol)
    }

    /// An amount in decimals with its symbol.
    pub fn money(&self, asset: AssetId, units: Amount) -> String {
        self.get(asset).map_or_else(|| format!("{units} units of asset {asset}"), |money| money.money(units))
    }
}

/// The same committee with the group key of a board, which is given in hexadecimal.
fn with_board(committee: LaneCommittee, board: &str) -> Result<LaneCommittee, LaneRefusal> {
    let bytes = hex_bytes(board).ok_or(LaneRefusal::Malformed("the board is not hexadecimal"))?;
    with_told_board(committee, &bytes)
}

/// Registrations as a node tells them.
pub(super) fn registrations(
    node: &NodeClient,
    told: &[LaneRegistrationBody],
) -> Result<Vec<LaneRegistration>, ClientError> {
    let read = |error| node.foreign(&format!("it tells an {error}"));
    told.iter().map(registration).collect::<Result<_, _>>().map_err(read)
}
