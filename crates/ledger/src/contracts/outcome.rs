//! The outcome of an Ethereum transaction.

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

/// How an executed transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub enum EvmStatus {
    /// It took effect.
    Succeeded,
    /// It reverted: only the fee remains of its effects.
    Reverted,
    /// It ran out of gas or broke a rule: only the fee remains of its effects, for all gas of its limit.
    Halted,
}

impl EvmStatus {
    /// A stable word for programs.
    pub fn name(self) -> &'static str {
        match self {
            EvmStatus::Succeeded => "succeeded",
            EvmStatus::Reverted => "reverted",
            EvmStatus::Halted => "halted",
        }
    }
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

/// Why a transaction was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub enum Skip {
    /// Its bytes are not a transaction of this chain.
    Malformed,
    /// Its signature is not valid.
    BadSignature,
    /// The same transaction occurs before it.
    Duplicate,
    /// Its nonce has been used.
    NonceTooLow,
    /// A lower nonce of its sender is missing.
    NonceTooHigh,
    /// Its sender cannot pay for its gas and value.
    Funds,
    /// It offers less for gas than the base fee.
    Price,
    /// Its sender is a contract.
    SenderHasCode,
    /// The quota of gas of its sub-block was used up.
    OverQuota,
    /// It is invalid in itself.
    Invalid,
}

impl Skip {
    /// Why the interpreter refused a transaction.
    pub(super) fn of(fault: &InvalidTransaction) -> Skip {
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
}
