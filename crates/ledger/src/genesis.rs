//! The state before the first block, and the constants of a chain.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, Fraction, MAX_ISSUED, Price};

const CONTEXT: &str = "walras 2026 genesis v1";

/// An asset: a claim on its issuer, in whole units.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Asset {
    /// Short name, unique in the ledger, of letters, digits, `.`, `-` and `_`.
    pub symbol: String,
    /// Decimal places that people see: 10^decimals units make one.
    pub decimals: u8,
    /// The account that can issue and burn it.
    pub issuer: Address,
    /// Units in existence.
    pub issued: Amount,
    /// Its valuation in the last batch that traded it; the next batch's search may start there.
    pub valuation: Price,
}

/// What every validator of a chain must agree on before the first block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Genesis {
    /// The number of the chain; signed into every transaction.
    pub chain: u64,
    /// Units of asset 0 that each native transaction costs. They are burnt.
    pub fee: Amount,
    /// The auctioneer's commission ε (SPEEDEX §4.1).
    pub epsilon: Fraction,
    /// The band μ below the rate, beyond which an offer must execute in full.
    pub mu: Fraction,
    /// The assets, numbered from 0 in this order: symbol, decimals, issuer.
    pub assets: Vec<(String, u8, Address)>,
    /// Units that accounts hold at the start.
    pub balances: Vec<(Address, AssetId, Amount)>,
}

/// What is wrong with a genesis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    /// A symbol that cannot be used.
    #[error("asset {0}: symbol {1:?} must be 1 to 12 letters, digits, '.', '-' or '_', and not used before")]
    Symbol(usize, String),
    /// Too many decimals.
    #[error("asset {0}: {1} decimals; at most 18")]
    Decimals(usize, u8),
    /// A balance in an asset that is not listed.
    #[error("account {0} holds asset {1}, which is not listed")]
    UnknownAsset(Address, AssetId),
    /// More units than an asset may have.
    #[error("asset {0}: the balances sum to more than 9223372036854775807 units")]
    TooMuch(AssetId),
    /// No asset 0, which pays fees.
    #[error("no assets are listed; asset 0 pays the fees")]
    NoAssets,
    /// The band is not wider than the commission.
    #[error("mu ({mu}) must exceed epsilon ({epsilon}): an offer inside the commission cannot be promised execution")]
    Band {
        /// The band given.
        mu: Fraction,
        /// The commission given.
        epsilon: Fraction,
    },
}

impl Genesis {
    /// The digest that block 1 names as its parent.
    pub fn digest(&self) -> Digest {
        Digest::of(CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail"))
    }

    /// The assets with what is issued of each at the start.
    ///
    /// # Errors
    /// [`GenesisError`] names the first entry that is wrong.
    pub fn issued_assets(&self) -> Result<Vec<Asset>, GenesisError> {
        if self.mu <= self.epsilon {
            return Err(GenesisError::Band { mu: self.mu, epsilon: self.epsilon });
        }
        let mut assets: Vec<Asset> = Vec::with_capacity(self.assets.len());
        for (number, (symbol, decimals, issuer)) in self.assets.iter().enumerate() {
            let plain = symbol.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b));
            if !plain || !(1..=12).contains(&symbol.len()) || assets.iter().any(|asset| asset.symbol == *symbol) {
                return Err(GenesisError::Symbol(number, symbol.clone()));
            }
            if *decimals > 18 {
                return Err(GenesisError::Decimals(number, *decimals));
            }
            let symbol = symbol.clone();
            assets.push(Asset { symbol, decimals: *decimals, issuer: *issuer, issued: 0, valuation: Price::ONE });
        }
        if assets.is_empty() {
            return Err(GenesisError::NoAssets);
        }
        for &(account, asset, amount) in &self.balances {
            let entry = assets.get_mut(asset.0 as usize).ok_or(GenesisError::UnknownAsset(account, asset))?;
            entry.issued = entry
                .issued
                .checked_add(amount)
                .filter(|issued| *issued <= MAX_ISSUED)
                .ok_or(GenesisError::TooMuch(asset))?;
        }
        Ok(assets)
    }
}
