//! The market of a batch, and what a clearing of it must be: each condition in turn, over all offers, with fractions
//! of big integers. It shares no code with the crate that clears and verifies, and looks for no prices: it judges
//! those that it is given.

use std::collections::BTreeMap;

use ledger::{Attached, Pair, Place, PoolFill};
use num_bigint::BigUint;
use primitives::{Amount, AssetId, Fraction, MAX_ISSUED, PoolKey, Price};

use super::exact::{asked, at_least, fewest, least_above, payout, reaches};
use super::exacts::ModelExact;
use super::pools::ModelPool;

/// Pair, place, units sold, units received, units returned.
pub type Executed = (Pair, Place, Amount, Amount, Amount);

/// What takes part in a batch.
#[derive(Clone, Default)]
pub struct Market {
    pub epsilon: Fraction,
    pub mu: Fraction,
    /// By asset: fewer units do not rest.
    pub least: Vec<Amount>,
    /// By pair, in the order of places.
    pub offers: BTreeMap<Pair, Vec<(Place, Amount)>>,
    /// Those that are awake, with their fees.
    pub pools: Vec<(PoolKey, ModelPool, Fraction)>,
    /// In the order in which they are tried.
    pub exacts: Vec<ModelExact>,
}

/// What a correct clearing comes to.
#[derive(Default)]
pub struct Judged {
    pub fills: Vec<Executed>,
    /// By asset: units that nobody receives.
    pub kept: Vec<i128>,
}

/// A pool as a seller of one of its assets.
struct Seller {
    pair: Pair,
    own: Amount,
    other: Amount,
    fee: Fraction,
}

impl Market {
    /// Every pair on which something is offered.
    pub fn pairs(&self) -> Vec<Pair> {
        let of_pool = |(key, ..): &(PoolKey, ModelPool, Fraction)| {
            let PoolKey { a, b, .. } = *key;
            [Pair { sell: a, buy: b }, Pair { sell: b, buy: a }]
        };
        self.offers.keys().copied().chain(self.pools.iter().flat_map(of_pool)).collect()
    }

    /// What this clearing comes to, or the first reason why it is wrong.
    pub fn judged(&self, claim: &Attached) -> Result<Judged, String> {
        let pairs = self.pairs();
        if pairs.is_empty() {
            let is_empty = *claim == Attached::default();
            return is_empty.then(Judged::default).ok_or_else(|| "nothing is for sale".into());
        }
        if claim.valuations.len() != self.least.len() {
            return Err("there is not one valuation for each asset".into());
        }
        let fills = self.fills(claim)?;
        let is_one = |pair: Pair| reaches(pair.sell, pair.buy, &pairs) && reaches(pair.buy, pair.sell, &pairs);
        let traded = claim.trades.iter().map(|trade| trade.pair);
        let traded = traded.chain(claim.pools.iter().map(|fill| Pair { sell: fill.sell(), buy: fill.buy() }));
        if let Some(pair) = traded.chain(claim.exacts.iter().map(|trade| trade.pair)).find(|pair| !is_one(*pair)) {
            return Err(format!("no chain of offers joins {pair:?} both ways"));
        }
        let lowest = |asset: AssetId| {
            let mut group = (0..asset.0).map(AssetId).filter(|other| is_one(Pair { sell: *other, buy: asset }));
            group.next().unwrap_or(asset)
        };
        // Pools first: a pool that takes no part has no fill, and must say so.
        let mut owing: Vec<AssetId> = self.owing_pools(claim)?.into_iter().map(|pair| lowest(pair.sell)).collect();
        let unfilled = self.owing_offers(claim, &fills).into_iter().filter(|pair| is_one(*pair));
        owing.extend(unfilled.map(|pair| lowest(pair.sell)));
        owing.sort_unstable();
        owing.dedup();
        if owing != claim.short {
            return Err(format!("groups {owing:?} are not full, and {:?} are named", claim.short));
        }
        self.check_exacts(claim, |pair| owing.contains(&lowest(pair.sell)))?;
        let kept = self.kept(claim, &fills)?;
        Ok(Judged { fills, kept })
    }

    fn rate(&self, claim: &Attached, pair: Pair, share: Fraction) -> impl Fn(Amount) -> Amount + use<> {
        let [sell, buy] = [pair.sell, pair.buy].map(|asset| claim.valuations[asset.0 as usize]);
        move |sold| payout(sold, sell, buy, share)
    }

    /// Whether an offer is better than the rate by more than μ.
    fn must(&self, claim: &Attached, pair: Pair, (place, amount): &(Place, Amount)) -> bool {
        let bought = self.rate(claim, pair, self.mu)(*amount);
        asked(*amount, place.limit) <= MAX_ISSUED.into() && at_least(bought, *amount, place.limit)
    }

    /// Executes the trades offer by offer.
    fn fills(&self, claim: &Attached) -> Result<Vec<Executed>, String> {
        let mut fills = Vec::new();
        if !claim.trades.is_sorted_by(|a, b| a.pair < b.pair) {
            return Err("trades are repeated or out of order".into());
        }
        for trade in &claim.trades {
            let pair = trade.pair;
            let rate = self.rate(claim, pair, self.epsilon);
            let offers = self.offers.get(&pair).ok_or_else(|| format!("{pair:?} has no offers"))?;
            // First the offers that must execute: their limits would hold μ below the rate as well.
            let (first, then): (Vec<&_>, Vec<&_>) = offers.iter().partition(|offer| self.must(claim, pair, offer));
            let (mut rest, mut executed) = (trade.sold, Vec::new());
            for (place, amount) in first.into_iter().chain(then) {
                // Offers fill in full, and the one for which too few units remain sells exactly these: the fewest for
                // their pay-out. An offer whose whole pay-out breaks its limit is skipped.
                let whole = rate(*amount);
                if rest == 0 || (whole <= MAX_ISSUED && !at_least(whole, *amount, place.limit)) {
                    continue;
                }
                let sold = rest.min(*amount);
                let bought = rate(sold);
                if sold < *amount || whole > MAX_ISSUED {
                    let [sell, buy] = [pair.sell, pair.buy].map(|asset| claim.valuations[asset.0 as usize]);
                    let is_exact = sold == rest && fewest(bought, sell, buy, self.epsilon) == sold;
                    if !is_exact || !at_least(bought, sold, place.limit) {
                        return Err(format!("{place:?} cannot sell {sold} of {pair:?}"));
                    }
                }
                rest -= sold;
                let [of_sell, of_buy] = [pair.sell, pair.buy].map(|asset| self.least[asset.0 as usize]);
                let left = amount - sold;
                let is_small = left < of_sell || asked(left, place.limit) < of_buy.into();
                executed.push((pair, *place, sold, bought, if is_small { left } else { 0 }));
            }
            executed.sort_unstable_by_key(|fill| fill.1);
            if rest != 0 || executed.last().map(|fill| fill.1) != Some(trade.marginal) {
                return Err(format!("the offers of {pair:?} do not sell {} up to the one named", trade.sold));
            }
            fills.extend(executed);
        }
        Ok(fills)
    }

    /// The pairs of the offers that must execute in full and do not.
    fn owing_offers(&self, claim: &Attached, fills: &[Executed]) -> Vec<Pair> {
        let sold: BTreeMap<(Pair, Place), Amount> = fills.iter().map(|fill| ((fill.0, fill.1), fill.2)).collect();
        let is_owing = |pair: &Pair, offer: &(Place, Amount)| {
            self.must(claim, *pair, offer) && sold.get(&(*pair, offer.0)) != Some(&offer.1)
        };
        let owing = self.offers.iter().filter(|(pair, offers)| offers.iter().any(|offer| is_owing(pair, offer)));
        owing.map(|(pair, _)| *pair).collect()
    }

    /// The pairs of the pools that sell less than they must; an error if one trades otherwise than by its rule.
    fn owing_pools(&self, claim: &Attached) -> Result<Vec<Pair>, String> {
        let known = |fill: &PoolFill| self.pools.iter().any(|(key, ..)| *key == fill.pool);
        if !claim.pools.is_sorted_by(|a, b| a.pool < b.pool) || !claim.pools.iter().all(known) {
            return Err("fills of pools are repeated, out of order or of no pool".into());
        }
        let mut owing = Vec::new();
        for (key, pool, fee) in &self.pools {
            let PoolKey { a, b, .. } = *key;
            let fill = claim.pools.iter().find(|fill| fill.pool == *key);
            let sides = [(true, a, b, pool.a, pool.b), (false, b, a, pool.b, pool.a)];
            for (sells_a, sell, buy, own, other) in sides {
                let seller = Seller { pair: Pair { sell, buy }, own, other, fee: *fee };
                let made = fill.filter(|fill| fill.sells_a == sells_a).map(|fill| (fill.sold, fill.bought));
                let most = seller.most(claim, self.epsilon);
                if made.is_some_and(|made| made.0 == 0 || made.0 > most || seller.fill(self, claim, made.0) != made) {
                    return Err(format!("{key:?} does not trade {made:?} at this rate"));
                }
                let must = seller.fill(self, claim, seller.most(claim, self.mu)).0;
                // A pool that can make no fill at all at the rate owes none.
                if seller.fill(self, claim, most).0 > 0 && made.map_or(0, |made| made.0) < must {
                    owing.push(seller.pair);
                }
            }
        }
        Ok(owing)
    }

    /// Exact orders move what the rate says, within their bounds, each once and in order, in full groups.
    fn check_exacts(&self, claim: &Attached, is_short: impl Fn(Pair) -> bool) -> Result<(), String> {
        let mut waiting = self.exacts.iter();
        for trade in &claim.exacts {
            let is_it = |order: &&ModelExact| (order.account, order.id) == (trade.account, trade.id);
            let order = waiting.find(is_it).ok_or("an exact order is filled twice, out of order, or unknown")?;
            let value = |asset: AssetId| claim.valuations[asset.0 as usize];
            if order.trade(trade.sold, trade.bought, value, self.epsilon) != Some(*trade) || is_short(trade.pair) {
                return Err(format!("{trade:?} is not what the rate says, or its group is not full"));
            }
        }
        Ok(())
    }

    /// Nothing is paid out that nobody has sold.
    fn kept(&self, claim: &Attached, fills: &[Executed]) -> Result<Vec<i128>, String> {
        let of_offers = fills.iter().map(|fill| (fill.0, fill.2, fill.3));
        let of_pool = |fill: &PoolFill| (Pair { sell: fill.sell(), buy: fill.buy() }, fill.sold, fill.bought);
        let all = of_offers.chain(claim.pools.iter().map(of_pool));
        let all = all.chain(claim.exacts.iter().map(|trade| (trade.pair, trade.sold, trade.bought)));
        let mut kept = vec![0i128; self.least.len()];
        for (pair, sold, bought) in all {
            kept[pair.sell.0 as usize] += i128::from(sold);
            kept[pair.buy.0 as usize] -= i128::from(bought);
        }
        match kept.iter().position(|units| *units < 0) {
            Some(asset) => Err(format!("asset {asset} is not conserved")),
            None => Ok(kept),
        }
    }
}

impl Seller {
    fn values(&self, claim: &Attached) -> [Price; 2] {
        [self.pair.sell, self.pair.buy].map(|asset| claim.valuations[asset.0 as usize])
    }

    /// The most units s whose sale leaves the marginal price other/(own − 2s) within (1−fee)(1−share) of the rate.
    fn most(&self, claim: &Attached, share: Fraction) -> Amount {
        let [sell, buy] = self.values(claim);
        let left = least_above(self.other, sell, buy, [self.fee, share]);
        let own = BigUint::from(self.own);
        if left >= own { 0 } else { Amount::try_from((own - left) / 2u8).expect("of the reserve") }
    }

    /// The largest fill of at most `target` units: the fewest units for their pay-out, and the product of the reserves
    /// does not fall. The rule tries 64 pay-outs.
    fn fill(&self, market: &Market, claim: &Attached, target: Amount) -> (Amount, Amount) {
        let [sell, buy] = self.values(claim);
        let earned = |sold: Amount| payout(sold, sell, buy, market.epsilon);
        let most = earned(target).min(MAX_ISSUED);
        let product = |a: Amount, b: Amount| BigUint::from(a) * b;
        for bought in (1..=most).rev().take(64) {
            let sold = fewest(bought, sell, buy, market.epsilon);
            let grown = self.other.checked_add(bought).filter(|_| sold < self.own);
            let is_kept = grown.is_some_and(|other| product(self.own - sold, other) >= product(self.own, self.other));
            if is_kept && earned(sold) == bought {
                return (sold, bought);
            }
        }
        (0, 0)
    }
}
