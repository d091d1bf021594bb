//! Edits of owners and traders: venues, markets, bonds, deposits, keys, collections, operators and fences.

use primitives::venue::{REPORT_KEYS_MAX, VenueId, VenueOperation, VenueOperator};
use primitives::{Address, Amount};
use proofs::{
    DepositId, FilledId, LeavingBond, LeavingDeposit, TradingKey, TradingKeyId, VenueDeposit, VenueRecord,
    VenueRecordId,
};

use super::Venues;
use super::mistake::VenueMistake;
use super::records::{RAISES_MAX, ended, new_key};
use super::step::Step;

impl Venues {
    /// Applies an edit of its stage: bonds, deposits, and then edits of keys, collections and operators.
    pub(super) fn edit(&mut self, sender: Address, operation: &VenueOperation, step: &mut Step<'_>) {
        match operation {
            &VenueOperation::Open { venue, operator, fee_cap_ppm, bond } => {
                self.open(venue, sender, operator, fee_cap_ppm, bond);
            }
            &VenueOperation::Bond { venue, units } => {
                let record = self.venue_mut(venue);
                record.bond = record.bond.checked_add(units).expect("an asset's issue is capped");
            }
            &VenueOperation::Unbond { venue, units } => self.unbond(venue, units),
            &VenueOperation::Deposit { venue, asset, units } => {
                self.add_free((venue, sender, asset), units);
                step.accounts.push(sender);
            }
            &VenueOperation::List { venue, market, terms } => {
                self.venue_mut(venue).markets += 1;
                self.touched.push(VenueRecordId::Market(venue, market));
                self.markets.insert((venue, market), terms);
            }
            VenueOperation::ChangeOperator { venue, to, .. } => self.change_operator(*venue, *to),
            VenueOperation::Authorize { venue, key, mandate, .. } => {
                let id = (*venue, *key);
                self.touched.push(VenueRecordId::Key(id));
                self.keys.insert(id, new_key(sender, mandate.clone()));
            }
            VenueOperation::Revoke { venue, key } => {
                let now = self.now().height;
                self.key_mut((*venue, *key)).revoked = Some(now);
                self.queues.edits.insert((now, (*venue, *key)), ());
            }
            VenueOperation::RaiseFloor { venue, key, floor } => self.raise((*venue, *key), *floor),
            &VenueOperation::Collect { venue, asset, units } => {
                self.collect((venue, sender, asset), units);
                step.accounts.push(sender);
            }
            &VenueOperation::Recall { venue, asset, account } => {
                self.recall((venue, account, asset));
                step.accounts.push(account);
            }
            VenueOperation::Fence { venue, .. } => self.fence(*venue),
            VenueOperation::Settle(_)
            | VenueOperation::Accuse(_)
            | VenueOperation::Claim(_)
            | VenueOperation::AccuseStep(_)
            | VenueOperation::ClaimStep(_) => {}
        }
    }

    fn open(&mut self, venue: VenueId, owner: Address, operator: VenueOperator, fee_cap_ppm: u32, bond: Amount) {
        self.touched.push(VenueRecordId::Venue(venue));
        let record = VenueRecord {
            owner,
            operator,
            fee_cap_ppm,
            incarnation: 0,
            judged: 0,
            report_keys: vec![operator.report_key],
            fills: Default::default(),
            finals: Default::default(),
            bond,
            leaving: None,
            markets: 0,
            entries: 0,
        };
        self.venues.insert(venue, record);
    }

    /// Begins to withdraw from the bond, which penalties may have lessened in this block.
    fn unbond(&mut self, venue: VenueId, units: Amount) {
        let since = self.now();
        let record = self.venue_mut(venue);
        let units = units.min(record.bond);
        if units > 0 {
            record.bond -= units;
            record.leaving = Some(LeavingBond { units, since });
        }
    }

    fn change_operator(&mut self, venue: VenueId, to: VenueOperator) {
        let forgets = self.makes(VenueMistake::OperatorsForgetKeys);
        let record = self.venue_mut(venue);
        record.operator = to;
        if forgets {
            record.report_keys.clear();
        }
        if !record.report_keys.contains(&to.report_key) {
            record.report_keys.push(to.report_key);
        }
    }

    /// Whether an incarnation may have this report key, too.
    pub(super) fn has_room_for_key(&self, venue: &VenueRecord, to: &VenueOperator) -> bool {
        venue.report_keys.contains(&to.report_key)
            || venue.report_keys.len() < REPORT_KEYS_MAX
            || self.makes(VenueMistake::AnyNumberOfKeys)
    }

    fn key_mut(&mut self, id: TradingKeyId) -> &mut TradingKey {
        self.touched.push(VenueRecordId::Key(id));
        self.keys.get_mut(&id).expect("the filter has found it")
    }

    /// Adds a raise; those that are past are merged into the floor.
    fn raise(&mut self, id: TradingKeyId, floor: primitives::venue::OrderNumber) {
        let now = self.now().height;
        let Some(key) = self.keys.get(&id) else { return };
        let in_force = self.floor_in_force(key);
        let waiting: Vec<_> = key.raises.iter().filter(|(since, _)| !self.is_past(*since)).copied().collect();
        let prunes_at_once = self.makes(VenueMistake::FloorPrunesAtOnce);
        let key = self.key_mut(id);
        key.floor = key.floor.max(in_force);
        key.raises = waiting;
        // Fills of the block may have raised the floor above it; then there is nothing left to wait for.
        if floor > key.floor && key.raises.len() < RAISES_MAX {
            key.raises.push((now, floor));
            self.queues.edits.insert((now, id), ());
        }
        if prunes_at_once {
            self.prune_below(id, floor);
        }
    }

    /// A planted mistake: entries below a floor that is not in force are forgotten.
    fn prune_below(&mut self, id: TradingKeyId, floor: primitives::venue::OrderNumber) {
        let is_below = |of: &FilledId| (of.0, of.2) == id && super::records::number_of(of) < floor;
        let below: Vec<_> = self.filled.iter().map(|(of, _)| *of).filter(is_below).collect();
        below.into_iter().for_each(|of| self.remove_filled(of));
    }

    /// Moves units to what leaves, or all that are free.
    fn collect(&mut self, id: DepositId, units: Amount) {
        let since = self.now().height;
        let Some(VenueDeposit { free, leaving: None }) = self.deposits.get(&id).copied() else { return };
        let units = units.min(free);
        if units > 0 {
            let leaving = Some(LeavingDeposit { units, since });
            self.set_deposit(id, VenueDeposit { free: free - units, leaving });
            self.queues.payouts.insert((since, id), ());
        }
    }

    /// Collects all of a deposit, for its owner; a collection that waits begins anew.
    fn recall(&mut self, id: DepositId) {
        let since = self.now().height;
        let units = self.deposits.get(&id).map_or(0, VenueDeposit::units);
        if units > 0 {
            self.set_deposit(id, VenueDeposit { free: 0, leaving: Some(LeavingDeposit { units, since }) });
            self.queues.payouts.insert((since, id), ());
        }
    }

    /// Ends the present incarnation, and begins the next one with the present report key alone.
    fn fence(&mut self, venue: VenueId) {
        let now = self.now();
        let (forgets_keys, forgets_tree) =
            (self.makes(VenueMistake::FinalsForgetKeys), self.makes(VenueMistake::FencesForgetTheTree));
        let record = self.venue_mut(venue);
        let mut ended = ended(record, now);
        if forgets_keys {
            ended.report_keys = vec![record.operator.report_key];
        }
        if forgets_tree {
            ended.tree = Default::default();
        }
        assert!(record.finals.append(ended.leaf(venue)), "incarnations have 32 bits");
        record.incarnation += 1;
        record.report_keys = vec![record.operator.report_key];
        record.fills = Default::default();
    }

    /// Begins again as another network: every incarnation ends and is judged, as orders and reports of before name
    /// another network. Deposits and bonds stay.
    pub(crate) fn begin_again(&mut self, network: primitives::Digest) {
        self.network = network;
        let venues: Vec<VenueId> = self.iter().map(|(venue, _)| venue).collect();
        for venue in venues {
            self.fence(venue);
            let record = self.venue_mut(venue);
            record.judged = record.incarnation;
        }
        self.touched.clear();
        self.queue_all();
    }
}
