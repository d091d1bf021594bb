//! Frames about opened envelopes, and their layout.
//!
//! ```text
//! ask     tag 1 (251) · 0 · height 8
//! shares  tag 1 · 1 · height 8 · key 8 · points 48 each, 1 to 64 of them
//! keys    tag 1 · 2 · height 8 · points 48 each, 1 to 64 of them
//! ```

use std::sync::Arc;

use primitives::Height;
use sealing::OpeningKey;

/// Opening keys, or shares of them, in the order of the block.
pub type Points = Arc<[OpeningKey]>;

/// The most envelopes of a block.
pub(crate) const ENVELOPES_MAX: usize = ledger::ENVELOPES_MAX as usize;

/// The first byte of each frame.
pub(crate) const TAG: u8 = 251;
const ASK: u8 = 0;
const SHARES: u8 = 1;
const KEYS: u8 = 2;
const HEAD_BYTES: usize = 10;
const KEY_BYTES: usize = 8;
const POINT_BYTES: usize = 48;

/// What peers tell each other about the envelopes of a height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealFrame {
    /// Asks for shares or keys.
    Ask(Height),
    /// The sender's share of each opening key of a lot, in the order of the block.
    Shares {
        /// The height.
        height: Height,
        /// The number of the committee's key.
        key: u64,
        /// The shares.
        points: Points,
    },
    /// All opening keys of the height, in the order of the block.
    Keys {
        /// The height.
        height: Height,
        /// The keys.
        points: Points,
    },
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no frame about opened envelopes: {0} bytes, kind {1:?}")]
pub struct UnsealFrameError(usize, Option<u8>);

impl UnsealFrame {
    /// The height that it helps to open, if it does.
    pub fn opens(&self) -> Option<Height> {
        match self {
            UnsealFrame::Ask(_) => None,
            UnsealFrame::Shares { height, .. } | UnsealFrame::Keys { height, .. } => Some(*height),
        }
    }

    /// Its layout.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, height, key, points): (u8, Height, Option<u64>, &[OpeningKey]) = match self {
            UnsealFrame::Ask(height) => (ASK, *height, None, &[]),
            UnsealFrame::Shares { height, key, points } => (SHARES, *height, Some(*key), points),
            UnsealFrame::Keys { height, points } => (KEYS, *height, None, points),
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + KEY_BYTES + POINT_BYTES * points.len());
        bytes.extend([TAG, kind]);
        bytes.extend(height.to_le_bytes());
        bytes.extend(key.iter().flat_map(|key| key.to_le_bytes()));
        points.iter().for_each(|point| bytes.extend(point.0));
        bytes
    }

    /// Reads a frame that fills the bytes. Its points are not looked at.
    ///
    /// # Errors
    /// [`UnsealFrameError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<UnsealFrame, UnsealFrameError> {
        UnsealFrame::read(bytes).ok_or_else(|| UnsealFrameError(bytes.len(), bytes.get(1).copied()))
    }

    fn read(bytes: &[u8]) -> Option<UnsealFrame> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let [TAG, kind, height @ ..] = *head else { return None };
        let height = Height::from_le_bytes(height);
        match kind {
            ASK => rest.is_empty().then_some(UnsealFrame::Ask(height)),
            SHARES => {
                let (key, rest) = rest.split_first_chunk::<KEY_BYTES>()?;
                Some(UnsealFrame::Shares { height, key: u64::from_le_bytes(*key), points: read_points(rest)? })
            }
            KEYS => Some(UnsealFrame::Keys { height, points: read_points(rest)? }),
            _ => None,
        }
    }
}

fn read_points(bytes: &[u8]) -> Option<Points> {
    let (points, left) = bytes.as_chunks::<POINT_BYTES>();
    let is_whole = left.is_empty() && (1..=ENVELOPES_MAX).contains(&points.len());
    is_whole.then(|| points.iter().map(|point| OpeningKey(*point)).collect())
}
