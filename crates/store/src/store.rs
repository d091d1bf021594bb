//! The store: logs and checkpoints together.

use std::sync::Arc;

use kernel::Planted;

use crate::archive::{Archive, Blocks};
use crate::checkpoint::{self, CheckpointGate, CheckpointReader, CheckpointWriter, Header, TEMPORARY};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::health::{Health, Repair};
use crate::log::{Known, Log};
use crate::mistake::StoreMistake;
use crate::retention;
use crate::segment::{Kind, path};

/// Files of a log must be addressable by 4-byte offsets.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 1 << 31;

/// The layout of a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A log continues in a new file once the current one holds this many bytes; at most 2^31.
    pub segment_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { segment_bytes: 256 << 20 }
    }
}

/// The content of a store when it is opened.
#[derive(Debug)]
pub struct Recovery<D: Disk> {
    /// The newest checkpoint, to be read to its end; `None` for the state before the first block.
    pub checkpoint: Option<CheckpointReader<D>>,
    /// The blocks after it, to be replayed.
    pub blocks: Blocks<D>,
    /// What was cut off because a crash had left it unfinished. None of it had been acknowledged.
    pub repairs: Vec<Repair>,
}

/// The block log, receipt archive and checkpoints of one node; see the crate's text for its guarantees.
#[derive(Debug)]
pub struct Store<D: Disk> {
    disk: Arc<D>,
    lock: Arc<D::Lock>,
    health: Arc<Health>,
    blocks: Log<D>,
    receipts: Log<D>,
    gate: Arc<CheckpointGate<D>>,
    checkpoint_height: u64,
    mistake: Planted<StoreMistake>,
}

impl<D: Disk> Store<D> {
    /// Opens a store: a new one, or one left by a stop, a kill or a crash.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if it is open elsewhere, [`StoreError::Damaged`], or [`StoreError::Io`].
    pub fn open(disk: D, options: Options) -> Result<(Store<D>, Recovery<D>), StoreError> {
        let disk = Arc::new(disk);
        let place = disk.place();
        let lock = disk.lock().map_err(StoreError::io("lock", &place))?.ok_or(StoreError::Locked(place))?;
        remove_temporaries(&*disk)?;
        retention::remove_replaced(&disk)?;
        let cut = retention::cut(&*disk)?;
        let segment_bytes = options.segment_bytes.min(SEGMENT_BYTES_MAX);
        let mut repairs = Vec::new();
        let checkpoint = checkpoint::list(&*disk)?.pop();
        let checkpoint = checkpoint.map(|height| CheckpointReader::open(disk.clone(), height)).transpose()?;
        let header = checkpoint.as_ref().map(|checkpoint| checkpoint.header.clone()).unwrap_or_default();
        let base = header.height;
        let limit = cut.unwrap_or(Known::NOTHING.limit);
        let known = Known { durable: header.archived(), limit };
        let mut blocks = Log::open(&disk, Kind::Blocks, known, segment_bytes, &mut repairs)?;
        join(&mut blocks, &header)?;
        let known = Known { durable: header.archived(), limit: blocks.last() };
        let mut receipts = Log::open(&disk, Kind::Receipts, known, segment_bytes, &mut repairs)?;
        join_receipts(&mut receipts, &header)?;
        disk.sync_directory().map_err(StoreError::io("sync the directory", &disk.place()))?;
        cut.map_or(Ok(()), |height| retention::remove_cut(&*disk, height))?;
        let replay = Blocks { files: blocks.files.clone(), next: base + 1, last: blocks.last() };
        let gate = Arc::new(CheckpointGate::new(disk.clone(), receipts.last(), receipts.syncer()));
        let store = Store {
            disk,
            lock: Arc::new(lock),
            health: Arc::default(),
            blocks,
            receipts,
            gate,
            checkpoint_height: base,
            mistake: Planted::NOTHING,
        };
        Ok((store, Recovery { checkpoint, blocks: replay, repairs }))
    }

    /// Plants a mistake, which only a simulation has.
    pub fn plant(&mut self, mistake: Planted<StoreMistake>) {
        self.mistake = mistake;
        self.gate.plant(mistake);
    }

    /// The height of the last appended block, or of the one before the first.
    pub fn last_height(&self) -> u64 {
        self.blocks.last()
    }

    /// The height up to which blocks are durable.
    pub fn durable_height(&self) -> u64 {
        self.blocks.durable()
    }

    /// The height up to which receipts are archived.
    pub fn receipts_height(&self) -> u64 {
        self.receipts.last()
    }

    /// Reads blocks and receipts in parallel with this store.
    pub fn archive(&self) -> Archive<D> {
        Archive { blocks: self.blocks.files.clone(), receipts: self.receipts.files.clone() }
    }

    /// Appends the block of the next height. It is durable after [`Store::sync`].
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] or [`StoreError::Io`]; after the last the store refuses.
    pub fn append(&mut self, height: u64, block: &[u8]) -> Result<(), StoreError> {
        self.health.check()?;
        in_order("block", height, self.blocks.next())?;
        let appended = self.blocks.append(block);
        self.health.note(appended)
    }

    /// Makes every appended block durable; returns the last durable height.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the store then refuses.
    pub fn sync(&mut self) -> Result<u64, StoreError> {
        self.health.check()?;
        let synced = self.blocks.sync();
        self.health.note(synced)
    }

    /// The block of this height; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn block(&self, height: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.health.check()?;
        self.archive().block(height)
    }

    /// Archives the receipts of a block, in order of heights and after the block. Receipts that already exist are
    /// compared.
    ///
    /// # Errors
    /// [`StoreError::ReceiptsDiffer`], [`StoreError::OutOfOrder`], or [`StoreError::Io`]; after the last the store
    /// refuses.
    pub fn append_receipts(&mut self, height: u64, receipts: &[u8]) -> Result<(), StoreError> {
        self.health.check()?;
        if let Some(archived) = self.receipts(height)? {
            return if archived == receipts { Ok(()) } else { Err(StoreError::ReceiptsDiffer(height)) };
        }
        in_order("receipts", height, self.receipts.next())?;
        if height > self.blocks.last() {
            return Err(StoreError::OutOfOrder { what: "receipts", height, expected: self.blocks.last() });
        }
        let appended = self.receipts.append(receipts);
        self.health.note(appended)?;
        self.health.note(self.gate.receipts_appended(height, self.receipts.syncer()))
    }

    /// The receipts of the block of this height; `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be read or are damaged.
    pub fn receipts(&self, height: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.health.check()?;
        self.archive().receipts(height)
    }

    /// Begins the checkpoint of the state after the block of this height, which must be durable. The writer may be
    /// moved to another thread; only one checkpoint is written at a time.
    ///
    /// A store without blocks and checkpoints accepts a checkpoint of any height: a snapshot from elsewhere. Open the
    /// store again once it is finished.
    ///
    /// # Errors [`StoreError::NotDurable`], [`StoreError::OutOfOrder`] if a checkpoint of this height or a later one
    /// exists or was begun, [`StoreError::CheckpointRunning`], or [`StoreError::Io`]. After the last the store refuses.
    pub fn begin_checkpoint(&mut self, height: u64) -> Result<CheckpointWriter<D>, StoreError> {
        self.health.check()?;
        if height <= self.checkpoint_height {
            let expected = self.checkpoint_height + 1;
            return Err(StoreError::OutOfOrder { what: "checkpoint", height, expected });
        }
        let snapshot = self.blocks.is_empty() && self.checkpoint_height == 0;
        if !snapshot && height > self.durable_height() {
            return Err(StoreError::NotDurable { height, durable: self.durable_height() });
        }
        let block = self.blocks.files.read(height)?.map_or([0; 32], |record| record.digest);
        let (disk, health, lock) = (self.disk.clone(), self.health.clone(), self.lock.clone());
        let begun = CheckpointWriter::begin(disk, health, lock, self.gate.clone(), Header { height, block });
        let writer = self.health.note(begun)?;
        self.checkpoint_height = height;
        Ok(writer)
    }
}

impl<D: Disk> Store<D> {
    /// Begins an archive whose blocks up to this height are elsewhere; for an empty store.
    ///
    /// # Errors
    /// As for [`Store::begin_checkpoint`].
    pub fn begin_after(&mut self, height: u64) -> Result<(), StoreError> {
        self.begin_checkpoint(height)?.finish()?;
        self.blocks.start_after(height);
        self.receipts.start_after(height);
        Ok(())
    }

    /// Begins the checkpoint of a state from elsewhere, above everything in the store, to replace it all: once it is
    /// finished, drop the store and open it again, and it holds that state and no block. Until it is finished nothing
    /// has changed.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] if the height is not above everything in the store,
    /// [`StoreError::CheckpointRunning`], or [`StoreError::Io`]; after the last the store refuses.
    pub fn begin_replacement(&mut self, height: u64) -> Result<CheckpointWriter<D>, StoreError> {
        self.health.check()?;
        let expected = self.blocks.last().max(self.checkpoint_height) + 1;
        if height < expected {
            return Err(StoreError::OutOfOrder { what: "replacement", height, expected });
        }
        let header = Header { height, ..Header::default() };
        let (disk, health, lock) = (self.disk.clone(), self.health.clone(), self.lock.clone());
        let begun = CheckpointWriter::begin(disk, health, lock, self.gate.clone(), header);
        let writer = self.health.note(begun)?;
        self.checkpoint_height = height;
        Ok(writer)
    }

    /// Continues the logs in new files, so that the earlier ones can be removed as a whole.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the store then refuses.
    pub fn begin_files(&mut self) -> Result<(), StoreError> {
        self.health.check()?;
        let begun = self.blocks.begin_file().and_then(|()| self.receipts.begin_file());
        self.health.note(begun)
    }

    /// Forgets blocks and receipts below a height by whole files, but neither the block of the older of the two
    /// checkpoints nor anything after it: recovery can begin at either of them. Without two checkpoints nothing is
    /// forgotten. Returns the first height whose block may still be available.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the store then refuses.
    pub fn forget_below(&mut self, height: u64) -> Result<u64, StoreError> {
        self.health.check()?;
        let forgotten = self.forget(height);
        self.health.note(forgotten)?;
        Ok(self.blocks.first().unwrap_or(self.blocks.next()))
    }

    fn forget(&mut self, height: u64) -> Result<(), StoreError> {
        let checkpoints = checkpoint::list(&*self.disk)?;
        let floor = match checkpoints[..] {
            _ if self.mistake.is(StoreMistake::ForgetsAboveCheckpoints) => height,
            [oldest, _, ..] => height.min(oldest),
            _ => return Ok(()),
        };
        let (blocks, receipts) = (self.blocks.files_below(floor), self.receipts.files_below(floor));
        if blocks + receipts == 0 {
            return Ok(());
        }
        retention::set_floor(&*self.disk, floor)?;
        self.blocks.remove_first(blocks)?;
        self.receipts.remove_first(receipts)
    }
}

impl<D: Disk> Store<D> {
    /// Cuts off all blocks and receipts above a height, at once and durably: a crash leaves all of them or none. Use
    /// it only where nothing was promised, as on a developers' chain.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] if the height is above the last block, or below the newest checkpoint or the
    /// forgotten heights: nothing has changed then. [`StoreError::Io`]; the store then refuses.
    pub fn cut_above(&mut self, height: u64) -> Result<(), StoreError> {
        self.health.check()?;
        let least = self.blocks.first().map_or(self.blocks.last(), |first| first - 1).max(self.checkpoint_height);
        for (is_wrong, expected) in [(height > self.blocks.last(), self.blocks.last()), (height < least, least)] {
            if is_wrong {
                return Err(StoreError::OutOfOrder { what: "cut above", height, expected });
            }
        }
        let cut = self.cut(height);
        self.health.note(cut)
    }

    fn cut(&mut self, height: u64) -> Result<(), StoreError> {
        // From here on every opening of the store completes the cut.
        retention::set_cut(&*self.disk, height)?;
        if self.receipts.last() > height {
            self.receipts.cut_above(height)?;
        }
        self.blocks.cut_above(height)?;
        self.gate.receipts_appended(self.receipts.last(), self.receipts.syncer())?;
        retention::remove_cut(&*self.disk, height)
    }
}

fn in_order(what: &'static str, height: u64, expected: u64) -> Result<(), StoreError> {
    if height == expected { Ok(()) } else { Err(StoreError::OutOfOrder { what, height, expected }) }
}

fn remove_temporaries(disk: &impl Disk) -> Result<(), StoreError> {
    for (name, _) in disk.list().map_err(StoreError::io("list", &disk.place()))? {
        if name.ends_with(TEMPORARY) {
            disk.remove(&name).map_err(StoreError::io("remove", &path(disk, &name)))?;
        }
    }
    Ok(())
}

/// Checks that the block log begins no later than the checkpoint and ends no earlier.
fn join<D: Disk>(blocks: &mut Log<D>, checkpoint: &Header) -> Result<(), StoreError> {
    let height = checkpoint.height;
    let Some(first) = blocks.first() else {
        if checkpoint.archived() > 0 {
            return Err(
                blocks.damaged_at_end(format!("the blocks up to the newest checkpoint, at {height}, are missing"))
            );
        }
        blocks.start_after(height);
        return Ok(());
    };
    if first > height + 1 {
        let what = format!("the log begins at height {first}, but the newest checkpoint is at {height}");
        return Err(blocks.files.damaged(first, 0, what));
    }
    if height > blocks.last() {
        let what = format!("the log ends at height {}, before the newest checkpoint, at {height}", blocks.last());
        return Err(blocks.damaged_at_end(what));
    }
    if checkpoint.archived() > 0
        && let Some(record) = blocks.files.read(height)?
        && record.digest != checkpoint.block
    {
        let what = format!("block {height} is not the one after which the checkpoint was made");
        return Err(blocks.files.damaged(first, 0, what));
    }
    Ok(())
}

/// Checks that all receipts exist that a replay from the checkpoint would not produce again.
fn join_receipts<D: Disk>(receipts: &mut Log<D>, checkpoint: &Header) -> Result<(), StoreError> {
    if receipts.first().is_none() && checkpoint.archived() == 0 {
        receipts.start_after(checkpoint.height);
    }
    if receipts.last() >= checkpoint.archived() {
        return Ok(());
    }
    let (held, height) = (receipts.last(), checkpoint.height);
    Err(receipts
        .damaged_at_end(format!("the receipts end at height {held}, before the newest checkpoint, at {height}")))
}
