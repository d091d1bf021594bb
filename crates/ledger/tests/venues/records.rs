//! Roots, proofs, snapshots, receipts and restarts of a chain with venues.

use std::io::ErrorKind;

use ledger::{
    Applied, Attached, BlockReceipts, FillVerdict, Ledger, Outcome, ProofFault, ReceiptsTrie, Refusal, Restart,
    Restore, RootPart, Roots, Signatures, Snapshot, TradingKey, VenueDeposit, VenueRecord, VenueRecordId,
};
use primitives::venue::{FillTree, MarketTerms, OrderSignature, Settle, VenueOperation, VenueOrder};
use primitives::{Digest, SubBlock, Superblock, Transaction};

use crate::world::*;

/// What people do in a history with a deadline of each kind.
fn script(world: &mut World) -> Vec<Vec<Transaction>> {
    let orders =
        |reference| (VenueOrder { expiry: 14, ..buy(reference) }, VenueOrder { expiry: 15, ..sell(reference) });
    let (bought, sold) = orders(1);
    let mut blocks = vec![
        vec![(BUYER, collect(USD, 50_000)), (SELLER, collect(EUR, 99_000)), (5, revoke(5))],
        vec![(OWNER, VenueOperation::Unbond { venue: VENUE, units: 1_000 }), (BUYER, raise(BUYER, 1))],
    ];
    let first = world.settle(&[fill(bought, sold, 2)]);
    blocks.push(vec![(OPERATOR, VenueOperation::Settle(first))]);
    blocks.extend((0..8).map(|_| Vec::new()));
    blocks.push(vec![(OWNER, VenueOperation::Fence { venue: VENUE, incarnation: 0 })]);
    blocks.extend((0..26).map(|_| Vec::new()));
    let sign = |operations: Vec<(u8, VenueOperation)>| {
        operations.into_iter().map(|(person, operation)| world.sign(person, operation)).collect()
    };
    blocks.into_iter().map(sign).collect()
}

/// A world that went through a snapshot.
fn restored(world: &World) -> World {
    let mut restore = Restore::default();
    Snapshot::of(&world.ledger).for_each(|chunk| restore.push(&chunk).expect("a snapshot's own chunk"));
    let ledger = restore.finish().expect("sound");
    let roots = Roots::of(&ledger);
    World { ledger, roots, ..world.clone() }
}

/// A copy that goes through a snapshot at any one height of the history has the same roots ever after.
#[test]
fn snapshot_state_transfer_and_replay_at_each_height_around_each_deadline_have_equal_roots() {
    let mut world = World::new();
    let blocks = script(&mut world);
    let mut roots = Vec::new();
    let mut starts = Vec::new();
    for native in &blocks {
        starts.push(world.clone());
        let time = world.time_ms + STEP;
        world.run_quickly(time, native.clone());
        roots.push(world.roots.parts().root());
    }
    let entries = |world: &World| world.venue().entries;
    assert_eq!(
        (entries(&world), world.venue().leaving, world.venue().incarnation),
        (0, None, 1),
        "all deadlines are over"
    );
    for at in 0..blocks.len() {
        let mut copy = restored(&starts[at]);
        for (native, root) in blocks[at..].iter().zip(&roots[at..]) {
            let time = copy.time_ms + STEP;
            copy.run_quickly(time, native.clone());
            assert_eq!(copy.roots.parts().root(), *root, "restored before block {at}");
        }
    }
}

#[test]
fn shuffled_blocks_and_replays_with_the_clearing_have_equal_roots() {
    let mut world = World::new();
    let small = world.settle(&[fill(buy(1), sell(1), 1)]);
    let large = world.settle(&[fill(buy(2), sell(2), 1), fill(buy(3), sell(3), 1)]);
    let operations = vec![
        (OPERATOR, VenueOperation::Settle(small)),
        (OPERATOR, VenueOperation::Settle(large)),
        (BUYER, collect(USD, 500)),
        (SELLER, deposit(EUR, 70)),
        (SELLER, raise(SELLER, 2)),
        (5, revoke(5)),
        (OWNER, VenueOperation::Bond { venue: VENUE, units: 3 }),
        (OWNER, VenueOperation::Unbond { venue: VENUE, units: 40 }),
        (OWNER, VenueOperation::Fence { venue: VENUE, incarnation: 0 }),
    ];
    let native: Vec<Transaction> = operations.into_iter().map(|(who, what)| world.sign(who, what)).collect();
    let mut expected = None;
    for turn in 0..native.len() {
        let mut order = native.clone();
        order.rotate_left(turn);
        if turn % 2 == 1 {
            order.reverse();
        }
        let (height, parent) = (world.height() + 1, world.ledger.last_block());
        let halves = order.split_at(turn);
        let sub = |(proposer, native): (u32, &[Transaction])| SubBlock {
            proposer,
            native: native.to_vec(),
            ..SubBlock::default()
        };
        let sub_blocks = [(0, halves.0), (1, halves.1)].map(sub).to_vec();
        let time_ms = world.time_ms + STEP;
        let block = Superblock { height, parent, time_ms, sub_blocks, ..Superblock::default() };
        let (mut one, mut other) = (world.clone(), world.ledger.clone());
        let applied = one.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        let attached = Attached::of(&applied.batch);
        let again = other.apply_attached(&block, &attached, Signatures::Unchecked, &mut |_| {}).expect("holds");
        assert_eq!((&again.outcomes, &again.venues), (&applied.outcomes, &applied.venues));
        let root = one.roots.apply(&applied.changes);
        assert_eq!(Roots::of(&other).parts().root(), root);
        assert_eq!(*expected.get_or_insert((root, applied.venues.clone())), (root, applied.venues.clone()), "{turn}");
    }
}

#[test]
fn the_state_root_proves_venues_markets_deposits_keys_and_entries() {
    let mut world = World::new();
    world.settles(&[fill(buy(1), sell(1), 3)]);
    let root = world.roots.parts().root();
    let mut prove = |id: VenueRecordId| world.roots.prove_venue(&world.ledger, &id).expect("the chain has venues");
    let venue = VenueRecordId::Venue(VENUE);
    let proof = prove(venue);
    let record: VenueRecord = proof.verify(&root, &venue).expect("holds").expect("open");
    assert_eq!((record.bond, record.fills.count()), (BOND, 1));
    let market_id = VenueRecordId::Market(VENUE, 0);
    assert_eq!(prove(market_id).verify::<MarketTerms>(&root, &market_id).expect("holds"), Some(market()));
    let deposit = VenueRecordId::Deposit((VENUE, address(SELLER), EUR));
    let of: VenueDeposit = prove(deposit).verify(&root, &deposit).expect("holds").expect("there");
    assert_eq!(of.free, 100_000 - 3 * LOT);
    let nobody = VenueRecordId::Deposit((VENUE, address(8), EUR));
    assert_eq!(prove(nobody).verify::<VenueDeposit>(&root, &nobody).expect("holds"), None);
    let key = VenueRecordId::Key((VENUE, key_of(BUYER)));
    let of: TradingKey = prove(key).verify(&root, &key).expect("holds").expect("authorised");
    assert_eq!((of.owner, of.net(EUR)), (address(BUYER), i128::from(3 * LOT)));
    let number = buy(1).number;
    let filled = VenueRecordId::Filled((VENUE, 0, key_of(BUYER), number.day, number.reference));
    let of: ledger::FilledOrder = prove(filled).verify(&root, &filled).expect("holds").expect("filled");
    assert_eq!(of.lots, 3);
    // A proof of another root, record or value proves nothing.
    assert!(matches!(proof.verify::<VenueRecord>(&Digest([1; 32]), &venue), Err(ProofFault::OtherRoot)));
    assert!(proof.verify::<VenueRecord>(&root, &key).is_err());
    let spoils: [fn(&mut ledger::VenueProof); 4] = [
        |proof| proof.rest.0[0] ^= 1,
        |proof| proof.record = None,
        |proof| proof.record.as_mut().expect("there")[40] ^= 1,
        |proof| proof.path.truncate(3),
    ];
    for spoil in spoils {
        let mut spoilt = proof.clone();
        spoil(&mut spoilt);
        assert!(spoilt.verify::<VenueRecord>(&root, &venue).is_err());
    }
}

fn receipts(native: &[Transaction], applied: &Applied) -> BlockReceipts {
    BlockReceipts {
        height: applied.height,
        block: applied.block,
        outcomes: native.iter().map(Transaction::id).zip(applied.outcomes.iter().copied()).collect(),
        modified: applied.modified.clone(),
        batch: applied.batch.clone(),
        contracts: applied.contracts.clone(),
        venues: applied.venues.clone(),
    }
}

#[test]
fn receipts_prove_verdicts_of_fills_and_fills_are_proved_by_the_tree() {
    let mut world = World::new();
    let dear = VenueOrder { tick: 99, ..buy(2) };
    let settle = world.settle(&[fill(buy(1), sell(1), 1), fill(dear, sell(1), 1)]);
    let native = vec![world.sign(OPERATOR, VenueOperation::Settle(settle))];
    let applied = world.run(native.clone());
    let of_block = receipts(&native, &applied);
    let mut trie = ReceiptsTrie::new(&of_block);
    let root = trie.root();
    let mut proof = trie.prove_settles(&of_block);
    let settled = &proof.verify(&root).expect("holds")[0];
    assert_eq!(settled.verdicts[0], FillVerdict::Applied);
    assert!(matches!(settled.verdicts[1], FillVerdict::Bust(..)));
    let tree = world.venue().fills;
    for (index, leaf) in (0..).zip(&settled.leaves) {
        let path = FillTree::path(&settled.leaves, index).expect("there");
        assert_eq!(tree.verify(index, leaf, &path), Ok(()), "archived leaves make paths of membership");
    }
    proof.settles[0].verdicts[1] = FillVerdict::Applied;
    assert!(matches!(proof.verify(&root), Err(ProofFault::OtherValue)));
    // The format has a version of its own, and others are refused.
    let bytes = borsh::to_vec(&of_block).expect("encodes");
    assert_eq!((bytes[0], borsh::from_slice::<BlockReceipts>(&bytes).expect("decodes")), (11, of_block.clone()));
    let without = BlockReceipts { venues: Vec::new(), ..of_block };
    let plain = borsh::to_vec(&without).expect("encodes");
    assert_eq!((plain[0], borsh::from_slice::<BlockReceipts>(&plain).expect("decodes")), (10, without));
    let empty = [&[11], &plain[1..], &[0; 4]].concat();
    let error = borsh::from_slice::<BlockReceipts>(&empty).expect_err("another encoding of the same");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn a_chain_without_venues_has_no_part_of_them_and_its_identity_is_what_it_was() {
    let without = genesis(None);
    let ledger = Ledger::new(&without).expect("sound");
    let parts = Roots::of(&ledger).parts();
    assert_eq!(parts.get(RootPart::VENUES), None);
    assert!(Snapshot::of(&ledger).all(|chunk| chunk[0] != RootPart::VENUES));
    assert_ne!(genesis(Some(terms())).digest(), without.digest());
    let with = Ledger::new(&genesis(Some(terms()))).expect("sound");
    assert_eq!(Roots::of(&with).parts().list().len(), parts.list().len() + 1);
}

#[test]
fn a_network_that_restarts_from_a_snapshot_voids_orders_and_reports_and_keeps_deposits() {
    let mut world = World::new();
    world.settles(&[fill(buy(1), sell(1), 1)]);
    let lie = world.report(0, Digest([7; 32]), BUYER, 0);
    let before = world.venue();
    world.note_fence(&before);
    let later = world.settle(&[fill(buy(1), sell(1), 1)]);
    let restart = Restart {
        number: 1,
        snapshot: Snapshot::digest(&world.ledger),
        lane: None,
        committee: Vec::new(),
        rules: None,
    };
    let first = world.network();
    world.ledger.begin_again(&first, &restart, None).expect("agreed");
    world.roots = Roots::of(&world.ledger);
    world.ledger.audit().expect("conserved");
    let venue = world.venue();
    assert_eq!((venue.incarnation, venue.judged, venue.bond), (1, 1, BOND));
    assert_eq!(world.free(BUYER, EUR), 100_000 + LOT);
    // Orders and reports name the old network.
    let next = Settle { incarnation: 1, from: 0, ..later };
    let applied = world.block(vec![(OPERATOR, VenueOperation::Settle(next))]);
    assert_eq!(applied.outcomes, [Outcome::Refused(Refusal::BAD_SIGNATURE)]);
    *world.sequences.get_mut(&OPERATOR).expect("signed") -= 1;
    let evidence = primitives::venue::VenueEvidence {
        report: lie,
        contradicting: primitives::venue::Contradicting::Tree(Digest([8; 32]), Vec::new()),
        ended: Some(world.proven(0)),
    };
    let applied = world.block(vec![(7, VenueOperation::Accuse(Box::new(evidence)))]);
    assert_eq!(applied.outcomes, [Outcome::Refused(Refusal::BAD_SIGNATURE)]);
    assert_eq!(world.venue().entries, 0, "entries of before are forgotten");
    let number = |order: VenueOrder| {
        let mut order = order;
        (order.number.incarnation, order.floor.incarnation) = (1, 1);
        order
    };
    assert_eq!(world.settles(&[fill(number(buy(1)), number(sell(1)), 1)]), [FillVerdict::Applied]);
}

#[test]
fn fees_of_settles_grow_with_fills_signatures_and_the_lives_of_entries() {
    let world = World::new();
    let weight = |settle: Settle| VenueOperation::Settle(settle).weight(0);
    let one = weight(world.settle(&[fill(buy(1), sell(1), 1)]));
    let many = weight(world.settle(&vec![fill(buy(1), sell(1), 1); 9]));
    assert!(many >= one + 2, "{one}, {many}");
    let mut unsigned = world.settle(&vec![fill(buy(1), sell(1), 1); 9]);
    unsigned.orders.iter_mut().for_each(|order| order.signature = OrderSignature::Entered);
    assert!(weight(unsigned) < many);
    let long = VenueOrder { expiry: 100_000, ..buy(1) };
    assert!(weight(world.settle(&[fill(long, sell(1), 1)])) > one + 20);
    let forever = VenueOrder { expiry: u64::MAX, ..buy(1) };
    assert!(weight(world.settle(&[fill(forever, sell(1), 1)])) > 1 << 40, "no sum overflows");
    let deposits = VenueOperation::Deposit { venue: VENUE, asset: USD, units: 1 };
    assert_eq!(deposits.weight(0), 1);
    assert!(world.authorize(7, &trading(7), mandate()).weight(0) > 16);
}

#[test]
fn a_sub_block_has_a_quota_of_order_signatures_and_of_accusations() {
    let mut world = World::new();
    let mut quota = ledger::Quota::default();
    let most = primitives::venue::VENUE_SIGNATURES_PER_SUB_BLOCK;
    let settle = world.settle(&[fill(buy(1), sell(1), 1)]);
    let transaction = world.sign(OPERATOR, VenueOperation::Settle(settle));
    let admitted = (0..most).filter(|_| quota.admits(&transaction, 0)).count();
    assert_eq!(admitted, most as usize / 2, "two signatures each");
    world.settles(&[fill(buy(1), sell(1), 1)]);
    let lie = world.report(0, Digest([7; 32]), BUYER, 0);
    let accusation = world.accusation(lie);
    let accusation = world.sign(7, accusation);
    let accused = (0..100).filter(|_| quota.admits(&accusation, 0)).count();
    assert_eq!(accused, ledger::ACCUSATIONS_PER_SUB_BLOCK as usize);
}
