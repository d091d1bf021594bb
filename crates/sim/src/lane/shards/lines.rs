//! Shards that run apart from their member: both ends of each line are the machines that production drives. Connections
//! break with what is on them, and either process ends at any moment, until the faults stop.

use member::apart::{NodeEnd, NodeEndEffect, ShardAnswer, ShardEnd, ShardEndEffect, ShardPins, ShardTask};
use payments::ShardOffer;

use super::*;

/// Of several shards, those with odd numbers run apart.
pub(super) fn is_apart(shard: u16) -> bool {
    shard % 2 == 1
}

/// The line to a shard that runs apart, and what is on it.
pub(super) struct SimLine {
    node: NodeEnd,
    shard: ShardEnd,
    /// On the disk of the shard.
    pins: ShardPins,
    to_shard: VecDeque<Vec<u8>>,
    to_node: VecDeque<Vec<u8>>,
    is_connected: bool,
    sessions: u128,
    offers: BTreeMap<HomeEpoch, ShardOffer>,
}

impl SimLine {
    pub fn new() -> SimLine {
        SimLine {
            node: NodeEnd::default(),
            shard: ShardEnd::new(ShardPins::default(), [0]),
            pins: ShardPins::default(),
            to_shard: VecDeque::new(),
            to_node: VecDeque::new(),
            is_connected: false,
            sessions: 0,
            offers: BTreeMap::new(),
        }
    }

    /// The session of the shard.
    pub fn life(&self) -> u64 {
        self.shard.life()
    }

    /// Whether the shard has performed everything that it was ordered.
    pub fn is_quiet(&self) -> bool {
        self.is_connected && self.node.is_met() && self.to_shard.is_empty() && self.to_node.is_empty()
    }

    fn break_connection(&mut self) {
        self.is_connected = false;
        self.to_shard.clear();
        self.to_node.clear();
        self.node.disconnected();
        self.shard.disconnected();
    }
}

impl SimValidator {
    /// A node has started: it knows nothing of its shards that run apart.
    pub(super) fn begin_apart(&mut self) {
        for line in self.lines.values_mut() {
            line.break_connection();
            line.node = NodeEnd::default();
            line.offers.clear();
        }
    }

    /// What happens on the lines.
    pub(super) fn pump(&mut self) {
        let apart: Vec<u16> = self.lines.keys().copied().collect();
        for shard in apart {
            if self.fails(40) {
                self.lines.get_mut(&shard).into_iter().for_each(SimLine::break_connection);
            } else if self.fails(80) {
                self.end_process(shard);
            } else {
                self.connect(shard);
                let frames = if self.is_calm { u64::MAX } else { self.dice.below(12) };
                self.carry(shard, frames);
            }
        }
        self.give_all();
    }

    fn line(&mut self, shard: u16) -> &mut SimLine {
        self.lines.get_mut(&shard).expect("it runs apart")
    }

    fn connect(&mut self, shard: u16) {
        let line = self.line(shard);
        if !std::mem::replace(&mut line.is_connected, true) {
            line.sessions += 1_000;
            let (fresh, greeted) = (line.sessions, line.shard.connected());
            let hello = line.node.connected(fresh);
            self.at_shard(shard, greeted);
            self.at_node(shard, hello);
        }
    }

    /// Frames arrive, in turns.
    fn carry(&mut self, shard: u16, frames: u64) {
        let mut left = frames;
        while left > 0 && self.line(shard).is_connected {
            let line = self.line(shard);
            let (to_shard, to_node) = (line.to_shard.pop_front(), line.to_node.pop_front());
            if to_shard.is_none() && to_node.is_none() {
                // What the member says now belongs to what is carried.
                self.give_all();
                let line = self.line(shard);
                if line.to_shard.is_empty() && line.to_node.is_empty() {
                    return;
                }
            }
            if let Some(frame) = to_shard {
                let effects = self.line(shard).shard.frame(&frame);
                self.at_shard(shard, effects);
            }
            if let Some(frame) = to_node {
                let effects = self.line(shard).node.frame(&frame);
                self.at_node(shard, effects);
            }
            left -= 1;
        }
    }

    /// The process of a shard ends at any moment; its disk keeps logs, keys and pins.
    fn end_process(&mut self, shard: u16) {
        let places: Vec<Place> = self.shards.keys().copied().filter(|(_, of)| *of == shard).collect();
        for place in places {
            let Some(mut stopped) = self.shards.remove(&place) else { continue };
            stopped.disk.crash(&mut self.dice);
            self.logs.insert(place, stopped.disk);
        }
        let stored = self.keys.keys().chain(self.logs.keys()).filter(|(_, of)| *of == shard).map(|(home, _)| *home);
        let stored: BTreeSet<HomeEpoch> = stored.collect();
        let line = self.line(shard);
        line.break_connection();
        line.shard = ShardEnd::new(line.pins.clone(), stored);
    }

    pub(super) fn order_all(&mut self, order: &ShardOrder) {
        let apart: Vec<u16> = self.lines.keys().copied().collect();
        apart.into_iter().for_each(|shard| self.order(shard, order));
    }

    pub(super) fn order(&mut self, shard: u16, order: &ShardOrder) {
        let effects = self.line(shard).node.order(order);
        self.at_node(shard, effects);
    }

    pub(super) fn report_apart(&mut self, (home, shard): Place, report: LaneEffect) {
        let life = self.shards.get(&(home, shard)).map_or(0, |of| of.life);
        let effects = self.line(shard).shard.reported(life, home, report);
        self.at_shard(shard, effects);
    }

    /// The registration of an epoch, once all shards have offered their keys, or some of those that nobody has.
    pub(super) fn register_with_apart(
        &mut self,
        work: &KeyWork,
        registrar: &SecretKey,
    ) -> Option<Vec<BridgeOperation>> {
        let (epoch, public) = (work.epoch(), registrar.public());
        let lacks = |line: &SimLine| line.node.is_met() && !line.offers.contains_key(&epoch);
        let lacking: Vec<u16> = self.lines.iter().filter(|(_, line)| lacks(line)).map(|(shard, _)| *shard).collect();
        let preparation = self.preparation(epoch);
        lacking.into_iter().for_each(|shard| self.order(shard, &preparation));
        let mut offers = Vec::new();
        for shard in 0..self.registered(epoch) {
            offers.push(match self.lines.get_mut(&shard) {
                None => work.offer(shard, self.keys.get(&(epoch, shard))?, &public)?,
                Some(line) => {
                    if work.is_urgent() && !line.offers.contains_key(&epoch) {
                        let nobodys = secret(8, u64::from(shard) + epoch * 1_000 + u64::from(self.index) * 1_000_000);
                        line.offers.extend(work.offer(shard, &nobodys, &public).map(|offer| (epoch, offer)));
                    }
                    line.offers.get(&epoch)?.clone()
                }
            });
        }
        Some(vec![work.register(&offers, registrar)])
    }

    fn at_node(&mut self, shard: u16, effects: Vec<NodeEndEffect>) {
        for effect in effects {
            match effect {
                NodeEndEffect::Send(frame) => self.line(shard).to_shard.push_back(frame),
                NodeEndEffect::Close => self.line(shard).break_connection(),
                NodeEndEffect::Away => self.inputs.push_back(MemberInput::Away(shard)),
                NodeEndEffect::Back => self.inputs.push_back(MemberInput::Back(shard)),
                NodeEndEffect::Heard(answer) => self.hear(shard, *answer),
                NodeEndEffect::Unread => panic!("a shard answers what its node does not know"),
            }
        }
    }

    fn hear(&mut self, shard: u16, answer: ShardAnswer) {
        match answer {
            ShardAnswer::Prepared(home, offer) => {
                let line = self.line(shard);
                if let Some(offer) = offer {
                    line.offers.entry(home).or_insert(offer);
                }
            }
            ShardAnswer::Started(home, start) => self.inputs.push_back(MemberInput::Started(home, shard, start)),
            ShardAnswer::Reported(home, report) => self.inputs.push_back(MemberInput::Reported(home, shard, report)),
            // For the operator, who is none here.
            ShardAnswer::Counted(..) => {}
        }
    }

    fn at_shard(&mut self, shard: u16, effects: Vec<ShardEndEffect>) {
        for effect in effects {
            match effect {
                ShardEndEffect::Send(frame) => self.line(shard).to_node.push_back(frame),
                ShardEndEffect::Close => self.line(shard).break_connection(),
                ShardEndEffect::Do(task) => {
                    let effects = self.do_task(shard, task);
                    self.at_shard(shard, effects);
                }
            }
        }
    }

    fn do_task(&mut self, shard: u16, task: ShardTask) -> Vec<ShardEndEffect> {
        match task {
            ShardTask::Pin(pins) => self.line(shard).pins = pins,
            ShardTask::Prepare { home, network, bls, makes_log } => {
                let offer = (!self.fails(3)).then(|| {
                    self.make((home, shard), makes_log, true);
                    let (place, registrar) = ((home, self.index, shard), registrar(self.index.into()).public());
                    ShardOffer::make(&network, place, &self.keys[&(home, shard)], bls, &registrar)
                });
                return self.line(shard).shard.prepared(home, offer);
            }
            ShardTask::Start(home, term) => {
                self.stop((home, shard));
                let start = self.start((home, shard), &term);
                return self.line(shard).shard.started(home, start);
            }
            ShardTask::Tell(home, fact) => self.step((home, shard), fact),
            ShardTask::StopListening(_) => {}
            ShardTask::Stop(home) => self.stop((home, shard)),
            ShardTask::StopAll => {
                let places: Vec<Place> = self.shards.keys().copied().filter(|(_, of)| *of == shard).collect();
                places.into_iter().for_each(|place| self.stop(place));
            }
            ShardTask::Remove(home) => {
                let removed = !self.fails(3);
                if removed {
                    self.keys.remove(&(home, shard));
                }
                self.line(shard).shard.removed(home, removed);
            }
            ShardTask::Forget(home) => drop(self.logs.remove(&(home, shard))),
            ShardTask::Refuse(home, why) => self.broken = Some(format!("shard {shard} of home {home}: {why}")),
            ShardTask::Alarm(what) => self.broken = Some(format!("shard {shard}: {what}")),
        }
        Vec::new()
    }
}
