//! The payment lane's part of a genesis file.

use ledger::{LaneAsset, LaneBls, LaneOutflow, LaneOutput, LaneTerms, Listing};
use primitives::{Address, AssetId, LANE_POST_BYTES_MAX, PublicKey, WEIGHT_BYTES};
use serde::{Deserialize, Serialize};

use crate::founders::Founding;

/// [`LaneTerms`], with symbols for assets and strings for amounts; all amounts are whole units.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LanePart {
    epoch_heights: u64,
    halt_heights: u64,
    case_deposit: String,
    lapse_penalty_millionths: u32,
    /// The keys of each member's shards.
    members: Vec<Vec<String>>,
    /// The keys that register the members' keys of later epochs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    registrars: Vec<String>,
    /// Which BLS keys they register: "aggregate" or "threshold"; no BLS keys if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bls: Option<String>,
    /// The accounts whose stakes answer for the members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    accounts: Vec<String>,
    assets: Vec<AssetPart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<OutputPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AssetPart {
    asset: String,
    least_units: String,
    fee: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outflow: Option<OutflowPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutflowPart {
    most: String,
    per_height: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputPart {
    to: String,
    asset: String,
    amount: String,
}

/// The field, and what is wrong with it.
type Fault = (String, String);

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|error: T::Err| (format!("lane.{field}"), error.to_string()))
}

fn find(symbols: &[String], field: &str, symbol: &str) -> Result<AssetId, Fault> {
    let unknown = || (format!("lane.{field}"), format!("no asset {symbol:?} is listed under assets"));
    symbols.iter().position(|known| known == symbol).map(|at| AssetId(at as u32)).ok_or_else(unknown)
}

impl LanePart {
    pub(crate) fn of(terms: &LaneTerms, listed: &[Listing]) -> LanePart {
        let symbol = |asset: AssetId| listed[asset.0 as usize].symbol.clone();
        let asset = |entry: &LaneAsset| AssetPart {
            asset: symbol(entry.asset),
            least_units: entry.least_units.to_string(),
            fee: entry.fee.to_string(),
            outflow: entry.outflow.map(|LaneOutflow { most, per_height }| OutflowPart {
                most: most.to_string(),
                per_height: per_height.to_string(),
            }),
        };
        let output = |&LaneOutput { to, asset, amount }: &LaneOutput| OutputPart {
            to: to.to_string(),
            asset: symbol(asset),
            amount: amount.to_string(),
        };
        LanePart {
            epoch_heights: terms.epoch_heights,
            halt_heights: terms.halt_heights,
            case_deposit: terms.case_deposit.to_string(),
            lapse_penalty_millionths: terms.lapse_penalty,
            members: terms.members.iter().map(|shards| shards.iter().map(PublicKey::to_string).collect()).collect(),
            registrars: terms.registrars.iter().map(PublicKey::to_string).collect(),
            bls: Some(terms.bls).filter(|bls| *bls != LaneBls::None).map(|bls| bls.name().into()),
            accounts: terms.accounts.iter().map(Address::to_string).collect(),
            assets: terms.assets.iter().map(asset).collect(),
            outputs: terms.outputs.iter().map(output).collect(),
        }
    }

    pub(crate) fn read(self, symbols: &[String]) -> Result<LaneTerms, Fault> {
        let asset = |(at, part): (usize, AssetPart)| -> Result<LaneAsset, Fault> {
            let outflow = part.outflow.map(|of| -> Result<LaneOutflow, Fault> {
                let most = parse(&format!("assets[{at}].outflow.most"), &of.most)?;
                let per_height = parse(&format!("assets[{at}].outflow.per_height"), &of.per_height)?;
                Ok(LaneOutflow { most, per_height })
            });
            Ok(LaneAsset {
                asset: find(symbols, &format!("assets[{at}].asset"), &part.asset)?,
                least_units: parse(&format!("assets[{at}].least_units"), &part.least_units)?,
                fee: parse(&format!("assets[{at}].fee"), &part.fee)?,
                outflow: outflow.transpose()?,
            })
        };
        let output = |(at, part): (usize, OutputPart)| -> Result<LaneOutput, Fault> {
            Ok(LaneOutput {
                to: parse(&format!("outputs[{at}].to"), &part.to)?,
                asset: find(symbols, &format!("outputs[{at}].asset"), &part.asset)?,
                amount: parse(&format!("outputs[{at}].amount"), &part.amount)?,
            })
        };
        let member = |(at, keys): (usize, &Vec<String>)| -> Result<Vec<PublicKey>, Fault> {
            let key = |(shard, key): (usize, &String)| parse(&format!("members[{at}][{shard}]"), key);
            keys.iter().enumerate().map(key).collect()
        };
        let account = |(at, account): (usize, &String)| parse(&format!("accounts[{at}]"), account);
        let registrar = |(at, key): (usize, &String)| parse(&format!("registrars[{at}]"), key);
        Ok(LaneTerms {
            epoch_heights: self.epoch_heights,
            halt_heights: self.halt_heights,
            case_deposit: parse("case_deposit", &self.case_deposit)?,
            lapse_penalty: self.lapse_penalty_millionths,
            members: self.members.iter().enumerate().map(member).collect::<Result<_, Fault>>()?,
            registrars: self.registrars.iter().enumerate().map(registrar).collect::<Result<_, Fault>>()?,
            bls: match self.bls {
                None => LaneBls::None,
                Some(name) => LaneBls::named(&name).ok_or_else(|| {
                    let known = format!("{name:?}: write \"aggregate\" or \"threshold\", or leave it out");
                    ("lane.bls".to_string(), known)
                })?,
            },
            accounts: self.accounts.iter().enumerate().map(account).collect::<Result<_, Fault>>()?,
            assets: self.assets.into_iter().enumerate().map(asset).collect::<Result<_, Fault>>()?,
            outputs: self.outputs.into_iter().enumerate().map(output).collect::<Result<_, Fault>>()?,
        })
    }
}

/// Duties have half of a sub-block, and the largest post of a member must fit there. A member that cannot say what it
/// owes loses its stake without a fault of its own.
pub(crate) fn check_network(founding: &Founding) -> Result<(), Fault> {
    let (bytes, least) = (founding.rules.payload_bytes as u64, 2 * (LANE_POST_BYTES_MAX as u64 + WEIGHT_BYTES));
    if bytes >= least {
        return Ok(());
    }
    let why = format!("{bytes}: with a payment lane choose at least {least}, or what a member owes might never fit");
    Err(("consensus.sub_block_bytes".into(), why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::founders::FoundingEngine;

    #[test]
    fn half_of_a_sub_block_holds_the_largest_post_of_a_member() {
        let mut founding = Founding::new(FoundingEngine::Dbft, Vec::new());
        founding.rules.payload_bytes = 264_192;
        assert_eq!(check_network(&founding), Ok(()));
        founding.rules.payload_bytes -= 1;
        let (field, why) = check_network(&founding).expect_err("too small");
        assert_eq!(field, "consensus.sub_block_bytes");
        assert!(why.starts_with("264191: with a payment lane choose at least 264192"), "{why}");
    }
}
