//! Whatever is asked, and whenever power fails, no two signatures contradict each other.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kernel::{DiskFault, FaultDisk, Surviving};
use primitives::{
    Digest, RoundValue, Scope, SecretKey, Signable, Signer, SigningRequest, Transaction, ValidatorPost, ValidatorSays,
    VoteKind,
};
use proptest::prelude::*;
use signer::{Guard, GuardError, HEIGHTS_KEPT, NETWORKS_MAX, RemoteSigner, serve};
use store::{RealDisk, StoreError, VoteLog, VoteOptions};

fn key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

fn commit(height: u64, root: u8) -> SigningRequest {
    let statement = Signable::Commit { superblock: Digest([1; 32]), root: Digest([root; 32]) };
    SigningRequest { scope: Scope { network: Digest([9; 32]), epoch: 0 }, height, statement }
}

fn vote(height: u64, round: u32, kind: VoteKind, value: Option<u8>) -> SigningRequest {
    let value = value.map(|byte| RoundValue { slot: 0, digest: Digest([byte; 32]) });
    SigningRequest { statement: Signable::RoundVote { round, kind, value }, ..commit(height, 0) }
}

fn made(disk: &FaultDisk) -> Guard<FaultDisk> {
    Guard::<FaultDisk>::create(disk.clone()).expect("none is there");
    Guard::open(disk.clone(), key()).expect("it was made")
}

#[test]
fn one_statement_stands_in_a_place_and_is_signed_again_alike() {
    let mut guard = made(&FaultDisk::new(1));
    let first = guard.sign(&commit(5, 1)).expect("signed");
    assert!(key().public().verify(&commit(5, 1).digest().0, &first));
    assert_eq!(guard.sign(&commit(5, 1)).expect("the same"), first);
    assert!(matches!(guard.sign(&commit(5, 2)), Err(GuardError::Contradiction { height: 5 })));
    let (prevote, precommit) = (VoteKind::Prevote, VoteKind::Precommit);
    guard.sign(&vote(5, 0, prevote, Some(1))).expect("another kind");
    guard.sign(&vote(5, 0, precommit, None)).expect("another kind");
    guard.sign(&vote(5, 1, prevote, None)).expect("another round");
    assert!(matches!(guard.sign(&vote(5, 0, prevote, None)), Err(GuardError::Contradiction { .. })));
    let elsewhere = Scope { network: Digest([8; 32]), epoch: 0 };
    guard.sign(&SigningRequest { scope: elsewhere, ..commit(5, 2) }).expect("another network");
    // The epoch is not part of the place: a height is decided in one epoch.
    let scope = Scope { epoch: 1, ..commit(5, 1).scope };
    assert!(matches!(guard.sign(&SigningRequest { scope, ..commit(5, 1) }), Err(GuardError::Contradiction { .. })));
}

#[test]
fn what_is_forgotten_is_not_signed_again() {
    let disk = FaultDisk::new(2);
    let mut guard = made(&disk);
    for height in 3..4 + HEIGHTS_KEPT as u64 {
        guard.sign(&commit(height, 1)).expect("signed");
    }
    assert!(matches!(guard.sign(&commit(3, 2)), Err(GuardError::Below { height: 3, floor: 4 })));
    assert!(matches!(guard.sign(&commit(4, 2)), Err(GuardError::Contradiction { height: 4 })));
    drop(guard);
    let mut guard = Guard::open(disk, key()).expect("opens");
    assert!(guard.sign(&commit(3, 2)).is_err(), "it knows that, or that it is below");
}

/// A node asked for the highest height of all, or another network's: the next ones are signed all the same.
#[test]
fn one_request_far_ahead_refuses_nothing_that_comes() {
    let disk = FaultDisk::new(4);
    let mut guard = made(&disk);
    guard.sign(&commit(900, 1)).expect("signed");
    guard.sign(&commit(u64::MAX, 1)).expect("signed");
    guard.sign(&commit(901, 1)).expect("the network goes on");
    drop(guard);
    let mut guard = Guard::open(disk, key()).expect("opens");
    guard.sign(&commit(902, 1)).expect("after a restart of the signer, too");
    assert!(matches!(guard.sign(&commit(900, 2)), Err(GuardError::Contradiction { height: 900 })));
    assert!(matches!(guard.sign(&commit(u64::MAX, 2)), Err(GuardError::Contradiction { .. })));
}

/// A network that restarts goes back by some heights under another identity: its floor is its own.
#[test]
fn a_restarted_network_begins_below_the_floor_of_the_one_before() {
    let (disk, scope) = (FaultDisk::new(5), Scope { network: Digest([8; 32]), epoch: 0 });
    let mut guard = made(&disk);
    for height in 1..=2 * HEIGHTS_KEPT as u64 {
        guard.sign(&commit(height, 1)).expect("signed");
    }
    let again = |height, root| SigningRequest { scope, ..commit(height, root) };
    guard.sign(&again(700, 3)).expect("another network");
    drop(guard);
    let mut guard = Guard::open(disk, key()).expect("opens");
    guard.sign(&again(701, 3)).expect("it goes on");
    assert!(matches!(guard.sign(&again(700, 4)), Err(GuardError::Contradiction { .. })));
    assert!(matches!(guard.sign(&commit(700, 2)), Err(GuardError::Below { .. })), "the one before keeps its floor");
}

/// The log of a version that numbered its records by height and had one floor for all networks.
#[test]
fn a_log_of_the_earlier_version_forgets_nothing() {
    let disk = FaultDisk::new(6);
    let (mut log, request) = (VoteLog::create(disk.clone(), VoteOptions::default()).expect("new"), commit(50, 1));
    let place = (request.height, request.scope.network, request.place());
    log.append(50, &borsh::to_vec(&(place, request.digest())).expect("in memory")).expect("appended");
    log.sync().expect("durable");
    drop(log);
    for _ in 0..2 {
        let mut guard = Guard::open(disk.clone(), key()).expect("opens");
        guard.sign(&commit(50, 1)).expect("the same");
        assert!(matches!(guard.sign(&commit(50, 2)), Err(GuardError::Contradiction { height: 50 })));
        guard.sign(&commit(49, 1)).expect("nothing was forgotten");
    }
}

#[test]
fn a_presence_is_signed_and_recorded_nowhere() {
    let disk = FaultDisk::new(7);
    let guard = made(&disk);
    let account = key().public().address();
    let says = ValidatorSays::Present { epoch: 3 };
    let presence = ValidatorPost { network: Digest([9; 32]), chain: 7, account, until: 40, says };
    let signature = guard.sign_post(&presence);
    let transaction = presence.sign(&key()).expect("the key is here");
    assert_eq!(transaction, Transaction::by_key(presence.body(), key().public(), signature));
    assert!(transaction.is_signed(&presence.network) && !transaction.is_signed(&Digest([8; 32])));
}

#[test]
fn networks_are_bounded_and_the_known_ones_go_on() {
    let mut guard = made(&FaultDisk::new(8));
    guard.sign(&commit(1, 1)).expect("signed");
    let of = |number: u8| {
        let scope = Scope { network: Digest([100 + number; 32]), epoch: 0 };
        SigningRequest { scope, ..commit(1, 1) }
    };
    for number in 1..NETWORKS_MAX as u8 {
        guard.sign(&of(number)).expect("another network");
    }
    assert!(matches!(guard.sign(&of(NETWORKS_MAX as u8)), Err(GuardError::Networks)));
    guard.sign(&commit(2, 1)).expect("the known ones go on");
}

#[test]
fn a_lost_log_signs_nothing_and_a_log_is_made_once() {
    let disk = FaultDisk::new(3);
    assert!(matches!(Guard::open(disk.clone(), key()), Err(GuardError::Store(StoreError::VotesLost(_)))));
    drop(made(&disk));
    assert!(matches!(Guard::<FaultDisk>::create(disk), Err(StoreError::VotesExist(_))));
}

#[derive(Clone, Debug)]
enum Step {
    Ask(SigningRequest),
    /// The disk fails after this many points, and power is cut.
    Cut(u64, DiskFault, Surviving),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let request = (1..6u64, 0..3u8, 0..2u32, 0..3u8).prop_map(|(height, kind, round, value)| match kind {
        0 => commit(height, value),
        1 => vote(height, round, VoteKind::Prevote, (value > 0).then_some(value)),
        _ => vote(height, round, VoteKind::Precommit, (value > 0).then_some(value)),
    });
    let fault = prop_oneof![Just(DiskFault::Error), Just(DiskFault::Half)];
    let surviving = prop_oneof![
        Just(Surviving::Nothing),
        Just(Surviving::Everything),
        (0..2u64).prop_map(Surviving::Torn),
        any::<u64>().prop_map(Surviving::Some),
    ];
    let step = prop_oneof![
        8 => request.prop_map(Step::Ask),
        1 => (0..4u64, fault, surviving).prop_map(|(points, fault, surviving)| Step::Cut(points, fault, surviving)),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    #[test]
    fn no_two_signatures_contradict_each_other_whatever_cuts_the_power(steps in steps(), seed in any::<u64>()) {
        let mut disk = FaultDisk::new(seed);
        let mut guard = Some(made(&disk));
        let mut signed: BTreeMap<(u64, (u8, u32)), Digest> = BTreeMap::new();
        let mut survives = Surviving::Nothing;
        for step in steps {
            match step {
                Step::Cut(points, fault, surviving) => {
                    disk.inject(disk.points() + points, fault);
                    survives = surviving;
                }
                Step::Ask(request) => {
                    let answer = guard.as_mut().expect("it runs").sign(&request);
                    if answer.is_ok() {
                        let before = signed.insert((request.height, request.place()), request.digest());
                        prop_assert!(before.is_none_or(|before| before == request.digest()), "signed twice");
                    } else if matches!(answer, Err(GuardError::Store(_))) {
                        drop(guard.take());
                        disk = disk.after_crash(survives);
                        guard = Some(Guard::open(disk.clone(), key()).expect("what a crash leaves opens"));
                    }
                }
            }
        }
    }
}

fn served(folder: &Path) -> std::path::PathBuf {
    let socket = folder.join("signer.sock");
    let disk = RealDisk::new(folder.join("guard")).expect("a directory");
    Guard::<RealDisk>::create(disk).expect("made");
    let guard = Guard::open(RealDisk::new(folder.join("guard")).expect("a directory"), key()).expect("opens");
    let at = socket.clone();
    std::thread::spawn(move || serve(guard, &at));
    socket
}

#[test]
fn a_node_signs_through_the_socket_and_hears_why_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let socket = served(folder.path());
    let remote: Arc<dyn Signer> = Arc::new(RemoteSigner::connect(&socket).expect("it answers"));
    assert_eq!(remote.public(), key().public());
    let signature = remote.sign_statement(&commit(1, 1)).expect("signed");
    assert_eq!(signature, key().sign_statement(&commit(1, 1)).expect("signed"), "the same as with the key itself");
    let why = remote.sign_statement(&commit(1, 2)).expect_err("another statement").to_string();
    assert!(why.contains("the signer refuses") && why.contains("height 1"), "{why}");
    remote.sign_statement(&commit(2, 2)).expect("it goes on");
    let account = key().public().address();
    let says = ValidatorSays::Present { epoch: 3 };
    let presence = ValidatorPost { network: Digest([9; 32]), chain: 7, account, until: 40, says };
    assert_eq!(remote.sign_post(&presence), key().sign_post(&presence), "a presence, too");
    // Garbage ends only its own connection.
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    let mut other = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
    other.write_all(&[255; 64]).expect("sent");
    assert_eq!(other.read(&mut [0; 8]).unwrap_or(0), 0);
    remote.sign_statement(&commit(3, 2)).expect("it goes on");
    let mode = std::fs::metadata(&socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others cannot open it");
}
