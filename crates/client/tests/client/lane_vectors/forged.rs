//! Certificates with one change each, and why they are refused.

use payments::*;

use super::forms::*;
use super::refused::{MALFORMED, Refused, SIGNERS, with};
use super::world::*;
use super::{Case, Form};

/// Points that are none, that are outside the subgroup, and the identity, all of 48 bytes.
fn wrong_points() -> [[u8; 48]; 3] {
    let point = |first| with(&[0; 48], |bytes: &mut [u8; 48]| bytes[0] = first);
    // x = 0 is on the curve and of order 3; x = 1 is not on it.
    [with(&point(0x80), |bytes| bytes[47] = 1), point(0x80), point(0xc0)]
}

pub fn certificates() -> Vec<Refused> {
    let tree = Subject::of(CONFIRMED, &small(TREES));
    let group = Subject::of(CONFIRMED, &small(GROUP));
    let shards = Subject::of(CONFIRMED, &small(SHARDS));
    let settled = Subject { kind: ACKNOWLEDGED, ..group };
    let good: Vec<LaneAnswer> = (0..4).map(|member| group.answer(member, 7, 6)).collect();
    let answers = |name, answers: &[&LaneAnswer], reason| {
        let list = answers.iter().map(|answer| (*answer).clone()).collect();
        (certificate(name, group, &PaymentCertificate::Answers(list)), reason)
    };
    let first = |name, change: &dyn Fn(&mut LaneAnswer), reason| {
        answers(name, &[&with(&good[0], change), &good[1], &good[2]], reason)
    };
    let signature = "WrongSignature";
    let mut all = vec![
        answers("one signer too few", &[&good[0], &good[1]], SIGNERS),
        answers("one signer too many", &[&good[0], &good[1], &good[2], &good[3]], SIGNERS),
        answers("a signer twice", &[&good[0], &good[0], &good[1]], SIGNERS),
        answers("signers that descend", &[&good[1], &good[0], &good[2]], SIGNERS),
        answers("a signer that is no member", &[&good[0], &good[1], &with(&good[2], |of| of.validator = 4)], SIGNERS),
        first("a changed signature", &|of| of.signature.0[7] ^= 1, signature),
        first("another log position", &|of| of.position += 1, signature),
        first("another size with the same path", &|of| of.size = 5, "WrongPath"),
        first("an index that is not below the size", &|of| of.index = 7, "WrongPath"),
        first("a tree of 4,097 leaves", &|of| of.size = 4_097, "WrongPath"),
        first("another sibling", &|of| of.path[0].0[0] ^= 1, signature),
    ];
    let parsed = |name, subject, certificate_of: PaymentCertificate, reason| {
        (certificate(name, subject, &certificate_of), reason)
    };
    all.push(parsed("an acknowledgement as a confirmation", group, settled.answers(&[0, 1, 2]), signature));
    all.push(parsed("a confirmation as an acknowledgement", settled, group.answers(&[0, 1, 2]), signature));
    all.push(parsed("of another payment", group, tree_answers_of(&shards, GROUP), signature));
    let of_last = with(&tree.answer(2, 1, 0), |of| of.validator = 3);
    let three = vec![tree.answer(0, 1, 0), tree.answer(1, 1, 0), of_last];
    all.push(parsed("a member that registered no keys", tree, PaymentCertificate::Answers(three), "Unregistered"));
    all.extend(aggregates(group, tree, shards, settled));
    all.extend(shared(group, settled));
    let bytes = |name, bytes: &[u8]| (Case { form: Form::Certificate(group), name, bytes: bytes.to_vec() }, MALFORMED);
    all.push(bytes("a sixth form", &[0, 5, 0, 0]));
    all.push(bytes("nothing", &[]));
    all
}

/// Answers to one payment, signed by the right keys about another.
fn tree_answers_of(of: &Subject, epoch: HomeEpoch) -> PaymentCertificate {
    Subject { epoch, ..*of }.answers(&[0, 1, 2])
}

fn aggregates(group: Subject, tree: Subject, shards: Subject, settled: Subject) -> Vec<Refused> {
    let good = group.aggregate(&[0, 1, 3]);
    let aggregate = "WrongAggregate";
    let case = |name, of, changed, reason| (certificate(name, of, &PaymentCertificate::Aggregate(changed)), reason);
    let [no_point, small_order, identity] = wrong_points().map(BlsSignature);
    let threshold = |signature| PaymentCertificate::Threshold(signature);
    vec![
        case("a bitmap with a byte more", group, with(&good, |of| of.signers.push(0)), SIGNERS),
        case("a bitmap without a byte", group, with(&good, |of| of.signers.clear()), SIGNERS),
        case("a bitmap with a signer that is no member", group, with(&good, |of| of.signers[0] |= 16), SIGNERS),
        case("a bitmap of too few signers", group, group.aggregate(&[0, 1]), SIGNERS),
        case("a bitmap of other signers", group, with(&good, |of| of.signers[0] = 0b0111), aggregate),
        case("an aggregate that is no point", group, with(&good, |of| of.signature = no_point), aggregate),
        case("an aggregate outside the subgroup", group, with(&good, |of| of.signature = small_order), aggregate),
        case("an aggregate that is the identity", group, with(&good, |of| of.signature = identity), aggregate),
        case("an aggregated acknowledgement as a confirmation", group, settled.aggregate(&[0, 1, 2]), aggregate),
        case("an aggregate of an epoch without BLS keys", tree, good.clone(), "WrongBlsKey"),
        (certificate("an aggregate under the group key", group, &threshold(good.signature)), aggregate),
        (certificate("a group key that does not exist", shards, &threshold(good.signature)), "NoGroupKey"),
        (certificate("a share under the group key", group, &threshold(group.share(0))), aggregate),
        (certificate("the identity under the group key", group, &threshold(identity)), aggregate),
    ]
}

fn shared(group: Subject, settled: Subject) -> Vec<Refused> {
    let parts: [(u8, &[u16]); 3] = [(0, &[]), (1, &[0, 3]), (3, &[2])];
    let shared = |name, of, parts: &[(u8, &[u16])], reason| (certificate(name, of, &group.shared(parts)), reason);
    let good = |change: &dyn Fn(&mut SharedPlace, &mut Vec<BatchAnswer>)| {
        let (mut place, mut answers) =
            (group.place().0, parts.map(|(member, list)| group.batch_answer(member, list)).to_vec());
        change(&mut place, &mut answers);
        PaymentCertificate::Shared(Box::new(SharedCertificate::Answers(place, answers)))
    };
    let changed = |name, change: &dyn Fn(&mut SharedPlace, &mut Vec<BatchAnswer>), reason| {
        (certificate(name, group, &good(change)), reason)
    };
    vec![
        shared("a shared tree that excludes the payment", group, &[(0, &[]), (1, &[4]), (3, &[])], "WrongPath"),
        shared("a shared tree of too few", group, &parts[..2], SIGNERS),
        shared("a shared tree as an acknowledgement", settled, &parts, SIGNERS),
        changed("a list that descends", &|_, answers| answers[1].excluded.reverse(), MALFORMED),
        changed("a list without a place", &|_, answers| answers[1].excluded.truncate(1), "WrongSignature"),
        changed("another place in a shared tree", &|place, _| place.index = 5, "WrongPath"),
        changed("another path in a shared tree", &|place, _| place.path[0].0[0] ^= 1, "WrongSignature"),
        changed("a part of a member twice", &|_, answers| answers[1] = answers[0].clone(), SIGNERS),
        (
            certificate(
                "a shared aggregate that excludes the payment",
                group,
                &group.shared_aggregate(&[0, 1, 2], &[4]),
            ),
            "WrongPath",
        ),
        (certificate("a shared aggregate of too few", group, &group.shared_aggregate(&[0, 2], &[])), SIGNERS),
    ]
}
