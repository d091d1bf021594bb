//! The words for failures that Ethereum's tools look for.

use revm::context::result::{HaltReason, InvalidTransaction};
use revm::interpreter::InstructionResult;

/// The words for the abnormal end of a call.
pub(super) fn failure(result: InstructionResult) -> &'static str {
    use InstructionResult::*;
    match result {
        OutOfGas | MemoryOOG | MemoryLimitOOG | PrecompileOOG | InvalidOperandOOG | ReentrancySentryOOG => "out of gas",
        OpcodeNotFound | InvalidFEOpcode | NotActivated | InvalidImmediateEncoding => "invalid opcode",
        InvalidJump => "invalid jump destination",
        StackUnderflow => "stack underflow",
        StackOverflow => "stack limit reached 1024",
        CallTooDeep => "max call depth exceeded",
        OutOfFunds | OverflowPayment => "insufficient balance for transfer",
        StateChangeDuringStaticCall | CallNotAllowedInsideStatic => "write protection",
        OutOfOffset => "return data out of bounds",
        CreateCollision => "contract address collision",
        PrecompileError => "precompiled contract failed",
        NonceOverflow => "nonce uint64 overflow",
        CreateContractSizeLimit => "max code size exceeded",
        CreateInitCodeSizeLimit => "max initcode size exceeded",
        CreateContractStartingWithEF | CreateInitCodeStartingEF00 | InvalidEOFInitCode => {
            "invalid code: must not begin with 0xef"
        }
        InvalidExtDelegateCallTarget | FatalExternalError => "the interpreter failed",
        Revert => "execution reverted",
        Stop | Return | SelfDestruct | Suspend => "ended",
    }
}

/// The words for the abnormal end of a transaction.
pub(super) fn halted(reason: HaltReason) -> &'static str {
    failure(InstructionResult::from(reason))
}

/// The words for a transaction that is not executed at all.
pub(super) fn invalid(fault: &InvalidTransaction) -> String {
    use InvalidTransaction::*;
    match fault {
        LackOfFundForMaxFee { fee, balance } => {
            format!("insufficient funds for gas * price + value: have {balance} want {fee}")
        }
        OverflowPaymentInTransaction => "insufficient funds for gas * price + value".into(),
        CallGasCostMoreThanGasLimit { initial_gas: needed, gas_limit }
        | GasFloorMoreThanGasLimit { gas_floor: needed, gas_limit } => {
            format!("intrinsic gas too low: have {gas_limit}, want {needed}")
        }
        GasPriceLessThanBasefee => "max fee per gas less than block base fee".into(),
        PriorityFeeGreaterThanMaxFee => "max priority fee per gas higher than max fee per gas".into(),
        CallerGasLimitMoreThanBlock => "exceeds block gas limit".into(),
        TxGasLimitGreaterThanCap { gas_limit, cap } => {
            format!("transaction gas limit too high (cap: {cap}, tx: {gas_limit})")
        }
        CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        NonceOverflowInTransaction => "nonce has max value".into(),
        NonceTooHigh { tx, state } => format!("nonce too high: tx {tx}, state {state}"),
        NonceTooLow { tx, state } => format!("nonce too low: tx {tx}, state {state}"),
        RejectCallerWithCode => "sender not an eoa".into(),
        InvalidChainId | MissingChainId => "invalid chain id for signer".into(),
        EmptyAuthorizationList => "EIP-7702 transaction with empty auth list".into(),
        _ => "invalid transaction".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words are prose: no name of the interpreter's own types is among them.
    #[test]
    fn names_of_the_interpreter_are_not_shown() {
        for result in RESULTS {
            let words = failure(result);
            assert!(words != format!("{result:?}") && words.starts_with(char::is_lowercase), "{words}");
        }
        assert_eq!(failure(InstructionResult::ReentrancySentryOOG), "out of gas");
        assert_eq!(failure(InstructionResult::OutOfOffset), "return data out of bounds");
        assert_eq!(halted(HaltReason::CreateContractSizeLimit), "max code size exceeded");
    }

    const RESULTS: [InstructionResult; 8] = [
        InstructionResult::ReentrancySentryOOG,
        InstructionResult::OutOfOffset,
        InstructionResult::CreateCollision,
        InstructionResult::NonceOverflow,
        InstructionResult::CreateContractSizeLimit,
        InstructionResult::CreateContractStartingWithEF,
        InstructionResult::CreateInitCodeSizeLimit,
        InstructionResult::InvalidImmediateEncoding,
    ];
}
