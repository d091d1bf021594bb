//! One account as it is hashed and proved: its key, its sequence window, its balances, and what Ethereum knows of it.

use std::io::{Error, ErrorKind, Read, Result as IoResult, Write};
use std::sync::LazyLock;

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, PublicKey, Sequence, number_in_slot, slot_of};

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};
use crate::session::AccountSessions;
use crate::window::{Window, WindowError};

const CONTEXT: &str = "walras 2026 account state v3";

/// The context of account digests is hashed once.
static KEY: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context(CONTEXT));

/// The digest of an account with this encoding in the account trie.
pub fn account_bytes_digest(bytes: &[u8]) -> [u8; 32] {
    blake3::Hasher::new_from_context_key(&KEY).update(bytes).finalize().into()
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Whether payments to it need a reference.
    pub needs_reference: bool,
}

/// The bit of an account's last byte before its session keys that says that it has had some.
const HAS_SESSIONS: u8 = 1;
/// The bit that says that payments to it need a reference.
const NEEDS_REFERENCE: u8 = 2;

/// Writes the end of an account's encoding. An account that needs no references ends as one did before there were any.
///
/// # Errors
/// The writer's.
pub fn write_account_end(
    sessions: Option<&AccountSessions>,
    needs_reference: bool,
    out: &mut impl Write,
) -> IoResult<()> {
    let has_sessions = if sessions.is_some() { HAS_SESSIONS } else { 0 };
    (has_sessions | if needs_reference { NEEDS_REFERENCE } else { 0 }).serialize(out)?;
    sessions.map_or(Ok(()), |sessions| sessions.serialize(out))
}

impl BorshSerialize for AccountState {
    fn serialize<W: Write>(&self, out: &mut W) -> IoResult<()> {
        (&self.address, &self.key, &self.window, &self.balances, &self.evm).serialize(out)?;
        write_account_end(self.sessions.as_ref(), self.needs_reference, out)
    }
}

impl BorshDeserialize for AccountState {
    fn deserialize_reader<R: Read>(from: &mut R) -> IoResult<AccountState> {
        let (address, key, window, balances, evm) = BorshDeserialize::deserialize_reader(from)?;
        let bits = u8::deserialize_reader(from)?;
        if bits > HAS_SESSIONS | NEEDS_REFERENCE {
            return Err(Error::new(ErrorKind::InvalidData, "the end of an account is none that this program knows"));
        }
        let has_sessions = bits & HAS_SESSIONS > 0;
        let sessions = has_sessions.then(|| AccountSessions::deserialize_reader(from)).transpose()?;
        Ok(AccountState { address, key, window, balances, evm, sessions, needs_reference: bits & NEEDS_REFERENCE > 0 })
    }
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
