//! Both stages, and the thread that runs the second one while a step is written. The thread decides nothing.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use store::Disk;

use super::MatchedStep;
use super::journal::{JournalStage, SIGNED_ALONE};
use super::matching::{MatchingStage, StepRoom};
use crate::error::VenueRootError;
use crate::input::VenueInput;
use crate::report::VenueEffect;
use crate::root::VenueRoot;

/// A step that is durable.
pub struct ToldStep<T> {
    /// What is to be told of it.
    pub effects: Vec<VenueEffect>,
    /// The number of effects up to its last one.
    pub effects_told: u64,
    /// What was taken of the state when it was matched.
    pub taken: T,
}

type Write<D> = (Box<JournalStage<D>>, MatchedStep);
type Written<D> = (Box<JournalStage<D>>, Result<(Vec<VenueEffect>, StepRoom), VenueRootError>);

/// The second stage's thread. It has the journal while it writes, and gives it back.
struct Writer<D: Disk> {
    steps: Option<Sender<Write<D>>>,
    written: Receiver<Written<D>>,
    thread: Option<JoinHandle<()>>,
}

impl<D: Disk> Writer<D> {
    fn new(wake: impl Fn() + Send + 'static) -> Writer<D> {
        let ((steps, to_write), (done, written)) = (channel::<Write<D>>(), channel());
        let thread = std::thread::spawn(move || {
            for (mut journal, step) in to_write {
                let result = journal.write_and_keep(step);
                if done.send((journal, result)).is_err() {
                    return;
                }
                wake();
            }
        });
        Writer { steps: Some(steps), written, thread: Some(thread) }
    }
}

impl<D: Disk> Drop for Writer<D> {
    /// Waits for what is being written.
    fn drop(&mut self) {
        self.steps = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was told by the step that it was given.
            drop(thread.join());
        }
    }
}

/// Where the stages are.
enum Place<D: Disk, T> {
    /// At the same step.
    Together(VenueRoot<D>),
    /// A step is being written; what was taken for it, and the count of effects up to its last one.
    Apart(Box<MatchingStage>, T, u64),
    /// The disk has failed.
    Failed,
}

/// A root whose steps overlap: see the module's text. `T` is what a host takes of the state when a step is matched, to
/// tell it later.
pub struct TwoStages<D: Disk, T> {
    place: Place<D, T>,
    /// Effects of the steps that are durable.
    told: u64,
    writer: Writer<D>,
}

impl<D: Disk, T> TwoStages<D, T> {
    /// Both stages of a root. `wake` is called by another thread when a step was written.
    pub fn new(root: VenueRoot<D>, wake: impl Fn() + Send + 'static) -> TwoStages<D, T> {
        let told = root.effects_told();
        TwoStages { place: Place::Together(root), told, writer: Writer::new(wake) }
    }

    /// The root, unless a step is between the stages.
    pub fn root(&self) -> Option<&VenueRoot<D>> {
        match &self.place {
            Place::Together(root) => Some(root),
            _ => None,
        }
    }

    /// As [`TwoStages::root`], to be changed.
    pub fn root_mut(&mut self) -> Option<&mut VenueRoot<D>> {
        match &mut self.place {
            Place::Together(root) => Some(root),
            _ => None,
        }
    }

    /// The state that inputs are matched on, which may be ahead of the journal: it says what may be asked of the next
    /// step, and is told to nobody. `None` after a failure.
    pub fn ahead(&self) -> Option<&MatchingStage> {
        match &self.place {
            Place::Together(root) => Some(root),
            Place::Apart(first, ..) => Some(first),
            Place::Failed => None,
        }
    }

    /// How many effects steps have that are durable: the number of the next one.
    pub fn effects_told(&self) -> u64 {
        self.told
    }

    /// Matches a step and takes what telling it will need. Waits for the step before, if one is being written, and
    /// returns it; or this one, if it is short and nothing was before it.
    ///
    /// # Errors
    /// As for [`VenueRoot::step`]: nothing of either step may be told.
    pub fn begin(
        &mut self,
        clock_ms: u64,
        inputs: &[VenueInput],
        take: impl FnOnce(&MatchingStage, &MatchedStep) -> T,
    ) -> Result<Option<ToldStep<T>>, VenueRootError> {
        match std::mem::replace(&mut self.place, Place::Failed) {
            Place::Failed => Err(VenueRootError::Failed),
            Place::Together(mut root) => {
                if root.second.has_failed {
                    return Err(VenueRootError::Failed);
                }
                let step = root.first.take(clock_ms, inputs);
                let taken = take(&root.first, &step);
                if step.made.len() < SIGNED_ALONE {
                    let effects = root.write(step)?;
                    self.told = root.effects_told();
                    self.place = Place::Together(root);
                    return Ok(Some(ToldStep { effects, effects_told: self.told, taken }));
                }
                let VenueRoot { first, second } = root;
                self.give(first, second, step, taken)?;
                Ok(None)
            }
            Place::Apart(mut first, taken_before, told) => {
                let step = first.take(clock_ms, inputs);
                let taken = take(&first, &step);
                let (journal, effects) = self.written(&mut first)?;
                self.told = told;
                self.give(first, journal, step, taken)?;
                Ok(Some(ToldStep { effects, effects_told: told, taken: taken_before }))
            }
        }
    }

    /// The step that is being written, if it is durable by now.
    ///
    /// # Errors
    /// As for [`VenueRoot::step`].
    pub fn poll(&mut self) -> Result<Option<ToldStep<T>>, VenueRootError> {
        let Place::Apart(..) = &self.place else { return Ok(None) };
        match self.writer.written.try_recv() {
            Err(TryRecvError::Empty) => Ok(None),
            Ok(written) => self.join(Some(written)),
            Err(TryRecvError::Disconnected) => self.join(None),
        }
    }

    /// Waits until both stages are at the same step; returns the one that was being written.
    ///
    /// # Errors
    /// As for [`VenueRoot::step`].
    pub fn settle(&mut self) -> Result<Option<ToldStep<T>>, VenueRootError> {
        match &self.place {
            Place::Apart(..) => {
                let written = self.writer.written.recv().ok();
                self.join(written)
            }
            _ => Ok(None),
        }
    }

    /// Gives a step to the second stage; its thread is gone if it has panicked.
    fn give(
        &mut self,
        first: Box<MatchingStage>,
        second: Box<JournalStage<D>>,
        step: MatchedStep,
        taken: T,
    ) -> Result<(), VenueRootError> {
        let told = first.effects_told();
        let is_given = self.writer.steps.as_ref().is_some_and(|steps| steps.send((second, step)).is_ok());
        if !is_given {
            return Err(VenueRootError::Failed);
        }
        self.place = Place::Apart(first, taken, told);
        Ok(())
    }

    /// Waits for the step that is being written.
    fn written(
        &mut self,
        first: &mut MatchingStage,
    ) -> Result<(Box<JournalStage<D>>, Vec<VenueEffect>), VenueRootError> {
        let (journal, result) = self.writer.written.recv().map_err(|_| VenueRootError::Failed)?;
        let (effects, room) = result?;
        first.reuse(room);
        Ok((journal, effects))
    }

    fn join(&mut self, written: Option<Written<D>>) -> Result<Option<ToldStep<T>>, VenueRootError> {
        let Place::Apart(mut first, taken, told) = std::mem::replace(&mut self.place, Place::Failed) else {
            return Err(VenueRootError::Failed);
        };
        let (second, result) = written.ok_or(VenueRootError::Failed)?;
        let (effects, room) = result?;
        first.reuse(room);
        self.told = told;
        self.place = Place::Together(VenueRoot { first, second });
        Ok(Some(ToldStep { effects, effects_told: told, taken }))
    }
}
