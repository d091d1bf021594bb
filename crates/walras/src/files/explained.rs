//! Why an offer did or did not trade, as `walras clear --explain` prints it.

use std::str::FromStr;

use clearing::{Book, Clearing, Explanation, Groups, Params, Rate, explain};
use primitives::AssetId;
use serde::{Deserialize, Serialize};

use crate::files::batch::BatchInput;

/// A subject of `--explain`: a row, counted from 1, of one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainSubject {
    /// An offer.
    Offer(u32),
    /// A pool.
    Pool(u32),
    /// An order for an exact amount.
    Buy(u32),
}

impl FromStr for ExplainSubject {
    type Err = String;

    fn from_str(text: &str) -> Result<ExplainSubject, String> {
        let (kind, row): (fn(u32) -> ExplainSubject, &str) = match text.split_once(':') {
            None => (ExplainSubject::Offer, text),
            Some(("pools", row)) => (ExplainSubject::Pool, row),
            Some(("buys", row)) => (ExplainSubject::Buy, row),
            Some(_) => return Err("write a row such as 3, pools:3 or buys:3".into()),
        };
        let row = row.parse().ok().filter(|row| *row > 0);
        row.map(kind).ok_or_else(|| "rows are whole numbers, counted from 1".into())
    }
}

impl ExplainSubject {
    /// The error message if the files have no such row.
    pub fn outside(self, book: &Book) -> Option<String> {
        let (row, rows, asked) = match self {
            ExplainSubject::Offer(row) => (row, book.offers(), row.to_string()),
            ExplainSubject::Pool(row) => (row, book.pools.len(), format!("pools:{row}")),
            ExplainSubject::Buy(row) => (row, book.exacts.len(), format!("buys:{row}")),
        };
        let rows_there = if rows == 0 { "no such rows".into() } else { format!("rows 1 to {rows}") };
        (row as usize > rows).then(|| format!("--explain {asked}: the file has {rows_there}"))
    }
}

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
    /// Number of offers of the pair that come before this one.
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
    /// Additional units that the pair would have to sell for the offer to trade in full.
    pub missing: Option<String>,
    /// The whole explanation in words.
    pub text: String,
}

/// Explains the offer of `row`, counted from 1, which the file must have.
pub fn explained(batch: &BatchInput, book: &Book, params: &Params, clearing: &Clearing, row: u32) -> Explained {
    let place = |pair: usize| Some((pair, batch.offers.rows(pair).iter().position(|other| other + 1 == row)?));
    let (pair, index) = (0..book.pairs.len()).find_map(place).expect("the file has the row");
    let said = explain(book, params, clearing, pair, index).expect("the offer is in the book that was cleared");
    let name = |asset| batch.symbol(asset);
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

/// Explains why a pool or an order for an exact amount, which the files must have, did or did not trade.
pub fn explanation_of(
    batch: &BatchInput,
    book: &Book,
    params: &Params,
    clearing: &Clearing,
    asked: ExplainSubject,
) -> String {
    let rate = |sell, buy| clearing.rate(params, sell, buy).expect("assets of the book that was cleared");
    match asked {
        ExplainSubject::Pool(row) => pool_in_words(batch, book, clearing, row, rate),
        ExplainSubject::Buy(row) => buy_in_words(batch, book, clearing, row, rate),
        ExplainSubject::Offer(row) => explained(batch, book, params, clearing, row).text,
    }
}

fn pool_in_words(
    batch: &BatchInput,
    book: &Book,
    clearing: &Clearing,
    row: u32,
    rate: impl Fn(AssetId, AssetId) -> Rate,
) -> String {
    let pool = &book.pools[row as usize - 1];
    let (a, b) = (batch.symbol(pool.a), batch.symbol(pool.b));
    let (price, net) = (pool.reserve_b as f64 / pool.reserve_a as f64, rate(pool.a, pool.b).to_f64());
    let keep = 1.0 - pool.fee.to_f64();
    let gains = net * keep > price || rate(pool.b, pool.a).to_f64() * keep > 1.0 / price;
    let stands =
        format!("pools, row {row}: values a {a} at {price} {b}, its fee apart; after commission, the rate is {net}");
    match clearing.pools.iter().find(|trade| trade.pool + 1 == row) {
        Some(trade) => {
            let (sell, buy) = (batch.symbol(trade.sell), batch.symbol(trade.buy));
            format!("{stands}. It gives {} {sell} for {} {buy}.", trade.sold, trade.bought)
        }
        None if gains => format!("{stands}. It does not trade, as the amounts of others leave nothing for it."),
        None => format!("{stands}. It does not trade: the rate does not pay more than its fee in either direction."),
    }
}

fn buy_in_words(
    batch: &BatchInput,
    book: &Book,
    clearing: &Clearing,
    row: u32,
    rate: impl Fn(AssetId, AssetId) -> Rate,
) -> String {
    let order = &book.exacts[row as usize - 1];
    let (buy, sell) = (batch.symbol(order.buy), batch.symbol(order.sell));
    let asks = format!("buys, row {row}: {} {buy} for at most {} {sell}", order.units, order.bound);
    let filled = clearing.exacts.iter().find(|purchase| purchase.order + 1 == row);
    let groups = Groups::of_book(book);
    let mut short = clearing.report.obstacles.iter().flat_map(|obstacle| &obstacle.assets);
    let is_short = short.any(|asset| groups.are_one(*asset, order.sell));
    match (filled, order.other(&rate(order.sell, order.buy))) {
        (Some(purchase), _) => format!("{asks}: is filled and pays {} {sell}.", purchase.other),
        (None, None) => format!("{asks}: is not filled, as it would cost more."),
        (None, Some(_)) if is_short => format!("{asks}: is not filled, as not all offers that must execute do."),
        (None, Some(cost)) => {
            format!("{asks}: is not filled; it would cost {cost} {sell}, but too little {buy} is left for it.")
        }
    }
}
