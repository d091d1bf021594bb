//! Bounds of what a chain carries.
//!
//! *Limits* are settings of a chain: they are in its genesis and so part of its identity. *Quotas* bound the work
//! that one proposer can cause for everyone; they are part of the rules, and changing one changes the number of the
//! rules.
//!
//! | what | bound | where it is set |
//! |---|---|---|
//! | resting offers, open pairs, validators | [`Limits`] | genesis, `limits` |
//! | offers, pairs and pools with assets that were listed after the genesis | half of all; a sixteenth of offers and pairs for each asset | rules |
//! | open assets | [`super::ListingTerms::assets_max`] | genesis, `listings` |
//! | offers and holdings of pools that the freezes of a sub-block end | [`crate::FREEZE_ENDS_PER_SUB_BLOCK`], by the state before | rules |
//! | listings of a sub-block | [`crate::LISTINGS_PER_SUB_BLOCK`] | rules |
//! | offers of closed assets that return after a batch | [`crate::CLOSED_RETURNS`] | rules |
//! | bytes of a sub-block | `sub_block_bytes` | genesis, `consensus` |
//! | bytes of a superblock | committee × `sub_block_bytes` ≤ [`BLOCK_BYTES_MAX`] | asserted when a genesis is read |
//! | bytes of a vote log | [`votes_bytes`] ≤ [`VOTES_BYTES_MAX`] | asserted when a genesis is read |
//! | accusations, stakes of a sub-block | [`crate::ACCUSATIONS_PER_SUB_BLOCK`], [`crate::STAKES_PER_SUB_BLOCK`] | rules |
//! | stops and revocations of session keys of a sub-block | [`crate::SESSION_ENDS_PER_SUB_BLOCK`] | rules |
//! | checks of signatures of a sub-block's posts about the lane | [`crate::LANE_CHECKS_PER_SUB_BLOCK`] | rules |
//! | the same for members' duties | [`crate::LANE_DUTY_CHECKS_PER_SUB_BLOCK`] | rules |
//! | presences of a sub-block | [`Limits::validators`], once an epoch each | follows: each has one form and one sender |
//! | approvals of rules, and withdrawals | once a block for each account with a stake or a seat | follows; free under the validator's key |
//! | posts of a sub-block about the sealing key | [`crate::SEAL_POSTS_PER_SUB_BLOCK`]; of a seat one in a block, and one in a pool | rules; free |
//! | entries of the charter | accounts that have staked within [`Limits::until_max`] heights | follows: one each |
//! | notice and patience of rules | `CHARTER_HEIGHTS_MAX`: 400 days | rules |
//! | signatures of keys of a sub-block's requests by policies and changes of keys | [`crate::POLICY_SIGNATURES_PER_SUB_BLOCK`] | rules; checked before a vote |
//! | signatures of a request by a policy, of a change of keys | 16, 32 | rules |
//! | recoveries of a sub-block's native transactions | [`crate::TYPED_DATA_PER_SUB_BLOCK`] | rules; checked before a vote |
//! | signatures of a sub-block's settles of venues | [`primitives::venue::VENUE_SIGNATURES_PER_SUB_BLOCK`] | rules; checked before a vote |
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

/// The most gas that one transaction may declare (EIP-7825).
pub const TRANSACTION_GAS_MAX: u64 = revm::primitives::eip7825::TX_GAS_LIMIT_CAP;

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
