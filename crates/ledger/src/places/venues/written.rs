//! Writing the records of a settle: each map takes all of its edits at once, in the order of their ids. Deposits and
//! keys are written where they were found when the settle was judged.

use primitives::venue::VenueId;
use primitives::{AssetId, Height};
use proofs::{DepositId, FilledId, FilledOrder, TradingKey, TradingKeyId, VenueDeposit};

use super::Venues;
use super::mistake::VenueMistake;
use super::settle::{DepositChange, Judged, KeyChange};
use crate::places::shared_map::{Edited, SharedMap};
use crate::places::sums::Sums;

impl Venues {
    /// Writes the records of a venue that a settle changed. The maps have nothing in common, so threads share them.
    pub(super) fn write_records(&mut self, venue: VenueId, judged: Judged) {
        let Judged { deposits: of_deposits, keys: of_keys, entries, rows, .. } = judged;
        match self.rows.is_empty() {
            true => self.rows = rows,
            false => self.rows.extend(rows),
        }
        self.count_deposits(&of_deposits);
        let raised: Vec<TradingKeyId> = of_keys.iter().filter(|(_, key)| key.is_raised).map(|(id, _)| *id).collect();
        let keeps_stale = self.makes(VenueMistake::ForgetsBlindly);
        let Venues { deposits, keys, filled, queues, .. } = self;
        let expiries = &mut queues.expiries;
        let ((), ((), new)) = rayon::join(
            || write_deposits(deposits, of_deposits),
            || rayon::join(|| write_keys(keys, of_keys), || write_entries(filled, expiries, entries, keeps_stale)),
        );
        self.venue_mut(venue).entries += new;
        raised.into_iter().for_each(|id| self.note_dead(id));
    }

    /// Counts what deposits gain and lose.
    fn count_deposits(&mut self, changes: &[(DepositId, DepositChange)]) {
        let mut gained = Sums::default();
        for ((_, _, asset), DepositChange { before, after, .. }) in changes {
            gained.add(*asset, i128::from(after.units()) - i128::from(before.units()));
        }
        for at in 0..gained.len() {
            let (asset, gained) = (AssetId(at as u32), gained.get(at));
            if gained != 0 {
                let sum = self.deposited.entry(asset).or_default();
                *sum = sum.checked_add_signed(gained).expect("deposits hold what leaves them");
            }
        }
        self.moved.merge(&gained);
    }
}

/// Writes deposits where they are; others come, or go.
fn write_deposits(map: &mut SharedMap<DepositId, VenueDeposit>, changes: Vec<(DepositId, DepositChange)>) {
    let place = |change: &DepositChange| change.place.filter(|_| change.after.units() > 0);
    let stay = changes.iter().filter_map(|(id, change)| Some((place(change)?, *id, change.after)));
    let mut others = map.edit_places(stay, |after, deposit| *deposit = after);
    let rest = changes.iter().filter(|(_, change)| place(change).is_none());
    others.extend(rest.map(|(id, change)| (*id, change.after)));
    others.sort_unstable_by_key(|(id, _)| *id);
    map.edit(others, |_, after, _| match after.units() {
        0 => Edited::Gone,
        _ => Edited::Is(after),
    });
}

fn write_keys(map: &mut SharedMap<TradingKeyId, TradingKey>, changes: Vec<(TradingKeyId, KeyChange)>) {
    let write = |KeyChange { net, floor, raises, .. }: KeyChange, key: &mut TradingKey| {
        key.net.clear();
        key.net.extend_from_slice(&net);
        (key.floor, key.raises) = (floor, raises);
    };
    let moved = map.edit_places(changes.into_iter().map(|(id, change)| (change.place, id, change)), write);
    map.edit(moved, |_, change, key| {
        write(change, key.expect("the settle has found it"));
        Edited::Stays
    });
}

/// Writes entries, and when each is forgotten; returns how many are new.
fn write_entries(
    map: &mut SharedMap<FilledId, FilledOrder>,
    expiries: &mut SharedMap<(Height, FilledId), ()>,
    entries: Vec<(FilledId, FilledOrder)>,
    keeps_stale: bool,
) -> u64 {
    let mut queued = Vec::with_capacity(entries.len());
    let mut new = 0;
    map.edit(entries, |id, entry, found| {
        new += u64::from(found.is_none());
        match found {
            Some(before) if before.expiry == entry.expiry => {}
            Some(before) if !keeps_stale => queued.extend([((before.expiry, *id), false), ((entry.expiry, *id), true)]),
            _ => queued.push(((entry.expiry, *id), true)),
        }
        Edited::Is(entry)
    });
    queued.sort_unstable();
    expiries.edit(queued, |_, is_queued, _| if is_queued { Edited::Is(()) } else { Edited::Gone });
    new
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use primitives::Address;

    use super::*;

    /// A settle of another venue of the same block has removed and added deposits before.
    #[test]
    fn deposits_are_written_though_they_are_not_where_they_were() {
        let id = |venue: VenueId, at: u32| -> DepositId {
            let mut account = [0; 20];
            account[..4].copy_from_slice(&at.to_be_bytes());
            (venue, Address(account), AssetId(at % 2))
        };
        let free = |free| VenueDeposit { free, leaving: None };
        let (mut map, mut plain) = (SharedMap::default(), BTreeMap::new());
        for at in (0..900).map(|at| id(1, at)).chain((0..200).map(|at| id(0, 2 * at))) {
            map.insert(at, free(7));
            plain.insert(at, free(7));
        }
        let found = map.clone();
        let mut finder = found.finder();
        let change = |at: u32| {
            let (id, after) = (id(1, at), free(u64::from(at % 5)));
            let found = finder.find_place(&id);
            let (place, before) = (found.map(|(place, _)| place), found.map_or(free(0), |(_, before)| *before));
            (id, DepositChange { place, before, after })
        };
        let changes: Vec<(DepositId, DepositChange)> = (0..1_000).step_by(3).map(change).collect();
        for at in 0..100 {
            map.insert(id(0, 2 * at + 1), free(3));
            plain.insert(id(0, 2 * at + 1), free(3));
            map.remove(&id(0, 4 * at));
            plain.remove(&id(0, 4 * at));
        }
        for (id, DepositChange { after, .. }) in &changes {
            if after.units() == 0 {
                plain.remove(id)
            } else {
                plain.insert(*id, *after)
            };
        }
        write_deposits(&mut map, changes);
        assert!(map.iter().eq(plain.iter()));
        assert_eq!(map.len(), plain.len());
    }
}
