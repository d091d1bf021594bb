//! Orders as people place them: to buy or to sell so much of a market's base, at a price in its quote.
//!
//! A sale offers the base, so it stops at its amount. To buy is to sell the quote, and an offer of it buys more than was
//! asked for where a batch is better than its limit. So a purchase has two forms: an exact order, which buys the amount and
//! no more in the batch of the next block, and an offer of what the amount costs. The first is for a purchase that the
//! next batch would fill whole ([`OrderForms::is_filled_at_once`]), the second for one that waits.
//! `docs/order-vectors.json` has examples.

use api::QuoteBody;
use primitives::{Amount, ClientId, ExactSide, Life, Operation, Price, UnitsError, parse_units};

use crate::assets::{Assets, Listed};
use crate::error::ClientError;
use crate::node::NodeClient;

/// An order for an amount of a market's base.
#[derive(Clone, Debug)]
pub struct WantedOrder<'a> {
    /// Whether it buys the base or sells it.
    pub side: ExactSide,
    /// The market, such as `EUR/USD`; either asset may be the base.
    pub market: &'a str,
    /// Amount of the base, in whole assets.
    pub amount: &'a str,
    /// The limit: whole quote per whole base.
    pub price: Price,
    /// What becomes of the part that does not trade at once.
    pub life: Life,
    /// What its client calls it.
    pub client: ClientId,
}

/// Why there is no such order.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The market has another form.
    #[error("the market {0:?} is not written as BASE/QUOTE, such as EUR/USD")]
    Market(String),
    /// An asset is not there, or the node does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The amount is none.
    #[error("the amount: {0}")]
    Amount(#[from] UnitsError),
    /// The price is out of the range of prices in units.
    #[error("price {0} is out of range when converted to units")]
    Price(Price),
    /// The order is worth more than can exist.
    #[error("the order costs more than can exist of an asset: lower the amount or the price")]
    TooLarge,
    /// It sells too little.
    #[error("the order sells {sells}; the least is {least}: raise the amount")]
    SellsTooLittle {
        /// What it sells.
        sells: String,
        /// The least.
        least: String,
    },
    /// It asks for too little.
    #[error("an order asks at least {least}: raise the amount or the price")]
    AsksTooLittle {
        /// The least.
        least: String,
    },
}

/// How an order may be put to the ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderForms {
    /// An offer of what it sells.
    pub offer: Operation,
    /// Of a purchase the exact order, unless its amount costs less than a unit.
    pub exact: Option<Operation>,
    quoted: String,
}

impl OrderForms {
    /// The forms of an order that is large enough.
    ///
    /// # Errors
    /// [`OrderError`] names the part and the remedy.
    pub fn of(wanted: &WantedOrder<'_>, assets: &Assets) -> Result<OrderForms, OrderError> {
        let WantedOrder { side, market, amount, price, life, client } = *wanted;
        let (base, quote) = market.split_once('/').ok_or_else(|| OrderError::Market(market.into()))?;
        let (base, quote) = (assets.find(base)?, assets.find(quote)?);
        let units = parse_units(amount, base.decimals)?;
        let limit = unit_price(price, base.decimals, quote.decimals).ok_or(OrderError::Price(price))?;
        match side {
            ExactSide::Sell => {
                check((base, units), (quote, limit))?;
                let offer = offer((base, quote), units, limit, (life, client));
                Ok(OrderForms { offer, exact: None, quoted: quoted(base, quote, units, limit) })
            }
            ExactSide::Buy => {
                let inverse = inverse(limit).ok_or(OrderError::Price(price))?;
                let [bound, cost] = cost(units, limit).ok_or(OrderError::TooLarge)?;
                check((quote, cost), (base, inverse))?;
                let (sell, buy) = (quote.asset, base.asset);
                let exact = Operation::Exact { sell, buy, side, units, bound, client };
                let offer = offer((quote, base), cost, inverse, (life, client));
                let exact = (bound > 0).then_some(exact);
                Ok(OrderForms { offer, exact, quoted: quoted(quote, base, cost, inverse) })
            }
        }
    }

    /// Whether the next batch would take all of the offer, if nothing else came.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn is_filled_at_once(&self, node: &NodeClient) -> Result<bool, ClientError> {
        let body: QuoteBody = node.get(&self.quoted)?;
        Ok(body.sold == body.amount)
    }
}

fn offer((sell, buy): (&Listed, &Listed), amount: Amount, limit: Price, (life, client): (Life, ClientId)) -> Operation {
    Operation::CreateOffer { sell: sell.asset, buy: buy.asset, amount, limit, life, client }
}

fn quoted(sell: &Listed, buy: &Listed, amount: Amount, limit: Price) -> String {
    format!("/v1/quote?sell={}&buy={}&amount={amount}&limit={limit}", sell.symbol, buy.symbol)
}

fn check((sell, units): (&Listed, Amount), (buy, limit): (&Listed, Price)) -> Result<(), OrderError> {
    if units < sell.least_units {
        let (sells, least) = (sell.money(units), sell.money(sell.least_units));
        return Err(OrderError::SellsTooLittle { sells, least });
    }
    match limit.accepts(units, buy.least_units.saturating_sub(1)) {
        true => Err(OrderError::AsksTooLittle { least: buy.money(buy.least_units) }),
        false => Ok(()),
    }
}

/// A price of whole `base` in whole `quote`, in units; nothing out of the range of prices.
pub fn unit_price(price: Price, base_decimals: u8, quote_decimals: u8) -> Option<Price> {
    let decade = price.decade() + i32::from(quote_decimals) - i32::from(base_decimals);
    Price::from_parts(price.mantissa(), decade)
}

/// One over a price, rounded up: nobody pays more than was written.
fn inverse(price: Price) -> Option<Price> {
    const TOP: u128 = 10u128.pow(33);
    const EDGE: u128 = 10u128.pow(17);
    match TOP.div_ceil(price.mantissa().into()) {
        EDGE => Price::from_parts((EDGE / 10) as u64, -price.decade()),
        mantissa => Price::from_parts(mantissa as u64, -1 - price.decade()),
    }
}

/// What units cost at a price, rounded down and up; nothing if it is more than an amount.
fn cost(units: Amount, price: Price) -> Option<[Amount; 2]> {
    let product = u128::from(units) * u128::from(price.mantissa());
    let power = 10u128.checked_pow(price.exponent().unsigned_abs())?;
    let [down, up] = match price.exponent() {
        0.. => [product.checked_mul(power)?; 2],
        _ => [product / power, product.div_ceil(power)],
    };
    let amount = |units: u128| u64::try_from(units).ok().filter(|units| *units <= i64::MAX as u64);
    Some([amount(down)?, amount(up)?])
}

#[cfg(test)]
mod tests {
    use api::{AssetBody, AssetsBody};
    use serde_json::Value;

    use super::*;

    const VECTORS: &str = include_str!("../../../docs/order-vectors.json");

    fn text(value: &Value) -> String {
        value.as_str().expect("text").into()
    }

    /// The forms of a vector are its terms, and its exact order costs at most as much.
    #[test]
    fn an_order_becomes_the_terms_of_the_published_vectors() {
        let vectors: Value = serde_json::from_str(VECTORS).expect("docs/order-vectors.json");
        let listed = vectors["assets"].as_array().expect("assets").iter().zip(0..);
        let listed = listed.map(|(asset, number)| listed_as(number, asset)).collect();
        let assets = Assets::of(&AssetsBody { assets: listed }).expect("sound");
        let written =
            vectors["orders"].as_array().expect("orders").iter().filter(|vector| vector["is_written"] == true);
        let mut seen = 0;
        for vector in written {
            let [side, base, quote, amount, price] =
                ["side", "base", "quote", "amount", "price"].map(|name| text(&vector["order"][name]));
            let side = if side == "buy" { ExactSide::Buy } else { ExactSide::Sell };
            let (market, price) = (format!("{base}/{quote}"), price.parse().expect("a price"));
            let (life, client) = (Life::default(), ClientId::default());
            let wanted = WantedOrder { side, market: &market, amount: &amount, price, life, client };
            let forms = OrderForms::of(&wanted, &assets).expect("sound");
            let terms = &vector["terms"];
            let [sell, buy] = ["sell", "buy"].map(|name| assets.find(&text(&terms[name])).expect("listed").asset);
            let (units, limit) = (text(&terms["amount"]).parse().expect("units"), text(&terms["limit"]));
            let limit = limit.parse().expect("a price");
            let offer = Operation::CreateOffer { sell, buy, amount: units, limit, life, client };
            assert_eq!(forms.offer, offer, "{vector}");
            match (side, forms.exact) {
                (ExactSide::Sell, exact) => assert_eq!(exact, None),
                (ExactSide::Buy, Some(Operation::Exact { bound, .. })) => {
                    assert!(bound <= units && units - bound <= 1, "{vector}");
                }
                (ExactSide::Buy, exact) => assert!(exact.is_none() && units <= 1, "{vector}"),
            }
            seen += 1;
        }
        assert!(seen > 30, "{seen} vectors");
    }

    fn listed_as(number: u32, asset: &Value) -> AssetBody {
        let body = serde_json::json!({
            "asset": number, "symbol": asset["symbol"], "decimals": asset["decimals"], "issuer": "", "least_units": "1",
            "issued": "0", "valuation": null, "token": null,
        });
        serde_json::from_value(body).expect("an asset")
    }

    #[test]
    fn an_inverse_is_never_below_one_over_its_price() {
        let of = |text: &str| inverse(text.parse().expect("a price")).map(|price| price.to_string());
        assert_eq!(of("1").as_deref(), Some("1"));
        assert_eq!(of("0.012").as_deref(), Some("83.333333333333334"));
        assert_eq!(of("1000").as_deref(), Some("0.001"));
        assert_eq!(of("0.9").as_deref(), Some("1.1111111111111112"));
        assert_eq!(inverse(Price::MIN), None);
        assert_eq!(
            inverse(Price::MAX).map(|price| price.to_string()).as_deref(),
            Some("0.0000000000000000010000000000000001")
        );
    }

    #[test]
    fn what_costs_more_than_can_exist_is_refused() {
        assert_eq!(cost(i64::MAX as u64, Price::ONE), Some([i64::MAX as u64; 2]));
        assert_eq!(cost(i64::MAX as u64, "1.1".parse().expect("a price")), None);
        assert_eq!(cost(u64::MAX, Price::MAX), None);
        assert_eq!(cost(3, "0.5".parse().expect("a price")), Some([1, 2]));
    }
}
