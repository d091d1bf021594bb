//! The payment lane in a simulation: shards, payers and the ledger, over a network and disks that fail.
//!
//! One committee of four. Three are correct: they and their shards are the state machines that a node runs, over logs
//! that a crash tears. One is Byzantine and signs anything. Messages are delayed, reordered, repeated and lost. Blocks
//! are made by the ledger itself, and reach each validator as certified facts some time later. Honest payers deposit,
//! pay, settle, redeem, renew and contest payments that are stuck. One owner signs two payments of each of its
//! outputs, sends them to all validators repeatedly, and contests them.
//!
//! After every block:
//!
//! 1. Money is conserved ([`ledger::Ledger::audit`]), and escrow equals the result of plain bookkeeping of
//!    withdrawals and credits.
//! 2. No output is certified twice, counting every signature that any validator ever made.
//! 3. No payment of an output that a verdict freed can be certified, and none of an output that lapsed is settled.
//! 4. The certificate of a settled payment is never refused as void.
//! 5. Each correct validator holds the keys of the epochs in which it may sign or has to vote, and no others; each
//!    key that the ledger has for it is fresh.
//! 6. In an eighth of the runs the members make a group key for each epoch. The Byzantine member deals wrong shares
//!    or none, reveals its own and complains without a proof, and validators crash in between. No correct member
//!    reveals a share or has its dealing voided, and with a group key each of them that received right shares has a
//!    share of it.
//! 7. In these runs, and in as many in which members register BLS keys and make no group key, payers ask for answers
//!    under any scheme that a committee supports. They ask for simpler ones when they wait in vain. The Byzantine
//!    member's signatures are sometimes wrong, or withheld. Under every scheme a certificate verifies with only the
//!    ledger's public data, a quorum has signed what it certifies, and so has each signer that it names.
//! 8. No correct member is convicted of contradicting itself, and only the stake that is liable for the Byzantine
//!    member is slashed. In half of the runs members see the contradictions in blocks, and accuse.
//! 9. No shard is told of an epoch that no certified block has begun, and each is told of all outputs and cases that
//!    certified blocks have for it. Each correct member has registered for the next
//!    epoch once it has had the time.
//! 10. No two transactions of a correct member that are in flight have one number, and none of its posts takes effect
//!     twice, unless it has crashed in between.
//!
//! Correct members are `member::LaneMember` and `payments::LaneValidator`, as in a node. Blocks reach each of them
//! late, and certificates on their own; their disks, pools and queues are sometimes full, and sub-blocks with their
//! posts are left out, or proposed by others later.
//!
//! In half of the runs members have no money; in some the Byzantine one registers no keys; in a third nobody posts
//! certificates of contested payments, and members post those that they are shown. Views are copied without the
//! certificates that they name, and no copy counts. In some runs a thousand outputs are contested at once; in some more
//! than f members say nothing in cases, which expire.
//!
//! In a quarter of the runs the network restarts from a snapshot: logs are closed, operators make one list from
//! certificates alone, and a lane of another identity begins with it ([`restarts`]).
//!
//! In a third of the runs members vote on the terms of assets: the lane carries one more, and takes deposits of another
//! no longer ([`terms`]).
//!
//! In the end the faults stop, and each settled output of an honest payer that can still move returns to the ledger.
//! What each correct member has to say in open cases is on the ledger, whatever was lost on the way.

mod conditions;
mod contests;
mod liar;
mod observed;
mod payers;
mod restarts;
mod schemes;
mod shards;
mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::{Dice, Flight};
use ledger::{
    Genesis, LaneBls, LaneBridge, LaneTerms, Ledger, Member, Membership, Outcome, Refusal, Signatures, Terms,
};
use member::{ASK_BLOCKS, LaneBlock, MemberMistake, POST_BLOCKS};
use payments::{
    AnswerScheme, BlsSecretKey, BridgeEvent, BridgeKey, BridgeOperation, CaseEvent, HomeEpoch, HomePhase,
    LaneRegistration, OutputId, PaymentBody, Recipient, StatementKind, Verdict, dealing_of_shard, false_dealing,
};
use primitives::{
    Address, Amount, AssetId, Body, Digest, Fraction, Operation, SecretKey, Sequence, SubBlock, Superblock,
    Transaction, TransactionId,
};

use crate::world::{self, Failure, LaneMistake, Mistake, Trace, World};
use conditions::Conditions;
use liar::Liar;
use observed::Observed;
use payers::Payers;
use restarts::Restarts;
use schemes::{SimAnswer, Stranger};
use shards::{Said, SimBlock, SimValidator};
use terms::TermsBooks;

/// Number of validators, of which the last is Byzantine.
const MEMBERS: u8 = 4;
const EPOCH_HEIGHTS: u64 = 14;
/// The same, if members make group keys.
const GROUP_EPOCH_HEIGHTS: u64 = 16;
const ASSET: AssetId = AssetId(0);
const CASE_DEPOSIT: Amount = 50;
/// The stake that is liable for each member.
const STAKE: Amount = 1_000;
/// The balance of each payer on the ledger.
const WEALTH: Amount = 1_000_000;
/// Number of blocks in which everything pending must complete, once the faults have stopped.
const HEAL_BLOCKS: u64 = 8;
/// Number of blocks after that in which members say what they have to say in cases.
const SAID_BLOCKS: u64 = ASK_BLOCKS + POST_BLOCKS + 2;

/// The size of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct LaneOptions {
    /// Blocks before the faults stop.
    pub blocks: u64,
    /// A mistake to make, which must be detected.
    pub mistake: Option<Mistake>,
    /// Shards of each member, of which the last one has no part in every other epoch. Those with odd numbers run apart
    /// from their nodes, over lines that break.
    pub shards: u16,
}

impl Default for LaneOptions {
    /// Two boundaries between lane epochs, and a part of the third epoch.
    fn default() -> LaneOptions {
        LaneOptions { blocks: 2 * EPOCH_HEIGHTS + 6, mistake: None, shards: 1 }
    }
}

/// The counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneReport {
    /// The seed.
    pub seed: u64,
    /// Steps of any kind.
    pub steps: u64,
    /// Blocks.
    pub blocks: u64,
    /// The lane epoch at the end.
    pub epoch: u64,
    /// Payments that were begun.
    pub payments: u64,
    /// Payments of which a client had a certificate.
    pub certified: u64,
    /// Payments of which a client had q acknowledgements.
    pub settled: u64,
    /// Credits out of escrow.
    pub credits: u64,
    /// Cases that were closed.
    pub verdicts: u64,
    /// Crashes of validators.
    pub crashes: u64,
    /// Members that were convicted.
    pub convicted: u64,
    /// Settled outputs that returned to the ledger in the end.
    pub came_home: u64,
    /// Lane epochs for which the members made a group key.
    pub group_keys: u64,
    /// Certificates with an aggregated signature, of confirmations and of acknowledgements.
    pub aggregates: u64,
    /// Certificates under a group key.
    pub thresholds: u64,
    /// Cases that were opened.
    pub cases: u64,
    /// Cases that expired.
    pub expired: u64,
    /// Outputs that verdicts proved.
    pub proven: u64,
    /// Certificates that were withheld until the case had expired.
    pub withheld: u64,
    /// Certificates of contested payments that members were shown and posted.
    pub shown: u64,
    /// Views that a relay stripped of their certificates.
    pub stripped: u64,
    /// Lane epochs that began without the keys of a member.
    pub unregistered: u64,
    /// Runs in which members had no money.
    pub poor: u64,
    /// Restarts of the network.
    pub restarts: u64,
    /// Outputs and claims that restarts carried over.
    pub carried: u64,
    /// Outputs that restarts left aside.
    pub aside: u64,
    /// Certificates of a network that restarted, refused by the one that took its place.
    pub outdated: u64,
    /// Terms of assets that were voted and began to act.
    pub terms: u64,
    /// Deposits of an asset that the genesis did not carry.
    pub late_deposits: u64,
    /// Deposits that terms of their epoch refused.
    pub no_way_in: u64,
    /// Credits of an asset that takes no deposits any more.
    pub ways_out: u64,
    /// BLAKE3 over all events, in hexadecimal.
    pub trace: String,
}

/// Simulates one seed.
///
/// # Errors
/// [`Failure`] names the invariant that broke.
pub fn run_lane(seed: u64, options: LaneOptions) -> Result<LaneReport, Failure> {
    world::run(seed, || LaneWorld::new(seed, options))
}

/// A message between clients and shards: a payment's number and the request or answer.
#[derive(Clone, Debug)]
enum Message {
    Ask { validator: u8, kind: StatementKind, payment: usize },
    Answer(Said),
}

struct LaneWorld {
    options: LaneOptions,
    conditions: Conditions,
    restarts: Restarts,
    /// The height at which the faults stop.
    end: u64,
    /// Outputs of a flood whose cases were opened.
    flooded: BTreeSet<OutputId>,
    /// Views without the certificates that they name.
    stripped: BTreeSet<TransactionId>,
    dice: Dice,
    ledger: Ledger,
    validators: Vec<SimValidator>,
    liar: Liar,
    payers: Payers,
    /// Transactions for the next block.
    waiting: Vec<Transaction>,
    /// Redemptions in `waiting` and in blocks, by transaction.
    redemptions: BTreeMap<TransactionId, Digest>,
    sequences: BTreeMap<Address, Sequence>,
    messages: Flight<Message>,
    observed: Observed,
    stranger: Stranger,
    /// Whether members see contradictions in blocks.
    accuses: bool,
    /// What each correct member has posted.
    posted: BTreeSet<(u8, BridgeKey)>,
    /// Transactions that a block has refused.
    refused: BTreeSet<TransactionId>,
    /// The heights at which cases opened, or got their candidates.
    opened: BTreeMap<OutputId, u64>,
    /// The height at which each correct member crashed last.
    crashed: Vec<u64>,
    /// Units of each asset in escrow, by plain bookkeeping.
    escrow: BTreeMap<AssetId, u128>,
    terms: TermsBooks,
    healed: bool,
    trace: Trace,
    report: LaneReport,
}

fn secret(kind: u8, number: u64) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

/// Units of each asset that escrow holds any of.
fn escrow_of(ledger: &Ledger) -> BTreeMap<AssetId, u128> {
    let bridge = ledger.lane().expect("the chain has a lane").bridge();
    terms::ALL.map(|asset| (asset, bridge.escrow(asset))).into_iter().filter(|(_, held)| *held > 0).collect()
}

/// The account whose stake is liable for a member.
fn answering(member: u8, mistake: Option<Mistake>) -> Address {
    let shift = u8::from(mistake == Some(Mistake::Lane(LaneMistake::OthersAnswer)));
    secret(2, u64::from((member + shift) % MEMBERS)).public().address()
}

/// The key of the genesis that registers a member's keys.
fn registrar(member: u64) -> SecretKey {
    secret(6, member)
}

/// The key of a member's first shard in a lane epoch. Those of the first epoch are in the genesis.
fn lane_key(member: u8, epoch: HomeEpoch) -> SecretKey {
    shard_key(member, epoch, 0)
}

/// The key of a member's shard in a lane epoch.
fn shard_key(member: u8, epoch: HomeEpoch, shard: u16) -> SecretKey {
    secret(1, u64::from(member) + epoch * 1_000 + u64::from(shard) * 1_000_000)
}

/// How many of its shards a member registers for a lane epoch: in turns it drains its last one, and adds it again.
fn registered(member: u8, epoch: HomeEpoch, shards: u16) -> u16 {
    let drains = shards > 1 && epoch > 0 && (epoch + HomeEpoch::from(member)) % 2 == 1;
    shards - u16::from(drains)
}

/// The keys that a member registers for a lane epoch.
fn shard_keys(member: u8, epoch: HomeEpoch, shards: u16) -> Vec<SecretKey> {
    (0..registered(member, epoch, shards)).map(|shard| shard_key(member, epoch, shard)).collect()
}

/// A member registers its keys of an epoch.
fn registration(lane: &LaneBridge, member: u8, epoch: HomeEpoch, shards: u16) -> BridgeOperation {
    let (network, registrar) = (lane.network(), registrar(member.into()));
    let keys = shard_keys(member, epoch, shards);
    let bls: Vec<BlsSecretKey> = keys.iter().map(BlsSecretKey::of_shard).collect();
    let bls = if lane.terms().bls == LaneBls::None { &[][..] } else { &bls };
    let (registration, proofs) = LaneRegistration::make_with_bls(&network, epoch, member, &keys, bls, &registrar);
    BridgeOperation::Register { registration, proofs }
}

impl World for LaneWorld {
    type Report = LaneReport;

    fn run(&mut self) -> Result<LaneReport, String> {
        while self.ledger.height() < self.end {
            self.report.steps += 1;
            self.step()?;
        }
        self.heal()?;
        self.report.blocks = self.ledger.height();
        self.report.epoch = self.now();
        self.report.trace = self.trace.digest();
        Ok(self.report.clone())
    }

    fn height(&self) -> u64 {
        self.ledger.height()
    }
}

impl LaneWorld {
    fn new(seed: u64, options: LaneOptions) -> LaneWorld {
        let mut dice = Dice::new(seed ^ 0x1a9e);
        let conditions = Conditions::of(seed, options.mistake);
        let payers = Payers::new(4, options.mistake);
        let keys: Vec<Vec<SecretKey>> = (0..MEMBERS).map(|index| shard_keys(index, 0, options.shards)).collect();
        let (bls, epoch_heights) = match (options.mistake, seed % 8) {
            // Group keys are of members with one shard each.
            _ if options.shards > 1 => (LaneBls::None, EPOCH_HEIGHTS),
            (Some(Mistake::Member(MemberMistake::NeedlessComplaints)), _) | (_, 5) => {
                (LaneBls::Threshold, GROUP_EPOCH_HEIGHTS)
            }
            (Some(Mistake::Lane(LaneMistake::ForeignSigner)), _) | (_, 3) => (LaneBls::Aggregate, EPOCH_HEIGHTS),
            _ => (LaneBls::None, EPOCH_HEIGHTS),
        };
        let lane = LaneTerms {
            epoch_heights,
            halt_heights: 3,
            case_deposit: CASE_DEPOSIT,
            lapse_penalty: 100_000,
            members: keys.iter().map(|keys| keys.iter().map(SecretKey::public).collect()).collect(),
            registrars: (0..MEMBERS.into()).map(|index| registrar(index).public()).collect(),
            bls,
            assets: terms::founded(conditions.are_terms_voted, dice.below(2)),
            accounts: (0..MEMBERS).map(|index| answering(index, options.mistake)).collect(),
            outputs: conditions.outputs(),
        };
        let founders = (0..MEMBERS).map(|index| Member {
            account: secret(2, index.into()).public().address(),
            key: secret(5, index.into()).public(),
            address: String::new(),
            stake: STAKE,
        });
        let stakes = Terms {
            schedule: terms::schedule(conditions.are_terms_voted),
            network: Digest([7; 32]),
            committee: MEMBERS.into(),
            slash: Fraction::power_of_two(2),
            ..Terms::default()
        };
        let membership = Membership { terms: stakes, reward_pool: 0, founders: founders.collect() };
        let of_members = (0..MEMBERS.into()).map(|index| secret(2, index).public().address());
        let accounts = payers.accounts().chain(of_members.filter(|_| !conditions.are_members_poor));
        let listed = terms::listed(conditions.are_terms_voted);
        let held = |account| listed.iter().map(move |asset| (account, *asset, WEALTH));
        let balances: Vec<_> = accounts.flat_map(held).collect();
        let genesis = Genesis {
            chain: 9,
            fee: 1,
            epsilon: Fraction::power_of_two(15),
            mu: Fraction::power_of_two(10),
            assets: terms::listings(conditions.are_terms_voted),
            balances,
            lane: Some(lane),
            membership: Some(membership),
            ..Genesis::default()
        };
        let ledger = Ledger::new(&genesis).expect("the genesis is sound");
        let mut validators: Vec<SimValidator> =
            (0..MEMBERS - 1).map(|index| SimValidator::new(index, &ledger, options, &mut dice)).collect();
        validators.iter_mut().enumerate().for_each(|(at, of)| of.is_silent = conditions.silences(at as u8));
        let poor = u64::from(conditions.are_members_poor);
        LaneWorld {
            options,
            conditions,
            restarts: Restarts::default(),
            end: terms::blocks(conditions.are_terms_voted, options.blocks),
            flooded: BTreeSet::new(),
            stripped: BTreeSet::new(),
            validators,
            liar: Liar::new(MEMBERS - 1),
            payers,
            waiting: Vec::new(),
            redemptions: BTreeMap::new(),
            sequences: BTreeMap::new(),
            messages: Flight::default(),
            observed: Observed::default(),
            stranger: Stranger::default(),
            accuses: dice.once_in(2),
            posted: BTreeSet::new(),
            refused: BTreeSet::new(),
            opened: BTreeMap::new(),
            crashed: vec![0; usize::from(MEMBERS - 1)],
            escrow: escrow_of(&ledger),
            terms: TermsBooks::new(&ledger),
            healed: false,
            trace: Trace::default(),
            report: LaneReport { seed, poor, ..LaneReport::default() },
            ledger,
            dice,
        }
    }

    fn lane(&self) -> &ledger::LaneBridge {
        self.ledger.lane().expect("the chain has a lane")
    }

    fn now(&self) -> HomeEpoch {
        self.lane().bridge().clock().epoch()
    }

    fn note(&mut self, event: &str, number: u64) {
        self.trace.note(event, number);
    }

    fn step(&mut self) -> Result<(), String> {
        match self.dice.below(215) {
            0..70 => self.deliver(),
            70..125 => self.turn(),
            125..165 => self.act(),
            165..205 => self.ask_again(),
            205..207 => {
                let at = self.dice.index(self.validators.len());
                self.report.crashes += 1;
                self.crashed[at] = self.ledger.height();
                self.note("crash", at as u64);
                self.validators[at].crash();
                self.collect();
            }
            _ => self.block()?,
        }
        self.check_validators()
    }

    /// A validator does something.
    fn turn(&mut self) {
        let at = self.dice.index(self.validators.len());
        let (validator, newest) = (&mut self.validators[at], self.ledger.height());
        match self.dice.below(4) {
            0 => validator.tick(),
            1 => validator.sync(),
            2 => while validator.apply() && !self.dice.once_in(4) {},
            _ => drop(validator.certify(newest)),
        }
        self.collect();
    }

    fn check_validators(&self) -> Result<(), String> {
        // A validator that makes its log again does what no correct one does, and is found by that.
        let makes_again = self.options.mistake == Some(Mistake::Member(MemberMistake::LogMadeAgain));
        match self.validators.iter().find_map(|validator| validator.broken.clone()).filter(|_| !makes_again) {
            Some(what) => Err(format!("a correct validator is broken: {what}")),
            None => self.validators.iter().try_for_each(|one| one.check_keys().and_then(|()| one.check_facts())),
        }
    }

    /// Collects what validators send: every signature is observed, whether or not it arrives.
    fn collect(&mut self) {
        for validator in 0..self.validators.len() {
            for said in std::mem::take(&mut self.validators[validator].said) {
                self.observed.note(said.kind, said.digest, said.answer.validator());
                self.messages.send(Message::Answer(said));
            }
            for payment in std::mem::take(&mut self.validators[validator].votes) {
                self.note_vote(validator as u8, &payment);
            }
        }
    }

    /// A vote is a signature on its payment.
    fn note_vote(&mut self, validator: u8, payment: &[u8]) {
        let Ok(body) = PaymentBody::parse(payment) else { return };
        self.observed.note(StatementKind::Confirmation, body.digest, validator);
        self.observed.bodies.entry(body.digest).or_insert_with(|| Arc::new(body));
    }

    /// Any message in flight arrives, or is lost, or arrives and stays in flight.
    fn deliver(&mut self) {
        if let Some(message) = self.messages.arrives(&mut self.dice, self.healed) {
            self.arrive(message);
        }
    }

    fn arrive(&mut self, message: Message) {
        match message {
            Message::Answer(said) => self.on_answer(said),
            Message::Ask { validator, kind, payment } => {
                let paid = &self.payers.payments[payment];
                let (home, body) = (paid.home(), paid.body.clone());
                let Some(bytes) = paid.request(kind) else { return };
                if validator == self.liar.index {
                    let scheme = paid.scheme;
                    let Some(answer) = self.lie(scheme, home, kind, &body) else { return };
                    self.messages.send(Message::Answer(Said { kind, digest: body.digest, answer }));
                } else {
                    self.validators[usize::from(validator)].request(home, &body.payment.owner, payment as u64, &bytes);
                    self.collect();
                }
            }
        }
    }

    /// The answer of the Byzantine validator.
    fn lie(
        &mut self,
        scheme: AnswerScheme,
        home: HomeEpoch,
        kind: StatementKind,
        body: &PaymentBody,
    ) -> Option<SimAnswer> {
        let lane = self.ledger.lane().expect("the chain has a lane");
        let committee = lane.committee(home)?;
        if scheme == AnswerScheme::Tree {
            return Some(SimAnswer::Tree(self.liar.answer(committee, kind, body)));
        }
        let generation = lane.bridge().generation(home);
        self.liar.bls_answer(committee, generation, scheme, (kind, body.digest), &mut self.dice)
    }

    /// Puts a transaction of an account into the next block.
    fn submit(&mut self, key: &SecretKey, operation: Operation) -> TransactionId {
        let account = key.public().address();
        let sequence = self.sequences.entry(account).or_insert(0);
        *sequence += 1;
        let body = Body {
            chain: self.ledger.chain(),
            account,
            sequence: *sequence,
            until: self.ledger.height() + 64,
            operation,
        };
        let transaction = body.sign(&self.ledger.network(), key);
        let id = transaction.id();
        self.waiting.push(transaction);
        id
    }

    fn post(&mut self, key: &SecretKey, operation: &BridgeOperation) -> TransactionId {
        let lane = self.ledger.lane().expect("the chain has a lane");
        let bytes = lane.post_bytes(key.public().address(), operation);
        self.submit(key, Operation::Lane(bytes.into()))
    }

    /// Makes one block of everything pending, and delivers its contents to everybody.
    fn block(&mut self) -> Result<(), String> {
        self.post_of_liar();
        self.flood();
        self.vote();
        let mut native = self.proposed();
        self.strip(&mut native);
        self.keep_in(&mut native);
        self.check_numbers(&native)?;
        let ids: Vec<TransactionId> = native.iter().map(Transaction::id).collect();
        let (height, parent, home) = (self.ledger.height() + 1, self.ledger.last_block(), self.now());
        let sub_blocks = vec![SubBlock { native: native.clone(), ..SubBlock::default() }];
        let block = Superblock { height, parent, time_ms: height, sub_blocks, ..Superblock::default() };
        let entering = terms::entering(&self.ledger);
        let applied = self.ledger.apply(&block, Signatures::Valid, &mut |_| {}).map_err(|fault| fault.to_string())?;
        self.note("block", height);
        self.trace.bytes(&applied.block.0);
        for ((id, transaction), outcome) in ids.iter().zip(&native).zip(&applied.outcomes) {
            self.on_outcome(id, &transaction.body, outcome)?;
        }
        for event in &applied.lane {
            self.on_event(event, home)?;
        }
        self.follow_terms(entering);
        let mut facts = LaneBlock::of(&block, &applied);
        if !self.accuses {
            facts.posts.clear();
        }
        let block = SimBlock { facts, native, state: self.ledger.clone() };
        self.validators.iter_mut().for_each(|validator| validator.on_block(block.clone()));
        self.check()?;
        self.restart_when_due()
    }

    /// The transactions of the next block. A sub-block of a validator may be left out; it proposes its transactions
    /// again, and others that have got them may too.
    fn proposed(&mut self) -> Vec<Transaction> {
        let mut native = std::mem::take(&mut self.waiting);
        for validator in &mut self.validators {
            let entries = validator.propose();
            let transactions = entries.iter().map(|entry| entry.transaction.clone());
            if self.healed || !self.dice.once_in(4) {
                native.extend(transactions);
                continue;
            }
            if self.dice.once_in(2) {
                self.waiting.extend(transactions);
            }
            validator.take_back(entries);
        }
        let mut seen = BTreeSet::new();
        native.retain(|transaction| seen.insert(transaction.id()));
        self.dice.shuffle(&mut native);
        native
    }

    /// Checks that no member that has not crashed lately has two transactions with one number in flight.
    fn check_numbers(&self, native: &[Transaction]) -> Result<(), String> {
        let mut numbers = BTreeMap::new();
        let height = self.ledger.height() + 1;
        // Others may still propose what was refused before; its number is free again.
        let is_alive = |one: &&Transaction| one.body.until >= height && !self.refused.contains(&one.id());
        for body in native.iter().chain(&self.waiting).filter(is_alive).map(|one| &one.body) {
            let Some(member) = self.member_of(&body.account).filter(|member| !self.has_forgotten(*member)) else {
                continue;
            };
            let before = numbers.insert((member, body.sequence), &body.operation);
            if before.is_some_and(|before| *before != body.operation) {
                return Err(format!("validator {member} has two transactions with number {}", body.sequence));
            }
        }
        Ok(())
    }

    /// The correct member whose account this is.
    fn member_of(&self, account: &Address) -> Option<u8> {
        (0..self.liar.index).find(|member| secret(2, u64::from(*member)).public().address() == *account)
    }

    /// Whether a member may have posts in flight that it does not know of, because it has crashed.
    fn has_forgotten(&self, member: u8) -> bool {
        let crashed = self.crashed[usize::from(member)];
        crashed > 0 && self.ledger.height() <= crashed + 2 * POST_BLOCKS
    }

    fn check(&self) -> Result<(), String> {
        self.ledger.audit().map_err(|error| error.to_string())?;
        let held = escrow_of(&self.ledger);
        if held != self.escrow {
            return Err(format!("escrow holds {held:?}, but withdrawals minus credits are {:?}", self.escrow));
        }
        self.validators.iter().try_for_each(|validator| validator.check_registration(&self.ledger))?;
        self.validators.iter().try_for_each(SimValidator::check_bars)?;
        self.check_convictions()?;
        self.observed.check()
    }

    fn check_convictions(&self) -> Result<(), String> {
        let liar = self.liar.index;
        if let Some(member) = self.lane().bridge().convicted().iter().find(|member| **member != liar) {
            return Err(format!("validator {member} is correct, but was convicted"));
        }
        let account = secret(2, liar.into()).public().address();
        let slashed = self.ledger.validators().registry.iter().filter(|one| one.excluded || one.bonded() < STAKE);
        match slashed.map(|one| one.member.account).find(|slashed| *slashed != account) {
            Some(slashed) => Err(format!("account {slashed} is liable for no faulty member, but was slashed")),
            None => Ok(()),
        }
    }

    /// The invariants of a completed key generation.
    fn check_generation(&self, epoch: HomeEpoch) -> Result<(), String> {
        let Some(generation) = self.lane().bridge().generation(epoch) else { return Ok(()) };
        for member in 0..self.liar.index {
            let dealt = generation.dealing_of(member).is_some();
            if generation.struck().contains(&member) || dealt && generation.out().contains(&member) {
                return Err(format!("validator {member} is correct, but the generation of epoch {epoch} excludes it"));
            }
            let secret = BlsSecretKey::of_shard(&lane_key(member, epoch));
            // A member that was too late to complain about a wrong share has none.
            let is_wronged = || generation.standing().any(|of| generation.complaint(member, &secret, of).is_some());
            if generation.outcome().is_some() && generation.share(member, &secret).is_none() && !is_wronged() {
                return Err(format!("validator {member} has no share of the group key of epoch {epoch}"));
            }
        }
        Ok(())
    }

    /// The posts of the Byzantine member in a key generation: a wrong share for some member, or right ones; a share
    /// of its own, or a complaint without a proof; or nothing.
    fn post_false_dealings(&mut self, next: HomeEpoch) {
        let Some(generation) = self.lane().bridge().generation(next).cloned() else { return };
        let (network, liar, dealer) = (self.lane().network(), self.liar.index, self.dice.below(MEMBERS.into()) as u8);
        let key = lane_key(liar, next);
        let (posts, lies) = (self.dice.once_in(3), self.dice.once_in(2));
        let operation = if !posts {
            None
        } else if generation.awaits_dealings() && generation.dealing_of(liar).is_none() {
            let dealing = Box::new(match lies {
                true => false_dealing(generation.terms(), liar, &[7; 32], dealer),
                false => dealing_of_shard(generation.terms(), liar, &key),
            });
            let signature = dealing.sign(&network, next, &key);
            Some(BridgeOperation::Deal { epoch: next, dealing, signature })
        } else if generation.awaits_complaints() {
            let complaint = generation.reveal(liar, &BlsSecretKey::of_shard(&key), dealer);
            complaint.map(|mut complaint| {
                complaint.response[0] ^= u8::from(lies);
                BridgeOperation::Complain { epoch: next, complaint: Box::new(complaint) }
            })
        } else {
            None
        };
        if let Some(operation) = operation {
            self.post(&secret(2, liar.into()), &operation);
        }
    }

    fn on_outcome(&mut self, id: &TransactionId, body: &Body, outcome: &Outcome) -> Result<(), String> {
        if outcome.refusal().is_some() {
            self.refused.insert(*id);
        }
        if let Operation::Lane(post) = &body.operation {
            self.on_restart_outcome(id, outcome, post)?;
            self.on_condition(id, self.member_of(&body.account).is_some(), outcome, post)?;
        }
        match (&body.operation, outcome.refusal()) {
            (Operation::Withdraw { asset, amount, .. }, refusal) => {
                self.on_deposit(*asset, *amount, refusal)?;
                if refusal.is_none() {
                    *self.escrow.entry(*asset).or_default() += u128::from(*amount);
                }
            }
            (Operation::Lane(_), Some(Refusal::VOID_PAYMENT)) => {
                let settled = self.redemptions.get(id).filter(|digest| self.observed.is_settled(digest));
                if let Some(digest) = settled {
                    return Err(format!("payment {digest} is settled, but its certificate is refused as void"));
                }
            }
            // One account redeems for all payers: what is beyond its window comes with a later block.
            (Operation::Lane(_), Some(Refusal::SEQUENCE_TOO_FAR)) => {
                let digest = self.redemptions.get(id);
                if let Some(at) = digest.and_then(|digest| self.payers.find(digest)) {
                    self.redeem(at);
                }
            }
            (Operation::Lane(bytes), None) => {
                self.check_repetition(&body.account, bytes)?;
                if let Some(digest) = self.redemptions.get(id).copied() {
                    self.payers.redeemed(&digest);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that no member that has not crashed lately pays twice for one post.
    fn check_repetition(&mut self, account: &Address, bytes: &[u8]) -> Result<(), String> {
        let Some(member) = self.member_of(account) else { return Ok(()) };
        let key = BridgeOperation::parse(bytes).and_then(|post| post.once()).map_err(|error| error.to_string())?;
        let is_first = self.posted.insert((member, key));
        if is_first || self.has_forgotten(member) {
            return Ok(());
        }
        Err(format!("validator {member} has posted {key:?} twice"))
    }

    fn on_event(&mut self, event: &BridgeEvent, home: HomeEpoch) -> Result<(), String> {
        match event {
            BridgeEvent::Credit { asset, amount, .. } => {
                self.report.credits += 1;
                self.report.ways_out += u64::from(!self.terms.takes_deposits(*asset));
                let held = self.escrow.get(asset).and_then(|held| held.checked_sub((*amount).into()));
                self.escrow.insert(*asset, held.ok_or("more was credited than escrow holds")?);
                self.escrow.retain(|_, held| *held > 0);
            }
            BridgeEvent::Convicted(_) => self.report.convicted += 1,
            BridgeEvent::GroupKey(epoch, made) => {
                self.report.group_keys += u64::from(*made);
                self.check_generation(*epoch)?;
            }
            BridgeEvent::Backed(id, output) => {
                if let Recipient::Key(_) = output.to {
                    self.payers.deposited(*id, *output, home);
                }
            }
            BridgeEvent::Epoch(epoch) => {
                self.terms.begin(*epoch, self.ledger.height() + 1);
                let registered = self.lane().bridge().registrations(*epoch).count();
                self.report.unregistered += u64::from(registered < usize::from(MEMBERS));
            }
            BridgeEvent::Proven(..) => self.report.proven += 1,
            BridgeEvent::Case(CaseEvent::Opened(contested)) => {
                self.report.cases += 1;
                self.flooded.insert(contested.output.id);
                self.opened.insert(contested.output.id, self.ledger.height());
            }
            BridgeEvent::Case(CaseEvent::Fixed(id, bodies)) => {
                self.opened.insert(*id, self.ledger.height());
                bodies.iter().for_each(|body| self.defend(&body.digest));
            }
            BridgeEvent::Case(CaseEvent::Ruled(contested, verdict)) => {
                self.report.verdicts += 1;
                self.note("verdict", self.report.verdicts);
                let id = contested.output.id;
                match verdict {
                    Verdict::Freed => drop(self.observed.freed.insert(id)),
                    Verdict::Lapsed => drop(self.observed.lapsed.insert(id)),
                    Verdict::Expired => {
                        self.report.expired += 1;
                        self.show_withheld(&id);
                    }
                    Verdict::Confirmed(..) => {}
                }
                self.payers.ruled(&id, verdict);
            }
            BridgeEvent::Case(CaseEvent::Alarm(digest)) => return Err(format!("payment {digest} raised the alarm")),
            BridgeEvent::Uncovered(asset) => return Err(format!("escrow does not cover claims of asset {asset}")),
            _ => {}
        }
        Ok(())
    }

    /// Posts the certificate of a contested payment, if a payer has it.
    fn defend(&mut self, digest: &Digest) {
        if self.conditions.are_payers_silent {
            return;
        }
        let Some(operation) = self.payers.certificate_of(digest) else { return };
        let key = self.payers.account(1);
        let id = self.post(&key, &operation);
        self.redemptions.insert(id, *digest);
    }

    /// Certificates that were withheld are shown when the case has expired: they still confirm their payments.
    fn show_withheld(&mut self, output: &OutputId) {
        let key = self.payers.account(1);
        for (digest, operation) in self.payers.certificates(output) {
            self.report.withheld += 1;
            let id = self.post(&key, &operation);
            self.redemptions.insert(id, digest);
        }
    }

    /// The posts of the Byzantine validator.
    fn post_of_liar(&mut self) {
        let (next, liar) = (self.now() + 1, self.liar.index);
        let known = self.lane().bridge().registrations(next).any(|of| of.member == liar);
        if !known && !self.conditions.is_unregistered && self.dice.once_in(3) {
            let registers = registration(self.lane(), liar, next, self.options.shards);
            self.post(&secret(2, liar.into()), &registers);
        }
        self.post_false_dealings(next);
        let cases: Vec<_> = self.lane().bridge().resolver().cases().map(|(of, bodies)| (*of, bodies)).collect();
        let is_stalled = self.conditions.is_stalled;
        for (contested, bodies) in cases.into_iter().filter(|_| !is_stalled) {
            let key = secret(2, self.liar.index.into());
            let homes = [contested.home, contested.home + 1];
            let committees = homes.map(|home| self.lane().committee(home).cloned());
            let known: Vec<Arc<PaymentBody>> = self.observed.bodies.values().cloned().collect();
            let of_case = known.into_iter().filter(|body| body.input_ids().any(|id| id == contested.output.id));
            let choices: Vec<Arc<PaymentBody>> = of_case.collect();
            if let (Some(committee), false) = (&committees[0], choices.is_empty()) {
                let body = &choices[self.dice.index(choices.len())];
                let answer = self.liar.answer(committee, StatementKind::Confirmation, body);
                let (case, payment) = (contested.output.id, body.payment.encode());
                // Its owner has signed it, or the vote is refused.
                let signature = self.payers.signature_of(body);
                self.post(&key, &BridgeOperation::Vote { case, payment, signature, answer });
            }
            for committee in committees.into_iter().flatten() {
                // One that names a payment is worth as much as its certificate, which anyone posts.
                if bodies.is_some() {
                    let shows = self.dice.once_in(8);
                    let paid = self.payers.certified(&contested.output.id).filter(|_| shows).map(Box::new);
                    let view = self.liar.view(&committee, (contested.output.id, contested.owner), paid);
                    self.post(&key, &view);
                }
            }
        }
    }

    /// The faults stop: messages in flight arrive, and each settled output of an honest payer returns to the ledger.
    fn heal(&mut self) -> Result<(), String> {
        self.healed = true;
        self.validators.iter_mut().for_each(SimValidator::calm);
        // A case that opens now cannot close in time.
        let now = self.now();
        self.settle_down()?;
        let home = self.send_home(now);
        let shown = self.certificates_to_show();
        for _ in 0..HEAL_BLOCKS {
            self.block()?;
            self.settle_down()?;
        }
        for payment in home {
            let paid = &self.payers.payments[payment];
            let is_served = self.validators.iter().all(|of| of.serves(paid.home(), &paid.body.payment.owner));
            if !paid.is_redeemed && is_served && HomePhase::of(paid.home(), self.now()) <= HomePhase::Exit {
                return Err(format!("a settled output does not return to the ledger: payment {}", paid.body.digest));
            }
            self.report.came_home += u64::from(paid.is_redeemed);
        }
        self.say_all()?;
        self.check_shown(&shown)
    }

    /// What correct members have to say in cases reaches the ledger, although queues were full and blocks left it out.
    fn say_all(&mut self) -> Result<(), String> {
        for _ in 0..SAID_BLOCKS {
            self.block()?;
            (0..3).for_each(|_| self.settle_validators());
        }
        let newest = self.ledger.height();
        let is_old = |case: &OutputId| self.opened.get(case).is_some_and(|opened| opened + SAID_BLOCKS <= newest);
        let resolver = self.lane().bridge().resolver();
        let mut saying = self.validators.iter().filter(|validator| !validator.is_silent);
        saying.try_for_each(|validator| validator.check_statements(resolver, is_old))
    }

    /// Runs everything that can happen without another block.
    fn settle_down(&mut self) -> Result<(), String> {
        for _ in 0..6 {
            self.settle_validators();
            self.ask_all();
            while !self.messages.is_empty() {
                self.deliver();
            }
        }
        self.check_validators()
    }

    /// Validators know all blocks, and do what they have to do.
    fn settle_validators(&mut self) {
        let newest = self.ledger.height();
        for validator in &mut self.validators {
            while validator.apply() {}
            while validator.certify(newest) {}
            validator.tick();
            (0..4).for_each(|_| validator.sync());
        }
        self.collect();
    }
}
