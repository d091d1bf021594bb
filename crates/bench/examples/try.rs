//! Scratch.
use bench::workload::cycle_book;
use clearing::*;
use std::time::Instant;
fn main() {
    let a: Vec<usize> = std::env::args().skip(1).take(3).map(|x| x.parse().unwrap()).collect();
    let (n, m, count) = (a[0], a[1], a[2]);
    let tat = std::env::args().nth(4).is_some_and(|x| x == "t");
    let verbose = std::env::args().nth(5).is_some();
    let params = Params { solver: if tat { Solver::Tatonnement } else { Solver::Newton }, ..Params::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut t = [vec![], vec![], vec![]];
    let mut retried = 0;
    let (mut full, mut it, mut q, mut worst, mut solved) = (0, 0, 0, 0, 0);
    pool.install(|| {
        for seed in 0..count as u64 {
            let s = cycle_book(n as u32, m, seed);
            let book = s.book();
            let t0 = Instant::now();
            let market = Market::new(&book).unwrap();
            let t1 = Instant::now();
            let p = market.prices(&params, None).unwrap();
            let t2 = Instant::now();
            let am = market.amounts(&params, &p.valuations).unwrap();
            let t3 = Instant::now();
            solved += p.solved as u32;
            let first = am.full;
            retried += !first as u32;
            let _ = am;
            let c = market.clear(&params, None).unwrap();
            if verbose && !first {
                println!("retried");
            }
            let v = verify(&book, &params, &c).unwrap();
            if verbose {
                println!(
                    "{seed} {:?} {:?} full {} it {} q {} imb {:.2e} util {:.5} {}",
                    t2 - t1,
                    t3 - t2,
                    c.full,
                    c.report.iterations,
                    c.report.demand_queries,
                    c.report.imbalance,
                    c.report.unrealized_utility_ratio,
                    v.executed
                );
            }
            full += c.full as u32;
            it += c.report.iterations;
            q += c.report.demand_queries;
            worst = worst.max(c.report.iterations);
            for (t, d) in t.iter_mut().zip([t1 - t0, t2 - t1, t3 - t2]) {
                t.push(d.as_secs_f64() * 1e3);
            }
        }
    });
    for t in &mut t {
        t.sort_by(f64::total_cmp);
    }
    let f = |t: &Vec<f64>| format!("{:.2}/{:.2}", t[t.len() / 2], t[t.len() - 1]);
    println!(
        "{n} {m}: retried {retried} full {full}/{count} solved {solved} it {:.1} worst {worst} q {:.1} | prep {} prices {} amounts {}",
        it as f64 / count as f64,
        q as f64 / count as f64,
        f(&t[0]),
        f(&t[1]),
        f(&t[2])
    );
}
