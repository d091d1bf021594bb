//! Why the pool does not accept a transaction, and why it drops one.

use ledger::contracts::{EthereumFault, Skip};

/// Why the pool rejects an Ethereum transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EthereumReject {
    /// The chain does not execute contracts.
    #[error("this chain has no contracts")]
    NoContracts,
    /// No state can make it valid.
    #[error(transparent)]
    Fault(#[from] EthereumFault),
    /// It is pending already.
    #[error("the transaction is pending already")]
    Waiting,
    /// Its nonce was used already.
    #[error("nonce {nonce} is used already: the account's next nonce is {next}")]
    NonceTooLow {
        /// The nonce of the transaction.
        nonce: u64,
        /// The account's next nonce.
        next: u64,
    },
    /// Its nonce is too far ahead.
    #[error(
        "nonce {nonce} is more than 64 above {next}, the account's next nonce: send the transactions between them first"
    )]
    NonceTooHigh {
        /// The nonce of the transaction.
        nonce: u64,
        /// The account's next nonce.
        next: u64,
    },
    /// The account cannot pay for it together with its other pending transactions.
    #[error("the account cannot pay for this transaction together with its other pending transactions")]
    Funds,
    /// It offers less than the base fee.
    #[error("the transaction offers {offered} wei per unit of gas, and the base fee needs {needed}")]
    Price {
        /// The offered price.
        offered: u128,
        /// The required price.
        needed: u128,
    },
    /// It does not offer a tenth more than the transaction that it would replace.
    #[error(
        "the transaction offers {offered} wei per unit of gas; replacing the pending transaction with this nonce \
         needs {needed}"
    )]
    Replacement {
        /// The offered price.
        offered: u128,
        /// The required price.
        needed: u128,
    },
    /// Its account delegates to a contract, and has another pending transaction.
    #[error(
        "the account delegates to a contract (EIP-7702) and may have only one pending transaction: wait until it is \
         committed"
    )]
    Delegated,
    /// Its account delegates to a contract, and its nonce is not the next one.
    #[error(
        "the account delegates to a contract (EIP-7702) and sends one transaction at a time: nonce {nonce} is above \
         {next}, its next nonce"
    )]
    DelegatedGap {
        /// The nonce of the transaction.
        nonce: u64,
        /// The account's next nonce.
        next: u64,
    },
    /// Its sender is a contract.
    #[error("the sender is a contract, which signs nothing (EIP-3607)")]
    SenderHasCode,
    /// Another transaction with its nonce has been proposed.
    #[error("another transaction with this nonce has been proposed already")]
    Proposed,
    /// No sub-block has room for it.
    #[error("the transaction has {size} bytes, and a sub-block of this network has room for {room}")]
    Oversized {
        /// Its bytes.
        size: usize,
        /// The bytes that a sub-block has for transactions.
        room: usize,
    },
    /// The pool is full, or half full if the transaction is above a nonce gap.
    #[error("the pool is full: send the transaction again later")]
    Full,
}

impl EthereumReject {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            EthereumReject::NoContracts => "no_contracts",
            EthereumReject::Fault(fault) => fault.code(),
            EthereumReject::Waiting => "waiting",
            EthereumReject::NonceTooLow { .. } => "nonce_too_low",
            EthereumReject::NonceTooHigh { .. } => "nonce_too_high",
            EthereumReject::Funds => "insufficient_funds",
            EthereumReject::Price { .. } | EthereumReject::Replacement { .. } => "underpriced",
            EthereumReject::Delegated | EthereumReject::DelegatedGap { .. } => "delegated_account",
            EthereumReject::SenderHasCode => "sender_has_code",
            EthereumReject::Proposed => "already_proposed",
            EthereumReject::Oversized { .. } => "larger_than_sub_block",
            EthereumReject::Full => "mempool_full",
        }
    }
}

/// Why the pool dropped a transaction that it had accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolDrop {
    /// No block can execute it.
    #[error("no block can execute it: {}", why(.0))]
    Skipped(Skip),
    /// Its account cannot pay for it any more.
    #[error("its account cannot pay for it any more")]
    Funds,
    /// It yielded to another transaction of its account.
    #[error("it was above a nonce gap, and its account cannot pay for it beside a transaction that can be executed")]
    Yielded,
    /// It waited too long above a nonce gap, or below the base fee.
    #[error("it waited for ten minutes above a nonce gap, or for a base fee that it pays")]
    Late,
}

/// The words for a reason that stays.
fn why(skip: &Skip) -> &'static str {
    match skip {
        Skip::SenderHasCode => "its sender is a contract",
        Skip::BadSignature => "its signature is invalid",
        Skip::Malformed => "it is no transaction of this chain",
        _ => "it is invalid in itself",
    }
}

/// Whether a transaction that was skipped for a reason can never be executed.
pub(super) fn is_final(skip: Skip) -> bool {
    matches!(skip, Skip::SenderHasCode | Skip::BadSignature | Skip::Malformed | Skip::Invalid)
}
