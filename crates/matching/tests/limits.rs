//! Orders at the ends of their range: the largest sizes, references and ticks that a command can name.

use matching::*;

const LIMITS: BookLimits =
    BookLimits { orders: 16, owners: 3, orders_of_owner: 8, window_base: 1, window_ticks: 64, fill_or_kill_orders: 8 };

fn order(owner: u32, reference: u32, side: Side, tick: u32) -> NewOrder {
    NewOrder {
        owner,
        reference,
        side,
        tick,
        lots: u32::MAX,
        time_in_force: TimeInForce::GoodTillCancelled,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
    }
}

fn apply(book: &mut Book, command: Command) -> Vec<BookEvent> {
    let mut events = Vec::new();
    book.apply(&command, &mut events);
    events
}

fn executed(events: &[BookEvent]) -> u64 {
    let lots = events.iter().map(|event| match event {
        BookEvent::Executed { lots, .. } => u64::from(*lots),
        _ => 0,
    });
    lots.sum()
}

#[test]
fn orders_of_the_largest_sizes_references_and_ticks_trade_exactly() {
    let most = u64::from(u32::MAX);
    for tick in [1, TICK_MAX] {
        let mut book = Book::new(LIMITS, 3).expect("sound");
        for at in 0..4 {
            apply(&mut book, Command::New(order(0, u32::MAX - at, Side::Sell, tick)));
        }
        assert_eq!(book.best(Side::Sell), Some((tick, 4 * most)), "a level has more lots than an order can");
        // A cut in size keeps the place, at the ends as well.
        let (reference, lots) = (u32::MAX, u32::MAX - 1);
        let cut = Replacement { owner: 0, reference, new_reference: reference, tick, lots };
        let kept = apply(&mut book, Command::Replace(cut));
        assert!(matches!(kept[..], [BookEvent::Replaced { kept: true, .. }]), "{kept:?}");
        // One that is killed or filled meets more lots than its own.
        let kill = NewOrder { time_in_force: TimeInForce::FillOrKill, ..order(1, 0, Side::Buy, tick) };
        assert_eq!(executed(&apply(&mut book, Command::New(kill))), most);
        assert_eq!(book.best(Side::Sell), Some((tick, 3 * most - 1)));
        let restored = Book::restore(&book.snapshot(), LIMITS, 9).expect("its own bytes");
        assert_eq!((restored.best(Side::Sell), restored.digest()), (book.best(Side::Sell), book.digest()));
    }
}

#[test]
fn an_auction_of_the_largest_orders_trades_all_that_meets() {
    let mut book = Book::new(LIMITS, 3).expect("sound");
    apply(&mut book, Command::Call);
    for at in 0..4 {
        apply(&mut book, Command::New(order(0, u32::MAX - at, Side::Sell, 1 + at)));
        apply(&mut book, Command::New(order(1, u32::MAX - at, Side::Buy, TICK_MAX - at)));
    }
    let auction = apply(&mut book, Command::Uncross { reference: TICK_MAX, then: Phase::Continuous });
    assert_eq!(executed(&auction), 4 * u64::from(u32::MAX));
    assert!(book.is_empty());
}
