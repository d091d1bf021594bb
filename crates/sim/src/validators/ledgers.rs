//! The ledgers of a simulated network: initial balances, and the transactions that clients send.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ledger::{Genesis, Limits, Listing, Member, Membership, Schedule, Terms};
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Operation, Price, SecretKey, SubBlock, Transaction, TransactionId,
};

use crate::ethereum::EthereumClients;
use crate::sessions::SessionClients;

pub(super) const CHAIN: u64 = 1;
const TRADERS: u64 = 200;
pub(super) const ASSETS: u32 = 3;
pub(super) const FEE: u64 = 1;

/// The traders' keys.
static KEYS: LazyLock<Vec<SecretKey>> = LazyLock::new(|| {
    let seed = |number: u64| std::array::from_fn(|at| if at < 8 { number.to_be_bytes()[at] } else { 200 });
    (0..TRADERS).map(|number| SecretKey::from_seed(seed(number))).collect()
});

/// The traders by account.
static NUMBERS: LazyLock<BTreeMap<Address, u64>> =
    LazyLock::new(|| (0..).zip(&*KEYS).map(|(number, key)| (key.public().address(), number)).collect());

/// Traders with some of every asset, and validators with stakes to lose, `committee` of which are drawn for each
/// epoch. If there are `ethereum` clients, the chain has contracts and the clients have balances; so have those with
/// session keys.
pub(super) fn genesis(
    validators: &[SecretKey],
    network: Digest,
    schedule: Schedule,
    committee: usize,
    ethereum: Option<&EthereumClients>,
    sessions: Option<&SessionClients>,
) -> Genesis {
    let founder = |secret: &SecretKey| {
        let key = secret.public();
        Member { account: key.address(), key, address: "127.0.0.1:1".into(), stake: 1_000_000 }
    };
    let held = NUMBERS.keys().flat_map(|account| (0..ASSETS).map(|asset| (*account, AssetId(asset), 10_000_000)));
    let fees = validators.iter().map(|secret| (secret.public().address(), AssetId(0), 1_000));
    let slash = Fraction::power_of_two(2);
    let committee = committee as u32;
    let terms = Terms { network, schedule, committee, minimum_stake: 100_000, reward: 5, slash, ..Terms::default() };
    let founders = validators.iter().map(founder).collect();
    let clients = ethereum.into_iter().flat_map(EthereumClients::balances);
    let clients = clients.chain(sessions.into_iter().flat_map(SessionClients::balances));
    let limits = ethereum.map_or(Limits::default(), |_| crate::ethereum::limits(committee.into()));
    Genesis {
        chain: CHAIN,
        fee: FEE,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: (0..ASSETS).map(|asset| Listing::new(format!("A{asset}"), 2, KEYS[0].public().address())).collect(),
        limits,
        balances: held.chain(fees).chain(clients).collect(),
        membership: Some(Membership { terms, reward_pool: 100_000, founders }),
        ..Genesis::default()
    }
}

/// The transaction with a number: an offer around one price if clients trade, otherwise a payment.
pub(super) fn transaction(network: &Digest, number: u64, trades: bool) -> Transaction {
    let (who, sequence) = (number % TRADERS, number / TRADERS + 1);
    let sell = AssetId((number % u64::from(ASSETS)) as u32);
    let operation = if trades {
        let buy = AssetId((sell.0 + 1 + (number / 7 % u64::from(ASSETS - 1)) as u32) % ASSETS);
        let limit = Price::from_f64(0.95 + (number * 37 % 100) as f64 / 1_000.0).expect("in range");
        Operation::offer(sell, buy, 20_000 + number * 131 % 10_000, limit)
    } else {
        Operation::Pay {
            to: KEYS[((number + 1) % TRADERS) as usize].public().address(),
            asset: sell,
            amount: 1 + number % 9,
        }
    };
    let key = &KEYS[who as usize];
    Body { chain: CHAIN, account: key.public().address(), sequence, until: 50_000, operation }.sign(network, key)
}

/// The number of a client's transaction; `None` for a validator's.
pub(super) fn number_of(transaction: &Transaction) -> Option<u64> {
    let body = &transaction.body;
    // A presence has the number 0.
    Some(body.sequence.checked_sub(1)? * TRADERS + NUMBERS.get(&body.account)?)
}

/// A sub-block of these transactions.
pub(super) fn payload_of(network: &Digest, numbers: impl IntoIterator<Item = u64>, trades: bool) -> consensus::Payload {
    let native = numbers.into_iter().map(|number| transaction(network, number, trades)).collect();
    SubBlock { native, ..SubBlock::default() }.to_payload().into()
}

/// The ids of the transactions of a block, in order.
pub(super) fn ids(block: &primitives::Superblock) -> Vec<TransactionId> {
    block.sub_blocks.iter().flat_map(|sub| &sub.native).map(Transaction::id).collect()
}
