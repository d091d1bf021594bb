//! `walras venue accuse` and `claim`.

use std::process::ExitCode;

use anyhow::Context;
use borsh::BorshDeserialize;
use client::evidence;
use primitives::venue::{SettledFill, SettledOrder, VenueReport};

use super::{at, hex_or_file};
use crate::wallet::send::Sender;

/// A report that is false.
#[derive(clap::Args)]
pub struct AccuseVenue {
    /// The signed report, in hexadecimal or a file with it.
    #[arg(long, value_name = "HEX|FILE")]
    report: String,
    /// Another report of the same index with another leaf, or of the same step with another tree. Without it, the fills
    /// that the ledger has are the proof.
    #[arg(long, value_name = "HEX|FILE")]
    other: Option<String>,
    #[command(flatten)]
    sender: Sender,
}

/// A fill that was reported and never settled.
#[derive(clap::Args)]
pub struct ClaimFill {
    /// The signed report, in hexadecimal or a file with it.
    #[arg(long, value_name = "HEX|FILE")]
    report: String,
    /// The order that buys, with its signature, as in a settle.
    #[arg(long, value_name = "HEX|FILE")]
    buy: String,
    /// The order that sells, with its signature, as in a settle.
    #[arg(long, value_name = "HEX|FILE")]
    sell: String,
    /// The fill, as in a settle.
    #[arg(long, value_name = "HEX|FILE")]
    fill: String,
    #[command(flatten)]
    sender: Sender,
}

fn read<T: BorshDeserialize>(name: &str, text: &str) -> anyhow::Result<T> {
    borsh::from_slice(&hex_or_file(name, text)?)
        .with_context(|| format!("{name}: these bytes are not what docs/specification.md describes"))
}

fn report(name: &str, text: &str) -> anyhow::Result<VenueReport> {
    VenueReport::of_bytes(&hex_or_file(name, text)?)
        .with_context(|| format!("{name}: these bytes are no report that docs/specification.md describes"))
}

impl AccuseVenue {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let report = report("--report", &self.report)?;
        let other = self.other.as_deref().map(|other| self::report("--other", other)).transpose()?;
        self.sender.send(json, |server, _, _| {
            let node = server.node();
            Ok(at(evidence::accusation(&node, &node.terms()?.network, report, other)?))
        })
    }
}

impl ClaimFill {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let report = report("--report", &self.report)?;
        let (buy, sell): (SettledOrder, SettledOrder) = (read("--buy", &self.buy)?, read("--sell", &self.sell)?);
        let fill: SettledFill = read("--fill", &self.fill)?;
        self.sender.send(json, |server, _, _| {
            let node = server.node();
            Ok(at(evidence::claim(&node, &node.terms()?.network, report, [buy, sell], fill)?))
        })
    }
}
