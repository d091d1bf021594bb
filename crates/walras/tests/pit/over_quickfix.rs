//! Orders over FIX by an engine that others wrote, QuickFIX, through a bridge: accepted, executed, settled.

use std::path::PathBuf;
use std::process::{Command, Output};

use primitives::venue::VenueSide;

use super::{Market, kinds, over_fix};

/// The interpreter that has a package, if one has: that of the Python package's tests, or the one that is named.
pub fn interpreter(package: &str) -> Option<PathBuf> {
    let own = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/.venv/bin/python"));
    let python = std::env::var_os("WALRAS_TEST_PYTHON").map_or(own, PathBuf::from);
    let has = Command::new(&python).args(["-c", &format!("import {package}")]).output();
    has.is_ok_and(|output| output.status.success()).then_some(python)
}

/// The settings of an initiator of this name.
pub fn settings(folder: &str, address: &str, name: &str) -> String {
    let port = address.rsplit(':').next().expect("a port");
    format!(
        "[DEFAULT]\nConnectionType=initiator\nReconnectInterval=1\nHeartBtInt=30\nStartTime=00:00:00\n\
         EndTime=00:00:00\nUseDataDictionary=N\nFileStorePath={folder}/store\nFileLogPath={folder}/log\n\
         SocketConnectHost=127.0.0.1\nSocketConnectPort={port}\n[SESSION]\nBeginString=FIX.4.4\n\
         SenderCompID={name}\nTargetCompID=WALRAS\n"
    )
}

/// Trades once, if there is a QuickFIX; returns how many fills that made.
pub fn orders(market: &mut Market) -> u64 {
    let Some(python) = interpreter("quickfix") else {
        eprintln!("no QuickFIX: make the environment of sdk/python, or name an interpreter in WALRAS_TEST_PYTHON");
        return 0;
    };
    let (bridge, address) = over_fix::started(over_fix::bridge_of(market, "quickfix", "WALRAS:QUICK", "4000000"));
    market.until(|status| status.sessions == 1);
    let sell = market.order("bob", VenueSide::Sell, 99, 2);
    assert!(kinds(&market.place(&sell)).contains(&"accepted"));
    let folder = market.folder.path().join("quickfix-engine");
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("settings.cfg");
    std::fs::write(&path, settings(folder.to_str().expect("text"), &address, "QUICK")).expect("written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pit/quickfix_trader.py");
    let symbol = String::from_utf8(pit::ouch::symbol_of(0).to_vec()).expect("ASCII");
    let output = Command::new(python).arg(script).arg(&path).arg(symbol.trim()).output().expect("it runs");
    told(&output, "q-1", "0.0099");
    drop(bridge);
    market.until(|status| status.sessions == 0);
    market.next = 5_000_000;
    1
}

/// A program printed reports of its order: accepted, executed at this price, settled.
pub fn told(output: &Output, order: &str, price: &str) {
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{told}");
    let reports: Vec<&str> = said.lines().filter(|line| line.contains("|35=8|")).collect();
    let is_next = |(kind, report): (&str, &&str)| report.contains(kind) && report.contains(&format!("|11={order}|"));
    let kinds: Vec<bool> = ["|150=0|", "|150=F|", "|150=I|"].into_iter().zip(&reports).map(is_next).collect();
    assert_eq!(kinds, [true; 3], "accepted, executed, settled: {said}");
    assert!(reports[1].contains(&format!("|31={price}|")) && reports[1].contains("|32=2|"), "{said}");
}
