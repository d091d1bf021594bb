//! The intake of transactions: signatures are checked in batches, then the pool decides.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use doors::Answer;
use ledger::Refusal;
use ledger::contracts::EthereumFault;
use primitives::{Transaction, TransactionId, verify_transactions};
use rayon::prelude::*;
use replica::{EthereumCandidate, EthereumReject, PoolEntry, Reject};

use crate::shared::{Shared, Submission};

/// Maximum number of transactions whose signatures are checked together.
const INTAKE_BATCH: usize = 8_192;

/// The intake thread.
pub(crate) fn admit_submissions(shared: &Arc<Shared>, submissions: &Receiver<Submission>) {
    while !shared.life.stopping.load(Ordering::Acquire) {
        let Ok(first) = submissions.recv_timeout(Duration::from_millis(100)) else { continue };
        let mut gathered = vec![first];
        let mut count = gathered[0].transactions.len();
        while count < INTAKE_BATCH {
            let Ok(next) = submissions.try_recv() else { break };
            count += next.transactions.len();
            gathered.push(next);
        }
        let transactions: Vec<&Transaction> = gathered.iter().flat_map(|s| &s.transactions).collect();
        let valid = verify_transactions(&shared.network, &transactions);
        let ids: Vec<TransactionId> = transactions.par_iter().map(|transaction| transaction.id()).collect();
        let mut checked = ids.into_iter().zip(valid);
        for mut submission in gathered {
            let ethereum = std::mem::take(&mut submission.ethereum);
            if !ethereum.is_empty() {
                // Another validator forwarded them; it reports rejections to its clients itself.
                drop(admit_ethereum(shared, ethereum));
            }
            let answers = admit(shared, submission.transactions, &mut checked, submission.wait);
            // The sender may be gone.
            drop(submission.reply.send(answers));
        }
    }
}

fn admit(
    shared: &Shared,
    transactions: Vec<Transaction>,
    checked: &mut impl Iterator<Item = (TransactionId, bool)>,
    wait: bool,
) -> Vec<Answer> {
    let ledger = shared.read_ledger();
    let mut pooled = shared.pool.lock();
    let views = shared.readers.published.views();
    let arrived_ms = shared.now_ms();
    let mut entries = Vec::with_capacity(transactions.len());
    let mut known = Vec::with_capacity(transactions.len());
    for transaction in transactions {
        let (id, valid) = checked.next().expect("one for each transaction");
        let answer = match views.find(&id) {
            _ if !valid => Some(Answer::Refused(Refusal::BAD_SIGNATURE)),
            Some(found) if found.outcome.refusal().is_none() => Some(Answer::Committed(id, found)),
            _ => None,
        };
        if answer.is_none() {
            entries.push(PoolEntry { id, arrived_ms, transaction });
        }
        known.push((id, answer));
    }
    let mut entered = pooled.mempool.admit_all(entries, &ledger).into_iter();
    let mut answer = |(id, known): (TransactionId, Option<Answer>)| {
        let answer = known.unwrap_or_else(|| match entered.next().expect("one for each entry") {
            // Its number may be used by itself, in a block that no view has yet: a client that took this for the number
            // of another transaction would sign anew, and pay twice.
            Err(Reject::Refused(Refusal::SEQUENCE_USED | Refusal::SEQUENCE_TOO_OLD)) if pooled.is_unpublished(&id) => {
                Answer::Pending(id, wait.then(|| pooled.wait_for(id)))
            }
            Ok(()) | Err(Reject::Waiting) => Answer::Pending(id, wait.then(|| pooled.wait_for(id))),
            Err(Reject::Full) => Answer::Full,
            Err(Reject::Refused(refusal)) => Answer::Refused(refusal),
        });
        shared.metrics.submitted(answer.code());
        answer
    };
    let answers = known.into_iter().map(&mut answer).collect();
    pooled.tell_displaced();
    shared.note_pool(&pooled);
    drop(pooled);
    shared.pool.wake();
    answers
}

/// Admits Ethereum transactions; see [`crate::Exchange::submit_ethereum`].
pub(crate) fn admit_ethereum(
    shared: &Shared,
    transactions: Vec<Vec<u8>>,
) -> Vec<Result<TransactionId, EthereumReject>> {
    let (chain, has_contracts) = {
        let ledger = shared.read_ledger();
        (ledger.chain(), ledger.contracts().head().is_some())
    };
    if !has_contracts {
        return transactions.iter().map(|_| Err(EthereumReject::NoContracts)).collect();
    }
    let recover = |bytes| EthereumCandidate::recover(bytes, chain);
    enter(shared, transactions.into_par_iter().map(recover).collect())
}

/// Adds Ethereum transactions with known senders to the pool.
pub(crate) fn enter(
    shared: &Shared,
    candidates: Vec<Result<EthereumCandidate, EthereumFault>>,
) -> Vec<Result<TransactionId, EthereumReject>> {
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
    answers
}
