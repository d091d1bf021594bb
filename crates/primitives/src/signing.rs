//! Signing and verifying transactions.

use std::borrow::Borrow;

use rayon::prelude::*;

use crate::consents::AskedChange;
use crate::key::Signed;
use crate::keys::PolicySigned;
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
        self.is_signed_by_key(network)
            && self.is_signed_by_wallets(network)
            && verify_all(&self.carried(network)).iter().all(|valid| *valid)
    }

    /// How many signatures [`verify_transactions`] checks for it at most.
    pub fn signature_count(&self) -> u64 {
        let carried = match &self.body.operation {
            Operation::Venue(operation) => operation.carried_count(),
            Operation::Session(operation) => match **operation {
                SessionOperation::Authorize { .. } => 1,
                SessionOperation::Revoke { .. } | SessionOperation::Alive { .. } => 0,
            },
            operation => operation.key_change().map_or(0, |asked| asked.signatures.len()),
        };
        let own = if let SignedBy::Policy(signed) = &self.signed_by { signed.signatures.len() } else { 1 };
        (own + carried) as u64
    }

    /// Whether it has signatures of ed25519 keys other than that of a single sender.
    fn carries(&self) -> bool {
        let operation = &self.body.operation;
        matches!(operation, Operation::Venue(_) | Operation::Session(_))
            || matches!(self.signed_by, SignedBy::Policy(_))
            || operation.key_change().is_some()
    }

    /// Those signatures.
    fn carried(&self, network: &Digest) -> Vec<CarriedSignature> {
        let mut carried = self.carried_by_operation(network);
        if let SignedBy::Policy(signed) = &self.signed_by {
            let message = || PolicySigned::signing_bytes(&self.body, &signed.last, network);
            carried.extend(signed.signatures.carried(message));
        }
        carried
    }

    fn carried_by_operation(&self, network: &Digest) -> Vec<CarriedSignature> {
        match &self.body.operation {
            Operation::Venue(operation) => operation.carried(network, &self.body.account),
            Operation::Session(operation) => match &**operation {
                SessionOperation::Authorize { terms, possession } => {
                    let message = session_possession_bytes(network, &self.body.account, terms.slot, &terms.key);
                    vec![CarriedSignature { key: terms.key, signature: *possession, message }]
                }
                SessionOperation::Revoke { .. } | SessionOperation::Alive { .. } => Vec::new(),
            },
            operation => operation
                .key_change()
                .map_or(Vec::new(), |asked| asked.signatures.carried(|| asked.change.signing_bytes(asked.by, network))),
        }
    }

    /// Whether it has a signature of a wallet.
    fn has_wallets(&self) -> bool {
        self.recoveries() > 0
    }

    /// How many signatures of wallets it has.
    pub fn recoveries(&self) -> u32 {
        let own = match &self.signed_by {
            SignedBy::Key { .. } => 0,
            SignedBy::TypedData { .. } => 1,
            SignedBy::Policy(signed) => signed.signatures.wallets.len(),
        };
        let carried = self.body.operation.key_change().map_or(0, |asked| asked.signatures.wallets.len());
        (own + carried) as u32
    }

    /// How many signatures of ed25519 keys it has for accounts with policies.
    pub fn policy_signatures(&self) -> u32 {
        let own = if let SignedBy::Policy(signed) = &self.signed_by { signed.signatures.keys.len() } else { 0 };
        (own + self.body.operation.key_change().map_or(0, |asked| asked.signatures.keys.len())) as u32
    }

    /// Whether all its signatures of wallets are valid.
    fn is_signed_by_wallets(&self, network: &Digest) -> bool {
        let (body, chain) = (&self.body, self.body.chain);
        let own = match &self.signed_by {
            SignedBy::Key { .. } => true,
            SignedBy::TypedData { network, signature } => {
                signature.recover(&TypedData::of(body).hash(chain, network)) == Some(body.account)
            }
            SignedBy::Policy(signed) => {
                signed.signatures.wallets_hold(|| PolicySigned::typed_hash(body, &signed.last, network))
            }
        };
        let carried =
            |asked: AskedChange| asked.signatures.wallets_hold(|| asked.change.typed_hash(asked.by, chain, network));
        own && body.operation.key_change().is_none_or(carried)
    }

    /// Whether an ed25519 key that signs alone has signed.
    fn is_signed_by_key(&self, network: &Digest) -> bool {
        match &self.signed_by {
            SignedBy::Key { signer, signature } => signer.verify(&self.body.signing_bytes(network), signature),
            SignedBy::TypedData { .. } | SignedBy::Policy(_) => true,
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

/// Verifies the signatures of each transaction for a network, on all threads of the current rayon pool; `true` where
/// all are valid. Ed25519 signatures are verified in batches, those of wallets one by one.
pub fn verify_transactions<'t, T: Borrow<Transaction> + Sync>(network: &'t Digest, transactions: &'t [T]) -> Vec<bool> {
    verify_unknown(network, transactions, |_| false)
}

/// As [`verify_transactions`], without those signatures that transactions carry and of which is known that they are
/// valid.
pub fn verify_unknown<'t, T: Borrow<Transaction> + Sync>(
    network: &'t Digest,
    transactions: &'t [T],
    is_known: impl Fn(&CarriedSignature) -> bool,
) -> Vec<bool> {
    let transactions = || transactions.iter().map(Borrow::borrow).enumerate();
    let by_key = |(at, one): (usize, &'t Transaction)| match one.signed_by {
        SignedBy::Key { signer, signature } => Some((at, ByKey { network, body: &one.body, signer, signature })),
        SignedBy::TypedData { .. } | SignedBy::Policy(_) => None,
    };
    let keyed = transactions().filter_map(by_key);
    let (owners, keyed): (Vec<usize>, Vec<ByKey>) = keyed.unzip();
    let typed: Vec<(usize, &Transaction)> = transactions().filter(|(_, one)| one.has_wallets()).collect();
    let check_typed = || typed.par_iter().map(|(_, one)| one.is_signed_by_wallets(network)).collect::<Vec<bool>>();
    let (by_keys, by_wallets) = rayon::join(|| verify_all(&keyed), check_typed);
    let mut valid = vec![true; transactions().len()];
    let by_wallets = typed.iter().map(|(at, _)| *at).zip(by_wallets);
    owners.into_iter().zip(by_keys).chain(by_wallets).for_each(|(at, holds)| valid[at] &= holds);
    verify_carried(network, transactions().map(|(_, one)| one), is_known, &mut valid);
    valid
}

/// Clears `valid` where a signature that a transaction carries is invalid. All that are not known are verified
/// together.
fn verify_carried<'t>(
    network: &Digest,
    all: impl Iterator<Item = &'t Transaction>,
    is_known: impl Fn(&CarriedSignature) -> bool,
    valid: &mut [bool],
) {
    let carrying = all.enumerate().filter(|(_, one)| one.carries());
    let of = |(at, one): (usize, &Transaction)| one.carried(network).into_iter().map(move |carried| (at, carried));
    let unknown = carrying.flat_map(of).filter(|(_, carried)| !is_known(carried));
    let (owners, carried): (Vec<usize>, Vec<CarriedSignature>) = unknown.unzip();
    let holds = verify_all(&carried);
    owners.into_iter().zip(holds).filter(|(_, holds)| !holds).for_each(|(at, _)| valid[at] = false);
}
