//! A developers' chain over real sockets: the methods of development tools, and that they exist nowhere else.

use std::path::Path;

use crate::door::*;
use ledger::contracts::{EthereumRequest, contract_address};
use ledger::{CharterTerms, ForkSchedule, Genesis, manifest};
use node::{Config, Node, StartError};
use primitives::{Address, Body, Operation, Upgrade};
use serde_json::{Value, json};
use store::{Options, RealDisk};

const CHAIN: u64 = 31_337;

fn developers() -> Genesis {
    Genesis { chain: CHAIN, is_developers: true, ..genesis() }
}

/// Each transaction makes a block at once.
fn instant() -> Config {
    let mut config = config();
    config.blocks.interval_ms = 0;
    config
}

pub fn with_developers<T: Send + 'static>(data: &Path, test: impl FnOnce(Server) -> T + Send + 'static) -> T {
    on_developers(ForkSchedule::default(), data, test)
}

/// The same on a chain with these forks.
pub fn on_developers<T: Send + 'static>(
    forks: ForkSchedule,
    data: &Path,
    test: impl FnOnce(Server) -> T + Send + 'static,
) -> T {
    with_node_of(&Genesis { forks, ..developers() }, instant(), data, test)
}

pub fn signed(person: u8, request: EthereumRequest) -> Vec<u8> {
    key(person).sign(&EthereumRequest { chain: CHAIN, ..request })
}

/// Sends a transaction; its receipt exists when the answer arrives.
pub fn mined(server: Server, bytes: &[u8]) -> Value {
    let hash = send(server, bytes);
    let receipt = ask(server, "eth_getTransactionReceipt", json!([hash]));
    assert!(receipt.is_object(), "{hash} is in a block when it is answered");
    receipt
}

/// Creates a contract with this runtime code.
pub fn create(server: Server, nonce: u64, code: &[u8]) -> Address {
    let data = [&[0x60, code.len() as u8, 0x80, 0x60, 9, 0x5f, 0x39, 0x5f, 0xf3], code].concat();
    assert_eq!(mined(server, &signed(1, EthereumRequest { data, ..payment(nonce, None) }))["status"], "0x1");
    contract_address(&key(1).address(), nonce)
}

pub fn height(server: Server) -> u128 {
    number(&ask(server, "eth_blockNumber", json!([])))
}

pub fn wei(server: Server, account: &Address) -> u128 {
    number(&ask(server, "eth_getBalance", json!([account.to_string(), "latest"])))
}

pub fn time(server: Server) -> u128 {
    number(&ask(server, "eth_getBlockByNumber", json!(["latest", false]))["timestamp"])
}

fn root(server: Server) -> Value {
    ask(server, "eth_getProof", json!([key(1).address().to_string(), [], "latest"]))["stateRoot"].clone()
}

/// Everything that a reader can see of the chain.
fn picture(server: Server, counter: &Address) -> Value {
    let (owner, other) = (key(1).address().to_string(), Address([0xaa; 20]).to_string());
    json!([
        ask(server, "eth_getBlockByNumber", json!(["latest", true])),
        ask(server, "eth_getTransactionCount", json!([owner, "pending"])),
        ask(server, "eth_getBalance", json!([owner, "latest"])),
        ask(server, "eth_getBalance", json!([other, "latest"])),
        ask(server, "eth_getStorageAt", json!([counter.to_string(), "0x0", "latest"])),
        ask(server, "eth_getLogs", json!([{"fromBlock": "0x0"}])),
        ask(server, "eth_feeHistory", json!([5, "latest", []])),
        root(server),
    ])
}

#[test]
fn what_is_reverted_never_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let (counter, after) = with_developers(&data, |server| {
        let counter = contract_address(&key(1).address(), 0);
        assert_eq!(mined(server, &signed(1, creation(0)))["status"], "0x1");
        mined(server, &signed(1, payment(1, Some(counter))));
        let before = picture(server, &counter);
        let snapshot = ask(server, "evm_snapshot", json!([]));
        let filter = ask(server, "eth_newFilter", json!([{"address": counter.to_string()}]));
        let blocks = ask(server, "eth_newBlockFilter", json!([]));
        // All kinds of changes: transactions, edits, time, empty blocks, another snapshot, a pending transaction.
        let call = signed(1, payment(2, Some(counter)));
        let undone = mined(server, &call);
        ask(server, "anvil_setBalance", json!([Address([0xaa; 20]).to_string(), "0x5"]));
        ask(server, "evm_increaseTime", json!([100_000]));
        ask(server, "hardhat_mine", json!(["0x5"]));
        let later = ask(server, "evm_snapshot", json!([]));
        ask(server, "evm_setAutomine", json!([false]));
        let waiting = send(server, &signed(2, payment(0, Some(counter))));
        assert_ne!(picture(server, &counter), before);
        assert_eq!(ask(server, "eth_getFilterChanges", json!([filter])).as_array().map(Vec::len), Some(1));
        assert_eq!(ask(server, "evm_revert", json!([snapshot])), true);
        assert_eq!(picture(server, &counter), before, "everything is as it was");
        for gone in [&undone["transactionHash"], &waiting] {
            assert_eq!(ask(server, "eth_getTransactionReceipt", json!([gone])), Value::Null);
            assert_eq!(ask(server, "eth_getTransactionByHash", json!([gone])), Value::Null);
        }
        assert_eq!(ask(server, "eth_getBlockByHash", json!([undone["blockHash"], false])), Value::Null);
        assert_eq!(ask(server, "eth_getBlockByNumber", json!([undone["blockNumber"], false])), Value::Null);
        assert!(time(server) < 99_000 + number(&before[0]["timestamp"]), "time is reverted, too");
        for used in [snapshot, later, json!("0x63")] {
            assert_eq!(ask(server, "evm_revert", json!([used])), false, "snapshot {used} is used up");
        }
        // The same transaction again, in another block; filters report it.
        ask(server, "evm_setAutomine", json!([true]));
        let again = mined(server, &call);
        assert_eq!(again["transactionHash"], undone["transactionHash"]);
        assert_eq!(again["blockNumber"], undone["blockNumber"]);
        let told = ask(server, "eth_getFilterChanges", json!([filter]));
        assert_eq!(told[0]["blockHash"], again["blockHash"], "{told}");
        assert_eq!(ask(server, "eth_getFilterChanges", json!([blocks])), json!([again["blockHash"]]));
        (counter, picture(server, &counter))
    });
    // The log contains the remaining chain.
    let restored = node::recover_state(RealDisk::existing(&data).expect("there"), Options::default(), &developers())
        .expect("sound");
    restored.ledger.audit().expect("all wei are there");
    drop(restored);
    with_developers(&data, move |server| {
        assert_eq!(picture(server, &counter), after, "a restart leads to the same state");
        assert_eq!(ask(server, "evm_revert", json!(["0x1"])), false, "snapshots end with the process");
        ask(server, "anvil_reset", json!([]));
        assert_eq!((height(server), wei(server, &key(1).address())), (0, 1_000 * ETHER));
        assert_eq!(mined(server, &signed(1, creation(0)))["blockNumber"], "0x1");
    });
}

#[test]
fn accounts_are_edited_and_every_wei_is_accounted_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let root_before = with_developers(&data, |server| {
        let (poor, counter) = (key(77).address(), Address([0xcc; 20]));
        ask(server, "anvil_setBalance", json!([poor.to_string(), format!("{:#x}", 3 * ETHER + 7)]));
        assert_eq!(wei(server, &poor), 3 * ETHER + 7);
        let spent = mined(server, &signed(77, EthereumRequest { value: ETHER, ..payment(0, Some(counter)) }));
        assert_eq!((&spent["status"], wei(server, &counter)), (&json!("0x1"), ETHER));
        ask(server, "hardhat_setBalance", json!([poor.to_string(), 0]));
        assert_eq!(wei(server, &poor), 0);
        // Code and storage of an address that nobody created.
        ask(server, "anvil_setCode", json!([counter.to_string(), hex(COUNTER)]));
        assert_eq!(ask(server, "eth_getCode", json!([counter.to_string(), "latest"])), hex(COUNTER));
        let word = |number: u8| format!("0x{number:064x}");
        assert_eq!(ask(server, "anvil_setStorageAt", json!([counter.to_string(), "0x0", word(41)])), true);
        mined(server, &signed(1, payment(0, Some(counter))));
        assert_eq!(ask(server, "eth_getStorageAt", json!([counter.to_string(), "0x0", "latest"])), word(42));
        ask(server, "anvil_setCode", json!([counter.to_string(), "0x"]));
        assert_eq!(ask(server, "eth_getCode", json!([counter.to_string(), "latest"])), "0x");
        ask(server, "anvil_setNonce", json!([poor.to_string(), "0x9"]));
        assert_eq!(ask(server, "eth_getTransactionCount", json!([poor.to_string(), "latest"])), "0x9");
        // Impossible edits are rejected with the reason, and change nothing.
        let at = height(server);
        for (method, params, why) in [
            ("anvil_setBalance", json!([poor.to_string(), format!("{:#x}", u128::MAX)]), "wei: more units"),
            ("anvil_setBalance", json!([poor.to_string(), format!("0x{}", "f".repeat(64))]), "wei: more units"),
            ("anvil_setNonce", json!([poor.to_string(), 3]), "the nonce is already 9"),
            ("anvil_setCode", json!([poor.to_string(), format!("0x{}", "00".repeat(24_577))]), "24577 bytes of code"),
            ("anvil_setCode", json!(["0x57616c7261730000000000000000000100000000", "0x00"]), "belongs to the exchange"),
            ("anvil_reset", json!([{"forking": {}}]), "forks no other one"),
            ("anvil_mine", json!(["0x989680"]), "at a time"),
        ] {
            let (code, message) = refused(server, method, params);
            assert!(code == -32_000 && message.contains(why), "{method}: {message}");
        }
        assert_eq!(refused(server, "anvil_setBalance", json!([poor.to_string(), "much"])).0, -32_602);
        assert_eq!(height(server), at);
        // Earlier heights are reported as they were.
        let early = json!([counter.to_string(), "0x0", "0x3"]);
        assert_eq!(ask(server, "eth_getStorageAt", early), word(0));
        assert_eq!(ask(server, "eth_getBalance", json!([poor.to_string(), "0x1"])), format!("{:#x}", 3 * ETHER + 7));
        root(server)
    });
    let disk = RealDisk::existing(&data).expect("there");
    let restored = node::recover_state(disk, Options::default(), &developers()).expect("sound");
    restored.ledger.audit().expect("given amounts count as issued, taken ones do not");
    assert_eq!(json!(restored.root.to_string()), root_before);
}

#[test]
fn blocks_and_time_are_the_developers() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let last = with_developers(&data, |server| {
        assert_eq!(ask(server, "evm_mine", json!([])), "0x0");
        assert_eq!(ask(server, "anvil_mine", json!(["0x3", "0x3c"])), Value::Null);
        assert_eq!(height(server), 4);
        let times: Vec<u128> = (2..5)
            .map(|at| number(&ask(server, "eth_getBlockByNumber", json!([format!("{at:#x}"), false]))["timestamp"]))
            .collect();
        assert!(times.windows(2).all(|two| two[1] - two[0] >= 59), "{times:?}");
        let (year, before) = (31_536_000, time(server));
        assert!(ask(server, "evm_increaseTime", json!([year])).as_u64().is_some_and(|ahead| ahead >= year));
        ask(server, "evm_mine", json!([]));
        assert!(time(server) >= before + u128::from(year));
        // The next block has the chosen time, with or without edits before it.
        let next = time(server) + 1;
        ask(server, "evm_setNextBlockTimestamp", json!([format!("{next:#x}")]));
        ask(server, "anvil_setBalance", json!([key(5).address().to_string(), "0x1"]));
        mined(server, &signed(1, payment(0, Some(Address([1; 20])))));
        assert_eq!(time(server), next);
        ask(server, "evm_mine", json!([{"timestamp": next + 500, "blocks": 2}]));
        assert!((next + 500..next + 560).contains(&time(server)));
        let (_, message) = refused(server, "evm_setNextBlockTimestamp", json!([5]));
        assert!(message.contains("5 is no time for the next block"), "{message}");
        assert!(refused(server, "evm_increaseTime", json!(["0xffffffffffffffff"])).1.contains("9999"));
        ask(server, "anvil_setBlockTimestampInterval", json!([10]));
        ask(server, "hardhat_mine", json!([2]));
        let stepped = time(server);
        ask(server, "hardhat_mine", json!([1]));
        assert_eq!(time(server), stepped + 10);
        assert_eq!(ask(server, "anvil_removeBlockTimestampInterval", json!([])), true);
        // Without automatic blocks a transaction stays pending until it is dropped or mined.
        assert_eq!(ask(server, "anvil_getAutomine", json!([])), true);
        ask(server, "evm_setAutomine", json!([false]));
        assert_eq!(ask(server, "hardhat_getAutomine", json!([])), false);
        let at = height(server);
        let dropped = send(server, &signed(1, payment(1, Some(Address([2; 20])))));
        assert_eq!(ask(server, "anvil_dropTransaction", json!([dropped])), dropped);
        assert_eq!(ask(server, "anvil_dropTransaction", json!([dropped])), Value::Null);
        let waiting = send(server, &signed(1, payment(1, Some(Address([3; 20])))));
        assert_eq!(ask(server, "eth_getTransactionReceipt", json!([waiting])), Value::Null);
        assert_eq!(height(server), at);
        ask(server, "evm_mine", json!([]));
        assert_eq!(ask(server, "eth_getTransactionReceipt", json!([waiting]))["blockNumber"], format!("{:#x}", at + 1));
        // A nonce above a gap makes no block.
        ask(server, "evm_setAutomine", json!([true]));
        send(server, &signed(1, payment(9, Some(Address([3; 20])))));
        assert_eq!(height(server), at + 1);
        ask(server, "evm_setIntervalMining", json!([1]));
        while height(server) == at + 1 {
            std::thread::yield_now();
        }
        let info = ask(server, "anvil_nodeInfo", json!([]));
        assert_eq!(info["environment"]["chainId"], CHAIN);
        time(server)
    });
    with_developers(&data, move |server| {
        ask(server, "evm_mine", json!([]));
        assert!(time(server) >= last, "the shifted time continues after a restart");
    });
}

#[test]
fn accounts_without_keys_are_impersonated() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let root_before = with_developers(&data, |server| {
        let (whale, to) = (Address([0x77; 20]), Address([0x88; 20]));
        ask(server, "anvil_setBalance", json!([whale.to_string(), format!("{:#x}", 9 * ETHER)]));
        let sent = json!({"from": whale.to_string(), "to": to.to_string(), "value": format!("{ETHER:#x}")});
        let (_, message) = refused(server, "eth_sendTransaction", json!([sent]));
        assert!(message.contains("no signer for"), "{message}");
        ask(server, "anvil_impersonateAccount", json!([whale.to_string()]));
        let accounts = ask(server, "eth_accounts", json!([]));
        assert!(accounts.as_array().is_some_and(|all| all.len() == 11 && all.contains(&json!(whale.to_string()))));
        let hash = ask(server, "eth_sendTransaction", json!([sent]));
        let receipt = ask(server, "eth_getTransactionReceipt", json!([hash]));
        assert_eq!((&receipt["status"], &receipt["from"]), (&json!("0x1"), &json!(whale.to_string())));
        let transaction = ask(server, "eth_getTransactionByHash", json!([hash]));
        assert_eq!((&transaction["from"], &transaction["nonce"]), (&json!(whale.to_string()), &json!("0x0")));
        assert_eq!(wei(server, &to), ETHER);
        // Another one with the same content has its own id and the next nonce.
        assert_ne!(ask(server, "eth_sendTransaction", json!([sent])), hash);
        ask(server, "hardhat_stopImpersonatingAccount", json!([whale.to_string()]));
        refused(server, "eth_sendTransaction", json!([sent]));
        ask(server, "anvil_autoImpersonateAccount", json!([true]));
        ask(server, "eth_sendTransaction", json!([sent]));
        assert_eq!(wei(server, &to), 3 * ETHER);
        root(server)
    });
    let disk = RealDisk::existing(&data).expect("there");
    let restored = node::recover_state(disk, Options::default(), &developers()).expect("sound");
    restored.ledger.audit().expect("all wei are there");
    assert_eq!(json!(restored.root.to_string()), root_before);
}

/// Impersonation is for multisigs, timelocks and vaults: a contract sends, in one block, and pool, executor and replay
/// agree on it.
#[test]
fn an_impersonated_contract_sends_in_one_block() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let root_before = with_developers(&data, |server| {
        let (vault, to) = (contract_address(&key(1).address(), 0).to_string(), Address([0x88; 20]));
        assert_eq!(mined(server, &signed(1, creation(0)))["status"], "0x1");
        ask(server, "anvil_setBalance", json!([vault, format!("{:#x}", 9 * ETHER)]));
        ask(server, "anvil_impersonateAccount", json!([vault]));
        let at = height(server);
        let sent = json!({"from": vault, "to": to.to_string(), "value": "0x1", "gas": "0x186a0"});
        let hash = ask(server, "eth_sendTransaction", json!([sent]));
        let receipt = ask(server, "eth_getTransactionReceipt", json!([hash]));
        assert_eq!((&receipt["status"], &receipt["from"]), (&json!("0x1"), &json!(vault)));
        assert_eq!((height(server), wei(server, &to)), (at + 1, 1));
        // Estimates and calls are for contracts, too.
        ask(server, "eth_sendTransaction", json!([{"from": vault, "to": to.to_string(), "value": "0x1"}]));
        assert_eq!(height(server), at + 2);
        root(server)
    });
    let disk = RealDisk::existing(&data).expect("there");
    let restored = node::recover_state(disk, Options::default(), &developers()).expect("sound");
    restored.ledger.audit().expect("all wei are there");
    assert_eq!(json!(restored.root.to_string()), root_before);
}

/// The genesis file of a developers' chain says so; this gives it another identity, and allows nothing else.
/// Blocks are synced when the node stops, so a machine that fails earlier may keep receipts of blocks that it lost. The
/// chain goes on from what it has, and what comes in their place has receipts of its own.
#[test]
fn a_machine_that_lost_the_newest_block_goes_on_without_its_receipts() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, failed) = (dir.path().join("data"), dir.path().join("failed"));
    let copy = failed.clone();
    let [kept, lost] = with_developers(&data.clone(), move |server| {
        let seen = [0, 1].map(|nonce| mined(server, &signed(1, payment(nonce, Some(Address([0xaa; 20]))))));
        // What the machine leaves when it fails now: the end of the newest block was not written.
        RealDisk::new(&copy).expect("made");
        for name in ["blocks", "receipts"].map(|log| format!("{log}-{:020}.log", 1)) {
            let bytes = std::fs::read(data.join(&name)).expect("a log");
            let torn = usize::from(name.starts_with("blocks"));
            std::fs::write(copy.join(&name), &bytes[..bytes.len() - torn]).expect("written");
        }
        seen
    });
    with_developers(&failed, move |server| {
        assert_eq!(height(server), number(&kept["blockNumber"]));
        assert_eq!(ask(server, "eth_getTransactionReceipt", json!([lost["transactionHash"]])), Value::Null);
        let other = mined(server, &signed(1, creation(1)));
        assert_eq!((&other["blockNumber"], &other["status"]), (&lost["blockNumber"], &json!("0x1")));
        assert_ne!(other["transactionHash"], lost["transactionHash"]);
        assert_eq!(mined(server, &signed(1, payment(2, Some(Address([0xaa; 20])))))["blockNumber"], "0x3");
    });
}

#[test]
fn its_genesis_says_so() {
    use founding::genesis_file::{parse, read, write};

    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("genesis.json");
    let ordinary = Genesis { is_developers: false, ..developers() };
    write(&path, &ordinary).expect("written");
    assert!(!std::fs::read_to_string(&path).expect("there").contains("developers"), "others do not name it");
    write(&path, &developers()).expect("written");
    assert_eq!(read(&path).expect("sound"), developers());
    assert_ne!(developers().digest(), ordinary.digest());
    let text = std::fs::read_to_string(&path).expect("there");
    for (from, to, expected) in [
        ("\"chain\": 31337", "\"chain\": 31338", "has the number 31337"),
        ("\"developers\": true", "\"developers\": 1", "invalid type"),
        ("\"developers\": true", "\"developer\": true", "unknown field `developer`"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = parse("genesis.json", text.replacen(from, to, 1).as_bytes()).expect_err("refused").to_string();
        assert!(error.contains(expected) && error.contains("genesis.json"), "{error}");
    }
}

/// No other chain has any of these methods, whether its number is 31337 or not.
#[test]
fn nowhere_else() {
    let methods = [
        "evm_mine",
        "anvil_mine",
        "hardhat_mine",
        "evm_snapshot",
        "evm_revert",
        "anvil_reset",
        "anvil_setBalance",
        "hardhat_setBalance",
        "anvil_setNonce",
        "anvil_setCode",
        "anvil_setStorageAt",
        "evm_increaseTime",
        "evm_setNextBlockTimestamp",
        "evm_setAutomine",
        "evm_setIntervalMining",
        "anvil_impersonateAccount",
        "anvil_nodeInfo",
        "eth_sendTransaction",
    ];
    for chain in [7, CHAIN] {
        let dir = tempfile::tempdir().expect("a directory");
        let ordinary = Genesis { chain, ..genesis() };
        with_node_of(&ordinary, config(), &dir.path().join("data"), move |server| {
            for method in methods {
                assert_eq!(refused(server, method, json!([])).0, -32_601, "{method}");
            }
            assert_eq!(ask(server, "eth_accounts", json!([])), json!([]));
            // An edit sent as a transaction is rejected.
            let edit = ledger::contracts::DeveloperEdit::Balance { account: key(1).address(), wei: 1 };
            assert_eq!(refused(server, "eth_sendRawTransaction", json!([hex(&edit.encode())])).0, -32_602);
            assert_eq!(height(server), 0);
        });
    }
    // Strangers cannot use an open door of a developers' chain either.
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let dir = tempfile::tempdir().expect("a directory");
    for opened in 0..3 {
        let mut config = instant();
        match opened {
            0 => config.http.listen = "0.0.0.0:0".parse().expect("an address"),
            1 => config.ethereum.listen = "0.0.0.0:0".parse().expect("an address"),
            _ => config.http.behind_proxy = true,
        }
        let started = runtime.block_on(Node::start(config, &developers(), &dir.path().join("data"), None));
        let Err(error) = started else { panic!("an open door") };
        assert!(matches!(error, StartError::Developers(_)), "{error}");
    }
}

/// The operator names rules that the program does not know. Their first block is made by nobody: the node says what it
/// needs, goes on answering, and the chain can be reverted to before the approval counted.
#[test]
fn a_developers_chain_stops_before_rules_that_its_program_does_not_know() {
    let charter = CharterTerms { operator: holder().public().address(), notice_min: 2, ..CharterTerms::default() };
    let genesis = Genesis { rules: 11, charter, ..developers() };
    let mut config = instant();
    config.network.newest_rules = Some(11);
    let dir = tempfile::tempdir().expect("a directory");
    with_node_of(&genesis.clone(), config, &dir.path().join("data"), move |server| {
        ask(server, "hardhat_mine", json!(["0x1"]));
        let snapshot = ask(server, "evm_snapshot", json!([]));
        let upgrade = Upgrade { rules: 12, manifest: manifest(12).expect("known here"), notice: 2 };
        let operation = Operation::Approve { upgrade, at: 1 };
        let body = Body { chain: CHAIN, account: holder().public().address(), sequence: 1, until: 1_000, operation };
        let approval = borsh::to_vec(&body.sign(&genesis.digest(), &holder())).expect("in memory");
        let kind = "Content-Type: application/octet-stream\r\n";
        let (status, answer) = post_to(server.http, "/v1/transactions?wait=committed", kind, &approval);
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
        let (_, why) = refused(server, "hardhat_mine", json!(["0x10"]));
        assert!(why.contains("rules 12"), "{why}");
        assert_eq!(height(server), 3, "the last height before them");
        let (_, why) = refused(server, "anvil_setBalance", json!([Address([0xaa; 20]).to_string(), "0x5"]));
        assert!(why.contains("rules 12"), "{why}");
        assert_eq!(ask(server, "evm_revert", json!([snapshot])), true);
        ask(server, "hardhat_mine", json!(["0x10"]));
        assert_eq!(height(server), 17, "it never was");
    });
}
