//! Cancel on disconnect: what a connection of the stream leaves with the node, which submits it when the connection
//! ends.
//!
//! The node holds no key. After a login, `{"on_disconnect": "0x…"}` brings a signed transaction: a *stop* of a session
//! key's slot (`session_alive` with `through` 0), which ends all its offers with one block, or a *cancel* of named
//! offers. The answer names its id; a newer one takes its place; `{"withdraw": true}` takes it back. When the
//! connection ends, however it ends, the node submits what it holds, as anybody could who has the bytes.
//!
//! **Attacks.**
//!
//! - *Somebody leaves another one's stop.* He needs its bytes, which only its key can make, and could submit them
//!   himself. The connection must have logged in with the key that signed: account and slot of both are the same.
//! - *Something else is left*, a payment or an order that counts when its maker is gone: only stops and cancels are.
//! - *A forged, ended or used one*, which would let its owner believe that he is guarded: signature, key, network,
//!   number and end are checked when it comes, and again with each heartbeat. Once it cannot count any more, the client
//!   is told, with the reason, and leaves a newer one.
//! - *Work*: a signature is checked last, and [`CHECKS`] of them in a second at most for one connection.
//! - *Memory*: one for each connection, of at most `stream_message_bytes`; connections have a limit, of all and of one
//!   address. One that waits for room in a full pool keeps the place of its connection until then.
//! - *A client that comes back at once* while the node still takes its old connection for open: the stop of the old one
//!   would end the new orders. Of one key and one slot to be stopped, the connection that leaves last holds the stop.
//!   The one before is told that it holds none. At another node the old stop is still held: the client uses its number
//!   for its next transaction, whose end is later. Then it counts no more.
//! - *Two programs with one key*: the same. A program that needs a guard of its own has a session key of its own.
//! - *A peer that vanishes without a word*: a connection that holds something is asked once a second whether it lives
//!   (a ping, which WebSocket libraries answer), and ends after [`SILENCE`] without a word.
//! - *A crowd of connections that takes this one's place*, which would end its orders: who has left something is known
//!   by a key that counts, as who has paid is.
//! - *All connections of a node end at once*: a sub-block has few stops (`ledger::SESSION_ENDS_PER_SUB_BLOCK`), and the
//!   others wait in the pool for the next ones. Timers end offers without such a bound.
//! - *A node that hides the end of a connection, or fails, or restarts*: what it holds is in memory, and it promises
//!   nothing. The promise is the slot's timer, which is on the ledger. A node that stops submits nothing.
//! - *A node that submits early*: it ends offers of the slot and no more, and a stop can be withdrawn from a node that
//!   has turned bad by using its number.
//! - *A reader's token*: leaving something needs the role of those who submit.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ledger::Refusal;
use primitives::{Address, Operation, SessionOperation, SessionSlot, SignedBy, Transaction, TransactionId, slot_of};
use serde_json::{Value, json};
use sockets::Client;

use super::Api;
use super::login::{Logins, Refused, is_key_of};
use super::unsigned::bytes_of_hex;
use crate::backend::{AccountRead, Answer, Closed};
use crate::json::{self as bodies, ErrorText};

/// Signatures that are checked for a connection between two heartbeats.
const CHECKS: usize = 16;
/// A connection that holds something and says nothing for this long has ended.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// Between two tries to submit to a pool that is full.
const RETRY: Duration = Duration::from_millis(100);

/// What is guarded: an account, the slot of the key that signed, and the slot that is stopped; `None` of cancels.
type Guarded = (Address, SessionSlot, Option<SessionSlot>);

/// Which connection holds what.
#[derive(Default)]
pub(super) struct Holders(Mutex<Tickets>);

#[derive(Default)]
struct Tickets {
    last: u64,
    of: HashMap<Guarded, u64>,
}

/// A transaction that a connection has left.
pub(super) struct LeftTransaction {
    transaction: Transaction,
    guarded: Guarded,
    ticket: u64,
}

impl Holders {
    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a transaction for a connection, in the place of any other one's.
    fn hold(&self, transaction: Transaction, guarded: Guarded) -> LeftTransaction {
        let mut tickets = self.tickets();
        tickets.last += 1;
        let ticket = tickets.last;
        tickets.of.insert(guarded, ticket);
        LeftTransaction { transaction, guarded, ticket }
    }

    fn has(&self, held: &LeftTransaction) -> bool {
        self.tickets().of.get(&held.guarded) == Some(&held.ticket)
    }

    /// Forgets a transaction; one that was held later stays.
    pub(super) fn forget(&self, held: &LeftTransaction) {
        let mut tickets = self.tickets();
        if tickets.of.get(&held.guarded) == Some(&held.ticket) {
            tickets.of.remove(&held.guarded);
        }
    }
}

impl LeftTransaction {
    /// The answer to the client.
    pub(super) fn told(&self) -> Value {
        let Transaction { body, .. } = &self.transaction;
        json!({"type": "on_disconnect", "id": self.id().to_string(), "until": body.until.to_string()})
    }

    fn id(&self) -> TransactionId {
        self.transaction.id()
    }
}

/// The answer to a client for which the door holds nothing any more.
pub(super) fn nothing(code: &str, message: &str) -> Value {
    json!({"type": "on_disconnect", "id": null, "code": code, "message": message})
}

/// What a transaction guards, if it may be left.
fn guards(transaction: &Transaction) -> Option<Guarded> {
    let body = &transaction.body;
    let stopped = match &body.operation {
        Operation::Cancel(_) => None,
        Operation::Session(operation) => match **operation {
            SessionOperation::Alive { slot, through: 0 } => Some(slot),
            _ => return None,
        },
        _ => return None,
    };
    Some((body.account, slot_of(body.sequence), stopped))
}

/// Takes what a connection leaves; `checked` counts the signatures that were checked for it since its last
/// heartbeat.
pub(super) fn hold(api: &Api, logins: &Logins, checked: &mut usize, text: &str) -> Result<LeftTransaction, Refused> {
    let refused = |why: String| ("leave_refused", why);
    let bytes = bytes_of_hex("on_disconnect", text).map_err(|failure| refused(failure.1.message))?;
    let transaction: Transaction =
        borsh::from_slice(&bytes).map_err(|error| refused(format!("on_disconnect: not a transaction: {error}")))?;
    let what = "only a stop of a session key's slot (session_alive with through 0) or a cancel may be left";
    let guarded = guards(&transaction).ok_or_else(|| refused(what.into()))?;
    if !logins.has(guarded.0, guarded.1) {
        let who = match guarded.1 {
            0 => format!("the key of {}", guarded.0),
            slot => format!("the session key in slot {slot} of {}", guarded.0),
        };
        return Err(("login_required", format!("log in with {who} first, which signed what is left")));
    }
    if let Err((code, message)) = may_count(api, &transaction) {
        return Err(refused(format!("it could not count ({code}): {message}")));
    }
    *checked += 1;
    if *checked > CHECKS {
        return Err(("too_many_left", format!("at most {CHECKS} a second are left by one connection")));
    }
    let network = api.published().views().outline().validators.terms.network;
    if !transaction.is_signed(&network) {
        return Err(refused("the signature is wrong".into()));
    }
    if api.backend.standing().validator.is_some_and(|validator| validator.follows) {
        return Err(refused("this node follows and takes no transactions: leave it with a validator".into()));
    }
    Ok(api.holders.hold(transaction, guarded))
}

/// Why what a connection has left is held no more.
pub(super) fn let_go(api: &Api, held: &LeftTransaction) -> Option<Value> {
    if !api.holders.has(held) {
        let message = "another connection with this key has left one for this slot";
        return Some(nothing("taken_over", message));
    }
    let (code, message) = may_count(api, &held.transaction).err()?;
    api.holders.forget(held);
    Some(nothing(&code, &message))
}

/// Whether a transaction, if its signature is right, may be in the next block, as far as key and numbers say.
fn may_count(api: &Api, transaction: &Transaction) -> Result<(), (Cow<'static, str>, String)> {
    let Transaction { body, signed_by } = transaction;
    let refused = |refusal: Refusal| {
        let ErrorText { code, message } = bodies::refused(refusal);
        (code, message)
    };
    let (chain, network, until_max, height) = {
        let views = api.published().views();
        let outline = views.outline();
        (outline.chain, outline.validators.terms.network, outline.until_max, views.height())
    };
    let is_of_network = match signed_by {
        SignedBy::Key { .. } | SignedBy::Policy(_) => true,
        SignedBy::TypedData { network: named, .. } => *named == network,
    };
    if body.chain != chain || !is_of_network {
        return Err(("other_network".into(), format!("it is not of chain {chain} and network {network}")));
    }
    if body.until <= height {
        return Err(refused(Refusal::ENDED));
    }
    if body.until > height.saturating_add(until_max) {
        return Err(refused(Refusal::ENDS_TOO_LATE));
    }
    let AccountRead { account, keys, .. } = api.backend.account(&body.account);
    let account = account.ok_or_else(|| refused(Refusal::UNKNOWN_ACCOUNT))?;
    match (slot_of(body.sequence), signed_by) {
        (0, SignedBy::TypedData { .. }) => {}
        (0, SignedBy::Policy(signed)) => {
            let keys = keys.ok_or_else(|| refused(Refusal::NO_POLICY))?;
            keys.check_request(signed, body.operation.row().needs).map_err(refused)?;
        }
        (0, SignedBy::Key { signer, .. }) => {
            is_key_of(&account.address, Some(&account), keys.as_ref(), signer)
                .map_err(|why| ("wrong_key".into(), why))?;
        }
        (slot, signed_by) => {
            let record = account.sessions.as_ref().and_then(|sessions| sessions.get(slot));
            let record = record.filter(|record| !record.is_closed && record.until > height);
            let record = record.ok_or_else(|| refused(Refusal::SESSION_ENDED))?;
            if !matches!(signed_by, SignedBy::Key { signer, .. } if *signer == record.key) {
                return Err(refused(Refusal::WRONG_SESSION_KEY));
            }
        }
    }
    account.check(body.sequence).map_err(|error| refused(error.into()))
}

/// Submits what a connection has left that has ended. While there is no room for it, it is tried again.
pub(super) async fn submit_left(api: &Api, from: Client, held: LeftTransaction) {
    let until = held.transaction.body.until;
    while api.holders.has(&held) && api.published().views().height() < until {
        let answer = match api.backend.submit(from, vec![held.transaction.clone()], false) {
            Ok(receiver) => receiver.await.ok().and_then(|answers| answers.into_iter().next()),
            Err(Closed::Busy | Closed::OverBudget { .. } | Closed::DiskFull) => Some(Answer::Full),
            Err(Closed::Stopping | Closed::Follows | Closed::NeedsRules(_)) => None,
        };
        if !matches!(answer, Some(Answer::Full | Answer::OverBudget { .. })) {
            break;
        }
        tokio::time::sleep(RETRY).await;
    }
    api.holders.forget(&held);
}
