//! A node as its doors see it, by what is asked: status, intake, point reads, the archive, the history of accounts,
//! Ethereum, the payment lane, venues, a developers' chain.
//!
//! Everything that scans is answered from what the node publishes ([`readers`]). Each call here costs the node a
//! bounded amount of work: one account, one page of offers, one proof, one block.

mod archived;
mod developer;
mod ethereum;
mod history;
mod intake;
mod lane;
mod points;
mod pools;
mod status;
mod venues;

pub use archived::{Archived, CertifiedOutcome, HandoverPage};
pub use developer::{Developed, DeveloperCommand, DeveloperRefusal, Mining, NextBlock};
pub use ethereum::{EthereumReads, Moment, PooledTransaction};
pub use history::{HistoryReads, NoHistory};
pub use intake::{Answer, Awaited, Closed, EthereumTaken, Intake};
pub use lane::{LaneCaseRead, LaneOutputRead, LaneReads, ProvedKeys};
pub use points::{AccountRead, OffersRead, PointReads, Proved, ReadError};
pub use pools::{PoolReads, PoolsRead};
pub use status::{NodeLimits, Standing, Vitals};
pub use venues::{VenueReads, VenuesRead};

/// All that the doors ask. Calls may block briefly; the doors make them off the threads that serve connections.
pub trait Backend:
    Vitals
    + Intake
    + PointReads
    + Archived
    + HistoryReads
    + EthereumReads
    + LaneReads
    + VenueReads
    + PoolReads
    + Developed
    + Send
    + Sync
    + 'static
{
}

impl<T> Backend for T where
    T: Vitals
        + Intake
        + PointReads
        + Archived
        + HistoryReads
        + EthereumReads
        + LaneReads
        + VenueReads
        + PoolReads
        + Developed
        + Send
        + Sync
        + 'static
{
}
