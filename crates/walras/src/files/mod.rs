//! Commands over files, for traders and for those who audit them: batches cleared and verified, orders matched, and a
//! home's history exported. No exchange needs to run for the first three.

mod batch;
mod clear;
mod explained;
mod export;
mod match_file;
mod parquet_files;
mod rows;
mod verify;

pub use clear::ClearArgs;
pub use export::Export;
pub use match_file::MatchArgs;
pub use verify::VerifyArgs;
