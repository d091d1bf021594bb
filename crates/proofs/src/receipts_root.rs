//! The tries over a block's receipts: the outcome of each transaction, and the accounts that the block changed.
//!
//! ```text
//! receipts root = H(outcomes, modified, batch, contracts, block)
//!                   │         │         │      │          └ digest of the block, which names the one before it
//!                   │         │         │      └ digest of skipped Ethereum transactions, fees, filter over logs;
//!                   │         │         │        in a block with settles of venues H(this digest, their digest)
//!                   │         │         └ digest of the batch
//!                   │         └ trie by address of the accounts that changed (SPEEDEX §K.1)
//!                   └ trie by transaction, native and Ethereum; each kind of receipt is hashed in a context of its own
//! ```
//!
//! The receipts root alone proves that a transaction had an outcome, and that an account did or did not change in the
//! block. A client that follows one account can skip blocks that do not change it. The root also names the block, so a
//! certified root identifies the history of the state, and a state fetched from others is checked against it.
//!
//! **Deviations from the paper.** In §9.3 an account in the trie of changes leads to a list of its transactions and of
//! those of others that changed it. Here only the account's presence counts: transactions are proved by the other trie,
//! fills by the batch, and an account's list comes from a node's history (`/v1/accounts/ADDRESS/transfers`), checked
//! against both. A list under the root would cost each validator a hash for every pair of transaction and account, and
//! tell nobody that it is complete who does not trust the state's root anyway.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest, TransactionId};
use trie::{Proof, Trie};

use crate::ethereum_receipt::EthereumReceipt;
use crate::receipt::{BlockReceipts, Outcome, outcomes_by_id};
use crate::root_parts::ProofFault;
use crate::settles::{SettledFills, settles_digest};

const RECEIPT_CONTEXT: &str = "walras 2026 receipt v1";
const OUTCOME_CONTEXT: &str = "walras 2026 outcome of a block v1";
const SETTLES_CONTEXT: &str = "walras 2026 contracts and venue settles v1";
const ROOT_CONTEXT: &str = "walras 2026 receipts root v4";

/// The value of every account in the trie: only the presence of the key matters.
const MODIFIED: [u8; 32] = [1; 32];

/// The tries over the receipts of one block. Their root also commits to the batch.
pub struct ReceiptsTrie {
    outcomes: Trie<32>,
    modified: Trie<20>,
    batch: Digest,
    contracts: Digest,
    block: Digest,
}

/// What the receipts root is the digest of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReceiptsParts {
    /// Root of the trie of outcomes.
    pub outcomes: Digest,
    /// Root of the trie of changed accounts.
    pub modified: Digest,
    /// Digest of the block's batch.
    pub batch: Digest,
    /// Digest of the other results of its contract phase; in a block with settles of venues, joined with theirs
    /// ([`with_settles`]).
    pub contracts: Digest,
    /// Digest of the block.
    pub block: Digest,
}

/// What validators sign as a block's outcome: the state root after it and its receipts root (none at the genesis).
pub fn outcome_root(state: &Digest, receipts: &Digest) -> Digest {
    Digest::of(OUTCOME_CONTEXT, &[state.0, receipts.0].concat())
}

/// A proof of one receipt of one block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReceiptProof {
    /// The outcome; `None` proves that the block has no such transaction.
    pub outcome: Option<Outcome>,
    /// The parts of the receipts root.
    pub parts: ReceiptsParts,
    /// The path in the trie of outcomes.
    pub path: Vec<u8>,
}

/// A proof that an account changed in a block, or that it did not.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ModifiedProof {
    /// The parts of the receipts root.
    pub parts: ReceiptsParts,
    /// The path in the trie of changed accounts.
    pub path: Vec<u8>,
}

/// A proof of the receipt of an Ethereum transaction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EthereumReceiptProof {
    /// The receipt; `None` proves that the block executed no such transaction.
    pub receipt: Option<EthereumReceipt>,
    /// The parts of the receipts root.
    pub parts: ReceiptsParts,
    /// The path in the trie of receipts.
    pub path: Vec<u8>,
}

/// The digest of a block's contract phase, joined with that of the settles of venues that counted, if there are some.
/// A block without them has the receipts root that it always had.
pub fn with_settles(contracts: Digest, settles: &[SettledFills]) -> Digest {
    if settles.is_empty() {
        return contracts;
    }
    Digest::of(SETTLES_CONTEXT, &[contracts.0, settles_digest(settles).0].concat())
}

/// A proof of the settles that counted in a block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SettlesProof {
    /// The settles with the verdicts of their fills.
    pub settles: Vec<SettledFills>,
    /// The parts of the receipts root.
    pub parts: ReceiptsParts,
    /// Digest of the other results of the contract phase.
    pub contracts: Digest,
}

impl SettlesProof {
    /// Checks the proof against a block's receipts root; returns the settles.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest) -> Result<&[SettledFills], ProofFault> {
        match () {
            _ if self.parts.root() != *root => Err(ProofFault::OtherRoot),
            _ if with_settles(self.contracts, &self.settles) != self.parts.contracts => Err(ProofFault::OtherValue),
            _ => Ok(&self.settles),
        }
    }
}

fn outcome_digest(outcome: &Outcome) -> [u8; 32] {
    blake3::derive_key(RECEIPT_CONTEXT, &borsh::to_vec(outcome).expect("writing to memory cannot fail"))
}

impl ReceiptsParts {
    /// The receipts root.
    pub fn root(&self) -> Digest {
        Digest::of(
            ROOT_CONTEXT,
            &[self.outcomes.0, self.modified.0, self.batch.0, self.contracts.0, self.block.0].concat(),
        )
    }
}

impl ReceiptsTrie {
    /// The tries of a block's receipts. Each id has one entry: see [`outcomes_by_id`].
    pub fn new(receipts: &BlockReceipts) -> ReceiptsTrie {
        let entries = outcomes_by_id(receipts.outcomes.iter().copied());
        let native = entries.iter().map(|(id, outcome)| (id.0, Some(outcome_digest(outcome))));
        let ethereum = receipts.contracts.receipts.iter().map(|receipt| (receipt.id.0, Some(receipt.digest())));
        let mut entries: Vec<_> = native.chain(ethereum).collect();
        if !receipts.contracts.receipts.is_empty() {
            entries.sort_unstable();
        }
        let mut outcomes = Trie::new();
        outcomes.apply(&entries);
        let mut changed: Vec<_> = receipts.modified.iter().map(|account| (account.0, Some(MODIFIED))).collect();
        changed.sort_unstable();
        changed.dedup();
        let mut modified = Trie::new();
        modified.apply(&changed);
        let bytes = borsh::to_vec(&receipts.batch).expect("writing to memory cannot fail");
        let batch = Digest::of(RECEIPT_CONTEXT, &bytes);
        let contracts = with_settles(receipts.contracts.digest(), &receipts.venues);
        ReceiptsTrie { outcomes, modified, batch, contracts, block: receipts.block }
    }

    /// The receipts root of the block.
    pub fn root(&mut self) -> Digest {
        self.parts().root()
    }

    /// The digests that the root is made of.
    pub fn parts(&mut self) -> ReceiptsParts {
        let (outcomes, modified) = (Digest(self.outcomes.root().0), Digest(self.modified.root().0));
        ReceiptsParts { outcomes, modified, batch: self.batch, contracts: self.contracts, block: self.block }
    }

    /// Proves the outcome of a transaction, or that the block has none of this id.
    pub fn prove(&mut self, id: &TransactionId, receipts: &BlockReceipts) -> ReceiptProof {
        let parts = self.parts();
        let path = self.outcomes.prove(&id.0).expect("the root was just taken").as_bytes().to_vec();
        let of_id = receipts.outcomes.iter().filter(|(known, _)| known == id).copied();
        let outcome = outcomes_by_id(of_id).first().map(|(_, outcome)| *outcome);
        ReceiptProof { outcome, parts, path }
    }

    /// Proves the settles of venues that counted, or that none did.
    pub fn prove_settles(&mut self, receipts: &BlockReceipts) -> SettlesProof {
        let (settles, contracts) = (receipts.venues.clone(), receipts.contracts.digest());
        SettlesProof { settles, parts: self.parts(), contracts }
    }

    /// Proves the receipt of an Ethereum transaction, or that the block executed none of this hash.
    pub fn prove_ethereum(&mut self, id: &TransactionId, receipts: &BlockReceipts) -> EthereumReceiptProof {
        let parts = self.parts();
        let path = self.outcomes.prove(&id.0).expect("the root was just taken").as_bytes().to_vec();
        let receipt = receipts.contracts.receipts.iter().find(|receipt| receipt.id == *id).cloned();
        EthereumReceiptProof { receipt, parts, path }
    }

    /// Proves that an account changed in the block, or that it did not.
    pub fn prove_modified(&mut self, account: &Address) -> ModifiedProof {
        let parts = self.parts();
        let path = self.modified.prove(&account.0).expect("the root was just taken").as_bytes().to_vec();
        ModifiedProof { parts, path }
    }
}

impl ReceiptProof {
    /// Checks the proof against a block's receipts root; returns the outcome, or `None` if the block is proved to hold
    /// no such transaction.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, id: &TransactionId) -> Result<Option<Outcome>, ProofFault> {
        let shown = shown(&self.parts, self.parts.outcomes, root, &id.0, &self.path)?;
        if shown == self.outcome.as_ref().map(outcome_digest) { Ok(self.outcome) } else { Err(ProofFault::OtherValue) }
    }
}

impl EthereumReceiptProof {
    /// Checks the proof against a block's receipts root; returns the receipt, or `None` if the block is proved to have
    /// executed no such transaction.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, id: &TransactionId) -> Result<Option<&EthereumReceipt>, ProofFault> {
        let shown = shown(&self.parts, self.parts.outcomes, root, &id.0, &self.path)?;
        let is_shown = shown == self.receipt.as_ref().map(EthereumReceipt::digest);
        if is_shown { Ok(self.receipt.as_ref()) } else { Err(ProofFault::OtherValue) }
    }
}

impl ModifiedProof {
    /// Checks the proof against a block's receipts root; returns whether the account changed in the block.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, account: &Address) -> Result<bool, ProofFault> {
        match shown(&self.parts, self.parts.modified, root, &account.0, &self.path)? {
            Some(MODIFIED) => Ok(true),
            Some(_) => Err(ProofFault::OtherValue),
            None => Ok(false),
        }
    }
}

/// What a path proves of a key in the trie `part`, if the parts hash to `root`.
fn shown(
    parts: &ReceiptsParts,
    part: Digest,
    root: &Digest,
    key: &[u8],
    path: &[u8],
) -> Result<Option<[u8; 32]>, ProofFault> {
    if parts.root() != *root {
        return Err(ProofFault::OtherRoot);
    }
    Ok(trie::verify(&trie::Root(part.0), key, &Proof::from_bytes(path.to_vec()))?)
}
