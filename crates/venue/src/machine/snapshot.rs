//! The machine as bytes, and back.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use kernel::Planted;
use matching::Book;
use primitives::Digest;
use primitives::venue::{MarketId, MarketTerms};

use super::{Market, VenueMachine};
use crate::mistake::VenueMistake;
use crate::settings::MarketSettings;
use crate::state::Core;

const VERSION: u8 = 3;
/// The version before: without the rules of the chain, which no root knew.
const WITHOUT_RULES: u8 = 2;
const CONTEXT: &str = "walras 2026 venue root state v1";

#[derive(BorshSerialize, BorshDeserialize)]
struct MarketBytes {
    settings: MarketSettings,
    terms: MarketTerms,
    collar: (u32, u32),
    told: u64,
    book: Vec<u8>,
}

/// The whole state between two steps. Equal states have equal bytes.
pub(crate) fn encode(machine: &VenueMachine) -> Vec<u8> {
    let market = |of: &Market| MarketBytes {
        settings: of.settings,
        terms: of.terms,
        collar: of.collar,
        told: of.told,
        book: of.book.snapshot(),
    };
    let markets: BTreeMap<MarketId, MarketBytes> =
        machine.markets.iter().map(|(number, of)| (*number, market(of))).collect();
    borsh::to_vec(&(VERSION, &machine.core, &markets, machine.core.rules)).expect("writing to memory cannot fail")
}

/// A digest of the whole state.
pub(crate) fn digest(machine: &VenueMachine) -> Digest {
    Digest::of(CONTEXT, &encode(machine))
}

/// The state that bytes were made of, or what is wrong with them. The seed of the books may differ: it shows in
/// no result.
pub(crate) fn restored(bytes: &[u8], seed: u64, mistake: Planted<VenueMistake>) -> Result<VenueMachine, String> {
    let decoded = match bytes {
        [VERSION, rest @ ..] => borsh::from_slice(rest),
        [WITHOUT_RULES, rest @ ..] => borsh::from_slice(rest).map(|(core, markets)| (core, markets, 0)),
        [other, ..] => {
            return Err(format!(
                "its format has version {other}, and this program reads {WITHOUT_RULES} and {VERSION}"
            ));
        }
        [] => return Err("it is empty".into()),
    };
    let (mut core, markets, rules): (Core, BTreeMap<MarketId, MarketBytes>, u32) =
        decoded.map_err(|error: borsh::io::Error| error.to_string())?;
    core.rules = rules;
    let mut books = BTreeMap::new();
    for (number, MarketBytes { settings, terms, collar, told, book }) in markets {
        let book = Book::restore(&book, core.settings.book(&settings), seed).map_err(|error| error.to_string())?;
        books.insert(number, Market { settings, terms, collar, told, book });
    }
    Ok(VenueMachine::of(core, books, seed, mistake))
}

#[cfg(test)]
mod tests {
    use primitives::venue::{Delay, VenueOperator};
    use primitives::{Address, PublicKey};

    use super::*;
    use crate::settings::{SettlingTerms, VenueLimits, VenueSettings};

    /// A root that an older program ran goes on, and signs report by report until it is told the rules.
    #[test]
    fn a_snapshot_from_before_rules_were_told_is_read_without_them() {
        let operator = VenueOperator { account: Address([1; 20]), report_key: PublicKey([2; 32]) };
        let delay = Delay { heights: 8, ms: 1_000 };
        let (bond_min, settle_bytes, entries_max, life_max) = (1, 1 << 16, 9, 99);
        let terms = SettlingTerms { chain: 1, fee: 1, delay, bond_min, settle_bytes, entries_max, life_max };
        let (network, limits) = (Digest([3; 32]), VenueLimits::default());
        let settings = VenueSettings { network, venue: 0, incarnation: 0, operator, terms, limits };
        let mut machine = VenueMachine::new(settings, 0, Planted::NOTHING);
        machine.core.rules = 0x0102_0304;
        let mut bytes = encode(&machine);
        let rules = |bytes: &[u8]| restored(bytes, 0, Planted::NOTHING).map(|machine| machine.core.rules);
        assert_eq!(rules(&bytes), Ok(0x0102_0304));
        bytes.truncate(bytes.len() - 4);
        assert!(rules(&bytes).is_err(), "it states its own version");
        bytes[0] = WITHOUT_RULES;
        assert_eq!(rules(&bytes), Ok(0));
    }

    #[test]
    fn a_snapshot_of_another_version_is_refused_by_number() {
        for version in [0, WITHOUT_RULES - 1, VERSION + 1] {
            let error = restored(&[version, 1, 2, 3], 0, Planted::NOTHING).err();
            let wanted =
                format!("its format has version {version}, and this program reads {WITHOUT_RULES} and {VERSION}");
            assert_eq!(error, Some(wanted));
        }
        assert_eq!(restored(&[], 0, Planted::NOTHING).err().as_deref(), Some("it is empty"));
    }
}
