//! Addresses, ed25519 keys and signatures.
//!
//! There is one acceptance rule everywhere, the cofactored one of ZIP-215. A batch equation is cofactored by nature,
//! so with this rule a signature that is valid alone is valid in every batch and the other way round, on every node.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use borsh::{BorshDeserialize, BorshSerialize};
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::hash::{HexError, from_hex, keccak256, to_hex};

const ADDRESS_CONTEXT: &str = "walras 2026 ed25519 address v1";
const BATCH_CONTEXT: &str = "walras 2026 batch verification coefficients v1";
/// Signatures verified by one batch equation; a larger batch gains little and makes one bad signature more expensive.
const BATCH: usize = 256;

/// An account's address: the first 20 bytes of the hash of its first key, so that receiving needs no registration
/// (rule 1).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Address(pub [u8; 20]);

/// An ed25519 public key as transmitted: 32 bytes, validated when a signature is verified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct PublicKey(pub [u8; 32]);

/// An ed25519 signature: R and s, 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Signature(pub [u8; 64]);

/// An ed25519 signing key. Its memory is wiped when it is dropped; it has no `Debug` text.
#[derive(Clone)]
pub struct SecretKey(ed25519_zebra::SigningKey);

/// Compares names byte by byte. Their first eight bytes, which nearly always differ, are compared as one number: sorted
/// maps spend much of a block's time here.
fn compare<const N: usize>(one: &[u8; N], other: &[u8; N]) -> Ordering {
    let leading = |name: &[u8; N]| name.first_chunk().map(|first| u64::from_be_bytes(*first));
    leading(one).cmp(&leading(other)).then_with(|| one.cmp(other))
}

impl Ord for Address {
    fn cmp(&self, other: &Address) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Address) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PublicKey {
    fn cmp(&self, other: &PublicKey) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for PublicKey {
    fn partial_cmp(&self, other: &PublicKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PublicKey {
    /// The address that this key controls until the account registers another.
    pub fn address(&self) -> Address {
        // The same as `derive_key`, but without hashing the context every time: addresses are derived for every
        // transaction.
        static CONTEXT: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context(ADDRESS_CONTEXT));
        let hash = blake3::Hasher::new_from_context_key(&CONTEXT).update(&self.0).finalize();
        Address(hash.as_bytes()[..20].try_into().expect("a hash has 32 bytes"))
    }

    /// Whether `signature` is a valid signature of this key on `message`, by the one acceptance rule.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> bool {
        ed25519_zebra::VerificationKey::try_from(self.0)
            .is_ok_and(|key| key.verify(&ed25519_zebra::Signature::from(signature.0), message).is_ok())
    }
}

impl SecretKey {
    /// The key that RFC 8032 derives from a 32-byte seed.
    pub fn from_seed(seed: [u8; 32]) -> SecretKey {
        SecretKey(ed25519_zebra::SigningKey::from(seed))
    }

    /// The seed; store it encrypted.
    pub fn to_seed(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(ed25519_zebra::VerificationKeyBytes::from(&self.0).into())
    }

    /// Signs `message`, deterministically.
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).to_bytes())
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Something that carries one signature.
pub trait Signed: Sync {
    /// The claimed signing key, and its signature.
    fn signature(&self) -> (PublicKey, Signature);
    /// The signed bytes.
    fn signed_bytes(&self) -> Vec<u8>;
}

/// Verifies the signature of each item, on all threads of the current rayon pool; `true` where it is valid.
///
/// Batches of 256 cost less than half of single checks. A batch that fails is halved until the bad signatures are
/// isolated.
pub fn verify_all<T: Signed>(items: &[T]) -> Vec<bool> {
    if items.len() <= BATCH {
        // One batch gains nothing from another thread.
        return verify_batch(items);
    }
    items.par_chunks(BATCH).flat_map_iter(verify_batch).collect()
}

fn verify_batch<T: Signed>(items: &[T]) -> Vec<bool> {
    match items {
        [] => Vec::new(),
        [one] => {
            let (key, signature) = one.signature();
            vec![key.verify(&one.signed_bytes(), &signature)]
        }
        _ if batch_holds(items) => vec![true; items.len()],
        _ => {
            let (left, right) = items.split_at(items.len() / 2);
            let mut valid = verify_batch(left);
            valid.extend(verify_batch(right));
            valid
        }
    }
}

fn batch_holds<T: Signed>(items: &[T]) -> bool {
    let mut verifier = ed25519_zebra::batch::Verifier::new();
    let mut transcript = blake3::Hasher::new_derive_key(BATCH_CONTEXT);
    for item in items {
        let (key, signature) = item.signature();
        let message = item.signed_bytes();
        transcript.update(&key.0).update(&signature.0).update(blake3::hash(&message).as_bytes());
        let key = ed25519_zebra::VerificationKeyBytes::from(key.0);
        verifier.queue((key, ed25519_zebra::Signature::from(signature.0), &message));
    }
    verifier.verify(Coefficients(transcript.finalize_xof())).is_ok()
}

/// The random coefficients of a batch equation, drawn from a hash of the whole batch: an attacker who chooses the
/// signatures cannot choose the coefficients, and no source of randomness is needed.
struct Coefficients(blake3::OutputReader);

impl rand_core::TryRng for Coefficients {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Self::Error> {
        self.0.fill(destination);
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Coefficients {}

macro_rules! hex_text {
    ($type:ident) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "0x{}", to_hex(&self.0))
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $type {
            type Err = HexError;

            fn from_str(text: &str) -> Result<$type, HexError> {
                from_hex(text).map($type)
            }
        }
    };
}

impl Address {
    /// The text form for people: upper-case letters encode a checksum over the digits, as Ethereum's tools write and
    /// check it (EIP-55). Machines write only lower-case letters, as [`fmt::Display`] does.
    pub fn checked(&self) -> String {
        let digits = to_hex(&self.0);
        let hash = keccak256(digits.as_bytes());
        let is_capital = |at: usize| hash[at / 2] >> (4 * (1 - at % 2)) & 8 != 0;
        let letter = |(at, digit): (usize, char)| if is_capital(at) { digit.to_ascii_uppercase() } else { digit };
        digits
            .chars()
            .enumerate()
            .map(letter)
            .fold("0x".into(), |text: String, digit| text + digit.encode_utf8(&mut [0; 4]))
    }
}

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not 20 bytes in hexadecimal.
    #[error(transparent)]
    Hex(#[from] HexError),
    /// The mixed-case letters are not the checksum of the digits.
    #[error("the checksum of {0} is wrong: a character was mistyped; copy the address again from where it came")]
    Checksum(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", to_hex(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Accepts the form for people, whose checksum must be right, and digits with only lower-case or only upper-case
    /// letters, which have no checksum.
    fn from_str(text: &str) -> Result<Address, AddressError> {
        let address = Address(from_hex(text)?);
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let has = |is: fn(&u8) -> bool| digits.bytes().any(|digit| is(&digit));
        let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
        if is_mixed && address.checked()[2..] != *digits {
            return Err(AddressError::Checksum(text.into()));
        }
        Ok(address)
    }
}

hex_text!(PublicKey);
hex_text!(Signature);

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of EIP-55.
    const CHECKED: [&str; 4] = [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ];

    #[test]
    fn addresses_for_people_are_those_of_ethereum() {
        for text in CHECKED {
            let address: Address = text.parse().expect("its checksum is right");
            assert_eq!(address.checked(), text);
            // The lower-case and upper-case forms do not detect mistakes.
            assert_eq!(address.to_string(), text.to_lowercase());
            assert_eq!(address.to_string().parse(), Ok(address));
            assert_eq!(format!("0x{}", text[2..].to_uppercase()).parse(), Ok(address));
            assert_eq!(text[2..].parse(), Ok(address));
        }
    }

    /// Every mistyped digit of the examples, and every swap of two adjacent digits.
    #[test]
    fn mistyped_addresses_are_refused_by_name() {
        let (mut tried, mut caught) = (0, 0);
        let mut judge = |text: String, right: &str| {
            if text.to_lowercase() != right.to_lowercase() {
                let parsed = text.parse::<Address>();
                tried += 1;
                caught += usize::from(parsed.is_err_and(|error| error.to_string().contains("copy the address again")));
            }
        };
        for right in CHECKED {
            for at in 2..right.len() {
                for digit in "0123456789abcdefABCDEF".chars() {
                    judge(format!("{}{digit}{}", &right[..at], &right[at + 1..]), right);
                }
                if let Some((a, b)) = right[at..].chars().next().zip(right[at + 1..].chars().next()) {
                    judge(format!("{}{b}{a}{}", &right[..at], &right[at + 2..]), right);
                }
            }
        }
        // The checksum fixes the case of each letter, one bit; about fifteen of forty digits are letters.
        assert!(caught * 1_000 >= tried * 999, "{caught} of {tried}");
    }
}
