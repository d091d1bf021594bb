//! Blocks that carry a clearing: whatever their proposer claims, all who apply them agree, and a false claim costs the
//! proposer alone.

use ledger::{
    Applied, Attached, AttachedTrade, Genesis, Ledger, Member, Membership, Pair, Roots, Schedule, Signatures, Source,
    Terms, Violation,
};
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Operation, Price, SecretKey, Sequence, SubBlock, Superblock, Transaction,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ASSETS: u32 = 3;
const PEOPLE: u8 = 6;
const REWARD: u64 = 7;

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

/// Two validators who stay, with accounts of their own.
fn genesis() -> Genesis {
    let schedule = Schedule { epoch_heights: 0, delay: 0 };
    let terms = Terms { schedule, committee: 2, minimum_stake: 1, reward: REWARD, ..Terms::default() };
    let founder = |index: u8| {
        let key = SecretKey::from_seed([100 + index; 32]).public();
        Member { account: key.address(), key, address: String::new(), stake: 50 }
    };
    let founders = vec![founder(0), founder(1)];
    let balances = (0..PEOPLE).flat_map(|p| (0..ASSETS).map(move |asset| (address(p), AssetId(asset), 1 << 40)));
    Genesis {
        chain: 1,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: (0..ASSETS).map(|asset| (format!("A{asset}"), 2, address(0))).collect(),
        balances: balances.collect(),
        membership: Some(Membership { terms, reward_pool: 1_000_000, founders }),
        ..Genesis::default()
    }
}

/// Offers around one price, now and then nothing.
fn offers(rng: &mut ChaCha8Rng, sequence: &mut Sequence) -> Vec<Transaction> {
    let count = if rng.random_ratio(1, 6) { 0 } else { rng.random_range(1..30) };
    let offer = |_| {
        *sequence += 1;
        let person = rng.random_range(0..PEOPLE);
        let sell = rng.random_range(0..ASSETS);
        let (sell, buy) = (AssetId(sell), AssetId((sell + rng.random_range(1..ASSETS)) % ASSETS));
        let limit = Price::from_f64(f64::from(rng.random_range(900..1_100)) / 1_000.0).expect("in range");
        let most = if rng.random_ratio(1, 10) { 100 } else { 200_000 };
        let amount = rng.random_range(1..most);
        let operation = Operation::CreateOffer { sell, buy, amount, limit };
        Body { chain: 1, account: address(person), sequence: *sequence, operation }.sign(&key(person))
    };
    (0..count).map(offer).collect()
}

fn block(ledger: &Ledger, root: Digest, sub_blocks: Vec<SubBlock>) -> Superblock {
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    Superblock { height, parent, time_ms: 0, parent_root: root, sub_blocks }
}

fn bytes(attached: &Attached) -> Vec<u8> {
    borsh::to_vec(attached).expect("writing to memory")
}

/// What a proposer may claim: the truth, nothing, what was true before, or anything else.
fn claim(rng: &mut ChaCha8Rng, ledger: &Ledger, native: &[Transaction], before: &[u8]) -> Vec<u8> {
    let truth = ledger.clearing_of(native);
    let mut lie = truth.clone().unwrap_or_default();
    let price = |rng: &mut ChaCha8Rng| {
        let parts = rng.random_range(0..u64::MAX);
        Price::from_bits(parts).unwrap_or(Price::from_f64(rng.random_range(0.5..2.0)).expect("in range"))
    };
    match rng.random_range(0..15) {
        0 => return Vec::new(),
        1 => return before.to_vec(),
        2 => return (0..rng.random_range(1..80)).map(|_| rng.random()).collect(),
        // Nothing trades at the prices of the batch before.
        3 => lie = Attached { valuations: ledger.assets().iter().map(|asset| asset.valuation).collect(), ..lie },
        4 => lie.full = false,
        5 => lie.trades.clear(),
        6 => lie.valuations.iter_mut().for_each(|valuation| *valuation = price(rng)),
        7 if !lie.trades.is_empty() => {
            let which = rng.random_range(0..lie.trades.len());
            lie.trades[which].sold = rng.random_range(0..u64::MAX) >> rng.random_range(0..64);
        }
        8 => {
            let pair = Pair { sell: AssetId(rng.random_range(0..9)), buy: AssetId(rng.random_range(0..9)) };
            let marginal = lie.trades.first().map_or(ledger::Place::highest(price(rng)), |trade| trade.marginal);
            lie.trades.push(AttachedTrade { pair, sold: 5, marginal });
        }
        _ => return truth.map_or(Vec::new(), |truth| bytes(&truth)),
    }
    bytes(&lie)
}

/// What should come of a claim, by what is said of it elsewhere: the batch, and whether it is the proposer's.
fn judged(ledger: &Ledger, root: Digest, native: &[Transaction], claimed: &[u8]) -> (Applied, bool) {
    let sub_blocks = vec![SubBlock { native: native.to_vec(), ..SubBlock::default() }];
    let bare = block(ledger, root, sub_blocks);
    let attached = borsh::from_slice::<Attached>(claimed).ok().filter(|attached| attached.full);
    let by_claim = attached
        .and_then(|attached| ledger.clone().apply_attached(&bare, &attached, Signatures::Unchecked, &mut |_| {}).ok());
    let counts = by_claim.is_some();
    let solved = || ledger.clone().apply(&bare, Signatures::Unchecked, &mut |_| {}).expect("applies");
    (by_claim.unwrap_or_else(solved), counts)
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool")
}

/// Runs a history on one thread and on several; says how often the proposer's clearing counted, and how often it did not.
fn run(seed: u64, blocks: usize) -> (usize, usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut ledger = Ledger::new(&genesis()).expect("sound");
    let mut other = ledger.clone();
    let (mut roots, mut other_roots) = (Roots::of(&ledger), Roots::of(&other));
    let (one, many) = (pool(1), pool(3));
    let (mut sequence, mut before, mut counted, mut refused) = (0, Vec::new(), 0, 0);
    for _ in 0..blocks {
        let native = offers(&mut rng, &mut sequence);
        let claimed = claim(&mut rng, &ledger, &native, &before);
        let root = roots.parts().root();
        let (expected, counts) = judged(&ledger, root, &native, &claimed);
        if let Some(truth) = ledger.clearing_of(&native) {
            assert!(counts || claimed != bytes(&truth), "what a correct proposer claims holds");
        }
        let paid = ledger.validators().pool();
        let sub_block = SubBlock { proposer: 1, native, clearing: claimed.clone(), ..SubBlock::default() };
        let next = block(&ledger, root, vec![sub_block]);
        let applied = one.install(|| ledger.apply(&next, Signatures::Unchecked, &mut |_| {})).expect("applies");
        let again = many.install(|| other.apply(&next, Signatures::Valid, &mut |_| {})).expect("applies");
        assert_eq!((&applied.batch, &applied.outcomes), (&expected.batch, &expected.outcomes));
        assert_eq!((&applied.batch, &applied.outcomes), (&again.batch, &again.outcomes));
        assert_eq!(applied.source, again.source);
        let earned = paid - ledger.validators().pool();
        match &applied.source {
            Source::Solver => assert!(claimed.is_empty() && earned == REWARD),
            Source::Proposer => assert!(counts && !claimed.is_empty() && earned == REWARD),
            Source::SolverInstead(_) => assert!(!counts && !claimed.is_empty() && earned == 0),
        }
        counted += usize::from(applied.source == Source::Proposer);
        refused += usize::from(matches!(applied.source, Source::SolverInstead(_)));
        ledger.audit().expect("sound");
        let root = roots.apply(&applied.changes);
        assert_eq!(other_roots.apply(&again.changes), root);
        assert_eq!(Roots::of(&ledger).parts().root(), root, "kept up = built anew");
        before = claimed;
    }
    (counted, refused)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn all_agree_whatever_a_block_claims(seed in any::<u64>()) {
        run(seed, 6);
    }
}

#[test]
fn claims_are_counted_and_refused() {
    let (counted, refused) = run(1, 40);
    assert!(counted > 10 && refused > 10, "{counted} counted, {refused} refused");
}

/// A ledger in which something trades, and the block that it is about to apply.
fn scene() -> (Ledger, Vec<Transaction>, Attached) {
    let (mut rng, mut sequence) = (ChaCha8Rng::seed_from_u64(5), 0);
    loop {
        let ledger = Ledger::new(&genesis()).expect("sound");
        let native = offers(&mut rng, &mut sequence);
        match ledger.clearing_of(&native) {
            Some(truth) if truth.trades.len() > 2 => return (ledger, native, truth),
            _ => sequence = 0,
        }
    }
}

#[test]
fn the_clearing_that_is_claimed_is_the_one_that_is_found() {
    let (ledger, native, truth) = scene();
    let (solved, _) = judged(&ledger, Digest::default(), &native, &[]);
    assert_eq!(truth, Attached::of(&solved.batch));
}

#[test]
fn what_is_false_is_named() {
    let (ledger, native, truth) = scene();
    let source = |claimed: Vec<u8>| {
        let sub_blocks = vec![SubBlock { native: native.clone(), clearing: claimed, ..SubBlock::default() }];
        let next = block(&ledger, Digest::default(), sub_blocks);
        ledger.clone().apply(&next, Signatures::Unchecked, &mut |_| {}).expect("applies").source
    };
    assert_eq!(source(Vec::new()), Source::Solver);
    assert_eq!(source(bytes(&truth)), Source::Proposer);
    assert_eq!(source(vec![9]), Source::SolverInstead(Violation::Undecodable));
    let modest = Attached { full: false, ..truth.clone() };
    assert_eq!(source(bytes(&modest)), Source::SolverInstead(Violation::NotClaimedFull));
    let idle = Attached { trades: Vec::new(), ..truth };
    assert!(matches!(source(bytes(&idle)), Source::SolverInstead(Violation::NotFull { .. })));
}

#[test]
fn where_two_have_a_share_what_one_claims_counts_for_nothing() {
    let (mut ledger, native, truth) = scene();
    let first = SubBlock { native, clearing: bytes(&truth), ..SubBlock::default() };
    let second = SubBlock { proposer: 1, clearing: vec![9], ..SubBlock::default() };
    let next = block(&ledger, Digest::default(), vec![first, second]);
    let pool = ledger.validators().pool();
    let applied = ledger.apply(&next, Signatures::Unchecked, &mut |_| {}).expect("applies");
    assert_eq!((applied.source, pool - ledger.validators().pool()), (Source::Solver, 2 * REWARD));
}
