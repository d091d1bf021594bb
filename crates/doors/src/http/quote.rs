//! What the next batch would do with an offer: the same search for prices that a block makes, over all pairs.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use ledger::{Pair, QuoteError};
use primitives::{Amount, Price};
use serde::Deserialize;

use super::{Api, parse};
use crate::client::AskedBy;
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};

/// The offer that is asked about.
#[derive(Deserialize)]
pub(super) struct Asked {
    sell: String,
    buy: String,
    amount: String,
    limit: Option<String>,
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

/// What the next batch would do with an offer if nothing else came: what it would sell and get, at which price, and
/// what would rest. The whole book takes part, through all assets. It is no promise: others' orders may come first.
#[utoipa::path(get, path = "/v1/quote",
    params(("sell" = String, Query, description = "symbol sold"),
        ("buy" = String, Query, description = "symbol bought"),
        ("amount" = String, Query, description = "the most units to sell"),
        ("limit" = Option<String>, Query,
            description = "the fewest units bought for a unit sold; without it the offer sells at any price")),
    responses((status = 200, body = json::QuoteBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn quote(
    State(api): State<Api>,
    AskedBy(client): AskedBy,
    Query(asked): Query<Asked>,
) -> Answered<json::QuoteBody> {
    let sides = api.sides(&asked.sell, &asked.buy)?;
    let pair = Pair { sell: sides.base, buy: sides.quote };
    let amount: Amount = parse("amount", &asked.amount)?;
    let limit: Option<Price> = asked.limit.as_ref().map(|text| parse("limit", text)).transpose()?;
    let turn = api.quotes.turn(client).await?;
    let quoted = api.blocking(move |api| {
        let batch = api.backend.next_batch();
        let price = limit.unwrap_or_else(|| batch.lowest_limit(pair, amount));
        let limit = json::Limit { price, is_asked: limit.is_some() };
        let quoted = api.quotes.search(turn, || batch.quote(pair, amount, price));
        quoted.map(|quote| api.symbols().quote(pair, amount, limit, &quote))
    });
    Ok(Json(quoted.await??))
}
