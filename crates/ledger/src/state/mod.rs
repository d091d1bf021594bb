//! The whole state after a block: the places with what is derived from them, its tries, its snapshots, its audit, and
//! what Ethereum sees of it.

mod audit;
mod changes;
mod ethereum;
mod foundation;
mod ledger;
mod restart;
mod roots;
mod snapshot;

pub use audit::Audit;
pub use changes::Changes;
pub(crate) use ledger::AssetFigures;
pub use ledger::Ledger;
pub use roots::Roots;
pub use snapshot::{Restore, Snapshot, SnapshotError};
