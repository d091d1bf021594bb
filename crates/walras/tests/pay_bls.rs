//! Money on a payment lane with BLS keys, between processes.

mod process;
mod purses;

use process::{agent, get, walras};
use purses::{Network, file, text};
use serde_json::Value;

fn words(order: &[String; 11]) -> [&str; 11] {
    order.each_ref().map(String::as_str)
}

#[test]
fn money_goes_from_the_ledger_over_the_lane_to_the_ledger_with_bls_certificates() {
    let network = Network::founded(4, 150, &["--lane-bls", "aggregate"], |_| {});
    let issuer = network.path("issuer-key.json");
    let issuer = issuer.to_str().expect("text");
    let genesis = network.path("genesis.json");
    network.pay("alice", &["new"]);
    network.pay("bob", &["new", "--genesis", genesis.to_str().expect("text")]);
    let deposit = |amount: &str| {
        network.pay("alice", &["deposit", "--key", issuer, "--asset", "EUR", "--amount", amount]);
    };
    let address = network.pay("bob", &["address"])["address"].as_str().expect("an address").to_string();
    let send = |amount: &'static str, receipt: &'static str, scheme: &'static str| {
        ["send", "--to", &address, "--asset", "EUR", "--amount", amount, "--receipt", receipt, "--scheme", scheme]
            .map(String::from)
    };

    // The first lane epoch has only the keys of the genesis: nothing is signed that nobody could confirm.
    deposit("10");
    let said = network.refused("alice", &words(&send("4", "none.txt", "bls")));
    assert!(said.contains("no keys for this scheme in lane epoch 0"), "{said}");
    assert_eq!(network.balance("alice", "EUR"), (1_000, 0, 0));
    network.pay("alice", &words(&send("10", "tree.txt", "merkle")));
    network.pay("bob", &["receive", "tree.txt"]);

    // Ledger → lane.
    network.pass_until_epoch(1);
    let (_, lane) = get(&agent(), network.server(), "/v1/lane");
    let registered = lane["registrations"].as_array().expect("keys");
    let of_epoch = |of: &&Value| of["epoch"] == 1;
    assert!(lane["bls"] == "aggregate" && registered.iter().filter(of_epoch).all(|of| of["bls"][0]["key"].is_string()));
    assert!(registered.iter().filter(of_epoch).count() >= 3, "a quorum has registered");
    deposit("100");

    // Lane → lane, while one of four validators is silent. The receipt verifies offline, and is short.
    network.nodes[3].signal("STOP");
    let sent = network.pay("alice", &words(&send("30.25", "short.txt", "bls")));
    assert!(sent["payments"][0]["settled_ms"].is_number(), "{sent}");
    network.pay("alice", &words(&send("5", "long.txt", "merkle")));
    let (short, long) = (file(&network.path("short.txt")).len(), file(&network.path("long.txt")).len());
    let (answers, aggregate) = (1 + 3 * (1 + 4 + 4 + 8 + 64), 2 + 1 + 1 + 48);
    assert_eq!(long - short, 2 * (answers - aggregate), "digits of the certificates");
    let verify = |receipt: &str| network.run("bob", &["verify", receipt]);
    // Bob learns the keys of this epoch when he asks a node, once.
    network.pay("bob", &["balance"]);
    let verified = verify("short.txt");
    assert!(text(&verified.stdout).contains("30.25 EUR"), "{}{}", text(&verified.stdout), text(&verified.stderr));
    // Another bitmap of signers, another signature.
    let slip = file(&network.path("short.txt"));
    for from_end in [3, 99] {
        let mut damaged = slip.trim_end().as_bytes().to_vec();
        let at = damaged.len() - from_end;
        damaged[at] = if damaged[at] == b'0' { b'1' } else { b'0' };
        std::fs::write(network.path("bad.txt"), damaged).expect("written");
        assert_eq!(verify("bad.txt").status.code(), Some(1));
    }
    for receipt in ["short.txt", "long.txt"] {
        assert_eq!(network.pay("bob", &["receive", receipt])["received"][0]["settled"], true);
    }
    network.nodes[3].signal("CONT");

    // Lane → ledger: the bridge accepts an aggregate, and a copy of it has no effect.
    let key = network.path("bob-key.json");
    let key = key.to_str().expect("text");
    assert!(walras().args(["wallet", "new", "--key", key]).output().expect("runs").status.success());
    let account = walras().args(["wallet", "address", "--key", key]).output().expect("runs");
    let account = text(&account.stdout).trim().to_string();
    let home = ["send", "--to", &account, "--asset", "EUR", "--amount", "30", "--receipt", "home.txt"];
    network.pay("bob", &[&home[..], &["--scheme", "bls"]].concat());
    for _ in 0..2 {
        network.pay("alice", &["redeem", "--key", issuer, "home.txt"]);
        assert_eq!(network.account("bob-key.json", "EUR"), 3_000);
    }
    let before = network.account("issuer-key.json", "EUR");
    network.pay("alice", &["redeem", "--key", issuer, "--asset", "EUR", "--amount", "60", "--scheme", "bls"]);
    assert_eq!(network.account("issuer-key.json", "EUR"), before + 6_000);

    // A watcher settles what was received and not settled, and the audit finds no fault.
    let mut audit = walras();
    audit.args(["pay", "audit", "--json"]);
    for index in 0..3 {
        audit.arg("--home").arg(network.path(&format!("validator-{index}")));
    }
    let output = audit.output().expect("walras runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    for node in network.nodes {
        assert_eq!(node.terminate().code(), Some(0));
    }
}

/// The validators make a group key over the ledger, and purses learn it from any of them.
#[test]
fn money_goes_over_the_lane_with_certificates_of_a_group_key() {
    let network = Network::founded(4, 120, &["--lane-bls", "threshold"], |_| {});
    let issuer = network.path("issuer-key.json");
    let issuer = issuer.to_str().expect("text");
    network.pay("alice", &["new"]);
    network.pay("bob", &["new"]);
    // The posts make blocks: every member has dealt before other transactions let the time to deal pass.
    let lane = || get(&agent(), network.server(), "/v1/lane").1;
    while lane()["registrations"].as_array().map_or(0, Vec::len) < 4 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    network.pass_until_epoch(1);
    assert_eq!(lane()["group_keys"], serde_json::json!([1]), "{}", network.nodes[0].log());
    network.pay("alice", &["deposit", "--key", issuer, "--asset", "EUR", "--amount", "100"]);
    let address = network.pay("bob", &["address"])["address"].as_str().expect("an address").to_string();
    let order = ["send", "--to", &address, "--asset", "EUR", "--amount", "40", "--receipt", "r.txt"];
    network.nodes[2].signal("STOP");
    network.pay("alice", &[&order[..], &["--scheme", "threshold"]].concat());
    network.nodes[2].signal("CONT");
    assert!(network.refused("bob", &["verify", "r.txt"]).contains("proves nothing"), "he has not learned the keys");
    assert_eq!(network.pay("bob", &["receive", "r.txt"])["received"][0]["settled"], true);
    let verified = network.run("bob", &["verify", "r.txt"]);
    assert!(text(&verified.stdout).contains("40 EUR"), "offline: {}", text(&verified.stderr));
    let before = network.account("issuer-key.json", "EUR");
    network.pay("bob", &["redeem", "--key", issuer, "--asset", "EUR", "--amount", "15", "--scheme", "threshold"]);
    assert_eq!(network.account("issuer-key.json", "EUR"), before + 1_500);
    assert_eq!(network.balance("bob", "EUR"), (2_500, 0, 0));
}
