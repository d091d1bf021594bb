use super::*;
use crate::venue::{OrderLife, SelfTradeRule, VenueSide};

const NETWORK: Digest = Digest([7; 32]);
const VENUE: VenueId = 3;
const SEED: [u8; 32] = [9; 32];

fn order(reference: u32, tick: u32) -> VenueOrder {
    let number = OrderNumber { incarnation: 0, day: 1, reference };
    VenueOrder {
        market: 0,
        number,
        floor: OrderNumber { incarnation: 0, day: 0, reference: 0 },
        side: VenueSide::Buy,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireMaker,
        tick,
        lots: 5,
        expiry: 100,
        until_ms: reference.is_multiple_of(2).then_some(77),
        fee_cap_ppm: 100,
    }
}

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn entries(count: u32) -> Vec<ListEntry> {
    (0..count).map(|at| ListEntry { order: order(at, 10 + at), replaces: None }).collect()
}

fn signed(count: u32) -> OrderList {
    OrderList::sign(&NETWORK, VENUE, SEED, entries(count), &key(1)).expect("the entries are plain")
}

#[test]
fn each_order_of_a_list_of_any_size_verifies_and_keeps_its_bytes() {
    for count in 1..=LIST_ORDERS_MAX as u32 {
        let list = signed(count);
        let checked = list.verify(&NETWORK, VENUE).expect("it is signed");
        for (place, entry) in list.entries.iter().enumerate() {
            let listed = checked.listed(place);
            assert!(listed.verifies(&NETWORK, VENUE, &list.key, &entry.order), "{place} of {count}");
            let bytes = borsh::to_vec(&listed).expect("memory");
            assert_eq!(bytes.len(), listed.encoded_len());
            assert!(bytes.len() <= 274);
            assert_eq!(borsh::from_slice::<ListedSignature>(&bytes).expect("it is read"), listed);
            assert!(borsh::from_slice::<ListedSignature>(&bytes[..bytes.len() - 1]).is_err());
        }
        assert_eq!(borsh::from_slice::<OrderList>(&borsh::to_vec(&list).expect("memory")).expect("it is read"), list);
    }
}

#[test]
fn a_size_and_a_place_that_no_list_has_are_not_read() {
    let bytes = borsh::to_vec(&signed(4).verify(&NETWORK, VENUE).expect("signed").listed(3)).expect("memory");
    for (size, place) in [(0, 0), (4, 4), (65, 0), (255, 255), (3, 3)] {
        let mut wrong = bytes.clone();
        wrong[80..82].copy_from_slice(&[size, place]);
        assert!(borsh::from_slice::<ListedSignature>(&wrong).is_err(), "place {place} of {size}");
    }
}

#[test]
fn whatever_a_gateway_changes_breaks_the_signature() {
    let list = signed(5);
    let forged: [fn(&mut OrderList); 8] = [
        |list| list.seed[31] ^= 1,
        |list| list.entries[2].order.tick += 1,
        |list| list.entries[2].replaces = Some(order(0, 1).number),
        |list| list.entries.truncate(4),
        |list| list.entries.push(ListEntry { order: order(9, 9), replaces: None }),
        |list| list.entries = list.entries.split_off(1),
        |list| list.key = key(2).public(),
        |list| list.signature.0[0] ^= 1,
    ];
    for (at, forge) in forged.into_iter().enumerate() {
        let mut forged = list.clone();
        forge(&mut forged);
        assert_eq!(forged.verify(&NETWORK, VENUE).err(), Some(ListFault::Signature), "forgery {at}");
    }
    assert_eq!(list.verify(&Digest([8; 32]), VENUE).err(), Some(ListFault::Signature));
    assert_eq!(list.verify(&NETWORK, VENUE + 1).err(), Some(ListFault::Signature));
}

#[test]
fn fields_are_looked_at_before_the_signature() {
    let fault = |change: fn(&mut Vec<ListEntry>)| {
        let mut list = signed(3);
        change(&mut list.entries);
        (list.verify(&NETWORK, VENUE).err(), OrderList::sign(&NETWORK, VENUE, SEED, list.entries, &key(1)).err())
    };
    let both = |fault| (Some(fault), Some(fault));
    assert_eq!(fault(Vec::clear), both(ListFault::Size(0)));
    assert_eq!(fault(|entries| *entries = self::entries(65)), both(ListFault::Size(65)));
    assert_eq!(fault(|entries| entries[1].order.lots = 0), both(ListFault::Order(1)));
    assert_eq!(fault(|entries| entries.swap(0, 1)), both(ListFault::Numbers(1)));
    assert_eq!(fault(|entries| entries[2].order.number = entries[1].order.number), both(ListFault::Numbers(2)));
}

/// All proofs that can be put together from the pieces of three lists, by one who knows all of them: an order verifies
/// where its key signed a list with it for this network and venue, and nowhere else.
#[test]
fn nothing_put_together_from_pieces_proves_more() {
    let lists = [(1, 3, 0), (1, 4, 20), (2, 3, 0)].map(|(by, count, first)| {
        let entries = (first..first + count).map(|at| ListEntry { order: order(at, 10), replaces: None }).collect();
        OrderList::sign(&NETWORK, VENUE, [first as u8; 32], entries, &key(by)).expect("plain")
    });
    let checked = lists.each_ref().map(|list| list.verify(&NETWORK, VENUE).expect("signed"));
    let listed: Vec<ListedSignature> =
        checked.iter().flat_map(|list| (0..list.salts.len()).map(|place| list.listed(place))).collect();
    let orders: Vec<VenueOrder> = lists.iter().flat_map(|list| list.entries.iter().map(|entry| entry.order)).collect();
    let has = |key: &PublicKey, order: &VenueOrder| {
        lists.iter().any(|list| list.key == *key && list.entries.iter().any(|entry| entry.order == *order))
    };
    // A scheme that cannot be forged: a signature is valid for the message that it was made for.
    let made = lists.each_ref().map(|list| {
        let header = list.header(VENUE, &list.tree(&list.salts()));
        (list.key, list.signature, header.signing_bytes(&NETWORK))
    });
    let mut tried = 0;
    for (of_salt, of_path) in listed.iter().flat_map(|one| listed.iter().map(move |other| (one, other))) {
        for (size, place) in (1..=5u8).flat_map(|size| (0..size).map(move |place| (size, place))) {
            if merkle::path_length(FAMILY, size.into(), place.into()) != Some(of_path.path.len()) {
                continue;
            }
            let proof = ListedSignature { salt: of_salt.salt, size, place, ..of_path.clone() };
            // Network and venue are in every header.
            for order in &orders {
                let message = proof.header(VENUE, order).signing_bytes(&NETWORK);
                for (key, ..) in made.iter().filter(|(.., signed)| *signed == message) {
                    assert!(has(key, order), "{order:?} by {key:?}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 5_000, "only {tried} were tried");
}

#[test]
fn what_is_filled_shows_nothing_of_what_rests() {
    let list = signed(2);
    let shown = list.verify(&NETWORK, VENUE).expect("signed").listed(0);
    let hidden = list.entries[1].order;
    // Who knows all fields of the order that rests cannot tell its leaf from another by the salts that are shown.
    for salt in [shown.salt, [0; 16]] {
        assert!(!shown.path.contains(&leaf(&salt, &hidden)));
    }
    let other = OrderList::sign(&NETWORK, VENUE, [10; 32], entries(2), &key(1)).expect("plain");
    assert_ne!(other.verify(&NETWORK, VENUE).expect("signed").listed(0).path, shown.path);
}
