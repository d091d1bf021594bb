//! Cells that several tables of `walras export` have.

use ledger::Asset;
use primitives::AssetId;

use crate::files::parquet_files::Cell;

/// The column of a block's time.
pub const TIME: &str = "required int64 time (TIMESTAMP(MILLIS,true))";

/// Symbols and decimals of the assets. A transaction that was refused may name one that there is not: by its number.
pub struct AssetCells(pub Vec<Asset>);

impl AssetCells {
    /// Its symbol.
    pub fn symbol(&self, asset: AssetId) -> Cell {
        let known = self.0.get(asset.0 as usize);
        Cell::Text(known.map_or_else(|| asset.to_string(), |known| known.symbol.clone()))
    }

    /// Its decimals.
    pub fn decimals(&self, asset: AssetId) -> Cell {
        u64::from(self.0.get(asset.0 as usize).map_or(0, |known| known.decimals)).into()
    }
}
