//! The measurement of mass ends measures them: as many offers end, and as many are cancelled, as were placed.

use bench::exchange::{BlockMode, ExchangeOptions, run};
use serde_json::Value;

const OFFERS: usize = 600;

#[test]
fn all_offers_of_a_mass_end_end_and_all_of_its_cancels_find_theirs() {
    let options = ExchangeOptions {
        accounts: vec![300],
        transactions: vec![200],
        blocks: 1,
        assets: 5,
        resting: 400,
        signed_transactions: 0,
        fill: None,
        pools: 0,
        ends: vec![OFFERS],
        modes: vec![BlockMode::Replay],
        fill_signed: false,
        fill_logged: false,
        threads: vec![2],
    };
    let directory = tempfile::tempdir().expect("a directory");
    let report = run(&options, directory.path(), &mut |_| {}).expect("runs");
    let rows = report["runs"][0]["ends"].as_array().expect("rows");
    let reasons: Vec<&Value> = rows.iter().map(|row| &row["why"]).collect();
    assert_eq!(reasons, ["last height", "timers of session keys"]);
    for row in rows {
        let count = |field: &str| row[field].as_u64().expect("a number") as usize;
        assert_eq!((count("ended"), count("cancelled")), (OFFERS, OFFERS), "{row}");
    }
}
