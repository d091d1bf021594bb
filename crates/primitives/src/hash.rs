//! BLAKE3 digests, each kind in its own domain.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};
use tiny_keccak::{Hasher, Keccak};

/// A 32-byte BLAKE3 digest.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes` in the domain `context`: a string that names the application, the purpose and its version.
    /// This is BLAKE3's key derivation.
    pub fn of(context: &'static str, bytes: &[u8]) -> Digest {
        with_hasher(context, |hasher| {
            let digest = Digest(*hasher.update(bytes).finalize().as_bytes());
            hasher.reset();
            digest
        })
    }

    /// The digest of a value's encoding, which has at most `N` bytes; nothing is allocated.
    ///
    /// # Panics
    /// If the encoding is longer.
    pub fn of_short<const N: usize>(context: &'static str, value: &impl BorshSerialize) -> Digest {
        let mut bytes = [0; N];
        let mut rest = &mut bytes[..];
        value.serialize(&mut rest).expect("the encoding is short");
        let left = rest.len();
        Digest::of(context, &bytes[..N - left])
    }
}

/// Calls `with` with a hasher of a context, which this thread keeps: most of what is hashed is so short that hashing
/// the context, and moving a hasher of two kilobytes, would cost more than half. Of 33 to 128 bytes the functions of
/// one call save nothing: `blake3::derive_key` takes twice as long, and a path of one chunk, which needs a hidden
/// interface of that crate, takes 6 to 10 percent less (a third less of exactly 64 bytes).
fn with_hasher<T>(context: &'static str, with: impl FnOnce(&mut blake3::Hasher) -> T) -> T {
    const PLACES: usize = 128;
    /// A context's address and length, which name a text that never changes, and its hasher, which is empty.
    type Known = ((usize, usize), Box<blake3::Hasher>);
    thread_local! {
        static KNOWN: [RefCell<Option<Known>>; PLACES] = const { [const { RefCell::new(None) }; PLACES] };
    }
    let name = (context.as_ptr().addr(), context.len());
    let new = || (name, Box::new(blake3::Hasher::new_derive_key(context)));
    KNOWN.with(|known| {
        let place = &known[name.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - PLACES.ilog2())];
        let mut place = place.borrow_mut();
        if place.as_ref().is_none_or(|(of, _)| *of != name) {
            *place = Some(new());
        }
        let (_, hasher) = place.as_mut().expect("it was just put there");
        with(hasher)
    })
}

/// Ethereum's hash.
pub fn keccak256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    let mut keccak = Keccak::v256();
    keccak.update(bytes);
    keccak.finalize(&mut hash);
    hash
}

/// Why a text is not the hexadecimal form of a fixed number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {bytes} bytes in hexadecimal, with or without 0x")]
pub struct HexError {
    text: String,
    bytes: usize,
}

/// Writes bytes as lower-case hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[(b >> 4) as usize] as char, DIGITS[(b & 15) as usize] as char]).collect()
}

/// Reads exactly `N` bytes of hexadecimal, with or without a leading `0x`.
///
/// # Errors
/// [`HexError`] for another length or another character.
pub fn from_hex<const N: usize>(text: &str) -> Result<[u8; N], HexError> {
    let error = || HexError { text: text.into(), bytes: N };
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if digits.len() != 2 * N {
        return Err(error());
    }
    let value = |digit: u8| (digit as char).to_digit(16).map(|v| v as u8).ok_or_else(error);
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Ok(bytes)
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", to_hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Digest, HexError> {
        from_hex(text).map(Digest)
    }
}
