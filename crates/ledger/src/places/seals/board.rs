//! The board of one generation of a sealing key: who has posted what, and when a step ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use payments::{
    BlsPublicKey, BlsSignature, Complaint, Dealing, DkgPurpose, DkgTerms, KeyGeneration, is_seal_key_possessed,
};
use primitives::{Address, Digest, Height};
use proofs::{Refusal, SealHolder, SealKeyRecord, SealTerms};
use rayon::prelude::*;

use super::{Acting, SEAL_SEATS, SEAL_STEP_HEIGHTS, SealPost, SealStep};

/// How a generation failed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SealFailure {
    /// Its number.
    pub number: u64,
    /// The step that ended with too few.
    pub step: SealStep,
    /// The height after which it ended.
    pub height: Height,
    /// The accounts of the committee, in order.
    pub seats: Vec<Address>,
    /// Those of them that did not take part as they should, in order.
    pub silent: Vec<Address>,
}

/// What a step comes to.
pub(super) enum Stepped {
    /// The generation goes on.
    Goes,
    /// It has failed.
    Failed(SealFailure),
    /// It has made a key, which acts from a height that is not said here.
    Made(SealKeyRecord),
}

/// What is hashed, and stored in checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct BoardRecord {
    number: u64,
    network: Digest,
    /// The accounts of the committee, in order.
    seats: Vec<Address>,
    needed: u8,
    holders: u8,
    step: SealStep,
    /// The height after which the step began.
    since: Height,
    /// Who has posted what the step awaits.
    posted: BTreeSet<Address>,
    /// The registered keys: a member's index is its place in this order.
    members: BTreeMap<Address, [u8; 96]>,
    dealings: BTreeMap<u8, Vec<u8>>,
    /// Member and dealer.
    complaints: BTreeSet<(u8, u8)>,
    out: BTreeSet<u8>,
    struck: BTreeSet<u8>,
    holds: BTreeSet<u8>,
}

/// The generation in progress.
#[derive(Clone, Debug)]
pub struct SealBoard {
    record: BoardRecord,
    /// What is derived from the dealings, from the second step on.
    generation: Option<Arc<KeyGeneration>>,
}

impl PartialEq for SealBoard {
    fn eq(&self, other: &SealBoard) -> bool {
        self.record == other.record
    }
}

impl Eq for SealBoard {}

impl SealBoard {
    pub(super) fn new(number: u64, terms: SealTerms, acting: &Acting, height: Height) -> SealBoard {
        let (needed, holders) = terms.shares(acting.seats.len());
        let record = BoardRecord {
            number,
            network: acting.network,
            seats: acting.seats.clone(),
            needed: needed as u8,
            holders: holders as u8,
            step: SealStep::Register,
            since: height,
            posted: BTreeSet::new(),
            members: BTreeMap::new(),
            dealings: BTreeMap::new(),
            complaints: BTreeSet::new(),
            out: BTreeSet::new(),
            struck: BTreeSet::new(),
            holds: BTreeSet::new(),
        };
        SealBoard { record, generation: None }
    }

    pub(super) fn record(&self) -> &BoardRecord {
        &self.record
    }

    /// The board of a checkpoint; `None` if its dealings cannot be.
    pub(super) fn restored(record: BoardRecord) -> Option<SealBoard> {
        let mut board = SealBoard { record, generation: None };
        if board.record.step == SealStep::Register {
            return Some(board);
        }
        let mut generation = KeyGeneration::new(board.dkg_terms()?);
        for bytes in board.record.dealings.values() {
            let dealing = Dealing::parse(generation.terms(), bytes).ok()?;
            generation.deal_verified(dealing).ok()?;
        }
        generation.decided(board.record.out.clone(), board.record.struck.clone());
        if board.record.step > SealStep::Deal {
            generation.close_dealing();
        }
        if board.record.step == SealStep::Hold {
            generation.finish()?;
        }
        board.generation = Some(Arc::new(generation));
        Some(board)
    }

    /// The number of the key.
    pub fn number(&self) -> u64 {
        self.record.number
    }

    /// The accounts of the committee, in order.
    pub fn seats(&self) -> &[Address] {
        &self.record.seats
    }

    /// The step, and the height after which it began.
    pub fn at(&self) -> (SealStep, Height) {
        (self.record.step, self.record.since)
    }

    /// The dealings and complaints, from the second step on.
    pub fn generation(&self) -> Option<&Arc<KeyGeneration>> {
        self.generation.as_ref()
    }

    /// The place of an account among those that registered.
    pub fn member(&self, account: &Address) -> Option<u8> {
        self.record.members.keys().position(|one| one == account).map(|at| at as u8)
    }

    /// The key that an account registered.
    pub fn registered(&self, account: &Address) -> Option<&[u8; 96]> {
        self.record.members.get(account)
    }

    /// Whether a member has complained about a dealer.
    pub fn has_complained(&self, member: u8, dealer: u8) -> bool {
        self.record.complaints.contains(&(member, dealer))
    }

    /// Whose post the step awaits: in order, those that have posted left out.
    pub fn awaited(&self) -> impl Iterator<Item = &Address> {
        let owes = |account: &&Address| !self.record.posted.contains(*account) && self.owes(account);
        self.record.seats.iter().filter(owes)
    }

    /// Whether an account takes part in the step.
    fn owes(&self, account: &Address) -> bool {
        match (self.record.step, self.member(account)) {
            (SealStep::Register, _) => true,
            (SealStep::Deal, Some(_)) => true,
            (SealStep::Complain | SealStep::Hold, Some(member)) => !self.record.struck.contains(&member),
            (_, None) => false,
        }
    }

    /// Whether the step ends after a height.
    pub(super) fn is_over(&self, height: Height) -> bool {
        height >= self.record.since.saturating_add(SEAL_STEP_HEIGHTS) || self.awaited().next().is_none()
    }

    /// Whether a post counts now, as far as it is cheap to see.
    pub(super) fn check(&self, account: &Address, post: &SealPost) -> Result<(), Refusal> {
        let record = &self.record;
        match () {
            _ if record.seats.binary_search(account).is_err() || !self.owes(account) => {
                return Err(Refusal::NOT_A_SEAT);
            }
            _ if post.step() != record.step => return Err(Refusal::OTHER_SEAL_STEP),
            _ => {}
        }
        let member = self.member(account);
        let has_posted = match post {
            SealPost::Lost => !member.is_some_and(|member| record.holds.contains(&member)),
            _ => record.posted.contains(account),
        };
        let is_plain = match (post, member) {
            (SealPost::Deal(bytes), Some(member)) => {
                bytes.first() == Some(&member) && bytes.len() == self.dealing_bytes()
            }
            (SealPost::Complain(complaint), Some(member)) => {
                complaint.member == member && record.dealings.contains_key(&complaint.dealer)
            }
            _ => true,
        };
        let is_decided = matches!((post, member), (SealPost::Complain(complaint), Some(member))
            if record.out.contains(&complaint.dealer) || self.has_complained(member, complaint.dealer));
        match () {
            _ if !is_plain => Err(Refusal::BAD_SEAL_POST),
            _ if has_posted || is_decided => Err(Refusal::SEAL_POSTED),
            _ => Ok(()),
        }
    }

    /// Bytes of a dealing: dealer, commitments, ephemeral point, shares, two proofs.
    fn dealing_bytes(&self) -> usize {
        1 + 96 * (usize::from(self.record.needed) + 1) + 32 * self.record.members.len() + 2 * 48
    }

    /// Takes the posts of a block that were checked, in the order of their accounts. What does not verify has been
    /// posted, and does nothing.
    pub(super) fn accept(&mut self, posts: Vec<(Address, SealPost)>) {
        let mut posts: Vec<(Address, SealPost)> =
            posts.into_iter().filter(|(account, post)| self.check(account, post).is_ok()).collect();
        posts.sort_by_key(|(account, _)| *account);
        let generation = self.generation.clone();
        let (number, network) = (self.record.number, self.record.network);
        let is_sound = |(account, post): &(Address, SealPost)| match (post, &generation) {
            (SealPost::Register { key, possession }, _) => BlsPublicKey::parse(key)
                .is_ok_and(|key| is_seal_key_possessed(&network, number, account, &key, possession)),
            (SealPost::Deal(bytes), Some(generation)) => {
                Dealing::parse(generation.terms(), bytes).is_ok_and(|dealing| dealing.check(generation.terms()).is_ok())
            }
            (SealPost::Hold(proof), Some(generation)) => self.is_held(generation, account, proof),
            _ => true,
        };
        let sound: Vec<bool> = posts.par_iter().map(is_sound).collect();
        let mut complaints = Vec::new();
        for ((account, post), is_sound) in posts.into_iter().zip(sound) {
            if let SealPost::Complain(complaint) = post {
                complaints.push(*complaint);
                continue;
            }
            if post != SealPost::Lost {
                self.record.posted.insert(account);
            }
            if is_sound {
                self.write(account, post);
            }
        }
        self.judge(complaints);
    }

    fn is_held(&self, generation: &KeyGeneration, account: &Address, proof: &BlsSignature) -> bool {
        let (group, member) = (generation.outcome(), self.member(account));
        group.zip(member).is_some_and(|(group, member)| group.is_held(generation.terms(), member, proof))
    }

    /// Writes down what is sound.
    fn write(&mut self, account: Address, post: SealPost) {
        let member = self.member(&account);
        match (post, member) {
            (SealPost::Register { key, .. }, _) => drop(self.record.members.insert(account, key)),
            (SealPost::Deal(bytes), Some(member)) => {
                let generation = Arc::make_mut(self.generation.as_mut().expect("the step has one"));
                let dealing = Dealing::parse(generation.terms(), &bytes).expect("it was verified");
                generation.deal_verified(dealing).expect("it was verified, and is its dealer's first");
                self.record.dealings.insert(member, bytes);
            }
            (SealPost::Hold(_), Some(member)) => drop(self.record.holds.insert(member)),
            (SealPost::Lost, Some(member)) => drop(self.record.holds.remove(&member)),
            _ => {}
        }
    }

    /// Decides complaints, by dealer: once a dealer is out no other complaint about it costs anything.
    fn judge(&mut self, mut complaints: Vec<Complaint>) {
        let Some(generation) = self.generation.as_mut().filter(|_| !complaints.is_empty()) else { return };
        complaints.sort_by_key(|complaint| (complaint.dealer, complaint.member));
        let generation = Arc::make_mut(generation);
        for complaint in complaints {
            self.record.complaints.insert((complaint.member, complaint.dealer));
            if !generation.out().contains(&complaint.dealer) {
                // One that is not proved changes nothing.
                generation.complain(&complaint).ok();
            }
        }
        (self.record.out, self.record.struck) = (generation.out().clone(), generation.struck().clone());
    }

    fn dkg_terms(&self) -> Option<DkgTerms> {
        let BoardRecord { number, network, needed, holders, .. } = self.record;
        let keys = self.record.members.values().map(BlsPublicKey::parse).collect::<Result<_, _>>().ok()?;
        Some(DkgTerms { network, epoch: number, purpose: DkgPurpose::Seals { needed, holders }, keys })
    }

    /// Ends the step if its time is over after a height.
    pub(super) fn step(&mut self, height: Height) -> Stepped {
        if !self.is_over(height) {
            return Stepped::Goes;
        }
        let record = &self.record;
        let next = match record.step {
            SealStep::Register if record.members.len() >= usize::from(record.holders) => {
                let terms = self.dkg_terms().expect("the registered keys were checked");
                self.generation = Some(Arc::new(KeyGeneration::new(terms)));
                Some(SealStep::Deal)
            }
            SealStep::Deal if record.dealings.len() >= usize::from(record.needed) => {
                self.change(KeyGeneration::close_dealing);
                Some(SealStep::Complain)
            }
            SealStep::Complain => self.change(|generation| generation.finish().is_some()).then_some(SealStep::Hold),
            SealStep::Hold if record.holds.len() >= usize::from(record.holders) => {
                return Stepped::Made(self.key());
            }
            _ => None,
        };
        match next {
            Some(step) => {
                (self.record.step, self.record.since) = (step, height);
                self.record.posted.clear();
                Stepped::Goes
            }
            None => Stepped::Failed(self.failure(height)),
        }
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut KeyGeneration) -> T) -> T {
        change(Arc::make_mut(self.generation.as_mut().expect("there is one from the second step on")))
    }

    fn key(&self) -> SealKeyRecord {
        let group = self.generation.as_ref().and_then(|generation| generation.outcome()).expect("it was finished");
        let accounts = self.record.members.keys().zip(0..);
        let holders = accounts.filter(|(_, place)| self.record.holds.contains(place)).map(|(account, place)| {
            SealHolder { account: *account, place, key: group.share_key(place).expect("it is a member").to_bytes() }
        });
        SealKeyRecord {
            number: self.record.number,
            group: group.key().to_bytes(),
            t: self.record.needed,
            least: self.record.holders,
            holders: holders.collect(),
            from: 0,
            last: Height::MAX,
        }
    }

    fn failure(&self, height: Height) -> SealFailure {
        let BoardRecord { number, step, ref seats, ref dealings, ref out, ref struck, ref holds, .. } = self.record;
        let took_part = |account: &Address| match (step, self.member(account)) {
            (_, None) => false,
            (SealStep::Register, Some(_)) => true,
            (SealStep::Deal, Some(member)) => dealings.contains_key(&member),
            (SealStep::Complain, Some(member)) => {
                dealings.contains_key(&member) && !out.contains(&member) && !struck.contains(&member)
            }
            (SealStep::Hold, Some(member)) => holds.contains(&member),
        };
        let silent = seats.iter().filter(|account| !took_part(account)).copied().collect();
        SealFailure { number, step, height, seats: seats.clone(), silent }
    }

    /// The fault of a decoded board of this height, if there is one.
    pub(super) fn fault(&self, height: Height) -> Option<&'static str> {
        let record = &self.record;
        let (members, is_seat) = (record.members.len() as u8, |one: &Address| record.seats.binary_search(one).is_ok());
        let mut places = record.dealings.keys().chain(&record.out).chain(&record.struck).chain(&record.holds);
        Some(match () {
            _ if !SEAL_SEATS.contains(&record.seats.len()) => "a board of another number of seats",
            _ if !record.seats.is_sorted_by(|a, b| a < b) => "the seats of a board are out of order",
            _ if record.since > height => "a step of a board begins later",
            _ if !record.members.keys().chain(&record.posted).all(is_seat) => "somebody without a seat has posted",
            _ if places.any(|place| *place >= members) => "a board names somebody who did not register",
            _ if record.needed == 0 || record.needed > record.holders => "the thresholds of a board cannot be",
            _ => return None,
        })
    }
}
