//! The shard's end of the line to its node: a machine that turns orders into work on log, key and socket.

use std::collections::BTreeSet;

use payments::{HomeEpoch, HomeTerms, LOG_EPOCHS, LaneBls, LaneEffect, LaneFact, LaneInput, ShardOffer};
use primitives::Digest;

use super::link::{ShardLineEffect, ShardLineEnd};
use super::orders::{ShardAnswer, ShardFigures, ShardOrder};
use super::pins::ShardPins;
use crate::{ShardStart, ShardTerm};

/// Work of the shell of a shard.
#[derive(Clone, Debug)]
pub enum ShardTask {
    /// Store the pins, durably, before anything that follows.
    Pin(ShardPins),
    /// Make the key of a home unless it exists, and its log unless it exists, if that may be made. The result is
    /// [`ShardEnd::prepared`].
    Prepare {
        /// The home.
        home: HomeEpoch,
        /// The identity of the network.
        network: Digest,
        /// The BLS keys of its lane.
        bls: LaneBls,
        /// Whether a log that is missing may be made.
        makes_log: bool,
    },
    /// Start in a home; the result is [`ShardEnd::started`].
    Start(HomeEpoch, Box<ShardTerm>),
    /// Pass a fact to a home that runs.
    Tell(HomeEpoch, LaneFact),
    /// Release the address of a home.
    StopListening(HomeEpoch),
    /// Stop in a home.
    Stop(HomeEpoch),
    /// Stop in all homes: what they were told counts no more.
    StopAll,
    /// Wipe the key of a home; the result is [`ShardEnd::removed`].
    Remove(HomeEpoch),
    /// Remove the log of a home.
    Forget(HomeEpoch),
    /// A home is not started, for this reason: tell the operator, and answer that the shard is mute in it.
    Refuse(HomeEpoch, String),
    /// Tell the operator.
    Alarm(String),
}

/// What the shell of a shard does, in this order. Results of work come before any other input.
#[derive(Clone, Debug)]
pub enum ShardEndEffect {
    /// Send a frame on the present connection.
    Send(Vec<u8>),
    /// Close the present connection.
    Close,
    /// Do this now.
    Do(ShardTask),
}

/// See the module text of [`super`].
#[derive(Clone, Debug)]
pub struct ShardEnd {
    link: ShardLineEnd,
    pins: ShardPins,
    /// The homes of which the disk has a key or a log.
    stored: BTreeSet<HomeEpoch>,
    /// Those whose keys could not be wiped yet.
    removing: BTreeSet<HomeEpoch>,
    /// The number of the session: reports of homes that an earlier one started count no more.
    life: u64,
}

impl ShardEnd {
    /// A shard that starts with these pins, and keys or logs of these homes.
    pub fn new(pins: ShardPins, stored: impl IntoIterator<Item = HomeEpoch>) -> ShardEnd {
        let (stored, removing) = (stored.into_iter().collect(), BTreeSet::new());
        ShardEnd { link: ShardLineEnd::new(false), pins, stored, removing, life: 0 }
    }

    /// Whether the node is connected.
    pub fn is_met(&self) -> bool {
        self.link.is_met()
    }

    /// The number of the present session, for [`ShardEnd::reported`].
    pub fn life(&self) -> u64 {
        self.life
    }

    /// The node has connected.
    pub fn connected(&mut self) -> Vec<ShardEndEffect> {
        self.link.disconnected();
        let effects = self.link.connected(0);
        self.carry(effects)
    }

    /// The connection is gone.
    pub fn disconnected(&mut self) {
        self.link.disconnected();
    }

    /// A frame has come.
    pub fn frame(&mut self, frame: &[u8]) -> Vec<ShardEndEffect> {
        let effects = self.link.frame(frame);
        self.carry(effects)
    }

    /// What was prepared for a home; nothing if the disk failed.
    pub fn prepared(&mut self, home: HomeEpoch, offer: Option<ShardOffer>) -> Vec<ShardEndEffect> {
        self.stored.extend(offer.is_some().then_some(home));
        self.answer(&ShardAnswer::Prepared(home, offer))
    }

    /// How a start went.
    pub fn started(&mut self, home: HomeEpoch, start: ShardStart) -> Vec<ShardEndEffect> {
        self.answer(&ShardAnswer::Started(home, start))
    }

    /// The key of a home is wiped, or cannot be now.
    pub fn removed(&mut self, home: HomeEpoch, removed: bool) {
        if removed {
            self.removing.remove(&home);
        }
    }

    /// A shard that was started in this life reports something. It is dropped if there is no room: the member asks
    /// again.
    pub fn reported(&mut self, life: u64, home: HomeEpoch, report: LaneEffect) -> Vec<ShardEndEffect> {
        if life != self.life || !self.link.has_room() {
            return Vec::new();
        }
        self.answer(&ShardAnswer::Reported(home, report))
    }

    /// What it has done in a home. Dropped if the node is away, or there is no room: the next count says more.
    pub fn counted(&mut self, home: HomeEpoch, figures: ShardFigures) -> Vec<ShardEndEffect> {
        if !self.link.is_met() || !self.link.has_room() {
            return Vec::new();
        }
        self.answer(&ShardAnswer::Counted(home, figures))
    }

    fn answer(&mut self, answer: &ShardAnswer) -> Vec<ShardEndEffect> {
        let effects = answer.encode().map(|bytes| self.link.push(bytes)).unwrap_or_default();
        self.carry(effects)
    }

    fn carry(&mut self, effects: Vec<ShardLineEffect>) -> Vec<ShardEndEffect> {
        let mut carried = Vec::new();
        for effect in effects {
            match effect {
                ShardLineEffect::Send(frame) => carried.push(ShardEndEffect::Send(frame)),
                ShardLineEffect::Close => carried.push(ShardEndEffect::Close),
                ShardLineEffect::Begin => self.life += 1,
                ShardLineEffect::End => {
                    self.life += 1;
                    carried.push(ShardEndEffect::Do(ShardTask::StopAll));
                }
                ShardLineEffect::Item(bytes) => match ShardOrder::parse(&bytes) {
                    Some(order) => carried.extend(self.order(order).into_iter().map(ShardEndEffect::Do)),
                    None => return [carried, self.refuse()].concat(),
                },
            }
        }
        carried
    }

    /// A node that orders what this program does not know is of another version. No order is left out: the session
    /// ends.
    fn refuse(&mut self) -> Vec<ShardEndEffect> {
        let what = "the node orders what this program does not know: run the same version at both ends";
        let alarm = ShardEndEffect::Do(ShardTask::Alarm(what.into()));
        let ended = self.link.end();
        [vec![alarm], self.carry(ended)].concat()
    }

    fn order(&mut self, order: ShardOrder) -> Vec<ShardTask> {
        match order {
            ShardOrder::Prepare { home, network, bls } => {
                vec![ShardTask::Prepare { home, network, bls, makes_log: self.pins.may_make_log(home) }]
            }
            ShardOrder::Start { home, now, terms } => self.start(home, now, *terms),
            ShardOrder::Tell(home, fact) => {
                let begun = if let LaneInput::Epoch(epoch) = fact { self.begin(epoch) } else { Vec::new() };
                [begun, vec![ShardTask::Tell(home, fact)]].concat()
            }
            ShardOrder::StopListening(home) => vec![ShardTask::StopListening(home)],
            ShardOrder::Stop(home) => vec![ShardTask::Stop(home)],
            ShardOrder::Remove(home) => self.remove([home]),
            ShardOrder::Forget(home) => self.forget([home]),
            ShardOrder::Keep(newest, homes) => self.keep(newest, &homes),
        }
    }

    fn start(&mut self, home: HomeEpoch, now: HomeEpoch, terms: HomeTerms) -> Vec<ShardTask> {
        match self.pins.pin(now, &terms) {
            Ok(has_changed) => {
                let pin = has_changed.then(|| ShardTask::Pin(self.pins.clone()));
                let start = ShardTask::Start(home, Box::new(ShardTerm::apart(terms, now)));
                pin.into_iter().chain([start]).collect()
            }
            Err(error) => vec![ShardTask::Refuse(home, error.to_string())],
        }
    }

    /// An epoch has begun.
    fn begin(&mut self, epoch: HomeEpoch) -> Vec<ShardTask> {
        let pin = self.pins.note(epoch).then(|| ShardTask::Pin(self.pins.clone()));
        let again: Vec<HomeEpoch> = self.removing.iter().copied().collect();
        pin.into_iter().chain(self.remove(again)).collect()
    }

    fn remove(&mut self, homes: impl IntoIterator<Item = HomeEpoch>) -> Vec<ShardTask> {
        let homes: Vec<HomeEpoch> = homes.into_iter().collect();
        self.removing.extend(&homes);
        homes.into_iter().map(ShardTask::Remove).collect()
    }

    fn forget(&mut self, homes: impl IntoIterator<Item = HomeEpoch>) -> Vec<ShardTask> {
        homes.into_iter().filter(|home| self.stored.remove(home)).map(ShardTask::Forget).collect()
    }

    /// Wipes what no home that lives needs: what ended while nobody told this shard.
    fn keep(&mut self, newest: HomeEpoch, homes: &BTreeSet<HomeEpoch>) -> Vec<ShardTask> {
        let ended = self.stored.iter().copied().filter(|home| *home <= newest && !homes.contains(home));
        let ended: Vec<HomeEpoch> = ended.collect();
        let past: Vec<HomeEpoch> = ended.iter().copied().filter(|home| home + LOG_EPOCHS < newest).collect();
        let removed = self.remove(ended);
        removed.into_iter().chain(self.forget(past)).collect()
    }
}
