//! The envelope of a packet on the tree, and its authentication.
//!
//! The root wraps an unmodified market-data packet in a header with a MAC over header and payload: BLAKE3 keyed with
//! the key of the epoch, cut to 16 bytes. Proxies never repack; gateways strip the envelope. All integers are
//! big-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | format version, 1 |
//! | 1 | flags: bit 0 says that the root calls the packet unfair |
//! | 2–3 | tree |
//! | 4–7 | epoch |
//! | 8–17 | session |
//! | 18–25 | sequence |
//! | 26–33 | deadline, ns |
//! | 34–41 | when the root sent it, ns: receivers measure delays |
//! | 42 … | payload |
//! | last 16 | MAC of all bytes before |
//!
//! A request to send packets again is a datagram of its own: format version with the highest bit set, epoch, tree,
//! first packet, count, MAC.
//!
//! # Deviations from the paper
//!
//! - The paper trusts every datagram. Whoever can send to a proxy could then be "first copy" and displace the true one.

use crate::Nanos;

/// Bytes of an envelope: those before the payload and the MAC behind it.
pub const ENVELOPE_BYTES: usize = 58;
/// Bytes of a request to send packets again.
pub const REWIND_BYTES: usize = 33;
const HEAD_BYTES: usize = 42;
const TAG_BYTES: usize = 16;
const VERSION: u8 = 1;
const UNFAIR: u8 = 1;
const REWIND_VERSION: u8 = 0x80 | VERSION;

/// What the root says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// Configuration whose plan and key count.
    pub epoch: u32,
    /// Session of the feed: day and incarnation.
    pub session: [u8; 10],
    /// Which of the parallel trees.
    pub tree: u16,
    /// Number of the packet in session and tree, from 1.
    pub sequence: u64,
    /// When receivers shall see it.
    pub deadline: Nanos,
    /// When the root sent it.
    pub sent: Nanos,
    /// The root itself could not be fair: its clock was not good enough.
    pub is_unfair: bool,
}

/// Why bytes are no envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Shorter than a header.
    #[error("{0} bytes are less than an envelope of {ENVELOPE_BYTES}")]
    Short(usize),
    /// Another format.
    #[error("format {0} of the envelope is unknown: this is format {VERSION}")]
    Version(u8),
    /// Bits that have no meaning.
    #[error("flags {0:#04x} of the envelope are unknown")]
    Flags(u8),
}

/// The key of an epoch.
#[derive(Clone)]
pub struct PacketKey([u8; 32]);

impl std::fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PacketKey(..)")
    }
}

impl PacketKey {
    /// Derives the key of an epoch from the venue's secret.
    pub fn of_epoch(secret: &[u8; 32], epoch: u32) -> PacketKey {
        let mut hasher = blake3::Hasher::new_derive_key("walras fairnet packet key v1");
        hasher.update(secret).update(&epoch.to_be_bytes());
        PacketKey(hasher.finalize().into())
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> PacketKey {
        PacketKey(bytes)
    }

    /// The MAC of bytes that lie together: what a proxy computes for each packet.
    fn tag_of(&self, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let whole: [u8; 32] = blake3::keyed_hash(&self.0, bytes).into();
        std::array::from_fn(|at| whole[at])
    }

    pub(crate) fn tag(&self, domain: u8, parts: &[&[u8]]) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[domain]);
        parts.iter().for_each(|part| {
            hasher.update(part);
        });
        let whole: [u8; 32] = hasher.finalize().into();
        std::array::from_fn(|at| whole[at])
    }
}

/// Compares without telling by its duration where the first difference is.
pub(crate) fn is_equal(one: &[u8; 16], two: &[u8]) -> bool {
    one.len() == two.len() && one.iter().zip(two).fold(0, |difference, (one, two)| difference | (one ^ two)) == 0
}

/// First bytes of what else is hashed; a packet's is its version.
const REWIND: u8 = 2;
pub(crate) const LINK: u8 = 3;
pub(crate) const PROBE: u8 = 4;

impl PacketHeader {
    fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[0] = VERSION;
        head[1] = if self.is_unfair { UNFAIR } else { 0 };
        head[2..4].copy_from_slice(&self.tree.to_be_bytes());
        head[4..8].copy_from_slice(&self.epoch.to_be_bytes());
        head[8..18].copy_from_slice(&self.session);
        head[18..26].copy_from_slice(&self.sequence.to_be_bytes());
        head[26..34].copy_from_slice(&self.deadline.to_be_bytes());
        head[34..42].copy_from_slice(&self.sent.to_be_bytes());
        head
    }

    /// Appends the envelope and its payload to `out`.
    pub fn seal(&self, key: &PacketKey, payload: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.head());
        out.extend_from_slice(payload);
        let tag = key.tag_of(&out[start..]);
        out.extend_from_slice(&tag);
    }

    /// Reads header and payload; whether they are authentic is another question.
    pub fn open(bytes: &[u8]) -> Result<(PacketHeader, &[u8]), EnvelopeError> {
        let rest = bytes.len().checked_sub(ENVELOPE_BYTES).ok_or(EnvelopeError::Short(bytes.len()))?;
        let (head, payload) = (&bytes[..HEAD_BYTES], &bytes[HEAD_BYTES..HEAD_BYTES + rest]);
        if head[0] != VERSION {
            return Err(EnvelopeError::Version(head[0]));
        }
        if head[1] & !UNFAIR != 0 {
            return Err(EnvelopeError::Flags(head[1]));
        }
        let eight = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| head[at + byte]));
        let header = PacketHeader {
            epoch: u32::from_be_bytes(std::array::from_fn(|byte| head[4 + byte])),
            session: std::array::from_fn(|byte| head[8 + byte]),
            tree: u16::from_be_bytes([head[2], head[3]]),
            sequence: eight(18),
            deadline: eight(26),
            sent: eight(34),
            is_unfair: head[1] == UNFAIR,
        };
        Ok((header, payload))
    }

    /// Whether the MAC in sealed bytes is that of the key.
    pub fn is_authentic(bytes: &[u8], key: &PacketKey) -> bool {
        let Some((sealed, tag)) = bytes.split_last_chunk::<TAG_BYTES>() else { return false };
        is_equal(&key.tag_of(sealed), tag)
    }
}

/// Asks a parent to send packets again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewindRequest {
    /// Configuration whose key counts.
    pub epoch: u32,
    /// Which tree.
    pub tree: u16,
    /// First packet.
    pub first: u64,
    /// How many packets.
    pub count: u16,
    /// MAC of the above and of the address that asks.
    pub tag: [u8; 16],
}

impl RewindRequest {
    fn tag_of(&self, key: &PacketKey, from: u64) -> [u8; 16] {
        let (epoch, tree) = (self.epoch.to_be_bytes(), self.tree.to_be_bytes());
        let (first, count, from) = (self.first.to_be_bytes(), self.count.to_be_bytes(), from.to_be_bytes());
        key.tag(REWIND, &[&epoch, &tree, &first, &count, &from])
    }

    /// A request by the member `from`, with its MAC.
    pub fn seal(epoch: u32, tree: u16, packets: (u64, u16), from: u64, key: &PacketKey) -> RewindRequest {
        let (first, count) = packets;
        let open = RewindRequest { epoch, tree, first, count, tag: [0; 16] };
        RewindRequest { tag: open.tag_of(key, from), ..open }
    }

    /// Whether the member `from` made this request.
    pub fn is_authentic(&self, from: u64, key: &PacketKey) -> bool {
        is_equal(&self.tag_of(key, from), &self.tag)
    }

    /// The datagram of this request.
    pub fn encode(&self) -> [u8; REWIND_BYTES] {
        let mut bytes = [0; REWIND_BYTES];
        bytes[0] = REWIND_VERSION;
        bytes[1..5].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[5..7].copy_from_slice(&self.tree.to_be_bytes());
        bytes[7..15].copy_from_slice(&self.first.to_be_bytes());
        bytes[15..17].copy_from_slice(&self.count.to_be_bytes());
        bytes[17..].copy_from_slice(&self.tag);
        bytes
    }

    /// The request that a datagram is; `None` if it is none.
    pub fn decode(bytes: &[u8]) -> Option<RewindRequest> {
        let bytes: &[u8; REWIND_BYTES] = bytes.try_into().ok()?;
        if bytes[0] != REWIND_VERSION {
            return None;
        }
        Some(RewindRequest {
            epoch: u32::from_be_bytes(std::array::from_fn(|at| bytes[1 + at])),
            tree: u16::from_be_bytes([bytes[5], bytes[6]]),
            first: u64::from_be_bytes(std::array::from_fn(|at| bytes[7 + at])),
            count: u16::from_be_bytes([bytes[15], bytes[16]]),
            tag: std::array::from_fn(|at| bytes[17 + at]),
        })
    }
}
