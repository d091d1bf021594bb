//! The book against a naive one, command by command.

mod naive;

use std::collections::HashMap;

use matching::*;
use naive::Naive;
use proptest::prelude::*;

/// Few owners, references and ticks: nearly every command meets another one. Half of the ticks are outside the window.
const LIMITS: BookLimits = BookLimits {
    orders: 40,
    owners: 4,
    orders_of_owner: 14,
    window_base: 20,
    window_ticks: 64,
    fill_or_kill_orders: 3,
};

/// A small generator of numbers, so that a run is its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % u64::from(most)) as u32
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// Around tick 20, where the window begins.
    fn tick(&mut self) -> u32 {
        match self.below(60) {
            0 => self.of(&[0, 1, TICK_MAX, TICK_MAX + 1]),
            1..8 => self.below(200),
            _ => 14 + self.below(12),
        }
    }

    fn order(&mut self) -> NewOrder {
        let rests = TimeInForce::GoodTillCancelled;
        let (owners, lots) = (self.of(&[4, 4, 4, 4, 4, 4, 6]), self.of(&[1, 30, 30, 30, 30]));
        NewOrder {
            owner: self.below(owners),
            reference: self.below(16),
            side: self.of(&[Side::Buy, Side::Sell]),
            tick: self.tick(),
            lots: self.below(lots),
            time_in_force: self.of(&[rests, rests, rests, TimeInForce::ImmediateOrCancel, TimeInForce::FillOrKill]),
            post_only: self.below(8) == 0,
            self_trade: self.of(&[SelfTrade::ExpireMaker, SelfTrade::ExpireTaker, SelfTrade::ExpireBoth]),
        }
    }

    fn command(&mut self) -> Command {
        let owner = self.below(4);
        match self.below(400) {
            0 => Command::Kill { owner: self.below(5) },
            1..5 => Command::Revive { owner: self.below(5) },
            5 => Command::Halt,
            6..12 => Command::Resume,
            12..15 => Command::Call,
            15..25 => {
                let then = self.of(&[Phase::Continuous, Phase::Continuous, Phase::Halted, Phase::Call]);
                Command::Uncross { reference: self.tick(), then }
            }
            25..27 => Command::SetCollar { low: self.tick(), high: self.tick() },
            27..34 => Command::SetCollar { low: 1, high: TICK_MAX },
            34..38 => {
                Command::CancelAll { owner: self.below(5), side: self.of(&[None, Some(Side::Buy), Some(Side::Sell)]) }
            }
            38..120 => Command::Cancel { owner, reference: self.below(16) },
            120..200 => {
                let reference = self.below(16);
                let new_reference = if self.below(2) == 0 { reference } else { self.below(16) };
                Command::Replace(Replacement {
                    owner,
                    reference,
                    new_reference,
                    tick: self.tick(),
                    lots: self.below(40),
                })
            }
            _ => Command::New(self.order()),
        }
    }
}

/// Gives the orders of a book the numbers in which they were accepted, and checks that no id is used twice.
#[derive(Default)]
struct Numbers(HashMap<OrderId, u32>);

impl Numbers {
    fn party(&self, party: Party) -> Party {
        Party { order: OrderId { slot: self.0[&party.order], generation: 0 }, ..party }
    }

    fn event(&mut self, event: BookEvent) -> BookEvent {
        match event {
            BookEvent::Accepted { party, side, tick, lots } => {
                let number = self.0.len() as u32;
                assert_eq!(self.0.insert(party.order, number), None, "an id is used twice");
                BookEvent::Accepted { party: self.party(party), side, tick, lots }
            }
            BookEvent::Executed { maker, taker, side, tick, lots, maker_left, taker_left } => {
                let (maker, taker) = (self.party(maker), self.party(taker));
                BookEvent::Executed { maker, taker, side, tick, lots, maker_left, taker_left }
            }
            BookEvent::Cancelled { party, lots, why } => BookEvent::Cancelled { party: self.party(party), lots, why },
            BookEvent::Replaced { party, tick, lots, kept } => {
                BookEvent::Replaced { party: self.party(party), tick, lots, kept }
            }
            other => other,
        }
    }
}

fn compare(seed: u64, commands: usize) -> (Book, HashMap<std::mem::Discriminant<BookEvent>, usize>) {
    let mut dice = Dice(seed | 1);
    let mut book = Book::new(LIMITS, seed).expect("sound limits");
    let (mut naive, mut numbers, mut seen) = (Naive::new(LIMITS), Numbers::default(), HashMap::new());
    for step in 0..commands {
        let command = dice.command();
        let mut events: Vec<BookEvent> = Vec::new();
        book.apply(&command, &mut events);
        naive.events.clear();
        naive.apply(&command);
        events.iter().for_each(|event| *seen.entry(std::mem::discriminant(event)).or_default() += 1);
        let events: Vec<BookEvent> = events.into_iter().map(|event| numbers.event(event)).collect();
        assert_eq!(events, naive.events, "seed {seed}, step {step}: {command:?}");
        assert_eq!((book.len(), book.phase()), (naive.len(), naive.phase()), "seed {seed}, step {step}: {command:?}");
        if step % 8 == 0 {
            for side in [Side::Buy, Side::Sell] {
                assert_eq!(book.depth(side).collect::<Vec<_>>(), naive.depth(side), "seed {seed}, step {step}");
                let resting = book.resting(side).map(|(of, tick, lots)| (of.owner, of.reference, tick, lots));
                assert_eq!(resting.collect::<Vec<_>>(), naive.resting(side), "seed {seed}, step {step}");
            }
            let (owner, reference) = (dice.below(4), dice.below(16));
            assert_eq!(book.position(owner, reference), naive.position(owner, reference), "seed {seed}, step {step}");
        }
        if step % 64 == 0 {
            let bytes = book.snapshot();
            let restored = Book::restore(&bytes, LIMITS, !seed).expect("its own snapshot");
            assert_eq!((restored.snapshot(), restored.digest()), (bytes, book.digest()), "seed {seed}, step {step}");
            // It goes on where the other one was.
            book = restored;
        }
    }
    (book, seen)
}

#[test]
fn the_book_equals_the_naive_one() {
    let mut all = HashMap::new();
    for seed in 1..=20 {
        for (kind, count) in compare(seed, 5_000).1 {
            *all.entry(kind).or_insert(0) += count;
        }
    }
    assert_eq!(all.len(), 8, "each kind of event occurs");
    assert!(all.values().all(|count| *count > 100), "and often: {:?}", all.values());
}

/// Ten million commands.
#[test]
#[ignore = "part of make soak"]
fn the_book_equals_the_naive_one_over_ten_million_commands() {
    for seed in 1_000..1_100 {
        compare(seed, 100_000);
    }
}

#[test]
fn equal_commands_give_equal_digests_whatever_the_seed_of_the_references() {
    let run = |secret: u64| {
        let (mut dice, mut book) = (Dice(77), Book::new(LIMITS, secret).expect("sound"));
        (0..5_000).for_each(|_| book.apply(&dice.command(), &mut ()));
        book.digest()
    };
    assert_eq!(run(1), run(2));
    let other = {
        let (mut dice, mut book) = (Dice(78), Book::new(LIMITS, 1).expect("sound"));
        (0..5_000).for_each(|_| book.apply(&dice.command(), &mut ()));
        book.digest()
    };
    assert_ne!(run(1), other);
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_are_a_snapshot(
        seed in any::<u64>(),
        edits in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4),
        cut in 0..9usize,
    ) {
        let (mut dice, mut book) = (Dice(seed | 1), Book::new(LIMITS, seed).expect("sound"));
        (0..200).for_each(|_| book.apply(&dice.command(), &mut ()));
        let mut bytes = book.snapshot();
        for (at, byte) in edits {
            let at = at as usize % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut.min(bytes.len()));
        if let Ok(mut restored) = Book::restore(&bytes, LIMITS, seed) {
            prop_assert_eq!(restored.snapshot(), bytes);
            // Whatever is restored can be worked with.
            (0..200).for_each(|_| restored.apply(&dice.command(), &mut ()));
        }
    }
}

#[test]
fn a_book_of_no_size_is_refused_by_name() {
    let refused = Book::new(BookLimits { window_ticks: 1 << 20, ..LIMITS }, 0).err().map(|error| error.to_string());
    assert_eq!(refused.as_deref(), Some("a book's window_ticks must be 64 to 262144"));
    let other = Book::restore(&Book::new(LIMITS, 0).expect("sound").snapshot(), BookLimits::default(), 0).err();
    assert_eq!(other, Some(BookSnapshotError::Field("limits")));
}
