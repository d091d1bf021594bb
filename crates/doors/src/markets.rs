//! Markets for people: an unordered pair with a price, a book by level, and the curves of its batch.

use std::collections::{BTreeMap, BTreeSet};

use ledger::contracts::OfferEvent;
use ledger::{Batch, Offer, Pair, Place};
use primitives::{Address, AssetId, Price};

use crate::backend::OffersRead;
use crate::candles::Candles;
use crate::json::{
    BookBody, CurvePoint, Curves, HistoryBody, HistoryPoint, Level, MarketBody, MarketsBody, OfferBody, RestingOffer,
    RestingOffers, Symbols, price, rounded,
};
use crate::open_offers::Depth;
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

    /// Offers of the base for the quote.
    pub fn supply(self) -> Pair {
        Pair { sell: self.base, buy: self.quote }
    }

    /// Offers of the quote for the base.
    pub fn demand(self) -> Pair {
        Pair { sell: self.quote, buy: self.base }
    }
}

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

/// Base and quote units traded in a batch.
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
pub fn markets(views: &Views, candles: &Candles, symbols: &Symbols) -> MarketsBody {
    let last = views.batches().next_back();
    let traded = last.into_iter().flat_map(|batch| batch.batch.trades.iter().map(|trade| trade.pair));
    let pairs = views.offers().pairs().chain(traded);
    let all: BTreeSet<(AssetId, AssetId)> = pairs.map(Sides::of).map(|sides| (sides.quote, sides.base)).collect();
    let count = |pair| views.offers().pair_len(pair);
    let best = |pair| views.offers().prices(pair).next().map(|(limit, _)| limit);
    let markets = all.into_iter().map(|(quote, base)| {
        let sides = Sides { base, quote };
        let (base_volume, quote_volume) = last.map_or((0, 0), |batch| volumes(&batch.batch, sides));
        let (price, price_height) = last_price(candles, sides);
        MarketBody {
            market: symbols.market(base, quote),
            base: symbols.get(base).into(),
            quote: symbols.get(quote).into(),
            price,
            price_height,
            indicative: indicative(views, sides),
            base_volume: base_volume.to_string(),
            quote_volume: quote_volume.to_string(),
            offers: count(sides.supply()) + count(sides.demand()),
            best_sell: best(sides.supply()).map(|limit| limit.to_string()),
            best_buy: best(sides.demand()).map(|limit| rounded(1.0 / limit.to_f64())),
        }
    });
    MarketsBody { height: views.height(), markets: markets.collect() }
}

/// The resting offers of a market by price, at most `levels` per side.
pub fn book(views: &Views, candles: &Candles, symbols: &Symbols, sides: Sides, levels: usize) -> BookBody {
    let side = |pair, to_base: fn(f64, u64) -> f64, to_price: fn(Price) -> String| {
        let level = |(limit, depth): (Price, Depth)| Level {
            price: to_price(limit),
            amount: (to_base(limit.to_f64(), depth.amount) as u64).to_string(),
            offers: depth.offers,
        };
        views.offers().prices(pair).take(levels).map(level).collect()
    };
    let (price, price_height) = last_price(candles, sides);
    BookBody {
        height: views.height(),
        market: symbols.market(sides.base, sides.quote),
        price,
        price_height,
        indicative: indicative(views, sides),
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
    let at = |asset: AssetId| batch.batch.valuations.get(asset.0 as usize).map_or(1.0, |price| price.to_f64());
    let rate = at(sides.base) / at(sides.quote);
    let trades = |pair| {
        let found = batch.batch.trades.iter().find(|trade| trade.pair == pair);
        found.map_or((0, 0), |trade| (trade.sold, trade.bought))
    };
    Some(Curves {
        height: batch.height,
        market: symbols.market(sides.base, sides.quote),
        price: rounded(rate),
        supply: thin(supply(before_batch(views, batch, sides.supply())), rate, points),
        demand: thin(demand(before_batch(views, batch, sides.demand())), rate, points),
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

/// At most `points` of those near the rate, evenly chosen.
fn thin(curve: Vec<(f64, f64)>, rate: f64, points: usize) -> Vec<CurvePoint> {
    let near: Vec<_> = curve.into_iter().filter(|(x, _)| (rate / CURVE_SPAN..=rate * CURVE_SPAN).contains(x)).collect();
    let count = near.len().min(points.max(2));
    let pick = |i: usize| near[if count == 1 { 0 } else { i * (near.len() - 1) / (count - 1) }];
    let point = |(x, y): (f64, f64)| CurvePoint { price: rounded(x), amount: (y as u64).to_string() };
    (0..count).map(pick).map(point).collect()
}

/// The first and the last place of offers with limits in a range; `None` if the range is empty.
pub fn places(from: Option<Price>, to: Option<Price>) -> Option<(Place, Place)> {
    let first = Place { limit: from.unwrap_or(Price::MIN), account: Address([0; 20]), id: 0 };
    let last = Place { limit: to.unwrap_or(Price::MAX), account: Address([u8::MAX; 20]), id: u64::MAX };
    (first <= last).then_some((first, last))
}

/// At most `count` of the offers of a pair that were read, and whether there are more.
pub fn offers(mut read: OffersRead, symbols: &Symbols, pair: Pair, count: usize) -> RestingOffers {
    let resting = |offer: &Offer| RestingOffer {
        account: offer.place.account.to_string(),
        offer: OfferBody {
            sell: symbols.get(pair.sell).into(),
            buy: symbols.get(pair.buy).into(),
            limit: offer.place.limit.to_string(),
            id: offer.place.id,
            amount: offer.amount.to_string(),
        },
    };
    let more = read.offers.len() > count;
    read.offers.truncate(count);
    RestingOffers { height: read.height, offers: read.offers.iter().map(resting).collect(), more }
}

/// A market's price in the recent batches in which it traded, oldest first.
pub fn history(views: &Views, symbols: &Symbols, sides: Sides, limit: usize) -> HistoryBody {
    let traded = |batch: &&std::sync::Arc<BatchSummary>| volumes(&batch.batch, sides) != (0, 0);
    let recent: Vec<_> = views.batches().rev().filter(traded).take(limit).collect();
    let point = |batch: &std::sync::Arc<BatchSummary>| HistoryPoint {
        height: batch.height,
        time_ms: batch.time_ms,
        price: price(batch.batch.valuations[sides.base.0 as usize], batch.batch.valuations[sides.quote.0 as usize]),
        base_volume: volumes(&batch.batch, sides).0.to_string(),
    };
    HistoryBody {
        market: symbols.market(sides.base, sides.quote),
        points: recent.into_iter().rev().map(point).collect(),
    }
}
