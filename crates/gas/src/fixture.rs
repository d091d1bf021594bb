//! Blocks for measurements: accounts with ether, contracts that transactions create, and jobs with their nonces.

use std::sync::Arc;

use hashbrown::HashMap;
use ledger::contracts::ethereum::{Address, B256, Bytes, TxKind, U256, hex, keccak256};
use ledger::contracts::{
    AccountInfo, BlockEnv, CfgEnv, EvmBlock, EvmContext, EvmJob, EvmOutcome, EvmProgram, EvmStatus, SpecId, TxEnv,
    evm_code, token_address,
};
use primitives::AssetId;

use crate::maps::{Maps, SharedMaps};

/// Wei of each account.
pub const RICH: u64 = 1_000_000_000_000_000_000;

/// A block over a state.
pub struct Load {
    /// The state before it.
    pub state: SharedMaps,
    /// Its transactions in their order.
    pub jobs: Vec<EvmJob>,
}

fn context() -> Arc<EvmContext> {
    let rules = CfgEnv::new().with_spec_and_mainnet_gas_params(SpecId::OSAKA);
    let mut block = BlockEnv {
        number: U256::from(1),
        timestamp: U256::from(1_700_000_000),
        basefee: 7,
        gas_limit: 1 << 40,
        prevrandao: Some(B256::ZERO),
        ..BlockEnv::default()
    };
    block.set_blob_excess_gas_and_price(0, rules.blob_base_fee_update_fraction());
    Arc::new(EvmContext { block, rules })
}

/// The address of an account by its number.
pub fn account(number: u64) -> Address {
    Address::from_slice(&keccak256(number.to_be_bytes())[12..])
}

/// A state that is made by transactions, and the nonces of their senders.
pub struct EvmFixture {
    context: Arc<EvmContext>,
    maps: Maps,
    nonces: HashMap<Address, u64>,
}

impl EvmFixture {
    /// That many accounts with [`RICH`] wei each.
    pub fn new(accounts: usize) -> EvmFixture {
        let mut maps = Maps::default();
        for number in 0..accounts as u64 {
            maps.set_account(account(number), AccountInfo { balance: U256::from(RICH), ..AccountInfo::default() });
        }
        EvmFixture { context: context(), maps, nonces: HashMap::new() }
    }

    /// The next transaction of an account.
    pub fn job(&mut self, from: u64, kind: TxKind, data: Bytes, value: u64, gas_limit: u64) -> EvmJob {
        let caller = account(from);
        let nonce = self.nonces.entry(caller).or_default();
        let transaction = TxEnv {
            caller,
            kind,
            data,
            gas_limit,
            gas_price: 10,
            nonce: *nonce,
            value: U256::from(value),
            chain_id: Some(1),
            ..TxEnv::default()
        };
        *nonce += 1;
        EvmJob { space: 0, context: self.context.clone(), transaction: Arc::new(transaction) }
    }

    /// Puts code at a new address.
    pub fn place(&mut self, code: Vec<u8>) -> Address {
        let (code, address) = (evm_code(code.into()), account(u64::MAX));
        let info = AccountInfo { code_hash: code.hash_slow(), code: Some(code), nonce: 1, ..AccountInfo::default() };
        self.maps.set_account(address, info);
        address
    }

    /// Gives an account units of asset 1.
    pub fn fund(&mut self, holder: Address, units: u64) {
        let token = Address::new(token_address(AssetId(1)).0);
        self.maps.slots.insert((token, holder.into_word().into()), U256::from(units));
    }

    /// Makes transactions part of the state before the measured block.
    ///
    /// # Panics
    ///
    /// If one of them fails.
    pub fn settle(&mut self, jobs: Vec<EvmJob>) {
        let state = SharedMaps(Arc::new(std::mem::take(&mut self.maps)));
        let EvmBlock { outcomes, writes } = EvmProgram { state: state.clone(), jobs }.execute_sequentially();
        outcomes.iter().for_each(must_succeed);
        self.maps = Arc::unwrap_or_clone(state.0);
        self.maps.write(writes);
    }

    /// Creates a contract from its code in hexadecimal digits and its constructor's arguments.
    ///
    /// # Panics
    ///
    /// If the code is not hexadecimal, or its constructor fails.
    pub fn create(&mut self, code: &str, arguments: &[Address]) -> Address {
        let mut data = hex::decode(code.trim()).expect("compiled code");
        arguments.iter().for_each(|argument| data.extend_from_slice(&argument.into_word().0));
        let nonce = self.nonces.get(&account(0)).copied().unwrap_or(0);
        let job = self.job(0, TxKind::Create, data.into(), 0, 10_000_000);
        self.settle(vec![job]);
        account(0).create(nonce)
    }

    /// A block over what has been made.
    pub fn load(self, jobs: Vec<EvmJob>) -> Load {
        Load { state: SharedMaps(Arc::new(self.maps)), jobs }
    }
}

fn must_succeed(outcome: &EvmOutcome) {
    match outcome {
        EvmOutcome::Executed(execution) if execution.status == EvmStatus::Succeeded => {}
        other => panic!("a transaction of the workload failed: {other:?}"),
    }
}
