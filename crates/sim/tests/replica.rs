//! Runs of validators that fetch states, whose writes are torn, and that execute contracts.

use consensus::Protocol;
use sim::SessionCounts;
use sim::validators::{NetworkReport, SimNetwork};

fn settled(mut network: SimNetwork, each: u64) -> NetworkReport {
    network.submit_everywhere(each);
    network.run_until_settled();
    network.check()
}

/// A network with a validator that starts after the others have discarded the blocks that it lacks.
fn late(protocol: Protocol, seed: u64) -> SimNetwork {
    let mut network = SimNetwork::of(protocol, 4, 3_300 + seed);
    network.late = Some((seed % 4) as u8);
    (network.checkpoint_blocks, network.keep_blocks) = (4, 4);
    network
}

#[test]
fn who_comes_too_late_for_blocks_fetches_a_state() {
    for (seed, protocol) in [(0, Protocol::Dbft), (1, Protocol::Tendermint), (2, Protocol::Dbft)] {
        let report = settled(late(protocol, seed), 60);
        assert!(report.states > 0, "{report:?}");
    }
}

#[test]
fn a_state_is_fetched_though_disks_tear_and_committees_change() {
    for seed in 0..4 {
        let mut network = late(Protocol::Dbft, 10 + seed);
        (network.tears, network.cuts) = (8, 6);
        settled(network, 60);
        let mut network = SimNetwork::new(5, 3_400 + seed);
        (network.epoch_heights, network.late) = (Some(10), Some(2));
        (network.checkpoint_blocks, network.keep_blocks) = (4, 4);
        settled(network, 60);
    }
}

#[test]
fn what_tears_in_the_middle_of_a_write_is_recovered() {
    for seed in 0..6 {
        let mut network = SimNetwork::new(4, 3_500 + seed);
        (network.tears, network.trades) = (10, seed % 2 == 0);
        (network.checkpoint_blocks, network.keep_blocks) = (3, 2);
        assert!(settled(network, 30).restarts > 2);
    }
}

/// It proposes with the committee's time, so its clients' transactions get into blocks under either protocol.
#[test]
fn a_clock_that_is_minutes_ahead_stops_nobody() {
    for protocol in [Protocol::Dbft, Protocol::Tendermint] {
        let mut network = SimNetwork::of(protocol, 4, 3_600);
        network.hasty = Some(2);
        settled(network, 20);
    }
}

/// Deployments, calls, reverts, empty gas, conflicts and self-destruction through several validators, while some are
/// killed, left out, follow, or start so late that they fetch a state: all have the same state, and no transaction
/// that could be proposed is pending at the end.
#[test]
fn networks_execute_contracts_alike() {
    let mut met = [0; 4];
    let mut states = 0;
    for seed in 0..6 {
        let mut network = SimNetwork::new(if seed % 3 == 1 { 5 } else { 4 }, 3_700 + seed);
        network.contracts = true;
        match seed % 3 {
            0 => (network.kills, network.tears, network.checkpoint_blocks) = (3, 2, 3),
            1 => (network.epoch_heights, network.cuts, network.slow) = (Some(10), 10, Some(1)),
            _ => {
                network.late = Some(1);
                (network.checkpoint_blocks, network.keep_blocks) = (4, 4);
            }
        }
        let report = settled(network, 40);
        states += report.states;
        report.ethereum.iter().zip(&mut met).for_each(|(count, met)| *met += count);
    }
    assert!(met.iter().all(|count| *count > 0) && states > 0, "{met:?}, {states} states fetched");
}

/// Keys that trade, replace, lapse and are revoked through several validators, while some are killed, torn, follow,
/// are twins, or start so late that they fetch a state: no key exceeds what it may, and all have the same state.
#[test]
fn networks_trade_by_session_keys_alike() {
    let (mut met, mut states) = (SessionCounts::default(), 0);
    for seed in 0..8 {
        let mut network = SimNetwork::new(if seed % 4 == 1 { 5 } else { 4 }, 3_900 + seed);
        (network.sessions, network.trades) = (true, true);
        match seed % 4 {
            0 => (network.kills, network.tears, network.checkpoint_blocks) = (3, 2, 3),
            1 => (network.epoch_heights, network.cuts, network.slow) = (Some(10), 10, Some(1)),
            2 => network.make_twins(1, seed),
            _ => {
                network.late = Some(1);
                (network.checkpoint_blocks, network.keep_blocks) = (4, 4);
            }
        }
        let report = settled(network, 40);
        states += report.states;
        met += report.sessions;
    }
    let SessionCounts { authorized, raised, stopped, revoked, orders, replaced, fills, lapsed } = met;
    let each = [authorized, raised, stopped, revoked, orders, replaced, fills, lapsed];
    assert!(each.iter().all(|count| *count > 0) && states > 0, "{met:?}, {states} states fetched");
}

/// Under the second engine a block has one lane, and the other validators wait for their turn.
#[test]
fn networks_of_one_proposer_execute_contracts_too() {
    let mut network = SimNetwork::of(Protocol::Tendermint, 4, 3_800);
    (network.contracts, network.kills) = (true, 2);
    assert!(settled(network, 30).ethereum[0] > 0);
}

/// A validator that trusts itself about who signed is detected at once.
#[test]
fn a_validator_that_trusts_its_own_senders_is_caught() {
    let run = |trusting: Option<u8>| {
        std::panic::catch_unwind(move || {
            let mut network = SimNetwork::new(4, 3_900);
            (network.contracts, network.trusting) = (true, trusting);
            settled(network, 20)
        })
    };
    assert!(run(None).is_ok() && run(Some(2)).is_err());
}
