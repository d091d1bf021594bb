//! The book against a naive one, command by command.

mod dice;
mod naive;

use std::collections::HashMap;

use dice::{Dice, LIMITS};
use matching::*;
use naive::Naive;
use proptest::prelude::*;

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
