//! Outputs that are contested together: layout, and what each of them proves.

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

const CASES_CONTEXT: &str = "walras 2026 lane contested outputs v1";

/// What names the cases of one operation.
pub(super) fn cases_digest(outputs: &[ContestClaim]) -> Digest {
    let ids: Vec<u8> = outputs.iter().flat_map(|of| of.contested.output.id.0).collect();
    Digest::of(CASES_CONTEXT, &ids)
}
