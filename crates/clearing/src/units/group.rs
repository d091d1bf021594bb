//! Groups whose amounts are not full: whole units are sought at all prices, or a proof that there are none.

use primitives::{Amount, AssetId, Price};
use rayon::prelude::*;

use super::{MOST_ASSETS, Settled, settle};
use crate::amounts::{Amounts, full_amounts, prepared};
use crate::book::{Book, Params};
use crate::budget::Allowance;
use crate::budget::Spending;
use crate::fills::fills;
use crate::outcome::{Obstacle, Reason};
use crate::prices::{Market, Prices};
use crate::range::{bound, to_price};
use crate::rate::Rate;
use crate::verify::full;

/// One group after the search.
struct Sought {
    /// Full amounts, and the valuations.
    full: Option<(Amounts, Vec<Price>)>,
    obstacle: Option<Obstacle>,
    looks: u64,
}

/// Seeks whole units in every group with an obstacle, unless the amount step of the group has spent its budget.
pub(crate) fn seek_units(market: &Market, params: &Params, prices: &mut Prices, amounts: &mut Amounts) {
    let mut groups: Vec<usize> = amounts.obstacles.iter().map(|o| market.split.group(o.assets[0])).collect();
    groups.sort_unstable();
    groups.dedup();
    let sought = groups.par_iter().map(|group| sought(market, params, &prices.valuations, amounts, *group));
    let sought: Vec<Sought> = sought.collect();
    for (group, sought) in groups.into_iter().zip(sought) {
        prices.looks += sought.looks;
        let is_own = |asset: AssetId| market.split.group(asset) == group;
        if sought.full.is_some() || sought.obstacle.is_some() {
            amounts.obstacles.retain(|obstacle| !is_own(obstacle.assets[0]));
        }
        amounts.obstacles.extend(sought.obstacle);
        if let Some((full, valuations)) = sought.full {
            let own = |asset: &usize| is_own(AssetId(*asset as u32));
            (0..valuations.len()).filter(own).for_each(|asset| prices.valuations[asset] = valuations[asset]);
            amounts.replace(market.book, full, is_own);
        }
    }
    amounts.full = amounts.obstacles.is_empty();
}

fn sought(market: &Market, params: &Params, valuations: &[Price], amounts: &Amounts, group: usize) -> Sought {
    let book = market.book;
    let is_own = |asset: AssetId| market.split.group(asset) == group;
    let links: Vec<usize> = market.split.links.iter().copied().filter(|link| is_own(book.link(*link).0)).collect();
    let short: Vec<AssetId> =
        amounts.obstacles.iter().flat_map(|o| &o.assets).copied().filter(|asset| is_own(*asset)).collect();
    let assets = nearest(market, &links, &short);
    let offers: usize = links.iter().filter_map(|link| book.pairs.get(*link)).map(|pair| pair.len()).sum();
    // What other groups trade costs this one nothing.
    let prepared = prepared(links.len(), offers);
    let mut allowance = Allowance::new(params.budget.price_looks(assets.len(), offers) / 2);
    let mut at = valuations.to_vec();
    let mut full = None;
    let settled = settle(book, params, &assets, &mut allowance, &mut |own, units| {
        let mut own = own.to_vec();
        bound(&mut own);
        assets.iter().zip(own).for_each(|(asset, price)| at[asset.0 as usize] = to_price(price));
        let amounts = match units {
            Some(units) => with_units(book, params, &at, &links, units).ok_or(Spending::default()),
            None => full_amounts(book, &market.supply, params, &at, &links),
        };
        let looks = amounts.as_ref().map_or_else(|spending| spending.amount_looks, |full| full.spending.amount_looks);
        full = amounts.ok().map(|amounts| (amounts, at.clone()));
        (full.is_some(), prepared + looks)
    });
    let obstacle = match settled {
        Settled::Proved(proof) => Some(Obstacle { reason: Reason::Units, assets: short, proof: Some(proof) }),
        _ => None,
    };
    Sought { full, obstacle, looks: allowance.spent }
}

/// The amounts of `links` that sell so many `units` on each pair, if they are full.
fn with_units(
    book: &Book,
    params: &Params,
    valuations: &[Price],
    links: &[usize],
    units: &[Amount],
) -> Option<Amounts> {
    let (mut sold, mut slack) = (vec![0; book.pairs.len()], vec![0i128; book.assets as usize]);
    for (link, units) in links.iter().zip(units) {
        let pair = &book.pairs[*link];
        let [sell, buy] = [pair.sell, pair.buy].map(|asset| asset.0 as usize);
        let rate = Rate::new(valuations[sell], valuations[buy], params.epsilon, params.mu);
        let fills = fills(pair, &rate, *units);
        if fills.sold != *units || full(pair, &fills, &rate).is_err() {
            return None;
        }
        (sold[*link], slack[sell]) = (*units, slack[sell] + i128::from(*units));
        slack[buy] -= fills.bought as i128;
    }
    slack.iter().all(|slack| *slack >= 0).then(|| Amounts::full(sold))
}

/// At most [`MOST_ASSETS`] assets of a group, those that fewest pairs separate from the `short` ones, ascending.
fn nearest(market: &Market, links: &[usize], short: &[AssetId]) -> Vec<AssetId> {
    let mut found = short.to_vec();
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST_ASSETS);
    let mut before = 0;
    while before < found.len() && found.len() < MOST_ASSETS {
        before = found.len();
        let reached = found.clone();
        for (a, b) in links.iter().map(|link| market.book.link(*link)) {
            for (known, other) in [(a, b), (b, a)] {
                if found.len() < MOST_ASSETS && reached.contains(&known) && !found.contains(&other) {
                    found.push(other);
                }
            }
        }
    }
    found.sort_unstable();
    found
}
