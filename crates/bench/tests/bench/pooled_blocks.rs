//! Blocks are measured with pools in the market: they trade, and a known batch of them is replayed.

use bench::exchange::{BlockMode, ExchangeOptions, run};

fn options(pools: usize, accounts: usize) -> ExchangeOptions {
    ExchangeOptions {
        accounts: vec![accounts],
        transactions: vec![400],
        blocks: 3,
        assets: 5,
        resting: 400,
        signed_transactions: 0,
        fill: None,
        pools,
        ends: Vec::new(),
        modes: BlockMode::ALL.to_vec(),
        fill_signed: false,
        fill_logged: false,
        threads: vec![1],
    }
}

#[test]
fn pools_trade_in_every_kind_of_block_and_offers_do_beside_them() {
    for pools in [0, 10] {
        let directory = tempfile::tempdir().expect("a directory");
        let report = run(&options(pools, 300), directory.path(), &mut |_| {}).expect("runs");
        let kinds = report["runs"][0]["sizes"][0]["runs"].as_array().expect("kinds");
        assert_eq!(kinds.len(), 6, "{report}");
        for kind in kinds {
            let count = |field: &str| kind[field].as_f64().expect("a count");
            assert_eq!(count("pool_fills") > 0.0, pools > 0, "{kind}");
            assert!(count("fills") > 0.0, "{kind}");
        }
    }
}

#[test]
fn pools_that_nobody_can_open_are_refused() {
    for (pools, accounts) in [(11, 300), (10, 12)] {
        let directory = tempfile::tempdir().expect("a directory");
        let error = run(&options(pools, accounts), directory.path(), &mut |_| {}).expect_err("too few");
        assert!(error.to_string().contains("give fewer"), "{error}");
    }
}
