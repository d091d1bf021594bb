//! Settles with orders of lists: what counts as one signature, and what is refused before any is verified.

use primitives::venue::{
    LIST_ORDERS_MAX, ListEntry, ORDER_LISTS_RULES, OrderLife, OrderList, OrderNumber, OrderSignature, SelfTradeRule,
    Settle, SettleFault, SettledFill, SettledOrder, SignedOrder, VenueOperation, VenueOrder, VenueSide,
};
use primitives::{Address, Digest, SecretKey};

const NETWORK: Digest = Digest([7; 32]);
const VENUE: u32 = 3;
const BYTES: usize = 1 << 20;

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn order(side: VenueSide, reference: u32) -> VenueOrder {
    let number = |reference| OrderNumber { incarnation: 1, day: 4, reference };
    VenueOrder {
        market: 0,
        number: number(reference),
        floor: number(0),
        side,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 1_000,
        lots: 5,
        expiry: 77,
        until_ms: None,
        fee_cap_ppm: 500,
    }
}

/// The first orders of a list of so many, as a settle has them.
fn listed(seed: u8, references: std::ops::Range<u32>, shown: usize) -> Vec<SettledOrder> {
    let entries = references.map(|at| ListEntry { order: order(VenueSide::Sell, at), replaces: None }).collect();
    let list = OrderList::sign(&NETWORK, VENUE, [seed ^ 0x5a; 32], entries, &key(seed)).expect("plain");
    let checked = list.verify(&NETWORK, VENUE).expect("signed");
    let of = |place: usize| SettledOrder {
        key: list.key,
        order: list.entries[place].order,
        signature: OrderSignature::Listed(Box::new(checked.listed(place))),
    };
    (0..shown).map(of).collect()
}

/// One order that buys a lot of each of these.
fn settle(sells: Vec<SettledOrder>) -> Settle {
    let buy = SettledOrder::from(SignedOrder::sign(&NETWORK, VENUE, &key(9), order(VenueSide::Buy, 1)));
    let name = |order: &SettledOrder| (order.key, order.order.number);
    let mut orders: Vec<SettledOrder> = sells.into_iter().chain([buy]).collect();
    orders.sort_by_key(name);
    let buy = orders.iter().position(|order| order.order.side == VenueSide::Buy).expect("there");
    let fill = |sell: usize| SettledFill {
        buy: buy as u16,
        sell: sell as u16,
        lots: 1,
        tick: 1_000,
        fee_buy: 0,
        fee_sell: 0,
        taker: VenueSide::Buy,
    };
    let fills = (0..orders.len()).filter(|at| *at != buy).map(fill).collect();
    Settle { venue: VENUE, incarnation: 1, from: 0, orders, fills }
}

fn carried(settle: &Settle) -> usize {
    VenueOperation::Settle(settle.clone()).carried(&NETWORK, &Address([0; 20])).len()
}

#[test]
fn a_lists_signature_counts_and_is_verified_once_whatever_it_fills() {
    for (size, shown) in [(1, 1), (2, 1), (5, 5), (LIST_ORDERS_MAX as u32, LIST_ORDERS_MAX)] {
        let sound = settle(listed(1, 0..size, shown));
        assert_eq!((sound.check(BYTES), sound.verify(&NETWORK)), (Ok(()), Ok(())), "{shown} of {size}");
        assert_eq!((sound.signatures(), carried(&sound)), (2, 2));
        let bytes = borsh::to_vec(&sound).expect("memory");
        assert_eq!(
            (bytes.len(), borsh::from_slice::<Settle>(&bytes).expect("it is read")),
            (sound.encoded_len(), sound)
        );
    }
    let two = settle([listed(1, 0..4, 3), listed(1, 10..14, 2), listed(2, 0..4, 1)].concat());
    assert_eq!((two.check(BYTES), two.verify(&NETWORK), two.signatures(), carried(&two)), (Ok(()), Ok(()), 4, 4));
}

#[test]
fn orders_of_lists_wait_for_their_rules() {
    let since = |settle: Settle| VenueOperation::Settle(settle).since_rules();
    assert_eq!(since(settle(listed(1, 0..4, 1))), ORDER_LISTS_RULES);
    let mut entered = settle(listed(1, 0..4, 1));
    entered.orders.iter_mut().for_each(|order| order.signature = OrderSignature::Entered);
    assert_eq!(since(entered), 0, "without signatures it is what all rules have");
}

#[test]
fn a_signature_of_two_roots_is_refused_before_it_is_verified() {
    let mut sells = listed(1, 0..4, 3);
    sells[2].order.lots += 1;
    let forged = settle(sells);
    let fault = forged.check(BYTES);
    assert!(matches!(fault, Err(SettleFault::List(_))), "{fault:?}");
    assert!(!VenueOperation::Settle(forged).is_plain());
}

#[test]
fn what_a_list_lacks_is_forged_wherever_it_is_shown() {
    let mut changed = settle(listed(1, 0..4, 1));
    let at = changed.orders.iter().position(|order| !order.signature.is_own()).expect("listed");
    changed.orders[at].order.lots += 1;
    assert_eq!((changed.check(BYTES), changed.verify(&NETWORK)), (Ok(()), Err(SettleFault::Signature(at))));
    assert!(settle(listed(1, 0..4, 1)).verify(&Digest([8; 32])).is_err(), "another network");
    let elsewhere = Settle { venue: VENUE + 1, ..settle(listed(1, 0..4, 2)) };
    assert!(elsewhere.verify(&NETWORK).is_err(), "another venue");
}

/// A venue that shows a list of one trader under the key of another: the signature was seen, and is not of that key.
#[test]
fn a_signature_that_one_key_gave_is_verified_again_under_another() {
    let mine = listed(1, 0..4, 1);
    let theirs: Vec<SettledOrder> =
        listed(1, 0..4, 2).into_iter().skip(1).map(|order| SettledOrder { key: key(2).public(), ..order }).collect();
    let forged = settle([mine, theirs].concat());
    assert_eq!((forged.check(BYTES), forged.signatures()), (Ok(()), 3), "the same bytes under two keys are two");
    assert!(matches!(forged.verify(&NETWORK), Err(SettleFault::Signature(_))));
    assert_eq!(carried(&forged), 3);
}
