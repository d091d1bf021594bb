//! The part of a genesis file about how the rules of the chain change.

use ledger::CharterTerms;
use primitives::Address;
use serde::{Deserialize, Serialize};

/// [`CharterTerms`], with defaults for omitted fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CharterPart {
    /// On a chain of one node, the account that names the next rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<String>,
    /// The fewest heights of notice.
    notice_min: u64,
    /// Heights for which two thirds of the stake must have approved, until n − f seats suffice.
    patience: u64,
}

impl Default for CharterPart {
    fn default() -> CharterPart {
        CharterPart::of(&CharterTerms::default())
    }
}

impl CharterPart {
    pub(crate) fn of(terms: &CharterTerms) -> CharterPart {
        let CharterTerms { operator, notice_min, patience } = *terms;
        let operator = (operator != Address::default()).then(|| operator.to_string());
        CharterPart { operator, notice_min, patience }
    }

    /// Whether a file may leave it out.
    pub(crate) fn is_usual(&self) -> bool {
        let usual = CharterTerms::default();
        self.operator.is_none() && (self.notice_min, self.patience) == (usual.notice_min, usual.patience)
    }

    /// The terms, or the field and what is wrong with it.
    pub(crate) fn read(self) -> Result<CharterTerms, (String, String)> {
        let CharterPart { operator, notice_min, patience } = self;
        let named = |error: primitives::AddressError| ("charter.operator".to_string(), error.to_string());
        let operator = operator.map(|text| text.parse().map_err(named)).transpose()?.unwrap_or_default();
        Ok(CharterTerms { operator, notice_min, patience })
    }
}

#[cfg(test)]
mod tests {
    use ledger::{CharterTerms, Genesis, Listing};
    use primitives::{Address, Fraction};

    use crate::genesis_file::{read, write};

    #[test]
    fn terms_of_the_charter_round_trip_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let charter = CharterTerms { operator: Address([7; 20]), notice_min: 77, patience: 99 };
        let assets = vec![Listing::new("USD", 2, Address([1; 20]))];
        let genesis = Genesis { mu: Fraction::power_of_two(10), assets, charter, ..Genesis::default() };
        write(&path, &genesis).expect("written");
        assert_eq!(read(&path).expect("sound"), genesis);
        let text = std::fs::read_to_string(&path).expect("there");
        for (from, to, expected) in [
            ("0x0707", "0x07", "charter.operator"),
            ("\"notice_min\": 77", "\"notice_min\": 0", "charter: notice_min"),
            ("\"patience\": 99", "\"patience\": 34560001", "charter: patience"),
            ("\"notice_min\"", "\"notice\"", "notice"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
            let message = read(&path).expect_err("refused").to_string();
            assert!(message.contains(expected), "{message}");
        }
        write(&path, &Genesis { charter: CharterTerms::default(), ..genesis }).expect("written");
        assert!(!std::fs::read_to_string(&path).expect("there").contains("charter"), "the usual terms are left out");
    }
}
