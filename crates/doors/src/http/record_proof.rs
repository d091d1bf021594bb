//! A record of a place, or its absence, with its proof: needs only the state root, and comes on request with the
//! certificate of that root. Then the answer waits for it.

use axum::Json;
use borsh::BorshSerialize;
use serde::Deserialize;

use super::validators::certificate_of;
use super::{Api, proof_bytes};
use crate::backend::Proved;
use crate::json;
use crate::kit::{Answered, Failure};

/// Whether the certificate of the block is asked for.
#[derive(Deserialize)]
pub(super) struct AskedProof {
    #[serde(default)]
    pub(super) certified: bool,
}

/// The answer of a proof; `exists` says whether its record does.
pub(super) fn record_body<P: BorshSerialize>(proved: &Proved<P>, exists: bool) -> json::RecordProofBody {
    let (height, root, proof) = (proved.height, proved.root.to_string(), proof_bytes(&proved.proof));
    json::RecordProofBody { height, root, exists, proof, certificate: None }
}

pub(super) async fn proved_record(
    api: &Api,
    asked: &AskedProof,
    prove: impl FnOnce(&Api) -> Result<json::RecordProofBody, Failure> + Send + 'static,
) -> Answered<json::RecordProofBody> {
    let mut body = api.blocking(prove).await??;
    if asked.certified {
        body.certificate = Some(certificate_of(api, body.height).await?);
    }
    Ok(Json(body))
}
