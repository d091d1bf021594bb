//! Hard books: the number of full clearings by kind, and the obstacles of the others.

use std::collections::BTreeMap;
use std::time::Instant;

use ::clearing::{Market, Obstacle, Params, verify};
use serde_json::{Value, json};

use super::ProgressStep;
use super::sample::{milliseconds, ratio, spread};
use ::clearing::workload::{hard_kinds, hard_of_any_size};

/// The result of one book.
struct Outcome {
    seed: u64,
    offers: usize,
    milliseconds: f64,
    /// The obstacle to a full clearing; `None` if it is full.
    reason: Option<String>,
    utility: f64,
    /// Price vectors for which amounts were computed.
    tries: u32,
}

/// One row for each kind of book, one for all, and one for each book that is not full. A book may be of several kinds.
pub(super) fn run(books: usize, step: &mut ProgressStep) -> Vec<Value> {
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut outcomes = Vec::with_capacity(books);
    for seed in 0..books as u64 {
        step("hard books", seed as usize, books);
        let of = hard_kinds(seed);
        let plain = if of.is_empty() { &["none of them"][..] } else { &of };
        plain.iter().chain(&["all"]).for_each(|kind| kinds.entry(kind).or_default().push(seed as usize));
        outcomes.push(outcome(seed));
    }
    let rows = kinds.iter().map(|(kind, books)| row(kind, books.iter().map(|book| &outcomes[*book])));
    rows.chain(outcomes.iter().filter_map(not_full)).collect()
}

fn outcome(seed: u64) -> Outcome {
    let sorted = hard_of_any_size(seed);
    let (book, params) = (sorted.book(), Params::default());
    let begun = Instant::now();
    let market = Market::new(&book).expect("a proper book");
    let clearing = market.clear(&params, None).expect("proper parameters");
    let milliseconds = milliseconds(begun);
    verify(&book, &params, &clearing).expect("every clearing verifies");
    let reasons: Vec<String> = clearing.report.obstacles.iter().map(Obstacle::to_string).collect();
    Outcome {
        seed,
        offers: book.offers(),
        milliseconds,
        reason: (!clearing.full).then(|| reasons.join("; ")),
        utility: clearing.report.unrealized_utility_ratio,
        tries: clearing.report.spending.tries,
    }
}

fn row<'a>(kind: &str, outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> Value {
    let of = outcomes.clone().count();
    let full = outcomes.clone().filter(|outcome| outcome.reason.is_none()).count();
    let times: Vec<f64> = outcomes.clone().map(|outcome| outcome.milliseconds).collect();
    let tries: Vec<f64> = outcomes.clone().map(|outcome| f64::from(outcome.tries)).collect();
    let unexplained = outcomes.filter(|outcome| outcome.reason.as_ref().is_some_and(String::is_empty)).count();
    json!({
        "kind": kind, "verified": of, "of": of, "full": full, "not_full_with_reason": of - full - unexplained,
        "not_full_without": unexplained, "prepare_and_clear_ms": spread(&times), "amount_tries": spread(&tries),
    })
}

fn not_full(outcome: &Outcome) -> Option<Value> {
    let reason = outcome.reason.as_ref()?;
    Some(json!({
        "not_full": outcome.seed, "offers": outcome.offers, "kinds": hard_kinds(outcome.seed), "reason": reason,
        "unrealized_utility": ratio(outcome.utility), "ms": outcome.milliseconds,
    }))
}
