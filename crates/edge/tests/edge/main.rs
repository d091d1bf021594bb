//! Tests of `edge` in one program: its parts are linked once.

mod clocks;
mod datagrams;
mod door;
mod encrypted;
mod loopback;
#[cfg(feature = "etcd")]
mod roots;
#[cfg(feature = "strategies")]
mod strategies;
mod support;
