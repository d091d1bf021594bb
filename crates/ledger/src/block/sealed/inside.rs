//! The third pass: what is in the envelopes that paid, on what plain transactions and fees leave.

use std::collections::BTreeSet;

use primitives::{Enclosure, Operation, SignedBy, Transaction, TransactionId, verify_sealed};
use proofs::{Pair, Place, Refusal};
use rayon::prelude::*;
use smallvec::SmallVec;

use crate::block::checks::check_in;
use crate::block::claims::{AccountClaims, Standing};
use crate::block::filter::{Admitted, Filtered};
use crate::block::footprint::place_of;
use crate::block::room;
use crate::block::together::{Candidate, counting_one, judge_together, why_not};
use crate::places::accounts::shard_of;
use crate::state::Ledger;

/// An operation of an envelope that paid.
#[derive(Clone, Debug)]
pub(crate) struct Enclosed {
    /// The index of the envelope among the block's native transactions.
    pub envelope: u32,
    pub within: Enclosure,
    pub transaction: Transaction,
}

impl Enclosed {
    pub(crate) fn id(&self) -> TransactionId {
        self.transaction.sealed_id(&self.within)
    }
}

/// Judges the operations of envelopes. `transactions` are the block's and behind them `enclosed`; `filtered` has judged
/// the former, and has an answer for all of them afterwards.
pub(crate) fn filter_inside(
    ledger: &Ledger,
    enclosed: &[Enclosed],
    transactions: &[&Transaction],
    filtered: &mut Filtered,
) {
    if enclosed.is_empty() {
        return;
    }
    let first = transactions.len() - enclosed.len();
    let signed: Vec<(Enclosure, &Transaction)> = enclosed.iter().map(|one| (one.within, &one.transaction)).collect();
    let signed = verify_sealed(&ledger.network(), &signed);
    let checked: Vec<Result<(usize, Candidate), Refusal>> = enclosed
        .par_iter()
        .zip(&signed)
        .enumerate()
        .map(|(at, (one, signed))| check(ledger, (first + at) as u32, &one.transaction, *signed))
        .collect();
    filtered.refusals.resize(transactions.len(), None);
    let mut candidates: Vec<(usize, Candidate)> = Vec::with_capacity(checked.len());
    for (index, checked) in (first..).zip(checked) {
        match checked {
            Ok(candidate) => candidates.push(candidate),
            Err(refusal) => filtered.refusals[index] = Some(refusal),
        }
    }
    candidates.sort_unstable_by(|(a, one), (b, other)| (a, one.place()).cmp(&(b, other.place())));
    let opens = opened_pairs(ledger, transactions, filtered);
    let (mut refused, mut idle) = (Vec::new(), BTreeSet::new());
    for of_account in candidates.chunk_by_mut(|a, b| (a.0, a.1.position) == (b.0, b.1.position)) {
        let (shard, position) = (of_account[0].0, of_account[0].1.position);
        let standing = filtered.standing(transactions, shard, position);
        let id = |one: &Candidate| enclosed[one.index as usize - first].id();
        filter_account(ledger, of_account, &standing, &id, &mut refused, &mut idle);
    }
    refused.into_iter().for_each(|(index, refusal)| filtered.refusals[index as usize] = Some(refusal));
    let stands = |one: &&(usize, Candidate)| filtered.refusals[one.1.index as usize].is_none();
    let opened = candidates.iter().filter(stands);
    let opened = opened.filter_map(|(_, one)| Some((room::opened(ledger, one.transaction)?, one.index))).collect();
    if room::may_lack_pairs(ledger) {
        room::refuse_pairs(ledger, &opens, opened, &mut filtered.refusals);
    }
    let admitted = |(shard, one): &(usize, Candidate)| {
        let &Candidate { index, position, found, .. } = one;
        let is_idle = idle.contains(&index);
        filtered.refusals[index as usize].is_none().then_some((*shard, Admitted { index, position, found, is_idle }))
    };
    let admitted = candidates.iter().filter_map(admitted).collect();
    filtered.admit(transactions, admitted);
}

/// Checks an operation of an envelope alone, against the state before the block.
fn check<'a>(
    ledger: &Ledger,
    index: u32,
    transaction: &'a Transaction,
    signed: bool,
) -> Result<(usize, Candidate<'a>), Refusal> {
    if !transaction.body.operation.is_sealable() || matches!(transaction.signed_by, SignedBy::Policy(_)) {
        return Err(Refusal::NOT_SEALABLE);
    }
    if transaction.ends_too_late_in_envelope(ledger.next_height()) {
        return Err(Refusal::SEALED_TOO_LATE);
    }
    let shard = shard_of(&transaction.body.account);
    let (position, found) = check_in(ledger, &ledger.places.accounts.shards()[shard], transaction, signed, false)?;
    Ok((shard, Candidate { index, position, found, transaction }))
}

/// Checks the operations of one account together, sorted by sequence number.
fn filter_account(
    ledger: &Ledger,
    candidates: &mut [(usize, Candidate)],
    standing: &[Standing],
    id: &dyn Fn(&Candidate) -> TransactionId,
    refused: &mut Vec<(u32, Refusal)>,
    idle: &mut BTreeSet<u32>,
) {
    let (shard, position) = (candidates[0].0, candidates[0].1.position);
    let account = ledger.places.accounts.shards()[shard].at(position);
    let mut claims = AccountClaims::default();
    claims.stand(standing, ledger.fee);
    let replaced: Vec<(Pair, Place)> = claims.replaced().collect();
    candidates.iter_mut().for_each(|(_, one)| find_anew(ledger, one, &replaced));
    let mut counting: SmallVec<[&Candidate; 8]> = SmallVec::new();
    for same in candidates.chunk_by(|a, b| a.1.transaction.body.sequence == b.1.transaction.body.sequence) {
        let sequence = same[0].1.transaction.body.sequence;
        if standing.iter().any(|one| one.transaction.body.sequence == sequence) {
            refused.extend(same.iter().map(|(_, one)| (one.index, Refusal::SEQUENCE_CONFLICT)));
            continue;
        }
        let counts = counting_one(same.iter().map(|(_, one)| one), id);
        let others = same.iter().map(|(_, one)| one).filter(|other| other.index != counts.index);
        refused.extend(others.map(|other| (other.index, why_not(other, counts))));
        counting.push(counts);
    }
    counting.retain(|one| {
        let finds = one.found > 0 || !matches!(one.transaction.body.operation, Operation::Cancel(_));
        if !finds {
            refused.push((one.index, Refusal::UNKNOWN_OFFER));
        }
        finds
    });
    let mut repeated = Vec::new();
    judge_together(ledger, account, counting, standing, AccountClaims::default(), refused, &mut repeated);
    // What stands already is not idle because something in an envelope cancels what it replaces.
    idle.extend(repeated.into_iter().filter(|index| candidates.iter().any(|(_, one)| one.index == *index)));
}

/// A cancel does not find what a plain transaction replaces.
fn find_anew(ledger: &Ledger, candidate: &mut Candidate, replaced: &[(Pair, Place)]) {
    if let Operation::Cancel(places) = &candidate.transaction.body.operation
        && !replaced.is_empty()
    {
        let places = places.iter().map(|named| place_of(candidate.transaction.body.account, named));
        let rests = |place: &(Pair, Place)| !replaced.contains(place) && ledger.places.book.rests(*place).is_some();
        candidate.found = places.filter(rests).count() as u8;
    }
}

/// The pairs that plain transactions open, each once.
fn opened_pairs(ledger: &Ledger, transactions: &[&Transaction], filtered: &Filtered) -> Vec<Pair> {
    if !room::may_lack_pairs(ledger) {
        return Vec::new();
    }
    let opened = |one: &Admitted| room::opened(ledger, transactions[one.index as usize]);
    let opened: BTreeSet<Pair> = filtered.admitted.iter().flatten().filter_map(opened).collect();
    opened.into_iter().collect()
}
