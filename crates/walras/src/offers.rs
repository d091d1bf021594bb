//! Offers from a CSV or Parquet file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clearing::{Offer, SortedOffers};
use csv::{Position, ReaderBuilder};
use primitives::{Amount, AssetId, MAX_ISSUED, Price};

use crate::offers_parquet;

/// The columns of an offer file, in any order; others are left alone.
pub const COLUMNS: [&str; 4] = ["sell", "buy", "amount", "min_price"];

/// The offers of one file, sorted for clearing. Equal limits keep the order of their rows.
pub struct OfferFile {
    /// Asset symbols by asset id, sorted.
    pub symbols: Vec<String>,
    /// The offers; row numbers, counted from 0, are their positions in the file.
    pub offers: SortedOffers,
}

/// Why a file holds no offers that can be cleared.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file has no such column.
    #[error("{}: line 1: no column {column:?}: the first line must name the columns {}", path.display(), COLUMNS.join(","))]
    Column {
        /// The file.
        path: PathBuf,
        /// The column that is missing.
        column: &'static str,
    },
    /// A row is not an offer.
    #[error("{}: line {line}, column {column} ({}): {problem}", path.display(), COLUMNS[*field])]
    Field {
        /// The file.
        path: PathBuf,
        /// Line of the file, counted from 1.
        line: u64,
        /// Column of the file, counted from 1.
        column: usize,
        /// Position in [`COLUMNS`].
        field: usize,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A row of a Parquet file is not an offer.
    #[error("{}: row {row}, column {}: {problem}", path.display(), COLUMNS[*field])]
    Cell {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// Position in [`COLUMNS`].
        field: usize,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A Parquet file lacks a column.
    #[error("{}: no column {column:?}: its columns must include {}", path.display(), COLUMNS.join(", "))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column that is missing.
        column: &'static str,
    },
    /// A file is no Parquet file, or not one that can be read.
    #[error("{}: {error}: give a Parquet file with Snappy compression or none", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        error: parquet::errors::ParquetError,
    },
    /// A row has too few fields, or the bytes are no UTF-8 text.
    #[error("{}: {error}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// What the parser said, with the line.
        error: csv::Error,
    },
}

/// Reads the offers in the file at `path`, Parquet if its name ends so and CSV if not, or CSV on standard input if it is
/// `-`.
///
/// # Errors
/// The first [`OfferError`].
pub fn read(path: &Path) -> Result<OfferFile, OfferError> {
    if path == Path::new("-") {
        return read_from(io::stdin().lock(), Path::new("standard input"));
    }
    let file = File::open(path).map_err(|error| OfferError::Io { path: path.into(), error })?;
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return offers_parquet::read(file, path);
    }
    read_from(file, path)
}

/// A row before its assets have numbers.
pub(crate) struct Row {
    sell: String,
    buy: String,
    amount: Amount,
    limit: Price,
}

/// Reads offers from `source`, which errors call `path`.
fn read_from(source: impl Read, path: &Path) -> Result<OfferFile, OfferError> {
    let of_csv = |error| OfferError::Csv { path: path.into(), error };
    let mut reader = ReaderBuilder::new().trim(csv::Trim::All).from_reader(source);
    let header = reader.headers().map_err(of_csv)?.clone();
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let found = header.iter().position(|name| name == column);
        *place = found.ok_or(OfferError::Column { path: path.into(), column })?;
    }
    let mut rows = Vec::new();
    let mut totals = Totals::new();
    for record in reader.records() {
        let record = record.map_err(of_csv)?;
        let row =
            row(places.map(|place| &record[place]), &mut totals).map_err(|(field, problem)| OfferError::Field {
                path: path.into(),
                line: record.position().map_or(0, Position::line),
                column: places[field] + 1,
                field,
                problem,
            })?;
        rows.push(row);
    }
    Ok(numbered(&rows))
}

/// The offers seen so far of each asset, by symbol.
pub(crate) type Totals = BTreeMap<String, Amount>;

/// One offer from the texts of its columns; `totals` sums what is offered of each asset. What is wrong comes with the
/// position of the column in [`COLUMNS`].
pub(crate) fn row(fields: [&str; 4], totals: &mut Totals) -> Result<Row, (usize, String)> {
    let field = |field: usize| fields[field];
    let (sell, buy) = (symbol(field(0)).map_err(|e| (0, e))?, symbol(field(1)).map_err(|e| (1, e))?);
    if sell == buy {
        return Err((1, format!("{buy} is offered for itself: name another asset to buy")));
    }
    let amount = amount(field(2)).map_err(|e| (2, e))?;
    let total = totals.entry(sell.clone()).or_default();
    let more = total.checked_add(amount).filter(|total| *total <= MAX_ISSUED);
    *total = more.ok_or_else(|| (2, format!("more than {MAX_ISSUED} units of {sell} are offered in all")))?;
    // A limit of more digits than a price holds is rounded up: never worse for the trader.
    let limit = Price::parse_rounding_up(field(3)).map_err(|error| (3, error.to_string()))?;
    Ok(Row { sell, buy, amount, limit })
}

fn symbol(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("an asset symbol is missing".into()) } else { Ok(text.into()) }
}

fn amount(text: &str) -> Result<Amount, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(amount) if digits && (1..=MAX_ISSUED).contains(&amount) => Ok(amount),
        _ if digits => Err(format!("amount {text} is out of range: write 1 to {MAX_ISSUED}")),
        _ => Err(format!("amount {text:?} is not a whole number of units such as 1500")),
    }
}

/// Numbers the assets in the order of their symbols.
pub(crate) fn numbered(rows: &[Row]) -> OfferFile {
    let mut symbols: Vec<String> = rows.iter().flat_map(|row| [row.sell.clone(), row.buy.clone()]).collect();
    symbols.sort_unstable();
    symbols.dedup();
    let id = |symbol: &String| AssetId(symbols.binary_search(symbol).expect("every symbol is listed") as u32);
    let offer = |row: &Row| Offer { sell: id(&row.sell), buy: id(&row.buy), amount: row.amount, limit: row.limit };
    let offers: Vec<Offer> = rows.iter().map(offer).collect();
    OfferFile { offers: SortedOffers::new(symbols.len() as u32, &offers), symbols }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<OfferFile, String> {
        read_from(text.as_bytes(), Path::new("F.csv")).map_err(|error| error.to_string())
    }

    fn problem(text: &str) -> String {
        read_text(text).err().expect("an error")
    }

    #[test]
    fn reads_columns_in_any_order() {
        let file = read_text("note,min_price,sell,buy,amount\nx,0.5, USD ,EUR,10\ny,1.00000000000000001,EUR,USD,7\n");
        let file = file.expect("two offers");
        assert_eq!(file.symbols, ["EUR", "USD"]);
        let book = file.offers.book();
        assert_eq!(book.pairs.len(), 2);
        assert_eq!(book.pairs[0].offers().next().map(|o| o.0.to_string()), Some("1.0000000000000001".into()));
        assert_eq!((book.pairs[1].offers().next().map_or(0, |o| o.1), file.offers.rows(1)[0]), (10, 0));
    }

    #[test]
    fn names_line_column_and_remedy() {
        let head = "sell,buy,amount,min_price\n";
        assert_eq!(
            problem("sell,buy,amount\n"),
            "F.csv: line 1: no column \"min_price\": the first line must name the columns sell,buy,amount,min_price"
        );
        let cases = [
            ("A,B,1,2\nA,B,1.5,2\n", "line 3, column 3 (amount): amount \"1.5\" is not a whole number"),
            ("A,B,0,2\n", "line 2, column 3 (amount): amount 0 is out of range: write 1 to 9223372036854775807"),
            ("A,B,99999999999999999999,2\n", "line 2, column 3 (amount): amount 99999999999999999999 is out of range"),
            ("A,B,1,1e5\n", "line 2, column 4 (min_price): price \"1e5\" is not a plain decimal number such as 1.25"),
            ("A,B,1,0\n", "line 2, column 4 (min_price): price 0 is out of range"),
            ("A,A,1,1\n", "line 2, column 2 (buy): A is offered for itself: name another asset to buy"),
            (",A,1,1\n", "line 2, column 1 (sell): an asset symbol is missing"),
            ("A,B,9223372036854775807,1\nA,C,1,1\n", "line 3, column 3 (amount): more than"),
        ];
        for (rows, text) in cases {
            let got = problem(&format!("{head}{rows}"));
            assert!(got.starts_with(&format!("F.csv: {text}")), "{got}");
        }
        assert!(problem(&format!("{head}A,B,1\n")).contains("line: 2"));
    }
}
