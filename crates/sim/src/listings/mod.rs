//! Assets after the genesis: clients who list, close and trade them, and independent books of what stands and what
//! trades.

mod books;
mod clients;

pub(crate) use books::ListingBooks;
pub use books::ListingCounts;
pub(crate) use clients::{ListingClients, listing_terms};
