//! Scratch.
use bench::workload::cycle_book;
use clearing::*;
use std::time::Instant;
fn main() {
    let a: Vec<usize> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (n, m, count) = (a[0], a[1], a[2]);
    for seed in 0..count as u64 {
        let s = cycle_book(n as u32, m, seed);
        let book = s.book();
        let t = Instant::now();
        let c = clear(&book, &Params::default(), None).unwrap();
        let t1 = t.elapsed();
        let v = verify(&book, &Params::default(), &c);
        println!("{seed} {:?} full {} it {} q {} imb {:.2e} util {:.5} {} {:?}", t1, c.full, c.report.iterations, c.report.demand_queries, c.report.imbalance, c.report.unrealized_utility_ratio, match v { Ok(v) => format!("ok {}", v.executed), Err(e) => e.to_string() }, c.report.obstacle);
    }
}
