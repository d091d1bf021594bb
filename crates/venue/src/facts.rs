//! What certified blocks say: the only things a root knows of the ledger.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{Mandate, MarketId, MarketTerms, OrderNumber, VenueOperator};
use primitives::{Address, Amount, AssetId, Digest, Height, PublicKey, Sequence};

/// The certified state after a block, as far as it differs from the one before. The first one that a root is given
/// states everything.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CertifiedFacts {
    /// The block's height.
    pub height: Height,
    /// Its time in milliseconds since 1970.
    pub time_ms: u64,
    /// The highest block that the host knows to be decided, certified or not: what its peers say, not what its own node
    /// has replayed. The root matches nothing while it is far behind it.
    pub newest: Height,
    /// What it changed, in any order.
    pub facts: Vec<VenueFact>,
}

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum VenueFact {
    /// A settle of the venue counted.
    Settled {
        /// Its incarnation.
        incarnation: u32,
        /// The index of its first fill.
        from: u64,
        /// The leaves, in order.
        leaves: Vec<Digest>,
        /// What became of the fills.
        fates: Vec<FillFate>,
    },
    /// The venue's record.
    Venue(VenueStanding),
    /// The operator's account.
    Operator(OperatorStanding),
    /// A market was listed.
    Market(MarketId, MarketTerms),
    /// A deposit.
    Deposit {
        /// Whose.
        account: Address,
        /// The asset.
        asset: AssetId,
        /// Units that are free.
        free: Amount,
        /// Units that leave.
        leaving: Amount,
    },
    /// A trading key.
    Key(PublicKey, KeyStanding),
    /// The rules of the next block. A chain that is older than this fact does not state them.
    Rules(u32),
    /// Units of asset 0 that a unit of weight costs at most, now or under what validators have voted. A vote can change
    /// what the terms of a root say of it. A chain that is older than this fact does not state it.
    Fee(Amount),
    /// An asset whose issuer freezes holders. What was said of its holders before is void.
    Controlled(AssetId, FreezableAsset),
    /// What the issuer of such an asset has said of an account; a root ignores it unless the account has a key at the
    /// venue, or owns it.
    Holder {
        /// The asset.
        asset: AssetId,
        /// The account.
        account: Address,
        /// Whether it may trade the asset.
        is_open: bool,
    },
    /// The account that owns the venue, and is paid its fees.
    Owner(Address),
}

/// An asset whose issuer freezes holders, as far as a root needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FreezableAsset {
    /// Its issuer, who is exempt.
    pub issuer: Address,
    /// Whether only those hold it whom the issuer has admitted.
    pub admits: bool,
}

/// The record of a venue, as far as its root needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueStanding {
    /// The present incarnation.
    pub incarnation: u32,
    /// The present operator.
    pub operator: VenueOperator,
    /// Whether the present incarnation was convicted: nothing settles before a fence.
    pub is_convicted: bool,
    /// The most that an order pays in fees, in millionths.
    pub fee_cap_ppm: u32,
    /// Fills that are settled.
    pub settled: u64,
    /// Units of the bond, without those that leave.
    pub bond: Amount,
    /// Entries of orders.
    pub entries: u64,
}

/// The account that settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OperatorStanding {
    /// Its address.
    pub account: Address,
    /// Units of asset 0 that it can spend.
    pub balance: Amount,
    /// The highest sequence number used.
    pub highest: Sequence,
    /// Which of the 64 numbers from the highest down are used; the lowest bit is the highest number.
    pub used: u64,
}

impl OperatorStanding {
    /// Whether a number can never count again.
    pub fn is_used(&self, sequence: Sequence) -> bool {
        self.highest.checked_sub(sequence).is_some_and(|behind| behind >= 64 || self.used >> behind & 1 == 1)
    }
}

/// A trading key, as far as a root needs it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct KeyStanding {
    /// The account that it trades for.
    pub owner: Address,
    /// The mandate of the key.
    pub mandate: Mandate,
    /// The gains of the key on balance, by asset; losses are negative.
    pub net: Vec<(AssetId, i128)>,
    /// Whether it was revoked, in force or not: the venue obeys at once.
    pub is_revoked: bool,
    /// The floor in force.
    pub floor: OrderNumber,
    /// The highest floor that was asked for, in force or not.
    pub raised: OrderNumber,
}

/// What became of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum FillFate {
    /// It moved what it says.
    Applied,
    /// It changed nothing.
    Bust(FillBust),
}

/// The rule that a fill broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum FillBust {
    /// F1: markets, keys, sides, owners or incarnation.
    Parties,
    /// F2: a revoked key, or a number that is dead or used.
    Dead,
    /// F3: an expired order.
    Expired,
    /// F4: price, lots or taker.
    Outside,
    /// F5: amounts or fees.
    Size,
    /// F6: a short deposit.
    Deposit,
    /// F7: a loss beyond the key's cap.
    Drawdown,
    /// F8: a party, or the venue's owner, is frozen in an asset of the market.
    Frozen,
    /// The incarnation ended before it was settled. It can be claimed with its report.
    Fenced,
}
