//! Client references: which open order of an owner has one. Linear probing; a removal moves later entries up.

use crate::treap::mix;

const EMPTY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    slot: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct References {
    entries: Vec<Entry>,
    seed: u64,
}

fn key(owner: u32, reference: u32) -> u64 {
    u64::from(owner) << 32 | u64::from(reference)
}

impl References {
    /// Room for so many; a secret seed keeps strangers from choosing references that collide.
    pub(crate) fn new(capacity: usize, seed: u64) -> References {
        let size = (capacity * 2).next_power_of_two().max(2);
        References { entries: vec![Entry { key: 0, slot: EMPTY }; size], seed }
    }

    fn home(&self, key: u64) -> usize {
        mix(key, self.seed) as usize & (self.entries.len() - 1)
    }

    fn find(&self, key: u64) -> Result<usize, usize> {
        let mask = self.entries.len() - 1;
        let mut at = self.home(key);
        loop {
            let entry = &self.entries[at];
            match entry.slot {
                EMPTY => return Err(at),
                _ if entry.key == key => return Ok(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    pub(crate) fn get(&self, owner: u32, reference: u32) -> Option<u32> {
        self.find(key(owner, reference)).ok().map(|at| self.entries[at].slot)
    }

    /// Adds a reference that is not there.
    pub(crate) fn insert(&mut self, owner: u32, reference: u32, slot: u32) {
        let key = key(owner, reference);
        let at = self.find(key).expect_err("references of open orders are unique");
        self.entries[at] = Entry { key, slot };
    }

    /// Removes a reference that is there.
    pub(crate) fn remove(&mut self, owner: u32, reference: u32) {
        let mask = self.entries.len() - 1;
        let mut hole = self.find(key(owner, reference)).expect("an open order has its reference");
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.slot == EMPTY {
                break;
            }
            // An entry may move up if its home is not between the hole and itself.
            let home = self.home(entry.key);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole].slot = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Slots in a row that are taken, at most: as many a look-up may pass.
    fn longest_run(table: &References) -> usize {
        let (mut longest, mut run) = (0, 0);
        for entry in table.entries.iter().chain(&table.entries) {
            run = if entry.slot == EMPTY { 0 } else { run + 1 };
            longest = longest.max(run);
        }
        longest
    }

    /// Clients choose their references. By their last bits, those that stride by a page or by the size of the table
    /// would all have one home.
    #[test]
    fn references_that_stride_by_pages_stay_near_their_homes_in_the_room_of_the_start() {
        const ORDERS: u32 = 1 << 14;
        for stride in [1, 64, 4_096, 1 << 14, 1 << 15, 1 << 18] {
            let mut table = References::new(ORDERS as usize, 0x5eed);
            let room = (table.entries.len(), table.entries.capacity());
            let reference = |at: u32| at.wrapping_mul(stride);
            (0..ORDERS).for_each(|at| table.insert(7, reference(at), at));
            assert!(longest_run(&table) < 256, "{} by {stride}", longest_run(&table));
            // Half of them go, and others come, again and again.
            for turn in 0..4 {
                for at in (0..ORDERS).filter(|at| (at + turn) % 2 == 0) {
                    table.remove(7, reference(at));
                    table.insert(7, reference(at), at + turn);
                }
            }
            assert!(longest_run(&table) < 256, "{} by {stride}", longest_run(&table));
            assert_eq!((table.entries.len(), table.entries.capacity()), room);
        }
    }

    proptest! {
        #[test]
        fn references_are_those_of_a_map(
            steps in proptest::collection::vec((0..4u32, 0..8u32), 1..400),
            seed in any::<u64>(),
        ) {
            // A table of 32 entries: nearly all collide.
            let (mut table, mut map) = (References::new(16, seed), HashMap::new());
            for (slot, (owner, reference)) in steps.into_iter().enumerate() {
                if map.remove(&(owner, reference)).is_some() {
                    table.remove(owner, reference);
                } else if map.len() < 16 {
                    map.insert((owner, reference), slot as u32);
                    table.insert(owner, reference, slot as u32);
                }
                for owner in 0..4 {
                    for reference in 0..8 {
                        prop_assert_eq!(table.get(owner, reference), map.get(&(owner, reference)).copied());
                    }
                }
            }
        }
    }
}
