//! A network with a payment lane restarts: what was signed over a state that is rolled back means nothing afterwards,
//! and what is settled stays.

use std::collections::BTreeMap;

use crate::lane_terms::{one_node, open, proposes};
use crate::world::*;
use ledger::{Ledger, Refusal, Restart, RestartError, RestartedLane, Restore, Roots, Snapshot};
use payments::{
    CertifiedPayment, ClosedLog, LaneCarryOver, LaneCommittee, LogOwner, Output, OutputId, Payment, PaymentBody,
    PaymentCertificate, Recipient, RestartEvidence, StatementKind,
};
use primitives::{Amount, Digest, LaneAssetTerms, RULES_OF_LANE_TERMS, SecretKey};

/// A key of the first committee of a restarted network.
fn fresh_key(member: usize) -> SecretKey {
    SecretKey::from_seed([100 + member as u8; 32])
}

/// The old network: its snapshot, its last state, and the logs of its members.
struct Old {
    world: World,
    snapshot: Ledger,
    payments: Vec<Payment>,
}

impl Old {
    fn of(world: World) -> Old {
        Old { snapshot: world.ledger.clone(), world, payments: Vec::new() }
    }

    fn committees(&self) -> BTreeMap<u64, LaneCommittee> {
        (0..4).map(|epoch| (epoch, self.world.committee(epoch))).collect()
    }

    /// The first three members have signed a payment.
    fn signed(&mut self, payment: Payment) -> Payment {
        self.payments.push(payment.clone());
        payment
    }

    fn certificate(&self, payment: &Payment) -> CertifiedPayment {
        let digest = PaymentBody::new(payment.clone()).digest;
        let sign =
            |member| self.world.answer(payment.home, member, StatementKind::Confirmation, &payment.owner, digest);
        let certificate = PaymentCertificate::Answers((0..3).map(sign).collect());
        CertifiedPayment { summary: payment.summary(), certificate }
    }

    /// The closed log of a member, which acknowledged every payment if it is among the first three.
    fn log(&self, member: u8) -> ClosedLog {
        let network = self.world.network();
        let owner = LogOwner { network, home: 0, validator: member, shard: 0 };
        let bodies = self.payments.iter().filter(|_| member < 3).cloned().map(PaymentBody::new);
        let payments: BTreeMap<Digest, PaymentBody> = bodies.map(|body| (body.digest, body)).collect();
        let certificates = payments.values().map(|body| (body.digest, self.certificate(&body.payment))).collect();
        ClosedLog { owner, restart: 1, length: 1_000, payments, certificates }
    }

    fn evidence(&self, members: &[u8]) -> RestartEvidence {
        let mut evidence = RestartEvidence::new(self.world.network(), self.committees());
        for member in members {
            let log = self.log(*member);
            assert_eq!(ClosedLog::parse(&written(&log)), Ok(log.clone()), "it is read as it was written");
            assert_eq!(evidence.add_log(&log), Ok(0));
        }
        evidence
    }

    fn carry(&self, members: &[u8]) -> LaneCarryOver {
        let snapshot = self.snapshot.lane().expect("there is one").bridge();
        let carried = self.evidence(members).carry(snapshot).expect("escrow covers it");
        assert_eq!(LaneCarryOver::parse(&carried.encode()), Ok(carried.clone()));
        carried
    }

    fn restarted(&self, carried: &LaneCarryOver) -> Restarted {
        let mut ledger = self.snapshot.clone();
        let lane = RestartedLane {
            list: carried.digest(),
            members: (0..4).map(|member| vec![fresh_key(member).public()]).collect(),
        };
        let restart = Restart {
            number: 1,
            snapshot: Snapshot::digest(&ledger),
            committee: Vec::new(),
            lane: Some(lane),
            rules: None,
        };
        let first = ledger.network();
        let identity = ledger.begin_again(&first, &restart, Some(carried)).expect("the agreed state");
        ledger.audit().expect("conserved");
        assert_eq!((ledger.network(), ledger.lane().expect("there is one").network()), (identity, identity));
        let mut restore = Restore::default();
        Snapshot::of(&ledger).for_each(|chunk| restore.push(&chunk).expect("in place"));
        let ledger = restore.finish().expect("an ordinary state");
        Restarted { world: World { ledger: ledger.clone(), roots: Roots::of(&ledger), sequences: BTreeMap::new() } }
    }
}

fn written(log: &ClosedLog) -> Vec<u8> {
    let mut bytes = Vec::new();
    log.write(&mut bytes);
    bytes
}

struct Restarted {
    world: World,
}

impl Restarted {
    /// The output that takes the place of this one, if there is one.
    fn coin(&self, old: OutputId) -> Option<Amount> {
        let lane = self.world.ledger.lane().expect("there is one");
        lane.bridge().find_backed(&old.carried_into(&lane.network())).map(|(home, output)| {
            assert_eq!(home, 0, "it is in the first epoch");
            output.amount
        })
    }
}

fn to_key(coin: &Coin, network: Digest, to: &[(u8, Amount)]) -> Payment {
    let outputs = to.iter().map(|(person, amount)| {
        let to = Recipient::Key(key(*person).public());
        Output { to, asset: coin.asset, amount: *amount }
    });
    let (home, owner) = (coin.home, key(coin.owner).public());
    Payment { network, home, into: home, owner, inputs: vec![spent(coin)], outputs: outputs.collect() }
}

fn output_of(payment: &Payment, index: u8) -> OutputId {
    OutputId::of_payment(payment.into, &PaymentBody::new(payment.clone()).digest, index)
}

#[test]
fn a_deposit_after_the_snapshot_is_not_redeemed_after_a_restart() {
    let mut world = World::new(terms());
    world.withdraw(1, USD, 1_000);
    let mut old = Old::of(world);
    let later = old.world.withdraw(2, USD, 700);
    let payment = old.signed(old.world.pay(&later, &[(3, 700)]));
    let redemption = old.world.redemption(&payment);
    let carried = old.carry(&[0, 1, 2]);
    assert!(carried.claims.is_empty(), "nothing is known of it: {carried:?}");
    let Restarted { mut world } = old.restarted(&carried);
    let before = world.balance(3, USD);
    assert_eq!((world.balance(2, USD), world.escrow(USD)), (START, 1_000), "the depositor has the units again");
    assert_eq!(world.outcome(4, redemption), Some(Refusal::BAD_LANE_POST));
    assert_eq!((world.balance(3, USD), world.escrow(USD)), (before, 1_000));
}

#[test]
fn settled_payments_stand_after_a_restart_and_untouched_outputs_too() {
    let mut world = World::new(terms());
    let (spent, kept) = (world.withdraw(1, USD, 1_000), world.withdraw(2, EUR, 400));
    let mut old = Old::of(world);
    let payment = old.signed(to_key(&spent, old.world.network(), &[(3, 600), (1, 400)]));
    let home = old.signed(Payment { ..old.world.pay(&kept, &[(5, 400)]) });
    let carried = old.carry(&[1, 2, 3]);
    let restarted = old.restarted(&carried);
    assert_eq!(restarted.coin(spent.id), None, "it is spent");
    assert_eq!([0, 1].map(|index| restarted.coin(output_of(&payment, index))), [Some(600), Some(400)]);
    assert_eq!(carried.claims.keys().collect::<Vec<_>>(), [&output_of(&home, 0)]);
    let mut world = restarted.world;
    world.empty_blocks(1);
    assert_eq!((world.balance(5, EUR), world.escrow(EUR), world.escrow(USD)), (START + 400, 0, 1_000));
}

#[test]
fn a_restart_with_too_few_logs_leaves_money_aside() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    let old = Old::of(world);
    let carried = old.carry(&[0, 1]);
    assert_eq!((carried.outputs.len(), carried.aside.keys().collect::<Vec<_>>()), (0, vec![&coin.id]));
    assert_eq!(old.restarted(&carried).world.escrow(USD), 1_000, "its units stay in escrow");
}

/// Member 0's log is from a backup: a certificate betrays that it signed what the log lacks.
#[test]
fn a_stale_log_is_not_complete() {
    let mut world = World::new(terms());
    let (coin, other) = (world.withdraw(1, USD, 1_000), world.withdraw(1, USD, 50));
    let mut old = Old::of(world);
    let payment = old.signed(to_key(&coin, old.world.network(), &[(3, 1_000)]));
    let mut stale = old.log(0);
    stale.payments.clear();
    stale.certificates.clear();
    let snapshot = old.snapshot.lane().expect("there is one").bridge();
    for (length, payments) in [(1_000, stale.payments.clone()), (0, old.log(0).payments)] {
        let mut evidence = old.evidence(&[1, 3]);
        evidence.add_log(&ClosedLog { length, payments, ..stale.clone() }).expect("of this network");
        let carried = evidence.carry(snapshot).expect("covered");
        assert!(carried.outputs.is_empty(), "{carried:?}");
        assert_eq!(carried.aside.keys().max(), [output_of(&payment, 0), other.id].iter().max());
    }
    // Two versions of one log: none counts.
    let mut evidence = old.evidence(&[0, 1, 3]);
    evidence.add_log(&stale).expect("of this network");
    assert!(evidence.carry(snapshot).expect("covered").outputs.is_empty());
}

#[test]
fn only_the_known_part_of_a_mixed_payment_is_carried_over() {
    let mut world = World::new(terms());
    let early = world.withdraw(1, USD, 300);
    let mut old = Old::of(world);
    let later = old.world.withdraw(1, USD, 700);
    let mut inputs = vec![spent(&early), spent(&later)];
    inputs.sort_unstable_by_key(|input| input.id);
    let payment = Payment { inputs, ..to_key(&early, old.world.network(), &[(3, 25), (2, 975)]) };
    let payment = old.signed(payment);
    let restarted = old.restarted(&old.carry(&[0, 1, 2]));
    assert_eq!([0, 1].map(|index| restarted.coin(output_of(&payment, index))), [Some(7), Some(292)]);
    assert_eq!(restarted.world.escrow(USD), 300, "one unit is left between them");
}

#[test]
fn open_cases_end_with_a_restart_and_deposits_return() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    let before = world.balance(1, USD);
    world.block(vec![(1, world.resolve(&coin, CASE_DEPOSIT))]);
    let old = Old::of(world);
    let restarted = old.restarted(&old.carry(&[0, 1, 2, 3]));
    assert_eq!(restarted.world.balance(1, USD), before - FEE, "only the fee is gone");
    assert_eq!(restarted.coin(coin.id), Some(1_000));
    let bridge = restarted.world.ledger.lane().expect("there is one").bridge();
    assert_eq!((bridge.resolver().open_cases(), bridge.case_deposits()), (0, 0));
}

#[test]
fn claims_in_the_queue_stay_over_a_restart() {
    let mut world = World::new(with_outflow(terms(), 100, 40));
    let coin = world.withdraw(1, USD, 1_000);
    let payment = world.pay(&coin, &[(2, 1_000)]);
    world.block(vec![(4, world.redemption(&payment))]);
    let mut old = Old::of(world);
    old.signed(payment);
    let (paid, queued) = (old.snapshot.accounts().get(&address(2)).expect("known").balance(USD), old.world.escrow(USD));
    let carried = old.carry(&[0, 1, 2]);
    assert!(carried.claims.is_empty() && carried.outputs.is_empty(), "it is queued already: {carried:?}");
    let Restarted { mut world } = old.restarted(&carried);
    world.empty_blocks(40);
    assert_eq!((u128::from(world.balance(2, USD)), world.escrow(USD)), (u128::from(paid) + queued, 0));
}

/// The list and the first committee are in the identity.
#[test]
fn another_list_makes_another_network() {
    let mut world = World::new(terms());
    world.withdraw(1, USD, 1_000);
    let old = Old::of(world);
    let (all, few) = (old.carry(&[0, 1, 2]), old.carry(&[0]));
    let members: Vec<_> = (0..4).map(|member| vec![fresh_key(member).public()]).collect();
    let snapshot = Snapshot::digest(&old.snapshot);
    let restart = |list: &LaneCarryOver, members: Vec<_>| {
        let lane = Some(RestartedLane { list: list.digest(), members });
        Restart { number: 1, snapshot, committee: Vec::new(), lane, rules: None }
    };
    let first = old.snapshot.network();
    let agreed = restart(&all, members.clone());
    let others = [
        restart(&few, members.clone()),
        restart(&all, members[..3].to_vec()),
        Restart { lane: None, ..agreed.clone() },
    ];
    assert!(others.iter().all(|other| other.identity(&first) != agreed.identity(&first)));
    let mut ledger = old.snapshot.clone();
    let refused = ledger.begin_again(&first, &agreed, Some(&few));
    assert!(matches!(refused, Err(RestartError::OtherList { .. })), "{refused:?}");
    assert_eq!(ledger.begin_again(&first, &others[2], None), Err(RestartError::Lane));
    let refused = ledger.begin_again(&first, &others[1], Some(&all));
    assert!(matches!(refused, Err(RestartError::Committee(_))), "{refused:?}");
    assert_eq!(Snapshot::digest(&ledger), snapshot, "nothing has changed");
}

/// Terms that were voted are those of the first epoch, with their limit; and no older rules follow.
#[test]
fn a_restarted_lane_carries_what_was_voted() {
    let mut world = World::of(&one_node());
    let limited = LaneAssetTerms { outflow_most: 400, outflow_per_height: 10, ..open(EUR) };
    world.block(vec![(1, proposes(limited))]);
    world.empty_blocks(3 + HEIGHTS as usize);
    let lane = |world: &World| world.ledger.lane().expect("there is one").clone();
    assert_eq!(lane(&world).assets().get(EUR, world.epoch()), Some(&limited));
    world.withdraw(2, EUR, 1_000);
    let old = Old::of(world);
    let carried = old.carry(&[0, 1, 2]);
    let restart = Restart {
        number: 1,
        snapshot: Snapshot::digest(&old.snapshot),
        committee: Vec::new(),
        lane: Some(RestartedLane { list: carried.digest(), members: Vec::new() }),
        rules: Some(RULES_OF_LANE_TERMS - 1),
    };
    let first = old.snapshot.network();
    let older = old.snapshot.clone().begin_again(&first, &restart, Some(&carried));
    assert_eq!(older, Err(RestartError::LaneTerms(RULES_OF_LANE_TERMS - 1)));
    let again = old.restarted(&carried).world;
    assert_eq!((again.epoch(), again.escrow(EUR)), (0, 1_000));
    assert_eq!(lane(&again).assets().get(EUR, 0), Some(&limited));
    assert_eq!(lane(&again).rules(0).asset(EUR).fee, limited.fee);
}
