//! Envelopes as bytes: what a block has of sealed orders.
//!
//! An envelope hides signed operations until its block is decided (crate `sealing`). How these are signed is in
//! `sealed`.

use std::io::{Error, ErrorKind, Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};

use crate::sequence::Sequence;
use crate::{Address, Digest, PublicKey};

/// The first rules whose blocks open envelopes.
pub const RULES_OF_ENVELOPES: u32 = 21;
/// What an envelope costs, in fees, beside one for each KiB of its box: its key, its opening, and up to 32 operations
/// that may turn out to be garbage.
pub const SEALED_WEIGHT: u64 = 32;
/// How many heights ahead an envelope, and what is in it, may end.
pub const SEALED_AHEAD_MAX: u64 = 256;
/// Bytes of an envelope's point.
pub const SEALED_POINT_BYTES: usize = 96;
const SALT_CONTEXT: &str = "walras 2026 sealed salt v1";
/// How large a box is. Who sees an envelope sees this, and not how many operations it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum BoxSize {
    /// 512 bytes: two offers.
    Small,
    /// 2,048 bytes: eleven.
    Middle,
    /// 8,192 bytes: 32.
    Large,
}

/// An envelope as its block has it. Its box is as long as its size says; whether its point is one, the crate `sealing`
/// says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeBytes {
    /// The number of the committee's key that opens it.
    pub key: u64,
    /// A point of G2, compressed.
    pub point: [u8; SEALED_POINT_BYTES],
    size: BoxSize,
    sealed: Box<[u8]>,
}

/// The envelope for which an operation in it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Enclosure {
    /// The account that pays for the envelope.
    pub payer: Address,
    /// The number of the envelope.
    pub sequence: Sequence,
}

/// What nobody else has: of several envelopes with one name one is opened, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct EnvelopeName {
    /// The key that signs the envelope.
    pub signer: PublicKey,
    /// What its operations are signed for.
    pub enclosure: Enclosure,
}

impl BoxSize {
    /// All, the smallest first.
    pub const ALL: [BoxSize; 3] = [BoxSize::Small, BoxSize::Middle, BoxSize::Large];

    /// Bytes of a box.
    pub const fn bytes(self) -> usize {
        match self {
            BoxSize::Small => 512,
            BoxSize::Middle => 2_048,
            BoxSize::Large => 8_192,
        }
    }
}

impl EnvelopeBytes {
    /// An envelope that is sealed to the key of this number; `None` if no box has so many bytes.
    pub fn new(key: u64, point: [u8; SEALED_POINT_BYTES], sealed: Box<[u8]>) -> Option<EnvelopeBytes> {
        let size = BoxSize::ALL.into_iter().find(|size| size.bytes() == sealed.len())?;
        Some(EnvelopeBytes { key, point, size, sealed })
    }

    /// The size of its box.
    pub fn size(&self) -> BoxSize {
        self.size
    }

    /// Its box.
    pub fn sealed(&self) -> &[u8] {
        &self.sealed
    }
}

impl BorshSerialize for EnvelopeBytes {
    fn serialize<W: Write>(&self, to: &mut W) -> Result<()> {
        (self.key, self.size, SEALED_POINT_BYTES as u32, self.point).serialize(to)?;
        self.sealed.serialize(to)
    }
}

impl BorshDeserialize for EnvelopeBytes {
    fn deserialize_reader<R: Read>(from: &mut R) -> Result<EnvelopeBytes> {
        let wrong = |why: &str| Err(Error::new(ErrorKind::InvalidData, why));
        let (key, size, length) = <(u64, BoxSize, u32)>::deserialize_reader(from)?;
        if length as usize != SEALED_POINT_BYTES {
            return wrong("the point of an envelope has 96 bytes");
        }
        let point = BorshDeserialize::deserialize_reader(from)?;
        if u32::deserialize_reader(from)? as usize != size.bytes() {
            return wrong("the box of an envelope has 512, 2048 or 8192 bytes, as its size says");
        }
        let mut sealed = vec![0; size.bytes()].into_boxed_slice();
        from.read_exact(&mut sealed)?;
        Ok(EnvelopeBytes { key, point, size, sealed })
    }
}

impl Enclosure {
    /// The salt in the domain of typed data that is signed for this envelope of a network.
    pub fn salt(&self, network: &Digest) -> Digest {
        Digest::of_short::<60>(SALT_CONTEXT, &(network, self))
    }
}
