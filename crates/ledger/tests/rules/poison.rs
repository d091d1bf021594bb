//! An attacker that moves the valuation of an idle asset with dust changes nothing for others.

use ledger::{Applied, Genesis, Ledger, Listing, Signatures};
use primitives::{
    Address, AssetId, Body, Fraction, Operation, PublicKey, SecretKey, Signature, SubBlock, Superblock, Transaction,
};

const ASSETS: u32 = 6;
/// The idle asset.
const IDLE: u32 = 5;
/// The value of a unit of each asset.
const WORTH: [f64; ASSETS as usize] = [1.0, 1.1, 0.02, 37.0, 5.0, 900.0];

fn account(person: u16) -> (PublicKey, Address) {
    let mut seed = [9; 32];
    seed[..2].copy_from_slice(&person.to_le_bytes());
    let key = SecretKey::from_seed(seed).public();
    (key, key.address())
}

fn ledger(people: &[(PublicKey, Address)]) -> Ledger {
    let listing = |asset: u32| Listing::new(format!("A{asset}"), 6, Address::default());
    let genesis = Genesis {
        chain: 1,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: (0..ASSETS).map(listing).collect(),
        balances: people.iter().flat_map(|one| (0..ASSETS).map(|asset| (one.1, AssetId(asset), 1 << 53))).collect(),
        ..Genesis::default()
    };
    Ledger::new(&genesis).expect("sound")
}

struct Market {
    ledger: Ledger,
    people: Vec<(PublicKey, Address)>,
    sequence: u64,
}

impl Market {
    fn new() -> Market {
        let people: Vec<_> = (0..60).map(account).collect();
        Market { ledger: ledger(&people), people, sequence: 0 }
    }

    fn offer(&self, person: usize, (sell, buy): (u32, u32), amount: u64, limit: f64) -> Transaction {
        let limit = primitives::Price::from_f64(limit).expect("in range");
        let operation = Operation::offer(AssetId(sell), AssetId(buy), amount, limit);
        let (signer, account) = self.people[person];
        let body = Body { chain: 1, account, sequence: self.sequence, until: 50_000, operation };
        Transaction::by_key(body, signer, Signature([0; 64]))
    }

    /// Offers of all accounts but the first two, at prices near the assets' values. `wave` moves them.
    fn honest(&self, assets: u32, wave: u64) -> Vec<Transaction> {
        let people = self.people.len() as u64;
        let offer = |person: u64| {
            let sell = (person + wave) % u64::from(assets);
            let buy = (sell + 1 + person / 7 % u64::from(assets - 1)) % u64::from(assets);
            let (sell, buy) = (sell as u32, buy as u32);
            let fair = WORTH[sell as usize] / WORTH[buy as usize];
            let limit = fair * (0.99 + 0.015 * ((person * 7 + wave * 3) % 13) as f64 / 13.0);
            self.offer(person as usize, (sell, buy), (1e9 / WORTH[sell as usize]) as u64, limit)
        };
        (2..people).map(offer).collect()
    }

    /// Two accounts trade dust of the idle asset with each other, at a price far from its value.
    fn hostile(&self, rate: f64) -> Vec<Transaction> {
        let (dear, cheap) = ((IDLE, 1), (1, IDLE));
        let least = 5_000.0;
        let idle = (least / rate).max(least);
        vec![
            self.offer(0, dear, idle as u64, rate),
            self.offer(1, cheap, (idle * rate * 1.01).min(8e15) as u64, 1.0 / (rate * 1.01)),
        ]
    }

    fn block(&mut self, native: Vec<Transaction>) -> Applied {
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
        self.ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies")
    }

    /// A hundred blocks of honest trading in all assets but the idle one, with or without an attacker that moves the
    /// idle one. Then everyone trades everything.
    fn run(hostile: bool) -> (u64, Applied, Ledger) {
        let mut market = Market::new();
        let mut moved: f64 = 1.0;
        for wave in 0..100 {
            market.sequence += 1;
            let mut block = market.honest(ASSETS - 1, wave);
            if hostile {
                let rate = if wave % 3 == 0 { 1e-8 } else { 1e11 };
                block.extend(market.hostile(rate));
            }
            let applied = market.block(block);
            let at = |asset: u32| applied.batch.valuations[asset as usize].to_f64();
            moved = moved.max(at(IDLE) / at(1)).max(at(1) / at(IDLE));
        }
        assert!(!hostile || moved > 1e10, "the attack moves the valuation: {moved:e}");
        market.sequence += 1;
        let last = market.block(market.honest(ASSETS, 100));
        (last.report.as_ref().expect("it solved").spending.price_looks, last, market.ledger)
    }
}

#[test]
fn a_valuation_that_dust_moved_costs_honest_trading_nothing() {
    let (quiet_looks, quiet, _) = Market::run(false);
    let (looks, poisoned, _) = Market::run(true);
    assert!(quiet.batch.full() && poisoned.batch.full());
    // Prices cost at most half as much work again.
    assert!(2 * looks <= 3 * quiet_looks, "{looks} looks, {quiet_looks} without the attack");
    // No price of honest trades has moved by more than the commission.
    let rate = |applied: &Applied, asset: usize| applied.batch.valuations[asset].to_f64() / WORTH[asset];
    for asset in 0..ASSETS as usize {
        let [ours, theirs] = [&quiet, &poisoned].map(|applied| rate(applied, asset) / rate(applied, 0));
        assert!((ours / theirs - 1.0).abs() < 1e-3, "asset {asset}: {ours} and {theirs}");
    }
    assert_eq!(poisoned.batch.valuations[0].to_f64(), 1.0, "asset 0 is the unit of value");
}

#[test]
fn an_asset_that_nobody_offers_has_no_valuation() {
    let mut market = Market::new();
    market.sequence = 1;
    market.block(market.hostile(1e11));
    assert!(market.ledger.assets()[IDLE as usize].valuation.is_some());
    let prices: Vec<bool> = market.ledger.assets().iter().map(|asset| asset.valuation.is_some()).collect();
    assert_eq!(prices, [false, true, false, false, false, true]);
    // The rest of it is offered on only one side.
    market.sequence = 2;
    market.block(market.honest(4, 0));
    assert_eq!(market.ledger.assets()[IDLE as usize].valuation, None);
}
