//! Tests of `trie` in one program: its parts are linked once.

mod forged_proofs;
mod golden;
mod model;
mod proofs;
mod reference;
mod sets;
