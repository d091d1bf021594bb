//! Simulated accounts of institutions: clients for which several keys sign, and independent bookkeeping of who signed
//! what.

mod books;
mod clients;

pub(crate) use books::PolicyBooks;
pub use books::PolicyCounts;
pub(crate) use clients::PolicyClients;
