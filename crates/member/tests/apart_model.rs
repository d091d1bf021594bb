//! A small exhaustive model of the line between a node and a shard that runs apart: see `member::apart`.
//!
//! Both ends are the machines that production drives. The adversary breaks connections with everything that is on
//! them, ends either process at any moment, and lets the queue overflow. The node says items; the shard says each one
//! that it has performed back.
//!
//! *Checked in every state*: what the shard has performed in a session is a beginning of what the node has said in it,
//! and likewise for the answers. *Checked from every state*: once connections hold, the shard has performed everything
//! that the node has said in the present session.
//!
//! What is left out: content of items, and TLS. With these bounds there are 84,194 states.

use std::collections::{BTreeMap, HashSet, VecDeque};

use kernel::Planted;
use member::apart::{ShardLineEffect, ShardLineEnd, ShardLineMistake, ShardSession};

const ITEMS: u8 = 4;
const KEPT: usize = 2;
const BREAKS: u8 = 2;

/// What one end has said and performed, by session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct End {
    link: ShardLineEnd,
    said: BTreeMap<ShardSession, Vec<u8>>,
    done: Vec<u8>,
    /// Frames on their way to the other end.
    wire: VecDeque<Vec<u8>>,
}

impl End {
    fn new(is_node: bool, mistake: Planted<ShardLineMistake>) -> End {
        let link = ShardLineEnd::new(is_node).planted(KEPT, mistake);
        End { link, said: BTreeMap::new(), done: Vec::new(), wire: VecDeque::new() }
    }

    fn say(&mut self, item: u8) -> bool {
        let Some(session) = self.link.session().filter(|_| self.link.has_begun()) else { return false };
        self.said.entry(session).or_default().push(item);
        let effects = self.link.push(vec![item]);
        self.perform(effects)
    }

    /// Performs effects; whether the connection is closed.
    fn perform(&mut self, effects: Vec<ShardLineEffect>) -> bool {
        let (mut is_closed, mut echoes) = (false, Vec::new());
        for effect in effects {
            match effect {
                ShardLineEffect::Send(frame) => self.wire.push_back(frame),
                ShardLineEffect::Begin | ShardLineEffect::End => self.done.clear(),
                ShardLineEffect::Item(item) => {
                    self.done.extend(&item);
                    echoes.extend(item);
                }
                ShardLineEffect::Close => is_closed = true,
            }
        }
        // The node's items are below the shard's answers.
        let echoes: Vec<u8> = echoes.into_iter().filter(|item| *item < 100).collect();
        echoes.into_iter().fold(is_closed, |is_closed, item| self.say(100 + item) | is_closed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    node: End,
    shard: End,
    is_connected: bool,
    items: u8,
    breaks: u8,
    node_ends: u8,
    shard_ends: u8,
    fresh: ShardSession,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Connect,
    ToShard,
    ToNode,
    Break,
    Say,
    NodeEnds,
    ShardEnds,
}

const STEPS: [Step; 7] =
    [Step::Connect, Step::ToShard, Step::ToNode, Step::Break, Step::Say, Step::NodeEnds, Step::ShardEnds];

impl State {
    fn new(mistake: Planted<ShardLineMistake>) -> State {
        let (node, shard) = (End::new(true, mistake), End::new(false, mistake));
        State { node, shard, is_connected: false, items: 0, breaks: 0, node_ends: 0, shard_ends: 0, fresh: 0 }
    }

    fn break_connection(&mut self) {
        self.is_connected = false;
        for end in [&mut self.node, &mut self.shard] {
            end.wire.clear();
            end.link.disconnected();
        }
    }

    fn deliver(&mut self, is_to_shard: bool) -> bool {
        let (from, to) = match is_to_shard {
            true => (&mut self.node, &mut self.shard),
            false => (&mut self.shard, &mut self.node),
        };
        let Some(frame) = from.wire.pop_front() else { return false };
        let effects = to.link.frame(&frame);
        if to.perform(effects) {
            self.break_connection();
        }
        true
    }

    /// Takes a step; whether it was possible.
    fn take(&mut self, step: Step, mistake: Planted<ShardLineMistake>) -> bool {
        match step {
            Step::Connect if !self.is_connected => {
                self.is_connected = true;
                self.fresh += 1 << 64;
                let effects = self.node.link.connected(self.fresh);
                self.node.perform(effects);
                drop(self.shard.link.connected(0));
                true
            }
            Step::ToShard => self.deliver(true),
            Step::ToNode => self.deliver(false),
            Step::Break if self.is_connected && self.breaks < BREAKS => {
                self.breaks += 1;
                self.break_connection();
                true
            }
            Step::Say if self.items < ITEMS && self.node.link.has_begun() => {
                self.items += 1;
                if self.node.say(self.items) {
                    self.break_connection();
                }
                true
            }
            Step::NodeEnds if self.node_ends == 0 => {
                self.node_ends += 1;
                self.break_connection();
                let said = std::mem::take(&mut self.node.said);
                self.node = End { said, ..End::new(true, mistake) };
                true
            }
            Step::ShardEnds if self.shard_ends == 0 => {
                self.shard_ends += 1;
                self.break_connection();
                self.shard = End::new(false, mistake);
                true
            }
            _ => false,
        }
    }

    /// What each end has performed is a beginning of what the other one has said in its session.
    fn check(&self) -> Result<(), String> {
        // A shard that ended has forgotten what it said: the node learns of that when they meet.
        let answers = Some((&self.node, &self.shard)).filter(|(node, _)| node.link.is_met());
        for (end, other) in [Some((&self.shard, &self.node)), answers].into_iter().flatten() {
            let said = end.link.session().and_then(|session| other.said.get(&session));
            if !said.map_or(&[][..], Vec::as_slice).starts_with(&end.done) {
                return Err(format!("performed {:?} of {said:?}", end.done));
            }
        }
        Ok(())
    }

    /// Connections hold from now on: everything that was said in the present session arrives.
    fn settle(mut self, mistake: Planted<ShardLineMistake>) -> Result<(), String> {
        for _ in 0..200 {
            let moved = self.take(Step::Connect, mistake) | self.deliver(true) | self.deliver(false);
            self.check()?;
            if !moved {
                break;
            }
        }
        let (session, known) = (self.node.link.session(), self.shard.link.session());
        let said = session.and_then(|session| self.node.said.get(&session)).cloned().unwrap_or_default();
        let is_met = self.node.link.is_met() && self.shard.link.is_met() && self.node.link.has_begun();
        if is_met && session == known && self.shard.done == said {
            return Ok(());
        }
        Err(format!("met {is_met}, sessions {session:?} and {known:?}, said {said:?}, performed {:?}", self.shard.done))
    }
}

/// All states that can be reached; an error names what is wrong in one of them.
fn search(mistake: Planted<ShardLineMistake>) -> Result<usize, String> {
    let first = State::new(mistake);
    let (mut seen, mut next) = (HashSet::from([first.clone()]), VecDeque::from([first]));
    while let Some(state) = next.pop_front() {
        state.check()?;
        state.clone().settle(mistake)?;
        for step in STEPS {
            let mut after = state.clone();
            if after.take(step, mistake) && seen.insert(after.clone()) {
                next.push_back(after);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn a_shard_performs_what_its_node_says_in_order_and_once_whatever_breaks() {
    let states = search(Planted::NOTHING).expect("nothing is wrong");
    println!("{states} states");
    assert!(states > 10_000, "{states} states");
}

#[test]
fn wrong_rules_of_the_line_are_found() {
    let wrong = [
        ShardLineMistake::SessionNotCompared,
        ShardLineMistake::SessionKept,
        ShardLineMistake::OldestDropped,
        ShardLineMistake::NotRepeated,
        ShardLineMistake::PerformedTwice,
    ];
    for mistake in wrong {
        let found = search(Some(mistake).into());
        println!("{mistake:?}: {found:?}");
        assert!(found.is_err(), "{mistake:?} is not found");
    }
}
