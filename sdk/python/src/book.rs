//! Offers, sorted once, to be cleared, verified and explained.

use std::str::FromStr;
use std::time::Instant;

use clearing::{ExactOrder, Groups, InputError, Offer, Params, Pool, Solver, SortedOffers, explain, verify};
use primitives::{AssetId, Fraction, MAX_ISSUED, Price, plain_decimal};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::outcome::{Outcome, ProofRow};

/// Limit prices: 64-bit floating point, little-endian, or decimal numbers as text.
#[derive(FromPyObject, IntoPyObject)]
enum Limits {
    Floats(Vec<u8>),
    Texts(Vec<String>),
}

/// A batch of offers among assets known by their symbols.
#[pyclass(frozen, module = "walras._walras")]
pub struct Book {
    pub(crate) symbols: Vec<String>,
    pub(crate) sorted: SortedOffers,
    pools: Vec<Pool>,
    buys: Vec<ExactOrder>,
    /// For each offer as given: its pair's position in the book, and its position on the pair.
    places: Vec<(u32, u32)>,
}

/// What is wrong with a column: the row, counted from 1, the column's name, and the problem.
fn refused(row: usize, column: &str, problem: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("row {}, column {column}: {problem}", row + 1))
}

fn codes(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("4 bytes")))
}

fn amounts(bytes: &[u8]) -> impl ExactSizeIterator<Item = i64> {
    bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().expect("8 bytes")))
}

#[pymethods]
impl Book {
    /// A book of offers; of pools as (a, b, units of a, units of b, fee); and of buy orders as (asset bought, asset
    /// paid, units bought, most units paid).
    #[new]
    fn new(
        py: Python<'_>,
        symbols: Vec<String>,
        offers: Columns,
        pools: Vec<PoolRow>,
        buys: Vec<BuyRow>,
    ) -> PyResult<Book> {
        py.detach(|| {
            let (sell, buy, amount, limits) = offers;
            let limits = prices(&limits)?;
            let pools: Vec<Pool> = pools.iter().enumerate().map(pool_of).collect::<PyResult<_>>()?;
            let buys: Vec<ExactOrder> = buys.into_iter().map(buy_order).collect();
            let columns = codes(&sell).zip(codes(&buy)).zip(amounts(&amount)).zip(limits);
            let offers: Vec<Offer> =
                columns.enumerate().map(|(row, fields)| offer(row, fields, &symbols)).collect::<PyResult<_>>()?;
            let sorted = SortedOffers::new(symbols.len() as u32, &offers);
            let mut places = vec![(0, 0); offers.len()];
            let book = clearing::Book { pools: pools.clone(), exacts: buys.clone(), ..sorted.book() };
            book.check().map_err(|error| PyValueError::new_err(with_symbols(&error, &symbols)))?;
            for pair in 0..book.pairs.len() {
                let rows = sorted.rows(pair).iter().enumerate();
                rows.for_each(|(index, row)| places[*row as usize] = (pair as u32, index as u32));
            }
            drop(book);
            Ok(Book { symbols, sorted, pools, buys, places })
        })
    }

    /// The arguments that make this book again, for copies and pickles.
    fn __getnewargs__(&self, py: Python<'_>) -> (Vec<String>, Columns, Vec<PoolRow>, Vec<BuyRow>) {
        py.detach(|| {
            let book = self.sorted.book();
            let mut offers = vec![(AssetId(0), AssetId(0), 0, Price::ONE); self.places.len()];
            for (position, pair) in book.pairs.iter().enumerate() {
                for (row, (limit, amount)) in self.sorted.rows(position).iter().zip(pair.offers()) {
                    offers[*row as usize] = (pair.sell, pair.buy, amount, limit);
                }
            }
            let columns = (
                offers.iter().flat_map(|(sell, ..)| sell.0.to_le_bytes()).collect(),
                offers.iter().flat_map(|(_, buy, ..)| buy.0.to_le_bytes()).collect(),
                offers.iter().flat_map(|(_, _, amount, _)| amount.to_le_bytes()).collect(),
                Limits::Texts(offers.iter().map(|(.., limit)| limit.to_string()).collect()),
            );
            let pools = self.pools.iter().map(|p| (p.a.0, p.b.0, p.reserve_a, p.reserve_b, p.fee.to_string()));
            let buys = self.buys.iter().map(|order| (order.buy.0, order.sell.0, order.units, order.bound));
            (self.symbols.clone(), columns, pools.collect(), buys.collect())
        })
    }

    /// Number of offers.
    fn __len__(&self) -> usize {
        self.places.len()
    }

    /// Asset symbols, sorted.
    #[getter]
    fn symbols(&self) -> Vec<String> {
        self.symbols.clone()
    }

    /// For each asset, whether it has a price: whether a chain of offers leads back to it.
    #[getter]
    fn priced(&self) -> Vec<bool> {
        Groups::of_book(&self.book()).priced()
    }

    /// Clears the offers.
    #[pyo3(signature = (epsilon, mu, solver, last, threads))]
    fn clear(
        &self,
        py: Python<'_>,
        epsilon: &str,
        mu: &str,
        solver: &str,
        last: Option<Vec<String>>,
        threads: Option<usize>,
    ) -> PyResult<Outcome> {
        let params = Params { solver: solver_named(solver)?, ..params(epsilon, mu)? };
        params.check().map_err(|error| PyValueError::new_err(format!("mu, epsilon: {error}")))?;
        let last: Option<Vec<Price>> = last.map(|last| valuations(&last)).transpose()?;
        py.detach(|| {
            let begun = Instant::now();
            let solve = || clearing::clear(&self.book(), &params, last.as_deref());
            let clearing = match pool(threads).map_err(|error| PyValueError::new_err(error.to_string()))? {
                Some(pool) => pool.install(solve),
                None => solve(),
            };
            let clearing = clearing.map_err(|error| PyValueError::new_err(with_symbols(&error, &self.symbols)))?;
            let seconds = Some(begun.elapsed().as_secs_f64());
            Ok(Outcome { params, priced: Groups::of_book(&self.book()).priced(), clearing, seconds })
        })
    }

    /// A clearing that somebody claims with these shares ε and μ, to be verified.
    fn claimed(
        &self,
        shares: (String, String),
        prices: Vec<String>,
        trades: Vec<(u32, u32, u64)>,
        pools: Vec<(u32, u32, u32, u64, u64)>,
        buys: Vec<(u32, u64)>,
        full: (bool, Vec<ProofRow>),
    ) -> PyResult<Outcome> {
        let valuations = valuations(&prices)?;
        let short = if full.0 { Vec::new() } else { Groups::of_book(&self.book()).lowest() };
        Ok(Outcome::claimed(params(&shares.0, &shares.1)?, valuations, trades, pools, buys, (short, full.1)))
    }

    /// Checks a clearing. Returns the number of offers that trade and the units of each asset that the auctioneer
    /// keeps, or what is wrong.
    fn verify(&self, py: Python<'_>, outcome: &Outcome) -> Result<(usize, Vec<u64>), PyErr> {
        let checked = py.detach(|| verify(&self.book(), &outcome.params, &outcome.clearing));
        match checked {
            Ok(verified) => Ok((verified.executed, verified.surplus)),
            Err(violation) => Err(PyValueError::new_err(self.named(&violation))),
        }
    }

    /// The fills as columns of rows (from 1), units sold and units bought.
    fn fills(&self, py: Python<'_>, outcome: &Outcome) -> [Vec<u8>; 3] {
        py.detach(|| {
            let mut fills = outcome.fills(&self.sorted);
            fills.sort_unstable();
            let column = |of: fn(&(u64, u64, u64)) -> u64| fills.iter().flat_map(|f| of(f).to_le_bytes()).collect();
            [column(|f| f.0), column(|f| f.1), column(|f| f.2)]
        })
    }

    /// Why the offer of `row`, counted from 1, does or does not trade.
    fn explain<'py>(&self, py: Python<'py>, outcome: &Outcome, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let rows = self.places.len();
        let outside = || PyIndexError::new_err(format!("row {row} is outside 1..{rows}: rows are counted from 1"));
        let (pair, index) = *row.checked_sub(1).and_then(|row| self.places.get(row)).ok_or_else(outside)?;
        let Outcome { params, clearing, .. } = outcome;
        let said = py.detach(|| explain(&self.book(), params, clearing, pair as usize, index as usize));
        let said = said.ok_or_else(|| PyValueError::new_err("the clearing has not one valuation per asset"))?;
        let fields = PyDict::new(py);
        let name = |asset: AssetId| self.symbols[asset.0 as usize].clone();
        fields.set_item("row", row)?;
        fields.set_item("sell", name(said.sell))?;
        fields.set_item("buy", name(said.buy))?;
        fields.set_item("amount", said.amount)?;
        fields.set_item("min_price", said.limit.to_string())?;
        fields.set_item("rate", said.rate)?;
        fields.set_item("offers_ahead", said.offers_ahead)?;
        fields.set_item("units_ahead", said.units_ahead)?;
        fields.set_item("pair_sold", said.pair_sold)?;
        fields.set_item("sold", said.sold)?;
        fields.set_item("bought", said.bought)?;
        fields.set_item("must_fill", said.must_fill)?;
        fields.set_item("why", said.why.name())?;
        fields.set_item("missing", said.why.missing())?;
        fields.set_item("text", said.in_words(name))?;
        Ok(fields)
    }
}

impl Book {
    /// Everything that takes part in the batch.
    fn book(&self) -> clearing::Book<'_> {
        clearing::Book { pools: self.pools.clone(), exacts: self.buys.clone(), ..self.sorted.book() }
    }

    /// The violation with symbols for asset numbers and rows for offers.
    fn named(&self, violation: &clearing::Violation) -> String {
        let book = self.sorted.book();
        let row = |sell, buy, index: usize| {
            let position = book.position(sell, buy).expect("the pair has offers");
            format!("row {}", self.sorted.rows(position)[index] + 1)
        };
        violation.in_words(|asset| self.symbols[asset.0 as usize].clone(), row)
    }
}

fn with_symbols(error: &InputError, symbols: &[String]) -> String {
    match error {
        InputError::TooMuch(asset) => format!(
            "column amount: more than {MAX_ISSUED} units of {} are offered in all, pools and buy orders included: count it \
             in larger units",
            symbols[asset.0 as usize]
        ),
        InputError::Pool(index) => {
            format!("pools, row {}: give two different assets, at least one unit of each, and a fee below 1", index + 1)
        }
        InputError::ExactOrder(index) => {
            format!("buys, row {}: give two different assets, and at least one unit to buy and to spend", index + 1)
        }
        InputError::Last { given, assets } => format!("last_prices: {given} prices for {assets} assets"),
        other => other.to_string(),
    }
}

/// Columns of offers: 32-bit positions of the assets sold and bought, 64-bit amounts, and limit prices.
type Columns = (Vec<u8>, Vec<u8>, Vec<u8>, Limits);

/// A buy order as Python gives it.
type BuyRow = (u32, u32, u64, u64);

/// A pool as Python gives it.
type PoolRow = (u32, u32, u64, u64, String);

fn pool_of((row, pool): (usize, &PoolRow)) -> PyResult<Pool> {
    let (a, b, reserve_a, reserve_b, fee) = pool;
    let fee = Fraction::from_str(fee).map_err(|error| refused(row, "pools.fee", error))?;
    Ok(Pool { a: AssetId(*a), b: AssetId(*b), reserve_a: *reserve_a, reserve_b: *reserve_b, fee })
}

fn buy_order((buy, sell, bought, most): BuyRow) -> ExactOrder {
    ExactOrder::buy(AssetId(buy), bought, AssetId(sell), most)
}

fn offer(
    row: usize,
    (((sell, buy), amount), limit): (((u32, u32), i64), Price),
    symbols: &[String],
) -> PyResult<Offer> {
    if sell == buy {
        let symbol = &symbols[buy as usize];
        return Err(refused(row, "buy", format!("{symbol} is offered for itself: name another asset to buy")));
    }
    if amount < 1 {
        return Err(refused(row, "amount", format!("{amount} is out of range: give 1 to {MAX_ISSUED} whole units")));
    }
    Ok(Offer { sell: AssetId(sell), buy: AssetId(buy), amount: amount as u64, limit })
}

/// Limit prices; one of more digits than a price holds is rounded up, never worse for the trader.
fn prices(limits: &Limits) -> PyResult<Vec<Price>> {
    let read = |(row, text): (usize, &str)| {
        Price::parse_rounding_up(&plain_decimal(text)).map_err(|error| refused(row, "min_price", error))
    };
    match limits {
        Limits::Texts(texts) => texts.iter().map(String::as_str).enumerate().map(read).collect(),
        Limits::Floats(bytes) => {
            let floats = bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes")));
            // The shortest decimal that reads back as the same double is what was meant.
            floats.enumerate().map(|(row, x)| read((row, &x.to_string()))).collect()
        }
    }
}

fn valuations(prices: &[String]) -> PyResult<Vec<Price>> {
    let price =
        |text: &String| Price::from_str(text).map_err(|error| PyValueError::new_err(format!("prices: {error}")));
    prices.iter().map(price).collect()
}

fn params(epsilon: &str, mu: &str) -> PyResult<Params> {
    let fraction = |name: &str, text: &str| {
        Fraction::from_str(text).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
    };
    Ok(Params { epsilon: fraction("epsilon", epsilon)?, mu: fraction("mu", mu)?, ..Params::default() })
}

fn solver_named(name: &str) -> PyResult<Solver> {
    let all = [Solver::Newton, Solver::Tatonnement];
    let unknown = || PyValueError::new_err(format!("solver: {name:?} is neither 'newton' nor 'tatonnement'"));
    all.into_iter().find(|solver| solver.name() == name).ok_or_else(unknown)
}

/// A pool of as many threads as asked for, at most one for each core; `None` means the one that is there already.
fn pool(threads: Option<usize>) -> Result<Option<ThreadPool>, ThreadPoolBuildError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    threads.map(|threads| ThreadPoolBuilder::new().num_threads(threads.clamp(1, cores)).build()).transpose()
}
