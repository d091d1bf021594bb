//! What became of each native transaction of a block.

use std::collections::BTreeSet;

use primitives::{Address, Amount, AssetId, Operation, Sequence, Transaction};
use proofs::{Cancelled, Outcome, Refusal, Replaced, Traded as Met};

use super::filter::Filtered;
use super::settle::PairOutcome;
use crate::places::pools::PoolTurn;

/// Marks what the operations on pools did; those that found no room did nothing.
pub(super) fn mark_pooled(
    outcomes: &mut [Outcome],
    filtered: &Filtered,
    transactions: &[&Transaction],
    pools: &PoolTurn,
) {
    for admitted in filtered.admitted.iter().flatten() {
        let body = &transactions[admitted.index as usize].body;
        if matches!(body.operation, Operation::Pool(_)) {
            let pooled = pools.outcome((body.account, body.sequence));
            outcomes[admitted.index as usize] = pooled.map_or(Outcome::Void, Outcome::Pooled);
        }
    }
}

/// Marks the operations at venues, on pools and on keys, what accounts say about rules and references, the ends of
/// assets, words about holders and recoveries, and the replacements that pay and do nothing.
pub(super) fn mark_void(
    outcomes: &mut [Outcome],
    filtered: &Filtered,
    transactions: &[&Transaction],
    void: &BTreeSet<(Address, Sequence)>,
) {
    for admitted in filtered.admitted.iter().flatten().filter(|admitted| admitted.is_idle || !void.is_empty()) {
        let body = &transactions[admitted.index as usize].body;
        let is_void = admitted.is_idle || void.contains(&(body.account, body.sequence));
        if is_void && is_voidable(&body.operation) {
            outcomes[admitted.index as usize] = Outcome::Void;
        }
    }
}

/// Marks the listings, each with the number of its asset: those from `next` on, by id.
pub(super) fn mark_listed(outcomes: &mut [Outcome], filtered: &Filtered, transactions: &[&Transaction], next: usize) {
    let is_listing = |index: &u32| matches!(transactions[*index as usize].body.operation, Operation::ListAsset(_));
    let listings = filtered.admitted.iter().flatten().map(|admitted| admitted.index).filter(is_listing);
    let mut listings: Vec<_> = listings.map(|index| (transactions[index as usize].id(), index)).collect();
    listings.sort_unstable();
    let numbers = (next as u32..).map(AssetId);
    listings.iter().zip(numbers).for_each(|((_, at), number)| outcomes[*at as usize] = Outcome::Listed(number));
}

fn is_voidable(operation: &Operation) -> bool {
    use Operation::{Approve, SealDuty, SetReceiving, Unapprove};
    let says = matches!(operation, Approve { .. } | Unapprove { .. } | SealDuty { .. } | SetReceiving { .. });
    let changes_keys = operation.keys_of().is_some();
    let closes = matches!(operation, Operation::CloseAsset { .. });
    let votes = matches!(operation, Operation::Propose(_) | Operation::Vote { .. });
    let controls = matches!(operation, Operation::SetHolder { .. } | Operation::Recover(_));
    says || changes_keys
        || closes
        || votes
        || controls
        || matches!(operation, Operation::Venue(_) | Operation::Replace(_) | Operation::Pool(_) | Operation::Session(_))
}

/// The outcomes before pools, exact orders, and operations that do nothing are marked.
pub(super) fn outcomes(
    transactions: &[&Transaction],
    filtered: &Filtered,
    pairs: &[PairOutcome],
    replaced: &[(u32, Amount)],
) -> Vec<Outcome> {
    let refused = |refusal: &Option<Refusal>| refusal.map_or(Outcome::Applied, Outcome::Refused);
    let mut outcomes: Vec<Outcome> = filtered.refusals.iter().map(refused).collect();
    for admitted in filtered.admitted.iter().flatten() {
        if let Operation::Cancel(places) = &transactions[admitted.index as usize].body.operation {
            let missing = places.len() as u8 - admitted.found;
            outcomes[admitted.index as usize] = Outcome::Cancelled(Cancelled { found: admitted.found, missing });
        }
    }
    for (index, traded) in pairs.iter().flat_map(|pair| &pair.met) {
        outcomes[*index as usize] = Outcome::Offered(*traded);
    }
    for (index, remained) in replaced {
        let outcome = &mut outcomes[*index as usize];
        let met = if let Outcome::Offered(met) = outcome { *met } else { Met::NOT_PLACED };
        *outcome = Outcome::Replaced(Replaced { remained: *remained, met });
    }
    outcomes
}
