//! What is told of earlier heights.

mod evm;

use std::collections::{BTreeMap, BTreeSet};

use evm::*;
use ledger::Signatures;
use ledger::contracts::{HISTORY_BLOCKS, UndoError};
use primitives::{Address, AssetId, Body, Digest, Operation};

/// Values of slots, by account and number.
type Slots = BTreeMap<(Address, u8), Option<[u8; 32]>>;

/// What Ethereum saw after each height, noted as it went by, is what the undo records tell afterwards.
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
            // Native payments change what Ethereum sees too; they make it a history of its own.
            let to = if sequence % 2 == 0 { Address([99; 20]) } else { key(3).address() };
            let operation = Operation::Pay { to, asset: AssetId(0), amount: 1_000 };
            let body = Body { chain: CHAIN, account: holder.public().address(), sequence, operation };
            let lanes = block.sub_blocks.iter().map(|sub| sub.ethereum.clone()).collect();
            let mixed = chain.block(vec![body.sign(&holder)], lanes);
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

fn word_of(number: u8) -> [u8; 32] {
    std::array::from_fn(|at| if at == 31 { number } else { 0 })
}

/// Of older blocks nothing is kept, and that is said; a restored ledger has no records at all.
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
