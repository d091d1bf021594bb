//! Sums, computed anew from orders and fills: they are kept for speed and must never drift.

use std::collections::BTreeMap;

use primitives::AssetId;
use primitives::venue::VenueSide;

use super::VenueMachine;
use super::cover::penalty_of;

/// Units that are open and owed, by account or key and asset.
type Sums = BTreeMap<(u32, AssetId), (u128, u128)>;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, kept: &T, derived: &T) -> Result<(), String> {
    match kept == derived {
        true => Ok(()),
        false => Err(format!("{what}: {kept:?} is kept, and {derived:?} follows from orders and fills")),
    }
}

/// Compares every sum with what it is the sum of.
///
/// # Errors
/// Names the first difference.
pub(crate) fn audit(machine: &VenueMachine) -> Result<(), String> {
    let (by_account, by_key) = derived(machine);
    let holdings =
        machine.core.accounts.iter().enumerate().flat_map(|(at, account)| {
            account.holdings.iter().map(move |of| ((at as u32, of.asset), (of.open, of.owed)))
        });
    same("accounts", &some(holdings), &by_account)?;
    let exposures = machine
        .core
        .keys
        .iter()
        .enumerate()
        .flat_map(|(at, key)| key.exposures.iter().map(move |of| ((at as u32, of.asset), (of.open, of.owed))));
    same("keys", &some(exposures), &by_key)?;
    audit_counts(machine)?;
    audit_books(machine)
}

fn derived(machine: &VenueMachine) -> (Sums, Sums) {
    let (mut by_account, mut by_key) = (Sums::new(), Sums::new());
    let mut add = |key: u32, asset: AssetId, open: u128, owed: u128| {
        for (sums, at) in [(&mut by_account, machine.core.key(key).account), (&mut by_key, key)] {
            let sum = sums.entry((at, asset)).or_default();
            *sum = (sum.0 + open, sum.1 + owed);
        }
    };
    for order in machine.core.orders.iter().flatten().filter(|order| order.end.is_none()) {
        let (asset, units) = machine.reserve(&order.terms, order.open).expect("it was checked when it came");
        add(order.key, asset, units, 0);
    }
    for pending in &machine.core.pending {
        for side in [VenueSide::Buy, VenueSide::Sell] {
            let (asset, units) = pending.debit(side, &machine.markets[&pending.fill.market].terms);
            add(machine.core.order(pending.slot(side)).key, asset, 0, units);
        }
    }
    (some(by_account.into_iter()), some(by_key.into_iter()))
}

fn audit_counts(machine: &VenueMachine) -> Result<(), String> {
    let sums = || machine.core.filled_slots().map(|(slot, order)| (order, machine.sums_of(slot)));
    let mut entries = vec![0; machine.core.keys.len()];
    for (order, _) in sums().filter(|(_, sums)| sums.is_entry) {
        entries[order.key as usize] += 1;
    }
    same("entries of keys", &machine.core.keys.iter().map(|key| key.entries).collect(), &entries)?;
    let prospective = sums().filter(|(_, sums)| sums.is_prospective).count();
    same("prospective entries", &(machine.core.prospective as usize), &prospective)?;
    let penalties = machine.core.pending.iter().map(|of| penalty_of(of.penalty, 1)).sum();
    same("penalties", &machine.core.penalties, &penalties)?;
    same("bytes", &machine.core.bytes, &machine.bytes_of_all())?;
    same("weight", &machine.core.weight, &machine.weight_of_all())
}

/// Open orders are those of the books, with the same lots.
fn audit_books(machine: &VenueMachine) -> Result<(), String> {
    let mut open = 0;
    for (slot, order) in machine.core.orders.iter().enumerate() {
        let Some(order) = order.as_ref().filter(|order| order.end.is_none()) else { continue };
        let owner = machine.core.owner_of(order.key).owner.ok_or("an open order's account is in no book")?;
        let position = machine.market_of(slot as u32).book.position(owner, slot as u32);
        same("open lots", &Some(order.open), &position.map(|position| position.lots))?;
        open += 1;
    }
    same("open orders", &open, &machine.markets.values().map(|market| market.book.len()).sum())
}

/// Without those that are nothing.
fn some(sums: impl Iterator<Item = ((u32, AssetId), (u128, u128))>) -> Sums {
    sums.filter(|(_, sum)| *sum != (0, 0)).collect()
}
