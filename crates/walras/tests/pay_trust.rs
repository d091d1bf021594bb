//! Whom a purse believes about the keys of the payment lane.

mod process;
mod purses;

use payments::LaneRegistration;
use primitives::{SecretKey, to_hex};
use process::{agent, get, walras};
use purses::{Liar, Network, file, text};
use serde_json::{Value, json};

/// The keys that the first member's registrar signs besides those that it has registered.
fn second_list(network: &Network) -> Value {
    let registrar =
        client::keystore::open_under(&network.home(0).join("lane-key.json"), "correct horse").expect("a key");
    let (_, lane) = get(&agent(), network.server(), "/v1/lane");
    let identity = lane["network"].as_str().expect("text").parse().expect("an identity");
    let (signed, _) = LaneRegistration::make(&identity, 1, 0, &[SecretKey::from_seed([9; 32])], &registrar);
    let keys: Vec<String> = signed.keys.iter().map(ToString::to_string).collect();
    json!({"epoch": 1, "member": 0, "keys": keys, "bls": [], "signature": to_hex(&signed.signature.0)})
}

/// Puts the second list in the place of the first one.
fn substitute(body: &mut Value, list: &Value) {
    let registrations = body["registrations"].as_array_mut().expect("registrations");
    let is_same = |of: &&mut Value| (&of["epoch"], &of["member"]) == (&list["epoch"], &list["member"]);
    registrations.iter_mut().filter(is_same).for_each(|of| *of = list.clone());
}

/// A registrar signs two lists of keys for one epoch, and a lying node shows the one that the ledger does not have.
#[test]
fn of_two_lists_that_a_registrar_signs_a_purse_believes_the_ledgers() {
    let network = Network::new(4, 30);
    network.pay("alice", &["new"]);
    network.pass_until_epoch(1);
    let list = second_list(&network);
    let told = list.clone();
    let teller = Liar::new(network.server(), move |path, body| {
        if path == "/v1/lane" {
            substitute(body, &told);
        }
    });
    let forger = Liar::new(network.server(), move |path, body| {
        if path.starts_with("/v1/lane") {
            substitute(body, &list);
        }
    });
    let refused = |liar: &Liar| network.refused("alice", &["balance", "--server", &liar.url]);
    let said = refused(&forger);
    assert!(said.contains("the ledger has other keys of the lane than the node says"), "{said}");
    assert!(!network.path("alice/proved-epochs.json").exists(), "nothing unproved is stored");
    let said = refused(&teller);
    assert!(said.contains("are not those that the ledger has. Give another --server"), "{said}");
    network.pay("alice", &["balance"]);
    let stored: Value = serde_json::from_str(&file(&network.path("alice/proved-epochs.json"))).expect("JSON");
    let (_, lane) = get(&agent(), network.server(), "/v1/lane");
    let of_epoch = |all: &Value| -> Vec<Value> {
        all.as_array().expect("keys").iter().filter(|of| of["epoch"] == 1).map(|of| of["keys"].clone()).collect()
    };
    assert_eq!(of_epoch(&stored), of_epoch(&lane["registrations"]));
    // What is proved needs no second proof, and is never replaced.
    let said = refused(&forger);
    assert!(said.contains("are not those that the ledger has. Give another --server"), "{said}");
}

/// A purse that does not know the validators of the chain takes no keys from anybody, until its owner names them.
#[test]
fn a_purse_of_an_earlier_version_asks_for_the_chains_validators() {
    let network = Network::new(4, 30);
    network.pay("alice", &["new"]);
    network.pay("bob", &["new", "--genesis", "genesis.json"]);
    let lane =
        |purse: &str| serde_json::from_str::<Value>(&file(&network.path(purse).join("lane.json"))).expect("JSON");
    assert_eq!(lane("alice"), lane("bob"), "the node shows the validators of the genesis");
    let mut earlier = lane("alice");
    earlier.as_object_mut().expect("an object").remove("validators");
    std::fs::write(network.path("alice/lane.json"), earlier.to_string()).expect("written");
    network.pass_until_epoch(1);
    let said = network.refused("alice", &["balance"]);
    assert!(said.contains("walras pay trust --genesis FILE"), "{said}");
    let chosen = network.pay("alice", &["trust", "--genesis", "genesis.json"]);
    assert_eq!((&chosen["epoch"], &chosen["validators"]), (&0.into(), &4.into()), "{chosen}");
    assert_eq!(network.pay("bob", &["trust"]), chosen);
    assert_eq!(lane("alice"), lane("bob"));
    network.pay("alice", &["balance"]);
    let said = network.refused("alice", &["trust", "--pin", &format!("7:0x{}", "07".repeat(32))]);
    assert!(said.contains("never change"), "{said}");
    let verified = walras().args(["pay", "trust", "--help"]).output().expect("walras runs");
    assert!(text(&verified.stdout).contains("a registrar can sign two lists"));
}

/// Where validators change, a purse follows them by the handovers that they sign, or starts from somebody's pin.
#[test]
fn a_purse_follows_validators_that_change() {
    let network = Network::founded(4, 40, &["--epoch-heights", "20", "--unbonding-epochs", "4"], |_| {});
    network.pay("alice", &["new"]);
    let first = network.pay("alice", &["trust"]);
    network.pass_until_epoch(1);
    network.pay("alice", &["balance"]);
    assert!(network.path("alice/validators.json").exists(), "it stores how far it has come");
    let followed = network.pay("alice", &["trust"]);
    assert!(followed["epoch"].as_u64() > first["epoch"].as_u64(), "{first} {followed}");

    // Somebody who runs a node names a pin; the purse that starts from it has the same validators.
    let mut pin = walras();
    pin.args(["light", "pin", "--json", "--own-node", "--server", network.server(), "--genesis"]);
    let pin = pin.arg(network.path("genesis.json")).output().expect("walras runs");
    let pin: Value = serde_json::from_slice(&pin.stdout).unwrap_or_else(|_| panic!("{}", text(&pin.stderr)));
    let pin = pin["pin"].as_str().expect("a pin");
    network.pay("bob", &["new", "--genesis", "genesis.json"]);
    let pinned = network.pay("bob", &["trust", "--pin", pin]);
    assert!(pinned["epoch"].as_u64() >= followed["epoch"].as_u64(), "{pinned} {followed}");
    assert!(network.pay("bob", &["balance"])["epoch"].as_u64() >= Some(1));
    let other = format!("{}:0x{}", pin.split(':').next().expect("a height"), "07".repeat(32));
    let said = network.refused("bob", &["trust", "--pin", &other]);
    assert!(said.contains("shows another state"), "{said}");
}
