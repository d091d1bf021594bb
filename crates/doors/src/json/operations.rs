//! Operations in JSON.

use api::{
    MandateBody, MandateCapBody, MarketMandateBody, OperationBody, OrderNumberBody, VenueMarketTermsBody,
    VenueOperatorBody,
};
use primitives::operations::{FieldKind, FieldValue, OperationField};
use primitives::venue::{Mandate, MarketTerms, OrderNumber, VenueOperator};
use primitives::{ClientId, Operation, to_hex};
use serde_json::Value as Json;

use super::Symbols;

/// The account and the report key of a venue.
pub fn venue_operator(operator: &VenueOperator) -> VenueOperatorBody {
    VenueOperatorBody { account: operator.account.to_string(), report_key: operator.report_key.to_string() }
}

/// The number of an order.
pub fn order_number(number: &OrderNumber) -> OrderNumberBody {
    let OrderNumber { incarnation, day, reference } = *number;
    OrderNumberBody { incarnation, day, reference }
}

impl Symbols {
    /// An operation.
    pub fn operation(&self, operation: &Operation) -> OperationBody {
        let row = operation.row();
        OperationBody::of(row, self.fields(row.fields, operation.values()))
    }

    /// The fields that JSON has, with their values; a client that names nothing is left out.
    fn fields(&self, fields: &'static [OperationField], values: Vec<FieldValue>) -> Vec<(&'static str, Json)> {
        let named = fields.iter().zip(values).filter(|(_, value)| *value != FieldValue::Client(ClientId::NONE));
        named.map(|(field, value)| (field.name, self.value(field.kind, value))).collect()
    }

    fn value(&self, kind: FieldKind, value: FieldValue) -> Json {
        let hex = |bytes: &[u8]| format!("0x{}", to_hex(bytes)).into();
        let object = |fields, values| Json::Object(self.fields(fields, values).into_iter().map(keyed).collect());
        match (kind, value) {
            (_, FieldValue::Address(address)) => address.to_string().into(),
            (_, FieldValue::Key(key)) => key.to_string().into(),
            (_, FieldValue::Signature(signature)) => hex(&signature.0),
            (_, FieldValue::Asset(asset)) => self.name(asset).into(),
            (FieldKind::Short(_), FieldValue::Number(number)) => number.into(),
            (_, FieldValue::Number(number)) => number.to_string().into(),
            (_, FieldValue::Price(price)) => price.to_string().into(),
            (_, FieldValue::Life(life)) => life.to_string().into(),
            (_, FieldValue::Client(client)) => client.to_string().into(),
            (_, FieldValue::Choice(text)) => text.into(),
            (_, FieldValue::Text(text)) => text.into(),
            (_, FieldValue::Bytes(bytes)) => hex(&bytes),
            (FieldKind::List(list), FieldValue::List(entries)) => {
                entries.into_iter().map(|entry| object(list.fields, entry)).collect()
            }
            (FieldKind::Group(fields), FieldValue::Group(values)) => object(fields, values),
            (_, FieldValue::List(_) | FieldValue::Group(_)) => unreachable!("lists and groups have their kinds"),
        }
    }

    /// The terms of a market of a venue.
    pub fn venue_market_terms(&self, terms: &MarketTerms) -> VenueMarketTermsBody {
        VenueMarketTermsBody {
            base: self.name(terms.base),
            quote: self.name(terms.quote),
            lot_units: terms.lot_units.to_string(),
            tick_units: terms.tick_units.to_string(),
            lots_max: terms.lots_max,
            fee_cap_ppm: terms.fee_cap_ppm,
            penalty: terms.penalty.to_string(),
        }
    }

    /// What a trading key may do.
    pub fn mandate(&self, mandate: &Mandate) -> MandateBody {
        let markets = mandate.markets.iter().map(|of| MarketMandateBody {
            market: of.market,
            tick_min: of.tick_min,
            tick_max: of.tick_max,
        });
        let caps = mandate
            .caps
            .iter()
            .map(|(asset, units)| MandateCapBody { asset: self.name(*asset), units: units.to_string() });
        MandateBody { scope: mandate.scope.name().into(), markets: markets.collect(), caps: caps.collect() }
    }
}

fn keyed((name, value): (&str, Json)) -> (String, Json) {
    (name.into(), value)
}
