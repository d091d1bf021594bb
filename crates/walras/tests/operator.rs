//! What an operator asks, as processes: a node's status and peers, the settings of a home, and a doctor's findings.

// The other tests use the rest of it.
#[allow(dead_code)]
mod process;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use process::{Process, walras};
use serde_json::Value;
use tempfile::TempDir;

/// A network of one validator, which makes blocks without traffic.
fn home(folder: &Path) -> PathBuf {
    let network = folder.join("network");
    let init = "init --json --validators 1 --asset USD:2 --supply 1000 --stake 500 --fee 0 --home";
    let output = walras().args(init.split_whitespace()).arg(&network).output().expect("walras runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    network.join("validator-0")
}

fn run(arguments: &[&str], home: &Path) -> Output {
    walras().args(arguments).arg("--home").arg(home).output().expect("walras runs")
}

fn ask(arguments: &[&str], node: &Process) -> Output {
    walras().args(arguments).args(["--server", &node.server]).output().expect("walras runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

fn said(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    out + &errors
}

/// The grades of a doctor's findings about a subject.
fn grades(findings: &Value, subject: &str) -> Vec<String> {
    let all = findings["findings"].as_array().expect("findings").iter();
    let of = all.filter(|of| of["subject"] == subject);
    of.map(|of| of["grade"].as_str().expect("text").to_string()).collect()
}

#[test]
fn an_operator_sees_how_a_node_stands_and_what_to_mend() {
    let folder = TempDir::new().expect("a folder");
    let home = home(folder.path());
    let before = run(&["doctor", "--json"], &home);
    assert_eq!(grades(&json(&before), "settings"), ["ok"], "{}", said(&before));

    let node = Process::start(&home, &[("WALRAS_NETWORK__LISTEN", "127.0.0.1:0")]);
    let status = ask(&["status", "--json"], &node);
    assert!(status.status.success() && json(&status)["unready"].is_null(), "{}", said(&status));
    assert_eq!(json(&status)["validator"]["me"], 0);
    let words = said(&ask(&["status"], &node));
    assert!(words.starts_with("ready\n") && words.contains("validator 0 of epoch 0"), "{words}");
    let peers = ask(&["peers"], &node);
    assert!(peers.status.success() && said(&peers).contains("this one"), "{}", said(&peers));

    let server = ["doctor", "--json", "--server", &node.server];
    let found = json(&run(&server, &home));
    for subject in ["keys", "node", "network", "peers"] {
        assert_eq!(grades(&found, subject), ["ok"], "{subject}: {found}");
    }
    // A key that others can read must be mended; so must a home of another network.
    let key = home.join("validator-key.json");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("set");
    let found = run(&server, &home);
    assert_eq!((found.status.code(), grades(&json(&found), "keys")), (Some(1), vec!["bad".to_string()]));
    let other = folder.path().join("other");
    let made = walras().args(["init", "--json", "--asset", "EUR:2", "--home"]).arg(&other).output().expect("runs");
    assert!(made.status.success(), "{}", said(&made));
    assert_eq!(grades(&json(&run(&server, &other)), "network"), ["bad"]);
}

#[test]
fn settings_are_checked_and_printed_without_a_node() {
    let folder = TempDir::new().expect("a folder");
    let home = home(folder.path());
    let sound = run(&["config", "check"], &home);
    assert!(sound.status.success() && said(&sound).contains("the settings are sound"), "{}", said(&sound));

    // What is printed is a configuration, with everything in it.
    let printed = run(&["config", "print"], &home);
    std::fs::write(home.join("walras.toml"), &printed.stdout).expect("written");
    assert_eq!(run(&["config", "print"], &home).stdout, printed.stdout);
    assert!(said(&printed).contains("interval_ms"), "{}", said(&printed));

    std::fs::write(home.join("walras.toml"), "[blocks]\nintervall_ms = 5\n").expect("written");
    let wrong = run(&["config", "check"], &home);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(said(&wrong).contains("did you mean \"interval_ms\"?"), "{}", said(&wrong));
    assert_eq!(grades(&json(&run(&["doctor", "--json"], &home)), "settings"), ["bad"]);
    let nowhere = run(&["config", "check"], &folder.path().join("nowhere"));
    assert!(said(&nowhere).contains("is no home; make one with"), "{}", said(&nowhere));
}
