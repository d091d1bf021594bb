//! SPEEDEX §6.2: a batch a day, drawn from real prices and volumes, the book carried over.
//!
//! 30,000 new offers a day with limits within 2 % of that day's rates; before they arrive, 3,000 resting offers are
//! cancelled. Both solvers clear the same books from the same earlier prices; what Newton's clearing leaves over
//! rests. The paper does not say how close "close to the real-world exchange rate" is, nor how long offers rest.

use std::time::Instant;

use ::clearing::{Clearing, Market, Offer, Params, SortedOffers, verify};
use kernel::Dice;
use primitives::Price;
use serde_json::{Value, json};

use super::ProgressStep;
use super::sample::{SOLVERS, Sample, add, milliseconds, spread};
use crate::daily::History;

const NEW: usize = 30_000;
const CANCELS: usize = 3_000;
const SPREAD: f64 = 0.02;
/// The paper's timeout; a day that Tâtonnement solves within it counts as quick.
const QUICK_MS: f64 = 2_000.0;

/// One row over all days.
pub(super) fn run(history: &History, step: &mut ProgressStep) -> Vec<Value> {
    let days = history.days.len();
    let mut random = Dice::new(1);
    let mut resting: Vec<Offer> = Vec::new();
    let mut last = vec![Price::ONE; history.symbols.len()];
    let mut samples = [Sample::default(), Sample::default()];
    let (mut sum_up_ms, mut prepare_ms, mut quick, mut most) = (Vec::new(), Vec::new(), 0, 0);
    for day in 0..days {
        step("days", day, days);
        cancel(&mut resting, &mut random);
        resting.extend(history.offers(day, NEW, SPREAD, 1));
        most = most.max(resting.len());
        let sorted = SortedOffers::new(history.symbols.len() as u32, &resting);
        let begun = Instant::now();
        let book = sorted.book();
        sum_up_ms.push(milliseconds(begun));
        let begun = Instant::now();
        let market = Market::new(&book).expect("a proper book");
        prepare_ms.push(milliseconds(begun));
        let [newton, tatonnement] = SOLVERS.map(|solver| Params { solver, ..Params::default() });
        let clearing = samples[0].clear(&book, &market, &newton, Some(&last));
        samples[0].prices(&market, &newton, None);
        let theirs = samples[1].clear(&book, &market, &tatonnement, Some(&last));
        quick += usize::from(theirs.full && samples[1].last_ms() <= QUICK_MS);
        resting = settled(&resting, &sorted, &newton, &clearing);
        last = clearing.valuations;
    }
    let mut row = json!({
        "days": days, "offers_at_most": most, "sum_up_ms": spread(&sum_up_ms), "prepare_ms": spread(&prepare_ms),
        "tatonnement_full_within_2s": quick,
    });
    add(&mut row, &samples);
    vec![row]
}

/// Removes randomly chosen offers.
fn cancel(resting: &mut Vec<Offer>, random: &mut Dice) {
    for _ in 0..CANCELS.min(resting.len() / 2) {
        let at = random.below(resting.len() as u64) as usize;
        resting.swap_remove(at);
    }
}

/// The offers that rest after the fills of a clearing are removed.
fn settled(offers: &[Offer], sorted: &SortedOffers, params: &Params, clearing: &Clearing) -> Vec<Offer> {
    let book = sorted.book();
    verify(&book, params, clearing).expect("every clearing verifies");
    let mut left = offers.to_vec();
    clearing.fills(&book, sorted, params).for_each(|fill| left[fill.row as usize].amount -= fill.sold);
    left.retain(|offer| offer.amount > 0);
    left
}
