//! Settles of a block: which of them count (B3 to B5), their fills in order, and what the busts cost.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use borsh::BorshSerialize;
use primitives::venue::{FillTree, OrderLife, OrderNumber, Settle, SettledFill, VenueId, VenueSide};
use primitives::{Address, Amount, Digest, Height, Sequence, TransactionId};
use proofs::{
    BustGuilt, DepositId, FillVerdict, FilledId, FilledOrder, SettledFills, TradingKey, TradingKeyId, VenueDeposit,
    VenueRecordId, record_value,
};
use rayon::prelude::*;

use super::Venues;
use super::mistake::VenueMistake;
use super::records::{Gains, VenueRow, encode_key_with, filled_id};
use super::running::{ORDERS_OF_THREAD, Running, RunningDeposit, RunningKey, RunningOrder};
use super::step::Step;
use crate::places::shared_map::EntryPlace;

/// A settle and its transaction.
#[derive(Clone, Copy)]
pub(super) struct SettleEdit<'a> {
    pub sender: Address,
    pub sequence: Sequence,
    pub settle: &'a Settle,
}

/// What a settle changes of a key.
pub(super) struct KeyChange {
    /// Where the key was before the block's settles.
    pub place: EntryPlace,
    pub net: Gains,
    pub floor: OrderNumber,
    pub raises: Vec<(Height, OrderNumber)>,
    /// Whether entries may be below the floor now.
    pub is_raised: bool,
}

/// A deposit before and after a settle.
pub(super) struct DepositChange {
    /// Where it was before the block's settles, if it was there.
    pub place: Option<EntryPlace>,
    pub before: VenueDeposit,
    pub after: VenueDeposit,
}

/// What the fills of a settle changed, before it is written. Records are in the order of their ids.
pub(super) struct Judged {
    leaves: Vec<Digest>,
    /// The venue's tree with these leaves.
    tree: FillTree,
    verdicts: Vec<FillVerdict>,
    penalties: Vec<(Option<Address>, Amount)>,
    pub deposits: Vec<(DepositId, DepositChange)>,
    pub keys: Vec<(TradingKeyId, KeyChange)>,
    pub entries: Vec<(FilledId, FilledOrder)>,
    /// The records as input for the trie, in no order.
    pub rows: Vec<VenueRow>,
}

/// Applies the settles of a block. Of a venue's settles that pass B3 and B4, the one that settles most counts, of
/// equals the one with the lowest id. The others pay and do nothing. Settles of two venues touch no common record.
pub(super) fn settle_all(state: &mut Venues, settles: &[SettleEdit<'_>], step: &mut Step<'_>) {
    if !settles.is_empty() {
        // One entry into the pool of threads for all of the work.
        rayon::join(|| settle_in_pool(state, settles, step), || ());
    }
}

fn settle_in_pool(state: &mut Venues, settles: &[SettleEdit<'_>], step: &mut Step<'_>) {
    let mut by_venue: BTreeMap<VenueId, Vec<(SettleEdit<'_>, Running<'_>)>> = BTreeMap::new();
    for edit in settles {
        match running(state, edit.settle) {
            Some(running) => by_venue.entry(edit.settle.venue).or_default().push((*edit, running)),
            None => step.void.push((edit.sender, edit.sequence)),
        }
    }
    let mut judged = Vec::new();
    for of_venue in by_venue.into_values() {
        let counting = counting_one(&of_venue, |edit| step.id(edit.sender, edit.sequence)).sequence;
        for (edit, running) in of_venue {
            match edit.sequence == counting {
                true => judged.push((edit.settle, running.run(edit.settle))),
                false => step.void.push((edit.sender, edit.sequence)),
            }
        }
    }
    judged.into_iter().for_each(|(settle, judged)| write(state, settle, judged, step));
}

/// A settle that passes B3 and B4: it begins at the settled count, orders without signature have entries, and the
/// bond and the room for entries suffice for all of it.
fn running<'v>(state: &'v Venues, settle: &'v Settle) -> Option<Running<'v>> {
    let venue = state.venues.get(&settle.venue)?;
    let is_next = settle.from == venue.fills.count()
        || (state.makes(VenueMistake::CutCountedTwice) && settle.from < venue.fills.count());
    let running = is_next.then(|| Running::of(state, settle)).flatten()?;
    let costs = settle.fills.iter().map(|fill| running.liability(fill).map(|(_, penalty)| u128::from(penalty)));
    let penalties = costs.sum::<Option<u128>>()?;
    let least = if state.makes(VenueMistake::PenaltiesTakeTheWholeBond) { 0 } else { state.terms.bond_min };
    let needed = u128::from(least).saturating_add(penalties);
    let entries = venue.entries.saturating_add(running.new_entries());
    (u128::from(venue.bond) >= needed && entries <= state.terms.entries_max).then_some(running)
}

fn write(state: &mut Venues, settle: &Settle, mut judged: Judged, step: &mut Step<'_>) {
    let venue = settle.venue;
    for (to, units) in std::mem::take(&mut judged.penalties) {
        state.venue_mut(venue).bond -= units;
        step.take_bond(to, units);
    }
    step.accounts.extend(judged.deposits.iter().map(|((_, account, _), _)| *account));
    state.venue_mut(venue).fills = std::mem::take(&mut judged.tree);
    let (leaves, verdicts) = (std::mem::take(&mut judged.leaves), std::mem::take(&mut judged.verdicts));
    state.write_records(venue, judged);
    step.settled.push(SettledFills { venue, incarnation: settle.incarnation, from: settle.from, leaves, verdicts });
}

/// Changed records as input for the trie.
fn rows_of(
    deposits: &[(DepositId, DepositChange)],
    befores: &[&TradingKey],
    keys: &[(TradingKeyId, KeyChange)],
    entries: &[(FilledId, FilledOrder)],
) -> Vec<VenueRow> {
    let deposit = |room: &mut Vec<u8>, (id, change): &(DepositId, DepositChange)| {
        let value = (change.after.units() > 0).then(|| record_value(encoded(&change.after, room)));
        (VenueRecordId::Deposit(*id).key(), value)
    };
    let key = |room: &mut Vec<u8>, (before, (id, change)): (&&TradingKey, &(TradingKeyId, KeyChange))| {
        room.clear();
        encode_key_with(before, &change.net, change.floor, &change.raises, room);
        (VenueRecordId::Key(*id).key(), Some(record_value(room)))
    };
    let entry = |room: &mut Vec<u8>, (id, entry): &(FilledId, FilledOrder)| {
        (VenueRecordId::Filled(*id).key(), Some(record_value(encoded(entry, room))))
    };
    let deposits = deposits.par_iter().with_min_len(ORDERS_OF_THREAD).map_init(Vec::new, deposit);
    let keys = befores.par_iter().zip(keys).with_min_len(ORDERS_OF_THREAD).map_init(Vec::new, key);
    let entries = entries.par_iter().with_min_len(ORDERS_OF_THREAD).map_init(Vec::new, entry);
    deposits.chain(keys).chain(entries).collect()
}

/// The encoding of a record, in a room that is written over.
fn encoded<'r>(record: &impl BorshSerialize, room: &'r mut Vec<u8>) -> &'r [u8] {
    room.clear();
    record.serialize(room).expect("writing to memory cannot fail");
    room
}

/// The settle that counts.
fn counting_one<'a>(
    of_venue: &[(SettleEdit<'a>, Running<'_>)],
    id: impl Fn(&SettleEdit<'_>) -> TransactionId,
) -> SettleEdit<'a> {
    let edits = || of_venue.iter().map(|(edit, _)| *edit);
    let most = edits().map(|edit| edit.settle.fills.len()).max().expect("not empty");
    let mut equal = edits().filter(|edit| edit.settle.fills.len() == most);
    match equal.clone().count() {
        1 => equal.next().expect("there is one"),
        _ => equal.max_by_key(|edit| Reverse(id(edit))).expect("not empty"),
    }
}

impl<'v> Running<'v> {
    /// Judges all fills in order, while another thread adds their leaves to the tree: leaves say nothing of verdicts.
    fn run(mut self, settle: &Settle) -> Judged {
        let leaves = self.leaves(settle);
        let mut tree = self.tree.clone();
        let add =
            || leaves.iter().for_each(|leaf| assert!(tree.append(*leaf), "the count has 64 bits, as B1 has checked"));
        let (verdicts, ()) = rayon::join(|| self.judge_all(settle), add);
        let busts = settle.fills.iter().zip(&verdicts);
        let penalties = busts.filter_map(|(fill, verdict)| self.penalty(fill, verdict)).collect();
        let (deposits, entries) = (self.changed_deposits(), self.changed_entries());
        let (befores, keys) = self.changed_keys();
        let rows = rows_of(&deposits, &befores, &keys, &entries);
        Judged { leaves, tree, verdicts, penalties, deposits, keys, entries, rows }
    }

    fn leaves(&self, settle: &Settle) -> Vec<Digest> {
        let digest = |at: u16| &self.orders[usize::from(at)].digest;
        let leaf = |fill: &SettledFill| fill.leaf(digest(fill.buy), digest(fill.sell));
        settle.fills.par_iter().with_min_len(ORDERS_OF_THREAD).map(leaf).collect()
    }

    /// The verdicts of all fills. Those of a fill-or-kill order apply or bust together.
    fn judge_all(&mut self, settle: &Settle) -> Vec<FillVerdict> {
        let mut verdicts = Vec::with_capacity(settle.fills.len());
        let mut rest = &settle.fills[..];
        while let Some(first) = rest.first() {
            let (group, others) = rest.split_at(self.group_of(first, rest));
            rest = others;
            match self.run_group(group) {
                None => verdicts.extend(group.iter().map(|_| FillVerdict::Applied)),
                Some(bust) => verdicts.extend(group.iter().map(|_| bust)),
            }
        }
        verdicts
    }

    fn changed_deposits(&self) -> Vec<(DepositId, DepositChange)> {
        // A group that was undone leaves what was there before.
        let changed = self.deposits.iter().filter(|deposit| deposit.now != deposit.before);
        let change = |of: &RunningDeposit| {
            let (place, before, after) = (of.place, of.before, of.now);
            ((self.venue, of.id.0, of.id.1), DepositChange { place, before, after })
        };
        let mut changes = Vec::with_capacity(self.deposits.len());
        changes.extend(changed.map(change));
        changes
    }

    fn changed_entries(&self) -> Vec<(FilledId, FilledOrder)> {
        let changed = self.orders.iter().filter(|order| order.entry != order.entry_before);
        let entry = |order: &RunningOrder<'_>| {
            let key = &self.keys[order.key?].public;
            Some((filled_id(self.venue, key, &order.order.number), order.entry?))
        };
        let mut entries = Vec::with_capacity(self.orders.len());
        entries.extend(changed.filter_map(entry));
        entries
    }

    /// The keys of the orders that were filled, which are in their order: as they were, and what changes.
    fn changed_keys(self) -> (Vec<&'v TradingKey>, Vec<(TradingKeyId, KeyChange)>) {
        let changed = self.orders.iter().filter(|order| order.entry != order.entry_before);
        let mut at: Vec<usize> = changed.filter_map(|order| order.key).collect();
        at.dedup();
        let mut at = at.into_iter().peekable();
        let mut changes = (Vec::with_capacity(self.keys.len()), Vec::with_capacity(self.keys.len()));
        for (_, key) in self.keys.into_iter().enumerate().filter(|(key, _)| at.next_if_eq(key).is_some()) {
            let RunningKey { public, place, before, net, floor, floor_before, raises, .. } = key;
            let change = KeyChange { place, net, floor, raises, is_raised: floor > floor_before };
            changes.0.push(before);
            changes.1.push(((self.venue, public), change));
        }
        changes
    }

    /// How many of the next fills apply or bust together.
    fn group_of(&self, first: &SettledFill, rest: &[SettledFill]) -> usize {
        let taker = |fill: &SettledFill| usize::from(if fill.taker == VenueSide::Buy { fill.buy } else { fill.sell });
        let at = taker(first);
        let is_killed = self.orders[at].order.life == OrderLife::FillOrKill;
        match is_killed && !self.venues.makes(VenueMistake::GroupCutInTwo) {
            true => rest.iter().take_while(|fill| taker(fill) == at).count(),
            false => 1,
        }
    }

    /// Applies a group, or nothing of it: then returns the verdict of its first fill that busts.
    fn run_group(&mut self, group: &[SettledFill]) -> Option<FillVerdict> {
        // A fill that busts has changed nothing; only a longer group is undone.
        if group.len() > 1 {
            self.begin_group();
        }
        let bust = group.iter().find_map(|fill| match self.judge(fill) {
            Ok(moves) => {
                self.apply(moves);
                None
            }
            Err((reason, guilt)) => Some(FillVerdict::Bust(reason, guilt)),
        });
        self.end_group(bust.is_none());
        if bust.is_some() {
            let moves = group.first().and_then(|fill| self.moves_though_bust(fill));
            moves.into_iter().for_each(|moves| self.apply(moves));
        }
        bust
    }

    /// What a bust costs, and whom it is paid: the side that is innocent, if the other one is guilty.
    fn penalty(&self, fill: &SettledFill, verdict: &FillVerdict) -> Option<(Option<Address>, Amount)> {
        let FillVerdict::Bust(_, guilt) = verdict else { return None };
        let ([buyer, seller], penalty) = self.liability(fill)?;
        let is_reversed = self.venues.makes(VenueMistake::GuiltyIsPaid);
        let to = match guilt {
            BustGuilt::Buyer if is_reversed => buyer,
            BustGuilt::Seller if is_reversed => seller,
            BustGuilt::Both if self.venues.makes(VenueMistake::BothGuiltyArePaid) => buyer,
            BustGuilt::Buyer => seller,
            BustGuilt::Seller => buyer,
            BustGuilt::Nobody | BustGuilt::Both => None,
        };
        Some((to, penalty))
    }
}
