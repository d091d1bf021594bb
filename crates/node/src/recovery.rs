//! Recovery when a node starts: the state of its store, and the data about earlier blocks that clients ask for.

use std::path::Path;
use std::time::Instant;

use ledger::contracts::ContractReceipts;
use ledger::{Batch, BlockReceipts, Fault, Genesis, Ledger, ReceiptsTrie, Roots};
use primitives::{Digest, Superblock};
use replica::{EthereumIndex, ReplicaError, Restored, recover_state};
use store::{Options, RealDisk, Store};

use crate::config::Config;
use readers::CommittedBlock;
use readers::views::{RECENT_BLOCKS, Views};

/// The recovered committed data.
pub(crate) struct Recovered {
    pub ledger: Ledger,
    pub roots: Roots,
    pub store: Store<RealDisk>,
    pub views: Views,
}

pub(crate) fn recover(config: &Config, genesis: &Genesis, data: &Path) -> Result<Recovered, ReplicaError> {
    let begun = Instant::now();
    let directory = |error| ReplicaError::Directory(data.display().to_string(), error);
    let disk = RealDisk::new(data).map_err(directory)?;
    let Restored { ledger, roots, root, store, from, repairs } = recover_state(disk, Options::default(), genesis)?;
    let ledger = ledger.up_to_rules(config.network.newest_rules());
    let (height, rules) = (ledger.height(), ledger.rules_at(ledger.height()));
    if rules > ledger.newest_rules() {
        return Err(Fault::Rules { height, rules, newest: ledger.newest_rules() }.into());
    }
    for repair in &repairs {
        tracing::warn!(
            file = repair.file,
            offset = repair.offset,
            bytes = repair.bytes,
            "removed an incomplete end that a crash had left"
        );
    }
    let views = recover_views(config, &ledger, &store, root)?;
    tracing::info!(
        height = ledger.height(),
        from_checkpoint = from,
        replayed = ledger.height() - from,
        accounts = ledger.accounts().len(),
        offers = ledger.book().len(),
        ms = begun.elapsed().as_millis() as u64,
        "recovered"
    );
    Ok(Recovered { ledger, roots, store, views })
}

/// Reads the newest archived receipts, as many as the index holds. Of blocks too old to be shown, only the places of
/// their transactions are kept.
pub(crate) fn recover_views(
    config: &Config,
    ledger: &Ledger,
    store: &Store<RealDisk>,
    mut state_root: Digest,
) -> Result<Views, ReplicaError> {
    let limit = config.store.indexed_transactions;
    let mut views = Views::new(ledger, state_root, limit);
    let mut recent: Vec<CommittedBlock> = Vec::new();
    let mut contracts: Vec<ContractReceipts> = Vec::new();
    let mut transactions = 0;
    for height in (1..=ledger.height()).rev() {
        let (Some(bytes), Some(block)) = (store.receipts(height)?, store.block(height)?) else { break };
        let undecodable = |error| ReplicaError::Undecodable(height, error);
        let mut receipts: BlockReceipts = borsh::from_slice(&bytes).map_err(undecodable)?;
        let block: Superblock = borsh::from_slice(&block).map_err(undecodable)?;
        transactions += receipts.outcomes.len() + receipts.contracts.receipts.len();
        let mut receipts_root = Digest::default();
        if recent.len() < RECENT_BLOCKS {
            receipts_root = ReceiptsTrie::new(&receipts).root();
        } else {
            receipts.batch = Batch::default();
        }
        contracts.push(std::mem::take(&mut receipts.contracts));
        let mut committed = CommittedBlock::from_archive(&block, receipts, receipts_root);
        committed.summary.state_root = Some(state_root);
        state_root = block.parent_root;
        recent.push(committed);
        if transactions >= limit {
            break;
        }
    }
    recent.iter().rev().for_each(|committed| views.remember(committed));
    let mut index = EthereumIndex::new(ledger.height() - contracts.len() as u64, limit);
    contracts.iter().rev().for_each(|contracts| index.add(contracts));
    Ok(views.with_ethereum(index))
}
