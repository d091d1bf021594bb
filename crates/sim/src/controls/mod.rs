//! Issuers that control their assets: clients who freeze, admit and open holders, and independent books of whom they
//! froze, and that what is frozen moves nowhere.

mod books;
mod clients;

pub(crate) use books::ControlBooks;
pub use books::ControlCounts;
pub(crate) use clients::{ControlClients, control};
