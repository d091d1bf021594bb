//! A record of a place, or its absence, with its proof: needs only the state root, and comes on request with the
//! certificate of that root; then the answer waits for it.

use axum::Json;
use borsh::BorshSerialize;

use super::accounts::AskedProof;
use super::failure::{Answered, Failure};
use super::{Api, proof_bytes};
use crate::backend::Proved;
use crate::json;

/// The answer of a proof; `exists` says whether its record does.
pub(super) fn record_body<P: BorshSerialize>(proved: &Proved<P>, exists: bool) -> json::RecordProofBody {
    let (height, root, proof) = (proved.height, proved.root.to_string(), proof_bytes(&proved.proof));
    json::RecordProofBody { height, root, exists, proof, certificate: None }
}

impl Api {
    pub(super) async fn record_proof(
        &self,
        asked: &AskedProof,
        prove: impl FnOnce(&Api) -> Result<json::RecordProofBody, Failure> + Send + 'static,
    ) -> Answered<json::RecordProofBody> {
        let mut body = self.blocking(prove).await??;
        if asked.certified {
            body.certificate = Some(self.certified(body.height).await?);
        }
        Ok(Json(body))
    }
}
