//! Transactions that another one may submit for this key: what a [`DisconnectGuard`](crate::DisconnectGuard) has left
//! with a node.
//!
//! Such a transaction has a number that nothing else of this key file takes, lies in the folder `.held` beside the
//! file, and is never sent by this wallet. Once it is let go, it moves to the folder `.released`: the next transaction
//! takes its number, with a later end. Then the first one counts no more, wherever it still lies.

use primitives::{Body, Height, Operation, Sequence, SessionOperation, SessionSlot, Transaction, UNTIL_USUAL, slot_of};

use super::fate::Fate;
use super::pending::Pending;
use super::reservation::Reservation;
use super::{Signatory, Tell, Wallet};
use crate::error::ClientError;

/// A number for a transaction.
pub(super) struct Number {
    pub(super) sequence: Sequence,
    /// The least end of whatever takes it.
    pub(super) least: Height,
    /// What had it and was let go.
    released: Option<Transaction>,
}

impl Number {
    /// Ends the claim of what had it before; to be called once what takes it is stored.
    pub(super) fn take(self, wallet: &Wallet) {
        if let Some(released) = self.released {
            Pending::released(&wallet.key_file).forget(&released.id());
        }
    }

    pub(super) fn named(sequence: Sequence) -> Number {
        Number { sequence, least: 0, released: None }
    }
}

impl Wallet {
    /// Signs an operation that another one may submit later, and stores it apart. It counts for the usual number of
    /// heights.
    ///
    /// # Errors
    /// [`ClientError`]; then nothing is stored.
    pub fn hold(&self, signatory: &Signatory, operation: Operation) -> Result<Transaction, ClientError> {
        let Signatory { chain, network, account, key, .. } = signatory;
        let _reservation = Reservation::wait(&self.key_file)?;
        self.clear_torn()?;
        let (stored, _) = self.stored(&Pending::of(&self.key_file), signatory, Some(&operation))?;
        let number = self.free_number(signatory, stored, &mut |_| {})?;
        let until = self.node.height()?.saturating_add(UNTIL_USUAL).max(number.least);
        let body = Body { chain: *chain, account: *account, sequence: number.sequence, until, operation };
        let transaction = body.sign(network, key);
        Pending::held(&self.key_file).keep(&transaction)?;
        number.take(self);
        Ok(transaction)
    }

    /// Gives the number of a held transaction to the next one.
    ///
    /// # Errors
    /// [`ClientError::File`]; then it is still held.
    pub fn let_go(&self, transaction: &Transaction) -> Result<(), ClientError> {
        let _reservation = Reservation::wait(&self.key_file)?;
        Pending::released(&self.key_file).keep(transaction)?;
        Pending::held(&self.key_file).forget(&transaction.id());
        Ok(())
    }

    /// The other held transactions of the same key that guard the same: of lost connections.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub(crate) fn held_before(&self, than: &[&Transaction]) -> Result<Vec<Transaction>, ClientError> {
        let Some(first) = than.first() else { return Ok(Vec::new()) };
        let mut all = Pending::held(&self.key_file).all()?;
        all.retain(|held| guarded(held) == guarded(first) && than.iter().all(|one| one.id() != held.id()));
        Ok(all)
    }

    /// The highest number of the held transactions of a key. Those that have ended are removed.
    pub(super) fn highest_held(&self, signatory: &Signatory) -> Result<Option<Sequence>, ClientError> {
        let held = self.living(&Pending::held(&self.key_file), signatory)?;
        Ok(held.iter().map(|held| held.body.sequence).max())
    }

    /// What may still count of a key's transactions in a folder.
    fn living(&self, folder: &Pending, signatory: &Signatory) -> Result<Vec<Transaction>, ClientError> {
        let mut all = folder.all()?;
        all.retain(|one| is_by(one, signatory));
        if all.is_empty() {
            return Ok(all);
        }
        let height = self.node.height()?;
        let (living, ended): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.body.until > height);
        ended.iter().for_each(|one| folder.forget(&one.id()));
        Ok(living)
    }

    /// A number that was let go, or the next one.
    pub(super) fn free_number(
        &self,
        signatory: &Signatory,
        stored: Option<Sequence>,
        tell: Tell<'_>,
    ) -> Result<Number, ClientError> {
        let folder = Pending::released(&self.key_file);
        for released in self.living(&folder, signatory)? {
            let (highest, _) = self.numbers(signatory)?;
            let sequence = released.body.sequence;
            let is_old = sequence.saturating_add(signatory.sequence_window) <= highest;
            if is_old || matches!(Fate::of(&self.node, &released.id())?, Fate::Committed(_)) {
                folder.forget(&released.id());
                continue;
            }
            return Ok(Number { sequence, least: released.body.until.saturating_add(1), released: Some(released) });
        }
        self.next_sequence(signatory, stored, tell).map(Number::named)
    }

    /// The highest committed number of what signs, and a free one.
    pub(crate) fn numbers(&self, signatory: &Signatory) -> Result<(Sequence, Sequence), ClientError> {
        match signatory.slot {
            0 => self.node.sequence(&signatory.account),
            slot => self.node.session_sequence(&signatory.account, slot),
        }
    }
}

pub(super) fn is_by(transaction: &Transaction, Signatory { account, slot, .. }: &Signatory) -> bool {
    transaction.body.account == *account && slot_of(transaction.body.sequence) == *slot
}

/// What a transaction that was left ends: the offers of a slot, or named ones.
fn guarded(transaction: &Transaction) -> (primitives::Address, SessionSlot, Option<SessionSlot>) {
    let body = &transaction.body;
    let stopped = match &body.operation {
        Operation::Session(operation) => match **operation {
            SessionOperation::Alive { slot, .. } => Some(slot),
            _ => None,
        },
        _ => None,
    };
    (body.account, slot_of(body.sequence), stopped)
}
