//! The node's pipeline ends and begins again while traders trade: books, sessions, orders and their places go on, and
//! what was executed settles, although the settle that waited in the pool is gone with the pipeline.

#[allow(dead_code)]
#[path = "../over_edge/chain.rs"]
mod chain;
#[allow(dead_code)]
#[path = "../over_edge/participant.rs"]
mod participant;

use std::io::{Read, Write};
use std::net::TcpStream;

use chain::{ANN, BEN, Chain, trading};
use fairnet::EdgeRules;
use participant::Trader;
use pit::door::bodies::request_body;
use primitives::Digest;
use protocols::ouch::{OuchCancel, OuchInbound, OuchOutbound};
use serde_json::{Value, json};
use venue::{RequestScope, TraderAsk, TraderRequest};

fn accepted(trader: &mut Trader, user_ref: u32) {
    let answer = trader.next(|message| matches!(message, OuchOutbound::Accepted(_) | OuchOutbound::Rejected(_)));
    assert!(matches!(answer, OuchOutbound::Accepted(of) if of.user_ref == user_ref), "{answer:?}");
}

fn executed(trader: &mut Trader) -> (u32, u32) {
    let answer = trader.next(|message| matches!(message, OuchOutbound::Executed(_)));
    let OuchOutbound::Executed(of) = answer else { unreachable!() };
    (of.user_ref, of.quantity)
}

/// Asks the venue over HTTP for fills of a trader, signed for a network.
fn ask(chain: &Chain, network: Digest, origin: &str) -> (u16, Value) {
    let scope = RequestScope { network, venue: 0, incarnation: 0 };
    let request = TraderRequest::sign(&scope, &trading(ANN), pit::clock_ms(), TraderAsk::Fills(0));
    let body = serde_json::to_string(&request_body(&request)).expect("plain data");
    let mut stream = TcpStream::connect(chain.pit.address()).expect("it listens");
    let head = format!(
        "POST /v1/venue/requests HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{origin}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// Fills are told over HTTP with their reports; what is forged is charged to its address, and a page of another site
/// reaches nothing.
fn fills_over_http(chain: &Chain, fills: u64) {
    let (status, told) = ask(chain, chain.network, "");
    let own = told["fills"].as_array().expect("fills");
    assert_eq!((status, own.len() as u64, &told["next"]), (200, fills, &json!(fills.to_string())), "{told}");
    assert!(own.iter().all(|fill| fill["report"].as_str().is_some_and(|report| report.len() > 64)), "{told}");
    assert_eq!(ask(chain, chain.network, "Origin: https://page.example\r\n").0, 403);
    let mut forged = 0;
    let told = loop {
        match ask(chain, Digest([9; 32]), "") {
            (400, told) if told["error"]["code"] == "signature" => forged += 1,
            (_, told) => break told,
        }
        assert!(forged < 100_000, "its budget ends");
    };
    assert_eq!(told["error"]["code"], "too_much_was_false", "after {forged}: {told}");
    let message = told["error"]["message"].as_str().unwrap_or_default();
    assert!(forged >= 512 && message.contains("send it again in"), "after {forged}: {told}");
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
    fills_over_http(&chain, fills);
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
