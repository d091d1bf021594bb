//! Tests of the pool over a ledger with contracts.

use ledger::contracts::{EthereumKey, EthereumRequest, recover_senders};
use ledger::{Genesis, Limits, Listing, Signatures};
use primitives::{AssetId, Fraction, SubBlock, Superblock};

use super::*;

const GWEI: u128 = 1_000_000_000;

fn key(number: u8) -> EthereumKey {
    EthereumKey::from_seed([number; 32]).expect("a key")
}

fn genesis() -> Genesis {
    let limits =
        Limits { block_gas: 1 << 27, sub_block_gas: 1 << 25, least_base_fee: GWEI as u64, ..Limits::default() };
    let assets = vec![Listing::new("USD", 6, Address([1; 20]))];
    // 0.01 of asset 0: enough for a few transfers at a hundred gwei.
    let balances = (1..4).map(|one| (key(one).address(), AssetId(0), 10_000)).collect();
    let mu = Fraction::power_of_two(10);
    Genesis { chain: 7, mu, limits, assets, balances, ..Genesis::default() }
}

fn ledger() -> Ledger {
    Ledger::new(&genesis()).expect("sound")
}

fn pay(from: u8, nonce: u64, max_fee: u128) -> Vec<u8> {
    let (to, gas_limit) = (Some(Address([5; 20])), 21_000);
    let request = EthereumRequest { chain: 7, nonce, to, gas_limit, max_fee, value: 1, ..Default::default() };
    key(from).sign(&request)
}

#[test]
fn nonces_prices_and_funds_are_held_at_the_door() {
    let (ledger, mut pool) = (ledger(), EthereumPool::new(6));
    let fee = 100 * GWEI;
    let first = pool.admit(pay(1, 0, fee), 5, &ledger).expect("enters");
    assert_eq!(first, EthereumTransaction::decode(&pay(1, 0, fee)).expect("sound").hash());
    assert_eq!(pool.admit(pay(1, 0, fee), 5, &ledger), Err(EthereumReject::Waiting));
    let needed = 110 * GWEI;
    let offered = needed - 1;
    assert_eq!(pool.admit(pay(1, 0, offered), 5, &ledger), Err(EthereumReject::Replacement { offered, needed }));
    pool.admit(pay(1, 0, needed), 5, &ledger).expect("a tenth more replaces it");
    assert_eq!(pool.len(), 1);
    let low = EthereumReject::Price { offered: 5, needed: GWEI };
    assert_eq!(pool.admit(pay(2, 0, 5), 5, &ledger), Err(low));
    assert_eq!(pool.admit(pay(2, 65, fee), 5, &ledger), Err(EthereumReject::NonceTooHigh { nonce: 65, next: 0 }));
    assert_eq!(pool.admit(pay(9, 0, fee), 5, &ledger), Err(EthereumReject::Funds), "the account has no funds");
    for nonce in 0..4 {
        pool.admit(pay(2, nonce, fee), 5, &ledger).expect("four are paid for");
    }
    assert_eq!(pool.admit(pay(2, 4, fee), 5, &ledger), Err(EthereumReject::Funds), "0.0021 each, of 0.01");
    pool.admit(pay(3, 0, fee), 5, &ledger).expect("the last place");
    assert_eq!(pool.admit(pay(3, 1, fee), 5, &ledger), Err(EthereumReject::Full));
    assert!(matches!(pool.admit(vec![1, 2], 5, &ledger), Err(EthereumReject::Fault(EthereumFault::Undecodable))));
}

/// A sender that keeps replacing its transaction holds one place, pays a tenth more each time, and is stopped when
/// its funds run out. Only one of all its transactions is proposed, and it is not replaced after that.
#[test]
fn a_storm_of_replacements_holds_one_place_and_ends_with_the_funds() {
    let (ledger, mut pool) = (ledger(), EthereumPool::new(2));
    let (mut fee, mut sent) = (2 * GWEI, Vec::new());
    let end = loop {
        match pool.admit(pay(1, 0, fee), 5, &ledger) {
            Ok(id) => sent.push(id),
            Err(reject) => break reject,
        }
        assert_eq!(pool.len(), 1);
        assert!(matches!(pool.admit(pay(1, 0, fee - 1), 5, &ledger), Err(EthereumReject::Replacement { .. })));
        fee += fee / 10;
    };
    // From two gwei to what 0.01 of asset 0 pays for, in steps of a tenth.
    assert_eq!((end, sent.len()), (EthereumReject::Funds, 58));
    let (last, others) = sent.split_last().expect("some were taken");
    assert!(pool.contains(last) && others.iter().all(|other| !pool.contains(other)));
    pool.admit(pay(2, 0, GWEI), 5, &ledger).expect("the other place is free");
    let proposed = pool.take(1 << 20, 5).transactions;
    assert_eq!(proposed.len(), 2);
    assert_eq!(pool.admit(pay(2, 0, 2 * GWEI), 5, &ledger), Err(EthereumReject::Proposed));
    assert!(pool.take(1 << 20, 5).transactions.is_empty());
}

/// A block of one lane on top of a ledger, applied and settled.
fn run(ledger: &mut Ledger, pool: &mut EthereumPool, ethereum: Vec<Vec<u8>>) {
    let senders = recover_senders(&ethereum);
    let sub_blocks = vec![SubBlock { ethereum, senders, ..SubBlock::default() }];
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
    let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    pool.settle(ledger, &block, &applied.contracts);
}

/// Another validator's block fills the gap below a transaction, or lowers the base fee to its offer: the transaction
/// is proposed without any further submission.
#[test]
fn what_a_block_makes_ready_waits_for_the_next() {
    let (mut ledger, mut pool) = (ledger(), EthereumPool::new(100));
    pool.admit(pay(1, 1, 10 * GWEI), 5, &ledger).expect("enters");
    assert!(pool.take(1 << 20, 5).transactions.is_empty() && pool.waits_since_ms().is_none() && !pool.is_busy());
    run(&mut ledger, &mut pool, vec![pay(1, 0, 10 * GWEI)]);
    assert!(pool.waits_since_ms().is_some() && pool.is_busy());
    assert_eq!(pool.take(1 << 20, 5).transactions, [pay(1, 1, 10 * GWEI)]);
    let mut pool = EthereumPool::new(100);
    pool.admit(pay(2, 0, 2 * GWEI), 5, &ledger).expect("enters");
    pool.base_fee = 3 * GWEI;
    assert!(pool.take(1 << 20, 5).transactions.is_empty() && pool.waits_since_ms().is_none());
    run(&mut ledger, &mut pool, Vec::new());
    assert!(pool.waits_since_ms().is_some());
    assert_eq!(pool.take(1 << 20, 5).transactions, [pay(2, 0, 2 * GWEI)]);
}

#[test]
fn what_is_handed_over_is_proposed_again_only_when_it_is_late() {
    let (mut ledger, mut pool) = (ledger(), EthereumPool::new(100));
    let lane: Vec<Vec<u8>> = (0..2).map(|nonce| pay(1, nonce, 10 * GWEI)).collect();
    for bytes in &lane {
        pool.admit(bytes.clone(), 5, &ledger).expect("enters");
    }
    let taken = pool.take(1 << 20, 5);
    assert_eq!(
        (&taken.transactions, taken.senders),
        (&lane, recover_senders(&lane)),
        "the senders are given with the transactions"
    );
    pool.mark_forwarded(&lane, 10);
    assert!(pool.is_busy() && pool.take(1 << 20, 5).transactions.is_empty());
    assert_eq!(pool.reclaim(10), 0);
    // The first is in a block of the other validator; the second is late.
    run(&mut ledger, &mut pool, lane[..1].to_vec());
    assert_eq!((pool.reclaim(11), pool.reclaim(100)), (1, 0));
    assert_eq!(pool.take(1 << 20, 5).transactions, lane[1..]);
}

#[test]
fn lanes_have_no_gaps_and_what_was_skipped_waits_on() {
    let (mut ledger, mut pool) = (ledger(), EthereumPool::new(100));
    let fee = 10 * GWEI;
    for nonce in [2, 0, 1, 4] {
        pool.admit(pay(1, nonce, fee), 5, &ledger).expect("enters");
    }
    let one = key(1).address();
    assert_eq!((pool.nonce_above(&one, 0), pool.nonce_above(&one, 4)), (3, 5), "nonce 3 is missing");
    assert_eq!((pool.nonce_above(&one, 3), pool.nonce_above(&key(3).address(), 7)), (3, 7));
    let id = EthereumTransaction::decode(&pay(1, 4, fee)).expect("sound").hash();
    assert_eq!(pool.get(&id), Some((pay(1, 4, fee).as_slice(), one)));
    pool.admit(pay(2, 0, fee), 5, &ledger).expect("enters");
    pool.quota = 42_000;
    assert_eq!(
        pool.take(1 << 20, 5).transactions,
        [pay(1, 0, fee), pay(1, 1, fee)],
        "in order of arrival, within the gas limit"
    );
    assert_eq!(pool.waits_since_ms(), Some(5));
    pool.quota = 1 << 30;
    let rest = pool.take(1 << 20, 5).transactions;
    assert_eq!(rest, [pay(1, 2, fee), pay(2, 0, fee)], "nonce 4 needs 3 first");
    assert!(pool.take(1 << 20, 5).transactions.is_empty() && pool.waits_since_ms().is_none(), "proposed once");
    assert_eq!(pool.admit(pay(1, 2, 2 * fee), 5, &ledger), Err(EthereumReject::Proposed));
    pool.restore(&rest, 6);
    assert_eq!(pool.take(LANE_HEAD + rest[0].len() + 4, 5).transactions, [pay(1, 2, fee)]);
    let ethereum = vec![pay(1, 0, fee), pay(1, 1, fee), pay(1, 2, fee)];
    let senders = recover_senders(&ethereum);
    let sub_blocks = vec![SubBlock { ethereum, senders, ..SubBlock::default() }];
    let block = Superblock { height: 1, parent: ledger.last_block(), sub_blocks, ..Superblock::default() };
    let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    pool.settle(&ledger, &block, &applied.contracts);
    assert_eq!(pool.len(), 2, "nonce 4, and the other sender's");
    let (nonce, next) = (1, 3);
    assert_eq!(pool.admit(pay(1, 1, fee), 5, &ledger), Err(EthereumReject::NonceTooLow { nonce, next }));
    pool.admit(pay(1, 3, fee), 5, &ledger).expect("fills the gap");
    assert_eq!(pool.take(1 << 20, 5).transactions.len(), 3);
}

/// A transaction that declares much gas, and pays at most this much above the base fee.
fn declares(from: u8, to: Address, gas_limit: u64, max_tip: u128, data: Vec<u8>) -> Vec<u8> {
    let (to, max_fee) = (Some(to), 10 * GWEI + max_tip);
    key(from).sign(&EthereumRequest { chain: 7, to, gas_limit, max_fee, max_tip, data, ..Default::default() })
}

/// Whoever declares much gas and uses little keeps nobody out: a section is filled by what is expected to be paid for
/// the gas that is declared, whether the recipient has no code, or its last call used little.
#[test]
fn whoever_declares_much_gas_and_uses_little_keeps_nobody_out() {
    const MUCH: u64 = 16_700_000;
    let mut genesis = genesis();
    genesis.balances = (1..200).map(|one| (key(one).address(), AssetId(0), 1_000_000)).collect();
    let mut ledger = Ledger::new(&genesis).expect("sound");
    let mut pool = EthereumPool::new(10_000);
    let nobody = Address([5; 20]);
    let admit = |pool: &mut EthereumPool, ledger: &Ledger, bytes: &[u8]| {
        pool.admit(bytes.to_vec(), 5, ledger).expect("enters");
    };
    (10..40).for_each(|from| admit(&mut pool, &ledger, &declares(from, nobody, MUCH, 2 * GWEI, Vec::new())));
    let (usual, dear) =
        (declares(1, nobody, 21_000, 0, Vec::new()), declares(2, nobody, 100_000, 990 * GWEI, Vec::new()));
    [&usual, &dear].iter().for_each(|one| admit(&mut pool, &ledger, one));
    let taken = pool.take(1 << 20, 7).transactions;
    assert_eq!((&taken[0], &taken[1]), (&dear, &usual), "both before the others");
    assert!(taken.len() < 5, "the others fill what is left");
    // The token of an asset is a contract; what its last call used is known after a block.
    let call = |from, gas| declares(from, ledger::contracts::token_address(AssetId(0)), gas, 2 * GWEI, vec![0; 4]);
    let mut pool = EthereumPool::new(10_000);
    admit(&mut pool, &ledger, &call(100, MUCH));
    let first = pool.take(1 << 20, 7).transactions;
    run(&mut ledger, &mut pool, first);
    [call(101, MUCH), call(102, MUCH), call(3, 60_000)].iter().for_each(|one| admit(&mut pool, &ledger, one));
    assert_eq!(pool.take(1 << 20, 7).transactions[0], call(3, 60_000), "the last comes first");
}

/// Transactions that cannot be proposed take at most half of the pool, and only for a limited time.
#[test]
fn what_stands_above_a_gap_takes_half_of_the_pool_for_a_while() {
    let (ledger, mut pool) = (ledger(), EthereumPool::new(4));
    let fee = 10 * GWEI;
    pool.admit(pay(1, 5, fee), 5, &ledger).expect("enters");
    pool.admit(pay(1, 6, fee), LOOK_MS, &ledger).expect("enters");
    assert_eq!(pool.admit(pay(2, 1, fee), LOOK_MS, &ledger), Err(EthereumReject::Full));
    pool.admit(pay(2, 0, fee), LOOK_MS, &ledger).expect("it can be proposed");
    pool.admit(pay(2, 1, fee), LOOK_MS, &ledger).expect("no gap is below it any more");
    assert_eq!(pool.admit(pay(3, 0, fee), LOOK_MS, &ledger), Err(EthereumReject::Full));
    let late = GAP_MS + 6;
    assert_eq!(pool.take(1 << 20, late).transactions, [pay(2, 0, fee), pay(2, 1, fee)]);
    assert_eq!(pool.len(), 3, "nonce 5 is dropped");
    assert!(pool.take(1 << 20, 10 * late).transactions.is_empty());
    assert_eq!(pool.len(), 2, "what is proposed stays");
    pool.restore(&[pay(2, 1, fee)], 10 * late);
    pool.limit = 6;
    pool.admit(pay(1, 5, fee), 10 * late, &ledger).expect("half is free again");
}

/// Bob's transaction carries Alice's delegation; after it, at most one transaction of hers is pending.
#[test]
fn one_transaction_of_an_account_that_delegates_waits() {
    let (mut ledger, mut pool) = (ledger(), EthereumPool::new(100));
    let (fee, to) = (10 * GWEI, Some(Address([5; 20])));
    let delegation = key(1).delegate(&Address([6; 20]), 7, 0);
    let request = EthereumRequest { chain: 7, to, gas_limit: 100_000, max_fee: fee, ..Default::default() };
    let carried = key(2).sign(&EthereumRequest { delegations: vec![delegation], ..request });
    run(&mut ledger, &mut pool, vec![carried]);
    assert_eq!(ledger.ethereum_nonce(&key(1).address()), 1, "the delegation holds");
    pool.admit(pay(1, 1, fee), 5, &ledger).expect("the first");
    assert_eq!(pool.admit(pay(1, 2, fee), 5, &ledger), Err(EthereumReject::Delegated));
    pool.admit(pay(1, 1, 2 * fee), 5, &ledger).expect("another one in its place");
    run(&mut ledger, &mut pool, vec![pay(1, 1, 2 * fee)]);
    pool.admit(pay(1, 2, fee), 5, &ledger).expect("the next");
}

/// A transaction above a gap that was accepted before its account delegated does not lock the account: its next nonce
/// is accepted, and further ones above it are refused by name.
#[test]
fn a_delegated_account_is_not_locked_by_its_own_gap() {
    let (mut ledger, mut pool) = (ledger(), EthereumPool::new(100));
    let (fee, to) = (10 * GWEI, Some(Address([5; 20])));
    pool.admit(pay(1, 4, fee), 5, &ledger).expect("above a gap");
    let delegation = key(1).delegate(&Address([6; 20]), 7, 0);
    let request = EthereumRequest { chain: 7, to, gas_limit: 100_000, max_fee: fee, ..Default::default() };
    run(&mut ledger, &mut pool, vec![key(2).sign(&EthereumRequest { delegations: vec![delegation], ..request })]);
    let gap = EthereumReject::DelegatedGap { nonce: 3, next: 1 };
    assert_eq!(pool.admit(pay(1, 3, fee), 5, &ledger), Err(gap));
    pool.admit(pay(1, 1, fee), 5, &ledger).expect("the next nonce");
    assert_eq!(pool.admit(pay(1, 2, fee), 5, &ledger), Err(EthereumReject::Delegated));
    assert_eq!(pool.take(1 << 20, 5).transactions, [pay(1, 1, fee)]);
}

/// Funds promised above a gap, where nothing can spend them, do not keep a transaction out that can be proposed.
#[test]
fn a_transaction_above_a_gap_yields_to_one_that_can_be_proposed() {
    let (ledger, mut pool) = (ledger(), EthereumPool::new(100));
    let fee = 150 * GWEI;
    // Each costs 0.00315 of 0.01.
    let [high, higher, highest] = [3, 4, 6].map(|nonce| pool.admit(pay(1, nonce, fee), 5, &ledger).expect("enters"));
    assert_eq!(pool.admit(pay(1, 5, fee), 5, &ledger), Err(EthereumReject::Funds), "it is above the gap, too");
    pool.admit(pay(1, 0, fee), 5, &ledger).expect("it can be proposed");
    assert_eq!((pool.dropped(&highest), pool.dropped(&higher)), (Some(PoolDrop::Yielded), None));
    assert!(pool.contains(&high) && pool.contains(&higher) && !pool.contains(&highest));
    pool.admit(pay(1, 1, fee), 5, &ledger).expect("so can this");
    pool.admit(pay(1, 2, fee), 5, &ledger).expect("and this");
    assert_eq!(pool.admit(pay(1, 3, fee), 5, &ledger), Err(EthereumReject::Funds), "nothing is left that yields");
    assert_eq!(pool.take(1 << 20, 5).transactions.len(), 3);
}

/// Wallets that offer exactly 110 percent, rounded down, replace a transaction.
#[test]
fn a_replacement_at_exactly_a_tenth_more_is_accepted() {
    for fee in [11 * GWEI + 1, 12 * GWEI + 9, 10 * GWEI] {
        let (ledger, mut pool) = (ledger(), EthereumPool::new(6));
        pool.admit(pay(1, 0, fee), 5, &ledger).expect("enters");
        let (offered, needed) = (fee * 110 / 100 - 1, fee * 110 / 100);
        assert_eq!(pool.admit(pay(1, 0, offered), 5, &ledger), Err(EthereumReject::Replacement { offered, needed }));
        pool.admit(pay(1, 0, needed), 5, &ledger).expect("exactly a tenth more");
    }
}

/// If the executor skips a transaction for a reason that stays, the pool drops it and says why.
#[test]
fn what_can_never_be_executed_leaves_the_pool_with_a_reason() {
    let (ledger, mut pool) = (ledger(), EthereumPool::new(6));
    let ids = [0, 1].map(|nonce| pool.admit(pay(1, nonce, 10 * GWEI), 5, &ledger).expect("enters"));
    let ethereum = pool.take(1 << 20, 5).transactions;
    let sub_blocks = vec![SubBlock { ethereum, ..SubBlock::default() }];
    let block = Superblock { height: 1, parent: ledger.last_block(), sub_blocks, ..Superblock::default() };
    // As if the executor had found a contract at the sender's address.
    let skipped = vec![(0, Skip::SenderHasCode), (1, Skip::NonceTooHigh)];
    let dropped = pool.settle(&ledger, &block, &ContractReceipts { skipped, ..ContractReceipts::default() });
    let reason = PoolDrop::Skipped(Skip::SenderHasCode);
    assert_eq!((dropped, pool.dropped(&ids[0])), (vec![(ids[0], reason)], Some(reason)));
    assert!(!pool.contains(&ids[0]) && pool.contains(&ids[1]), "a gap can close");
    assert!(pool.waits_since_ms().is_none() || pool.take(1 << 20, 5).transactions.is_empty(), "nothing is ready");
}
