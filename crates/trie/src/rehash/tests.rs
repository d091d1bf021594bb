//! *The work of `root` is proportional to the nodes changed since the last call*: counted here as the nodes whose
//! digest is stale, because each is hashed once and no other is.

use std::collections::BTreeSet;

use crate::cursor::At;
use crate::key::{common_nibbles, nibble};
use crate::{Change, Trie};

type Keys = BTreeSet<[u8; 4]>;

/// The paths, in nibbles, of all nodes with a stale digest.
fn stale(trie: &Trie<4>) -> BTreeSet<Vec<usize>> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<_> = At::of_subtree(&trie.top).into_iter().collect();
    while let Some(at) = waiting.pop() {
        let is_stale = match &at {
            At::Branch(branch) => !branch.fresh,
            At::Node(_, node) => !node.fresh,
            At::Leaf(_) => continue,
        };
        if is_stale {
            found.insert((0..at.depth()).map(|i| nibble(at.key_below(), i)).collect());
        }
        waiting.extend((0..16).filter_map(|slot| at.child(slot)));
    }
    found
}

/// The paths at which a key of the set and another one of it diverge, for the given keys: from the definition.
fn nodes_above<'a>(keys: &Keys, changed: impl IntoIterator<Item = &'a [u8; 4]>) -> BTreeSet<Vec<usize>> {
    let mut paths = BTreeSet::new();
    for key in changed {
        for other in keys.iter().filter(|other| *other != key) {
            let depth = common_nibbles(key, other);
            let path = |key: &[u8; 4]| (0..depth).map(|i| nibble(key, i)).collect::<Vec<_>>();
            if keys.iter().filter(|it| common_nibbles(*it, key) >= depth).count() >= 2 {
                paths.insert(path(key));
            }
        }
    }
    paths
}

fn filled(count: u32) -> (Trie<4>, Keys) {
    let keys: Keys = (0..count).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let batch: Vec<Change<4>> = keys.iter().map(|key| (*key, Some([5; 32]))).collect();
    let mut trie = Trie::new();
    trie.apply(&batch);
    (trie, keys)
}

#[test]
fn a_new_trie_is_stale_everywhere_and_its_root_freshens_all() {
    let (mut trie, keys) = filled(300);
    assert_eq!(stale(&trie), nodes_above(&keys, &keys));
    trie.root();
    assert!(stale(&trie).is_empty());
}

#[test]
fn a_changed_value_makes_exactly_the_nodes_above_it_stale() {
    let (mut trie, keys) = filled(300);
    trie.root();
    for key in keys.iter().step_by(17) {
        trie.apply(&[(*key, Some([6; 32]))]);
        assert_eq!(stale(&trie), nodes_above(&keys, [key]), "{key:?}");
        trie.root();
    }
}

#[test]
fn what_changes_nothing_makes_nothing_stale() {
    let (mut trie, keys) = filled(300);
    trie.root();
    let absent = [[1, 2, 3, 4], [250, 2, 3, 4]];
    assert!(absent.iter().all(|key| !keys.contains(key)));
    let mut batch: Vec<Change<4>> = keys.iter().map(|key| (*key, Some([5; 32]))).collect();
    batch.extend(absent.map(|key| (key, None)));
    batch.sort_unstable();
    let update = trie.apply(&batch);
    assert_eq!((update.unchanged, update.absent), (300, 2));
    assert_eq!(trie.remove_through(&[0; 4]), usize::from(keys.contains(&[0; 4])));
    let expected = if keys.contains(&[0; 4]) { 1 } else { 0 };
    assert!(stale(&trie).len() <= 8 * expected);
}

#[test]
fn an_inserted_and_a_removed_key_make_only_nodes_above_them_stale() {
    let (mut trie, mut keys) = filled(300);
    trie.root();
    let new = [0x77, 1, 2, 3];
    keys.insert(new);
    trie.apply(&[(new, Some([1; 32]))]);
    assert!(stale(&trie).is_subset(&nodes_above(&keys, [&new])));
    assert!(stale(&trie).contains(&vec![]), "the topmost node covers every key");
    trie.root();
    let above = nodes_above(&keys, [&new]);
    keys.remove(&new);
    trie.apply(&[(new, None)]);
    assert!(stale(&trie).is_subset(&above));
    let root = trie.root();
    assert_eq!(root, filled(300).0.root(), "as if the key had never been there");
}

/// Above the cuts into segments the same holds: one change, one path.
#[test]
fn a_change_in_a_cut_trie_makes_one_path_stale() {
    let (mut trie, keys) = filled(200_000);
    trie.root();
    assert!(stale(&trie).is_empty());
    let key = *keys.iter().nth(77_777).expect("so many");
    trie.apply(&[(key, Some([9; 32]))]);
    let paths = stale(&trie);
    assert!((4..=8).contains(&paths.len()), "{}", paths.len());
    for path in &paths {
        assert!(path.iter().enumerate().all(|(i, it)| nibble(&key, i) == *it), "a node above the key");
    }
    let together = crate::roots(&mut [&mut trie]);
    assert!(stale(&trie).is_empty());
    assert_eq!(together, [trie.root()]);
}
