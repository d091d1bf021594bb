//! The state of a settle while its fills are judged: deposits, entries, floors and gains that change fill by fill.

use std::collections::BTreeMap;

use primitives::venue::{OrderNumber, Settle, SettledOrder, VenueId, VenueOrder};
use primitives::{Address, Amount, AssetId, Digest, PublicKey};
use proofs::{FilledOrder, TradingKey, VenueDeposit};

use super::Venues;
use super::mistake::VenueMistake;
use super::records::filled_id;

/// A key of the settle.
#[derive(Clone)]
pub(super) struct RunningKey {
    pub public: PublicKey,
    pub record: TradingKey,
    /// Whether its revocation counts.
    pub is_revoked: bool,
    /// The floor in force before the settle.
    pub floor_before: OrderNumber,
}

/// An order of the settle.
#[derive(Clone, Copy)]
pub(super) struct RunningOrder {
    pub order: VenueOrder,
    pub digest: Digest,
    /// The position of its key, if the ledger has the key.
    pub key: Option<usize>,
    /// What is filled of it.
    pub entry: Option<FilledOrder>,
    /// What was filled of it before the settle.
    pub entry_before: Option<FilledOrder>,
    /// Whether another order has its number.
    pub is_reused: bool,
    /// Whether it makes an entry where none was.
    pub is_new: bool,
}

/// A settle while its fills are judged.
pub(super) struct Running<'v> {
    pub venues: &'v Venues,
    pub venue: VenueId,
    pub fee_cap_ppm: u32,
    pub owner: Address,
    pub incarnation: u32,
    pub orders: Vec<RunningOrder>,
    pub keys: Vec<RunningKey>,
    pub deposits: BTreeMap<(Address, AssetId), VenueDeposit>,
    /// What the fills of a group have overwritten, to be restored if one of them busts.
    saved: Option<Saved>,
}

/// Gains and floor of a key: nothing else of it changes.
struct SavedKey {
    at: usize,
    net: Vec<(AssetId, i128)>,
    floor: OrderNumber,
}

#[derive(Default)]
struct Saved {
    orders: Vec<(usize, Option<FilledOrder>)>,
    keys: Vec<SavedKey>,
    deposits: Vec<((Address, AssetId), VenueDeposit)>,
}

impl<'v> Running<'v> {
    /// The state before a settle; `None` if an order without signature has no entry (B3).
    pub(super) fn of(venues: &'v Venues, settle: &Settle) -> Option<Running<'v>> {
        let venue = venues.venues.get(&settle.venue)?;
        let mut running = Running {
            venues,
            venue: settle.venue,
            fee_cap_ppm: venue.fee_cap_ppm,
            owner: venue.owner,
            incarnation: venue.incarnation,
            orders: Vec::with_capacity(settle.orders.len()),
            keys: Vec::new(),
            deposits: BTreeMap::new(),
            saved: None,
        };
        settle.orders.iter().all(|order| running.add_order(order)).then_some(running)
    }

    /// Adds an order; false if it has neither signature nor entry. Orders of one key follow one another.
    fn add_order(&mut self, signed: &SettledOrder) -> bool {
        let SettledOrder { key, order, signature } = signed;
        let digest = order.digest(&self.venues.network, self.venue, key);
        let found = self.venues.filled.get(&filled_id(self.venue, key, &order.number)).copied();
        let is_same = |entry: &FilledOrder| entry.digest == digest || self.venues.makes(VenueMistake::NumberReused);
        let entry = found.filter(is_same);
        if entry.is_none() && signature.is_none() {
            return false;
        }
        let is_reused = entry.is_none() && found.is_some_and(|other| !self.venues.is_expired(other.expiry));
        let key = self.add_key(key);
        let is_new = found.is_none();
        self.orders.push(RunningOrder { order: *order, digest, key, entry, entry_before: entry, is_reused, is_new });
        true
    }

    fn add_key(&mut self, public: &PublicKey) -> Option<usize> {
        if self.keys.last().is_none_or(|last| last.public != *public) {
            let mut record = self.venues.keys.get(&(self.venue, *public))?.clone();
            let floor_before = self.venues.floor_in_force(&record);
            record.floor = floor_before;
            record.raises.retain(|(since, _)| !self.venues.is_past(*since));
            let is_revoked = self.venues.is_revoked(&record);
            self.keys.push(RunningKey { public: *public, record, is_revoked, floor_before });
        }
        Some(self.keys.len() - 1)
    }

    /// Entries that the settle could create.
    pub(super) fn new_entries(&self) -> u64 {
        self.orders.iter().filter(|order| order.is_new).count() as u64
    }

    pub(super) fn deposit(&self, account: &Address, asset: AssetId) -> VenueDeposit {
        let stored = || self.venues.deposit(self.venue, account, asset);
        self.deposits.get(&(*account, asset)).copied().unwrap_or_else(stored)
    }

    /// Units of a deposit that pay for fills.
    pub(super) fn payable(&self, account: &Address, asset: AssetId) -> Amount {
        let deposit = self.deposit(account, asset);
        let leaving = deposit.leaving.filter(|leaving| self.venues.pays_for_fills(leaving.since));
        deposit.free + leaving.map_or(0, |leaving| leaving.units)
    }

    pub(super) fn key_mut(&mut self, at: usize) -> &mut TradingKey {
        if let Some(saved) = &mut self.saved {
            let record = &self.keys[at].record;
            saved.keys.push(SavedKey { at, net: record.net.clone(), floor: record.floor });
        }
        &mut self.keys[at].record
    }

    pub(super) fn set_entry(&mut self, at: usize, entry: FilledOrder) {
        let order = &mut self.orders[at];
        if let Some(saved) = &mut self.saved {
            saved.orders.push((at, order.entry));
        }
        order.entry = Some(entry);
    }

    fn set_deposit(&mut self, account: Address, asset: AssetId, deposit: VenueDeposit) {
        let id = (account, asset);
        let before = self.deposit(&account, asset);
        if let Some(saved) = &mut self.saved {
            saved.deposits.push((id, before));
        }
        self.deposits.insert(id, deposit);
    }

    /// Takes units from what is free, and then from what leaves.
    pub(super) fn draw(&mut self, account: Address, asset: AssetId, units: Amount) {
        let mut deposit = self.deposit(&account, asset);
        let from_free = units.min(deposit.free);
        deposit.free -= from_free;
        let rest = units - from_free;
        if let Some(leaving) = deposit.leaving.as_mut().filter(|_| rest > 0) {
            leaving.units = leaving.units.checked_sub(rest).expect("the deposit was long enough");
        }
        deposit.leaving = deposit.leaving.filter(|leaving| leaving.units > 0);
        self.set_deposit(account, asset, deposit);
    }

    /// Adds units that are free.
    pub(super) fn pay(&mut self, account: Address, asset: AssetId, units: Amount) {
        if units > 0 {
            let mut deposit = self.deposit(&account, asset);
            deposit.free = deposit.free.checked_add(units).expect("an asset's issue is capped");
            self.set_deposit(account, asset, deposit);
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
            let record = &mut self.keys[at].record;
            (record.net, record.floor) = (net, floor);
        }
        self.deposits.extend(saved.deposits.into_iter().rev());
    }
}
