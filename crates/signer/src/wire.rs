//! What a node and a signer say to each other: a length (4 bytes, little-endian), then the message in Borsh, in both
//! directions.

use std::io::{Error, ErrorKind, Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{PublicKey, Signature, SigningRequest};

/// Bytes of the longest message: a refusal in words.
const MESSAGE_BYTES_MAX: usize = 1_024;

/// What a node asks.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SignerQuestion {
    /// Whose signatures are these?
    Key,
    /// Sign this.
    Sign(SigningRequest),
}

/// What the signer answers.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SignerAnswer {
    /// The validator's key.
    Key(PublicKey),
    /// It signed.
    Signed(Signature),
    /// It does not sign, and why.
    Refused(String),
}

/// Writes a message.
///
/// # Errors
/// Of the socket.
pub fn write(to: &mut impl Write, message: &impl BorshSerialize) -> Result<()> {
    let body = borsh::to_vec(message)?;
    to.write_all(&[&(body.len() as u32).to_le_bytes()[..], &body].concat())
}

/// Reads a message.
///
/// # Errors
/// Of the socket, and [`ErrorKind::InvalidData`] if it is none.
pub fn read<T: BorshDeserialize>(from: &mut impl Read) -> Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(Error::new(ErrorKind::InvalidData, "a message is longer than any that there is"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    borsh::from_slice(&body)
}
