//! The programs in `examples/` run, and print the expected results.

#[path = "../examples/clear_file.rs"]
#[allow(dead_code)]
mod clear_file;
#[path = "../examples/explain.rs"]
#[allow(dead_code)]
mod explain;
#[path = "../examples/incremental.rs"]
#[allow(dead_code)]
mod incremental;
#[path = "../examples/own_solver.rs"]
#[allow(dead_code)]
mod own_solver;
#[path = "../examples/pools.rs"]
#[allow(dead_code)]
mod pools;

#[test]
fn a_file_is_cleared() {
    let said = clear_file::report(include_str!("../examples/offers.csv")).expect("a proper file");
    assert!(said.contains("16 offers of 5 assets; full: true"), "{said}");
    assert!(said.contains("EUR / USD") && said.contains("  1  1000000 EUR"), "{said}");
    // Nobody buys GBP.
    assert!(said.lines().last().is_some_and(|line| line.ends_with("no counterparty")), "{said}");
    let error = clear_file::report("sell,buy,amount,min_price\nA,B,x,1\n").expect_err("no amount");
    assert_eq!(error.to_string(), "line 2: invalid digit found in string");
}

#[test]
fn a_book_lives() {
    let said = incremental::report(50_000, 4).expect("batches clear");
    let rows: Vec<Vec<&str>> = said.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 4);
    // Runs far from the rate are not summed up again, and earlier prices save queries.
    let column = |row: usize, at: usize| rows[row][at].parse::<usize>().expect("a number");
    let sum = |at: usize| (1..4).map(|row| column(row, at)).sum::<usize>();
    assert!(3 * sum(3) < 2 * sum(2), "{said}");
    assert!(sum(5) < sum(4), "{said}");
    assert!(rows.iter().all(|row| row[7] == "true"), "{said}");
}

#[test]
fn a_solver_of_ones_own_is_held_against_ours() {
    let said = own_solver::report(6, 3_000, 1_000).expect("both clear");
    assert!(said.contains("this example") && said.contains("clear  "), "{said}");
}

#[test]
fn a_pool_trades() {
    let said = pools::report().expect("both clear");
    assert!(said.contains("The pool sells") && said.contains("pays"), "{said}");
}

#[test]
fn every_offer_is_explained() {
    let said = explain::report().expect("the book clears");
    let kinds = ["(full)", "(part, ", "(beyond rate)", "(rounding)", "(no counterparty)"];
    kinds.into_iter().for_each(|kind| assert!(said.contains(kind), "{kind} is not in {said}"));
}
