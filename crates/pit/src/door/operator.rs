//! What the operator does to markets and accounts.

use api::{DoneBody, ErrorBody, OperatorBody};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use primitives::Address;
use tokio::sync::oneshot;
use venue::{Steering, VenueInput};

use super::{Api, Failure};
use crate::codes::refusal_name;
use crate::shared::{PitInput, PitRefusal};

fn input_of(body: &OperatorBody) -> Result<VenueInput, Failure> {
    let account = |text: &str| -> Result<Address, Failure> {
        text.parse().map_err(|error| Failure::malformed(format!("account: {error}")))
    };
    Ok(match body {
        OperatorBody::Halt { market } => VenueInput::Steer(*market, Steering::Halt),
        OperatorBody::Resume { market } => VenueInput::Steer(*market, Steering::Resume),
        OperatorBody::Call { market } => VenueInput::Steer(*market, Steering::Call),
        OperatorBody::Uncross { market, reference, then_halts } => {
            VenueInput::Steer(*market, Steering::Uncross { reference: *reference, then_halts: *then_halts })
        }
        OperatorBody::Collar { market, low, high } => {
            VenueInput::Steer(*market, Steering::SetCollar { low: *low, high: *high })
        }
        OperatorBody::Kill { account: of } => VenueInput::Kill(account(of)?),
        OperatorBody::Revive { account: of } => VenueInput::Revive(account(of)?),
    })
}

/// Halts, calls, auctions, collars, kills: with the operator's token.
#[utoipa::path(post, path = "/v1/venue/operator", request_body = OperatorBody,
    responses((status = 200, body = DoneBody), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 409, body = ErrorBody)))]
pub(super) async fn operate(
    State(api): State<Api>,
    headers: HeaderMap,
    command: Result<Json<OperatorBody>, axum::extract::rejection::JsonRejection>,
) -> Result<Json<DoneBody>, Failure> {
    if !api.operator.admits(&headers) {
        let message = "this call needs the token of [http] operator_token_file, as `Authorization: Bearer TOKEN`";
        return Err(Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message));
    }
    let Json(command) = command.map_err(|error| Failure::malformed(error.body_text()))?;
    let input = input_of(&command)?;
    api.shared.scope()?;
    let (reply, answer) = oneshot::channel();
    api.shared.send(PitInput::Operate { input, reply })?;
    match answer.await.map_err(|_| PitRefusal::BeginsAgain)? {
        None => Ok(Json(DoneBody { done: true })),
        Some(why) => Err(Failure::new(StatusCode::CONFLICT, refusal_name(&why).1, why.to_string())),
    }
}
