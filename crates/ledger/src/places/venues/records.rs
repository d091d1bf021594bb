//! What the ledger keeps of venues: records by id, and what the state root says of them.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{EndedIncarnation, FillTree, KeyScope, Mandate, MarketId, OrderNumber, VenueId, VenueOperator};
use primitives::{Address, Amount, AssetId, Digest, Height, PublicKey};
use smallvec::SmallVec;

const KEY_CONTEXT: &str = "walras 2026 venue record id v1";
const VALUE_CONTEXT: &str = "walras 2026 venue record v1";

/// The most raises of a key that are not in force yet.
pub(super) const RAISES_MAX: usize = 4;

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
    /// The ended incarnations ([`EndedIncarnation::leaf`]).
    pub finals: FillTree,
    /// Units of asset 0 that answer for it, without those that leave.
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
    /// What it may do.
    pub mandate: Mandate,
    /// What it has gained on balance, by asset; losses are negative, and nothing is zero.
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

/// The id of the entry of an order.
pub(super) fn filled_id(venue: VenueId, key: &PublicKey, number: &OrderNumber) -> FilledId {
    (venue, number.incarnation, *key, number.day, number.reference)
}

/// The number of the order of an entry.
pub(super) fn number_of(id: &FilledId) -> OrderNumber {
    OrderNumber { incarnation: id.1, day: id.3, reference: id.4 }
}

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

/// A record by its key in the trie, with its value if it exists.
pub(super) type VenueRow = ([u8; 32], Option<[u8; 32]>);

/// The value of an encoded record in the trie of records.
pub(super) fn value_of(record: &[u8]) -> [u8; 32] {
    Digest::of(VALUE_CONTEXT, record).0
}

/// What a key has gained of an asset.
pub(super) fn net_of(net: &[(AssetId, i128)], asset: AssetId) -> i128 {
    net.binary_search_by_key(&asset, |(of, _)| *of).map_or(0, |at| net[at].1)
}

/// What a key has gained, by asset; most keys trade one market.
pub(super) type Gains = SmallVec<[(AssetId, i128); 2]>;

/// Sets what a key has gained of an asset.
pub(super) fn set_net(net: &mut Gains, asset: AssetId, gained: i128) {
    match net.binary_search_by_key(&asset, |(of, _)| *of) {
        Ok(at) if gained == 0 => drop(net.remove(at)),
        Ok(at) => net[at].1 = gained,
        Err(_) if gained == 0 => {}
        Err(at) => net.insert(at, (asset, gained)),
    }
}

impl VenueRecord {
    /// Units of asset 0 that answer for it.
    pub fn liable(&self) -> Amount {
        self.bond.saturating_add(self.leaving.map_or(0, |leaving| leaving.units))
    }

    /// The present incarnation, as a fence in this block ends it.
    pub(super) fn ended(&self, now: VenueMoment) -> EndedIncarnation {
        EndedIncarnation {
            incarnation: self.incarnation,
            tree: self.fills.clone(),
            report_keys: self.report_keys.clone(),
            height: now.height,
            time_ms: now.time_ms,
        }
    }

    /// Takes up to this many units from the bond, and then from what leaves; returns how many.
    pub(super) fn forfeit(&mut self, units: Amount) -> Amount {
        let from_bond = units.min(self.bond);
        self.bond -= from_bond;
        let Some(leaving) = &mut self.leaving else { return from_bond };
        let from_leaving = (units - from_bond).min(leaving.units);
        leaving.units -= from_leaving;
        if leaving.units == 0 {
            self.leaving = None;
        }
        from_bond + from_leaving
    }

    /// The fault of a record that was read, if there is one.
    pub(super) fn is_sound(&self) -> bool {
        let of = |tree: &FillTree| FillTree::of(tree.count(), tree.peaks().to_vec()).is_some();
        let keys = &self.report_keys;
        of(&self.fills)
            && of(&self.finals)
            && self.finals.count() == u64::from(self.incarnation)
            && (1..=primitives::venue::REPORT_KEYS_MAX).contains(&keys.len())
            && keys.contains(&self.operator.report_key)
            && self.judged <= self.incarnation.saturating_add(1)
            && self.leaving.is_none_or(|leaving| leaving.units > 0)
    }
}

impl VenueDeposit {
    /// Units in it.
    pub fn units(&self) -> Amount {
        self.free + self.leaving.map_or(0, |leaving| leaving.units)
    }
}

impl TradingKey {
    /// A key that has not traded.
    pub(super) fn new(owner: Address, mandate: Mandate) -> TradingKey {
        let floor = OrderNumber { incarnation: 0, day: 0, reference: 0 };
        TradingKey { owner, mandate, net: Vec::new(), revoked: None, floor, raises: Vec::new() }
    }

    /// Encodes it with other gains, floor and raises.
    pub(super) fn encode_with(
        &self,
        net: &[(AssetId, i128)],
        floor: OrderNumber,
        raises: &[(Height, OrderNumber)],
        to: &mut Vec<u8>,
    ) {
        let TradingKey { owner, mandate, revoked, .. } = self;
        (owner, mandate, net, revoked, floor, raises).serialize(to).expect("writing to memory cannot fail");
    }

    /// What it has gained of an asset on balance.
    pub fn net(&self, asset: AssetId) -> i128 {
        net_of(&self.net, asset)
    }

    /// The fault of a record that was read, if there is one.
    pub(super) fn is_sound(&self) -> bool {
        self.mandate.is_plain()
            && self.mandate.scope == KeyScope::Venue
            && self.net.is_sorted_by(|a, b| a.0 < b.0)
            && self.net.iter().all(|(asset, net)| *net != 0 && *net >= -i128::from(self.mandate.cap(*asset)))
            && self.raises.len() <= RAISES_MAX
            && self.raises.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1)
    }
}

#[cfg(test)]
mod tests {
    use primitives::venue::MarketMandate;

    use super::*;

    #[test]
    fn a_key_is_encoded_with_changes_as_the_changed_key_is() {
        let markets = vec![MarketMandate { market: 3, tick_min: 4, tick_max: 5 }];
        let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(AssetId(1), 9)] };
        let number = |reference| OrderNumber { incarnation: 1, day: 2, reference };
        let before = TradingKey { revoked: Some(8), ..TradingKey::new(Address([7; 20]), mandate) };
        let (net, floor, raises) = (vec![(AssetId(1), -4)], number(6), vec![(3, number(9))]);
        let mut bytes = Vec::new();
        before.encode_with(&net, floor, &raises, &mut bytes);
        let after = TradingKey { net, floor, raises, ..before };
        assert_eq!(bytes, borsh::to_vec(&after).expect("memory"));
    }
}
