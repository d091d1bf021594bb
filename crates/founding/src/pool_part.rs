//! The part of a genesis file about constant-product pools.

use ledger::PoolTerms;
use serde::{Deserialize, Serialize};

/// [`PoolTerms`], with defaults for omitted fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PoolPart {
    /// The fee of each class, as a decimal or `2^-8`.
    fees: Vec<String>,
}

impl Default for PoolPart {
    fn default() -> PoolPart {
        PoolPart::of(&PoolTerms::default())
    }
}

impl PoolPart {
    pub(crate) fn of(terms: &PoolTerms) -> PoolPart {
        PoolPart { fees: terms.fees.iter().map(ToString::to_string).collect() }
    }

    /// The terms, or the field and what is wrong with it.
    pub(crate) fn read(self) -> Result<PoolTerms, (String, String)> {
        let fee = |(at, text): (usize, &String)| {
            text.parse().map_err(|error: primitives::FractionError| (format!("pools.fees[{at}]"), error.to_string()))
        };
        Ok(PoolTerms { fees: self.fees.iter().enumerate().map(fee).collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use ledger::Genesis;
    use primitives::{Address, Fraction};

    use crate::genesis_file::{read, write};

    #[test]
    fn terms_of_pools_round_trip_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let fees = [8, 5].map(Fraction::power_of_two).to_vec();
        let assets = vec![ledger::Listing::new("USD", 2, Address([1; 20]))];
        let (mu, pools) = (Fraction::power_of_two(10), Some(ledger::PoolTerms { fees }));
        let genesis = Genesis { mu, assets, pools, ..Genesis::default() };
        write(&path, &genesis).expect("written");
        assert_eq!(read(&path).expect("sound"), genesis);
        let text = std::fs::read_to_string(&path).expect("there");
        for (from, to, expected) in [
            ("\"2^-8\"", "\"dear\"", "pools.fees[0]"),
            ("\"2^-8\"", "\"2^-3\"", "pools: fees"),
            ("\"2^-8\"", "\"2^-5\"", "pools: fees"),
            ("\"fees\"", "\"fee\"", "fee"),
        ] {
            let changed = text.replace(from, to);
            assert_ne!(changed, text, "{from}");
            std::fs::write(&path, changed).expect("written");
            let error = read(&path).expect_err("a mistake").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
