//! What certified blocks say, and what follows: fates of fills, orders that end, and the end of the root.

use std::collections::BTreeSet;

use primitives::venue::{Horizon, VenueSide};
use primitives::{Address, Digest, Height, PublicKey};

use super::VenueMachine;
use crate::facts::{CertifiedFacts, FillFate, KeyStanding, VenueFact, VenueStanding};
use crate::mistake::VenueMistake;
use crate::refusal::{OrderEnd, VenueStop};
use crate::report::{ReportKind, VenueEffect};
use crate::state::{Account, Key, Pending};

impl VenueMachine {
    /// Learns the next certified block. An earlier one is known; behind a gap nothing can be judged.
    pub(super) fn learn(&mut self, facts: &CertifiedFacts) {
        if self.core.stopped.is_some() || !self.advance(facts) {
            return;
        }
        (self.core.heard_ms, self.has_learnt) = (Some(self.core.now_ms), true);
        self.core.newest = self.core.newest.max(facts.newest).max(facts.height);
        let mut accounts = BTreeSet::new();
        let settles = |fact: &&VenueFact| matches!(fact, VenueFact::Settled { .. });
        facts.facts.iter().filter(settles).for_each(|fact| self.learn_fact(fact, &mut accounts));
        facts.facts.iter().filter(|fact| !settles(fact)).for_each(|fact| self.learn_fact(fact, &mut accounts));
        self.compare_standing();
        self.end_expired();
        self.pass_entries();
        self.end_uncovered(&accounts);
    }

    /// The next height; false if the block is not the next one.
    fn advance(&mut self, facts: &CertifiedFacts) -> bool {
        let Some(horizon) = &mut self.core.horizon else {
            let delay = self.core.settings.terms.delay;
            self.core.horizon = Some(Horizon::new(delay, facts.height, facts.time_ms));
            return true;
        };
        let next = horizon.height() + 1;
        if facts.height != next {
            if facts.height > next {
                self.tell(VenueEffect::WantsBlock(next));
            }
            return false;
        }
        // As the ledger counts: a block whose time does not rise is as late as the next millisecond.
        let time = facts.time_ms.max(horizon.time_ms().saturating_add(1));
        horizon.advance(time)
    }

    fn learn_fact(&mut self, fact: &VenueFact, accounts: &mut BTreeSet<u32>) {
        match fact {
            VenueFact::Settled { incarnation, from, leaves, fates } => {
                if *incarnation == self.core.settings.incarnation {
                    self.learn_fates(*from, leaves, fates);
                }
            }
            VenueFact::Venue(standing) => self.core.standing = Some(*standing),
            VenueFact::Operator(standing) => self.core.operator = Some(*standing),
            VenueFact::Market(market, terms) => drop(self.core.listed.insert(*market, *terms)),
            VenueFact::Deposit { account, asset, free, leaving } => {
                let at = self.account_at(account);
                let holding = self.core.holding_mut(at, *asset);
                (holding.free, holding.leaving) = (*free, *leaving);
                accounts.insert(at);
            }
            VenueFact::Key(public, standing) => drop(accounts.insert(self.learn_key(public, standing))),
        }
    }

    pub(super) fn account_at(&mut self, address: &Address) -> u32 {
        let core = &mut self.core;
        *core.account_of.entry(*address).or_insert_with(|| {
            let (owner, used, is_killed, holdings, keys) = (None, 0, false, Vec::new(), Vec::new());
            core.accounts.push(Account { address: *address, owner, used, is_killed, holdings, keys });
            core.accounts.len() as u32 - 1
        })
    }

    /// A key as it is now. A revocation or a raise that is known is obeyed, although the ledger waits.
    fn learn_key(&mut self, public: &PublicKey, standing: &KeyStanding) -> u32 {
        let account = self.account_at(&standing.owner);
        let core = &mut self.core;
        let at = *core.key_of.entry(*public).or_insert_with(|| {
            let at = core.keys.len() as u32;
            core.accounts[account as usize].keys.push(at);
            core.keys.push(Key {
                public: *public,
                account,
                mandate: standing.mandate.clone(),
                net: Vec::new(),
                is_revoked: false,
                floor: standing.floor,
                raised: standing.floor,
                exposures: Vec::new(),
                numbers: Default::default(),
                stale: None,
                entries: 0,
            });
            at
        });
        let key = core.key_mut(at);
        key.net.clone_from(&standing.net);
        key.is_revoked = standing.is_revoked;
        if key.floor < standing.floor {
            key.floor = standing.floor;
            self.drop_below_floor(at);
        }
        let floor = if self.has(VenueMistake::RaisesLater) { standing.floor } else { standing.raised };
        self.raise_floor(at, floor.max(standing.floor));
        if standing.is_revoked && !self.has(VenueMistake::RevokedTrades) {
            self.core.open_orders(at).into_iter().for_each(|slot| self.end(slot, OrderEnd::Revoked));
        }
        account
    }

    /// Fates of the oldest unsettled fills. Another leaf than the reported one contradicts a report.
    fn learn_fates(&mut self, from: u64, leaves: &[Digest], fates: &[FillFate]) {
        let height = self.core.height();
        let ignores = self.has(VenueMistake::IgnoresContradiction);
        for ((index, leaf), fate) in (from..).zip(leaves).zip(fates) {
            match self.core.pending.front() {
                Some(next) if next.fill.index == index && (next.fill.leaf == *leaf || ignores) => {
                    let pending = self.core.pending.pop_front().expect("it was just seen");
                    self.learn_fate(&pending, height, *fate);
                }
                Some(_) => return self.stop(VenueStop::Contradicted(index)),
                None if ignores => {}
                None => return self.stop(VenueStop::JournalShort(index + 1)),
            }
        }
    }

    /// What became of a fill: nothing is owed for it any more.
    pub(super) fn learn_fate(&mut self, pending: &Pending, height: Height, fate: FillFate) {
        self.owe(pending, false);
        self.count_fill(false);
        let (lots, index) = (pending.fill.terms.lots, pending.fill.index);
        for side in [VenueSide::Buy, VenueSide::Sell] {
            let slot = pending.slot(side);
            let order = self.core.order_mut(slot);
            order.unsettled -= 1;
            match fate {
                FillFate::Applied => {
                    order.settled += lots;
                    order.has_entry = true;
                }
                FillFate::Bust(_) => order.bust += lots,
            }
            self.refresh(slot);
            self.report_order(slot, ReportKind::Settled { index, height, fate });
        }
    }

    /// Whether this root still runs the venue.
    fn compare_standing(&mut self) {
        let Some(standing) = self.core.standing else { return };
        if let Some(why) = self.stop_of(&standing) {
            self.stop(why);
        }
    }

    fn stop_of(&self, standing: &VenueStanding) -> Option<VenueStop> {
        let settings = &self.core.settings;
        if standing.incarnation != settings.incarnation {
            return (!self.has(VenueMistake::IgnoresFence)).then_some(VenueStop::Fenced);
        }
        if standing.is_convicted {
            return Some(VenueStop::Convicted);
        }
        let is_short = standing.settled > self.core.settled() && !self.has(VenueMistake::IgnoresContradiction);
        is_short.then_some(VenueStop::JournalShort(standing.settled))
    }

    /// Ends orders whose last height or time is over. The ledger takes their fills somewhat longer: those that were
    /// matched in time.
    fn end_expired(&mut self) {
        let (height, time) = (self.core.height(), self.core.time_ms());
        while let Some(&(expiry, slot)) = self.core.expiries.first() {
            let lives = if self.has(VenueMistake::ExpiredTrades) { !self.is_past(expiry) } else { expiry >= height };
            if lives {
                break;
            }
            self.end(slot, OrderEnd::Expired);
        }
        while let Some(&(until, slot)) = self.core.untils.first() {
            if until >= time {
                break;
            }
            self.end(slot, OrderEnd::Expired);
        }
    }
}
