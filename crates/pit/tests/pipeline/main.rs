//! The node's pipeline ends and begins again while traders trade: books, sessions, orders and their places go on, and
//! what was executed settles, although the settle that waited in the pool is gone with the pipeline.

#[allow(dead_code)]
#[path = "../over_edge/chain.rs"]
mod chain;
#[allow(dead_code)]
#[path = "../over_edge/participant.rs"]
mod participant;

use chain::{ANN, BEN, Chain};
use fairnet::EdgeRules;
use participant::Trader;
use protocols::ouch::{OuchCancel, OuchInbound, OuchOutbound};

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
fn markets_go_on_when_the_pipeline_ends_and_begins_again_while_trading() {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let chain = runtime.block_on(Chain::new(EdgeRules::default()));
    chain.open();
    let trader = |person| Trader::new(&runtime, &chain, person, chain.pit.ouch_address(), false);
    let (mut ann, mut ben) = (trader(ANN), trader(BEN));
    let mut fills = 0;
    ann.enter(1, b'B', 100, 9);
    accepted(&mut ann, 1);
    for turn in 0..3u32 {
        // Its pool is lost with it, and nobody hears of the blocks that others make meanwhile.
        chain.end_pipeline();
        ben.enter(2 * turn + 1, b'S', 100, 2);
        accepted(&mut ben, 2 * turn + 1);
        assert_eq!((executed(&mut ann), executed(&mut ben)), ((1, 2), (2 * turn + 1, 2)), "the book is as it was");
        ann.enter(turn + 2, b'B', 100, 1);
        accepted(&mut ann, turn + 2);
        chain.unheard(turn + 1);
        chain.begin_again();
        fills += 1;
        chain.settle(fills);
        assert_eq!(chain.pit.view().links, 2, "no session has ended");
    }
    // The first order kept its place before those that came while there was no pipeline.
    ben.enter(7, b'S', 100, 4);
    accepted(&mut ben, 7);
    assert_eq!([executed(&mut ann), executed(&mut ann)], [(1, 3), (2, 1)]);
    ann.send(OuchInbound::Cancel(OuchCancel { user_ref: 3, quantity: 0 }));
    let ended = ann.next(|message| matches!(message, OuchOutbound::Canceled(_)));
    assert!(matches!(ended, OuchOutbound::Canceled(of) if (of.user_ref, of.quantity) == (3, 1)), "{ended:?}");
    chain.settle(fills + 2);
    chain.pit.stop();
    runtime.shutdown_background();
}
