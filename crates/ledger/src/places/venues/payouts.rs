//! The end of a block: payouts of what is owed, and what is forgotten. Both are bounded for each block; what is left
//! waits for the next one, and is owed or dead until then.

use primitives::venue::VenueId;
use primitives::{Height, PublicKey};
use proofs::{ClaimedId, DepositId, FilledId, TradingKeyId, VenueDeposit, VenueRecordId};

use super::Venues;
use super::mistake::VenueMistake;
use super::step::{BONDED, Step};
use crate::places::shared_map::Edited;
use crate::sums::Credit;

impl Venues {
    /// Pays deposits whose requests are past, the oldest first, and bonds whose withdrawal is over.
    pub(super) fn pay_out(&mut self, step: &mut Step<'_>) {
        for _ in 0..self.terms.per_block {
            let Some((&(since, id), ())) = self.queues.payouts.first() else { break };
            if !self.is_owed(since) {
                break;
            }
            self.queues.payouts.remove(&(since, id));
            self.pay_deposit(since, id, step);
        }
        self.pay_bonds(step);
    }

    /// Pays what is left of a request, if it is still that of this height.
    fn pay_deposit(&mut self, since: Height, id: DepositId, step: &mut Step<'_>) {
        let deposit = self.deposits.get(&id).copied().unwrap_or_default();
        let Some(leaving) = deposit.leaving.filter(|leaving| leaving.since == since) else { return };
        self.set_deposit(id, VenueDeposit { leaving: None, ..deposit });
        let (_, to, asset) = id;
        step.accounts.push(to);
        step.credits.push(Credit { to, asset, amount: leaving.units });
    }

    fn pay_bonds(&mut self, step: &mut Step<'_>) {
        let delay = self.terms.bond_delay;
        let due = self
            .venues
            .iter()
            .filter(|(_, venue)| venue.leaving.is_some_and(|leaving| self.is_past_by(delay, leaving.since)));
        let due: Vec<VenueId> = due.map(|(venue, _)| *venue).collect();
        for venue in due {
            let record = self.venue_mut(venue);
            let leaving = record.leaving.take().expect("it is due");
            step.credits.push(Credit { to: record.owner, asset: BONDED, amount: leaving.units });
        }
    }

    /// Forgets entries of orders that nothing fills any more: those whose expiry is past, those of ended incarnations,
    /// and those of revoked keys and below floors in force. Then claims that are over.
    pub(super) fn forget(&mut self) {
        let mut left = self.terms.per_block;
        self.note_edits();
        self.forget_expired(&mut left);
        self.forget_ended(&mut left);
        self.forget_dead(&mut left);
        self.forget_claims(&mut left);
    }

    /// Looks at the keys whose revocations and raises have come into force.
    fn note_edits(&mut self) {
        while let Some((&(since, id), ())) = self.queues.edits.first() {
            if !self.is_past(since) {
                return;
            }
            self.queues.edits.remove(&(since, id));
            self.note_dead(id);
        }
    }

    fn forget_expired(&mut self, left: &mut u32) {
        let queued = self.queues.expiries.iter().map(|(item, ())| *item);
        let due = queued.take_while(|(expiry, _)| self.is_forgotten(*expiry)).take(*left as usize);
        let due: Vec<(Height, FilledId)> = due.collect();
        *left -= due.len() as u32;
        let mut items: Vec<(FilledId, Height)> = due.iter().map(|(expiry, id)| (*id, *expiry)).collect();
        self.queues.expiries.edit(due.into_iter().map(|item| (item, ())), |_, (), _| Edited::Gone);
        items.sort_unstable();
        items.dedup_by_key(|(id, _)| *id);
        self.forget_entries(items);
    }

    /// Forgets the entries that have these expiries; by id, each once.
    fn forget_entries(&mut self, items: Vec<(FilledId, Height)>) {
        let forgets_blindly = self.makes(VenueMistake::ForgetsBlindly);
        let mut gone: Vec<(FilledId, Height)> = Vec::with_capacity(items.len());
        self.filled.edit(items, |id, expiry, entry| match entry {
            Some(entry) if entry.expiry == expiry || forgets_blindly => {
                gone.push((*id, entry.expiry));
                Edited::Gone
            }
            _ => Edited::Stays,
        });
        self.touched.extend(gone.iter().map(|(id, _)| VenueRecordId::Filled(*id)));
        for of_venue in gone.chunk_by(|one, next| one.0.0 == next.0.0) {
            self.venue_mut(of_venue[0].0.0).entries -= of_venue.len() as u64;
        }
        if forgets_blindly {
            for (id, expiry) in gone {
                self.queues.expiries.remove(&(expiry, id));
            }
        }
    }

    fn forget_ended(&mut self, left: &mut u32) {
        let venues: Vec<(VenueId, u32)> =
            self.venues.iter().map(|(venue, record)| (*venue, record.incarnation)).collect();
        for (venue, incarnation) in venues {
            while let Some(first) = self.first_filled(venue).filter(|first| first.1 < incarnation && *left > 0) {
                *left -= 1;
                self.remove_filled(first);
            }
        }
    }

    /// The first entry of a venue.
    fn first_filled(&self, venue: VenueId) -> Option<FilledId> {
        let (first, _) = self.filled.from(&(venue, 0, PublicKey([0; 32]), 0, 0)).next()?;
        (first.0 == venue).then_some(*first)
    }

    fn forget_dead(&mut self, left: &mut u32) {
        while *left > 0 {
            let Some((&id, ())) = self.queues.dead.first() else { return };
            match self.dead_entry(id) {
                Some(entry) => {
                    *left -= 1;
                    self.remove_filled(entry);
                }
                None => drop(self.queues.dead.remove(&id)),
            }
        }
    }

    fn dead_entry(&self, id: TradingKeyId) -> Option<FilledId> {
        self.first_dead(id, self.keys.get(&id)?)
    }

    fn forget_claims(&mut self, left: &mut u32) {
        let delay = self.terms.bond_delay;
        while *left > 0 {
            let Some((&(height, id), ())) = self.queues.claims.first() else { return };
            if !self.is_over(id, delay) {
                return;
            }
            *left -= 1;
            self.queues.claims.remove(&(height, id));
            self.claimed.remove(&id);
            self.touched.push(VenueRecordId::Claimed(id));
        }
    }

    fn is_over(&self, id: ClaimedId, delay: primitives::venue::Delay) -> bool {
        self.claimed.get(&id).is_none_or(|fence| self.is_past_by(delay, *fence))
    }
}
