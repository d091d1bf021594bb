//! The range of prices. Only ratios of prices matter, so prices that leave the range are first centred in it. Only if
//! they are further apart than the range is wide are they cut off at its ends.

use primitives::Price;

/// The natural logarithm of [`MOST`]: a little less than that of the largest [`primitives::Price`].
pub(crate) const END: f64 = 41.4;
/// The least and the largest price that a solver tries.
pub(crate) const LEAST: f64 = 1.05e-18;
pub(crate) const MOST: f64 = 9.52e17;

/// Brings finite, positive `prices` into the range. Prices within it stay as they are; others are first scaled by a
/// power of two, which rounds nothing.
pub(crate) fn bound(prices: &mut [f64]) {
    let least = prices.iter().copied().fold(f64::INFINITY, f64::min);
    let most = prices.iter().copied().fold(0.0, f64::max);
    if least >= LEAST && most <= MOST {
        return;
    }
    let middle = least.sqrt() * most.sqrt();
    // The exponent alone: a power of two.
    let scale = f64::from_bits((1.0 / middle).to_bits() & 0x7ff << 52);
    prices.iter_mut().for_each(|price| *price = (*price * scale).clamp(LEAST, MOST));
}

/// Shifts logarithms of prices so that the least and the largest are equally far from 0, and cuts off those out of
/// range.
pub(crate) fn centred(logs: &mut [f64]) {
    let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shift = 0.5 * (least + most);
    logs.iter_mut().for_each(|log| *log = (*log - shift).clamp(-END, END));
}

/// The price nearest to a finite, positive `price`, cut off at the ends of the range.
pub(crate) fn to_price(price: f64) -> Price {
    Price::from_f64(price.clamp(LEAST, MOST)).expect("within the range of prices")
}

/// Whether some price is at an end of the range, and only held there by the range.
pub(crate) fn is_at_end(prices: &[f64]) -> bool {
    prices.iter().any(|price| *price <= LEAST || *price >= MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::ln;

    #[test]
    fn ends_are_prices() {
        assert!(Price::from_f64(LEAST).is_some() && Price::from_f64(MOST).is_some());
        assert!(ln(MOST) < END + 1e-2 && ln(LEAST) > -END - 1e-2);
    }

    #[test]
    fn ratios_stay_where_they_fit() {
        let mut prices = [1e-30, 1e-20, 3e-10];
        bound(&mut prices);
        assert!(prices.iter().all(|price| (LEAST..=MOST).contains(price)) && !is_at_end(&prices));
        assert_eq!((prices[1] / prices[0], prices[2] / prices[1]), (1e-20 / 1e-30, 3e-10 / 1e-20));
        let mut apart = [1e-30, 1.0, 1e30];
        bound(&mut apart);
        assert!(apart[0] == LEAST && apart[2] == MOST && is_at_end(&apart));
        let mut logs = [10.0, 200.0];
        centred(&mut logs);
        assert_eq!(logs, [-END, END]);
    }
}
