//! Quotas bound the work that one proposer can cause for everyone: what a sub-block may hold of what is dear to check.
//! They are part of the rules; the table of all bounds stands beside [`crate::Limits`].

use payments::POST_CHECKS_MAX;
use primitives::venue::{VENUE_SIGNATURES_PER_SUB_BLOCK, VenueOperation};
use primitives::{HolderState, Operation, SubBlock, Superblock, Transaction, is_lane_duty};

use super::sealed::{ENVELOPES_MAX, envelopes_per_sub_block};
use crate::places::bridge;
use crate::places::controls::{FREEZE_ENDS_PER_SUB_BLOCK, HolderStanding};
use crate::state::Ledger;

/// Accusations of one sub-block that are processed: each costs two signature checks, and pays nothing if it is
/// refused.
pub const ACCUSATIONS_PER_SUB_BLOCK: u32 = 16;
/// Stakes of one sub-block that are processed: each costs a signature check and a walk over the registry.
pub const STAKES_PER_SUB_BLOCK: u32 = 64;

/// Signature checks that the posts of one sub-block about the payment lane may cost, without members' duties.
pub const LANE_CHECKS_PER_SUB_BLOCK: u32 = POST_CHECKS_MAX;
/// Signature checks that are reserved for members' duties in the lane, so that no flood of other posts keeps votes,
/// views and registrations out.
pub const LANE_DUTY_CHECKS_PER_SUB_BLOCK: u32 = POST_CHECKS_MAX;

/// Signatures of wallets of a sub-block: each costs a recovery of some 45 µs, which no batch
/// equation makes cheaper. A sub-block with more is invalid by its bytes alone.
pub const TYPED_DATA_PER_SUB_BLOCK: u32 = 4_096;

/// Signatures of ed25519 keys of a sub-block on requests of accounts with policies and on changes of keys. A sub-block
/// with more is invalid by its bytes alone; those of wallets are recoveries.
pub const POLICY_SIGNATURES_PER_SUB_BLOCK: u32 = 8_192;

/// Exact orders of a sub-block: amounts are sought for them beside those of all offers.
pub const EXACTS_PER_SUB_BLOCK: u32 = 1_024;

/// Stops and revocations of session keys of a sub-block: each takes up to [`crate::SLOT_OFFERS_MAX`] offers out of the
/// book.
pub const SESSION_ENDS_PER_SUB_BLOCK: u32 = 16;

/// Listings of a sub-block: each adds an asset for ever.
pub const LISTINGS_PER_SUB_BLOCK: u32 = 2;

/// Posts of a sub-block about the sealing key: a proposer has its own, and forwards those of a few others.
pub const SEAL_POSTS_PER_SUB_BLOCK: u32 = 8;

/// What a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    /// Recoveries of signatures of wallets.
    Recoveries,
    /// Signatures of keys of policies.
    PolicySignatures,
    /// Accusations of validators and of venues.
    Accusations,
    /// Stakes.
    Stakes,
    /// Exact orders.
    Exacts,
    /// Stops and revocations of session keys.
    SessionEnds,
    /// Signature checks of members' duties in the lane.
    LaneDutyChecks,
    /// Signature checks of other posts about the lane.
    LaneChecks,
    /// Listings of assets.
    Listings,
    /// Signatures of settles of venues.
    VenueSignatures,
    /// Offers and holdings of pools that freezes end, which the state decides ([`freeze_ends`]).
    FreezeEnds,
    /// Posts about the sealing key.
    SealPosts,
    /// Envelopes, of which a sub-block has a share ([`Quota::of_seats`]).
    Envelopes,
}

/// How many kinds there are.
pub const QUOTA_KINDS: usize = QuotaKind::Envelopes as usize + 1;

/// What a sub-block has of each quota, by [`QuotaKind`].
const QUOTAS: [u32; QUOTA_KINDS] = [
    TYPED_DATA_PER_SUB_BLOCK,
    POLICY_SIGNATURES_PER_SUB_BLOCK,
    ACCUSATIONS_PER_SUB_BLOCK,
    STAKES_PER_SUB_BLOCK,
    EXACTS_PER_SUB_BLOCK,
    SESSION_ENDS_PER_SUB_BLOCK,
    LANE_DUTY_CHECKS_PER_SUB_BLOCK,
    LANE_CHECKS_PER_SUB_BLOCK,
    LISTINGS_PER_SUB_BLOCK,
    VENUE_SIGNATURES_PER_SUB_BLOCK,
    FREEZE_ENDS_PER_SUB_BLOCK,
    SEAL_POSTS_PER_SUB_BLOCK,
    ENVELOPES_MAX,
];

impl QuotaKind {
    /// What a sub-block has of it.
    pub fn of_sub_block(self) -> u32 {
        QUOTAS[self as usize]
    }
}

/// The quotas that a transaction counts against, and by how much: most against none, few against several. It ends so
/// many offers and holdings ([`freeze_ends`]).
pub fn quotas_of(transaction: &Transaction, freeze_ends: u32) -> impl Iterator<Item = (QuotaKind, u32)> + use<> {
    let signatures = [
        (QuotaKind::Recoveries, transaction.recoveries()),
        (QuotaKind::PolicySignatures, transaction.policy_signatures()),
        (QuotaKind::FreezeEnds, freeze_ends),
    ];
    let signatures = signatures.into_iter().filter(|(_, count)| *count > 0);
    let other = match &transaction.body.operation {
        Operation::Accuse(_) => Some((QuotaKind::Accusations, 1)),
        Operation::Stake(_) => Some((QuotaKind::Stakes, 1)),
        Operation::Exact { .. } => Some((QuotaKind::Exacts, 1)),
        Operation::ListAsset(_) => Some((QuotaKind::Listings, 1)),
        Operation::SealDuty { .. } => Some((QuotaKind::SealPosts, 1)),
        Operation::Sealed(_) => Some((QuotaKind::Envelopes, 1)),
        Operation::Session(operation) if operation.ends_offers() => Some((QuotaKind::SessionEnds, 1)),
        Operation::Lane(bytes) if is_lane_duty(bytes) => Some((QuotaKind::LaneDutyChecks, bridge::cost(bytes))),
        Operation::Lane(bytes) => Some((QuotaKind::LaneChecks, bridge::cost(bytes))),
        Operation::Venue(operation) => match &**operation {
            VenueOperation::Settle(settle) => Some((QuotaKind::VenueSignatures, settle.signatures() as u32)),
            evidence if evidence.is_evidence() => Some((QuotaKind::Accusations, 1)),
            _ => None,
        },
        _ => None,
    };
    signatures.chain(other)
}

/// The rest of a sub-block's quotas. A proposer leaves out transactions that [`Quota::admits`] does not admit,
/// because they would be refused.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    left: [u32; QUOTAS.len()],
}

impl Default for Quota {
    fn default() -> Quota {
        Quota { left: QUOTAS }
    }
}

impl Quota {
    /// The same where a committee has so many seats, which share the envelopes of a block.
    pub fn of_seats(mut self, seats: u32) -> Quota {
        self.left[QuotaKind::Envelopes as usize] = envelopes_per_sub_block(seats);
        self
    }

    /// Counts the next transaction of the sub-block, which ends so many offers and holdings; false, and nothing is
    /// counted, if a quota has too little left.
    pub fn admits(&mut self, transaction: &Transaction, freeze_ends: u32) -> bool {
        let quotas = || quotas_of(transaction, freeze_ends);
        let has_room = quotas().all(|(kind, cost)| self.left[kind as usize] >= cost);
        if has_room {
            quotas().for_each(|(kind, cost)| self.left[kind as usize] -= cost);
        }
        has_room
    }
}

/// How many offers and holdings of pools a freeze ends, by the present state; zero for all else, and for one that its
/// sender may not say.
pub fn freeze_ends(ledger: &Ledger, transaction: &Transaction) -> u32 {
    let &Operation::SetHolder { asset, account, state: HolderState::Frozen, .. } = &transaction.body.operation else {
        return 0;
    };
    let is_issuers = ledger.assets.get(asset.0 as usize).is_some_and(|one| one.issuer == transaction.body.account);
    if !is_issuers || ledger.controls().standing(asset, &account) != HolderStanding::Open {
        return 0;
    }
    let holdings = ledger.pools().map_or(0, |pools| pools.holdings_with(asset, account).count());
    ledger.held.count(asset, &account).saturating_add(holdings as u32)
}

/// Indices of a block's native transactions that are beyond the quotas of their sub-blocks by the state before,
/// ascending. A freeze that ends nothing is never among them for what other freezes end.
pub(crate) fn beyond(ledger: &Ledger, block: &Superblock) -> Vec<u32> {
    let seats = ledger.validators().terms.committee;
    let of_sub_block = |sub: &SubBlock| {
        let mut quota = Quota::default().of_seats(seats);
        let mut admits = |one: &Transaction| quota.admits(one, freeze_ends(ledger, one));
        sub.native.iter().map(|transaction| !admits(transaction)).collect::<Vec<bool>>()
    };
    let beyond = block.sub_blocks.iter().flat_map(of_sub_block);
    (0..).zip(beyond).filter(|(_, is_beyond)| *is_beyond).map(|(index, _)| index).collect()
}
