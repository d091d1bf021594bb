//! Every form of the lane, as correct programs make it.

use client::purse::{DepositSlip, Slip};
use lane::wire::{
    write_answer, write_batch_answer, write_bls_answer, write_frame, write_position, write_refusal, write_spender,
};
use payments::*;
use primitives::{Address, AssetId, Digest, PublicKey, SecretKey, Signature};
use serde_json::{Value, json};

use super::world::*;
use super::{At, Case, Form, hex};

pub const CONFIRMED: StatementKind = StatementKind::Confirmation;
pub const ACKNOWLEDGED: StatementKind = StatementKind::Acknowledgement;

/// What verifiers know: the network, its rules and its members' keys.
pub fn world() -> Value {
    let registrations: Vec<Value> = [TREES, GROUP, SHARDS]
        .into_iter()
        .flat_map(|epoch| (0..MEMBERS as u8).filter_map(move |member| registration(epoch, member)))
        .map(|(of, _)| hex(&of.encode()))
        .collect();
    let asset = |(asset, rule): (&AssetId, &AssetRule)| {
        let (least, fee) = (rule.least_units.to_string(), rule.fee.to_string());
        json!({"asset": asset.0, "least_units": least, "fee": fee})
    };
    let registrars: Vec<Value> = (0..MEMBERS as u8).map(|member| hex(&registrar(member).public().0)).collect();
    json!({
        "network": hex(&NETWORK.0),
        "assets": rules().assets.iter().map(asset).collect::<Vec<_>>(),
        "registrars": registrars,
        "registrations": registrations,
        "boards": {GROUP.to_string(): hex(&board_bytes(&dealings(), &[3], &[]))},
    })
}

/// A payment of three inputs to keys and accounts, in two assets of which one has a fee.
pub fn large() -> SignedPayment {
    let spent = [deposit(GROUP, 1, 1, FREE, 500), deposit(GROUP, 1, 2, TAXED, 400), deposit(GROUP, 1, 3, FREE, 25)];
    let outputs = vec![
        output(to(2), FREE, 300),
        output(account(9), TAXED, 397),
        output(to(3), FREE, 200),
        output(account(8), FREE, 25),
    ];
    pay(1, GROUP, GROUP, &spent, outputs)
}

/// A payment in an epoch, of 100 units from one owner to two keys.
pub fn small(epoch: HomeEpoch) -> SignedPayment {
    let spent = [deposit(epoch, 1, 7, FREE, 100)];
    pay(1, epoch, epoch, &spent, vec![output(to(2), FREE, 60), output(to(1), FREE, 40)])
}

/// A payment into the next epoch.
pub fn crossing() -> SignedPayment {
    let spent = [deposit(TREES, 1, 8, FREE, 70)];
    pay(1, TREES, GROUP, &spent, vec![output(to(2), FREE, 50), output(to(2), FREE, 20)])
}

/// A payment of what [`crossing`] paid.
pub fn child() -> SignedPayment {
    let crossing = crossing();
    let certificate = Subject::of(CONFIRMED, &crossing).trees(&[0, 1, 2]);
    let committee = committee(TREES);
    let holding = |index| {
        let receipt = received(&crossing, index, certificate.clone());
        receipt.verify(&committee, &mut RootCache::new(0)).expect("it holds")
    };
    pay(2, GROUP, GROUP, &[holding(0), holding(1)], vec![output(to(3), FREE, 70)])
}

/// The exit of an output, signed or not.
pub fn exit(signed: bool) -> (Vec<u8>, Vec<u8>) {
    let Holding { id, output, .. } = deposit(GROUP, 1, 9, TAXED, 5);
    let spent = SpentOutput { id, asset: output.asset, amount: output.amount };
    let payment = Payment::exit(NETWORK, GROUP, owner(1).public(), spent).encode();
    let digest = PaymentView::parse(&payment).expect("sound").digest();
    let signature = match signed {
        true => owner(1).sign(&owner_message(&NETWORK, GROUP, &digest)),
        false => Signature([0; 64]),
    };
    let request = spend_request(&payment, &signature, &[OutputProof::Ledger]);
    (payment, request)
}

pub fn at(epoch: HomeEpoch, member: u8, now: HomeEpoch) -> At {
    let backed = vec![
        deposit(epoch, 1, 1, FREE, 500),
        deposit(epoch, 1, 2, TAXED, 400),
        deposit(epoch, 1, 3, FREE, 25),
        deposit(epoch, 1, 7, FREE, 100),
        deposit(epoch, 1, 9, TAXED, 5),
    ];
    At { epoch, member, shard: 0, now, backed, before: Vec::new() }
}

pub fn request(at: At, name: &'static str, bytes: Vec<u8>) -> Case {
    Case { form: Form::Request(at), name, bytes }
}

pub fn post(name: &'static str, post: &BridgeOperation) -> Case {
    Case { form: Form::Post, name, bytes: post.encode() }
}

pub fn certificate(name: &'static str, of: Subject, certificate: &PaymentCertificate) -> Case {
    let mut bytes = Vec::new();
    certificate.write(&mut bytes);
    Case { form: Form::Certificate(of), name, bytes }
}

fn certificates() -> Vec<Case> {
    let [tree, group, shards] = [TREES, GROUP, SHARDS].map(|epoch| Subject::of(CONFIRMED, &small(epoch)));
    let settled = Subject::of(ACKNOWLEDGED, &small(GROUP));
    vec![
        certificate("answers of trees with one leaf", tree, &tree.answers(&[0, 1, 2])),
        certificate("answers of larger trees", group, &group.trees(&[0, 2, 3])),
        certificate("answers of members with two shards", shards, &shards.trees(&[1, 2, 3])),
        certificate("acknowledgements", settled, &settled.trees(&[0, 1, 2])),
        certificate("an aggregate of a quorum", group, &PaymentCertificate::Aggregate(group.aggregate(&[0, 1, 3]))),
        certificate("an aggregate of all", shards, &PaymentCertificate::Aggregate(shards.aggregate(&[0, 1, 2, 3]))),
        certificate(
            "an aggregated acknowledgement",
            settled,
            &PaymentCertificate::Aggregate(settled.aggregate(&[1, 2, 3])),
        ),
        certificate("a signature under the group key", group, &group.threshold(&[0, 1, 2])),
        certificate("an acknowledgement under the group key", settled, &settled.threshold(&[3, 2, 0])),
        certificate("a shared tree", group, &group.shared(&[(0, &[]), (1, &[0, 3]), (3, &[2])])),
        certificate("a shared tree with one list", shards, &shards.shared_aggregate(&[0, 2, 3], &[1])),
    ]
}

fn receipts() -> Vec<Case> {
    let of = |name, payment: &SignedPayment, index, certificate| {
        let bytes = received(payment, index, certificate).encode();
        Case { form: Form::Receipt, name, bytes }
    };
    let (small, large, subject) = (small(TREES), large(), |payment: &SignedPayment| Subject::of(CONFIRMED, payment));
    vec![
        of("a receipt by answers", &small, 0, subject(&small).answers(&[0, 1, 2])),
        of(
            "a receipt of the last output",
            &large,
            3,
            PaymentCertificate::Aggregate(subject(&large).aggregate(&[0, 1, 2])),
        ),
        of("a receipt of an account's output", &large, 1, subject(&large).threshold(&[1, 2, 3])),
        of("a receipt by a shared tree", &large, 2, subject(&large).shared(&[(0, &[]), (1, &[]), (2, &[1])])),
        of("a receipt across epochs", &crossing(), 1, subject(&crossing()).trees(&[0, 1, 2])),
    ]
}

pub fn batch(requests: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = [&[3][..], &(requests.len() as u16).to_le_bytes()].concat();
    for request in requests {
        bytes.extend((request.len() as u32).to_le_bytes());
        bytes.extend(request);
    }
    bytes
}

/// The request to settle a payment.
pub fn settle(payment: &SignedPayment, certificate: &PaymentCertificate) -> Vec<u8> {
    settle_request(&PaymentView::parse(&payment.payment).expect("sound").summary(), certificate)
}

fn requests() -> Vec<Case> {
    let (large, small, child) = (large(), small(GROUP), child());
    let repeated = At { before: vec![large.request.clone()], ..at(GROUP, 0, GROUP) };
    let aggregate = PaymentCertificate::Aggregate(Subject::of(CONFIRMED, &small).aggregate(&[0, 1, 2]));
    let question = spender_request(&NETWORK, GROUP, &owner(1), &deposit(GROUP, 1, 1, FREE, 500).id);
    let here = || at(GROUP, 0, GROUP);
    vec![
        request(here(), "spend what the ledger created", large.request.clone()),
        request(repeated, "spend again", large.request.clone()),
        request(at(GROUP, 3, GROUP), "spend what payments created", child.request),
        request(at(GROUP, 1, GROUP + 1), "an exit in the next epoch", exit(true).1),
        request(at(GROUP, 2, GROUP + 2), "an exit that anybody asks for", exit(false).1),
        request(here(), "settle", settle(&small, &aggregate)),
        request(at(GROUP, 0, GROUP + 2), "settle late", settle(&small, &aggregate)),
        request(here(), "a batch", batch(&[large.request.clone(), small.request.clone()])),
        request(here(), "a question", question),
        request(here(), "under a BLS key", AnswerScheme::Bls.ask(&large.request)),
        request(here(), "under a share", AnswerScheme::Share.ask(&large.request)),
        request(here(), "a batch under a BLS key", AnswerScheme::Bls.ask(&batch(&[small.request]))),
    ]
}

/// Keys of a member with and without BLS keys.
pub fn registered(epoch: HomeEpoch, member: u8) -> (LaneRegistration, Vec<Signature>) {
    registration(epoch, member).expect("it registers")
}

pub fn contested(signer: &SecretKey, sequence: u64) -> ContestClaim {
    let Holding { id, output, .. } = deposit(GROUP, 1, sequence, FREE, 10 * sequence);
    let output = SpentOutput { id, asset: output.asset, amount: output.amount };
    let contested = ContestedOutput { output, home: GROUP, owner: owner(1).public() };
    let exit = PaymentBody::new(contested.exit(NETWORK));
    let signature = signer.sign(&owner_message(&NETWORK, GROUP, &exit.digest));
    ContestClaim { contested, signature, proof: OutputProof::Ledger }
}

pub fn resolve(mut outputs: Vec<ContestClaim>) -> BridgeOperation {
    outputs.sort_by_key(|of| of.contested.output.id);
    BridgeOperation::Resolve { bid: 1_000, outputs }
}

/// A member's view of a case, as it signs it, with what comes along.
pub fn view(signed: Option<Digest>, paid: Option<CertifiedPayment>) -> BridgeOperation {
    let case = deposit(GROUP, 1, 7, FREE, 100).id;
    let digest = view_digest(&case, signed.as_ref());
    let subject = Subject { kind: StatementKind::View, epoch: GROUP, owner: owner(1).public(), digest };
    let paid = paid.map(Box::new);
    BridgeOperation::View { case, committee: GROUP, owner: subject.owner, paid, answer: subject.answer(2, 1, 0) }
}

pub fn certified(payment: &SignedPayment, members: &[u8]) -> CertifiedPayment {
    let summary = PaymentView::parse(&payment.payment).expect("sound").summary();
    CertifiedPayment { summary, certificate: Subject::of(CONFIRMED, payment).answers(members) }
}

/// Two payments of one output, by ascending digest.
pub fn contradictory() -> [SignedPayment; 2] {
    let spent = [deposit(GROUP, 1, 7, FREE, 100)];
    let other = pay(1, GROUP, GROUP, &spent, vec![output(to(4), FREE, 100)]);
    let mut both = [small(GROUP), other];
    both.sort_by_key(|payment| payment.digest.0);
    both
}

pub fn accuse(pair: [(SignedPayment, PaymentCertificate); 2]) -> BridgeOperation {
    let pair = Box::new(pair.map(|(payment, signed)| (payment.payment, signed)));
    BridgeOperation::Accuse { evidence: LaneEvidence::Payments { home: GROUP, validator: 1, pair } }
}

pub fn vote(payment: &[u8], signature: Option<Signature>) -> BridgeOperation {
    let body = PaymentBody::parse(payment).expect("sound");
    let subject = Subject { kind: CONFIRMED, epoch: GROUP, owner: body.payment.owner, digest: body.digest };
    let case = body.payment.inputs[0].id;
    BridgeOperation::Vote { case, payment: payment.to_vec(), signature, answer: subject.answer(0, 3, 1) }
}

pub fn halt(round: u64, signed: u64) -> BridgeOperation {
    let (kind, owner) = (StatementKind::Halt, PublicKey([7; 32]));
    let subject = Subject { kind, epoch: SHARDS, owner, digest: halt_digest(SHARDS, signed) };
    BridgeOperation::Halt { epoch: SHARDS, round, owner, answer: subject.answer(1, 1, 0) }
}

fn views_evidence() -> BridgeOperation {
    let case = deposit(GROUP, 1, 7, FREE, 100).id;
    let signed = |paid: Option<Digest>| {
        let digest = view_digest(&case, paid.as_ref());
        let subject = Subject { kind: StatementKind::View, epoch: GROUP, owner: owner(1).public(), digest };
        (paid, subject.answer(2, 1, 0))
    };
    let pair = Box::new([signed(None), signed(Some(Digest([3; 32])))]);
    let evidence = LaneEvidence::Views { committee: GROUP, case, owner: owner(1).public(), pair };
    BridgeOperation::Accuse { evidence }
}

fn posts() -> Vec<Case> {
    let (large, small, [one, other]) = (large(), small(GROUP), contradictory());
    let subject = |payment: &SignedPayment| Subject::of(CONFIRMED, payment);
    let (registration, proofs) = registered(SHARDS, 2);
    let (plain, plain_proofs) = registered(TREES, 1);
    let (dealing, signature) = dealings().swap_remove(1);
    let (_, complaint) = generation();
    let answered = |payment: &SignedPayment| subject(payment).answers(&[1]);
    let aggregated = |payment: &SignedPayment| PaymentCertificate::Aggregate(subject(payment).aggregate(&[1, 2]));
    let shared = |payment: &SignedPayment| subject(payment).shared(&[(1, &[])]);
    let paid = certified(&small, &[0, 1, 3]);
    let proof =
        OutputProof::Payment(Box::new(received(&crossing(), 0, subject(&crossing()).answers(&[0, 1, 2])).proof));
    let mut from_payment = contested(&owner(2), 5);
    let output = SpentOutput { id: child_input(0), asset: FREE, amount: 50 };
    from_payment.contested = ContestedOutput { output, home: GROUP, owner: owner(2).public() };
    let exit_of = PaymentBody::new(from_payment.contested.exit(NETWORK));
    from_payment.signature = owner(2).sign(&owner_message(&NETWORK, GROUP, &exit_of.digest));
    from_payment.proof = proof;
    let redeem = |certificate| BridgeOperation::Redeem { payment: large.payment.clone(), certificate };
    let register = BridgeOperation::Register { registration, proofs };
    let duty = Case { form: Form::Post, name: "register as a duty", bytes: register.encode_duty() };
    vec![
        post("redeem", &redeem(subject(&large).trees(&[0, 1, 2]))),
        post("redeem by the group key", &redeem(subject(&large).threshold(&[0, 1, 3]))),
        post("resolve", &resolve(vec![contested(&owner(1), 2), contested(&owner(1), 3)])),
        post("resolve an output of a payment", &resolve(vec![from_payment])),
        post("vote for a payment", &vote(&small.payment, Some(small.signature))),
        post("vote for an exit", &vote(&exit(true).0, None)),
        post("an empty view", &view(None, None)),
        post("a view with a certificate", &view(Some(small.digest), Some(paid))),
        post("halt", &halt(3, 3)),
        duty,
        post("register without BLS keys", &BridgeOperation::Register { registration: plain, proofs: plain_proofs }),
        post("accuse by answers", &accuse([(one.clone(), answered(&one)), (other.clone(), answered(&other))])),
        post("accuse by aggregates", &accuse([(one.clone(), aggregated(&one)), (other.clone(), aggregated(&other))])),
        post("accuse by shared trees", &accuse([(one.clone(), shared(&one)), (other.clone(), shared(&other))])),
        post("accuse by views", &views_evidence()),
        post("deal", &BridgeOperation::Deal { epoch: GROUP, dealing: Box::new(dealing), signature }),
        post("complain", &BridgeOperation::Complain { epoch: GROUP, complaint: Box::new(complaint) }),
    ]
}

/// The id of an output of [`crossing`].
fn child_input(index: u8) -> OutputId {
    OutputId::of_payment(GROUP, &crossing().digest, index)
}

/// The body of a reply.
pub fn reply(write: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    write(&mut frame);
    frame.split_off(8)
}

fn replies() -> Vec<Case> {
    let (small, of) = (small(GROUP), Subject::of(CONFIRMED, &small(GROUP)));
    let answer = of.answer(1, 5, 4);
    let header = answer.header(&plain(GROUP), &of.claim()).expect("a header");
    let id = deposit(GROUP, 1, 7, FREE, 100).id;
    let spender = KnownSpender { payment: small.payment.clone(), signature: small.signature };
    let bls = BatchAnswer { signature: SharedSignature::Bls(of.bls(2)), ..of.batch_answer(2, &[1, 2]) };
    let digest = &small.digest;
    let replies = [
        ("an answer", reply(|to| write_answer(to, CONFIRMED, digest, &answer))),
        ("a refusal", reply(|to| write_refusal(to, 9, &LaneRefusal::Busy))),
        ("no position", reply(|to| write_position(to, 9, None))),
        ("a position", reply(|to| write_position(to, 9, Some(&(header, answer.signature))))),
        ("a BLS answer", reply(|to| write_bls_answer(to, ACKNOWLEDGED, digest, 3, &of.bls(3)))),
        ("an answer to a batch", reply(|to| write_batch_answer(to, &of.batch_answer(0, &[])))),
        ("a BLS answer to a batch", reply(|to| write_batch_answer(to, &bls))),
        ("no spender", reply(|to| write_spender(to, &id, None))),
        ("a spender", reply(|to| write_spender(to, &id, Some(&spender)))),
    ];
    replies.map(|(name, bytes)| Case { form: Form::Reply, name, bytes }).into()
}

pub fn slip(name: &'static str, slip: &Slip) -> Case {
    Case { form: Form::Slip, name, bytes: slip.encode(&NETWORK).into_bytes() }
}

/// The slip of a deposit.
pub fn deposit_slip(amount: u64) -> Slip {
    let Holding { id, output, .. } = deposit(GROUP, 1, 7, FREE, 100);
    Slip::Deposit(DepositSlip { home: GROUP, id, owner: owner(1).public(), asset: output.asset, amount })
}

fn slips() -> Vec<Case> {
    let (small, large) = (small(TREES), large());
    let receipt = received(&small, 0, Subject::of(CONFIRMED, &small).answers(&[0, 1, 2]));
    let body = PaymentBody::parse(&large.payment).expect("sound");
    let aggregate = PaymentCertificate::Aggregate(Subject::of(CONFIRMED, &large).aggregate(&[0, 1, 2]));
    vec![
        slip("a slip of a receipt", &Slip::Receipt(receipt)),
        slip("a slip of a payment to accounts", &Slip::ToAccounts(body, aggregate)),
        slip("a slip of a deposit", &deposit_slip(100)),
    ]
}

/// All that is verified.
pub fn cases() -> Vec<Case> {
    let payment = |name, bytes| Case { form: Form::Payment, name, bytes };
    let mut all = vec![
        payment("a payment with accounts and a fee", large().payment),
        payment("an exit below the least units", exit(true).0),
        payment("a payment into the next epoch", crossing().payment),
    ];
    for (epoch, name) in [(TREES, "a registration of two shards"), (SHARDS, "a registration with BLS keys")] {
        all.push(Case { form: Form::Registration, name, bytes: registered(epoch, 1).0.encode() });
    }
    let board = board_bytes(&dealings(), &[3], &[]);
    all.push(Case { form: Form::Board(GROUP), name: "a board with a rejected dealing", bytes: board });
    let mut frame = Vec::new();
    write_frame(&mut frame, 77, &[1, 2, 3]);
    all.push(Case { form: Form::Frame, name: "a frame", bytes: frame });
    for more in [certificates(), receipts(), requests(), posts(), replies(), slips()] {
        all.extend(more);
    }
    all
}

fn made_payment(number: u8, payment: &SignedPayment) -> Value {
    let view = PaymentView::parse(&payment.payment).expect("sound");
    let body = PaymentBody::parse(&payment.payment).expect("sound");
    let input = |of: SpentOutput| json!({"id": hex(&of.id.0), "asset": of.asset.0, "amount": of.amount.to_string()});
    let output = |of: Output| {
        let (kind, to) = match of.to {
            Recipient::Key(key) => ("key", hex(&key.0)),
            Recipient::Account(account) => ("account", hex(&account.0)),
        };
        json!({kind: to, "asset": of.asset.0, "amount": of.amount.to_string()})
    };
    let settled = settle(payment, &PaymentCertificate::Answers(Vec::new()));
    json!({
        "seed": hex(&owner(number).to_seed()),
        "home": view.home(),
        "into": view.into_epoch(),
        "inputs": view.inputs().map(input).collect::<Vec<_>>(),
        "outputs": view.outputs().map(output).collect::<Vec<_>>(),
        "is_exit": view.is_exit(),
        "bytes": hex(&payment.payment),
        "summary": hex(&settled[1..settled.len() - 1]),
        "digest": hex(&payment.digest.0),
        "ids": body.output_ids().map(|id| hex(&id.0)).collect::<Vec<_>>(),
        "signing_bytes": hex(&owner_message(&NETWORK, view.home(), &payment.digest)),
        "signature": hex(&payment.signature.0),
    })
}

/// Signatures by the one rule: one of RFC 8032, some that only the cofactored equation accepts, some that nobody does.
fn signatures() -> Vec<Value> {
    let key = owner(1);
    let message = b"by the one rule";
    let good = key.sign(message);
    let mut large_s = good;
    large_s.0[32..].fill(0xff);
    let mut low_order = [0; 32];
    low_order.copy_from_slice(&from("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"));
    let unreduced: [u8; 32] =
        from("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f").try_into().expect("32");
    let zero_s = |point: [u8; 32]| Signature([point, [0; 32]].concat().try_into().expect("64"));
    let all = [
        ("of RFC 8032", key.public(), good),
        ("with another message's signature", key.public(), key.sign(b"another")),
        ("with s above the order", key.public(), large_s),
        ("of points of small order", PublicKey(low_order), zero_s(low_order)),
        ("with a y that is not reduced", PublicKey(unreduced), zero_s(low_order)),
        ("of no point", PublicKey([2; 32]), zero_s([2; 32])),
    ];
    let one = |(name, key, signature): (&str, PublicKey, Signature)| {
        let valid = key.verify(message, &signature);
        let (key, signature) = (hex(&key.0), hex(&signature.0));
        json!({"name": name, "key": key, "message": hex(message), "signature": signature, "valid": valid})
    };
    all.map(one).into()
}

fn from(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect()
}

/// What follows from fields alone.
pub fn made() -> Value {
    let quorum = |n| {
        let of = Quorums::new(n);
        json!([n, of.faulty, of.certificate, of.binding(), of.witness()])
    };
    let shard = |(number, shards): (u8, usize)| {
        let keys = (0..shards).map(|shard| owner(shard as u8).public()).collect();
        let committee = LaneCommittee::new(NETWORK, 0, vec![keys]);
        json!([
            hex(&owner(number).public().0),
            shards,
            committee.shard_of(0, &owner(number).public()).expect("a shard")
        ])
    };
    let (account, before) = (Address([4; 20]), OutputId([6; 32]));
    let exit = exit(true);
    let signed_exit = SignedPayment {
        digest: PaymentView::parse(&exit.0).expect("sound").digest(),
        signature: Signature(exit.1[1 + exit.0.len()..][..64].try_into().expect("64 bytes")),
        payment: exit.0,
        request: exit.1,
    };
    let group = committee(GROUP);
    let tree = |size: usize| {
        let leaves: Vec<Digest> = (0..size).map(|leaf| Digest([leaf as u8; 32])).collect();
        let (root, paths) = signing_tree(&leaves);
        let paths: Vec<Vec<Value>> = paths.iter().map(|path| path.iter().map(|of| hex(&of.0)).collect()).collect();
        json!({"size": size, "root": hex(&root.0), "paths": paths})
    };
    let shards = [(1, 1), (1, 2), (2, 2), (3, 3), (4, 7), (5, 256), (6, 65_536)].map(shard);
    let account_of = |number| json!([hex(&owner(number).public().0), hex(&owner(number).public().address().0)]);
    let trees_of_small = Subject::of(CONFIRMED, &small(GROUP)).trees(&[0, 1, 2]);
    let (accounts, trees) = ([1, 2].map(account_of), [1, 2, 3, 5, 8, 11].map(tree));
    json!({
        "quorums": (1..=100).map(quorum).collect::<Vec<_>>(),
        "shards": shards,
        "accounts": accounts,
        "ids": {
            "deposit": hex(&OutputId::of_deposit(&NETWORK, 3, &account, 12).0),
            "genesis": hex(&OutputId::of_genesis(&NETWORK, 0, 2).0),
            "carried": hex(&before.carried_into(&NETWORK).0),
        },
        "trees": trees,
        "signatures": signatures(),
        "group_key": hex(&group.group().expect("a group key").key().to_bytes()),
        "payments": [
            made_payment(1, &large()),
            made_payment(1, &crossing()),
            made_payment(2, &child()),
            made_payment(1, &signed_exit),
        ],
        "child": {"request": hex(&child().request), "settle": hex(&settle(&small(GROUP), &trees_of_small))},
        "question": hex(&spender_request(&NETWORK, GROUP, &owner(1), &before)),
    })
}
