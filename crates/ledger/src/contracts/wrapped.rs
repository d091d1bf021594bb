//! The wrapped form of the asset that pays for gas, as contracts use it: each genesis with contracts contains this
//! contract.

use primitives::{Address, Digest};
use proofs::EvmRecord;
use revm::primitives::{hex, keccak256};

use crate::places::accounts::Accounts;
use crate::places::contracts::{Contracts, evm_code};

/// The address of WETH9: "Walras", nine zeros, a two, and four zeros.
pub const WETH9: Address = Address(*b"Walras\0\0\0\0\0\0\0\0\0\x02\0\0\0\0");
/// Its runtime code in hexadecimal, as solc compiles `contracts/WETH9.sol`: `make test-ethereum` checks that they
/// match.
const CODE: &str = include_str!("../../contracts/WETH9.hex");

/// Adds the contract to the state of a genesis.
pub(crate) fn found_weth9(accounts: &mut Accounts, contracts: &mut Contracts) {
    let code = hex::decode(CODE.trim()).expect("it is compiled code");
    let hash = Digest(keccak256(&code).0);
    let account = accounts.get_or_insert(&WETH9);
    account.set_evm(EvmRecord { nonce: 1, code: hash, is_contract: true, ..account.evm() });
    contracts.share(hash, || evm_code(code.into()));
}
