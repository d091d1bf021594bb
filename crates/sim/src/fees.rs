//! What transactions cost, stated independently of the ledger.

use primitives::{Life, Operation, SessionOperation, SignedBy, Transaction, slot_of};

/// Fees of a transaction: one for each KiB begun of a lane post, none for a member's duty and for what a validator says
/// of itself. One more
/// for each eight offers of a cancel, for an offer with an end, and for one of a session key that rests until its
/// timer. Four for an exact order, a hundred for a session key, a thousand for a pool, what a listing names beside its
/// own, and one for everything else. A hundred for each key of a new policy, and one for each signature of a policy
/// beyond the first.
pub(crate) fn fees_of(transaction: &Transaction) -> i128 {
    let further = match &transaction.signed_by {
        SignedBy::Policy(signed) => signed.signatures.keys.len() + signed.signatures.wallets.len() - 1,
        _ => 0,
    };
    fees_of_body(transaction) + further as i128
}

fn fees_of_body(transaction: &Transaction) -> i128 {
    let offer = |life: Life| match life {
        Life::Until(_) => 2,
        Life::Rests if slot_of(transaction.body.sequence) > 0 => 2,
        Life::Rests | Life::OneBatch => 1,
    };
    match &transaction.body.operation {
        Operation::Lane(bytes) if bytes.first().is_some_and(|first| *first >= 0x80) => 0,
        Operation::Present { .. } | Operation::SealDuty { .. } => 0,
        Operation::Approve { .. } | Operation::Unapprove { .. } if transaction.body.sequence == 0 => 0,
        Operation::Lane(bytes) if !bytes.is_empty() => 1 + (bytes.len() as i128 - 1) / 1_024,
        Operation::Cancel(places) => 1 + places.len() as i128 / 8,
        Operation::CreateOffer { life, .. } => offer(*life),
        Operation::Replace(replace) => offer(replace.life),
        Operation::Exact { .. } => 4,
        Operation::ListAsset(listing) => 1 + i128::from(listing.fees),
        Operation::SetKeys(_) | Operation::RecoverKeys(_) => {
            let asked = transaction.body.operation.key_change().expect("it is one");
            let policy = &asked.change.policy;
            let guardians = policy.guardian_keys.len() + policy.guardian_wallets.len();
            let keys = policy.keys.len() + policy.wallets.len() + guardians;
            1 + 100 * keys as i128 + (asked.signatures.keys.len() + asked.signatures.wallets.len()) as i128
        }
        Operation::Session(operation) if matches!(**operation, SessionOperation::Authorize { .. }) => 100,
        Operation::Pool(operation) if operation.shares().is_none() => 1_000,
        Operation::Propose(_) => 1_000,
        _ => 1,
    }
}
