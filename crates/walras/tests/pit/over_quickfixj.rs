//! Orders over FIX by QuickFIX/J, which others wrote, through a bridge: accepted, executed, settled.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use primitives::venue::VenueSide;

use super::over_quickfix::{settings, told};
use super::{Market, kinds, over_fix};

/// The jars, where Maven keeps them once they are fetched.
fn jars() -> Option<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?.join(".m2/repository/org");
    let newest = |folder: &str| {
        let versions = std::fs::read_dir(home.join(folder)).ok()?.flatten();
        let mut jars: Vec<PathBuf> = versions.filter_map(|version| jar_in(&version.path())).collect();
        jars.sort_unstable();
        jars.pop()
    };
    let all: Option<Vec<PathBuf>> =
        ["quickfixj/quickfixj-core", "apache/mina/mina-core", "slf4j/slf4j-api"].into_iter().map(newest).collect();
    let has_java = Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok_and(|of| of.success());
    match all.filter(|_| has_java) {
        Some(all) => Some(all.iter().map(|jar| jar.display().to_string()).collect::<Vec<_>>().join(":")),
        None => {
            eprintln!("no QuickFIX/J: mvn dependency:get -Dartifact=org.quickfixj:quickfixj-core:3.0.1");
            None
        }
    }
}

fn jar_in(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "jar")).min()
}

/// Trades once, if there is a QuickFIX/J; returns how many fills that made.
pub fn orders(market: &mut Market) -> u64 {
    let Some(jars) = jars() else { return 0 };
    let (bridge, address) = over_fix::started(over_fix::bridge_of(market, "quickfixj", "WALRAS:QUICKJ", "8000000"));
    market.until(|status| status.sessions == 1);
    let sell = market.order("bob", VenueSide::Sell, 97, 2);
    assert!(kinds(&market.place(&sell)).contains(&"accepted"));
    let folder = market.folder.path().join("quickfixj-engine");
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("settings.cfg");
    std::fs::write(&path, settings(folder.to_str().expect("text"), &address, "QUICKJ")).expect("written");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pit/QuickFixJ.java");
    let symbol = String::from_utf8(pit::ouch::symbol_of(0).to_vec()).expect("ASCII");
    let output =
        Command::new("java").args(["-cp", &jars, program]).arg(&path).arg(symbol.trim()).output().expect("java runs");
    told(&output, "j-1", "0.0097");
    drop(bridge);
    market.until(|status| status.sessions == 0);
    market.next = 9_000_000;
    1
}
