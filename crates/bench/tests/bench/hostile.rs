//! The search for hostile blocks runs, and no proposer moves a price.

use bench::hostile::{HostileOptions, Row, basis_points, run};

const OPTIONS: HostileOptions = HostileOptions { transactions: 400, resting: 800, accounts: 1_000, tries: 6, seed: 3 };

#[test]
fn a_proposer_moves_no_price() {
    assert_eq!(basis_points(&OPTIONS), 0.0);
}

#[test]
fn the_worst_block_is_told_with_its_genes() {
    let report = run(&OPTIONS, &[Row { name: "ten assets", assets: 10, founded: 5 }], &mut |_| {});
    let row = &report["rows"][0];
    assert_eq!((row["row"].as_str(), row["tries"].as_u64()), (Some("ten assets"), Some(6)));
    for figure in ["ordinary_ms", "worst_ms", "ratio", "next_ordinary_ms", "next_ms", "next_ratio"] {
        assert!(row[figure].as_f64().is_some_and(|figure| figure > 0.0), "{figure}: {row}");
    }
    assert_eq!((&report["bar"], &report["proposer_moves_basis_points"]), (&2.0.into(), &0.0.into()));
    assert!(row["genes"].as_object().is_some_and(|genes| genes.len() == 17), "{row}");
}
