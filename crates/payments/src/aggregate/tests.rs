//! Known answers and refused inputs.

use primitives::{Address, Digest};

use super::*;
use crate::bls::possession;
use crate::{BlsSecretKey, StatementKind};

const NETWORK: Digest = Digest([1; 32]);

fn secret(number: u8) -> BlsSecretKey {
    BlsSecretKey::from_seed([number; 32])
}

fn committee(n: u8) -> LaneCommittee {
    let lane = |number: u8| primitives::SecretKey::from_seed([number; 32]).public();
    let account = |number: u8| Address([number; 20]);
    let register = |number: u8| {
        let key = secret(number);
        vec![(key.public(), account(number), key.prove_possession(&NETWORK, &account(number)))]
    };
    LaneCommittee::new(NETWORK, 3, (0..n).map(|number| vec![lane(number)]).collect())
        .with_bls((0..n).map(register).collect())
        .expect("proofs hold")
}

fn owner() -> PublicKey {
    PublicKey([9; 32])
}

fn aggregate(committee: &LaneCommittee, digest: &Digest, signers: impl Iterator<Item = u8>) -> BlsAggregate {
    let sign = |v: u8| (v, secret(v).sign(&NETWORK, 3, StatementKind::Confirmation, digest));
    BlsAggregate::of(committee, &signers.map(sign).collect::<Vec<_>>()).expect("distinct members")
}

fn claim(digest: &Digest) -> Claim<'_> {
    static OWNER: PublicKey = PublicKey([9; 32]);
    Claim { kind: StatementKind::Confirmation, owner: &OWNER, digest }
}

#[test]
fn a_quorum_verifies_and_anything_else_does_not() {
    for n in [1, 4, 10] {
        let committee = committee(n);
        let quorum = committee.quorums().certificate as u8;
        let digest = Digest([7; 32]);
        let good = aggregate(&committee, &digest, 0..quorum);
        assert_eq!(good.verify(&committee, &claim(&digest)), Ok(()));
        assert_eq!(aggregate(&committee, &digest, 0..n).verify(&committee, &claim(&digest)), Ok(()), "all");
        let other = Digest([8; 32]);
        assert_eq!(good.verify(&committee, &claim(&other)), Err(LaneRefusal::WrongAggregate));
        let kind = Claim { kind: StatementKind::Acknowledgement, ..claim(&digest) };
        assert_eq!(good.verify(&committee, &kind), Err(LaneRefusal::WrongAggregate));
        let signers = Err(LaneRefusal::WrongSigners { needed: quorum.into() });
        let change = |edit: &dyn Fn(&mut BlsAggregate)| {
            let mut wrong = good.clone();
            edit(&mut wrong);
            wrong.verify(&committee, &claim(&digest))
        };
        assert_eq!(change(&|wrong| wrong.signers[0] &= !1), signers, "too few");
        assert_eq!(change(&|wrong| wrong.signers.push(0)), signers, "longer");
        assert_eq!(change(&|wrong| wrong.signers.truncate(usize::from(n) / 9)), signers, "shorter");
        assert_eq!(change(&|wrong| *wrong.signers.last_mut().unwrap() |= 0x80), signers, "a bit above the committee");
        if quorum < n {
            let said = change(&|wrong| wrong.signers[0] |= 1 << quorum);
            assert_eq!(said, Err(LaneRefusal::WrongAggregate), "a validator that did not sign");
        }
        let mut identity = [0; 48];
        identity[0] = 0xc0;
        assert_eq!(change(&|wrong| wrong.signature.0 = identity), Err(LaneRefusal::WrongAggregate), "identity");
        assert_eq!(change(&|wrong| wrong.signature.0[1] ^= 1), Err(LaneRefusal::WrongAggregate));
        let twice = [(0, good.signature), (0, good.signature)];
        assert!(BlsAggregate::of(&committee, &twice).is_err(), "one validator signs once");
        assert!(BlsAggregate::of(&committee, &[(n, good.signature)]).is_err(), "a non-member");
        let mut bytes = Vec::new();
        good.write(&mut bytes);
        assert_eq!(BlsAggregate::read(&mut Reader::new(&bytes)), Ok(good.clone()));
        assert_eq!(bytes.len(), 1 + usize::from(n).div_ceil(8) + 48);
    }
}

#[test]
fn a_rogue_key_is_refused() {
    // The attacker knows the others' keys and registers x·G − (their sum): with it, the attacker alone could sign for
    // all.
    let others = [secret(0).public(), secret(1).public()];
    let mine = secret(77);
    let mut sum = AggregatePublicKey::from_public_key(&mine.public().point);
    let points = others.iter().map(|key| AggregatePublicKey::from_public_key(&key.point)).collect::<Vec<_>>();
    points.iter().for_each(|point| sum.sub_aggregate(point));
    let rogue = BlsPublicKey::parse(&sum.to_public_key().compress()).expect("it is a point of the subgroup");
    // Without proofs of possession the forgery succeeds.
    let digest = Digest([7; 32]);
    let forged = mine.sign(&NETWORK, 3, StatementKind::Confirmation, &digest);
    let all = AggregatePublicKey::aggregate(&[&others[0].point, &others[1].point, &rogue.point], false).unwrap();
    let message = message(&NETWORK, 3, StatementKind::Confirmation, &digest);
    assert!(holds(&forged, &message, SIGNATURE_TAG, &all.to_public_key()), "the attack is real");
    // With them it cannot be registered: no one knows its secret.
    let account = Address([5; 20]);
    for proof in [mine.prove_possession(&NETWORK, &account), forged] {
        assert_eq!(rogue.check_possession(&NETWORK, &account, &proof), Err(LaneRefusal::WrongBlsKey));
    }
}

#[test]
fn a_proof_of_possession_is_bound_to_network_account_and_tag() {
    let (key, account) = (secret(1), Address([5; 20]));
    let proof = key.prove_possession(&NETWORK, &account);
    let public = key.public();
    assert_eq!(public.check_possession(&NETWORK, &account, &proof), Ok(()));
    let wrong = Err(LaneRefusal::WrongBlsKey);
    assert_eq!(public.check_possession(&Digest([2; 32]), &account, &proof), wrong);
    assert_eq!(public.check_possession(&NETWORK, &Address([6; 20]), &proof), wrong);
    assert_eq!(secret(2).public().check_possession(&NETWORK, &account, &proof), wrong);
    let message = possession(&NETWORK, &account, &public);
    let signature = BlsSignature(key.0.sign(&message, SIGNATURE_TAG, &[]).compress());
    assert_eq!(public.check_possession(&NETWORK, &account, &signature), wrong, "the tag of signatures");
}

#[test]
fn keys_and_signatures_outside_the_subgroup_and_the_identity_are_refused() {
    let mut identity = [0; 96];
    identity[0] = 0xc0;
    assert_eq!(BlsPublicKey::parse(&identity), Err(LaneRefusal::WrongBlsKey));
    assert_eq!(BlsPublicKey::parse(&[0xff; 96]), Err(LaneRefusal::WrongBlsKey));
    // Points of the curve that are not in the subgroup: most small x coordinates that have a point.
    let mut outside = 0;
    for x in 1..=40u8 {
        let mut key = [0; 96];
        (key[0], key[95]) = (0x80, x);
        if Point::uncompress(&key).is_ok() {
            assert_eq!(BlsPublicKey::parse(&key), Err(LaneRefusal::WrongBlsKey), "key x = {x}");
            outside += 1;
        }
        let mut signature = [0; 48];
        (signature[0], signature[47]) = (0x80, x);
        if Curve::uncompress(&signature).is_ok() {
            assert!(parse_signature(&BlsSignature(signature)).is_none(), "signature x = {x}");
            outside += 1;
        }
    }
    assert!(outside > 20, "{outside}");
}

fn unhex<const N: usize>(text: &str) -> [u8; N] {
    primitives::from_hex(text).expect("hexadecimal")
}

/// RFC 9380, appendix J.9.1: points that hash to the curve, for the suite that signatures use here.
#[test]
fn hashing_to_the_curve_gives_the_points_of_the_standard() {
    let tag = b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
    let vectors = [
        (
            &b""[..],
            "052926add2207b76ca4fa57a8734416c8dc95e24501772c814278700eed6d1e4e8cf62d9c09db0fac349612b759e79a1",
            "08ba738453bfed09cb546dbb0783dbb3a5f1f566ed67bb6be0e8c67e2e81a4cc68ee29813bb7994998f3eae0c9c6a265",
        ),
        (
            b"abc",
            "03567bc5ef9c690c2ab2ecdf6a96ef1c139cc0b2f284dca0a9a7943388a49a3aee664ba5379a7655d3c68900be2f6903",
            "0b9c15f3fe6e5cf4211f346271d7b01c8f3b28be689c8429c85b67af215533311f0b8dfaaa154fa6b88176c229f2885d",
        ),
    ];
    for (message, x, y) in vectors {
        let point = blstrs::G1Projective::hash_to_curve(message, tag, &[]);
        let expected = [unhex::<48>(x), unhex(y)].concat();
        assert_eq!(point.to_uncompressed().to_vec(), expected);
    }
}

/// Round 1,000 of the public randomness beacon quicknet (drand): the signature of another group, made by a threshold
/// of its members, with keys in G2 and signatures in G1 as here. Its message is SHA-256 of the round's number.
#[test]
fn a_published_threshold_signature_verifies() {
    let key = unhex::<96>(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec75\
         8c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a",
    );
    let signature = BlsSignature(unhex(
        "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
    ));
    let message: [u8; 32] = unhex("f652498d092acd949bad74e40683bf3824fb817980504a0c7e6722cfc5a9c0a3");
    let tag = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";
    let key = BlsPublicKey::parse(&key).expect("a key");
    assert!(holds(&signature, &message, tag, &key.point));
    assert!(!holds(&signature, &message, SIGNATURE_TAG, &key.point), "the tag is part of the message");
}

#[test]
fn batches_hold_exactly_if_each_item_holds() {
    let committee = committee(4);
    let digests: Vec<Digest> = (0..6).map(|i| Digest([i; 32])).collect();
    let mut aggregates: Vec<BlsAggregate> = digests.iter().map(|digest| aggregate(&committee, digest, 0..3)).collect();
    let check = |aggregates: &[BlsAggregate]| {
        let items: Vec<_> = digests.iter().map(claim).zip(aggregates).collect();
        verify_aggregates(&committee, &items)
    };
    assert_eq!(check(&aggregates), Ok(()));
    assert_eq!(check(&[]), Ok(()));
    // Two signatures whose errors cancel in a plain sum.
    aggregates.swap(1, 2);
    assert_eq!(check(&aggregates), Err(LaneRefusal::WrongAggregate), "weights keep errors apart");
    aggregates.swap(1, 2);
    aggregates[5] = aggregates[4].clone();
    assert_eq!(check(&aggregates), Err(LaneRefusal::WrongAggregate));
    assert_eq!(owner(), *claim(&digests[0]).owner);
}
