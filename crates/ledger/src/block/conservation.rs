//! What is burnt at the end of a block, and whether all units are where they must be.

use primitives::{Amount, AssetId, Height};
use proofs::Batch;

use super::fault::Fault;
use crate::places::PlaceSums;
use crate::places::sums::Sums;
use crate::state::Ledger;

/// Burns the auctioneer's surplus, and units of asset 0: fees and forfeited deposits.
pub(super) fn burn(
    ledger: &mut Ledger,
    height: Height,
    fees: i128,
    batch: &mut Batch,
    issued: &mut Sums,
) -> Result<(), Fault> {
    let mut kept = Sums::default();
    for trade in &batch.trades {
        kept.add(trade.pair.sell, i128::from(trade.sold));
        kept.add(trade.pair.buy, -i128::from(trade.bought));
    }
    for fill in &batch.pools {
        kept.add(fill.sell(), i128::from(fill.sold));
        kept.add(fill.buy(), -i128::from(fill.bought));
    }
    for trade in &batch.exacts {
        kept.add(trade.pair.sell, i128::from(trade.sold));
        kept.add(trade.pair.buy, -i128::from(trade.bought));
    }
    if let Some(asset) = (0..ledger.assets.len()).find(|asset| kept.get(*asset) < 0) {
        let units = kept.get(asset).unsigned_abs();
        return Err(Fault::Auctioneer { height, asset: AssetId(asset as u32), units });
    }
    kept.add(AssetId(0), fees);
    for (number, asset) in ledger.assets.iter_mut().enumerate() {
        let id = AssetId(number as u32);
        let kept = kept.get(number);
        issued.add(id, -kept);
        let units = i128::from(asset.issued) + issued.get(number);
        asset.issued = Amount::try_from(units).expect("issued units stay between zero and the cap");
        if kept > 0 {
            batch.burnt.push((id, kept as Amount));
        }
    }
    Ok(())
}

/// Checks that the places of custody changed together by as much as the issue. If a place that holds units is
/// missing in the list of places, its first block is a fault.
pub(super) fn check_conservation(
    ledger: &Ledger,
    height: Height,
    held: &PlaceSums,
    issued: &Sums,
) -> Result<(), Fault> {
    let held = held.named();
    for number in 0..ledger.assets.len() {
        let (sum, issued): (i128, _) = (held.iter().map(|(_, sums)| sums.get(number)).sum(), issued.get(number));
        if sum != issued {
            let places = held.iter().map(|(place, sums)| (*place, sums.get(number))).collect();
            return Err(Fault::Conservation { height, asset: AssetId(number as u32), places, issued });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use primitives::{Address, Fraction};
    use proofs::{Pair, PairTrade};

    use super::*;
    use crate::{Genesis, Listing};

    fn ledger() -> Ledger {
        let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, Address::default())).to_vec();
        let balances = vec![(Address([1; 20]), AssetId(0), 1_000), (Address([1; 20]), AssetId(1), 1_000)];
        let (fee, mu) = (5, Fraction::power_of_two(10));
        Ledger::new(&Genesis { fee, mu, assets, balances, ..Genesis::default() }).expect("sound")
    }

    /// The fees of the block do not cover the auctioneer's deficit either.
    #[test]
    fn an_auctioneer_who_lacks_a_unit_stops_the_block() {
        let pair = |sell, buy| Pair { sell: AssetId(sell), buy: AssetId(buy) };
        let trades = vec![
            PairTrade { pair: pair(0, 1), sold: 10, bought: 10 },
            PairTrade { pair: pair(1, 0), sold: 11, bought: 11 },
        ];
        let mut batch = Batch { trades, ..Batch::default() };
        let (mut ledger, mut issued) = (ledger(), Sums::default());
        let fault = burn(&mut ledger, 1, 35, &mut batch, &mut issued).expect_err("it pays 11 units of 10");
        assert_eq!(fault, Fault::Auctioneer { height: 1, asset: AssetId(0), units: 1 });
        batch.trades[0].sold = 11;
        burn(&mut ledger, 1, 35, &mut batch, &mut issued).expect("nothing is missing");
        assert_eq!(batch.burnt, [(AssetId(0), 35), (AssetId(1), 1)]);
    }
}
