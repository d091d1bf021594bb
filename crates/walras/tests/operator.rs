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
    let peers = ask(&["status", "--peers"], &node);
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

/// A home is there whole or not at all: an attempt that fails leaves no key, and what stands in the way stays as it is.
#[test]
fn an_init_that_fails_leaves_nothing_and_the_next_one_works() {
    let folder = TempDir::new().expect("a folder");
    let names = |home: &Path| std::fs::read_dir(home).map_or(0, |entries| entries.count());
    let init = |home: &Path, arguments: &[&str]| run(&[&["init"], arguments].concat(), home);
    let four = ["--validators", "4", "--engine", "dbft"];
    let bad_addresses = [&four[..], &["--address", "a", "--address", "b", "--address", "c", "--address", "d"]].concat();
    let twice = ["--asset", "USD:2", "--asset", "USD:2"];
    for (name, wrong, right) in [("one", &twice[..], &[][..]), ("four", &bad_addresses, &four)] {
        let home = folder.path().join(name);
        assert_eq!((init(&home, wrong).status.code(), names(&home)), (Some(1), 0), "{wrong:?}");
        let made = init(&home, right);
        assert!(made.status.success() && names(&home) >= 3, "{}", said(&made));
        assert!(!said(&made).contains(".making"), "{}", said(&made));
    }
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).expect("made");
    std::fs::write(taken.join("walras.toml"), "# mine").expect("written");
    let refused = init(&taken, &[]);
    assert!(said(&refused).contains("walras.toml exists already: choose another --home"), "{}", said(&refused));
    assert_eq!(
        (names(&taken), std::fs::read_to_string(taken.join("walras.toml")).expect("there")),
        (1, "# mine".into())
    );
}

/// A check is of use only where it refuses what the start refuses: addresses that others reach without TLS, half of a
/// certificate, a token that is not there, a venue without its keys.
#[test]
fn a_check_of_settings_refuses_what_a_start_refuses() {
    let folder = TempDir::new().expect("a folder");
    let home = home(folder.path());
    for (settings, expected) in [
        ("[http]\nlisten = \"0.0.0.0:0\"\n", "refusing to listen on 0.0.0.0"),
        ("[http]\ncertificate = \"cert.pem\"\n", "certificate and certificate_key belong together"),
        ("[http]\nsubmit_token_file = \"nowhere\"\n", "[http] token"),
        ("[http]\ntrusted_proxies = [\"here\"]\n", "trusted_proxies"),
        ("[venue]\nrun = true\n", "run `walras venue prepare`"),
    ] {
        std::fs::write(home.join("walras.toml"), settings).expect("written");
        for arguments in [&["config", "check"][..], &["doctor", "--json"], &["node"]] {
            let refused = run(arguments, &home);
            let found = (refused.status.code(), said(&refused).contains(expected));
            assert_eq!(found, (Some(1), true), "{arguments:?} under {settings}: {}", said(&refused));
        }
    }
}

fn wallet(node: &Process, home: &Path, arguments: &[&str]) -> Output {
    let mut command = walras();
    command.arg("wallet").args(arguments).args(["--server", &node.server, "--key"]).arg(home.join("issuer-key.json"));
    command.output().expect("walras runs")
}

const RECEIVER: &str = "0x00000000000000000000000000000000000000aa";

/// Pays a unit, and returns what the receiver has.
fn pay(node: &Process, home: &Path) -> Value {
    let paid = wallet(node, home, &["pay", "--to", RECEIVER, "--asset", "USD", "--amount", "0.01"]);
    assert!(paid.status.success(), "{}", said(&paid));
    balance(node, home)
}

fn balance(node: &Process, home: &Path) -> Value {
    let shown = wallet(node, home, &["show", RECEIVER, "--json"]);
    json(&shown)["account"]["balances"].clone()
}

#[test]
fn a_backup_of_a_running_node_restores_its_chain_and_nothing_half_done() {
    let folder = TempDir::new().expect("a folder");
    let [home, backup, second] = ["home", "backup", "second"].map(|name| folder.path().join(name));
    let assets = ["init", "--json", "--asset", "USD:2", "--supply", "1000", "--fee", "0", "--home"];
    assert!(walras().args(assets).arg(&home).output().expect("runs").status.success());
    let node = Process::start(&home, &[]);
    pay(&node, &home);
    let kept = pay(&node, &home);
    let to = ["backup", "--json", "--out", backup.to_str().expect("UTF-8")];
    let made = json(&run(&to, &home));
    assert_eq!((made["height"].as_u64(), made["chain"].is_u64()), (Some(2), true), "{made}");
    assert_ne!(pay(&node, &home), kept);
    drop(node);

    // Nothing is overwritten, and only what its owner may read is made.
    assert!(said(&run(&to, &home)).contains("exists: name a new folder"));
    let from = ["restore", backup.to_str().expect("UTF-8")];
    assert!(said(&run(&from, &home)).contains("is not empty: nothing is restored"));
    let restored = run(&from, &second);
    assert!(restored.status.success(), "{}", said(&restored));
    let key = std::fs::metadata(second.join("issuer-key.json")).expect("a key").permissions();
    assert_eq!(key.mode() & 0o777, 0o600);

    let node = Process::start(&second, &[]);
    assert_eq!(balance(&node, &second), kept);
    pay(&node, &second);
    drop(node);

    let damaged = backup.join("home/genesis.json");
    std::fs::write(&damaged, b"{}").expect("written");
    let third = folder.path().join("third");
    assert!(said(&run(&from, &third)).contains("home/genesis.json is missing or damaged"));
    assert!(!third.exists());
    std::fs::remove_file(backup.join("backup.json")).expect("removed");
    assert!(said(&run(&from, &third)).contains("is no backup, or unfinished"));
}

#[test]
fn a_backup_of_a_validator_has_a_snapshot_and_no_votes() {
    let folder = TempDir::new().expect("a folder");
    let home = home(folder.path());
    let node = Process::start(&home, &[("WALRAS_NETWORK__LISTEN", "127.0.0.1:0")]);
    let status = || json(&ask(&["status", "--json"], &node));
    while status()["status"]["height"].as_u64() < Some(1) {}
    let [backup, second] = ["backup", "second"].map(|name| folder.path().join(name));
    let made = run(&["backup", "--json", "--out", backup.to_str().expect("UTF-8")], &home);
    assert!(made.status.success(), "{}", said(&made));
    drop(node);
    assert!(backup.join("state.snapshot").exists() && !backup.join("data").exists());
    let restored = run(&["restore", "--json", backup.to_str().expect("UTF-8")], &second);
    let (made, restored) = (json(&made), json(&restored));
    assert_eq!((&made["height"], &made["state_root"]), (&restored["height"], &restored["state_root"]));
    assert!(second.join("validator-key.json").exists() && !second.join("data/votes").exists());

    // A stopped node forgets at once what it need not keep; a running one says that it is in use.
    let pruned = json(&run(&["prune", "--json", "--keep-blocks", "1"], &home));
    assert!(pruned["first"].as_u64() <= pruned["last"].as_u64().map(|last| last + 1), "{pruned}");
}
