//! Tests of `client` in one program: its parts are linked once.

mod answers;
mod lane_vectors;
mod purse;
mod streams;
mod untrusted;
