//! A network of four processes with a payment lane is rolled back to a snapshot: settled payments stand, and what was
//! signed over a deposit that is rolled back takes nothing from others.

mod process;
mod purses;

use std::path::Path;
use std::process::Output;

use process::{Process, agent, get, walras};
use purses::{Network, text};
use serde_json::Value;

const VALIDATORS: usize = 4;

fn good(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn run_in(folder: &Path, arguments: &str) -> Output {
    walras().args(arguments.split_whitespace()).current_dir(folder).output().expect("walras runs")
}

fn restart(network: &Network, from: &Path, index: usize, arguments: &[&str]) -> Output {
    let mut restart = walras();
    restart.args(["restart", "--json", "--from"]).arg(from).arg("--home").arg(network.path(&format!("again-{index}")));
    restart.arg("--snapshot").arg(network.path("agreed.snapshot")).args(arguments);
    restart.current_dir(network.path(".")).output().expect("walras runs")
}

fn height(network: &Network, index: usize) -> u64 {
    get(&agent(), &network.nodes[index].server, "/v1/status").1["height"].as_u64().unwrap_or(0)
}

fn escrow(network: &Network) -> u64 {
    let (_, lane) = get(&agent(), network.server(), "/v1/lane");
    let eur = lane["assets"].as_array().expect("assets").iter().find(|asset| asset["asset"] == "EUR").expect("EUR");
    eur["escrow"].as_str().expect("units").parse().expect("a number")
}

#[test]
fn a_network_with_a_lane_restarts_and_creates_no_money() {
    let mut network = Network::new(VALIDATORS, 100_000);
    let issuer = network.path("issuer-key.json");
    let issuer = issuer.to_str().expect("text");
    ["alice", "bob", "carol"].iter().for_each(|purse| drop(network.pay(purse, &["new"])));
    let address = |purse| network.pay(purse, &["address"])["address"].as_str().expect("an address").to_string();
    let (bob, mallory) = (address("bob"), network.path("mallory-key.json"));
    let mallory = mallory.to_str().expect("text").to_string();
    assert!(walras().args(["wallet", "new", "--key", &mallory]).output().expect("runs").status.success());
    let account = walras().args(["wallet", "address", "--key", &mallory]).output().expect("runs");
    let account = text(&account.stdout).trim().to_string();
    let send = |purse: &str, to: &str, amount: &str, receipt: &str| {
        network.pay(purse, &["send", "--to", to, "--asset", "EUR", "--amount", amount, "--receipt", receipt])
    };
    network.pay("alice", &["deposit", "--key", issuer, "--asset", "EUR", "--amount", "100"]);
    send("alice", &bob, "30", "early.txt");

    // The snapshot; later blocks certify it.
    let mut create = walras();
    create.args(["snapshot", "create", "--json", "--home"]).arg(network.home(0));
    good(&create.arg("--out").arg(network.path("agreed.snapshot")).output().expect("walras runs"));
    let issuer_before = network.account("issuer-key.json", "EUR");

    // Rolled back: a deposit, from which an account is paid. Settled, so it stands: a payment to Bob.
    network.pay("carol", &["deposit", "--key", issuer, "--asset", "EUR", "--amount", "50"]);
    send("carol", &account, "50", "later.txt");
    send("alice", &bob, "10", "settled.txt");
    ["early.txt", "settled.txt"].iter().for_each(|receipt| drop(network.pay("bob", &["receive", receipt])));
    network.pass_until_height(height(&network, 0) + 10);
    network.stop();
    network.audit(VALIDATORS);

    // Each operator closes its lane, and restarts with all parts.
    let parts: Vec<String> = (0..VALIDATORS).map(|index| format!("part-{index}")).collect();
    let refused = restart(&network, &network.home(0), 0, &[]);
    assert!(text(&refused.stderr).contains("--close"), "{}", text(&refused.stderr));
    for (index, part) in parts.iter().enumerate() {
        let made = good(&restart(&network, &network.home(index), index, &["--close", part]));
        assert_eq!((&made["member"], made["logs"].as_u64() >= Some(1)), (&index.into(), true), "{made}");
    }
    let all: Vec<&str> = parts.iter().flat_map(|part| ["--part", part]).collect();
    let made: Vec<Value> =
        (0..VALIDATORS).map(|index| good(&restart(&network, &network.home(index), index, &all))).collect();
    assert!(made.iter().all(|one| one["network"] == made[0]["network"] && one["lane"] == made[0]["lane"]), "{made:?}");
    assert_eq!(made[0]["lane"]["aside"].as_array().map(Vec::len), Some(0), "{made:?}");
    // With fewer parts the old home would make another network of the same number: it refuses.
    let other = restart(&network, &network.home(0), 9, &all[..6]);
    assert!(text(&other.stderr).contains("a higher --number"), "{}", text(&other.stderr));

    network.start_in("again-", VALIDATORS);
    assert_eq!(escrow(&network), 10_000, "what was deposited before the snapshot");
    assert_eq!(network.account("issuer-key.json", "EUR"), issuer_before, "the later deposit is back");
    // The old certificate means nothing in the new network.
    let said = network.refused("carol", &["redeem", "--key", issuer, "later.txt"]);
    assert!(said.contains("another lane"), "{said}");
    let [genesis, list] = ["genesis.json", "lane-list.json"].map(|name| format!("again-0/{name}"));
    let followed = |purse| network.pay(purse, &["follow", "--genesis", &genesis, "--list", &list])["outputs"].clone();
    assert_eq!(["alice", "bob", "carol"].map(followed), [Value::from(1), 2.into(), 0.into()]);
    let said = network.refused("carol", &["redeem", "--key", issuer, "later.txt"]);
    assert!(said.contains("another network"), "{said}");
    assert_eq!(network.account("mallory-key.json", "EUR"), 0);
    let balance = |purse| network.balance(purse, "EUR");
    assert_eq!(["alice", "bob", "carol"].map(balance), [(6_000, 0, 0), (4_000, 0, 0), (0, 0, 0)]);

    // Carried money moves in the new lane, and home.
    let alice = network.pay("alice", &["address"])["address"].as_str().expect("an address").to_string();
    let order = ["send", "--to", &alice, "--asset", "EUR", "--amount", "35", "--receipt", "new.txt"];
    network.pay("bob", &order);
    network.pay("alice", &["receive", "new.txt"]);
    assert_eq!((balance("alice").0, balance("bob").0), (9_500, 500));
    let identity = made[0]["network"].as_str().expect("an identity");
    network.pay("alice", &["redeem", "--key", issuer, "--network", identity, "--asset", "EUR", "--amount", "95"]);
    assert_eq!((network.account("issuer-key.json", "EUR"), escrow(&network)), (issuer_before + 9_500, 500));
    let report = network.audit(VALIDATORS);
    assert_eq!(
        report["escrow"][1]["escrow"].as_str().or(report["escrow"][0]["escrow"].as_str()),
        Some("500"),
        "{report}"
    );
    network.stop();

    // The old home takes no part in its lane any more.
    network.start_in("validator-", 1);
    assert!(network.nodes[0].log().contains("closed for restart 1"), "{}", network.nodes[0].log());
}

/// A chain of one node: what was paid after the snapshot from a deposit after it is worth nothing once the snapshot is
/// restored, and what the snapshot backs can be spent.
#[test]
fn a_restored_solo_chain_has_a_lane_of_its_own() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let run = |arguments: &str| run_in(folder.path(), arguments);
    let made = "init --json --home old --lane --asset USD:2 --asset EUR:2 --supply 1000 --fee 0";
    assert_eq!(run(made).status.code(), Some(0));
    let ports = sockets::free_ports(node::HOME_PORTS).expect("free ports").to_string();
    let start = |home: &str| {
        Process::start(&path(home), &[("WALRAS_BLOCKS__INTERVAL_MS", "20"), ("WALRAS_LANE__ADDRESSES", ports.as_str())])
    };
    let pay = |node: &Process, arguments: &str| good(&run(&format!("pay {arguments} --json --server {}", node.server)));
    let node = start("old");
    let issuer = "--key old/issuer-key.json --asset EUR";
    ["alice", "carol"].iter().for_each(|purse| drop(pay(&node, &format!("new --purse {purse}"))));
    pay(&node, &format!("deposit --purse alice {issuer} --amount 100"));
    good(&run("snapshot create --json --home old --out agreed.snapshot"));
    pay(&node, &format!("deposit --purse carol {issuer} --amount 50"));
    let account = text(&run("wallet address --key old/issuer-key.json").stdout).trim().to_string();
    pay(&node, &format!("send --purse carol --asset EUR --amount 50 --receipt later.txt --to {account}"));
    assert_eq!(node.terminate().code(), Some(0));

    let restored = "snapshot restore agreed.snapshot --json --home new --genesis old/genesis.json";
    let without = run(&format!("{restored} --lane-from old --home old"));
    assert_eq!(without.status.code(), Some(2), "one home: {}", text(&without.stderr));
    good(&run(&format!("{restored} --lane-from old")));
    let node = start("new");
    let lane = get(&agent(), &node.server, "/v1/lane").1;
    let eur = lane["assets"].as_array().expect("assets").iter().find(|asset| asset["asset"] == "EUR").expect("EUR");
    assert_eq!(eur["escrow"], "10000", "{lane}");
    let redeem = run(&format!("pay redeem later.txt --purse carol --key old/issuer-key.json --server {}", node.server));
    assert!(text(&redeem.stderr).contains("another lane"), "{}", text(&redeem.stderr));
    // Another list is not that of the network.
    let list = purses::file(&path("new/lane-list.json"));
    let wrong = list.replacen("\"number\": 1", "\"number\": 2", 1);
    std::fs::write(path("wrong.json"), wrong).expect("written");
    let follow = format!("pay follow --json --purse alice --server {} --list", node.server);
    let refused = run(&format!("{follow} wrong.json"));
    assert!(text(&refused.stderr).contains("is not that of network"), "{}", text(&refused.stderr));
    assert_eq!(good(&run(&format!("{follow} new/lane-list.json")))["outputs"], 1);
    let balance = pay(&node, "balance --purse alice");
    assert_eq!(balance["balances"][0]["settled"], "10000", "{balance}");
    let audit = good(&run("pay audit --json --home new"));
    assert_eq!(audit["sound"], true, "{audit}");
    assert_eq!(node.terminate().code(), Some(0));
    assert!(start("old").log().contains("closed for restart 1"));
}

/// The first lane epoch of a restarted network has the keys of the agreed file, which are no BLS keys: payments are
/// confirmed by answers in trees, and from the next epoch on by aggregates again.
#[test]
fn the_first_lane_epoch_after_a_restart_signs_without_bls_keys_and_the_next_one_with_them() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let run = |arguments: &str| run_in(folder.path(), arguments);
    let made = "init --json --home old --lane --lane-bls aggregate --lane-epoch-heights 30 --asset USD:2 --asset EUR:2";
    assert_eq!(run(&format!("{made} --supply 1000 --fee 0")).status.code(), Some(0));
    let ports = sockets::free_ports(node::HOME_PORTS).expect("free ports").to_string();
    let start = |home: &str| {
        Process::start(&path(home), &[("WALRAS_BLOCKS__INTERVAL_MS", "20"), ("WALRAS_LANE__ADDRESSES", ports.as_str())])
    };
    let pay = |node: &Process, arguments: &str| good(&run(&format!("pay {arguments} --json --server {}", node.server)));
    let node = start("old");
    pay(&node, "new --purse alice");
    pay(&node, "deposit --purse alice --key old/issuer-key.json --asset EUR --amount 100");
    good(&run("snapshot create --json --home old --out agreed.snapshot"));
    assert_eq!(node.terminate().code(), Some(0));
    good(&run("snapshot restore agreed.snapshot --json --home new --genesis old/genesis.json --lane-from old"));
    let node = start("new");
    let server = format!("--server {}", node.server);
    good(&run(&format!("pay follow --json --purse alice {server} --list new/lane-list.json")));

    let to = good(&run("pay address --purse alice --json"))["address"].as_str().expect("an address").to_string();
    let order = |amount: u32, scheme: &str| {
        format!("send --purse alice --asset EUR --amount {amount} --to {to} --scheme {scheme} --receipt {scheme}.txt")
    };
    let refused = run(&format!("pay {} {server}", order(40, "bls")));
    let said = text(&refused.stderr);
    assert!(said.contains("no keys for this scheme in lane epoch 0"), "{said}");
    assert!(said.contains("--scheme merkle") && said.contains("next lane epoch"), "{said}");
    pay(&node, &order(40, "merkle"));
    let now = || get(&agent(), &node.server, "/v1/lane").1["epoch"].as_u64().expect("a number");
    let network = get(&agent(), &node.server, "/v1/limits").1["network"].as_str().expect("an identity").to_string();
    let again = "wallet pay --again --asset USD --amount 0.01 --to 0x1111111111111111111111111111111111111111";
    while now() == 0 {
        let made = run(&format!("{again} --key old/issuer-key.json --network {network} {server}"));
        assert!(made.status.success(), "{}", text(&made.stderr));
    }
    // Carried money is spent where it lies, by the first committee; what it becomes lies in the next epoch.
    pay(&node, "settle --purse alice");
    let sent = pay(&node, &order(50, "bls"));
    assert!(sent["payments"][0]["settled_ms"].is_number(), "{sent}");
    assert_eq!(node.terminate().code(), Some(0));
}
