//! Accusations and claims.

use primitives::venue::{Contradicting, FillTree, ProvenEnd, UnsettledFill, VenueEvidence, VenueId};
use primitives::{Amount, PublicKey};
use proofs::{ClaimedId, Refusal, VenueMoment, VenueRecord, VenueRecordId};

use super::Venues;
use super::mistake::VenueMistake;
use super::records::forfeit;
use super::step::Step;

/// The part of a forfeited bond that the account of the report is paid.
const REWARDED: Amount = 10;

impl Venues {
    /// Checks an accusation against the state before a block.
    pub(super) fn check_accusation(&self, evidence: &VenueEvidence) -> Result<(), Refusal> {
        let report = &evidence.report;
        let venue = self.liable_venue(report.venue)?;
        self.check_unjudged(venue, report.incarnation, VenueMistake::EvidenceConvictsAgain)?;
        let incarnation = incarnation_of(venue, report.venue, report.incarnation, evidence.ended.as_ref());
        let (tree, keys) = incarnation.ok_or(Refusal::BAD_VENUE_EVIDENCE)?;
        let is_contradicted = match &evidence.contradicting {
            Contradicting::Tree(leaf, path) => report.is_contradicted(tree, leaf, path) == Ok(true),
            Contradicting::Report(other) => keys.contains(&other.key) && report.contradicts(other),
        };
        let is_proved = is_contradicted && keys.contains(&report.key);
        if is_proved { Ok(()) } else { Err(Refusal::BAD_VENUE_EVIDENCE) }
    }

    /// Checks a claim against the state before a block.
    pub(super) fn check_claim(&self, claim: &UnsettledFill) -> Result<(), Refusal> {
        let report = &claim.report;
        let venue = self.liable_venue(report.venue)?;
        self.check_unjudged(venue, report.incarnation, VenueMistake::ClaimsOfJudged)?;
        let (tree, keys) = incarnation_of(venue, report.venue, report.incarnation, Some(&claim.ended))
            .ok_or(Refusal::BAD_VENUE_EVIDENCE)?;
        if !keys.contains(&report.key) {
            return Err(Refusal::BAD_VENUE_EVIDENCE);
        }
        let is_first = !self.claimed.contains(&claimed_id(claim)) || self.makes(VenueMistake::ClaimsCountTwice);
        let is_claimable = report.index >= tree.count()
            && report.leaf == claim.leaf(&self.network)
            && self.is_open(fence_of(claim))
            && is_first
            && self.penalty_of(claim).is_some();
        if is_claimable { Ok(()) } else { Err(Refusal::BAD_CLAIM) }
    }

    fn liable_venue(&self, venue: VenueId) -> Result<&VenueRecord, Refusal> {
        let venue = self.venues.get(&venue).ok_or(Refusal::UNKNOWN_VENUE)?;
        if venue.liable() == 0 { Err(Refusal::NOTHING_BONDED) } else { Ok(venue) }
    }

    /// Reports of incarnations that were judged prove nothing: else the same bytes would burn every new bond.
    fn check_unjudged(&self, venue: &VenueRecord, incarnation: u32, unless: VenueMistake) -> Result<(), Refusal> {
        let is_judged = incarnation < venue.judged && !self.makes(unless);
        if is_judged { Err(Refusal::VENUE_CONVICTED) } else { Ok(()) }
    }

    /// Whether claims of an incarnation are still accepted.
    fn is_open(&self, fence: VenueMoment) -> bool {
        self.makes(VenueMistake::ClaimsNeverEnd) || !self.is_past_by(self.terms.bond_delay, fence)
    }

    /// What a claim costs; `None` if its orders are no two sides of a market.
    fn penalty_of(&self, claim: &UnsettledFill) -> Option<Amount> {
        let [buy, sell] = [&claim.buy.order, &claim.sell.order];
        let are_sides = buy.side != sell.side && buy.side == primitives::venue::VenueSide::Buy;
        let market = self.market(claim.report.venue, buy.market).filter(|_| are_sides && buy.market == sell.market)?;
        market.penalty_of(claim.fill.lots)
    }

    /// Convicts a venue: a tenth of all that is liable goes to the accounts that the reports name, and the rest is
    /// burnt. Every incarnation up to the present one is judged.
    pub(super) fn convict(&mut self, evidence: &VenueEvidence, step: &mut Step<'_>) {
        let keeps_leaving = self.makes(VenueMistake::WithdrawalsAreNotLiable);
        let venue = self.venue_mut(evidence.report.venue);
        let liable = if keeps_leaving { venue.bond } else { venue.liable() };
        let lost = forfeit(venue, liable);
        venue.judged = venue.incarnation.saturating_add(1);
        let reward = lost / REWARDED;
        let accounts = match &evidence.contradicting {
            Contradicting::Tree(..) => vec![evidence.report.account],
            Contradicting::Report(other) => vec![evidence.report.account, other.account],
        };
        let share = reward / accounts.len() as Amount;
        step.take_bond(None, lost - share * accounts.len() as Amount);
        accounts.into_iter().for_each(|account| step.take_bond(Some(account), share));
    }

    /// Makes a claimed fill cost its penalty, which is burnt: were it paid, a venue about to be convicted would empty
    /// its bond by claims of its own.
    pub(super) fn claim(&mut self, claim: &UnsettledFill, step: &mut Step<'_>) {
        let penalty = self.penalty_of(claim).expect("the filter has checked it");
        let lost = forfeit(self.venue_mut(claim.report.venue), penalty);
        let to = self.makes(VenueMistake::ClaimsArePaid).then_some(claim.report.account);
        step.take_bond(to, lost);
        let (id, fence) = (claimed_id(claim), fence_of(claim));
        self.touched.push(VenueRecordId::Claimed(id));
        self.claimed.insert(id, fence);
        self.queues.claims.insert((fence.height, id), ());
    }
}

/// Tree and report keys of an incarnation: those of the present one, or of a proven ended one.
fn incarnation_of<'a>(
    venue: &'a VenueRecord,
    number: VenueId,
    incarnation: u32,
    ended: Option<&'a ProvenEnd>,
) -> Option<(&'a FillTree, &'a [PublicKey])> {
    match ended {
        None => (incarnation == venue.incarnation).then_some((&venue.fills, &venue.report_keys[..])),
        Some(proven) => {
            let holds = proven.ended.incarnation == incarnation && proven.is_in(&venue.finals, number);
            holds.then_some((&proven.ended.tree, &proven.ended.report_keys[..]))
        }
    }
}

fn claimed_id(claim: &UnsettledFill) -> ClaimedId {
    (claim.report.venue, claim.report.incarnation, claim.report.index)
}

fn fence_of(claim: &UnsettledFill) -> VenueMoment {
    let ended = &claim.ended.ended;
    VenueMoment { height: ended.height, time_ms: ended.time_ms }
}
