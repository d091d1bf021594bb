//! Accounts of institutions: policies of several keys, changes of them, and what their signers sign.
//!
//! A policy names signers with weights, ed25519 keys and wallets, and the weights that must sign: *move* for what
//! spends, *govern* for what changes who may spend. Guardians restore an account whose keys are lost. When a policy
//! acts and what it permits is the ledger's rule (its place `keys`).
//!
//! All that is signed for such an account names the id of its *last change of keys*. So a change voids whatever was
//! signed before it, and nothing counts twice.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::wallet::WalletSignature;
use crate::{Address, Digest, PublicKey, Signature};

/// The first rules that have policies, and accounts to which no payment comes without a reference.
pub const RULES_OF_KEYS: u32 = 14;
/// The most signers of a policy.
pub const SIGNERS_MAX: usize = 16;
/// The most guardians of a policy.
pub const GUARDIANS_MAX: usize = 8;
/// The longest delay of a policy, in heights.
pub const KEYS_DELAY_MAX: u32 = 1 << 20;
/// The most signatures of a change of keys: those of both policies.
pub const CHANGE_SIGNATURES_MAX: usize = 2 * SIGNERS_MAX;
/// What a key of a new policy costs, in fees.
pub const KEY_WEIGHT: u64 = 100;

/// Somebody who signs for an account with a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyHolder {
    /// By an ed25519 key.
    Key(PublicKey),
    /// By a wallet.
    Wallet(Address),
}

/// An ed25519 key that signs with a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct KeySigner {
    /// The key.
    pub key: PublicKey,
    /// Its weight, at least 1.
    pub weight: u8,
}

/// A wallet that signs with a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct WalletSigner {
    /// Its address.
    pub wallet: Address,
    /// Its weight, at least 1.
    pub weight: u8,
}

/// Who may do what for an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct KeyPolicy {
    /// Signers with ed25519 keys, by key.
    pub keys: Box<[KeySigner]>,
    /// Signers with wallets, by address.
    pub wallets: Box<[WalletSigner]>,
    /// The weight that spends: at least 1, and at most `govern`.
    pub moves: u16,
    /// The weight that changes who may spend; at most that of all signers.
    pub governs: u16,
    /// Guardians with ed25519 keys, by key.
    pub guardian_keys: Box<[PublicKey]>,
    /// Guardians with wallets, by address.
    pub guardian_wallets: Box<[Address]>,
    /// How many guardians recover the account; 0 exactly if there are none.
    pub guardians: u8,
    /// Heights that a change waits.
    pub delay: u32,
}

/// What happens to the session keys of an account when its policy changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SessionsFate {
    /// They close.
    #[default]
    Close,
    /// They stay.
    Keep,
}

/// A new policy for an account.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct KeysChange {
    /// The account.
    pub account: Address,
    /// The id of its last change of keys, waiting or done; zero for the first one.
    pub last: Digest,
    /// The policy.
    pub policy: KeyPolicy,
    /// What happens to its session keys.
    pub sessions: SessionsFate,
}

/// The signature of an ed25519 key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct KeySignature {
    /// The key.
    pub key: PublicKey,
    /// Its signature.
    pub signature: Signature,
}

/// The signature of a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct SignedByWallet {
    /// Its address.
    pub wallet: Address,
    /// Its signature.
    pub signature: WalletSignature,
}

/// Signatures of several signers on one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct KeySignatures {
    /// Those of ed25519 keys, by key, each once.
    pub keys: Box<[KeySignature]>,
    /// Those of wallets, by address, each once.
    pub wallets: Box<[SignedByWallet]>,
}

/// The signatures on a request of an account with a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct PolicySigned {
    /// The id of the account's last change of keys.
    pub last: Digest,
    /// The signatures.
    pub signatures: KeySignatures,
}

/// A change that those agree to who govern the account, and those who will.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SetKeys {
    /// The change.
    pub change: KeysChange,
    /// The ed25519 key whose hash is the address of the account.
    pub first: PublicKey,
    /// The signatures on [`KeysChange::signing_bytes`]; for the first policy also that of the account's present key.
    pub signatures: KeySignatures,
}

/// A change that the account's guardians agree to, and those who will govern it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RecoverKeys {
    /// The change.
    pub change: KeysChange,
    /// The signatures on [`KeysChange::signing_bytes`].
    pub signatures: KeySignatures,
}

/// Who asks for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum ChangedBy {
    /// Those who govern the account.
    Signers,
    /// Its guardians.
    Guardians,
}

impl KeyPolicy {
    /// Whether signers, guardians, weights and delay are within their bounds.
    pub fn is_plain(&self) -> bool {
        let (signers, guardians) = (self.keys.len() + self.wallets.len(), self.guardian_count());
        (1..=SIGNERS_MAX).contains(&signers)
            && guardians <= GUARDIANS_MAX
            && self.keys.is_sorted_by(|a, b| a.key < b.key)
            && self.wallets.is_sorted_by(|a, b| a.wallet < b.wallet)
            && self.guardian_keys.is_sorted_by(|a, b| a < b)
            && self.guardian_wallets.is_sorted_by(|a, b| a < b)
            && self.signers().all(|(_, weight)| weight > 0)
            && 1 <= self.moves
            && self.moves <= self.governs
            && u32::from(self.governs) <= self.signers().map(|(_, weight)| u32::from(weight)).sum()
            && usize::from(self.guardians) <= guardians
            && (self.guardians > 0) == (guardians > 0)
            && self.delay <= KEYS_DELAY_MAX
    }

    /// The signers with their weights: keys, then wallets.
    pub fn signers(&self) -> impl Iterator<Item = (KeyHolder, u8)> + '_ {
        let keys = self.keys.iter().map(|one| (KeyHolder::Key(one.key), one.weight));
        keys.chain(self.wallets.iter().map(|one| (KeyHolder::Wallet(one.wallet), one.weight)))
    }

    /// The weight of a signer; `None` of anybody else.
    pub fn weight(&self, of: KeyHolder) -> Option<u8> {
        self.signers().find(|(signer, _)| *signer == of).map(|(_, weight)| weight)
    }

    /// The guardians: keys, then wallets.
    pub fn guards(&self) -> impl Iterator<Item = KeyHolder> + '_ {
        let keys = self.guardian_keys.iter().copied().map(KeyHolder::Key);
        keys.chain(self.guardian_wallets.iter().copied().map(KeyHolder::Wallet))
    }

    /// The weight of all that have signed; `None` if somebody else has.
    pub fn signed(&self, signatures: &KeySignatures) -> Option<u32> {
        signatures.holders().map(|one| self.weight(one).map(u32::from)).sum()
    }

    fn guardian_count(&self) -> usize {
        self.guardian_keys.len() + self.guardian_wallets.len()
    }

    /// Keys that it names, guardians included: each costs [`KEY_WEIGHT`] fees.
    pub fn key_count(&self) -> u64 {
        (self.keys.len() + self.wallets.len() + self.guardian_count()) as u64
    }
}

impl KeySignatures {
    /// The signature of one signer alone.
    pub fn of_key(key: PublicKey, signature: Signature) -> KeySignatures {
        KeySignatures { keys: [KeySignature { key, signature }].into(), wallets: [].into() }
    }

    /// That of a wallet alone.
    pub fn of_wallet(wallet: Address, signature: WalletSignature) -> KeySignatures {
        KeySignatures { keys: [].into(), wallets: [SignedByWallet { wallet, signature }].into() }
    }

    /// These and others, in order, one of each signer: that of `self` if both have one.
    pub fn with(&self, others: &KeySignatures) -> KeySignatures {
        let mut keys: Vec<_> = self.keys.iter().chain(&others.keys).copied().collect();
        let mut wallets: Vec<_> = self.wallets.iter().chain(&others.wallets).copied().collect();
        keys.sort_by_key(|one| one.key);
        keys.dedup_by_key(|one| one.key);
        wallets.sort_by_key(|one| one.wallet);
        wallets.dedup_by_key(|one| one.wallet);
        KeySignatures { keys: keys.into(), wallets: wallets.into() }
    }

    /// Who has signed.
    pub fn holders(&self) -> impl Iterator<Item = KeyHolder> + '_ {
        let keys = self.keys.iter().map(|one| KeyHolder::Key(one.key));
        keys.chain(self.wallets.iter().map(|one| KeyHolder::Wallet(one.wallet)))
    }

    /// Whether a signer has signed.
    pub fn has(&self, holder: KeyHolder) -> bool {
        self.holders().any(|one| one == holder)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len() + self.wallets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they are 1 to `most`, in order, one of each signer.
    pub(crate) fn is_plain(&self, most: usize) -> bool {
        (1..=most).contains(&self.len())
            && self.keys.is_sorted_by(|a, b| a.key < b.key)
            && self.wallets.is_sorted_by(|a, b| a.wallet < b.wallet)
    }
}
