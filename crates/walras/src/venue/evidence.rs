//! `walras venue accuse` and `claim`.

use std::process::ExitCode;

use anyhow::Context;
use borsh::BorshDeserialize;
use client::evidence;
use primitives::venue::{FillReport, SettledFill, SettledOrder, VenueOperation};

use super::{at, hex_or_file};
use crate::wallet::send::Sender;

/// A report that is false.
#[derive(clap::Args)]
pub struct AccuseVenue {
    /// The signed report, in hexadecimal or a file with it.
    #[arg(long, value_name = "HEX|FILE")]
    report: String,
    /// Another report of the same index with another leaf; without it, the fills that the ledger has are the proof.
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

impl AccuseVenue {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let report: FillReport = read("--report", &self.report)?;
        let other: Option<FillReport> = self.other.as_deref().map(|other| read("--other", other)).transpose()?;
        self.sender.send(json, |server, _, _| {
            let node = server.node();
            let evidence = evidence::accusation(&node, &node.terms()?.network, report, other)?;
            Ok(at(VenueOperation::Accuse(Box::new(evidence))))
        })
    }
}

impl ClaimFill {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let report: FillReport = read("--report", &self.report)?;
        let (buy, sell): (SettledOrder, SettledOrder) = (read("--buy", &self.buy)?, read("--sell", &self.sell)?);
        let fill: SettledFill = read("--fill", &self.fill)?;
        self.sender.send(json, |server, _, _| {
            let node = server.node();
            let claim = evidence::claim(&node, &node.terms()?.network, report, [buy, sell], fill)?;
            Ok(at(VenueOperation::Claim(Box::new(claim))))
        })
    }
}
