//! The market edge on the command line: `walras edge`, and the demo's edge.

mod bundles;
mod demo;
mod member;
mod page;
mod plan;
mod prices;
#[cfg(feature = "strategies")]
mod strategy;
#[cfg(not(feature = "strategies"))]
#[path = "no_strategy.rs"]
mod strategy;

use std::path::Path;

use anyhow::{Context, ensure};
use edge::{EdgeClock, EdgeHost, HostHandle, HostOptions, Station};
use fairnet::{BundleRules, EdgeRules, Nanos, SeatingShape};
use primitives::{from_hex, to_hex};

use crate::durable::write_durable;

pub use demo::DemoEdge;
pub use plan::EdgeMember;

/// Orders of these edges are for the batch market. Blocks are hundreds of milliseconds apart.
const BUNDLES: BundleRules = BundleRules { edge: 1, period: 100_000_000, most: 1_024 };

/// What the members of an edge run on; the same for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Machines {
    /// Machines of their own in one data centre.
    Own,
    /// A machine that they share with other work: everything waits longer.
    Shared,
}

impl Machines {
    fn rules(self) -> EdgeRules {
        match self {
            Machines::Own => EdgeRules { bundles: Some(BUNDLES), ..EdgeRules::default() },
            Machines::Shared => {
                let shape = SeatingShape { layers: Some(2), hedging: 1 };
                EdgeRules { shape, sample: 4, bundles: Some(BUNDLES), ..EdgeRules::shared_machine() }
            }
        }
    }

    /// How long before a deadline a host stops sleeping, ns.
    fn spin(self) -> Nanos {
        match self {
            Machines::Own => 60_000,
            Machines::Shared => 0,
        }
    }
}

/// The secret that all machines of a venue have.
fn read_secret(path: &Path) -> anyhow::Result<[u8; 32]> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    from_hex(text.trim()).with_context(|| format!("{}: make one with `walras edge secret`", path.display()))
}

fn make_secret(path: &Path) -> anyhow::Result<()> {
    ensure!(!path.exists(), "{} exists: members that have it could not talk to others any more", path.display());
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).context("the system gives no randomness")?;
    Ok(write_durable(path, format!("{}\n", to_hex(&secret)).as_bytes())?)
}

/// Starts a host in a thread of its own.
fn start(stations: Vec<Station>, machines: Machines, error_bound: Option<Nanos>) -> anyhow::Result<HostHandle> {
    let options = HostOptions { clock: EdgeClock::system(error_bound), spin: machines.spin() };
    let (host, handle) = EdgeHost::new(options, stations).context("sockets")?;
    std::thread::Builder::new().name("edge".into()).spawn(move || {
        if let Err(error) = host.run() {
            tracing::error!(%error, "the edge ended: a socket is broken");
        }
    })?;
    Ok(handle)
}
