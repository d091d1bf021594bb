//! Values written above the state before the block, for sequential execution.
//!
//! Entries are stored one after another in the order of their first writes, and a table holds their positions. So
//! long keys and values take no more memory than they need, do not move when the table grows, and form the result as
//! they are.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

pub(crate) struct Overlay<K, V> {
    hasher: DefaultHashBuilder,
    table: HashTable<Place>,
    entries: Vec<(K, V)>,
}

/// The position of an entry, with a part of its key's hash: most keys are distinguished without reading entries.
#[derive(Clone, Copy)]
struct Place {
    hash: u32,
    at: u32,
}

impl Place {
    /// The hash for the table, which uses both of its ends.
    fn spread(&self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

impl<K, V> Default for Overlay<K, V> {
    fn default() -> Self {
        Overlay { hasher: DefaultHashBuilder::default(), table: HashTable::new(), entries: Vec::new() }
    }
}

impl<K: Hash + Eq, V> Overlay<K, V> {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reserves room for this many more keys.
    pub fn reserve(&mut self, more: usize) {
        self.table.reserve(more, Place::spread);
        self.entries.reserve(more);
    }

    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        if self.entries.is_empty() {
            return None;
        }
        let place = self.find(key, self.hash(key))?;
        Some(&self.entries[place.at as usize].1)
    }

    #[inline]
    pub fn insert(&mut self, key: K, value: V) {
        let hash = self.hash(&key);
        match self.find(&key, hash) {
            Some(place) => self.entries[place.at as usize].1 = value,
            None => {
                let at = u32::try_from(self.entries.len()).expect("a block writes to fewer keys");
                let place = Place { hash, at };
                self.table.insert_unique(place.spread(), place, Place::spread);
                self.entries.push((key, value));
            }
        }
    }

    pub fn extend(&mut self, entries: impl Iterator<Item = (K, V)>) {
        entries.for_each(|(key, value)| self.insert(key, value));
    }

    /// All entries, each key once.
    pub fn into_entries(self) -> Vec<(K, V)> {
        self.entries
    }

    fn find(&self, key: &K, hash: u32) -> Option<Place> {
        let sought = Place { hash, at: 0 }.spread();
        let is_it = |place: &Place| place.hash == hash && self.entries[place.at as usize].0 == *key;
        self.table.find(sought, is_it).copied()
    }

    fn hash(&self, key: &K) -> u32 {
        let hash = self.hasher.hash_one(key);
        (hash >> 32) as u32 ^ hash as u32
    }
}
