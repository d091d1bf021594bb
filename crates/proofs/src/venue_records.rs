//! Records of venues as they are hashed and proved.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{FillTree, Mandate, MarketId, OrderNumber, VenueId, VenueOperator};
use primitives::{Address, Amount, AssetId, Digest, Height, PublicKey};

const KEY_CONTEXT: &str = "walras 2026 venue record id v1";
const VALUE_CONTEXT: &str = "walras 2026 venue record v1";

/// A block, by height and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueMoment {
    /// Its height.
    pub height: Height,
    /// Its time, milliseconds since 1970.
    pub time_ms: u64,
}

/// Units that wait to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LeavingBond {
    /// How many.
    pub units: Amount,
    /// The block of the request.
    pub since: VenueMoment,
}

/// A venue.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueRecord {
    /// The account that owns it: it changes the operator, fences, holds the bond and receives fees.
    pub owner: Address,
    /// The present operator.
    pub operator: VenueOperator,
    /// The most that an order pays in fees, in millionths.
    pub fee_cap_ppm: u32,
    /// The present incarnation.
    pub incarnation: u32,
    /// Incarnations below this one are judged: their reports convict no more. If the present one is, nothing settles
    /// before a fence.
    pub judged: u32,
    /// Every report key of the incarnation.
    pub report_keys: Vec<PublicKey>,
    /// The fills of the incarnation, applied and bust.
    pub fills: FillTree,
    /// The ended incarnations ([`primitives::venue::EndedIncarnation::leaf`]).
    pub finals: FillTree,
    /// Units of asset 0 in the venue's bond, without those that leave.
    pub bond: Amount,
    /// Units of the bond that leave; they are liable until they are paid out.
    pub leaving: Option<LeavingBond>,
    /// Number of markets.
    pub markets: u32,
    /// Number of entries of orders.
    pub entries: u64,
}

/// A request for units of a deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LeavingDeposit {
    /// What is left of it.
    pub units: Amount,
    /// The height of the request.
    pub since: Height,
}

/// A deposit, which is not nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueDeposit {
    /// Units that pay for fills.
    pub free: Amount,
    /// Units that are asked for; they pay for fills until the request is past.
    pub leaving: Option<LeavingDeposit>,
}

/// A key that trades at a venue. It stays for ever.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TradingKey {
    /// The account that it trades for.
    pub owner: Address,
    /// The mandate of the key.
    pub mandate: Mandate,
    /// The gains of the key on balance, by asset; losses are negative, and no entry is zero.
    pub net: Vec<(AssetId, i128)>,
    /// The height at which it was revoked.
    pub revoked: Option<Height>,
    /// Lower numbers are dead.
    pub floor: OrderNumber,
    /// Raises of the floor that are not in force yet, with the heights at which they were asked for.
    pub raises: Vec<(Height, OrderNumber)>,
}

/// What is filled of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FilledOrder {
    /// The order ([`primitives::venue::VenueOrder::digest`]).
    pub digest: Digest,
    /// Lots.
    pub lots: u32,
    /// Quote units that it traded.
    pub quote: u128,
    /// Quote units that it paid in fees; a rebate is negative.
    pub fee: i128,
    /// The last height of the order.
    pub expiry: Height,
}

/// A deposit, by venue, account and asset.
pub type DepositId = (VenueId, Address, AssetId);
/// A trading key of a venue.
pub type TradingKeyId = (VenueId, PublicKey);
/// An entry of an order, by venue, incarnation, key, day and reference: those of ended incarnations come first.
pub type FilledId = (VenueId, u32, PublicKey, u16, u32);
/// A claimed fill, by venue, incarnation and index.
pub type ClaimedId = (VenueId, u32, u64);

/// Names a record in the state root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum VenueRecordId {
    /// A venue ([`VenueRecord`]).
    Venue(VenueId),
    /// A market ([`primitives::venue::MarketTerms`]).
    Market(VenueId, MarketId),
    /// A deposit ([`VenueDeposit`]).
    Deposit(DepositId),
    /// A key ([`TradingKey`]).
    Key(TradingKeyId),
    /// An entry of an order ([`FilledOrder`]).
    Filled(FilledId),
    /// A claimed fill ([`VenueMoment`] of the fence).
    Claimed(ClaimedId),
}

impl VenueRecordId {
    /// Its key in the trie of records.
    pub fn key(&self) -> [u8; 32] {
        // The longest id, that of an order's entry, has 47 bytes.
        Digest::of_short::<47>(KEY_CONTEXT, self).0
    }
}

/// The value of an encoded record in the trie of records.
pub fn record_value(record: &[u8]) -> [u8; 32] {
    Digest::of(VALUE_CONTEXT, record).0
}

impl VenueRecord {
    /// Units of asset 0 in the venue's bond, those that leave included.
    pub fn liable(&self) -> Amount {
        self.bond.saturating_add(self.leaving.map_or(0, |leaving| leaving.units))
    }
}

impl VenueDeposit {
    /// Units in it.
    pub fn units(&self) -> Amount {
        self.free + self.leaving.map_or(0, |leaving| leaving.units)
    }
}

impl TradingKey {
    /// The gain of the key in an asset, on balance.
    pub fn net(&self, asset: AssetId) -> i128 {
        self.net.binary_search_by_key(&asset, |(of, _)| *of).map_or(0, |at| self.net[at].1)
    }
}
