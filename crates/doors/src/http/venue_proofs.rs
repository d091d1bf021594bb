//! Proofs of what the ledger keeps of venues.

use axum::extract::{Path, Query, State};
use ledger::VenueRecordId;
use primitives::PublicKey;

use super::record_proof::{AskedProof, proved_record, record_body};
use super::{Api, parse};
use crate::json::{self, ErrorBody};
use crate::kit::Answered;

async fn prove_venue_record(api: &Api, id: VenueRecordId, asked: &AskedProof) -> Answered<json::RecordProofBody> {
    let prove = move |api: &Api| {
        let proved = api.backend.prove_venue(&id)?.ok_or_else(super::venues::no_venues)?;
        Ok(record_body(&proved, proved.proof.record.is_some()))
    };
    proved_record(api, asked, prove).await
}

/// A venue, or its absence, with its proof.
#[utoipa::path(get, path = "/v1/venues/{venue}/proof",
    params(("venue" = u32, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 404, body = ErrorBody)))]
pub(super) async fn venue_proof(
    State(api): State<Api>,
    Path(venue): Path<u32>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    prove_venue_record(&api, VenueRecordId::Venue(venue), &asked).await
}

/// A market of a venue, or its absence, with its proof.
#[utoipa::path(get, path = "/v1/venues/{venue}/markets/{market}/proof",
    params(("venue" = u32, Path), ("market" = u32, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 404, body = ErrorBody)))]
pub(super) async fn market_proof(
    State(api): State<Api>,
    Path((venue, market)): Path<(u32, u32)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    prove_venue_record(&api, VenueRecordId::Market(venue, market), &asked).await
}

/// A deposit, or its absence, with its proof.
#[utoipa::path(get, path = "/v1/accounts/{address}/deposits/{venue}/{asset}/proof",
    params(("address" = String, Path), ("venue" = u32, Path), ("asset" = String, Path),
        ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn deposit_proof(
    State(api): State<Api>,
    Path((address, venue, asset)): Path<(String, u32, String)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    let id = (venue, parse("address", &address)?, api.asset(&asset)?);
    prove_venue_record(&api, VenueRecordId::Deposit(id), &asked).await
}

/// A trading key, or its absence, with its proof.
#[utoipa::path(get, path = "/v1/venues/{venue}/keys/{key}/proof",
    params(("venue" = u32, Path), ("key" = String, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn key_proof(
    State(api): State<Api>,
    Path((venue, key)): Path<(u32, String)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    prove_venue_record(&api, VenueRecordId::Key((venue, parse("key", &key)?)), &asked).await
}

/// What is filled of an order, or that nothing is, with its proof.
#[utoipa::path(get, path = "/v1/venues/{venue}/keys/{key}/orders/{incarnation}/{day}/{reference}/proof",
    params(("venue" = u32, Path), ("key" = String, Path), ("incarnation" = u32, Path), ("day" = u16, Path),
        ("reference" = u32, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn filled_proof(
    State(api): State<Api>,
    Path((venue, key, incarnation, day, reference)): Path<(u32, String, u32, u16, u32)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    let key: PublicKey = parse("key", &key)?;
    prove_venue_record(&api, VenueRecordId::Filled((venue, incarnation, key, day, reference)), &asked).await
}

/// A claimed fill of an ended incarnation, or its absence, with its proof.
#[utoipa::path(get, path = "/v1/venues/{venue}/claims/{incarnation}/{index}/proof",
    params(("venue" = u32, Path), ("incarnation" = u32, Path), ("index" = u64, Path),
        ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 404, body = ErrorBody)))]
pub(super) async fn claim_proof(
    State(api): State<Api>,
    Path(claimed): Path<(u32, u32, u64)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    prove_venue_record(&api, VenueRecordId::Claimed(claimed), &asked).await
}
