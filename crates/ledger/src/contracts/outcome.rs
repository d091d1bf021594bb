//! The outcome of an Ethereum transaction.

use proofs::{EvmStatus, Skip};
use revm::context::result::InvalidTransaction;
use revm::primitives::{Address, Bytes, Log, U256};

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum EvmOutcome {
    /// It was executed and paid for.
    Executed(Box<EvmExecution>),
    /// It had no effect, and its sender paid nothing.
    Skipped(Skip),
}

/// What an executed transaction did besides its writes.
#[derive(Clone, Debug, PartialEq)]
pub struct EvmExecution {
    /// How it ended.
    pub status: EvmStatus,
    /// Gas that it paid for.
    pub gas_used: u64,
    /// Wei that it paid for each unit of gas.
    pub gas_price: u128,
    /// Wei for the proposer.
    pub tip: U256,
    /// Wei that left all accounts and offers: the tip, the burnt part of the fee, and wei that were destroyed.
    pub lost: U256,
    /// Whether a contract destroyed itself, so that more than the fee may have been burnt.
    pub is_destructive: bool,
    /// Its logs.
    pub logs: Vec<Log>,
    /// Its return value.
    pub output: Bytes,
    /// The contract that the transaction itself created.
    pub created: Option<Address>,
    /// All contracts that were created, by address.
    pub contracts: Vec<Address>,
}

/// Why the interpreter refused a transaction.
pub(super) fn skip_of(fault: &InvalidTransaction) -> Skip {
    match fault {
        InvalidTransaction::NonceTooLow { .. } => Skip::NonceTooLow,
        InvalidTransaction::NonceTooHigh { .. } => Skip::NonceTooHigh,
        InvalidTransaction::LackOfFundForMaxFee { .. } | InvalidTransaction::OverflowPaymentInTransaction => {
            Skip::Funds
        }
        InvalidTransaction::GasPriceLessThanBasefee => Skip::Price,
        InvalidTransaction::RejectCallerWithCode => Skip::SenderHasCode,
        _ => Skip::Invalid,
    }
}
