//! The cores on one event queue, and what the paper computes by Monte Carlo.
//!
//! [`TreeRun`] simulates market data on its way down: relays, deadlines and holds are those of this crate; egress
//! queues, links, stragglers, losses and clock errors are drawn by seeded laws (`kernel`). [`hedged_delays`] and
//! [`sprayed_delays`] are the models of appendices C and K.
//!
//! # Cost model
//!
//! A sender works for [`TreeCosts::process`] on a packet, then its copies leave one by one, [`TreeCosts::copy`] apart;
//! a link delays by a law. With constant delays and no load the latency to the last receiver is the sum over the hops
//! of process + link + copy · fan-out, exactly. The paper's "30 + 2.7 F" is 7 to 21 % below every cell of its own table
//! 3; [`TreeCost::FITTED`](crate::TreeCost::FITTED) is fitted on its cells with N ≤ 100. A copy *occupies* its sender
//! for less, [`TreeCosts::occupancy`]: the paper's proxies send 3.5 million packets a second, one each 0.29 µs, while
//! each child adds 3.2 µs of latency. Adding the time on the wire to either would count it twice.
//!
//! # What the simulator is checked against (`tests/simulator.rs`)
//!
//! (a) constant delays: the closed form, exactly; (b) one egress queue: M/D/1, within 2 %; (c) an unhedged tree: direct
//! sampling, Kolmogorov–Smirnov distance below 0.02; (e) ten seeds and their interval; (f) each law switched off.

mod audit;
mod edge;
mod montecarlo;
mod spread;
mod tree;

pub use audit::{EdgeAudit, payload_number};
pub use edge::{EdgeFaults, EdgeReport, EdgeSetup, run_edge};
pub use montecarlo::{HedgeModel, SprayModel, hedged_delays, sprayed_delays};
pub use spread::{Spread, interval, kolmogorov_smirnov};
pub use tree::{ReceiverClocks, SentPackets, TreeCosts, TreeFigures, TreeRun, TreeSetup};
