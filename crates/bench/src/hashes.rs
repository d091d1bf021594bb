//! BLAKE3 against Keccak on the same messages of a node (Smart Red Belly §3.4, figure 3): a trie's node, a transaction,
//! an account's leaf, a sub-block.

use std::hint::black_box;
use std::time::Instant;

use ledger::contracts::ethereum::keccak256;
use primitives::Digest;
use serde_json::{Value, json};

use crate::cluster::transactions;
use crate::scaling::median;

/// Milliseconds for which each hash runs in a round.
const ROUND_MS: u128 = 20;

/// One row for each message: its bytes, and nanoseconds of each hash, medians of `rounds` taken in turn.
pub fn run(rounds: usize) -> Vec<Value> {
    let sent = transactions(&Digest([1; 32]), 64, 0, 256);
    let encoded: Vec<Vec<u8>> = sent.iter().map(|one| borsh::to_vec(one).expect("encodable")).collect();
    let messages = [
        ("a node of a trie", vec![7; 64]),
        ("an offer's leaf", vec![8; 96]),
        ("a transaction", encoded[0].clone()),
        ("a sub-block of 256 transactions", encoded.concat()),
    ];
    messages.iter().map(|(name, message)| row(name, message, rounds)).collect()
}

fn row(name: &str, message: &[u8], rounds: usize) -> Value {
    let (mut blake3, mut keccak) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        blake3.push(nanoseconds(|| {
            black_box(Digest::of("walras bench hash", black_box(message)));
        }));
        keccak.push(nanoseconds(|| {
            black_box(keccak256(black_box(message)));
        }));
    }
    let (blake3, keccak) = (median(blake3), median(keccak));
    json!({
        "message": name, "bytes": message.len(), "blake3_ns": blake3, "keccak_ns": keccak,
        "keccak_over_blake3": keccak / blake3,
    })
}

/// Of one call, over as many as fit into a round.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let (begun, mut calls) = (Instant::now(), 0u32);
    while begun.elapsed().as_millis() < ROUND_MS {
        (0..16).for_each(|_| call());
        calls += 16;
    }
    begun.elapsed().as_nanos() as f64 / f64::from(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_messages_go_through_both_hashes() {
        let rows = run(1);
        let bytes: Vec<u64> = rows.iter().map(|row| row["bytes"].as_u64().expect("a number")).collect();
        assert!(bytes.is_sorted() && bytes[3] > 200 * bytes[2], "{bytes:?}");
        for row in rows {
            let number = |name: &str| row[name].as_f64().expect("a number");
            assert!((number("keccak_over_blake3") * number("blake3_ns") / number("keccak_ns") - 1.0).abs() < 1e-9);
            assert!(number("blake3_ns") > 1.0 && number("keccak_ns") > 1.0, "{row}");
        }
    }
}
