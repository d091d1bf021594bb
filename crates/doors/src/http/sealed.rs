//! What envelopes held, once their blocks have opened them.

use ledger::{BlockReceipts, OpenedOperation, Outcome, Refusal};
use primitives::{Height, Superblock, Transaction, TransactionId, verify_transactions};

use super::Api;
use crate::json;
use crate::kit::Failure;

/// A transaction of a block as it is told.
pub(super) struct FoundBody {
    pub transaction: Transaction,
    /// The envelope that held it.
    pub sealed_by: Option<TransactionId>,
    /// Of an envelope what it held.
    pub inside: Vec<json::TransactionOutcome>,
}

impl Api {
    /// The operations in the envelopes of a block.
    pub(super) fn enclosed(&self, block: &Superblock, receipts: &BlockReceipts) -> Vec<OpenedOperation> {
        ledger::enclosed(&self.published().views().outline().validators.terms.network, block, &receipts.outcomes)
    }

    /// A transaction with its outcome.
    pub(super) fn acted(
        &self,
        transaction: &Transaction,
        id: &TransactionId,
        outcome: &Outcome,
        sealed_by: Option<TransactionId>,
    ) -> json::TransactionOutcome {
        json::TransactionOutcome {
            id: id.to_string(),
            account: transaction.body.account.to_string(),
            sequence: transaction.body.sequence.to_string(),
            operation: self.symbols().operation(&transaction.body.operation),
            outcome: json::outcome(outcome),
            sealed_by: sealed_by.map(|id| id.to_string()),
        }
    }

    /// An operation of an envelope with its outcome. Of an invalid signature it is told if the operation is signed as a
    /// plain transaction: that is a program's usual mistake.
    pub(super) fn acted_inside(&self, one: &OpenedOperation, receipts: &BlockReceipts) -> json::TransactionOutcome {
        let sealed_by = receipts.outcomes.get(one.envelope as usize).map(|(id, _)| *id);
        let mut acted = self.acted(&one.transaction, &one.id, &one.outcome, sealed_by);
        if let json::OutcomeBody::Refused { message, .. } = &mut acted.outcome
            && one.outcome.refusal() == Some(Refusal::BAD_SIGNATURE)
        {
            let network = self.published().views().outline().validators.terms.network;
            let is_plain = verify_transactions(&network, &[&one.transaction]) == [true];
            *message = if is_plain { SIGNED_PLAIN } else { SIGNED_FOR_ANOTHER }.into();
        }
        acted
    }

    /// A transaction of a block; `None` if the block is no longer kept.
    pub(super) fn transaction_of(&self, height: Height, id: &TransactionId) -> Result<Option<FoundBody>, Failure> {
        let (block, receipts) = (self.backend.block(height)?, self.backend.receipts(height)?);
        let (Some(block), Some(proven)) = (block, receipts) else { return Ok(None) };
        let receipts = &proven.receipts;
        let Some(at) = receipts.outcomes.iter().position(|(known, _)| known == id) else { return Ok(None) };
        let plain = block.sub_blocks.iter().flat_map(|sub| &sub.native).nth(at);
        let is_envelope = plain.is_some_and(|one| one.envelope().is_some());
        let enclosed = if plain.is_none() || is_envelope { self.enclosed(&block, receipts) } else { Vec::new() };
        if let Some(transaction) = plain.cloned() {
            let of_it = enclosed.iter().filter(|one| receipts.outcomes[one.envelope as usize].0 == *id);
            let inside = of_it.map(|one| self.acted_inside(one, receipts)).collect();
            return Ok(Some(FoundBody { transaction, sealed_by: None, inside }));
        }
        let inside = enclosed.into_iter().find(|one| one.id == *id);
        Ok(inside.map(|one| FoundBody {
            sealed_by: receipts.outcomes.get(one.envelope as usize).map(|(id, _)| *id),
            transaction: one.transaction,
            inside: Vec::new(),
        }))
    }
}

const SIGNED_PLAIN: &str = "it is signed as a plain transaction, which counts in no envelope: sign it for the \
                            envelope, which is named by its payer and number";
const SIGNED_FOR_ANOTHER: &str = "its signature is not for this envelope: sign it again for the payer and the number \
                                  of the envelope that holds it";
