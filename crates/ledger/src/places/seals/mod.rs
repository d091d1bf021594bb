//! What the ledger keeps of sealed orders: the names of envelopes that were opened.

mod names;

pub use names::OpenedNames;
