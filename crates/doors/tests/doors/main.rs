//! Tests of `doors` in one program: its parts are linked once.

mod admission;
mod archive;
mod book_stream;
mod described;
mod disconnect;
#[path = "../fake/mod.rs"]
mod fake;
mod history;
mod holder_vectors;
mod intake;
mod lists;
mod markets;
mod one_height;
mod open;
mod own_orders;
mod parameter_proofs;
mod pools;
mod prepared;
mod published;
mod refusals;
mod roles;
mod rpc;
mod streams;
mod subscriber;
mod subscriptions;
mod vectors;
mod venues;
