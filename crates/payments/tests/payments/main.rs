//! Tests of `payments` in one program: its parts are linked once.

mod adversary;
mod asked;
mod boundaries;
mod closed;
mod contested;
mod crash;
mod defects;
mod disjoint;
mod lane;
mod protocol;
mod resolve;
mod schemes;
mod together;
