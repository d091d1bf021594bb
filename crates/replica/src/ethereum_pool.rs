//! The pool of pending Ethereum transactions.
//!
//! Pure: no clock and no locks. The pool accepts a transaction if some state can make it valid, its nonce is free and
//! at most [`NONCES_AHEAD`] above the account's, it offers the base fee, and the account can pay for all its pending
//! transactions at their maximum prices. There is one transaction per nonce: a later one replaces it if it offers a
//! tenth more, until the earlier one has been proposed. A sub-block takes the transactions of a sender in nonce
//! order, without gaps.
//!
//! *A transaction that cannot be proposed costs its sender nothing*, so it has limits of its own. A transaction above
//! a nonce gap is accepted while less than half of the pool is full, and dropped after [`GAP_MS`]. An account that
//! delegates (EIP-7702) has at most one pending transaction: any call may empty such an account, and so make all its
//! pending transactions unpayable.
//!
//! *No transaction that can be proposed is forgotten*: after each block the pool looks for transactions that the
//! block made ready, because it filled a gap or lowered the base fee, and [`EthereumPool::waits_since_ms`] reports
//! them.
//!
//! The account of a wallet can also spend natively, by typed data, and the two pools do not see each other's
//! reservations. Where both promise the same units, the native transaction is executed first: the other one is
//! skipped, and the quota bounds what such transactions cost.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ledger::Ledger;
use ledger::contracts::{EthereumFault, EthereumTransaction};
use primitives::{Address, Digest, Superblock, TransactionId};

/// Maximum distance of a nonce above that of the account.
pub const NONCES_AHEAD: u64 = 64;

/// Maximum time that a transaction above a gap, or below the base fee, stays in the pool.
pub const GAP_MS: u64 = 600_000;

/// How often the pool looks for expired transactions.
const LOOK_MS: u64 = 60_000;

/// Bytes of a lane without its transactions: its type and their number.
const LANE_HEAD: usize = 5;

/// Why the pool rejects an Ethereum transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EthereumReject {
    /// The chain does not execute contracts.
    #[error("this chain has no contracts")]
    NoContracts,
    /// No state can make it valid.
    #[error(transparent)]
    Fault(#[from] EthereumFault),
    /// It is pending already.
    #[error("the transaction is pending already")]
    Waiting,
    /// Its nonce was used already.
    #[error("nonce {nonce} is used already: the account's next nonce is {next}")]
    NonceTooLow {
        /// The nonce of the transaction.
        nonce: u64,
        /// The account's next nonce.
        next: u64,
    },
    /// Its nonce is too far ahead.
    #[error(
        "nonce {nonce} is more than 64 above {next}, the account's next nonce: send the transactions between them first"
    )]
    NonceTooHigh {
        /// The nonce of the transaction.
        nonce: u64,
        /// The account's next nonce.
        next: u64,
    },
    /// The account cannot pay for it together with its other pending transactions.
    #[error("the account cannot pay for this transaction together with its other pending transactions")]
    Funds,
    /// It offers less than the base fee.
    #[error("the transaction offers {offered} wei per unit of gas, and the base fee needs {needed}")]
    Price {
        /// The offered price.
        offered: u128,
        /// The required price.
        needed: u128,
    },
    /// It does not offer a tenth more than the transaction that it would replace.
    #[error(
        "the transaction offers {offered} wei per unit of gas; replacing the pending transaction with this nonce \
         needs {needed}"
    )]
    Replacement {
        /// The offered price.
        offered: u128,
        /// The required price.
        needed: u128,
    },
    /// Its account delegates to a contract, and has another pending transaction.
    #[error(
        "the account delegates to a contract (EIP-7702) and may have only one pending transaction: wait until it is \
         committed"
    )]
    Delegated,
    /// Another transaction with its nonce has been proposed.
    #[error("another transaction with this nonce has been proposed already")]
    Proposed,
    /// The pool is full, or half full if the transaction is above a nonce gap.
    #[error("the pool is full: send the transaction again later")]
    Full,
}

impl EthereumReject {
    /// A stable code for programs.
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

/// Transactions for a sub-block, in order, with their senders. The senders travel with the transactions inside the
/// node, so that they are recovered only once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposedLane {
    /// In their EIP-2718 form.
    pub transactions: Vec<Vec<u8>>,
    /// The sender of each, as [`primitives::SubBlock::senders`] holds them.
    pub senders: Vec<Option<Address>>,
}

/// A transaction that some state can make valid, with its sender. Recovering the sender costs about as much as thirty
/// transfers: do it off the critical path, and in parallel.
#[derive(Clone, Debug)]
pub struct EthereumCandidate {
    bytes: Vec<u8>,
    transaction: EthereumTransaction,
    sender: Address,
}

impl EthereumCandidate {
    /// Decodes and checks the bytes of a transaction for a chain, and recovers its sender.
    ///
    /// # Errors
    /// [`EthereumFault`] if no state can make it valid.
    pub fn recover(bytes: Vec<u8>, chain: u64) -> Result<EthereumCandidate, EthereumFault> {
        let transaction = EthereumTransaction::decode(&bytes)?;
        transaction.check(chain)?;
        let sender = transaction.recover_sender()?;
        Ok(EthereumCandidate { bytes, transaction, sender })
    }

    /// As [`EthereumCandidate::recover`], for an account that did not sign it. Only a developers' chain accepts this.
    ///
    /// # Errors
    /// [`EthereumFault`] if no state can make it valid.
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
    /// The account's next nonce when it was last looked at.
    next: u64,
    waiting: BTreeMap<u64, Entry>,
}

/// The pool; see the module text.
#[derive(Default)]
pub struct EthereumPool {
    limit: usize,
    /// Gas that a sub-block may declare, from the last ledger seen.
    quota: u64,
    /// The base fee of the next block.
    base_fee: u128,
    /// A lower bound of the arrival of the oldest transaction that can be proposed and was not.
    waits_since_ms: Option<u64>,
    senders: BTreeMap<Address, Sender>,
    ids: HashMap<TransactionId, (Address, u64)>,
    arrivals: u64,
    /// When the pool last looked for expired transactions.
    looked_ms: u64,
    /// Transactions forwarded to another validator, and when.
    handed: VecDeque<(u64, TransactionId)>,
}

impl EthereumPool {
    /// A pool for at most `limit` transactions.
    pub fn new(limit: usize) -> EthereumPool {
        EthereumPool { limit, ..EthereumPool::default() }
    }

    /// Number of pending transactions, including proposed ones.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the pool is empty.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether this transaction is pending.
    pub fn contains(&self, id: &TransactionId) -> bool {
        self.ids.contains_key(id)
    }

    /// A pending transaction and its sender.
    pub fn get(&self, id: &TransactionId) -> Option<(&[u8], Address)> {
        let (address, nonce) = self.ids.get(id)?;
        Some((&self.senders.get(address)?.waiting.get(nonce)?.bytes, *address))
    }

    /// The nonce above the gapless pending nonces of an account whose next nonce is `next`.
    pub fn nonce_above(&self, address: &Address, next: u64) -> u64 {
        let waiting = self.senders.get(address).into_iter().flat_map(|sender| sender.waiting.range(next..));
        next + (next..).zip(waiting).take_while(|(expected, (nonce, _))| expected == *nonce).count() as u64
    }

    /// Adds a transaction after recovering its sender.
    ///
    /// # Errors
    /// [`EthereumReject`] gives the reason; the pool is unchanged.
    pub fn admit(&mut self, bytes: Vec<u8>, now_ms: u64, ledger: &Ledger) -> Result<TransactionId, EthereumReject> {
        self.enter(EthereumCandidate::recover(bytes, ledger.chain())?, now_ms, ledger)
    }

    /// Adds a transaction whose sender is known.
    ///
    /// # Errors
    /// [`EthereumReject`] gives the reason; the pool is unchanged.
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
            // Other accounts can spend what this one promises here.
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

    /// A lower bound of the arrival of the oldest transaction that can be proposed; `None` if there is none.
    pub fn waits_since_ms(&self) -> Option<u64> {
        self.waits_since_ms
    }

    /// Takes transactions for a sub-block: in order of arrival as far as nonces permit, within `room` bytes and the
    /// gas of a sub-block. They stay in the pool, marked as proposed.
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

    /// Removes a pending transaction; returns whether it was there.
    pub fn forget(&mut self, id: &TransactionId) -> bool {
        let Some((address, nonce)) = self.ids.remove(id) else { return false };
        if let Some(sender) = self.senders.get_mut(&address) {
            sender.waiting.remove(&nonce);
        }
        true
    }

    /// Drops transactions that have been in the pool for longer than [`GAP_MS`] and cannot be proposed.
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
    pub fn restore(&mut self, lane: &[Vec<u8>], now_ms: u64) {
        let id = |bytes: &Vec<u8>| EthereumTransaction::decode(bytes).ok().map(|transaction| transaction.hash());
        lane.iter().filter_map(id).for_each(|id| self.restore_one(&id, now_ms));
    }

    fn restore_one(&mut self, id: &TransactionId, now_ms: u64) {
        let Some((address, nonce)) = self.ids.get(id) else { return };
        let sender = self.senders.get_mut(address).expect("it has transactions");
        sender.waiting.get_mut(nonce).expect("it waits").is_proposed = false;
        self.waits_since_ms.get_or_insert(now_ms);
    }

    /// Records that transactions that were taken have been forwarded to another validator. They are not given out
    /// again until [`EthereumPool::reclaim`] takes them back.
    pub fn mark_forwarded(&mut self, lane: &[Vec<u8>], now_ms: u64) {
        let id = |bytes: &Vec<u8>| EthereumTransaction::decode(bytes).ok().map(|transaction| transaction.hash());
        self.handed.extend(lane.iter().filter_map(id).map(|id| (now_ms, id)));
    }

    /// Takes back transactions that were forwarded before `before_ms` and are in no block yet; returns their number.
    pub fn reclaim(&mut self, before_ms: u64) -> usize {
        let late = self.handed.partition_point(|(at, _)| *at < before_ms);
        let late: Vec<TransactionId> = self.handed.drain(..late).map(|(_, id)| id).collect();
        let waiting: Vec<TransactionId> = late.into_iter().filter(|id| self.ids.contains_key(id)).collect();
        waiting.iter().for_each(|id| self.restore_one(id, before_ms));
        waiting.len()
    }

    /// Whether some transaction can be proposed, or is proposed and in no block applied here.
    pub fn is_busy(&self) -> bool {
        let is_busy = |sender: &Sender| {
            sender.ready(0, self.base_fee).is_some() || sender.waiting.values().any(|entry| entry.is_proposed)
        };
        self.senders.values().any(is_busy)
    }

    /// Drops what a block made invalid: used nonces, and the transactions of an account from the first that it cannot
    /// pay for. Transactions that the block skipped for a gap can be proposed again, and those that it made ready
    /// count as arrived now.
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
        block.sub_blocks.iter().for_each(|sub| self.restore(&sub.ethereum, 0));
    }
}

fn has_code(ledger: &Ledger, address: &Address) -> bool {
    ledger.accounts().get(address).is_some_and(|account| account.evm().code != Digest::default())
}

impl Entry {
    /// The minimum price of a replacement.
    fn replaced_by(&self) -> u128 {
        self.max_fee.saturating_add(self.max_fee.div_ceil(10))
    }
}

impl Sender {
    /// The maximum cost of all transactions except the one with this nonce.
    fn cost_but(&self, nonce: u64) -> u128 {
        let others = self.waiting.iter().filter(|(other, _)| **other != nonce);
        others.map(|(_, entry)| entry.cost).fold(0, u128::saturating_add)
    }

    /// The lowest transaction from a nonce on that has not been proposed, if below it there is neither a gap nor a
    /// transaction that offers too little.
    fn ready(&self, from: u64, base_fee: u128) -> Option<(u64, &Entry)> {
        let from = from.max(self.next);
        self.without_gap(base_fee).find(|(nonce, entry)| *nonce >= from && !entry.is_proposed)
    }

    /// The transactions from the account's nonce up to the first gap or the first one that offers too little.
    fn without_gap(&self, base_fee: u128) -> impl Iterator<Item = (u64, &Entry)> {
        (self.next..)
            .zip(&self.waiting)
            .take_while(move |(expected, (nonce, entry))| expected == *nonce && entry.max_fee >= base_fee)
            .map(|(nonce, (_, entry))| (nonce, entry))
    }
}

/// Whether all nonces from `next` up to this one are pending.
fn follows(sender: Option<&Sender>, next: u64, nonce: u64) -> bool {
    sender.map_or(0, |sender| sender.waiting.range(next..nonce).count()) as u64 == nonce - next
}

#[cfg(test)]
mod tests;
