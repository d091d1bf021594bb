//! Parquet files, which every analytic tool reads: rows of batches, and tables of a history. A demo is built without
//! them (`absent.rs`).

#[cfg(not(feature = "parquet"))]
mod absent;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod write;

#[cfg(not(feature = "parquet"))]
pub(crate) use absent::{Table, read};
#[cfg(feature = "parquet")]
pub use {read::read, write::Table};

/// A field of a row.
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "nothing is written"))]
pub enum Cell {
    /// Heights, amounts, times in milliseconds, and any other number of 64 bits.
    Int(i64),
    /// The same, where it is not negative.
    Count(u64),
    /// The same, where it may be missing.
    MaybeCount(Option<u64>),
    /// A double, for computations.
    Real(f64),
    /// Symbols, addresses, digests and exact decimals.
    Text(String),
    /// A text that may be missing.
    Maybe(Option<String>),
    /// A boolean.
    Flag(bool),
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Count(number)
    }
}
