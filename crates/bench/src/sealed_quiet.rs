//! What a chain with a sealing key pays for blocks without envelopes: the same payments on it and on one without.

use std::time::Instant;

use kernel::Dice;
use ledger::{
    Genesis, Ledger, Member, Membership, SEAL_NOTICE, SealBoard, SealPost, SealStep, SealTerms, Seals, Signatures,
    Terms,
};
use payments::{SealSeed, dealing};
use primitives::{Address, Digest, SecretKey, Transaction, ValidatorPost, ValidatorSays};
use serde_json::{Value, json};

use crate::payments::payments;
use crate::population::{Population, block};
use crate::scaling::median;

const NETWORK: Digest = Digest([7; 32]);
const SEATS: u8 = 4;

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([200 + person; 32])
}

fn account(person: u8) -> Address {
    key(person).public().address()
}

fn founded(genesis: Genesis, seals: Option<SealTerms>) -> Ledger {
    let founder = |person: u8| {
        let (account, key) = (account(person), key(person).public());
        Member { account, key, address: String::new(), stake: 100 }
    };
    let terms = Terms { network: NETWORK, committee: SEATS.into(), minimum_stake: 1, ..Terms::default() };
    let membership = Some(Membership { terms, reward_pool: 0, founders: (0..SEATS).map(founder).collect() });
    Ledger::new(&Genesis { membership, seals, ..genesis }).expect("sound")
}

/// What a seat posts at the present step.
fn post(board: &SealBoard, person: u8) -> SealPost {
    let (number, seed) = (board.number(), SealSeed([person + 1; 32]));
    let generation = || (board.generation().expect("it began"), board.member(&account(person)).expect("a member"));
    match board.at().0 {
        SealStep::Register => {
            let possession = seed.possession(&NETWORK, number, &account(person));
            SealPost::Register { key: seed.key().public().to_bytes(), possession }
        }
        SealStep::Deal => {
            let (generation, member) = generation();
            SealPost::Deal(dealing(generation.terms(), member, &seed.of_dealing()).encode())
        }
        SealStep::Complain => SealPost::Fine,
        SealStep::Hold => {
            let (generation, member) = generation();
            SealPost::Hold(generation.share(member, &seed.key()).expect("it fits").hold(generation.terms()))
        }
    }
}

fn duty(ledger: &Ledger, board: &SealBoard, person: u8) -> Transaction {
    let says = ValidatorSays::Seals { key: board.number(), post: post(board, person).encode() };
    let (network, chain, until) = (ledger.network(), ledger.chain(), ledger.height() + 100);
    let duty = ValidatorPost { network, chain, account: account(person), until, says };
    duty.sign(&key(person)).expect("the key is here")
}

fn apply(ledger: &mut Ledger, native: Vec<Transaction>) -> f64 {
    let block = block(ledger, native);
    let begun = Instant::now();
    let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    let ms = begun.elapsed().as_secs_f64() * 1_000.0;
    assert!(applied.outcomes.iter().all(|outcome| outcome.refusal().is_none()), "everything counts");
    ms
}

/// Two chains of one height: without a sealing key, and with one in force.
fn chains(genesis: &Genesis) -> [Ledger; 2] {
    let mut sealed = founded(genesis.clone(), SealTerms::named("fewest"));
    apply(&mut sealed, Vec::new());
    while let Some(board) = sealed.seals().and_then(Seals::board) {
        let duties = (0..SEATS).map(|person| duty(&sealed, board, person)).collect();
        apply(&mut sealed, duties);
    }
    for _ in 0..SEAL_NOTICE {
        apply(&mut sealed, Vec::new());
    }
    assert!(sealed.seals().is_some_and(|seals| seals.in_force(sealed.height() + 1).is_some()), "a key is in force");
    let mut plain = founded(genesis.clone(), None);
    for _ in 0..sealed.height() {
        apply(&mut plain, Vec::new());
    }
    [plain, sealed]
}

/// Milliseconds of blocks of so many payments without a key and with one in force, taking turns, and the median ratio
/// of both; and the bytes of a block, which are the same.
pub(crate) fn quiet(transactions: usize, runs: usize) -> Value {
    let mut population = Population::new(transactions.div_ceil(16).max(2), 1, false);
    let mut chains = chains(&population.genesis());
    let mut random = Dice::new(5);
    let (mut times, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    let mut bytes = [0; 2];
    for run in 0..=runs {
        let accounts = population.len();
        let payments = payments(&mut population, accounts, transactions, &mut random);
        let native = population.sign(payments, None);
        bytes = [0, 1].map(|at| block(&chains[at], native.clone()).to_bytes().len());
        // Whoever is first in a run is second in the next one.
        let mut ms = [0.0; 2];
        for at in if run % 2 == 0 { [0, 1] } else { [1, 0] } {
            ms[at] = apply(&mut chains[at], native.clone());
        }
        if run > 0 {
            ratios.push(ms[0] / ms[1]);
            times.iter_mut().zip(ms).for_each(|(row, ms)| row.push(ms));
        }
    }
    let [plain, sealed] = times.map(median);
    json!({
        "payments": transactions,
        "without_key_ms": plain,
        "with_key_ms": sealed,
        "rate_with_over_without": median(ratios),
        "bytes_more": bytes[1] - bytes[0],
    })
}
