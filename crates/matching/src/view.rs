//! What a book shows of its orders.

use crate::treap::NONE;
use crate::{Book, Party, Side};

/// What stands before an order in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Orders of the same tick that arrived earlier.
    pub orders_ahead: u32,
    /// Their lots.
    pub lots_ahead: u64,
    /// The order's own open lots.
    pub lots: u32,
}

impl Book {
    /// The slots of a side in the order in which they trade.
    pub(crate) fn slots(&self, side: Side) -> impl Iterator<Item = u32> + '_ {
        let next = |slot: &u32| Some(self.orders.at(*slot).next).filter(|next| *next != NONE);
        let of_level = move |first: u32| std::iter::successors(Some(first), next);
        self.ladders[side as usize].levels().flat_map(move |level| of_level(level.first))
    }

    /// The resting orders of a side in the order in which they trade, with their ticks and open lots.
    pub fn resting(&self, side: Side) -> impl Iterator<Item = (Party, u32, u32)> + '_ {
        self.slots(side).map(|slot| (self.orders.party(slot), self.orders.at(slot).tick, self.orders.at(slot).lots))
    }

    /// Whether an owner has an open order under a reference.
    pub fn holds(&self, owner: u32, reference: u32) -> bool {
        self.references.get(owner, reference).is_some_and(|slot| self.orders.at(slot).lots > 0)
    }

    /// Where an open order stands in its queue; walks the orders before it.
    pub fn position(&self, owner: u32, reference: u32) -> Option<Position> {
        let slot = self.references.get(owner, reference)?;
        let lots = self.orders.at(slot).lots;
        let mut position = Position { orders_ahead: 0, lots_ahead: 0, lots };
        let mut ahead = self.orders.at(slot).previous;
        while ahead != NONE {
            let order = self.orders.at(ahead);
            position.orders_ahead += 1;
            position.lots_ahead += u64::from(order.lots);
            ahead = order.previous;
        }
        Some(position)
    }
}
