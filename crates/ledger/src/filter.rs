//! The deterministic filter: which transactions of a block count (SPEEDEX §8 and appendix I).
//!
//! Upon a block, each transaction is first held alone against the state before the block. Then all transactions of one
//! account are held against each other: if together they could spend more than the account has, use one sequence number
//! twice, cancel one offer twice, or change the key or the stake twice, all of the account's transactions are removed. Last
//! come the three conflicts between accounts: transactions that create the same account, that claim one validator key, and
//! issues that together exceed an asset's cap; all sides are removed.
//!
//! **Properties.** Every judgement looks at the transactions that stand alone, before any are removed, so that the
//! answer depends neither on order nor on threads; and removing a transaction cannot cause a conflict among the others.
//!
//! **Deviations from the paper.** A transaction that is in the block more than once (clients retry at several
//! validators) counts once and is no conflict. Issues are limited here because any account may be an issuer.

use primitives::{Address, Amount, AssetId, MAX_ISSUED, Operation, PublicKey, Transaction};
use rayon::prelude::*;

use crate::accounts::{SHARDS, Shard, shard_of};
use crate::book::{Pair, Place};
use crate::refusal::Refusal;
use crate::{Account, Ledger};

/// A transaction that will be applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    /// Its index in the block.
    pub index: u32,
    /// Its sender's position in the sender's shard.
    pub position: u32,
    /// Units that a cancellation unlocks.
    pub refund: Amount,
}

/// The filter's answer.
pub(crate) struct Filtered {
    /// What is applied, by the sender's shard; within a shard by account and sequence number.
    pub admitted: Vec<Vec<Admitted>>,
    /// For each transaction of the block, why it is refused, if it is.
    pub refusals: Vec<Option<Refusal>>,
}

impl Filtered {
    /// Number of transactions that are applied.
    pub(crate) fn admitted_len(&self) -> usize {
        self.admitted.iter().map(Vec::len).sum()
    }
}

/// A transaction that stands alone.
struct Candidate<'a> {
    index: u32,
    position: u32,
    refund: Amount,
    transaction: &'a Transaction,
}

/// What one shard's transactions come to: those that stand alone, and those that are refused.
type Judged<'a> = (Vec<Candidate<'a>>, Vec<(u32, Refusal)>);

impl Ledger {
    /// Judges all transactions of a block; `valid[i]` says whether the signature of `transactions[i]` is.
    pub(crate) fn filter(&self, transactions: &[&Transaction], valid: Option<&[bool]>) -> Filtered {
        let order = by_shard(transactions);
        let judged: Vec<Judged> = (0..SHARDS)
            .into_par_iter()
            .map(|shard| self.filter_shard(shard, &order.indices[order.range(shard)], transactions, valid))
            .collect();
        let mut refusals = vec![None; transactions.len()];
        for &(index, refusal) in judged.iter().flat_map(|(_, refused)| refused) {
            refusals[index as usize] = Some(refusal);
        }
        self.refuse_conflicts_between_accounts(&judged, &mut refusals);
        let admitted = judged
            .iter()
            .map(|(candidates, _)| {
                let kept = candidates.iter().filter(|candidate| refusals[candidate.index as usize].is_none());
                kept.map(|&Candidate { index, position, refund, .. }| Admitted { index, position, refund }).collect()
            })
            .collect();
        Filtered { admitted, refusals }
    }

    fn filter_shard<'a>(
        &self,
        shard: usize,
        indices: &[u32],
        transactions: &[&'a Transaction],
        valid: Option<&[bool]>,
    ) -> Judged<'a> {
        let shard = &self.accounts.shards()[shard];
        let mut candidates = Vec::with_capacity(indices.len());
        let mut refused = Vec::new();
        for &index in indices {
            let transaction = transactions[index as usize];
            let signed = valid.is_none_or(|valid| valid[index as usize]);
            match self.check_in(shard, transaction, signed) {
                Ok((position, refund)) => candidates.push(Candidate { index, position, refund, transaction }),
                Err(refusal) => refused.push((index, refusal)),
            }
        }
        candidates
            .sort_unstable_by_key(|c| (c.position, c.transaction.body.sequence, c.transaction.signature.0, c.index));
        for account in candidates.chunk_by(|a, b| a.position == b.position) {
            self.filter_account(shard.at(account[0].position), account, &mut refused);
        }
        (candidates, refused)
    }

    /// Holds one transaction against the state before the block; returns the sender's position in its shard, and what a
    /// cancellation unlocks.
    fn check_in(&self, shard: &Shard, transaction: &Transaction, signed: bool) -> Result<(u32, Amount), Refusal> {
        transaction.check()?;
        let body = &transaction.body;
        if body.chain != self.chain {
            return Err(Refusal::WrongChain);
        }
        if !signed {
            return Err(Refusal::BadSignature);
        }
        let position = shard.find(&body.account).ok_or(Refusal::UnknownAccount)?;
        let account = shard.at(position);
        if !account.is_controlled_by(&transaction.signer) {
            return Err(Refusal::WrongSigner);
        }
        account.window().check(body.sequence)?;
        if body.operation.assets().into_iter().flatten().any(|asset| asset.0 as usize >= self.assets.len()) {
            return Err(Refusal::UnknownAsset);
        }
        Ok((position, self.check_operation(&body.account, &body.operation)?))
    }

    fn check_operation(&self, sender: &Address, operation: &Operation) -> Result<Amount, Refusal> {
        self.validators.check(self.chain, sender, operation, self.height + 1)?;
        match *operation {
            Operation::CreateAccount { ref account, .. } if account != sender => match self.accounts.get(account) {
                Some(_) => Err(Refusal::AccountExists),
                None => Ok(0),
            },
            Operation::CancelOffer { sell, buy, limit, offer } => {
                let place = Place { limit, account: *sender, id: offer };
                let found = self.book.get(Pair { sell, buy }).and_then(|offers| offers.get(&place));
                found.ok_or(Refusal::UnknownOffer)
            }
            Operation::CreateOffer { sell, buy, amount, limit } => {
                self.minima(Pair { sell, buy }).check(amount, limit).map(|()| 0)
            }
            Operation::Issue { asset, .. } | Operation::Burn { asset, .. }
                if self.assets[asset.0 as usize].issuer != *sender =>
            {
                Err(Refusal::NotIssuer)
            }
            _ => Ok(0),
        }
    }

    /// Judges the candidates of one account together; they are sorted by sequence number.
    fn filter_account(&self, account: &Account, candidates: &[Candidate], refused: &mut Vec<(u32, Refusal)>) {
        let is_copy = |a: &Candidate, b: &Candidate| a.transaction.body == b.transaction.body;
        let mut distinct: Vec<&Candidate> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            match distinct.last() {
                Some(last) if is_copy(last, candidate) => refused.push((candidate.index, Refusal::Duplicate)),
                _ => distinct.push(candidate),
            }
        }
        if let Some(conflict) = self.conflict(account, &distinct) {
            refused.extend(distinct.iter().map(|candidate| (candidate.index, conflict)));
        }
    }

    fn conflict(&self, account: &Account, distinct: &[&Candidate]) -> Option<Refusal> {
        let operations = || distinct.iter().map(|candidate| &candidate.transaction.body.operation);
        if distinct.windows(2).any(|two| two[0].transaction.body.sequence == two[1].transaction.body.sequence) {
            return Some(Refusal::SequenceConflict);
        }
        let mut cancels: Vec<_> = operations()
            .filter_map(|operation| match *operation {
                Operation::CancelOffer { sell, buy, limit, offer } => Some((sell, buy, limit, offer)),
                _ => None,
            })
            .collect();
        cancels.sort_unstable();
        if cancels.windows(2).any(|two| two[0] == two[1]) {
            return Some(Refusal::CancelConflict);
        }
        let changes_key = |operation: &&Operation| matches!(operation, Operation::CreateAccount { account: own, .. } if *own == account.address());
        if operations().filter(changes_key).count() > 1 {
            return Some(Refusal::KeyConflict);
        }
        let changes_stake =
            |operation: &&Operation| matches!(operation, Operation::Stake(_) | Operation::Unstake { .. });
        if operations().filter(changes_stake).count() > 1 {
            return Some(Refusal::StakeConflict);
        }
        let fees = (AssetId(0), self.fee.saturating_mul(distinct.len() as Amount));
        let overdrawn = overdraws(account, operations().filter_map(Operation::debit).chain([fees]));
        overdrawn.then_some(Refusal::Overdraft)
    }

    fn refuse_conflicts_between_accounts(&self, judged: &[Judged], refusals: &mut [Option<Refusal>]) {
        let mut created: Vec<(Address, u32)> = Vec::new();
        let mut issued: Vec<(AssetId, u32, Amount)> = Vec::new();
        let mut claimed: Vec<(PublicKey, u32)> = Vec::new();
        for candidate in judged.iter().flat_map(|(candidates, _)| candidates) {
            if refusals[candidate.index as usize] == Some(Refusal::Duplicate) {
                continue;
            }
            match &candidate.transaction.body.operation {
                &Operation::CreateAccount { account, .. } if account != candidate.transaction.body.account => {
                    created.push((account, candidate.index));
                }
                &Operation::Issue { asset, amount, .. } => issued.push((asset, candidate.index, amount)),
                Operation::Stake(stake) => claimed.push((stake.key, candidate.index)),
                _ => {}
            }
        }
        let mut refuse = |index: u32, refusal| {
            refusals[index as usize].get_or_insert(refusal);
        };
        created.sort_unstable();
        for same in created.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            same.iter().for_each(|(_, index)| refuse(*index, Refusal::CreateConflict));
        }
        claimed.sort_unstable();
        for same in claimed.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            same.iter().for_each(|(_, index)| refuse(*index, Refusal::ValidatorKeyConflict));
        }
        issued.sort_unstable();
        for same in issued.chunk_by(|a, b| a.0 == b.0) {
            let sum: u128 = same.iter().map(|(_, _, amount)| u128::from(*amount)).sum();
            let before = self.assets[same[0].0.0 as usize].issued;
            if u128::from(before) + sum > u128::from(MAX_ISSUED) {
                same.iter().for_each(|(_, index, _)| refuse(*index, Refusal::IssueTooLarge));
            }
        }
    }

    /// Holds one transaction against the present state, as the filter would if it were alone in the next block.
    ///
    /// A node calls this before it takes a transaction into its mempool. The signature is not checked here.
    ///
    /// # Errors
    /// [`Refusal`] says why the transaction would be removed.
    pub fn admit(&self, transaction: &Transaction) -> Result<(), Refusal> {
        let account = self.admit_but_for_balance(transaction)?;
        let debits = transaction.body.operation.debit().into_iter().chain([(AssetId(0), self.fee)]);
        if overdraws(account, debits) { Err(Refusal::Overdraft) } else { Ok(()) }
    }

    /// The sender of a transaction that [`Ledger::admit`] would take if the sender had the money.
    pub(crate) fn admit_but_for_balance(&self, transaction: &Transaction) -> Result<&Account, Refusal> {
        let shard = &self.accounts.shards()[shard_of(&transaction.body.account)];
        let (position, _) =
            self.check_in(shard, transaction, true).map_err(|refusal| self.explain(refusal, transaction))?;
        Ok(shard.at(position))
    }

    /// Tells a cancellation of somebody else's offer from one of nothing.
    fn explain(&self, refusal: Refusal, transaction: &Transaction) -> Refusal {
        match transaction.body.operation {
            Operation::CancelOffer { sell, buy, limit, offer }
                if refusal == Refusal::UnknownOffer
                    && self.book.get(Pair { sell, buy }).is_some_and(|offers| offers.any_at(limit, offer)) =>
            {
                Refusal::NotYourOffer
            }
            _ => refusal,
        }
    }
}

/// Whether debits sum to more than the account holds of some asset.
fn overdraws(account: &Account, debits: impl Iterator<Item = (AssetId, Amount)>) -> bool {
    let mut sums: smallvec::SmallVec<[(AssetId, u128); 4]> = smallvec::SmallVec::new();
    for (asset, amount) in debits {
        match sums.iter_mut().find(|(known, _)| *known == asset) {
            Some((_, sum)) => *sum += u128::from(amount),
            None => sums.push((asset, u128::from(amount))),
        }
    }
    sums.iter().any(|&(asset, sum)| sum > u128::from(account.balance(asset)))
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
