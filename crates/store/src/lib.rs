//! The block log, the receipt archive and the checkpoints of one node: bytes in, bytes out.
//!
//! The store does not know what a block means. It keeps these files in one flat directory:
//!
//! | file | holds |
//! |---|---|
//! | `blocks-HEIGHT.log` | blocks from this height on, one record each: write-ahead log and archive at the same time |
//! | `receipts-HEIGHT.log` | the receipts of those blocks, likewise |
//! | `checkpoint-HEIGHT.ckpt` | the whole state after this block, the last two of them |
//! | `*.tmp` | a checkpoint that is being written; removed when the store is opened |
//! | `forgotten-HEIGHT` | empty: blocks and receipts below this height may be missing at the front of their logs |
//! | `cut-HEIGHT` | empty: blocks and receipts above this height are being cut off |
//! | `lock` | locked while the store is open, so that two processes never share it |
//!
//! The log of a validator's votes lies in a directory of its own, see [`VoteLog`].
//!
//! Heights are written with 20 digits and begin at 1; height 0 stands for the state before the first block.
//!
//! # What a caller can rely on
//!
//! - A block is *durable* when [`Store::sync`] has returned a height not below its own. Acknowledge nothing earlier.
//!   Several [`Store::append`] may share one sync (group commit).
//! - After a crash [`Store::open`] gives back every durable block, perhaps followed by some that were appended and not
//!   yet durable, never a gap; and the newest checkpoint that was finished, or a newer one. A checkpoint is finished
//!   when [`CheckpointWriter::finish`] has returned and the receipts through its height have been put.
//! - *Receipts* follow from the blocks and need no sync of their own. Put them for every block, in order, at any time
//!   after the block. After a crash they are there at least through the newest checkpoint, and may be missing from some
//!   later height on; whoever replays the blocks after the checkpoint puts their receipts again. Receipts that are
//!   there already are then compared, and different ones are refused: the replay went another way than the first run.
//! - After one failed write or sync every later call refuses ([`StoreError::Failed`]). An fsync is never tried again:
//!   the operating system may have dropped the pages it could not write. Restart, and recover what is on the disk.
//! - Every byte handed out has been checked against a digest. A *torn tail*, that is the unfinished end of what was
//!   being written at a crash, is cut off and reported ([`Recovery::repairs`]). Damage anywhere else stops with an
//!   error that names file, offset and remedy ([`StoreError::Damaged`]). Opening reads the last file of each log in
//!   full; what lies in earlier files is checked when it is read, and all of it by [`inspect`].
//! - Blocks and receipts are *forgotten* ([`Store::forget_below`]) by whole files, oldest first, never from the block
//!   of the older checkpoint on. What is missing at the front of a log is damage unless a `forgotten` file was durable
//!   before.
//! - A state from elsewhere can take the place of all that is here ([`Store::begin_replacement`]): a checkpoint that
//!   names no block, above all blocks. Once it has its name the logs that begin at its height or below are void, and
//!   are removed when the store is opened next; before that nothing has changed.
//! - Blocks and receipts can be *cut off* at the end ([`Store::cut_above`]), all above a height or none, whatever a
//!   crash leaves. This takes back what was durable: it is for chains on which nothing is promised.
//!
//! # Torn tail or damage?
//!
//! Both end a log with bytes that are no record. The difference is whether they had been durable. Each record therefore
//! tells which height was durable when it was appended, and each sync is followed by a *mark* that tells it too
//! (written where the next record will overwrite it, and not synced itself). If the first bad record has height `h` and
//! some valid record or mark after it tells that `h` was durable, then it is damage; otherwise nothing acknowledged is
//! lost by cutting there. Writes that the disk reordered within one unsynced group are thereby not mistaken for damage.
//!
//! What cannot be told from a crash is the loss of whole durable ends: a last file that somebody deletes or shortens,
//! unless a checkpoint is newer than what is left.
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
//! | 24 | 32 | digest of the last record of the file before; zeros in file 0 |
//! | 56 | 32 | salt: random, so that nobody who writes blocks can write what looks like a record header within one |
//! | 88 | 8 | first 8 bytes of BLAKE3 of the 88 before |
//!
//! Then come records without a gap, of heights that rise by one. A record has one part or more, all in one file, each
//! with the record's height:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `wprt` if the record goes on in another part, `wblk` in its last one |
//! | 4 | 4 | length `n` of the part's payload, at most 2^28 |
//! | 8 | 8 | height |
//! | 16 | 8 | the height that was durable when this was appended |
//! | 24 | 32 | digest of the part before, in this file or the one before; zeros in the very first |
//! | 56 | 8 | first 8 bytes of keyed BLAKE3, under the salt, of the 56 before |
//! | 64 | n | payload |
//! | 64 + n | 32 | digest of the part: BLAKE3 of the first 56 bytes and the payload |
//!
//! The payload of a record is that of its parts together; its digest is that of its last part, which names the others.
//! So no block and no receipts are too long to be stored. A record whose last part is missing is a torn tail: it counts
//! as a whole or not at all.
//!
//! After the last record of the last file may stand a mark: 64 bytes like a record's first, with `wmrk`, length 0, the
//! durable height twice, and the digest of that record.
//!
//! A file is left for the next one when it holds at least `segment_bytes`; it is then cut to its records and synced
//! before the next is made, so only the last file can have a torn tail. A file's header is durable before its first
//! record is written: a file no longer than a header and without a valid one was being made at a crash, and holds
//! nothing.
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
//! Then chunks, numbered from 0, all but the last of 2^20 bytes: length `n` (4 bytes, not zero), `n` bytes of payload,
//! BLAKE3 of the chunk's number (8 bytes), `n` (4 bytes) and the payload. Then the end of 52 bytes: four zeros, the
//! number of chunks (8), the bytes of payload in all (8), and BLAKE3 of the header, of all chunk digests and of these
//! 20 bytes.
//!
//! A checkpoint is written under a name ending in `.tmp` and synced; then the receipts are synced, the file renamed,
//! and the directory synced: under its final name it is complete or damaged. A *snapshot* is a checkpoint in a file of
//! its own, for another machine ([`SnapshotWriter`]); it names no block's record.

mod archive;
mod assembly;
mod checkpoint;
mod disk;
mod error;
mod fault;
mod inspect;
mod log;
mod real;
mod record;
mod retention;
mod store;
mod view;
mod votes;

pub use archive::{Archive, Blocks};
pub use assembly::Assembly;
pub use checkpoint::{CHUNK_BYTES, CheckpointReader, CheckpointWriter, SnapshotWriter};
pub use disk::{Disk, DiskFile};
pub use error::{Remedy, StoreError};
pub use fault::{DiskFault, FaultDisk, Surviving};
pub use inspect::{CheckpointSummary, Inspection, LogSummary, SegmentSummary, inspect};
pub use real::RealDisk;
pub use store::{Options, Recovery, Repair, Store};
pub use view::{View, view};
pub use votes::{FoundVotes, VoteLog, VoteOptions};
