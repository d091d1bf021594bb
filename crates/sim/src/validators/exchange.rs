//! Networks whose validators run the ledger itself, instead of a chain of hashes: sub-blocks hold signed offers, carry
//! clearings, and accuse.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use consensus::{Index, Payload};
use ledger::{
    Attached, Genesis, Ledger, Member, Membership, ReceiptsTrie, Roots, Signatures, Source, Terms, outcome_root,
};
use node::accusations::Accusations;
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Operation, Price, SecretKey, SubBlock, Superblock, Transaction,
    verify_all,
};

use crate::dice::Dice;

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
        assets: (0..ASSETS).map(|asset| (format!("A{asset}"), 2, KEYS[0].public().address())).collect(),
        balances: held.chain(fees).collect(),
        membership: Some(Membership { terms, reward_pool: 100_000, founders }),
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
    /// The newest clearing that was claimed.
    claimed: Vec<u8>,
}

impl State {
    pub(super) fn new(validators: &[SecretKey], me: Index, network: Digest) -> State {
        let ledger = Ledger::new(&genesis(validators, network)).expect("sound");
        let mut roots = Roots::of(&ledger);
        let (root, secret) = (roots.parts().root(), validators[usize::from(me)].clone());
        State { ledger, roots, root, secret, accusations: Accusations::default(), claimed: Vec::new() }
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

    /// The own sub-block for a height; with a `claim` it carries the clearing, if the block below is applied here.
    /// `liar` is the dice of who claims anything else.
    pub(super) fn propose(
        &mut self,
        height: u64,
        numbers: &BTreeSet<u64>,
        claims: bool,
        liar: Option<&mut Dice>,
    ) -> Payload {
        let native: Vec<Transaction> = numbers.iter().copied().map(transaction).chain(self.accuse()).collect();
        let truth = (claims && self.ledger.height() + 1 == height).then(|| self.ledger.clearing_of(&native)).flatten();
        let mut clearing = truth.as_ref().map_or(Vec::new(), encode);
        if let Some(dice) = liar {
            clearing = self.lie(truth.unwrap_or_default(), dice);
        }
        if !clearing.is_empty() {
            self.claimed.clone_from(&clearing);
        }
        SubBlock { native, clearing, ..SubBlock::default() }.to_payload().into()
    }

    /// What a faulty proposer may claim.
    fn lie(&self, truth: Attached, dice: &mut Dice) -> Vec<u8> {
        let mut lie = truth;
        let idle = || self.ledger.assets().iter().map(|asset| asset.valuation).collect();
        match dice.below(7) {
            // What means nothing.
            0 => return (0..1 + dice.below(60)).map(|_| dice.bits() as u8).collect(),
            // What it claimed for another height.
            1 => return self.claimed.clone(),
            // That nothing trades, at the prices of the batch before.
            2 => lie = Attached { valuations: idle(), trades: Vec::new(), full: true },
            3 => lie.full = false,
            4 => lie.trades.iter_mut().for_each(|trade| trade.sold += 1),
            5 => lie.trades.truncate(lie.trades.len() / 2),
            _ => {
                let price = |dice: &mut Dice| Price::from_f64(dice.between(0.2, 5.0)).expect("in range");
                lie.valuations = (0..ASSETS).map(|_| price(dice)).collect();
            }
        }
        encode(&lie)
    }

    /// Applies the next block; returns its outcome, and where its clearing comes from.
    pub(super) fn apply(&mut self, height: u64, sub_blocks: &[(Index, Payload)]) -> (Digest, Source) {
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
        (outcome_root(&self.root, &receipts), applied.source)
    }

    /// The convicted, by index.
    pub(super) fn convicted(&self, validators: &[SecretKey]) -> Vec<Index> {
        let is_excluded = |secret: &SecretKey| {
            self.ledger.validators().get(&secret.public().address()).is_some_and(|one| one.excluded)
        };
        (0..).zip(validators).filter(|(_, secret)| is_excluded(secret)).map(|(index, _)| index).collect()
    }
}

fn encode(clearing: &Attached) -> Vec<u8> {
    borsh::to_vec(clearing).expect("writing to memory cannot fail")
}
