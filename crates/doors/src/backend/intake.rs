//! Where transactions go, and what waits there.

use ledger::Refusal;
use primitives::{Address, Sequence, SessionSlot, Transaction, TransactionId};
use readers::Found;
use replica::EthereumReject;
use tokio::sync::oneshot;

/// Where transactions go, and what waits there.
pub trait Intake {
    /// Submits transactions. The receiver gets one answer for each, in order; with `wait`, pending ones come with a
    /// receiver that is notified of the block.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    fn submit(&self, transactions: Vec<Transaction>, wait: bool) -> Result<oneshot::Receiver<Vec<Answer>>, Closed>;

    /// Submits Ethereum transactions in their EIP-2718 form, and recovers their senders; returns one answer for each,
    /// in order. A transaction that is pending or was executed already counts as accepted.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    fn submit_ethereum(&self, transactions: Vec<Vec<u8>>)
    -> Result<Vec<Result<TransactionId, EthereumReject>>, Closed>;

    /// Whether a transaction of either kind is pending, or its block is not published yet.
    fn is_pending(&self, id: &TransactionId) -> bool;

    /// The transaction that has taken the place of this one: it has the same number and ends later. `None` if none did,
    /// or long ago.
    fn displaced_by(&self, _: &TransactionId) -> Option<TransactionId> {
        None
    }

    /// The highest sequence number of an account's slot among pending transactions; 0 if there is none. Slot 0 has the
    /// account's own numbers.
    fn pending_sequence(&self, account: &Address, slot: SessionSlot) -> Sequence;
}

/// What a sender that waits is told.
#[derive(Clone, Copy, Debug)]
pub enum Awaited {
    /// Its block is durable.
    Committed(Found),
    /// Another transaction with its number has taken its place.
    Displaced(TransactionId),
}

/// The answer to a submitted transaction.
#[derive(Debug)]
pub enum Answer {
    /// It is pending. The receiver, if requested, is told when its block is durable, or when another transaction has
    /// taken its place.
    Pending(TransactionId, Option<oneshot::Receiver<Awaited>>),
    /// It is in a block already.
    Committed(TransactionId, Found),
    /// The mempool is full.
    Full,
    /// The ledger would reject it.
    Refused(Refusal),
}

/// Why nothing can be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// Too many submissions are queued.
    #[error("too many submissions are queued; try again shortly")]
    Busy,
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
    /// The disk is nearly full.
    #[error("the disk of this node is almost full; it accepts transactions again when there is space")]
    DiskFull,
    /// The node is not a validator of the epoch, so nobody would propose what it accepts.
    #[error("this node is a follower and not a validator now; submit to a validator")]
    Follows,
}

impl Answer {
    /// Its name in metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Answer::Pending(..) => "pending",
            Answer::Committed(..) => "committed",
            Answer::Full => "mempool_full",
            Answer::Refused(refusal) => refusal.code(),
        }
    }
}
