//! Replacements of offers, by the receipts.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{BlockReceipts, EndReason, EndedOffer, Outcome, Pair, Place, Traded};
use primitives::{Amount, Operation, slot_of};

use super::{Counted, Shadow, place_of};

impl Shadow {
    /// Of the replacements of an offer that nobody cancels the owner's last one counts, or else the last one of its
    /// session key. The new offer is smaller than asked for by what was sold meanwhile; what remains returns.
    pub(super) fn replace(
        &mut self,
        effective: &[Counted],
        cancelled: &BTreeSet<(Pair, Place)>,
        receipts: &BlockReceipts,
    ) -> Result<(), String> {
        let mut by_place: BTreeMap<(Pair, Place), Vec<&Counted>> = BTreeMap::new();
        for one in effective {
            let Operation::Replace(replace) = &one.0.body.operation else { continue };
            by_place.entry(place_of(one.0.body.account, &replace.old)).or_default().push(one);
        }
        let mut leaving: Vec<EndedOffer> = Vec::new();
        for ((pair, place), all) in by_place {
            let rank = |one: &Counted| (slot_of(one.0.body.sequence) == 0, one.0.body.sequence);
            let first = all.iter().map(|one| rank(one)).max().filter(|_| !cancelled.contains(&(pair, place)));
            for one @ (transaction, outcome) in all {
                if Some(rank(one)) != first {
                    if *outcome == Outcome::Void {
                        continue;
                    }
                    return Err(format!("of {place:?} another change counts, but {transaction:?} is {outcome:?}"));
                }
                let returned = self.replace_one((pair, place), one, receipts)?;
                leaving.push(EndedOffer { pair, place, returned, why: EndReason::Replaced });
            }
        }
        let told = receipts.batch.ended.iter().filter(|ended| ended.why == EndReason::Replaced);
        if told.eq(&leaving) { Ok(()) } else { Err(format!("{leaving:?} left, but {:?} ended", receipts.batch.ended)) }
    }

    /// One offer takes the place of another; returns the units that go back.
    fn replace_one(
        &mut self,
        old: (Pair, Place),
        (transaction, outcome): &Counted,
        receipts: &BlockReceipts,
    ) -> Result<Amount, String> {
        let (pair, body) = (old.0, &transaction.body);
        let (Operation::Replace(replace), Outcome::Replaced(told)) = (&body.operation, outcome) else {
            return Err(format!("a replacement has the outcome {outcome:?}"));
        };
        let rests = self.offers.remove(&old).ok_or(format!("{old:?} was replaced, but did not rest"))?;
        if rests > replace.remains || told.remained != rests {
            return Err(format!("{rests} units rested of {old:?}, but it was replaced: {replace:?}, {told:?}"));
        }
        let place = Place { limit: replace.limit, account: body.account, id: body.sequence };
        let asked = i128::from(replace.amount) - i128::from(replace.remains - rests);
        let size = Amount::try_from(asked).unwrap_or(0);
        let size = if self.is_too_small(pair, place.limit, size) { 0 } else { size };
        let taken = replace.amount.saturating_sub(replace.remains);
        let returned = rests + taken - size;
        self.add(body.account, pair.sell, i128::from(returned));
        if size > 0 {
            self.open((pair, place), size, replace.life, told.met, receipts)?;
        } else if told.met != Traded::NOT_PLACED {
            return Err(format!("too little was left of {old:?}, but {told:?} was placed"));
        }
        Ok(returned)
    }
}
