//! A venue that this node runs: the line from a pipeline up to it, and the pipeline as the venue sees it.

pub(crate) mod chain;
pub(crate) mod line;
