//! What a seat of the committee does to make the sealing key, and the secrets that it keeps for it.
//!
//! The ledger's place `seals` says what is posted when. This machine sees from a state which post its own seat owes,
//! and gives the work with secrets out as data ([`SealWork`]): it takes milliseconds, and random bytes are the shell's.
//!
//! - Upon a state whose board awaits the seat: the work for its post. *Register* draws a fresh secret of 32 bytes, the
//!   *seed*. Keys, dealing and complaints are derived from it and from the board. *Hold* derives the share, which takes
//!   the place of the seed.
//! - Upon work that was done ([`SealSeat::take`]): the secrets as they are now. The shell makes them durable before it
//!   signs the post ([`SealSeat::sign`]).
//! - Upon a tick ([`SealSeat::post`]): the signed post enters the pool, unless it is pending or counts no more.
//! - Upon a state in which the seat holds a share that it does not have: it posts `lost`.
//! - Upon a state without the number of a secret, once a height above is certified: the secret is erased. The outcome
//!   of the last height that needs it is certified then.
//!
//! # Properties
//!
//! 1. *One dealing.* Under one registration a seat deals once: what it would deal again has the same bytes.
//! 2. *Nothing before the disk.* A post that shows a secret's public half is signed after the secret is durable.
//! 3. *Nothing of another network.* Secrets are of one network and one number, and those of another are erased.
//! 4. *No secret outlives its key.*
//!
//! # Crash
//!
//! Before the secrets are durable: nothing was posted, and a new seed is drawn. After it, and before the post is in a
//! block: the same post is made again. A lost disk between registering and holding leaves the seat silent; afterwards
//! it says `lost`.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | a backup of the disk is restored, and an old seed with it | its number is over, or its dealing is the same |
//! | a state of a restarted network, with numbers of before | secrets name the network |
//! | a dealing that hides a share from this seat alone | it complains before it says that all is fine |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::Planted;
use ledger::{Ledger, SealBoard, SealPost, SealStep, Seals};
use payments::{KeyGeneration, KeyShare, SealSeed, dealing, false_dealing};
use primitives::{Address, Digest, Height, Signer, Transaction, UNTIL_USUAL, ValidatorPost, ValidatorSays};
use sealing::SealShare;
use strum::VariantArray;

use crate::Mempool;
use crate::attendance::{PAUSE_TICKS, own_account};
use crate::mempool::PoolEntry;

/// Mistakes that tests plant in a seat: a check that never fails proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum SeatMistake {
    /// It deals what it draws anew each time.
    DealsAnew,
    /// It deals a wrong share to the member after it.
    DealsWrongShares,
    /// It complains about dealings that are right.
    ComplainsNeedlessly,
    /// It never says that it has lost a share.
    HidesLoss,
    /// It never erases a secret.
    KeepsSecrets,
    /// It erases its share as soon as it has proved that it holds it.
    ErasesEarly,
}

impl SeatMistake {
    /// All of them.
    pub const ALL: &[SeatMistake] = SeatMistake::VARIANTS;
}

/// A secret of a seat for the key of one number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SeatSecret {
    /// What its posts are derived from, until it holds its share.
    Seed([u8; 32]),
    /// Its share, big-endian.
    Share([u8; 32]),
}

/// The secrets of a seat in one network, by the number of the key: what its file has.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SeatSecrets {
    /// The identity of the network.
    pub network: Digest,
    /// The secrets.
    pub secrets: BTreeMap<u64, SeatSecret>,
}

impl SeatSecrets {
    /// What signs for the key of a number, if the seat has its share.
    pub fn share(&self, network: &Digest, number: u64) -> Option<SealShare> {
        match self.secrets.get(&number).filter(|_| self.network == *network)? {
            SeatSecret::Share(share) => SealShare::parse(share).ok(),
            SeatSecret::Seed(_) => None,
        }
    }
}

/// The secrets stay out of logs.
impl std::fmt::Debug for SeatSecrets {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "secrets of the sealing keys {:?}", self.secrets.keys())
    }
}

/// What a seat owes.
enum SealTask {
    Register(Option<SealSeed>),
    Deal(SealSeed, Arc<KeyGeneration>, u8),
    /// Complaints that are on the board are left out.
    Complain(SealSeed, Arc<KeyGeneration>, u8, BTreeSet<u8>),
    Hold(SeatSecret, Arc<KeyGeneration>, u8),
    Lost,
}

/// Work with the secrets of a seat; see [`SealWork::perform`].
pub struct SealWork {
    network: Digest,
    account: Address,
    number: u64,
    task: SealTask,
    mistake: Planted<SeatMistake>,
}

/// What the work gave.
pub struct SealDone {
    account: Address,
    number: u64,
    secret: Option<SeatSecret>,
    post: Option<SealPost>,
}

impl SealWork {
    /// Makes the post. `fresh` are 32 random bytes that are used for nothing else.
    pub fn perform(self, fresh: [u8; 32]) -> SealDone {
        let (network, account, number) = (self.network, self.account, self.number);
        let done = |secret, post| SealDone { account, number, secret, post };
        match self.task {
            SealTask::Register(known) => {
                let seed = known.unwrap_or(SealSeed(fresh));
                let possession = seed.possession(&network, number, &account);
                let post = SealPost::Register { key: seed.key().public().to_bytes(), possession };
                done(Some(SeatSecret::Seed(seed.0)), Some(post))
            }
            SealTask::Deal(seed, generation, member) => {
                let of = if self.mistake.is(SeatMistake::DealsAnew) { fresh } else { seed.of_dealing() };
                let victim = (member + 1) % generation.terms().keys.len() as u8;
                let dealing = match self.mistake.is(SeatMistake::DealsWrongShares) {
                    true => false_dealing(generation.terms(), member, &of, victim),
                    false => dealing(generation.terms(), member, &of),
                };
                done(None, Some(SealPost::Deal(dealing.encode())))
            }
            SealTask::Complain(seed, generation, member, told) => {
                let key = seed.key();
                let complaint = |dealer: u8| match self.mistake.is(SeatMistake::ComplainsNeedlessly) && dealer != member
                {
                    true => generation.reveal(member, &key, dealer),
                    false => generation.complaint(member, &key, dealer),
                };
                let wrong = generation.standing().filter(|dealer| !told.contains(dealer)).find_map(complaint);
                done(None, Some(wrong.map_or(SealPost::Fine, |wrong| SealPost::Complain(Box::new(wrong)))))
            }
            SealTask::Hold(secret, generation, member) => {
                let share = match secret {
                    SeatSecret::Seed(seed) => generation.share(member, &SealSeed(seed).key()),
                    SeatSecret::Share(share) => KeyShare::from_bytes(member, &share),
                };
                let proof = share.as_ref().map(|share| SealPost::Hold(share.hold(generation.terms())));
                done(share.map(|share| SeatSecret::Share(share.to_bytes())), proof)
            }
            SealTask::Lost => done(None, Some(SealPost::Lost)),
        }
    }
}

/// A seat's part in making sealing keys; see the module text.
pub struct SealSeat {
    signer: Arc<dyn Signer>,
    secrets: SeatSecrets,
    /// The last post that was made: its number, its bytes, and its transaction once it is signed.
    made: Option<(Address, u64, SealPost)>,
    signed: Option<(u64, SealPost, Transaction)>,
    /// What gave no post: the number and the step.
    fruitless: Option<(u64, SealStep)>,
    /// Ticks for which the key is not asked.
    pause: u32,
    /// The height at which each secret's number was gone from the state.
    gone: BTreeMap<u64, Height>,
    mistake: Planted<SeatMistake>,
}

impl SealSeat {
    /// For the validator with this key, whose file has these secrets.
    pub fn new(signer: Arc<dyn Signer>, secrets: SeatSecrets) -> SealSeat {
        let (made, signed, fruitless, gone) = (None, None, None, BTreeMap::new());
        SealSeat { signer, secrets, made, signed, fruitless, pause: 0, gone, mistake: Planted::NOTHING }
    }

    /// The same with a mistake.
    pub fn with_mistake(self, mistake: Planted<SeatMistake>) -> SealSeat {
        SealSeat { mistake, ..self }
    }

    /// The secrets.
    pub fn secrets(&self) -> &SeatSecrets {
        &self.secrets
    }

    /// The share of the key of a number, if the seat has it.
    pub fn share(&self, network: &Digest, number: u64, place: u8) -> Option<KeyShare> {
        match self.of(network, number)? {
            SeatSecret::Share(share) => KeyShare::from_bytes(place, &share),
            SeatSecret::Seed(_) => None,
        }
    }

    fn of(&self, network: &Digest, number: u64) -> Option<SeatSecret> {
        let secrets = Some(&self.secrets).filter(|secrets| secrets.network == *network)?;
        secrets.secrets.get(&number).copied()
    }

    /// The work for what the seat owes by this state, if nothing is under way that still counts.
    pub fn work(&self, ledger: &Ledger) -> Option<SealWork> {
        let seals = ledger.seals().filter(|_| self.pause == 0)?;
        let (network, account) = (ledger.network(), own_account(ledger, &self.signer.public())?);
        let counts = |(number, post, signed): &(u64, SealPost, Transaction)| {
            seals.awaits(&account, *number, post) && signed.body.until > ledger.height()
        };
        if self.signed.as_ref().is_some_and(counts) {
            return None;
        }
        let work = |number, task| SealWork { network, account, number, task, mistake: self.mistake };
        if let Some(number) = self.lost(seals, &network, &account) {
            return Some(work(number, SealTask::Lost));
        }
        let board = seals.board().filter(|board| board.awaited().any(|one| *one == account))?;
        let is_fruitless = self.fruitless == Some((board.number(), board.at().0));
        let task = self.task(board, &network, &account).filter(|_| !is_fruitless)?;
        Some(work(board.number(), task))
    }

    /// The number of a key whose share the state says the seat has, and it has not.
    fn lost(&self, seals: &Seals, network: &Digest, account: &Address) -> Option<u64> {
        if self.mistake.is(SeatMistake::HidesLoss) {
            return None;
        }
        let holds = seals.keys().iter().filter(|key| key.holders.iter().any(|holder| holder.account == *account));
        let has = |number| matches!(self.of(network, number), Some(SeatSecret::Share(_)));
        holds.map(|key| key.number).find(|number| !has(*number))
    }

    fn task(&self, board: &SealBoard, network: &Digest, account: &Address) -> Option<SealTask> {
        let secret = self.of(network, board.number());
        let seed = match secret {
            Some(SeatSecret::Seed(seed)) => Some(SealSeed(seed)),
            _ => None,
        };
        if board.at().0 == SealStep::Register {
            return Some(SealTask::Register(seed));
        }
        let (generation, member) = (board.generation()?.clone(), board.member(account)?);
        let is_own = |seed: &SealSeed| board.registered(account) == Some(&seed.key().public().to_bytes());
        match (board.at().0, seed.filter(is_own)) {
            (SealStep::Deal, Some(seed)) => Some(SealTask::Deal(seed, generation, member)),
            (SealStep::Complain, Some(seed)) => {
                let told = (0..generation.terms().keys.len() as u8).filter(|of| board.has_complained(member, *of));
                Some(SealTask::Complain(seed, generation, member, told.collect()))
            }
            (SealStep::Hold, _) => Some(SealTask::Hold(secret?, generation, member)),
            _ => None,
        }
    }

    /// Takes what the work gave; returns whether the secrets changed: they are made durable before [`SealSeat::sign`].
    pub fn take(&mut self, done: SealDone, ledger: &Ledger) -> bool {
        let SealDone { account, number, secret, post } = done;
        let network = ledger.network();
        if self.secrets.network != network {
            self.secrets = SeatSecrets { network, secrets: BTreeMap::new() };
        }
        let changes = secret.is_some_and(|secret| self.secrets.secrets.insert(number, secret) != Some(secret));
        if post.is_none() {
            let step = ledger.seals().and_then(Seals::board).map(|board| board.at().0);
            self.fruitless = step.map(|step| (number, step));
            tracing::warn!(number, "this seat has no share of the sealing key that fits: it does not hold it");
        }
        if self.mistake.is(SeatMistake::ErasesEarly) && matches!(post, Some(SealPost::Hold(_))) {
            self.secrets.secrets.remove(&number);
        }
        self.made = post.map(|post| (account, number, post));
        changes
    }

    /// Erases the secrets of keys that are over, with their outcomes certified up to this height; returns whether there
    /// were any.
    pub fn erase(&mut self, ledger: &Ledger, certified: Height) -> bool {
        let Some(seals) = ledger.seals() else { return false };
        let before = self.secrets.secrets.len();
        if self.secrets.network != ledger.network() {
            self.secrets.secrets.clear();
        }
        let is_known = |number: &u64| {
            // A state of before may not have it yet.
            *number >= seals.next_number()
                || seals.keys().iter().any(|key| key.number == *number)
                || seals.board().is_some_and(|board| board.number() == *number)
        };
        let over: Vec<u64> = self.secrets.secrets.keys().filter(|number| !is_known(number)).copied().collect();
        self.gone.retain(|number, _| over.contains(number));
        for number in over {
            let gone = *self.gone.entry(number).or_insert(ledger.height());
            if certified >= gone && !self.mistake.is(SeatMistake::KeepsSecrets) {
                self.secrets.secrets.remove(&number);
            }
        }
        self.secrets.secrets.len() < before
    }

    /// Signs the post that was made. If the key cannot be reached, a later tick tries again.
    /// `network` is the identity and the number of the chain, `height` that of its last block.
    pub fn sign(&mut self, network: (Digest, u64), height: Height) {
        let Some((account, number, post)) = self.made.take() else { return };
        let says = ValidatorSays::Seals { key: number, post: post.encode() };
        let until = height + UNTIL_USUAL;
        let signed = ValidatorPost { network: network.0, chain: network.1, account, until, says };
        match signed.sign(&*self.signer) {
            Ok(transaction) => self.signed = Some((number, post, transaction)),
            Err(error) => {
                self.pause = PAUSE_TICKS;
                tracing::warn!(%error, number, "a post about the sealing key is not signed");
            }
        }
    }

    /// Whether a signed post may have to be posted.
    pub fn is_signed(&self) -> bool {
        self.signed.is_some()
    }

    /// Whether the ledger lacks nothing of this seat.
    pub fn is_content(&self, ledger: &Ledger) -> bool {
        self.work(ledger).is_none() && self.signed.is_none()
    }

    /// Posts what is signed, unless it is pending or the ledger has it.
    pub fn post(&mut self, ledger: &Ledger, pool: &mut Mempool, arrived_ms: u64) {
        self.pause = self.pause.saturating_sub(1);
        let Some((number, post, transaction)) = &self.signed else { return };
        let (id, account) = (transaction.id(), transaction.body.account);
        let counts = ledger.seals().is_some_and(|seals| seals.awaits(&account, *number, post));
        if !counts || transaction.body.until <= ledger.height() {
            pool.settle([(id, transaction)].into_iter());
            self.signed = None;
            return;
        }
        if !pool.contains(&id) {
            // It comes again at a later tick if it finds no room.
            match pool.admit(PoolEntry::new(id, arrived_ms, transaction.clone()), ledger) {
                Ok(()) => tracing::info!(number, "posts its part in making the sealing key"),
                Err(why) => tracing::debug!(?why, number, "a post about the sealing key is not accepted"),
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
