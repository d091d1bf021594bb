//! All sets over a small universe, without chance: what holds of them holds of every node's shape.

use crate::reference;
use std::collections::{BTreeMap, BTreeSet};

use trie::{Change, Root, Trie};

/// Keys that part at depths 0 to 3, so that every way in which slots and paths can lie occurs.
const KEYS: [[u8; 2]; 6] = [[0x11, 0x11], [0x11, 0x12], [0x11, 0x21], [0x12, 0x11], [0x21, 0x11], [0xff, 0xff]];
const VALUES: [[u8; 1]; 2] = [[0], [1]];

/// Every assignment of nothing or one of two values to the keys.
fn all_sets() -> impl Iterator<Item = BTreeMap<[u8; 2], [u8; 1]>> {
    let choices = VALUES.len() + 1;
    (0..choices.pow(KEYS.len() as u32)).map(move |code| {
        let chosen = KEYS.iter().enumerate().map(|(i, key)| (*key, code / choices.pow(i as u32) % choices));
        chosen.filter_map(|(key, choice)| Some((key, *VALUES.get(choice.checked_sub(1)?)?))).collect()
    })
}

fn trie_of(set: &BTreeMap<[u8; 2], [u8; 1]>) -> Trie<2, 1> {
    let mut trie = Trie::new();
    trie.apply(&set.iter().map(|(key, value)| (*key, Some(*value))).collect::<Vec<_>>());
    trie
}

#[test]
fn different_sets_have_different_roots() {
    let mut roots = BTreeSet::new();
    for set in all_sets() {
        let root = trie_of(&set).root();
        assert_eq!(root.0, reference::root(&set));
        assert!(roots.insert(root), "{set:?}");
    }
    assert_eq!(roots.len(), 729);
}

/// From each set to each other one in one batch.
#[test]
fn every_step_between_two_sets_ends_at_the_root_of_the_second() {
    let sets: Vec<_> = all_sets().collect();
    let roots: Vec<Root> = sets.iter().map(|set| trie_of(set).root()).collect();
    for (from, root_from) in sets.iter().zip(&roots) {
        let mut start = trie_of(from);
        start.root();
        for (to, root_to) in sets.iter().zip(&roots).step_by(7) {
            let batch: Vec<Change<2, 1>> = KEYS.iter().map(|key| (*key, to.get(key).copied())).collect();
            let mut trie = start.clone();
            let update = trie.apply(&batch);
            assert_eq!(trie.root(), *root_to, "{from:?} to {to:?}");
            assert_eq!(update.inserted + update.replaced + update.unchanged, to.len());
            assert_eq!(update.removed + update.replaced + update.unchanged, from.len());
            assert_eq!(trie.len(), to.len());
        }
        assert_eq!(start.root(), *root_from, "what a clone goes through is not seen here");
    }
}

/// Cut at each key of the universe, and between them.
#[test]
fn every_cut_of_every_set_keeps_what_lies_beyond() {
    for set in all_sets().step_by(5) {
        for last in KEYS.iter().copied().chain([[0, 0], [0x11, 0x13], [0x15, 0], [0xff, 0xfe]]) {
            let mut trie = trie_of(&set);
            let rest: BTreeMap<_, _> = set.iter().filter(|(key, _)| **key > last).map(|(k, v)| (*k, *v)).collect();
            assert_eq!(trie.remove_through(&last), set.len() - rest.len());
            assert_eq!(trie.root().0, reference::root(&rest), "{set:?} through {last:?}");
            assert!(trie.iter().eq(rest.iter()));
            assert!(trie.range(last..).eq(set.range(last..).filter(|(key, _)| **key > last)));
        }
    }
}

/// No proof of one set verifies against the root of another with another truth about its key.
#[test]
fn a_proof_of_one_set_says_nothing_false_about_another() {
    let sets: Vec<_> = all_sets().step_by(11).collect();
    let tries: Vec<(Trie<2, 1>, Root)> = sets
        .iter()
        .map(|set| {
            let mut trie = trie_of(set);
            let root = trie.root();
            (trie, root)
        })
        .collect();
    for key in KEYS.iter().copied().chain([[0x11, 0x00], [0x20, 0x00]]) {
        for (trie, _) in &tries {
            let proof = trie.prove(&key).expect("fresh");
            for (set, (_, root)) in sets.iter().zip(&tries) {
                if let Ok(found) = trie::verify::<1>(root, &key, &proof) {
                    assert_eq!(found, set.get(&key).copied(), "{key:?} in {set:?}");
                }
            }
        }
    }
}
