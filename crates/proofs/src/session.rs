//! The session keys of an account, as they are hashed and proved with it. The rules are the ledger's (module
//! `sessions`).

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{
    Amount, AssetId, Height, MAX_ISSUED, PublicKey, SESSION_CAPS_MAX, SESSION_SLOTS_MAX, SessionScope, SessionSlot,
};

use crate::window::Window;

/// Session keys of an account at one time.
pub const SESSIONS_MAX: usize = 16;

/// What a session key may use of an asset, and what it has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SessionBudget {
    /// The asset.
    pub asset: AssetId,
    /// The most units that may be used.
    pub cap: Amount,
    /// Units locked and sold less units bought, fees included; negative if the key bought more than it sold.
    pub used: i64,
}

/// A session key of an account.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SessionRecord {
    /// Its slot.
    pub slot: SessionSlot,
    /// The key.
    pub key: PublicKey,
    /// The scope of the key.
    pub scope: SessionScope,
    /// Whether it may do nothing any more, since the account has another key than the one that authorised it.
    pub is_closed: bool,
    /// The last height at which its transactions count.
    pub until: Height,
    /// Its offers end with this block; later it may not trade. At most `until`.
    pub alive: Height,
    /// The numbers that it has used, counted within the slot.
    pub window: Window,
    /// Its caps by asset; of others it may use nothing.
    pub budgets: Vec<SessionBudget>,
}

/// The session keys of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountSessions {
    /// The last slot that was given; none is given twice.
    pub slots: SessionSlot,
    /// Those that are not forgotten, by slot; at most [`SESSIONS_MAX`].
    pub records: Vec<SessionRecord>,
}

impl SessionBudget {
    /// Units that may still be used.
    pub fn room(&self) -> Amount {
        let room = i128::from(self.cap) - i128::from(self.used);
        Amount::try_from(room).unwrap_or(0)
    }

    /// Uses units, for which there is room.
    pub fn spend(&mut self, units: Amount) {
        let used = i128::from(self.used) + i128::from(units);
        self.used = i64::try_from(used).expect("a cap is at most the most units that can exist");
    }

    /// Gives units back that were locked, or were bought. More than can exist are not remembered.
    pub fn release(&mut self, units: Amount) {
        let used = i128::from(self.used) - i128::from(units);
        self.used = used.max(-i128::from(MAX_ISSUED)) as i64;
    }

    fn is_sound(&self) -> bool {
        let (cap, used) = (i128::from(self.cap), i128::from(self.used));
        cap <= i128::from(MAX_ISSUED) && (-i128::from(MAX_ISSUED)..=cap).contains(&used)
    }
}

impl SessionRecord {
    /// Units of an asset that it may still use.
    pub fn room(&self, asset: AssetId) -> Amount {
        self.budgets.iter().find(|budget| budget.asset == asset).map_or(0, SessionBudget::room)
    }

    /// The budget for an asset.
    pub fn budget_mut(&mut self, asset: AssetId) -> Option<&mut SessionBudget> {
        self.budgets.iter_mut().find(|budget| budget.asset == asset)
    }

    /// Whether nothing of it matters from this height on: no transaction of it counts, and none of its offers rests.
    pub fn is_over(&self, height: Height) -> bool {
        self.alive < height && (self.until < height || self.is_closed)
    }

    fn is_sound(&self) -> bool {
        self.alive <= self.until
            && self.budgets.len() <= SESSION_CAPS_MAX
            && self.budgets.is_sorted_by(|a, b| a.asset < b.asset)
            && self.budgets.iter().all(SessionBudget::is_sound)
    }
}

impl AccountSessions {
    /// The session in a slot.
    pub fn get(&self, slot: SessionSlot) -> Option<&SessionRecord> {
        self.records.binary_search_by_key(&slot, |record| record.slot).ok().map(|at| &self.records[at])
    }

    /// The session in a slot, for changes.
    pub fn get_mut(&mut self, slot: SessionSlot) -> Option<&mut SessionRecord> {
        self.records.binary_search_by_key(&slot, |record| record.slot).ok().map(|at| &mut self.records[at])
    }

    /// Whether a ledger can have these.
    pub fn is_sound(&self) -> bool {
        self.slots <= SESSION_SLOTS_MAX
            && self.records.len() <= SESSIONS_MAX
            && self.records.is_sorted_by(|a, b| a.slot < b.slot)
            && self.records.iter().all(|record| (1..=self.slots).contains(&record.slot) && record.is_sound())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_counts_what_is_used_and_never_overflows() {
        let mut budget = SessionBudget { asset: AssetId(0), cap: MAX_ISSUED, used: 0 };
        budget.spend(MAX_ISSUED);
        assert_eq!((budget.used, budget.room(), budget.is_sound()), (i64::MAX, 0, true));
        (0..3).for_each(|_| budget.release(MAX_ISSUED));
        assert_eq!((budget.used, budget.room(), budget.is_sound()), (-i64::MAX, u64::MAX - 1, true));
        budget.spend(u64::MAX - 1);
        assert_eq!((budget.used, budget.room()), (i64::MAX, 0));
        let none = SessionBudget { asset: AssetId(0), cap: 0, used: 0 };
        assert_eq!(none.room(), 0);
    }
}
