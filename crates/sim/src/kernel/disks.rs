//! The disks of a process, and a crash in the middle of a write.

use std::sync::{Arc, Mutex, PoisonError};

use replica::Home;
use store::{FaultDisk, Surviving};

/// All disks of one process; a crash hits them at the same time.
pub(crate) trait Disks: Clone + Send + Sync + 'static {
    /// Each of them.
    fn each(&self) -> Vec<&FaultDisk>;

    /// The disks as they would be found if the machine crashed now.
    fn after_crash(&self, surviving: Surviving) -> Self;
}

impl Disks for FaultDisk {
    fn each(&self) -> Vec<&FaultDisk> {
        vec![self]
    }

    fn after_crash(&self, surviving: Surviving) -> FaultDisk {
        FaultDisk::after_crash(self, surviving)
    }
}

impl Disks for Home<FaultDisk> {
    fn each(&self) -> Vec<&FaultDisk> {
        vec![&self.blocks, &self.votes, &self.certificates, &self.handovers, &self.incoming]
    }

    fn after_crash(&self, surviving: Surviving) -> Home<FaultDisk> {
        Home {
            blocks: self.blocks.after_crash(surviving),
            votes: self.votes.after_crash(surviving),
            certificates: self.certificates.after_crash(surviving),
            handovers: self.handovers.after_crash(surviving),
            incoming: self.incoming.after_crash(surviving),
        }
    }
}

/// A crash that is armed, and what it left once it has occurred.
pub(crate) struct Crash<D>(Arc<Mutex<Option<D>>>);

impl<D> Default for Crash<D> {
    fn default() -> Crash<D> {
        Crash(Arc::default())
    }
}

impl<D: Disks> Crash<D> {
    /// Saves what a crash after this many further changes of one of the disks would leave.
    pub fn arm(&self, disks: &D, points: u64, surviving: Surviving) {
        for disk in disks.each() {
            let (slot, all, last) = (self.0.clone(), disks.clone(), disk.points() + points);
            disk.watch(move |disk| {
                if disk.points() > last {
                    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    slot.get_or_insert_with(|| all.after_crash(surviving));
                }
            });
        }
    }

    /// The disks, if the armed crash has occurred.
    pub fn take(&self) -> Option<D> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Cancels an armed crash that has not occurred.
    pub fn disarm(&self, disks: &D) {
        disks.each().into_iter().for_each(|disk| disk.watch(|_| ()));
        self.take();
    }
}
