//! The rules of venues of continuous markets, by the real ledger; one test program, so that it is linked once.

mod busts;
mod custody;
mod liability;
mod lists;
mod owners;
mod records;
mod settles;
mod steps;
mod world;
