//! The lane's part of a restart, on the disk of a node that does not run: its logs are closed, and a new home gets the
//! logs of the first epoch.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use lane::{FileLog, LogError, ShardError};
use payments::{ClosedLog, HomeEpoch, LogOwner};
use primitives::Digest;
use store::{Disk, RealDisk};

use super::keys;
use super::seat::LaneStartError;

/// Marks a lane whose logs are closed: no node of this home takes part in it any more, not in later epochs either.
const CLOSED: &str = "closed";

/// Closes the logs of a member in a node's data directory, durably, before anything that is in them is published.
/// Returns what they contain, and the logs that are no evidence because they are damaged.
///
/// # Errors
/// [`LaneStartError`] names the file that cannot be read or written, or the directory that a running node uses.
pub fn close_lane(
    data: &Path,
    network: Digest,
    member: u8,
    restart: u32,
) -> Result<(Vec<ClosedLog>, Vec<LogError>), LaneStartError> {
    let folder = data.join("lane");
    let failed = |error| LaneStartError::Directory(folder.display().to_string(), error);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut logs = Vec::new();
    for home in keys::homes(&folder) {
        for shard in keys::shards(&folder, home).map_err(failed)? {
            let disk = RealDisk::new(keys::directory(&folder, home, shard)).map_err(failed)?;
            // A shard that runs would go on signing after its log was read.
            let lock = disk.lock().map_err(failed)?.ok_or_else(|| ShardError::InUse(disk.place()))?;
            logs.push((LogOwner { network, home, validator: member, shard }, disk, lock));
        }
    }
    mark(&folder, restart).map_err(failed)?;
    let (mut closed, mut damaged) = (Vec::new(), Vec::new());
    for (owner, disk, _lock) in &logs {
        let Some(mut log) = FileLog::open(disk, owner)? else { continue };
        match log.close(owner, restart) {
            Ok(log) => closed.push(log),
            Err(error @ LogError::Unreadable(..)) => damaged.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((closed, damaged))
}

fn mark(folder: &Path, restart: u32) -> io::Result<()> {
    let unfinished = folder.join("closed.unfinished");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(restart.to_string().as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, folder.join(CLOSED))?;
    File::open(folder)?.sync_all()
}

/// The restart that the lane of a data directory is closed for, if it is.
///
/// # Errors
/// The error of the disk.
pub fn lane_closed_for(data: &Path) -> io::Result<Option<u32>> {
    match std::fs::read_to_string(data.join("lane").join(CLOSED)) {
        Ok(text) => Ok(Some(text.trim().parse().unwrap_or(u32::MAX))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates the logs of a member's shards in the first epoch of a restarted lane, whose keys exist already.
///
/// # Errors
/// [`LaneStartError`] names the file that cannot be written.
pub fn make_first_lane_logs(data: &Path, network: Digest, member: u8, shards: u16) -> Result<(), LaneStartError> {
    const FIRST: HomeEpoch = 0;
    for shard in 0..shards {
        let directory = keys::directory(&data.join("lane"), FIRST, shard);
        let failed = |error| LaneStartError::Directory(directory.display().to_string(), error);
        let disk = RealDisk::new(&directory).map_err(failed)?;
        match FileLog::create(&disk, &LogOwner { network, home: FIRST, validator: member, shard }) {
            Ok(()) | Err(LogError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lane_of_a_running_node_is_not_closed() {
        let data = tempfile::tempdir().expect("a directory");
        let (data, network) = (data.path(), Digest([7; 32]));
        make_first_lane_logs(data, network, 2, 2).expect("made");
        let shard = keys::directory(&data.join("lane"), 0, 1);
        let running = RealDisk::new(&shard).expect("a directory").lock().expect("a lock").expect("free");
        let refused = close_lane(data, network, 2, 1);
        assert!(matches!(refused, Err(LaneStartError::Shard(ShardError::InUse(_)))), "{refused:?}");
        assert_eq!(lane_closed_for(data).expect("readable"), None, "it runs on");
        drop(running);
        let (closed, damaged) = close_lane(data, network, 2, 1).expect("closed");
        assert_eq!((closed.len(), damaged.len(), lane_closed_for(data).expect("readable")), (2, 0, Some(1)));
        let (again, _) = close_lane(data, network, 2, 1).expect("a second time");
        assert_eq!(again, closed, "nothing is added to a closed log");
    }
}
