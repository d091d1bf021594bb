//! Markets as people look at them: an unordered pair with a price, a book by level, and the curves of its batch.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Batch, Ledger, Pair, PairOffers, Place};
use primitives::{Address, AssetId, Price};

use crate::candles::Candles;
use crate::json::{
    BookBody, CurvePoint, Curves, History, HistoryPoint, Level, Market, Markets, OfferBody, RestingOffer,
    RestingOffers, Symbols, price, rounded,
};
use crate::views::{BatchSummary, Views};

/// Curves are drawn within this factor of the batch price.
const CURVE_SPAN: f64 = 1.1;

/// A base asset and the asset that it is priced in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The asset that is priced.
    pub base: AssetId,
    /// The asset that it is priced in.
    pub quote: AssetId,
}

impl Sides {
    /// The market of an ordered pair: the asset with the higher number is priced in the other.
    pub fn of(pair: Pair) -> Sides {
        Sides { base: pair.sell.max(pair.buy), quote: pair.sell.min(pair.buy) }
    }

    fn supply(self) -> Pair {
        Pair { sell: self.base, buy: self.quote }
    }

    fn demand(self) -> Pair {
        Pair { sell: self.quote, buy: self.base }
    }
}

/// What the latest valuations say of a market with offers on both sides. It need not have traded at this price.
fn indicative(ledger: &Ledger, sides: Sides) -> Option<String> {
    let has = |pair| ledger.book().get(pair).is_some_and(|offers| offers.first().is_some());
    let both = has(sides.supply()) && has(sides.demand());
    let known = valuation(ledger, sides.base).zip(valuation(ledger, sides.quote));
    known.filter(|_| both).map(|(base, quote)| price(base, quote))
}

/// The price at which a market last traded, and when.
fn last_price(candles: &Candles, sides: Sides) -> (Option<String>, Option<u64>) {
    candles.last(sides).map(|(price, height)| (rounded(price), height)).unzip()
}

fn valuation(ledger: &Ledger, asset: AssetId) -> Option<Price> {
    ledger.assets()[asset.0 as usize].valuation
}

/// Base and quote units that changed hands in a batch.
pub fn volumes(batch: &Batch, sides: Sides) -> (u64, u64) {
    let trade = |pair| {
        let trades = &batch.trades;
        trades.binary_search_by_key(&pair, |trade| trade.pair).ok().map(|at| (trades[at].sold, trades[at].bought))
    };
    let (base_sold, quote_paid) = trade(sides.supply()).unwrap_or_default();
    let (quote_sold, base_paid) = trade(sides.demand()).unwrap_or_default();
    (base_sold.saturating_add(base_paid), quote_sold.saturating_add(quote_paid))
}

/// Every market that has offers or traded in the last batch.
pub fn markets(ledger: &Ledger, views: &Views, candles: &Candles, symbols: &Symbols) -> Markets {
    let last = views.batches().next_back();
    let traded = last.into_iter().flat_map(|batch| batch.batch.trades.iter().map(|trade| trade.pair));
    let pairs = ledger.book().iter().map(|(pair, _)| pair).chain(traded);
    let all: BTreeSet<(AssetId, AssetId)> = pairs.map(Sides::of).map(|sides| (sides.quote, sides.base)).collect();
    let markets = all.into_iter().map(|(quote, base)| {
        let sides = Sides { base, quote };
        let (sells, buys) = (ledger.book().get(sides.supply()), ledger.book().get(sides.demand()));
        let (base_volume, quote_volume) = last.map_or((0, 0), |batch| volumes(&batch.batch, sides));
        let (price, price_height) = last_price(candles, sides);
        Market {
            market: symbols.market(base, quote),
            base: symbols.get(base).into(),
            quote: symbols.get(quote).into(),
            price,
            price_height,
            indicative: indicative(ledger, sides),
            base_volume: base_volume.to_string(),
            quote_volume: quote_volume.to_string(),
            offers: sells.map_or(0, PairOffers::len) + buys.map_or(0, PairOffers::len),
            best_sell: sells.and_then(PairOffers::first).map(|offer| offer.place.limit.to_string()),
            best_buy: buys.and_then(PairOffers::first).map(|offer| rounded(1.0 / offer.place.limit.to_f64())),
        }
    });
    Markets { height: ledger.height(), markets: markets.collect() }
}

/// The resting offers of a market by price, at most `levels` a side.
pub fn book(ledger: &Ledger, candles: &Candles, symbols: &Symbols, sides: Sides, levels: usize) -> BookBody {
    let side = |pair, to_base: fn(f64, u64) -> f64, to_price: fn(Price) -> String| {
        let Some(offers) = ledger.book().get(pair) else { return Vec::new() };
        let mut result: Vec<(Price, u64, usize)> = Vec::new();
        for ledger::Offer { place, amount } in offers.iter() {
            let full = result.len() == levels;
            match result.last_mut() {
                Some((last, sum, count)) if *last == place.limit => (*sum, *count) = (*sum + amount, *count + 1),
                _ if full => break,
                _ => result.push((place.limit, amount, 1)),
            }
        }
        let level = |(limit, amount, offers): (Price, u64, usize)| Level {
            price: to_price(limit),
            amount: (to_base(limit.to_f64(), amount) as u64).to_string(),
            offers,
        };
        result.into_iter().map(level).collect()
    };
    let (price, price_height) = last_price(candles, sides);
    BookBody {
        height: ledger.height(),
        market: symbols.market(sides.base, sides.quote),
        price,
        price_height,
        indicative: indicative(ledger, sides),
        sells: side(sides.supply(), |_, amount| amount as f64, |limit| limit.to_string()),
        // Who sells the quote at l base per quote pays up to 1/l quote per base.
        buys: side(sides.demand(), |limit, amount| amount as f64 * limit, |limit| rounded(1.0 / limit.to_f64())),
    }
}

/// Offers of an ordered pair before the last batch traded, by limit.
fn before_batch(ledger: &Ledger, batch: &BatchSummary, pair: Pair) -> BTreeMap<Price, u64> {
    let none = PairOffers::default();
    let before = ledger.book().get(pair).unwrap_or(&none).before(batch.batch.fills_of(pair));
    let mut by_limit: BTreeMap<Price, u64> = BTreeMap::new();
    for offer in before.iter() {
        *by_limit.entry(offer.place.limit).or_default() += offer.amount;
    }
    by_limit
}

/// Supply and demand of a market in a batch, as it stood before it traded.
pub fn curves(ledger: &Ledger, batch: &BatchSummary, symbols: &Symbols, sides: Sides, points: usize) -> Curves {
    let at = |asset: AssetId| batch.batch.valuations.get(asset.0 as usize).map_or(1.0, |price| price.to_f64());
    let rate = at(sides.base) / at(sides.quote);
    let trades = |pair| {
        let found = batch.batch.trades.iter().find(|trade| trade.pair == pair);
        found.map_or((0, 0), |trade| (trade.sold, trade.bought))
    };
    Curves {
        height: batch.height,
        market: symbols.market(sides.base, sides.quote),
        price: rounded(rate),
        supply: thin(supply(ledger, batch, sides), rate, points),
        demand: thin(demand(ledger, batch, sides), rate, points),
        sold: trades(sides.supply()).0.to_string(),
        bought: trades(sides.demand()).1.to_string(),
    }
}

fn supply(ledger: &Ledger, batch: &BatchSummary, sides: Sides) -> Vec<(f64, f64)> {
    let mut sum = 0.0;
    let cumulate = |(limit, amount): (Price, u64)| {
        sum += amount as f64;
        (limit.to_f64(), sum)
    };
    before_batch(ledger, batch, sides.supply()).into_iter().map(cumulate).collect()
}

fn demand(ledger: &Ledger, batch: &BatchSummary, sides: Sides) -> Vec<(f64, f64)> {
    let mut sum = 0.0;
    let cumulate = |(limit, amount): (Price, u64)| {
        let highest = 1.0 / limit.to_f64();
        sum += amount as f64;
        (highest, sum / highest)
    };
    // The lowest limits pay the highest prices; rising prices are wanted.
    let mut points: Vec<_> = before_batch(ledger, batch, sides.demand()).into_iter().map(cumulate).collect();
    points.reverse();
    points
}

/// At most `points` of those near the rate, evenly chosen.
fn thin(curve: Vec<(f64, f64)>, rate: f64, points: usize) -> Vec<CurvePoint> {
    let near: Vec<_> = curve.into_iter().filter(|(x, _)| (rate / CURVE_SPAN..=rate * CURVE_SPAN).contains(x)).collect();
    let count = near.len().min(points.max(2));
    let pick = |i: usize| near[if count == 1 { 0 } else { i * (near.len() - 1) / (count - 1) }];
    let point = |(x, y): (f64, f64)| CurvePoint { price: rounded(x), amount: (y as u64).to_string() };
    (0..count).map(pick).map(point).collect()
}

/// The offers that sell base for quote with limits within `(from, to)`, at most `count`.
pub fn offers(
    ledger: &Ledger,
    symbols: &Symbols,
    sides: Sides,
    (from, to): (Option<Price>, Option<Price>),
    count: usize,
) -> RestingOffers {
    let pair = sides.supply();
    let first = Place { limit: from.unwrap_or(Price::MIN), account: Address([0; 20]), id: 0 };
    let last = Place { limit: to.unwrap_or(Price::MAX), account: Address([u8::MAX; 20]), id: u64::MAX };
    let resting = |offer: ledger::Offer| RestingOffer {
        account: offer.place.account.to_string(),
        offer: OfferBody {
            sell: symbols.get(pair.sell).into(),
            buy: symbols.get(pair.buy).into(),
            limit: offer.place.limit.to_string(),
            id: offer.place.id,
            amount: offer.amount.to_string(),
        },
    };
    let of_pair = ledger.book().get(pair);
    // An inverted range is an empty one.
    let range = of_pair.filter(|_| first <= last).into_iter().flat_map(|offers| offers.range(first..=last));
    let mut offers: Vec<RestingOffer> = range.take(count + 1).map(resting).collect();
    let more = offers.len() > count;
    offers.truncate(count);
    RestingOffers { height: ledger.height(), offers, more }
}

/// A market's price in the recent batches in which it traded, oldest first.
pub fn history(views: &Views, symbols: &Symbols, sides: Sides, limit: usize) -> History {
    let traded = |batch: &&std::sync::Arc<BatchSummary>| volumes(&batch.batch, sides) != (0, 0);
    let recent: Vec<_> = views.batches().rev().filter(traded).take(limit).collect();
    let point = |batch: &std::sync::Arc<BatchSummary>| HistoryPoint {
        height: batch.height,
        time_ms: batch.time_ms,
        price: price(batch.batch.valuations[sides.base.0 as usize], batch.batch.valuations[sides.quote.0 as usize]),
        base_volume: volumes(&batch.batch, sides).0.to_string(),
    };
    History { market: symbols.market(sides.base, sides.quote), points: recent.into_iter().rev().map(point).collect() }
}
