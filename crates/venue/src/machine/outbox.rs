//! Settles: one at a time, cut from the oldest unsettled fills, and sent again until its number is used or it ended.

use primitives::venue::{
    OrderLife, OrderNumber, OrderSignature, Settle, SettledFill, SettledOrder, VENUE_SIGNATURES_PER_SUB_BLOCK,
    VenueOperation, VenueOperator,
};
use primitives::{Body, Operation, PublicKey, Sequence};

use super::{Made, VenueMachine};
use crate::facts::OperatorStanding;
use crate::mistake::VenueMistake;
use crate::settings::{FILL_BYTES, SETTLE_BYTES};
use crate::state::{InFlight, Pending, Signer};

/// The most orders of a settle: positions have 16 bits.
const ORDERS_MAX: usize = 1 << 16;
/// How far above the highest used number of an account the ledger takes one.
const SEQUENCES_AHEAD: u64 = 64;

/// After a certified block: sends the settle in flight again, or cuts the next one.
pub(super) fn settle(machine: &mut VenueMachine) {
    if !machine.has_learnt || machine.core.stopped.is_some() || !is_operator(machine) {
        return;
    }
    resolve(machine);
    if let Some(in_flight) = machine.core.in_flight() {
        machine.made.push(Made::Submit(in_flight.body.clone()));
        if !machine.has(VenueMistake::TwoInFlight) {
            return;
        }
    }
    if let Some(in_flight) = cut_next(machine) {
        machine.cut = Some(in_flight.body.clone());
        machine.made.push(Made::Submit(in_flight.body.clone()));
        let last = in_flight.body.sequence;
        machine.core.signers.insert(machine.core.acts_as.account, Signer { last, in_flight: Some(in_flight) });
    }
}

/// The account whose settles the root signs, once a certified state has named it.
pub(super) fn operator(machine: &VenueMachine) -> Option<&OperatorStanding> {
    machine.core.operator.as_ref().filter(|operator| operator.account == machine.core.acts_as.account)
}

/// Whether the ledger has the operator whose keys the root has.
pub(super) fn is_operator(machine: &VenueMachine) -> bool {
    machine.core.standing.is_some_and(|standing| standing.operator == machine.core.acts_as)
}

/// The root has other keys. Numbers and the settle in flight are each account's own: one that comes back goes on
/// where it was.
pub(super) fn operate(machine: &mut VenueMachine, operator: VenueOperator) {
    if machine.has(VenueMistake::SignerForgotten) {
        machine.core.signers.clear();
    }
    machine.core.acts_as = operator;
}

/// Forgets the settle in flight once no block can count it any more.
fn resolve(machine: &mut VenueMachine) {
    let Some(in_flight) = machine.core.in_flight() else { return };
    let is_used = operator(machine).is_some_and(|operator| operator.is_used(in_flight.body.sequence));
    let is_void = is_used && machine.core.settled() < in_flight.to;
    if is_used || machine.core.height() >= in_flight.body.until {
        let signer = machine.core.signers.get_mut(&machine.core.acts_as.account);
        signer.expect("it has a settle in flight").in_flight = None;
        back_off(machine, is_void);
    }
}

/// If the fills of a settle whose number is used did not settle by it, an entry may be gone: the next one brings
/// all signatures. Whatever else it is, each settle costs a fee: after every further one the root waits twice as
/// long.
fn back_off(machine: &mut VenueMachine, is_void: bool) {
    let core = &mut machine.core;
    core.signs_all = is_void;
    core.voids = if is_void { core.voids.saturating_add(1) } else { 0 };
    let most = core.settings.terms.delay.heights;
    let wait = if core.voids < 2 { 0 } else { 1_u64.checked_shl(core.voids - 2).map_or(most, |wait| wait.min(most)) };
    core.cut_from = core.height().saturating_add(wait);
}

/// The settle of as many of the oldest unsettled fills as bytes, bond and balance allow; a group is whole or out.
fn cut_next(machine: &VenueMachine) -> Option<InFlight> {
    let standing = machine.core.standing?;
    if standing.bond < machine.core.settings.terms.bond_min || machine.core.height() < machine.core.cut_from {
        return None;
    }
    let first = match machine.core.in_flight() {
        // Only a planted mistake cuts a second one.
        Some(in_flight) => (in_flight.to - machine.core.settled().min(in_flight.to)) as usize,
        None => 0,
    };
    let mut bond = u128::from(standing.bond).saturating_sub(u128::from(machine.core.settings.terms.bond_min));
    let mut room = Room::new(machine);
    let mut to = first;
    while to < machine.core.pending.len() {
        let group = group(machine, to);
        let penalties: u128 = machine.core.pending.range(to..to + group).map(|of| u128::from(of.penalty)).sum();
        if penalties > bond || !room.holds(machine, to, group) {
            break;
        }
        bond -= penalties;
        to += group;
    }
    covered(machine, first, to)
}

/// The longest settle of these fills whose fees the balance covers.
fn covered(machine: &VenueMachine, first: usize, mut to: usize) -> Option<InFlight> {
    let (operator, fee) = (operator(machine)?, u128::from(machine.core.settings.terms.fee));
    while to > first {
        let body = body(machine, operator, first, to);
        if u128::from(body.weight()) * fee <= u128::from(operator.balance) {
            return Some(InFlight { to: machine.core.settled() + to as u64, body });
        }
        let half = first + (to - first) / 2;
        to = whole_groups(machine, first, half);
    }
    None
}

/// The last end of a group up to a place.
fn whole_groups(machine: &VenueMachine, first: usize, most: usize) -> usize {
    let mut to = first;
    while to < most && to + group(machine, to) <= most {
        to += group(machine, to);
    }
    to
}

/// How many fills from this place on apply or bust together: those of one fill-or-kill order.
fn group(machine: &VenueMachine, at: usize) -> usize {
    let taker = machine.core.pending[at].taker();
    if machine.core.order(taker).terms.life != OrderLife::FillOrKill || machine.has(VenueMistake::GroupCut) {
        return 1;
    }
    machine.core.pending.range(at..).take_while(|of| of.taker() == taker).count()
}

fn body(machine: &VenueMachine, operator: &OperatorStanding, first: usize, to: usize) -> Body {
    let settings = &machine.core.settings;
    let settle = settle_of(machine, first, to);
    Body {
        chain: settings.terms.chain,
        account: operator.account,
        sequence: next_number(machine, operator),
        until: machine.core.height().saturating_add(settings.limits.settle_heights),
        operation: Operation::Venue(Box::new(VenueOperation::Settle(settle))),
    }
}

/// The number above the last one that was signed, while the ledger's window holds it; then from the lowest unused
/// one on again. What was signed with that has ended: settles live equally long, and none is cut before the one
/// before it is used or has ended.
fn next_number(machine: &VenueMachine, operator: &OperatorStanding) -> Sequence {
    let last = machine.core.signer().map_or(0, |signer| signer.last);
    let next = last.max(operator.highest).saturating_add(1);
    match next > operator.highest.saturating_add(SEQUENCES_AHEAD) && !machine.has(VenueMistake::NumbersRunAway) {
        true => operator.highest.saturating_add(1),
        false => next,
    }
}

fn settle_of(machine: &VenueMachine, first: usize, to: usize) -> Settle {
    let (venue, incarnation) = (machine.core.settings.venue, machine.core.settings.incarnation);
    let pending = || machine.core.pending.range(first..to);
    let mut slots: Vec<u32> = pending().flat_map(|of| [of.buyer, of.seller]).collect();
    slots.sort_unstable();
    slots.dedup();
    let named = |(at, slot): (usize, &u32)| {
        let order = machine.core.order(*slot);
        (machine.core.public_of(order), order.terms.number, at)
    };
    let mut by_name: Vec<(PublicKey, OrderNumber, usize)> = slots.iter().enumerate().map(named).collect();
    by_name.sort_unstable();
    let mut positions = vec![0_u16; slots.len()];
    by_name.iter().enumerate().for_each(|(position, (.., at))| positions[*at] = position as u16);
    let position = |slot: u32| positions[slots.binary_search(&slot).expect("each order of a fill is there")];
    let orders = by_name.iter().map(|(.., at)| settled_order(machine, slots[*at])).collect();
    let fill = |of: &Pending| SettledFill { buy: position(of.buyer), sell: position(of.seller), ..of.fill.terms };
    let from = machine.core.settled() + first as u64;
    Settle { venue, incarnation, from, orders, fills: pending().map(fill).collect() }
}

/// An order with its signature, unless the certified ledger has an entry of it.
fn settled_order(machine: &VenueMachine, slot: u32) -> SettledOrder {
    let order = machine.core.order(slot);
    let was_sent = machine.has(VenueMistake::SignatureLeftOut) && !machine.core.signers.is_empty();
    let has_entry = order.has_entry || (was_sent && order.fills().executed > 0);
    let is_shown = !has_entry || machine.core.signs_all;
    let signature = &machine.core.order_proof(slot).signature;
    let signature = if is_shown { signature.clone() } else { OrderSignature::Entered };
    SettledOrder { key: machine.core.public_of(order), order: order.terms, signature }
}

/// What still fits into a settle.
struct Room {
    bytes: usize,
    /// How many orders are there, and whether the order of a slot is.
    count: usize,
    orders: Vec<bool>,
    /// Slots of the group that is added.
    new: Vec<u32>,
}

impl Room {
    fn new(machine: &VenueMachine) -> Room {
        let bytes = (machine.core.settings.terms.settle_bytes as usize).saturating_sub(SETTLE_BYTES);
        Room { bytes, count: 0, orders: vec![false; machine.core.orders.len()], new: Vec::new() }
    }

    /// Adds a group if it fits, with those of its orders that are not there yet.
    fn holds(&mut self, machine: &VenueMachine, at: usize, group: usize) -> bool {
        self.new.clear();
        for slot in machine.core.pending.range(at..at + group).flat_map(|of| [of.buyer, of.seller]) {
            if !std::mem::replace(&mut self.orders[slot as usize], true) {
                self.new.push(slot);
            }
        }
        let orders = self.new.iter().map(|slot| machine.bytes_in_settle(*slot)).sum::<usize>();
        let (bytes, count) = (group * FILL_BYTES + orders, self.count + self.new.len());
        let fits = bytes <= self.bytes && count <= ORDERS_MAX.min(VENUE_SIGNATURES_PER_SUB_BLOCK as usize);
        match fits {
            true => (self.bytes, self.count) = (self.bytes - bytes, count),
            false => self.new.iter().for_each(|slot| self.orders[*slot as usize] = false),
        }
        fits
    }
}
