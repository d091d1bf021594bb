//! Tests of `clearing` in one program: its parts are linked once.

mod clear;
mod economics;
mod exact;
mod exact_orders;
mod explain;
mod hard;
mod hostile;
mod large;
mod oracle;
mod pools;
mod rows;
mod thin;
mod units;
