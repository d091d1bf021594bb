//! Which settles count, and what they move.

use ledger::{BustGuilt, BustReason, FillVerdict, Outcome, Refusal};
use primitives::venue::{OrderLife, OrderSignature, Settle, VenueOperation, VenueOrder, VenueSide};

use crate::world::*;

const APPLIED: FillVerdict = FillVerdict::Applied;

fn bust(reason: BustReason, guilt: BustGuilt) -> FillVerdict {
    FillVerdict::Bust(reason, guilt)
}

fn settle(of: Settle) -> VenueOperation {
    VenueOperation::Settle(of)
}

#[test]
fn a_settle_moves_base_quote_and_fees_between_deposits() {
    let mut world = World::new();
    let of = Match { fees: (4, -1), ..fill(buy(1), sell(1), 3) };
    assert_eq!(world.settles(&[of]), [APPLIED]);
    let (base, quote) = (3 * LOT, 3 * 100 * TICK);
    assert_eq!(world.free(BUYER, EUR), 100_000 + base);
    assert_eq!(world.free(BUYER, USD), 100_000 - quote - 4);
    assert_eq!(world.free(SELLER, EUR), 100_000 - base);
    assert_eq!(world.free(SELLER, USD), 100_000 + quote + 1);
    assert_eq!(world.free(OWNER, USD), 3, "fees are a deposit of the owner");
    let entry = *world.ledger.venues().expect("there").filled(VENUE, &key_of(BUYER), &buy(1).number).expect("filled");
    assert_eq!((entry.lots, entry.quote, entry.fee, entry.expiry), (3, u128::from(quote), 4, 40));
    assert_eq!((world.venue().fills.count(), world.venue().entries), (1, 2));
}

#[test]
fn a_later_settle_needs_no_signature_of_an_order_that_has_an_entry() {
    let mut world = World::new();
    world.settles(&[fill(buy(1), sell(1), 3)]);
    let mut later = world.settle(&[fill(buy(1), sell(1), 7)]);
    later.orders.iter_mut().for_each(|order| order.signature = OrderSignature::Entered);
    assert_eq!(world.outcome(OPERATOR, settle(later.clone())), Outcome::Applied);
    assert_eq!(world.verdicts, [APPLIED]);
    // An order whose entry is absent fails the whole operation, and never a fill (B3).
    let mut unknown = world.settle(&[fill(buy(1), sell(1), 1), fill(buy(2), sell(2), 1)]);
    unknown.orders.iter_mut().for_each(|order| order.signature = OrderSignature::Entered);
    let before = world.venue();
    assert_eq!(world.outcome(OPERATOR, settle(unknown)), Outcome::Void);
    assert_eq!(world.venue(), before);
}

#[test]
fn a_settle_of_another_sender_incarnation_or_beginning_is_refused_or_void() {
    let mut world = World::new();
    let sound = world.settle(&[fill(buy(1), sell(1), 1)]);
    assert_eq!(world.refusal(OWNER, settle(sound.clone())), Some(Refusal::NOT_OPERATOR));
    let other = Settle { incarnation: 1, ..sound.clone() };
    assert_eq!(world.refusal(OPERATOR, settle(other)), Some(Refusal::WRONG_INCARNATION));
    let later = Settle { from: 1, ..sound.clone() };
    assert_eq!(world.outcome(OPERATOR, settle(later)), Outcome::Void);
    assert_eq!(world.outcome(OPERATOR, settle(sound.clone())), Outcome::Applied);
    assert_eq!(world.outcome(OPERATOR, settle(sound)), Outcome::Void, "a cut that is sent again is not counted twice");
    assert_eq!(world.venue().fills.count(), 1);
}

#[test]
fn a_forged_signature_of_an_order_makes_the_settle_forged() {
    let mut world = World::new();
    let mut forged = world.settle(&[fill(buy(1), sell(1), 1)]);
    forged.orders[0].signature = forged.orders[1].signature.clone();
    let applied = world.block(vec![(OPERATOR, settle(forged))]);
    assert_eq!(applied.outcomes, [Outcome::Refused(Refusal::BAD_SIGNATURE)]);
    *world.sequences.get_mut(&OPERATOR).expect("signed") -= 1;
    let mut empty = world.settle(&[fill(buy(1), sell(1), 1)]);
    empty.fills.clear();
    assert_eq!(world.refusal(OPERATOR, settle(empty)), Some(Refusal::VENUE_BOUNDS));
}

/// B5: of two live roots with one operator key the larger settle counts, and the other one pays.
#[test]
fn of_the_settles_of_a_block_the_one_that_settles_most_counts() {
    let mut world = World::new();
    let small = world.settle(&[fill(buy(1), sell(1), 1)]);
    let large = world.settle(&[fill(buy(2), sell(2), 1), fill(buy(2), sell(2), 2)]);
    let balance = world.balance(OPERATOR, USD);
    let applied = world.block(vec![(OPERATOR, settle(small)), (OPERATOR, settle(large))]);
    assert_eq!(applied.outcomes, [Outcome::Void, Outcome::Applied]);
    assert_eq!(world.venue().fills.count(), 2);
    assert!(world.balance(OPERATOR, USD) < balance - 2, "both pay");
    assert_eq!(world.sequences[&OPERATOR], 2);
}

#[test]
fn of_equal_settles_the_one_with_the_lowest_id_counts() {
    let mut world = World::new();
    let (one, other) = (world.settle(&[fill(buy(1), sell(1), 1)]), world.settle(&[fill(buy(2), sell(2), 2)]));
    let both = [one, other].map(|of| world.sign(OPERATOR, settle(of)));
    let lowest = if both[0].id() < both[1].id() { 0 } else { 1 };
    for order in [[0, 1], [1, 0]] {
        let mut world = world.clone();
        let applied = world.run(order.map(|at| both[at].clone()).to_vec());
        let expected = order.map(|at| if at == lowest { Outcome::Applied } else { Outcome::Void });
        assert_eq!(applied.outcomes, expected);
    }
}

/// With a once-key of the account, a stale settle beside a new one would remove all transactions of the operator.
#[test]
fn a_stale_settle_beside_a_new_one_removes_nothing_of_its_operator() {
    let mut world = World::new();
    let stale = world.settle(&[fill(buy(1), sell(1), 1)]);
    world.settles(&[fill(buy(1), sell(1), 1)]);
    let new = world.settle(&[fill(buy(2), sell(2), 1)]);
    let other = deposit(USD, 7);
    let applied = world.block(vec![(OPERATOR, settle(stale)), (OPERATOR, settle(new)), (OPERATOR, other)]);
    assert_eq!(applied.outcomes, [Outcome::Void, Outcome::Applied, Outcome::Applied]);
    assert_eq!((world.venue().fills.count(), world.free(OPERATOR, USD)), (2, 7));
}

/// A cap of one percent of five units, rounded up for each fill, would cost a fortune.
#[test]
fn fees_are_rounded_down_on_sums_and_not_up_for_each_fill() {
    let mut world = World::new();
    let tick = 1;
    let (buy, sell) = (VenueOrder { lots: 100, tick, ..buy(1) }, VenueOrder { lots: 100, tick, ..sell(1) });
    let of = |fee| Match { tick, fees: (fee, 0), ..fill(buy, sell, 1) };
    // A lot is worth 2 units; one percent of a hundred units is one unit, and of less it is none.
    let too_early: Vec<_> = (0..50).map(|at| of(i64::from(at == 48))).collect();
    let verdicts = world.settles(&too_early);
    assert_eq!(verdicts[48], bust(BustReason::Size, BustGuilt::Nobody));
    assert!(verdicts.iter().enumerate().all(|(at, verdict)| at == 48 || *verdict == APPLIED));
    assert_eq!(world.settles(&[of(1)]), [APPLIED], "now it is the fiftieth lot");
    assert_eq!(world.settles(&[of(1)]), [bust(BustReason::Size, BustGuilt::Nobody)]);
    assert_eq!(world.free(OWNER, USD), 1);
}

#[test]
fn buy_then_resell_in_one_settle_passes_and_the_reverse_order_busts() {
    let mut world = World::new();
    let everything = 100_000 / LOT as u32;
    let mut terms = world.ledger.venues().expect("there").market(VENUE, 0).copied().expect("listed");
    terms.lots_max = 100_000;
    world.done(vec![(OWNER, VenueOperation::List { venue: VENUE, market: 2, terms })]);
    let wide = |order: VenueOrder| VenueOrder { market: 0, lots: 1_000, tick: 1, ..order };
    assert!(everything > 1_000);
    // Person 5 holds no EUR: it buys ten lots and sells them on.
    world.done(vec![(5, collect(EUR, 100_000))]);
    world.empty_blocks(6);
    assert_eq!(world.free(5, EUR), 0);
    let bought = Match { buyer: (5, wide(buy(1))), tick: 1, ..fill(buy(1), wide(sell(1)), 10) };
    let sold = Match { seller: (5, wide(sell(2))), tick: 1, ..fill(wide(buy(3)), sell(2), 10) };
    let mut reverse = world.clone();
    assert_eq!(world.settles(&[bought, sold]), [APPLIED, APPLIED]);
    let verdicts = reverse.settles(&[sold, bought]);
    assert_eq!(verdicts, [bust(BustReason::Deposit, BustGuilt::Seller), APPLIED]);
}

#[test]
fn self_trade_of_one_owner_busts_and_of_two_accounts_is_visible() {
    let mut world = World::new();
    let own = Match { buyer: (SELLER, buy(1)), ..fill(buy(1), sell(2), 1) };
    assert_eq!(world.settles(&[own]), [bust(BustReason::Parties, BustGuilt::Nobody)]);
    assert_eq!(world.settles(&[fill(buy(3), sell(3), 1)]), [APPLIED]);
}

#[test]
fn a_fill_or_kill_group_applies_or_busts_as_a_whole() {
    let killed = |lots| VenueOrder { life: OrderLife::FillOrKill, lots, ..buy(1) };
    let group = |lots: u32, second: VenueOrder| {
        let one = Match { lots: 4, ..fill(killed(lots), sell(1), 4) };
        let two = Match { seller: (5, second), ..fill(killed(lots), sell(1), lots - 4) };
        [one, two]
    };
    let mut world = World::new();
    let free = world.free(SELLER, EUR);
    let dear = VenueOrder { tick: 101, ..sell(1) };
    let verdicts = world.settles(&group(10, dear));
    assert_eq!(verdicts, [bust(BustReason::Outside, BustGuilt::Nobody); 2], "reason and guilt of the first that busts");
    assert_eq!((world.free(SELLER, EUR), world.venue().entries), (free, 0), "nothing of it is left");
    assert_eq!(world.venue().bond, BOND - 10 * PENALTY);
    assert_eq!(world.settles(&group(10, sell(1))), [APPLIED, APPLIED]);
    assert_eq!(world.free(SELLER, EUR), free - 4 * LOT);
}

#[test]
fn a_bust_changes_nothing_not_even_a_floor() {
    let mut world = World::new();
    let raised = VenueOrder { floor: buy(5).number, tick: 99, ..buy(5) };
    let verdicts = world.settles(&[fill(raised, sell(1), 1), fill(buy(1), sell(1), 1)]);
    assert_eq!(verdicts, [bust(BustReason::Outside, BustGuilt::Nobody), APPLIED]);
    let raised = VenueOrder { tick: 100, ..raised };
    let verdicts = world.settles(&[fill(raised, sell(1), 1), fill(buy(1), sell(1), 1)]);
    assert_eq!(verdicts, [APPLIED, bust(BustReason::Dead, BustGuilt::Buyer)], "a floor acts in the order of the fills");
    let entry = world.ledger.venues().expect("there").filled(VENUE, &key_of(BUYER), &buy(1).number).copied();
    assert_eq!(entry, None, "and lets the ledger forget");
}

#[test]
fn a_venue_below_its_least_bond_stands_still_until_it_is_bonded() {
    let mut world = World::new();
    // Penalties of a settle must be covered beside the least bond, whether its fills bust or not.
    let units = BOND - BOND_MIN - 9 * PENALTY;
    world.done(vec![(OWNER, VenueOperation::Unbond { venue: VENUE, units })]);
    let ten = world.settle(&[fill(buy(1), sell(1), 10)]);
    assert_eq!(world.outcome(OPERATOR, settle(ten.clone())), Outcome::Void, "what leaves does not count");
    world.done(vec![(OWNER, VenueOperation::Bond { venue: VENUE, units: PENALTY })]);
    assert_eq!(world.outcome(OPERATOR, settle(ten)), Outcome::Applied);
}

#[test]
fn a_venue_with_as_many_entries_as_it_may_have_settles_no_new_orders() {
    let mut world = World::of(ledger::VenueTerms { entries_max: 4, ..terms() });
    world.settles(&[fill(buy(1), sell(1), 1), fill(buy(2), sell(2), 1)]);
    let more = world.settle(&[fill(buy(3), sell(2), 1)]);
    assert_eq!(world.outcome(OPERATOR, settle(more)), Outcome::Void);
    assert_eq!(world.settles(&[fill(buy(1), sell(2), 1)]), [APPLIED]);
    while world.venue().entries > 0 {
        world.empty_blocks(1);
    }
    assert!(world.height() > 40 + DELAY.heights, "entries live as long as their orders");
}

#[test]
fn a_settle_with_more_bytes_than_the_chain_permits_is_refused_at_admission() {
    let mut world = World::of(ledger::VenueTerms { settle_bytes: 1_024, ..terms() });
    let many: Vec<Match> = (0..40).map(|_| fill(buy(1), sell(1), 1)).collect();
    let long = world.settle(&many);
    assert!(borsh::object_length(&long).expect("plain data") > 1_024);
    assert_eq!(world.refusal(OPERATOR, settle(long)), Some(Refusal::SETTLE_TOO_LONG));
    assert_eq!(world.settles(&many[..9]), [APPLIED; 9]);
}

#[test]
fn a_post_only_order_never_takes() {
    let mut world = World::new();
    let passive = VenueOrder { life: OrderLife::PostOnly, ..buy(1) };
    assert_eq!(world.settles(&[fill(passive, sell(1), 1)]), [bust(BustReason::Outside, BustGuilt::Nobody)]);
    let of = Match { taker: VenueSide::Sell, ..fill(passive, sell(1), 1) };
    assert_eq!(world.settles(&[of]), [APPLIED]);
}

#[test]
fn a_chain_without_venues_refuses_operations_at_venues() {
    let ledger = ledger::Ledger::new(&genesis(None)).expect("sound");
    let mut world = World::new();
    let transaction = world.sign(BUYER, deposit(USD, 1));
    assert_eq!(ledger.admit(&transaction), Err(Refusal::NO_VENUES));
}
