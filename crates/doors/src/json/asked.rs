//! What an order asks for, as it was placed: side, amount of the base, price in quote per base.
//!
//! The ledger keeps what is sold, and the fewest units bought for each unit sold. A purchase is a sale of the quote.
//! Its amount was rounded up to a unit of the quote, and its price was inverted and rounded up in 17 digits. So several
//! amounts and prices have the same terms, and of these the one with the fewest digits is told. Where no price of 17
//! digits has the limit, it is the nearest one. `docs/order-vectors.json` has examples.

use api::OrderTermsBody;
use ledger::Pair;
use primitives::{Amount, ExactSide, Price};
use readers::Sides;

use super::Symbols;

/// Digits of the ledger's prices.
const DIGITS: u32 = 17;

/// The number `digits × 10^exponent`.
#[derive(Clone, Copy, Debug)]
struct Scaled {
    digits: u128,
    exponent: i32,
}

/// To which side the numbers lie that have the same terms.
#[derive(Clone, Copy)]
enum Toward {
    Up,
    Down,
}

const ONE: Scaled = Scaled::whole(1);

const fn length(digits: u128) -> u32 {
    match digits.checked_ilog10() {
        Some(log) => log + 1,
        None => 1,
    }
}

/// The nearest whole number, half up.
fn divided(top: u128, bottom: u128) -> u128 {
    top / bottom + u128::from(top % bottom >= bottom.div_ceil(2))
}

impl Scaled {
    const fn whole(units: u128) -> Scaled {
        Scaled { digits: units, exponent: 0 }
    }

    fn of(price: Price) -> Scaled {
        Scaled { digits: price.mantissa().into(), exponent: price.exponent() }.trimmed()
    }

    fn trimmed(mut self) -> Scaled {
        if self.digits == 0 {
            return Scaled::whole(0);
        }
        while self.digits.is_multiple_of(10) {
            self = Scaled { digits: self.digits / 10, exponent: self.exponent + 1 };
        }
        self
    }

    fn is(self, other: Scaled) -> bool {
        let (a, b) = (self.trimmed(), other.trimmed());
        a.digits == b.digits && a.exponent == b.exponent
    }

    /// The quotient in 17 digits. Both have at most 20.
    fn over(self, other: Scaled) -> Scaled {
        let more = (DIGITS + length(other.digits)).saturating_sub(length(self.digits));
        let digits = divided(self.digits * 10u128.pow(more), other.digits);
        Scaled { digits, exponent: self.exponent - other.exponent - more as i32 }.in_digits()
    }

    fn in_digits(self) -> Scaled {
        match length(self.digits).checked_sub(DIGITS) {
            None | Some(0) => self,
            Some(more) => {
                Scaled { digits: divided(self.digits, 10u128.pow(more)), exponent: self.exponent + more as i32 }
            }
        }
    }

    fn times(self, other: Scaled) -> Option<Scaled> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Scaled { digits, exponent: self.exponent + other.exponent })
    }

    /// As a whole number; nothing if it is too large.
    fn rounded(self, toward: Toward) -> Option<u128> {
        let power = 10u128.checked_pow(self.exponent.unsigned_abs());
        match (self.exponent, toward) {
            (0.., _) => self.digits.checked_mul(power?),
            (_, Toward::Down) => Some(power.map_or(0, |power| self.digits / power)),
            (_, Toward::Up) => Some(power.map_or(u128::from(self.digits > 0), |power| self.digits.div_ceil(power))),
        }
    }

    /// One over it, rounded up in 17 digits: nobody pays more than was written.
    fn inverse(self) -> Scaled {
        let nearest = ONE.over(self);
        let is_short = nearest.times(self).is_some_and(|product| {
            10u128.checked_pow(product.exponent.unsigned_abs()).is_some_and(|one| product.digits < one)
        });
        Scaled { digits: nearest.digits + u128::from(is_short), ..nearest }
    }

    /// The decimal with the fewest digits for which `holds`, where all of these lie on one side of it.
    fn simplest(self, toward: Toward, holds: impl Fn(Scaled) -> bool) -> Option<Scaled> {
        let candidates = (1..=DIGITS).map(|digits| {
            let power = 10u128.pow(length(self.digits).saturating_sub(digits));
            let cut = match toward {
                Toward::Up => self.digits.div_ceil(power),
                Toward::Down => self.digits / power,
            };
            Scaled { digits: cut * power, ..self }.trimmed()
        });
        candidates.into_iter().find(|candidate| candidate.digits > 0 && holds(*candidate))
    }

    /// As a plain decimal.
    fn text(self) -> String {
        let Scaled { digits, exponent } = self.trimmed();
        let zeros = "0".repeat(exponent.max(0) as usize);
        let places = exponent.min(0).unsigned_abs() as usize;
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        if fraction.is_empty() { format!("{whole}{zeros}") } else { format!("{whole}.{fraction}") }
    }
}

/// An exact order: which amount is exact, that amount, and the bound of the other one.
pub(crate) type ExactTerms = (ExactSide, Amount, Amount);

/// The base amount and the price in units of terms. `is_sale` says whether they sell the base.
fn written(is_sale: bool, amount: Amount, limit: Price, exact: Option<ExactTerms>) -> Option<(u128, Scaled)> {
    let (units, limit) = (Scaled::whole(amount.into()), Scaled::of(limit));
    match exact {
        Some(exact) => of_exact(is_sale, exact),
        None if is_sale => Some((amount.into(), limit)),
        None => {
            let nearest = ONE.over(limit);
            let price = nearest.simplest(Toward::Up, |price| price.inverse().is(limit)).unwrap_or(nearest);
            let costs = |amount: &Scaled| amount.times(price).and_then(|cost| cost.rounded(Toward::Up));
            let fits = |amount: Scaled| amount.exponent >= 0 && costs(&amount) == Some(units.digits);
            let simplest = units.over(price).simplest(Toward::Down, fits);
            // Where no whole number of units costs just that, it is as much as is asked for at the least.
            let amount = simplest.or_else(|| units.times(limit))?.rounded(Toward::Down)?;
            Some((amount, price))
        }
    }
}

fn of_exact(is_sale: bool, (side, units, bound): ExactTerms) -> Option<(u128, Scaled)> {
    let of_base = (side == ExactSide::Sell) == is_sale;
    let (amount, total) = if of_base { (units, bound) } else { (bound, units) };
    if amount == 0 || total == 0 {
        return None;
    }
    let (rounded, toward) = match side {
        ExactSide::Buy => (Toward::Down, Toward::Up),
        ExactSide::Sell => (Toward::Up, Toward::Down),
    };
    let (amount, total) = (Scaled::whole(amount.into()), Scaled::whole(total.into()));
    let nearest = total.over(amount);
    let fits = |price: Scaled| amount.times(price).and_then(|all| all.rounded(rounded)) == Some(total.digits);
    Some((amount.digits, nearest.simplest(toward, fits).unwrap_or(nearest)))
}

impl Symbols {
    /// What an order asks for in its market; nothing if it names assets that there are not, or no amount.
    pub(crate) fn asked(
        &self,
        pair: Pair,
        amount: Amount,
        limit: Price,
        exact: Option<ExactTerms>,
    ) -> Option<OrderTermsBody> {
        let Sides { base, quote } = Sides::of(pair);
        if base == quote || !self.is_listed(base) {
            return None;
        }
        let is_sale = pair.sell == base;
        let (amount, price) = written(is_sale, amount, limit, exact)?;
        let price_units = price.text();
        Some(OrderTermsBody {
            side: if is_sale { "sell" } else { "buy" }.into(),
            base: self.get(base).into(),
            quote: self.get(quote).into(),
            amount: amount.to_string(),
            price: self.whole_price(&price_units, base, quote),
            price_units,
        })
    }
}

#[cfg(test)]
mod tests {
    use primitives::AssetId;
    use serde_json::Value;

    use super::*;

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../../../docs/order-vectors.json")).expect("docs/order-vectors.json")
    }

    #[test]
    fn an_order_is_told_as_it_was_placed() {
        let vectors = vectors();
        let listed = vectors["assets"].as_array().expect("assets").iter();
        let listed = listed.map(|asset| {
            let decimals = asset["decimals"].as_u64().expect("decimals") as u8;
            (asset["symbol"].as_str().expect("a symbol").to_string(), decimals)
        });
        let listed: Vec<(String, u8)> = listed.collect();
        let decimals: Vec<u8> = listed.iter().map(|(_, decimals)| *decimals).collect();
        let symbols = Symbols::published(std::sync::Arc::new(listed));
        let of = |value: &Value| symbols.find(value.as_str().expect("a symbol")).expect("listed");
        for vector in vectors["orders"].as_array().expect("orders") {
            let (terms, text) = (&vector["terms"], |value: &Value| value.as_str().expect("text").to_string());
            let pair = Pair { sell: of(&terms["sell"]), buy: of(&terms["buy"]) };
            let exact = terms["exact"].as_object().map(|exact| {
                let side = if exact["side"] == "buy" { ExactSide::Buy } else { ExactSide::Sell };
                let units = |name: &str| text(&exact[name]).parse().expect("units");
                (side, units("units"), units("bound"))
            });
            let amount = text(&terms["amount"]).parse().expect("units");
            let limit = text(&terms["limit"]).parse().expect("a price");
            let told = symbols.asked(pair, amount, limit, exact).map(|told| {
                let decimals = decimals[symbols.find(&told.base).expect("listed").0 as usize];
                let digits = told.amount.parse().expect("units");
                let amount = Scaled { digits, exponent: -i32::from(decimals) }.text();
                (told.side, told.base, told.quote, amount, told.price)
            });
            let order = &vector["order"];
            let [side, base, quote, amount, price] =
                ["side", "base", "quote", "amount", "price"].map(|name| text(&order[name]));
            assert_eq!(told, Some((side.into(), base, quote, amount, price)), "{vector}");
        }
    }

    #[test]
    fn the_largest_terms_are_told_without_an_overflow() {
        let symbols = Symbols::published(std::sync::Arc::new(vec![("A".into(), 0), ("B".into(), 18)]));
        let sides = [Pair { sell: AssetId(0), buy: AssetId(1) }, Pair { sell: AssetId(1), buy: AssetId(0) }];
        let amounts = [0, 1, 7, u64::MAX / 2, u64::MAX];
        let limits = [Price::MIN, Price::ONE, Price::MAX, "0.9".parse().expect("a price")];
        for (pair, amount) in sides.iter().flat_map(|pair| amounts.map(|amount| (*pair, amount))) {
            for limit in limits {
                assert!(symbols.asked(pair, amount, limit, None).is_some(), "{amount} at {limit}");
            }
            for (side, bound) in [ExactSide::Buy, ExactSide::Sell].iter().flat_map(|side| amounts.map(|of| (*side, of)))
            {
                let told = symbols.asked(pair, amount, Price::ONE, Some((side, amount, bound)));
                assert_eq!(told.is_some(), amount > 0 && bound > 0, "{amount} {bound}");
            }
        }
        let same = Pair { sell: AssetId(1), buy: AssetId(1) };
        assert!(symbols.asked(same, 1, Price::ONE, None).is_none());
        assert!(symbols.asked(Pair { buy: AssetId(9), ..same }, 1, Price::ONE, None).is_none());
    }
}
