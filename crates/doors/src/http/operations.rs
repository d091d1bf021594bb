//! Operations that a client asks for: the same bodies as in answers, read with nothing left over.

use api::{
    MandateBody, OfferPlaceBody, OperationBody, OrderNumberBody, SessionCapBody, VenueMarketTermsBody,
    VenueOperationBody, VenueOperatorBody,
};
use primitives::venue::{KeyScope, Mandate, MarketMandate, MarketTerms, OrderNumber, VenueOperation, VenueOperator};
use primitives::{
    Amount, ClientId, ExactSide, OfferPlace, OfferReplacement, Operation, PoolKey, PoolOperation, SessionCap,
    SessionOperation, SessionScope, SessionTerms, Signature, Stake,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::unsigned::{SIGNATURE, bytes_of_hex};
use super::{Api, number, parse};
use crate::kit::Failure;

/// Reads an operation, and refuses fields that it does not have: whoever misspells one would sign something else.
pub(super) fn operation<'de, D: Deserializer<'de>>(from: D) -> Result<OperationBody, D::Error> {
    let given = Value::deserialize(from)?;
    let body: OperationBody = serde_json::from_value(given.clone()).map_err(serde::de::Error::custom)?;
    let read = serde_json::to_value(&body).map_err(serde::de::Error::custom)?;
    match surplus(&given, &read, "operation") {
        Some(place) => Err(serde::de::Error::custom(format!("{place}: there is no such field"))),
        None => Ok(body),
    }
}

/// The place of the first field that was given and not read.
fn surplus(given: &Value, read: &Value, place: &str) -> Option<String> {
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => given.iter().find_map(|(name, value)| {
            let place = format!("{place}.{name}");
            read.get(name).map_or_else(|| Some(place.clone()), |read| surplus(value, read, &place))
        }),
        (Value::Array(given), Value::Array(read)) => given
            .iter()
            .zip(read)
            .enumerate()
            .find_map(|(at, (value, read))| surplus(value, read, &format!("{place}[{at}]"))),
        _ => None,
    }
}

fn units(name: &str, text: &str) -> Result<Amount, Failure> {
    number(name, text)
}

fn on_pool(operation: PoolOperation) -> Operation {
    Operation::Pool(Box::new(operation))
}

fn exact_side(text: &str) -> Result<ExactSide, Failure> {
    [ExactSide::Buy, ExactSide::Sell]
        .into_iter()
        .find(|side| side.name() == text)
        .ok_or_else(|| Failure::malformed(format!("side: {text:?} is neither \"buy\" nor \"sell\"")))
}

fn signature(name: &str, text: &str) -> Result<Signature, Failure> {
    let bytes = bytes_of_hex(name, text)?;
    let length = bytes.len();
    let bytes: [u8; SIGNATURE] = bytes
        .try_into()
        .map_err(|_| Failure::malformed(format!("{name}: a signature has {SIGNATURE} bytes, this one {length}")))?;
    Ok(Signature(bytes))
}

fn as_bytes(what: &str) -> Failure {
    Failure::malformed(format!(
        "operation: {what} is only shown in this form; to ask for it, give {{\"type\":\"encoded\",\"bytes\":\"0x…\"}}"
    ))
}

fn operator(name: &str, body: &VenueOperatorBody) -> Result<VenueOperator, Failure> {
    let account = parse(&format!("{name}.account"), &body.account)?;
    Ok(VenueOperator { account, report_key: parse(&format!("{name}.report_key"), &body.report_key)? })
}

impl Api {
    /// The operation of a body.
    pub(super) fn operation(&self, body: OperationBody) -> Result<Operation, Failure> {
        let asset = |symbol: &str| self.asset(symbol);
        let amount = |text: &str| units("amount", text);
        Ok(match body {
            OperationBody::CreateAccount { account, key } => {
                Operation::CreateAccount { account: parse("account", &account)?, key: parse("key", &key)? }
            }
            OperationBody::CreateOffer { sell, buy, amount: text, limit, life, client } => {
                let (sell, buy, amount) = (asset(&sell)?, asset(&buy)?, amount(&text)?);
                let client = client.map_or(Ok(ClientId::NONE), |client| parse("client", &client))?;
                let (limit, life) = (parse("limit", &limit)?, parse("life", &life)?);
                Operation::CreateOffer { sell, buy, amount, limit, life, client }
            }
            OperationBody::Cancel { offers } => {
                let place = |(at, body): (usize, &OfferPlaceBody)| self.offer_place(at, body);
                Operation::Cancel(offers.iter().enumerate().map(place).collect::<Result<_, Failure>>()?)
            }
            OperationBody::Replace { sell, buy, old_limit, offer, remains, amount: text, limit, life, client } => {
                let old_limit = parse("old_limit", &old_limit)?;
                let (sell, buy, offer) = (asset(&sell)?, asset(&buy)?, number("offer", &offer)?);
                let old = OfferPlace { sell, buy, limit: old_limit, offer };
                let client = client.map_or(Ok(ClientId::NONE), |client| parse("client", &client))?;
                let (remains, amount) = (units("remains", &remains)?, amount(&text)?);
                let (limit, life) = (parse("limit", &limit)?, parse("life", &life)?);
                Operation::Replace(Box::new(OfferReplacement { old, remains, amount, limit, life, client }))
            }
            OperationBody::Exact { sell, buy, side, units: text, bound, client } => {
                let (sell, buy, side) = (asset(&sell)?, asset(&buy)?, exact_side(&side)?);
                let client = client.map_or(Ok(ClientId::NONE), |client| parse("client", &client))?;
                let (units, bound) = (units("units", &text)?, units("bound", &bound)?);
                Operation::Exact { sell, buy, side, units, bound, client }
            }
            OperationBody::Pay { to, asset: of, amount: text } => {
                Operation::Pay { to: parse("to", &to)?, asset: asset(&of)?, amount: amount(&text)? }
            }
            OperationBody::Issue { to, asset: of, amount: text } => {
                Operation::Issue { to: parse("to", &to)?, asset: asset(&of)?, amount: amount(&text)? }
            }
            OperationBody::Burn { asset: of, amount: text } => {
                Operation::Burn { asset: asset(&of)?, amount: amount(&text)? }
            }
            OperationBody::Stake { units: text, key, address, possession } => {
                let (units, possession) = (units("units", &text)?, signature("possession", &possession)?);
                Operation::Stake(Box::new(Stake { units, key: parse("key", &key)?, address, possession }))
            }
            OperationBody::Unstake { units: text } => Operation::Unstake { units: units("units", &text)? },
            OperationBody::Accuse { .. } => return Err(as_bytes("an accusation")),
            OperationBody::Present { .. } => {
                let why = "operation: a validator's node posts its presence by itself, signed by the validator's key";
                return Err(Failure::malformed(why));
            }
            OperationBody::Withdraw { to, asset: of, amount: text } => {
                Operation::Withdraw { to: parse("to", &to)?, asset: asset(&of)?, amount: amount(&text)? }
            }
            OperationBody::OpenPool { a, b, class, x, y } => {
                let pool = PoolKey { a: asset(&a)?, b: asset(&b)?, class };
                on_pool(PoolOperation::Open { pool, x: units("x", &x)?, y: units("y", &y)? })
            }
            OperationBody::Provide { a, b, class, shares, most_a, most_b } => {
                let (pool, shares) = (PoolKey { a: asset(&a)?, b: asset(&b)?, class }, units("shares", &shares)?);
                let (most_a, most_b) = (units("most_a", &most_a)?, units("most_b", &most_b)?);
                on_pool(PoolOperation::Provide { pool, shares, most_a, most_b })
            }
            OperationBody::Leave { a, b, class, shares, least_a, least_b } => {
                let (pool, shares) = (PoolKey { a: asset(&a)?, b: asset(&b)?, class }, units("shares", &shares)?);
                let (least_a, least_b) = (units("least_a", &least_a)?, units("least_b", &least_b)?);
                on_pool(PoolOperation::Leave { pool, shares, least_a, least_b })
            }
            OperationBody::AuthorizeSession { slot, key, scope, ends, alive, caps, possession } => {
                let scopes = [SessionScope::Cancel, SessionScope::Trade];
                let scope = scopes
                    .into_iter()
                    .find(|one| one.name() == scope)
                    .ok_or_else(|| Failure::malformed(format!("scope: {scope:?} is neither `cancel` nor `trade`")))?;
                let cap = |of: &SessionCapBody| {
                    Ok(SessionCap { asset: asset(&of.asset)?, units: units("caps.units", &of.units)? })
                };
                let mut caps: Vec<SessionCap> = caps.iter().map(cap).collect::<Result<_, Failure>>()?;
                caps.sort();
                let (until, alive) = (number("ends", &ends)?, number("alive", &alive)?);
                let terms = SessionTerms { slot, key: parse("key", &key)?, scope, until, alive, caps: caps.into() };
                let possession = signature("possession", &possession)?;
                Operation::Session(Box::new(SessionOperation::Authorize { terms, possession }))
            }
            OperationBody::RevokeSession { slot } => Operation::Session(Box::new(SessionOperation::Revoke { slot })),
            OperationBody::SessionAlive { slot, through } => {
                let through = number("through", &through)?;
                Operation::Session(Box::new(SessionOperation::Alive { slot, through }))
            }
            OperationBody::Venue(at_venue) => Operation::Venue(Box::new(self.venue_operation(at_venue)?)),
            OperationBody::Lane { post } => Operation::Lane(bytes_of_hex("post", &post)?.into()),
            OperationBody::Encoded { bytes } => borsh::from_slice(&bytes_of_hex("bytes", &bytes)?)
                .map_err(|error| Failure::malformed(format!("bytes: not an operation: {error}")))?,
        })
    }

    fn offer_place(&self, at: usize, body: &OfferPlaceBody) -> Result<OfferPlace, Failure> {
        let OfferPlaceBody { sell, buy, limit, offer } = body;
        Ok(OfferPlace {
            sell: self.asset(sell)?,
            buy: self.asset(buy)?,
            limit: parse(&format!("offers[{at}].limit"), limit)?,
            offer: number(&format!("offers[{at}].offer"), offer)?,
        })
    }

    fn venue_operation(&self, body: VenueOperationBody) -> Result<VenueOperation, Failure> {
        let sum = |text: &str| units("units", text);
        Ok(match body {
            VenueOperationBody::Open { venue, operator: by, fee_cap_ppm, bond } => {
                let (operator, bond) = (operator("operator", &by)?, units("bond", &bond)?);
                VenueOperation::Open { venue, operator, fee_cap_ppm, bond }
            }
            VenueOperationBody::List { venue, market, terms } => {
                VenueOperation::List { venue, market, terms: self.market_terms(&terms)? }
            }
            VenueOperationBody::Fence { venue, incarnation } => VenueOperation::Fence { venue, incarnation },
            VenueOperationBody::ChangeOperator { venue, from, to } => {
                VenueOperation::ChangeOperator { venue, from: operator("from", &from)?, to: operator("to", &to)? }
            }
            VenueOperationBody::Bond { venue, units } => VenueOperation::Bond { venue, units: sum(&units)? },
            VenueOperationBody::Unbond { venue, units } => VenueOperation::Unbond { venue, units: sum(&units)? },
            VenueOperationBody::Deposit { venue, asset, units } => {
                VenueOperation::Deposit { venue, asset: self.asset(&asset)?, units: sum(&units)? }
            }
            VenueOperationBody::Collect { venue, asset, units } => {
                VenueOperation::Collect { venue, asset: self.asset(&asset)?, units: sum(&units)? }
            }
            VenueOperationBody::Authorize { venue, key, mandate, possession } => {
                let (key, mandate) = (parse("key", &key)?, self.mandate(&mandate)?);
                VenueOperation::Authorize { venue, key, mandate, possession: signature("possession", &possession)? }
            }
            VenueOperationBody::Revoke { venue, key } => VenueOperation::Revoke { venue, key: parse("key", &key)? },
            VenueOperationBody::RaiseFloor { venue, key, floor } => {
                let OrderNumberBody { incarnation, day, reference } = floor;
                let floor = OrderNumber { incarnation, day, reference };
                VenueOperation::RaiseFloor { venue, key: parse("key", &key)?, floor }
            }
            VenueOperationBody::Settle { .. } => return Err(as_bytes("a settle")),
            VenueOperationBody::Accuse { .. } => return Err(as_bytes("an accusation")),
            VenueOperationBody::Claim { .. } => return Err(as_bytes("a claim")),
        })
    }

    fn market_terms(&self, body: &VenueMarketTermsBody) -> Result<MarketTerms, Failure> {
        Ok(MarketTerms {
            base: self.asset(&body.base)?,
            quote: self.asset(&body.quote)?,
            lot_units: units("terms.lot_units", &body.lot_units)?,
            tick_units: units("terms.tick_units", &body.tick_units)?,
            lots_max: body.lots_max,
            fee_cap_ppm: body.fee_cap_ppm,
            penalty: units("terms.penalty", &body.penalty)?,
        })
    }

    fn mandate(&self, body: &MandateBody) -> Result<Mandate, Failure> {
        let scope = KeyScope::ALL.into_iter().find(|scope| scope.name() == body.scope).ok_or_else(|| {
            Failure::malformed(format!("mandate.scope: {:?} is none of venue, batch, cancel", body.scope))
        })?;
        let markets = body.markets.iter().map(|of| MarketMandate {
            market: of.market,
            tick_min: of.tick_min,
            tick_max: of.tick_max,
        });
        let cap = |of: &api::MandateCapBody| Ok((self.asset(&of.asset)?, units("mandate.caps.units", &of.units)?));
        let mut caps: Vec<_> = body.caps.iter().map(cap).collect::<Result<_, Failure>>()?;
        caps.sort_by_key(|(asset, _)| *asset);
        Ok(Mandate { scope, markets: markets.collect(), caps })
    }
}
