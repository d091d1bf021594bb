//! Every measured claim of Walras, by one command each.

pub mod workload;
