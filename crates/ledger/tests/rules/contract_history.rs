//! Reads of earlier heights.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::evm::*;
use ledger::contracts::ethereum::{self, B256, U256};
use ledger::contracts::{
    AccountInfo, EthereumTransaction, EvmCode, EvmJob, EvmOutcome, EvmState, EvmStatus, EvmView, HISTORY_BLOCKS,
    TokenFacts, TraceSettings, Tracer, UndoError,
};
use ledger::{Ledger, Pair, Place, Signatures};
use primitives::{Address, Amount, AssetId, Body, Digest, Operation};

/// Values of slots, by account and number.
type Slots = BTreeMap<(Address, u8), Option<[u8; 32]>>;

/// The undo records reproduce what Ethereum saw after each height, as recorded at the time.
#[test]
fn earlier_heights_are_told_as_they_were() {
    for seed in 50..53 {
        let mut chain = Chain::new();
        let blocks = history(seed, 6, 40);
        let holder = validator(9);
        let mut known: BTreeSet<Address> = (0..8).map(|from| key(from).address()).collect();
        known.extend([Address([77; 20]), Address([0; 20]), Address([99; 20]), holder.public().address()]);
        known.extend((0..4).map(|index| validator(index).public().address()));
        let mut seen: Vec<BTreeMap<Address, (u128, u64, Digest)>> = Vec::new();
        let mut slots: Vec<Slots> = Vec::new();
        let look = |chain: &Chain, known: &BTreeSet<Address>| {
            let code = |one: &Address| chain.ledger.accounts().get(one).map_or(Digest::default(), |own| own.evm().code);
            let nonce = |one: &Address| chain.ledger.ethereum_nonce(one);
            let of = |one: &Address| (*one, (chain.wei(one), nonce(one), code(one)));
            let slot = |one: &Address, at: u8| ((*one, at), chain.ledger.contracts().slot(one, &word_of(at)));
            let all: BTreeMap<_, _> = known.iter().map(of).collect();
            (all, known.iter().flat_map(|one| (0..2).map(move |at| slot(one, at))).collect::<BTreeMap<_, _>>())
        };
        for (sequence, block) in (1..).zip(&blocks) {
            let (accounts, values) = look(&chain, &known);
            seen.push(accounts);
            slots.push(values);
            // Native payments change what Ethereum sees, too; they have their own part of the history.
            let to = if sequence % 2 == 0 { Address([99; 20]) } else { key(3).address() };
            let operation = Operation::Pay { to, asset: AssetId(0), amount: 1_000 };
            let body = Body { chain: CHAIN, account: holder.public().address(), sequence, until: 50_000, operation };
            let lanes = block.sub_blocks.iter().map(|sub| sub.ethereum.clone()).collect();
            let mixed = chain.block(vec![body.sign(&NETWORK, &holder)], lanes);
            let applied = chain.apply(&mixed);
            known.extend(applied.contracts.receipts.iter().filter_map(|receipt| receipt.contract));
        }
        let ledger = &chain.ledger;
        for (height, (accounts, values)) in (0..).zip(seen.iter().zip(&slots)) {
            for address in &known {
                let told = ledger.ethereum_account_at(address, height).expect("kept");
                let expected = accounts.get(address).copied().unwrap_or_default();
                assert_eq!((told.wei, told.nonce, told.code), expected, "{address} at height {height}");
                let code = ledger.ethereum_code(&told.code);
                assert_eq!(code.is_some(), told.code != Digest::default());
                for at in 0..2 {
                    let told = ledger.slot_at(address, &word_of(at), height).expect("kept");
                    assert_eq!(told, values.get(&(*address, at)).copied().flatten());
                }
            }
        }
        let future = ledger.ethereum_account_at(&Address([77; 20]), 7);
        assert_eq!(future, Err(UndoError::Future(7)));
    }
}

/// A ledger as it was between the phases of a block.
struct Between(Arc<Ledger>, u64);

impl EvmState for Between {
    fn account(&self, _: u32, address: &ethereum::Address) -> Option<AccountInfo> {
        let seen = self.0.ethereum_account_within(&Address(address.0.0), self.1).expect("kept");
        let code = self.0.ethereum_code(&seen.code).unwrap_or_default();
        let info = AccountInfo {
            balance: U256::from(seen.wei),
            nonce: seen.nonce,
            code_hash: code.hash_slow(),
            code: Some(code),
            ..AccountInfo::default()
        };
        (!info.is_empty()).then_some(info)
    }

    fn slot(&self, _: u32, address: &ethereum::Address, slot: &U256) -> U256 {
        let value = self.0.slot_within(&Address(address.0.0), &slot.to_be_bytes(), self.1).expect("kept");
        value.map_or(U256::ZERO, U256::from_be_bytes)
    }

    fn code(&self, _: u32, _: &B256) -> EvmCode {
        unreachable!("accounts come with their code")
    }

    fn token(&self, _: u32, asset: AssetId) -> Option<TokenFacts> {
        self.0.token_facts_at(asset, self.1).expect("kept")
    }

    fn resting(&self, _: u32, pair: Pair, place: &Place) -> Option<Amount> {
        self.0.offer_within(pair, place, self.1).expect("kept")
    }

    fn block_hash(&self, _: u32, number: u64) -> B256 {
        B256::new(self.0.recent_digest(number).expect("kept").0)
    }
}

/// Over the state between the phases of an old block, its transactions give the results in their receipts, also if
/// native payments of the same block changed their senders; tracing them changes nothing.
#[test]
fn blocks_execute_again_as_they_did() {
    let mut chain = Chain::new();
    let holder = validator(9);
    let mut applied = Vec::new();
    for (sequence, block) in (1..).zip(&history(77, 8, 40)) {
        let asset = AssetId(sequence as u32 % 2);
        let operation = Operation::Pay { to: key((sequence % 4) as u8).address(), asset, amount: 1_000 };
        let body = Body { chain: CHAIN, account: holder.public().address(), sequence, until: 50_000, operation };
        let lanes = block.sub_blocks.iter().map(|sub| sub.ethereum.clone()).collect();
        let mixed = chain.block(vec![body.sign(&NETWORK, &holder)], lanes);
        let receipts = chain.apply(&mixed).contracts;
        applied.push((mixed, receipts));
    }
    let ledger = Arc::new(chain.ledger.clone());
    let mut executed = 0;
    for (block, receipts) in &applied {
        let mut view = EvmView::new(Between(ledger.clone(), block.height));
        let at = |position: u32| {
            let all = block.sub_blocks.iter().enumerate();
            let all = all.flat_map(|(sub, lane)| lane.ethereum.iter().map(move |bytes| (sub, bytes)));
            all.clone().nth(position as usize).expect("it is in the block")
        };
        for receipt in &receipts.receipts {
            let (sub, bytes) = at(receipt.position.expect("of a transaction"));
            let context = Arc::new(ledger.ethereum_context(block, sub, receipts.base_fee));
            let transaction = EthereumTransaction::decode(bytes).expect("decodes").to_job(&receipt.sender);
            let job = EvmJob { space: 0, context, transaction };
            let settings =
                TraceSettings { steps: 100, stack: true, memory: true, storage: true, returned: true, calls: true };
            let (watched, tracer) = view.trace(&job, Tracer::new(settings));
            let watched = watched.expect("executed");
            let EvmOutcome::Executed(execution) = view.execute(&job) else { panic!("skipped") };
            assert_eq!((execution.status, execution.gas_used), (receipt.status, receipt.gas_used), "{receipt:?}");
            assert_eq!(
                (watched.status, watched.gas_used, watched.logs.len()),
                (receipt.status, receipt.gas_used, receipt.logs.len())
            );
            let call = tracer.call.expect("there is an outermost call");
            assert_eq!(call.error.is_none(), receipt.status == EvmStatus::Succeeded);
            executed += 1;
        }
    }
    assert!(executed > 100, "{executed}");
}

fn word_of(number: u8) -> [u8; 32] {
    std::array::from_fn(|at| if at == 31 { number } else { 0 })
}

/// Nothing is kept of older blocks, and the error says so; a restored ledger has no records.
#[test]
fn records_are_kept_of_the_last_blocks_alone() {
    let mut chain = Chain::new();
    for _ in 0..HISTORY_BLOCKS + 3 {
        let block = chain.block(Vec::new(), vec![vec![]]);
        chain.ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    }
    let one = key(0).address();
    let forgotten = |height, first| Err(UndoError::Forgotten { height, first });
    assert_eq!(chain.ledger.ethereum_account_at(&one, 2), forgotten(2, 3));
    assert!(chain.ledger.ethereum_account_at(&one, 3).is_ok());
    assert_eq!(chain.ledger.slot_at(&one, &word_of(0), 0), Err(UndoError::Forgotten { height: 0, first: 3 }));
}
