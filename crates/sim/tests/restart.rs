//! A network that starts again from an earlier state, as a new network.

use consensus::Protocol;
use sim::validators::{Faults, SimNetwork};

/// Rolls a network back to a height and continues from there, with crashes and a lying validator.
fn rolled_back(protocol: Protocol, seed: u64) {
    let mut network = SimNetwork::of(protocol, 4, 1_200 + seed);
    network.keep_state_of = Some(3);
    network.submit_everywhere(20);
    network.run_until_settled();
    let mut again = network.restarted(1_300 + seed);
    let before = network.check();
    assert!(before.heights > 3 && again.resubmitted() > 0, "{before:?}");
    (again.kills, again.cuts, again.tears) = (3, 5, 2);
    if seed % 2 == 1 {
        again.faults.insert(2, Faults::Garbage);
    }
    again.submit_everywhere(10);
    again.run_until_settled();
    // Earlier and later transactions are there, and vote logs, certificates and roots are valid, or this would panic.
    let report = again.check();
    assert!(report.heights > 3 && report.transactions > before.transactions, "{report:?}");
    assert!(report.convicted.is_empty(), "votes of the old network convict nobody in the new one");
}

#[test]
fn a_network_that_is_rolled_back_goes_on_as_another() {
    for seed in 0..4 {
        rolled_back(Protocol::Dbft, seed);
        rolled_back(Protocol::Tendermint, seed);
    }
}
