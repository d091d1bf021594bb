//! Random histories of traders, proposers, disks and clocks: what is matched in time never busts, and every restart is
//! the same root.

use kernel::{DiskFault, RemainderDice, Surviving};
use primitives::venue::{
    KeyScope, Mandate, MarketMandate, OrderLife, OrderNumber, SelfTradeRule, VenueOperation, VenueOrder, VenueSide,
};
use venue::{CertifiedFacts, Steering, TradeCommand, VenueInput, VenueLimits, VenueStop};

use crate::world::*;

struct History {
    world: World,
    dice: RemainderDice,
    /// Orders that were sent, and by whom.
    sent: Vec<(u8, VenueOrder)>,
    /// Whether the proposers must include what the pool has.
    is_urgent: bool,
    revoked: bool,
}

impl History {
    fn new(base: &World, seed: u64) -> History {
        let world = base.copy();
        History { world, dice: RemainderDice::new(seed), sent: Vec::new(), is_urgent: false, revoked: false }
    }

    fn order(&mut self) -> VenueOrder {
        let dice = &mut self.dice;
        let side = dice.one_of(&[VenueSide::Buy, VenueSide::Sell]);
        let (tick, lots) = (98 + dice.below(5) as u32, 1 + dice.below(30) as u32);
        let life = dice.one_of(&[
            OrderLife::Rests,
            OrderLife::Rests,
            OrderLife::Rests,
            OrderLife::PostOnly,
            OrderLife::ImmediateOrCancel,
            OrderLife::FillOrKill,
        ]);
        let self_trade =
            dice.one_of(&[SelfTradeRule::ExpireMaker, SelfTradeRule::ExpireTaker, SelfTradeRule::ExpireBoth]);
        let (life_heights, is_short, floors) = (dice.below(6), dice.below(3) == 0, dice.below(12) == 0);
        let mut order = VenueOrder { life, self_trade, ..self.world.order(side, tick, lots) };
        if is_short {
            order.expiry = self.world.height() + life_heights;
            order.until_ms = Some(self.world.time_ms + life_heights * STEP / 2);
        }
        if floors {
            order.floor = self.world.number(order.number.reference.saturating_sub(3));
        }
        order
    }

    fn known(&mut self) -> Option<(u8, VenueOrder)> {
        let recent = self.sent.len().min(12) as u64;
        (recent > 0).then(|| self.sent[self.sent.len() - 1 - self.dice.below(recent) as usize])
    }

    /// What sessions and the operator do in a step.
    fn inputs(&mut self) -> Vec<VenueInput> {
        (0..1 + self.dice.below(4)).filter_map(|_| self.input()).collect()
    }

    fn input(&mut self) -> Option<VenueInput> {
        Some(match self.dice.below(40) {
            0..=23 => {
                let (person, order) = (self.dice.one_of(&TRADERS), self.order());
                self.sent.push((person, order));
                self.world.new_order(person, order)
            }
            24..=26 => {
                let (person, order) = self.known()?;
                let keeps = self.dice.one_of(&[0, 0, order.lots / 2]);
                cancel(person, order.number, keeps)
            }
            27..=31 => {
                let (person, old) = self.known()?;
                let new = self.order();
                let order = VenueOrder { side: old.side, life: old.life, self_trade: old.self_trade, ..new };
                self.sent.push((person, order));
                VenueInput::Trade(person.into(), TradeCommand::Replace(old.number, self.world.checked(person, order)))
            }
            32..=33 => {
                let (person, order) = self.known()?;
                self.world.new_order(person, order)
            }
            34..=36 => {
                let person = self.dice.one_of(&TRADERS);
                attach(person, self.dice.below(2) == 0, self.dice.one_of(&[None, Some(2 * STEP)]))
            }
            37 => match self.dice.below(8) {
                0 => VenueInput::Detach(self.dice.one_of(&TRADERS).into()),
                1 => VenueInput::Kill(address(self.dice.one_of(&TRADERS))),
                _ => VenueInput::Revive(address(self.dice.one_of(&TRADERS))),
            },
            38 if self.dice.below(3) == 0 => {
                let reference = 95 + self.dice.below(11) as u32;
                let uncross = Steering::Uncross { reference, then_halts: self.dice.below(4) == 0 };
                let collar = Steering::SetCollar { low: 95 + self.dice.below(4) as u32, high: 105 };
                let all = [Steering::Halt, Steering::Resume, Steering::Call, uncross, uncross, collar];
                VenueInput::Steer(MARKET, self.dice.one_of(&all))
            }
            38 => VenueInput::Steer(MARKET, Steering::Uncross { reference: 100, then_halts: false }),
            _ => VenueInput::Steer(MARKET, Steering::Resume),
        })
    }

    /// What traders do on the ledger.
    fn operations(&mut self) -> Vec<(u8, VenueOperation)> {
        let (person, asset) = (self.dice.one_of(&TRADERS), self.dice.one_of(&[USD, EUR]));
        let venues = self.world.ledger.venues().expect("the chain has venues");
        let held = venues.deposit(VENUE, &address(person), asset);
        let key = venues.key(VENUE, &public(person)).expect("authorised").clone();
        Vec::from_iter(match self.dice.below(12) {
            0..=1 => Some((person, deposit(asset, 1 + self.dice.below(2_000)))),
            2..=3 if held.leaving.is_none() && held.free > 0 => {
                Some((person, collect(asset, held.free.div_ceil(self.dice.one_of(&[1, 2])))))
            }
            4 if key.revoked.is_none() => {
                let highest = key.raises.iter().map(|(_, floor)| *floor).fold(key.floor, OrderNumber::max);
                let above = if highest.incarnation < self.world.incarnation { 0 } else { highest.reference };
                let floor = self.world.number(above + 1 + self.dice.below(4) as u32);
                let has_room = key.raises.len() < 4;
                has_room.then_some((person, VenueOperation::RaiseFloor { venue: VENUE, key: public(person), floor }))
            }
            5 if !self.revoked && self.dice.below(6) == 0 => {
                self.revoked = true;
                Some((person, VenueOperation::Revoke { venue: VENUE, key: public(person) }))
            }
            _ => None,
        })
    }

    /// A block, in time: proposers hold back what they may.
    fn block(&mut self) {
        let (_, settled) = self.world.root().counts();
        let oldest = self.world.root().fills(settled, 1).expect("they are in the journal").first().copied();
        let next = self.world.height() + 1;
        self.is_urgent = oldest.is_some_and(|oldest| next - oldest.matched >= DELAY.heights / 2);
        if self.is_urgent {
            self.certify(self.world.height());
        }
        let mut settles = Vec::new();
        if self.is_urgent || self.dice.below(3) > 0 {
            settles = self.world.pool();
        }
        if settles.is_empty() && !self.world.sent.is_empty() && self.dice.below(4) == 0 {
            // A stale copy from another pool: its number is used, or it is the one in flight.
            let stale = self.dice.below(self.world.sent.len() as u64) as usize;
            settles.push(self.world.sent[stale].clone());
        }
        let operations = self.operations();
        self.world.block_with(operations, settles);
        let lag = if self.is_urgent { 0 } else { self.dice.below(3) };
        self.certify(self.world.height() - lag);
    }

    /// Certified blocks reach the root, whatever its disk does.
    fn certify(&mut self, height: u64) {
        let known = self.world.root().height().unwrap_or(0);
        let newest = self.world.height();
        let next = self.world.facts.iter().filter(|of| of.height > known && of.height <= height);
        let next = next.map(|of| CertifiedFacts { newest, ..of.clone() });
        let inputs: Vec<VenueInput> = next.map(VenueInput::Certified).collect();
        if !inputs.is_empty() {
            self.give(&inputs);
        }
    }

    /// A step; if the disk fails the process ends, opens again, and the inputs are sent again.
    fn give(&mut self, inputs: &[VenueInput]) {
        while self.world.try_step(inputs).is_err() {
            let surviving = self.surviving();
            self.world.crash(surviving).expect("it opens");
        }
    }

    /// The owner fences, whatever is unsettled; a root of the next incarnation begins.
    fn fence(&mut self) {
        let incarnation = self.world.incarnation;
        let pool = self.world.pool();
        self.world.block_with(vec![(OWNER, VenueOperation::Fence { venue: VENUE, incarnation })], pool);
        self.certify(self.world.height());
        assert_eq!(self.world.root().stopped(), Some(VenueStop::Fenced));
        assert_eq!(self.world.root().book(MARKET).map(matching::Book::len), Some(0), "its orders are void");
        self.world.begin_again();
    }

    fn surviving(&mut self) -> Surviving {
        let seed = self.dice.below(1_000);
        self.dice.one_of(&[Surviving::Nothing, Surviving::Everything, Surviving::Torn(0), Surviving::Some(seed)])
    }

    fn act(&mut self) {
        match self.dice.below(12) {
            0..=6 => {
                let inputs = self.inputs();
                self.give(&inputs);
            }
            7..=9 if self.dice.below(60) == 0 => self.fence(),
            7..=9 => self.block(),
            10 => {
                let surviving = self.surviving();
                match self.world.opened_digest() {
                    Ok(digest) => {
                        self.world.crash(surviving).expect("it opens");
                        assert_eq!(self.world.root().digest(), digest, "a restart is the same root");
                    }
                    Err(_) => self.world.crash(surviving).expect("it opens"),
                }
                self.block();
            }
            _ => match self.dice.below(2) {
                0 => {
                    let point = self.world.disk.points() + self.dice.below(12);
                    self.world.disk.inject(point, self.dice.one_of(&[DiskFault::Error, DiskFault::Half]));
                }
                _ => {
                    if self.world.root().snapshot().is_err() {
                        let surviving = self.surviving();
                        self.world.crash(surviving).expect("it opens");
                    }
                }
            },
        }
    }

    fn run(&mut self, acts: usize) -> Result<(), String> {
        for _ in 0..acts {
            self.act();
            self.world.check()?;
        }
        for _ in 0..8 {
            self.block();
        }
        self.world.check()
    }
}

/// Runs histories; returns how many fills they settled.
fn run(seeds: std::ops::Range<u64>, acts: usize) -> u64 {
    let limits = VenueLimits { quiet_ms: QUIET, numbers_of_key: 24, entries_of_key: 12, ..VenueLimits::default() };
    // Places for all traders, and for all but one.
    let bases = [limits, VenueLimits { accounts: 2, ..limits }].map(|limits| {
        let markets = vec![MarketMandate { market: MARKET, tick_min: 99, tick_max: 101 }];
        let caps = vec![(USD, 4_000), (EUR, 200)];
        World::with(None, Mandate { scope: KeyScope::Venue, markets, caps }, limits)
    });
    let mut fills = 0;
    for seed in seeds {
        let mut history = History::new(&bases[(seed % 2) as usize], seed);
        history.run(acts).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        fills += history.world.leaves.len() as u64;
    }
    fills
}

#[test]
fn random_histories_settle_what_they_report_and_bust_nothing() {
    let fills = run(0..24, 120);
    assert!(fills > 120, "{fills} fills");
}

#[test]
#[ignore = "long: `make soak` runs it"]
fn many_random_histories_settle_what_they_report_and_bust_nothing() {
    run(1_000..3_000, 200);
}
