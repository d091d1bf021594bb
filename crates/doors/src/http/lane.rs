//! The payment lane.

use axum::Json;
use axum::extract::{Path, Query, State};
use primitives::Digest;
use serde::Deserialize;

use super::validators::certificate_of;
use super::{Api, number, parse, proof_bytes};
use crate::backend::Proved;
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};

/// The payment lane: lane time, committee, assets and escrow.
#[utoipa::path(get, path = "/v1/lane",
    responses((status = 200, body = json::LaneBody), (status = 404, body = ErrorBody)))]
pub(super) async fn lane(State(api): State<Api>) -> Answered<json::LaneBody> {
    let outline = api.published().views().outline().clone();
    json::lane(&outline, &api.backend.lane_addresses(), api.backend.lane_has_tls())
        .map(Json)
        .ok_or_else(|| Failure::not_found("this chain has no payment lane"))
}

/// An output that the ledger created in the payment lane: by a withdrawal or the genesis.
#[utoipa::path(get, path = "/v1/lane/outputs/{id}",
    params(("id" = String, Path, description = "Name of the output, 0x and 64 digits")),
    responses((status = 200, body = json::LaneOutputBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn output(State(api): State<Api>, Path(id): Path<String>) -> Answered<json::LaneOutputBody> {
    let id: Digest = parse("id", &id)?;
    let unknown = || Failure::not_found("the ledger created no such output, or its lane epoch is over");
    let read = api.backend.lane_output(&id).ok_or_else(unknown)?;
    let outline = api.published().views().outline().clone();
    Ok(Json(json::lane_output(&outline, id.to_string(), &read)))
}

/// The board on which the members of the payment lane generated the group key of a lane epoch.
#[utoipa::path(get, path = "/v1/lane/boards/{epoch}",
    params(("epoch" = u64, Path, description = "The lane epoch")),
    responses((status = 200, body = json::LaneBoardBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn board(State(api): State<Api>, Path(epoch): Path<String>) -> Answered<json::LaneBoardBody> {
    let epoch = number("epoch", &epoch)?;
    let none = || Failure::not_found("the members generated no group key for this lane epoch, or it is over");
    let board = api.backend.lane_board(epoch).ok_or_else(none)?;
    Ok(Json(json::LaneBoardBody { epoch, board: format!("0x{}", primitives::to_hex(&board)) }))
}

/// Contested outputs of the payment lane without a verdict, with the payments of them.
#[utoipa::path(get, path = "/v1/lane/cases", responses((status = 200, body = json::LaneCasesBody)))]
pub(super) async fn cases(State(api): State<Api>) -> Answered<json::LaneCasesBody> {
    let outline = api.published().views().outline().clone();
    Ok(Json(json::lane_cases(&outline, api.backend.lane_cases())))
}

/// The first lane epoch of interest, and whether the certificate of the block is asked for.
#[derive(Deserialize)]
pub(super) struct AskedKeys {
    #[serde(default)]
    from: u64,
    #[serde(default)]
    certified: bool,
}

/// The keys that members of the payment lane registered for an epoch and those after it, with the proof that they are
/// part of a state root: a registrar may have signed other keys, too.
#[utoipa::path(get, path = "/v1/lane/registrations/proof",
    params(("from" = Option<u64>, Query, description = "the first lane epoch; by default 0"),
        ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::LaneRegistrationsProofBody), (status = 404, body = ErrorBody)))]
pub(super) async fn registrations_proof(
    State(api): State<Api>,
    Query(AskedKeys { from, certified }): Query<AskedKeys>,
) -> Answered<json::LaneRegistrationsProofBody> {
    let Proved { height, root, proof } = api.blocking(move |api| api.backend.prove_registrations(from)).await??;
    let (registrations, proof) = proof.ok_or_else(|| Failure::not_found("this chain has no payment lane"))?;
    let registrations = registrations.iter().map(json::lane_registration).collect();
    let (root, proof) = (root.to_string(), proof_bytes(&proof));
    let certificate = if certified { Some(certificate_of(&api, height).await?) } else { None };
    Ok(Json(json::LaneRegistrationsProofBody { height, root, registrations, proof, certificate }))
}
