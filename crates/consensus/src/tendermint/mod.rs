//! Tendermint.

mod drive;
mod instance;
mod message;
mod types;

pub(crate) use instance::Instance;
pub use message::{Entry, Kind, Message, Messages, Proposal, Quorum, Record, Round, Step, Value, Vote};
