//! What a root keeps of an order. There are many that rest, and few of them have traded: these have what trades need in
//! a place of their own.
//!
//! In snapshots an order has all of its fields, in the order of [`Encoded`], wherever they are in memory.

use std::io::{Error, ErrorKind, Read, Result as IoResult, Write};
use std::num::NonZeroU32;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{OrderNumber, OrderSignature, VenueOrder};
use primitives::{Digest, Height};

use crate::input::SessionNumber;
use crate::refusal::OrderEnd;
use crate::report::{Acceptance, OrderStanding};

/// What an order adds to sums; always what follows from the rest of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct OrderSums {
    /// Units that its open lots reserve.
    pub reserved: u128,
    /// Whether it counts among its key's entries.
    pub is_entry: bool,
    /// Whether it may make an entry on the ledger that is not there yet.
    pub is_prospective: bool,
    /// What it weighs in settles of its unsettled fills.
    pub weight: u64,
    /// The most bytes that it takes in them.
    pub bytes: u64,
}

/// What only a fill needs of an order, and a settle.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct OrderProof {
    pub digest: Digest,
    pub signature: OrderSignature,
}

/// The fills of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OrderFills {
    pub executed: u32,
    pub settled: u32,
    pub bust: u32,
    /// Fills that are not settled.
    pub unsettled: u32,
    /// Quote units and fees of its fills.
    pub quote: u128,
    pub fees: i128,
    /// What its unsettled fills add to sums.
    weight: u64,
    bytes: u64,
}

/// Those of an order without any.
const NO_FILLS: OrderFills =
    OrderFills { executed: 0, settled: 0, bust: 0, unsettled: 0, quote: 0, fees: 0, weight: 0, bytes: 0 };

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub terms: VenueOrder,
    /// The id that market data has for it.
    pub id: u64,
    /// The order whose stead it takes, and whether it kept its place.
    pub replaces: Option<OrderNumber>,
    pub keeps_place: bool,
    pub session: SessionNumber,
    pub key: u32,
    /// The certified height at which it came.
    pub since: Height,
    /// Lots that the orders which it replaced have executed.
    pub carried: u32,
    pub open: u32,
    pub end: Option<OrderEnd>,
    /// Whether market data shows it.
    pub is_shown: bool,
    /// Whether the certified ledger has an entry of it.
    pub has_entry: bool,
    /// The day of which it has a part, if it is too small to pay for its entry; plus one, so that none takes no room.
    spared_on: Option<NonZeroU32>,
    is_entry: bool,
    is_prospective: bool,
    /// Both halves of the units that it reserves: 128 bits together would be aligned to 16 bytes.
    reserved: [u64; 2],
    fills: Option<Box<OrderFills>>,
}

impl Order {
    /// An order that arrives.
    pub fn new(terms: VenueOrder, id: u64, session: SessionNumber, key: u32, since: Height, carried: u32) -> Order {
        Order {
            id,
            replaces: None,
            keeps_place: false,
            session,
            key,
            since,
            carried,
            open: terms.lots - carried,
            end: None,
            is_shown: false,
            has_entry: false,
            spared_on: None,
            is_entry: false,
            is_prospective: false,
            reserved: [0; 2],
            fills: None,
            terms,
        }
    }

    /// Its first answer.
    pub fn accepted(&self) -> Acceptance {
        let Order { id, replaces, keeps_place, carried, .. } = *self;
        Acceptance { id, lots: self.terms.lots - carried, replaces, keeps_place }
    }

    /// The day of which it has a part. A day of 32 bits ends with the year 11,000,000.
    pub fn spared_on(&self) -> Option<u64> {
        self.spared_on.map(|day| u64::from(day.get()) - 1)
    }

    pub fn set_spared_on(&mut self, day: Option<u64>) {
        self.spared_on = day.and_then(|day| NonZeroU32::new(u32::try_from(day + 1).ok()?));
    }

    pub fn fills(&self) -> &OrderFills {
        self.fills.as_deref().unwrap_or(&NO_FILLS)
    }

    /// Of an order that trades.
    pub fn fills_mut(&mut self) -> &mut OrderFills {
        self.fills.get_or_insert_default()
    }

    pub fn sums(&self) -> OrderSums {
        let (&Order { is_entry, is_prospective, reserved: [high, low], .. }, fills) = (self, self.fills());
        let reserved = u128::from(high) << 64 | u128::from(low);
        OrderSums { reserved, is_entry, is_prospective, weight: fills.weight, bytes: fills.bytes }
    }

    pub fn set_sums(&mut self, sums: &OrderSums) {
        let OrderSums { reserved, is_entry, is_prospective, weight, bytes } = *sums;
        (self.is_entry, self.is_prospective) = (is_entry, is_prospective);
        self.reserved = [(reserved >> 64) as u64, reserved as u64];
        if self.fills.is_some() || (weight, bytes) != (0, 0) {
            let fills = self.fills_mut();
            (fills.weight, fills.bytes) = (weight, bytes);
        }
    }

    pub fn standing(&self) -> OrderStanding {
        let OrderFills { executed, settled, bust, .. } = *self.fills();
        OrderStanding::Taken { accepted: self.accepted(), ended: self.end, open: self.open, executed, settled, bust }
    }

    /// Whether nothing about it can change any more, up to its being forgotten.
    pub fn is_final(&self) -> bool {
        self.end.is_some() && self.fills().unsettled == 0 && !self.is_entry
    }
}

/// An order in a snapshot.
#[derive(BorshSerialize, BorshDeserialize)]
struct Encoded {
    terms: VenueOrder,
    accepted: Acceptance,
    session: SessionNumber,
    key: u32,
    since: Height,
    carried: u32,
    open: u32,
    executed: u32,
    settled: u32,
    bust: u32,
    unsettled: u32,
    quote: u128,
    fees: i128,
    end: Option<OrderEnd>,
    is_shown: bool,
    has_entry: bool,
    spared_on: Option<u64>,
    sums: OrderSums,
}

impl BorshSerialize for Order {
    fn serialize<W: Write>(&self, to: &mut W) -> IoResult<()> {
        let &Order { terms, session, key, since, carried, open, end, is_shown, has_entry, .. } = self;
        let &OrderFills { executed, settled, bust, unsettled, quote, fees, .. } = self.fills();
        let (accepted, spared_on, sums) = (self.accepted(), self.spared_on(), self.sums());
        Encoded {
            terms,
            accepted,
            session,
            key,
            since,
            carried,
            open,
            executed,
            settled,
            bust,
            unsettled,
            quote,
            fees,
            end,
            is_shown,
            has_entry,
            spared_on,
            sums,
        }
        .serialize(to)
    }
}

impl BorshDeserialize for Order {
    fn deserialize_reader<R: Read>(from: &mut R) -> IoResult<Order> {
        let of = Encoded::deserialize_reader(from)?;
        if of.terms.lots.checked_sub(of.carried) != Some(of.accepted.lots) {
            return Err(Error::new(ErrorKind::InvalidData, "an order has other lots than it was accepted with"));
        }
        let Acceptance { id, replaces, keeps_place, .. } = of.accepted;
        let mut order = Order {
            replaces,
            keeps_place,
            open: of.open,
            end: of.end,
            is_shown: of.is_shown,
            has_entry: of.has_entry,
            ..Order::new(of.terms, id, of.session, of.key, of.since, of.carried)
        };
        let Encoded { executed, settled, bust, unsettled, quote, fees, sums, .. } = of;
        let fills = OrderFills { executed, settled, bust, unsettled, quote, fees, ..NO_FILLS };
        order.fills = (fills != NO_FILLS).then(|| Box::new(fills));
        order.set_spared_on(of.spared_on);
        order.set_sums(&sums);
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use primitives::venue::{OrderLife, SelfTradeRule, VenueSide};

    use super::*;

    /// A root keeps both of each order that rests, a million of them.
    #[test]
    fn an_order_that_rests_takes_280_bytes_with_its_proof() {
        assert_eq!([size_of::<Option<Order>>(), size_of::<OrderProof>()], [176, 104]);
        // Only one that trades has more.
        let order = Order::new(terms(), 1, 2, 3, 4, 0);
        assert!(order.fills.is_none());
        let mut with_sums = order.clone();
        with_sums.set_sums(&OrderSums { reserved: u128::MAX - 5, is_entry: true, ..order.sums() });
        assert!(with_sums.fills.is_none() && with_sums.sums().reserved == u128::MAX - 5);
    }

    fn terms() -> VenueOrder {
        let number = OrderNumber { incarnation: 1, day: 2, reference: 3 };
        VenueOrder {
            market: 4,
            number,
            floor: OrderNumber { reference: 0, ..number },
            side: VenueSide::Sell,
            life: OrderLife::Rests,
            self_trade: SelfTradeRule::ExpireTaker,
            tick: 5,
            lots: 60,
            expiry: 7,
            until_ms: Some(8),
            fee_cap_ppm: 9,
        }
    }

    /// The bytes in snapshots are those of the fields in the order of before, which a root of another version reads.
    #[test]
    fn an_order_in_a_snapshot_has_all_fields_in_their_order() {
        let number = OrderNumber { incarnation: 1, day: 2, reference: 1 };
        let mut order = Order::new(terms(), 11, 12, 13, 14, 15);
        (order.replaces, order.keeps_place, order.end) = (Some(number), true, Some(OrderEnd::Replaced(number)));
        (order.open, order.is_shown, order.has_entry) = (16, true, true);
        order.set_spared_on(Some(17));
        let fills = order.fills_mut();
        (fills.executed, fills.settled, fills.bust, fills.unsettled) = (18, 19, 20, 21);
        (fills.quote, fills.fees) = (22 << 64, -23);
        let sums = OrderSums { reserved: 24 << 70, is_entry: true, is_prospective: false, weight: 25, bytes: 26 };
        order.set_sums(&sums);
        let accepted = Acceptance { id: 11, lots: 45, replaces: Some(number), keeps_place: true };
        let first = (terms(), accepted, 12u64, 13u32, 14u64, [15u32, 16, 18, 19, 20, 21], 22u128 << 64, -23i128);
        let last = (Some(OrderEnd::Replaced(number)), true, true, Some(17u64), sums);
        let bytes = borsh::to_vec(&(first, last)).expect("memory");
        assert_eq!(borsh::to_vec(&order).expect("memory"), bytes);
        assert_eq!(borsh::from_slice::<Order>(&bytes).expect("an order"), order);
        let plain = Order::new(terms(), 1, 2, 3, 4, 0);
        let again: Order = borsh::from_slice(&borsh::to_vec(&plain).expect("memory")).expect("an order");
        assert_eq!((again.fills.is_none(), &again), (true, &plain));
        // Of the lots with which it was accepted, behind terms and id.
        let mut wrong = bytes;
        wrong[borsh::to_vec(&terms()).expect("memory").len() + 8] ^= 1;
        let error = borsh::from_slice::<Order>(&wrong).expect_err("other lots");
        assert_eq!(error.to_string(), "an order has other lots than it was accepted with");
    }
}
