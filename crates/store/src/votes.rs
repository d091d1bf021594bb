//! The votes that a validator has signed, so that after a restart it never signs a contradiction.
//!
//! # What a caller can rely on
//!
//! - A record is durable when a [`VoteLog::sync`] after its [`VoteLog::append`] has returned; one sync covers all
//!   records before it. Send nothing before that.
//! - [`VoteLog::open`] returns every durable record of the heights that are not forgotten, in the order in which they
//!   were appended, possibly followed by some that were not yet durable. A record that a crash left unfinished is cut
//!   off and reported; it was never synced, so nothing of it was sent. Damage to durable records is an error that
//!   names file and offset.
//! - *A missing log is not an empty one.* A log is created once, by [`VoteLog::create`], before the validator has
//!   ever voted. If there is no log, or only an unfinished one, [`VoteLog::open`] returns [`StoreError::VotesLost`].
//!   The validator must then not vote until it knows a height that it cannot have voted at, and begin a new log there
//!   ([`VoteLog::rejoin`]); that height, the *floor*, is the new log's first record.
//! - The log is bounded: [`VoteLog::append`] refuses above [`VoteOptions::bytes_max`], and [`VoteLog::forget`] frees
//!   space by whole files.
//! - After one disk error every call refuses ([`StoreError::Failed`]).
//!
//! The log cannot detect that someone replaced it with an older copy, or removed its last files. So when restoring a
//! validator from a backup, leave the vote log out: the validator then finds it missing.
//!
//! # Files
//!
//! `votes-NUMBER.log` files have the format of the block log (the crate's text describes it byte by byte), with the
//! number of a record, from 1, in place of the height. A payload begins with its kind (1 byte):
//!
//! | kind | then |
//! |---|---|
//! | 0 vote | height (8 bytes), the caller's bytes |
//! | 1 floor | height below which nothing is voted or kept (8 bytes), number of the first file that is kept (4 bytes) |
//!
//! The first record of a log is a floor. To forget, a floor is appended and synced, then files are removed, the
//! oldest first, each removal synced. So the rest has no gap, and a first file that is later than the newest floor
//! allows shows that files are missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::Disk;
use crate::error::StoreError;
use crate::health::{Health, Repair};
use crate::log::{Known, Log};
use crate::record::{DIGEST_BYTES, FILE_HEADER_BYTES, RECORD_HEADER_BYTES};
use crate::segment::{Kind, list, remove};
use crate::store::SEGMENT_BYTES_MAX;

const VOTE: u8 = 0;
const FLOOR: u8 = 1;

/// How large a vote log may be.
#[derive(Clone, Copy, Debug)]
pub struct VoteOptions {
    /// The log continues in a new file once the current one holds this many bytes.
    pub segment_bytes: u64,
    /// The most bytes of all files together.
    pub bytes_max: u64,
}

impl Default for VoteOptions {
    fn default() -> VoteOptions {
        VoteOptions { segment_bytes: 16 << 20, bytes_max: 1 << 30 }
    }
}

/// The content of a vote log.
#[derive(Debug, Default)]
pub struct FoundVotes {
    /// No vote may be made below this height.
    pub floor: u64,
    /// The records of each height from the floor on, in the order in which they were appended.
    pub records: BTreeMap<u64, Vec<Vec<u8>>>,
    /// What was cut off because a crash had left it unfinished. None of it had been sent.
    pub repairs: Vec<Repair>,
}

/// The log of one validator's votes; see the module text for its guarantees.
#[derive(Debug)]
pub struct VoteLog<D: Disk> {
    log: Log<D>,
    disk: Arc<D>,
    health: Health,
    options: VoteOptions,
    floor: u64,
    /// The highest height with a vote in each file.
    highest: Vec<u64>,
    bytes: u64,
    _lock: D::Lock,
}

impl<D: Disk> VoteLog<D> {
    /// Creates the log of a validator that has never voted.
    ///
    /// # Errors
    /// [`StoreError::VotesExist`] if there is one, even a damaged one; [`StoreError::Locked`]; or [`StoreError::Io`].
    pub fn create(disk: D, options: VoteOptions) -> Result<VoteLog<D>, StoreError> {
        let (disk, lock) = locked(disk)?;
        if !list(&*disk, Kind::Votes)?.is_empty() {
            return Err(StoreError::VotesExist(disk.place()));
        }
        VoteLog::begin(disk, lock, options, 1)
    }

    /// Opens the log and reads it.
    ///
    /// # Errors
    /// [`StoreError::VotesLost`] if there is none, [`StoreError::Damaged`], [`StoreError::Locked`], or
    /// [`StoreError::Io`].
    pub fn open(disk: D, options: VoteOptions) -> Result<(VoteLog<D>, FoundVotes), StoreError> {
        let (disk, lock) = locked(disk)?;
        let mut votes = FoundVotes::default();
        let log = open_log(&disk, options, &mut votes.repairs)?;
        let lost = || StoreError::VotesLost(disk.place());
        let first = log.first().ok_or_else(lost)?;
        let (mut highest, mut kept_from) = (Vec::new(), None);
        for number in first..=log.last() {
            let record = log.files.read(number)?.expect("the log has no gap");
            highest.resize(file_of(&log, number) + 1, 0);
            match decode(&record.payload) {
                Some(Record::Vote(height, bytes)) => {
                    let highest = highest.last_mut().expect("one entry for each file");
                    *highest = (*highest).max(height);
                    votes.records.entry(height).or_default().push(bytes.to_vec());
                }
                Some(Record::Floor(height, file)) => (votes.floor, kept_from) = (height, Some(file)),
                None => return Err(log.files.damaged(first, 0, format!("record {number} is not a vote record"))),
            }
        }
        highest.resize(log.files.segments().len(), 0);
        let begins = log.files.segments()[0].header.number;
        let needed = kept_from.unwrap_or(0);
        if begins > needed {
            let what = format!("the log begins with file {begins}, but {needed} and later ones were kept");
            return Err(log.files.damaged(first, 0, what));
        }
        let kept_from = kept_from.ok_or_else(lost)?;
        votes.records = votes.records.split_off(&votes.floor);
        let bytes = total_bytes(&*disk)?;
        let health = Health::default();
        let mut opened = VoteLog { log, disk, health, options, floor: votes.floor, highest, bytes, _lock: lock };
        opened.remove_first((kept_from - begins) as usize)?;
        Ok((opened, votes))
    }

    /// Starts a new log after the old one was lost or damaged; removes the remains. `floor` must be a height that
    /// this validator cannot have voted at.
    ///
    /// # Errors
    /// [`StoreError::Locked`], or [`StoreError::Io`].
    pub fn rejoin(disk: D, options: VoteOptions, floor: u64) -> Result<VoteLog<D>, StoreError> {
        let (disk, lock) = locked(disk)?;
        // The oldest first: if a crash interrupts this, the rest lacks its beginning and is never mistaken for a log.
        for (first, _) in list(&*disk, Kind::Votes)? {
            remove(&*disk, &Kind::Votes.file_name(first))?;
        }
        VoteLog::begin(disk, lock, options, floor)
    }

    fn begin(disk: Arc<D>, lock: D::Lock, options: VoteOptions, floor: u64) -> Result<VoteLog<D>, StoreError> {
        let log = open_log(&disk, options, &mut Vec::new())?;
        let (health, highest) = (Health::default(), Vec::new());
        let mut begun = VoteLog { log, disk, health, options, floor, highest, bytes: 0, _lock: lock };
        begun.append_record(&encode_floor(floor, 0), 0)?;
        begun.sync()?;
        Ok(begun)
    }

    /// No vote may be made below this height.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a record. It is durable after [`VoteLog::sync`].
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] below the floor, [`StoreError::VotesFull`], [`StoreError::Failed`], or
    /// [`StoreError::Io`].
    pub fn append(&mut self, height: u64, bytes: &[u8]) -> Result<(), StoreError> {
        if height < self.floor {
            return Err(StoreError::OutOfOrder { what: "a vote at height", height, expected: self.floor });
        }
        let payload = [&[VOTE][..], &height.to_le_bytes(), bytes].concat();
        if self.bytes + record_bytes(&payload) > self.options.bytes_max {
            return Err(StoreError::VotesFull(self.bytes));
        }
        self.append_record(&payload, height)
    }

    /// Makes everything appended durable.
    ///
    /// # Errors
    /// [`StoreError::Failed`], or [`StoreError::Io`].
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.health.check()?;
        let synced = self.log.sync().map(drop);
        self.health.note(synced)
    }

    /// Declares that no vote below this height is made or needed any more: files with no later votes are removed. If
    /// it removes any, this is durable when it returns; otherwise it is only remembered until the log is closed.
    ///
    /// # Errors
    /// [`StoreError::Failed`], or [`StoreError::Io`].
    pub fn forget(&mut self, below: u64) -> Result<(), StoreError> {
        self.health.check()?;
        self.floor = self.floor.max(below);
        let written = self.highest.len().saturating_sub(1);
        let files = self.highest[..written].iter().take_while(|highest| **highest < self.floor).count();
        if files == 0 {
            return Ok(());
        }
        let kept_from = self.log.files.segments()[files].header.number;
        self.append_record(&encode_floor(self.floor, kept_from), 0)?;
        self.sync()?;
        self.remove_first(files)
    }

    fn append_record(&mut self, payload: &[u8], height: u64) -> Result<(), StoreError> {
        self.health.check()?;
        let files = self.highest.len();
        let appended = self.log.append(payload);
        self.health.note(appended)?;
        self.highest.resize(self.log.files.segments().len(), 0);
        self.bytes += record_bytes(payload) + ((self.highest.len() - files) * FILE_HEADER_BYTES) as u64;
        let highest = self.highest.last_mut().expect("there is a current file");
        *highest = (*highest).max(height);
        Ok(())
    }

    /// Removes this many of the oldest files.
    fn remove_first(&mut self, files: usize) -> Result<(), StoreError> {
        for _ in 0..files {
            let first = self.log.files.segments()[0].header.first;
            let removed = remove(&*self.disk, &Kind::Votes.file_name(first));
            self.health.note(removed)?;
            self.log.files.segments_mut().remove(0);
            self.highest.remove(0);
        }
        if files > 0 {
            self.bytes = total_bytes(&*self.disk)?;
        }
        Ok(())
    }
}

fn locked<D: Disk>(disk: D) -> Result<(Arc<D>, D::Lock), StoreError> {
    let place = disk.place();
    let lock = disk.lock().map_err(StoreError::io("lock", &place))?.ok_or(StoreError::Locked(place))?;
    Ok((Arc::new(disk), lock))
}

fn open_log<D: Disk>(disk: &Arc<D>, options: VoteOptions, repairs: &mut Vec<Repair>) -> Result<Log<D>, StoreError> {
    Log::open(disk, Kind::Votes, Known::NOTHING, options.segment_bytes.min(SEGMENT_BYTES_MAX), repairs)
}

/// The index of the file that holds a record, counted from the first existing file.
fn file_of<D: Disk>(log: &Log<D>, number: u64) -> usize {
    log.files.segments().partition_point(|segment| segment.header.first <= number) - 1
}

fn total_bytes<D: Disk>(disk: &D) -> Result<u64, StoreError> {
    Ok(list(disk, Kind::Votes)?.iter().map(|(_, bytes)| bytes).sum())
}

fn record_bytes(payload: &[u8]) -> u64 {
    (RECORD_HEADER_BYTES + payload.len() + DIGEST_BYTES) as u64
}

enum Record<'a> {
    Vote(u64, &'a [u8]),
    Floor(u64, u32),
}

fn encode_floor(height: u64, kept_from: u32) -> Vec<u8> {
    [&[FLOOR][..], &height.to_le_bytes(), &kept_from.to_le_bytes()].concat()
}

fn decode(payload: &[u8]) -> Option<Record<'_>> {
    let (kind, rest) = payload.split_first()?;
    let (height, rest) = rest.split_first_chunk()?;
    let height = u64::from_le_bytes(*height);
    match *kind {
        VOTE => Some(Record::Vote(height, rest)),
        FLOOR => Some(Record::Floor(height, u32::from_le_bytes(rest.try_into().ok()?))),
        _ => None,
    }
}
