//! Byzantine validators, equivocating clients, and a network that orders, delays, replays and drops.
//!
//! The adversary sees every answer. It has two certificates of conflicting payments exactly if the answers given
//! suffice, whoever collected them; the checker searches for that.

use kernel::RemainderDice;
use std::collections::BTreeMap;

use crate::lane::*;
use payments::*;
use primitives::Digest;

struct World {
    committee: LaneCommittee,
    /// `None` is Byzantine: it signs anything well-formed, and remembers nothing.
    nodes: Vec<Option<Node>>,
    coins: Vec<Holding>,
    leaves: usize,
    payments: BTreeMap<Digest, (SignedPayment, AnswerCollector)>,
    roots: RootCache,
    certified: BTreeMap<Digest, PaymentCertificate>,
    spent: BTreeMap<OutputId, Digest>,
    /// Outputs that two certified payments spend.
    violations: usize,
}

impl World {
    fn new(n: usize, byzantine: usize, leaves: usize, coins: Vec<Holding>) -> World {
        let committee = committee(n);
        let node =
            |validator| (validator >= byzantine).then(|| Node::new(settings(&committee, validator, leaves), &coins));
        World {
            nodes: (0..n).map(node).collect(),
            committee,
            coins,
            leaves,
            payments: BTreeMap::new(),
            roots: RootCache::new(64),
            certified: BTreeMap::new(),
            spent: BTreeMap::new(),
            violations: 0,
        }
    }

    fn add(&mut self, payment: SignedPayment) -> Digest {
        let digest = payment.digest;
        let summary = PaymentView::parse(&payment.payment).unwrap().summary();
        self.payments.insert(digest, (payment, AnswerCollector::new(StatementKind::Confirmation, summary)));
        digest
    }

    fn deliver(&mut self, validator: usize, digest: &Digest) {
        let request = self.payments[digest].0.request.clone();
        let effects = match &mut self.nodes[validator] {
            Some(node) => node.request(&request),
            None => {
                let mut forgetful = Node::new(settings(&self.committee, validator, 1), &self.coins);
                let mut effects = forgetful.request(&request);
                effects.extend(forgetful.sync());
                effects
            }
        };
        self.collect(effects);
    }

    fn turn(&mut self, validator: usize, act: impl FnOnce(&mut Node) -> Vec<LaneEffect>) {
        if let Some(node) = &mut self.nodes[validator] {
            let effects = act(node);
            self.collect(effects);
        }
    }

    fn crash(&mut self, validator: usize, random: &mut RemainderDice) {
        if let Some(node) = self.nodes[validator].take() {
            let kept = random.index(node.disk.bytes.len() - node.disk.durable + 1);
            self.nodes[validator] = Some(node.crash(kept, &[0xAB; 9][..random.index(9)]));
        }
    }

    fn collect(&mut self, effects: Vec<LaneEffect>) {
        for (_, _, digest, answer) in answers(effects) {
            let (payment, collector) = self.payments.get_mut(&digest).expect("payments cannot be invented");
            let mut forged = answer.clone();
            forged.position ^= 1;
            assert!(collector.add(&self.committee, &mut self.roots, forged).is_err(), "a changed answer counts");
            let Ok(Some(certificate)) = collector.add(&self.committee, &mut self.roots, answer) else { continue };
            if self.certified.insert(digest, certificate).is_some() {
                continue;
            }
            for input in PaymentView::parse(&payment.payment).unwrap().inputs() {
                self.violations += usize::from(*self.spent.entry(input.id).or_insert(digest) != digest);
            }
        }
    }

    fn settle_disks(&mut self) {
        for validator in 0..self.nodes.len() {
            self.turn(validator, |node| node.step(LaneInput::Tick));
            self.turn(validator, Node::sync);
        }
    }

    /// A payment by the recipient of a certified one.
    fn next_hop(&self, digest: &Digest, from: u64, to: u64) -> Option<SignedPayment> {
        let receipt = receipts(&self.payments[digest].0, self.certified.get(digest)?).remove(0);
        let holding = receipt.verify(&self.committee, &mut RootCache::new(0)).expect("certified");
        let amount = holding.output.amount;
        Some(pay(from, &[holding], vec![output(owner(to).public(), amount)]))
    }
}

const CORRECT: u64 = 3;
const CHEAT: u64 = 50;

fn run(n: usize, byzantine: usize, seed: u64) -> usize {
    let mut random = RemainderDice::new(seed * 1_000 + n as u64);
    let mut coins: Vec<Holding> = (0..CORRECT).map(|number| genesis(number as u32, number, 10)).collect();
    coins.extend((10..14).map(|index| genesis(index, CHEAT, 10)));
    let leaves = [1, 2, 5][random.index(3)];
    let mut world = World::new(n, byzantine, leaves, coins.clone());
    let pay_on = |number: u64, coins: &[Holding], to| {
        let amount = coins.iter().map(|coin| coin.output.amount).sum();
        pay(number, coins, vec![output(owner(to).public(), amount)])
    };
    let first: Vec<Digest> =
        (0..CORRECT).map(|number| world.add(pay_on(number, &coins[number as usize..][..1], 100 + number))).collect();
    let cheats = &coins[CORRECT as usize..];
    for (set, to) in [(0..1, 60), (0..1, 61), (0..2, 62), (1..3, 63), (2..4, 64), (3..4, 65), (0..4, 66)] {
        let digest = pay_on(CHEAT, &cheats[set], to);
        world.add(digest);
    }
    let mut second: Vec<Option<Digest>> = vec![None; CORRECT as usize];
    let advance = |world: &mut World, second: &mut Vec<Option<Digest>>| {
        for number in 0..CORRECT {
            let place = &mut second[number as usize];
            if place.is_none()
                && let Some(payment) = world.next_hop(&first[number as usize], 100 + number, 200)
            {
                *place = Some(world.add(payment));
            }
        }
    };
    for _ in 0..40 * n {
        let validator = random.index(n);
        match random.index(12) {
            0..6 => {
                let known: Vec<Digest> = world.payments.keys().copied().collect();
                let digest = known[random.index(known.len())];
                world.deliver(validator, &digest);
            }
            6..8 => world.turn(validator, |node| node.step(LaneInput::Tick)),
            8..11 => world.turn(validator, Node::sync),
            _ => world.crash(validator, &mut random),
        }
        advance(&mut world, &mut second);
    }
    // From here on the correct clients' requests arrive; Byzantine validators are silent.
    for _ in 0..2 {
        let theirs: Vec<Digest> = first.iter().copied().chain(second.iter().copied().flatten()).collect();
        for digest in theirs {
            (byzantine..n).for_each(|validator| world.deliver(validator, &digest));
        }
        world.settle_disks();
        advance(&mut world, &mut second);
    }
    for digest in first.iter().copied().map(Some).chain(second) {
        let digest = digest.expect("the first payment finishes");
        assert!(world.certified.contains_key(&digest), "n = {n}, seed {seed}: a correct payment does not finish");
    }
    assert!(world.leaves == leaves && world.nodes.iter().flatten().all(|node| node.validator.muted().is_none()));
    world.violations
}

#[test]
fn with_f_byzantine_validators_nothing_is_certified_twice_and_correct_payments_finish() {
    for n in 2..=13 {
        for seed in 0..6 {
            assert_eq!(run(n, Quorums::new(n).faulty, seed), 0, "n = {n}, seed {seed}");
        }
    }
}

/// The adversary shows one payment to half of the correct validators and a conflicting one to the others.
fn split(n: usize, byzantine: usize) -> usize {
    let coins = vec![genesis(0, CHEAT, 10)];
    let mut world = World::new(n, byzantine, 1, coins.clone());
    let both = [60, 61].map(|to| world.add(pay(CHEAT, &coins, vec![output(owner(to).public(), 10)])));
    for validator in 0..n {
        let shown = if validator < byzantine { &both[..] } else { &both[validator % 2..][..1] };
        shown.iter().for_each(|digest| world.deliver(validator, digest));
        // Then the other one, which a correct validator refuses.
        both.iter().for_each(|digest| world.deliver(validator, digest));
        world.turn(validator, Node::sync);
    }
    world.violations
}

/// Two quorums share at least 2q − n validators. That many Byzantine ones make two certificates: f+1 where n + f is
/// odd, as at n = 3f+1, and f+2 otherwise, where the quorum has one to spare.
#[test]
fn above_f_the_checker_fires() {
    for n in 2..=13 {
        let Quorums { faulty, certificate, .. } = Quorums::new(n);
        let needed = 2 * certificate - n;
        assert_eq!(needed, faulty + if (n + faulty) % 2 == 1 { 1 } else { 2 });
        assert_eq!(split(n, faulty), 0, "n = {n}");
        assert_eq!(split(n, needed - 1), 0, "n = {n}");
        assert_eq!(split(n, needed), 1, "n = {n}: the checker does not see a double spend");
    }
}
