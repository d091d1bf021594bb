//! The end of a day at a venue: orders of bridges end in the session of their day, sessions begin anew at midnight
//! (UTC), references start again, and fills of both days settle. The clock of this process is moved.

#[allow(dead_code)]
#[path = "../over_edge/chain.rs"]
mod chain;
#[allow(dead_code)]
#[path = "../over_edge/participant.rs"]
mod participant;

use std::time::Duration;

use chain::{ANN, BEN, Chain};
use fairnet::EdgeRules;
use participant::Trader;
use protocols::ouch::OuchOutbound;

const DAY_MS: u64 = 86_400_000;
/// Time until midnight when the test begins: orders of bridges end ten seconds before it.
const BEFORE_MS: u64 = 25_000;
/// By how much the clock is moved at once. Links believe each other dead after fifteen seconds of silence, so it is
/// little, and everybody has a moment to speak between.
const MOVE_MS: u64 = 100;
const MOMENT: Duration = Duration::from_millis(20);

fn move_clock_until(mut is: impl FnMut() -> bool) {
    while !is() {
        pit::advance_clock(MOVE_MS);
        std::thread::sleep(MOMENT);
    }
}

fn accepted(trader: &mut Trader, user_ref: u32) {
    let answer = trader.next(|message| matches!(message, OuchOutbound::Accepted(_) | OuchOutbound::Rejected(_)));
    assert!(matches!(answer, OuchOutbound::Accepted(of) if of.user_ref == user_ref), "{answer:?}");
}

fn executed(trader: &mut Trader) -> (u32, u32) {
    let answer = trader.next(|message| matches!(message, OuchOutbound::Executed(_)));
    let OuchOutbound::Executed(of) = answer else { unreachable!() };
    (of.user_ref, of.quantity)
}

#[test]
fn a_day_ends_for_its_orders_and_sessions_and_the_next_settles_as_well() {
    let until_midnight = DAY_MS - pit::clock_ms() % DAY_MS;
    pit::advance_clock((until_midnight + DAY_MS - BEFORE_MS) % DAY_MS);
    let today = pit::clock_ms() / DAY_MS;

    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let chain = runtime.block_on(Chain::new(EdgeRules::default()));
    chain.open();
    let trader = |person| Trader::new(&runtime, &chain, person, chain.pit.ouch_address(), false);
    let (mut ann, mut ben) = (trader(ANN), trader(BEN));
    ann.enter(1, b'B', 100, 9);
    accepted(&mut ann, 1);
    ben.enter(1, b'S', 100, 4);
    accepted(&mut ben, 1);
    assert_eq!(executed(&mut ann), (1, 4));
    chain.settle(1);

    // The order ends before the day does, in its session.
    let mut is_over = false;
    move_clock_until(|| {
        is_over |= ann.has_ended();
        is_over || ann.heard().iter().any(|message| matches!(message, OuchOutbound::Canceled(_)))
    });
    assert!(!is_over, "the session's end came before the end of its order");
    assert_eq!(pit::clock_ms() / DAY_MS, today);
    let ended = ann.next(|message| matches!(message, OuchOutbound::Canceled(_)));
    assert!(matches!(ended, OuchOutbound::Canceled(of) if (of.user_ref, of.quantity) == (1, 5)), "{ended:?}");

    // At midnight the connection ends.
    move_clock_until(|| pit::clock_ms() / DAY_MS > today && ann.has_ended());
    ann.again();
    ben.again();
    assert!(ann.heard().is_empty(), "the new session begins with message 1: {:?}", ann.heard());

    // References start again, and what they name are other orders.
    ann.enter(1, b'B', 101, 3);
    accepted(&mut ann, 1);
    ben.enter(1, b'S', 101, 3);
    accepted(&mut ben, 1);
    assert_eq!(executed(&mut ann), (1, 3));
    chain.settle(2);
    chain.pit.stop();
    runtime.shutdown_background();
}
