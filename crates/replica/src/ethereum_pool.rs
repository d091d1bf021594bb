//! The Ethereum transactions that wait for a block.
//!
//! Pure: no clock and no locks. A transaction enters if no state makes it invalid, its nonce is free and at most
//! [`NONCES_AHEAD`] above the account's, it offers the base fee, and the account can pay for all that waits of it at
//! the highest price. One nonce has one transaction: another one replaces it if it offers a tenth more, until it has
//! been proposed. A sub-block takes the transactions of a sender in the order of their nonces, without gaps.
//!
//! *What cannot be proposed costs its sender nothing*, so it has limits of its own. A transaction above a gap enters
//! while less than half of the pool is full, and is forgotten after [`GAP_MS`]. An account that delegates (EIP-7702)
//! has one waiting transaction: any call may empty such an account, and with it all that waits of it.
//!
//! *Nothing that can be proposed is forgotten*: after each block the pool looks for transactions that the block made
//! ready, because it filled a gap or lowered the base fee, and [`EthereumPool::waits_since_ms`] tells of them.
//!
//! The account of a wallet can spend natively, too, by typed data, and reservations of the two pools do not know each
//! other. Where both promise the same units the native transaction comes first: the other one is skipped, and the quota
//! bounds what such transactions cost.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ledger::Ledger;
use ledger::contracts::{EthereumFault, EthereumTransaction};
use primitives::{Address, Digest, Superblock, TransactionId};

/// A nonce may be so far above that of the account.
pub const NONCES_AHEAD: u64 = 64;

/// A transaction above a gap, or below the base fee, waits no longer than this.
pub const GAP_MS: u64 = 600_000;

/// How often the pool looks for what has waited too long.
const LOOK_MS: u64 = 60_000;

/// Bytes of a lane beside its transactions: its type and their number.
const LANE_HEAD: usize = 5;

/// Why an Ethereum transaction does not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EthereumReject {
    /// The chain executes none.
    #[error("this chain has no contracts")]
    NoContracts,
    /// No state makes it valid.
    #[error(transparent)]
    Fault(#[from] EthereumFault),
    /// It waits already.
    #[error("the transaction waits already")]
    Waiting,
    /// Its nonce is used.
    #[error("nonce {nonce} is used: the account's next is {next}")]
    NonceTooLow {
        /// Its nonce.
        nonce: u64,
        /// The account's.
        next: u64,
    },
    /// Its nonce is too far ahead.
    #[error("nonce {nonce} is more than 64 above {next}, the account's next")]
    NonceTooHigh {
        /// Its nonce.
        nonce: u64,
        /// The account's.
        next: u64,
    },
    /// The account cannot pay for it and for what waits of it.
    #[error("the account cannot pay for this and for what waits of it")]
    Funds,
    /// It offers less than the base fee.
    #[error("it offers {offered} wei for gas, and {needed} are needed")]
    Price {
        /// What it offers.
        offered: u128,
        /// What is needed.
        needed: u128,
    },
    /// It does not offer a tenth more than what it would replace.
    #[error("it offers {offered} wei for gas, and {needed} are needed to replace the transaction of this nonce")]
    Replacement {
        /// What it offers.
        offered: u128,
        /// What is needed.
        needed: u128,
    },
    /// Its account delegates to a contract, and another transaction of it waits.
    #[error("the account delegates to a contract (EIP-7702), so that one transaction of it waits at a time")]
    Delegated,
    /// Another one of its nonce has been proposed.
    #[error("another transaction of this nonce has been proposed")]
    Proposed,
    /// The pool is full: half of it, if the transaction stands above a gap.
    #[error("the pool is full")]
    Full,
}

impl EthereumReject {
    /// A word for programs, which stays.
    pub fn code(&self) -> &'static str {
        match self {
            EthereumReject::NoContracts => "no_contracts",
            EthereumReject::Fault(fault) => fault.code(),
            EthereumReject::Waiting => "waiting",
            EthereumReject::NonceTooLow { .. } => "nonce_too_low",
            EthereumReject::NonceTooHigh { .. } => "nonce_too_high",
            EthereumReject::Funds => "insufficient_funds",
            EthereumReject::Price { .. } | EthereumReject::Replacement { .. } => "underpriced",
            EthereumReject::Delegated => "delegated_account",
            EthereumReject::Proposed => "already_proposed",
            EthereumReject::Full => "mempool_full",
        }
    }
}

/// Transactions for a sub-block, in order, with who signed them. The senders travel with the transactions inside the
/// node, so that nobody recovers them a second time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposedLane {
    /// In their EIP-2718 form.
    pub transactions: Vec<Vec<u8>>,
    /// The sender of each, as [`primitives::SubBlock::senders`] holds them.
    pub senders: Vec<Option<Address>>,
}

/// A transaction that no state makes invalid, with its sender. Recovery costs as much as some thirty transfers: do it
/// where nobody waits, and beside others.
#[derive(Clone, Debug)]
pub struct EthereumCandidate {
    bytes: Vec<u8>,
    transaction: EthereumTransaction,
    sender: Address,
}

impl EthereumCandidate {
    /// Decodes and judges bytes for a chain, and recovers who signed them.
    ///
    /// # Errors
    /// [`EthereumFault`] names what no state could make valid.
    pub fn recover(bytes: Vec<u8>, chain: u64) -> Result<EthereumCandidate, EthereumFault> {
        let transaction = EthereumTransaction::decode(&bytes)?;
        transaction.check(chain)?;
        let sender = transaction.recover_sender()?;
        Ok(EthereumCandidate { bytes, transaction, sender })
    }

    /// The same of an account that did not sign it, which only a developers' chain takes.
    ///
    /// # Errors
    /// [`EthereumFault`] names what no state could make valid.
    pub fn impersonating(bytes: Vec<u8>, chain: u64, sender: Address) -> Result<EthereumCandidate, EthereumFault> {
        let transaction = EthereumTransaction::decode(&bytes)?;
        transaction.check(chain)?;
        Ok(EthereumCandidate { bytes, transaction, sender })
    }

    /// The hash of the transaction.
    pub fn id(&self) -> TransactionId {
        self.transaction.hash()
    }
}

#[derive(Clone, Debug)]
struct Entry {
    id: TransactionId,
    bytes: Vec<u8>,
    gas: u64,
    max_fee: u128,
    cost: u128,
    /// The order of arrival.
    arrival: u64,
    since_ms: u64,
    is_proposed: bool,
}

#[derive(Clone, Debug, Default)]
struct Sender {
    /// The nonce that its account had when it was looked at last.
    next: u64,
    waiting: BTreeMap<u64, Entry>,
}

/// The waiting transactions; see the module text.
#[derive(Default)]
pub struct EthereumPool {
    limit: usize,
    /// Gas that a sub-block may declare, as the ledger said last.
    quota: u64,
    /// The base fee of the next block.
    base_fee: u128,
    /// When the longest of those that were not proposed came, or earlier.
    waits_since_ms: Option<u64>,
    senders: BTreeMap<Address, Sender>,
    ids: HashMap<TransactionId, (Address, u64)>,
    arrivals: u64,
    /// When the pool looked last for what has waited too long.
    looked_ms: u64,
    /// Given to another validator to propose, and when.
    handed: VecDeque<(u64, TransactionId)>,
}

impl EthereumPool {
    /// A pool for at most `limit` transactions.
    pub fn new(limit: usize) -> EthereumPool {
        EthereumPool { limit, ..EthereumPool::default() }
    }

    /// Number of waiting transactions, proposed ones included.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether this transaction waits.
    pub fn contains(&self, id: &TransactionId) -> bool {
        self.ids.contains_key(id)
    }

    /// A transaction that waits, and who sent it.
    pub fn get(&self, id: &TransactionId) -> Option<(&[u8], Address)> {
        let (address, nonce) = self.ids.get(id)?;
        Some((&self.senders.get(address)?.waiting.get(nonce)?.bytes, *address))
    }

    /// The nonce above those of an account that wait without a gap, if the account's next is `next`.
    pub fn nonce_above(&self, address: &Address, next: u64) -> u64 {
        let waiting = self.senders.get(address).into_iter().flat_map(|sender| sender.waiting.range(next..));
        next + (next..).zip(waiting).take_while(|(expected, (nonce, _))| expected == *nonce).count() as u64
    }

    /// Takes a transaction in, which recovers its sender.
    ///
    /// # Errors
    /// [`EthereumReject`] says why not; the pool is unchanged.
    pub fn admit(&mut self, bytes: Vec<u8>, now_ms: u64, ledger: &Ledger) -> Result<TransactionId, EthereumReject> {
        self.enter(EthereumCandidate::recover(bytes, ledger.chain())?, now_ms, ledger)
    }

    /// Takes in a transaction whose sender is known.
    ///
    /// # Errors
    /// [`EthereumReject`] says why not; the pool is unchanged.
    pub fn enter(
        &mut self,
        candidate: EthereumCandidate,
        now_ms: u64,
        ledger: &Ledger,
    ) -> Result<TransactionId, EthereumReject> {
        let head = ledger.contracts().head().ok_or(EthereumReject::NoContracts)?;
        self.forget_late(now_ms);
        let EthereumCandidate { bytes, transaction, sender: address } = candidate;
        let (id, nonce, max_fee) = (transaction.hash(), transaction.nonce(), transaction.max_fee());
        let cost = transaction.cost_max().ok_or(EthereumReject::Funds)?;
        if self.ids.contains_key(&id) {
            return Err(EthereumReject::Waiting);
        }
        let needed = head.base_fee.into();
        if max_fee < needed {
            return Err(EthereumReject::Price { offered: max_fee, needed });
        }
        let next = ledger.ethereum_nonce(&address);
        let known = self.senders.get(&address);
        let rival = known.and_then(|sender| sender.waiting.get(&nonce));
        let others: u128 = known.map_or(0, |sender| sender.cost_but(nonce));
        match rival {
            _ if nonce < next => return Err(EthereumReject::NonceTooLow { nonce, next }),
            _ if nonce - next > NONCES_AHEAD => return Err(EthereumReject::NonceTooHigh { nonce, next }),
            _ if others.saturating_add(cost) > ledger.wei(&address) => return Err(EthereumReject::Funds),
            // Others can spend what it promises here.
            _ if others > 0 && has_code(ledger, &address) => return Err(EthereumReject::Delegated),
            Some(rival) if rival.is_proposed => return Err(EthereumReject::Proposed),
            Some(rival) if max_fee < rival.replaced_by() => {
                return Err(EthereumReject::Replacement { offered: max_fee, needed: rival.replaced_by() });
            }
            None if self.ids.len() >= self.limit => return Err(EthereumReject::Full),
            None if self.ids.len() >= self.limit / 2 && !follows(known, next, nonce) => {
                return Err(EthereumReject::Full);
            }
            _ => {}
        }
        let arrival = rival.map_or(self.arrivals, |rival| rival.arrival);
        self.arrivals += 1;
        let gas = transaction.gas_limit();
        let sender = self.senders.entry(address).or_default();
        sender.next = next;
        let entry = Entry { id, bytes, gas, max_fee, cost, arrival, since_ms: now_ms, is_proposed: false };
        if let Some(replaced) = sender.waiting.insert(nonce, entry) {
            self.ids.remove(&replaced.id);
        }
        self.ids.insert(id, (address, nonce));
        (self.quota, self.base_fee) = (ledger.limits().sub_block_gas, head.base_fee.into());
        self.waits_since_ms.get_or_insert(now_ms);
        Ok(id)
    }

    /// When the longest of those that can be proposed came, or earlier; `None` if there is none.
    pub fn waits_since_ms(&self) -> Option<u64> {
        self.waits_since_ms
    }

    /// Gives transactions for a sub-block: in the order of arrival as far as nonces permit, with at most so many bytes
    /// and the gas of a sub-block together. They wait on, as proposed ones.
    pub fn take(&mut self, mut room: usize, now_ms: u64) -> ProposedLane {
        self.forget_late(now_ms);
        let (mut gas, base_fee) = (self.quota, self.base_fee);
        room = room.saturating_sub(LANE_HEAD);
        let mut taken = ProposedLane::default();
        let mut is_rest = false;
        // The next transaction of each sender, by arrival.
        let ready = self.senders.iter().filter_map(|(address, sender)| Some((sender.ready(0, base_fee)?, *address)));
        let mut ready: BTreeMap<u64, (Address, u64)> =
            ready.map(|((nonce, entry), address)| (entry.arrival, (address, nonce))).collect();
        while let Some((_, (address, nonce))) = ready.pop_first() {
            let sender = self.senders.get_mut(&address).expect("it has transactions");
            let entry = sender.waiting.get_mut(&nonce).expect("it waits");
            let size = entry.bytes.len() + 4;
            if size > room || entry.gas > gas {
                is_rest = true;
                continue;
            }
            (room, gas) = (room - size, gas - entry.gas);
            entry.is_proposed = true;
            taken.transactions.push(entry.bytes.clone());
            taken.senders.push(Some(address));
            if let Some((nonce, entry)) = sender.ready(nonce + 1, base_fee) {
                ready.insert(entry.arrival, (address, nonce));
            }
        }
        self.waits_since_ms = self.waits_since_ms.filter(|_| is_rest);
        taken
    }

    /// Takes a transaction out that waits; whether it was there.
    pub fn forget(&mut self, id: &TransactionId) -> bool {
        let Some((address, nonce)) = self.ids.remove(id) else { return false };
        if let Some(sender) = self.senders.get_mut(&address) {
            sender.waiting.remove(&nonce);
        }
        true
    }

    /// Forgets what has waited for longer than [`GAP_MS`] and cannot be proposed.
    fn forget_late(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.looked_ms) < LOOK_MS {
            return;
        }
        self.looked_ms = now_ms;
        let (ids, base_fee) = (&mut self.ids, self.base_fee);
        self.senders.retain(|_, sender| {
            let ready = sender.without_gap(base_fee).count();
            let mut place = 0;
            sender.waiting.retain(|_, entry| {
                place += 1;
                let stays = place <= ready || entry.is_proposed || now_ms.saturating_sub(entry.since_ms) <= GAP_MS;
                if !stays {
                    ids.remove(&entry.id);
                }
                stays
            });
            !sender.waiting.is_empty()
        });
    }

    /// Notes that proposed transactions are in no block: they may be proposed again.
    pub fn put_back(&mut self, lane: &[Vec<u8>], now_ms: u64) {
        let id = |bytes: &Vec<u8>| EthereumTransaction::decode(bytes).ok().map(|transaction| transaction.hash());
        lane.iter().filter_map(id).for_each(|id| self.put_back_one(&id, now_ms));
    }

    fn put_back_one(&mut self, id: &TransactionId, now_ms: u64) {
        let Some((address, nonce)) = self.ids.get(id) else { return };
        let sender = self.senders.get_mut(address).expect("it has transactions");
        sender.waiting.get_mut(nonce).expect("it waits").is_proposed = false;
        self.waits_since_ms.get_or_insert(now_ms);
    }

    /// Notes that transactions that were taken have been given to another validator. They are not given again until
    /// [`EthereumPool::take_back`] takes them back.
    pub fn hand_over(&mut self, lane: &[Vec<u8>], now_ms: u64) {
        let id = |bytes: &Vec<u8>| EthereumTransaction::decode(bytes).ok().map(|transaction| transaction.hash());
        self.handed.extend(lane.iter().filter_map(id).map(|id| (now_ms, id)));
    }

    /// Takes back what was handed over before `before_ms` and is in no block yet; the number.
    pub fn take_back(&mut self, before_ms: u64) -> usize {
        let late = self.handed.partition_point(|(at, _)| *at < before_ms);
        let late: Vec<TransactionId> = self.handed.drain(..late).map(|(_, id)| id).collect();
        let waiting: Vec<TransactionId> = late.into_iter().filter(|id| self.ids.contains_key(id)).collect();
        waiting.iter().for_each(|id| self.put_back_one(id, before_ms));
        waiting.len()
    }

    /// Whether a transaction can be proposed, or is proposed and in no block that was applied here.
    pub fn is_busy(&self) -> bool {
        let is_busy = |sender: &Sender| {
            sender.ready(0, self.base_fee).is_some() || sender.waiting.values().any(|entry| entry.is_proposed)
        };
        self.senders.values().any(is_busy)
    }

    /// Forgets what cannot stand any more after a block: used nonces, and from the first that its account cannot pay
    /// for on. What the block skipped for a gap can be proposed again, and what the block made ready waits from now on.
    pub fn settle(&mut self, ledger: &Ledger, block: &Superblock) {
        self.base_fee = ledger.contracts().head().map_or(0, |head| head.base_fee.into());
        if !self.senders.is_empty() && block.ethereum_len() > 0 {
            self.settle_lanes(ledger, block);
        }
        let base_fee = self.base_fee;
        if self.waits_since_ms.is_none() && self.senders.values().any(|sender| sender.ready(0, base_fee).is_some()) {
            self.waits_since_ms = Some(0);
        }
    }

    fn settle_lanes(&mut self, ledger: &Ledger, block: &Superblock) {
        self.senders.retain(|address, sender| {
            sender.next = ledger.ethereum_nonce(address);
            let (mut wei, next) = (ledger.wei(address), sender.next);
            sender.waiting.retain(|nonce, entry| {
                let stands = *nonce >= next && wei >= entry.cost;
                wei = if *nonce < next { wei } else { wei.saturating_sub(entry.cost) };
                if !stands {
                    self.ids.remove(&entry.id);
                }
                stands
            });
            !sender.waiting.is_empty()
        });
        block.sub_blocks.iter().for_each(|sub| self.put_back(&sub.ethereum, 0));
    }
}

fn has_code(ledger: &Ledger, address: &Address) -> bool {
    ledger.accounts().get(address).is_some_and(|account| account.evm().code != Digest::default())
}

impl Entry {
    /// What replaces it offers at least so much.
    fn replaced_by(&self) -> u128 {
        self.max_fee.saturating_add(self.max_fee.div_ceil(10))
    }
}

impl Sender {
    /// What all but the transaction of one nonce may cost.
    fn cost_but(&self, nonce: u64) -> u128 {
        let others = self.waiting.iter().filter(|(other, _)| **other != nonce);
        others.map(|(_, entry)| entry.cost).fold(0, u128::saturating_add)
    }

    /// The lowest transaction from a nonce on that has not been proposed. Below it there is no gap, and no transaction
    /// that offers too little.
    fn ready(&self, from: u64, base_fee: u128) -> Option<(u64, &Entry)> {
        let from = from.max(self.next);
        self.without_gap(base_fee).find(|(nonce, entry)| *nonce >= from && !entry.is_proposed)
    }

    /// The transactions from the account's nonce on, up to a gap or to one that offers too little.
    fn without_gap(&self, base_fee: u128) -> impl Iterator<Item = (u64, &Entry)> {
        (self.next..)
            .zip(&self.waiting)
            .take_while(move |(expected, (nonce, entry))| expected == *nonce && entry.max_fee >= base_fee)
            .map(|(nonce, (_, entry))| (nonce, entry))
    }
}

/// Whether all nonces below one wait.
fn follows(sender: Option<&Sender>, next: u64, nonce: u64) -> bool {
    sender.map_or(0, |sender| sender.waiting.range(next..nonce).count()) as u64 == nonce - next
}

#[cfg(test)]
mod tests;
