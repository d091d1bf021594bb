//! Proofs of what the ledger knows about the payment lane, for clients that have only a state root.

use crate::world::*;
use ledger::{LaneTerms, Outcome, ProofFault, Roots};
use payments::{BridgeEntry, BridgeOperation, LaneRegistration};
use primitives::{Digest, SecretKey};

/// A registrar may sign two lists of keys for one epoch. A client that trusts registrars alone believes either; the
/// proof holds for the one that the ledger has.
#[test]
fn of_two_lists_that_a_registrar_signed_the_ledger_proves_the_registered_one() {
    let registrars: Vec<SecretKey> = (0..4).map(|member| key(150 + member)).collect();
    let terms = LaneTerms { registrars: registrars.iter().map(SecretKey::public).collect(), ..terms() };
    let mut world = World::of(&genesis(Some(terms)));
    let network = world.network();
    let sign = |seed| LaneRegistration::make(&network, 1, 0, &[SecretKey::from_seed([seed; 32])], &registrars[0]);
    let ((registration, proofs), (other, _)) = (sign(61), sign(62));
    for list in [&registration, &other] {
        assert_eq!(list.verify(&network, &registrars[0].public()), Ok(()));
    }
    let operation = BridgeOperation::Register { registration: registration.clone(), proofs };
    assert_eq!(world.block(vec![(1, post(&operation))]).outcomes, [Outcome::Applied]);

    let mut roots = Roots::of(&world.ledger);
    let root = roots.parts().root();
    let (entry, other) = (BridgeEntry::registration(&registration), BridgeEntry::registration(&other));
    assert_eq!(entry.key, other.key);
    let mut missing = entry;
    (missing.key[9], missing.value) = (3, None);
    let proof = roots.prove_lane(&[entry.key, missing.key]).expect("there is a lane");
    assert_eq!(proof.verify(&root, &[entry.pair(), missing.pair()]), Ok(()));
    assert_eq!(proof.verify(&root, &[other.pair(), missing.pair()]), Err(ProofFault::OtherValue));
    assert_eq!(proof.verify(&root, &[(entry.key, None), missing.pair()]), Err(ProofFault::OtherValue));
    assert_eq!(proof.verify(&root, &[entry.pair()]), Err(ProofFault::OtherValue), "each path proves one entry");
    assert_eq!(proof.verify(&Digest([7; 32]), &[entry.pair(), missing.pair()]), Err(ProofFault::OtherRoot));
    let mut forged = proof;
    forged.rest = Digest([7; 32]);
    assert_eq!(forged.verify(&root, &[entry.pair(), missing.pair()]), Err(ProofFault::OtherRoot));
    assert!(Roots::of(&World::of(&genesis(None)).ledger).prove_lane(&[entry.key]).is_none());
}
