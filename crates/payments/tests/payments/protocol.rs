//! The protocol end to end, the layout, and refused inputs.

use crate::lane::*;
use payments::*;
use primitives::{Address, AssetId, Digest, PublicKey, Signature};
use proptest::prelude::*;

fn confirmed(nodes: &mut [Node], payment: &SignedPayment) -> Vec<FastReceipt> {
    let certificate = certify(nodes, StatementKind::Confirmation, payment, &payment.request);
    receipts(payment, &certificate)
}

#[test]
fn money_moves_and_settles_under_both_schemes_at_every_size() {
    for n in [1, 2, 3, 4, 5, 7, 10] {
        for leaves in [1, 8] {
            let coins = [genesis(0, 1, 100), genesis(1, 1, 50)];
            let mut nodes = nodes(n, leaves, &coins);
            let committee = nodes[0].settings.committee.clone();
            let first = pay(1, &coins, vec![output(owner(2).public(), 120), output(owner(1).public(), 30)]);
            let receipts = confirmed(&mut nodes, &first);
            let mut roots = RootCache::new(0);
            let holding = receipts[0].verify(&committee, &mut roots).expect("a receipt verifies offline");
            assert_eq!(holding.output, output(owner(2).public(), 120));
            assert_eq!(FastReceipt::parse(&receipts[0].encode()), Ok(receipts[0].clone()));
            let request = receipts[0].settle_request();
            let acknowledgement = certify(&mut nodes, StatementKind::Acknowledgement, &first, &request);
            let settled = SettledReceipt { fast: receipts[0].clone(), acknowledgement };
            assert_eq!(settled.verify(&committee, &mut roots), Ok(holding.clone()));
            let confused = SettledReceipt { acknowledgement: receipts[0].proof.certificate.clone(), ..settled };
            assert!(confused.verify(&committee, &mut roots).is_err(), "a confirmation is no acknowledgement");
            let second = pay(2, &[holding], vec![output(owner(3).public(), 120)]);
            assert_eq!(confirmed(&mut nodes, &second).len(), 1);
        }
    }
}

#[test]
fn one_tree_answers_many_payments() {
    let coins: Vec<Holding> = (0..5).map(|i| genesis(i, i.into(), 10)).collect();
    let mut node = nodes(1, 5, &coins).remove(0);
    let payments: Vec<_> =
        (0..5u64).map(|i| pay(i, &coins[i as usize..][..1], vec![output(owner(9).public(), 10)])).collect();
    let effects: Vec<_> = payments.iter().flat_map(|payment| node.request(&payment.request)).collect();
    assert!(matches!(effects[..], [LaneEffect::Append(_), LaneEffect::Sync(_)]), "the tree is closed by its size");
    let answers = answers(node.sync());
    assert_eq!(answers.len(), 5);
    let (committee, mut roots) = (node.settings.committee.clone(), RootCache::new(4));
    for (payment, (_, kind, digest, answer)) in payments.iter().zip(&answers) {
        assert_eq!((payment.digest, answer.size), (*digest, 5));
        let owner = PaymentView::parse(&payment.payment).unwrap().owner();
        let claim = Claim { kind: *kind, owner: &owner, digest };
        let budget = &mut CheckBudget(1);
        roots.verify(&committee, &claim, answer, budget).expect("a correct answer");
        assert_eq!(budget.0, u32::from(answer.index > 0), "the root is verified once");
        let mut wrong = answer.clone();
        wrong.signature = Signature([1; 64]);
        assert_eq!(roots.verify(&committee, &claim, &wrong, &mut CheckBudget(1)), Err(LaneRefusal::WrongSignature(0)));
        let mut wrong = answer.clone();
        wrong.index ^= 1;
        assert!(roots.verify(&committee, &claim, &wrong, &mut CheckBudget(1)).is_err());
        let mut wrong = answer.clone();
        wrong.position += 1;
        assert!(roots.verify(&committee, &claim, &wrong, &mut CheckBudget(1)).is_err(), "the position is signed");
        assert_eq!(
            LaneAnswer::parse(&{
                let mut b = vec![];
                answer.write(&mut b);
                b
            }),
            Ok(answer.clone())
        );
    }
}

fn resigned(payment: &Payment, proofs: &[OutputProof]) -> Vec<u8> {
    let bytes = payment.encode();
    let digest = PaymentView::parse(&bytes).map_or(Digest([0; 32]), |view| view.digest());
    let signature = owner(1).sign(&owner_message(&payment.network, payment.home, &digest));
    spend_request(&bytes, &signature, proofs)
}

#[test]
fn what_is_wrong_is_refused_with_a_reason_and_leaves_no_state() {
    let coins = [genesis(0, 1, 100), genesis(1, 1, 50), genesis(2, 2, 50)];
    let mut node = nodes(4, 1, &coins).remove(0);
    let correct = pay(1, &coins[..2], vec![output(owner(2).public(), 150)]);
    let base = PaymentView::parse(&correct.payment).unwrap().to_payment();
    let change = |edit: &dyn Fn(&mut Payment)| {
        let mut payment = base.clone();
        edit(&mut payment);
        let proofs = vec![OutputProof::Ledger; payment.inputs.len()];
        resigned(&payment, &proofs)
    };
    type Case<'a> = (&'a str, Vec<u8>, fn(&LaneRefusal) -> bool);
    let cases: Vec<Case<'_>> = vec![
        ("sum", change(&|p| p.outputs[0].amount = 151), |r| matches!(r, LaneRefusal::WrongSum { .. })),
        ("burn", change(&|p| p.outputs[0].amount = 149), |r| matches!(r, LaneRefusal::WrongSum { .. })),
        ("asset", change(&|p| p.outputs[0].asset = AssetId(1)), |r| matches!(r, LaneRefusal::WrongSum { .. })),
        ("zero", change(&|p| p.outputs.push(output(owner(3).public(), 0))), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("huge", change(&|p| p.outputs[0].amount = u64::MAX), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("duplicate", change(&|p| p.inputs[1] = p.inputs[0]), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("order", change(&|p| p.inputs.reverse()), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("17 outputs", change(&|p| p.outputs = vec![p.outputs[0]; 17]), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("300 inputs", change(&|p| p.inputs = vec![p.inputs[0]; 300]), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("no inputs", change(&|p| p.inputs.clear()), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("far epoch", change(&|p| p.into = 2), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("last epoch", change(&|p| (p.home, p.into) = (u64::MAX, 0)), |r| matches!(r, LaneRefusal::Malformed(_))),
        ("next epoch", change(&|p| p.into = 1), |r| matches!(r, LaneRefusal::WrongEpoch { .. })),
        ("home", change(&|p| (p.home, p.into) = (1, 1)), |r| matches!(r, LaneRefusal::ForeignHome(1))),
        ("network", change(&|p| p.network = Digest([8; 32])), |r| matches!(r, LaneRefusal::ForeignNetwork(_))),
        ("unknown", change(&|p| p.inputs[0].id = OutputId([0; 32])), |r| matches!(r, LaneRefusal::UnknownOutput(_))),
        ("inflated", change(&|p| (p.inputs[0].amount, p.outputs[0].amount) = (p.inputs[0].amount + 1, 151)), |r| {
            matches!(r, LaneRefusal::ProofOfAnother(_))
        }),
        (
            "stolen",
            change(&|p| {
                p.inputs = vec![SpentOutput { id: coins[2].id, ..p.inputs[0] }];
                p.inputs[0].amount = 50;
                p.outputs[0].amount = 50
            }),
            |r| matches!(r, LaneRefusal::ProofOfAnother(_)),
        ),
        (
            "signature",
            spend_request(&correct.payment, &Signature([0; 64]), &[OutputProof::Ledger, OutputProof::Ledger]),
            |r| matches!(r, LaneRefusal::WrongOwnerSignature),
        ),
        ("few proofs", spend_request(&correct.payment, &correct.signature, &[OutputProof::Ledger]), |r| {
            matches!(r, LaneRefusal::Malformed(_))
        }),
        ("many proofs", spend_request(&correct.payment, &correct.signature, &vec![OutputProof::Ledger; 3]), |r| {
            matches!(r, LaneRefusal::Malformed(_))
        }),
        ("oversized", vec![1; request_bytes_max(3) + 1], |r| matches!(r, LaneRefusal::Malformed(_))),
        ("empty", vec![], |r| matches!(r, LaneRefusal::Malformed(_))),
        ("kind", vec![3], |r| matches!(r, LaneRefusal::Malformed(_))),
    ];
    for (name, bytes, expected) in cases {
        let effects = node.request(&bytes);
        assert!(refusals(&effects).iter().any(expected), "{name}: {effects:?}");
        assert_eq!((node.validator.entries(), node.step(LaneInput::Tick)), (0, vec![]), "{name} left state");
    }
    node.ask(&correct.request).expect("the correct payment still succeeds");
}

#[test]
fn certificates_need_a_quorum_of_distinct_signers_and_the_right_tree() {
    let coins = [genesis(0, 1, 100)];
    let mut nodes = nodes(4, 1, &coins);
    let payment = pay(1, &coins, vec![output(owner(2).public(), 60), output(owner(1).public(), 40)]);
    let receipt = confirmed(&mut nodes, &payment).remove(0);
    let committee = nodes[0].settings.committee.clone();
    let check = |edit: &dyn Fn(&mut FastReceipt)| {
        let mut receipt = receipt.clone();
        edit(&mut receipt);
        receipt.verify(&committee, &mut RootCache::new(0)).map(drop)
    };
    let signers = Err(LaneRefusal::WrongSigners { needed: 3 });
    assert_eq!(check(&|_| {}), Ok(()));
    assert_eq!(check(&|r| drop(list(&mut r.proof.certificate).pop())), signers);
    assert_eq!(check(&|r| list(&mut r.proof.certificate)[1] = list(&mut r.proof.certificate)[0].clone()), signers);
    assert_eq!(check(&|r| list(&mut r.proof.certificate).reverse()), signers);
    assert_eq!(check(&|r| list(&mut r.proof.certificate)[2].validator = 4), signers);
    assert!(check(&|r| list(&mut r.proof.certificate)[2].validator = 3).is_err(), "another's signature");
    assert_eq!(check(&|r| list(&mut r.proof.certificate)[0].path.push(Digest([0; 32]))), Err(LaneRefusal::WrongPath));
    assert_eq!(check(&|r| r.proof.path[0].0[0] ^= 1), Err(LaneRefusal::WrongPath));
    assert_eq!(check(&|r| r.proof.index = 1), Err(LaneRefusal::WrongPath));
    assert_eq!(check(&|r| r.output.amount += 1), Err(LaneRefusal::WrongPath));
    assert_eq!(check(&|r| r.output.to = Recipient::Key(owner(3).public())), Err(LaneRefusal::WrongPath));
    assert!(check(&|r| r.proof.summary.into = 1).is_err());
    assert_eq!(check(&|r| r.proof.summary.home = 1), Err(LaneRefusal::UnknownCommittee(1)));
    for (network, epoch) in [(Digest([8; 32]), 0), (NETWORK, 1)] {
        let other = committee_of(network, epoch, 4, 1);
        assert!(receipt.verify(&other, &mut RootCache::new(0)).is_err(), "replayed over networks or epochs");
    }
}

#[test]
fn an_output_for_an_account_is_no_input() {
    let coins = [genesis(0, 1, 100)];
    let mut nodes = nodes(1, 1, &coins);
    let redeemed = Output { to: Recipient::Account(Address([5; 20])), asset: ASSET, amount: 100 };
    let payment = pay(1, &coins, vec![redeemed]);
    let receipt = confirmed(&mut nodes, &payment).remove(0);
    let holding = receipt.verify(&nodes[0].settings.committee.clone(), &mut RootCache::new(0)).unwrap();
    let back = pay(1, &[holding], vec![output(owner(1).public(), 100)]);
    assert_eq!(nodes[0].ask(&back.request), Err(LaneRefusal::WrongPath));
}

#[test]
fn shards_sign_for_their_own_range_only() {
    let committee = committee_of(NETWORK, 0, 4, 4);
    let coins: Vec<Holding> = (0..16).map(|i| genesis(i, i.into(), 10)).collect();
    for number in 0..16u64 {
        let coin = coins[number as usize].clone();
        let payment = pay(number, &[coin], vec![output(owner(99).public(), 10)]);
        let right = committee.shard_of(0, &owner(number).public()).unwrap();
        for shard in 0..4 {
            let mut node = Node::new(LaneSettings { shard, ..settings(&committee, 0, 1) }, &coins);
            let result = node.ask(&payment.request);
            assert_eq!(result.is_ok(), shard == right);
            assert!(shard == right || result == Err(LaneRefusal::ForeignShard(right)));
        }
    }
    // A key outside its range: the shard of another owner signs, and the verifier computes another shard.
    let coin = coins[0].clone();
    let payment = pay(0, &[coin], vec![output(owner(99).public(), 10)]);
    let right = committee.shard_of(0, &owner(0).public()).unwrap();
    let mut lax = Node::new(LaneSettings { shard: right, ..settings(&committee, 0, 1) }, &coins);
    let answer = lax.ask(&payment.request).unwrap();
    let other = (1..64).map(|number| owner(number).public()).find(|key| committee.shard_of(0, key).unwrap() != right);
    let claim = Claim { kind: StatementKind::Confirmation, owner: &other.unwrap(), digest: &payment.digest };
    let result = RootCache::new(0).verify(&committee, &claim, &answer, &mut CheckBudget(1));
    assert_eq!(result, Err(LaneRefusal::WrongSignature(0)));
}

#[test]
fn the_epoch_decides_what_is_signed_and_a_known_payment_is_answered_to_the_end() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 10), genesis(2, 1, 10)];
    let mut node = nodes(1, 1, &coins).remove(0);
    let to = vec![output(owner(2).public(), 10)];
    let build =
        |coin: usize, into| build_payment(&rules(), &owner(1), 0, into, vec![coins[coin].clone()], to.clone()).unwrap();
    let (first, second, third) = (build(0, 0), build(1, 1), build(2, 0));
    node.ask(&first.request).unwrap();
    node.step(LaneInput::Epoch(1));
    node.step(LaneInput::Epoch(0));
    assert_eq!(node.ask(&third.request), Err(LaneRefusal::WrongEpoch { into: 0, now: 1 }));
    node.ask(&second.request).unwrap();
    node.step(LaneInput::Epoch(2));
    assert_eq!(node.ask(&build(2, 1).request), Err(LaneRefusal::WrongEpoch { into: 1, now: 2 }));
    node.ask(&first.request).expect("the same answer");
    node.step(LaneInput::Epoch(3));
    assert_eq!(node.ask(&first.request), Err(LaneRefusal::Ended(0)));
}

#[test]
fn the_next_committee_accepts_outputs_of_the_one_before() {
    let coins = [genesis(0, 1, 10)];
    let mut old = nodes(4, 1, &coins);
    old.iter_mut().for_each(|node| drop(node.step(LaneInput::Epoch(1))));
    let to = vec![output(owner(2).public(), 10)];
    let crossing = build_payment(&rules(), &owner(1), 0, 1, coins.to_vec(), to.clone()).unwrap();
    let receipt = confirmed(&mut old, &crossing).remove(0);
    let previous = old[0].settings.committee.clone();
    let holding = receipt.verify(&previous, &mut RootCache::new(0)).unwrap();
    let next = committee_of(NETWORK, 1, 7, 1);
    let spend = build_payment(&rules(), &owner(2), 1, 1, vec![holding], to).unwrap();
    for previous in [Some(previous), None] {
        let known = previous.is_some();
        let mut node = Node::new(LaneSettings { previous, ..settings(&next, 0, 1) }, &[]);
        let result = node.ask(&spend.request);
        assert!(if known { result.is_ok() } else { result == Err(LaneRefusal::UnknownCommittee(0)) });
    }
    assert_eq!(old[0].ask(&spend.request), Err(LaneRefusal::ForeignHome(1)), "only the home committee signs");
}

#[test]
fn fees_least_units_and_the_number_of_assets_bind() {
    let mut rules = rules();
    rules.assets.insert(ASSET, AssetRule { least_units: 5, fee: 2 });
    let coin = genesis(0, 1, 100);
    let build = |outputs| build_payment(&rules, &owner(1), 0, 0, vec![coin.clone()], outputs).map(drop);
    let one = |amount| output(owner(2).public(), amount);
    assert_eq!(build(vec![one(98)]), Ok(()));
    assert!(matches!(build(vec![one(100)]), Err(LaneRefusal::WrongSum { inputs: 100, outputs: 102, .. })));
    assert!(matches!(build(vec![one(94), one(4)]), Err(LaneRefusal::TooSmall { amount: 4, least: 5, .. })));
    let assets = |count: u32| -> Result<(), LaneRefusal> {
        let coins = (1..=count).map(|asset| {
            let mut coin = genesis(asset, 1, 10);
            coin.output.asset = AssetId(asset);
            coin
        });
        let coins: Vec<Holding> = coins.collect();
        let outputs = coins.iter().map(|coin| coin.output).collect();
        build_payment(&rules, &owner(1), 0, 0, coins, outputs).map(drop)
    };
    assert_eq!((assets(4), assets(5)), (Ok(()), Err(LaneRefusal::TooManyAssets)));
}

fn any_output() -> impl Strategy<Value = Output> {
    let to = prop_oneof![
        any::<[u8; 32]>().prop_map(|key| Recipient::Key(PublicKey(key))),
        any::<[u8; 20]>().prop_map(|account| Recipient::Account(Address(account))),
    ];
    (to, any::<u32>(), 1..=primitives::MAX_ISSUED).prop_map(|(to, asset, amount)| Output {
        to,
        asset: AssetId(asset),
        amount,
    })
}

fn any_payment() -> impl Strategy<Value = Payment> {
    let input = (any::<[u8; 32]>(), any::<u32>(), 1..=primitives::MAX_ISSUED)
        .prop_map(|(id, asset, amount)| SpentOutput { id: OutputId(id), asset: AssetId(asset), amount });
    let inputs = prop::collection::vec(input, 1..=INPUTS_MAX).prop_map(|mut inputs| {
        inputs.sort_by_key(|input| input.id);
        inputs.dedup_by_key(|input| input.id);
        inputs
    });
    let outputs = prop::collection::vec(any_output(), 1..=OUTPUTS_MAX);
    (any::<[u8; 32]>(), 0..u64::MAX, 0..=1u64, any::<[u8; 32]>(), inputs, outputs).prop_map(
        |(network, home, next, owner, inputs, outputs)| Payment {
            network: Digest(network),
            home,
            into: home + next,
            owner: PublicKey(owner),
            inputs,
            outputs,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_payment_reads_back_as_it_was_written(payment in any_payment()) {
        let bytes = payment.encode();
        let view = PaymentView::parse(&bytes).unwrap();
        prop_assert_eq!(view.to_payment(), payment);
        prop_assert_eq!(view.bytes(), &bytes[..]);
    }

    #[test]
    fn whatever_decodes_encodes_to_the_same_bytes(
        payment in any_payment(), edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in 0..3usize, more in prop::collection::vec(any::<u8>(), 0..3)
    ) {
        let mut bytes = payment.encode();
        let before = bytes.clone();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut);
        bytes.extend(more);
        if let Ok(view) = PaymentView::parse(&bytes) {
            prop_assert_eq!(view.to_payment().encode(), bytes.clone());
            let same = PaymentView::parse(&before).unwrap().digest() == view.digest();
            prop_assert_eq!(same, before == bytes, "every byte is under the digest");
        }
    }

    #[test]
    fn random_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(view) = PaymentView::parse(&bytes) {
            prop_assert_eq!(view.to_payment().encode(), bytes.clone());
        }
        if let Ok(receipt) = FastReceipt::parse(&bytes) {
            prop_assert_eq!(receipt.encode(), bytes.clone());
        }
        if let Ok(answer) = LaneAnswer::parse(&bytes) {
            let mut written = Vec::new();
            answer.write(&mut written);
            prop_assert_eq!(written, bytes);
        }
    }
}

#[test]
fn requests_taken_together_are_answered_as_one_after_another() {
    let coins: Vec<Holding> = (0..40).map(|i| genesis(i, u64::from(i % 5), 10)).collect();
    let mut requests: Vec<Vec<u8>> =
        (0..40).map(|i| pay(i % 5, &coins[i as usize..][..1], vec![output(owner(9).public(), 10)]).request).collect();
    // An invalid signature, a retry, a conflict, a payment of someone else's money, and bytes that are no request.
    let at = requests[3].len() - 1 - 20;
    requests[3][at] ^= 1;
    requests.push(requests[7].clone());
    requests.push(pay(3, &coins[8..9], vec![output(owner(8).public(), 10)]).request);
    requests.push(pay(4, &coins[10..11], vec![output(owner(8).public(), 10)]).request);
    requests.push(vec![1, 2, 3]);
    requests.push(Vec::new());
    let (mut one, mut other) = (nodes(1, 7, &coins).remove(0), nodes(1, 7, &coins).remove(0));
    let alone: Vec<_> = requests.iter().map(|request| one.request(request)).collect();
    other.validator.verify_together(requests.iter().map(|request| (7, &request[..])));
    let together: Vec<_> = requests.iter().map(|request| other.request(request)).collect();
    assert!(together == alone, "the effects differ");
    let refused = together.iter().filter(|effects| !refusals(effects).is_empty()).count();
    assert_eq!(refused, 5, "all but the retry");
}

#[test]
fn the_owner_of_an_output_alone_hears_what_spends_it() {
    let coins = [genesis(0, 1, 100), genesis(1, 1, 50)];
    let settings = LaneSettings { checks_per_peer: 100, checks_per_tick: 100, ..settings(&committee(4), 0, 1) };
    let mut node = Node::new(settings, &coins);
    let payment = pay(1, &coins[..1], vec![output(owner(2).public(), 100)]);
    node.ask(&payment.request).expect("correct");
    let told = |node: &mut Node, request: &[u8]| {
        let effects = node.request(request);
        let spender = effects.iter().find_map(|effect| match effect {
            LaneEffect::Spender { output, spender, .. } => Some((*output, spender.clone())),
            _ => None,
        });
        spender.ok_or_else(|| refusals(&effects).pop().expect("an answer or a refusal"))
    };
    let request = |key: u64, output: &OutputId| spender_request(&NETWORK, 0, &owner(key), output);
    let (id, spender) = told(&mut node, &request(1, &coins[0].id)).expect("the owner asks");
    let spender = spender.expect("it is spent");
    assert_eq!((id, &spender.payment, spender.signature), (coins[0].id, &payment.payment, payment.signature));
    let of = |coin: &Holding, number: u64| ContestedOutput {
        output: SpentOutput { id: coin.id, asset: coin.output.asset, amount: coin.output.amount },
        home: 0,
        owner: owner(number).public(),
    };
    let own = of(&coins[0], 1);
    assert_eq!(spender.ground(&NETWORK, &own), Some(SpendGround::OwnerSigned));
    assert_eq!(spender.ground(&NETWORK, &of(&coins[1], 1)), None, "of another output");
    assert_eq!(spender.ground(&Digest([8; 32]), &own), None, "of another network");
    let forged = KnownSpender { signature: Signature([5; 64]), ..spender.clone() };
    assert_eq!(forged.ground(&NETWORK, &own), None, "it cannot be forged");
    // An exit needs no owner's signature, but it is of this owner, and of this amount.
    let exit = |contested: &ContestedOutput| KnownSpender {
        payment: contested.exit(NETWORK).encode(),
        signature: Signature([0; 64]),
    };
    assert_eq!(exit(&own).ground(&NETWORK, &own), Some(SpendGround::Exit));
    let wrong = SpentOutput { amount: 99, ..own.output };
    for lie in [of(&coins[0], 2), ContestedOutput { output: wrong, ..own }, ContestedOutput { home: 1, ..own }] {
        assert_eq!(exit(&lie).ground(&NETWORK, &own), None, "{lie:?}");
    }
    // The validator signs what it says.
    let signed = answers(node.request(&request(1, &coins[0].id)));
    let claim = Claim { kind: StatementKind::Confirmation, owner: &own.owner, digest: &payment.digest };
    let holds =
        |answer: &LaneAnswer| RootCache::new(0).verify(&committee(4), &claim, answer, &mut CheckBudget(9)).is_ok();
    assert!(signed.iter().any(|(_, _, digest, answer)| *digest == payment.digest && holds(answer)));
    assert_eq!(told(&mut node, &request(1, &coins[1].id)), Ok((coins[1].id, None)));
    // Another owner's query is answered as if nothing spent the output; an invalid signature is refused.
    assert_eq!(told(&mut node, &request(2, &coins[0].id)), Ok((coins[0].id, None)));
    let mut false_signature = request(1, &coins[0].id);
    *false_signature.last_mut().unwrap() ^= 1;
    assert_eq!(told(&mut node, &false_signature), Err(LaneRefusal::WrongOwnerSignature));
    let foreign = spender_request(&Digest([8; 32]), 0, &owner(1), &coins[0].id);
    assert_eq!(told(&mut node, &foreign), Err(LaneRefusal::WrongOwnerSignature));
    let elsewhere = spender_request(&NETWORK, 1, &owner(1), &coins[0].id);
    assert_eq!(told(&mut node, &elsewhere), Err(LaneRefusal::ForeignHome(1)));
    // It is known after a crash, too, and each query costs one check of the budget.
    let mut node = node.crash(0, &[]);
    assert_eq!(told(&mut node, &request(1, &coins[0].id)).expect("answered").1, Some(spender));
    while told(&mut node, &request(1, &coins[0].id)).is_ok() {}
    assert_eq!(told(&mut node, &request(1, &coins[0].id)), Err(LaneRefusal::Busy));
}
