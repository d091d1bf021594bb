//! What tools of 2026 ask for: blocks that are imagined, transactions that are waited for, rules, and calls with more
//! gas than a transaction may have.

use crate::developer::{create, height, mined, signed, wei, with_developers};
use crate::door::*;
use ledger::contracts::EthereumRequest;
use primitives::Address;
use serde_json::{Value, json};

/// Returns the gas that is left.
const GAS: &[u8] = &[0x5a, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3];
/// Returns and raises slot 0.
const COUNTS: &[u8] = &[0x5f, 0x54, 0x80, 0x60, 1, 0x01, 0x5f, 0x55, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3];
/// Returns the number of the block.
const NUMBER: &[u8] = &[0x43, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3];

fn word(number: u128) -> String {
    format!("0x{number:064x}")
}

/// A call is no transaction: it has the gas that it names, up to the limit of the node, and is refused above. It is
/// never cut in silence, neither by the cap of transactions nor by the gas of a block nor by what its sender has.
#[test]
fn a_call_has_the_gas_that_it_names_or_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let at = create(server, 0, GAS).to_string();
        let block = ask(server, "eth_getBlockByNumber", json!(["latest", false]))["gasLimit"].clone();
        let seen = |gas: u128| {
            let called = ask(server, "eth_call", json!([{"to": at, "gas": format!("{gas:#x}")}, "latest"]));
            number(&json!(format!("0x{}", called.as_str().expect("a word")[2..].trim_start_matches('0'))))
        };
        for gas in [100_000, 1 << 24, (1 << 24) + 1, 30_000_000, 50_000_000, number(&block) + 1] {
            assert!(seen(gas) < gas && seen(gas) > gas - 22_000, "{gas}");
        }
        let most = 8 << 24;
        assert!(seen(most) > most - 22_000);
        let above = json!({"to": at, "gas": format!("{:#x}", most + 1)});
        for (method, params) in [
            ("eth_call", json!([above, "latest"])),
            ("eth_createAccessList", json!([above, "latest"])),
            ("debug_traceCall", json!([above, "latest", {}])),
        ] {
            let (code, message) = refused(server, method, params);
            assert!(code == -32_005 && message.contains("at most"), "{method}: {message}");
        }
        let traced = json!([{"to": at, "gas": "0x2faf080"}, "latest", {"tracer": "callTracer"}]);
        assert_eq!(ask(server, "debug_traceCall", traced)["gas"], "0x2faf080");
        // With a price, the sender must be able to pay for all that it names.
        let poor = Address([0x77; 20]).to_string();
        let rich = json!({&poor: {"balance": format!("{:#x}", 1_000_000 * 20 * GWEI)}});
        let price = format!("{:#x}", 20 * GWEI);
        let priced = |gas: &str| json!([{"from": poor, "to": at, "gas": gas, "gasPrice": price}, "latest", rich]);
        assert!(ask(server, "eth_call", priced("0xf4240")).is_string());
        assert!(refused(server, "eth_call", priced("0xf4241")).1.contains("insufficient funds"));
        // No transaction has more than the cap, so no estimate is above it.
        let loops = json!([{"data": "0x5b5f56", "gas": "0x2faf080"}]);
        assert!(refused(server, "eth_estimateGas", loops).1.contains("allowance (16777216)"));
    });
}

/// Each call finds what those before it wrote, in its block and in earlier ones; nothing stays.
#[test]
fn simulated_blocks_build_on_each_other_and_leave_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let counter = create(server, 0, COUNTS).to_string();
        let (at, from) = (height(server), key(1).address().to_string());
        let call = json!({"from": from, "to": counter});
        let numbers = json!({ &Address([0x69; 20]).to_string(): {"code": hex(NUMBER)} });
        let asked = json!({"blockStateCalls": [
            {"calls": [call, call]},
            {"blockOverrides": {"number": format!("{:#x}", at + 4), "time": "0xffffffff"}, "stateOverrides": numbers,
             "calls": [call, {"to": Address([0x69; 20]).to_string()}]},
            {"stateOverrides": {&counter: {"state": {word(0): word(40)}}}, "calls": [call]},
            {"stateOverrides": {&counter: {"state": {}}}, "calls": [call]},
        ]});
        let blocks = ask(server, "eth_simulateV1", json!([asked, "latest"]));
        let blocks = blocks.as_array().expect("blocks");
        let of = |block: &Value| -> Vec<String> {
            let calls = block["calls"].as_array().expect("calls").iter();
            calls.map(|call| call["returnData"].as_str().expect("a word").to_string()).collect()
        };
        let returned: Vec<Vec<String>> = blocks.iter().map(of).collect();
        let expected =
            [vec![word(0), word(1)], vec![], vec![], vec![word(2), word(at + 4)], vec![word(40)], vec![word(0)]];
        assert_eq!(returned, expected);
        for (above, block) in (1..).zip(blocks) {
            assert_eq!(number(&block["number"]), at + above);
        }
        for pair in blocks.windows(2) {
            assert_eq!(pair[1]["parentHash"], pair[0]["hash"]);
            assert!(number(&pair[1]["timestamp"]) > number(&pair[0]["timestamp"]));
        }
        assert_eq!(blocks[3]["timestamp"], "0xffffffff");
        let first = &blocks[0];
        let used: u128 = first["calls"].as_array().expect("calls").iter().map(|call| number(&call["gasUsed"])).sum();
        assert_eq!(number(&first["gasUsed"]), used);
        assert!(first["transactions"][0] != first["transactions"][1], "the nonce rises");
        assert_eq!(ask(server, "eth_getStorageAt", json!([counter, "0x0", "latest"])), word(0));
        assert_eq!(height(server), at);
    });
}

/// Transfers of wei are logs where asked, in their order; failures have codes; a transaction that is invalid fails the
/// request where it is validated, and only there.
#[test]
fn simulated_calls_fail_by_the_published_codes_and_transfers_are_logs() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let counter = create(server, 0, COUNTER);
        let (from, to) = (key(1).address().to_string(), Address([0xaa; 20]).to_string());
        let one = |more: Value, call: Value| {
            let mut asked = json!({"blockStateCalls": [{"calls": [call]}]});
            asked.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            asked
        };
        let pays = json!({"from": from, "to": to, "value": "0x5"});
        let simulated = |asked: Value| ask(server, "eth_simulateV1", json!([asked]))[0].clone();
        let block = simulated(one(json!({"traceTransfers": true, "returnFullTransactions": true}), pays.clone()));
        let log = &block["calls"][0]["logs"][0];
        assert_eq!(log["address"], format!("0x{}", "ee".repeat(20)));
        assert_eq!((&log["data"], &log["blockHash"]), (&json!(word(5)), &block["hash"]));
        assert_eq!(block["transactions"][0]["value"], "0x5");
        assert_eq!(block["transactions"][0]["hash"], log["transactionHash"]);
        assert_eq!(simulated(one(json!({}), pays.clone()))["calls"][0]["logs"], json!([]));
        let logged = simulated(one(json!({}), json!({"from": from, "to": counter.to_string()})));
        assert_eq!(logged["calls"][0]["logs"].as_array().map(Vec::len), Some(1));
        let reverts = simulated(one(json!({}), json!({"from": from, "to": counter.to_string(), "data": "0x01"})));
        let failed = &reverts["calls"][0];
        assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("0x0"), &json!(3)));
        let halts = simulated(one(json!({}), json!({"from": from, "data": "0xfe"})));
        assert_eq!(halts["calls"][0]["error"]["code"], -32_015);
        let checked = json!({"validation": true});
        let most = format!("{:#x}", 20 * GWEI);
        let fee = json!({"from": from, "to": to, "value": "0x5", "maxFeePerGas": most, "gas": "0x5208"});
        let before = wei(server, &key(1).address());
        assert_eq!(simulated(one(checked.clone(), fee.clone()))["calls"][0]["status"], "0x1");
        assert_eq!(wei(server, &key(1).address()), before);
        let with = |name: &str, value: &str| {
            let mut call = fee.clone();
            call[name] = value.into();
            one(checked.clone(), call)
        };
        let code = |asked: Value| refused(server, "eth_simulateV1", json!([asked])).0;
        assert_eq!(code(with("nonce", "0x0")), -38_010);
        assert_eq!(code(with("nonce", "0x63")), -38_011);
        assert_eq!(code(with("maxFeePerGas", "0x1")), -38_012);
        assert_eq!(code(with("gas", "0x5207")), -38_013);
        assert_eq!(code(with("value", "0xffffffffffffffffffffffff")), -38_014);
        assert_eq!(code(one(json!({}), json!({"from": to, "to": from, "value": "0x1"}))), -38_014);
        let block_of = |block: Value| json!({"blockStateCalls": [{"blockOverrides": block}]});
        assert_eq!(code(block_of(json!({"number": "0x0"}))), -38_020);
        assert_eq!(code(block_of(json!({"time": "0x1"}))), -38_021);
        assert_eq!(code(block_of(json!({"number": "0xffffffffffffffffffff"}))), -38_026);
        let small = json!({"blockStateCalls": [{"blockOverrides": {"gasLimit": "0x5208"}, "calls": [pays, pays]}]});
        assert_eq!(code(small), -38_013, "the second call has no gas left");
        let large = json!({"blockStateCalls": [{"blockOverrides": {"gasLimit": "0x5208"}, "calls": [fee, fee]}]});
        assert_eq!(code(large), -38_015);
        for wrong in [json!({}), json!({"blockStateCalls": []}), json!({"blockStateCalls": [7]}), json!([])] {
            assert_eq!(code(wrong), -32_602);
        }
    });
}

/// A transaction is answered with its receipt; where no block has it in time, with its hash.
#[test]
fn a_transaction_that_is_waited_for_is_answered_with_its_receipt() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("chain"), |server| {
        let bytes = key(1).sign(&payment(0, Some(Address([0xaa; 20]))));
        let sent = request("eth_sendRawTransactionSync", json!([hex(&bytes), 30_000]));
        let answer = post(server, &sent.to_string()).1;
        // A machine that is too busy to make a block in half a minute answers with the hash.
        let late = &answer["error"]["data"];
        let receipt = if late.is_string() { receipt(server, late) } else { answer["result"].clone() };
        assert_eq!((&receipt["status"], receipt["blockNumber"].is_string()), (&json!("0x1"), true));
        assert_eq!(ask(server, "eth_sendRawTransactionSync", json!([hex(&bytes)])), receipt, "it is answered again");
        assert_eq!(refused(server, "eth_sendRawTransactionSync", json!([hex(&bytes), "soon"])).0, -32_602);
    });
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        ask(server, "evm_setAutomine", json!([false]));
        let bytes = signed(1, payment(0, Some(Address([0xaa; 20]))));
        let body = request("eth_sendRawTransactionSync", json!([hex(&bytes), 50]));
        let error = post(server, &body.to_string()).1["error"].clone();
        assert_eq!(error["code"], 4, "{error}");
        ask(server, "evm_mine", json!([]));
        assert_eq!(receipt(server, &error["data"])["status"], "0x1", "it stays accepted");
        ask(server, "evm_setAutomine", json!([true]));
        let next = json!([hex(&signed(1, payment(1, Some(Address([0xaa; 20])))))]);
        assert_eq!(ask(server, "eth_sendRawTransactionSync", next)["status"], "0x1");
    });
}

/// The rules by EIP-7910, and a word for methods of other nodes.
#[test]
fn the_rules_of_contracts_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let config = ask(server, "eth_config", json!([]));
        let current = &config["current"];
        assert_eq!((&config["next"], &config["last"]), (&Value::Null, &Value::Null));
        assert_eq!((&current["chainId"], &current["activationTime"]), (&json!("0x7a69"), &json!(0)));
        assert_eq!(current["precompiles"]["P256VERIFY"], format!("0x{:040x}", 0x100));
        assert_eq!(current["precompiles"].as_object().map(serde_json::Map::len), Some(18), "those of Osaka");
        assert_eq!((&current["blobSchedule"]["max"], &current["blobSchedule"]["target"]), (&json!(0), &json!(0)));
        assert_eq!(current["systemContracts"], json!({}));
        assert_eq!(current["forkId"].as_str().map(str::len), Some(10));
        let (code, message) = refused(server, "trace_filter", json!([{}]));
        assert!(code == -32_601 && message.contains("trace_block"), "{message}");
    });
}

/// What hardhat's helpers choose for the next blocks: calls see it at once, blocks have it, and a restart replays it.
#[test]
fn a_developer_chooses_coinbase_random_number_and_gas_of_blocks() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    // COINBASE, PREVRANDAO and GASLIMIT in slots 0 to 2.
    let sees = [0x41, 0x5f, 0x55, 0x44, 0x60, 1, 0x55, 0x45, 0x60, 2, 0x55, 0x00];
    let chosen = Address([0xc0; 20]);
    let (at, root) = with_developers(&data, move |server| {
        let at = create(server, 0, &sees);
        let slots = |server: Server| {
            [0, 1, 2]
                .map(|slot| ask(server, "eth_getStorageAt", json!([at.to_string(), format!("{slot:#x}"), "latest"])))
        };
        let usual = number(&ask(server, "eth_getBlockByNumber", json!(["latest", false]))["gasLimit"]);
        assert_eq!(ask(server, "hardhat_setCoinbase", json!([chosen.to_string()])), Value::Null);
        assert_eq!(ask(server, "hardhat_setPrevRandao", json!([word(77)])), Value::Null);
        assert_eq!(ask(server, "evm_setBlockGasLimit", json!(["0x30d40"])), true);
        mined(server, &signed(1, EthereumRequest { gas_limit: 200_000, max_tip: GWEI, ..payment(1, Some(at)) }));
        let padded = format!("0x{:0>64}", &chosen.to_string()[2..]);
        assert_eq!(slots(server), [json!(padded), json!(word(77)), json!(word(200_000))]);
        let block = ask(server, "eth_getBlockByNumber", json!(["latest", true]));
        assert_eq!((&block["miner"], &block["gasLimit"]), (&json!(chosen.to_string()), &json!("0x30d40")));
        assert_eq!((&block["mixHash"], block["transactions"].as_array().map(Vec::len)), (&json!(word(77)), Some(1)));
        assert!(wei(server, &chosen) > 0, "it receives the tips");
        // The random number was for one block; the others stay.
        mined(server, &signed(1, EthereumRequest { gas_limit: 200_000, ..payment(2, Some(at)) }));
        assert_ne!(slots(server)[1], word(77));
        assert_eq!(slots(server)[2], word(200_000));
        let above = signed(1, EthereumRequest { gas_limit: 200_001, ..payment(3, Some(at)) });
        assert!(refused(server, "eth_sendRawTransaction", json!([hex(&above)])).1.contains("exceeds block gas limit"));
        for wrong in [json!(["0x0"]), json!([format!("{:#x}", usual + 1)])] {
            assert_eq!(refused(server, "hardhat_setBlockGasLimit", wrong).0, -32_602);
        }
        let token = "0x57616c7261730000000000000000000000000001";
        assert!(refused(server, "hardhat_setCoinbase", json!([token])).1.contains("belongs to the exchange"));
        // hardhat's helper takes nothing but true and false.
        let unknown = format!("0x{}", "11".repeat(32));
        assert_eq!(ask(server, "hardhat_dropTransaction", json!([unknown])), false);
        assert_eq!(ask(server, "anvil_dropTransaction", json!([unknown])), Value::Null);
        ask(server, "evm_setAutomine", json!([false]));
        let hash = send(server, &signed(1, payment(3, Some(at))));
        assert_eq!(ask(server, "hardhat_dropTransaction", json!([hash])), true);
        (at, slots(server))
    });
    with_developers(&data, move |server| {
        let again = [0, 1, 2]
            .map(|slot| ask(server, "eth_getStorageAt", json!([at.to_string(), format!("{slot:#x}"), "latest"])));
        assert_eq!(again, root, "a restart replays the blocks with what was chosen for them");
    });
}

/// Clients such as go-ethereum's refuse a block whose root does not fit its list of transactions, and a signature that
/// is zero in part. So an empty block has the root of an empty list, and impersonated accounts, zero among them, have
/// signatures.
#[test]
fn every_block_has_a_form_that_strict_clients_read() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        const EMPTY: &str = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
        let nobody = Address([0; 20]).to_string();
        ask(server, "anvil_setBalance", json!([nobody, format!("{:#x}", 100 * ETHER)]));
        ask(server, "anvil_impersonateAccount", json!([nobody]));
        for price in [json!({}), json!({"gasPrice": format!("{:#x}", 20 * GWEI)})] {
            let mut call = json!({"from": nobody, "to": key(1).address().to_string(), "value": "0x1", "gas": "0x5208"});
            call.as_object_mut().expect("an object").extend(price.as_object().expect("an object").clone());
            ask(server, "eth_sendTransaction", json!([call]));
        }
        ask(server, "evm_mine", json!([]));
        for at in 0..=height(server) {
            let block = ask(server, "eth_getBlockByNumber", json!([format!("{at:#x}"), true]));
            let transactions = block["transactions"].as_array().expect("a list");
            assert_eq!(block["transactionsRoot"] == EMPTY, transactions.is_empty(), "{block}");
            for one in transactions {
                assert!(one["r"] != "0x0" && one["s"] != "0x0", "{one}");
            }
        }
    });
}
