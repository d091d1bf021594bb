//! Session keys: what they may do and use, when their offers end, and that they silence nobody.

use ledger::{
    Applied, Cancelled, EndReason, EndedOffer, Outcome, Pair, Place, Refusal, SESSION_ENDS_PER_SUB_BLOCK,
    SLOT_OFFERS_MAX, SessionRecord,
};
use primitives::{
    Amount, AssetId, Body, ClientId, ExactSide, Height, Life, OfferPlace, OfferReplacement, Operation, Price,
    SecretKey, Sequence, SessionCap, SessionOperation, SessionScope, SessionSlot, SessionTerms, SignedBy, Transaction,
    WalletKey, session_possession_bytes, slot_sequence,
};

use crate::world::{EUR, FEE, START, USD, World, address, genesis, key};

const ALICE: u8 = 1;
const BOB: u8 = 2;
/// What authorising a key costs.
const AUTHORIZE: Amount = 100 * FEE;
const SELL_EUR: Pair = Pair { sell: EUR, buy: USD };

fn bot(number: u8) -> SecretKey {
    SecretKey::from_seed([100 + number; 32])
}

fn world() -> World {
    World::of(&genesis(None))
}

fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

fn caps(usd: Amount, eur: Amount) -> Box<[SessionCap]> {
    [(USD, usd), (EUR, eur)].map(|(asset, units)| SessionCap { asset, units }).into()
}

fn terms(slot: SessionSlot, until: Height, alive: Height) -> SessionTerms {
    let (key, scope) = (bot(slot as u8).public(), SessionScope::Trade);
    SessionTerms { slot, key, scope, until, alive, caps: caps(10_000, 100_000) }
}

/// An authorisation that the bot of its slot has signed.
fn authorize(world: &World, person: u8, terms: SessionTerms) -> Operation {
    let secret = (0..50).map(bot).find(|bot| bot.public() == terms.key).expect("a bot's key");
    let bytes = session_possession_bytes(&world.ledger.network(), &address(person), terms.slot, &terms.key);
    Operation::Session(Box::new(SessionOperation::Authorize { possession: secret.sign(&bytes), terms }))
}

fn alive(slot: SessionSlot, through: Height) -> Operation {
    Operation::Session(Box::new(SessionOperation::Alive { slot, through }))
}

fn revoke(slot: SessionSlot) -> Operation {
    Operation::Session(Box::new(SessionOperation::Revoke { slot }))
}

fn sells(amount: Amount) -> Operation {
    Operation::offer(EUR, USD, amount, Price::ONE)
}

/// Bob buys euros for up to so many dollars, in this batch.
fn buys(amount: Amount) -> Operation {
    let life = Life::OneBatch;
    Operation::CreateOffer { sell: USD, buy: EUR, amount, limit: price("0.9"), life, client: ClientId::NONE }
}

fn exact(units: Amount) -> Operation {
    let (side, client) = (ExactSide::Sell, ClientId::NONE);
    Operation::Exact { sell: EUR, buy: USD, side, units, bound: 1, client }
}

fn cancel(offer: Sequence) -> Operation {
    Operation::cancel(EUR, USD, Price::ONE, offer)
}

fn replace(offer: Sequence, remains: Amount, amount: Amount) -> Operation {
    let old = OfferPlace { sell: EUR, buy: USD, limit: Price::ONE, offer };
    let (limit, life, client) = (Price::ONE, Life::Rests, ClientId::NONE);
    Operation::Replace(Box::new(OfferReplacement { old, remains, amount, limit, life, client }))
}

/// A transaction of the session key in a slot of Alice.
fn by(world: &World, slot: SessionSlot, number: u64, operation: Operation) -> Transaction {
    let sequence = slot_sequence(slot, number);
    let body = Body { chain: 1, account: address(ALICE), sequence, until: 50_000, operation };
    body.sign(&world.ledger.network(), &bot(slot as u8))
}

/// Alice with a session key in slot 1 that lives for 50 heights.
fn with_bot() -> World {
    let mut world = world();
    let operation = authorize(&world, ALICE, terms(1, 60, 50));
    assert_eq!(world.block(vec![(ALICE, operation)]).outcomes, [Outcome::Applied]);
    world
}

fn session(world: &World, slot: SessionSlot) -> SessionRecord {
    let account = world.ledger.accounts().get(&address(ALICE)).expect("exists");
    account.session(slot).expect("the slot is used").clone()
}

fn used(world: &World, slot: SessionSlot) -> [i64; 2] {
    let session = session(world, slot);
    [session.budgets[0].used, session.budgets[1].used]
}

fn refusals(applied: &Applied) -> Vec<Option<Refusal>> {
    applied.outcomes.iter().map(Outcome::refusal).collect()
}

/// Ids of Alice's resting offers.
fn resting(world: &World) -> Vec<Sequence> {
    let offers = world.ledger.book().iter().flat_map(|(_, offers)| offers.iter().collect::<Vec<_>>());
    offers.filter(|offer| offer.place.account == address(ALICE)).map(|offer| offer.place.id).collect()
}

fn ended(id: Sequence, returned: Amount, why: EndReason) -> EndedOffer {
    EndedOffer { pair: SELL_EUR, place: Place { limit: Price::ONE, account: address(ALICE), id }, returned, why }
}

fn of_alice(applied: &Applied) -> Vec<EndedOffer> {
    applied.batch.ended.iter().filter(|ended| ended.place.account == address(ALICE)).copied().collect()
}

/// What the ledger says of one transaction, to who submits it and in a block.
fn refused(world: &mut World, transaction: Transaction) -> Option<Refusal> {
    let admitted = world.ledger.admit(&transaction).err();
    let applied = world.run(vec![vec![transaction]]);
    assert_eq!(admitted, applied.outcomes[0].refusal(), "admission and the filter agree");
    admitted
}

#[test]
fn a_session_key_trades_within_its_caps_and_counts_what_it_uses() {
    let mut world = with_bot();
    let sold = |applied: &Applied| applied.batch.fills.iter().find(|fill| fill.pair == SELL_EUR).copied();
    let offer = by(&world, 1, 1, sells(40_000));
    assert_eq!(refused(&mut world, offer), None);
    assert_eq!((resting(&world), used(&world, 1)), (vec![slot_sequence(1, 1)], [2 * FEE as i64, 40_000]));
    let fill = sold(&world.block(vec![(BOB, buys(15_000))])).expect("it trades");
    assert_eq!(used(&world, 1), [2 * FEE as i64 - fill.bought as i64, 40_000], "what it bought makes room in dollars");
    // Of euros there is room for 60,000 more, and not for one more.
    let over = by(&world, 1, 2, sells(60_001));
    assert_eq!(refused(&mut world, over), Some(Refusal::SESSION_CAP));
    let both = [by(&world, 1, 2, sells(30_000)), by(&world, 1, 3, sells(30_001))];
    assert_eq!(refusals(&world.run(vec![both.to_vec()])), [Some(Refusal::SESSION_CAP); 2]);
    let both = [by(&world, 1, 2, sells(30_000)), by(&world, 1, 3, exact(30_000))];
    assert_eq!(refusals(&world.run(vec![both.to_vec()])), [None; 2]);
    let [_, eur] = used(&world, 1);
    assert_eq!(eur, 70_000, "the exact order found nobody and returned");
    // A cancel by the owner gives back to the key's cap what rested.
    world.block(vec![(ALICE, cancel(slot_sequence(1, 2)))]);
    assert_eq!(used(&world, 1)[1], 40_000);
    assert_eq!(world.balance(ALICE, EUR), START - 40_000);
}

/// The thief sells to himself what he can at a price he makes, again and again, and brings it back at another one.
#[test]
fn a_thief_gets_no_more_than_the_caps_by_round_trips() {
    let mut world = world();
    let rich = SessionTerms { caps: caps(100_000, 300_000), ..terms(1, 60, 50) };
    let operation = authorize(&world, ALICE, rich);
    world.block(vec![(ALICE, operation)]);
    let mut number = 0;
    let mut next = |world: &World, operation| {
        number += 1;
        by(world, 1, number, operation)
    };
    for _ in 0..12 {
        // Alice's key sells euros for a tenth, then dollars for a tenth; Bob takes the other side of each batch.
        for (sell, buy, units) in [(EUR, USD, 100_000), (USD, EUR, 50_000)] {
            let offer = |sell, buy, amount, limit: &str, life| Operation::CreateOffer {
                sell,
                buy,
                amount,
                limit: price(limit),
                life,
                client: ClientId::NONE,
            };
            let theirs = next(&world, offer(sell, buy, units, "0.1", Life::OneBatch));
            let own = offer(buy, sell, units / 9, "9", Life::OneBatch);
            let own = world.sign(BOB, own);
            world.run(vec![vec![theirs, own]]);
        }
    }
    let lost = [(USD, 100_000 + AUTHORIZE), (EUR, 300_000)];
    for (asset, cap) in lost {
        assert!(world.balance(ALICE, asset) >= START - cap, "{asset}: {}", world.balance(ALICE, asset));
    }
    assert!(world.balance(ALICE, EUR) < START - 150_000, "the thief did trade");
    let [usd, eur] = used(&world, 1);
    assert_eq!(world.balance(ALICE, USD) as i64, (START - AUTHORIZE) as i64 - usd);
    assert_eq!(world.balance(ALICE, EUR) as i64, START as i64 - eur);
}

#[test]
fn a_session_key_does_nothing_beyond_its_scope() {
    let mut world = with_bot();
    let register = Operation::CreateAccount { account: address(ALICE), key: bot(1).public() };
    let pay = Operation::Pay { to: address(BOB), asset: USD, amount: 5 };
    let burn = Operation::Burn { asset: USD, amount: 5 };
    let withdraw = Operation::Withdraw { to: bot(1).public(), asset: USD, amount: 50 };
    let other = authorize(&world, ALICE, terms(2, 60, 50));
    for operation in [register, pay, burn, withdraw, other, revoke(1), alive(2, 55), Operation::Unstake { units: 1 }] {
        let transaction = by(&world, 1, 1, operation);
        assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_SCOPE));
    }
    world.block(vec![(ALICE, sells(20_000))]);
    let number = world.sequences[&ALICE];
    let transaction = by(&world, 1, 1, replace(number, 20_000, 20_000));
    assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_REPLACES));
    let transaction = by(&world, 1, 1, cancel(number));
    assert_eq!(refused(&mut world, transaction), None, "it cancels the owner's offers");
    // A key that only cancels places nothing, and keeps nothing alive.
    let cancels = SessionTerms { scope: SessionScope::Cancel, caps: caps(10, 0), ..terms(2, 60, 50) };
    let operation = authorize(&world, ALICE, cancels);
    world.block(vec![(ALICE, operation), (ALICE, sells(20_000))]);
    for operation in [sells(20_000), exact(20_000), alive(2, 55)] {
        let transaction = by(&world, 2, 1, operation);
        assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_SCOPE));
    }
    let transaction = by(&world, 2, 1, cancel(world.sequences[&ALICE]));
    assert_eq!(refused(&mut world, transaction), None);
    // Its fees count: of 10 units it has used 2.
    let stops = [2, 3, 4, 5, 6].map(|number| by(&world, 2, number, alive(1, 0)));
    assert_eq!(refusals(&world.run(vec![stops.to_vec()])), [Some(Refusal::SESSION_CAP); 5]);
}

#[test]
fn the_owner_and_other_keys_cannot_use_the_numbers_of_a_slot() {
    let mut world = with_bot();
    let body = |sequence| Body { chain: 1, account: address(ALICE), sequence, until: 50_000, operation: sells(20_000) };
    let network = world.ledger.network();
    let of_nobody = body(slot_sequence(2, 1)).sign(&network, &bot(1));
    assert_eq!(refused(&mut world, of_nobody), Some(Refusal::UNKNOWN_SESSION));
    let by_owner = body(slot_sequence(1, 1)).sign(&network, &key(ALICE));
    assert_eq!(refused(&mut world, by_owner), Some(Refusal::WRONG_SESSION_KEY));
    let by_bot = body(2).sign(&network, &bot(1));
    assert_eq!(refused(&mut world, by_bot), Some(Refusal::WRONG_SIGNER));
    for (number, refusal) in [(0, Refusal::SEQUENCE_TOO_OLD), (65, Refusal::SEQUENCE_TOO_FAR)] {
        let transaction = by(&world, 1, number, sells(20_000));
        assert_eq!(refused(&mut world, transaction), Some(refusal));
    }
    let (transaction, owners) = (by(&world, 1, 64, sells(20_000)), world.sequences[&ALICE]);
    assert_eq!(refused(&mut world, transaction.clone()), None);
    assert_eq!(refused(&mut world, transaction), Some(Refusal::SEQUENCE_USED));
    let account = world.ledger.accounts().get(&address(ALICE)).expect("exists");
    assert_eq!(account.window().highest(), owners, "the key moves only its own window");
    let high = body((1 << 63) + 5).sign(&network, &key(ALICE));
    assert_eq!(refused(&mut world, high), Some(Refusal::SEQUENCE_TOO_FAR));
}

#[test]
fn authorisations_name_the_next_slot_and_a_key_that_has_signed() {
    let mut world = with_bot();
    let far = SessionTerms { until: 5_000_000, ..terms(2, 60, 50) };
    let mine = SessionTerms { key: bot(1).public(), ..terms(2, 60, 50) };
    let cases = [
        (terms(1, 60, 50), Refusal::SESSION_SLOT),
        (terms(3, 60, 50), Refusal::SESSION_SLOT),
        (terms(2, 60, 0), Refusal::SESSION_HEIGHTS),
        (far, Refusal::SESSION_HEIGHTS),
        (mine, Refusal::SESSION_KEY_TAKEN),
        (terms(2, 50, 60), Refusal::SESSION_TERMS),
        (
            SessionTerms { caps: [SessionCap { asset: AssetId(7), units: 1 }].into(), ..terms(2, 60, 50) },
            Refusal::UNKNOWN_ASSET,
        ),
    ];
    for (terms, refusal) in cases {
        let operation = authorize(&world, ALICE, terms);
        assert_eq!(world.outcome(ALICE, operation), Some(refusal));
    }
    // The signature of the key for another slot or account.
    for operation in [authorize(&world, BOB, terms(2, 60, 50)), authorize(&world, ALICE, terms(3, 60, 50))] {
        let Operation::Session(operation) = operation else { panic!("it authorises") };
        let SessionOperation::Authorize { possession, .. } = *operation else { panic!("it authorises") };
        let forged = SessionOperation::Authorize { terms: terms(2, 60, 50), possession };
        let transaction = world.sign(ALICE, Operation::Session(Box::new(forged)));
        *world.sequences.get_mut(&ALICE).expect("she signed") -= 1;
        assert_eq!(refusals(&world.run(vec![vec![transaction]])), [Some(Refusal::BAD_SIGNATURE)]);
    }
    // Of two in a block the one with the higher number counts.
    let other = SessionTerms { key: bot(40).public(), ..terms(2, 60, 50) };
    let (first, second) = (authorize(&world, ALICE, terms(2, 60, 50)), authorize(&world, ALICE, other));
    let applied = world.block(vec![(ALICE, first), (ALICE, second)]);
    assert_eq!(applied.outcomes, [Outcome::Void, Outcome::Applied]);
    assert_eq!(session(&world, 2).key, bot(40).public());
    // Sixteen keys; one that is over makes room.
    for slot in 3..=16 {
        let ends = if slot == 16 { world.ledger.height() + 3 } else { 200 };
        let operation = authorize(&world, ALICE, terms(slot, ends, ends));
        assert_eq!(world.outcome(ALICE, operation), None);
    }
    let operation = authorize(&world, ALICE, terms(17, 200, 200));
    assert_eq!(world.outcome(ALICE, operation), Some(Refusal::SESSIONS_FULL));
    world.empty_blocks(2);
    let operation = authorize(&world, ALICE, terms(17, 200, 200));
    assert_eq!(world.outcome(ALICE, operation), None);
    let account = world.ledger.accounts().get(&address(ALICE)).expect("exists");
    let sessions = account.sessions().expect("there are some");
    assert_eq!((sessions.slots, sessions.records.len(), sessions.get(16)), (17, 16, None));
}

#[test]
fn offers_end_with_the_timer_after_the_batch_and_trades_are_refused_until_it_is_raised() {
    let mut world = with_bot();
    let raise = |world: &World, number, through| by(world, 1, number, alive(1, through));
    let offer = by(&world, 1, 1, sells(50_000));
    world.run(vec![vec![offer]]);
    world.block(vec![(ALICE, sells(20_000))]);
    let own = world.sequences[&ALICE];
    for (through, refusal) in
        [(50, Refusal::SESSION_THROUGH), (3, Refusal::SESSION_THROUGH), (61, Refusal::SESSION_THROUGH)]
    {
        let transaction = raise(&world, 2, through);
        assert_eq!(refused(&mut world, transaction), Some(refusal), "{through}");
    }
    while world.ledger.height() < 49 {
        world.empty_blocks(1);
    }
    assert_eq!(resting(&world), [own, slot_sequence(1, 1)]);
    // Block 50: the batch comes first, and an offer of this very block ends with it, too.
    let (bob, new) = (world.sign(BOB, buys(15_000)), by(&world, 1, 3, sells(30_000)));
    let applied = world.run(vec![vec![new, bob]]);
    let Outcome::Offered(met) = applied.outcomes[0] else { panic!("it is placed") };
    assert_eq!((met.left, met.returned + met.sold), (0, 30_000), "the receipt of the new offer says it");
    let left = |id| applied.batch.fills.iter().find(|fill| fill.place.id == id).map_or(0, |fill| fill.sold);
    let [first, second] = [slot_sequence(1, 1), slot_sequence(1, 3)];
    let of = |id, amount| ended(id, amount - left(id), EndReason::Lapsed);
    assert_eq!(of_alice(&applied), [of(first, 50_000), of(second, 30_000)]);
    assert!(left(own) + left(first) + left(second) > 10_000);
    let sold = (left(first) + left(second)) as i64;
    assert_eq!((resting(&world).len() <= 1, used(&world, 1)[1]), (true, sold));
    // From now on it only cancels, until its timer is raised, by itself or by the owner.
    for (operation, refusal) in [
        (sells(20_000), Some(Refusal::SESSION_LAPSED)),
        (exact(20_000), Some(Refusal::SESSION_LAPSED)),
        (alive(1, 0), Some(Refusal::SESSION_LAPSED)),
        (cancel(own), None),
    ] {
        let transaction = by(&world, 1, 4, operation);
        assert_eq!(refused(&mut world, transaction), refusal);
    }
    let heartbeat = raise(&world, 5, 58);
    let offer = by(&world, 1, 6, sells(20_000));
    assert_eq!(refusals(&world.run(vec![vec![heartbeat, offer.clone()]])), [None, Some(Refusal::SESSION_LAPSED)]);
    assert_eq!(refused(&mut world, offer), None, "it is judged by the state before the block");
    assert_eq!(world.outcome(ALICE, alive(1, 59)), None);
    while world.ledger.height() < 59 {
        world.empty_blocks(1);
    }
    assert!(resting(&world).is_empty());
    let transaction = raise(&world, 7, 60);
    assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_THROUGH), "not for the block itself");
    let transaction = by(&world, 1, 7, cancel(own));
    assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_ENDED));
}

#[test]
fn of_raises_and_stops_in_one_block_the_stop_counts_and_else_the_highest_raise() {
    let mut world = with_bot();
    let offers = [by(&world, 1, 1, sells(20_000)), by(&world, 1, 9, sells(20_000))];
    world.run(vec![offers.to_vec()]);
    let raises = [(2, 53), (3, 57), (4, 55)].map(|(number, through)| by(&world, 1, number, alive(1, through)));
    assert_eq!(refusals(&world.run(vec![raises.to_vec()])), [None; 3]);
    assert_eq!(session(&world, 1).alive, 57);
    // A stop and what follows it in the same block: the offers end, and lower numbers are void.
    let block = [(6, sells(25_000)), (7, alive(1, 0)), (8, alive(1, 58))];
    let block = block.map(|(number, operation)| by(&world, 1, number, operation));
    let applied = world.run(vec![block.to_vec()]);
    assert_eq!(refusals(&applied), [None; 3]);
    let lapsed = |number, amount| ended(slot_sequence(1, number), amount, EndReason::Lapsed);
    assert_eq!(of_alice(&applied), [lapsed(1, 20_000), lapsed(6, 25_000), lapsed(9, 20_000)]);
    assert_eq!((session(&world, 1).alive, used(&world, 1)[1]), (world.ledger.height(), 0));
    for number in [5, 6] {
        let transaction = by(&world, 1, number, alive(1, 58));
        assert_eq!(refused(&mut world, transaction), Some(Refusal::SEQUENCE_USED), "signed before the stop");
    }
    let transaction = by(&world, 1, 10, alive(1, 58));
    assert_eq!(refused(&mut world, transaction), None);
    // Who stops another's slot voids all that may be on its way there.
    assert_eq!(world.outcome(ALICE, alive(1, 0)), None);
    for (number, refusal) in
        [(10, Refusal::SEQUENCE_TOO_OLD), (11, Refusal::SEQUENCE_USED), (74, Refusal::SEQUENCE_USED)]
    {
        let transaction = by(&world, 1, number, alive(1, 59));
        assert_eq!(refused(&mut world, transaction), Some(refusal));
    }
    let transaction = by(&world, 1, 75, alive(1, 59));
    assert_eq!(refused(&mut world, transaction), None);
}

#[test]
fn a_revocation_ends_offers_after_the_batch_and_the_slot_never_returns() {
    let mut world = with_bot();
    let offer = by(&world, 1, 1, sells(50_000));
    world.run(vec![vec![offer]]);
    // An order of the same block is in its batch.
    let (order, bob) = (by(&world, 1, 2, sells(20_000)), world.sign(BOB, buys(60_000)));
    let gone = world.sign(ALICE, revoke(1));
    let applied = world.run(vec![vec![gone, order, bob]]);
    assert_eq!(refusals(&applied), [None; 3]);
    let sold: Amount = applied.batch.fills.iter().filter(|fill| fill.pair == SELL_EUR).map(|fill| fill.sold).sum();
    let returned: Amount = of_alice(&applied).iter().map(|ended| ended.returned).sum();
    assert!(sold > 50_000 && sold + returned == 70_000);
    assert_eq!((resting(&world).len(), world.balance(ALICE, EUR)), (0, START - sold));
    let transaction = by(&world, 1, 3, sells(20_000));
    assert_eq!(refused(&mut world, transaction), Some(Refusal::UNKNOWN_SESSION));
    assert_eq!(world.outcome(ALICE, revoke(1)), Some(Refusal::UNKNOWN_SESSION));
    let operation = authorize(&world, ALICE, terms(1, 60, 50));
    assert_eq!(world.outcome(ALICE, operation), Some(Refusal::SESSION_SLOT));
    // The key itself may have another slot.
    let again = SessionTerms { key: bot(1).public(), ..terms(2, 60, 50) };
    let operation = authorize(&world, ALICE, again);
    assert_eq!(world.outcome(ALICE, operation), None);
}

/// Whoever has had the account's key loses the sessions that he authorised with it, also those of the last block.
#[test]
fn a_new_key_of_the_account_closes_its_sessions() {
    let mut world = with_bot();
    let offer = by(&world, 1, 1, sells(50_000));
    world.run(vec![vec![offer]]);
    let rekey = Operation::CreateAccount { account: address(ALICE), key: key(77).public() };
    let second = authorize(&world, ALICE, terms(2, 60, 50));
    let applied = world.block(vec![(ALICE, rekey), (ALICE, second)]);
    assert_eq!(refusals(&applied), [None; 2]);
    for slot in [1, 2] {
        assert!(session(&world, slot).is_closed);
        for operation in [sells(20_000), cancel(slot_sequence(1, 1)), alive(slot, 55), alive(slot, 0)] {
            let transaction = by(&world, slot, 2, operation);
            assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_ENDED));
        }
    }
    assert_eq!(resting(&world), [slot_sequence(1, 1)]);
    while world.ledger.height() < 50 {
        world.empty_blocks(1);
    }
    assert!(resting(&world).is_empty(), "its offers end with their timer");
}

/// A key asks for more than its account has, block after block. The owner's transactions stand, and so do cancels.
#[test]
fn a_key_that_overdraws_silences_nobody() {
    let mut world = world();
    let greedy = SessionTerms { caps: caps(START, i64::MAX as u64), ..terms(1, 60, 50) };
    let operation = authorize(&world, ALICE, greedy);
    world.block(vec![(ALICE, operation), (ALICE, sells(20_000))]);
    let own = world.sequences[&ALICE];
    let greed = |world: &World, number| by(world, 1, number, sells(START));
    let block = vec![
        greed(&world, 1),
        by(&world, 1, 2, cancel(own)),
        world.sign(ALICE, Operation::Pay { to: address(BOB), asset: USD, amount: 500 }),
    ];
    assert_eq!(refusals(&world.run(vec![block])), [Some(Refusal::OVERDRAFT), None, None]);
    // The owner spends all: then the key's cancel has no fee.
    let all = world.balance(ALICE, USD) - FEE;
    let rich = Operation::Pay { to: address(BOB), asset: USD, amount: all };
    world.block(vec![(BOB, Operation::Pay { to: address(ALICE), asset: EUR, amount: 10 }), (ALICE, sells(20_000))]);
    let own = world.sequences[&ALICE];
    let mut block = vec![greed(&world, 3), by(&world, 1, 4, cancel(own)), world.sign(ALICE, rich)];
    let short = Some(Refusal::OVERDRAFT);
    assert_eq!(refusals(&world.run(vec![block.clone()])), [short, None, short], "it has two units less by now");
    // And when the owner overdraws herself, her revocation stands beside the cancels.
    block = vec![
        world.sign(ALICE, Operation::Pay { to: address(BOB), asset: USD, amount: START }),
        world.sign(ALICE, revoke(1)),
        by(&world, 1, 5, sells(20_000)),
        by(&world, 1, 6, alive(1, 55)),
    ];
    assert_eq!(refusals(&world.run(vec![block])), [short, None, short, None]);
}

#[test]
fn what_exceeds_the_cap_of_one_slot_leaves_the_others_alone() {
    let mut world = with_bot();
    let operation = authorize(&world, ALICE, terms(2, 60, 50));
    world.block(vec![(ALICE, operation)]);
    let offer = by(&world, 1, 1, sells(20_000));
    world.run(vec![vec![offer]]);
    let block = [
        by(&world, 1, 2, sells(90_000)),
        by(&world, 1, 3, cancel(slot_sequence(1, 1))),
        by(&world, 1, 4, alive(1, 55)),
        by(&world, 2, 1, sells(30_000)),
        world.sign(ALICE, sells(20_000)),
    ];
    let applied = world.run(vec![block.to_vec()]);
    assert_eq!(refusals(&applied), [Some(Refusal::SESSION_CAP), None, None, None, None]);
    assert_eq!(applied.outcomes[1], Outcome::Cancelled(Cancelled { found: 1, missing: 0 }));
    assert_eq!((used(&world, 1)[1], used(&world, 2)[1]), (0, 30_000));
}

#[test]
fn the_owner_may_replace_an_offer_of_a_key_and_comes_before_it() {
    let mut world = with_bot();
    let offer = by(&world, 1, 1, sells(40_000));
    world.run(vec![vec![offer]]);
    let own = by(&world, 1, 2, replace(slot_sequence(1, 1), 40_000, 60_000));
    assert_eq!(refused(&mut world, own), None);
    assert_eq!(used(&world, 1)[1], 60_000);
    let by_key = by(&world, 1, 3, replace(slot_sequence(1, 2), 60_000, 50_000));
    let by_owner = world.sign(ALICE, replace(slot_sequence(1, 2), 60_000, 30_000));
    let number = by_owner.body.sequence;
    for block in [vec![by_key.clone(), by_owner.clone()], vec![by_owner, by_key]] {
        let mut world =
            World { ledger: world.ledger.clone(), roots: world.roots.clone(), sequences: world.sequences.clone() };
        let applied = world.run(vec![block.clone()]);
        let void = block.iter().position(|one| one.body.sequence != number).expect("the key's");
        assert_eq!(applied.outcomes[void], Outcome::Void);
        assert_eq!((resting(&world), used(&world, 1)[1]), (vec![number], 0), "all of it is the owner's now");
        assert_eq!(world.balance(ALICE, EUR), START - 30_000);
    }
    // A replacement that grows needs room for what it adds.
    let over = by(&world, 1, 3, replace(slot_sequence(1, 2), 60_000, 100_001));
    assert_eq!(refused(&mut world, over), Some(Refusal::SESSION_CAP));
}

#[test]
fn a_slot_has_at_most_4096_open_offers_and_a_sub_block_a_quota_of_stops() {
    let mut world = world();
    let rich = SessionTerms { caps: caps(1_000_000, i64::MAX as u64), ..terms(1, 300, 300) };
    let operation = authorize(&world, ALICE, rich);
    let fee = Operation::Pay { to: address(9), asset: USD, amount: FEE };
    world.block(vec![(ALICE, operation), (BOB, fee)]);
    let least = world.ledger.assets()[1].least_units;
    let issue = Operation::Issue { to: address(ALICE), asset: EUR, amount: 100 * 4_096 * least };
    let applied = world.block(vec![(9, issue)]);
    assert_eq!(refusals(&applied), [None]);
    let mut number = 0;
    let mut fill = |world: &mut World, count: u64| {
        let new = (number + 1..=number + count).map(|number| by(world, 1, number, sells(least * 2))).collect();
        number += count;
        refusals(&world.run(vec![new]))
    };
    for _ in 0..63 {
        assert!(fill(&mut world, 64).iter().all(Option::is_none));
    }
    assert!(fill(&mut world, 63).iter().all(Option::is_none));
    assert_eq!(world.ledger.open_in_slot(address(ALICE), 1), SLOT_OFFERS_MAX - 1);
    assert_eq!(fill(&mut world, 2), [Some(Refusal::SESSION_OFFERS); 2]);
    let one = by(&world, 1, 4_096, sells(least * 2));
    assert_eq!(refused(&mut world, one), None);
    let (amount, life, client) = (least * 2, Life::OneBatch, ClientId::NONE);
    let one_batch = Operation::CreateOffer { sell: EUR, buy: USD, amount, limit: Price::ONE, life, client };
    let one_batch = by(&world, 1, 4_097, one_batch);
    assert_eq!(refused(&mut world, one_batch), None, "what never rests takes no room");
    let one = by(&world, 1, 4_098, sells(least * 2));
    assert_eq!(refused(&mut world, one), Some(Refusal::SESSION_OFFERS));
    // Of the stops and revocations of one sub-block sixteen are processed.
    let stops: Vec<Transaction> = (0..17).map(|_| world.sign(BOB, revoke(1))).collect();
    let applied = world.run(vec![stops]);
    let (last, others) = applied.outcomes.split_last().expect("there are some");
    assert_eq!(others.len(), SESSION_ENDS_PER_SUB_BLOCK as usize);
    assert!(others.iter().all(|outcome| outcome.refusal() == Some(Refusal::UNKNOWN_SESSION)));
    assert_eq!(last.refusal(), Some(Refusal::OVER_QUOTA));
    let applied = world.block(vec![(ALICE, revoke(1))]);
    assert_eq!(applied.batch.ended.len(), 4_096);
    assert!(world.ledger.book().is_empty() && world.ledger.open_in_slot(address(ALICE), 1) == 0);
}

/// A wallet's signature is the owner's, and no key of a session.
#[test]
fn typed_data_signs_for_no_slot() {
    let mut world = with_bot();
    let transaction = by(&world, 1, 1, sells(20_000));
    let network = world.ledger.network();
    let wallet = WalletKey::from_bytes([3; 32]).expect("a key");
    let typed = transaction.body.sign_typed(network, &wallet);
    assert!(matches!(typed.signed_by, SignedBy::TypedData { .. }));
    let applied = world.run(vec![vec![typed]]);
    assert!(applied.outcomes[0].refusal().is_some());
}
