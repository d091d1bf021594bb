//! Builds a trie of random 20-byte keys, applies batches and prints seconds and bytes.
//!
//! `cargo run --release -p trie --example accounts -- ENTRIES THREADS [BATCH]`

use std::time::Instant;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use trie::{Change, Trie, verify};

type Key = [u8; 20];

fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let (entries, threads) = (arguments[0], arguments[1]);
    let batch_len = arguments.get(2).copied().unwrap_or(100_000);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    pool.install(|| run(entries, batch_len));
}

fn run(entries: usize, batch_len: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut keys: Vec<Key> = (0..entries).map(|_| key(&mut rng)).collect();
    let mut trie = Trie::<20>::new();
    let mut batch = changes(keys.clone(), Some([1; 32]));
    timed("build", entries, || trie.apply(&batch));
    timed("first root", entries, || trie.root());
    batch = Vec::new();
    drop(batch);
    println!("{:>12.1} bytes per entry, 52 of them key and digest", trie.allocated_bytes() as f64 / trie.len() as f64);
    for round in 2..5 {
        let some = (0..batch_len).map(|_| keys[rng.next_u64() as usize % entries]).collect();
        let batch = changes(some, Some([round; 32]));
        timed("replace", batch.len(), || trie.apply(&batch));
        timed("root", batch.len(), || trie.root());
    }
    for round in 0..3 {
        let new: Vec<Key> = (0..batch_len).map(|_| key(&mut rng)).collect();
        keys.extend(&new);
        let batch = changes(new, Some([round; 32]));
        timed("insert", batch.len(), || trie.apply(&batch));
        timed("root", batch.len(), || trie.root());
    }
    for _ in 0..3 {
        let batch = changes(keys.split_off(keys.len() - batch_len), None);
        timed("remove", batch.len(), || trie.apply(&batch));
        timed("root", batch.len(), || trie.root());
    }
    println!("{:>12.1} bytes per entry after that", trie.allocated_bytes() as f64 / trie.len() as f64);
    let root = trie.root();
    let proofs: Vec<_> =
        timed("prove", 10_000, || keys[..10_000].iter().map(|key| trie.prove(key).expect("fresh")).collect());
    timed("verify", 10_000, || {
        assert!(
            keys.iter()
                .zip(&proofs)
                .all(|(key, proof)| verify::<32>(&root, key, proof).is_ok_and(|found| found.is_some()))
        );
    });
    println!("{:>12} bytes per proof", proofs.iter().map(|proof| proof.as_bytes().len()).sum::<usize>() / proofs.len());
    timed("iterate", trie.len(), || assert_eq!(trie.iter().count(), trie.len()));
    let middle = [0x80; 20];
    timed("remove half", trie.len() / 2, || trie.remove_through(&middle));
    timed("root", 1, || trie.root());
}

fn key(rng: &mut ChaCha8Rng) -> Key {
    let mut key = [0; 20];
    rng.fill_bytes(&mut key);
    key
}

fn changes(mut keys: Vec<Key>, value: Option<[u8; 32]>) -> Vec<Change<20>> {
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(|key| (key, value)).collect()
}

fn timed<T>(what: &str, count: usize, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let seconds = start.elapsed().as_secs_f64();
    println!("{:>12.1} ms {what} ({:.0} ns each)", seconds * 1e3, seconds * 1e9 / count as f64);
    result
}
