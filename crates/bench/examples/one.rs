//! Scratch.
use bench::workload::*;
use clearing::*;
fn main() {
    let a: Vec<usize> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let s = cycle_book(a[0] as u32, a[1], a[2] as u64);
    let book = s.book();
    let m = Market::new(&book).unwrap();
    let p = m.prices(&Params::default(), None).unwrap();
    let am = m.amounts(&Params::default(), &p.valuations).unwrap();
    println!("{:?} {:?}", p.solved, am.short);
    for (i, pair) in book.pairs.iter().enumerate() {
        let r = p.valuations[pair.sell.0 as usize].to_f64() / p.valuations[pair.buy.0 as usize].to_f64();
        println!(
            "{} {} sold {} offers {:?}",
            pair.sell,
            pair.buy,
            am.sold[i],
            pair.limits.iter().zip(pair.amounts).map(|(l, a)| (1e6 * (l.to_f64() / r - 1.0), *a)).collect::<Vec<_>>()
        );
    }
}
