//! The part of a genesis file about venues of continuous markets.

use ledger::VenueTerms;
use primitives::venue::Delay;
use serde::{Deserialize, Serialize};

use crate::Founding;

/// [`Delay`].
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DelayPart {
    heights: u64,
    ms: u64,
}

/// [`VenueTerms`], with defaults for omitted fields. Units are texts, as in the rest of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct VenuePart {
    delay: DelayPart,
    bond_min: String,
    bond_delay: DelayPart,
    settle_bytes: u32,
    entries_max: u64,
    penalty_min: String,
    venues_max: u32,
    per_block: u32,
    life_max: u64,
}

/// The field, and what is wrong with it.
type Fault = (String, String);

impl DelayPart {
    fn of(delay: Delay) -> DelayPart {
        DelayPart { heights: delay.heights, ms: delay.ms }
    }

    fn read(self) -> Delay {
        Delay { heights: self.heights, ms: self.ms }
    }
}

impl Default for VenuePart {
    fn default() -> VenuePart {
        VenuePart::of(&VenueTerms::default())
    }
}

fn units(field: &str, text: &str) -> Result<u64, Fault> {
    text.parse().map_err(|error: std::num::ParseIntError| (format!("venues.{field}"), error.to_string()))
}

impl VenuePart {
    pub(crate) fn of(terms: &VenueTerms) -> VenuePart {
        VenuePart {
            delay: DelayPart::of(terms.delay),
            bond_min: terms.bond_min.to_string(),
            bond_delay: DelayPart::of(terms.bond_delay),
            settle_bytes: terms.settle_bytes,
            entries_max: terms.entries_max,
            penalty_min: terms.penalty_min.to_string(),
            venues_max: terms.venues_max,
            per_block: terms.per_block,
            life_max: terms.life_max,
        }
    }

    pub(crate) fn read(self) -> Result<VenueTerms, Fault> {
        Ok(VenueTerms {
            delay: self.delay.read(),
            bond_min: units("bond_min", &self.bond_min)?,
            bond_delay: self.bond_delay.read(),
            settle_bytes: self.settle_bytes,
            entries_max: self.entries_max,
            penalty_min: units("penalty_min", &self.penalty_min)?,
            venues_max: self.venues_max,
            per_block: self.per_block,
            life_max: self.life_max,
        })
    }
}

/// Checks the terms against the network of these validators.
pub(crate) fn check_network(terms: &VenueTerms, founding: &Founding) -> Result<(), Fault> {
    let rules = founding.rules;
    let fault = terms.network_fault(rules.payload_bytes as u64, rules.lag, rules.window);
    fault.map_or(Ok(()), |fault| Err(("venues".into(), fault.into())))
}

#[cfg(test)]
mod tests {
    use ledger::{Genesis, Listing};
    use primitives::{Address, Fraction};

    use super::*;
    use crate::genesis_file::{read, write};

    fn genesis() -> Genesis {
        let assets = vec![Listing::new("USD", 2, Address([1; 20]))];
        Genesis { mu: Fraction::power_of_two(10), assets, ..Genesis::default() }
    }

    #[test]
    fn terms_of_venues_round_trip_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let genesis = Genesis { venues: Some(ledger::VenueTerms { bond_min: 77, ..Default::default() }), ..genesis() };
        write(&path, &genesis).expect("written");
        assert_eq!(read(&path).expect("sound"), genesis);
        let text = std::fs::read_to_string(&path).expect("there");
        for (from, to, expected) in [
            ("\"bond_min\": \"77\"", "\"bond_min\": \"0\"", "venues: bond_min"),
            ("\"bond_min\": \"77\"", "\"bond_min\": \"much\"", "venues.bond_min"),
            ("\"bond_min\": \"77\"", "\"bond\": \"77\"", "unknown field"),
            ("\"per_block\": 32768", "\"per_block\": 1", "venues: per_block"),
        ] {
            assert!(text.contains(from), "{from}");
            std::fs::write(&path, text.replace(from, to)).expect("written");
            let error = read(&path).expect_err("a mistake").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn terms_of_venues_must_fit_the_network() {
        let terms = VenueTerms::default();
        let of = |bytes, lag, window| terms.network_fault(bytes, lag, window).unwrap_or_default();
        assert_eq!(of(2 << 20, 2, 4), "", "the defaults need exactly 32 heights");
        assert!(of(2 << 20, 3, 4).starts_with("delay.heights is below"));
        assert!(of(512 << 10, 2, 4).starts_with("settle_bytes"));
        assert!(of(600 << 10, 2, 4).starts_with("venues_max"));
    }
}
