//! A developers' chain. Any other node answers as these defaults do.

use ledger::contracts::{DeveloperBlock, DeveloperEdit, DumpedAccount, EthereumFault};
use primitives::{Address, TransactionId};
use replica::EthereumReject;

use super::Closed;

/// A developers' chain. Any other node answers as these defaults do.
pub trait Developed {
    /// Whether this is a developers' chain.
    fn is_developers(&self) -> bool {
        false
    }

    /// What Ethereum sees of all accounts; only on a developers' chain.
    fn dump_accounts(&self) -> Vec<DumpedAccount> {
        Vec::new()
    }

    /// What a developer has chosen for the next block.
    fn next_block(&self) -> NextBlock {
        NextBlock::default()
    }

    /// Submits an Ethereum transaction of an account that did not sign it; only on a developers' chain.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take it now.
    fn impersonate(&self, _: &Address, _: Vec<u8>) -> Result<Result<TransactionId, EthereumReject>, Closed> {
        Ok(Err(EthereumReject::Fault(EthereumFault::Signature)))
    }

    /// Performs a command of the developer, between two blocks. The result depends on the command.
    ///
    /// # Errors
    /// [`DeveloperRefusal`] gives the reason; always on any other chain.
    fn develop(&self, _: DeveloperCommand) -> Result<u64, DeveloperRefusal> {
        Err(DeveloperRefusal("this is not a developers' chain".into()))
    }
}

/// What a developer has chosen for the next block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextBlock {
    /// Its time in milliseconds since 1970, where it was moved away from that of the newest block.
    pub time_ms: Option<u64>,
    /// Its other parts.
    pub chosen: DeveloperBlock,
}

/// A command to a developers' chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeveloperCommand {
    /// Makes a number of blocks; the second number is the seconds that pass after each of them.
    Mine(u64, u64),
    /// Keeps the present state; returns its number.
    Snapshot,
    /// Reverts to the state kept under a number; returns 1, or 0 if there is none.
    Revert(u64),
    /// Reverts to the genesis; returns 1.
    Reset,
    /// Edits an account, or the base fee, in a block of its own.
    Edit(DeveloperEdit),
    /// Makes edits in order, in as few blocks as their checks permit.
    Edits(Vec<DeveloperEdit>),
    /// Chooses parts of the next blocks, and a random number for the next one; what is not named stays as it is.
    Choose(DeveloperBlock),
    /// Moves time forward by some seconds; returns how many seconds the chain is ahead of the machine's clock.
    IncreaseTime(u64),
    /// Sets the next block's time, in seconds since 1970.
    NextTime(u64),
    /// Sets the seconds between blocks, whatever the clock says; `None` follows the clock again.
    StepTime(Option<u64>),
    /// Sets when blocks are made.
    Mining(Mining),
    /// Returns 1 if blocks are made as soon as transactions are pending, otherwise 0.
    IsInstant,
    /// Removes a transaction from the pool; returns 1 if it was there, otherwise 0.
    Drop(TransactionId),
    /// Removes all Ethereum transactions from the pool, or those of one account; returns their number.
    DropAll(Option<Address>),
    /// Returns the milliseconds between blocks that are made at an interval, otherwise 0.
    IntervalMs,
    /// Does nothing. Blocks that are due are made before it is answered.
    Settle,
}

/// When a developers' chain makes blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mining {
    /// As soon as transactions are pending.
    Instant,
    /// Every so many milliseconds, whether transactions are pending or not.
    Interval(u64),
    /// When it is told to.
    Manual,
}

/// Why a developers' chain rejects a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeveloperRefusal(pub String);
