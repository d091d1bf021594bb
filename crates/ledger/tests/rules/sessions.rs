//! Session keys: what they may do and use, and that they silence nobody. When their offers end is in `session_ends`.

use ledger::{Applied, Cancelled, EndReason, EndedOffer, Outcome, Pair, Place, Refusal, SessionRecord};
use primitives::{
    Amount, AssetId, Body, ClientId, ExactSide, Height, Life, OfferPlace, OfferReplacement, Operation, Price,
    SecretKey, Sequence, SessionCap, SessionOperation, SessionScope, SessionSlot, SessionTerms, SignedBy, Transaction,
    WalletKey, session_possession_bytes, slot_sequence,
};

use crate::world::{EUR, FEE, START, USD, World, address, genesis, key};

pub const ALICE: u8 = 1;
pub const BOB: u8 = 2;
/// What authorising a key costs.
const AUTHORIZE: Amount = 100 * FEE;
pub const SELL_EUR: Pair = Pair { sell: EUR, buy: USD };

pub fn bot(number: u8) -> SecretKey {
    SecretKey::from_seed([100 + number; 32])
}

pub fn world() -> World {
    World::of(&genesis(None))
}

pub fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

pub fn caps(usd: Amount, eur: Amount) -> Box<[SessionCap]> {
    [(USD, usd), (EUR, eur)].map(|(asset, units)| SessionCap { asset, units }).into()
}

pub fn terms(slot: SessionSlot, until: Height, alive: Height) -> SessionTerms {
    let (key, scope) = (bot(slot as u8).public(), SessionScope::Trade);
    SessionTerms { slot, key, scope, until, alive, caps: caps(10_000, 100_000) }
}

/// An authorisation that the bot of its slot has signed.
pub fn authorize(world: &World, person: u8, terms: SessionTerms) -> Operation {
    let secret = (0..50).map(bot).find(|bot| bot.public() == terms.key).expect("a bot's key");
    let bytes = session_possession_bytes(&world.ledger.network(), &address(person), terms.slot, &terms.key);
    Operation::Session(Box::new(SessionOperation::Authorize { possession: secret.sign(&bytes), terms }))
}

pub fn alive(slot: SessionSlot, through: Height) -> Operation {
    Operation::Session(Box::new(SessionOperation::Alive { slot, through }))
}

pub fn revoke(slot: SessionSlot) -> Operation {
    Operation::Session(Box::new(SessionOperation::Revoke { slot }))
}

pub fn sells(amount: Amount) -> Operation {
    Operation::offer(EUR, USD, amount, Price::ONE)
}

/// Bob buys euros for up to so many dollars, in this batch.
pub fn buys(amount: Amount) -> Operation {
    let life = Life::OneBatch;
    Operation::CreateOffer { sell: USD, buy: EUR, amount, limit: price("0.9"), life, client: ClientId::NONE }
}

pub fn exact(units: Amount) -> Operation {
    let (side, client) = (ExactSide::Sell, ClientId::NONE);
    Operation::Exact { sell: EUR, buy: USD, side, units, bound: 1, client }
}

pub fn cancel(offer: Sequence) -> Operation {
    Operation::cancel(EUR, USD, Price::ONE, offer)
}

pub fn replace(offer: Sequence, remains: Amount, amount: Amount) -> Operation {
    let old = OfferPlace { sell: EUR, buy: USD, limit: Price::ONE, offer };
    let (limit, life, client) = (Price::ONE, Life::Rests, ClientId::NONE);
    Operation::Replace(Box::new(OfferReplacement { old, remains, amount, limit, life, client }))
}

/// A transaction of the session key in a slot of Alice.
pub fn by(world: &World, slot: SessionSlot, number: u64, operation: Operation) -> Transaction {
    let sequence = slot_sequence(slot, number);
    let body = Body { chain: 1, account: address(ALICE), sequence, until: 50_000, operation };
    body.sign(&world.ledger.network(), &bot(slot as u8))
}

/// Alice with a session key in slot 1 that lives for 50 heights.
pub fn with_bot() -> World {
    let mut world = world();
    let operation = authorize(&world, ALICE, terms(1, 60, 50));
    assert_eq!(world.block(vec![(ALICE, operation)]).outcomes, [Outcome::Applied]);
    world
}

pub fn session(world: &World, slot: SessionSlot) -> SessionRecord {
    let account = world.ledger.accounts().get(&address(ALICE)).expect("exists");
    account.session(slot).expect("the slot is used").clone()
}

pub fn used(world: &World, slot: SessionSlot) -> [i64; 2] {
    let session = session(world, slot);
    [session.budgets[0].used, session.budgets[1].used]
}

pub fn refusals(applied: &Applied) -> Vec<Option<Refusal>> {
    applied.outcomes.iter().map(Outcome::refusal).collect()
}

/// Ids of Alice's resting offers.
pub fn resting(world: &World) -> Vec<Sequence> {
    let offers = world.ledger.book().iter().flat_map(|(_, offers)| offers.iter().collect::<Vec<_>>());
    offers.filter(|offer| offer.place.account == address(ALICE)).map(|offer| offer.place.id).collect()
}

pub fn ended(id: Sequence, returned: Amount, why: EndReason) -> EndedOffer {
    EndedOffer { pair: SELL_EUR, place: Place { limit: Price::ONE, account: address(ALICE), id }, returned, why }
}

pub fn of_alice(applied: &Applied) -> Vec<EndedOffer> {
    applied.batch.ended.iter().filter(|ended| ended.place.account == address(ALICE)).copied().collect()
}

/// What the ledger says of one transaction, to who submits it and in a block.
pub fn refused(world: &mut World, transaction: Transaction) -> Option<Refusal> {
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
