//! Signing and verifying transactions.

use std::borrow::Borrow;

use rayon::prelude::*;

use crate::key::Signed;
use crate::session::{SessionOperation, session_possession_bytes};
use crate::typed_data::TypedData;
use crate::venue::CarriedSignature;
use crate::{Body, Digest, Operation, PublicKey, SecretKey, Signature, SignedBy, Transaction, WalletKey, verify_all};

impl Body {
    /// Signs with `key`, for a network.
    pub fn sign(self, network: &Digest, key: &SecretKey) -> Transaction {
        let signature = key.sign(&self.signing_bytes(network));
        Transaction::by_key(self, key.public(), signature)
    }

    /// Signs with the key of a wallet, for a network.
    pub fn sign_typed(self, network: Digest, key: &WalletKey) -> Transaction {
        let signature = key.sign(&TypedData::of(&self).hash(self.chain, &network));
        Transaction { body: self, signed_by: SignedBy::TypedData { network, signature } }
    }
}

impl Transaction {
    /// Whether the signature is valid in the network of this identity; [`verify_transactions`] is faster for many.
    /// Typed data names its network, and the filter compares it with its own.
    pub fn is_signed(&self, network: &Digest) -> bool {
        self.is_signed_by_sender(network) && verify_all(&self.carried(network)).iter().all(|valid| *valid)
    }

    /// How many signatures [`verify_transactions`] checks for it at most.
    pub fn signature_count(&self) -> u64 {
        let carried = match &self.body.operation {
            Operation::Venue(operation) => operation.carried_count(),
            Operation::Session(operation) => match **operation {
                SessionOperation::Authorize { .. } => 1,
                SessionOperation::Revoke { .. } | SessionOperation::Alive { .. } => 0,
            },
            _ => 0,
        };
        1 + carried as u64
    }

    /// The signatures that the operation carries.
    fn carried(&self, network: &Digest) -> Vec<CarriedSignature> {
        match &self.body.operation {
            Operation::Venue(operation) => operation.carried(network, &self.body.account),
            Operation::Session(operation) => match &**operation {
                SessionOperation::Authorize { terms, possession } => {
                    let message = session_possession_bytes(network, &self.body.account, terms.slot, &terms.key);
                    vec![CarriedSignature { key: terms.key, signature: *possession, message }]
                }
                SessionOperation::Revoke { .. } | SessionOperation::Alive { .. } => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn is_signed_by_sender(&self, network: &Digest) -> bool {
        match &self.signed_by {
            SignedBy::Key { signer, signature } => signer.verify(&self.body.signing_bytes(network), signature),
            SignedBy::TypedData { network, signature } => {
                let hash = TypedData::of(&self.body).hash(self.body.chain, network);
                signature.recover(&hash) == Some(self.body.account)
            }
        }
    }
}

/// A transaction that an ed25519 key signed.
struct ByKey<'t> {
    network: &'t Digest,
    body: &'t Body,
    signer: PublicKey,
    signature: Signature,
}

impl Signed for ByKey<'_> {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.signer, self.signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.body.signing_bytes(self.network)
    }
}

/// Verifies the signature of each transaction for a network, on all threads of the current rayon pool; `true` where
/// it is valid. Ed25519 signatures are verified in batches, those on typed data one by one.
pub fn verify_transactions<T: Borrow<Transaction> + Sync>(network: &Digest, transactions: &[T]) -> Vec<bool> {
    let transactions = || transactions.iter().map(Borrow::borrow);
    let by_key = |transaction: &'_ Transaction| match transaction.signed_by {
        SignedBy::Key { signer, signature } => Some((signer, signature)),
        SignedBy::TypedData { .. } => None,
    };
    let keyed: Vec<ByKey> = transactions()
        .filter_map(|one| by_key(one).map(|(signer, signature)| ByKey { network, body: &one.body, signer, signature }))
        .collect();
    let typed: Vec<&Transaction> = transactions().filter(|one| by_key(one).is_none()).collect();
    let check_typed = || typed.par_iter().map(|one| one.is_signed_by_sender(network)).collect::<Vec<bool>>();
    let (keyed, typed) = rayon::join(|| verify_all(&keyed), check_typed);
    let (mut keyed, mut typed) = (keyed.into_iter(), typed.into_iter());
    let mut next = |one| if by_key(one).is_some() { keyed.next() } else { typed.next() };
    let mut valid: Vec<bool> = transactions().map(|one| next(one).expect("one for each transaction")).collect();
    verify_carried(network, transactions(), &mut valid);
    valid
}

/// Clears `valid` where a signature that an operation carries is invalid. All are verified together.
fn verify_carried<'t>(network: &Digest, all: impl Iterator<Item = &'t Transaction>, valid: &mut [bool]) {
    let carries = |one: &Transaction| matches!(one.body.operation, Operation::Venue(_) | Operation::Session(_));
    let carrying = all.enumerate().filter(|(_, one)| carries(one));
    let of = |(at, one): (usize, &Transaction)| one.carried(network).into_iter().map(move |carried| (at, carried));
    let (owners, carried): (Vec<usize>, Vec<CarriedSignature>) = carrying.flat_map(of).unzip();
    let holds = verify_all(&carried);
    owners.into_iter().zip(holds).filter(|(_, holds)| !holds).for_each(|(at, _)| valid[at] = false);
}
