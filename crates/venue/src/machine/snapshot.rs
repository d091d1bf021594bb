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
use crate::state::{Core, KnownControls};

const VERSION: u8 = 5;
/// The version before, which knew of no controls.
const BEFORE_CONTROLS: u8 = 4;
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
    borsh::to_vec(&(VERSION, &machine.core, &markets, &machine.core.controls)).expect("writing to memory cannot fail")
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
        [BEFORE_CONTROLS, rest @ ..] => {
            borsh::from_slice(rest).map(|(core, markets)| (core, markets, KnownControls::default()))
        }
        [other, ..] => {
            return Err(format!("its format has version {other}, and this program reads {VERSION}"));
        }
        [] => return Err("it is empty".into()),
    };
    let (mut core, markets, controls): (Core, BTreeMap<MarketId, MarketBytes>, KnownControls) =
        decoded.map_err(|error: borsh::io::Error| error.to_string())?;
    core.controls = controls;
    let mut books = BTreeMap::new();
    for (number, MarketBytes { settings, terms, collar, told, book }) in markets {
        let book = Book::restore(&book, core.settings.book(&settings), seed).map_err(|error| error.to_string())?;
        books.insert(number, Market { settings, terms, collar, told, book });
    }
    Ok(VenueMachine::of(core, books, seed, mistake))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::VenueSettings;

    #[test]
    fn a_snapshot_of_before_controls_is_read_without_any() {
        let settings = VenueSettings::deserialize(&mut &[0; 1_000][..]).expect("settings of zeros");
        let machine = VenueMachine::new(settings, 0, Planted::NOTHING);
        let none: BTreeMap<MarketId, MarketBytes> = BTreeMap::new();
        let before = borsh::to_vec(&(BEFORE_CONTROLS, &machine.core, &none)).expect("memory");
        let restored = restored(&before, 0, Planted::NOTHING).expect("it is read");
        assert_eq!(encode(&restored), encode(&machine));
    }

    #[test]
    fn a_snapshot_of_another_version_is_refused_by_number() {
        for version in [0, BEFORE_CONTROLS - 1, VERSION + 1] {
            let error = restored(&[version, 1, 2, 3], 0, Planted::NOTHING).err();
            let wanted = format!("its format has version {version}, and this program reads {VERSION}");
            assert_eq!(error, Some(wanted));
        }
        assert_eq!(restored(&[], 0, Planted::NOTHING).err().as_deref(), Some("it is empty"));
    }
}
