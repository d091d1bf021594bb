//! The three passes: plain transactions, the envelopes' fees, what is in those that paid.

use ledger::{Cancelled, ExactReason, SealedFate};
use primitives::{Price, SessionOperation, slot_sequence};

use super::*;
use crate::sessions::{authorize, bot, buys, cancel, caps, exact, replace, sells, terms};

fn pay(to: u8, amount: Amount) -> Operation {
    Operation::Pay { to: address(to), asset: EUR, amount }
}

fn session(operation: SessionOperation) -> Operation {
    Operation::Session(Box::new(operation))
}

/// The attack: others have reacted to a large visible offer; a hidden one of the same account overdraws.
#[test]
#[ignore = "wait for rules 21"]
fn plain_ignores_sealed() {
    let mut world = World::new();
    let letter = Letter::of(PAYER, 1);
    let hidden = world.inside(ALICE, 2, &letter, sells(900_000));
    let envelope = world.seal(&letter, vec![hidden]);
    let visible = world.plain(ALICE, 1, sells(900_000));
    let applied = world.run(vec![vec![envelope], vec![visible]]);
    assert!(matches!(applied.outcomes[1], Outcome::Offered(_)));
    assert_eq!((inside_refusals(&applied), world.resting(ALICE)), (vec![Some(Refusal::OVERDRAFT)], vec![(1, 900_000)]));
}

/// An overdraft refuses the account's sealed orders, and spares its cancels.
#[test]
#[ignore = "wait for rules 21"]
fn a_sealed_overdraft_spares_cancels() {
    let mut world = World::new();
    world.run(vec![vec![world.plain(ALICE, 1, sells(500_000))]]);
    let letter = Letter::of(PAYER, 1);
    let operations = [cancel(1), sells(300_000), sells(300_000)];
    let inside = (2..).zip(operations).map(|(number, one)| world.inside(ALICE, number, &letter, one)).collect();
    let envelope = world.seal(&letter, inside);
    let applied = world.run(vec![vec![envelope]]);
    assert_eq!(applied.opened[0].outcome, Outcome::Cancelled(Cancelled { found: 1, missing: 0 }));
    assert_eq!(inside_refusals(&applied)[1..], [Some(Refusal::OVERDRAFT); 2]);
    assert_eq!((world.resting(ALICE), world.balance(ALICE, EUR)), (vec![], START));
}

/// The attack: a visible replacement, and a hidden cancel of what it replaces.
#[test]
#[ignore = "wait for rules 21"]
fn a_plain_replace_stands_against_a_sealed_cancel() {
    let mut world = World::new();
    world.run(vec![vec![world.plain(ALICE, 1, sells(100_000)), world.plain(ALICE, 2, sells(50_000))]]);
    let letter = Letter::of(PAYER, 1);
    let at = |offer| primitives::OfferPlace { sell: EUR, buy: USD, limit: Price::ONE, offer };
    let both = Operation::Cancel([at(1), at(2)].into());
    let inside = vec![
        world.inside(ALICE, 4, &letter, cancel(1)),
        world.inside(ALICE, 5, &letter, both),
        world.inside(ALICE, 6, &letter, replace(1, 100_000, 30_000)),
    ];
    let envelope = world.seal(&letter, inside);
    let visible = world.plain(ALICE, 3, replace(1, 100_000, 120_000));
    let applied = world.run(vec![vec![envelope, visible]]);
    assert!(matches!(applied.outcomes[1], Outcome::Replaced(_)), "{:?}", applied.outcomes);
    let expected = vec![
        Outcome::Refused(Refusal::UNKNOWN_OFFER),
        Outcome::Cancelled(Cancelled { found: 1, missing: 1 }),
        Outcome::Void,
    ];
    assert_eq!((inside_outcomes(&applied), world.resting(ALICE)), (expected, vec![(3, 120_000)]));
    assert_eq!(world.balance(ALICE, EUR), START - 120_000);
}

/// And the other way round: a visible cancel stands against a hidden replacement, which pays and does nothing.
#[test]
#[ignore = "wait for rules 21"]
fn a_plain_cancel_stands_against_a_sealed_replace() {
    let mut world = World::new();
    world.run(vec![vec![world.plain(ALICE, 1, sells(100_000))]]);
    let letter = Letter::of(PAYER, 1);
    let inside = world.inside(ALICE, 3, &letter, replace(1, 100_000, 30_000));
    let envelope = world.seal(&letter, vec![inside]);
    let applied = world.run(vec![vec![world.plain(ALICE, 2, cancel(1)), envelope]]);
    assert_eq!((inside_outcomes(&applied), world.resting(ALICE)), (vec![Outcome::Void], vec![]));
    assert_eq!(world.balance(ALICE, USD), START - 3 * FEE);
}

/// The attack: a hidden order takes the number of a visible one, and ends later.
#[test]
#[ignore = "wait for rules 21"]
fn a_number_that_counts_already_is_not_free() {
    let mut world = World::new();
    let letter = Letter::of(ALICE, 2);
    let mut late = body(ALICE, 1, sells(10_000));
    late.until = 250;
    let inside = vec![
        late.sign_sealed(&world.ledger.network(), &letter.enclosure(), &key(ALICE)),
        world.inside(ALICE, 2, &letter, sells(20_000)),
        world.inside(ALICE, 3, &letter, sells(30_000)),
        world.inside(ALICE, 3, &letter, sells(30_000)),
        world.inside(ALICE, 3, &letter, sells(40_000)),
    ];
    let envelope = world.seal(&letter, inside);
    let visible = world.plain(ALICE, 1, sells(50_000));
    let applied = world.run(vec![vec![visible, envelope]]);
    assert_eq!(
        inside_refusals(&applied)[..2],
        [Some(Refusal::SEQUENCE_CONFLICT); 2],
        "the plain one, and the envelope"
    );
    let standing = applied.opened[2..].iter().filter(|one| one.outcome.refusal().is_none()).count();
    assert_eq!((standing, world.resting(ALICE).len()), (1, 2));
    // Refused operations have used no number.
    let letter = Letter::of(PAYER, 1);
    let inside = vec![world.inside(BOB, 1, &letter, sells(2_000_000)), world.inside(BOB, 2, &letter, sells(1))];
    let envelope = world.seal(&letter, inside);
    let applied = world.run(vec![vec![envelope]]);
    assert!(inside_refusals(&applied).iter().all(Option::is_some));
    let again = vec![world.plain(BOB, 1, sells(10_000)), world.plain(BOB, 2, sells(10_000))];
    assert!(world.run(vec![again]).outcomes.iter().all(|one| one.refusal().is_none()));
}

/// The attack: opened bytes come back, and plain bytes go in.
#[test]
#[ignore = "wait for rules 21"]
fn inside_counts_nowhere_else() {
    let mut world = World::new();
    let letter = Letter::of(PAYER, 1);
    let network = world.ledger.network();
    let unpaid = world.inside(ALICE, 1, &letter, sells(10_000));
    let wallet = WalletKey::from_bytes([9; 32]).expect("a key");
    let mut typed = body(ALICE, 1, sells(10_000));
    typed.account = wallet.address();
    let typed = typed.sign_sealed_typed(network, &letter.enclosure(), &wallet);
    for one in [unpaid, typed] {
        assert_eq!(primitives::verify_sealed(&network, &[(letter.enclosure(), &one)]), [true]);
        let outcome = world.clone().run(vec![vec![one.clone()]]).outcomes[0];
        assert_eq!(outcome, Outcome::Refused(Refusal::BAD_SIGNATURE), "as a plain transaction");
        for other in [Letter::of(PAYER, 2), Letter::of(BOB, 1)] {
            let mut world = world.clone();
            let envelope = world.seal(&other, vec![one.clone()]);
            let applied = world.run(vec![vec![envelope]]);
            let refused = inside_refusals(&applied)[0].expect("it is for another envelope");
            assert!([Refusal::BAD_SIGNATURE, Refusal::UNKNOWN_ACCOUNT].contains(&refused), "{refused:?}");
        }
    }
    let plain = world.plain(ALICE, 1, sells(10_000));
    let envelope = world.seal(&letter, vec![plain]);
    let applied = world.run(vec![vec![envelope]]);
    assert_eq!(inside_refusals(&applied), [Some(Refusal::BAD_SIGNATURE)], "a plain transaction in an envelope");
}

/// A wallet signs typed data of a domain that no plain transaction has.
#[test]
#[ignore = "wait for rules 21"]
fn a_wallet_signs_for_an_envelope() {
    let wallet = WalletKey::from_bytes([9; 32]).expect("a key");
    let mut founded = genesis(None);
    founded.balances.extend([USD, EUR].map(|asset| (wallet.address(), asset, START)));
    let mut world = World::of(&founded);
    let letter = Letter::of(PAYER, 1);
    let network = world.ledger.network();
    let of = |sequence| Body { account: wallet.address(), ..body(ALICE, sequence, sells(10_000)) };
    let inside =
        vec![of(1).sign_sealed_typed(network, &letter.enclosure(), &wallet), of(2).sign_typed(network, &wallet)];
    let envelope = world.seal(&letter, inside);
    let applied = world.run(vec![vec![envelope]]);
    assert_eq!(inside_refusals(&applied), [None, Some(Refusal::BAD_SIGNATURE)]);
}

#[test]
#[ignore = "wait for rules 21"]
fn garbage_pays_and_does_nothing() {
    let mut world = World::new();
    let letter = Letter::of(PAYER, 1);
    let mut envelope = world.seal(&letter, vec![]);
    let Operation::Sealed(bytes) = &envelope.body.operation else { unreachable!("it is one") };
    let sealed: Box<[u8]> = bytes.sealed().iter().map(|byte| !byte).collect();
    let wrong = primitives::EnvelopeBytes::new(KEY, bytes.point, sealed).expect("a size");
    envelope.body.operation = Operation::Sealed(Box::new(wrong));
    let envelope = envelope.body.sign(&world.ledger.network(), &key(PAYER));
    let applied = world.run(vec![vec![envelope]]);
    assert_eq!((applied.outcomes[0], applied.opened.len()), (Outcome::Sealed(SealedFate::Garbage), 0));
    assert_eq!(world.balance(PAYER, USD), START - SMALL);
}

#[test]
#[ignore = "wait for rules 21"]
fn an_envelope_holds_orders_alone() {
    let mut world = World::new();
    let letter = Letter::of(PAYER, 1);
    let cover = world.seal(&Letter::of(ALICE, 9), vec![]).body.operation;
    let mut late = body(ALICE, 5, sells(10_000));
    late.until = 258;
    let inside = vec![
        world.inside(ALICE, 1, &letter, pay(BOB, 10)),
        world.inside(ALICE, 2, &letter, session(SessionOperation::Revoke { slot: 1 })),
        world.inside(ALICE, 3, &letter, cover),
        world.inside(ALICE, 4, &letter, exact(10_000)),
        late.sign_sealed(&world.ledger.network(), &letter.enclosure(), &key(ALICE)),
    ];
    let envelope = world.seal(&letter, inside);
    let applied = world.run(vec![vec![envelope]]);
    let not = Some(Refusal::NOT_SEALABLE);
    assert_eq!(inside_refusals(&applied), [not, not, not, None, Some(Refusal::SEALED_TOO_LATE)]);
}

/// Fees are paid by ascending number, before anything that is in envelopes, and after all that is plain.
#[test]
#[ignore = "wait for rules 21"]
fn fees_come_after_plain_and_before_the_inside() {
    let mut founded = genesis(None);
    let left = 2 * SMALL + FEE;
    founded.balances.retain(|(account, asset, _)| (*account, *asset) != (address(PAYER), USD));
    founded.balances.push((address(PAYER), USD, 10_000 + left));
    let mut world = World::of(&founded);
    // What it sells comes back with the next block; the payment is plain, and comes first.
    let paid = Operation::Pay { to: address(BOB), asset: USD, amount: 10_000 - FEE };
    let plain = world.plain(PAYER, 9, paid);
    let envelopes: Vec<Transaction> = [3, 1, 2]
        .map(|number| {
            let letter = Letter::of(PAYER, number);
            let own = world.inside(PAYER, 10 + number, &letter, sells(10_000));
            let alices = world.inside(ALICE, number, &letter, sells(10_000));
            world.seal(&letter, vec![own, alices])
        })
        .into();
    let applied = world.run(vec![envelopes, vec![plain]]);
    let unpaid = Outcome::Sealed(SealedFate::Unpaid(Refusal::OVERDRAFT));
    let opened = Outcome::Sealed(SealedFate::Opened(2));
    assert_eq!(applied.outcomes, [unpaid, opened, opened, Outcome::Applied]);
    // A fee was left for one of the payer's two orders: neither counts. Alice's count, but not those of the unpaid one.
    assert_eq!(inside_refusals(&applied), [Some(Refusal::OVERDRAFT), None, Some(Refusal::OVERDRAFT), None]);
    assert_eq!(world.resting(ALICE), [(1, 10_000), (2, 10_000)]);
    assert_eq!(world.balance(PAYER, USD), FEE);
    // Its name is used up, its number is free.
    assert_eq!(world.ledger.admit(&world.plain(PAYER, 3, sells(10_000))), Ok(()));
}

/// An account's own envelopes come before those of its session keys, and these count under their caps.
#[test]
#[ignore = "wait for rules 21"]
fn a_session_key_sends_envelopes_under_its_cap() {
    let mut world = World::new();
    let of_world = crate::world::World::of(&genesis(None));
    let mut granted = terms(1, 60, 50);
    // An offer of a session key that rests pays for its removal, too.
    granted.caps = caps(2 * SMALL + 2 * FEE, 100_000);
    let operation = authorize(&of_world, ALICE, granted);
    assert_eq!(world.run(vec![vec![world.plain(ALICE, 1, operation)]]).outcomes, [Outcome::Applied]);
    let letter = |number| Letter {
        signer: bot(1),
        payer: address(ALICE),
        sequence: slot_sequence(1, number),
        until: 50,
        key: KEY,
    };
    let first = letter(1);
    let order = body(ALICE, slot_sequence(1, 9), sells(10_000));
    let order = order.sign_sealed(&world.ledger.network(), &first.enclosure(), &bot(1));
    let second = body(ALICE, slot_sequence(1, 10), sells(10_000));
    let second = second.sign_sealed(&world.ledger.network(), &first.enclosure(), &bot(1));
    let envelopes = vec![
        world.seal(&letter(3), vec![]),
        world.seal(&letter(2), vec![]),
        world.seal(&first, vec![order]),
        world.seal(&Letter::of(ALICE, 2), vec![]),
    ];
    let mut both = world.clone();
    let applied = world.run(vec![envelopes.clone()]);
    let unpaid = Outcome::Sealed(SealedFate::Unpaid(Refusal::SESSION_CAP));
    let opened = |count| Outcome::Sealed(SealedFate::Opened(count));
    assert_eq!(applied.outcomes, [unpaid, opened(0), opened(1), opened(0)]);
    assert_eq!((inside_refusals(&applied), world.resting(ALICE).len()), (vec![None], 1));
    // What the fees leave of the cap pays for one order, and not for two.
    let two = both.seal(&first, vec![applied.opened[0].transaction.clone(), second]);
    let applied = both.run(vec![vec![envelopes[1].clone(), two]]);
    assert_eq!(inside_refusals(&applied), [Some(Refusal::SESSION_CAP); 2]);
}

/// Exact orders, sealed and plain, share one batch: each is filled exactly or not at all.
#[test]
#[ignore = "wait for rules 21"]
fn exact_orders_sealed_and_plain_share_a_batch() {
    let mut world = World::new();
    let letter = Letter::of(PAYER, 1);
    let inside = vec![world.inside(ALICE, 1, &letter, exact(20_000)), world.inside(ALICE, 2, &letter, sells(50_000))];
    let envelope = world.seal(&letter, inside);
    let plain = vec![world.plain(BOB, 1, buys(300_000)), world.plain(4, 1, exact(30_000)), envelope];
    let applied = world.run(vec![plain]);
    let filled = |outcome: &Outcome, units| {
        outcome.exact().is_some_and(|exact| exact.why == ExactReason::Filled && exact.sold == units)
    };
    assert!(filled(&applied.outcomes[1], 30_000), "{:?}", applied.outcomes);
    assert!(filled(&applied.opened[0].outcome, 20_000), "{:?}", applied.opened);
}

/// A chain with room for two pairs: plain offers open them, though the pair of a sealed one is lower.
#[test]
#[ignore = "wait for rules 21"]
fn plain_offers_open_their_pairs_first() {
    let mut founded = genesis(None);
    founded.assets.push(ledger::Listing::new("GBP", 2, address(9)));
    founded.limits.open_pairs = 2;
    let mut world = World::of(&founded);
    let letter = Letter::of(PAYER, 1);
    let offer = |sell, buy| Operation::offer(sell, buy, 10_000, "2".parse().expect("a price"));
    let inside =
        vec![world.inside(ALICE, 1, &letter, offer(USD, EUR)), world.inside(ALICE, 2, &letter, offer(EUR, USD))];
    let envelope = world.seal(&letter, inside);
    let plain = [offer(EUR, USD), offer(EUR, AssetId(2))];
    let plain: Vec<Transaction> = (1..).zip(plain).map(|(number, one)| world.plain(BOB, number, one)).collect();
    let mut alone = world.clone();
    let applied = world.run(vec![vec![envelope.clone()], plain]);
    assert!(applied.outcomes.iter().all(|outcome| outcome.refusal().is_none()));
    assert_eq!(inside_refusals(&applied), [Some(Refusal::TOO_MANY_PAIRS), None]);
    assert_eq!(inside_refusals(&alone.run(vec![vec![envelope]])), [None, None]);
}

/// The largest block: 64 envelopes of 32 operations, of as many accounts as there are.
#[test]
#[ignore = "wait for rules 21"]
fn the_largest_block_opens() {
    let mut world = World::new();
    let envelopes: Vec<Transaction> = (1..=64)
        .map(|number| {
            let letter = Letter::of(PAYER, number);
            let signer = if number % 2 == 0 { ALICE } else { BOB };
            let first = (number - 1) / 2 * 32 % 64;
            let inside = (1..=32).map(|at| world.inside(signer, first + at, &letter, sells(4_096))).collect();
            world.seal(&letter, inside)
        })
        .collect();
    let applied = world.run(vec![envelopes]);
    assert_eq!(applied.opened.len(), 2_048);
    let counting = applied.opened.iter().filter(|one| one.outcome.refusal().is_none()).count();
    assert_eq!((counting, world.resting(ALICE).len() + world.resting(BOB).len()), (128, 128));
}
