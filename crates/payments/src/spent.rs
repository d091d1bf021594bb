//! The spent set: which record of the log spends an output.

use hashbrown::HashTable;

/// A map from 32-byte names to offsets in the log. It holds 16-byte keyed fingerprints: 24 bytes an entry before the
/// table's spare room. The key is fresh at each start, so that no one can prepare collisions. A collision costs a
/// read of the log and never freezes money, because the caller confirms each hit there.
#[derive(Clone, Debug)]
pub struct SpentSet {
    key: [u8; 32],
    entries: HashTable<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    fingerprint: [u64; 2],
    offset: u64,
}

impl SpentSet {
    /// An empty set. The key is random and fresh.
    pub fn new(key: [u8; 32]) -> SpentSet {
        SpentSet { key, entries: HashTable::new() }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory that it uses: the room for its entries, used or spare, and one byte of the table for each.
    pub fn memory(&self) -> usize {
        self.entries.num_buckets() * (size_of::<Entry>() + 1)
    }

    fn fingerprint(&self, name: &[u8; 32]) -> [u64; 2] {
        let hash = blake3::keyed_hash(&self.key, name);
        let word = |at: usize| u64::from_le_bytes(hash.as_bytes()[at..at + 8].try_into().expect("8 bytes"));
        [word(0), word(8)]
    }

    /// The possible offsets of the name: none, one, or several where fingerprints collide.
    pub fn candidates(&self, name: &[u8; 32]) -> Vec<u64> {
        let fingerprint = self.fingerprint(name);
        let same = |entry: &&Entry| entry.fingerprint == fingerprint;
        self.entries.iter_hash(fingerprint[0]).filter(same).map(|entry| entry.offset).collect()
    }

    /// Adds an entry.
    pub fn insert(&mut self, name: &[u8; 32], offset: u64) {
        let fingerprint = self.fingerprint(name);
        self.entries.insert_unique(fingerprint[0], Entry { fingerprint, offset }, |entry| entry.fingerprint[0]);
    }

    /// Adds an entry that has the fingerprint of `name` but belongs to something else.
    #[cfg(test)]
    pub(crate) fn collide(&mut self, name: &[u8; 32], offset: u64) {
        self.insert(name, offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_fits_and_collisions_stay_apart() {
        assert_eq!(size_of::<Entry>(), 24);
        let mut set = SpentSet::new([7; 32]);
        let name = |i: u32| *blake3::hash(&i.to_le_bytes()).as_bytes();
        (0..1000).for_each(|i| set.insert(&name(i), u64::from(i)));
        set.collide(&name(5), 77);
        assert_eq!(set.len(), 1001);
        assert!((0..1000).all(|i| set.candidates(&name(i)).contains(&u64::from(i))));
        let mut both = set.candidates(&name(5));
        both.sort_unstable();
        assert_eq!((both, set.candidates(&name(1000))), (vec![5, 77], vec![]));
    }
}
