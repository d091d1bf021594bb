//! Shares of a resource that requests hold while they are served.
//!
//! An address may hold at most what it leaves free. So it never takes the last half, k greedy addresses leave 1/(k+1),
//! and nobody has to be counted in advance. An address that holds nothing yet may take whatever is free.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::places::masked;

/// Whose shares count together: an address, or of IPv6 the /56 that one subscriber gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(IpAddr);

impl Holder {
    /// The holder at an address.
    pub fn at(address: IpAddr) -> Holder {
        Holder(masked(address, 32, 56))
    }
}

#[derive(Debug)]
struct Divided {
    free: u64,
    held: HashMap<Holder, u64>,
}

impl Divided {
    fn take(&mut self, holder: Holder, units: u64) -> bool {
        let Some(left) = self.free.checked_sub(units) else { return false };
        let held = self.held.get(&holder).copied().unwrap_or(0);
        let is_fair = held == 0 || held + units <= left;
        if is_fair && units > 0 {
            self.free = left;
            self.held.insert(holder, held + units);
        }
        is_fair
    }

    /// What a holder may take at once now.
    fn left_for(&self, holder: Holder) -> u64 {
        match self.held.get(&holder) {
            None => self.free,
            Some(held) => self.free.saturating_sub(*held) / 2,
        }
    }

    fn give_back(&mut self, holder: Holder, units: u64) {
        self.free += units;
        if let Some(held) = self.held.get_mut(&holder) {
            *held -= units;
            if *held == 0 {
                self.held.remove(&holder);
            }
        }
    }
}

/// A resource that many addresses share. Clones are the same resource.
#[derive(Clone, Debug)]
pub struct Shares(Arc<Mutex<Divided>>);

impl Shares {
    /// All units are free.
    pub fn new(units: u64) -> Shares {
        Shares(Arc::new(Mutex::new(Divided { free: units, held: HashMap::new() })))
    }

    fn divided(&self) -> MutexGuard<'_, Divided> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes units for the holder at an address; `None` if too few are free, or it would hold more than it
    /// leaves.
    pub fn take(&self, address: IpAddr, units: u64) -> Option<Share> {
        let holder = Holder::at(address);
        self.divided().take(holder, units).then(|| Share { of: self.clone(), holder, units })
    }

    /// Units that [`Shares::take`] would give the holder at an address now.
    pub fn left_for(&self, address: IpAddr) -> u64 {
        self.divided().left_for(Holder::at(address))
    }

    /// Units that nobody holds.
    pub fn free(&self) -> u64 {
        self.divided().free
    }
}

/// Units that are held until this is dropped.
#[derive(Debug)]
pub struct Share {
    of: Shares,
    holder: Holder,
    units: u64,
}

impl Share {
    /// Takes more for the same address; false if it may not have them.
    pub fn extend(&mut self, units: u64) -> bool {
        let taken = self.of.divided().take(self.holder, units);
        self.units += if taken { units } else { 0 };
        taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.units > 0 {
            self.of.divided().give_back(self.holder, self.units);
        }
    }
}
