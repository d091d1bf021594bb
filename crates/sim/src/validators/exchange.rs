//! Networks whose validators run the ledger itself, instead of a chain of hashes: sub-blocks hold signed offers and
//! accusations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use consensus::{Index, Payload};
use ledger::{Genesis, Ledger, Listing, Member, Membership, ReceiptsTrie, Roots, Signatures, Terms, outcome_root};
use node::accusations::Accusations;
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Operation, Price, SecretKey, SubBlock, Superblock, Transaction,
    verify_all,
};

const CHAIN: u64 = 1;
const TRADERS: u64 = 32;
const ASSETS: u32 = 3;
const FEE: u64 = 1;

/// The traders' keys.
static KEYS: LazyLock<Vec<SecretKey>> =
    LazyLock::new(|| (0..TRADERS).map(|number| SecretKey::from_seed([200 + number as u8; 32])).collect());

/// The traders by account.
static NUMBERS: LazyLock<BTreeMap<Address, u64>> =
    LazyLock::new(|| (0..).zip(&*KEYS).map(|(number, key)| (key.public().address(), number)).collect());

/// Traders with some of everything, and validators who stay for ever, with stakes to lose.
fn genesis(validators: &[SecretKey], network: Digest) -> Genesis {
    let founder = |secret: &SecretKey| {
        let key = secret.public();
        Member { account: key.address(), key, address: String::new(), stake: 1_000 }
    };
    let held = NUMBERS.keys().flat_map(|account| (0..ASSETS).map(|asset| (*account, AssetId(asset), 1_000_000)));
    let fees = validators.iter().map(|secret| (secret.public().address(), AssetId(0), 1_000));
    let (committee, slash) = (validators.len() as u32, Fraction::power_of_two(2));
    let terms = Terms { network, committee, minimum_stake: 1, reward: 5, slash, ..Terms::default() };
    let founders = validators.iter().map(founder).collect();
    Genesis {
        chain: CHAIN,
        fee: FEE,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: (0..ASSETS).map(|asset| Listing::new(format!("A{asset}"), 2, KEYS[0].public().address())).collect(),
        balances: held.chain(fees).collect(),
        membership: Some(Membership { terms, reward_pool: 100_000, founders }),
        ..Genesis::default()
    }
}

/// The transaction of a number: an offer around one price.
fn transaction(number: u64) -> Transaction {
    let (who, sequence) = (number % TRADERS, number / TRADERS + 1);
    let sell = (number % u64::from(ASSETS)) as u32;
    let buy = (sell + 1 + (number / 7 % u64::from(ASSETS - 1)) as u32) % ASSETS;
    let limit = Price::from_f64(0.95 + (number * 37 % 100) as f64 / 1_000.0).expect("in range");
    let (sell, buy, amount) = (AssetId(sell), AssetId(buy), 20_000 + number * 131 % 10_000);
    let operation = Operation::CreateOffer { sell, buy, amount, limit };
    let key = &KEYS[who as usize];
    Body { chain: CHAIN, account: key.public().address(), sequence, operation }.sign(key)
}

/// The number of a transaction; `None` of what a validator does.
fn number_of(transaction: &Transaction) -> Option<u64> {
    let body = &transaction.body;
    Some((body.sequence - 1) * TRADERS + NUMBERS.get(&body.account)?)
}

/// A sub-block of these transactions.
pub(super) fn payload_of(numbers: &BTreeSet<u64>) -> Payload {
    let native = numbers.iter().copied().map(transaction).collect();
    SubBlock { native, ..SubBlock::default() }.to_payload().into()
}

pub(super) fn check_payload(bytes: &[u8]) -> Option<usize> {
    SubBlock::from_payload(0, bytes).ok().map(|sub_block| sub_block.native.len())
}

/// The numbers of the offers in a sub-block.
pub(super) fn transactions_of(payload: &[u8]) -> BTreeSet<u64> {
    let sub_block = SubBlock::from_payload(0, payload).expect("checked by the engine");
    sub_block.native.iter().filter_map(number_of).collect()
}

/// The ledger of one validator, and what it does by itself.
pub(super) struct State {
    pub ledger: Ledger,
    roots: Roots,
    root: Digest,
    secret: SecretKey,
    pub accusations: Accusations,
}

impl State {
    pub(super) fn new(validators: &[SecretKey], me: Index, network: Digest) -> State {
        let ledger = Ledger::new(&genesis(validators, network)).expect("sound");
        let mut roots = Roots::of(&ledger);
        let (root, secret) = (roots.parts().root(), validators[usize::from(me)].clone());
        State { ledger, roots, root, secret, accusations: Accusations::default() }
    }

    /// Accusations for the next sub-block.
    pub(super) fn accuse(&mut self) -> Vec<Transaction> {
        if self.accusations.is_empty() {
            return Vec::new();
        }
        let account = self.ledger.accounts().get(&self.secret.public().address()).expect("it has a balance");
        let next = account.window().highest() + 1;
        self.accusations.due(&self.ledger, &self.secret, next, |_| false)
    }

    /// The next own sub-block.
    pub(super) fn propose(&mut self, numbers: &BTreeSet<u64>) -> Payload {
        let native = numbers.iter().copied().map(transaction).chain(self.accuse()).collect();
        SubBlock { native, ..SubBlock::default() }.to_payload().into()
    }

    /// Applies the next block; returns its outcome.
    pub(super) fn apply(&mut self, height: u64, sub_blocks: &[(Index, Payload)]) -> Digest {
        let sub_block = |(slot, payload): &(Index, Payload)| {
            let mut sub_block = SubBlock::from_payload((*slot).into(), payload).expect("checked by the engine");
            let transactions: Vec<&Transaction> = sub_block.native.iter().collect();
            let valid = verify_all(&transactions);
            sub_block.forged = (0..).zip(valid).filter(|(_, valid)| !valid).map(|(at, _)| at).collect();
            sub_block
        };
        let sub_blocks = sub_blocks.iter().map(sub_block).collect();
        let (parent, parent_root) = (self.ledger.last_block(), self.root);
        let block = Superblock { height, parent, time_ms: 0, parent_root, sub_blocks };
        let known = block.signatures();
        let signatures = known.as_ref().map_or(Signatures::Valid, |valid| Signatures::Known(valid));
        let applied = self.ledger.apply(&block, signatures, &mut |_| {}).expect("what is decided applies");
        self.ledger.audit().expect("sound");
        self.root = self.roots.apply(&applied.changes);
        let receipts = ReceiptsTrie::new(&node::receipts(&block, &applied)).root();
        outcome_root(&self.root, &receipts)
    }

    /// The convicted, by index.
    pub(super) fn convicted(&self, validators: &[SecretKey]) -> Vec<Index> {
        let is_excluded = |secret: &SecretKey| {
            self.ledger.validators().get(&secret.public().address()).is_some_and(|one| one.excluded)
        };
        (0..).zip(validators).filter(|(_, secret)| is_excluded(secret)).map(|(index, _)| index).collect()
    }
}
