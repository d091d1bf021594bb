//! Tests of `stm` in one program: its parts are linked once.

mod blocks;
mod equal;
