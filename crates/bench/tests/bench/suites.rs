//! The suites run, verify their clearings, and their rows contain what the documentation promises.

use bench::clearing::{ClearingOptions, Suite, run};
use clearing::workload::{hard_kinds, numeraires};
use serde_json::Value;

fn rows(suite: Suite, books: usize, most: usize) -> Vec<Value> {
    let mut steps = 0;
    let options = ClearingOptions { suite, books: Some(books), most, threads: 2, data: "none".into() };
    let report = run(&options, &mut |_, done, of| {
        assert!(done < of);
        steps += 1;
    });
    let report = report.expect("no file is read");
    assert!(steps > 0 && report["suite"].is_string() && report["books"] == books);
    report["rows"].as_array().expect("a list").clone()
}

#[test]
fn sizes_compare_both_solvers_cold_and_warm() {
    let rows = rows(Suite::Scaling, 2, 10_000);
    assert_eq!(rows.iter().map(|row| row["offers"].as_u64()).collect::<Vec<_>>(), [100, 1_000, 10_000].map(Some));
    for row in &rows[1..] {
        for solver in ["newton", "tatonnement"] {
            assert_eq!((&row[solver]["full"], &row[solver]["of"]), (&2.into(), &2.into()));
            for times in ["cold_ms", "warm_ms", "amounts_ms", "clear_ms"] {
                let [p50, worst] = ["p50", "worst"].map(|q| row[solver][times][q].as_f64().expect("a time"));
                assert!(0.0 < p50 && p50 <= worst, "{times}: {row}");
            }
        }
    }
}

#[test]
fn hard_books_are_counted_by_kind() {
    let rows = rows(Suite::Hard, 8, 0);
    let all = rows.iter().find(|row| row["kind"] == "all").expect("a row for all");
    assert_eq!((&all["of"], &all["verified"], &all["not_full_without"]), (&8.into(), &8.into(), &0.into()));
    let few = (0..8).filter(|seed| hard_kinds(*seed).contains(&"few limit prices")).count();
    let row = rows.iter().find(|row| row["kind"] == "few limit prices").expect("some are of this kind");
    assert_eq!(row["of"], few);
    let unfilled = rows.iter().filter(|row| row["not_full"].is_u64());
    assert_eq!(unfilled.count() as u64, all["not_full_with_reason"].as_u64().expect("a number"));
}

#[test]
fn books_are_the_same_on_any_number_of_threads_and_open_ones_are_named() {
    let rows = |threads| {
        let options =
            ClearingOptions { suite: Suite::Hostile, books: Some(300), most: 0, threads, data: "none".into() };
        let report = run(&options, &mut |_, _, _| {}).expect("no file is read");
        let rows = report["rows"].as_array().expect("a list").clone();
        rows.into_iter().filter(|row| row["shape"] != Value::Null && row["slowest"].is_null()).collect::<Vec<_>>()
    };
    let (one, three) = (rows(1), rows(3));
    let counts = |rows: &[Value]| -> Vec<Value> {
        let names = ["shape", "of", "full", "proved", "open", "open_seeds", "looks"];
        rows.iter().map(|row| names.iter().map(|name| row[*name].clone()).collect()).collect()
    };
    assert_eq!(counts(&one), counts(&three));
    let all = one.iter().find(|row| row["shape"] == "all").expect("a row for all");
    let of = |name: &str| all[name].as_u64().expect("a number");
    assert_eq!((of("of"), of("full") + of("proved") + of("open")), (300, 300));
    assert!(of("open") > 0 && all["open_seeds"].as_array().is_some_and(|seeds| !seeds.is_empty()));
}

#[test]
fn figure_2_has_a_row_for_every_mu_above_epsilon() {
    let rows = rows(Suite::Figure2, 1, 1_000);
    assert_eq!(rows.len(), 2 + 4 + 6 + 8);
    assert!(rows.iter().all(|row| row["newton"].is_u64() || row["newton"].is_null()));
    assert!(rows.iter().any(|row| row["newton"].is_u64()));
}

#[test]
fn every_asset_trades_against_its_own_numeraire() {
    for linked in [false, true] {
        let offers = numeraires(200, 7, 5_000, linked, 3);
        let among = offers.iter().filter(|offer| offer.sell.0.max(offer.buy.0) < 7).count();
        assert_eq!(among > 100, linked);
        for offer in offers.iter().filter(|offer| offer.sell.0.max(offer.buy.0) >= 7) {
            let (stock, numeraire) = (offer.sell.0.max(offer.buy.0), offer.sell.0.min(offer.buy.0));
            assert_eq!(numeraire, stock % 7);
        }
    }
}
