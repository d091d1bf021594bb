//! A model of opening: every history of two correct seats and one that is not, over two heights that are decided in any
//! order, with crashes. A third correct seat takes no part: it is as slow as may be.
//!
//! The target has one envelope. Who does not play by the rules decides into which heights it goes, in which order
//! heights are decided, and what is delivered when; it sees every share at once, and puts an order of its own into each
//! height that is still open.
//!
//! # Rules
//!
//! - A seat *outputs* heights in their order, each once it is decided. Upon output it releases its share for what that
//!   height opens: the envelope, if the height is not behind its end, and no lower height has opened it.
//! - A seat *applies* a height once it has a threshold of shares for what the height opens. The keys are part of what
//!   it then has on disk.
//! - A crash loses shares that came, and outputs of heights that were not applied. A share is sent to a seat until it
//!   has applied the height.
//!
//! # What must hold
//!
//! - *No last look*: whoever decides a height that opens the envelope cannot read it.
//! - *What is not included stays closed*, and so does what has ended.
//! - *It goes on*: from every state the correct seats, if nothing more goes wrong, apply all heights.

use std::collections::HashSet;

const SEATS: usize = 2;
const HEIGHTS: usize = 2;
const CRASHES: u8 = 2;

/// A rule that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// The threshold is f.
    Threshold,
    /// A share leaves when its own height is decided.
    BeforeOutput,
    /// A share leaves for an envelope that a block holds behind its end.
    Ended,
    /// A share leaves for whatever is seen.
    Seen,
    /// A share is sent to a seat once.
    SentOnce,
    /// Seats output heights in any order.
    AnyOrder,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Decided {
    has_envelope: bool,
    /// Whoever decided it could read the envelope.
    could_read: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Seat {
    /// Heights that it has output, as bits.
    output: u8,
    /// Heights that it has applied, as bits.
    applied: u8,
    /// Seats whose shares it has, as bits.
    has: u8,
    /// Seats whose shares were ever sent to it.
    sent: u8,
    has_released: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct World {
    decided: [Option<Decided>; HEIGHTS],
    seats: [Seat; SEATS],
    crashes: u8,
    /// Shares of correct seats that left at any time.
    leaked: u8,
}

/// The last height of the envelope, and a rule that is broken.
#[derive(Clone, Copy)]
struct Model {
    until: usize,
    broken: Option<Broken>,
}

impl Model {
    fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    /// One seat of four is faulty, and t = f + 1.
    fn threshold(&self) -> u32 {
        if self.is(Broken::Threshold) { 1 } else { 2 }
    }

    /// The height that opens the envelope, if those below it are decided.
    fn opens(&self, world: &World) -> Option<usize> {
        let holds = |height: &usize| world.decided[*height].is_some_and(|block| block.has_envelope);
        (0..HEIGHTS).find(holds).filter(|height| *height <= self.until)
    }

    fn can_read(&self, world: &World) -> bool {
        // Its own share, and all that left.
        world.leaked.count_ones() + 1 >= self.threshold()
    }

    fn releases(&self, world: &World, height: usize) -> bool {
        let holds = world.decided[height].is_some_and(|block| block.has_envelope);
        holds && (self.is(Broken::Ended) || self.opens(world) == Some(height))
    }

    /// All that may happen next, but crashes and decisions.
    fn correct_steps(&self, world: &World) -> Vec<World> {
        let mut next = Vec::new();
        for at in 0..SEATS {
            for height in 0..HEIGHTS {
                next.extend(self.output(world, at, height));
                next.extend(self.apply(world, at, height));
            }
            next.extend((0..SEATS).filter_map(|from| self.deliver(world, from, at)));
        }
        next
    }

    fn output(&self, world: &World, at: usize, height: usize) -> Option<World> {
        let seat = &world.seats[at];
        let is_next = self.is(Broken::AnyOrder) || seat.output == (1 << height) - 1;
        if world.decided[height].is_none() || seat.output & 1 << height != 0 || !is_next {
            return None;
        }
        let mut next = *world;
        next.seats[at].output |= 1 << height;
        if self.releases(world, height) {
            release(&mut next, at);
        }
        Some(next)
    }

    fn deliver(&self, world: &World, from: usize, to: usize) -> Option<World> {
        let (bit, seat) = (1 << from, &world.seats[to]);
        let was_sent = self.is(Broken::SentOnce) && seat.sent & bit != 0;
        if !world.seats[from].has_released || seat.has & bit != 0 || was_sent {
            return None;
        }
        let mut next = *world;
        next.seats[to].has |= bit;
        next.seats[to].sent |= bit;
        Some(next)
    }

    fn apply(&self, world: &World, at: usize, height: usize) -> Option<World> {
        let seat = &world.seats[at];
        let is_next = seat.applied == (1 << height) - 1 && seat.output & 1 << height != 0;
        let opens = self.opens(world) == Some(height);
        if !is_next || opens && seat.has.count_ones() < self.threshold() {
            return None;
        }
        let mut next = *world;
        next.seats[at].applied |= 1 << height;
        Some(next)
    }

    /// What the faulty seat and chance may do.
    fn other_steps(&self, world: &World) -> Vec<World> {
        let mut next = Vec::new();
        for height in (0..HEIGHTS).filter(|height| world.decided[*height].is_none()) {
            for has_envelope in [false, true] {
                let mut decided = *world;
                decided.decided[height] = Some(Decided { has_envelope, could_read: self.can_read(world) });
                if self.is(Broken::BeforeOutput) && has_envelope && height <= self.until {
                    (0..SEATS).for_each(|at| release(&mut decided, at));
                }
                next.push(decided);
            }
        }
        if self.is(Broken::Seen) {
            let mut seen = *world;
            (0..SEATS).for_each(|at| release(&mut seen, at));
            next.push(seen);
        }
        for at in (0..SEATS).filter(|_| world.crashes < CRASHES) {
            let mut crashed = World { crashes: world.crashes + 1, ..*world };
            let seat = &mut crashed.seats[at];
            // Decided blocks are fetched again, and what they open is released again.
            *seat = Seat { output: seat.applied, has: 0, ..*seat };
            next.push(crashed);
        }
        next
    }

    fn fault(&self, world: &World) -> Option<&'static str> {
        // While a lower height is open, the envelope may yet go there.
        let is_settled = |height: usize| world.decided[..height].iter().all(Option::is_some);
        let opened = self.opens(world).filter(|height| is_settled(*height));
        if opened.is_some_and(|height| world.decided[height].is_some_and(|block| block.could_read)) {
            return Some("a last look");
        }
        if world.decided.iter().all(Option::is_some) && opened.is_none() && self.can_read(world) {
            return Some("what is not opened is read");
        }
        None
    }

    /// Whether the correct seats come to the end if nothing more goes wrong.
    fn goes_on(&self, world: &World) -> bool {
        let mut now = *world;
        for height in 0..HEIGHTS {
            now.decided[height].get_or_insert_default();
        }
        while let Some(next) = self.correct_steps(&now).into_iter().find(|next| *next != now) {
            now = next;
        }
        now.seats.iter().all(|seat| seat.applied == (1 << HEIGHTS) - 1)
    }

    /// Goes through all histories; how many states there are, or what is wrong with one.
    fn search(&self) -> Result<usize, (&'static str, World)> {
        let mut seen = HashSet::from([World::default()]);
        let mut open = vec![World::default()];
        while let Some(world) = open.pop() {
            if let Some(fault) = self.fault(&world) {
                return Err((fault, world));
            }
            if !self.goes_on(&world) {
                return Err(("it stands still", world));
            }
            for next in self.correct_steps(&world).into_iter().chain(self.other_steps(&world)) {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        Ok(seen.len())
    }
}

fn release(world: &mut World, at: usize) {
    world.seats[at].has_released = true;
    world.leaked |= 1 << at;
}

#[test]
fn nobody_reads_before_the_batch_is_fixed_and_it_goes_on() {
    let states: Vec<usize> = (0..HEIGHTS)
        .map(|until| Model { until, broken: None }.search().unwrap_or_else(|fault| panic!("{until}: {fault:?}")))
        .collect();
    assert!(states.iter().all(|states| *states > 10_000), "{states:?}");
}

#[test]
fn each_broken_rule_is_found() {
    let expected = [
        (Broken::Threshold, "a last look"),
        (Broken::BeforeOutput, "a last look"),
        (Broken::AnyOrder, "a last look"),
        (Broken::Ended, "what is not opened is read"),
        (Broken::Seen, "a last look"),
        (Broken::SentOnce, "it stands still"),
    ];
    for (broken, expected) in expected {
        let found = (0..HEIGHTS).find_map(|until| Model { until, broken: Some(broken) }.search().err());
        let (fault, world) = found.unwrap_or_else(|| panic!("{broken:?} breaks nothing"));
        assert_eq!(fault, expected, "{broken:?} in {world:?}");
    }
}
