//! The history of accounts as entries with types: for an index that has columns where [`crate::history`] has keys.

use borsh::BorshDeserialize;
use primitives::{Address, ClientId, Reference, Sequence};

use crate::history::{
    BalanceRow, FillRow, HistoryPlace, HistoryRange, HistoryRow, Kind, OfferChange, OrderRow, TransferRow,
};

/// What a row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryEntry {
    /// An order.
    Order(OrderRow),
    /// Where an order with this number or client's name is, or a transfer with this reference; it follows from
    /// [`HistoryEntry::Order`] or [`HistoryEntry::Transfer`].
    Name,
    /// A fill.
    Fill(FillRow),
    /// What became of the offer with this number.
    Change(Sequence, OfferChange),
    /// A transfer.
    Transfer(TransferRow),
    /// Balances.
    Balance(BalanceRow),
}

/// What a range of rows is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryTopic {
    /// Orders.
    Orders,
    /// Places of orders with this number; the rows have no value.
    Number(Sequence),
    /// Places of orders with this name; the rows have no value.
    Client(ClientId),
    /// Fills.
    Fills,
    /// What became of the offer with this number.
    Changes(Sequence),
    /// Transfers.
    Transfers,
    /// Places of transfers with this reference; the rows have no value.
    Reference(Reference),
    /// Balances.
    Balances,
}

/// A range in words of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryQuestion {
    /// The account.
    pub account: Address,
    /// What of it.
    pub topic: HistoryTopic,
    /// The first place.
    pub from: HistoryPlace,
    /// The place above the last.
    pub below: HistoryPlace,
}

/// A key's account, topic and place.
fn parts(key: &[u8]) -> Option<(Address, HistoryTopic, HistoryPlace)> {
    let place = HistoryPlace::of(key)?;
    let (account, rest) = key[..key.len() - 12].split_first_chunk::<20>()?;
    let (kind, further) = rest.split_first()?;
    let topic = match Kind::of(*kind)? {
        Kind::ByNumber => HistoryTopic::Number(Sequence::from_be_bytes(further.try_into().ok()?)),
        Kind::ByClient => HistoryTopic::Client(ClientId(further.try_into().ok()?)),
        Kind::ByReference => HistoryTopic::Reference(borsh::from_slice(further).ok()?),
        Kind::OfferChange => HistoryTopic::Changes(Sequence::from_be_bytes(further.try_into().ok()?)),
        _ if !further.is_empty() => return None,
        Kind::Order => HistoryTopic::Orders,
        Kind::Fill => HistoryTopic::Fills,
        Kind::Transfer => HistoryTopic::Transfers,
        Kind::Balance => HistoryTopic::Balances,
    };
    Some((Address(*account), topic, place))
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        use Kind::*;
        let kinds = [Order, ByNumber, ByClient, Fill, OfferChange, Transfer, Balance, ByReference];
        kinds.into_iter().find(|kind| *kind as u8 == byte)
    }
}

impl HistoryRange {
    /// The range in words of its own; `None` if its bounds are no keys of one topic.
    pub fn question(&self) -> Option<HistoryQuestion> {
        let (account, topic, from) = parts(&self.from)?;
        let (other, above, below) = parts(&self.to)?;
        (other == account && above == topic).then_some(HistoryQuestion { account, topic, from, below })
    }
}

/// The account, the place and what a row says.
///
/// # Errors
/// If the bytes are no row.
pub fn read_entry((key, value): &HistoryRow) -> Result<(Address, HistoryPlace, HistoryEntry), std::io::Error> {
    fn value_of<T: BorshDeserialize>(value: &[u8]) -> Result<T, std::io::Error> {
        borsh::from_slice(value)
    }
    let (account, topic, place) = parts(key).ok_or_else(|| std::io::Error::other("this is no key of a history"))?;
    let entry = match topic {
        HistoryTopic::Orders => HistoryEntry::Order(value_of(value)?),
        HistoryTopic::Number(_) | HistoryTopic::Client(_) | HistoryTopic::Reference(_) => HistoryEntry::Name,
        HistoryTopic::Fills => HistoryEntry::Fill(value_of(value)?),
        HistoryTopic::Changes(offer) => HistoryEntry::Change(offer, value_of(value)?),
        HistoryTopic::Transfers => HistoryEntry::Transfer(value_of(value)?),
        HistoryTopic::Balances => HistoryEntry::Balance(value_of(value)?),
    };
    Ok((account, place, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::HistoryPart;
    use primitives::ReferenceKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_range_says_what_it_was_made_of(number in any::<u64>(), height in any::<u64>(), position in any::<u32>()) {
            let account = Address([7; 20]);
            let below = HistoryPlace { height, position };
            let part = HistoryPart { below: Some(below), since: height / 2 };
            let from = HistoryPlace { height: height / 2, position: 0 };
            let is = |topic| Some(HistoryQuestion { account, topic, from, below });
            let reference = Reference { kind: ReferenceKind::Text, bytes: b"INV 7"[..].into() };
            let named = HistoryRange::with_reference(&account, &reference, part);
            prop_assert_eq!(named.question(), is(HistoryTopic::Reference(reference)));
            prop_assert_eq!(HistoryRange::orders(&account, part).question(), is(HistoryTopic::Orders));
            prop_assert_eq!(HistoryRange::fills(&account, part).question(), is(HistoryTopic::Fills));
            prop_assert_eq!(HistoryRange::transfers(&account, part).question(), is(HistoryTopic::Transfers));
            prop_assert_eq!(HistoryRange::balances(&account, part).question(), is(HistoryTopic::Balances));
            let changes = HistoryRange::changes(&account, number, part);
            prop_assert_eq!(changes.question(), is(HistoryTopic::Changes(number)));
        }

        #[test]
        fn no_bytes_make_an_entry_panic(key in prop::collection::vec(any::<u8>(), 0..80), value in any::<Vec<u8>>()) {
            drop(read_entry(&(key.clone(), value)));
            let same = HistoryRange { from: key.clone(), to: key }.question();
            prop_assert!(same.is_none_or(|same| same.from == same.below));
        }
    }
}
