//! An exhaustive model of protocol R, and deliberately broken machines.
//!
//! # The model
//!
//! n = 4 and f = 1: three correct validators and a Byzantine one in the home committee. Where a payment creates outputs
//! in the next epoch, also a disjoint committee of the same kind. The ledger is the real [`Resolver`]; each step of the
//! ledger is a block with one fact, or with two votes. The owner is Byzantine and signs everything. A state consists of
//! what each correct validator has signed, accepted, barred, voted and viewed, and the state of the ledger. From each
//! state every enabled step is taken:
//!
//! * a correct validator signs a payment whose inputs it has not locked. It votes in an open case, and locks the output
//!   to the exit if it is not locked. It bars the candidates and posts a view. It accepts a certified payment that it
//!   has not barred, or that stands. To accept is to acknowledge a payment or to sign a payment of its output. The
//!   model does not distinguish these, so it checks for the union of both what must hold for each.
//! * the Byzantine validator's signature on everything exists from the start; it votes for anything, once, and posts
//!   an empty view. A view that names a payment is a certificate, which anyone may post.
//! * anyone opens a case, posts a certificate that the signatures allow, or one of a payment that spends an output.
//! * epochs end, at any time.
//!
//! Delays are steps that are not taken yet. Two pairs of events are one step without loss. A validator locks and its
//! vote is committed (before the commit, a locked validator behaves like one that receives no messages). It bars and
//! its view is committed. Symmetry: correct validators are sorted by what they did, because the ledger's state names
//! them only in its votes and views. Of correct validators in the same state, the first takes steps. States are kept in
//! a set by their canonical bytes; the search ends when there is no new one.
//!
//! # What is checked in each state
//!
//! *Money*: of each output, at most one of these is true, and once: a payment of it is settled or spent (accepted by
//! enough validators to form a quorum with the Byzantine one) or stands on the ledger. It was credited. *Freed*: no
//! payment of a freed output can be certified unless the verdict on another input voids it. *No alarm*.
//!
//! # Bounds
//!
//! At most two contested outputs, two payments of them and their exits, one more level of payments, and one passing of
//! epochs (two in `larger_models`). Committees have four members, one of them Byzantine.
//!
//! | model | states |
//! |---|---|
//! | two payments of one output, also with two votes in one block | 6,881 |
//! | X = {a, b} and Z = {b}, a contested | 7,990 |
//! | X = {a, b}, both contested | 75,182 |
//! | one payment into the next epoch, two disjoint committees | 18,409 |
//! | `larger_models`: X = {a, b} and Z = {b}, both contested | 583,697 |
//! | `larger_models`: X = {a, b}, both contested, two passings of epochs | 88,963 |
//! | `larger_models`: one payment into this epoch and one into the next | 75,471 |
//!
//! # Deliberately broken machines
//!
//! The search finds a loss in each of these rules. *Views*: without barring, in the home committee or in the next one;
//! empty ones; of only the home committee. *Votes*: without a lock; ignoring a signature. *Numbers*: candidates fixed
//! by 2 votes; freeing with 2 votes; lapsing with 2 empty views, or by time alone. *Redemptions*: forgotten; of void
//! payments. So each rule is needed.

use std::collections::HashSet;
use std::rc::Rc;

use primitives::AssetId;

use super::*;
use crate::{Output, Recipient};

const NETWORK: Digest = Digest([5; 32]);
const CORRECT: usize = 3;
const BYZANTINE: u8 = 3;
const QUORUM: usize = 3;

fn owner() -> PublicKey {
    PublicKey([7; 32])
}

fn spent(output: usize) -> SpentOutput {
    SpentOutput { id: OutputId([output as u8 + 1; 32]), asset: AssetId(0), amount: 10 }
}

fn payment(number: u8, inputs: Vec<SpentOutput>, home: HomeEpoch, into: HomeEpoch) -> Arc<PaymentBody> {
    let amount = inputs.iter().map(|input| input.amount).sum();
    let outputs = vec![Output { to: Recipient::Key(PublicKey([number; 32])), asset: AssetId(0), amount }];
    Arc::new(PaymentBody::new(Payment { network: NETWORK, home, into, owner: owner(), inputs, outputs }))
}

/// The ways in which a machine is deliberately broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    Nothing,
    /// Validators post views and bar nothing.
    SkipBarring,
    /// Members of the next committee post views and bar nothing.
    SkipBarringNext,
    /// Views do not report accepted payments.
    EmptyViews,
    /// Validators vote for the exit and do not lock.
    SkipLock,
    /// Validators vote for the exit although they signed a payment.
    ForgetSignature,
    /// This many votes fix the candidates.
    FixWith(usize),
    /// This many votes for something else free.
    FreeWith(usize),
    /// This many empty views let lapse.
    LapseWith(usize),
    /// The next committee posts no views.
    HomeViewsAlone,
    /// The ledger forgets certificates that it saw before a case.
    ForgetRedemptions,
    /// The ledger redeems void payments.
    RedeemVoid,
    /// An output lapses although its epochs are not over, and its payment is not void.
    RefundByTime,
}

/// Payments by the outputs that they spend and the epoch that they pay into.
type Payments<'a> = &'a [(&'a [usize], HomeEpoch)];

/// The space of a search.
#[derive(Clone)]
struct Scenario {
    outputs: Vec<ContestedOutput>,
    exits: Vec<Arc<PaymentBody>>,
    payments: Vec<Arc<PaymentBody>>,
    children: Vec<Arc<PaymentBody>>,
    /// Outputs about which a case may be opened.
    contested: Vec<usize>,
    passings: u64,
    pairs_of_votes: bool,
    broken: Break,
}

impl Scenario {
    fn new(payments: Payments<'_>, contested: &[usize], passings: u64, broken: Break) -> Scenario {
        let outputs: Vec<ContestedOutput> =
            (0..2).map(|output| ContestedOutput { output: spent(output), home: 0, owner: owner() }).collect();
        let exits = outputs.iter().map(|output| Arc::new(PaymentBody::new(output.exit(NETWORK)))).collect();
        let payments: Vec<Arc<PaymentBody>> = (100..)
            .zip(payments)
            .map(|(number, (inputs, into))| payment(number, inputs.iter().copied().map(spent).collect(), 0, *into))
            .collect();
        let child = |body: &Arc<PaymentBody>| {
            let id = body.output_ids().next().expect("it has one output");
            let input = SpentOutput { id, asset: AssetId(0), amount: body.payment.outputs[0].amount };
            payment(200, vec![input], body.payment.into, body.payment.into)
        };
        let children = payments.iter().map(child).collect();
        let contested = contested.to_vec();
        Scenario { outputs, exits, payments, children, contested, passings, pairs_of_votes: false, broken }
    }

    fn crosses(&self) -> bool {
        self.payments.iter().any(|body| body.payment.into == 1)
    }

    fn spends(&self, payment: usize, output: usize) -> bool {
        self.payments[payment].input_ids().any(|id| id == self.outputs[output].output.id)
    }

    fn start(&self) -> State {
        let mut ledger = Resolver::new(NETWORK, u64::MAX);
        [0, 1].into_iter().for_each(|epoch| ledger.register(epoch, Quorums::new(4)));
        let home = &mut ledger.epochs.get_mut(&0).expect("registered").thresholds;
        match self.broken {
            Break::FixWith(votes) => home.fix = votes,
            Break::FreeWith(votes) => home.free = votes,
            Break::LapseWith(views) => home.lapse = views,
            Break::RefundByTime => home.lapse = 0,
            _ => {}
        }
        if self.broken == Break::HomeViewsAlone {
            ledger.epochs.get_mut(&1).expect("registered").thresholds.lapse = 0;
        }
        State {
            home: Default::default(),
            next: Default::default(),
            ledger: Rc::new(ledger),
            now: 1,
            paid_void: 0,
            alarm: false,
        }
    }
}

const EXIT: u8 = 0xff;

/// A correct validator of the home committee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Home {
    /// What each output is locked to: 0 for nothing, a payment from 1 on, or the exit.
    locks: [u8; 2],
    /// Accepted payments, one bit each.
    accepted: u8,
    barred: u8,
}

/// A correct validator of the next committee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Next {
    accepted: u8,
    barred: u8,
}

#[derive(Clone, Debug)]
struct State {
    home: [Home; CORRECT],
    next: [Next; CORRECT],
    ledger: Rc<Resolver>,
    now: HomeEpoch,
    paid_void: u8,
    alarm: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Sign { validator: usize, payment: usize },
    Accept { validator: usize, payment: usize },
    AcceptNext { validator: usize, payment: usize },
    Open(usize),
    Vote { validator: usize, output: usize },
    VoteTogether { validators: [usize; 2], output: usize },
    ByzantineVote { output: usize, payment: Option<usize> },
    View { validator: usize, output: usize },
    ViewNext { validator: usize, output: usize },
    ByzantineView { committee: HomeEpoch, output: usize },
    Post(usize),
    PostExit(usize),
    PostChild(usize),
    Pass,
}

impl State {
    fn case(&self, scenario: &Scenario, output: usize) -> Option<&Case> {
        self.ledger.cases.get(&scenario.outputs[output].output.id)
    }

    fn certified(&self, scenario: &Scenario, payment: usize) -> bool {
        let inputs: Vec<usize> = (0..2).filter(|output| scenario.spends(payment, *output)).collect();
        let signed = |home: &&Home| inputs.iter().all(|input| home.locks[*input] == payment as u8 + 1);
        self.home.iter().filter(signed).count() + 1 >= QUORUM
    }

    fn exit_certified(&self, output: usize) -> bool {
        self.home.iter().filter(|home| home.locks[output] == EXIT).count() + 1 >= QUORUM
    }

    /// Whether a quorum of either committee accepted it.
    fn accepted_by(&self, payment: usize) -> [bool; 2] {
        let by = |mask: u8| usize::from(mask >> payment & 1);
        let home: usize = self.home.iter().map(|home| by(home.accepted)).sum();
        let next: usize = self.next.iter().map(|next| by(next.accepted)).sum();
        [home + 1 >= QUORUM, next + 1 >= QUORUM]
    }

    fn stands(&self, body: &PaymentBody) -> bool {
        let by = Some(Taken::By(body.digest));
        body.input_ids().any(|id| self.ledger.taken(body.payment.home, &id) == by)
    }

    fn credited(&self, scenario: &Scenario, output: usize) -> Option<Taken> {
        let taken = self.ledger.taken(0, &scenario.outputs[output].output.id);
        taken.filter(|taken| matches!(taken, Taken::Freed | Taken::Lapsed))
    }

    /// The first fault in this state.
    fn fault(&self, scenario: &Scenario) -> Option<String> {
        if self.alarm {
            return Some("alarm with f Byzantine validators".into());
        }
        for output in 0..2 {
            let honoured = |payment: &usize| {
                scenario.spends(*payment, output)
                    && (self.accepted_by(*payment) != [false; 2]
                        || self.stands(&scenario.payments[*payment])
                        || self.paid_void >> payment & 1 == 1)
            };
            let mut claims = (0..scenario.payments.len()).filter(honoured).count();
            claims += usize::from(self.stands(&scenario.exits[output]));
            let credited = self.credited(scenario, output);
            claims += usize::from(credited.is_some());
            if claims > 1 {
                return Some(format!("output {output} has {claims} claims"));
            }
            let lapsed = |output: usize| self.credited(scenario, output) == Some(Taken::Lapsed);
            let void = |payment| (0..2).any(|input| scenario.spends(payment, input) && lapsed(input));
            let certified =
                |payment| scenario.spends(payment, output) && self.certified(scenario, payment) && !void(payment);
            if credited == Some(Taken::Freed) && (0..scenario.payments.len()).any(certified) {
                return Some(format!("output {output} was freed, and a payment of it is certified"));
            }
        }
        None
    }

    fn apply(&mut self, scenario: &Scenario, facts: Vec<CaseFact>) {
        let ledger = Rc::make_mut(&mut self.ledger);
        let events = ledger.apply(LaneTime { epoch: self.now, height: 0 }, facts);
        self.alarm |= events.iter().any(|event| matches!(event, CaseEvent::Alarm(_)));
        if scenario.broken == Break::ForgetRedemptions {
            for facts in ledger.epochs.values_mut() {
                facts.certified.clear();
                facts.taken.retain(|_, taken| !matches!(taken, Taken::By(_)));
            }
            for event in events {
                if let CaseEvent::Stands(body) = event {
                    let paid = scenario.payments.iter().position(|of| of.digest == body.digest);
                    self.paid_void |= paid.map_or(0, |payment| 1 << payment);
                }
            }
        }
    }

    fn mask(scenario: &Scenario, digests: impl Iterator<Item = Digest>) -> u8 {
        digests
            .filter_map(|digest| scenario.payments.iter().position(|of| of.digest == digest))
            .fold(0, |m, p| m | 1 << p)
    }

    fn seen(scenario: &Scenario, candidates: &BTreeSet<Digest>, mask: u8) -> BTreeSet<Digest> {
        let in_mask = |digest: &&Digest| Self::mask(scenario, std::iter::once(**digest)) & mask != 0;
        candidates.iter().filter(in_mask).copied().collect()
    }

    /// The vote of a correct validator.
    fn vote_of(&mut self, scenario: &Scenario, validator: usize, output: usize) -> CaseFact {
        let lock = &mut self.home[validator].locks[output];
        let exit = *lock == 0 || *lock == EXIT || scenario.broken == Break::ForgetSignature;
        let payment = if exit { &scenario.exits[output] } else { &scenario.payments[usize::from(*lock) - 1] };
        if *lock == 0 && scenario.broken != Break::SkipLock {
            *lock = EXIT;
        }
        let case = scenario.outputs[output].output.id;
        CaseFact::Vote { case, validator: validator as u8, payment: payment.clone() }
    }

    fn view_of(&mut self, scenario: &Scenario, committee: HomeEpoch, validator: usize, output: usize) -> CaseFact {
        let candidates = self.case(scenario, output).and_then(|case| case.candidates.clone()).expect("fixed");
        let (accepted, barred) = match committee {
            0 => (self.home[validator].accepted, &mut self.home[validator].barred),
            _ => (self.next[validator].accepted, &mut self.next[validator].barred),
        };
        let skip = if committee == 0 { Break::SkipBarring } else { Break::SkipBarringNext };
        if scenario.broken != skip {
            *barred |= Self::mask(scenario, candidates.iter().copied());
        }
        let seen = if scenario.broken == Break::EmptyViews { 0 } else { accepted };
        // A view that names a payment is its certificate.
        match Self::seen(scenario, &candidates, seen).first() {
            Some(paid) => CaseFact::CertifiedDigest(0, *paid),
            None => CaseFact::View { case: scenario.outputs[output].output.id, committee, validator: validator as u8 },
        }
    }

    fn after(&self, scenario: &Scenario, step: Step) -> State {
        let mut state = self.clone();
        let case = |output: usize| scenario.outputs[output].output.id;
        let fact = match step {
            Step::Sign { validator, payment } => {
                for output in (0..2).filter(|output| scenario.spends(payment, *output)) {
                    state.home[validator].locks[output] = payment as u8 + 1;
                }
                return state;
            }
            Step::Accept { validator, payment } => {
                state.home[validator].accepted |= 1 << payment;
                return state;
            }
            Step::AcceptNext { validator, payment } => {
                state.next[validator].accepted |= 1 << payment;
                return state;
            }
            Step::Pass => {
                state.now += 2;
                state.apply(scenario, vec![]);
                return state;
            }
            Step::VoteTogether { validators, output } => {
                let facts = validators.map(|validator| state.vote_of(scenario, validator, output)).to_vec();
                state.apply(scenario, facts);
                return state;
            }
            Step::Open(output) => CaseFact::Open(scenario.outputs[output]),
            Step::Vote { validator, output } => state.vote_of(scenario, validator, output),
            Step::ByzantineVote { output, payment } => {
                let payment = payment.map_or(&scenario.exits[output], |payment| &scenario.payments[payment]);
                CaseFact::Vote { case: case(output), validator: BYZANTINE, payment: payment.clone() }
            }
            Step::View { validator, output } => state.view_of(scenario, 0, validator, output),
            Step::ViewNext { validator, output } => state.view_of(scenario, 1, validator, output),
            Step::ByzantineView { committee, output } => {
                CaseFact::View { case: case(output), committee, validator: BYZANTINE }
            }
            Step::Post(payment) => {
                let body = &scenario.payments[payment];
                if scenario.broken == Break::RedeemVoid || scenario.broken == Break::RefundByTime {
                    let void = state.ledger.check(body) == Err(NotHonoured::Void);
                    state.paid_void |= u8::from(void) << payment;
                }
                CaseFact::Certified(body.clone())
            }
            Step::PostExit(output) => CaseFact::Certified(scenario.exits[output].clone()),
            Step::PostChild(payment) => CaseFact::Certified(scenario.children[payment].clone()),
        };
        state.apply(scenario, vec![fact]);
        state
    }

    fn steps(&self, scenario: &Scenario) -> Vec<Step> {
        let mut steps = Vec::new();
        let first: [[bool; CORRECT]; 2] =
            [0, 1].map(|committee| std::array::from_fn(|v| self.is_first(scenario, v, committee)));
        for (payment, body) in scenario.payments.iter().enumerate() {
            let inputs: Vec<usize> = (0..2).filter(|output| scenario.spends(payment, *output)).collect();
            let (certified, stands) = (self.certified(scenario, payment), self.stands(body));
            for (validator, home) in self.home.iter().enumerate() {
                if first[0][validator] && inputs.iter().all(|input| home.locks[*input] == 0) {
                    steps.push(Step::Sign { validator, payment });
                }
                let may = home.accepted >> payment & 1 == 0 && (home.barred >> payment & 1 == 0 || stands);
                if first[0][validator] && certified && may {
                    steps.push(Step::Accept { validator, payment });
                }
                let next = &self.next[validator];
                let may = next.accepted >> payment & 1 == 0 && (next.barred >> payment & 1 == 0 || stands);
                if first[1][validator] && certified && may && body.payment.into == 1 {
                    steps.push(Step::AcceptNext { validator, payment });
                }
            }
            if certified && !stands {
                steps.push(Step::Post(payment));
            }
            let spent = self.accepted_by(payment)[body.payment.into as usize];
            if spent && !self.stands(&scenario.children[payment]) {
                steps.push(Step::PostChild(payment));
            }
        }
        for output in 0..2 {
            let taken = self.ledger.taken(0, &scenario.outputs[output].output.id);
            if self.exit_certified(output) && taken.is_none() {
                steps.push(Step::PostExit(output));
            }
        }
        for &output in &scenario.contested {
            match self.case(scenario, output) {
                None if self.may_open(scenario, output) => {
                    steps.push(Step::Open(output));
                }
                None => {}
                Some(case) => self.case_steps(scenario, output, case, &first, &mut steps),
            }
        }
        let passings = (self.now - 1) / 2;
        if passings < scenario.passings && !self.ledger.cases.is_empty() {
            steps.push(Step::Pass);
        }
        steps
    }

    fn may_open(&self, scenario: &Scenario, output: usize) -> bool {
        let id = &scenario.outputs[output].output.id;
        self.ledger.taken(0, id).is_none() && !self.ledger.is_expired(0, id)
    }

    fn case_steps(
        &self,
        scenario: &Scenario,
        output: usize,
        case: &Case,
        first: &[[bool; CORRECT]; 2],
        steps: &mut Vec<Step>,
    ) {
        let left: Vec<usize> = (0..CORRECT).filter(|validator| !case.votes.contains_key(&(*validator as u8))).collect();
        for &validator in &left {
            if first[0][validator] {
                steps.push(Step::Vote { validator, output });
            }
            for &other in left.iter().filter(|other| scenario.pairs_of_votes && **other > validator) {
                steps.push(Step::VoteTogether { validators: [validator, other], output });
            }
        }
        if !case.votes.contains_key(&BYZANTINE) {
            steps.push(Step::ByzantineVote { output, payment: None });
            let mine = (0..scenario.payments.len()).filter(|payment| scenario.spends(*payment, output));
            steps.extend(mine.map(|payment| Step::ByzantineVote { output, payment: Some(payment) }));
        }
        if case.candidates.is_none() {
            return;
        }
        for committee in 0..=u64::from(scenario.crosses()) {
            let viewed = |validator: u8| case.views[committee as usize].contains(&validator);
            let first = &first[committee as usize];
            for validator in (0..CORRECT).filter(|validator| first[*validator] && !viewed(*validator as u8)) {
                steps.push(match committee {
                    0 => Step::View { validator, output },
                    _ => Step::ViewNext { validator, output },
                });
            }
            if !viewed(BYZANTINE) {
                steps.push(Step::ByzantineView { committee, output });
            }
        }
    }

    fn place(scenario: &Scenario, digest: &Digest) -> u8 {
        let payment = scenario.payments.iter().position(|of| of.digest == *digest);
        payment.map_or(EXIT, |payment| payment as u8 + 1)
    }

    /// The votes and views of a validator that the ledger knows.
    fn statements_of(&self, scenario: &Scenario, validator: u8, committee: usize) -> [u8; 4] {
        let part = |output: usize| {
            let Some(case) = self.case(scenario, output) else { return [0; 2] };
            let vote = case.votes.get(&validator).filter(|_| committee == 0);
            let view = case.views[committee].contains(&validator);
            [vote.map_or(0, |digest| Self::place(scenario, digest)), u8::from(view)]
        };
        let [a, b] = [part(0), part(1)];
        [a[0], a[1], b[0], b[1]]
    }

    /// The whole state of a correct validator.
    fn part(&self, scenario: &Scenario, validator: usize, committee: usize) -> [u8; 8] {
        let [a, b, c, d] = self.statements_of(scenario, validator as u8, committee);
        if committee == 0 {
            let Home { locks, accepted, barred } = self.home[validator];
            return [locks[0], locks[1], accepted, barred, a, b, c, d];
        }
        let Next { accepted, barred } = self.next[validator];
        [0, 0, accepted, barred, a, b, c, d]
    }

    /// Whether no earlier validator has the same state: steps of the others lead to the same states.
    fn is_first(&self, scenario: &Scenario, validator: usize, committee: usize) -> bool {
        let mine = self.part(scenario, validator, committee);
        (0..validator).all(|other| self.part(scenario, other, committee) != mine)
    }

    /// Canonical bytes: correct validators sorted, with what the ledger knows of them.
    fn key(&self, scenario: &Scenario) -> Vec<u8> {
        let mut home: [[u8; 8]; CORRECT] = std::array::from_fn(|validator| self.part(scenario, validator, 0));
        let mut next: [[u8; 8]; CORRECT] = std::array::from_fn(|validator| self.part(scenario, validator, 1));
        home.sort_unstable();
        next.sort_unstable();
        let byzantine = [0, 1].map(|committee| self.statements_of(scenario, BYZANTINE, committee));
        let mut key = [home.concat(), next.concat(), byzantine.concat()].concat();
        key.extend([self.now as u8, self.paid_void]);
        for output in 0..2 {
            key.push(match self.ledger.taken(0, &scenario.outputs[output].output.id) {
                None => 0,
                Some(Taken::By(digest)) => Self::place(scenario, &digest),
                Some(Taken::Freed) => 0xf0,
                Some(Taken::Lapsed) => 0xf1,
                Some(Taken::Void) => 0xf2,
            });
            let case = self.case(scenario, output);
            let candidates = case.and_then(|case| case.candidates.as_ref());
            key.push(case.map_or(0, |case| case.opened.epoch as u8));
            key.push(u8::from(self.ledger.is_expired(0, &scenario.outputs[output].output.id)));
            key.push(candidates.map_or(EXIT, |candidates| Self::mask(scenario, candidates.iter().copied())));
        }
        key.extend(scenario.children.iter().map(|child| u8::from(self.stands(child))));
        key
    }
}

/// The path to a state.
#[derive(Clone)]
struct Path(Step, Option<Rc<Path>>);

fn steps_of(path: &Path) -> Vec<Step> {
    let mut steps: Vec<Step> = std::iter::successors(Some(path), |path| path.1.as_deref()).map(|path| path.0).collect();
    steps.reverse();
    steps
}

/// Visits every reachable state; returns their number, or the first fault and the path to it.
fn search(scenario: &Scenario) -> Result<usize, (String, Vec<Step>)> {
    let start = scenario.start();
    let mut visited: HashSet<Box<[u8]>> = HashSet::from([start.key(scenario).into_boxed_slice()]);
    let mut open: Vec<(State, Option<Rc<Path>>)> = vec![(start, None)];
    while let Some((state, path)) = open.pop() {
        for step in state.steps(scenario) {
            let after = state.after(scenario, step);
            if !visited.insert(after.key(scenario).into_boxed_slice()) {
                continue;
            }
            let path = Path(step, path.clone());
            if let Some(fault) = after.fault(scenario) {
                return Err((fault, steps_of(&path)));
            }
            open.push((after, Some(Rc::new(path))));
        }
    }
    Ok(visited.len())
}

fn holds(name: &str, scenario: Scenario) {
    match search(&scenario) {
        Ok(states) => println!("{name}: {states} states"),
        Err((fault, steps)) => panic!("{name}: {fault} after {steps:#?}"),
    }
}

fn fails(broken: Break, payments: Payments<'_>, contested: &[usize], passings: u64) {
    let scenario = Scenario::new(payments, contested, passings, broken);
    assert!(search(&scenario).is_err(), "{broken:?} is not detected");
}

#[test]
fn one_contested_output_and_two_payments_of_it() {
    let mut scenario = Scenario::new(&[(&[0], 0), (&[0], 0)], &[0], 1, Break::Nothing);
    scenario.pairs_of_votes = true;
    holds("two payments of one output", scenario);
}

#[test]
fn a_payment_of_two_outputs_and_one_of_each() {
    let scenario = Scenario::new(&[(&[0, 1], 0), (&[1], 0)], &[0], 1, Break::Nothing);
    holds("X = {a, b} and Z = {b}, a contested", scenario);
}

#[test]
fn both_outputs_contested() {
    let scenario = Scenario::new(&[(&[0, 1], 0)], &[0, 1], 1, Break::Nothing);
    holds("X = {a, b}, both contested", scenario);
}

#[test]
fn a_payment_into_the_next_epoch() {
    let scenario = Scenario::new(&[(&[0], 1)], &[0], 1, Break::Nothing);
    holds("a payment into the next epoch", scenario);
}

/// Takes minutes: for `cargo test --release -p payments larger_models -- --ignored`.
#[test]
#[ignore = "long: `make soak` runs it"]
fn larger_models() {
    holds(
        "X = {a, b} and Z = {b}, both contested",
        Scenario::new(&[(&[0, 1], 0), (&[1], 0)], &[0, 1], 1, Break::Nothing),
    );
    holds("X = {a, b}, both contested, twice", Scenario::new(&[(&[0, 1], 0)], &[0, 1], 2, Break::Nothing));
    holds("two payments into two epochs", Scenario::new(&[(&[0], 0), (&[0], 1)], &[0], 1, Break::Nothing));
}

/// See the documentation of `resolve.rs`: in the design only the home committee posts views.
#[test]
fn views_of_the_home_committee_alone_lose_money_across_a_boundary() {
    fails(Break::HomeViewsAlone, &[(&[0], 1)], &[0], 1);
}

#[test]
fn the_checker_notices_each_broken_machine() {
    let one: Payments<'_> = &[(&[0], 0)];
    for broken in [
        Break::SkipBarring,
        Break::EmptyViews,
        Break::SkipLock,
        Break::ForgetSignature,
        Break::FixWith(2),
        Break::FreeWith(2),
        Break::LapseWith(2),
        Break::ForgetRedemptions,
        Break::RedeemVoid,
        Break::RefundByTime,
    ] {
        fails(broken, one, &[0], 1);
    }
    fails(Break::SkipBarringNext, &[(&[0], 1)], &[0], 1);
}
