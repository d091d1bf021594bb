//! Tests of `store` in one program: its parts are linked once.

mod contract;
mod crash;
mod damage;
mod parts;
mod retention;
mod votes;
