//! What users of this crate provide: a VM, and a sink for its committed outputs.

pub(crate) mod view;

use std::fmt;
use std::hash::Hash;

use view::TransactionView;

/// A virtual machine with the state before a block.
///
/// An execution of a transaction must be a function of its index and of its reads through the view: no clock, no
/// randomness, no mutable state of its own. It may run on any thread, several times, and on values that no sequential
/// execution would show it (but never on a mix of two values of one key). It must then return or panic, not loop
/// forever. Its writes count if it returns `Ok`. A transaction that *fails* in the sense of the VM returns `Ok` with an
/// output that says so.
pub trait Vm: Send + Sync + Sized + 'static {
    /// Names a location. Locations are equal if their keys are.
    type Key: Hash + Eq + Clone + Send + Sync + 'static;
    /// The content of a location. A VM whose locations can be empty uses an `Option`.
    type Value: Clone + Send + Sync + 'static;
    /// What an execution returns: a receipt, for example.
    type Output: Send + 'static;

    /// The value of a location before the block.
    fn load(&self, key: &Self::Key) -> Self::Value;

    /// Executes transaction `txn` (from 0).
    ///
    /// # Errors
    ///
    /// [`Blocked`], if and only if the view returned it: the execution is discarded and repeated later.
    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<Self::Output, Blocked>;
}

/// A read found the estimate of a lower transaction, or the execution has already become invalid.
///
/// Only a view creates it. A VM whose interface has its own error type (like an EVM's database) converts it to that
/// type and back. The view remembers which transaction to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked(pub(crate) ());

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the execution waits for a lower transaction and is repeated")
    }
}

impl std::error::Error for Blocked {}

/// Receives the outputs of a block in the order of its transactions, each when its transaction is committed.
///
/// Calls come one after another, from any of the threads. A vector keeps the outputs; a closure is a sink, too.
pub trait CommitSink<T>: Send + 'static {
    /// Takes the output of transaction `txn` and says whether the block continues. Transactions after a
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

/// Whether a block continues after a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proceed {
    /// The next transaction may commit.
    Continue,
    /// This transaction is the last one.
    Stop,
}
