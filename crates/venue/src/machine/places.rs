//! Places: of how many accounts and keys something is remembered.

use primitives::venue::OrderNumber;

use super::VenueMachine;
use crate::refusal::OrderRefusal;
use crate::state::Remembered;

impl VenueMachine {
    /// Gives a key and its account a place, before anything of them is remembered. If there is none left, whoever has
    /// been idle gives way.
    pub(super) fn take_place(&mut self, at: u32) -> Result<(), OrderRefusal> {
        let account = self.core.key(at).account;
        if self.core.account(account).owner.is_none() {
            let owner = self.free_owner().ok_or(OrderRefusal::TooManyAccounts)?;
            self.core.owners[owner as usize] = account;
            self.core.accounts[account as usize].owner = Some(owner);
        }
        self.core.accounts[account as usize].used = self.core.effects;
        self.take_place_of_key(at)
    }

    /// A number in the books that no account has: a new one, or that of the account that has been idle for longest and
    /// has no open order.
    fn free_owner(&mut self) -> Option<u32> {
        let owners = self.core.owners.len() as u32;
        if owners < self.core.settings.limits.accounts {
            self.core.owners.push(0);
            return Some(owners);
        }
        let idle = (0..).zip(&self.core.owners).filter(|(_, account)| !self.core.account(**account).has_open());
        let (owner, account) = idle.min_by_key(|(_, account)| self.core.account(**account).used)?;
        let (owner, account): (u32, u32) = (owner, *account);
        self.core.accounts[account as usize].owner = None;
        let keys = self.core.account(account).keys.clone();
        keys.into_iter().for_each(|key| self.forget_numbers(key, usize::MAX, None));
        Some(owner)
    }

    fn take_place_of_key(&mut self, at: u32) -> Result<(), OrderRefusal> {
        if self.core.key(at).has_place() {
            return Ok(());
        }
        let most = self.core.settings.limits.keys_of_account;
        let keys = self.core.owner_of(at).keys.iter().copied();
        let others: Vec<u32> = keys.filter(|key| self.core.key(*key).has_place()).collect();
        if others.len() < most as usize {
            return Ok(());
        }
        let is_idle = |key: &u32| self.core.key(*key).numbers.values().all(|what| self.is_final(what));
        let idle = others.into_iter().filter(is_idle).min_by_key(|key| (!self.core.key(*key).is_revoked, *key));
        let idle = idle.ok_or(OrderRefusal::TooManyKeys(most))?;
        self.forget_numbers(idle, usize::MAX, None);
        Ok(())
    }

    /// Whether a number may be forgotten.
    fn is_final(&self, what: &Remembered) -> bool {
        match what {
            Remembered::Taken(slot) => self.core.order(*slot).is_final(),
            Remembered::Refused(..) | Remembered::Overtaken => true,
        }
    }

    /// Forgets up to so many final numbers of a key but one, the lowest first. Numbers up to the highest forgotten one
    /// are refused from then on.
    pub(super) fn forget_numbers(&mut self, at: u32, most: usize, but: Option<OrderNumber>) {
        let numbers = self.core.key(at).numbers.iter();
        let dropped: Vec<(OrderNumber, Remembered)> = numbers
            .filter(|(of, what)| Some(**of) != but && self.is_final(what))
            .map(|(of, what)| (*of, *what))
            .take(most)
            .collect();
        for (number, what) in dropped {
            let key = self.core.key_mut(at);
            key.numbers.remove(&number);
            key.stale = key.stale.max(Some(number));
            if let Remembered::Taken(slot) = what {
                self.free_slot(slot);
            }
        }
    }
}
