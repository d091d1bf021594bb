//! Parameters by vote: clients who propose and vote, and independent books of what is proposed, who wants it, what
//! passes, and when it acts.

mod books;
mod clients;

pub use books::ProposalCounts;
pub(crate) use books::{Electorate, Entering, ProposalBooks};
pub(crate) use clients::ProposalClients;
