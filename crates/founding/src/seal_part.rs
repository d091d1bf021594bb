//! The part of a genesis file about the committee's sealing key.

use ledger::SealTerms;
use serde::{Deserialize, Serialize};

/// [`SealTerms`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealPart {
    /// How many seats open an envelope: `fewest` or `quorum`.
    threshold: String,
}

impl SealPart {
    pub(crate) fn of(terms: &SealTerms) -> SealPart {
        SealPart { threshold: terms.name().into() }
    }

    /// The terms, or the field and what is wrong with it.
    pub(crate) fn read(self) -> Result<SealTerms, (String, String)> {
        let unknown = || format!("{:?} is no threshold: choose fewest or quorum", self.threshold);
        SealTerms::named(&self.threshold).ok_or_else(|| ("seals.threshold".into(), unknown()))
    }
}
