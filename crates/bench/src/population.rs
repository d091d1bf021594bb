//! Accounts that trade: a genesis that funds them, and their transactions with sequence numbers and signatures.

use std::collections::HashMap;

use kernel::Dice;
use ledger::{Genesis, Ledger, Listing};
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Operation, PublicKey, SecretKey, Signature, SubBlock, Superblock,
    Transaction,
};
use rayon::prelude::*;

/// Maximum number of sequence numbers that an account uses in one block: within its window, whatever the order.
const NUMBERS_PER_BLOCK: u32 = 60;

/// Accounts `0..len`, each of which starts with two of the assets.
#[derive(Clone)]
pub struct Population {
    assets: u32,
    addresses: Vec<Address>,
    /// Empty if the accounts cannot sign: then a key is 32 bytes that nobody checks.
    keys: Vec<SecretKey>,
    next: Vec<u32>,
    /// Numbers used in the block that is being made.
    used: HashMap<u32, u32>,
}

impl Population {
    /// `accounts` accounts over `assets` assets, with real keys if they are to sign.
    pub fn new(accounts: usize, assets: u32, signs: bool) -> Population {
        let keys: Vec<SecretKey> =
            if signs { (0..accounts).into_par_iter().map(secret_key).collect() } else { Vec::new() };
        let address = |i: usize| if signs { keys[i].public().address() } else { number_key(i).address() };
        let addresses = (0..accounts).into_par_iter().map(address).collect();
        Population { assets, addresses, keys, next: vec![1; accounts], used: HashMap::new() }
    }

    /// Number of accounts.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there is no account.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// An account's address.
    pub fn address(&self, account: usize) -> Address {
        self.addresses[account]
    }

    /// The first of an account's two assets; all accounts with the same number modulo the assets have the same.
    pub fn asset(&self, account: usize) -> AssetId {
        AssetId(account as u32 % self.assets)
    }

    /// A genesis in which every account holds 10^12 units, or its share of what can exist, of two assets; ε = 2^-15,
    /// μ = 2^-10, no fee.
    pub fn genesis(&self) -> Genesis {
        let issuer = number_key(usize::MAX).address();
        let assets: Vec<_> = (0..self.assets).map(|i| Listing::new(format!("A{i:02}"), 4, issuer)).collect();
        let second =
            |i: usize| AssetId((i as u32 + 1 + (i as u32 / self.assets) % (self.assets - 1).max(1)) % self.assets);
        let units = 1_000_000_000_000.min(i64::MAX as u64 / (2 * self.len() as u64 / u64::from(self.assets) + 2));
        let mut balances = Vec::with_capacity(2 * self.len());
        for (i, address) in self.addresses.iter().enumerate() {
            balances.push((*address, self.asset(i), units));
            if self.assets > 1 {
                balances.push((*address, second(i), units));
            }
        }
        let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
        Genesis { chain: 1, fee: 0, epsilon, mu, assets, balances, ..Genesis::default() }
    }

    /// An account that may act again in this block; few are drawn often (SPEEDEX §7: by a power law).
    pub fn draw(&mut self, random: &mut Dice) -> usize {
        loop {
            let share = random.unit();
            let account = ((share * share) * self.len() as f64) as usize;
            if self.may_act(account) {
                return account;
            }
        }
    }

    /// An account drawn like [`Population::draw`] that holds `asset`; any account, if the holders have no numbers
    /// left in this block.
    pub fn draw_holder(&mut self, asset: AssetId, random: &mut Dice) -> usize {
        /// Number of draws before holders are tried one by one.
        const DRAWS: usize = 200;
        for _ in 0..DRAWS {
            let account = self.draw(random);
            let holder = account - account % self.assets as usize + asset.0 as usize;
            if holder < self.len() && self.may_act(holder) {
                return holder;
            }
        }
        let mut holders = (asset.0 as usize..self.len()).step_by(self.assets as usize);
        holders.find(|holder| self.may_act(*holder)).unwrap_or_else(|| self.draw(random))
    }

    /// Whether the account has numbers left in this block.
    pub fn may_act(&self, account: usize) -> bool {
        self.used.get(&(account as u32)).is_none_or(|used| *used < NUMBERS_PER_BLOCK)
    }

    /// The account's next transaction, not signed.
    pub fn act(&mut self, account: usize, operation: Operation) -> Unsigned {
        *self.used.entry(account as u32).or_default() += 1;
        let sequence = u64::from(self.next[account]);
        self.next[account] += 1;
        Unsigned {
            account,
            body: Body { chain: 1, account: self.addresses[account], sequence, until: 50_000, operation },
        }
    }

    /// Signs a block's transactions for a network, or without one puts zeros in place of signatures; starts the next
    /// block.
    pub fn sign(&mut self, unsigned: Vec<Unsigned>, network: Option<&Digest>) -> Vec<Transaction> {
        self.used.clear();
        let sign = |Unsigned { account, body }: Unsigned| match (self.keys.get(account), network) {
            (Some(key), Some(network)) => body.sign(network, key),
            (Some(key), None) => Transaction::by_key(body, key.public(), Signature([0; 64])),
            (None, _) => Transaction::by_key(body, number_key(account), Signature([0; 64])),
        };
        unsigned.into_par_iter().map(sign).collect()
    }
}

/// A transaction before it is signed.
pub struct Unsigned {
    /// The number of the account.
    pub account: usize,
    /// Its contents.
    pub body: Body,
}

fn secret_key(account: usize) -> SecretKey {
    let mut seed = [0x77; 32];
    seed[..8].copy_from_slice(&(account as u64).to_le_bytes());
    SecretKey::from_seed(seed)
}

fn number_key(account: usize) -> PublicKey {
    let mut key = [0x78; 32];
    key[..8].copy_from_slice(&(account as u64).to_le_bytes());
    PublicKey(key)
}

/// A block of these transactions on top of `ledger`.
pub fn block(ledger: &Ledger, native: Vec<Transaction>) -> Superblock {
    Superblock {
        height: ledger.height() + 1,
        parent: ledger.last_block(),
        sub_blocks: vec![SubBlock { native, ..SubBlock::default() }],
        ..Superblock::default()
    }
}
