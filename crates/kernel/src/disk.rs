//! A disk in memory that fails in the ways real disks can, controlled by a seed.
//!
//! It tracks what would survive a loss of power. Writes since the last sync may each survive or not, in any order, by
//! sectors of 512 bytes. So may names created, changed and removed since the directory was last synced. Every change is
//! a *point*, counted from 0. A test can look at the disk after each point, compute what a crash there would leave
//! ([`FaultDisk::after_crash`]), and inject errors at chosen points.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Dice;

const SECTOR_BYTES: u64 = 512;

/// How much unsynced data survives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surviving {
    /// Nothing.
    Nothing,
    /// All of it: the process was killed, but not the machine.
    Everything,
    /// All of it but the last write, of which this many sectors reached the disk.
    Torn(u64),
    /// Each sector and each name at random, from this seed.
    Some(u64),
}

impl Surviving {
    /// What the dice leave.
    pub fn drawn(dice: &mut Dice) -> Surviving {
        match dice.below(6) {
            0 => Surviving::Nothing,
            1 => Surviving::Everything,
            2 => Surviving::Torn(dice.below(8)),
            _ => Surviving::Some(dice.bits()),
        }
    }
}

/// A fault at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The call fails and nothing happens.
    Error,
    /// The call fails; a write leaves half its bytes, a sync loses what it should have made durable and reports it
    /// only once.
    Half,
    /// A write lands this many bytes further on, without an error.
    Misdirected(u64),
}

/// A simulated disk; clones are the same disk.
#[derive(Clone)]
pub struct FaultDisk {
    state: Arc<Mutex<State>>,
    watcher: Arc<Mutex<Option<Watcher>>>,
}

type Watcher = Arc<dyn Fn(&FaultDisk) + Send + Sync>;

#[derive(Clone, Debug, Default)]
struct State {
    files: BTreeMap<usize, Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<NameChange>,
    locked: bool,
    dice: Dice,
    points: u64,
    faults: BTreeMap<u64, DiskFault>,
    capacity: Option<u64>,
    /// The file that was written last.
    last_written: usize,
}

#[derive(Clone, Debug, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write(offset, bytes) => overwrite(content, *offset, bytes),
            Change::Truncate(length) => content.truncate(*length as usize),
        }
    }
}

fn overwrite(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}

/// The parts of a write that lie in one sector each.
fn sectors(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let (mut offset, mut rest) = (offset, bytes);
    std::iter::from_fn(move || {
        let length = (SECTOR_BYTES - offset % SECTOR_BYTES).min(rest.len() as u64);
        let (sector, after) = rest.split_at(length as usize);
        let item = (offset, sector);
        (offset, rest) = (offset + length, after);
        (length > 0).then_some(item)
    })
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Create(name, id) => {
                names.insert(name.clone(), *id);
            }
            NameChange::Rename(from, to) => {
                if let Some(id) = names.remove(from) {
                    names.insert(to.clone(), id);
                }
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl State {
    /// Counts a point; returns the fault to inject at it.
    fn point(&mut self) -> Option<DiskFault> {
        self.points += 1;
        self.faults.get(&(self.points - 1)).copied()
    }

    fn id(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn used(&self) -> u64 {
        self.names.values().map(|id| self.files[id].now.len() as u64).sum()
    }

    fn change_names(&mut self, change: NameChange) -> io::Result<()> {
        if self.point().is_some() {
            return Err(io::Error::other("injected"));
        }
        change.apply(&mut self.names);
        self.pending_names.push(change);
        Ok(())
    }

    fn change(&mut self, id: usize, change: Change) {
        let content = self.files.get_mut(&id).expect("an open file has content");
        change.apply(&mut content.now);
        content.pending.push(change);
        self.last_written = id;
    }

    fn write(&mut self, id: usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let growth = (offset + bytes.len() as u64).saturating_sub(self.files[&id].now.len() as u64);
        let room = self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()));
        let (further, kept, result) = match self.point() {
            None if growth > room => {
                let kept = (bytes.len() as u64 - growth + room) as usize;
                (0, kept, Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device")))
            }
            None => (0, bytes.len(), Ok(())),
            Some(DiskFault::Error) => (0, 0, Err(io::Error::other("injected"))),
            Some(DiskFault::Half) => (0, bytes.len() / 2, Err(io::Error::other("injected"))),
            Some(DiskFault::Misdirected(further)) => (further, bytes.len(), Ok(())),
        };
        self.change(id, Change::Write(offset + further, bytes[..kept].to_vec()));
        result
    }

    fn sync(&mut self, id: usize) -> io::Result<()> {
        let fault = self.point();
        let content = self.files.get_mut(&id).expect("an open file has content");
        match fault {
            // Data that an earlier sync lost was marked clean: it reaches the disk only if it is written again.
            None | Some(DiskFault::Misdirected(_)) => {
                let Content { durable, pending, .. } = content;
                pending.drain(..).for_each(|change| change.apply(durable));
                return Ok(());
            }
            Some(DiskFault::Error) => {}
            // The pages are marked clean although they never reached the disk.
            Some(DiskFault::Half) => content.pending.clear(),
        }
        Err(io::Error::other("injected"))
    }
}

impl std::fmt::Debug for FaultDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        f.debug_struct("FaultDisk").field("points", &state.points).field("names", &state.names).finish()
    }
}

impl FaultDisk {
    /// An empty disk.
    pub fn new(seed: u64) -> FaultDisk {
        FaultDisk::of(State { dice: Dice::new(seed), ..State::default() })
    }

    fn of(state: State) -> FaultDisk {
        FaultDisk { state: Arc::new(Mutex::new(state)), watcher: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `watcher` after every point.
    pub fn watch(&self, watcher: impl Fn(&FaultDisk) + Send + Sync + 'static) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(watcher));
    }

    /// Unlocks the state before the watcher looks at it.
    fn at_point<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(watcher) = watcher {
            watcher(self);
        }
        changed
    }

    /// The number of changes so far.
    pub fn points(&self) -> u64 {
        self.state().points
    }

    /// Injects a fault at a future point.
    pub fn inject(&self, point: u64, fault: DiskFault) {
        self.state().faults.insert(point, fault);
    }

    /// The most bytes that all files may hold; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Inverts bits of one byte of a file, like decay.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn flip(&self, name: &str, offset: u64, bits: u8) {
        let mut state = self.state();
        let id = state.names[name];
        let content = state.files.get_mut(&id).expect("a name has content");
        content.now[offset as usize] ^= bits;
        if let Some(byte) = content.durable.get_mut(offset as usize) {
            *byte ^= bits;
        }
    }

    /// The number of sectors of the last unsynced write; each may be the last that survives a crash.
    pub fn last_sectors(&self) -> u64 {
        let state = self.state();
        match state.files.get(&state.last_written).and_then(|content| content.pending.last()) {
            Some(Change::Write(offset, bytes)) => sectors(*offset, bytes).count() as u64,
            _ => 0,
        }
    }

    /// The content of a file.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn content(&self, name: &str) -> Vec<u8> {
        let state = self.state();
        state.files[&state.names[name]].now.clone()
    }

    /// Another disk, as this one would be found if the machine crashed now; this one is not affected.
    pub fn after_crash(&self, surviving: Surviving) -> FaultDisk {
        let before = self.state().clone();
        let mut dice = match surviving {
            Surviving::Some(seed) => before.dice.branch(seed),
            _ => before.dice.clone(),
        };
        let mut names = before.durable_names.clone();
        for change in &before.pending_names {
            let survives = match surviving {
                Surviving::Nothing => false,
                Surviving::Everything | Surviving::Torn(_) => true,
                Surviving::Some(_) => dice.bits() & 1 == 1,
            };
            if survives {
                change.apply(&mut names);
            }
        }
        let files = names.values().map(|&id| {
            let content = left_of(&before.files[&id], surviving, id == before.last_written, &mut dice);
            (id, Content { durable: content.clone(), now: content, pending: Vec::new() })
        });
        let files: BTreeMap<usize, Content> = files.collect();
        FaultDisk::of(State { files, names: names.clone(), durable_names: names, dice, ..State::default() })
    }
}

/// The content of a file after a crash.
fn left_of(content: &Content, surviving: Surviving, written_last: bool, dice: &mut Dice) -> Vec<u8> {
    let mut left = content.durable.clone();
    let last = content.pending.len().saturating_sub(1);
    for (i, change) in content.pending.iter().enumerate() {
        match (surviving, change) {
            (Surviving::Nothing, _) => {}
            (Surviving::Torn(kept), Change::Write(offset, bytes)) if written_last && i == last => {
                for (offset, sector) in sectors(*offset, bytes).take(kept as usize) {
                    overwrite(&mut left, offset, sector);
                }
            }
            (Surviving::Everything | Surviving::Torn(_), _) => change.apply(&mut left),
            (Surviving::Some(_), Change::Write(offset, bytes)) => {
                for (offset, sector) in sectors(*offset, bytes) {
                    match dice.bits() % 4 {
                        0 | 1 => overwrite(&mut left, offset, sector),
                        // The length reached the disk, the bytes did not.
                        2 => left.resize(left.len().max(offset as usize + sector.len()), 0),
                        _ => {}
                    }
                }
            }
            (Surviving::Some(_), Change::Truncate(_)) => {
                if dice.bits() & 1 == 1 {
                    change.apply(&mut left);
                }
            }
        }
    }
    left
}

/// An open file of a [`FaultDisk`].
#[derive(Debug)]
pub struct FaultFile {
    disk: FaultDisk,
    id: usize,
    writable: bool,
}

/// The lock of a [`FaultDisk`].
#[derive(Debug)]
pub struct FaultLock(FaultDisk);

impl Drop for FaultLock {
    fn drop(&mut self) {
        self.0.state().locked = false;
    }
}

/// What a store asks of a disk. Each call fails as a real disk does, and where a fault was injected.
impl FaultDisk {
    /// Locks the disk; `None` if it is locked.
    pub fn lock(&self) -> io::Result<Option<FaultLock>> {
        let was_locked = std::mem::replace(&mut self.state().locked, true);
        Ok((!was_locked).then(|| FaultLock(self.clone())))
    }

    /// The names with the lengths of their files.
    pub fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let state = self.state();
        Ok(state.names.iter().map(|(name, id)| (name.clone(), state.files[id].now.len() as u64)).collect())
    }

    /// Creates a file that does not exist.
    pub fn create(&self, name: &str) -> io::Result<FaultFile> {
        let id = self.at_point(|state| {
            if state.names.contains_key(name) {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists"));
            }
            let id = state.files.keys().last().map_or(0, |last| last + 1);
            state.files.insert(id, Content::default());
            state.change_names(NameChange::Create(name.into(), id)).map(|()| id)
        })?;
        Ok(FaultFile { disk: self.clone(), id, writable: true })
    }

    /// Opens a file.
    pub fn open(&self, name: &str, writable: bool) -> io::Result<FaultFile> {
        let id = self.state().id(name)?;
        Ok(FaultFile { disk: self.clone(), id, writable })
    }

    /// Gives a file another name, in place of the file that has it.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.at_point(|state| {
            state.id(from)?;
            state.change_names(NameChange::Rename(from.into(), to.into()))
        })
    }

    /// Removes a name.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.at_point(|state| {
            state.id(name)?;
            state.change_names(NameChange::Remove(name.into()))
        })
    }

    /// Makes the names durable.
    pub fn sync_directory(&self) -> io::Result<()> {
        self.at_point(|state| {
            if state.point().is_some() {
                return Err(io::Error::other("injected"));
            }
            state.pending_names.clear();
            state.durable_names = state.names.clone();
            Ok(())
        })
    }

    /// 32 bytes that look random.
    pub fn entropy(&self) -> io::Result<[u8; 32]> {
        let mut state = self.state();
        let mut bytes = [0; 32];
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&state.dice.bits().to_le_bytes());
        }
        Ok(bytes)
    }
}

impl FaultFile {
    fn writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::Error::new(io::ErrorKind::PermissionDenied, "opened for reading")) }
    }

    /// Bytes of the file.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[&self.id].now.len() as u64)
    }

    /// Fills the buffer from an offset.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        let content = state.files[&self.id].now.get(offset as usize..).unwrap_or_default();
        let bytes = content.get(..buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes at an offset.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writable()?;
        self.disk.at_point(|state| state.write(self.id, offset, bytes))
    }

    /// Cuts the file to a length.
    pub fn truncate(&self, length: u64) -> io::Result<()> {
        self.writable()?;
        self.disk.at_point(|state| match state.point() {
            None => {
                state.change(self.id, Change::Truncate(length));
                Ok(())
            }
            Some(_) => Err(io::Error::other("injected")),
        })
    }

    /// Makes the content durable.
    pub fn sync(&self) -> io::Result<()> {
        self.disk.at_point(|state| state.sync(self.id))
    }
}
