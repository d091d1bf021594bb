//! The state of a settle while its fills are judged: deposits, entries, floors and gains that change fill by fill.
//!
//! Whatever fills may read is looked up once and on all threads, before the first fill is judged: fills then follow
//! positions and search nothing.

use std::ops::Range;

use primitives::venue::{FillTree, MarketId, MarketTerms, OrderNumber, Settle, SettledOrder, VenueId, VenueOrder};
use primitives::{Address, Amount, AssetId, Digest, Height, PublicKey};
use proofs::{DepositId, FilledId, FilledOrder, TradingKey, TradingKeyId, VenueDeposit};
use rayon::prelude::*;

use super::Venues;
use super::mistake::VenueMistake;
use super::records::{Gains, filled_id};
use crate::places::shared_map::{EntryPlace, Finder};

/// The least orders that are worth a thread's attention.
pub(super) const ORDERS_OF_THREAD: usize = 64;

/// A key of the settle.
pub(super) struct RunningKey<'v> {
    pub public: PublicKey,
    /// Where the key is.
    pub place: EntryPlace,
    /// The key before the settle: owner and mandate never change.
    pub before: &'v TradingKey,
    /// The gains of the key.
    pub net: Gains,
    pub floor: OrderNumber,
    /// The floor in force before the settle.
    pub floor_before: OrderNumber,
    /// Raises that still wait.
    pub raises: Vec<(Height, OrderNumber)>,
    /// Whether its revocation counts.
    pub is_revoked: bool,
}

/// An order of the settle.
pub(super) struct RunningOrder<'v> {
    pub order: &'v VenueOrder,
    pub digest: Digest,
    /// The position of its key, if the ledger has the key.
    pub key: Option<usize>,
    /// The position of its market.
    pub market: usize,
    /// The positions of its trader's deposits of base and quote, if the ledger has key and market.
    pub base: usize,
    pub quote: usize,
    /// What is filled of it.
    pub entry: Option<FilledOrder>,
    /// What was filled of it before the settle.
    pub entry_before: Option<FilledOrder>,
    /// Whether another order has its number.
    pub is_reused: bool,
    /// Whether it makes an entry where none was.
    pub is_new: bool,
    /// Whether it has not expired and does not live too long.
    pub is_alive: bool,
    /// Whether its trader is frozen in an asset of its market.
    pub is_frozen: bool,
    /// Whether it has a signature, or an entry.
    is_signed: bool,
}

/// A market of the settle.
pub(super) struct RunningMarket {
    id: MarketId,
    /// `None` if the ledger has none.
    pub terms: Option<MarketTerms>,
    /// The position of the deposit that receives its fees.
    pub fees: usize,
    /// Whether the owner of the venue is frozen in one of its assets.
    pub is_frozen: bool,
}

/// A deposit that fills may draw from or pay to.
pub(super) struct RunningDeposit {
    pub id: (Address, AssetId),
    /// Where it is, if it is there.
    pub place: Option<EntryPlace>,
    pub before: VenueDeposit,
    pub now: VenueDeposit,
}

/// Whose deposit it is: that of an order, or that of a market's fees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Drawn {
    Base(usize),
    Quote(usize),
    Fees(usize),
}

/// A settle while its fills are judged.
pub(super) struct Running<'v> {
    pub venues: &'v Venues,
    pub venue: VenueId,
    pub fee_cap_ppm: u32,
    pub incarnation: u32,
    /// The fills before the settle.
    pub tree: &'v FillTree,
    pub orders: Vec<RunningOrder<'v>>,
    pub keys: Vec<RunningKey<'v>>,
    pub markets: Vec<RunningMarket>,
    /// By account and asset.
    pub deposits: Vec<RunningDeposit>,
    /// What the fills of a group have overwritten, to be restored if one of them busts.
    saved: Option<Saved>,
}

/// Gains and floor of a key: nothing else of it changes.
struct SavedKey {
    at: usize,
    net: Gains,
    floor: OrderNumber,
}

#[derive(Default)]
struct Saved {
    orders: Vec<(usize, Option<FilledOrder>)>,
    keys: Vec<SavedKey>,
    deposits: Vec<(usize, VenueDeposit)>,
}

impl<'v> Running<'v> {
    /// The state before a settle; `None` if an order without signature has no entry (B3).
    pub(super) fn of(venues: &'v Venues, settle: &'v Settle) -> Option<Running<'v>> {
        let venue = venues.venues.get(&settle.venue)?;
        let markets = markets_of(venues, settle);
        let (positions, keys) = keys_of(venues, settle);
        let order = |entries: &mut Finder<'v, FilledId, FilledOrder>,
                     (signed, key): (&'v SettledOrder, &Option<usize>)| {
            let market = markets.binary_search_by_key(&signed.order.market, |market| market.id);
            let market = market.expect("each order's market is among them");
            let found = entries.find(&filled_id(settle.venue, &signed.key, &signed.order.number));
            running_order(venues, settle.venue, signed, found, *key, market)
        };
        let orders = settle.orders.par_iter().zip(&positions).with_min_len(ORDERS_OF_THREAD);
        let orders: Vec<RunningOrder<'v>> = orders.map_init(|| venues.filled.finder(), order).collect();
        if !orders.iter().all(|order| order.is_signed) {
            return None;
        }
        let deposits = Vec::new();
        let mut running = Running {
            venues,
            venue: settle.venue,
            fee_cap_ppm: venue.fee_cap_ppm,
            incarnation: venue.incarnation,
            tree: &venue.fills,
            orders,
            keys,
            markets,
            deposits,
            saved: None,
        };
        running.find_deposits(venue.owner);
        if !venues.controls.is_empty() {
            running.find_frozen(venue.owner);
        }
        Some(running)
    }

    /// Looks up the deposits of all orders and of the owner, who receives fees.
    fn find_deposits(&mut self, owner: Address) {
        let mut ids: Vec<(Address, AssetId)> = Vec::with_capacity(2 * self.orders.len() + self.markets.len());
        let mut drawn = Vec::new();
        for parts in self.orders_by_account(owner).chunk_by(|one, next| one.1 == next.1) {
            let account = parts[0].1;
            drawn.clear();
            for at in parts.iter().flat_map(|(.., orders)| orders.clone()) {
                if let Some(of) = self.markets[self.orders[at].market].terms {
                    drawn.extend([(of.base, Drawn::Base(at)), (of.quote, Drawn::Quote(at))]);
                }
            }
            if account == owner {
                let fees = self.markets.iter().enumerate().filter_map(|(at, of)| Some((of.terms?.quote, at)));
                drawn.extend(fees.map(|(quote, at)| (quote, Drawn::Fees(at))));
            }
            drawn.sort_unstable();
            for (asset, whose) in &drawn {
                if ids.last() != Some(&(account, *asset)) {
                    ids.push((account, *asset));
                }
                let at = ids.len() - 1;
                match whose {
                    Drawn::Base(order) => self.orders[*order].base = at,
                    Drawn::Quote(order) => self.orders[*order].quote = at,
                    Drawn::Fees(market) => self.markets[*market].fees = at,
                }
            }
        }
        let (venues, venue) = (self.venues, self.venue);
        let deposit = |deposits: &mut Finder<'v, DepositId, VenueDeposit>, id: (Address, AssetId)| {
            let found = deposits.find_place(&(venue, id.0, id.1));
            let before = found.map_or_else(VenueDeposit::default, |(_, deposit)| *deposit);
            RunningDeposit { id, place: found.map(|(place, _)| place), before, now: before }
        };
        let ids = ids.into_par_iter().with_min_len(ORDERS_OF_THREAD);
        self.deposits = ids.map_init(|| venues.deposits.finder(), deposit).collect();
    }

    /// The positions of the orders of each key with its account, and the owner without orders; by account.
    fn orders_by_account(&self, owner: Address) -> Vec<(u64, Address, Range<usize>)> {
        let mut parts = Vec::with_capacity(self.keys.len() + 1);
        parts.push((leading(&owner.0), owner, 0..0));
        let mut from = 0;
        for same in self.orders.chunk_by(|one, next| one.key == next.key) {
            let orders = from..from + same.len();
            from = orders.end;
            let account = same[0].key.map(|key| self.keys[key].before.owner);
            parts.extend(account.map(|account| (leading(&account.0), account, orders)));
        }
        let name = |of: &(u64, Address, Range<usize>)| (of.0, of.1);
        parts.par_sort_unstable_by(|one, other| name(one).cmp(&name(other)));
        parts
    }

    /// Notes who of the parties is frozen: the traders and the owner, who receives fees.
    fn find_frozen(&mut self, owner: Address) {
        let venues = self.venues;
        let is_frozen =
            |of: &MarketTerms, who: Address| !venues.may_fill(of.base, &who) || !venues.may_fill(of.quote, &who);
        for market in &mut self.markets {
            market.is_frozen = market.terms.is_some_and(|of| is_frozen(&of, owner));
        }
        for order in &mut self.orders {
            let terms = self.markets[order.market].terms;
            let owner = order.key.map(|key| self.keys[key].before.owner);
            order.is_frozen = owner.zip(terms).is_some_and(|(owner, of)| is_frozen(&of, owner));
        }
    }

    /// Entries that the settle could create.
    pub(super) fn new_entries(&self) -> u64 {
        self.orders.iter().filter(|order| order.is_new).count() as u64
    }

    /// Units of a deposit that pay for fills.
    pub(super) fn payable(&self, at: usize) -> Amount {
        let deposit = &self.deposits[at].now;
        let leaving = deposit.leaving.filter(|leaving| self.venues.pays_for_fills(leaving.since));
        deposit.free + leaving.map_or(0, |leaving| leaving.units)
    }

    pub(super) fn key_mut(&mut self, at: usize) -> &mut RunningKey<'v> {
        let key = &mut self.keys[at];
        if let Some(saved) = &mut self.saved {
            saved.keys.push(SavedKey { at, net: key.net.clone(), floor: key.floor });
        }
        key
    }

    pub(super) fn set_entry(&mut self, at: usize, entry: FilledOrder) {
        let order = &mut self.orders[at];
        if let Some(saved) = &mut self.saved {
            saved.orders.push((at, order.entry));
        }
        order.entry = Some(entry);
    }

    fn deposit_mut(&mut self, at: usize) -> &mut VenueDeposit {
        let deposit = &mut self.deposits[at].now;
        if let Some(saved) = &mut self.saved {
            saved.deposits.push((at, *deposit));
        }
        deposit
    }

    /// Takes units from what is free, and then from what leaves.
    pub(super) fn draw(&mut self, at: usize, units: Amount) {
        let deposit = self.deposit_mut(at);
        let from_free = units.min(deposit.free);
        deposit.free -= from_free;
        let rest = units - from_free;
        if let Some(leaving) = deposit.leaving.as_mut().filter(|_| rest > 0) {
            leaving.units = leaving.units.checked_sub(rest).expect("the deposit was long enough");
        }
        deposit.leaving = deposit.leaving.filter(|leaving| leaving.units > 0);
    }

    /// Adds units that are free.
    pub(super) fn pay(&mut self, at: usize, units: Amount) {
        if units > 0 {
            let deposit = self.deposit_mut(at);
            deposit.free = deposit.free.checked_add(units).expect("an asset's issue is capped");
        }
    }

    /// Begins a group: what follows is kept or undone as a whole.
    pub(super) fn begin_group(&mut self) {
        self.saved = Some(Saved::default());
    }

    /// Ends a group, and undoes it unless it is kept.
    pub(super) fn end_group(&mut self, is_kept: bool) {
        let Some(saved) = self.saved.take().filter(|_| !is_kept) else { return };
        saved.orders.into_iter().rev().for_each(|(at, entry)| self.orders[at].entry = entry);
        for SavedKey { at, net, floor } in saved.keys.into_iter().rev() {
            (self.keys[at].net, self.keys[at].floor) = (net, floor);
        }
        saved.deposits.into_iter().rev().for_each(|(at, deposit)| self.deposits[at].now = deposit);
    }
}

/// The first bytes of a name, to compare most of them at once.
pub(super) fn leading<const N: usize>(name: &[u8; N]) -> u64 {
    name.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// The markets of a settle's orders, by number.
fn markets_of(venues: &Venues, settle: &Settle) -> Vec<RunningMarket> {
    let mut ids: Vec<MarketId> = settle.orders.iter().map(|order| order.order.market).collect();
    ids.sort_unstable();
    ids.dedup();
    let market = |id| RunningMarket { id, terms: venues.market(settle.venue, id).copied(), fees: 0, is_frozen: false };
    ids.into_iter().map(market).collect()
}

/// The keys of a settle that the ledger has, and for each order the position of its key. Orders of one key follow one
/// another.
fn keys_of<'v>(venues: &'v Venues, settle: &Settle) -> (Vec<Option<usize>>, Vec<RunningKey<'v>>) {
    let mut publics: Vec<PublicKey> = settle.orders.iter().map(|order| order.key).collect();
    publics.dedup();
    let find = |keys: &mut Finder<'v, TradingKeyId, TradingKey>, public: &PublicKey| {
        keys.find_place(&(settle.venue, *public)).map(|found| running_key(venues, *public, found))
    };
    let all = publics.par_iter().with_min_len(ORDERS_OF_THREAD);
    let found: Vec<Option<RunningKey<'v>>> = all.map_init(|| venues.keys.finder(), find).collect();
    let mut places = found.iter().scan(0, |next, key| {
        let place = key.is_some().then_some(*next);
        *next += usize::from(key.is_some());
        Some(place)
    });
    let mut of_order = Vec::with_capacity(settle.orders.len());
    for same in settle.orders.chunk_by(|one, next| one.key == next.key) {
        let place = places.next().expect("a place for each key");
        of_order.extend(same.iter().map(|_| place));
    }
    (of_order, found.into_iter().flatten().collect())
}

fn running_key<'v>(state: &Venues, public: PublicKey, (place, before): (EntryPlace, &'v TradingKey)) -> RunningKey<'v> {
    let floor = state.floor_in_force(before);
    RunningKey {
        public,
        place,
        before,
        net: Gains::from_slice(&before.net),
        floor,
        floor_before: floor,
        raises: before.raises.iter().filter(|(since, _)| !state.is_past(*since)).copied().collect(),
        is_revoked: state.is_revoked(before),
    }
}

/// An order with what is filled under its number.
fn running_order<'v>(
    state: &Venues,
    venue: VenueId,
    SettledOrder { key: public, order, signature }: &'v SettledOrder,
    found: Option<&FilledOrder>,
    key: Option<usize>,
    market: usize,
) -> RunningOrder<'v> {
    let digest = order.digest(&state.network, venue, public);
    let is_same = |entry: &&FilledOrder| entry.digest == digest || state.makes(VenueMistake::NumberReused);
    let entry = found.filter(is_same).copied();
    RunningOrder {
        order,
        digest,
        key,
        market,
        base: 0,
        quote: 0,
        entry,
        entry_before: entry,
        is_reused: entry.is_none() && found.is_some_and(|other| !state.is_expired(other.expiry)),
        is_new: found.is_none(),
        is_alive: is_alive(state, order),
        is_frozen: false,
        is_signed: entry.is_some() || signature.is_there(),
    }
}

/// F3: whether an order has not expired, and does not live too long.
fn is_alive(state: &Venues, order: &VenueOrder) -> bool {
    let (now, delay) = (state.now(), state.terms.delay);
    let is_in_time = |until: u64| {
        let matched = state.horizon.time_of(now.height.saturating_sub(delay.heights));
        matched.is_some_and(|matched| matched <= until) || now.time_ms <= until.saturating_add(delay.ms)
    };
    !state.is_expired(order.expiry)
        && order.until_ms.is_none_or(is_in_time)
        && order.expiry <= now.height.saturating_add(state.terms.life_max)
}
