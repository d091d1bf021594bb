//! A crash of a process in the middle of a write.

use std::sync::{Arc, Mutex, PoisonError};

use crate::FaultDisk;

/// A crash that is armed, and what it left once it has occurred: one disk or all disks of a process.
pub struct Crash<D>(Arc<Mutex<Option<D>>>);

impl<D> Default for Crash<D> {
    fn default() -> Crash<D> {
        Crash(Arc::default())
    }
}

impl<D: Send + 'static> Crash<D> {
    /// Saves what a crash after this many further changes of one of the disks leaves. It hits all of them at the same
    /// time: `left` is asked once.
    pub fn arm<F>(&self, disks: &[&FaultDisk], points: u64, left: F)
    where
        F: Fn() -> D + Clone + Send + Sync + 'static,
    {
        for disk in disks {
            let (slot, left, last) = (self.0.clone(), left.clone(), disk.points() + points);
            disk.watch(move |disk| {
                if disk.points() > last {
                    slot.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(&left);
                }
            });
        }
    }

    /// What is left, if the armed crash has occurred.
    pub fn take(&self) -> Option<D> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Cancels an armed crash of these disks that has not occurred.
    pub fn disarm(&self, disks: &[&FaultDisk]) {
        disks.iter().for_each(|disk| disk.watch(|_| ()));
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surviving;

    #[test]
    fn a_crash_hits_all_disks_at_the_change_for_which_it_is_armed() {
        let (one, other, crash) = (FaultDisk::new(1), FaultDisk::new(2), Crash::default());
        let (left, right) = (one.clone(), other.clone());
        crash.arm(&[&one, &other], 1, move || [&left, &right].map(|disk| disk.after_crash(Surviving::Everything)));
        one.create("a").expect("a name");
        assert!(crash.take().is_none(), "one change more");
        one.create("b").expect("a name");
        one.create("c").expect("a name");
        let names = |disk: &FaultDisk| disk.list().expect("it has no faults").len();
        assert_eq!(crash.take().expect("it has occurred").each_ref().map(names), [2, 0]);
        crash.disarm(&[&one, &other]);
        other.create("d").expect("a name");
        other.create("e").expect("a name");
        assert!(crash.take().is_none(), "it was cancelled");
    }
}
