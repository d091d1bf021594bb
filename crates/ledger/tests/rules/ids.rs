//! Transaction ids: the outcome under an id in the receipts of a block.

use ledger::{
    BlockReceipts, Genesis, Ledger, Listing, Outcome, ReceiptsTrie, Refusal, Restart, Signatures, Snapshot,
    outcomes_by_id,
};
use primitives::{
    Address, AssetId, Body, Fraction, Operation, SecretKey, Signature, SubBlock, Superblock, Transaction, TransactionId,
};

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn genesis() -> Genesis {
    let me = key(1).public().address();
    let (mu, assets) = (Fraction::power_of_two(10), vec![Listing::new("USD", 2, me)]);
    let balances = vec![(me, AssetId(0), 100), (key(2).public().address(), AssetId(0), 100)];
    Genesis { chain: 1, fee: 1, mu, assets, balances, ..Genesis::default() }
}

fn ledger() -> Ledger {
    Ledger::new(&genesis()).expect("sound")
}

fn payment(sequence: u64, amount: u64) -> Transaction {
    let operation = Operation::Pay { to: Address([9; 20]), asset: AssetId(0), amount };
    Body { chain: 1, account: key(1).public().address(), sequence, until: 50_000, operation }
        .sign(&ledger().network(), &key(1))
}

fn block(ledger: &Ledger, native: Vec<Transaction>) -> Superblock {
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    Superblock { height, parent, sub_blocks, ..Superblock::default() }
}

/// The receipts of a block of these transactions.
fn receipts(native: Vec<Transaction>) -> BlockReceipts {
    let mut ledger = ledger();
    let ids: Vec<TransactionId> = native.iter().map(Transaction::id).collect();
    let block = block(&ledger, native);
    let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    BlockReceipts {
        height: 1,
        block: applied.block,
        outcomes: ids.into_iter().zip(applied.outcomes).collect(),
        modified: applied.modified,
        batch: applied.batch,
        contracts: applied.contracts,
        venues: applied.venues,
    }
}

/// The proven outcome of an id.
fn proved(receipts: &BlockReceipts, id: &TransactionId) -> Option<Outcome> {
    let mut trie = ReceiptsTrie::new(receipts);
    let root = trie.root();
    trie.prove(id, receipts).verify(&root, id).expect("it proves something")
}

#[test]
fn the_id_names_body_and_signer_and_not_the_signature() {
    let original = payment(1, 5);
    let forged = Transaction::by_key(original.body.clone(), key(1).public(), Signature([7; 64]));
    assert_eq!(forged.id(), original.id());
    let other = original.body.clone().sign(&ledger().network(), &key(2));
    assert_ne!(other.id(), original.id());
    assert_ne!(payment(2, 5).id(), original.id());
}

/// Anyone who sees a transaction can copy its body and signer with an invalid signature.
#[test]
fn a_copy_with_a_false_signature_says_nothing_under_the_id() {
    let original = payment(1, 5);
    let forged = Transaction::by_key(original.body.clone(), key(1).public(), Signature([7; 64]));
    for native in [vec![original.clone(), forged.clone()], vec![forged.clone(), original.clone()]] {
        let is_forged: Vec<bool> = native.iter().map(|one| *one == forged).collect();
        let receipts = receipts(native);
        for ((_, outcome), is_forged) in receipts.outcomes.iter().zip(is_forged) {
            let expected = if is_forged { Outcome::Refused(Refusal::BAD_SIGNATURE) } else { Outcome::Applied };
            assert_eq!(*outcome, expected);
        }
        assert_eq!(proved(&receipts, &original.id()), Some(Outcome::Applied));
        assert_eq!(outcomes_by_id(receipts.outcomes), [(original.id(), Outcome::Applied)]);
    }
    let alone = receipts(vec![forged]);
    assert_eq!(alone.outcomes[0].1, Outcome::Refused(Refusal::BAD_SIGNATURE));
    assert_eq!(proved(&alone, &original.id()), None);
}

#[test]
fn of_several_outcomes_an_effect_counts_and_then_the_lowest_refusal() {
    let (id, other) = (payment(1, 5).id(), payment(2, 5).id());
    let refused = Outcome::Refused;
    let cases = [
        (vec![refused(Refusal::DUPLICATE), Outcome::Applied], Some(Outcome::Applied)),
        (vec![refused(Refusal::WRONG_CHAIN), Outcome::Applied], Some(Outcome::Applied)),
        (vec![refused(Refusal::DUPLICATE), refused(Refusal::OVERDRAFT)], Some(refused(Refusal::OVERDRAFT))),
        (vec![refused(Refusal::OVERDRAFT), refused(Refusal::WRONG_CHAIN)], Some(refused(Refusal::WRONG_CHAIN))),
        (vec![refused(Refusal::BAD_SIGNATURE), refused(Refusal::OVERDRAFT)], Some(refused(Refusal::OVERDRAFT))),
        (vec![refused(Refusal::BAD_SIGNATURE)], None),
    ];
    for (mut outcomes, expected) in cases {
        for _ in 0..2 {
            outcomes.reverse();
            let entries = outcomes.iter().map(|outcome| (id, *outcome)).chain([(other, Outcome::Applied)]);
            let found = outcomes_by_id(entries).into_iter().find(|(known, _)| *known == id);
            assert_eq!(found.map(|(_, outcome)| outcome), expected, "{outcomes:?}");
        }
    }
}

/// A key signs for one network: not for another one with the same chain number and accounts, nor for a restarted one.
#[test]
fn what_a_key_signs_for_one_network_is_forged_in_another() {
    let outcome = |ledger: &mut Ledger, transaction: &Transaction| {
        let block = block(ledger, vec![transaction.clone()]);
        ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies").outcomes[0]
    };
    let signed = payment(1, 5);
    let mut restarted = ledger();
    let (first, snapshot) = (restarted.network(), Snapshot::digest(&restarted));
    restarted
        .begin_again(&first, &Restart { number: 1, snapshot, committee: Vec::new(), lane: None, rules: None }, None)
        .expect("the state agreed on");
    let mut other = Ledger::new(&Genesis { fee: 2, ..genesis() }).expect("sound");
    assert_eq!(outcome(&mut restarted, &signed), Outcome::Refused(Refusal::BAD_SIGNATURE));
    assert_eq!(outcome(&mut other, &signed), Outcome::Refused(Refusal::BAD_SIGNATURE));
    assert_eq!(outcome(&mut ledger(), &signed), Outcome::Applied);
}

/// Both have one number, a copy of one is elsewhere in the block, and no order changes the outcomes of the ids.
#[test]
fn copies_in_a_conflict_say_the_same_in_every_order() {
    let (one, two) = (payment(1, 5), payment(1, 6));
    let all = [one.clone(), two.clone(), one.clone()];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2]] {
        let receipts = receipts(order.iter().map(|at| all[*at].clone()).collect());
        let (lost, counts) = (one.id().min(two.id()), one.id().max(two.id()));
        assert_eq!(proved(&receipts, &lost), Some(Outcome::Refused(Refusal::SEQUENCE_CONFLICT)));
        assert_eq!(proved(&receipts, &counts), Some(Outcome::Applied));
    }
}

/// An attacker who sees that an account is about to be created cannot stop it by creating it, too.
#[test]
fn an_account_that_two_create_comes_into_being_and_both_pay() {
    let new = key(3).public();
    let create = |person: u8| {
        let operation = Operation::CreateAccount { account: new.address(), key: new };
        Body { chain: 1, account: key(person).public().address(), sequence: 1, until: 50_000, operation }
            .sign(&ledger().network(), &key(person))
    };
    let mut ledger = ledger();
    let sub_blocks = vec![SubBlock { native: vec![create(1), create(2)], ..SubBlock::default() }];
    let block = Superblock { height: 1, parent: ledger.last_block(), sub_blocks, ..Superblock::default() };
    let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    assert_eq!(applied.outcomes, [Outcome::Applied; 2]);
    assert!(ledger.accounts().get(&new.address()).is_some());
    for person in [1, 2] {
        let state = ledger.accounts().get(&key(person).public().address()).expect("exists").state();
        assert_eq!((state.balances, state.window.highest()), (vec![(AssetId(0), 99)], 1));
    }
}
