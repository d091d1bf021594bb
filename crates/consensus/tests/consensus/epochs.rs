//! The transition from one committee to the next.

use consensus::{
    ALL_HEIGHTS, Certificate, CertificateError, Chain, Contents, Engine, Frame, Index, Proposal, Refused, Rules, Setup,
    Start,
};
use consensus::{Commit, Statement, Status, Turn};
use primitives::{Digest, PublicKey, SecretKey, Signature, Signer, SigningError, SigningRequest, ValidatorPost};
use std::sync::Arc;

/// A payload that only the next epoch permits.
const LATER: &[u8] = b"later";

fn secret(index: usize) -> SecretKey {
    SecretKey::from_seed([index as u8 + 1; 32])
}

/// Two validators decide heights 11 to 20; a third follows.
fn second_epoch() -> Chain {
    let keys = (0..2).map(|index| secret(index).public()).collect();
    Chain { genesis: Digest([7; 32]), epoch: 1, heights: 11..=20, keys }
}

fn engine(me: Index) -> Engine {
    engine_of(me, Arc::new(secret(usize::from(me))))
}

fn engine_of(me: Index, signer: Arc<dyn Signer>) -> Engine {
    let (chain, rules) = (second_epoch(), Rules::default());
    let benches = Engine::first_benches(&chain.committee(), &rules);
    let start = Start { height: 10, superblock: Digest([5; 32]), benches, applied: 10, roots: Vec::new() };
    Engine::new(
        Setup {
            chain,
            rules,
            followers: 1,
            me,
            signer,
            check: Arc::new(|bytes| {
                Some(Contents { transactions: bytes.len(), is_early: bytes == LATER, ..Contents::default() })
            }),
        },
        start,
    )
}

fn status(epoch: u64, decided: u64) -> Frame {
    Frame::Status(Status { epoch, decided, certified: decided, live: decided, waits: false, asks: false })
}

fn is_about(turn: &Turn, to: Index, height: u64) -> bool {
    let proposes = |frame: &Frame| matches!(frame, Frame::Proposal(proposal, _) if proposal.height == height);
    turn.sends.iter().any(|(members, frame)| members.contains(to) && proposes(frame))
}

#[test]
fn who_comes_from_another_epoch_is_told_all() {
    let mut engine = engine(0);
    engine.on_up(1);
    engine.on_frame(1, status(0, 10));
    engine.propose(11, [1; 9].to_vec().into());
    assert!(!is_about(&engine.finish_turn(), 1, 11), "it would reject it");
    engine.on_frame(1, status(1, 10));
    assert!(is_about(&engine.finish_turn(), 1, 11));
    engine.on_frame(1, status(1, 10));
    assert!(!is_about(&engine.finish_turn(), 1, 11), "once is enough");
}

/// A validator whose ledger has come to the next epoch forwards what this one cannot take yet: that is no offence. A
/// sub-block of this epoch never has it.
#[test]
fn what_only_the_next_epoch_permits_is_forwarded_without_offence() {
    let mut engine = engine(0);
    engine.on_up(1);
    engine.on_frame(1, status(1, 10));
    engine.on_frame(1, Frame::Transactions(LATER.to_vec().into()));
    let turn = engine.finish_turn();
    assert_eq!((turn.refused, turn.forwarded.len()), (vec![(1, Refused::Ahead)], 0));
    assert!(!Refused::Ahead.is_offence());
    let proposal = Proposal::sign(&second_epoch(), 11, 1, LATER, &secret(1));
    engine.on_frame(1, Frame::Proposal(proposal, LATER.to_vec().into()));
    assert_eq!(engine.finish_turn().refused, [(1, Refused::Payload)]);
}

#[test]
fn followers_have_no_vote_and_are_sent_none() {
    let mut engine = engine(0);
    for peer in [1, 2] {
        engine.on_up(peer);
        engine.on_frame(peer, status(1, 10));
    }
    engine.propose(11, [1; 9].to_vec().into());
    let turn = engine.finish_turn();
    assert!(is_about(&turn, 1, 11) && !is_about(&turn, 2, 11));
    let statement = Statement { height: 11, superblock: Digest([1; 32]), root: Digest([2; 32]) };
    engine.on_frame(2, Frame::Commit(Commit::sign(&second_epoch(), statement, 2, &secret(2))));
    assert_eq!(engine.finish_turn().refused, [(2, Refused::Slot)]);
    let late = Statement { height: 10, ..statement };
    engine.on_frame(2, Frame::Commit(Commit::sign(&second_epoch(), late, 2, &secret(2))));
    assert_eq!(engine.finish_turn().refused, []);
}

#[test]
fn a_follower_neither_proposes_nor_votes_for_ever() {
    let mut follower = engine(2);
    for peer in [0, 1] {
        follower.on_up(peer);
        follower.on_frame(peer, status(1, 15));
    }
    assert!(follower.follows() && follower.is_silent() && follower.opening().is_none());
}

#[test]
fn no_height_beyond_the_last_is_begun() {
    let rules = Rules::default();
    let mut engine = engine(0);
    engine.on_up(1);
    engine.on_frame(1, status(1, 19));
    engine.on_applied(19);
    let openings = std::iter::from_fn(|| {
        let opening = engine.opening()?;
        engine.propose(opening.height, [1; 9].to_vec().into());
        Some(opening.height)
    });
    assert_eq!(openings.last(), Some((10 + rules.horizon()).min(20)));
    assert!(!engine.is_over());
}

/// Keys that were given up after an epoch cannot certify later heights.
#[test]
fn an_old_committee_certifies_its_own_heights_alone() {
    let chain = second_epoch();
    let certified = |height: u64, epoch: u64| {
        let statement = Statement { height, superblock: Digest([1; 32]), root: Digest([2; 32]) };
        let sign =
            |index: Index| (index, Commit::sign(&chain, statement, index, &secret(usize::from(index))).signature);
        Certificate { epoch, statement, signatures: vec![sign(0), sign(1)] }.verify(&chain)
    };
    assert_eq!([certified(11, 1), certified(20, 1)], [Ok(()); 2]);
    assert_eq!(
        [10, 21].map(|height| certified(height, 1)),
        [10, 21].map(|height| Err(CertificateError::OtherEpoch(height)))
    );
    assert_eq!(certified(15, 0), Err(CertificateError::OtherEpoch(15)));
    assert!(ALL_HEIGHTS.contains(&u64::MAX) && !ALL_HEIGHTS.contains(&0));
}

/// A signer whose process has ended.
struct Gone;

impl Signer for Gone {
    fn public(&self) -> PublicKey {
        secret(0).public()
    }

    fn sign_statement(&self, request: &SigningRequest) -> Result<Signature, SigningError> {
        Err(SigningError(format!("nobody signs at height {}", request.height)))
    }

    fn sign_post(&self, post: &ValidatorPost) -> Result<Signature, SigningError> {
        Err(SigningError(format!("nobody signs {:?}", post.says)))
    }
}

#[test]
fn an_engine_says_what_it_could_not_sign() {
    let mut engine = engine_of(0, Arc::new(Gone));
    assert_eq!(engine.unsigned(), None);
    engine.propose(11, [1; 9].to_vec().into());
    assert!(engine.unsigned().is_some_and(|error| error.0.contains("height 11")));
}
