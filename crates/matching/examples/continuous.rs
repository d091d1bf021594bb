//! A day at a market: an opening call, continuous trading, a halt.
//!
//! `cargo run -p matching --example continuous`

use matching::{Book, BookEvent, BookLimits, Command, NewOrder, Phase, SelfTrade, Side, TimeInForce};

fn order(owner: u32, reference: u32, side: Side, tick: u32, lots: u32) -> Command {
    Command::New(NewOrder {
        owner,
        reference,
        side,
        tick,
        lots,
        time_in_force: TimeInForce::GoodTillCancelled,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
    })
}

fn main() {
    let mut book = Book::new(BookLimits::default(), 0x5eed).expect("usual limits");
    let day = [
        Command::Call,
        order(1, 1, Side::Buy, 1_002, 10),
        order(2, 1, Side::Sell, 998, 6),
        order(3, 1, Side::Sell, 1_005, 8),
        Command::Uncross { reference: 1_000, then: Phase::Continuous },
        order(4, 1, Side::Buy, 1_005, 3),
        order(2, 2, Side::Sell, 1_002, 9),
        Command::Halt,
        order(1, 2, Side::Buy, 1_000, 1),
        Command::CancelAll { owner: 2, side: None },
        Command::Resume,
    ];
    for command in &day {
        let mut events: Vec<BookEvent> = Vec::new();
        book.apply(command, &mut events);
        println!("{command:?}");
        events.iter().for_each(|event| println!("    {event:?}"));
    }
    for side in [Side::Buy, Side::Sell] {
        println!("{side:?} {:?}", book.depth(side).collect::<Vec<_>>());
    }
}
