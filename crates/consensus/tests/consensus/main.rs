//! Tests of `consensus` in one program: its parts are linked once.

mod epochs;
mod gathering;
mod height;
mod hostile;
mod tendermint;
