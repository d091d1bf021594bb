//! The tokens of assets: their addresses, slots and facts. See `assets` for what they answer.

use primitives::{Amount, AssetControl, AssetId, Height, Price};
use proofs::Asset;
use revm::primitives::Address;

use crate::places::contracts::reserved::token_at;
use crate::places::controls::HolderStanding;

/// Facts about the token of an asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFacts {
    /// The symbol, which is also its name.
    pub symbol: String,
    /// Decimals.
    pub decimals: u8,
    /// Units that exist.
    pub issued: u64,
    /// The least units of the asset that an offer sells or asks for.
    pub least_units: Amount,
    /// Its valuation in the batch of the block, if it had a price there.
    pub valuation: Option<Price>,
    /// The last height that it trades at, if it closes or is closed.
    pub closes: Option<Height>,
    /// What its issuer controls in the hands of others.
    pub control: AssetControl,
    /// Whether the book takes no more offers that sell it, because its share of the book is full.
    pub is_crowded: bool,
    /// Pairs of it that may still be opened; `None` for an asset of the genesis.
    pub pairs_left: Option<u64>,
}

/// Facts about an account as a holder of a controlled asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderFacts {
    /// What may be done with the asset at the account.
    pub standing: HolderStanding,
    /// Offers of the account that sell or buy it, before the contract phase.
    pub offers: u32,
}

impl Default for HolderFacts {
    /// An open holder without offers.
    fn default() -> HolderFacts {
        HolderFacts { standing: HolderStanding::Open, offers: 0 }
    }
}

impl TokenFacts {
    /// The facts about the token of an asset that is in its record.
    pub fn of(asset: &Asset) -> TokenFacts {
        let Asset { symbol, decimals, issued, least_units, valuation, .. } = asset;
        let (symbol, decimals, issued) = (symbol.clone(), *decimals, *issued);
        let (least_units, valuation) = (*least_units, *valuation);
        TokenFacts {
            symbol,
            decimals,
            issued,
            least_units,
            valuation,
            closes: None,
            control: AssetControl::Open,
            is_crowded: false,
            pairs_left: None,
        }
    }

    /// Wei of one unit; for asset 0.
    pub(super) fn wei_per_unit(&self) -> u64 {
        10u64.pow(18 - u32::from(self.decimals))
    }
}

pub(super) fn asset_at(address: &Address) -> Option<AssetId> {
    token_at(&primitives::Address(address.0.0))
}

/// The virtual slot of a holder's balance.
pub(super) fn balance_slot(holder: &primitives::Address) -> [u8; 32] {
    let mut slot = [0; 32];
    slot[12..].copy_from_slice(&holder.0);
    slot
}

/// The holder whose balance a slot of a token is; ordinary slots are hashes.
pub(crate) fn holder_of(slot: &[u8; 32]) -> Option<primitives::Address> {
    let (high, low) = slot.split_at(12);
    high.iter().all(|byte| *byte == 0).then(|| primitives::Address(low.try_into().expect("twenty bytes")))
}
