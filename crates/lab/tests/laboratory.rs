//! The laboratory's command line from the outside: seeds, measurements, tables of papers and of documents.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_walras-lab"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn good(output: std::io::Result<Output>) -> String {
    let output = output.expect("walras-lab runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn bad(output: std::io::Result<Output>, code: i32) -> String {
    let output = output.expect("walras-lab runs");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{} {message}", text(&output.stdout));
    message
}

fn json(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[test]
fn a_seed_is_replayed_to_the_same_trace() {
    let sim = |arguments: &[&str]| lab().args(["sim", "--blocks", "5"]).args(arguments).output();
    let all = json(&good(sim(&["--seeds", "3", "--json"])));
    assert_eq!((&all["seeds"], &all["failures"]), (&3.into(), &Value::Array(vec![])));
    assert!(all["acknowledged"].as_u64() > Some(0), "{all}");
    let trace = all["traces"][2]["trace"].as_str().expect("a trace");
    assert!(good(sim(&["--seed", "2"])).contains(trace));
    assert!(bad(sim(&["--seed", "2", "--seeds", "3"]), 2).contains("--seeds"));
    assert!(bad(sim(&["--seeds", "0"]), 1).contains("nothing to run"));
}

#[test]
fn sim_edge_runs_seeds_and_counts_what_happened() {
    let report = json(&good(lab().args(["sim", "--edge", "--seeds", "2", "--json"]).output()));
    assert_eq!((&report["seeds"], &report["failures"]), (&2.into(), &serde_json::json!([])));
    assert!(report["shown"].as_u64() > Some(1_000), "{report}");
}

#[test]
fn tables_of_papers_are_listed_written_and_put_into_documents() {
    let list = json(&good(lab().args(["bench", "--list", "--json"]).output()));
    let rows = list["rows"].as_array().expect("rows");
    for paper in ["speedex", "red-belly", "block-stm", "accept", "onyx"] {
        assert!(rows.iter().any(|row| row["paper"] == paper && row["seconds_full"].is_u64()), "{paper}");
    }
    assert!(good(lab().args(["bench", "accept", "--list"]).output()).contains("accept table-2"));
    bad(lab().args(["bench", "onyx"]).output(), 2);
    let disordered = bad(lab().args(["bench", "onyx", "--table", "4", "--threads", "2,1"]).output(), 1);
    assert!(disordered.contains("ascending"), "{disordered}");
    let missing = bad(lab().args(["bench", "speedex", "--figure", "99"]).output(), 1);
    assert!(missing.contains("speedex has no figure-99"), "{missing}");

    let folder = TempDir::new().expect("a folder");
    let run = |arguments: &[&str]| lab().args(["bench"]).args(arguments).current_dir(folder.path()).output();
    let shown = good(run(&["onyx", "--table", "4", "--out", "figures"]));
    assert!(shown.contains("claim: two hedges need three times the proxies: HOLDS: 3"), "{shown}");
    let document = folder.path().join("page.md");
    std::fs::write(&document, "<!-- exhibit onyx-table-4 -->\n<!-- end of exhibit -->\n").expect("written");
    let arguments = ["document", "page.md", "--figures", "figures"];
    let check = [&arguments[..], &["--check"]].concat();
    assert!(bad(run(&check), 1).contains("differs from its data"));
    good(run(&arguments));
    good(run(&check));
    let page = std::fs::read_to_string(&document).expect("the page");
    assert!(page.contains("| 1,000 | 110 | 330 | 112.2 |"), "{page}");
    std::fs::write(&document, page.replace("112.2", "99.9")).expect("written");
    bad(run(&check), 1);
}
