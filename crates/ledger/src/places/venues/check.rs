//! Checks of operations against the state before a block.

use primitives::venue::{KeyScope, Mandate, OrderNumber, Settle, VenueId, VenueOperation};
use primitives::{Address, Amount, AssetId, PublicKey};
use proofs::{Refusal, TradingKey, VenueRecord};

use super::Venues;
use super::evidence::{check_accusation, check_claim};
use super::mistake::VenueMistake;
use super::records::RAISES_MAX;

fn unless(refusal: Refusal, holds: bool) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(refusal) }
}

impl Venues {
    /// Checks an operation against the state before a block. Its bytes and signatures were checked before.
    pub(super) fn check(&self, sender: Address, operation: &VenueOperation) -> Result<(), Refusal> {
        match operation {
            VenueOperation::Open { venue, bond, .. } => self.check_open(*venue, *bond),
            VenueOperation::List { venue, market, terms } => {
                let record = self.owned(sender, *venue)?;
                unless(Refusal::WRONG_VENUE_NUMBER, record.markets == *market && *market < u32::MAX)?;
                unless(Refusal::MARKET_TERMS, terms.is_sound(self.terms.penalty_min))
            }
            VenueOperation::Fence { venue, incarnation } => {
                let is_present = self.owned(sender, *venue)?.incarnation == *incarnation;
                unless(Refusal::WRONG_INCARNATION, is_present && *incarnation < u32::MAX)
            }
            VenueOperation::ChangeOperator { venue, from, to } => {
                let record = self.owned(sender, *venue)?;
                unless(Refusal::NOT_OPERATOR, record.operator == *from)?;
                unless(Refusal::TOO_MANY_REPORT_KEYS, self.has_room_for_key(record, to))
            }
            VenueOperation::Bond { venue, .. } => self.owned(sender, *venue).map(|_| ()),
            VenueOperation::Unbond { venue, units } => {
                let record = self.owned(sender, *venue)?;
                unless(Refusal::BOND_LEAVES, record.leaving.is_none() && *units <= record.bond)
            }
            VenueOperation::Settle(settle) => self.check_settle(sender, settle),
            VenueOperation::Deposit { venue, .. } => self.known(*venue).map(|_| ()),
            VenueOperation::Collect { venue, asset, .. } => self.check_collect(sender, *venue, *asset),
            VenueOperation::Recall { venue, asset, account } => {
                self.known(*venue)?;
                unless(Refusal::NO_DEPOSIT, self.deposit(*venue, account, *asset).units() > 0)
            }
            VenueOperation::Authorize { venue, key, mandate, .. } => self.check_authorize(*venue, key, mandate),
            VenueOperation::Revoke { venue, key } => self.own_key(sender, *venue, key).map(|_| ()),
            VenueOperation::RaiseFloor { venue, key, floor } => {
                self.check_raise(self.own_key(sender, *venue, key)?, *floor)
            }
            VenueOperation::Accuse(evidence) => check_accusation(self, evidence),
            VenueOperation::Claim(claim) => check_claim(self, claim),
            VenueOperation::AccuseStep(evidence) => check_accusation(self, evidence),
            VenueOperation::ClaimStep(claim) => check_claim(self, claim),
        }
    }

    fn known(&self, venue: VenueId) -> Result<&VenueRecord, Refusal> {
        self.venues.get(&venue).ok_or(Refusal::UNKNOWN_VENUE)
    }

    fn owned(&self, sender: Address, venue: VenueId) -> Result<&VenueRecord, Refusal> {
        self.known(venue).and_then(|of| if of.owner == sender { Ok(of) } else { Err(Refusal::NOT_VENUE_OWNER) })
    }

    /// A key of the sender that is not revoked.
    fn own_key(&self, sender: Address, venue: VenueId, key: &PublicKey) -> Result<&TradingKey, Refusal> {
        let own = self.keys.get(&(venue, *key)).filter(|of| of.owner == sender && of.revoked.is_none());
        own.ok_or(Refusal::NOT_YOUR_KEY)
    }

    fn check_open(&self, venue: VenueId, bond: Amount) -> Result<(), Refusal> {
        let venues = self.venues.len() as u64;
        unless(Refusal::TOO_MANY_VENUES, venues < u64::from(self.terms.venues_max))?;
        unless(Refusal::WRONG_VENUE_NUMBER, u64::from(venue) == venues)?;
        unless(Refusal::BOND_TOO_LOW, bond >= self.terms.bond_min)
    }

    /// B1 by the chain's limit, and B2.
    fn check_settle(&self, sender: Address, settle: &Settle) -> Result<(), Refusal> {
        unless(Refusal::SETTLE_TOO_LONG, settle.encoded_len() <= self.terms.settle_bytes as usize)?;
        let venue = self.known(settle.venue)?;
        unless(Refusal::NOT_OPERATOR, venue.operator.account == sender)?;
        unless(Refusal::WRONG_INCARNATION, venue.incarnation == settle.incarnation)?;
        let is_judged = venue.judged > venue.incarnation && !self.makes(VenueMistake::SettlesAfterConviction);
        unless(Refusal::VENUE_CONVICTED, !is_judged)
    }

    fn check_collect(&self, sender: Address, venue: VenueId, asset: AssetId) -> Result<(), Refusal> {
        let deposit = self.deposit(venue, &sender, asset);
        unless(Refusal::COLLECTING, deposit.leaving.is_none())?;
        unless(Refusal::NO_DEPOSIT, deposit.free > 0)
    }

    fn check_authorize(&self, venue: VenueId, key: &PublicKey, mandate: &Mandate) -> Result<(), Refusal> {
        unless(Refusal::KEY_SCOPE, mandate.scope == KeyScope::Venue)?;
        self.known(venue)?;
        let has_all = mandate.markets.iter().all(|of| self.market(venue, of.market).is_some());
        unless(Refusal::UNKNOWN_MARKET, has_all)?;
        unless(Refusal::KEY_TAKEN, !self.keys.contains(&(venue, *key)))
    }

    fn check_raise(&self, key: &TradingKey, floor: OrderNumber) -> Result<(), Refusal> {
        let highest = key.raises.iter().map(|(_, floor)| *floor).fold(key.floor, OrderNumber::max);
        let waiting = key.raises.iter().filter(|(since, _)| !self.is_past(*since)).count();
        unless(Refusal::FLOOR_NOT_RAISED, floor > highest && waiting < RAISES_MAX)
    }
}
