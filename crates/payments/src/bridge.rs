//! The bridge: the lane's state on the ledger, as one pure state machine.
//!
//! The ledger calls [`BridgeOperation::verify`] at intake, [`Bridge::check`] as a requirement on the state before the
//! block, and [`Bridge::begin`] and [`Bridge::apply`] once a block. Everything that a block states about the bridge
//! commutes: operations are sorted, copies do nothing.
//!
//! # How an operation becomes a footprint
//!
//! | operation | requirement | sums | once-key | debits |
//! |---|---|---|---|---|
//! | withdraw | the asset is listed | `Spent(asset)` | none: the id names account and sequence | amount, to escrow |
//! | redeem | [`Bridge::check`] | none | `KeepOne(`[`BridgeKey::Payment`]`)` | fee |
//! | resolve | [`Bridge::check`] | `Spent(0)`: the bids | `KeepOne(`[`BridgeKey::Cases`]`)` | fee, bids |
//! | vote, view | [`Bridge::check`] | none | `KeepOne(`[`BridgeKey::Vote`]` or `[`BridgeKey::View`]`)` | fee |
//! | halt | [`Bridge::check`] | none | `KeepOne(`[`BridgeKey::Halt`]`)` | fee |
//! | register | [`Bridge::check`] | none | `KeepOne(`[`BridgeKey::Registration`]`)` | fee |
//! | accuse | [`Bridge::check`] | none | `KeepOne(`[`BridgeKey::Conviction`]`)` | fee |
//! | deal | [`Bridge::check`] | none | `KeepOne(`[`BridgeKey::Dealing`]`)` | fee |
//! | complain | [`Bridge::check`] | none | `KeepOne(`[`BridgeKey::Complaint`]`)` | fee |
//!
//! All keys are `KeepOne`: the effect does not depend on the sender. So a copy pays fee and sequence number and does
//! nothing, and never removes the original. Signatures are verified at intake and not again in replay; they cost
//! [`BridgeOperation::cost`] units of a block's budget. Credits are due after the block's debits, like refunds. Escrow
//! is one more place of custody: its sums are [`Bridge::escrow`] and [`Bridge::case_deposits`].
//!
//! # Who causes work pays
//!
//! A case causes at most n votes and 2n views, which are free for the members that post them ([`LANE_DUTY`]). So a case
//! consumes a bid of at least [`BridgeRules::case_deposit`], whatever the verdict; if it expires, the part comes back
//! that was not used. A block opens at most [`cases_per_block`] cases: those with the highest bids, and of equal ones
//! those of the lowest ids. All other bids of the block return. Nothing waits in the state: a queue would let a small
//! fixed sum keep an owner out until it is too late, while bids cost an attacker what the owner's money is worth. No
//! price depends on other cases. Of several bids for one output the highest counts, so that a copy with a lower one
//! displaces nobody.
//!
//! # What a block costs
//!
//! A block costs its facts, the claims that it pays, the cases that these concern, and a constant for each asset of
//! the lane and each epoch that counts. Pending or open items that it does not touch cost nothing: neither in
//! [`Bridge::step`] nor in the digest of the state, since each claim, case and deposit is an entry of the ledger's
//! trie ([`BridgeEntry`]). A touched case is hashed as a whole: at most one payment for each member of its committee.

mod bids;
mod boards;
mod contest;
mod encoding;
mod interface;
mod operation;
mod owing;
mod restarted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use primitives::{Address, Amount, AssetId, Digest, LANE_DUTY, PublicKey, Signature};

use bids::CaseBid;
pub use bids::{POST_CHECKS_MAX, case_weight, cases_per_block};
use boards::Board;
pub use boards::with_told_board;
pub use contest::{ContestClaim, contests};
pub use interface::{BridgeEvent, BridgeFact, BridgeKey, EscrowClaim, EscrowTotals};
pub use operation::BridgeOperation;

use crate::layout::Reader;
use crate::outflow::{OutflowLimit, OutflowQueue};
use crate::request::verify_claim;
use crate::resolve::{CaseStep, NotHonoured, read_map};
use crate::{
    BridgeEntry, BridgeRefusal, CaseEvent, CaseFact, CertifiedPayment, CheckBudget, Claim, Complaint, ContestedOutput,
    Convicted, DKG_MEMBERS_MAX, Dealing, HomeEpoch, LaneAnswer, LaneBls, LaneClock, LaneCommittee, LaneEvidence,
    LaneRefusal, LaneRegistration, LaneSchedule, LaneTime, Output, OutputId, OutputProof, Payment, PaymentBody,
    PaymentCertificate, Quorums, Recipient, RegisteredBls, Resolver, RootCache, SpentOutput, StatementKind, Verdict,
    halt_digest, owner_message, view_digest,
};

/// The rules of the bridge from a network's genesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeRules {
    /// The identity of the network.
    pub network: Digest,
    /// Lengths of epochs and halts.
    pub schedule: LaneSchedule,
    /// The lowest bid for opening a case, in units of asset 0: what its posts would cost ([`case_weight`]).
    pub case_deposit: Amount,
    /// What an output loses when it lapses, in millionths.
    pub lapse_penalty: u32,
    /// Limits on net outflow by asset.
    pub outflow: BTreeMap<AssetId, OutflowLimit>,
    /// For each member the key that registers its keys of the next epoch. If empty, keys never change.
    pub registrars: Vec<PublicKey>,
    /// The kind of BLS keys that they register.
    pub bls: LaneBls,
}

/// The state of the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    rules: BridgeRules,
    clock: LaneClock,
    resolver: Resolver,
    backed: HomeOutputs,
    /// Key outputs of payments that stand by a verdict. Their units are part of what other outputs have brought.
    proven: HomeOutputs,
    totals: BTreeMap<AssetId, EscrowTotals>,
    deposits: BTreeMap<OutputId, (Address, Amount)>,
    /// The sum of `deposits`.
    deposited: u128,
    queue: OutflowQueue,
    /// Registrations of the epochs that count, and of the next one.
    registrations: BTreeMap<(HomeEpoch, u8), LaneRegistration>,
    /// Members that contradicted themselves.
    convicted: BTreeSet<u8>,
    /// Key generations of the epochs that count, and of the next one.
    boards: BTreeMap<HomeEpoch, Arc<Board>>,
}

/// What a block writes, besides its permanent changes.
#[derive(Default)]
struct BridgeStep {
    events: Vec<BridgeEvent>,
    /// Outputs that verdicts prove.
    proven: Vec<BridgeEntry>,
    /// Cases whose deposits were added or removed.
    deposits: BTreeSet<OutputId>,
    /// Claims that were added, and those that were paid in part or in full.
    claims: BTreeSet<(AssetId, (u64, OutputId))>,
    /// How often a claim was looked at, or a rule was applied to a case.
    looks: usize,
}

/// Outputs by home.
type HomeOutputs = BTreeMap<HomeEpoch, BTreeMap<OutputId, Output>>;

/// Bids of a block by output: each with its account.
type Bids = BTreeMap<OutputId, (Amount, Address)>;

impl Bridge {
    /// The bridge at the genesis, with the outputs that the genesis creates in epoch 0. Their sum is the first
    /// escrow. Also returns what the lane accepts.
    pub fn new(rules: BridgeRules, genesis: &[Output]) -> (Bridge, Vec<BridgeEvent>) {
        let mut bridge = Bridge {
            clock: LaneClock::new(rules.schedule),
            resolver: Resolver::new(rules.network, rules.schedule.case_heights()),
            backed: BTreeMap::new(),
            proven: BTreeMap::new(),
            totals: BTreeMap::new(),
            deposits: BTreeMap::new(),
            deposited: 0,
            queue: OutflowQueue::new(&rules.outflow),
            registrations: BTreeMap::new(),
            convicted: BTreeSet::new(),
            boards: BTreeMap::new(),
            rules,
        };
        let mut events = Vec::new();
        for (index, output) in (0..).zip(genesis) {
            let id = OutputId::of_genesis(&bridge.rules.network, 0, index);
            bridge.totals.entry(output.asset).or_default().backing += u128::from(output.amount);
            bridge.back(0, id, *output, &mut events);
        }
        (bridge, events)
    }

    /// Registers a committee before its epoch begins.
    pub fn register(&mut self, epoch: HomeEpoch, quorums: Quorums) {
        self.resolver.register(epoch, quorums);
    }

    /// Lane time.
    pub fn clock(&self) -> &LaneClock {
        &self.clock
    }

    /// Whether members of a committee need their keys and spent sets: its time is not over, a case that concerns it is
    /// open, or one confirmed a payment not long ago.
    pub fn needs(&self, committee: HomeEpoch) -> bool {
        self.resolver.needs(committee, self.clock.epoch())
    }

    /// Whether the ledger redeems certificates of a committee, and accepts evidence against its members.
    pub fn is_kept(&self, committee: HomeEpoch) -> bool {
        committee <= self.clock.epoch() && self.resolver.is_kept(committee, self.clock.epoch())
    }

    /// Contested outputs.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// Totals that went into and out of escrow.
    pub fn totals(&self) -> &BTreeMap<AssetId, EscrowTotals> {
        &self.totals
    }

    /// Units of an asset in escrow.
    pub fn escrow(&self, asset: AssetId) -> u128 {
        let held = self.totals.get(&asset).map_or(Some(0), EscrowTotals::held);
        held.expect("no more is paid than escrow holds")
    }

    /// Deposits of open cases, in units of asset 0.
    pub fn case_deposits(&self) -> u128 {
        self.deposited
    }

    /// Claims that wait for the outflow limit, or for escrow.
    pub fn queue(&self) -> &OutflowQueue {
        &self.queue
    }

    /// The keys that members registered for an epoch, by member.
    pub fn registrations(&self, epoch: HomeEpoch) -> impl Iterator<Item = &LaneRegistration> {
        self.registrations.range((epoch, 0)..=(epoch, u8::MAX)).map(|(_, registration)| registration)
    }

    /// The registered keys of the epochs that count, and of the next one.
    pub fn all_registrations(&self) -> impl Iterator<Item = &LaneRegistration> {
        self.registrations.values()
    }

    /// The members that contradicted themselves.
    pub fn convicted(&self) -> &BTreeSet<u8> {
        &self.convicted
    }

    /// Whether a quorum has keys for an epoch, so that it can begin.
    pub fn is_ready(&self, epoch: HomeEpoch) -> bool {
        let members = self.rules.registrars.len();
        members == 0 || self.registrations(epoch).count() >= Quorums::new(members).certificate
    }

    /// Outputs that the ledger created in an epoch whose certificates are still redeemable.
    pub fn backed(&self, home: HomeEpoch) -> impl Iterator<Item = (&OutputId, &Output)> {
        self.backed.get(&home).into_iter().flatten()
    }

    /// An output that the ledger created, with its home; `None` if its epoch was dropped.
    pub fn find_backed(&self, id: &OutputId) -> Option<(HomeEpoch, Output)> {
        self.backed.iter().find_map(|(home, outputs)| Some((*home, *outputs.get(id)?)))
    }

    /// Key outputs of payments that stand by a verdict, with this home: their exits need no other proof.
    pub fn proven(&self, home: HomeEpoch) -> impl Iterator<Item = (&OutputId, &Output)> {
        self.proven.get(&home).into_iter().flatten()
    }

    /// Like [`Bridge::find_backed`], of outputs that a verdict proves.
    pub fn find_proven(&self, id: &OutputId) -> Option<(HomeEpoch, Output)> {
        self.proven.iter().find_map(|(home, outputs)| Some((*home, *outputs.get(id)?)))
    }

    /// Whether the state before a block permits the operation. An operation that was already done is permitted: a
    /// copy does nothing.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self, fact: &BridgeFact) -> Result<(), BridgeRefusal> {
        let now = self.clock.epoch();
        match fact {
            BridgeFact::Withdraw { .. } => Ok(()),
            BridgeFact::Redeem(body) => {
                let home = body.payment.home;
                if !self.is_kept(home) {
                    return Err(BridgeRefusal::NotRedeemable(home));
                }
                // A certificate that contradicts another one is accepted: it raises the alarm.
                match self.resolver.check(body) {
                    Err(NotHonoured::Void) => Err(BridgeRefusal::Void),
                    Ok(()) | Err(NotHonoured::Contradiction) => Ok(()),
                }
            }
            BridgeFact::Resolve { cases, .. } => {
                cases.iter().try_for_each(|(contested, parent)| self.check_contested(contested, parent.is_some()))
            }
            BridgeFact::View { case, paid: Some((home, digest)), .. } => {
                if self.resolver.concerns(case, *home, digest) { Ok(()) } else { Err(BridgeRefusal::NoCase) }
            }
            BridgeFact::Vote { case, .. } | BridgeFact::View { case, .. } => {
                if self.resolver.is_open(case) {
                    Ok(())
                } else {
                    Err(BridgeRefusal::NoCase)
                }
            }
            BridgeFact::Halt { epoch, round, .. } => {
                let present = (now, self.clock.halt_round());
                let wrong = BridgeRefusal::WrongRound { epoch: present.0, round: present.1 };
                if (*epoch, *round) == present { Ok(()) } else { Err(wrong) }
            }
            BridgeFact::Register(of) => {
                let known = self.registrations.get(&(of.epoch, of.member));
                let old = self.registrations.values().filter(|known| known.member == of.member && *known != of);
                let repeats = |known: &LaneRegistration| {
                    let bls = |key: &RegisteredBls| of.bls.iter().any(|fresh| fresh.key == key.key);
                    known.keys.iter().any(|key| of.keys.contains(key)) || known.bls.iter().any(bls)
                };
                let is_fresh = !old.into_iter().any(repeats) && self.fits(of);
                let is_next = of.epoch == now + 1 && usize::from(of.member) < self.rules.registrars.len();
                let (is_copy, is_sound) = (known == Some(of), !self.convicted.contains(&of.member));
                if is_copy || is_next && is_fresh && is_sound && known.is_none() {
                    Ok(())
                } else {
                    Err(BridgeRefusal::WrongRegistration(now + 1))
                }
            }
            // Keys of dropped epochs may have been sold.
            BridgeFact::Accuse(of) if !self.is_kept(of.epoch) && of.epoch <= now => {
                Err(BridgeRefusal::EvidenceTooOld(of.epoch))
            }
            BridgeFact::Accuse(_) => Ok(()),
            BridgeFact::Deal { epoch, dealing, .. } => self.check_deal(*epoch, dealing),
            BridgeFact::Complain { epoch, complaint } => self.check_complaint(*epoch, complaint),
        }
    }

    /// Whether an output may be contested now: its case is not too late, and it exists.
    fn check_contested(&self, contested: &ContestedOutput, is_proved: bool) -> Result<(), BridgeRefusal> {
        let (home, SpentOutput { id, asset, amount }) = (contested.home, contested.output);
        if !self.clock.may_open(home) || self.resolver.is_expired(home, &id) {
            return Err(BridgeRefusal::TooLate(home));
        }
        let output = Output { to: Recipient::Key(contested.owner), asset, amount };
        let has = |outputs: &HomeOutputs| outputs.get(&home).and_then(|of| of.get(&id)) == Some(&output);
        let exists = is_proved || has(&self.backed) || has(&self.proven);
        if exists { Ok(()) } else { Err(BridgeRefusal::UnknownOutput) }
    }

    /// Whether a registration has the BLS keys that the genesis requires.
    fn fits(&self, of: &LaneRegistration) -> bool {
        match self.rules.bls {
            LaneBls::None => of.bls.is_empty(),
            LaneBls::Aggregate => of.bls.len() == of.keys.len(),
            // Owners of all shards have one group key.
            LaneBls::Threshold => [of.bls.len(), of.keys.len()] == [1, 1],
        }
    }

    /// Begins the next height: lane time advances, cases whose time is over lapse, limits recover. An epoch for which
    /// fewer than q members have keys does not begin: the previous one continues, at each height, until they have.
    pub fn begin(&mut self) -> Vec<BridgeEvent> {
        let halted = self.clock.is_halted();
        let mut events = Vec::new();
        if self.clock.advance(self.is_ready(self.clock.epoch() + 1)) {
            let epoch = self.clock.epoch();
            let absent = self.rules.registrars.len().saturating_sub(self.registrations(epoch).count());
            self.resolver.note_absent(epoch, absent);
            events.push(BridgeEvent::Epoch(epoch));
        }
        if self.clock.is_halted() != halted {
            events.push(BridgeEvent::Halted(!halted));
        }
        self.queue.recover();
        let now = self.clock.epoch();
        self.resolver.prune(now);
        self.backed = self.backed.split_off(&self.resolver.oldest());
        self.proven = self.proven.split_off(&self.resolver.oldest());
        self.registrations = self.registrations.split_off(&(self.resolver.oldest(), 0));
        self.turn_board(&mut events);
        events
    }

    /// All entries that are written and not dropped, including open ones, in no order.
    pub fn entries(&self) -> impl Iterator<Item = BridgeEntry> + '_ {
        let all = |outputs: &'_ HomeOutputs, entry: fn(HomeEpoch, &OutputId, &Output) -> BridgeEntry| {
            let of_home = |(home, of): (&HomeEpoch, &BTreeMap<OutputId, Output>)| {
                let home = *home;
                of.iter().map(move |(id, output)| entry(home, id, output)).collect::<Vec<_>>()
            };
            outputs.iter().flat_map(of_home).collect::<Vec<_>>()
        };
        let backed = all(&self.backed, BridgeEntry::backed).into_iter().chain(all(&self.proven, BridgeEntry::proven));
        let deposits = self.deposits.iter().map(|(id, deposit)| BridgeEntry::deposit(id, Some(deposit)));
        let registered = self.registrations.values().map(BridgeEntry::registration);
        let open = deposits.chain(self.queue.entries());
        backed.chain(self.resolver.entries()).chain(open).chain(registered).chain(self.board_entries())
    }

    /// The epochs whose committees it knows, ascending, with the number of members of each.
    pub fn epochs(&self) -> impl Iterator<Item = (HomeEpoch, usize)> + '_ {
        self.resolver.epochs()
    }

    /// The oldest epoch of which it has entries.
    pub fn oldest(&self) -> HomeEpoch {
        self.resolver.oldest()
    }

    /// Like [`Bridge::step`], without the entries.
    pub fn apply(&mut self, facts: Vec<BridgeFact>) -> Vec<BridgeEvent> {
        self.step(facts).0
    }

    /// Applies all facts of a block, in any order. The caller has checked each fact against the state before the
    /// block ([`Bridge::check`]) and its signatures ([`BridgeOperation::verify`]). Also returns which entries were
    /// written or removed, each key once, ascending.
    pub fn step(&mut self, facts: Vec<BridgeFact>) -> (Vec<BridgeEvent>, Vec<BridgeEntry>) {
        let (step, entries) = self.step_counted(facts);
        (step.events, entries)
    }

    fn step_counted(&mut self, facts: Vec<BridgeFact>) -> (BridgeStep, Vec<BridgeEntry>) {
        let mut step = BridgeStep::default();
        let events = &mut step.events;
        let (now, halted) = (self.clock.epoch(), self.clock.is_halted());
        let mut cases = Vec::new();
        let mut bids = Vec::new();
        let mut halts = BTreeSet::new();
        let mut registered = Vec::new();
        for fact in facts {
            match fact {
                BridgeFact::Withdraw { account, sequence, output } => {
                    let id = OutputId::of_deposit(&self.rules.network, now, &account, sequence);
                    self.totals.entry(output.asset).or_default().deposits += u128::from(output.amount);
                    self.queue.deposit(output.asset, output.amount);
                    self.back(now, id, output, events);
                }
                BridgeFact::Redeem(body) => cases.push(CaseFact::Certified(body)),
                BridgeFact::Resolve { opener, bid, cases } => bids.extend(CaseBid::of_all(opener, bid, cases)),
                BridgeFact::Vote { case, validator, payment } => {
                    cases.push(CaseFact::Vote { case, validator, payment });
                }
                BridgeFact::View { case, committee, validator, paid: None } => {
                    cases.push(CaseFact::View { case, committee, validator });
                }
                // It counts as a posted certificate.
                BridgeFact::View { paid: Some((home, digest)), .. } => {
                    cases.push(CaseFact::CertifiedDigest(home, digest));
                }
                BridgeFact::Halt { round, validator, .. } => drop(halts.insert((round, validator))),
                BridgeFact::Register(registration) => {
                    let key = (registration.epoch, registration.member);
                    if self.registrations.get(&key) != Some(&registration) {
                        events.push(BridgeEvent::Registered(key.0, key.1));
                        registered.push(BridgeEntry::registration(&registration));
                        self.registrations.insert(key, registration);
                    }
                }
                BridgeFact::Accuse(Convicted { validator, .. }) => {
                    if self.convicted.insert(validator) {
                        events.push(BridgeEvent::Convicted(validator));
                    }
                }
                BridgeFact::Deal { epoch, dealing, signature } => {
                    registered.extend(self.deal(epoch, *dealing, signature));
                }
                BridgeFact::Complain { epoch, complaint } => registered.extend(self.complain(epoch, &complaint)),
            }
        }
        self.open_board();
        // Backed outputs are listed by id, so that the order of withdrawals changes nothing.
        events.sort_by_key(|event| match event {
            BridgeEvent::Backed(id, _) => (0, *id),
            BridgeEvent::Registered(_, member) => (1, OutputId([*member; 32])),
            BridgeEvent::Convicted(member) => (2, OutputId([*member; 32])),
            _ => (3, OutputId([0; 32])),
        });
        let (mut bids, returned) = self.take_bids(bids, &mut cases);
        let at = LaneTime { epoch: now, height: self.clock.height() };
        let CaseStep { events: decided, mut entries, judged, used, .. } = self.resolver.step(at, cases);
        let backed = events.iter().filter_map(|event| match event {
            BridgeEvent::Backed(id, output) => Some(BridgeEntry::backed(now, id, output)),
            _ => None,
        });
        entries.extend(backed);
        entries.extend(registered);
        step.looks += judged;
        for event in decided {
            self.follow(event, &mut bids, &used, &mut step);
        }
        // A case that was not opened although it was among the first: an output was decided in this very block.
        let unopened = bids.into_values().map(|(bid, opener)| BridgeEvent::ReturnDeposit(opener, bid));
        step.events.extend(unopened.chain(returned));
        for (round, validator) in halts {
            if let Some(quorums) = self.resolver.quorums(now) {
                self.clock.vote_halt(quorums, validator, round);
            }
        }
        self.pay(&mut step);
        debug_assert_eq!(halted, self.clock.is_halted(), "a halt begins with the next height");
        entries.append(&mut step.proven);
        entries.extend(step.deposits.iter().map(|id| BridgeEntry::deposit(id, self.deposits.get(id))));
        entries.extend(step.claims.iter().map(|(asset, place)| self.queue.entry(*asset, place)));
        entries.sort_unstable_by_key(|entry| entry.key);
        debug_assert!(entries.is_sorted_by(|a, b| a.key < b.key), "each entry once");
        (step, entries)
    }

    fn back(&mut self, home: HomeEpoch, id: OutputId, output: Output, events: &mut Vec<BridgeEvent>) {
        self.backed.entry(home).or_default().insert(id, output);
        events.push(BridgeEvent::Backed(id, output));
    }
}

#[cfg(test)]
mod costs;
