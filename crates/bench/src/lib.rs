//! Every measured claim of Walras, by one command each.

pub mod clearing;
pub mod daily;
pub mod ledger;
pub mod workload;
