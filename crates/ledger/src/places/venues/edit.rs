//! Operations at venues as edits of the place, and the keys that may be claimed once in a block.

use primitives::venue::{MarketId, SignedReport, VenueId, VenueOperation};
use primitives::{AssetId, PublicKey, Sequence};
use proofs::{ClaimedId, DepositId, Refusal};

use super::evidence::claimed_id;
use crate::places::scope::Scope;

/// What an operation does to venues; its transaction is known by sender and number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VenueEdit<'a> {
    pub sequence: Sequence,
    pub operation: &'a VenueOperation,
}

/// What at most one operation of a block does. The others pay and do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum VenueOnce {
    /// A venue is opened.
    Opened(VenueId),
    /// A market is listed.
    Listed(VenueId, MarketId),
    /// An incarnation ends.
    Fenced(VenueId, u32),
    /// The operator changes.
    Operated(VenueId),
    /// A withdrawal from the bond begins.
    Unbonded(VenueId),
    /// The sender collects from a deposit.
    Collected(VenueId, AssetId),
    /// An issuer collects for a frozen holder.
    Recalled(DepositId),
    /// A key is authorised.
    Authorized(VenueId, PublicKey),
    /// A key is revoked.
    Revoked(VenueId, PublicKey),
    /// The floor of a key is raised.
    Raised(VenueId, PublicKey),
    /// A venue is convicted.
    Convicted(VenueId),
    /// A fill is claimed.
    Claimed(ClaimedId),
}

impl VenueOnce {
    /// The key that an operation claims; a settle has none: one that is stale must not remove others of its operator.
    pub(crate) fn of(operation: &VenueOperation) -> Option<VenueOnce> {
        Some(match *operation {
            VenueOperation::Open { venue, .. } => VenueOnce::Opened(venue),
            VenueOperation::List { venue, market, .. } => VenueOnce::Listed(venue, market),
            VenueOperation::Fence { venue, incarnation } => VenueOnce::Fenced(venue, incarnation),
            VenueOperation::ChangeOperator { venue, .. } => VenueOnce::Operated(venue),
            VenueOperation::Unbond { venue, .. } => VenueOnce::Unbonded(venue),
            VenueOperation::Collect { venue, asset, .. } => VenueOnce::Collected(venue, asset),
            VenueOperation::Recall { venue, asset, account } => VenueOnce::Recalled((venue, account, asset)),
            VenueOperation::Authorize { venue, key, .. } => VenueOnce::Authorized(venue, key),
            VenueOperation::Revoke { venue, key } => VenueOnce::Revoked(venue, key),
            VenueOperation::RaiseFloor { venue, key, .. } => VenueOnce::Raised(venue, key),
            VenueOperation::Accuse(ref evidence) => VenueOnce::Convicted(evidence.report.venue),
            VenueOperation::AccuseStep(ref evidence) => VenueOnce::Convicted(evidence.report.fill().venue),
            VenueOperation::Claim(ref claim) => VenueOnce::Claimed(claimed_id(&claim.report)),
            VenueOperation::ClaimStep(ref claim) => VenueOnce::Claimed(claimed_id(&claim.report)),
            VenueOperation::Bond { .. } | VenueOperation::Settle(_) | VenueOperation::Deposit { .. } => return None,
        })
    }

    /// Which operations fail beside another one with this key: none; the others do nothing.
    pub(crate) fn scope(self) -> Scope {
        match self {
            VenueOnce::Collected(..) => Scope::Sender(Refusal::COLLECTING),
            _ => Scope::KeepOne,
        }
    }
}
