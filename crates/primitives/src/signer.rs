//! The holder of a validator's key, and what it signs beside statements about heights: that the validator is present.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::statement::SigningRequest;
use crate::transaction::{Body, Operation, Transaction};
use crate::{Address, Digest, Height, PublicKey, SecretKey, Signature};

/// That the validator of an account is present: its node is up, and the account may be drawn for an epoch. It is no
/// statement about a height: two of them never contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Presence {
    /// The identity of the network.
    pub network: Digest,
    /// The number of the chain.
    pub chain: u64,
    /// The account that staked.
    pub account: Address,
    /// The epoch: the next one that is drawn.
    pub epoch: u64,
    /// The last height at which the transaction may count.
    pub until: Height,
}

impl Presence {
    /// The body of the transaction that posts it. The validator's key signs its signing bytes.
    pub fn body(&self) -> Body {
        let Presence { network: _, chain, account, epoch, until } = *self;
        Body { chain, account, sequence: 0, until, operation: Operation::Present { epoch } }
    }

    /// The transaction, signed by the holder of the validator's key.
    ///
    /// # Errors
    /// If the key is not reachable.
    pub fn sign(&self, signer: &dyn Signer) -> Result<Transaction, SigningError> {
        Ok(Transaction::by_key(self.body(), signer.public(), signer.sign_presence(self)?))
    }
}

/// Why a statement was not signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SigningError(pub String);

/// The holder of a validator's key.
pub trait Signer: Send + Sync {
    /// The key.
    fn public(&self) -> PublicKey;

    /// Signs [`SigningRequest::digest`].
    ///
    /// # Errors
    /// If the key is not reachable, or its holder has signed another statement of this kind and round.
    fn sign_statement(&self, request: &SigningRequest) -> Result<Signature, SigningError>;

    /// Signs the signing bytes of [`Presence::body`].
    ///
    /// # Errors
    /// If the key is not reachable.
    fn sign_presence(&self, presence: &Presence) -> Result<Signature, SigningError>;
}

/// Signs any request: the caller's vote log prevents contradictions.
impl Signer for SecretKey {
    fn public(&self) -> PublicKey {
        SecretKey::public(self)
    }

    fn sign_statement(&self, request: &SigningRequest) -> Result<Signature, SigningError> {
        Ok(self.sign(&request.digest().0))
    }

    fn sign_presence(&self, presence: &Presence) -> Result<Signature, SigningError> {
        Ok(self.sign(&presence.body().signing_bytes(&presence.network)))
    }
}
