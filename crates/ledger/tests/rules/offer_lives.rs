//! Offers of contracts with a last height, and lists of them that are cancelled at once.

use crate::evm::asked::*;
use crate::evm::offering::*;
use crate::evm::*;
use ledger::contracts::ethereum::{U256, keccak256};
use ledger::contracts::{EthereumLog, EthereumRequest, EvmStatus, OFFERS, OfferName, contract_address};
use ledger::{Applied, EndReason, LIFE_MAX};
use primitives::{Address, Body, Operation};

use EvmStatus::{Reverted, Succeeded};

const SIZE: u64 = 50_000;

fn placing_until(amount: u64, asks: u64, until: U256) -> Vec<u8> {
    let arguments = [token(SELL_EUR.sell), token(SELL_EUR.buy), U256::from(amount), U256::from(asks), until];
    input("place(address,address,uint64,uint64,uint64)", &arguments)
}

/// A list of words as Solidity encodes it: where it begins, its length, and the words.
fn cancelling_all(place: U256, length: U256, words: &[U256]) -> Vec<u8> {
    input("cancel(bytes32[])", &[&[place, length], words].concat())
}

fn list(words: &[U256]) -> Vec<u8> {
    cancelling_all(U256::from(32), U256::from(words.len()), words)
}

fn word_of(name: &OfferName) -> U256 {
    U256::from_be_bytes(name.to_word())
}

/// A call with enough gas for a long list.
fn long(from: u8, nonce: u64, data: Vec<u8>) -> Vec<u8> {
    key(from).sign(&EthereumRequest { data, gas_limit: 2_000_000, ..request(nonce, Some(OFFERS)) })
}

/// The answer to a question from a person, with gas for a long list; for a revert, the error.
fn told(chain: &Chain, data: Vec<u8>) -> Vec<u8> {
    ask_at(chain, chain.ledger.height(), OFFERS, data).output.to_vec()
}

fn logs<'a>(applied: &'a Applied, event: &str) -> Vec<&'a EthereumLog> {
    let topic = keccak256(event).0;
    let all = applied.contracts.receipts.iter().flat_map(|receipt| &receipt.logs);
    all.filter(|log| log.topics[0] == topic).collect()
}

fn number(log: &EthereumLog) -> u64 {
    U256::from_be_slice(&log.data).to()
}

fn amount_at(chain: &Chain, height: u64, owner: Address, name: &OfferName) -> u64 {
    let asked = input("amountOf(address,bytes32)", &[of(owner), word_of(name)]);
    U256::from_be_slice(&ask_at(chain, height, OFFERS, asked).output).to()
}

/// It is in the batches up to its last height, and what is left returns with that block; a restored chain agrees.
#[test]
fn an_offer_ends_with_its_last_block() {
    let mut chain = Chain::new();
    let (alice, offer) = (person(0), name(SELL_EUR, SIZE, SIZE, 0));
    let applied = chain.run(vec![vec![call(0, 0, OFFERS, placing_until(SIZE, SIZE, U256::from(3)))]]);
    assert_eq!(statuses(&applied), [Succeeded]);
    let told = logs(&applied, "Ends(address,bytes32,uint64)");
    assert_eq!((told.len(), number(told[0]), told[0].topics[2]), (1, 3, offer.to_word()));
    assert_eq!(chain.ledger.book().ending_at(3), 1);
    let applied = chain.run(vec![vec![]]);
    assert!(applied.batch.ended.is_empty() && applied.contracts.receipts.is_empty());
    let mut chain = chain.restored();
    assert_eq!((chain.ledger.book().ending_at(3), units(&chain, &alice, EUR)), (1, RICH - SIZE));
    // A buyer takes a part of it in its last block.
    let holder = validator(9);
    let buys = Operation::CreateOffer {
        sell: USD,
        buy: EUR,
        amount: 20_000,
        limit: "0.9".parse().expect("a price"),
        life: primitives::Life::OneBatch,
        client: primitives::ClientId::NONE,
    };
    let body = Body { chain: CHAIN, account: holder.public().address(), sequence: 1, until: 50_000, operation: buys };
    let block = chain.block(vec![body.sign(&NETWORK, &holder)], vec![vec![]]);
    let applied = chain.apply(&block);
    let fill = applied.batch.fills.iter().find(|fill| fill.place.account == alice).expect("it trades");
    let ended: Vec<_> = applied.batch.ended.iter().filter(|ended| ended.place.account == alice).collect();
    assert_eq!((ended.len(), ended[0].why, ended[0].returned), (1, EndReason::Expired, SIZE - fill.sold));
    let over = logs(&applied, "Ended(address,bytes32,uint64)");
    assert_eq!((over.len(), number(over[0]), over[0].topics[2]), (1, SIZE - fill.sold, offer.to_word()));
    assert_eq!(logs(&applied, "Filled(address,bytes32,uint64,uint64,uint64,uint64)").len(), 1);
    assert_eq!((chain.ledger.book().len(), units(&chain, &alice, EUR)), (0, RICH - fill.sold));
    assert_eq!([2, 3].map(|height| amount_at(&chain, height, alice, &offer)), [SIZE, 0]);
}

/// One batch is the next block's; an offer that nobody meets comes back, and heights before show it.
#[test]
fn one_batch_is_that_of_the_next_block() {
    let mut chain = Chain::new();
    let (alice, offer) = (person(0), name(SELL_EUR, SIZE, SIZE, 0));
    chain.run(vec![vec![call(0, 0, OFFERS, placing_until(SIZE, SIZE, U256::from(2)))]]);
    let applied = chain.run(vec![vec![]]);
    assert_eq!(logs(&applied, "Ended(address,bytes32,uint64)").len(), 1);
    assert_eq!((chain.ledger.book().len(), units(&chain, &alice, EUR)), (0, RICH));
    assert_eq!([1, 2].map(|height| amount_at(&chain, height, alice, &offer)), [SIZE, 0]);
    // Cancelled in its own block it never rests and never ends; zero is no end.
    let second = OfferName { id: offer.id + 1, ..offer };
    let lane = vec![
        call(0, 1, OFFERS, placing_until(SIZE, SIZE, U256::from(4))),
        call(0, 2, OFFERS, cancelling(&second)),
        call(0, 3, OFFERS, placing_until(SIZE, SIZE, U256::ZERO)),
    ];
    let applied = chain.run(vec![lane]);
    assert_eq!(statuses(&applied), [Succeeded; 3]);
    assert_eq!((chain.ledger.book().ending_at(4), chain.ledger.book().len()), (0, 1));
    assert_eq!(logs(&applied, "Ends(address,bytes32,uint64)").len(), 1);
    (0..3).for_each(|_| assert!(logs(&chain.run(vec![vec![]]), "Ended(address,bytes32,uint64)").is_empty()));
    assert_eq!(chain.ledger.book().len(), 1);
}

#[test]
fn a_last_height_out_of_bounds_has_a_name() {
    let mut chain = Chain::new();
    chain.run(vec![vec![]]);
    // A question is asked in the state after block 1, by who has nothing to sell.
    let first = 2u64;
    let ends = |until: U256| told(&chain, placing_until(SIZE, SIZE, until));
    let last = U256::from(first + LIFE_MAX);
    for until in [1, first - 1] {
        assert_eq!(ends(U256::from(until)), input("LifeEnded(uint64)", &[U256::from(first)]));
    }
    let far = [last + U256::from(1), U256::from(u64::MAX - 1), U256::from(u64::MAX), U256::from(u64::MAX) + last];
    for until in far.into_iter().chain([U256::MAX]) {
        assert_eq!(ends(until), input("LifeTooLong(uint64)", &[last]), "{until}");
    }
    let poor = input("InsufficientBalance(uint256,uint64)", &[U256::ZERO, U256::from(SIZE)]);
    [U256::ZERO, U256::from(first), last].into_iter().for_each(|until| assert_eq!(ends(until), poor, "{until}"));
    let missing = &placing_until(SIZE, SIZE, last)[..4 + 4 * 32];
    assert_eq!(&told(&chain, missing.to_vec())[..4], &[0x08, 0xc3, 0x79, 0xa0], "Error(string)");
}

/// A list cancels what rests, tells what came back of each, and counts nothing twice.
#[test]
fn a_list_cancels_what_rests() {
    let mut chain = Chain::new();
    let alice = person(0);
    let lane = (0..5).map(|at| place(0, at, SELL_EUR, SIZE + at, SIZE)).chain([place(1, 0, SELL_EUR, SIZE, SIZE)]);
    chain.run(vec![lane.collect()]);
    let own = |at: u64| name(SELL_EUR, SIZE + at, SIZE, at);
    let absent = OfferName { id: own(0).id + 99, ..own(0) };
    // One of somebody else has the same name as our first; with another limit it is no offer.
    let wrong = OfferName { limit: "7".parse().expect("a price"), ..own(1) };
    let dirty = word_of(&own(2)) | (U256::from(1) << 255);
    let words = [word_of(&own(0)), word_of(&absent), word_of(&wrong), dirty, word_of(&own(3)), U256::ZERO];
    let before = units(&chain, &alice, EUR);
    let applied = chain.run(vec![vec![long(0, 5, list(&words))]]);
    assert_eq!(statuses(&applied), [Succeeded]);
    let told: Vec<u64> = logs(&applied, "Cancelled(address,bytes32,uint64)").into_iter().map(number).collect();
    assert_eq!((told, units(&chain, &alice, EUR)), (vec![SIZE, SIZE + 3], before + 2 * SIZE + 3));
    assert_eq!(chain.ledger.book().len(), 4, "two of the list are gone, and nothing of anybody else");
    // The rest and what is placed in the same block, in one list.
    let new = OfferName { id: own(0).id + 5, ..own(0) };
    let words = [own(1), own(2), own(4), new].map(|name| word_of(&name));
    let applied = chain.run(vec![vec![place(0, 6, SELL_EUR, SIZE, SIZE), long(0, 7, list(&words))]]);
    assert_eq!(statuses(&applied), [Succeeded; 2]);
    assert_eq!((units(&chain, &alice, EUR), chain.ledger.book().len()), (RICH, 1));
    // Nothing of it rests any more.
    let applied = chain.run(vec![vec![long(0, 8, list(&words))]]);
    assert_eq!(statuses(&applied), [Reverted]);
}

#[test]
fn a_list_that_is_malformed_has_a_name() {
    let mut chain = Chain::new();
    let offer = name(SELL_EUR, SIZE, SIZE, 0);
    chain.run(vec![vec![place(0, 0, SELL_EUR, SIZE, SIZE)]]);
    let told = |data| told(&chain, data);
    let (place, one) = (U256::from(32), word_of(&offer));
    let numbers = |count: u64| (0..count).map(|at| one + U256::from(at)).collect::<Vec<_>>();
    assert_eq!(told(list(&[])), input("NoOffers()", &[]));
    assert_eq!(told(list(&[one, one + U256::from(1), one])), input("NamedTwice(bytes32)", &[one]));
    let too_many = |length: U256| input("TooManyOffers(uint256,uint256)", &[length, U256::from(32)]);
    assert_eq!(told(list(&numbers(33))), too_many(U256::from(33)));
    for length in [U256::from(u64::MAX), U256::from(1) << 64, U256::MAX] {
        assert_eq!(told(cancelling_all(place, length, &[one])), too_many(length), "a length that nothing follows");
    }
    assert_eq!(told(list(&numbers(32))), input("UnknownOffer(bytes32)", &[one]), "the caller has none of them");
    let is_reason = |data: Vec<u8>| assert_eq!(told(data)[..4], [0x08, 0xc3, 0x79, 0xa0], "Error(string)");
    is_reason(cancelling_all(place, U256::from(2), &[one]));
    is_reason(cancelling_all(U256::from(64), U256::from(1), &[one, one]));
    is_reason(cancelling_all(place | (U256::from(1) << 200), U256::from(1), &[one]));
    is_reason(list(&[one])[..4 + 3 * 32 - 1].to_vec());
    is_reason(list(&[])[..4 + 32].to_vec());
}

/// A list costs gas for each of its offers, and with too little of it nothing is cancelled. A static call, and one that
/// reverts afterwards, cancel nothing.
#[test]
fn a_list_is_paid_for_and_reverts_whole() {
    let mut chain = Chain::new();
    let alice = person(0);
    for at in 0..8 {
        chain.run(vec![(0..4).map(|of| place(0, 4 * at + of, SELL_EUR, SIZE, SIZE)).collect()]);
    }
    let words: Vec<U256> = (0..32).map(|at| word_of(&name(SELL_EUR, SIZE, SIZE, at))).collect();
    let locked = RICH - 32 * SIZE;
    assert_eq!(units(&chain, &alice, EUR), locked);
    let with = |chain: &mut Chain, gas_limit: u64| {
        let data = list(&words);
        let request = EthereumRequest { data, gas_limit, ..request(chain.nonce(&alice), Some(OFFERS)) };
        let applied = chain.run(vec![vec![key(0).sign(&request)]]);
        (statuses(&applied) == [Succeeded], applied.contracts.receipts[0].gas_used)
    };
    for gas_limit in (60_000..360_000).step_by(13_700) {
        assert!(!with(&mut chain, gas_limit).0, "{gas_limit} gas");
        assert_eq!((units(&chain, &alice, EUR), chain.ledger.book().len()), (locked, 32), "{gas_limit} gas");
    }
    let contract = contract_address(&person(1), 0);
    chain.run(vec![vec![create(1, 0, &caller(0xfa))]]);
    let data = [&word(&OFFERS)[..], &list(&words[..1])].concat();
    chain.run(vec![vec![call(1, 1, contract, data)]]);
    assert_eq!((chain.slot(&contract, 0), chain.ledger.book().len()), (1, 32), "a static call reverts");
    let (succeeded, gas) = with(&mut chain, 2_000_000);
    assert!(succeeded && gas > 32 * 10_000, "{gas} gas for 32 offers");
    assert_eq!((units(&chain, &alice, EUR), chain.ledger.book().len()), (RICH, 0));
}
