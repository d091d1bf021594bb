//! Heights of blocks.

/// The number of a block; the genesis state is height 0 and the first block height 1.
pub type Height = u64;
