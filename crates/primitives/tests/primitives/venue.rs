//! Formats of continuous markets: what a settle's bytes alone show, the tree of fills, and reports that convict.

use primitives::venue::{
    FillReport, FillTree, OrderLife, OrderNumber, OrderSignature, PathFault, SelfTradeRule, Settle, SettleFault,
    SettledFill, SettledOrder, SignedOrder, SignedReport, SignedStep, TICK_MAX, VenueOrder, VenueSide,
    possession_bytes,
};
use primitives::{Address, Digest, SecretKey};
use proptest::prelude::*;

const NETWORK: Digest = Digest([0x4e; 32]);
const VENUE: u32 = 3;
const BYTES: usize = 1 << 16;

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn number(reference: u32) -> OrderNumber {
    OrderNumber { incarnation: 1, day: 2, reference }
}

fn order(side: VenueSide, life: OrderLife, lots: u32) -> VenueOrder {
    VenueOrder {
        market: 5,
        number: number(9),
        floor: number(4),
        side,
        life,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 1_000,
        lots,
        expiry: 77,
        until_ms: Some(1_800_000_000_000),
        fee_cap_ppm: 500,
    }
}

fn signed(seed: u8, order: VenueOrder) -> SettledOrder {
    SignedOrder::sign(&NETWORK, VENUE, &key(seed), order).into()
}

fn fill(buy: u16, sell: u16, lots: u32) -> SettledFill {
    SettledFill { buy, sell, lots, tick: 1_000, fee_buy: 3, fee_sell: -1, taker: VenueSide::Buy }
}

/// A buyer that takes from two sellers; orders are sorted by key.
fn settle(life: OrderLife) -> Settle {
    let mut orders = vec![
        signed(1, order(VenueSide::Buy, life, 7)),
        signed(2, order(VenueSide::Sell, OrderLife::Rests, 3)),
        signed(3, order(VenueSide::Sell, OrderLife::PostOnly, 8)),
    ];
    orders.sort_by_key(|order| (order.key, order.order.number));
    let at = |seed: u8| orders.iter().position(|order| order.key == key(seed).public()).expect("there") as u16;
    let fills = vec![fill(at(1), at(2), 3), fill(at(1), at(3), 4)];
    Settle { venue: VENUE, incarnation: 1, from: 12, orders, fills }
}

fn buyer(settle: &Settle) -> usize {
    usize::from(settle.fills[0].buy)
}

#[test]
fn the_length_of_a_settle_is_that_of_its_encoding() {
    let mut one = settle(OrderLife::Rests);
    let check = |one: &Settle| assert_eq!(one.encoded_len(), borsh::to_vec(one).expect("memory").len());
    check(&one);
    one.orders[0].signature = OrderSignature::Entered;
    check(&one);
    one.orders[1].order.until_ms = Some(7);
    check(&one);
    let digest = one.orders[1].order.digest(&NETWORK, VENUE, &one.orders[1].key);
    assert_ne!(digest, settle(OrderLife::Rests).orders[1].order.digest(&NETWORK, VENUE, &one.orders[1].key));
    one.fills.clear();
    check(&one);
}

#[test]
fn a_sound_settle_passes_its_check_and_its_signatures_hold_for_this_network_and_venue_only() {
    for life in [OrderLife::Rests, OrderLife::ImmediateOrCancel, OrderLife::FillOrKill] {
        let sound = settle(life);
        assert_eq!((sound.check(BYTES), sound.verify(&NETWORK), sound.signatures()), (Ok(()), Ok(()), 3));
        assert!(sound.verify(&Digest([1; 32])).is_err());
        assert!(Settle { venue: VENUE + 1, ..sound.clone() }.verify(&NETWORK).is_err());
        let bytes = borsh::to_vec(&sound).expect("encodes");
        assert_eq!(borsh::from_slice::<Settle>(&bytes).expect("decodes"), sound);
        assert_eq!(sound.check(bytes.len() - 1), Err(SettleFault::TooLong(bytes.len() - 1)));
        assert_eq!(sound.check(bytes.len()), Ok(()));
    }
    let mut without = settle(OrderLife::Rests);
    without.orders.iter_mut().for_each(|order| order.signature = OrderSignature::Entered);
    assert_eq!((without.verify(&NETWORK), without.signatures()), (Ok(()), 0), "absent signatures are judged by state");
}

type Spoil = fn(&mut Settle);
type Names = fn(&SettleFault) -> bool;

#[test]
fn each_fault_of_a_settles_bytes_is_named() {
    let faults: [(Spoil, Names); 17] = [
        (|s| s.fills.clear(), |f| matches!(f, SettleFault::Empty)),
        (|s| s.from = u64::MAX - 1, |f| matches!(f, SettleFault::From)),
        (|s| s.orders[1].order.tick = 0, |f| matches!(f, SettleFault::Order(1))),
        (|s| s.orders[1].order.tick = TICK_MAX + 1, |f| matches!(f, SettleFault::Order(1))),
        (|s| s.orders[2].order.lots = 0, |f| matches!(f, SettleFault::Order(2))),
        (|s| s.orders[0].order.fee_cap_ppm = 1_000_001, |f| matches!(f, SettleFault::Order(0))),
        (|s| s.orders[0].order.floor = number(10), |f| matches!(f, SettleFault::Order(0))),
        (|s| s.orders.swap(0, 1), |f| matches!(f, SettleFault::OrderOfOrders(1))),
        (|s| s.orders[1] = s.orders[0].clone(), |f| matches!(f, SettleFault::OrderOfOrders(1))),
        (|s| s.fills.truncate(1), |f| matches!(f, SettleFault::Unused(_))),
        (|s| s.fills[1].lots = 0, |f| matches!(f, SettleFault::Fill(1))),
        (|s| s.fills[1].tick = TICK_MAX + 1, |f| matches!(f, SettleFault::Fill(1))),
        (|s| s.fills.push(fill(3, 0, 1)), |f| matches!(f, SettleFault::Fill(2))),
        (|s| s.fills.push(fill(2, 2, 1)), |f| matches!(f, SettleFault::Fill(2))),
        (|s| s.fills[0].fee_sell = -4, |f| matches!(f, SettleFault::Fees(0))),
        (|s| (s.fills[0].fee_buy, s.fills[0].fee_sell) = (i64::MAX, 1), |f| matches!(f, SettleFault::Fees(0))),
        (|s| (s.fills[1].fee_buy, s.fills[1].fee_sell) = (i64::MIN, -1), |f| matches!(f, SettleFault::Fees(1))),
    ];
    for (number, (spoil, is_it)) in faults.into_iter().enumerate() {
        let mut spoilt = settle(OrderLife::Rests);
        spoil(&mut spoilt);
        let fault = spoilt.check(BYTES).expect_err("a fault");
        assert!(is_it(&fault), "{number}: {fault}");
    }
}

#[test]
fn a_fill_or_kill_order_is_one_group_of_all_its_lots_as_taker() {
    let spoils: [Spoil; 5] = [
        |s| s.fills[1].lots = 3,
        |s| s.fills[1].lots = 5,
        |s| s.fills[1].taker = VenueSide::Sell,
        // Another fill parts the group.
        |s| {
            let mut other = signed(1, VenueOrder { number: number(10), ..order(VenueSide::Buy, OrderLife::Rests, 1) });
            other.order.floor = number(0);
            let at = buyer(s) + 1;
            s.orders.insert(at, other);
            for fill in &mut s.fills {
                fill.sell += u16::from(usize::from(fill.sell) >= at);
            }
            let between = SettledFill { buy: at as u16, lots: 1, ..s.fills[1] };
            s.fills.insert(1, between);
        },
        // Too many fills: 65 of one lot each.
        |s| {
            let (buy, at) = (buyer(s), s.fills[0]);
            s.orders[buy].order.lots = 69;
            s.fills.splice(0..1, (0..65).map(|_| SettledFill { lots: 1, ..at }));
        },
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let mut spoilt = settle(OrderLife::FillOrKill);
        spoil(&mut spoilt);
        assert_eq!(spoilt.check(BYTES), Err(SettleFault::Group(buyer(&spoilt))), "{number}");
    }
}

#[test]
fn a_signature_that_is_wrong_is_named() {
    for at in 0..3 {
        let mut forged = settle(OrderLife::Rests);
        forged.orders[at].order.lots += 1;
        assert_eq!(forged.verify(&NETWORK), Err(SettleFault::Signature(at)));
        let mut alone = forged.clone();
        alone.orders.iter_mut().enumerate().for_each(|(other, order)| {
            if other != at {
                order.signature = OrderSignature::Entered;
            }
        });
        assert_eq!(alone.verify(&NETWORK), Err(SettleFault::Signature(at)), "positions of present ones are kept");
    }
}

#[test]
fn a_leaf_depends_on_orders_lots_tick_fees_and_taker_and_on_nothing_else() {
    let sound = settle(OrderLife::Rests);
    let leaves = sound.leaves(&NETWORK);
    let mut moved = Settle { from: 99, incarnation: 8, ..sound.clone() };
    moved.orders.iter_mut().for_each(|order| order.signature = OrderSignature::Entered);
    assert_eq!(moved.leaves(&NETWORK), leaves, "neither position nor signatures count");
    let spoils: [Spoil; 7] = [
        |s| s.fills[0].lots += 1,
        |s| s.fills[0].tick += 1,
        |s| s.fills[0].fee_buy += 1,
        |s| s.fills[0].fee_sell += 1,
        |s| s.fills[0].taker = VenueSide::Sell,
        |s| s.venue += 1,
        |s| s.orders[usize::from(s.fills[0].buy)].order.expiry += 1,
    ];
    for spoil in spoils {
        let mut other = sound.clone();
        spoil(&mut other);
        assert_ne!(other.leaves(&NETWORK)[0], leaves[0]);
    }
    assert_ne!(sound.leaves(&Digest([9; 32]))[0], leaves[0]);
}

fn leaf(number: u64) -> Digest {
    Digest::of("test", &number.to_le_bytes())
}

#[test]
fn a_path_proves_each_fill_of_a_tree_and_no_other() {
    let (mut tree, mut leaves) = (FillTree::default(), Vec::new());
    for count in 0..40 {
        assert_eq!(tree.count(), count);
        assert_eq!(FillTree::of(count, tree.peaks().to_vec()).as_ref(), Some(&tree));
        assert!(FillTree::of(count, [tree.peaks(), &[leaf(0)]].concat()).is_none());
        for index in 0..count {
            let path = FillTree::path(&leaves, index).expect("there");
            assert_eq!(tree.verify(index, &leaf(index), &path), Ok(()));
            assert_eq!(tree.verify(index, &leaf(index + 1), &path), Err(PathFault::OtherPeak));
            for other in (0..count).filter(|other| *other != index) {
                assert!(tree.verify(other, &leaf(index), &path).is_err(), "{index} at {other} of {count}");
            }
            let longer = [&path[..], &[leaf(1)]].concat();
            assert_eq!(tree.verify(index, &leaf(index), &longer), Err(PathFault::OtherPeak));
        }
        assert_eq!(tree.verify(count, &leaf(count), &[]), Err(PathFault::NoSuchIndex));
        assert!(FillTree::path(&leaves, count).is_none());
        assert!(tree.append(leaf(count)));
        leaves.push(leaf(count));
    }
    let full = FillTree::of(u64::MAX, vec![leaf(0); 64]).expect("as many peaks as bits");
    assert!(!full.clone().append(leaf(1)), "a full tree takes no leaf");
}

/// A node is no leaf: an inner digest shown as a leaf has too short a path.
#[test]
fn a_node_of_the_tree_is_not_accepted_as_a_fill() {
    let leaves: Vec<Digest> = (0..4).map(leaf).collect();
    let mut tree = FillTree::default();
    assert!(leaves.iter().all(|leaf| tree.append(*leaf)));
    let path = FillTree::path(&leaves, 0).expect("there");
    let inner = primitives::venue::verify_leaf(0, &leaves[0], &path[..1]);
    assert!(tree.verify(0, &inner, &path[1..]).is_err());
}

#[test]
fn a_report_is_signed_for_one_place_and_convicts_by_another_leaf() {
    let (operator, account) = (key(50), Address([7; 20]));
    let report = FillReport::new(&NETWORK, (VENUE, 1, 2), leaf(2), account, &operator);
    assert!(report.is_signed(&NETWORK) && !report.is_signed(&Digest([1; 32])));
    let spoils: [fn(&mut FillReport); 6] = [
        |r| r.venue += 1,
        |r| r.incarnation += 1,
        |r| r.index += 1,
        |r| r.leaf = leaf(3),
        |r| r.account = Address([8; 20]),
        |r| r.key = key(51).public(),
    ];
    for spoil in spoils {
        let mut other = report;
        spoil(&mut other);
        assert!(!other.is_signed(&NETWORK));
    }
    let leaves: Vec<Digest> = (0..5).map(leaf).collect();
    let mut tree = FillTree::default();
    assert!(leaves.iter().all(|leaf| tree.append(*leaf)));
    let path = FillTree::path(&leaves, 2).expect("there");
    assert_eq!(report.is_contradicted(&tree, &leaf(2), &path), Ok(false));
    assert!(report.is_contradicted(&tree, &leaf(9), &path).is_err(), "a leaf that is not proved");
    let lie = FillReport::new(&NETWORK, (VENUE, 1, 2), leaf(9), account, &operator);
    assert_eq!(lie.is_contradicted(&tree, &leaf(2), &path), Ok(true));
    assert!(report.contradicts(&lie) && !report.contradicts(&report));
    let elsewhere = FillReport::new(&NETWORK, (VENUE, 2, 2), leaf(9), account, &operator);
    assert!(!report.contradicts(&elsewhere));
}

#[test]
fn what_is_signed_for_one_purpose_of_a_venue_is_nothing_for_another() {
    let (key, account) = (key(1).public(), Address([7; 20]));
    let order = order(VenueSide::Buy, OrderLife::Rests, 1).signing_bytes(&NETWORK, VENUE);
    let report = FillReport::new(&NETWORK, (VENUE, 1, 2), leaf(2), account, &SecretKey::from_seed([1; 32]));
    let leaves = [(2, leaf(2), account)];
    let step = SignedStep::new(&NETWORK, (VENUE, 1), (2, 3), &leaves, &SecretKey::from_seed([1; 32]));
    let possession = possession_bytes(&NETWORK, VENUE, &account, &key);
    let all = [order, report.signing_bytes(&NETWORK), possession, step.header().signing_bytes(&NETWORK)];
    for (at, one) in all.iter().enumerate() {
        let tag = one.iter().position(|byte| *byte == 0).expect("a tag ends with zero");
        assert!(all.iter().enumerate().all(|(other, bytes)| other == at || !bytes.starts_with(&one[..=tag])));
    }
}

proptest! {
    /// Bytes that decode encode to themselves, and no bytes make the check panic.
    #[test]
    fn any_bytes_of_a_settle_are_refused_or_canonical(at in 0..2_000usize, with: u8, cut in 0..2_000usize) {
        let mut bytes = borsh::to_vec(&settle(OrderLife::FillOrKill)).expect("encodes");
        let at = at % bytes.len();
        bytes[at] = with;
        bytes.truncate(bytes.len().max(cut + 1) - if cut < 100 { cut } else { 0 });
        if let Ok(decoded) = borsh::from_slice::<Settle>(&bytes) {
            prop_assert_eq!(borsh::to_vec(&decoded).expect("encodes"), bytes);
            if decoded.check(BYTES).is_ok() {
                prop_assert_eq!(decoded.leaves(&NETWORK).len(), decoded.fills.len());
                let _ = decoded.verify(&NETWORK);
            }
        }
    }
}
