//! Rows of the history of accounts.

use std::borrow::Cow;

use api::{BalancesAtBody, ExactTermsBody, HeldBody, HistoryFillBody, PlacedOrderBody, ReferenceBody, TransferBody};
use ledger::{FillReason, Outcome, Traded};
use primitives::{Amount, ClientId, Height};
use readers::history::{BalanceRow, FillRow, HistoryPlace, OfferChange, OrderRow, TransferRow};

use super::Symbols;
use super::blocks::outcome;

/// How an order stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferStanding {
    /// `refused`, `resting`, `ended` or `void`.
    pub status: &'static str,
    /// Why it ended or was refused.
    pub why: Option<Cow<'static, str>>,
    /// Units that rest.
    pub left: Amount,
    /// The last height that changed it.
    pub changed: Height,
}

/// What an order moved: the same in every answer.
pub(crate) struct OrderSums {
    /// Its newest changes, the newest first.
    pub(crate) changes: Vec<(HistoryPlace, OfferChange)>,
    pub(crate) sold: u64,
    /// `None` if there are more changes.
    pub(crate) bought: Option<u128>,
    pub(crate) returned: u64,
}

impl OrderSums {
    pub(crate) fn of(row: &OrderRow, changes: Vec<(HistoryPlace, OfferChange)>, is_whole: bool) -> OrderSums {
        if let Some(exact) = row.outcome.exact() {
            let (sold, bought, returned) = (exact.sold, Some(exact.bought.into()), exact.returned);
            return OrderSums { changes, sold, bought, returned };
        }
        let (mut bought, mut returned, mut unsold) = (0u128, 0u64, None);
        for (_, change) in &changes {
            match change {
                OfferChange::Filled(FillRow { fill, .. }) => {
                    bought += u128::from(fill.bought);
                    returned += fill.returned;
                    unsold = unsold.or(Some(fill.left + fill.returned));
                }
                OfferChange::Ended { returned: units, .. } => returned += units,
            }
        }
        // What an offer was placed with, it has sold, returned, or it rests. What a replacement takes over is returned
        // by neither.
        let sold = unsold.map_or(0, |unsold| placed_units(row).saturating_sub(unsold));
        OrderSums { changes, sold, bought: is_whole.then_some(bought), returned }
    }
}

/// Units with which an order's offer was placed.
fn placed_units(row: &OrderRow) -> u64 {
    match &row.outcome {
        Outcome::Offered(met) => met.sold + met.left + met.returned,
        Outcome::Replaced(replaced) => replaced.met.sold + replaced.met.left + replaced.met.returned,
        _ => 0,
    }
}

/// How an order stands at a height, from its row and the newest change of its offer.
pub fn standing(
    height: Height,
    (place, row): &(HistoryPlace, OrderRow),
    newest: Option<&(HistoryPlace, OfferChange)>,
) -> OfferStanding {
    let at = |status, why: Option<&'static str>, left, changed| OfferStanding {
        status,
        why: why.map(Cow::Borrowed),
        left,
        changed,
    };
    let met = match &row.outcome {
        Outcome::Refused(refusal) => {
            // Above its last height its bytes are dead.
            let status = if height >= row.until { "void" } else { "refused" };
            return at(status, Some(refusal.code()), 0, place.height);
        }
        Outcome::Offered(met) => met,
        Outcome::Replaced(replaced) => &replaced.met,
        other => match other.exact() {
            Some(exact) => return at("ended", Some(exact.why.name()), 0, place.height),
            None => return at("void", Some("superseded"), 0, place.height),
        },
    };
    match newest.filter(|(change, _)| change.height >= place.height) {
        Some((change, OfferChange::Ended { why, .. })) => at("ended", Some(why.name()), 0, change.height),
        Some((change, OfferChange::Filled(FillRow { fill, .. }))) if fill.left > 0 => {
            at("resting", None, fill.left, change.height)
        }
        Some((change, OfferChange::Filled(FillRow { fill, .. }))) => {
            at("ended", Some(if fill.returned > 0 { "returned" } else { "filled" }), 0, change.height)
        }
        None => match met {
            Traded { left: 1.., .. } => at("resting", None, met.left, place.height),
            Traded { why: FillReason::NotPlaced, .. } => at("ended", Some("returned"), 0, place.height),
            Traded { returned: 1.., .. } => at("ended", Some("returned"), 0, place.height),
            _ => at("ended", Some("filled"), 0, place.height),
        },
    }
}

impl Symbols {
    /// An order, and how it stands.
    pub(crate) fn order(
        &self,
        (place, row): &(HistoryPlace, OrderRow),
        standing: &OfferStanding,
        sums: &OrderSums,
    ) -> PlacedOrderBody {
        PlacedOrderBody {
            height: place.height,
            time_ms: row.time_ms,
            id: row.id.to_string(),
            sequence: row.sequence.to_string(),
            until: row.until.to_string(),
            sell: self.name(row.pair.sell),
            buy: self.name(row.pair.buy),
            limit: row.limit.to_string(),
            amount: row.amount.to_string(),
            life: row.life.to_string(),
            client: (row.client != ClientId::NONE).then(|| row.client.to_string()),
            replaces: row.replaces.map(|offer| offer.to_string()),
            exact: row.exact.map(|(side, units, bound)| ExactTermsBody {
                side: side.name().into(),
                units: units.to_string(),
                bound: bound.to_string(),
            }),
            asked: self.asked(row.pair, row.amount, row.limit, row.exact),
            outcome: outcome(&row.outcome),
            status: standing.status.into(),
            why: standing.why.clone(),
            left: standing.left.to_string(),
            sold: sums.sold.to_string(),
            bought: sums.bought.map(|units| units.to_string()),
            changed_height: standing.changed,
            sealed_by: row.sealed_by.map(|id| id.to_string()),
        }
    }

    /// A fill.
    pub fn history_fill(&self, height: Height, FillRow { time_ms, fill }: &FillRow) -> HistoryFillBody {
        HistoryFillBody {
            height,
            time_ms: *time_ms,
            sell: self.get(fill.pair.sell).into(),
            buy: self.get(fill.pair.buy).into(),
            limit: fill.place.limit.to_string(),
            offer: fill.place.id.to_string(),
            sold: fill.sold.to_string(),
            bought: fill.bought.to_string(),
            left: fill.left.to_string(),
            returned: fill.returned.to_string(),
        }
    }

    /// A transfer.
    pub fn transfer(&self, height: Height, row: &TransferRow) -> TransferBody {
        TransferBody {
            height,
            time_ms: row.time_ms,
            id: row.id.to_string(),
            asset: self.name(row.asset),
            amount: row.amount.to_string(),
            direction: if row.received { "in" } else { "out" }.into(),
            kind: row.kind.name().into(),
            with: row.with.map(|account| account.to_string()),
            reference: row
                .reference
                .as_ref()
                .map(|reference| ReferenceBody { kind: reference.kind.name().into(), value: reference.to_string() }),
        }
    }

    /// Balances after a block.
    pub fn balances_at(&self, height: Height, row: &BalanceRow) -> BalancesAtBody {
        let held = row.held.iter().map(|held| HeldBody {
            asset: self.name(held.asset),
            available: held.available.to_string(),
            locked: held.locked.map(|units| units.to_string()),
        });
        BalancesAtBody { height, state_height: row.state, time_ms: row.time_ms, balances: held.collect() }
    }
}
