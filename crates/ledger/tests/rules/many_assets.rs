//! What a block costs on a chain with many assets of which few trade.

use std::time::{Duration, Instant};

use ledger::{Genesis, Ledger, Listing, Roots, Signatures};
use primitives::{
    Address, AssetId, Body, ClientId, Digest, Fraction, Life, Operation, Price, SecretKey, SubBlock, Superblock,
    Transaction,
};

/// Assets that trade.
const TRADED: u32 = 10;
const ACCOUNTS: u32 = 200;
/// Offers of a block.
const OFFERS: u32 = 2_000;

fn key(number: u32) -> SecretKey {
    let mut seed = [7; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

fn account(number: u32) -> Address {
    key(number).public().address()
}

fn chain(assets: u32) -> (Ledger, Roots) {
    let held = |number: u32| (0..TRADED).map(move |asset| (account(number), AssetId(asset), 1_000_000_000));
    let genesis = Genesis {
        chain: 1,
        mu: Fraction::power_of_two(10),
        assets: (0..assets).map(|number| Listing::new(format!("A{number}"), 2, account(0))).collect(),
        balances: (0..ACCOUNTS).flat_map(held).collect(),
        ..Genesis::default()
    };
    let ledger = Ledger::new(&genesis).expect("sound");
    (ledger.clone(), Roots::of(&ledger))
}

/// The block after `height`: offers among the first ten assets, around one price.
fn offers(network: Digest, height: u64) -> Vec<Transaction> {
    let offer = |number: u32| {
        let sell = number % TRADED;
        let buy = (sell + 1 + number / TRADED % (TRADED - 1)) % TRADED;
        let limit = Price::from_f64(0.98 + f64::from(number % 37) / 1_000.0).expect("in range");
        let (sell, buy) = (AssetId(sell), AssetId(buy));
        let life = if number.is_multiple_of(4) { Life::Until(height + 3) } else { Life::OneBatch };
        let amount = 5_000 + u64::from(number % 89) * 100;
        let operation = Operation::CreateOffer { sell, buy, amount, limit, life, client: ClientId::NONE };
        let each = u64::from(OFFERS / ACCOUNTS);
        let sequence = height * each + u64::from(number / ACCOUNTS) + 1;
        let sender = number % ACCOUNTS;
        Body { chain: 1, account: account(sender), sequence, until: height + 10, operation }
            .sign(&network, &key(sender))
    };
    (0..OFFERS).map(offer).collect()
}

/// Applies, hashes and encodes a block.
fn step((ledger, roots): &mut (Ledger, Roots), native: Vec<Transaction>) -> Duration {
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let block = Superblock { height, parent, time_ms: height * 1_000, sub_blocks, ..Superblock::default() };
    let begun = Instant::now();
    let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    roots.apply(&applied.changes);
    let encoded = borsh::to_vec(&applied.batch).expect("memory");
    let took = begun.elapsed();
    assert!(applied.batch.fills.len() > 100 && !encoded.is_empty(), "the ten assets trade");
    took
}

/// Prints how much longer a block takes beside 990 more assets: for whoever changes what a block does for each asset.
#[test]
#[ignore = "a measurement, not a check"]
fn a_block_beside_a_thousand_assets_is_measured() {
    let (mut few, mut many) = (chain(TRADED), chain(1_000));
    let mut ratios: Vec<f64> = Vec::new();
    for height in 0..40 {
        let [one, other] = [&mut few, &mut many].map(|of| step(of, offers(of.0.network(), height)));
        ratios.push(other.as_secs_f64() / one.as_secs_f64());
        println!("{one:?} with ten assets, {other:?} with a thousand");
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.3}", ratios[ratios.len() / 2]);
}
