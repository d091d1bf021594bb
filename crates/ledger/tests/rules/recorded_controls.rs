//! The recorded chain of rules 17: assets are listed whose issuers control them, holders are admitted, frozen and
//! opened, and a key of scope control freezes. How chains are recorded and replayed is in [`crate::recorded`].
//!
//! A recovery counts a day of blocks after its freeze, which no recorded chain waits for: what it does then is tested
//! beside the place `controls`.

use ledger::{Genesis, Listing, ListingPolicy, ListingTerms, PoolTerms, Refusal, Snapshot};
use primitives::{
    Amount, AssetControl, AssetId, AssetListing, Body, Digest, HolderRecovery, HolderState, Operation, PoolKey,
    PoolOperation, RULES_OF_CONTROLS, Reference, ReferenceKind, SecretKey, SessionCap, SessionOperation, SessionScope,
    SessionTerms, session_possession_bytes, slot_sequence,
};

use crate::charter::{World, account, genesis as plain};
use crate::recorded::{History, Seen, upgrade};

/// Who issues an asset for admitted holders, and one that freezes alone.
const BANK: u8 = 4;
const OTHER: u8 = 5;
/// Who trades, who may, and who was never admitted.
const TRADER: u8 = 1;
const SHOP: u8 = 2;
const STRANGER: u8 = 3;
const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const GBP: AssetId = AssetId(2);
const JPY: AssetId = AssetId(3);
const LEAST: Amount = 4_096;

fn genesis() -> Genesis {
    let plain = plain();
    let assets = vec![Listing::new("USD", 2, account(0)), Listing::new("EUR", 2, account(OTHER))];
    let held = |person: u8| [USD, EUR].map(|asset| (account(person), asset, 10_000_000));
    Genesis {
        rules: RULES_OF_CONTROLS - 1,
        assets,
        balances: (0..6).flat_map(held).collect(),
        listings: ListingTerms { policy: ListingPolicy::Priced, fees: 3, assets_max: 8, notice: 8 },
        pools: Some(PoolTerms::default()),
        ..plain
    }
}

fn lists(symbol: &str, control: AssetControl, fees: u64) -> Operation {
    Operation::ListAsset(Box::new(AssetListing {
        symbol: symbol.into(),
        decimals: 2,
        control,
        least_units: LEAST,
        supply_max: 1_000_000,
        document: Digest([17; 32]),
        fees,
    }))
}

fn reference() -> Reference {
    Reference::read(ReferenceKind::Text, "case 7/2026").expect("plain")
}

fn says(asset: AssetId, person: u8, state: HolderState) -> Operation {
    Operation::SetHolder { asset, account: account(person), state, reference: reference() }
}

fn freeze(asset: AssetId, person: u8) -> Operation {
    says(asset, person, HolderState::Frozen)
}

fn open(asset: AssetId, person: u8) -> Operation {
    says(asset, person, HolderState::Open)
}

fn recover(asset: AssetId, from: u8) -> Operation {
    let (from, to) = (account(from), account(BANK));
    Operation::Recover(Box::new(HolderRecovery { asset, from, to, amount: 5, reference: reference() }))
}

fn issue(asset: AssetId, to: u8, amount: Amount) -> Operation {
    Operation::Issue { to: account(to), asset, amount }
}

fn pay(asset: AssetId, to: u8) -> Operation {
    Operation::Pay { to: account(to), asset, amount: 700 }
}

/// An offer that nobody takes.
fn rests(sell: AssetId, buy: AssetId) -> Operation {
    Operation::offer(sell, buy, 2 * LEAST, "1.5".parse().expect("a price"))
}

/// One block with these operations, and what became of them.
fn block(world: &mut World, operations: &[(u8, Operation)]) -> Vec<Option<Refusal>> {
    let native = operations.iter().map(|(person, operation)| world.sign(*person, operation.clone())).collect();
    world.apply(native)
}

/// One block with these operations, all of which count.
fn done(world: &mut World, operations: &[(u8, Operation)]) {
    let refused = block(world, operations);
    assert!(refused.iter().all(Option::is_none), "{refused:?}");
}

pub fn of_controls() -> History {
    let mut world = World::new(&genesis());
    let state = Snapshot::of(&world.ledger).collect();
    world.until(2);
    let early =
        [(BANK, lists("GBP", AssetControl::Freezable, 3)), (OTHER, freeze(EUR, TRADER)), (OTHER, recover(EUR, 1))];
    assert_eq!(block(&mut world, &early), [Some(Refusal::RULES_TO_COME); 3]);
    upgrade(&mut world, RULES_OF_CONTROLS);
    done(&mut world, &[(BANK, lists("GBP", AssetControl::AdmittedRecoverable, 3))]);
    // One of eight takes an eighth.
    done(&mut world, &[(OTHER, lists("JPY", AssetControl::Freezable, 6))]);
    admits_and_trades(&mut world);
    freezes(&mut world);
    by_a_key(&mut world);
    let height = world.ledger.height();
    world.until(height + 20);
    (state, world.blocks)
}

/// Some are admitted, and trade in offers and in a pool; others are refused.
fn admits_and_trades(world: &mut World) {
    done(world, &[(BANK, open(GBP, TRADER)), (BANK, open(GBP, SHOP)), (OTHER, issue(JPY, SHOP, 100_000))]);
    done(world, &[(BANK, issue(GBP, TRADER, 600_000)), (BANK, issue(GBP, SHOP, 50_000))]);
    let wrong = [(BANK, issue(GBP, STRANGER, 1)), (TRADER, pay(GBP, STRANGER)), (STRANGER, rests(USD, GBP))];
    let refused = [Refusal::RECEIVER_NOT_ADMITTED, Refusal::RECEIVER_NOT_ADMITTED, Refusal::NOT_ADMITTED];
    assert_eq!(block(world, &wrong), refused.map(Some));
    let pool = PoolKey { a: EUR, b: GBP, class: 0 };
    let opened = Operation::Pool(Box::new(PoolOperation::Open { pool, x: 200_000, y: 200_000 }));
    let limit = "0.9".parse().expect("a price");
    let sells = Operation::offer(GBP, USD, 5 * LEAST, limit);
    let buys = Operation::offer(USD, GBP, 5 * LEAST, limit);
    done(world, &[(TRADER, opened), (TRADER, sells), (SHOP, buys), (TRADER, rests(GBP, USD)), (SHOP, rests(JPY, GBP))]);
}

/// Holders are frozen: what rests ends, shares come home, and nothing else moves until they are opened.
fn freezes(world: &mut World) {
    // The state before judges the payment.
    done(world, &[(BANK, freeze(GBP, TRADER)), (TRADER, pay(GBP, SHOP)), (OTHER, freeze(JPY, SHOP))]);
    let wrong = [
        (TRADER, pay(GBP, SHOP)),
        (SHOP, pay(GBP, TRADER)),
        (OTHER, freeze(EUR, TRADER)),
        (BANK, freeze(GBP, BANK)),
        (SHOP, freeze(GBP, STRANGER)),
        (BANK, recover(GBP, TRADER)),
        (OTHER, recover(JPY, SHOP)),
    ];
    let refused = [
        Refusal::FROZEN,
        Refusal::RECEIVER_FROZEN,
        Refusal::NOT_FREEZABLE,
        Refusal::HOLDER_EXEMPT,
        Refusal::NOT_ISSUER,
        Refusal::NOT_FROZEN_LONG,
        Refusal::NOT_RECOVERABLE,
    ];
    assert_eq!(block(world, &wrong), refused.map(Some));
    done(world, &[(BANK, open(GBP, TRADER)), (OTHER, open(JPY, SHOP))]);
    done(world, &[(TRADER, pay(GBP, SHOP)), (SHOP, rests(JPY, GBP))]);
}

/// A key of the bank freezes two holders, and opens nobody.
fn by_a_key(world: &mut World) {
    let bot = SecretKey::from_seed([90; 32]);
    let caps = [(USD, 1_000), (GBP, 2)].map(|(asset, units)| SessionCap { asset, units }).into();
    let (until, scope) = (world.ledger.height() + 90, SessionScope::Control);
    let terms = SessionTerms { slot: 1, key: bot.public(), scope, until, alive: until, caps };
    let network = world.ledger.network();
    let possession = bot.sign(&session_possession_bytes(&network, &account(BANK), 1, &terms.key));
    done(world, &[(BANK, Operation::Session(Box::new(SessionOperation::Authorize { terms, possession })))]);
    let by_bot = |number, operation| {
        let (account, sequence) = (account(BANK), slot_sequence(1, number));
        Body { chain: 1, account, sequence, until, operation }.sign(&network, &bot)
    };
    let said = vec![by_bot(1, freeze(GBP, TRADER)), by_bot(2, freeze(GBP, SHOP)), by_bot(3, open(GBP, STRANGER))];
    assert_eq!(world.apply(said), [None, None, Some(Refusal::SESSION_SCOPE)]);
}

#[test]
fn the_chain_of_rules_17_has_all_that_they_brought_and_crosses_their_first_height() {
    let seen = Seen::of(RULES_OF_CONTROLS);
    let refused = [
        Refusal::RULES_TO_COME,
        Refusal::FROZEN,
        Refusal::NOT_ADMITTED,
        Refusal::RECEIVER_FROZEN,
        Refusal::RECEIVER_NOT_ADMITTED,
        Refusal::NOT_FREEZABLE,
        Refusal::HOLDER_EXEMPT,
        Refusal::NOT_FROZEN_LONG,
        Refusal::NOT_RECOVERABLE,
        Refusal::SESSION_SCOPE,
    ];
    seen.has(&["set_holder", "list_asset", "open_pool", "by a control key"], &refused);
    assert!(seen.ended.contains("frozen"), "offers of the frozen ended: {:?}", seen.ended);
}
