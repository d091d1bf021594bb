//! What envelopes held, once their blocks have opened them.

use std::ops::Range;

use ledger::{BlockReceipts, OpenedOperation, Outcome, Refusal, SealedFate};
use primitives::{Height, SubBlock, Superblock, Transaction, TransactionId, verify_transactions};

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

/// The operations in the envelopes of a block.
pub(super) fn enclosed(api: &Api, block: &Superblock, receipts: &BlockReceipts) -> Vec<OpenedOperation> {
    ledger::enclosed(&api.published().views().outline().validators.terms.network, block, &receipts.outcomes)
}

/// A transaction with its outcome.
pub(super) fn acted(
    api: &Api,
    transaction: &Transaction,
    id: &TransactionId,
    outcome: &Outcome,
    sealed_by: Option<TransactionId>,
) -> json::TransactionOutcome {
    json::TransactionOutcome {
        id: id.to_string(),
        account: transaction.body.account.to_string(),
        sequence: transaction.body.sequence.to_string(),
        operation: api.symbols().operation(&transaction.body.operation),
        outcome: json::outcome(outcome),
        sealed_by: sealed_by.map(|id| id.to_string()),
    }
}

/// An operation of an envelope with its outcome. Of an invalid signature it is told if the operation is signed as a
/// plain transaction: that is a program's usual mistake.
pub(super) fn acted_inside(api: &Api, one: &OpenedOperation, receipts: &BlockReceipts) -> json::TransactionOutcome {
    let sealed_by = receipts.outcomes.get(one.envelope as usize).map(|(id, _)| *id);
    let mut acted = acted(api, &one.transaction, &one.id, &one.outcome, sealed_by);
    if let json::OutcomeBody::Refused { message, .. } = &mut acted.outcome
        && one.outcome.refusal() == Some(Refusal::BAD_SIGNATURE)
    {
        let network = api.published().views().outline().validators.terms.network;
        let is_plain = verify_transactions(&network, &[&one.transaction]) == [true];
        *message = if is_plain { SIGNED_PLAIN } else { SIGNED_FOR_ANOTHER }.into();
    }
    acted
}

/// A transaction of a block; `None` if the block is no longer kept. At most one envelope of it is opened again.
pub(super) fn transaction_of(api: &Api, height: Height, id: &TransactionId) -> Result<Option<FoundBody>, Failure> {
    let (block, receipts) = (api.backend.block(height)?, api.backend.receipts(height)?);
    let (Some(block), Some(proven)) = (block, receipts) else { return Ok(None) };
    let receipts = &proven.receipts;
    let Some(at) = receipts.outcomes.iter().position(|(known, _)| known == id) else { return Ok(None) };
    let native: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    let envelope = envelopes(&native, receipts).find(|one| one.index == at || one.inside.contains(&at));
    let held = envelope.map(|one| opened(api, &block, &native, receipts, &one)).unwrap_or_default();
    if let Some(transaction) = native.get(at) {
        let inside = held.iter().map(|(_, one)| acted_inside(api, one, receipts)).collect();
        return Ok(Some(FoundBody { transaction: (*transaction).clone(), sealed_by: None, inside }));
    }
    let found = held.into_iter().find(|(_, one)| one.id == *id);
    Ok(found.map(|(envelope, one)| FoundBody {
        transaction: one.transaction,
        sealed_by: Some(envelope),
        inside: Vec::new(),
    }))
}

/// An envelope that a block opened.
struct OpenEnvelope {
    /// Where it stands among the block's transactions.
    index: usize,
    /// Where its key stands in the block.
    key: usize,
    /// Where the outcomes of what it held stand.
    inside: Range<usize>,
}

/// The envelopes that a block opened, in its order.
fn envelopes(native: &[&Transaction], receipts: &BlockReceipts) -> impl Iterator<Item = OpenEnvelope> {
    let fates = receipts.outcomes.iter().take(native.len()).enumerate();
    let opened = fates.filter_map(|(index, (_, outcome))| match outcome {
        Outcome::Sealed(fate) => Some((index, *fate)),
        _ => None,
    });
    opened.enumerate().scan(native.len(), |from, (key, (index, fate))| {
        let count = if let SealedFate::Opened(count) = fate { usize::from(count) } else { 0 };
        let inside = *from..*from + count;
        *from = inside.end;
        Some(OpenEnvelope { index, key, inside })
    })
}

/// What one envelope held, beside its id: of the block only the envelope and its key are looked at.
fn opened(
    api: &Api,
    block: &Superblock,
    native: &[&Transaction],
    receipts: &BlockReceipts,
    of: &OpenEnvelope,
) -> Vec<(TransactionId, OpenedOperation)> {
    let Some(key) = block.openings.get(of.key) else { return Vec::new() };
    let sub_blocks = vec![SubBlock { native: vec![native[of.index].clone()], ..SubBlock::default() }];
    let alone = Superblock { height: block.height, sub_blocks, openings: vec![*key], ..Superblock::default() };
    let envelope = receipts.outcomes[of.index];
    let inside = receipts.outcomes.get(of.inside.clone()).unwrap_or_default();
    let outcomes = [&[envelope], inside].concat();
    let network = api.published().views().outline().validators.terms.network;
    let told = |one: OpenedOperation| (envelope.0, OpenedOperation { envelope: of.index as u32, ..one });
    ledger::enclosed(&network, &alone, &outcomes).into_iter().map(told).collect()
}

const SIGNED_PLAIN: &str = "it is signed as a plain transaction, which counts in no envelope: sign it for the \
                            envelope, which is named by its payer and number";
const SIGNED_FOR_ANOTHER: &str = "its signature is not for this envelope: sign it again for the payer and the number \
                                  of the envelope that holds it";
