//! The token of what pays for gas, as contracts use it: a contract that each genesis with contracts begins with.

use primitives::{Address, Digest};
use revm::primitives::{hex, keccak256};

use super::evm::evm_code;
use super::state::Contracts;
use crate::account::EvmRecord;
use crate::accounts::Accounts;

/// The address of WETH9: "Walras", nine zeros, a two, and four zeros.
pub const WETH9: Address = Address(*b"Walras\0\0\0\0\0\0\0\0\0\x02\0\0\0\0");
/// Its runtime code in hexadecimal, as solc compiles `contracts/WETH9.sol`: `make test-ethereum` holds them together.
const CODE: &str = include_str!("../../contracts/WETH9.hex");

/// Puts the contract into the state of a genesis.
pub(crate) fn found_weth9(accounts: &mut Accounts, contracts: &mut Contracts) {
    let code = hex::decode(CODE.trim()).expect("it is compiled code");
    let hash = Digest(keccak256(&code).0);
    let account = accounts.get_or_insert(&WETH9);
    account.set_evm(EvmRecord { nonce: 1, code: hash, is_contract: true, ..account.evm() });
    contracts.share(hash, || evm_code(code.into()));
}
