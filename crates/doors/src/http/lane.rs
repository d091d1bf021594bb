//! The payment lane.

use axum::Json;
use axum::extract::State;

use super::Api;
use super::failure::{Answered, Failure};
use crate::json::{self, ErrorBody};

/// The payment lane: lane time, committee, assets and escrow.
#[utoipa::path(get, path = "/v1/lane",
    responses((status = 200, body = json::LaneBody), (status = 404, body = ErrorBody)))]
pub(super) async fn lane(State(api): State<Api>) -> Answered<json::LaneBody> {
    let outline = api.published().views().outline().clone();
    json::lane(&outline).map(Json).ok_or_else(|| Failure::not_found("this chain has no payment lane"))
}
