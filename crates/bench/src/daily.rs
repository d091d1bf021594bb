//! The daily batches of SPEEDEX §6.2: offers drawn from the prices and volumes of real crypto assets.
//!
//! On each day an offer sells asset A with probability proportional to A's volume on that day, and buys B with
//! probability proportional to B's, B ≠ A. Its limit lies near that day's rate, up to a `spread` above or below it,
//! and it is worth 100 to 10,000 dollars. The paper does not give the sizes of its offers; the range of two decades
//! is our choice.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ::clearing::Offer;
use kernel::Dice;
use primitives::{AssetId, Price};

/// The prices and volumes of one day.
#[derive(Clone, Debug, PartialEq)]
pub struct Day {
    /// As in the file, `2021-12-08`.
    pub date: String,
    /// Dollars per whole asset. An asset without a price yet has its first one; one that misses days has its last
    /// one.
    pub prices: Vec<f64>,
    /// Dollars traded; 0 where the file has no row.
    pub volumes: Vec<f64>,
}

/// Daily prices and volumes of some assets.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Asset symbols in upper case, sorted; an asset's number is its position.
    pub symbols: Vec<String>,
    /// Decimals of each asset, chosen so that 100 dollars are at least 10^6 units on every day.
    pub decimals: Vec<u32>,
    /// The days, oldest first.
    pub days: Vec<Day>,
}

/// The reason why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// A file or folder cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The folder holds no `SYMBOL-usd-max.csv`.
    #[error("{}: no file named SYMBOL-usd-max.csv: give the folder of daily prices", .0.display())]
    Empty(PathBuf),
    /// A row is not `date,price,market_cap,volume`.
    #[error("{}: line {line}, column {column} ({name}): {text:?} is not {wanted}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
        /// Name of the column.
        name: &'static str,
        /// The text in the file.
        text: String,
        /// The expected form.
        wanted: &'static str,
    },
}

/// Price and volume by date.
type Rows = BTreeMap<String, (f64, f64)>;

/// Reads the last `count` days of every `SYMBOL-usd-max.csv` in `folder`.
///
/// # Errors
/// [`HistoryError`].
pub fn history(folder: &Path, count: usize) -> Result<History, HistoryError> {
    let of_io = |error| HistoryError::Io { path: folder.into(), error };
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(of_io)? {
        let path = entry.map_err(of_io)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix("-usd-max.csv"));
        if let Some(name) = name {
            files.insert(name.to_ascii_uppercase(), rows(&path)?);
        }
    }
    if files.is_empty() {
        return Err(HistoryError::Empty(folder.into()));
    }
    let (symbols, rows): (Vec<String>, Vec<Rows>) = files.into_iter().unzip();
    Ok(joined(symbols, &rows, count))
}

fn rows(path: &Path) -> Result<Rows, HistoryError> {
    let text = fs::read_to_string(path).map_err(|error| HistoryError::Io { path: path.into(), error })?;
    parsed(&text, path)
}

fn parsed(text: &str, path: &Path) -> Result<Rows, HistoryError> {
    const NAMES: [&str; 4] = ["snapped_at", "price", "market_cap", "total_volume"];
    let mut result = Rows::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let bad = |column: usize, wanted| HistoryError::Field {
            path: path.into(),
            line: index + 1,
            column: column + 1,
            name: NAMES[column],
            text: fields.get(column).copied().unwrap_or_default().into(),
            wanted,
        };
        let date = fields[0].get(..10).ok_or_else(|| bad(0, "a date such as 2021-12-08"))?;
        // Some snapshots lack a figure: a missing price counts as a missing row, and a missing volume as zero.
        let number = |column: usize| match fields.get(column) {
            None => Err(bad(column, "a number")),
            Some(&"") => Ok(0.0),
            Some(text) => {
                text.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0).ok_or_else(|| bad(column, "a number"))
            }
        };
        let (price, volume) = (number(1)?, number(3)?);
        if price > 0.0 {
            result.insert(date.into(), (price, volume));
        }
    }
    Ok(result)
}

/// Aligns the rows of all assets on one calendar.
fn joined(symbols: Vec<String>, rows: &[Rows], count: usize) -> History {
    let mut dates: Vec<&String> = rows.iter().flat_map(|rows| rows.keys()).collect();
    dates.sort_unstable();
    dates.dedup();
    let dates = &dates[dates.len().saturating_sub(count)..];
    let day = |date: &&String| {
        let price = |rows: &Rows| {
            let last = rows.range::<String, _>(..=*date).next_back();
            last.or(rows.iter().next()).map_or(0.0, |(_, row)| row.0)
        };
        let volume = |rows: &Rows| rows.get(*date).map_or(0.0, |row| row.1);
        Day {
            date: (*date).clone(),
            prices: rows.iter().map(price).collect(),
            volumes: rows.iter().map(volume).collect(),
        }
    };
    let days: Vec<Day> = dates.iter().map(day).collect();
    let decimals = (0..symbols.len()).map(|asset| decimals(days.iter().map(|day| day.prices[asset]))).collect();
    History { symbols, decimals, days }
}

/// The fewest decimals with which 100 dollars are 10^6 units at every one of `prices`.
fn decimals(prices: impl Iterator<Item = f64>) -> u32 {
    let dearest = prices.fold(0.0, f64::max);
    (0..18u32).find(|decimals| 100.0 / dearest * power_of_ten(*decimals) >= 1e6).unwrap_or(18)
}

/// It is exact for up to 22.
fn power_of_ten(power: u32) -> f64 {
    (0..power).fold(1.0, |product, _| product * 10.0)
}

impl History {
    /// Dollars per unit of `asset` on `day`.
    pub fn unit_price(&self, day: usize, asset: usize) -> f64 {
        self.days[day].prices[asset] / power_of_ten(self.decimals[asset])
    }

    /// `count` offers of day number `day`, with limits up to `spread` (0.02 is 2 %) from the day's rates. A pure
    /// function of the rows and the seed.
    pub fn offers(&self, day: usize, count: usize, spread: f64, seed: u64) -> Vec<Offer> {
        let mut random = Dice::new(seed ^ (day as u64) << 32);
        let volumes = &self.days[day].volumes;
        let mut next = || {
            let sell = random.weighted(volumes);
            let buy = loop {
                let asset = random.weighted(volumes);
                if asset != sell {
                    break asset;
                }
            };
            let (own, other) = (self.unit_price(day, sell), self.unit_price(day, buy));
            let dollars = random.between(100.0, 10_000.0);
            let limit = own / other * (1.0 + random.between(-spread, spread));
            Offer {
                sell: AssetId(sell as u32),
                buy: AssetId(buy as u32),
                amount: ((dollars / own) as u64).max(1),
                limit: Price::from_f64(limit).expect("rates of real assets are in range"),
            }
        };
        (0..count).map(|_| next()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> History {
        let file = |text| parsed(text, Path::new("x.csv")).expect("rows");
        let a = file(
            "snapped_at,price,market_cap,total_volume\n2021-12-01 00:00:00 UTC,2,,5\n2021-12-03 00:00:00 UTC,3,1,7\n",
        );
        let b = file("head\n2021-12-02 00:00:00 UTC,50000.5,1,100\n2021-12-03 00:00:00 UTC,,,\n");
        joined(vec!["A".into(), "B".into()], &[a, b], 2)
    }

    #[test]
    fn missing_days_carry_the_last_price() {
        let history = example();
        let dates: Vec<_> = history.days.iter().map(|day| day.date.as_str()).collect();
        assert_eq!(dates, ["2021-12-02", "2021-12-03"]);
        assert_eq!(history.days[0].prices, [2.0, 50000.5]);
        assert_eq!(history.days[0].volumes, [0.0, 100.0]);
        assert_eq!(history.days[1].prices, [3.0, 50000.5]);
        assert_eq!(history.days[1].volumes, [7.0, 0.0]);
        assert_eq!(history.decimals, [5, 9]);
    }

    #[test]
    fn bad_rows_are_named() {
        let error = parsed("head\n2021-12-01 00:00:00 UTC,abc,1,1\n", Path::new("x.csv")).expect_err("no number");
        assert_eq!(error.to_string(), "x.csv: line 2, column 2 (price): \"abc\" is not a number");
        let error = parsed("head\n2021-12-01 00:00:00 UTC,1\n", Path::new("x.csv")).expect_err("too short");
        assert_eq!(error.to_string(), "x.csv: line 2, column 4 (total_volume): \"\" is not a number");
    }

    #[test]
    fn offers_are_near_the_rate_and_of_some_digits() {
        let mut history = example();
        history.days[1].volumes = vec![1.0, 2.0];
        let offers = history.offers(1, 100, 0.02, 7);
        assert_eq!(offers, history.offers(1, 100, 0.02, 7));
        for offer in offers {
            let rate = history.unit_price(1, offer.sell.0 as usize) / history.unit_price(1, offer.buy.0 as usize);
            assert!((offer.limit.to_f64() / rate - 1.0).abs() <= 0.02 + 1e-12);
            assert!(offer.amount >= 1_000_000);
        }
    }
}
