//! The jobs of the life of a block: each works on its own data only. When each may begin is decided in
//! [`life`](crate::life).

use consensus::Index;
use ledger::contracts::{ContractReceipts, recover_senders};
use ledger::{Applied, Attached, Batch, BlockClock, BlockReceipts, Changes, Ledger, Roots, Signatures, Stage};
use primitives::{Digest, Height, SubBlock, Superblock, Transaction, TransactionId};
use store::{CheckpointWriter, Disk, Store, StoreError};

use crate::{Agreed, Mempool, Past, PoolDrop, ProposedSection, ReplicaError, encode};

/// What the next block builds on.
#[derive(Clone, Copy, Debug)]
pub struct Foundation {
    /// Digest of the last block.
    pub parent: Digest,
    /// The time of the last block.
    pub parent_ms: u64,
    /// The state root after it.
    pub parent_root: Digest,
}

impl Foundation {
    /// The foundation on top of a ledger whose state root is known.
    pub fn of(ledger: &Ledger, parent_root: Digest) -> Foundation {
        Foundation { parent: ledger.last_block(), parent_ms: ledger.time_ms(), parent_root }
    }

    /// The next block of a validator that produces blocks alone, from what its pool gave.
    pub fn own_block(
        &self,
        height: Height,
        native: Vec<Transaction>,
        ethereum: ProposedSection,
        wall_ms: u64,
    ) -> Superblock {
        self.block_at(height, native, ethereum, BlockClock::own().block_time(self.parent_ms, &[wall_ms]))
    }

    /// The next block of a developers' chain, at a time set by its developer.
    pub fn block_at(
        &self,
        height: Height,
        native: Vec<Transaction>,
        ethereum: ProposedSection,
        time_ms: u64,
    ) -> Superblock {
        let Foundation { parent, parent_root, .. } = *self;
        let ProposedSection { transactions: ethereum, senders } = ethereum;
        let sub_blocks = vec![SubBlock { time_ms, native, ethereum, senders, ..SubBlock::default() }];
        Superblock { height, parent, time_ms, parent_root, sub_blocks, ..Superblock::default() }
    }
}

impl Agreed {
    /// Builds the block of a decided superblock on top of a state. `check` decodes a sub-block and finds its invalid
    /// signatures, see [`checked`].
    pub fn block(&self, on: &Foundation, mut check: impl FnMut(Index, &[u8]) -> SubBlock) -> Superblock {
        let Foundation { parent, parent_ms, parent_root } = *on;
        let sub_blocks: Vec<SubBlock> = self.sub_blocks.iter().map(|(slot, payload)| check(*slot, payload)).collect();
        let clocks: Vec<u64> = sub_blocks.iter().map(|sub| sub.time_ms).collect();
        let time_ms = self.clock.block_time(parent_ms, &clocks);
        let openings = self.keys.iter().map(|key| key.0).collect();
        Superblock { height: self.height, parent, time_ms, parent_root, sub_blocks, openings }
    }

    /// Checks that a superblock equals the logged block of its height. After a restart, heights above the last
    /// archived certificate are decided again, with the same result.
    ///
    /// # Errors
    /// [`ReplicaError::DecidedTwice`] if it is not, or the log cannot be read.
    pub fn is_logged<D: Disk>(&self, past: &Past<D>) -> Result<(), ReplicaError> {
        let logged = past.block(self.height)?.ok_or(ReplicaError::DecidedTwice(self.height))?;
        let is_same = |(sub, (slot, payload)): (&SubBlock, &(Index, consensus::Payload))| {
            sub.proposer == u32::from(*slot) && sub.to_payload()[..] == payload[..]
        };
        let same_length = logged.sub_blocks.len() == self.sub_blocks.len();
        let same = same_length && logged.sub_blocks.iter().zip(&self.sub_blocks).all(is_same);
        if same { Ok(()) } else { Err(ReplicaError::DecidedTwice(self.height)) }
    }
}

/// Decodes a sub-block that the engine has accepted, and finds invalid signatures and the senders of Ethereum
/// transactions, on the current rayon pool. `verify` says of each native transaction whether its signatures are valid,
/// as [`primitives::verify_transactions`] does.
///
/// # Panics
/// If it is not a sub-block.
pub fn checked(proposer: Index, payload: &[u8], verify: impl FnOnce(&[&Transaction]) -> Vec<bool>) -> SubBlock {
    let mut sub_block = SubBlock::from_payload(u32::from(proposer), payload).expect("checked by the engine");
    let transactions: Vec<&Transaction> = sub_block.native.iter().collect();
    let valid = verify(&transactions);
    sub_block.forged = (0..).zip(valid).filter(|(_, valid)| !valid).map(|(at, _)| at).collect();
    sub_block.senders = recover_senders(&sub_block.ethereum);
    sub_block
}

/// Makes a block durable.
///
/// # Errors
/// [`StoreError`]; nothing may be acknowledged from then on.
pub fn log<D: Disk>(store: &mut Store<D>, block: &Superblock) -> Result<(), StoreError> {
    store.append(block.height, &block.to_bytes())?;
    store.sync().map(drop)
}

/// Applies a block whose signatures were checked; the invalid ones are listed in it. A panic of the ledger becomes an
/// error that names the block; the state is unusable then.
///
/// # Errors
/// [`ReplicaError::Fault`] or [`ReplicaError::Panicked`].
pub fn apply(ledger: &mut Ledger, block: &Superblock, stage: &mut dyn FnMut(Stage)) -> Result<Applied, ReplicaError> {
    let known = block.signatures();
    let signatures = known.as_ref().map_or(Signatures::Valid, |valid| Signatures::Known(valid));
    let applied = named(block.height, || ledger.apply(block, signatures, stage))?;
    Ok(applied?)
}

/// As [`apply`], with a known batch: it is checked instead of solved (SPEEDEX §K.3).
///
/// # Errors
/// [`ReplicaError::Fault`] or [`ReplicaError::Panicked`].
pub fn follow(ledger: &mut Ledger, block: &Superblock, batch: &Batch) -> Result<Applied, ReplicaError> {
    let known = block.signatures();
    let signatures = known.as_ref().map_or(Signatures::Valid, |valid| Signatures::Known(valid));
    let run = || ledger.apply_attached(block, &Attached::of(batch), signatures, &mut |_| {});
    Ok(named(block.height, run)??)
}

/// Writes the changes of a block into the tries; returns the state root.
///
/// # Errors
/// [`ReplicaError::Panicked`].
pub fn hash(roots: &mut Roots, height: Height, changes: &Changes) -> Result<Digest, ReplicaError> {
    named(height, || roots.apply(changes))
}

/// Runs work on the block of a height, and names the height if it panics.
fn named<T>(height: Height, run: impl FnOnce() -> T) -> Result<T, ReplicaError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let what = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        ReplicaError::Panicked { height, what: what.into() }
    })
}

/// Removes the transactions of an applied block from the pool, whoever proposed them. `ids` are the ids of its
/// transactions, in order. Returns the Ethereum transactions that no block will execute, with the reason.
pub fn settle(
    pool: &mut Mempool,
    ledger: &Ledger,
    block: &Superblock,
    ids: &[TransactionId],
    contracts: &ContractReceipts,
) -> Vec<(TransactionId, PoolDrop)> {
    let known = block.signatures();
    let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
    // A copy with an invalid signature does not settle the original transaction.
    let is_signed = |at: &usize| known.as_ref().is_none_or(|valid| valid[*at]);
    let settled = ids.iter().copied().zip(transactions).enumerate().filter(|(at, _)| is_signed(at));
    let settled = settled.map(|(_, settled)| settled);
    pool.settle(settled.clone());
    pool.end(block.height);
    pool.drop_void(settled, ledger);
    pool.judge_again(ledger);
    pool.ethereum.settle(ledger, block, contracts)
}

/// Archives the receipts of a block that is durable.
///
/// # Errors
/// [`StoreError`].
pub fn archive<D: Disk>(store: &mut Store<D>, receipts: &BlockReceipts) -> Result<(), StoreError> {
    store.append_receipts(receipts.height, &encode(receipts))
}

/// Begins the checkpoint of the state after a height whose receipts are archived; `None` if another one is being
/// written. If blocks are to be dropped later, a new log file begins here, since only whole files are dropped.
///
/// # Errors
/// [`StoreError`].
pub fn begin_checkpoint<D: Disk>(
    store: &mut Store<D>,
    height: Height,
    forgets: bool,
) -> Result<Option<CheckpointWriter<D>>, StoreError> {
    if forgets {
        store.begin_files()?;
    }
    match store.begin_checkpoint(height) {
        Err(StoreError::CheckpointRunning) => Ok(None),
        begun => begun.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_over_a_block_names_it_and_the_way_out() {
        let divided = named(812, || 1 / std::hint::black_box(0));
        let error = divided.expect_err("it panics").to_string();
        for part in ["block 812", "divide by zero", "keep the data directory", "a version that applies the block"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(named(813, || 7).expect("nothing panics"), 7);
    }
}
