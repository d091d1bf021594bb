//! Random commands of few owners.

use matching::*;

/// Few owners, references and ticks: nearly every command meets another one. Half of the ticks are outside the window.
pub const LIMITS: BookLimits = BookLimits {
    orders: 40,
    owners: 4,
    orders_of_owner: 14,
    window_base: 20,
    window_ticks: 64,
    fill_or_kill_orders: 3,
};

/// A small generator of numbers, so that a run is its seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, most: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % u64::from(most)) as u32
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// Around tick 20, where the window begins.
    fn tick(&mut self) -> u32 {
        match self.below(60) {
            0 => self.of(&[0, 1, TICK_MAX, TICK_MAX + 1]),
            1..8 => self.below(200),
            _ => 14 + self.below(12),
        }
    }

    fn order(&mut self) -> NewOrder {
        let rests = TimeInForce::GoodTillCancelled;
        let (owners, lots) = (self.of(&[4, 4, 4, 4, 4, 4, 6]), self.of(&[1, 30, 30, 30, 30]));
        NewOrder {
            owner: self.below(owners),
            reference: self.below(16),
            side: self.of(&[Side::Buy, Side::Sell]),
            tick: self.tick(),
            lots: self.below(lots),
            time_in_force: self.of(&[rests, rests, rests, TimeInForce::ImmediateOrCancel, TimeInForce::FillOrKill]),
            post_only: self.below(8) == 0,
            self_trade: self.of(&[SelfTrade::ExpireMaker, SelfTrade::ExpireTaker, SelfTrade::ExpireBoth]),
        }
    }

    pub fn command(&mut self) -> Command {
        let owner = self.below(4);
        match self.below(400) {
            0 => Command::Kill { owner: self.below(5) },
            1..5 => Command::Revive { owner: self.below(5) },
            5 => Command::Halt,
            6..12 => Command::Resume,
            12..15 => Command::Call,
            15..25 => {
                let then = self.of(&[Phase::Continuous, Phase::Continuous, Phase::Halted, Phase::Call]);
                Command::Uncross { reference: self.tick(), then }
            }
            25..27 => Command::SetCollar { low: self.tick(), high: self.tick() },
            27..34 => Command::SetCollar { low: 1, high: TICK_MAX },
            34..38 => {
                Command::CancelAll { owner: self.below(5), side: self.of(&[None, Some(Side::Buy), Some(Side::Sell)]) }
            }
            38..120 => Command::Cancel { owner, reference: self.below(16) },
            120..200 => {
                let reference = self.below(16);
                let new_reference = if self.below(2) == 0 { reference } else { self.below(16) };
                Command::Replace(Replacement {
                    owner,
                    reference,
                    new_reference,
                    tick: self.tick(),
                    lots: self.below(40),
                })
            }
            _ => Command::New(self.order()),
        }
    }
}
