//! What receipts say of new offers, compared with the fills of their batch.

use ledger::{BlockReceipts, EndReason, EndedOffer, Pair, Place, Traded};
use primitives::Amount;

/// What a receipt says of a new offer agrees with the batch's fills.
pub(super) fn check_offer(
    (pair, place): (Pair, Place),
    amount: Amount,
    ends: bool,
    met: Traded,
    receipts: &BlockReceipts,
) -> Result<(), String> {
    let is_sudden = |ended: &EndedOffer| matches!(ended.why, EndReason::Lapsed | EndReason::Frozen);
    let is_it = |ended: &EndedOffer| (ended.pair, ended.place) == (pair, place) && is_sudden(ended);
    let ends = ends || receipts.batch.ended.iter().any(is_it);
    let fill = receipts.batch.fills_of(pair).iter().find(|fill| fill.place == place);
    let (sold, bought, left, returned) =
        fill.map_or((0, 0, amount, 0), |fill| (fill.sold, fill.bought, fill.left, fill.returned));
    let told = if ends { (sold, bought, 0, left + returned) } else { (sold, bought, left, returned) };
    if (met.sold, met.bought, met.left, met.returned) == told {
        Ok(())
    } else {
        Err(format!("{met:?} was reported, but {fill:?} was filled"))
    }
}
