//! Slots of orders by the last height at which they can be filled. In snapshots it is the set of (height, slot).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Result as IoResult, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Height;

/// Slots by height. A slot has one height, and its place is known: orders come and go without a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiries {
    /// Without heights that have no slots.
    by_height: BTreeMap<Height, Vec<u32>>,
    /// By slot: its place at its height. It means nothing for slots that are not there.
    places: Vec<u32>,
}

impl Expiries {
    fn place(&self, height: Height, slot: u32) -> Option<usize> {
        let place = *self.places.get(slot as usize)? as usize;
        (self.by_height.get(&height)?.get(place) == Some(&slot)).then_some(place)
    }

    /// Adds a slot, unless it is there.
    pub fn insert(&mut self, height: Height, slot: u32) {
        if self.place(height, slot).is_none() {
            let slots = self.by_height.entry(height).or_default();
            if self.places.len() <= slot as usize {
                self.places.resize(slot as usize + 1, 0);
            }
            self.places[slot as usize] = slots.len() as u32;
            slots.push(slot);
        }
    }

    /// Removes a slot, if it is there.
    pub fn remove(&mut self, height: Height, slot: u32) {
        let Some(place) = self.place(height, slot) else { return };
        let slots = self.by_height.get_mut(&height).expect("it is there");
        slots.swap_remove(place);
        match slots.get(place) {
            Some(moved) => self.places[*moved as usize] = place as u32,
            None if slots.is_empty() => drop(self.by_height.remove(&height)),
            None => {}
        }
    }

    /// Removes the lowest height with its slots, if it is past.
    pub fn pop_past(&mut self, is_past: impl Fn(Height) -> bool) -> Option<Vec<u32>> {
        let lowest = self.by_height.first_entry()?;
        is_past(*lowest.key()).then(|| lowest.remove())
    }

    /// The slots of a height and those above it, while these are over: by height, then by slot.
    pub fn over(&self, from: Height, is_over: impl Fn(Height) -> bool) -> Vec<u32> {
        let over = self.by_height.range(from..).take_while(|(height, _)| is_over(**height));
        over.flat_map(|(_, slots)| sorted(slots)).collect()
    }

    fn all(&self) -> BTreeSet<(Height, u32)> {
        self.by_height.iter().flat_map(|(height, slots)| slots.iter().map(|slot| (*height, *slot))).collect()
    }
}

fn sorted(slots: &[u32]) -> Vec<u32> {
    let mut sorted = slots.to_vec();
    sorted.sort_unstable();
    sorted
}

impl PartialEq for Expiries {
    fn eq(&self, other: &Expiries) -> bool {
        self.all() == other.all()
    }
}

impl Eq for Expiries {}

impl BorshSerialize for Expiries {
    fn serialize<W: Write>(&self, to: &mut W) -> IoResult<()> {
        self.all().serialize(to)
    }
}

impl BorshDeserialize for Expiries {
    fn deserialize_reader<R: Read>(from: &mut R) -> IoResult<Expiries> {
        let mut expiries = Expiries::default();
        let all = BTreeSet::<(Height, u32)>::deserialize_reader(from)?;
        all.into_iter().for_each(|(height, slot)| expiries.insert(height, slot));
        Ok(expiries)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is done to a slot, whose height is always the same.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        Insert(u32),
        Remove(u32),
        Pass(Height),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            4 => (0..40u32).prop_map(Act::Insert),
            2 => (0..40u32).prop_map(Act::Remove),
            1 => (0..6u64).prop_map(Act::Pass),
        ];
        prop::collection::vec(act, 1..200)
    }

    proptest! {
        #[test]
        fn expiries_are_a_set_of_heights_and_slots(acts in acts()) {
            let (mut expiries, mut set) = (Expiries::default(), BTreeSet::new());
            let height = |slot: u32| Height::from(slot % 7);
            for act in acts {
                match act {
                    Act::Insert(slot) => {
                        expiries.insert(height(slot), slot);
                        set.insert((height(slot), slot));
                    }
                    Act::Remove(slot) => {
                        expiries.remove(height(slot), slot);
                        set.remove(&(height(slot), slot));
                    }
                    Act::Pass(past) => {
                        while let Some(slots) = expiries.pop_past(|height| height < past) {
                            for slot in slots {
                                prop_assert!(set.remove(&(height(slot), slot)));
                            }
                        }
                        prop_assert!(set.iter().all(|(height, _)| *height >= past));
                    }
                }
                prop_assert_eq!(&expiries.all(), &set);
                let over: Vec<u32> = set.range((2, 0)..).take_while(|of| of.0 < 5).map(|of| of.1).collect();
                prop_assert_eq!(expiries.over(2, |height| height < 5), over);
                let bytes = borsh::to_vec(&expiries).expect("memory");
                prop_assert_eq!(&bytes, &borsh::to_vec(&set).expect("memory"));
                prop_assert_eq!(&borsh::from_slice::<Expiries>(&bytes).expect("just written"), &expiries);
            }
        }
    }
}
