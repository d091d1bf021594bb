//! A batched, parallel Merkle-Patricia trie: fan-out 16, fixed-length keys, BLAKE3 (SPEEDEX §9.3, appendix K).
//!
//! The trie holds, per key, a value of a fixed length: the 32-byte digest of data that is stored elsewhere, or the
//! data itself if it is short. Changes come in batches, sorted by key: [`Trie::apply`] applies them, in parallel over
//! disjoint subtrees, and [`Trie::root`] hashes what changed, once. [`Trie::prove`] proves that a key has a certain
//! value, or is absent, to anyone who knows only the root ([`verify`]).
//!
//! ```
//! let mut trie = trie::Trie::<8, 32>::new();
//! let (seven, nine) = (7u64.to_be_bytes(), 9u64.to_be_bytes());
//! trie.apply(&[(seven, Some([1; 32])), (nine, Some([2; 32]))]);
//! let root = trie.root();
//! let proof = trie.prove(&seven).unwrap();
//! assert_eq!(trie::verify(&root, &seven, &proof), Ok(Some([1; 32])));
//! ```
//!
//! # Properties
//!
//! - *History independence*: the root is a function only of the set of (key, value). The order and the splitting of
//!   batches, intermediate removals and the number of threads do not affect it.
//! - *Binding*: two different sets, or sets with keys or values of different length, have different roots, as far as
//!   BLAKE3 is collision resistant.
//! - *Canonical proofs*: for a set and a key exactly one byte string verifies.
//! - The work of `root` is proportional to the nodes changed since the last call, and is never done twice for one
//!   change.
//!
//! # What is hashed
//!
//! Values have `V` bytes. A key of `K` bytes is a path of `2K` nibbles, the high nibble of each byte first. There is
//! a *node* where at least two keys diverge: its *depth* is the number of nibbles they share, and those nibbles are
//! its *path*. The keys below it are divided into up to 16 *slots* by the nibble that follows the path. A slot with
//! one key is a *leaf*, one with more keys is again a node, of any greater depth.
//!
//! Every digest is `BLAKE3-keyed(k, message)` where `k = BLAKE3-derive-key("walras 2026 trie v2", [K, V])`, each length
//! one byte, so that tries of different lengths share no digest. There are three messages; integers are little-endian.
//!
//! *Empty trie* (its root): the one byte `00`.
//!
//! *Only entry of a trie* (its root): `01`, the key (`K` bytes), the value (`V` bytes).
//!
//! *Node* of depth `d`:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 1 | `02` |
//! | 1 | 1 | the depth `d`, from 0 to `2K − 1` |
//! | 2 | 2 | bitmap of the slots that hold a node, slot 0 in the lowest bit |
//! | 4 | 2 | bitmap of the slots that hold a leaf |
//! | 6 | ⌈d/2⌉ | the path; if `d` is odd the last low nibble is zero |
//! | … | … | per occupied slot, in order of slots: the digest of the node (32 bytes); or of the leaf the key's bytes after the first ⌈d/2⌉, then the value (`V` bytes) |
//! | … | … | zeros up to a multiple of 64 |
//!
//! The root is the digest of the topmost node. Leaves have no digest of their own: the node above contains key and
//! value in full, which costs about as much hashing as separate leaf digests would and no memory. Messages fill whole
//! BLAKE3 blocks so that sixteen nodes of similar size are hashed at once in vector registers.
//!
//! # Deviations from the paper
//!
//! - Deletion takes effect at once instead of by flags that a later clean-up reads: batches arrive whole and sorted. So
//!   there is no gain in deferring it.
//! - Work is divided by subtree, and subtrees own their memory ([`Trie`] keeps a tree of arenas of at most 65,536
//!   entries). In the paper, nodes count the leaves below them and threads claim ranges. Here no counter has to be
//!   updated in every node, and no two threads write to one arena.
//! - A leaf of a long value contains its digest, because the ledger keeps accounts in separate tables (the paper also
//!   keeps accounts outside the trie, K.1). The leaf of an offer contains the amount, eight bytes.
//! - BLAKE3 instead of BLAKE2b: one compression per 64 instead of 128 bytes, but several nodes at once.
//! - The hash is not a parameter. A parameter would serve only one other user, the published tests of Ethereum, whose
//!   roots are made with Keccak. But their trie has another shape (RLP, nodes for extensions, values of any length),
//!   so another hash alone does not give those roots. `walras-lab statetest` takes the state written by the ledger's
//!   executor and computes the roots with an Ethereum trie from a crate that shares no code with this one.

mod cursor;
mod iter;
mod key;
mod message;
mod proof;
mod rehash;
mod segment;
mod subtree;
mod update;

use std::ops::RangeBounds;

pub use iter::Iter;
pub use proof::{Proof, ProofError, Stale, verify};

/// One line of a batch: a key and its new value, or `None` to remove it.
pub type Change<const KEY: usize, const VALUE: usize = 32> = ([u8; KEY], Option<[u8; VALUE]>);

/// Commits to every entry of a trie and to the length of its keys and values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root(pub [u8; 32]);

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Root({})", blake3::Hash::from_bytes(self.0))
    }
}

/// The effects of a batch, in numbers of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrieUpdate {
    /// Keys that were absent and now have a value.
    pub inserted: usize,
    /// Keys that now have another value.
    pub replaced: usize,
    /// Keys that had the given value already.
    pub unchanged: usize,
    /// Keys that were present and no longer are.
    pub removed: usize,
    /// Keys to remove that were absent; nothing happened.
    pub absent: usize,
}

/// A Merkle-Patricia trie over keys of `KEY` bytes, 1 to 127, with values of `VALUE` bytes, up to 255: digests of
/// data stored elsewhere, or data that is short enough itself. See the module text.
#[derive(Clone)]
pub struct Trie<const KEY: usize, const VALUE: usize = 32> {
    top: subtree::Subtree<KEY, VALUE>,
}

impl<const KEY: usize, const VALUE: usize> Trie<KEY, VALUE> {
    /// The empty trie.
    pub fn new() -> Trie<KEY, VALUE> {
        const { assert!(KEY >= 1 && KEY <= 127, "a depth in nibbles must fit one byte") };
        const { assert!(VALUE <= 255, "the length of a value must fit one byte") };
        Trie { top: subtree::Subtree::default() }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.top.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies a batch, in parallel on the current rayon pool; nothing is hashed yet. Removing an absent key only
    /// counts in [`TrieUpdate::absent`].
    ///
    /// # Panics
    /// If the keys of the batch do not strictly increase.
    pub fn apply(&mut self, batch: &[Change<KEY, VALUE>]) -> TrieUpdate {
        assert!(batch.is_sorted_by(|a, b| a.0 < b.0), "the keys of a batch must strictly increase");
        self.top.apply(batch)
    }

    /// Removes every key up to and including `last`, most of them as whole subtrees (K.5: executed offers are a
    /// prefix of their book); returns their number.
    pub fn remove_through(&mut self, last: &[u8; KEY]) -> usize {
        self.top.remove_through(last)
    }

    /// The root. Hashes, in parallel, the nodes that changed since the last call.
    pub fn root(&mut self) -> Root {
        self.top.rehash(&message::trie_key(KEY, VALUE));
        Root(self.top.digest(&message::trie_key(KEY, VALUE)))
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8; KEY]) -> Option<[u8; VALUE]> {
        self.top.get(key)
    }

    /// Proves the value of `key`, or its absence, against the root that [`Trie::root`] returned.
    ///
    /// # Errors
    /// [`Stale`] if the trie has changed since the last call of [`Trie::root`].
    pub fn prove(&self, key: &[u8; KEY]) -> Result<Proof, Stale> {
        proof::prove(&self.top, key)
    }

    /// All entries, in the order of keys.
    pub fn iter(&self) -> Iter<'_, KEY, VALUE> {
        self.range(..)
    }

    /// The entries with keys in `range`, in the order of keys.
    pub fn range(&self, range: impl RangeBounds<[u8; KEY]>) -> Iter<'_, KEY, VALUE> {
        Iter::new(&self.top, range)
    }

    /// Bytes of memory used, including free space in arenas.
    pub fn allocated_bytes(&self) -> usize {
        self.top.allocated_bytes()
    }
}

/// The roots of many tries, as returned by [`Trie::root`], computed on this thread. Nodes of all of them are hashed
/// together, which is faster if few nodes of each have changed.
pub fn roots<const KEY: usize, const VALUE: usize>(tries: &mut [&mut Trie<KEY, VALUE>]) -> Vec<Root> {
    let trie_key = message::trie_key(KEY, VALUE);
    let mut tops: Vec<_> = tries.iter_mut().map(|trie| &mut trie.top).collect();
    rehash::rehash_together(&mut tops, &trie_key);
    tops.iter().map(|top| Root(top.digest(&trie_key))).collect()
}

impl<const KEY: usize, const VALUE: usize> Default for Trie<KEY, VALUE> {
    fn default() -> Trie<KEY, VALUE> {
        Trie::new()
    }
}

impl<'a, const KEY: usize, const VALUE: usize> IntoIterator for &'a Trie<KEY, VALUE> {
    type Item = (&'a [u8; KEY], &'a [u8; VALUE]);
    type IntoIter = Iter<'a, KEY, VALUE>;

    fn into_iter(self) -> Iter<'a, KEY, VALUE> {
        self.iter()
    }
}
