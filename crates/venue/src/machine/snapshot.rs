//! The machine as bytes, and back.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use matching::Book;
use primitives::Digest;
use primitives::venue::{MarketId, MarketTerms};

use super::{Market, VenueMachine};
use crate::mistake::VenueMistake;
use crate::settings::MarketSettings;
use crate::state::Core;

const VERSION: u8 = 1;
const CONTEXT: &str = "walras 2026 venue root state v1";

#[derive(BorshSerialize, BorshDeserialize)]
struct MarketBytes {
    settings: MarketSettings,
    terms: MarketTerms,
    collar: (u32, u32),
    told: u64,
    book: Vec<u8>,
}

impl VenueMachine {
    /// The whole state between two steps. Equal states have equal bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let market = |of: &Market| MarketBytes {
            settings: of.settings,
            terms: of.terms,
            collar: of.collar,
            told: of.told,
            book: of.book.snapshot(),
        };
        let markets: BTreeMap<MarketId, MarketBytes> =
            self.markets.iter().map(|(number, of)| (*number, market(of))).collect();
        borsh::to_vec(&(VERSION, &self.core, &markets)).expect("writing to memory cannot fail")
    }

    /// A digest of the whole state.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(CONTEXT, &self.encode())
    }

    /// The state that bytes were made of, or what is wrong with them. The seed of the books may differ: it shows in
    /// no result.
    pub(crate) fn decode(bytes: &[u8], seed: u64, mistake: Option<VenueMistake>) -> Result<VenueMachine, String> {
        if bytes.first() != Some(&VERSION) {
            return Err(format!("it has version {:?}, and this program reads {VERSION}", bytes.first()));
        }
        let (core, markets): (Core, BTreeMap<MarketId, MarketBytes>) =
            borsh::from_slice(&bytes[1..]).map_err(|error| error.to_string())?;
        let mut books = BTreeMap::new();
        for (number, MarketBytes { settings, terms, collar, told, book }) in markets {
            let book = Book::restore(&book, core.settings.book(&settings), seed).map_err(|error| error.to_string())?;
            books.insert(number, Market { settings, terms, collar, told, book });
        }
        Ok(VenueMachine::of(core, books, seed, mistake))
    }
}
