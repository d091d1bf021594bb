//! A book that is restored from a snapshot and goes on like the one that never stopped.
//!
//! `cargo run -p matching --example recovery`

use matching::{Book, BookLimits, Command, NewOrder, SelfTrade, Side, TimeInForce};

/// Orders around tick 1,000, from ten owners in turn.
fn flow(from: u32, count: u32) -> impl Iterator<Item = Command> {
    (from..from + count).map(|number| {
        let scattered = number.wrapping_mul(2_654_435_761) >> 16;
        Command::New(NewOrder {
            owner: number % 10,
            reference: number,
            side: if scattered % 2 == 0 { Side::Buy } else { Side::Sell },
            tick: 990 + scattered % 21,
            lots: 1 + scattered % 5,
            time_in_force: TimeInForce::GoodTillCancelled,
            post_only: false,
            self_trade: SelfTrade::ExpireMaker,
        })
    })
}

fn main() {
    let mut whole = Book::new(BookLimits::default(), 1).expect("usual limits");
    flow(0, 5_000).for_each(|command| whole.apply(&command, &mut ()));
    let snapshot = whole.snapshot();
    // Another process, with another secret.
    let mut restored = Book::restore(&snapshot, BookLimits::default(), 2).expect("its own snapshot");
    flow(5_000, 5_000).for_each(|command| {
        whole.apply(&command, &mut ());
        restored.apply(&command, &mut ());
    });
    assert_eq!(whole.digest(), restored.digest());
    println!("{} orders, {} bytes of snapshot, digest {:032x}", whole.len(), snapshot.len(), whole.digest());
}
