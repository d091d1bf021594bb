//! The publisher: answers waiting clients, publishes blocks, and archives their receipts.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use member::LaneBlock;
use primitives::Transaction;
use readers::CommittedBlock;
use readers::cache::ProvenReceipts;
use readers::views::BlockSummary;
use replica::{BlockJob, Input, LifeInput, receipts_with};
use store::StoreError;

use crate::block_jobs::Made;
use crate::inbox::InboxSender;
use crate::shared::{ExchangeError, LaneHeard, Shared};

/// The publisher thread.
pub(crate) fn publish(
    shared: &Shared,
    jobs: &Receiver<BlockJob>,
    consensus: Option<&InboxSender>,
) -> Result<(), ExchangeError> {
    for job in jobs {
        let BlockJob::Publish(height) = job else { unreachable!("{job:?} is not for the publisher") };
        let made = shared.jobs.take(|shelf| shelf.made.remove(&height)).expect("it is shown");
        publish_one(shared, made, consensus)?;
        shared.jobs.tell(LifeInput::Published(height));
    }
    Ok(())
}

/// A line about a block in the log; of empty ones only now and then, with their number.
fn log(shared: &Shared, summary: &BlockSummary) {
    let is_empty = summary.transactions == 0 && summary.ethereum == 0 && summary.fills == 0;
    let unsaid = if is_empty { shared.empty_blocks.hear(shared.now_ms()) } else { Some(0) };
    let Some(unsaid) = unsaid else { return };
    tracing::info!(
        height = summary.height,
        transactions = summary.transactions,
        refused = summary.transactions - summary.applied,
        fills = summary.fills,
        pairs = summary.pairs,
        full = summary.full,
        ms = %format_args!("{:.1}", summary.stages_ms.iter().filter(|(name, _)| *name != "log")
            .map(|(_, ms)| ms).sum::<f64>()),
        log_ms = %format_args!("{:.1}", summary.stages_ms.last().map_or(0.0, |(_, ms)| *ms)),
        empty_before = (unsaid > 0).then_some(unsaid),
        "block"
    );
}

/// Publishes a block and archives its receipts.
pub(crate) fn publish_one(shared: &Shared, made: Made, consensus: Option<&InboxSender>) -> Result<(), StoreError> {
    let Made { block, ids, applied, outline, venue, stages_ms } = made;
    let receipts = Arc::new(ProvenReceipts::new(receipts_with(&applied, &ids)));
    let receipts_root = receipts.root;
    let transactions = ids.len() + block.ethereum_len();
    shared.readers.bodies.insert(block.height, transactions, block.clone());
    shared.readers.receipts.insert(block.height, transactions, receipts.clone());
    let committed = Arc::new(CommittedBlock::new(&block, &applied, &ids, receipts_root, outline, stages_ms));
    let native = block.sub_blocks.iter().flat_map(|sub| &sub.native);
    let transactions: Vec<&Transaction> = native.chain(applied.opened.iter().map(|one| &one.transaction)).collect();
    shared.readers.published.commit(&committed, &transactions, &receipts.receipts.contracts);
    shared.metrics.committed(&committed);
    shared.pool.lock().published(&committed);
    replica::archive(&mut shared.lock_store(), &receipts.receipts)?;
    if let Some(history) = shared.history.get() {
        history.hear(block.height);
    }
    if let Some((line, state)) = shared.venue.get().zip(venue) {
        line.hear(state, applied.venues.clone());
    }
    // The receiver is gone when the node stops.
    if let Some(host) = shared.lane_facts.get() {
        drop(host.send(LaneHeard::Block(LaneBlock::of(&block, &applied))));
    }
    // The receiver is gone when the node stops.
    consensus.map(|consensus| consensus.push_result(Input::ReceiptsRoot(block.height, receipts_root)));
    log(shared, &committed.summary);
    shared.readers.published.announce(committed);
    Ok(())
}
