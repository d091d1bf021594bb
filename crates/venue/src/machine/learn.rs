//! What certified blocks say, and what follows: fates of fills, orders that end, and the end of the root.

use std::collections::BTreeSet;

use primitives::venue::{Horizon, VenueSide};
use primitives::{Address, Digest, Height, PublicKey};

use super::VenueMachine;
use super::holders::{self, Said};
use crate::facts::{CertifiedFacts, FillFate, KeyStanding, VenueFact, VenueStanding};
use crate::mistake::VenueMistake;
use crate::refusal::{OrderEnd, VenueStop};
use crate::report::{ReportKind, VenueEffect};
use crate::state::{Account, Key, Pending, Spared};

/// Learns the next certified block. An earlier one is known; behind a gap nothing can be judged.
pub(super) fn learn(machine: &mut VenueMachine, facts: &CertifiedFacts) {
    if machine.core.stopped.is_some() || !advance(machine, facts) {
        return;
    }
    (machine.core.heard_ms, machine.has_learnt) = (Some(machine.core.now_ms), true);
    machine.core.newest = machine.core.newest.max(facts.newest).max(facts.height);
    let mut accounts = BTreeSet::new();
    let mut said = Said::default();
    for stage in 0..=3 {
        let now = facts.facts.iter().filter(|fact| stage_of(fact) == stage);
        now.for_each(|fact| learn_fact(machine, fact, &mut accounts, &mut said));
    }
    compare_standing(machine);
    holders::end_frozen(machine, &said);
    end_expired(machine);
    machine.pass_entries();
    machine.end_uncovered(&accounts);
}

/// The next height; false if the block is not the next one.
fn advance(machine: &mut VenueMachine, facts: &CertifiedFacts) -> bool {
    let Some(horizon) = &mut machine.core.horizon else {
        let delay = machine.core.settings.terms.delay;
        machine.core.horizon = Some(Horizon::new(delay, facts.height, facts.time_ms));
        return true;
    };
    let next = horizon.height() + 1;
    if facts.height != next {
        if facts.height > next {
            machine.tell(VenueEffect::WantsBlock(next));
        }
        return false;
    }
    // As the ledger counts: a block whose time does not rise is as late as the next millisecond.
    let time = facts.time_ms.max(horizon.time_ms().saturating_add(1));
    horizon.advance(time)
}

/// When a fact of a block is learnt: fates first, and whom issuers have frozen after who trades what.
fn stage_of(fact: &VenueFact) -> u8 {
    match fact {
        VenueFact::Settled { .. } => 0,
        VenueFact::Controlled(..) => 1,
        VenueFact::Holder { .. } => 3,
        _ => 2,
    }
}

fn learn_fact(machine: &mut VenueMachine, fact: &VenueFact, accounts: &mut BTreeSet<u32>, said: &mut Said) {
    match fact {
        VenueFact::Settled { incarnation, from, leaves, fates } => {
            if *incarnation == machine.core.settings.incarnation {
                learn_fates(machine, *from, leaves, fates);
            }
        }
        VenueFact::Venue(standing) => machine.core.standing = Some(*standing),
        VenueFact::Operator(standing) => machine.core.operator = Some(*standing),
        VenueFact::Market(market, terms) => drop(machine.core.listed.insert(*market, *terms)),
        VenueFact::Deposit { account, asset, free, leaving } => {
            let at = account_at(machine, account);
            let holding = machine.core.holding_mut(at, *asset);
            (holding.free, holding.leaving) = (*free, *leaving);
            accounts.insert(at);
        }
        VenueFact::Rules(rules) => machine.core.rules = *rules,
        VenueFact::Fee(fee) => machine.core.settings.terms.fee = *fee,
        VenueFact::Controlled(asset, controlled) => holders::learn_controlled(machine, *asset, *controlled, said),
        VenueFact::Holder { asset, account, is_open } => {
            holders::learn_holder(machine, (*asset, *account), *is_open, said)
        }
        VenueFact::Owner(owner) => holders::learn_owner(machine, *owner, said),
        VenueFact::Key(public, standing) => drop(accounts.insert(learn_key(machine, public, standing))),
    }
}

pub(super) fn account_at(machine: &mut VenueMachine, address: &Address) -> u32 {
    let core = &mut machine.core;
    *core.account_of.entry(*address).or_insert_with(|| {
        let (owner, used, is_killed, holdings, keys) = (None, 0, false, Vec::new(), Vec::new());
        core.accounts.push(Account {
            address: *address,
            owner,
            used,
            is_killed,
            holdings,
            keys,
            spared: Spared::default(),
        });
        core.accounts.len() as u32 - 1
    })
}

/// A key as it is now. A revocation or a raise that is known is obeyed, although the ledger waits.
fn learn_key(machine: &mut VenueMachine, public: &PublicKey, standing: &KeyStanding) -> u32 {
    let account = account_at(machine, &standing.owner);
    let core = &mut machine.core;
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
        machine.drop_below_floor(at);
    }
    let floor = if machine.has(VenueMistake::RaisesLater) { standing.floor } else { standing.raised };
    machine.raise_floor(at, floor.max(standing.floor));
    if standing.is_revoked && !machine.has(VenueMistake::RevokedTrades) {
        machine.core.open_orders(at).into_iter().for_each(|slot| machine.end(slot, OrderEnd::Revoked));
    }
    account
}

/// Fates of the oldest unsettled fills. Another leaf than the reported one contradicts a report.
fn learn_fates(machine: &mut VenueMachine, from: u64, leaves: &[Digest], fates: &[FillFate]) {
    let height = machine.core.height();
    let ignores = machine.has(VenueMistake::IgnoresContradiction);
    for ((index, leaf), fate) in (from..).zip(leaves).zip(fates) {
        match machine.core.pending.front() {
            Some(next) if next.fill.index == index && (next.fill.leaf == *leaf || ignores) => {
                let pending = machine.core.pending.pop_front().expect("it was just seen");
                learn_fate(machine, &pending, height, *fate);
            }
            Some(_) => return machine.stop(VenueStop::Contradicted(index)),
            None if ignores => {}
            None => return machine.stop(VenueStop::JournalShort(index + 1)),
        }
    }
}

/// What became of a fill: nothing is owed for it any more.
pub(super) fn learn_fate(machine: &mut VenueMachine, pending: &Pending, height: Height, fate: FillFate) {
    machine.owe(pending, false);
    machine.count_fill(false);
    let (lots, index) = (pending.fill.terms.lots, pending.fill.index);
    for side in [VenueSide::Buy, VenueSide::Sell] {
        let slot = pending.slot(side);
        let order = machine.core.order_mut(slot);
        order.fills_mut().unsettled -= 1;
        match fate {
            FillFate::Applied => {
                order.fills_mut().settled += lots;
                order.has_entry = true;
            }
            FillFate::Bust(_) => order.fills_mut().bust += lots,
        }
        machine.refresh(slot);
        machine.report_order(slot, ReportKind::Settled { index, height, fate });
    }
}

/// Whether this root still runs the venue.
fn compare_standing(machine: &mut VenueMachine) {
    let Some(standing) = machine.core.standing else { return };
    if let Some(why) = stop_of(machine, &standing) {
        machine.stop(why);
    }
}

fn stop_of(machine: &VenueMachine, standing: &VenueStanding) -> Option<VenueStop> {
    let settings = &machine.core.settings;
    if standing.incarnation != settings.incarnation {
        return (!machine.has(VenueMistake::IgnoresFence)).then_some(VenueStop::Fenced);
    }
    if standing.is_convicted {
        return Some(VenueStop::Convicted);
    }
    let is_short = standing.settled > machine.core.settled() && !machine.has(VenueMistake::IgnoresContradiction);
    is_short.then_some(VenueStop::JournalShort(standing.settled))
}

/// Ends orders whose last height or time is over. The ledger takes their fills somewhat longer: those that were
/// matched in time.
fn end_expired(machine: &mut VenueMachine) {
    let (height, time) = (machine.core.height(), machine.core.time_ms());
    // Each block ends the orders of one last height: that of the block before.
    let is_late = machine.has(VenueMistake::ExpiredTrades);
    let is_over = |expiry| if is_late { machine.is_past(expiry) } else { expiry < height };
    let from = if is_late { 0 } else { height.saturating_sub(1) };
    let slots = machine.core.entries.over(from, is_over);
    slots.into_iter().for_each(|slot| machine.end(slot, OrderEnd::Expired));
    while let Some(&(until, slot)) = machine.core.untils.first() {
        if until >= time {
            break;
        }
        machine.end(slot, OrderEnd::Expired);
    }
}
