//! Budgets of clients for work that proved false: false signatures, above all.
//!
//! A budget is full at first, and refills with time. A client may spend what is left; whatever one request costs above
//! that is a debt, which time pays off before anything is left again.
//!
//! *Properties.* In t seconds a client spends at most `burst` + t · `per_second` units and one request more. Budgets
//! that are full take no memory, and at most `clients` are remembered: the one that is full soonest is forgotten first.

use std::collections::{BTreeMap, BTreeSet};

/// How much may prove false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Units of a full budget.
    pub burst: u64,
    /// Units that return in a second.
    pub per_second: u64,
    /// Clients that are remembered.
    pub clients: usize,
}

/// What clients have spent; see the module text.
#[derive(Clone, Debug)]
pub struct Budgets<C> {
    limits: BudgetLimits,
    /// When the budget of a client is full again, in microseconds.
    full_at: BTreeMap<C, u64>,
    /// The same, the one that is full soonest first.
    soonest: BTreeSet<(u64, C)>,
}

/// Units of a budget in microseconds, and back.
const SECOND: u64 = 1_000_000;

impl<C: Copy + Ord> Budgets<C> {
    /// All budgets are full.
    pub fn new(limits: BudgetLimits) -> Budgets<C> {
        Budgets { limits, full_at: BTreeMap::new(), soonest: BTreeSet::new() }
    }

    /// Microseconds in which so many units return.
    fn time_of(&self, units: u64) -> u64 {
        units.saturating_mul(SECOND) / self.limits.per_second.max(1)
    }

    /// Microseconds until a budget is full.
    fn until_full(&self, now_ms: u64, client: &C) -> u64 {
        self.full_at.get(client).map_or(0, |at| at.saturating_sub(now_ms.saturating_mul(1_000)))
    }

    /// What a client has left, or the milliseconds until it has something.
    ///
    /// # Errors
    /// Milliseconds to wait, at least one.
    pub fn left(&self, now_ms: u64, client: &C) -> Result<u64, u64> {
        let missing = self.until_full(now_ms, client);
        let spent = missing.saturating_mul(self.limits.per_second).div_ceil(SECOND);
        match self.limits.burst.saturating_sub(spent) {
            0 => {
                let one_left = self.time_of(self.limits.burst.saturating_sub(1));
                Err(missing.saturating_sub(one_left).div_ceil(1_000).max(1))
            }
            left => Ok(left),
        }
    }

    /// Charges what proved false to a client.
    pub fn charge(&mut self, now_ms: u64, client: C, units: u64) {
        if units == 0 {
            return;
        }
        let now = now_ms.saturating_mul(1_000);
        while self.soonest.first().is_some_and(|(at, _)| *at <= now) {
            self.soonest.pop_first().map(|(_, full)| self.full_at.remove(&full));
        }
        let before = self.full_at.get(&client).copied();
        if let Some(before) = before {
            self.soonest.remove(&(before, client));
        }
        let at = before.unwrap_or(now).max(now).saturating_add(self.time_of(units).max(1));
        self.full_at.insert(client, at);
        self.soonest.insert((at, client));
        while self.full_at.len() > self.limits.clients.max(1) {
            self.soonest.pop_first().map(|(_, forgotten)| self.full_at.remove(&forgotten));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BudgetLimits = BudgetLimits { burst: 100, per_second: 10, clients: 3 };

    #[test]
    fn a_budget_is_spent_refills_and_a_debt_is_paid_off_first() {
        let mut budgets = Budgets::new(LIMITS);
        assert_eq!(budgets.left(0, &1), Ok(100));
        budgets.charge(0, 1, 60);
        assert_eq!((budgets.left(0, &1), budgets.left(0, &2)), (Ok(40), Ok(100)));
        assert_eq!(budgets.left(1_000, &1), Ok(50));
        budgets.charge(1_000, 1, 80);
        let wait = budgets.left(1_000, &1).expect_err("a debt of thirty");
        assert_eq!(wait, 3_100, "thirty units and one take 3.1 seconds");
        assert!(budgets.left(1_000 + wait - 1, &1).is_err());
        assert_eq!(budgets.left(1_000 + wait, &1), Ok(1));
        assert_eq!(budgets.left(1_000_000, &1), Ok(100), "never more than a full one");
    }

    #[test]
    fn full_budgets_are_forgotten_and_of_many_the_one_that_is_full_soonest() {
        let mut budgets = Budgets::new(LIMITS);
        for (client, units) in [(1, 50), (2, 10), (3, 30), (4, 20)] {
            budgets.charge(0, client, units);
        }
        assert_eq!(budgets.left(0, &2), Ok(100), "it owed least");
        assert_eq!([1, 3, 4].map(|client| budgets.left(0, &client)), [Ok(50), Ok(70), Ok(80)]);
        budgets.charge(60_000, 5, 1);
        assert_eq!((budgets.full_at.len(), budgets.soonest.len()), (1, 1));
    }
}
