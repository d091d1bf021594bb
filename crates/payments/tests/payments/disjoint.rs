//! Protocols R and H with real validators, real signatures and the real bridge: random schedules with f Byzantine
//! validators in each of six disjoint committees.

use kernel::RemainderDice;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lane::ledger::*;
use crate::lane::*;
use payments::*;
use primitives::{Address, Digest};

/// A known payment, and its progress.
struct Known {
    home: HomeEpoch,
    signed: SignedPayment,
    body: Arc<PaymentBody>,
    confirmations: AnswerCollector,
    acknowledgements: AnswerCollector,
    certificate: Option<PaymentCertificate>,
    settled: bool,
}

/// A validator, or `None` for a Byzantine one, and how far it has read the ledger.
struct Member {
    node: Option<Node>,
    read: usize,
    /// Barred candidates of a case, until the view is made.
    parts: BTreeMap<OutputId, Option<Box<CertifiedPayment>>>,
}

struct World {
    committees: Vec<LaneCommittee>,
    members: Vec<Vec<Member>>,
    bridge: Bridge,
    facts: Vec<BridgeEvent>,
    pending: Vec<BridgeOperation>,
    known: BTreeMap<Digest, Known>,
    /// Outputs of the cheating owner, by id, with their home.
    holdings: BTreeMap<OutputId, (HomeEpoch, Holding)>,
    contested: BTreeMap<OutputId, ContestedOutput>,
    stands: BTreeSet<Digest>,
    credited: BTreeMap<OutputId, Verdict>,
    roots: RootCache,
}

const CHEAT: u64 = 50;
const EPOCHS: usize = 6;

impl World {
    fn new(sizes: [usize; EPOCHS]) -> World {
        let coins: Vec<Holding> = (0..4).map(|index| genesis(index, CHEAT, 1_000)).collect();
        let committees: Vec<LaneCommittee> =
            (0..).zip(sizes).map(|(epoch, n)| committee_of(NETWORK, epoch, n, 1)).collect();
        let member = |committee: &LaneCommittee, validator: usize| {
            let byzantine = validator < committee.quorums().faulty;
            let previous = committee.epoch().checked_sub(1).map(|epoch| committees[epoch as usize].clone());
            let settings = LaneSettings { previous, now: 0, ..settings(committee, validator, 2) };
            let backed = if committee.epoch() == 0 { &coins[..] } else { &[] };
            let node = (!byzantine).then(|| Node::new(settings, backed));
            Member { node, read: 0, parts: BTreeMap::new() }
        };
        let members = committees
            .iter()
            .map(|committee| (0..committee.quorums().validators).map(|v| member(committee, v)).collect())
            .collect();
        World {
            members,
            bridge: bridge(&coins, &sizes),
            committees,
            facts: Vec::new(),
            pending: Vec::new(),
            known: BTreeMap::new(),
            holdings: coins.into_iter().map(|coin| (coin.id, (0, coin))).collect(),
            contested: BTreeMap::new(),
            stands: BTreeSet::new(),
            credited: BTreeMap::new(),
            roots: RootCache::new(256),
        }
    }

    /// The cheating owner signs a payment of outputs of one home.
    fn sign(&mut self, random: &mut RemainderDice) {
        let homes: BTreeSet<HomeEpoch> = self.holdings.values().map(|(home, _)| *home).collect();
        let home = *homes.iter().nth(random.index(homes.len())).expect("there is one");
        let mut coins: Vec<Holding> =
            self.holdings.values().filter(|(of, _)| *of == home).map(|(_, coin)| coin.clone()).collect();
        while coins.len() > 1 + random.index(2) {
            coins.swap_remove(random.index(coins.len()));
        }
        let into = home + random.index(2) as u64;
        let amount: u64 = coins.iter().map(|coin| coin.output.amount).sum();
        let account = Recipient::Account(Address([random.index(3) as u8; 20]));
        let to = if random.index(3) == 0 { account } else { Recipient::Key(owner(CHEAT).public()) };
        let outputs = vec![Output { to, asset: ASSET, amount }];
        if let Ok(signed) = build_payment(&rules(), &owner(CHEAT), home, into, coins, outputs) {
            self.add(signed);
        }
    }

    fn add(&mut self, signed: SignedPayment) {
        let body = body(&signed);
        let collector = |kind| AnswerCollector::new(kind, body.payment.summary());
        let known = Known {
            home: body.payment.home,
            confirmations: collector(StatementKind::Confirmation),
            acknowledgements: collector(StatementKind::Acknowledgement),
            certificate: None,
            settled: false,
            body,
            signed,
        };
        self.known.entry(known.body.digest).or_insert(known);
    }

    fn collect(&mut self, kind: StatementKind, digest: &Digest, answer: LaneAnswer) {
        let Some(known) = self.known.get_mut(digest) else { return };
        let committee = &self.committees[known.home as usize];
        match kind {
            StatementKind::Confirmation => {
                let done = known.confirmations.add(committee, &mut self.roots, answer).expect("a correct answer");
                let Some(certificate) = done.filter(|_| known.certificate.is_none()) else { return };
                known.certificate = Some(certificate.clone());
                let view = PaymentView::parse(&known.signed.payment).unwrap();
                let receipt = FastReceipt::of(&view, 0, certificate).expect("it has an output");
                if let Recipient::Key(_) = receipt.output.to {
                    let holding = receipt.verify(committee, &mut self.roots).expect("certified");
                    self.holdings.insert(holding.id, (known.body.payment.into, holding));
                }
            }
            _ => {
                let done = known.acknowledgements.add(committee, &mut self.roots, answer).expect("a correct answer");
                known.settled |= done.is_some();
            }
        }
    }

    /// The signatures of a committee's Byzantine members on a payment.
    fn byzantine_signatures(&mut self, kind: StatementKind, digest: &Digest) {
        let known = &self.known[digest];
        let committee = self.committees[known.home as usize].clone();
        let payer = known.body.payment.owner;
        for validator in 0..committee.quorums().faulty {
            let answer = forge(&committee, validator, kind, &payer, *digest);
            self.collect(kind, digest, answer);
        }
    }

    fn perform(&mut self, epoch: usize, validator: usize, effects: Vec<LaneEffect>) {
        for effect in effects {
            match effect {
                LaneEffect::Answer { kind, digest, answer, .. } => self.collect(kind, &digest, answer),
                LaneEffect::Vote { case, payment, signature, answer } => {
                    let body = Arc::new(PaymentBody::parse(&payment).unwrap());
                    // Anyone can read the ledger: votes are signatures like others.
                    self.collect(StatementKind::Confirmation, &body.digest, answer.clone());
                    self.pending.push(BridgeOperation::Vote { case, payment, signature, answer });
                }
                LaneEffect::Barred { case, paid } => {
                    let mut parts = ViewParts::new(1);
                    let paid = parts.add(0, paid).expect("one shard").cloned().map(Box::new);
                    self.members[epoch][validator].parts.insert(case, paid);
                }
                LaneEffect::View { case, paid, answer } => {
                    let (committee, owner) = (epoch as u64, owner(CHEAT).public());
                    self.pending.push(BridgeOperation::View { case, committee, owner, paid, answer });
                }
                LaneEffect::Mute(reason) => panic!("{reason}"),
                LaneEffect::Destroy => {
                    let home = epoch as u64;
                    assert!(self.bridge.clock().epoch() > home + 2, "keys are destroyed too early");
                }
                _ => {}
            }
        }
    }

    fn step(&mut self, epoch: usize, validator: usize, act: impl FnOnce(&mut Node) -> Vec<LaneEffect>) {
        if let Some(node) = &mut self.members[epoch][validator].node {
            let effects = act(node);
            self.perform(epoch, validator, effects);
        }
    }

    /// A validator learns the next certified fact.
    fn read(&mut self, epoch: usize, validator: usize) {
        let member = &mut self.members[epoch][validator];
        let Some(fact) = self.facts.get(member.read).cloned() else { return };
        member.read += 1;
        let near = |home: HomeEpoch| (epoch as u64).checked_sub(home).is_some_and(|after| after <= 1);
        let is_near = |case: &OutputId| self.contested.get(case).is_some_and(|contested| near(contested.home));
        match fact {
            BridgeEvent::Epoch(now) => self.step(epoch, validator, |node| node.step(LaneInput::Epoch(now))),
            BridgeEvent::Halted(on) => self.step(epoch, validator, |node| node.step(LaneInput::Halted(on))),
            BridgeEvent::Case(CaseEvent::Opened(contested)) if near(contested.home) => {
                self.step(epoch, validator, |node| node.step(LaneInput::CaseOpened(contested)));
            }
            BridgeEvent::Case(CaseEvent::Fixed(case, bodies)) if is_near(&case) => {
                self.step(epoch, validator, |node| node.step(LaneInput::CandidatesFixed(case, bodies.clone())));
            }
            BridgeEvent::Case(CaseEvent::Ruled(contested, verdict)) if near(contested.home) => {
                let case = contested.output.id;
                self.step(epoch, validator, |node| node.step(LaneInput::CaseRuled(case, verdict)));
            }
            _ => {}
        }
    }

    fn tick(&mut self, epoch: usize, validator: usize) {
        self.step(epoch, validator, |node| node.step(LaneInput::Tick));
        self.step(epoch, validator, Node::sync);
        let parts = std::mem::take(&mut self.members[epoch][validator].parts);
        for (case, paid) in parts {
            self.step(epoch, validator, |node| node.step(LaneInput::AllBarred(case, paid)));
            self.step(epoch, validator, |node| node.step(LaneInput::Tick));
            self.step(epoch, validator, Node::sync);
        }
    }

    /// A block with some of the pending operations, verified as at intake.
    fn block(&mut self, random: &mut RemainderDice, all: bool) {
        let mut facts = Vec::new();
        for operation in std::mem::take(&mut self.pending) {
            if !all && random.index(3) == 0 {
                self.pending.push(operation);
                continue;
            }
            let operation = BridgeOperation::parse(&operation.encode()).expect("it has a layout");
            let committee = |epoch: HomeEpoch| self.committees.get(epoch as usize);
            let budget = &mut CheckBudget(u32::MAX);
            let fact = operation
                .verify(&NETWORK, Address([1; 20]), committee, &[], &mut self.roots, budget)
                .expect("no signature is wrong");
            let copies = 1 + random.index(2);
            facts.extend(std::iter::repeat_n(fact, copies));
        }
        let events = block(&mut self.bridge, facts);
        for event in &events {
            match event {
                BridgeEvent::Case(CaseEvent::Alarm(digest)) => panic!("alarm about {digest}"),
                BridgeEvent::Uncovered(asset) => panic!("escrow of {asset} does not cover what is claimed"),
                BridgeEvent::Case(CaseEvent::Stands(body)) => drop(self.stands.insert(body.digest)),
                BridgeEvent::Case(CaseEvent::Opened(contested)) => {
                    self.contested.insert(contested.output.id, *contested);
                    self.add_exit(*contested);
                }
                BridgeEvent::Case(CaseEvent::Ruled(contested, verdict @ (Verdict::Freed | Verdict::Lapsed))) => {
                    self.credited.insert(contested.output.id, *verdict);
                }
                BridgeEvent::Case(CaseEvent::Fixed(case, bodies)) => self.byzantine_views(random, case, bodies),
                _ => {}
            }
        }
        self.facts.extend(events);
    }

    /// The exit is a payment like others; the owner signs it when it opens a case.
    fn add_exit(&mut self, contested: ContestedOutput) {
        let exit = exit_of(&contested);
        let signature = owner(CHEAT).sign(&owner_message(&NETWORK, contested.home, &exit.digest));
        let payment = exit.payment.encode();
        let proof = self.holdings[&contested.output.id].1.proof.clone();
        let request = spend_request(&payment, &signature, &[proof]);
        self.add(SignedPayment { digest: exit.digest, signature, request, payment });
        let spenders: Vec<Digest> = self
            .known
            .values()
            .filter(|known| known.body.input_ids().any(|id| id == contested.output.id))
            .map(|known| known.body.digest)
            .collect();
        let committee = self.committees[contested.home as usize].clone();
        for validator in 0..committee.quorums().faulty {
            let digest = spenders[validator * 7 % spenders.len()];
            let signed = &self.known[&digest].signed;
            let (payment, signature) = (signed.payment.clone(), Some(signed.signature));
            let answer = forge(&committee, validator, StatementKind::Confirmation, &contested.owner, digest);
            self.pending.push(BridgeOperation::Vote { case: contested.output.id, payment, signature, answer });
        }
    }

    fn byzantine_views(&mut self, random: &mut RemainderDice, case: &OutputId, bodies: &[Arc<PaymentBody>]) {
        let contested = self.contested[case];
        for epoch in [contested.home, contested.home + 1] {
            let Some(committee) = self.committees.get(epoch as usize).cloned() else { continue };
            for validator in 0..committee.quorums().faulty {
                let certified = |body: &Arc<PaymentBody>| {
                    let certificate = self.known.get(&body.digest)?.certificate.clone()?;
                    Some(Box::new(CertifiedPayment { summary: body.payment.summary(), certificate }))
                };
                let paid = bodies.iter().find_map(certified).filter(|_| random.index(2) == 0);
                let digest = view_digest(case, paid.as_ref().map(|paid| paid.digest(&NETWORK)).as_ref());
                let answer = forge(&committee, validator, StatementKind::View, &contested.owner, digest);
                let (case, owner) = (*case, contested.owner);
                self.pending.push(BridgeOperation::View { case, committee: epoch, owner, paid, answer });
            }
        }
    }

    fn contest(&mut self, random: &mut RemainderDice) {
        let (id, (home, coin)) = self.holdings.iter().nth(random.index(self.holdings.len())).expect("there is one");
        let contested = contested(coin, *home, CHEAT);
        let (proof, exit) = (coin.proof.clone(), exit_of(&contested));
        assert_eq!(*id, contested.output.id);
        let signature = owner(CHEAT).sign(&owner_message(&NETWORK, *home, &exit.digest));
        self.pending
            .push(BridgeOperation::Resolve { bid: 3, outputs: vec![ContestClaim { contested, signature, proof }] });
    }

    fn post(&mut self, digest: &Digest) {
        let known = &self.known[digest];
        if let Some(certificate) = known.certificate.clone() {
            self.pending.push(BridgeOperation::Redeem { payment: known.signed.payment.clone(), certificate });
        }
    }

    fn deliver(&mut self, random: &mut RemainderDice, digest: &Digest, settle: bool) {
        let known = &self.known[digest];
        let (home, mut request) = (known.home as usize, known.signed.request.clone());
        if settle {
            let Some(certificate) = known.certificate.as_ref() else { return };
            request = settle_request(&known.body.payment.summary(), certificate);
        }
        if home < EPOCHS {
            let validator = random.index(self.members[home].len());
            self.step(home, validator, |node| node.request(&request));
        }
    }

    /// Checks that each output is honoured at most once.
    fn check(&self) {
        let mut honoured: BTreeMap<OutputId, BTreeSet<Digest>> = BTreeMap::new();
        let mut creator: BTreeMap<OutputId, Digest> = BTreeMap::new();
        for known in self.known.values() {
            creator.extend(known.body.output_ids().map(|id| (id, known.body.digest)));
        }
        let mut note = |digest: &Digest| {
            for input in self.known[digest].body.input_ids() {
                honoured.entry(input).or_default().insert(*digest);
            }
        };
        for (digest, known) in &self.known {
            if known.settled || self.stands.contains(digest) {
                note(digest);
            }
            if known.certificate.is_some() {
                known.body.input_ids().filter_map(|id| creator.get(&id)).for_each(&mut note);
            }
        }
        for (output, by) in &honoured {
            assert!(by.len() == 1, "{output} is honoured {} times", by.len());
            let credited = self.credited.get(output);
            let digest = by.first().expect("one");
            let known = &self.known[digest];
            let (stands, exit) = (self.stands.contains(digest), known.body.payment.is_exit());
            assert!(
                // A verdict credits the output of the exit.
                credited.is_none() || exit && !stands,
                "{output} was credited ({credited:?}) and {digest} is honoured: settled {}, stands {stands}",
                known.settled
            );
        }
    }
}

fn run(sizes: [usize; EPOCHS], seed: u64) -> BTreeMap<String, usize> {
    let mut random = RemainderDice::new(seed);
    let mut world = World::new(sizes);
    for height in 0..4 * HEIGHTS {
        for _ in 0..14 * sizes[0] {
            let epoch = random.index(EPOCHS);
            let validator = random.index(sizes[epoch]);
            let digests: Vec<Digest> = world.known.keys().copied().collect();
            let known = (!digests.is_empty()).then(|| digests[random.index(digests.len().max(1))]);
            match (random.index(24), known) {
                (0, _) => world.sign(&mut random),
                (1, Some(digest)) if random.index(4) == 0 => world.post(&digest),
                (2, _) if random.index(8) == 0 => world.contest(&mut random),
                (3, Some(digest)) => world.byzantine_signatures(StatementKind::Confirmation, &digest),
                (4, Some(digest)) if world.known[&digest].certificate.is_some() => {
                    world.byzantine_signatures(StatementKind::Acknowledgement, &digest);
                }
                (5..12, Some(digest)) => world.deliver(&mut random, &digest, false),
                (12..14, Some(digest)) => world.deliver(&mut random, &digest, true),
                (14..20, _) => world.read(epoch, validator),
                _ => world.tick(epoch, validator),
            }
        }
        world.block(&mut random, false);
        if height % 4 == 0 {
            world.check();
        }
    }
    // Every validator reads everything, all votes and views are posted, time passes.
    for _ in 0..6 * HEIGHTS {
        for (epoch, size) in sizes.into_iter().enumerate() {
            for validator in 0..size {
                while world.members[epoch][validator].node.is_some()
                    && world.members[epoch][validator].read < world.facts.len()
                {
                    world.read(epoch, validator);
                }
                world.tick(epoch, validator);
            }
        }
        let digests: Vec<Digest> = world.known.keys().copied().collect();
        digests.iter().for_each(|digest| world.post(digest));
        world.block(&mut random, true);
    }
    world.check();
    let last = EPOCHS as u64 - 1;
    for (case, contested) in &world.contested {
        let ruled = |event: &BridgeEvent| verdicts(std::slice::from_ref(event)).iter().any(|(id, _)| id == case);
        assert!(contested.home >= last || world.facts.iter().any(ruled), "the case about {case} never ends");
    }
    let mut counts = BTreeMap::new();
    for (_, verdict) in verdicts(&world.facts) {
        let name = match verdict {
            Verdict::Confirmed(_, by) => format!("{by:?}"),
            other => format!("{other:?}"),
        };
        *counts.entry(name).or_insert(0) += 1;
    }
    *counts.entry("certified".into()).or_insert(0) += world.known.values().filter(|k| k.certificate.is_some()).count();
    *counts.entry("settled".into()).or_insert(0) += world.known.values().filter(|k| k.settled).count();
    counts
}

#[test]
fn money_exists_once_with_f_byzantine_validators_and_disjoint_committees() {
    let mut total: BTreeMap<String, usize> = BTreeMap::new();
    for (sizes, seeds) in [([5, 7, 5, 7, 5, 7], 0..10), ([7, 5, 10, 5, 7, 5], 10..16), ([10, 7, 10, 7, 10, 7], 20..24)]
    {
        for seed in seeds {
            for (name, count) in run(sizes, seed) {
                *total.entry(name).or_default() += count;
            }
        }
    }
    println!("{total:?}");
    for name in ["Votes", "Certificate", "Freed", "certified", "settled"] {
        assert!(total.get(name).is_some_and(|count| *count > 0), "no schedule leads to {name}: {total:?}");
    }
}
