//! A network of two validator processes is stopped, rolled back to a snapshot, and continues as a new network.

mod process;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use process::{Process, agent, get, walras};
use serde_json::{Value, json};

const ALICE: &str = "0x00000000000000000000000000000000000000a1";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(arguments: &[&str], paths: &[(&str, &Path)]) -> Output {
    let mut command = walras();
    command.args(arguments);
    for (option, path) in paths {
        command.arg(option).arg(path);
    }
    command.output().expect("walras runs")
}

fn good(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn bad(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    text(&output.stderr)
}

fn pay(network: &Path, server: &str, amount: &str) {
    let pay = ["wallet", "pay", "--json", "--asset", "USD", "--to", ALICE, "--amount", amount, "--server", server];
    let answer = good(&run(&pay, &[("--key", &network.join("issuer-key.json"))]));
    assert_eq!(answer["outcome"]["result"], "applied", "{answer}");
}

/// A key that has signed for the network before the restart signs for the one after it only when told so.
fn pay_in_another_network(network: &Path, server: &str, amount: &str, identity: &str) {
    let key = network.join("issuer-key.json");
    let pay = ["wallet", "pay", "--json", "--asset", "USD", "--to", ALICE, "--amount", amount, "--server", server];
    let refused = bad(&run(&pay, &[("--key", &key)]));
    assert!(refused.contains("nothing was sent") && refused.contains(&format!("--network {identity}")), "{refused}");
    let answer = good(&run(&[&pay[..], &["--network", identity]].concat(), &[("--key", &key)]));
    assert_eq!(answer["outcome"]["result"], "applied", "{answer}");
}

fn height(node: &Process) -> u64 {
    get(&agent(), &node.server, "/v1/status").1["height"].as_u64().unwrap_or(0)
}

fn wait_for_height(node: &Process, least: u64) {
    let begun = Instant::now();
    while height(node) < least {
        assert!(begun.elapsed() < Duration::from_secs(120), "no block {least}: {}", node.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn start(home: &Path) -> Process {
    Process::start(home, &[("WALRAS_BLOCKS__INTERVAL_MS", "10")])
}

#[test]
fn a_network_is_rolled_back_to_a_snapshot() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let network = folder.path().join("network");
    let init = "init --json --validators 2 --asset USD:2 --supply 1000 --stake 500 --fee 0 --epoch-heights 8 \
                --unbonding-epochs 1000 --home";
    let mut command = walras();
    command.args(init.split_whitespace()).arg(&network);
    for _ in 0..2 {
        command.arg("--address").arg(sockets::free_address().expect("a free port").to_string());
    }
    good(&command.output().expect("walras runs"));
    let homes: Vec<PathBuf> = (0..2).map(|index| network.join(format!("validator-{index}"))).collect();
    for home in &homes {
        let path = home.join("genesis.json");
        let mut genesis: Value = serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("JSON");
        genesis["consensus"]["heartbeat_ms"] = json!(50);
        std::fs::write(&path, genesis.to_string()).expect("writable");
    }
    let nodes: Vec<Process> = homes.iter().map(|home| start(home)).collect();
    pay(&network, &nodes[0].server, "1");
    wait_for_height(&nodes[0], 30);
    let snapshot = folder.path().join("agreed.snapshot");
    let taken = good(&run(&["snapshot", "create", "--json"], &[("--home", &homes[0]), ("--out", &snapshot)]));
    let (at, root) =
        (taken["height"].as_u64().expect("a height"), taken["state_root"].as_str().expect("a root").to_string());
    // Later payments are to be undone.
    pay(&network, &nodes[0].server, "500");
    wait_for_height(&nodes[0], at + 10);
    wait_for_height(&nodes[1], at + 10);
    for node in nodes {
        assert_eq!(node.terminate().code(), Some(0));
    }

    let again: Vec<PathBuf> = (0..2).map(|index| folder.path().join(format!("again-{index}"))).collect();
    let restart = |from: &Path, home: &Path| {
        run(&["restart", "--json", "--root", &root], &[("--from", from), ("--snapshot", &snapshot), ("--home", home)])
    };
    let made: Vec<Value> = homes.iter().zip(&again).map(|(from, home)| good(&restart(from, home))).collect();
    assert_eq!((&made[0]["network"], &made[0]["state_root"]), (&made[1]["network"], &made[1]["state_root"]));
    assert_eq!((made[0]["height"].as_u64(), &made[0]["restart"]), (Some(at), &json!(1)));
    // No home is made twice, and a state of another network is rejected.
    assert!(bad(&restart(&homes[0], &again[0])).contains("choose another --home"));
    let wrong = bad(&restart(&again[0], &folder.path().join("third")));
    assert!(wrong.contains("take a snapshot of this network"), "{wrong}");

    let nodes: Vec<Process> = again.iter().map(|home| start(home)).collect();
    wait_for_height(&nodes[1], at + 20);
    // A light client's proofs start at the restart.
    let light = ["light", "account", "--json", "--server", &nodes[0].server, ALICE];
    let proved = || good(&run(&light, &[("--genesis", &again[0].join("genesis.json"))]))["spendable"]["USD"].clone();
    assert_eq!(proved(), "100");
    pay_in_another_network(&network, &nodes[1].server, "2", made[0]["network"].as_str().expect("an identity"));
    assert_eq!(proved(), "300");
    // The earlier genesis leads to statements of other validators than these.
    let foreign = bad(&run(&light, &[("--genesis", &homes[0].join("genesis.json"))]));
    assert!(foreign.contains("get the file from an operator") || foreign.contains("--trust"), "{foreign}");
    // The network continues after its processes are restarted.
    for node in nodes {
        assert_eq!(node.terminate().code(), Some(0));
    }
    let nodes: Vec<Process> = again.iter().map(|home| start(home)).collect();
    wait_for_height(&nodes[0], at + 30);
    drop(nodes);

    // If genesis and state of a home do not belong together, the error says what to do.
    std::fs::copy(homes[0].join("genesis.json"), again[0].join("genesis.json")).expect("copied");
    let other = walras().args(["node", "--listen", "127.0.0.1:0", "--home"]).arg(&again[0]).output().expect("runs");
    assert!(bad(&other).contains("walras restart"), "{}", text(&other.stderr));
}

/// Two of four validators are gone for good: nothing is decided, and no boundary comes. The two that are left restart
/// the network from its last state and name themselves as its committee.
#[test]
fn a_network_whose_committee_is_absent_restarts_with_a_named_one() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let network = folder.path().join("network");
    let init = "init --json --validators 4 --asset USD:2 --supply 1000 --fee 0 --epoch-heights 40 --home";
    let mut command = walras();
    command.args(init.split_whitespace()).arg(&network);
    for _ in 0..4 {
        command.arg("--address").arg(sockets::free_address().expect("a free port").to_string());
    }
    let founded = good(&command.output().expect("walras runs"));
    let account = |index: usize| founded["validators"][index]["account"].as_str().expect("an account").to_string();
    let homes: Vec<PathBuf> = (0..4).map(|index| network.join(format!("validator-{index}"))).collect();
    let mut nodes: Vec<Process> = homes.iter().map(|home| start(home)).collect();
    pay(&network, &nodes[0].server, "1");
    wait_for_height(&nodes[0], 3);
    nodes.truncate(2);
    std::thread::sleep(Duration::from_secs(2));
    let stood = height(&nodes[0]);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(height(&nodes[0]), stood, "two of four decide nothing");
    for node in nodes {
        assert_eq!(node.terminate().code(), Some(0));
    }

    let snapshot = folder.path().join("last.snapshot");
    let taken = good(&run(&["snapshot", "create", "--json"], &[("--home", &homes[0]), ("--out", &snapshot)]));
    let (at, root) =
        (taken["height"].as_u64().expect("a height"), taken["state_root"].as_str().expect("a root").to_string());
    let again: Vec<PathBuf> = (0..2).map(|index| folder.path().join(format!("again-{index}"))).collect();
    let restart = |from: &Path, home: &Path, named: &str| {
        let options = ["restart", "--json", "--root", &root, "--uncertified", "--committee", named];
        run(&options, &[("--from", from), ("--snapshot", &snapshot), ("--home", home)])
    };
    let nobody = bad(&restart(&homes[0], &again[0], ALICE));
    assert!(nobody.contains(ALICE) && nobody.contains("has no stake"), "{nobody}");
    let twice = bad(&restart(&homes[0], &again[0], &format!("{0},{0}", account(0))));
    assert!(twice.contains("named twice"), "{twice}");
    let named = format!("{},{}", account(0), account(1));
    let made: Vec<Value> = homes.iter().zip(&again).map(|(from, home)| good(&restart(from, home, &named))).collect();
    assert_eq!(made[0]["network"], made[1]["network"]);
    let others = folder.path().join("others");
    let other = good(&restart(&homes[2], &others, &format!("{},{}", account(1), account(0))));
    assert_ne!(made[0]["network"], other["network"], "the list is part of the identity");

    let nodes: Vec<Process> = again.iter().map(|home| start(home)).collect();
    pay_in_another_network(&network, &nodes[1].server, "2", made[0]["network"].as_str().expect("an identity"));
    // Past the next boundary: who is absent comes back into no seat.
    wait_for_height(&nodes[1], at.max(40) + 50);
    let seen = get(&agent(), &nodes[1].server, "/v1/validators").1;
    let newest = seen["committees"].as_array().and_then(|all| all.last()).expect("a committee");
    let members: Vec<&Value> =
        newest["members"].as_array().expect("members").iter().map(|one| &one["account"]).collect();
    assert_eq!(members, [&json!(account(0)), &json!(account(1))], "{seen}");
}
