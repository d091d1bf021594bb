//! Bounds of what a chain carries.
//!
//! *Limits* are settings of a chain: they are in its genesis and so part of its identity. *Quotas* bound the work
//! that one proposer can cause for everyone; they are part of the rules, and changing one changes the number of the
//! rules.
//!
//! | what | bound | where it is set |
//! |---|---|---|
//! | resting offers, open pairs, validators | [`Limits`] | genesis, `limits` |
//! | bytes of a sub-block | `sub_block_bytes` | genesis, `consensus` |
//! | bytes of a superblock | committee × `sub_block_bytes` ≤ [`BLOCK_BYTES_MAX`] | asserted when a genesis is read |
//! | bytes of a vote log | [`votes_bytes`] ≤ [`VOTES_BYTES_MAX`] | asserted when a genesis is read |
//! | accusations, stakes of a sub-block | [`ACCUSATIONS_PER_SUB_BLOCK`], [`STAKES_PER_SUB_BLOCK`] | rules |
//! | stops and revocations of session keys of a sub-block | [`SESSION_ENDS_PER_SUB_BLOCK`] | rules |
//! | checks of signatures of a sub-block's posts about the lane | [`LANE_CHECKS_PER_SUB_BLOCK`] | rules |
//! | the same for members' duties | [`LANE_DUTY_CHECKS_PER_SUB_BLOCK`] | rules |
//! | presences of a sub-block | [`Limits::validators`], once an epoch each | follows: each has one form and one sender |
//! | recoveries of a sub-block's native transactions | [`TYPED_DATA_PER_SUB_BLOCK`] | rules; checked before a vote |
//! | signatures of a sub-block's settles of venues | [`VENUE_SIGNATURES_PER_SUB_BLOCK`] | rules; checked before a vote |
//! | bytes of a settle, entries and number of venues | `VenueTerms` | genesis, `venues` |
//! | gas of a sub-block | [`Limits::sub_block_gas`], times committee ≤ [`Limits::block_gas`] | genesis, `limits` |
//! | receipts of a block | resting offers and the block's own offers | follows; stored in parts of any number |
//! | units of an asset | `primitives::MAX_ISSUED` | rules |
//! | heights until a native transaction ends | [`Limits::until_max`] | genesis, `limits` |
//! | sequence numbers of an account in use | [`crate::SEQUENCE_WINDOW`] | rules |
//! | validators of a committee | 256: an index is a byte | rules |
//! | chunk of a state | 32,768 entries; files in chunks of `store::CHUNK_BYTES` | format |
//! | queues, peers, followers, requests | constants and settings of the node | local |
//!
//! A book that holds [`Limits::resting_offers`] or more accepts no offer until some have left it, so it never holds
//! more than that limit plus the offers of one block. Pairs are counted exactly: of the pairs that a block would
//! open, the lowest are opened as far as there is room.

use borsh::{BorshDeserialize, BorshSerialize};
use payments::POST_CHECKS_MAX;
use primitives::venue::{VENUE_SIGNATURES_PER_SUB_BLOCK, VenueOperation};
use primitives::{Operation, SignedBy, SubBlock, Superblock, Transaction, is_lane_duty};

use crate::contracts::TRANSACTION_GAS_MAX;
use crate::places::bridge;

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

/// Bytes of the sub-blocks of one superblock: `sub_block_bytes` times the validators of a committee. Counts inside a
/// block have 32 bits.
pub const BLOCK_BYTES_MAX: u64 = 1 << 31;
/// Bytes that a vote log may hold: sub-blocks of all validators at all heights that a validator works on at the same
/// time.
pub const VOTES_BYTES_MAX: u64 = 64 << 30;

const _: () = assert!(BLOCK_BYTES_MAX <= u32::MAX as u64, "counts inside a block have 32 bits");
const _: () = assert!(VOTES_BYTES_MAX >= 2 * BLOCK_BYTES_MAX, "a vote log holds the largest block, twice");

/// Bytes that a vote log may need while `heights` heights are undecided, with one sub-block of `bytes` per validator
/// at each: each is written at most twice before whole files are deleted.
pub const fn votes_bytes(heights: u64, validators: u64, bytes: u64) -> u64 {
    heights.saturating_mul(validators).saturating_mul(bytes).saturating_mul(2)
}

/// Gas of a block on a chain with contracts, if its committee does not need more.
pub const USUAL_BLOCK_GAS: u64 = 120_000_000;
/// The minimum price of a unit of gas in wei on a chain with contracts: a transfer costs about as much as a native
/// transaction, a ten-thousandth of a whole asset 0.
const USUAL_BASE_FEE: u64 = 5_000_000_000;

/// Limits of a chain, set by its genesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Limits {
    /// Resting offers; at this number no more are accepted.
    pub resting_offers: u64,
    /// Ordered pairs that have resting offers.
    pub open_pairs: u32,
    /// Accounts that validate: beyond these, the account with the lowest stake is unstaked.
    pub validators: u32,
    /// Gas that Ethereum transactions of a block may declare; zero on a chain without contracts.
    pub block_gas: u64,
    /// Gas that Ethereum transactions of a sub-block may declare; transactions beyond it are skipped.
    pub sub_block_gas: u64,
    /// The minimum price of a unit of gas, in wei.
    pub least_base_fee: u64,
    /// How many heights ahead a native transaction may end ([`primitives::Body::until`]).
    pub until_max: u64,
}

/// The usual [`Limits::until_max`]: about a day of blocks of a second.
const UNTIL_MAX: u64 = 100_000;
const _: () = assert!(primitives::UNTIL_USUAL < UNTIL_MAX, "clients stay within the limit");

impl Limits {
    /// The same limits with contracts, for committees of this size: each sub-block has an equal share of a block's
    /// gas, and at least what one transaction may declare.
    pub fn with_contracts(self, committee: u32) -> Limits {
        self.with_block_gas(committee, USUAL_BLOCK_GAS)
    }

    /// The same with this gas of a block, or more if a whole transaction of each member would not fit.
    pub fn with_block_gas(self, committee: u32, block_gas: u64) -> Limits {
        let committee = u64::from(committee.max(1));
        let sub_block_gas = (block_gas / committee).max(TRANSACTION_GAS_MAX);
        let block_gas = block_gas.max(sub_block_gas * committee);
        Limits { block_gas, sub_block_gas, least_base_fee: USUAL_BASE_FEE, ..self }
    }

    /// Whether the chain executes Ethereum transactions.
    pub fn has_contracts(&self) -> bool {
        self.block_gas > 0
    }
}

impl Default for Limits {
    fn default() -> Limits {
        let (block_gas, sub_block_gas, least_base_fee) = (0, 0, 0);
        Limits {
            resting_offers: 1 << 25,
            open_pairs: 1 << 16,
            validators: 256,
            block_gas,
            sub_block_gas,
            least_base_fee,
            until_max: UNTIL_MAX,
        }
    }
}

/// Transactions of a sub-block that may be signed as typed data: each costs a recovery of some 45 µs, which no batch
/// equation makes cheaper. A sub-block with more is invalid by its bytes alone.
pub const TYPED_DATA_PER_SUB_BLOCK: u32 = 4_096;

/// Exact orders of a sub-block: amounts are sought for them beside those of all offers.
pub const EXACTS_PER_SUB_BLOCK: u32 = 1_024;

/// Stops and revocations of session keys of a sub-block: each takes up to [`crate::SLOT_OFFERS_MAX`] offers out of the
/// book.
pub const SESSION_ENDS_PER_SUB_BLOCK: u32 = 16;

/// What a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    /// Recoveries of typed data.
    Recoveries,
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
    /// Signatures of settles of venues.
    VenueSignatures,
}

/// What a sub-block has of each quota, by [`QuotaKind`].
const QUOTAS: [u32; 8] = [
    TYPED_DATA_PER_SUB_BLOCK,
    ACCUSATIONS_PER_SUB_BLOCK,
    STAKES_PER_SUB_BLOCK,
    EXACTS_PER_SUB_BLOCK,
    SESSION_ENDS_PER_SUB_BLOCK,
    LANE_DUTY_CHECKS_PER_SUB_BLOCK,
    LANE_CHECKS_PER_SUB_BLOCK,
    VENUE_SIGNATURES_PER_SUB_BLOCK,
];

impl QuotaKind {
    /// What a sub-block has of it.
    pub fn of_sub_block(self) -> u32 {
        QUOTAS[self as usize]
    }
}

/// The quotas that a transaction counts against, and by how much: most against none, few against two.
pub fn quotas_of(transaction: &Transaction) -> impl Iterator<Item = (QuotaKind, u32)> + use<> {
    let is_typed = matches!(transaction.signed_by, SignedBy::TypedData { .. });
    let recovery = is_typed.then_some((QuotaKind::Recoveries, 1));
    let other = match &transaction.body.operation {
        Operation::Accuse(_) => Some((QuotaKind::Accusations, 1)),
        Operation::Stake(_) => Some((QuotaKind::Stakes, 1)),
        Operation::Exact { .. } => Some((QuotaKind::Exacts, 1)),
        Operation::Session(operation) if operation.ends_offers() => Some((QuotaKind::SessionEnds, 1)),
        Operation::Lane(bytes) if is_lane_duty(bytes) => Some((QuotaKind::LaneDutyChecks, bridge::cost(bytes))),
        Operation::Lane(bytes) => Some((QuotaKind::LaneChecks, bridge::cost(bytes))),
        Operation::Venue(operation) => match &**operation {
            VenueOperation::Settle(settle) => Some((QuotaKind::VenueSignatures, settle.signatures() as u32)),
            VenueOperation::Accuse(_) | VenueOperation::Claim(_) => Some((QuotaKind::Accusations, 1)),
            _ => None,
        },
        _ => None,
    };
    recovery.into_iter().chain(other)
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
    /// Counts the next transaction of the sub-block; false, and nothing is counted, if a quota has too little left.
    pub fn admits(&mut self, transaction: &Transaction) -> bool {
        let has_room = quotas_of(transaction).all(|(kind, cost)| self.left[kind as usize] >= cost);
        if has_room {
            quotas_of(transaction).for_each(|(kind, cost)| self.left[kind as usize] -= cost);
        }
        has_room
    }
}

/// Indices of a block's native transactions that are beyond the quotas of their sub-blocks, ascending.
pub(crate) fn beyond_quota(block: &Superblock) -> Vec<u32> {
    let of_sub_block = |sub: &SubBlock| {
        let mut quota = Quota::default();
        sub.native.iter().map(|transaction| !quota.admits(transaction)).collect::<Vec<bool>>()
    };
    let beyond = block.sub_blocks.iter().flat_map(of_sub_block);
    (0..).zip(beyond).filter(|(_, is_beyond)| *is_beyond).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_committee_has_gas_for_a_whole_transaction_of_each() {
        for committee in 0..=256 {
            let Limits { block_gas, sub_block_gas, .. } = Limits::default().with_contracts(committee);
            assert!(sub_block_gas >= TRANSACTION_GAS_MAX && block_gas >= USUAL_BLOCK_GAS);
            assert!(block_gas >= sub_block_gas * u64::from(committee));
        }
        assert_eq!(Limits::default().with_contracts(4).sub_block_gas, USUAL_BLOCK_GAS / 4);
    }
}
