//! `--venue`: a chain of venues, whose first one is prepared and is opened by one command.

use std::path::Path;

use anyhow::{Context, ensure};
use ledger::{Genesis, VenueTerms};
use primitives::venue::{VenueId, VenueOperator};
use primitives::{Amount, AssetId};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::decimal::from_units;
use crate::venue::run::prepare;

const VENUE: VenueId = 0;
/// The part of the issuer's supply that the printed command gives as the bond.
const BOND_OF_SUPPLY: Amount = 100;

/// A venue that a home is prepared for.
pub struct FoundedVenue {
    operator: VenueOperator,
    /// In whole units of the first asset.
    bond: String,
}

impl FoundedVenue {
    /// Makes the venue's keys and the directory of its journal in a home whose configuration is written, has its node
    /// run it, and gives its operator units for `fees`.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn make(
        home: &Path,
        genesis: &mut Genesis,
        fees: Amount,
        passphrase: &Zeroizing<String>,
    ) -> anyhow::Result<FoundedVenue> {
        let operator = prepare(home, VENUE, 0, passphrase)?;
        let config = home.join("walras.toml");
        let place = || config.display().to_string();
        let text = std::fs::read_to_string(&config).with_context(place)?;
        let (section, off) = ("[venue]\n", "\nrun = false\n");
        let (before, venue) = text.split_once(section).context("the configuration has a venue")?;
        ensure!(venue.contains(off), "the configuration says whether the venue runs");
        let text = format!("{before}{section}{}", venue.replacen(off, "\nrun = true\n", 1));
        std::fs::write(&config, text).with_context(place)?;
        let supply = genesis.balances.iter().find(|(_, asset, _)| *asset == AssetId(0)).map_or(0, |(.., units)| *units);
        let bond = (supply / BOND_OF_SUPPLY).max(VenueTerms::default().bond_min);
        genesis.balances.push((operator.account, AssetId(0), fees));
        Ok(FoundedVenue { operator, bond: from_units(bond, genesis.assets[0].decimals) })
    }

    /// The command by which the issuer opens it.
    fn command(&self, issuer: &Path) -> String {
        let VenueOperator { account, report_key } = self.operator;
        format!(
            "walras venue open --key {} --venue {VENUE} --operator {account} --report-key {report_key} --fee-cap 0.2 \
             --bond {}",
            issuer.display(),
            self.bond
        )
    }

    /// For a report in JSON.
    pub fn to_json(&self, issuer: &Path) -> Value {
        let VenueOperator { account, report_key } = self.operator;
        json!({
            "operator": account.to_string(),
            "report_key": report_key.to_string(),
            "open": self.command(issuer),
        })
    }

    /// Tells how it is opened.
    pub fn report(&self, issuer: &Path) {
        println!(
            "\nOpen its venue once it runs, and list markets with `walras venue list`:\n  {}",
            self.command(issuer)
        );
    }
}
