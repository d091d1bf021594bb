//! The committee's sealing key: how its seats make it on the ledger, and which one is in force.
//!
//! Clients encrypt orders to a key of the whole committee, and t of its seats together open them (`sealing`). No
//! dealer is trusted: the seats make the key by the generation of the payment lane ([`payments::KeyGeneration`]), over
//! a *board* in the state. A chain has the place if its genesis has terms of seals; others have no part and pay
//! nothing.
//!
//! # The protocol
//!
//! Let n be the seats of the committee that acts at the next height, f = ⌊(n−1)/3⌋, and t = f+1, or a quorum if f is 0
//! or the terms say so. A generation has a number, which never comes again, and four steps.
//!
//! - Upon a block after which this committee needs a key: the board is laid out ([`SealStep::Register`]). A committee
//!   needs one if none of its keys is open to the end of its time, or if the newest is older than
//!   [`SEAL_KEY_HEIGHTS`].
//! - Upon *register*: the seat offers a fresh BLS key, with a proof that it has the secret.
//! - Upon *deal*: a seat that registered deals a polynomial of degree t − 1 to those that registered.
//! - Upon *complain*: the seat shows that a dealing gave it a wrong share, and the dealer is out. If the share was
//!   right the seat itself is struck. Upon *fine*: it has no more complaints.
//! - Upon *hold*: a signature of its share on the generation. It opens no envelope, and proves that the share is there.
//! - Upon a block after which all have posted what the step awaits, or that is [`SEAL_STEP_HEIGHTS`] after its
//!   beginning: the step ends. If too few seats took part the generation has failed, and the record names the silent.
//!   Such a committee begins again [`SEAL_RETRY_HEIGHTS`] later.
//! - Upon the end of the last step with at least t + f holders: the key acts [`SEAL_NOTICE`] heights later. An older
//!   key of the same committee opens envelopes for [`SEAL_OVERLAP`] heights more.
//! - Upon *lost*: a holder has no share any more, as after the loss of a disk, and is struck from the holders. Below
//!   t + f holders the key ends after [`SEAL_NOTICE`] heights, and the committee makes another.
//! - Upon the draw of a committee of other accounts: all keys end with the last height of the present one. The next one
//!   begins with its first height. While the accounts stay the same the key serves across epochs.
//! - Upon a restart of the network: keys and board are gone, since labels name the network. Numbers go on.
//!
//! A seat is an account of the committee, and its validator's key signs its posts. They are free, have a quota of their
//! own, and of one seat a block counts one.
//!
//! # Properties
//!
//! 1. *One answer.* The key in force at a height is the same in all states from [`SEAL_NOTICE`] heights before on: who
//!    opens need not have applied the block before.
//! 2. *At most two keys* are in force. A generation begins only while there is at most one.
//! 3. *Holders.* A new key has at least t + f holders whose shares interpolate it: f of them may fall silent.
//! 4. *One seat neither lowers nor ends.* The threshold is of the committee and never falls. With n = 3f + 1 the f
//!    faulty seats cannot keep a key from being made, nor end one, unless the terms say `quorum`.
//! 5. *No gap while members stay*, but for a key that fell below t + f holders.
//! 6. *Paid before work.* What costs points is checked once for each seat and step, after all cheap checks. A seat's
//!    first post counts, sound or not: a flood of unsound ones costs no more than one.
//! 7. *No order.* Posts of a block are taken in the order of their accounts.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | a seat registers late, or never | the step ends after 256 heights; t + f of the others are enough |
//! | a seat deals to some only, or what does not verify | it is out by a proved complaint; it has posted |
//! | it complains without reason | it has revealed its own share of that dealing and is struck; the dealing stands |
//! | a seat floods pools and blocks with its free posts | a pool keeps one of a seat, a block counts one, a sub-block eight |
//! | it complains without end | one complaint a block, one about a dealer, none about a dealer that is out |
//! | it never holds | 256 heights; the key needs t + f holders, so f silent ones change nothing |
//! | it holds, and says `lost` | its own share is struck; f such seats leave t + f of 3f + 1 |
//! | it says `lost` of another's share, or twice | only a holder is struck, by the signature of its own validator |
//! | it posts what was signed for another network, key, step or seat | context and number are in every proof |
//! | it is convicted, or unstakes, before it holds | it keeps the seat to the end of the epoch, and is one of f |
//! | a committee changes in the middle | its board is dropped without a failure; the next one begins at once |
//! | committees change each epoch | each makes its own; epochs shorter than four steps may leave one without a key |
//! | the chain stands still | heights pass for nobody, so no step ends |
//! | a former committee is shown as the present one | clients need a proof that is not old ([`proofs::SealsProof`]) |
//! | one seat, or more than 32 | no generation: alone it would read everything; finishing would take seconds |
//!
//! # Crash
//!
//! All of it is state: a checkpoint has the board with its dealings, and what is derived from them is built again. What
//! a seat keeps on its disk, and what it posts after a crash, is the machine of the seat (`replica::SealSeat`).
//!
//! # Deviations
//!
//! - The design gives this root part the tag 10, which keys of accounts have: it has 13.
//! - t dealers are needed, not f + 1: under `quorum` t − 1 seats that only look must not know the key alone.
//! - A post that does not verify counts as posted, so that it is checked once.
//! - No key is made if the committee that follows is drawn and ends the present one within sixteen heights.

mod board;
mod custody;
#[cfg(test)]
mod model;
mod names;
mod post;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::collections::BTreeSet;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest, Height};
use proofs::{Refusal, SealKeyRecord, SealTerms, SealsRecord, Validators};

use board::Stepped;
pub use board::{SealBoard, SealFailure};
pub(crate) use custody::SealEdit;
pub use names::OpenedNames;
pub use post::{SealPost, SealStep};

/// Heights from the block that completes a key to the first one whose envelopes it opens: twice the most heights that
/// are open at one time.
pub const SEAL_NOTICE: Height = 8;
/// Heights that a seat has for each step.
pub const SEAL_STEP_HEIGHTS: Height = 256;
/// Heights from a failure to the next try of the same committee.
pub const SEAL_RETRY_HEIGHTS: Height = 1_024;
/// Heights after which a committee that stays makes another key.
pub const SEAL_KEY_HEIGHTS: Height = 21_600;
/// Heights that the old key opens envelopes beside the new one.
pub const SEAL_OVERLAP: Height = 256;
/// Seats of a committee that makes a key.
pub const SEAL_SEATS: std::ops::RangeInclusive<usize> = 2..=payments::DKG_MEMBERS_MAX;
/// Keys that are in force or will be.
const KEYS_MAX: usize = 2;
const BOARD_CONTEXT: &str = "walras 2026 seals board v1";

/// The committee that acts at the next height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acting {
    /// The identity of the network.
    pub network: Digest,
    /// The accounts of its seats, in order.
    pub seats: Vec<Address>,
    /// The last height at which these accounts act, as far as it is known: `u64::MAX` while no others are drawn.
    pub ends: Height,
}

impl Acting {
    /// The committee that acts after a height, by a registry that has all draws up to it.
    pub(crate) fn after(all: &Validators, height: Height) -> Acting {
        let schedule = all.terms.schedule;
        let accounts = |epoch| {
            let mut seats: Vec<Address> =
                all.committee(epoch).unwrap_or_default().iter().map(|one| one.account).collect();
            seats.sort_unstable();
            seats
        };
        let now = schedule.epoch_of(height.saturating_add(1));
        let seats = accounts(now);
        let changes = (now + 1..=all.last_epoch()).find(|epoch| accounts(*epoch) != seats);
        let ends = changes.map_or(Height::MAX, |epoch| schedule.last_height(epoch - 1));
        Acting { network: all.terms.network, seats, ends }
    }
}

/// The sealing keys of a chain, and the generation of the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seals {
    stored: Stored,
    board: Option<SealBoard>,
}

/// What a checkpoint has beside the board.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Stored {
    terms: SealTerms,
    keys: Vec<SealKeyRecord>,
    names: OpenedNames,
    /// The number of the next generation.
    next: u64,
    failed: Option<SealFailure>,
}

impl Seals {
    /// Before the first block there is no key.
    fn found(terms: SealTerms) -> Seals {
        let stored = Stored { terms, keys: Vec::new(), names: OpenedNames::default(), next: 1, failed: None };
        Seals { stored, board: None }
    }

    /// The terms.
    pub fn terms(&self) -> SealTerms {
        self.stored.terms
    }

    /// The keys that are in force or will be: at most two, by number.
    pub fn keys(&self) -> &[SealKeyRecord] {
        &self.stored.keys
    }

    /// The newest key that opens envelopes of a height: clients seal to it.
    pub fn in_force(&self, height: Height) -> Option<&SealKeyRecord> {
        self.keys().iter().rev().find(|key| key.is_in_force(height))
    }

    /// The key of a number, if it opens envelopes of a height.
    pub fn opening(&self, number: u64, height: Height) -> Option<&SealKeyRecord> {
        self.keys().iter().find(|key| key.number == number && key.is_in_force(height))
    }

    /// The names of the envelopes that the last blocks have opened.
    pub fn names(&self) -> &OpenedNames {
        &self.stored.names
    }

    /// The generation in progress.
    pub fn board(&self) -> Option<&SealBoard> {
        self.board.as_ref()
    }

    /// How the last generation failed, if no key was made after it.
    pub fn failed(&self) -> Option<&SealFailure> {
        self.stored.failed.as_ref()
    }

    /// The number of the next generation: those below are used.
    pub fn next_number(&self) -> u64 {
        self.stored.next
    }

    /// Whether a seat's post counts in the next block, as far as it is cheap to see.
    pub fn awaits(&self, account: &Address, key: u64, post: &SealPost) -> bool {
        self.check(account, key, post).is_ok()
    }

    /// What the part of the state root is the digest of.
    pub fn record(&self) -> SealsRecord {
        let board = self.board.as_ref().map(SealBoard::record);
        let bytes = borsh::to_vec(&(self.stored.next, &self.stored.failed, board)).expect("writing to memory");
        let Stored { terms, keys, names, .. } = &self.stored;
        let names = if names.is_empty() { Digest::default() } else { names.digest() };
        SealsRecord { terms: *terms, keys: keys.clone(), board: Digest::of(BOARD_CONTEXT, &bytes), names }
    }

    /// Whether a post counts in the next block, as far as it is cheap to see.
    fn check(&self, account: &Address, key: u64, post: &SealPost) -> Result<(), Refusal> {
        if *post == SealPost::Lost && self.keys().iter().any(|one| one.number == key) {
            let of = self.keys().iter().find(|one| one.number == key).expect("there is one");
            let holds = of.holders.iter().any(|holder| holder.account == *account);
            return if holds { Ok(()) } else { Err(Refusal::NOT_A_SEAT) };
        }
        match &self.board {
            Some(board) if board.number() == key => board.check(account, post),
            _ => Err(Refusal::OTHER_SEAL_KEY),
        }
    }

    /// Applies a block: posts that were checked, by account, and then what its height ends and begins.
    fn turn(&mut self, height: Height, acting: &Acting, posts: Vec<(Address, u64, SealPost)>) {
        let (lost, posts): (Vec<_>, Vec<_>) = posts
            .into_iter()
            .partition(|(_, key, post)| *post == SealPost::Lost && self.keys().iter().any(|one| one.number == *key));
        for (account, key, _) in lost {
            self.lose(&account, key, height);
        }
        if let Some(board) = &mut self.board {
            board.accept(posts.into_iter().map(|(account, _, post)| (account, post)).collect());
        }
        self.step(height, acting);
        for key in &mut self.stored.keys {
            key.last = key.last.min(acting.ends);
        }
        self.stored.keys.retain(|key| key.last > height);
        if self.needs_key(height, acting) {
            self.board = Some(SealBoard::new(self.stored.next, self.stored.terms, acting, height));
            self.stored.next += 1;
        }
    }

    /// Whether a block without posts changes something.
    fn is_due(&self, height: Height, acting: &Acting) -> bool {
        let steps = self.board.as_ref().is_some_and(|board| board.seats() != acting.seats || board.is_over(height));
        steps
            || self.keys().iter().any(|key| key.last > acting.ends || key.last <= height)
            || self.needs_key(height, acting)
    }

    fn step(&mut self, height: Height, acting: &Acting) {
        let Some(board) = &mut self.board else { return };
        if board.seats() != acting.seats {
            // Its committee is gone, or goes on with other accounts: nobody has failed.
            self.board = None;
            return;
        }
        match board.step(height) {
            Stepped::Goes => {}
            Stepped::Failed(failure) => (self.board, self.stored.failed) = (None, Some(failure)),
            Stepped::Made(key) => {
                (self.board, self.stored.failed) = (None, None);
                let key = SealKeyRecord { from: height.saturating_add(SEAL_NOTICE), ..key };
                for old in &mut self.stored.keys {
                    old.last = old.last.min(key.from.saturating_add(SEAL_OVERLAP));
                }
                if key.from <= acting.ends {
                    self.stored.keys.push(key);
                }
            }
        }
    }

    /// A holder has no share any more.
    fn lose(&mut self, account: &Address, number: u64, height: Height) {
        for key in self.stored.keys.iter_mut().filter(|key| key.number == number) {
            key.holders.retain(|holder| holder.account != *account);
            if key.holders.len() < usize::from(key.least) {
                key.last = key.last.min(height.saturating_add(SEAL_NOTICE));
            }
        }
    }

    /// Whether the acting committee begins to make a key after a height.
    fn needs_key(&self, height: Height, acting: &Acting) -> bool {
        let is_young = |key: &SealKeyRecord| height.saturating_add(1) < key.from.saturating_add(SEAL_KEY_HEIGHTS);
        let serves = |key: &&SealKeyRecord| key.last >= acting.ends && key.last > height;
        let kept = self.keys().iter().filter(|key| key.last.min(acting.ends) > height).count();
        let waits = self.failed().is_some_and(|failure| {
            failure.seats == acting.seats && height < failure.height.saturating_add(SEAL_RETRY_HEIGHTS)
        });
        let ends_soon = acting.ends <= height.saturating_add(2 * SEAL_NOTICE);
        let is_made = self.board.as_ref().is_some_and(|board| board.seats() == acting.seats);
        let has_key = self.keys().iter().filter(serves).any(is_young);
        SEAL_SEATS.contains(&acting.seats.len()) && kept < KEYS_MAX && !(is_made || has_key || waits || ends_soon)
    }

    /// The restarted network has another identity, which labels name: it makes keys of its own.
    pub(crate) fn begin_again(&mut self) {
        self.board = None;
        self.stored = Stored { keys: Vec::new(), names: OpenedNames::default(), failed: None, ..self.stored.clone() };
    }

    /// The fault of a decoded state of this height, if there is one.
    fn fault(&self, height: Height) -> Option<&'static str> {
        let keys = self.keys();
        let is_key = |key: &SealKeyRecord| {
            let accounts: BTreeSet<&Address> = key.holders.iter().map(|holder| &holder.account).collect();
            let are_placed = key.holders.is_sorted_by(|a, b| a.place < b.place) && accounts.len() == key.holders.len();
            // Below the least the key has an end.
            let is_held = key.holders.len() >= usize::from(key.least) || key.last < Height::MAX;
            are_placed && is_held && key.t > 0 && key.t <= key.least && key.last > height
        };
        Some(match () {
            _ if keys.len() > KEYS_MAX => "more keys than two",
            _ if !keys.is_sorted_by(|a, b| a.number < b.number) => "keys are out of order",
            _ if !keys.iter().all(is_key) => "a key has other holders or heights than it can have",
            _ if keys.iter().any(|key| key.number >= self.stored.next) => "a key has a number to come",
            _ if self.board().is_some_and(|board| board.number() + 1 != self.stored.next) => {
                "a board has another number"
            }
            _ => return self.board().and_then(|board| board.fault(height)),
        })
    }
}
