//! The holder of a validator's key, and what it signs beside statements about heights: posts of the validator about
//! itself.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::statement::SigningRequest;
use crate::transaction::{Body, Operation, Transaction};
use crate::upgrade::Upgrade;
use crate::{Address, Digest, Height, PublicKey, SecretKey, Signature};

/// What the validator of an account says of itself. It is no statement about a height: two of them never contradict
/// each other.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ValidatorPost {
    /// The identity of the network.
    pub network: Digest,
    /// The number of the chain.
    pub chain: u64,
    /// The account that staked.
    pub account: Address,
    /// The last height at which the transaction may count.
    pub until: Height,
    /// What it says.
    pub says: ValidatorSays,
}

/// What a validator says of itself.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ValidatorSays {
    /// Its node is up, and the account may be drawn.
    Present {
        /// For this epoch: the next one that is drawn.
        epoch: u64,
    },
    /// Its node can decide under these rules, and its operator wants them.
    Approves {
        /// The rules.
        upgrade: Upgrade,
        /// The height at which it says so.
        at: Height,
    },
    /// It takes that back.
    Withdraws {
        /// The number of the rules.
        rules: u32,
        /// The height at which it says so.
        at: Height,
    },
    /// It does its part in making the committee's sealing key.
    Seals {
        /// The number of the key.
        key: u64,
        /// What it posts.
        post: Vec<u8>,
    },
}

impl ValidatorPost {
    /// The body of the transaction that posts it. The validator's key signs its signing bytes.
    pub fn body(&self) -> Body {
        let ValidatorPost { network: _, chain, account, until, ref says } = *self;
        let operation = match *says {
            ValidatorSays::Present { epoch } => Operation::Present { epoch },
            ValidatorSays::Approves { upgrade, at } => Operation::Approve { upgrade, at },
            ValidatorSays::Withdraws { rules, at } => Operation::Unapprove { rules, at },
            ValidatorSays::Seals { key, ref post } => Operation::SealDuty { key, post: post.clone() },
        };
        Body { chain, account, sequence: 0, until, operation }
    }

    /// The transaction, signed by the holder of the validator's key.
    ///
    /// # Errors
    /// If the key is not reachable.
    pub fn sign(&self, signer: &dyn Signer) -> Result<Transaction, SigningError> {
        Ok(Transaction::by_key(self.body(), signer.public(), signer.sign_post(self)?))
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

    /// Signs the signing bytes of [`ValidatorPost::body`].
    ///
    /// # Errors
    /// If the key is not reachable.
    fn sign_post(&self, post: &ValidatorPost) -> Result<Signature, SigningError>;
}

/// Signs any request: the caller's vote log prevents contradictions.
impl Signer for SecretKey {
    fn public(&self) -> PublicKey {
        SecretKey::public(self)
    }

    fn sign_statement(&self, request: &SigningRequest) -> Result<Signature, SigningError> {
        Ok(self.sign(&request.digest().0))
    }

    fn sign_post(&self, post: &ValidatorPost) -> Result<Signature, SigningError> {
        Ok(self.sign(&post.body().signing_bytes(&post.network)))
    }
}
