//! Tests of `bench` in one program: its parts are linked once.

mod daily;
mod hostile;
mod mass_ends;
mod mutations;
mod onyx;
mod paper;
mod pooled_blocks;
mod suites;
