//! A file that is only appended to.

use crate::Dice;

/// The file: what was appended, and the part of it that certainly survives a crash.
#[derive(Clone, Debug, Default)]
pub struct LogDisk {
    /// What was appended.
    pub bytes: Vec<u8>,
    /// Bytes of it that are durable.
    pub durable: usize,
}

impl LogDisk {
    /// A file with this content, which is durable.
    pub fn holding(bytes: Vec<u8>) -> LogDisk {
        LogDisk { durable: bytes.len(), bytes }
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
