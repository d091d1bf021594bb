//! One account as it is hashed and proved: its key, its sequence window, its balances, and what Ethereum knows of it.

use std::sync::LazyLock;

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, PublicKey, Sequence, number_in_slot, slot_of};

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};
use crate::session::AccountSessions;

const CONTEXT: &str = "walras 2026 account state v3";
/// The maximum distance of a sequence number from the highest used one, above or below (rule 4).
pub const SEQUENCE_WINDOW: u64 = 64;

/// The context of account digests is hashed once.
static KEY: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context(CONTEXT));

/// The digest of an account with this encoding in the account trie.
pub fn account_bytes_digest(bytes: &[u8]) -> [u8; 32] {
    blake3::Hasher::new_from_context_key(&KEY).update(bytes).finalize().into()
}

/// Which sequence numbers an account has used: the highest, and a bitmap of the 64 up to and including it.
///
/// A number is free if it is at most 64 above the highest used, or among the 64 up to it and not used. So numbers may
/// arrive in any order, gaps may remain, and each is used at most once (SPEEDEX §K.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Window {
    highest: Sequence,
    /// Bit i is set if `highest − i` is used.
    used: u64,
}

/// Why a sequence number is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowError {
    /// It has been used.
    Used,
    /// It is more than 64 below the highest used, so the ledger no longer knows.
    TooOld,
    /// It is more than 64 above the highest used.
    TooFar,
}

impl Window {
    /// The highest number used; 0 if none is.
    pub fn highest(&self) -> Sequence {
        self.highest
    }

    /// Whether `sequence` is free.
    ///
    /// # Errors
    /// [`WindowError`] says why not.
    pub fn check(&self, sequence: Sequence) -> Result<(), WindowError> {
        if sequence > self.highest {
            return if sequence - self.highest <= SEQUENCE_WINDOW { Ok(()) } else { Err(WindowError::TooFar) };
        }
        let behind = self.highest - sequence;
        match () {
            _ if sequence == 0 || behind >= SEQUENCE_WINDOW => Err(WindowError::TooOld),
            _ if self.used >> behind & 1 == 1 => Err(WindowError::Used),
            _ => Ok(()),
        }
    }

    /// Marks a free `sequence` as used.
    pub fn mark(&mut self, sequence: Sequence) {
        if sequence > self.highest {
            let ahead = (sequence - self.highest) as u32;
            self.used = self.used.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = sequence;
        } else {
            self.used |= 1 << (self.highest - sequence);
        }
    }

    /// Marks a used `sequence` and all numbers below it as used.
    pub fn void_through(&mut self, sequence: Sequence) {
        let behind = self.highest.saturating_sub(sequence);
        self.used |= u32::try_from(behind).ok().and_then(|behind| u64::MAX.checked_shl(behind)).unwrap_or(0);
    }

    /// Marks all numbers that are free now as used.
    pub fn void_all(&mut self) {
        self.highest = self.highest.saturating_add(SEQUENCE_WINDOW);
        self.used = u64::MAX;
    }
}

/// What Ethereum knows of an account besides its balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EvmRecord {
    /// The nonce of its next Ethereum transaction, or of the next contract that it creates.
    pub nonce: u64,
    /// Wei on top of the units of asset 0, less than one unit.
    pub remainder: u64,
    /// The Keccak hash of its code; zero if it has none. The account of a key has code while it delegates (EIP-7702).
    pub code: Digest,
    /// Whether it was created as a contract: then no key can sign for it, even one that hashes to its address.
    pub is_contract: bool,
}

/// An account in the form in which it is hashed, proved and stored.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountState {
    /// Its address.
    pub address: Address,
    /// The key it registered, if it ever did.
    pub key: Option<PublicKey>,
    /// The sequence numbers it has used.
    pub window: Window,
    /// Spendable units by asset; sorted by asset, no zeros.
    pub balances: Vec<(AssetId, Amount)>,
    /// What Ethereum knows of it; `None` means an [`EvmRecord`] of zeros.
    pub evm: Option<EvmRecord>,
    /// Its session keys; `None` if it never had any.
    pub sessions: Option<AccountSessions>,
}

impl AccountState {
    /// Whether a number is free: one of the account's own, or of a session key.
    ///
    /// # Errors
    /// [`WindowError`] says why not. The numbers of a slot that is no more are too old.
    pub fn check(&self, sequence: Sequence) -> Result<(), WindowError> {
        let slot = slot_of(sequence);
        if slot == 0 {
            return self.window.check(sequence);
        }
        let sessions = self.sessions.as_ref();
        match sessions.and_then(|sessions| sessions.get(slot)) {
            Some(record) => record.window.check(number_in_slot(sequence)),
            None if sessions.is_some_and(|sessions| slot <= sessions.slots) => Err(WindowError::TooOld),
            None => Err(WindowError::TooFar),
        }
    }
}

/// The digest of an account in the account trie.
pub fn account_state_digest(state: &AccountState) -> [u8; 32] {
    account_bytes_digest(&borsh::to_vec(state).expect("writing to memory cannot fail"))
}

/// A proof that an account has a state, or does not exist.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The account; `None` proves that there is none.
    pub account: Option<AccountState>,
    /// The path in the trie of accounts.
    pub path: Vec<u8>,
}

impl AccountProof {
    /// Checks the proof against a state root; returns the account, or `None` if it is proved not to exist.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, address: &Address) -> Result<Option<&AccountState>, ProofFault> {
        let accounts = self.parts.part(root, RootPart::BALANCES)?;
        check_path(&accounts, &address.0, &self.path, self.account.as_ref().map(account_state_digest))?;
        Ok(self.account.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_voided_is_used_and_the_rest_is_as_before() {
        let mut window = Window::default();
        [70, 75].into_iter().for_each(|number| window.mark(number));
        window.void_through(70);
        let free = |window: &Window| (1..200).filter(|number| window.check(*number).is_ok()).collect::<Vec<_>>();
        assert_eq!(free(&window), [71, 72, 73, 74].into_iter().chain(76..=139).collect::<Vec<_>>());
        window.void_all();
        assert_eq!(free(&window), (140..200).collect::<Vec<_>>());
        window.void_through(1);
        assert_eq!(free(&window), (140..200).collect::<Vec<_>>());
    }

    proptest! {
        /// Compares with the plain rule: a set of used numbers.
        #[test]
        fn each_number_is_used_once_within_64_of_the_highest(steps in proptest::collection::vec(0..200u64, 1..200)) {
            let mut window = Window::default();
            let mut used = BTreeSet::new();
            for step in steps {
                let highest = used.last().copied().unwrap_or(0);
                let sequence = (highest + step).saturating_sub(90);
                let expected = if sequence > highest + 64 {
                    Err(WindowError::TooFar)
                } else if sequence == 0 || sequence + 64 <= highest {
                    Err(WindowError::TooOld)
                } else if used.contains(&sequence) {
                    Err(WindowError::Used)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.check(sequence), expected);
                if expected.is_ok() {
                    window.mark(sequence);
                    used.insert(sequence);
                }
            }
        }
    }
}
