//! Proofs of what a place of the ledger keeps.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::CertificateBody;

/// A record of venues or pools, the policy of an account, an issuer's word of a holder or the parameters, or its
/// absence, with a proof that needs only the state root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// Whether the record exists.
    pub exists: bool,
    /// Hexadecimal; `VenueProof`, `PoolProof`, `KeysProof`, `HolderProof`, `SealsProof` or `ParametersProof` of the
    /// documentation of `proofs`. It has the record.
    pub proof: String,
    /// What validators have signed about the block of this height, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateBody>,
}
