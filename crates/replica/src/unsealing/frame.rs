//! Frames about opened envelopes, and their layout.
//!
//! ```text
//! tag 1 (251) · kind 1 · height 8 · points 48 each, 1 to 64 of them; none in an ask
//! ```

use std::sync::Arc;

use primitives::Height;
use sealing::OpeningKey;

/// Opening keys, or shares of them, in the order of the block.
pub type Points = Arc<[OpeningKey]>;

/// The most envelopes of a block.
pub const ENVELOPES_MAX: usize = 64;

/// The first byte of each frame.
pub(crate) const TAG: u8 = 251;
const ASK: u8 = 0;
const SHARES: u8 = 1;
const KEYS: u8 = 2;
const HEAD_BYTES: usize = 10;
const POINT_BYTES: usize = 48;

/// What peers tell each other about the envelopes of a height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealFrame {
    /// Asks for shares or keys.
    Ask(Height),
    /// The sender's share of each key, in the order of the block.
    Shares {
        /// The height.
        height: Height,
        /// The shares.
        points: Points,
    },
    /// The keys themselves, in the order of the block.
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
    /// Its layout.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, height, points): (u8, Height, &[OpeningKey]) = match self {
            UnsealFrame::Ask(height) => (ASK, *height, &[]),
            UnsealFrame::Shares { height, points } => (SHARES, *height, points),
            UnsealFrame::Keys { height, points } => (KEYS, *height, points),
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + POINT_BYTES * points.len());
        bytes.extend([TAG, kind]);
        bytes.extend(height.to_le_bytes());
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
        let (points, left) = rest.as_chunks::<POINT_BYTES>();
        let points = || points.iter().map(|point| OpeningKey(*point)).collect();
        let is_whole = left.is_empty() && (1..=ENVELOPES_MAX * POINT_BYTES).contains(&rest.len());
        match kind {
            ASK if rest.is_empty() => Some(UnsealFrame::Ask(height)),
            SHARES if is_whole => Some(UnsealFrame::Shares { height, points: points() }),
            KEYS if is_whole => Some(UnsealFrame::Keys { height, points: points() }),
            _ => None,
        }
    }
}
