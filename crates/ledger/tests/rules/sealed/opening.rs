//! Which envelopes open, and what else does not.

use ledger::SealedFate;
use primitives::{BoxSize, EnvelopeBytes, SEALED_AHEAD_MAX};

use super::*;
use crate::sessions::sells;

const AHEAD: Height = SEALED_AHEAD_MAX;

fn fate(applied: &Applied, at: usize) -> SealedFate {
    match applied.outcomes[at] {
        Outcome::Sealed(fate) => fate,
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "wait for rules 21"]
fn an_envelope_trades_in_the_batch_of_its_own_block() {
    let mut world = World::new();
    let letter = Letter::of(PAYER, 1);
    let order = world.inside(ALICE, 1, &letter, sells(10_000));
    let envelope = world.seal(&letter, vec![order]);
    let buys = world.plain(BOB, 1, crate::sessions::buys(20_000));
    let applied = world.run(vec![vec![envelope.clone(), buys]]);
    assert_eq!(fate(&applied, 0), SealedFate::Opened(1));
    assert!(matches!(applied.opened[0].outcome, Outcome::Offered(met) if met.sold == 10_000), "{:?}", applied.opened);
    assert_eq!(applied.opened[0].id, applied.opened[0].transaction.sealed_id(&letter.enclosure()));
    assert_ne!(applied.opened[0].id, applied.opened[0].transaction.id());
    assert_eq!(world.balance(PAYER, USD), START - SMALL);
    let fee = FEE;
    assert_eq!((world.balance(ALICE, EUR), world.balance(ALICE, USD) > START - fee), (START - 10_000, true));
}

/// Copies at one height, and at each later one until it has ended.
#[test]
#[ignore = "wait for rules 21"]
fn a_name_opens_once() {
    let mut world = World::new();
    let letter = Letter { until: 4, ..Letter::of(PAYER, 1) };
    let order = world.inside(ALICE, 1, &letter, sells(10_000));
    let envelope = world.seal(&letter, vec![order]);
    let applied = world.run(vec![vec![envelope.clone()], vec![envelope.clone()]]);
    assert_eq!((fate(&applied, 0), applied.outcomes[1]), (SealedFate::Opened(1), Outcome::Refused(Refusal::DUPLICATE)));
    for why in [Refusal::NAME_OPENED, Refusal::NAME_OPENED, Refusal::NAME_OPENED, Refusal::ENDED] {
        let applied = world.run(vec![vec![envelope.clone()]]);
        assert_eq!((applied.outcomes, applied.opened.len()), (vec![Outcome::Refused(why)], 0));
    }
    assert_eq!((world.balance(PAYER, USD), world.resting(ALICE)), (START - SMALL, vec![(1, 10_000)]));
}

/// Two validators hold two envelopes of one name: that which ends last opens, wherever it stands.
#[test]
#[ignore = "wait for rules 21"]
fn of_one_name_the_one_that_ends_last_opens() {
    let mut world = World::new();
    let (early, late) = (Letter::of(PAYER, 1), Letter { until: 201, ..Letter::of(PAYER, 1) });
    let [one, two] = [(early, 10_000), (late, 20_000)].map(|(letter, units)| {
        let order = world.inside(ALICE, 1, &letter, sells(units));
        world.seal(&letter, vec![order])
    });
    for parts in [[one.clone(), two.clone()], [two, one]] {
        let mut world = world.clone();
        let is_late: Vec<bool> = parts.iter().map(|one| one.body.until == 201).collect();
        let applied = world.run(parts.into_iter().map(|one| vec![one]).collect());
        for (outcome, is_late) in applied.outcomes.iter().zip(is_late) {
            let closed = Outcome::Refused(Refusal::SEQUENCE_CONFLICT);
            assert_eq!(*outcome, if is_late { Outcome::Sealed(SealedFate::Opened(1)) } else { closed });
        }
        assert_eq!((world.resting(ALICE), world.balance(PAYER, USD)), (vec![(1, 20_000)], START - SMALL));
    }
}

/// A Byzantine validator puts a stranger's envelope beside mine: my payer, my number, a later end.
#[test]
#[ignore = "wait for rules 21"]
fn a_strangers_later_end_displaces_nobody() {
    let mut world = World::new();
    let letter = Letter::of(PAYER, 1);
    let order = world.inside(ALICE, 1, &letter, sells(10_000));
    let mine = world.seal(&letter, vec![order]);
    let stranger = Letter { signer: key(BOB), until: 250, ..letter.clone() };
    let theirs = world.seal(&stranger, vec![]);
    let mut forged = mine.clone();
    forged.body.until = 250;
    let applied = world.run(vec![vec![theirs, forged], vec![mine]]);
    assert_eq!(fate(&applied, 0), SealedFate::Unpaid(Refusal::WRONG_SIGNER));
    assert_eq!(applied.outcomes[1], Outcome::Refused(Refusal::BAD_SIGNATURE));
    assert_eq!((fate(&applied, 2), world.resting(ALICE)), (SealedFate::Opened(1), vec![(1, 10_000)]));
}

#[test]
#[ignore = "wait for rules 21"]
fn what_stays_closed_costs_nothing_and_uses_no_name() {
    let mut world = World::new();
    world.run(vec![]);
    let height = world.ledger.height() + 1;
    let letter = Letter { until: height, ..Letter::of(PAYER, 1) };
    let closed = [
        (Letter { until: height - 1, ..letter.clone() }, Refusal::ENDED),
        (Letter { until: height + AHEAD + 1, ..letter.clone() }, Refusal::SEALED_TOO_LATE),
        (Letter { key: KEY + 1, ..letter.clone() }, Refusal::SEALED_KEY),
    ];
    for (wrong, why) in closed {
        let mut world = world.clone();
        let envelope = world.seal(&wrong, vec![]);
        let before = world.balance(PAYER, USD);
        assert_eq!(world.run(vec![vec![envelope]]).outcomes, [Outcome::Refused(why)]);
        assert_eq!((world.balance(PAYER, USD), world.ledger.opened_names().len()), (before, 0));
    }
    let last = Letter { until: height + AHEAD, ..letter.clone() };
    for letter in [letter, last] {
        let mut world = world.clone();
        let envelope = world.seal(&letter, vec![]);
        assert_eq!(fate(&world.run(vec![vec![envelope]]), 0), SealedFate::Opened(0));
    }
}

/// Each sub-block has its share of places, whatever it fills them with.
#[test]
#[ignore = "wait for rules 21"]
fn a_sub_block_opens_no_more_than_its_share() {
    let mut world = World::new();
    let envelopes: Vec<Transaction> = (1..=65).map(|number| world.seal(&Letter::of(PAYER, number), vec![])).collect();
    assert!(ledger::are_envelopes_sound(&envelopes[..64], 64) && !ledger::are_envelopes_sound(&envelopes, 64));
    let applied = world.run(vec![envelopes]);
    assert_eq!(applied.outcomes[64], Outcome::Refused(Refusal::OVER_QUOTA));
    assert_eq!(world.balance(PAYER, USD), START - 64 * SMALL);
    assert_eq!([0, 1, 4, 32].map(ledger::envelopes_per_sub_block), [64, 64, 16, 2]);
}

#[test]
#[ignore = "wait for rules 21"]
fn a_point_that_is_none_gets_no_vote() {
    let mut world = World::new();
    let envelope = world.seal(&Letter::of(PAYER, 1), vec![]);
    assert!(ledger::are_envelopes_sound(std::slice::from_ref(&envelope), 1));
    let mut wrong = envelope.clone();
    let point = [vec![0xc0], vec![0; 95]].concat().try_into().expect("96 bytes");
    let sealed = vec![0; BoxSize::Small.bytes()].into();
    wrong.body.operation = Operation::Sealed(Box::new(EnvelopeBytes::new(KEY, point, sealed).expect("a size")));
    assert!(!ledger::are_envelopes_sound(&[wrong.clone()], 1), "the identity");
    // Where nobody votes it is garbage, which pays.
    let wrong = wrong.body.sign(&world.ledger.network(), &key(PAYER));
    assert_eq!(fate(&world.run(vec![vec![wrong]]), 0), SealedFate::Garbage);
    let typed =
        envelope.body.clone().sign_typed(world.ledger.network(), &WalletKey::from_bytes([3; 32]).expect("a key"));
    assert!(!ledger::are_envelopes_sound(std::slice::from_ref(&typed), 1), "an ed25519 key signs envelopes");
    assert_eq!(world.run(vec![vec![typed]]).outcomes, [Outcome::Refused(Refusal::ENVELOPE_SIGNER)]);
}

/// Keys that are wrong, in another order, too few or too many stop the block before anything changes.
#[test]
#[ignore = "wait for rules 21"]
fn wrong_opening_keys_leave_the_state_as_it_was() {
    let mut world = World::new();
    let envelopes = [1, 2].map(|number| world.seal(&Letter::of(PAYER, number), vec![]));
    let block = world.next(vec![envelopes.to_vec()]);
    let keys = world.keys(&block);
    let before = state(&world.ledger);
    let swapped = [keys[1], keys[0]];
    let count = |got| Fault::OpeningKeys { height: 1, opened: 2, got };
    let wrong: [(&[OpeningKey], Fault); 4] = [
        (&[], count(0)),
        (&keys[..1], count(1)),
        (&[keys[0], keys[1], keys[1]], count(3)),
        (&swapped, Fault::OpeningKey { height: 1 }),
    ];
    for (keys, fault) in wrong {
        assert_eq!(world.apply(&block, keys).expect_err("wrong"), fault);
        assert_eq!(state(&world.ledger), before);
    }
    world.apply(&block, &keys).expect("these are right");
    let empty = world.next(vec![]);
    assert_eq!(
        world.apply(&empty, &keys).expect_err("none is asked for"),
        Fault::OpeningKeys { height: 2, opened: 0, got: 2 }
    );
}

/// Under rules that have no envelopes nothing opens, and nothing changes of the block.
#[test]
fn before_its_rules_an_envelope_is_refused() {
    let older = Genesis { rules: primitives::RULES_OF_LANE_TERMS, ..genesis(None) };
    let mut world = World::of(&older);
    let envelope = world.seal(&Letter::of(PAYER, 1), vec![]);
    assert_eq!(world.ledger.admit(&envelope), Err(Refusal::RULES_TO_COME));
    let block = world.next(vec![vec![envelope]]);
    let applied = world.apply(&block, &[]).expect("applies");
    assert_eq!(applied.outcomes, [Outcome::Refused(Refusal::RULES_TO_COME)]);
}
