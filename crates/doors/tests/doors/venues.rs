//! What the doors tell of venues of continuous markets: lists in pages, absence by name, and proofs that need only the
//! state root.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{bytes, get, loopback, send, with_doors, with_node};
use ledger::{Genesis, VenueProof, VenueRecordId, VenueTerms};
use primitives::venue::{KeyScope, Mandate, MarketMandate, MarketTerms, VenueOperation, VenueOperator};
use primitives::{Address, AssetId, Body, Digest, Operation, PublicKey, SecretKey, Sequence, Signature, Transaction};
use serde_json::Value;

const OWNER: PublicKey = PublicKey([1; 32]);
const TRADERS: [u8; 3] = [11, 12, 13];

fn signed(by: PublicKey, sequence: Sequence, operation: Operation) -> Transaction {
    let body = Body { chain: 1, account: by.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, by, Signature([0; 64]))
}

fn at_venue(by: PublicKey, sequence: Sequence, operation: VenueOperation) -> Transaction {
    signed(by, sequence, Operation::Venue(Box::new(operation)))
}

fn trader(number: u8) -> PublicKey {
    PublicKey([number; 32])
}

fn trading_key(number: u8) -> PublicKey {
    SecretKey::from_seed([number; 32]).public()
}

fn market() -> MarketTerms {
    let (base, quote) = (AssetId(1), AssetId(0));
    MarketTerms { base, quote, lot_units: 10_000, tick_units: 1, lots_max: 1_000, fee_cap_ppm: 500, penalty: 100 }
}

/// Two venues, three markets at the first; three traders with deposits, the first of whom has authorised two keys.
fn node() -> Arc<Fake> {
    let mut genesis = Fake::genesis();
    for number in TRADERS {
        genesis.balances.push((trader(number).address(), AssetId(0), 100_000));
        genesis.balances.push((trader(number).address(), AssetId(1), 900_000));
    }
    let venues = Some(VenueTerms { bond_min: 1_000, ..VenueTerms::default() });
    let node = Fake::of(Genesis { venues, ..genesis });
    let open = |venue: u32| VenueOperation::Open {
        venue,
        operator: VenueOperator { account: OWNER.address(), report_key: trading_key(90 + venue as u8) },
        fee_cap_ppm: 700,
        bond: 5_000,
    };
    node.commit(&[at_venue(OWNER, 1, open(0))]);
    node.commit(&[at_venue(OWNER, 2, open(1))]);
    for market_number in 0..3 {
        let list = VenueOperation::List { venue: 0, market: market_number, terms: market() };
        node.commit(&[at_venue(OWNER, 3 + u64::from(market_number), list)]);
    }
    let deposit = |units| VenueOperation::Deposit { venue: 0, asset: AssetId(0), units };
    let deposits: Vec<Transaction> =
        TRADERS.iter().map(|number| at_venue(trader(*number), 1, deposit(1_000 * u64::from(*number)))).collect();
    node.commit(&deposits);
    for (at, key) in [70, 71].into_iter().enumerate() {
        let markets = vec![MarketMandate { market: 0, tick_min: 1, tick_max: 1_000 }];
        let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(AssetId(0), 10_000)] };
        let authorize =
            VenueOperation::Authorize { venue: 0, key: trading_key(key), mandate, possession: Signature([0; 64]) };
        node.commit(&[at_venue(trader(TRADERS[0]), 2 + at as u64, authorize)]);
    }
    Arc::new(node)
}

fn with_venues(test: impl FnOnce(SocketAddr) + Send + 'static) {
    with_node(loopback(), node(), test);
}

/// All rows of a list, by following its cursors one row at a time.
fn rows(server: SocketAddr, path: &str, field: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(server, &format!("{path}?limit=1{cursor}"));
        let listed = page[field].as_array().unwrap_or_else(|| panic!("{path}: {page}"));
        assert!(listed.len() <= 1, "{path}: {page}");
        assert_eq!(page["more"], !page["next"].is_null(), "{path}: {page}");
        all.extend(listed.iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
        assert!(all.len() < 100, "{path} ends");
    }
}

#[test]
fn lists_of_venues_markets_deposits_and_keys_come_whole_in_pages() {
    with_venues(|server| {
        let first = trader(TRADERS[0]).address();
        for (path, field, count) in [
            ("/v1/venues".to_string(), "venues", 2),
            ("/v1/venues/0/markets".into(), "markets", 3),
            ("/v1/venues/1/markets".into(), "markets", 0),
            ("/v1/venues/0/deposits".into(), "deposits", 3),
            ("/v1/venues/1/deposits".into(), "deposits", 0),
            (format!("/v1/accounts/{first}/deposits"), "deposits", 1),
            (format!("/v1/accounts/{first}/trading-keys"), "keys", 2),
            (format!("/v1/accounts/{}/trading-keys", trader(TRADERS[1]).address()), "keys", 0),
            (format!("/v1/accounts/{}/deposits", Address([5; 20])), "deposits", 0),
            ("/v1/venues/0/incarnations".into(), "ended", 0),
        ] {
            let one_by_one = rows(server, &path, field);
            assert_eq!(one_by_one.len(), count, "{path}: {one_by_one:?}");
            let at_once = get(server, &path);
            assert_eq!(at_once[field].as_array().map(Vec::as_slice), Some(one_by_one.as_slice()), "{path}");
        }
    });
}

#[test]
fn a_venue_is_told_with_its_owner_its_bond_and_what_it_holds() {
    with_venues(|server| {
        let listed = get(server, "/v1/venues");
        let venue = get(server, "/v1/venues/0");
        assert_eq!((&venue["venue"], &venue["owner"]), (&0.into(), &OWNER.address().to_string().into()));
        assert_eq!(venue["operator"]["report_key"], trading_key(90).to_string());
        assert_eq!((&venue["is_convicted"], &venue["incarnation"]), (&false.into(), &0.into()));
        let usd = listed["custody"].as_array().expect("custody").iter().find(|of| of["asset"] == "USD");
        let usd = usd.expect("there are deposits of USD");
        let held = 1_000 * TRADERS.iter().map(|number| u64::from(*number)).sum::<u64>();
        assert_eq!((&usd["deposits"], &usd["bonds"]), (&held.to_string().into(), &"10000".into()), "{listed}");
        assert_eq!(listed["terms"]["bond_min"], "1000");
        let terms = &get(server, "/v1/venues/0/markets")["markets"][2];
        assert_eq!(
            (&terms["market"], &terms["terms"]["base"], &terms["terms"]["quote"]),
            (&2.into(), &"EUR".into(), &"USD".into())
        );
        let key = get(server, &format!("/v1/venues/0/keys/{}", trading_key(70)));
        assert_eq!(key["account"], trader(TRADERS[0]).address().to_string(), "{key}");
    });
}

#[test]
fn what_a_venue_does_not_have_is_named() {
    with_venues(|server| {
        let (key, stranger) = (trading_key(70), trading_key(5));
        for (path, words) in [
            ("/v1/venues/9".to_string(), "no venue has the number 9; see /v1/venues"),
            ("/v1/venues/9/markets".into(), "no venue has the number 9"),
            ("/v1/venues/9/deposits".into(), "no venue has the number 9"),
            ("/v1/venues/9/settles".into(), "no venue has the number 9"),
            (format!("/v1/venues/9/keys/{key}"), "no venue has the number 9"),
            (format!("/v1/venues/1/keys/{key}"), "venue 1 has no key"),
            (format!("/v1/venues/0/keys/{stranger}"), "no account has authorised it"),
            ("/v1/venues/0/fills/0/7/proof".into(), "7"),
            ("/v1/blocks/99/settles".into(), "block 99"),
        ] {
            let (status, answer) = send(server, "GET", &path, "", &[]);
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert_eq!(status, 404, "{path}: {answer}");
            assert!(message.contains(words), "{path}: {message:?} lacks {words:?}");
        }
        for (path, words) in [
            ("/v1/venues/one".to_string(), "venue: \"one\" is not a whole number"),
            ("/v1/venues/4294967296".into(), "is not a whole number from 0 to 4294967295"),
            ("/v1/venues/0/keys/0x12".into(), "key: "),
            ("/v1/venues/0/deposits?cursor=5".into(), "is not an account and a symbol, as in 0x…:EUR"),
            ("/v1/venues/0/deposits?cursor=0x12:EUR".into(), "cursor: "),
            (format!("/v1/venues/0/keys/{key}/orders?cursor=now"), "cursor: "),
            ("/v1/venues?cursor=first".into(), "cursor: "),
        ] {
            let (status, answer) = send(server, "GET", &path, "", &[]);
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert_eq!(status, 400, "{path}: {answer}");
            assert!(message.contains(words), "{path}: {message:?} lacks {words:?}");
        }
    });
}

#[test]
fn a_chain_without_venues_says_so() {
    with_doors(loopback(), |server| {
        let owner = OWNER.address();
        let paths = [
            "/v1/venues".to_string(),
            "/v1/venues/0".into(),
            "/v1/venues/0/markets".into(),
            "/v1/venues/0/deposits".into(),
            "/v1/venues/0/settles".into(),
            "/v1/venues/0/proof".into(),
            format!("/v1/accounts/{owner}/deposits"),
            format!("/v1/accounts/{owner}/trading-keys"),
        ];
        for path in paths {
            let (status, answer) = send(server, "GET", &path, "", &[]);
            assert_eq!(status, 404, "{path}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("this chain has no venues of continuous markets"), "{path}: {message}");
        }
    });
}

#[test]
fn records_of_venues_are_proven_by_the_state_root_alone() {
    with_venues(|server| {
        let first = trader(TRADERS[0]).address();
        let state = get(server, &format!("/v1/accounts/{first}/proof"));
        let root: Digest = state["root"].as_str().and_then(|text| text.parse().ok()).expect("a root");
        let key = trading_key(70);
        let cases = [
            ("/v1/venues/0/proof".to_string(), VenueRecordId::Venue(0), true),
            ("/v1/venues/7/proof".into(), VenueRecordId::Venue(7), false),
            ("/v1/venues/0/markets/2/proof".into(), VenueRecordId::Market(0, 2), true),
            ("/v1/venues/0/markets/3/proof".into(), VenueRecordId::Market(0, 3), false),
            (
                format!("/v1/accounts/{first}/deposits/0/USD/proof"),
                VenueRecordId::Deposit((0, first, AssetId(0))),
                true,
            ),
            (
                format!("/v1/accounts/{first}/deposits/0/EUR/proof"),
                VenueRecordId::Deposit((0, first, AssetId(1))),
                false,
            ),
            (format!("/v1/venues/0/keys/{key}/proof"), VenueRecordId::Key((0, key)), true),
            (format!("/v1/venues/1/keys/{key}/proof"), VenueRecordId::Key((1, key)), false),
        ];
        for (path, id, is_there) in &cases {
            let body = get(server, path);
            assert_eq!(body["root"], root.to_string(), "{path}");
            let proof: VenueProof = borsh::from_slice(&bytes(&body["proof"])).expect("a proof");
            assert_eq!(proof.record.is_some(), *is_there, "{path}");
            let holds = |root: &Digest, id: &VenueRecordId| match id {
                VenueRecordId::Market(..) => proof.verify::<MarketTerms>(root, id).map(|found| found.is_some()),
                _ => proof.verify::<Anything>(root, id).map(|found| found.is_some()),
            };
            assert_eq!(holds(&root, id), Ok(*is_there), "{path}");
            assert!(holds(&Digest([9; 32]), id).is_err(), "{path} under another root");
            for (_, other, _) in
                cases.iter().filter(|(_, other, other_is_there)| other != id && (*is_there || *other_is_there))
            {
                assert!(holds(&root, other).is_err(), "{path} shows {other:?}");
            }
        }
    });
}

/// A record of whatever kind.
struct Anything;

impl borsh::BorshDeserialize for Anything {
    fn deserialize_reader<R: std::io::Read>(reader: &mut R) -> std::io::Result<Self> {
        reader.read_to_end(&mut Vec::new()).map(|_| Anything)
    }
}
