//! The codec of attached clearings, and how a ledger handles any that decodes.

use clearing::workload::hostile::{Hostile, within_minimum};
use clearing::{Params, clear};
use ledger::{
    Attached, AttachedTrade, AttachedViolation, ExactReason, ExactTrade, Fault, Genesis, Ledger, Listing, Outcome,
    Pair, Place, PoolFill, Signatures,
};
use primitives::{
    Address, AssetId, Body, ClientId, ExactSide, Fraction, Operation, PoolKey, Price, PublicKey, Signature, SubBlock,
    Superblock, Transaction,
};
use proptest::prelude::*;

fn price() -> impl Strategy<Value = Price> {
    let near = (0.5..2.0f64).prop_map(|price| Price::from_f64(price).expect("in range"));
    let any = any::<u64>().prop_filter_map("no price", |bits| Price::from_bits(bits).ok());
    prop_oneof![4 => near, 1 => any]
}

fn trade() -> impl Strategy<Value = AttachedTrade> {
    let place = (price(), 0..4u8, any::<u64>());
    ((0..4u32, 0..4u32), any::<u64>(), place).prop_map(|((sell, buy), sold, (limit, account, id))| AttachedTrade {
        pair: Pair { sell: AssetId(sell), buy: AssetId(buy) },
        sold,
        marginal: Place { limit, account: Address([account; 20]), id },
    })
}

fn attached() -> impl Strategy<Value = Attached> {
    let (valuations, trades) = (prop::collection::vec(price(), 0..5), prop::collection::vec(trade(), 0..4));
    let short = prop::collection::vec((0..4u32).prop_map(AssetId), 0..3);
    let pool = (0..4u32, 0..4u32, 0..2u8).prop_map(|(a, b, class)| PoolKey { a: AssetId(a), b: AssetId(b), class });
    let fill = (pool, any::<bool>(), any::<u64>(), any::<u64>()).prop_map(|(pool, sells_a, sold, bought)| PoolFill {
        pool,
        sells_a,
        sold,
        bought,
    });
    let pools = prop::collection::vec(fill, 0..2);
    let side = any::<bool>().prop_map(|buys| if buys { ExactSide::Buy } else { ExactSide::Sell });
    let exact = ((0..4u32, 0..4u32), side, 0..4u8, 0..4u64, any::<(u64, u64)>());
    let exact = exact.prop_map(|((sell, buy), side, account, id, (sold, bought))| ExactTrade {
        pair: Pair { sell: AssetId(sell), buy: AssetId(buy) },
        side,
        account: Address([account; 20]),
        id,
        sold,
        bought,
    });
    let exacts = prop::collection::vec(exact, 0..2);
    (valuations, trades, pools, exacts, short).prop_map(|(valuations, trades, pools, exacts, short)| Attached {
        valuations,
        trades,
        pools,
        exacts,
        short,
    })
}

fn bytes(attached: &Attached) -> Vec<u8> {
    borsh::to_vec(attached).expect("writing to memory")
}

/// Three people with offers that meet.
fn scene() -> (Ledger, Superblock) {
    let key = |person: u8| PublicKey([person; 32]);
    let assets = (0..3).map(|asset| Listing::new(format!("A{asset}"), 2, key(9).address())).collect();
    let balances =
        (0..3).flat_map(|p| (0..3).map(move |asset| (key(p).address(), AssetId(asset), 1_000_000))).collect();
    let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
    let ledger =
        Ledger::new(&Genesis { chain: 1, fee: 0, epsilon, mu, assets, balances, ..Genesis::default() }).expect("sound");
    let offer = |person: u8, sequence: u64, sell: u32, buy: u32| {
        let limit = Price::from_f64(0.9 + sequence as f64 / 100.0).expect("in range");
        let operation = Operation::offer(AssetId(sell), AssetId(buy), 5_000 * sequence, limit);
        let body = Body { chain: 1, account: key(person).address(), sequence, until: 50_000, operation };
        Transaction::by_key(body, key(person), Signature([0; 64]))
    };
    let all = (0..3u8).flat_map(|person| (1..10).map(move |sequence| (person, sequence)));
    let native = all.map(|(person, sequence)| offer(person, sequence, u32::from(person), u32::from(person + 1) % 3));
    let sub_blocks = vec![SubBlock { native: native.collect(), ..SubBlock::default() }];
    let block = Superblock { height: 1, parent: ledger.last_block(), sub_blocks, ..Superblock::default() };
    (ledger, block)
}

proptest! {
    #[test]
    fn what_is_written_is_read(attached in attached()) {
        let written = bytes(&attached);
        prop_assert_eq!(borsh::from_slice::<Attached>(&written).expect("decodes"), attached);
        for cut in 0..written.len() {
            prop_assert!(borsh::from_slice::<Attached>(&written[..cut]).is_err());
        }
    }

    /// One value, one encoding: anything that decodes encodes back to the same bytes.
    #[test]
    fn what_decodes_is_canonical(attached in attached(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut written = bytes(&attached);
        let at = at.index(written.len());
        written[at] = byte;
        if let Ok(read) = borsh::from_slice::<Attached>(&written) {
            prop_assert_eq!(bytes(&read), written);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_canonical(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(read) = borsh::from_slice::<Attached>(&noise) {
            prop_assert_eq!(bytes(&read), noise);
        }
    }

    /// No attached clearing makes the ledger panic, or changes it when it refuses.
    #[test]
    fn any_clearing_is_refused_or_true(claim in attached(), tweak in prop::option::of((0..6usize, any::<u64>()))) {
        let (mut ledger, block) = scene();
        let mut claim = claim;
        if let Some((which, noise)) = tweak {
            let truth = ledger.clone().apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
            claim = Attached::of(&truth.batch);
            let trades = claim.trades.len();
            if let Some(trade) = claim.trades.get_mut(which % trades.max(1)) {
                match noise % 3 {
                    0 => trade.sold = noise,
                    1 => trade.marginal.id = noise,
                    _ => trade.pair.sell = AssetId((noise >> 2) as u32),
                }
            }
        }
        match ledger.apply_attached(&block, &claim, Signatures::Valid, &mut |_| {}) {
            Ok(_) => prop_assert!(ledger.audit().is_ok()),
            Err(Fault::Attached { .. }) => prop_assert_eq!((ledger.height(), ledger.book().len()), (0, 0)),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn a_large_count_allocates_little() {
    let mut claim = vec![0xff, 0xff, 0xff, 0x7f];
    claim.extend([0; 32]);
    assert!(borsh::from_slice::<Attached>(&claim).is_err());
}

/// A liquid pair of assets 0 and 1, and beside it a market of assets that no units clear in full.
fn two_groups() -> (Ledger, Superblock) {
    let (least, params) =
        (2_048, Params { epsilon: Fraction::ZERO, mu: Fraction::power_of_two(10), ..Params::default() });
    let is_short = |hostile: &Hostile| {
        let sorted = hostile.sorted();
        let is_small = hostile.offers.iter().all(|offer| offer.amount < 1 << 50);
        is_small && !clear(&sorted.book(), &params, None).expect("proper").full
    };
    let mut seeds = (0..).map(|seed| within_minimum(seed, 5, 40, least));
    let Hostile { assets: foreign, offers, .. } = seeds.find(is_short).expect("some are not full");
    let key = |person: u8| PublicKey([person; 32]);
    let assets: Vec<Listing> = (0..foreign + 2)
        .map(|asset| Listing { least_units: least, ..Listing::new(format!("A{asset}"), 2, key(9).address()) })
        .collect();
    let mut balances = Vec::new();
    let mut native = Vec::new();
    let moved = |asset: AssetId| AssetId(asset.0 + 2);
    let pair = (1..30u64).map(|at| {
        let (sell, limit) = (AssetId(at as u32 % 2), Price::from_f64(0.9 + at as f64 / 200.0).expect("in range"));
        (sell, AssetId(1 - sell.0), 5_000 * at, limit)
    });
    let foreign = offers.iter().map(|offer| (moved(offer.sell), moved(offer.buy), offer.amount, offer.limit));
    for (number, (sell, buy, amount, limit)) in pair.chain(foreign).enumerate() {
        let signer = key(10 + number as u8);
        balances.push((signer.address(), sell, amount));
        let operation = Operation::offer(sell, buy, amount, limit);
        let body = Body { chain: 1, account: signer.address(), sequence: 1, until: 50_000, operation };
        native.push(Transaction::by_key(body, signer, Signature([0; 64])));
    }
    let holder = key(200).address();
    balances.extend((0..assets.len() as u32).map(|asset| (holder, AssetId(asset), 1 << 50)));
    let mu = params.mu;
    let ledger = Ledger::new(&Genesis { chain: 1, mu, assets, balances, ..Genesis::default() }).expect("sound");
    let block = Superblock {
        height: 1,
        parent: ledger.last_block(),
        sub_blocks: vec![SubBlock { native, ..SubBlock::default() }],
        ..Superblock::default()
    };
    (ledger, block)
}

/// An exact order of the full group is filled, and of those of the other one none is, whatever they pay.
#[test]
fn a_foreign_group_that_is_not_full_costs_no_order_its_fill() {
    let (ledger, mut block) = two_groups();
    let plain = ledger.clone().apply(&block, Signatures::Valid, &mut |_| {}).expect("applies").batch;
    let key = PublicKey([200; 32]);
    let mut sequence = 0;
    let mut order = |sell, buy, units| {
        sequence += 1;
        let (side, bound, client) = (ExactSide::Buy, 1 << 44, ClientId::NONE);
        let operation = Operation::Exact { sell, buy, side, units, bound, client };
        let body = Body { chain: 1, account: key.address(), sequence, until: 50_000, operation };
        block.sub_blocks[0].native.push(Transaction::by_key(body, key, Signature([0; 64])));
    };
    (0..2).for_each(|buy| order(AssetId(1 - buy), AssetId(buy), 2_048));
    let foreign = (2..ledger.assets().len() as u32).flat_map(|a| (2..a).flat_map(move |b| [(a, b), (b, a)]));
    foreign.for_each(|(sell, buy)| order(AssetId(sell), AssetId(buy), 2_048));
    let applied = ledger.clone().apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    assert_eq!((&applied.batch.valuations, &applied.batch.short), (&plain.valuations, &plain.short));
    let exacts: Vec<_> = applied
        .outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Exact(exact) => Some(exact.why),
            _ => None,
        })
        .collect();
    let (own, foreign) = exacts.split_at(2);
    assert!(own.contains(&ExactReason::Filled), "{own:?}");
    assert!(foreign.contains(&ExactReason::GroupNotFull) && !foreign.contains(&ExactReason::Filled), "{foreign:?}");
    let truth = Attached::of(&applied.batch);
    let followed = ledger.clone().apply_attached(&block, &truth, Signatures::Valid, &mut |_| {}).expect("holds");
    assert_eq!(followed.outcomes, applied.outcomes);
    // A claim that fills one of them.
    let request = block.sub_blocks[0].native.iter().zip(&applied.outcomes);
    let mut unfilled = request
        .filter(|(_, outcome)| matches!(outcome, Outcome::Exact(exact) if exact.why == ExactReason::GroupNotFull));
    let body = &unfilled.next().expect("one").0.body;
    let Operation::Exact { sell, buy, side, units, bound, .. } = body.operation else { panic!("{body:?}") };
    let mut claim = truth.clone();
    let pair = Pair { sell, buy };
    claim.exacts.push(ExactTrade { pair, side, account: body.account, id: body.sequence, sold: bound, bought: units });
    match ledger.clone().apply_attached(&block, &claim, Signatures::Valid, &mut |_| {}) {
        Err(Fault::Attached { violation: AttachedViolation::Exact { id, .. }, .. }) => assert_eq!(id, body.sequence),
        other => panic!("{other:?}"),
    }
}

/// A group that is not full excuses no other one: that one's claim is checked by itself, and only the short one is
/// solved again.
#[test]
fn each_group_answers_for_its_own_fullness() {
    let (ledger, block) = two_groups();
    let batch = ledger.clone().apply(&block, Signatures::Valid, &mut |_| {}).expect("applies").batch;
    assert!(!batch.short.is_empty() && !batch.short.contains(&AssetId(0)), "{:?}", batch.short);
    let truth = Attached::of(&batch);
    let applied = |claim: &Attached| ledger.clone().apply_attached(&block, claim, Signatures::Valid, &mut |_| {});
    assert_eq!(applied(&truth).expect("holds").batch, batch);
    let refused = |claim: &Attached| match applied(claim) {
        Err(Fault::Attached { violation, .. }) => violation,
        other => panic!("{other:?}"),
    };
    let mut idle = truth.clone();
    idle.trades.retain(|trade| trade.pair.sell > AssetId(1));
    assert!(matches!(refused(&idle), AttachedViolation::NotFull { pair, .. } if pair.sell <= AssetId(1)));
    let mut excused = idle.clone();
    excused.short.insert(0, AssetId(0));
    assert_eq!(refused(&excused), AttachedViolation::NotTheBest);
    let mut short = truth.clone();
    short.trades.retain(|trade| trade.pair.sell <= AssetId(1));
    let foreign_trades = short.trades.len() < truth.trades.len();
    assert!(!foreign_trades || refused(&short) == AttachedViolation::NotTheBest);
    for wrong in [vec![], vec![AssetId(1)], vec![truth.short[0]; 2], vec![AssetId(u32::MAX)]] {
        refused(&Attached { short: wrong, ..truth.clone() });
    }
}
