//! Independent bookkeeping of policies from the receipts: who had to sign, and what is in force.
//!
//! Everything that counts is judged by these books as they stood before its block. Nothing of the ledger's judgement is
//! used; that signatures are valid is checked where transactions enter.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Ledger, Outcome};
use primitives::operations::Needs;
use primitives::{
    Address, AskedChange, ChangedBy, Digest, Height, KeyHolder, KeyPolicy, KeySignatures, Operation, PolicySigned,
    PublicKey, ReferenceRule, SignedBy, Transaction, slot_of,
};

/// The fewest heights that a recovery waits.
const DAY: Height = 86_400;

#[derive(Clone, Debug, PartialEq)]
struct Kept {
    first: PublicKey,
    policy: KeyPolicy,
    last: Digest,
    waiting: Option<(KeyPolicy, ChangedBy, Height)>,
}

/// What accounts with policies did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyCounts {
    /// First policies, and those that replaced one at once.
    pub set: u64,
    /// Changes and recoveries that began to wait.
    pub waited: u64,
    /// Of those, recoveries.
    pub recovered: u64,
    /// Changes that were completed.
    pub completed: u64,
    /// Requests that several signed.
    pub requests: u64,
    /// Payments with a reference to an account that needs one.
    pub referenced: u64,
}

impl std::ops::AddAssign for PolicyCounts {
    fn add_assign(&mut self, other: PolicyCounts) {
        let PolicyCounts { set, waited, recovered, completed, requests, referenced } = other;
        self.set += set;
        self.waited += waited;
        self.recovered += recovered;
        self.completed += completed;
        self.requests += requests;
        self.referenced += referenced;
    }
}

/// See the module text.
#[derive(Clone, Default)]
pub(crate) struct PolicyBooks {
    kept: BTreeMap<Address, Kept>,
    /// Accounts that need references.
    referenced: BTreeSet<Address>,
    pub counts: PolicyCounts,
}

impl PolicyBooks {
    /// Processes the transactions of a block that count, those that pay and do nothing included.
    pub fn apply(&mut self, height: Height, effective: &[(&Transaction, Outcome)]) -> Result<(), String> {
        let mut next = self.clone();
        for (transaction, outcome) in effective {
            self.check_signed(transaction).and_then(|()| self.check_paid(transaction)).map_err(|what| {
                format!("{} of {}: {what}", transaction.body.operation.name(), transaction.body.account)
            })?;
            next.count(self, transaction);
            if *outcome != Outcome::Void {
                next.change(self, transaction, height)?;
            }
        }
        check_lowest(effective)?;
        *self = next;
        Ok(())
    }

    fn count(&mut self, before: &PolicyBooks, transaction: &Transaction) {
        self.counts.requests += u64::from(matches!(transaction.signed_by, SignedBy::Policy(_)));
        if let Operation::PayReferenced { to, .. } = &transaction.body.operation {
            self.counts.referenced += u64::from(before.referenced.contains(to));
        }
    }

    /// Those have signed who had to.
    fn check_signed(&self, transaction: &Transaction) -> Result<(), String> {
        let body = &transaction.body;
        match (&transaction.signed_by, self.kept.get(&body.account)) {
            (SignedBy::Policy(_), None) => Err("several keys sign for an account without a policy".into()),
            (SignedBy::Policy(signed), Some(kept)) => check_request(signed, kept, body.operation.row().needs),
            (_, Some(_)) if slot_of(body.sequence) == 0 && !body.is_of_validator() => {
                Err("one key signs for an account with a policy".into())
            }
            _ => Ok(()),
        }
    }

    /// Payments and issues come with a reference where one is needed.
    fn check_paid(&self, transaction: &Transaction) -> Result<(), String> {
        match &transaction.body.operation {
            Operation::Pay { to, .. } | Operation::Issue { to, .. }
                if self.referenced.contains(to) && *to != transaction.body.account =>
            {
                Err(format!("a bare payment to {to}, which needs a reference"))
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self, before: &PolicyBooks, transaction: &Transaction, height: Height) -> Result<(), String> {
        let operation = &transaction.body.operation;
        match operation {
            Operation::SetReceiving { references: ReferenceRule::Required } => {
                self.referenced.insert(transaction.body.account);
            }
            Operation::SetReceiving { references: ReferenceRule::Optional } => {
                self.referenced.remove(&transaction.body.account);
            }
            Operation::CompleteKeys { account } => {
                let Some(kept) = before.kept.get(account) else { return Err("no policy is completed".into()) };
                let Some((policy, _, due)) = kept.waiting.clone() else { return Err("no change waits".into()) };
                if due > height {
                    return Err(format!("the change of {account} is completed before its wait is over"));
                }
                self.kept.insert(*account, Kept { policy, waiting: None, ..kept.clone() });
                self.counts.completed += 1;
            }
            Operation::SetKeys(_) | Operation::RecoverKeys(_) => {
                self.rekey(before, operation.key_change().expect("it is one"), height)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn rekey(&mut self, before: &PolicyBooks, asked: AskedChange<'_>, height: Height) -> Result<(), String> {
        let (change, signatures) = (asked.change, asked.signatures);
        check_once(signatures)?;
        let kept = before.kept.get(&change.account);
        if kept.map_or(Digest::default(), |kept| kept.last) != change.last {
            return Err("a change follows an earlier change of keys than the last one".into());
        }
        if weight(&change.policy, signatures, true)? < u32::from(change.policy.governs) {
            return Err("those who will govern have not signed".into());
        }
        let (last, policy) = (change.id(asked.by), change.policy.clone());
        let Some(kept) = kept else {
            let first = asked.first.ok_or("guardians give an account its first policy")?;
            if !signatures.keys.iter().any(|one| one.key == first) {
                return Err("the first key has not signed the first policy".into());
            }
            self.kept.insert(change.account, Kept { first, policy, last, waiting: None });
            self.counts.set += 1;
            return Ok(());
        };
        let delay = Height::from(kept.policy.delay);
        let wait = match asked.by {
            ChangedBy::Signers if weight(&kept.policy, signatures, true)? < u32::from(kept.policy.governs) => {
                return Err("those who govern have not signed".into());
            }
            ChangedBy::Signers => delay,
            ChangedBy::Guardians if kept.waiting.is_some() => {
                return Err("a recovery counts although a change waits".into());
            }
            ChangedBy::Guardians => {
                let guards = signatures.keys.iter().filter(|one| kept.policy.guardian_keys.contains(&one.key)).count();
                if kept.policy.guardians == 0 || guards < usize::from(kept.policy.guardians) {
                    return Err("too few guardians have signed".into());
                }
                self.counts.recovered += 1;
                DAY.max(2 * delay)
            }
        };
        let next = match wait {
            0 => Kept { first: kept.first, policy, last, waiting: None },
            _ => Kept { last, waiting: Some((policy, asked.by, height + wait)), ..kept.clone() },
        };
        if wait == 0 {
            self.counts.set += 1
        } else {
            self.counts.waited += 1
        }
        self.kept.insert(change.account, next);
        Ok(())
    }

    /// Compares the ledger with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        for (address, kept) in &self.kept {
            let keys = ledger.account_keys(address).ok_or_else(|| format!("{address} has lost its policy"))?;
            let waiting = keys.waiting.as_ref().map(|one| (one.policy.clone(), one.by, one.due));
            let theirs = Kept { first: keys.first, policy: keys.policy.clone(), last: keys.last, waiting };
            if theirs != *kept {
                return Err(format!("the keys of {address} are {theirs:?}, but by the receipts {kept:?}"));
            }
        }
        let all = || ledger.accounts().shards().iter().flat_map(|shard| shard.iter());
        let stray = all().find(|one| one.has_policy() != self.kept.contains_key(&one.address()));
        if let Some(account) = stray {
            return Err(format!("{} has a policy, or none, otherwise than by the receipts", account.address()));
        }
        let asks: BTreeSet<Address> = all().filter(|one| one.needs_reference()).map(|one| one.address()).collect();
        if asks == self.referenced {
            Ok(())
        } else {
            Err(format!("{asks:?} need references, not {:?}", self.referenced))
        }
    }
}

/// Each signer stands once.
fn check_once(signatures: &KeySignatures) -> Result<(), String> {
    let all: Vec<KeyHolder> = signatures.holders().collect();
    let distinct = all.iter().enumerate().all(|(at, one)| !all[..at].contains(one));
    if distinct { Ok(()) } else { Err("one signer has signed twice".into()) }
}

/// The weight of those who have signed; of others nothing counts, where others may sign too.
fn weight(policy: &KeyPolicy, signatures: &KeySignatures, others: bool) -> Result<u32, String> {
    let mut sum = 0;
    for holder in signatures.holders() {
        let own = policy.signers().find(|(signer, _)| *signer == holder).map(|(_, weight)| u32::from(weight));
        match own {
            Some(weight) => sum += weight,
            None if others => {}
            None => return Err("somebody signs who is no signer of the policy in force".into()),
        }
    }
    Ok(sum)
}

fn check_request(signed: &PolicySigned, kept: &Kept, needs: Needs) -> Result<(), String> {
    check_once(&signed.signatures)?;
    if signed.last != kept.last {
        return Err("a request names an earlier change of keys".into());
    }
    let needed = if needs == Needs::Move { kept.policy.moves } else { kept.policy.governs };
    if weight(&kept.policy, &signed.signatures, false)? < u32::from(needed) {
        return Err("too few have signed".into());
    }
    Ok(())
}

/// Of the operations on the keys of an account in a block the one with the lowest id counts, and the others do nothing.
fn check_lowest(effective: &[(&Transaction, Outcome)]) -> Result<(), String> {
    let mut by_account: BTreeMap<Address, Vec<(Digest, bool)>> = BTreeMap::new();
    for (transaction, outcome) in effective {
        if let Some(account) = transaction.body.operation.keys_of() {
            by_account.entry(account).or_default().push((transaction.id(), *outcome != Outcome::Void));
        }
    }
    for (account, mut all) in by_account {
        all.sort_unstable();
        if all.iter().enumerate().any(|(at, (_, counts))| *counts != (at == 0)) {
            return Err(format!("of the changes of {account} in a block another one counts: {all:?}"));
        }
    }
    Ok(())
}
