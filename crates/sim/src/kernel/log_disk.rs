//! A file that is only appended to: the log of a shard of the payment lane.

use payments::{LaneLog, LogOwner, new_log};

use super::Dice;

/// A key that the dice decide.
pub(crate) fn drawn_key(dice: &mut Dice) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&dice.bits().to_le_bytes());
    key
}

/// A log file: the appended bytes, and the part that certainly survives a crash.
#[derive(Clone, Debug)]
pub(crate) struct LogDisk {
    pub bytes: Vec<u8>,
    pub durable: usize,
}

impl LaneLog for LogDisk {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        self.bytes.get(start..start.checked_add(length)?).map(<[u8]>::to_vec)
    }
}

impl LogDisk {
    /// A log that is complete and durable.
    pub fn new(owner: &LogOwner, dice: &mut Dice) -> LogDisk {
        let bytes = new_log(owner, drawn_key(dice));
        let durable = bytes.len();
        LogDisk { bytes, durable }
    }

    /// A crash: a part of what was not durable remains, and may be torn.
    pub fn crash(&mut self, dice: &mut Dice) {
        let loose = self.bytes.len() - self.durable;
        self.bytes.truncate(self.durable + if loose == 0 { 0 } else { dice.index(loose + 1) });
        if self.bytes.len() > self.durable && dice.once_in(3) {
            let at = self.durable + dice.index(self.bytes.len() - self.durable);
            self.bytes[at] ^= 1 << dice.below(8);
        }
    }
}
