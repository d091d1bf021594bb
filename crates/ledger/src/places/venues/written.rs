//! Writing the records of a settle: each map takes all of its edits at once, in the order of their ids.

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
        self.rows.extend(rows);
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
        for ((_, _, asset), DepositChange { before, after }) in changes {
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

fn write_deposits(map: &mut SharedMap<DepositId, VenueDeposit>, changes: Vec<(DepositId, DepositChange)>) {
    map.edit(changes, |_, DepositChange { after, .. }, _| match after.units() {
        0 => Edited::Gone,
        _ => Edited::Is(after),
    });
}

fn write_keys(map: &mut SharedMap<TradingKeyId, TradingKey>, changes: Vec<(TradingKeyId, KeyChange)>) {
    map.edit(changes, |_, KeyChange { net, floor, raises, .. }, key| {
        let key = key.expect("the settle has found it");
        key.net.clear();
        key.net.extend_from_slice(&net);
        (key.floor, key.raises) = (floor, raises);
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
