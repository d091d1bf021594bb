//! Figures of prices: the fewest offers, the convex program, real days.

use serde_json::{Value, json};

use crate::clearing::{ClearingOptions, Suite, run};
use crate::paper::chart::Chart;
use crate::paper::exhibit::{ExhibitError, ExhibitSteps, PaperOptions, listed};

fn measured(
    of: &PaperOptions,
    suite: Suite,
    (books, most): (usize, usize),
    say: &mut ExhibitSteps,
) -> Result<Vec<Value>, ExhibitError> {
    say(suite.name());
    let options = ClearingOptions { suite, books: Some(books), most, threads: 1, data: of.data.join("coingecko") };
    listed(&run(&options, &mut |_, _, _| ())?, "rows")
}

pub(super) fn figure_2(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let (books, most) = options.pick((1, 1_600), (5, 200_000));
    let mut rows = measured(options, Suite::Figure2, (books, most), say)?;
    for row in &mut rows {
        let bits = row["mu"].as_str().and_then(|mu| mu.strip_prefix("2^-")?.parse::<u32>().ok());
        row["bits"] = bits.into();
        for solver in ["newton", "tatonnement"] {
            if row[solver].is_null() {
                row[solver] = format!("over {most}").into();
            }
        }
    }
    let columns = [
        ("ε", "/epsilon"),
        ("-log2 μ", "/bits"),
        ("Newton", "/newton"),
        ("Tâtonnement", "/tatonnement"),
        ("Newton stopped", "/newton_stopped"),
        ("Tâtonnement stopped", "/tatonnement_stopped"),
    ];
    let method = format!(
        "50 assets, {books} book(s) of each number, doubling from 50 to {most}, one thread, amounts included; a number \
         counts only if all larger ones do, and `stopped` names the largest that does not, with the reason"
    );
    Ok(Chart::of(&method, &columns, &rows))
}

pub(super) fn figure_8(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let (books, most) = options.pick((1, 1_000), (5, 5_000));
    let rows = measured(options, Suite::Figure8, (books, most), say)?;
    let both = rows.iter().flat_map(|row| {
        [("convex program", "/convex_program_ms/p50"), ("ours", "/clear_ms/p50")].map(|(solver, at)| {
            let is_theirs = solver == "convex program";
            let from_200 = row["offers"].as_u64() >= Some(200) && is_theirs;
            json!({
                "assets": row["assets"], "offers": row["offers"], "solver": solver, "ms": row.pointer(at),
                "convex": row.pointer(at).filter(|_| is_theirs),
                "ours_at_200": row.pointer("/clear_ms/p50").filter(|_| from_200),
                "solved": row[if is_theirs { "solved" } else { "full" }], "books": row["books"],
            })
        })
    });
    let columns = [
        ("assets", "/assets"),
        ("offers", "/offers"),
        ("solver", "/solver"),
        ("ms", "/ms"),
        ("solved", "/solved"),
        ("books", "/books"),
        ("convex ms", "/convex"),
        ("ours at 200 ms", "/ours_at_200"),
    ];
    let method = "one thread, medians: Clarabel on the program of Devanur, Garg and Végh (the paper: ECOS through \
                  CVXPY), its set-up included, and our clearing, amounts included";
    Ok(Chart::of(method, &columns, &both.collect::<Vec<_>>()))
}

pub(super) fn days(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let count = options.pick(3, 500);
    let rows = measured(options, Suite::Coingecko, (count, 0), say)?;
    let row = rows.first().ok_or("there are no days")?;
    let solver = |(name, field): (&str, &str)| {
        let figures = &row[field];
        let percent = |value: &Value| match value.as_f64() {
            Some(share) => json!(100.0 * share),
            None => value.clone(),
        };
        let full = figures["full"].as_f64().unwrap_or(0.0) / figures["of"].as_f64().unwrap_or(1.0);
        json!({
            "solver": name, "days": figures["of"], "full": 100.0 * full,
            "mean": percent(&figures["unrealized_utility_mean"]),
            "worst": percent(&figures["unrealized_utility_worst"]),
            "p50": figures["clear_ms"]["p50"], "p99": figures["clear_ms"]["p99"],
        })
    };
    let both = [("Newton", "newton"), ("Tâtonnement", "tatonnement")].map(solver);
    let columns = [
        ("solver", "/solver"),
        ("days", "/days"),
        ("full, %", "/full"),
        ("unrealized mean, %", "/mean"),
        ("unrealized worst, %", "/worst"),
        ("clear p50 ms", "/p50"),
        ("clear p99 ms", "/p99"),
    ];
    let method = "30,000 new offers a day within 2 % of the day's rates, 3,000 cancelled, the rest carried over; both \
                  solvers on the same book from the same prices, one thread";
    Ok(Chart::of(method, &columns, &both))
}
