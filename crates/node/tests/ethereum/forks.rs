//! Forks by height, as tools see them.

use crate::developer::{height, mined, on_developers, signed};
use crate::door::*;
use ledger::contracts::EthereumRequest;
use ledger::{Fork, ForkSchedule};
use primitives::Address;
use serde_json::{Value, json};

/// Returns the number of the slot, which Amsterdam has (EIP-7843).
const SLOT: &str = "0x4b5f5260205ff3";

fn hex_number(number: u64) -> Value {
    json!(format!("{number:#x}"))
}

/// `eth_config`, calls, estimates, the pool, blocks and traces agree about the height at which a fork begins.
#[test]
fn everything_follows_the_fork_of_its_height() {
    let dir = tempfile::tempdir().expect("a directory");
    let steps = vec![(0, Fork::Osaka), (2, Fork::Bpo1), (5, Fork::Amsterdam)];
    let forks = ForkSchedule::new(steps).expect("sound");
    on_developers(forks, &dir.path().join("data"), |server| {
        let config = |field: &str| ask(server, "eth_config", json!([]))[field].clone();
        let first = config("current");
        assert_eq!((&first["activationBlock"], &first["activationTime"]), (&hex_number(0), &json!(0)));
        assert_eq!(
            (&config("next")["activationBlock"], &config("last")["activationBlock"]),
            (&hex_number(2), &hex_number(5))
        );
        assert_eq!(config("next")["activationTime"], Value::Null, "nobody knows it yet");
        ask(server, "hardhat_mine", json!(["0x3"]));
        let second = config("current");
        assert_eq!((&second["activationBlock"], &config("next")), (&hex_number(2), &config("last")));
        assert!(second["activationTime"].as_u64().is_some_and(|time| time > 0));
        assert_eq!(second["blobSchedule"]["baseFeeUpdateFraction"], 8_346_193);
        assert_ne!(second["forkId"], first["forkId"]);
        // The newest block is 3: the next one is of Osaka still, the one after it of Amsterdam.
        let fresh = |byte: u8| Address([byte; 20]).to_string();
        let paid = |byte: u8| json!([{"from": key(1).address().to_string(), "to": fresh(byte), "value": "0x5"}]);
        assert_eq!(ask(server, "eth_estimateGas", paid(0xaa)), "0x5208");
        let receipt = mined(server, &signed(1, payment(0, Some(Address([0xaa; 20])))));
        assert_eq!((&receipt["gasUsed"], &receipt["logs"]), (&json!("0x5208"), &json!([])));
        assert_eq!(height(server), 4);
        let gas = ask(server, "eth_estimateGas", paid(0xbb));
        assert!(number(&gas) > 100_000, "a new account costs gas of the state (EIP-8037): {gas}");
        let to = Some(Address([0xbb; 20]));
        let pays = |gas_limit| signed(1, EthereumRequest { gas_limit, value: 5, ..payment(1, to) });
        let (_, message) = refused(server, "eth_sendRawTransaction", json!([hex(&pays(12_000))]));
        assert!(message.contains("intrinsic gas too low"), "{message}");
        let receipt = mined(server, &pays(number(&gas) as u64));
        assert_eq!(
            (&receipt["status"], &receipt["gasUsed"], &receipt["blockNumber"]),
            (&json!("0x1"), &gas, &json!("0x5"))
        );
        assert_eq!(receipt["logs"].as_array().map(Vec::len), Some(1), "moved wei are logged (EIP-7708)");
        let traced =
            ask(server, "debug_traceTransaction", json!([receipt["transactionHash"], {"tracer": "callTracer"}]));
        assert_eq!(traced["gasUsed"], gas);
        assert_eq!((&config("next"), &config("current")["activationBlock"]), (&Value::Null, &hex_number(5)));
        assert_eq!(ask(server, "anvil_nodeInfo", json!([]))["hardFork"], "amsterdam");
        let call = |at: &str| {
            let code = json!({fresh(0xcc): {"code": SLOT}});
            json!([{"to": fresh(0xcc)}, at, code])
        };
        assert!(refused(server, "eth_call", call("0x4")).1.contains("opcode"), "it is not known at that height");
        assert_eq!(ask(server, "eth_call", call("0x5")), format!("0x{:064x}", 5));
        let simulated = ask(
            server,
            "eth_simulateV1",
            json!([{"blockStateCalls": [
            {"stateOverrides": {fresh(0xcc): {"code": SLOT}}, "calls": [{"to": fresh(0xcc)}]}]}, "latest"]),
        );
        assert_eq!(simulated[0]["calls"][0]["status"], "0x1", "{simulated}");
    });
}
