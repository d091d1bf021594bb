//! Every rule of a fill, its guilt, and who is paid.

use ledger::{BustGuilt, BustReason, FillVerdict, VenueTerms};
use primitives::venue::{Mandate, MarketMandate, MarketTerms, OrderNumber, VenueOperation, VenueOrder};
use primitives::{Amount, SecretKey};

use crate::world::*;

fn check(world: &mut World, of: Match, reason: BustReason, guilt: BustGuilt) {
    let (bond, issued) = (world.venue().bond, world.issued());
    let balances = [BUYER, SELLER].map(|person| world.balance(person, USD));
    let sequences = world.sequences.clone();
    assert_eq!(world.settles(&[of]), [FillVerdict::Bust(reason, guilt)]);
    let penalty = Amount::from(of.lots) * PENALTY;
    assert_eq!(world.venue().bond, bond - penalty);
    let paid = [BUYER, SELLER].map(|person| world.balance(person, USD));
    let expected = match guilt {
        BustGuilt::Buyer => [balances[0], balances[1] + penalty],
        BustGuilt::Seller => [balances[0] + penalty, balances[1]],
        BustGuilt::Nobody | BustGuilt::Both => balances,
    };
    assert_eq!(paid, expected, "the innocent side is paid both halves if one is guilty");
    let burnt = if matches!(guilt, BustGuilt::Nobody | BustGuilt::Both) { penalty } else { 0 };
    let fees = issued - world.issued() - burnt;
    assert!((1..100).contains(&fees), "the rest is the fee of the settle: {fees}");
    assert_eq!(world.sequences[&OPERATOR], sequences.get(&OPERATOR).copied().unwrap_or(0) + 1);
}

#[test]
fn f1_a_missing_market_or_key_or_two_orders_of_one_side_bust_and_all_is_burnt() {
    use BustGuilt::Nobody;
    use BustReason::Parties;
    let world = &mut World::new();
    let elsewhere = |order: VenueOrder| VenueOrder { market: 1, ..order };
    check(world, fill(elsewhere(buy(1)), sell(1), 1), Parties, Nobody);
    check(world, Match { buyer: (7, buy(1)), ..fill(buy(1), sell(1), 1) }, Parties, Nobody);
    check(world, Match { buyer: (BUYER, sell(9)), ..fill(buy(1), sell(1), 1) }, Parties, Nobody);
    let next = OrderNumber { incarnation: 1, ..buy(1).number };
    check(world, fill(VenueOrder { number: next, ..buy(1) }, sell(1), 1), Parties, Nobody);
    // Without a market the least penalty counts.
    let nowhere = |order: VenueOrder| VenueOrder { market: 77, ..order };
    let bond = world.venue().bond;
    world.settles(&[fill(nowhere(buy(1)), nowhere(sell(1)), 10)]);
    assert_eq!(world.venue().bond, bond - 10);
}

#[test]
fn f2_revoked_keys_and_dead_numbers_are_guilty_and_a_used_number_is_not() {
    let world = &mut World::new();
    world.settles(&[fill(buy(1), sell(1), 1)]);
    let other = VenueOrder { lots: 11, ..buy(1) };
    check(world, fill(other, sell(1), 1), BustReason::Dead, BustGuilt::Nobody);
    world.done(vec![(SELLER, raise(SELLER, 5)), (BUYER, revoke(BUYER))]);
    world.empty_blocks(DELAY.heights);
    check(world, fill(buy(6), sell(1), 1), BustReason::Dead, BustGuilt::Both);
    check(world, fill(buy(6), sell(6), 1), BustReason::Dead, BustGuilt::Buyer);
    let before = world.balance(5, USD);
    let by_five = Match { buyer: (5, buy(1)), ..fill(buy(1), sell(2), 1) };
    assert_eq!(world.settles(&[by_five]), [FillVerdict::Bust(BustReason::Dead, BustGuilt::Seller)]);
    assert_eq!(world.balance(5, USD), before + PENALTY);
}

#[test]
fn f3_expired_orders_and_orders_that_live_too_long_bust() {
    use BustGuilt::Nobody;
    let world = &mut World::new();
    let now = world.height();
    let expires = |expiry| VenueOrder { expiry, ..buy(1) };
    check(world, fill(expires(now - DELAY.heights), sell(1), 1), BustReason::Expired, Nobody);
    let next = world.height() + 1;
    check(world, fill(expires(next + terms().life_max + 1), sell(1), 1), BustReason::Expired, Nobody);
    let longest = expires(world.height() + 1 + terms().life_max);
    assert_eq!(world.settles(&[fill(longest, sell(1), 1)]), [FillVerdict::Applied]);
}

#[test]
fn f3_until_counts_by_the_time_of_the_match_or_by_the_clock() {
    let world = &mut World::new();
    let until = |until_ms: u64| VenueOrder { until_ms: Some(until_ms), ..buy(until_ms as u32) };
    world.empty_blocks(DELAY.heights);
    // Blocks are a second apart, so the block of the match is four seconds old.
    let matched = world.time_ms + STEP - DELAY.heights * STEP;
    assert_eq!(world.settles(&[fill(until(matched), sell(1), 1)]), [FillVerdict::Applied]);
    let late = world.time_ms + STEP - DELAY.heights * STEP - 1;
    check(world, fill(until(late), sell(1), 1), BustReason::Expired, BustGuilt::Nobody);
    // The clock stood for long, and leaps: what counts is τ after the end.
    let now = world.time_ms + 50;
    let settle = world.settle(&[fill(until(now - DELAY.ms), sell(1), 1)]);
    let transaction = world.sign(OPERATOR, VenueOperation::Settle(settle));
    world.run_at(now, vec![transaction]);
    assert_eq!(world.verdicts, [FillVerdict::Applied]);
}

#[test]
fn f4_prices_lots_and_mandates_are_limits() {
    use BustGuilt::Nobody;
    use BustReason::Outside;
    let world = &mut World::new();
    check(world, Match { tick: 101, ..fill(buy(1), sell(1), 1) }, Outside, Nobody);
    check(world, Match { tick: 99, ..fill(buy(1), sell(1), 1) }, Outside, Nobody);
    check(world, fill(buy(1), sell(1), 11), Outside, Nobody);
    let large = VenueOrder { lots: 1_001, ..buy(1) };
    check(world, fill(large, sell(1), 1), Outside, Nobody);
    world.settles(&[fill(buy(1), sell(1), 8)]);
    check(world, fill(buy(1), sell(2), 3), Outside, Nobody);
    // A key that may buy at 90 to 95 ticks in the other market only.
    let narrow = SecretKey::from_seed([107; 32]);
    let markets = vec![MarketMandate { market: 1, tick_min: 90, tick_max: 95 }];
    let mandate = Mandate { markets, ..mandate() };
    world.done(vec![(7, deposit(USD, 10_000)), (7, world.authorize(7, &narrow, mandate))]);
    let by_seven = |order, tick| Match { buyer: (7, order), tick, ..fill(order, sell(7), 1) };
    check(world, by_seven(buy(1), 100), Outside, Nobody);
    let sold = VenueOrder { market: 1, tick: 90, ..sell(8) };
    let bought = VenueOrder { market: 1, ..buy(2) };
    check(world, Match { seller: (SELLER, sold), ..by_seven(bought, 96) }, Outside, Nobody);
    let inside = Match { seller: (SELLER, sold), ..by_seven(bought, 95) };
    assert_eq!(world.settles(&[inside]), [FillVerdict::Applied]);
}

#[test]
fn f5_units_that_cannot_exist_and_fees_above_a_cap_bust() {
    use BustGuilt::Nobody;
    let world = &mut World::new();
    let huge = MarketTerms { tick_units: u64::MAX >> 1, ..market() };
    world.done(vec![(OWNER, VenueOperation::List { venue: VENUE, market: 2, terms: huge })]);
    let all = Mandate { markets: vec![MarketMandate { market: 2, tick_min: 1, tick_max: 9_000 }], ..mandate() };
    world.done(vec![(7, world.authorize(7, &trading(7), all.clone())), (8, world.authorize(8, &trading(8), all))]);
    let there = |order: VenueOrder| VenueOrder { market: 2, ..order };
    let of =
        Match { buyer: (7, there(buy(1))), seller: (8, there(sell(1))), ..fill(there(buy(1)), there(sell(1)), 10) };
    check(world, of, BustReason::Size, Nobody);
    // 2,000 quote units at one percent.
    let with = |fees| Match { fees, ..fill(buy(2), sell(2), 10) };
    check(world, with((21, 0)), BustReason::Size, Nobody);
    check(world, with((0, 21)), BustReason::Size, Nobody);
    let capped = VenueOrder { fee_cap_ppm: 5_000, ..buy(3) };
    check(world, Match { fees: (11, 0), ..fill(capped, sell(3), 10) }, BustReason::Size, Nobody);
    assert_eq!(world.settles(&[with((20, 20))]), [FillVerdict::Applied]);
}

#[test]
fn f6_a_short_deposit_is_guilty_and_a_fee_above_the_proceeds_is_nobodys() {
    let world = &mut World::new();
    world.done(vec![(7, deposit(USD, 2_000)), (7, world.authorize(7, &trading(7), mandate()))]);
    let by_seven = |lots, fee| Match { buyer: (7, buy(1)), fees: (fee, 0), ..fill(buy(1), sell(1), lots) };
    assert_eq!(world.settles(&[by_seven(5, 0)]), [FillVerdict::Applied]);
    world.done(vec![(7, collect(USD, 999))]);
    world.empty_blocks(DELAY.heights + 1);
    check(world, Match { seller: (SELLER, sell(1)), ..by_seven(5, 0) }, BustReason::Deposit, BustGuilt::Buyer);
    // Fees are capped by the quote units of all fills, so that a fill may have a fee above its own proceeds.
    let (long, cheap) = (VenueOrder { lots: 100, ..buy(2) }, VenueOrder { lots: 100, tick: 1, ..sell(2) });
    assert_eq!(world.settles(&[fill(long, cheap, 50)]), [FillVerdict::Applied]);
    let with = |fee| Match { tick: 1, fees: (0, fee), ..fill(long, cheap, 1) };
    check(world, with(3), BustReason::Deposit, BustGuilt::Nobody);
    assert_eq!(world.settles(&[with(2)]), [FillVerdict::Applied]);
}

#[test]
fn f7_a_key_loses_no_more_on_balance_than_its_cap() {
    let world = &mut World::new();
    let capped = Mandate { caps: vec![(USD, 1_000), (EUR, 0)], ..mandate() };
    world.done(vec![(7, deposit(USD, 50_000)), (7, world.authorize(7, &trading(7), capped))]);
    let buys = |reference, lots| Match { buyer: (7, buy(reference)), ..fill(buy(reference), sell(reference), lots) };
    let sells = |reference, lots| Match { seller: (7, sell(reference)), ..fill(buy(reference), sell(reference), lots) };
    // A lot costs 200 units of quote.
    check(world, buys(1, 6), BustReason::Drawdown, BustGuilt::Buyer);
    assert_eq!(world.settles(&[buys(1, 5)]), [FillVerdict::Applied]);
    check(world, buys(1, 1), BustReason::Drawdown, BustGuilt::Buyer);
    assert_eq!(
        world.settles(&[sells(50, 3), buys(1, 3)]),
        [FillVerdict::Applied; 2],
        "the net counts, not the turnover"
    );
    world.done(vec![(7, deposit(EUR, 1_000))]);
    check(world, sells(51, 6), BustReason::Drawdown, BustGuilt::Seller);
}

#[test]
fn guilt_is_looked_for_on_both_sides_by_all_rules_of_guilt() {
    let world = &mut World::new();
    // The buyer's number is dead, and the seller has nothing: neither is paid.
    world.done(vec![(BUYER, raise(BUYER, 5)), (SELLER, collect(EUR, 100_000))]);
    world.empty_blocks(DELAY.heights + 1);
    check(world, fill(buy(1), sell(1), 1), BustReason::Dead, BustGuilt::Both);
}

#[test]
fn penalties_leave_the_least_bond_to_convictions() {
    let mut world = World::of(VenueTerms { bond_min: BOND - 12 * PENALTY, ..terms() });
    let dear = VenueOrder { tick: 99, ..buy(1) };
    let verdicts = world.settles(&[fill(dear, sell(1), 10)]);
    assert!(matches!(verdicts[..], [FillVerdict::Bust(..)]));
    let settle = VenueOperation::Settle(world.settle(&[fill(dear, sell(1), 3)]));
    assert_eq!(world.outcome(OPERATOR, settle), ledger::Outcome::Void);
    assert_eq!(world.venue().bond, BOND - 10 * PENALTY);
}
