//! Orders as people place them: to buy or to sell so much of a market's base, at a price in its quote.
//!
//! A sale offers the base, so it stops at its amount. To buy is to sell the quote, and an offer of it buys more than
//! was asked for where a batch is better than its limit. So a purchase has several forms. One that the next batch would
//! not fill whole is an offer of what the amount costs. One that it would fill whole
//! ([`OrderForms::is_filled_at_once`]) is an exact order, which buys the amount and no more. Where that finds no room
//! it is an offer of what the batch would charge ([`OrderForms::tightened`]), so that its money buys about the amount,
//! with 5 % of room below its own limit: prices move from batch to batch.
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
    purchase: Option<Purchase>,
}

/// A purchase in units.
#[derive(Clone, Debug, PartialEq)]
struct Purchase {
    base: Listed,
    quote: Listed,
    units: Amount,
    limit: Price,
    named: (Life, ClientId),
}

impl Purchase {
    /// What it sells at a limit, and for how much at the least.
    fn offered(&self, limit: Price) -> Option<(Amount, Price)> {
        Some((cost(self.units, limit)?[1], inverse(limit)?))
    }

    /// The same of what a batch would charge, with room below its limit: prices move from batch to batch.
    fn roomy(&self, charged: Price) -> Option<(Amount, Price)> {
        let room = with_room(charged)?.min(self.limit);
        Some((cost(self.units, charged)?[1], inverse(room)?))
    }

    fn offer(&self, (amount, limit): (Amount, Price)) -> Operation {
        offer((&self.quote, &self.base), amount, limit, self.named)
    }

    fn quote(&self, node: &NodeClient, (amount, limit): (Amount, Price)) -> Result<[Amount; 3], ClientError> {
        let Purchase { base, quote, .. } = self;
        let symbols = format!("sell={}&buy={}", quote.symbol, base.symbol);
        let body: QuoteBody = node.get(&format!("/v1/quote?{symbols}&amount={amount}&limit={limit}"))?;
        let units = |text: &str| node.number("quote", text);
        Ok([units(&body.amount)?, units(&body.sold)?, units(&body.bought)?])
    }
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
                Ok(OrderForms { offer, exact: None, purchase: None })
            }
            ExactSide::Buy => {
                let inverse = inverse(limit).ok_or(OrderError::Price(price))?;
                let [bound, cost] = cost(units, limit).ok_or(OrderError::TooLarge)?;
                check((quote, cost), (base, inverse))?;
                let (sell, buy) = (quote.asset, base.asset);
                let exact = Operation::Exact { sell, buy, side, units, bound, client };
                let (base, quote, named) = (base.clone(), quote.clone(), (life, client));
                let purchase = Purchase { base, quote, units, limit, named };
                let offer = purchase.offer((cost, inverse));
                Ok(OrderForms { offer, exact: (bound > 0).then_some(exact), purchase: Some(purchase) })
            }
        }
    }

    /// Whether the next batch would fill a purchase whole, if nothing else came.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn is_filled_at_once(&self, node: &NodeClient) -> Result<bool, ClientError> {
        let Some((purchase, offered)) = self.usual() else { return Ok(false) };
        let [amount, sold, _] = purchase.quote(node, offered)?;
        Ok(sold >= amount)
    }

    /// Of a purchase the offer of what the next batch would charge, with 5 % of room below its limit. Where that would
    /// not fill it, it is the usual offer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn tightened(&self, node: &NodeClient) -> Result<Operation, ClientError> {
        let Some((purchase, mut offered)) = self.usual() else { return Ok(self.offer.clone()) };
        for _ in 0..TRIES {
            let [amount, sold, bought] = purchase.quote(node, offered)?;
            if sold < amount || bought <= purchase.units + purchase.units / MORE {
                break;
            }
            let charged = Price::ratio_rounding_up(sold, bought).and_then(shortened);
            match charged.filter(|charged| *charged < purchase.limit).and_then(|charged| purchase.roomy(charged)) {
                Some(tight) => offered = tight,
                None => break,
            }
        }
        Ok(purchase.offer(offered))
    }

    fn usual(&self) -> Option<(&Purchase, (Amount, Price))> {
        let purchase = self.purchase.as_ref()?;
        Some((purchase, purchase.offered(purchase.limit)?))
    }

    /// Whether an operation is a form of the order: of a purchase the exact order, or an offer for no more at no worse
    /// a limit. If one of them was sent without a result, it stands for the order.
    pub fn contains(&self, operation: &Operation) -> bool {
        let is_within = match (operation, &self.offer) {
            (
                Operation::CreateOffer { sell, buy, amount, limit, life, client },
                Operation::CreateOffer { sell: s, buy: b, amount: most, limit: least, life: l, client: c },
            ) => (sell, buy, life, client) == (s, b, l, c) && amount <= most && limit >= least,
            _ => false,
        };
        *operation == self.offer || self.exact.as_ref() == Some(operation) || (self.purchase.is_some() && is_within)
    }
}

/// A price with 5 % of room above it.
fn with_room(price: Price) -> Option<Price> {
    const TOP: u64 = 10u64.pow(17);
    match price.mantissa() / 100 * 105 {
        mantissa @ TOP.. => Price::from_parts(mantissa / 10, price.decade() + 1),
        mantissa => Price::from_parts(mantissa, price.decade()),
    }
}

/// How often an offer is tightened at most, and how much more than the amount may be bought: a thousandth.
const TRIES: usize = 4;
const MORE: Amount = 1_000;

/// A price in seven digits, rounded up.
fn shortened(price: Price) -> Option<Price> {
    const CUT: u64 = 10u64.pow(10);
    match price.mantissa().div_ceil(CUT) * CUT {
        mantissa @ 100_000_000_000_000_000.. => Price::from_parts(mantissa / 10, price.decade() + 1),
        mantissa => Price::from_parts(mantissa, price.decade()),
    }
}

fn offer((sell, buy): (&Listed, &Listed), amount: Amount, limit: Price, (life, client): (Life, ClientId)) -> Operation {
    Operation::CreateOffer { sell: sell.asset, buy: buy.asset, amount, limit, life, client }
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
    fn a_price_has_a_twentieth_of_room() {
        let of = |text: &str| with_room(text.parse().expect("a price")).map(|price| price.to_string());
        assert_eq!(of("1").as_deref(), Some("1.05"));
        assert_eq!(of("0.99").as_deref(), Some("1.0395"));
        assert_eq!(of("200").as_deref(), Some("210"));
    }

    #[test]
    fn a_limit_is_shortened_upwards() {
        let of = |text: &str| shortened(text.parse().expect("a price")).map(|price| price.to_string());
        assert_eq!(of("1.23456789").as_deref(), Some("1.234568"));
        assert_eq!(of("1.5").as_deref(), Some("1.5"));
        assert_eq!(of("0.99999991").as_deref(), Some("1"));
        assert_eq!(shortened(Price::MAX), None);
    }

    /// An order that may be a form of a purchase is never placed beside it.
    #[test]
    fn the_forms_of_a_purchase_are_its_exact_order_and_offers_for_no_more_at_no_worse_a_limit() {
        let asset = |number, symbol: &str| listed_as(number, &serde_json::json!({"symbol": symbol, "decimals": 2}));
        let assets = Assets::of(&AssetsBody { assets: vec![asset(0, "USD"), asset(1, "EUR")] }).expect("sound");
        let (life, client) = (Life::default(), ClientId::default());
        let price = "1.2".parse().expect("a price");
        let wanted = WantedOrder { side: ExactSide::Buy, market: "EUR/USD", amount: "50", price, life, client };
        let forms = OrderForms::of(&wanted, &assets).expect("sound");
        let purchase = forms.purchase.clone().expect("it buys");
        assert!(forms.contains(&forms.offer) && forms.contains(forms.exact.as_ref().expect("it costs something")));
        let at = |text: &str| purchase.offer(purchase.offered(text.parse().expect("a price")).expect("in range"));
        assert!(forms.contains(&at("1.1")) && !forms.contains(&at("1.3")));
        let larger = OrderForms::of(&WantedOrder { amount: "51", ..wanted.clone() }, &assets).expect("sound");
        assert!(!forms.contains(&larger.offer) && !forms.contains(&larger.exact.expect("it costs something")));
        let sale = OrderForms::of(&WantedOrder { side: ExactSide::Sell, ..wanted }, &assets).expect("sound");
        assert!(!sale.contains(&forms.offer) && sale.contains(&sale.offer) && sale.exact.is_none());
    }

    #[test]
    fn what_costs_more_than_can_exist_is_refused() {
        assert_eq!(cost(i64::MAX as u64, Price::ONE), Some([i64::MAX as u64; 2]));
        assert_eq!(cost(i64::MAX as u64, "1.1".parse().expect("a price")), None);
        assert_eq!(cost(u64::MAX, Price::MAX), None);
        assert_eq!(cost(3, "0.5".parse().expect("a price")), Some([1, 2]));
    }
}
