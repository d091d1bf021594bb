//! Work on the pool: what a validator proposes, hands over, takes back, and accuses others of.

use std::collections::BTreeMap;

use consensus::{Index, Payload};
use ledger::{Ledger, Quota};
use primitives::{Address, Evidence, Height, SecretKey, SubBlock};

use crate::accusations::Accusations;
use crate::mempool::PoolEntry;
use crate::{Input, Mempool, Now, ProposedLane, encode};

/// A job on the pool; see [`Proposals::perform`].
#[derive(Debug)]
pub enum PoolJob {
    /// A sub-block for a height.
    Assemble {
        /// The height.
        height: Height,
        /// The proposer's index.
        proposer: Index,
        /// Bytes that its transactions may take; none if it is to be empty.
        room: Option<usize>,
        /// Transactions at most.
        count: usize,
        /// By how many milliseconds the committee's clocks are ahead of the own one.
        ahead_ms: i64,
    },
    /// Transactions for another validator to propose.
    HandOver {
        /// The validator.
        to: Index,
        /// The own index.
        proposer: Index,
        /// Bytes that they may take.
        room: usize,
        /// Transactions at most.
        count: usize,
        /// By how many milliseconds the committee's clocks are ahead of the own one.
        ahead_ms: i64,
    },
    /// Takes back what was handed over before this time, and is in no block yet. Without the ledger it does not see
    /// what has become void meanwhile.
    TakeBack {
        /// In milliseconds of [`Now::since`].
        before_ms: u64,
    },
    /// What was assembled for this height is in no block: it waits again.
    PutBack(Height),
    /// What was assembled for this height is in its block.
    Decided(Height),
    /// Evidence is to be brought before the ledger.
    Note(Box<Evidence>),
    /// Brings before the ledger what is due.
    Accuse,
}

/// What a sub-block from here holds.
#[derive(Default)]
struct Assembled {
    entries: Vec<PoolEntry>,
    ethereum: ProposedLane,
}

/// The worker of the pool: it remembers what it gave out.
pub struct Proposals {
    /// Of the account that accuses, if it does.
    key: Option<SecretKey>,
    /// What was assembled for heights that are not decided yet.
    assembled: BTreeMap<Height, Assembled>,
    accusations: Accusations,
}

impl Proposals {
    /// Of a validator whose account has this key; without one it accuses nobody.
    pub fn new(key: Option<SecretKey>) -> Proposals {
        Proposals { key, assembled: BTreeMap::new(), accusations: Accusations::default() }
    }

    /// Does a job; what the replica is to be told. Some jobs look at the ledger ([`Proposals::needs_ledger`]), the one
    /// that the pool judges by: without one nobody is accused, and what has become void is not seen.
    pub fn perform(&mut self, job: PoolJob, pool: &mut Mempool, ledger: Option<&Ledger>, now: Now) -> Option<Input> {
        match job {
            PoolJob::Assemble { height, proposer, room, count, ahead_ms } => {
                let (entries, room) = room.map_or_else(Default::default, |room| fitting(pool, room, count));
                let assembled = Assembled { entries, ethereum: pool.ethereum.take(room, now.milliseconds()) };
                let payload = payload(proposer, &assembled, now.corrected_ms(ahead_ms));
                // An earlier epoch may have asked for the same height.
                put_back(pool, self.assembled.insert(height, assembled), now);
                Some(Input::Assembled { height, payload })
            }
            PoolJob::HandOver { to, proposer, room, count, ahead_ms } => {
                let (entries, room) = fitting(pool, room, count);
                let handed = Assembled { entries, ethereum: pool.ethereum.take(room, now.milliseconds()) };
                let payload = payload(proposer, &handed, now.corrected_ms(ahead_ms));
                let count = handed.entries.len() + handed.ethereum.transactions.len();
                pool.hand_over(handed.entries, now.milliseconds());
                pool.ethereum.hand_over(&handed.ethereum.transactions, now.milliseconds());
                Some(Input::HandedOver { to, payload, count })
            }
            PoolJob::TakeBack { before_ms } => {
                let late = pool.take_back(before_ms, ledger) + pool.ethereum.take_back(before_ms);
                (late > 0).then_some(Input::TakenBack)
            }
            PoolJob::PutBack(height) => {
                put_back(pool, self.assembled.remove(&height), now);
                None
            }
            PoolJob::Decided(height) => {
                self.assembled.remove(&height);
                None
            }
            PoolJob::Note(evidence) => {
                // Without an account it would be kept for ever.
                if self.key.is_some() {
                    self.accusations.note(*evidence);
                }
                None
            }
            PoolJob::Accuse => {
                ledger.into_iter().for_each(|ledger| self.accuse(pool, ledger, now));
                None
            }
        }
    }

    /// Who signed the Ethereum transactions of what was assembled for a height, as long as that is not decided.
    pub fn senders(&self, height: Height) -> &[Option<Address>] {
        self.assembled.get(&height).map_or(&[], |assembled| &assembled.ethereum.senders)
    }

    /// Whether a job needs the ledger.
    pub fn needs_ledger(&self, job: &PoolJob) -> bool {
        match job {
            PoolJob::Accuse => !self.accusations.is_empty(),
            PoolJob::TakeBack { .. } => true,
            _ => false,
        }
    }

    /// Whether nothing waits to be brought before the ledger.
    pub fn is_content(&self) -> bool {
        self.accusations.is_empty()
    }

    /// Puts accusations among the waiting transactions, so that they are in the next sub-block from here.
    fn accuse(&mut self, pool: &mut Mempool, ledger: &Ledger, now: Now) {
        let Some(key) = &self.key else { return };
        let account = key.public().address();
        let used = ledger.accounts().get(&account).map_or(0, |own| own.window().highest());
        let next = used.max(pool.highest(&account).unwrap_or(0)) + 1;
        for transaction in self.accusations.due(ledger, key, next, |id| pool.contains(id)) {
            let entry = PoolEntry { id: transaction.id(), arrived_ms: now.milliseconds(), transaction };
            match pool.admit(entry, ledger) {
                Ok(()) => tracing::warn!("accusing a validator of what it signed"),
                Err(why) => tracing::warn!(?why, %account, "this validator's account cannot accuse"),
            }
        }
    }
}

/// What was assembled and is in no block waits again.
fn put_back(pool: &mut Mempool, assembled: Option<Assembled>, now: Now) {
    let Assembled { entries, ethereum } = assembled.unwrap_or_default();
    pool.put_back(entries);
    pool.ethereum.put_back(&ethereum.transactions, now.milliseconds());
}

/// As many waiting native transactions as fit, and the room that is left.
fn fitting(pool: &mut Mempool, mut room: usize, count: usize) -> (Vec<PoolEntry>, usize) {
    let mut quota = Quota::default();
    let fits = |entry: &PoolEntry| {
        let bytes = encode(&entry.transaction).len();
        let fits = bytes <= room;
        if fits {
            room -= bytes;
        }
        fits && quota.admits(&entry.transaction)
    };
    let entries = pool.take_while(count, fits);
    (entries, room)
}

fn payload(proposer: Index, assembled: &Assembled, time_ms: u64) -> Payload {
    let native = assembled.entries.iter().map(|entry| entry.transaction.clone()).collect();
    let ethereum = assembled.ethereum.transactions.clone();
    let sub_block = SubBlock { proposer: u32::from(proposer), time_ms, native, ethereum, ..SubBlock::default() };
    sub_block.to_payload().into()
}
