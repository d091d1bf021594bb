//! The disk of simulations as a disk of the store.

use std::io;

use kernel::{FaultDisk, FaultFile, FaultLock};

use crate::disk::{Disk, DiskFile};

impl Disk for FaultDisk {
    type File = FaultFile;
    type Lock = FaultLock;

    fn place(&self) -> String {
        "simulated disk".into()
    }

    fn lock(&self) -> io::Result<Option<FaultLock>> {
        self.lock()
    }

    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        self.list()
    }

    fn create(&self, name: &str) -> io::Result<FaultFile> {
        self.create(name)
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<FaultFile> {
        self.open(name, writable)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.sync_directory()
    }

    fn entropy(&self) -> io::Result<[u8; 32]> {
        self.entropy()
    }
}

impl DiskFile for FaultFile {
    fn length(&self) -> io::Result<u64> {
        self.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(offset, bytes)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync()
    }
}
