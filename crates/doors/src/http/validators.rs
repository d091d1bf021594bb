//! Certificates, handovers and validators.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use primitives::{Height, to_hex};
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use super::{Api, proof_bytes};
use crate::backend::{CertifiedOutcome, HandoverPage, Proved};
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};

/// How long an answer waits for the certificate of its block.
const CERTIFICATE_PATIENCE: Duration = Duration::from_secs(20);
/// How long it waits for a block before it looks again.
const CERTIFICATE_LOOK: Duration = Duration::from_millis(100);

/// What a quorum of validators has certified about a block's outcome.
#[utoipa::path(get, path = "/v1/blocks/{height}/certificate", params(("height" = u64, Path)),
    responses((status = 200, body = json::CertificateBody), (status = 404, body = ErrorBody)))]
pub(super) async fn certificate(State(api): State<Api>, Path(height): Path<u64>) -> Answered<json::CertificateBody> {
    let found = find_certificate(&api, height).await?;
    let none = || format!("no certificate of block {height} yet; a solo node has none at all");
    found.map(Json).ok_or_else(|| Failure::not_found(none()))
}

async fn find_certificate(api: &Api, height: Height) -> Result<Option<json::CertificateBody>, Failure> {
    let found = api.blocking(move |api| api.backend.certificate(height)).await??;
    Ok(found.map(|CertifiedOutcome { state_root, receipts_root, certificate }| json::CertificateBody {
        height,
        state_root: state_root.to_string(),
        receipts_root: receipts_root.to_string(),
        signers: certificate.signatures.iter().map(|(index, _)| *index).collect(),
        certificate: proof_bytes(&certificate),
    }))
}

/// The certificate of a block, which comes a few blocks after it; waits for them.
pub(super) async fn certificate_of(api: &Api, height: Height) -> Result<json::CertificateBody, Failure> {
    if height == 0 {
        return Err(Failure::not_certified("no block is made yet: ask again later"));
    }
    let mut blocks = api.published().subscribe();
    let until = Instant::now() + CERTIFICATE_PATIENCE;
    loop {
        if let Some(certificate) = find_certificate(api, height).await? {
            return Ok(certificate);
        }
        if api.blocking(|api| api.backend.standing().validator).await?.is_none() {
            return Err(Failure::not_found("this is a solo node, or it has just started: nobody certifies its blocks"));
        }
        // The certificate of a decided height may be stored a moment after the block.
        drop(timeout(CERTIFICATE_LOOK, blocks.recv()).await);
        if Instant::now() >= until {
            let message = format!("no quorum has certified block {height} yet: ask again; /v1/validator says why");
            return Err(Failure::not_certified(message));
        }
    }
}

/// The status of this validator.
#[utoipa::path(get, path = "/v1/validator",
    responses((status = 200, body = json::ValidatorStatus), (status = 404, body = ErrorBody)))]
pub(super) async fn validator(State(api): State<Api>) -> Answered<json::ValidatorStatus> {
    let status = api.blocking(|api| api.backend.standing().validator).await?;
    status.map(Json).ok_or_else(|| Failure::not_found("this is a solo node, or it has just started"))
}

/// The stakers, the validators of this epoch and the next, and when committees change.
#[utoipa::path(get, path = "/v1/validators", responses((status = 200, body = json::ValidatorsBody)))]
pub(super) async fn validators(State(api): State<Api>) -> Answered<json::ValidatorsBody> {
    let outline = api.published().views().outline().clone();
    Ok(Json(json::validators(&outline)))
}

/// The registry of validators and the committees, with the proof that they are part of a state root.
#[utoipa::path(get, path = "/v1/validators/proof",
    responses((status = 200, body = json::ValidatorsProofBody)))]
pub(super) async fn validators_proof(State(api): State<Api>) -> Answered<json::ValidatorsProofBody> {
    let Proved { height, root, proof } = api.blocking(|api| api.backend.prove_validators()).await??;
    Ok(Json(json::ValidatorsProofBody { height, root: root.to_string(), proof: proof_bytes(&proof) }))
}

/// The first requested epoch.
#[derive(Deserialize)]
pub(super) struct From {
    #[serde(default = "first_epoch")]
    from: u64,
}

fn first_epoch() -> u64 {
    1
}

/// The proofs of later committees, for a client that trusts the founders, epoch by epoch; one page at a time.
#[utoipa::path(get, path = "/v1/handovers",
    params(("from" = Option<u64>, Query, description = "the first epoch; 1 by default")),
    responses((status = 200, body = json::HandoversBody), (status = 404, body = ErrorBody)))]
pub(super) async fn handovers(
    State(api): State<Api>,
    Query(From { from }): Query<From>,
) -> Answered<json::HandoversBody> {
    let from = from.max(1);
    let page = api.blocking(move |api| api.backend.handovers(from)).await??;
    let HandoverPage { last, handovers } = page.ok_or_else(|| Failure::not_found("a solo node has no committees"))?;
    if handovers.is_empty() && from <= last {
        let message = format!(
            "no handover to epoch {from}: this node began with a later state; ask another validator, see /v1/validators"
        );
        return Err(Failure::not_found(message));
    }
    let body = |(epoch, (height, bytes)): (u64, &(Height, Vec<u8>))| json::HandoverBody {
        epoch,
        height: *height,
        handover: format!("0x{}", to_hex(bytes)),
    };
    let handovers = (from..=u64::MAX).zip(&handovers).map(body).collect();
    Ok(Json(json::HandoversBody { from: from.min(last.saturating_add(1)), last, handovers }))
}
