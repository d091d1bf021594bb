//! All accounts, in 256 shards by the first byte of the address.
//!
//! A shard is a subtree of the account trie and the unit of ownership: in a block each shard is changed by one thread,
//! so that no atomics and no locks are needed and the order of effects cannot matter. Shards are shared with a running
//! checkpoint and copied only when they are next written.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use primitives::Address;

use crate::account::Account;

/// Number of shards.
pub const SHARDS: usize = 256;

/// The shard of an address.
pub fn shard_of(address: &Address) -> usize {
    address.0[0] as usize
}

/// The accounts whose addresses begin with one byte.
#[derive(Clone, Default)]
pub struct Shard {
    accounts: Vec<Account>,
    /// Positions in `accounts`, hashed by address.
    index: HashTable<u32>,
    /// Seeded at random, for whoever makes addresses could otherwise make them collide. Nothing depends on the seed.
    hasher: DefaultHashBuilder,
}

impl Shard {
    /// The position of an account.
    pub fn find(&self, address: &Address) -> Option<u32> {
        self.index.find(self.hasher.hash_one(address), |&at| self.accounts[at as usize].address() == *address).copied()
    }

    /// The account at a position.
    pub fn at(&self, position: u32) -> &Account {
        &self.accounts[position as usize]
    }

    pub(crate) fn at_mut(&mut self, position: u32) -> &mut Account {
        &mut self.accounts[position as usize]
    }

    /// The position of an account, which is made if there is none.
    pub(crate) fn find_or_insert(&mut self, address: &Address) -> u32 {
        self.find(address).unwrap_or_else(|| self.insert(Account::new(*address)))
    }

    /// Adds an account that is not there.
    pub(crate) fn insert(&mut self, account: Account) -> u32 {
        if self.accounts.len() == self.accounts.capacity() {
            // Growing by an eighth keeps the slack small at ten million accounts.
            self.accounts.reserve_exact(self.accounts.len() / 8 + 8);
        }
        let position = u32::try_from(self.accounts.len()).expect("fewer than 2^32 accounts in a shard");
        let rehash = |&at: &u32| self.hasher.hash_one(self.accounts[at as usize].address());
        self.index.insert_unique(self.hasher.hash_one(account.address()), position, rehash);
        self.accounts.push(account);
        position
    }

    /// The accounts, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter()
    }

    /// The accounts by address.
    pub fn sorted(&self) -> Vec<&Account> {
        let mut accounts: Vec<&Account> = self.accounts.iter().collect();
        accounts.sort_unstable_by_key(|account| account.address());
        accounts
    }

    fn bytes(&self) -> usize {
        let heap: usize = self.accounts.iter().map(Account::heap_bytes).sum();
        // The table holds a 4-byte position and a control byte for each bucket, and fills at most 7 of 8 buckets.
        let buckets = (self.index.capacity() * 8 / 7).next_power_of_two();
        self.accounts.capacity() * size_of::<Account>() + buckets * 5 + heap
    }
}

/// All accounts.
#[derive(Clone)]
pub struct Accounts {
    shards: Vec<Arc<Shard>>,
}

impl Default for Accounts {
    fn default() -> Accounts {
        Accounts { shards: (0..SHARDS).map(|_| Arc::default()).collect() }
    }
}

impl Accounts {
    /// The account at an address.
    pub fn get(&self, address: &Address) -> Option<&Account> {
        let shard = &self.shards[shard_of(address)];
        shard.find(address).map(|position| shard.at(position))
    }

    /// The shards in order of address.
    pub fn shards(&self) -> &[Arc<Shard>] {
        &self.shards
    }

    pub(crate) fn shards_mut(&mut self) -> &mut [Arc<Shard>] {
        &mut self.shards
    }

    /// The account at an address, which is made if there is none.
    pub(crate) fn get_or_insert(&mut self, address: &Address) -> &mut Account {
        let shard = Arc::make_mut(&mut self.shards[shard_of(address)]);
        let position = shard.find_or_insert(address);
        shard.at_mut(position)
    }

    /// Adds an account that is not there.
    pub(crate) fn insert(&mut self, account: Account) {
        Arc::make_mut(&mut self.shards[shard_of(&account.address())]).insert(account);
    }

    /// Number of accounts.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.accounts.len()).sum()
    }

    /// Whether there is no account.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the accounts and their index take.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.bytes()).sum()
    }
}
