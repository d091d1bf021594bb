//! Restarts: kills at every write, snapshots, damage, lost journals, and copies that are too old.

use kernel::{DiskFault, FaultDisk, Surviving};
use primitives::venue::VenueSide;
use venue::{
    MarketSettings, TradeCommand, VenueEffect, VenueInput, VenueKeys, VenueLimits, VenueMistake, VenueOptions,
    VenuePause, VenueRoot, VenueRootError, VenueStop,
};

use crate::world::*;

/// An act that is done again until the disk has it.
#[derive(Clone)]
enum Act {
    Inputs(Vec<VenueInput>),
    Block(bool),
    Snapshot,
}

/// From match to settle: fills, a snapshot, a cancel, a replacement, a settle that counts and one that does not.
fn acts(world: &mut World) -> Vec<Act> {
    let sell = world.sell(100, 10);
    let mut orders = vec![world.new_order(ANN, sell)];
    for lots in [3, 2] {
        let buy = world.buy(100, lots);
        orders.push(world.new_order(BEN, buy));
    }
    let (next, buy, last) = (world.sell(99, 12), world.buy(100, 4), world.buy(99, 2));
    let replaces = TradeCommand::Replace(sell.number, world.checked(ANN, next));
    vec![
        Act::Inputs(orders[..2].to_vec()),
        Act::Block(false),
        Act::Inputs(orders[2..].to_vec()),
        Act::Block(false),
        Act::Snapshot,
        Act::Inputs(vec![VenueInput::Trade(ANN.into(), replaces), world.new_order(CLEO, buy)]),
        Act::Block(true),
        Act::Inputs(vec![world.new_order(BEN, last), cancel(ANN, next.number, 11)]),
        Act::Block(true),
        Act::Block(true),
    ]
}

impl World {
    fn perform(&mut self, act: &Act) -> Result<(), VenueRootError> {
        match act {
            Act::Inputs(inputs) => drop(self.try_step(inputs)?),
            Act::Snapshot => self.root().snapshot()?,
            Act::Block(_) => {
                let known = self.root().height().unwrap_or(0);
                let next = self.facts.iter().filter(|of| of.height > known);
                let inputs: Vec<VenueInput> = next.cloned().map(VenueInput::Certified).collect();
                self.try_step(&inputs)?;
            }
        }
        Ok(())
    }

    /// Performs acts; where the disk fails, the process ends and the act is done again. Returns how often it did.
    fn perform_all(&mut self, acts: &[Act], surviving: Surviving) -> Result<usize, String> {
        let mut crashes = 0;
        for act in acts {
            if let Act::Block(settles) = act {
                let pool = if *settles { self.pool() } else { Vec::new() };
                self.block_with(Vec::new(), pool);
            }
            while self.perform(act).is_err() {
                crashes += 1;
                self.crash(surviving).map_err(|error| error.to_string())?;
            }
        }
        Ok(crashes)
    }
}

/// What was reported survives a kill, and an index is never reported twice with two leaves.
pub fn unsynced(mistake: Option<VenueMistake>) -> Result<(), String> {
    let mut world = World::new(None);
    world.options.mistake = mistake.into();
    world.crash(Surviving::Nothing).map_err(|error| error.to_string())?;
    world.pass(1);
    world.trade(ANN, BEN, 100, 5);
    world.crash(Surviving::Nothing).map_err(|error| error.to_string())?;
    world.pass(1);
    world.trade(ANN, BEN, 101, 6);
    world.crash(Surviving::Nothing).map_err(|error| error.to_string())?;
    world.settle_all()?;
    expect("fills", world.leaves.len(), 2)
}

#[test]
fn a_kill_at_every_write_loses_nothing_that_was_reported_and_settles_nothing_twice() {
    let mut base = World::new(None);
    let acts = acts(&mut base);
    let mut plain = base.copy();
    plain.perform_all(&acts, Surviving::Nothing).expect("no fault");
    plain.settle_all().expect("holds");
    let points = plain.disk.points();
    let mut crashes = 0;
    for point in 0..points {
        for (fault, surviving) in [
            (DiskFault::Error, Surviving::Nothing),
            (DiskFault::Half, Surviving::Everything),
            (DiskFault::Half, Surviving::Some(point)),
        ] {
            let mut world = base.copy();
            world.disk.inject(point, fault);
            crashes += world.perform_all(&acts, surviving).unwrap_or_else(|error| panic!("{point}: {error}"));
            let settled = world.root().counts().1;
            for _ in 0..4 {
                world.settling_block();
                while world.perform(&Act::Block(true)).is_err() {
                    world.crash(surviving).expect("it opens");
                }
            }
            world.check().unwrap_or_else(|error| panic!("{point}, {surviving:?}: {error}"));
            assert_eq!(world.leaves, plain.leaves, "{point}, {surviving:?}, {settled}: the same fills, once");
        }
    }
    assert!(crashes as u64 > points, "{crashes} crashes at {points} points");
}

#[test]
fn nothing_is_reported_before_its_sync() {
    unsynced(None).expect("holds");
}

#[test]
fn a_restart_gives_the_same_digest_with_a_snapshot_or_without() {
    let mut world = World::new(None);
    let acts = acts(&mut world);
    for act in &acts {
        world.perform_all(std::slice::from_ref(act), Surviving::Nothing).expect("no fault");
        let digest = world.opened_digest().expect("the disk works");
        for surviving in [Surviving::Nothing, Surviving::Everything] {
            world.crash(surviving).expect("it opens");
            assert_eq!(world.root().digest(), digest);
        }
    }
    let digest = world.opened_digest().expect("the disk works");
    world.root().snapshot().expect("the disk works");
    world.crash(Surviving::Nothing).expect("it opens");
    assert_eq!(world.root().digest(), digest);
    world.settle_all().expect("holds");
}

#[test]
fn a_snapshot_is_written_while_steps_go_on() {
    let mut world = World::new(None);
    world.trade(ANN, BEN, 100, 5);
    let snapshot = world.root().begin_snapshot().expect("the disk works").expect("there are records");
    world.trade(ANN, BEN, 101, 6);
    let writer = std::thread::spawn(move || snapshot.write());
    world.settle_all().expect("holds");
    writer.join().expect("no panic").expect("the disk works");
    let digest = world.opened_digest().expect("the disk works");
    world.crash(Surviving::Nothing).expect("it opens");
    assert_eq!(world.root().digest(), digest);
    assert!(world.root().begin_snapshot().expect("the disk works").is_some(), "records came after it");
}

#[test]
fn a_second_snapshot_is_refused_while_one_is_written_and_the_root_goes_on() {
    let mut world = World::new(None);
    world.trade(ANN, BEN, 100, 5);
    let first = world.root().begin_snapshot().expect("the disk works").expect("there are records");
    world.trade(ANN, BEN, 101, 6);
    let running = world.root().snapshot();
    assert!(matches!(running, Err(VenueRootError::Store(store::StoreError::CheckpointRunning))), "{running:?}");
    world.trade(ANN, BEN, 102, 7);
    first.write().expect("the disk works");
    world.root().snapshot().expect("the disk works");
    world.settle_all().expect("holds");
}

/// After a restart whose clock is not ahead, the blocks that were learnt before may be old.
pub fn old_blocks(mistake: Option<VenueMistake>) -> Result<(), String> {
    let mut world = World::new(mistake);
    let sell = world.sell(100, 5);
    world.place(ANN, sell);
    let clock = world.time_ms;
    world.block(vec![(ANN, collect(EUR, DEPOSIT))]);
    (0..DELAY.heights + 2).for_each(|_| world.block(Vec::new()));
    world.crash(Surviving::Nothing).map_err(|error| error.to_string())?;
    let now = std::mem::replace(&mut world.time_ms, clock);
    let buy = world.buy(100, 5);
    world.place(BEN, buy);
    world.time_ms = now;
    world.certify();
    world.settle_all()?;
    expect("the root", world.root().paused(), None)?;
    expect("fills", world.leaves.len(), 0)
}

#[test]
fn nothing_is_matched_after_a_restart_before_a_certified_block_comes() {
    old_blocks(None).expect("holds");
}

/// An operator's account that is changed and comes back goes on with the settle that it has in flight.
pub fn comes_back(mistake: Option<VenueMistake>) -> Result<(), String> {
    let mut world = World::new(mistake);
    world.trade(ANN, BEN, 100, 5);
    world.pass(1);
    let other = VenueKeys { account: address(7), operator: key(7), report: key(99) };
    world.open_with(other).map_err(|error| error.to_string())?;
    world.pass(1);
    world.open_with(keys()).map_err(|error| error.to_string())?;
    world.pass(1);
    world.settle_all()
}

#[test]
fn an_operator_that_comes_back_signs_no_number_twice() {
    comes_back(None).expect("holds");
}

#[test]
fn missed_fills_are_fetched_by_index_with_the_same_reports() {
    let mut world = World::new(None);
    for lots in 1..=5 {
        world.trade(ANN, BEN, 100, lots);
        world.pass(1);
        world.settle_all().expect("holds");
    }
    world.crash(Surviving::Nothing).expect("it opens");
    let told = world.told.clone();
    let fills = world.root().fills(1, 3).expect("they are in the journal");
    assert_eq!(fills.iter().map(|fill| (fill.index, fill.terms.lots)).collect::<Vec<_>>(), [(1, 2), (2, 3), (3, 4)]);
    for step in world.root().reported(1, 3).expect("they are in the journal") {
        for (at, fill) in step.fills().iter().enumerate() {
            let [seller, buyer] = [VenueSide::Sell, VenueSide::Buy].map(|side| step.report(at, side));
            assert_eq!(told[&fill.index], [seller, buyer], "byte for byte");
        }
    }
    assert_eq!(world.root().fills(5, 3).expect("none"), []);
    assert_eq!(world.root().fills(1, 0).expect("none"), []);
}

#[test]
fn effects_that_a_crash_swallowed_are_told_again() {
    let mut world = World::new(None);
    let (sell, buy) = (world.sell(100, 5), world.buy(100, 3));
    world.place(ANN, sell);
    let from = world.root().effects_told();
    let effects = world.step(&[world.new_order(BEN, buy)]);
    world.options.again_from = Some(from);
    let options = world.options;
    let disk = world.disk.after_crash(Surviving::Nothing);
    let (_, found) = VenueRoot::open(disk, keys(), options).expect("it opens");
    let pause = VenueEffect::Pause(Some(VenuePause::NoBlocks));
    let told = effects.into_iter().chain([pause.clone()]);
    assert_eq!(found.again, (from..).zip(told).collect::<Vec<_>>(), "byte for byte, and what the opening tells");
    world.root().snapshot().expect("the disk works");
    let next = world.root().effects_told();
    let (_, found) = VenueRoot::open(world.disk.after_crash(Surviving::Nothing), keys(), options).expect("it opens");
    assert_eq!(found.again, [(next, pause)], "the snapshot contains the others");
}

#[test]
fn a_root_without_its_journal_does_not_report_on() {
    let mut world = World::new(None);
    world.trade(ANN, BEN, 100, 5);
    let old = world.disk.after_crash(Surviving::Nothing);
    world.trade(ANN, BEN, 101, 6);
    world.settle_all().expect("holds");
    let options = VenueOptions::default();
    let lost = VenueRoot::open(FaultDisk::new(7), keys(), options).map(|_| ());
    assert!(matches!(lost, Err(VenueRootError::JournalLost(_))), "{lost:?}");
    world.root = None;
    let settings = world.settings(VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() });
    let again = VenueRoot::create(world.disk.clone(), settings, keys(), options).map(|_| ());
    assert!(matches!(again, Err(VenueRootError::JournalExists(_))), "{again:?}");
    // A copy that is too old, and a journal that was made anew, learn it from the ledger.
    world.reopen(old).expect("it opens");
    world.certify();
    assert_eq!(world.root().stopped(), Some(VenueStop::JournalShort(2)));
    world.root = Some(VenueRoot::create(FaultDisk::new(8), settings, keys(), options).expect("an empty disk"));
    world.certify();
    assert!(matches!(world.root().stopped(), Some(VenueStop::JournalShort(_))));
}

#[test]
fn a_torn_tail_is_cut_and_damage_in_the_middle_is_named() {
    let mut world = World::new(None);
    for _ in 0..4 {
        world.trade(ANN, BEN, 100, 5);
    }
    let digest = world.opened_digest().expect("the disk works");
    let place = |disk: &FaultDisk| {
        let names = store::Disk::list(disk).expect("lists");
        names.into_iter().find(|(name, _)| name.starts_with("blocks-")).expect("a journal")
    };
    // The last record is written and not synced.
    let points = world.disk.points();
    world.disk.inject(points + 2, DiskFault::Error);
    let sell = world.sell(100, 5);
    let input = world.new_order(ANN, sell);
    assert!(world.try_step(&[input]).is_err());
    assert!(matches!(world.try_step(&[]), Err(VenueRootError::Failed)), "it does nothing more");
    world.crash(Surviving::Torn(0)).expect("it opens");
    let torn = world.root().digest() == digest;
    let disk = world.disk.after_crash(Surviving::Everything);
    let (name, length) = place(&disk);
    disk.flip(&name, length / 2, 1);
    let damaged = VenueRoot::open(disk, keys(), VenueOptions::default()).map(|_| ());
    let Err(VenueRootError::Damaged { file, offset, .. }) = damaged else { panic!("{damaged:?}") };
    assert!(file.contains(&name) && offset > 0 && offset < length, "{file}, {offset}");
    assert!(torn || world.root().standing(&public(ANN), &sell.number).is_some());
}

#[test]
fn a_program_that_comes_to_other_fills_does_not_open_the_journal() {
    let mut world = World::new(None);
    let (sell, next, buy) = (world.sell(100, 10), world.sell(100, 12), world.buy(100, 4));
    world.place(ANN, sell);
    world.place(BEN, buy);
    world.replace(ANN, sell.number, next);
    let sweep = world.buy(100, 20);
    world.place(BEN, sweep);
    world.options.mistake = VenueMistake::ReplaceForgetsExecuted.into();
    let record = world.root().last_record();
    let diverged = world.crash(Surviving::Nothing);
    assert!(matches!(diverged, Err(VenueRootError::Diverged(at)) if at == record), "{diverged:?}");
}

#[test]
fn old_records_are_forgotten_below_two_snapshots() {
    let mut world = World::new(None);
    world.options.files.segment_bytes = 4_096;
    world.crash(Surviving::Nothing).expect("it opens");
    world.pass(1);
    for _ in 0..12 {
        world.trade(ANN, BEN, 100, 1);
        world.settling_block();
        world.certify();
        world.root().snapshot().expect("the disk works");
    }
    world.settle_all().expect("holds");
    let last = world.root().last_record();
    world.root().forget_below(last).expect("the disk works");
    let digest = world.opened_digest().expect("the disk works");
    world.crash(Surviving::Nothing).expect("it opens");
    assert_eq!(world.root().digest(), digest);
    assert!(matches!(world.root().fills(0, 1), Err(VenueRootError::Forgotten(0))));
    assert_eq!(world.root().fills(11, 1).expect("it is there").len(), 1);
}

#[test]
fn markets_open_once_and_with_sound_fees() {
    let mut world = World::new(None);
    let refused = |world: &mut World, market, settings| {
        let effects = world.step(&[VenueInput::OpenMarket(market, settings)]);
        matches!(effects[..], [venue::VenueEffect::Refused(..)])
    };
    assert!(refused(&mut world, MARKET, market_settings()));
    assert!(refused(&mut world, 7, market_settings()));
    assert!(!MarketSettings { maker_ppm: -2_001, ..market_settings() }.has_sound_fees());
    assert!(!MarketSettings { taker_ppm: 1_000_001, ..market_settings() }.has_sound_fees());
}
