//! Outputs that are contested together: layout, and what each of them proves.

use primitives::LANE_POST_BYTES_MAX;

use super::*;
use crate::payment::INPUTS_MAX;

/// An output that is contested, with what proves that its owner does so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestClaim {
    /// The contested output.
    pub contested: ContestedOutput,
    /// The owner's signature on the exit.
    pub signature: Signature,
    /// The proof that the output exists.
    pub proof: OutputProof,
}

impl ContestClaim {
    pub(super) fn cost(&self) -> u32 {
        match &self.proof {
            OutputProof::Ledger => 1,
            OutputProof::Payment(proof) => 1 + proof.certificate.cost(),
        }
    }

    /// Home and digest of the payment that created the output; `None` if the ledger knows the output.
    pub(super) fn parent(&self, network: &Digest) -> Result<Option<(HomeEpoch, Digest)>, LaneRefusal> {
        let OutputProof::Payment(proof) = &self.proof else { return Ok(None) };
        let SpentOutput { id, asset, amount } = self.contested.output;
        let output = Output { to: Recipient::Key(self.contested.owner), asset, amount };
        if proof.id_of(network, &output)? != id || proof.summary.into != self.contested.home {
            return Err(LaneRefusal::ProofOfAnother(id));
        }
        Ok(Some((proof.summary.home, proof.summary.digest(network))))
    }

    pub(super) fn write(&self, to: &mut Vec<u8>) {
        self.contested.write(to);
        to.extend(self.signature.0);
        self.proof.write(to);
    }

    /// Parses the outputs of one operation.
    pub(super) fn read_all(read: &mut Reader<'_>) -> Result<Vec<ContestClaim>, LaneRefusal> {
        let count = read.u8()?;
        let claim = |read: &mut Reader<'_>| {
            let (contested, signature) = (ContestedOutput::read(read)?, read.signature()?);
            Ok(ContestClaim { contested, signature, proof: OutputProof::read(read)? })
        };
        let claims = (0..count).map(|_| claim(read)).collect::<Result<Vec<_>, LaneRefusal>>()?;
        let of = |claim: &ContestClaim| (claim.contested.home, claim.contested.owner);
        let ascend = claims.is_sorted_by(|a, b| a.contested.output.id < b.contested.output.id);
        let is_sound = (1..=INPUTS_MAX).contains(&claims.len()) && ascend;
        if is_sound && claims.iter().all(|claim| of(claim) == of(&claims[0])) {
            Ok(claims)
        } else {
            Err(LaneRefusal::Malformed("1 to 16 outputs of one owner and home are contested, by ascending id"))
        }
    }
}

/// The posts that contest these outputs of one owner and home, by ascending id, with this bid for each: as few as a
/// sub-block has room for, each alone, in checks ([`POST_CHECKS_MAX`]) and in bytes ([`LANE_POST_BYTES_MAX`]).
pub fn contests(bid: Amount, mut claims: Vec<ContestClaim>) -> Vec<BridgeOperation> {
    claims.sort_unstable_by_key(|claim| claim.contested.output.id);
    let bytes_of = |claim: &ContestClaim| {
        let mut bytes = Vec::new();
        claim.write(&mut bytes);
        bytes.len()
    };
    let mut posts: Vec<Vec<ContestClaim>> = Vec::new();
    let (mut checks, mut bytes) = (0, 0);
    for claim in claims {
        let (more_checks, more_bytes) = (claim.cost(), bytes_of(&claim));
        let fits = checks + more_checks <= POST_CHECKS_MAX && bytes + more_bytes <= CLAIMS_BYTES_MAX;
        match posts.last_mut().filter(|post| fits && post.len() < INPUTS_MAX) {
            Some(post) => {
                (checks, bytes) = (checks + more_checks, bytes + more_bytes);
                post.push(claim);
            }
            None => {
                (checks, bytes) = (more_checks, more_bytes);
                posts.push(vec![claim]);
            }
        }
    }
    posts.into_iter().map(|outputs| BridgeOperation::Resolve { bid, outputs }).collect()
}

/// Bytes of a post that are left for its claims: kind, bid and count come first.
const CLAIMS_BYTES_MAX: usize = LANE_POST_BYTES_MAX - 16;

const CASES_CONTEXT: &str = "walras 2026 lane contested outputs v1";

/// What names the cases of one operation.
pub(super) fn cases_digest(outputs: &[ContestClaim]) -> Digest {
    let ids: Vec<u8> = outputs.iter().flat_map(|of| of.contested.output.id.0).collect();
    Digest::of(CASES_CONTEXT, &ids)
}
