use primitives::venue::{
    ListEntry, OrderLife, OrderList, OrderNumber, OrderSignature, SelfTradeRule, SettledOrder, VenueOrder, VenueSide,
};
use primitives::{Body, PublicKey, SecretKey, verify_transactions};

use super::*;

const NETWORK: Digest = Digest([7; 32]);

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn account(seed: u8) -> Address {
    key(seed).public().address()
}

fn order(reference: u32) -> VenueOrder {
    let number = |reference| OrderNumber { incarnation: 1, day: 2, reference };
    VenueOrder {
        market: 0,
        number: number(reference),
        floor: number(0),
        side: VenueSide::Buy,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireTaker,
        tick: 100,
        lots: 5,
        expiry: 1_000,
        until_ms: None,
        fee_cap_ppm: 1_000,
    }
}

/// Three orders of a list that a person signed for a venue.
fn listed(person: u8, venue: VenueId, first: u32) -> Vec<SettledOrder> {
    let entries = (first..first + 3).map(|of| ListEntry { order: order(of), replaces: None }).collect();
    let list = OrderList::sign(&NETWORK, venue, [person; 32], entries, &key(person)).expect("plain");
    let checked = list.verify(&NETWORK, venue).expect("signed");
    let shown = |(place, entry): (usize, &ListEntry)| SettledOrder {
        key: list.key,
        order: entry.order,
        signature: OrderSignature::Listed(Box::new(checked.listed(place))),
    };
    list.entries.iter().enumerate().map(shown).collect()
}

fn settle(operator: u8, venue: VenueId, orders: Vec<SettledOrder>) -> Transaction {
    let settle = Settle { venue, incarnation: 1, from: 0, orders, fills: Vec::new() };
    let operation = Operation::Venue(Box::new(VenueOperation::Settle(settle)));
    let body = Body { chain: 1, account: account(operator), sequence: 1, until: 9, operation };
    body.sign(&NETWORK, &key(operator))
}

fn lists_of_two_venues() -> KnownLists {
    let lists = KnownLists::new(NETWORK);
    lists.follow([(1, account(11)), (2, account(12))].into_iter());
    lists
}

fn known(lists: &KnownLists) -> [usize; 2] {
    let venues = lists.venues();
    [1, 2].map(|venue| venues.get(&venue).map_or(0, |of| of.known.len()))
}

#[test]
fn a_list_is_verified_once_over_the_settles_that_fill_it() {
    let lists = lists_of_two_venues();
    let orders = listed(5, 1, 10);
    assert_eq!(lists.verify(&[settle(11, 1, orders[..1].to_vec())]), [true]);
    assert_eq!(known(&lists), [1, 0]);
    // Another order of it: nothing that the settle carries is left to verify.
    let later = settle(11, 1, orders[1..].to_vec());
    let carried = settle_of(&later).expect("a settle").list_signatures(&NETWORK);
    assert!(carried.len() == 1 && carried.iter().all(|one| lists.knows(one)));
    assert_eq!(lists.verify(&[later]), [true]);
    // What is known of a venue goes with it, and stays with another operator.
    lists.follow([(1, account(13))].into_iter());
    assert_eq!(known(&lists), [1, 0]);
    lists.follow(std::iter::empty());
    assert_eq!(known(&lists), [0, 0]);
}

#[test]
fn a_false_list_is_never_known() {
    let lists = lists_of_two_venues();
    let sound = listed(5, 1, 10);
    lists.verify(&[settle(11, 1, sound[..1].to_vec())]);
    // Another order at its place, another key, another venue: none is what was verified.
    let changed = SettledOrder { order: VenueOrder { lots: 6, ..sound[0].order }, ..sound[0].clone() };
    let stolen = SettledOrder { key: key(6).public(), ..sound[0].clone() };
    for (venue, operator, false_one) in [(1, 11, changed), (1, 11, stolen), (2, 12, sound[0].clone())] {
        let beside = listed(8, venue, 40);
        let one = settle(operator, venue, vec![beside[0].clone(), false_one]);
        for _ in 0..2 {
            assert_eq!(lists.verify(std::slice::from_ref(&one)), [false]);
            assert_eq!(known(&lists), [1, 0], "nothing of it is kept");
        }
    }
    // Who is not the operator, and who did not sign, leave nothing; nor do venues that are not there.
    let mut unsigned = settle(11, 1, listed(6, 1, 10));
    unsigned.body.sequence += 1;
    for (one, is_valid) in
        [(settle(12, 1, listed(6, 1, 10)), true), (unsigned, false), (settle(11, 3, listed(6, 3, 10)), true)]
    {
        assert_eq!(lists.verify(&[one]), [is_valid]);
        assert_eq!(known(&lists), [1, 0]);
    }
}

#[test]
fn a_venue_with_many_lists_forgets_its_own_and_no_others() {
    let lists = lists_of_two_venues();
    let of_two = settle(12, 2, listed(5, 2, 10));
    lists.verify(&[of_two]);
    // Names stand for lists: signing thousands would take a minute.
    {
        let mut venues = lists.venues();
        let of = venues.get_mut(&1).expect("it is there");
        for at in 0..LISTS as u32 {
            let name = Digest::of("test", &at.to_le_bytes());
            of.known.insert(name);
            of.oldest_first.push_back(name);
        }
    }
    let orders = [listed(5, 1, 10), listed(6, 1, 10)].concat();
    lists.verify(&[settle(11, 1, orders)]);
    let venues = lists.venues();
    let of = &venues[&1];
    assert_eq!((of.known.len(), of.oldest_first.len()), (LISTS, LISTS));
    assert!(!of.known.contains(&Digest::of("test", &1u32.to_le_bytes())));
    assert!(of.known.contains(&Digest::of("test", &2u32.to_le_bytes())));
    assert_eq!(venues[&2].known.len(), 1);
}

/// Whatever a memory knows, its verdicts are those without one.
#[test]
fn what_is_known_changes_no_verdict() {
    let orders: Vec<Vec<SettledOrder>> = (0..4).map(|person| listed(20 + person, 1, 10)).collect();
    let mut dice = 1u64;
    let mut draw = |most: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % most
    };
    let lists = lists_of_two_venues();
    let mut verdicts = [0, 0];
    for _ in 0..60 {
        let mut one = Vec::new();
        for _ in 0..1 + draw(3) {
            let mut order = orders[draw(4) as usize][draw(3) as usize].clone();
            match draw(8) {
                0 => order.order.lots += 1,
                1 => order.key = PublicKey(key(20 + draw(4) as u8).public().0),
                _ => {}
            }
            one.push(order);
        }
        let transactions = [settle(11 + draw(2) as u8, 1 + draw(2) as VenueId, one.clone()), settle(11, 1, one)];
        let expected = verify_transactions(&NETWORK, &transactions);
        assert_eq!(lists.verify(&transactions), expected);
        expected.iter().for_each(|valid| verdicts[usize::from(*valid)] += 1);
    }
    assert!(verdicts.iter().all(|count| *count > 20) && known(&lists)[0] == 4, "{verdicts:?}");
}
