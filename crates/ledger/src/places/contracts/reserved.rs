//! Reserved addresses, which are nobody's: those of tokens, one for each asset, and that of the offers.

use primitives::{Address, AssetId};

/// The prefix of addresses of tokens: "Walras" and ten zeros; the number of the asset follows, big-endian.
const PREFIX: [u8; 16] = *b"Walras\0\0\0\0\0\0\0\0\0\0";
/// The address of the offers: "Walras", nine zeros, a one, and four zeros.
pub const OFFERS: Address = Address(*b"Walras\0\0\0\0\0\0\0\0\0\x01\0\0\0\0");

/// Whether an address is that of a token or of the offers: no one has its key, and no contract is created there.
pub fn is_reserved(address: &Address) -> bool {
    token_at(address).is_some() || *address == OFFERS
}

/// The address of an asset's token.
pub fn token_address(asset: AssetId) -> Address {
    let mut address = [0; 20];
    address[..16].copy_from_slice(&PREFIX);
    address[16..].copy_from_slice(&asset.0.to_be_bytes());
    Address(address)
}

/// The asset whose token is at an address, if the address is a reserved one. The number need not be that of an
/// existing asset.
pub fn token_at(address: &Address) -> Option<AssetId> {
    let number = address.0.strip_prefix(&PREFIX)?;
    Some(AssetId(u32::from_be_bytes(number.try_into().expect("four bytes"))))
}
