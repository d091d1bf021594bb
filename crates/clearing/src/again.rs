//! Groups that are not full, cleared once more: part by part, so that no part is worse off because of another.
//!
//! Parts that are full alone at their prices keep them. The interior-point method prices the others, unless it has
//! done so before. Amounts are then found for each part alone. As every part conserves the assets that it shares, all
//! parts together conserve them, and if all are full, so is the group.

use primitives::{AssetId, Price};
use rayon::prelude::*;

use crate::amounts::{Amounts, amounts};
use crate::book::Params;
use crate::interior::interior;
use crate::market::Part;
use crate::outcome::Obstacle;
use crate::pool::PoolTrade;
use crate::prices::Market;
use crate::search::{Found, PartView};
use crate::supply::Supply;

/// Clears every group with an obstacle once more. `last` are the earlier valuations from which prices were found.
pub(crate) fn clear_again(
    market: &Market,
    params: &Params,
    found: &mut [Found],
    amounts: &mut Amounts,
    last: Option<&[Price]>,
) {
    let short = amounts.obstacles.iter().map(|obstacle| obstacle.assets[0]);
    let numbers = market.split.parts_with(short);
    let again = numbers.par_iter().map(|number| {
        let view = PartView { book: market.book, supply: &market.supply, params, part: &market.split.parts[*number] };
        found_again(market, view, &found[*number], last.is_some())
    });
    let again: Vec<Option<Found>> = again.collect();
    // Without new prices, a group of one part would have the same amounts again.
    let again =
        numbers.into_iter().zip(again).filter(|(number, again)| again.is_some() || !market.split.is_alone(*number));
    let (numbers, again): (Vec<usize>, Vec<Option<Found>>) = again.unzip();
    for (number, again) in numbers.iter().zip(again) {
        if let Some(again) = again {
            found[*number] = std::mem::take(&mut found[*number]).or(again);
        }
    }
    let valuations = market.join(found, last).valuations;
    let own = |number: &usize| amounts_alone(market, params, &market.split.parts[*number], &valuations);
    let own: Vec<(Amounts, Vec<usize>)> = numbers.par_iter().map(own).collect();
    for (number, (_, links)) in numbers.iter().zip(&own) {
        clear_out(market, amounts, &market.split.parts[*number], links);
    }
    for (number, (own, links)) in numbers.iter().zip(own) {
        put_in(market, amounts, &market.split.parts[*number], own, &links);
    }
    amounts.full = amounts.obstacles.is_empty();
}

/// New prices for a part that is not full at those `before`, which may have been found from earlier ones (`warm`).
fn found_again(market: &Market, view: PartView, before: &Found, warm: bool) -> Option<Found> {
    if before.is_interior {
        return None;
    }
    let (full, spent) = view.is_full(&before.prices);
    if full {
        return None;
    }
    let most = market.budget(view.part, view.params);
    if warm {
        let cold = market.price(view.part, view.params, None);
        let (full, more) = view.is_full(&cold.prices);
        let looks = spent + more + cold.looks;
        if full || cold.is_interior {
            return Some(Found { looks, ..cold });
        }
        let left = most.saturating_sub(cold.looks + more);
        let found = interior(view, &cold.prices, left);
        return Some(Found { looks: found.looks + looks, ..found });
    }
    let left = most.saturating_sub(before.looks + spent);
    let found = interior(view, &before.prices, left);
    Some(Found { looks: found.looks + spent, ..found })
}

/// The amounts of a part as a book of its own, and the links of the book for its links.
fn amounts_alone(market: &Market, params: &Params, part: &Part, valuations: &[Price]) -> (Amounts, Vec<usize>) {
    let (book, links) = part.alone(market.book);
    let own: Vec<usize> = (0..book.links()).collect();
    (amounts(&book, &Supply::new(&book), params, &part.of_part(valuations), &own), links)
}

/// Removes the earlier amounts of a part.
fn clear_out(market: &Market, amounts: &mut Amounts, part: &Part, links: &[usize]) {
    let pairs = market.book.pairs.len();
    links.iter().filter(|link| **link < pairs).for_each(|link| amounts.sold[*link] = 0);
    let pools: Vec<u32> = links.iter().filter_map(|link| link.checked_sub(pairs)).map(|side| side as u32 / 2).collect();
    amounts.pools.retain(|trade| pools.binary_search(&trade.pool).is_err());
    amounts.obstacles.retain(|obstacle| !part.has(obstacle.assets[0]));
}

/// Adds the amounts of a part.
fn put_in(market: &Market, amounts: &mut Amounts, part: &Part, own: Amounts, links: &[usize]) {
    let id = |place: AssetId| AssetId(part.assets[place.0 as usize]);
    let (pairs, sides) = links.split_at(own.sold.len());
    pairs.iter().zip(own.sold).for_each(|(link, sold)| amounts.sold[*link] = sold);
    amounts.pools.extend(own.pools.into_iter().map(|trade| {
        let side = sides[2 * trade.pool as usize] - market.book.pairs.len();
        PoolTrade { pool: (side / 2) as u32, sell: id(trade.sell), buy: id(trade.buy), ..trade }
    }));
    amounts.pools.sort_by_key(|trade| trade.pool);
    let named = |obstacle: Obstacle| Obstacle { assets: obstacle.assets.into_iter().map(id).collect(), ..obstacle };
    amounts.obstacles.extend(own.obstacles.into_iter().map(named));
    amounts.spending = amounts.spending.plus(own.spending);
}
