//! The genesis as a file that people can read: JSON, with symbols for assets and strings for amounts.

use std::path::Path;

use ledger::{Genesis, GenesisError};
use primitives::{Address, Amount, AssetId};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    chain: u64,
    #[serde(default)]
    fee: String,
    epsilon: String,
    mu: String,
    assets: Vec<AssetEntry>,
    balances: Vec<BalanceEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AssetEntry {
    symbol: String,
    decimals: u8,
    issuer: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BalanceEntry {
    account: String,
    asset: String,
    amount: String,
}

/// What is wrong with a genesis file.
#[derive(Debug, thiserror::Error)]
pub enum GenesisFileError {
    /// It cannot be read or written.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// Not the JSON that is expected; line and column are named.
    #[error("{0}: {1}")]
    Json(String, serde_json::Error),
    /// A field that does not parse.
    #[error("{file}: {field}: {message}")]
    Field {
        /// The file.
        file: String,
        /// The field.
        field: String,
        /// Why.
        message: String,
    },
    /// Fields that do not fit together.
    #[error("{0}: {1}")]
    Unsound(String, GenesisError),
}

/// Reads and checks a genesis file.
///
/// # Errors
/// [`GenesisFileError`] names file, line or field, and the reason.
pub fn read(path: &Path) -> Result<Genesis, GenesisFileError> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| GenesisFileError::Io(name.clone(), error))?;
    let file: File = serde_json::from_slice(&text).map_err(|error| GenesisFileError::Json(name.clone(), error))?;
    let genesis = file.into_genesis(&name)?;
    genesis.issued_assets().map_err(|error| GenesisFileError::Unsound(name, error))?;
    Ok(genesis)
}

/// Writes a genesis file.
///
/// # Errors
/// [`GenesisFileError::Io`].
pub fn write(path: &Path, genesis: &Genesis) -> Result<(), GenesisFileError> {
    let text = serde_json::to_string_pretty(&File::of(genesis)).expect("plain data") + "\n";
    std::fs::write(path, text).map_err(|error| GenesisFileError::Io(path.display().to_string(), error))
}

impl File {
    fn of(genesis: &Genesis) -> File {
        let asset = |(symbol, decimals, issuer): &(String, u8, Address)| AssetEntry {
            symbol: symbol.clone(),
            decimals: *decimals,
            issuer: issuer.to_string(),
        };
        let balance = |(account, asset, amount): &(Address, AssetId, Amount)| BalanceEntry {
            account: account.to_string(),
            asset: genesis.assets[asset.0 as usize].0.clone(),
            amount: amount.to_string(),
        };
        File {
            chain: genesis.chain,
            fee: genesis.fee.to_string(),
            epsilon: genesis.epsilon.to_string(),
            mu: genesis.mu.to_string(),
            assets: genesis.assets.iter().map(asset).collect(),
            balances: genesis.balances.iter().map(balance).collect(),
        }
    }

    fn into_genesis(self, file: &str) -> Result<Genesis, GenesisFileError> {
        fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
            file: &str,
            field: String,
            text: &str,
        ) -> Result<T, GenesisFileError> {
            let error =
                |error: T::Err| GenesisFileError::Field { file: file.into(), field, message: error.to_string() };
            text.parse().map_err(error)
        }
        let symbols: Vec<String> = self.assets.iter().map(|asset| asset.symbol.clone()).collect();
        let assets = self.assets.into_iter().enumerate().map(|(i, asset)| {
            Ok((asset.symbol, asset.decimals, parse(file, format!("assets[{i}].issuer"), &asset.issuer)?))
        });
        let assets = assets.collect::<Result<_, GenesisFileError>>()?;
        let balances = self.balances.into_iter().enumerate().map(|(i, entry)| {
            let unknown = || GenesisFileError::Field {
                file: file.into(),
                field: format!("balances[{i}].asset"),
                message: format!("no asset {:?} is listed under assets", entry.asset),
            };
            let asset = symbols.iter().position(|symbol| *symbol == entry.asset).ok_or_else(unknown)?;
            let account = parse(file, format!("balances[{i}].account"), &entry.account)?;
            let amount = parse(file, format!("balances[{i}].amount"), &entry.amount)?;
            Ok((account, AssetId(asset as u32), amount))
        });
        Ok(Genesis {
            chain: self.chain,
            fee: if self.fee.is_empty() { 0 } else { parse(file, "fee".into(), &self.fee)? },
            epsilon: parse(file, "epsilon".into(), &self.epsilon)?,
            mu: parse(file, "mu".into(), &self.mu)?,
            assets,
            balances: balances.collect::<Result<_, GenesisFileError>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::Fraction;

    #[test]
    fn files_round_trip_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let genesis = Genesis {
            chain: 31_337,
            fee: 3,
            epsilon: Fraction::power_of_two(15),
            mu: Fraction::power_of_two(10),
            assets: vec![("USD".into(), 2, Address([1; 20])), ("EUR".into(), 2, Address([2; 20]))],
            balances: vec![(Address([3; 20]), AssetId(1), u64::MAX >> 1)],
        };
        write(&path, &genesis).expect("written");
        assert_eq!(read(&path).expect("sound"), genesis);
        let text = std::fs::read_to_string(&path).expect("there");
        for (from, to, expected) in [
            ("\"EUR\",\n      \"amount\"", "\"GBP\",\n      \"amount\"", "balances[0].asset"),
            ("\"2^-10\"", "\"2^-16\"", "mu"),
            ("9223372036854775807", "9223372036854775808", "9223372036854775807"),
            ("9223372036854775807", "many", "balances[0].amount"),
            ("\"chain\"", "\"chian\"", "line 2"),
        ] {
            assert!(text.contains(from), "{from}");
            std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
            let message = read(&path).expect_err("refused").to_string();
            assert!(message.contains(expected) && message.contains("genesis.json"), "{message}");
        }
    }
}
