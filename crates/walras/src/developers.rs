//! The accounts that Ethereum's development tools come with: those of the mnemonic "test test test test test test
//! test test test test test junk". Their keys are public; only the demo's genesis pays them anything.

pub use doors::ethereum::DEVELOPER_KEYS;
use ledger::contracts::EthereumKey;
use primitives::{Address, Amount, AssetId, from_hex};

/// The balance of each in the first two assets at the start, in units: 10,000 whole ones.
const UNITS: Amount = 10_000_000_000;

/// The accounts.
pub fn developers() -> impl Iterator<Item = Address> {
    DEVELOPER_KEYS.iter().map(|key| {
        let seed = from_hex(key).expect("a key is 32 bytes");
        EthereumKey::from_seed(seed).expect("a key").address()
    })
}

/// The balances that a genesis gives them.
pub fn developer_balances() -> impl Iterator<Item = (Address, AssetId, Amount)> {
    developers().flat_map(|developer| [0, 1].map(|asset| (developer, AssetId(asset), UNITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accounts_are_those_that_everybody_knows() {
        assert_eq!(
            developers().map(|developer| developer.to_string()).collect::<Vec<_>>(),
            doors::ethereum::DEVELOPERS
        );
        assert_eq!(developers().next().expect("ten").checked(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    }
}
