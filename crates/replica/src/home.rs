//! The disks that hold what must survive a crash.

use std::io;
use std::path::Path;

use store::{Disk, RealDisk};

/// The disks of one validator, by content. Clones share the same disks.
#[derive(Clone, Debug)]
pub struct Home<D> {
    /// Blocks, receipts and checkpoints.
    pub blocks: D,
    /// The log of this validator's votes.
    pub votes: D,
    /// Certificates, by height.
    pub certificates: D,
    /// Handovers, by epoch.
    pub handovers: D,
    /// A state that is being fetched, or that is complete and not installed yet.
    pub incoming: D,
}

impl Home<RealDisk> {
    /// The disks below a data directory. Creates missing directories.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn at(data: &Path) -> io::Result<Home<RealDisk>> {
        let part = |name: &str| RealDisk::new(data.join(name));
        Ok(Home {
            blocks: RealDisk::new(data)?,
            votes: part("votes")?,
            certificates: part("certificates")?,
            handovers: part("handovers")?,
            incoming: part("incoming")?,
        })
    }
}

/// The names of all files on a disk.
pub(crate) fn names(disk: &impl Disk) -> io::Result<Vec<String>> {
    Ok(disk.list()?.into_iter().map(|(name, _)| name).collect())
}
