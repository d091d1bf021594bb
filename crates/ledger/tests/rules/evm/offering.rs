//! Offers that contracts place: calls of them, and what rests.

use std::collections::BTreeMap;

use ledger::contracts::ethereum::U256;
use ledger::contracts::{EvmStatus, FIRST_CONTRACT_OFFER, OFFERS, OfferName, token_address};
use ledger::{Applied, Ledger, Offer, Pair, Place};
use primitives::{Address, AssetId, Price};

use super::asked::{input, of};
use super::{Chain, call, key};

pub const USD: AssetId = AssetId(0);
pub const EUR: AssetId = AssetId(1);
pub const SELL_EUR: Pair = Pair { sell: EUR, buy: USD };
pub const SELL_USD: Pair = Pair { sell: USD, buy: EUR };
pub const RICH: u64 = 1_000_000_000;

pub fn person(number: u8) -> Address {
    key(number).address()
}

pub fn token(asset: AssetId) -> U256 {
    of(token_address(asset))
}

pub fn placing(pair: Pair, amount: u64, asks: u64) -> Vec<u8> {
    let arguments = [token(pair.sell), token(pair.buy), U256::from(amount), U256::from(asks)];
    input("place(address,address,uint64,uint64)", &arguments)
}

pub fn cancelling(name: &OfferName) -> Vec<u8> {
    input("cancel(bytes32)", &[U256::from_be_bytes(name.to_word())])
}

pub fn place(from: u8, nonce: u64, pair: Pair, amount: u64, asks: u64) -> Vec<u8> {
    call(from, nonce, OFFERS, placing(pair, amount, asks))
}

pub fn name(pair: Pair, amount: u64, asks: u64, number: u64) -> OfferName {
    let limit = Price::ratio_rounding_up(asks, amount).expect("a price");
    OfferName { pair, limit, id: FIRST_CONTRACT_OFFER + number }
}

pub fn statuses(applied: &Applied) -> Vec<EvmStatus> {
    applied.contracts.receipts.iter().filter(|one| one.position.is_some()).map(|receipt| receipt.status).collect()
}

pub fn units(chain: &Chain, holder: &Address, asset: AssetId) -> u64 {
    chain.ledger.accounts().get(holder).map_or(0, |account| account.balance(asset))
}

/// The offers that rest, by pair and place.
pub fn resting(ledger: &Ledger) -> BTreeMap<(Pair, Place), u64> {
    let of = |(pair, offers): (Pair, &ledger::PairOffers)| {
        offers.iter().map(move |Offer { place, amount, .. }| ((pair, place), amount)).collect::<Vec<_>>()
    };
    ledger.book().iter().flat_map(of).collect()
}

pub fn fund(from: u8, nonce: u64, contract: Address, amount: u64) -> Vec<u8> {
    let data = input("transfer(address,uint256)", &[of(contract), U256::from(amount)]);
    call(from, nonce, token_address(EUR), data)
}
