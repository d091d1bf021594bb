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

/// Checks an accusation against the state before a block.
pub(super) fn check_accusation(state: &Venues, evidence: &VenueEvidence) -> Result<(), Refusal> {
    let report = &evidence.report;
    let venue = liable_venue(state, report.venue)?;
    check_unjudged(state, venue, report.incarnation, VenueMistake::EvidenceConvictsAgain)?;
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
pub(super) fn check_claim(state: &Venues, claim: &UnsettledFill) -> Result<(), Refusal> {
    let report = &claim.report;
    let venue = liable_venue(state, report.venue)?;
    check_unjudged(state, venue, report.incarnation, VenueMistake::ClaimsOfJudged)?;
    let (tree, keys) = incarnation_of(venue, report.venue, report.incarnation, Some(&claim.ended))
        .ok_or(Refusal::BAD_VENUE_EVIDENCE)?;
    if !keys.contains(&report.key) {
        return Err(Refusal::BAD_VENUE_EVIDENCE);
    }
    let is_first = !state.claimed.contains(&claimed_id(claim)) || state.makes(VenueMistake::ClaimsCountTwice);
    let is_claimable = report.index >= tree.count()
        && report.leaf == claim.leaf(&state.network)
        && is_open(state, fence_of(claim))
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
fn penalty_of(state: &Venues, claim: &UnsettledFill) -> Option<Amount> {
    let [buy, sell] = [&claim.buy.order, &claim.sell.order];
    let are_sides = buy.side != sell.side && buy.side == primitives::venue::VenueSide::Buy;
    let market = state.market(claim.report.venue, buy.market).filter(|_| are_sides && buy.market == sell.market)?;
    market.penalty_of(claim.fill.lots)
}

/// Convicts a venue: a tenth of all that is liable goes to the accounts that the reports name, and the rest is
/// burnt. Every incarnation up to the present one is judged.
pub(super) fn convict(state: &mut Venues, evidence: &VenueEvidence, step: &mut Step<'_>) {
    let keeps_leaving = state.makes(VenueMistake::WithdrawalsAreNotLiable);
    let venue = state.venue_mut(evidence.report.venue);
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
pub(super) fn charge(state: &mut Venues, claim: &UnsettledFill, step: &mut Step<'_>) {
    let penalty = penalty_of(state, claim).expect("the filter has checked it");
    let lost = forfeit(state.venue_mut(claim.report.venue), penalty);
    let to = state.makes(VenueMistake::ClaimsArePaid).then_some(claim.report.account);
    step.take_bond(to, lost);
    let (id, fence) = (claimed_id(claim), fence_of(claim));
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

fn claimed_id(claim: &UnsettledFill) -> ClaimedId {
    (claim.report.venue, claim.report.incarnation, claim.report.index)
}

fn fence_of(claim: &UnsettledFill) -> VenueMoment {
    let ended = &claim.ended.ended;
    VenueMoment { height: ended.height, time_ms: ended.time_ms }
}
