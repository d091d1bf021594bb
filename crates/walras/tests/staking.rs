//! Processes: a network of one validator, and an account that stakes to become the second.

mod process;

use std::path::{Path, PathBuf};
use std::process::Output;

use ledger::ValidatorsProof;
use primitives::{Committed, Contradiction, Digest, Evidence, Scope, SecretKey, to_hex};
use process::{Process, agent, get, walras};
use serde_json::Value;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn good(output: std::io::Result<Output>) -> Value {
    let output = output.expect("walras runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
}

/// A wallet's command, for a key file and a node.
fn wallet(key: &Path, server: &str, arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = walras();
    command.arg("wallet").args(arguments).arg("--json");
    if arguments[0] != "new" {
        command.env("WALRAS_SERVER", server);
    }
    command.arg("--key").arg(key).output()
}

fn applied(key: &Path, server: &str, arguments: &[&str]) {
    let answer = good(wallet(key, server, arguments));
    assert_eq!(answer["outcome"]["result"], "applied", "{arguments:?}: {answer}");
}

fn refused(key: &Path, server: &str, arguments: &[&str], code: &str) {
    let output = wallet(key, server, arguments).expect("walras runs");
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains(code), "{arguments:?}: {said}");
}

fn start(home: &Path) -> Process {
    Process::start(home, &[("WALRAS_BLOCKS__INTERVAL_MS", "10"), ("WALRAS_NETWORK__LISTEN", "127.0.0.1:0")])
}

fn validators(server: &str) -> Value {
    get(&agent(), server, "/v1/validators").1
}

fn entry<'a>(validators: &'a Value, account: &str) -> &'a Value {
    let mut all = validators["validators"].as_array().expect("validators").iter();
    all.find(|one| one["account"] == account).unwrap_or_else(|| panic!("{account} is not in {validators}"))
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

/// Invalid evidence about a validator's commits.
fn evidence() -> String {
    let (key, scope) = (SecretKey::from_seed([1; 32]), Scope { network: Digest([1; 32]), epoch: 0 });
    let commits = [Digest([2; 32]), Digest([3; 32])].map(|root| {
        let superblock = Digest([1; 32]);
        Committed { superblock, root, signature: key.sign(&scope.commit(1, &superblock, &root).0) }
    });
    let evidence = Evidence { epoch: 0, member: 0, height: 1, contradiction: Contradiction::Commits(commits) };
    to_hex(&borsh::to_vec(&evidence).expect("in memory"))
}

#[test]
fn an_account_stakes_and_rotates_and_unstakes() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let network = folder.path().join("network");
    let init = "init --json --validators 1 --asset USD:2 --supply 1000 --stake 500 --fee 0 \
        --epoch-heights 1000000 --committee 3 \
                --minimum-stake 1 --reward 0.05 --reward-pool 10000 --home";
    good(walras().args(init.split_whitespace()).arg(&network).output());
    let home = network.join("validator-0");
    let node = start(&home);
    let server = node.server.clone();
    let issuer = file(&network, "issuer-key.json");
    let account = good(wallet(&issuer, &server, &["show"]))["account"]["address"].as_str().expect("one").to_string();
    let first = file(folder.path(), "first.json");
    let second = file(folder.path(), "second.json");
    let keys = [&first, &second].map(|path| good(wallet(path, &server, &["new"]))["public_key"].clone());

    let [first, second] = [&first, &second].map(|path| path.to_str().expect("a name"));
    applied(&issuer, &server, &["stake", "--amount", "10", "--validator-key", first, "--address", "b.example:9100"]);
    let seen = validators(&server);
    assert_eq!((&seen["epoch"], &seen["next_boundary"]), (&0.into(), &1_000_000.into()));
    assert_eq!(seen["committees"][0]["members"].as_array().map(Vec::len), Some(1));
    let own = entry(&seen, &account);
    assert_eq!((&own["stake"], &own["key"], &own["address"]), (&"1000".into(), &keys[0], &"b.example:9100".into()));

    // Another key; the address stays.
    applied(&issuer, &server, &["stake", "--validator-key", second]);
    applied(&issuer, &server, &["unstake", "--amount", "4"]);
    let seen = validators(&server);
    let own = entry(&seen, &account);
    assert_eq!((&own["stake"], &own["key"], &own["address"]), (&"600".into(), &keys[1], &"b.example:9100".into()));
    assert_eq!(own["unbonding"], serde_json::json!([{"height": 4_000_000, "units": "400"}]));

    refused(&issuer, &server, &["unstake", "--amount", "7"], "unstake_too_much");
    refused(&issuer, &server, &["unstake", "--amount", "5.5"], "stake_too_small");
    refused(&issuer, &server, &["stake", "--address", "nowhere"], "network_address");
    refused(&issuer, &server, &["stake", "--amount", "5000"], "overdraft");
    refused(&issuer, &server, &["accuse", "--evidence", "0x00"], "these bytes are not evidence");
    refused(&issuer, &server, &["accuse", "--evidence", &evidence()], "bad_evidence");

    // The founder's account is that of its key; it is paid for its sub-blocks, and announces an address.
    let founder = file(&home, "account-key.json");
    refused(&founder, &server, &["stake", "--validator-key", second, "--address", "a:1"], "validator_key_taken");
    let own_key = file(&home, "validator-key.json");
    let own_key = own_key.to_str().expect("a name");
    applied(&founder, &server, &["stake", "--validator-key", own_key, "--address", "a.example:9100"]);
    let paid = good(wallet(&founder, &server, &["show"]));
    let units = paid["account"]["balances"][0]["available"].as_str().and_then(|units| units.parse::<u64>().ok());
    assert!(units.is_some_and(|units| units > 0 && units.is_multiple_of(5)), "{paid}");
    let name = |seen: &Value| entry(seen, paid["account"]["address"].as_str().expect("one"))["address"].clone();
    // The announced address contains the key of its links, which is beside the validator's key.
    let named = name(&validators(&server));
    let (links, host) = named.as_str().and_then(|text| text.split_once('@')).expect("a key and a host");
    assert_eq!((links.len(), host), (64, "a.example:9100"));

    // The announced address is in the state root.
    let shown = get(&agent(), &server, "/v1/validators/proof").1;
    let hex = shown["proof"].as_str().expect("hexadecimal").trim_start_matches("0x");
    let bytes: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits")).collect();
    let proof: ValidatorsProof = borsh::from_slice(&bytes).expect("a proof");
    let root = shown["root"].as_str().and_then(|root| root.parse().ok()).expect("a root");
    assert_eq!(proof.verify(&root).expect("holds").registry.len(), 2);

    // It is still there after a restart.
    assert_eq!(node.terminate().code(), Some(0));
    let node = start(&home);
    assert_eq!(validators(&node.server)["validators"], {
        let mut before = seen["validators"].clone();
        let founder = before.as_array_mut().expect("validators").iter_mut().find(|one| one["account"] != account);
        founder.expect("the founder")["address"] = named.clone();
        before
    });
}

#[test]
fn a_chain_of_one_node_has_nobody_to_stake_for() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let home = folder.path().join("home");
    good(walras().args(["init", "--json", "--asset", "USD:2", "--home"]).arg(&home).output());
    let output = walras().args(["init", "--epoch-heights", "5", "--home"]).arg(folder.path().join("other")).output();
    assert_eq!(output.expect("walras runs").status.code(), Some(2), "--epoch-heights is for validators");
    let node = start(&home);
    let issuer = file(&home, "issuer-key.json");
    refused(&issuer, &node.server, &["stake", "--amount", "1", "--address", "a:1"], "committee_fixed");
}

/// The attack on a network of four processes: four accounts stake a thousand times what the founders have, and none of
/// them runs a node. The network goes on past several boundaries with its founders.
#[test]
fn absent_stakers_do_not_stop_a_network() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let network = folder.path().join("network");
    let init = "init --json --validators 4 --asset USD:2 --supply 1000000 --stake 1 --minimum-stake 1 --fee 0 \
        --epoch-heights 40 --home";
    let mut command = walras();
    command.args(init.split_whitespace()).arg(&network);
    for _ in 0..4 {
        command.arg("--address").arg(sockets::free_address().expect("a free port").to_string());
    }
    let founded = good(command.output());
    let homes = (0..4).map(|index| network.join(format!("validator-{index}")));
    let nodes: Vec<Process> =
        homes.map(|home| Process::start(&home, &[("WALRAS_BLOCKS__INTERVAL_MS", "10")])).collect();
    let (server, issuer) = (&nodes[0].server, file(&network, "issuer-key.json"));
    for number in 0..4 {
        let key = file(folder.path(), &format!("rich-{number}.json"));
        let made = good(wallet(&key, server, &["new"]));
        let account = made["address"].as_str().expect("an address").to_string();
        applied(&issuer, server, &["pay", "--asset", "USD", "--to", &account, "--amount", "1000"]);
        let own = key.to_str().expect("a name");
        let address = format!("absent-{number}.example:9100");
        applied(&key, server, &["stake", "--amount", "1000", "--validator-key", own, "--address", &address]);
    }
    let founders: Vec<&Value> =
        founded["validators"].as_array().expect("validators").iter().map(|one| &one["account"]).collect();
    let begun = validators(server)["epoch"].as_u64().expect("an epoch");
    let begun_at = std::time::Instant::now();
    loop {
        let seen = validators(&nodes[1].server);
        for committee in seen["committees"].as_array().expect("committees") {
            let members = committee["members"].as_array().expect("members").iter().map(|one| &one["account"]);
            assert_eq!(members.collect::<Vec<_>>(), founders, "{seen}");
        }
        if seen["epoch"].as_u64() >= Some(begun + 3) {
            break;
        }
        assert!(begun_at.elapsed().as_secs() < 600, "it stands still: {}", nodes[0].log());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let seen = validators(&nodes[1].server);
    assert_eq!(entry(&seen, founders[0].as_str().expect("one"))["stake"], "100");
    assert_eq!(seen["validators"].as_array().map(Vec::len), Some(8), "their stakes stay");
    applied(&issuer, &nodes[2].server, &["burn", "--asset", "USD", "--amount", "1"]);
}
