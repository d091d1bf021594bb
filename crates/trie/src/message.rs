//! The hashed bytes (the crate's text describes the format), one message at a time or many at once.

use blake3::IncrementCounter;
use blake3::platform::{MAX_SIMD_DEGREE, Platform};

const CONTEXT: &str = "walras 2026 trie v2";
const EMPTY: u8 = 0;
const ONLY_ENTRY: u8 = 1;
const NODE: u8 = 2;
const HEADER_BYTES: usize = 6;
pub(crate) const DIGEST_BYTES: usize = 32;
const BLOCK_BYTES: usize = 64;
/// A longer message spans several BLAKE3 chunks and is hashed alone.
const BLOCKS_MAX: usize = 16;

/// The BLAKE3 key of every digest in tries with keys and values of these lengths.
pub(crate) fn trie_key(key_bytes: usize, value_bytes: usize) -> [u8; 32] {
    let length = |bytes: usize| u8::try_from(bytes).expect("keys have at most 127 bytes, values 255");
    blake3::derive_key(CONTEXT, &[length(key_bytes), length(value_bytes)])
}

/// The content of an occupied slot of a node's message.
#[derive(Clone, Copy)]
pub(crate) enum Slot<'a> {
    /// The digest of the node.
    Node(&'a [u8]),
    /// The end of a leaf's key and its value.
    Leaf(&'a [u8], &'a [u8]),
}

/// The root of the empty trie.
pub(crate) fn empty_digest(trie_key: &[u8; 32]) -> [u8; 32] {
    blake3::keyed_hash(trie_key, &[EMPTY]).into()
}

/// The root of a trie with one entry.
pub(crate) fn only_entry_digest(trie_key: &[u8; 32], key: &[u8], value: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(trie_key);
    hasher.update(&[ONLY_ENTRY]).update(key).update(value).finalize().into()
}

/// A node's digest.
pub(crate) fn node_digest<'a>(
    trie_key: &[u8; 32],
    depth: usize,
    path: &[u8],
    slots: impl Iterator<Item = (usize, Slot<'a>)>,
) -> [u8; 32] {
    let mut message = Vec::with_capacity(BLOCKS_MAX * BLOCK_BYTES);
    write_node(&mut message, depth, path, slots);
    blake3::keyed_hash(trie_key, &message).into()
}

/// The number of a key's bytes that the path of a node of this depth touches. A leaf below contains the bytes after
/// them; its slot gives the nibble that may be missing in between.
pub(crate) fn path_bytes(depth: usize) -> usize {
    depth.div_ceil(2)
}

/// Appends a node's message to `out`. `path` contains at least the node's path; further bytes are ignored.
pub(crate) fn write_node<'a>(
    out: &mut Vec<u8>,
    depth: usize,
    path: &[u8],
    slots: impl Iterator<Item = (usize, Slot<'a>)>,
) {
    let start = out.len();
    out.extend([NODE, u8::try_from(depth).expect("a depth is at most 253"), 0, 0, 0, 0]);
    out.extend_from_slice(&path[..path_bytes(depth)]);
    if depth % 2 == 1 {
        *out.last_mut().expect("the path is not empty") &= 0xf0;
    }
    let (mut nodes, mut leaves) = (0u16, 0u16);
    for (slot, content) in slots {
        match content {
            Slot::Node(digest) => {
                nodes |= 1 << slot;
                out.extend_from_slice(digest);
            }
            Slot::Leaf(suffix, value) => {
                leaves |= 1 << slot;
                out.extend_from_slice(suffix);
                out.extend_from_slice(value);
            }
        }
    }
    out[start + 2..start + 4].copy_from_slice(&nodes.to_le_bytes());
    out[start + 4..start + HEADER_BYTES].copy_from_slice(&leaves.to_le_bytes());
    let padded = (out.len() - start).next_multiple_of(BLOCK_BYTES);
    out.resize(start + padded, 0);
}

/// Hashes messages of whole blocks, up to sixteen of one length at a time in parallel in vector registers.
///
/// The function that does this, `Platform::hash_many`, is public but undocumented in the blake3 crate. A test compares
/// it with `blake3::keyed_hash`, so an update of that crate cannot silently change a digest.
pub(crate) struct Lanes {
    trie_key: [u8; 32],
    key_words: [u32; 8],
    platform: Platform,
    /// By length in blocks, minus one.
    waiting: [Waiting; BLOCKS_MAX],
}

#[derive(Default)]
struct Waiting {
    messages: Vec<u8>,
    tickets: Vec<u32>,
}

impl Lanes {
    pub(crate) fn new(trie_key: &[u8; 32]) -> Lanes {
        let (words, _) = trie_key.as_chunks::<4>();
        Lanes {
            trie_key: *trie_key,
            key_words: std::array::from_fn(|i| u32::from_le_bytes(words[i])),
            platform: Platform::detect(),
            waiting: Default::default(),
        }
    }

    /// Adds a message of exactly `length` bytes that `write` appends; calls `done(ticket, digest)` for this and
    /// earlier messages, now or later.
    pub(crate) fn push(
        &mut self,
        ticket: u32,
        length: usize,
        write: impl FnOnce(&mut Vec<u8>),
        done: &mut impl FnMut(u32, [u8; 32]),
    ) {
        let blocks = length.div_ceil(BLOCK_BYTES);
        if blocks > BLOCKS_MAX {
            let mut message = Vec::with_capacity(blocks * BLOCK_BYTES);
            write(&mut message);
            return done(ticket, blake3::keyed_hash(&self.trie_key, &message).into());
        }
        let waiting = &mut self.waiting[blocks - 1];
        write(&mut waiting.messages);
        waiting.tickets.push(ticket);
        debug_assert_eq!(waiting.messages.len(), waiting.tickets.len() * blocks * BLOCK_BYTES);
        if waiting.tickets.len() == MAX_SIMD_DEGREE {
            self.flush(blocks, done);
        }
    }

    /// Hashes all messages that are still queued.
    pub(crate) fn finish(&mut self, done: &mut impl FnMut(u32, [u8; 32])) {
        for blocks in 1..=BLOCKS_MAX {
            self.flush(blocks, done);
        }
    }

    fn flush(&mut self, blocks: usize, done: &mut impl FnMut(u32, [u8; 32])) {
        let count = self.waiting[blocks - 1].tickets.len();
        if count == 0 {
            return;
        }
        let mut digests = [[0; DIGEST_BYTES]; MAX_SIMD_DEGREE];
        let out = &mut digests.as_flattened_mut()[..count * DIGEST_BYTES];
        match blocks {
            1 => self.hash_many::<64>(out),
            2 => self.hash_many::<128>(out),
            3 => self.hash_many::<192>(out),
            4 => self.hash_many::<256>(out),
            5 => self.hash_many::<320>(out),
            6 => self.hash_many::<384>(out),
            7 => self.hash_many::<448>(out),
            8 => self.hash_many::<512>(out),
            9 => self.hash_many::<576>(out),
            10 => self.hash_many::<640>(out),
            11 => self.hash_many::<704>(out),
            12 => self.hash_many::<768>(out),
            13 => self.hash_many::<832>(out),
            14 => self.hash_many::<896>(out),
            15 => self.hash_many::<960>(out),
            16 => self.hash_many::<1024>(out),
            _ => unreachable!("longer messages never wait"),
        }
        let waiting = &mut self.waiting[blocks - 1];
        for (&ticket, &digest) in waiting.tickets.iter().zip(&digests) {
            done(ticket, digest);
        }
        waiting.tickets.clear();
        waiting.messages.clear();
    }

    fn hash_many<const LENGTH: usize>(&self, out: &mut [u8]) {
        // The domain flags of BLAKE3 (its specification, §2.1): every message is one whole keyed chunk and the root.
        const CHUNK_START: u8 = 1;
        const CHUNK_END: u8 = 1 << 1;
        const ROOT: u8 = 1 << 3;
        const KEYED_HASH: u8 = 1 << 4;
        let (messages, _) = self.waiting[LENGTH / BLOCK_BYTES - 1].messages.as_chunks::<LENGTH>();
        let inputs: [&[u8; LENGTH]; MAX_SIMD_DEGREE] = std::array::from_fn(|i| &messages[i.min(messages.len() - 1)]);
        self.platform.hash_many(
            &inputs[..messages.len()],
            &self.key_words,
            0,
            IncrementCounter::No,
            KEYED_HASH,
            CHUNK_START,
            CHUNK_END | ROOT,
            out,
        );
    }
}

/// Length of a node's message before it is padded.
pub(crate) fn node_length(
    (key_bytes, value_bytes): (usize, usize),
    depth: usize,
    nodes: usize,
    leaves: usize,
) -> usize {
    let leaf = key_bytes - path_bytes(depth) + value_bytes;
    HEADER_BYTES + path_bytes(depth) + nodes * DIGEST_BYTES + leaves * leaf
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_by_side_equals_one_by_one() {
        let key = trie_key(20, 32);
        let messages: Vec<Vec<u8>> =
            (0..200u32).map(|i| (0..64 * (1 + i % 18)).map(|j| (i * 31 + j) as u8).collect()).collect();
        let mut lanes = Lanes::new(&key);
        let mut digests = vec![[0; 32]; messages.len()];
        let mut done = |ticket: u32, digest| digests[ticket as usize] = digest;
        for (ticket, message) in (0..).zip(&messages) {
            lanes.push(ticket, message.len(), |out| out.extend_from_slice(message), &mut done);
        }
        lanes.finish(&mut done);
        for (message, digest) in messages.iter().zip(&digests) {
            assert_eq!(blake3::keyed_hash(&key, message), *digest);
        }
    }
}
