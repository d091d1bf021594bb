//! The bridge as the ledger uses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use payments::*;
use primitives::Address;

use super::*;

pub const HEIGHTS: u64 = 12;

pub fn bridge_rules() -> BridgeRules {
    BridgeRules {
        network: NETWORK,
        schedule: LaneSchedule { epoch_heights: HEIGHTS, halt_heights: 5 },
        case_deposit: 3,
        lapse_penalty: 100_000,
        outflow: BTreeMap::new(),
        registrars: Vec::new(),
        bls: LaneBls::None,
    }
}

pub fn bridge(coins: &[Holding], committees: &[usize]) -> Bridge {
    let outputs: Vec<Output> = coins.iter().map(|coin| coin.output).collect();
    let (mut bridge, _) = Bridge::new(bridge_rules(), &outputs);
    (0..).zip(committees).for_each(|(epoch, n)| bridge.register(epoch, Quorums::new(*n)));
    bridge
}

pub fn contested(coin: &Holding, home: HomeEpoch, number: u64) -> ContestedOutput {
    let output = SpentOutput { id: coin.id, asset: coin.output.asset, amount: coin.output.amount };
    ContestedOutput { output, home, owner: owner(number).public() }
}

pub fn body(payment: &SignedPayment) -> Arc<PaymentBody> {
    Arc::new(PaymentBody::parse(&payment.payment).expect("well-formed"))
}

pub fn exit_of(contested: &ContestedOutput) -> Arc<PaymentBody> {
    Arc::new(PaymentBody::new(contested.exit(NETWORK)))
}

/// One block with these facts, each checked as the ledger does.
pub fn block(bridge: &mut Bridge, facts: Vec<BridgeFact>) -> Vec<BridgeEvent> {
    let facts: Vec<BridgeFact> = facts.into_iter().filter(|fact| bridge.check(fact).is_ok()).collect();
    let mut events = bridge.begin();
    // A block writes exactly the entries that a trie of the state needs.
    let all = |bridge: &Bridge| bridge.entries().map(|entry| (entry.key, entry.value)).collect::<BTreeMap<_, _>>();
    let mut expected = all(bridge);
    let (applied, entries) = bridge.step(facts);
    for BridgeEntry { key, value } in entries {
        match value {
            Some(_) => {
                let before = expected.insert(key, value);
                let is_open = key[..8] == [u8::MAX; 8];
                assert!(before.is_none() || is_open, "permanent entries are written once");
            }
            None => drop(expected.remove(&key)),
        }
    }
    assert_eq!(all(bridge), expected);
    events.extend(applied);
    let parsed = Bridge::parse(bridge_rules(), &bridge.encode()).expect("a state has one encoding");
    assert_eq!(parsed, *bridge);
    events
}

pub fn verdicts(events: &[BridgeEvent]) -> Vec<(OutputId, Verdict)> {
    let verdict = |event: &BridgeEvent| match event {
        BridgeEvent::Case(CaseEvent::Ruled(contested, verdict)) => Some((contested.output.id, *verdict)),
        _ => None,
    };
    events.iter().filter_map(verdict).collect()
}

pub fn credits(events: &[BridgeEvent]) -> Vec<(Address, u64)> {
    let credit = |event: &BridgeEvent| match event {
        BridgeEvent::Credit { to, amount, .. } => Some((*to, *amount)),
        _ => None,
    };
    events.iter().filter_map(credit).collect()
}

pub fn open(contested: ContestedOutput) -> BridgeFact {
    BridgeFact::Resolve { opener: Address([1; 20]), bid: 3, cases: vec![(contested, None)] }
}

pub fn vote(case: &Holding, validator: u8, payment: &Arc<PaymentBody>) -> BridgeFact {
    BridgeFact::Vote { case: case.id, validator, payment: payment.clone() }
}
