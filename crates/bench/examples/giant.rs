//! Scratch.
use bench::workload::*;
use clearing::*;
fn main() {
    let mut offers = cycles(5, 2000, 9);
    offers.push(Offer { amount: primitives::MAX_ISSUED / 2, ..offers[0] });
    println!("giant {:?}", offers[0]);
    let s = SortedOffers::new(5, &offers);
    let book = s.book();
    let m = Market::new(&book).unwrap();
    let p = m.prices(&Params::default(), None).unwrap();
    let o = offers[0];
    println!("{:?} rate/limit {}", p, p.valuations[o.sell.0 as usize].to_f64()/p.valuations[o.buy.0 as usize].to_f64()/o.limit.to_f64());
    let a = m.amounts(&Params::default(), &p.valuations).unwrap();
    println!("{:?}", a);
}
