//! The terms of assets in the payment lane: which assets it carries, and on what terms, in each lane epoch.
//!
//! # The protocol
//!
//! The terms of the genesis are those of epoch 0. Terms that validators vote (`charter::proposals`) follow them. A
//! payment is judged by the terms of its *home*, the lane epoch of its inputs; a deposit by those of the epoch that it
//! enters.
//!
//! - Upon a *proposal*: it is judged beside the terms that will be in force. The asset exists, no issuer controls it,
//!   and it is not closed if deposits are taken. A newcomer takes deposits, and the lane knows fewer than 256 assets.
//! - *Step*: least units, fee and both numbers of a limit on outflow at most double or halve, at the earliest 30 days
//!   after the last change acted. A fee of zero stays zero. An asset has a limit from its first terms on, or never.
//!   What only ends deposits waits for nothing.
//! - Upon *terms that act* from height F on: they are those of each lane epoch that begins after F, until others are.
//!   If the lane is halted, or a quorum has no keys, that epoch begins later, and so do they.
//! - Upon an *epoch that begins*: its limits on outflow are in force. What a limit still permits is kept, as far as the
//!   new one permits as much. Claims keep their places in the queue.
//! - Upon an *epoch that is dropped*: terms are dropped that no kept epoch has.
//! - Upon a *restart of the network*: the newest terms of each asset are those of the first epoch.
//!
//! An asset never leaves. Terms that refuse deposits leave no way in; payments, exits, verdicts and redemptions work
//! for ever, also if the asset is closed.
//!
//! # Properties
//!
//! - *Fixed*: the terms of an epoch that has begun never change. So all shards of a home judge by the same ones,
//!   whenever they start, and whichever block their node has reached.
//! - *Warning*: terms stand in the state before the epoch whose they are begins.
//! - *Ways out*: no terms refuse an exit, a verdict or a redemption, and each claim is paid in the end.
//! - *Known*: escrow holds only assets that the lane knows.
//! - *Open*: no issuer controls an asset of the lane. Controls are fixed when an asset is listed, so none comes later.
//! - *Bounded*: at most 256 assets beyond those of the genesis, each with at most one entry for each epoch that counts.
//!   A block without a change hashes what it hashed before, and the digest of the terms.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | outputs of an asset that its issuer freezes circulate among unknown keys | refused at proposal and tally |
//! | an asset is carried, and its issuer takes controls later | controls are fixed at its listing |
//! | an asset closes while its outputs are out | the ledger takes no deposit; all ways out work for ever |
//! | terms change while a payment is in flight, and half of the shards refuse it | judged by its home's terms, which are fixed |
//! | a payment into the next epoch is below that epoch's least output | it stands; its output leaves by an exit |
//! | shards of a member run in several homes | each has the terms of its own |
//! | a member's node is behind, or fetched a state | terms of a home follow from every state that knows it |
//! | a state with other terms is served to it | they are part of the root |
//! | a purse comes back after a year, with old terms | its deposit is refused by name; its money went home by exits |
//! | a node tells a purse other terms | members refuse the payment before they reserve anything; another node tells others |
//! | a cartel's fee or least output holds money in the lane | exits have neither |
//! | a cartel's limit holds money in the lane | none is added later; one halves in 30 days, and regains at least a unit each height |
//! | a limit is removed, and a break of the lane empties escrow at once | it stays, and doubles in 30 days |
//! | terms change again and again within an epoch that is halted | the last counts; 30 days from one to the next |
//! | junk is listed, and carried until each block hashes thousands of limits | 256 assets, each by a vote |
//! | a deposit counted when it was admitted, and its proposer is blamed for it | refused, not invalid, once terms were voted |
//!
//! # Deviations
//!
//! From the design of a network that lives for years:
//!
//! - *The 30 days count from the height at which terms act*, which stands beside them.
//! - *Limits are bounded by steps alone*, on both sides: a genesis may have none, so it gives no measure.
//! - *No proof for light clients*: the root has a digest of the terms. Who believes wrong ones is refused, and loses
//!   nothing.

use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use payments::{AssetRule, HomeEpoch, LaneRules, OutflowLimit};
use primitives::{Amount, AssetId, Digest, Height, LaneAssetTerms};
use proofs::Refusal;

use crate::terms::LaneTerms;

const CONTEXT: &str = "walras 2026 terms of lane assets v1";
/// Assets that the lane knows, from which on votes add none.
pub const LANE_ASSETS_MAX: usize = 256;

/// Terms, and since when they are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Decided {
    /// The first height at which they were state; 0 for those of the genesis.
    acts: Height,
    terms: LaneAssetTerms,
}

/// What bounds a change of terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneTermsBounds {
    /// Height of the block that judges.
    pub height: Height,
    /// How many times a number may grow or shrink.
    pub factor: u64,
    /// Heights from one change to the next.
    pub pause: Height,
}

/// The terms of each asset that the lane knows, by the first home that has them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneAssets(BTreeMap<(AssetId, HomeEpoch), Decided>);

impl LaneAssets {
    /// Those of a genesis.
    pub(super) fn founded(lane: &LaneTerms) -> LaneAssets {
        let first = |terms: LaneAssetTerms| ((terms.asset, 0), Decided { acts: 0, terms });
        LaneAssets(lane.assets.iter().map(|entry| first(entry.terms())).collect())
    }

    /// Whether a vote has changed them.
    pub fn are_voted(&self) -> bool {
        self.0.values().any(|decided| decided.acts > 0)
    }

    /// The terms of an asset in a home; `None` if that home does not carry it.
    pub fn get(&self, asset: AssetId, home: HomeEpoch) -> Option<&LaneAssetTerms> {
        self.0.range((asset, 0)..=(asset, home)).next_back().map(|(_, decided)| &decided.terms)
    }

    /// The terms of all assets of a home, by number.
    pub fn of_home(&self, home: HomeEpoch) -> Vec<LaneAssetTerms> {
        self.known().into_iter().filter_map(|asset| self.get(asset, home).copied()).collect()
    }

    /// All of them, by number and by the first home that has them.
    pub fn iter(&self) -> impl Iterator<Item = (HomeEpoch, &LaneAssetTerms)> {
        self.0.iter().map(|((_, from), decided)| (*from, &decided.terms))
    }

    /// The assets that are known, those of later homes included.
    pub(super) fn known(&self) -> BTreeSet<AssetId> {
        self.0.keys().map(|(asset, _)| *asset).collect()
    }

    /// The rules of a home's payments.
    pub(super) fn rules(&self, network: Digest, home: HomeEpoch) -> LaneRules {
        let rule = |terms: LaneAssetTerms| (terms.asset, AssetRule { least_units: terms.least_units, fee: terms.fee });
        // No output of another asset can exist, because none is backed.
        let other = AssetRule { least_units: 1, fee: 0 };
        LaneRules { network, assets: self.of_home(home).into_iter().map(rule).collect(), other }
    }

    /// The limits on outflow during an epoch.
    pub(super) fn limits(&self, epoch: HomeEpoch) -> BTreeMap<AssetId, OutflowLimit> {
        let limited = self.of_home(epoch).into_iter().filter(LaneAssetTerms::is_limited);
        let limit = |of: LaneAssetTerms| OutflowLimit { most: of.outflow_most, per_height: of.outflow_per_height };
        limited.map(|terms| (terms.asset, limit(terms))).collect()
    }

    /// Checks a deposit in an epoch.
    pub(super) fn check_deposit(&self, asset: AssetId, amount: Amount, epoch: HomeEpoch) -> Result<(), Refusal> {
        // Terms of a genesis never change, so a deposit that they refuse is its proposer's fault.
        let [unknown, too_little] = match self.are_voted() {
            false => [Refusal::NOT_IN_LANE, Refusal::WITHDRAWS_TOO_LITTLE],
            true => [Refusal::NO_WAY_IN, Refusal::DEPOSITS_TOO_LITTLE],
        };
        let terms = self.get(asset, epoch).filter(|terms| terms.deposits).ok_or(unknown)?;
        if amount >= terms.least_units { Ok(()) } else { Err(too_little) }
    }

    /// Checks terms that are proposed beside those that have passed and wait.
    pub(crate) fn check(
        &self,
        terms: &LaneAssetTerms,
        waiting: &[LaneAssetTerms],
        bounds: LaneTermsBounds,
    ) -> Result<(), Refusal> {
        let of_asset = |other: &&LaneAssetTerms| other.asset == terms.asset;
        let newest = self.0.range((terms.asset, 0)..=(terms.asset, HomeEpoch::MAX)).next_back();
        let awaited = waiting.iter().rev().find(of_asset);
        let Some(before) = awaited.or(newest.map(|(_, decided)| &decided.terms)) else {
            let mut all = self.known();
            all.extend(waiting.iter().map(|other| other.asset));
            return match terms.deposits {
                false => Err(Refusal::CHANGES_NOTHING),
                true if all.len() >= LANE_ASSETS_MAX => Err(Refusal::LANE_ASSETS_FULL),
                true => Ok(()),
            };
        };
        let is_lately =
            |decided: &Decided| decided.acts > 0 && bounds.height.saturating_sub(decided.acts) < bounds.pause;
        let is_far =
            |now: u64, next: u64| next > now.saturating_mul(bounds.factor) || next < now.div_ceil(bounds.factor);
        match () {
            () if terms == before => Err(Refusal::CHANGES_NOTHING),
            () if *terms == (LaneAssetTerms { deposits: false, ..*before }) => Ok(()),
            () if terms.is_limited() != before.is_limited() => Err(Refusal::OUTFLOW_FIXED),
            () if before.fee == 0 && terms.fee > 0 => Err(Refusal::OUT_OF_BOUNDS),
            () if is_far(before.least_units, terms.least_units)
                || is_far(before.fee, terms.fee)
                || is_far(before.outflow_most, terms.outflow_most)
                || is_far(before.outflow_per_height, terms.outflow_per_height) =>
            {
                Err(Refusal::STEP_TOO_LARGE)
            }
            () if awaited.is_some() || newest.is_some_and(|(_, decided)| is_lately(decided)) => {
                Err(Refusal::CHANGED_LATELY)
            }
            () => Ok(()),
        }
    }

    /// Terms act from this height on: they are those of the homes from this one on.
    pub(super) fn enter(&mut self, terms: &[LaneAssetTerms], from: HomeEpoch, acts: Height) {
        self.0.extend(terms.iter().map(|terms| ((terms.asset, from), Decided { acts, terms: *terms })));
    }

    /// Drops terms that no home from the oldest one on has; whether there were any.
    pub(super) fn prune(&mut self, oldest: HomeEpoch) -> bool {
        let mut next = None;
        let mut over = Vec::new();
        for &(asset, from) in self.0.keys().rev() {
            if next.is_some_and(|(of, by)| of == asset && by <= oldest) {
                over.push((asset, from));
            }
            next = Some((asset, from));
        }
        for place in &over {
            self.0.remove(place);
        }
        !over.is_empty()
    }

    /// The newest terms of each asset, as those of the first home of a restarted network.
    pub(super) fn begin_again(&self) -> LaneAssets {
        // Of several the last one stays.
        LaneAssets(self.0.iter().map(|((asset, _), decided)| ((*asset, 0), *decided)).collect())
    }

    /// Their digest, if a vote has changed them: a chain without such votes has the root that it always had.
    pub(super) fn digest(&self) -> Option<Digest> {
        let bytes = || borsh::to_vec(&self.0).expect("writing to memory cannot fail");
        self.are_voted().then(|| Digest::of(CONTEXT, &bytes()))
    }

    /// The fault of terms that were read, of a lane in this epoch, on a chain with so many assets, if there is one.
    pub(super) fn fault(&self, founded: &LaneAssets, epoch: HomeEpoch, assets: usize) -> Option<&'static str> {
        let is_sound = |(&(asset, from), decided): (&(AssetId, HomeEpoch), &Decided)| {
            let Decided { acts, terms } = decided;
            let is_founded = *acts > 0 || founded.0.get(&(asset, from)) == Some(decided);
            terms.asset == asset && (asset.0 as usize) < assets && terms.is_plain() && from <= epoch + 1 && is_founded
        };
        Some(match () {
            _ if !self.are_voted() => "terms of the lane's assets that nobody has voted",
            _ if !self.0.iter().all(is_sound) => "terms of an asset in the lane that cannot be",
            _ if !founded.known().is_subset(&self.known()) => "an asset of the lane's genesis has no terms",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: LaneTermsBounds = LaneTermsBounds { height: 100, factor: 2, pause: 30 };

    fn terms(asset: u32) -> LaneAssetTerms {
        LaneAssetTerms {
            asset: AssetId(asset),
            least_units: 8,
            fee: 4,
            deposits: true,
            outflow_most: 0,
            outflow_per_height: 0,
        }
    }

    fn founded() -> LaneAssets {
        LaneAssets([((AssetId(0), 0), Decided { acts: 0, terms: terms(0) })].into())
    }

    #[test]
    fn terms_of_a_home_stay_whatever_comes_later() {
        let mut all = founded();
        all.enter(&[LaneAssetTerms { fee: 5, ..terms(0) }, terms(1)], 4, 50);
        let fees = |all: &LaneAssets, home| all.of_home(home).iter().map(|of| (of.asset.0, of.fee)).collect::<Vec<_>>();
        assert_eq!(
            [fees(&all, 3), fees(&all, 4), fees(&all, 9)],
            [vec![(0, 4)], vec![(0, 5), (1, 4)], vec![(0, 5), (1, 4)]]
        );
        assert!(!all.prune(3), "home 3 has the first ones");
        assert!(all.prune(4) && !all.prune(9), "and no later one");
        assert_eq!(fees(&all, 4), vec![(0, 5), (1, 4)]);
        let again = all.begin_again();
        assert_eq!(fees(&again, 0), vec![(0, 5), (1, 4)]);
        assert!(again.are_voted(), "a restart forgets no vote");
    }

    #[test]
    fn a_step_is_bounded_and_only_an_end_of_deposits_waits_for_nothing() {
        let limited = LaneAssetTerms { outflow_most: 10, outflow_per_height: 2, ..terms(2) };
        let mut all = founded();
        all.enter(&[LaneAssetTerms { fee: 0, ..terms(1) }, limited], 1, 60);
        let check = |terms, height| all.check(&terms, &[], LaneTermsBounds { height, ..BOUNDS });
        for (change, refusal) in [
            (terms(0), Refusal::CHANGES_NOTHING),
            (LaneAssetTerms { fee: 9, ..terms(0) }, Refusal::STEP_TOO_LARGE),
            (LaneAssetTerms { fee: 1, ..terms(0) }, Refusal::STEP_TOO_LARGE),
            (LaneAssetTerms { least_units: 17, ..terms(0) }, Refusal::STEP_TOO_LARGE),
            (LaneAssetTerms { outflow_most: 9, outflow_per_height: 9, ..terms(0) }, Refusal::OUTFLOW_FIXED),
            (terms(2), Refusal::OUTFLOW_FIXED),
            (LaneAssetTerms { outflow_most: 4, ..limited }, Refusal::STEP_TOO_LARGE),
            (LaneAssetTerms { outflow_per_height: 5, ..limited }, Refusal::STEP_TOO_LARGE),
            (LaneAssetTerms { fee: 1, ..terms(1) }, Refusal::OUT_OF_BOUNDS),
            (LaneAssetTerms { deposits: false, ..terms(9) }, Refusal::CHANGES_NOTHING),
        ] {
            assert_eq!(check(change, 100), Err(refusal), "{change:?}");
        }
        let dearer = LaneAssetTerms { outflow_most: 20, outflow_per_height: 1, ..limited };
        assert_eq!([check(dearer, 89), check(dearer, 90)], [Err(Refusal::CHANGED_LATELY), Ok(())]);
        assert_eq!(check(LaneAssetTerms { deposits: false, ..limited }, 61), Ok(()), "an end of deposits is urgent");
        assert_eq!(check(LaneAssetTerms { fee: 8, ..terms(0) }, 1), Ok(()), "those of a genesis are no change");
        let waiting = [LaneAssetTerms { fee: 8, ..terms(0) }];
        let again = all.check(&LaneAssetTerms { fee: 16, ..terms(0) }, &waiting, BOUNDS);
        assert_eq!(again, Err(Refusal::CHANGED_LATELY), "what waits has changed");
    }

    #[test]
    fn the_lane_knows_no_more_assets_than_it_may() {
        let mut all = founded();
        let many: Vec<LaneAssetTerms> = (1..LANE_ASSETS_MAX as u32).map(terms).collect();
        let next = terms(LANE_ASSETS_MAX as u32);
        assert_eq!(all.check(&next, &many[1..], BOUNDS), Ok(()));
        assert_eq!(all.check(&next, &many, BOUNDS), Err(Refusal::LANE_ASSETS_FULL), "what waits counts");
        all.enter(&many, 1, 50);
        assert_eq!(all.check(&next, &[], BOUNDS), Err(Refusal::LANE_ASSETS_FULL));
    }

    #[test]
    fn terms_that_were_read_must_be_possible() {
        let mut all = founded();
        assert!(all.fault(&founded(), 7, 3).is_some(), "nobody voted");
        all.enter(&[terms(1)], 8, 50);
        assert_eq!(all.fault(&founded(), 7, 3), None);
        assert!(all.fault(&founded(), 6, 3).is_some(), "terms of an epoch after the next one");
        assert!(all.fault(&founded(), 7, 1).is_some(), "an asset that does not exist");
        let mut other = all.clone();
        other.0.insert((AssetId(0), 0), Decided { acts: 0, terms: LaneAssetTerms { fee: 5, ..terms(0) } });
        assert!(other.fault(&founded(), 7, 3).is_some(), "other terms of the genesis");
        other.0.remove(&(AssetId(0), 0));
        assert!(other.fault(&founded(), 7, 3).is_some(), "an asset without terms");
    }
}
