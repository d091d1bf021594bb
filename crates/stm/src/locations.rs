//! From keys to locations: an index that only grows, without locks.
//!
//! A lookup hashes the key (keyed, so that nobody can craft collisions), walks groups of eight words (one cache line)
//! in tables of doubling size, and compares the full key. A word holds 32 bits of the hash and the location's number;
//! the first empty word of the walk is claimed by compare-and-swap. Words never change once set, so two threads that
//! insert one key meet at the same empty word, and the loser adopts the winner's location.

use std::hash::{BuildHasher, Hash};
use std::sync::OnceLock;

use hashbrown::DefaultHashBuilder;

use crate::counters::Apart;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const GROUP: usize = 8;
const TABLES: usize = 26;
/// 4 chunks for each of 16 powers of two from 2^10 on.
const CHUNKS: usize = 64;
const FIRST_CHUNK_BITS: u32 = 10;
/// A location's number has its chunk in the upper bits, and its place in the chunk in this many lower bits.
const PLACE_BITS: u32 = 24;
/// Number of locations that fill all chunks.
const LOCATIONS: u32 = (1 << 26) - (1 << FIRST_CHUNK_BITS);

/// A location with a key. It is created without one, and gets it when it is numbered.
pub(crate) trait Keyed<K> {
    fn new() -> Self;
    /// Sets its key, once.
    fn name(&self, key: K);
    fn key(&self) -> &K;
}

/// A growing set of numbered locations.
pub(crate) struct Locations<L> {
    hasher: DefaultHashBuilder,
    tables: [OnceLock<Box<[AtomicU64]>>; TABLES],
    chunks: [OnceLock<Box<[L]>>; CHUNKS],
    count: Apart<AtomicU32>,
    first_table_bits: u32,
}

impl<L> Locations<L> {
    /// An empty set that expects about so many locations.
    pub fn new(expected: usize) -> Self {
        Locations {
            hasher: DefaultHashBuilder::default(),
            tables: [const { OnceLock::new() }; TABLES],
            chunks: [const { OnceLock::new() }; CHUNKS],
            count: Apart(AtomicU32::new(0)),
            first_table_bits: expected.clamp(64, 1 << 20).next_power_of_two().trailing_zeros(),
        }
    }

    /// The number of the location of `key`, which is created if it is new.
    #[inline]
    pub fn find_or_insert<K: Hash + Eq + Clone>(&self, key: &K) -> u32
    where
        L: Keyed<K>,
    {
        let hash = self.hasher.hash_one(key);
        let tag = hash >> 32;
        let mut created = None;
        for (number, table) in self.tables.iter().enumerate() {
            let words = 1usize << (self.first_table_bits + number as u32);
            let table = table.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
            // Higher tables use other bits of the hash, so that keys that collide in one table separate in the next.
            let group = (hash.rotate_right(number as u32 * 5) as usize & (words / GROUP - 1)) * GROUP;
            for word in &table[group..group + GROUP] {
                let mut found = word.load(Ordering::Acquire);
                if found == 0 {
                    let location = *created.get_or_insert_with(|| self.create(key.clone()));
                    let mine = tag << 32 | u64::from(location + 1);
                    match word.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire) {
                        Ok(_) => return location,
                        Err(other) => found = other,
                    }
                }
                let location = (found as u32).wrapping_sub(1);
                if found >> 32 == tag && self.get(location).key() == key {
                    return location;
                }
            }
        }
        unreachable!("{LOCATIONS} locations do not fill 2^{} words", self.first_table_bits + TABLES as u32)
    }

    /// A location by its number.
    #[inline]
    pub fn get(&self, location: u32) -> &L {
        let chunk = self.chunks[(location >> PLACE_BITS) as usize].get().expect("a numbered location has a chunk");
        &chunk[(location & ((1 << PLACE_BITS) - 1)) as usize]
    }

    /// Number of numbered locations.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Takes all numbered locations out.
    pub fn into_iter(self) -> impl Iterator<Item = L> {
        let count = self.count();
        let chunks = self.chunks.into_iter().filter_map(OnceLock::into_inner);
        chunks.flat_map(|chunk| chunk.into_vec()).take(count)
    }

    fn create<K>(&self, key: K) -> u32
    where
        L: Keyed<K>,
    {
        let created = self.count.fetch_add(1, Ordering::Relaxed);
        assert!(created < LOCATIONS, "a block touches at most {LOCATIONS} locations");
        let (chunk, size, place) = place(created);
        let locations = self.chunks[chunk].get_or_init(|| (0..size).map(|_| L::new()).collect());
        locations[place].name(key);
        (chunk as u32) << PLACE_BITS | place as u32
    }
}

/// The chunk of the nth created location, the chunk's size, and the place in it. Chunks grow by a quarter of a power
/// of two, so that little memory is unused.
fn place(created: u32) -> (usize, usize, usize) {
    let number = created + (1 << FIRST_CHUNK_BITS);
    let power = number.ilog2();
    let quarter = number >> (power - 2) & 3;
    let size = 1usize << (power - 2);
    (((power - FIRST_CHUNK_BITS) * 4 + quarter) as usize, size, number as usize & (size - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{Arc, thread};

    struct Named(OnceLock<u64>);

    impl Keyed<u64> for Named {
        fn new() -> Self {
            Named(OnceLock::new())
        }
        fn name(&self, key: u64) {
            self.0.set(key).expect("each number is given out once");
        }
        fn key(&self) -> &u64 {
            self.0.get().expect("it is numbered")
        }
    }

    #[test]
    fn places_are_dense() {
        let mut before = place(0);
        assert_eq!((before.0, before.2), (0, 0));
        for location in 1..1 << 20 {
            let at = place(location);
            let follows =
                if at.2 == 0 { before.2 + 1 == before.1 && at.0 == before.0 + 1 } else { at.2 == before.2 + 1 };
            assert!(follows && at.0 < CHUNKS, "{location}: {before:?} {at:?}");
            before = at;
        }
        let (chunk, size, last) = place(LOCATIONS - 1);
        assert!(chunk == CHUNKS - 1 && last == size - 1 && size <= 1 << PLACE_BITS);
    }

    #[test]
    fn a_small_index_grows() {
        shuttle::check_random(
            || {
                let index: Locations<Named> = Locations::new(64);
                let numbers: Vec<u32> = (0..300).map(|key| index.find_or_insert(&key)).collect();
                for key in 0..300u64 {
                    assert_eq!(index.find_or_insert(&key), numbers[key as usize]);
                    assert_eq!(*index.get(numbers[key as usize]).key(), key);
                }
                assert_eq!(index.into_iter().count(), 300);
            },
            1,
        );
    }

    #[test]
    fn one_key_has_one_location_whoever_inserts_it() {
        shuttle::check_pct(
            || {
                let index: Arc<Locations<Named>> = Arc::new(Locations::new(64));
                let insert = |index: Arc<Locations<Named>>| move || [7, 9, 7].map(|key| index.find_or_insert(&key));
                let others = [thread::spawn(insert(index.clone())), thread::spawn(insert(index.clone()))];
                let mine = insert(index)();
                assert_eq!(mine[0], mine[2]);
                for other in others {
                    assert_eq!(other.join().expect("no panic"), mine);
                }
            },
            500,
            3,
        );
    }
}
