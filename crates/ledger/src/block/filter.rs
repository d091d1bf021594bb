//! The deterministic filter decides which transactions of a block count (SPEEDEX §8 and appendix I).
//!
//! For a block, each transaction is first checked alone against the state before the block. Of those of one account
//! with one sequence number, the one that ends last counts (of those the one with the highest id), and the others are
//! removed. Then all transactions of the account are checked together. If they could spend more than the account has,
//! or claim a key of the account twice (its key, its stake), all of them are removed but its cancels. Cancels stand if
//! the balance covers their fees, because they only give money back; so do ends and timers of session keys. Cancels
//! claim nothing: an offer that several of them name is cancelled once, and each pays. Of the replacements of one offer
//! that with the highest number counts, unless the offer is cancelled ([`Scope::Latest`]); the others pay and do
//! nothing. Transactions of session keys are checked before that: of those of one slot, which together would use more
//! than a cap or open too many offers, all are removed but cancels and timers whose fees fit. And if all of the
//! account's spend too much, those of its session keys are removed first (module `sessions`). Conflicts between
//! accounts come last: all transactions that claim the same validator key, or whose issues together exceed an asset's
//! cap, are removed. Some transactions have an effect that does not depend on who submits them, such as those that
//! create one account. Of these, the one with the lowest id counts, and the others do nothing ([`Scope::KeepOne`]). An
//! operation's footprint says what it spends and claims. At the very end, listings and offers are removed for which
//! there is no room (module `room`): listings with the highest ids, and offers that would open the highest pairs.
//!
//! Accusations and stakes beyond the quota of their sub-block ([`crate::Quota`]) are refused before any other check.
//!
//! **Properties.** Which of several transactions of one number counts follows from their ids, and every later check
//! uses all that count, before any are removed. So the answer depends neither on order nor on threads, and removing a
//! transaction cannot cause a conflict among the others. Only quota refusals depend on a transaction's sub-block and
//! its place there. Who kept an old transaction of somebody else can submit it again until it ends and while its number
//! is free. A substitute that ends later stands against it.
//!
//! **Deviations from the paper.** It removes all of an account's transactions if two have one number: then everybody
//! who has seen two of them could silence the account block after block. It removes cancels with the rest, too. A
//! transaction that is in the block more than once (clients retry at several validators) counts once and is no
//! conflict. Issues are limited here because any account may be an issuer.

use std::collections::BTreeSet;

use primitives::{Amount, Operation, RULES_OF_ENVELOPES, Transaction, TransactionId};
use proofs::Refusal;
use rayon::prelude::*;

use super::checks::{admit_but_for_balance, check_in};
use super::claims::{AccountClaims, Shared, Standing, shared_room, visit};
use super::once::{Once, Sum};
use super::room;
use super::together::{Candidate, filter_account};
use crate::places::accounts::{SHARDS, shard_of};
use crate::places::scope::Scope;
use crate::state::Ledger;

/// A transaction that will be applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    /// Its index in the block.
    pub index: u32,
    /// Its sender's position in the sender's shard.
    pub position: u32,
    /// How many of the offers that a cancel names rest.
    pub found: u8,
    /// Whether another transaction already has the effect that this one asks for: then this one pays and does nothing
    /// else.
    pub is_idle: bool,
}

/// The filter's answer.
pub(crate) struct Filtered {
    /// Transactions to apply, by the sender's shard; within a shard by account and sequence number.
    pub admitted: Vec<Vec<Admitted>>,
    /// For each transaction of the block, the reason why it is refused, if it is.
    pub refusals: Vec<Option<Refusal>>,
}

impl Filtered {
    /// Fees that the applied transactions cost together.
    pub(crate) fn weight(&self, transactions: &[&Transaction]) -> u64 {
        let of = |admitted: &Admitted| transactions[admitted.index as usize].weight();
        self.admitted.iter().flatten().map(of).sum()
    }

    /// Those of the account at a position of a shard that count.
    pub(super) fn standing<'a>(
        &self,
        transactions: &[&'a Transaction],
        shard: usize,
        position: u32,
    ) -> Vec<Standing<'a>> {
        let of_shard = &self.admitted[shard];
        let from = of_shard.partition_point(|one| one.position < position);
        let own = of_shard[from..].iter().take_while(|one| one.position == position);
        let standing = |&Admitted { index, is_idle, .. }: &Admitted| Standing {
            index,
            transaction: transactions[index as usize],
            is_idle,
        };
        own.map(standing).collect()
    }

    /// Admits more transactions, each with its sender's shard.
    pub(super) fn admit(&mut self, transactions: &[&Transaction], more: Vec<(usize, Admitted)>) {
        let shards: BTreeSet<usize> = more.iter().map(|(shard, _)| *shard).collect();
        more.into_iter().for_each(|(shard, one)| self.admitted[shard].push(one));
        let place = |one: &Admitted| (one.position, transactions[one.index as usize].body.sequence);
        shards.into_iter().for_each(|shard| self.admitted[shard].sort_by_key(place));
    }
}

/// The result of checking one shard's transactions.
#[derive(Default)]
struct Judged<'a> {
    /// Transactions that are valid alone.
    candidates: Vec<Candidate<'a>>,
    refused: Vec<(u32, Refusal)>,
    /// Those that pay and do nothing, because another one of the sender has the same effect.
    idle: Vec<u32>,
    /// Their claims that other accounts may make as well.
    shared: Shared,
}

/// Checks all transactions of a block. `valid[i]` says whether the signature of `transactions[i]` is valid, and
/// `beyond` lists those beyond the quotas of their sub-blocks.
pub(crate) fn filter(
    ledger: &Ledger,
    transactions: &[&Transaction],
    valid: Option<&[bool]>,
    beyond: &[u32],
) -> Filtered {
    let order = by_shard(transactions);
    let judged: Vec<Judged> = (0..SHARDS)
        .into_par_iter()
        .map(|shard| filter_shard(ledger, shard, &order.indices[order.range(shard)], transactions, valid, beyond))
        .collect();
    let mut refusals = vec![None; transactions.len()];
    for &(index, refusal) in judged.iter().flat_map(|judged| &judged.refused) {
        refusals[index as usize] = Some(refusal);
    }
    let shared = judged.iter().map(|judged| &judged.shared);
    refuse_sides(ledger, shared.clone(), &mut refusals);
    room::refuse_listings(ledger, transactions, &mut refusals);
    refuse_pairs(ledger, &judged, &mut refusals);
    let mut idle = idle(shared, &refusals, |index| transactions[index as usize].id());
    idle.extend(judged.iter().flat_map(|judged| &judged.idle));
    idle.sort_unstable();
    idle.dedup();
    let admit = |candidate: &Candidate| {
        let &Candidate { index, position, found, .. } = candidate;
        let is_idle = !idle.is_empty() && idle.binary_search(&index).is_ok();
        refusals[index as usize].is_none().then_some(Admitted { index, position, found, is_idle })
    };
    let admitted = judged.iter().map(|judged| judged.candidates.iter().filter_map(admit).collect()).collect();
    Filtered { admitted, refusals }
}

fn filter_shard<'a>(
    ledger: &Ledger,
    shard: usize,
    indices: &[u32],
    transactions: &[&'a Transaction],
    valid: Option<&[bool]>,
    beyond: &[u32],
) -> Judged<'a> {
    let shard = &ledger.places.accounts.shards()[shard];
    let opens = ledger.next_rules() >= RULES_OF_ENVELOPES;
    let mut judged = Judged { candidates: Vec::with_capacity(indices.len()), ..Judged::default() };
    for &index in indices {
        let transaction = transactions[index as usize];
        if opens && matches!(transaction.body.operation, Operation::Sealed(_)) {
            continue;
        }
        let signed = valid.is_none_or(|valid| valid[index as usize]);
        let is_beyond = !beyond.is_empty() && beyond.binary_search(&index).is_ok();
        match check_in(ledger, shard, transaction, signed, is_beyond) {
            Ok((position, found)) => judged.candidates.push(Candidate { index, position, found, transaction }),
            Err(refusal) => judged.refused.push((index, refusal)),
        }
    }
    let Judged { candidates, refused, idle, shared: claims } = &mut judged;
    candidates.sort_unstable_by(|a, b| a.place().cmp(&b.place()));
    for account in candidates.chunk_by(|a, b| a.position == b.position) {
        let claims = AccountClaims::and_shared(claims);
        filter_account(ledger, shard.at(account[0].position), account, claims, refused, idle);
    }
    judged
}

/// Refuses all sides of conflicts between accounts, including transactions whose own account has a conflict. Only
/// the shares of a pool are counted without those: anybody may buy them.
fn refuse_sides<'s>(
    ledger: &Ledger,
    shared: impl Iterator<Item = &'s Shared> + Clone,
    refusals: &mut [Option<Refusal>],
) {
    let refuse = |refusals: &mut [Option<Refusal>], index: u32, refusal| {
        refusals[index as usize].get_or_insert(refusal);
    };
    let is_sided = |once: &Once| matches!(once.scope(), Scope::Sides(_));
    let mut once: Vec<(Once, u32)> =
        shared.clone().flat_map(|shared| &shared.once).filter(|(once, _)| is_sided(once)).copied().collect();
    once.sort_unstable();
    for same in once.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        if let Scope::Sides(refusal) = same[0].0.scope() {
            same.iter().for_each(|(_, index)| refuse(refusals, *index, refusal));
        }
    }
    // Whoever cannot pay for shares must not keep others from buying them.
    let counts =
        |(sum, index, _): &&(Sum, u32, Amount)| !matches!(sum, Sum::Minted(_)) || refusals[*index as usize].is_none();
    let mut sums: Vec<(Sum, u32, Amount)> = shared.flat_map(|shared| &shared.sums).filter(counts).copied().collect();
    sums.sort_unstable();
    for same in sums.chunk_by(|a, b| a.0 == b.0) {
        let (sum, units) = (same[0].0, same.iter().map(|(_, _, units)| u128::from(*units)).sum::<u128>());
        if units > u128::from(shared_room(ledger, sum)) {
            same.iter().for_each(|(_, index, _)| refuse(refusals, *index, sum.refusal()));
        }
    }
}

/// Opens the lowest of the pairs that accepted transactions would open, and refuses the offers of the others.
fn refuse_pairs(ledger: &Ledger, judged: &[Judged], refusals: &mut [Option<Refusal>]) {
    if !room::may_lack_pairs(ledger) {
        return;
    }
    let stands = |candidate: &&Candidate| refusals[candidate.index as usize].is_none();
    let standing = judged.par_iter().flat_map_iter(|judged| judged.candidates.iter().filter(stands));
    let opened = standing.filter_map(|one| Some((room::opened(ledger, one.transaction)?, one.index))).collect();
    room::refuse_pairs(ledger, &[], opened, refusals);
}

/// Checks one transaction against the present state, as the filter would if it were alone in the next block; see
/// [`Ledger::admit`].
pub(crate) fn admit(ledger: &Ledger, transaction: &Transaction) -> Result<(), Refusal> {
    let account = admit_but_for_balance(ledger, transaction)?;
    let mut claims = AccountClaims::default();
    visit(transaction, ledger.fee, &mut claims);
    claims.conflict(ledger, account).map_or(Ok(()), Err)
}

/// All accepted transactions that claim a key of [`Scope::KeepOne`], except the one with the lowest id, ascending.
fn idle<'s>(
    shared: impl Iterator<Item = &'s Shared>,
    refusals: &[Option<Refusal>],
    id: impl Fn(u32) -> TransactionId,
) -> Vec<u32> {
    let stands =
        |(once, index): &&(Once, u32)| matches!(once.scope(), Scope::KeepOne) && refusals[*index as usize].is_none();
    let mut once: Vec<(Once, u32)> = shared.flat_map(|shared| &shared.once).filter(stands).copied().collect();
    once.sort_unstable();
    let mut idle = Vec::new();
    for same in once.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        let mut by_id: Vec<_> = same.iter().map(|(_, index)| (id(*index), *index)).collect();
        by_id.sort_unstable();
        idle.extend(by_id[1..].iter().map(|(_, index)| *index));
    }
    idle.sort_unstable();
    idle.dedup();
    idle
}

/// Indices of transactions, grouped by the shard of their sender.
struct ByShard {
    indices: Vec<u32>,
    starts: Vec<usize>,
}

impl ByShard {
    fn range(&self, shard: usize) -> std::ops::Range<usize> {
        self.starts[shard]..self.starts[shard + 1]
    }
}

/// A counting sort by shard.
fn by_shard(transactions: &[&Transaction]) -> ByShard {
    let shard = |transaction: &&Transaction| shard_of(&transaction.body.account);
    let mut starts = vec![0; SHARDS + 1];
    transactions.iter().for_each(|transaction| starts[shard(transaction) + 1] += 1);
    (0..SHARDS).for_each(|s| starts[s + 1] += starts[s]);
    let mut next = starts.clone();
    let mut indices = vec![0; transactions.len()];
    for (index, transaction) in transactions.iter().enumerate() {
        let slot = &mut next[shard(transaction)];
        indices[*slot] = u32::try_from(index).expect("fewer than 2^32 transactions in a block");
        *slot += 1;
    }
    ByShard { indices, starts }
}

#[cfg(test)]
mod tests {
    use super::super::footprint::{Footprint, Visitor};
    use super::*;
    use crate::{Genesis, Listing, Reservations, ReserveError};
    use primitives::{Address, AssetId, Digest, Fraction};

    /// Operations that the ledger does not have: each is one match arm.
    enum Trial {
        /// Draws on a sum of all accounts with a cap of 100 units.
        Capped(Amount),
        /// Redeems something, which counts once, whichever account asks.
        Redeem(u8),
        /// A venue spends units of its deposit of 50.
        Draw(Amount),
    }

    impl Footprint for Trial {
        fn emit<'a>(&'a self, _: Amount, visitor: &mut impl Visitor<'a>) -> Result<(), Refusal> {
            match *self {
                Trial::Capped(units) => visitor.sum(Sum::Capped, units),
                Trial::Redeem(what) => visitor.once(Once::Redeemed(what)),
                Trial::Draw(units) => visitor.sum(Sum::Deposit, units),
            }
            Ok(())
        }
    }

    fn ledger() -> Ledger {
        let assets = vec![Listing::new("USD", 2, Address::default())];
        let balances = (1..=3).map(|person| (Address([person; 20]), AssetId(0), 10)).collect();
        Ledger::new(&Genesis { mu: Fraction::power_of_two(10), assets, balances, ..Genesis::default() }).expect("sound")
    }

    /// The filter's refusals of operations by sender, and the indices of those that do nothing; an operation's id is
    /// its index reversed.
    fn judge(operations: &[(u8, Trial)]) -> (Vec<Option<Refusal>>, Vec<u32>) {
        let (ledger, mut shared) = (ledger(), Shared::default());
        let mut refusals = vec![None; operations.len()];
        for sender in 1..=3 {
            let mut claims = AccountClaims::and_shared(&mut shared);
            let own = || (0..).zip(operations).filter(|(_, (who, _))| *who == sender);
            for (index, (_, operation)) in own() {
                claims.index = index;
                visit(operation, 0, &mut claims);
            }
            let account = ledger.places.accounts.get(&Address([sender; 20])).expect("exists");
            if let Some(refusal) = claims.conflict(&ledger, account) {
                own().for_each(|(index, _)| refusals[index as usize] = Some(refusal));
            }
        }
        refuse_sides(&ledger, [&shared].into_iter(), &mut refusals);
        let idle = idle([&shared].into_iter(), &refusals, |index| Digest([u8::MAX - index as u8; 32]));
        (refusals, idle)
    }

    #[test]
    fn a_sum_with_a_cap_refuses_all_sides() {
        assert_eq!(judge(&[(1, Trial::Capped(60)), (2, Trial::Capped(40))]).0, [None, None]);
        let too_much = Some(Refusal::ISSUE_TOO_LARGE);
        assert_eq!(
            judge(&[(1, Trial::Capped(60)), (2, Trial::Capped(41)), (3, Trial::Draw(1))]).0,
            [too_much, too_much, None]
        );
    }

    #[test]
    fn of_what_is_redeemed_twice_the_lowest_id_that_stands_counts() {
        let redeem = |who| (who, Trial::Redeem(7));
        assert_eq!(judge(&[redeem(1), redeem(2), redeem(3)]), (vec![None; 3], vec![0, 1]));
        // The transaction with the lowest id is removed because its account overspends.
        let overdrawn = Some(Refusal::OVERDRAFT);
        let (refusals, idle) = judge(&[redeem(1), redeem(2), redeem(3), (3, Trial::Draw(51))]);
        assert_eq!((refusals, idle), (vec![None, None, overdrawn, overdrawn], vec![0]));
        assert_eq!(judge(&[redeem(1), (2, Trial::Redeem(8))]).1, []);
    }

    #[test]
    fn a_venue_that_draws_too_much_fails_alone() {
        let (refusals, _) = judge(&[(1, Trial::Draw(30)), (1, Trial::Draw(21)), (2, Trial::Draw(50))]);
        assert_eq!(refusals, [Some(Refusal::OVERDRAFT), Some(Refusal::OVERDRAFT), None]);
    }

    #[test]
    fn trial_operations_reserve_by_the_same_footprint() {
        let (ledger, mut reservations) = (ledger(), Reservations::default());
        reservations.make_room(20);
        let account = |person: u8| ledger.places.accounts.get(&Address([person; 20])).expect("exists");
        let reserve = |person, trial: Trial| reservations.reserve(&trial, 0, &ledger, account(person));
        let refused = |refusal| Err(ReserveError::Refused(refusal));
        assert_eq!(reserve(1, Trial::Capped(60)), Ok(()));
        assert_eq!(reserve(2, Trial::Capped(41)), refused(Refusal::ISSUE_TOO_LARGE));
        assert_eq!(reserve(2, Trial::Capped(40)), Ok(()));
        assert_eq!((reserve(1, Trial::Draw(50)), reserve(2, Trial::Draw(50))), (Ok(()), Ok(())));
        assert_eq!(reserve(1, Trial::Draw(1)), refused(Refusal::OVERDRAFT));
        assert_eq!((reserve(1, Trial::Redeem(1)), reserve(2, Trial::Redeem(1))), (Ok(()), Ok(())));
    }
}
