//! A model of the draw: liars, absent ones and newcomers with any stakes, in committees of 4 to 30 seats.

use std::collections::BTreeSet;

use primitives::{Amount, Digest};
use proofs::Committee;
use proptest::prelude::*;

use super::draw::Lots;
use super::seats::{Candidate, Standing, changes_max, next_seats};

fn seed(number: u64) -> Digest {
    Digest::of("walras test seeds of seats v1", &number.to_le_bytes())
}

/// What a validator of the model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    /// It is up and says so.
    Honest,
    /// It has never run a node.
    Absent,
    /// It says that it is present and votes against the rules.
    Lies,
    /// It says that it is present until it has a seat, and is silent from then on.
    FallsSilent,
}

#[derive(Clone, Copy, Debug)]
struct Staker {
    stake: Amount,
    conduct: Conduct,
}

/// Accounts, those that hold seats, and the number of seats that the chain wants.
struct World {
    stakers: Vec<Staker>,
    held: Vec<usize>,
    size: usize,
    epoch: u64,
}

impl World {
    /// Honest founders with a stake of 100 each hold all seats; others have staked.
    fn founded(size: usize, others: &[Staker]) -> World {
        let founders = vec![Staker { stake: 100, conduct: Conduct::Honest }; size];
        let stakers = founders.iter().chain(others).copied().collect();
        World { stakers, held: (0..size).collect(), size, epoch: 0 }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let standing = |(at, one): (usize, &Staker)| match one.conduct {
            Conduct::Honest | Conduct::Lies => Standing::Present,
            Conduct::FallsSilent if !self.held.contains(&at) => Standing::Present,
            Conduct::FallsSilent | Conduct::Absent => Standing::Absent,
        };
        let of = |(at, one): (usize, &Staker)| Candidate { stake: one.stake, standing: standing((at, one)) };
        self.stakers.iter().enumerate().map(of).collect()
    }

    /// Draws once; checks what holds of every draw.
    fn draw(&mut self, seed: &Digest) {
        self.epoch += 1;
        let candidates = self.candidates();
        let next = next_seats(seed, self.epoch, &candidates, &self.held, self.size, false);
        let before: BTreeSet<usize> = self.held.iter().copied().collect();
        let after: BTreeSet<usize> = next.iter().copied().collect();
        assert_eq!(after.len(), next.len(), "one seat each");
        assert!(next.len() >= before.len().min(self.size), "no committee shrinks");
        let came = || after.difference(&before);
        assert!(came().count() <= changes_max(before.len()), "{before:?} {after:?}");
        assert!(before.difference(&after).count() <= changes_max(before.len()));
        assert!(came().all(|at| candidates[*at].standing == Standing::Present), "who is absent gets no seat");
        self.held = next;
    }

    fn seats(&self, counts: impl Fn(Conduct) -> bool) -> usize {
        self.held.iter().filter(|at| counts(self.stakers[**at].conduct)).count()
    }

    /// Seats of a fresh draw from all stakes, and how many of them the conduct has.
    fn fresh(&self, seed: &Digest, counts: impl Fn(Conduct) -> bool) -> usize {
        let stakes: Vec<Amount> = self.stakers.iter().map(|one| one.stake).collect();
        let drawn = Lots::new(seed, self.epoch).draw(&stakes, self.size);
        drawn.iter().filter(|at| counts(self.stakers[**at].conduct)).count()
    }
}

fn is_faulty(conduct: Conduct) -> bool {
    conduct != Conduct::Honest
}

fn lies(conduct: Conduct) -> bool {
    conduct == Conduct::Lies
}

/// The attack: four accounts stake a thousand times what the founders have, and never run a node.
#[test]
fn absent_stakes_take_no_seat_however_large() {
    for size in 1..=30 {
        let mut world = World::founded(size, &[Staker { stake: 1 << 40, conduct: Conduct::Absent }; 4]);
        for number in 0..50 {
            world.draw(&seed(number));
            assert_eq!(world.held, (0..size).collect::<Vec<_>>());
        }
    }
}

/// Everybody else posts once and is silent with the seat, whatever they have staked. The seats that fell silent go
/// first, so at most f are silent at a time, and n − f go on.
#[test]
fn who_falls_silent_with_a_seat_never_stops_a_committee() {
    for size in 4..=30 {
        let silent = Staker { stake: 1 << 40, conduct: Conduct::FallsSilent };
        let mut world = World::founded(size, &vec![silent; 2 * size]);
        for number in 0..200 {
            world.draw(&seed(number));
            assert!(world.seats(is_faulty) <= Committee::new(size).faulty, "{size} seats, draw {number}");
        }
    }
}

/// A seat whose holder is absent falls to the next present one in the same order. So no set of liars gets more seats
/// than the liars and the absent ones of a draw from all stakes together, in any order of lots.
#[test]
fn a_drawn_committee_has_no_more_faulty_seats_than_a_draw_from_all_stakes() {
    for size in 4..=30 {
        for number in 0..200 {
            let conduct = |at: u64| match (number + at) % 5 {
                0 | 1 => Conduct::Lies,
                2 => Conduct::Absent,
                _ => Conduct::Honest,
            };
            let stake = |at: u64| 1 + number.wrapping_mul(at + 3) % 997;
            let others: Vec<Staker> =
                (0..2 * size as u64).map(|at| Staker { stake: stake(at), conduct: conduct(at) }).collect();
            let world = World::founded(size, &others);
            let stakes: Vec<Amount> = world.stakers.iter().map(|one| one.stake).collect();
            let order = Lots::new(&seed(number), 0).draw(&stakes, stakes.len());
            let present = order.iter().filter(|at| world.stakers[**at].conduct != Conduct::Absent).take(size);
            let liars = present.filter(|at| lies(world.stakers[**at].conduct)).count();
            assert!(liars <= world.fresh(&seed(number), is_faulty), "{size} seats, draw {number}");
        }
    }
}

/// The faults of the rule that looks simpler, "who is absent loses the seat": a committee of 7 bears two liars, and
/// the six that are left when one is absent bear one.
#[test]
fn a_committee_that_gave_up_absent_seats_would_not_bear_its_liars() {
    let mut breaks = BTreeSet::new();
    for size in 4..=30 {
        let liars = Committee::new(size).faulty;
        if Committee::new(size - 1).faulty < liars {
            breaks.insert(size);
        }
        let mut world = World::founded(size, &[]);
        world.stakers[..liars].iter_mut().for_each(|one| one.conduct = Conduct::Lies);
        world.stakers[liars].conduct = Conduct::Absent;
        world.draw(&seed(1));
        assert_eq!((world.held.len(), world.seats(lies)), (size, liars), "the absent one keeps its seat");
    }
    assert_eq!(breaks, (4..=30).filter(|size| size % 3 == 1).collect());
}

/// Draws that change f seats at a time exceed what a committee tolerates no more often than fresh draws from all
/// stakes, in which liars and absent ones are faulty together. Liars get the share of seats that fresh draws from the
/// present stakes give them, whether they stake in one account or in many.
#[test]
fn a_draw_never_favours_liars() {
    const DRAWS: u64 = 3_000;
    for (size, accounts) in [(4, 1), (4, 6), (7, 1), (7, 12), (10, 4), (16, 16), (30, 40)] {
        let all = 100 * size as Amount;
        let liar = Staker { stake: all / 5 / accounts as Amount, conduct: Conduct::Lies };
        let absent = Staker { stake: all / 3, conduct: Conduct::Absent };
        let honest = vec![Staker { stake: 100, conduct: Conduct::Honest }; size];
        let others: Vec<Staker> = vec![liar; accounts].into_iter().chain([absent]).chain(honest).collect();
        let mut world = World::founded(size, &others);
        let bears = Committee::new(size).faulty;
        let (mut seats, mut fresh_seats, mut beyond, mut fresh_beyond) = (0, 0, 0, 0);
        for number in 0..DRAWS {
            world.draw(&seed(number));
            seats += world.seats(lies);
            beyond += u64::from(world.seats(is_faulty) > bears);
            fresh_beyond += u64::from(world.fresh(&seed(number), is_faulty) > bears);
            let present = World {
                stakers: world.stakers.iter().copied().filter(|one| one.conduct != Conduct::Absent).collect(),
                held: Vec::new(),
                ..world
            };
            fresh_seats += present.fresh(&seed(number), lies);
        }
        let deviation = 4.0 * (DRAWS as f64 * size as f64).sqrt();
        assert!((seats as f64) < 1.1 * fresh_seats as f64 + deviation, "{size}: {seats}, {fresh_seats} in fresh draws");
        let deviation = 4.0 * (DRAWS as f64).sqrt();
        assert!(beyond as f64 <= fresh_beyond as f64 + deviation, "{size}: {beyond} of {DRAWS}, fresh {fresh_beyond}");
    }
}

/// In the long run a stake has a seat as often as fresh draws give it one, within three parts in a hundred. Choosing
/// those who come in the order of the draw would give a large stake five to eight parts more.
#[test]
fn a_large_stake_has_the_seats_that_fresh_draws_give_it() {
    for (size, weight, others) in [(4, 4, 12), (7, 4, 30), (10, 4, 40)] {
        let mut stakers = vec![Staker { stake: 10, conduct: Conduct::Honest }; others];
        stakers.push(Staker { stake: 10 * weight, conduct: Conduct::Lies });
        let mut world = World { stakers, held: (0..size).collect(), size, epoch: 0 };
        let (mut seats, mut fresh) = (0, 0);
        for number in 0..20_000 {
            world.draw(&seed(number));
            seats += world.seats(lies);
            fresh += world.fresh(&seed(number), lies);
        }
        assert!(seats.abs_diff(fresh) * 100 < 3 * fresh, "{size} seats: {seats}, and {fresh} in fresh draws");
    }
}

/// Rotation goes on: nobody who is present is kept out, whoever holds the seats.
#[test]
fn who_is_present_gets_a_seat_sooner_or_later() {
    for size in 4..=30 {
        let honest = Staker { stake: 100, conduct: Conduct::Honest };
        let mut world = World::founded(size, &vec![honest; size]);
        let mut had: BTreeSet<usize> = world.held.iter().copied().collect();
        (0..200).for_each(|number| {
            world.draw(&seed(number));
            had.extend(&world.held);
        });
        assert_eq!(had.len(), 2 * size, "{size} seats");
    }
}

/// A network of one grows to the seats that it wants, one newcomer at a time while f is zero or one.
#[test]
fn a_committee_grows_by_as_many_as_it_bears() {
    let honest = Staker { stake: 1, conduct: Conduct::Honest };
    let mut world = World::founded(1, &[honest; 12]);
    world.size = 13;
    let sizes: Vec<usize> = (0..10)
        .map(|number| {
            world.draw(&seed(number));
            world.held.len()
        })
        .collect();
    assert_eq!(sizes, [2, 3, 4, 5, 6, 7, 9, 11, 13, 13]);
}

#[test]
fn the_convicted_go_first_then_the_absent_then_who_left() {
    let stands = |standing| Candidate { stake: u64::from(standing != Standing::Left), standing };
    let of = [Standing::Present, Standing::Left, Standing::Absent, Standing::Convicted];
    let mut candidates: Vec<Candidate> = of.map(stands).to_vec();
    let mut held = vec![0, 1, 2, 3];
    assert_eq!(next_seats(&seed(0), 1, &candidates, &held, 4, false), held, "nobody comes: all keep their seats");
    candidates.extend([stands(Standing::Present); 3]);
    for gone in [3, 2, 1] {
        let before = held.clone();
        held = next_seats(&seed(gone as u64), 2, &candidates, &held, 4, false);
        let changed: Vec<usize> = (0..4).filter(|seat| held[*seat] != before[*seat]).collect();
        assert_eq!(changed, [gone], "the others keep their seats and their places");
    }
}

/// More founders than seats, as the genesis may say: the surplus goes, f at a time.
#[test]
fn a_committee_above_its_size_shrinks_by_as_many_as_it_bears() {
    let mut world = World::founded(10, &[]);
    world.size = 4;
    let mut sizes = Vec::new();
    for number in 0..4 {
        let candidates = world.candidates();
        world.held = next_seats(&seed(number), number, &candidates, &world.held, 4, false);
        sizes.push(world.held.len());
    }
    assert_eq!(sizes, [7, 5, 4, 4]);
}

proptest! {
    /// Whatever stakes and standings: the checks of every draw in the model, over several draws.
    #[test]
    fn every_draw_keeps_its_promises(
        size in 1..31usize,
        others in proptest::collection::vec((prop_oneof![1..9u64, Just(1 << 40)], 0..4u8), 0..40),
        first in any::<u64>(),
    ) {
        let conducts = [Conduct::Honest, Conduct::Absent, Conduct::Lies, Conduct::FallsSilent];
        let staker = |(stake, conduct): (u64, u8)| Staker { stake, conduct: conducts[usize::from(conduct)] };
        let others: Vec<Staker> = others.into_iter().map(staker).collect();
        let mut world = World::founded(size, &others);
        for number in 0..8 {
            world.draw(&seed(first.wrapping_add(number)));
        }
    }
}
