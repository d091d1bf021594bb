//! Which resting offers belong to session keys, and how many of them end at each height with their keys' timers.
//!
//! **Attack.** A key that is stopped or revoked, or whose timer is over, takes all its offers out of the book in one
//! block, and no end can be put off. So a key has at most [`SLOT_OFFERS_MAX`] of them, each has paid for its removal
//! when it was placed, and no more than [`crate::ENDS_MAX`] of all keys lapse at one height, as is with ends of
//! offers. Stops and revocations have a quota of the sub-block.
//!
//! All of it is derived from accounts and offers: no state root has it, and a restored ledger builds it again. An entry
//! takes 48 bytes beside those of its pages; chains without session keys have none.

use primitives::{Address, Amount, Height, Price, Sequence, SessionSlot, slot_of, slot_sequence};
use proofs::{Pair, Place};

use crate::places::offers::{Ends, OrderBook};
use crate::places::shared_map::SharedMap;

/// The most open offers of a session key.
pub const SLOT_OFFERS_MAX: u32 = 4_096;

/// The slot of an account.
pub(crate) type SlotId = (Address, SessionSlot);

/// What is known of a slot with open offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenOffers {
    count: u32,
    /// They end with this block, if the timer is not raised.
    alive: Height,
}

/// The open offers of session keys.
#[derive(Clone, Default)]
pub(crate) struct SlotOffers {
    /// By account and id.
    offers: SharedMap<(Address, Sequence), (Pair, Price)>,
    /// Slots that have offers.
    slots: SharedMap<SlotId, OpenOffers>,
    /// The same by the height at which their offers end.
    timers: SharedMap<(Height, Address, SessionSlot), ()>,
    /// Offers that end at each height.
    lapses: Ends,
}

impl SlotOffers {
    /// Those of a whole book; `alive` is the timer of a slot.
    ///
    /// # Errors
    /// The pair of an offer whose slot the account does not have.
    pub(crate) fn of(book: &OrderBook, alive: impl Fn(SlotId) -> Option<Height>) -> Result<SlotOffers, Pair> {
        let mut all = SlotOffers::default();
        for (pair, offers) in book.iter() {
            for place in offers.iter().map(|offer| offer.place).filter(|place| slot_of(place.id) > 0) {
                let alive = alive((place.account, slot_of(place.id))).ok_or(pair)?;
                all.come(pair, &place, alive);
            }
        }
        Ok(all)
    }

    /// Whether no session key has an open offer.
    pub(crate) fn is_empty(&self) -> bool {
        self.offers.len() == 0
    }

    /// Open offers of a slot.
    pub(crate) fn open(&self, slot: SlotId) -> u32 {
        self.slots.get(&slot).map_or(0, |open| open.count)
    }

    /// Offers that a slot may still open.
    pub(crate) fn room(&self, slot: SlotId) -> Amount {
        u64::from(SLOT_OFFERS_MAX.saturating_sub(self.open(slot)))
    }

    /// Offers that end at a height with the timers of their keys.
    pub(crate) fn lapsing_at(&self, height: Height) -> u32 {
        self.lapses.at(height)
    }

    /// An offer of a slot rests from now on; `alive` is the slot's timer.
    pub(crate) fn come(&mut self, pair: Pair, place: &Place, alive: Height) {
        let slot = (place.account, slot_of(place.id));
        if self.offers.insert((place.account, place.id), (pair, place.limit)).is_some() {
            return;
        }
        let count = self.open(slot) + 1;
        self.slots.insert(slot, OpenOffers { count, alive });
        self.timers.insert((alive, slot.0, slot.1), ());
        self.lapses.change(alive, 1);
    }

    /// An offer rests no more; one that is not here is ignored.
    pub(crate) fn leave(&mut self, place: &Place) {
        if self.offers.remove(&(place.account, place.id)).is_none() {
            return;
        }
        let slot = (place.account, slot_of(place.id));
        let OpenOffers { count, alive } = self.slots.remove(&slot).expect("a slot with offers is counted");
        self.lapses.change(alive, -1);
        if count == 1 {
            self.timers.remove(&(alive, slot.0, slot.1));
        } else {
            self.slots.insert(slot, OpenOffers { count: count - 1, alive });
        }
    }

    /// The timer of a slot has another height.
    pub(crate) fn set_timer(&mut self, slot: SlotId, alive: Height) {
        let Some(OpenOffers { count, alive: before }) = self.slots.get(&slot).copied() else { return };
        self.slots.insert(slot, OpenOffers { count, alive });
        self.timers.remove(&(before, slot.0, slot.1));
        self.timers.insert((alive, slot.0, slot.1), ());
        self.lapses.change(before, -(count as i32));
        self.lapses.change(alive, count as i32);
    }

    /// The slots with offers whose timers end at this height or before it.
    pub(crate) fn due(&self, height: Height) -> Vec<SlotId> {
        let due = self.timers.iter().take_while(|((alive, ..), ())| *alive <= height);
        due.map(|((_, account, slot), ())| (*account, *slot)).collect()
    }

    /// The open offers of a slot, by id.
    pub(crate) fn places(&self, (account, slot): SlotId) -> impl Iterator<Item = (Pair, Place)> + '_ {
        let own = self.offers.from(&(account, slot_sequence(slot, 0)));
        let own = own.take_while(move |((of, id), _)| *of == account && slot_of(*id) == slot);
        own.map(move |((_, id), (pair, limit))| (*pair, Place { limit: *limit, account, id: *id }))
    }

    /// Whether these are the same offers with the same timers.
    pub(crate) fn is_same(&self, other: &SlotOffers) -> bool {
        self.offers.iter().eq(other.offers.iter())
            && self.slots.iter().eq(other.slots.iter())
            && self.timers.iter().eq(other.timers.iter())
            && self.lapses.all() == other.lapses.all()
    }
}

#[cfg(test)]
mod tests {
    use primitives::AssetId;

    use super::*;
    use crate::places::offers::ENDS_MAX;

    const PAIR: Pair = Pair { sell: AssetId(0), buy: AssetId(1) };

    fn place(account: u8, slot: SessionSlot, number: u64) -> Place {
        Place { limit: Price::ONE, account: Address([account; 20]), id: slot_sequence(slot, number) }
    }

    /// Others fill a height with offers that lapse there: a victim's offers still end at it, no later, and a raise to
    /// the next height saves them.
    #[test]
    fn a_timer_keeps_its_promise_at_a_height_that_others_have_filled() {
        let (mut all, victim) = (SlotOffers::default(), (Address([1; 20]), 1));
        all.come(PAIR, &place(1, 1, 1), 10);
        all.lapses.change(10, ENDS_MAX as i32);
        assert_eq!((all.lapsing_at(10), all.due(9), all.due(10)), (ENDS_MAX + 1, vec![], vec![victim]));
        all.set_timer(victim, 11);
        assert_eq!((all.lapsing_at(10), all.due(10), all.due(11)), (ENDS_MAX, vec![], vec![victim]));
    }

    #[test]
    fn offers_are_found_by_their_slot_and_counted_at_its_timer() {
        let mut all = SlotOffers::default();
        for (account, slot, number) in [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1), (1, 1, 1)] {
            all.come(PAIR, &place(account, slot, number), 9 + u64::from(slot));
        }
        let (one, two) = ((Address([1; 20]), 1), (Address([1; 20]), 2));
        let ids = |all: &SlotOffers, of| all.places(of).map(|(_, place)| place.id).collect::<Vec<_>>();
        assert_eq!(ids(&all, one), [slot_sequence(1, 1), slot_sequence(1, 2)]);
        assert_eq!((all.open(one), all.open(two), all.lapsing_at(10), all.lapsing_at(11)), (2, 1, 3, 1));
        assert_eq!((all.due(9), all.due(10)), (vec![], vec![one, (Address([2; 20]), 1)]));
        all.set_timer(one, 50);
        all.set_timer((Address([9; 20]), 3), 50);
        assert_eq!((all.lapsing_at(10), all.lapsing_at(50), all.due(10).len()), (1, 2, 1));
        let kept = all.clone();
        for number in [1, 1, 2, 3] {
            all.leave(&place(1, 1, number));
        }
        assert_eq!((all.open(one), all.lapsing_at(50), all.due(60).len(), kept.open(one)), (0, 0, 2, 2));
        assert!(ids(&all, one).is_empty() && !all.is_same(&kept) && all.is_same(&all.clone()));
        [(1, 2, 1), (2, 1, 1)].into_iter().for_each(|(account, slot, number)| all.leave(&place(account, slot, number)));
        assert!(all.is_empty() && all.is_same(&SlotOffers::default()));
    }
}
