//! The input of `walras clear`: offers, pools and buy orders from CSV or Parquet files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use clearing::{Book, ExactOrder, Offer, Pool, SortedOffers};
use primitives::{Amount, AssetId, Fraction, MAX_ISSUED, Price, plain_decimal};

use crate::files::rows::{Problem, RowError, read};

const OFFERS: [&str; 4] = ["sell", "buy", "amount", "min_price"];
const POOLS: [&str; 5] = ["a", "b", "reserve_a", "reserve_b", "fee"];
const BUYS: [&str; 4] = ["buy", "sell", "bought", "most"];

/// The files of a batch.
#[derive(Debug, Args)]
pub struct BatchFiles {
    /// CSV or .parquet file with the columns sell,buy,amount,min_price; - reads CSV on standard input
    #[arg(long, value_name = "FILE")]
    pub offers: PathBuf,
    /// CSV or .parquet file of constant-product pools, columns a,b,reserve_a,reserve_b,fee
    #[arg(long, value_name = "FILE")]
    pub pools: Option<PathBuf>,
    /// CSV or .parquet file of orders for exact amounts, columns buy,sell,bought,most
    #[arg(long, value_name = "FILE")]
    pub buys: Option<PathBuf>,
}

/// A batch, its offers sorted for clearing. Equal limits keep the order of their rows.
pub struct BatchInput {
    /// Asset symbols by asset id, sorted.
    pub symbols: Vec<String>,
    /// The offers; row numbers, counted from 0, are their positions in the file.
    pub offers: SortedOffers,
    /// The pools, by their rows.
    pub pools: Vec<Pool>,
    /// The orders for exact amounts, by their rows.
    pub buys: Vec<ExactOrder>,
}

impl BatchInput {
    /// The book of this batch.
    pub fn book(&self) -> Book<'_> {
        Book { pools: self.pools.clone(), exacts: self.buys.clone(), ..self.offers.book() }
    }

    /// The symbol of an asset.
    pub fn symbol(&self, asset: AssetId) -> String {
        self.symbols[asset.0 as usize].clone()
    }

    /// The id of an asset, by its symbol.
    pub fn asset(&self, symbol: &str) -> Option<AssetId> {
        self.symbols.binary_search_by(|known| known.as_str().cmp(symbol)).ok().map(|id| AssetId(id as u32))
    }
}

/// Reads a batch from its files.
///
/// # Errors
/// The first [`RowError`].
pub fn read_batch(files: &BatchFiles) -> Result<BatchInput, RowError> {
    let mut totals = Totals::new();
    let offers = read(&files.offers, &OFFERS, |fields| offer(fields, &mut totals))?;
    let pools = files.pools.as_ref().map(|path| read(path, &POOLS, |fields| pool(fields, &mut totals)));
    let pools = pools.transpose()?.unwrap_or_default();
    let buys = files.buys.as_ref().map(|path| read(path, &BUYS, |fields| buy_order(fields, &mut totals)));
    Ok(numbered(offers, pools, buys.transpose()?.unwrap_or_default()))
}

/// A row before its two assets have ids.
struct Row<T> {
    assets: [String; 2],
    of: T,
}

/// The amounts read so far of each asset, by symbol.
type Totals = BTreeMap<String, Amount>;

/// A row, or the problem with it.
type Read<T> = Result<Row<T>, Problem>;

/// The amount and the limit price of an offer.
fn offer(fields: &[&str], totals: &mut Totals) -> Read<(Amount, Price)> {
    let assets = two_assets(fields, |asset| format!("{asset} is offered for itself: name another asset to buy"))?;
    let amount = amount(2, fields, "amount")?;
    add(totals, &assets[0], amount).map_err(|e| (2, e))?;
    // A limit of more digits than a price holds is rounded up: never worse for the trader.
    let limit = Price::parse_rounding_up(&plain_decimal(fields[3])).map_err(|error| (3, error.to_string()))?;
    Ok(Row { assets, of: (amount, limit) })
}

/// The reserves and the fee of a pool.
fn pool(fields: &[&str], totals: &mut Totals) -> Read<([Amount; 2], Fraction)> {
    let assets = two_assets(fields, |asset| format!("the pool holds {asset} twice: name two assets"))?;
    let reserves = [amount(2, fields, "reserve_a")?, amount(3, fields, "reserve_b")?];
    for side in 0..2 {
        add(totals, &assets[side], reserves[side]).map_err(|e| (2 + side, e))?;
    }
    let fee = Fraction::from_str(&plain_decimal(fields[4])).map_err(|error| (4, error.to_string()))?;
    Ok(Row { assets, of: (reserves, fee) })
}

/// The units bought and the maximum units paid of an order for an exact amount.
fn buy_order(fields: &[&str], totals: &mut Totals) -> Read<[Amount; 2]> {
    let assets = two_assets(fields, |asset| format!("{asset} is bought with itself: name another asset to pay with"))?;
    let (bought, most) = (amount(2, fields, "bought")?, amount(3, fields, "most")?);
    add(totals, &assets[1], most).map_err(|e| (3, e))?;
    Ok(Row { assets, of: [bought, most] })
}

/// The first two columns, which must be different symbols.
fn two_assets(fields: &[&str], same: impl Fn(&str) -> String) -> Result<[String; 2], Problem> {
    if let Some(at) = fields[..2].iter().position(|symbol| symbol.is_empty()) {
        return Err((at, "an asset symbol is missing".into()));
    }
    if fields[0] == fields[1] { Err((1, same(fields[1]))) } else { Ok([fields[0].into(), fields[1].into()]) }
}

/// From here on, double precision has no number for some whole ones: 2^53.
pub const DOUBLE_EXACT: Amount = 1 << 53;

fn amount(at: usize, fields: &[&str], name: &str) -> Result<Amount, Problem> {
    let plain = plain_decimal(fields[at]);
    // Data frames write whole numbers with a point.
    let text =
        plain.split_once('.').filter(|(_, rest)| rest.bytes().all(|b| b == b'0')).map_or(&*plain, |(whole, _)| whole);
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_real = fields[at].contains(['.', 'e', 'E']);
    match text.parse() {
        Ok(amount) if digits && is_real && amount >= DOUBLE_EXACT => {
            let why = "is written in floating point, which has no number for some whole ones from 2^53 on, so it may be \
                       another: cast the column to BIGINT or text where it is computed";
            Err((at, format!("{name} {} {why}", fields[at])))
        }
        Ok(amount) if digits && (1..=MAX_ISSUED).contains(&amount) => Ok(amount),
        _ if digits => Err((at, format!("{name} {text} is out of range: write 1 to {MAX_ISSUED}"))),
        _ => Err((at, format!("{name} {:?} is not a whole number of units such as 1500", fields[at]))),
    }
}

/// Adds `amount` to the total read of an asset.
fn add(totals: &mut Totals, asset: &str, amount: Amount) -> Result<(), String> {
    let total = totals.entry(asset.to_owned()).or_default();
    let more = total.checked_add(amount).filter(|total| *total <= MAX_ISSUED);
    *total = more.ok_or_else(|| format!("more than {MAX_ISSUED} units of {asset} are offered in all"))?;
    Ok(())
}

/// Numbers the assets in the order of their symbols.
fn numbered(
    offers: Vec<Row<(Amount, Price)>>,
    pools: Vec<Row<([Amount; 2], Fraction)>>,
    buys: Vec<Row<[Amount; 2]>>,
) -> BatchInput {
    let assets = offers.iter().map(|row| &row.assets).chain(pools.iter().map(|row| &row.assets));
    let assets = assets.chain(buys.iter().map(|row| &row.assets));
    let mut symbols: Vec<String> = assets.flatten().cloned().collect();
    symbols.sort_unstable();
    symbols.dedup();
    let id = |symbol: &String| AssetId(symbols.binary_search(symbol).expect("every symbol is listed") as u32);
    let offer = |Row { assets: [sell, buy], of: (amount, limit) }: &Row<(Amount, Price)>| Offer {
        sell: id(sell),
        buy: id(buy),
        amount: *amount,
        limit: *limit,
    };
    let pool = |Row { assets: [a, b], of: ([reserve_a, reserve_b], fee) }: &Row<([Amount; 2], Fraction)>| Pool {
        a: id(a),
        b: id(b),
        reserve_a: *reserve_a,
        reserve_b: *reserve_b,
        fee: *fee,
    };
    let order = |Row { assets: [buy, sell], of: [bought, most] }: &Row<[Amount; 2]>| {
        ExactOrder::buy(id(buy), *bought, id(sell), *most)
    };
    let listed: Vec<Offer> = offers.iter().map(offer).collect();
    let (pools, buys) = (pools.iter().map(pool).collect(), buys.iter().map(order).collect());
    BatchInput { offers: SortedOffers::new(symbols.len() as u32, &listed), pools, buys, symbols }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::rows::read_csv;
    use std::path::Path;

    fn read_text(text: &str) -> Result<BatchInput, String> {
        let mut totals = Totals::new();
        let rows = read_csv(text.as_bytes(), Path::new("F.csv"), &OFFERS, |fields| offer(fields, &mut totals));
        Ok(numbered(rows.map_err(|error| error.to_string())?, Vec::new(), Vec::new()))
    }

    /// Other tests of this program allocate at the same time.
    #[test]
    fn files_of_strangers() {
        let seeds =
            ["sell,buy,amount,min_price\nA,B,10,0.5\nB,A,7,1.00000000000000001\n", "note,min_price,sell,buy,amount\n"];
        let words = [",", "\n", "\"", "min_price", "9223372036854775807", "1e400", "-0", "NaN", "\u{feff}", "\r"];
        let seeds = seeds.map(|text| text.as_bytes().to_vec()).to_vec();
        fuzz::Target { words: &words, room: None, ..fuzz::Target::new("csv", seeds) }.run(|bytes| {
            let mut totals = Totals::new();
            let rows = read_csv(bytes, Path::new("F.csv"), &OFFERS, |fields| offer(fields, &mut totals));
            let rows = rows.map_err(|error| error.to_string())?;
            let count = rows.len();
            let read = numbered(rows, Vec::new(), Vec::new());
            assert_eq!(read.offers.book().pairs.iter().map(|pair| pair.offers().count()).sum::<usize>(), count);
            Ok(format!("{} assets", read.symbols.len()))
        });
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
            ("A,B,1,1e5x\n", "line 2, column 4 (min_price): price \"1e5x\" is not a plain decimal number such as 1.25"),
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
