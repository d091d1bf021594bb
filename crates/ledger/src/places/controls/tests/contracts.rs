//! Controls in the contract phase: the words of a block count in it.

use primitives::{Address, AssetControl, AssetId, HolderState};
use proofs::EvmStatus::{Reverted, Succeeded};
use proofs::{EvmStatus, Pair};
use revm::primitives::{U256, keccak256};

use super::super::HolderStanding;
use super::world::*;
use crate::Applied;
use crate::contracts::{EthereumRequest, OFFERS, token_address};

fn input(function: &str, words: &[U256]) -> Vec<u8> {
    let words = words.iter().flat_map(U256::to_be_bytes::<32>);
    keccak256(function)[..4].iter().copied().chain(words).collect()
}

fn of(address: Address) -> U256 {
    U256::from_be_slice(&address.0)
}

fn token(asset: AssetId) -> U256 {
    of(token_address(asset))
}

fn call(from: u8, nonce: u64, to: Address, data: Vec<u8>) -> Vec<u8> {
    let (gas_limit, max_fee, max_tip) = (200_000, 100_000_000_000, 1_000_000_000);
    let to = Some(to);
    wallet(from).sign(&EthereumRequest {
        chain: 7,
        nonce,
        to,
        gas_limit,
        max_fee,
        max_tip,
        data,
        ..EthereumRequest::default()
    })
}

fn statuses(applied: &Applied) -> Vec<EvmStatus> {
    applied.contracts.receipts.iter().map(|receipt| receipt.status).collect()
}

fn transfer(to: u8) -> Vec<u8> {
    input("transfer(address,uint256)", &[of(wallet(to).address()), U256::from(5)])
}

fn place(sell: AssetId, buy: AssetId) -> Vec<u8> {
    let units = U256::from(9_000);
    input("place(address,address,uint64,uint64)", &[token(sell), token(buy), units, units])
}

fn say(world: &mut World, person: u8, state: HolderState) -> primitives::Transaction {
    world.signed(ISSUER, set(wallet(person).address(), state))
}

#[test]
fn the_contract_phase_of_a_freeze_has_its_words() {
    let mut world = World::new(AssetControl::Freezable);
    let token = token_address(CTL);
    let approve = input("approve(address,uint256)", &[of(wallet(BOB).address()), U256::from(100)]);
    let applied = world.block(
        Vec::new(),
        vec![call(ANN, 0, token, transfer(BOB)), call(ANN, 1, OFFERS, place(CTL, EUR)), call(ANN, 2, token, approve)],
    );
    assert_eq!(statuses(&applied), [Succeeded; 3]);
    assert_eq!(world.ledger.held_offers(CTL, &wallet(ANN).address()), 1);
    let freeze = say(&mut world, ANN, HolderState::Frozen);
    let spend = |from, to| {
        input(
            "transferFrom(address,address,uint256)",
            &[of(wallet(from).address()), of(wallet(to).address()), U256::from(5)],
        )
    };
    let applied = world.block(
        vec![freeze],
        vec![
            call(ANN, 3, token, transfer(BOB)),
            call(ANN, 4, OFFERS, place(CTL, EUR)),
            call(ANN, 5, OFFERS, place(EUR, CTL)),
            call(ANN, 6, OFFERS, place(EUR, USD)),
            call(BOB, 0, token, transfer(ANN)),
            call(BOB, 1, token, spend(ANN, CY)),
            call(CY, 0, token, transfer(BOB)),
        ],
    );
    // The first receipt is the settlement: the offer of before has ended.
    let expected = [Succeeded, Reverted, Reverted, Reverted, Succeeded, Reverted, Reverted, Succeeded];
    assert_eq!(statuses(&applied), expected);
    assert!(world.ledger.book().get(Pair { sell: CTL, buy: EUR }).is_none());
    assert_eq!(world.units_of(&wallet(ANN).address(), CTL), START - 5);
    // What Ethereum saw of the holder at a height is kept.
    let height = world.ledger.height();
    let facts = |height| world.ledger.holder_facts_at(CTL, &wallet(ANN).address(), height).expect("kept").standing;
    assert_eq!((facts(height - 1), facts(height)), (HolderStanding::Open, HolderStanding::Frozen));
}

#[test]
fn a_frozen_thief_spends_no_allowance_and_an_opening_counts_in_its_block() {
    let mut world = World::new(AssetControl::Freezable);
    let token = token_address(CTL);
    let approve = input("approve(address,uint256)", &[of(wallet(BOB).address()), U256::from(100)]);
    let freeze = say(&mut world, BOB, HolderState::Frozen);
    let spend = input(
        "transferFrom(address,address,uint256)",
        &[of(wallet(ANN).address()), of(wallet(CY).address()), U256::from(5)],
    );
    let applied = world.block(vec![freeze], vec![call(ANN, 0, token, approve), call(BOB, 0, token, spend.clone())]);
    assert_eq!(statuses(&applied), [Succeeded, Reverted]);
    let open = say(&mut world, BOB, HolderState::Open);
    let applied = world.block(vec![open], vec![call(BOB, 1, token, spend)]);
    assert_eq!(statuses(&applied), [Succeeded]);
}

#[test]
fn a_token_for_admitted_holders_moves_between_them() {
    let mut world = World::new(AssetControl::Admitted);
    let token = token_address(CTL);
    let stranger = Address([0x77; 20]);
    let to_stranger = input("transfer(address,uint256)", &[of(stranger), U256::from(5)]);
    let asks = input("isOpen(address)", &[of(stranger)]);
    let controls = input("controls()", &[]);
    let applied = world.block(
        Vec::new(),
        vec![
            call(ANN, 0, token, transfer(BOB)),
            call(ANN, 1, token, to_stranger),
            call(ANN, 2, token, asks),
            call(ANN, 3, token, controls),
        ],
    );
    assert_eq!(statuses(&applied), [Succeeded, Reverted, Succeeded, Succeeded]);
}
