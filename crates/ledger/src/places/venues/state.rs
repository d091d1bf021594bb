//! The state of all venues, and the queues that follow from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::venue::{Delay, Horizon, MarketId, MarketTerms, OrderNumber, VenueId};
use primitives::{Address, Amount, AssetId, Digest, Height, PublicKey};
use proofs::{
    ClaimedId, DepositId, FilledId, FilledOrder, TradingKey, TradingKeyId, VenueDeposit, VenueMoment, VenueRecord,
    VenueRecordId,
};

use super::mistake::VenueMistake;
use super::records::{VenueRow, filled_id, number_of};
use crate::places::controls::Controls;
use crate::places::shared_map::SharedMap;
use crate::places::sums::Sums;
use crate::terms::VenueTerms;

/// All venues of a chain. Clones share its memory.
#[derive(Clone, Debug)]
pub struct Venues {
    /// The identity of the network, which orders and reports name.
    pub(super) network: Digest,
    pub(super) terms: VenueTerms,
    pub(super) horizon: Horizon,
    pub(super) venues: SharedMap<VenueId, VenueRecord>,
    pub(super) markets: SharedMap<(VenueId, MarketId), MarketTerms>,
    pub(super) deposits: SharedMap<DepositId, VenueDeposit>,
    pub(super) keys: SharedMap<TradingKeyId, TradingKey>,
    pub(super) filled: SharedMap<FilledId, FilledOrder>,
    /// Claimed fills, each with the fence of its incarnation.
    pub(super) claimed: SharedMap<ClaimedId, VenueMoment>,
    pub(super) queues: Queues,
    /// Units in all deposits by asset, which follow from them.
    pub(super) deposited: BTreeMap<AssetId, u128>,
    /// Records that the present block has written or removed, some of them twice; empty between blocks.
    pub(super) touched: Vec<VenueRecordId>,
    /// Records as settles of the present block have written them, as input for the trie; empty between blocks.
    pub(super) rows: Vec<VenueRow>,
    /// What issuers control, as before the present block; nothing between blocks.
    pub(super) controls: Arc<Controls>,
    /// By how much the present block has changed what deposits hold; nothing between blocks.
    pub(super) moved: Sums,
    #[cfg(test)]
    pub(super) mistake: VenueMistake,
}

/// What waits for heights to pass. All of it follows from the records, so it is part of no root and no snapshot.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    /// Deposits with units that leave, by height of the request.
    pub payouts: SharedMap<(Height, DepositId), ()>,
    /// Entries of orders by expiry.
    pub expiries: SharedMap<(Height, FilledId), ()>,
    /// Keys with a revocation or a raise that is not past, by its height.
    pub edits: SharedMap<(Height, TradingKeyId), ()>,
    /// Keys with entries that nothing can fill any more.
    pub dead: SharedMap<TradingKeyId, ()>,
    /// Claimed fills by height of the fence.
    pub claims: SharedMap<(Height, ClaimedId), ()>,
}

impl Venues {
    /// Whether this state makes a planted mistake.
    #[cfg(test)]
    pub(super) fn makes(&self, mistake: VenueMistake) -> bool {
        self.mistake == mistake
    }

    /// Whether this state makes a planted mistake: never outside of tests.
    #[cfg(not(test))]
    pub(super) fn makes(&self, _: VenueMistake) -> bool {
        false
    }

    /// No venues, at a height and time.
    pub(super) fn new(network: Digest, terms: VenueTerms, horizon: Horizon) -> Venues {
        Venues {
            network,
            terms,
            horizon,
            venues: SharedMap::default(),
            markets: SharedMap::default(),
            deposits: SharedMap::default(),
            keys: SharedMap::default(),
            filled: SharedMap::default(),
            claimed: SharedMap::default(),
            queues: Queues::default(),
            deposited: BTreeMap::new(),
            touched: Vec::new(),
            rows: Vec::new(),
            controls: Arc::default(),
            moved: Sums::default(),
            #[cfg(test)]
            mistake: VenueMistake::None,
        }
    }

    /// As if it were this height, with blocks of a second: for tests of what takes days.
    #[cfg(test)]
    pub(crate) fn begin_at(&mut self, height: Height) {
        self.horizon = Horizon::new(self.terms.delay, height, 1_000 * height);
    }

    /// Makes a planted mistake from now on.
    #[cfg(test)]
    pub(crate) fn plant(&mut self, mistake: VenueMistake) {
        self.mistake = mistake;
    }

    /// The terms of all venues.
    pub fn terms(&self) -> &VenueTerms {
        &self.terms
    }

    /// Which actions of traders count in the present block.
    pub fn horizon(&self) -> &Horizon {
        &self.horizon
    }

    /// A venue.
    pub fn get(&self, venue: VenueId) -> Option<&VenueRecord> {
        self.venues.get(&venue)
    }

    /// The venues by number.
    pub fn iter(&self) -> impl Iterator<Item = (VenueId, &VenueRecord)> {
        self.venues.iter().map(|(venue, record)| (*venue, record))
    }

    /// The terms of a market.
    pub fn market(&self, venue: VenueId, market: MarketId) -> Option<&MarketTerms> {
        self.markets.get(&(venue, market))
    }

    /// A deposit; nothing if there is none.
    pub fn deposit(&self, venue: VenueId, account: &Address, asset: AssetId) -> VenueDeposit {
        self.deposits.get(&(venue, *account, asset)).copied().unwrap_or_default()
    }

    /// The markets of a venue from a number on.
    pub fn markets_from(&self, venue: VenueId, first: MarketId) -> impl Iterator<Item = (MarketId, &MarketTerms)> {
        let of_venue = self.markets.from(&(venue, first)).take_while(move |((of, _), _)| *of == venue);
        of_venue.map(|((_, market), terms)| (*market, terms))
    }

    /// The deposits at a venue from an account and asset on.
    pub fn deposits_from(
        &self,
        venue: VenueId,
        (account, asset): (Address, AssetId),
    ) -> impl Iterator<Item = (&DepositId, &VenueDeposit)> {
        self.deposits.from(&(venue, account, asset)).take_while(move |(id, _)| id.0 == venue)
    }

    /// The deposits of an account at all venues.
    pub fn deposits_of(&self, account: Address) -> impl Iterator<Item = (&DepositId, &VenueDeposit)> {
        let at = move |(venue, _): (VenueId, _)| self.deposits_from(venue, (account, AssetId(0)));
        self.iter().flat_map(move |of| at(of).take_while(move |(id, _)| id.1 == account))
    }

    /// All trading keys.
    pub fn keys(&self) -> impl Iterator<Item = (&TradingKeyId, &TradingKey)> {
        self.keys.iter()
    }

    /// What is filled of the orders of a key in the present incarnation of its venue, from a number on.
    pub fn filled_from(
        &self,
        (venue, key): TradingKeyId,
        first: OrderNumber,
    ) -> impl Iterator<Item = (OrderNumber, &FilledOrder)> {
        let of_key = self.filled.from(&filled_id(venue, &key, &first));
        let is_own = move |id: &FilledId| (id.0, id.1, id.2) == (venue, first.incarnation, key);
        of_key.take_while(move |(id, _)| is_own(id)).map(|(id, filled)| (number_of(id), filled))
    }

    /// A trading key.
    pub fn key(&self, venue: VenueId, key: &PublicKey) -> Option<&TradingKey> {
        self.keys.get(&(venue, *key))
    }

    /// What is filled of an order.
    pub fn filled(&self, venue: VenueId, key: &PublicKey, number: &OrderNumber) -> Option<&FilledOrder> {
        self.filled.get(&filled_id(venue, key, number))
    }

    /// The records of a venue that are not those of another state of the same chain: venue, markets, deposits and keys,
    /// in no order. What two states share is not looked at, so that it takes no longer than the blocks between them.
    pub fn changes_since(&self, before: &Venues, venue: VenueId) -> Vec<VenueRecordId> {
        let venues = self.venues.differences(&before.venues).into_iter().map(VenueRecordId::Venue);
        let markets = self.markets.differences(&before.markets).into_iter();
        let markets = markets.map(|(venue, market)| VenueRecordId::Market(venue, market));
        let deposits = self.deposits.differences(&before.deposits).into_iter().map(VenueRecordId::Deposit);
        let keys = self.keys.differences(&before.keys).into_iter().map(VenueRecordId::Key);
        let of_venue = |id: &VenueRecordId| match id {
            VenueRecordId::Venue(of) | VenueRecordId::Market(of, _) => *of == venue,
            VenueRecordId::Deposit((of, ..)) | VenueRecordId::Key((of, _)) => *of == venue,
            VenueRecordId::Filled(_) | VenueRecordId::Claimed(_) => false,
        };
        venues.chain(markets).chain(deposits).chain(keys).filter(of_venue).collect()
    }

    /// The trading keys of a venue.
    pub fn keys_of(&self, venue: VenueId) -> impl Iterator<Item = (&PublicKey, &TradingKey)> {
        let all = self.keys.from(&(venue, PublicKey([0; 32]))).take_while(move |((of, _), _)| *of == venue);
        all.map(|((_, public), key)| (public, key))
    }

    /// Units in bonds, with those that leave.
    pub fn bonds(&self) -> u128 {
        self.venues.iter().map(|(_, venue)| u128::from(venue.liable())).sum()
    }

    /// Units in all deposits, by asset.
    pub fn deposited(&self) -> &BTreeMap<AssetId, u128> {
        &self.deposited
    }

    /// The present block.
    pub(super) fn now(&self) -> VenueMoment {
        VenueMoment { height: self.horizon.height(), time_ms: self.horizon.time_ms() }
    }

    /// Whether a block is past by a delay of its own, of heights and of time.
    pub(super) fn is_past_by(&self, delay: Delay, since: VenueMoment) -> bool {
        let now = self.now();
        let beyond = |from: u64, wait: u64, now: u64| from.checked_add(wait).is_some_and(|until| now > until);
        beyond(since.height, delay.heights, now.height) && beyond(since.time_ms, delay.ms, now.time_ms)
    }

    /// The floor of a key with the raises that are past.
    pub(super) fn floor_in_force(&self, key: &TradingKey) -> OrderNumber {
        let in_force = key.raises.iter().filter(|(since, _)| self.is_raise_in_force(*since)).map(|(_, floor)| *floor);
        in_force.fold(key.floor, OrderNumber::max)
    }

    /// Whether a key is revoked, and the revocation counts.
    pub(super) fn is_revoked(&self, key: &TradingKey) -> bool {
        key.revoked.is_some_and(|since| self.is_revocation_in_force(since))
    }

    /// The first entry of a key in an incarnation that nothing can fill any more.
    pub(super) fn first_dead(&self, (venue, public): TradingKeyId, key: &TradingKey) -> Option<FilledId> {
        let incarnation = self.venues.get(&venue)?.incarnation;
        let from = (venue, incarnation, public, 0, 0);
        let (first, _) = self.filled.from(&from).next()?;
        let is_own = (first.0, first.1, first.2) == (venue, incarnation, public);
        let is_dead = self.is_revoked(key) || number_of(first) < self.floor_in_force(key);
        (is_own && is_dead).then_some(*first)
    }

    /// Adds a key to those with dead entries if it has some.
    pub(super) fn note_dead(&mut self, id: TradingKeyId) {
        let Some(key) = self.keys.get(&id) else { return };
        if self.first_dead(id, key).is_some() {
            self.queues.dead.insert(id, ());
        }
    }

    /// Writes a venue.
    pub(super) fn venue_mut(&mut self, venue: VenueId) -> &mut VenueRecord {
        self.touched.push(VenueRecordId::Venue(venue));
        self.venues.get_mut(&venue).expect("the filter has found it")
    }

    /// Writes a deposit; one of nothing is removed.
    pub(super) fn set_deposit(&mut self, id: DepositId, deposit: VenueDeposit) {
        self.touched.push(VenueRecordId::Deposit(id));
        let before = match deposit.units() {
            0 => self.deposits.remove(&id),
            _ => self.deposits.insert(id, deposit),
        };
        let before = before.map_or(0, |before| before.units());
        self.moved.add(id.2, i128::from(deposit.units()) - i128::from(before));
        let sum = self.deposited.entry(id.2).or_default();
        *sum = *sum + u128::from(deposit.units()) - u128::from(before);
    }

    /// Adds free units to a deposit.
    pub(super) fn add_free(&mut self, id: DepositId, units: Amount) {
        let mut deposit = self.deposits.get(&id).copied().unwrap_or_default();
        deposit.free = deposit.free.checked_add(units).expect("an asset's issue is capped");
        self.set_deposit(id, deposit);
    }

    /// Forgets the entry of an order.
    pub(super) fn remove_filled(&mut self, id: FilledId) {
        if let Some(before) = self.filled.remove(&id) {
            self.touched.push(VenueRecordId::Filled(id));
            self.queues.expiries.remove(&(before.expiry, id));
            self.venue_mut(id.0).entries -= 1;
        }
    }

    /// The queues that follow from the records.
    pub(super) fn queue_all(&mut self) {
        let mut queues = Queues::default();
        self.deposited.clear();
        for (id, deposit) in self.deposits.iter() {
            *self.deposited.entry(id.2).or_default() += u128::from(deposit.units());
            if let Some(leaving) = deposit.leaving {
                queues.payouts.insert((leaving.since, *id), ());
            }
        }
        for (id, entry) in self.filled.iter() {
            queues.expiries.insert((entry.expiry, *id), ());
        }
        for (id, key) in self.keys.iter() {
            let edits = key.raises.iter().map(|(since, _)| *since).chain(key.revoked);
            for since in edits.filter(|since| !self.horizon.is_past(*since)) {
                queues.edits.insert((since, *id), ());
            }
            if self.first_dead(*id, key).is_some() {
                queues.dead.insert(*id, ());
            }
        }
        for (id, fence) in self.claimed.iter() {
            queues.claims.insert((fence.height, *id), ());
        }
        self.queues = queues;
    }
}

/// When actions count, each behind its own name: every one of them is past by height and by clock.
impl Venues {
    /// Whether an action at a height counts in the present block.
    pub(super) fn is_past(&self, since: Height) -> bool {
        let (horizon, delay) = (&self.horizon, self.horizon.delay());
        let time = |height| horizon.time_of(height).unwrap_or(u64::MAX);
        match () {
            _ if self.makes(VenueMistake::PastByHeightAlone) => horizon.height() > since.saturating_add(delay.heights),
            _ if self.makes(VenueMistake::PastByClockAlone) => {
                horizon.is_past(since) || horizon.time_ms() > time(since).saturating_add(delay.ms)
            }
            _ => horizon.is_past(since),
        }
    }

    /// Whether it is past, or a later height is reached and a mistake lets that suffice.
    fn is_past_or(&self, mistake: VenueMistake, since: Height) -> bool {
        (self.makes(mistake) && self.horizon.height() > since) || self.is_past(since)
    }

    /// Whether fills move an asset of an account: its issuer has not frozen it, or that is not past.
    pub(super) fn may_fill(&self, asset: AssetId, account: &Address) -> bool {
        self.controls.may_fill(asset, account, |since| self.is_past_or(VenueMistake::FreezeAtOnce, since))
            || self.makes(VenueMistake::FrozenTrade)
    }

    /// Whether a revocation counts.
    pub(super) fn is_revocation_in_force(&self, since: Height) -> bool {
        self.is_past_or(VenueMistake::RevocationAtOnce, since)
    }

    /// Whether a raise of a floor counts.
    pub(super) fn is_raise_in_force(&self, since: Height) -> bool {
        self.is_past_or(VenueMistake::FloorAtOnce, since)
    }

    /// Whether nothing fills an order with this expiry any more.
    pub(super) fn is_expired(&self, expiry: Height) -> bool {
        self.is_past_or(VenueMistake::ExpiryAtOnce, expiry)
    }

    /// Whether the entry of an order with this expiry is forgotten.
    pub(super) fn is_forgotten(&self, expiry: Height) -> bool {
        self.is_past_or(VenueMistake::EntryForgottenEarly, expiry)
    }

    /// Whether units that were asked for at a height are owed.
    pub(super) fn is_owed(&self, since: Height) -> bool {
        let is_next = self.horizon.height() + 1 > since.saturating_add(self.horizon.delay().heights);
        (self.makes(VenueMistake::PayoutEarly) && is_next) || self.is_past(since)
    }

    /// Whether units that were asked for at a height still pay for fills.
    pub(super) fn pays_for_fills(&self, since: Height) -> bool {
        match () {
            _ if self.makes(VenueMistake::LeavingIgnored) => false,
            _ if self.makes(VenueMistake::LeavingCountedWhenPast) => true,
            _ => !self.is_past(since),
        }
    }
}
