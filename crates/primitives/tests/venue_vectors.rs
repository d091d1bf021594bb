//! The vectors of venues in `docs/specification.md`. This test generates the file (`WALRAS_WRITE_VECTORS=1`) and
//! compares with it; a program in another language compares it with the text.

use std::path::Path;

use primitives::venue::{
    FillReport, FillTree, OrderLife, OrderNumber, SelfTradeRule, Settle, SettledFill, SettledOrder, VenueOrder,
    VenueSide, possession_bytes,
};
use primitives::{Address, Digest, SecretKey, to_hex};
use serde_json::{Value, json};

const NETWORK: Digest = Digest([0x4e; 32]);

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", to_hex(bytes))
}

fn encoded(value: &impl borsh::BorshSerialize) -> String {
    hex(&borsh::to_vec(value).expect("in memory"))
}

fn order_number(number: OrderNumber) -> Value {
    json!({"incarnation": number.incarnation, "day": number.day, "reference": number.reference})
}

fn order_of_a_venue(order: &SettledOrder, venue: u32) -> Value {
    let SettledOrder { key, order: of, signature } = order;
    json!({
        "key": key.to_string(),
        "market": of.market,
        "number": order_number(of.number),
        "floor": order_number(of.floor),
        "side": of.side as u8,
        "life": of.life as u8,
        "self_trade": of.self_trade as u8,
        "tick": of.tick,
        "lots": of.lots,
        "expiry": of.expiry.to_string(),
        "until_ms": of.until_ms.map(|until| until.to_string()),
        "fee_cap_ppm": of.fee_cap_ppm,
        "signing_bytes": hex(&of.signing_bytes(&NETWORK, venue)),
        "digest": of.digest(&NETWORK, venue, key).to_string(),
        "signature": signature.map(|signature| hex(&signature.0)),
    })
}

/// A settle of two fills, the tree after five such settles, and a report of the last fill.
fn venue_vector() -> Value {
    let (venue, incarnation, day) = (3, 2, 19_000);
    let number = |reference| OrderNumber { incarnation, day, reference };
    let order = |seed: u8, side, lots, life| {
        let (market, self_trade, until_ms) = (1, SelfTradeRule::ExpireBoth, (seed == 1).then_some(1_800_000_000_000));
        let (number, floor, tick, expiry, fee_cap_ppm) = (number(seed.into()), number(0), 50_000, 400, 1_000);
        let order =
            VenueOrder { market, number, floor, side, life, self_trade, tick, lots, expiry, until_ms, fee_cap_ppm };
        let signature = (seed != 3).then(|| key(seed).sign(&order.signing_bytes(&NETWORK, venue)));
        SettledOrder { key: key(seed).public(), order, signature }
    };
    let mut orders = vec![
        order(1, VenueSide::Buy, 7, OrderLife::FillOrKill),
        order(2, VenueSide::Sell, 9, OrderLife::Rests),
        order(3, VenueSide::Sell, 4, OrderLife::PostOnly),
    ];
    orders.sort_by_key(|order| (order.key, order.order.number));
    let at = |seed: u8| orders.iter().position(|order| order.key == key(seed).public()).expect("there") as u16;
    let fill = |sell, lots, fee_sell| SettledFill {
        buy: at(1),
        sell,
        lots,
        tick: 49_999,
        fee_buy: 12,
        fee_sell,
        taker: VenueSide::Buy,
    };
    let fills = vec![fill(at(2), 3, -2), fill(at(3), 4, 1)];
    let settle = Settle { venue, incarnation, from: 8, orders, fills };
    assert_eq!((settle.check(1 << 16), settle.verify(&NETWORK)), (Ok(()), Ok(())));
    let (leaves, mut tree) = (settle.leaves(&NETWORK), FillTree::default());
    let all: Vec<Digest> = (0..5).flat_map(|_| leaves.clone()).collect();
    assert!(all.iter().all(|leaf| tree.append(*leaf)));
    let report = FillReport::new(&NETWORK, (venue, incarnation, 9), leaves[1], Address([7; 20]), &key(9));
    let path = FillTree::path(&all, 5).expect("there");
    let digests = |all: &[Digest]| all.iter().map(Digest::to_string).collect::<Vec<_>>();
    json!({
        "network": NETWORK.to_string(),
        "venue": venue,
        "incarnation": incarnation,
        "from": settle.from.to_string(),
        "orders": settle.orders.iter().map(|order| order_of_a_venue(order, venue)).collect::<Vec<_>>(),
        "fills": settle.fills.iter().map(|fill| json!({
            "buy": fill.buy, "sell": fill.sell, "lots": fill.lots, "tick": fill.tick, "taker": fill.taker as u8,
            "fee_buy": fill.fee_buy.to_string(), "fee_sell": fill.fee_sell.to_string(),
        })).collect::<Vec<_>>(),
        "settle": encoded(&settle),
        "leaves": digests(&leaves),
        "tree": {"count": tree.count(), "peaks": digests(tree.peaks()), "bytes": encoded(&tree),
            "index": 5, "path": digests(&path)},
        "report": {"index": "9", "account": report.account.to_string(), "key": report.key.to_string(),
            "signing_bytes": hex(&report.signing_bytes(&NETWORK)), "signature": hex(&report.signature.0),
            "bytes": encoded(&report)},
        "possession": hex(&possession_bytes(&NETWORK, venue, &report.account, &report.key)),
    })
}

#[test]
fn the_vectors_of_venues_are_those_of_the_code() {
    let text = serde_json::to_string_pretty(&venue_vector()).expect("plain data") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/venue-vectors.json");
    if std::env::var_os("WALRAS_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let kept = std::fs::read_to_string(&path).expect("docs/venue-vectors.json");
    assert!(kept == text, "docs/venue-vectors.json differs: an encoding has changed, or the vectors have");
}
