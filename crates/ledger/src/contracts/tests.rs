//! Tests of the executor alone: planted panics, and creation over an account that has acted.

use std::sync::Arc;

use revm::primitives::{Address, B256, TxKind, U256};
use stm::{Tuning, Workers};

use super::*;
use crate::places::contracts::{EvmCode, evm_code};

/// Two rich accounts, and one whose code stores in slot 7; reading that slot panics.
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

/// A panic of a final execution is a failed transaction that pays all its gas; the block continues.
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

/// No contract is created at the address of an account that has acted natively, and no key controls a contract.
#[test]
fn control_of_an_address_is_never_shared() {
    use primitives::AssetId;
    let key = primitives::SecretKey::from_seed([1; 32]).public();
    let mut account = crate::Account::new(key.address());
    account.credit(AssetId(0), 1);
    assert!(account.is_controlled_by(&key) && super::state::shown_nonce(&account) == 0);
    let mut acted = account.clone();
    acted.mark(1);
    assert_eq!(super::state::shown_nonce(&acted), 1, "creation fails here");
    let mut registered = account.clone();
    registered.register(key);
    assert_eq!(super::state::shown_nonce(&registered), 1);
    let mut governed = account.clone();
    governed.mark_policy();
    assert_eq!(super::state::shown_nonce(&governed), 1, "nor at that of an account with a policy");
    assert!(!governed.is_controlled_by(&key), "whose key signs nothing alone");
    account.set_evm(crate::EvmRecord { is_contract: true, ..Default::default() });
    assert!(!account.is_controlled_by(&key), "also the key whose hash is its address");
    registered.set_evm(account.evm());
    assert!(!registered.is_controlled_by(&key), "a registered key as well");
}

/// Accounts of every kind that a transfer may involve, by the first byte of their address.
struct Kinds;

fn kinds() -> [Address; 8] {
    let token = Address::new(token_address(primitives::AssetId(0)).0);
    let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(Address::repeat_byte);
    [one, two, three, four, five, Address::with_last_byte(4), Address::ZERO, token]
}

impl EvmState for Kinds {
    fn account(&self, _: u32, address: &Address) -> Option<AccountInfo> {
        let (balance, nonce, code) = match address.0[0] {
            1 => (U256::from(10u64.pow(18)), 3, vec![]),
            2 => (U256::from(21_000 * 9 + 4), 0, vec![]),
            3 => (U256::from(10u64.pow(18)), 1, vec![0x60, 7, 0x54, 0x00]),
            4 => (U256::MAX, 3, [&[0xef, 1, 0][..], &[3; 20]].concat()),
            _ => return None,
        };
        let code = evm_code(code.into());
        Some(AccountInfo { balance, nonce, code_hash: code.hash_slow(), code: Some(code), ..AccountInfo::default() })
    }

    fn slot(&self, _: u32, _: &Address, _: &U256) -> U256 {
        U256::ZERO
    }

    fn code(&self, _: u32, _: &B256) -> EvmCode {
        unreachable!("accounts come with their code")
    }

    fn block_hash(&self, _: u32, _: u64) -> B256 {
        B256::ZERO
    }
}

fn any_transfer() -> impl proptest::strategy::Strategy<Value = EvmJob> {
    use proptest::prelude::*;
    let specs = prop_oneof![Just(SpecId::CANCUN), Just(SpecId::PRAGUE), Just(SpecId::OSAKA)];
    let parties = (prop_oneof![4 => Just(0), 2 => Just(1), 1 => 2..kinds().len()], 0..kinds().len());
    let gas =
        prop_oneof![8 => Just(21_000u64), 4 => 20_998..21_003u64, 1 => Just(1 << 24), 1 => (1u64 << 24) + 1..1 << 31];
    let large = prop_oneof![Just(U256::MAX), Just(U256::MAX >> 1)];
    let value = prop_oneof![6 => (0..9u64).prop_map(U256::from), 1 => large];
    let prices = (prop_oneof![9 => 5..12u128, 1 => Just(u128::MAX)], proptest::option::of(0..12u128));
    let data = prop_oneof![6 => Just(vec![]), 1 => Just(vec![1])];
    let chain = prop_oneof![6 => Just(Some(1)), 1 => Just(None), 1 => Just(Some(2))];
    let form = (0..4u8, prop_oneof![6 => Just(None), 1 => (0..5u64).prop_map(Some)], chain, data);
    (specs, parties, gas, value, prices, form, proptest::bool::weighted(0.1)).prop_map(
        |(
            spec,
            (from, to),
            gas_limit,
            value,
            (gas_price, gas_priority_fee),
            (tx_type, nonce, chain_id, data),
            lists,
        )| {
            let rules = CfgEnv::new().with_spec_and_mainnet_gas_params(spec);
            let random = Some(B256::ZERO);
            let mut block = BlockEnv { basefee: 7, gas_limit: 1 << 30, prevrandao: random, ..BlockEnv::default() };
            block.set_blob_excess_gas_and_price(0, rules.blob_base_fee_update_fraction());
            let item = AccessListItem { address: kinds()[1], storage_keys: vec![B256::ZERO] };
            let access_list = AccessList(if lists && tx_type > 0 { vec![item] } else { vec![] });
            let transaction = TxEnv {
                tx_type,
                caller: kinds()[from],
                kind: TxKind::Call(kinds()[to]),
                gas_limit,
                gas_price,
                gas_priority_fee: gas_priority_fee.filter(|_| tx_type > 1),
                value,
                nonce: nonce.unwrap_or([3, 0, 1, 3].get(from).copied().unwrap_or(0)),
                chain_id,
                data: data.into(),
                access_list,
                ..TxEnv::default()
            };
            EvmJob { space: 0, context: Arc::new(EvmContext { block, rules }), transaction: Arc::new(transaction) }
        },
    )
}

/// Execution without the interpreter has the same result as the interpreter, to the last write.
#[test]
fn transfers_are_what_the_interpreter_makes_of_them() {
    use super::evm::interpret;
    use super::executor::Above;
    use super::transfer::transfer;
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{Config, TestRunner};
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let (mut short, mut interpreted) = (0, 0);
    for _ in 0..20_000 {
        let job = any_transfer().new_tree(&mut runner).expect("a transfer").current();
        let above = || Above { state: &Kinds, written: Default::default() };
        let (mut plain, mut full) = (above(), above());
        let Some(execution) = transfer(&job, &mut plain).expect("nothing waits") else {
            assert!(plain.written.is_empty(), "a transfer that is left to the interpreter has written nothing");
            interpreted += 1;
            continue;
        };
        short += 1;
        let expected = interpret(&Kinds, &job, &mut full).expect("nothing waits");
        assert_eq!(EvmOutcome::Executed(Box::new(execution)), expected, "{job:?}");
        assert_eq!(plain.written, full.written, "{job:?}");
    }
    assert!(short > 200 && interpreted > 200, "{short} short, {interpreted} interpreted");
}
