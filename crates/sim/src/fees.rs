//! What transactions cost, stated independently of the ledger.

use primitives::{Life, Operation, SessionOperation, Transaction, slot_of};

/// Fees of a transaction: one for each KiB begun of a lane post, none for a member's duty and for what a validator says
/// of itself. One more
/// for each eight offers of a cancel, for an offer with an end, and for one of a session key that rests until its
/// timer. Four for an exact order, a hundred for a session key, a thousand for a pool, and one for everything else.
pub(crate) fn fees_of(transaction: &Transaction) -> i128 {
    let offer = |life: Life| match life {
        Life::Until(_) => 2,
        Life::Rests if slot_of(transaction.body.sequence) > 0 => 2,
        Life::Rests | Life::OneBatch => 1,
    };
    match &transaction.body.operation {
        Operation::Lane(bytes) if bytes.first().is_some_and(|first| *first >= 0x80) => 0,
        Operation::Present { .. } => 0,
        Operation::Approve { .. } | Operation::Unapprove { .. } if transaction.body.sequence == 0 => 0,
        Operation::Lane(bytes) if !bytes.is_empty() => 1 + (bytes.len() as i128 - 1) / 1_024,
        Operation::Cancel(places) => 1 + places.len() as i128 / 8,
        Operation::CreateOffer { life, .. } => offer(*life),
        Operation::Replace(replace) => offer(replace.life),
        Operation::Exact { .. } => 4,
        Operation::Session(operation) if matches!(**operation, SessionOperation::Authorize { .. }) => 100,
        Operation::Pool(operation) if operation.shares().is_none() => 1_000,
        _ => 1,
    }
}
