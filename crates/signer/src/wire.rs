//! The messages between a node and a signer: a length (4 bytes, little-endian), then the message in Borsh, in both
//! directions.

use std::io::{Error, ErrorKind, Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{PublicKey, Signature, SigningRequest, ValidatorPost};

/// Bytes of the longest message: a refusal as text.
const MESSAGE_BYTES_MAX: usize = 1_024;

/// A question of the node.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SignerQuestion {
    /// Asks for the key of the signatures.
    Key,
    /// Asks for a signature.
    Sign(SigningRequest),
    /// Asks for the signature of what the validator says of itself: it contradicts nothing, and so it is not recorded.
    SignPost(ValidatorPost),
}

/// An answer of the signer.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SignerAnswer {
    /// The validator's key.
    Key(PublicKey),
    /// The signature.
    Signed(Signature),
    /// It does not sign, with the reason.
    Refused(String),
}

/// Writes a message.
///
/// # Errors
/// An error of the socket.
pub fn write(to: &mut impl Write, message: &impl BorshSerialize) -> Result<()> {
    let body = borsh::to_vec(message)?;
    to.write_all(&[&(body.len() as u32).to_le_bytes()[..], &body].concat())
}

/// Reads a message.
///
/// # Errors
/// An error of the socket, and [`ErrorKind::InvalidData`] if the bytes are not a message.
pub fn read<T: BorshDeserialize>(from: &mut impl Read) -> Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(Error::new(ErrorKind::InvalidData, "a message is longer than the longest valid one"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    borsh::from_slice(&body)
}
