//! The end of a block: payouts of what is owed, and what is forgotten. Both are bounded for each block; what is left
//! waits for the next one, and is owed or dead until then.

use primitives::venue::VenueId;
use primitives::{Height, PublicKey};
use proofs::{ClaimedId, DepositId, FilledId, TradingKeyId, VenueDeposit, VenueRecordId};

use super::Venues;
use super::mistake::VenueMistake;
use super::step::{BONDED, Step};
use crate::places::shared_map::Edited;
use crate::places::sums::Credit;

/// Pays deposits whose requests are past, the oldest first, and bonds whose withdrawal is over.
pub(super) fn pay_out(state: &mut Venues, step: &mut Step<'_>) {
    for _ in 0..state.terms.per_block {
        let Some((&(since, id), ())) = state.queues.payouts.first() else { break };
        if !state.is_owed(since) {
            break;
        }
        state.queues.payouts.remove(&(since, id));
        pay_deposit(state, since, id, step);
    }
    pay_bonds(state, step);
}

/// Pays what is left of a request, if it is still that of this height.
fn pay_deposit(state: &mut Venues, since: Height, id: DepositId, step: &mut Step<'_>) {
    let deposit = state.deposits.get(&id).copied().unwrap_or_default();
    let Some(leaving) = deposit.leaving.filter(|leaving| leaving.since == since) else { return };
    state.set_deposit(id, VenueDeposit { leaving: None, ..deposit });
    let (_, to, asset) = id;
    step.accounts.push(to);
    step.credits.push(Credit { to, asset, amount: leaving.units });
}

fn pay_bonds(state: &mut Venues, step: &mut Step<'_>) {
    let delay = state.terms.bond_delay;
    let due = state
        .venues
        .iter()
        .filter(|(_, venue)| venue.leaving.is_some_and(|leaving| state.is_past_by(delay, leaving.since)));
    let due: Vec<VenueId> = due.map(|(venue, _)| *venue).collect();
    for venue in due {
        let record = state.venue_mut(venue);
        let leaving = record.leaving.take().expect("it is due");
        step.credits.push(Credit { to: record.owner, asset: BONDED, amount: leaving.units });
    }
}

/// Forgets entries of orders that nothing fills any more: those whose expiry is past, those of ended incarnations,
/// and those of revoked keys and below floors in force. Then claims that are over.
pub(super) fn forget(state: &mut Venues) {
    let mut left = state.terms.per_block;
    note_edits(state);
    forget_expired(state, &mut left);
    forget_ended(state, &mut left);
    forget_dead(state, &mut left);
    forget_claims(state, &mut left);
}

/// Looks at the keys whose revocations and raises have come into force.
fn note_edits(state: &mut Venues) {
    while let Some((&(since, id), ())) = state.queues.edits.first() {
        if !state.is_past(since) {
            return;
        }
        state.queues.edits.remove(&(since, id));
        state.note_dead(id);
    }
}

fn forget_expired(state: &mut Venues, left: &mut u32) {
    let queued = state.queues.expiries.iter().map(|(item, ())| *item);
    let due = queued.take_while(|(expiry, _)| state.is_forgotten(*expiry)).take(*left as usize);
    let due: Vec<(Height, FilledId)> = due.collect();
    *left -= due.len() as u32;
    let mut items: Vec<(FilledId, Height)> = due.iter().map(|(expiry, id)| (*id, *expiry)).collect();
    state.queues.expiries.edit(due.into_iter().map(|item| (item, ())), |_, (), _| Edited::Gone);
    items.sort_unstable();
    items.dedup_by_key(|(id, _)| *id);
    forget_entries(state, items);
}

/// Forgets the entries that have these expiries; by id, each once.
fn forget_entries(state: &mut Venues, items: Vec<(FilledId, Height)>) {
    let forgets_blindly = state.makes(VenueMistake::ForgetsBlindly);
    let mut gone: Vec<(FilledId, Height)> = Vec::with_capacity(items.len());
    state.filled.edit(items, |id, expiry, entry| match entry {
        Some(entry) if entry.expiry == expiry || forgets_blindly => {
            gone.push((*id, entry.expiry));
            Edited::Gone
        }
        _ => Edited::Stays,
    });
    state.touched.extend(gone.iter().map(|(id, _)| VenueRecordId::Filled(*id)));
    for of_venue in gone.chunk_by(|one, next| one.0.0 == next.0.0) {
        state.venue_mut(of_venue[0].0.0).entries -= of_venue.len() as u64;
    }
    if forgets_blindly {
        for (id, expiry) in gone {
            state.queues.expiries.remove(&(expiry, id));
        }
    }
}

fn forget_ended(state: &mut Venues, left: &mut u32) {
    let venues: Vec<(VenueId, u32)> = state.venues.iter().map(|(venue, record)| (*venue, record.incarnation)).collect();
    for (venue, incarnation) in venues {
        while let Some(first) = first_filled(state, venue).filter(|first| first.1 < incarnation && *left > 0) {
            *left -= 1;
            state.remove_filled(first);
        }
    }
}

/// The first entry of a venue.
fn first_filled(state: &Venues, venue: VenueId) -> Option<FilledId> {
    let (first, _) = state.filled.from(&(venue, 0, PublicKey([0; 32]), 0, 0)).next()?;
    (first.0 == venue).then_some(*first)
}

fn forget_dead(state: &mut Venues, left: &mut u32) {
    while *left > 0 {
        let Some((&id, ())) = state.queues.dead.first() else { return };
        match dead_entry(state, id) {
            Some(entry) => {
                *left -= 1;
                state.remove_filled(entry);
            }
            None => drop(state.queues.dead.remove(&id)),
        }
    }
}

fn dead_entry(state: &Venues, id: TradingKeyId) -> Option<FilledId> {
    state.first_dead(id, state.keys.get(&id)?)
}

fn forget_claims(state: &mut Venues, left: &mut u32) {
    let delay = state.terms.bond_delay;
    while *left > 0 {
        let Some((&(height, id), ())) = state.queues.claims.first() else { return };
        if !is_over(state, id, delay) {
            return;
        }
        *left -= 1;
        state.queues.claims.remove(&(height, id));
        state.claimed.remove(&id);
        state.touched.push(VenueRecordId::Claimed(id));
    }
}

fn is_over(state: &Venues, id: ClaimedId, delay: primitives::venue::Delay) -> bool {
    state.claimed.get(&id).is_none_or(|fence| state.is_past_by(delay, *fence))
}
