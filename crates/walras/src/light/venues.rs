//! `walras light deposit` and `venue`: what the ledger has of venues, in a state that a quorum has signed.

use anyhow::Context;
use api::VenueProofBody;
use borsh::BorshDeserialize;
use ledger::{Genesis, VenueDeposit, VenueProof, VenueRecord, VenueRecordId};
use primitives::venue::VenueId;
use primitives::{Address, AssetId, Digest};
use serde_json::{Value, json};

use super::client::{Certified, Client, decode};
use crate::decimal::from_units;

impl Client {
    /// A deposit, or its absence.
    pub(super) fn deposit(
        &mut self,
        genesis: &Genesis,
        address: &Address,
        venue: VenueId,
        symbol: &str,
    ) -> anyhow::Result<Value> {
        let asset = genesis.assets.iter().position(|asset| asset.symbol == symbol);
        let asset = asset.with_context(|| format!("the genesis has no asset {symbol:?}"))?;
        let id = VenueRecordId::Deposit((venue, *address, AssetId(asset as u32)));
        let path = format!("/v1/accounts/{address}/deposits/{venue}/{symbol}/proof?certified=true");
        let (found, certified, time_ms) = self.record::<VenueDeposit>(&path, &id)?;
        let leaving = found.and_then(|deposit| deposit.leaving);
        let leaving = leaving.map(|leaving| json!({"units": leaving.units.to_string(), "since_height": leaving.since}));
        let proved = json!({
            "venue": venue,
            "account": address.to_string(),
            "asset": symbol,
            "free": found.unwrap_or_default().free.to_string(),
            "leaving": leaving,
            "state_root": certified.state.to_string(),
        });
        Ok(self.signed(proved, &certified, time_ms))
    }

    /// A venue, or its absence.
    pub(super) fn venue(&mut self, venue: VenueId) -> anyhow::Result<Value> {
        let path = format!("/v1/venues/{venue}/proof?certified=true");
        let (found, certified, time_ms) = self.record::<VenueRecord>(&path, &VenueRecordId::Venue(venue))?;
        let record = found.map(|record| {
            json!({
                "owner": record.owner.to_string(),
                "operator": record.operator.account.to_string(),
                "incarnation": record.incarnation,
                "report_keys": record.report_keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "fills": record.fills.count().to_string(),
                "peaks": record.fills.peaks().iter().map(Digest::to_string).collect::<Vec<_>>(),
                "bond": record.bond.to_string(),
                "is_convicted": record.judged > record.incarnation,
            })
        });
        let proved = json!({"venue": venue, "record": record, "state_root": certified.state.to_string()});
        Ok(self.signed(proved, &certified, time_ms))
    }

    /// A record of venues that the node proves, with the certified block.
    fn record<T: BorshDeserialize>(
        &mut self,
        path: &str,
        id: &VenueRecordId,
    ) -> anyhow::Result<(Option<T>, Certified, u64)> {
        let body: VenueProofBody = self.certified_answer(path)?;
        let proof: VenueProof = decode(&body.proof)?;
        let certified = self.certified_with(body.height, body.certificate.as_ref())?;
        let time_ms = self.check_fresh(&certified)?;
        self.ask_witnesses(&certified)?;
        let record = proof.verify(&certified.state, id).context("the proof is invalid: give another --server")?;
        Ok((record, certified, time_ms))
    }
}

/// The proved fact in words.
pub(super) fn in_words(proved: &Value, genesis: &Genesis) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_string();
    let money = |units: &Value, symbol: &str| {
        let decimals = genesis.assets.iter().find(|asset| asset.symbol == symbol).map_or(0, |asset| asset.decimals);
        let units = units.as_str().and_then(|units| units.parse().ok()).unwrap_or(0);
        format!("{} {symbol}", from_units(units, decimals))
    };
    let venue = &proved["venue"];
    if proved["account"].is_string() {
        let symbol = text(&proved["asset"]);
        let leaving = match &proved["leaving"]["units"] {
            Value::Null => String::new(),
            units => format!(" and {} that leaves", money(units, &symbol)),
        };
        let free = money(&proved["free"], &symbol);
        return format!("{} has {free} free{leaving} at venue {venue}", text(&proved["account"]));
    }
    let record = &proved["record"];
    if record.is_null() {
        return format!("there is no venue {venue}");
    }
    let first = genesis.assets.first().map_or("?", |asset| &asset.symbol);
    format!(
        "venue {venue} of {} has a bond of {} and {} fills in incarnation {}",
        text(&record["owner"]),
        money(&record["bond"], first),
        text(&record["fills"]),
        record["incarnation"]
    )
}
