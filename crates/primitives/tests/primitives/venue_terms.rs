//! When an action at a venue counts, and what its fills are worth.

use primitives::venue::{Delay, FillUnits, Horizon, MarketTerms, TICK_MAX, is_within_cap};
use primitives::{AssetId, MAX_ISSUED};
use proptest::prelude::*;

proptest! {
    /// The rule itself, over all times: past(r, h) holds if h > r + D and time(h) > time(r) + τ.
    #[test]
    fn a_horizon_says_what_is_past_by_heights_and_by_the_clock(
        steps in prop::collection::vec(prop_oneof![3 => 1..4u64, 1 => 1..40u64], 1..60),
        heights in 0..6u64,
        ms in 0..30u64,
    ) {
        let delay = Delay { heights, ms };
        let (mut horizon, mut times) = (Horizon::new(delay, 0, 100), vec![100u64]);
        for step in steps {
            times.push(times[times.len() - 1] + step);
            prop_assert!(horizon.advance(times[times.len() - 1]));
            let now = times.len() as u64 - 1;
            let is_past = |at: u64| now > at + heights && times[now as usize] > times[at as usize] + ms;
            for at in 0..=now {
                prop_assert_eq!(horizon.is_past(at), is_past(at), "{} at {}", at, now);
            }
            prop_assert!(!horizon.is_past(now + 1) && !horizon.is_past(u64::MAX), "the future");
            prop_assert_eq!(horizon.height(), now);
            // A restored horizon is the same one, before, at and after every end of a delay.
            let bytes = borsh::to_vec(&horizon).expect("encodes");
            prop_assert_eq!(borsh::from_slice::<Horizon>(&bytes).expect("sound"), horizon.clone());
        }
    }

    /// What is past stays past, and no more heights are kept than the longer of both delays.
    #[test]
    fn a_horizon_only_rises_and_keeps_no_more_heights_than_the_longer_delay(
        steps in prop::collection::vec(1..5u64, 1..200), heights in 0..6u64, ms in 0..30u64,
    ) {
        let mut horizon = Horizon::new(Delay { heights, ms }, 7, 100);
        let (mut time, mut last) = (100, 7);
        for step in steps {
            time += step;
            prop_assert!(horizon.advance(time));
            prop_assert!(horizon.first_waiting() >= last);
            last = horizon.first_waiting();
            prop_assert!(horizon.height() - last <= heights.max(ms));
        }
    }

    /// Against the plain rule in wider numbers.
    #[test]
    fn fees_within_a_cap_are_those_of_the_plain_rule(quote: u64, more: u32, fees: i64, cap_ppm in 0..=1_000_000u32) {
        let (quote, fees) = (u128::from(quote) * u128::from(more), i128::from(fees));
        let most = quote / 1_000_000 * u128::from(cap_ppm) + quote % 1_000_000 * u128::from(cap_ppm) / 1_000_000;
        let is_within = fees <= 0 || fees as u128 <= most;
        prop_assert_eq!(is_within_cap(quote, fees, cap_ppm), is_within);
        if let Some(product) = quote.checked_mul(cap_ppm.into()) {
            prop_assert_eq!(most, product / 1_000_000, "the sum of both parts is the floor of the whole");
        }
    }
}

#[test]
fn a_horizon_that_keeps_what_is_past_or_lacks_a_height_is_not_decoded() {
    let delay = Delay { heights: 1, ms: 5 };
    let encoded = |first: u64, times: &[u64]| borsh::to_vec(&(delay, first, times)).expect("encodes");
    for (first, times) in [(3, &[10u64, 12, 15][..]), (3, &[10, 17]), (3, &[10])] {
        assert!(borsh::from_slice::<Horizon>(&encoded(first, times)).is_ok(), "{times:?}");
    }
    for (first, times) in [(3, &[][..]), (3, &[10, 12, 16]), (3, &[10, 10]), (3, &[12, 10]), (u64::MAX, &[10u64, 11])] {
        assert!(borsh::from_slice::<Horizon>(&encoded(first, times)).is_err(), "{times:?}");
    }
}

#[test]
fn a_horizon_refuses_a_time_that_does_not_rise() {
    let mut horizon = Horizon::new(Delay { heights: 1, ms: 5 }, 3, 10);
    let before = horizon.clone();
    assert!(!horizon.advance(10) && !horizon.advance(9));
    assert_eq!(horizon, before);
    let mut last = Horizon::new(Delay { heights: u64::MAX, ms: u64::MAX }, u64::MAX, 10);
    assert!(!last.advance(11), "there is no further height");
}

fn terms() -> MarketTerms {
    let (base, quote) = (AssetId(1), AssetId(0));
    MarketTerms { base, quote, lot_units: 100, tick_units: 3, lots_max: 1_000, fee_cap_ppm: 500, penalty: 7 }
}

#[test]
fn a_fill_moves_lots_and_ticks_in_units_and_never_more_than_can_exist() {
    let terms = terms();
    assert_eq!(terms.units(5, 11), Some(FillUnits { base: 500, quote: 165 }));
    assert_eq!(terms.penalty_of(5), Some(35));
    let large = MarketTerms { lot_units: MAX_ISSUED, tick_units: MAX_ISSUED, penalty: MAX_ISSUED, ..terms };
    assert_eq!(large.units(1, 1), Some(FillUnits { base: MAX_ISSUED, quote: MAX_ISSUED }));
    assert_eq!((large.units(2, 1), large.units(1, 2), large.penalty_of(2)), (None, None, None));
    assert_eq!(large.units(u32::MAX, TICK_MAX), None, "checked at the limits");
}

#[test]
fn a_market_that_cannot_be_is_named() {
    type Spoil = fn(&mut MarketTerms);
    assert!(terms().is_sound(7));
    let spoils: [Spoil; 8] = [
        |terms| terms.quote = terms.base,
        |terms| terms.lot_units = 0,
        |terms| terms.tick_units = 0,
        |terms| terms.tick_units = MAX_ISSUED + 1,
        |terms| terms.lots_max = 0,
        |terms| terms.lot_units = MAX_ISSUED / 999,
        |terms| terms.fee_cap_ppm = 1_000_001,
        |terms| terms.penalty = 6,
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let mut spoilt = terms();
        spoil(&mut spoilt);
        assert!(!spoilt.is_sound(7), "{number}");
    }
}

#[test]
fn a_thousand_fills_of_one_lot_pay_no_more_fees_than_one_fill_of_a_thousand() {
    // Five units a fill, a cap of a thousandth: one unit a fill, rounded up, would be a thousand units.
    let (mut quote, mut fees, mut paid) = (0u128, 0i128, 0);
    for _ in 0..1_000 {
        quote += 5;
        if is_within_cap(quote, fees + 1, 1_000) {
            fees += 1;
            paid += 1;
        }
    }
    assert_eq!((paid, is_within_cap(5_000, 5, 1_000), is_within_cap(5_000, 6, 1_000)), (5, true, false));
}
