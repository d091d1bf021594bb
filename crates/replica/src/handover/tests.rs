//! Chains of empty blocks whose committees change, certified by hand, and handovers that are forged in one way at a
//! time.

use consensus::{Commit, Statement};
use ledger::{BlockReceipts, Genesis, Ledger, Listing, Membership, ReceiptsTrie, Roots, Signatures, Terms};
use primitives::{AssetId, Fraction, SecretKey, Superblock};
use proofs::{CertificateError, Chain, HandoverError, Member, ProofFault, Schedule, outcome_root};
use proptest::prelude::*;

use super::*;

const NETWORK: Digest = Digest([9; 32]);
const VALIDATORS: u8 = 6;

fn secret(index: u8) -> SecretKey {
    SecretKey::from_seed([index + 1; 32])
}

fn secret_of(key: &primitives::PublicKey) -> SecretKey {
    (0..VALIDATORS).map(secret).find(|secret| secret.public() == *key).expect("one of them")
}

/// A committee of four is drawn from six stakers.
fn genesis(schedule: Schedule) -> Genesis {
    let member = |index: u8| {
        let key = secret(index).public();
        Member { account: key.address(), key, address: String::new(), stake: 100 }
    };
    let terms = Terms { network: NETWORK, schedule, committee: 4, ..Terms::default() };
    let founders = (0..VALIDATORS).map(member).collect();
    Genesis {
        chain: 1,
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 2, secret(0).public().address())],
        balances: vec![(secret(0).public().address(), AssetId(0), 10)],
        membership: Some(Membership { terms, reward_pool: 0, founders }),
        ..Genesis::default()
    }
}

/// The states and proofs after every height.
struct World {
    trusted: Lineage,
    proofs: Vec<(Digest, ValidatorsProof)>,
    ledger: Ledger,
}

impl World {
    fn new(epoch_heights: u64, delay: u64, lag: u64, heights: u64) -> World {
        let schedule = Schedule { epoch_heights, delay };
        let mut ledger = Ledger::new(&genesis(schedule)).expect("sound");
        let keys = ledger.committee(0).expect("founders").iter().map(|member| member.key).collect();
        let chain = Chain { genesis: NETWORK, epoch: 0, heights: 1..=schedule.last_height(0), keys };
        let mut roots = Roots::of(&ledger);
        let mut proofs = vec![(Digest::default(), roots.prove_validators(&ledger))];
        for height in 1..=heights {
            let (parent, parent_root) = (ledger.last_block(), roots.parts().root());
            let block =
                Superblock { height, parent, time_ms: 0, parent_root, sub_blocks: Vec::new(), ..Superblock::default() };
            let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
            roots.apply(&applied.changes);
            let receipts: BlockReceipts = crate::recovery::receipts(&block, &applied);
            proofs.push((ReceiptsTrie::new(&receipts).root(), roots.prove_validators(&ledger)));
        }
        World { trusted: Lineage { schedule, lag, begins: 0, chain }, proofs, ledger }
    }

    /// The outcome of a height, certified by `signers` members of a committee.
    fn handover(&self, chain: &Chain, state_height: u64, signers: usize) -> Handover {
        let (receipts, validators) = self.proofs[state_height as usize].clone();
        let root = outcome_root(&validators.parts.root(), &receipts);
        let statement = Statement { height: state_height + self.trusted.lag, superblock: Digest([3; 32]), root };
        let sign = |(index, key)| {
            let commit = Commit::sign(chain, statement, index, &secret_of(key));
            (index, commit.signature)
        };
        let signatures = (0..).zip(&chain.keys).take(signers).map(sign).collect();
        Handover { certificate: Certificate { epoch: chain.epoch, statement, signatures }, receipts, validators }
    }

    fn honest(&self, lineage: &Lineage) -> Handover {
        self.handover(&lineage.chain, lineage.state_height(lineage.chain.epoch + 1), 3.max(quorum(&lineage.chain)))
    }
}

fn quorum(chain: &Chain) -> usize {
    chain.committee().echoes
}

/// Follows handovers from the founders to the last epoch that the blocks reach; each committee must equal the
/// ledger's.
fn walks(epoch_heights: u64, delay: u64, lag: u64) -> u64 {
    let world = World::new(epoch_heights, delay, lag, 70);
    let mut lineage = world.trusted.clone();
    while lineage.certificate_height(lineage.chain.epoch + 1) <= 70 {
        let handover = world.honest(&lineage);
        lineage.follow(&handover).expect("holds");
        let members = handover.validators.validators.committee(lineage.chain.epoch).expect("drawn");
        assert!(members.iter().map(|member| &member.key).eq(&lineage.chain.keys));
        assert_eq!(*lineage.chain.heights.start(), lineage.schedule.first_height(lineage.chain.epoch));
    }
    assert!(world.ledger.height() == 70);
    lineage.chain.epoch
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn who_has_the_genesis_walks_to_the_present(epoch_heights in 1u64..20, delay in 1u64..20, lag in 1u64..20) {
        prop_assume!(lag <= delay);
        prop_assert!(walks(epoch_heights, delay, lag) >= 1);
    }

    /// A handover is certified by the epoch before, shows a state after the draw, and no two share a height.
    #[test]
    fn heights_are_in_their_epochs(epoch_heights in 1u64..300, delay in 1u64..200, lag in 1u64..64, epoch in 1u64..50) {
        prop_assume!(lag <= delay);
        let chain = Chain { genesis: NETWORK, epoch: 0, heights: 1..=1, keys: Vec::new() };
        let lineage = Lineage { schedule: Schedule { epoch_heights, delay }, lag, begins: 0, chain };
        let (state, certificate) = (lineage.state_height(epoch), lineage.certificate_height(epoch));
        prop_assert_eq!(lineage.schedule.epoch_of(certificate), epoch - 1);
        prop_assert!(state >= lineage.schedule.boundary(epoch) && state < lineage.state_height(epoch + 1));
        prop_assert_eq!(lineage.last_behind(state), epoch);
        prop_assert_eq!(lineage.last_behind(state - 1), epoch - 1);
    }
}

#[test]
fn known_walks() {
    // With a long delay, several drawn committees are not active yet: there are fewer epochs than boundaries.
    assert_eq!([walks(10, 4, 2), walks(10, 10, 3), walks(1, 8, 2)], [6, 6, 62]);
}

#[test]
fn forged_handovers_are_refused() {
    let world = World::new(10, 4, 2, 40);
    let honest = world.honest(&world.trusted);
    let refused = |handover: &Handover| {
        let mut lineage = world.trusted.clone();
        let why = lineage.follow(handover).expect_err("refused");
        assert_eq!(lineage, world.trusted, "a rejected handover changes nothing");
        why
    };
    // Too few signatures, or the same one twice.
    let few = world.handover(&world.trusted.chain, 10, quorum(&world.trusted.chain) - 1);
    assert!(matches!(refused(&few), HandoverError::Certificate(1, CertificateError::TooFew { .. })));
    let mut twice = honest.clone();
    twice.certificate.signatures[1] = twice.certificate.signatures[0];
    assert_eq!(refused(&twice), HandoverError::Certificate(1, CertificateError::Unordered));
    // Signed by others who claim to be the committee.
    let mut others = world.trusted.chain.clone();
    others.keys.rotate_left(1);
    let wrong = world.handover(&others, 10, 6);
    assert_eq!(refused(&wrong), HandoverError::Certificate(1, CertificateError::BadSignature(0)));
    // Of a height that this committee does not decide: its keys prove nothing after its epoch.
    let late = world.handover(&world.trusted.chain, 20, 6);
    assert_eq!(refused(&late), HandoverError::Certificate(1, CertificateError::OtherEpoch(22)));
    // An epoch is skipped.
    let mut next = world.trusted.clone();
    next.follow(&honest).expect("holds");
    let second = world.honest(&next);
    assert_eq!(refused(&second), HandoverError::Skipped { expected: 1, signed: 1 });
    // The state from before the draw.
    let old = world.handover(&world.trusted.chain, 9, 6);
    assert_eq!(refused(&old), HandoverError::NoCommittee(1));
    // The certified outcome is not the given one.
    let shown = Handover { validators: world.proofs[9].1.clone(), ..honest.clone() };
    assert_eq!(refused(&shown), HandoverError::OtherOutcome(1));
    let shown = Handover { receipts: Digest([1; 32]), ..honest.clone() };
    assert_eq!(refused(&shown), HandoverError::OtherOutcome(1));
    // The parts of the state, with a registry that does not match them.
    let mut registry = honest.clone();
    registry.validators.validators = world.proofs[0].1.validators.clone();
    assert_eq!(refused(&registry), HandoverError::Registry(1, ProofFault::OtherValue));
    // Another network with the same keys signs for itself.
    let mut elsewhere = world.trusted.clone();
    elsewhere.chain.genesis = Digest([1; 32]);
    let theirs = world.handover(&elsewhere.chain, 10, 6);
    assert_eq!(elsewhere.follow(&theirs), Err(HandoverError::OtherNetwork(1)));
    let mut other_times = world.trusted.clone();
    other_times.schedule.epoch_heights = 9;
    assert_eq!(other_times.follow(&honest), Err(HandoverError::OtherNetwork(1)));
    // A network with fixed founders has no handovers.
    let mut fixed = world.trusted.clone();
    fixed.schedule = Schedule::default();
    assert_eq!(fixed.follow(&honest), Err(HandoverError::Fixed(1)));
}
