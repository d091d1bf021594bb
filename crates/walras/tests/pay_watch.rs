//! A watcher that gets receipts which contradict each other.

// The other tests use the rest of it.
#[allow(dead_code)]
mod process;
mod purses;

use std::os::unix::fs::DirBuilderExt;

use payments::{
    Claim, LaneAnswer, LaneCommittee, Output, OutputId, Payment, PaymentBody, PaymentCertificate, Recipient,
    SpentOutput, StatementKind,
};
use primitives::{Address, AssetId, Digest, SecretKey, Signature, to_hex};
use process::{agent, get};
use purses::Network;
use serde_json::Value;

/// The keys of a committee that the test holds, and the owner of an output of the genesis.
fn held(number: u8) -> SecretKey {
    SecretKey::from_seed([number + 1; 32])
}

/// A slip of a payment of the genesis' output to an account, signed by these members.
fn signed_by(members: [u8; 3], network: Digest, account: u8) -> String {
    let (id, owner) = (OutputId::of_genesis(&network, 0, 0), held(9).public());
    let output = Output { to: Recipient::Account(Address([account; 20])), asset: AssetId(1), amount: 100 };
    let inputs = vec![SpentOutput { id, asset: output.asset, amount: output.amount }];
    let body = PaymentBody::new(Payment { network, home: 0, into: 0, owner, inputs, outputs: vec![output] });
    let committee = LaneCommittee::new(network, 0, (0..4).map(|member| vec![held(member).public()]).collect());
    let claim = Claim { kind: StatementKind::Confirmation, owner: &owner, digest: &body.digest };
    let answer = |validator| {
        let (position, signature) = (1, Signature([0; 64]));
        let mut answer = LaneAnswer { validator, size: 1, index: 0, position, signature, path: Vec::new() };
        answer.signature = held(validator).sign(&answer.header(&committee, &claim).expect("a leaf").bytes());
        answer
    };
    let (payment, mut bytes) = (body.payment.encode(), vec![1, 2]);
    bytes.extend(network.0);
    bytes.extend((payment.len() as u16).to_le_bytes());
    bytes.extend(payment);
    PaymentCertificate::Answers(members.map(answer).to_vec()).write(&mut bytes);
    format!("WALRAS:{}\n", to_hex(&bytes).to_uppercase())
}

/// Members 2 and 3 confirm two payments of one output, members 0 and 1 one each: the watcher that gets both receipts
/// accuses members 2 and 3 only.
#[test]
fn a_watcher_accuses_who_confirmed_two_payments_of_one_output() {
    let members: Vec<Vec<String>> = (0..4).map(|member| vec![held(member).public().to_string()]).collect();
    let output = serde_json::json!([{"to": held(9).public().to_string(), "asset": "EUR", "amount": "100"}]);
    let network = Network::founded(4, 100_000, &[], |genesis| {
        genesis["lane"]["members"] = serde_json::json!(members);
        genesis["lane"]["outputs"] = output.clone();
    });
    let issuer = network.path("issuer-key.json");
    let issuer = issuer.to_str().expect("text");
    let lane = || get(&agent(), network.server(), "/v1/lane").1;
    let id: Digest = lane()["network"].as_str().expect("a digest").parse().expect("a digest");
    let accounts: Vec<Value> = lane()["accounts"].as_array().expect("accounts").clone();
    let stakes = || {
        let (_, registry) = get(&agent(), network.server(), "/v1/validators");
        let entries = registry["validators"].as_array().expect("a registry").clone();
        let units = |of: &Value| of["stake"].as_str().expect("units").parse::<u64>().expect("a number");
        let stake = |account: &Value| units(entries.iter().find(|one| one["account"] == *account).expect("staked"));
        accounts.iter().map(stake).collect::<Vec<u64>>()
    };
    let before = stakes();
    let watched = network.path("watched");
    std::fs::DirBuilder::new().mode(0o700).create(&watched).expect("made");
    std::fs::write(watched.join("a.txt"), signed_by([0, 2, 3], id, 7)).expect("written");
    // One certificate contradicts nobody.
    assert_eq!(network.look(issuer)["accused"], 0);
    assert_eq!(lane()["convicted"], serde_json::json!([]));
    std::fs::write(watched.join("b.txt"), signed_by([1, 2, 3], id, 8)).expect("written");
    let looked = network.look(issuer);
    assert_eq!((&looked["accused"], &looked["failed"]), (&2.into(), &serde_json::json!([])), "{looked}");
    assert_eq!(lane()["convicted"], serde_json::json!([2, 3]));
    // It has not stored its accusations, and sees that the ledger has them.
    assert_eq!(network.look(issuer)["accused"], 0);
    let (after, part) = (stakes(), |units: u64| units - units / 16);
    assert_eq!(after, [before[0], before[1], part(before[2]), part(before[3])], "only theirs are slashed");
}
