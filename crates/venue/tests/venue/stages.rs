//! Steps in two stages: the bytes of a root that takes one step after the other, however the stages overlap, and
//! crashes at each of their points.

use std::collections::VecDeque;

use kernel::{DiskFault, FaultDisk, RemainderDice, Surviving};
use primitives::Digest;
use primitives::venue::{OrderLife, VenueOrder, VenueSide};
use venue::{
    MatchedStep, ToldStep, TwoStages, VenueEffect, VenueInput, VenueMistake, VenueOptions, VenueRoot, VenueRootError,
    VenueStop,
};

use crate::world::*;

/// A step that a root took, what it told, and what the disk had then.
struct Taken {
    clock_ms: u64,
    inputs: Vec<VenueInput>,
    effects: Vec<VenueEffect>,
    disk: FaultDisk,
}

/// A disk, and what a root that was opened on it did there, one step after the other.
struct History {
    begins: FaultDisk,
    steps: Vec<Taken>,
    digest: Digest,
}

/// Everything on a disk.
fn content(disk: &FaultDisk) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = disk.list().expect("it lists").into_iter().map(|(name, _)| name).collect();
    files.sort_unstable();
    files.into_iter().map(|name| (name.clone(), disk.content(&name))).collect()
}

fn open(disk: FaultDisk, mistake: Option<VenueMistake>) -> VenueRoot<FaultDisk> {
    let options = VenueOptions { mistake: mistake.into(), ..VenueOptions::default() };
    VenueRoot::open(disk, keys(), options).expect("it opens").0
}

/// Orders and cancels of everybody: short steps, and such whose reports are many.
fn inputs(world: &mut World, dice: &mut RemainderDice) -> Vec<VenueInput> {
    let count = dice.one_of(&[0, 1, 2, 9, 24]);
    let mut known: Vec<(u8, VenueOrder)> = Vec::new();
    let mut inputs = Vec::new();
    for _ in 0..count {
        let person = dice.one_of(&TRADERS);
        if dice.below(6) == 0
            && let Some((person, order)) = known.last()
        {
            inputs.push(cancel(*person, order.number, 0));
            continue;
        }
        let side = dice.one_of(&[VenueSide::Buy, VenueSide::Sell]);
        let life = dice.one_of(&[OrderLife::Rests, OrderLife::Rests, OrderLife::ImmediateOrCancel]);
        let order = world.order(side, 99 + dice.below(3) as u32, 1 + dice.below(4) as u32);
        let order = VenueOrder { life, ..order };
        known.push((person, order));
        inputs.push(world.new_order(person, order));
    }
    inputs
}

fn history(seed: u64, steps: usize) -> History {
    let mut world = World::new(None);
    let mut dice = RemainderDice::new(seed);
    let begins = world.disk.after_crash(Surviving::Everything);
    world.reopen(begins.after_crash(Surviving::Everything)).expect("it opens");
    let mut taken = Vec::new();
    for _ in 0..steps {
        let inputs = match dice.below(4) {
            0 => {
                world.settling_block();
                let known = world.root().height().unwrap_or(0);
                let next = world.facts.iter().filter(|of| of.height > known);
                next.cloned().map(VenueInput::Certified).collect()
            }
            _ => inputs(&mut world, &mut dice),
        };
        let (clock_ms, effects) = (world.time_ms, world.step(&inputs));
        let disk = world.disk.after_crash(Surviving::Nothing);
        taken.push(Taken { clock_ms, inputs, effects, disk });
    }
    History { begins, steps: taken, digest: world.root().digest() }
}

/// Both stages of a root on a disk, each moved by whoever tests.
struct Apart {
    first: venue::MatchingStage,
    second: venue::JournalStage<FaultDisk>,
    disk: FaultDisk,
    matched: VecDeque<MatchedStep>,
    /// Steps that were matched, and those of which effects were told.
    taken: usize,
    told: usize,
}

impl Apart {
    fn new(history: &History, mistake: Option<VenueMistake>) -> Apart {
        let disk = history.begins.after_crash(Surviving::Everything);
        let (first, second) = open(disk.clone(), mistake).into_stages();
        Apart { first, second, disk, matched: VecDeque::new(), taken: 0, told: 0 }
    }

    fn take(&mut self, history: &History) {
        let Taken { clock_ms, inputs, .. } = &history.steps[self.taken];
        self.matched.push_back(self.first.take(*clock_ms, inputs));
        self.taken += 1;
    }

    /// The second stage writes a step, whose effects must be those of the root with one stage.
    fn write(&mut self, history: &History) -> Result<(), VenueRootError> {
        let step = self.matched.pop_front().expect("one was matched");
        let effects = self.second.write(step)?;
        assert_eq!(effects, history.steps[self.told].effects, "step {}", self.told);
        self.told += 1;
        Ok(())
    }

    /// Moves one of the stages; whether there was anything left to do.
    fn act(&mut self, history: &History, dice: &mut RemainderDice, ahead: usize) -> Result<bool, VenueRootError> {
        let can_take = self.taken < history.steps.len() && self.matched.len() < ahead;
        match (can_take, self.matched.is_empty()) {
            (false, true) => return Ok(false),
            (true, true) => self.take(history),
            (true, false) if dice.below(2) == 0 => self.take(history),
            _ => self.write(history)?,
        }
        Ok(true)
    }
}

/// What one root wrote, told and came to, the two stages do: whichever is ahead, and however far.
#[test]
fn two_stages_write_and_tell_what_one_does_however_they_overlap() {
    for seed in 0..12 {
        let history = history(seed, 24);
        assert!(history.steps.iter().any(|step| step.effects.len() > 32), "there are long steps");
        for ahead in [1, 2, 5] {
            let (mut stages, mut dice) = (Apart::new(&history, None), RemainderDice::new(100 * seed + ahead as u64));
            while stages.act(&history, &mut dice, ahead).expect("the disk works") {
                let so_far = stages.told.checked_sub(1).map(|last| &history.steps[last].disk);
                let disk = stages.disk.after_crash(Surviving::Nothing);
                assert!(so_far.is_none_or(|so_far| content(so_far) == content(&disk)), "the journal has other bytes");
            }
            let root = VenueRoot::of_stages(stages.first, stages.second);
            assert_eq!(root.map_err(|error| error.to_string()).map(|root| root.digest()), Ok(history.digest));
        }
    }
}

/// The process dies at any point of any overlap. What was told is in the journal. What opens is what a root with one
/// stage would open after the steps that the disk has.
fn crashes(mistake: Option<VenueMistake>) -> Result<(), String> {
    for seed in 0..4 {
        let history = history(seed, 16);
        let first_record = open(history.begins.after_crash(Surviving::Everything), None).last_record();
        for surviving in [Surviving::Nothing, Surviving::Everything, Surviving::Torn(0), Surviving::Some(seed)] {
            let (mut stages, mut dice) = (Apart::new(&history, mistake), RemainderDice::new(seed));
            loop {
                let root = open(stages.disk.after_crash(surviving), None);
                let Some(kept) = root.last_record().checked_sub(first_record + 1).map(|kept| kept as usize) else {
                    return Err("what the opening told is lost".into());
                };
                if kept < stages.told {
                    return Err(format!("{} steps were told and {kept} are kept", stages.told));
                }
                assert!(kept <= stages.taken);
                let one = kept.checked_sub(1).map_or(&history.begins, |last| &history.steps[last].disk);
                if kept > 0 {
                    let one = open(one.after_crash(Surviving::Everything), None);
                    assert_eq!(root.digest(), one.digest(), "seed {seed}, {kept} steps are kept");
                }
                if !stages.act(&history, &mut dice, 2).map_err(|error| error.to_string())? {
                    break;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_crash_between_the_stages_keeps_what_was_told_and_opens_as_one_stage_does() {
    crashes(None).expect("holds");
    assert!(crashes(Some(VenueMistake::ReportsBeforeSync)).is_err(), "the sweep sees what is told too early");
}

/// The attack: the disk fails at a step behind which another one was matched. Nothing of either is told, and the second
/// is never written: a journal with a gap would be another history.
#[test]
fn a_step_behind_one_that_failed_is_never_written() {
    let history = history(3, 16);
    let points = {
        let mut stages = Apart::new(&history, None);
        let before = stages.disk.points();
        while stages.act(&history, &mut RemainderDice::new(1), 2).expect("the disk works") {}
        before..stages.disk.points()
    };
    for (point, fault) in points.flat_map(|point| [(point, DiskFault::Error), (point, DiskFault::Half)]) {
        let (mut stages, mut dice) = (Apart::new(&history, None), RemainderDice::new(1));
        stages.disk.inject(point, fault);
        let failed = loop {
            match stages.act(&history, &mut dice, 2) {
                Ok(true) => {}
                Ok(false) => break false,
                Err(_) => break true,
            }
        };
        if !failed {
            continue;
        }
        let told = stages.told;
        while !stages.matched.is_empty() {
            assert!(stages.write(&history).is_err(), "a step was written behind one that failed");
        }
        let Apart { first, second, disk, .. } = stages;
        assert!(VenueRoot::of_stages(first, second).is_err());
        let root = open(disk.after_crash(Surviving::Everything), None);
        let first_record = open(history.begins.after_crash(Surviving::Everything), None).last_record();
        let kept = (root.last_record() - 1 - first_record) as usize;
        assert!((told..=told + 1).contains(&kept), "{told} steps were told and {kept} are kept");
    }
}

/// A step is refused by the second stage unless it is the next one.
#[test]
fn the_second_stage_refuses_a_step_that_is_not_the_next() {
    let history = history(5, 8);
    let mut stages = Apart::new(&history, None);
    stages.take(&history);
    stages.take(&history);
    let before = content(&stages.disk);
    let second = stages.matched.pop_back().expect("two were matched");
    assert!(matches!(stages.second.write(second), Err(VenueRootError::Failed)));
    assert!(matches!(stages.write(&history), Err(VenueRootError::Failed)), "the journal is given up");
    assert_eq!(content(&stages.disk), before);
}

/// The thread of the second stage: effects come in order, each with what was taken for it, and while a step is between
/// the stages there is no root to look at.
#[test]
fn overlapping_steps_are_told_in_order_and_show_no_state_before_it_is_durable() {
    for seed in 0..6 {
        let history = history(seed, 24);
        let disk = history.begins.after_crash(Surviving::Everything);
        let (woken, wakes) = std::sync::mpsc::channel();
        let mut stages = TwoStages::new(open(disk.clone(), None), move || {
            // Who waited may be gone.
            woken.send(()).ok();
        });
        let mut dice = RemainderDice::new(seed);
        let (mut told, mut was_apart): (Vec<ToldStep<usize>>, bool) = (Vec::new(), false);
        let first = stages.effects_told();
        for (at, Taken { clock_ms, inputs, .. }) in history.steps.iter().enumerate() {
            told.extend(stages.begin(*clock_ms, inputs, |_, _| at).expect("the disk works"));
            let count = told.iter().map(|step| step.effects.len() as u64).sum::<u64>();
            assert_eq!(stages.effects_told(), first + count, "only what is durable counts as told");
            was_apart |= stages.root().is_none();
            match dice.below(3) {
                0 => told.extend(stages.settle().expect("the disk works")),
                1 if stages.root().is_none() => {
                    wakes.recv().expect("the thread wakes whoever waits");
                    told.extend(stages.poll().expect("the disk works"));
                }
                _ => {}
            }
        }
        told.extend(stages.settle().expect("the disk works"));
        assert!(was_apart, "steps overlapped");
        assert_eq!(told.iter().map(|step| step.taken).collect::<Vec<_>>(), (0..24).collect::<Vec<_>>());
        let expected = history.steps.iter().map(|step| &step.effects);
        assert!(told.iter().map(|step| &step.effects).eq(expected));
        assert_eq!(stages.root().map(|root| root.digest()), Some(history.digest));
        let last = &history.steps.last().expect("steps").disk;
        assert_eq!(content(&disk.after_crash(Surviving::Nothing)), content(last));
    }
}

/// Whoever drops the stages while the disk works waits for it: the directory can be opened at once.
#[test]
fn stages_that_are_dropped_leave_a_directory_that_opens() {
    let history = history(2, 24);
    let disk = history.begins.after_crash(Surviving::Everything);
    let mut stages = TwoStages::new(open(disk.clone(), None), || {});
    let mut begun = 0;
    for Taken { clock_ms, inputs, .. } in &history.steps {
        stages.begin(*clock_ms, inputs, |_, _| ()).expect("the disk works");
        begun += 1;
        if stages.root().is_none() {
            break;
        }
    }
    drop(stages);
    let one = open(history.steps[begun - 1].disk.after_crash(Surviving::Everything), None);
    assert_eq!(open(disk, None).digest(), one.digest());
    assert_eq!(one.stopped(), None::<VenueStop>);
}

/// After a failure of the disk nothing is told any more, and there is nothing to look at.
#[test]
fn stages_whose_disk_fails_tell_nothing_more() {
    let history = history(2, 24);
    let disk = history.begins.after_crash(Surviving::Everything);
    let mut stages = TwoStages::new(open(disk.clone(), None), || {});
    disk.inject(disk.points(), DiskFault::Error);
    let mut told = 0;
    let mut failed = false;
    for Taken { clock_ms, inputs, .. } in &history.steps {
        match stages.begin(*clock_ms, inputs, |_, _| ()) {
            Ok(step) => told += usize::from(step.is_some()),
            Err(_) => failed = true,
        }
    }
    assert!(failed && told == 0 && stages.root().is_none() && stages.ahead().is_none());
    assert!(matches!(stages.settle(), Ok(None)));
}
