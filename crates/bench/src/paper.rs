//! Tables, figures and headline numbers of the five papers: one registry, one command for each paper.
//!
//! An [`Exhibit`] has a kind, which says how its numbers come about: *measured* (this code on this machine),
//! *simulated* (the same code on one event queue), *Monte Carlo* (models of the paper, drawn again), *computed* (a
//! formula over costs) or *quoted*. It runs at two sizes, and has claims about the shape of its rows, which the program
//! checks: monotone, a ratio, a crossing. A claim that fails says so in the output with the numbers. Where one is known
//! not to hold, the exhibit says why ([`Exhibit::unmet`]); any other that fails makes the command fail, once everything
//! has run. What a small run or a busy machine decides by chance is not tested there ([`circumstances`]).
//!
//! With a folder, each exhibit writes `PAPER-ID.json` (rows, claims, what the paper says, and where it was taken:
//! commit, rules, processor, load before and after, arguments), `PAPER-ID.csv` and `PAPER-ID.svg`.
//!
//! Simulated figures of Onyx rest on validations, which run first: if one fails, the figure is withdrawn and says so.

mod accept;
mod block_stm;
pub mod chart;
pub mod circumstances;
pub mod claim;
pub mod document;
pub mod exhibit;
mod onyx;
pub(crate) mod picture;
pub(crate) mod provenance;
mod red_belly;
pub mod sheet;
mod speedex;

use std::path::Path;

use serde_json::{Value, json};

use self::chart::Chart;
use self::exhibit::{Exhibit, ExhibitRun, ExhibitSteps, Paper, PaperOptions};
use self::provenance::Provenance;

/// All exhibits of a paper, tables and figures first.
pub fn exhibits(paper: Paper) -> &'static [Exhibit] {
    match paper {
        Paper::Speedex => speedex::EXHIBITS,
        Paper::RedBelly => red_belly::EXHIBITS,
        Paper::BlockStm => block_stm::EXHIBITS,
        Paper::Accept => accept::EXHIBITS,
        Paper::Onyx => onyx::EXHIBITS,
    }
}

/// There is no such table or figure.
#[derive(Debug, thiserror::Error)]
#[error("{paper} has no {id}: `walras-lab bench {paper} --list` lists what there is")]
pub struct NoExhibit {
    paper: &'static str,
    id: String,
}

/// The tables and figures of these numbers, exhibits of these names, or all of a paper.
///
/// # Errors
/// If one does not exist.
pub fn chosen(
    paper: Paper,
    figures: &[u32],
    tables: &[u32],
    names: &[String],
    all: bool,
) -> Result<Vec<&'static Exhibit>, NoExhibit> {
    if all {
        return Ok(exhibits(paper).iter().collect());
    }
    let names = names.iter().cloned().chain(tables.iter().map(|number| format!("table-{number}")));
    let names = names.chain(figures.iter().map(|number| format!("figure-{number}")));
    names.map(|id| found(paper, &id).ok_or(NoExhibit { paper: paper.name(), id })).collect()
}

fn found(paper: Paper, id: &str) -> Option<&'static Exhibit> {
    exhibits(paper).iter().find(|exhibit| exhibit.id == id)
}

/// What there is, of one paper or of all.
pub fn list(papers: &[Paper]) -> Value {
    let rows = papers.iter().flat_map(|paper| exhibits(*paper)).map(Exhibit::described);
    json!({ "rows": rows.collect::<Vec<_>>() })
}

/// The validations that are asked for, and those that what is asked for rests on.
fn due(asked: &[&'static Exhibit]) -> Vec<&'static Exhibit> {
    let Some(first) = asked.first() else { return Vec::new() };
    let is_due = |validation: &&Exhibit| {
        let is_asked = asked.iter().any(|exhibit| exhibit.id == validation.id);
        validation.is_validation() && (is_asked || asked.iter().any(|one| one.rests_on.contains(&validation.id)))
    };
    exhibits(first.paper).iter().filter(is_due).collect()
}

/// Runs an exhibit, unless a validation failed and it rests on validations.
fn chart_of(exhibit: &Exhibit, options: &PaperOptions, failed: &[&str], say: &mut ExhibitSteps) -> Chart {
    if !failed.is_empty() && !exhibit.rests_on.is_empty() {
        return Chart::withdrawn(failed);
    }
    match exhibit.run {
        ExhibitRun::Drawn(draw) => draw(options),
        ExhibitRun::Run(run) => run(options, say).unwrap_or_else(|error| Chart::missing(&error.to_string())),
    }
}

/// Shows some exhibits of one paper, validations first; with a folder, writes three files for each.
///
/// # Errors
/// If a file cannot be written. An exhibit that cannot be shown, for want of data, says so in its place.
pub fn run(
    asked: &[&'static Exhibit],
    options: &PaperOptions,
    folder: Option<&Path>,
    say: &mut ExhibitSteps,
) -> std::io::Result<Value> {
    folder.map_or(Ok(()), std::fs::create_dir_all)?;
    let commit = provenance::commit();
    let validations = due(asked);
    let others = asked.iter().copied().filter(|exhibit| !exhibit.is_validation());
    let (mut shown, mut failed) = (Vec::new(), Vec::new());
    for exhibit in validations.into_iter().chain(others) {
        say(&format!("{} {}: {}", exhibit.paper.name(), exhibit.id, exhibit.title));
        let provenance = Provenance::begin();
        let chart = chart_of(exhibit, options, &failed, say);
        if chart.holds == Some(false) {
            failed.push(exhibit.id);
        }
        if !asked.iter().any(|one| one.id == exhibit.id) {
            continue;
        }
        let told = told(exhibit, &chart, provenance.end(exhibit, options, &commit));
        if let Some(folder) = folder {
            write(folder, exhibit, &chart, &told)?;
        }
        shown.push(told);
    }
    Ok(json!({ "size": options.size.name(), "seed": options.seed, "exhibits": shown }))
}

/// What became of the claims of a report.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClaimTally {
    /// How many hold.
    pub hold: usize,
    /// How many fail that are known to, each with its reason.
    pub known: usize,
    /// How many had too few numbers.
    pub untested: usize,
    /// The others that fail, each with its exhibit.
    pub fail: Vec<String>,
}

impl ClaimTally {
    /// Counts the claims of what [`run`] returned.
    pub fn of(report: &Value) -> ClaimTally {
        let mut tally = ClaimTally::default();
        for exhibit in report["exhibits"].as_array().into_iter().flatten() {
            for claim in exhibit["claims"].as_array().into_iter().flatten() {
                match claim["verdict"].as_str() {
                    Some("holds") => tally.hold += 1,
                    Some("fails") if claim.get("unmet").is_some() => tally.known += 1,
                    Some("fails") => {
                        let text = |of: &Value| of.as_str().unwrap_or_default().to_string();
                        tally.fail.push(format!("{}: {}", text(&exhibit["id"]), text(&claim["claim"])));
                    }
                    _ => tally.untested += 1,
                }
            }
        }
        tally
    }
}

/// What an exhibit shows.
fn told(exhibit: &Exhibit, chart: &Chart, provenance: Value) -> Value {
    let rows = chart.rows();
    json!({
        "paper": exhibit.paper.name(), "id": exhibit.id, "section": exhibit.section, "title": exhibit.title,
        "kind": exhibit.kind.name(), "method": chart.method, "columns": chart.columns,
        "claims": exhibit.judged(&rows, &provenance), "rows": rows, "holds": chart.holds,
        "the_paper_says": exhibit.paper_says(), "provenance": provenance,
    })
}

fn write(folder: &Path, exhibit: &Exhibit, chart: &Chart, told: &Value) -> std::io::Result<()> {
    let path = |kind: &str| folder.join(format!("{}.{kind}", exhibit.file()));
    let title = format!("{} {}: {} ({})", exhibit.paper.name(), exhibit.id, exhibit.title, exhibit.kind.name());
    std::fs::write(path("json"), format!("{told:#}\n"))?;
    std::fs::write(path("csv"), chart.csv(exhibit.kind.name()))?;
    let taken = provenance::line(&told["provenance"]);
    std::fs::write(path("svg"), picture::svg((&title, &taken), chart, exhibit.plot.as_ref(), exhibit.points))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_figures_are_withdrawn_if_a_validation_fails_and_say_so() {
        let options = PaperOptions::small();
        let find = |id: &str| found(Paper::Onyx, id).expect("an exhibit");
        let chart = chart_of(find("table-3"), &options, &["validation-d"], &mut |_| ());
        assert!(chart.table.is_empty() && chart.method.starts_with("withdrawn: in this run validation-d failed"));
        let chart = chart_of(find("table-4"), &options, &["validation-d"], &mut |_| ());
        assert!(!chart.table.is_empty(), "it rests on nothing simulated");
        assert!(!chart_of(find("table-3"), &options, &[], &mut |_| ()).table.is_empty());
        let ids = |asked: &[&'static Exhibit]| due(asked).iter().map(|exhibit| exhibit.id).collect::<Vec<_>>();
        assert_eq!(ids(&[find("figure-3")]), ["validation-a", "validation-b", "validation-c"]);
        assert_eq!(ids(&[find("validation-d"), find("figure-9")]), ["validation-d"]);
    }

    /// A number without a claim proves nothing.
    #[test]
    fn every_exhibit_with_numbers_has_a_claim_and_what_is_not_met_is_one() {
        for exhibit in Paper::ALL.into_iter().flat_map(exhibits) {
            let (id, is_quoted) = (exhibit.file(), exhibit.kind == exhibit::ExhibitKind::Quoted);
            assert!(is_quoted || !exhibit.claims.is_empty(), "{id} has no claim");
            for (says, why) in exhibit.unmet {
                let is_claim = exhibit.claims.iter().any(|claim| claim.says == *says);
                assert!(is_claim && !why.is_empty(), "{id} has no claim {says:?}");
            }
        }
    }

    #[test]
    fn claims_are_counted_and_only_those_that_should_hold_are_failures() {
        let claim = |verdict: &str| json!({ "claim": verdict, "verdict": verdict });
        let known = json!({ "claim": "it is fast", "verdict": "fails", "unmet": "it is not" });
        let claims = [claim("holds"), claim("fails"), claim("not tested"), known];
        let tally = ClaimTally::of(&json!({ "exhibits": [{ "id": "figure-1", "claims": claims }] }));
        let fail = vec!["figure-1: fails".into()];
        assert_eq!(tally, ClaimTally { hold: 1, known: 1, untested: 1, fail });
    }

    #[test]
    fn what_exhibits_rest_on_exists_and_ids_are_distinct() {
        for paper in Paper::ALL {
            for (at, exhibit) in exhibits(paper).iter().enumerate() {
                assert_eq!(exhibit.paper, paper);
                assert!(exhibit.rests_on.iter().all(|id| found(paper, id).is_some_and(Exhibit::is_validation)));
                assert!(exhibits(paper)[..at].iter().all(|other| other.id != exhibit.id), "{}", exhibit.id);
            }
        }
    }
}
