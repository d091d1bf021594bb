//! The networks of `validators.rs` with the other engine: the same faults and invariants.

use consensus::Protocol;
use replica::Defect;
use sim::Mistake;
use sim::validators::{Faults, NetworkReport, SimNetwork};

fn network(size: usize, seed: u64) -> SimNetwork {
    SimNetwork::of(Protocol::Tendermint, size, seed)
}

fn settled(mut network: SimNetwork, each: u64) -> NetworkReport {
    network.submit_everywhere(each);
    network.run_until_settled();
    network.check()
}

#[test]
fn a_healthy_network_decides_everything_once() {
    for seed in 0..6 {
        let mut network = network(4, seed);
        network.tails = false;
        let report = settled(network, 40);
        assert!(report.restarts == 0 && report.synced == 0, "{report:?}");
    }
}

#[test]
fn sizes_from_one_to_ten() {
    for size in [1, 2, 3, 4, 5, 7, 10] {
        settled(network(size, size as u64), 10);
    }
}

#[test]
fn a_silent_proposer_is_passed_by() {
    let mut network = network(4, 1);
    network.faults.insert(2, Faults::Silent);
    assert!(settled(network, 60).heights > 10);
}

#[test]
fn broken_links_lose_nothing() {
    for seed in 0..8 {
        let mut network = network(4, seed);
        network.cuts = 30;
        settled(network, 30);
    }
}

#[test]
fn killed_validators_contradict_nothing_and_come_back() {
    for seed in 0..6 {
        let mut network = network(4, 100 + seed);
        network.kills = 8;
        network.cuts = 5;
        assert!(settled(network, 30).restarts > 0);
    }
}

#[test]
fn all_killed_at_once_go_on() {
    for seed in 0..5 {
        let mut network = network(4, 200 + seed);
        network.blackouts = 3;
        assert!(settled(network, 30).restarts >= 8);
    }
}

#[test]
fn a_lost_vote_log_costs_silence_and_no_contradiction() {
    for seed in 0..4 {
        let mut network = network(4, 300 + seed);
        network.lost_logs = 2;
        network.cuts = 5;
        assert!(settled(network, 60).restarts > 0);
    }
}

/// One validator loses its vote log after the first transactions, and nobody submits anything afterwards.
fn idle_after_a_lost_log(seed: u64) -> SimNetwork {
    let mut network = network(4, 350 + seed);
    network.lost_logs = 1;
    network
}

#[test]
fn an_idle_network_lets_a_validator_without_a_log_come_back() {
    for seed in 0..6 {
        assert!(settled(idle_after_a_lost_log(seed), 1).heights > 8);
    }
}

#[test]
fn a_network_that_never_beats_is_caught() {
    let stalls = |seed: u64| {
        std::panic::catch_unwind(|| {
            let mut network = idle_after_a_lost_log(seed);
            network.mistake = Some(Mistake::Replica(Defect::NeverBeats));
            settled(network, 1)
        })
        .is_err()
    };
    assert!((0..2).all(stalls));
}

#[test]
fn a_late_validator_catches_up_though_another_lies() {
    for seed in 0..4 {
        let mut network = network(4, 400 + seed);
        network.late = Some(1);
        network.liars = true;
        let report = settled(network, 60);
        assert!(report.synced > 5, "{report:?}");
    }
}

#[test]
fn faulty_validators_stop_nothing() {
    let mut evidence = 0;
    for seed in 0..9 {
        let faults = [Faults::Equivocating, Faults::Random, Faults::Garbage][seed as usize % 3];
        let size = [4, 7][seed as usize % 2];
        let mut network = network(size, 500 + seed);
        network.faults.insert((seed % size as u64) as u8, faults);
        network.cuts = 6;
        evidence += settled(network, 20).evidence;
    }
    assert!(evidence > 2, "{evidence}");
}

#[test]
fn slow_ledgers_and_disks_hold_back_and_break_nothing() {
    for seed in 0..4 {
        let mut network = network(4, 600 + seed);
        network.slow = Some((seed % 4) as u8);
        settled(network, 60);
    }
}

#[test]
fn whatever_a_seed_draws_holds() {
    for seed in 0..4 {
        sim::validators::run_validators(seed, Protocol::Tendermint).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// A check that cannot fail proves nothing: a broken replica is detected.
#[test]
fn votes_that_are_sent_and_not_durable_are_caught() {
    let caught = |seed: u64| {
        std::panic::catch_unwind(|| {
            let mut network = network(4, 700 + seed);
            network.mistake = Some(Mistake::Replica(Defect::VotesUnlogged));
            network.kills = 20;
            network.faults.insert(3, Faults::Equivocating);
            settled(network, 30);
        })
        .is_err()
    };
    assert!((0..60).any(caught));
}

#[test]
fn a_ledger_that_differs_stops_its_validator() {
    let mut network = network(4, 9);
    network.wrong_ledger = Some(2);
    network.submit_everywhere(20);
    network.run_until_settled();
    assert_eq!(network.stopped(), [2]);
}

#[test]
fn epochs_follow_one_another() {
    for seed in 0..4 {
        let mut network = network(5, 800 + seed);
        // Who follows reconnects at each boundary: an epoch must outlast that.
        network.epoch_heights = Some(20);
        (network.cuts, network.kills) = (5, 3);
        assert!(settled(network, 30).epochs > 1);
    }
}

/// A network whose clients trade.
fn exchange(protocol: Protocol, size: usize, seed: u64) -> SimNetwork {
    let mut network = SimNetwork::of(protocol, size, seed);
    network.trades = true;
    network
}

#[test]
fn all_find_the_same_clearings() {
    for seed in 0..2 {
        let mut network = exchange(Protocol::Tendermint, 4, 900 + seed);
        (network.cuts, network.kills) = (5, 3);
        settled(network, 20);
    }
}

#[test]
fn a_late_validator_finds_the_clearings_again() {
    let mut network = exchange(Protocol::Tendermint, 4, 910);
    (network.slow, network.late, network.liars) = (Some(2), Some(1), true);
    let report = settled(network, 20);
    assert!(report.synced > 3, "{report:?}");
}

#[test]
fn who_signs_twice_is_accused_and_convicted() {
    for (protocol, faults) in [
        (Protocol::Tendermint, Faults::Equivocating),
        (Protocol::Tendermint, Faults::Random),
        (Protocol::Dbft, Faults::Equivocating),
    ] {
        let mut network = exchange(protocol, 4, 930);
        network.faults.insert(2, faults);
        let report = settled(network, 15);
        assert!(report.evidence > 0);
        assert_eq!(report.convicted, [2], "{protocol:?} {faults:?}");
    }
}
