//! Session keys of the batch market: an account lets an ed25519 key cancel or trade for it within bounds.
//!
//! **What happens.** Upon *authorise*, which the account's own key signs, a key is registered in the account's next
//! *slot*, with a scope (`cancel` or `trade`), a last height `until`, a timer `alive`, and caps for at most eight
//! assets. The key has signed network, account and slot, so that nobody registers the key of somebody else. A
//! transaction of the key has a number whose upper bits are the slot ([`primitives::slot_of`]); it is judged by the
//! window of the slot, and the id of its offer names the slot.
//!
//! - A key of either scope cancels any offer of the account, and stops any slot of it.
//! - A key of scope *trade* also places offers and exact orders, replaces offers of its own slot, and raises its timer.
//! - It does nothing else: it does not pay, withdraw, stake, provide, act at venues, authorise or revoke.
//!
//! For each asset the ledger counts what the key *used*: units that its transactions take from the balance, fees
//! included, less units that its offers return or bring. A transaction counts only if what it and the key's others in
//! the block take fits the cap; an asset without a cap has the cap 0, so that a key needs one for asset 0 to pay fees.
//!
//! Upon `Alive{slot, through}` with a later height, the timer of the slot becomes that height; of several in a block
//! the highest counts. With `through` 0 the slot is *stopped*: its timer becomes the height of the block. At the end of
//! block `alive`, after the batch, all open offers of the slot end (receipts: `lapsed`), and from the next block on
//! the key may only cancel, until its timer is raised. A stop beats any raise in its block, and what was signed before
//! it is void: all lower numbers of the slot if the key itself stops, else all numbers that are free. Upon *revoke*,
//! by the account's own key, the offers end in the same way and the slot is gone. A new key of the account *closes* all
//! its sessions: they do nothing more, and their offers end with their timers.
//!
//! **Properties.**
//!
//! - *A key loses at most its caps*, in units of each asset: what it took from the account in all, less what it
//!   brought, never exceeds the cap, whatever it trades with whom and at what price.
//! - *Shuffling a block changes nothing.* Whether a transaction counts follows from its body, from the state before the
//!   block, and from sums over those of its slot and its account.
//! - *A key silences nobody.* If all that an account's keys ask for exceeds its balance, transactions of session keys
//!   are removed first, and those of the owner are judged without them. What exceeds a cap removes transactions of that
//!   slot alone. Cancels and timers stand where their fees fit.
//! - *An end is certain*: it needs no price, no room and no counterparty. A block without session keys does nothing for
//!   this module.
//! - A slot is never given twice, and a number counts once.
//!
//! **Attacks.**
//!
//! - *A stolen key sells everything to its thief at a price he makes.* Caps: he gets at most them. Round trips gain
//!   nothing, since bought units lower what is used by as much as they are. What he brings himself he may take again.
//! - *Offers that overflow a cap together*, in one block: their sum is compared, in 128 bits. Units bought in a block
//!   give room in the next one.
//! - *Fees as a drain*: they count as used of asset 0. A key whose cap is spent on fees cannot even cancel; its timer
//!   ends its offers, and the owner cancels them.
//! - *A stolen key that asks for more than the balance*, block after block, so that the owner's transactions and its
//!   revocation are removed: the owner's are judged alone.
//! - *Mass ends*: a key has at most [`SLOT_OFFERS_MAX`] open offers, and each has paid for its removal when it was
//!   placed. At most `ENDS_MAX` offers of session keys lapse at one height, before what one block adds; who finds a
//!   height crowded takes the next one, and to crowd many of them takes as many offers. A sub-block has a quota of
//!   stops and revocations ([`crate::SESSION_ENDS_PER_SUB_BLOCK`]). Who fills the quota delays those of others at a fee
//!   each, but neither the timer, which is the promise, nor a new key of the account, which closes all its sessions.
//! - *Revoke and an order in one block*: the order is in the batch of this block, within its cap; what is left of it
//!   ends after the batch.
//! - *Lapse against fill*: the batch of block `alive` comes first; what it sold is sold, and the rest returns once.
//! - *A delayed heartbeat* whose height is past by then: refused. It does not end the offers that a later heartbeat
//!   keeps.
//! - *A heartbeat or an order from before a stop*: its number is void.
//! - *Numbers that collide with the owner's*: the owner's are below 2^43, those of contracts' offers above 2^63. A
//!   thief of a session key cannot move the owner's window.
//! - *Replays*: a number counts once; an authorisation names the next slot, and so counts once whatever its number; the
//!   signature of the key names the slot.
//! - *One key in two slots* would live on when one is revoked: refused. *One key for two accounts* needs its signature
//!   for each; transactions name the account.
//! - *Who has stolen the account's key* authorises sessions that outlive its change: the change closes them, also those
//!   of the same block.
//! - *Replacing the owner's offer* would re-price units that the owner locked, past every cap: refused. The owner may
//!   replace a key's offer; its units are the owner's from then on. Of both in one block the owner's counts.
//! - *Squatting*: an account has 16 records, of which those that are over make room; each costs a hundred fees. Slots
//!   are counted in 20 bits: an account that has used them up has paid 10^8 fees.
//! - *A full book*, or a pair that cannot be opened: as for everybody.
//! - *Sleeping keys*: without heartbeats a key does nothing after `alive`, and nothing at all after `until`.
//!
//! **Where it is kept.** In the account's record, and not with the keys of venues: the filter judges a transaction and
//! the effects change window and budget with the account at hand, in its shard; the proof and the snapshot of an
//! account have its keys. A venue's key has a mandate for markets, no window, and ends only after a delay that the
//! operator counts on; a key of the batch market ends with its block. One registry would have two meanings for each
//! field.
//! Which offers belong to which slot is derived ([`crate::places`], module `slots`).
//!
//! **Left out.** Any height up to the present one as a stop: see the delayed heartbeat. Caps in value: a valuation of a
//! thin batch is not worth relying on. Session keys that are keys of wallets: a program keeps an ed25519 key. Contracts
//! have no session keys.

use std::collections::{BTreeMap, BTreeSet};

use primitives::operations::Signers;
use primitives::{
    Address, Amount, AssetId, Body, Height, Operation, SESSION_SLOTS_MAX, Sequence, SessionOperation, SessionScope,
    SessionSlot, SessionTerms, SignedBy, Transaction, number_in_slot, slot_of,
};
use proofs::{Batch, EndReason, Refusal, SESSIONS_MAX, SessionBudget, SessionRecord, Window};

use crate::places::offers::{ENDS_MAX, LIFE_MAX};
use crate::places::slots::{SLOT_OFFERS_MAX, SlotId};
use crate::sums::Credit;
use crate::{Account, Ledger};

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

/// A change of an account's session keys.
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

    /// Slots that end whatever their timers say.
    pub(crate) fn ended(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.slots.iter().filter(|(_, turn)| turn.ends()).map(|(slot, _)| *slot)
    }

    /// What a block changes of session keys, in the order in which it is applied to an account.
    pub(crate) fn changes(
        &self,
        height: Height,
        acts: &[SessionAct],
        rekeyed: &[Address],
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
        let close = |account: &Address| SessionChange { account: *account, slot: 0, edit: SessionEdit::Close };
        let changes = released.iter().map(release).chain(self.slots.iter().flat_map(of_slot));
        changes.chain(acts.iter().filter_map(open)).chain(rekeyed.iter().map(close)).collect()
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
            SessionEdit::Revoke | SessionEdit::Open(..) | SessionEdit::Close => {}
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

/// In which order transactions of an account stand if its balance does not suffice for all: those of a session key are
/// removed before those of the account's own key, and of the former first what is no relief. Filter and pool follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// The account's own key signs.
    Owner,
    /// A session key cancels offers, or moves a timer.
    KeyRelief,
    /// Anything else of a session key.
    Key,
}

impl Precedence {
    /// That of a transaction.
    pub fn of(body: &Body) -> Precedence {
        match slot_of(body.sequence) {
            0 => Precedence::Owner,
            _ if is_relief(&body.operation) => Precedence::KeyRelief,
            _ => Precedence::Key,
        }
    }
}

/// Whether a transaction stands when others of its account or slot do not: it only gives units back, or costs nothing.
pub(crate) fn is_relief(operation: &Operation) -> bool {
    match operation {
        Operation::Cancel(_) | Operation::Present { .. } => true,
        Operation::Session(operation) => !matches!(**operation, SessionOperation::Authorize { .. }),
        _ => false,
    }
}

impl Ledger {
    /// Checks a transaction of a session key against the state before the block, but for what it uses.
    pub(crate) fn check_session(&self, account: &Account, transaction: &Transaction) -> Result<(), Refusal> {
        let (body, next) = (&transaction.body, self.height.saturating_add(1));
        let slot = slot_of(body.sequence);
        let session = account.session(slot).ok_or(Refusal::UNKNOWN_SESSION)?;
        let is_signed = matches!(transaction.signed_by, SignedBy::Key { signer, .. } if signer == session.key);
        match () {
            _ if !is_signed => return Err(Refusal::WRONG_SESSION_KEY),
            _ if session.is_closed || session.until < next => return Err(Refusal::SESSION_ENDED),
            _ => {}
        }
        session.window.check(number_in_slot(body.sequence))?;
        match body.operation.row().signer {
            Signers::Owner | Signers::Validator => return Err(Refusal::SESSION_SCOPE),
            Signers::Trading => self.check_trader(session)?,
            Signers::Cancelling => {}
        }
        match &body.operation {
            Operation::Session(operation) => match **operation {
                SessionOperation::Alive { through: 0, .. } => Ok(()),
                SessionOperation::Alive { slot: of, .. } if of == slot && session.scope == SessionScope::Trade => {
                    Ok(())
                }
                _ => Err(Refusal::SESSION_SCOPE),
            },
            Operation::Replace(replace) if slot_of(replace.old.offer) != slot => Err(Refusal::SESSION_REPLACES),
            _ => Ok(()),
        }
    }

    fn check_trader(&self, session: &SessionRecord) -> Result<(), Refusal> {
        match () {
            _ if session.scope != SessionScope::Trade => Err(Refusal::SESSION_SCOPE),
            _ if session.alive <= self.height => Err(Refusal::SESSION_LAPSED),
            _ if self.slots.lapsing_at(session.alive) >= ENDS_MAX => Err(Refusal::SESSION_CROWDED),
            _ => Ok(()),
        }
    }

    /// Checks an operation on session keys against the state before the block.
    pub(crate) fn check_session_operation(&self, sender: Address, operation: &SessionOperation) -> Result<(), Refusal> {
        let account = self.places.accounts.get(&sender).ok_or(Refusal::UNKNOWN_ACCOUNT)?;
        match operation {
            SessionOperation::Authorize { terms, .. } => self.check_terms(account, terms),
            SessionOperation::Revoke { slot } => account.session(*slot).map(|_| ()).ok_or(Refusal::UNKNOWN_SESSION),
            SessionOperation::Alive { slot, through } => {
                let session = account.session(*slot).ok_or(Refusal::UNKNOWN_SESSION)?;
                let id = (sender, *slot);
                let crowd = || u64::from(self.slots.lapsing_at(*through)) + u64::from(self.slots.open(id));
                match through {
                    0 if session.alive <= self.height => Err(Refusal::SESSION_LAPSED),
                    0 => Ok(()),
                    _ if session.is_closed || session.until <= self.height => Err(Refusal::SESSION_ENDED),
                    _ if *through <= session.alive.max(self.height + 1) => Err(Refusal::SESSION_THROUGH),
                    _ if *through > session.until => Err(Refusal::SESSION_THROUGH),
                    _ if crowd() > u64::from(ENDS_MAX) => Err(Refusal::SESSION_CROWDED),
                    _ => Ok(()),
                }
            }
        }
    }

    fn check_terms(&self, account: &Account, terms: &SessionTerms) -> Result<(), Refusal> {
        let next = self.height.saturating_add(1);
        let (slots, records) = account.sessions().map_or((0, &[][..]), |all| (all.slots, &all.records));
        let mut live = records.iter().filter(|record| !record.is_over(next));
        let is_taken = |key| live.clone().any(|record| record.key == key) || account.is_controlled_by(&key);
        match () {
            _ if slots >= SESSION_SLOTS_MAX || terms.slot != slots + 1 => Err(Refusal::SESSION_SLOT),
            _ if terms.alive < next || terms.until - next > LIFE_MAX => Err(Refusal::SESSION_HEIGHTS),
            _ if is_taken(terms.key) => Err(Refusal::SESSION_KEY_TAKEN),
            _ if live.by_ref().count() >= SESSIONS_MAX => Err(Refusal::SESSIONS_FULL),
            _ => Ok(()),
        }
    }

    /// Offers that a slot may still open.
    pub(crate) fn slot_room(&self, slot: SlotId) -> Amount {
        u64::from(SLOT_OFFERS_MAX.saturating_sub(self.slots.open(slot)))
    }

    /// The slots whose offers end with this block, after offers have come and gone and timers were raised.
    pub(crate) fn ending_slots(&self, height: Height, turn: &SessionTurn) -> BTreeSet<SlotId> {
        self.slots.due(height).into_iter().chain(turn.ended()).collect()
    }
}
