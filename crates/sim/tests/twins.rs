//! Two instances of one key: with as many twins as may be faulty all invariants hold, with one more they do not, and
//! the checks detect it. Also validators that send as much as they can.

use consensus::Protocol;
use sim::validators::{Faults, NetworkReport, SimNetwork, run_twins};

fn settled(mut network: SimNetwork, each: u64) -> NetworkReport {
    network.submit_everywhere(each);
    network.run_until_settled();
    network.check()
}

fn twins_break_nothing(protocol: Protocol, seeds: u64) {
    let mut evidence = 0;
    for seed in 0..seeds {
        evidence += run_twins(seed, protocol).unwrap_or_else(|failure| panic!("{failure}")).evidence;
    }
    assert!(evidence > 0, "two instances that never contradict each other prove nothing");
}

#[test]
fn as_many_twins_as_may_be_faulty_break_no_superblock() {
    twins_break_nothing(Protocol::Dbft, 16);
}

#[test]
fn as_many_twins_as_may_be_faulty_break_no_round() {
    twins_break_nothing(Protocol::Tendermint, 10);
}

/// A check that cannot fail proves nothing: with one twin more, some validator applies another block.
fn is_broken(protocol: Protocol, size: usize, twins: usize, seed: u64) -> bool {
    let run = || {
        let mut network = SimNetwork::of(protocol, size, 40 + seed);
        network.make_twins(twins, seed);
        network.patience = 3_000_000;
        settled(network, 20);
    };
    let Err(panic) = std::panic::catch_unwind(run) else { return false };
    let what = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    // A network that only stalls proves nothing: the loss of agreement must be detected.
    what.contains("another block") || what.contains("diverged") || what.contains("two committees")
}

#[test]
fn one_twin_more_is_caught() {
    for protocol in [Protocol::Dbft, Protocol::Tendermint] {
        for (size, faulty) in [(4, 1), (7, 2)] {
            let caught = (0..200).any(|seed| is_broken(protocol, size, faulty + 1, seed));
            assert!(caught, "{protocol:?}: {} twins of {size} are never detected", faulty + 1);
        }
    }
}

#[test]
fn partitions_heal_without_twins() {
    for (protocol, seed) in [(Protocol::Dbft, 1), (Protocol::Tendermint, 2), (Protocol::Dbft, 3)] {
        let mut network = SimNetwork::of(protocol, 5, 60 + seed);
        network.partitions = 6;
        assert!(settled(network, 20).heights > 0);
    }
}

/// An eighth of an allowance is granted at every tick; see `consensus::links`.
fn granted(report: &NetworkReport, network: &SimNetwork) -> u64 {
    let allowance = 2 * network.rules.horizon() * (network.rules.payload_bytes as u64 + (64 << 10));
    let ticks = report.duration / 25_000 + 1;
    allowance * (1 + ticks / 8)
}

#[test]
fn a_flood_gets_no_more_than_its_allowance_and_stops_nothing() {
    for (protocol, seed) in [(Protocol::Dbft, 0), (Protocol::Dbft, 1), (Protocol::Tendermint, 2)] {
        let mut network = SimNetwork::of(protocol, 4, 80 + seed);
        network.faults.insert(1, Faults::Flood);
        network.cuts = 3;
        let rules = SimNetwork::of(protocol, 4, 0);
        let report = settled(network, 20);
        let (faulty, correct) = report.received;
        assert!(faulty <= correct + 3 * granted(&report, &rules), "{report:?}");
        assert_eq!(report.convicted, [1], "{protocol:?}: commits that contradict each other convict");
    }
}
