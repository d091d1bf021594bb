//! One market, two traders, one order each: no surprise for a venue in time, guilt and penalties for one that is late.

use std::collections::HashSet;

/// Heights that an action of a trader waits.
const D: usize = 2;
/// Time that it waits, beyond which the clock must also be.
const TAU: u8 = 1;
/// The last block of a history.
const END: usize = 5;
/// The last height of both orders.
const EXPIRY: usize = 2;
/// Lots of each order.
const LOTS: u8 = 2;
/// Units of each deposit: more than an order can use.
const DEPOSIT: u8 = 3;
/// The bond at the start.
const BOND: u8 = 20;
/// Penalty of a bust, in units of the bond: two halves.
const PENALTY: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    ExpiryAtOnce,
    RevocationAtOnce,
    FloorAtOnce,
    PayoutEarly,
    LeavingIgnored,
    LeavingCountedWhenPast,
    PastByHeightAlone,
    PastByClockAlone,
    LotsOfTheStateBefore,
    EntryForgottenEarly,
    BustMovesMoney,
    BothGuiltyArePaid,
    GuiltyIsPaid,
    InnocentPaysToo,
}

/// A fill of one lot that the venue has reported, and the certified height by which it matched.
type Pending = Vec<usize>;

/// The state after a block; index 0 is the seller, 1 the buyer.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Custody {
    times: Vec<u8>,
    free: [u8; 2],
    leaving: [Option<(u8, usize)>; 2],
    revoked: [Option<usize>; 2],
    raised: [Option<usize>; 2],
    /// Lots that the ledger knows of each order; `None` if it forgot the entry.
    filled: [Option<u8>; 2],
    /// Lots filled in truth.
    truly: u8,
    paid_out: [u8; 2],
    received: [u8; 2],
    bond: u8,
    burnt: u8,
    penalties: [u8; 2],
    pending: Pending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    Collect(usize),
    Revoke(usize),
    Raise(usize),
}

const ACTS: [Act; 7] =
    [Act::Nothing, Act::Collect(0), Act::Collect(1), Act::Revoke(0), Act::Revoke(1), Act::Raise(0), Act::Raise(1)];

impl Custody {
    fn new() -> Custody {
        Custody {
            times: vec![0],
            free: [DEPOSIT; 2],
            leaving: [None; 2],
            revoked: [None; 2],
            raised: [None; 2],
            filled: [None; 2],
            truly: 0,
            paid_out: [0; 2],
            received: [0; 2],
            bond: BOND,
            burnt: 0,
            penalties: [0; 2],
            pending: Vec::new(),
        }
    }

    fn height(&self) -> usize {
        self.times.len() - 1
    }

    fn past(&self, mistake: Mistake, from: usize) -> bool {
        if self.height() <= from {
            return false;
        }
        let by_height = self.height() > from + D;
        let by_clock = self.times[self.height()] > self.times[from] + TAU;
        match mistake {
            Mistake::PastByHeightAlone => by_height,
            Mistake::PastByClockAlone => by_clock,
            _ => by_height && by_clock,
        }
    }

    fn is_dead(&self, mistake: Mistake, since: Option<usize>, at_once: bool) -> bool {
        since.is_some_and(|from| if at_once { self.height() > from } else { self.past(mistake, from) })
    }

    /// Units of a side that may still pay for a fill.
    fn available(&self, mistake: Mistake, side: usize) -> u8 {
        let counts = |from| mistake == Mistake::LeavingCountedWhenPast || !self.past(mistake, from);
        let leaving = self.leaving[side].filter(|(_, from)| mistake != Mistake::LeavingIgnored && counts(*from));
        self.free[side] + leaving.map_or(0, |(units, _)| units)
    }

    fn draw(&mut self, side: usize) {
        match &mut self.leaving[side] {
            _ if self.free[side] > 0 => self.free[side] -= 1,
            Some((units, _)) => *units -= 1,
            None => unreachable!("it was available"),
        }
    }

    /// Whether the sides of a fill are guilty of a bust, and whether it busts.
    fn judge(&self, mistake: Mistake, before: &Custody) -> (bool, [bool; 2]) {
        let guilt = [0, 1].map(|side| {
            let revoked = self.is_dead(mistake, before.revoked[side], mistake == Mistake::RevocationAtOnce);
            let raised = self.is_dead(mistake, before.raised[side], mistake == Mistake::FloorAtOnce);
            revoked || raised || self.available(mistake, side) == 0
        });
        let expired = self.is_dead(mistake, Some(EXPIRY), mistake == Mistake::ExpiryAtOnce);
        let entries = if mistake == Mistake::LotsOfTheStateBefore { before.filled } else { self.filled };
        let full = entries.iter().any(|filled| filled.unwrap_or(0) >= LOTS);
        (expired || full || guilt.contains(&true), guilt)
    }

    /// Applies fills of one lot, in order; returns how many were bust.
    fn settle(&mut self, mistake: Mistake, fills: usize) -> usize {
        let before = self.clone();
        let mut busts = 0;
        for _ in 0..fills {
            let (is_bust, guilt) = self.judge(mistake, &before);
            if !is_bust || (mistake == Mistake::BustMovesMoney && self.can_pay(mistake)) {
                (0..2).for_each(|side| self.draw(side));
                (0..2).for_each(|side| self.received[1 - side] += 1);
                (0..2).for_each(|side| self.filled[side] = Some(self.filled[side].unwrap_or(0) + 1));
                self.truly += 1;
            }
            if is_bust {
                busts += 1;
                self.punish(mistake, guilt);
            }
        }
        busts
    }

    fn can_pay(&self, mistake: Mistake) -> bool {
        (0..2).all(|side| self.available(mistake, side) > 0)
    }

    /// The innocent side of a bust receives both halves; if no side is guilty, or both are, all is burnt.
    fn punish(&mut self, mistake: Mistake, guilt: [bool; 2]) {
        self.bond -= PENALTY;
        match guilt {
            [true, true] if mistake == Mistake::BothGuiltyArePaid => self.penalties[0] += PENALTY,
            [true, false] | [false, true] if mistake == Mistake::GuiltyIsPaid => {
                self.penalties[usize::from(guilt[1])] += PENALTY / 2;
                self.penalties[usize::from(guilt[0])] += PENALTY / 2;
            }
            [true, false] => self.penalties[1] += PENALTY,
            [false, true] => self.penalties[0] += PENALTY,
            [true, true] | [false, false] => self.burnt += PENALTY,
        }
        if mistake == Mistake::InnocentPaysToo && guilt == [true, false] {
            self.penalties[1] = self.penalties[1].saturating_sub(PENALTY);
        }
    }

    fn act(&mut self, act: Act) {
        let now = self.height();
        match act {
            Act::Nothing => {}
            Act::Collect(side) => {
                if self.leaving[side].is_none() && self.free[side] > 0 {
                    self.leaving[side] = Some((std::mem::take(&mut self.free[side]), now));
                }
            }
            Act::Revoke(side) => self.revoked[side] = self.revoked[side].or(Some(now)),
            Act::Raise(side) => self.raised[side] = self.raised[side].or(Some(now)),
        }
    }

    fn pay_out(&mut self, mistake: Mistake) {
        for side in 0..2 {
            let Some((units, from)) = self.leaving[side] else { continue };
            let is_early = mistake == Mistake::PayoutEarly && self.height() + 1 > from + D;
            if is_early || self.past(mistake, from) {
                self.paid_out[side] += units;
                self.leaving[side] = None;
            }
        }
    }

    fn forget(&mut self, mistake: Mistake) {
        let is_early = mistake == Mistake::EntryForgottenEarly && self.height() > EXPIRY;
        if is_early || self.past(mistake, EXPIRY) {
            self.filled = [None; 2];
        }
    }

    /// The next block: time passes, the settle of the first `fills` pending fills, an action, payouts, forgetting.
    /// Returns the number of busts.
    fn block(&mut self, mistake: Mistake, time: u8, fills: usize, act: Act) -> usize {
        self.times.push(self.times[self.height()] + time);
        let busts = self.settle(mistake, fills);
        self.pending.drain(..fills);
        self.act(act);
        self.pay_out(mistake);
        self.forget(mistake);
        busts
    }

    /// Whether a venue that looks at this certified state matches one more lot. A hostile one has matched before.
    fn matches(&self, is_hostile: bool) -> bool {
        let owed = self.pending.len() as u8;
        let is_live = |side: usize| self.revoked[side].is_none() && self.raised[side].is_none();
        let can = |side: usize| is_live(side) && self.free[side] > owed;
        !is_hostile && self.height() <= EXPIRY && can(0) && can(1) && self.truly + owed < LOTS
    }

    /// Whether a fill that was matched by the state of `from` is settled too late by heights and by the clock.
    fn is_late(&self, from: usize) -> bool {
        self.past(Mistake::None, from)
    }
}

/// What must hold after every block, in which `fills` fills were settled.
fn check(before: &Custody, after: &Custody, fills: usize, busts: usize) -> Result<(), String> {
    let past = |from: Option<usize>| from.is_some_and(|from| after.past(Mistake::None, from));
    for side in 0..2 {
        let held = after.free[side] + after.leaving[side].map_or(0, |(units, _)| units);
        let there = held + after.paid_out[side] + after.received[1 - side];
        if there != DEPOSIT {
            return Err(format!("side {side} has {there} of {DEPOSIT} units"));
        }
        if let Some((units, _)) = before.leaving[side].filter(|(_, from)| past(Some(*from)))
            && after.paid_out[side] != before.paid_out[side] + units
        {
            return Err("a collection that is past is not paid in full".into());
        }
        if before.leaving[side].is_some_and(|(_, from)| !past(Some(from))) && after.leaving[side].is_none() {
            return Err("a collection is paid before it is past".into());
        }
        if after.received[side] > LOTS || after.received[side] - before.received[side] != (fills - busts) as u8 {
            return Err("an order is filled beyond its lots, or a bust moves money".into());
        }
    }
    if after.bond + after.burnt + after.penalties.iter().sum::<u8>() != BOND {
        return Err("units of the bond appeared or vanished".into());
    }
    if before.bond - after.bond != PENALTY * busts as u8 {
        return Err("a bust costs another penalty".into());
    }
    if (fills, busts) == (1, 1) {
        let is_dead = |side: usize| past(before.revoked[side]) || past(before.raised[side]);
        let left =
            |side: usize| before.leaving[side].filter(|(_, from)| !past(Some(*from))).map_or(0, |(units, _)| units);
        let guilt = [0, 1].map(|side| is_dead(side) || before.free[side] + left(side) == 0);
        let paid = [0, 1].map(|side| after.penalties[side].wrapping_sub(before.penalties[side]));
        let expected = [0, 1].map(|side| if guilt[1 - side] && !guilt[side] { PENALTY } else { 0 });
        if paid != expected {
            return Err(format!("guilt {guilt:?} is paid {paid:?}"));
        }
    }
    Ok(())
}

/// Walks all histories; returns the number of states, or the first violation. A venue that is not hostile settles in
/// time or not at all. A hostile one settles more lots than the orders have, whenever it likes.
fn search(mistake: Mistake, is_hostile: bool) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let pending = if is_hostile { vec![0; usize::from(LOTS) + 1] } else { Vec::new() };
    let mut open = vec![Custody { pending, ..Custody::new() }];
    while let Some(state) = open.pop() {
        if state.height() == END {
            continue;
        }
        for will_match in [false, true] {
            let mut matched = state.clone();
            match (will_match, state.matches(is_hostile)) {
                (true, true) => matched.pending.push(state.height()),
                (true, false) => continue,
                (false, _) => {}
            }
            for fills in 0..=matched.pending.len() {
                for (time, act) in [0, 3].into_iter().flat_map(|time| ACTS.map(|act| (time, act))) {
                    let mut next = matched.clone();
                    let settled = matched.pending[..fills].to_vec();
                    let busts = next.block(mistake, time, fills, act);
                    let is_late = settled.iter().any(|from| next.is_late(*from));
                    if is_late && !is_hostile {
                        continue;
                    }
                    if busts > 0 && !is_hostile {
                        return Err("a venue in time meets a bust".into());
                    }
                    check(&matched, &next, fills, busts)?;
                    if seen.insert(next.clone()) {
                        open.push(next);
                    }
                }
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn a_venue_in_time_never_meets_a_bust_and_collections_are_paid_when_they_are_past() {
    let states = search(Mistake::None, false).expect("holds");
    assert!(states > 10_000, "{states}");
}

#[test]
fn a_bust_costs_a_late_venue_its_penalty_and_pays_no_guilty_side() {
    let states = search(Mistake::None, true).expect("holds");
    assert!(states > 10_000, "{states}");
}

#[test]
fn planted_mistakes_of_settles_and_penalties_are_found() {
    use Mistake::*;
    let in_time = [ExpiryAtOnce, RevocationAtOnce, FloorAtOnce, PayoutEarly, LeavingIgnored];
    for mistake in in_time.into_iter().chain([PastByHeightAlone, PastByClockAlone]) {
        assert!(search(mistake, false).is_err(), "{mistake:?} is not found");
    }
    let of_busts = [BustMovesMoney, BothGuiltyArePaid, GuiltyIsPaid, InnocentPaysToo];
    for mistake in of_busts.into_iter().chain([LeavingCountedWhenPast, LotsOfTheStateBefore, EntryForgottenEarly]) {
        assert!(search(mistake, true).is_err(), "{mistake:?} is not found");
    }
}
