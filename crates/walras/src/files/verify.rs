//! `walras verify`: checks a clearing against the offers, without solving anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use clearing::{
    Book, Clearing, Division, ExactFill, Groups, Obstacle, Params, PoolTrade, Reason, Report, Trade, UnitsProof,
};
use primitives::{Amount, AssetId, Fraction, Price};

use crate::files::batch::{BatchFiles, BatchInput, read_batch};
use crate::files::clear::{
    BuyJson, ClearingJson, DivisionJson, FillJson, PoolJson, ProofJson, TradeJson, listed_fills,
};

/// Checks a clearing: every asset is conserved, every limit price is kept in whole units, and a claimed fullness, or a
/// proof that no clearing is full, is true.
#[derive(Debug, Args)]
#[command(after_help = "Example: walras verify --offers offers.csv --clearing clearing.json")]
pub struct VerifyArgs {
    #[command(flatten)]
    pub files: BatchFiles,
    /// The output of `walras clear --json` for these offers
    #[arg(long, value_name = "FILE")]
    pub clearing: PathBuf,
}

impl VerifyArgs {
    /// Runs `walras verify`; exits 1 with the first violation.
    ///
    /// # Errors
    /// If a file is invalid.
    pub fn run(self, json: bool) -> Result<ExitCode> {
        let batch = read_batch(&self.files)?;
        let claim = read_claim(&self.clearing)?;
        let checked = check(&batch, &claim).with_context(|| format!("{}", self.clearing.display()));
        match &checked {
            Ok(offers) if json => {
                println!("{}", serde_json::json!({ "valid": true, "full": claim.full, "offers": offers }))
            }
            Ok(offers) => println!("valid: {offers} offers trade, full: {}", claim.full),
            Err(error) => {
                if json {
                    println!("{}", serde_json::json!({ "valid": false, "violation": terminal::in_words(error) }));
                }
                eprintln!("error: {}", terminal::in_words(error));
                return Ok(ExitCode::FAILURE);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn read_claim(path: &Path) -> Result<ClearingJson> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{}: not a clearing; write one with walras clear --json", path.display()))
}

/// Checks `claim` against the offers; returns how many trade.
fn check(batch: &BatchInput, claim: &ClearingJson) -> Result<usize> {
    let book = batch.book();
    let fraction = |name: &str, text: &str| Fraction::from_str(text).with_context(|| name.to_owned());
    let (epsilon, mu) = (fraction("epsilon", &claim.epsilon)?, fraction("mu", &claim.mu)?);
    let params = Params { epsilon, mu, ..Params::default() };
    let clearing = Clearing {
        valuations: valuations(batch, &book, &claim.prices)?,
        trades: trades(batch, &claim.trades)?,
        pools: pools(batch, &claim.pools)?,
        exacts: buys(&claim.buys)?,
        full: claim.full,
        short: short(batch, &book, claim)?,
        report: Report { obstacles: proofs(batch, &claim.proofs)?, ..Report::default() },
    };
    let verified = match clearing::verify(&book, &params, &clearing) {
        Ok(verified) => verified,
        Err(violation) => bail!("{}", with_symbols(&violation, batch)),
    };
    let mut claimed = claim.fills.clone();
    claimed.sort_by_key(|fill| fill.row);
    same_fills(&claimed, &listed_fills(batch, &book, &params, &clearing))?;
    Ok(verified.executed)
}

/// The groups that are not claimed to be full.
fn short(batch: &BatchInput, book: &Book, claim: &ClearingJson) -> Result<Vec<AssetId>> {
    if claim.short.is_empty() {
        return Ok(if claim.full { Vec::new() } else { Groups::of_book(book).lowest() });
    }
    let mut short: Vec<AssetId> =
        claim.short.iter().map(|symbol| asset(batch, "short", symbol)).collect::<Result<_>>()?;
    short.sort_unstable();
    Ok(short)
}

/// A valuation for every asset. Assets to which no chain of offers leads back have no price and need none.
fn valuations(batch: &BatchInput, book: &Book, prices: &BTreeMap<String, String>) -> Result<Vec<Price>> {
    if let Some(stranger) = prices.keys().find(|symbol| batch.asset(symbol).is_none()) {
        bail!("prices: asset {stranger} is in none of the offers");
    }
    let price = |(symbol, is_priced): (&String, bool)| match prices.get(symbol) {
        Some(text) => Price::from_str(text).with_context(|| format!("prices: asset {symbol}")),
        None if is_priced => bail!("prices: none for asset {symbol}"),
        None => Ok(Price::ONE),
    };
    batch.symbols.iter().zip(Groups::of_book(book).priced()).map(price).collect()
}

/// The asset with this symbol, which occurs in `list`.
fn asset(batch: &BatchInput, list: &str, symbol: &str) -> Result<AssetId> {
    batch.asset(symbol).with_context(|| format!("{list}: asset {symbol} is in none of the offers"))
}

fn amount(list: &str, of: &str, text: &str) -> Result<Amount> {
    text.parse().ok().with_context(|| format!("{list}: {of}: {text:?} is not a whole number of units such as 1500"))
}

fn trades(batch: &BatchInput, trades: &[TradeJson]) -> Result<Vec<Trade>> {
    let trade = |t: &TradeJson| {
        let sold = amount("trades", &format!("{}/{}: sold", t.sell, t.buy), &t.sold)?;
        Ok(Trade { sell: asset(batch, "trades", &t.sell)?, buy: asset(batch, "trades", &t.buy)?, sold })
    };
    let mut result: Vec<Trade> = trades.iter().map(trade).collect::<Result<_>>()?;
    result.sort_by_key(|trade| (trade.sell, trade.buy));
    Ok(result)
}

fn pools(batch: &BatchInput, trades: &[PoolJson]) -> Result<Vec<PoolTrade>> {
    let trade = |p: &PoolJson| {
        let units = |name: &str, text| amount("pools", &format!("row {}: {name}", p.row), text);
        Ok(PoolTrade {
            pool: place("pools", p.row)?,
            sell: asset(batch, "pools", &p.sell)?,
            buy: asset(batch, "pools", &p.buy)?,
            sold: units("sold", &p.sold)?,
            bought: units("bought", &p.bought)?,
        })
    };
    trades.iter().map(trade).collect()
}

fn buys(rows: &[BuyJson]) -> Result<Vec<ExactFill>> {
    let purchase = |b: &BuyJson| {
        let other = amount("buys", &format!("row {}: paid", b.row), &b.paid)?;
        Ok(ExactFill { order: place("buys", b.row)?, other })
    };
    rows.iter().map(purchase).collect()
}

/// The obstacles that carry the claimed proofs.
fn proofs(batch: &BatchInput, proofs: &[ProofJson]) -> Result<Vec<Obstacle>> {
    let division = |d: &DivisionJson| {
        let most = amount("proofs", &format!("offer {}: most", d.offer), &d.most)?;
        Ok(Division { offer: d.offer, is_paid: d.is_paid, most })
    };
    let obstacle = |proof: &ProofJson| {
        let assets: Vec<AssetId> =
            proof.assets.iter().map(|symbol| asset(batch, "proofs", symbol)).collect::<Result<_>>()?;
        let divisions = proof.divisions.iter().map(division).collect::<Result<_>>()?;
        Ok(Obstacle { reason: Reason::Units, assets: assets.clone(), proof: Some(UnitsProof { assets, divisions }) })
    };
    proofs.iter().map(obstacle).collect()
}

/// The position of a row.
fn place(list: &str, row: u32) -> Result<u32> {
    row.checked_sub(1).with_context(|| format!("{list}: row 0: rows are counted from 1"))
}

/// Compares the fills that the clearing lists with those that follow from its trades.
fn same_fills(claimed: &[FillJson], due: &[FillJson]) -> Result<()> {
    for (index, fill) in due.iter().enumerate() {
        let FillJson { row, sold, bought } = fill;
        let got = claimed.get(index);
        ensure!(
            got.is_some_and(|got| got == fill),
            "fills: row {row} sells {sold} for {bought}, but the list does not say so"
        );
    }
    if let Some(extra) = claimed.get(due.len()) {
        bail!("fills: row {} does not trade, but the list says so", extra.row);
    }
    Ok(())
}

/// The violation, with symbols for asset numbers and rows for offers.
fn with_symbols(violation: &clearing::Violation, batch: &BatchInput) -> String {
    let book = batch.book();
    let row = |sell, buy, index: usize| {
        let position = book.position(sell, buy).expect("the pair has offers");
        format!("row {}", batch.offers.rows(position)[index] + 1)
    };
    violation.in_words(|asset| batch.symbol(asset), row)
}
