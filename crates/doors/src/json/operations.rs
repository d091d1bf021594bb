//! Operations in JSON.

use api::{
    MandateBody, MandateCapBody, MarketMandateBody, OfferPlaceBody, OperationBody, OrderNumberBody, SessionCapBody,
    VenueMarketTermsBody, VenueOperationBody, VenueOperatorBody,
};
use primitives::venue::{FillReport, Mandate, MarketTerms, OrderNumber, VenueOperation, VenueOperator};
use primitives::{
    ClientId, OfferPlace, OfferReplacement, Operation, PoolKey, PoolOperation, SessionCap, SessionOperation,
    SessionTerms, to_hex,
};

use super::Symbols;

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", to_hex(bytes))
}

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
        match operation {
            &Operation::CreateAccount { account, key } => {
                OperationBody::CreateAccount { account: account.to_string(), key: key.to_string() }
            }
            &Operation::CreateOffer { sell, buy, amount, limit, life, client } => OperationBody::CreateOffer {
                sell: self.name(sell),
                buy: self.name(buy),
                amount: amount.to_string(),
                limit: limit.to_string(),
                life: life.to_string(),
                client: (client != ClientId::NONE).then(|| client.to_string()),
            },
            Operation::Cancel(places) => {
                OperationBody::Cancel { offers: places.iter().map(|place| self.offer_place(place)).collect() }
            }
            Operation::Replace(replace) => {
                let OfferReplacement { old, remains, amount, limit, life, client } = **replace;
                let OfferPlaceBody { sell, buy, limit: old_limit, offer } = self.offer_place(&old);
                OperationBody::Replace {
                    sell,
                    buy,
                    old_limit,
                    offer,
                    remains: remains.to_string(),
                    amount: amount.to_string(),
                    limit: limit.to_string(),
                    life: life.to_string(),
                    client: (client != ClientId::NONE).then(|| client.to_string()),
                }
            }
            &Operation::Exact { sell, buy, side, units, bound, client } => OperationBody::Exact {
                sell: self.name(sell),
                buy: self.name(buy),
                side: side.name().into(),
                units: units.to_string(),
                bound: bound.to_string(),
                client: (client != ClientId::NONE).then(|| client.to_string()),
            },
            &Operation::Pay { to, asset, amount } => {
                OperationBody::Pay { to: to.to_string(), asset: self.name(asset), amount: amount.to_string() }
            }
            &Operation::Issue { to, asset, amount } => {
                OperationBody::Issue { to: to.to_string(), asset: self.name(asset), amount: amount.to_string() }
            }
            &Operation::Burn { asset, amount } => {
                OperationBody::Burn { asset: self.name(asset), amount: amount.to_string() }
            }
            Operation::Stake(stake) => OperationBody::Stake {
                units: stake.units.to_string(),
                key: stake.key.to_string(),
                address: stake.address.clone(),
                possession: hex(&stake.possession.0),
            },
            Operation::Unstake { units } => OperationBody::Unstake { units: units.to_string() },
            Operation::Accuse(evidence) => OperationBody::Accuse {
                epoch: evidence.epoch.to_string(),
                validator: evidence.member,
                height: evidence.height.to_string(),
                statements: evidence.contradiction.name().into(),
            },
            Operation::Present { epoch } => OperationBody::Present { epoch: epoch.to_string() },
            &Operation::Withdraw { to, asset, amount } => {
                OperationBody::Withdraw { to: to.to_string(), asset: self.name(asset), amount: amount.to_string() }
            }
            Operation::Pool(operation) => self.on_pool(operation),
            Operation::Session(operation) => self.on_session(operation),
            Operation::Venue(operation) => OperationBody::Venue(self.at_venue(operation)),
            Operation::Lane(bytes) => OperationBody::Lane { post: hex(bytes) },
        }
    }

    fn on_pool(&self, operation: &PoolOperation) -> OperationBody {
        let PoolKey { a, b, class } = operation.pool();
        let (a, b) = (self.name(a), self.name(b));
        match *operation {
            PoolOperation::Open { x, y, .. } => {
                OperationBody::OpenPool { a, b, class, x: x.to_string(), y: y.to_string() }
            }
            PoolOperation::Provide { shares, most_a, most_b, .. } => {
                let (most_a, most_b) = (most_a.to_string(), most_b.to_string());
                OperationBody::Provide { a, b, class, shares: shares.to_string(), most_a, most_b }
            }
            PoolOperation::Leave { shares, least_a, least_b, .. } => {
                let (least_a, least_b) = (least_a.to_string(), least_b.to_string());
                OperationBody::Leave { a, b, class, shares: shares.to_string(), least_a, least_b }
            }
        }
    }

    fn on_session(&self, operation: &SessionOperation) -> OperationBody {
        match operation {
            SessionOperation::Authorize { terms, possession } => {
                let SessionTerms { slot, key, scope, until, alive, caps } = terms;
                let cap =
                    |cap: &SessionCap| SessionCapBody { asset: self.name(cap.asset), units: cap.units.to_string() };
                OperationBody::AuthorizeSession {
                    slot: *slot,
                    key: key.to_string(),
                    scope: scope.name().into(),
                    ends: until.to_string(),
                    alive: alive.to_string(),
                    caps: caps.iter().map(cap).collect(),
                    possession: hex(&possession.0),
                }
            }
            SessionOperation::Revoke { slot } => OperationBody::RevokeSession { slot: *slot },
            SessionOperation::Alive { slot, through } => {
                OperationBody::SessionAlive { slot: *slot, through: through.to_string() }
            }
        }
    }

    fn offer_place(&self, place: &OfferPlace) -> OfferPlaceBody {
        OfferPlaceBody {
            sell: self.name(place.sell),
            buy: self.name(place.buy),
            limit: place.limit.to_string(),
            offer: place.offer.to_string(),
        }
    }

    fn at_venue(&self, operation: &VenueOperation) -> VenueOperationBody {
        match *operation {
            VenueOperation::Open { venue, ref operator, fee_cap_ppm, bond } => VenueOperationBody::Open {
                venue,
                operator: venue_operator(operator),
                fee_cap_ppm,
                bond: bond.to_string(),
            },
            VenueOperation::List { venue, market, ref terms } => {
                VenueOperationBody::List { venue, market, terms: self.venue_market_terms(terms) }
            }
            VenueOperation::Fence { venue, incarnation } => VenueOperationBody::Fence { venue, incarnation },
            VenueOperation::ChangeOperator { venue, ref from, ref to } => {
                VenueOperationBody::ChangeOperator { venue, from: venue_operator(from), to: venue_operator(to) }
            }
            VenueOperation::Bond { venue, units } => VenueOperationBody::Bond { venue, units: units.to_string() },
            VenueOperation::Unbond { venue, units } => VenueOperationBody::Unbond { venue, units: units.to_string() },
            VenueOperation::Deposit { venue, asset, units } => {
                VenueOperationBody::Deposit { venue, asset: self.name(asset), units: units.to_string() }
            }
            VenueOperation::Collect { venue, asset, units } => {
                VenueOperationBody::Collect { venue, asset: self.name(asset), units: units.to_string() }
            }
            VenueOperation::Authorize { venue, key, ref mandate, possession } => VenueOperationBody::Authorize {
                venue,
                key: key.to_string(),
                mandate: self.mandate(mandate),
                possession: hex(&possession.0),
            },
            VenueOperation::Revoke { venue, key } => VenueOperationBody::Revoke { venue, key: key.to_string() },
            VenueOperation::RaiseFloor { venue, key, ref floor } => {
                VenueOperationBody::RaiseFloor { venue, key: key.to_string(), floor: order_number(floor) }
            }
            VenueOperation::Settle(ref settle) => VenueOperationBody::Settle {
                venue: settle.venue,
                incarnation: settle.incarnation,
                from: settle.from.to_string(),
                fills: settle.fills.len(),
            },
            VenueOperation::Accuse(ref evidence) => {
                let FillReport { venue, incarnation, index, account, .. } = evidence.report;
                let (index, account) = (index.to_string(), account.to_string());
                VenueOperationBody::Accuse { venue, incarnation, index, account }
            }
            VenueOperation::Claim(ref claim) => {
                let FillReport { venue, incarnation, index, account, .. } = claim.report;
                let (index, account) = (index.to_string(), account.to_string());
                VenueOperationBody::Claim { venue, incarnation, index, account }
            }
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
