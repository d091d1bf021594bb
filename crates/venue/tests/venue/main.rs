//! A root over the real ledger and a disk that fails.

mod custody;
mod world;
