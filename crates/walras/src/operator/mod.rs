//! What an operator asks first: how a node stands, whom it sees, whether its settings are sound, and what to mend.

mod config;
mod doctor;
mod status;

pub use config::ConfigCommand;
pub use doctor::Doctor;
pub use status::{Peers, StatusCommand};
