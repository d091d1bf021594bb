//! Proofs that a key has a certain value, or is absent.
//!
//! A proof is the path from the root down to the place of the key. It is a sequence of items, each beginning with a
//! byte for its kind; integers are little-endian. `V` is the length of values in bytes.
//!
//! | item | bytes | meaning |
//! |---|---|---|
//! | *empty* | `00` | the trie has no entries; the whole proof |
//! | *node* | `01`, depth (1), node bitmap (2), leaf bitmap (2), then the content of every occupied slot but the key's own | a node whose path the key begins with |
//! | *fork* | `02`, depth, bitmaps, path (⌈depth/2⌉), then the content of every occupied slot | a node in the key's slot whose path the key does not begin with: the key is absent |
//! | *leaf* | `03`, value (V) | the key's own leaf |
//! | *other leaf* | `04`, end of key, value (V) | the leaf of another key in the key's slot: the key is absent |
//!
//! The content of a slot is that of the node's message (see the crate's text): 32 bytes for a node, the end of its key
//! and the value for a leaf. A *node* whose bitmaps leave the key's slot empty ends the proof: the key is absent. If
//! they say node, *node* or *fork* follows; if leaf, *leaf* or *other leaf* does.
//!
//! The verifier rebuilds the messages from the last item upwards and compares the digest of the first with the root.
//! All bytes of a proof are either hashed or determine how the rest is read, and each message names the depth and the
//! path of its node. So a proof that verifies follows nodes that really exist.

use crate::Root;
use crate::cursor::At;
use crate::key::{common_nibbles, nibble};
use crate::message::{self, DIGEST_BYTES, Slot, path_bytes};
use crate::subtree::Subtree;

const EMPTY: u8 = 0;
const NODE: u8 = 1;
const FORK: u8 = 2;
const LEAF: u8 = 3;
const OTHER_LEAF: u8 = 4;

/// A proof of presence or absence, in its canonical encoding (see the module text): some 2.8 KB among ten million keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof(Vec<u8>);

impl Proof {
    /// Wraps bytes as a proof; [`verify`] checks whether they are one.
    pub fn from_bytes(bytes: Vec<u8>) -> Proof {
        Proof(bytes)
    }

    /// The encoding.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// No proof can be made: the trie has changed since its root was last computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trie has changed since its root was computed: compute the root before proving against it")]
pub struct Stale;

/// Why a proof is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The key does not have 1 to 127 bytes.
    #[error("a key of {0} bytes: keys have 1 to 127")]
    KeyLength(usize),
    /// The bytes end within an item.
    #[error("the proof is cut off: it has only {0} bytes")]
    Truncated(usize),
    /// An item is not allowed here, or contradicts itself or its place.
    #[error("byte {0} of the proof: an item is not allowed here")]
    Misplaced(usize),
    /// There are bytes after the end.
    #[error("byte {0} of the proof: nothing may follow the last item")]
    Trailing(usize),
    /// The proof is valid, but for another root.
    #[error("the proof leads to another root")]
    WrongRoot,
}

/// Checks a proof against a root: returns `Some` value of the key, or `None` if the key is proven absent.
///
/// # Errors
/// [`ProofError`] if the bytes are not a proof, or prove something else.
pub fn verify<const VALUE: usize>(root: &Root, key: &[u8], proof: &Proof) -> Result<Option<[u8; VALUE]>, ProofError> {
    if !(1..=127).contains(&key.len()) {
        return Err(ProofError::KeyLength(key.len()));
    }
    let Way { nodes, end } = Way::<VALUE>::read(key, &proof.0)?;
    let trie_key = message::trie_key(key.len(), VALUE);
    let (end, found) = match end {
        End::Nothing => (Below::Nothing, None),
        End::Leaf(value) => {
            let start = nodes.last().map_or(0, |node| path_bytes(node.depth));
            (Below::Leaf(&key[start..], value), Some(*value))
        }
        End::OtherLeaf(suffix, value) => (Below::Leaf(suffix, value), None),
        End::Fork(node, path) => (Below::Node(node.digest(&trie_key, path, &Below::Nothing)), None),
    };
    let top = nodes.iter().rev().fold(end, |below, node| Below::Node(node.digest(&trie_key, key, &below)));
    let digest = match top {
        Below::Nothing => message::empty_digest(&trie_key),
        Below::Leaf(key, value) => message::only_entry_digest(&trie_key, key, value),
        Below::Node(digest) => digest,
    };
    if digest == root.0 { Ok(found) } else { Err(ProofError::WrongRoot) }
}

/// A parsed proof that is not verified yet: nodes from the top down.
struct Way<'a, const VALUE: usize> {
    nodes: Vec<ProofNode<'a>>,
    end: End<'a, VALUE>,
}

enum End<'a, const VALUE: usize> {
    Nothing,
    Leaf(&'a [u8; VALUE]),
    OtherLeaf(&'a [u8], &'a [u8; VALUE]),
    Fork(ProofNode<'a>, &'a [u8]),
}

/// The content of the key's own slot, as far as it affects the message of the node above.
enum Below<'a> {
    Nothing,
    Leaf(&'a [u8], &'a [u8]),
    Node([u8; DIGEST_BYTES]),
}

struct ProofNode<'a> {
    depth: usize,
    node_slots: u16,
    leaf_slots: u16,
    /// The slot whose content the proof leaves out.
    own: Option<usize>,
    /// The contents of the other slots.
    siblings: Vec<(usize, Slot<'a>)>,
}

impl ProofNode<'_> {
    fn digest(&self, trie_key: &[u8; 32], path: &[u8], below: &Below<'_>) -> [u8; DIGEST_BYTES] {
        let own = self.own.and_then(|slot| match below {
            Below::Nothing => None,
            Below::Leaf(suffix, value) => Some((slot, Slot::Leaf(suffix, value))),
            Below::Node(digest) => Some((slot, Slot::Node(digest))),
        });
        let before = self.siblings.iter().take_while(|(slot, _)| Some(*slot) < self.own).copied();
        let after = self.siblings.iter().skip_while(|(slot, _)| Some(*slot) < self.own).copied();
        message::node_digest(trie_key, self.depth, path, before.chain(own).chain(after))
    }
}

/// The items that may come next in a proof.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    NodeSlot,
    LeafSlot,
}

impl<'a, const VALUE: usize> Way<'a, VALUE> {
    fn read(key: &[u8], bytes: &'a [u8]) -> Result<Way<'a, VALUE>, ProofError> {
        let mut reader = Reader { bytes, value_bytes: VALUE, at: 0 };
        let mut nodes: Vec<ProofNode<'a>> = Vec::new();
        let mut place = Place::Root;
        let end = loop {
            let start = reader.at;
            let depth_min = nodes.last().map_or(0, |node| node.depth + 1);
            let path_bytes = nodes.last().map_or(0, |node| path_bytes(node.depth));
            match (reader.byte()?, place) {
                (EMPTY, Place::Root) => break End::Nothing,
                (LEAF, Place::Root | Place::LeafSlot) => break End::Leaf(reader.array()?),
                (OTHER_LEAF, Place::Root | Place::LeafSlot) => {
                    let suffix = reader.take(key.len() - path_bytes)?;
                    if *suffix == key[path_bytes..] {
                        return Err(ProofError::Misplaced(start));
                    }
                    break End::OtherLeaf(suffix, reader.array()?);
                }
                (FORK, Place::Root | Place::NodeSlot) => {
                    let (node, path) = reader.fork(key, depth_min)?;
                    break End::Fork(node, path);
                }
                (NODE, Place::Root | Place::NodeSlot) => {
                    let node = reader.node(key, depth_min)?;
                    let own = 1 << nibble(key, node.depth);
                    let (is_node, is_leaf) = (node.node_slots & own != 0, node.leaf_slots & own != 0);
                    nodes.push(node);
                    match (is_node, is_leaf) {
                        (true, _) => place = Place::NodeSlot,
                        (_, true) => place = Place::LeafSlot,
                        _ => break End::Nothing,
                    }
                }
                _ => return Err(ProofError::Misplaced(start)),
            }
        };
        if reader.at < bytes.len() {
            return Err(ProofError::Trailing(reader.at));
        }
        Ok(Way { nodes, end })
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    value_bytes: usize,
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ProofError> {
        let taken = self.bytes.get(self.at..self.at + count).ok_or(ProofError::Truncated(self.bytes.len()))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const COUNT: usize>(&mut self) -> Result<&'a [u8; COUNT], ProofError> {
        let taken = self.take(COUNT)?;
        Ok(taken.first_chunk().expect("as many as taken"))
    }

    fn byte(&mut self) -> Result<u8, ProofError> {
        Ok(self.array::<1>()?[0])
    }

    /// Depth and bitmaps.
    fn header(&mut self, key: &[u8], depth_min: usize) -> Result<ProofNode<'a>, ProofError> {
        let start = self.at;
        let depth = usize::from(self.byte()?);
        let node_slots = u16::from_le_bytes(*self.array()?);
        let leaf_slots = u16::from_le_bytes(*self.array()?);
        if !(depth_min..2 * key.len()).contains(&depth) || node_slots & leaf_slots != 0 {
            return Err(ProofError::Misplaced(start));
        }
        Ok(ProofNode { depth, node_slots, leaf_slots, own: None, siblings: Vec::new() })
    }

    fn node(&mut self, key: &[u8], depth_min: usize) -> Result<ProofNode<'a>, ProofError> {
        let mut node = self.header(key, depth_min)?;
        node.own = Some(nibble(key, node.depth));
        self.siblings(&mut node, key.len())?;
        Ok(node)
    }

    fn fork(&mut self, key: &[u8], depth_min: usize) -> Result<(ProofNode<'a>, &'a [u8]), ProofError> {
        let start = self.at;
        let mut node = self.header(key, depth_min)?;
        let path = self.take(path_bytes(node.depth))?;
        let odd_end = node.depth % 2 == 1 && path.last().is_some_and(|last| last & 15 != 0);
        if odd_end || common_nibbles(path, &key[..path.len()]) >= node.depth {
            return Err(ProofError::Misplaced(start));
        }
        self.siblings(&mut node, key.len())?;
        Ok((node, path))
    }

    fn siblings(&mut self, node: &mut ProofNode<'a>, key_bytes: usize) -> Result<(), ProofError> {
        let suffix_bytes = key_bytes - path_bytes(node.depth);
        for slot in (0..16).filter(|slot| Some(*slot) != node.own) {
            if node.node_slots >> slot & 1 == 1 {
                node.siblings.push((slot, Slot::Node(self.take(DIGEST_BYTES)?)));
            } else if node.leaf_slots >> slot & 1 == 1 {
                node.siblings.push((slot, Slot::Leaf(self.take(suffix_bytes)?, self.take(self.value_bytes)?)));
            }
        }
        Ok(())
    }
}

/// The proof of what the subtree, which is a whole trie, holds for the key.
pub(crate) fn prove<const KEY: usize, const VALUE: usize>(
    top: &Subtree<KEY, VALUE>,
    key: &[u8; KEY],
) -> Result<Proof, Stale> {
    if !top.is_fresh() {
        return Err(Stale);
    }
    let mut proof = Vec::new();
    let mut next = At::of_subtree(top);
    if next.is_none() {
        proof.push(EMPTY);
    }
    let mut leaf_start = 0;
    while let Some(at) = next.take() {
        let (depth, path) = (at.depth(), at.key_below());
        if let At::Leaf(leaf) = at {
            if leaf.key == *key {
                proof.push(LEAF);
            } else {
                proof.push(OTHER_LEAF);
                proof.extend_from_slice(&leaf.key[leaf_start..]);
            }
            proof.extend_from_slice(&leaf.value);
        } else if common_nibbles(path, key) < depth {
            write_node(&mut proof, &at, FORK, &path[..path_bytes(depth)], None);
        } else {
            write_node(&mut proof, &at, NODE, &[], Some(nibble(key, depth)));
            leaf_start = path_bytes(depth);
            next = at.child(nibble(key, depth));
        }
    }
    Ok(Proof(proof))
}

fn write_node<const KEY: usize, const VALUE: usize>(
    proof: &mut Vec<u8>,
    at: &At<'_, KEY, VALUE>,
    kind: u8,
    path: &[u8],
    own: Option<usize>,
) {
    let slots = at.slots();
    let bitmap = |nodes: bool| {
        let like = slots.iter().filter(|(_, content)| matches!(content, Slot::Node(_)) == nodes);
        like.fold(0u16, |bitmap, (slot, _)| bitmap | 1 << slot).to_le_bytes()
    };
    proof.extend([kind, u8::try_from(at.depth()).expect("a depth is at most 253")]);
    proof.extend(bitmap(true));
    proof.extend(bitmap(false));
    let path_start = proof.len();
    proof.extend_from_slice(path);
    if kind == FORK && at.depth() % 2 == 1 {
        *proof[path_start..].last_mut().expect("a fork has a path") &= 0xf0;
    }
    for (_, content) in slots.iter().filter(|(slot, _)| Some(*slot) != own) {
        match content {
            Slot::Node(digest) => proof.extend_from_slice(digest),
            Slot::Leaf(suffix, value) => {
                proof.extend_from_slice(suffix);
                proof.extend_from_slice(value);
            }
        }
    }
}
