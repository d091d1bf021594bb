//! A chain with contracts for tests: keys, small programs, blocks of lanes, and checks after each block.

pub mod asked;
pub mod offering;

use asked::input;
use ledger::contracts::ethereum::U256;
use ledger::contracts::{
    EthereumKey, EthereumRequest, FIRST_CONTRACT_OFFER, OFFERS, OfferName, recover_senders, token_address,
};
use ledger::{
    Applied, BlockReceipts, Genesis, Ledger, Limits, Listing, Member, Membership, Pair, Restore, Roots, Schedule,
    Signatures, Snapshot, Terms,
};
use primitives::{Address, AssetId, Digest, Fraction, Price, SecretKey, SubBlock, Superblock, Transaction};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub const CHAIN: u64 = 7;
pub const GWEI: u128 = 1_000_000_000;
pub const ETHER: u128 = 1_000_000_000 * GWEI;
/// Wei of a unit: asset 0 has six decimals.
pub const UNIT: u128 = 1_000_000_000_000;
pub const VALIDATORS: u8 = 4;

pub fn key(number: u8) -> EthereumKey {
    EthereumKey::from_seed([number + 1; 32]).expect("a key")
}

pub fn validator(index: u8) -> SecretKey {
    SecretKey::from_seed([100 + index; 32])
}

pub fn limits() -> Limits {
    Limits { block_gas: 120_000_000, sub_block_gas: 30_000_000, least_base_fee: GWEI as u64, ..Limits::default() }
}

pub const NETWORK: Digest = Digest([4; 32]);

pub fn genesis() -> Genesis {
    let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 6, Address([9; 20]))).to_vec();
    let rich = (0..8).map(|number| key(number).address()).chain([validator(9).public().address()]);
    let balances = rich.flat_map(|one| [0, 1].map(|asset| (one, AssetId(asset), 1_000_000_000))).collect();
    let terms = Terms {
        network: NETWORK,
        schedule: Schedule::default(),
        committee: VALIDATORS.into(),
        minimum_stake: 1,
        unbonding_epochs: 1,
        reward: 0,
        slash: Fraction::power_of_two(1),
    };
    let founder = |index| {
        let key = validator(index).public();
        Member { account: key.address(), key, address: String::new(), stake: 1_000 }
    };
    let membership = Membership { terms, reward_pool: 0, founders: (0..VALIDATORS).map(founder).collect() };
    let (epsilon, mu) = (Fraction::ZERO, Fraction::power_of_two(10));
    let membership = Some(membership);
    Genesis { chain: CHAIN, epsilon, mu, limits: limits(), assets, balances, membership, ..Genesis::default() }
}

/// A transaction with enough gas for small programs.
pub fn request(nonce: u64, to: Option<Address>) -> EthereumRequest {
    let (gas_limit, max_fee, max_tip) = (200_000, 100 * GWEI, GWEI);
    EthereumRequest { chain: CHAIN, nonce, to, gas_limit, max_fee, max_tip, ..EthereumRequest::default() }
}

pub fn send(from: u8, nonce: u64, to: Address, value: u128) -> Vec<u8> {
    key(from).sign(&EthereumRequest { value, gas_limit: 21_000, ..request(nonce, Some(to)) })
}

pub fn call(from: u8, nonce: u64, to: Address, data: Vec<u8>) -> Vec<u8> {
    key(from).sign(&EthereumRequest { data, ..request(nonce, Some(to)) })
}

pub fn create(from: u8, nonce: u64, runtime: &[u8]) -> Vec<u8> {
    key(from).sign(&EthereumRequest { data: deploying(runtime), ..request(nonce, None) })
}

/// Code that creates a contract of this runtime code.
pub fn deploying(runtime: &[u8]) -> Vec<u8> {
    let [high, low] = (runtime.len() as u16).to_be_bytes();
    [&[0x61, high, low, 0x80, 0x60, 10, 0x5f, 0x39, 0x5f, 0xf3], runtime].concat()
}

/// Adds one to slot 0 and logs the sum.
pub const COUNTER: &[u8] = &[0x5f, 0x54, 0x60, 1, 0x01, 0x80, 0x5f, 0x55, 0x5f, 0x52, 0x60, 32, 0x5f, 0xa0, 0x00];
/// Counts and then reverts.
pub const REVERTS: &[u8] = &[0x60, 7, 0x5f, 0x55, 0x5f, 0x5f, 0xfd];
/// Runs forever.
pub const LOOPS: &[u8] = &[0x5b, 0x5f, 0x56];
/// Passes the value on to the account that the input names.
pub const FORWARDS: &[u8] = &[0x5f, 0x5f, 0x5f, 0x5f, 0x34, 0x5f, 0x35, 0x5a, 0xf1, 0x00];
/// Creation code that destroys the new contract for its own benefit.
pub const BURNS: &[u8] = &[0x30, 0xff];
/// Takes value, and destroys itself for the benefit of the caller; it is older than the transaction, so it remains.
pub const LEAVES: &[u8] = &[0x33, 0xff];
/// Stores the input's second word in the slot that its first word names.
pub const STORES: &[u8] = &[0x60, 32, 0x35, 0x5f, 0x35, 0x55, 0x00];

/// An argument of a call: an address in a word.
pub fn word(address: &Address) -> Vec<u8> {
    [&[0; 12], &address.0[..]].concat()
}

/// A ledger with its tries.
pub struct Chain {
    pub ledger: Ledger,
    pub roots: Roots,
    pub root: Digest,
    pub time_ms: u64,
}

impl Chain {
    pub fn new() -> Chain {
        Chain::of(&genesis())
    }

    pub fn of(genesis: &Genesis) -> Chain {
        let ledger = Ledger::new(genesis).expect("sound");
        let mut roots = Roots::of(&ledger);
        let root = roots.parts().root();
        Chain { ledger, roots, root, time_ms: 1_700_000_000_000 }
    }

    /// The next block of these lanes, by sub-block.
    pub fn block(&self, native: Vec<Transaction>, lanes: Vec<Vec<Vec<u8>>>) -> Superblock {
        let time_ms = self.time_ms;
        let sub_block = |(proposer, ethereum): (usize, Vec<Vec<u8>>)| {
            let senders = recover_senders(&ethereum);
            SubBlock { proposer: proposer as u32, time_ms, ethereum, senders, ..SubBlock::default() }
        };
        let mut sub_blocks: Vec<SubBlock> = lanes.into_iter().enumerate().map(sub_block).collect();
        if let Some(first) = sub_blocks.first_mut() {
            first.native = native;
        }
        let (height, parent, parent_root) = (self.ledger.height() + 1, self.ledger.last_block(), self.root);
        Superblock { height, parent, time_ms, parent_root, sub_blocks, ..Superblock::default() }
    }

    /// Applies a block, and runs the checks of every block.
    pub fn apply(&mut self, block: &Superblock) -> Applied {
        let applied = self.ledger.apply(block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        self.time_ms += 1_500;
        self.root = self.roots.apply(&applied.changes);
        self.ledger.audit().expect("all units and all wei are there");
        assert_eq!(Roots::of(&self.ledger).parts().root(), self.root, "the tries follow");
        applied
    }

    /// Applies a block of these lanes.
    pub fn run(&mut self, lanes: Vec<Vec<Vec<u8>>>) -> Applied {
        let block = self.block(Vec::new(), lanes);
        self.apply(&block)
    }

    /// Wei of an account.
    pub fn wei(&self, address: &Address) -> u128 {
        let account = self.ledger.accounts().get(address);
        account.map_or(0, |one| u128::from(one.balance(AssetId(0))) * UNIT + u128::from(one.evm().remainder))
    }

    pub fn nonce(&self, address: &Address) -> u64 {
        self.ledger.accounts().get(address).map_or(0, |account| account.evm().nonce)
    }

    pub fn slot(&self, address: &Address, slot: u8) -> u64 {
        let mut key = [0; 32];
        key[31] = slot;
        let value = self.ledger.contracts().slot(address, &key).unwrap_or_default();
        u64::from_be_bytes(value[24..].try_into().expect("eight bytes"))
    }

    /// The same state, restored from its snapshot.
    pub fn restored(&self) -> Chain {
        let mut restore = Restore::default();
        Snapshot::of(&self.ledger).for_each(|chunk| restore.push(&chunk).expect("the next chunk"));
        let ledger = restore.finish().expect("whole");
        assert_eq!(Snapshot::digest(&ledger), Snapshot::digest(&self.ledger));
        let mut roots = Roots::of(&ledger);
        let root = roots.parts().root();
        assert_eq!(root, self.root);
        Chain { ledger, roots, root, time_ms: self.time_ms }
    }
}

/// The receipts of a block, as they are archived.
pub fn receipts(applied: &Applied) -> BlockReceipts {
    BlockReceipts {
        height: applied.height,
        block: applied.block,
        outcomes: Vec::new(),
        modified: applied.modified.clone(),
        batch: applied.batch.clone(),
        contracts: applied.contracts.clone(),
        venues: applied.venues.clone(),
    }
}

/// A random transaction: creations that burn, forward, count, revert and loop, calls of them and of a token, and
/// payments, among few senders so that they conflict, with nonces that are mostly right. Its sender comes first.
pub fn random_request(dice: &mut ChaCha8Rng, nonces: &mut [u64; 6], known: &[Address]) -> (u8, EthereumRequest) {
    let from = dice.random_range(0..6u8);
    let nonce = nonces[usize::from(from)];
    nonces[usize::from(from)] += u64::from(dice.random_range(0..20) > 0);
    let value = if dice.random_bool(0.5) { dice.random_range(0..3 * UNIT) } else { 0 };
    let to = known[dice.random_range(0..known.len())];
    let (to, data, value) = match dice.random_range(0..10) {
        0 => (None, BURNS.to_vec(), value),
        1 => {
            let codes = [COUNTER, REVERTS, LOOPS, FORWARDS, LEAVES, STORES];
            (None, deploying(codes[dice.random_range(0..codes.len())]), 0)
        }
        2..5 => (Some(to), word(&known[dice.random_range(0..known.len())]), value),
        5 => (Some(to), [word(&Address([0; 20])), vec![dice.random_range(0..2); 32]].concat(), 0),
        6 if dice.random_bool(0.5) => {
            // An offer, or a cancellation of a possible offer.
            let eur_for_usd = Pair { sell: AssetId(1), buy: AssetId(0) };
            let limit = Price::ratio_rounding_up(1, 1).expect("a price");
            let id = FIRST_CONTRACT_OFFER + dice.random_range(0..4);
            let name = OfferName { pair: eur_for_usd, limit, id };
            let units = U256::from(10_000);
            let tokens = [1, 0].map(|asset| asked::of(token_address(AssetId(asset))));
            let data = match dice.random_bool(0.6) {
                true => input("place(address,address,uint64,uint64)", &[tokens[0], tokens[1], units, units]),
                false => input("cancel(bytes32)", &[U256::from_be_bytes(name.to_word())]),
            };
            (Some(OFFERS), data, 0)
        }
        6 => {
            // A token transfer of its asset, sometimes of more than there is, sometimes with value.
            let amount = [vec![0; 28], dice.random_range(0..600_000_000u32).to_be_bytes().to_vec()].concat();
            let data = [&[0xa9, 0x05, 0x9c, 0xbb][..], &word(&to), &amount].concat();
            (Some(token_address(AssetId(1))), data, if dice.random_range(0..5) == 0 { value } else { 0 })
        }
        _ => (Some(to), Vec::new(), value),
    };
    let gas_limit = [21_000, 60_000, 200_000][dice.random_range(0..3)];
    let gas_limit = if to.is_none() { 200_000 } else { gas_limit };
    (from, EthereumRequest { value, data, gas_limit, ..request(nonce, to) })
}

/// Blocks of random programs: a history that depends only on the seed.
pub fn history(seed: u64, blocks: usize, size: usize) -> Vec<Superblock> {
    history_of(&genesis(), 1, seed, blocks, size)
}

/// The same on another chain, on which everything has so many times the gas.
pub fn history_of(genesis: &Genesis, times: u64, seed: u64, blocks: usize, size: usize) -> Vec<Superblock> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut chain = Chain::of(genesis);
    let mut random = |nonces: &mut [u64; 6], known: &[Address]| {
        let (from, request) = random_request(&mut dice, nonces, known);
        let gas_limit = request.gas_limit * times;
        key(from).sign(&EthereumRequest { chain: genesis.chain, gas_limit, ..request })
    };
    let mut nonces = [0; 6];
    let mut known: Vec<Address> = (0..6).map(|from| key(from).address()).collect();
    known.extend([
        Address([77; 20]),
        Address([0; 20]),
        token_address(AssetId(1)),
        validator(0).public().address(),
        validator(1).public().address(),
    ]);
    (0..blocks)
        .map(|_| {
            let lanes = (0..4).map(|_| (0..size / 4).map(|_| random(&mut nonces, &known)).collect()).collect();
            let block = chain.block(Vec::new(), lanes);
            let applied = chain.apply(&block);
            known.extend(applied.contracts.receipts.iter().filter_map(|receipt| receipt.contract));
            (0..6).for_each(|from| nonces[from] = chain.nonce(&key(from as u8).address()));
            block
        })
        .collect()
}
