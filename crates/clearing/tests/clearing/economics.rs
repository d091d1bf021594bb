//! The guarantees of a batch for its traders: no arbitrage, and no gain from order, size or timing.
//!
//! Prices are approximate, so comparisons of two clearings hold up to a few times μ; comparisons of money with money
//! hold to the unit.

use clearing::workload::cycles;
use clearing::{Clearing, Offer, Params, Rate, SortedOffers, Verified, clear, verify};
use kernel::Dice;
use primitives::{AssetId, Fraction, MAX_ISSUED, Price};
use proptest::prelude::*;

const ASSETS: u32 = 6;

/// A cleared market: what each row gives and receives, and the rest.
struct Cleared {
    params: Params,
    clearing: Clearing,
    verified: Verified,
    /// By row: units sold and units bought.
    fills: Vec<(u64, u64)>,
}

fn cleared_with(params: Params, offers: &[Offer]) -> Cleared {
    let sorted = SortedOffers::new(ASSETS, offers);
    let book = sorted.book();
    let clearing = clear(&book, &params, None).expect("a proper book");
    let verified = verify(&book, &params, &clearing).expect("a clearing verifies");
    let mut fills = vec![(0, 0); offers.len()];
    for (position, (pair, got)) in book.pairs.iter().zip(&verified.fills).enumerate() {
        let rate = rate(&params, &clearing, pair.sell, pair.buy);
        let rows = sorted.rows(position);
        got.each(pair, &rate).for_each(|(index, sold, bought)| fills[rows[index] as usize] = (sold, bought));
    }
    Cleared { params, clearing, verified, fills }
}

fn cleared(offers: &[Offer]) -> Cleared {
    let result = cleared_with(Params::default(), offers);
    assert!(result.clearing.full, "{:?}", result.clearing.report);
    result
}

fn rate(params: &Params, clearing: &Clearing, sell: AssetId, buy: AssetId) -> Rate {
    let value = |asset: AssetId| clearing.valuations[asset.0 as usize];
    Rate::new(value(sell), value(buy), params.epsilon, params.mu)
}

impl Cleared {
    /// p_sell / p_buy.
    fn price(&self, sell: u32, buy: u32) -> f64 {
        let value = |asset: u32| self.clearing.valuations[asset as usize].to_f64();
        value(sell) / value(buy)
    }

    /// The largest relative difference between its rates and those of `other`.
    fn distance(&self, other: &Cleared) -> f64 {
        let pairs = (0..ASSETS).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.map(|(a, b)| (self.price(a, b) / other.price(a, b) - 1.0).abs()).fold(0.0, f64::max)
    }

    fn mu(&self) -> f64 {
        self.params.mu.to_f64()
    }
}

/// `offers` in another order.
fn shuffled(offers: &[Offer], seed: u64) -> Vec<Offer> {
    let mut random = Dice::new(seed);
    let mut result = offers.to_vec();
    for last in (1..result.len()).rev() {
        result.swap(last, random.below(last as u64 + 1) as usize);
    }
    result
}

fn any_price() -> impl Strategy<Value = Price> {
    (10_000_000_000_000_000u64..100_000_000_000_000_000, -18i32..18)
        .prop_map(|(mantissa, decade)| Price::from_parts(mantissa, decade).expect("in range"))
}

fn any_epsilon() -> impl Strategy<Value = Fraction> {
    prop_oneof![Just(Fraction::ZERO), (5u32..33).prop_map(Fraction::power_of_two)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Around any cycle of assets, at any valuations, a trader never ends with more units than at the start.
    #[test]
    fn no_cycle_gains(
        values in prop::collection::vec(any_price(), 2..7),
        epsilon in any_epsilon(),
        start in prop_oneof![1..1_000u64, 1..MAX_ISSUED],
    ) {
        let mut held = Some(start);
        for at in 0..values.len() {
            let (sell, buy) = (values[at], values[(at + 1) % values.len()]);
            held = held.and_then(|held| Rate::new(sell, buy, epsilon, Params::default().mu).payout(held));
        }
        // An amount that cannot exist ends the tour.
        prop_assert!(held.is_none_or(|held| held <= start), "{start} became {held:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// No offer receives more than its units are worth at the valuations, whatever trades: so no set of trades is an
    /// arbitrage.
    #[test]
    fn every_fill_gives_at_least_its_worth(seed in any::<u64>(), epsilon in any_epsilon()) {
        let epsilon = if epsilon.to_f64() < 1e-3 { epsilon } else { Fraction::ZERO };
        let offers = cycles(ASSETS, 400, seed);
        let market = cleared_with(Params { epsilon, mu: Fraction::power_of_two(9), ..Params::default() }, &offers);
        let fair = Params { epsilon: Fraction::ZERO, ..market.params };
        for (offer, (sold, bought)) in offers.iter().zip(&market.fills) {
            prop_assert!(offer.limit.accepts(*sold, *bought));
            let worth = rate(&fair, &market.clearing, offer.sell, offer.buy).payout(*sold);
            prop_assert!(worth.is_none_or(|worth| *bought <= worth));
        }
    }

    /// The order in which offers arrive has no effect.
    #[test]
    fn shuffling_changes_nothing(seed in any::<u64>(), other in any::<u64>()) {
        let offers = cycles(ASSETS, 500, seed);
        let (one, two) = (cleared(&offers), cleared(&shuffled(&offers, other)));
        prop_assert_eq!(&one.clearing.valuations, &two.clearing.valuations);
        prop_assert_eq!(&one.clearing.trades, &two.clearing.trades);
        let by_offer = |offers: &[Offer], fills: &[(u64, u64)]| {
            let mut all: Vec<_> =
                offers.iter().zip(fills).map(|(o, fill)| (o.sell, o.buy, o.limit, o.amount, *fill)).collect();
            all.sort_unstable();
            all
        };
        prop_assert_eq!(by_offer(&offers, &one.fills), by_offer(&shuffled(&offers, other), &two.fills));
    }

    /// An offer cut into pieces is equivalent to the whole.
    #[test]
    fn splitting_changes_no_price(seed in any::<u64>(), row in 0usize..500, pieces in 2u64..40) {
        let offers = cycles(ASSETS, 500, seed);
        let whole = offers[row];
        let piece = Offer { amount: whole.amount / pieces, ..whole };
        let mut split = offers.clone();
        split[row] = piece;
        split.extend((2..pieces).map(|_| piece));
        split.push(Offer { amount: whole.amount - (pieces - 1) * piece.amount, ..whole });
        let (one, two) = (cleared(&offers), cleared(&split));
        prop_assert!(one.distance(&two) <= 2.0 * one.mu(), "prices moved by {}", one.distance(&two));
        let pieces = two.fills[row].0 + two.fills[500..].iter().map(|fill| fill.0).sum::<u64>();
        let all = whole.amount as f64;
        // If the limit is not near the rate, the same amount of it trades.
        let near = (whole.limit.to_f64() / one.price(whole.sell.0, whole.buy.0) - 1.0).abs() < 4.0 * one.mu();
        prop_assert!(near || (pieces as f64 - one.fills[row].0 as f64).abs() <= 1e-6 * all);
    }

    /// One more offer of A for B never makes A dearer in B.
    #[test]
    fn an_offer_does_not_better_its_own_side(seed in any::<u64>(), size in 1u64..100, low in any::<bool>()) {
        let offers = cycles(ASSETS, 500, seed);
        let before = cleared(&offers);
        let mut more = offers.clone();
        let like = offers[7];
        // It asks for almost nothing, so that it trades, or for a little more than the previous rate.
        let limit = before.price(like.sell.0, like.buy.0) * if low { 0.5 } else { 1.001 };
        let limit = Price::from_f64(limit).expect("a price");
        more.push(Offer { amount: like.amount * size, limit, ..like });
        let after = cleared(&more);
        let (was, is) = (before.price(like.sell.0, like.buy.0), after.price(like.sell.0, like.buy.0));
        prop_assert!(is <= was * (1.0 + 2.0 * before.mu()), "{was} rose to {is}");
    }

    /// A trader on both sides of a victim in the same batch gains nothing: more of one asset only for less of the
    /// other, and no higher value at the batch's valuations. The victim's limit holds.
    #[test]
    fn a_sandwich_gains_nothing(seed in any::<u64>(), size in 1u64..50, back in 1u64..50, greed in 0.9f64..1.1) {
        let mut offers = cycles(ASSETS, 500, seed);
        let victim = offers[11];
        let fair = cleared(&offers).price(victim.sell.0, victim.buy.0);
        let limit = |price: f64| Price::from_f64(price).expect("a price");
        // The attacker sells what the victim sells, and buys it back.
        offers.push(Offer { amount: victim.amount * size, limit: limit(fair * greed), ..victim });
        offers.push(Offer {
            sell: victim.buy,
            buy: victim.sell,
            amount: ((victim.amount * back) as f64 * fair) as u64,
            limit: limit(0.9 / fair),
        });
        let market = cleared(&offers);
        let [(sold, bought), (returned, regained)] = [market.fills[500], market.fills[501]];
        let (of_sold, of_bought) = (i128::from(regained) - i128::from(sold), i128::from(bought) - i128::from(returned));
        prop_assert!(of_sold <= 0 || of_bought <= 0, "gained {of_sold} and {of_bought}");
        let worth = of_sold as f64 * market.price(victim.sell.0, victim.buy.0) + of_bought as f64;
        prop_assert!(worth <= 1e-12 * (bought as f64 + returned as f64), "gained {worth}");
        prop_assert!(victim.limit.accepts(market.fills[11].0, market.fills[11].1));
    }

    /// Without commission the auctioneer keeps only rounding remainders: less than a unit per fill.
    #[test]
    fn without_commission_only_rounding_is_kept(seed in any::<u64>()) {
        let offers = cycles(ASSETS, 500, seed);
        let market = cleared_with(Params { epsilon: Fraction::ZERO, ..Params::default() }, &offers);
        prop_assert!(market.clearing.full, "{:?}", market.clearing.report);
        let value = |asset: usize| market.clearing.valuations[asset].to_f64();
        let kept: f64 = market.verified.surplus.iter().enumerate().map(|(a, kept)| value(a) * *kept as f64).sum();
        let mut rounding = 0.0;
        for (offer, (sold, bought)) in offers.iter().zip(&market.fills).filter(|(_, fill)| fill.0 > 0) {
            let exact = rate(&market.params, &market.clearing, offer.sell, offer.buy).payout(*sold);
            prop_assert_eq!(exact, Some(*bought));
            rounding += value(offer.buy.0 as usize);
        }
        prop_assert!(kept <= rounding, "kept {kept}, rounded away {rounding}");
    }
}
