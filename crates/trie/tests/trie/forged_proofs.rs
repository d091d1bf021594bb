//! Proofs written by hand, from the table of the documentation and not by the code: each rule that a proof can break
//! is broken alone, and the verifier names it and the byte.

use crate::reference;
use std::collections::BTreeMap;

use trie::{Change, Proof, ProofError, Root, Trie};

const EMPTY: u8 = 0;
const NODE: u8 = 1;
const FORK: u8 = 2;
const LEAF: u8 = 3;
const OTHER_LEAF: u8 = 4;

type Verdict = Result<Option<[u8; 2]>, ProofError>;

fn check(root: &Root, key: [u8; 2], proof: &[u8]) -> Verdict {
    trie::verify(root, &key, &Proof::from_bytes(proof.to_vec()))
}

/// Keys of two bytes with values of two: `1234` and `1256` meet at depth 2, `ab00` stands apart.
fn sample() -> (Trie<2, 2>, Root, BTreeMap<[u8; 2], [u8; 2]>) {
    let entries = BTreeMap::from([([0x12, 0x34], [1, 1]), ([0x12, 0x56], [2, 2]), ([0xab, 0x00], [3, 3])]);
    let batch: Vec<Change<2, 2>> = entries.iter().map(|(key, value)| (*key, Some(*value))).collect();
    let mut trie = Trie::new();
    trie.apply(&batch);
    let root = trie.root();
    assert_eq!(root.0, reference::root(&entries));
    (trie, root, entries)
}

fn bitmap(slots: &[u8]) -> [u8; 2] {
    slots.iter().fold(0u16, |bitmap, slot| bitmap | 1 << slot).to_le_bytes()
}

/// A node or fork up to its contents.
fn head(kind: u8, depth: u8, nodes: &[u8], leaves: &[u8]) -> Vec<u8> {
    [vec![kind, depth], bitmap(nodes).to_vec(), bitmap(leaves).to_vec()].concat()
}

/// The top of the sample: slot 1 is a node, slot a the leaf `ab00`, which the proof of a key in slot 1 shows whole.
fn top() -> Vec<u8> {
    [head(NODE, 0, &[1], &[0xa]), vec![0xab, 0x00, 3, 3]].concat()
}

/// The node at depth 2 over `34` and `56`, for a key in slot 3: the sibling shows `56`.
fn below() -> Vec<u8> {
    [head(NODE, 2, &[], &[3, 5]), vec![0x56, 2, 2]].concat()
}

#[test]
fn a_proof_written_from_the_table_verifies_and_is_the_one_that_is_made() {
    let (trie, root, _) = sample();
    let present = [top(), below(), vec![LEAF, 1, 1]].concat();
    assert_eq!(check(&root, [0x12, 0x34], &present), Ok(Some([1, 1])));
    assert_eq!(trie.prove(&[0x12, 0x34]).expect("fresh").as_bytes(), present);
    // In the slot of `1234`, but another key.
    let other = [top(), below(), vec![OTHER_LEAF, 0x34, 1, 1]].concat();
    assert_eq!(check(&root, [0x12, 0x3f], &other), Ok(None));
    assert_eq!(trie.prove(&[0x12, 0x3f]).expect("fresh").as_bytes(), other);
    // An empty slot: both leaves are siblings.
    let empty = [top(), head(NODE, 2, &[], &[3, 5]), vec![0x34, 1, 1, 0x56, 2, 2]].concat();
    assert_eq!(check(&root, [0x12, 0x77], &empty), Ok(None));
    assert_eq!(trie.prove(&[0x12, 0x77]).expect("fresh").as_bytes(), empty);
    // The path `12` diverges from the key's.
    let fork = [top(), head(FORK, 2, &[], &[3, 5]), vec![0x12], vec![0x34, 1, 1, 0x56, 2, 2]].concat();
    assert_eq!(check(&root, [0x13, 0x34], &fork), Ok(None));
    assert_eq!(trie.prove(&[0x13, 0x34]).expect("fresh").as_bytes(), fork);
}

#[test]
fn an_empty_trie_has_a_proof_of_one_byte() {
    let root = Trie::<2, 2>::new().root();
    assert_eq!(check(&root, [0, 0], &[EMPTY]), Ok(None));
    assert_eq!(check(&root, [0, 0], &[]), Err(ProofError::Truncated(0)));
    assert_eq!(check(&root, [0, 0], &[EMPTY, EMPTY]), Err(ProofError::Trailing(1)));
    let (_, other, _) = sample();
    assert_eq!(check(&other, [0, 0], &[EMPTY]), Err(ProofError::WrongRoot));
}

#[test]
fn a_present_key_cannot_be_shown_absent() {
    let (_, root, _) = sample();
    let key = [0x12, 0x34];
    let lies: [(&str, Vec<u8>, ProofError); 6] = [
        ("an empty trie", vec![EMPTY], ProofError::WrongRoot),
        (
            "its own leaf as another's",
            [top(), below(), vec![OTHER_LEAF, 0x34, 1, 1]].concat(),
            ProofError::Misplaced(19),
        ),
        ("a made-up leaf", [top(), below(), vec![OTHER_LEAF, 0x35, 1, 1]].concat(), ProofError::WrongRoot),
        ("an empty slot", [top(), head(NODE, 2, &[], &[5]), vec![0x56, 2, 2]].concat(), ProofError::WrongRoot),
        (
            "a fork with the key's own path",
            [top(), head(FORK, 2, &[], &[3, 5]), vec![0x12], vec![0x34, 1, 1, 0x56, 2, 2]].concat(),
            ProofError::Misplaced(11),
        ),
        (
            "a fork with a path that is not there",
            [top(), head(FORK, 2, &[], &[3, 5]), vec![0x13], vec![0x34, 1, 1, 0x56, 2, 2]].concat(),
            ProofError::WrongRoot,
        ),
    ];
    for (name, proof, error) in lies {
        assert_eq!(check(&root, key, &proof), Err(error), "{name}");
    }
}

#[test]
fn an_absent_key_cannot_be_shown_present() {
    let (_, root, _) = sample();
    let lies: [(&str, [u8; 2], Vec<u8>); 4] = [
        ("another key's leaf", [0x12, 0x3f], [top(), below(), vec![LEAF, 1, 1]].concat()),
        ("a leaf instead of the trie", [0x12, 0x77], vec![LEAF, 1, 1]),
        ("a leaf in a slot of its own", [0x12, 0x77], {
            [top(), head(NODE, 2, &[], &[3, 5, 7]), vec![0x34, 1, 1, 0x56, 2, 2], vec![LEAF, 9, 9]].concat()
        }),
        ("a node's digest read as a leaf", [0xab, 0x00], [top(), vec![LEAF, 3, 3]].concat()),
    ];
    for (name, key, proof) in lies {
        assert!(check(&root, key, &proof).is_err(), "{name}");
    }
}

#[test]
fn items_out_of_place_are_named_by_their_byte() {
    let (_, root, _) = sample();
    let key = [0x12, 0x34];
    let cases: [(&str, Vec<u8>, usize); 9] = [
        ("a kind that does not exist", vec![5], 0),
        ("an empty trie below a node", [top(), vec![EMPTY]].concat(), 10),
        ("a leaf where the bitmap says node", [top(), vec![LEAF, 1, 1]].concat(), 10),
        ("a node where the bitmap says leaf", [top(), below(), below()].concat(), 19),
        ("a node no deeper than the one above", [top(), top()].concat(), 11),
        ("a depth beyond the key", head(NODE, 4, &[], &[3]), 1),
        ("the deepest depth that a byte can say", head(NODE, 255, &[], &[3]), 1),
        ("a slot that holds two things", head(NODE, 0, &[1], &[1]), 1),
        ("a path of odd length with a last nibble", [head(FORK, 1, &[], &[3, 5]), vec![0x2f]].concat(), 1),
    ];
    for (name, proof, at) in cases {
        assert_eq!(check(&root, key, &proof), Err(ProofError::Misplaced(at)), "{name}");
    }
}

/// Bitmaps that promise sixteen slots cost the verifier no more than the bytes that are there.
#[test]
fn promises_without_bytes_are_cut_off() {
    let (_, root, _) = sample();
    let all: Vec<u8> = (0..16).collect();
    for (nodes, leaves) in [(&all[..], &[][..]), (&[][..], &all[..]), (&all[..8], &all[8..])] {
        let proof = head(NODE, 0, nodes, leaves);
        assert_eq!(check(&root, [0x12, 0x34], &proof), Err(ProofError::Truncated(6)));
    }
    assert_eq!(check(&root, [0x12, 0x34], &[NODE]), Err(ProofError::Truncated(1)));
}

#[test]
fn a_proof_is_bound_to_the_length_of_keys_and_values() {
    let (trie, root, _) = sample();
    let proof = trie.prove(&[0x12, 0x34]).expect("fresh");
    for key in [&[0x12][..], &[0x12, 0x34, 0x00][..], &[0; 127][..]] {
        assert!(trie::verify::<2>(&root, key, &proof).is_err(), "{} bytes", key.len());
    }
    assert_eq!(trie::verify::<2>(&root, &[0; 128], &proof), Err(ProofError::KeyLength(128)));
    assert!(trie::verify::<1>(&root, &[0x12, 0x34], &proof).is_err());
    assert!(trie::verify::<32>(&root, &[0x12, 0x34], &proof).is_err());
}
