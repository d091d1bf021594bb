//! A model of upgrades: committees of 4 to 30 seats, liars that approve without the program and fall silent, refusers,
//! late installers. It drives the real draw and the real boundary. Its oracle shares no code with them: it counts which
//! seats vote at each height, from what each node really has. Who is present follows from that, too: a node that has
//! stopped posts nothing more, since it does not know what is drawn next.
//!
//! A rule that is wrong is a [`Wrong`]: the model with it must find what the page of the design says that it breaks.

use std::collections::BTreeSet;

use primitives::{Address, Digest, Upgrade};
use proofs::{ChainRules, Charter, CharterTerms, Member, RulesReadiness, Schedule, Terms, Validator, Validators};

use super::tally::{Boundary, confirm};
use super::{RulesEdit, unready, write};
use crate::places::Readiness;
use crate::places::stakes::{Candidate, Standing, candidate, next_seats};

const SCHEDULE: Schedule = Schedule { epoch_heights: 10, delay: 3 };
const NOTICE: u64 = 12;
const PATIENCE: u64 = 40;
const OLD: Digest = Digest([0; 32]);
const NEW: Upgrade = Upgrade { rules: 12, manifest: Digest([1; 32]), notice: NOTICE };

/// A rule that looks as good and is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// n − f seats lock at once.
    FewerAtOnce,
    /// Only the committee of the epoch before is counted, and nothing is confirmed.
    NoConfirmation,
    /// The rules act from the boundary on, where the committee before still decides.
    ActsAtBoundary,
    /// An approval can be withdrawn after the boundary.
    RecalledLate,
    /// The rules of a height are those of the program.
    RulesOfProgram,
    /// Only those who have approved are drawn.
    ApproversAlone,
    /// Any number of seats may be held by those who have not.
    AnyUnready,
    /// Those who have not must say that they are present, which a node that has stopped cannot.
    PresenceAsked,
    /// A lock that fails ends the count of patience.
    PatienceEnds,
}

/// What a validator of the model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    /// Installs the program, and approves.
    Willing,
    /// Never installs it.
    Refuses,
    /// Approves without the program, votes under the old rules, and is silent under the new ones.
    Lies,
    /// Approves, and withdraws before the boundary at which it would be confirmed.
    Wavers,
}

/// Why a run ends before its last height.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    /// Fewer than n − f seats vote at a height, though liars and as many unready seats as there may be are at most f.
    Stall,
    /// More seats than there may be are held by honest nodes that cannot follow.
    Crowded,
    /// Two nodes follow different rules at one height.
    TwoRules,
    /// No fault: liars and unready seats together are more than f, and the chain waits at this height.
    Waits(u64),
}

struct World {
    wrong: Wrong,
    conduct: Vec<Conduct>,
    registered: Validators,
    charter: Charter,
    /// Those that went back to the old program.
    recalled: BTreeSet<usize>,
    /// The first height at which the new rules act, as the oracle saw it.
    acted: Option<u64>,
    /// The rules by height, as each state says.
    seen: Vec<ChainRules>,
    was_locked: bool,
}

fn account(at: usize) -> Address {
    Address(std::array::from_fn(|byte| if byte == 0 { at as u8 } else { 7 }))
}

fn member(at: usize, stake: u64) -> Member {
    let key = primitives::PublicKey([at as u8; 32]);
    Member { account: account(at), key, address: String::new(), stake }
}

impl World {
    /// The first `seats` validators are the founders.
    fn founded(wrong: Wrong, seats: usize, all: &[(Conduct, u64)]) -> World {
        let terms = Terms { schedule: SCHEDULE, committee: seats as u32, ..Terms::default() };
        let entry = |at: usize, stake: u64| Validator {
            member: member(at, stake),
            unbonding: Vec::new(),
            excluded: false,
            // Founders are present for the first draw; others say so.
            present_for: u64::from(at < seats),
        };
        let registry = all.iter().enumerate().map(|(at, (_, stake))| entry(at, *stake)).collect();
        let committees = vec![(0..seats).map(|at| member(at, all[at].1)).collect()];
        let registered = Validators { terms, pool: 0, registry, first_epoch: 0, committees };
        let terms = CharterTerms { notice_min: 1, patience: PATIENCE, ..CharterTerms::default() };
        let charter = Charter::new(terms, ChainRules::new(11, OLD));
        let conduct = all.iter().map(|(conduct, _)| *conduct).collect();
        World {
            wrong,
            conduct,
            registered,
            seen: vec![charter.rules],
            charter,
            recalled: BTreeSet::new(),
            acted: None,
            was_locked: false,
        }
    }

    fn at(account: &Address) -> usize {
        usize::from(account.0[0])
    }

    fn seats(&self, epoch: u64) -> Vec<usize> {
        self.registered.committee(epoch).expect("drawn").iter().map(|one| World::at(&one.account)).collect()
    }

    /// What validators say in a block of this height. A node that has stopped says nothing; a liar whatever it likes.
    fn speak(&mut self, height: u64) {
        let epoch = SCHEDULE.last_drawn(height) + 1;
        for at in 0..self.conduct.len() {
            let runs = self.votes(at, self.rules_at(height, 0)) || self.conduct[at] == Conduct::Lies;
            if runs {
                self.registered.registry[at].present_for = epoch;
                self.opinion(at).into_iter().for_each(|edit| write(&mut self.charter, account(at), edit, height));
            }
        }
    }

    /// What a validator says about the rules.
    fn opinion(&self, at: usize) -> Option<RulesEdit> {
        let (charter, own, height) = (&self.charter, account(at), self.seen.len() as u64 - 1);
        let wants = match self.conduct[at] {
            Conduct::Willing | Conduct::Lies => true,
            Conduct::Refuses => false,
            Conduct::Wavers => charter.rules.coming.is_none(),
        };
        match charter.rules.confirmed == 11 {
            true if wants && !charter.approves(&own, &NEW) => Some(RulesEdit::Approve { upgrade: NEW, at: height }),
            true if !wants && charter.approves(&own, &NEW) => Some(RulesEdit::Unapprove { rules: 12, at: height }),
            // Who installs late says that it is ready.
            false if wants && !charter.is_ready(&own) => Some(RulesEdit::Approve { upgrade: NEW, at: height }),
            _ => None,
        }
    }

    /// The boundary of this height: the draw, then the charter, both by the state before.
    fn boundary(&mut self, height: u64, seed: &Digest) {
        let epoch = SCHEDULE.last_drawn(height);
        let candidates = self.candidates(epoch);
        let held: Vec<usize> = self.seats(epoch - 1);
        let size = self.registered.terms.committee as usize;
        let seats = next_seats(seed, epoch, &candidates, &held, size, self.charter.is_patient);
        let drawn: Vec<Address> = seats.iter().map(|at| account(*at)).collect();
        let before = self.registered.clone();
        let members = seats.iter().map(|at| self.registered.registry[*at].member.clone()).collect();
        self.registered.committees.push(members);
        let was_coming = self.charter.rules.coming.is_some();
        if self.wrong == Wrong::FewerAtOnce {
            self.charter.terms.patience = 0;
        }
        match (self.wrong, self.charter.rules.coming) {
            (Wrong::NoConfirmation, Some(coming)) if coming.acts == SCHEDULE.first_height(epoch) => {
                confirm(&mut self.charter, (0..self.conduct.len()).map(|at| (account(at), true)).collect(), &coming);
            }
            (Wrong::NoConfirmation, None) if self.charter.rules.confirmed == 11 => {
                let acting: Vec<Address> = held.iter().map(|at| account(*at)).collect();
                Boundary { registered: &before, drawn: &acting, height, memory: 0 }.apply(&mut self.charter);
            }
            _ => Boundary { registered: &before, drawn: &drawn, height, memory: 0 }.apply(&mut self.charter),
        }
        if self.wrong == Wrong::PatienceEnds && was_coming && self.charter.rules.coming.is_none() {
            self.charter.awaited = None;
        }
        self.was_locked |= self.charter.rules.coming.is_some();
    }

    /// How all stand in the draw of an epoch.
    fn candidates(&self, epoch: u64) -> Vec<Candidate> {
        let mut unready = unready(&self.charter);
        if self.wrong == Wrong::PresenceAsked {
            unready.values_mut().for_each(|own| *own = RulesReadiness::Unready);
        }
        let readiness = Readiness { unready, is_patient: self.charter.is_patient };
        let stands = |one: &Validator| {
            let Candidate { stake, standing } = candidate(one, epoch, &readiness);
            let standing = match (standing, self.wrong) {
                (Standing::Unready, Wrong::ApproversAlone) => Standing::Absent,
                (Standing::Unready, Wrong::AnyUnready) => Standing::Present,
                _ => standing,
            };
            Candidate { stake, standing }
        };
        self.registered.registry.iter().map(stands).collect()
    }

    /// The rules of a height at a node that has applied the block so many heights before.
    fn rules_at(&self, height: u64, behind: u64) -> u32 {
        let state = usize::try_from((height - 1).saturating_sub(behind)).expect("small");
        let rules = self.seen[state];
        match self.wrong {
            Wrong::ActsAtBoundary if rules.since > 0 && height + SCHEDULE.delay >= rules.since => rules.confirmed,
            _ => rules.at(height),
        }
    }

    /// Whether a seat votes at a height: the oracle.
    fn votes(&self, at: usize, rules: u32) -> bool {
        let has_program = !self.recalled.contains(&at) && matches!(self.conduct[at], Conduct::Willing);
        rules == 11 || has_program
    }

    /// Runs to a height. A run that waits goes on from there when it is called again.
    fn run(&mut self, to: u64, number: u64) -> Result<(), Fault> {
        for height in self.seen.len() as u64..=to {
            self.decide(height)?;
            self.apply(height, number);
        }
        Ok(())
    }

    /// A block: the boundary, by the state before, and what validators say in it.
    fn apply(&mut self, height: u64, number: u64) {
        if SCHEDULE.is_boundary(height) {
            let seed = Digest::of("walras test seeds of upgrades v1", &(number * 100_000 + height).to_le_bytes());
            self.boundary(height, &seed);
        }
        self.speak(height);
        if self.wrong == Wrong::RecalledLate && self.charter.rules.confirmed == 12 {
            // Two that have approved go back to the old program between the boundary and the first height.
            let willing = (0..self.conduct.len()).filter(|at| self.conduct[*at] == Conduct::Willing);
            self.recalled = willing.take(2).collect();
        }
        self.seen.push(self.charter.rules);
    }

    /// The oracle: who votes at a height, and do all follow the same rules.
    fn decide(&mut self, height: u64) -> Result<(), Fault> {
        let rules = self.rules_at(height, 0);
        // Nodes vote on heights whose blocks before they have not applied yet.
        if self.rules_at(height, SCHEDULE.delay) != rules {
            return Err(Fault::TwoRules);
        }
        if rules == 12 {
            self.acted.get_or_insert(height);
        }
        let seats = self.seats(SCHEDULE.epoch_of(height));
        let (n, f) = (seats.len(), (seats.len() - 1) / 3);
        let liars = seats.iter().filter(|at| self.conduct[**at] == Conduct::Lies).count();
        if self.wrong == Wrong::RulesOfProgram {
            // Each node takes the newest rules that its program has.
            let of_program: BTreeSet<bool> = seats.iter().map(|at| self.conduct[*at] == Conduct::Willing).collect();
            return if of_program.len() > 1 { Err(Fault::TwoRules) } else { Ok(()) };
        }
        let voting = seats.iter().filter(|at| self.votes(**at, rules)).count();
        // Rules that act before patience can be over leave a sixth of the seats unready, later ones up to f.
        let is_early = self.acted.is_none_or(|height| height <= PATIENCE + SCHEDULE.epoch_heights);
        let unready_max = if is_early { n / 6 } else { f };
        let is_unready = |at: &&usize| self.conduct[**at] != Conduct::Lies && !self.votes(**at, rules);
        match voting < n - f {
            true if liars + unready_max <= f => Err(Fault::Stall),
            _ if seats.iter().filter(is_unready).count() > unready_max => Err(Fault::Crowded),
            true => Err(Fault::Waits(height)),
            false => Ok(()),
        }
    }
}

/// Founders, the first of them liars and the next ones refusers, and willing newcomers.
fn population(seats: usize, liars: usize, refusers: usize, newcomers: usize) -> Vec<(Conduct, u64)> {
    let kind = |at: usize| match at {
        at if at < liars => Conduct::Lies,
        at if at < liars + refusers => Conduct::Refuses,
        _ => Conduct::Willing,
    };
    let founders = (0..seats).map(|at| (kind(at), 100));
    founders.chain((0..newcomers).map(|_| (Conduct::Willing, 100))).collect()
}

/// How runs of these worlds end early.
fn ends(wrong: Wrong, worlds: impl Iterator<Item = (usize, Vec<(Conduct, u64)>)>) -> Vec<Fault> {
    let run = |(number, (seats, all)): (usize, (usize, Vec<(Conduct, u64)>))| {
        World::founded(wrong, seats, &all).run(300, number as u64).err()
    };
    worlds.enumerate().filter_map(run).collect()
}

/// The faults among them.
fn faults(wrong: Wrong, worlds: impl Iterator<Item = (usize, Vec<(Conduct, u64)>)>) -> Vec<Fault> {
    ends(wrong, worlds).into_iter().filter(|end| !matches!(end, Fault::Waits(_))).collect()
}

/// All liars that a committee bears, and any number of refusers.
fn hostile() -> impl Iterator<Item = (usize, Vec<(Conduct, u64)>)> {
    (4..=30usize).flat_map(|seats| {
        let f = (seats - 1) / 3;
        (0..=f).flat_map(move |liars| {
            [0, 1, f.saturating_sub(liars), seats / 6, seats / 3, seats / 2]
                .map(move |refusers| (seats, population(seats, liars, refusers.min(seats - liars), 0)))
        })
    })
}

#[test]
fn a_chain_goes_on_whatever_liars_approve_and_whoever_refuses() {
    assert_eq!(faults(Wrong::Nothing, hostile()), []);
    // It can happen at all.
    let mut world = World::founded(Wrong::Nothing, 7, &population(7, 1, 0, 3));
    world.run(200, 1).expect("goes on");
    let since = world.charter.rules.since;
    assert!(world.acted == Some(since) && SCHEDULE.first_height(SCHEDULE.epoch_of(since)) == since);
}

/// With patience n − f seats are enough, so up to f refusers are outvoted; while they refuse nothing else stalls.
#[test]
fn a_minority_delays_rules_and_cannot_forbid_them() {
    for seats in 4..=30 {
        let f = (seats - 1) / 3;
        let mut world = World::founded(Wrong::Nothing, seats, &population(seats, 0, f, 0));
        world.run(PATIENCE + 100, 1).expect("goes on");
        assert!(world.acted.is_some_and(|height| seats < 7 || height > PATIENCE), "{seats} seats");
    }
}

/// f seats waver: they approve, let the rules be locked, and withdraw before they would be confirmed.
fn wavering(seats: usize) -> Vec<(Conduct, u64)> {
    let f = (seats - 1) / 3;
    let mut all = population(seats, 0, 0, 0);
    all[..f].iter_mut().for_each(|one| one.0 = Conduct::Wavers);
    all
}

#[test]
fn a_lock_that_fails_does_not_end_patience() {
    for seats in [4, 7, 10, 13, 30] {
        let mut world = World::founded(Wrong::Nothing, seats, &wavering(seats));
        world.run(400, 1).expect("goes on");
        assert!(world.was_locked && world.acted.is_some(), "{seats} seats");
        let mut world = World::founded(Wrong::PatienceEnds, seats, &wavering(seats));
        world.run(400, 1).expect("goes on");
        assert_eq!(world.acted, None, "{seats} seats: the wrong rule gives f seats a veto");
    }
}

/// The seven wrong rules of the design's page, each with what it breaks.
#[test]
fn every_wrong_rule_of_upgrades_is_found() {
    for (wrong, expected) in [
        (Wrong::FewerAtOnce, Fault::Stall),
        (Wrong::ActsAtBoundary, Fault::TwoRules),
        (Wrong::RecalledLate, Fault::Stall),
        (Wrong::RulesOfProgram, Fault::TwoRules),
    ] {
        let found = faults(wrong, hostile());
        assert!(found.contains(&expected), "{wrong:?}: {found:?}");
    }
    let late = || (4..=30).map(|seats| (seats, latecomers(seats)));
    assert_eq!(faults(Wrong::Nothing, late()), []);
    for wrong in [Wrong::NoConfirmation, Wrong::AnyUnready] {
        let found = faults(wrong, late());
        assert!(found.contains(&Fault::Stall), "{wrong:?}: {found:?}");
    }
    let fair = seats_of_liars(Wrong::Nothing);
    for wrong in [Wrong::ApproversAlone, Wrong::PresenceAsked] {
        assert!(seats_of_liars(wrong) > fair, "{wrong:?}: liars gain seats");
    }
}

/// Two liars and one that refuses are more than seven seats bear: the chain waits at the first height of the new
/// rules, unforked, and goes on as soon as the one that refused has installed the program. Then it is drawn again.
#[test]
fn a_chain_that_waits_goes_on_when_the_unready_install() {
    let mut world = World::founded(Wrong::Nothing, 7, &population(7, 2, 1, 0));
    let Err(Fault::Waits(height)) = world.run(300, 1) else { panic!("two liars and an unready seat are three") };
    assert_eq!((height, world.acted), (world.charter.rules.since, Some(height)), "not a height before, and none lost");
    assert_eq!(world.run(300, 1), Err(Fault::Waits(height)), "however long it lasts");
    world.conduct[2] = Conduct::Willing;
    assert_eq!(world.run(600, 1), Ok(()));
    assert!(world.charter.is_ready(&account(2)) && world.seats(world.registered.last_epoch()).contains(&2));
}

/// Nodes that have stopped can post no presence, and are drawn all the same, but never more at a time than the rules
/// leave room for.
#[test]
fn who_has_not_approved_stays_in_the_draw() {
    let mut all = population(13, 0, 0, 13);
    all.iter_mut().rev().take(4).for_each(|one| one.0 = Conduct::Refuses);
    let mut world = World::founded(Wrong::Nothing, 13, &all);
    world.run(1_000, 1).expect("nobody lies");
    let first = SCHEDULE.epoch_of(world.acted.expect("it acts"));
    let unready = |epoch: u64| world.seats(epoch).iter().filter(|at| **at >= all.len() - 4).count();
    let seats: Vec<usize> = (first + 3..world.registered.last_epoch()).map(unready).collect();
    assert!(seats.iter().all(|seats| *seats <= 2), "{seats:?}");
    let held = seats.iter().filter(|seats| **seats > 0).count();
    assert!(held * 4 > seats.len() * 3, "{seats:?}");
}

/// Everybody with a seat approves, as many of them lying as a committee bears beside a sixth that cannot follow; those
/// without a seat refuse, a sixth of all stake. They are drawn later.
fn latecomers(seats: usize) -> Vec<(Conduct, u64)> {
    let f = (seats - 1) / 3 - seats / 6;
    let refusers = (0..seats / 5).map(|_| (Conduct::Refuses, 100));
    population(seats, f, 0, 0).into_iter().chain(refusers).collect()
}

/// Seats that liars hold over many draws after an upgrade that a sixth of the stake has not approved.
fn seats_of_liars(wrong: Wrong) -> usize {
    let mut sum = 0;
    for number in 0..20 {
        let mut all = population(13, 0, 0, 13);
        all[..4].iter_mut().for_each(|one| one.0 = Conduct::Lies);
        all.iter_mut().rev().take(4).for_each(|one| one.0 = Conduct::Refuses);
        let mut world = World::founded(wrong, 13, &all);
        // The draws are what counts here, not whether so many liars let a height be decided.
        (1..=2_000).for_each(|height| world.apply(height, number));
        assert_eq!(world.charter.rules.confirmed, 12);
        let liars = |epoch: u64| world.seats(epoch).iter().filter(|at| all[**at].0 == Conduct::Lies).count();
        sum += (100..world.registered.last_epoch()).map(liars).sum::<usize>();
    }
    sum
}
