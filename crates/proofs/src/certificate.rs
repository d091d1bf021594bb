//! Certificates: statements, signed by a quorum, that a height has ended, and with which result.
//!
//! `consensus::certificate` has the protocol that makes them. A client needs only the keys to verify one.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, Signable, Signature, SigningRequest};

use crate::chain::Chain;
use crate::committee::Index;

/// The content of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Statement {
    /// The height that has ended.
    pub height: u64,
    /// Its digest in its chain.
    pub superblock: Digest,
    /// The state root after height − lag; that of the genesis if there is no such height.
    pub root: Digest,
}

impl Statement {
    /// What a validator signs of it.
    pub fn to_sign(self, chain: &Chain) -> SigningRequest {
        let statement = Signable::Commit { superblock: self.superblock, root: self.root };
        SigningRequest { scope: chain.scope(), height: self.height, statement }
    }

    /// The digest that signatures are over.
    pub fn signed(&self, chain: &Chain) -> Digest {
        self.to_sign(chain).digest()
    }
}

/// Why a certificate is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Too few signers.
    #[error("{signers} validators signed, and {needed} are needed")]
    TooFew {
        /// Number of signers.
        signers: usize,
        /// ⌊(n+f)/2⌋+1.
        needed: usize,
    },
    /// Signers are not in ascending order, and so might be repeated.
    #[error("signers must be in ascending order, each once")]
    Unordered,
    /// The epoch's validators do not decide this height.
    #[error("height {0} is not of this epoch")]
    OtherEpoch(u64),
    /// A signature is not valid.
    #[error("the signature of validator {0} is wrong")]
    BadSignature(Index),
}

/// A statement signed by a quorum.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Certificate {
    /// The epoch of the keys.
    pub epoch: u64,
    /// The statement that they signed.
    pub statement: Statement,
    /// The signers in ascending order, with their signatures.
    pub signatures: Vec<(Index, Signature)>,
}

impl Certificate {
    /// Verifies it against the keys of its epoch: all that a light client needs.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn verify(&self, chain: &Chain) -> Result<(), CertificateError> {
        let height = self.statement.height;
        if self.epoch != chain.epoch || !chain.heights.contains(&height) {
            return Err(CertificateError::OtherEpoch(height));
        }
        let needed = chain.committee().echoes;
        if self.signatures.len() < needed {
            return Err(CertificateError::TooFew { signers: self.signatures.len(), needed });
        }
        if !self.signatures.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(CertificateError::Unordered);
        }
        let digest = self.statement.signed(chain);
        for (signer, signature) in &self.signatures {
            let key = chain.keys.get(usize::from(*signer));
            if !key.is_some_and(|key| key.verify(&digest.0, signature)) {
                return Err(CertificateError::BadSignature(*signer));
            }
        }
        Ok(())
    }
}
