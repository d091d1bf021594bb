//! The terms of the payment lane in a genesis.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use payments::{
    BLS_SHARDS_MAX, BridgeRules, DKG_MEMBERS_MAX, LaneBls, LaneSchedule, OutflowLimit, Output, Recipient, SHARDS_MAX,
};
use primitives::{Address, Amount, AssetId, Digest, LaneAssetTerms, MAX_ISSUED, PublicKey};

const MEMBERS_MAX: usize = payments::VALIDATORS_MAX;
const PENALTY_MAX: u32 = 1_000_000;
/// Heights needed to generate a group key, with time for dealings and for complaints.
const GROUP_HEIGHTS_MIN: u64 = 16;
/// In the encoding, the kind of BLS keys is stored above the number of heights of an epoch.
const BLS_SHIFT: u32 = 56;

/// The payment lane of a chain, from its genesis.
///
/// The members of the committee are the same in every lane epoch; their keys change in each epoch if there are
/// registrars.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneTerms {
    /// Heights of a lane epoch, at least 2.
    pub epoch_heights: u64,
    /// Heights for which one decision of the committee halts the lane.
    pub halt_heights: u64,
    /// Deposit for opening a case, in units of asset 0.
    pub case_deposit: Amount,
    /// What an output loses when it lapses, in millionths.
    pub lapse_penalty: u32,
    /// The keys of each member's shards in the first epoch, by the member's index.
    pub members: Vec<Vec<PublicKey>>,
    /// For each member the key that registers its keys of later epochs. If empty, the first keys are used in every
    /// epoch and are never destroyed; each signed statement names its epoch.
    pub registrars: Vec<PublicKey>,
    /// Which BLS keys members register with their keys of later epochs.
    pub bls: LaneBls,
    /// For each member the account whose stake answers for it: it is slashed if the member contradicts itself, and
    /// not paid back while evidence may come. If empty, no stake answers, and a conviction only ends the member's
    /// registrations.
    pub accounts: Vec<Address>,
    /// The assets of the lane, by number.
    pub assets: Vec<LaneAsset>,
    /// Outputs that exist from the start; their sum is the first escrow.
    pub outputs: Vec<LaneOutput>,
}

/// The terms of one asset in the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneAsset {
    /// The asset.
    pub asset: AssetId,
    /// The smallest output and the smallest withdrawal.
    pub least_units: Amount,
    /// Fee that each payment leaves in escrow.
    pub fee: Amount,
    /// The limit on net outflow, if there is one.
    pub outflow: Option<LaneOutflow>,
}

impl LaneAsset {
    /// The same, as a vote would say it.
    pub fn terms(&self) -> LaneAssetTerms {
        let &LaneAsset { asset, least_units, fee, outflow } = self;
        let (outflow_most, outflow_per_height) = outflow.map_or((0, 0), |limit| (limit.most, limit.per_height));
        LaneAssetTerms { asset, least_units, fee, deposits: true, outflow_most, outflow_per_height }
    }
}

/// A limit on the net outflow of an asset: the most that can leave at once, and how much of it is regained at each
/// height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneOutflow {
    /// The most that can leave at once.
    pub most: Amount,
    /// How much is regained at each height.
    pub per_height: Amount,
}

/// An output that a genesis creates in epoch 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneOutput {
    /// The key that spends it.
    pub to: PublicKey,
    /// The asset.
    pub asset: AssetId,
    /// The number of units.
    pub amount: Amount,
}

/// All fields but `bls` in their order. `bls` is stored in the highest byte of the first field, which is 0 without
/// BLS keys, so that a lane without them keeps the encoding and digests from before they existed.
impl BorshSerialize for LaneTerms {
    fn serialize<W: Write>(&self, to: &mut W) -> io::Result<()> {
        let LaneTerms { epoch_heights, halt_heights, case_deposit, lapse_penalty, members, .. } = self;
        (epoch_heights | (self.bls as u64) << BLS_SHIFT, halt_heights, case_deposit, lapse_penalty).serialize(to)?;
        (members, &self.registrars, &self.accounts, &self.assets, &self.outputs).serialize(to)
    }
}

impl BorshDeserialize for LaneTerms {
    fn deserialize_reader<R: Read>(from: &mut R) -> io::Result<LaneTerms> {
        let first = u64::deserialize_reader(from)?;
        let bls = match first >> BLS_SHIFT {
            0 => LaneBls::None,
            1 => LaneBls::Aggregate,
            2 => LaneBls::Threshold,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "the kind of the lane's BLS keys is unknown")),
        };
        let epoch_heights = first & ((1 << BLS_SHIFT) - 1);
        let (halt_heights, case_deposit, lapse_penalty) = BorshDeserialize::deserialize_reader(from)?;
        let (members, registrars, accounts, assets, outputs) = BorshDeserialize::deserialize_reader(from)?;
        Ok(LaneTerms {
            epoch_heights,
            halt_heights,
            case_deposit,
            lapse_penalty,
            members,
            registrars,
            bls,
            accounts,
            assets,
            outputs,
        })
    }
}

impl LaneTerms {
    /// The terms of an asset; `None` if it is not in the lane.
    pub fn asset(&self, asset: AssetId) -> Option<&LaneAsset> {
        self.assets.iter().find(|entry| entry.asset == asset)
    }

    /// The rules of a bridge in an epoch with these limits on outflow.
    pub(crate) fn bridge_rules(&self, network: Digest, outflow: BTreeMap<AssetId, OutflowLimit>) -> BridgeRules {
        BridgeRules {
            network,
            schedule: LaneSchedule { epoch_heights: self.epoch_heights, halt_heights: self.halt_heights },
            case_deposit: self.case_deposit,
            lapse_penalty: self.lapse_penalty,
            outflow,
            registrars: self.registrars.clone(),
            bls: self.bls,
        }
    }

    pub(crate) fn genesis_outputs(&self) -> Vec<Output> {
        let output = |&LaneOutput { to, asset, amount }: &LaneOutput| Output { to: Recipient::Key(to), asset, amount };
        self.outputs.iter().map(output).collect()
    }

    /// The fault of these terms on a chain with this many assets, if there is one.
    pub(crate) fn fault(&self, assets: usize) -> Option<&'static str> {
        let units = 1..=MAX_ISSUED;
        let keys: Vec<&PublicKey> = self.members.iter().flatten().chain(&self.registrars).collect();
        let is_sound = |entry: &LaneAsset| {
            let outflow = entry.outflow.is_none_or(|of| units.contains(&of.most) && units.contains(&of.per_height));
            (entry.asset.0 as usize) < assets
                && units.contains(&entry.least_units)
                && entry.fee <= MAX_ISSUED
                && outflow
        };
        let shards_max = if self.bls == LaneBls::None { SHARDS_MAX } else { BLS_SHARDS_MAX };
        let makes_group_keys = self.members.len() <= DKG_MEMBERS_MAX
            && self.epoch_heights >= GROUP_HEIGHTS_MIN
            && self.members.iter().all(|shards| shards.len() == 1);
        let backs = |output: &LaneOutput| {
            self.asset(output.asset).is_some_and(|of| (of.least_units..=MAX_ISSUED).contains(&output.amount))
        };
        Some(match () {
            _ if !(2..=u64::from(u32::MAX)).contains(&self.epoch_heights) => {
                "epoch_heights: choose from 2 to 4294967295"
            }
            _ if !(1..=u64::from(u32::MAX)).contains(&self.halt_heights) => "halt_heights: choose from 1 to 4294967295",
            _ if self.case_deposit > MAX_ISSUED => "case_deposit is more than can exist",
            _ if self.lapse_penalty > PENALTY_MAX => "lapse_penalty is more than 1000000 millionths",
            _ if !(1..=MEMBERS_MAX).contains(&self.members.len()) => "a committee has 1 to 256 members",
            _ if !self.members.iter().all(|shards| (1..=shards_max).contains(&shards.len())) => {
                "a member has 1 to 256 shards, 1 to 16 with BLS keys"
            }
            _ if self.bls != LaneBls::None && self.registrars.is_empty() => {
                "bls: BLS keys belong to keys of later epochs, which only registrars register: name registrars"
            }
            _ if self.bls == LaneBls::Threshold && !makes_group_keys => {
                "bls: group keys need at most 32 members with one shard each, and epochs of at least 16 heights"
            }
            _ if !self.registrars.is_empty() && self.registrars.len() != self.members.len() => {
                "registrars: give one key for each member, or none"
            }
            _ if !self.accounts.is_empty() && self.accounts.len() != self.members.len() => {
                "accounts: give one for each member, or none"
            }
            _ if self.accounts.iter().collect::<BTreeSet<_>>().len() < self.accounts.len() => {
                "two members have one account"
            }
            _ if keys.iter().collect::<BTreeSet<_>>().len() < keys.len() => "two shards or registrars have one key",
            _ if !self.assets.is_sorted_by(|a, b| a.asset < b.asset) => "assets are not sorted by number, each once",
            _ if !self.assets.iter().all(is_sound) => {
                "an asset is not listed, or a size or limit is 0: least_units and outflow are at least 1"
            }
            _ if !self.outputs.iter().all(backs) => "an output is of an asset that is not in the lane, or too small",
            _ => return None,
        })
    }
}
