//! A small chain with one payer, for tests that need real blocks.

use ledger::{Genesis, Ledger, Listing};
use primitives::{
    Address, AssetId, Body, Fraction, Height, Operation, SecretKey, Sequence, SubBlock, Superblock, Transaction,
};
use replica::{Foundation, PoolEntry, Replay};

pub const CHAIN: u64 = 7;

pub fn payer() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

pub fn genesis() -> Genesis {
    let balances = vec![(payer().public().address(), AssetId(0), 1_000_000)];
    let assets = vec![Listing::new("USD", 2, Address([9; 20]))];
    let mu = Fraction::power_of_two(10);
    Genesis { chain: CHAIN, fee: 1, mu, assets, balances, ..Genesis::default() }
}

/// A payment of another amount for each sequence number.
pub fn pay(ledger: &Ledger, sequence: Sequence, until: Height) -> Transaction {
    let operation = Operation::Pay { to: Address([3; 20]), asset: AssetId(0), amount: 10 + sequence };
    Body { chain: CHAIN, account: payer().public().address(), sequence, until, operation }
        .sign(&ledger.network(), &payer())
}

#[allow(dead_code)] // Not every file of tests has a pool.
pub fn entry(ledger: &Ledger, sequence: Sequence, until: Height) -> PoolEntry {
    let transaction = pay(ledger, sequence, until);
    PoolEntry::new(transaction.id(), sequence, transaction)
}

/// The next block of a replay, with these transactions.
#[allow(dead_code)]
pub fn block(replay: &Replay, native: Vec<Transaction>) -> Superblock {
    let Foundation { parent, parent_root, .. } = Foundation::of(&replay.ledger, replay.root);
    let height = replay.ledger.height() + 1;
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    Superblock { height, parent, time_ms: height, parent_root, sub_blocks, ..Superblock::default() }
}
