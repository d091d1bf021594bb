//! The executor of a validator: applies the superblocks that the validators have decided.

use std::sync::mpsc::Receiver;

use primitives::{Height, Transaction};
use rayon::prelude::*;
use replica::unsealing::SealState;
use replica::{Agreed, BlockJob, HandoverLog, Input, LifeInput, Past};
use store::RealDisk;

use crate::executor::Executor;
use crate::inbox::InboxSender;
use crate::pipeline::{apply, guard, show};
use crate::shared::{ExchangeError, Shared};

/// What the executor of a validator works with.
pub(crate) struct Execution {
    pub past: Past<RealDisk>,
    pub handovers: HandoverLog<RealDisk>,
    pub jobs: Receiver<BlockJob>,
    pub consensus: InboxSender,
}

/// The executor thread.
pub(crate) fn execute(shared: &Shared, execution: Execution) {
    guard(shared, execute_all(shared, execution));
}

fn execute_all(shared: &Shared, execution: Execution) -> Result<(), ExchangeError> {
    let Execution { past, mut handovers, jobs, consensus } = execution;
    let mut executor = Executor::new(shared)?;
    for job in jobs {
        match job {
            BlockJob::Compare(height) => {
                next_agreed(shared).is_logged(&past)?;
                consensus.push_result(Input::Applied { height, time_ms: None });
                shared.jobs.tell(LifeInput::Compared(height));
            }
            BlockJob::Keep { epoch, height } => {
                keep_handover(shared, &mut handovers, epoch, height)?;
                shared.jobs.tell(LifeInput::Kept(epoch));
            }
            BlockJob::Build(height) => build(shared, &mut executor, height),
            BlockJob::Apply { height, keeps_state } => apply(shared, &mut executor, height, keeps_state)?,
            BlockJob::Show(height) => {
                show(shared, &mut executor, height, |shared| due_handover(shared, &handovers))?;
                let (time_ms, seals) = {
                    let ledger = shared.read_ledger();
                    (Some(ledger.time_ms()), SealState::of(&ledger))
                };
                if let Some(seals) = seals {
                    consensus.push_result(Input::Seals(Box::new(seals)));
                }
                consensus.push_result(Input::Applied { height, time_ms });
            }
            other => unreachable!("{other:?} is not for the executor"),
        }
    }
    Ok(())
}

/// Makes the block of the decided superblock whose turn it is; signatures that nobody has checked are checked here.
fn build(shared: &Shared, executor: &mut Executor, height: Height) {
    let (agreed, foundation) = (next_agreed(shared), executor.foundation());
    let (block, ids) = executor.run(|| {
        let block = agreed.block(&foundation, |slot, payload| shared.seat.verified.claim(slot, payload));
        let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
        let ids = transactions.par_iter().map(|transaction| transaction.id()).collect();
        (block, ids)
    });
    let block = executor.begin(block, ids);
    shared.jobs.leave(LifeInput::Built(height), |shelf| shelf.block = Some(block));
}

/// The decided superblock whose turn it is.
fn next_agreed(shared: &Shared) -> Agreed {
    shared.jobs.take(|shelf| shelf.agreed.pop_front()).expect("one for each decided height")
}

/// The epoch whose handover needs the registry after the last applied block, if there is one and its block is held.
pub(crate) fn due_handover(shared: &Shared, handovers: &HandoverLog<RealDisk>) -> Result<Option<u64>, ExchangeError> {
    let (height, due) = {
        let ledger = shared.read_ledger();
        (ledger.height(), handovers.held.due(&ledger))
    };
    let Some(epoch) = due else { return Ok(None) };
    let is_held = shared.archive.block(height)?.is_some();
    if !is_held {
        tracing::warn!(epoch, height, "cannot store the handover to this epoch: this node never had its block");
    }
    Ok(due.filter(|_| is_held))
}

/// Stores the registry after a block whose receipts are archived and whose changes are in the tries.
fn keep_handover(
    shared: &Shared,
    handovers: &mut HandoverLog<RealDisk>,
    epoch: u64,
    height: Height,
) -> Result<(), ExchangeError> {
    let receipts = shared.receipts(height)?.expect("they are archived").root;
    let kept = shared.with_roots(|ledger, roots| handovers.keep(epoch, ledger, roots, receipts));
    Ok(kept.unwrap_or(Ok(()))?)
}
