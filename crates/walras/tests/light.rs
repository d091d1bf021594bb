//! `walras light` beyond the founders' epoch, as a process, on a network with short epochs.

mod process;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use process::{Process, agent, get, walras};
use serde_json::{Value, json};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn light(genesis: &Path, server: &str, memory: Option<&Path>, asked: &[&str]) -> Output {
    let mut command = walras();
    command.args(["light", asked[0], "--json", "--server", server, "--genesis"]).arg(genesis).args(&asked[1..]);
    if let Some(memory) = memory {
        command.arg("--remember").arg(memory);
    }
    command.output().expect("walras runs")
}

/// The reason why nothing was proved.
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    text(&output.stderr)
}

/// The folder of a network of one validator, with a block every 30 ms, and epochs of this many heights.
fn network(folder: &Path, epoch_heights: u64, unbonding_epochs: u64) -> PathBuf {
    let network = folder.join("network");
    let init = format!(
        "init --json --validators 1 --asset USD:2 --supply 1000 --stake 500 --fee 0 --reward 0.05 --reward-pool 10000 \
         --epoch-heights {epoch_heights} --unbonding-epochs {unbonding_epochs} --home"
    );
    let output = walras().args(init.split_whitespace()).arg(&network).output().expect("walras runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let genesis = network.join("validator-0/genesis.json");
    let mut hasty = read(&genesis);
    hasty["consensus"]["heartbeat_ms"] = json!(30);
    hasty["venues"] = json!({});
    write(&genesis, &hasty);
    network
}

fn start(home: &Path) -> Process {
    Process::start(home, &[("WALRAS_BLOCKS__INTERVAL_MS", "10"), ("WALRAS_NETWORK__LISTEN", "127.0.0.1:0")])
}

/// Waits until a node shows the handover to an epoch.
fn wait_for_handover(node: &Process, epoch: u64) {
    let begun = Instant::now();
    while get(&agent(), &node.server, "/v1/handovers").1["last"].as_u64().unwrap_or(0) < epoch {
        assert!(begun.elapsed() < Duration::from_secs(120), "no handover to epoch {epoch}: {}", node.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Copies with file modes, which a home needs.
fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.expect("cp runs").success());
}

/// The issuer of a network pays an account.
fn pay(network: &Path, server: &str, to: &str, amount: &str) {
    let mut command = walras();
    command.args(["wallet", "pay", "--json", "--asset", "USD", "--to", to, "--amount", amount, "--server", server]);
    let output = command.arg("--key").arg(network.join("issuer-key.json")).output().expect("walras runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

const ALICE: &str = "0x00000000000000000000000000000000000000a1";

/// Two histories of one genesis under the same keys: what an attacker can sign who has bought the keys of old
/// validators.
#[test]
fn a_history_forged_with_old_keys_is_not_believed() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let network = network(folder.path(), 20, 1_000);
    let (home, forged_home) = (network.join("validator-0"), folder.path().join("forged"));
    copy(&home, &forged_home);
    let genesis = home.join("genesis.json");
    let (node, forger) = (start(&home), start(&forged_home));
    pay(&network, &node.server, ALICE, "1");
    pay(&network, &forger.server, ALICE, "900");
    wait_for_handover(&node, 3);
    wait_for_handover(&forger, 3);

    // The genesis alone cannot tell them apart: this is the attack.
    let shown = proved(&light(&genesis, &forger.server, None, &["account", ALICE]));
    assert_eq!(shown["spendable"]["USD"], "90000", "{shown}");
    let honest = proved(&light(&genesis, &node.server, None, &["account", ALICE]));
    assert_eq!(honest["spendable"]["USD"], "100", "{honest}");
    let absent = proved(&light(&genesis, &node.server, None, &["venue", "--venue", "0"]));
    assert_eq!((&absent["record"], &absent["signed_by"]), (&Value::Null, &json!(1)), "{absent}");
    let nothing = proved(&light(&genesis, &node.server, None, &["deposit", "--venue", "0", "--asset", "USD", ALICE]));
    assert_eq!((&nothing["free"], &nothing["leaving"]), (&json!("0"), &Value::Null), "{nothing}");

    // A client with a pinned state of the true history does not accept the other.
    let pin = proved(&light(&genesis, &node.server, None, &["pin", "--own-node"]));
    let pin = pin["pin"].as_str().expect("a pin").to_string();
    // The forger has reached the same epoch; before that it would only appear to lag.
    let last = get(&agent(), &node.server, "/v1/handovers").1["last"].as_u64().expect("a number");
    let beyond = get(&agent(), &node.server, &format!("/v1/handovers?from={}", u64::MAX));
    assert!(beyond.0 == 200 && beyond.1["handovers"] == serde_json::json!([]), "{beyond:?}");
    wait_for_handover(&forger, last);
    let trusting = ["account", "--trust", pin.as_str(), ALICE];
    let why = refused(&light(&genesis, &forger.server, None, &trusting));
    assert!(why.contains("another state") && why.contains("--server"), "{why}");
    let shown = proved(&light(&genesis, &node.server, None, &trusting));
    assert_eq!((&shown["begun_with"], &shown["spendable"]["USD"]), (&json!("pin"), &json!("100")), "{shown}");

    // A client that asks a witness does not accept it either, whichever of the two lies.
    for (server, witness) in [(&forger.server, &node.server), (&node.server, &forger.server)] {
        let why = refused(&light(&genesis, server, None, &["account", "--witness", witness, ALICE]));
        assert!(why.contains("shows another block") && why.contains("--trust HEIGHT:DIGEST"), "{why}");
    }
    let same = ["account", "--witness", &node.server, "--witness", &node.server, ALICE];
    assert_eq!(proved(&light(&genesis, &node.server, None, &same))["witnesses"], 2);

    // A client whose last proof is too old does not accept it either.
    let memory = folder.path().join("memory.json");
    proved(&light(&genesis, &node.server, Some(&memory), &["account", ALICE]));
    let mut old = read(&memory);
    old["proved_ms"] = json!(1_700_000_000_000_u64);
    write(&memory, &old);
    let why = refused(&light(&genesis, &forger.server, Some(&memory), &["account", ALICE]));
    assert!(why.contains("trust period") && why.contains("--trust HEIGHT:DIGEST"), "{why}");
}

/// A treasury of two keys that both sign: its policy is made by files, and proved; it takes payments with references.
#[test]
fn who_signs_for_a_treasury_is_proved_to_those_who_trust_no_node() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let network = network(folder.path(), 1_000_000, 1);
    let (home, issuer) = (network.join("validator-0"), network.join("issuer-key.json"));
    let (genesis, node) = (home.join("genesis.json"), start(&home));
    let wallet = |arguments: &[&str]| {
        let output = walras().args(["wallet"]).args(arguments).args(["--json"]).output().expect("walras runs");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let file = |name: &str| folder.path().join(name).display().to_string();
    let made = |name: &str| wallet(&["new", "--key", &file(name)]);
    let (own, one, other) = (made("own.json"), made("one.json"), made("other.json"));
    let [treasury, first] = ["address", "public_key"].map(|name| own[name].as_str().expect("text").to_string());
    pay(&network, &node.server, &treasury, "10");
    let server = ["--server", node.server.as_str()];
    let absent = proved(&light(&genesis, &node.server, None, &["keys", &treasury]));
    assert_eq!((&absent["keys"], &absent["signed_by"]), (&Value::Null, &json!(1)), "{absent}");

    let signers = [&one, &other].map(|made| json!({"key": made["public_key"], "weight": 1}));
    write(&folder.path().join("policy.json"), &json!({"keys": signers, "move": 2, "govern": 2, "delay": 0}));
    let (policy, change, rent) = (file("policy.json"), file("change.json"), file("rent.json"));
    let set = ["keys", "set", "--account", &treasury, "--policy", &policy, "--first", &first, "--out", &change];
    wallet(&[&set[..], &server].concat());
    for key in ["own.json", "one.json", "other.json"] {
        wallet(&["request", "sign", &change, "--key", &file(key)]);
    }
    let issuer = issuer.display().to_string();
    wallet(&[&["keys", "send", &change, "--key", &issuer], &server[..]].concat());
    let shown = proved(&light(&genesis, &node.server, None, &["keys", &treasury]));
    assert_eq!(shown["keys"]["policy"]["govern"], 2, "{shown}");
    let keys = &shown["keys"];
    assert_eq!((&keys["first"], &keys["waiting"]), (&json!(first), &Value::Null), "{shown}");

    let asks = r#"{"type":"set_receiving","references":"required"}"#;
    let make = ["request", "make", "--account", &treasury, "--operation", asks, "--out", &rent];
    wallet(&[&make[..], &server].concat());
    for key in ["one.json", "other.json"] {
        wallet(&["request", "sign", &rent, "--key", &file(key)]);
    }
    wallet(&[&["request", "send", &rent], &server[..]].concat());
    let bare = ["wallet", "pay", "--asset", "USD", "--to", &treasury, "--amount", "1", "--key", &issuer];
    let refused = walras().args(bare).args(server).output().expect("walras runs");
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
    assert!(text(&refused.stderr).contains("needs_reference"), "{}", text(&refused.stderr));
    let named = walras().args(bare).args(server).args(["--reference", "INV-1"]).output().expect("walras runs");
    assert!(named.status.success(), "{}", text(&named.stderr));
    let account = get(&agent(), &node.server, &format!("/v1/accounts/{treasury}")).1;
    assert_eq!(account["needs_reference"], true, "{account}");
}

#[test]
fn validators_whose_stakes_are_paid_back_are_not_believed() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let home = network(folder.path(), 20, 1).join("validator-0");
    let node = start(&home);
    wait_for_handover(&node, 4);
    let why = refused(&light(&home.join("genesis.json"), &node.server, None, &["account", ALICE]));
    assert!(why.contains("stakes have been paid back") && why.contains("--trust HEIGHT:DIGEST"), "{why}");
}

#[test]
fn an_answer_that_is_old_is_not_believed() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let home = network(folder.path(), 1_000_000, 1).join("validator-0");
    let node = start(&home);
    let genesis = home.join("genesis.json");
    proved(&light(&genesis, &node.server, None, &["account", ALICE]));
    // A newest block older than --max-age is rejected.
    let why = refused(&light(&genesis, &node.server, None, &["account", "--max-age", "0s", ALICE]));
    assert!(why.contains("--max-age") && why.contains("another --server"), "{why}");
}

fn proved(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("readable")).expect("JSON")
}

fn write(path: &Path, value: &Value) {
    std::fs::write(path, value.to_string()).expect("writable");
}

#[test]
fn a_light_client_walks_from_the_genesis_to_the_present() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let home = network(folder.path(), 3, 10_000).join("validator-0");
    let genesis = home.join("genesis.json");
    let mut hasty = read(&genesis);
    let node = start(&home);
    let begun = Instant::now();
    let (mut epoch, mut held) = (0, 0);
    while epoch < 40 || held < 36 {
        assert!(begun.elapsed() < Duration::from_secs(120), "epoch {epoch}, handovers to {held}: {}", node.log());
        std::thread::sleep(Duration::from_millis(50));
        epoch = get(&agent(), &node.server, "/v1/validators").1["epoch"].as_u64().unwrap_or(0);
        held = get(&agent(), &node.server, "/v1/handovers").1["last"].as_u64().unwrap_or(0);
    }
    // More than a page of handovers; each is of a height of the epoch before.
    let page = get(&agent(), &node.server, "/v1/handovers?from=3").1;
    let of_page = page["handovers"].as_array().expect("a list");
    assert_eq!((&page["from"], of_page.len(), &of_page[31]["epoch"]), (&json!(3), 32, &json!(34)));
    assert_eq!(get(&agent(), &node.server, "/v1/handovers?from=1000000").1["handovers"], json!([]));

    // No requested height is too large to be looked up.
    for path in ["certificate", "receipts", "raw", "batch"] {
        let asked = agent().get(format!("{}/v1/blocks/{}/{path}", node.server, u64::MAX)).call();
        assert_eq!(asked.expect("an answer").status().as_u16(), 404, "{path}");
    }

    let account = read(&home.join("validator-key.json"))["public_key"].as_str().expect("a key").to_string();
    let validators = get(&agent(), &node.server, "/v1/validators").1;
    let founder = &validators["validators"][0];
    assert_eq!(founder["key"], json!(account));
    let address = founder["account"].as_str().expect("an account");
    let trust = folder.path().join("trusted.json");
    let shown = proved(&light(&genesis, &node.server, Some(&trust), &["account", address]));
    assert!(shown["epoch"].as_u64().is_some_and(|epoch| epoch >= 40) && shown["exists"] == true, "{shown}");
    assert_eq!((&shown["signed_by"], &shown["validators"]), (&json!(1), &json!(1)));
    // The next run starts where this one ended.
    let remembered = read(&trust);
    assert!(remembered["epoch"].as_u64() >= shown["epoch"].as_u64(), "{remembered}");
    let again = proved(&light(&genesis, &node.server, Some(&trust), &["account", address]));
    assert!(again["epoch"].as_u64() >= shown["epoch"].as_u64());

    // A witness that does not answer is not one that has no certificate yet.
    let asked = ["account", address, "--witness", "http://127.0.0.1:1"];
    let why = refused(&light(&genesis, &node.server, None, &asked));
    assert!(why.contains("the witness http://127.0.0.1:1") && why.contains("no node answers"), "{why}");

    // A client that trusts another committee accepts nothing of this one.
    let mut other = remembered.clone();
    other["keys"] = json!([primitives::SecretKey::from_seed([9; 32]).public().to_string()]);
    write(&trust, &other);
    refused(&light(&genesis, &node.server, Some(&trust), &["account", address]));
    assert_eq!(read(&trust), other, "nothing is remembered of what was not proved");
    other["network"] = json!(primitives::Digest([3; 32]).to_string());
    write(&trust, &other);
    let why = refused(&light(&genesis, &node.server, Some(&trust), &["account", address]));
    assert!(why.contains("another network") && why.contains("another --remember"), "{why}");
    // A client with another genesis accepts nothing either.
    hasty["consensus"]["validators"][0]["key"] = json!(primitives::SecretKey::from_seed([9; 32]).public().to_string());
    let elsewhere = folder.path().join("elsewhere.json");
    write(&elsewhere, &hasty);
    let why = refused(&light(&elsewhere, &node.server, None, &["account", address]));
    assert!(why.contains("epoch 1") && why.contains("get the file from an operator of a validator"), "{why}");
    assert_eq!(node.terminate().code(), Some(0));
}
