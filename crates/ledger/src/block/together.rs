//! The transactions of one account, judged together: which of one number counts, and what fits its balance and the caps
//! of its session keys. The filter's head says the rules.

use primitives::{Sequence, SessionSlot, SignedBy, Transaction, TransactionId, slot_of};
use proofs::Refusal;
use smallvec::SmallVec;

use super::claims::{AccountClaims, Standing};
use super::once::Sum;
use crate::places::accounts::Account;
use crate::sessions::{Precedence, is_relief};
use crate::state::Ledger;

/// A transaction that is valid alone.
pub(super) struct Candidate<'a> {
    pub index: u32,
    pub position: u32,
    /// How many of the offers that a cancel names rest.
    pub found: u8,
    pub transaction: &'a Transaction,
}

impl Candidate<'_> {
    /// Orders the candidates of a shard.
    pub(super) fn place(&self) -> (u32, Sequence, &SignedBy, u32) {
        (self.position, self.transaction.body.sequence, &self.transaction.signed_by, self.index)
    }

    fn is_relief(&self) -> bool {
        is_relief(&self.transaction.body.operation)
    }

    fn precedence(&self) -> Precedence {
        Precedence::of(&self.transaction.body)
    }

    /// The slot of its session key; 0 if the account's own key signs.
    fn slot(&self) -> SessionSlot {
        slot_of(self.transaction.body.sequence)
    }
}

/// Of an account's candidates with one number, the one that counts: that which ends last, and of those the one with
/// the highest id. Of copies, whose signatures may differ, it is the first.
pub(super) fn counting_one<'c, 'a>(
    same: impl DoubleEndedIterator<Item = &'c Candidate<'a>> + ExactSizeIterator,
    id: impl Fn(&Candidate) -> TransactionId,
) -> &'c Candidate<'a>
where
    'a: 'c,
{
    let mut same = same;
    if same.len() == 1 {
        return same.next().expect("there is one");
    }
    let rank = |one: &&Candidate| (one.transaction.body.until, id(one));
    same.rev().max_by_key(rank).expect("not empty")
}

/// Why a candidate does not count beside another one with its number.
pub(super) fn why_not(candidate: &Candidate, counts: &Candidate) -> Refusal {
    match candidate.transaction.body == counts.transaction.body {
        true => Refusal::DUPLICATE,
        false => Refusal::SEQUENCE_CONFLICT,
    }
}

/// Checks the candidates of one account together; they are sorted by sequence number.
pub(super) fn filter_account(
    ledger: &Ledger,
    account: &Account,
    candidates: &[Candidate],
    claims: AccountClaims,
    refused: &mut Vec<(u32, Refusal)>,
    idle: &mut Vec<u32>,
) {
    let mut counting: SmallVec<[&Candidate; 8]> = SmallVec::new();
    for same in candidates.chunk_by(|a, b| a.transaction.body.sequence == b.transaction.body.sequence) {
        let counts = counting_one(same.iter(), |one| one.transaction.id());
        let others = same.iter().filter(|other| other.index != counts.index);
        refused.extend(others.map(|other| (other.index, why_not(other, counts))));
        counting.push(counts);
    }
    judge_together(ledger, account, counting, &[], claims, refused, idle);
}

/// Checks transactions of one account together, each with another number and sorted by it, on what those leave that
/// count already.
pub(super) fn judge_together(
    ledger: &Ledger,
    account: &Account,
    mut counting: SmallVec<[&Candidate; 8]>,
    standing: &[Standing],
    mut claims: AccountClaims,
    refused: &mut Vec<(u32, Refusal)>,
    idle: &mut Vec<u32>,
) {
    let owners = counting.partition_point(|one| one.slot() == 0);
    let has_sessions = owners < counting.len();
    if has_sessions {
        refuse_beyond_caps(ledger, account, &mut counting, standing, refused);
        // The owner's come last: of replacements of one offer the last one counts.
        counting.rotate_left(owners);
    }
    counting.iter().for_each(|one| claims.read(one.index, one.transaction, ledger.fee));
    claims.stand(standing, ledger.fee);
    let Some(conflict) = claims.conflict(ledger, account) else { return idle.extend(claims.repeated()) };
    let is_own = |one: &Candidate| one.precedence() == Precedence::Owner;
    let sets: [&dyn Fn(&Candidate) -> bool; 4] =
        [&|one| one.precedence() < Precedence::Key, &is_own, &|one| one.is_relief(), &|one| {
            is_own(one) && one.is_relief()
        }];
    let sets = if has_sessions { &sets[..] } else { &sets[2..3] };
    for stands in sets {
        let mut claims = AccountClaims::default();
        counting.iter().filter(|one| stands(one)).for_each(|one| claims.read(one.index, one.transaction, ledger.fee));
        claims.stand(standing, ledger.fee);
        if claims.conflict(ledger, account).is_none() {
            let removed = counting.iter().filter(|one| !stands(one));
            refused.extend(removed.map(|one| (one.index, conflict)));
            return idle.extend(claims.repeated());
        }
    }
    refused.extend(counting.iter().map(|one| (one.index, conflict)));
}

/// Removes transactions of session keys that together would use more than a cap, or open more offers than a key may
/// have. Those of each key are judged apart; they are sorted by sequence number.
fn refuse_beyond_caps<'c, 'a>(
    ledger: &Ledger,
    account: &Account,
    counting: &mut SmallVec<[&'c Candidate<'a>; 8]>,
    standing: &[Standing],
    refused: &mut Vec<(u32, Refusal)>,
) {
    let before = refused.len();
    for of_slot in counting.chunk_by(|a, b| a.slot() == b.slot()).filter(|of_slot| of_slot[0].slot() > 0) {
        let beyond = |ones: &mut dyn Iterator<Item = &&Candidate>| {
            let mut claims = AccountClaims::default();
            ones.for_each(|one| claims.read(one.index, one.transaction, ledger.fee));
            claims.stand(standing, ledger.fee);
            claims.sums.retain(|(sum, _)| !matches!(sum, Sum::Spent(_)));
            claims.conflict(ledger, account)
        };
        let Some(refusal) = beyond(&mut of_slot.iter()) else { continue };
        let relief = beyond(&mut of_slot.iter().filter(|one| one.is_relief())).is_none();
        let removed = of_slot.iter().filter(|one| !(relief && one.is_relief()));
        refused.extend(removed.map(|one| (one.index, refusal)));
    }
    let removed = &refused[before..];
    if !removed.is_empty() {
        counting.retain(|one| !removed.iter().any(|(index, _)| *index == one.index));
    }
}
