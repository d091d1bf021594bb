//! Tests of `replica` in one program: its parts are linked once.

mod chain;
mod duties;
mod proposals;
mod quotas;
mod recovery;
