//! A connection: bytes on their way, which arrive in pieces.

use std::collections::VecDeque;

use kernel::Dice;

use super::WireMoment;

/// A stream in both directions, and who of its ends has given it up.
#[derive(Default)]
pub(super) struct Pipe {
    pub up: VecDeque<u8>,
    pub down: VecDeque<u8>,
    pub is_client_gone: bool,
    pub is_server_gone: bool,
    /// The end of one side does not reach the other one.
    pub is_half_open: bool,
}

impl Pipe {
    pub fn take_up(&mut self, at: &WireMoment, dice: &mut Dice) -> Vec<u8> {
        if self.is_server_gone {
            self.up.clear();
        }
        piece(&mut self.up, at, dice)
    }

    pub fn take_down(&mut self, at: &WireMoment, dice: &mut Dice) -> Vec<u8> {
        if self.is_client_gone {
            self.down.clear();
        }
        piece(&mut self.down, at, dice)
    }
}

/// The next bytes that arrive: none, one, a few, or all.
pub(super) fn piece(bytes: &mut VecDeque<u8>, at: &WireMoment, dice: &mut Dice) -> Vec<u8> {
    let all = bytes.len();
    let count = match dice.below(8) {
        _ if at.is_calm => all,
        0 => 0,
        1 => 1,
        2 | 3 => dice.index(all + 1),
        _ => all,
    };
    bytes.drain(..count.min(all)).collect()
}
