//! The vectors of venues in `docs/specification.md`. This test generates the file (`WALRAS_WRITE_VECTORS=1`) and
//! compares with it; a program in another language compares it with the text.

use std::path::Path;

use primitives::venue::{
    Contradicting, EndedIncarnation, FillReport, FillTree, KeyScope, ListEntry, Mandate, MarketMandate, MarketTerms,
    OrderLife, OrderList, OrderNumber, OrderSignature, ProvenEnd, SelfTradeRule, Settle, SettledFill, SettledOrder,
    SignedOrder, SignedReport, SignedStep, StepReport, UnsettledFill, VenueEvidence, VenueOperation, VenueOperator,
    VenueOrder, VenueReport, VenueSide, possession_bytes,
};
use primitives::{Address, AssetId, Body, Digest, Operation, SecretKey, to_hex};
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
        "signature": if let OrderSignature::Own(one) = signature { Some(hex(&one.0)) } else { None },
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
        let signed = SettledOrder::from(SignedOrder::sign(&NETWORK, venue, &key(seed), order));
        if seed == 3 { SettledOrder { signature: OrderSignature::Entered, ..signed } } else { signed }
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
        "step": step_vector(&settle, report.account),
        "operations": operations(&settle, report),
        "list": list_vector(&settle),
    })
}

/// A list of three orders, one of which replaces another, and each as a settle shows it.
fn list_vector(settle: &Settle) -> Value {
    let venue = settle.venue;
    let entry = |at: u32| {
        let of = settle.orders[0].order;
        let number = OrderNumber { reference: 30 + at, ..of.number };
        let replaces = (at == 1).then_some(of.number);
        ListEntry { order: VenueOrder { number, tick: 50_000 + at, life: OrderLife::Rests, ..of }, replaces }
    };
    let list = OrderList::sign(&NETWORK, venue, [0x51; 32], (0..3).map(entry).collect(), &key(1)).expect("plain");
    let checked = list.verify(&NETWORK, venue).expect("signed");
    let shown = |(place, entry): (usize, &ListEntry)| {
        let listed = checked.listed(place);
        let header = listed.header(venue, &entry.order);
        let signature = OrderSignature::Listed(Box::new(listed));
        let order = SettledOrder { key: list.key, order: entry.order, signature };
        let mut value = order_of_a_venue(&order, venue);
        let fields = value.as_object_mut().expect("an object");
        fields.insert("replaces".into(), json!(entry.replaces.map(order_number)));
        fields.insert("settled".into(), json!(encoded(&order)));
        fields.insert("header".into(), json!(hex(&header.signing_bytes(&NETWORK))));
        value
    };
    json!({
        "key": list.key.to_string(),
        "seed": hex(&list.seed),
        "signature": hex(&list.signature.0),
        "orders": list.entries.iter().enumerate().map(shown).collect::<Vec<_>>(),
        "refused": refused_lists(&list, venue),
    })
}

/// Lists that no venue takes: by their fields, and then by their signature.
fn refused_lists(list: &OrderList, venue: u32) -> Vec<Value> {
    let with = |change: &dyn Fn(&mut OrderList)| {
        let mut other = list.clone();
        change(&mut other);
        other
    };
    let of_others = |network: Digest, venue: u32, by: u8| {
        let signed = OrderList::sign(&network, venue, list.seed, list.entries.clone(), &key(by)).expect("plain");
        with(&|of| of.signature = signed.signature)
    };
    let spoiled = [
        ("no orders", with(&|of| of.entries.clear())),
        ("a tick of 0", with(&|of| of.entries[1].order.tick = 0)),
        ("a tick above 2,000,000,000", with(&|of| of.entries[1].order.tick = 2_000_000_001)),
        ("lots of 0", with(&|of| of.entries[2].order.lots = 0)),
        ("a fee cap above a million", with(&|of| of.entries[0].order.fee_cap_ppm = 1_000_001)),
        ("a floor above its number", with(&|of| of.entries[0].order.floor.reference = 31)),
        ("a number twice", with(&|of| of.entries[1].order.number = of.entries[0].order.number)),
        ("numbers that fall", with(&|of| of.entries.swap(0, 2))),
        ("another seed", with(&|of| of.seed[0] ^= 1)),
        ("another price", with(&|of| of.entries[2].order.tick += 1)),
        ("another replaced order", with(&|of| of.entries[2].replaces = of.entries[1].replaces)),
        ("no replaced order", with(&|of| of.entries[1].replaces = None)),
        ("one order fewer", with(&|of| of.entries.truncate(2))),
        ("a signature for another network", of_others(Digest([0x4f; 32]), venue, 1)),
        ("a signature for another venue", of_others(NETWORK, venue + 1, 1)),
        ("a signature of another key", of_others(NETWORK, venue, 2)),
    ];
    let refused = |(why, of): &(&str, OrderList)| {
        assert!(of.verify(&NETWORK, venue).is_err(), "{why}");
        json!({
            "why": why,
            "key": of.key.to_string(),
            "seed": hex(&of.seed),
            "signature": hex(&of.signature.0),
            "orders": of.entries.iter().map(|entry| listed_order(entry, of, venue)).collect::<Vec<_>>(),
        })
    };
    spoiled.iter().map(refused).collect()
}

/// The fields of an order of a list.
fn listed_order(entry: &ListEntry, list: &OrderList, venue: u32) -> Value {
    let order = SettledOrder { key: list.key, order: entry.order, signature: OrderSignature::Own(list.signature) };
    let mut value = order_of_a_venue(&order, venue);
    let fields = value.as_object_mut().expect("an object");
    fields.retain(|name, _| !["key", "signing_bytes", "digest", "signature"].contains(&name.as_str()));
    fields.insert("replaces".into(), json!(entry.replaces.map(order_number)));
    value
}

/// Leaves of a step of three fills, 7 to 9, which are those of the settle.
fn step_leaves(settle: &Settle, account: Address) -> Vec<(u64, Digest, Address)> {
    let leaves = settle.leaves(&NETWORK);
    let side = |at: u64, account| (7 + at, leaves[at as usize % 2], account);
    (0..3).flat_map(|at| [side(at, account), side(at, Address([8; 20]))]).collect()
}

fn step_of(settle: &Settle, leaves: &[(u64, Digest, Address)], clock_ms: u64) -> SignedStep {
    SignedStep::new(&NETWORK, (settle.venue, settle.incarnation), (41, clock_ms), leaves, &key(9))
}

/// A report of a step with its tree, and what must not be taken for one.
fn step_vector(settle: &Settle, account: Address) -> Value {
    let leaves = step_leaves(settle, account);
    let step = step_of(settle, &leaves, 1_800_000_000_456);
    let report = |place: usize| step.report(place, leaves[place]);
    // Its node is promoted once: the tree has six leaves.
    let told = report(4);
    let spoiled = |why: &str, spoil: &dyn Fn(&mut StepReport)| {
        let mut other = told.clone();
        spoil(&mut other);
        let bytes = VenueReport::Step(other).to_bytes();
        let is_taken = VenueReport::of_bytes(&bytes).is_ok_and(|report| report.is_signed(&NETWORK));
        assert!(!is_taken, "{why}");
        json!({"why": why, "bytes": hex(&bytes)})
    };
    let refused = vec![
        spoiled("another index", &|report| report.fill.index += 1),
        spoiled("another leaf", &|report| report.fill.leaf = settle.leaves(&NETWORK)[1]),
        spoiled("another account", &|report| report.fill.account = Address([8; 20])),
        spoiled("another venue", &|report| report.fill.venue += 1),
        spoiled("another incarnation", &|report| report.fill.incarnation += 1),
        spoiled("another step", &|report| report.step += 1),
        spoiled("another clock", &|report| report.clock_ms += 1),
        spoiled("another place", &|report| report.place = 5),
        spoiled("no place", &|report| report.place = 6),
        spoiled("another size with paths as long", &|report| report.size = 5),
        spoiled("another size", &|report| report.size = 8),
        spoiled("no size", &|report| report.size = 0),
        spoiled("a shorter path", &|report| report.path.truncate(1)),
        spoiled("a longer path", &|report| report.path.push(report.path[0])),
        spoiled("a path in another order", &|report| report.path.reverse()),
        spoiled("a node as the leaf", &|report| {
            report.fill.leaf = report.path[0];
            report.path.remove(0);
        }),
        spoiled("another key", &|report| report.key = key(8).public()),
        spoiled("another signature", &|report| report.signature.0[3] ^= 1),
    ];
    let header = told.header().expect("it fits");
    json!({
        "number": "41", "clock_ms": "1800000000456", "size": header.size, "root": header.root.to_string(),
        "leaves": leaves.iter().map(|(index, leaf, account)| {
            json!({"index": index.to_string(), "leaf": leaf.to_string(), "account": account.to_string()})
        }).collect::<Vec<_>>(),
        "signing_bytes": hex(&header.signing_bytes(&NETWORK)), "signature": hex(&told.signature.0),
        "reports": (0..leaves.len()).map(|at| hex(&VenueReport::Step(report(at)).to_bytes())).collect::<Vec<_>>(),
        "refused": refused,
    })
}

fn operator(number: u8) -> VenueOperator {
    VenueOperator { account: Address([number; 20]), report_key: key(number).public() }
}

fn operator_value(of: &VenueOperator) -> Value {
    json!({"account": of.account.to_string(), "report_key": of.report_key.to_string()})
}

/// An operation with its fields, its bytes, and the fees that it costs in a transaction that ends at height 100.
fn operation(operation: VenueOperation, fields: Value) -> Value {
    let mut value = fields;
    value["bytes"] = encoded(&operation).into();
    let operation = Operation::Venue(Box::new(operation));
    value["type"] = operation.row().action.into();
    let body = Body { chain: 1, account: Address([7; 20]), sequence: 1, until: 100, operation };
    assert_eq!(body.clone().sign(&NETWORK, &key(1)).check(), Ok(()));
    value["fees"] = body.weight().to_string().into();
    value
}

fn edits() -> Vec<Value> {
    let (venue, asset, units, bond) = (3, AssetId(1), 70_000, 1 << 40);
    let terms = MarketTerms {
        base: AssetId(1),
        quote: AssetId(0),
        lot_units: 10,
        tick_units: 2,
        lots_max: 1_000_000,
        fee_cap_ppm: 2_000,
        penalty: 5,
    };
    let listed = json!({"venue": venue, "market": 1, "base": 1, "quote": 0, "lot_units": "10", "tick_units": "2",
        "lots_max": 1_000_000, "fee_cap_ppm": 2_000, "penalty": "5"});
    let (public, fee_cap_ppm) = (key(4).public(), 1_500);
    let markets = vec![
        MarketMandate { market: 0, tick_min: 1, tick_max: 90 },
        MarketMandate { market: 1, tick_min: 40_000, tick_max: 60_000 },
    ];
    let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(AssetId(0), 5_000_000), (AssetId(1), 0)] };
    let account = Address([7; 20]);
    let possession = key(4).sign(&possession_bytes(&NETWORK, venue, &account, &public));
    let allowed = json!({"venue": venue, "key": public.to_string(), "possession": hex(&possession.0),
        "account": account.to_string(), "scope": "venue", "caps": [[0, "5000000"], [1, "0"]],
        "markets": [[0, 1, 90], [1, 40_000, 60_000]]});
    let floor = OrderNumber { incarnation: 2, day: 19_000, reference: 8 };
    let opened = json!({"venue": venue, "operator": operator_value(&operator(5)), "fee_cap_ppm": fee_cap_ppm,
        "bond": bond.to_string()});
    let changed = json!({"venue": venue, "from": operator_value(&operator(5)), "to": operator_value(&operator(6))});
    let of_units = || json!({"venue": venue, "units": units.to_string()});
    let of_asset = || json!({"venue": venue, "asset": 1, "units": units.to_string()});
    let (from, to) = (operator(5), operator(6));
    vec![
        operation(VenueOperation::Open { venue, operator: from, fee_cap_ppm, bond }, opened),
        operation(VenueOperation::List { venue, market: 1, terms }, listed),
        operation(VenueOperation::Fence { venue, incarnation: 2 }, json!({"venue": venue, "incarnation": 2})),
        operation(VenueOperation::ChangeOperator { venue, from, to }, changed),
        operation(VenueOperation::Bond { venue, units }, of_units()),
        operation(VenueOperation::Unbond { venue, units }, of_units()),
        operation(VenueOperation::Deposit { venue, asset, units }, of_asset()),
        operation(VenueOperation::Collect { venue, asset, units }, of_asset()),
        operation(
            VenueOperation::Recall { venue, asset, account },
            json!({"venue": venue, "asset": 1, "holder": account.to_string()}),
        ),
        operation(VenueOperation::Authorize { venue, key: public, mandate, possession }, allowed),
        operation(VenueOperation::Revoke { venue, key: public }, json!({"venue": venue, "key": public.to_string()})),
        operation(
            VenueOperation::RaiseFloor { venue, key: public, floor },
            json!({"venue": venue, "key": public.to_string(), "floor": order_number(floor)}),
        ),
    ]
}

/// A settle, an accusation by the tree of an ended incarnation, one by two reports, and a claim.
fn operations(settle: &Settle, report: FillReport) -> Vec<Value> {
    let (venue, leaves) = (settle.venue, settle.leaves(&NETWORK));
    let mut tree = FillTree::default();
    assert!(tree.append(leaves[0]) && tree.append(leaves[1]));
    let report_keys = vec![report.key, key(8).public()];
    let (height, time_ms) = (77, 1_800_000_000_123);
    let ended = EndedIncarnation { incarnation: report.incarnation, tree, report_keys, height, time_ms };
    let end = ProvenEnd { ended, path: vec![leaves[0], leaves[1]] };
    let lie = FillReport::new(&NETWORK, (venue, 2, 1), Digest([6; 32]), report.account, &key(9));
    let path = vec![leaves[0]];
    let by_tree = VenueEvidence {
        report: lie,
        contradicting: Contradicting::Tree(leaves[1], path.clone()),
        ended: Some(end.clone()),
    };
    let other = FillReport::new(&NETWORK, (venue, 2, 1), Digest([8; 32]), report.account, &key(8));
    let by_reports = VenueEvidence { report: lie, contradicting: Contradicting::Report(other), ended: None };
    let signed = |order: &SettledOrder| {
        let seed = if order.order.side == VenueSide::Buy { 1 } else { 2 };
        SettledOrder::from(SignedOrder::sign(&NETWORK, venue, &key(seed), order.order))
    };
    let fill = SettledFill { buy: 0, sell: 1, ..settle.fills[0] };
    let [buy, sell] = [settle.fills[0].buy, settle.fills[0].sell].map(|at| signed(&settle.orders[usize::from(at)]));
    let claim = UnsettledFill { report, ended: end.clone(), buy: buy.clone(), sell: sell.clone(), fill };
    let account = report.account;
    let steps = [40, 41].map(|clock_ms| step_of(settle, &step_leaves(settle, account), clock_ms));
    let lies = [(1, Digest([6; 32]), Address([8; 20])), (1, Digest([6; 32]), account)];
    let lied = step_of(settle, &lies, 40).report(1, lies[1]);
    let by_step = VenueEvidence {
        report: VenueReport::Step(lied.clone()),
        contradicting: Contradicting::Tree(leaves[1], path.clone()),
        ended: Some(end.clone()),
    };
    let mut twice = steps.map(|step| VenueReport::Step(step.report(2, step_leaves(settle, account)[2])));
    twice.sort_by_key(SignedReport::rank);
    let [first, second] = twice;
    let by_steps =
        VenueEvidence { report: first.clone(), contradicting: Contradicting::Report(second.clone()), ended: None };
    let told = [(9, leaves[0], account), (9, leaves[0], Address([8; 20]))];
    let told = step_of(settle, &told, 40).report(0, told[0]);
    let step_claim =
        UnsettledFill { report: told.clone(), ended: end.clone(), buy: buy.clone(), sell: sell.clone(), fill };
    let hexed = |report: &FillReport| encoded(report);
    let end_value = json!({"incarnation": 2, "tree": encoded(&end.ended.tree), "height": "77",
        "report_keys": end.ended.report_keys.iter().map(|key| key.to_string()).collect::<Vec<_>>(),
        "time_ms": "1800000000123", "path": end.path.iter().map(Digest::to_string).collect::<Vec<_>>(),
        "leaf": end.ended.leaf(venue).to_string()});
    let tree_value = json!({"report": hexed(&lie), "leaf": leaves[1].to_string(), "path": [leaves[0].to_string()],
        "ended": end_value.clone(), "venue": venue});
    let reports_value = json!({"report": hexed(&lie), "other": hexed(&other), "venue": venue});
    let claim_value = json!({"report": hexed(&report), "ended": end_value.clone(), "buy": encoded(&buy),
        "sell": encoded(&sell), "fill": encoded(&fill), "venue": venue});
    let step_value = json!({"report": encoded(&by_step.report), "leaf": leaves[1].to_string(),
        "path": [leaves[0].to_string()], "ended": end_value.clone(), "venue": venue});
    let steps_value = json!({"report": encoded(&first), "other": encoded(&second), "venue": venue});
    let step_claim_value = json!({"report": encoded(&told), "ended": end_value.clone(), "buy": encoded(&buy),
        "sell": encoded(&sell), "fill": encoded(&fill), "venue": venue});
    let mut all = edits();
    all.extend([
        operation(VenueOperation::Settle(settle.clone()), json!({})),
        operation(VenueOperation::Accuse(Box::new(by_tree)), tree_value),
        operation(VenueOperation::Accuse(Box::new(by_reports)), reports_value),
        operation(VenueOperation::Claim(Box::new(claim)), claim_value),
        operation(VenueOperation::AccuseStep(Box::new(by_step)), step_value),
        operation(VenueOperation::AccuseStep(Box::new(by_steps)), steps_value),
        operation(VenueOperation::ClaimStep(Box::new(step_claim)), step_claim_value),
    ]);
    all
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
