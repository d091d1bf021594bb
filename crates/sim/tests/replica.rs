//! Seeded defects are detected: every defect of a replica violates an invariant of the simulator. And runs with
//! fetched states and torn disk writes complete.

use consensus::Protocol;
use replica::{Defect, LifeMistake};
use sim::validators::{NetworkReport, SimNetwork};

fn settled(mut network: SimNetwork, each: u64) -> NetworkReport {
    network.submit_everywhere(each);
    network.run_until_settled();
    network.check()
}

/// A network in which a defect of this kind matters, and the number of transactions for each validator.
fn scene(defect: Defect, seed: u64) -> (SimNetwork, u64) {
    let mut network = SimNetwork::new(4, 3_000 + seed);
    let mut each = 20;
    match defect {
        Defect::VotesUnlogged => network.kills = 4,
        Defect::RelaysUnlogged => {
            // With one sub-block as enough, validators often give up a slot that others have already delivered.
            network = SimNetwork::new(4, 4_085 + seed);
            network.rules.enough = Some(1);
            (network.tears, network.cuts, each) = (6, 60, 40);
            (network.blackouts, network.blackout_loses_log) = (1, true);
        }
        Defect::VotesForgottenEarly | Defect::CertificatesUnsynced => (network.blackouts, each) = (3, 40),
        // One at a time: while two of four do not vote no height is decided.
        Defect::SilenceBroken => (network.lost_logs, each) = (1, 60),
        Defect::NeverBeats => {
            network = SimNetwork::of(Protocol::Tendermint, 4, 350 + seed);
            (network.lost_logs, each) = (1, 1);
        }
        Defect::LeftOutLost => (network.slow, network.cuts) = (Some(1), 20),
        Defect::ForwardedLost => {
            network = SimNetwork::new(5, 3_100 + seed);
            (network.epoch_heights, network.kills, each) = (Some(10), 10, 60);
        }
        Defect::CommitteeKept | Defect::GenerationsMixed => {
            network = SimNetwork::new(5, 3_200 + seed);
            (network.epoch_heights, each) = (Some(10), 40);
        }
        Defect::ReceiptsUnsigned => {}
        Defect::LaggardsUnanswered => network.late = Some(1),
    }
    (network, each)
}

fn is_caught(defect: Defect) -> bool {
    let seeds = 0..12;
    let breaks = |seed: u64, defect: Option<Defect>, of: Defect| {
        let attempt = || {
            let (mut network, each) = scene(of, seed);
            network.defect = defect;
            settled(network, each)
        };
        std::panic::catch_unwind(attempt).is_err()
    };
    let Some(seed) = seeds.into_iter().find(|seed| breaks(*seed, Some(defect), defect)) else { return false };
    assert!(!breaks(seed, None, defect), "seed {seed} breaks without {defect:?}");
    true
}

#[test]
fn every_mistake_of_a_replica_is_caught() {
    let missed: Vec<Defect> = Defect::ALL.into_iter().filter(|defect| !is_caught(*defect)).collect();
    assert!(missed.is_empty(), "{missed:?}");
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

/// A seed of a network that finds each mistake in the life of blocks that one node alone does not show, and what the
/// mistake costs.
const LIFE: [(LifeMistake, u64, &str); 2] = [
    (LifeMistake::ForgetsUncertified, 1, "unsound answer"),
    (LifeMistake::HandoverNotAwaited, 0, "handovers lead to epoch 0"),
];

fn with_mistake(seed: u64, of: LifeMistake, mistake: Option<LifeMistake>) -> Result<(), String> {
    let attempt = || {
        let mut network = SimNetwork::new(5, 3_800 + seed);
        match of {
            LifeMistake::HandoverNotAwaited => network.epoch_heights = Some(10),
            _ => {
                network = SimNetwork::new(4, 3_800 + seed);
                (network.blackouts, network.checkpoint_blocks, network.keep_blocks) = (3, 1, 1);
            }
        }
        network.mistake = mistake;
        settled(network, 40);
    };
    let panic = std::panic::catch_unwind(attempt).err();
    panic.map_or(Ok(()), |panic| Err(panic.downcast_ref::<String>().cloned().unwrap_or_default()))
}

#[test]
fn each_mistake_in_the_life_of_blocks_that_networks_show_is_found_by_its_seed() {
    for (mistake, seed, cost) in LIFE {
        let found = with_mistake(seed, mistake, Some(mistake)).expect_err("a mistake");
        assert!(found.contains(cost), "{mistake:?}: {found}");
        with_mistake(seed, mistake, None).unwrap_or_else(|found| panic!("without {mistake:?}: {found}"));
    }
}
