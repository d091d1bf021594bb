//! The lane of a genesis file, which comes from a trusted source.

use std::path::Path;

use anyhow::Context;
use client::purse::{Anchor, LaneMoney, LaneNetwork, LedgerTrust};
use ledger::Ledger;
use payments::AssetRule;

use crate::wallet::server::Server;

/// The lane of a genesis file, and the founders as those that prove what the ledger says.
pub fn of_genesis(path: &Path) -> anyhow::Result<LaneNetwork> {
    let (genesis, founding) = ::founding::genesis_file::read_with_founding(path)?;
    let state = Ledger::new(&genesis)?;
    let lane = state.lane().with_context(|| format!("{}: this chain has no payment lane", path.display()))?;
    let money = |entry: &ledger::LaneAsset| {
        let listing = &genesis.assets[entry.asset.0 as usize];
        LaneMoney {
            asset: entry.asset,
            symbol: listing.symbol.clone(),
            decimals: listing.decimals,
            rule: AssetRule { least_units: entry.least_units, fee: entry.fee },
        }
    };
    let terms = lane.terms();
    let founders = founding.as_ref().map(|founding| {
        let lineage = founding.lineage(&genesis);
        Anchor::of(&lineage, &lineage.chain, founding.succession.unbonding_epochs)
    });
    let ledger = founders.map_or(LedgerTrust::SoloNode, LedgerTrust::Committee);
    let assets = terms.assets.iter().map(money).collect();
    // The first committee of a restarted network has keys of its own.
    let restarted = founding.and_then(|founding| founding.restarted?.restart.lane);
    let members = restarted.map_or_else(|| terms.members.clone(), |lane| lane.members);
    Ok(LaneNetwork::new(lane.network(), members, terms.registrars.clone(), assets).proved_by(ledger))
}

/// The lane of a genesis file, or else of a node, which is then trusted with it.
pub fn lane_of(genesis: Option<&Path>, server: &Server) -> anyhow::Result<LaneNetwork> {
    match genesis {
        Some(path) => of_genesis(path),
        None => Ok(LaneNetwork::of_node(&server.node())?),
    }
}
