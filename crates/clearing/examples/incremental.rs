//! A changing book: offers come and go between batches, and each batch starts from the prices of the one before.
//!
//! A pair keeps its offers in runs, and each run stores the sum of its offers. A change sums up one run again; a
//! clearing costs what changed and what is near the rate, not the resting offers.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use clearing::workload::cycles;
use clearing::{Book, Offer, PairBook, Params, RUN, Run, RunError, Total, clear, verify};
use kernel::Dice;
use primitives::{Amount, AssetId, Price};

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", report(50_000, 6)?);
    Ok(())
}

/// Some offers of one pair, in execution order.
struct Chunk {
    limits: Vec<Price>,
    amounts: Vec<Amount>,
    /// Their sum; `None` after they have changed.
    total: Option<Total>,
}

/// The resting offers.
#[derive(Default)]
struct Resting {
    pairs: BTreeMap<(AssetId, AssetId), Vec<Chunk>>,
}

impl Resting {
    fn add(&mut self, offer: &Offer) {
        let chunks = self.pairs.entry((offer.sell, offer.buy)).or_default();
        // The last run that begins at or below the limit, or the first.
        let at = chunks.partition_point(|chunk| chunk.limits[0] <= offer.limit).saturating_sub(1);
        let Some(chunk) = chunks.get_mut(at) else {
            chunks.push(Chunk { limits: vec![offer.limit], amounts: vec![offer.amount], total: None });
            return;
        };
        let place = chunk.limits.partition_point(|limit| *limit <= offer.limit);
        chunk.limits.insert(place, offer.limit);
        chunk.amounts.insert(place, offer.amount);
        chunk.total = None;
        if chunk.limits.len() > 2 * RUN {
            let (limits, amounts) = (chunk.limits.split_off(RUN), chunk.amounts.split_off(RUN));
            chunks.insert(at + 1, Chunk { limits, amounts, total: None });
        }
    }

    /// Removes `units` from the offer at position `index` of a run; all of them to cancel it.
    fn reduce(&mut self, pair: (AssetId, AssetId), run: usize, index: usize, units: Amount) {
        let chunks = self.pairs.get_mut(&pair).expect("a pair that rests");
        let chunk = &mut chunks[run];
        chunk.amounts[index] -= units;
        chunk.total = None;
        if chunk.amounts[index] == 0 {
            chunk.limits.remove(index);
            chunk.amounts.remove(index);
        }
        if chunk.limits.is_empty() {
            chunks.remove(run);
        }
        if chunks.is_empty() {
            self.pairs.remove(&pair);
        }
    }

    /// Cancels one offer chosen at random.
    fn cancel(&mut self, random: &mut Dice) {
        let pair = *self.pairs.keys().nth(random.below(self.pairs.len() as u64) as usize).expect("offers rest");
        let run = random.below(self.pairs[&pair].len() as u64) as usize;
        let chunk = &self.pairs[&pair][run];
        let index = random.below(chunk.amounts.len() as u64) as usize;
        self.reduce(pair, run, index, chunk.amounts[index]);
    }

    /// Sums up the runs that have changed; returns the number of those runs, and of all runs.
    fn sum_up(&mut self) -> Result<(usize, usize), RunError> {
        let (mut changed, mut runs) = (0, 0);
        for chunk in self.pairs.values_mut().flatten() {
            runs += 1;
            if chunk.total.is_none() {
                changed += 1;
                chunk.total = Some(Total::of(&chunk.limits, &chunk.amounts)?);
            }
        }
        Ok((changed, runs))
    }

    /// The book for a clearing: it borrows the runs and their sums.
    fn book(&self, assets: u32) -> Book<'_> {
        let pairs = self.pairs.iter().map(|(&(sell, buy), chunks)| PairBook { sell, buy, runs: runs(chunks) });
        Book { assets, pairs: pairs.collect(), ..Book::default() }
    }
}

fn runs(chunks: &[Chunk]) -> Vec<Run<'_>> {
    let total = |chunk: &Chunk| chunk.total.expect("every run is summed up");
    chunks.iter().map(|chunk| Run { limits: &chunk.limits, amounts: &chunk.amounts, total: total(chunk) }).collect()
}

/// Clears `batches` batches of a book in which `offers` rest far from the rates. Each batch adds a 25th as many near
/// the rates, and cancels a thousandth as many. Each is cleared both from scratch and from the previous prices.
pub fn report(offers: usize, batches: usize) -> Result<String, Box<dyn Error>> {
    const ASSETS: u32 = 6;
    let params = Params::default();
    let drawn = cycles(ASSETS, offers + batches * offers / 25, 7);
    let (deep, near) = drawn.split_at(offers);
    let (mut resting, mut random) = (Resting::default(), Dice::new(7));
    for offer in deep {
        let limit = Price::from_f64(offer.limit.to_f64() * random.between(1.05, 1.5)).ok_or("a price out of range")?;
        resting.add(&Offer { limit, ..*offer });
    }
    resting.sum_up()?;
    let mut last: Option<Vec<Price>> = None;
    let mut said = String::from("batch  offers   runs  summed again  queries cold  queries warm  executed  full\n");
    for (batch, new) in (1..).zip(near.chunks(offers / 25)) {
        new.iter().for_each(|offer| resting.add(offer));
        (0..offers / 1_000).for_each(|_| resting.cancel(&mut random));
        let (changed, runs) = resting.sum_up()?;

        let book = resting.book(ASSETS);
        let cold = clear(&book, &params, None)?;
        let warm = clear(&book, &params, last.as_deref())?;
        let verified = verify(&book, &params, &warm)?;
        let [cold, from_last] = [&cold, &warm].map(|clearing| clearing.report.demand_queries);
        writeln!(
            said,
            "{batch:>5}  {:>6}  {runs:>5}  {changed:>12}  {cold:>12}  {from_last:>12}  {:>8}  {}",
            book.offers(),
            verified.executed,
            warm.full
        )?;

        // Executed offers leave the book, the last ones first, so that the positions of the others stay valid.
        let mut executed = Vec::new();
        for (pair, fills) in book.pairs.iter().zip(&verified.fills) {
            let rate = warm.rate(&params, pair.sell, pair.buy).ok_or("an asset without a price")?;
            let firsts: Vec<usize> =
                pair.runs.iter().scan(0, |next, run| Some(std::mem::replace(next, *next + run.limits.len()))).collect();
            for (index, sold, _) in fills.each(pair, &rate) {
                let run = firsts.partition_point(|first| *first <= index) - 1;
                executed.push(((pair.sell, pair.buy), run, index - firsts[run], sold));
            }
        }
        for (pair, run, index, sold) in executed.into_iter().rev() {
            resting.reduce(pair, run, index, sold);
        }
        last = Some(warm.valuations);
    }
    Ok(said)
}
