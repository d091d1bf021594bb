//! Offers that contracts place: what they lock, when they rest and fill, which error refuses what, and that no units
//! appear or vanish in any frame.

use std::collections::BTreeMap;

use crate::evm::asked::*;
use crate::evm::offering::*;
use crate::evm::*;
use ledger::contracts::ethereum::{U256, keccak256};
use ledger::contracts::{
    Bloom, EthereumReceipt, EthereumRequest, EvmStatus, OFFERS, OfferEvent, OfferName, contract_address,
};
use ledger::{
    Applied, Cancelled, Genesis, Ledger, Limits, Listing, ListingTerms, Outcome, Pair, ReceiptsTrie, Refusal, Roots,
};
use primitives::{Address, AssetId, Body, Closing, Operation, Price, Transaction};

use EvmStatus::{Reverted, Succeeded};

/// The output of a call after the last block; for a revert, the error.
fn output(chain: &Chain, data: Vec<u8>) -> Vec<u8> {
    ask_at(chain, chain.ledger.height(), OFFERS, data).output.to_vec()
}

fn error(signature: &str, arguments: &[U256]) -> Vec<u8> {
    input(signature, arguments)
}

fn amount_of(chain: &Chain, height: u64, owner: Address, name: &OfferName) -> u64 {
    let asked = input("amountOf(address,bytes32)", &[of(owner), U256::from_be_bytes(name.to_word())]);
    let called = ask_at(chain, height, OFFERS, asked);
    assert_eq!(called.status, Succeeded);
    U256::from_be_slice(&called.output).to()
}

fn native(sequence: u64, operation: Operation) -> Transaction {
    let holder = validator(9);
    Body { chain: CHAIN, account: holder.public().address(), sequence, until: 50_000, operation }
        .sign(&NETWORK, &holder)
}

fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

/// An offer rests from the end of its block, takes part in the next batch, and the settlement receipt reports its
/// fill.
#[test]
fn an_offer_rests_fills_and_is_told() {
    let mut chain = Chain::new();
    let (alice, offer) = (person(0), name(SELL_EUR, 1_000_000, 900_000, 0));
    let counter = Operation::offer(USD, EUR, 400_000, price("0.9"));
    let block = chain.block(vec![native(1, counter)], vec![vec![place(0, 0, SELL_EUR, 1_000_000, 900_000)]]);
    let applied = chain.apply(&block);
    assert_eq!(statuses(&applied), [Succeeded]);
    assert!(applied.batch.fills.is_empty(), "it is not in the batch of its own block");
    assert_eq!(units(&chain, &alice, EUR), RICH - 1_000_000);
    assert_eq!(resting(&chain.ledger)[&(SELL_EUR, offer.place(&alice))], 1_000_000);
    let log = &applied.contracts.receipts[0].logs[0];
    assert_eq!(OfferEvent::of(log), Some(OfferEvent::Placed(SELL_EUR, offer.place(&alice), 1_000_000)));
    assert_eq!(amount_of(&chain, 1, alice, &offer), 1_000_000);
    let dollars = units(&chain, &alice, USD);
    let applied = chain.run(vec![vec![]]);
    let fill = applied.batch.fills.iter().find(|fill| fill.place.account == alice).expect("it trades");
    assert_eq!((fill.sold + fill.left, units(&chain, &alice, USD)), (1_000_000, dollars + fill.bought));
    let settled = &applied.contracts.receipts[0];
    assert_eq!((settled.position, settled.sender, settled.gas_used, settled.logs.len()), (None, OFFERS, 0, 1));
    let log = &settled.logs[0];
    assert_eq!(log.topics[0], keccak256("Filled(address,bytes32,uint64,uint64,uint64,uint64)").0);
    assert_eq!((log.topics[2], OfferEvent::of(log)), (offer.to_word(), None));
    let told: Vec<u64> = log.data.chunks(32).map(|word| U256::from_be_slice(word).to()).collect();
    assert_eq!(told, [fill.sold, fill.bought, fill.left, fill.returned]);
    check_is_proved(&applied, settled);
    assert_eq!([1, 2].map(|height| amount_of(&chain, height, alice, &offer)), [1_000_000, fill.left]);
    // The last batch has prices, and the one before had none.
    let rate = input("rate(address,address)", &[token(EUR), token(USD)]);
    let told = |height| ask_at(&chain, height, OFFERS, rate.clone()).output;
    let words = |output: &[u8]| -> Vec<U256> { output.chunks(32).map(U256::from_be_slice).collect() };
    let fair = U256::from(fill.bought) * U256::from(10u64.pow(18)) / U256::from(fill.sold);
    let (rate, height) = (words(&told(2))[0], words(&told(2))[1]);
    assert!(height == U256::from(2) && rate.abs_diff(fair) < fair / U256::from(1_000), "{rate} for {fair}");
    assert_eq!(words(&told(0)), [U256::ZERO, U256::ZERO]);
    let valuation = |asset| words(&output(&chain, input("valuation(address)", &[token(asset)])))[0];
    assert_eq!(valuation(EUR) * U256::from(10u64.pow(18)) / valuation(USD), rate);
    assert_eq!(ask(&chain, OFFERS, "placedBy(address)", &[of(alice)]), U256::from(1));
    // The remainder is cancelled, and a restored chain has the same result.
    let mut chain = chain.restored();
    let applied = chain.run(vec![vec![call(0, 1, OFFERS, cancelling(&offer))]]);
    assert_eq!((statuses(&applied), units(&chain, &alice, EUR)), (vec![Succeeded], RICH - fill.sold));
    assert!(!resting(&chain.ledger).contains_key(&(SELL_EUR, offer.place(&alice))));
}

/// The receipt is in the bloom of its block, and under the receipts root.
fn check_is_proved(applied: &Applied, settled: &EthereumReceipt) {
    let bloom = Bloom::of(settled.logs.iter());
    let all = applied.contracts.bloom();
    assert!(bloom.0.iter().zip(&all.0).all(|(own, all)| own & all == *own) && bloom.0 != [0; 256]);
    let receipts = receipts(applied);
    let mut trie = ReceiptsTrie::new(&receipts);
    let root = trie.root();
    let proof = trie.prove_ethereum(&settled.id, &receipts);
    assert_eq!(proof.verify(&root, &settled.id), Ok(Some(settled)));
    let mut other = receipts.clone();
    other.contracts.receipts[0].logs[0].data[31] ^= 1;
    assert_ne!(ReceiptsTrie::new(&other).root(), root);
}

/// Asset 0 is locked from the wei of the owner, and the remainder below a unit stays.
#[test]
fn an_offer_may_sell_what_pays_for_gas() {
    let mut chain = Chain::new();
    let (alice, offer) = (person(0), name(SELL_USD, 500_000, 1_000_000, 0));
    let before = chain.wei(&alice);
    let applied = chain.run(vec![vec![place(0, 0, SELL_USD, 500_000, 1_000_000)]]);
    let paid = |applied: &Applied| {
        let receipt = applied.contracts.receipts.last().expect("one");
        u128::from(receipt.gas_used) * receipt.gas_price
    };
    let mut wei = before - 500_000 * UNIT - paid(&applied);
    assert_eq!(chain.wei(&alice), wei);
    let all = chain.wei(&alice) / UNIT;
    let applied = chain.run(vec![vec![
        place(0, 1, SELL_USD, u64::try_from(all).expect("units"), 1 << 40),
        call(0, 2, OFFERS, cancelling(&offer)),
    ]]);
    assert_eq!(statuses(&applied), [Reverted, Succeeded], "gas has taken some of it");
    wei += 500_000 * UNIT;
    wei -= applied.contracts.receipts.iter().map(|one| u128::from(one.gas_used) * one.gas_price).sum::<u128>();
    assert_eq!((chain.wei(&alice), chain.ledger.book().len()), (wei, 0));
}

#[test]
fn what_is_refused_has_a_name() {
    let mut chain = Chain::new();
    let (least, one) = (U256::from(4_096), U256::from(1));
    let nothing = U256::ZERO;
    let told = |data| output(&chain, data);
    let places = |arguments: [U256; 4]| told(input("place(address,address,uint64,uint64)", &arguments));
    let [usd, eur] = [token(USD), token(EUR)];
    let none = token(AssetId(2));
    assert_eq!(places([none, usd, least, least]), error("UnknownAsset(address)", &[none]));
    assert_eq!(places([eur, least, least, least]), error("UnknownAsset(address)", &[least]));
    assert_eq!(places([eur, eur, least, least]), error("SameAsset()", &[]));
    assert_eq!(places([eur, usd, least - one, least]), error("SellsTooLittle(uint64)", &[least]));
    assert_eq!(places([eur, usd, nothing, least]), error("SellsTooLittle(uint64)", &[least]));
    assert_eq!(places([eur, usd, one, U256::from(i64::MAX)]), error("SellsTooLittle(uint64)", &[least]));
    assert_eq!(places([eur, usd, least, least - one]), error("AsksTooLittle(uint64)", &[least]));
    assert_eq!(places([eur, usd, U256::from(i64::MAX), nothing]), error("AsksTooLittle(uint64)", &[least]));
    for wide in [U256::from(1u64 << 63), U256::from(1) << 64, (U256::from(1) << 64) + least, U256::MAX] {
        assert_eq!(places([eur, usd, wide, least]), error("AmountTooLarge(uint256)", &[wide]));
        assert_eq!(places([eur, usd, least, wide]), error("AmountTooLarge(uint256)", &[wide]));
    }
    let poor = error("InsufficientBalance(uint256,uint64)", &[nothing, least]);
    assert_eq!(places([eur, usd, least, least]), poor, "the caller has nothing");
    assert_eq!(told(vec![1, 2, 3]), error("UnknownFunction()", &[]));
    assert_eq!(told(input("placeOrder()", &[])), error("UnknownFunction()", &[]));
    let unknown =
        |word: U256| assert_eq!(told(input("cancel(bytes32)", &[word])), error("UnknownOffer(bytes32)", &[word]));
    let real = name(SELL_EUR, 5_000, 5_000, 0);
    let word = U256::from_be_bytes(real.to_word());
    [nothing, U256::MAX, word, word | (one << 255)].into_iter().for_each(unknown);
    unknown(U256::from_be_bytes(OfferName { id: 1, ..real }.to_word()));
    // Others cannot cancel an offer, and natively placed offers cannot be named here.
    let placed = Operation::offer(EUR, USD, 5_000, price("1"));
    let lanes = vec![vec![place(0, 0, SELL_EUR, 5_000, 5_000), call(1, 0, OFFERS, cancelling(&real))]];
    let block = chain.block(vec![native(1, placed)], lanes);
    let applied = chain.apply(&block);
    assert_eq!(statuses(&applied), [Succeeded, Reverted]);
    let natively = OfferName { id: 1, ..real };
    assert_eq!(amount_of(&chain, 1, validator(9).public().address(), &natively), 0);
    let wrong = OfferName { limit: price("1.5"), ..real };
    let applied = chain.run(vec![vec![call(0, 1, OFFERS, cancelling(&wrong)), call(0, 2, OFFERS, cancelling(&real))]]);
    assert_eq!(statuses(&applied), [Reverted, Succeeded]);
}

/// A call through a contract that passes its input on to the address in the first word.
fn through(from: u8, nonce: u64, contract: Address, data: &[u8], value: u128) -> Vec<u8> {
    let (data, gas_limit) = ([&word(&OFFERS)[..], data].concat(), 400_000);
    key(from).sign(&EthereumRequest { data, value, gas_limit, ..request(nonce, Some(contract)) })
}

#[test]
fn offers_are_called_at_their_own_address_without_value_and_not_statically() {
    for (instruction, expected) in [(0xf1, 2), (0xf2, 1), (0xf4, 1), (0xfa, 1)] {
        let mut chain = Chain::new();
        let contract = contract_address(&person(0), 0);
        chain.run(vec![vec![create(0, 0, &caller(instruction)), fund(1, 0, contract, 100_000)]]);
        let data = placing(SELL_EUR, 50_000, 50_000);
        let applied = chain.run(vec![vec![through(0, 1, contract, &data, 0)]]);
        assert_eq!((statuses(&applied), chain.slot(&contract, 0)), (vec![Succeeded], expected), "{instruction:x}");
        let left = if expected == 2 { 50_000 } else { 100_000 };
        assert_eq!((units(&chain, &contract, EUR), chain.ledger.book().len() as u64), (left, expected - 1));
        chain.run(vec![vec![through(0, 2, contract, &input("placedBy(address)", &[of(contract)]), 0)]]);
        assert_eq!(chain.slot(&contract, 0), if [0xf1, 0xfa].contains(&instruction) { 2 } else { 1 });
    }
    let mut chain = Chain::new();
    let contract = contract_address(&person(0), 0);
    chain.run(vec![vec![create(0, 0, &caller(0xf1)), fund(1, 0, contract, 100_000)]]);
    let applied = chain.run(vec![vec![
        through(0, 1, contract, &placing(SELL_EUR, 50_000, 50_000), 7),
        send(0, 2, OFFERS, 1),
        fund(1, 1, OFFERS, 5),
    ]]);
    assert_eq!(statuses(&applied).last(), Some(&Reverted), "nobody could move what it holds");
    assert_eq!((chain.slot(&contract, 0), chain.wei(&OFFERS), chain.ledger.book().len()), (1, 0, 0));
    let pay = native(1, Operation::Pay { to: OFFERS, asset: EUR, amount: 5 });
    let block = chain.block(vec![pay], vec![vec![]]);
    assert_eq!(chain.apply(&block).outcomes, [Outcome::Refused(Refusal::RESERVED_ADDRESS)]);
}

/// A frame that reverts, or runs out of gas at any point, leaves no offer, no debit and no count.
#[test]
fn what_reverts_places_and_cancels_nothing() {
    let mut chain = Chain::new();
    let reverts = [&caller(0xf1)[..24], &[0x5f, 0x5f, 0xfd]].concat();
    let (contract, offer) = (contract_address(&person(0), 0), name(SELL_EUR, 50_000, 50_000, 0));
    chain.run(vec![vec![create(0, 0, &reverts), fund(1, 0, contract, 100_000), place(2, 0, SELL_EUR, 50_000, 50_000)]]);
    let applied = chain.run(vec![vec![through(0, 1, contract, &placing(SELL_EUR, 50_000, 50_000), 0)]]);
    assert_eq!(statuses(&applied), [Reverted]);
    assert!(applied.contracts.receipts[0].logs.is_empty());
    assert_eq!((units(&chain, &contract, EUR), chain.ledger.book().len()), (100_000, 1));
    assert_eq!(ask(&chain, OFFERS, "placedBy(address)", &[of(contract)]), U256::ZERO);
    let (mut nonce, mut ended) = (2, Vec::new());
    for gas_limit in (24_000..130_000).step_by(3_900) {
        let (eur, count) = (units(&chain, &person(0), EUR), chain.ledger.book().len());
        let data = placing(SELL_EUR, 50_000, 50_000);
        let sent = key(0).sign(&EthereumRequest { data, gas_limit, ..request(nonce, Some(OFFERS)) });
        let cancels =
            EthereumRequest { data: cancelling(&offer), gas_limit, ..request(chain.nonce(&person(2)), Some(OFFERS)) };
        let cancels = key(2).sign(&cancels);
        let applied = chain.run(vec![vec![sent], vec![cancels]]);
        let succeeded = applied.contracts.receipts.iter().map(|one| (one.sender, one.status == Succeeded));
        let succeeded: BTreeMap<Address, bool> = succeeded.collect();
        let (placed, cancelled) = (succeeded[&person(0)], succeeded[&person(2)]);
        assert_eq!(units(&chain, &person(0), EUR), eur - if placed { 50_000 } else { 0 }, "with {gas_limit} gas");
        assert_eq!(chain.ledger.book().len(), count + usize::from(placed) - usize::from(cancelled));
        ended.push(placed);
        nonce += 1;
    }
    assert!(ended.is_sorted() && !ended[0] && *ended.last().expect("some"), "enough gas is enough");
    assert_eq!(units(&chain, &person(2), EUR), RICH, "it was cancelled as soon as there was gas for it");
}

/// A chain in which an account that sends Ethereum transactions also has a key for native ones.
fn with_native_key(chain: &Chain, of: Address) -> Chain {
    use ledger::{AccountState, Restore, Snapshot};
    const ACCOUNTS: u8 = 1;
    let mut restore = Restore::default();
    for mut chunk in Snapshot::of(&chain.ledger) {
        if chunk[0] == ACCOUNTS {
            let mut accounts: Vec<AccountState> = borsh::from_slice(&chunk[1..]).expect("accounts");
            for account in accounts.iter_mut().filter(|account| account.address == of) {
                account.key = Some(validator(9).public());
            }
            chunk = [vec![ACCOUNTS], borsh::to_vec(&accounts).expect("encodes")].concat();
        }
        restore.push(&chunk).expect("a chunk");
    }
    let ledger = restore.finish().expect("whole");
    let mut roots = Roots::of(&ledger);
    let root = roots.parts().root();
    Chain { ledger, roots, root, time_ms: chain.time_ms }
}

/// Of a native cancel and a contract's cancel in one block the native one counts, and the units are returned once.
#[test]
fn an_offer_is_cancelled_once_whoever_asks() {
    let alice = person(0);
    let mut chain = with_native_key(&Chain::new(), alice);
    // An account with a registered key shows a nonce from the start.
    let offer = name(SELL_EUR, 50_000, 60_000, 0);
    let twice = vec![
        place(0, 1, SELL_EUR, 50_000, 60_000),
        call(0, 2, OFFERS, cancelling(&offer)),
        call(0, 3, OFFERS, cancelling(&offer)),
        place(0, 4, SELL_EUR, 50_000, 60_000),
    ];
    let applied = chain.run(vec![twice]);
    assert_eq!(statuses(&applied), [Succeeded, Succeeded, Reverted, Succeeded]);
    assert_eq!((units(&chain, &alice, EUR), chain.ledger.book().len()), (RICH - 50_000, 1));
    let offer = OfferName { id: offer.id + 1, ..offer };
    assert_eq!(amount_of(&chain, 1, alice, &offer), 50_000);
    let cancel = Operation::cancel(EUR, USD, offer.limit, offer.id);
    let cancel = Body { chain: CHAIN, account: alice, sequence: 1, until: 50_000, operation: cancel }
        .sign(&NETWORK, &validator(9));
    let block = chain.block(vec![cancel], vec![vec![call(0, 5, OFFERS, cancelling(&offer))]]);
    let applied = chain.apply(&block);
    let cancelled = Outcome::Cancelled(Cancelled { found: 1, missing: 0 });
    assert_eq!((&applied.outcomes[..], statuses(&applied)), (&[cancelled][..], vec![Reverted]));
    assert_eq!((units(&chain, &alice, EUR), chain.ledger.book().len()), (RICH, 0));
    assert_eq!([1, 2].map(|height| amount_of(&chain, height, alice, &offer)), [50_000, 0]);
}

/// A full book and too many pairs, exactly: also for offers placed in one block.
#[test]
fn the_book_and_its_pairs_have_bounds() {
    let with = |limits: Limits, assets: usize| {
        let listing = |number: usize| Listing::new(format!("A{number}"), 6, Address([9; 20]));
        let (assets, old) = ((0..assets).map(listing).collect::<Vec<_>>(), genesis());
        let rich =
            (0..8).flat_map(|one| (0..assets.len()).map(move |asset| (person(one), AssetId(asset as u32), RICH)));
        let ledger = Ledger::new(&Genesis { limits, balances: rich.collect(), assets, ..old }).expect("sound");
        let mut roots = Roots::of(&ledger);
        let root = roots.parts().root();
        Chain { ledger, roots, root, time_ms: 1_700_000_000_000 }
    };
    let mut chain = with(Limits { resting_offers: 3, open_pairs: 2, ..limits() }, 3);
    let pair = |sell, buy| Pair { sell: AssetId(sell), buy: AssetId(buy) };
    let lane = vec![
        place(0, 0, pair(1, 2), 5_000, 9_000),
        place(0, 1, pair(0, 1), 5_000, 9_000),
        place(0, 2, pair(2, 0), 5_000, 9_000),
        place(0, 3, pair(1, 2), 5_000, 9_000),
        place(0, 4, pair(1, 2), 6_000, 9_000),
    ];
    let applied = chain.run(vec![lane]);
    assert_eq!(statuses(&applied), [Succeeded, Succeeded, Reverted, Succeeded, Succeeded]);
    assert_eq!((chain.ledger.book().len(), chain.ledger.book().pairs()), (4, 2), "full only when the block begins");
    let data = placing(pair(1, 2), 5_000, 9_000);
    assert_eq!(output(&chain, data), error("BookFull()", &[]));
    let applied = chain.run(vec![vec![
        call(0, 5, OFFERS, cancelling(&name(pair(1, 2), 5_000, 9_000, 0))),
        place(0, 6, pair(1, 2), 5_000, 9_000),
    ]]);
    assert_eq!(statuses(&applied), [Succeeded, Reverted]);
    let applied = chain.run(vec![vec![call(0, 7, OFFERS, cancelling(&name(pair(1, 2), 5_000, 9_000, 2)))]]);
    assert_eq!((statuses(&applied), chain.ledger.book().len()), (vec![Succeeded], 2));
    let data = placing(pair(2, 0), 5_000, 9_000);
    assert_eq!(output(&chain, data), error("TooManyPairs()", &[]));
    // A native offer of the next block uses the remaining room.
    assert_eq!(chain.ledger.book_facts().pairs_left, Some(0));
}

/// What contracts offer of a closing asset must end with it, in the words of its errors; and a resting offer of theirs
/// returns when it has closed, and is told.
#[test]
fn contracts_offer_a_closing_asset_up_to_its_last_height() {
    let mut genesis = Genesis { fee: 1, listings: ListingTerms { notice: 4, ..ListingTerms::default() }, ..genesis() };
    genesis.assets[EUR.0 as usize].issuer = validator(9).public().address();
    let ledger = Ledger::new(&genesis).expect("sound");
    let mut roots = Roots::of(&ledger);
    let root = roots.parts().root();
    let mut chain = Chain { ledger, roots, root, time_ms: 1_700_000_000_000 };
    let placed = chain.run(vec![vec![place(0, 0, SELL_EUR, 1_000_000, 900_000)]]);
    assert_eq!(statuses(&placed), [Succeeded]);
    let close = Operation::CloseAsset { asset: EUR, closing: Closing::Announce };
    let block = chain.block(vec![native(1, close)], vec![vec![]]);
    assert_eq!(chain.apply(&block).outcomes, [Outcome::Applied]);
    let last = chain.ledger.listings().closes(EUR).expect("it closes");
    let until = |height: u64| {
        let arguments = [token(EUR), token(USD), U256::from(50_000), U256::from(50_000), U256::from(height)];
        input("place(address,address,uint64,uint64,uint64)", &arguments)
    };
    let outlives = error("OutlivesAsset(uint64)", &[U256::from(last)]);
    assert_eq!(output(&chain, placing(SELL_EUR, 50_000, 50_000)), outlives);
    assert_eq!(output(&chain, until(last + 1)), outlives);
    // Who asks has nothing to sell, and is told of nothing else.
    let poor = error("InsufficientBalance(uint256,uint64)", &[U256::ZERO, U256::from(50_000)]);
    assert_eq!(output(&chain, until(last)), poor);
    while chain.ledger.height() + 1 < last {
        chain.run(vec![vec![]]);
    }
    let before = units(&chain, &person(0), EUR);
    let applied = chain.run(vec![vec![call(1, 0, OFFERS, until(last + 1))]]);
    assert_eq!(statuses(&applied), [Reverted], "the next batch has it no more");
    assert_eq!(units(&chain, &person(0), EUR), before + 1_000_000, "what rested has returned");
    let told = &applied.contracts.receipts[0].logs[0];
    assert_eq!(told.topics[0], keccak256("Ended(address,bytes32,uint64)").0);
    assert_eq!(output(&chain, until(0)), error("AssetClosed(address)", &[token(EUR)]));
}
