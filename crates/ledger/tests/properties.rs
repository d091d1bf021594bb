//! Runs random blocks against the plain model, and tests the properties of blocks: order, threads and recovery change
//! nothing, money is conserved, proofs hold.

mod model;

use std::collections::{BTreeMap, BTreeSet};

use clearing::{Clearing, ExactFill, ExactOrder, PoolTrade, Trade};
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

const ASSETS: u32 = 4;
const PEOPLE: u8 = 10;

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

fn genesis(fee: u64, epsilon: Fraction) -> Genesis {
    let listing = |asset: u32| Listing {
        least_units: [4_096, 10_000, 2_115, 5_000][asset as usize % 4],
        ..Listing::new(format!("A{asset}"), 2, address(asset as u8))
    };
    let assets = (0..ASSETS).map(listing).collect();
    let balances = (0..PEOPLE)
        .flat_map(|person| (0..ASSETS).map(move |asset| (address(person), AssetId(asset), 3_000_000)))
        .filter(|(_, asset, _)| asset.0 != 3)
        .collect();
    let (mu, membership) = (Fraction::power_of_two(10), Some(membership()));
    let pools = Some(PoolTerms { fees: [9, 5].map(Fraction::power_of_two).to_vec() });
    let limits = Limits { resting_offers: 20, open_pairs: 7, validators: 6, ..Limits::default() };
    Genesis { chain: 7, fee, epsilon, mu, limits, assets, balances, membership, pools, ..Genesis::default() }
}

/// The key of a validator's node.
fn node_key(number: u8) -> SecretKey {
    SecretKey::from_seed([150 + number; 32])
}

/// Short epochs, a small pool, and four founders; three of them are drawn.
fn membership() -> Membership {
    let terms = Terms {
        network: Digest([42; 32]),
        schedule: Schedule { epoch_heights: 4, delay: 3 },
        committee: 3,
        minimum_stake: 50,
        unbonding_epochs: 1,
        reward: 3,
        slash: "0.3".parse().expect("a fraction"),
    };
    let founder = |number: u8| Member {
        account: address(number),
        key: node_key(number).public(),
        address: format!("v{number}.example:9100"),
        stake: 100 * (u64::from(number) + 1),
    };
    Membership { terms, reward_pool: 200, founders: (0..4).map(founder).collect() }
}

/// Draws an operation of an account on validators.
fn draw_staking(rng: &mut ChaCha8Rng, model: &Model, account: &Address) -> Operation {
    match rng.random_range(0..12) {
        0..5 => {
            let own = model
                .validators
                .registry
                .get(account)
                .and_then(|own| (0..20).find(|n| node_key(*n).public() == own.key));
            let number = own.filter(|_| rng.random_ratio(1, 2)).unwrap_or_else(|| rng.random_range(0..20));
            let units = [0, 10, 60, 300, 5_000][rng.random_range(0..5)];
            let place = if rng.random_ratio(1, 20) {
                "nowhere".into()
            } else {
                format!("v{number}.example:{}", 1 + rng.random_range(0..3))
            };
            let mut stake = Stake::new(units, place, 7, account, &node_key(number));
            if rng.random_ratio(1, 20) {
                stake.key = node_key((number + 1) % 20).public();
            }
            Operation::Stake(Box::new(stake))
        }
        5..9 => {
            let staked = model.validators.registry.get(account).map_or(10, |own| own.stake);
            let units = [staked, staked + 1, staked / 3, 10][rng.random_range(0..4)];
            Operation::Unstake { units }
        }
        _ => Operation::Accuse(Box::new(draw_evidence(rng, model))),
    }
}

/// Draws an operation of an account on one of few pools.
fn draw_pool(rng: &mut ChaCha8Rng, model: &Model, account: &Address) -> Operation {
    let any = |rng: &mut ChaCha8Rng| {
        let a = rng.random_range(0..2);
        let class = if rng.random_ratio(1, 30) { 2 } else { rng.random_range(0..2) };
        let b = if rng.random_ratio(1, 30) { a } else { rng.random_range(a + 1..ASSETS - 1) };
        PoolKey { a: AssetId(a), b: AssetId(b), class }
    };
    let own: Vec<PoolKey> =
        model.pools.holdings.keys().filter(|(_, of)| of == account).map(|(pool, _)| *pool).collect();
    let kind = rng.random_range(0..10);
    let pool = if kind >= 6 && !own.is_empty() { own[rng.random_range(0..own.len())] } else { any(rng) };
    let near =
        |rng: &mut ChaCha8Rng, units: u64| [units, units + 1, units.saturating_sub(1), 0][rng.random_range(0..4)];
    let shares = match rng.random_range(0..12) {
        0 => 0,
        1 => u64::MAX,
        2 => 1,
        _ => rng.random_range(1..1 << 23),
    };
    let known = model.pools.pools.get(&pool);
    Operation::Pool(Box::new(match kind {
        0..2 => {
            PoolOperation::Open { pool, x: rng.random_range(50_000..900_000), y: rng.random_range(50_000..900_000) }
        }
        2..6 => {
            let [a, b] = known.map_or([1u8.into(), 1u8.into()], |pool| pool.cost(shares));
            let most = |rng: &mut ChaCha8Rng, cost| {
                let cost = u64::try_from(cost).unwrap_or(7);
                if rng.random_ratio(3, 4) { cost + rng.random_range(0..1_000) } else { near(rng, cost) }
            };
            PoolOperation::Provide { pool, shares, most_a: most(rng, a), most_b: most(rng, b) }
        }
        _ => {
            let held = model.pools.shares((pool, *account));
            let shares = [held, held + 1, held / 3, shares][rng.random_range(0..4)];
            let [a, b] = known.map_or([1u8.into(), 1u8.into()], |pool| pool.pays(shares));
            let least = |rng: &mut ChaCha8Rng, pays| near(rng, u64::try_from(pays).unwrap_or(7));
            let (least_a, least_b) = if rng.random_ratio(1, 4) { (least(rng, a), least(rng, b)) } else { (0, 0) };
            PoolOperation::Leave { pool, shares, least_a, least_b }
        }
    }))
}

/// Draws an exact order: some too small, some for more than there is, some beyond the rate.
fn draw_exact(rng: &mut ChaCha8Rng, sell: AssetId, buy: AssetId) -> Operation {
    let units = match rng.random_range(0..20) {
        0 => 0,
        1 => u64::MAX,
        2 => rng.random_range(1..4_000),
        3..6 => rng.random_range(100_000..1_000_000),
        _ => rng.random_range(4_000..20_000),
    };
    let bound = match rng.random_range(0..20) {
        0 => 0,
        1 => i64::MAX as u64 + rng.random_range(0..2),
        _ => (units as f64 * rng.random_range(0.9..1.15)) as u64,
    };
    let side = if rng.random() { ExactSide::Buy } else { ExactSide::Sell };
    Operation::Exact { sell, buy, side, units, bound, client: ClientId([rng.random(); 16]) }
}

/// One of the few keys that accounts authorise.
fn session_key(number: u8) -> SecretKey {
    SecretKey::from_seed([number, 77].repeat(16).try_into().expect("32 bytes"))
}

/// Draws an operation on session keys: most authorise or keep alive, some twice or out of bounds.
fn draw_session(rng: &mut ChaCha8Rng, model: &Model, person: u8) -> Operation {
    let (account, next) = (address(person), model.validators.height + 1);
    let sessions = model.accounts.get(&account).map(|account| account.sessions.clone()).unwrap_or_default();
    let live: Vec<u64> = sessions.live.keys().copied().collect();
    let slot = match live.is_empty() || rng.random_ratio(1, 10) {
        true => rng.random_range(0..sessions.slots + 3),
        false => live[rng.random_range(0..live.len())],
    } as u32;
    let through = next + rng.random_range(0..6);
    let operation = match rng.random_range(0..10) {
        0..5 => {
            let number = rng.random_range(0..24);
            let owner = rng.random_ratio(1, 30);
            let secret = if owner { key(person) } else { session_key(number) };
            let slot = sessions.slots as u32 + [1, 1, 1, 1, 1, 2, 0][rng.random_range(0..7)];
            let until = next + rng.random_range(0..24) + if rng.random_ratio(1, 40) { LIFE_MAX } else { 0 };
            let alive = until.saturating_sub(rng.random_range(0..8));
            let scope = if rng.random_ratio(1, 5) { SessionScope::Cancel } else { SessionScope::Trade };
            let cap = |asset: u32, units: u64| SessionCap { asset: AssetId(asset), units };
            let of_one = |asset, rng: &mut ChaCha8Rng| match rng.random_range(0..12) {
                0 => cap(asset, 0),
                1 => cap(asset, i64::MAX as u64),
                _ => cap(asset, rng.random_range(100..60_000)),
            };
            let mut caps: Vec<SessionCap> = (0..ASSETS).map(|asset| of_one(asset, rng)).collect();
            caps.retain(|_| rng.random_ratio(7, 8));
            if rng.random_ratio(1, 30) {
                caps.reverse();
            }
            let of = if rng.random_ratio(1, 30) { slot + 1 } else { slot };
            let possession = secret.sign(&session_possession_bytes(&model.network, &account, of, &secret.public()));
            let terms = SessionTerms { slot, key: secret.public(), scope, until, alive, caps: caps.into() };
            SessionOperation::Authorize { terms, possession }
        }
        5 => SessionOperation::Revoke { slot },
        6 => SessionOperation::Alive { slot, through: 0 },
        _ => SessionOperation::Alive { slot, through },
    };
    Operation::Session(Box::new(operation))
}

/// Signs as one of the account's session keys would, if it has any.
fn signed_by_session(
    rng: &mut ChaCha8Rng,
    model: &Model,
    account: Address,
    operation: &Operation,
) -> Option<Transaction> {
    let sessions = &model.accounts.get(&account)?.sessions;
    let live: Vec<(&u64, &ModelSession)> = sessions.live.iter().collect();
    let (slot, session) = *live.get(rng.random_range(0..live.len().max(1)))?;
    let number = match rng.random_range(0..20) {
        0 => session.highest() + 60 + rng.random_range(0..8),
        1 => session.highest().saturating_sub(rng.random_range(0..70)),
        _ => session.highest() + rng.random_range(1..12),
    };
    let wrong = rng.random_ratio(1, 40);
    let secret = (0..24).map(session_key).find(|secret| (secret.public() == session.key) != wrong)?;
    let sequence = slot_sequence(*slot as u32 + u32::from(rng.random_ratio(1, 40)), number);
    let mut operation = operation.clone();
    if let Operation::Replace(replace) = &mut operation
        && let Some((pair, place)) = model.open(&account, *slot).first()
        && rng.random_ratio(3, 4)
    {
        replace.old = OfferPlace { sell: pair.sell, buy: pair.buy, limit: place.limit, offer: place.id };
        replace.remains = model.offers[&(*pair, *place)].0 + [0, 3_000][rng.random_range(0..2)];
    }
    let until = model.validators.height + 1 + rng.random_range(0..3);
    Some(Body { chain: 7, account, sequence, until, operation }.sign(&model.network, &secret))
}

/// Mostly evidence that proves nothing, because every conviction costs a validator.
fn draw_evidence(rng: &mut ChaCha8Rng, model: &Model) -> Evidence {
    let epoch = (model.validators.committees.len() as u64).saturating_sub(rng.random_range(0..6));
    let committee = model.validators.committees.get(epoch as usize);
    let member = rng.random_range(0..4);
    let key = committee.and_then(|members| members.get(usize::from(member))).map(|member| member.key);
    let secret = (0..20).map(node_key).find(|secret| Some(secret.public()) == key).unwrap_or_else(|| node_key(0));
    let (height, is_true) = (rng.random_range(1..100), rng.random_ratio(1, 8));
    let scope = Scope { network: Digest([42; 32]), epoch };
    let one = |number: u8| Digest([number; 32]);
    let (first, second) = (one(1), one(if is_true || rng.random() { 2 } else { 1 }));
    let signer = if is_true || first == second { secret } else { key_of_nobody() };
    let (round, kind) = (rng.random_range(0..3), VoteKind::Precommit);
    let value = |digest| RoundValue { slot: 1, digest };
    let contradiction = match rng.random_range(0..4) {
        0 => Contradiction::Proposals([first, second].map(|payload| Proposed {
            payload,
            length: 9,
            signature: signer.sign(&scope.proposal(height, member, &payload, 9).0),
        })),
        1 => Contradiction::Commits([first, second].map(|root| Committed {
            superblock: one(3),
            root,
            signature: signer.sign(&scope.commit(height, &one(3), &root).0),
        })),
        2 => {
            let votes = [first, second].map(|digest| {
                // A vote for nil contradicts one for a value.
                let value = (digest == one(2)).then_some(value(digest));
                let signature = signer.sign(&scope.round_vote(height, round, kind, value.as_ref()).0);
                RoundVoted { value, signature }
            });
            Contradiction::RoundVotes { round, kind, votes }
        }
        _ => {
            let proposals = [first, second].map(|digest| {
                let (value, valid_round) = (value(digest), None);
                let signature = signer.sign(&scope.round_proposal(height, round, &value, valid_round).0);
                RoundProposed { value, valid_round, signature }
            });
            Contradiction::RoundProposals { round, proposals }
        }
    };
    Evidence { epoch, member, height, contradiction }
}

fn key_of_nobody() -> SecretKey {
    SecretKey::from_seed([255; 32])
}

/// Draws a transaction: usually valid, sometimes invalid in one of the ways that the filter knows.
fn draw(rng: &mut ChaCha8Rng, model: &Model) -> Transaction {
    let person = rng.random_range(0..PEOPLE + 2);
    let account = address(person);
    let asset = |rng: &mut ChaCha8Rng| {
        let unknown = u32::from(rng.random_ratio(1, 60));
        AssetId(rng.random_range(0..ASSETS + unknown))
    };
    let amount = |rng: &mut ChaCha8Rng| match rng.random_range(0..40) {
        0 => 0,
        1 => 5_000_000,
        2 => i64::MAX as u64 - rng.random_range(0..8_000_000),
        3 => u64::MAX,
        // Remainders of small offers are too small to rest.
        4..32 => rng.random_range(4_000..16_000),
        _ => rng.random_range(1..400_000),
    };
    let highest = model.accounts.get(&account).and_then(|a| a.used.last().copied()).unwrap_or(0);
    let sequence: Sequence = match rng.random_range(0..30) {
        0 => highest + 65 + rng.random_range(0..3),
        1 => highest.saturating_sub(rng.random_range(0..70)),
        2 => highest + 64,
        _ => highest + rng.random_range(1..20),
    };
    let operation = match rng.random_range(0..38) {
        31..35 => draw_session(rng, model, person),
        28..31 | 35.. => {
            let (sell, buy) = (asset(rng), asset(rng));
            draw_exact(rng, sell, buy)
        }
        20..24 => draw_staking(rng, model, &account),
        24..28 => draw_pool(rng, model, &account),
        0 => {
            // A new account that other transactions of the block are likely to pick, too, or any account.
            let fresh = PEOPLE + 12 + (model.accounts.len() % 100) as u8;
            let other = if rng.random_ratio(1, 2) { fresh } else { rng.random_range(0..PEOPLE + 12) };
            let own = rng.random_ratio(1, 2);
            let new_key = key(other).public();
            let bad = rng.random_ratio(1, 8);
            let named = if bad { Address([9; 20]) } else { new_key.address() };
            Operation::CreateAccount { account: if own { account } else { named }, key: new_key }
        }
        1..=3 => {
            let mine: Vec<_> =
                model.offers.keys().filter(|(_, place)| place.account == account || rng.random_ratio(1, 20)).collect();
            let named = |(Pair { sell, buy }, Place { limit, id, .. }): &(Pair, Place)| OfferPlace {
                sell: *sell,
                buy: *buy,
                limit: *limit,
                offer: *id,
            };
            let absent = OfferPlace { sell: AssetId(0), buy: AssetId(1), limit: Price::ONE, offer: 1 };
            if rng.random_ratio(2, 5) {
                let old = mine.first().map_or(absent, |mine| named(mine));
                let rests = mine.first().map_or(9_000, |mine| model.offers[*mine].0);
                // What the sender believes is often more than what rests.
                let remains =
                    rests + [0, 0, 3_000, 20_000][rng.random_range(0..4)] - u64::from(rng.random_ratio(1, 12));
                let limit = Price::from_f64(f64::from(rng.random_range(900..1_100)) / 1_000.0).expect("in range");
                let life =
                    [Life::Rests, Life::Until(model.validators.height + 3), Life::OneBatch][rng.random_range(0..3)];
                let (amount, client) = (rng.random_range(4_000..40_000), ClientId::NONE);
                let operation =
                    Operation::Replace(Box::new(OfferReplacement { old, remains, amount, limit, life, client }));
                return signed_by(rng, model, person, sequence, operation);
            }
            // Lists that share offers with other lists of the block, name offers that do not rest, or one twice.
            let mut list: Vec<OfferPlace> = mine.iter().map(|mine| named(mine)).collect();
            list.shuffle(rng);
            list.truncate([1, 1, 2, 9][rng.random_range(0..4)]);
            if list.is_empty() || rng.random_ratio(1, 8) {
                list.push(absent);
            }
            if rng.random_ratio(1, 40) {
                list.push(list[0]);
            }
            // The number may be that of an offer of this very block.
            if rng.random_ratio(1, 8) {
                list.push(OfferPlace { offer: highest + rng.random_range(1..20), ..list[0] });
            }
            Operation::Cancel(list.into())
        }
        4..=6 => {
            Operation::Pay { to: address(rng.random_range(0..PEOPLE + 4)), asset: asset(rng), amount: amount(rng) }
        }
        7 => {
            let asset = if u32::from(person) < ASSETS { AssetId(u32::from(person)) } else { asset(rng) };
            let amount = if rng.random_ratio(1, 4) { i64::MAX as u64 - 7 } else { amount(rng) };
            Operation::Issue { to: address(rng.random_range(0..PEOPLE)), asset, amount }
        }
        8 => Operation::Burn { asset: asset(rng), amount: amount(rng) },
        _ => {
            let limit = f64::from(rng.random_range(900..1_100)) / 1_000.0;
            let limit = if rng.random_ratio(1, 30) { 1e12 } else { limit };
            let limit = Price::from_f64(limit).expect("in range");
            let life = match rng.random_range(0..16) {
                0 => Life::OneBatch,
                1..4 => Life::Until(
                    (model.validators.height + rng.random_range(1..6))
                        .saturating_sub(u64::from(rng.random_ratio(1, 6))),
                ),
                4 if rng.random_ratio(1, 20) => Life::Until(model.validators.height + 2 + LIFE_MAX),
                _ => Life::Rests,
            };
            let client = ClientId([rng.random(); 16]);
            Operation::CreateOffer { sell: asset(rng), buy: asset(rng), amount: amount(rng), limit, life, client }
        }
    };
    signed_by(rng, model, person, sequence, operation)
}

/// Signs as the person would, sometimes in an invalid way.
fn signed_by(rng: &mut ChaCha8Rng, model: &Model, person: u8, sequence: Sequence, operation: Operation) -> Transaction {
    let account = address(person);
    if rng.random_ratio(2, 5)
        && let Some(transaction) = signed_by_session(rng, model, account, &operation)
    {
        return transaction;
    }
    let chain = 7 + u64::from(rng.random_ratio(1, 60));
    let signer = match model.accounts.get(&account).and_then(|a| a.key) {
        Some(registered) => (0..200).find(|p| key(*p).public() == registered).expect("one of the test's keys"),
        None => person,
    };
    let signer = if rng.random_ratio(1, 60) { signer + 1 } else { signer };
    // An invalid signature has a flipped bit, or is for another network.
    let (is_false, is_elsewhere) = (rng.random_ratio(1, 60), sequence.is_multiple_of(2));
    let network = if is_false && is_elsewhere { Digest([43; 32]) } else { model.network };
    let until = match rng.random_range(0..60) {
        0 => model.validators.height,
        1 => model.validators.height + 100_002,
        _ => model.validators.height + 1 + rng.random_range(0..3),
    };
    let mut transaction = Body { chain, account, sequence, until, operation }.sign(&network, &key(signer));
    if is_false
        && !is_elsewhere
        && let SignedBy::Key { signature, .. } = &mut transaction.signed_by
    {
        signature.0[40] ^= 1;
    }
    transaction
}

fn superblock(ledger: &Ledger, parent_root: Digest, parts: Vec<Vec<Transaction>>) -> Superblock {
    let sub_blocks = parts
        .into_iter()
        .enumerate()
        .map(|(i, native)| SubBlock { proposer: i as u32, native, ..SubBlock::default() })
        .collect();
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    Superblock { height, parent, time_ms: 0, parent_root, sub_blocks }
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

/// A wrong clearing is refused by name and changes nothing. A clearing is wrong if `clearing::verify` rejects it on
/// the whole book, or if a marginal key is wrong; the model's plain judgement of `market` must be the same. `after` is
/// the ledger that has applied the block.
fn lies(
    follower: &mut Ledger,
    (block, truth): (&Superblock, &Attached),
    (after, applied): (&Ledger, &Applied),
    market: &Market,
    rng: &mut ChaCha8Rng,
) {
    let state = |ledger: &Ledger| (ledger.height(), Snapshot::of(ledger).collect::<Vec<_>>());
    let before = state(follower);
    for kind in 0..18 {
        let mut lie = truth.clone();
        let fill = rng.random_range(0..lie.pools.len().max(1));
        if let Some(of) = lie.pools.get_mut(fill) {
            match kind {
                10 => of.sold += 1,
                11 => of.sells_a = !of.sells_a,
                12 => of.pool.class += 1,
                13 => drop(lie.pools.remove(fill)),
                _ => {}
            }
        }
        let which = rng.random_range(0..lie.trades.len().max(1));
        let asset = rng.random_range(0..ASSETS as usize);
        let exact = rng.random_range(0..lie.exacts.len().max(1));
        if let Some(of) = lie.exacts.get_mut(exact) {
            match kind {
                14 => of.sold -= 1,
                15 => of.bought += 1,
                16 => of.id += 1,
                17 => lie.exacts.push(lie.exacts[exact]),
                _ => {}
            }
        }
        let is_other = lie != *truth;
        match (kind, lie.trades.get_mut(which)) {
            (0, Some(trade)) => trade.sold += 1,
            (1, Some(trade)) => trade.sold -= 1,
            (2, Some(trade)) => trade.marginal.id += 1,
            (3, Some(trade)) => trade.marginal = Place::lowest(trade.marginal.limit),
            (4, Some(_)) => drop(lie.trades.remove(which)),
            (5, Some(_)) => lie.trades.push(truth.trades[which]),
            (6, _) if lie.short.is_empty() => lie.short.push(AssetId(asset as u32)),
            (6, _) => lie.short.clear(),
            (7, _) if !lie.valuations.is_empty() => {
                // Far from the market but still conserving: only μ can detect it.
                let (price, far) = (lie.valuations[asset].to_f64(), rng.random_range(2.0..3.0));
                let other = Price::from_f64(price * far).or(Price::from_f64(price / far));
                lie.valuations[asset] = other.expect("one of them is in range");
                lie.trades.clear();
            }
            (8, _) => drop(lie.valuations.pop()),
            (9, Some(trade)) => trade.pair.buy = AssetId((trade.pair.buy.0 + 1) % ASSETS),
            _ if is_other => {}
            _ => continue,
        }
        let holds = holds(&lie, truth, after, applied);
        let judged = market.judged(&lie).map(|_| ());
        // What trades in a group that is not full is a matter of solving: followers solve it.
        if holds || lie.short.is_empty() || truth.short.is_empty() {
            assert_eq!(judged.is_ok(), holds, "lie {kind}: {judged:?}");
        }
        match follower.apply_attached(block, &lie, Signatures::Unchecked, &mut |_| {}) {
            Err(Fault::Attached { .. }) if !holds => assert_eq!(state(follower), before, "lie {kind}"),
            Ok(_) if holds => *follower = restored(&before.1),
            other => panic!("lie {kind}, which holds: {holds}: {:?}", other.err()),
        }
    }
}

/// Whether a clearing is correct, by the independent check of the whole book.
fn holds(claim: &Attached, truth: &Attached, after: &Ledger, applied: &Applied) -> bool {
    let awake = awake(after, &applied.batch.pools);
    let mut met: BTreeMap<Pair, PairOffers> =
        after.book().iter().map(|(pair, offers)| (pair, offers.clone())).collect();
    for pair in applied.batch.fills.iter().map(|fill| fill.pair).chain(applied.batch.ended.iter().map(|of| of.pair)) {
        met.entry(pair).or_default();
    }
    let met = met.into_iter().map(|(pair, offers)| (pair, offers.as_met_by(&applied.batch, pair)));
    let met: Vec<_> = met.filter(|(_, offers)| !offers.is_empty()).collect();
    let pairs = met.iter().map(|(pair, offers)| offers.view(*pair));
    let pools: Vec<clearing::Pool> = awake.iter().map(|(_, pool)| *pool).collect();
    let (exacts, exact_fills) = exact_orders(&truth.exacts);
    let book = clearing::Book { assets: ASSETS, pairs: pairs.collect(), pools, exacts };
    if claim.exacts != truth.exacts {
        return false;
    }
    if book.pairs.is_empty() && book.pools.is_empty() {
        return claim == truth;
    }
    let trades = claim.trades.iter().map(|t| Trade { sell: t.pair.sell, buy: t.pair.buy, sold: t.sold }).collect();
    let report = applied.report.clone().expect("a book was cleared");
    let (full, short) = (claim.short.is_empty(), claim.short.clone());
    let mut pools = Vec::new();
    for fill in &claim.pools {
        let Ok(at) = awake.binary_search_by_key(&fill.pool, |(key, _)| *key) else { return false };
        let (sell, buy) = (fill.sell(), fill.buy());
        pools.push(PoolTrade { pool: at as u32, sell, buy, sold: fill.sold, bought: fill.bought });
    }
    let clearing =
        Clearing { valuations: claim.valuations.clone(), trades, pools, exacts: exact_fills, full, short, report };
    let Ok(verified) = clearing::verify(&book, &after.clearing_params(), &clearing) else { return false };
    let is_last = |trade: &ledger::AttachedTrade| {
        let at = met.iter().position(|(pair, _)| *pair == trade.pair).expect("verified");
        let fills = &verified.fills[at];
        let last = fills.partial.map_or(fills.full.saturating_sub(1), |partial| partial.index);
        met[at].1.iter().nth(last).map(|offer| offer.place) == Some(trade.marginal)
    };
    let is_short = clearing::Groups::of_book(&book).contain(&claim.short);
    let of_short = |of: &Attached| -> Vec<_> {
        let trades = of.trades.iter().filter(|trade| is_short[trade.pair.sell.0 as usize]);
        trades.map(|trade| (trade.pair, trade.sold)).collect()
    };
    let mut values = claim.valuations.iter().zip(&truth.valuations).zip(&is_short);
    let is_solved = claim.short.iter().all(|asset| truth.short.contains(asset))
        && values.all(|((claimed, found), short)| !short || claimed == found)
        && of_short(claim) == of_short(truth)
        && (claim.short.is_empty() || claim.pools == truth.pools);
    claim.trades.iter().all(is_last) && is_solved
}

/// Orders that ask for exactly what was traded, and their fills.
fn exact_orders(trades: &[ExactTrade]) -> (Vec<ExactOrder>, Vec<ExactFill>) {
    let order = |trade: &ExactTrade| {
        let (Pair { sell, buy }, ExactTrade { sold, bought, .. }) = (trade.pair, trade);
        match trade.side {
            ExactSide::Buy => ExactOrder::buy(buy, *bought, sell, *sold),
            ExactSide::Sell => ExactOrder::sell(sell, *sold, buy, *bought),
        }
    };
    let other = |trade: &ExactTrade| if trade.side == ExactSide::Buy { trade.sold } else { trade.bought };
    let fill = |(order, trade): (u32, &ExactTrade)| ExactFill { order, other: other(trade) };
    (trades.iter().map(order).collect(), (0..).zip(trades).map(fill).collect())
}

/// The pools that took part in a batch, as they were in it, from those after it.
fn awake(after: &Ledger, fills: &[PoolFill]) -> Vec<(PoolKey, clearing::Pool)> {
    let pools = after.pools().expect("the chain has pools");
    let before = |(key, pool): (&PoolKey, &PoolRecord)| {
        let mut was = *pool;
        if let Some(fill) = fills.iter().find(|fill| fill.pool == *key) {
            let (gave, took) = if fill.sells_a { (&mut was.a, &mut was.b) } else { (&mut was.b, &mut was.a) };
            (*gave, *took) = (*gave + fill.sold, *took - fill.bought);
        }
        (*key, was)
    };
    let least = |asset: AssetId| after.assets()[asset.0 as usize].least_units;
    let took_part = pools.iter().map(before).filter(|(key, was)| !is_asleep(was, [least(key.a), least(key.b)]));
    took_part
        .map(|(key, was)| {
            let PoolKey { a, b, .. } = key;
            (key, clearing::Pool { a, b, reserve_a: was.a, reserve_b: was.b, fee: pools.fee(&key) })
        })
        .collect()
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

/// The encoding of one account chunk with its first account changed; all accounts of a small ledger fill one chunk a
/// shard.
fn forged(chunk: &[u8], change: impl FnOnce(&mut Vec<AccountState>)) -> Vec<u8> {
    let mut states: Vec<AccountState> = borsh::from_slice(&chunk[1..]).expect("accounts");
    change(&mut states);
    [&chunk[..1], &borsh::to_vec(&states).expect("encodes")].concat()
}

#[test]
fn what_the_model_says_of_session_keys_differs_from_a_ledger_with_a_mistake() {
    let genesis = genesis(1, Fraction::ZERO);
    let (mut model, mut ledger) = (Model::new(&genesis), Ledger::new(&genesis).expect("sound"));
    let (account, secret) = (address(0), session_key(0));
    let possession = secret.sign(&session_possession_bytes(&model.network, &account, 1, &secret.public()));
    let caps = [0, 1].map(|asset| SessionCap { asset: AssetId(asset), units: 50_000 }).into();
    let (until, alive, scope) = (9, 9, SessionScope::Trade);
    let terms = SessionTerms { slot: 1, key: secret.public(), scope, until, alive, caps };
    let authorize = Operation::Session(Box::new(SessionOperation::Authorize { terms, possession }));
    let offer = Operation::offer(AssetId(1), AssetId(0), 20_000, Price::ONE);
    let by = |sequence, operation| Body { chain: 7, account, sequence, until: 9, operation };
    let first = by(1, authorize).sign(&model.network, &key(0));
    let second = by(slot_sequence(1, 1), offer).sign(&model.network, &secret);
    for transaction in [first, second] {
        let block = vec![vec![transaction.clone()], Vec::new(), Vec::new()];
        let applied = apply(&mut ledger, Digest::default(), block);
        model.apply(std::slice::from_ref(&transaction), &Digest::default(), &Attached::of(&applied.batch));
        assert_eq!(applied.outcomes[0].refusal(), None);
    }
    let mistakes: [fn(&mut ledger::SessionRecord); 4] = [
        |_| {},
        // What an offer locks is forgotten, and so could be used again.
        |record| record.budgets[1].used = 0,
        // A timer runs on after it was stopped.
        |record| record.alive = 8,
        // A number could be used twice.
        |record| record.window = ledger::Window::default(),
    ];
    let chunks: Vec<Vec<u8>> = Snapshot::of(&ledger).collect();
    for (at, mistake) in mistakes.into_iter().enumerate() {
        let change = |chunk: &Vec<u8>| match chunk[0] {
            RootPart::BALANCES => forged(chunk, |states| {
                let of_them = states.iter_mut().filter_map(|state| state.sessions.as_mut());
                of_them.for_each(|sessions| mistake(&mut sessions.records[0]));
            }),
            _ => chunk.clone(),
        };
        let mut restore = Restore::default();
        chunks.iter().map(change).for_each(|chunk| restore.push(&chunk).expect("in place"));
        let other = restore.finish().expect("sound in itself");
        let compared = std::panic::AssertUnwindSafe(|| model.assert_same_sessions(&other));
        assert_eq!(std::panic::catch_unwind(compared).is_ok(), at == 0, "mistake {at}");
    }
}

/// A state has one encoding: other bytes for the same state are refused.
#[test]
fn a_snapshot_in_other_bytes_is_refused() {
    let ledger = Ledger::new(&genesis(0, Fraction::ZERO)).expect("sound");
    let chunks: Vec<Vec<u8>> = Snapshot::of(&ledger).collect();
    restored(&chunks);
    let accounts: Vec<usize> = (0..chunks.len()).filter(|at| chunks[*at][0] == RootPart::BALANCES).collect();
    let refuses = |chunks: &[Vec<u8>]| {
        let mut restore = Restore::default();
        let pushed = chunks.iter().try_for_each(|chunk| restore.push(chunk));
        assert!(matches!(pushed, Err(SnapshotError::OutOfPlace(_))), "{pushed:?}");
    };
    let with = |at: usize, chunk: Vec<u8>| {
        let mut other = chunks.clone();
        other[at] = chunk;
        other
    };
    let rich = accounts.iter().copied().find(|at| {
        let states: Vec<AccountState> = borsh::from_slice(&chunks[*at][1..]).expect("accounts");
        states[0].balances.len() > 1
    });
    let rich = rich.expect("an account holds two assets");
    refuses(&with(rich, forged(&chunks[rich], |states| states[0].balances.reverse())));
    refuses(&with(rich, forged(&chunks[rich], |states| states[0].balances.push((AssetId(ASSETS), 0)))));
    refuses(&with(rich, forged(&chunks[rich], |states| states.clear())));
    let mut swapped = chunks.clone();
    swapped.swap(accounts[0], accounts[1]);
    refuses(&swapped);
    let mut empty = chunks.clone();
    empty.insert(1, forged(&chunks[1], |states| states.clear()));
    refuses(&empty);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_blocks_equal_the_model(seed in any::<u64>(), fee in 0..3u64, free in any::<bool>()) {
        let epsilon = if free { Fraction::ZERO } else { Fraction::power_of_two(15) };
        run(seed, 5, 60, fee, epsilon);
    }
}

#[test]
fn a_longer_history_equals_the_model_and_meets_every_refusal() {
    let Met { refusals: met, returned, filled, keyed, lapsed } = run(3, 110, 110, 1, Fraction::power_of_two(15));
    assert!(filled > 1, "{filled} exact orders were filled");
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
