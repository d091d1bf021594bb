//! A book as bytes, and back.
//!
//! All integers are little-endian. Equal books have equal bytes, and bytes that restore are those of the book that they
//! restore.
//!
//! | field | bytes |
//! |---|---|
//! | version | 1 |
//! | limits: orders, owners, orders of an owner, base and ticks of the window, makers of a fill-or-kill order | 6 × 4 |
//! | phase (0 continuous, 1 halted, 2 call) | 1 |
//! | collar | 2 × 4 |
//! | arrivals so far | 8 |
//! | slots that were used; the generation of each | 4 + 4 each |
//! | free slots among them; each, in the order in which they became free | 4 + 4 each |
//! | owners whose kill switch is on; each | 4 + 4 each |
//! | buys, best first; then sells, best first: slot, owner, reference, tick, lots, executed, flags, arrival | 4 + 33 each |

use crate::command::TICK_MAX;
use crate::orders::Order;
use crate::{Book, BookLimits, NewOrder, Phase, SelfTrade, Side, TimeInForce};

const VERSION: u8 = 1;
const PHASES: [Phase; 3] = [Phase::Continuous, Phase::Halted, Phase::Call];
const SELF_TRADES: [SelfTrade; 3] = [SelfTrade::ExpireMaker, SelfTrade::ExpireTaker, SelfTrade::ExpireBoth];
const POST_ONLY: u8 = 4;

/// Why bytes are no snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookSnapshotError {
    /// Another version wrote them.
    #[error("a snapshot of version {0}; this program reads version {VERSION}")]
    Version(u8),
    /// They end early, or go on.
    #[error("a snapshot has another length")]
    Length,
    /// A field has an impossible value.
    #[error("a snapshot's {0} is impossible")]
    Field(&'static str),
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BookSnapshotError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(BookSnapshotError::Length)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u8(&mut self) -> Result<u8, BookSnapshotError> {
        self.take().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, BookSnapshotError> {
        self.take().map(u32::from_le_bytes)
    }

    /// A count of things of `bytes` bytes each, which must be there.
    fn count(&mut self, bytes: usize) -> Result<u32, BookSnapshotError> {
        let count = self.u32()?;
        match (count as usize).checked_mul(bytes) {
            Some(bytes) if bytes <= self.0.len() => Ok(count),
            _ => Err(BookSnapshotError::Length),
        }
    }
}

fn sound(is_sound: bool, field: &'static str) -> Result<(), BookSnapshotError> {
    if is_sound { Ok(()) } else { Err(BookSnapshotError::Field(field)) }
}

impl Book {
    /// The book as bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut |part| bytes.extend_from_slice(part));
        bytes
    }

    /// A digest of the book: equal books have equal ones. It is no protection against someone who wants two books to
    /// have one digest; hash the snapshot for that.
    pub fn digest(&self) -> u128 {
        // FNV-1a with 128 bits.
        let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        self.write(&mut |part| {
            for byte in part {
                hash = (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            }
        });
        hash
    }

    fn write(&self, out: &mut impl FnMut(&[u8])) {
        let BookLimits { orders, owners, orders_of_owner, window_base, window_ticks, fill_or_kill_orders } =
            self.limits;
        out(&[VERSION]);
        for limit in [orders, owners, orders_of_owner, window_base, window_ticks, fill_or_kill_orders] {
            out(&limit.to_le_bytes());
        }
        out(&[PHASES.iter().position(|phase| *phase == self.phase).expect("one of three") as u8]);
        out(&self.collar.0.to_le_bytes());
        out(&self.collar.1.to_le_bytes());
        out(&self.arrivals.to_le_bytes());
        out(&self.orders.used.to_le_bytes());
        for slot in &self.orders.slots[..self.orders.used as usize] {
            out(&slot.generation.to_le_bytes());
        }
        write_list(out, &self.orders.free);
        let killed = self.orders.owners.iter().enumerate().filter(|(_, owner)| owner.is_killed);
        write_list(out, &killed.map(|(at, _)| at as u32).collect::<Vec<_>>());
        for side in [Side::Buy, Side::Sell] {
            let slots: Vec<u32> = self.slots(side).collect();
            out(&(slots.len() as u32).to_le_bytes());
            slots.into_iter().for_each(|slot| write_order(out, slot, self.orders.at(slot)));
        }
    }

    /// The book of these limits that a snapshot was taken of, with a seed as for [`Book::new`].
    ///
    /// # Errors
    /// [`BookSnapshotError`]; any bytes are refused or restored.
    pub fn restore(bytes: &[u8], limits: BookLimits, seed: u64) -> Result<Book, BookSnapshotError> {
        let mut reader = Reader(bytes);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(BookSnapshotError::Version(version));
        }
        let written = BookLimits {
            orders: reader.u32()?,
            owners: reader.u32()?,
            orders_of_owner: reader.u32()?,
            window_base: reader.u32()?,
            window_ticks: reader.u32()?,
            fill_or_kill_orders: reader.u32()?,
        };
        // Memory is allocated for what the caller asks for, never for what bytes say.
        sound(written == limits, "limits")?;
        let mut book = Book::new(limits, seed).map_err(|_| BookSnapshotError::Field("limits"))?;
        book.phase = *PHASES.get(reader.u8()? as usize).ok_or(BookSnapshotError::Field("phase"))?;
        book.collar = (reader.u32()?, reader.u32()?);
        let (low, high) = book.collar;
        sound(1 <= low && low <= high && high <= TICK_MAX, "collar")?;
        book.arrivals = u64::from_le_bytes(reader.take()?);
        book.read_slots(&mut reader)?;
        for _ in 0..reader.count(4)? {
            let owner = book.orders.owners.get_mut(reader.u32()? as usize).ok_or(BookSnapshotError::Field("owner"))?;
            owner.is_killed = true;
        }
        let mut all = book.read_side(Side::Buy, &mut reader)?;
        all.extend(book.read_side(Side::Sell, &mut reader)?);
        sound(reader.0.is_empty(), "length")?;
        book.settle_in(all)?;
        // Lists in another order are other bytes of the same book.
        sound(book.snapshot() == bytes, "order of entries")?;
        Ok(book)
    }

    fn read_slots(&mut self, reader: &mut Reader<'_>) -> Result<(), BookSnapshotError> {
        self.orders.used = reader.count(4)?;
        sound(self.orders.used <= self.limits.orders, "number of slots")?;
        for slot in 0..self.orders.used {
            self.orders.at_mut(slot).generation = reader.u32()?;
        }
        let mut is_free = vec![false; self.orders.used as usize];
        for _ in 0..reader.count(4)? {
            let slot = reader.u32()?;
            let entry = is_free.get_mut(slot as usize).ok_or(BookSnapshotError::Field("free slot"))?;
            sound(!std::mem::replace(entry, true), "free slot")?;
            self.orders.free.push(slot);
        }
        Ok(())
    }

    /// Puts the orders of a side into their slots, and returns these.
    fn read_side(&mut self, side: Side, reader: &mut Reader<'_>) -> Result<Vec<u32>, BookSnapshotError> {
        let mut slots = Vec::new();
        for _ in 0..reader.count(33)? {
            let slot = reader.u32()?;
            let [owner, reference, tick, lots, executed] =
                [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
            let (flags, arrival) = (reader.u8()?, u64::from_le_bytes(reader.take()?));
            let self_trade = *SELF_TRADES.get((flags & 3) as usize).ok_or(BookSnapshotError::Field("flags"))?;
            sound(flags < 2 * POST_ONLY, "flags")?;
            sound(slot < self.orders.used && self.orders.at(slot).lots == 0, "slot")?;
            sound((1..=TICK_MAX).contains(&tick), "tick")?;
            sound(lots > 0 && lots.checked_add(executed).is_some(), "lots")?;
            sound(owner < self.limits.owners, "owner")?;
            sound(arrival < self.arrivals, "arrival")?;
            let new = NewOrder {
                owner,
                reference,
                side,
                tick,
                lots,
                time_in_force: TimeInForce::GoodTillCancelled,
                post_only: flags & POST_ONLY > 0,
                self_trade,
            };
            let generation = self.orders.at(slot).generation;
            *self.orders.at_mut(slot) = Order { generation, executed, ..crate::orders::arriving(&new, arrival) };
            slots.push(slot);
        }
        Ok(slots)
    }

    /// Lets all orders rest, by arrival.
    fn settle_in(&mut self, mut slots: Vec<u32>) -> Result<(), BookSnapshotError> {
        let is_free_one_open = self.orders.free.iter().any(|slot| self.orders.at(*slot).lots > 0);
        sound(!is_free_one_open, "free slot")?;
        sound(self.orders.free.len() + slots.len() == self.orders.used as usize, "number of slots")?;
        slots.sort_unstable_by_key(|slot| self.orders.at(*slot).arrival);
        let arrival = |slot: u32| self.orders.at(slot).arrival;
        sound(slots.windows(2).all(|two| arrival(two[0]) < arrival(two[1])), "arrival")?;
        for slot in slots {
            let Order { owner, reference, .. } = *self.orders.at(slot);
            sound(self.is_unnamed(owner, reference), "reference")?;
            sound(self.orders.owners[owner as usize].orders < self.limits.orders_of_owner, "orders of an owner")?;
            self.rest(slot);
        }
        sound(self.phase != Phase::Continuous || !self.is_crossed(), "phase")?;
        sound(self.are_owners_apart(), "self-trade")
    }

    /// Whether no owner's buys reach its sells.
    fn are_owners_apart(&self) -> bool {
        let mut best = vec![(0, u32::MAX); self.limits.owners as usize];
        for order in self.orders.slots[..self.orders.used as usize].iter().filter(|order| order.lots > 0) {
            let (buy, sell) = &mut best[order.owner as usize];
            match order.side {
                Side::Buy => *buy = order.tick.max(*buy),
                Side::Sell => *sell = order.tick.min(*sell),
            }
        }
        best.iter().all(|(buy, sell)| buy < sell)
    }
}

fn write_list(out: &mut impl FnMut(&[u8]), list: &[u32]) {
    out(&(list.len() as u32).to_le_bytes());
    list.iter().for_each(|entry| out(&entry.to_le_bytes()));
}

fn write_order(out: &mut impl FnMut(&[u8]), slot: u32, order: &Order) {
    for field in [slot, order.owner, order.reference, order.tick, order.lots, order.executed] {
        out(&field.to_le_bytes());
    }
    let self_trade = SELF_TRADES.iter().position(|one| *one == order.self_trade).expect("one of three") as u8;
    out(&[self_trade | if order.post_only { POST_ONLY } else { 0 }]);
    out(&order.arrival.to_le_bytes());
}
