//! What has passed and waits, and how it comes to act.

use std::io::{self, Read, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, Height, LaneAssetTerms, PlainListing};
use proofs::{ParametersRecord, Validators};

use super::{BOUNDARIES, Ballot, OPEN_MAX, OpenProposal, VotedParameters, Voters};
use crate::places::charter::seats_needed;
use crate::terms::Parameters;

const CONTEXT: &str = "walras 2026 proposals v1";

/// In the encoding, the bit of the height that says that terms of the lane follow.
const WITH_LANE: Height = 1 << 63;

/// What acts from a height on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coming {
    /// The first height.
    pub acts: Height,
    /// The record.
    pub values: Parameters,
    /// Assets that are listed by then, in this order.
    pub lists: Vec<PlainListing>,
    /// Assets whose closing is announced by then.
    pub closes: Vec<AssetId>,
    /// Terms of assets in the payment lane that are decided by then, in this order.
    pub lane: Vec<LaneAssetTerms>,
}

/// All fields in their order, `lane` only if there are any: a chain without such votes keeps the digests that it had
/// before they existed.
impl BorshSerialize for Coming {
    fn serialize<W: Write>(&self, to: &mut W) -> io::Result<()> {
        let Coming { acts, values, lists, closes, lane } = self;
        let flag = if lane.is_empty() { 0 } else { WITH_LANE };
        (acts | flag, values, lists, closes).serialize(to)?;
        if lane.is_empty() { Ok(()) } else { lane.serialize(to) }
    }
}

impl BorshDeserialize for Coming {
    fn deserialize_reader<R: Read>(from: &mut R) -> io::Result<Coming> {
        let (acts, values, lists, closes) = <(Height, _, _, _)>::deserialize_reader(from)?;
        let has_lane = acts & WITH_LANE != 0;
        let lane = if has_lane { Vec::deserialize_reader(from)? } else { Vec::new() };
        if has_lane && lane.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "terms of the lane are announced, and none follow"));
        }
        Ok(Coming { acts: acts & !WITH_LANE, values, lists, closes, lane })
    }
}

/// How much of an open proposal's support is there, and how much it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    /// Seats of the last committee that want it.
    pub seats: usize,
    /// Seats of it that must.
    pub seats_needed: usize,
    /// Its seats.
    pub all_seats: usize,
    /// Units staked by the accounts that want it; two thirds of all must.
    pub stake: u128,
    /// Units staked by all.
    pub all_stake: u128,
}

impl OpenProposal {
    /// Its support, if the next boundary drew the last committee again.
    pub fn support(&self, registered: &Validators) -> Support {
        let last: Vec<Address> =
            registered.committees.last().into_iter().flatten().map(|member| member.account).collect();
        let (voters, all_seats) = (Voters::of(registered, &last), last.len());
        let (stake, all_stake) = voters.stake(self);
        let seats_needed = seats_needed(all_seats, true);
        Support { seats: voters.seats(1, self), seats_needed, all_seats, stake, all_stake }
    }

    /// Boundaries that will still count it.
    pub fn boundaries_left(&self) -> u8 {
        BOUNDARIES.saturating_sub(self.tallied)
    }
}

impl Ballot {
    /// What waits, by height.
    pub fn coming(&self) -> &[Coming] {
        &self.coming
    }

    /// What waits for a height.
    pub(crate) fn coming_at(&self, height: Height) -> Option<&Coming> {
        self.coming.iter().find(|coming| coming.acts == height)
    }

    /// The record that will be in force when all that has passed acts, with nothing else to do at a height.
    pub(super) fn newest(&self, now: &Parameters, acts: Height) -> Coming {
        let values = self.coming.last().map_or(*now, |coming| coming.values);
        Coming { acts, values, lists: Vec::new(), closes: Vec::new(), lane: Vec::new() }
    }

    /// The most that a unit of weight costs under the record in force, whose fee is this, and those that wait.
    pub(crate) fn dearest_fee(&self, now: Amount) -> Amount {
        self.coming.iter().map(|coming| coming.values.fee()).fold(now, Amount::max)
    }

    /// What waits for this height, or for one before, acts.
    pub(crate) fn begin(&mut self, height: Height) {
        let acting = self.coming.partition_point(|coming| coming.acts <= height);
        for Coming { values, .. } in self.coming.drain(..acting) {
            self.record.as_mut().expect("something was proposed").now = values;
        }
    }

    /// The network restarts: what is in force stays, and nothing else.
    pub(crate) fn begin_again(&self) -> Ballot {
        let (record, changed) = (self.record, self.changed.clone());
        // What only waits to be announced is dropped with the record that announces it.
        let waits = |asset: &AssetId| self.coming.iter().any(|coming| coming.closes.contains(asset));
        let closing = self.closing.iter().copied().filter(|asset| !waits(asset)).collect();
        Ballot { record, changed, closing, ..Ballot::default() }
    }

    /// The values of all parameters, and the digest of what is proposed beside them; `None` until something is.
    pub(crate) fn proved(&self) -> Option<(ParametersRecord, Digest)> {
        let VotedParameters { first, now } = self.record?;
        let coming = self.coming.iter().map(|coming| (coming.acts, coming.values.codes())).collect();
        let assets: Vec<_> = self.coming.iter().map(|coming| (&coming.lists, &coming.closes)).collect();
        let proposed = (assets, &self.changed, &self.open, &self.closing);
        let mut proposed = borsh::to_vec(&proposed).expect("writing to memory cannot fail");
        let lane: Vec<_> = self.coming.iter().map(|coming| &coming.lane).collect();
        if lane.iter().any(|terms| !terms.is_empty()) {
            proposed.extend(borsh::to_vec(&lane).expect("writing to memory cannot fail"));
        }
        let proposed = Digest::of(CONTEXT, &proposed);
        Some((ParametersRecord { first: first.codes(), now: now.codes(), coming }, proposed))
    }

    /// The fault of proposals that were read, on a chain of this height, if there is one.
    pub(crate) fn fault(&self, height: Height) -> Option<&'static str> {
        let is_first = |acts: Height| acts > height;
        Some(match () {
            _ if self.record.is_none() && *self != Ballot::default() => "proposals without a record",
            _ if self.record.is_some_and(|VotedParameters { first, now }| !first.could_become(&now)) => {
                "a record in force that is out of bounds"
            }
            _ if !self.coming.is_sorted_by(|a, b| a.acts < b.acts) => "what waits is out of order",
            _ if !self.coming.iter().all(|coming| is_first(coming.acts)) => "something waits for a past height",
            // A limit that regains nothing would hold claims for ever.
            _ if !self.coming.iter().flat_map(|coming| &coming.lane).all(LaneAssetTerms::is_plain) => {
                "terms of the lane wait that cannot be"
            }
            _ if self.changed.values().any(|last| *last > height) => "a parameter changed at a height to come",
            _ if self.open.len() > OPEN_MAX => "too many open proposals",
            _ if self.open.values().any(|proposal| proposal.tallied >= BOUNDARIES) => "a proposal that is over",
            _ => return None,
        })
    }
}
