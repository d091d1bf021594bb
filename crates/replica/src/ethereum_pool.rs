//! The pool of pending Ethereum transactions.
//!
//! Pure: no clock and no locks. The pool accepts a transaction if some state can make it valid, its nonce is free and
//! at most [`NONCES_AHEAD`] above the account's, it offers the base fee, and the account can pay for all its pending
//! transactions at their maximum prices. There is one transaction per nonce: a later one replaces it if it offers a
//! tenth more, until the earlier one has been proposed. A sub-block takes the transactions of a sender in nonce
//! order, without gaps, and of different senders those first that are expected to pay most for the gas that they
//! declare (`worth.rs`).
//!
//! *A transaction that cannot be proposed costs its sender nothing*, so it has limits of its own. A transaction above
//! a nonce gap is accepted while less than half of the pool is full, dropped after [`GAP_MS`], and yields to one that
//! can be proposed if the account cannot pay for both. An account that delegates (EIP-7702) sends one transaction at a
//! time, with its next nonce: any call may empty such an account, and so make all its pending transactions unpayable.
//!
//! *Pool and executor judge by one rule.* What no block can execute is not accepted, and what the executor skips for a
//! reason that stays is dropped: [`EthereumPool::settle`] and [`EthereumPool::dropped`] give the reason.
//!
//! *No transaction that can be proposed is forgotten*. After each block the pool looks for transactions that the block
//! made ready, because it filled a gap or lowered the base fee, and [`EthereumPool::waits_since_ms`] reports them.
//!
//! The account of a wallet can also spend natively, by typed data, and the two pools do not see each other's
//! reservations. Where both promise the same units, the native transaction is executed first: the other one is
//! skipped, and the quota bounds what such transactions cost.

mod reject;
mod sender;
mod worth;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};

use ledger::Ledger;
use ledger::contracts::{ContractReceipts, EthereumFault, EthereumRules, EthereumTransaction, Skip};
use primitives::{Address, Superblock, TransactionId};

use reject::is_final;
pub use reject::{EthereumReject, PoolDrop};
use sender::{Entry, Sender, SenderCode, follows};
use worth::{LastCalls, Offered};

/// Maximum distance of a nonce above that of the account.
pub const NONCES_AHEAD: u64 = 64;

/// Maximum time that a transaction above a gap, or below the base fee, stays in the pool.
pub const GAP_MS: u64 = 600_000;

/// How often the pool looks for expired transactions.
const LOOK_MS: u64 = 60_000;

/// Number of dropped transactions whose reasons are kept.
const DROPPED_MAX: usize = 1_000;

/// Bytes of a section without its transactions: its type and their number.
const LANE_HEAD: usize = 5;
/// Bytes before each of its transactions: its length.
const LENGTH: usize = 4;

/// Transactions for a sub-block, in order, with their senders. The senders travel with the transactions inside the
/// node, so that they are recovered only once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposedSection {
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
    /// Decodes and checks the bytes of a transaction by the rules of the next block, and recovers its sender.
    ///
    /// # Errors
    /// [`EthereumFault`] if no state can make it valid.
    pub fn recover(bytes: Vec<u8>, rules: EthereumRules) -> Result<EthereumCandidate, EthereumFault> {
        let transaction = EthereumTransaction::decode(&bytes)?;
        transaction.check(rules)?;
        let sender = transaction.recover_sender()?;
        transaction.check_from(&sender, rules.spec)?;
        Ok(EthereumCandidate { bytes, transaction, sender })
    }

    /// As [`EthereumCandidate::recover`], for an account that did not sign it. Only a developers' chain accepts this.
    ///
    /// # Errors
    /// [`EthereumFault`] if no state can make it valid.
    pub fn impersonating(
        bytes: Vec<u8>,
        rules: EthereumRules,
        sender: Address,
    ) -> Result<EthereumCandidate, EthereumFault> {
        let transaction = EthereumTransaction::decode(&bytes)?;
        transaction.check(rules)?;
        transaction.check_from(&sender, rules.spec)?;
        Ok(EthereumCandidate { bytes, transaction, sender })
    }

    /// The hash of the transaction.
    pub fn id(&self) -> TransactionId {
        self.transaction.hash()
    }

    /// The account that signed it.
    pub fn sender(&self) -> Address {
        self.sender
    }
}

/// A pending transaction.
#[derive(Clone, Copy, Debug)]
pub struct PendingEthereum<'a> {
    /// Its hash.
    pub id: TransactionId,
    /// In its EIP-2718 form.
    pub bytes: &'a [u8],
    /// Its sender.
    pub sender: Address,
    /// Its nonce.
    pub nonce: u64,
    /// Whether it can be proposed: neither a gap nor the base fee keeps it from it.
    pub is_ready: bool,
}

/// The pool; see the module text.
#[derive(Default)]
pub struct EthereumPool {
    limit: usize,
    /// Bytes that a sub-block has for transactions, if that is bounded.
    room: Option<usize>,
    /// Gas that a sub-block may declare, from the last ledger seen.
    quota: u64,
    /// The base fee of the next block.
    base_fee: u128,
    /// A lower bound of the arrival of the oldest transaction that can be proposed and was not.
    waits_since_ms: Option<u64>,
    senders: BTreeMap<Address, Sender>,
    last_calls: LastCalls,
    ids: HashMap<TransactionId, (Address, u64)>,
    arrivals: u64,
    /// When the pool last looked for expired transactions.
    looked_ms: u64,
    /// Transactions forwarded to another validator, and when.
    handed: VecDeque<(u64, TransactionId)>,
    /// The last dropped transactions, and why.
    dropped: VecDeque<(TransactionId, PoolDrop)>,
}

impl EthereumPool {
    /// A pool for at most `limit` transactions.
    pub fn new(limit: usize) -> EthereumPool {
        EthereumPool { limit, ..EthereumPool::default() }
    }

    /// Tells the pool how many bytes a sub-block has for transactions: no block carries what needs more.
    pub(crate) fn set_room(&mut self, bytes: usize) {
        self.room = Some(bytes);
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

    /// Why one of the last dropped transactions was dropped.
    pub fn dropped(&self, id: &TransactionId) -> Option<PoolDrop> {
        self.dropped.iter().rev().find(|(dropped, _)| dropped == id).map(|(_, why)| *why)
    }

    fn note_dropped(&mut self, dropped: &[(TransactionId, PoolDrop)]) {
        self.dropped.extend(dropped);
        let old = self.dropped.len().saturating_sub(DROPPED_MAX);
        self.dropped.drain(..old);
    }

    /// Pending transactions by sender and nonce, with whether they can be proposed, or are.
    pub fn pending(&self) -> impl Iterator<Item = PendingEthereum<'_>> {
        self.senders.iter().flat_map(|(sender, of)| {
            let ready = of.without_gap(self.base_fee).count();
            of.waiting.iter().enumerate().map(move |(at, (nonce, entry))| PendingEthereum {
                id: entry.id,
                bytes: &entry.bytes,
                sender: *sender,
                nonce: *nonce,
                is_ready: at < ready || entry.is_proposed,
            })
        })
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
        self.enter(EthereumCandidate::recover(bytes, ledger.next_transaction_rules())?, now_ms, ledger)
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
        let (size, room) = (bytes.len(), self.room.map_or(usize::MAX, |room| room.saturating_sub(LANE_HEAD + LENGTH)));
        if size > room {
            return Err(EthereumReject::Oversized { size, room });
        }
        let (id, nonce, max_fee) = (transaction.hash(), transaction.nonce(), transaction.max_fee());
        let cost = transaction.cost_max().ok_or(EthereumReject::Funds)?;
        if self.ids.contains_key(&id) {
            return Err(EthereumReject::Waiting);
        }
        let needed = head.base_fee.into();
        if max_fee < needed {
            return Err(EthereumReject::Price { offered: max_fee, needed });
        }
        // A genesis has room for each transaction in a sub-block.
        let (gas, quota) = (transaction.gas_limit(), ledger.limits().sub_block_gas);
        let offered = Offered::of(&transaction, ledger);
        let (next, code) = (ledger.ethereum_nonce(&address), SenderCode::of(ledger, &address));
        if code == SenderCode::Contract && !ledger.is_developers() {
            return Err(EthereumReject::SenderHasCode);
        }
        let known = self.senders.get(&address);
        let rival = known.and_then(|sender| sender.waiting.get(&nonce));
        let is_next = |sender: &Sender| sender.waiting.contains_key(&next);
        match rival {
            _ if nonce < next => return Err(EthereumReject::NonceTooLow { nonce, next }),
            _ if nonce - next > NONCES_AHEAD => return Err(EthereumReject::NonceTooHigh { nonce, next }),
            // Other accounts can spend what this one promises here.
            _ if nonce > next && code == SenderCode::Delegates && known.is_some_and(is_next) => {
                return Err(EthereumReject::Delegated);
            }
            _ if nonce > next && code == SenderCode::Delegates => {
                return Err(EthereumReject::DelegatedGap { nonce, next });
            }
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
        let no_others = Sender::default();
        let yielding = known.unwrap_or(&no_others).yielding(next, nonce, cost, ledger.wei(&address));
        let yielding = yielding.ok_or(EthereumReject::Funds)?;
        let arrival = rival.map_or(self.arrivals, |rival| rival.arrival);
        self.arrivals += 1;
        self.drop_yielding(&yielding);
        let sender = self.senders.entry(address).or_default();
        sender.next = next;
        let entry = Entry { id, bytes, gas, max_fee, offered, cost, arrival, since_ms: now_ms, is_proposed: false };
        if let Some(replaced) = sender.waiting.insert(nonce, entry) {
            self.ids.remove(&replaced.id);
        }
        self.ids.insert(id, (address, nonce));
        (self.quota, self.base_fee) = (quota, head.base_fee.into());
        self.waits_since_ms.get_or_insert(now_ms);
        Ok(id)
    }

    /// A lower bound of the arrival of the oldest transaction that can be proposed; `None` if there is none.
    pub fn waits_since_ms(&self) -> Option<u64> {
        self.waits_since_ms
    }

    /// Takes transactions for a sub-block: by what they are expected to pay for the gas that they declare, and then by
    /// arrival, as far as nonces permit, within `room` bytes and the gas of a sub-block. They stay in the pool, marked
    /// as proposed.
    pub fn take(&mut self, mut room: usize, now_ms: u64) -> ProposedSection {
        self.forget_late(now_ms);
        let (mut gas, base_fee) = (self.quota, self.base_fee);
        room = room.saturating_sub(LANE_HEAD);
        let mut taken = ProposedSection::default();
        let mut is_rest = false;
        let last_calls = &self.last_calls;
        let rank = |entry: &Entry| (Reverse(entry.offered.worth(base_fee, last_calls)), entry.arrival);
        // The next transaction of each sender, the one of most worth first.
        let ready = self.senders.iter().filter_map(|(address, sender)| Some((sender.ready(0, base_fee)?, *address)));
        let mut ready: BTreeMap<(Reverse<u128>, u64), (Address, u64)> =
            ready.map(|((nonce, entry), address)| (rank(entry), (address, nonce))).collect();
        while let Some((_, (address, nonce))) = ready.pop_first() {
            let sender = self.senders.get_mut(&address).expect("it has transactions");
            let entry = sender.waiting.get_mut(&nonce).expect("it waits");
            let size = entry.bytes.len() + LENGTH;
            if size > room || entry.gas > gas {
                is_rest = true;
                continue;
            }
            (room, gas) = (room - size, gas - entry.gas);
            entry.is_proposed = true;
            taken.transactions.push(entry.bytes.clone());
            taken.senders.push(Some(address));
            if let Some((nonce, entry)) = sender.ready(nonce + 1, base_fee) {
                ready.insert(rank(entry), (address, nonce));
            }
        }
        // What found no room could not have been in a block before.
        self.waits_since_ms = is_rest.then_some(now_ms);
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

    /// Removes all pending transactions, or those of one account; returns their number.
    pub fn forget_all(&mut self, of: Option<&Address>) -> usize {
        let before = self.ids.len();
        self.senders.retain(|sender, _| of.is_some_and(|of| of != sender));
        self.ids.retain(|_, (sender, _)| of.is_some_and(|of| of != sender));
        before - self.ids.len()
    }

    fn drop_yielding(&mut self, yielding: &[TransactionId]) {
        for id in yielding {
            self.forget(id);
            self.note_dropped(&[(*id, PoolDrop::Yielded)]);
        }
    }

    /// Drops transactions that have been in the pool for longer than [`GAP_MS`] and cannot be proposed.
    fn forget_late(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.looked_ms) < LOOK_MS {
            return;
        }
        self.looked_ms = now_ms;
        let mut late = Vec::new();
        let (ids, base_fee) = (&mut self.ids, self.base_fee);
        self.senders.retain(|_, sender| {
            let ready = sender.without_gap(base_fee).count();
            let mut place = 0;
            sender.waiting.retain(|_, entry| {
                place += 1;
                let stays = place <= ready || entry.is_proposed || now_ms.saturating_sub(entry.since_ms) <= GAP_MS;
                if !stays {
                    ids.remove(&entry.id);
                    late.push((entry.id, PoolDrop::Late));
                }
                stays
            });
            !sender.waiting.is_empty()
        });
        self.note_dropped(&late);
    }

    /// Notes that proposed transactions are in no block: they may be proposed again.
    pub fn restore(&mut self, section: &[Vec<u8>], now_ms: u64) {
        let id = |bytes: &Vec<u8>| EthereumTransaction::decode(bytes).ok().map(|transaction| transaction.hash());
        section.iter().filter_map(id).for_each(|id| self.restore_one(&id, now_ms));
    }

    fn restore_one(&mut self, id: &TransactionId, now_ms: u64) {
        let Some((address, nonce)) = self.ids.get(id) else { return };
        let sender = self.senders.get_mut(address).expect("it has transactions");
        sender.waiting.get_mut(nonce).expect("it waits").is_proposed = false;
        self.waits_since_ms.get_or_insert(now_ms);
    }

    /// Records that transactions that were taken have been forwarded to another validator. They are not given out
    /// again until [`EthereumPool::reclaim`] takes them back.
    pub fn mark_forwarded(&mut self, section: &[Vec<u8>], now_ms: u64) {
        let id = |bytes: &Vec<u8>| EthereumTransaction::decode(bytes).ok().map(|transaction| transaction.hash());
        self.handed.extend(section.iter().filter_map(id).map(|id| (now_ms, id)));
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

    /// Drops what a block made invalid: used nonces, the transactions of an account from the first that it cannot pay
    /// for, and those that the block skipped for a reason that stays. Other transactions that it skipped can be
    /// proposed again, and those that it made ready count as arrived now. Returns what no block will execute, with the
    /// reason.
    pub fn settle(
        &mut self,
        ledger: &Ledger,
        block: &Superblock,
        contracts: &ContractReceipts,
    ) -> Vec<(TransactionId, PoolDrop)> {
        let mut dropped = Vec::new();
        for receipt in &contracts.receipts {
            let place = self.ids.get(&receipt.id);
            let entry = place.and_then(|(sender, nonce)| self.senders.get(sender)?.waiting.get(nonce));
            entry.into_iter().for_each(|entry| self.last_calls.note(&entry.offered, receipt.gas_used));
        }
        self.base_fee = ledger.contracts().head().map_or(0, |head| head.base_fee.into());
        if !self.senders.is_empty() && block.ethereum_len() > 0 {
            self.drop_skipped(block, &contracts.skipped, &mut dropped);
            self.settle_lanes(ledger, block, &mut dropped);
            self.note_dropped(&dropped);
        }
        let base_fee = self.base_fee;
        if self.waits_since_ms.is_none() && self.senders.values().any(|sender| sender.ready(0, base_fee).is_some()) {
            self.waits_since_ms = Some(0);
        }
        dropped
    }

    fn drop_skipped(
        &mut self,
        block: &Superblock,
        skipped: &[(u32, Skip)],
        dropped: &mut Vec<(TransactionId, PoolDrop)>,
    ) {
        let ethereum: Vec<&Vec<u8>> = block.sub_blocks.iter().flat_map(|sub| &sub.ethereum).collect();
        for (position, skip) in skipped.iter().filter(|(_, skip)| is_final(*skip)) {
            let Some(bytes) = ethereum.get(*position as usize) else { continue };
            let Ok(transaction) = EthereumTransaction::decode(bytes) else { continue };
            if self.forget(&transaction.hash()) {
                dropped.push((transaction.hash(), PoolDrop::Skipped(*skip)));
            }
        }
    }

    fn settle_lanes(&mut self, ledger: &Ledger, block: &Superblock, dropped: &mut Vec<(TransactionId, PoolDrop)>) {
        self.senders.retain(|address, sender| {
            sender.next = ledger.ethereum_nonce(address);
            let (mut wei, next) = (ledger.wei(address), sender.next);
            sender.waiting.retain(|nonce, entry| {
                let (is_used, is_paid) = (*nonce < next, wei >= entry.cost);
                wei = if is_used { wei } else { wei.saturating_sub(entry.cost) };
                if is_used || !is_paid {
                    self.ids.remove(&entry.id);
                }
                if !is_used && !is_paid {
                    dropped.push((entry.id, PoolDrop::Funds));
                }
                !is_used && is_paid
            });
            !sender.waiting.is_empty()
        });
        block.sub_blocks.iter().for_each(|sub| self.restore(&sub.ethereum, 0));
    }
}

#[cfg(test)]
mod tests;
