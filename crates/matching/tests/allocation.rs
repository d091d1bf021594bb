//! Nothing is allocated after a start, whatever the commands are. Every allocation of the program is counted, so the
//! test is its program's `main`: the usual harness waits on a thread of its own, which allocates when it likes.

#[path = "equality/dice.rs"]
mod dice;

use dice::{Dice, LIMITS};
use matching::{Book, BookLimits, Command};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The most that the program held while a book executed commands, above what it held before.
fn grown(limits: BookLimits, commands: &[Command]) -> usize {
    let mut book = Book::new(limits, 7).expect("sound");
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    commands.iter().for_each(|command| book.apply(command, &mut ()));
    ALLOCATOR.peak_usage() - before
}

fn a_book_allocates_nothing_after_its_start() {
    let mut dice = Dice(5);
    let commands: Vec<Command> = (0..50_000).map(|_| dice.command()).collect();
    assert_eq!(grown(LIMITS, &commands), 0, "bytes");
    // Levels outside of the window are nodes of a tree.
    let narrow = BookLimits { window_base: 1_000_000, ..LIMITS };
    assert_eq!(grown(narrow, &commands), 0, "bytes, outside of the window");
}

fn main() {
    a_book_allocates_nothing_after_its_start();
}
