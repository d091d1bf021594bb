//! Orders over SoupBinTCP by a client that others wrote, Nassau, through a bridge, and a snapshot of market data by
//! Juncture's parser.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use primitives::venue::VenueSide;
use serde_json::{Value, json};

use super::over_fix::first_line;
use super::process::walras;
use super::{Market, agent, kinds};

/// The jars, where Maven keeps them once they are fetched.
fn jars() -> Option<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?.join(".m2/repository/com/paritytrading");
    let jar = |group: &str, name: &str| home.join(format!("{group}/{name}/1.0.0/{name}-1.0.0.jar"));
    let all = [jar("nassau", "nassau-core"), jar("juncture", "juncture-nasdaq"), jar("foundation", "foundation")];
    let has_java = Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok_and(|of| of.success());
    if !has_java || !all.iter().all(|jar| jar.exists()) {
        eprintln!(
            "no Nassau: mvn dependency:get -Dartifact=com.paritytrading.nassau:nassau-core:1.0.0, and \
             -Dartifact=com.paritytrading.juncture:juncture-nasdaq:1.0.0"
        );
        return None;
    }
    Some(all.map(|jar| jar.display().to_string()).join(":"))
}

fn run(jars: &str, arguments: &[&str]) -> Vec<String> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pit/Nassau.java");
    let output = Command::new("java").args(["-cp", jars, program]).args(arguments).output().expect("java runs");
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}: {said}{told}", output.status);
    said.lines().map(str::to_string).collect()
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().expect("a port")
}

/// Trades once and reads a book, if there is a Nassau; returns how many fills that made.
pub fn orders(market: &mut Market) -> u64 {
    let Some(jars) = jars() else { return 0 };
    let mut command = walras();
    command.args(["bridge", "--listen", "127.0.0.1:0", "--life", "5000", "--session", "12", "--trading-key"]);
    command.arg(market.key("alice-trading")).args(["--venue", &market.venue, "--ouch", &market.ouch]);
    let (bridge, line) = first_line(command.stdout(Stdio::piped()));
    let address = line.strip_prefix("plain OUCH on ").unwrap_or_else(|| panic!("{line}"));
    market.until(|status| status.sessions == 1);
    let sell = market.order("bob", VenueSide::Sell, 98, 4);
    assert!(kinds(&market.place(&sell)).contains(&"accepted"));
    let symbol = String::from_utf8(pit::ouch::symbol_of(0).to_vec()).expect("ASCII");
    let heard = run(&jars, &["order", port(address), "6000000", symbol.trim(), "98", "3"]);
    let kinds: Vec<&str> = heard.iter().map(|message| &message[..2]).collect();
    assert_eq!(kinds, ["41", "45"], "accepted, executed: {heard:?}");
    drop(bridge);
    market.until(|status| status.sessions == 0);
    market.next = 7_000_000;

    // Its parser reads the book that the engine has.
    let lines = run(&jars, &["book", port(&market.follower.addresses()[2])]);
    let of_side = |letter: &str| {
        let mut levels = std::collections::BTreeMap::<u32, (u64, u32)>::new();
        for line in &lines {
            let [_, side, tick, lots] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            if side == letter {
                let level = levels.entry(tick.parse().expect("a tick")).or_default();
                (level.0, level.1) = (level.0 + lots.parse::<u64>().expect("lots"), level.1 + 1);
            }
        }
        levels.into_iter().map(|(tick, (lots, orders))| json!([tick, lots, orders])).collect::<Vec<Value>>()
    };
    let (mut bids, asks) = (of_side("B"), of_side("S"));
    bids.reverse();
    let url = format!("{}/v1/venue/markets/0/book?depth=100", market.venue);
    let book: Value = agent().get(url).call().expect("it answers").body_mut().read_json().expect("JSON");
    assert_eq!((json!(bids), json!(asks)), (book["bids"].clone(), book["asks"].clone()), "{lines:?}");
    1
}
