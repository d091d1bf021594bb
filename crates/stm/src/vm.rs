//! What a user of this crate provides: a VM, and a sink for what it commits.

use std::fmt;
use std::hash::Hash;

use crate::view::TransactionView;

/// A virtual machine with the state that a block begins with.
///
/// An execution of a transaction must be a function of its index and of what it reads through the view: no clock, no
/// randomness, no state of its own that changes. It may run on any thread, several times, and on values that no
/// sequential execution would show it (never on a mix of two values of one key): it must then return or panic, not
/// loop for ever. What it writes counts if it returns `Ok`. A transaction that *fails* in the sense of the VM returns
/// `Ok` with an output that says so.
pub trait Vm: Send + Sync + Sized + 'static {
    /// Names a location. Locations are equal if their keys are.
    type Key: Hash + Eq + Clone + Send + Sync + 'static;
    /// What a location holds. A VM whose locations can be empty uses an `Option`.
    type Value: Clone + Send + Sync + 'static;
    /// What an execution returns: a receipt, for example.
    type Output: Send + 'static;

    /// The value of a location before the block.
    fn load(&self, key: &Self::Key) -> Self::Value;

    /// Executes transaction `txn` (from 0).
    ///
    /// # Errors
    ///
    /// [`Blocked`], exactly if the view returned it: the execution is discarded and repeated later.
    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<Self::Output, Blocked>;
}

/// A read met the estimate of a lower transaction, or the execution has already become invalid.
///
/// Only a view makes it. A VM whose interface has its own error type (as an EVM's database has) turns it into that and
/// back; which transaction is waited for is known to the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked(pub(crate) ());

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the execution waits for a lower transaction and is repeated")
    }
}

impl std::error::Error for Blocked {}

/// A value that can be incremented by [`TransactionView::add`].
pub trait Number: Clone {
    /// As a number.
    fn to_number(&self) -> i128;
    /// From a number that lies within the bounds given to `add`.
    fn from_number(number: i128) -> Self;
}

/// Receives the outputs of a block in the order of its transactions, each when its transaction is committed.
///
/// Calls come one after another, from any of the threads. A vector keeps the outputs; a closure is a sink, too.
pub trait CommitSink<T>: Send + 'static {
    /// Takes the output of transaction `txn` and says whether the block goes on. Transactions after a
    /// [`Proceed::Stop`] are skipped: they have no effect and no output.
    fn commit(&mut self, txn: usize, output: T) -> Proceed;
}

impl<T: Send + 'static> CommitSink<T> for Vec<T> {
    fn commit(&mut self, _: usize, output: T) -> Proceed {
        self.push(output);
        Proceed::Continue
    }
}

impl<T, F: FnMut(usize, T) -> Proceed + Send + 'static> CommitSink<T> for F {
    fn commit(&mut self, txn: usize, output: T) -> Proceed {
        self(txn, output)
    }
}

/// Whether a block goes on after a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proceed {
    /// The next transaction may commit.
    Continue,
    /// This transaction is the last one.
    Stop,
}
