//! Owners: venues, markets, bonds, operators and fences.

use ledger::{BustGuilt, BustReason, FillVerdict, Outcome, Refusal};
use primitives::venue::{MarketTerms, VenueOperation, VenueOrder};

use crate::world::*;

fn open(venue: u32, bond: u64) -> VenueOperation {
    VenueOperation::Open { venue, operator: operator(OPERATOR, 0), fee_cap_ppm: 1_000, bond }
}

fn unbond(units: u64) -> VenueOperation {
    VenueOperation::Unbond { venue: VENUE, units }
}

fn fence(incarnation: u32) -> VenueOperation {
    VenueOperation::Fence { venue: VENUE, incarnation }
}

#[test]
fn a_venue_takes_the_next_number_and_of_two_openings_of_it_one_counts() {
    let mut world = World::new();
    assert_eq!(world.refusal(OWNER, open(0, BOND_MIN)), Some(Refusal::WRONG_VENUE_NUMBER));
    assert_eq!(world.refusal(OWNER, open(2, BOND_MIN)), Some(Refusal::WRONG_VENUE_NUMBER));
    assert_eq!(world.refusal(OWNER, open(1, BOND_MIN - 1)), Some(Refusal::BOND_TOO_LOW));
    let (before, issued) = ([5, 6].map(|person| world.balance(person, USD)), world.issued());
    let applied = world.block(vec![(5, open(1, BOND_MIN)), (6, open(1, BOND_MIN))]);
    let counted = applied.outcomes.iter().filter(|outcome| **outcome == Outcome::Applied).count();
    assert_eq!((counted, applied.outcomes.contains(&Outcome::Void)), (1, true));
    let paid = [5, 6].map(|person| world.balance(person, USD));
    assert_eq!(before.iter().sum::<u64>() - paid.iter().sum::<u64>(), BOND_MIN + issued - world.issued());
    assert_eq!(world.refusal(OWNER, open(2, BOND_MIN)), None);
    assert_eq!(world.refusal(OWNER, open(3, BOND_MIN)), Some(Refusal::TOO_MANY_VENUES));
}

#[test]
fn markets_take_the_next_number_and_their_terms_are_checked() {
    let mut world = World::new();
    let list = |market, terms| VenueOperation::List { venue: VENUE, market, terms };
    assert_eq!(world.refusal(OWNER, list(1, market())), Some(Refusal::WRONG_VENUE_NUMBER));
    assert_eq!(world.refusal(BUYER, list(2, market())), Some(Refusal::NOT_VENUE_OWNER));
    let free = MarketTerms { penalty: 0, ..market() };
    assert_eq!(world.refusal(OWNER, list(2, free)), Some(Refusal::MARKET_TERMS));
    let same = MarketTerms { quote: EUR, ..market() };
    assert_eq!(world.refusal(OWNER, list(2, same)), Some(Refusal::VENUE_BOUNDS));
    let unlisted = MarketTerms { base: primitives::AssetId(7), ..market() };
    assert_eq!(world.refusal(OWNER, list(2, unlisted)), Some(Refusal::UNKNOWN_ASSET));
    assert_eq!(world.refusal(OWNER, list(2, market())), None);
}

#[test]
fn a_withdrawal_from_the_bond_waits_by_height_and_time_and_none_runs_beside_it() {
    let mut world = World::new();
    assert_eq!(world.refusal(OWNER, unbond(BOND + 1)), Some(Refusal::BOND_LEAVES));
    assert_eq!(world.refusal(OPERATOR, unbond(1)), Some(Refusal::NOT_VENUE_OWNER));
    world.done(vec![(OWNER, unbond(30_000))]);
    let (requested, time, before) = (world.height(), world.time_ms, world.balance(OWNER, USD));
    assert_eq!(world.refusal(OWNER, unbond(1)), Some(Refusal::BOND_LEAVES));
    assert_eq!(world.venue().liable(), BOND);
    // The clock stands for thirty heights.
    (1..=30).for_each(|passed| drop(world.run_at(time + STEP + passed, vec![])));
    assert_eq!(world.balance(OWNER, USD), before);
    let delay = terms().bond_delay.ms;
    world.run_at(time + delay, vec![]);
    assert_eq!(world.balance(OWNER, USD), before);
    world.run_at(time + delay + 1, vec![]);
    assert_eq!(world.balance(OWNER, USD), before + 30_000);
    assert!(world.height() > requested + terms().bond_delay.heights);
    assert_eq!(world.venue().liable(), BOND - 30_000);
}

#[test]
fn only_the_owner_changes_the_operator_and_names_the_one_it_replaces() {
    let mut world = World::new();
    let change = |from, to| VenueOperation::ChangeOperator { venue: VENUE, from, to };
    let (first, second, third) = (operator(OPERATOR, 0), operator(5, 0), operator(6, 1));
    assert_eq!(world.refusal(OPERATOR, change(first, second)), Some(Refusal::NOT_VENUE_OWNER));
    assert_eq!(world.refusal(OWNER, change(second, third)), Some(Refusal::NOT_OPERATOR));
    assert_eq!(world.refusal(OWNER, change(first, second)), None);
    assert_eq!(world.venue().report_keys, [reporting(0).public()], "another account has no other report key");
    assert_eq!(world.refusal(OWNER, change(first, third)), Some(Refusal::NOT_OPERATOR), "a stale copy does nothing");
    assert_eq!(world.refusal(OWNER, change(second, third)), None);
    assert_eq!(world.venue().report_keys.len(), 2);
    let settle = VenueOperation::Settle(world.settle(&[fill(buy(1), sell(1), 1)]));
    assert_eq!(world.refusal(OPERATOR, settle.clone()), Some(Refusal::NOT_OPERATOR));
    assert_eq!(world.refusal(6, settle), None);
}

#[test]
fn an_incarnation_has_at_most_eight_report_keys_and_a_fence_begins_with_the_last() {
    let mut world = World::new();
    let change = |from, to| VenueOperation::ChangeOperator {
        venue: VENUE,
        from: operator(OPERATOR, from),
        to: operator(OPERATOR, to),
    };
    for number in 1..8 {
        assert_eq!(world.refusal(OWNER, change(number - 1, number)), None);
    }
    assert_eq!(world.refusal(OWNER, change(7, 8)), Some(Refusal::TOO_MANY_REPORT_KEYS));
    assert_eq!(world.refusal(OWNER, change(7, 3)), None, "a key that it had is no other one");
    assert_eq!(world.refusal(OWNER, change(3, 7)), None);
    world.fence();
    assert_eq!(world.venue().report_keys, [reporting(7).public()]);
    assert_eq!(world.refusal(OWNER, change(7, 8)), None);
}

#[test]
fn a_fence_ends_its_incarnation_and_no_other() {
    let mut world = World::new();
    world.settles(&[fill(buy(1), sell(1), 1)]);
    let applied = world.block(vec![(OWNER, fence(0)), (OWNER, fence(0))]);
    assert!(applied.outcomes.contains(&Outcome::Void) && applied.outcomes.contains(&Outcome::Applied));
    let venue = world.venue();
    assert_eq!(
        (venue.incarnation, venue.fills.count(), venue.finals.count()),
        (1, 0, 1),
        "two fences in a block are one"
    );
    assert_eq!(venue.entries, 0, "entries of ended incarnations are forgotten");
    assert_eq!(world.refusal(OWNER, fence(0)), Some(Refusal::WRONG_INCARNATION), "a stale copy does nothing");
    // Orders of the ended incarnation are void at once.
    let verdicts = world.settles(&[fill(buy(1), sell(1), 1)]);
    assert!(matches!(verdicts[..], [FillVerdict::Bust(ledger::BustReason::Parties, _)]));
    let next = |order: VenueOrder| {
        let mut order =
            VenueOrder { number: primitives::venue::OrderNumber { incarnation: 1, ..order.number }, ..order };
        order.floor.incarnation = 1;
        order
    };
    assert_eq!(
        world.settles(&[fill(next(buy(1)), next(sell(1)), 1)]),
        [FillVerdict::Applied],
        "references begin again"
    );
}

/// What a stolen operator or report key cannot do: withdraw, fence, change the operator.
#[test]
fn a_stolen_operator_key_neither_withdraws_nor_fences_nor_changes_the_operator() {
    let mut world = World::new();
    let change = VenueOperation::ChangeOperator { venue: VENUE, from: operator(OPERATOR, 0), to: operator(7, 7) };
    for operation in [fence(0), unbond(1), change, VenueOperation::Bond { venue: VENUE, units: 1 }] {
        assert_eq!(world.refusal(OPERATOR, operation), Some(Refusal::NOT_VENUE_OWNER));
    }
}

/// A thief of the operator's and the report key, as a party of his own fills: each trader deals at the limit that it
/// signed, and no worse. What he does beyond is bust. His lies cost the bond of the owner, once and no more.
#[test]
fn a_thief_of_the_operator_key_reaches_the_worst_signed_limits_and_the_bond_and_nothing_else() {
    const THIEF: u8 = 7;
    let mut world = World::new();
    let thiefs = world.authorize(THIEF, &trading(THIEF), mandate());
    world.done(vec![(THIEF, thiefs), (THIEF, deposit(USD, 100_000))]);
    world.done(vec![(THIEF, deposit(EUR, 100_000))]);
    let before = [BUYER, SELLER].map(|person| [USD, EUR].map(|asset| world.free(person, asset)));
    // What both traders signed: to buy at 130 at most, to sell at 80 at least.
    let (bid, offer) = (VenueOrder { tick: 130, ..buy(1) }, VenueOrder { tick: 80, ..sell(1) });
    let thief = |order: VenueOrder, tick| (THIEF, VenueOrder { tick, ..order });
    let at = |buyer, seller, tick, lots| Match { buyer, seller, tick, ..fill(bid, offer, lots) };
    let verdicts = world.settles(&[
        at((BUYER, bid), thief(sell(1), 1), 131, 1),
        at((BUYER, bid), thief(sell(1), 1), 130, 10),
        at((BUYER, bid), thief(sell(1), 1), 130, 1),
        at(thief(buy(2), 1_000), (SELLER, offer), 79, 1),
        at(thief(buy(2), 1_000), (SELLER, offer), 80, 10),
    ]);
    let bust = |at: usize| matches!(verdicts[at], FillVerdict::Bust(BustReason::Outside, BustGuilt::Nobody));
    assert!(bust(0) && bust(2) && bust(3), "{verdicts:?}");
    assert_eq!([verdicts[1], verdicts[4]], [FillVerdict::Applied; 2]);
    let moved = [[10 * 130 * TICK, 10 * LOT], [10 * 80 * TICK, 10 * LOT]];
    let after = [BUYER, SELLER].map(|person| [USD, EUR].map(|asset| world.free(person, asset)));
    assert_eq!(after[0], [before[0][0] - moved[0][0], before[0][1] + moved[0][1]]);
    assert_eq!(after[1], [before[1][0] + moved[1][0], before[1][1] - moved[1][1]]);
    // The bond: three busts by his own fault, burnt. What he reports falsely convicts; nine tenths are burnt.
    assert_eq!(world.venue().bond, BOND - 3 * PENALTY);
    let (bond, issued, rich) = (world.venue().bond, world.issued(), world.balance(BUYER, USD));
    let lie = world.report(1, primitives::Digest([7; 32]), BUYER, 0);
    world.done(vec![(6, world.accusation(lie))]);
    assert_eq!((world.venue().liable(), world.balance(BUYER, USD)), (0, rich + bond / 10));
    assert!(issued - world.issued() >= bond - bond / 10);
    // A convicted incarnation stands still, and the thief cannot bond it, nor take the venue over.
    let more = VenueOperation::Settle(world.settle(&[at(
        (BUYER, VenueOrder { tick: 130, ..buy(9) }),
        thief(sell(9), 1),
        130,
        1,
    )]));
    assert_eq!(world.refusal(OPERATOR, more), Some(Refusal::VENUE_CONVICTED));
    let change = VenueOperation::ChangeOperator { venue: VENUE, from: operator(OPERATOR, 0), to: operator(7, 7) };
    for operation in [fence(0), unbond(1), change, VenueOperation::Bond { venue: VENUE, units: BOND }] {
        assert_eq!(world.refusal(OPERATOR, operation), Some(Refusal::NOT_VENUE_OWNER));
    }
    // The owner ends it, and what traders still have they take out.
    let change = VenueOperation::ChangeOperator { venue: VENUE, from: operator(OPERATOR, 0), to: operator(5, 1) };
    world.done(vec![(OWNER, change)]);
    world.fence();
    world.done(vec![(OWNER, VenueOperation::Bond { venue: VENUE, units: BOND })]);
    let left = world.free(BUYER, USD);
    let rich = world.balance(BUYER, USD);
    let asked = VenueOperation::Collect { venue: VENUE, asset: USD, units: left };
    world.done(vec![(BUYER, asked)]);
    world.empty_blocks(DELAY.heights + 1);
    assert!((rich + left - 10..rich + left).contains(&world.balance(BUYER, USD)), "but for a fee");
}

#[test]
fn a_fence_comes_after_the_settles_of_its_block() {
    let mut world = World::new();
    let settle = VenueOperation::Settle(world.settle(&[fill(buy(1), sell(1), 1)]));
    let applied = world.block(vec![(OWNER, fence(0)), (OPERATOR, settle)]);
    assert_eq!(applied.outcomes, [Outcome::Applied; 2]);
    assert_eq!(world.verdicts, [FillVerdict::Applied]);
    assert_eq!(world.venue().fills.count(), 0);
}
