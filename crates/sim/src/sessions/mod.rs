//! Simulated session keys: clients that trade by them, and independent bookkeeping of what they did.

mod books;
mod clients;

pub use books::SessionCounts;
pub(crate) use books::{SessionBlock, SessionBooks, SlotName};
pub(crate) use clients::SessionClients;
