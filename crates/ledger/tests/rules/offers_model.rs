//! Random programs of offers, cancels and transfers compared with plain bookkeeping, on several threads.

use std::collections::{BTreeMap, BTreeSet};

use crate::evm::asked::*;
use crate::evm::offering::*;
use crate::evm::*;
use ledger::contracts::ethereum::U256;
use ledger::contracts::{
    EthereumReceipt, EthereumRequest, EvmStatus, OFFERS, OfferName, contract_address, token_address,
};
use ledger::{Applied, Pair, Place};
use primitives::Address;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use EvmStatus::Succeeded;

/// The state by plain bookkeeping.
#[derive(Default)]
struct Model {
    eur: BTreeMap<Address, u64>,
    wei: BTreeMap<Address, u128>,
    offers: BTreeMap<(Pair, Place), u64>,
    placed: BTreeMap<Address, u64>,
}

/// The request of a transaction.
#[derive(Clone, Debug)]
enum Wish {
    Place(Pair, u64, u64),
    Cancel(OfferName),
    Send(Address, u64),
}

/// How it is sent: by its sender, by a contract, or by a contract that reverts afterwards.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Sender,
    Contract(Address),
    Reverting(Address),
}

impl Model {
    /// Executes the request if possible; returns whether it was.
    fn act(&mut self, who: Address, wish: &Wish) -> bool {
        match wish {
            Wish::Place(pair, amount, asks) => {
                let (units, wei) = (u128::from(*amount), u128::from(*amount) * UNIT);
                let is_poor = match pair.sell {
                    USD => self.wei.get(&who).copied().unwrap_or(0) / UNIT < units,
                    _ => u128::from(self.eur[&who]) < units,
                };
                if *amount < 4_096 || *asks < 4_096 || is_poor {
                    return false;
                }
                match pair.sell {
                    USD => *self.wei.get_mut(&who).expect("it is rich") -= wei,
                    _ => *self.eur.get_mut(&who).expect("it is rich") -= amount,
                }
                let placed = self.placed.entry(who).or_default();
                self.offers.insert((*pair, name(*pair, *amount, *asks, *placed).place(&who)), *amount);
                *placed += 1;
                true
            }
            Wish::Cancel(name) => {
                let Some(amount) = self.offers.remove(&(name.pair, name.place(&who))) else { return false };
                match name.pair.sell {
                    USD => *self.wei.entry(who).or_default() += u128::from(amount) * UNIT,
                    _ => *self.eur.entry(who).or_default() += amount,
                }
                true
            }
            Wish::Send(to, amount) => {
                if self.eur[&who] < *amount {
                    return false;
                }
                *self.eur.get_mut(&who).expect("it is rich") -= amount;
                *self.eur.entry(*to).or_default() += amount;
                true
            }
        }
    }

    /// Applies the results of a batch.
    fn settle(&mut self, applied: &Applied) {
        for fill in &applied.batch.fills {
            let owner = fill.place.account;
            for (asset, units) in [(fill.pair.buy, fill.bought), (fill.pair.sell, fill.returned)] {
                match asset {
                    USD => *self.wei.entry(owner).or_default() += u128::from(units) * UNIT,
                    _ => *self.eur.entry(owner).or_default() += units,
                }
            }
            match fill.left {
                0 => self.offers.remove(&(fill.pair, fill.place)),
                left => self.offers.insert((fill.pair, fill.place), left),
            };
        }
    }
}

/// A random request; amounts are such that balances run out occasionally, limits such that offers match.
fn wish(dice: &mut ChaCha8Rng, known: &[OfferName], people: &[Address]) -> Wish {
    let pair = if dice.random_bool(0.5) { SELL_EUR } else { SELL_USD };
    let amount =
        if dice.random_bool(0.1) { dice.random_range(0..5_000) } else { dice.random_range(5_000..400_000_000) };
    match dice.random_range(0..10) {
        0..5 => Wish::Place(pair, amount, amount / 100 * dice.random_range(90..112)),
        5..8 if !known.is_empty() => Wish::Cancel(known[dice.random_range(0..known.len())]),
        _ => Wish::Send(people[dice.random_range(0..people.len())], amount),
    }
}

const SENDERS: u8 = 6;
const GAS: u64 = 400_000;

/// A chain with the two contracts, and the model of it.
fn model_chain(forwards: Address, reverts: Address) -> (Chain, Model) {
    let mut chain = Chain::new();
    let reverting = [&caller(0xf1)[..24], &[0x5f, 0x5f, 0xfd]].concat();
    let creations = vec![create(7, 0, &caller(0xf1)), create(7, 1, &reverting)];
    let funds = [(0, forwards), (1, reverts)].map(|(nonce, contract)| fund(6, nonce, contract, 400_000_000));
    chain.run(vec![creations, funds.to_vec()]);
    let mut model = Model::default();
    for who in (0..SENDERS).map(person).chain([forwards, reverts]) {
        model.eur.insert(who, units(&chain, &who, EUR));
        model.wei.insert(who, chain.wei(&who));
    }
    (chain, model)
}

/// Runs random programs against the model: the result of each transaction, every balance, every offer, after every
/// block.
fn run_against_model(threads: usize, seed: u64) -> (Chain, Vec<EthereumReceipt>) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let [forwards, reverts] = [0, 1].map(|nonce| contract_address(&person(7), nonce));
        let (mut chain, mut model) = model_chain(forwards, reverts);
        let people: Vec<Address> = (0..SENDERS).map(person).chain([forwards, reverts]).collect();
        let (mut known, mut receipts) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for height in 0..5 {
            let mut nonces: Vec<u64> = (0..SENDERS).map(|from| chain.nonce(&person(from))).collect();
            let (mut lane, mut wishes) = (Vec::new(), Vec::new());
            for _ in 0..70 {
                let (from, wish) = (dice.random_range(0..SENDERS), wish(&mut dice, &known, &people));
                let by = match dice.random_range(0..8) {
                    0 | 1 => By::Contract(forwards),
                    2 => By::Reverting(reverts),
                    _ => By::Sender,
                };
                let (to, data) = match &wish {
                    Wish::Place(pair, amount, asks) => (OFFERS, placing(*pair, *amount, *asks)),
                    Wish::Cancel(name) => (OFFERS, cancelling(name)),
                    Wish::Send(to, amount) => {
                        let data = input("transfer(address,uint256)", &[of(*to), U256::from(*amount)]);
                        (token_address(EUR), data)
                    }
                };
                let (to, data) = match by {
                    By::Sender => (to, data),
                    By::Contract(contract) | By::Reverting(contract) => (contract, [&word(&to)[..], &data].concat()),
                };
                let nonce = nonces[usize::from(from)];
                nonces[usize::from(from)] += 1;
                let (gas_limit, max_tip) = (GAS, 0);
                lane.push(key(from).sign(&EthereumRequest { data, gas_limit, max_tip, ..request(nonce, Some(to)) }));
                wishes.push((from, by, wish));
            }
            let applied = chain.run(vec![lane]);
            model.settle(&applied);
            let executed: Vec<_> = applied.contracts.receipts.iter().filter(|one| one.position.is_some()).collect();
            let skipped: BTreeSet<u32> = applied.contracts.skipped.iter().map(|(position, _)| *position).collect();
            let mut executed_by: BTreeMap<u32, &EthereumReceipt> =
                executed.iter().map(|one| (one.position.expect("of a transaction"), *one)).collect();
            for (position, (from, by, wish)) in (0..).zip(wishes) {
                let Some(receipt) = executed_by.remove(&position) else {
                    assert!(skipped.contains(&position), "an account without money cannot pay for gas");
                    continue;
                };
                let sender = person(from);
                // Gas is paid in advance, and unused gas is refunded afterwards.
                let ahead = u128::from(GAS) * receipt.gas_price;
                *model.wei.get_mut(&sender).expect("it is rich") -= ahead;
                let status = match by {
                    By::Sender => model.act(sender, &wish),
                    By::Contract(contract) => {
                        let acted = model.act(contract, &wish);
                        seen.insert(("by a contract", acted));
                        true
                    }
                    By::Reverting(_) => false,
                };
                *model.wei.get_mut(&sender).expect("it is rich") +=
                    ahead - u128::from(receipt.gas_used) * receipt.gas_price;
                assert_eq!(receipt.status == Succeeded, status, "block {height}: {by:?} {wish:?}");
                seen.insert((["place", "cancel", "send"][matches!(wish, Wish::Cancel(_)) as usize], status));
            }
            for (who, eur) in &model.eur {
                assert_eq!((units(&chain, who, EUR), chain.wei(who)), (*eur, model.wei[who]), "{who}");
            }
            assert_eq!(resting(&chain.ledger), model.offers);
            known = model
                .offers
                .keys()
                .map(|(pair, Place { limit, id, .. })| OfferName { pair: *pair, limit: *limit, id: *id })
                .collect();
            seen.insert(("fills", !applied.batch.fills.is_empty()));
            receipts.extend(applied.contracts.receipts);
            // A restart continues from the same state.
            if height == 2 {
                chain = chain.restored();
            }
        }
        for one in ["by a contract", "place", "cancel"] {
            assert!(seen.contains(&(one, true)) && seen.contains(&(one, false)), "{one} succeeds and fails");
        }
        assert!(seen.contains(&("fills", true)));
        (chain, receipts)
    })
}

#[test]
fn random_programs_come_to_what_the_model_says_on_any_number_of_threads() {
    for seed in 0..3 {
        let (chain, receipts) = run_against_model(1, seed);
        for threads in [2, 3, 4] {
            let (other, same) = run_against_model(threads, seed);
            assert_eq!(other.root, chain.root, "{threads} threads, seed {seed}");
            assert_eq!(same, receipts);
        }
    }
}
