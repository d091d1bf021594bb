//! Bodies of bytes, and transactions up to their signatures.

use axum::body::Bytes;
use axum::http::StatusCode;
use primitives::{Transaction, WalletSignature, to_hex};

use crate::kit::Failure;

/// Bytes of a signature, the last of a transaction.
pub(super) const SIGNATURE: usize = 64;
/// Bytes of the signer: a key, or the identity of the network of typed data. The byte before says which.
const SIGNER: usize = 32;

/// The bytes of a transaction up to its signature.
pub(super) fn unsigned(transaction: &Transaction) -> String {
    let bytes = borsh::to_vec(transaction).expect("writing to memory cannot fail");
    format!("0x{}", to_hex(&bytes[..bytes.len() - SIGNATURE]))
}

/// Appends a signature to the transaction that it signs: of an ed25519 key as it is, of a wallet in compact form.
pub(super) fn with_signature(unsigned: &str, signature: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = bytes_of_hex("transaction", unsigned)?;
    let signature = bytes_of_hex("signature", signature)?;
    let is_key = bytes.len().checked_sub(SIGNER + 1).and_then(|at| bytes.get(at)) == Some(&0);
    if is_key {
        if signature.len() != SIGNATURE {
            let told = format!("signature: an ed25519 signature has {SIGNATURE} bytes, this one {}", signature.len());
            return Err(Failure::malformed(told));
        }
        bytes.extend_from_slice(&signature);
        return Ok(bytes);
    }
    let signature =
        WalletSignature::from_bytes(&signature).map_err(|error| Failure::malformed(format!("signature: {error}")))?;
    bytes.extend_from_slice(&signature.0);
    Ok(bytes)
}

/// Decodes hexadecimal digits.
pub(super) fn bytes_of_hex(place: &str, text: &str) -> Result<Vec<u8>, Failure> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let nibble = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let pairs = digits.chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?));
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes.ok_or_else(|| Failure::malformed(format!("{place}: not hexadecimal")))
}

pub(super) fn whole(body: Result<Bytes, axum::extract::rejection::BytesRejection>) -> Result<Bytes, Failure> {
    body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Failure::too_large(),
        _ => Failure::malformed(format!("the body did not arrive whole: {error}")),
    })
}
