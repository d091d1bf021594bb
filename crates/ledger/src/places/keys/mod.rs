//! Policies: accounts of institutions, for which several keys sign.
//!
//! # The protocol
//!
//! An account has no policy, and its own key signs alone; or it has one for ever ([`proofs::AccountKeys`]). A policy
//! names signers with weights, ed25519 keys and wallets, two weights that must sign (*move*, *govern*), guardians with
//! their number, and a delay. Every block is judged by the state before it.
//!
//! - A *request* of an account with a policy carries signatures of its signers, whose weights sum to *move*, or to
//!   *govern* where the table of operations says so ([`Needs`](primitives::operations::Needs)): what authorises keys,
//!   issues, stakes, or owns a venue. It names the id of the account's last change of keys. One key alone signs
//!   nothing, but for session keys within their scope, and the validator's key for what it says of the validator.
//! - Upon *SetKeys{account, last, policy, sessions}*, sent by any account: signers with *govern* of the policy in force
//!   have signed it, and signers with *govern* of the new one. It becomes the account's last change. It waits for the
//!   delay of the policy in force, and replaces a change that waits.
//! - The *first* SetKeys shows the ed25519 key whose hash is the account's address, and the account's present key has
//!   signed it. It names zero as the last change, and acts at once.
//! - Upon *RecoverKeys*, sent by any account: so many guardians as the policy in force says have signed it, and signers
//!   with *govern* of the new one. It is refused while a change waits. It waits for twice the delay, and at least
//!   86,400 heights.
//! - Upon *CompleteKeys{account}*, sent by any account, from the height on at which the wait is over: the policy that
//!   waits is in force from the next block on, and the account's session keys close, unless the change keeps them.
//! - Of several operations on the keys of one account in a block the one with the lowest id counts. The others pay and
//!   do nothing.
//!
//! The id of a change is the digest of its account, its last change, its policy and of what becomes of session keys
//! (`KeysChange::id`). Each id follows from the one before, so none returns. It depends neither on who signed nor on
//! who sent.
//!
//! # Properties
//!
//! (`model` checks them for all short histories of owners, a thief and guardians against an oracle that counts keys.)
//!
//! - *Weight*: nothing counts for the account that signers of the policy in force have not signed with the weight that
//!   it needs, each of them once, after the last change before its block.
//! - *Once*: a change counts once, and what was signed before it counts no more.
//! - *An hour is undone*: while owners have *govern* and act within the delay, a change by a thief never acts.
//! - *Nobody stands in the way*: whoever spends, or uses up numbers or balance of the account, stops no change.
//! - *Nobody is locked out*: whichever policy is in force, signers who can govern it have signed for it.
//! - *Recovery*: guardians alone change nothing before its wait is over, and nothing at all if owners answer.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | one signer counts twice | signatures stand by rising key, one of each signer; a policy names each key once |
//! | what a thief signed in advance, or owners before they changed keys, is posted later | it names another last change |
//! | a change is posted twice, or after a change that undid it | it names its last change, which is another by then |
//! | a thief of *move* uses up all numbers, or the balance, so that nobody can change keys | others send and pay changes |
//! | a thief with *govern* for an hour changes all keys | owners replace the change while it waits; the later counts |
//! | guardians conspire | owners answer within twice the delay, and at least a day: SetKeys voids a recovery |
//! | guardians void the owners' change | a recovery is refused while a change waits |
//! | a change that nobody completes keeps recoveries out for ever | anybody completes it |
//! | a mistyped key locks everybody out | those who will govern have signed; so it is with a recovery |
//! | the address of a wallet gets a policy, and its Ethereum transactions go past it | the first key hashes to the address |
//! | the account's old key signs alone, or registers another | refused once there is a policy; the flag is in the account |
//! | a session key of the time before | closed with the first policy, unless it says otherwise |
//! | signatures without end | a request has at most 16, a change 32; a sub-block has a quota of each kind before the vote |
//! | somebody pads a request with valid signatures of strangers, and its account pays for them | a stranger's signature is refused |
//! | somebody passes a request on with other signatures, and its sender follows an id that is in no block | the id is of the body |
//! | a consent to a change is used as one to a recovery, or as a request | each has its own prefix or structure |
//! | a wallet is shown a request of an older policy | the salt of its domain names the last change |
//! | a contract is created at the address | it fails, as at every address that has acted |
//! | a restart under rules without policies, so that nobody can sign | refused while an account has a policy |
//!
//! # Deviations
//!
//! From the design of a network that lives for years:
//!
//! - *A recovery needs the signatures of those who will govern, too.* Guardians who mistype would lock everybody out.
//! - *The id of a change is not that of its transaction*, which only its sender knows: signers know what they sign for
//!   before it is sent, and two senders of one change do not compete.
//! - *A signature of somebody who is no signer is refused*, though valid: each costs the account a fee.
//! - *Every SetKeys shows the first key*, not the first one alone: so its bytes alone refuse the address of a wallet.
//! - *Revoking a session key needs the weight of move*: it takes rights away, and is urgent. Unstaking needs *govern*,
//!   as staking does. What owns a venue, and keys that trade there, need *govern*.
//! - *Keys that trade at venues stay*: as after a change of a single key, the account revokes them there. They spend
//!   its deposits within their mandates only.
//! - *The scope control of session keys* comes with the freezes that it is for.
//! - *A duty key posts free duties of the lane, accuses, approves and withdraws approvals*, and cancels and stops as
//!   every session key does. Redemptions and cases of the lane, which are no duties, need *move*.
//!
//! # What every payment costs
//!
//! Nothing more: the account says in the record that holds its registered key whether it has a policy, and that is read
//! for every sender anyway. Only requests of accounts with policies look them up here.

mod custody;
#[cfg(test)]
mod model;

use std::sync::Arc;

use primitives::operations::Needs;
use primitives::{Address, AskedChange, Height, PolicySigned, SessionsFate};
use proofs::{AccountKeys, EvmRecord, Refusal, check_change};

pub(crate) use custody::{Keys, KeysEdit};

use crate::places::accounts::Account;

/// A change of keys that acts with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rekeyed {
    pub account: Address,
    /// Whether its session keys close.
    pub closes: bool,
}

impl Keys {
    /// Whether these signatures permit a request of an account.
    pub(crate) fn permit(&self, account: &Address, signed: &PolicySigned, needs: Needs) -> Result<(), Refusal> {
        self.get(account).ok_or(Refusal::NO_POLICY)?.check_request(signed, needs)
    }

    /// Checks an operation on the keys of an account against the state before the block of this height.
    pub(crate) fn check(&self, account: Option<&Account>, edit: KeysEdit<'_>, height: Height) -> Result<(), Refusal> {
        let account = account.ok_or(Refusal::UNKNOWN_ACCOUNT)?;
        let keys = self.get(&account.address());
        match edit {
            KeysEdit::Complete(_) => keys.ok_or(Refusal::NO_POLICY)?.check_completion(height).map(|_| ()),
            KeysEdit::Change(_) if keys.is_none() && acts_on_ethereum(&account.evm()) => Err(Refusal::ETHEREUM_ACCOUNT),
            KeysEdit::Change(asked) => check_change(keys, &asked, |key| account.is_controlled_by(key)),
        }
    }

    /// Applies an accepted operation in a block of this height; returns the change that acts, if one does.
    pub(crate) fn edit(&mut self, edit: KeysEdit<'_>, height: Height) -> Option<Rekeyed> {
        let account = edit.account();
        let (next, acts) = match edit {
            KeysEdit::Change(asked) => self.changed(&account, &asked, height)?,
            KeysEdit::Complete(_) => self.completed(&account, height)?,
        };
        self.set(account, next);
        acts.map(|sessions| Rekeyed { account, closes: sessions == SessionsFate::Close })
    }

    fn changed(&self, account: &Address, asked: &AskedChange<'_>, height: Height) -> Option<Acted> {
        let sessions = asked.change.sessions;
        let Some(keys) = self.get(account) else { return Some((AccountKeys::first(asked)?, Some(sessions))) };
        let (next, has_acted) = keys.after_change(asked, height);
        Some((next, has_acted.then_some(sessions)))
    }

    fn completed(&self, account: &Address, height: Height) -> Option<Acted> {
        let keys = self.get(account)?;
        let waiting = keys.check_completion(height).ok()?;
        let (first, policy, last) = (keys.first, waiting.policy.clone(), keys.last);
        Some((AccountKeys { first, policy, last, waiting: None }, Some(waiting.sessions)))
    }

    /// The keys of an account, if it has a policy.
    pub(crate) fn get(&self, account: &Address) -> Option<&AccountKeys> {
        self.shared(account).map(Arc::as_ref)
    }
}

/// The keys after an operation, and what becomes of session keys if a change acts.
type Acted = (AccountKeys, Option<SessionsFate>);

/// Whether an account has acted as one of Ethereum: no key whose hash is its address can have.
fn acts_on_ethereum(evm: &EvmRecord) -> bool {
    EvmRecord { remainder: 0, ..*evm } != EvmRecord::default()
}
