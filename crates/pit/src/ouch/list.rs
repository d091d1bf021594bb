//! Lists of orders over OUCH: many new orders and replacements under one signature of their key
//! ([`primitives::venue::OrderList`]), in one message.
//!
//! An option has at most 254 bytes, and 64 orders with one signature are in no single message of OUCH. A list is
//! therefore a message of its own, whose kind OUCH does not have:
//!
//! ```text
//!  L | terms | seed | signature | length, message | length, message | ...
//! ```
//!
//! Terms are what all orders share and OUCH has no fields for ([`OuchTerms`]), in borsh. Seed and signature are those
//! of the list. Each message is a new order or a replacement as plain OUCH has it, after one byte with its length.
//! Orders follow from messages and terms, so no field is said twice. A replacement has market and side of what it
//! replaces in the option [`REPLACED`], since they are signed and OUCH omits them.
//!
//! # The protocol
//!
//! - *The participant* writes at most 64 messages and [`LIST_BYTES_MAX`] bytes, by ascending number, and signs. The
//!   seed is a hash of its secret key and of the entries, so nothing is drawn, and another list has another seed.
//! - *The door*, upon a list: computes the entries, and verifies the signature of the session's key in one go with
//!   others that came at the same time. All numbers are used and all messages are noted in one entry of the sessions'
//!   journal. Then the root is given the list, between what came before and after it. From there on each order has
//!   answers of its own, as if it had come alone.
//! - *A list whose numbers are all used* is a repetition: its answers are among the session's messages.
//!
//! # Properties
//!
//! 1. *The same as one by one*: the root is given the same orders and cancels in the same sequence, however many of
//!    them came as lists.
//! 2. *One answer a number*: each new number of a list is accepted, replaced or rejected once.
//! 3. *Bounded*: a list fits into a packet of every door and of a gateway of the edge.
//!
//! # Crash
//!
//! Numbers and messages of a list are written together, so a restart knows all of its orders or none. If it knows none
//! the list can be sent again. If it knows all and the root does not, each of them is rejected (`lost`).
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | a list is cut off, or bytes follow it | a message is whole in its packet, and lengths must add up: it is no message, and nothing is used |
//! | the list comes again after a lost link | all numbers are used, so nothing is placed twice |
//! | another list has some of the numbers again | the new ones are used and rejected; nothing of it reaches the root |
//! | numbers descend, or one is there twice | the same: only the ascending ones are new |
//! | half of its orders are refused | each alone, with its own words |
//! | a field, a replaced number or a term is changed on the way | entries follow from them, so the signature is of others |
//! | it is of another day, incarnation, session's key or venue | rejected: numbers are of the session, the rest is signed |
//! | a list of 64 counts as one order | the root's queue, steps, entries and open orders count 64 |
//! | false lists make the door hash and verify | one false signature each in the link's and the address's budget; a packet has at most 64 leaves |
//! | a gateway of the edge verifies for nothing | it verifies nothing: it stamps the packet and pays with a place in the tree, as for one order |
//! | a venue that counts no lists yet is sent one | each order is rejected with number 46, none is lost; bridges ask the status first |
//!
//! # Deviations
//!
//! - Cancels are in no list: they need no signature in a session.
//! - A list has one place in the queue of the edge, like one order. The tree sends no more until all of it is matched.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{
    LIST_ORDERS_MAX, ListEntry, ListFault, MarketId, OrderLife, OrderList, OrderNumber, SelfTradeRule, VenueId,
    VenueOrder, VenueSide,
};
use primitives::{Digest, PublicKey, SecretKey, Signature};
use protocols::ouch::{OuchInbound, OuchMessage, OuchOption};

use super::inbound::{SignedFault, life_of, side_letter, side_of};
use super::{market_of, symbol_of};

/// The kind of the message.
pub const LIST: u8 = b'L';
/// The most bytes of a list: fewer than a packet has at any door.
pub const LIST_BYTES_MAX: usize = 4_000;
/// The option of a replacement in a list with market, in big-endian, and letter of the side.
pub const REPLACED: u8 = 205;

const SEED_CONTEXT: &str = "walras 2026 bridge list seed v1";

/// What is signed of orders besides the fields of their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OuchTerms {
    /// The venue's incarnation.
    pub incarnation: u32,
    /// The day of the session.
    pub day: u16,
    /// Orders below it are void.
    pub floor: OrderNumber,
    /// What prevents trades with own orders.
    pub self_trade: SelfTradeRule,
    /// The last height.
    pub expiry: u64,
    /// The last time, in milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// The most that the order pays in fees, in millionths.
    pub fee_cap_ppm: u32,
}

/// What the fields of a new order or a replacement say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OuchFields {
    pub market: MarketId,
    pub side: VenueSide,
    pub life: OrderLife,
    pub tick: u32,
    pub lots: u32,
    pub reference: u32,
    /// The reference of the order in whose place it goes.
    pub replaces: Option<u32>,
}

impl OuchTerms {
    fn number(&self, reference: u32) -> OrderNumber {
        OrderNumber { incarnation: self.incarnation, day: self.day, reference }
    }

    /// The order of a message.
    pub(crate) fn order(&self, fields: &OuchFields) -> VenueOrder {
        let OuchFields { market, side, life, tick, lots, reference, .. } = *fields;
        let OuchTerms { floor, self_trade, expiry, until_ms, fee_cap_ppm, .. } = *self;
        let number = self.number(reference);
        VenueOrder { market, number, floor, side, life, self_trade, tick, lots, expiry, until_ms, fee_cap_ppm }
    }

    fn entry(&self, fields: &OuchFields) -> ListEntry {
        ListEntry { order: self.order(fields), replaces: fields.replaces.map(|of| self.number(of)) }
    }
}

/// A new order or a replacement, as plain OUCH has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OuchOrder {
    pub message: OuchMessage<OuchInbound>,
    pub fields: OuchFields,
}

impl OuchOrder {
    /// Reads the fields of a message; `replaced` has market and side of what a replacement replaces.
    ///
    /// # Errors
    /// [`SignedFault`] for what a venue does not have.
    pub fn read(
        message: OuchMessage<OuchInbound>,
        replaced: Option<(MarketId, VenueSide)>,
    ) -> Result<OuchOrder, SignedFault> {
        let options = message.options.as_deref().unwrap_or(&[]);
        let fields = match &message.body {
            OuchInbound::Enter(enter) => OuchFields {
                market: market_of(&enter.symbol).ok_or(SignedFault::Market)?,
                side: side_of(enter.side)?,
                life: life_of(enter.time_in_force, enter.quantity, options)?,
                tick: tick_of(enter.price)?,
                lots: enter.quantity,
                reference: enter.user_ref,
                replaces: None,
            },
            OuchInbound::Replace(replace) => {
                let (market, side) = replaced.ok_or(SignedFault::Replaced)?;
                OuchFields {
                    market,
                    side,
                    life: life_of(replace.time_in_force, replace.quantity, options)?,
                    tick: tick_of(replace.price)?,
                    lots: replace.quantity,
                    reference: replace.user_ref,
                    replaces: Some(replace.before),
                }
            }
            _ => return Err(SignedFault::Missing),
        };
        Ok(OuchOrder { message, fields })
    }

    /// The bytes of the message in a list, with their length; `None` if it is too long for one.
    pub fn listed(&self) -> Option<Vec<u8>> {
        let mut message = self.message.clone();
        if self.fields.replaces.is_some() {
            let mut value = self.fields.market.to_be_bytes().to_vec();
            value.push(side_letter(self.fields.side));
            message.options.get_or_insert_default().push(OuchOption::Unknown { tag: REPLACED, value });
        }
        let mut bytes = vec![0];
        message.encode(&mut bytes).ok()?;
        bytes[0] = u8::try_from(bytes.len() - 1).ok()?;
        Some(bytes)
    }

    /// The order of a message in a list.
    fn of_list(bytes: &[u8]) -> Option<OuchOrder> {
        let mut message = OuchMessage::<OuchInbound>::decode(bytes).ok()?;
        let mut replaced = None;
        if let (OuchInbound::Replace(_), Some(options)) = (&message.body, &mut message.options) {
            options.retain(|option| match option {
                OuchOption::Unknown { tag: REPLACED, value } => {
                    replaced = read_replaced(value);
                    false
                }
                _ => true,
            });
        }
        OuchOrder::read(message, replaced).ok()
    }

    /// Symbol and letter of the side.
    pub fn symbol_and_side(&self) -> ([u8; 8], u8) {
        (symbol_of(self.fields.market), side_letter(self.fields.side))
    }
}

fn read_replaced(value: &[u8]) -> Option<(MarketId, VenueSide)> {
    let (market, letter) = value.split_first_chunk()?;
    let [letter] = letter else { return None };
    Some((MarketId::from_be_bytes(*market), side_of(*letter).ok()?))
}

fn tick_of(price: u64) -> Result<u32, SignedFault> {
    u32::try_from(price).map_err(|_| SignedFault::Price)
}

/// A list as it travels to a venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuchList {
    terms: OuchTerms,
    seed: [u8; 32],
    signature: Signature,
    orders: Vec<OuchOrder>,
}

impl OuchList {
    /// Signs orders, whose numbers ascend.
    ///
    /// # Errors
    /// [`ListFault`] names the first fault of the orders.
    pub(crate) fn sign(
        network: &Digest,
        venue: VenueId,
        terms: OuchTerms,
        orders: Vec<OuchOrder>,
        key: &SecretKey,
    ) -> Result<OuchList, ListFault> {
        let entries: Vec<ListEntry> = orders.iter().map(|order| terms.entry(&order.fields)).collect();
        let secret = borsh::to_vec(&(key.to_seed(), network, venue, &entries)).expect("writing to memory cannot fail");
        let Digest(seed) = Digest::of(SEED_CONTEXT, &secret);
        let OrderList { signature, .. } = OrderList::sign(network, venue, seed, entries, key)?;
        Ok(OuchList { terms, seed, signature, orders })
    }

    /// The list of a message; `None` if it is none.
    pub fn decode(bytes: &[u8]) -> Option<OuchList> {
        let (&LIST, mut rest) = bytes.split_first()? else { return None };
        if bytes.len() > LIST_BYTES_MAX {
            return None;
        }
        let (terms, seed, signature) = BorshDeserialize::deserialize(&mut rest).ok()?;
        let mut orders = Vec::new();
        while let Some((&length, after)) = rest.split_first() {
            let (message, after) = after.split_at_checked(length.into())?;
            if orders.len() == LIST_ORDERS_MAX {
                return None;
            }
            orders.push(OuchOrder::of_list(message)?);
            rest = after;
        }
        Some(OuchList { terms, seed, signature, orders }).filter(|list| !list.orders.is_empty())
    }

    /// The message; `None` if it is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let head = (LIST, self.terms, self.seed, self.signature);
        let mut bytes = borsh::to_vec(&head).expect("writing to memory cannot fail");
        for order in &self.orders {
            bytes.extend(order.listed()?);
        }
        Some(bytes).filter(|bytes| bytes.len() <= LIST_BYTES_MAX)
    }

    /// What a key has signed, if this list is its.
    pub fn signed_by(&self, key: PublicKey) -> OrderList {
        let entries = self.orders.iter().map(|order| self.terms.entry(&order.fields)).collect();
        OrderList { key, seed: self.seed, entries, signature: self.signature }
    }

    /// The messages of its orders.
    pub fn messages(&self) -> impl Iterator<Item = &OuchInbound> {
        self.orders.iter().map(|order| &order.message.body)
    }

    pub(crate) fn orders(&self) -> &[OuchOrder] {
        &self.orders
    }

    /// A number of its day and incarnation.
    pub(crate) fn number(&self, reference: u32) -> OrderNumber {
        self.terms.number(reference)
    }
}

/// Bytes of a list before its messages, at most.
pub(crate) const LIST_HEAD_MAX: usize = 1 + 38 + 32 + 64;

#[cfg(test)]
pub(crate) mod tests;
