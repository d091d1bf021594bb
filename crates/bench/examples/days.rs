//! Scratch.
use bench::daily::history;
use clearing::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let (n, spread): (usize, f64) = (a[0].parse().unwrap(), a[1].parse().unwrap());
    let tat = a.get(2).is_some_and(|x| x == "t");
    let verbose = a.get(3).is_some();
    let h = history(std::path::Path::new("/work/shared/data/coingecko"), 500).unwrap();
    let params = Params { solver: if tat { Solver::Tatonnement } else { Solver::Newton }, ..Params::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut t = [vec![], vec![], vec![]];
    let mut retried = 0;
    let (mut full, mut it, mut q, mut worst, mut solved, mut util) = (0, 0, 0, 0, 0, 0.0f64);
    let step: usize = if tat { 25 } else { 1 };
    let count = 500 / step;
    pool.install(|| {
        for day in (0..500).step_by(step) {
            let s = SortedOffers::new(h.symbols.len() as u32, &h.offers(day, n, spread, 1));
            let book = s.book();
            let t0 = Instant::now();
            let market = Market::new(&book).unwrap();
            let t1 = Instant::now();
            let p = market.prices(&params, None).unwrap();
            let t2 = Instant::now();
            let am = market.amounts(&params, &p.valuations).unwrap();
            let t3 = Instant::now();
            solved += p.solved as u32;
            retried += !am.full as u32;
            let _ = am;
            let c = market.clear(&params, None).unwrap();
            let v = verify(&book, &params, &c).unwrap();
            if verbose && (!c.full || t2 - t1 > std::time::Duration::from_millis(10)) {
                println!(
                    "{day} {:?} {:?} full {} it {} q {} imb {:.2e} util {:.5} {} {:?}",
                    t2 - t1,
                    t3 - t2,
                    c.full,
                    c.report.iterations,
                    c.report.demand_queries,
                    c.report.imbalance,
                    c.report.unrealized_utility_ratio,
                    v.executed,
                    c.report.obstacle
                );
            }
            full += c.full as u32;
            it += c.report.iterations;
            q += c.report.demand_queries;
            worst = worst.max(c.report.iterations);
            util += c.report.unrealized_utility_ratio;
            for (t, d) in t.iter_mut().zip([t1 - t0, t2 - t1, t3 - t2]) {
                t.push(d.as_secs_f64() * 1e3);
            }
        }
    });
    for t in &mut t {
        t.sort_by(f64::total_cmp);
    }
    let f = |t: &Vec<f64>| format!("{:.2}/{:.2}/{:.2}", t[t.len() / 2], t[t.len() * 99 / 100], t[t.len() - 1]);
    println!(
        "{n} {spread}: retried {retried} full {full}/{count} solved {solved} it {:.1} worst {worst} q {:.1} util {:.5} | prep {} prices {} amounts {}",
        it as f64 / count as f64,
        q as f64 / count as f64,
        util / count as f64,
        f(&t[0]),
        f(&t[1]),
        f(&t[2])
    );
}
