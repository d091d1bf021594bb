//! A block costs what it changes: steps and bytes are counted, not time.

use super::*;
use crate::LaneBls;

const NETWORK: Digest = Digest([3; 32]);

fn rules() -> BridgeRules {
    BridgeRules {
        network: NETWORK,
        schedule: LaneSchedule { epoch_heights: 1_000, halt_heights: 5 },
        case_deposit: 3,
        lapse_penalty: 0,
        outflow: BTreeMap::from([(AssetId(0), OutflowLimit { most: 10, per_height: 1 })]),
        registrars: Vec::new(),
        bls: LaneBls::None,
    }
}

fn coin(number: u32) -> Output {
    Output { to: Recipient::Key(owner(number)), asset: AssetId(0), amount: 100 }
}

fn owner(number: u32) -> PublicKey {
    let mut key = [7; 32];
    key[..4].copy_from_slice(&number.to_le_bytes());
    PublicKey(key)
}

fn contested(number: u32) -> ContestedOutput {
    let output = SpentOutput { id: OutputId::of_genesis(&NETWORK, 0, number), asset: AssetId(0), amount: 100 };
    ContestedOutput { output, home: 0, owner: owner(number) }
}

fn redemption(number: u32) -> BridgeFact {
    let ContestedOutput { output, owner, .. } = contested(number);
    let outputs = vec![Output { to: Recipient::Account(Address([9; 20])), asset: AssetId(0), amount: 100 }];
    let payment = Payment { network: NETWORK, home: 0, into: 0, owner, inputs: vec![output], outputs };
    BridgeFact::Redeem(Arc::new(PaymentBody::new(payment)))
}

fn open(number: u32) -> BridgeFact {
    BridgeFact::Resolve { opener: Address([1; 20]), bid: 3, cases: vec![(contested(number), None)] }
}

fn vote(number: u32, validator: u8) -> BridgeFact {
    let contested = contested(number);
    let payment = Arc::new(PaymentBody::new(contested.exit(NETWORK)));
    BridgeFact::Vote { case: contested.output.id, validator, payment }
}

/// A bridge with this many pending claims and open cases.
fn crowded(count: u32) -> Bridge {
    let genesis: Vec<Output> = (0..2 * count + 2).map(coin).collect();
    let (mut bridge, _) = Bridge::new(rules(), &genesis);
    (0..2).for_each(|epoch| bridge.register(epoch, Quorums::new(4)));
    let openings: Vec<u32> = (count..2 * count).collect();
    for part in openings.chunks(cases_per_block(Quorums::new(4))) {
        bridge.begin();
        bridge.step(part.iter().copied().map(open).collect());
    }
    bridge.begin();
    bridge.step((0..count).map(redemption).collect());
    assert_eq!((bridge.queue.len(), bridge.resolver.open_cases()), (count as usize, count as usize));
    assert_eq!(bridge.case_deposits(), 3 * u128::from(count));
    bridge
}

/// Looks, entries and bytes of the rest: for an empty block, a redemption, an opened case, and a vote that is one of
/// the two that free it.
fn costs(count: u32) -> Vec<(usize, usize, usize)> {
    let mut bridge = crowded(count);
    let fresh = 2 * count;
    let blocks = [vec![], vec![redemption(fresh)], vec![open(fresh + 1)], vec![vote(fresh + 1, 0)]];
    let mut measured = Vec::new();
    for facts in blocks {
        bridge.begin();
        let (step, entries) = bridge.step_counted(facts);
        measured.push((step.looks, entries.len(), bridge.rest().len()));
        assert!(!bridge.queue.is_empty());
    }
    measured
}

#[test]
fn a_block_costs_what_it_changes_and_not_what_waits() {
    let few = costs(8);
    assert_eq!(costs(2_000), few, "the cost grows with pending items");
    assert!(few.iter().all(|(looks, entries, _)| *looks <= 8 && *entries <= 8), "{few:?}");
}

#[test]
fn a_boundary_judges_each_case_once() {
    let mut bridge = crowded(300);
    bridge.rules.schedule.epoch_heights = 1_000;
    let mut looks = 0;
    for epoch in 1..4 {
        bridge.register(epoch + 1, Quorums::new(4));
        for _ in 0..1_000 {
            bridge.begin();
            looks += bridge.step_counted(Vec::new()).0.looks;
        }
    }
    // One claim per block, and each case by each rule when it may lapse and when it expires.
    assert!(looks <= 3_000 + 2 * 4 * 300 + 300, "{looks}");
}
