//! The place of venues against a plain model of its rules, history by history.
//!
//! The model ([`model`]) shares no rule code with the place: it keeps all times and never forgets, and undoes a group
//! by a copy of everything. Random histories of blocks ([`random`]) and all small ones ([`exhaustive`]) drive both.
//! After each block verdicts, deposits, keys, entries, bonds, credits and burnt units are equal. The place is equal to
//! itself after a snapshot and after the same block in another order, and its queues are those of its records. Each
//! planted mistake makes some history differ.

mod drive;
mod exhaustive;
mod judge;
mod model;
mod random;
