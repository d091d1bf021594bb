//! What transactions spend and claim together, and whether it fits.

use primitives::{Amount, Transaction};
use proofs::{Pair, Place, Refusal};
use smallvec::SmallVec;

use super::footprint::{Footprint, Visitor, pay_for};
use super::once::{Once, Sum};
use crate::places::accounts::Account;
use crate::places::scope::Scope;
use crate::state::Ledger;

/// A transaction of an account that counts already when others of it are judged.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    pub index: u32,
    pub transaction: &'a Transaction,
    /// Whether it pays and does nothing else.
    pub is_idle: bool,
}

/// Claims on keys and sums that do not belong to one account, by index of the transaction.
#[derive(Default)]
pub(super) struct Shared {
    pub once: Vec<(Once, u32)>,
    pub sums: Vec<(Sum, u32, Amount)>,
}

/// Collects what the transactions of one account spend and claim together.
#[derive(Default)]
pub(super) struct AccountClaims<'s> {
    pub sums: SmallVec<[(Sum, u128); 4]>,
    owned: SmallVec<[(Once, u32); 4]>,
    /// Places that the account cancels.
    cancelled: SmallVec<[(Pair, Place); 4]>,
    /// Index of the transaction whose footprint is read.
    pub index: u32,
    /// Collects claims that other accounts may make as well.
    shared: Option<&'s mut Shared>,
}

impl<'a> Visitor<'a> for AccountClaims<'_> {
    #[inline]
    fn sum(&mut self, sum: Sum, units: Amount) {
        match &mut self.shared {
            _ if sum.is_own() => match self.sums.iter_mut().find(|(known, _)| *known == sum) {
                Some((_, all)) => *all += u128::from(units),
                None => self.sums.push((sum, u128::from(units))),
            },
            Some(shared) => shared.sums.push((sum, self.index, units)),
            None => {}
        }
    }

    fn cancel(&mut self, pair: Pair, place: Place) {
        self.cancelled.push((pair, place));
    }

    #[inline]
    fn once(&mut self, once: Once) {
        match (once.scope(), &mut self.shared) {
            (Scope::Account(_) | Scope::Sender(_) | Scope::Latest, _) => self.owned.push((once, self.index)),
            (_, Some(shared)) => shared.once.push((once, self.index)),
            (_, None) => {}
        }
    }
}

impl<'s> AccountClaims<'s> {
    /// Collects what other accounts may claim as well in `shared`.
    pub(super) fn and_shared(shared: &'s mut Shared) -> AccountClaims<'s> {
        AccountClaims { shared: Some(shared), ..AccountClaims::default() }
    }

    pub(super) fn read(&mut self, index: u32, transaction: &Transaction, fee: Amount) {
        self.index = index;
        visit(transaction, fee, self);
    }

    /// Reads what counts already. It is read last: of replacements of one offer the one that counts already counts.
    pub(super) fn stand(&mut self, standing: &[Standing], fee: Amount) {
        for one in standing {
            match one.is_idle {
                true => pay_for(one.transaction, fee, self),
                false => self.read(one.index, one.transaction, fee),
            }
        }
    }

    /// Places of offers that are replaced.
    pub(super) fn replaced(&self) -> impl Iterator<Item = (Pair, Place)> + '_ {
        self.owned.iter().filter_map(|(once, _)| match once {
            Once::Replace(pair, place) => Some((*pair, *place)),
            _ => None,
        })
    }

    /// Why the account's transactions conflict with each other, if they do.
    pub(super) fn conflict(&mut self, ledger: &Ledger, account: &Account) -> Option<Refusal> {
        // Transactions are visited by their numbers, which a stable sort keeps.
        self.owned.sort_by_key(|(once, _)| *once);
        let twice = self.owned.windows(2).filter(|two| two[0].0 == two[1].0);
        for (once, _) in twice.map(|two| two[0]) {
            if let Scope::Account(refusal) = once.scope() {
                return Some(refusal);
            }
        }
        let exceeds = |(sum, all): &&(Sum, u128)| *all > u128::from(room(ledger, *sum, account));
        self.sums.iter().find(exceeds).map(|(sum, _)| sum.refusal())
    }

    /// Once there is no conflict: the transactions that claim what another one of the account claims, and that do not
    /// count; and replacements of offers that the account cancels.
    pub(super) fn repeated(&self) -> impl Iterator<Item = u32> + '_ {
        let twice = self.owned.windows(2).filter(|two| two[0].0 == two[1].0);
        let lost = twice.map(|two| two[usize::from(two[0].0.scope() != Scope::Latest)].1);
        let is_cancelled =
            |once: &Once| matches!(once, Once::Replace(pair, place) if self.cancelled.contains(&(*pair, *place)));
        lost.chain(self.owned.iter().filter(move |(once, _)| is_cancelled(once)).map(|(_, index)| *index))
    }
}

/// The limit of a sum of this sender in the next block.
pub(crate) fn room(ledger: &Ledger, sum: Sum, sender: &Account) -> Amount {
    match sum {
        Sum::Spent(asset) => sender.balance(asset),
        Sum::Key(slot, asset) => sender.session(slot).map_or(0, |session| session.room(asset)),
        Sum::Offers(slot) => ledger.slots.room((sender.address(), slot)),
        Sum::Shares(pool) => ledger.pools().map_or(0, |pools| pools.shares(pool, sender.address())),
        #[cfg(test)]
        Sum::Deposit => 50,
        _ => shared_room(ledger, sum),
    }
}

/// The limit of a sum that belongs to no account in the next block.
pub(super) fn shared_room(ledger: &Ledger, sum: Sum) -> Amount {
    match sum {
        Sum::Issued(asset) => ledger.listings().supply_max(asset) - ledger.assets[asset.0 as usize].issued,
        Sum::Minted(pool) => ledger.pools().map_or(0, |pools| pools.room(&pool)),
        #[cfg(test)]
        Sum::Capped => 100,
        _ => 0,
    }
}

/// Emits a footprint to a visitor that has no requirements.
pub(crate) fn visit<'a>(of: &'a impl Footprint, fee: Amount, visitor: &mut impl Visitor<'a>) {
    of.emit(fee, visitor).expect("only requirements fail");
}
