//! The intake of transactions: signatures are checked in batches, in turns of the clients, and then the pool decides.
//!
//! **Invariant**: nothing is noted, shown or reserved in an account's name before its signature holds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doors::{Answer, EthereumTaken, Noted};
use ledger::Refusal;
use ledger::contracts::EthereumFault;
use primitives::{Transaction, TransactionId};
use rayon::prelude::*;
use replica::{EthereumCandidate, EthereumReject, PoolEntry, Reject};
use sockets::Client;

use crate::intake_queue::{IntakeQueue, Part, Submission};
use crate::pool::Pooled;
use crate::shared::Shared;

/// How long the thread waits until it looks whether the node stops.
const IDLE: Duration = Duration::from_millis(100);

/// The intake thread.
pub(crate) fn admit_submissions(shared: &Arc<Shared>) {
    let closing = Closing(&shared.intake);
    while !shared.life.stopping.load(Ordering::Acquire) {
        let parts = shared.intake.next(|| shared.now_ms(), IDLE);
        if !parts.is_empty() {
            judge(shared, parts);
        }
    }
    drop(closing);
}

/// However the thread ends, nobody waits for it any more.
struct Closing<'a>(&'a IntakeQueue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Checks the signatures of all parts together, and gives what holds to the pool.
fn judge(shared: &Shared, mut parts: Vec<Part>) {
    let transactions: Vec<&Transaction> = parts.iter().flat_map(|part| &part.natives).collect();
    let valid = shared.seat.verified.lists.verify(&transactions);
    let ids: Vec<TransactionId> = transactions.par_iter().map(|transaction| transaction.id()).collect();
    let mut checked = ids.into_iter().zip(valid);
    let mut false_units = Vec::new();
    for part in &mut parts {
        let units = match &mut part.submission {
            Submission::Native { batch, wait, .. } => {
                let wanted = Wanted { wait: *wait, is_noted: !matches!(part.client, Client::Validator(_)) };
                admit(shared, std::mem::take(&mut part.natives), &mut checked, wanted, &mut batch.told)
            }
            Submission::Ethereum { batch, is_new, .. } => {
                let (taken, units) = admit_ethereum(shared, std::mem::take(&mut part.ethereum));
                batch.told.extend(taken.answers);
                *is_new |= taken.is_new;
                units
            }
        };
        false_units.extend((units > 0).then_some((part.client, units)));
    }
    shared.intake.judged(shared.now_ms(), parts, &false_units);
}

/// What the sender of transactions wants.
#[derive(Clone, Copy)]
struct Wanted {
    /// Hears of the transaction's block.
    wait: bool,
    /// Its orders are noted: it is a client of this node.
    is_noted: bool,
}

/// What is known of a transaction before the pool decides.
enum Judged {
    Known(Answer),
    /// It goes to the pool, and its order may be noted.
    Enters(Option<Noted>),
}

/// Gives transactions to the pool whose signatures are checked. Returns the signatures of those that were false.
fn admit(
    shared: &Shared,
    transactions: Vec<Transaction>,
    checked: &mut impl Iterator<Item = (TransactionId, bool)>,
    wanted: Wanted,
    told: &mut Vec<Answer>,
) -> u64 {
    let ledger = shared.read_ledger();
    let mut pooled = shared.pool.lock();
    let views = shared.readers.published.views();
    let (height, until_max) = (ledger.height(), ledger.limits().until_max);
    let (arrived_ms, mut false_units) = (shared.now_ms(), 0);
    let mut entries = Vec::with_capacity(transactions.len());
    let mut known = Vec::with_capacity(transactions.len());
    for transaction in transactions {
        let (id, valid) = checked.next().expect("one for each transaction");
        let judged = match views.find(&id) {
            _ if !valid => {
                false_units += transaction.signature_count();
                Judged::Known(Answer::Refused(Refusal::BAD_SIGNATURE))
            }
            Some(found) if found.outcome.refusal().is_none() => Judged::Known(Answer::Committed(id, found)),
            _ if !wanted.is_noted => Judged::Enters(None),
            _ => match shared.taken.note(&transaction, id, height, until_max) {
                Ok(noted) => Judged::Enters(noted),
                Err(other) => Judged::Known(Answer::ClientIdUsed(other)),
            },
        };
        if matches!(judged, Judged::Enters(_)) {
            entries.push(PoolEntry::new(id, arrived_ms, transaction));
        }
        known.push((id, judged));
    }
    let mut entered = pooled.mempool.admit_all(entries, &ledger).into_iter();
    for (id, judged) in known {
        let answer = match judged {
            Judged::Known(answer) => answer,
            Judged::Enters(noted) => {
                let entered = entered.next().expect("one for each entry");
                let answer = pool_answer(&mut pooled, id, entered, wanted.wait);
                if !matches!(answer, Answer::Pending(..)) {
                    noted.into_iter().for_each(|noted| shared.taken.take_back(noted));
                }
                answer
            }
        };
        shared.metrics.submitted(answer.code());
        told.push(answer);
    }
    pooled.tell_displaced();
    shared.note_pool(&pooled);
    drop(pooled);
    shared.pool.wake();
    false_units
}

/// The answer to a transaction about which the pool has decided.
fn pool_answer(pooled: &mut Pooled, id: TransactionId, entered: Result<(), Reject>, wait: bool) -> Answer {
    match entered {
        // Its number may be used by itself, in a block that no view has yet. A client that took this for the number of
        // another transaction would sign anew, and pay twice.
        Err(Reject::Refused(Refusal::SEQUENCE_USED | Refusal::SEQUENCE_TOO_OLD)) if pooled.is_unpublished(&id) => {
            Answer::Pending(id, wait.then(|| pooled.wait_for(id)))
        }
        Ok(()) | Err(Reject::Waiting) => Answer::Pending(id, wait.then(|| pooled.wait_for(id))),
        Err(Reject::Full) => Answer::Full,
        Err(Reject::Refused(refusal)) => Answer::Refused(refusal),
    }
}

/// Recovers the senders of Ethereum transactions, and gives them to the pool. Returns the answers, and how many were
/// false: whatever no state can make valid, and what nobody sent, since the sender of a false signature is an account
/// that does not exist.
pub(crate) fn admit_ethereum(shared: &Shared, transactions: Vec<Vec<u8>>) -> (EthereumTaken, u64) {
    let (rules, has_contracts) = {
        let ledger = shared.read_ledger();
        (ledger.next_transaction_rules(), ledger.contracts().head().is_some())
    };
    if !has_contracts {
        let answers = transactions.iter().map(|_| Err(EthereumReject::NoContracts)).collect();
        return (EthereumTaken { answers, is_new: false }, 0);
    }
    let recover = |bytes| EthereumCandidate::recover(bytes, rules);
    let candidates: Vec<Result<EthereumCandidate, EthereumFault>> = transactions.into_par_iter().map(recover).collect();
    let false_units = {
        let ledger = shared.read_ledger();
        let is_of_nobody = |one: &EthereumCandidate| ledger.accounts().get(&one.sender()).is_none();
        candidates.iter().filter(|one| one.as_ref().map_or(true, is_of_nobody)).count() as u64
    };
    (enter(shared, candidates), false_units)
}

/// Adds Ethereum transactions with known senders to the pool.
pub(crate) fn enter(shared: &Shared, candidates: Vec<Result<EthereumCandidate, EthereumFault>>) -> EthereumTaken {
    let ledger = shared.read_ledger();
    let mut pooled = shared.pool.lock();
    let views = shared.readers.published.views();
    let now_ms = shared.now_ms();
    let mut entered = Vec::new();
    let mut enter = |candidate: Result<EthereumCandidate, EthereumFault>| {
        let candidate = candidate?;
        let id = candidate.id();
        if views.ethereum().receipt(&id).is_some() {
            return Ok(id);
        }
        match pooled.mempool.ethereum.enter(candidate, now_ms, &ledger) {
            Err(EthereumReject::Waiting) => Ok(id),
            Err(reject) => Err(reject),
            Ok(id) => {
                entered.push(id);
                Ok(id)
            }
        }
    };
    let answers = candidates.into_iter().map(&mut enter).collect();
    shared.note_pool(&pooled);
    drop((views, pooled, ledger));
    shared.readers.published.announce_pending(&entered);
    shared.pool.wake();
    EthereumTaken { answers, is_new: !entered.is_empty() }
}
