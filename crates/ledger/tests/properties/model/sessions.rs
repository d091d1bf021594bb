//! Session keys in their simplest form.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Ledger, Pair, Place, Refusal};
use primitives::{
    Address, Amount, AssetId, Body, ExactSide, Life, Operation, PublicKey, SessionOperation, SessionScope, SignedBy,
    Transaction,
};

use super::Model;

/// Offers of a slot, heights ahead.
const OFFERS_MAX: usize = 4_096;
const AHEAD: u64 = 4_194_304;

#[derive(Clone, Debug, PartialEq)]
pub struct ModelSession {
    pub key: PublicKey,
    pub scope: SessionScope,
    pub is_closed: bool,
    pub until: u64,
    pub alive: u64,
    /// Numbers used; all up to `floor` count as used.
    pub used: BTreeSet<u64>,
    pub floor: u64,
    /// Caps, and what is used of them.
    pub caps: BTreeMap<AssetId, (Amount, i128)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSessions {
    pub slots: u64,
    pub live: BTreeMap<u64, ModelSession>,
}

pub fn slot(sequence: u64) -> u64 {
    if sequence >> 63 == 1 { 0 } else { sequence >> 43 }
}

fn number(sequence: u64) -> u64 {
    sequence & ((1 << 43) - 1)
}

impl ModelSession {
    pub fn highest(&self) -> u64 {
        self.used.last().copied().unwrap_or(0).max(self.floor)
    }

    fn is_over(&self, height: u64) -> bool {
        self.alive < height && (self.until < height || self.is_closed)
    }

    fn room(&self, asset: AssetId) -> i128 {
        self.caps.get(&asset).map_or(0, |(cap, used)| i128::from(*cap) - used)
    }

    fn check(&self, number: u64) -> Result<(), Refusal> {
        match self.highest() {
            highest if number > highest + 64 => Err(Refusal::SEQUENCE_TOO_FAR),
            highest if number == 0 || number + 64 <= highest => Err(Refusal::SEQUENCE_TOO_OLD),
            _ if number <= self.floor || self.used.contains(&number) => Err(Refusal::SEQUENCE_USED),
            _ => Ok(()),
        }
    }
}

/// Whether it stands when others of its account do not.
pub fn is_relief(transaction: &Transaction) -> bool {
    match &transaction.body.operation {
        Operation::Cancel(_) | Operation::Present { .. } => true,
        Operation::Session(operation) => {
            matches!(**operation, SessionOperation::Revoke { .. } | SessionOperation::Alive { .. })
        }
        _ => false,
    }
}

impl Model {
    pub fn session(&self, account: &Address, slot: u64) -> Option<&ModelSession> {
        self.accounts.get(account)?.sessions.live.get(&slot)
    }

    fn session_mut(&mut self, account: &Address, slot: u64) -> Option<&mut ModelSession> {
        self.accounts.get_mut(account)?.sessions.live.get_mut(&slot)
    }

    /// Open offers of a slot.
    pub fn open(&self, account: &Address, of: u64) -> Vec<(Pair, Place)> {
        let is_own = |(_, place): &&(Pair, Place)| place.account == *account && slot(place.id) == of;
        self.offers.keys().filter(is_own).copied().collect()
    }

    /// Whether the session key of its number may send a transaction.
    pub fn session_alone(&self, t: &Transaction) -> Result<(), Refusal> {
        let (of, next) = (slot(t.body.sequence), self.validators.height + 1);
        let session = self.session(&t.body.account, of).ok_or(Refusal::UNKNOWN_SESSION)?;
        if !matches!(t.signed_by, SignedBy::Key { signer, .. } if signer == session.key) {
            return Err(Refusal::WRONG_SESSION_KEY);
        }
        if session.is_closed || next > session.until {
            return Err(Refusal::SESSION_ENDED);
        }
        session.check(number(t.body.sequence))?;
        let trades = match &t.body.operation {
            Operation::Cancel(_) => return Ok(()),
            Operation::Session(operation) => match **operation {
                SessionOperation::Alive { through: 0, .. } => return Ok(()),
                SessionOperation::Alive { slot, .. } if u64::from(slot) == of => false,
                _ => return Err(Refusal::SESSION_SCOPE),
            },
            Operation::CreateOffer { .. } | Operation::Exact { .. } | Operation::Replace(_) => true,
            _ => return Err(Refusal::SESSION_SCOPE),
        };
        match &t.body.operation {
            _ if session.scope != SessionScope::Trade => Err(Refusal::SESSION_SCOPE),
            _ if trades && session.alive < next => Err(Refusal::SESSION_LAPSED),
            Operation::Replace(replace) if slot(replace.old.offer) != of => Err(Refusal::SESSION_REPLACES),
            _ => Ok(()),
        }
    }

    /// Whether the account's keys permit an operation on them.
    pub fn operation_alone(&self, sender: &Address, operation: &SessionOperation) -> Result<(), Refusal> {
        let (next, account) = (self.validators.height + 1, &self.accounts[sender]);
        let session = self.session(sender, operation.slot().into());
        match operation {
            SessionOperation::Authorize { terms, .. } => {
                let live: Vec<_> = account.sessions.live.values().filter(|one| !one.is_over(next)).collect();
                let controls = account.key.map_or(terms.key.address() == *sender, |key| key == terms.key);
                match () {
                    _ if u64::from(terms.slot) != account.sessions.slots + 1 => Err(Refusal::SESSION_SLOT),
                    _ if terms.alive < next || terms.until > next + AHEAD => Err(Refusal::SESSION_HEIGHTS),
                    _ if controls || live.iter().any(|one| one.key == terms.key) => Err(Refusal::SESSION_KEY_TAKEN),
                    _ if live.len() >= 16 => Err(Refusal::SESSIONS_FULL),
                    _ if terms.caps.iter().any(|cap| cap.asset.0 as usize >= self.assets.len()) => {
                        Err(Refusal::UNKNOWN_ASSET)
                    }
                    _ => Ok(()),
                }
            }
            SessionOperation::Revoke { .. } => session.map(|_| ()).ok_or(Refusal::UNKNOWN_SESSION),
            SessionOperation::Alive { through, .. } => match session.ok_or(Refusal::UNKNOWN_SESSION)? {
                session if *through == 0 && session.alive < next => Err(Refusal::SESSION_LAPSED),
                _ if *through == 0 => Ok(()),
                session if session.is_closed || session.until < next => Err(Refusal::SESSION_ENDED),
                session if *through <= next || *through <= session.alive || *through > session.until => {
                    Err(Refusal::SESSION_THROUGH)
                }
                _ => Ok(()),
            },
        }
    }

    /// Units that a transaction uses of each asset.
    pub fn uses(&self, body: &Body) -> Vec<(AssetId, Amount)> {
        let mut uses = vec![(AssetId(0), self.cost(body))];
        match &body.operation {
            Operation::CreateOffer { sell, amount, .. } => uses.push((*sell, *amount)),
            Operation::Exact { sell, side: ExactSide::Buy, bound, .. } => uses.push((*sell, *bound)),
            Operation::Exact { sell, units, .. } => uses.push((*sell, *units)),
            Operation::Replace(replace) => {
                uses.push((replace.old.sell, replace.amount.saturating_sub(replace.remains)));
            }
            _ => {}
        }
        uses
    }

    /// Why those of one slot exceed what its key may use or open.
    pub fn slot_conflict(&self, account: &Address, of: u64, own: &[&Body]) -> Option<Refusal> {
        let session = self.session(account, of).expect("each was let through alone");
        let mut order: Vec<(Option<AssetId>, i128)> = Vec::new();
        let mut add = |what: Option<AssetId>, units: i128| match order.iter_mut().find(|(known, _)| *known == what) {
            Some((_, sum)) => *sum += units,
            None => order.push((what, units)),
        };
        for body in own {
            self.uses(body).into_iter().for_each(|(asset, units)| add(Some(asset), i128::from(units)));
            match body.operation {
                Operation::CreateOffer { life: Life::OneBatch, .. } => {}
                Operation::CreateOffer { .. } => add(None, 1),
                _ => {}
            }
        }
        order.into_iter().find_map(|(what, sum)| match what {
            Some(asset) => (sum > session.room(asset)).then_some(Refusal::SESSION_CAP),
            None => (sum > (OFFERS_MAX - self.open(account, of).len()) as i128).then_some(Refusal::SESSION_OFFERS),
        })
    }

    /// Marks the number of a session key, and what its transaction uses.
    pub fn use_session(&mut self, body: &Body) {
        let mut uses = self.uses(body);
        if let Operation::Replace(replace) = &body.operation
            && !self.offers.contains_key(&super::key_of(&body.account, &replace.old))
        {
            // It pays and does nothing.
            uses.truncate(1);
        }
        let session = self.session_mut(&body.account, slot(body.sequence)).expect("known");
        session.used.insert(number(body.sequence));
        for (asset, units) in uses.into_iter().filter(|(_, units)| *units > 0) {
            session.caps.get_mut(&asset).expect("within its cap").1 += i128::from(units);
        }
    }

    /// Something returns to a slot, or is bought by it.
    pub fn release(&mut self, place: &Place, asset: AssetId, units: i128) {
        if let Some(session) = self.session_mut(&place.account, slot(place.id))
            && let Some((_, used)) = session.caps.get_mut(&asset)
        {
            *used = (*used - units).max(-i128::from(i64::MAX));
        }
    }

    /// What the block's operations do to the slots that there were, after the batch. Returns the slots that end.
    pub fn turn_sessions(&mut self, standing: &[&Transaction]) -> BTreeSet<(Address, u64)> {
        let height = self.validators.height;
        let mut ending = BTreeSet::new();
        let mut raised: BTreeMap<(Address, u64), u64> = BTreeMap::new();
        let mut stops: Vec<(Address, u64, u64)> = Vec::new();
        for (t, operation) in standing.iter().filter_map(|t| match &t.body.operation {
            Operation::Session(operation) => Some((t, operation)),
            _ => None,
        }) {
            let of = (t.body.account, u64::from(operation.slot()));
            match **operation {
                SessionOperation::Authorize { .. } => {}
                SessionOperation::Revoke { .. } => drop(ending.insert(of)),
                SessionOperation::Alive { through: 0, .. } => {
                    ending.insert(of);
                    stops.push((of.0, of.1, t.body.sequence));
                }
                SessionOperation::Alive { through, .. } => {
                    let most = raised.entry(of).or_default();
                    *most = through.max(*most);
                }
            }
        }
        // What the key itself stopped is void before what others stopped.
        stops.sort_by_key(|(_, of, sequence)| slot(*sequence) != *of);
        let mut stopped_by_others = BTreeSet::new();
        for (account, of, sequence) in stops {
            let session = self.session_mut(&account, of).expect("known");
            if slot(sequence) == of {
                session.floor = session.floor.max(number(sequence));
            } else if stopped_by_others.insert((account, of)) {
                session.floor = session.highest() + 64;
            }
            session.alive = height;
        }
        for ((account, of), through) in raised {
            if !ending.contains(&(account, of)) {
                self.session_mut(&account, of).expect("known").alive = through;
            }
        }
        for (address, account) in &self.accounts {
            let due = account.sessions.live.iter().filter(|(_, session)| session.alive == height);
            ending.extend(due.map(|(of, _)| (*address, *of)));
        }
        ending
    }

    /// Revokes, begins and closes sessions, when their offers have ended.
    pub fn end_sessions(&mut self, standing: &[&Transaction]) {
        let height = self.validators.height;
        let mut begun: BTreeMap<Address, (u64, ModelSession, u64)> = BTreeMap::new();
        for t in standing {
            let Operation::Session(operation) = &t.body.operation else { continue };
            let sessions = &mut self.accounts.get_mut(&t.body.account).expect("known").sessions;
            match &**operation {
                SessionOperation::Revoke { slot } => drop(sessions.live.remove(&u64::from(*slot))),
                SessionOperation::Authorize { terms, .. } => {
                    let session = ModelSession {
                        key: terms.key,
                        scope: terms.scope,
                        is_closed: false,
                        until: terms.until,
                        alive: terms.alive,
                        used: BTreeSet::new(),
                        floor: 0,
                        caps: terms.caps.iter().map(|cap| (cap.asset, (cap.units, 0))).collect(),
                    };
                    // Of several the one with the highest number counts.
                    let before = begun.get(&t.body.account).map_or(0, |(_, _, number)| *number);
                    if t.body.sequence > before {
                        begun.insert(t.body.account, (terms.slot.into(), session, t.body.sequence));
                    }
                }
                SessionOperation::Alive { .. } => {}
            }
        }
        for (account, (of, session, _)) in begun {
            let sessions = &mut self.accounts.get_mut(&account).expect("known").sessions;
            sessions.live.retain(|_, one| !one.is_over(height));
            sessions.live.insert(of, session);
            sessions.slots = of;
        }
        for t in standing {
            if matches!(t.body.operation, Operation::CreateAccount { account, .. } if account == t.body.account) {
                let sessions = &mut self.accounts.get_mut(&t.body.account).expect("known").sessions;
                sessions.live.values_mut().for_each(|one| one.is_closed = true);
            }
        }
    }

    /// Asserts that the real ledger has the same session keys.
    pub fn assert_same_sessions(&self, real: &Ledger) {
        for (address, account) in &self.accounts {
            let sessions = real.accounts().get(address).expect("exists").sessions().cloned().unwrap_or_default();
            assert_eq!(u64::from(sessions.slots), account.sessions.slots);
            assert_eq!(sessions.records.len(), account.sessions.live.len());
            for (record, (of, session)) in sessions.records.iter().zip(&account.sessions.live) {
                assert_eq!((u64::from(record.slot), record.key, record.scope), (*of, session.key, session.scope));
                let said = (record.is_closed, record.until, record.alive);
                assert_eq!(said, (session.is_closed, session.until, session.alive), "{address} {of}");
                let budgets: Vec<_> = record.budgets.iter().map(|b| (b.asset, (b.cap, i128::from(b.used)))).collect();
                assert_eq!(budgets, session.caps.clone().into_iter().collect::<Vec<_>>(), "{address} {of}");
                assert!(session.caps.values().all(|(cap, used)| *used <= i128::from(*cap)), "beyond its cap");
                for number in 0..session.highest() + 70 {
                    let (real, free) = (record.window.check(number).is_ok(), session.check(number).is_ok());
                    assert_eq!(real, free, "{address} {of} {number}");
                }
                let open = self.open(address, *of).len();
                assert_eq!(real.open_in_slot(*address, record.slot) as usize, open);
            }
        }
    }
}
