//! Blocks, batches, transactions and their outcomes.

use ledger::{Cancelled, ExactOutcome, FillReason, Outcome, Pooled, Replaced, SealedFate};

use api::{BlockBody, OutcomeBody};
use readers::views::BlockSummary;

/// The reason of an offer's outcome.
pub(super) fn why(reason: FillReason) -> &'static str {
    match reason {
        FillReason::Filled => "filled",
        FillReason::Part => "part",
        FillReason::AtTheMargin => "at_the_margin",
        FillReason::AboveTheRate => "above_the_rate",
        FillReason::Rounding => "rounding",
        FillReason::NotTaken => "not_taken",
        FillReason::NotPlaced => "not_placed",
    }
}

/// An outcome.
pub fn outcome(outcome: &Outcome) -> OutcomeBody {
    match outcome {
        Outcome::Applied => OutcomeBody::Applied,
        Outcome::Void => OutcomeBody::Void,
        Outcome::Cancelled(Cancelled { found, missing }) => OutcomeBody::Cancelled { found: *found, missing: *missing },
        Outcome::Replaced(Replaced { remained, met }) => OutcomeBody::Replaced {
            remained: remained.to_string(),
            sold: met.sold.to_string(),
            bought: met.bought.to_string(),
            left: met.left.to_string(),
            returned: met.returned.to_string(),
            why: why(met.why).into(),
        },
        Outcome::Offered(met) => OutcomeBody::Offered {
            sold: met.sold.to_string(),
            bought: met.bought.to_string(),
            left: met.left.to_string(),
            returned: met.returned.to_string(),
            why: why(met.why).into(),
        },
        Outcome::Pooled(Pooled { a, b, shares }) => {
            OutcomeBody::Pooled { a: a.to_string(), b: b.to_string(), shares: shares.to_string() }
        }
        Outcome::Exact(ExactOutcome { sold, bought, returned, why }) => OutcomeBody::Exact {
            sold: sold.to_string(),
            bought: bought.to_string(),
            returned: returned.to_string(),
            why: why.name().into(),
        },
        Outcome::Listed(number) => OutcomeBody::Listed { number: number.0 },
        Outcome::Sealed(fate) => sealed(*fate),
        Outcome::Refused(refusal) => OutcomeBody::Refused { code: refusal.code().into(), message: refusal.to_string() },
    }
}

fn sealed(fate: SealedFate) -> OutcomeBody {
    let (became, operations, unpaid) = match fate {
        SealedFate::Opened(operations) => ("opened", operations, None),
        SealedFate::Garbage => ("garbage", 0, None),
        SealedFate::Unpaid(refusal) => ("unpaid", 0, Some(refusal)),
    };
    let code = unpaid.map(|refusal| refusal.code().into());
    OutcomeBody::Sealed { became: became.into(), operations, code, message: unpaid.map(|why| why.to_string()) }
}

/// The summary of a block.
pub fn block(summary: &BlockSummary) -> BlockBody {
    BlockBody {
        height: summary.height,
        block: summary.block.to_string(),
        parent: summary.parent.to_string(),
        time_ms: summary.time_ms,
        proposers: summary.proposers.clone(),
        transactions: summary.transactions,
        applied: summary.applied,
        refused: summary.transactions - summary.applied,
        ethereum: summary.ethereum,
        fills: summary.fills,
        pairs: summary.pairs,
        full: summary.full,
        receipts_root: summary.receipts_root.to_string(),
        state_root: summary.state_root.map(|root| root.to_string()),
        stages_ms: summary.stages_ms.iter().map(|(stage, ms)| ((*stage).into(), *ms)).collect(),
    }
}
