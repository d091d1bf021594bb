//! The market edge on sockets: root, proxies and gateways around the nodes of [`fairnet`].
//!
//! A [`Station`] is one member at its sockets: datagrams out by batched system calls, streams in with a MAC over a
//! counter. An [`EdgeHost`] runs one or several of them in one thread: `wait · step · perform`. Everything that decides
//! is in `fairnet`, where the simulator runs it, too.
//!
//! **Invariant**: decides nothing. Every queue is bounded; whoever does not read is dropped.

mod clock;
mod datagrams;
mod emulator;
#[cfg(feature = "etcd")]
mod etcd;
mod host;
mod participants;
mod sample;
mod station;
mod status;
#[cfg(feature = "strategies")]
mod strategy;
mod streams;
mod wire;

pub use clock::EdgeClock;
pub use datagrams::{BATCH, DATAGRAM_BYTES, DatagramLosses, DatagramSocket};
pub use emulator::EmulatedLinks;
#[cfg(feature = "etcd")]
pub use etcd::{EtcdError, EtcdLogin, EtcdRoots};
pub use host::{EdgeHost, HostHandle, HostOptions};
pub use participants::{DoorLimits, ParticipantDoor};
pub use sample::{sample_quotes, sample_quotes_of_packet};
pub use station::{EdgeCommand, EdgeObserver, EdgeSockets, Station};
pub use status::{EdgeStatus, RootStatus, WINDOW_TARGET};
#[cfg(feature = "strategies")]
pub use strategy::{Strategy, StrategyError, StrategyLimits, StrategyTurn};
pub use streams::{MemberStream, StreamError, StreamEvent, UNSENT_BYTES};
pub use wire::StreamTls;
