//! Settles of a block: which of them count (B3 to B5), their fills in order, and what the busts cost.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use primitives::venue::{OrderLife, Settle, SettledFill, VenueId, VenueSide};
use primitives::{Address, Amount, AssetId, Digest, Sequence, TransactionId};
use proofs::{
    BustGuilt, FillVerdict, FilledId, FilledOrder, SettledFills, TradingKey, TradingKeyId, VenueDeposit, VenueRecordId,
};

use super::Venues;
use super::mistake::VenueMistake;
use super::records::filled_id;
use super::running::Running;
use super::step::Step;

/// A settle and its transaction.
#[derive(Clone, Copy)]
pub(super) struct SettleEdit<'a> {
    pub sender: Address,
    pub sequence: Sequence,
    pub settle: &'a Settle,
}

/// What the fills of a settle changed, before it is written.
struct Judged {
    leaves: Vec<Digest>,
    verdicts: Vec<FillVerdict>,
    penalties: Vec<(Option<Address>, Amount)>,
    deposits: Vec<((Address, AssetId), VenueDeposit)>,
    keys: Vec<(TradingKeyId, TradingKey)>,
    entries: Vec<(FilledId, FilledOrder)>,
}

impl Venues {
    /// Applies the settles of a block. Of a venue's settles that pass B3 and B4, the one that settles most counts, of
    /// equals the one with the lowest id; the others pay and do nothing. Settles of two venues touch no common record.
    pub(super) fn settle_all(&mut self, settles: &[SettleEdit<'_>], step: &mut Step<'_>) {
        let mut by_venue: BTreeMap<VenueId, Vec<(SettleEdit<'_>, Running<'_>)>> = BTreeMap::new();
        for edit in settles {
            match self.running(edit.settle) {
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
        judged.into_iter().for_each(|(settle, judged)| self.write(settle, judged, step));
    }

    /// A settle that passes B3 and B4: it begins at the settled count, orders without signature have entries, and the
    /// bond and the room for entries suffice for all of it.
    fn running(&self, settle: &Settle) -> Option<Running<'_>> {
        let venue = self.venues.get(&settle.venue)?;
        let is_next = settle.from == venue.fills.count()
            || (self.makes(VenueMistake::CutCountedTwice) && settle.from < venue.fills.count());
        let running = Running::of(self, settle).filter(|_| is_next)?;
        let costs = settle.fills.iter().map(|fill| running.liability(fill).map(|(_, penalty)| u128::from(penalty)));
        let penalties = costs.sum::<Option<u128>>()?;
        let least = if self.makes(VenueMistake::PenaltiesTakeTheWholeBond) { 0 } else { self.terms.bond_min };
        let needed = u128::from(least).saturating_add(penalties);
        let entries = venue.entries.saturating_add(running.new_entries());
        (u128::from(venue.bond) >= needed && entries <= self.terms.entries_max).then_some(running)
    }

    fn write(&mut self, settle: &Settle, judged: Judged, step: &mut Step<'_>) {
        let Judged { leaves, verdicts, penalties, deposits, keys, entries } = judged;
        let record = self.venue_mut(settle.venue);
        for leaf in &leaves {
            assert!(record.fills.append(*leaf), "the count of fills has 64 bits, as B1 has checked");
        }
        for (to, units) in penalties {
            self.venue_mut(settle.venue).bond -= units;
            step.take_bond(to, units);
        }
        for ((account, asset), deposit) in deposits {
            // A group that was undone leaves what was there before.
            if self.deposit(settle.venue, &account, asset) != deposit {
                self.set_deposit((settle.venue, account, asset), deposit);
                step.accounts.insert(account);
            }
        }
        entries.into_iter().for_each(|(id, entry)| self.set_filled(id, entry));
        for (id, record) in keys {
            self.touched.insert(VenueRecordId::Key(id));
            self.keys.insert(id, record);
            self.note_dead(id);
        }
        let (venue, incarnation, from) = (settle.venue, settle.incarnation, settle.from);
        step.settled.push(SettledFills { venue, incarnation, from, leaves, verdicts });
    }
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

impl Running<'_> {
    /// Judges all fills in order. The fills of a fill-or-kill order apply or bust together.
    fn run(mut self, settle: &Settle) -> Judged {
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
        let digest = |at: u16| &self.orders[usize::from(at)].digest;
        let leaves = settle.fills.iter().map(|fill| fill.leaf(digest(fill.buy), digest(fill.sell))).collect();
        let busts = settle.fills.iter().zip(&verdicts);
        let penalties = busts.filter_map(|(fill, verdict)| self.penalty(fill, verdict)).collect();
        let Running { venue, orders, keys, deposits, .. } = self;
        let name = |key: Option<usize>| key.map(|key| keys[key].public);
        let changed = orders.iter().filter(|order| order.entry != order.entry_before);
        let written = changed.filter_map(|order| Some((name(order.key)?, order.order.number, order.entry?)));
        let entries = written.map(|(key, number, entry)| (filled_id(venue, &key, &number), entry)).collect();
        let mut changed_keys: Vec<usize> =
            orders.iter().filter(|order| order.entry != order.entry_before).filter_map(|order| order.key).collect();
        changed_keys.dedup();
        let keys = changed_keys.into_iter().map(|at| ((venue, keys[at].public), keys[at].record.clone())).collect();
        Judged { leaves, verdicts, penalties, deposits: deposits.into_iter().collect(), keys, entries }
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
