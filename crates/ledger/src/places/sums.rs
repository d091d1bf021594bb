//! Sums of units by asset, for the accounting checks of every block, and units to be paid.

use primitives::{Address, Amount, AssetId};

/// Units to be paid to an account; zero units make the account exist.
#[derive(Clone, Copy)]
pub(crate) struct Credit {
    pub to: Address,
    pub asset: AssetId,
    pub amount: Amount,
}

/// Units to be taken from an account that does not spend them itself.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub from: Address,
    pub asset: AssetId,
    pub amount: Amount,
}

/// Changes of units by asset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums(Vec<i128>);

impl Sums {
    pub(crate) fn add(&mut self, asset: AssetId, change: i128) {
        let at = asset.0 as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += change;
    }

    pub(crate) fn merge(&mut self, other: &Sums) {
        other.0.iter().enumerate().for_each(|(asset, change)| self.add(AssetId(asset as u32), *change));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, asset: usize) -> i128 {
        self.0.get(asset).copied().unwrap_or(0)
    }
}
