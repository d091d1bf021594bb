//! Native transactions signed as typed data by an Ethereum wallet: for which accounts, on which network, and how
//! many.

use ledger::{
    Cancelled, Genesis, Ledger, Limits, Listing, Outcome, Refusal, Restart, Signatures, Snapshot,
    TYPED_DATA_PER_SUB_BLOCK,
};
use primitives::{
    Address, AssetId, Body, Digest, Operation, Price, SecretKey, Sequence, SignedBy, SubBlock, Superblock, Transaction,
    WalletKey,
};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const UNITS: u64 = 1_000_000_000;

fn wallet(number: u8) -> WalletKey {
    WalletKey::from_bytes([number; 32]).expect("in range")
}

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

/// Wallets 1 to 9 hold both assets. The fee makes networks differ.
fn ledger(fee: u64) -> Ledger {
    let listing = |symbol: &str| Listing {
        symbol: symbol.into(),
        issuer: key(99).public().address(),
        decimals: 6,
        least_units: ledger::LEAST_UNITS,
    };
    let assets = ["USD", "EUR"].map(listing).into();
    let of = |number: u8| [USD, EUR].map(|asset| (wallet(number).address(), asset, UNITS));
    let balances = (1..=9).flat_map(of).collect();
    let limits = Limits::default().with_contracts(1);
    let mu = "2^-5".parse().expect("a fraction");
    Ledger::new(&Genesis { chain: 31_337, fee, mu, assets, balances, limits, ..Genesis::default() }).expect("sound")
}

fn body(number: u8, sequence: Sequence, operation: Operation) -> Body {
    Body { chain: 31_337, account: wallet(number).address(), sequence, until: 50_000, operation }
}

fn pay(amount: u64) -> Operation {
    Operation::Pay { to: Address([7; 20]), asset: EUR, amount }
}

fn offer(sell: AssetId, buy: AssetId, limit: &str) -> Operation {
    let limit: Price = limit.parse().expect("a price");
    Operation::offer(sell, buy, UNITS / 10, limit)
}

/// Applies a block of these transactions; returns the outcome of each.
fn apply(ledger: &mut Ledger, native: Vec<Transaction>) -> Vec<Outcome> {
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    let block = Superblock {
        height,
        parent,
        time_ms: height,
        parent_root: Digest::default(),
        sub_blocks,
        ..Superblock::default()
    };
    let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    ledger.audit().expect("sound");
    applied.outcomes
}

fn refused(refusal: Refusal) -> Vec<Outcome> {
    vec![Outcome::Refused(refusal)]
}

fn has(ledger: &Ledger, account: Address, asset: AssetId) -> u64 {
    ledger.accounts().get(&account).map_or(0, |account| account.balance(asset))
}

#[test]
fn a_wallet_pays_offers_and_cancels() {
    let mut ledger = ledger(1);
    let network = ledger.network();
    let sign = |number, sequence, operation| body(number, sequence, operation).sign_typed(network, &wallet(number));
    assert_eq!(apply(&mut ledger, vec![sign(1, 1, pay(5))]), [Outcome::Applied]);
    assert_eq!(has(&ledger, Address([7; 20]), EUR), 5);
    // Two offers of one batch fill each other, and one rests.
    let offers =
        vec![sign(1, 3, offer(EUR, USD, "0.5")), sign(2, 1, offer(USD, EUR, "0.5")), sign(3, 1, offer(EUR, USD, "99"))];
    let outcomes = apply(&mut ledger, offers);
    assert!(outcomes.iter().all(|outcome| outcome.refusal().is_none()), "{outcomes:?}");
    assert!(has(&ledger, wallet(1).address(), USD) > UNITS && has(&ledger, wallet(2).address(), EUR) > UNITS);
    assert_eq!(has(&ledger, wallet(3).address(), EUR), UNITS - UNITS / 10);
    let cancel = Operation::cancel(EUR, USD, "99".parse().expect("a price"), 1);
    let cancelled = Outcome::Cancelled(Cancelled { found: 1, missing: 0 });
    assert_eq!(apply(&mut ledger, vec![sign(3, 2, cancel)]), [cancelled]);
    assert_eq!(has(&ledger, wallet(3).address(), EUR), UNITS);
    // Each number once, and at most 64 ahead, as for every account.
    assert_eq!(apply(&mut ledger, vec![sign(3, 2, pay(1))]), refused(Refusal::SEQUENCE_USED));
    assert_eq!(apply(&mut ledger, vec![sign(3, 67, pay(1))]), refused(Refusal::SEQUENCE_TOO_FAR));
    assert_eq!(apply(&mut ledger, vec![sign(60, 1, pay(1))]), refused(Refusal::UNKNOWN_ACCOUNT));
}

/// Two networks with one chain number, and one network before and after a restart.
#[test]
fn what_is_signed_for_one_network_is_nothing_in_another() {
    let (mut here, mut there) = (ledger(1), ledger(2));
    assert_ne!(here.network(), there.network());
    let signed = body(1, 1, pay(5)).sign_typed(here.network(), &wallet(1));
    assert_eq!(apply(&mut there, vec![signed.clone()]), refused(Refusal::WRONG_CHAIN));
    // The same signature under the name of the other network.
    let SignedBy::TypedData { signature, .. } = signed.signed_by else { panic!("it is typed data") };
    let signed_by = SignedBy::TypedData { network: there.network(), signature };
    let renamed = Transaction { body: signed.body.clone(), signed_by };
    assert_eq!(apply(&mut there, vec![renamed]), refused(Refusal::BAD_SIGNATURE));
    let mut restarted = here.clone();
    let (first, snapshot) = (here.network(), Snapshot::digest(&restarted));
    restarted
        .begin_again(&first, &Restart { number: 1, snapshot, committee: Vec::new(), lane: None, rules: None }, None)
        .expect("the state agreed on");
    assert_eq!(apply(&mut restarted, vec![signed.clone()]), refused(Refusal::WRONG_CHAIN));
    assert_eq!(apply(&mut here, vec![signed]), [Outcome::Applied]);
}

#[test]
fn a_changed_field_is_refused() {
    let mut ledger = ledger(1);
    let network = ledger.network();
    let signed = body(1, 1, pay(5)).sign_typed(network, &wallet(1));
    let others = [
        body(1, 1, pay(6)),
        body(1, 2, pay(5)),
        body(2, 1, pay(5)),
        body(1, 1, Operation::Pay { to: Address([8; 20]), asset: EUR, amount: 5 }),
        body(1, 1, Operation::Issue { to: Address([7; 20]), asset: EUR, amount: 5 }),
    ];
    for body in others {
        let changed = Transaction { body, ..signed.clone() };
        assert_eq!(apply(&mut ledger, vec![changed]), refused(Refusal::BAD_SIGNATURE));
    }
    assert_eq!(apply(&mut ledger, vec![signed]), [Outcome::Applied]);
}

/// An ed25519 key that a wallet registers signs besides the wallet's key and does not replace it; a copy counts once.
#[test]
fn a_registered_key_signs_beside_the_wallet() {
    let mut ledger = ledger(1);
    let network = ledger.network();
    let account = wallet(1).address();
    let register = body(1, 1, Operation::CreateAccount { account, key: key(5).public() });
    assert_eq!(apply(&mut ledger, vec![register.sign_typed(network, &wallet(1))]), [Outcome::Applied]);
    let by_key = body(1, 2, pay(5)).sign(&network, &key(5));
    let by_wallet = body(1, 2, pay(5)).sign_typed(network, &wallet(1));
    assert_ne!(by_key.id(), by_wallet.id());
    let outcomes = apply(&mut ledger, vec![by_key, by_wallet.clone()]);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Applied).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.refusal() == Some(Refusal::DUPLICATE)).count(), 1);
    assert_eq!(has(&ledger, Address([7; 20]), EUR), 5);
    assert_eq!(apply(&mut ledger, vec![body(1, 3, pay(5)).sign_typed(network, &wallet(1))]), [Outcome::Applied]);
    assert_eq!(apply(&mut ledger, vec![body(1, 4, pay(5)).sign(&network, &key(6))]), refused(Refusal::WRONG_SIGNER));
}

/// Recoveries are expensive: transactions beyond the quota of their sub-block are not checked.
#[test]
fn recoveries_are_bounded() {
    let ledger = ledger(1);
    let mut quota = ledger::Quota::default();
    let typed = body(1, 1, pay(1)).sign_typed(ledger.network(), &wallet(1));
    let plain = body(1, 1, pay(1)).sign(&ledger.network(), &key(1));
    for _ in 0..TYPED_DATA_PER_SUB_BLOCK {
        assert!(quota.admits(&typed, 0));
    }
    assert!(!quota.admits(&typed, 0) && quota.admits(&plain, 0));
}
