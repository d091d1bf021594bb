//! Lists that are longer than a page, parameters, prices and compressed bodies, as clients see them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use crate::fake::Fake;
use doors::{Bound, Http};
use primitives::{AssetId, Body, Operation, PublicKey, Signature, Transaction};
use serde_json::Value;

const OWNER: PublicKey = PublicKey([1; 32]);

/// The owner's offer of 5,000 units of USD for EUR.
fn offer(sequence: u64, limit: &str) -> Transaction {
    let (sell, buy, limit) = (AssetId(0), AssetId(1), limit.parse().expect("a price"));
    let operation = Operation::offer(sell, buy, 5_000, limit);
    let body = Body { chain: 1, account: OWNER.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, OWNER, Signature([0; 64]))
}

/// Runs `test` against doors behind which these offers rest; it runs in its own thread, as clients do.
fn with_offers(limits: &[&str], test: impl FnOnce(SocketAddr) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let fake = Arc::new(Fake::new());
        for (sequence, limit) in (1..).zip(limits) {
            let publish = fake.apply(offer(sequence, limit));
            publish(&fake);
        }
        let settings = Http { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Http::default() };
        let doors = Bound::new(settings).await.expect("a free port").open(fake);
        let address = doors.address();
        tokio::task::spawn_blocking(move || test(address)).await.expect("the test passes");
        doors.close().await;
    });
}

/// Status, head and body of an answer.
fn ask(server: SocketAddr, path: &str, more: &str) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(server).expect("listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n").expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(answer[..end].to_vec()).expect("text");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, head.to_lowercase(), answer[end + 4..].to_vec())
}

fn get(server: SocketAddr, path: &str) -> Value {
    let (status, _, body) = ask(server, path, "");
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).expect("JSON")
}

fn refused(server: SocketAddr, path: &str) -> (u16, String) {
    let (status, _, body) = ask(server, path, "");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    (status, body["error"]["message"].as_str().unwrap_or_default().into())
}

/// Every offer of a list, by following its cursors.
fn all_pages(server: SocketAddr, path: &str) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(server, &format!("{path}?limit=3{cursor}"));
        let offers = page["offers"].as_array().expect("offers");
        assert!(offers.len() <= 3);
        all.extend(offers.iter().map(|offer| offer["id"].as_str().expect("text").to_string()));
        assert_eq!(page["more"], !page["next"].is_null());
        let Some(next) = page["next"].as_str() else { return all };
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn every_offer_is_reached_with_cursors_also_at_one_limit() {
    with_offers(&["1"; 10], |server| {
        let own = format!("/v1/accounts/{}/offers", OWNER.address());
        for path in [own.as_str(), "/v1/markets/USD/EUR/offers"] {
            let found = all_pages(server, path);
            assert_eq!(found, (1..=10).map(|id: u64| id.to_string()).collect::<Vec<_>>(), "{path}");
        }
        let ids = |query: &str| {
            let page = get(server, &format!("{own}?{query}"));
            let offers = page["offers"].as_array().expect("offers");
            offers.iter().map(|offer| offer["id"].as_str().expect("text").to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids("after=8"), ["9", "10"]);
        assert_eq!(ids("before=3"), ["1", "2"]);
        assert_eq!(ids("offset=8&limit=1"), ["9"]);
        let wrong = refused(server, "/v1/markets/USD/EUR/offers?cursor=7");
        assert_eq!((wrong.0, wrong.1.contains("`next` of the page before")), (400, true), "{}", wrong.1);
    });
}

#[test]
fn a_parameter_that_a_call_does_not_have_is_refused_by_name() {
    with_offers(&[], |server| {
        let own = format!("/v1/accounts/{}/offers", OWNER.address());
        for (path, words) in [
            ("/v1/status?verbose=1", "this call has no parameter \"verbose\"; it has none"),
            ("/v1/blocks?limti=5", "no parameter \"limti\"; it has limit, before"),
            ("/v1/blocks?limit=many", "limit: \"many\" is not a whole number"),
            ("/v1/blocks?limit=1&limit=2", "limit is given twice"),
            ("/v1/blocks/first", "height: \"first\" is not a whole number"),
            ("/v1/lane/boards/-1", "epoch: \"-1\" is not a whole number"),
            (&format!("{own}?page=2"), "it has limit, cursor, offset, after, before"),
        ] {
            let (status, message) = refused(server, path);
            assert_eq!((status, message.contains(words)), (400, true), "{path}: {message}");
            assert!(!message.contains("invalid digit") && !message.contains("eserialize"), "{message}");
        }
    });
}

#[test]
fn a_price_is_told_in_whole_assets_and_in_units() {
    with_offers(&["2"], |server| {
        // A unit of USD is a hundredth of one, a unit of EUR a ten-thousandth.
        let market = &get(server, "/v1/markets")["markets"][0];
        assert_eq!((&market["best_buy"], &market["best_buy_units"]), (&"50".into(), &"0.5".into()), "{market}");
        let level = &get(server, "/v1/markets/USD/EUR/book")["sells"][0];
        assert_eq!((&level["price"], &level["price_units"]), (&"0.02".into(), &"2".into()), "{level}");
        let offer = &get(server, "/v1/markets/USD/EUR/offers")["offers"][0];
        assert_eq!((&offer["price"], &offer["limit"]), (&"0.02".into(), &"2".into()), "{offer}");
        let curves = get(server, "/v1/markets/EUR/USD/curves");
        assert!(curves["price"].is_null() && curves["price_units"].is_null(), "nobody traded: {curves}");
    });
}

#[test]
fn bodies_are_compressed_for_those_who_accept_it() {
    with_offers(&["1"; 60], |server| {
        let path = format!("/v1/accounts/{}/offers?limit=60", OWNER.address());
        let (_, head, plain) = ask(server, &path, "");
        assert!(!head.contains("content-encoding"), "{head}");
        for encoding in ["gzip", "zstd"] {
            let (status, head, body) = ask(server, &path, &format!("Accept-Encoding: {encoding}\r\n"));
            assert!(head.contains(&format!("content-encoding: {encoding}")), "{head}");
            assert!(status == 200 && body.len() * 5 < plain.len(), "{} of {} bytes", body.len(), plain.len());
        }
        for path in ["/v1/openapi.json", "/metrics"] {
            assert!(ask(server, path, "Accept-Encoding: gzip\r\n").1.contains("content-encoding: gzip"), "{path}");
        }
    });
}
