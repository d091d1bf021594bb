//! The node and the constants of its chain.

use api::{AssetBody, AssetsBody, HolderBody, ListedAssetBody, ListingBody};
use ledger::contracts::token_address;
use ledger::{Asset, HolderStanding, ListedTerms};
use primitives::{Address, AssetId};
use readers::Outline;

/// The assets, with their tokens if the chain has contracts.
pub fn assets(outline: &Outline) -> AssetsBody {
    let body = |(number, asset): (u32, &Asset)| {
        let terms = outline.listings.get(AssetId(number));
        AssetBody {
            asset: number,
            symbol: asset.symbol.clone(),
            decimals: asset.decimals,
            issuer: asset.issuer.to_string(),
            least_units: asset.least_units.to_string(),
            issued: asset.issued.to_string(),
            valuation: asset.valuation.map(|valuation| valuation.to_string()),
            token: outline.contracts.map(|_| token_address(AssetId(number)).to_string()),
            listed: terms.and_then(|terms| terms.listed.as_ref()).map(listed),
            control: Some(outline.controls.control(AssetId(number)))
                .filter(|control| control.freezes())
                .map(|control| control.name().into()),
            closes: terms.and_then(|terms| terms.closes),
        }
    };
    AssetsBody { assets: (0..).zip(&outline.assets).map(body).collect() }
}

fn listed(terms: &ListedTerms) -> ListedAssetBody {
    let ListedTerms { height, control, supply_max, document } = terms;
    let (supply_max, document) = (supply_max.to_string(), document.to_string());
    ListedAssetBody { height: *height, control: control.name().into(), supply_max, document }
}

/// An account as a holder of an asset.
pub fn holder(outline: &Outline, asset: AssetId, account: &Address) -> HolderBody {
    let controls = &outline.controls;
    let standing = match controls.standing(asset, account) {
        HolderStanding::Open => "open",
        HolderStanding::Frozen => "frozen",
        HolderStanding::NotAdmitted => "not_admitted",
    };
    HolderBody {
        height: outline.height,
        control: controls.control(asset).name().into(),
        standing: standing.into(),
        since: controls.record(asset, account).map(|record| record.since),
    }
}

/// How assets are listed, as of the next block.
pub fn listing(outline: &Outline) -> ListingBody {
    let (listings, assets, next) = (&outline.listings, outline.assets.len(), outline.height.saturating_add(1));
    ListingBody {
        policy: listings.terms().policy.name().into(),
        fees: listings.fees(assets, next).to_string(),
        open: listings.open_assets(assets, next),
        assets_max: listings.terms().assets_max,
        notice: listings.terms().notice,
    }
}
