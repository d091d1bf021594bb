//! Processes: a validator that joins after the others have discarded the first blocks.

mod process;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use process::{Process, agent, get, walras};
use serde_json::{Value, json};

/// Blocks that are discarded on disk are not served from memory either.
const SETTINGS: [(&str, &str); 5] = [
    ("WALRAS_BLOCKS__INTERVAL_MS", "20"),
    ("WALRAS_STORE__CHECKPOINT_BLOCKS", "10"),
    ("WALRAS_STORE__KEEP_BLOCKS", "5"),
    ("WALRAS_STORE__CACHED_BODIES", "0"),
    ("WALRAS_STORE__CACHED_RECEIPTS", "0"),
];

fn home(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("validator-{index}"))
}

fn height(node: &Process) -> u64 {
    get(&agent(), &node.server, "/v1/status").1["height"].as_u64().expect("a height")
}

fn wait(what: &str, node: &Process, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(200), "{what}: {}", node.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The node's answer, if it serves at this moment.
fn asked(node: &Process, path: &str) -> Option<Value> {
    let mut response = agent().get(format!("{}{path}", node.server)).call().ok()?;
    response.body_mut().read_json().ok()
}

#[test]
fn a_late_validator_begins_with_a_fetched_state_in_one_process() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let addresses: Vec<String> = (0..4).map(|_| sockets::free_address().expect("a free port").to_string()).collect();
    let mut init = walras();
    init.args(["init", "--json", "--supply", "1000", "--validators", "4", "--epoch-heights", "20"]);
    for address in &addresses {
        init.args(["--address", address]);
    }
    assert!(init.arg("--home").arg(folder.path()).output().expect("walras runs").status.success());
    for index in 0..4 {
        let path = home(folder.path(), index).join("genesis.json");
        let mut hasty: Value = serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("JSON");
        hasty["consensus"]["heartbeat_ms"] = json!(50);
        std::fs::write(&path, hasty.to_string()).expect("writable");
    }
    let mut running: Vec<Process> =
        (0..3).map(|index| Process::start(&home(folder.path(), index), &SETTINGS)).collect();
    wait("blocks are discarded", &running[0], || {
        running.iter().all(|node| height(node) > 50 && get(&agent(), &node.server, "/v1/blocks/1/certificate").0 == 404)
    });
    let late = Process::start(&home(folder.path(), 3), &SETTINGS);
    // A reader of the stream does not delay it.
    let stream = late.server.replace("http://", "ws://") + "/v1/stream";
    let _reader = tungstenite::connect(&stream).expect("a stream");
    let behind = height(&running[0]);
    wait("it has the height of the others", &late, || {
        asked(&late, "/v1/status").is_some_and(|status| status["height"].as_u64().is_some_and(|at| at > behind))
    });
    wait("it votes", &late, || {
        asked(&late, "/v1/validator").is_some_and(|status| status["silent"] == false && status["follows"] == false)
    });
    assert!(!home(folder.path(), 3).join("data/arrived").exists());
    // Now the others need its votes.
    running.remove(1);
    let now = height(&running[0]);
    wait("its votes count", &late, || height(&running[0]) > now + 5);
    let digest = |node: &Process, height: u64| get(&agent(), &node.server, &format!("/v1/blocks/{height}")).1;
    assert_eq!(digest(&running[0], now)["block"], digest(&late, now)["block"]);
    assert!(tungstenite::connect(&stream).is_ok(), "it serves at the same address");
    assert_eq!(late.terminate().code(), Some(0));
}
