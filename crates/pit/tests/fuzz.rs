//! Mutations of what strangers send to a venue: orders and requests as JSON, and the hello of an OUCH session.

use api::{OrderBody, RequestBody};
use fuzz::{Room, Target};
use pit::door::bodies::{order_body, request_body, signed_order, signed_request};
use pit::ouch::{HELLO, read_hello};
use primitives::venue::{OrderLife, OrderNumber, SelfTradeRule, SignedOrder, VenueOrder, VenueSide};
use primitives::{Digest, SecretKey};
use protocols::soup::SoupPacket;
use venue::{RequestScope, TraderAsk, TraderRequest};

const WORDS: [&str; 8] =
    ["\"ask\":", "\"replaces\":", "\"number\":{", "\"cancel_all\":{}", "null", "18446744073709551616", "-1", "0x"];
/// What the JSON reader may hold: texts are copied once more.
const ROOM: Option<Room> = Some(Room { base: 1 << 20, factor: 64 });

fn number() -> OrderNumber {
    OrderNumber { incarnation: 1, day: 2, reference: 3 }
}

fn order() -> SignedOrder {
    let trading = SecretKey::from_seed([1; 32]);
    let order = VenueOrder {
        market: 0,
        number: number(),
        floor: OrderNumber { incarnation: 1, day: 0, reference: 0 },
        side: VenueSide::Buy,
        life: OrderLife::PostOnly,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 5,
        lots: 6,
        expiry: 7,
        until_ms: Some(8),
        fee_cap_ppm: 9,
    };
    SignedOrder::sign(&Digest([1; 32]), 0, &trading, order)
}

fn requests() -> Vec<TraderRequest> {
    let scope = RequestScope { network: Digest([1; 32]), venue: 0, incarnation: 1 };
    let asks = [
        TraderAsk::Attach { session: 1, ends_orders: true, dead_man_ms: Some(5) },
        TraderAsk::Cancel { number: number(), keeps: 1 },
        TraderAsk::CancelAll { market: Some(1), side: Some(VenueSide::Sell) },
        TraderAsk::Replace { old: number(), new: number() },
        TraderAsk::Status(number()),
        TraderAsk::Fills(u64::MAX),
        TraderAsk::Watch,
    ];
    asks.map(|ask| TraderRequest::sign(&scope, &SecretKey::from_seed([1; 32]), 10, ask)).to_vec()
}

/// The name of what is asked.
fn name(ask: &TraderAsk) -> String {
    let text = format!("{ask:?}");
    text.chars().take_while(char::is_ascii_alphabetic).collect()
}

#[test]
fn venue_orders() {
    let replaces = request_body(&requests()[3]);
    let seeds = [order_body(&order(), None), order_body(&order(), Some(replaces))];
    let seeds = seeds.iter().map(|body| serde_json::to_vec(body).expect("JSON")).collect();
    let target = Target { words: &WORDS, room: ROOM, ..Target::new("venue-order", seeds) };
    let ran = target.run(|bytes| {
        let body: OrderBody = serde_json::from_slice(bytes).map_err(|error| format!("{:?}", error.classify()))?;
        let signed = signed_order(&body).map_err(|error| error.split(':').next().unwrap_or_default().to_string())?;
        // What is read is what is written.
        let again = signed_order(&order_body(&signed, body.replaces.clone())).expect("it was read");
        assert_eq!(again, signed);
        Ok(format!("{:?}", signed.order.life))
    });
    assert!(ran.kinds > 3, "{ran:?}");
}

#[test]
fn venue_requests() {
    let seeds = requests().iter().map(|request| serde_json::to_vec(&request_body(request)).expect("JSON")).collect();
    let target = Target { words: &WORDS, room: ROOM, ..Target::new("venue-request", seeds) };
    let ran = target.run(|bytes| {
        let body: RequestBody = serde_json::from_slice(bytes).map_err(|error| format!("{:?}", error.classify()))?;
        let request = signed_request(&body).map_err(|error| error.split(':').next().unwrap_or_default().to_string())?;
        assert_eq!(signed_request(&request_body(&request)).expect("it was read"), request);
        Ok(name(&request.ask))
    });
    assert!(ran.kinds > 7, "{ran:?}");
}

#[test]
fn ouch_hellos() {
    let packet = |request: &TraderRequest| {
        let text = [HELLO, &borsh::to_vec(request).expect("in memory")].concat();
        let mut bytes = Vec::new();
        SoupPacket::Debug(&text).encode(&mut bytes).expect("it is short");
        // The length is read before.
        bytes.split_off(2)
    };
    let seeds = requests().iter().map(packet).collect();
    let ran = Target::new("ouch-hello", seeds).run(|bytes| {
        let request = read_hello(bytes).ok_or("no hello")?;
        assert_eq!(packet(&request), bytes, "a request has one encoding");
        Ok(name(&request.ask))
    });
    assert!(ran.kinds > 6, "{ran:?}");
}
