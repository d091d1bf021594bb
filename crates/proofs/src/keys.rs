//! Policies of accounts as they stand in the state, what they permit, and proofs of them.
//!
//! What each signature must be for is here, and not in the ledger alone: a wallet tells by the same functions who has
//! signed and what is missing.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::operations::Needs;
use primitives::{
    Address, AskedChange, ChangedBy, Digest, Height, KeyHolder, KeyPolicy, PolicySigned, PublicKey, SessionsFate,
};

use crate::refusal::Refusal;
use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};

const VALUE_CONTEXT: &str = "walras 2026 account keys v1";

/// The fewest heights that a recovery waits: a day.
pub const RECOVERY_WAIT_MIN: Height = 86_400;

/// The policy of an account, and the change of it that waits.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountKeys {
    /// The ed25519 key whose hash is the account's address.
    pub first: PublicKey,
    /// The policy in force.
    pub policy: KeyPolicy,
    /// The id of the last change, waiting or done. All that is signed for the account names it.
    pub last: Digest,
    /// The last change, while it waits.
    pub waiting: Option<WaitingKeys>,
}

/// A change of keys that waits.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct WaitingKeys {
    /// The policy.
    pub policy: KeyPolicy,
    /// What happens to the account's session keys.
    pub sessions: SessionsFate,
    /// Who asked for it.
    pub by: ChangedBy,
    /// The first height at which it may be completed.
    pub due: Height,
}

impl AccountKeys {
    /// Whether these signatures permit a request of the account that needs such a weight.
    ///
    /// # Errors
    /// [`Refusal`] says what is missing.
    pub fn check_request(&self, signed: &PolicySigned, needs: Needs) -> Result<(), Refusal> {
        let needed = match needs {
            Needs::Move => self.policy.moves,
            Needs::Govern => self.policy.governs,
        };
        match self.policy.signed(&signed.signatures) {
            _ if signed.last != self.last => Err(Refusal::KEYS_CHANGED),
            None => Err(Refusal::NOT_A_SIGNER),
            Some(weight) if weight < needed.into() => Err(Refusal::TOO_FEW_SIGNED),
            Some(_) => Ok(()),
        }
    }

    /// Whether those who govern the account agree to a change.
    fn check_signers(&self, asked: &AskedChange<'_>) -> Result<(), Refusal> {
        let weight = asked.signatures.holders().filter_map(|one| self.policy.weight(one)).map(u32::from).sum::<u32>();
        if weight < self.policy.governs.into() {
            return Err(Refusal::TOO_FEW_SIGNED);
        }
        check_new(asked, |one| self.policy.weight(one).is_some())
    }

    /// Whether enough guardians agree to a recovery, and no change waits.
    fn check_guardians(&self, asked: &AskedChange<'_>) -> Result<(), Refusal> {
        let guards = |one: KeyHolder| self.policy.guards().any(|guard| guard == one);
        let agreed = asked.signatures.holders().filter(|one| guards(*one)).count();
        match () {
            _ if self.waiting.is_some() => Err(Refusal::CHANGE_WAITS),
            _ if self.policy.guardians == 0 || agreed < self.policy.guardians.into() => Err(Refusal::TOO_FEW_GUARDIANS),
            _ => check_new(asked, guards),
        }
    }

    /// Heights that a change waits.
    pub fn wait(&self, by: ChangedBy) -> Height {
        match by {
            ChangedBy::Signers => self.policy.delay.into(),
            ChangedBy::Guardians => (2 * Height::from(self.policy.delay)).max(RECOVERY_WAIT_MIN),
        }
    }

    /// The keys after a change in a block of this height, and whether it has acted.
    pub fn after_change(&self, asked: &AskedChange<'_>, height: Height) -> (AccountKeys, bool) {
        let (last, policy, wait) = (asked.change.id(asked.by), asked.change.policy.clone(), self.wait(asked.by));
        if wait == 0 {
            return (AccountKeys { first: self.first, policy, last, waiting: None }, true);
        }
        let due = height.saturating_add(wait);
        let waiting = WaitingKeys { policy, sessions: asked.change.sessions, by: asked.by, due };
        (AccountKeys { last, waiting: Some(waiting), ..self.clone() }, false)
    }

    /// The first keys of an account, if the change names the key that its address is of.
    pub fn first(asked: &AskedChange<'_>) -> Option<AccountKeys> {
        let (policy, last) = (asked.change.policy.clone(), asked.change.id(asked.by));
        asked.first.map(|first| AccountKeys { first, policy, last, waiting: None })
    }

    /// The change that waits, if it may be completed in a block of this height.
    ///
    /// # Errors
    /// [`Refusal`] if none waits, or its wait is not over.
    pub fn check_completion(&self, height: Height) -> Result<&WaitingKeys, Refusal> {
        let waiting = self.waiting.as_ref().ok_or(Refusal::NO_CHANGE_WAITS)?;
        if waiting.due <= height { Ok(waiting) } else { Err(Refusal::CHANGE_NOT_DUE) }
    }

    /// The fault of what was decoded as the keys of an account, if there is one.
    pub fn fault(&self, account: &Address) -> Option<&'static str> {
        Some(match &self.waiting {
            _ if self.first.address() != *account => "the key of an address is another",
            _ if !self.policy.is_plain() => "a policy is out of bounds",
            Some(waiting) if !waiting.policy.is_plain() => "a policy that waits is out of bounds",
            _ => return None,
        })
    }

    /// The value of an account's entry in the trie of policies.
    pub fn value(&self) -> [u8; 32] {
        Digest::of(VALUE_CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail")).0
    }
}

/// Whether a change is permitted by the keys that an account has; `is_present` tells whether a key alone controls it
/// now, as long as it has no policy.
///
/// # Errors
/// [`Refusal`] says what is missing.
pub fn check_change(
    keys: Option<&AccountKeys>,
    asked: &AskedChange<'_>,
    is_present: impl Fn(&PublicKey) -> bool,
) -> Result<(), Refusal> {
    let last = keys.map_or(Digest::default(), |keys| keys.last);
    let is_present = |one: KeyHolder| matches!(one, KeyHolder::Key(key) if is_present(&key));
    match (keys, asked.by) {
        (None, ChangedBy::Guardians) => Err(Refusal::NO_POLICY),
        _ if asked.change.last != last => Err(Refusal::KEYS_CHANGED),
        (Some(keys), ChangedBy::Signers) => keys.check_signers(asked),
        (Some(keys), ChangedBy::Guardians) => keys.check_guardians(asked),
        (None, ChangedBy::Signers) if asked.signatures.holders().any(is_present) => check_new(asked, is_present),
        (None, ChangedBy::Signers) => Err(Refusal::WRONG_SIGNER),
    }
}

/// Whether those agree who will govern the account, so that no typing error locks everybody out. Nobody else may have
/// signed, but for these others.
fn check_new(asked: &AskedChange<'_>, may: impl Fn(KeyHolder) -> bool) -> Result<(), Refusal> {
    let new = &asked.change.policy;
    let mut weight = 0;
    for one in asked.signatures.holders() {
        match new.weight(one) {
            Some(own) => weight += u32::from(own),
            None if may(one) => {}
            None => return Err(Refusal::NOT_A_SIGNER),
        }
    }
    if weight < new.governs.into() { Err(Refusal::NEW_SIGNERS_MISSING) } else { Ok(()) }
}

/// A proof that an account has a policy, or has none.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct KeysProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The keys; `None` proves that the account has no policy.
    pub keys: Option<AccountKeys>,
    /// The path in the trie of policies; empty while no account of the chain has one.
    pub path: Vec<u8>,
}

impl KeysProof {
    /// Checks the proof against a state root; returns the keys, or `None` if the account is proved to have no policy.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, account: &Address) -> Result<Option<&AccountKeys>, ProofFault> {
        match self.parts.part(root, RootPart::KEYS) {
            Err(ProofFault::NoPart(_)) if self.keys.is_none() => return Ok(None),
            part => check_path(&part?, &account.0, &self.path, self.keys.as_ref().map(AccountKeys::value))?,
        }
        Ok(self.keys.as_ref())
    }
}
