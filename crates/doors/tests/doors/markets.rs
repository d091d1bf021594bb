//! Markets as people read them: a book by level, the curves of a batch, its price in history and candles. Each is held
//! against what was placed and traded, counted here by hand.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{get, loopback, send, with_node};
use primitives::{AssetId, Body, ExactSide, Life, Operation, PublicKey, Sequence, Signature, Transaction};
use serde_json::{Value, json};

const SELLER: PublicKey = PublicKey([1; 32]);
const BUYER: PublicKey = PublicKey([2; 32]);

/// An offer; the base of all markets here is EUR, of ten-thousandths, and the quote USD, of hundredths.
fn offer(by: PublicKey, sequence: Sequence, sell: u32, amount: u64, limit: &str) -> Transaction {
    let operation = Operation::CreateOffer {
        sell: AssetId(sell),
        buy: AssetId(1 - sell),
        amount,
        limit: limit.parse().expect("a price"),
        life: Life::Rests,
        client: primitives::ClientId::NONE,
    };
    let body = Body { chain: 1, account: by.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, by, Signature([0; 64]))
}

fn node() -> Arc<Fake> {
    let mut genesis = Fake::genesis();
    genesis.balances.push((SELLER.address(), AssetId(1), 500_000_000));
    genesis.balances.push((BUYER.address(), AssetId(0), 5_000_000));
    Arc::new(Fake::of(genesis))
}

fn units(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("units: {value}"))
}

fn decimal(value: &Value) -> f64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("a decimal: {value}"))
}

/// A crossing pair of offers in one block: EUR for sale at 0.98 USD and above, bought at up to 1.02.
fn crossing(sequence: Sequence) -> [Transaction; 2] {
    [offer(SELLER, sequence, 1, 10_000_000, "0.0098"), offer(BUYER, sequence, 0, 100_000, "98")]
}

fn with_market(blocks: &[Vec<Transaction>], test: impl FnOnce(SocketAddr) + Send + 'static) {
    let node = node();
    blocks.iter().for_each(|block| node.commit(block));
    with_node(loopback(), node, test);
}

#[test]
fn a_book_sums_the_offers_of_a_limit_and_keeps_their_order() {
    let block = vec![
        offer(SELLER, 1, 1, 1_000_000, "0.0105"),
        offer(SELLER, 2, 1, 2_000_000, "0.0105"),
        offer(SELLER, 3, 1, 4_000_000, "0.011"),
        offer(BUYER, 1, 0, 50_000, "101"),
        offer(BUYER, 2, 0, 60_000, "102"),
    ];
    with_market(&[block], |server| {
        let book = get(server, "/v1/markets/EUR/USD/book");
        let side = |side: &str| {
            let levels = book[side].as_array().unwrap_or_else(|| panic!("{book}"));
            let level = |of: &Value| {
                (of["price"].as_str().expect("a price").to_string(), units(&of["amount"]), of["offers"].as_u64())
            };
            levels.iter().map(level).collect::<Vec<_>>()
        };
        assert_eq!(side("sells"), [("1.05".into(), 3_000_000, Some(2)), ("1.1".into(), 4_000_000, Some(1))]);
        // Who sells 50,000 hundredths of USD at 101 wants 5,050,000 ten-thousandths of EUR.
        let buys = side("buys");
        assert_eq!(
            buys.iter().map(|(_, amount, offers)| (*amount, *offers)).collect::<Vec<_>>(),
            [(5_050_000, Some(1)), (6_120_000, Some(1))]
        );
        for ((price, _, _), expected) in buys.iter().zip([100.0 / 101.0, 100.0 / 102.0]) {
            let price: f64 = price.parse().expect("a decimal");
            assert!((price / expected - 1.0).abs() < 1e-6, "{price} is {expected}");
        }
        assert!(book["price"].is_null() && book["price_height"].is_null(), "nobody traded: {book}");
        let one = get(server, "/v1/markets/EUR/USD/book?levels=1");
        assert_eq!((one["sells"].as_array().map(Vec::len), one["buys"].as_array().map(Vec::len)), (Some(1), Some(1)));
        // The same market from its other side.
        let turned = get(server, "/v1/markets/USD/EUR/book");
        assert_eq!(turned["buys"].as_array().map(Vec::len), Some(2));
        assert_eq!(decimal(&turned["sells"][0]["price_units"]), 101.0);
        let listed = &get(server, "/v1/markets")["markets"][0];
        assert_eq!((&listed["market"], &listed["offers"]), (&"EUR/USD".into(), &5.into()));
        assert_eq!((&listed["best_sell"], &listed["base_volume"]), (&"1.05".into(), &"0".into()));
        assert!((decimal(&listed["best_buy"]) / (100.0 / 101.0) - 1.0).abs() < 1e-6, "{listed}");
    });
}

#[test]
fn the_resting_offers_of_a_market_are_chosen_by_limit_and_listed_by_page() {
    let block: Vec<Transaction> =
        (1..=9).map(|number| offer(SELLER, number, 1, 1_000_000, &format!("0.01{number}"))).collect();
    with_market(&[block], |server| {
        let ids = |more: &str| {
            let page = get(server, &format!("/v1/markets/EUR/USD/offers?{more}"));
            let offers = page["offers"].as_array().expect("offers").clone();
            let id = |of: &Value| units(if of["id"].is_null() { &of["offer"]["id"] } else { &of["id"] });
            (offers.iter().map(id).collect::<Vec<_>>(), page["next"].as_str().map(str::to_string))
        };
        assert_eq!(ids("").0, (1..=9).collect::<Vec<_>>());
        assert_eq!(ids("from=0.013&to=0.016").0, [3, 4, 5, 6]);
        assert_eq!(ids("from=0.016&to=0.013").0, [] as [u64; 0], "an inverted range is an empty one");
        assert_eq!(ids("from=0.0135").0, [4, 5, 6, 7, 8, 9]);
        assert_eq!(ids("to=0.0111").0, [1]);
        let (first, next) = ids("limit=4&to=0.016");
        assert_eq!(first, [1, 2, 3, 4]);
        let (second, end) = ids(&format!("limit=4&to=0.016&cursor={}", next.expect("there are more")));
        assert_eq!((second, end), (vec![5, 6], None));
        let other_side = get(server, "/v1/markets/USD/EUR/offers");
        assert!(other_side["offers"].as_array().expect("offers").is_empty());
    });
}

#[test]
fn a_trade_is_in_history_candles_and_lists_at_one_price() {
    with_market(&[crossing(1).to_vec(), vec![], crossing(2).to_vec()], |server| {
        let history = get(server, "/v1/markets/EUR/USD/history");
        let points = history["points"].as_array().expect("points");
        let heights: Vec<u64> = points.iter().filter_map(|point| point["height"].as_u64()).collect();
        assert_eq!(heights, [1, 3], "oldest first, and none of a block without a trade");
        for point in points {
            assert!((0.98..=1.0 / 0.98).contains(&decimal(&point["price"])), "{point}");
            assert!(units(&point["base_volume"]) > 0, "{point}");
            // A unit of USD is a hundred units of EUR in the price of units.
            assert!((decimal(&point["price_units"]) * 100.0 / decimal(&point["price"]) - 1.0).abs() < 1e-9, "{point}");
        }
        assert_eq!(get(server, "/v1/markets/EUR/USD/history?before=3")["points"].as_array().map(Vec::len), Some(1));
        assert_eq!(get(server, "/v1/markets/EUR/USD/history?limit=1")["points"][0]["height"], 3, "the newest");
        let since = |time: &Value, more: &str| {
            let page = get(server, &format!("/v1/markets/EUR/USD/history?since_ms={time}{more}"));
            page["points"].as_array().expect("points").iter().filter_map(|of| of["height"].as_u64()).collect::<Vec<_>>()
        };
        let times = [&points[0]["time_ms"], &points[1]["time_ms"]];
        assert_eq!((since(times[0], "&limit=1"), since(times[0], "")), (vec![1], vec![1, 3]), "the first ones");
        assert_eq!((since(times[1], ""), since(&json!(u64::MAX), "")), (vec![3], vec![]));
        for interval in ["1m", "5m", "15m", "1h", "4h", "1d"] {
            let body = get(server, &format!("/v1/markets/EUR/USD/candles?interval={interval}"));
            let from = |time: u64| {
                let page = get(server, &format!("/v1/markets/EUR/USD/candles?interval={interval}&since_ms={time}"));
                page["candles"].clone()
            };
            let begins = body["candles"][0]["time_ms"].as_u64().expect("a time");
            assert_eq!((from(0), from(begins)), (body["candles"].clone(), body["candles"].clone()));
            assert_eq!(from(begins + 1), json!([]), "{interval}: it begins before");
            assert_eq!((&body["market"], &body["interval"]), (&"EUR/USD".into(), &interval.into()));
            let candle = &body["candles"][0];
            assert_eq!(body["candles"].as_array().map(Vec::len), Some(1), "the chain is three seconds old: {body}");
            assert_eq!((&candle["open"], &candle["close"]), (&points[0]["price"], &points[1]["price"]));
            let (low, high) = (decimal(&candle["low"]), decimal(&candle["high"]));
            assert!(points.iter().all(|point| (low..=high).contains(&decimal(&point["price"]))), "{candle}");
            let volume: u64 = points.iter().map(|point| units(&point["base_volume"])).sum();
            assert_eq!(units(&candle["base_volume"]), volume);
            assert_eq!(candle["complete"], false);
        }
        assert!(
            get(server, "/v1/markets/EUR/USD/candles?before_ms=0")["candles"].as_array().expect("a list").is_empty()
        );
        let listed = &get(server, "/v1/markets")["markets"][0];
        assert_eq!((&listed["price"], &listed["price_height"]), (&points[1]["price"], &3.into()));
        assert_eq!(units(&listed["base_volume"]), units(&points[1]["base_volume"]));
        let book = get(server, "/v1/markets/EUR/USD/book");
        assert_eq!((&book["price"], &book["price_height"]), (&points[1]["price"], &3.into()));
    });
}

#[test]
fn curves_show_what_was_for_sale_before_the_batch_traded() {
    with_market(&[crossing(1).to_vec()], |server| {
        let curves = get(server, "/v1/markets/EUR/USD/curves");
        let last = |side: &str| curves[side].as_array().and_then(|points| points.last().cloned()).expect("a point");
        assert_eq!(units(&last("supply")["amount"]), 10_000_000, "all that was for sale: {curves}");
        assert!((decimal(&last("supply")["price"]) / 0.98 - 1.0).abs() < 1e-9, "at the limit of its seller: {curves}");
        let demand = &curves["demand"][0];
        // 100,000 hundredths of USD at 98 ten-thousandths each.
        assert!(units(&demand["amount"]).abs_diff(9_800_000) <= 1, "{curves}");
        assert!((decimal(&demand["price"]) / (100.0 / 98.0) - 1.0).abs() < 1e-6, "{curves}");
        let (sold, bought) = (units(&curves["sold"]), units(&curves["bought"]));
        assert!(sold > 0 && sold <= 10_000_000 && bought > 0 && bought <= sold, "{curves}");
        assert_eq!(curves["price"], curves["indicative"], "it traded: {curves}");
        let coarse = get(server, "/v1/markets/EUR/USD/curves?points=0");
        assert!(coarse["supply"].as_array().is_some_and(|points| !points.is_empty()), "{coarse}");
    });
}

/// A market nobody has ever used has no row, and its pages are empty rather than wrong.
#[test]
fn a_market_without_offers_and_trades_is_empty() {
    with_market(&[vec![]], |server| {
        assert!(get(server, "/v1/markets")["markets"].as_array().expect("markets").is_empty());
        let book = get(server, "/v1/markets/EUR/USD/book");
        assert!(book["sells"].as_array().expect("a list").is_empty() && book["indicative"].is_null(), "{book}");
        for path in ["history", "candles"] {
            let body = get(server, &format!("/v1/markets/EUR/USD/{path}"));
            assert_eq!(body["market"], "EUR/USD");
            let list = body["points"].as_array().or(body["candles"].as_array()).expect("a list");
            assert!(list.is_empty(), "{body}");
        }
        let curves = get(server, "/v1/markets/EUR/USD/curves");
        assert_eq!((&curves["sold"], &curves["price"]), (&"0".into(), &Value::Null));
    });
}

/// A node with three assets: nobody sells JPY for USD, but somebody sells JPY for EUR, and EUR for USD.
fn node_of_three() -> Arc<Fake> {
    let mut genesis = Fake::genesis();
    let account = SELLER.address();
    genesis.assets.push(ledger::Listing::new("JPY", 4, account));
    genesis.balances.extend([1, 2].map(|asset| (account, AssetId(asset), 500_000_000)));
    genesis.balances.push((BUYER.address(), AssetId(0), 5_000_000));
    Arc::new(Fake::of(genesis))
}

fn pair_offer(by: PublicKey, sequence: Sequence, [sell, buy]: [u32; 2], amount: u64, limit: &str) -> Transaction {
    let (limit, life, client) = (limit.parse().expect("a price"), Life::Rests, primitives::ClientId::NONE);
    signed_by(
        by,
        sequence,
        Operation::CreateOffer { sell: AssetId(sell), buy: AssetId(buy), amount, limit, life, client },
    )
}

fn signed_by(by: PublicKey, sequence: Sequence, operation: Operation) -> Transaction {
    let body = Body { chain: 1, account: by.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, by, Signature([0; 64]))
}

/// The oracle is the ledger: the offer itself, placed alone in the next block.
#[test]
fn a_quote_is_what_the_next_batch_does_through_all_pairs() {
    let node = node_of_three();
    node.commit(&[
        pair_offer(SELLER, 1, [1, 0], 30_000_000, "0.0098"),
        pair_offer(SELLER, 2, [1, 0], 30_000_000, "0.0099"),
        pair_offer(SELLER, 3, [2, 1], 40_000_000, "0.98"),
        pair_offer(SELLER, 4, [2, 1], 40_000_000, "0.99"),
        pair_offer(BUYER, 1, [0, 1], 60_000, "90"),
    ]);
    let placed = node.clone();
    with_node(loopback(), node, move |server| {
        let asked = |[sell, buy]: [&str; 2], amount: u64, limit: &str| {
            get(server, &format!("/v1/quote?sell={sell}&buy={buy}&amount={amount}{limit}"))
        };
        let cases = [
            (["USD", "EUR"], [0, 1], 100_000, "95"),
            // Two assets in between would do, and nobody offers this pair.
            (["USD", "JPY"], [0, 2], 150_000, "90"),
            (["USD", "JPY"], [0, 2], 900_000, "95"),
            // Worse than the market: it rests.
            (["USD", "EUR"], [0, 1], 100_000, "140"),
        ];
        for (number, (symbols, pair, amount, limit)) in (2..).zip(cases) {
            let quote = asked(symbols, amount, &format!("&limit={limit}"));
            let id = pair_offer(BUYER, number, pair, amount, limit).id();
            placed.commit(&[pair_offer(BUYER, number, pair, amount, limit)]);
            let outcome = get(server, &format!("/v1/transactions/{id}"))["outcome"].clone();
            for field in ["sold", "bought", "left", "returned", "why"] {
                assert_eq!(quote[field], outcome[field], "{field} of {symbols:?}: {quote} {outcome}");
            }
        }
        let any = asked(["JPY", "USD"], 1_000_000, "");
        assert_eq!((units(&any["sold"]) + units(&any["left"]), &any["sell"]), (1_000_000, &json!("JPY")));
        assert!(decimal(&any["price"]) > 0.0 && decimal(&any["limit"]) > 0.0, "{any}");
    });
}

/// The oracle is the ledger: the exact order itself, alone in the next block.
#[test]
fn a_quote_of_an_exact_order_says_whether_there_is_room() {
    let node = node_of_three();
    // They cross by less than the commission: neither has to trade, and both may.
    node.commit(&[
        pair_offer(SELLER, 1, [1, 0], 300_000_000, "0.0099"),
        pair_offer(BUYER, 1, [0, 1], 600_000, "101.009"),
    ]);
    let placed = node.clone();
    with_node(loopback(), node, move |server| {
        // Two that there is room for, a bound beyond the rate, more than is for sale, and a pair without a price.
        let cases: [(_, _, [&str; 2], [u32; 2], _, _); 5] = [
            (2, ExactSide::Buy, ["USD", "EUR"], [0, 1], 10_000, 10_000),
            (3, ExactSide::Buy, ["USD", "EUR"], [0, 1], 90_000_000, 1_000_000),
            (4, ExactSide::Buy, ["USD", "EUR"], [0, 1], 1_000_000, 1),
            (5, ExactSide::Buy, ["USD", "EUR"], [0, 1], 310_000_000, 3_400_000),
            (6, ExactSide::Buy, ["USD", "JPY"], [0, 2], 1_000_000, 100_000),
        ];
        let mut met = std::collections::BTreeSet::new();
        for (number, side, [sell, buy], pair, units, bound) in cases {
            let exact = format!("exact={}&amount={units}&bound={bound}", side.name());
            let quote = get(server, &format!("/v1/quote?sell={sell}&buy={buy}&{exact}"));
            let [gives, gets] = pair.map(AssetId);
            let order = signed_by(BUYER, number, Operation::exact(gives, gets, side, units, bound));
            let id = order.id();
            placed.commit(&[order]);
            let outcome = get(server, &format!("/v1/transactions/{id}"))["outcome"].clone();
            for field in ["sold", "bought", "returned", "why"] {
                assert_eq!(quote[field], outcome[field], "{field} of {number}: {quote} {outcome}");
            }
            let asked = json!({"side": side.name(), "units": units.to_string(), "bound": bound.to_string()});
            assert_eq!((&quote["exact"], &quote["left"]), (&asked, &json!("0")));
            met.extend(quote["why"].as_str().map(str::to_string));
        }
        assert_eq!(met, ["beyond_bound", "filled", "no_price", "no_room"].map(String::from).into());
        for bad in ["exact=both&bound=1", "exact=buy", "bound=5", "exact=buy&bound=0", "exact=buy&bound=5&limit=1"] {
            let (status, body) =
                send(server, "GET", &format!("/v1/quote?sell=USD&buy=EUR&amount=1000000&{bad}"), "", &[]);
            assert_eq!(status, 400, "{bad}: {body}");
        }
        let (_, body) = send(server, "GET", "/v1/quote?sell=USD&buy=EUR&amount=1&exact=buy&bound=5", "", &[]);
        assert_eq!(body["error"]["code"], "exact_too_small");
    });
}

#[test]
fn a_quote_that_no_ledger_would_take_says_why() {
    with_market(&[crossing(1).to_vec()], |server| {
        let refused = |asked: &str| {
            let (status, body) = send(server, "GET", &format!("/v1/quote?{asked}"), "", &[]);
            (status, body["error"]["code"].as_str().unwrap_or_default().to_string())
        };
        assert_eq!(refused("sell=EUR&buy=USD&amount=1"), (400, "sells_too_little".into()));
        assert_eq!(refused("sell=EUR&buy=USD&amount=1000000&limit=0.00000001"), (400, "asks_too_little".into()));
        assert_eq!(refused("sell=EUR&buy=EUR&amount=1000000"), (404, "not_found".into()));
        assert_eq!(refused("sell=EUR&buy=XYZ&amount=1000000"), (404, "not_found".into()));
        for bad in ["amount=-5", "amount=1e6", "amount=18446744073709551616", "amount=5&limit=0", "limit=5"] {
            assert_eq!(refused(&format!("sell=EUR&buy=USD&{bad}")).0, 400, "{bad}");
        }
    });
}
