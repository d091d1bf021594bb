//! The trie over a block's receipts, so that one receipt can be proved with the block's receipts root alone.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, TransactionId};
use trie::{Proof, Trie};

use crate::receipt::{BlockReceipts, Outcome};
use crate::roots::ProofFault;

const RECEIPT_CONTEXT: &str = "walras 2026 receipt v1";
const ROOT_CONTEXT: &str = "walras 2026 receipts root v1";

/// The trie over the receipts of one block. Its root also commits to the batch.
pub struct ReceiptsTrie {
    trie: Trie<32>,
    batch: Digest,
}

/// A proof of one receipt of one block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReceiptProof {
    /// The outcome; `None` proves that the block has no such transaction.
    pub outcome: Option<Outcome>,
    /// Digest of the block's batch.
    pub batch: Digest,
    /// Root of the trie of outcomes.
    pub outcomes: Digest,
    /// The path in the trie of outcomes.
    pub path: Vec<u8>,
}

fn outcome_digest(outcome: &Outcome) -> [u8; 32] {
    blake3::derive_key(RECEIPT_CONTEXT, &borsh::to_vec(outcome).expect("writing to memory cannot fail"))
}

fn combine(outcomes: Digest, batch: Digest) -> Digest {
    Digest::of(ROOT_CONTEXT, &[outcomes.0, batch.0].concat())
}

impl ReceiptsTrie {
    /// The trie of a block's receipts. Copies of one transaction have one entry: that of the copy that counts.
    pub fn new(receipts: &BlockReceipts) -> ReceiptsTrie {
        let mut entries: Vec<_> = receipts
            .outcomes
            .iter()
            .map(|(id, outcome)| {
                let is_copy = outcome.refusal() == Some(crate::Refusal::Duplicate);
                (id.0, is_copy, outcome)
            })
            .collect();
        entries.sort_unstable_by_key(|(id, is_copy, _)| (*id, *is_copy));
        entries.dedup_by_key(|(id, _, _)| *id);
        let batch: Vec<_> = entries.into_iter().map(|(id, _, outcome)| (id, Some(outcome_digest(outcome)))).collect();
        let mut trie = Trie::new();
        trie.apply(&batch);
        let bytes = borsh::to_vec(&receipts.batch).expect("writing to memory cannot fail");
        ReceiptsTrie { trie, batch: Digest::of(RECEIPT_CONTEXT, &bytes) }
    }

    /// The receipts root of the block.
    pub fn root(&mut self) -> Digest {
        combine(Digest(self.trie.root().0), self.batch)
    }

    /// Proves the outcome of a transaction, or that the block has none of this id.
    pub fn prove(&mut self, id: &TransactionId, receipts: &BlockReceipts) -> ReceiptProof {
        let outcomes = Digest(self.trie.root().0);
        let path = self.trie.prove(&id.0).expect("the root was just taken").as_bytes().to_vec();
        let of_id = receipts.outcomes.iter().filter(|(known, _)| known == id).map(|(_, outcome)| *outcome);
        let outcome = of_id.min_by_key(|outcome| outcome.refusal() == Some(crate::Refusal::Duplicate));
        ReceiptProof { outcome, batch: self.batch, outcomes, path }
    }
}

impl ReceiptProof {
    /// Checks the proof against a block's receipts root; returns the outcome, or `None` if the block is proved to hold
    /// no such transaction.
    ///
    /// # Errors
    /// [`ProofFault`] if it does not hold.
    pub fn verify(&self, root: &Digest, id: &TransactionId) -> Result<Option<Outcome>, ProofFault> {
        if combine(self.outcomes, self.batch) != *root {
            return Err(ProofFault::OtherRoot);
        }
        let proof = Proof::from_bytes(self.path.clone());
        let shown = trie::verify(&trie::Root(self.outcomes.0), &id.0, &proof)?;
        if shown == self.outcome.as_ref().map(outcome_digest) { Ok(self.outcome) } else { Err(ProofFault::OtherValue) }
    }
}
