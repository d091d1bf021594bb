//! Policies of accounts in JSON.

use api::{AccountKeysBody, KeyPolicyBody, WaitingKeysBody};
use ledger::{AccountKeys, WaitingKeys};
use primitives::{ChangedBy, SessionsFate};

/// The keys of an account with a policy.
pub fn account_keys(keys: &AccountKeys) -> AccountKeysBody {
    AccountKeysBody {
        first: keys.first.to_string(),
        last: keys.last.to_string(),
        policy: KeyPolicyBody::of(&keys.policy),
        waiting: keys.waiting.as_ref().map(waiting),
    }
}

fn waiting(waiting: &WaitingKeys) -> WaitingKeysBody {
    let sessions = if waiting.sessions == SessionsFate::Keep { "keep" } else { "close" };
    let by = if waiting.by == ChangedBy::Guardians { "guardians" } else { "signers" };
    let policy = KeyPolicyBody::of(&waiting.policy);
    WaitingKeysBody { policy, sessions: sessions.into(), by: by.into(), due: waiting.due.to_string() }
}
