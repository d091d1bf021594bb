//! Independent bookkeeping of session keys from the receipts.
//!
//! Each number of a slot counts once; nothing that counts uses more than a cap; and from the block on that follows a
//! lapse, a stop, a revocation or the last height of a key, neither its transactions nor its offers trade.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Account, Batch, EndReason, EndedOffer, ExactTrade, Ledger, Outcome, SessionRecord};
use primitives::{
    Address, AssetId, Digest, ExactSide, Height, OfferPlace, Operation, PublicKey, Sequence, SessionOperation,
    SessionScope, SessionSlot, SessionTerms, SignedBy, Transaction, number_in_slot, session_possession_bytes, slot_of,
};

use crate::fees::fees_of;

/// Numbers that may be used ahead of the highest one.
const AHEAD: u64 = 64;
const KEYS_MAX: usize = 16;

/// The slot of an account.
pub(crate) type SlotName = (Address, SessionSlot);

#[derive(Clone, Debug)]
struct Session {
    key: PublicKey,
    scope: SessionScope,
    is_closed: bool,
    until: Height,
    alive: Height,
    used: BTreeSet<u64>,
    /// All numbers up to this one count as used.
    void_through: u64,
    /// Caps, and what is used of them.
    budgets: BTreeMap<AssetId, (i128, i128)>,
}

#[derive(Clone, Default)]
struct Given {
    /// The last slot.
    slots: SessionSlot,
    live: BTreeMap<SessionSlot, Session>,
}

/// What session keys did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Keys that were authorised.
    pub authorized: u64,
    /// Timers that were raised.
    pub raised: u64,
    /// Slots that were stopped.
    pub stopped: u64,
    /// Slots that were revoked.
    pub revoked: u64,
    /// Offers and exact orders of session keys.
    pub orders: u64,
    /// Offers of session keys that were replaced, by their keys.
    pub replaced: u64,
    /// Fills of offers of session keys.
    pub fills: u64,
    /// Offers that lapsed.
    pub lapsed: u64,
}

/// See the module text.
#[derive(Clone, Default)]
pub(crate) struct SessionBooks {
    network: Digest,
    fee: i128,
    accounts: BTreeMap<Address, Given>,
    pub counts: SessionCounts,
}

/// A block, as these books read it.
#[derive(Clone, Copy)]
pub(crate) struct SessionBlock<'a> {
    pub height: Height,
    /// The transactions that counted, those that paid and did nothing included.
    pub effective: &'a [(&'a Transaction, Outcome)],
    pub batch: &'a Batch,
}

impl<'a> SessionBlock<'a> {
    /// Operations on session keys that did something.
    fn operations(self) -> impl Iterator<Item = (&'a Transaction, &'a SessionOperation)> {
        self.effective.iter().filter(|(_, outcome)| *outcome == Outcome::Applied).filter_map(|(transaction, _)| {
            match &transaction.body.operation {
                Operation::Session(operation) => Some((*transaction, &**operation)),
                _ => None,
            }
        })
    }
}

impl Session {
    fn of(terms: &SessionTerms) -> Session {
        let budget = |cap: &primitives::SessionCap| (cap.asset, (i128::from(cap.units), 0));
        Session {
            key: terms.key,
            scope: terms.scope,
            is_closed: false,
            until: terms.until,
            alive: terms.alive,
            used: BTreeSet::new(),
            void_through: 0,
            budgets: terms.caps.iter().map(budget).collect(),
        }
    }

    fn highest(&self) -> u64 {
        self.used.last().copied().unwrap_or(0).max(self.void_through)
    }

    fn is_free(&self, number: u64) -> bool {
        let highest = self.highest();
        number > self.void_through
            && !self.used.contains(&number)
            && number + AHEAD > highest
            && number <= highest + AHEAD
    }

    fn is_over(&self, height: Height) -> bool {
        self.alive < height && (self.until < height || self.is_closed)
    }

    /// What differs in the ledger's record.
    fn differs(&self, record: &SessionRecord) -> Option<String> {
        let ours = (self.key, self.scope, self.is_closed, self.until, self.alive);
        let theirs = (record.key, record.scope, record.is_closed, record.until, record.alive);
        if ours != theirs {
            return Some(format!("its key, scope and heights are {theirs:?}, but by the receipts {ours:?}"));
        }
        let budgets = record.budgets.iter().map(|one| (one.asset, (one.cap.into(), one.used.into())));
        let budgets: BTreeMap<AssetId, (i128, i128)> = budgets.collect();
        if budgets != self.budgets {
            return Some(format!("its caps and uses are {budgets:?}, but by the receipts {:?}", self.budgets));
        }
        let highest = self.highest();
        let mut near = highest.saturating_sub(AHEAD + 6)..=highest + AHEAD + 6;
        let wrong = near.find(|number| record.window.check(*number).is_ok() != self.is_free(*number))?;
        Some(format!(
            "its number {wrong} is {}",
            if self.is_free(wrong) { "free but used" } else { "used but still free" }
        ))
    }
}

impl SessionCounts {
    fn add(&mut self, block: SessionBlock) {
        for (_, operation) in block.operations() {
            *match operation {
                SessionOperation::Authorize { .. } => &mut self.authorized,
                SessionOperation::Revoke { .. } => &mut self.revoked,
                SessionOperation::Alive { through: 0, .. } => &mut self.stopped,
                SessionOperation::Alive { .. } => &mut self.raised,
            } += 1;
        }
        let of_keys = block.effective.iter().filter(|(one, _)| slot_of(one.body.sequence) > 0);
        for (_, outcome) in of_keys {
            self.orders += u64::from(matches!(outcome, Outcome::Offered(_) | Outcome::Exact(_)));
            self.replaced += u64::from(matches!(outcome, Outcome::Replaced(_)));
        }
        self.fills += block.batch.fills.iter().filter(|fill| slot_of(fill.place.id) > 0).count() as u64;
        self.lapsed += block.batch.ended.iter().filter(|ended| ended.why == EndReason::Lapsed).count() as u64;
    }
}

impl std::ops::AddAssign for SessionCounts {
    fn add_assign(&mut self, other: SessionCounts) {
        self.authorized += other.authorized;
        self.raised += other.raised;
        self.stopped += other.stopped;
        self.revoked += other.revoked;
        self.orders += other.orders;
        self.replaced += other.replaced;
        self.fills += other.fills;
        self.lapsed += other.lapsed;
    }
}

impl SessionBooks {
    /// A unit of weight costs this from the next block on.
    pub fn charge(&mut self, fee: u64) {
        self.fee = fee.into();
    }

    pub fn new(network: Digest, fee: u64) -> SessionBooks {
        SessionBooks { network, fee: fee.into(), ..SessionBooks::default() }
    }

    fn session(&mut self, (account, slot): SlotName) -> Option<&mut Session> {
        self.accounts.get_mut(&account)?.live.get_mut(&slot)
    }

    /// Processes a block; returns the slots whose open offers end with it.
    pub fn apply(&mut self, block: SessionBlock) -> Result<BTreeSet<SlotName>, String> {
        for (transaction, outcome) in block.effective {
            self.check_sender(block.height, transaction)?;
            if let Operation::Session(operation) = &transaction.body.operation {
                self.check_operation(block.height, transaction, operation)?;
            }
            self.spend(transaction, outcome)?;
        }
        self.check_caps()?;
        self.check_fills(block)?;
        self.release(block);
        let ending = self.ending(block);
        self.turn(block)?;
        self.counts.add(block);
        Ok(ending)
    }

    /// The key of a slot may send this.
    fn check_sender(&mut self, height: Height, transaction: &Transaction) -> Result<(), String> {
        let (account, slot) = (transaction.body.account, slot_of(transaction.body.sequence));
        if slot == 0 {
            return Ok(());
        }
        let session = self.session((account, slot)).ok_or(format!("{account} has no session key in slot {slot}"))?;
        let is_signed = matches!(transaction.signed_by, SignedBy::Key { signer, .. } if signer == session.key);
        let trades = session.scope == SessionScope::Trade;
        let is_alive = trades && session.alive >= height;
        let is_permitted = match &transaction.body.operation {
            Operation::Cancel(_) => true,
            Operation::Session(operation) => match **operation {
                SessionOperation::Alive { through: 0, .. } => true,
                SessionOperation::Alive { slot: of, .. } => of == slot && trades,
                _ => false,
            },
            Operation::CreateOffer { .. } | Operation::Exact { .. } => is_alive,
            Operation::Replace(replace) => is_alive && slot_of(replace.old.offer) == slot,
            _ => false,
        };
        if is_signed && !session.is_closed && session.until >= height && is_permitted {
            return Ok(());
        }
        Err(format!("at height {height} slot {slot} of {account} may not do this: {transaction:?} of {session:?}"))
    }

    /// What an operation on session keys asks for is permitted by the state before the block.
    fn check_operation(
        &mut self,
        height: Height,
        transaction: &Transaction,
        operation: &SessionOperation,
    ) -> Result<(), String> {
        let (account, slot) = (transaction.body.account, operation.slot());
        let is_sound = match operation {
            SessionOperation::Authorize { terms, possession } => {
                let bytes = session_possession_bytes(&self.network, &account, terms.slot, &terms.key);
                let given = self.accounts.entry(account).or_default();
                let live = || given.live.values().filter(|session| !session.is_over(height));
                slot == given.slots + 1
                    && terms.alive >= height
                    && live().count() < KEYS_MAX
                    && live().all(|session| session.key != terms.key)
                    && terms.key.verify(&bytes, possession)
            }
            SessionOperation::Revoke { .. } => self.session((account, slot)).is_some(),
            SessionOperation::Alive { through, .. } => self.session((account, slot)).is_some_and(|session| {
                let raises = *through > session.alive.max(height) && *through <= session.until;
                let is_open = !session.is_closed && session.until >= height;
                if *through == 0 { session.alive >= height } else { is_open && raises }
            }),
        };
        if is_sound { Ok(()) } else { Err(format!("{operation:?} of {account} took effect at height {height}")) }
    }

    /// Uses a number of a slot, and what its transaction takes.
    fn spend(&mut self, transaction: &Transaction, outcome: &Outcome) -> Result<(), String> {
        let (body, cost) = (&transaction.body, self.fee * fees_of(transaction));
        let (account, slot, number) = (body.account, slot_of(body.sequence), number_in_slot(body.sequence));
        let Some(session) = self.session((account, slot)) else { return Ok(()) };
        if !session.is_free(number) {
            return Err(format!("number {number} of slot {slot} of {account} is used twice, or is void"));
        }
        session.used.insert(number);
        let taken = match &body.operation {
            _ if *outcome == Outcome::Void => None,
            Operation::CreateOffer { sell, amount, .. } => Some((*sell, *amount)),
            Operation::Exact { sell, side: ExactSide::Buy, bound, .. } => Some((*sell, *bound)),
            Operation::Exact { sell, units, .. } => Some((*sell, *units)),
            Operation::Replace(replace) => Some((replace.old.sell, replace.amount.saturating_sub(replace.remains))),
            _ => None,
        };
        let taken = taken.map(|(asset, units)| (asset, i128::from(units)));
        for (asset, units) in taken.into_iter().chain([(AssetId(0), cost)]).filter(|(_, units)| *units > 0) {
            session.budgets.entry(asset).or_default().1 += units;
        }
        Ok(())
    }

    fn check_caps(&self) -> Result<(), String> {
        for (account, given) in &self.accounts {
            for (slot, session) in &given.live {
                let beyond = session.budgets.iter().find(|(_, (cap, used))| used > cap);
                if let Some((asset, (cap, used))) = beyond {
                    return Err(format!("slot {slot} of {account} uses {used} of asset {asset}, and its cap is {cap}"));
                }
            }
        }
        Ok(())
    }

    /// Only offers of slots that are alive trade.
    fn check_fills(&mut self, block: SessionBlock) -> Result<(), String> {
        for fill in block.batch.fills.iter().filter(|fill| slot_of(fill.place.id) > 0) {
            let session = self.session((fill.place.account, slot_of(fill.place.id)));
            if session.is_none_or(|session| session.alive < block.height) {
                return Err(format!("an offer of a session key trades that has ended: {fill:?}"));
            }
        }
        Ok(())
    }

    /// Counts what slots bought, and what returned to them.
    fn release(&mut self, block: SessionBlock) {
        let batch = block.batch;
        for fill in &batch.fills {
            self.give(fill.place.account, fill.place.id, fill.pair.buy, fill.bought);
            self.give(fill.place.account, fill.place.id, fill.pair.sell, fill.returned);
        }
        for ended in batch.ended.iter().filter(|ended| ended.why != EndReason::Replaced) {
            self.give(ended.place.account, ended.place.id, ended.pair.sell, ended.returned);
        }
        for (transaction, outcome) in block.effective {
            let (account, id) = (transaction.body.account, transaction.body.sequence);
            match (&transaction.body.operation, outcome) {
                (&Operation::Exact { sell, .. }, Outcome::Exact(told)) => {
                    self.give(account, id, sell, told.returned);
                    let is_own = |trade: &&ExactTrade| (trade.account, trade.id) == (account, id);
                    let trade = batch.exacts.iter().find(is_own);
                    trade.into_iter().for_each(|trade| self.give(account, id, trade.pair.buy, trade.bought));
                }
                (Operation::Replace(replace), Outcome::Replaced(told)) => {
                    // What the owner takes over is not the key's any more.
                    let is_own = slot_of(replace.old.offer) == slot_of(id);
                    let units = if is_own { returned(batch, account, &replace.old) } else { told.remained };
                    self.give(account, replace.old.offer, replace.old.sell, units);
                }
                _ => {}
            }
        }
    }

    fn give(&mut self, account: Address, id: Sequence, asset: AssetId, units: u64) {
        let budgets = self.session((account, slot_of(id))).map(|session| &mut session.budgets);
        if let Some((_, used)) = budgets.and_then(|budgets| budgets.get_mut(&asset)) {
            *used = (*used - i128::from(units)).max(-i128::from(i64::MAX));
        }
    }

    /// The slots whose offers end with the block, by what was before it.
    fn ending(&self, block: SessionBlock) -> BTreeSet<SlotName> {
        let mut raised: BTreeMap<SlotName, Height> = BTreeMap::new();
        let mut ending = BTreeSet::new();
        for (transaction, operation) in block.operations() {
            let slot = (transaction.body.account, operation.slot());
            match operation {
                SessionOperation::Revoke { .. } | SessionOperation::Alive { through: 0, .. } => {
                    ending.insert(slot);
                }
                SessionOperation::Alive { through, .. } => {
                    let highest = raised.entry(slot).or_default();
                    *highest = (*highest).max(*through);
                }
                SessionOperation::Authorize { .. } => {}
            }
        }
        let all = self.accounts.iter().flat_map(|(account, given)| {
            given.live.iter().map(move |(slot, session)| ((*account, *slot), session.alive))
        });
        let due = all.filter(|(slot, alive)| *alive.max(raised.get(slot).unwrap_or(&0)) <= block.height);
        ending.extend(due.map(|(slot, _)| slot));
        ending
    }

    /// Stops, raises, revokes, begins and closes sessions.
    fn turn(&mut self, block: SessionBlock) -> Result<(), String> {
        let mut stopped: BTreeSet<SlotName> = BTreeSet::new();
        let stops = || {
            block.operations().filter(|(_, operation)| matches!(operation, SessionOperation::Alive { through: 0, .. }))
        };
        let is_own = |(transaction, operation): &(&Transaction, &SessionOperation)| {
            slot_of(transaction.body.sequence) == operation.slot()
        };
        // What a key itself has stopped is void before what others have.
        for (transaction, operation) in stops().filter(is_own).chain(stops().filter(|one| !is_own(one))) {
            let slot = (transaction.body.account, operation.slot());
            let own = is_own(&(transaction, operation));
            let Some(session) = self.session(slot) else { continue };
            if own {
                session.void_through = session.void_through.max(number_in_slot(transaction.body.sequence));
            } else if stopped.insert(slot) {
                session.void_through = session.highest() + AHEAD;
            }
            session.alive = block.height;
        }
        self.raise(block);
        for (transaction, operation) in block.operations() {
            if let SessionOperation::Revoke { slot } = operation
                && let Some(given) = self.accounts.get_mut(&transaction.body.account)
            {
                given.live.remove(slot);
            }
        }
        self.begin(block)?;
        for (transaction, _) in block.effective {
            if let Operation::CreateAccount { account, .. } = transaction.body.operation
                && account == transaction.body.account
                && let Some(given) = self.accounts.get_mut(&account)
            {
                given.live.values_mut().for_each(|session| session.is_closed = true);
            }
        }
        Ok(())
    }

    /// Raises the timers that nothing in the block stops.
    fn raise(&mut self, block: SessionBlock) {
        let is_stop = |operation: &SessionOperation| operation.ends_offers();
        let ended = block.operations().filter(|(_, operation)| is_stop(operation));
        let ended: BTreeSet<SlotName> =
            ended.map(|(transaction, operation)| (transaction.body.account, operation.slot())).collect();
        for (transaction, operation) in block.operations() {
            let slot = (transaction.body.account, operation.slot());
            if let SessionOperation::Alive { through, .. } = operation
                && !ended.contains(&slot)
                && let Some(session) = self.session(slot)
            {
                session.alive = session.alive.max(*through);
            }
        }
    }

    /// Of an account's authorisations the one with the highest number counts.
    fn begin(&mut self, block: SessionBlock) -> Result<(), String> {
        let mut highest: BTreeMap<Address, Sequence> = BTreeMap::new();
        for (transaction, _) in block.effective.iter().filter(|(transaction, _)| terms_of(transaction).is_some()) {
            let number = highest.entry(transaction.body.account).or_default();
            *number = (*number).max(transaction.body.sequence);
        }
        for (transaction, outcome) in block.effective {
            let Some(terms) = terms_of(transaction) else { continue };
            let (account, sequence) = (transaction.body.account, transaction.body.sequence);
            let counts = highest[&account] == sequence;
            if (*outcome == Outcome::Applied) != counts {
                return Err(format!("authorisation {sequence} of {account} has the outcome {outcome:?}"));
            }
            if counts {
                let given = self.accounts.entry(account).or_default();
                given.live.retain(|_, session| !session.is_over(block.height));
                given.live.insert(terms.slot, Session::of(terms));
                given.slots = terms.slot;
            }
        }
        Ok(())
    }

    /// Compares the ledger with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        let accounts = ledger.accounts();
        let is_known =
            |account: &&Account| account.sessions().is_none() || self.accounts.contains_key(&account.address());
        let mut shards = accounts.shards().iter().flat_map(|shard| shard.iter());
        if let Some(account) = shards.find(|account| !is_known(account)) {
            return Err(format!("{} has session keys, but not by the receipts", account.address()));
        }
        for (address, given) in &self.accounts {
            let sessions = accounts.get(address).and_then(Account::sessions).cloned().unwrap_or_default();
            let slots = |records: &[SessionRecord]| records.iter().map(|record| record.slot).collect::<Vec<_>>();
            let ours: Vec<SessionSlot> = given.live.keys().copied().collect();
            if sessions.slots != given.slots || slots(&sessions.records) != ours {
                return Err(format!("{address} has the session keys {sessions:?}, but by the receipts {ours:?}"));
            }
            for (record, (slot, session)) in sessions.records.iter().zip(&given.live) {
                if let Some(what) = session.differs(record) {
                    return Err(format!("slot {slot} of {address}: {what}"));
                }
            }
        }
        Ok(())
    }
}

fn terms_of(transaction: &Transaction) -> Option<&SessionTerms> {
    let Operation::Session(operation) = &transaction.body.operation else { return None };
    if let SessionOperation::Authorize { terms, .. } = &**operation { Some(terms) } else { None }
}

/// What returned of an offer that was replaced.
fn returned(batch: &Batch, account: Address, old: &OfferPlace) -> u64 {
    let is_old = |ended: &&EndedOffer| {
        (ended.why, ended.place.account, ended.place.id) == (EndReason::Replaced, account, old.offer)
    };
    batch.ended.iter().find(is_old).map_or(0, |ended| ended.returned)
}
