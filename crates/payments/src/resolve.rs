//! Protocol R on the ledger: decides which payment of a contested output stands.
//!
//! An output is *contested* if its owner signed two payments of it, or if a payment of it has too few signatures and
//! can get no more. The ledger creates nothing from fewer than q signatures, and time alone decides nothing.
//!
//! Thresholds follow from n, q and f ([`Quorums`]): *binding* is n + f + 1 − q; where n = 3f+1 it is 2f+1.
//!
//! # The protocol
//!
//! The *exit* E(o) spends only output o, whole, to the ledger account of its owner.
//!
//! 1. **Open.** `resolve(o)` carries o's proof, the owner's signature on E(o) and a bid. Its commit opens a case. All
//!    inputs of a stuck payment are contested by one `resolve`, and open one case each.
//! 2. **Vote.** For a case, a validator of o's home that has signed a payment T of o posts T with that signature and
//!    that of T's owner. Otherwise it locks o to E(o), durably, and posts that signature. A vote for another payment
//!    than an exit does not exist without the owner's signature: nobody invents candidates.
//! 3. **View.** When the votes committed up to the end of a block are first *binding*, they fix the *candidates*: all
//!    payments voted for, except E(o). Given candidates, a validator bars them, durably, in every shard: until a
//!    verdict confirms one, the validator neither acknowledges it nor accepts its outputs as inputs. Then it posts
//!    which of them any of its shards had acknowledged or accepted before, with its certificate, or that it had none.
//!    A view that names a payment counts as that certificate; without it there is no such view. A shard that accepted
//!    a payment and whose log lacks the certificate signs no view. Whoever bars a candidate and is shown its
//!    certificate posts it.
//!    A member without registered keys counts as a vote for something else and as an empty view: it cannot sign.
//! 4. **Verdict**, in this order, from committed facts:
//!    * **T is confirmed**, in every case of its inputs: q signatures on T (votes, or a certificate that the ledger
//!      saw, for example by a redemption or with a view, before or after), or a certificate that spends an output of
//!      T. E(o) is credited if it is T.
//!    * **o is freed**: for each candidate, *binding* validators voted for something else. o is credited in full.
//!    * **o lapses**: in each committee asked, *binding* views are empty, and the epoch after the one in which the
//!      case was opened has ended. o is credited minus a penalty, and its candidates are void.
//!    * **the case expires**: the third epoch after the one in which it was opened begins, or so many block heights
//!      have passed as eight epochs have. Nothing is credited and nothing is void, bars stay, and the case is not
//!      opened again. A certificate that comes later still confirms its payment.
//! 5. **Way home.** A confirmed payment's outputs to keys are *proven* by the ledger: they can be contested, and their
//!    home signs their exits, without the payment's certificate, which perhaps nobody has. What it may sign, and how
//!    long that is redeemed: `verdicts.rs`.
//!
//! # Why it is safe
//!
//! (i) A correct validator signs one payment of o, so at most one T is certified. T is a candidate, because a binding
//! set of voters includes a correct signer of T, and that signer votes for T. (ii) If o is freed, the correct members
//! of a binding set are bound to something else, and the others cannot make a certificate of T. (iii) If T is settled
//! or an output of it is spent, q validators of one committee accepted T. Binding views of that committee include a
//! correct one of these. If it accepted before it barred, its view is not empty; if it accepted after it barred, T
//! was already confirmed. (iv) After o lapsed, the correct members of binding views bar every candidate: no one
//! settles or spends it, and the ledger does not redeem it. So the value of o exists once. The model in
//! `resolve/model.rs` checks these.
//!
//! # Deviations from the design, each with the loss that it prevents
//!
//! * **The committee of the next epoch posts views too**, if a candidate creates outputs in that epoch.
//!   Counterexample (n = 4, disjoint committees, no faulty validator): in epoch 1 Alice spends o, of home 0, into
//!   output o' of home 1. The certificate of T is complete, and Bob spends o' by a payment that all of committee 1
//!   sign. No member of committee 0 has received the certificate of T. Alice contests o. All views of committee 0 are
//!   empty, because its members neither acknowledged T nor sign for o'; o lapses and is credited, although Bob's
//!   payment is certified and may be settled. The test
//!   `views_of_the_home_committee_alone_lose_money_across_a_boundary` replays it.
//! * **A candidate that cannot stand any more is ignored.** T = {a, b} cannot be certified, or is void, once b was
//!   credited or another payment of b stands. If it counted for a case of a, a would be frozen forever.
//! * **Signatures are counted over all cases.** A validator's vote for T in a case of a counts for T in a case of b.
//! * **All votes of a block count for the candidates**, so that the order inside a block changes nothing.
//! * **A view names no opening and no candidates.** An output has one case, ever, and its candidates are fixed once.
//! * **A view names only a payment that somebody voted for.** Its summary does not say what the payment spends; a vote
//!   has the payment. Within f Byzantine members a certified payment of the output is among the votes once candidates
//!   are fixed. For any other the certificate is redeemed with the payment, which confirms it at once, too.
//! * **A member that restarts after a case has expired** no longer knows what the case's candidates were: the state has
//!   dropped them. It refuses their certificates, as their bars stay, and whoever shows one posts it.
//! * **Epochs are pruned as a range**: those after the oldest that is kept stay in the state. They answer for nothing
//!   that the predicate [`CommitteeLife::is_kept`] does not keep, and are at most eight.
//! * **Proven outputs only go home.** An owner with the certificate spends them as any other. A payment of them without
//!   it would leave a log that has the payment and not the parent's certificate, which a restart counts on.

mod encoding;
mod entry;
mod index;
mod interface;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use primitives::{Digest, PublicKey};

pub(crate) use encoding::read_map;
pub use entry::BridgeEntry;
pub use interface::{CaseEvent, CaseFact, ConfirmedBy, ContestedOutput, Verdict};

use crate::layout::Reader;
use crate::{
    CaseEnd, CommitteeLife, HomeEpoch, LaneRefusal, LaneTime, OutputId, Payment, PaymentBody, Quorums, SpentOutput,
};

/// Why a certified payment is not honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotHonoured {
    /// An input of it was credited to its owner by a verdict, or is the output of a void payment.
    Void,
    /// It contradicts another certificate: more than f validators are Byzantine.
    Contradiction,
}

/// The fate of an output, as far as the ledger knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// This certified payment spends it.
    By(Digest),
    /// Credited: every payment of it that can still be certified is void.
    Freed,
    /// Credited minus a penalty: its candidates are void.
    Lapsed,
    /// It would be an output of a void payment.
    Void,
}

/// The numbers of votes and views that decide a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thresholds {
    validators: usize,
    /// Signatures of a certificate.
    pub(crate) certificate: usize,
    /// Votes that fix the candidates.
    pub(crate) fix: usize,
    /// Votes for something else that free the output.
    pub(crate) free: usize,
    /// Empty views that let the output lapse.
    pub(crate) lapse: usize,
}

impl Thresholds {
    fn of(quorums: Quorums) -> Thresholds {
        let binding = quorums.binding();
        Thresholds {
            validators: quorums.validators,
            certificate: quorums.certificate,
            fix: binding,
            free: binding,
            lapse: binding,
        }
    }
}

/// Facts about the payments that one committee signs, and about the outputs whose home it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EpochFacts {
    thresholds: Thresholds,
    /// Members without registered keys. They count as votes for something else and as empty views.
    absent: usize,
    /// The last epoch in which the committee signs, as its closed cases left it.
    last: HomeEpoch,
    certified: BTreeSet<Digest>,
    taken: BTreeMap<OutputId, Taken>,
    /// Outputs whose cases expired. A certificate may still come.
    expired: BTreeSet<OutputId>,
}

/// The results of the facts of a block.
#[derive(Debug, Default)]
pub(crate) struct CaseStep {
    pub(crate) events: Vec<CaseEvent>,
    /// Written entries, in the order of writing.
    pub(crate) entries: Vec<BridgeEntry>,
    /// Open cases that were changed, opened or closed.
    changed: BTreeSet<OutputId>,
    /// How often a rule was applied to a case.
    pub(crate) judged: usize,
    /// Votes and views that cases had when they expired.
    pub(crate) used: BTreeMap<OutputId, usize>,
}

/// One contested output.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Case {
    contested: ContestedOutput,
    exit: Digest,
    opened: LaneTime,
    votes: BTreeMap<u8, Digest>,
    bodies: BTreeMap<Digest, Arc<PaymentBody>>,
    candidates: Option<BTreeSet<Digest>>,
    /// Members of the home, and of the next committee, whose views are empty.
    views: [BTreeSet<u8>; 2],
}

/// Whether a case can be closed by a rule, and how.
type Rule = fn(&Resolver, &Case, LaneTime) -> Option<Verdict>;

/// Everything that the ledger knows about contested outputs: the state machine of protocol R.
#[derive(Clone, Debug)]
pub struct Resolver {
    network: Digest,
    /// A case expires this many block heights after its opening, if lane time does not end it before.
    heights_max: u64,
    epochs: BTreeMap<HomeEpoch, EpochFacts>,
    cases: BTreeMap<OutputId, Case>,
    index: index::CaseIndex,
}

impl PartialEq for Resolver {
    /// The index is derived from the cases.
    fn eq(&self, other: &Resolver) -> bool {
        (self.network, &self.epochs, &self.cases) == (other.network, &other.epochs, &other.cases)
    }
}

impl Eq for Resolver {}

impl Resolver {
    /// A resolver without committees, whose cases expire `heights_max` block heights after their opening at the latest.
    pub fn new(network: Digest, heights_max: u64) -> Resolver {
        Resolver { network, heights_max, epochs: BTreeMap::new(), cases: BTreeMap::new(), index: Default::default() }
    }

    /// Registers the committee of an epoch. A committee is registered before its epoch begins.
    pub fn register(&mut self, epoch: HomeEpoch, quorums: Quorums) {
        let facts = EpochFacts {
            thresholds: Thresholds::of(quorums),
            absent: 0,
            last: CommitteeLife::of(epoch).last,
            certified: BTreeSet::new(),
            taken: BTreeMap::new(),
            expired: BTreeSet::new(),
        };
        self.epochs.entry(epoch).or_insert(facts);
    }

    /// An epoch begins in which so many members have no registered keys.
    pub(crate) fn note_absent(&mut self, epoch: HomeEpoch, absent: usize) {
        if let Some(facts) = self.epochs.get_mut(&epoch) {
            facts.absent = absent;
        }
    }

    /// Drops the epochs before the oldest one that is kept.
    pub fn prune(&mut self, now: HomeEpoch) {
        let oldest = self.epochs.keys().find(|epoch| self.is_kept(**epoch, now)).copied().unwrap_or(now);
        self.epochs = self.epochs.split_off(&oldest);
    }

    fn life(&self, committee: HomeEpoch) -> Option<CommitteeLife> {
        let before = |home: HomeEpoch| home.checked_sub(1).is_some_and(|before| self.index.has_home(before));
        let is_concerned = self.index.has_home(committee) || before(committee);
        self.epochs.get(&committee).map(|facts| CommitteeLife { last: facts.last, is_concerned })
    }

    /// Whether the ledger keeps an epoch: whether it redeems certificates of its committee, accepts evidence against
    /// its members, and knows what became of its outputs. It may know more than it keeps.
    pub fn is_kept(&self, committee: HomeEpoch, now: HomeEpoch) -> bool {
        self.life(committee).is_some_and(|life| life.is_kept(now))
    }

    /// The last epoch in which a committee signs; later if a case is open.
    pub fn signs_through(&self, committee: HomeEpoch) -> Option<HomeEpoch> {
        self.life(committee).map(|life| life.last)
    }

    /// Whether members of a committee need their keys and spent sets.
    pub fn needs(&self, committee: HomeEpoch, now: HomeEpoch) -> bool {
        self.life(committee).is_some_and(|life| life.signs(now))
    }

    pub(crate) fn network(&self) -> Digest {
        self.network
    }

    /// The epochs whose committees it knows, with the number of members of each.
    pub(crate) fn epochs(&self) -> impl Iterator<Item = (HomeEpoch, usize)> + '_ {
        self.epochs.iter().map(|(epoch, facts)| (*epoch, facts.thresholds.validators))
    }

    /// The oldest epoch that it knows.
    pub(crate) fn oldest(&self) -> HomeEpoch {
        self.epochs.first_key_value().map_or(0, |(epoch, _)| *epoch)
    }

    /// All entries that are not dropped.
    pub(crate) fn entries(&self) -> impl Iterator<Item = BridgeEntry> + '_ {
        let cases = self.cases.iter().map(|(id, case)| BridgeEntry::case(id, Some(case)));
        let facts = self.epochs.iter().flat_map(|(home, facts)| {
            let certified = facts.certified.iter().map(|digest| BridgeEntry::certified(*home, digest));
            let taken = facts.taken.iter().map(|(output, taken)| BridgeEntry::taken(*home, output, *taken));
            certified.chain(taken).chain(facts.expired.iter().map(|output| BridgeEntry::expired(*home, output)))
        });
        facts.chain(cases)
    }

    /// Certified payments that the ledger knows.
    pub fn certified(&self) -> impl Iterator<Item = &Digest> {
        self.epochs.values().flat_map(|facts| &facts.certified)
    }

    /// Whether a payment stands: it is certified, and no verdict went against it. Validators lift a bar on it.
    pub fn confirms(&self, payment: &Digest) -> bool {
        let is_void = |(into, facts): (&HomeEpoch, &EpochFacts)| {
            facts.taken.get(&OutputId::of_payment(*into, payment, 0)) == Some(&Taken::Void)
        };
        self.epochs.values().any(|facts| facts.certified.contains(payment)) && !self.epochs.iter().any(is_void)
    }

    /// Outputs that a verdict credited to their owners.
    pub fn credited(&self) -> impl Iterator<Item = &OutputId> {
        let taken = self.epochs.values().flat_map(|facts| &facts.taken);
        taken.filter(|(_, taken)| matches!(taken, Taken::Freed | Taken::Lapsed)).map(|(id, _)| id)
    }

    /// Outputs whose cases expired, and which no payment spends: their money stays in escrow.
    pub fn expired(&self) -> impl Iterator<Item = &OutputId> {
        let open = |(facts, output): &(&EpochFacts, &OutputId)| !facts.taken.contains_key(*output);
        let expired = self.epochs.values().flat_map(|facts| facts.expired.iter().map(move |output| (facts, output)));
        expired.filter(open).map(|(_, output)| output)
    }

    /// Whether the case of an output expired.
    pub(crate) fn is_expired(&self, home: HomeEpoch, output: &OutputId) -> bool {
        self.epochs.get(&home).is_some_and(|facts| facts.expired.contains(output))
    }

    /// The thresholds of a committee, if it is registered.
    pub fn quorums(&self, committee: HomeEpoch) -> Option<Quorums> {
        self.thresholds(committee).map(|thresholds| Quorums::new(thresholds.validators))
    }

    /// Whether there is an open case about this output.
    pub fn is_open(&self, output: &OutputId) -> bool {
        self.cases.contains_key(output)
    }

    /// The open cases by output, each with the candidates once they are fixed: validators receive these again after a
    /// restart.
    pub fn cases(&self) -> impl Iterator<Item = (&ContestedOutput, Option<Vec<Arc<PaymentBody>>>)> {
        self.cases.values().map(|case| {
            let bodies =
                |digests: &BTreeSet<Digest>| digests.iter().map(|digest| case.bodies[digest].clone()).collect();
            (&case.contested, case.candidates.as_ref().map(bodies))
        })
    }

    /// Whether a validator has voted in an open case.
    pub fn has_vote(&self, case: &OutputId, validator: u8) -> bool {
        self.cases.get(case).is_some_and(|case| case.votes.contains_key(&validator))
    }

    /// Whether a member of a committee has posted its empty view in an open case.
    pub fn has_view(&self, case: &OutputId, committee: HomeEpoch, validator: u8) -> bool {
        self.cases.get(case).is_some_and(|case| {
            let after = committee.checked_sub(case.contested.home).and_then(|after| case.views.get(after as usize));
            after.is_some_and(|views| views.contains(&validator))
        })
    }

    /// Whether a payment, of which only home and digest are known, was voted for in an open case.
    pub(crate) fn concerns(&self, case: &OutputId, home: HomeEpoch, payment: &Digest) -> bool {
        let voted = |of: &Case| of.contested.home == home && of.bodies.contains_key(payment);
        self.cases.get(case).is_some_and(voted)
    }

    /// Number of open cases.
    pub fn open_cases(&self) -> usize {
        self.cases.len()
    }

    fn taken(&self, home: HomeEpoch, output: &OutputId) -> Option<Taken> {
        self.epochs.get(&home)?.taken.get(output).copied()
    }

    /// What the ledger knows that became of an output: `None` if nothing, otherwise the payment that spends it, or
    /// `None` if a verdict credited it or it belongs to a void payment.
    pub(crate) fn fate(&self, home: HomeEpoch, output: &OutputId) -> Option<Option<Digest>> {
        self.taken(home, output).map(|taken| match taken {
            Taken::By(digest) => Some(digest),
            Taken::Freed | Taken::Lapsed | Taken::Void => None,
        })
    }

    /// Whether a certified payment must be honoured.
    pub(crate) fn check(&self, body: &PaymentBody) -> Result<(), NotHonoured> {
        let taken = || body.input_ids().filter_map(|input| self.taken(body.payment.home, &input));
        // A void payment cannot stand any more, even if it is certified and other inputs of it were credited since.
        // The exit of a credited output is already paid.
        let void = taken().any(|taken| taken == Taken::Lapsed || taken == Taken::Freed && body.payment.is_exit());
        let stands = taken().all(|taken| taken == Taken::By(body.digest));
        match (void, stands) {
            (true, _) => Err(NotHonoured::Void),
            (false, true) => Ok(()),
            (false, false) => Err(NotHonoured::Contradiction),
        }
    }

    /// Applies the facts of one block and returns what they decide. The order of facts does not matter.
    pub fn apply(&mut self, now: LaneTime, facts: Vec<CaseFact>) -> Vec<CaseEvent> {
        self.step(now, facts).events
    }

    /// Like [`Resolver::apply`], and also returns the written entries. It costs the facts, and for each of them the
    /// cases that it concerns ([`index`]); other open cases cost nothing.
    pub(crate) fn step(&mut self, now: LaneTime, mut facts: Vec<CaseFact>) -> CaseStep {
        facts.sort_by_cached_key(CaseFact::rank);
        let mut step = CaseStep::default();
        for fact in facts {
            match fact {
                CaseFact::Certified(body) => self.certify(&body, &mut step),
                CaseFact::CertifiedDigest(home, digest) => self.note_certified(home, digest, &mut step),
                CaseFact::Open(contested) => self.open(now, contested, &mut step),
                CaseFact::Vote { case, validator, payment } => self.vote(case, validator, payment, &mut step),
                CaseFact::View { case, committee, validator } => self.view(case, committee, validator, &mut step),
            }
        }
        self.fix(&mut step);
        self.index.mark_due(now);
        self.decide(now, &mut step);
        #[cfg(test)]
        self.assert_decided(now);
        let entry = |id: &OutputId| BridgeEntry::case(id, self.cases.get(id));
        step.entries.extend(step.changed.iter().map(entry));
        step
    }

    fn note_certified(&mut self, home: HomeEpoch, digest: Digest, step: &mut CaseStep) {
        if self.epochs.get_mut(&home).is_some_and(|facts| facts.certified.insert(digest)) {
            self.index.mark_payment(&digest);
            step.entries.push(BridgeEntry::certified(home, &digest));
        }
    }

    /// A payment with a certificate stands, unless a verdict went against it.
    fn certify(&mut self, body: &Arc<PaymentBody>, step: &mut CaseStep) {
        match self.check(body) {
            Err(NotHonoured::Void) => return,
            Err(NotHonoured::Contradiction) => return step.events.push(CaseEvent::Alarm(body.digest)),
            Ok(()) => {}
        }
        let home = body.payment.home;
        if self.is_contested(body) {
            step.events.push(CaseEvent::Proven(body.clone()));
        }
        self.note_certified(home, body.digest, step);
        let Some(facts) = self.epochs.get_mut(&home) else { return };
        let mut first = false;
        for input in body.input_ids() {
            let taken = Taken::By(body.digest);
            if facts.taken.insert(input, taken).is_none() {
                first = true;
                self.index.mark_output(&input);
                step.entries.push(BridgeEntry::taken(home, &input, taken));
            }
        }
        if first {
            step.events.push(CaseEvent::Stands(body.clone()));
        }
    }

    /// Whether a case about an input of a payment is open or has expired.
    fn is_contested(&self, body: &PaymentBody) -> bool {
        let home = body.payment.home;
        body.input_ids().any(|input| self.cases.contains_key(&input) || self.is_expired(home, &input))
    }

    /// Whether a certificate of this contested payment would make it stand, and the ledger has none.
    pub fn awaits_certificate(&self, body: &PaymentBody) -> bool {
        let is_free = !self.is_certified(body.payment.home, &body.digest) && self.check(body).is_ok();
        is_free && self.epochs.contains_key(&body.payment.home) && self.is_contested(body)
    }

    /// Whether the candidates of an open case are fixed, so that views count.
    pub(crate) fn awaits_views(&self, case: &OutputId) -> bool {
        self.cases.get(case).is_some_and(|case| case.candidates.is_some())
    }

    pub(crate) fn is_certified(&self, home: HomeEpoch, payment: &Digest) -> bool {
        self.epochs.get(&home).is_some_and(|facts| facts.certified.contains(payment))
    }

    /// Whether a case would be opened, as far as the state before the block tells.
    pub(crate) fn would_open(&self, contested: &ContestedOutput) -> bool {
        let (home, id) = (contested.home, contested.output.id);
        let is_free = !self.cases.contains_key(&id) && !self.is_expired(home, &id);
        is_free && self.epochs.contains_key(&home) && self.taken(home, &id).is_none()
    }

    fn open(&mut self, now: LaneTime, contested: ContestedOutput, step: &mut CaseStep) {
        let id = contested.output.id;
        let is_known = self.epochs.contains_key(&contested.home);
        if self.cases.contains_key(&id) || !is_known || self.is_expired(contested.home, &id) {
            return;
        }
        match self.taken(contested.home, &id) {
            // It was redeemed before: the payment stands.
            Some(Taken::By(digest)) => {
                let verdict = Verdict::Confirmed(digest, ConfirmedBy::Certificate);
                return step.events.push(CaseEvent::Ruled(contested, verdict));
            }
            Some(Taken::Freed | Taken::Lapsed | Taken::Void) => return,
            None => {}
        }
        let exit = PaymentBody::new(contested.exit(self.network)).digest;
        let case = Case {
            contested,
            exit,
            opened: now,
            votes: BTreeMap::new(),
            bodies: BTreeMap::new(),
            candidates: None,
            views: Default::default(),
        };
        self.index.open(id, &case, self.heights_max);
        self.index.mark_output(&id);
        self.cases.insert(id, case);
        step.changed.insert(id);
        step.events.push(CaseEvent::Opened(contested));
    }

    /// Only a validator's first vote counts; a second one is evidence elsewhere.
    fn vote(&mut self, id: OutputId, validator: u8, payment: Arc<PaymentBody>, step: &mut CaseStep) {
        let Some(case) = self.cases.get_mut(&id) else { return };
        let members = self.epochs[&case.contested.home].thresholds.validators;
        let spends = payment.payment.home == case.contested.home && payment.input_ids().any(|input| input == id);
        if spends && usize::from(validator) < members && !case.votes.contains_key(&validator) {
            case.votes.insert(validator, payment.digest);
            self.index.add(id, &payment);
            case.bodies.insert(payment.digest, payment);
            self.index.mark_output(&id);
            step.changed.insert(id);
        }
    }

    fn view(&mut self, id: OutputId, committee: HomeEpoch, validator: u8, step: &mut CaseStep) {
        let Some(case) = self.cases.get_mut(&id) else { return };
        let Some(after) = committee.checked_sub(case.contested.home).filter(|after| *after <= 1) else { return };
        let member = self.epochs.get(&committee).is_some_and(|of| usize::from(validator) < of.thresholds.validators);
        if member && case.candidates.is_some() && case.views[after as usize].insert(validator) {
            self.index.mark_output(&id);
            step.changed.insert(id);
        }
    }

    /// Fixes the candidates of the cases that received votes.
    fn fix(&mut self, step: &mut CaseStep) {
        for id in &step.changed {
            let Some(case) = self.cases.get_mut(id) else { continue };
            let facts = &self.epochs[&case.contested.home];
            if case.candidates.is_none() && case.votes.len() + facts.absent >= facts.thresholds.fix {
                let candidates: BTreeSet<Digest> =
                    case.votes.values().copied().filter(|digest| *digest != case.exit).collect();
                let bodies = candidates.iter().map(|digest| case.bodies[digest].clone()).collect();
                case.candidates = Some(candidates);
                self.index.mark_output(id);
                step.events.push(CaseEvent::Fixed(*id, bodies));
            }
        }
    }

    /// Closes every case that can be closed: confirmations first, over all cases.
    fn decide(&mut self, now: LaneTime, step: &mut CaseStep) {
        while let Some((rule, id)) = self.index.next() {
            let Some(case) = self.cases.get(&id) else { continue };
            step.judged += 1;
            if let Some(verdict) = Resolver::RULES[rule](self, case, now) {
                self.rule(id, verdict, now.epoch, step);
            }
        }
    }

    const RULES: [Rule; index::RULES] = [Resolver::confirmed, Resolver::freed, Resolver::lapsed, Resolver::is_over];

    /// Asserts that no unmarked case could have been decided.
    #[cfg(test)]
    fn assert_decided(&self, now: LaneTime) {
        let decided =
            self.cases.values().find(|case| Resolver::RULES.iter().any(|rule| rule(self, case, now).is_some()));
        assert!(decided.is_none(), "a case can be decided and was not marked: {decided:?}");
    }

    fn thresholds(&self, committee: HomeEpoch) -> Option<Thresholds> {
        self.epochs.get(&committee).map(|facts| facts.thresholds)
    }

    /// Open cases about inputs of a payment.
    fn cases_of(&self, body: &PaymentBody) -> impl Iterator<Item = &Case> {
        body.input_ids().filter_map(|input| self.cases.get(&input))
    }

    fn confirmed(&self, case: &Case, _: LaneTime) -> Option<Verdict> {
        let facts = &self.epochs[&case.contested.home];
        if let Some(Taken::By(digest)) = facts.taken.get(&case.contested.output.id) {
            return Some(Verdict::Confirmed(*digest, ConfirmedBy::Certificate));
        }
        let alive = case.bodies.values().filter(|body| self.check(body).is_ok());
        alive.filter_map(|body| Some(Verdict::Confirmed(body.digest, self.ground(case, body)?))).next()
    }

    /// Why a payment that a validator voted for stands, if it does.
    fn ground(&self, case: &Case, body: &PaymentBody) -> Option<ConfirmedBy> {
        let facts = &self.epochs[&case.contested.home];
        if facts.certified.contains(&body.digest) {
            return Some(ConfirmedBy::Certificate);
        }
        if self.voters(body, |vote| *vote == body.digest).len() >= facts.thresholds.certificate {
            return Some(ConfirmedBy::Votes);
        }
        let spent = |id: OutputId| matches!(self.taken(body.payment.into, &id), Some(Taken::By(_)));
        body.output_ids().any(spent).then_some(ConfirmedBy::Child)
    }

    /// The validators whose vote in a case about any input of `body` satisfies `kind`.
    fn voters(&self, body: &PaymentBody, kind: impl Fn(&Digest) -> bool) -> BTreeSet<u8> {
        let votes = self.cases_of(body).flat_map(|case| &case.votes);
        votes.filter(|(_, vote)| kind(vote)).map(|(validator, _)| *validator).collect()
    }

    /// Candidates that may still stand.
    fn alive<'a>(&'a self, case: &'a Case) -> Option<impl Iterator<Item = &'a Arc<PaymentBody>>> {
        let bodies = case.candidates.as_ref()?.iter().map(|digest| &case.bodies[digest]);
        Some(bodies.filter(|body| self.check(body).is_ok()))
    }

    fn freed(&self, case: &Case, _: LaneTime) -> Option<Verdict> {
        let EpochFacts { thresholds, absent, .. } = &self.epochs[&case.contested.home];
        let against = |body: &PaymentBody| self.voters(body, |vote| *vote != body.digest).len() + absent;
        let bound = |body: &Arc<PaymentBody>| against(body) >= thresholds.free;
        self.alive(case)?.all(bound).then_some(Verdict::Freed)
    }

    fn lapsed(&self, case: &Case, now: LaneTime) -> Option<Verdict> {
        let home = case.contested.home;
        let next = self.alive(case)?.any(|body| body.payment.into != home);
        let empty = |after: u64| {
            let Some(EpochFacts { thresholds, absent, .. }) = self.epochs.get(&(home + after)) else { return false };
            case.views[after as usize].len() + absent >= thresholds.lapse
        };
        (case.opened.may_lapse(now.epoch) && empty(0) && (!next || empty(1))).then_some(Verdict::Lapsed)
    }

    fn is_over(&self, case: &Case, now: LaneTime) -> Option<Verdict> {
        case.opened.is_expired(now, self.heights_max).then_some(Verdict::Expired)
    }

    /// The committees that a closed case concerned sign a while longer.
    fn prolong(&mut self, home: HomeEpoch, end: CaseEnd, now: HomeEpoch) {
        for committee in home..=home.saturating_add(1) {
            let last = self.life(committee).map(|life| life.after(end, now));
            if let Some((facts, last)) = self.epochs.get_mut(&committee).zip(last) {
                facts.last = last;
            }
        }
    }

    fn rule(&mut self, output: OutputId, verdict: Verdict, now: HomeEpoch, step: &mut CaseStep) {
        let case = self.cases.remove(&output).expect("it was decided");
        self.index.close(&output, &case, self.heights_max);
        step.changed.insert(output);
        let home = case.contested.home;
        self.prolong(home, verdict.end(), now);
        let taken = match verdict {
            Verdict::Confirmed(..) => None,
            Verdict::Freed => Some(Taken::Freed),
            Verdict::Lapsed => Some(Taken::Lapsed),
            Verdict::Expired => {
                step.used.insert(output, case.votes.len() + case.views.iter().map(BTreeSet::len).sum::<usize>());
                self.note_expired(home, output, step);
                None
            }
        };
        if let Verdict::Confirmed(digest, _) = verdict
            && let Some(body) = case.bodies.get(&digest)
        {
            step.events.push(CaseEvent::Proven(body.clone()));
            self.certify(body, step);
        }
        if let Some(taken) = taken {
            let before = self.taken(home, &output);
            assert!(before.is_none(), "an output that a payment spends is not credited: {before:?}");
            self.note_taken(home, output, taken, step);
        }
        if verdict == Verdict::Lapsed {
            for body in case.candidates.iter().flatten().map(|digest| &case.bodies[digest]) {
                body.output_ids().for_each(|id| self.note_taken(body.payment.into, id, Taken::Void, step));
            }
        }
        step.events.push(CaseEvent::Ruled(case.contested, verdict));
    }

    fn note_expired(&mut self, home: HomeEpoch, output: OutputId, step: &mut CaseStep) {
        if self.epochs.get_mut(&home).is_some_and(|facts| facts.expired.insert(output)) {
            step.entries.push(BridgeEntry::expired(home, &output));
        }
    }

    fn note_taken(&mut self, home: HomeEpoch, output: OutputId, taken: Taken, step: &mut CaseStep) {
        let Some(facts) = self.epochs.get_mut(&home) else { return };
        if let std::collections::btree_map::Entry::Vacant(vacant) = facts.taken.entry(output) {
            vacant.insert(taken);
            self.index.mark_output(&output);
            step.entries.push(BridgeEntry::taken(home, &output, taken));
        }
    }
}

#[cfg(test)]
mod model;
