//! What the tables and figures of Onyx (Haseeb et al., SIGCOMM 2025) are made by; `paper::onyx` lists them.
//!
//! *Measured*: the nodes of the edge on sockets of this machine. *Monte Carlo*: the paper's own models, drawn again.
//! *Simulated*: the cores of `fairnet` on one event queue, or the matching engine behind both kinds of queue.

mod engine;
mod incast;
mod inflow;
pub(crate) mod lateness;
pub(crate) mod models;
pub(crate) mod orders;
pub(crate) mod rates;
pub(crate) mod sockets;
pub(crate) mod speeds;
pub(crate) mod trees;
pub(crate) mod validations;
