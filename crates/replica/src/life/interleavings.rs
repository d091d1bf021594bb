//! Every order in which the jobs of some blocks can end, against a plain record of what has happened.

use std::collections::{BTreeSet, HashSet, VecDeque};

use kernel::Planted;

use super::*;

/// Decided blocks.
const BLOCKS: Height = 5;
/// A handover to this epoch needs the registry after this height.
const HANDOVERS: [(u64, Height); 2] = [(1, 1), (2, 2)];
const WORKERS: [BlockWorker; 5] =
    [BlockWorker::Executor, BlockWorker::Logger, BlockWorker::Publisher, BlockWorker::Roots, BlockWorker::Checkpointer];
const SETTINGS: LifeSettings = LifeSettings { checkpoint_blocks: 2, keep_blocks: 1, mistake: Planted::NOTHING };

/// What has happened: the last height of each kind.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Record {
    decided: Height,
    built: Height,
    logged: Height,
    applied: Height,
    shown: Height,
    published: Height,
    hashed: Height,
    kept: u64,
    checkpoint: Height,
    certified: Height,
    has_stopped: bool,
    has_ended: bool,
}

impl Record {
    fn note(&mut self, input: LifeInput) {
        match input {
            LifeInput::Decided(height) => self.decided = height,
            LifeInput::Built(height) => self.built = height,
            LifeInput::Logged(height) => self.logged = height,
            LifeInput::Applied(height) => self.applied = height,
            LifeInput::Shown { height, .. } => self.shown = height,
            LifeInput::Published(height) => self.published = height,
            LifeInput::Hashed(height) => self.hashed = height,
            LifeInput::Kept(epoch) => self.kept = epoch,
            LifeInput::Checkpointed(height) => self.checkpoint = height,
            LifeInput::Certified(height) => self.certified = height,
            LifeInput::Stop => self.has_stopped = true,
            LifeInput::Compared(_) | LifeInput::Forgotten(_) => {}
        }
    }

    fn durable(&self) -> Durable {
        Durable { blocks: self.logged, receipts: self.published, checkpoint: self.checkpoint }
    }

    /// Whether a job may begin now.
    fn admits(&self, job: BlockJob) -> bool {
        let last_kept = HANDOVERS.iter().filter(|(_, at)| *at <= self.shown).map(|(epoch, _)| *epoch).max();
        let is_in_order = match job {
            BlockJob::Build(height) => {
                let is_next = height == self.built + 1 && height <= self.decided;
                let is_founded = self.shown == height - 1 && self.hashed == height - 1;
                let has_handover = self.kept == last_kept.unwrap_or(0);
                is_next && is_founded && has_handover && height - 1 <= self.published + UNPUBLISHED_MAX
            }
            BlockJob::Log(height) => height == self.logged + 1 && self.built == height,
            BlockJob::Apply { height, .. } => height == self.applied + 1 && self.built == height,
            BlockJob::Show(height) => height == self.shown + 1 && self.applied == height,
            BlockJob::Publish(height) => height == self.published + 1 && height <= self.shown,
            BlockJob::Hash(height) => height == self.hashed + 1 && height <= self.shown,
            BlockJob::Compare(height) => height <= self.shown,
            BlockJob::Keep { epoch, height } => {
                HANDOVERS.contains(&(epoch, height)) && self.kept < epoch && self.hashed == height
            }
            BlockJob::Checkpoint { height, .. } => height > self.checkpoint,
            BlockJob::Forget { checkpoint, below } => below <= checkpoint && below <= self.certified,
            BlockJob::End => self.has_stopped && self.shown == self.published && self.shown == self.hashed,
        };
        is_in_order && self.durable().covers(&job.needs())
    }
}

/// The result of a job.
fn result(job: BlockJob) -> Option<LifeInput> {
    let handover = |height| HANDOVERS.iter().find(|(_, at)| *at == height).map(|(epoch, _)| *epoch);
    Some(match job {
        BlockJob::Compare(height) => LifeInput::Compared(height),
        BlockJob::Keep { epoch, .. } => LifeInput::Kept(epoch),
        BlockJob::Build(height) => LifeInput::Built(height),
        BlockJob::Log(height) => LifeInput::Logged(height),
        BlockJob::Apply { height, .. } => LifeInput::Applied(height),
        BlockJob::Show(height) => LifeInput::Shown { height, handover: handover(height) },
        BlockJob::Publish(height) => LifeInput::Published(height),
        BlockJob::Hash(height) => LifeInput::Hashed(height),
        BlockJob::Checkpoint { height, .. } => LifeInput::Checkpointed(height),
        BlockJob::Forget { checkpoint, .. } => LifeInput::Forgotten(checkpoint),
        BlockJob::End => return None,
    })
}

/// One place in the tree of interleavings.
#[derive(Clone, PartialEq, Eq, Hash)]
struct At {
    life: BlockLife,
    record: Record,
    out: BTreeSet<BlockJob>,
}

impl At {
    fn begin(mistake: Option<LifeMistake>) -> At {
        let life = BlockLife::new(LifeSettings { mistake: mistake.into(), ..SETTINGS }, LifeStart::default());
        At { life, record: Record::default(), out: BTreeSet::new() }
    }

    /// What can happen next: a job ends, a height is decided or certified, or the node stops.
    fn possible(&self) -> Vec<(Option<BlockJob>, LifeInput)> {
        let ends = self.out.iter().filter_map(|job| Some((Some(*job), result(*job)?)));
        let Record { decided, certified, shown, has_stopped, .. } = self.record;
        let decides = (decided < BLOCKS && !has_stopped).then_some((None, LifeInput::Decided(decided + 1)));
        let certifies = (certified < shown).then_some((None, LifeInput::Certified(shown)));
        let stops = (!has_stopped && decided == BLOCKS).then_some((None, LifeInput::Stop));
        ends.chain(decides).chain(certifies).chain(stops).collect()
    }

    /// The place after this has happened, or the job that should not have begun.
    fn after(&self, ended: Option<BlockJob>, input: LifeInput) -> Result<At, BlockJob> {
        let mut at = self.clone();
        at.out.retain(|job| Some(*job) != ended);
        at.record.note(input);
        for job in at.life.step(input) {
            if !at.record.admits(job) || !at.out.insert(job) || at.lends_twice() {
                return Err(job);
            }
            at.record.has_ended |= job == BlockJob::End;
        }
        Ok(at)
    }

    /// Whether one worker has two jobs, or the tries are with two.
    fn lends_twice(&self) -> bool {
        let of = |worker| self.out.iter().filter(|job| job.worker() == Some(worker)).count();
        let keeps = self.out.iter().any(|job| matches!(job, BlockJob::Keep { .. }));
        let is_twice = WORKERS.into_iter().any(|worker| of(worker) > 1) || (keeps && of(BlockWorker::Roots) > 0);
        is_twice || self.out.len() > JOBS_MAX
    }

    /// Whether all that was begun is complete, and all that was decided if the node does not stop.
    fn is_complete(&self) -> bool {
        let Record { shown, published, hashed, has_stopped, has_ended, .. } = self.record;
        let is_all = has_stopped || shown == BLOCKS;
        is_all && published == shown && hashed == shown && has_stopped == has_ended
    }
}

/// Visits every place that can be reached. Returns their number, or what went wrong.
fn explore(mistake: Option<LifeMistake>) -> Result<usize, String> {
    let begin = At::begin(mistake);
    let mut seen = HashSet::from([begin.clone()]);
    let mut queue = VecDeque::from([begin]);
    while let Some(at) = queue.pop_front() {
        let possible = at.possible();
        if possible.is_empty() && !at.is_complete() {
            return Err(format!("nothing can happen any more: {:?}", at.life));
        }
        for (ended, input) in possible {
            let next = at.after(ended, input).map_err(|job| format!("{job:?} after {input:?}: {:?}", at.life))?;
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn jobs_of_blocks_end_in_any_order_and_all_keep_theirs() {
    let places = explore(None).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(places > 1_000, "{places}");
}

#[test]
fn every_mistake_in_the_life_of_a_block_breaks_the_order() {
    let missed: Vec<LifeMistake> =
        LifeMistake::ALL.iter().copied().filter(|mistake| explore(Some(*mistake)).is_ok()).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn heights_decided_again_after_a_restart_are_compared_and_change_nothing() {
    let start = LifeStart { height: 7, ..LifeStart::default() };
    let mut life = BlockLife::new(SETTINGS, start);
    assert_eq!(life.step(LifeInput::Decided(6)), [BlockJob::Compare(6)]);
    assert_eq!(life.step(LifeInput::Decided(7)), []);
    assert_eq!(life.step(LifeInput::Decided(8)), []);
    assert_eq!(life.step(LifeInput::Compared(6)), [BlockJob::Compare(7)]);
    assert_eq!(life.step(LifeInput::Compared(7)), [BlockJob::Build(8)]);
}

/// The registry after the last logged block is stored before a restarted node logs another one.
#[test]
fn a_handover_that_a_crash_prevented_is_stored_at_the_restart() {
    let start = LifeStart { height: 7, handover: Some(3), certified: 0 };
    let mut life = BlockLife::new(SETTINGS, start);
    assert_eq!(life.step(LifeInput::Decided(8)), [BlockJob::Keep { epoch: 3, height: 7 }]);
    assert_eq!(life.step(LifeInput::Kept(3)), [BlockJob::Build(8)]);
}

#[test]
#[should_panic(expected = "height 3 is decided, and 1 is not")]
fn a_height_that_is_skipped_is_a_mistake_of_the_shell() {
    BlockLife::new(SETTINGS, LifeStart::default()).step(LifeInput::Decided(3));
}
