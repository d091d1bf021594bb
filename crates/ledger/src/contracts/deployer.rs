//! The deterministic deployer that tools expect on every chain, at the same address: contracts that it creates have the
//! same addresses everywhere. The genesis of a developers' chain contains it. Elsewhere its presigned transaction names
//! no chain and is refused, since anybody could replay such transactions.

use primitives::{Address, Digest};
use proofs::EvmRecord;
use revm::primitives::{hex, keccak256};

use crate::places::accounts::Accounts;
use crate::places::contracts::{Contracts, evm_code};

/// Its address, that of its keyless creation.
pub const CREATE2_DEPLOYER: Address = Address([
    0x4e, 0x59, 0xb4, 0x48, 0x47, 0xb3, 0x79, 0x57, 0x85, 0x88, 0x92, 0x0c, 0xa7, 0x8f, 0xbf, 0x26, 0xc0, 0xb4, 0x95,
    0x6c,
]);
/// Calls CREATE2 with the rest of its input, and its first word as the salt.
const CODE: &str = "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f580151560395781\
     82fd5b8082525050506014600cf3";

/// Adds the deployer to the state of a developers' genesis.
pub(crate) fn found_deployer(accounts: &mut Accounts, contracts: &mut Contracts) {
    let code = hex::decode(CODE).expect("it is hexadecimal");
    let hash = Digest(keccak256(&code).0);
    let account = accounts.get_or_insert(&CREATE2_DEPLOYER);
    account.set_evm(EvmRecord { nonce: 1, code: hash, is_contract: true, ..account.evm() });
    contracts.share(hash, || evm_code(code.into()));
}
