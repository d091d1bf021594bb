//! Every claim of the registry is broken on purpose, in each way in which its shape can be wrong.
//!
//! Rows are made from the claim's columns and bounds: good ones, on which it holds, and wrong ones, on which it must
//! fail. What a run or a file of figures found is broken cell by cell ([`breaks`]).
//!
//! | shape | what is changed |
//! |---|---|
//! | rises, falls | reversed; all equal; one step back by more than the slack |
//! | steps | the last step too small, or too large |
//! | ratio, row over row, last over first, within | just below the least, just above the most |
//! | crosses | too early, too late, never, begun below |
//! | true | false |
//! | any, of some rows only | those rows are others |

use std::collections::BTreeMap;

use bench::paper::claim::{ClaimShape, ShapeClaim};
use bench::paper::exhibit::Paper;
use bench::paper::exhibits;
use serde_json::{Value, json};

/// Whether some change of one cell makes a claim fail that holds on these rows.
pub fn breaks(claim: &ShapeClaim, rows: &[Value]) -> bool {
    assert_eq!(claim.check(rows).holds, Some(true), "{}", claim.says);
    let wrong = [json!(-1e12), json!(0), json!(1e12), json!(false)];
    (0..rows.len()).any(|at| {
        claim.columns().into_iter().any(|column| {
            wrong.iter().any(|value| {
                let mut changed = rows.to_vec();
                changed[at][column] = value.clone();
                claim.check(&changed).holds == Some(false)
            })
        })
    })
}

/// A number between two others, or well above the least.
fn inside(least: f64, most: f64) -> f64 {
    if most.is_finite() { f64::midpoint(least, most) } else { 2.0 * least.abs() + 1.0 }
}

/// Numbers that are outside: a ratio is not negative.
fn outside(least: f64, most: f64, is_ratio: bool) -> Vec<(&'static str, f64)> {
    let margin = |bound: f64| bound.abs().max(1.0) * 1e-3;
    let below = (least.is_finite() && (!is_ratio || least > margin(least))).then(|| ("below", least - margin(least)));
    let above = most.is_finite().then(|| ("above", most + margin(most)));
    below.into_iter().chain(above).collect()
}

/// Rows on which a claim holds, and rows on which it fails, each named by what is wrong.
struct Broken {
    good: Vec<Value>,
    wrong: Vec<(&'static str, Vec<Value>)>,
}

/// Rows with these numbers in a column, each row named by a text in another.
fn column(name: &str, numbers: &[f64]) -> Vec<Value> {
    numbers.iter().map(|number| json!({ name: number })).collect()
}

/// Two rows found by their texts, and the ratio of their numbers.
fn pair(name: &str, at: [(&str, &str); 2], ratio: f64) -> Vec<Value> {
    let [(x, over), (y, under)] = at;
    vec![json!({ x: over, name: ratio }), json!({ y: under, name: 1.0 })]
}

/// The numbers that are wrong of a ratio, as rows.
fn ratios(least: f64, most: f64, rows: impl Fn(f64) -> Vec<Value>) -> Broken {
    let wrong = outside(least, most, true).into_iter().map(|(name, ratio)| (name, rows(ratio))).collect();
    Broken { good: rows(inside(least, most)), wrong }
}

fn direction(name: &str, good: [f64; 3], back: f64) -> Broken {
    let mut reversed = good;
    reversed.reverse();
    let wrong = [("reversed", reversed), ("equal", [2.0; 3]), ("a step back", [good[0], good[2], good[2] * back])];
    Broken { good: column(name, &good), wrong: wrong.map(|(wrong, numbers)| (wrong, column(name, &numbers))).into() }
}

fn crossing([x, falling, rising]: [&str; 3], least: f64, most: f64) -> Broken {
    let rows = |numbers: [(f64, f64, f64); 2]| {
        numbers.iter().map(|(at, falls, rises)| json!({ x: at, falling: falls, rising: rises })).collect::<Vec<_>>()
    };
    let crossed = |at: f64| rows([(at / 2.0, 2.0, 1.0), (at, 1.0, 2.0)]);
    let mut wrong: Vec<_> = outside(least, most, true).into_iter().map(|(name, at)| (name, crossed(at))).collect();
    wrong.push(("never", rows([(1.0, 3.0, 1.0), (2.0, 2.0, 1.0)])));
    wrong.push(("begun below", rows([(1.0, 1.0, 2.0), (inside(least, most), 1.0, 2.0)])));
    Broken { good: crossed(inside(least, most)), wrong }
}

fn broken(shape: ClaimShape) -> Broken {
    match shape {
        ClaimShape::Rises { column: name, slack } => direction(name, [1.0, 2.0, 5.0], 0.99 - slack),
        ClaimShape::Falls { column: name, slack } => direction(name, [5.0, 2.0, 1.0], 1.01 + slack),
        ClaimShape::Steps { column: name, least, most } => {
            let good = inside(least, most);
            ratios(least, most, |ratio| column(name, &[1.0, good, good * ratio]))
        }
        ClaimShape::LastOverFirst { column: name, least, most } => {
            ratios(least, most, |ratio| column(name, &[1.0, 7.0, ratio]))
        }
        ClaimShape::At { column: name, x, over, under, least, most } => {
            ratios(least, most, |ratio| pair(name, [(x, over), (x, under)], ratio))
        }
        ClaimShape::Rows { column: name, over, under, least, most } => {
            ratios(least, most, |ratio| pair(name, [("series", over), ("series", under)], ratio))
        }
        ClaimShape::RatioAtLeast { over, under, least } => {
            ratios(least, f64::INFINITY, |ratio| vec![json!({ over: ratio, under: 1.0 })])
        }
        ClaimShape::Within { column: name, least, most } => {
            let wrong = outside(least, most, false);
            let wrong = wrong.into_iter().map(|(wrong, number)| (wrong, column(name, &[number]))).collect();
            Broken { good: column(name, &[inside(least, most)]), wrong }
        }
        ClaimShape::Crosses { x, falling, rising, least, most } => crossing([x, falling, rising], least, most),
        ClaimShape::True(name) => {
            Broken { good: vec![json!({ name: true })], wrong: vec![("false", vec![json!({ name: false })])] }
        }
    }
}

/// The same rows with the texts that the claim asks for, or with others.
fn among(claim: &ShapeClaim, mut rows: Vec<Value>, is_asked: bool) -> Vec<Value> {
    for row in &mut rows {
        for (column, text) in claim.only {
            row[*column] = if is_asked { (*text).into() } else { "another".into() };
        }
    }
    rows
}

#[test]
fn every_claim_holds_on_good_rows_and_fails_however_its_rows_are_wrong() {
    let mut caught = BTreeMap::<&str, usize>::new();
    for exhibit in Paper::ALL.into_iter().flat_map(exhibits) {
        for claim in exhibit.claims {
            let name = format!("{}: {}", exhibit.file(), claim.says);
            let Broken { good, wrong } = broken(claim.shape);
            assert_eq!(claim.check(&among(claim, good.clone(), true)).holds, Some(true), "{name}: {good:?}");
            assert!(!wrong.is_empty(), "{name}: nothing breaks it");
            for (what, rows) in wrong {
                let rows = among(claim, rows, true);
                assert_eq!(claim.check(&rows).holds, Some(false), "{name}: {what}: {rows:?}");
                *caught.entry(what).or_default() += 1;
            }
            if !claim.only.is_empty() {
                assert_eq!(claim.check(&among(claim, good, false)).holds, None, "{name}: other rows are not its own");
                *caught.entry("other rows").or_default() += 1;
            }
        }
    }
    println!("{caught:?}");
    let ways = ["a step back", "above", "begun below", "below", "equal", "false", "never", "other rows", "reversed"];
    assert_eq!(caught.keys().copied().collect::<Vec<_>>(), ways, "each way was tried");
}

/// Words of the paper have their section, and no exhibit has our own claims alone.
#[test]
fn claims_of_four_papers_name_the_section_of_their_words() {
    let parts = ["§", "appendix ", "abstract: ", "title: ", "evaluation: ", "ours: "];
    for exhibit in Paper::ALL.into_iter().filter(|paper| *paper != Paper::Onyx).flat_map(exhibits) {
        let says = || exhibit.claims.iter().map(|claim| claim.says);
        let named = |says: &str| parts.iter().any(|part| says.starts_with(part)) && says.contains(": ");
        assert!(says().all(named), "{}: {:?}", exhibit.file(), says().find(|says| !named(says)));
        assert!(says().any(|says| !says.starts_with("ours")), "{}: the paper says nothing", exhibit.file());
    }
}
