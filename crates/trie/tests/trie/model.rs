//! Compares the trie with a sorted map and the definition of the root, over random histories.

use crate::reference;
use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use trie::{Change, Trie, TrieUpdate};

type Model<const KEY: usize, const VALUE: usize = 32> = BTreeMap<[u8; KEY], [u8; VALUE]>;

#[derive(Clone, Debug)]
enum Step<const KEY: usize, const VALUE: usize> {
    Apply(BTreeMap<[u8; KEY], Option<[u8; VALUE]>>),
    RemoveThrough([u8; KEY]),
    Root,
}

/// Keys that often share long prefixes: few values per byte, and whole bytes that are the same in most keys.
fn key<const KEY: usize>() -> impl Strategy<Value = [u8; KEY]> {
    let byte = prop_oneof![4 => Just(0x11u8), 2 => 0x10u8..0x14, 1 => any::<u8>()];
    proptest::collection::vec(byte, KEY).prop_map(|bytes| bytes.try_into().expect("KEY bytes"))
}

fn step<const KEY: usize, const VALUE: usize>() -> impl Strategy<Value = Step<KEY, VALUE>> {
    let value = proptest::option::weighted(0.7, (0u8..4).prop_map(|byte| [byte; VALUE]));
    prop_oneof![
        6 => proptest::collection::btree_map(key(), value, 0..40).prop_map(Step::Apply),
        1 => key().prop_map(Step::RemoveThrough),
        3 => Just(Step::Root),
    ]
}

fn apply_to_model<const KEY: usize, const VALUE: usize>(
    model: &mut Model<KEY, VALUE>,
    batch: &[Change<KEY, VALUE>],
) -> TrieUpdate {
    let mut applied = TrieUpdate::default();
    for (key, value) in batch {
        let before = model.get(key).copied();
        let count = match (before, value) {
            (None, None) => &mut applied.absent,
            (None, Some(_)) => &mut applied.inserted,
            (Some(_), None) => &mut applied.removed,
            (Some(old), Some(new)) if old == *new => &mut applied.unchanged,
            (Some(_), Some(_)) => &mut applied.replaced,
        };
        *count += 1;
        match value {
            Some(value) => model.insert(*key, *value),
            None => model.remove(key),
        };
    }
    applied
}

fn run<const KEY: usize, const VALUE: usize>(steps: Vec<Step<KEY, VALUE>>) -> Result<(), TestCaseError> {
    let (mut trie, mut model) = (Trie::<KEY, VALUE>::new(), Model::<KEY, VALUE>::new());
    for step in steps {
        match step {
            Step::Apply(batch) => {
                let batch: Vec<Change<KEY, VALUE>> = batch.into_iter().collect();
                prop_assert_eq!(trie.apply(&batch), apply_to_model(&mut model, &batch));
                for (key, value) in batch {
                    prop_assert_eq!(trie.get(&key), value);
                }
            }
            Step::RemoveThrough(last) => {
                let kept = model.split_off(&last);
                let removed = std::mem::replace(&mut model, kept).len() + usize::from(model.remove(&last).is_some());
                prop_assert_eq!(trie.remove_through(&last), removed);
            }
            Step::Root => prop_assert_eq!(trie.root().0, reference::root(&model)),
        }
        prop_assert_eq!(trie.len(), model.len());
    }
    prop_assert!(trie.iter().eq(model.iter()));
    prop_assert_eq!(trie.root().0, reference::root(&model));
    Ok(())
}

proptest! {
    #[test]
    fn histories_of_short_keys(steps in proptest::collection::vec(step::<2, 32>(), 0..12)) {
        run(steps)?;
    }

    #[test]
    fn histories_of_long_keys(steps in proptest::collection::vec(step::<36, 32>(), 0..12)) {
        run(steps)?;
    }

    #[test]
    fn histories_of_short_values(steps in proptest::collection::vec(step::<36, 8>(), 0..12)) {
        run(steps)?;
    }

    #[test]
    fn ranges(keys in proptest::collection::btree_set(key::<3>(), 0..60), from in bound(), to in bound()) {
        let model: Model<3> = keys.iter().map(|key| (*key, [7; 32])).collect();
        let mut trie = Trie::new();
        trie.apply(&batch(&model));
        let expected: Vec<_> = model.iter().filter(|(key, _)| within(key, &from, &to)).collect();
        prop_assert_eq!(trie.range((from, to)).collect::<Vec<_>>(), expected);
    }
}

fn bound() -> impl Strategy<Value = Bound<[u8; 3]>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded),]
}

fn within(key: &[u8; 3], from: &Bound<[u8; 3]>, to: &Bound<[u8; 3]>) -> bool {
    let after = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
    };
    let before = match to {
        Bound::Unbounded => true,
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
    };
    after && before
}

fn batch<const KEY: usize>(model: &Model<KEY>) -> Vec<Change<KEY>> {
    model.iter().map(|(key, value)| (*key, Some(*value))).collect()
}

/// Enough keys to split segments, in two clusters so that branches have paths, and then removed again.
#[test]
fn many_keys_in_many_segments() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut trie = Trie::<6>::new();
    let mut model = Model::new();
    for round in 0..12 {
        let mut changes = Model::new();
        let mut batch = BTreeMap::new();
        for _ in 0..rng.random_range(1..60_000) {
            let mut key: [u8; 6] = rng.random();
            if rng.random_bool(0.9) {
                key[..2].copy_from_slice(&[0xab, 0xcd]);
            }
            changes.insert(key, rng.random());
        }
        batch.extend(changes.into_iter().map(|(key, value)| (key, Some(value))));
        let removed_share = if round < 8 { 0.2 } else { 0.7 };
        batch.extend(model.keys().filter(|_| rng.random_bool(removed_share)).map(|key| (*key, None)));
        let batch: Vec<Change<6>> = batch.into_iter().collect();
        assert_eq!(trie.apply(&batch), apply_to_model(&mut model, &batch));
        if round % 3 == 2 {
            assert_eq!(trie.root().0, reference::root(&model), "round {round}, before the cut");
            let last = *model.keys().nth(model.len() / 3).expect("the model is not empty");
            let kept = model.split_off(&last);
            let removed = std::mem::replace(&mut model, kept).len() + 1;
            model.remove(&last);
            assert_eq!(trie.remove_through(&last), removed);
        }
        assert_eq!(trie.root().0, reference::root(&model), "round {round}");
        assert!(trie.iter().eq(model.iter()), "round {round}");
        let middle = *model.keys().nth(model.len() / 2).expect("the model is not empty");
        assert!(trie.range(middle..).eq(model.range(middle..)), "round {round}");
    }
    trie.remove_through(&[0xff; 6]);
    assert_eq!(trie.root().0, reference::root(&Model::<6>::new()));
}

/// Tries hashed together: empty ones, small ones, and some that are cut into few and into many segments.
#[test]
fn roots_side_by_side() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let lengths = [0, 1, 70_000, 2, 40, 0, 300_000, 3_000, 1];
    let mut tries: Vec<(Trie<6>, Model<6>)> = lengths
        .into_iter()
        .map(|length| {
            let model: Model<6> = (0..length).map(|_| (rng.random(), rng.random())).collect();
            let mut trie = Trie::new();
            trie.apply(&batch(&model));
            (trie, model)
        })
        .collect();
    for round in 0..3 {
        let roots = trie::roots(&mut tries.iter_mut().map(|(trie, _)| trie).collect::<Vec<_>>());
        for ((trie, model), root) in tries.iter_mut().zip(roots) {
            assert_eq!(root.0, reference::root(model), "round {round}, {} keys", model.len());
            assert_eq!(trie.root(), root);
            if rng.random_bool(0.8) {
                let change: Change<6> = (rng.random(), Some(rng.random()));
                assert_eq!(trie.apply(&[change]), apply_to_model(model, &[change]));
            }
        }
    }
}

/// From several segments back to one, by either way of removing.
#[test]
fn few_keys_left_of_many() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let model: Model<5> = (0..80_000).map(|_| (rng.random(), rng.random())).collect();
    let (last, kept) = (*model.keys().nth(77_000).expect("so many"), model.keys().skip(500).step_by(30));
    let by_prefix: Model<5> = model.range((Bound::Excluded(last), Bound::Unbounded)).map(|(k, v)| (*k, *v)).collect();
    let by_batch: Model<5> = kept.map(|key| (*key, model[key])).collect();
    let gone: Vec<Change<5>> =
        model.keys().filter(|key| !by_batch.contains_key(*key)).map(|key| (*key, None)).collect();
    for hashed_before in [false, true] {
        let mut tries = [Trie::new(), Trie::new()];
        for trie in &mut tries {
            trie.apply(&batch(&model));
            if hashed_before {
                trie.root();
            }
        }
        tries[0].remove_through(&last);
        assert_eq!(tries[0].root().0, reference::root(&by_prefix));
        tries[1].apply(&gone);
        assert_eq!(tries[1].root().0, reference::root(&by_batch));
        assert!(tries[1].iter().eq(by_batch.iter()));
    }
}

/// One set reached in many ways: the root does not depend on history.
#[test]
fn root_depends_on_the_set_alone() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let model: Model<8> = (0..150_000).map(|_| (rng.random(), rng.random())).collect();
    let mut at_once = Trie::new();
    at_once.apply(&batch(&model));
    let root = at_once.root();
    let mut shuffled = batch(&model);
    shuffled.shuffle(&mut rng);
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        let mut trie = Trie::<8>::new();
        // Unrelated keys are added and removed.
        let strangers: BTreeMap<[u8; 8], Option<[u8; 32]>> =
            (0..50_000).map(|_| (rng.random(), Some([9; 32]))).collect();
        trie.apply(&strangers.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>());
        for part in shuffled.chunks(40_000 * threads) {
            let mut part = part.to_vec();
            part.sort_unstable();
            pool.install(|| trie.apply(&part));
            pool.install(|| trie.root());
        }
        let gone: Vec<Change<8>> =
            strangers.keys().filter(|key| !model.contains_key(*key)).map(|key| (*key, None)).collect();
        trie.apply(&gone);
        assert_eq!(pool.install(|| trie.root()), root, "{threads} threads");
    }
}

/// The deepest possible trie: the longest keys, and a node at every depth. A thread's ordinary stack suffices.
#[test]
fn a_node_at_every_depth() {
    let key = |i: usize| {
        let mut key = [0; 127];
        key[i / 2] = if i.is_multiple_of(2) { 0x10 } else { 0x01 };
        key
    };
    let model: Model<127> = (0..254).map(|i| (key(i), [i as u8; 32])).collect();
    let mut by_ones = Trie::new();
    for (key, value) in &model {
        by_ones.apply(&[(*key, Some(*value))]);
    }
    let mut at_once = Trie::new();
    at_once.apply(&batch(&model));
    assert_eq!(at_once.root().0, reference::root(&model));
    assert_eq!(by_ones.root(), at_once.root());
    let deepest = model.keys().next().expect("not empty");
    let proof = at_once.prove(deepest).expect("fresh");
    assert_eq!(trie::verify(&at_once.root(), deepest, &proof), Ok(Some(model[deepest])));
    assert_eq!(at_once.remove_through(&key(100)), 154);
    assert_eq!(at_once.root().0, reference::root(&model.into_iter().filter(|(it, _)| *it > key(100)).collect()));
}

#[test]
#[should_panic(expected = "strictly increase")]
fn unsorted_batch_is_refused() {
    Trie::<1>::new().apply(&[([2], None), ([1], None)]);
}
