//! Why an offer did or did not trade, as `walras clear --explain` prints it.

use clearing::{Book, Clearing, Explanation, Params, explain};
use serde::{Deserialize, Serialize};

use crate::offers::OfferFile;

/// The printed form of an explanation. Amounts and prices are exact decimal strings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Explained {
    /// Data row of the offer, counted from 1.
    pub row: u32,
    /// Symbol of the asset sold.
    pub sell: String,
    /// Symbol of the asset bought.
    pub buy: String,
    /// Units offered.
    pub amount: String,
    /// Limit price.
    pub min_price: String,
    /// Rate after commission.
    pub rate: f64,
    /// How many offers of the pair come first.
    pub offers_ahead: usize,
    /// Units that those offer.
    pub units_ahead: String,
    /// Units sold on the pair.
    pub pair_sold: String,
    /// Units given.
    pub sold: String,
    /// Units received.
    pub bought: String,
    /// Whether a full clearing must fill it if whole units can.
    pub must_fill: bool,
    /// `full`, `part`, `beyond rate`, `rounding` or `not reached`.
    pub why: String,
    /// Units more that the pair would have to sell for the offer to trade in full.
    pub missing: Option<String>,
    /// All of it in words.
    pub text: String,
}

/// Explains the offer of `row`, counted from 1, which the file must have.
pub fn explained(file: &OfferFile, book: &Book, params: &Params, clearing: &Clearing, row: u32) -> Explained {
    let place = |pair: usize| Some((pair, file.offers.rows(pair).iter().position(|other| other + 1 == row)?));
    let (pair, index) = (0..book.pairs.len()).find_map(place).expect("the file has the row");
    let said = explain(book, params, clearing, pair, index).expect("the offer is in the book that was cleared");
    let name = |asset: primitives::AssetId| file.symbols[asset.0 as usize].clone();
    let text = said.in_words(name);
    let Explanation { amount, limit, rate, offers_ahead, units_ahead, pair_sold, sold, bought, must_fill, .. } = said;
    Explained {
        row,
        sell: name(said.sell),
        buy: name(said.buy),
        amount: amount.to_string(),
        min_price: limit.to_string(),
        rate,
        offers_ahead,
        units_ahead: units_ahead.to_string(),
        pair_sold: pair_sold.to_string(),
        sold: sold.to_string(),
        bought: bought.to_string(),
        must_fill,
        why: said.why.name().into(),
        missing: said.why.missing().map(|missing| missing.to_string()),
        text,
    }
}
