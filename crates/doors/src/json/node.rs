//! The node and the constants of its chain.

use api::{AssetBody, AssetsBody};
use ledger::Asset;
use ledger::contracts::token_address;
use primitives::AssetId;

/// AssetsBody as listed, with their tokens if the chain has contracts.
pub fn assets(assets: &[Asset], has_contracts: bool) -> AssetsBody {
    let body = |(number, asset): (usize, &Asset)| AssetBody {
        asset: number as u32,
        symbol: asset.symbol.clone(),
        decimals: asset.decimals,
        issuer: asset.issuer.to_string(),
        least_units: asset.least_units.to_string(),
        issued: asset.issued.to_string(),
        valuation: asset.valuation.map(|valuation| valuation.to_string()),
        token: has_contracts.then(|| token_address(AssetId(number as u32)).to_string()),
    };
    AssetsBody { assets: assets.iter().enumerate().map(body).collect() }
}
