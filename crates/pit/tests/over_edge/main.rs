//! A continuous market behind the venue's edge: one process, real sockets on loopback, the real ledger. Participants
//! speak plain OUCH to bridges, which sign for the doors of their gateways. The tree carries their orders up by stamps
//! and the market's data down to one deadline. No test here waits for time to pass: each waits until something has
//! happened.

#[allow(dead_code, reason = "the test of pipelines uses the rest")]
mod chain;
#[allow(dead_code, reason = "the test of midnight uses the rest")]
mod participant;
mod relay;
mod tree;

use std::net::UdpSocket;
use std::sync::Arc;

use chain::{ANN, BEN, CLEO, Chain};
use fairnet::EdgeRules;
use participant::Trader;
use protocols::itch::{ItchBody, ItchMessage};
use protocols::mold::MoldPacket;
use protocols::ouch::{OuchCancel, OuchInbound, OuchOutbound};
use tree::{GATEWAYS, Tree, patient};

/// The messages of ITCH in a packet that a gateway shows.
fn bodies(payload: &[u8]) -> Vec<ItchBody> {
    let packet = MoldPacket::decode(payload).expect("MoldUDP64");
    packet.messages.iter().map(|message| ItchMessage::decode(message).expect("ITCH").body).collect()
}

/// A market behind an edge, with Ann at one gateway, Ben at the other and Cleo at the venue's own door.
struct Market {
    runtime: tokio::runtime::Runtime,
    chain: Arc<Chain>,
    tree: Tree,
    feed: UdpSocket,
}

impl Market {
    fn new(rules: EdgeRules) -> Market {
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        let chain = runtime.block_on(Chain::new(rules));
        let feed = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let root = chain.pit.edge().expect("the venue has one").place();
        let tree = Tree::new(root.streams, rules, feed.local_addr().expect("bound"));
        chain.open();
        Market { runtime, chain, tree, feed }
    }

    fn trader(&self, person: u8, ends_orders: bool) -> Trader {
        let door = match person {
            ANN => self.tree.door(0),
            BEN => self.tree.door(1),
            _ => self.chain.pit.ouch_address(),
        };
        Trader::new(&self.runtime, &self.chain, person, door, ends_orders)
    }

    fn stop(self) {
        self.chain.pit.stop();
        self.runtime.shutdown_background();
    }
}

fn accepted(trader: &mut Trader) -> u32 {
    match trader.next(|message| matches!(message, OuchOutbound::Accepted(_) | OuchOutbound::Rejected(_))) {
        OuchOutbound::Accepted(of) => of.user_ref,
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_two_participants_who_race_the_earlier_stamp_trades_although_its_order_arrives_last() {
    let market = Market::new(patient());
    let (mut ann, mut ben) = (market.trader(ANN, false), market.trader(BEN, false));
    let mut cleo = market.trader(CLEO, false);
    cleo.enter(1, b'S', 100, 5);
    accepted(&mut cleo);

    // Ann is first; the network holds her order.
    let bens_proxy = market.tree.parent(GATEWAYS[1]);
    market.tree.hold(GATEWAYS[0]);
    ann.enter(1, b'B', 100, 5);
    market.tree.until(|seen| !seen.entered(GATEWAYS[0]).is_empty());
    ben.enter(1, b'B', 100, 5);
    market.tree.until(|seen| !seen.entered(bens_proxy).is_empty());
    // The root goes on meanwhile: whoever waited for nobody would have executed Ben's order by now.
    let beats = market.tree.with(|seen| seen.beats(GATEWAYS[1]));
    market.tree.until(|seen| seen.beats(GATEWAYS[1]) > beats + 20);
    let [anns, bens] = market.tree.with(|seen| GATEWAYS.map(|gateway| seen.entered(gateway)[0]));
    assert!(anns < bens, "{anns} {bens}");
    let status = market.chain.pit.edge().and_then(pit::VenueEdge::status).expect("the root runs");
    assert_eq!((market.chain.pit.view().fills, status.counters.restamped), (0, 0), "it waits for who may be earlier");

    market.tree.release();
    let executed = ann.next(|message| matches!(message, OuchOutbound::Executed(_)));
    let OuchOutbound::Executed(executed) = executed else { unreachable!() };
    assert_eq!((executed.quantity, executed.price, executed.liquidity), (5, 100, b'R'));
    accepted(&mut ben);
    assert!(ben.heard().iter().all(|message| !matches!(message, OuchOutbound::Executed(_))), "nothing is left for Ben");
    // The fill is settled on the ledger.
    market.chain.settle(1);

    // Everybody is shown the trade, at one deadline and not before it, and Ann is told after all can know.
    let is_trade = |body: &ItchBody| matches!(body, ItchBody::Executed(of) if of.shares == 5);
    let has_trade = |payload: &[u8]| bodies(payload).iter().any(is_trade);
    market.tree.until(|seen| GATEWAYS.iter().all(|gateway| seen.shown(*gateway).any(|of| has_trade(&of.payload))));
    market.tree.with(|seen| {
        let [one, other] =
            GATEWAYS.map(|gateway| seen.shown(gateway).find(|of| has_trade(&of.payload)).expect("shown"));
        assert_eq!((one.sequence, one.deadline, &one.payload), (other.sequence, other.deadline, &other.payload));
        assert!(one.at >= one.deadline && other.at >= other.deadline, "{one:?} {other:?}");
        let report = seen.first_report(GATEWAYS[0], b'E').expect("Ann was told");
        assert!(report >= one.number, "Ann's report of her trade came before its market data");
    });

    let fairness = market.chain.fairness();
    for part in ["\"gateways\":[1000,1001]", "\"proxies\":[1,2]", "\"layers\":[1,2,2]", "\"label\":\"proven\""] {
        assert!(fairness.contains(part), "{part}: {fairness}");
    }

    // A gateway passes the feed on as the venue has made it.
    let mut buffer = [0; 2_048];
    let passed = |packet: &[u8]| bodies(packet).iter().any(is_trade);
    while !market.feed.recv(&mut buffer).map(|count| passed(&buffer[..count])).expect("the feed") {}
    market.stop();
}

#[test]
fn cancels_through_the_edge_end_orders_and_so_does_a_participant_that_goes() {
    let market = Market::new(patient());
    let mut ann = market.trader(ANN, false);
    ann.enter(1, b'B', 90, 3);
    assert_eq!(accepted(&mut ann), 1);
    ann.send(OuchInbound::Cancel(OuchCancel { user_ref: 1, quantity: 0 }));
    let canceled = ann.next(|message| matches!(message, OuchOutbound::Canceled(_)));
    assert!(matches!(canceled, OuchOutbound::Canceled(of) if (of.user_ref, of.quantity) == (1, 3)));
    // What nobody signed for this venue is refused, and the reason has a number.
    ann.enter(2, b'B', 10_001, 3);
    let rejected = ann.next(|message| matches!(message, OuchOutbound::Rejected(_)));
    assert!(matches!(rejected, OuchOutbound::Rejected(of) if of.user_ref == 2), "{rejected:?}");

    let mut ben = market.trader(BEN, true);
    ben.enter(1, b'B', 91, 4);
    accepted(&mut ben);
    let deletes = |payload: &[u8]| bodies(payload).iter().filter(|body| matches!(body, ItchBody::Delete(_))).count();
    let shown = |seen: &tree::Seen| seen.shown(GATEWAYS[0]).map(|of| deletes(&of.payload)).sum::<usize>();
    market.tree.until(|seen| shown(seen) == 1);
    drop(ben);
    market.tree.until(|seen| shown(seen) == 2);
    market.stop();
}

#[test]
fn orders_end_when_their_gateway_is_killed_and_the_session_goes_on_at_another() {
    let mut market = Market::new(EdgeRules { roster: fairnet::RosterRules::default(), ..patient() });
    let mut ben = market.trader(BEN, true);
    ben.enter(1, b'B', 91, 4);
    accepted(&mut ben);
    market.tree.kill(GATEWAYS[1]);
    let is_delete = |body: &ItchBody| matches!(body, ItchBody::Delete(_));
    let is_shown = |seen: &tree::Seen| seen.shown(GATEWAYS[0]).any(|of| bodies(&of.payload).iter().any(is_delete));
    market.tree.until(is_shown);
    // At Ann's gateway Ben's session is what it was: it has told him of the end of his order.
    let mut again = Trader::new(&market.runtime, &market.chain, BEN, market.tree.door(0), true);
    let canceled = again.next(|message| matches!(message, OuchOutbound::Canceled(_)));
    assert!(matches!(canceled, OuchOutbound::Canceled(of) if (of.user_ref, of.quantity) == (1, 4)), "{canceled:?}");
    again.enter(2, b'B', 92, 1);
    again.next(|message| matches!(message, OuchOutbound::Accepted(of) if of.user_ref == 2));
    market.stop();
}

#[test]
fn trading_goes_on_over_the_tree_when_a_proxy_and_a_gateway_are_killed() {
    let mut market = Market::new(EdgeRules { roster: fairnet::RosterRules::default(), ..patient() });
    let (mut ann, mut ben) = (market.trader(ANN, false), market.trader(BEN, true));
    let mut cleo = market.trader(CLEO, false);
    cleo.enter(1, b'S', 100, 50);
    accepted(&mut cleo);
    let buy = |trader: &mut Trader, user_ref: u32| {
        trader.enter(user_ref, b'B', 100, 2);
        let executed = trader.next(|message| matches!(message, OuchOutbound::Executed(of) if of.user_ref == user_ref));
        assert!(matches!(executed, OuchOutbound::Executed(of) if of.quantity == 2), "{executed:?}");
    };
    buy(&mut ann, 1);
    buy(&mut ben, 1);
    // The proxy that Ann's orders take, and the gateway that Ben is at.
    market.tree.kill(market.tree.parent(GATEWAYS[0]));
    market.tree.kill(GATEWAYS[1]);
    buy(&mut ann, 2);
    let mut again = Trader::new(&market.runtime, &market.chain, BEN, market.tree.door(0), true);
    buy(&mut again, 2);
    market.chain.settle(4);
    let trades = |payload: &[u8]| {
        let is_trade = |body: &&ItchBody| matches!(body, ItchBody::Executed(of) if of.shares == 2);
        bodies(payload).iter().filter(is_trade).count()
    };
    let shown = |seen: &tree::Seen| seen.shown(GATEWAYS[0]).map(|of| trades(&of.payload)).sum::<usize>();
    market.tree.until(|seen| shown(seen) == 4);
    market.stop();
}
