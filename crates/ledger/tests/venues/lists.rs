//! Settles and claims with orders of lists: what they do is what orders with signatures of their own do.

use ledger::{FillVerdict, Ledger, Outcome, Quota, Refusal, Roots};
use primitives::venue::{
    ListEntry, ORDER_LISTS_RULES, OrderList, OrderSignature, Settle, SettledOrder, UnsettledFill,
    VENUE_SIGNATURES_PER_SUB_BLOCK, VenueOperation,
};

use crate::world::*;

/// The same orders, those of each person under one signature.
fn listed(world: &World, orders: &[SettledOrder]) -> Vec<SettledOrder> {
    let of = |signed: &SettledOrder| {
        let own: Vec<&SettledOrder> = orders.iter().filter(|order| order.key == signed.key).collect();
        let entries = own.iter().map(|own| ListEntry { order: own.order, replaces: None }).collect();
        let person = [BUYER, SELLER].into_iter().find(|person| key_of(*person) == signed.key).expect("one of two");
        let list = OrderList::sign(&world.network(), VENUE, [person; 32], entries, &trading(person)).expect("plain");
        let place = own.iter().position(|own| own.order.number == signed.order.number).expect("its own");
        let listed = list.verify(&world.network(), VENUE).expect("signed").listed(place);
        SettledOrder { signature: OrderSignature::Listed(Box::new(listed)), ..signed.clone() }
    };
    orders.iter().map(of).collect()
}

fn in_lists(world: &World, settle: Settle) -> Settle {
    Settle { orders: listed(world, &settle.orders), ..settle }
}

fn three() -> [Match; 3] {
    [fill(buy(1), sell(1), 3), fill(buy(2), sell(1), 2), fill(buy(2), sell(2), 1)]
}

/// Property 1 of lists.
#[test]
fn fills_of_lists_leave_the_state_that_signed_ones_leave() {
    let (mut own, mut lists) = (World::new(), World::new());
    assert_eq!(own.settles(&three()), [FillVerdict::Applied; 3]);
    let settle = in_lists(&lists, lists.settle(&three()));
    assert_eq!(settle.signatures(), 2);
    lists.done(vec![(OPERATOR, VenueOperation::Settle(settle))]);
    assert_eq!(lists.verdicts, [FillVerdict::Applied; 3]);
    assert_eq!(own.venue(), lists.venue());
    for (person, asset) in [(BUYER, EUR), (BUYER, USD), (SELLER, EUR), (SELLER, USD), (OWNER, USD)] {
        assert_eq!(own.free(person, asset), lists.free(person, asset));
    }
    for (person, number) in [(BUYER, buy(1).number), (BUYER, buy(2).number), (SELLER, sell(1).number)] {
        let entry =
            |world: &World| world.ledger.venues().and_then(|all| all.filled(VENUE, &key_of(person), &number)).copied();
        assert_eq!(entry(&own), entry(&lists));
    }
    // From then on the ledger knows each by its number, whatever shows it.
    assert_eq!(lists.settles(&[fill(buy(1), sell(1), 1)]), [FillVerdict::Applied], "shown with its own signature");
    let mut later = lists.settle(&[fill(buy(2), sell(2), 1)]);
    later.orders.iter_mut().for_each(|order| order.signature = OrderSignature::Entered);
    assert_eq!(lists.outcome(OPERATOR, VenueOperation::Settle(later)), Outcome::Applied);
}

#[test]
fn an_order_that_its_list_lacks_makes_the_settle_forged() {
    let mut world = World::new();
    let mut forged = in_lists(&world, world.settle(&three()[..1]));
    forged.orders[0].order.tick += 1;
    let outcomes = world.block(vec![(OPERATOR, VenueOperation::Settle(forged))]).outcomes;
    assert_eq!(outcomes, [Outcome::Refused(Refusal::BAD_SIGNATURE)]);
    *world.sequences.get_mut(&OPERATOR).expect("it signed") -= 1;
    // Two roots under one signature are told by the bytes.
    let mut split = in_lists(&world, world.settle(&three()));
    let at = split.orders.iter().rposition(|order| order.key == split.orders[0].key).expect("it has two");
    split.orders[at].order.expiry += 1;
    assert_eq!(world.refusal(OPERATOR, VenueOperation::Settle(split)), Some(Refusal::VENUE_BOUNDS));
}

#[test]
fn lists_wait_for_their_rules() {
    let founded = |rules| {
        let ledger = Ledger::new(&ledger::Genesis { rules, ..genesis(Some(terms())) }).expect("sound");
        let mut world = World { roots: Roots::of(&ledger), ledger, ..World::empty(terms()) };
        let operator = operator(OPERATOR, 0);
        world.done(vec![(OWNER, VenueOperation::Open { venue: VENUE, operator, fee_cap_ppm: 10_000, bond: BOND })]);
        world
    };
    for (rules, refusal) in [(ORDER_LISTS_RULES - 1, Some(Refusal::RULES_TO_COME)), (ORDER_LISTS_RULES, None)] {
        let mut world = founded(rules);
        let settle = in_lists(&world, world.settle(&three()));
        assert_eq!(world.refusal(OPERATOR, VenueOperation::Settle(settle)), refusal, "rules {rules}");
    }
}

#[test]
fn a_list_counts_as_one_signature_in_the_quota_and_pays_for_its_paths() {
    let mut world = World::new();
    let (own, lists) = (world.settle(&three()), in_lists(&world, world.settle(&three())));
    let mut admitted = |settle: &Settle| {
        let transaction = world.sign(OPERATOR, VenueOperation::Settle(settle.clone()));
        let mut quota = Quota::default();
        (0..VENUE_SIGNATURES_PER_SUB_BLOCK).filter(|_| quota.admits(&transaction, 0)).count()
    };
    let most = VENUE_SIGNATURES_PER_SUB_BLOCK as usize;
    assert_eq!((admitted(&own), admitted(&lists)), (most / 4, most / 2));
    assert!(lists.encoded_len() > own.encoded_len());
}

#[test]
fn a_claim_shows_orders_of_lists() {
    let mut world = World::new();
    let of = fill(buy(1), sell(1), 2);
    let mut ended = world.clone();
    world.fence();
    ended.fence();
    let VenueOperation::Claim(claim) = world.claim(0, 0, &of, 0) else { panic!("a claim") };
    let orders = listed(&world, &[claim.buy.clone(), claim.sell.clone()]);
    let [buy, sell] = <[SettledOrder; 2]>::try_from(orders).expect("two");
    let claim = |buy, sell| {
        let UnsettledFill { report, ended, fill, .. } = (*claim).clone();
        VenueOperation::Claim(Box::new(UnsettledFill { report, ended, buy, sell, fill }))
    };
    let mut forged = buy.clone();
    forged.order.fee_cap_ppm += 1;
    let outcomes = ended.block(vec![(7, claim(forged, sell.clone()))]).outcomes;
    assert_eq!(outcomes, [Outcome::Refused(Refusal::BAD_SIGNATURE)]);
    world.done(vec![(7, claim(buy, sell))]);
    assert!(world.venue().bond < BOND, "the claim counted");
}
