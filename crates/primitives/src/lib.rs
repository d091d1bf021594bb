//! What every other room of Walras speaks of: amounts, prices, ids, keys, hashes, signed transactions, blocks, and the
//! one wire codec.

mod amount;
mod price;

pub use amount::{Amount, AssetId, Fraction, FractionError, MAX_ISSUED};
pub use price::{Price, PriceError};
