//! Accusations and claims.

use primitives::venue::{Contradicting, FillTree, ProvenEnd, SignedReport, UnsettledFill, VenueEvidence, VenueId};
use primitives::{Address, Amount, PublicKey};
use proofs::{ClaimedId, Refusal, VenueMoment, VenueRecord, VenueRecordId};

use super::Venues;
use super::mistake::VenueMistake;
use super::records::forfeit;
use super::step::Step;

/// The part of a forfeited bond that the account of the report is paid.
const REWARDED: Amount = 10;

/// Checks an accusation against the state before a block.
pub(super) fn check_accusation<R: SignedReport>(state: &Venues, evidence: &VenueEvidence<R>) -> Result<(), Refusal> {
    let report = evidence.report.fill();
    let venue = liable_venue(state, report.venue)?;
    check_unjudged(state, venue, report.incarnation, VenueMistake::EvidenceConvictsAgain)?;
    let incarnation = incarnation_of(venue, report.venue, report.incarnation, evidence.ended.as_ref());
    let (tree, keys) = incarnation.ok_or(Refusal::BAD_VENUE_EVIDENCE)?;
    let is_contradicted = match &evidence.contradicting {
        Contradicting::Tree(leaf, path) => evidence.report.is_contradicted(tree, leaf, path) == Ok(true),
        Contradicting::Report(other) => {
            let is_ignored = state.makes(VenueMistake::StepsSignedTwice) && other.fill().index != report.index;
            evidence.report.contradicts(other) && !is_ignored
        }
    };
    let is_proved = is_contradicted && evidence.reports().all(|report| keys.contains(&report.key()));
    if is_proved { Ok(()) } else { Err(Refusal::BAD_VENUE_EVIDENCE) }
}

/// Checks a claim against the state before a block.
pub(super) fn check_claim<R: SignedReport>(state: &Venues, claim: &UnsettledFill<R>) -> Result<(), Refusal> {
    let report = claim.report.fill();
    let venue = liable_venue(state, report.venue)?;
    check_unjudged(state, venue, report.incarnation, VenueMistake::ClaimsOfJudged)?;
    let (tree, keys) = incarnation_of(venue, report.venue, report.incarnation, Some(&claim.ended))
        .ok_or(Refusal::BAD_VENUE_EVIDENCE)?;
    if !keys.contains(&claim.report.key()) {
        return Err(Refusal::BAD_VENUE_EVIDENCE);
    }
    let is_first = !state.claimed.contains(&claimed_id(&claim.report)) || state.makes(VenueMistake::ClaimsCountTwice);
    let is_claimable = report.index >= tree.count()
        && report.leaf == claim.leaf(&state.network)
        && is_open(state, fence_of(&claim.ended))
        && is_first
        && penalty_of(state, claim).is_some();
    if is_claimable { Ok(()) } else { Err(Refusal::BAD_CLAIM) }
}

fn liable_venue(state: &Venues, venue: VenueId) -> Result<&VenueRecord, Refusal> {
    let venue = state.venues.get(&venue).ok_or(Refusal::UNKNOWN_VENUE)?;
    if venue.liable() == 0 { Err(Refusal::NOTHING_BONDED) } else { Ok(venue) }
}

/// Reports of incarnations that were judged prove nothing: else the same bytes would burn every new bond.
fn check_unjudged(state: &Venues, venue: &VenueRecord, incarnation: u32, unless: VenueMistake) -> Result<(), Refusal> {
    let is_judged = incarnation < venue.judged && !state.makes(unless);
    if is_judged { Err(Refusal::VENUE_CONVICTED) } else { Ok(()) }
}

/// Whether claims of an incarnation are still accepted.
fn is_open(state: &Venues, fence: VenueMoment) -> bool {
    state.makes(VenueMistake::ClaimsNeverEnd) || !state.is_past_by(state.terms.bond_delay, fence)
}

/// What a claim costs; `None` if its orders are no two sides of a market.
fn penalty_of<R: SignedReport>(state: &Venues, claim: &UnsettledFill<R>) -> Option<Amount> {
    let [buy, sell] = [&claim.buy.order, &claim.sell.order];
    let are_sides = buy.side != sell.side && buy.side == primitives::venue::VenueSide::Buy;
    let market =
        state.market(claim.report.fill().venue, buy.market).filter(|_| are_sides && buy.market == sell.market)?;
    market.penalty_of(claim.fill.lots)
}

/// Convicts a venue: a tenth of all that is liable goes to the accounts that the reports name, and the rest is
/// burnt. Every incarnation up to the present one is judged.
pub(super) fn convict<R: SignedReport>(state: &mut Venues, evidence: &VenueEvidence<R>, step: &mut Step<'_>) {
    let keeps_leaving = state.makes(VenueMistake::WithdrawalsAreNotLiable);
    let venue = state.venue_mut(evidence.report.fill().venue);
    let liable = if keeps_leaving { venue.bond } else { venue.liable() };
    let lost = forfeit(venue, liable);
    venue.judged = venue.incarnation.saturating_add(1);
    let reward = lost / REWARDED;
    let accounts: Vec<Address> = evidence.reports().map(|report| report.fill().account).collect();
    let share = reward / accounts.len() as Amount;
    step.take_bond(None, lost - share * accounts.len() as Amount);
    accounts.into_iter().for_each(|account| step.take_bond(Some(account), share));
}

/// Makes a claimed fill cost its penalty, which is burnt: were it paid, a venue about to be convicted would empty
/// its bond by claims of its own.
pub(super) fn charge<R: SignedReport>(state: &mut Venues, claim: &UnsettledFill<R>, step: &mut Step<'_>) {
    let penalty = penalty_of(state, claim).expect("the filter has checked it");
    let lost = forfeit(state.venue_mut(claim.report.fill().venue), penalty);
    let to = state.makes(VenueMistake::ClaimsArePaid).then_some(claim.report.fill().account);
    step.take_bond(to, lost);
    let (id, fence) = (claimed_id(&claim.report), fence_of(&claim.ended));
    state.touched.push(VenueRecordId::Claimed(id));
    state.claimed.insert(id, fence);
    state.queues.claims.insert((fence.height, id), ());
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

/// By which a fill is claimed once.
pub(super) fn claimed_id(report: &impl SignedReport) -> ClaimedId {
    let fill = report.fill();
    (fill.venue, fill.incarnation, fill.index)
}

fn fence_of(end: &ProvenEnd) -> VenueMoment {
    VenueMoment { height: end.ended.height, time_ms: end.ended.time_ms }
}
