//! A network that restarts from a snapshot: earlier statements mean nothing in it.

use ledger::{
    Genesis, Ledger, Listing, Member, Membership, Refusal, Restart, RestartError, Restore, Schedule, Snapshot, Terms,
};
use primitives::{
    Address, AssetId, Committed, Contradiction, Digest, Evidence, Fraction, Scope, SecretKey, Superblock,
};

const FIRST: Digest = Digest([42; 32]);

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number + 1; 32])
}

fn ledger() -> Ledger {
    let terms = Terms {
        network: FIRST,
        schedule: Schedule { epoch_heights: 100, delay: 4 },
        committee: 2,
        minimum_stake: 100,
        unbonding_epochs: 1,
        reward: 0,
        slash: Fraction::power_of_two(2),
    };
    let founder = |number: u8| {
        let key = key(number).public();
        Member { account: key.address(), key, address: "v.example:1".into(), stake: 1_000 }
    };
    let genesis = Genesis {
        chain: 1,
        fee: 1,
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 6, Address::default())],
        balances: vec![(Address([1; 20]), AssetId(0), 1_000)],
        membership: Some(Membership { terms, reward_pool: 10, founders: vec![founder(0), founder(1)] }),
        ..Genesis::default()
    };
    let mut ledger = Ledger::new(&genesis).expect("sound");
    let block = Superblock { height: 1, parent: ledger.last_block(), ..Superblock::default() };
    ledger.apply(&block, ledger::Signatures::Unchecked, &mut |_| {}).expect("applies");
    ledger
}

/// Two outcomes of one height, one signed for each of two networks.
fn evidence(networks: [Digest; 2]) -> Evidence {
    let commit = |(network, root): (Digest, u8)| {
        let (superblock, root) = (Digest([3; 32]), Digest([root; 32]));
        let signed = Scope { network, epoch: 0 }.commit(5, &superblock, &root);
        Committed { superblock, root, signature: key(0).sign(&signed.0) }
    };
    let both = [commit((networks[0], 1)), commit((networks[1], 2))];
    Evidence { epoch: 0, member: 0, height: 5, contradiction: Contradiction::Commits(both) }
}

#[test]
fn statements_of_before_the_restart_mean_nothing() {
    let mut ledger = ledger();
    assert_eq!(ledger.convicts(&evidence([FIRST; 2])), Ok(()));
    let restart =
        Restart { number: 1, snapshot: Snapshot::digest(&ledger), committee: Vec::new(), lane: None, rules: None };
    let before = ledger.clone();
    let network = ledger.begin_again(&FIRST, &restart, None).expect("the agreed state");
    // A validator that decided height 5 before, and now decides it differently, contradicts nothing.
    assert_eq!(ledger.convicts(&evidence([FIRST; 2])), Err(Refusal::BAD_EVIDENCE));
    assert_eq!(ledger.convicts(&evidence([FIRST, network])), Err(Refusal::BAD_EVIDENCE));
    assert_eq!(ledger.convicts(&evidence([network; 2])), Ok(()));
    // Nothing else has changed.
    assert_eq!((ledger.height(), ledger.last_block()), (before.height(), before.last_block()));
    assert_eq!(ledger.validators().registry, before.validators().registry);
    ledger.audit().expect("sound");
    // The state of the restarted network is an ordinary state.
    let mut restore = Restore::default();
    Snapshot::of(&ledger).for_each(|chunk| restore.push(&chunk).expect("in place"));
    assert_eq!(Snapshot::digest(&restore.finish().expect("whole")), Snapshot::digest(&ledger));
}

/// Accounts that are named take the seats, and count as present for the next draw; nobody else does.
#[test]
fn a_restart_names_its_committee() {
    let before = ledger();
    let (first, second) = (key(0).public().address(), key(1).public().address());
    let named = |committee: &[Address]| {
        let restart = Restart {
            number: 1,
            snapshot: Snapshot::digest(&before),
            committee: committee.to_vec(),
            lane: None,
            rules: None,
        };
        let mut ledger = before.clone();
        let identity = ledger.begin_again(&FIRST, &restart, None);
        (ledger, identity)
    };
    let (ledger, identity) = named(&[second]);
    let members = |ledger: &Ledger| {
        ledger.committee(0).expect("known").iter().map(|member| member.account).collect::<Vec<Address>>()
    };
    assert_eq!(members(&ledger), [second]);
    let is_present = |account: &Address| ledger.validators().get(account).expect("staked").is_present_for(1);
    assert_eq!((is_present(&first), is_present(&second)), (false, true));
    ledger.audit().expect("sound");
    assert_ne!(identity, named(&[]).1, "the list is part of the identity");
    assert_ne!(named(&[first, second]).1, named(&[second, first]).1, "in its order");
    assert_eq!(members(&named(&[]).0), [first, second], "without a list the drawn committee stays");
    let nobody = Address([9; 20]);
    for (committee, fault) in [
        (&[nobody][..], RestartError::Seat(nobody, "has no stake, or was convicted")),
        (&[first, first], RestartError::Seat(first, "is named twice")),
        (&[first, second, nobody], RestartError::Seats(3, 2)),
    ] {
        let (ledger, refused) = named(committee);
        assert_eq!((refused, Snapshot::digest(&ledger)), (Err(fault), Snapshot::digest(&before)));
    }
}

#[test]
fn a_network_begins_again_only_with_what_was_agreed_on() {
    let mut ledger = ledger();
    let agreed = Snapshot::digest(&ledger);
    let found = Restart { number: 1, snapshot: agreed, committee: Vec::new(), lane: None, rules: None };
    let identities = [
        FIRST,
        found.identity(&FIRST),
        Restart { number: 2, ..found.clone() }.identity(&FIRST),
        Restart { snapshot: Digest([1; 32]), ..found.clone() }.identity(&FIRST),
        found.identity(&Digest([43; 32])),
    ];
    for (at, identity) in identities.iter().enumerate() {
        assert!(!identities[..at].contains(identity), "{at}");
    }
    let other = Restart { snapshot: Digest([1; 32]), ..found.clone() };
    let refused = RestartError::OtherSnapshot { found: agreed, agreed: Digest([1; 32]) };
    assert_eq!(ledger.begin_again(&FIRST, &other, None), Err(refused));
    assert_eq!(ledger.begin_again(&FIRST, &Restart { number: 0, ..found.clone() }, None), Err(RestartError::Number));
    assert_eq!(Snapshot::digest(&ledger), agreed, "nothing has changed");
    ledger.begin_again(&FIRST, &found, None).expect("the agreed state");
    assert!(ledger.begin_again(&FIRST, &found, None).is_err(), "a restart happens only once");
}
