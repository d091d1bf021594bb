//! What readers of a chain see: made from what each block publishes, and never from the ledger itself.
//!
//! ```text
//!  publisher ── one delta for each block ──► Published ──► views, resting offers, candles, outline
//!                                        └─► caches of bodies and receipts, metrics, stream
//! ```
//!
//! A node writes here once a block; servers of any protocol answer from here. **Invariant**: a question holds no lock
//! for longer than a bounded answer takes to copy, and all that one lock guards refers to one height.
//!
//! - [`Published`]: one delta per block, and the locks
//! - [`views`]: recent blocks and batches, the places of transactions; [`open_offers`], [`candles`], [`outline`]
//! - [`venues`]: in which blocks venues settled and fenced, and trading keys by account
//! - [`history`]: what accounts did and had, as rows of an index
//! - [`cache`]: bodies and receipts of the newest blocks
//! - [`metrics`]: counters and histograms

pub mod cache;
pub mod candles;
pub mod history;
pub mod history_entries;
mod history_values;
pub mod metrics;
pub mod open_offers;
pub mod outline;
mod published;
pub mod sides;
pub mod venues;
pub mod views;

pub use outline::Outline;
pub use published::{AssetNames, Published};
pub use sides::Sides;
pub use views::{CommittedBlock, FoundTransaction};
