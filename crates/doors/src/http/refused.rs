//! Transactions that this node refused lately, so that their senders can ask why.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use ledger::Refusal;
use primitives::TransactionId;

use crate::json::ErrorText;

/// Number of refused transactions that are remembered.
const REMEMBERED: usize = 4_096;

/// The newest refused transactions, with the reasons.
#[derive(Default)]
pub(super) struct Refused(Mutex<Newest>);

#[derive(Default)]
struct Newest {
    reasons: HashMap<TransactionId, ErrorText>,
    oldest_first: VecDeque<TransactionId>,
}

impl Refused {
    /// Remembers a refusal. One for its signature is not remembered: it says nothing about the transaction of that id,
    /// which anybody can name with a wrong signature.
    pub(super) fn remember(&self, id: TransactionId, refusal: Refusal, reason: &ErrorText) {
        if refusal == Refusal::BAD_SIGNATURE {
            return;
        }
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.reasons.insert(id, reason.clone()).is_none() {
            newest.oldest_first.push_back(id);
        }
        if newest.oldest_first.len() > REMEMBERED {
            newest.oldest_first.pop_front().map(|oldest| newest.reasons.remove(&oldest));
        }
    }

    /// Why a transaction was refused.
    pub(super) fn reason(&self, id: &TransactionId) -> Option<ErrorText> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).reasons.get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use primitives::Digest;

    use super::*;

    #[test]
    fn the_newest_refusals_are_remembered_but_none_for_a_signature() {
        let refused = Refused::default();
        let id = |n: usize| Digest(std::array::from_fn(|at| (n >> (8 * (at % 8))) as u8));
        let text = || crate::json::refused(Refusal::OVERDRAFT);
        refused.remember(id(1), Refusal::BAD_SIGNATURE, &text());
        assert!(refused.reason(&id(1)).is_none());
        (0..=REMEMBERED).for_each(|n| refused.remember(id(n), Refusal::OVERDRAFT, &text()));
        assert!(refused.reason(&id(0)).is_none());
        assert_eq!(refused.reason(&id(1)).map(|text| text.code), Some("overdraft".into()));
    }
}
