//! `walras verify`: checks a clearing against the offers, without solving anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use clearing::{Clearing, Params, Solver, Trade};
use primitives::{AssetId, Fraction, Price};

use crate::clear::{ClearingJson, FillJson, TradeJson, listed_fills};
use crate::offers::{self, OfferFile};

/// Checks a clearing: every asset conserved and every limit price kept in whole units, fullness where it is claimed.
#[derive(Debug, Args)]
#[command(after_help = "Example: walras verify --offers offers.csv --clearing clearing.json")]
pub struct VerifyArgs {
    /// The CSV or .parquet file that was cleared
    #[arg(long, value_name = "FILE")]
    pub offers: PathBuf,
    /// What `walras clear --json` printed for it
    #[arg(long, value_name = "FILE")]
    pub clearing: PathBuf,
}

/// Runs `walras verify`; exits 1 with the first violation.
///
/// # Errors
/// Whatever is wrong with the files.
pub fn run(args: &VerifyArgs, json: bool) -> Result<ExitCode> {
    let file = offers::read(&args.offers)?;
    let claim = read_claim(&args.clearing)?;
    let checked = check(&file, &claim).with_context(|| format!("{}", args.clearing.display()));
    match &checked {
        Ok(offers) if json => {
            println!("{}", serde_json::json!({ "valid": true, "full": claim.full, "offers": offers }))
        }
        Ok(offers) => println!("valid: {offers} offers trade, full: {}", claim.full),
        Err(error) => {
            if json {
                println!("{}", serde_json::json!({ "valid": false, "violation": format!("{error:#}") }));
            }
            eprintln!("error: {error:#}");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read_claim(path: &Path) -> Result<ClearingJson> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{}: not a clearing; write one with walras clear --json", path.display()))
}

/// Checks `claim` against the offers; returns how many trade.
fn check(file: &OfferFile, claim: &ClearingJson) -> Result<usize> {
    let book = file.offers.book();
    let fraction = |name: &str, text: &str| Fraction::from_str(text).with_context(|| name.to_owned());
    let (epsilon, mu) = (fraction("epsilon", &claim.epsilon)?, fraction("mu", &claim.mu)?);
    let params = Params { epsilon, mu, solver: Solver::Newton };
    let clearing = Clearing {
        valuations: valuations(file, &claim.prices)?,
        trades: trades(file, &claim.trades)?,
        full: claim.full,
        ..Clearing::default()
    };
    let verified = match clearing::verify(&book, &params, &clearing) {
        Ok(verified) => verified,
        Err(violation) => bail!("{}", with_symbols(&violation, file)),
    };
    let mut claimed = claim.fills.clone();
    claimed.sort_by_key(|fill| fill.row);
    same_fills(&claimed, &listed_fills(file, &book, &params, &clearing))?;
    Ok(verified.executed)
}

fn valuations(file: &OfferFile, prices: &BTreeMap<String, String>) -> Result<Vec<Price>> {
    if let Some(stranger) = prices.keys().find(|symbol| file.symbols.binary_search(symbol).is_err()) {
        bail!("prices: asset {stranger} is in none of the offers");
    }
    let price = |symbol: &String| {
        let text = prices.get(symbol).with_context(|| format!("prices: none for asset {symbol}"))?;
        Price::from_str(text).with_context(|| format!("prices: asset {symbol}"))
    };
    file.symbols.iter().map(price).collect()
}

fn trades(file: &OfferFile, trades: &[TradeJson]) -> Result<Vec<Trade>> {
    let id = |symbol: &String| match file.symbols.binary_search(symbol) {
        Ok(id) => Ok(AssetId(id as u32)),
        Err(_) => bail!("trades: asset {symbol} is in none of the offers"),
    };
    let trade = |t: &TradeJson| {
        let sold = t.sold.parse().with_context(|| format!("trades: {}/{}: sold {:?}", t.sell, t.buy, t.sold))?;
        Ok(Trade { sell: id(&t.sell)?, buy: id(&t.buy)?, sold })
    };
    let mut result: Vec<Trade> = trades.iter().map(trade).collect::<Result<_>>()?;
    result.sort_by_key(|trade| (trade.sell, trade.buy));
    Ok(result)
}

/// Compares the fills that the clearing lists with those that its trades amount to.
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
fn with_symbols(violation: &clearing::Violation, file: &OfferFile) -> String {
    use clearing::Violation;
    let name = |asset: &AssetId| &file.symbols[asset.0 as usize];
    match violation {
        Violation::Sold { sell, buy, claimed, executed } => {
            let (sell, buy) = (name(sell), name(buy));
            format!("trade {sell}/{buy} sells {claimed} units but its offers execute {executed} at this rate")
        }
        Violation::Conservation { asset, sold, paid } => {
            format!("asset {} is not conserved: {sold} units sold, {paid} units paid out", name(asset))
        }
        Violation::NotFull { sell, buy, index, limit } => {
            let position = file.offers.book().position(*sell, *buy).expect("the pair has offers");
            let row = file.offers.rows(position)[*index] + 1;
            let (sell, buy) = (name(sell), name(buy));
            format!("row {row} ({sell}/{buy}, limit {limit}) is below (1-mu) of the rate but not filled in full")
        }
        Violation::TradeOrder { sell, buy } => {
            format!("trade {}/{} is repeated or sells nothing", name(sell), name(buy))
        }
        Violation::NoOffers { sell, buy } => format!("trade {}/{} has no offers in the file", name(sell), name(buy)),
        other => other.to_string(),
    }
}
