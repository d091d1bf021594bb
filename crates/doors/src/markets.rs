//! Markets for people: an unordered pair with a price, a book by level, and the curves of its batch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ledger::contracts::OfferEvent;
use ledger::{NO_END, Offer, Pair, Place};
use primitives::{Address, AssetId, Height, Price, Sequence};

use crate::backend::OffersRead;
use crate::json::{
    BookBody, CurvePoint, Curves, DayBody, HistoryBody, HistoryPoint, Level, MarketBody, MarketsBody, OfferBody,
    RestingOffer, RestingOffers, Symbols, TickerBody, price, rounded,
};
use readers::candles::Candles;
use readers::open_offers::{Depth, Resting};
use readers::sides::{Sides, volumes};
use readers::views::{BatchSummary, Views};

/// The time that a ticker is about.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Curves are drawn within this factor of the batch price.
const CURVE_SPAN: f64 = 1.1;

/// The price of a market with offers on both sides, from the latest valuations. It need not have traded at this
/// price.
fn indicative(views: &Views, sides: Sides) -> Option<String> {
    let has = |pair| views.offers().prices(pair).next().is_some();
    let both = has(sides.supply()) && has(sides.demand());
    let valuation = |asset| views.outline().valuation(asset);
    let known = valuation(sides.base).zip(valuation(sides.quote));
    known.filter(|_| both).map(|(base, quote)| price(base, quote))
}

/// The last traded price of a market, and its height.
fn last_price(candles: &Candles, sides: Sides) -> (Option<String>, Option<u64>) {
    candles.last(sides).map(|(price, height)| (rounded(price), height)).unzip()
}

/// Quote and base of every market that has offers or has traded.
fn known(views: &Views, candles: &Candles) -> BTreeSet<(AssetId, AssetId)> {
    let last = views.batches().next_back();
    let traded = last.into_iter().flat_map(|batch| readers::sides::traded(&batch.batch));
    let sides = views.offers().pairs().map(Sides::of).chain(traded).chain(candles.markets());
    sides.map(|sides| (sides.quote, sides.base)).collect()
}

/// The ticker of every market that has offers or has traded.
pub fn tickers(views: &Views, candles: &Candles, symbols: &Symbols) -> Vec<TickerBody> {
    let of = |(quote, base)| ticker(views, candles, symbols, Sides { base, quote });
    known(views, candles).into_iter().map(of).collect()
}

/// A market at a glance.
pub fn ticker(views: &Views, candles: &Candles, symbols: &Symbols, sides: Sides) -> TickerBody {
    let whole = |units: &str| symbols.whole_price(units, sides.base, sides.quote);
    let best = |pair| views.offers().prices(pair).next().map(|(limit, _)| limit);
    let time_ms = time_ms(views);
    let (price_units, price_height) = last_price(candles, sides);
    let day = candles.since(sides, time_ms.saturating_sub(DAY_MS)).map(|(day, complete)| DayBody {
        since_ms: day.time_ms,
        complete,
        open: whole(&rounded(day.open)),
        high: whole(&rounded(day.high)),
        low: whole(&rounded(day.low)),
        close: whole(&rounded(day.close)),
        change_percent: format!("{:.2}", (day.close / day.open - 1.0) * 100.0),
        base_volume: day.base_volume.to_string(),
        quote_volume: day.quote_volume.to_string(),
        batches: day.batches,
    });
    TickerBody {
        market: symbols.market(sides.base, sides.quote),
        height: views.height(),
        time_ms,
        price: price_units.as_deref().map(whole),
        price_units,
        price_height,
        best_sell: best(sides.supply()).map(|limit| whole(&limit.to_string())),
        best_buy: best(sides.demand()).map(|limit| whole(&rounded(1.0 / limit.to_f64()))),
        day,
    }
}

/// Every market that has offers or has traded.
pub fn markets(views: &Views, candles: &Candles, symbols: &Symbols) -> MarketsBody {
    let last = views.batches().next_back();
    let all = known(views, candles);
    let count = |pair| views.offers().pair_len(pair);
    let best = |pair| views.offers().prices(pair).next().map(|(limit, _)| limit);
    let markets = all.into_iter().map(|(quote, base)| {
        let sides = Sides { base, quote };
        let (base_volume, quote_volume) = last.map_or((0, 0), |batch| volumes(&batch.batch, sides));
        let (price_units, price_height) = last_price(candles, sides);
        let indicative_units = indicative(views, sides);
        let best_sell_units = best(sides.supply()).map(|limit| limit.to_string());
        let best_buy_units = best(sides.demand()).map(|limit| rounded(1.0 / limit.to_f64()));
        let whole = |units: &Option<String>| units.as_ref().map(|units| symbols.whole_price(units, base, quote));
        MarketBody {
            market: symbols.market(base, quote),
            base: symbols.get(base).into(),
            quote: symbols.get(quote).into(),
            price: whole(&price_units),
            price_units,
            price_height,
            indicative: whole(&indicative_units),
            indicative_units,
            base_volume: base_volume.to_string(),
            quote_volume: quote_volume.to_string(),
            offers: count(sides.supply()) + count(sides.demand()),
            best_sell: whole(&best_sell_units),
            best_sell_units,
            best_buy: whole(&best_buy_units),
            best_buy_units,
        }
    });
    MarketsBody { height: views.height(), markets: markets.collect() }
}

/// The time of the newest block; 0 before the first one.
fn time_ms(views: &Views) -> u64 {
    views.blocks(u64::MAX).next().map_or(0, |block| block.time_ms)
}

/// The resting offers of a market by price, at most `levels` per side.
pub fn book(views: &Views, candles: &Candles, symbols: &Symbols, sides: Sides, levels: usize) -> BookBody {
    let whole = |units: &str| symbols.whole_price(units, sides.base, sides.quote);
    let side = |pair, to_base: fn(f64, u64) -> f64, to_price: fn(Price) -> String| {
        let level = |(limit, depth): (Price, Depth)| {
            let price_units = to_price(limit);
            let amount = (to_base(limit.to_f64(), depth.amount) as u64).to_string();
            Level { price: whole(&price_units), price_units, amount, offers: depth.offers }
        };
        views.offers().prices(pair).take(levels).map(level).collect()
    };
    let (price_units, price_height) = last_price(candles, sides);
    let indicative_units = indicative(views, sides);
    BookBody {
        height: views.height(),
        time_ms: time_ms(views),
        market: symbols.market(sides.base, sides.quote),
        price: price_units.as_deref().map(whole),
        price_units,
        price_height,
        indicative: indicative_units.as_deref().map(whole),
        indicative_units,
        sells: side(sides.supply(), |_, amount| amount as f64, |limit| limit.to_string()),
        // An offer that sells the quote at l base per quote pays up to 1/l quote per base.
        buys: side(sides.demand(), |limit, amount| amount as f64 * limit, |limit| rounded(1.0 / limit.to_f64())),
    }
}

/// Units of an ordered pair for sale before the last batch traded, by limit.
pub fn before_batch(views: &Views, batch: &BatchSummary, pair: Pair) -> BTreeMap<Price, u64> {
    let mut by_limit: BTreeMap<Price, u64> =
        views.offers().prices(pair).map(|(limit, depth)| (limit, depth.amount)).collect();
    for fill in batch.batch.fills_of(pair) {
        *by_limit.entry(fill.place.limit).or_default() += fill.offered() - fill.left;
    }
    for ended in batch.batch.ended.iter().filter(|ended| ended.pair == pair && ended.why.is_after_batch()) {
        *by_limit.entry(ended.place.limit).or_default() += ended.returned;
    }
    // Offers that contracts placed after the batch were not there. An offer may come and go, so a sum may be
    // temporarily negative.
    for event in views.after_batch() {
        let (of, place, amount) = match *event {
            OfferEvent::Placed(of, place, amount) => (of, place, amount.wrapping_neg()),
            OfferEvent::Cancelled(of, place, amount) => (of, place, amount),
        };
        if of == pair {
            let sum = by_limit.entry(place.limit).or_default();
            *sum = sum.wrapping_add(amount);
        }
    }
    by_limit.retain(|_, amount| *amount > 0);
    by_limit
}

/// Supply and demand of a market in the last batch, before it traded; `None` before the first batch.
pub fn curves(views: &Views, symbols: &Symbols, sides: Sides, points: usize) -> Option<Curves> {
    let batch = views.batches().next_back()?;
    let valuation = |asset| views.outline().valuation(asset);
    let valuations = valuation(sides.base).zip(valuation(sides.quote));
    let rate = valuations.map(|(base, quote)| base.to_f64() / quote.to_f64());
    let whole = |units: &str| symbols.whole_price(units, sides.base, sides.quote);
    let thinned = |curve| thin(curve, rate, points).into_iter().map(|(price, amount)| point(price, amount, whole));
    let has_traded = volumes(&batch.batch, sides) != (0, 0);
    let indicative_units = rate.map(rounded);
    let price_units = indicative_units.clone().filter(|_| has_traded);
    let trades = |pair| {
        let found = batch.batch.trades.iter().find(|trade| trade.pair == pair);
        found.map_or((0, 0), |trade| (trade.sold, trade.bought))
    };
    Some(Curves {
        height: batch.height,
        market: symbols.market(sides.base, sides.quote),
        price: price_units.as_deref().map(whole),
        price_units,
        indicative: indicative_units.as_deref().map(whole),
        indicative_units,
        supply: thinned(supply(before_batch(views, batch, sides.supply()))).collect(),
        demand: thinned(demand(before_batch(views, batch, sides.demand()))).collect(),
        sold: trades(sides.supply()).0.to_string(),
        bought: trades(sides.demand()).1.to_string(),
    })
}

fn supply(by_limit: BTreeMap<Price, u64>) -> Vec<(f64, f64)> {
    let mut sum = 0.0;
    let cumulate = |(limit, amount): (Price, u64)| {
        sum += amount as f64;
        (limit.to_f64(), sum)
    };
    by_limit.into_iter().map(cumulate).collect()
}

fn demand(by_limit: BTreeMap<Price, u64>) -> Vec<(f64, f64)> {
    let mut sum = 0.0;
    let cumulate = |(limit, amount): (Price, u64)| {
        let highest = 1.0 / limit.to_f64();
        sum += amount as f64;
        (highest, sum / highest)
    };
    // The lowest limits pay the highest prices, but the result is ordered by ascending price.
    let mut points: Vec<_> = by_limit.into_iter().map(cumulate).collect();
    points.reverse();
    points
}

/// At most `points`, evenly chosen; of those near the rate, if there is one.
fn thin(curve: Vec<(f64, f64)>, rate: Option<f64>, points: usize) -> Vec<(f64, f64)> {
    let is_near = |x: f64| rate.is_none_or(|rate| (rate / CURVE_SPAN..=rate * CURVE_SPAN).contains(&x));
    let near: Vec<_> = curve.into_iter().filter(|(x, _)| is_near(*x)).collect();
    let count = near.len().min(points.max(2));
    let pick = |i: usize| near[if count == 1 { 0 } else { i * (near.len() - 1) / (count - 1) }];
    (0..count).map(pick).collect()
}

fn point(price: f64, amount: f64, whole: impl Fn(&str) -> String) -> CurvePoint {
    let price_units = rounded(price);
    CurvePoint { price: whole(&price_units), price_units, amount: (amount as u64).to_string() }
}

/// The first and the last place of offers with limits in a range, from a cursor on; `None` if the range is empty.
pub fn places(from: Option<Price>, to: Option<Price>, cursor: Option<Place>) -> Option<(Place, Place)> {
    let lowest = Place { limit: from.unwrap_or(Price::MIN), account: Address([0; 20]), id: 0 };
    let last = Place { limit: to.unwrap_or(Price::MAX), account: Address([u8::MAX; 20]), id: u64::MAX };
    let first = cursor.map_or(lowest, |cursor| cursor.max(lowest));
    (first <= last).then_some((first, last))
}

/// A resting offer in JSON.
pub fn offer(symbols: &Symbols, id: Sequence, Resting { pair, limit, amount, until }: Resting) -> OfferBody {
    let asked = symbols.asked(pair, amount, limit, None);
    let limit = limit.to_string();
    OfferBody {
        sell: symbols.get(pair.sell).into(),
        buy: symbols.get(pair.buy).into(),
        price: symbols.whole_price(&limit, pair.sell, pair.buy),
        limit,
        id: id.to_string(),
        amount: amount.to_string(),
        until: end(until),
        asked,
    }
}

/// The last height of an offer, if it has one.
pub fn end(until: Height) -> Option<String> {
    (until != NO_END).then(|| until.to_string())
}

/// At most `count` of the offers of a pair that were read, and where the next page begins if there are more.
pub fn offers(mut read: OffersRead, symbols: &Symbols, pair: Pair, count: usize) -> RestingOffers {
    let resting = |&Offer { place: Place { limit, account, id }, amount, until }: &Offer| RestingOffer {
        account: account.to_string(),
        offer: offer(symbols, id, Resting { pair, limit, amount, until }),
    };
    let next = read.offers.get(count).map(|next| cursor(&next.place));
    read.offers.truncate(count);
    let offers = read.offers.iter().map(resting).collect();
    RestingOffers { height: read.height, offers, more: next.is_some(), next }
}

/// The place of an offer as a cursor.
fn cursor(Place { limit, account, id }: &Place) -> String {
    format!("{limit}:{account}:{id}")
}

/// The place that a cursor names; `None` if it is not a cursor.
pub fn place_of(cursor: &str) -> Option<Place> {
    let mut parts = cursor.splitn(3, ':');
    let (limit, account, id) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Place { limit: limit.parse().ok()?, account: account.parse().ok()?, id: id.parse().ok()? })
}

/// Which of the batches that are kept.
pub(crate) struct HistoryOfMarket {
    pub below: Height,
    /// The first ones of this time and later; otherwise the last ones.
    pub since_ms: Option<u64>,
    pub limit: usize,
}

/// A market's price in recent batches in which it traded, oldest first.
pub(crate) fn history(views: &Views, symbols: &Symbols, sides: Sides, part: HistoryOfMarket) -> HistoryBody {
    let HistoryOfMarket { below, since_ms, limit } = part;
    let chosen = |batch: &&Arc<BatchSummary>| {
        let is_in = batch.height < below && since_ms.is_none_or(|since_ms| batch.time_ms >= since_ms);
        is_in && volumes(&batch.batch, sides) != (0, 0)
    };
    let mut found: Vec<_> = match since_ms {
        Some(_) => views.batches().filter(chosen).take(limit).collect(),
        None => views.batches().rev().filter(chosen).take(limit).collect(),
    };
    if since_ms.is_none() {
        found.reverse();
    }
    let point = |batch: &Arc<BatchSummary>| {
        let valuations = &batch.batch.valuations;
        let price_units = price(valuations[sides.base.0 as usize], valuations[sides.quote.0 as usize]);
        HistoryPoint {
            height: batch.height,
            time_ms: batch.time_ms,
            price: symbols.whole_price(&price_units, sides.base, sides.quote),
            price_units,
            base_volume: volumes(&batch.batch, sides).0.to_string(),
        }
    };
    HistoryBody { market: symbols.market(sides.base, sides.quote), points: found.into_iter().map(point).collect() }
}
