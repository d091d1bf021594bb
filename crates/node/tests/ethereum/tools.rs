//! Details that wallets, simulators and test runners rely on, each as they expect it.

use crate::developer::{create, height, mined, signed, time, wei, with_developers};
use crate::door::*;
use ledger::contracts::EthereumRequest;
use primitives::Address;
use serde_json::{Value, json};

/// The first of the accounts that a developers' chain sends for.
const OWNER: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// Gives the first account money.
fn fund(server: Server) {
    ask(server, "anvil_setBalance", json!([OWNER, format!("{:#x}", 100 * ETHER)]));
}

/// Reverts before a time, given in seconds.
fn opens_at(seconds: u128) -> Vec<u8> {
    let [.., a, b, c, d] = (seconds as u64).to_be_bytes();
    vec![0x63, a, b, c, d, 0x42, 0x10, 0x60, 0x0b, 0x57, 0x00, 0x5b, 0x5f, 0x5f, 0xfd]
}

/// Returns the time of the block.
const CLOCK: &[u8] = &[0x42, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3];

/// A transaction will see the moved time, so its estimate, and calls, see it too.
#[test]
fn estimates_and_calls_see_the_moved_time() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        fund(server);
        ask(server, "evm_mine", json!([]));
        let opens = time(server) + 3_600;
        let gate = create(server, 0, &opens_at(opens)).to_string();
        let clock = create(server, 1, CLOCK).to_string();
        let sent = json!({"from": OWNER, "to": gate});
        let now = || number(&json!(ask(server, "eth_call", json!([{"to": clock}])).as_str().expect("a word")));
        assert_eq!(refused(server, "eth_estimateGas", json!([sent])).0, 3);
        assert_eq!(now(), time(server), "nothing has moved");
        ask(server, "evm_increaseTime", json!([7_200]));
        assert!(now() >= opens && now() > time(server));
        ask(server, "eth_estimateGas", json!([sent]));
        let hash = ask(server, "eth_sendTransaction", json!([sent]));
        assert_eq!(ask(server, "eth_getTransactionReceipt", json!([hash]))["status"], "0x1");
        assert_eq!(now(), time(server), "the block has the moved time");
        let next = time(server) + 10_000;
        ask(server, "evm_setNextBlockTimestamp", json!([format!("{next:#x}")]));
        assert_eq!(now(), next);
        let past = json!([{"to": clock}, format!("{:#x}", height(server))]);
        assert_eq!(number(&ask(server, "eth_call", past)), time(server), "a height that is named has its own time");
        ask(server, "evm_mine", json!([]));
        assert_eq!((now(), time(server)), (next, next));
        ask(server, "anvil_setBlockTimestampInterval", json!([7]));
        assert_eq!(now(), next + 7);
    });
}

/// A price for gas makes a legacy transaction that pays it, and one of type 1 with an access list.
#[test]
fn a_gas_price_makes_a_legacy_transaction() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        fund(server);
        let to = Address([0xaa; 20]).to_string();
        let sent = |more: Value| {
            let mut request = json!({"from": OWNER, "to": to, "value": "0x1", "gas": "0x7530"});
            request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let hash = ask(server, "eth_sendTransaction", json!([request]));
            let receipt = ask(server, "eth_getTransactionReceipt", json!([hash]));
            assert_eq!((&receipt["status"], &receipt["from"]), (&json!("0x1"), &json!(OWNER)));
            assert_eq!(ask(server, "eth_getTransactionByHash", json!([hash]))["type"], receipt["type"]);
            (receipt["type"].clone(), number(&receipt["effectiveGasPrice"]))
        };
        let price = format!("{:#x}", 20 * GWEI);
        assert_eq!(sent(json!({"gasPrice": price})), (json!("0x0"), 20 * GWEI));
        let list = json!([{"address": to, "storageKeys": []}]);
        assert_eq!(sent(json!({"gasPrice": price, "accessList": list})), (json!("0x1"), 20 * GWEI));
        assert_eq!(sent(json!({"maxFeePerGas": price, "maxPriorityFeePerGas": "0x0"})).0, "0x2");
        assert_eq!(sent(json!({"accessList": list})).0, "0x2");
        assert_eq!(sent(json!({})).0, "0x2");
    });
}

/// Calls and estimates replace parts of accounts and of the block for themselves, and nothing stays of it.
#[test]
fn calls_replace_accounts_and_parts_of_the_block() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let at = Address([0x69; 20]).to_string();
        let counter = create(server, 0, COUNTER).to_string();
        mined(server, &signed(1, payment(1, Some(counter.parse().expect("an address")))));
        let word = |number: u128| format!("0x{number:064x}");
        let called = |code: &str, more: Value, block: Value| {
            let mut account = json!({"code": code});
            account.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            ask(server, "eth_call", json!([{"to": at}, "latest", {&at: account}, block]))
        };
        assert_eq!(called("0x602a60005260206000f3", json!({}), json!(null)), word(42));
        assert_eq!(called("0x475f5260205ff3", json!({"balance": "0x7"}), json!(null)), word(7));
        // SLOAD(0) of its own storage, as a difference and as a whole.
        let slots = json!({ word(0): word(9) });
        assert_eq!(called("0x5f545f5260205ff3", json!({"stateDiff": slots}), json!(null)), word(9));
        let read = |replaced: Value| {
            let code = json!({"code": "0x5f54600154015f5260205ff3"});
            let mut account = code;
            account.as_object_mut().expect("an object").extend(replaced.as_object().expect("an object").clone());
            ask(server, "eth_call", json!([{"to": counter}, "latest", {&counter: account}]))
        };
        let other = json!({ word(1): word(5) });
        assert_eq!(read(json!({"stateDiff": other})), word(6), "slot 0 is 1");
        assert_eq!(read(json!({"state": other})), word(5), "slot 0 is empty");
        // NUMBER, TIMESTAMP and COINBASE.
        assert_eq!(called("0x435f5260205ff3", json!({}), json!({"number": "0x63"})), word(0x63));
        assert_eq!(called("0x425f5260205ff3", json!({}), json!({"time": "0x64"})), word(0x64));
        assert_eq!(
            called("0x415f5260205ff3", json!({}), json!({"feeRecipient": Address([0; 20]).to_string()})),
            word(0)
        );
        // Money that it does not have.
        let poor = Address([0x77; 20]).to_string();
        let sent = json!({"from": poor, "to": at, "value": "0x5"});
        assert!(refused(server, "eth_estimateGas", json!([sent])).1.contains("insufficient funds"));
        let rich = json!({&poor: {"balance": "0x5"}});
        assert_eq!(ask(server, "eth_estimateGas", json!([sent, "latest", rich])), "0x5208");
        // A holder's units of a token.
        let token = "0x57616c7261730000000000000000000000000001";
        let holder = format!("0x{:0>64}", &poor[2..]);
        let input = format!("0x70a08231{}", &holder[2..]);
        let units = json!({token: {"stateDiff": {&holder: word(11)}}});
        assert_eq!(ask(server, "eth_call", json!([{"to": token, "data": input}, "latest", units])), word(11));
        assert_eq!(ask(server, "eth_call", json!([{"to": at}, "latest", {}])), "0x");
        assert_eq!(ask(server, "eth_getCode", json!([at, "latest"])), "0x");
        let trace = json!([{"to": at}, "latest", {"tracer": "callTracer", "stateOverrides": {&at: {"code": "0x00"}}}]);
        assert_eq!(ask(server, "debug_traceCall", trace)["type"], "CALL");
        for (replaced, block) in [
            (json!({&at: {"codes": "0x"}}), json!({})),
            (json!({&at: {"state": slots, "stateDiff": slots}}), json!({})),
            (json!({token: {"code": "0x00"}}), json!({})),
            (json!({"0x12": {}}), json!({})),
            (json!({}), json!({"blobs": 1})),
        ] {
            assert_eq!(refused(server, "eth_call", json!([{"to": at}, "latest", replaced, block])).0, -32_602);
        }
    });
}

/// Failures have the words that tools look for, and no names of the interpreter.
#[test]
fn failures_have_the_usual_words() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        // Writes the rest of the gas to slot 0 until SSTORE finds 2,300 or less.
        let sentry = create(server, 0, &[0x5b, 0x5a, 0x5f, 0x55, 0x5f, 0x56]);
        let call = json!({"to": sentry.to_string(), "gas": "0x186a0"});
        assert_eq!(refused(server, "eth_call", json!([call, "latest"])), (-32_000, "out of gas".into()));
        let request = EthereumRequest { gas_limit: 100_000, ..payment(1, Some(sentry)) };
        let hash = mined(server, &signed(1, request))["transactionHash"].clone();
        let trace = ask(server, "debug_traceTransaction", json!([hash, {"tracer": "callTracer"}]));
        assert_eq!(trace["error"], "out of gas");
        let steps = ask(server, "debug_traceTransaction", json!([hash]));
        let last = steps["structLogs"].as_array().and_then(|all| all.last()).expect("steps").clone();
        assert_eq!((&last["op"], &last["error"]), (&json!("SSTORE"), &json!("out of gas")));
        for (code, words) in [
            ("0x60015f5f3e", "return data out of bounds"),
            ("0xfe", "invalid opcode"),
            ("0x50", "stack underflow"),
            ("0x5f56", "invalid jump destination"),
            ("0x60ef5f5360015ff3", "invalid code: must not begin with 0xef"),
            ("0x6160015ff3", "max code size exceeded"),
        ] {
            let (_, message) = refused(server, "eth_call", json!([{"data": code}]));
            assert_eq!(message, words, "{code}");
        }
        let foreign = json!({"to": sentry.to_string(), "chainId": "0x1"});
        assert!(refused(server, "eth_call", json!([foreign])).1.contains("chainId does not match"));
        let short = json!({"from": key(1).address().to_string(), "to": sentry.to_string(), "gas": "0x1"});
        assert!(refused(server, "eth_call", json!([short])).1.starts_with("intrinsic gas too low"));
        assert!(wei(server, &key(1).address()) > 0);
    });
}
