//! Key generations of every size from 2 to 13 with f Byzantine dealers, and invalid certificates.

use primitives::{Address, PublicKey, SecretKey};
use proptest::prelude::*;

use super::*;
use crate::{DkgRefusal, LaneCommittee};

const NETWORK: Digest = Digest([1; 32]);
const EPOCH: HomeEpoch = 3;
const OWNER: PublicKey = PublicKey([9; 32]);

fn secret(member: u8) -> BlsSecretKey {
    BlsSecretKey::from_seed([member + 1; 32])
}

fn committee(n: u8) -> LaneCommittee {
    let account = Address([4; 20]);
    let register = |member: u8| {
        let key = secret(member);
        vec![(key.public(), account, key.prove_possession(&NETWORK, &account))]
    };
    let lane = |member: u8| vec![SecretKey::from_seed([member; 32]).public()];
    let committee = LaneCommittee::new(NETWORK, EPOCH, (0..n).map(lane).collect());
    committee.with_bls((0..n).map(register).collect()).expect("proofs hold")
}

fn terms(n: u8) -> DkgTerms {
    DkgTerms::of(&committee(n)).expect("each has a key")
}

fn deal(terms: &DkgTerms, dealer: u8) -> Dealing {
    dealing(terms, dealer, &[dealer.wrapping_add(50); 32])
}

/// A generation without faults.
fn generated(n: u8) -> KeyGeneration {
    let mut board = KeyGeneration::new(terms(n));
    (0..n).for_each(|dealer| board.deal(deal(board.terms(), dealer)).expect("correct"));
    board.close_dealing();
    for (member, dealer) in (0..n).flat_map(|member| (0..n).map(move |dealer| (member, dealer))) {
        assert_eq!(board.complaint(member, &secret(member), dealer), None);
    }
    board.finish().expect("a group key");
    board
}

fn share(board: &KeyGeneration, member: u8) -> Option<KeyShare> {
    board.share(member, &secret(member))
}

fn claim(digest: &Digest) -> Claim<'_> {
    Claim { kind: StatementKind::Confirmation, owner: &OWNER, digest }
}

fn signed(board: &KeyGeneration, members: impl Iterator<Item = u8>, digest: &Digest) -> Vec<(u8, BlsSignature)> {
    let sign = |member| {
        let share = share(board, member).expect("it has a share");
        (member, share.sign(&NETWORK, EPOCH, StatementKind::Confirmation, digest))
    };
    members.map(sign).collect()
}

/// The behaviour of a Byzantine dealer.
#[derive(Clone, Copy, Debug)]
enum Dealt {
    Well,
    Nothing,
    /// Wrong shares to the members of this mask.
    WrongTo(u16),
    /// The commitments of another dealer.
    Copy,
    /// A dealing, and complaints about everyone, revealing its own shares.
    Complains,
}

fn dealt() -> impl Strategy<Value = Dealt> {
    prop_oneof![
        Just(Dealt::Well),
        Just(Dealt::Nothing),
        any::<u16>().prop_map(Dealt::WrongTo),
        Just(Dealt::Copy),
        Just(Dealt::Complains),
    ]
}

/// A complaint about a correct share: the proof holds, because the member reveals what it shares with the dealer.
fn needless(board: &KeyGeneration, member: u8, dealer: u8) -> Option<Complaint> {
    board.reveal(member, &secret(member), dealer)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    /// Whatever f Byzantine members deal: if there is a key, all correct members have shares of it, any q of them
    /// make the same certificate, and q − 1 make none. There is a key unless a correct member was late.
    #[test]
    fn every_size_with_byzantine_dealers(faults in prop::collection::vec(dealt(), 4), shift in any::<u8>()) {
        for n in 2..=13u8 {
            let quorums = crate::Quorums::new(n.into());
            let (f, q) = (quorums.faulty as u8, quorums.certificate);
            let byzantine = |member: u8| (u16::from(member) + u16::from(shift)) % u16::from(n) < u16::from(f);
            let fault = |member: u8| if byzantine(member) { faults[usize::from(member) % 4] } else { Dealt::Well };
            let mut board = KeyGeneration::new(terms(n));
            for dealer in 0..n {
                let mut dealing = deal(board.terms(), dealer);
                match fault(dealer) {
                    Dealt::Nothing => continue,
                    Dealt::Copy => {
                        let victim = (dealer + 1) % n;
                        dealing = Dealing { dealer, ..deal(board.terms(), victim) };
                        prop_assert_eq!(board.deal(dealing), Err(DkgRefusal::WrongPossession));
                        continue;
                    }
                    Dealt::WrongTo(mask) => {
                        for member in (0..n).filter(|member| mask >> member & 1 == 1) {
                            dealing.shares[usize::from(member)][0] ^= 1;
                        }
                        let seed = [dealer.wrapping_add(50); 32];
                        secret::prove_again(board.terms(), &mut dealing, &seed);
                    }
                    Dealt::Well | Dealt::Complains => {}
                }
                prop_assert_eq!(board.deal(dealing), Ok(()));
            }
            board.close_dealing();
            for member in 0..n {
                let complains = matches!(fault(member), Dealt::Complains);
                for dealer in 0..n {
                    if let Some(complaint) = board.complaint(member, &secret(member), dealer) {
                        prop_assert!(byzantine(dealer), "a correct dealer is complained of");
                        prop_assert_eq!(board.complain(&complaint), Ok(()));
                    } else if complains && let Some(complaint) = needless(&board, member, dealer) {
                        prop_assert_eq!(board.complain(&complaint), Ok(()));
                    }
                }
            }
            let group = board.finish().cloned().expect("enough dealers stand");
            prop_assert!(group.struck().iter().all(|member| byzantine(*member)), "a correct member is struck");
            let stands = |dealer| board.standing().any(|of| of == dealer);
            prop_assert!((0..n).filter(|member| !byzantine(*member)).all(stands));
            let correct: Vec<u8> = (0..n).filter(|member| !byzantine(*member)).collect();
            let committee = committee(n).with_threshold(&board).expect("its own");
            let digest = Digest([n; 32]);
            let parts = signed(&board, correct.iter().copied(), &digest);
            let group = committee.group().expect("a key");
            let first = group.combine(&committee.home(), &claim(&digest), &parts[..q]).expect("a certificate");
            let last = group.combine(&committee.home(), &claim(&digest), &parts[parts.len() - q..]);
            prop_assert_eq!(last, Ok(first), "whoever signs, the certificate is the same");
            prop_assert!(group.combine(&committee.home(), &claim(&digest), &parts[..q - 1]).is_err());
            let fewer = points::interpolate(&parts[..q - 1]);
            prop_assert!(fewer.is_none_or(|made| group.verify(&committee.home(), &claim(&digest), &made).is_err()));
        }
    }
}

#[test]
fn a_threshold_certificate_moves_money_only_with_the_epochs_own_group_key() {
    let (board, digest) = (generated(4), Digest([7; 32]));
    let plain = committee(4);
    let with = plain.clone().with_threshold(&board).expect("its own");
    let parts = signed(&board, 0..3, &digest);
    let made = with.group().unwrap().combine(&with.home(), &claim(&digest), &parts).expect("a certificate");
    let certificate = crate::PaymentCertificate::Threshold(made);
    let mut bytes = Vec::new();
    certificate.write(&mut bytes);
    assert_eq!(bytes.len(), 50, "whatever the committee's size");
    let certificate = crate::PaymentCertificate::parse(&bytes).expect("one encoding");
    let verify = |committee: &LaneCommittee, digest: &Digest| {
        let budget = &mut crate::CheckBudget(crate::AGGREGATE_COST);
        crate::RootCache::new(0).verify_certificate(committee, &claim(digest), &certificate, budget)
    };
    assert_eq!(verify(&with, &digest), Ok(()));
    assert_eq!(verify(&with, &Digest([8; 32])), Err(LaneRefusal::WrongAggregate));
    assert_eq!(verify(&plain, &digest), Err(LaneRefusal::NoGroupKey), "an epoch without a key falls back");
    // A key of another committee, and an unfinished generation, give no key.
    assert_eq!(committee(5).with_threshold(&board).err(), Some(LaneRefusal::NoGroupKey));
    let unfinished = KeyGeneration::new(terms(4));
    assert_eq!(plain.with_threshold(&unfinished).err(), Some(LaneRefusal::NoGroupKey));
    // The signature of a share is not valid in the aggregate scheme, and the other way round.
    let own = secret(0).sign(&NETWORK, EPOCH, StatementKind::Confirmation, &digest);
    let refused = with.group().unwrap().verify_share(&with.home(), &claim(&digest), 0, &own);
    assert_eq!(refused, Err(LaneRefusal::WrongSignature(0)));
}

#[test]
fn a_generation_with_revealed_shares_is_refused_beyond_f_and_their_signatures_always() {
    let digest = Digest([7; 32]);
    let mut board = KeyGeneration::new(terms(4));
    (0..4).for_each(|dealer| board.deal(deal(board.terms(), dealer)).expect("correct"));
    board.close_dealing();
    let mut second = board.clone();
    board.complain(&needless(&board, 3, 0).expect("it reveals")).expect("the proof holds");
    let group = board.finish().expect("one of four may be Byzantine").clone();
    assert_eq!((group.struck().len(), share(&board, 3).is_none()), (1, true));
    let with = committee(4).with_threshold(&board).expect("its own");
    // The share that the struck member would have.
    let honest = generated(4);
    let revealed = share(&honest, 3).expect("the same dealings").sign(&NETWORK, EPOCH, claim(&digest).kind, &digest);
    let mut parts = signed(&board, 0..2, &digest);
    parts.push((3, revealed));
    let refused = Err(LaneRefusal::RevealedShare(3));
    assert_eq!(group.combine(&with.home(), &claim(&digest), &parts), refused);
    assert_eq!(group.verify_share(&with.home(), &claim(&digest), 3, &revealed), Err(LaneRefusal::RevealedShare(3)));
    // Two of four members are more than f that misbehave, so there is no key.
    for member in [2, 3] {
        second.complain(&needless(&second, member, 0).expect("it reveals")).expect("the proof holds");
    }
    assert_eq!(second.finish(), None);
    assert!(share(&second, 0).is_none());
}

#[test]
fn a_rogue_key_the_identity_and_the_wrong_subgroup_are_refused() {
    let mut board = KeyGeneration::new(terms(4));
    board.deal(deal(board.terms(), 0)).expect("correct");
    // A constant term that cancels that of the first dealer: the group key would be the rogue's.
    let victim = points::parse(&board.dealing_of(0).unwrap().commitments[0]).unwrap();
    let mut rogue = deal(board.terms(), 1);
    let own = points::parse(&rogue.commitments[0]).unwrap();
    rogue.commitments[0] = points::bytes(&(own - victim));
    assert_eq!(board.deal(rogue), Err(DkgRefusal::WrongPossession));
    let mut identity = [0; 96];
    identity[0] = 0xc0;
    let outside = (1..=200u8).find_map(|x| {
        let mut bytes = [0; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        let point: Option<blstrs::G2Affine> = blstrs::G2Affine::from_compressed_unchecked(&bytes).into();
        point.filter(|point| !bool::from(point.is_torsion_free())).map(|_| bytes)
    });
    for wrong in [identity, outside.expect("most points are outside"), [0xff; 96]] {
        for at in 0..3 {
            let mut dealing = deal(board.terms(), 1);
            *if at == 2 { &mut dealing.ephemeral } else { &mut dealing.commitments[at] } = wrong;
            assert_eq!(board.deal(dealing), Err(DkgRefusal::WrongPoint), "place {at}");
        }
    }
    let digest = Digest([7; 32]);
    let done = generated(4);
    let with = committee(4).with_threshold(&done).expect("its own");
    let mut none = [0; 48];
    none[0] = 0xc0;
    let none = BlsSignature(none);
    assert_eq!(with.group().unwrap().verify(&with.home(), &claim(&digest), &none), Err(LaneRefusal::WrongAggregate));
}

#[test]
fn the_board_refuses_what_is_out_of_order_and_names_a_false_signer() {
    let mut board = KeyGeneration::new(terms(4));
    let dealing = deal(board.terms(), 0);
    assert_eq!(Dealing::parse(board.terms(), &dealing.encode()), Ok(dealing.clone()));
    assert_eq!(board.deal(Dealing { dealer: 4, ..dealing.clone() }), Err(DkgRefusal::Stranger(4)));
    let fewer = Dealing { commitments: dealing.commitments[1..].to_vec(), ..dealing.clone() };
    assert_eq!(board.deal(fewer), Err(DkgRefusal::WrongCounts));
    board.deal(dealing.clone()).expect("correct");
    assert_eq!(board.deal(dealing), Err(DkgRefusal::DealtBefore(0)));
    let complaint = needless(&board, 1, 0).expect("it reveals");
    assert_eq!(board.complain(&complaint), Err(DkgRefusal::WrongPhase));
    board.close_dealing();
    assert_eq!(board.deal(deal(board.terms(), 1)), Err(DkgRefusal::WrongPhase));
    assert_eq!(board.complain(&Complaint { dealer: 2, ..complaint.clone() }), Err(DkgRefusal::NotDealt(2)));
    let another = Complaint { member: 2, ..complaint.clone() };
    assert_eq!(board.complain(&another), Err(DkgRefusal::WrongProof), "no one can complain for another member");
    let mut false_point = complaint;
    false_point.shared = secret(0).public().to_bytes();
    assert_eq!(board.complain(&false_point), Err(DkgRefusal::WrongProof), "a dealer is not slandered");
    assert_eq!(board.finish(), None, "one dealer of four need not be correct");

    let (board, digest) = (generated(4), Digest([7; 32]));
    let with = committee(4).with_threshold(&board).expect("its own");
    let mut parts = signed(&board, 0..4, &digest);
    parts[1].1 = parts[0].1;
    let combined = with.group().unwrap().combine(&with.home(), &claim(&digest), &parts);
    assert_eq!(combined, Err(LaneRefusal::WrongSignature(1)));
    parts[1] = parts[0];
    assert!(matches!(
        with.group().unwrap().combine(&with.home(), &claim(&digest), &parts[..3]),
        Err(LaneRefusal::WrongSigners { .. })
    ));
}

/// With another dealer's ephemeral point, wrong shares would make everyone reveal what decrypts that dealer's shares.
#[test]
fn a_dealer_knows_what_its_pads_are_made_with() {
    let terms = terms(4);
    let (victim, seed) = (deal(&terms, 0), [51; 32]);
    let mut thief = Dealing { ephemeral: victim.ephemeral, ..deal(&terms, 1) };
    secret::prove_again(&terms, &mut thief, &seed);
    let mut board = KeyGeneration::new(terms.clone());
    board.deal(victim.clone()).expect("correct");
    assert_eq!(board.deal(thief.clone()), Err(DkgRefusal::WrongPossession));
    thief.ephemeral_possession = victim.ephemeral_possession;
    assert_eq!(board.deal(thief), Err(DkgRefusal::WrongPossession), "that proof is of another dealing");
    let own = deal(&terms, 1);
    assert_eq!(Dealing::parse(&terms, &own.encode()), Ok(own.clone()));
    board.deal(own).expect("correct");
}
