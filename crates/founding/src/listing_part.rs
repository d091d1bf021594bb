//! The part of a genesis file about assets that are listed on the running chain.

use ledger::{ListingPolicy, ListingTerms};
use serde::{Deserialize, Serialize};

/// [`ListingTerms`], with defaults for omitted fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ListingPart {
    /// `closed` or `priced`.
    policy: String,
    /// Fees of a first listing.
    fees: u64,
    /// The most assets that are open at one time.
    assets_max: u32,
    /// Heights from the announcement that an asset closes to the last one that it trades at.
    notice: u64,
}

impl Default for ListingPart {
    fn default() -> ListingPart {
        ListingPart::of(&ListingTerms::default())
    }
}

impl ListingPart {
    pub(crate) fn of(terms: &ListingTerms) -> ListingPart {
        let ListingTerms { policy, fees, assets_max, notice } = *terms;
        ListingPart { policy: policy.name().into(), fees, assets_max, notice }
    }

    /// Whether it need not be written.
    pub(crate) fn is_usual(&self) -> bool {
        self.read().is_ok_and(|terms| terms == ListingTerms::default())
    }

    /// The terms, or the field and what is wrong with it.
    pub(crate) fn read(&self) -> Result<ListingTerms, (String, String)> {
        let known = [ListingPolicy::Closed, ListingPolicy::Priced, ListingPolicy::Voted]
            .into_iter()
            .find(|one| one.name() == self.policy);
        let wrong =
            || ("listings.policy".into(), format!("{:?} is none of \"closed\", \"priced\" and \"voted\"", self.policy));
        let policy = known.ok_or_else(wrong)?;
        Ok(ListingTerms { policy, fees: self.fees, assets_max: self.assets_max, notice: self.notice })
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Genesis, ListingPolicy, ListingTerms};
    use primitives::{Address, Fraction};

    use crate::genesis_file::{read, write};

    #[test]
    fn terms_of_listings_round_trip_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let assets = vec![ledger::Listing::new("USD", 2, Address([1; 20]))];
        let genesis = Genesis { fee: 1, mu: Fraction::power_of_two(10), assets, ..Genesis::default() };
        write(&path, &genesis).expect("written");
        assert!(!std::fs::read_to_string(&path).expect("there").contains("listings"));
        assert_eq!(read(&path).expect("sound"), genesis);
        let genesis = Genesis { listings: ListingTerms { notice: 77, ..ListingTerms::priced() }, ..genesis };
        write(&path, &genesis).expect("written");
        assert_eq!(read(&path).expect("sound"), genesis);
        let text = std::fs::read_to_string(&path).expect("there");
        std::fs::write(&path, text.replace("priced", "voted")).expect("written");
        assert_eq!(read(&path).expect("sound").listings.policy, ListingPolicy::Voted);
        for (from, to, expected) in [
            ("\"priced\"", "\"sold\"", "listings.policy"),
            ("77", "0", "listings: notice"),
            ("1024", "20000", "listings: assets_max"),
            ("\"notice\"", "\"warning\"", "warning"),
        ] {
            let changed = text.replace(from, to);
            assert_ne!(changed, text, "{from}");
            std::fs::write(&path, changed).expect("written");
            let told = read(&path).expect_err("refused").to_string();
            assert!(told.contains(expected), "{told}");
        }
    }
}
