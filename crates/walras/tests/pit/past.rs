//! What a venue tells of the past: trades of its market, the last one, and the day; also after a kill.

use serde_json::Value;

use super::{Market, agent};

/// All trades of the market, page by page, and the market itself.
pub(crate) fn told(market: &Market) -> (Vec<Value>, Value) {
    let get = |path: &str| -> Value {
        let mut answer = agent().get(format!("{}/v1/venue/markets{path}", market.venue)).call().expect("it answers");
        answer.body_mut().read_json().expect("JSON")
    };
    let (mut trades, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&format!("/0/trades?limit=7{cursor}"));
        trades.extend(page["trades"].as_array().expect("trades").clone());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (trades, get("")["markets"][0].clone()),
        }
    }
}

/// There are so many trades, the newest first, and the market's figures are theirs.
pub(crate) fn is_whole(market: &Market, count: u64) -> (Vec<Value>, Value) {
    let (trades, shown) = told(market);
    let indices: Vec<&str> = trades.iter().map(|trade| trade["index"].as_str().expect("an index")).collect();
    assert_eq!(indices, (0..count).rev().map(|at| at.to_string()).collect::<Vec<_>>());
    let oldest = trades.last().expect("trades");
    assert_eq!((&oldest["tick"], &oldest["lots"], &oldest["side"]), (&110.into(), &15.into(), &"buy".into()));
    assert_eq!((&shown["last"], &shown["day"]["trades"]), (&trades[0]["tick"], &count.into()), "{shown}");
    assert_eq!((&shown["day"]["open"], &shown["day"]["complete"]), (&110.into(), &true.into()), "{shown}");
    (trades, shown)
}

/// The past is what the journal tells, with the times of its steps.
pub(crate) fn is_as_before(market: &Market, (trades, shown): &(Vec<Value>, Value)) {
    let (again, now) = told(market);
    assert_eq!((&again, &now["last"], &now["day"]), (trades, &shown["last"], &shown["day"]));
}
