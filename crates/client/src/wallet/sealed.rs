//! Sends orders in an envelope, which nobody reads before its block is decided (crate `sealing`).
//!
//! *Upon orders to be sealed*: the committee's key is asked for, and nothing is sent where there is none. Each order
//! gets a number of its account and is signed for the envelope, by its payer and number. The envelope is stored like
//! any transaction, with a note of what it holds, before it is sent. A retry sends the same bytes. If the envelope ends
//! before a block has it, or if its number is taken, nothing of it can count any more: the same orders are sealed anew
//! under the same numbers.
//!
//! # Properties
//!
//! 1. *No order goes plain.* Without a key, or upon any refusal, there is an error and no other way.
//! 2. *An order counts once.* The same operation is not sealed again while an envelope with it may still open.
//! 3. *The node is asked nothing about the order*: neither for a preview nor for typed data. It sees that the account's
//!    numbers are asked for.
//!
//! The key is the one that the node names. A node that lies can read what is sealed to its own: use one's own, or check
//! `/v1/seal/proof`.

use std::io::ErrorKind;

use api::{OutcomeBody, SealBody, SealFailedBody, SealMakingBody};
use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Body, Enclosure, Height, Operation, Sequence, Transaction, TransactionId};
use sealing::{EnvelopeTerms, SealFault, SealedText, SealingKey, seal};

use super::held::is_by;
use super::{
    ENDED, Fate, Pending, Progress, RENUMBERED_MAX, Reservation, Signatory, Tell, Wallet, beside, is_number_taken,
};
use crate::durable::write_durable;
use crate::error::ClientError;
use crate::hexadecimal::hex_bytes;

/// Heights for which an envelope may be put into a block. The fewer, the less its first reader chooses.
const ENVELOPE_LASTS: Height = 16;

/// What became of an envelope, and of each order in it.
#[derive(Debug)]
pub struct SealedSent {
    /// The envelope.
    pub envelope: TransactionId,
    /// What became of it.
    pub fate: Fate,
    /// The orders by their ids in the envelope, with their fates once it is open and paid.
    pub orders: Vec<(TransactionId, Fate)>,
}

/// Who pays for envelopes.
pub type Payer<'a> = (&'a Wallet, &'a Signatory);

/// What an envelope that was sent holds.
#[derive(BorshSerialize, BorshDeserialize)]
struct Note {
    envelope: Transaction,
    orders: Vec<Transaction>,
}

impl Wallet {
    /// Seals operations, at most 32, delivers the envelope and returns the fates. `payer` signs and pays for it; it is
    /// who trades, or another account of the same owner, which hides who trades.
    ///
    /// # Errors
    /// [`ClientError::NoSealingKey`], [`ClientError::Unsealed`], [`ClientError::SentBefore`] of the envelope, or
    /// others; then no order has an effect.
    pub fn send_sealed(
        &self,
        trader: &Signatory,
        payer: Option<Payer<'_>>,
        operations: &[Operation],
        tell: Tell<'_>,
    ) -> Result<SealedSent, ClientError> {
        if let Some(other) = operations.iter().find(|one| !one.is_sealable()) {
            let what = format!("an envelope holds orders, replacements and cancels: send {} plain", other.row().name);
            return Err(ClientError::Unsealed(what));
        }
        let mut numbers = None;
        for _ in 0..RENUMBERED_MAX {
            let note = self.seal(trader, payer, operations, &mut numbers, tell)?;
            let wallet = payer.map_or(self, |(wallet, _)| wallet);
            match wallet.deliver(&note.envelope, tell) {
                Err(error) if is_number_taken(&error) || error.code() == Some(ENDED) => {
                    self.forget_note(&note.envelope.id());
                    tell(Progress::Renumbered(&error));
                }
                Err(error) => return Err(error),
                Ok(fate) => return self.outcomes(&note, fate),
            }
        }
        Err(ClientError::NumbersTaken)
    }

    /// Signs operations and their envelope, and stores both. The numbers of the operations are kept for the next try.
    fn seal(
        &self,
        trader: &Signatory,
        payer: Option<Payer<'_>>,
        operations: &[Operation],
        numbers: &mut Option<Sequence>,
        tell: Tell<'_>,
    ) -> Result<Note, ClientError> {
        let (number, to) = self.sealing_key()?;
        let (paying, signer) = payer.unwrap_or((self, trader));
        let _reservation = Reservation::wait(&self.key_file)?;
        let _other = (paying.key_file != self.key_file).then(|| Reservation::wait(&paying.key_file)).transpose()?;
        self.check_not_sealed(trader, operations)?;
        let stored = self.stored(&Pending::of(&self.key_file), trader, None)?.0;
        let first = match numbers.or(self.numbering.sequence) {
            Some(first) => first,
            None => self.next_sequence(trader, stored, tell)?,
        };
        *numbers = Some(first);
        let taken = if (signer.account, signer.slot) == (trader.account, trader.slot) {
            stored.max(Some(first.saturating_add(operations.len() as Sequence - 1)))
        } else {
            paying.stored(&Pending::of(&paying.key_file), signer, None)?.0
        };
        let sequence = paying.next_sequence(signer, taken, tell)?;
        let height = self.node.height()?;
        let until = self.numbering.until.unwrap_or(height.saturating_add(ENVELOPE_LASTS));
        let within = Enclosure { payer: signer.account, sequence };
        let signed = |(sequence, operation): (Sequence, &Operation)| {
            let operation = operation.clone();
            let body = Body { chain: trader.chain, account: trader.account, sequence, until, operation };
            body.sign_sealed(&trader.network, &within, &trader.key)
        };
        let orders: Vec<Transaction> = (first..).zip(operations).map(signed).collect();
        let envelope = envelope_of(&orders, signer, (number, &to), (sequence, until))?;
        let note = Note { envelope, orders };
        self.keep_note(&note)?;
        Pending::of(&paying.key_file).keep(&note.envelope)?;
        Ok(note)
    }

    /// The key that is in force in the next block, with its number.
    ///
    /// # Errors
    /// [`ClientError::NoSealingKey`] says why there is none.
    pub fn sealing_key(&self) -> Result<(u64, SealingKey), ClientError> {
        let body: SealBody = self.node.get("/v1/seal")?;
        let none = || ClientError::NoSealingKey { server: self.node.url().into(), why: why_no_key(&body) };
        let number = body.in_force.ok_or_else(none)?;
        let found = body.keys.iter().find(|key| key.number == number).and_then(|key| hex_bytes(&key.key));
        let bytes: Option<[u8; 96]> = found.and_then(|bytes| bytes.try_into().ok());
        let key = bytes.and_then(|bytes| SealingKey::parse(&bytes).ok());
        Ok((number, key.ok_or_else(|| self.node.foreign("its sealing key is no point of the curve"))?))
    }

    /// The fates of the orders of an envelope, once it has its own.
    fn outcomes(&self, note: &Note, fate: Fate) -> Result<SealedSent, ClientError> {
        let Note { envelope, orders } = note;
        let within = Enclosure { payer: envelope.body.account, sequence: envelope.body.sequence };
        let is_open = matches!(&fate, Fate::Committed(body)
            if matches!(&body.outcome, Some(OutcomeBody::Sealed { became, .. }) if became == "opened"));
        let told = |order: &Transaction| {
            let id = order.sealed_id(&within);
            Ok((id, if is_open { Fate::of(&self.node, &id)? } else { fate.clone() }))
        };
        let orders = orders.iter().map(told).collect::<Result<Vec<_>, ClientError>>()?;
        if fate.is_final() {
            self.forget_note(&envelope.id());
        }
        Ok(SealedSent { envelope: envelope.id(), fate, orders })
    }

    /// Refuses what an envelope holds that may still open.
    fn check_not_sealed(&self, trader: &Signatory, operations: &[Operation]) -> Result<(), ClientError> {
        for note in self.notes(trader)? {
            let is_same = |kept: &Transaction| operations.contains(&kept.body.operation);
            if !self.numbering.again && note.orders.iter().any(is_same) {
                return Err(ClientError::SentBefore(note.envelope.id()));
            }
        }
        Ok(())
    }

    /// The highest number of a key's orders in envelopes that may still open.
    pub(super) fn highest_sealed(&self, signatory: &Signatory) -> Result<Option<Sequence>, ClientError> {
        let notes = self.notes(signatory)?;
        Ok(notes.iter().flat_map(|note| &note.orders).map(|order| order.body.sequence).max())
    }

    /// What a key has in envelopes that may still open. Those that are final or have ended are removed.
    fn notes(&self, signatory: &Signatory) -> Result<Vec<Note>, ClientError> {
        let folder = beside(&self.key_file, ".sealed");
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(ClientError::file(&folder, cause.to_string(), cause)),
        };
        let mut living = Vec::new();
        for entry in entries {
            let path = entry.map_err(|cause| ClientError::file(&folder, cause.to_string(), cause))?.path();
            let bytes = std::fs::read(&path).map_err(|cause| ClientError::file(&path, cause.to_string(), cause))?;
            // A torn one was never sent: it is whole before its envelope is stored.
            let Ok(note) = borsh::from_slice::<Note>(&bytes) else { continue };
            if !note.orders.iter().any(|order| is_by(order, signatory)) {
                continue;
            }
            let id = note.envelope.id();
            let is_final = Fate::of(&self.node, &id)?.is_final();
            if is_final || note.envelope.body.until < self.node.height()? {
                self.forget_note(&id);
            } else {
                living.push(note);
            }
        }
        Ok(living)
    }

    fn keep_note(&self, note: &Note) -> Result<(), ClientError> {
        let folder = beside(&self.key_file, ".sealed");
        std::fs::create_dir_all(&folder).map_err(|cause| ClientError::file(&folder, cause.to_string(), cause))?;
        let bytes = borsh::to_vec(note).expect("writing to memory cannot fail");
        write_durable(&folder.join(note.envelope.id().to_string()), &bytes)
    }

    fn forget_note(&self, envelope: &TransactionId) {
        let folder = beside(&self.key_file, ".sealed");
        // A note that remains is only asked about again.
        let _ = std::fs::remove_file(folder.join(envelope.to_string()));
        let _ = std::fs::remove_dir(&folder);
    }
}

/// An envelope of signed orders, under its number and its end.
fn envelope_of(
    orders: &[Transaction],
    payer: &Signatory,
    (key, to): (u64, &SealingKey),
    (sequence, until): (Sequence, Height),
) -> Result<Transaction, ClientError> {
    let unsealed = |fault: SealFault| ClientError::Unsealed(fault.to_string());
    let (network, signer, account) = (payer.network, payer.key.public(), payer.account);
    let terms = EnvelopeTerms { network, signer, key, payer: account, sequence, until };
    let mut drawn = [0; 32];
    getrandom::fill(&mut drawn)
        .map_err(|error| ClientError::Unsealed(format!("the system provides no random numbers: {error}")))?;
    let envelope = seal(to, &terms, &SealedText(orders.to_vec()), &drawn).map_err(unsealed)?;
    let operation = Operation::Sealed(Box::new(envelope.to_bytes(key)));
    let body = Body { chain: payer.chain, account, sequence, until, operation };
    Ok(body.sign(&network, &payer.key))
}

/// Why a node names no key that is in force.
fn why_no_key(body: &SealBody) -> String {
    let Some(_) = &body.threshold else {
        return "this network has no sealing key: its genesis does not name `seals`".into();
    };
    if let Some(key) = body.keys.iter().find(|key| key.from > body.height) {
        let (number, from) = (key.number, key.from);
        return format!("key {number} opens envelopes from block {from} on, and the newest is {}", body.height);
    }
    if let Some(SealMakingBody { number, step, ends, awaited }) = &body.making {
        let whom = if awaited.is_empty() { "nobody".into() } else { awaited.join(", ") };
        return format!("the committee makes key {number}: the step `{step}` awaits {whom}, until block {ends}");
    }
    match &body.failed {
        Some(SealFailedBody { number, step, silent, again, .. }) => format!(
            "the committee could not make key {number}: in the step `{step}` these did not take part: {}. It tries \
             again after block {again}",
            silent.join(", ")
        ),
        None => "the committee has not begun to make one".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> SealBody {
        let threshold = Some("fewest".into());
        SealBody { height: 9, threshold, in_force: None, keys: Vec::new(), making: None, failed: None }
    }

    #[test]
    fn a_network_without_a_key_says_why() {
        let none = SealBody { threshold: None, ..body() };
        assert!(why_no_key(&none).contains("its genesis does not name `seals`"));
        let awaited = vec!["0x01".into()];
        let making = Some(SealMakingBody { number: 2, step: "deal".into(), ends: 40, awaited });
        assert!(why_no_key(&SealBody { making, ..body() }).contains("`deal` awaits 0x01, until block 40"));
        let silent = vec!["0x02".into()];
        let failed = Some(SealFailedBody { number: 3, step: "hold".into(), height: 5, again: 1_029, silent });
        assert!(why_no_key(&SealBody { failed, ..body() }).contains("did not take part: 0x02. It tries again after"));
        assert!(why_no_key(&body()).contains("has not begun"));
    }
}
