//! All small histories of one market and two orders: a venue that settles in time meets no bust, whatever the traders
//! and the clock do, and a late one equals the model.

use std::collections::BTreeSet;

use primitives::venue::{
    OrderLife, OrderNumber, OrderSignature, SelfTradeRule, Settle, SettledFill, SettledOrder, VenueOperation,
    VenueOrder, VenueSide,
};
use primitives::{Address, AssetId, Signature};
use proofs::FillVerdict;

use super::drive::{World, account, public};
use super::model::VENUE;
use crate::places::venues::chunks::chunks;
use crate::places::venues::mistake::VenueMistake;

/// The last block of a history, counted from the founding of the venue.
const END: usize = 4;
/// Lots of each order.
const LOTS: usize = 2;
const SELLER: u8 = 3;
const BUYER: u8 = 4;

#[derive(Clone, Copy)]
enum Act {
    Nothing,
    Collect(u8),
    Revoke(u8),
    Raise(u8),
}

const ACTS: [Act; 7] = [
    Act::Nothing,
    Act::Collect(SELLER),
    Act::Collect(BUYER),
    Act::Revoke(SELLER),
    Act::Revoke(BUYER),
    Act::Raise(SELLER),
    Act::Raise(BUYER),
];

/// A history so far.
#[derive(Clone)]
struct History {
    world: World,
    begun: usize,
    /// For each fill that the venue has reported and not settled, the certified height by which it matched.
    pending: Vec<usize>,
    /// Fills matched in all.
    matched: usize,
}

fn order(side: VenueSide, expiry: u64) -> SettledOrder {
    let number = |reference| OrderNumber { incarnation: 0, day: 0, reference };
    let order = VenueOrder {
        market: 0,
        number: number(1),
        floor: number(0),
        side,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 1,
        lots: LOTS as u32,
        expiry,
        until_ms: None,
        fee_cap_ppm: 0,
    };
    let person = if side == VenueSide::Buy { BUYER } else { SELLER };
    SettledOrder { key: public(person), order, signature: OrderSignature::Own(Signature([0; 64])) }
}

impl History {
    fn new(mistake: VenueMistake) -> History {
        let world = World::new(mistake, 3, 100);
        let begun = world.plain.height();
        History { world, begun, pending: Vec::new(), matched: 0 }
    }

    fn expiry(&self) -> u64 {
        self.begun as u64 + 2
    }

    fn settle(&self, fills: usize) -> Option<(Address, VenueOperation)> {
        let mut orders = vec![order(VenueSide::Buy, self.expiry()), order(VenueSide::Sell, self.expiry())];
        orders.sort_by_key(|order| order.key);
        let at = |side| orders.iter().position(|order| order.order.side == side).expect("there") as u16;
        let (buy, sell, taker) = (at(VenueSide::Buy), at(VenueSide::Sell), VenueSide::Buy);
        let fill = SettledFill { buy, sell, lots: 1, tick: 1, fee_buy: 0, fee_sell: 0, taker };
        let from = self.world.plain.leaves.len() as u64;
        let settle = Settle { venue: VENUE, incarnation: 0, from, orders, fills: vec![fill; fills] };
        (fills > 0).then_some((self.world.plain.operator.account, VenueOperation::Settle(settle)))
    }

    fn act(&self, act: Act) -> Option<(Address, VenueOperation)> {
        let floor = OrderNumber { incarnation: 0, day: 0, reference: 5 };
        let of = |person, operation| Some((account(person), operation));
        match act {
            Act::Nothing => None,
            Act::Collect(person) => {
                let asset = AssetId(u32::from(person == SELLER));
                of(person, VenueOperation::Collect { venue: VENUE, asset, units: 9 })
            }
            Act::Revoke(person) => of(person, VenueOperation::Revoke { venue: VENUE, key: public(person) }),
            Act::Raise(person) => of(person, VenueOperation::RaiseFloor { venue: VENUE, key: public(person), floor }),
        }
    }

    /// Whether a venue that looks at the present state matches one more lot.
    fn matches(&self) -> bool {
        let plain = &self.world.plain;
        let owed = self.pending.len() as u64;
        let is_live = |person: u8| {
            let key = &plain.keys[&public(person)];
            let asset = AssetId(u32::from(person == SELLER));
            let free = plain.deposits.get(&(account(person), asset)).map_or(0, |of| of.free);
            key.revoked.is_none() && key.raises.is_empty() && free > owed
        };
        plain.height() as u64 <= self.expiry() && is_live(SELLER) && is_live(BUYER) && self.matched < LOTS
    }

    /// The next block, and how many of the settled fills were late and bust.
    fn block(&mut self, passes: u64, fills: usize, act: Act) -> Result<(bool, bool), String> {
        let operations: Vec<_> = self.settle(fills).into_iter().chain(self.act(act)).collect();
        let verdicts = self.world.block(passes, &operations)?;
        let settled: Vec<usize> = self.pending.drain(..fills).collect();
        let is_late = settled.iter().any(|from| self.world.plain.past(*from));
        Ok((is_late, verdicts.iter().any(|verdict| *verdict != FillVerdict::Applied)))
    }

    fn id(&self) -> Vec<u8> {
        let mut id = chunks(&self.world.venues).collect::<Vec<_>>().concat();
        id.extend(self.pending.iter().map(|from| *from as u8));
        id.push(self.matched as u8);
        id
    }
}

/// Walks all histories; returns the number of states. A venue that is not hostile matches by what it sees. A hostile
/// one has matched more lots than the orders have, and settles them whenever it likes.
fn walk(mistake: VenueMistake, is_hostile: bool) -> Result<usize, String> {
    let mut first = History::new(mistake);
    if is_hostile {
        (first.pending, first.matched) = (vec![first.begun; LOTS + 1], LOTS + 1);
    }
    let (mut seen, mut open) = (BTreeSet::new(), vec![first]);
    while let Some(history) = open.pop() {
        if history.world.plain.height() == history.begun + END {
            continue;
        }
        for will_match in [false, true] {
            let mut matched = history.clone();
            match (will_match, !is_hostile && history.matches()) {
                (true, true) => {
                    matched.pending.push(history.world.plain.height());
                    matched.matched += 1;
                }
                (true, false) => continue,
                (false, _) => {}
            }
            for fills in 0..=matched.pending.len() {
                for (passes, act) in [1, 4].into_iter().flat_map(|passes| ACTS.map(|act| (passes, act))) {
                    let mut next = matched.clone();
                    let (is_late, is_bust) = next.block(passes, fills, act)?;
                    if !is_hostile && is_late {
                        continue;
                    }
                    if !is_hostile && is_bust {
                        return Err("a venue in time meets a bust".into());
                    }
                    if seen.insert(next.id()) {
                        open.push(next);
                    }
                }
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn a_venue_in_time_meets_no_bust_in_any_small_history() {
    let states = walk(VenueMistake::None, false).expect("holds");
    assert!(states > 1_000, "{states}");
}

#[test]
fn a_late_venue_equals_the_model_in_every_small_history() {
    let states = walk(VenueMistake::None, true).expect("holds");
    assert!(states > 1_000, "{states}");
}
