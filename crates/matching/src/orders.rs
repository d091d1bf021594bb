//! The arena of orders, and the lists of each owner's.

use crate::treap::NONE;
use crate::{OrderId, Party, SelfTrade, Side};

/// An order. Its links are those of its level's queue and of its owner's list, by slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) owner: u32,
    pub(crate) reference: u32,
    pub(crate) tick: u32,
    /// Open lots; zero if the slot is free.
    pub(crate) lots: u32,
    pub(crate) executed: u32,
    pub(crate) generation: u32,
    /// Its place in time: lower arrived earlier.
    pub(crate) arrival: u64,
    pub(crate) side: Side,
    pub(crate) self_trade: SelfTrade,
    pub(crate) post_only: bool,
    /// Its level, while it rests.
    pub(crate) level: u32,
    pub(crate) next: u32,
    pub(crate) previous: u32,
    pub(crate) next_of_owner: u32,
    pub(crate) previous_of_owner: u32,
}

const FREE: Order = Order {
    owner: 0,
    reference: 0,
    tick: 0,
    lots: 0,
    executed: 0,
    generation: 0,
    arrival: 0,
    side: Side::Buy,
    self_trade: SelfTrade::ExpireTaker,
    post_only: false,
    level: NONE,
    next: NONE,
    previous: NONE,
    next_of_owner: NONE,
    previous_of_owner: NONE,
};

/// An owner's orders, by arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) orders: u32,
    pub(crate) is_killed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) slots: Vec<Order>,
    /// Free slots below `used`; the last one is taken first.
    pub(crate) free: Vec<u32>,
    /// Slots that have been used.
    pub(crate) used: u32,
    pub(crate) owners: Vec<Owner>,
}

impl Orders {
    pub(crate) fn new(capacity: u32, owners: u32) -> Orders {
        let owner = Owner { first: NONE, last: NONE, orders: 0, is_killed: false };
        Orders {
            slots: vec![FREE; capacity as usize],
            free: Vec::with_capacity(capacity as usize),
            used: 0,
            owners: vec![owner; owners as usize],
        }
    }

    #[inline]
    pub(crate) fn at(&self, slot: u32) -> &Order {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: u32) -> &mut Order {
        &mut self.slots[slot as usize]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty() && self.used as usize == self.slots.len()
    }

    /// Puts an order into a free slot, whose generation it keeps.
    pub(crate) fn take_slot(&mut self, order: Order) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        let generation = self.at(slot).generation;
        *self.at_mut(slot) = Order { generation, ..order };
        slot
    }

    pub(crate) fn give_back(&mut self, slot: u32) {
        let order = self.at_mut(slot);
        order.lots = 0;
        order.generation = order.generation.wrapping_add(1);
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn party(&self, slot: u32) -> Party {
        let order = self.at(slot);
        let id = OrderId { slot, generation: order.generation };
        Party { order: id, owner: order.owner, reference: order.reference }
    }

    /// Appends an order to its owner's list.
    pub(crate) fn list(&mut self, slot: u32) {
        let owner = &mut self.owners[self.slots[slot as usize].owner as usize];
        let last = std::mem::replace(&mut owner.last, slot);
        owner.orders += 1;
        match last {
            NONE => owner.first = slot,
            last => self.slots[last as usize].next_of_owner = slot,
        }
        let order = &mut self.slots[slot as usize];
        (order.previous_of_owner, order.next_of_owner) = (last, NONE);
    }

    /// Removes an order from its owner's list.
    pub(crate) fn unlist(&mut self, slot: u32) {
        let Order { owner, previous_of_owner: previous, next_of_owner: next, .. } = *self.at(slot);
        match previous {
            NONE => self.owners[owner as usize].first = next,
            previous => self.at_mut(previous).next_of_owner = next,
        }
        match next {
            NONE => self.owners[owner as usize].last = previous,
            next => self.at_mut(next).previous_of_owner = previous,
        }
        self.owners[owner as usize].orders -= 1;
    }
}

/// An order that is about to take a slot.
pub(crate) fn arriving(new: &crate::NewOrder, arrival: u64) -> Order {
    Order {
        owner: new.owner,
        reference: new.reference,
        tick: new.tick,
        lots: new.lots,
        arrival,
        side: new.side,
        self_trade: new.self_trade,
        post_only: new.post_only,
        ..FREE
    }
}
