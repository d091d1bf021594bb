//! Networks of engines with links that break, disks that lose unsynced data, ledgers that lag, and Byzantine
//! validators: the invariants of every run, and that it ends.

use consensus::gather::GATHERED_FROM;
use sim::validators::{Faults, FrameCost, NetworkReport, SimNetwork};
use sim::{ControlCounts, ListingCounts, PolicyCounts, ProposalCounts};

/// Every other network gathers votes, however small it is.
fn gather_by_seed(network: &mut SimNetwork, seed: u64) {
    network.gather_from = if seed.is_multiple_of(2) { GATHERED_FROM } else { 1 };
}

#[test]
fn a_healthy_network_decides_everything_once() {
    for seed in 0..6 {
        let mut network = SimNetwork::new(4, seed);
        network.tails = false;
        network.submit_everywhere(40);
        network.run_until_settled();
        let report = network.check();
        assert!(report.restarts == 0 && report.synced == 0, "{report:?}");
    }
}

#[test]
fn sizes_from_one_to_ten_and_the_fast_path() {
    for size in [1, 2, 3, 4, 5, 7, 10] {
        for fast in [false, true] {
            let mut network = SimNetwork::new(size, size as u64);
            network.rules.fast = fast;
            network.start();
            network.submit_everywhere(10);
            network.run_until_settled();
            network.check();
        }
    }
}

/// A superblock of twenty validators far apart costs some frames of votes for each pair of them, and not one for each
/// frame that arrives; without gathering it is several times that. A silent validator, whose slot completes no step,
/// changes little.
#[test]
fn votes_of_many_validators_travel_together() {
    const SIZE: u64 = 20;
    let run = |gather_from: usize, silent: Option<u8>| -> (u64, u64) {
        let mut network = SimNetwork::new(SIZE as usize, 5);
        let delay = |from: u64, to: u64| 1_000 + 10_000 * (from % 10).abs_diff(to % 10);
        network.delays = Some((0..SIZE).map(|from| (0..SIZE).map(|to| delay(from, to)).collect()).collect());
        (network.unit, network.grace, network.tick, network.tails) = (400_000, 100_000, 200_000, false);
        network.gather_from = gather_from;
        network.faults.extend(silent.map(|who| (who, Faults::Silent)));
        network.submit_everywhere(1);
        network.run_until_settled();
        let report = network.check();
        (report.kinds["votes"].0 / report.heights / (SIZE * (SIZE - 1)), report.latency(0.5))
    };
    let ((gathered, latest), (apart, soonest)) = (run(GATHERED_FROM, None), run(usize::MAX, None));
    assert!(gathered <= 32 && apart >= 2 * gathered, "{gathered} and {apart} frames of votes a pair");
    // Five steps, in each of which a vote waits for at most a window of four milliseconds.
    assert!(latest <= soonest + 5 * 4_000 + 10_000, "{latest} and {soonest} µs");
    let (silent, _) = run(GATHERED_FROM, Some(7));
    assert!(silent <= 2 * gathered, "{silent} frames of votes a pair");
}

/// One processor works on one frame after the other: what all frames cost is divided among validators, and certificates
/// come later, but they come.
#[test]
fn frames_wait_for_the_processor_of_their_validator() {
    let run = |frame: u64, byte: u64| -> NetworkReport {
        let mut network = SimNetwork::new(4, 11);
        network.tails = false;
        network.frame_cost = FrameCost { frame, byte };
        network.submit_everywhere(10);
        network.run_until_settled();
        network.check()
    };
    let (free, dear) = (run(0, 0), run(400_000, 0));
    assert_eq!(free.busiest, 0);
    assert!(dear.latency(0.5) > 2 * free.latency(0.5), "{} and {} µs", free.latency(0.5), dear.latency(0.5));
    // Each frame was sent by one of four, and some are still on their way at the end.
    assert!(dear.busiest >= dear.frames * 400 / 4, "{dear:?}");
    let bytes = run(0, 1_000);
    assert!((bytes.bytes / 8..=bytes.bytes).contains(&bytes.busiest), "{bytes:?}");
}

#[test]
fn a_silent_validator_is_benched_and_costs_little() {
    let mut network = SimNetwork::new(4, 1);
    network.faults.insert(2, Faults::Silent);
    network.submit_everywhere(120);
    network.run_until_settled();
    assert!(network.check().partial > 10);
}

#[test]
fn broken_links_lose_nothing() {
    for seed in 0..8 {
        let mut network = SimNetwork::new(4, seed);
        gather_by_seed(&mut network, seed);
        network.cuts = 30;
        network.submit_everywhere(30);
        network.run_until_settled();
        network.check();
    }
}

#[test]
fn killed_validators_contradict_nothing_and_come_back() {
    for seed in 0..8 {
        let mut network = SimNetwork::new(4, 100 + seed);
        gather_by_seed(&mut network, seed);
        network.kills = 8;
        network.cuts = 5;
        network.submit_everywhere(30);
        network.run_until_settled();
        assert!(network.check().restarts > 0);
    }
}

#[test]
fn all_killed_at_once_go_on() {
    for seed in 0..10 {
        let mut network = SimNetwork::new(4, 200 + seed);
        gather_by_seed(&mut network, seed);
        network.blackouts = 3;
        network.submit_everywhere(30);
        network.run_until_settled();
        assert!(network.check().restarts >= 8);
    }
}

#[test]
fn a_lost_vote_log_costs_silence_and_no_contradiction() {
    for seed in 0..8 {
        let mut network = SimNetwork::new(4, 300 + seed);
        gather_by_seed(&mut network, seed);
        network.lost_logs = 2;
        network.cuts = 5;
        network.submit_everywhere(60);
        network.run_until_settled();
        assert!(network.check().restarts > 0);
    }
}

#[test]
fn a_late_validator_catches_up_though_another_lies() {
    for seed in 0..8 {
        let mut network = SimNetwork::new(4, 400 + seed);
        network.late = Some(1);
        network.liars = true;
        network.submit_everywhere(60);
        network.run_until_settled();
        let report = network.check();
        assert!(report.synced > 5, "{report:?}");
    }
}

#[test]
fn faulty_validators_stop_nothing() {
    let mut evidence = 0;
    for seed in 0..8 {
        let faults = [Faults::Equivocating, Faults::Random, Faults::Garbage][seed as usize % 3];
        let size = [4, 7][seed as usize % 2];
        let mut network = SimNetwork::new(size, 500 + seed);
        network.faults.insert((seed % size as u64) as u8, faults);
        gather_by_seed(&mut network, seed / 2);
        network.cuts = 6;
        network.submit_everywhere(20);
        network.run_until_settled();
        evidence += network.check().evidence;
    }
    assert!(evidence > 2, "{evidence}");
}

#[test]
fn slow_ledgers_and_disks_hold_back_and_break_nothing() {
    for seed in 0..8 {
        let mut network = SimNetwork::new(4, 600 + seed);
        network.slow = Some((seed % 4) as u8);
        network.submit_everywhere(60);
        network.run_until_settled();
        network.check();
    }
}

#[test]
fn whatever_a_seed_draws_holds() {
    for seed in 0..6 {
        sim::validators::run_validators(seed, consensus::Protocol::Dbft).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Whenever each operator installs the newer program, whoever is killed, late or silent: one number a height, nothing
/// is lost, and the newer rules act everywhere in the end. With seed 416 a follower got its presence into each epoch,
/// and never that it was ready.
#[test]
fn programs_of_two_versions_change_to_the_newer_rules() {
    use consensus::Protocol::{Dbft, Tendermint};
    for (seed, protocol) in (0..8).chain([416]).map(|seed| (seed, if seed % 4 == 3 { Tendermint } else { Dbft })) {
        sim::validators::run_versions(seed, protocol).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
#[ignore = "long: `walras-lab sim --consensus`, with --mixed-versions and without, runs as many"]
fn many_networks_hold_for_seeds() {
    use consensus::Protocol::Dbft;
    for seed in 0..40 {
        sim::validators::run_versions(seed, Dbft).unwrap_or_else(|failure| panic!("two versions: {failure}"));
        sim::validators::run_validators(seed, Dbft).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Accounts change their keys, issuers list, close and freeze, and validators vote, while some of them are killed and
/// others are drawn: what counts, and what it makes of the state, is what independent books say.
#[test]
fn institutions_act_among_validators() {
    let (mut policies, mut listings) = (PolicyCounts::default(), ListingCounts::default());
    let (mut proposals, mut controls) = (ProposalCounts::default(), ControlCounts::default());
    for seed in 0..6 {
        let mut network = SimNetwork::new(5, 900 + seed);
        (network.epoch_heights, network.kills, network.institutions) = (Some(10), 2, true);
        network.submit_everywhere(80);
        network.run_until_settled();
        let report = network.check();
        policies += report.policies;
        listings += report.listings;
        proposals += report.proposals;
        controls += report.controls;
    }
    let often = [policies.set, policies.requests, listings.listed, controls.frozen, proposals.proposed];
    assert!(often.iter().all(|count| *count >= 10), "{policies:?} {listings:?} {proposals:?} {controls:?}");
    let rare = [policies.waited, listings.announced, controls.opened, proposals.passed, proposals.changed];
    assert!(rare.iter().all(|count| *count > 0), "{policies:?} {listings:?} {proposals:?} {controls:?}");
}

/// The networks of these seeds failed once, each in its own way: by handovers of later epochs than the one that signed
/// the offered state; by a link to a twin of another epoch. The last failed by a transaction that became void after it
/// was forwarded, and stayed pending for ever.
#[test]
fn what_once_broke_holds() {
    use consensus::Protocol::{Dbft, Tendermint};
    let drawn = [(489, Dbft), (154, Dbft), (164, Tendermint)];
    let ran = drawn.map(|(seed, protocol)| sim::validators::run_validators(seed, protocol));
    for result in ran.into_iter().chain([sim::validators::run_twins(631, Tendermint)]) {
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn a_ledger_that_differs_stops_its_validator() {
    let mut network = SimNetwork::new(4, 9);
    network.wrong_ledger = Some(2);
    network.submit_everywhere(20);
    network.run_until_settled();
    assert_eq!(network.stopped(), [2]);
}

#[test]
fn validators_change_and_nothing_is_lost() {
    for seed in 0..6 {
        let mut network = SimNetwork::new([4, 5, 7][seed as usize % 3], 900 + seed);
        network.epoch_heights = Some(10 + seed);
        network.cuts = 6;
        network.submit_everywhere(60);
        network.run_until_settled();
        let report = network.check();
        assert!(report.epochs > 2, "{report:?}");
    }
}

#[test]
fn validators_change_while_some_are_killed_late_or_faulty() {
    for seed in 0..8 {
        let mut network = SimNetwork::new([5, 8][seed as usize % 2], 950 + seed);
        // An epoch outlasts a reconnecting, or who follows never catches up.
        network.epoch_heights = Some(20 + seed % 7);
        network.cuts = 4;
        match seed % 4 {
            0 => network.kills = 6,
            1 => network.blackouts = 2,
            2 => network.late = Some(3),
            _ => drop(network.faults.insert(2, [Faults::Equivocating, Faults::Garbage][seed as usize / 4 % 2])),
        }
        network.submit_everywhere(60);
        network.run_until_settled();
        assert!(network.check().epochs > 1);
    }
}

#[test]
fn a_lost_vote_log_is_silence_in_the_next_epoch_too() {
    for seed in 0..6 {
        let mut network = SimNetwork::new(5, 980 + seed);
        network.epoch_heights = Some(9);
        network.lost_logs = 1;
        network.submit_everywhere(60);
        network.run_until_settled();
        assert!(network.check().epochs > 2);
    }
}

/// Keys are made, and envelopes open, with both engines, whatever a seed draws.
#[test]
fn envelopes_open_whatever_a_seed_draws() {
    use consensus::Protocol::{Dbft, Tendermint};
    let mut opened = [0; 2];
    for seed in 0..6 {
        for (count, protocol) in opened.iter_mut().zip([Dbft, Tendermint]) {
            let ran = sim::validators::run_sealed(seed, protocol).unwrap_or_else(|failure| panic!("{failure}"));
            *count += ran.opened;
        }
    }
    assert!(opened.iter().all(|count| *count > 20), "{opened:?}");
}

#[test]
#[ignore = "long: `walras-lab sim --consensus --sealed` runs as many"]
fn many_sealed_networks_hold_for_seeds() {
    use consensus::Protocol::{Dbft, Tendermint};
    let from: u64 = std::env::var("FROM").map_or(0, |from| from.parse().expect("a number"));
    for seed in from..from + 40 {
        for protocol in [Dbft, Tendermint] {
            match sim::validators::run_sealed(seed, protocol) {
                Ok(ran) => println!("{seed} {protocol:?}: {} heights, opened {}", ran.heights, ran.opened),
                Err(failure) => println!("BROKEN {seed} {protocol:?}: {failure}"),
            }
        }
    }
}
