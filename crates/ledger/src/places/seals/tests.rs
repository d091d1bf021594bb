//! Keys over time: who makes one, when it acts and ends, and what posts do not count.

use payments::{BlsPublicKey, DkgTerms, KeyShare};
use proptest::prelude::*;

use super::world::{Conduct, NETWORK, World, account, acting, seed, terms};
use super::*;

const FOREVER: Height = Height::MAX;

/// Committees of so many seats of which the first ones do this and the others are correct.
fn committee(n: u8, name: &str, first: &[Conduct]) -> (World, Acting) {
    let mut conducts = vec![Conduct::Correct; n.into()];
    conducts[..first.len()].copy_from_slice(first);
    (World::new(terms(name), &conducts), acting(0..n, FOREVER))
}

/// A committee with its first key.
fn with_key(n: u8, name: &str) -> (World, Acting) {
    let (mut world, acting) = committee(n, name, &[]);
    world.go_to(6, &acting);
    assert_eq!(world.seals.keys().len(), 1, "board, register, deal, fine, hold: {:?}", world.seals.failed());
    (world, acting)
}

/// Whether the shares of any t holders of a key are of its secret, and fewer are not.
pub(super) fn interpolates(world: &World, key: &SealKeyRecord) -> bool {
    let share = |holder: &proofs::SealHolder| -> KeyShare {
        let share = world.shares.get(&(key.number, holder.account)).expect("who holds has a share").clone();
        assert_eq!((share.member(), share.public().to_bytes()), (holder.place, holder.key));
        share
    };
    let shares: Vec<KeyShare> = key.holders.iter().map(share).collect();
    let group = BlsPublicKey::parse(&key.group).expect("a key");
    let of: Vec<_> = shares.iter().map(|share| (share.member(), share.public())).collect();
    let (t, make) = (usize::from(key.t), |shares: &[_]| group.is_made_of(shares));
    make(&of[..t]) && make(&of[of.len() - t..]) && make(&of) && !make(&of[..t - 1])
}

#[test]
fn seats_make_a_key_in_four_steps_whose_shares_interpolate_it() {
    for n in [2, 3, 4, 5, 7] {
        let (world, _) = with_key(n, "fewest");
        let key = &world.seals.keys()[0];
        assert_eq!((key.number, key.from, key.last), (1, world.height + SEAL_NOTICE - 1, FOREVER), "{n}");
        assert_eq!((key.holders.len(), world.seals.board()), (n.into(), None));
        assert!(interpolates(&world, key), "{n}");
    }
}

#[test]
fn the_largest_committee_makes_a_key_and_one_seat_or_one_more_does_not() {
    let (world, _) = with_key(32, "fewest");
    assert_eq!((world.seals.keys()[0].t, world.seals.keys()[0].least), (11, 21));
    for n in [1, 33] {
        let (mut world, acting) = committee(n, "fewest", &[]);
        world.go_to(9, &acting);
        assert_eq!((world.seals.board(), world.seals.keys().len()), (None, 0));
    }
}

#[test]
fn one_seat_neither_lowers_nor_ends() {
    for conduct in super::world::CONDUCTS {
        let (mut world, acting) = committee(4, "fewest", &[conduct]);
        world.go_to(4 * SEAL_STEP_HEIGHTS + 9, &acting);
        let key = world.seals.keys().first().unwrap_or_else(|| panic!("{conduct:?}: {:?}", world.seals.failed()));
        assert_eq!((key.number, key.t, key.last), (1, 2, FOREVER), "{conduct:?}");
        let lost = SealPost::Lost;
        let height = world.height;
        if key.holders.iter().any(|holder| holder.account == account(0)) {
            world.seals.turn(height + 1, &acting, vec![(account(0), 1, lost)]);
        }
        assert_eq!((world.seals.keys()[0].holders.len(), world.seals.keys()[0].last), (3, FOREVER), "{conduct:?}");
        assert!(interpolates(&world, &world.seals.keys()[0]), "{conduct:?}");
    }
}

#[test]
fn under_a_quorum_one_silent_seat_leaves_no_key_and_is_named_and_they_try_again_later() {
    let (mut world, acting) = committee(4, "quorum", &[Conduct::NeverHolds]);
    world.go_to(1_000, &acting);
    let failed = world.seals.failed().expect("four must hold").clone();
    assert_eq!((failed.step, failed.silent.clone(), failed.number), (SealStep::Hold, vec![account(0)], 1));
    assert!(world.seals.keys().is_empty() && world.seals.board().is_none());
    world.conducts.insert(account(0), Conduct::Correct);
    world.go_to(failed.height + SEAL_RETRY_HEIGHTS - 1, &acting);
    assert_eq!(world.seals.board(), None, "it waits");
    world.go_to(failed.height + SEAL_RETRY_HEIGHTS + 5, &acting);
    assert_eq!((world.seals.keys().len(), world.seals.failed()), (1, None));
    assert_eq!(world.seals.keys()[0].number, 2, "a number never comes again");
}

#[test]
fn another_committee_begins_at_once_and_the_old_key_ends_with_the_old_committee() {
    let (mut world, _) = with_key(4, "fewest");
    // The draw of epoch 1, whose committee begins with height 51.
    world.go_to(40, &acting(0..4, 50));
    assert_eq!(world.seals.keys()[0].last, 50);
    assert_eq!(world.seals.board(), None, "its time is too short for another");
    world.go_to(50, &acting(0..4, 50));
    assert_eq!((world.seals.in_force(50).map(|key| key.number), world.seals.keys().len()), (None, 0));
    let next = acting(2..6, FOREVER);
    world.conducts = (2..6).map(|seat| (account(seat), Conduct::Correct)).collect();
    world.seals.turn(50, &next, Vec::new());
    world.go_to(56, &next);
    let key = &world.seals.keys()[0];
    assert_eq!((key.number, key.from), (2, 54 + SEAL_NOTICE));
    assert!(key.holders.iter().all(|holder| next.seats.contains(&holder.account)) && interpolates(&world, key));
}

#[test]
fn a_key_serves_across_epochs_while_the_accounts_stay() {
    let (mut world, acting) = with_key(4, "fewest");
    let before = world.seals.clone();
    world.go_to(SEAL_KEY_HEIGHTS / 2, &acting);
    assert_eq!(world.seals, before, "quiet blocks change nothing");
    assert!(!world.seals.is_due(world.height + 1, &acting));
}

#[test]
fn an_old_key_is_replaced_without_a_gap_and_both_open_for_a_while() {
    let (mut world, acting) = with_key(4, "fewest");
    let first = world.seals.keys()[0].clone();
    world.go_to(first.from + SEAL_KEY_HEIGHTS + 9, &acting);
    let [old, new] = world.seals.keys() else { panic!("two keys") };
    assert_eq!((old.number, new.number, old.last), (1, 2, new.from + SEAL_OVERLAP));
    let (from, last) = (new.from, old.last);
    assert_eq!([from - 1, from].map(|height| world.seals.in_force(height).map(|key| key.number)), [Some(1), Some(2)]);
    assert!(world.seals.opening(1, last).is_some() && world.seals.opening(1, last + 1).is_none());
    world.go_to(last, &acting);
    assert_eq!(world.seals.keys().len(), 1, "it is forgotten");
}

#[test]
fn a_key_below_its_fewest_holders_ends_and_is_made_anew() {
    let (mut world, acting) = with_key(4, "fewest");
    world.go_to(30, &acting);
    let lose = |world: &mut World, seat: u8| {
        world.seals.check(&account(seat), 1, &SealPost::Lost)?;
        world.height += 1;
        world.seals.turn(world.height, &acting, vec![(account(seat), 1, SealPost::Lost)]);
        Ok(())
    };
    assert_eq!(lose(&mut world, 0), Ok(()));
    assert_eq!(lose(&mut world, 0), Err(Refusal::NOT_A_SEAT), "once");
    assert_eq!((world.seals.keys()[0].last, world.seals.board()), (FOREVER, None));
    assert_eq!(lose(&mut world, 1), Ok(()));
    assert_eq!(world.seals.keys()[0].last, world.height + SEAL_NOTICE);
    assert!(world.seals.board().is_some(), "at once");
    world.go_to(world.height + 5, &acting);
    assert_eq!(world.seals.keys().last().map(|key| (key.number, key.holders.len())), Some((2, 4)));
}

#[test]
fn posts_out_of_turn_are_refused_and_the_first_one_counts_sound_or_not() {
    let (mut world, acting) = committee(4, "fewest", &[]);
    let register = |seat: u8, number| {
        let seed = seed(&account(seat), number);
        let possession = seed.possession(&NETWORK, 1, &account(seat));
        SealPost::Register { key: seed.key().public().to_bytes(), possession }
    };
    assert_eq!(world.seals.check(&account(0), 1, &register(0, 1)), Err(Refusal::OTHER_SEAL_KEY));
    world.block(&acting, Vec::new());
    let seals = &world.seals;
    assert_eq!(seals.check(&account(0), 1, &register(0, 1)), Ok(()));
    assert_eq!(seals.check(&account(0), 2, &register(0, 1)), Err(Refusal::OTHER_SEAL_KEY));
    assert_eq!(seals.check(&account(4), 1, &register(4, 1)), Err(Refusal::NOT_A_SEAT));
    assert_eq!(seals.check(&account(0), 1, &SealPost::Fine), Err(Refusal::OTHER_SEAL_STEP));
    assert_eq!(seals.check(&account(0), 1, &SealPost::Lost), Err(Refusal::OTHER_SEAL_STEP));
    // Seat 1 posts the key of seat 0 with its proof: it has posted, and is not registered.
    world.block(&acting, vec![(account(0), register(0, 1)), (account(1), register(0, 1))]);
    let again = world.block(&acting, vec![(account(0), register(0, 1)), (account(1), register(1, 1))]);
    assert_eq!(again, [Err(Refusal::SEAL_POSTED), Err(Refusal::SEAL_POSTED)]);
    world.block(&acting, vec![(account(2), register(2, 1)), (account(3), register(3, 1))]);
    let board = world.seals.board().expect("three of four are enough");
    assert_eq!((board.at().0, board.member(&account(1)), board.member(&account(2))), (SealStep::Deal, None, Some(1)));
    let shorter = |post: &SealPost| match post {
        SealPost::Deal(bytes) => SealPost::Deal(bytes[..bytes.len() - 1].to_vec()),
        _ => panic!("they deal"),
    };
    let (dealer, dealing) = world.posts().remove(0);
    assert_eq!(world.seals.check(&dealer, 1, &shorter(&dealing)), Err(Refusal::BAD_SEAL_POST));
    assert_eq!(world.seals.check(&account(2), 1, &dealing), Err(Refusal::BAD_SEAL_POST), "another's");
    assert_eq!(world.seals.check(&account(1), 1, &dealing), Err(Refusal::NOT_A_SEAT));
}

#[test]
fn posts_have_one_encoding_and_bytes_that_are_none_are_refused() {
    let (mut world, acting) = committee(4, "fewest", &[Conduct::WrongShare]);
    let mut kinds = BTreeSet::new();
    while world.seals.keys().is_empty() {
        for (_, post) in world.posts() {
            let bytes = post.encode();
            kinds.insert(bytes[0]);
            assert!(bytes.len() <= primitives::SEAL_POST_BYTES_MAX);
            assert_eq!(SealPost::parse(&bytes), Some(post));
            assert!(bytes[0] == 2 || SealPost::parse(&[&bytes[..], &[0]].concat()).is_none());
        }
        world.go(&acting, FOREVER);
    }
    assert_eq!(kinds, BTreeSet::from([1, 2, 3, 4, 5]));
    assert!([&[][..], &[0], &[7], &[6, 1], &[1; 20]].iter().all(|bytes| SealPost::parse(bytes).is_none()));
    assert_eq!(SealPost::parse(&[6]), Some(SealPost::Lost));
}

#[test]
fn the_largest_dealing_fits_into_a_post() {
    let keys = vec![seed(&account(0), 1).key().public(); 32];
    let purpose = payments::DkgPurpose::Seals { needed: 22, holders: 32 };
    let terms = DkgTerms { network: NETWORK, epoch: 1, purpose, keys };
    let dealing = payments::dealing(&terms, 31, &[1; 32]);
    assert!(SealPost::Deal(dealing.encode()).encode().len() <= primitives::SEAL_POST_BYTES_MAX);
}

#[test]
fn a_board_of_a_checkpoint_goes_on_as_the_one_before() {
    let (mut world, acting) = committee(4, "fewest", &[Conduct::WrongShare, Conduct::Needless]);
    for _ in 0..9 {
        let restored = world.seals.board().map(|board| {
            let bytes = borsh::to_vec(board.record()).expect("memory");
            SealBoard::restored(borsh::from_slice(&bytes).expect("its own layout")).expect("sound")
        });
        let mut other = World { seals: Seals { board: restored, ..world.seals.clone() }, ..world.clone() };
        let posts = world.posts();
        assert_eq!(other.posts(), posts);
        world.go(&acting, FOREVER);
        other.go(&acting, FOREVER);
        assert_eq!(other.seals, world.seals);
    }
}

#[test]
fn a_restarted_network_makes_keys_of_its_own_under_higher_numbers() {
    let (mut world, acting) = with_key(4, "fewest");
    world.seals.begin_again();
    assert!(world.seals.keys().is_empty());
    let acting = Acting { network: Digest([8; 32]), ..acting };
    world.go(&acting, FOREVER);
    assert_eq!(world.seals.board().map(SealBoard::number), Some(2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Committees of three of five accounts change at any epochs, and seats fall silent or lose shares. The key in
    /// force at a height is the same in all states from eight heights before on; at most two are; while accounts stay
    /// there is no gap but below the fewest holders.
    #[test]
    fn the_key_in_force_is_one_in_all_states_that_open(
        epochs in prop::collection::vec((20u64..60, 0u8..3, any::<bool>(), prop::option::of(0u8..3)), 1..6),
    ) {
        let mut world = World::new(terms("fewest"), &[Conduct::Correct; 5]);
        let mut told: std::collections::BTreeMap<Height, Vec<Option<u64>>> = std::collections::BTreeMap::new();
        let mut ends = 0;
        for (at, (heights, first, is_drawn_late, loses)) in epochs.iter().enumerate() {
            ends += heights;
            let follows = epochs.get(at + 1).is_some_and(|next| next.1 != *first);
            let drawn = ends - if *is_drawn_late { SEAL_NOTICE } else { 12 };
            while world.height < ends {
                let known = if follows && world.height + 1 >= drawn { ends } else { FOREVER };
                let next = epochs.get(at + 1).filter(|_| world.height + 1 == ends);
                let after = next.filter(|next| next.1 != *first).map(|next| next.1);
                let acting = match after {
                    Some(other) => acting(other..other + 3, FOREVER),
                    None => acting(*first..*first + 3, known),
                };
                let number = world.seals.keys().last().map(|key| key.number);
                let loses = loses.zip(number).filter(|_| world.height + 7 == ends);
                let lost = loses.map(|(seat, number)| (account(first + seat), number, SealPost::Lost));
                match lost.filter(|lost| world.seals.check(&lost.0, lost.1, &lost.2).is_ok()) {
                    Some(lost) => {
                        world.height += 1;
                        world.seals.turn(world.height, &acting, vec![lost]);
                    }
                    None => world.go(&acting, world.height + 1),
                }
                prop_assert!(world.seals.keys().len() <= 2);
                for ahead in 1..=SEAL_NOTICE {
                    let height = world.height + ahead;
                    told.entry(height).or_default().push(world.seals.in_force(height).map(|key| key.number));
                }
                for key in world.seals.keys().iter().filter(|key| key.from == world.height + SEAL_NOTICE) {
                    prop_assert!(interpolates(&world, key));
                }
            }
        }
        for (height, all) in told {
            prop_assert!(all.iter().all(|one| *one == all[0]), "height {}: {:?}", height, all);
        }
    }
}
