//! What the next batch would do with an order: the same search for prices that a block makes, over all pairs.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use ledger::{Pair, QuoteError};
use primitives::{Amount, ExactSide, MAX_ISSUED, Price};
use serde::Deserialize;

use super::{Api, parse};
use crate::client::AskedBy;
use crate::json::{self, ErrorBody, ExactTerms};
use crate::kit::{Answered, Failure};

/// The order that is asked about.
#[derive(Deserialize)]
pub(super) struct Asked {
    sell: String,
    buy: String,
    amount: String,
    limit: Option<String>,
    exact: Option<String>,
    bound: Option<String>,
}

impl Asked {
    /// The exact order that is asked about, if it is one.
    fn exact(&self) -> Result<Option<ExactTerms>, Failure> {
        let side = match (self.exact.as_deref(), &self.limit, &self.bound) {
            (None, _, None) => return Ok(None),
            (None, ..) => {
                return Err(Failure::malformed("bound: it is of an exact order: add exact=buy or exact=sell"));
            }
            (_, Some(_), _) => return Err(Failure::malformed("limit: an exact order has a bound instead")),
            (Some("buy"), ..) => ExactSide::Buy,
            (Some("sell"), ..) => ExactSide::Sell,
            (Some(_), ..) => return Err(Failure::malformed("exact: write buy or sell")),
        };
        let units = |name: &str, text: &str| match parse(name, text)? {
            units @ 1..=MAX_ISSUED => Ok(units),
            _ => Err(Failure::malformed(format!("{name}: write 1 to {MAX_ISSUED} units"))),
        };
        let lacks = "bound: an exact order has one: the most units that it pays, or the fewest that it gets";
        let bound = self.bound.as_deref().ok_or_else(|| Failure::malformed(lacks))?;
        Ok(Some((side, units("amount", &self.amount)?, units("bound", bound)?)))
    }
}

impl From<QuoteError> for Failure {
    fn from(error: QuoteError) -> Failure {
        let code = match &error {
            QuoteError::Refused(refusal) => refusal.code(),
            QuoteError::Clearing(_) => {
                return Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "no_clearing", error.to_string());
            }
        };
        Failure::new(StatusCode::BAD_REQUEST, code, error.to_string())
    }
}

/// What the next batch would do with an order if nothing else came: what it would sell and get, at which price, and
/// what would rest. The whole book takes part, through all assets. It is no promise: others' orders may come first.
/// With `exact` it is about an exact order, and `why` is `filled` where there is room for it.
#[utoipa::path(get, path = "/v1/quote",
    params(("sell" = String, Query, description = "symbol sold"),
        ("buy" = String, Query, description = "symbol bought"),
        ("amount" = String, Query, description = "the most units to sell; of an exact order, the units to buy or to sell"),
        ("limit" = Option<String>, Query,
            description = "the fewest units bought for a unit sold; without it the offer sells at any price"),
        ("exact" = Option<String>, Query, description = "`buy` or `sell`: an exact order"),
        ("bound" = Option<String>, Query,
            description = "the most units that an exact order pays, or the fewest that it gets")),
    responses((status = 200, body = json::QuoteBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn quote(
    State(api): State<Api>,
    AskedBy(client): AskedBy,
    Query(asked): Query<Asked>,
) -> Answered<json::QuoteBody> {
    let sides = api.sides(&asked.sell, &asked.buy)?;
    let pair = Pair { sell: sides.base, buy: sides.quote };
    let exact = asked.exact()?;
    let amount: Amount = parse("amount", &asked.amount)?;
    let limit: Option<Price> = asked.limit.as_ref().map(|text| parse("limit", text)).transpose()?;
    let turn = api.quotes.turn(client).await?;
    let quoted = api.blocking(move |api| {
        let batch = api.backend.next_batch();
        if let Some((side, units, bound)) = exact {
            let quoted = api.quotes.search(turn, || batch.quote_exact(pair, side, [units, bound]));
            return quoted.map(|quote| api.symbols().exact_quote(pair, (side, units, bound), &quote));
        }
        let price = limit.unwrap_or_else(|| batch.lowest_limit(pair, amount));
        let limit = json::Limit { price, is_asked: limit.is_some() };
        let quoted = api.quotes.search(turn, || batch.quote(pair, amount, price));
        quoted.map(|quote| api.symbols().quote(pair, amount, limit, &quote))
    });
    Ok(Json(quoted.await??))
}
