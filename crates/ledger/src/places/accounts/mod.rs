//! All accounts, in 256 shards by the first byte of the address; each shard consists of pages.
//!
//! A shard is a subtree of the account trie and the unit of ownership: in a block one thread changes each shard. So no
//! atomics and no locks are needed and the order of effects cannot matter.
//!
//! A page is the unit of sharing: a checkpoint that is being written and the ledger share the same pages, and the
//! ledger copies a page when it next writes to it. The accounts of a block are spread over all pages. So a block
//! touches about as many pages as accounts: pages are small, and a block after a checkpoint copies little more than
//! what it changes. The index is split by the second byte of the address for the same reason: only new accounts write
//! to it.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use primitives::{Address, ReferenceRule};

mod account;
mod custody;

pub use account::Account;
pub(crate) use custody::{AccountDigests, account_digest};

/// Number of shards.
pub const SHARDS: usize = 256;

/// Accounts in a page. Twice as many would save two bytes per account and copy twice as much after a checkpoint.
const PAGE: usize = 16;

/// Tables that a shard's index is split into.
const TABLES: usize = 16;

/// The shard of an address.
pub fn shard_of(address: &Address) -> usize {
    address.0[0] as usize
}

fn table_of(address: &Address) -> usize {
    address.0[1] as usize % TABLES
}

/// Adjacent accounts; after the shard's last account there are empty ones.
type Page = [Account; PAGE];

/// The accounts whose addresses begin with one byte.
#[derive(Clone, Default)]
pub struct Shard {
    pages: Vec<Arc<Page>>,
    len: usize,
    /// Positions of accounts, hashed by address.
    index: [Arc<HashTable<u32>>; TABLES],
    /// Seeded at random, because an attacker who chooses addresses could otherwise make them collide. Nothing depends
    /// on the seed.
    hasher: DefaultHashBuilder,
    /// The accounts that need references: so a payment looks up no receiver, and few chains have one in each shard.
    referenced: Arc<BTreeSet<Address>>,
}

impl Shard {
    /// The position of an account.
    pub fn find(&self, address: &Address) -> Option<u32> {
        let is_it = |at: &u32| self.at(*at).address() == *address;
        self.index[table_of(address)].find(self.hasher.hash_one(address), is_it).copied()
    }

    /// The account at a position.
    pub fn at(&self, position: u32) -> &Account {
        let position = position as usize;
        &self.pages[position / PAGE][position % PAGE]
    }

    pub(crate) fn at_mut(&mut self, position: u32) -> &mut Account {
        let position = position as usize;
        &mut Arc::make_mut(&mut self.pages[position / PAGE])[position % PAGE]
    }

    /// The position of an account, which is created if it does not exist.
    pub(crate) fn find_or_insert(&mut self, address: &Address) -> u32 {
        self.find(address).unwrap_or_else(|| self.insert(Account::new(*address)))
    }

    /// Adds an account that does not exist yet.
    pub(crate) fn insert(&mut self, account: Account) -> u32 {
        if self.len.is_multiple_of(PAGE) {
            self.pages.push(Arc::new(std::array::from_fn(|_| Account::new(Address::default()))));
        }
        let position = u32::try_from(self.len).expect("fewer than 2^32 accounts in a shard");
        let address = account.address();
        if account.needs_reference() {
            Arc::make_mut(&mut self.referenced).insert(address);
        }
        *self.at_mut(position) = account;
        self.len += 1;
        let (pages, hasher) = (&self.pages, &self.hasher);
        let rehash = |&at: &u32| hasher.hash_one(pages[at as usize / PAGE][at as usize % PAGE].address());
        let table = Arc::make_mut(&mut self.index[table_of(&address)]);
        table.insert_unique(hasher.hash_one(address), position, rehash);
        position
    }

    /// Whether payments to an account need a reference.
    pub(crate) fn needs_reference(&self, address: &Address) -> bool {
        !self.referenced.is_empty() && self.referenced.contains(address)
    }

    /// Says whether payments to the account at a position need a reference.
    pub(crate) fn receive(&mut self, position: u32, references: ReferenceRule) {
        let account = self.at_mut(position);
        account.receive(references);
        let address = account.address();
        let referenced = Arc::make_mut(&mut self.referenced);
        match references {
            ReferenceRule::Required => referenced.insert(address),
            ReferenceRule::Optional => referenced.remove(&address),
        };
    }

    /// Number of accounts.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no account.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The accounts, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.pages.iter().flat_map(|page| page.iter()).take(self.len)
    }

    /// The accounts by address.
    pub fn sorted(&self) -> Vec<&Account> {
        let mut accounts: Vec<&Account> = self.iter().collect();
        accounts.sort_unstable_by_key(|account| account.address());
        accounts
    }

    fn bytes(&self) -> usize {
        let heap: usize = self.iter().map(Account::heap_bytes).sum();
        // A table holds a 4-byte position and a control byte for each bucket, and fills at most 7 of 8 buckets.
        let buckets = |table: &HashTable<u32>| (table.capacity() * 8 / 7).next_power_of_two();
        let index: usize = self.index.iter().map(|table| buckets(table) * 5).sum();
        // A page has two counters before it, and its allocation has an overhead of about a word.
        let referenced = self.referenced.len() * size_of::<Address>();
        let pages = self.pages.len() * (size_of::<Page>() + 24) + self.pages.capacity() * size_of::<Arc<Page>>();
        pages + index + heap + referenced
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

    /// Whether payments to an account need a reference.
    pub(crate) fn needs_reference(&self, address: &Address) -> bool {
        self.shards[shard_of(address)].needs_reference(address)
    }

    /// Whether payments to some account do.
    pub(crate) fn need_references(&self) -> bool {
        self.shards.iter().any(|shard| !shard.referenced.is_empty())
    }

    /// The shards in order of address.
    pub fn shards(&self) -> &[Arc<Shard>] {
        &self.shards
    }

    pub(crate) fn shards_mut(&mut self) -> &mut [Arc<Shard>] {
        &mut self.shards
    }

    /// The account at an address, which is created if it does not exist.
    pub(crate) fn get_or_insert(&mut self, address: &Address) -> &mut Account {
        let shard = Arc::make_mut(&mut self.shards[shard_of(address)]);
        let position = shard.find_or_insert(address);
        shard.at_mut(position)
    }

    /// The account at an address, if it exists.
    pub(crate) fn get_mut(&mut self, address: &Address) -> Option<&mut Account> {
        let shard = Arc::make_mut(&mut self.shards[shard_of(address)]);
        shard.find(address).map(|position| shard.at_mut(position))
    }

    /// Adds an account that does not exist yet.
    pub(crate) fn insert(&mut self, account: Account) {
        Arc::make_mut(&mut self.shards[shard_of(&account.address())]).insert(account);
    }

    /// Number of accounts.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// Whether there is no account.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the accounts and their index use.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::AssetId;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn address(number: u16) -> Address {
        let mut address = Address([7; 20]);
        address.0[1..3].copy_from_slice(&number.to_le_bytes());
        address
    }

    proptest! {
        /// Compares with a map; a clone keeps the state of the moment when it was taken.
        #[test]
        fn clones_stand_still(steps in prop::collection::vec((0..600u16, 1..50u64, prop::bool::weighted(0.02)),
            1..900)) {
            let (mut accounts, mut plain) = (Accounts::default(), BTreeMap::new());
            let mut clones = Vec::new();
            for (number, units, is_cloned) in steps {
                accounts.get_or_insert(&address(number)).credit(AssetId(1), units);
                *plain.entry(address(number)).or_insert(0) += units;
                if is_cloned {
                    clones.push((accounts.clone(), plain.clone()));
                }
            }
            clones.push((accounts, plain));
            for (accounts, plain) in clones {
                prop_assert_eq!(accounts.len(), plain.len());
                let sorted = accounts.shards()[7].sorted();
                let held: Vec<_> = sorted.iter().map(|a| (a.address(), a.balance(AssetId(1)))).collect();
                prop_assert_eq!(held, plain.iter().map(|(address, units)| (*address, *units)).collect::<Vec<_>>());
                for number in 0..600 {
                    let found = accounts.get(&address(number)).map(|account| account.balance(AssetId(1)));
                    prop_assert_eq!(found, plain.get(&address(number)).copied());
                }
            }
        }
    }
}
