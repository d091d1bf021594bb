//! The same generation for a sealing key: other thresholds, other contexts, proofs that shares are held.

use primitives::Address;

use super::*;
use crate::DkgRefusal;

const NETWORK: Digest = Digest([1; 32]);
const NUMBER: u64 = 7;

fn seed(member: u8) -> SealSeed {
    SealSeed([member + 1; 32])
}

fn terms(n: u8, needed: u8, holders: u8) -> DkgTerms {
    let keys = (0..n).map(|member| seed(member).key().public()).collect();
    DkgTerms { network: NETWORK, epoch: NUMBER, purpose: DkgPurpose::Seals { needed, holders }, keys }
}

fn deal(board: &mut KeyGeneration, dealers: impl Iterator<Item = u8>) {
    for dealer in dealers {
        let dealing = dealing(board.terms(), dealer, &seed(dealer).of_dealing());
        let parsed = Dealing::parse(board.terms(), &dealing.encode()).expect("its own layout");
        board.deal(parsed).expect("correct");
    }
}

fn share(board: &KeyGeneration, member: u8) -> KeyShare {
    board.share(member, &seed(member).key()).expect("its share fits")
}

/// What these shares sign together, against what the group key would have signed.
fn signs(board: &KeyGeneration, members: impl Iterator<Item = u8>) -> bool {
    let sign = |member| (member, share(board, member).secret.possess(b"label"));
    let parts: Vec<_> = members.map(sign).collect();
    let group = board.outcome().expect("a key");
    points::interpolate(&parts).is_some_and(|made| bls::possesses(group.key(), b"label", &made))
}

#[test]
fn any_needed_shares_make_the_keys_signature_and_fewer_do_not() {
    for (n, needed, holders) in [(2, 2, 2), (3, 2, 2), (4, 2, 3), (4, 3, 4), (7, 3, 5), (8, 3, 5)] {
        let mut board = KeyGeneration::new(terms(n, needed, holders));
        deal(&mut board, 0..n);
        board.close_dealing();
        assert!(board.finish().is_some());
        assert!(signs(&board, 0..needed) && signs(&board, n - needed..n), "{n}");
        assert!(!signs(&board, 0..needed - 1));
        let group = board.outcome().expect("a key");
        for member in 0..n {
            let proof = share(&board, member).hold(board.terms());
            assert!(group.is_held(board.terms(), member, &proof));
            assert!(!group.is_held(board.terms(), (member + 1) % n, &proof), "another's");
            let again = KeyShare::from_bytes(member, &share(&board, member).to_bytes()).expect("a secret");
            assert_eq!(Some(&again.public()), group.share_key(member));
        }
    }
}

#[test]
fn fewer_dealers_than_needed_or_fewer_members_than_holders_make_no_key() {
    for (dealers, complains, makes) in [(2, 0, true), (1, 0, false), (2, 1, true), (2, 2, false)] {
        let mut board = KeyGeneration::new(terms(4, 2, 3));
        deal(&mut board, 0..dealers);
        board.close_dealing();
        for member in 0..complains {
            let needless = board.reveal(member, &seed(member).key(), 0).expect("it dealt");
            board.complain(&Complaint::parse(&needless.encode()).expect("its own layout")).expect("proved");
        }
        assert_eq!(board.finish().is_some(), makes, "{dealers} dealers, {complains} needless complaints");
        let struck = board.outcome().map_or(0, |group| group.struck().len());
        assert_eq!(struck, if makes { usize::from(complains) } else { 0 });
    }
}

#[test]
fn a_wrong_share_is_proved_and_the_others_make_the_key() {
    let mut board = KeyGeneration::new(terms(4, 2, 3));
    board.deal(false_dealing(board.terms(), 0, &seed(0).of_dealing(), 2)).expect("its proofs hold");
    deal(&mut board, 1..4);
    board.close_dealing();
    assert!(board.complaint(1, &seed(1).key(), 0).is_none(), "its share is right");
    let complaint = board.complaint(2, &seed(2).key(), 0).expect("a wrong share");
    board.complain(&complaint).expect("proved");
    assert!(board.finish().is_some() && board.out().contains(&0));
    assert!(signs(&board, 0..2) && signs(&board, 2..4), "the dealer that is out holds a share too");
}

#[test]
fn nothing_of_one_purpose_number_or_threshold_counts_in_another() {
    let of = terms(4, 3, 4);
    let posted = dealing(&of, 0, &seed(0).of_dealing());
    let others = [
        DkgTerms { purpose: DkgPurpose::Lane, ..of.clone() },
        DkgTerms { epoch: NUMBER + 1, ..of.clone() },
        DkgTerms { network: Digest([2; 32]), ..of.clone() },
        terms(4, 2, 3),
    ];
    for other in others {
        let refused = KeyGeneration::new(other).deal(posted.clone());
        assert!(matches!(refused, Err(DkgRefusal::WrongPossession | DkgRefusal::WrongCounts)), "{refused:?}");
    }
    let (account, key) = (Address([4; 20]), seed(0).key().public());
    let proof = seed(0).possession(&NETWORK, NUMBER, &account);
    assert!(is_seal_key_possessed(&NETWORK, NUMBER, &account, &key, &proof));
    assert!(!is_seal_key_possessed(&NETWORK, NUMBER + 1, &account, &key, &proof));
    assert!(!is_seal_key_possessed(&NETWORK, NUMBER, &Address([5; 20]), &key, &proof));
}
