//! The published state follows the ledger: after any blocks, the offers by account and by price are those of the
//! book.

use std::collections::{BTreeMap, HashMap};

use ledger::{Genesis, Ledger, Listing, Pair, PairOffers, Place, Signatures};
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Operation, Price, PublicKey, Sequence, Signature, SubBlock, Superblock,
    Transaction,
};
use proptest::prelude::*;
use readers::views::Views;
use readers::{CommittedBlock, Outline, Published};

const PEOPLE: u8 = 4;
const ASSETS: u32 = 3;

fn key(person: u8) -> PublicKey {
    PublicKey([person; 32])
}

fn genesis() -> Genesis {
    let assets = (0..ASSETS).map(|asset| Listing::new(format!("A{asset}"), 2, key(9).address())).collect();
    let held = |person: u8| (0..ASSETS).map(move |asset| (key(person).address(), AssetId(asset), 400_000));
    let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
    let balances = (0..PEOPLE).flat_map(held).collect();
    Genesis { chain: 1, fee: 0, epsilon, mu, assets, balances, ..Genesis::default() }
}

/// An action of a person.
#[derive(Clone, Debug)]
enum Act {
    Offer {
        sell: u32,
        buy: u32,
        amount: u64,
        percent: u32,
    },
    /// Cancels the offer made `back` offers before.
    Cancel {
        back: usize,
    },
    Pay {
        asset: u32,
        amount: u64,
    },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..ASSETS, 1..ASSETS, 1_000..60_000u64, 80..125u32).prop_map(|(sell, step, amount, percent)| {
            Act::Offer { sell, buy: (sell + step) % ASSETS, amount, percent }
        }),
        2 => (0..8usize).prop_map(|back| Act::Cancel { back }),
        1 => (0..ASSETS, 1..500_000u64).prop_map(|(asset, amount)| Act::Pay { asset, amount }),
    ]
}

#[derive(Default)]
struct People {
    sequences: HashMap<u8, Sequence>,
    made: HashMap<u8, Vec<Operation>>,
}

impl People {
    fn transaction(&mut self, person: u8, act: &Act) -> Option<Transaction> {
        let next = self.sequences.entry(person).or_default();
        *next += 1;
        let sequence = *next;
        let made = self.made.entry(person).or_default();
        let operation = match *act {
            Act::Offer { sell, buy, amount, percent } => {
                let limit = Price::from_f64(f64::from(percent) / 100.0).expect("in range");
                let (sell, buy) = (AssetId(sell), AssetId(buy));
                made.push(Operation::cancel(sell, buy, limit, sequence));
                Operation::offer(sell, buy, amount, limit)
            }
            Act::Cancel { back } => made.iter().rev().nth(back)?.clone(),
            Act::Pay { asset, amount } => {
                Operation::Pay { to: key((person + 1) % PEOPLE).address(), asset: AssetId(asset), amount }
            }
        };
        let body = Body { chain: 1, account: key(person).address(), sequence, until: 50_000, operation };
        Some(Transaction::by_key(body, key(person), Signature([0; 64])))
    }
}

/// Offers by account, and sums and counts by price, as the book has them.
type Summary = (BTreeMap<(Address, Sequence), (Pair, Price, u64)>, BTreeMap<(Pair, Price), (u64, usize)>);

fn of_book(ledger: &Ledger) -> Summary {
    let mut all = Summary::default();
    for (pair, offers) in ledger.book().iter() {
        for offer in offers.iter() {
            let Place { limit, account, id } = offer.place;
            all.0.insert((account, id), (pair, limit, offer.amount));
            let sum = all.1.entry((pair, limit)).or_default();
            *sum = (sum.0 + offer.amount, sum.1 + 1);
        }
    }
    all
}

fn of_views(views: &Views) -> Summary {
    let mut all = Summary::default();
    for account in (0..PEOPLE).map(|person| key(person).address()) {
        let mut locked: BTreeMap<AssetId, u64> = BTreeMap::new();
        for (id, resting) in views.offers().of_account(&account) {
            *locked.entry(resting.pair.sell).or_default() += resting.amount;
            all.0.insert((account, id), (resting.pair, resting.limit, resting.amount));
        }
        assert_eq!(views.offers().locked(&account), locked);
    }
    for pair in views.offers().pairs() {
        for (limit, depth) in views.offers().prices(pair) {
            all.1.insert((pair, limit), (depth.amount, depth.offers));
        }
    }
    all
}

fn publish(ledger: &mut Ledger, published: &Published, native: Vec<Transaction>) -> CommittedBlock {
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    let block = Superblock { height, parent, time_ms: height, sub_blocks, ..Superblock::default() };
    let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("sound");
    let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    let ids: Vec<_> = transactions.iter().map(|transaction| transaction.id()).collect();
    let committed = CommittedBlock::new(&block, &applied, &ids, Digest::default(), Outline::of(ledger), Vec::new());
    published.commit(&committed, &transactions, &applied.contracts);
    committed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_offers_are_those_of_the_book(
        blocks in prop::collection::vec(prop::collection::vec((0..PEOPLE, act()), 0..12), 1..12)
    ) {
        let mut ledger = Ledger::new(&genesis()).expect("sound");
        let published = Published::new(Views::new(&ledger, Digest::default(), 1_000));
        let mut people = People::default();
        for acts in &blocks {
            let native = acts.iter().filter_map(|(person, act)| people.transaction(*person, act)).collect();
            let committed = publish(&mut ledger, &published, native);
            let views = published.views();
            prop_assert_eq!(of_views(&views), of_book(&ledger));
            prop_assert_eq!(views.offers().len(), ledger.book().len());
            prop_assert_eq!((views.height(), views.outline().block), (ledger.height(), ledger.last_block()));
            // Views built from the state are the same.
            prop_assert_eq!(of_views(&Views::new(&ledger, Digest::default(), 1_000)), of_book(&ledger));
            for (pair, offers) in ledger.book().iter() {
                let before = offers.as_met_by(&committed.batch.batch, pair);
                prop_assert_eq!(sums(&before), doors::markets::before_batch(&views, &committed.batch, pair));
            }
        }
    }
}

fn sums(offers: &PairOffers) -> BTreeMap<Price, u64> {
    let mut by_limit = BTreeMap::new();
    for offer in offers.iter() {
        *by_limit.entry(offer.place.limit).or_default() += offer.amount;
    }
    by_limit
}
