//! Runs random blocks against the plain model, and tests the properties of blocks: order, threads and recovery change
//! nothing, money is conserved, proofs hold.

mod claims;
mod draws;
mod model;
mod snapshots;

use std::collections::{BTreeMap, BTreeSet};

use claims::lies;
use clearing::{Clearing, ExactFill, ExactOrder, PoolTrade, Trade};
use draws::*;
use ledger::{
    AccountState, Applied, Attached, BlockReceipts, EndReason, ExactOutcome, ExactReason, ExactTrade, Fault, Genesis,
    LIFE_MAX, Ledger, Limits, Listing, Member, Membership, Outcome, Pair, PairOffers, Place, PoolFill, PoolRecord,
    PoolRecordId, PoolTerms, ReceiptsTrie, Refusal, Rest, Restore, RootPart, Roots, Schedule, Signatures, Snapshot,
    SnapshotError, Terms, is_asleep,
};
use model::Model;
use model::market::Market;
use model::sessions::ModelSession;
use primitives::{
    Address, AssetId, Body, ClientId, Committed, Contradiction, Digest, Evidence, ExactSide, Fraction, Life,
    OfferPlace, OfferReplacement, Operation, PoolKey, PoolOperation, Price, Proposed, RoundProposed, RoundValue,
    RoundVoted, Scope, SecretKey, Sequence, SessionCap, SessionOperation, SessionScope, SessionTerms, SignedBy, Stake,
    SubBlock, Superblock, Transaction, VoteKind, session_possession_bytes, slot_of, slot_sequence,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

fn superblock(ledger: &Ledger, parent_root: Digest, parts: Vec<Vec<Transaction>>) -> Superblock {
    let sub_blocks = parts
        .into_iter()
        .enumerate()
        .map(|(i, native)| SubBlock { proposer: i as u32, native, ..SubBlock::default() })
        .collect();
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    Superblock { height, parent, time_ms: 0, parent_root, sub_blocks, ..Superblock::default() }
}

fn apply(ledger: &mut Ledger, root: Digest, parts: Vec<Vec<Transaction>>) -> ledger::Applied {
    let block = superblock(ledger, root, parts);
    ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies")
}

/// What a history had: the refusals that occurred, how many remainders were returned, how many exact orders were
/// filled, how many offers of session keys traded, and how many ended with their keys.
#[derive(Default)]
struct Met {
    refusals: BTreeSet<Refusal>,
    returned: usize,
    filled: usize,
    keyed: usize,
    lapsed: usize,
}

/// Runs a random history.
fn run(seed: u64, blocks: usize, size: usize, fee: u64, epsilon: Fraction) -> Met {
    let mut met = Met::default();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let genesis = genesis(fee, epsilon);
    let mut model = Model::new(&genesis);
    let mut real = Ledger::new(&genesis).expect("a sound genesis");
    let mut shuffled = real.clone();
    let mut follower = real.clone();
    let mut follower_roots = Roots::of(&follower);
    let mut roots = Roots::of(&real);
    let mut shuffled_roots = Roots::of(&shuffled);
    let threads = [1, 2, 7][(seed % 3) as usize];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    for _ in 0..blocks {
        let mut block: Vec<Transaction> = (0..size).map(|_| draw(&mut rng, &model)).collect();
        for _ in 0..size / 20 {
            block.push(block[rng.random_range(0..size)].clone());
        }
        // Two sub-blocks with transactions, and one without.
        let in_three = |block: &[Transaction]| {
            let (first, second) = block.split_at(block.len() / 2);
            vec![first.to_vec(), second.to_vec(), Vec::new()]
        };
        let parent_root = roots.parts().root();
        let before = superblock(&real, parent_root, in_three(&block));
        let old = real.clone();
        let applied = apply(&mut real, parent_root, in_three(&block));
        let attached = Attached::of(&applied.batch);
        let (refusals, fills) = model.apply(&block, &parent_root, &attached);
        assert_outcomes(&block, &applied.outcomes, &refusals);
        met.refusals.extend(refusals.iter().flatten().copied());
        let said = applied.batch.fills.iter().map(|f| (f.pair, f.place, f.sold, f.bought, f.returned));
        assert_eq!(said.collect::<Vec<_>>(), fills);
        assert_exacts(&block, &applied);
        met.filled += applied.batch.exacts.len();
        met.keyed += applied.batch.fills.iter().filter(|fill| slot_of(fill.place.id) > 0).count();
        met.lapsed += applied.batch.ended.iter().filter(|ended| ended.why == EndReason::Lapsed).count();
        assert_returns(&applied, &real);
        met.returned += fills.iter().filter(|fill| fill.4 > 0).count();
        model.assert_same(&real);
        real.audit().expect("sound");
        assert_log(&old, &real, &block, &applied);
        // A follower that checks the clearing instead of solving gets the same result.
        lies(&mut follower, (&before, &attached), (&real, &applied), &model.market, &mut rng);
        let followed = pool.install(|| follower.apply_attached(&before, &attached, Signatures::Unchecked, &mut |_| {}));
        let followed = followed.expect("a correct clearing");
        assert_eq!((&followed.batch, &followed.outcomes), (&applied.batch, &applied.outcomes));
        model.assert_same(&follower);
        // The same transactions, shuffled over the sub-blocks, on another number of threads. Invalid ones stay where
        // they cost a proposer its reward.
        let honest: Vec<usize> = (0..block.len()).filter(|at| !refusals[*at].is_some_and(model::is_false)).collect();
        let mut shuffle: Vec<Transaction> = honest.iter().map(|at| block[*at].clone()).collect();
        shuffle.shuffle(&mut rng);
        honest.iter().zip(shuffle).for_each(|(at, transaction)| block[*at] = transaction);
        let parts = in_three(&block);
        let other = pool.install(|| apply(&mut shuffled, parent_root, parts));
        assert_eq!(other.batch, applied.batch);
        model.assert_same(&shuffled);
        let root = roots.apply(&applied.changes);
        assert_eq!(pool.install(|| shuffled_roots.apply(&other.changes)), root);
        assert_eq!(follower_roots.apply(&followed.changes), root);
        assert_eq!(Roots::of(&real).parts().root(), root, "updated tries = rebuilt tries");
    }
    assert_proofs(&real, &mut roots, &model);
    assert_recovers(&real, &mut roots);
    met
}

/// The receipt of each exact order says what the batch says, and what it locked is accounted for.
fn assert_exacts(block: &[Transaction], applied: &Applied) {
    let mut filled = 0;
    for (transaction, outcome) in block.iter().zip(&applied.outcomes) {
        let (body, Outcome::Exact(ExactOutcome { sold, bought, returned, why })) = (&transaction.body, *outcome) else {
            continue;
        };
        let Operation::Exact { side, units, bound, .. } = body.operation else { panic!("{body:?}") };
        let trade = |trade: &&ExactTrade| (trade.account, trade.id) == (body.account, body.sequence);
        let trade = applied.batch.exacts.iter().find(trade);
        assert_eq!(trade.map_or((0, 0), |trade| (trade.sold, trade.bought)), (sold, bought));
        assert_eq!(sold + returned, if side == ExactSide::Buy { bound } else { units });
        assert_eq!(trade.is_some(), why == ExactReason::Filled);
        filled += usize::from(trade.is_some());
    }
    assert_eq!(filled, applied.batch.exacts.len());
}

/// A returned remainder leaves no offer, and its account is among those that changed.
fn assert_returns(applied: &Applied, after: &Ledger) {
    for fill in applied.batch.fills.iter().filter(|fill| fill.returned > 0) {
        assert_eq!(fill.left, 0);
        assert!(applied.modified.contains(&fill.place.account));
        assert_eq!(after.book().get(fill.pair).and_then(|offers| offers.get(&fill.place)), None);
    }
}

/// The block's log of accounts names those whose state differs, and the receipts root alone proves it.
fn assert_log(old: &Ledger, new: &Ledger, block: &[Transaction], applied: &Applied) {
    let receipts = BlockReceipts {
        height: applied.height,
        block: applied.block,
        outcomes: block.iter().map(Transaction::id).zip(applied.outcomes.iter().copied()).collect(),
        modified: applied.modified.clone(),
        batch: applied.batch.clone(),
        contracts: applied.contracts.clone(),
        venues: applied.venues.clone(),
    };
    let mut trie = ReceiptsTrie::new(&receipts);
    let root = trie.root();
    let state = |ledger: &Ledger, who: &Address| ledger.accounts().get(who).map(|account| account.state());
    let is_changed = |who: &Address| state(old, who) != state(new, who);
    let people: Vec<Address> = (0..PEOPLE + 120).map(address).collect();
    for (who, other) in people.iter().zip(people.iter().skip(1)) {
        let proof = trie.prove_modified(who);
        assert_eq!(proof.verify(&root, who), Ok(is_changed(who)));
        assert!(proof.verify(&Digest([1; 32]), who).is_err(), "another root");
        // A path may prove that several accounts did not change, but nothing wrong about any account.
        assert!(
            proof.verify(&root, other).is_ok_and(|shown| shown == is_changed(other))
                || proof.verify(&root, other).is_err()
        );
    }
    assert_eq!(people.iter().filter(|who| is_changed(who)).count(), applied.modified.len());
    assert!(applied.modified.is_sorted());
}

fn restored(chunks: &[Vec<u8>]) -> Ledger {
    let mut restore = Restore::default();
    chunks.iter().for_each(|chunk| restore.push(chunk).expect("in place"));
    restore.finish().expect("whole")
}

/// It does not matter which of several copies counts, so copies are compared by their bodies.
fn assert_outcomes(block: &[Transaction], outcomes: &[Outcome], expected: &[Option<Refusal>]) {
    for (i, (outcome, expected)) in outcomes.iter().zip(expected).enumerate() {
        let copies = block.iter().filter(|t| t.body == block[i].body).count();
        if copies == 1 {
            assert_eq!(outcome.refusal(), *expected, "{:?}", block[i]);
        }
    }
    let count = |refusals: Vec<Option<Refusal>>| {
        let mut sorted = refusals;
        sorted.sort_unstable();
        sorted
    };
    assert_eq!(count(outcomes.iter().map(Outcome::refusal).collect()), count(expected.to_vec()));
}

fn assert_proofs(real: &Ledger, roots: &mut Roots, model: &Model) {
    let root = roots.parts().root();
    for person in 0..PEOPLE + 20 {
        let address = address(person);
        let proof = roots.prove_account(real, &address);
        let shown = proof.verify(&root, &address).expect("holds");
        assert_eq!(shown.is_some(), model.accounts.contains_key(&address));
        let spendable = |asset| shown.and_then(|s| s.balances.iter().find(|b| b.0 == asset)).map_or(0, |b| b.1);
        (0..ASSETS).for_each(|a| assert_eq!(spendable(AssetId(a)), model.balance_of(&address, AssetId(a))));
        assert!(proof.verify(&Digest([1; 32]), &address).is_err(), "another root");
        if let Some(state) = shown {
            let mut richer = proof.clone();
            let mut state = state.clone();
            state.balances.push((AssetId(99), 1));
            richer.account = Some(state);
            assert!(richer.verify(&root, &address).is_err(), "another balance");
        }
    }
    for (pair, place) in model.offers.keys().take(20) {
        let proof = roots.prove_offer(real, *pair, place);
        let rest = model.offers.get(&(*pair, *place)).map(|rest| Rest { amount: rest.0, until: rest.1 });
        assert_eq!(proof.verify(&root, *pair, place), Ok(rest));
        let absent = Place { id: place.id + 1_000, ..*place };
        assert_eq!(roots.prove_offer(real, *pair, &absent).verify(&root, *pair, &absent), Ok(None));
        assert!(proof.verify(&root, *pair, &absent).is_err(), "a proof of one offer for another");
    }
    for (pool, account) in model.pools.holdings.keys() {
        let (of, nobody) = (PoolRecordId::Holding((*pool, *account)), (*pool, address(250)));
        let proof = roots.prove_pool(real, &of).expect("the chain has pools");
        assert_eq!(proof.verify_holding(&root, (*pool, *account)), Ok(Some(model.pools.shares((*pool, *account)))));
        assert!(proof.verify_holding(&root, nobody).is_err() && proof.verify_pool(&root, *pool).is_err());
        let absent = roots.prove_pool(real, &PoolRecordId::Holding(nobody)).expect("the chain has pools");
        assert_eq!(absent.verify_holding(&root, nobody), Ok(None));
        let mine = model.pools.pools[pool];
        let proof = roots.prove_pool(real, &PoolRecordId::Pool(*pool)).expect("the chain has pools");
        let record = PoolRecord { a: mine.a, b: mine.b, shares: mine.shares };
        assert_eq!(proof.verify_pool(&root, *pool), Ok(Some(record)));
        let mut other = proof.clone();
        other.record = Some(borsh::to_vec(&PoolRecord { a: mine.a + 1, ..record }).expect("encodes"));
        assert_eq!(other.verify_pool(&root, *pool), Err(ledger::ProofFault::OtherValue));
        other = proof.clone();
        other.terms.0[0] ^= 1;
        assert!(other.verify_pool(&root, *pool).is_err());
    }
    let proof = roots.prove_validators(real);
    assert_eq!(proof.verify(&root), Ok(real.validators()));
    assert!(proof.verify(&Digest([1; 32])).is_err(), "another root");
    let mut other = Ledger::new(&genesis(0, Fraction::ZERO)).expect("sound");
    apply(&mut other, Digest::default(), Vec::new());
    let lie = ledger::ValidatorsProof { validators: other.validators().clone(), ..proof };
    assert_eq!(lie.verify(&root), Err(ledger::ProofFault::OtherValue));
    for asset in 0..=ASSETS {
        let proof = roots.prove_asset(real, AssetId(asset));
        assert_eq!(proof.verify(&root, AssetId(asset)).expect("holds"), real.assets().get(asset as usize));
    }
}

fn assert_recovers(real: &Ledger, roots: &mut Roots) {
    let chunks: Vec<Vec<u8>> = Snapshot::of(real).collect();
    let mut restore = Restore::default();
    chunks.iter().for_each(|chunk| restore.push(chunk).expect("in place"));
    let restored = restore.finish().expect("whole");
    assert_eq!(Roots::of(&restored).parts(), roots.parts());
    assert_eq!(Snapshot::of(&restored).collect::<Vec<_>>(), chunks, "canonical");
    assert_eq!((restored.height(), restored.last_block()), (real.height(), real.last_block()));
    for missing in 0..chunks.len() {
        let mut restore = Restore::default();
        let rest = chunks.iter().enumerate().filter(|(i, _)| *i != missing);
        let pushed = rest.map(|(_, chunk)| restore.push(chunk)).collect::<Result<Vec<_>, _>>();
        assert!(pushed.is_err() || restore.finish().is_err(), "chunk {missing} is missed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_blocks_equal_the_model(seed in any::<u64>(), fee in 0..3u64, free in any::<bool>()) {
        let epsilon = if free { Fraction::ZERO } else { Fraction::power_of_two(15) };
        run(seed, 5, 60, fee, epsilon);
    }
}

/// In its last block amounts are found without the lower bounds that meet all of them: no asset may be named short.
#[test]
fn a_batch_that_meets_every_bound_is_full() {
    run(3, 40, 110, 1, Fraction::power_of_two(15));
}

#[test]
fn a_longer_history_equals_the_model_and_meets_every_refusal() {
    let Met { refusals: met, returned, filled, keyed, lapsed } = run(19, 110, 110, 1, Fraction::power_of_two(15));
    assert!(filled > 5, "{filled} exact orders were filled");
    assert!(returned > 0, "{returned} remainders were returned");
    assert!(keyed > 0 && lapsed > 2, "{keyed} offers of session keys traded, {lapsed} ended with their keys");
    let all = [
        Refusal::BAD_SIGNATURE,
        Refusal::WRONG_CHAIN,
        Refusal::UNKNOWN_ACCOUNT,
        Refusal::WRONG_SIGNER,
        Refusal::SEQUENCE_USED,
        Refusal::SEQUENCE_TOO_OLD,
        Refusal::SEQUENCE_TOO_FAR,
        Refusal::ENDED,
        Refusal::ENDS_TOO_LATE,
        Refusal::UNKNOWN_ASSET,
        Refusal::ZERO_AMOUNT,
        Refusal::AMOUNT_TOO_LARGE,
        Refusal::SAME_ASSET,
        Refusal::SELF_PAYMENT,
        Refusal::ADDRESS_NOT_OF_KEY,
        Refusal::ACCOUNT_EXISTS,
        Refusal::NOT_ISSUER,
        Refusal::UNKNOWN_OFFER,
        Refusal::OVERDRAFT,
        Refusal::DUPLICATE,
        Refusal::SEQUENCE_CONFLICT,
        Refusal::KEY_CONFLICT,
        Refusal::ISSUE_TOO_LARGE,
        Refusal::NETWORK_ADDRESS,
        Refusal::STAKE_TOO_SMALL,
        Refusal::VALIDATOR_KEY_TAKEN,
        Refusal::NOT_POSSESSED,
        Refusal::NOT_A_VALIDATOR,
        Refusal::UNSTAKE_TOO_MUCH,
        Refusal::EXCLUDED,
        Refusal::BAD_EVIDENCE,
        Refusal::EVIDENCE_TOO_OLD,
        Refusal::STAKE_CONFLICT,
        Refusal::PRESENCE_NUMBER,
        Refusal::NOT_VALIDATORS_KEY,
        Refusal::PRESENCE_OF_OTHER_EPOCH,
        Refusal::PRESENT_ALREADY,
        Refusal::VALIDATOR_KEY_CONFLICT,
        Refusal::SELLS_TOO_LITTLE,
        Refusal::ASKS_TOO_LITTLE,
        Refusal::BOOK_FULL,
        Refusal::TOO_MANY_PAIRS,
        Refusal::REGISTRY_FULL,
        Refusal::CANCEL_LIST,
        Refusal::LIFE_ENDED,
        Refusal::LIFE_TOO_LONG,
        Refusal::REMAINS_TOO_FEW,
        Refusal::POOL_ASSETS,
        Refusal::NO_POOL_CLASS,
        Refusal::NO_POOL,
        Refusal::POOL_EXISTS,
        Refusal::POOL_TOO_SMALL,
        Refusal::POOL_COSTS_MORE,
        Refusal::POOL_PAYS_LESS,
        Refusal::SHARES_NOT_HELD,
        Refusal::EXACT_TOO_SMALL,
        Refusal::UNKNOWN_SESSION,
        Refusal::WRONG_SESSION_KEY,
        Refusal::SESSION_SCOPE,
        Refusal::SESSION_ENDED,
        Refusal::SESSION_LAPSED,
        Refusal::SESSION_CAP,
        Refusal::SESSION_REPLACES,
        Refusal::SESSION_SLOT,
        Refusal::SESSION_KEY_TAKEN,
        Refusal::SESSION_TERMS,
        Refusal::SESSION_HEIGHTS,
        Refusal::SESSION_THROUGH,
    ];
    let missed: Vec<_> = all.iter().filter(|refusal| !met.contains(refusal)).collect();
    assert!(missed.is_empty(), "the history never had {missed:?}");
}
