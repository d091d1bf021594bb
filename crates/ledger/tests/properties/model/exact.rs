//! The arithmetic of the model, in fractions of big integers, and which assets have prices.

use std::collections::BTreeSet;

use ledger::Pair;
use num_bigint::BigUint;
use primitives::{Amount, AssetId, Fraction, Price};

/// What some chain of pairs leads to from an asset, itself included.
fn reached(asset: u32, pairs: &[Pair]) -> BTreeSet<u32> {
    let mut reached: BTreeSet<u32> = BTreeSet::new();
    let mut last = [asset].into();
    while reached != last {
        reached = last;
        let next = pairs.iter().filter(|pair| reached.contains(&pair.sell.0)).map(|pair| pair.buy.0);
        last = reached.iter().copied().chain(next).collect();
    }
    reached
}

/// Whether some chain of pairs leads from an asset to another.
pub fn reaches(from: AssetId, to: AssetId, pairs: &[Pair]) -> bool {
    reached(from.0, pairs).contains(&to.0)
}

/// Whether some chain of pairs leads from an asset to others and back.
pub fn comes_back(asset: u32, pairs: &[Pair]) -> bool {
    let reached = reached(asset, pairs);
    pairs.iter().any(|pair| pair.buy.0 == asset && reached.contains(&pair.sell.0))
}

fn big(price: Price) -> (BigUint, BigUint) {
    let ten = |power: i32| BigUint::from(10u8).pow(power.unsigned_abs());
    let one = || BigUint::from(1u8);
    match price.exponent() {
        e if e >= 0 => (BigUint::from(price.mantissa()) * ten(e), one()),
        e => (BigUint::from(price.mantissa()), ten(e)),
    }
}

pub fn payout(sold: Amount, sell: Price, buy: Price, epsilon: Fraction) -> Amount {
    let ((sell_n, sell_d), (buy_n, buy_d)) = (big(sell), big(buy));
    let numerator = BigUint::from(sold) * epsilon.complement_units() * sell_n * buy_d;
    let denominator = BigUint::from(1u64 << 32) * sell_d * buy_n;
    Amount::try_from(numerator / denominator).unwrap_or(Amount::MAX)
}

/// The fewest units for which the pay-out is at least `bought`.
pub fn fewest(bought: Amount, sell: Price, buy: Price, epsilon: Fraction) -> Amount {
    let units = least_above(bought, sell, buy, [epsilon, Fraction::ZERO]);
    Amount::try_from(units).unwrap_or(Amount::MAX)
}

/// ⌈units·buy/sell⌉ after both shares have been taken from the rate.
pub fn least_above(units: Amount, sell: Price, buy: Price, shares: [Fraction; 2]) -> BigUint {
    let ((sell_n, sell_d), (buy_n, buy_d)) = (big(sell), big(buy));
    let [one, other] = shares.map(Fraction::complement_units);
    let numerator = BigUint::from(units) * (BigUint::from(1u8) << 64) * sell_d * buy_n;
    let denominator = BigUint::from(one) * other * sell_n * buy_d;
    (numerator + &denominator - 1u8) / denominator
}

/// The least whole payment that satisfies a limit.
pub fn asked(amount: Amount, limit: Price) -> BigUint {
    let (n, d) = big(limit);
    (BigUint::from(amount) * n + &d - 1u8) / d
}

pub fn at_least(bought: Amount, sold: Amount, limit: Price) -> bool {
    let (n, d) = big(limit);
    BigUint::from(bought) * d >= BigUint::from(sold) * n
}
