//! Real days clear: every tenth of the last 500, if the data is present.

use std::path::PathBuf;

use bench::clearing::{ClearingOptions, Suite, run};
use bench::daily::history;
use clearing::{Params, SortedOffers, clear, verify};

/// The folder of daily prices; `None`, with a message on standard error, if there is none.
fn folder() -> Option<PathBuf> {
    let root = std::env::var_os("WALRAS_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")));
    let folder = root.join("coingecko");
    let there = folder.is_dir();
    if !there {
        eprintln!("{} is absent: nothing was tested; set WALRAS_DATA", folder.display());
    }
    there.then_some(folder)
}

#[test]
fn real_days_are_solved() {
    let Some(folder) = folder() else { return };
    let history = history(&folder, 500).expect("daily prices");
    assert_eq!((history.symbols.len(), history.days.len()), (50, 500));
    assert_eq!(history.days[499].date, "2021-12-08");
    let mut last = None;
    for day in (0..500).step_by(10) {
        let sorted = SortedOffers::new(50, &history.offers(day, 10_000, 0.02, 1));
        let (book, params) = (sorted.book(), Params::default());
        let clearing = clear(&book, &params, last.as_deref()).expect("a proper book");
        let date = &history.days[day].date;
        verify(&book, &params, &clearing).unwrap_or_else(|violation| panic!("{date}: {violation}"));
        assert!(clearing.full, "{date}: {:?}", clearing.report);
        last = Some(clearing.valuations);
    }
}

#[test]
fn carried_over_days_are_solved_by_both() {
    let Some(folder) = folder() else { return };
    let options = ClearingOptions { suite: Suite::Coingecko, books: Some(6), most: 0, threads: 1, data: folder };
    let report = run(&options, &mut |_, _, _| {}).expect("daily prices");
    let row = &report["rows"][0];
    assert_eq!((&row["days"], &row["newton"]["full"], &row["newton"]["of"]), (&6.into(), &6.into(), &6.into()));
    assert_eq!(row["tatonnement"]["of"], 6);
    // Some of six times 30,000 rest, but not all.
    let most = row["offers_at_most"].as_u64().expect("a number");
    assert!((40_000..150_000).contains(&most), "{most} offers at most");
    assert!(row["newton"]["unrealized_utility_worst"].as_f64().expect("a number") < 0.01);
}
