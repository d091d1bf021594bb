//! What a genesis says of the payment lane.

use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use payments::{AssetRule, BridgeRules, LaneRules, LaneSchedule, OutflowLimit, Output, Recipient, SHARDS_MAX};
use primitives::{Address, Amount, AssetId, Digest, MAX_ISSUED, PublicKey};

const MEMBERS_MAX: usize = payments::VALIDATORS_MAX;
const PENALTY_MAX: u32 = 1_000_000;

/// The payment lane of a chain, from its genesis.
///
/// The members of the committee are the same in every lane epoch; their keys are fresh in each if there are registrars.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneTerms {
    /// Heights of a lane epoch, at least 2.
    pub epoch_heights: u64,
    /// Heights for which one decision of the committee halts the lane.
    pub halt_heights: u64,
    /// Units of asset 0 that opening a case takes.
    pub case_deposit: Amount,
    /// What an output that lapses loses, in millionths.
    pub lapse_penalty: u32,
    /// The keys of each member's shards in the first epoch, by the member's index.
    pub members: Vec<Vec<PublicKey>>,
    /// For each member the key that registers its keys of later epochs. None: the first keys serve in every epoch, and
    /// are never destroyed; each signed statement names its epoch.
    pub registrars: Vec<PublicKey>,
    /// For each member the account whose stake answers for it: it is slashed if the member contradicts itself, and not
    /// paid back while evidence may come. None: nothing answers, and a conviction only ends the member's registrations.
    pub accounts: Vec<Address>,
    /// The assets of the lane, by number.
    pub assets: Vec<LaneAsset>,
    /// Outputs that exist from the start; their sum is the first escrow.
    pub outputs: Vec<LaneOutput>,
}

/// What holds of one asset in the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneAsset {
    /// Which.
    pub asset: AssetId,
    /// The smallest output and the smallest withdrawal.
    pub least_units: Amount,
    /// What each payment leaves in escrow.
    pub fee: Amount,
    /// The limit on net outflow, if there is one.
    pub outflow: Option<LaneOutflow>,
}

/// A limit on the net outflow of an asset: what may leave at once, and what is gained at each height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneOutflow {
    /// What may leave at once.
    pub most: Amount,
    /// What is gained at each height.
    pub per_height: Amount,
}

/// An output that a genesis creates in epoch 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneOutput {
    /// The key that spends it.
    pub to: PublicKey,
    /// Of what.
    pub asset: AssetId,
    /// How much.
    pub amount: Amount,
}

impl LaneTerms {
    /// What holds of an asset; `None` if it is not in the lane.
    pub fn asset(&self, asset: AssetId) -> Option<&LaneAsset> {
        self.assets.iter().find(|entry| entry.asset == asset)
    }

    /// The rules of payments on a network.
    pub fn rules(&self, network: Digest) -> LaneRules {
        let rule = |entry: &LaneAsset| (entry.asset, AssetRule { least_units: entry.least_units, fee: entry.fee });
        // No output of another asset can exist, because none is backed.
        let other = AssetRule { least_units: 1, fee: 0 };
        LaneRules { network, assets: self.assets.iter().map(rule).collect(), other }
    }

    pub(super) fn bridge_rules(&self, network: Digest) -> BridgeRules {
        let limit = |entry: &LaneAsset| {
            let LaneOutflow { most, per_height } = entry.outflow?;
            Some((entry.asset, OutflowLimit { most, per_height }))
        };
        BridgeRules {
            network,
            schedule: LaneSchedule { epoch_heights: self.epoch_heights, halt_heights: self.halt_heights },
            case_deposit: self.case_deposit,
            lapse_penalty: self.lapse_penalty,
            outflow: self.assets.iter().filter_map(limit).collect::<BTreeMap<_, _>>(),
            registrars: self.registrars.clone(),
        }
    }

    pub(super) fn genesis_outputs(&self) -> Vec<Output> {
        let output = |&LaneOutput { to, asset, amount }: &LaneOutput| Output { to: Recipient::Key(to), asset, amount };
        self.outputs.iter().map(output).collect()
    }

    /// What is wrong with the terms on a chain of so many assets, if anything is.
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
            _ if !self.members.iter().all(|shards| (1..=SHARDS_MAX).contains(&shards.len())) => {
                "a member has 1 to 256 shards"
            }
            _ if !self.registrars.is_empty() && self.registrars.len() != self.members.len() => {
                "registrars are one key for each member, or none"
            }
            _ if !self.accounts.is_empty() && self.accounts.len() != self.members.len() => {
                "accounts are one for each member, or none"
            }
            _ if self.accounts.iter().collect::<BTreeSet<_>>().len() < self.accounts.len() => {
                "two members have one account"
            }
            _ if keys.iter().collect::<BTreeSet<_>>().len() < keys.len() => "two shards or registrars have one key",
            _ if !self.assets.is_sorted_by(|a, b| a.asset < b.asset) => "assets do not stand by number, each once",
            _ if !self.assets.iter().all(is_sound) => {
                "an asset is not listed, or a size or a limit is none: least_units and outflow are at least 1"
            }
            _ if !self.outputs.iter().all(backs) => "an output is of an asset that is not in the lane, or too small",
            _ => return None,
        })
    }
}
