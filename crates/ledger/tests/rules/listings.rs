//! Assets after the genesis, with real signatures. Every block is solved and checked, goes through a snapshot, and its
//! tries follow (`World::run`): so each closing is crossed by restarts and by a replay. Histories of listings and
//! closings are in the model of the place `assets`.

use ledger::{
    Applied, CLOSED_RETURNS, EndReason, Genesis, LISTINGS_PER_SUB_BLOCK, Limits, ListingPolicy, ListingTerms, Outcome,
    Pair, PoolTerms, Refusal, Restart, RestartError, Roots, Snapshot,
};
use primitives::{
    Amount, AssetControl, AssetId, AssetListing, Body, ClientId, Closing, Digest, ExactSide, Life, Operation, PoolKey,
    PoolOperation, Price, RULES_OF_LISTINGS, SecretKey, Transaction,
};

use crate::world::{EUR, START, USD, World, address, genesis as plain, terms, withdrawal};

/// Who lists, another who does, and who trades.
const BANK: u8 = 1;
const OTHER: u8 = 2;
const TRADER: u8 = 3;
/// Who issues what the genesis lists.
const FOUNDER: u8 = 9;
const FEES: u64 = 10;
const NOTICE: u64 = 4;
const SUPPLY_MAX: Amount = 1_000_000;
const LEAST: Amount = 4_096;

fn listings() -> ListingTerms {
    ListingTerms { policy: ListingPolicy::Priced, fees: FEES, assets_max: 10, notice: NOTICE }
}

fn genesis() -> Genesis {
    let mut genesis =
        Genesis { rules: RULES_OF_LISTINGS, listings: listings(), pools: Some(PoolTerms::default()), ..plain(None) };
    genesis.balances.push((address(FOUNDER), USD, START));
    genesis
}

fn world() -> World {
    World::of(&genesis())
}

fn listing(symbol: &str, fees: u64) -> AssetListing {
    AssetListing {
        symbol: symbol.into(),
        decimals: 2,
        control: AssetControl::Open,
        least_units: LEAST,
        supply_max: SUPPLY_MAX,
        document: Digest([7; 32]),
        fees,
    }
}

/// A listing for what is asked for now.
fn lists(world: &World, symbol: &str) -> Operation {
    Operation::ListAsset(Box::new(listing(symbol, world.ledger.listing_fees())))
}

fn close(asset: AssetId, closing: Closing) -> Operation {
    Operation::CloseAsset { asset, closing }
}

fn issue(asset: AssetId, to: u8, amount: Amount) -> Operation {
    Operation::Issue { to: address(to), asset, amount }
}

fn offer(sell: AssetId, buy: AssetId, life: Life) -> Operation {
    Operation::CreateOffer { sell, buy, amount: LEAST, limit: Price::ONE, life, client: ClientId::NONE }
}

/// Lists an asset of the bank's; some of it is the trader's.
fn list(world: &mut World, symbol: &str) -> AssetId {
    let operation = lists(world, symbol);
    let Outcome::Listed(asset) = world.block(vec![(BANK, operation)]).outcomes[0] else { panic!("it is listed") };
    assert_eq!(world.outcome(BANK, issue(asset, TRADER, SUPPLY_MAX / 2)), None);
    asset
}

fn name(world: &World, asset: AssetId) -> &str {
    &world.ledger.assets()[asset.0 as usize].symbol
}

/// The blocks of these sub-blocks, each with its own order of them and within them, give the same state.
fn in_every_order(world: &World, parts: &[Vec<Transaction>]) -> Vec<(Vec<(Digest, Outcome)>, Digest)> {
    let mut orders = vec![parts.to_vec()];
    orders.push(parts.iter().rev().map(|part| part.iter().rev().cloned().collect()).collect());
    orders.push(vec![parts.concat()]);
    let judge = |parts: Vec<Vec<Transaction>>| {
        let mut copy = World::of(&genesis());
        (copy.ledger, copy.roots) = (world.ledger.clone(), Roots::of(&world.ledger));
        let ids: Vec<Digest> = parts.iter().flatten().map(Transaction::id).collect();
        let applied = copy.run(parts);
        let mut told: Vec<_> = ids.into_iter().zip(applied.outcomes).collect();
        told.sort_by_key(|(id, _)| *id);
        (told, copy.roots.parts().root())
    };
    orders.into_iter().map(judge).collect()
}

#[test]
fn listings_commute_and_the_lowest_ids_win_the_room() {
    let mut world = World::of(&Genesis { listings: ListingTerms { assets_max: 4, ..listings() }, ..genesis() });
    let mut sign = |who, symbol| {
        let operation = lists(&world, symbol);
        world.sign(who, operation)
    };
    let parts = [vec![sign(1, "GBP"), sign(2, "JPY")], vec![sign(3, "CHF")]];
    let ids = |parts: &[Vec<Transaction>]| {
        let mut ids: Vec<Digest> = parts.iter().flatten().map(Transaction::id).collect();
        ids.sort_unstable();
        ids
    };
    let mut two = World::of(&Genesis { listings: ListingTerms { assets_max: 4, ..listings() }, ..genesis() });
    let applied = two.run(parts.to_vec());
    let of = |id: Digest| {
        let at = parts.iter().flatten().position(|one| one.id() == id).expect("it is in the block");
        applied.outcomes[at]
    };
    let [first, second, third] = ids(&parts)[..] else { panic!("three") };
    assert_eq!((of(first), of(second)), (Outcome::Listed(AssetId(2)), Outcome::Listed(AssetId(3))));
    assert_eq!(of(third), Outcome::Refused(Refusal::TOO_MANY_ASSETS));
    // In whatever order they stand, and whoever proposes them. One sub-block has room for two.
    let judged = in_every_order(&world, &parts[..1]);
    assert!(judged.iter().all(|one| *one == judged[0]), "the order changes nothing");
    let flood = vec![parts.concat()];
    let mut beyond = World::of(&Genesis { listings: ListingTerms { assets_max: 4, ..listings() }, ..genesis() });
    let refused = beyond.run(flood).outcomes.iter().filter(|one| one.refusal() == Some(Refusal::OVER_QUOTA)).count();
    assert_eq!(refused, 3 - LISTINGS_PER_SUB_BLOCK as usize);
}

#[test]
fn a_listing_whose_fees_have_doubled_costs_nothing() {
    let mut world = world();
    let (held, stale) = (world.balance(OTHER, USD), lists(&world, "JPY"));
    assert_eq!(world.ledger.listing_fees(), FEES);
    let before = world.balance(BANK, USD);
    list(&mut world, "GBP");
    list(&mut world, "CHF");
    // Two of ten take one eighth; each listing cost its fees beside its own, and so did two issues.
    assert_eq!((world.ledger.listing_fees(), before - world.balance(BANK, USD)), (2 * FEES, (2 * FEES + 4) * 2));
    assert_eq!(world.outcome(OTHER, stale), Some(Refusal::LISTING_FEES));
    // Whoever offers more pays nothing either.
    let generous = Operation::ListAsset(Box::new(listing("JPY", 100 * FEES)));
    assert_eq!(world.outcome(OTHER, generous), Some(Refusal::LISTING_FEES));
    assert_eq!(world.balance(OTHER, USD), held, "what is refused costs nothing");
    let fresh = lists(&world, "JPY");
    assert_eq!(world.outcome(OTHER, fresh), None);
    assert_eq!(held - world.balance(OTHER, USD), (2 * FEES + 1) * 2);
}

#[test]
fn look_alikes_are_refused_and_a_closed_name_is_never_free() {
    let mut world = world();
    for symbol in ["USD", "usd", "U5D", "U-S-D", "EuR"] {
        let operation = lists(&world, symbol);
        assert_eq!(world.outcome(OTHER, operation), Some(Refusal::LOOK_ALIKE), "{symbol}");
    }
    let (one, two) = (list(&mut world, "GBP"), list(&mut world, "GBP"));
    assert_eq!((name(&world, one), name(&world, two)), ("GBP.2", "GBP.3"));
    // A plain asset closes, and its name is taken for ever.
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Announce)), None);
    world.empty_blocks(NOTICE as usize + 2);
    assert!(world.ledger.listings().is_closed(EUR, world.ledger.height()));
    let operation = lists(&world, "EUR");
    assert_eq!(world.outcome(OTHER, operation), Some(Refusal::LOOK_ALIKE));
    // A new genesis names no two assets alike.
    let mut alike = genesis();
    alike.assets.push(ledger::Listing::new("eu.r", 2, address(FOUNDER)));
    let refused = alike.issued_assets().expect_err("alike").to_string();
    assert!(refused.contains("\"eu.r\" could be taken for \"EUR\""), "{refused}");
}

#[test]
fn a_flood_of_listings_ends_at_the_room_and_closed_assets_leave_it() {
    let mut world = world();
    let (mut paid, mut listed) = (Vec::new(), Vec::new());
    while world.ledger.assets().len() < 10 {
        paid.push(world.ledger.listing_fees());
        listed.push(list(&mut world, "JUNK"));
    }
    assert_eq!(paid, [1, 1, 2, 4, 8, 16, 16, 32].map(|times| times * FEES));
    let operation = lists(&world, "JUNK");
    assert_eq!(world.outcome(OTHER, operation), Some(Refusal::TOO_MANY_ASSETS));
    let before = world.ledger.listing_fees();
    assert_eq!(world.outcome(BANK, close(listed[0], Closing::Announce)), None);
    world.empty_blocks(NOTICE as usize + 1);
    assert!(world.ledger.listing_fees() < before, "what is closed takes no part of the room");
    let again = list(&mut world, "JUNK");
    assert_eq!((again, name(&world, again)), (AssetId(10), "JUNK.10"), "numbers never return");
}

/// Junk is free to issue: offers of it leave half of the book to others, and one of them a sixteenth.
#[test]
fn junk_leaves_half_the_book() {
    let limits = Limits { resting_offers: 64, open_pairs: 64, ..Limits::default() };
    let mut world = World::of(&Genesis { limits, ..genesis() });
    let junk: Vec<AssetId> = (0..8).map(|_| list(&mut world, "JUNK")).collect();
    // An asset has four offers; but for those of one block none is too many.
    for asset in &junk {
        for count in 0..5 {
            let expected = (count == 4).then_some(Refusal::LISTED_OFFERS_FULL);
            assert_eq!(world.outcome(TRADER, offer(*asset, USD, Life::Rests)), expected);
        }
    }
    assert_eq!(world.ledger.book().len(), 32);
    // The half is full, and others find room.
    for _ in 0..20 {
        assert_eq!(world.outcome(TRADER, offer(EUR, USD, Life::Rests)), None);
    }
    let offers = world.ledger.book().get(Pair { sell: junk[0], buy: USD }).expect("they rest");
    let place = offers.iter().next().expect("one").place;
    let cancel = Operation::cancel(junk[0], USD, place.limit, place.id);
    assert_eq!(world.outcome(TRADER, cancel), None);
    assert_eq!(world.outcome(TRADER, offer(junk[0], USD, Life::Rests)), None, "a cancel makes room");
}

/// An offer that buys junk costs next to nothing, and its pair counts all the same.
#[test]
fn junk_leaves_half_the_pairs_also_to_who_comes_in_the_same_block() {
    let limits = Limits { resting_offers: 1_000, open_pairs: 16, ..Limits::default() };
    let mut world = World::of(&Genesis { limits, ..genesis() });
    let junk: Vec<AssetId> = (0..8).map(|_| list(&mut world, "JUNK")).collect();
    // A sixteenth is one pair of each asset. Pairs that sell USD come before all others.
    let block = junk.iter().map(|asset| (TRADER, offer(USD, *asset, Life::Rests)));
    let mut block: Vec<_> = block.collect();
    block.extend(junk.iter().map(|asset| (TRADER, offer(*asset, EUR, Life::Rests))));
    block.push((OTHER, offer(EUR, USD, Life::Rests)));
    let applied = world.block(block);
    let refused: Vec<bool> = applied.outcomes.iter().map(|outcome| outcome.refusal().is_some()).collect();
    assert_eq!(refused, [vec![false; 8], vec![true; 8], vec![false]].concat());
    assert_eq!(applied.outcomes[8].refusal(), Some(Refusal::LISTED_PAIRS_FULL));
    assert_eq!(world.ledger.book().pairs(), 9);
    *world.sequences.get_mut(&TRADER).expect("it signed") -= 8;
    assert_eq!(world.outcome(TRADER, offer(junk[0], USD, Life::Rests)), Some(Refusal::LISTED_PAIRS_FULL));
    assert_eq!(world.outcome(TRADER, offer(USD, EUR, Life::Rests)), None);
}

#[test]
fn issues_that_exceed_supply_max_together_are_all_removed() {
    let mut world = world();
    let asset = list(&mut world, "GBP");
    let half = SUPPLY_MAX / 2;
    let over = world.block(vec![(BANK, issue(asset, TRADER, half)), (BANK, issue(asset, OTHER, 1))]);
    assert!(over.outcomes.iter().all(|one| one.refusal() == Some(Refusal::ISSUE_TOO_LARGE)), "{:?}", over.outcomes);
    *world.sequences.get_mut(&BANK).expect("it signed") -= 2;
    assert_eq!(world.outcome(BANK, issue(asset, BANK, half)), None);
    let over = world.block(vec![(BANK, issue(asset, BANK, 1))]);
    assert_eq!(over.outcomes[0].refusal(), Some(Refusal::ISSUE_TOO_LARGE));
    *world.sequences.get_mut(&BANK).expect("it signed") -= 1;
    assert_eq!(world.outcome(BANK, Operation::Burn { asset, amount: 10 }), None);
    assert_eq!(world.outcome(BANK, issue(asset, BANK, 10)), None);
    assert_eq!(world.outcome(OTHER, issue(asset, BANK, 1)), Some(Refusal::NOT_ISSUER));
}

/// A number belongs to whoever gets it: a wallet that guesses it pays with another asset.
#[test]
fn a_number_is_nobodys_before_its_receipt() {
    let mut world = world();
    let guessed = AssetId(2);
    let block = vec![(BANK, lists(&world, "GBP")), (OTHER, lists(&world, "JPY")), (BANK, issue(guessed, BANK, 5))];
    let applied = world.block(block);
    assert_eq!(applied.outcomes[2].refusal(), Some(Refusal::UNKNOWN_ASSET), "not in its own block");
    let number = |at: usize| match applied.outcomes[at] {
        Outcome::Listed(number) => number,
        other => panic!("{other:?}"),
    };
    let (own, others) = (number(0), number(1));
    *world.sequences.get_mut(&BANK).expect("it signed") -= 1;
    assert_eq!(name(&world, own), format!("GBP.{own}"));
    assert_eq!(world.outcome(BANK, issue(others, BANK, 5)), Some(Refusal::NOT_ISSUER), "the guess may be another's");
    assert_eq!(world.outcome(BANK, issue(own, BANK, 5)), None);
}

/// Where units of an asset can be when it closes, they come home, and what works for ever works.
#[test]
fn custody_comes_home_after_an_asset_closes() {
    let lane = Some(terms());
    let mut world = World::of(&Genesis { lane, ..genesis() });
    let gbp = list(&mut world, "GBP");
    let pool = PoolKey { a: EUR, b: gbp, class: 0 };
    let open = Operation::Pool(Box::new(PoolOperation::Open { pool, x: 100_000, y: 100_000 }));
    assert_eq!(world.outcome(TRADER, open), None);
    for _ in 0..2 {
        assert_eq!(world.outcome(TRADER, offer(EUR, USD, Life::Rests)), None);
    }
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Announce)), None);
    let last = world.ledger.listings().closes(EUR).expect("it closes");
    assert_eq!(last, world.ledger.height() + NOTICE);
    // Until then offers end with it, and trade.
    assert_eq!(world.outcome(TRADER, offer(EUR, USD, Life::Rests)), Some(Refusal::OUTLIVES_ASSET));
    assert_eq!(world.outcome(TRADER, offer(USD, EUR, Life::Until(last + 1))), Some(Refusal::OUTLIVES_ASSET));
    assert_eq!(world.outcome(TRADER, offer(EUR, gbp, Life::Until(last))), None);
    while world.ledger.height() + 1 < last {
        world.empty_blocks(1);
    }
    let coin = world.withdraw(TRADER, EUR, 500);
    assert_eq!(world.ledger.height(), last);
    assert_eq!(world.ledger.book().len(), 0, "what rested has returned");
    let redeemed = world.pay(&coin, &[(OTHER, 500)]);
    let (operation, before) = (world.redemption(&redeemed), world.balance(OTHER, EUR));
    assert_eq!(world.outcome(OTHER, operation), None);
    assert_eq!(world.balance(OTHER, EUR), before + 500, "the lane's units come home");
    let exact = Operation::exact(EUR, USD, ExactSide::Sell, LEAST, 1);
    let provide = PoolOperation::Provide { pool, shares: 1_000, most_a: 50_000, most_b: 50_000 };
    for (who, operation) in [
        (TRADER, offer(EUR, USD, Life::OneBatch)),
        (TRADER, offer(USD, EUR, Life::Rests)),
        (TRADER, exact),
        (TRADER, Operation::Pool(Box::new(provide))),
        (TRADER, withdrawal(TRADER, EUR, 500)),
        (FOUNDER, issue(EUR, TRADER, 1)),
    ] {
        assert_eq!(world.outcome(who, operation.clone()), Some(Refusal::ASSET_CLOSED), "{operation:?}");
    }
    // The pool sleeps: it trades with nobody.
    assert_eq!(world.outcome(TRADER, offer(gbp, USD, Life::Rests)), None);
    let leave = PoolOperation::Leave { pool, shares: 1 << 20, least_a: 1, least_b: 1 };
    assert_eq!(world.outcome(TRADER, Operation::Pool(Box::new(leave))), None);
    assert_eq!(world.outcome(TRADER, Operation::Pay { to: address(FOUNDER), asset: EUR, amount: 77 }), None);
    assert_eq!(world.outcome(FOUNDER, Operation::Burn { asset: EUR, amount: 77 }), None);
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Revoke)), Some(Refusal::CLOSES_NOW));
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Announce)), Some(Refusal::CLOSES_ALREADY));
    assert_eq!(world.outcome(FOUNDER, close(USD, Closing::Announce)), Some(Refusal::FIRST_ASSET));
}

/// An account of many, who place the offers of a crowd.
fn one_of_crowd(number: u32) -> SecretKey {
    let mut seed = [99; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

/// A closing returns so many offers a block, the first by pair and place; those that wait are in no batch, and neither
/// a restart nor a replay in between changes what returns.
#[test]
fn a_crowd_of_offers_returns_in_parts_while_others_trade() {
    const ACCOUNTS: u32 = 1_030;
    const EACH: u64 = 64;
    let mut genesis = genesis();
    let crowd = (0..ACCOUNTS).map(|number| one_of_crowd(number).public().address());
    genesis.balances.extend(crowd.flat_map(|one| [(one, USD, 1_000), (one, EUR, EACH * LEAST)]));
    let mut world = World::of(&genesis);
    let gbp = list(&mut world, "GBP");
    let (network, until) = (world.ledger.network(), world.ledger.height() + 10);
    let signed = |number: u32, sequence: u64| {
        let secret = one_of_crowd(number);
        let operation = offer(EUR, if number.is_multiple_of(2) { USD } else { gbp }, Life::Rests);
        Body { chain: 1, account: secret.public().address(), sequence, until, operation }.sign(&network, &secret)
    };
    let all = (0..ACCOUNTS).flat_map(|number| (1..=EACH).map(move |sequence| (number, sequence)));
    let placed = world.run(vec![all.map(|(number, sequence)| signed(number, sequence)).collect()]);
    assert!(placed.outcomes.iter().all(|outcome| outcome.refusal().is_none()));
    let count = ACCOUNTS as usize * EACH as usize;
    assert!(count > CLOSED_RETURNS && world.ledger.book().len() == count);
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Announce)), None);
    let last = world.ledger.listings().closes(EUR).expect("it closes");
    while world.ledger.height() + 1 < last {
        world.empty_blocks(1);
    }
    let expected: Vec<_> = world
        .ledger
        .book()
        .iter()
        .flat_map(|(pair, offers)| offers.iter().map(move |offer| (pair, offer.place)))
        .collect();
    let ended = |applied: &Applied| {
        assert!(applied.batch.ended.iter().all(|one| one.why == EndReason::Closed && one.returned == LEAST));
        applied.batch.ended.iter().map(|one| (one.pair, one.place)).collect::<Vec<_>>()
    };
    let first = world.run(vec![]);
    assert_eq!(ended(&first), expected[..CLOSED_RETURNS]);
    // Others trade in the next batch, which those that wait are not in.
    let limit = "0.5".parse().expect("a price");
    let buys = world.sign(OTHER, Operation::offer(USD, gbp, 4 * LEAST, limit));
    let sells = world.sign(TRADER, Operation::offer(gbp, USD, 4 * LEAST, limit));
    let second = world.run(vec![vec![buys, sells]]);
    assert_eq!(ended(&second), expected[CLOSED_RETURNS..]);
    assert_eq!(second.batch.trades.len(), 2, "{:?}", second.batch.trades);
    assert!(world.ledger.assets()[EUR.0 as usize].valuation.is_none());
    assert_eq!(world.run(vec![]).batch.ended, []);
    assert!(world.ledger.book().is_empty());
}

#[test]
fn the_terms_of_an_asset_are_proved_and_nothing_else_is() {
    let mut world = world();
    let gbp = list(&mut world, "GBP");
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Announce)), None);
    let (root, ledger) = (world.roots.parts().root(), world.ledger.clone());
    let proof = world.roots.prove_asset_terms(&ledger, gbp);
    let listed = proof.verify(&root, gbp).expect("holds").expect("it was listed").listed.expect("so");
    assert_eq!((listed.supply_max, listed.document, listed.height), (SUPPLY_MAX, Digest([7; 32]), 1));
    assert!(proof.verify(&root, EUR).is_err(), "it is no other's");
    let mut forged = proof.clone();
    forged.terms.as_mut().expect("there").listed.as_mut().expect("so").supply_max += 1;
    assert!(forged.verify(&root, gbp).is_err());
    let mut hidden = world.roots.prove_asset_terms(&ledger, EUR);
    assert!(hidden.verify(&root, EUR).expect("holds").expect("it closes").closes.is_some());
    hidden.terms = None;
    assert!(hidden.verify(&root, EUR).is_err(), "a closing is not hidden");
    assert_eq!(world.roots.prove_asset_terms(&ledger, USD).verify(&root, USD).expect("holds"), None);
    // Under rules that know nothing of it, the network does not begin again.
    let restart =
        |rules| Restart { number: 1, snapshot: Snapshot::digest(&ledger), committee: Vec::new(), lane: None, rules };
    let mut older = ledger.clone();
    assert_eq!(older.begin_again(&ledger.network(), &restart(Some(14)), None), Err(RestartError::Listings(14)));
}

#[test]
fn listings_wait_for_their_rules() {
    let mut world = World::of(&Genesis { rules: 12, ..genesis() });
    let operation = lists(&world, "GBP");
    assert_eq!(world.outcome(BANK, operation), Some(Refusal::RULES_TO_COME));
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Announce)), Some(Refusal::RULES_TO_COME));
    assert_eq!(world.ledger.assets().len(), 2);
}

#[test]
fn nobody_lists_where_the_genesis_says_so() {
    let mut world = World::of(&Genesis { listings: ListingTerms::default(), ..genesis() });
    let operation = lists(&world, "GBP");
    assert_eq!(world.outcome(BANK, operation), Some(Refusal::NO_LISTINGS));
    // An asset of the genesis closes there, too.
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Announce)), None);
    assert_eq!(world.outcome(FOUNDER, close(EUR, Closing::Revoke)), None);
    assert!(world.ledger.listings().is_empty());
    let of =
        |listings: ListingTerms| Genesis { listings, ..genesis() }.issued_assets().err().map(|one| one.to_string());
    for (wrong, why) in [
        (ListingTerms { fees: 0, ..listings() }, "fees: choose"),
        (ListingTerms { assets_max: 1, ..listings() }, "below the assets"),
        (ListingTerms { assets_max: 20_000, ..listings() }, "at most 16384"),
        (ListingTerms { notice: 0, ..listings() }, "notice: choose"),
    ] {
        assert!(of(wrong).is_some_and(|told| told.contains(why)), "{why}");
    }
    let free = Genesis { fee: 0, ..genesis() }.issued_assets().expect_err("a listing costs fees").to_string();
    assert!(free.contains("this chain's fee is 0"), "{free}");
}

#[test]
fn what_a_listing_says_stands_in_the_record() {
    let mut world = world();
    let gbp = list(&mut world, "GBP");
    let record = &world.ledger.assets()[gbp.0 as usize];
    let said = (record.symbol.as_str(), record.decimals, record.issuer, record.least_units, record.issued);
    assert_eq!(said, ("GBP.2", 2, address(BANK), LEAST, SUPPLY_MAX / 2));
    let small = Operation::ListAsset(Box::new(AssetListing { least_units: 10, ..listing("JPY", FEES) }));
    assert_eq!(world.outcome(OTHER, small), Some(Refusal::LISTED_LEAST_UNITS));
}
