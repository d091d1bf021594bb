//! The block log, the receipt archive and the checkpoints of one node; the store handles only bytes.
//!
//! The store does not interpret blocks. It keeps these files in one flat directory:
//!
//! | file | content |
//! |---|---|
//! | `blocks-HEIGHT.log` | blocks from this height on, one record each: write-ahead log and archive at the same time |
//! | `receipts-HEIGHT.log` | the receipts of those blocks, in the same way |
//! | `checkpoint-HEIGHT.ckpt` | the whole state after this block; the last two are kept |
//! | `*.tmp` | a checkpoint that is being written; removed when the store is opened |
//! | `forgotten-HEIGHT` | empty: blocks and receipts below this height may be missing at the front of their logs |
//! | `cut-HEIGHT` | empty: blocks and receipts above this height are being cut off |
//! | `lock` | locked while the store is open, so that two processes never share it |
//!
//! The log of a validator's votes is in a separate directory, see [`VoteLog`], and so is an index of rows by key, see
//! [`Runs`].
//!
//! Heights are written with 20 digits and begin at 1; height 0 is the state before the first block.
//!
//! # What a caller can rely on
//!
//! - A block is *durable* when [`Store::sync`] has returned a height not below its own. Acknowledge nothing before
//!   that. Several [`Store::append`] may share one sync (group commit).
//! - After a crash [`Store::open`] returns every durable block, possibly followed by some that were appended and not
//!   yet durable, without a gap; and the newest finished checkpoint, or a newer one. A checkpoint is finished when
//!   [`CheckpointWriter::finish`] has returned and the receipts up to its height have been put.
//! - *Receipts* follow from the blocks and need no sync. Put them for every block, in order, at any time after the
//!   block. After a crash they exist at least up to the newest checkpoint, and may be missing from some later height
//!   on. A replay of the blocks after the checkpoint puts their receipts again. Receipts that already exist are then
//!   compared, and different ones are refused: the replay diverged from the first run.
//! - After one failed write or sync every later call refuses ([`StoreError::Failed`]). An fsync is never retried: the
//!   operating system may have dropped the pages it could not write. Restart, and recover what is on the disk.
//! - Every returned byte has been verified against a digest. A *torn tail*, the unfinished end of a write at a crash,
//!   is cut off and reported ([`Recovery::repairs`]). Damage anywhere else is an error with file, offset and remedy
//!   ([`StoreError::Damaged`]). Opening reads the last file of each log in full; earlier files are verified when they
//!   are read, and all of them by [`inspect`].
//! - Blocks and receipts are *forgotten* ([`Store::forget_below`]) by whole files, oldest first, but never from the
//!   block of the older checkpoint on. A missing front of a log is damage unless a `forgotten` file was durable
//!   before.
//! - A state from elsewhere can replace everything in the store ([`Store::begin_replacement`]): a checkpoint that
//!   names no block, above all blocks. Once it has its final name, the logs that begin at its height or below are
//!   void, and are removed when the store is opened next; before that nothing has changed.
//! - Blocks and receipts can be *cut off* at the end ([`Store::cut_above`]): all above a height or none, even after a
//!   crash. This takes back durable blocks, so it is only for chains that promise nothing.
//!
//! # Torn tail or damage?
//!
//! In both cases a log ends with bytes that are not a record. The difference is whether they had been durable. Each
//! record therefore contains the height that was durable when it was appended, and each sync is followed by a *mark*
//! that contains it too (written where the next record will overwrite it, and not synced itself). If the first bad
//! record has height `h` and some valid record or mark after it records that `h` was durable, it is damage. Otherwise
//! nothing acknowledged is lost by cutting there. So writes that the disk reordered within one unsynced group are not
//! mistaken for damage.
//!
//! The loss of a whole durable end cannot be told from a crash. If someone deletes or shortens the last file, it is
//! found only if a checkpoint is newer than the rest.
//!
//! # Log files, byte by byte
//!
//! All integers are little-endian. A file begins with a header of 96 bytes:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | `walraslg` |
//! | 8 | 4 | version of the format: 2 |
//! | 12 | 4 | number of the file in its log, from 0 |
//! | 16 | 8 | height of its first record; also in its name |
//! | 24 | 32 | digest of the last record of the previous file; zeros in file 0 |
//! | 56 | 32 | salt: random, so that no author of a block can embed something that looks like a record header |
//! | 88 | 8 | first 8 bytes of BLAKE3 of the 88 before |
//!
//! Then follow records without a gap, with heights that rise by one. A record has one part or more, all in one file,
//! each with the record's height:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `wprt` if the record continues in another part, `wblk` in its last one |
//! | 4 | 4 | length `n` of the part's payload, at most 2^28 |
//! | 8 | 8 | height |
//! | 16 | 8 | the height that was durable when this part was appended |
//! | 24 | 32 | digest of the previous part, in this file or the one before; zeros in the very first |
//! | 56 | 8 | first 8 bytes of keyed BLAKE3, under the salt, of the 56 before |
//! | 64 | n | payload |
//! | 64 + n | 32 | digest of the part: BLAKE3 of the first 56 bytes and the payload |
//!
//! The payload of a record is the concatenation of its parts' payloads; its digest is that of its last part, which
//! names the others. So blocks and receipts of any length can be stored. A record whose last part is missing is a
//! torn tail: it counts as a whole or not at all.
//!
//! A mark may follow the last record of the last file: 64 bytes like the first of a record, with `wmrk`, length 0,
//! the durable height twice, and the digest of that record.
//!
//! The log continues in the next file when the current one holds at least `segment_bytes`. The current file is then
//! truncated to its records and synced before the next is created, so only the last file can have a torn tail. A file's
//! header is durable before its first record is written. If a file is no longer than a header and has no valid one, a
//! crash interrupted its creation, and it is empty.
//!
//! # Checkpoint files, byte by byte
//!
//! A header of 88 bytes:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | `walrasck` |
//! | 8 | 4 | version of the format: 1 |
//! | 12 | 4 | zeros |
//! | 16 | 8 | height; also in the name |
//! | 24 | 32 | digest of the block's record; zeros if this store has never held the block (a restored snapshot) |
//! | 56 | 32 | BLAKE3 of the 56 before |
//!
//! Then follow chunks, numbered from 0, all but the last of 2^20 bytes: length `n` (4 bytes, not zero), `n` bytes of
//! payload, BLAKE3 of the chunk's number (8 bytes), `n` (4 bytes) and the payload. Then follows the end of 52 bytes:
//! four zeros, the number of chunks (8), the total bytes of payload (8), and BLAKE3 of the header, of all chunk
//! digests and of these 20 bytes.
//!
//! A checkpoint is written under a name ending in `.tmp` and synced. Then the receipts are synced, the file renamed,
//! and the directory synced: under its final name it is complete or damaged. A *snapshot* is a checkpoint in a separate
//! file, for another machine ([`SnapshotWriter`]); it names no block's record.

mod archive;
mod assembly;
mod backup;
mod checkpoint;
mod disk;
mod error;
mod health;
mod inspect;
mod log;
mod mistake;
mod real;
mod record;
mod retention;
mod runs;
mod segment;
mod simulated;
mod store;
mod view;
mod votes;

pub use archive::{Archive, Blocks};
pub use assembly::Assembly;
pub use backup::back_up;
pub use checkpoint::{CHUNK_BYTES, CheckpointReader, CheckpointWriter, SnapshotWriter};
pub use disk::{Disk, DiskFile};
pub use error::{Remedy, StoreError};
pub use health::Repair;
pub use inspect::{CheckpointSummary, Inspection, LogSummary, SegmentSummary, inspect};
pub use mistake::StoreMistake;
pub use real::RealDisk;
pub use runs::{KeyedRow, Runs};
pub use store::{Options, Recovery, Store};
pub use view::{View, view};
pub use votes::{FoundVotes, VoteLog, VoteOptions};
