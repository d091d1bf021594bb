//! The small part of the ledger that every block publishes whole.

use ledger::{Asset, Ledger, Schedule, Validators};
use primitives::{Amount, AssetId, Digest, Fraction, Height, Price};

/// What the ledger says of itself after a block, in a few kilobytes. With it, no reader asks the ledger.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The chain's number.
    pub chain: u64,
    /// Units of asset 0 that a transaction costs.
    pub fee: Amount,
    /// The auctioneer's commission ε.
    pub epsilon: Fraction,
    /// The band μ below the rate within which an offer may be left unfilled.
    pub mu: Fraction,
    /// Height of the last block.
    pub height: Height,
    /// Its digest.
    pub block: Digest,
    /// How many accounts there are.
    pub accounts: usize,
    /// The assets by number.
    pub assets: Vec<Asset>,
    /// Who has staked, and the committees.
    pub validators: Validators,
    /// When committees change.
    pub schedule: Schedule,
}

impl Outline {
    /// Of a ledger, between two blocks.
    pub fn of(ledger: &Ledger) -> Outline {
        Outline {
            chain: ledger.chain(),
            fee: ledger.fee(),
            epsilon: ledger.epsilon(),
            mu: ledger.mu(),
            height: ledger.height(),
            block: ledger.last_block(),
            accounts: ledger.accounts().len(),
            assets: ledger.assets().to_vec(),
            validators: ledger.validators().clone(),
            schedule: ledger.schedule(),
        }
    }

    /// The valuation of an asset in the last batch, if it had a price there.
    pub fn valuation(&self, asset: AssetId) -> Option<Price> {
        self.assets[asset.0 as usize].valuation
    }
}
