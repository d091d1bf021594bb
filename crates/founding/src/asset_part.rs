//! An asset of a genesis file, with what its issuer controls.

use std::fmt::Display;
use std::str::FromStr;

use ledger::{Genesis, LEAST_UNITS, Listing};
use primitives::AssetControl;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssetPart {
    pub symbol: String,
    pub decimals: u8,
    issuer: String,
    #[serde(default = "usual_least_units")]
    least_units: String,
    /// What the issuer controls in the hands of others; `open` if it is left out.
    #[serde(default = "usual_control", skip_serializing_if = "is_usual_control")]
    control: String,
}

fn usual_least_units() -> String {
    LEAST_UNITS.to_string()
}

fn usual_control() -> String {
    AssetControl::Open.name().into()
}

fn is_usual_control(control: &str) -> bool {
    control == AssetControl::Open.name()
}

impl AssetPart {
    /// The assets of a genesis, by number.
    pub(crate) fn all_of(genesis: &Genesis) -> Vec<AssetPart> {
        let control = |number: usize| {
            let of = genesis.controls.iter().find(|(asset, _)| asset.0 as usize == number);
            of.map_or(AssetControl::Open, |(_, control)| *control)
        };
        let part = |(number, listing): (usize, &Listing)| AssetPart {
            symbol: listing.symbol.clone(),
            decimals: listing.decimals,
            issuer: listing.issuer.to_string(),
            least_units: listing.least_units.to_string(),
            control: control(number).name().into(),
        };
        genesis.assets.iter().enumerate().map(part).collect()
    }

    /// The asset at a place of the file, and what its issuer controls.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub(crate) fn read(self, at: usize) -> Result<(Listing, AssetControl), (String, String)> {
        fn parse<T: FromStr<Err: Display>>(at: usize, field: &str, text: &str) -> Result<T, (String, String)> {
            text.parse().map_err(|error: T::Err| (format!("assets[{at}].{field}"), error.to_string()))
        }
        let issuer = parse(at, "issuer", &self.issuer)?;
        let least_units = parse(at, "least_units", &self.least_units)?;
        let control = parse(at, "control", &self.control)?;
        Ok((Listing { symbol: self.symbol, decimals: self.decimals, issuer, least_units }, control))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_says_what_its_issuer_controls_or_is_open() {
        let read = |more: &str| {
            let text = format!(r#"{{"symbol": "EUR", "decimals": 2, "issuer": "0x{}"{more}}}"#, "09".repeat(20));
            serde_json::from_str::<AssetPart>(&text).expect("its fields").read(3)
        };
        assert_eq!(
            read("").map(|(listing, control)| (listing.least_units, control)),
            Ok((LEAST_UNITS, AssetControl::Open))
        );
        let admitted = read(r#", "control": "admitted""#).map(|(_, control)| control);
        assert_eq!(admitted, Ok(AssetControl::Admitted));
        let (field, why) = read(r#", "control": "frozen""#).expect_err("it is none");
        assert!(field == "assets[3].control" && why.contains("freezable"), "{field}: {why}");
    }
}
