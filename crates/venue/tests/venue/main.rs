//! A root over the real ledger and a disk that fails.

mod backlog;
mod costs;
mod custody;
mod formats;
mod holders;
mod limits;
mod lists;
mod mistakes;
mod orders;
mod pressure;
mod random;
mod reading;
mod restarts;
mod sessions;
mod settles;
mod stages;
mod steps;
mod terms;
mod world;
