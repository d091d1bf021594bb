//! Sends transactions so that none is lost track of: each is stored before it is sent; waiting is told and bounded; it
//! can be sent again unchanged.
//!
//! A transaction that was refused uses no number, and everybody who saw its bytes can send it again until it ends. So
//! it stays stored until then, and the same operation is not signed a second time: the same bytes are sent again,
//! which take effect once whoever sends them.
//!
//! Its sequence number is above those of all transactions that the node knows and that are stored here. If another
//! wallet with the same key was faster and used the number, the operation is signed again under another one: the first
//! transaction can never take effect. While another one with the number only waits, either may still take effect. So
//! nothing else is signed: the same bytes are sent again until the number is decided.
//!
//! Orders may go in envelopes, which nobody reads before their block is decided: see `sealed`.
//!
//! Nothing is printed: what a person may want to see meanwhile goes to a callback ([`Progress`]).

mod fate;
mod held;
mod pending;
mod reservation;
mod sealed;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use api::{LimitsBody, TransactionBody};
use primitives::{
    Address, Body, Digest, Height, Operation, SecretKey, Sequence, SessionSlot, Transaction, TransactionId, UNTIL_USUAL,
};

pub use fate::Fate;
use held::{Number, is_by};
pub use pending::Pending;
pub use reservation::{NetworkPin, Reservation};
pub use sealed::{Payer, SealedSent};

use crate::assets::Assets;
use crate::error::ClientError;
use crate::node::{NodeClient, SigningTerms};

/// Maximum wait for a node that lags, before anything is signed.
const LAG_PATIENCE: Duration = Duration::from_secs(30);
/// The first pause between two queries, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// Waiting is told after the first time, then at the second interval.
const TELL: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));
/// How often an operation is signed under another number because its number was used meanwhile.
const RENUMBERED_MAX: u32 = 20;
/// A node's codes for a number that another transaction has used.
const NUMBER_TAKEN: [&str; 2] = ["sequence_used", "sequence_too_old"];
/// A node's code for a transaction that has ended: it can never count.
const ENDED: &str = "ended";
/// A node's code for a number that another transaction has which is pending.
const NUMBER_CONTESTED: &str = "sequence_conflict";

/// What happens while a wallet sends.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The transaction is signed and stored, and is sent now.
    Sending(TransactionId),
    /// Its number was taken: the operation is signed again under another one.
    Renumbered(&'a ClientError),
    /// It has been waited for so long.
    Waiting(Duration, &'a Fate),
    /// The node has not caught up, and nothing is sent yet.
    Lagging(Duration, &'a str),
}

/// Receives what happens.
pub type Tell<'a> = &'a mut dyn FnMut(Progress<'_>);

/// A key file and the node through which its transactions go.
#[derive(Clone, Debug)]
pub struct Wallet {
    /// The node.
    pub node: NodeClient,
    /// The key file. What is stored lies beside it.
    pub key_file: PathBuf,
    /// How transactions are numbered.
    pub numbering: Numbering,
    /// How long to wait for the block of a transaction; zero returns once it is pending.
    pub patience: Duration,
}

/// How transactions are numbered, and how long they count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbering {
    /// The sequence number, if not the next free one.
    pub sequence: Option<Sequence>,
    /// The last height at which it may count, if not the usual number of heights after the node's.
    pub until: Option<Height>,
    /// Whether to send although the same operation was sent before and its result is unknown.
    pub again: bool,
}

/// A stored transaction of an operation that is to be sent.
enum Same {
    /// It was refused, and may still count: it is sent again.
    Refused(Box<Transaction>),
    /// Its result is not known.
    Open(TransactionId),
}

/// What signing needs.
pub struct Signatory {
    /// The chain's number.
    pub chain: u64,
    /// The network.
    pub network: Digest,
    /// Maximum distance of a sequence number above the highest used one.
    pub sequence_window: u64,
    /// The account that acts.
    pub account: Address,
    /// The slot of the account's session key that signs; 0 if the account's own key does.
    pub slot: SessionSlot,
    /// The assets of the network.
    pub assets: Assets,
    /// The key.
    pub key: SecretKey,
}

impl Wallet {
    /// What signing needs, from the node. `open` opens the key, once it is known that it may sign for this network:
    /// the one that it signed for before, or the one that is `named`.
    ///
    /// # Errors
    /// [`ClientError`], or that of `open`.
    pub fn signatory<E: From<ClientError>>(
        &self,
        account: Address,
        named: Option<Digest>,
        open: impl FnOnce() -> Result<SecretKey, E>,
    ) -> Result<Signatory, E> {
        let SigningTerms { chain, network, sequence_window } = self.node.terms()?;
        NetworkPin::of(&self.key_file).check(&network, named, self.node.url())?;
        let assets = self.node.assets()?;
        Ok(Signatory { chain, network, sequence_window, account, slot: 0, assets, key: open()? })
    }

    /// The same for a session key of the account: its slot is asked for.
    ///
    /// # Errors
    /// [`ClientError`], or that of `open`.
    pub fn session_signatory<E: From<ClientError>>(
        &self,
        account: Address,
        named: Option<Digest>,
        open: impl FnOnce() -> Result<SecretKey, E>,
    ) -> Result<Signatory, E> {
        let signatory = self.signatory(account, named, open)?;
        let key = signatory.key.public();
        let session = self.node.session(&account, &key)?.ok_or(ClientError::NoSessionKey { account, key })?;
        Ok(Signatory { slot: session.slot, ..signatory })
    }

    /// Signs an operation, delivers it and returns its fate. If another wallet takes its number first, it is signed
    /// again under another one.
    ///
    /// # Errors
    /// [`ClientError`]; then it has no effect.
    pub fn send(
        &self,
        signatory: &Signatory,
        operation: &Operation,
        tell: Tell<'_>,
    ) -> Result<(TransactionId, Fate), ClientError> {
        for _ in 0..RENUMBERED_MAX {
            let transaction = self.sign(signatory, operation.clone(), tell)?;
            match self.deliver(&transaction, tell) {
                Err(error) if self.numbering.sequence.is_none() && is_number_taken(&error) => {
                    tell(Progress::Renumbered(&error));
                }
                delivered => return Ok((transaction.id(), delivered?)),
            }
        }
        Err(ClientError::NumbersTaken)
    }

    /// A stored operation of which this holds; its result is not known.
    ///
    /// # Errors
    /// [`ClientError`] of the folder.
    pub fn kept(
        &self,
        signatory: &Signatory,
        is_wanted: impl Fn(&Operation) -> bool,
    ) -> Result<Option<Operation>, ClientError> {
        let all = Pending::of(&self.key_file).all()?;
        let mut own = all.into_iter().filter(|kept| is_by(kept, signatory));
        Ok(own.find(|kept| is_wanted(&kept.body.operation)).map(|kept| kept.body.operation))
    }

    /// Signs an operation under a free number, and stores it; or returns the stored transaction of this operation that
    /// was refused and may still count.
    ///
    /// # Errors
    /// [`ClientError`]; then nothing is stored.
    pub fn sign(
        &self,
        signatory: &Signatory,
        operation: Operation,
        tell: Tell<'_>,
    ) -> Result<Transaction, ClientError> {
        let Signatory { chain, network, account, key, .. } = signatory;
        let (pending, numbering) = (Pending::of(&self.key_file), &self.numbering);
        let _reservation = Reservation::wait(&self.key_file)?;
        self.clear_torn()?;
        // The node is asked after the stored ones are read: what is no longer stored then, it has counted.
        let (stored, same) = self.stored(&pending, signatory, Some(&operation))?;
        match same.filter(|_| !numbering.again) {
            Some(Same::Open(id)) => return Err(ClientError::SentBefore(id)),
            Some(Same::Refused(kept)) if numbering.sequence.is_none() && numbering.until.is_none() => return Ok(*kept),
            Some(Same::Refused(_)) | None => {}
        }
        let number = match (numbering.sequence, numbering.until) {
            (Some(sequence), _) => Number::named(sequence),
            // The end that is named may come before that of what had a number that was let go.
            (None, Some(_)) => Number::named(self.next_sequence(signatory, stored, tell)?),
            (None, None) => self.free_number(signatory, stored, tell)?,
        };
        let until = match numbering.until {
            Some(until) => until,
            None => self.node.height()?.saturating_add(UNTIL_USUAL).max(number.least),
        };
        let body = Body { chain: *chain, account: *account, sequence: number.sequence, until, operation };
        let transaction = body.sign(network, key);
        pending.keep(&transaction)?;
        number.take(self);
        Ok(transaction)
    }

    /// Sends a stored transaction and waits for its fate.
    ///
    /// # Errors
    /// [`ClientError`] if the node refuses it; then it has no effect now, and is stored until it can have none.
    pub fn deliver(&self, transaction: &Transaction, tell: Tell<'_>) -> Result<Fate, ClientError> {
        let (id, pending) = (transaction.id(), Pending::of(&self.key_file));
        tell(Progress::Sending(id));
        let submitted = self.submit_until_decided(transaction, tell);
        let followed = submitted.and_then(|_| match self.patience.is_zero() {
            true => Ok(Fate::Waiting(None)),
            false => self.follow(transaction, tell),
        });
        let fate = match followed {
            Ok(fate) => fate,
            Err(error) if error.leaves_doubt() || is_number_contested(&error) => Fate::Unknown(Some(in_full(&error))),
            Err(error) => {
                if can_never_count(&error) {
                    pending.forget(&id);
                }
                return Err(error);
            }
        };
        if matches!(fate, Fate::Committed(_)) {
            pending.forget(&id);
        }
        Ok(fate)
    }

    /// Submits a transaction; again, up to the patience, while another one with its number is pending.
    fn submit_until_decided(&self, transaction: &Transaction, tell: Tell<'_>) -> Result<TransactionBody, ClientError> {
        let (begun, mut pause, mut due) = (Instant::now(), PAUSES.0, TELL.0);
        loop {
            let submitted = self.node.submit(transaction);
            let Err(error) = submitted else { return submitted };
            if !is_number_contested(&error) || begun.elapsed() >= self.patience {
                return Err(error);
            }
            if begun.elapsed() >= due {
                tell(Progress::Waiting(begun.elapsed(), &Fate::Unknown(Some(in_full(&error)))));
                due = begun.elapsed() + TELL.1;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// A number above those that the node knows of an account, and above the highest stored one if that is in the
    /// window.
    fn next_sequence(
        &self,
        signatory: &Signatory,
        stored: Option<Sequence>,
        tell: Tell<'_>,
    ) -> Result<Sequence, ClientError> {
        self.wait_until_caught_up(tell)?;
        let (highest, next) = self.numbers(signatory)?;
        let above = stored.map_or(0, |stored| stored.saturating_add(1));
        let fits = above <= highest.saturating_add(signatory.sequence_window);
        Ok(if fits { next.max(above) } else { next })
    }

    /// Removes torn files, which nothing can send again, once the node says what became of their transactions.
    fn clear_torn(&self) -> Result<(), ClientError> {
        for folder in [Pending::of, Pending::held, Pending::released].map(|folder| folder(&self.key_file)) {
            for id in folder.torn()? {
                // Its number is taken, and its operation may be this one.
                if matches!(Fate::of(&self.node, &id)?, Fate::Waiting(_)) && !self.numbering.again {
                    return Err(ClientError::SentBefore(id));
                }
                folder.forget(&id);
            }
        }
        Ok(())
    }

    /// The highest number of a key's stored, held and sealed transactions, and a stored one of the same operation.
    /// Those that took effect, and those that were refused and have ended, are removed.
    fn stored(
        &self,
        pending: &Pending,
        signatory: &Signatory,
        operation: Option<&Operation>,
    ) -> Result<(Option<Sequence>, Option<Same>), ClientError> {
        let (mut highest, mut same) = (self.highest_held(signatory)?.max(self.highest_sealed(signatory)?), None);
        let mut all = pending.all()?;
        all.retain(|kept| is_by(kept, signatory));
        let height = if all.is_empty() { 0 } else { self.node.height()? };
        for kept in all {
            let (id, fate) = (kept.id(), Fate::of(&self.node, &kept.id())?);
            let was_refused = matches!(fate, Fate::Refused(_) | Fate::TurnedAway(_));
            if matches!(fate, Fate::Committed(_)) || (was_refused && kept.body.until <= height) {
                pending.forget(&id);
                continue;
            }
            highest = highest.max(Some(kept.body.sequence));
            if operation == Some(&kept.body.operation) {
                same = Some(if was_refused { Same::Refused(Box::new(kept)) } else { Same::Open(id) });
            }
        }
        Ok((highest, same))
    }

    /// Waits for the result, up to the patience. Sends the transaction again to a node that has lost it, or in which
    /// another one has displaced it. Of one that stands in a block, a node never says that its number is used.
    fn follow(&self, transaction: &Transaction, tell: Tell<'_>) -> Result<Fate, ClientError> {
        let (id, begun) = (transaction.id(), Instant::now());
        // An eighth of the time that the transaction waits for its block.
        let eighth = |limits: LimitsBody| Duration::from_millis(limits.block_interval_ms / 8).clamp(PAUSES.0, PAUSES.1);
        let longest = self.node.limits().map_or(PAUSES.1, eighth);
        let (mut pause, mut due) = (PAUSES.0, TELL.0);
        loop {
            let fate = Fate::of(&self.node, &id).unwrap_or_else(|error| Fate::Unknown(Some(in_full(&error))));
            if fate.is_final() || begun.elapsed() >= self.patience {
                return Ok(fate);
            }
            if matches!(fate, Fate::Unknown(None) | Fate::TurnedAway(_)) {
                match self.node.submit(transaction) {
                    Err(error) if can_never_count(&error) => return Err(error),
                    // The effect of any other answer is seen in the next query.
                    Ok(_) | Err(_) => {}
                }
            }
            if begun.elapsed() >= due {
                tell(Progress::Waiting(begun.elapsed(), &fate));
                due = begun.elapsed() + TELL.1;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }

    /// Waits while the node lags behind the others or has just started: its sequence numbers of an account may be out
    /// of date, and a transaction that repeats a committed one would seem to be committed. Does not wait out a stall
    /// in which the validators that the node cannot reach are too few to continue without the others.
    fn wait_until_caught_up(&self, tell: Tell<'_>) -> Result<(), ClientError> {
        let (begun, mut due) = (Instant::now(), TELL.0);
        while let Some(unready) = self.node.unready()? {
            if unready.code == "no_quorum" && self.others_stall_too()? {
                return Ok(());
            }
            if begun.elapsed() >= LAG_PATIENCE {
                return Err(ClientError::Lags { server: self.node.url().into(), reason: unready.message });
            }
            if begun.elapsed() >= due {
                tell(Progress::Lagging(begun.elapsed(), &unready.message));
                due = begun.elapsed() + TELL.1;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Whether the validators that the node cannot reach are too few to decide anything.
    fn others_stall_too(&self) -> Result<bool, ClientError> {
        let Some(status) = self.node.validator()? else { return Ok(false) };
        let seen = status.connected + usize::from(!status.follows);
        Ok(status.validators.saturating_sub(seen) < status.needed)
    }
}

/// Whether a node refused because another transaction has the number.
fn is_number_taken(error: &ClientError) -> bool {
    error.code().is_some_and(|code| NUMBER_TAKEN.contains(&code))
}

/// Whether a node refused what no block can hold any more.
fn can_never_count(error: &ClientError) -> bool {
    is_number_taken(error) || error.code() == Some(ENDED)
}

/// Whether a node refused because another transaction with the number is pending: either may take effect.
fn is_number_contested(error: &ClientError) -> bool {
    error.code() == Some(NUMBER_CONTESTED)
}

/// An error with all its causes.
fn in_full(error: &ClientError) -> String {
    let mut text = match error {
        ClientError::Refused { message, .. } => message.clone(),
        other => other.to_string(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

/// The name of a file beside a key file.
fn beside(key_file: &Path, ending: &str) -> PathBuf {
    let mut name = key_file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
