//! Compares reservations with a plain model, also with many threads at once: the filter accepts everything that they
//! admit.

use std::collections::{HashMap, HashSet};

use ledger::{
    Genesis, Ledger, Listing, Member, Membership, Refusal, Reservations, ReserveError, Schedule, Signatures, Terms,
};
use primitives::{
    Address, Amount, AssetId, Body, Fraction, MAX_ISSUED, Operation, Price, PublicKey, SecretKey, Sequence, Signature,
    Stake, SubBlock, Superblock, Transaction,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

const PEOPLE: u8 = 4;
const FEE: Amount = 2;

fn key(person: u8) -> PublicKey {
    SecretKey::from_seed([person + 1; 32]).public()
}

/// Four accounts with 1,000 units of two assets, each with offers 1 to 5 resting.
fn ledger() -> Ledger {
    let people: Vec<Address> = (0..PEOPLE).map(|person| key(person).address()).collect();
    // A band so wide that offers of three units are large enough.
    let (epsilon, mu) = (Fraction::ZERO, "0.75".parse().expect("a fraction"));
    let listing = |symbol, issuer| Listing { least_units: 3, ..Listing::new(symbol, 2, issuer) };
    let assets = vec![listing("USD", people[0]), listing("EUR", people[1])];
    let balances = people.iter().flat_map(|p| [(*p, AssetId(0), 1_100), (*p, AssetId(1), 1_000)]).collect();
    let membership = Some(membership());
    let genesis = Genesis { chain: 1, fee: FEE, epsilon, mu, assets, balances, membership, ..Genesis::default() };
    let mut ledger = Ledger::new(&genesis).expect("sound");
    let offer = |person: u8, sequence| unsigned(person, sequence, create_offer(5, 2.0));
    let native = (0..PEOPLE).flat_map(|person| (1..=5).map(move |sequence| offer(person, sequence))).collect();
    ledger.apply(&block(&ledger, native), Signatures::Valid, &mut |_| {}).expect("applies");
    ledger
}

fn node_key(number: u8) -> SecretKey {
    SecretKey::from_seed([200 + number; 32])
}

/// The last two are validators.
fn membership() -> Membership {
    let terms = Terms {
        schedule: Schedule { epoch_heights: 10, delay: 0 },
        committee: 2,
        minimum_stake: 1,
        ..Terms::default()
    };
    let founder = |person: u8| Member {
        account: key(person).address(),
        key: node_key(person).public(),
        address: "a.example:1".into(),
        stake: 1_000,
    };
    Membership { terms, reward_pool: 0, founders: vec![founder(2), founder(3)] }
}

fn create_offer(amount: Amount, limit: f64) -> Operation {
    Operation::offer(AssetId(0), AssetId(1), amount, Price::from_f64(limit).expect("in range"))
}

fn unsigned(person: u8, sequence: Sequence, operation: Operation) -> Transaction {
    let signer = key(person);
    let body = Body { chain: 1, account: signer.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, signer, Signature([0; 64]))
}

fn block(ledger: &Ledger, native: Vec<Transaction>) -> Superblock {
    Superblock {
        height: ledger.height() + 1,
        parent: ledger.last_block(),
        sub_blocks: vec![SubBlock { native, ..SubBlock::default() }],
        ..Superblock::default()
    }
}

/// Transactions that are admissible alone and often conflict with each other.
fn draw(rng: &mut ChaCha8Rng) -> Transaction {
    let person = rng.random_range(0..PEOPLE);
    let amount = rng.random_range(1..200);
    let asset = AssetId(rng.random_range(0..2));
    let operation = match rng.random_range(0..10) {
        8 => {
            let node = node_key(10 + rng.random_range(0..3));
            let account = key(person).address();
            Operation::Stake(Box::new(Stake::new(amount, "b.example:1".into(), 1, &account, &node)))
        }
        9 if person >= 2 => Operation::Unstake { units: amount },
        0 => Operation::CreateAccount { account: key(person).address(), key: key(person + 50) },
        1 => {
            let new = key(100 + rng.random_range(0..6));
            Operation::CreateAccount { account: new.address(), key: new }
        }
        2 => {
            let limit = Price::from_f64(2.0).expect("in range");
            Operation::cancel(AssetId(0), AssetId(1), limit, rng.random_range(1..6))
        }
        3 if person < 2 => {
            let amount = MAX_ISSUED / rng.random_range(2..9) - 8_000;
            Operation::Issue { to: key(3 - person).address(), asset: AssetId(u32::from(person)), amount }
        }
        4 => create_offer(amount.max(3), 1.5),
        _ => Operation::Pay { to: key((person + 1) % PEOPLE).address(), asset, amount },
    };
    unsigned(person, rng.random_range(6..60), operation)
}

/// A once-key of an account, or of no account.
type Thing = (Address, String);

/// The rule with sums and sets.
#[derive(Default)]
struct Plain {
    numbers: HashSet<(Address, Sequence)>,
    sums: HashMap<(Address, AssetId), Amount>,
    things: HashSet<Thing>,
    issued: HashMap<AssetId, Amount>,
}

impl Plain {
    /// The once-keys of an operation: a change of the sender's key or stake, the claim of a key.
    fn once(body: &Body) -> Vec<(Thing, Refusal)> {
        let anybody = Address::default();
        match body.operation {
            Operation::CreateAccount { account, .. } if account == body.account => {
                vec![((account, "key".into()), Refusal::KEY_CONFLICT)]
            }
            Operation::Stake(ref stake) => vec![
                ((body.account, "stake".into()), Refusal::STAKE_CONFLICT),
                ((anybody, stake.key.to_string()), Refusal::VALIDATOR_KEY_CONFLICT),
            ],
            Operation::Unstake { .. } => vec![((body.account, "stake".into()), Refusal::STAKE_CONFLICT)],
            _ => Vec::new(),
        }
    }

    fn debits(body: &Body) -> HashMap<(Address, AssetId), Amount> {
        let mut debits = HashMap::from([((body.account, AssetId(0)), FEE)]);
        for (asset, amount) in body.operation.debits().into_iter().flatten() {
            *debits.entry((body.account, asset)).or_default() += amount;
        }
        debits
    }

    fn reserve(&mut self, body: &Body, ledger: &Ledger) -> Result<(), Refusal> {
        let account = ledger.accounts().get(&body.account).expect("the account exists");
        let fits = |asset: AssetId, amount: Amount| {
            self.sums.get(&(body.account, asset)).copied().unwrap_or(0) + amount <= account.balance(asset)
        };
        if self.numbers.contains(&(body.account, body.sequence)) {
            return Err(Refusal::SEQUENCE_CONFLICT);
        }
        // The fee is checked before the operation.
        if !fits(AssetId(0), FEE) {
            return Err(Refusal::OVERDRAFT);
        }
        let once = Plain::once(body);
        if let Some((_, refusal)) = once.iter().find(|(thing, _)| self.things.contains(thing)) {
            return Err(*refusal);
        }
        if let Operation::Issue { asset, amount, .. } = body.operation {
            let waiting = self.issued.get(&asset).copied().unwrap_or(0);
            if waiting + amount > MAX_ISSUED - ledger.assets()[asset.0 as usize].issued {
                return Err(Refusal::ISSUE_TOO_LARGE);
            }
        }
        let debits = Plain::debits(body);
        if !debits.iter().all(|((_, asset), amount)| fits(*asset, *amount)) {
            return Err(Refusal::OVERDRAFT);
        }
        self.numbers.insert((body.account, body.sequence));
        self.things.extend(once.into_iter().map(|(thing, _)| thing));
        debits.into_iter().for_each(|(key, amount)| *self.sums.entry(key).or_default() += amount);
        if let Operation::Issue { asset, amount, .. } = body.operation {
            *self.issued.entry(asset).or_default() += amount;
        }
        Ok(())
    }

    fn release(&mut self, body: &Body) {
        self.numbers.remove(&(body.account, body.sequence));
        Plain::once(body).iter().for_each(|(thing, _)| assert!(self.things.remove(thing)));
        for (key, amount) in Plain::debits(body) {
            *self.sums.get_mut(&key).expect("reserved") -= amount;
        }
        if let Operation::Issue { asset, amount, .. } = body.operation {
            *self.issued.get_mut(&asset).expect("reserved") -= amount;
        }
    }
}

proptest! {
    #[test]
    fn equal_the_plain_rule(seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let ledger = ledger();
        let (mut reservations, mut plain) = (Reservations::default(), Plain::default());
        let mut waiting: Vec<Transaction> = Vec::new();
        for _ in 0..150 {
            if !waiting.is_empty() && rng.random_ratio(1, 3) {
                let gone = waiting.swap_remove(rng.random_range(0..waiting.len()));
                reservations.release(&gone, FEE);
                plain.release(&gone.body);
                continue;
            }
            let transaction = draw(&mut rng);
            prop_assert_eq!(ledger.admit(&transaction), Ok(()));
            reservations.make_room(1);
            let expected = plain.reserve(&transaction.body, &ledger).map_err(ReserveError::Refused);
            prop_assert_eq!(reservations.admit(&transaction, &ledger), expected);
            if expected.is_ok() {
                waiting.push(transaction);
            }
        }
        waiting.iter().for_each(|transaction| reservations.release(transaction, FEE));
        prop_assert!(reservations.is_empty());
    }
}

#[test]
fn what_many_threads_admit_passes_the_filter() {
    const THREADS: usize = 4;
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut ledger = ledger();
        let drawn: Vec<Transaction> = (0..400).map(|_| draw(&mut rng)).collect();
        let mut reservations = Reservations::default();
        reservations.make_room(THREADS * drawn.len());
        // Every thread tries every transaction, each in its own order.
        let tried = |seed: u64| {
            let mut own: Vec<&Transaction> = drawn.iter().collect();
            own.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
            own.into_iter().filter(|t| reservations.admit(t, &ledger).is_ok()).cloned().collect::<Vec<_>>()
        };
        let admitted: Vec<Transaction> = std::thread::scope(|scope| {
            let tried = &tried;
            let threads: Vec<_> = (0..THREADS as u64).map(|t| scope.spawn(move || tried(seed * 100 + t))).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(admitted.len() > 20, "{} admitted", admitted.len());
        let applied = ledger.apply(&block(&ledger, admitted.clone()), Signatures::Valid, &mut |_| {}).expect("applies");
        let refused: Vec<_> = applied.outcomes.iter().filter_map(|outcome| outcome.refusal()).collect();
        assert_eq!(refused, [], "seed {seed}");
        admitted.iter().for_each(|transaction| reservations.release(transaction, FEE));
        assert!(reservations.is_empty());
    }
}
