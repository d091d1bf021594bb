//! What a transaction takes from its sender's balance, for messages to people.

use std::collections::BTreeMap;

use primitives::{Amount, AssetId, Transaction};

use super::footprint::{Footprint, Visitor};
use super::limits::Sum;

/// Units by asset that a transaction spends, with its fee.
#[derive(Default)]
struct Spending(BTreeMap<AssetId, Amount>);

impl Visitor<'_> for Spending {
    fn sum(&mut self, sum: Sum, amount: Amount) {
        if let Sum::Spent(asset) = sum {
            let spent = self.0.entry(asset).or_default();
            *spent = spent.saturating_add(amount);
        }
    }
}

/// Units by asset that a transaction takes from its sender's balance, on a chain with this fee (units of the first
/// asset).
/// What is malformed in it is ignored.
pub fn spending(transaction: &Transaction, fee: Amount) -> BTreeMap<AssetId, Amount> {
    let mut spending = Spending::default();
    // Without requirements only malformed operations end the footprint early.
    let _ = transaction.emit(fee, &mut spending);
    spending.0
}

#[cfg(test)]
mod tests {
    use primitives::{Address, Body, Operation, PublicKey, Signature};

    use super::*;

    #[test]
    fn spending_is_the_amount_and_the_fee() {
        let of = |operation| {
            let body = Body { chain: 1, account: Address([1; 20]), sequence: 1, until: 50_000, operation };
            let signed = Transaction::by_key(body, PublicKey([0; 32]), Signature([0; 64]));
            spending(&signed, 5).into_iter().map(|(asset, amount)| (asset.0, amount)).collect::<Vec<_>>()
        };
        let pay = |asset| Operation::Pay { to: Address([2; 20]), asset: AssetId(asset), amount: 70 };
        assert_eq!((of(pay(0)), of(pay(3))), (vec![(0, 75)], vec![(0, 5), (3, 70)]));
        assert_eq!(of(Operation::Unstake { units: 9 }), [(0, 5)]);
    }
}
