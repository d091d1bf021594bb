//! Independent bookkeeping of assets from the receipts: which stand, under which numbers and names, what listing one
//! costs, and when each closes.
//!
//! Everything that counts is judged by these books as they stood before its block. Nothing of the ledger's judgement is
//! used.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Batch, Genesis, Ledger, ListingPolicy, Outcome, Pair, Place, Traded};
use primitives::{
    Address, Amount, AssetId, AssetListing, Closing, Height, Life, Operation, Parameter, PlainListing, PoolOperation,
    Sequence, Transaction,
};

/// A transaction that counted, and what became of it.
type Counted<'a> = (&'a Transaction, Outcome);

#[derive(Clone, Debug, PartialEq)]
struct Known {
    name: String,
    issuer: Address,
    decimals: u8,
    least: Amount,
    /// Of a listed one.
    most: Option<Amount>,
    closes: Option<Height>,
}

/// What happened to assets in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListingCounts {
    /// Assets that were listed.
    pub listed: u64,
    /// Of those, in a block with another listing.
    pub together: u64,
    /// Announcements that an asset closes.
    pub announced: u64,
    /// Announcements that were taken back.
    pub revoked: u64,
    /// Offers that returned because an asset closed.
    pub returned: u64,
    /// Fills of offers that sell or buy a listed asset.
    pub fills: u64,
    /// Fills of pools with a listed asset.
    pub pooled: u64,
}

impl std::ops::AddAssign for ListingCounts {
    fn add_assign(&mut self, other: ListingCounts) {
        let ListingCounts { listed, together, announced, revoked, returned, fills, pooled } = other;
        self.listed += listed;
        self.together += together;
        self.announced += announced;
        self.revoked += revoked;
        self.returned += returned;
        self.fills += fills;
        self.pooled += pooled;
    }
}

/// See the module text.
#[derive(Clone)]
pub(crate) struct ListingBooks {
    founded: usize,
    known: Vec<Known>,
    /// Whether anybody may list.
    is_priced: bool,
    /// Fees of a first listing.
    first_fees: u64,
    assets_max: usize,
    notice: Height,
    resting_offers: usize,
    open_pairs: usize,
    pub counts: ListingCounts,
}

impl ListingBooks {
    pub fn new(genesis: &Genesis) -> ListingBooks {
        let known = |asset: &ledger::Listing| Known {
            name: asset.symbol.clone(),
            issuer: asset.issuer,
            decimals: asset.decimals,
            least: asset.least_units,
            most: None,
            closes: None,
        };
        let (terms, limits) = (&genesis.listings, &genesis.limits);
        ListingBooks {
            founded: genesis.assets.len(),
            known: genesis.assets.iter().map(known).collect(),
            is_priced: terms.policy == ListingPolicy::Priced,
            first_fees: terms.fees,
            assets_max: terms.assets_max as usize,
            notice: terms.notice,
            resting_offers: limits.resting_offers as usize,
            open_pairs: limits.open_pairs as usize,
            counts: ListingCounts::default(),
        }
    }

    /// How many assets there are.
    pub fn assets(&self) -> usize {
        self.known.len()
    }

    /// The least units of an asset that an offer sells or asks for.
    pub fn least(&self, asset: AssetId) -> Amount {
        self.known[asset.0 as usize].least
    }

    fn is_listed(&self, asset: AssetId) -> bool {
        asset.0 as usize >= self.founded
    }

    fn touches(&self, pair: Pair) -> bool {
        self.is_listed(pair.sell) || self.is_listed(pair.buy)
    }

    fn closes(&self, asset: AssetId) -> Option<Height> {
        self.known.get(asset.0 as usize)?.closes
    }

    /// Whether an asset is closed at a height.
    pub fn is_closed(&self, asset: AssetId, height: Height) -> bool {
        self.closes(asset).is_some_and(|last| last < height)
    }

    /// Whether the offers of a pair return after the batch of a height.
    pub fn returns(&self, pair: Pair, height: Height) -> bool {
        [pair.sell, pair.buy].into_iter().any(|asset| self.is_closed(asset, height + 1))
    }

    fn fees(&self, height: Height) -> u64 {
        let listed = (self.founded..self.known.len()).filter(|at| !self.is_closed(AssetId(*at as u32), height));
        let mut fees = self.first_fees;
        let mut eighths = listed.count() * 8;
        // Where a vote has left less room than is taken, eight times all the same.
        let mut doubled = 0;
        while eighths >= self.assets_max && doubled < 8 {
            (fees, eighths, doubled) = (fees * 2, eighths - self.assets_max, doubled + 1);
        }
        fees
    }

    fn open(&self, height: Height) -> usize {
        (0..self.known.len()).filter(|at| !self.is_closed(AssetId(*at as u32), height)).count()
    }

    /// Whether a vote at a height may list a name beside all that exist and those that wait.
    pub fn permit_plain(&self, symbol: &str, waiting: &[&str], height: Height) -> Result<(), String> {
        let known = self.known.iter().map(|known| known.name.as_str());
        match known.chain(waiting.iter().copied()).find(|name| looks_like(symbol, name)) {
            Some(name) => Err(format!("{symbol} could be taken for {name}")),
            None if self.open(height) + waiting.len() >= self.assets_max => Err("there is no room for it".into()),
            None => Ok(()),
        }
    }

    /// What validators have voted acts after a block of this height, behind all that the block has done. Returns how
    /// many assets it lists and closes.
    pub fn enter(
        &mut self,
        height: Height,
        values: &BTreeMap<Parameter, u64>,
        (lists, closes): (&[PlainListing], &[AssetId]),
    ) -> (u64, u64) {
        self.take(values);
        let before = self.known.len();
        for plain in lists {
            if self.known.iter().any(|known| looks_like(&plain.symbol, &known.name)) {
                continue;
            }
            let (name, most) = (plain.symbol.clone(), Some(plain.supply_max));
            let (issuer, decimals, least) = (plain.issuer, plain.decimals, plain.least_units);
            self.known.push(Known { name, issuer, decimals, least, most, closes: None });
        }
        let mut closed = 0;
        for asset in closes {
            let closes = &mut self.known[asset.0 as usize].closes;
            closed += u64::from(closes.is_none());
            closes.get_or_insert(height + self.notice);
        }
        ((self.known.len() - before) as u64, closed)
    }

    /// Values that matter to listings.
    fn take(&mut self, values: &BTreeMap<Parameter, u64>) {
        self.is_priced = values[&Parameter::ListingPolicy] == 1;
        self.first_fees = values[&Parameter::ListingFees];
        self.assets_max = values[&Parameter::AssetsMax] as usize;
        self.resting_offers = values[&Parameter::RestingOffers] as usize;
        self.open_pairs = values[&Parameter::OpenPairs] as usize;
    }

    /// Processes the transactions of a block that count, with its batch; `resting` are the offers before it, and
    /// `waiting` names that a vote lists.
    pub fn apply(
        &mut self,
        height: Height,
        effective: &[Counted],
        batch: &Batch,
        (resting, waiting): (&BTreeMap<(Pair, Place), Amount>, &[&str]),
    ) -> Result<(), String> {
        for one in effective {
            self.check_trade(height, one)
                .and_then(|()| self.check_share(one.0, resting))
                .map_err(|what| format!("{} of {}: {what}", one.0.body.operation.name(), one.0.body.account))?;
        }
        self.check_batch(height, batch)?;
        let mut next = self.clone();
        self.close(&mut next, height, effective)?;
        self.list(&mut next, height, effective, waiting)?;
        *self = next;
        Ok(())
    }

    /// What locks or makes units of an asset counts while it trades, and offers end with it.
    fn check_trade(&self, height: Height, (transaction, outcome): &Counted) -> Result<(), String> {
        let (assets, life) = match &transaction.body.operation {
            Operation::CreateOffer { sell, buy, life, .. } => ([*sell, *buy], Some(*life)),
            Operation::Replace(replace) => {
                let is_placed = matches!(outcome, Outcome::Replaced(told) if told.met != Traded::NOT_PLACED);
                if !is_placed {
                    return Ok(());
                }
                ([replace.old.sell, replace.old.buy], Some(replace.life))
            }
            Operation::Exact { sell, buy, .. } => ([*sell, *buy], None),
            Operation::Issue { asset, .. } | Operation::IssueReferenced { asset, .. } => ([*asset; 2], None),
            Operation::Pool(operation) if !matches!(**operation, PoolOperation::Leave { .. }) => {
                let pool = operation.pool();
                ([pool.a, pool.b], None)
            }
            _ => return Ok(()),
        };
        assets.into_iter().try_for_each(|asset| self.check_life(asset, life, height))
    }

    fn check_life(&self, asset: AssetId, life: Option<Life>, height: Height) -> Result<(), String> {
        let Some(last) = self.closes(asset) else { return Ok(()) };
        match life {
            _ if last < height => Err(format!("asset {asset} is closed since {last}")),
            Some(Life::Rests) => Err(format!("it rests without an end, and asset {asset} closes at {last}")),
            Some(Life::Until(until)) if last < until => Err(format!("it outlives asset {asset}, which ends at {last}")),
            _ => Ok(()),
        }
    }

    /// No offer comes into a full book. Those that sell listed assets leave half of it to others, and those of one all
    /// but a sixteenth.
    fn check_share(&self, transaction: &Transaction, resting: &BTreeMap<(Pair, Place), Amount>) -> Result<(), String> {
        let Operation::CreateOffer { sell, .. } = transaction.body.operation else { return Ok(()) };
        if resting.len() >= self.resting_offers {
            return Err(format!("{} offers rest, and {} may", resting.len(), self.resting_offers));
        }
        let count = |of: &dyn Fn(AssetId) -> bool| resting.keys().filter(|(pair, _)| of(pair.sell)).count();
        let is_full = count(&|asset| self.is_listed(asset)) * 2 >= self.resting_offers
            || count(&|asset| asset == sell) * 16 >= self.resting_offers;
        if self.is_listed(sell) && is_full { Err("listed assets have their part of the book".into()) } else { Ok(()) }
    }

    /// Pairs with listed assets, and the most with one of them.
    fn listed_pairs(&self, pairs: &BTreeSet<Pair>) -> (usize, usize) {
        let listed = pairs.iter().filter(|pair| self.touches(**pair));
        let mut of: BTreeMap<AssetId, usize> = BTreeMap::new();
        for asset in listed.clone().flat_map(|pair| [pair.sell, pair.buy]).filter(|asset| self.is_listed(*asset)) {
            *of.entry(asset).or_default() += 1;
        }
        (listed.count(), of.values().max().copied().unwrap_or(0))
    }

    /// Pairs with listed assets leave half of them to others, and those with one all but a sixteenth. Those that were
    /// open before the block stay, whatever a vote has made of the limit.
    pub fn check_pairs(&self, pairs: &BTreeSet<Pair>, before: &BTreeSet<Pair>) -> Result<(), String> {
        let ((all, most), old) = (self.listed_pairs(pairs), self.listed_pairs(before));
        if all * 2 > self.open_pairs && all > old.0 || most * 16 > self.open_pairs && most > old.1 {
            return Err(format!(
                "{all} pairs with listed assets are open, {most} of them with one, of {self_pairs}",
                self_pairs = self.open_pairs
            ));
        }
        Ok(())
    }

    /// An offer that a contract placed: it meets the next batch, and ends with its assets.
    pub fn check_placed(&self, pair: Pair, until: Option<Height>, height: Height) -> Result<(), String> {
        let life = until.map_or(Life::Rests, Life::Until);
        [pair.sell, pair.buy].into_iter().try_for_each(|asset| self.check_life(asset, Some(life), height + 1))
    }

    /// No closed asset is in a batch.
    fn check_batch(&mut self, height: Height, batch: &Batch) -> Result<(), String> {
        let fills = batch.fills.iter().map(|fill| fill.pair).chain(batch.exacts.iter().map(|trade| trade.pair));
        let pools: Vec<Pair> = batch.pools.iter().map(|fill| Pair { sell: fill.sell(), buy: fill.buy() }).collect();
        let mut all = fills.clone().chain(batch.trades.iter().map(|trade| trade.pair)).chain(pools.iter().copied());
        if let Some(pair) = all.find(|pair| self.returns(*pair, height - 1)) {
            return Err(format!("{pair:?} is in a batch, and one of the assets is closed"));
        }
        self.counts.fills += fills.filter(|pair| self.touches(*pair)).count() as u64;
        self.counts.pooled += pools.into_iter().filter(|pair| self.touches(*pair)).count() as u64;
        self.counts.returned +=
            batch.ended.iter().filter(|ended| ended.why == ledger::EndReason::Closed).count() as u64;
        Ok(())
    }

    /// Of the words of a block about an asset the last one by its number counts.
    fn close(&self, next: &mut ListingBooks, height: Height, effective: &[Counted]) -> Result<(), String> {
        let mut said: BTreeMap<AssetId, Vec<(Sequence, Closing, bool)>> = BTreeMap::new();
        for (transaction, outcome) in effective {
            let Operation::CloseAsset { asset, closing } = transaction.body.operation else { continue };
            let known = self.known.get(asset.0 as usize).ok_or("an unknown asset closes")?;
            let fits = match closing {
                Closing::Announce => known.closes.is_none(),
                Closing::Revoke => known.closes.is_some_and(|last| height < last),
            };
            if !fits || asset.0 == 0 || known.issuer != transaction.body.account {
                let account = transaction.body.account;
                return Err(format!("{account} says {closing:?} at {height} of asset {asset}, which is {known:?}"));
            }
            let words = said.entry(asset).or_default();
            words.push((transaction.body.sequence, closing, *outcome != Outcome::Void));
        }
        for (asset, mut words) in said {
            words.sort_unstable_by_key(|(number, _, _)| *number);
            let counts: Vec<bool> = words.iter().map(|(_, _, counts)| *counts).collect();
            let last = words.len() - 1;
            if counts.iter().enumerate().any(|(at, counts)| *counts != (at == last)) {
                return Err(format!("of the words {words:?} of asset {asset} others count than the last one"));
            }
            let is_announced = words[last].1 == Closing::Announce;
            next.known[asset.0 as usize].closes = is_announced.then(|| height + self.notice);
            next.counts.announced += u64::from(is_announced);
            next.counts.revoked += u64::from(!is_announced);
        }
        Ok(())
    }

    /// A block's listings get the next numbers by their ids, if there is room, and pay what is asked for.
    fn list(
        &self,
        next: &mut ListingBooks,
        height: Height,
        effective: &[Counted],
        waiting: &[&str],
    ) -> Result<(), String> {
        let listing = |one: &Counted| match &one.0.body.operation {
            Operation::ListAsset(listing) => Some((one.0.id(), one.0.body.account, (**listing).clone(), one.1)),
            _ => None,
        };
        let mut asked: Vec<_> = effective.iter().filter_map(listing).collect();
        asked.sort_by_key(|(id, ..)| *id);
        let taken = self.open(height) + waiting.len();
        if !asked.is_empty() && taken + asked.len() > self.assets_max {
            return Err(format!("{} assets are listed beside {taken} that are open or wait", asked.len()));
        }
        next.counts.together += if asked.len() > 1 { asked.len() as u64 } else { 0 };
        for (_, issuer, listing, outcome) in asked {
            let number = AssetId(next.known.len() as u32);
            self.check_listing(&listing, height, waiting)?;
            if outcome != Outcome::Listed(number) {
                return Err(format!("by its id a listing gets the number {number}, and not {outcome:?}"));
            }
            let AssetListing { symbol, decimals, least_units, supply_max, .. } = listing;
            let (name, most) = (format!("{symbol}.{number}"), Some(supply_max));
            next.known.push(Known { name, issuer, decimals, least: least_units, most, closes: None });
            next.counts.listed += 1;
        }
        Ok(())
    }

    fn check_listing(&self, listing: &AssetListing, height: Height, waiting: &[&str]) -> Result<(), String> {
        let (asked, symbol) = (self.fees(height), &listing.symbol);
        if !self.is_priced || listing.fees != asked {
            return Err(format!("a listing names {} fees, and {asked} are asked for", listing.fees));
        }
        let plain = self.known.iter().map(|known| known.name.as_str()).filter(|name| !name.contains('.'));
        // Numbers up to twice those of any run.
        let numbers = self.known.len()..200;
        for plain in plain.chain(waiting.iter().copied()) {
            let is_taken = looks_like(symbol, plain)
                || numbers.clone().any(|number| looks_like(&format!("{symbol}{number}"), plain));
            if is_taken {
                return Err(format!("{symbol} was listed, and could be taken for {plain}"));
            }
        }
        Ok(())
    }

    /// Compares the ledger with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        if ledger.assets().len() != self.known.len() {
            return Err(format!("{} assets, but {} by the receipts", ledger.assets().len(), self.known.len()));
        }
        for (number, (asset, known)) in (0..).map(AssetId).zip(ledger.assets().iter().zip(&self.known)) {
            let theirs = Known {
                name: asset.symbol.clone(),
                issuer: asset.issuer,
                decimals: asset.decimals,
                least: asset.least_units,
                most: ledger.listings().get(number).and_then(|terms| terms.listed).map(|listed| listed.supply_max),
                closes: ledger.listings().closes(number),
            };
            if theirs != *known {
                return Err(format!("asset {number} is {theirs:?}, but by the receipts {known:?}"));
            }
            if known.most.is_some_and(|most| asset.issued > most) {
                return Err(format!("more of asset {number} exists than its listing permits: {}", asset.issued));
            }
        }
        let (theirs, ours) = (ledger.listing_fees(), self.fees(ledger.height() + 1));
        if theirs == ours { Ok(()) } else { Err(format!("a listing costs {theirs} fees, but {ours} by the receipts")) }
    }
}

/// Whether the eye takes one name for another: sign by sign, past case, points and strokes, and letters like digits.
fn looks_like(one: &str, other: &str) -> bool {
    let kind = |sign: char| match sign {
        'O' | 'o' => '0',
        'I' | 'i' | 'L' | 'l' => '1',
        'S' | 's' => '5',
        sign => sign.to_ascii_uppercase(),
    };
    let seen = |name: &str| name.replace(['.', '-', '_'], "").chars().map(kind).collect::<Vec<_>>();
    seen(one) == seen(other)
}
