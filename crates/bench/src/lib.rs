//! Every measured claim of Walras, by one command each.

pub mod daily;
pub mod workload;
