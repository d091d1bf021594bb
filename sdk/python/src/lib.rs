//! The compiled half of the Python package: books in as columns of bytes, clearings out the same way.
//!
//! The Python half turns NumPy arrays, Arrow tables and data frames into little-endian columns and back, and names rows
//! in its errors; here they become offers. The interpreter's lock is released while anything is solved or checked.

mod book;
mod outcome;
mod sealing;

use pyo3::prelude::*;

/// Clearing of batches of limit orders; see the package `walras`.
#[pymodule]
mod _walras {
    #[pymodule_export]
    use super::book::Book;
    #[pymodule_export]
    use super::outcome::Outcome;
    #[pymodule_export]
    use super::sealing::{open_sealed, opens, seal, sealed_label};
}
