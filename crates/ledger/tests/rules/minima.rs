//! Least sizes of offers, and remainders that are returned.

use ledger::{Applied, Attached, Genesis, Ledger, Listing, Outcome, Pair, Place, Refusal, Roots, Signatures, Snapshot};
use primitives::{
    Address, Amount, AssetId, Body, Fraction, Operation, Price, SecretKey, Sequence, SubBlock, Superblock, Transaction,
};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

fn genesis() -> Genesis {
    let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, address(9))).to_vec();
    let balances = (1..=4).flat_map(|person| [USD, EUR].map(|asset| (address(person), asset, 1_000_000))).collect();
    Genesis { chain: 1, mu: Fraction::power_of_two(10), assets, balances, ..Genesis::default() }
}

fn signed(person: u8, sequence: Sequence, operation: Operation) -> Transaction {
    Body { chain: 1, account: address(person), sequence, until: 50_000, operation }
        .sign(&genesis().digest(), &key(person))
}

fn price(text: &str) -> Price {
    Price::parse_rounding_up(text).expect("a price")
}

fn offer(person: u8, sequence: Sequence, sell: AssetId, amount: Amount, limit: &str) -> Transaction {
    let (buy, limit) = (AssetId(1 - sell.0), price(limit));
    signed(person, sequence, Operation::offer(sell, buy, amount, limit))
}

fn block(ledger: &Ledger, native: Vec<Transaction>) -> Superblock {
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    Superblock { height, parent, sub_blocks: vec![SubBlock { native, ..SubBlock::default() }], ..Superblock::default() }
}

/// Applies a block, once by solving and once by checking the result; both must agree.
fn apply(ledger: &mut Ledger, native: Vec<Transaction>) -> Applied {
    let block = block(ledger, native);
    let mut follower = ledger.clone();
    let mut roots = Roots::of(ledger);
    let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    let attached = Attached::of(&applied.batch);
    let followed = follower.apply_attached(&block, &attached, Signatures::Unchecked, &mut |_| {}).expect("holds");
    assert_eq!((&followed.outcomes, &followed.batch), (&applied.outcomes, &applied.batch));
    assert_eq!(Snapshot::of(&follower).collect::<Vec<_>>(), Snapshot::of(ledger).collect::<Vec<_>>());
    assert_eq!(roots.apply(&followed.changes), Roots::of(ledger).parts().root(), "the tries follow the changes");
    ledger.audit().expect("conserved");
    applied
}

fn refusal(ledger: &mut Ledger, transaction: Transaction) -> Option<Refusal> {
    apply(ledger, vec![transaction]).outcomes[0].refusal()
}

#[test]
fn offers_below_the_least_are_refused_by_name() {
    let mut ledger = Ledger::new(&genesis()).expect("sound");
    assert_eq!(refusal(&mut ledger, offer(1, 1, USD, 4_095, "5")), Some(Refusal::SELLS_TOO_LITTLE));
    assert_eq!(refusal(&mut ledger, offer(1, 1, USD, 4_096, "0.9997")), Some(Refusal::ASKS_TOO_LITTLE));
    assert_eq!(ledger.admit(&offer(1, 1, USD, 4_095, "5")), Err(Refusal::SELLS_TOO_LITTLE));
    assert_eq!(refusal(&mut ledger, offer(1, 1, USD, 4_096, "1")), None);
    // Payments and balances have no least size.
    let operation = Operation::Pay { to: address(2), asset: USD, amount: 1 };
    assert_eq!(refusal(&mut ledger, signed(1, 2, operation)), None);
}

/// One account sells 10,000 at 1; the other buys so much that this remainder is left.
fn left_with(ledger: &mut Ledger, remainder: Amount, resting: bool) -> Applied {
    let large = offer(1, 1, USD, 10_000, "1");
    let other = offer(2, 1, EUR, 10_000 - remainder, "0.9");
    if resting {
        apply(ledger, vec![large]);
        return apply(ledger, vec![other]);
    }
    apply(ledger, vec![large, other])
}

#[test]
fn a_remainder_below_the_least_goes_back_and_can_be_spent_in_the_next_block() {
    for resting in [false, true] {
        let mut ledger = Ledger::new(&genesis()).expect("sound");
        let applied = left_with(&mut ledger, 4_000, resting);
        let pair = Pair { sell: USD, buy: EUR };
        let fill = applied.batch.fills_of(pair)[0];
        assert!(fill.returned > 3_900 && fill.returned < 4_096, "{fill:?}");
        assert_eq!((fill.left, fill.sold + fill.returned), (0, 10_000));
        assert_eq!(applied.batch.trades.iter().find(|trade| trade.pair == pair).map(|t| t.sold), Some(fill.sold));
        if let (false, Outcome::Offered(met)) = (resting, applied.outcomes[0]) {
            assert_eq!((met.sold, met.left, met.returned), (fill.sold, 0, fill.returned));
        }
        assert!(applied.modified.contains(&address(1)));
        let place = Place { limit: price("1"), account: address(1), id: 1 };
        assert_eq!(ledger.book().get(pair).and_then(|offers| offers.get(&place)), None);
        let cancel = Operation::cancel(USD, EUR, price("1"), 1);
        assert_eq!(ledger.admit(&signed(1, 2, cancel)), Err(Refusal::UNKNOWN_OFFER));
        let all = ledger.accounts().get(&address(1)).expect("exists").balance(USD);
        assert_eq!(all, 1_000_000 - fill.sold);
        let operation = Operation::Pay { to: address(4), asset: USD, amount: all };
        assert_eq!(refusal(&mut ledger, signed(1, 2, operation)), None);
    }
}

#[test]
fn a_remainder_of_the_least_size_rests() {
    for resting in [false, true] {
        let mut ledger = Ledger::new(&genesis()).expect("sound");
        let applied = left_with(&mut ledger, 4_400, resting);
        let fill = applied.batch.fills_of(Pair { sell: USD, buy: EUR })[0];
        assert!(fill.returned == 0 && fill.left >= 4_096, "{fill:?}");
        let place = Place { limit: price("1"), account: address(1), id: 1 };
        assert_eq!(ledger.book().get(fill.pair).and_then(|offers| offers.get(&place)), Some(fill.left));
    }
}

#[test]
fn a_genesis_whose_least_sizes_do_not_outweigh_rounding_is_refused() {
    let mut genesis = genesis();
    genesis.assets[1].least_units = 2_047;
    let error = Ledger::new(&genesis).err().expect("refused").to_string();
    assert!(error.contains("EUR") && error.contains("2047") && error.contains("2048"), "{error}");
    genesis.assets[1].least_units = 2_048;
    assert!(Ledger::new(&genesis).is_ok());
}
