//! Traces and access lists as geth gives them: what never happened is not shown, and what is shown can be found again.

use crate::developer::{create, mined, signed, with_developers};
use crate::door::*;
use ledger::contracts::{EthereumKey, EthereumRequest, OFFERS};
use primitives::Address;
use serde_json::{Value, json};

/// Logs a word.
const LOGS: &[u8] = &[0x60, 0xaa, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xa0, 0x00];
/// Reverts without a reason.
const REVERTS: &[u8] = &[0x5f, 0x5f, 0xfd];
const LOG: &[u8] = &[0x5f, 0x5f, 0xa0];

/// Calls an account with 65,535 gas, and drops the result.
fn calls(to: &Address) -> Vec<u8> {
    let head = [0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x73];
    [&head[..], &to.0, &[0x61, 0xff, 0xff, 0xf1, 0x50]].concat()
}

/// Creates a contract by this code of at most 32 bytes, and drops the result.
fn creates(code: &[u8]) -> Vec<u8> {
    let place = 32 - code.len() as u8;
    let push = [&[0x5f + code.len() as u8], code].concat();
    [&push[..], &[0x5f, 0x52, 0x60, code.len() as u8, 0x60, place, 0x5f, 0xf0, 0x50]].concat()
}

fn to(account: Address, nonce: u64) -> Vec<u8> {
    signed(1, EthereumRequest { gas_limit: 1_000_000, ..payment(nonce, Some(account)) })
}

/// A delegation of an account without transactions, as a call names it.
fn delegates(authority: &EthereumKey, to: &Address) -> Value {
    let signed = authority.delegate(to, 31_337, 0);
    json!({
        "chainId": "0x7a69", "address": to.to_string(), "nonce": "0x0", "yParity": format!("{:#x}", signed.y_parity()),
        "r": format!("{:#x}", signed.r()), "s": format!("{:#x}", signed.s()),
    })
}

fn call_trace(server: Server, hash: &Value) -> Value {
    let options = json!({"tracer": "callTracer", "tracerConfig": {"withLog": true}});
    ask(server, "debug_traceTransaction", json!([hash, options]))
}

/// The logs of a call and of those below it, with whether any call above failed.
fn all_logs(call: &Value, failed: bool, to: &mut Vec<(Value, bool)>) {
    let failed = failed || call.get("error").is_some();
    let list = |name: &str| call[name].as_array().cloned().unwrap_or_default();
    to.extend(list("logs").into_iter().map(|log| (log, failed)));
    list("calls").iter().for_each(|inner| all_logs(inner, failed, to));
}

/// Logs of a call below a frame that reverts never happened. Those that did have the index of their receipt, also
/// those of the exchange's own addresses, and their place among the calls of their frame.
#[test]
fn a_reverted_frame_has_no_logs_and_each_log_has_its_position_and_index() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let logs = create(server, 0, LOGS);
        let reverts = create(server, 1, &[&calls(&logs)[..], REVERTS].concat());
        let code = [LOG, &calls(&reverts), &calls(&logs), LOG, &[0x00]].concat();
        let top = create(server, 2, &code);
        ask(server, "evm_setAutomine", json!([false]));
        let [_, hash] = [send(server, &to(logs, 3)), send(server, &to(top, 4))];
        ask(server, "evm_mine", json!([]));
        let receipt = receipt(server, &hash);
        let trace = call_trace(server, &hash);
        let mut found = Vec::new();
        all_logs(&trace, false, &mut found);
        assert!(found.iter().all(|(_, failed)| !failed), "{trace}");
        let indexes = |logs: &[Value], name: &str| {
            let mut all: Vec<u128> = logs.iter().map(|log| number(&log[name])).collect();
            all.sort_unstable();
            all
        };
        let found: Vec<Value> = found.into_iter().map(|(log, _)| log).collect();
        let said = receipt["logs"].as_array().expect("logs");
        assert_eq!(indexes(&found, "index"), [1, 2, 3]);
        assert_eq!(indexes(&found, "index"), indexes(said, "logIndex"));
        let positions: Vec<&Value> =
            trace["logs"].as_array().expect("logs").iter().map(|log| &log["position"]).collect();
        assert_eq!(positions, ["0x0", "0x2"]);
        // A whole block is traced with the same indexes, and a token's logs are among them.
        let block = json!([receipt["blockNumber"], {"tracer": "callTracer", "tracerConfig": {"withLog": true}}]);
        assert_eq!(ask(server, "debug_traceBlockByNumber", block)[1]["result"], trace);
        ask(server, "evm_setAutomine", json!([true]));
        let token: Address = "0x57616c7261730000000000000000000000000001".parse().expect("an address");
        let data = [&[0x09, 0x5e, 0xa7, 0xb3][..], &[0; 31], &[7], &[0; 31], &[5]].concat();
        let approved = mined(server, &signed(1, EthereumRequest { data, ..payment(5, Some(token)) }));
        let trace = call_trace(server, &approved["transactionHash"]);
        let shown = trace["logs"].as_array().expect("a token logs an approval");
        assert_eq!((shown.len(), &shown[0]["topics"]), (1, &approved["logs"][0]["topics"]));
        assert_eq!((&shown[0]["index"], &shown[0]["position"]), (&json!("0x0"), &json!("0x0")));
    });
}

/// Calls itself with all gas, again and again.
const RECURSES: &[u8] = &[0x5b, 0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x30, 0x5a, 0xf1, 0x50, 0x5f, 0x56];

/// What is asked of an entry of a list: type, how many calls it made, its place, and its error.
fn outline(entry: &Value) -> Value {
    json!([entry["type"], entry["subtraces"], entry["traceAddress"], entry["error"]])
}

/// Lists show each call once, with its place; a precompile only where it is asked for, and what failed why it did.
#[test]
fn calls_are_listed_with_their_places_in_the_tree() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let logs = create(server, 0, LOGS);
        let outer = create(server, 1, &[&calls(&logs)[..], REVERTS].concat());
        let identity = Address(std::array::from_fn(|at| if at == 19 { 4 } else { 0 }));
        let code = [calls(&outer), calls(&identity), creates(&[0x5f, 0xff]), creates(&[0xfe]), vec![0x00]];
        let top = create(server, 2, &code.concat());
        let seen = mined(server, &to(top, 3));
        let hash = &seen["transactionHash"];
        let list = ask(server, "trace_transaction", json!([hash]));
        let entries = list.as_array().expect("a list");
        let outlines: Vec<Value> = entries.iter().map(outline).collect();
        let expected = json!([
            ["call", 3, [], null],
            ["call", 1, [0], "Reverted"],
            ["call", 0, [0, 0], null],
            ["create", 1, [1], null],
            ["suicide", 0, [1, 0], null],
            ["create", 0, [2], "Bad instruction"],
        ]);
        assert_eq!(json!(outlines), expected);
        let place = json!([seen["blockHash"], number(&seen["blockNumber"]) as u64, hash, 0]);
        for one in entries {
            let found =
                json!([one["blockHash"], one["blockNumber"], one["transactionHash"], one["transactionPosition"]]);
            assert_eq!(found, place);
        }
        // The outermost call has what the transaction itself leaves: its gas without the cost of a payment.
        let (action, result) = (&entries[0]["action"], &entries[0]["result"]);
        assert_eq!((&action["callType"], &action["to"]), (&json!("call"), &json!(top.to_string())));
        assert_eq!(number(&action["gas"]), 1_000_000 - 21_000);
        assert_eq!(number(&result["gasUsed"]), number(&seen["gasUsed"]) - 21_000);
        assert_eq!((&entries[1]["result"]["output"], &entries[5]["result"]), (&json!("0x"), &Value::Null));
        assert_eq!(entries[4]["action"]["address"], entries[3]["result"]["address"]);
        assert_eq!(ask(server, "trace_block", json!([seen["blockNumber"]])), list);
        // As geth has them: with the gas of the transaction, and its own words.
        let flat = |config: Value| {
            let options = json!({"tracer": "flatCallTracer", "tracerConfig": config});
            ask(server, "debug_traceTransaction", json!([hash, options])).as_array().cloned().expect("a list")
        };
        let of_geth = flat(json!({}));
        assert_eq!((of_geth.len(), &of_geth[1]["error"]), (6, &json!("execution reverted")));
        assert_eq!(
            (&of_geth[0]["action"]["gas"], &of_geth[0]["result"]["gasUsed"]),
            (&json!("0xf4240"), &seen["gasUsed"])
        );
        let whole = flat(json!({"includePrecompiles": true, "convertParityErrors": true}));
        assert_eq!(outline(&whole[0]), json!(["call", 4, [], null]));
        assert_eq!(whole[3]["action"]["to"], identity.to_string());
        assert_eq!(whole[1]["error"], "Reverted");
    });
}

/// A replay tells what the transaction returned, beside the same list; what else a replay has elsewhere is refused.
#[test]
fn a_replay_has_traces_alone_and_says_where_the_rest_is() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let seven = create(server, 0, &[0x60, 0x07, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3]);
        let halts = create(server, 1, &[0xfe]);
        let (seen, halted) = (mined(server, &to(seven, 2)), mined(server, &to(halts, 3)));
        let replay = |of: &Value| ask(server, "trace_replayTransaction", json!([of["transactionHash"], ["trace"]]));
        let replayed = replay(&seen);
        assert_eq!(replayed["output"], format!("0x{:064x}", 7));
        assert_eq!(replayed["trace"], ask(server, "trace_transaction", json!([seen["transactionHash"]])));
        assert_eq!((&replayed["stateDiff"], &replayed["vmTrace"]), (&Value::Null, &Value::Null));
        assert_eq!(replay(&halted)["output"], "0x");
        let block = ask(server, "trace_replayBlockTransactions", json!([seen["blockNumber"], ["trace"]]));
        assert_eq!(
            (&block[0]["transactionHash"], &block[0]["output"]),
            (&seen["transactionHash"], &replayed["output"])
        );
        for kinds in [json!([]), json!(["trace", "vmTrace"]), json!(["stateDiff"]), json!("trace")] {
            let (code, message) = refused(server, "trace_replayTransaction", json!([seen["transactionHash"], kinds]));
            assert!(code == -32_602 && message.contains("prestateTracer"), "{kinds}: {code} {message}");
        }
    });
}

/// The place of a deep call is as long as the call is deep: calls that a tree holds can make a list of gigabytes.
#[test]
fn a_list_of_deep_calls_is_refused_before_it_fills_the_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let deep = json!({"to": create(server, 0, RECURSES).to_string(), "gas": "0x4c4b40"});
        let (code, message) = refused(server, "debug_traceCall", json!([deep, "latest", {"tracer": "flatCallTracer"}]));
        assert!(code == -32_005 && message.contains("the list has more than 16 MiB"), "{code} {message}");
        let top = json!({"tracer": "callTracer", "tracerConfig": {"onlyTopCall": true}});
        assert_eq!(ask(server, "debug_traceCall", json!([deep, "latest", top]))["error"], "out of gas");
    });
}

/// No contract is at the address of a creation that failed, and what a halted one leaves is no output.
#[test]
fn a_creation_that_failed_names_no_address() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let endings: [&[u8]; 4] =
            [REVERTS, &[0xfe], &[0x60, 0x01, 0x5f, 0xf3], &[0x60, 0xef, 0x5f, 0x53, 0x60, 0x01, 0x5f, 0xf3]];
        let code: Vec<u8> = endings.iter().flat_map(|code| creates(code)).chain([0x00]).collect();
        let top = create(server, 0, &code).to_string();
        let call = json!([{"to": top, "gas": "0xf00000"}, "latest", {"tracer": "callTracer"}]);
        let trace = ask(server, "debug_traceCall", call);
        let creations = trace["calls"].as_array().expect("creations");
        let shown: Vec<_> = creations
            .iter()
            .map(|one| {
                (one["error"].as_str().unwrap_or("created"), one.get("to").is_some(), one.get("output").is_some())
            })
            .collect();
        let expected = [
            ("execution reverted", false, false),
            ("invalid opcode", false, false),
            ("created", true, true),
            ("invalid code: must not begin with 0xef", false, false),
        ];
        assert_eq!(shown, expected);
        let outer = json!([{"data": hex(REVERTS)}, "latest", {"tracer": "callTracer"}]);
        let trace = ask(server, "debug_traceCall", outer);
        assert_eq!((trace["type"].as_str(), trace.get("to")), (Some("CREATE"), None));
    });
}

/// The refund counter belongs to the transaction, so a callee sees what its caller has collected.
#[test]
fn the_refund_of_a_step_is_that_of_the_transaction() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let other = create(server, 0, &[0x5f, 0x50, 0x00]);
        // With a word that is not zero it keeps it; otherwise it clears the slot and calls.
        let code = [
            &[0x5f, 0x35, 0x80, 0x15, 0x60, 0x0a, 0x57, 0x5f, 0x55, 0x00, 0x5b, 0x50, 0x5f, 0x5f, 0x55],
            &calls(&other)[..],
            &[0x00],
        ];
        let clears = create(server, 1, &code.concat());
        let with = |nonce: u64, word: u8| {
            let data = [&[0; 31][..], &[word]].concat();
            mined(server, &signed(1, EthereumRequest { data, ..payment(nonce, Some(clears)) }))
        };
        with(2, 7);
        let cleared = with(3, 0);
        let trace = ask(server, "debug_traceTransaction", json!([cleared["transactionHash"], {}]));
        let steps = trace["structLogs"].as_array().expect("steps");
        let at = steps.iter().position(|step| step["op"] == "SSTORE").expect("it clears");
        assert!(steps[..=at].iter().all(|step| step.get("refund").is_none()));
        assert!(steps[at + 1..].iter().all(|step| step["refund"] == 4_800), "{trace}");
        assert_eq!(steps.iter().filter(|step| step["depth"] == 2).count(), 3);
        // A delegation of an account that exists is refunded in part, before the first step.
        let call = json!({"to": other.to_string(), "authorizationList": [delegates(&key(2), &other)]});
        let trace = ask(server, "debug_traceCall", json!([call, "latest", {}]));
        let steps = trace["structLogs"].as_array().expect("steps");
        assert!(steps.len() == 3 && steps.iter().all(|step| step["refund"] == 12_500), "{trace}");
    });
}

/// `enableReturnData` shows what the last call of a frame returned.
#[test]
fn steps_show_what_the_last_call_returned_where_asked() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let seven = create(server, 0, &[0x60, 0x07, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3]);
        let top = create(server, 1, &[&calls(&seven)[..], &[0x00]].concat()).to_string();
        let traced = |options: Value| ask(server, "debug_traceCall", json!([{"to": top}, "latest", options]));
        let word = format!("0x{:064x}", 7);
        let steps = traced(json!({"enableReturnData": true}))["structLogs"].clone();
        let last = steps.as_array().and_then(|steps| steps.last()).expect("steps");
        assert_eq!((&last["op"], &last["returnData"]), (&json!("STOP"), &json!(word)));
        assert!(steps[0].get("returnData").is_none());
        assert!(!traced(json!({})).to_string().contains("returnData"));
    });
}

/// Naming what is warm anyway costs gas and saves nothing: sender, target, what it delegates to, authorities,
/// precompiles, contracts that the call creates.
#[test]
fn an_access_list_names_nothing_that_is_warm_anyway() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let (target, other) = (create(server, 0, &[0x00]), create(server, 1, &[0x00]));
        let authority = key(9);
        let sender = key(1).address();
        let precompile = Address(std::array::from_fn(|at| u8::from(at == 19)));
        let warm = [calls(&authority.address()), calls(&sender), calls(&precompile), creates(&[0x00])].concat();
        let top = create(server, 2, &[&warm[..], &calls(&other), &[0x00]].concat());
        let delegation = delegates(&authority, &target);
        let named = |call: Value| -> Vec<Value> {
            let list = ask(server, "eth_createAccessList", json!([call, "latest"]));
            list["accessList"].as_array().expect("a list").iter().map(|one| one["address"].clone()).collect()
        };
        let from = sender.to_string();
        let call = json!({"from": from, "to": top.to_string(), "authorizationList": [delegation], "gas": "0x100000"});
        // The authority is warm; what it delegates to is not, and is paid for when the authority is called.
        let mut found = named(call);
        found.sort_by_key(|address| address.to_string());
        let mut expected = vec![json!(other.to_string()), json!(target.to_string())];
        expected.sort_by_key(|address| address.to_string());
        assert_eq!(found, expected);
        // Without the list, the authority is an account like any other.
        let mut expected = vec![json!(other.to_string()), json!(authority.address().to_string())];
        expected.sort_by_key(|address| address.to_string());
        let mut found = named(json!({"from": from, "to": top.to_string(), "gas": "0x100000"}));
        found.sort_by_key(|address| address.to_string());
        assert_eq!(found, expected);
        assert!(named(json!({"from": from, "to": OFFERS.to_string(), "gas": "0x100000"})).is_empty());
    });
}
