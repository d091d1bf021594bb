//! What signers of policies sign: requests of their account, and changes of its keys.

use borsh::BorshSerialize;

use crate::keys::{
    CHANGE_SIGNATURES_MAX, ChangedBy, KeySignature, KeySignatures, KeysChange, PolicySigned, RecoverKeys, SetKeys,
};
use crate::malformed::Malformed;
use crate::typed_data::TypedData;
use crate::venue::CarriedSignature;
use crate::{Address, Body, Digest, Operation, PublicKey, SecretKey, SignedBy, Transaction, WalletKey};

/// The prefix of a request's body that signers of a policy sign.
const REQUEST_TAG: &[u8] = b"walras request of a policy v1\0";
/// The prefix of a change of keys.
const SET_TAG: &[u8] = b"walras change of keys v1\0";
/// The prefix of a recovery of keys.
const RECOVER_TAG: &[u8] = b"walras recovery of keys v1\0";
const SET_ID_CONTEXT: &str = "walras 2026 change of keys v1";
const RECOVER_ID_CONTEXT: &str = "walras 2026 recovery of keys v1";
const SALT_CONTEXT: &str = "walras 2026 salt of a policy v1";

impl KeySignatures {
    /// Those of ed25519 keys, to be verified on this message.
    pub(crate) fn carried(&self, message: impl Fn() -> Vec<u8>) -> Vec<CarriedSignature> {
        let of = |one: &KeySignature| CarriedSignature { key: one.key, signature: one.signature, message: message() };
        self.keys.iter().map(of).collect()
    }

    /// Whether each wallet has signed this hash.
    pub(crate) fn wallets_hold(&self, hash: impl FnOnce() -> [u8; 32]) -> bool {
        if self.wallets.is_empty() {
            return true;
        }
        let hash = hash();
        self.wallets.iter().all(|one| one.signature.recover(&hash) == Some(one.wallet))
    }
}

/// The salt in the domain of the typed data that a wallet signs for an account with a policy: it names the account's
/// last change of keys, as the wallet's structures do not.
pub fn policy_salt(network: &Digest, account: &Address, last: &Digest) -> Digest {
    Digest::of(SALT_CONTEXT, &encoded(&(network, account, last)))
}

fn encoded(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}

impl KeysChange {
    /// The bytes that ed25519 keys sign to agree to it.
    pub fn signing_bytes(&self, by: ChangedBy, network: &Digest) -> Vec<u8> {
        let tag = if by == ChangedBy::Signers { SET_TAG } else { RECOVER_TAG };
        [tag, &encoded(&(network, self))].concat()
    }

    /// The hash that wallets sign to agree to it.
    pub fn typed_hash(&self, by: ChangedBy, chain: u64, network: &Digest) -> [u8; 32] {
        TypedData::of_change(self, by).hash(chain, &policy_salt(network, &self.account, &self.last))
    }

    /// Its id: what is signed for the account from then on names it. It does not depend on who signed or sent it.
    pub fn id(&self, by: ChangedBy) -> Digest {
        let context = if by == ChangedBy::Signers { SET_ID_CONTEXT } else { RECOVER_ID_CONTEXT };
        Digest::of(context, &encoded(self))
    }

    /// The signature of an ed25519 key that agrees to it.
    pub fn sign(&self, by: ChangedBy, network: &Digest, key: &SecretKey) -> KeySignatures {
        KeySignatures::of_key(key.public(), key.sign(&self.signing_bytes(by, network)))
    }

    /// The signature of a wallet that agrees to it.
    pub fn sign_typed(&self, by: ChangedBy, chain: u64, network: &Digest, key: &WalletKey) -> KeySignatures {
        KeySignatures::of_wallet(key.address(), key.sign(&self.typed_hash(by, chain, network)))
    }
}

/// A change that an operation asks for.
#[derive(Clone, Copy, Debug)]
pub struct AskedChange<'a> {
    /// The change.
    pub change: &'a KeysChange,
    /// Who asks for it.
    pub by: ChangedBy,
    /// The key whose hash is the account's address, if it is named.
    pub first: Option<PublicKey>,
    /// The signatures on it.
    pub signatures: &'a KeySignatures,
}

impl Operation {
    /// The account whose policy it is about, if it is.
    pub fn keys_of(&self) -> Option<Address> {
        match self {
            Operation::CompleteKeys { account } => Some(*account),
            _ => self.key_change().map(|asked| asked.change.account),
        }
    }

    /// The change of keys that it asks for, if it does.
    pub fn key_change(&self) -> Option<AskedChange<'_>> {
        match self {
            Operation::SetKeys(set) => {
                let SetKeys { change, first, signatures } = &**set;
                Some(AskedChange { change, by: ChangedBy::Signers, first: Some(*first), signatures })
            }
            Operation::RecoverKeys(recover) => {
                let RecoverKeys { change, signatures } = &**recover;
                Some(AskedChange { change, by: ChangedBy::Guardians, first: None, signatures })
            }
            _ => None,
        }
    }
}

impl AskedChange<'_> {
    /// Checks what needs no ledger and no signature. The key that a change of signers names must hash to the address:
    /// so a wallet's address gets no policy.
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        match () {
            _ if !self.change.policy.is_plain() => Err(Malformed::KeyPolicy),
            _ if !self.signatures.is_plain(CHANGE_SIGNATURES_MAX) => Err(Malformed::KeySignatures),
            _ if self.first.is_some_and(|first| first.address() != self.change.account) => {
                Err(Malformed::AddressNotOfKey)
            }
            _ => Ok(()),
        }
    }
}

impl PolicySigned {
    /// The bytes that the account's ed25519 keys sign.
    pub fn signing_bytes(body: &Body, last: &Digest, network: &Digest) -> Vec<u8> {
        [REQUEST_TAG, &encoded(&(network, last, body))].concat()
    }

    /// The hash that the account's wallets sign.
    pub fn typed_hash(body: &Body, last: &Digest, network: &Digest) -> [u8; 32] {
        TypedData::of(body).hash(body.chain, &policy_salt(network, &body.account, last))
    }
}

impl Body {
    /// The signature of an ed25519 key of the account's policy.
    pub fn sign_for_policy(&self, last: &Digest, network: &Digest, key: &SecretKey) -> KeySignatures {
        KeySignatures::of_key(key.public(), key.sign(&PolicySigned::signing_bytes(self, last, network)))
    }

    /// The signature of a wallet of the account's policy.
    pub fn sign_typed_for_policy(&self, last: &Digest, network: &Digest, key: &WalletKey) -> KeySignatures {
        KeySignatures::of_wallet(key.address(), key.sign(&PolicySigned::typed_hash(self, last, network)))
    }
}

impl Transaction {
    /// A transaction of an account with a policy.
    pub fn by_policy(body: Body, last: Digest, signatures: KeySignatures) -> Transaction {
        Transaction { body, signed_by: SignedBy::Policy(Box::new(PolicySigned { last, signatures })) }
    }
}
