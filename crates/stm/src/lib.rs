//! Block-STM: runs the transactions of a block in parallel, with the result of running them one by one in order.
//!
//! The algorithm is from *Block-STM: How We Execute Over 160k Transactions Per Second on the Aptos Blockchain*
//! (Spiegelman and Gelashvili, 2022). This crate implements it over any [`Vm`], and adds a rolling commit, bounded
//! increments, and sequential execution where that is faster.
//!
//! ```
//! use stm::{Blocked, TransactionView, Vm, Workers};
//!
//! /// Each transaction moves one coin from its account to the next.
//! struct Ring;
//!
//! impl Vm for Ring {
//!     type Key = usize;
//!     type Value = i64;
//!     type Output = i64;
//!
//!     fn load(&self, _: &usize) -> i64 {
//!         100
//!     }
//!     fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<i64, Blocked> {
//!         let (from, to) = (txn % 10, (txn + 1) % 10);
//!         let left = view.read(&from)? - 1;
//!         view.write(from, left);
//!         let credit = view.read(&to)? + 1;
//!         view.write(to, credit);
//!         Ok(left)
//!     }
//! }
//!
//! let execution = Workers::new(2).execute(Ring, 35, Vec::new());
//! let committed = execution.result?;
//! assert_eq!(execution.sink[34], 100);
//! assert_eq!(committed.writes.into_sorted().iter().map(|(_, coins)| coins).sum::<i64>(), 1_000);
//! # Ok::<(), stm::TransactionPanicked>(())
//! ```
//!
//! # The protocol
//!
//! A transaction's *incarnation* is its i-th execution. The multi-version memory (`memory`) keeps, for each location,
//! what each transaction's latest incarnation wrote. The scheduler (`scheduler`, `counters`) hands out tasks; the
//! executor (`executor`) performs them.
//!
//! - Upon **looking for a task**, a thread claims a validation if the validation counter is below both the execution
//!   counter and the transactions that have all been executed once. Otherwise an execution. It claims by incrementing
//!   the counter, after it has counted the task as active.
//! - Upon an **execution task** of transaction j, the thread runs the VM. A read returns what the highest transaction
//!   below j wrote, or the state before the block, and is recorded with the version that it found. Writes are
//!   buffered.
//! - Upon a read that finds an **ESTIMATE** of transaction k, the VM returns [`Blocked`]. The thread registers j with
//!   its incarnation as a dependent of k and takes another task. If k has been executed meanwhile, it repeats j at
//!   once.
//! - Upon the **end of an execution**, the thread moves the writes into the memory and removes what the previous
//!   incarnation wrote and this one did not. It stores the read set, sets the status EXECUTED, and resumes the
//!   dependents. Each becomes ready as its next incarnation, and the execution counter is lowered to the lowest of
//!   them. If the validation counter has passed j, the counter is lowered to j if j wrote at a new location; otherwise
//!   only j is validated.
//! - Upon a **validation task**, the thread reads again what the incarnation read. If a version differs, or an ESTIMATE
//!   is found, it tries to abort the incarnation; of several threads one succeeds. That one marks the incarnation's
//!   writes as ESTIMATEs, makes the next incarnation ready, lowers the validation counter to j + 1, and executes j.
//! - Upon finding an executed transaction at the **head** (all lower ones are committed), a thread that gets onto the
//!   commit ladder validates it, turns its increments into values, commits it, and gives its output to the sink. If it
//!   is invalid, the thread aborts it and executes it itself: nothing below can change any more, so this incarnation is
//!   the last.
//! - If a thread finds no work, it looks again a few times and then parks. A thread that ends a task wakes another
//!   one if there is work.
//!
//! # Properties
//!
//! 1. *Order*: outputs and final writes equal those of the sequential execution, for any number of threads.
//! 2. *Progress*: the head is always executed, or being executed, or claimed by the ladder. A thread never waits
//!    inside a read, so a dependency cannot block the last worker.
//! 3. *Bounded waste*: from incarnation [`Tuning::held_from`] on a transaction waits until it is at the head. So it has
//!    at most `held_from + 1` incarnations, and chains of aborts end at sequential cost.
//! 4. *Containment*: a panic of the VM in a speculative execution is discarded, and repeated when the transaction is at
//!    the head. If it panics there, too, the block fails with [`TransactionPanicked`].
//!
//! # Lemmas, each an assertion
//!
//! - One transaction is never executed by two threads at once (`finish_execution` finds the status that it expects).
//! - Of several validations of one incarnation at most one aborts it (`try_abort`, by compare-and-swap).
//! - A transaction waits for lower ones only, and each wait is resumed once (`suspend`, `resume`).
//! - An incarnation is aborted before the next one writes (`Memory::write`).
//! - Work is created only by active tasks (`lower_execution`, `lower_validation`), which the lazy commit relies on.
//! - Conditions 1 and 2 of the lazy commit imply the third: all transactions are executed (`assert_all_executed`), and
//!   all are valid (`commit_all`, in debug builds).
//! - What ran at the head is valid; committed transactions leave no estimates (`commit_heads`, `execute`).
//!
//! # Deviations from the paper
//!
//! - **Rolling commit** ([`CommitRule::Rolling`]) is the default; the paper's lazy commit by double collect is
//!   [`CommitRule::Lazy`]. A block limit, streamed receipts and increments need commits in order. The ladder
//!   validates each transaction when nothing below can change, so its result needs no proof about earlier
//!   validations: those only find invalid incarnations sooner. That validation is cheap, because a location's stamp
//!   shows that nothing has changed.
//! - **No validation in the first wave**: a transaction is validated when all lower ones have been executed once. In
//!   the paper every first incarnation writes at new locations and so causes validations of all higher transactions.
//! - **One atomic word per status** instead of a mutex, and a lock-free index of locations. A location's entries have a
//!   mutex each.
//! - **A window**: executions begin at most [`Tuning::window`] above the head (rolling commit only). So few
//!   transactions wait for one long transaction, and few are resumed at its end. Read sets are in a ring of about
//!   that length, which stays in a processor's cache.
//! - **Active tasks are counted only for the lazy commit**: the last commit of the ladder ends a rolling run, so it
//!   needs no double collect.
//! - **Two reads of one key agree** within an execution; if they would not, the execution is repeated at once.
//! - **Increments** ([`TransactionView::add`]) record only whether the sum is within bounds. They are read through
//!   estimates of other increments. So an incarnation whose increment differs from the previous one counts as writing
//!   at a new location: higher transactions may have been found valid meanwhile.
//! - **Sequential parts**: small blocks, one thread, transactions that cost less than the framework (with
//!   [`Tuning::clock`]), and the next ones after a parallel run that saved no time, or in which nearly every
//!   transaction conflicted, also in later blocks. The result is the same, so neither clock nor threads influence it.
//!
//! # Using it with an EVM
//!
//! A revm `Database` reads through the view and returns `Blocked` as its error; the VM returns it when the EVM
//! reports it. Writes go from the journal to the view after the transaction. [`TransactionView::is_final`] tells
//! where a panic may become an outcome. A discarded panic runs the process's panic hook first, which prints it by
//! default. Stack overflow and exhausted memory cannot be contained: [`Workers::with_stacks`] sets the stack size of
//! helpers.

mod block;
mod counters;
mod executor;
mod locations;
mod memory;
#[cfg(test)]
mod models;
mod number;
mod overlay;
mod pace;
mod parking;
mod scheduler;
mod sync;
mod vm;
mod workers;

pub use block::{CommittedTransaction, Execution, FinalWrites, TransactionPanicked, Tuning, monotonic_ns};
pub use executor::Tally;
pub use number::Number;
pub use scheduler::CommitRule;
pub use vm::view::TransactionView;
pub use vm::{Blocked, CommitSink, Proceed, Vm};
pub use workers::Workers;
