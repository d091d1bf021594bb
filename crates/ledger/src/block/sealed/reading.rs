//! What the envelopes of an archived block held: for histories, exports, and answers about a transaction.

use primitives::{Digest, Superblock, Transaction, TransactionId};
use proofs::{Outcome, SealedFate};
use rayon::prelude::*;
use sealing::{EnvelopeTerms, OpeningKey};

use super::{OpenedOperation, is_sealed, text};

/// The operations in the envelopes of a block of this network that counts already, in the order of their outcomes.
///
/// `outcomes` are those of the block's receipts: of its own transactions, and behind them of what its envelopes held.
/// Each envelope that opened is decrypted once more, by its key in the block: half a millisecond each, on all threads.
/// An envelope for another network, as of a block before a restart of the network, stays closed.
pub fn enclosed(network: &Digest, block: &Superblock, outcomes: &[(TransactionId, Outcome)]) -> Vec<OpenedOperation> {
    if block.openings.is_empty() {
        return Vec::new();
    }
    let native: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    let opens = |(at, one): &(usize, &Transaction)| {
        is_sealed(one) && matches!(outcomes.get(*at), Some((_, Outcome::Sealed(_))))
    };
    let opened = native.iter().copied().enumerate().filter(opens);
    let mut inside = outcomes.get(native.len()..).unwrap_or_default();
    let mut paid = Vec::new();
    for ((at, transaction), key) in opened.zip(&block.openings) {
        if let Outcome::Sealed(SealedFate::Opened(count)) = outcomes[at].1 {
            let (of_envelope, rest) = inside.split_at(inside.len().min(usize::from(count)));
            paid.push((at, transaction, OpeningKey(*key), of_envelope));
            inside = rest;
        }
    }
    let read = |(at, transaction, key, outcomes): (usize, &Transaction, OpeningKey, &[(TransactionId, Outcome)])| {
        let held = held_by(network, transaction, &key).unwrap_or_default().into_iter();
        let one = |(transaction, (id, outcome)): (Transaction, &(TransactionId, Outcome))| OpenedOperation {
            envelope: at as u32,
            id: *id,
            transaction,
            outcome: *outcome,
        };
        held.zip(outcomes).map(one).collect::<Vec<_>>()
    };
    paid.into_par_iter().map(read).flatten().collect()
}

/// What an envelope holds; `None` if the key does not open it on this network.
fn held_by(network: &Digest, transaction: &Transaction, key: &OpeningKey) -> Option<Vec<Transaction>> {
    let (envelope, name) = transaction.envelope()?;
    let terms = EnvelopeTerms::of(*network, envelope, &name, transaction.body.until);
    text(transaction, &terms.label(envelope.size(), &envelope.point), key)
}
