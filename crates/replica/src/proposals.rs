//! Work on the pool: proposing, forwarding, taking back, accusing others, and saying that this validator is present.

use std::collections::BTreeMap;
use std::sync::Arc;

use consensus::{Index, Payload};
use kernel::Planted;
use ledger::Ledger;
use primitives::{Address, Digest, Evidence, Height, SecretKey, Signer, SubBlock, ValidatorPost};

use crate::accusations::Accusations;
use crate::attendance::Attendance;
use crate::mempool::PoolEntry;
use crate::seat::{SealDone, SealSeat, SealWork};
use crate::{Defect, Input, Mempool, Now, ProposedSection, encode};

/// A job on the pool; see [`Proposals::perform`].
#[derive(Debug)]
pub enum PoolJob {
    /// Assemble a sub-block for a height.
    Assemble {
        /// The height.
        height: Height,
        /// The proposer's index.
        proposer: Index,
        /// Bytes available for its transactions; `None` for an empty sub-block.
        room: Option<usize>,
        /// Maximum number of transactions.
        count: usize,
        /// By how many milliseconds the committee's clocks are ahead of this node's clock.
        ahead_ms: i64,
    },
    /// Take transactions for another validator to propose.
    Forward {
        /// The validator.
        to: Index,
        /// The index of this validator.
        proposer: Index,
        /// Bytes available for them.
        room: usize,
        /// Maximum number of transactions.
        count: usize,
        /// By how many milliseconds the committee's clocks are ahead of this node's clock.
        ahead_ms: i64,
    },
    /// Take back what was forwarded before this time and is in no block yet. Without the ledger, transactions that
    /// are invalid by now are not recognized.
    Reclaim {
        /// In milliseconds of [`Now::since`].
        before_ms: u64,
    },
    /// Return what was assembled for this height to the pool: it is in no block.
    Restore(Height),
    /// What was assembled for this height is in its block.
    Decided(Height),
    /// Record evidence to be submitted to the ledger.
    Note(Box<Evidence>),
    /// Submit the accusations that are due.
    Accuse,
    /// Post what this validator says of itself, if the ledger lacks it. Before, [`Proposals::post_due`] says what is to
    /// be signed.
    Attend,
}

/// The contents of a sub-block assembled here.
#[derive(Default)]
struct Assembled {
    entries: Vec<PoolEntry>,
    ethereum: ProposedSection,
}

/// The worker on the pool; it remembers what it gave out.
pub struct Proposals {
    /// The key of the accusing account, if there is one.
    key: Option<SecretKey>,
    /// What was assembled for heights that are not decided yet.
    assembled: BTreeMap<Height, Assembled>,
    accusations: Accusations,
    /// What it posts about itself; `None` if it never does.
    attendance: Option<Attendance>,
    /// Its part in making the sealing key; `None` if it takes none.
    seat: Option<SealSeat>,
}

impl Proposals {
    /// A worker for the validator whose account has this key. Without a key it accuses nobody.
    pub fn new(key: Option<SecretKey>) -> Proposals {
        Proposals { key, assembled: BTreeMap::new(), accusations: Accusations::default(), attendance: None, seat: None }
    }

    /// The same for a node that posts for the validator with this key that it is present, and approves rules if its
    /// operator wants them.
    pub fn attending(self, signer: Arc<dyn Signer>, approve: Option<u32>) -> Proposals {
        Proposals { attendance: Some(Attendance::new(signer, approve)), ..self }
    }

    /// The same for a node that takes part in making the sealing key.
    pub fn seated(self, seat: SealSeat) -> Proposals {
        Proposals { seat: Some(seat), ..self }
    }

    /// Its part in making the sealing key.
    pub fn seat(&self) -> Option<&SealSeat> {
        self.seat.as_ref()
    }

    /// The work with secrets that is to be done before [`PoolJob::Attend`], and given back
    /// ([`Proposals::take_sealed`]).
    pub fn seal_work(&self, ledger: &Ledger) -> Option<SealWork> {
        self.seat.as_ref()?.work(ledger)
    }

    /// Takes work that was done, and erases secrets that are over, with outcomes certified up to this height. Returns
    /// whether the secrets changed: they are made durable before [`Proposals::sign_sealed`].
    pub fn take_sealed(&mut self, done: Option<SealDone>, ledger: &Ledger, certified: Height) -> bool {
        let Some(seat) = &mut self.seat else { return false };
        let takes = done.is_some_and(|done| seat.take(done, ledger));
        seat.erase(ledger, certified) || takes
    }

    /// Signs the seat's post that was made. This may take as long as the holder of the key needs: hold no lock.
    pub fn sign_sealed(&mut self, network: (Digest, u64), height: Height) {
        self.seat.iter_mut().for_each(|seat| seat.sign(network, height));
    }

    /// The same with a mistake in what it posts.
    pub fn with_defect(self, defect: Planted<Defect>) -> Proposals {
        Proposals { attendance: self.attendance.map(|attendance| attendance.with_defect(defect)), ..self }
    }

    /// The post that is to be signed ([`Proposals::sign_post`]) before [`PoolJob::Attend`].
    pub fn post_due(&self, ledger: &Ledger) -> Option<ValidatorPost> {
        self.attendance.as_ref()?.due(ledger)
    }

    /// Whether the ledger lacks nothing that this node says about itself.
    pub fn is_present(&self, ledger: &Ledger) -> bool {
        self.attendance.as_ref().is_none_or(|attendance| attendance.lacking(ledger).is_none())
            && self.seat.as_ref().is_none_or(|seat| seat.is_content(ledger))
    }

    /// Signs a post that is due. This may take as long as the holder of the key needs: hold no lock.
    pub fn sign_post(&mut self, post: ValidatorPost) {
        if let Some(attendance) = &mut self.attendance {
            attendance.sign(post);
        }
    }

    /// Performs a job; returns the input for the replica, if any. Some jobs read the ledger
    /// ([`Proposals::needs_ledger`]), the same one that the pool judges by. Without a ledger, nobody is accused and
    /// transactions that are invalid by now are not recognized.
    pub fn perform(&mut self, job: PoolJob, pool: &mut Mempool, ledger: Option<&Ledger>, now: Now) -> Option<Input> {
        match job {
            PoolJob::Assemble { height, proposer, room, count, ahead_ms } => {
                let fit = |room| fitting(pool, room, count, true, now);
                let (entries, room) = room.map_or_else(Default::default, fit);
                let assembled = Assembled { entries, ethereum: pool.ethereum.take(room, now.milliseconds()) };
                let payload = payload(proposer, &assembled, now.corrected_ms(ahead_ms));
                // An earlier epoch may have asked for the same height.
                restore(pool, self.assembled.insert(height, assembled), now);
                Some(Input::Assembled { height, payload })
            }
            PoolJob::Forward { to, proposer, room, count, ahead_ms } => {
                let (entries, room) = fitting(pool, room, count, false, now);
                let handed = Assembled { entries, ethereum: pool.ethereum.take(room, now.milliseconds()) };
                let payload = payload(proposer, &handed, now.corrected_ms(ahead_ms));
                let count = handed.entries.len() + handed.ethereum.transactions.len();
                pool.mark_forwarded(handed.entries, now.milliseconds());
                pool.ethereum.mark_forwarded(&handed.ethereum.transactions, now.milliseconds());
                Some(Input::HandedOver { to, payload, count })
            }
            PoolJob::Reclaim { before_ms } => {
                let late = pool.reclaim(before_ms, ledger) + pool.ethereum.reclaim(before_ms);
                (late > 0).then_some(Input::TakenBack)
            }
            PoolJob::Restore(height) => {
                restore(pool, self.assembled.remove(&height), now);
                None
            }
            PoolJob::Decided(height) => {
                self.assembled.remove(&height);
                None
            }
            PoolJob::Note(evidence) => {
                // Without an account it would be kept forever.
                if self.key.is_some() {
                    self.accusations.note(*evidence);
                }
                None
            }
            PoolJob::Accuse => {
                ledger.into_iter().for_each(|ledger| self.accuse(pool, ledger, now));
                None
            }
            PoolJob::Attend => {
                self.attendance.iter_mut().for_each(Attendance::tick);
                if let Some(ledger) = ledger {
                    let at = now.milliseconds();
                    self.attendance.iter_mut().for_each(|attendance| attendance.post(ledger, pool, at));
                    self.seat.iter_mut().for_each(|seat| seat.post(ledger, pool, at));
                }
                None
            }
        }
    }

    /// The senders of the Ethereum transactions that were assembled for a height, until that height is decided.
    pub fn senders(&self, height: Height) -> &[Option<Address>] {
        self.assembled.get(&height).map_or(&[], |assembled| &assembled.ethereum.senders)
    }

    /// Whether a job needs the ledger.
    pub fn needs_ledger(&self, job: &PoolJob) -> bool {
        match job {
            PoolJob::Accuse => !self.accusations.is_empty(),
            PoolJob::Attend => {
                self.attendance.as_ref().is_some_and(Attendance::is_signed)
                    || self.seat.as_ref().is_some_and(SealSeat::is_signed)
            }
            PoolJob::Reclaim { .. } => true,
            _ => false,
        }
    }

    /// Whether no accusation is pending.
    pub fn is_content(&self) -> bool {
        self.accusations.is_empty()
    }

    /// Adds accusations to the pool, so that the next sub-block from here contains them.
    fn accuse(&mut self, pool: &mut Mempool, ledger: &Ledger, now: Now) {
        let Some(key) = &self.key else { return };
        self.accusations.post(ledger, key, pool, now.milliseconds());
    }
}

/// Returns what was assembled and is in no block to the pool.
fn restore(pool: &mut Mempool, assembled: Option<Assembled>, now: Now) {
    let Assembled { entries, ethereum } = assembled.unwrap_or_default();
    pool.restore(entries);
    pool.ethereum.restore(&ethereum.transactions, now.milliseconds());
}

/// As many pending native transactions as fit, and the room that is left. Members' duties come first, in half of the
/// room: what others pay for keeps no vote out, and duties keep no transaction out for ever. Settles of venues come
/// next, and are not forwarded. What quotas bound has half of the rest before what no quota bounds.
fn fitting(pool: &mut Mempool, room: usize, count: usize, has_settles: bool, now: Now) -> (Vec<PoolEntry>, usize) {
    let mut quota = pool.quota();
    let mut fill = |left: &mut usize, entry: &PoolEntry| {
        let bytes = encode(&entry.transaction).len();
        let fits = bytes <= *left && entry.fits(&mut quota);
        *left -= if fits { bytes } else { 0 };
        fits
    };
    let mut share = room.div_ceil(2);
    let mut entries = pool.take_duties(count.div_ceil(2), |entry| fill(&mut share, entry));
    let mut left = room / 2 + share;
    let settles = if has_settles { count - entries.len() } else { 0 };
    entries.extend(pool.take_settles(settles, |entry| fill(&mut left, entry)));
    let mut share = left.div_ceil(2);
    left -= share;
    let most = (count - entries.len()).div_ceil(2);
    entries.extend(pool.take_bounded(most, now.milliseconds(), |entry| fill(&mut share, entry)));
    left += share;
    entries.extend(pool.take_while(count - entries.len(), |entry| fill(&mut left, entry)));
    (entries, left)
}

fn payload(proposer: Index, assembled: &Assembled, time_ms: u64) -> Payload {
    let native = assembled.entries.iter().map(|entry| entry.transaction.clone()).collect();
    let ethereum = assembled.ethereum.transactions.clone();
    let sub_block = SubBlock { proposer: u32::from(proposer), time_ms, native, ethereum, ..SubBlock::default() };
    sub_block.to_payload().into()
}
