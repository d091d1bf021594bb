//! The history of accounts as rows of an index: orders, fills, ends of offers, transfers and balances. An exact order
//! has one fill or none, and no end: its outcome says what became of it.
//!
//! Rows follow from a published block and its receipts alone, but for balances, at which the node looks after the
//! block. A key is the account, the kind, what the kind is further sorted by, the height (8 bytes) and the row's
//! position in the block (4 bytes), numbers big-endian. So the rows of one account and kind ascend with time, and every
//! question is a range. Whoever keeps the rows decides where ([`rows_of`] makes them, [`HistoryRange`] names them).
//!
//! Not here: what contracts move (their receipts have logs), payouts of the lane, of stakes and of venues. They show in
//! balances.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};
use ledger::contracts::OfferEvent;
use ledger::{
    BlockReceipts, EndReason, EndedOffer, ExactOutcome, ExactReason, Fill, OpenedOperation, Outcome, Pair, Place,
};
use primitives::{
    Address, AssetId, Body, ClientId, ExactSide, Height, Life, Operation, Price, Reference, Sequence, Superblock,
    Transaction, TransactionId,
};

pub use crate::history_values::{BalanceRow, FillRow, HeldUnits, OfferChange, OrderRow, TransferKind, TransferRow};

/// The form of the rows: another one is another index.
pub const HISTORY_FORMAT: &str = "walras history of accounts 4";

/// A row: key and value.
pub type HistoryRow = (Vec<u8>, Vec<u8>);

/// The heights whose rows an index has; none if `known_from` is above `height`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistorySpan {
    /// The first height.
    pub known_from: Height,
    /// The last height.
    pub height: Height,
}

/// What rows are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Order = 1,
    ByNumber = 2,
    ByClient = 3,
    Fill = 4,
    OfferChange = 5,
    Transfer = 6,
    Balance = 7,
    ByReference = 8,
}

/// Where a row stands among those of its account and kind: the cursor of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HistoryPlace {
    /// Height of its block.
    pub height: Height,
    /// Its position there.
    pub position: u32,
}

impl std::fmt::Display for HistoryPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.height, self.position)
    }
}

impl FromStr for HistoryPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<HistoryPlace, String> {
        let parts = text.split_once('-').map(|(height, position)| (height.parse(), position.parse()));
        let place = match parts {
            Some((Ok(height), Ok(position))) => Some(HistoryPlace { height, position }),
            _ => None,
        };
        let same = place.filter(|place| place.to_string() == text);
        same.ok_or_else(|| format!("{text:?} is no cursor of a history: pass the `next` of an answer"))
    }
}

impl HistoryPlace {
    /// The place of a key.
    pub(crate) fn of(key: &[u8]) -> Option<HistoryPlace> {
        let (_, place) = key.split_last_chunk::<12>()?;
        let (height, position) = place.split_first_chunk::<8>()?;
        let position = u32::from_be_bytes(position.try_into().ok()?);
        Some(HistoryPlace { height: u64::from_be_bytes(*height), position })
    }

    fn bytes(self) -> Vec<u8> {
        [&self.height.to_be_bytes()[..], &self.position.to_be_bytes()].concat()
    }
}

/// Rows of one account and kind, from a key to below another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRange {
    /// The first key.
    pub from: Vec<u8>,
    /// The key above the last.
    pub to: Vec<u8>,
}

/// Part of a history: rows below a place, down to a height.
#[derive(Clone, Copy, Debug)]
pub struct HistoryPart {
    /// The place above the first row; `None` begins with the newest.
    pub below: Option<HistoryPlace>,
    /// The lowest height.
    pub since: Height,
}

impl HistoryPart {
    /// All of it.
    pub const WHOLE: HistoryPart = HistoryPart { below: None, since: 0 };
}

impl HistoryRange {
    /// The key at a place of this range.
    pub fn key_at(&self, place: HistoryPlace) -> Vec<u8> {
        [&self.from[..self.from.len().saturating_sub(12)], &place.bytes()].concat()
    }

    fn of(account: &Address, kind: Kind, further: &[u8], part: HistoryPart) -> HistoryRange {
        let prefix = prefix(account, kind, further);
        let from = [&prefix[..], &HistoryPlace { height: part.since, position: 0 }.bytes()].concat();
        let top = HistoryPlace { height: Height::MAX, position: u32::MAX };
        let to = [&prefix[..], &part.below.unwrap_or(top).bytes()].concat();
        HistoryRange { from, to }
    }

    fn at(account: &Address, kind: Kind, place: HistoryPlace) -> HistoryRange {
        let above = HistoryPlace { position: place.position.saturating_add(1), ..place };
        let up_to = HistoryRange::of(account, kind, &[], HistoryPart { below: Some(above), since: 0 });
        HistoryRange { from: up_to.key_at(place), ..up_to }
    }

    /// The orders of an account.
    pub fn orders(account: &Address, part: HistoryPart) -> HistoryRange {
        HistoryRange::of(account, Kind::Order, &[], part)
    }

    /// The places of the orders with a number.
    pub fn with_number(account: &Address, number: Sequence) -> HistoryRange {
        HistoryRange::of(account, Kind::ByNumber, &number.to_be_bytes(), HistoryPart::WHOLE)
    }

    /// The places of the orders with a client's name.
    pub fn with_client(account: &Address, client: &ClientId) -> HistoryRange {
        HistoryRange::of(account, Kind::ByClient, &client.0, HistoryPart::WHOLE)
    }

    /// The order at a place.
    pub fn order_at(account: &Address, place: HistoryPlace) -> HistoryRange {
        HistoryRange::at(account, Kind::Order, place)
    }

    /// The fills of an account.
    pub fn fills(account: &Address, part: HistoryPart) -> HistoryRange {
        HistoryRange::of(account, Kind::Fill, &[], part)
    }

    /// What became of the offer with a number.
    pub fn changes(account: &Address, offer: Sequence, part: HistoryPart) -> HistoryRange {
        HistoryRange::of(account, Kind::OfferChange, &offer.to_be_bytes(), part)
    }

    /// The transfers of an account.
    pub fn transfers(account: &Address, part: HistoryPart) -> HistoryRange {
        HistoryRange::of(account, Kind::Transfer, &[], part)
    }

    /// The places of the transfers of an account with a reference.
    pub fn with_reference(account: &Address, reference: &Reference, part: HistoryPart) -> HistoryRange {
        HistoryRange::of(account, Kind::ByReference, &reference_key(reference), part)
    }

    /// The transfer at a place.
    pub fn transfer_at(account: &Address, place: HistoryPlace) -> HistoryRange {
        HistoryRange::at(account, Kind::Transfer, place)
    }

    /// The balances of an account.
    pub fn balances(account: &Address, part: HistoryPart) -> HistoryRange {
        HistoryRange::of(account, Kind::Balance, &[], part)
    }
}

/// A reference in a key: its kind and its length stand before it, so that none is the beginning of another one.
fn reference_key(reference: &Reference) -> Vec<u8> {
    borsh::to_vec(reference).expect("writing to memory cannot fail")
}

fn prefix(account: &Address, kind: Kind, further: &[u8]) -> Vec<u8> {
    [&account.0[..], &[kind as u8], further].concat()
}

/// Decodes a row.
///
/// # Errors
/// If the bytes are no such row.
pub fn read_row<T: BorshDeserialize>((key, value): &HistoryRow) -> Result<(HistoryPlace, T), std::io::Error> {
    let place = HistoryPlace::of(key).ok_or_else(|| std::io::Error::other("the key of a row is too short"))?;
    Ok((place, borsh::from_slice(value)?))
}

/// The rows of a block, while they are made.
struct Rows {
    height: Height,
    rows: Vec<HistoryRow>,
}

impl Rows {
    fn add(&mut self, account: &Address, kind: Kind, further: &[u8], position: u32, value: &impl BorshSerialize) {
        let place = HistoryPlace { height: self.height, position };
        let key = [prefix(account, kind, further), place.bytes()].concat();
        self.rows.push((key, borsh::to_vec(value).expect("writing to memory cannot fail")));
    }

    fn add_change(&mut self, place: &Place, position: u32, change: OfferChange) {
        self.add(&place.account, Kind::OfferChange, &place.id.to_be_bytes(), position, &change);
    }
}

/// Positions of ends come after those of fills, and what contracts cancelled after both.
const ENDED_FROM: u32 = 1 << 30;
const CANCELLED_BY_CONTRACT_FROM: u32 = 1 << 31;

/// A transaction of a block in which its account acts.
pub struct ActedTransaction<'a> {
    /// What it says.
    pub body: &'a Body,
    /// Its id; of an operation in an envelope the one that it has there.
    pub id: TransactionId,
    /// The outcome that counts of its id.
    pub outcome: Outcome,
    /// The envelope that held it.
    pub sealed_by: Option<TransactionId>,
}

/// The transactions of a block, and behind them the operations in its envelopes ([`ledger::enclosed`]), each with its
/// position. What lost against a copy of itself in the block ([`ledger::outcomes_by_id`]) is left out.
pub fn acted<'a>(
    block: &'a Superblock,
    receipts: &'a BlockReceipts,
    enclosed: &'a [OpenedOperation],
) -> impl Iterator<Item = (u32, ActedTransaction<'a>)> {
    let counted: BTreeMap<TransactionId, Outcome> =
        ledger::outcomes_by_id(receipts.outcomes.iter().copied()).into_iter().collect();
    let mut seen = BTreeSet::new();
    let native = block.sub_blocks.iter().flat_map(|sub| &sub.native);
    let plain = native.zip(&receipts.outcomes).map(|(one, (id, _))| (one, *id, None));
    let sealed_by = |one: &OpenedOperation| receipts.outcomes.get(one.envelope as usize).map(|(id, _)| *id);
    let sealed = enclosed.iter().map(move |one| (&one.transaction, one.id, sealed_by(one)));
    (0..).zip(plain.chain(sealed)).filter_map(move |(position, (one, id, sealed_by)): (_, (&Transaction, _, _))| {
        let outcome = *counted.get(&id).filter(|_| seen.insert(id))?;
        Some((position, ActedTransaction { body: &one.body, id, outcome, sealed_by }))
    })
}

/// The rows of a block: orders, fills, ends and transfers. `enclosed` is what its envelopes held.
pub fn rows_of(block: &Superblock, receipts: &BlockReceipts, enclosed: &[OpenedOperation]) -> Vec<HistoryRow> {
    let (height, time_ms) = (block.height, block.time_ms);
    let mut rows = Rows { height, rows: Vec::new() };
    let mut exacts = Vec::new();
    for (position, one) in acted(block, receipts, enclosed) {
        let body = one.body;
        if let Some(order) = order_of(&one, time_ms) {
            rows.add(&body.account, Kind::ByNumber, &body.sequence.to_be_bytes(), position, &());
            if order.client != ClientId::NONE {
                rows.add(&body.account, Kind::ByClient, &order.client.0, position, &());
            }
            rows.add(&body.account, Kind::Order, &[], position, &order);
            if let Some(fill) = exact_fill(body.account, &order) {
                exacts.push(fill);
            }
        }
        if one.outcome == Outcome::Applied {
            for (account, row) in transfers_of(body, one.id, time_ms) {
                if let Some(reference) = &row.reference {
                    rows.add(&account, Kind::ByReference, &reference_key(reference), position, &());
                }
                rows.add(&account, Kind::Transfer, &[], position, &row);
            }
        }
    }
    for (position, fill) in (0..).zip(receipts.batch.fills.iter().chain(&exacts)) {
        let row = FillRow { time_ms, fill: *fill };
        rows.add(&fill.place.account, Kind::Fill, &[], position, &row);
        rows.add_change(&fill.place, position, OfferChange::Filled(row));
    }
    for (position, EndedOffer { place, returned, why, .. }) in (ENDED_FROM..).zip(&receipts.batch.ended) {
        rows.add_change(place, position, OfferChange::Ended { time_ms, returned: *returned, why: *why });
    }
    for (position, event) in (CANCELLED_BY_CONTRACT_FROM..).zip(OfferEvent::of_block(&receipts.contracts)) {
        if let OfferEvent::Cancelled(_, place, returned) = event {
            rows.add_change(&place, position, OfferChange::Ended { time_ms, returned, why: EndReason::Cancelled });
        }
    }
    rows.rows
}

/// The fill of an exact order.
fn exact_fill(account: Address, order: &OrderRow) -> Option<Fill> {
    let Outcome::Exact(ExactOutcome { sold, bought, returned, why: ExactReason::Filled }) = order.outcome else {
        return None;
    };
    let place = Place { limit: order.limit, account, id: order.sequence };
    Some(Fill { pair: order.pair, place, sold, bought, left: 0, returned })
}

fn order_of(one: &ActedTransaction, time_ms: u64) -> Option<OrderRow> {
    let &ActedTransaction { body, id, outcome, sealed_by } = one;
    let (pair, limit, amount) = match &body.operation {
        &Operation::CreateOffer { sell, buy, amount, limit, .. } => (Pair { sell, buy }, limit, amount),
        Operation::Replace(replace) => {
            (Pair { sell: replace.old.sell, buy: replace.old.buy }, replace.limit, replace.amount)
        }
        &Operation::Exact { sell, buy, side, units, bound, .. } => {
            let (amount, asked) = if side == ExactSide::Buy { (bound, units) } else { (units, bound) };
            // A ratio beyond the range of prices is shown as the end of it.
            let end = if asked > amount { Price::MAX } else { Price::MIN };
            (Pair { sell, buy }, Price::ratio_rounding_up(asked, amount).unwrap_or(end), amount)
        }
        _ => return None,
    };
    let (life, client, replaces, exact) = match &body.operation {
        &Operation::CreateOffer { life, client, .. } => (life, client, None, None),
        Operation::Replace(replace) => (replace.life, replace.client, Some(replace.old.offer), None),
        &Operation::Exact { side, units, bound, client, .. } => {
            (Life::OneBatch, client, None, Some((side, units, bound)))
        }
        _ => return None,
    };
    let (sequence, until) = (body.sequence, body.until);
    Some(OrderRow {
        time_ms,
        id,
        sequence,
        until,
        pair,
        limit,
        amount,
        life,
        client,
        replaces,
        exact,
        outcome,
        sealed_by,
    })
}

/// The transfers of a transaction that took effect: each with the account whose history has it.
pub fn transfers_of(body: &Body, id: TransactionId, time_ms: u64) -> Vec<(Address, TransferRow)> {
    let own = body.account;
    let reference = body.operation.reference().cloned();
    let row = |asset, amount, kind| {
        let reference = reference.clone();
        TransferRow { time_ms, id, asset, amount, received: false, with: None, kind, reference }
    };
    match &body.operation {
        &Operation::Pay { to, asset, amount } | &Operation::PayReferenced { to, asset, amount, .. } => {
            let sent = TransferRow { with: Some(to), ..row(asset, amount, TransferKind::Payment) };
            vec![(own, sent.clone()), (to, TransferRow { received: true, with: Some(own), ..sent })]
        }
        &Operation::Issue { to, asset, amount } | &Operation::IssueReferenced { to, asset, amount, .. } => {
            let with = Some(own).filter(|own| *own != to);
            vec![(to, TransferRow { received: true, with, ..row(asset, amount, TransferKind::Issue) })]
        }
        &Operation::Burn { asset, amount } => vec![(own, row(asset, amount, TransferKind::Burn))],
        Operation::Stake(stake) if stake.units > 0 => {
            vec![(own, row(AssetId(0), stake.units, TransferKind::Stake))]
        }
        &Operation::Withdraw { asset, amount, .. } => vec![(own, row(asset, amount, TransferKind::Lane))],
        Operation::Venue(operation) => {
            let debit = operation.debit().into_iter();
            debit.map(|(asset, units)| (own, row(asset, units, TransferKind::Venue))).collect()
        }
        _ => Vec::new(),
    }
}

/// Each account that a block changed, with the assets that it may have changed: those of its own transactions,
/// transfers and offers, and asset 0. The assets are all (`None`) where they do not follow from native operations. That
/// is so after contracts and, with `pays_out`, on chains whose lane or venues pay accounts later.
pub fn touched(
    block: &Superblock,
    receipts: &BlockReceipts,
    enclosed: &[OpenedOperation],
    pays_out: bool,
) -> BTreeMap<Address, Option<BTreeSet<AssetId>>> {
    let mut known: BTreeMap<Address, BTreeSet<AssetId>> = BTreeMap::new();
    let mut note = |account: Address, assets: &[AssetId]| {
        known.entry(account).or_insert_with(|| BTreeSet::from([AssetId(0)])).extend(assets);
    };
    let native = block.sub_blocks.iter().flat_map(|sub| &sub.native);
    for transaction in native.chain(enclosed.iter().map(|one| &one.transaction)) {
        note(transaction.body.account, &[]);
        if transaction.body.operation.client().is_some() {
            let assets: Vec<AssetId> = transaction.body.operation.assets().into_iter().flatten().collect();
            note(transaction.body.account, &assets);
        }
        for (account, row) in transfers_of(&transaction.body, TransactionId::default(), 0) {
            note(account, &[row.asset]);
        }
    }
    for fill in &receipts.batch.fills {
        note(fill.place.account, &[fill.pair.sell, fill.pair.buy]);
    }
    for ended in &receipts.batch.ended {
        note(ended.place.account, &[ended.pair.sell]);
    }
    let is_plain = receipts.contracts.receipts.is_empty() && !pays_out;
    let mut assets = |account: &Address| known.remove(account).filter(|_| is_plain);
    receipts.modified.iter().map(|account| (*account, assets(account))).collect()
}

/// The row of what an account has after the block of a height.
pub fn balance_row(account: &Address, height: Height, row: &BalanceRow) -> HistoryRow {
    let mut rows = Rows { height, rows: Vec::new() };
    rows.add(account, Kind::Balance, &[], 0, row);
    rows.rows.pop().expect("one was added")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_of_a_kind_ascend_with_time(a in any::<(u64, u32)>(), b in any::<(u64, u32)>(), number in any::<u64>()) {
            let account = Address([5; 20]);
            let place = |(height, position)| HistoryPlace { height, position };
            let key = |at| HistoryRange::changes(&account, number, HistoryPart { below: Some(place(at)), since: 0 }).to;
            prop_assert_eq!(key(a).cmp(&key(b)), place(a).cmp(&place(b)));
            prop_assert_eq!(HistoryPlace::of(&key(a)), Some(place(a)));
            prop_assert_eq!(place(a).to_string().parse(), Ok(place(a)));
        }

        #[test]
        fn no_text_makes_two_cursors(text in "[0-9+-]{1,12}") {
            if let Ok(place) = text.parse::<HistoryPlace>() {
                prop_assert_eq!(place.to_string(), text);
            }
        }

        #[test]
        fn no_bytes_make_a_row_panic(value in prop::collection::vec(any::<u8>(), 0..300)) {
            let row = (vec![0; 40], value);
            drop(read_row::<OrderRow>(&row));
            drop(read_row::<OfferChange>(&row));
            drop(read_row::<BalanceRow>(&row));
            drop(read_row::<TransferRow>(&row));
        }
    }
}
