//! The recorded chain of rules 15: assets are listed, trade, and close. How chains are recorded and replayed is in
//! [`crate::recorded`].

use ledger::{Genesis, Listing, ListingPolicy, ListingTerms, PoolTerms, Refusal, Snapshot};
use primitives::{
    Amount, AssetControl, AssetId, AssetListing, ClientId, Closing, Digest, Life, Operation, PoolKey, PoolOperation,
    Price, RULES_OF_LISTINGS,
};

use crate::charter::{World, account, genesis as plain};
use crate::recorded::{History, Seen, upgrade};

/// Who lists, and who does so in the same block.
const BANK: u8 = 4;
const OTHER: u8 = 5;
/// Who trades.
const TRADER: u8 = 1;
const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const LEAST: Amount = 4_096;

fn genesis() -> Genesis {
    let plain = plain();
    let assets = vec![Listing::new("USD", 2, account(0)), Listing::new("EUR", 2, account(OTHER))];
    let held = |person: u8| [USD, EUR].map(|asset| (account(person), asset, 10_000_000));
    Genesis {
        rules: RULES_OF_LISTINGS - 1,
        assets,
        balances: (0..6).flat_map(held).collect(),
        listings: ListingTerms { policy: ListingPolicy::Priced, fees: 3, assets_max: 8, notice: 8 },
        pools: Some(PoolTerms::default()),
        ..plain
    }
}

fn lists(symbol: &str, fees: u64) -> Operation {
    Operation::ListAsset(Box::new(AssetListing {
        symbol: symbol.into(),
        decimals: 2,
        control: AssetControl::Open,
        least_units: LEAST,
        supply_max: 1_000_000,
        document: Digest([15; 32]),
        fees,
    }))
}

fn offer(sell: AssetId, buy: AssetId, life: Life) -> Operation {
    Operation::CreateOffer { sell, buy, amount: 2 * LEAST, limit: Price::ONE, life, client: ClientId::NONE }
}

fn says(asset: AssetId, closing: Closing) -> Operation {
    Operation::CloseAsset { asset, closing }
}

/// One block with these operations, and what became of them.
fn block(world: &mut World, operations: &[(u8, Operation)]) -> Vec<Option<Refusal>> {
    let native = operations.iter().map(|(person, operation)| world.sign(*person, operation.clone())).collect();
    world.apply(native)
}

/// One block with these operations, all of which count.
fn done(world: &mut World, operations: &[(u8, Operation)]) {
    let refused = block(world, operations);
    assert!(refused.iter().all(Option::is_none), "{refused:?}");
}

/// The number of the listed asset whose name begins like this.
fn number(world: &World, symbol: &str) -> AssetId {
    let is_it = |asset: &ledger::Asset| asset.symbol.starts_with(symbol);
    AssetId(world.ledger.assets().iter().position(is_it).expect("it is listed") as u32)
}

pub fn of_listings() -> History {
    let mut world = World::new(&genesis());
    let state = Snapshot::of(&world.ledger).collect();
    world.until(2);
    let early = [(BANK, lists("GBP", 3)), (OTHER, says(EUR, Closing::Announce))];
    assert_eq!(block(&mut world, &early), [Some(Refusal::RULES_TO_COME); 2]);
    upgrade(&mut world, RULES_OF_LISTINGS);
    let gbp = lists_and_trades(&mut world);
    closes(&mut world, gbp);
    // What is closed leaves its number and its name, and its room to another.
    let fees = world.ledger.listing_fees();
    done(&mut world, &[(OTHER, lists("GBP", fees))]);
    let height = world.ledger.height();
    world.until(height + 20);
    (state, world.blocks)
}

/// Two assets are listed in one block; one of them trades, in offers and in a pool.
fn lists_and_trades(world: &mut World) -> AssetId {
    done(world, &[(BANK, lists("GBP", 3)), (OTHER, lists("JPY", 3))]);
    let gbp = number(world, "GBP");
    // Two of eight take two eighths.
    let refused = block(world, &[(BANK, lists("CHF", 3)), (OTHER, lists("U5D", 12))]);
    assert_eq!(refused, [Some(Refusal::LISTING_FEES), Some(Refusal::LOOK_ALIKE)]);
    done(world, &[(BANK, Operation::Issue { to: account(TRADER), asset: gbp, amount: 600_000 })]);
    let over = Operation::Issue { to: account(TRADER), asset: gbp, amount: 500_000 };
    assert_eq!(block(world, &[(BANK, over)]), [Some(Refusal::ISSUE_TOO_LARGE)]);
    let pool = PoolKey { a: EUR, b: gbp, class: 0 };
    let open = Operation::Pool(Box::new(PoolOperation::Open { pool, x: 200_000, y: 200_000 }));
    let limit = "0.9".parse().expect("a price");
    let sells = Operation::offer(gbp, USD, 9 * LEAST, limit);
    let buys = Operation::offer(USD, gbp, 5 * LEAST, limit);
    done(world, &[(TRADER, open), (TRADER, sells), (OTHER, buys), (OTHER, offer(EUR, gbp, Life::Rests))]);
    gbp
}

/// One asset closes, and what is its own comes home; another stays after all.
fn closes(world: &mut World, gbp: AssetId) {
    let jpy = number(world, "JPY");
    assert_eq!(block(world, &[(OTHER, says(gbp, Closing::Announce))]), [Some(Refusal::NOT_ISSUER)]);
    done(world, &[(BANK, says(gbp, Closing::Announce)), (OTHER, says(jpy, Closing::Announce))]);
    let last = world.ledger.listings().closes(gbp).expect("it closes");
    done(world, &[(OTHER, says(jpy, Closing::Revoke)), (TRADER, offer(gbp, EUR, Life::Until(last)))]);
    let outlives = offer(gbp, USD, Life::Rests);
    assert_eq!(block(world, &[(TRADER, outlives)]), [Some(Refusal::OUTLIVES_ASSET)]);
    world.until(last - 1);
    assert_eq!(block(world, &[(BANK, says(gbp, Closing::Revoke))]), [Some(Refusal::CLOSES_NOW)]);
    let issue = Operation::Issue { to: account(TRADER), asset: gbp, amount: 1 };
    let late = [(BANK, issue), (TRADER, offer(gbp, USD, Life::OneBatch))];
    assert_eq!(block(world, &late), [Some(Refusal::ASSET_CLOSED); 2]);
    let pool = PoolKey { a: EUR, b: gbp, class: 0 };
    let leave = PoolOperation::Leave { pool, shares: 1_000, least_a: 0, least_b: 0 };
    let pay = Operation::Pay { to: account(BANK), asset: gbp, amount: 700 };
    done(world, &[(TRADER, Operation::Pool(Box::new(leave))), (TRADER, pay)]);
    done(world, &[(BANK, Operation::Burn { asset: gbp, amount: 700 })]);
}

#[test]
fn the_chain_of_rules_15_has_all_that_they_brought_and_crosses_their_first_height() {
    let seen = Seen::of(RULES_OF_LISTINGS);
    let refused = [
        Refusal::RULES_TO_COME,
        Refusal::LISTING_FEES,
        Refusal::LOOK_ALIKE,
        Refusal::ISSUE_TOO_LARGE,
        Refusal::OUTLIVES_ASSET,
        Refusal::CLOSES_NOW,
        Refusal::ASSET_CLOSED,
    ];
    seen.has(&["list_asset", "close_asset", "open_pool", "leave", "burn", "issue"], &refused);
    assert!(seen.ended.contains("closed"), "offers of a closed asset returned: {:?}", seen.ended);
}
