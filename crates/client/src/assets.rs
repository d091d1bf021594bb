//! The assets of a network, and amounts in words.

use api::AssetsBody;
use primitives::{Amount, AssetId, format_units};

use crate::error::ClientError;

/// The assets as a node lists them.
#[derive(Clone, Debug)]
pub struct Assets(Vec<Listed>);

/// An asset as a node lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub asset: AssetId,
    /// Its symbol.
    pub symbol: String,
    /// Decimal places shown to people.
    pub decimals: u8,
    /// Minimum units of it that an offer sells or asks for.
    pub least_units: Amount,
}

impl Assets {
    /// The assets of a body; `None` if an amount is no number.
    pub fn of(body: &AssetsBody) -> Option<Assets> {
        let listed = body.assets.iter().map(|entry| {
            let (symbol, decimals) = (entry.symbol.clone(), entry.decimals);
            Some(Listed { asset: AssetId(entry.asset), symbol, decimals, least_units: entry.least_units.parse().ok()? })
        });
        listed.collect::<Option<_>>().map(Assets)
    }

    /// The asset with a symbol.
    ///
    /// # Errors
    /// [`ClientError::NoAsset`].
    pub fn find(&self, symbol: &str) -> Result<&Listed, ClientError> {
        let known = || self.0.iter().map(|asset| asset.symbol.as_str()).collect::<Vec<_>>().join(", ");
        let none = || ClientError::NoAsset { symbol: symbol.into(), known: known() };
        self.0.iter().find(|asset| asset.symbol == symbol).ok_or_else(none)
    }

    /// The first asset, in which fees and stakes are counted.
    ///
    /// # Errors
    /// [`ClientError::NoAsset`] if there are none.
    pub fn first(&self) -> Result<&Listed, ClientError> {
        let none = || ClientError::NoAsset { symbol: "of number 0".into(), known: "none".into() };
        self.0.iter().find(|listed| listed.asset == AssetId(0)).ok_or_else(none)
    }

    /// Units in decimals, with the symbol; both as a node writes them.
    pub fn money(&self, units: &str, symbol: &str) -> String {
        match (units.parse(), self.find(symbol)) {
            (Ok(units), Ok(listed)) => listed.money(units),
            _ => format!("{units} units of {symbol}"),
        }
    }
}

impl Listed {
    /// An amount in decimals with its symbol.
    pub fn money(&self, units: Amount) -> String {
        format!("{} {}", format_units(units, self.decimals), self.symbol)
    }
}
