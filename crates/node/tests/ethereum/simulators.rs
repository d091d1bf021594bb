//! What local simulators and test runners ask a development node for, as anvil and geth answer it.

use crate::developer::{create, mined, signed, wei, with_developers};
use crate::door::*;
use ledger::contracts::ethereum::{Address as EvmAddress, keccak256};
use ledger::contracts::{CREATE2_DEPLOYER, EthereumRequest};
use primitives::Address;
use serde_json::{Value, json};

/// Adds its input to slot 0, and keeps its caller in slot 1.
const KEEPER: &[u8] = &[0x5f, 0x35, 0x5f, 0x54, 0x01, 0x5f, 0x55, 0x33, 0x60, 1, 0x55, 0];

fn word(number: u128) -> String {
    format!("0x{number:064x}")
}

/// Hardhat's helpers and others look at the name; a token shows code that they can run, and facts that it reads.
#[test]
fn tools_recognise_the_chain_and_find_what_they_deploy_through() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let version = ask(server, "web3_clientVersion", json!([]));
        assert!(version.as_str().is_some_and(|name| name.starts_with("anvil/Walras/v")), "{version}");
        let metadata = ask(server, "hardhat_metadata", json!([]));
        assert_eq!((&metadata["clientVersion"], &metadata["chainId"]), (&version, &json!(31_337)));
        let token = "0x57616c7261730000000000000000000000000001";
        assert!(ask(server, "eth_getCode", json!([token, "latest"])).as_str().is_some_and(|code| code.len() > 1_000));
        let slot = hex(&keccak256("decimals").0);
        assert_eq!(ask(server, "eth_getStorageAt", json!([token, slot, "latest"])), word(6));
        // A contract is created through the deployer, at the address that follows from salt and code.
        let deployer = CREATE2_DEPLOYER.to_string();
        assert_eq!(deployer, "0x4e59b44847b379578588920ca78fbf26c0b4956c");
        let code = [&[0x60, KEEPER.len() as u8, 0x80, 0x60, 9, 0x5f, 0x39, 0x5f, 0xf3], KEEPER].concat();
        let request = EthereumRequest {
            data: [&[7; 32][..], &code].concat(),
            gas_limit: 1_000_000,
            ..payment(0, Some(CREATE2_DEPLOYER))
        };
        assert_eq!(mined(server, &signed(1, request))["status"], "0x1");
        let at = EvmAddress::new(CREATE2_DEPLOYER.0).create2_from_code([7; 32], &code);
        assert_eq!(ask(server, "eth_getCode", json!([at.to_string().to_lowercase(), "latest"])), hex(KEEPER));
    });
}

/// The pool as geth shows it: what can be executed, and what is above a gap.
#[test]
fn the_pool_is_shown_by_sender_and_nonce() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        ask(server, "evm_setAutomine", json!([false]));
        let to = Address([0xaa; 20]);
        let hashes: Vec<Value> =
            [0, 1, 5].map(|nonce| send(server, &signed(1, payment(nonce, Some(to))))).into_iter().collect();
        send(server, &signed(2, payment(3, Some(to))));
        assert_eq!(ask(server, "txpool_status", json!([])), json!({"pending": "0x2", "queued": "0x2"}));
        let content = ask(server, "txpool_content", json!([]));
        let sender = key(1).address().checked().to_string();
        assert_eq!(content["pending"][&sender]["1"]["hash"], hashes[1]);
        assert_eq!(content["queued"][&sender]["5"]["hash"], hashes[2]);
        assert_eq!(content["queued"].as_object().map(serde_json::Map::len), Some(2));
        let from = ask(server, "txpool_contentFrom", json!([key(1).address().to_string()]));
        assert_eq!((&from["pending"], &from["queued"]), (&content["pending"][&sender], &content["queued"][&sender]));
        let words = ask(server, "txpool_inspect", json!([]))["pending"][&sender]["0"].clone();
        assert_eq!(words, format!("{to}: 0 wei + 200000 gas × {} wei", 20 * GWEI));
        assert_eq!(
            ask(server, "eth_getRawTransactionByHash", json!([hashes[0]])),
            hex(&signed(1, payment(0, Some(to))))
        );
        ask(server, "anvil_removePoolTransactions", json!([key(2).address().to_string()]));
        assert_eq!(ask(server, "txpool_status", json!([])), json!({"pending": "0x2", "queued": "0x1"}));
        ask(server, "anvil_dropAllTransactions", json!([]));
        assert_eq!(ask(server, "txpool_status", json!([])), json!({"pending": "0x0", "queued": "0x0"}));
    });
}

/// The accounts before a transaction and what it changes, of a transaction, a call and a block; and the access list.
#[test]
fn what_is_touched_is_traced_and_listed() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let keeper = create(server, 0, KEEPER);
        let (at, sender) = (keeper.to_string(), key(1).address().to_string());
        let add = |nonce: u64, units: u8| {
            let data = [&[0; 31][..], &[units]].concat();
            mined(server, &signed(1, EthereumRequest { data, ..payment(nonce, Some(keeper)) }))
        };
        add(1, 3);
        let hash = add(2, 4)["transactionHash"].clone();
        let trace = |config: Value| {
            let options = json!({"tracer": "prestateTracer", "tracerConfig": config});
            ask(server, "debug_traceTransaction", json!([hash, options]))
        };
        let before = trace(json!({}));
        assert_eq!((&before[&at]["code"], &before[&sender]["nonce"]), (&json!(hex(KEEPER)), &json!(2)));
        assert_eq!(before[&at]["storage"], json!({ word(0): word(3), word(1): word_of(&sender) }));
        let difference = trace(json!({"diffMode": true}));
        assert_eq!(difference["pre"][&at]["storage"], json!({ word(0): word(3) }), "slot 1 stays as it was");
        assert_eq!(difference["post"][&at], json!({"storage": { word(0): word(7) }}));
        assert_eq!(difference["post"][&sender]["nonce"], 3);
        assert!(number(&difference["post"][&sender]["balance"]) < number(&difference["pre"][&sender]["balance"]));
        let call = json!({"from": sender, "to": at, "data": word(1)});
        let called = ask(server, "debug_traceCall", json!([call, "latest", {"tracer": "prestateTracer"}]));
        assert_eq!(called[&at]["storage"][word(0)], word(7));
        let height = ask(server, "eth_blockNumber", json!([]));
        let block = ask(server, "debug_traceBlockByNumber", json!([height, {"tracer": "callTracer"}]));
        assert_eq!((&block[0]["txHash"], &block[0]["result"]["to"]), (&hash, &json!(at)));
        let list = ask(server, "eth_createAccessList", json!([call]));
        assert_eq!(list["accessList"], json!([{"address": at, "storageKeys": [word(0), word(1)]}]));
        assert!(list.get("error").is_none() && number(&list["gasUsed"]) > 21_000);
        let mut listed = call.clone();
        listed["accessList"] = list["accessList"].clone();
        assert!(number(&list["gasUsed"]) <= number(&ask(server, "eth_estimateGas", json!([listed]))));
    });
}

fn word_of(address: &str) -> String {
    format!("0x{:0>64}", &address[2..])
}

/// A dumped state is loaded into another chain; and the base fee of the next block is chosen.
#[test]
fn states_are_dumped_and_loaded() {
    let dir = tempfile::tempdir().expect("a directory");
    let (keeper, state) = with_developers(&dir.path().join("one"), |server| {
        let keeper = create(server, 0, KEEPER);
        let data = [&[0; 31][..], &[9]].concat();
        mined(server, &signed(1, EthereumRequest { data, value: 5, ..payment(1, Some(keeper)) }));
        (keeper, ask(server, "anvil_dumpState", json!([])))
    });
    with_developers(&dir.path().join("other"), move |server| {
        let at = keeper.to_string();
        assert_eq!(ask(server, "eth_getCode", json!([at, "latest"])), "0x");
        let sent = json!([state]);
        assert_eq!(ask(server, "anvil_loadState", sent.clone()), true);
        assert_eq!(ask(server, "eth_getCode", json!([at, "latest"])), hex(KEEPER));
        assert_eq!(ask(server, "eth_getStorageAt", json!([at, "0x0", "latest"])), word(9));
        assert_eq!(
            (wei(server, &keeper), number(&ask(server, "eth_getTransactionCount", json!([at, "latest"])))),
            (5, 1)
        );
        let owner = key(1).address();
        assert_eq!(ask(server, "eth_getTransactionCount", json!([owner.to_string(), "latest"])), "0x2");
        assert!(wei(server, &owner) < 1_000 * ETHER, "its fees are paid here, too");
        // The same once more, and what is no state.
        assert_eq!(ask(server, "anvil_loadState", sent), true);
        for (wrong, why) in [("0x1f8b08", "gzip"), ("0x7b7d", "no accounts"), ("0x00", "no JSON")] {
            let (code, message) = refused(server, "anvil_loadState", json!([wrong]));
            assert!(code == -32_602 && message.contains(why), "{message}");
        }
        ask(server, "hardhat_setNextBlockBaseFeePerGas", json!([format!("{:#x}", 9 * GWEI)]));
        let paid = mined(server, &signed(1, payment(2, Some(Address([0xaa; 20])))));
        let block = ask(server, "eth_getBlockByNumber", json!([paid["blockNumber"], false]));
        assert_eq!(number(&block["baseFeePerGas"]), 9 * GWEI);
        ask(server, "anvil_addBalance", json!([at, "0x2"]));
        assert_eq!(wei(server, &keeper), 7);
        ask(server, "evm_setIntervalMining", json!([3]));
        assert_eq!(ask(server, "anvil_getIntervalMining", json!([])), 3);
    });
}

/// The ten accounts sign messages, typed data and transactions, as wallets do; others do not.
#[test]
fn messages_typed_data_and_transactions_are_signed() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let owner = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
        // The signer of a hash, by the precompile.
        let signer = |hash: &[u8], signature: &Value| {
            let text = signature.as_str().expect("a signature");
            let (r, s, v) = (&text[2..66], &text[66..130], &text[130..]);
            let input = format!("{}{v:0>64}{r}{s}", hex(hash));
            let recover = format!("0x{:0>40}", 1);
            let word = ask(server, "eth_call", json!([{"to": recover, "data": input}]));
            format!("0x{}", &word.as_str().expect("a word")[26..])
        };
        let hash = keccak256(b"\x19Ethereum Signed Message:\n5hello");
        let signed = ask(server, "personal_sign", json!([hex(b"hello"), owner]));
        assert_eq!(signed, ask(server, "eth_sign", json!([owner, hex(b"hello")])));
        assert_eq!(signer(&hash.0, &signed), owner);
        let data = json!({
            "types": {"Vote": [{"name": "yes", "type": "bool"}]},
            "primaryType": "Vote",
            "domain": {"name": "Test", "chainId": 31_337},
            "message": {"yes": true},
        });
        let typed = ask(server, "eth_signTypedData_v4", json!([owner, data]));
        assert_eq!(typed, ask(server, "eth_signTypedData_v4", json!([owner, data.to_string()])));
        ask(server, "anvil_setBalance", json!([owner, format!("{:#x}", ETHER)]));
        let sent = json!([{"from": owner, "to": Address([0xaa; 20]).to_string(), "value": "0x3"}]);
        let raw = ask(server, "eth_signTransaction", sent);
        let hash = ask(server, "eth_sendRawTransaction", json!([raw]));
        let receipt = ask(server, "eth_getTransactionReceipt", json!([hash]));
        assert_eq!((&receipt["status"], &receipt["from"]), (&json!("0x1"), &json!(owner)));
        let other = key(1).address().to_string();
        assert!(refused(server, "personal_sign", json!(["0x00", other])).1.contains("no key for"));
    });
}
