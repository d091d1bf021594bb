//! Which transactions of session keys count, and in which order those of an account stand.

use primitives::operations::Signers;
use primitives::{
    Body, Height, HolderState, Operation, SESSION_SLOTS_MAX, SessionOperation, SessionScope, SessionTerms, SignedBy,
    Transaction, is_lane_duty, number_in_slot, slot_of,
};
use proofs::{Refusal, SESSIONS_MAX, SessionRecord};

use super::slots::SlotOffers;
use crate::places::accounts::Account;
use crate::places::offers::{ENDS_MAX, LIFE_MAX};

/// In which order transactions of an account stand if its balance does not suffice for all: those of a session key are
/// removed before those of the account's own key, and of the former first what is no relief. Filter and pool follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// The account's own key signs.
    Owner,
    /// A session key cancels offers, or moves a timer.
    KeyRelief,
    /// Anything else of a session key.
    Key,
}

impl Precedence {
    /// That of a transaction.
    pub fn of(body: &Body) -> Precedence {
        match slot_of(body.sequence) {
            0 => Precedence::Owner,
            _ if is_relief(&body.operation) => Precedence::KeyRelief,
            _ => Precedence::Key,
        }
    }
}

/// Whether a transaction stands when others of its account or slot do not: it only gives units back, or costs nothing.
pub(crate) fn is_relief(operation: &Operation) -> bool {
    match operation {
        Operation::Cancel(_) => true,
        Operation::Present { .. } | Operation::Approve { .. } | Operation::Unapprove { .. } => true,
        Operation::SealDuty { .. } => true,
        Operation::Session(operation) => !matches!(**operation, SessionOperation::Authorize { .. }),
        _ => false,
    }
}

/// Whether a key of scope *duty* may do it: of posts about the lane only what a member owes.
fn is_owed(operation: &Operation) -> bool {
    !matches!(operation, Operation::Lane(post) if !is_lane_duty(post))
}

/// Whether a key of scope *control* may do it: it opens nobody.
fn is_freeze(operation: &Operation) -> bool {
    matches!(operation, Operation::SetHolder { state: HolderState::Frozen, .. })
}

/// The state before a block, as far as session keys are judged by it.
pub(crate) struct SessionRules<'l> {
    /// The height of the last block.
    pub height: Height,
    /// The open offers of session keys.
    pub slots: &'l SlotOffers,
}

impl SessionRules<'_> {
    /// Checks a transaction of a session key against the state before the block, but for what it uses.
    pub(crate) fn check(&self, account: &Account, transaction: &Transaction) -> Result<(), Refusal> {
        let (body, next) = (&transaction.body, self.height.saturating_add(1));
        let slot = slot_of(body.sequence);
        let session = account.session(slot).ok_or(Refusal::UNKNOWN_SESSION)?;
        let is_signed = matches!(transaction.signed_by, SignedBy::Key { signer, .. } if signer == session.key);
        match () {
            _ if !is_signed => return Err(Refusal::WRONG_SESSION_KEY),
            _ if session.is_closed || session.until < next => return Err(Refusal::SESSION_ENDED),
            _ => {}
        }
        session.window.check(number_in_slot(body.sequence))?;
        match body.operation.row().signer {
            Signers::Duty | Signers::Validator if session.scope == SessionScope::Duty && is_owed(&body.operation) => {}
            Signers::Controlling if session.scope == SessionScope::Control && is_freeze(&body.operation) => {}
            Signers::Owner | Signers::Duty | Signers::Controlling | Signers::Validator => {
                return Err(Refusal::SESSION_SCOPE);
            }
            Signers::Trading => self.check_trader(session)?,
            Signers::Cancelling => {}
        }
        match &body.operation {
            Operation::Session(operation) => match **operation {
                SessionOperation::Alive { through: 0, .. } => Ok(()),
                SessionOperation::Alive { slot: of, .. } if of == slot && session.scope == SessionScope::Trade => {
                    Ok(())
                }
                _ => Err(Refusal::SESSION_SCOPE),
            },
            Operation::Replace(replace) if slot_of(replace.old.offer) != slot => Err(Refusal::SESSION_REPLACES),
            _ => Ok(()),
        }
    }

    fn check_trader(&self, session: &SessionRecord) -> Result<(), Refusal> {
        match () {
            _ if session.scope != SessionScope::Trade => Err(Refusal::SESSION_SCOPE),
            _ if session.alive <= self.height => Err(Refusal::SESSION_LAPSED),
            _ if self.slots.lapsing_at(session.alive) >= ENDS_MAX => Err(Refusal::SESSION_CROWDED),
            _ => Ok(()),
        }
    }

    /// Checks an operation on session keys against the state before the block.
    pub(crate) fn check_operation(&self, account: &Account, operation: &SessionOperation) -> Result<(), Refusal> {
        match operation {
            SessionOperation::Authorize { terms, .. } => self.check_terms(account, terms),
            SessionOperation::Revoke { slot } => account.session(*slot).map(|_| ()).ok_or(Refusal::UNKNOWN_SESSION),
            SessionOperation::Alive { slot, through } => {
                let session = account.session(*slot).ok_or(Refusal::UNKNOWN_SESSION)?;
                let id = (account.address(), *slot);
                let crowd = || u64::from(self.slots.lapsing_at(*through)) + u64::from(self.slots.open(id));
                match through {
                    0 if session.alive <= self.height => Err(Refusal::SESSION_LAPSED),
                    0 => Ok(()),
                    _ if session.is_closed || session.until <= self.height => Err(Refusal::SESSION_ENDED),
                    _ if *through <= session.alive.max(self.height + 1) => Err(Refusal::SESSION_THROUGH),
                    _ if *through > session.until => Err(Refusal::SESSION_THROUGH),
                    _ if crowd() > u64::from(ENDS_MAX) => Err(Refusal::SESSION_CROWDED),
                    _ => Ok(()),
                }
            }
        }
    }

    fn check_terms(&self, account: &Account, terms: &SessionTerms) -> Result<(), Refusal> {
        let next = self.height.saturating_add(1);
        let (slots, records) = account.sessions().map_or((0, &[][..]), |all| (all.slots, &all.records));
        let mut live = records.iter().filter(|record| !record.is_over(next));
        let is_taken = |key| live.clone().any(|record| record.key == key) || account.is_controlled_by(&key);
        match () {
            _ if slots >= SESSION_SLOTS_MAX || terms.slot != slots + 1 => Err(Refusal::SESSION_SLOT),
            _ if terms.alive < next || terms.until - next > LIFE_MAX => Err(Refusal::SESSION_HEIGHTS),
            _ if is_taken(terms.key) => Err(Refusal::SESSION_KEY_TAKEN),
            _ if live.by_ref().count() >= SESSIONS_MAX => Err(Refusal::SESSIONS_FULL),
            _ => Ok(()),
        }
    }
}
