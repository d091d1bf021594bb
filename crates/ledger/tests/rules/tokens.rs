//! Assets as tokens: what they move, what they refuse, and that no units appear or vanish in any frame.

use crate::evm::asked::*;
use crate::evm::*;
use ledger::contracts::ethereum::{self, B256, KECCAK_EMPTY, U256, keccak256};
use ledger::contracts::{
    AccountInfo, EthereumRequest, EvmCode, EvmJob, EvmOutcome, EvmState, EvmStatus, EvmView, TokenFacts, TxEnv,
    contract_address, token_address,
};
use ledger::{Applied, Genesis, Ledger, ListingTerms, Outcome, Refusal, Roots};
use primitives::{Address, AssetControl, AssetId, AssetListing, Body, Closing, Digest, Operation, Superblock};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const EUR: AssetId = AssetId(1);

fn token() -> Address {
    token_address(EUR)
}

fn person(number: u8) -> Address {
    key(number).address()
}

fn transfer(to: Address, amount: u64) -> Vec<u8> {
    input("transfer(address,uint256)", &[of(to), U256::from(amount)])
}

fn units(chain: &Chain, holder: &Address) -> u64 {
    chain.ledger.accounts().get(holder).map_or(0, |account| account.balance(EUR))
}

fn statuses(applied: &Applied) -> Vec<EvmStatus> {
    applied.contracts.receipts.iter().map(|receipt| receipt.status).collect()
}

use EvmStatus::{Reverted, Succeeded};

#[test]
fn a_token_moves_what_native_transactions_move() {
    let mut chain = Chain::new();
    let (alice, bob, carol) = (person(0), person(1), person(2));
    let approve = input("approve(address,uint256)", &[of(bob), U256::from(500)]);
    let spend =
        |amount: u64| input("transferFrom(address,address,uint256)", &[of(alice), of(carol), U256::from(amount)]);
    let applied = chain.run(vec![vec![
        call(0, 0, token(), transfer(Address([55; 20]), 7)),
        call(0, 1, token(), approve),
        call(1, 0, token(), spend(300)),
        call(1, 1, token(), spend(300)),
        call(2, 0, token(), transfer(carol, 1)),
        call(3, 0, token(), transfer(carol, 1_000_000_001)),
    ]]);
    assert_eq!(statuses(&applied), [Succeeded, Succeeded, Succeeded, Reverted, Succeeded, Reverted]);
    let held = [alice, carol, Address([55; 20])].map(|one| units(&chain, &one));
    assert_eq!(held, [1_000_000_000 - 307, 1_000_000_300, 7]);
    let log = &applied.contracts.receipts[2].logs[0];
    assert_eq!((log.address, log.topics.len(), log.data[31]), (token(), 3, (300 % 256) as u8));
    assert_eq!(log.topics[0], keccak256("Transfer(address,address,uint256)").0);
    assert_eq!(ask(&chain, token(), "allowance(address,address)", &[of(alice), of(bob)]), U256::from(200));
    assert_eq!(ask(&chain, token(), "balanceOf(address)", &[of(carol)]), U256::from(1_000_000_300));
    assert_eq!(ask(&chain, token(), "decimals()", &[]), U256::from(6));
    assert_eq!(ask(&chain, token(), "totalSupply()", &[]), U256::from(chain.ledger.assets()[1].issued));
    let symbol = ask_at(&chain, 1, token(), input("symbol()", &[])).output;
    assert_eq!(&symbol[64..67], b"EUR");
    // Asset 0 moves as value; its token shows the whole units of the wei.
    let dollars = token_address(AssetId(0));
    let told = ask(&chain, dollars, "balanceOf(address)", &[of(alice)]);
    assert_eq!(told, U256::from(chain.wei(&alice) / UNIT));
    let applied = chain.run(vec![vec![call(0, 2, dollars, transfer(bob, 1))]]);
    assert_eq!(statuses(&applied), [Reverted]);
    // A restored chain has the same balances, and an infinite allowance is not used up.
    let mut chain = chain.restored();
    let infinite = input("approve(address,uint256)", &[of(bob), U256::MAX]);
    chain.run(vec![vec![call(0, 3, token(), infinite), call(1, 2, token(), spend(10))]]);
    assert_eq!(ask(&chain, token(), "allowance(address,address)", &[of(alice), of(bob)]), U256::MAX);
}

fn through(from: u8, nonce: u64, contract: Address, data: &[u8], value: u128) -> Vec<u8> {
    let data = [&word(&token())[..], data].concat();
    key(from).sign(&EthereumRequest { data, value, ..request(nonce, Some(contract)) })
}

#[test]
fn a_token_is_called_at_its_own_address_without_value_and_not_statically() {
    for (instruction, expected) in [(0xf1, 2), (0xf2, 1), (0xf4, 1), (0xfa, 1)] {
        let mut chain = Chain::new();
        let contract = contract_address(&person(0), 0);
        chain.run(vec![vec![create(0, 0, &caller(instruction)), call(1, 0, token(), transfer(contract, 100))]]);
        let applied = chain.run(vec![vec![through(0, 1, contract, &transfer(person(3), 40), 0)]]);
        assert_eq!(statuses(&applied), [Succeeded]);
        assert_eq!(chain.slot(&contract, 0), expected, "instruction {instruction:x}");
        let moved = if expected == 2 { 40 } else { 0 };
        assert_eq!((units(&chain, &contract), units(&chain, &person(3))), (100 - moved, 1_000_000_000 + moved));
        // Queries are allowed statically, but never by delegation.
        chain.run(vec![vec![through(0, 2, contract, &input("totalSupply()", &[]), 0)]]);
        assert_eq!(chain.slot(&contract, 0), if [0xf1, 0xfa].contains(&instruction) { 2 } else { 1 });
    }
    // With value every call reverts, and the value is returned.
    let mut chain = Chain::new();
    let contract = contract_address(&person(0), 0);
    chain.run(vec![vec![create(0, 0, &caller(0xf1))]]);
    for (nonce, data) in (1..).zip([input("totalSupply()", &[]), transfer(person(3), 0)]) {
        chain.run(vec![vec![through(0, nonce, contract, &data, UNIT)]]);
        assert_eq!((chain.slot(&contract, 0), chain.wei(&token())), (1, 0));
    }
    assert_eq!(chain.wei(&contract), 2 * UNIT);
    let applied = chain.run(vec![vec![send(0, 3, token(), 1), call(0, 4, token(), vec![1, 2])]]);
    assert!(statuses(&applied).iter().all(|status| *status != Succeeded));
}

/// A frame that reverts, or runs out of gas at any point, leaves nothing behind.
#[test]
fn what_reverts_moves_nothing() {
    let mut chain = Chain::new();
    // Calls the token, and reverts.
    let reverts = [&caller(0xf1)[..24], &[0x5f, 0x5f, 0xfd]].concat();
    let contract = contract_address(&person(0), 0);
    chain.run(vec![vec![create(0, 0, &reverts), call(1, 0, token(), transfer(contract, 100))]]);
    let applied = chain.run(vec![vec![through(0, 1, contract, &transfer(person(3), 40), 0)]]);
    assert_eq!(statuses(&applied), [Reverted]);
    assert!(applied.contracts.receipts[0].logs.is_empty());
    assert_eq!(units(&chain, &contract), 100);
    let (mut nonce, mut ended) = (2, Vec::new());
    for gas_limit in (22_900..60_000).step_by(1_100) {
        let data = transfer(Address([nonce as u8; 20]), 1);
        let sent = key(0).sign(&EthereumRequest { data, gas_limit, ..request(nonce, Some(token())) });
        let applied = chain.run(vec![vec![sent]]);
        let succeeded = statuses(&applied) == [Succeeded];
        assert_eq!(units(&chain, &Address([nonce as u8; 20])), u64::from(succeeded), "with {gas_limit} gas");
        ended.push(succeeded);
        nonce += 1;
    }
    assert!(ended.is_sorted() && ended[0] != *ended.last().expect("some"), "enough gas is enough");
}

#[test]
fn amounts_and_addresses_are_held_at_their_bounds() {
    let mut chain = Chain::new();
    let to = |to: Address, amount: U256| input("transfer(address,uint256)", &[of(to), amount]);
    let wide = U256::from(1) << 64;
    let mut dirty = transfer(person(1), 1);
    dirty[4] = 1;
    let calls = [
        to(person(1), wide),
        to(person(1), wide + U256::from(5)),
        to(person(1), U256::MAX),
        to(Address([0; 20]), U256::from(1)),
        to(token(), U256::from(1)),
        to(token_address(AssetId(77)), U256::from(1)),
        transfer(person(1), 1)[..67].to_vec(),
        dirty,
        input("mint(address,uint256)", &[of(person(0)), U256::from(1)]),
        to(person(1), U256::ZERO),
    ];
    let lane = (0..).zip(calls).map(|(nonce, data)| call(0, nonce, token(), data)).collect();
    let applied = chain.run(vec![lane]);
    let (last, others) = statuses(&applied).split_last().map(|(last, others)| (*last, others.to_vec())).expect("some");
    assert!(others.iter().all(|status| *status == Reverted), "{others:?}");
    assert_eq!((last, units(&chain, &person(0))), (Succeeded, 1_000_000_000));
    // Native payments cannot go to a token either, and numbers without an asset are no token.
    let holder = validator(9);
    let pay = |sequence, to| {
        let operation = Operation::Pay { to, asset: EUR, amount: 5 };
        Body { chain: CHAIN, account: holder.public().address(), sequence, until: 50_000, operation }
            .sign(&NETWORK, &holder)
    };
    let block = chain.block(vec![pay(1, token()), pay(2, person(1))], vec![vec![]]);
    let applied = chain.apply(&block);
    assert_eq!(applied.outcomes, [Outcome::Refused(Refusal::RESERVED_ADDRESS), Outcome::Applied]);
    let none = ask_at(&chain, chain.ledger.height(), token_address(AssetId(2)), input("decimals()", &[]));
    assert_eq!(none.status, Reverted);
}

fn permit_hash(chain: &Chain, token: Address, nonce: u64) -> B256 {
    permit_hash_in(ask(chain, token, "DOMAIN_SEPARATOR()", &[]), nonce)
}

fn permit_hash_in(domain: U256, nonce: u64) -> B256 {
    let kind = keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
    let words = [of(person(0)), of(person(1)), U256::from(90), U256::from(nonce), U256::MAX];
    let said: Vec<u8> = kind.0.into_iter().chain(words.iter().flat_map(U256::to_be_bytes::<32>)).collect();
    keccak256([&[0x19, 0x01][..], &domain.to_be_bytes::<32>(), &keccak256(said)[..]].concat())
}

#[test]
fn permits_count_once_and_for_one_token() {
    let mut chain = Chain::new();
    let signed = |hash: B256| {
        let signature = key(0).sign_hash(hash);
        (U256::from(27 + u64::from(signature.v())), signature.r(), signature.s())
    };
    let permit = |(v, r, s): (U256, U256, U256)| {
        let words = [of(person(0)), of(person(1)), U256::from(90), U256::MAX, v, r, s];
        input("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", &words)
    };
    let good = signed(permit_hash(&chain, token(), 0));
    let foreign = signed(permit_hash(&chain, token_address(AssetId(0)), 0));
    let order = U256::from_be_slice(&[
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae,
        0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
    ]);
    let malleable = (U256::from(55) - good.0, good.1, order - good.2);
    let applied = chain.run(vec![vec![
        call(2, 0, token(), permit(foreign)),
        call(2, 1, token(), permit(malleable)),
        call(2, 2, token(), permit(good)),
        call(2, 3, token(), permit(good)),
        call(
            1,
            0,
            token(),
            input("transferFrom(address,address,uint256)", &[of(person(0)), of(person(1)), U256::from(90)]),
        ),
    ]]);
    assert_eq!(statuses(&applied), [Reverted, Reverted, Succeeded, Reverted, Succeeded]);
    assert_eq!(ask(&chain, token(), "nonces(address)", &[of(person(0))]), U256::from(1));
    assert_eq!(units(&chain, &person(1)), 1_000_000_090);
}

/// A permit of one network is invalid in a network with another number, and uses up no nonce there.
#[test]
fn permits_of_another_network_count_for_nothing() {
    let mut chain = Chain::new();
    let domain = |number: u64| {
        let kind = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        let words = [kind, keccak256("EUR"), keccak256("1")].map(|hash| U256::from_be_bytes(hash.0)).into_iter();
        let words = words.chain([U256::from(number), of(token())]);
        U256::from_be_bytes(keccak256(words.flat_map(|word| word.to_be_bytes::<32>()).collect::<Vec<u8>>()).0)
    };
    assert_eq!(ask(&chain, token(), "DOMAIN_SEPARATOR()", &[]), domain(CHAIN));
    let permit = |number: u64| {
        let signature = key(0).sign_hash(permit_hash_in(domain(number), 0));
        let v = U256::from(27 + u64::from(signature.v()));
        let words = [of(person(0)), of(person(1)), U256::from(90), U256::MAX, v, signature.r(), signature.s()];
        input("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", &words)
    };
    let lane = (0..).zip([CHAIN + 1, 1, CHAIN]).map(|(nonce, number)| call(2, nonce, token(), permit(number)));
    let applied = chain.run(vec![lane.collect()]);
    assert_eq!(statuses(&applied), [Reverted, Reverted, Succeeded]);
    assert_eq!(ask(&chain, token(), "allowance(address,address)", &[of(person(0)), of(person(1))]), U256::from(90));
}

/// Wei that a contract leaves to a token by destroying itself exist and are counted.
#[test]
fn wei_that_are_forced_on_a_token_are_counted() {
    let mut chain = Chain::new();
    let leaves = [&[0x73][..], &token().0, &[0xff]].concat();
    let created = key(0).sign(&EthereumRequest { value: 5 * UNIT + 3, data: leaves, ..request(0, None) });
    let applied = chain.run(vec![vec![created, call(0, 1, token(), transfer(person(1), 1))]]);
    assert_eq!(statuses(&applied), [Succeeded, Succeeded]);
    assert_eq!(chain.wei(&token()), 5 * UNIT + 3);
    let mut chain = chain.restored();
    let applied = chain.run(vec![vec![call(0, 2, token(), transfer(person(1), 1))]]);
    assert_eq!(statuses(&applied), [Succeeded]);
    let code = chain.ledger.ethereum_account_at(&token(), chain.ledger.height()).expect("kept").code;
    assert!(chain.ledger.ethereum_code(&code).is_some_and(|code| !code.is_empty()), "it shows code");
}

/// A tool that fetches accounts, code and slots from a node and executes by itself, or, with tokens, the node.
struct Fetched {
    ledger: Ledger,
    has_tokens: bool,
}

impl EvmState for Fetched {
    fn account(&self, _: u32, address: &ethereum::Address) -> Option<AccountInfo> {
        let shown = self.ledger.ethereum_account_at(&Address(address.0.0), self.ledger.height()).expect("kept");
        let code_hash = if shown.code == Default::default() { KECCAK_EMPTY } else { B256::new(shown.code.0) };
        let balance = U256::from(shown.wei);
        Some(AccountInfo { balance, nonce: shown.nonce, code_hash, code: None, ..AccountInfo::default() })
    }

    fn slot(&self, _: u32, address: &ethereum::Address, slot: &U256) -> U256 {
        let found = self.ledger.slot_at(&Address(address.0.0), &slot.to_be_bytes(), self.ledger.height());
        found.expect("kept").map_or(U256::ZERO, U256::from_be_bytes)
    }

    fn code(&self, _: u32, hash: &B256) -> EvmCode {
        self.ledger.ethereum_code(&primitives::Digest(hash.0)).unwrap_or_default()
    }

    fn block_hash(&self, _: u32, _: u64) -> B256 {
        B256::ZERO
    }

    fn token(&self, _: u32, asset: AssetId) -> Option<TokenFacts> {
        self.ledger.token_facts_at(asset, self.ledger.height()).expect("kept").filter(|_| self.has_tokens)
    }
}

/// Simulators run a token by the code and the slots that the node shows, and come to the results of the ledger: the
/// same returns, reasons, logs and balances, one call after another.
#[test]
fn the_code_that_a_token_shows_does_in_a_simulator_what_the_ledger_does() {
    let mut chain = Chain::new();
    let approve = |to: Address, units: u64| input("approve(address,uint256)", &[of(to), U256::from(units)]);
    chain.run(vec![vec![call(0, 0, token(), transfer(person(1), 7)), call(0, 1, token(), approve(person(1), 400))]]);
    let block = chain.block(Vec::new(), vec![Vec::new()]);
    let context = chain.ledger.ethereum_context(&block, 0, 0);
    let views = [true, false].map(|has_tokens| EvmView::new(Fetched { ledger: chain.ledger.clone(), has_tokens }));
    let [mut node, mut tool] = views;
    let (gas, own) = (token_address(AssetId(0)), token());
    let spend = |from: Address, to: Address, units: U256| {
        input("transferFrom(address,address,uint256)", &[of(from), of(to), units])
    };
    let unknown = Address([0x99; 20]);
    let text = |name: &str| input(name, &[]);
    let calls = [
        (0, own, text("name()")),
        (0, own, text("symbol()")),
        (0, gas, text("symbol()")),
        (0, own, text("decimals()")),
        (0, own, text("totalSupply()")),
        (0, own, text("DOMAIN_SEPARATOR()")),
        (0, own, text("nothing()")),
        (0, own, input("balanceOf(address)", &[of(person(1))])),
        (0, gas, input("balanceOf(address)", &[of(person(1))])),
        (0, own, input("nonces(address)", &[of(person(1))])),
        (0, own, input("allowance(address,address)", &[of(person(0)), of(person(1))])),
        (0, own, transfer(unknown, 5)),
        (0, own, transfer(person(0), 5)),
        (0, own, transfer(Address::default(), 5)),
        (0, own, transfer(ledger::contracts::OFFERS, 5)),
        (0, own, transfer(gas, 5)),
        (5, own, transfer(unknown, u64::MAX)),
        (0, gas, transfer(unknown, 1)),
        (1, own, spend(person(0), unknown, U256::from(100))),
        (1, own, spend(person(0), unknown, U256::from(400))),
        (1, own, approve(unknown, 3)),
        (0, own, input("approve(address,uint256)", &[of(person(2)), U256::MAX])),
        (2, own, spend(person(0), unknown, U256::from(50))),
        (0, own, input("allowance(address,address)", &[of(person(0)), of(person(1))])),
        (0, own, input("allowance(address,address)", &[of(person(0)), of(person(2))])),
        (0, own, input("balanceOf(address)", &[of(unknown)])),
        (0, own, permit_of_first(&chain)),
        (0, own, input("nonces(address)", &[of(person(0))])),
        (0, own, permit_of_first(&chain)),
        (0, ledger::contracts::OFFERS, text("rate(address,address)")),
    ];
    let (mut nonces, mut results) = ([2, 0, 0, 0, 0, 0], Vec::new());
    for (from, to, data) in calls {
        let transaction = TxEnv {
            caller: ethereum::Address::new(person(from).0),
            gas_limit: 1_000_000,
            kind: ethereum::TxKind::Call(ethereum::Address::new(to.0)),
            data: data.clone().into(),
            nonce: nonces[usize::from(from)],
            chain_id: Some(CHAIN),
            ..TxEnv::default()
        };
        nonces[usize::from(from)] += 1;
        let job = EvmJob { space: 0, context: context.clone().into(), transaction: transaction.into() };
        let [one, other] = [&mut node, &mut tool].map(|view| match view.execute(&job) {
            EvmOutcome::Executed(done) => ((done.status, done.output, done.logs), done.gas_used),
            EvmOutcome::Skipped(why) => panic!("{why:?}"),
        });
        let ((one, charged), (other, needed)) = (one, other);
        if to == ledger::contracts::OFFERS {
            let reason = String::from_utf8_lossy(&other.1).into_owned();
            assert!(other.0 == Reverted && reason.contains("executed by a node only"), "{reason}");
            continue;
        }
        assert_eq!(one, other, "from {from} to {to}: {data:02x?}");
        // Simulated, a transaction that moves units between two accounts has the gas that the node charges.
        let moves = [&[0xa9, 0x05][..], &[0x09, 0x5e], &[0x23, 0xb8]].iter().any(|name| data.starts_with(name));
        if moves && one.0 == Succeeded && data != transfer(person(0), 5) {
            assert!(needed <= charged + 20, "{needed} gas where {charged} is charged: {data:02x?}");
        }
        results.push(one.0);
    }
    let succeeded = results.iter().filter(|status| **status == Succeeded).count();
    assert!(succeeded > 15 && succeeded < results.len(), "{results:?}");
}

/// A permit of the first person for the second one, with the first nonce.
fn permit_of_first(chain: &Chain) -> Vec<u8> {
    let domain = ask(chain, token(), "DOMAIN_SEPARATOR()", &[]);
    let signature = key(0).sign_hash(permit_hash_in(domain, 0));
    let v = U256::from(27 + u64::from(signature.v()));
    let words = [of(person(0)), of(person(1)), U256::from(90), U256::MAX, v, signature.r(), signature.s()];
    input("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", &words)
}

/// A block of token transfers among few accounts, with native payments to the same accounts.
fn busy_block(chain: &Chain, dice: &mut ChaCha8Rng, sequence: u64) -> Superblock {
    let mut nonces: Vec<u64> = (0..6).map(|from| chain.nonce(&person(from))).collect();
    let mut lane = Vec::new();
    for _ in 0..30 {
        let from = dice.random_range(0..6u8);
        let to = person(dice.random_range(0..7));
        let amount = dice.random_range(0..900_000_000);
        lane.push(call(from, nonces[usize::from(from)], token(), transfer(to, amount)));
        nonces[usize::from(from)] += 1;
    }
    let holder = validator(9);
    let operation = Operation::Pay { to: person(dice.random_range(0..8)), asset: EUR, amount: 1_000 + sequence };
    let pay = Body { chain: CHAIN, account: holder.public().address(), sequence, until: 50_000, operation }
        .sign(&NETWORK, &holder);
    chain.block(vec![pay], vec![lane])
}

/// Any number of threads gets the same result, and reads of earlier heights show the balances of that time, also if
/// native payments of the same block moved them.
#[test]
fn threads_decide_nothing_and_earlier_heights_are_told() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let (mut chain, mut dice) = (Chain::new(), ChaCha8Rng::seed_from_u64(5));
            let mut held: Vec<Vec<u64>> = vec![(0..8).map(|one| units(&chain, &person(one))).collect()];
            for sequence in 1..6 {
                let block = busy_block(&chain, &mut dice, sequence);
                let applied = chain.apply(&block);
                assert!(statuses(&applied).contains(&Succeeded) && statuses(&applied).contains(&Reverted));
                held.push((0..8).map(|one| units(&chain, &person(one))).collect());
            }
            (chain, held)
        })
    };
    let (chain, held) = run(1);
    for threads in [2, 7] {
        let (other, same) = run(threads);
        assert_eq!((other.root, same), (chain.root, held.clone()));
    }
    for (height, then) in (0..).zip(&held) {
        for (one, units) in (0..).zip(then) {
            let told = ask_at(&chain, height, token(), input("balanceOf(address)", &[of(person(one))]));
            assert_eq!(U256::from_be_slice(&told.output), U256::from(*units), "{one} after {height}");
        }
    }
}

/// Before its listing the address reverts, so that no allowance is older; afterwards it is a token under its whole
/// name.
#[test]
fn an_address_that_reverted_before_its_listing_is_a_token_after_it() {
    let listings = ListingTerms { fees: 10, ..ListingTerms::priced() };
    let ledger = Ledger::new(&Genesis { fee: 1, listings, ..genesis() }).expect("sound");
    let mut roots = Roots::of(&ledger);
    let root = roots.parts().root();
    let mut chain = Chain { ledger, roots, root, time_ms: 1_700_000_000_000 };
    let new = token_address(AssetId(2));
    let approve = || input("approve(address,uint256)", &[of(person(1)), U256::from(500)]);
    let applied = chain.run(vec![vec![call(0, 0, new, approve())]]);
    assert_eq!(statuses(&applied), [Reverted]);
    let listing = AssetListing {
        symbol: "GBP".into(),
        decimals: 2,
        control: AssetControl::Open,
        least_units: 4_096,
        supply_max: 1_000,
        document: Digest::default(),
        fees: 10,
    };
    let holder = validator(9);
    let native = |sequence, operation| {
        Body { chain: CHAIN, account: holder.public().address(), sequence, until: 50_000, operation }
            .sign(&NETWORK, &holder)
    };
    // In the block of its listing it still reverts.
    let block =
        chain.block(vec![native(1, Operation::ListAsset(Box::new(listing)))], vec![vec![call(0, 1, new, approve())]]);
    let applied = chain.apply(&block);
    let listed = vec![Outcome::Listed(AssetId(2))];
    assert_eq!((&applied.outcomes, statuses(&applied)), (&listed, vec![Reverted]));
    let issue = Operation::Issue { to: person(0), asset: AssetId(2), amount: 700 };
    let block = chain.block(vec![native(2, issue)], vec![vec![call(0, 2, new, transfer(person(1), 300))]]);
    assert_eq!(statuses(&chain.apply(&block)), [Succeeded]);
    assert_eq!(ask(&chain, new, "balanceOf(address)", &[of(person(1))]), U256::from(300));
    assert_eq!(ask(&chain, new, "allowance(address,address)", &[of(person(0)), of(person(1))]), U256::ZERO);
    assert_eq!(ask(&chain, new, "totalSupply()", &[]), U256::from(700));
    let symbol = ask_at(&chain, chain.ledger.height(), new, input("symbol()", &[])).output;
    assert!(symbol.windows(5).any(|part| part == b"GBP.2"), "{symbol:?}");
    // A closed asset moves as a token, and a contract offers it no more.
    let close = Operation::CloseAsset { asset: EUR, closing: Closing::Announce };
    let refused = chain.apply(&chain.block(vec![native(3, close)], vec![vec![]])).outcomes;
    assert_eq!(refused, [Outcome::Refused(Refusal::NOT_ISSUER)]);
}
