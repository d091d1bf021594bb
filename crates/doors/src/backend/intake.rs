//! Where transactions go, and what waits there.

use ledger::Refusal;
use primitives::{Address, Sequence, SessionSlot, Transaction, TransactionId};
use readers::FoundTransaction;
use replica::EthereumReject;
use sockets::{Client, NoTurn};
use tokio::sync::oneshot;

use crate::{PlacedOrder, TakenOrders};

/// Where transactions go, and what waits there.
pub trait Intake {
    /// Submits transactions of a client, which wait for its turn. The receiver gets one answer for each, in order; with
    /// `wait`, pending ones come with a receiver that is notified of the block.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    fn submit(
        &self,
        from: Client,
        transactions: Vec<Transaction>,
        wait: bool,
    ) -> Result<oneshot::Receiver<Vec<Answer>>, Closed>;

    /// Submits Ethereum transactions of a client in their EIP-2718 form, waits for its turn, and recovers their
    /// senders.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now. Some of them may have been taken: sent again, they are accepted.
    fn submit_ethereum(&self, from: Client, transactions: Vec<Vec<u8>>) -> Result<EthereumTaken, Closed>;

    /// The orders that clients of this node have placed lately.
    fn taken(&self) -> &TakenOrders;

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

/// What became of submitted Ethereum transactions.
#[derive(Debug, Default)]
pub struct EthereumTaken {
    /// One answer for each, in order. A transaction that is pending or was executed already counts as accepted.
    pub answers: Vec<Result<TransactionId, EthereumReject>>,
    /// Whether one of them entered the pool that it had not known: pending ones and those in blocks anybody can repeat.
    pub is_new: bool,
}

/// What a sender that waits is told.
#[derive(Clone, Copy, Debug)]
pub enum Awaited {
    /// Its block is durable.
    Committed(FoundTransaction),
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
    Committed(TransactionId, FoundTransaction),
    /// The mempool is full.
    Full,
    /// Another order of the account, which may still count, has its client id.
    ClientIdUsed(PlacedOrder),
    /// It was not looked at: too much of what its client sent was false.
    OverBudget {
        /// Milliseconds after which it can be sent again.
        again_ms: u64,
    },
    /// The ledger would reject it.
    Refused(Refusal),
}

/// Why nothing can be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// Too many submissions are queued.
    #[error("too many submissions are queued; try again shortly")]
    Busy,
    /// Too much of what the client sent was false.
    #[error("{}", NoTurn::OverBudget { again_ms: *again_ms })]
    OverBudget {
        /// Milliseconds after which it can be sent again.
        again_ms: u64,
    },
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
    /// The disk is nearly full.
    #[error("the disk of this node is almost full; it accepts transactions again when there is space")]
    DiskFull,
    /// The node is not a validator of the epoch, so nobody would propose what it accepts.
    #[error("this node is a follower and not a validator now; submit to a validator")]
    Follows,
    /// The next block follows rules that this node does not.
    #[error(
        "the next block follows rules {0}, which this program does not know: install a version of walras for them, or \
         submit to another validator"
    )]
    NeedsRules(u32),
}

impl From<NoTurn> for Closed {
    fn from(none: NoTurn) -> Closed {
        match none {
            NoTurn::Crowded => Closed::Busy,
            NoTurn::OverBudget { again_ms } => Closed::OverBudget { again_ms },
            NoTurn::Stopping => Closed::Stopping,
        }
    }
}

impl Answer {
    /// Its name in metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Answer::Pending(..) => "pending",
            Answer::Committed(..) => "committed",
            Answer::Full => "mempool_full",
            Answer::ClientIdUsed(_) => "client_id_used",
            Answer::OverBudget { .. } => "too_much_was_false",
            Answer::Refused(refusal) => refusal.code(),
        }
    }
}
