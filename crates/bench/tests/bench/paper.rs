//! The registry of papers: every figure and table has its row, the cheap ones run, claims fail on bad rows, and the
//! tables of the documentation are those of their data.

use std::path::{Path, PathBuf};

use bench::paper::document;
use bench::paper::exhibit::{Exhibit, ExhibitKind, Paper, PaperOptions};
use bench::paper::sheet::sheet;
use bench::paper::{chosen, exhibits, run};
use serde_json::Value;

use crate::mutations::breaks;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn shown(paper: Paper, names: &[&str], folder: Option<&Path>) -> Vec<Value> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
    let asked = chosen(paper, &[], &[], &names, false).expect("exhibits");
    let options = PaperOptions { threads: vec![1, 2], ..PaperOptions::small() };
    let report = run(&asked, &options, folder, &mut |_| ()).expect("files are written");
    report["exhibits"].as_array().expect("exhibits").clone()
}

#[test]
fn every_figure_and_table_with_data_is_in_the_registry() {
    let figures: [(Paper, &[u32], &[u32]); 5] = [
        // Figures 1 of SPEEDEX and of Smart Red Belly, and figures 2 and 3 of Accept, are drawings of the system.
        (Paper::Speedex, &[2, 3, 4, 5, 6, 7, 8, 9, 10], &[]),
        (Paper::RedBelly, &[3, 4, 5, 6, 7], &[1]),
        (Paper::BlockStm, &[1], &[]),
        (Paper::Accept, &[1], &[1, 2]),
        (Paper::Onyx, &[1, 2, 3, 5, 9, 13, 15, 31], &[1, 2, 3, 4]),
    ];
    for (paper, figures, tables) in figures {
        assert!(chosen(paper, figures, tables, &[], false).is_ok(), "{}", paper.name());
        let unknown = chosen(paper, &[99], &[], &[], false).err().expect("there is no figure 99").to_string();
        assert!(unknown.contains(&format!("walras-lab bench {} --list", paper.name())), "{unknown}");
    }
}

#[test]
fn every_exhibit_says_what_it_is_what_it_costs_and_what_must_hold() {
    for exhibit in Paper::ALL.into_iter().flat_map(exhibits) {
        let Exhibit { id, section, title, kind, seconds, says, claims, .. } = exhibit;
        let name = exhibit.file();
        assert!(!id.is_empty() && !section.is_empty() && !title.is_empty(), "{name}");
        let needs_time = !matches!(kind, ExhibitKind::Quoted | ExhibitKind::Computed);
        assert!(seconds.0 <= seconds.1 && (seconds.0 > 0 || !needs_time), "{name}: {seconds:?}");
        assert!(seconds.0 <= 60, "{name}: a small run ends within a minute");
        assert!(says.iter().all(|(what, value, at)| ![what, value, at].iter().any(|text| text.is_empty())), "{name}");
        if exhibit.paper != Paper::Onyx {
            assert!(!says.is_empty() && !claims.is_empty(), "{name}: what the paper says, and what must hold");
        }
        if let Some(plot) = exhibit.plot {
            assert!(!plot.x.is_empty() && !plot.y.is_empty() && !plot.by.contains(&plot.x), "{name}");
        }
    }
}

/// The exhibit that such a file or report is of.
fn exhibit_of(told: &Value) -> &'static Exhibit {
    let paper = Paper::ALL.into_iter().find(|paper| told["paper"] == paper.name()).expect("a paper");
    exhibits(paper).iter().find(|exhibit| told["id"] == exhibit.id).expect("an exhibit")
}

/// What a run of any exhibit contains: rows, a verdict for each claim, and where it was taken.
fn check(told: &Value) {
    let name = format!("{} {}", told["paper"], told["id"]);
    let rows = told["rows"].as_array().expect("rows");
    assert!(!rows.is_empty(), "{name}: {}", told["method"]);
    let columns: Vec<&str> = told["columns"].as_array().expect("columns").iter().filter_map(Value::as_str).collect();
    for column in &columns {
        let numbers = rows.iter().filter(|row| !row[*column].is_null());
        assert!(numbers.count() > 0, "{name}: the column {column} is empty: {rows:?}");
    }
    let exhibit = exhibit_of(told);
    for (claim, told) in exhibit.claims.iter().zip(told["claims"].as_array().expect("claims")) {
        let verdict = told["verdict"].as_str().expect("a verdict");
        assert!(["holds", "fails", "not tested"].contains(&verdict));
        assert!(verdict != "not tested" || told.get("untested").is_some(), "{name}: {told} on {rows:?}");
        assert!(verdict != "holds" || breaks(claim, rows), "{name}: {told}: nothing breaks it");
        let read = claim.columns();
        assert!(read.iter().all(|column| columns.contains(column)), "{name}: {read:?} of {columns:?}");
    }
    let provenance = &told["provenance"];
    assert_eq!(provenance["rules"], ledger::RULES_NEWEST);
    assert!(provenance["cores"].as_u64() > Some(0) && provenance["load_before"][0].is_number(), "{provenance}");
    assert!(provenance["command"].as_str().is_some_and(|command| command.starts_with("walras-lab bench ")));
    assert!(!provenance["commit"].as_str().expect("text").is_empty());
}

#[test]
fn cheap_exhibits_of_every_paper_run_and_every_claim_of_theirs_is_tested() {
    let folder = tempfile::tempdir().expect("a folder");
    let cheap: [(Paper, &[&str]); 5] = [
        (Paper::Speedex, &["figure-7", "section-7.1-orderbook", "section-7.1-payments", "appendix-i-filter"]),
        (Paper::RedBelly, &["figure-3-hash"]),
        (Paper::BlockStm, &["figure-1"]),
        (Paper::Accept, &["figure-1", "table-1", "section-4.1-bls", "section-4.2-spent", "section-3.3-trees"]),
        (Paper::Onyx, &["table-4", "figure-24"]),
    ];
    for (paper, names) in cheap {
        for told in shown(paper, names, Some(folder.path())) {
            check(&told);
            let id = told["id"].as_str().expect("text");
            let path = |kind: &str| folder.path().join(format!("{}-{id}.{kind}", paper.name()));
            let read = |kind: &str| std::fs::read_to_string(path(kind)).expect("a file");
            assert_eq!(serde_json::from_str::<Value>(&read("json")).expect("JSON"), told);
            assert!(read("svg").contains("</svg>") && read("csv").starts_with("# "), "{id}");
        }
    }
}

#[test]
fn whole_blocks_and_networks_run_small_and_every_claim_of_theirs_is_tested() {
    for told in shown(Paper::Speedex, &["figure-3", "figure-10"], None) {
        check(&told);
    }
    for told in shown(Paper::RedBelly, &["table-1"], None) {
        check(&told);
    }
}

#[test]
fn an_exhibit_without_its_data_says_so_and_no_claim_of_it_holds() {
    let asked = chosen(Paper::RedBelly, &[7], &[], &[], false).expect("an exhibit");
    let options = PaperOptions { data: "no/such/folder".into(), ..PaperOptions::small() };
    let report = run(&asked, &options, None, &mut |_| ()).expect("it is no error");
    let told = &report["exhibits"][0];
    let method = told["method"].as_str().expect("text");
    assert!(method.starts_with("not shown: no/such/folder/diablo") && method.contains("--data"), "{method}");
    let claims = told["claims"].as_array().expect("claims");
    assert!(!claims.is_empty() && claims.iter().all(|claim| claim["verdict"] == "not tested"), "{claims:?}");
}

#[test]
fn claims_of_the_registry_fail_on_rows_that_contradict_them() {
    let claims = |paper, id: &str| chosen(paper, &[], &[], &[id.into()], false).expect("an exhibit")[0].claims;
    let row = |threads: u64, rate: f64| serde_json::json!({ "transactions": 100, "threads": threads, "tx/s": rate });
    let scaling = &claims(Paper::Speedex, "section-7.1-payments")[0];
    assert_eq!(scaling.check(&[row(1, 100.0), row(2, 190.0)]).holds, Some(true));
    assert_eq!(scaling.check(&[row(1, 100.0), row(2, 90.0)]).holds, Some(false));
    let gain = |over: f64| serde_json::json!({ "measures": "all validate", "all over this": over });
    let table_1 = &claims(Paper::RedBelly, "table-1")[0];
    assert_eq!(table_1.check(&[gain(1.25)]).holds, Some(true));
    assert_eq!(table_1.check(&[gain(1.15)]).holds, Some(false), "31 % is the gain of large networks, 21 % of four");
    let day = |mean: Value| serde_json::json!({ "solver": "Tâtonnement", "unrealized mean, %": mean });
    let utility = &claims(Paper::Speedex, "section-6.2-days")[1];
    assert_eq!(utility.check(&[day(0.04.into())]).holds, Some(true));
    assert_eq!(utility.check(&[day("infinite".into())]).holds, Some(false), "a day on which nothing trades counts");
}

/// The first rules whose figures still stand.
const FIGURES_SINCE: u64 = 18;

/// Judges what `docs/figures` has by claims that were changed since, and makes the tables of the documentation anew:
/// rows stay as they were taken.
#[test]
#[ignore = "writes docs/figures and docs/benchmarks.md"]
fn judge_the_figures_again() {
    let (folder, page) = (root().join("docs/figures"), root().join("docs/benchmarks.md"));
    for exhibit in Paper::ALL.into_iter().flat_map(exhibits) {
        let (name, path) = (exhibit.file(), folder.join(format!("{}.json", exhibit.file())));
        let Ok(mut told) = document::read(&folder, &name) else { continue };
        let rows = told["rows"].as_array().expect("rows").clone();
        told["claims"] = exhibit.judged(&rows, &told["provenance"]).into();
        std::fs::write(path, format!("{told:#}\n")).expect("written");
    }
    let text = std::fs::read_to_string(&page).expect("the document");
    let made = document::with_tables(&text, &folder, "figures").expect("every table has its data");
    std::fs::write(page, made).expect("written");
    let made = sheet(&folder, "figures").expect("every exhibit has its data");
    std::fs::write(root().join("docs/exhibits.md"), made).expect("written");
}

#[test]
fn tables_of_the_documentation_are_those_of_their_data_under_these_rules() {
    let (folder, path) = (root().join("docs/figures"), root().join("docs/benchmarks.md"));
    let text = std::fs::read_to_string(&path).expect("the document");
    let made = document::with_tables(&text, &folder, "figures").expect("every table has its data");
    assert!(made == text, "a table of docs/benchmarks.md differs from its data: run `walras-lab bench document`");
    let page = std::fs::read_to_string(root().join("docs/exhibits.md")).expect("the sheet");
    let made = sheet(&folder, "figures").expect("every exhibit has its data");
    assert!(made == page, "run `walras-lab bench document --sheet docs/exhibits.md`");
    let all: Vec<String> = Paper::ALL.into_iter().flat_map(exhibits).map(Exhibit::file).collect();
    for name in &all {
        let told = document::read(&folder, name).expect("read before");
        let exhibit = exhibit_of(&told);
        let command = told["provenance"]["command"].as_str().expect("text");
        let remedy = format!("run `{command} --out docs/figures`, then `walras-lab bench document`");
        let rules = &told["provenance"]["rules"];
        let stands =
            rules.as_u64().is_some_and(|rules| (FIGURES_SINCE..=u64::from(ledger::RULES_NEWEST)).contains(&rules));
        assert!(!exhibit.paper.rests_on_rules() || stands, "{name} is of rules {rules}: {remedy}");
        let sentences: Vec<&str> = exhibit.claims.iter().map(|claim| claim.says).collect();
        let told_claims: Vec<&str> =
            told["claims"].as_array().expect("claims").iter().filter_map(|claim| claim["claim"].as_str()).collect();
        assert_eq!(sentences, told_claims, "{name} has other claims now: {remedy}");
        let rows = told["rows"].as_array().expect("rows");
        let verdicts = exhibit.judged(rows, &told["provenance"]);
        let holding = exhibit.claims.iter().zip(&verdicts).filter(|(_, verdict)| verdict["verdict"] == "holds");
        for (claim, _) in holding {
            assert!(breaks(claim, rows), "{name}: {}: nothing breaks it", claim.says);
        }
        assert_eq!(Value::from(verdicts), told["claims"], "{name}: what became of its claims is not what its rows say");
        assert!(folder.join(format!("{name}.svg")).exists(), "{name}: its picture is missing: {remedy}");
    }
    // Nothing lies about that is no exhibit.
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let (name, kind) = name.rsplit_once('.').expect("a kind");
        assert!(["json", "svg"].contains(&kind) && all.iter().any(|one| one == name), "{name}.{kind}");
    }
}
