//! `walras clear` and `walras verify` from the outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const OFFERS: &str = "sell,buy,amount,min_price\n\
    EUR,USD,1000000,1.08\nUSD,EUR,1200000,0.90\nUSD,JPY,500000,148.5\nJPY,EUR,50000000,0.0060\n\
    EUR,JPY,300000,161.123456789012345678\nGBP,EUR,1000,1.1\n";

fn walras(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_walras")).args(args).output().expect("walras runs")
}

fn write(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a file is written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn cleared(offers: &Path, more: &[&str]) -> Value {
    let output = walras(&[&["clear", "--json", "--offers", text(offers)], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn verified(offers: &Path, clearing: &Path) -> (i32, String) {
    let output = walras(&["verify", "--offers", text(offers), "--clearing", text(clearing)]);
    (output.status.code().expect("an exit code"), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_clear_prints_verifies() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    for more in [&[][..], &["--epsilon", "0"], &["--solver", "tatonnement", "--mu", "0.01"]] {
        let clearing = cleared(&offers, more);
        assert_eq!(clearing["full"], true);
        assert!(clearing["prices"]["EUR"].is_string() && clearing["solver"]["seconds"].is_number());
        assert_eq!(clearing["fills"][0]["row"], 1);
        let path = write(&folder, "clearing.json", &clearing.to_string());
        assert_eq!(verified(&offers, &path), (0, String::new()));
    }
}

#[test]
fn verify_names_the_first_violation() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    let good = cleared(&offers, &[]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut bad = good.clone();
        change(&mut bad);
        verified(&offers, &write(&folder, "bad.json", &bad.to_string()))
    };
    type Change<'a> = &'a dyn Fn(&mut Value);
    let cases: [(Change, &str); 6] = [
        (&|c| c["trades"][0]["sold"] = "999999999".into(), "trade EUR/JPY sells 999999999 units"),
        (&|c| c["fills"][0]["bought"] = "2000000".into(), "fills: row 1 sells 1000000"),
        (&|c| c["trades"] = Value::Array(vec![]), "is below (1-mu) of the rate but not filled in full"),
        (&|c| c["prices"]["EUR"] = "1e5".into(), "prices: asset EUR: price \"1e5\" is not a plain decimal"),
        (&|c| drop(c["prices"].as_object_mut().map(|p| p.remove("USD"))), "prices: none for asset USD"),
        (&|c| drop(c.as_object_mut().map(|c| c.remove("mu"))), "not a clearing"),
    ];
    for (change, text) in cases {
        let (code, message) = with(change);
        assert!(code == 1 && message.contains(text), "{code} {message}");
    }
}

#[test]
fn bad_usage_and_bad_files_differ() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", "sell,buy,amount,min_price\nEUR,USD,1,x\n");
    let bad_file = walras(&["clear", "--offers", text(&offers)]);
    assert_eq!(bad_file.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad_file.stderr).contains("offers.csv: line 2, column 4 (min_price)"));
    assert_eq!(walras(&["clear"]).status.code(), Some(2));
    assert_eq!(walras(&["clear", "--offers", text(&offers), "--mu", "0"]).status.code(), Some(2));
}
