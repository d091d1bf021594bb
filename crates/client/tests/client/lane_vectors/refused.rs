//! Forms with one change each, and why they are refused.

use client::purse::Slip;
use payments::*;
use primitives::{Digest, SecretKey, Signature};

use super::forms::*;
use super::world::*;
use super::{At, Case, Form, forged};

pub type Refused = (Case, &'static str);

pub const MALFORMED: &str = "Malformed";
pub const SIGNERS: &str = "WrongSigners";

/// A copy with one change.
pub fn with<T: Clone>(of: &T, change: impl FnOnce(&mut T)) -> T {
    let mut other = of.clone();
    change(&mut other);
    other
}

fn payments() -> Vec<Refused> {
    let good = PaymentBody::parse(&large().payment).expect("sound").payment;
    let small = PaymentBody::parse(&small(GROUP).payment).expect("sound").payment;
    let bytes = good.encode();
    // The places of fields: a head of 83 bytes, inputs of 44, outputs of 45.
    let (first_output, inputs) = (83 + 3 * 44, 83..83 + 44);
    let case = |name, bytes, reason| (Case { form: Form::Payment, name, bytes }, reason);
    let change = |name, change: &dyn Fn(&mut Payment), reason| case(name, with(&good, change).encode(), reason);
    let edit = |name, edit: &dyn Fn(&mut Vec<u8>)| case(name, with(&bytes, edit), MALFORMED);
    let more = |payment: &mut Payment| payment.outputs = vec![output(to(1), FREE, 1); 17];
    let five = |payment: &mut Payment| {
        payment.outputs.extend((20..24).map(|asset| output(to(1), primitives::AssetId(asset), 1)))
    };
    let most = (1 << 63) - 1;
    let wraps = |payment: &mut Payment| {
        payment.outputs = vec![output(to(1), FREE, most), output(to(1), FREE, most), output(to(1), FREE, 102)];
    };
    let wraps = with(&small, wraps).encode();
    let abroad = PaymentBody::parse(&exit(true).0).expect("sound").payment;
    let abroad = with(&abroad, |payment| payment.outputs[0].to = account(9)).encode();
    vec![
        edit("another version", &|bytes| bytes[0] = 2),
        edit("no inputs", &|bytes| bytes[1] = 0),
        change("seventeen outputs", &more, MALFORMED),
        change("into two epochs later", &|payment| payment.into += 2, MALFORMED),
        change("into the epoch before", &|payment| payment.into -= 1, MALFORMED),
        change("inputs that descend", &|payment| payment.inputs.reverse(), MALFORMED),
        edit("an input twice", &|bytes| bytes.copy_within(inputs.clone(), inputs.end)),
        change("an amount of zero", &|payment| payment.outputs[0].amount = 0, MALFORMED),
        change("an amount of 2^63", &|payment| payment.inputs[0].amount = 1 << 63, MALFORMED),
        edit("an output of kind 2", &|bytes| bytes[first_output] = 2),
        edit("an account with a digit behind it", &|bytes| bytes[first_output + 45 + 1 + 20] = 1),
        edit("a byte more", &|bytes| bytes.push(0)),
        edit("a byte less", &|bytes| bytes.truncate(bytes.len() - 1)),
        change("another network", &|payment| payment.network = Digest([1; 32]), "ForeignNetwork"),
        change("an output below the least units", &|payment| payment.outputs[1].amount = 9, "TooSmall"),
        change("six assets", &five, "TooManyAssets"),
        change("a unit more", &|payment| payment.outputs[0].amount += 1, "WrongSum"),
        change("without the fee", &|payment| payment.outputs[1].amount += 3, "WrongSum"),
        case("sums that would wrap", wraps, "WrongSum"),
        case("an exit to another account", abroad, "TooSmall"),
    ]
}

fn receipts() -> Vec<Refused> {
    let (large, small) = (large(), small(TREES));
    let aggregate = PaymentCertificate::Aggregate(Subject::of(CONFIRMED, &large).aggregate(&[0, 1, 2]));
    let good = received(&large, 2, aggregate);
    let case = |name, of: FastReceipt, reason| (Case { form: Form::Receipt, name, bytes: of.encode() }, reason);
    let change = |name, change: &dyn Fn(&mut FastReceipt), reason| case(name, with(&good, change), reason);
    let answers = received(&small, 0, Subject::of(CONFIRMED, &small).answers(&[0, 1, 2]));
    vec![
        change("a unit more received", &|of| of.output.amount += 1, "WrongPath"),
        change("another payee", &|of| of.output.to = to(4), "WrongPath"),
        change("another index of the output", &|of| of.proof.index = 3, "WrongPath"),
        change("another path of the output", &|of| of.proof.path[1].0[0] ^= 1, "WrongPath"),
        change("an index beyond the outputs", &|of| of.proof.index = 4, "WrongPath"),
        change("a receipt of seventeen outputs", &|of| of.proof.summary.outputs = 17, MALFORMED),
        change("a receipt of no outputs", &|of| of.proof.summary.outputs = 0, "WrongPath"),
        change("a home whose keys are not known", &|of| of.proof.summary.home = 3, "UnknownCommittee"),
        change("other inputs", &|of| of.proof.summary.inputs.0[0] ^= 1, "WrongAggregate"),
        change("another home of the output", &|of| of.proof.summary.into += 1, "WrongAggregate"),
        case(
            "another owner who pays",
            with(&answers, |of| of.proof.summary.owner = owner(5).public()),
            "WrongSignature",
        ),
        case("another epoch's committee", with(&answers, |of| of.proof.summary.home = GROUP), "WrongSignature"),
    ]
}

/// A request to spend, with another signature or other proofs.
fn respent(payment: &SignedPayment, signature: Signature, proofs: &[OutputProof]) -> Vec<u8> {
    spend_request(&payment.payment, &signature, proofs)
}

fn requests() -> Vec<Refused> {
    let (large, small, child) = (large(), small(GROUP), child());
    let here = || at(GROUP, 0, GROUP);
    let case = |at: At, name, bytes, reason| (request(at, name, bytes), reason);
    let ledger = [OutputProof::Ledger];
    let sign =
        |payment: &SignedPayment, key: &SecretKey, home| key.sign(&owner_message(&NETWORK, home, &payment.digest));
    let other = contradictory().into_iter().find(|payment| payment.digest != small.digest).expect("one of two");
    let [first, second] = contradictory();
    let (known, conflicting) = (At { before: vec![first.request.clone()], ..here() }, second.request);
    let unknown = pay(1, GROUP, GROUP, &[deposit(GROUP, 1, 77, FREE, 5)], vec![output(to(2), FREE, 5)]);
    let more = with(&deposit(GROUP, 1, 7, FREE, 100), |of| of.output.amount = 101);
    let more = pay(1, GROUP, GROUP, &[more], vec![output(to(2), FREE, 101)]);
    let later = pay(1, GROUP, GROUP + 1, &[deposit(GROUP, 1, 7, FREE, 100)], vec![output(to(2), FREE, 100)]);
    // A payment of an equal output that another payment created.
    let crossed = crossing();
    let twin = pay(1, TREES, GROUP, &[deposit(TREES, 1, 10, FREE, 50)], vec![output(to(2), FREE, 50)]);
    let certify = |payment: &SignedPayment| Subject::of(CONFIRMED, payment).answers(&[0, 1, 2]);
    let proof = |payment: &SignedPayment, index| {
        OutputProof::Payment(Box::new(received(payment, index, certify(payment)).proof))
    };
    let one = Holding {
        id: OutputId::of_payment(GROUP, &crossed.digest, 0),
        output: output(to(2), FREE, 50),
        proof: proof(&crossed, 0),
    };
    let spends_one = pay(2, GROUP, GROUP, &[one], vec![output(to(3), FREE, 50)]);
    let old = unregistered_parent(&spends_one);
    let foreign = pay(
        foreign_owner(),
        TREES,
        TREES,
        &[deposit(TREES, foreign_owner(), 7, FREE, 100)],
        vec![output(to(2), FREE, 100)],
    );
    let question = |key: &SecretKey| {
        let good = spender_request(&NETWORK, GROUP, &owner(1), &other_input());
        let forged = spender_request(&NETWORK, GROUP, key, &other_input());
        [&good[..good.len() - 64], &forged[forged.len() - 64..]].concat()
    };
    vec![
        case(here(), "a request of kind 6", vec![6, 0], MALFORMED),
        case(
            here(),
            "a payment that another key signed",
            respent(&small, sign(&small, &owner(2), GROUP), &ledger),
            "WrongOwnerSignature",
        ),
        case(
            here(),
            "a payment signed for another epoch",
            respent(&small, sign(&small, &owner(1), TREES), &ledger),
            "WrongOwnerSignature",
        ),
        case(
            here(),
            "a payment with another's signature",
            respent(&small, other.signature, &ledger),
            "WrongOwnerSignature",
        ),
        case(here(), "an exit without a signature too early", exit(false).1, "WrongOwnerSignature"),
        case(here(), "an output that the ledger does not know", unknown.request, "UnknownOutput"),
        case(here(), "more than the ledger created", more.request, "ProofOfAnother"),
        case(here(), "a proof too few", respent(&large, large.signature, &ledger), MALFORMED),
        case(
            here(),
            "a proof too many",
            respent(&small, small.signature, &[OutputProof::Ledger, OutputProof::Ledger]),
            MALFORMED,
        ),
        case(
            here(),
            "the proof of a sibling",
            respent(&spends_one, spends_one.signature, &[proof(&crossed, 1)]),
            "WrongPath",
        ),
        case(
            here(),
            "the proof of a twin",
            respent(&spends_one, spends_one.signature, &[proof(&twin, 0)]),
            "ProofOfAnother",
        ),
        case(here(), "a parent of an unknown epoch", old, "UnknownCommittee"),
        case(at(SHARDS, 0, SHARDS), "a payment of another home", small.request.clone(), "ForeignHome"),
        case(at(TREES, 1, TREES), "an owner of another shard", foreign.request, "ForeignShard"),
        case(here(), "a payment into an epoch that has not begun", later.request, "WrongEpoch"),
        case(at(GROUP, 0, GROUP + 1), "a payment that comes too late", small.request.clone(), "WrongEpoch"),
        case(at(GROUP, 0, GROUP + 2), "a payment when only exits are signed", child.request, "WrongEpoch"),
        case(at(GROUP, 0, GROUP + 3), "an exit when the home has ended", exit(true).1, "WrongEpoch"),
        case(known, "a second payment of an output", conflicting, "Conflict"),
        case(here(), "under scheme 4", [&[5, 4], &small.request[..]].concat(), MALFORMED),
        case(
            at(TREES, 0, TREES),
            "under a BLS key that does not exist",
            AnswerScheme::Bls.ask(&small.request),
            "WrongBlsKey",
        ),
        case(
            at(SHARDS, 0, SHARDS),
            "under a share that does not exist",
            AnswerScheme::Share.ask(&small.request),
            "NoGroupKey",
        ),
        case(here(), "an empty batch", batch(&[]), MALFORMED),
        case(here(), "a batch of a settlement", batch(&[settle(&small, &certify(&small))]), MALFORMED),
        case(
            here(),
            "a batch under a share",
            AnswerScheme::Share.ask(&batch(std::slice::from_ref(&small.request))),
            MALFORMED,
        ),
        case(
            here(),
            "a settlement of too few",
            settle(&small, &Subject::of(CONFIRMED, &small).answers(&[0, 1])),
            SIGNERS,
        ),
        case(here(), "a question that another key signed", question(&owner(2)), "WrongOwnerSignature"),
    ]
}

fn other_input() -> OutputId {
    deposit(GROUP, 1, 7, FREE, 100).id
}

/// An owner that belongs to the second shard of the member with two.
fn foreign_owner() -> u8 {
    let committee = plain(TREES);
    (1..100).find(|number| committee.shard_of(1, &owner(*number).public()) == Ok(1)).expect("about half of all")
}

/// A request whose proof is of an epoch before the previous one.
fn unregistered_parent(like: &SignedPayment) -> Vec<u8> {
    let view = PaymentView::parse(&like.payment).expect("sound");
    let paid = output(to(2), FREE, 50);
    let parent = crossing();
    let mut proof = received(&parent, 0, Subject::of(CONFIRMED, &parent).answers(&[0, 1, 2])).proof;
    proof.summary.home = 3;
    let id = proof.id_of(&NETWORK, &paid).expect("its path");
    let holding = Holding { id, output: paid, proof: OutputProof::Payment(Box::new(proof)) };
    pay(2, view.home(), view.into_epoch(), &[holding], view.outputs().collect()).request
}

/// A registration with one change, signed again by its registrar where the change is the registrar's own.
fn registrations() -> Vec<Refused> {
    let case =
        |name, of: &LaneRegistration, reason| (Case { form: Form::Registration, name, bytes: of.encode() }, reason);
    let keys: Vec<SecretKey> = (0..2).map(|shard| shard_key(SHARDS, 1, shard)).collect();
    let bls: Vec<BlsSecretKey> = (0..2).map(|shard| bls_key(SHARDS, 1, shard)).collect();
    let make = |keys: &[SecretKey], bls: &[BlsSecretKey], of: &SecretKey| {
        LaneRegistration::make_with_bls(&NETWORK, SHARDS, 1, keys, bls, of).0
    };
    let good = make(&keys, &bls, &registrar(1));
    let resigned = |change: &dyn Fn(&mut LaneRegistration)| {
        let mut other = with(&good, change);
        let encoded = other.encode();
        // Signed are the head with kind 8 and all from the member on, before the signature.
        let head = [b"walras-lane\x01", &NETWORK.0[..], &SHARDS.to_le_bytes(), &[8]].concat();
        other.signature = registrar(1).sign(&[&head[..], &encoded[8..encoded.len() - 64]].concat());
        other
    };
    let stolen = registration(SHARDS, 2).expect("it registers").0;
    let mut empty = good.encode();
    empty[9..11].copy_from_slice(&[0, 0]);
    let many = with(&make(&keys, &[], &registrar(1)), |of| of.keys = vec![of.keys[0]; 257]);
    let with_17 = with(&good, |of| {
        of.keys = vec![of.keys[0]; 17];
        of.bls = vec![of.bls[0]; 17];
    });
    let wrong = "WrongRegistration";
    vec![
        case("keys that another registrar signed", &make(&keys, &bls, &registrar(2)), wrong),
        case("keys of another member", &with(&good, |of| of.member = 2), wrong),
        case("keys of another epoch", &with(&good, |of| of.epoch += 1), wrong),
        case("keys in another order", &with(&good, |of| of.keys.swap(0, 1)), wrong),
        case("a key twice", &make(&[keys[0].clone(), keys[0].clone()], &bls, &registrar(1)), wrong),
        case("a BLS key twice", &make(&keys, &[bls[0].clone(), bls[0].clone()], &registrar(1)), wrong),
        case("another's BLS key", &resigned(&|of| of.bls[0] = stolen.bls[0]), "WrongBlsKey"),
        case("a BLS key that is no point", &resigned(&|of| of.bls[0].key = [0; 96]), "WrongBlsKey"),
        case("a BLS key that is the identity", &resigned(&|of| of.bls[0].key = identity()), "WrongBlsKey"),
        case("257 shards", &many, MALFORMED),
        case("17 shards with BLS keys", &with_17, MALFORMED),
        (Case { form: Form::Registration, name: "no shards", bytes: empty }, MALFORMED),
    ]
}

fn identity() -> [u8; 96] {
    with(&[0; 96], |bytes: &mut [u8; 96]| bytes[0] = 0xc0)
}

fn posts() -> Vec<Refused> {
    let case = |name, of: &BridgeOperation, reason| (post(name, of), reason);
    let (small, [one, other]) = (small(GROUP), contradictory());
    let subject = |payment: &SignedPayment| Subject::of(CONFIRMED, payment);
    let answered = |payment: &SignedPayment, members: &[u8]| (payment.clone(), subject(payment).answers(members));
    let threshold = |payment: &SignedPayment| (payment.clone(), subject(payment).threshold(&[0, 1, 2]));
    let foreign = PaymentBody::parse(&small.payment).expect("sound").payment;
    let foreign = with(&foreign, |payment| payment.network = Digest([1; 32])).encode();
    let redeem = |payment: Vec<u8>, certificate| BridgeOperation::Redeem { payment, certificate };
    let good = subject(&small).answers(&[0, 1, 2]);
    let (registration, proofs) = registered(SHARDS, 2);
    let register = |proofs: Vec<Signature>| BridgeOperation::Register { registration: registration.clone(), proofs };
    let (dealing, signature) = dealings().swap_remove(1);
    let deal =
        |epoch, dealing: &Dealing| BridgeOperation::Deal { epoch, dealing: Box::new(dealing.clone()), signature };
    let seven = with(&dealing, |of| {
        of.commitments = vec![of.commitments[0]; 5];
        of.shares = vec![of.shares[0]; 7];
    });
    let few = certified(&small, &[0, 1]);
    let of_other = certified(&other, &[0, 1, 2]);
    let mut two = [contested(&owner(1), 2), contested(&owner(1), 3)];
    two.sort_by_key(|of| std::cmp::Reverse(of.contested.output.id));
    let descending = BridgeOperation::Resolve { bid: 1, outputs: two.to_vec() };
    let bytes = |name, bytes: Vec<u8>, reason| (Case { form: Form::Post, name, bytes }, reason);
    let stranger = with(&registration, |of| of.member = 9);
    vec![
        bytes("a post of kind 1", vec![1], MALFORMED),
        bytes("a post of kind 11", vec![11, 0], MALFORMED),
        case("redeem on another network", &redeem(foreign, good.clone()), "ForeignNetwork"),
        case(
            "redeem with another's certificate",
            &redeem(other.payment.clone(), subject(&one).answers(&[0, 1, 2])),
            "WrongSignature",
        ),
        case("resolve what another key signed", &resolve(vec![contested(&owner(2), 2)]), "WrongOwnerSignature"),
        case("resolve in another order", &descending, MALFORMED),
        case("resolve nothing", &BridgeOperation::Resolve { bid: 1, outputs: Vec::new() }, MALFORMED),
        case("vote without the owner's signature", &vote(&small.payment, None), "WrongOwnerSignature"),
        case(
            "vote with another's signature",
            &vote(&small.payment, Some(other_signature(&small))),
            "WrongOwnerSignature",
        ),
        case("a view without its certificate", &view(Some(small.digest), None), "WrongSignature"),
        case("an empty view with a certificate", &view(None, Some(certified(&small, &[0, 1, 2]))), "WrongSignature"),
        case("a view with another certificate", &view(Some(one.digest), Some(of_other)), "WrongSignature"),
        case("a view with too few signers", &view(Some(small.digest), Some(few)), SIGNERS),
        case("halt in another round", &halt(4, 3), "WrongSignature"),
        case("register with one proof for two keys", &register(vec![proofs[0]; 2]), "WrongRegistration"),
        case("register with a proof too few", &register(proofs[..1].to_vec()), MALFORMED),
        case(
            "register for no member",
            &BridgeOperation::Register { registration: stranger, proofs: proofs.clone() },
            "WrongRegistration",
        ),
        case("accuse of one payment twice", &accuse([answered(&one, &[1]), answered(&one, &[1])]), MALFORMED),
        case("accuse in another order", &accuse([answered(&other, &[1]), answered(&one, &[1])]), MALFORMED),
        case("accuse with two answers", &accuse([answered(&one, &[1, 2]), answered(&other, &[1])]), SIGNERS),
        case("accuse another member", &accuse([answered(&one, &[2]), answered(&other, &[2])]), SIGNERS),
        case("accuse by the group key", &accuse([threshold(&one), threshold(&other)]), SIGNERS),
        case("deal what was changed", &deal(GROUP, &with(&dealing, |of| of.shares[0][0] ^= 1)), "WrongDealing"),
        case("deal for seven members", &deal(GROUP, &seven), "WrongDealing"),
        case("deal for an epoch without BLS keys", &deal(TREES, &dealing), "WrongBlsKey"),
        case("deal for an unknown epoch", &deal(9, &dealing), "UnknownCommittee"),
    ]
}

/// The signature of somebody else on a payment.
fn other_signature(payment: &SignedPayment) -> Signature {
    owner(3).sign(&owner_message(&NETWORK, GROUP, &payment.digest))
}

fn boards() -> Vec<Refused> {
    let good = dealings();
    let case = |name, bytes, reason| (Case { form: Form::Board(GROUP), name, bytes }, reason);
    let of = |dealings: &[(Dealing, Signature)], out: &[u8], struck: &[u8]| board_bytes(dealings, out, struck);
    let swapped = with(&good, |all| all.swap(0, 1));
    let unsigned = with(&good, |all| all[2].1.0[0] ^= 1);
    vec![
        case("a board whose dealers descend", of(&swapped, &[3], &[]), MALFORMED),
        case("a board with a dealing that nobody signed", of(&unsigned, &[3], &[]), "WrongDealing"),
        case("a board that strikes two members", of(&good, &[3], &[0, 1]), "NoGroupKey"),
        case("a board with one accepted dealer", of(&good, &[1, 2, 3], &[]), "NoGroupKey"),
        case("a board that rejects who has not dealt", of(&good[..3], &[3], &[]), MALFORMED),
        case("a board of nobody", of(&[], &[], &[]), MALFORMED),
        (
            Case { form: Form::Board(SHARDS), name: "a board of two shards each", bytes: of(&good, &[3], &[]) },
            "WrongBlsKey",
        ),
    ]
}

fn texts() -> Vec<Refused> {
    let good = deposit_slip(100).encode(&NETWORK);
    let slip = |name, text: String, reason| (Case { form: Form::Slip, name, bytes: text.into_bytes() }, reason);
    let elsewhere = deposit_slip(100).encode(&Digest([1; 32]));
    let receipt = received(&small(TREES), 0, Subject::of(CONFIRMED, &small(TREES)).answers(&[0, 1, 2]));
    let receipt = Slip::Receipt(receipt).encode(&NETWORK);
    vec![
        slip("a slip without its beginning", good[1..].into(), "Prefix"),
        slip("a slip with a letter", good.replacen('0', "G", 1), "Digits"),
        slip("a slip with half a byte", good[..good.len() - 1].into(), "Digits"),
        slip("a slip of three bytes", "WALRAS:010100".into(), "Short"),
        slip("a slip of version 2", good.replacen("WALRAS:01", "WALRAS:02", 1), "Strange"),
        slip("a slip of kind 4", good.replacen("WALRAS:0103", "WALRAS:0104", 1), "Strange"),
        slip("a slip of another network", elsewhere, "OtherNetwork"),
        slip("a slip of no money", deposit_slip(0).encode(&NETWORK), "Deposit"),
        slip("a receipt that is cut", receipt[..receipt.len() - 2].into(), MALFORMED),
        slip("a deposit as a receipt", good.replacen("WALRAS:0103", "WALRAS:0101", 1), MALFORMED),
    ]
}

fn frames() -> Vec<Refused> {
    let of = |form: Form, name, bytes: &[u8], reason| (Case { form, name, bytes: bytes.to_vec() }, reason);
    let reply = |name, bytes: &[u8], reason| of(Form::Reply, name, bytes, reason);
    vec![
        of(Form::Frame, "a frame of three bytes", &[3, 0, 0, 0, 0, 0, 0, 0], "a frame is shorter than its number"),
        of(Form::Frame, "a frame of 16,385 bytes", &[5, 64, 0, 0, 1, 0, 0, 0], "a frame is larger than any message"),
        reply("an empty reply", &[], "a reply is empty"),
        reply("a reply of kind 7", &[7], "a reply is of no known kind"),
        reply("an answer of kind 4", &[&[1, 4], &[0; 32 + 81][..]].concat(), "an answer is of no known kind"),
        reply("an answer without a signature", &[&[1, 2], &[0; 40][..]].concat(), "an answer is malformed"),
        reply("a refusal that is no text", &[2, 0, 0xff], "a refusal is no text"),
        reply("a refusal that is neither final nor not", &[2, 2, 65], "a refusal is final (0) or not (1)"),
        reply("a position of two", &[3, 2], "a position is malformed"),
        reply("a BLS answer that is short", &[4, 2, 0], "an answer is malformed"),
        reply("a batch answer of scheme 4", &[5, 4, 0], "the answer to a batch is malformed"),
        reply(
            "a spender that is neither there nor not",
            &[&[6], &[0; 32][..], &[2]].concat(),
            "what spends an output is malformed",
        ),
    ]
}

/// All mutations with their reasons.
pub fn cases() -> Vec<Refused> {
    let all = [
        payments(),
        forged::certificates(),
        receipts(),
        requests(),
        registrations(),
        posts(),
        boards(),
        texts(),
        frames(),
    ];
    all.into_iter().flatten().collect()
}
