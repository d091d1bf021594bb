//! A ledger most of whose assets were listed after its genesis, as if a chain had done so for years.

use ledger::{AssetTerms, Genesis, Ledger, ListedTerms, ListingTerms, Restore, RootPart, Snapshot};
use primitives::{AssetControl, AssetId, Digest, MAX_ISSUED};

/// The chunk with which a snapshot ends: how many entries each place has.
const END: u8 = 255;
/// The variant of the chunk of listings that has the terms of assets.
const ASSETS: u8 = 1;

/// Names the assets from `founded` on as listings do. The terms of the chain are not the usual ones, so that its
/// snapshots have them.
pub(super) fn named(mut genesis: Genesis, founded: u32) -> Genesis {
    for (number, asset) in genesis.assets.iter_mut().enumerate().skip(founded as usize) {
        asset.symbol = format!("L.{number}");
    }
    let assets_max = genesis.assets.len() as u32;
    Genesis { listings: ListingTerms { assets_max, notice: 1_000, ..ListingTerms::default() }, ..genesis }
}

/// The ledger with its assets from `founded` on as listed ones.
pub(super) fn listed(ledger: &Ledger, founded: u32) -> Ledger {
    let listed =
        ListedTerms { height: 0, control: AssetControl::Open, supply_max: MAX_ISSUED, document: Digest::default() };
    let numbers = (founded..ledger.assets().len() as u32).map(AssetId);
    let terms = AssetTerms { listed: Some(listed), closes: None };
    let all: Vec<(AssetId, AssetTerms)> = numbers.map(|asset| (asset, terms)).collect();
    let mut restore = Restore::default();
    for chunk in Snapshot::of(ledger) {
        let (kind, content) = chunk.split_first().expect("a kind");
        match *kind {
            RootPart::LISTINGS => {
                restore.push(&chunk).expect("the terms of the chain");
                let of_assets = [vec![*kind, ASSETS], borsh::to_vec(&all).expect("memory")].concat();
                restore.push(&of_assets).expect("the terms of assets");
            }
            END => {
                let mut counts: Vec<(u8, u64)> = borsh::from_slice(content).expect("counts");
                let of_listings = counts.iter_mut().filter(|(tag, _)| *tag == RootPart::LISTINGS);
                of_listings.for_each(|(_, count)| *count += all.len() as u64);
                let end = [vec![END], borsh::to_vec(&counts).expect("memory")].concat();
                restore.push(&end).expect("the end");
            }
            _ => restore.push(&chunk).expect("a chunk"),
        }
    }
    restore.finish().expect("a sound state")
}
