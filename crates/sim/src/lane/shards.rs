//! Validators of the lane over simulated disks: correct ones, which crash and restart, and a Byzantine one.

use std::collections::{BTreeMap, VecDeque};
use std::iter::repeat;

use ledger::{LaneBridge, Ledger};
use payments::{
    AnswerScheme, BlsSecretKey, BridgeEvent, BridgeOperation, CaseEvent, Claim, HomeEpoch, KeyGeneration, KeyShare,
    LaneAnswer, LaneCommittee, LaneEffect, LaneInput, LaneLog, LanePeer, LaneSettings, LaneValidator, LogOwner,
    OutputId, PaymentBody, Resolver, SPEND_EPOCHS, StatementKind, dealing_of_shard, new_log, view_digest,
};
use primitives::{Digest, PublicKey, SecretKey, Signature};

use super::schemes::SimAnswer;
use super::{LaneBug, lane_key, registration};
use crate::dice::Dice;

/// A log file: the appended bytes, and the part that certainly survives a crash.
#[derive(Clone, Debug)]
struct LogDisk {
    bytes: Vec<u8>,
    durable: usize,
}

impl LaneLog for LogDisk {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        self.bytes.get(start..start.checked_add(length)?).map(<[u8]>::to_vec)
    }
}

impl LogDisk {
    /// A crash: a part of what was not durable remains, and may be torn.
    fn crash(&mut self, dice: &mut Dice) {
        let loose = self.bytes.len() - self.durable;
        self.bytes.truncate(self.durable + if loose == 0 { 0 } else { dice.index(loose + 1) });
        if self.bytes.len() > self.durable && dice.once_in(3) {
            let at = self.durable + dice.index(self.bytes.len() - self.durable);
            self.bytes[at] ^= 1 << dice.below(8);
        }
    }
}

/// A message of a validator.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub kind: StatementKind,
    pub digest: Digest,
    pub answer: SimAnswer,
}

struct SimShard {
    machine: LaneValidator,
    disk: LogDisk,
    syncs: VecDeque<u64>,
}

/// A correct validator with one shard for each active home epoch.
pub(super) struct SimValidator {
    index: u8,
    /// Made with the log of a home, destroyed after its last epoch.
    keys: BTreeMap<HomeEpoch, SecretKey>,
    bug: Option<LaneBug>,
    shards: BTreeMap<HomeEpoch, SimShard>,
    /// Logs that were made for future epochs.
    logs: BTreeMap<HomeEpoch, LogDisk>,
    /// The last certified state that it knows.
    known: Ledger,
    facts: VecDeque<(Vec<BridgeEvent>, Ledger)>,
    /// The last epoch whose board it has checked for wrong shares.
    looked: HomeEpoch,
    /// Homes of the contested outputs of open cases.
    cases: BTreeMap<OutputId, HomeEpoch>,
    /// Operations that must reach the ledger, until they do.
    pub posts: Vec<BridgeOperation>,
    pub said: Vec<Said>,
    /// The reason why a shard does not sign; a correct run has none.
    pub muted: Option<String>,
}

fn lane(ledger: &Ledger) -> &LaneBridge {
    ledger.lane().expect("the chain has a lane")
}

fn now(ledger: &Ledger) -> HomeEpoch {
    lane(ledger).bridge().clock().epoch()
}

impl SimValidator {
    pub fn new(index: u8, genesis: &Ledger, bug: Option<LaneBug>, dice: &mut Dice) -> SimValidator {
        let mut validator = SimValidator {
            index,
            keys: BTreeMap::new(),
            bug,
            shards: BTreeMap::new(),
            logs: BTreeMap::new(),
            known: genesis.clone(),
            facts: VecDeque::new(),
            looked: 0,
            cases: BTreeMap::new(),
            posts: Vec::new(),
            said: Vec::new(),
            muted: None,
        };
        (0..=1).for_each(|home| validator.make_log(home, dice));
        validator.open(0, dice);
        validator.register(1);
        validator
    }

    /// Posts the registration of the key of an epoch that has not begun.
    fn register(&mut self, epoch: HomeEpoch) {
        self.posts.push(registration(lane(&self.known), self.index, epoch));
    }

    /// Deals for the group key of the next epoch, and complains about wrong shares, as far as it knows the board.
    fn generate(&mut self) {
        let (next, me) = (now(&self.known) + 1, self.index);
        let Some(generation) = lane(&self.known).bridge().generation(next) else { return };
        let key = lane_key(me, next);
        let has_dealt = |post: &BridgeOperation| matches!(post, BridgeOperation::Deal { epoch, .. } if *epoch == next);
        if generation.awaits_dealings() && generation.dealing_of(me).is_none() && !self.posts.iter().any(has_dealt) {
            let dealing = Box::new(dealing_of_shard(generation.terms(), me, &key));
            let signature = dealing.sign(&lane(&self.known).network(), next, &key);
            self.posts.push(BridgeOperation::Deal { epoch: next, dealing, signature });
        }
        if generation.awaits_complaints() && self.looked < next {
            let (secret, is_wrong) = (BlsSecretKey::of_shard(&key), self.bug == Some(LaneBug::NeedlessComplaints));
            let complaint = |dealer: u8| match is_wrong {
                true => generation.reveal(me, &secret, dealer),
                false => generation.complaint(me, &secret, dealer),
            };
            let complaints: Vec<_> = generation.standing().filter_map(complaint).map(Box::new).collect();
            let complain = |complaint| BridgeOperation::Complain { epoch: next, complaint };
            self.posts.extend(complaints.into_iter().map(complain));
            self.looked = next;
        }
    }

    /// Checks that it holds the keys that it needs at the time it knows, and no others.
    pub fn check_keys(&self) -> Result<(), String> {
        let (now, bridge) = (now(&self.known), lane(&self.known).bridge());
        let needed = |home: &HomeEpoch| home + SPEND_EPOCHS >= now || bridge.needs(*home);
        match self.keys.keys().find(|home| !needed(home)) {
            Some(home) => Err(format!("validator {} holds the key of epoch {home} in epoch {now}", self.index)),
            None => Ok(()),
        }
    }

    /// Checks that no shard bars a payment that the ledger confirms.
    pub fn check_bars(&self, resolver: &Resolver) -> Result<(), String> {
        let barred = self.shards.iter().flat_map(|(home, shard)| shard.machine.barred().into_iter().zip(repeat(home)));
        match barred.into_iter().find(|(payment, _)| resolver.confirms(payment)) {
            Some((payment, home)) => {
                Err(format!("validator {} of home {home} still bars payment {payment}, which is confirmed", self.index))
            }
            None => Ok(()),
        }
    }

    fn make_log(&mut self, home: HomeEpoch, dice: &mut Dice) {
        let owner = LogOwner { network: lane(&self.known).network(), home, validator: self.index, shard: 0 };
        let mut key = [0; 32];
        key[..8].copy_from_slice(&dice.bits().to_le_bytes());
        let bytes = new_log(&owner, key);
        let durable = bytes.len();
        self.logs.entry(home).or_insert(LogDisk { bytes, durable });
        self.keys.entry(home).or_insert_with(|| lane_key(self.index, home));
    }

    /// Opens the shard of a home from its log and the known state.
    fn open(&mut self, home: HomeEpoch, dice: &mut Dice) {
        let bridge = lane(&self.known);
        let Some(committee) = bridge.committee(home).cloned() else { return };
        // A member that registered too late signs nothing in this epoch.
        let registered = committee.key(self.index, 0).ok();
        let Some(key) = self.keys.get(&home).filter(|key| Some(key.public()) == registered).cloned() else { return };
        let Some(mut disk) = self.logs.remove(&home) else { return };
        let settings = LaneSettings {
            rules: bridge.rules(),
            previous: home.checked_sub(1).and_then(|before| bridge.committee(before)).cloned(),
            committee,
            validator: self.index,
            shard: 0,
            now: now(&self.known),
            leaves: 1 + dice.index(4),
            entries_max: 1 << 20,
            trees_waiting_max: 64,
            checks_per_peer: 1_000,
            checks_per_tick: 10_000,
            roots_per_validator: 64,
        };
        let bls = BlsSecretKey::of_shard(&key);
        let is_registered = settings.committee.bls_key(self.index, 0) == Ok(&bls.public());
        let generation = settings.committee.group().ok().and_then(|_| bridge.bridge().generation(home));
        let share = generation.filter(|_| is_registered).and_then(|of| of.share(self.index, &bls));
        let mut fingerprints = [0; 32];
        fingerprints[..8].copy_from_slice(&dice.bits().to_le_bytes());
        let (mut machine, intact) = LaneValidator::open(settings, key, fingerprints, Some(&disk));
        if is_registered {
            machine = machine.with_bls(bls);
        }
        if let Some(share) = share {
            machine = machine.with_share(share);
        }
        match intact {
            Some(intact) => disk.bytes.truncate(intact as usize),
            None => self.muted = Some(format!("validator {} home {home}: {:?}", self.index, machine.muted())),
        }
        // The shell has made everything durable before it opens the log.
        disk.durable = disk.bytes.len();
        let resolver = lane(&self.known).bridge().resolver();
        let told = self.bug != Some(LaneBug::ForgottenVerdict);
        let confirmed = machine.barred().into_iter().filter(|payment| told && resolver.confirms(payment));
        let confirmed: Vec<Digest> = confirmed.collect();
        self.shards.insert(home, SimShard { machine, disk, syncs: VecDeque::new() });
        confirmed.into_iter().for_each(|payment| self.step(home, LaneInput::Confirmed(payment)));
        let backed: Vec<_> = lane(&self.known).bridge().backed(home).map(|(id, output)| (*id, *output)).collect();
        backed.into_iter().for_each(|(id, output)| self.step(home, LaneInput::Backed(id, output)));
    }

    pub fn on_events(&mut self, events: Vec<BridgeEvent>, state: Ledger) {
        self.facts.push_back((events, state));
    }

    /// Delivers the next certified block; false if there is none.
    pub fn certify(&mut self, dice: &mut Dice) -> bool {
        let Some((events, state)) = self.facts.pop_front() else { return false };
        let home_of_block = now(&self.known);
        // Contested outputs are looked up in the state after the block, as in a node.
        self.known = state;
        for event in events {
            match event {
                BridgeEvent::Backed(id, output) => self.step(home_of_block, LaneInput::Backed(id, output)),
                BridgeEvent::Epoch(epoch) => {
                    self.forward_to_all(|| LaneInput::Epoch(epoch));
                    self.make_log(epoch + 1, dice);
                    self.register(epoch + 1);
                    self.open(epoch, dice);
                    // A home without a shard need not be informed.
                    let bridge = lane(&self.known).bridge();
                    let shards = &self.shards;
                    self.keys.retain(|home, _| {
                        home + SPEND_EPOCHS >= epoch || bridge.needs(*home) || shards.contains_key(home)
                    });
                    self.forward_cases_of(epoch);
                }
                BridgeEvent::Halted(halted) => self.forward_to_all(|| LaneInput::Halted(halted)),
                BridgeEvent::Case(CaseEvent::Opened(contested)) => {
                    self.cases.insert(contested.output.id, contested.home);
                    self.forward_about_case(contested.home, || LaneInput::CaseOpened(contested));
                }
                BridgeEvent::Case(CaseEvent::Fixed(id, bodies)) => {
                    // There may be no candidate that can still be valid.
                    let Some(home) = self.cases.get(&id).copied() else { continue };
                    self.forward_about_case(home, || LaneInput::CandidatesFixed(id, &bodies));
                }
                BridgeEvent::Case(CaseEvent::Ruled(contested, verdict)) => {
                    self.forward_to_all(|| LaneInput::CaseRuled(contested.output.id, verdict));
                    self.cases.remove(&contested.output.id);
                }
                _ => {}
            }
        }
        self.generate();
        true
    }

    fn forward_to_all<'a>(&mut self, input: impl Fn() -> LaneInput<'a>) {
        let homes: Vec<HomeEpoch> = self.shards.keys().copied().collect();
        homes.into_iter().for_each(|home| self.step(home, input()));
    }

    /// Like the host of a node: homes that a case does not concern are not informed of it.
    fn forward_about_case<'a>(&mut self, home: HomeEpoch, input: impl Fn() -> LaneInput<'a>) {
        (home..=home + 1).for_each(|home| self.step(home, input()));
    }

    /// Informs a home that begins or restarts of how long it signs, and of the open cases that concern it.
    fn forward_cases_of(&mut self, home: HomeEpoch) {
        let last = lane(&self.known).bridge().resolver().signs_through(home);
        last.into_iter().for_each(|last| self.step(home, LaneInput::SignsThrough(last)));
        let cases: Vec<_> = lane(&self.known).bridge().resolver().cases().map(|(of, bodies)| (*of, bodies)).collect();
        for (contested, bodies) in cases {
            if !(contested.home..=contested.home + 1).contains(&home) {
                continue;
            }
            self.step(home, LaneInput::CaseOpened(contested));
            if let Some(bodies) = bodies {
                self.step(home, LaneInput::CandidatesFixed(contested.output.id, &bodies));
            }
        }
    }

    pub fn request(&mut self, home: HomeEpoch, peer: LanePeer, bytes: &[u8]) {
        self.step(home, LaneInput::Request { peer, bytes });
    }

    pub fn tick(&mut self) {
        self.forward_to_all(|| LaneInput::Tick);
    }

    /// The oldest sync of each shard completes.
    pub fn sync(&mut self) {
        let homes: Vec<HomeEpoch> = self.shards.keys().copied().collect();
        for home in homes {
            let Some(shard) = self.shards.get_mut(&home) else { continue };
            let Some(position) = shard.syncs.pop_front() else { continue };
            shard.disk.durable = shard.disk.durable.max(position as usize);
            self.step(home, LaneInput::Synced(position));
        }
    }

    fn step(&mut self, home: HomeEpoch, input: LaneInput<'_>) {
        let Some(shard) = self.shards.get_mut(&home) else { return };
        let effects = shard.machine.step(&shard.disk, input);
        self.perform(home, effects);
    }

    fn perform(&mut self, home: HomeEpoch, effects: Vec<LaneEffect>) {
        for effect in effects {
            let Some(shard) = self.shards.get_mut(&home) else { return };
            match effect {
                LaneEffect::Append(bytes) => shard.disk.bytes.extend(bytes),
                LaneEffect::Sync(position) if self.bug == Some(LaneBug::AnswerBeforeSync) => {
                    self.step(home, LaneInput::Synced(position));
                }
                LaneEffect::Sync(position) => shard.syncs.push_back(position),
                LaneEffect::Answer { kind, digest, answer, .. } => {
                    self.said.push(Said { kind, digest, answer: SimAnswer::Tree(answer) });
                }
                LaneEffect::BlsAnswer { kind, digest, signature, .. } => {
                    self.said.push(Said { kind, digest, answer: SimAnswer::Bls(self.index, signature) });
                }
                LaneEffect::Vote { case, payment, answer } => {
                    self.posts.push(BridgeOperation::Vote { case, payment, answer });
                }
                // The only shard represents all shards.
                LaneEffect::Barred { case, paid } => self.step(home, LaneInput::AllBarred(case, paid)),
                LaneEffect::View { case, paid, answer } => {
                    let mut cases = lane(&self.known).bridge().resolver().cases();
                    let owner = cases.find(|(of, _)| of.output.id == case).map(|(of, _)| of.owner);
                    if let Some(owner) = owner {
                        self.posts.push(BridgeOperation::View { case, committee: home, owner, paid, answer });
                    }
                }
                LaneEffect::Destroy => {
                    self.shards.remove(&home);
                    self.keys.remove(&home);
                }
                LaneEffect::Mute(reason) => self.muted = Some(format!("validator {}: {reason}", self.index)),
                _ => {}
            }
        }
    }

    /// The process ends at any moment, and restarts with its disks and the certified state.
    pub fn crash(&mut self, dice: &mut Dice) {
        for (home, mut shard) in std::mem::take(&mut self.shards) {
            shard.disk.crash(dice);
            if self.bug != Some(LaneBug::NewLogOnRestart) {
                self.logs.insert(home, shard.disk);
            } else {
                self.make_log(home, dice);
            }
        }
        self.posts.clear();
        self.said.clear();
        self.looked = 0;
        let bridge = lane(&self.known).bridge();
        let (oldest, now) = (bridge.oldest(), now(&self.known));
        let alive: Vec<HomeEpoch> =
            (oldest..=now).filter(|home| home + SPEND_EPOCHS >= now || bridge.needs(*home)).collect();
        alive.into_iter().for_each(|home| self.open(home, dice));
        let homes: Vec<HomeEpoch> = self.shards.keys().copied().collect();
        homes.into_iter().for_each(|home| self.forward_cases_of(home));
        self.register(now + 1);
        self.generate();
        let halted = lane(&self.known).bridge().clock().is_halted();
        self.forward_to_all(|| LaneInput::Halted(halted));
    }

    /// Removes posts that the ledger has, or no longer accepts.
    pub fn clear_posts(&mut self, ledger: &Ledger) {
        let resolver = lane(ledger).bridge().resolver();
        self.posts.retain(|post| match post {
            BridgeOperation::Vote { case, answer, .. } => {
                resolver.is_open(case) && !resolver.has_vote(case, answer.validator)
            }
            BridgeOperation::View { case, committee, answer, .. } => {
                resolver.is_open(case) && !resolver.has_view(case, *committee, answer.validator)
            }
            BridgeOperation::Register { registration: of, .. } => {
                let bridge = lane(ledger).bridge();
                bridge.clock().epoch() < of.epoch && !bridge.registrations(of.epoch).any(|by| by.member == of.member)
            }
            BridgeOperation::Deal { epoch, dealing, .. } => lane(ledger)
                .bridge()
                .generation(*epoch)
                .is_some_and(|of| of.awaits_dealings() && of.dealing_of(dealing.dealer).is_none()),
            BridgeOperation::Complain { epoch, complaint } => lane(ledger)
                .bridge()
                .generation(*epoch)
                .is_some_and(|of| of.awaits_complaints() && !of.out().contains(&complaint.dealer)),
            _ => false,
        });
    }
}

/// The Byzantine validator: it confirms and acknowledges everything, at any time, and posts anything in cases.
pub(super) struct Liar {
    pub index: u8,
    position: u64,
    /// Its shares of group keys, from its own and others' dealings.
    shares: BTreeMap<HomeEpoch, Option<KeyShare>>,
}

impl Liar {
    pub fn new(index: u8) -> Liar {
        Liar { index, position: 1_000, shares: BTreeMap::new() }
    }

    /// Answers with its BLS key or share, or with a signature of something else, or not at all.
    pub fn bls_answer(
        &mut self,
        committee: &LaneCommittee,
        generation: Option<&KeyGeneration>,
        scheme: AnswerScheme,
        said: (StatementKind, Digest),
        dice: &mut Dice,
    ) -> Option<SimAnswer> {
        let (network, home, (kind, digest)) = (committee.network(), committee.epoch(), said);
        let digest = if dice.once_in(4) { Digest([3; 32]) } else { digest };
        let key = BlsSecretKey::of_shard(&lane_key(self.index, home));
        let signature = match scheme {
            AnswerScheme::Share => {
                let index = self.index;
                let share = self.shares.entry(home).or_insert_with(|| generation.and_then(|of| of.share(index, &key)));
                share.as_ref()?.sign(&network, home, kind, &digest)
            }
            _ => key.sign(&network, home, kind, &digest),
        };
        (!dice.once_in(4)).then_some(SimAnswer::Bls(self.index, signature))
    }

    fn sign(&mut self, committee: &LaneCommittee, claim: &Claim<'_>) -> LaneAnswer {
        self.position += 1;
        let mut answer = LaneAnswer {
            validator: self.index,
            size: 1,
            index: 0,
            position: self.position,
            signature: Signature([0; 64]),
            path: Vec::new(),
        };
        // It keeps all keys. Its signatures count only with a registered key.
        if let Ok(header) = answer.header(committee, claim) {
            answer.signature = lane_key(self.index, committee.epoch()).sign(&header.bytes());
        }
        answer
    }

    pub fn answer(&mut self, committee: &LaneCommittee, kind: StatementKind, body: &PaymentBody) -> LaneAnswer {
        self.sign(committee, &Claim { kind, owner: &body.payment.owner, digest: &body.digest })
    }

    pub fn empty_view(&mut self, committee: &LaneCommittee, case: OutputId, owner: PublicKey) -> BridgeOperation {
        let digest = view_digest(&case, None);
        let answer = self.sign(committee, &Claim { kind: StatementKind::View, owner: &owner, digest: &digest });
        BridgeOperation::View { case, committee: committee.epoch(), owner, paid: None, answer }
    }
}
