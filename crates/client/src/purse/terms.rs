//! The terms of the lane's assets, by lane epoch, as a node tells them.
//!
//! Upon each look at a node the purse takes what it tells, and keeps it in its folder. Nothing proves it, and nothing
//! needs to: members refuse a payment on wrong terms before they reserve anything, and the ledger refuses a deposit. So
//! a lie costs an attempt, and another node tells the truth. What a purse shows to people is another matter: the name
//! and the decimals of an asset stay as the purse first knew them, and no two assets have one name.

use std::collections::BTreeMap;

use api::LaneTermsBody;
use payments::{AssetRule, HomeEpoch};
use primitives::{Amount, AssetId, LANE_DEPOSITS, format_units};

use super::error::{Invalid, PurseError};

/// An asset of the lane, on the terms of some epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneMoney {
    /// Its number.
    pub asset: AssetId,
    /// Its symbol.
    pub symbol: String,
    /// Decimal places shown to people.
    pub decimals: u8,
    /// Its fee, and the minimum of an output.
    pub rule: AssetRule,
}

impl LaneMoney {
    /// An amount in decimals with its symbol.
    pub fn money(&self, units: Amount) -> String {
        format!("{} {}", format_units(units, self.decimals), self.symbol)
    }
}

/// Terms of an asset from a lane epoch on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    money: LaneMoney,
    takes_deposits: bool,
}

/// What a node told last.
#[derive(Clone, Debug, Default)]
pub(super) struct ToldTerms {
    /// In the form in which it was told.
    bodies: Vec<LaneTermsBody>,
    terms: BTreeMap<(AssetId, HomeEpoch), Told>,
}

fn parse(body: &LaneTermsBody) -> Result<((AssetId, HomeEpoch), Told), Invalid> {
    let units = |text: &str| text.parse().map_err(|_| Invalid("number of units in the terms of an asset"));
    let asset = AssetId(body.number);
    let rule = AssetRule { least_units: units(&body.least_units)?, fee: units(&body.fee)? };
    let money = LaneMoney { asset, symbol: body.asset.clone(), decimals: body.decimals, rule };
    Ok(((asset, body.from), Told { money, takes_deposits: body.deposits == LANE_DEPOSITS[1] }))
}

impl ToldTerms {
    /// Parses what was told.
    ///
    /// # Errors
    /// [`Invalid`] names what is wrong.
    pub fn parse(bodies: Vec<LaneTermsBody>) -> Result<ToldTerms, Invalid> {
        let terms = bodies.iter().map(parse).collect::<Result<_, _>>()?;
        Ok(ToldTerms { bodies, terms })
    }

    /// As they were told.
    pub fn bodies(&self) -> &[LaneTermsBody] {
        &self.bodies
    }

    /// Checks that they call assets as these do that are known, each differently.
    ///
    /// # Errors
    /// [`PurseError::OtherAsset`].
    pub fn check_names(&self, known: &[LaneMoney], server: &str) -> Result<(), PurseError> {
        let all = || known.iter().chain(self.terms.values().map(|told| &told.money));
        let differs = |one: &LaneMoney, other: &LaneMoney| {
            (one.asset == other.asset) != (one.symbol == other.symbol)
                || one.asset == other.asset && one.decimals != other.decimals
        };
        let other = self.terms.values().map(|told| &told.money).find(|one| all().any(|other| differs(one, other)));
        let Some(LaneMoney { asset, symbol, decimals, .. }) = other.cloned() else { return Ok(()) };
        Err(PurseError::OtherAsset { server: server.into(), asset, symbol, decimals })
    }

    fn of_home(&self, asset: AssetId, home: HomeEpoch) -> Option<&Told> {
        self.terms.range((asset, 0)..=(asset, home)).next_back().map(|(_, told)| told)
    }

    /// Fee and least output of an asset in a home; `None` if nothing was told about it.
    pub fn rule(&self, asset: AssetId, home: HomeEpoch) -> Option<AssetRule> {
        self.of_home(asset, home).map(|told| told.money.rule)
    }

    /// Whether deposits are taken in an epoch; `None` if nothing was ever told.
    pub fn takes_deposits(&self, asset: AssetId, epoch: HomeEpoch) -> Option<bool> {
        (!self.terms.is_empty()).then(|| self.of_home(asset, epoch).is_some_and(|told| told.takes_deposits))
    }

    /// The assets, on their newest terms.
    pub fn assets(&self) -> Vec<LaneMoney> {
        let newest: BTreeMap<AssetId, &LaneMoney> =
            self.terms.iter().map(|((asset, _), told)| (*asset, &told.money)).collect();
        newest.into_values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(number: u32, asset: &str, from: HomeEpoch, fee: u64) -> LaneTermsBody {
        LaneTermsBody {
            asset: asset.into(),
            number,
            decimals: 2,
            from,
            least_units: "10".into(),
            fee: fee.to_string(),
            deposits: if fee < 9 { "taken" } else { "refused" }.into(),
            outflow_most: "0".into(),
            outflow_per_height: "0".into(),
        }
    }

    fn usd() -> LaneMoney {
        let rule = AssetRule { least_units: 1, fee: 0 };
        LaneMoney { asset: AssetId(0), symbol: "USD".into(), decimals: 2, rule }
    }

    #[test]
    fn a_home_has_the_last_terms_before_it() {
        let told = vec![body(0, "USD", 0, 1), body(7, "EUR.7", 4, 2), body(7, "EUR.7", 6, 9)];
        let terms = ToldTerms::parse(told).expect("sound");
        let fee = |number, home| terms.rule(AssetId(number), home).map(|rule| rule.fee);
        assert_eq!([fee(0, 9), fee(7, 3), fee(7, 5), fee(7, 6)], [Some(1), None, Some(2), Some(9)]);
        assert_eq!([4, 6].map(|epoch| terms.takes_deposits(AssetId(7), epoch)), [Some(true), Some(false)]);
        assert_eq!(terms.takes_deposits(AssetId(8), 9), Some(false), "an asset without terms");
        assert_eq!(ToldTerms::default().takes_deposits(AssetId(7), 9), None, "a node of an older version");
        assert_eq!(terms.assets().iter().map(|money| money.rule.fee).collect::<Vec<_>>(), [1, 9]);
    }

    /// The attack: a node calls a worthless asset by the name of one that the purse knows, or moves its point.
    #[test]
    fn no_node_renames_an_asset_that_the_purse_knows() {
        let check = |bodies| ToldTerms::parse(bodies).expect("sound").check_names(&[usd()], "a node");
        assert!(check(vec![body(0, "USD", 0, 1), body(7, "EUR.7", 4, 2)]).is_ok());
        let moved = LaneTermsBody { decimals: 0, ..body(0, "USD", 0, 1) };
        for wrong in [vec![body(7, "USD", 0, 1)], vec![body(0, "EUR", 0, 1)], vec![moved]] {
            assert!(matches!(check(wrong.clone()), Err(PurseError::OtherAsset { .. })), "{wrong:?}");
        }
        let twice = vec![body(7, "EUR", 0, 1), body(8, "EUR", 0, 1)];
        assert!(matches!(check(twice), Err(PurseError::OtherAsset { .. })));
        assert!(ToldTerms::parse(vec![LaneTermsBody { fee: "much".into(), ..body(0, "USD", 0, 1) }]).is_err());
    }
}
