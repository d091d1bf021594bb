//! What a block does to session keys: what its operations ask for, and the changes of accounts that follow.

use std::collections::{BTreeMap, BTreeSet};

use primitives::{
    Address, Amount, AssetId, Height, Sequence, SessionOperation, SessionSlot, SessionTerms, number_in_slot, slot_of,
};
use proofs::{Batch, EndReason, SessionBudget, SessionRecord, Window};

use super::slots::{SlotId, SlotOffers};
use crate::places::accounts::Account;
use crate::places::keys::Rekeyed;
use crate::places::sums::Credit;

/// An accepted operation on session keys.
#[derive(Clone, Copy)]
pub(crate) struct SessionAct<'a> {
    pub account: Address,
    /// The number of the transaction.
    pub number: Sequence,
    pub operation: &'a SessionOperation,
}

/// Units that a slot no longer uses: it has bought them, or they have returned.
#[derive(Clone, Copy)]
pub(crate) struct Released {
    pub slot: SlotId,
    pub asset: AssetId,
    pub units: Amount,
}

/// What a block's operations do to a slot.
#[derive(Default)]
struct SlotTurn {
    /// The highest height that its timer is raised to; 0 if it is not.
    raised: Height,
    is_stopped: bool,
    is_revoked: bool,
    /// The highest number within the slot by which its own key stopped it.
    stopped_by: u64,
    /// Whether another key stopped it.
    is_stopped_by_other: bool,
}

/// What a block's operations do to the session keys that there were before it.
#[derive(Default)]
pub(crate) struct SessionTurn {
    slots: BTreeMap<SlotId, SlotTurn>,
}

/// A change of an account's session keys, or of what they are judged by.
pub(crate) struct SessionChange {
    pub account: Address,
    slot: SessionSlot,
    edit: SessionEdit,
}

enum SessionEdit {
    Release(AssetId, Amount),
    VoidThrough(u64),
    VoidAll,
    Alive(Height),
    Revoke,
    Open(Box<SessionRecord>, Height),
    Close,
    /// The account has a policy of keys from now on: what it had before is judged by it.
    Policy,
}

impl SlotTurn {
    fn ends(&self) -> bool {
        self.is_stopped || self.is_revoked
    }
}

impl SessionTurn {
    pub(crate) fn of(acts: &[SessionAct]) -> SessionTurn {
        let mut turn = SessionTurn::default();
        for SessionAct { account, number, operation } in acts {
            let slot = turn.slots.entry((*account, operation.slot())).or_default();
            match operation {
                SessionOperation::Revoke { .. } => slot.is_revoked = true,
                SessionOperation::Alive { through: 0, slot: of } if slot_of(*number) == *of => {
                    slot.is_stopped = true;
                    slot.stopped_by = slot.stopped_by.max(number_in_slot(*number));
                }
                SessionOperation::Alive { through: 0, .. } => {
                    (slot.is_stopped, slot.is_stopped_by_other) = (true, true);
                }
                SessionOperation::Alive { through, .. } => slot.raised = slot.raised.max(*through),
                SessionOperation::Authorize { .. } => {}
            }
        }
        turn
    }

    /// Timers that are raised.
    pub(crate) fn raised(&self) -> impl Iterator<Item = (SlotId, Height)> + '_ {
        let raised = self.slots.iter().filter(|(_, turn)| turn.raised > 0 && !turn.ends());
        raised.map(|(slot, turn)| (*slot, turn.raised))
    }

    /// The slots whose offers end with this block, after offers have come and gone and timers were raised.
    pub(crate) fn ending(&self, height: Height, slots: &SlotOffers) -> BTreeSet<SlotId> {
        slots.due(height).into_iter().chain(self.ended()).collect()
    }

    /// Slots that end whatever their timers say.
    fn ended(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.slots.iter().filter(|(_, turn)| turn.ends()).map(|(slot, _)| *slot)
    }

    /// What a block changes of session keys, in the order in which it is applied to an account.
    pub(crate) fn changes(
        &self,
        height: Height,
        acts: &[SessionAct],
        rekeyed: &[Address],
        policies: &[Rekeyed],
        released: &[Released],
    ) -> Vec<SessionChange> {
        let release = |Released { slot: (account, slot), asset, units }: &Released| SessionChange {
            account: *account,
            slot: *slot,
            edit: SessionEdit::Release(*asset, *units),
        };
        let of_slot = |(&(account, slot), turn): (&SlotId, &SlotTurn)| {
            let alive = match turn.raised {
                _ if turn.is_stopped => Some(height),
                0 => None,
                through => Some(through),
            };
            let edits = [
                (turn.stopped_by > 0).then_some(SessionEdit::VoidThrough(turn.stopped_by)),
                turn.is_stopped_by_other.then_some(SessionEdit::VoidAll),
                alive.map(SessionEdit::Alive),
                turn.is_revoked.then_some(SessionEdit::Revoke),
            ];
            edits.into_iter().flatten().map(move |edit| SessionChange { account, slot, edit })
        };
        let open = |act: &SessionAct| match act.operation {
            SessionOperation::Authorize { terms, .. } => {
                let edit = SessionEdit::Open(Box::new(record(terms)), height);
                Some(SessionChange { account: act.account, slot: terms.slot, edit })
            }
            _ => None,
        };
        let whole = |account: &Address, edit| SessionChange { account: *account, slot: 0, edit };
        let closing = policies.iter().filter(|one| one.closes).map(|one| &one.account);
        let close = rekeyed.iter().chain(closing).map(|account| whole(account, SessionEdit::Close));
        let marked = policies.iter().map(|one| whole(&one.account, SessionEdit::Policy));
        let changes = released.iter().map(release).chain(self.slots.iter().flat_map(of_slot));
        changes.chain(acts.iter().filter_map(open)).chain(close).chain(marked).collect()
    }
}

/// A session that begins.
fn record(terms: &SessionTerms) -> SessionRecord {
    let SessionTerms { slot, key, scope, until, alive, ref caps } = *terms;
    let budgets = caps.iter().map(|cap| SessionBudget { asset: cap.asset, cap: cap.units, used: 0 }).collect();
    SessionRecord { slot, key, scope, is_closed: false, until, alive, window: Window::default(), budgets }
}

impl SessionChange {
    pub(crate) fn apply(&self, account: &mut Account) {
        match &self.edit {
            SessionEdit::Open(record, height) => {
                let sessions = account.sessions_mut();
                sessions.records.retain(|one| !one.is_over(*height));
                sessions.records.push((**record).clone());
                sessions.slots = record.slot;
            }
            SessionEdit::Close if account.sessions().is_some() => {
                account.sessions_mut().records.iter_mut().for_each(|one| one.is_closed = true);
            }
            SessionEdit::Close => {}
            SessionEdit::Policy => account.mark_policy(),
            SessionEdit::Revoke => account.sessions_mut().records.retain(|one| one.slot != self.slot),
            edit => {
                if let Some(session) = account.session_mut(self.slot) {
                    edit.apply(session);
                }
            }
        }
    }
}

impl SessionEdit {
    fn apply(&self, session: &mut SessionRecord) {
        match *self {
            SessionEdit::Release(asset, units) => {
                session.budget_mut(asset).into_iter().for_each(|budget| budget.release(units));
            }
            SessionEdit::VoidThrough(number) => session.window.void_through(number),
            SessionEdit::VoidAll => session.window.void_all(),
            SessionEdit::Alive(height) => session.alive = height,
            SessionEdit::Revoke | SessionEdit::Open(..) | SessionEdit::Close | SessionEdit::Policy => {}
        }
    }
}

/// What slots bought in a batch, and what returned to them; what replacements return is not here.
pub(crate) fn released(batch: &Batch, exacts: impl Iterator<Item = (Sequence, Credit)>) -> Vec<Released> {
    let mut all = Vec::new();
    let mut release = |id: Sequence, account: Address, asset: AssetId, units: Amount| {
        if slot_of(id) > 0 && units > 0 {
            all.push(Released { slot: (account, slot_of(id)), asset, units });
        }
    };
    for fill in &batch.fills {
        release(fill.place.id, fill.place.account, fill.pair.buy, fill.bought);
        release(fill.place.id, fill.place.account, fill.pair.sell, fill.returned);
    }
    for ended in batch.ended.iter().filter(|ended| ended.why != EndReason::Replaced) {
        release(ended.place.id, ended.place.account, ended.pair.sell, ended.returned);
    }
    exacts.for_each(|(id, credit)| release(id, credit.to, credit.asset, credit.amount));
    all
}
