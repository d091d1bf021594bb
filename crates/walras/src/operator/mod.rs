//! What an operator asks first: how a node stands, whom it sees, whether its settings are sound, and what to mend.

mod backup;
mod config;
mod doctor;
mod prune;
mod status;

pub use backup::{Backup, RestoreBackup};
pub use config::ConfigCommand;
pub use doctor::Doctor;
pub use prune::Prune;
pub use status::StatusCommand;
