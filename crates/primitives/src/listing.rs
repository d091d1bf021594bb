//! Assets that are listed on a running chain, and closed again. What a listing costs and when an asset closes are the
//! ledger's rules (its place `assets`).

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Amount, AssetControl, AssetId, Digest, MAX_ISSUED};

/// The first rules that list and close assets.
pub const RULES_OF_LISTINGS: u32 = 15;
/// The longest symbol of a listing; the number of the asset follows it.
pub const LISTED_SYMBOL_MAX: usize = 6;
/// The most fees that a listing may offer: no sum of costs overflows.
pub const LISTING_FEES_MAX: u64 = 1 << 40;
/// The most decimals of an asset.
pub const DECIMALS_MAX: u8 = 18;

/// An asset to list; its sender issues it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AssetListing {
    /// What its name begins with: 1 to 6 letters, digits, `-` or `_`, a letter first. A point and its number follow.
    pub symbol: String,
    /// Decimal places for display.
    pub decimals: u8,
    /// What its issuer controls.
    pub control: AssetControl,
    /// The least units of it that an offer sells or asks for.
    pub least_units: Amount,
    /// The most units of it that may ever exist at one time.
    pub supply_max: Amount,
    /// The digest of a document that says what it is; zero for none.
    pub document: Digest,
    /// The fees that it pays for being listed: exactly those that the chain asks for at that height.
    pub fees: u64,
}

/// What is said about the end of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Closing {
    /// It closes when the notice is over.
    Announce,
    /// It stays after all.
    Revoke,
}

impl AssetListing {
    /// Whether it is within the bounds of every chain.
    pub fn is_plain(&self) -> bool {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=LISTED_SYMBOL_MAX).contains(&self.symbol.len())
            && self.symbol.starts_with(|first: char| first.is_ascii_alphabetic())
            && self.symbol.bytes().all(is_sign)
            && self.decimals <= DECIMALS_MAX
            && (1..=MAX_ISSUED).contains(&self.least_units)
            && (1..=MAX_ISSUED).contains(&self.supply_max)
            && self.fees <= LISTING_FEES_MAX
    }

    /// The name of the asset if it gets this number: it is never shown without it.
    pub fn name(&self, number: AssetId) -> String {
        format!("{}.{}", self.symbol, number.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(symbol: &str) -> AssetListing {
        AssetListing {
            symbol: symbol.into(),
            decimals: 2,
            control: AssetControl::Open,
            least_units: 4_096,
            supply_max: MAX_ISSUED,
            document: Digest::default(),
            fees: 10_000_000,
        }
    }

    #[test]
    fn a_listing_is_within_its_bounds_and_named_with_its_number() {
        for sound in ["EUR", "e", "A-B_C9"] {
            assert!(listing(sound).is_plain(), "{sound}");
        }
        for wrong in ["", "1EUR", "EU.R", "EURUSD7", "EU R", "-EUR", "ÄUR", "EUR\u{430}"] {
            assert!(!listing(wrong).is_plain(), "{wrong:?}");
        }
        for wrong in [
            AssetListing { decimals: 19, ..listing("EUR") },
            AssetListing { least_units: 0, ..listing("EUR") },
            AssetListing { supply_max: 0, ..listing("EUR") },
            AssetListing { supply_max: MAX_ISSUED + 1, ..listing("EUR") },
            AssetListing { fees: LISTING_FEES_MAX + 1, ..listing("EUR") },
        ] {
            assert!(!wrong.is_plain(), "{wrong:?}");
        }
        assert_eq!(listing("EUR").name(AssetId(17)), "EUR.17");
    }
}
