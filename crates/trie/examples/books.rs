//! Fills a trie of offers per pair of assets, as the ledger does, clears a prefix of each, and prints seconds and
//! bytes.
//!
//! `cargo run --release -p trie --example books -- OFFERS PAIRS THREADS`

use std::time::Instant;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use trie::{Change, Trie};

type Key = [u8; 36];

fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let (offers, pairs, threads) = (arguments[0], arguments[1], arguments[2]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    pool.install(|| run(offers, pairs));
}

fn run(offers: usize, pairs: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut books: Vec<Trie<36>> = (0..pairs).map(|_| Trie::new()).collect();
    let resting = batches(&mut rng, offers, pairs);
    step("build", offers, &mut books, |i, book| book.apply(&resting[i]).inserted);
    drop(resting);
    step("first root", offers, &mut books, |_, book| usize::from(book.root().0[0]));
    let bytes: usize = books.iter().map(Trie::allocated_bytes).sum();
    println!("{:>12.1} bytes per offer, 68 of them key and digest", bytes as f64 / offers as f64);
    for _ in 0..3 {
        let new = batches(&mut rng, 400_000, pairs);
        step("insert", 400_000, &mut books, |i, book| book.apply(&new[i]).inserted);
        step("root", 400_000, &mut books, |_, book| usize::from(book.root().0[0]));
        // Removes as many offers as were added: those with the lowest limit prices.
        let last: Vec<Key> = books.iter().map(|book| *book.iter().nth(400_000 / pairs).expect("so many").0).collect();
        step("remove a prefix", 400_000, &mut books, |i, book| book.remove_through(&last[i]));
        step("root", 400_000, &mut books, |_, book| usize::from(book.root().0[0]));
    }
    let (bytes, len): (usize, usize) =
        books.iter().fold((0, 0), |(bytes, len), book| (bytes + book.allocated_bytes(), len + book.len()));
    println!("{:>12.1} bytes per offer after that", bytes as f64 / len as f64);
}

/// Limit prices within a few percent of one another, two digits after the point in half of them; accounts and ids.
fn batches(rng: &mut ChaCha8Rng, offers: usize, pairs: usize) -> Vec<Vec<Change<36>>> {
    let mut batches: Vec<Vec<Change<36>>> = vec![Vec::new(); pairs];
    for i in 0..offers {
        let spread = rng.random_range(0..500_000_000_000_000u64);
        let mantissa =
            12_000_000_000_000_000 + if i % 2 == 0 { spread } else { spread / 1_000_000_000_000 * 1_000_000_000_000 };
        let mut key = [0; 36];
        key[..8].copy_from_slice(&(18 << 57 | mantissa).to_be_bytes());
        let mut account = ChaCha8Rng::seed_from_u64(rng.random_range(0..1_000_000));
        account.fill_bytes(&mut key[8..28]);
        key[28..].copy_from_slice(&rng.next_u64().to_be_bytes());
        batches[i % pairs].push((key, Some([i as u8; 32])));
    }
    for batch in &mut batches {
        batch.sort_unstable();
    }
    batches
}

fn step(what: &str, count: usize, books: &mut [Trie<36>], work: impl Fn(usize, &mut Trie<36>) -> usize + Sync) {
    let start = Instant::now();
    let done: usize = books.par_iter_mut().enumerate().map(|(i, book)| work(i, book)).sum();
    let seconds = start.elapsed().as_secs_f64();
    println!("{:>12.1} ms {what} ({:.0} ns each, {done})", seconds * 1e3, seconds * 1e9 / count as f64);
}
