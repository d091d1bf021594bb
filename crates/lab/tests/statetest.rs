//! `walras-lab statetest` from the outside, on tests whose roots were computed by other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/statetest")
}

fn statetest(path: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_walras-lab"));
    command.args(["statetest", "--json", "--threads", "3"]).arg(path).output().expect("walras-lab runs")
}

#[test]
fn published_roots_hold_sequentially_and_by_block_stm() {
    let output = statetest(&fixtures());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["passed"], 12);
    assert_eq!(report["unsupported"]["rules of London: the chain begins with Cancun"], 1);
    let blocks = &report["block_stm"];
    assert_eq!((&blocks["transactions"], &blocks["transactions_of_one_state"]), (&12.into(), &12.into()));
    assert!(report["switches"].as_array().is_some_and(|switches| !switches.is_empty()));
}

/// A different root fails its case, in both ways of running it, and the exit code says so.
#[test]
fn another_root_is_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(fixtures().join("payments.json")).expect("the fixture");
    let tests: Value = serde_json::from_str(&text).expect("JSON");
    let root = tests["payments"]["post"]["Prague"][1]["hash"].as_str().expect("a hash");
    let other = format!("{}00", &root[..64]);
    let path = folder.path().join("payments.json");
    std::fs::write(&path, text.replace(root, &other)).expect("written");
    let output = statetest(&path);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let failed: Vec<&str> =
        report["failed"].as_array().expect("a list").iter().filter_map(|f| f["case"].as_str()).collect();
    // The root is in three forks, and each case is judged twice.
    assert_eq!((failed.len(), report["passed"].as_u64()), (6, Some(9)), "{failed:?}");
    assert!(failed.contains(&"payments Prague [1 0 0]"), "{failed:?}");
    std::fs::write(&path, "[]").expect("written");
    let output = statetest(&path);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("payments.json"));
}
