//! Proofs: correct ones verify and state the truth; nothing else verifies.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use trie::{Change, Proof, ProofError, Root, Stale, Trie};

fn verify(root: &Root, key: &[u8], proof: &Proof) -> Result<Option<[u8; 32]>, ProofError> {
    trie::verify(root, key, proof)
}

fn trie_of<const KEY: usize, const VALUE: usize>(
    entries: &BTreeMap<[u8; KEY], [u8; VALUE]>,
) -> (Trie<KEY, VALUE>, Root) {
    let batch: Vec<Change<KEY, VALUE>> = entries.iter().map(|(key, value)| (*key, Some(*value))).collect();
    let mut trie = Trie::new();
    trie.apply(&batch);
    let root = trie.root();
    (trie, root)
}

/// Bytes that are mostly equal, so that paths are long, forks frequent and leaves deep.
fn key<const KEY: usize>() -> impl Strategy<Value = [u8; KEY]> {
    let byte = prop_oneof![3 => Just(0x11u8), 2 => 0x10u8..0x13, 1 => any::<u8>()];
    proptest::collection::vec(byte, KEY).prop_map(|bytes| bytes.try_into().expect("KEY bytes"))
}

fn entries<const KEY: usize, const VALUE: usize>() -> impl Strategy<Value = BTreeMap<[u8; KEY], [u8; VALUE]>> {
    proptest::collection::btree_map(key(), any::<[u8; VALUE]>(), 0..50)
}

proptest! {
    #[test]
    fn tell_what_is_true(entries in entries::<4, 32>(), asked in proptest::collection::vec(key::<4>(), 10)) {
        let (trie, root) = trie_of(&entries);
        for key in entries.keys().chain(&asked) {
            let proof = trie.prove(key).unwrap();
            prop_assert_eq!(verify(&root, key, &proof), Ok(entries.get(key).copied()));
        }
    }

    #[test]
    fn tell_short_values(entries in entries::<4, 8>(), asked in proptest::collection::vec(key::<4>(), 10)) {
        let (trie, root) = trie_of(&entries);
        for key in entries.keys().chain(&asked) {
            let proof = trie.prove(key).unwrap();
            prop_assert_eq!(trie::verify(&root, key, &proof), Ok(entries.get(key).copied()));
            prop_assert!(verify(&root, key, &proof).is_err(), "as one of longer values");
        }
    }

    #[test]
    fn hold_for_no_other_root_or_key_with_another_truth(entries in entries::<3, 32>(), key in key::<3>(),
        other in key::<3>()) {
        let (mut trie, root) = trie_of(&entries);
        let proof = trie.prove(&key).unwrap();
        if let Ok(found) = verify(&root, &other, &proof) {
            prop_assert_eq!(found, entries.get(&other).copied());
        }
        let changed = entries.get(&key).map_or([1; 32], |value| value.map(|byte| !byte));
        trie.apply(&[(key, Some(changed))]);
        let after = trie.root();
        prop_assert_eq!(verify(&after, &key, &proof), Err(ProofError::WrongRoot));
        prop_assert_eq!(verify(&after, &key, &trie.prove(&key).unwrap()), Ok(Some(changed)));
    }

    #[test]
    fn every_changed_byte_is_noticed(entries in entries::<3, 32>(), key in key::<3>(), flip in prop_oneof![1u8..16,
        1u8..=255]) {
        let (trie, root) = trie_of(&entries);
        let proof = trie.prove(&key).unwrap();
        for i in 0..proof.as_bytes().len() {
            let mut bytes = proof.as_bytes().to_vec();
            bytes[i] ^= flip;
            prop_assert!(verify(&root, &key, &Proof::from_bytes(bytes)).is_err(), "byte {}", i);
        }
    }

    #[test]
    fn every_cut_and_every_tail_is_noticed(entries in entries::<3, 32>(), key in key::<3>(), tail in any::<u8>()) {
        let (trie, root) = trie_of(&entries);
        let proof = trie.prove(&key).unwrap();
        let whole = proof.as_bytes();
        for length in 0..whole.len() {
            prop_assert!(verify(&root, &key, &Proof::from_bytes(whole[..length].to_vec())).is_err());
        }
        let longer = [whole, &[tail]].concat();
        prop_assert_eq!(verify(&root, &key, &Proof::from_bytes(longer)), Err(ProofError::Trailing(whole.len())));
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600), kind in 0u8..5,
        key in any::<[u8; 20]>()) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        prop_assert!(verify(&Root([7; 32]), &key, &Proof::from_bytes(bytes)).is_err());
    }

    /// What one proof shows about a place is no evidence about another: parts of correct proofs, combined in other
    /// ways.
    #[test]
    fn spliced_proofs_prove_nothing_false(entries in entries::<3, 32>(), key in key::<3>(), other in key::<3>(),
        cut in any::<(u16, u16)>()) {
        let (trie, root) = trie_of(&entries);
        let (a, b) = (trie.prove(&key).unwrap(), trie.prove(&other).unwrap());
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let (i, j) = (usize::from(cut.0) % (a.len() + 1), usize::from(cut.1) % (b.len() + 1));
        let spliced = Proof::from_bytes([&a[..i], &b[j..]].concat());
        if let Ok(found) = verify(&root, &key, &spliced) {
            prop_assert_eq!(found, entries.get(&key).copied());
            prop_assert_eq!(spliced.as_bytes(), a);
        }
    }
}

#[test]
fn among_many_keys() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let entries: BTreeMap<[u8; 20], [u8; 32]> = (0..200_000).map(|_| (rng.random(), rng.random())).collect();
    let (trie, root) = trie_of(&entries);
    for (key, value) in entries.iter().step_by(997) {
        let proof = trie.prove(key).unwrap();
        assert_eq!(verify(&root, key, &proof), Ok(Some(*value)));
        let mut absent = *key;
        absent[19] ^= 1;
        let proof = trie.prove(&absent).unwrap();
        assert_eq!(verify(&root, &absent, &proof), Ok(None));
        assert!(proof.as_bytes().len() < 3000, "{}", proof.as_bytes().len());
    }
}

#[test]
fn tries_of_different_key_lengths_share_no_root() {
    let (four, five) = (Trie::<4>::new().root(), Trie::<5>::new().root());
    assert_ne!(four, five);
    let proof = Trie::<4>::new().prove(&[0; 4]).unwrap();
    assert_eq!(verify(&four, &[0; 4], &proof), Ok(None));
    assert_eq!(verify(&four, &[0; 5], &proof), Err(ProofError::WrongRoot));
    assert_eq!(verify(&four, &[], &proof), Err(ProofError::KeyLength(0)));
}

#[test]
fn stale_trie_proves_nothing() {
    let mut trie = Trie::<2>::new();
    trie.apply(&[([1, 1], Some([1; 32])), ([1, 2], Some([1; 32]))]);
    assert_eq!(trie.prove(&[1, 1]), Err(Stale));
    trie.root();
    trie.apply(&[([1, 1], Some([1; 32])), ([3, 3], None)]);
    assert!(trie.prove(&[1, 1]).is_ok(), "a batch that changes nothing leaves the root valid");
    trie.apply(&[([1, 1], Some([2; 32]))]);
    assert_eq!(trie.prove(&[1, 1]), Err(Stale));
}
