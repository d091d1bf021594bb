//! A settle: fills in the venue's order with the orders that they fill, and the faults that its bytes alone show.

use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use rayon::prelude::*;

use super::{CarriedSignature, OrderLife, SettledOrder, TICK_MAX, VenueId, VenueSide};
use crate::{Digest, verify_all};

const LEAF_CONTEXT: &str = "walras 2026 venue fill v1";

/// The most fills of one fill-or-kill order.
pub const GROUP_FILLS_MAX: usize = 64;

/// Bytes of a fill in a settle.
const FILL_BYTES: usize = 29;

/// A fill: two orders of the settle by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SettledFill {
    /// Position of the order that buys.
    pub buy: u16,
    /// Position of the order that sells.
    pub sell: u16,
    /// Lots, at least 1.
    pub lots: u32,
    /// Price in ticks, from 1 to [`TICK_MAX`].
    pub tick: u32,
    /// Quote units that the buyer pays in fees; a rebate is negative.
    pub fee_buy: i64,
    /// Quote units that the seller pays in fees; a rebate is negative.
    pub fee_sell: i64,
    /// The side that took.
    pub taker: VenueSide,
}

/// Fills that a venue's operator settles.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Settle {
    /// The venue.
    pub venue: VenueId,
    /// Its incarnation.
    pub incarnation: u32,
    /// The index of the first fill in the tree of the incarnation.
    pub from: u64,
    /// The orders, by key and number.
    pub orders: Vec<SettledOrder>,
    /// The fills, in the order in which they were reported.
    pub fills: Vec<SettledFill>,
}

/// Why a settle is invalid by its bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettleFault {
    /// It has too many bytes.
    #[error("the settle has more than {0} bytes: split it")]
    TooLong(usize),
    /// It has no fill.
    #[error("the settle has no fill")]
    Empty,
    /// The index of its last fill does not fit.
    #[error("the settle begins at an index that no tree reaches")]
    From,
    /// An order's fields are out of bounds.
    #[error("order {0} of the settle has a tick, lots, fee cap or floor out of bounds")]
    Order(usize),
    /// Orders are not in their order, or one is there twice.
    #[error("order {0} of the settle is not behind the one before by key and number")]
    OrderOfOrders(usize),
    /// No fill uses an order.
    #[error("no fill of the settle uses its order {0}")]
    Unused(usize),
    /// A fill's fields are out of bounds.
    #[error("fill {0} of the settle names a missing order, one order twice, or a tick or lots out of bounds")]
    Fill(usize),
    /// The venue would pay fees.
    #[error("the fees of fill {0} of the settle sum to less than zero: rebates come out of the other side's fee")]
    Fees(usize),
    /// The fills of a fill-or-kill order are not one group that fills it.
    #[error("the fills of fill-or-kill order {0} are not one group of at most 64, as taker, of all its lots")]
    Group(usize),
    /// Two orders under one signature of a list lead to two roots.
    #[error("order {0} of the settle is not of the same list as others under its signature")]
    List(usize),
    /// A signature is invalid.
    #[error("the signature of order {0} of the settle is invalid")]
    Signature(usize),
}

impl Settle {
    /// Number of signatures that are verified: they count in the quota of a sub-block. That of a list counts once.
    pub fn signatures(&self) -> usize {
        let own = self.orders.iter().filter(|of| of.signature.is_own()).count();
        let lists: BTreeSet<_> = self.orders.iter().filter_map(SettledOrder::list).collect();
        own + lists.len()
    }

    /// Whether an order was signed in a list.
    pub fn has_lists(&self) -> bool {
        self.orders.iter().any(|order| order.list().is_some())
    }

    /// Bytes of its encoding, which are counted and not written: admission, fees and checks ask for them.
    pub fn encoded_len(&self) -> usize {
        let orders: usize = self.orders.iter().map(SettledOrder::encoded_len).sum();
        24 + orders + FILL_BYTES * self.fills.len()
    }

    /// Checks everything that the bytes alone show, but the signatures; `bytes_max` is the chain's limit for a settle.
    ///
    /// # Errors
    /// [`SettleFault`] names the first fault.
    pub fn check(&self, bytes_max: usize) -> Result<(), SettleFault> {
        match () {
            _ if self.encoded_len() > bytes_max => return Err(SettleFault::TooLong(bytes_max)),
            _ if self.fills.is_empty() => return Err(SettleFault::Empty),
            _ if self.from.checked_add(self.fills.len() as u64).is_none() => return Err(SettleFault::From),
            _ => {}
        }
        self.check_orders()?;
        self.check_fills()?;
        self.check_groups()?;
        self.check_lists()
    }

    /// Orders are plain, ascending by key and number, and each is used.
    fn check_orders(&self) -> Result<(), SettleFault> {
        let name = |order: &SettledOrder| (order.key, order.order.number);
        let unsorted = self.orders.windows(2).position(|two| name(&two[0]) >= name(&two[1]));
        if let Some(at) = self.orders.iter().position(|order| !order.order.is_plain()) {
            return Err(SettleFault::Order(at));
        }
        if let Some(at) = unsorted {
            return Err(SettleFault::OrderOfOrders(at + 1));
        }
        let mut used = vec![false; self.orders.len()];
        for at in self.fills.iter().flat_map(|fill| [fill.buy, fill.sell]) {
            if let Some(used) = used.get_mut(usize::from(at)) {
                *used = true;
            }
        }
        used.iter().position(|used| !used).map_or(Ok(()), |at| Err(SettleFault::Unused(at)))
    }

    fn check_fills(&self) -> Result<(), SettleFault> {
        let exists = |at: u16| usize::from(at) < self.orders.len();
        for (at, fill) in self.fills.iter().enumerate() {
            let is_plain = fill.lots >= 1 && (1..=TICK_MAX).contains(&fill.tick);
            if !is_plain || !exists(fill.buy) || !exists(fill.sell) || fill.buy == fill.sell {
                return Err(SettleFault::Fill(at));
            }
            if fill.fee_buy.checked_add(fill.fee_sell).is_none_or(|fees| fees < 0) {
                return Err(SettleFault::Fees(at));
            }
        }
        Ok(())
    }

    /// All fills of a fill-or-kill order follow one another, in each it is the taker, and they fill it.
    fn check_groups(&self) -> Result<(), SettleFault> {
        let kills = |(_, order): &(usize, &SettledOrder)| order.order.life == OrderLife::FillOrKill;
        let uses: Vec<(usize, usize)> =
            (0..).zip(&self.fills).flat_map(|(fill, of)| of.orders().map(|at| (at, fill))).collect();
        let mut by_order = vec![Vec::new(); self.orders.len()];
        uses.into_iter().for_each(|(order, fill)| by_order[order].push(fill));
        for (at, order) in self.orders.iter().enumerate().filter(kills) {
            let group = &by_order[at];
            let is_run = group.windows(2).all(|two| two[0] + 1 == two[1]) && group.len() <= GROUP_FILLS_MAX;
            let takes = group.iter().all(|fill| self.fills[*fill].taker() == at);
            let lots = group.iter().map(|fill| u64::from(self.fills[*fill].lots)).sum::<u64>();
            if !is_run || !takes || lots != u64::from(order.order.lots) {
                return Err(SettleFault::Group(at));
            }
        }
        Ok(())
    }

    /// All orders under one signature of a list lead to one root.
    fn check_lists(&self) -> Result<(), SettleFault> {
        let mut headers = BTreeMap::new();
        for (at, order) in self.orders.iter().enumerate() {
            let Some((list, header)) = order.list().zip(order.header(self.venue)) else { continue };
            if headers.insert(list, header).is_some_and(|known| known != header) {
                return Err(SettleFault::List(at));
            }
        }
        Ok(())
    }

    /// The signatures that are verified, with the positions of their orders: that of a list once. The settle must pass
    /// [`Settle::check`].
    fn signed(&self, network: &Digest) -> (Vec<usize>, Vec<CarriedSignature>) {
        let mut lists = BTreeSet::new();
        let is_first = |of: &(usize, &SettledOrder)| of.1.list().is_none_or(|list| lists.insert(list));
        let orders: Vec<(usize, &SettledOrder)> = self.orders.iter().enumerate().filter(is_first).collect();
        let signed = |(at, order): (usize, &SettledOrder)| Some((at, order.carried(network, self.venue)?));
        orders.into_par_iter().filter_map(signed).unzip()
    }

    /// The signatures of its lists, each once. The settle must pass [`Settle::check`].
    pub fn list_signatures(&self, network: &Digest) -> Vec<CarriedSignature> {
        let mut lists = BTreeSet::new();
        let is_first = |order: &&SettledOrder| order.list().is_some_and(|list| lists.insert(list));
        self.orders.iter().filter(is_first).filter_map(|order| order.carried(network, self.venue)).collect()
    }

    /// The signatures that are verified.
    pub(super) fn carried(&self, network: &Digest) -> Vec<CarriedSignature> {
        self.signed(network).1
    }

    /// Verifies the signatures that are present, on all threads of the current rayon pool. The settle must pass
    /// [`Settle::check`].
    ///
    /// # Errors
    /// [`SettleFault::Signature`] names the first invalid one.
    pub fn verify(&self, network: &Digest) -> Result<(), SettleFault> {
        let (places, signed) = self.signed(network);
        let invalid = verify_all(&signed).iter().position(|valid| !valid);
        invalid.map_or(Ok(()), |at| Err(SettleFault::Signature(places[at])))
    }

    /// The leaves of its fills in the tree of the incarnation, in order. The settle must pass [`Settle::check`].
    pub fn leaves(&self, network: &Digest) -> Vec<Digest> {
        let digest = |order: &SettledOrder| order.order.digest(network, self.venue, &order.key);
        let orders: Vec<Digest> = self.orders.iter().map(digest).collect();
        let leaf = |fill: &SettledFill| fill.leaf(&orders[usize::from(fill.buy)], &orders[usize::from(fill.sell)]);
        self.fills.iter().map(leaf).collect()
    }
}

impl SettledFill {
    /// The leaf of the fill, by the digests of the orders that buy and sell.
    pub fn leaf(&self, buy: &Digest, sell: &Digest) -> Digest {
        let SettledFill { lots, tick, fee_buy, fee_sell, taker, .. } = self;
        // 64 bytes of digests, 24 of numbers, and one.
        Digest::of_short::<89>(LEAF_CONTEXT, &(buy, sell, lots, tick, fee_buy, fee_sell, taker))
    }

    fn orders(&self) -> [usize; 2] {
        [usize::from(self.buy), usize::from(self.sell)]
    }

    /// Position of the order that took.
    fn taker(&self) -> usize {
        usize::from(if self.taker == VenueSide::Buy { self.buy } else { self.sell })
    }
}
