//! Keys of Ethereum wallets, and their signatures.

use borsh::{BorshDeserialize, BorshSerialize};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, SECP256K1};

use crate::Address;
use crate::hash::keccak256;

/// A signature of secp256k1 in the compact form (EIP-2098): r, then s with the parity of the point in its first bit.
/// Only a low s is valid, so a signature has only one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct WalletSignature(pub [u8; 64]);

/// Why bytes are not a signature of a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalletSignatureError {
    /// The length is wrong.
    #[error("a signature of a wallet has 65 bytes (r, s, v), or 64 in the compact form of EIP-2098")]
    Length,
    /// The last byte names no point.
    #[error("the last byte of the signature, v, is not 27, 28, 0 or 1")]
    Parity,
    /// s is the higher of its two possible values.
    #[error("the signature has a high s: sign with the low one (EIP-2)")]
    HighS,
}

impl WalletSignature {
    /// Converts the answer of `eth_signTypedData_v4`: 65 bytes, or 64 in the compact form.
    ///
    /// # Errors
    /// [`WalletSignatureError`] describes the fault in the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<WalletSignature, WalletSignatureError> {
        if let Ok(compact) = bytes.try_into() {
            return Ok(WalletSignature(compact));
        }
        let bytes: [u8; 65] = bytes.try_into().map_err(|_| WalletSignatureError::Length)?;
        let parity = match bytes[64] {
            0 | 27 => 0,
            1 | 28 => 1,
            _ => return Err(WalletSignatureError::Parity),
        };
        let mut compact: [u8; 64] = bytes[..64].try_into().expect("64 bytes");
        if compact[32] >> 7 != 0 || !has_low_s(&compact) {
            return Err(WalletSignatureError::HighS);
        }
        compact[32] |= parity << 7;
        Ok(WalletSignature(compact))
    }

    /// The account whose key signed this hash, if there is one and s is low.
    pub fn recover(&self, hash: &[u8; 32]) -> Option<Address> {
        let mut compact = self.0;
        let parity = compact[32] >> 7;
        compact[32] &= 0x7f;
        if !has_low_s(&compact) {
            return None;
        }
        let signature = RecoverableSignature::from_compact(&compact, RecoveryId::from_u8_masked(parity)).ok()?;
        let key = SECP256K1.recover_ecdsa(Message::from_digest(*hash), &signature).ok()?;
        Some(wallet_address(&key))
    }
}

/// Whether s, the second half, is at most half the order of the curve.
fn has_low_s(compact: &[u8; 64]) -> bool {
    const HALF_ORDER: [u8; 32] = [
        0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d, 0x57,
        0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
    ];
    compact[32..] <= HALF_ORDER[..]
}

fn wallet_address(key: &secp256k1::PublicKey) -> Address {
    let hash = keccak256(&key.serialize_uncompressed()[1..]);
    Address(hash[12..].try_into().expect("twenty bytes"))
}

/// A secp256k1 key in the form of Ethereum wallets.
pub struct WalletKey(secp256k1::SecretKey);

impl WalletKey {
    /// The key of these 32 bytes; `None` for zero and for values not below the order of the curve.
    pub fn from_bytes(bytes: [u8; 32]) -> Option<WalletKey> {
        secp256k1::SecretKey::from_byte_array(bytes).ok().map(WalletKey)
    }

    /// The account that it controls.
    pub fn address(&self) -> Address {
        wallet_address(&self.0.public_key(SECP256K1))
    }

    /// Signs a hash, deterministically and with a low s.
    pub fn sign(&self, hash: &[u8; 32]) -> WalletSignature {
        let (parity, mut compact) =
            SECP256K1.sign_ecdsa_recoverable(Message::from_digest(*hash), &self.0).serialize_compact();
        compact[32] |= (i32::from(parity) as u8 & 1) << 7;
        WalletSignature(compact)
    }
}
