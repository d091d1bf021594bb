//! Calls of reserved addresses: the tokens of assets and the offers of the exchange.
//!
//! Their state is storage of their own addresses, written through the journal of the interpreter, so that it reverts
//! with its frame. This file contains what their calls share: addresses, arguments, gas, reads, writes and logs.

use revm::context::ContextTr;
use revm::context_interface::context::ContextError;
use revm::handler::{EthPrecompiles, PrecompileProvider};
use revm::interpreter::{CallInputs, Gas, InstructionResult, InterpreterResult};
use revm::primitives::{Address, AddressSet, Bytes};

use super::assets::Token;
use super::call::{Call, CallFault, Called, plain_address};
use super::evm_state::{Access, EvmState, SpecId};
use super::frame::EvmFrameContext;
use super::offers::Offers;
use super::slots::GAS_ASSET;
use super::tokens::asset_at;
use crate::places::contracts::reserved::is_reserved;

/// The numbers of Ethereum's precompiles that contracts find.
pub fn precompiles(rules: SpecId) -> Vec<u16> {
    let number = |address: &Address| u16::from_be_bytes([address[18], address[19]]);
    let mut numbers: Vec<u16> = EthPrecompiles::new(rules).warm_addresses().iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Ethereum's precompiles, plus the reserved addresses where the state has assets.
pub(super) struct ReservedPrecompiles(EthPrecompiles);

impl ReservedPrecompiles {
    pub fn new(spec: super::SpecId) -> ReservedPrecompiles {
        ReservedPrecompiles(EthPrecompiles::new(spec))
    }

    /// Whether an address is warm in every transaction.
    pub fn is_warm(&self, address: &Address) -> bool {
        self.0.warm_addresses().contains(address)
    }
}

impl<'a, S: EvmState, A: Access> PrecompileProvider<EvmFrameContext<'a, S, A>> for ReservedPrecompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: super::SpecId) -> bool {
        PrecompileProvider::<EvmFrameContext<'a, S, A>>::set_spec(&mut self.0, spec)
    }

    fn run(
        &mut self,
        context: &mut EvmFrameContext<'a, S, A>,
        inputs: &CallInputs,
    ) -> Result<Option<InterpreterResult>, String> {
        let address = plain_address(&inputs.bytecode_address);
        let (state, space) = (context.db().state, context.db().space);
        if !is_reserved(&address) || state.token(space, GAS_ASSET).is_none() {
            return self.0.run(context, inputs);
        }
        let mut gas = Gas::new_with_regular_gas_and_reservoir(inputs.gas_limit, inputs.reservoir);
        let mut call = Call { context, inputs, gas: &mut gas };
        let called = call.paid_input().and_then(|input| match asset_at(&inputs.bytecode_address) {
            Some(asset) => match state.token(space, asset) {
                Some(facts) => Token { call, asset, facts: &facts }.answer(&input),
                None => Err(CallFault::reason("no such asset")),
            },
            None => Offers(call).answer(&input),
        });
        Ok(Some(ended(context, called, gas)))
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.0.warm_addresses()
    }
}

fn ended<'a, S: EvmState, A: Access>(
    context: &mut EvmFrameContext<'a, S, A>,
    called: Called<Vec<u8>>,
    mut gas: Gas,
) -> InterpreterResult {
    let (result, output) = match called {
        Ok(output) => (InstructionResult::Return, output.into()),
        Err(CallFault::Reverts(output)) => (InstructionResult::Revert, output),
        Err(CallFault::OutOfGas) => {
            gas.spend_all();
            (InstructionResult::PrecompileOOG, Bytes::new())
        }
        Err(CallFault::Waits(waits)) => {
            *context.error() = Err(ContextError::Db(waits));
            (InstructionResult::FatalExternalError, Bytes::new())
        }
    };
    InterpreterResult::new(result, output, gas)
}
