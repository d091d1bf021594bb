//! The envelope of a packet on the tree, and its authentication.
//!
//! The root wraps an unmodified market-data packet in a header with a MAC over header and payload: HMAC-SHA-256 (RFC
//! 2104) under the key of the epoch, cut to 16 bytes. Proxies never repack; gateways strip the envelope. All integers
//! are big-endian.
//!
//! Everything else is hashed by BLAKE3. A packet of 466 bytes is less than one of its chunks, which it hashes block by
//! block (650 ns here); instructions for SHA-256 take half of that (305 ns), and the MAC is what a proxy adds to its
//! system calls.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | format version, 2 |
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

use sha2::{Digest, Sha256};

use crate::Nanos;

/// Bytes of an envelope: those before the payload and the MAC behind it.
pub const ENVELOPE_BYTES: usize = 58;
/// Bytes of a request to send packets again.
pub const REWIND_BYTES: usize = 33;
const HEAD_BYTES: usize = 42;
const TAG_BYTES: usize = 16;
const VERSION: u8 = 2;
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
pub struct PacketKey {
    /// Of what is no packet.
    key: [u8; 32],
    /// HMAC's inner and outer hash behind their first blocks, which are those of a key of packets alone.
    packets: Box<[Sha256; 2]>,
}

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// A hash behind the block that a key of HMAC begins with.
fn keyed(key: &[u8; 32], pad: u8) -> Sha256 {
    let block: [u8; BLOCK] = std::array::from_fn(|at| pad ^ key.get(at).copied().unwrap_or(0));
    Sha256::new().chain_update(block)
}

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
        PacketKey::from_bytes(hasher.finalize().into())
    }

    pub(crate) fn from_bytes(key: [u8; 32]) -> PacketKey {
        let of_packets = blake3::derive_key("walras fairnet packet mac v2", &key);
        PacketKey { key, packets: Box::new([0x36, 0x5c].map(|pad| keyed(&of_packets, pad))) }
    }

    /// The MAC of bytes that lie together: what a proxy computes for each packet.
    fn tag_of(&self, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let [inner, outer] = &*self.packets;
        let inside = inner.clone().chain_update(bytes).finalize();
        let whole: [u8; 32] = outer.clone().chain_update(inside).finalize().into();
        std::array::from_fn(|at| whole[at])
    }

    pub(crate) fn tag(&self, domain: u8, parts: &[&[u8]]) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
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

/// First bytes of what else is hashed.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases 1 and 2 of RFC 4231 are of HMAC-SHA-256, with keys below a block.
    #[test]
    fn packets_have_the_mac_of_rfc_4231() {
        let hmac = |key: [u8; 32], text: &[u8]| -> [u8; 32] {
            let [inner, outer] = [0x36, 0x5c].map(|pad| keyed(&key, pad));
            outer.chain_update(inner.chain_update(text).finalize()).finalize().into()
        };
        // A key is filled with zeros up to a block.
        let first = std::array::from_fn(|at| if at < 20 { 0x0b } else { 0 });
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let wanted = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        assert_eq!(hex(hmac(first, b"Hi There")), wanted);
        let second = std::array::from_fn(|at| b"Jefe".get(at).copied().unwrap_or(0));
        let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(hmac(second, b"what do ya want for nothing?")), wanted);
        let (key, text) = (PacketKey::from_bytes([7; 32]), [3; 450]);
        let own = hmac(blake3::derive_key("walras fairnet packet mac v2", &[7; 32]), &text);
        assert_eq!(key.tag_of(&text), own[..TAG_BYTES]);
    }
}
