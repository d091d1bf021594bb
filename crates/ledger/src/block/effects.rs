//! The effects of a block on accounts: one thread changes each shard of accounts, once.

use std::sync::Arc;

use primitives::{Address, Amount, AssetId, PublicKey, ReferenceRule, Transaction};
use rayon::prelude::*;

use super::claims::visit;
use super::filter::{Admitted, Filtered};
use super::footprint::{self, Visitor};
use super::once::{Once, Sum};
use crate::contracts::{SeenBefore, seen};
use crate::places::accounts::Account;
use crate::places::accounts::{SHARDS, Shard, account_digest, shard_of};
use crate::places::sums::{Credit, Sums, Taken};
use crate::sessions::SessionChange;
use crate::state::Ledger;

/// What a block does to the accounts.
#[derive(Default)]
pub(crate) struct Effects {
    /// Changed accounts and their digests, by address.
    pub changed: Vec<([u8; 20], Option<[u8; 32]>)>,
    /// Change of spendable balances.
    pub balances: Sums,
    /// Change of issued units.
    pub issued: Sums,
    /// What Ethereum saw of the changed accounts before, on a chain with contracts. The first note of an account
    /// counts.
    pub seen: Vec<SeenBefore>,
}

/// Marks sequence numbers, takes debits, registers keys, pays credits and changes session keys.
pub(crate) fn apply_effects(
    ledger: &mut Ledger,
    transactions: &[&Transaction],
    filtered: &Filtered,
    (credits, taken): (&[Credit], &[Taken]),
    sessions: &[SessionChange],
) -> Effects {
    let routed = Routed::new(credits, |credit| &credit.to);
    let taken = Routed::new(taken, |taken| &taken.from);
    let sessions = Routed::new(sessions, |change| &change.account);
    let fee = ledger.fee;
    let wei_per_unit = ledger.places.contracts.head().map(|_| ledger.wei_per_unit());
    let by_shard: Vec<Effects> = ledger
        .places
        .accounts
        .shards_mut()
        .par_iter_mut()
        .zip(&filtered.admitted)
        .enumerate()
        .map(|(number, (shard, admitted))| {
            let (credits, sessions) = (routed.of_shard(number), sessions.of_shard(number));
            let taken = taken.of_shard(number);
            if admitted.is_empty() && credits.len() == 0 && sessions.len() == 0 && taken.len() == 0 {
                return Effects::default();
            }
            let mut effects = ShardEffects::new(Arc::make_mut(shard), wei_per_unit);
            admitted.iter().for_each(|one| effects.act(one, transactions[one.index as usize], fee));
            credits.for_each(|credit| effects.pay_in(credit));
            taken.for_each(|taken| effects.take_out(taken));
            sessions.for_each(|change| effects.change_session(change));
            effects.finish()
        })
        .collect();
    let mut all =
        Effects { changed: Vec::with_capacity(by_shard.iter().map(|e| e.changed.len()).sum()), ..Effects::default() };
    for mut effects in by_shard {
        all.changed.append(&mut effects.changed);
        all.balances.merge(&effects.balances);
        all.issued.merge(&effects.issued);
        all.seen.append(&mut effects.seen);
    }
    all
}

/// The sender of a transaction while its effects are applied.
struct Sender<'s> {
    account: &'s mut Account,
    effects: &'s mut Effects,
    /// What it says about payments to it.
    receives: Option<ReferenceRule>,
}

impl<'a> Visitor<'a> for Sender<'_> {
    fn sum(&mut self, sum: Sum, units: Amount) {
        match sum {
            Sum::Spent(asset) => {
                self.account.debit(asset, units);
                self.effects.balances.add(asset, -i128::from(units));
            }
            Sum::Key(slot, asset) => {
                let budget = self.account.session_mut(slot).and_then(|session| session.budget_mut(asset));
                budget.into_iter().for_each(|budget| budget.spend(units));
            }
            _ => {}
        }
    }

    fn once(&mut self, once: Once) {
        if let Once::Sequence(sequence) = once {
            self.account.mark(sequence);
        }
    }

    fn issue(&mut self, asset: AssetId, units: i128) {
        self.effects.issued.add(asset, units);
    }

    /// Registers a key. The filter has checked all transactions of the block with the old key.
    fn register(&mut self, key: PublicKey) {
        self.account.register(key);
    }

    fn receive(&mut self, references: ReferenceRule) {
        self.receives = Some(references);
    }
}

/// One shard while its effects are applied.
struct ShardEffects<'a> {
    shard: &'a mut Shard,
    touched: Vec<u32>,
    effects: Effects,
    /// Wei per unit of asset 0, on a chain with contracts.
    wei_per_unit: Option<u64>,
}

impl<'a> ShardEffects<'a> {
    fn new(shard: &'a mut Shard, wei_per_unit: Option<u64>) -> ShardEffects<'a> {
        ShardEffects { shard, touched: Vec::new(), effects: Effects::default(), wei_per_unit }
    }

    /// Records that an account is about to change.
    fn touch(&mut self, position: u32) {
        self.touched.push(position);
        if let Some(wei_per_unit) = self.wei_per_unit {
            let account = self.shard.at(position);
            let (address, ethereum) = (account.address(), seen(account, wei_per_unit));
            self.effects.seen.push(SeenBefore { address, ethereum, assets: account.balances().collect() });
        }
    }

    /// The effects, when everything has been applied.
    fn finish(mut self) -> Effects {
        self.touched.sort_unstable();
        self.touched.dedup();
        let mut room = Vec::new();
        let entry = |position: &u32| {
            let account = self.shard.at(*position);
            (account.address().0, Some(account_digest(account, &mut room)))
        };
        self.effects.changed = self.touched.iter().map(entry).collect();
        self.effects.changed.sort_unstable();
        self.effects
    }

    /// What a validator says of itself changes nothing of its account, and so it is not told to be modified.
    fn act(&mut self, admitted: &Admitted, transaction: &Transaction, fee: Amount) {
        if transaction.body.is_of_validator() {
            return;
        }
        self.touch(admitted.position);
        let account = self.shard.at_mut(admitted.position);
        let mut sender = Sender { account, effects: &mut self.effects, receives: None };
        match admitted.is_idle {
            true => footprint::pay_for(transaction, fee, &mut sender),
            false => visit(transaction, fee, &mut sender),
        }
        if let Some(references) = sender.receives {
            self.shard.receive(admitted.position, references);
        }
    }

    fn pay_in(&mut self, credit: &Credit) {
        let position = self.shard.find_or_insert(&credit.to);
        self.touch(position);
        self.shard.at_mut(position).credit(credit.asset, credit.amount);
        self.effects.balances.add(credit.asset, i128::from(credit.amount));
    }

    fn take_out(&mut self, taken: &Taken) {
        let position = self.shard.find(&taken.from).expect("the filter has found its balance");
        self.touch(position);
        self.shard.at_mut(position).debit(taken.asset, taken.amount);
        self.effects.balances.add(taken.asset, -i128::from(taken.amount));
    }

    fn change_session(&mut self, change: &SessionChange) {
        let position = self.shard.find(&change.account).expect("an account with session keys or a policy exists");
        self.touch(position);
        change.apply(self.shard.at_mut(position));
    }
}

/// Items by the shard of their account, in their order.
struct Routed<'a, T> {
    items: &'a [T],
    order: Vec<u32>,
    starts: Vec<usize>,
}

impl<'a, T> Routed<'a, T> {
    /// A counting sort.
    fn new(items: &'a [T], account: impl Fn(&T) -> &Address) -> Routed<'a, T> {
        let mut starts = vec![0usize; SHARDS + 1];
        items.iter().for_each(|item| starts[shard_of(account(item)) + 1] += 1);
        (0..SHARDS).for_each(|shard| starts[shard + 1] += starts[shard]);
        let mut order = vec![0u32; items.len()];
        let mut next = starts.clone();
        for (at, item) in items.iter().enumerate() {
            let slot = &mut next[shard_of(account(item))];
            order[*slot] = at as u32;
            *slot += 1;
        }
        Routed { items, order, starts }
    }

    fn of_shard(&self, shard: usize) -> impl ExactSizeIterator<Item = &'a T> + '_ {
        self.order[self.starts[shard]..self.starts[shard + 1]].iter().map(|at| &self.items[*at as usize])
    }
}
