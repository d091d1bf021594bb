//! The contract phase on a chain: the result of each kind of transaction, and what must always hold.

use crate::evm::asked::*;
use crate::evm::*;
use ledger::contracts::ethereum::U256;
use ledger::contracts::{
    EthereumFault, EthereumRequest, EthereumRules, EvmStatus, Skip, WETH9, check_in_section, contract_address,
    recover_senders,
};
use ledger::{EvmRecord, Genesis, GenesisError, Ledger, Limits, ReceiptsTrie, RootPart, Signatures};
use primitives::{Address, AssetId, Body, Digest, Operation, SubBlock, Superblock, Transaction};

fn statuses(applied: &ledger::Applied) -> Vec<EvmStatus> {
    applied.contracts.receipts.iter().map(|receipt| receipt.status).collect()
}

#[test]
fn wei_move_and_the_fee_is_burnt_and_tipped() {
    let mut chain = Chain::new();
    let (from, to) = (key(0).address(), Address([77; 20]));
    let issued = chain.ledger.assets()[0].issued;
    let before = chain.wei(&from);
    let applied = chain.run(vec![vec![], vec![send(0, 0, to, 3 * ETHER + 5)]]);
    let base_fee = u128::from(applied.contracts.base_fee);
    assert_eq!((statuses(&applied), base_fee), (vec![EvmStatus::Succeeded], GWEI));
    assert_eq!(chain.wei(&to), 3 * ETHER + 5);
    assert_eq!(chain.ledger.accounts().get(&to).expect("it was paid").balance(AssetId(0)), 3_000_000);
    assert_eq!(chain.wei(&from), before - 3 * ETHER - 5 - 21_000 * (base_fee + GWEI));
    let proposer = validator(1).public().address();
    assert_eq!(chain.wei(&proposer), 21_000 * GWEI, "the proposer of the sub-block has the tip");
    assert_eq!(applied.contracts.burnt, 21_000 * base_fee);
    assert_eq!(chain.ledger.assets()[0].issued, issued - 21, "21 units are burnt");
    assert_eq!(chain.nonce(&from), 1);
    for changed in [from, to, proposer] {
        assert!(applied.modified.contains(&changed), "{changed} has changed");
    }
}

#[test]
fn contracts_are_created_called_and_fail() {
    let mut chain = Chain::new();
    let creator = key(0).address();
    let codes = [COUNTER, REVERTS, LOOPS, LEAVES];
    let created = chain.run(vec![(0..).zip(codes).map(|(nonce, code)| create(0, nonce, code)).collect()]);
    assert_eq!(statuses(&created), [EvmStatus::Succeeded; 4]);
    let [counter, reverts, loops, leaves] = [0, 1, 2, 3].map(|nonce| contract_address(&creator, nonce));
    assert_eq!(created.contracts.receipts[0].contract, Some(counter));
    let record = chain.ledger.accounts().get(&counter).expect("it exists").evm();
    assert!(record.is_contract && record.nonce == 1 && chain.ledger.contracts().code(&record.code) == Some(COUNTER));
    let lanes = vec![
        vec![call(1, 0, counter, vec![]), call(1, 1, reverts, vec![]), call(1, 2, loops, vec![])],
        vec![call(2, 0, counter, vec![]), send(2, 1, leaves, 5), call(2, 2, leaves, vec![])],
    ];
    let applied = chain.run(lanes);
    let [good, reverted, halted] = [EvmStatus::Succeeded, EvmStatus::Reverted, EvmStatus::Halted];
    // The gas of 21,000 does not suffice to run code.
    assert_eq!(statuses(&applied), [good, reverted, halted, good, halted, good]);
    assert_eq!(applied.contracts.receipts[2].gas_used, 200_000, "an endless loop pays all gas");
    assert_eq!((chain.slot(&counter, 0), chain.slot(&reverts, 0)), (2, 0));
    let sums: Vec<u8> = applied.contracts.receipts.iter().flat_map(|one| &one.logs).map(|log| log.data[31]).collect();
    assert_eq!(sums, [1, 2]);
    assert!(chain.ledger.accounts().get(&leaves).expect("the contract stays").evm().code != Digest::default());
    chain.restored();
}

/// The same transaction in all slots, several with one nonce, and nonces in the wrong order: each is charged once.
#[test]
fn each_arrangement_charges_once() {
    let to = Address([77; 20]);
    let skipped = |applied: &ledger::Applied| applied.contracts.skipped.iter().map(|(_, why)| *why).collect::<Vec<_>>();
    let mut chain = Chain::new();
    let copies = vec![vec![send(0, 0, to, 7)]; 4];
    let applied = chain.run(copies);
    assert_eq!((chain.wei(&to), chain.nonce(&key(0).address())), (7, 1));
    assert_eq!(skipped(&applied), [Skip::Duplicate; 3]);
    let mut chain = Chain::new();
    let applied = chain.run((1..=4).map(|value| vec![send(0, 0, to, value)]).collect());
    assert_eq!(skipped(&applied), [Skip::NonceTooLow; 3]);
    let first = applied.contracts.receipts[0].position;
    assert_eq!((first, chain.wei(&to)), (Some(1), 2), "at height 1 the second slot is first");
    let mut chain = Chain::new();
    let reversed: Vec<_> = (0..8).rev().map(|nonce| send(0, nonce, to, 1 << nonce)).collect();
    let applied = chain.run(reversed.chunks(3).map(<[_]>::to_vec).collect());
    assert_eq!((chain.wei(&to), chain.nonce(&key(0).address()), skipped(&applied).len()), (255, 8, 0));
    let applied = chain.run(vec![vec![send(0, 9, to, 1)], vec![send(1, 0, to, 1)]]);
    assert_eq!(applied.contracts.skipped, [(0, Skip::NonceTooHigh)], "a nonce gap is skipped");
    assert_eq!(chain.wei(&to), 256);
}

#[test]
fn what_is_bad_in_its_place_is_skipped_and_costs_nothing() {
    let mut chain = Chain::new();
    let (poor, to) = (key(50), Address([77; 20]));
    let mut forged = send(1, 0, to, 1);
    let at = forged.len() - 1;
    forged[at] ^= 1;
    let cheap = key(2).sign(&EthereumRequest { max_fee: 5, max_tip: 0, ..request(0, Some(to)) });
    let dear = key(3).sign(&EthereumRequest { value: 1 << 100, ..request(0, Some(to)) });
    let native_before = chain.wei(&key(2).address());
    let block = chain.block(Vec::new(), vec![vec![poor.sign(&request(0, Some(to))), cheap, dear, vec![1, 2, 3]]]);
    let applied = chain.apply(&block);
    let why: Vec<Skip> = applied.contracts.skipped.iter().map(|(_, why)| *why).collect();
    assert_eq!(why, [Skip::Funds, Skip::Price, Skip::Funds, Skip::Malformed]);
    assert!(applied.contracts.receipts.is_empty() && applied.modified.is_empty());
    assert_eq!(chain.wei(&key(2).address()), native_before);
    // A changed signature may recover to any address, but not to the sender's.
    assert_ne!(recover_senders(&[forged])[0], Some(key(1).address()));
    // A malformed signature: the block records it, and no account pays.
    let mut block = chain.block(Vec::new(), vec![vec![send(1, 0, to, 1)]]);
    block.sub_blocks[0].senders = vec![None];
    assert_eq!(chain.apply(&block).contracts.skipped, [(0, Skip::BadSignature)]);
}

const RULES: EthereumRules = EthereumRules { chain: CHAIN, spec: ledger::NETWORK_SPEC };

/// Quota plus one gas, and bytes that are no transaction: checked without state.
#[test]
fn the_quota_and_lanes_need_no_state() {
    let to = Address([77; 20]);
    let of = |gas_limit| key(0).sign(&EthereumRequest { gas_limit, ..request(0, Some(to)) });
    let judge = |bytes: &[u8], mut left: u64| check_in_section(bytes, RULES, &mut left).map(|_| left);
    assert_eq!(judge(&of(100_000), 100_000), Ok(0));
    assert_eq!(judge(&of(100_001), 100_000), Err(EthereumFault::Quota { gas: 100_001, left: 100_000 }));
    assert!(matches!(judge(&of(20_999), 1 << 40), Err(EthereumFault::IntrinsicGas { limit: 20_999, needed: 21_000 })));
    assert_eq!(judge(&of((1 << 24) + 1), 1 << 40), Err(EthereumFault::GasCap((1 << 24) + 1)));
    assert_eq!(judge(&[], 1 << 40), Err(EthereumFault::Undecodable));
    assert_eq!(judge(&[&of(30_000)[..], &[0]].concat(), 1 << 40), Err(EthereumFault::Undecodable));
    for at in 0..of(30_000).len() {
        let mut cut = of(30_000);
        cut.truncate(at);
        assert_eq!(judge(&cut, 1 << 40), Err(EthereumFault::Undecodable), "{at} bytes");
    }
    let other = key(0).sign(&EthereumRequest { chain: 8, ..request(0, Some(to)) });
    assert_eq!(judge(&other, 1 << 40), Err(EthereumFault::Chain { chain: CHAIN, got: 8 }));
    let tip = key(0).sign(&EthereumRequest { max_tip: 101 * GWEI, ..request(0, Some(to)) });
    assert!(matches!(judge(&tip, 1 << 40), Err(EthereumFault::Inconsistent(_))));
    let last = key(0).sign(&EthereumRequest { nonce: u64::MAX, ..request(0, Some(to)) });
    assert!(matches!(judge(&last, 1 << 40), Err(EthereumFault::Inconsistent(_))));
    let long = key(0).sign(&EthereumRequest { data: vec![0; 49_153], gas_limit: 1 << 24, ..request(0, None) });
    assert_eq!(judge(&long, 1 << 40), Err(EthereumFault::InitCode { got: 49_153, most: 49_152 }));
    // In a block, a transaction beyond the quota is skipped, and a later one that fits is not.
    let mut chain = Chain::new();
    let big = |nonce| key(0).sign(&EthereumRequest { gas_limit: 15_000_000, ..request(nonce, Some(to)) });
    let applied = chain.run(vec![vec![big(0), big(1), send(1, 0, to, 1)], vec![big(2)]]);
    assert_eq!(applied.contracts.skipped, [(2, Skip::OverQuota)]);
    assert_eq!(applied.contracts.receipts.len(), 3);
}

#[test]
fn a_genesis_whose_gas_does_not_fit_is_refused() {
    let refused = |limits: Limits| Ledger::new(&Genesis { limits, ..genesis() }).err().expect("refused").to_string();
    let message = refused(Limits { block_gas: 119_999_999, ..limits() });
    assert!(message.contains("limits.block_gas is 119999999, but sub_block_gas of a committee needs 120000000"));
    let message = refused(Limits { sub_block_gas: 16_777_215, ..limits() });
    assert!(message.contains("limits.sub_block_gas is 16777215, but one transaction needs 16777216"), "{message}");
    let without = Limits { block_gas: 0, sub_block_gas: 0, least_base_fee: 0, ..limits() };
    let ledger = Ledger::new(&Genesis { limits: without, ..genesis() }).expect("a chain without contracts");
    assert!(ledger.contracts().head().is_none() && matches!(GenesisError::NoAssets, GenesisError::NoAssets));
}

/// One account, both kinds: an Ethereum key spends what was paid natively, and the other way round.
#[test]
fn native_payments_and_ethereum_share_balances() {
    let mut chain = Chain::new();
    let (native, ethereum) = (validator(9), key(60));
    let me = native.public().address();
    let pay = |sequence, to, amount| {
        let operation = Operation::Pay { to, asset: AssetId(0), amount };
        Body { chain: CHAIN, account: me, sequence, until: 50_000, operation }.sign(&NETWORK, &native)
    };
    // The payment comes before the contracts of its block.
    let lanes = vec![vec![ethereum.sign(&EthereumRequest { value: ETHER, ..request(0, Some(me)) })]];
    let block = chain.block(vec![pay(1, ethereum.address(), 2_000_000)], lanes);
    let applied = chain.apply(&block);
    assert_eq!(statuses(&applied), [EvmStatus::Succeeded]);
    assert_eq!(chain.wei(&me), 1_000 * ETHER - 2 * ETHER + ETHER);
    let all = chain.ledger.accounts().get(&me).expect("it exists").balance(AssetId(0));
    let spent = chain.block(vec![pay(2, Address([5; 20]), all)], vec![vec![]]);
    chain.apply(&spent);
    assert_eq!(chain.wei(&me), 0);
}

/// A contract signs nothing, and no contract is created over an account that has acted.
#[test]
fn no_key_moves_what_a_contract_holds() {
    let mut chain = Chain::new();
    let applied = chain.run(vec![vec![create(0, 0, FORWARDS)]]);
    let contract = applied.contracts.receipts[0].contract.expect("created");
    let pay = |account, key: &primitives::SecretKey| {
        let operation = Operation::Pay { to: Address([5; 20]), asset: AssetId(0), amount: 1 };
        Body { chain: CHAIN, account, sequence: 1, until: 50_000, operation }.sign(&NETWORK, key)
    };
    let block = chain.block(vec![pay(contract, &validator(9))], vec![vec![]]);
    let applied = chain.apply(&block);
    assert!(applied.outcomes[0].refusal().is_some());
    let code = [&[0x73][..], &contract.0, &[0x31, 0x5f, 0x55]].concat();
    let stores_balance = key(1).sign(&EthereumRequest { data: code, ..request(0, None) });
    let forward = EthereumRequest { value: 9, data: word(&Address([77; 20])), ..request(0, Some(contract)) };
    chain.run(vec![vec![key(2).sign(&forward), stores_balance]]);
    assert_eq!((chain.wei(&contract), chain.wei(&Address([77; 20]))), (0, 9));
}

#[test]
fn proofs_hold_and_others_do_not() {
    let mut chain = Chain::new();
    let counter = contract_address(&key(0).address(), 0);
    chain.run(vec![vec![create(0, 0, COUNTER)]]);
    let applied = chain.run(vec![vec![call(0, 1, counter, vec![])]]);
    let slot = |number: u8| std::array::from_fn(|at| if at == 31 { number } else { 0 });
    let proof = chain.roots.prove_slot(&chain.ledger, &counter, &slot(0)).expect("contracts");
    let value = proof.verify(&chain.root, &counter, &slot(0)).expect("it holds");
    assert_eq!(value.map(|value| value[31]), Some(1));
    assert!(proof.verify(&chain.root, &counter, &slot(1)).is_err());
    assert!(proof.verify(&Digest([1; 32]), &counter, &slot(0)).is_err());
    let mut changed = proof.clone();
    changed.value = Some([9; 32]);
    assert!(changed.verify(&chain.root, &counter, &slot(0)).is_err());
    let absent = chain.roots.prove_slot(&chain.ledger, &counter, &slot(1)).expect("contracts");
    assert_eq!(absent.verify(&chain.root, &counter, &slot(1)), Ok(None));
    let account = chain.roots.prove_account(&chain.ledger, &counter);
    let state = account.verify(&chain.root, &counter).expect("it holds").expect("it exists");
    assert!(state.evm.expect("a contract").is_contract);
    let mut without = account.clone();
    without.account.as_mut().expect("it exists").evm = Some(EvmRecord { nonce: 2, ..state.evm.expect("a contract") });
    assert!(without.verify(&chain.root, &counter).is_err(), "the root covers the nonce");
    let receipts = receipts(&applied);
    let mut trie = ReceiptsTrie::new(&receipts);
    let (root, id) = (trie.root(), receipts.contracts.receipts[0].id);
    let proof = trie.prove_ethereum(&id, &receipts);
    assert_eq!(proof.verify(&root, &id).expect("it holds").expect("it was executed").logs[0].data[31], 1);
    let mut changed = proof.clone();
    changed.receipt.as_mut().expect("there").logs[0].data[31] = 2;
    assert!(changed.verify(&root, &id).is_err(), "the root covers each log");
    let none = trie.prove_ethereum(&Digest([3; 32]), &receipts);
    assert_eq!(none.verify(&root, &Digest([3; 32])), Ok(None));
    let mut more_burnt = receipts.clone();
    more_burnt.contracts.burnt += 1;
    assert_ne!(ReceiptsTrie::new(&more_burnt).root(), root);
    let bytes = borsh::to_vec(&receipts).expect("encodes");
    assert_eq!(borsh::from_slice::<ledger::BlockReceipts>(&bytes).expect("its own bytes"), receipts);
}

/// BLOCKHASH, NUMBER, COINBASE, BASEFEE and SELFBALANCE as contracts see them.
#[test]
fn contracts_see_the_chain() {
    let mut chain = Chain::new();
    let genesis_digest = chain.ledger.last_block();
    // Stores BLOCKHASH(NUMBER - 1), BLOCKHASH(NUMBER), COINBASE, BASEFEE, TIMESTAMP in slots 0 to 4.
    let code: &[u8] = &[
        0x60, 1, 0x43, 0x03, 0x40, 0x5f, 0x55, 0x43, 0x40, 0x60, 1, 0x55, 0x41, 0x60, 2, 0x55, 0x48, 0x60, 3, 0x55,
        0x42, 0x60, 4, 0x55,
    ];
    let see = |nonce| key(0).sign(&EthereumRequest { data: code.to_vec(), ..request(nonce, None) });
    let mut parent = genesis_digest;
    for nonce in 0..3 {
        let time_ms = chain.time_ms;
        let applied = chain.run(vec![vec![see(nonce)]]);
        let contract = applied.contracts.receipts[0].contract.expect("created");
        let slot = |number: u8| {
            let key = std::array::from_fn(|at| if at == 31 { number } else { 0 });
            chain.ledger.contracts().slot(&contract, &key)
        };
        assert_eq!(slot(0), Some(parent.0), "the digest of the block before");
        assert_eq!(slot(1), None, "not that of its own block");
        assert_eq!(slot(2).expect("there is a proposer")[12..], validator(0).public().address().0);
        assert_eq!(chain.slot(&contract, 3), applied.contracts.base_fee);
        assert_eq!(chain.slot(&contract, 4), time_ms / 1_000);
        parent = applied.block;
    }
    for _ in 0..260 {
        chain.run(vec![vec![]]);
    }
    assert_eq!(chain.ledger.contracts().head().expect("contracts").hashes.len(), 256);
}

#[test]
fn the_base_fee_moves_by_a_sixty_fourth_and_not_below_the_floor() {
    let mut chain = Chain::new();
    let loops = contract_address(&key(0).address(), 0);
    chain.run(vec![vec![create(0, 0, LOOPS)]]);
    let mut fees = Vec::new();
    for nonce in 0..4 {
        let burn = |from| key(from).sign(&EthereumRequest { gas_limit: 16_000_000, ..request(nonce, Some(loops)) });
        fees.push(chain.run((1..6).map(|from| vec![burn(from)]).collect()).contracts.base_fee);
    }
    assert!(fees.windows(2).all(|two| two[1] > two[0] && two[1] - two[0] <= two[0] / 64 + 1), "{fees:?}");
    for _ in 0..10 {
        chain.run(vec![vec![]]);
    }
    assert_eq!(chain.ledger.contracts().head().expect("contracts").base_fee, GWEI as u64);
}

/// Whatever programs create, destroy and pay to themselves or to proposers, no wei are lost after any block: `apply`
/// of the test chain sums them.
#[test]
fn wei_sums_hold_over_random_programs() {
    let mut met = std::collections::BTreeSet::new();
    for seed in 0..6 {
        let mut chain = Chain::new();
        for block in history(seed, 5, 40) {
            let applied = chain.apply(&block);
            met.extend(statuses(&applied).iter().map(|status| *status as u8));
        }
    }
    assert_eq!(met.len(), 3, "programs succeed, revert and halt");
}

/// One, two and seven threads get the same gas, logs, failures and roots.
#[test]
fn threads_decide_nothing() {
    let blocks = history(40, 4, 60);
    let outcomes = [1, 2, 7].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut chain = Chain::new();
            blocks.iter().map(|block| (chain.apply(block).contracts, chain.root)).collect::<Vec<_>>()
        })
    });
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0], outcomes[2]);
}

/// A ledger that was restored in the middle of a history, and one that replays blocks from their bytes, continue like
/// the first one.
#[test]
fn snapshots_and_replays_go_on_alike() {
    let blocks = history(41, 6, 40);
    let (mut first, mut restored) = (Chain::new(), None);
    let mut replayed = Ledger::new(&genesis()).expect("sound");
    for block in &blocks {
        let applied = first.apply(block);
        let bytes = block.to_bytes();
        let read: Superblock = borsh::from_slice(&bytes).expect("its own bytes");
        assert_eq!(read, *block);
        let again = replayed.apply(&read, Signatures::Valid, &mut |_| {}).expect("applies");
        assert_eq!(again.contracts, applied.contracts);
        match &mut restored {
            None if block.height == 3 => restored = Some(first.restored()),
            None => {}
            Some(restored) => assert_eq!(restored.apply(block).contracts, applied.contracts),
        }
        assert!(restored.as_ref().is_none_or(|restored| restored.root == first.root));
    }
}

/// A block without Ethereum transactions changes only digests of blocks in the contracts' part of the state.
#[test]
fn an_idle_block_writes_no_account() {
    let mut chain = Chain::new();
    let parts = chain.roots.parts();
    let applied = chain.run(vec![vec![]]);
    assert!(applied.modified.is_empty() && applied.changes.slots().is_empty());
    let after = chain.roots.parts();
    for tag in [RootPart::ASSETS, RootPart::BALANCES] {
        assert_eq!(parts.get(tag), after.get(tag));
    }
    assert_ne!(parts.get(RootPart::CONTRACTS), after.get(RootPart::CONTRACTS));
    let plain = Transaction::clone(
        &Body {
            chain: CHAIN,
            account: validator(9).public().address(),
            sequence: 1,
            until: 50_000,
            operation: Operation::Pay { to: Address([5; 20]), asset: AssetId(1), amount: 1 },
        }
        .sign(&NETWORK, &validator(9)),
    );
    let sub = SubBlock { native: vec![plain], ..SubBlock::default() };
    let (height, parent) = (2, chain.ledger.last_block());
    let block = Superblock { height, parent, sub_blocks: vec![sub], ..Superblock::default() };
    assert_eq!(chain.apply(&block).modified.len(), 2);
}

/// A signature that recovers to no address is found only when the block is executed: its proposer earns nothing.
/// Transactions that may be honest (a copy, a used nonce, a gap, lacking funds) cost nothing.
#[test]
fn a_false_signature_costs_the_proposer_its_reward() {
    let mut genesis = genesis();
    let membership = genesis.membership.as_mut().expect("validators");
    (membership.terms.reward, membership.reward_pool) = (5, 1_000);
    let mut ledger = Ledger::new(&genesis).expect("sound");
    let to = Address([77; 20]);
    let lanes = vec![
        vec![send(0, 0, to, 1)],
        vec![send(0, 0, to, 1), send(1, 9, to, 1), key(50).sign(&request(0, Some(to)))],
        vec![send(2, 0, to, 1)],
        Vec::new(),
    ];
    let sub = |(proposer, ethereum): (u32, Vec<Vec<u8>>)| {
        let senders = recover_senders(&ethereum);
        SubBlock { proposer, time_ms: 1_700_000_000_000, ethereum, senders, ..SubBlock::default() }
    };
    let mut sub_blocks: Vec<SubBlock> = (0..).zip(lanes).map(sub).collect();
    sub_blocks[2].senders = vec![None];
    let block = Superblock { height: 1, parent: ledger.last_block(), sub_blocks, ..Superblock::default() };
    let units = |ledger: &Ledger, index: u8| {
        let account = validator(index).public().address();
        ledger.accounts().get(&account).map_or(0, |account| account.balance(AssetId(0)))
    };
    let before: Vec<u64> = (0..4).map(|index| units(&ledger, index)).collect();
    let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    ledger.audit().expect("sound");
    assert_eq!(statuses(&applied).len(), 1);
    assert_eq!(applied.contracts.skipped.iter().filter(|(_, why)| *why == Skip::BadSignature).count(), 1);
    let earned: Vec<u64> = (0..4).map(|index| units(&ledger, index) - before[usize::from(index)]).collect();
    assert_eq!(earned, [5, 26, 0, 5], "at height 1 the second slot is first, and has the tip of 21,000 gas");
}

/// The wrapped token of the gas asset exists from the genesis on, and each of its units is a wei that it holds.
#[test]
fn the_genesis_wraps_what_pays_for_gas() {
    let mut chain = Chain::new();
    let (alice, bob) = (key(0).address(), key(1).address());
    let text = |function: &str| ask_at(&chain, 0, WETH9, input(function, &[])).output;
    assert_eq!((&text("symbol()")[64..68], &text("name()")[64..75]), (&b"WUSD"[..], &b"Wrapped USD"[..]));
    let deposit = key(0).sign(&EthereumRequest { value: 5 * ETHER, ..request(0, Some(WETH9)) });
    let amount = |units: u128| U256::from(units);
    let withdraw = |wei| input("withdraw(uint256)", &[amount(wei)]);
    let applied = chain.run(vec![vec![
        deposit,
        call(0, 1, WETH9, input("transfer(address,uint256)", &[of(bob), amount(2 * ETHER)])),
        call(1, 0, WETH9, withdraw(ETHER)),
        call(1, 1, WETH9, withdraw(2 * ETHER)),
        call(2, 0, WETH9, input("transferFrom(address,address,uint256)", &[of(alice), of(bob), amount(1)])),
    ]]);
    use EvmStatus::{Reverted, Succeeded};
    assert_eq!(statuses(&applied), [Succeeded, Succeeded, Succeeded, Reverted, Reverted]);
    let chain = chain.restored();
    assert_eq!(chain.wei(&WETH9), 4 * ETHER);
    assert_eq!(ask(&chain, WETH9, "totalSupply()", &[]), amount(4 * ETHER));
    assert_eq!(ask(&chain, WETH9, "balanceOf(address)", &[of(alice)]), amount(3 * ETHER));
    assert_eq!(ask(&chain, WETH9, "balanceOf(address)", &[of(bob)]), amount(ETHER));
    let without = Ledger::new(&Genesis { limits: Limits::default(), ..genesis() }).expect("sound");
    assert!(without.accounts().get(&WETH9).is_none(), "a chain without contracts has none");
}
