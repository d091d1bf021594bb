//! Tests of the executor by itself: planted panics, and creation over an account that has acted.

use std::sync::Arc;

use revm::primitives::{Address, B256, TxKind, U256};
use stm::{Tuning, Workers};

use super::evm::{EvmCode, evm_code};
use super::*;

/// Two rich accounts, and one whose code stores in slot 7; to read that slot panics.
struct Planted;

const RICH: Address = Address::repeat_byte(1);
const OTHER: Address = Address::repeat_byte(2);
const TRAP: Address = Address::repeat_byte(3);

impl EvmState for Planted {
    fn account(&self, _: u32, address: &Address) -> Option<AccountInfo> {
        let balance = U256::from(10u64.pow(18));
        let code = evm_code(if *address == TRAP { vec![0x60, 7, 0x54, 0x00].into() } else { Default::default() });
        let known = [RICH, OTHER, TRAP].contains(address);
        known.then(|| AccountInfo { balance, code_hash: code.hash_slow(), code: Some(code), ..AccountInfo::default() })
    }

    fn slot(&self, _: u32, _: &Address, slot: &U256) -> U256 {
        assert_ne!(*slot, U256::from(7), "a planted panic");
        U256::ZERO
    }

    fn code(&self, _: u32, _: &B256) -> EvmCode {
        unreachable!("accounts come with their code")
    }

    fn block_hash(&self, _: u32, _: u64) -> B256 {
        B256::ZERO
    }
}

fn jobs() -> Vec<EvmJob> {
    let rules = CfgEnv::new().with_spec_and_mainnet_gas_params(SpecId::OSAKA);
    let mut block = BlockEnv { basefee: 7, gas_limit: 1 << 30, prevrandao: Some(B256::ZERO), ..BlockEnv::default() };
    block.set_blob_excess_gas_and_price(0, rules.blob_base_fee_update_fraction());
    let context = Arc::new(EvmContext { block, rules });
    let job = |(nonce, (caller, to)): (u64, (Address, Address))| EvmJob {
        space: 0,
        context: context.clone(),
        transaction: Arc::new(TxEnv {
            caller,
            nonce: nonce / 2,
            kind: TxKind::Call(to),
            gas_limit: 50_000,
            gas_price: 9,
            value: U256::from(1),
            chain_id: Some(1),
            ..TxEnv::default()
        }),
    };
    let to = [(RICH, TRAP), (OTHER, RICH), (RICH, OTHER), (OTHER, TRAP)];
    (0..40).zip(to.into_iter().cycle()).map(job).collect()
}

/// What panics where nothing can change any more is a transaction that failed and pays all its gas; the block goes on.
#[test]
fn a_planted_panic_is_the_transactions_failure() {
    let expected = EvmProgram { state: Planted, jobs: jobs() }.execute_sequentially();
    for (at, outcome) in expected.outcomes.iter().enumerate() {
        let EvmOutcome::Executed(execution) = outcome else { panic!("{outcome:?}") };
        let is_trap = at % 4 == 0 || at % 4 == 3;
        assert_eq!(execution.status == EvmStatus::Halted, is_trap);
        assert_eq!(execution.gas_used, if is_trap { 50_000 } else { 21_000 });
        assert_eq!(execution.lost, U256::from(execution.gas_used * 9));
        assert_eq!(execution.tip, U256::from(execution.gas_used * 2));
    }
    for threads in [1, 2, 7] {
        let program = EvmProgram { state: Planted, jobs: jobs() };
        let (found, ..) = program.execute(&mut Workers::new(threads), &parallel_tuning());
        assert_eq!(found, expected, "{threads} threads");
    }
    let (found, ..) = EvmProgram { state: Planted, jobs: jobs() }.execute(&mut Workers::new(2), &Tuning::default());
    assert_eq!(found, expected);
}

/// An account that has acted natively has an address that no contract is created at, and a contract no key.
#[test]
fn control_of_an_address_is_never_shared() {
    use primitives::AssetId;
    let key = primitives::SecretKey::from_seed([1; 32]).public();
    let mut account = crate::Account::new(key.address());
    account.credit(AssetId(0), 1);
    assert!(account.is_controlled_by(&key) && super::state::shown_nonce(&account) == 0);
    let mut acted = account.clone();
    acted.window_mut().mark(1);
    assert_eq!(super::state::shown_nonce(&acted), 1, "creation fails here");
    let mut registered = account.clone();
    registered.register(key);
    assert_eq!(super::state::shown_nonce(&registered), 1);
    account.set_evm(crate::EvmRecord { is_contract: true, ..Default::default() });
    assert!(!account.is_controlled_by(&key), "also the key whose hash is its address");
    registered.set_evm(account.evm());
    assert!(!registered.is_controlled_by(&key), "also a registered one");
}
