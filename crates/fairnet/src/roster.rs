//! The configuration manager: who takes part, in which epoch, and the log of fairness events (Onyx §5.1).
//!
//! Members send heartbeats. One that is silent for [`RosterRules::silence`] is evicted; each change of members begins
//! an epoch, for which the tree is planned anew. An evicted member may join again, after a wait that doubles if it is
//! evicted again soon. So is one that cheats ([`RosterInput::Expel`]). Whatever impairs fairness is appended to a log
//! in which each entry hashes the one before.
//!
//! # Properties
//!
//! - Epochs rise by one with each change; several changes of one step are one epoch.
//! - Whoever is silent for longer than the limit is not a member after the next tick.
//! - A log whose head is known cannot be altered without notice.
//!
//! # Deviations from the paper
//!
//! - The paper leaves this to a service such as ZooKeeper and to "a timeout". With one root the root decides;
//!   heartbeats carry the epoch, so what an evicted member says counts for nothing until it has joined again.

use std::collections::{BTreeMap, VecDeque};

use crate::Nanos;

/// What a member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberRole {
    /// Sends packets and orders on.
    Proxy,
    /// Shows packets to a participant and stamps its orders.
    Gateway,
}

/// Something that impaired fairness, or ended that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairnessEvent {
    /// A member was silent for this long.
    Evicted(u64, Nanos),
    /// A member joined.
    Admitted(u64),
    /// A sequencer no longer waits for a member; an order had waited this long.
    Skipped(u64, Nanos),
    /// A sequencer waits for a member again.
    Readmitted(u64),
    /// An order of a member was stamped anew; its stamp before.
    Restamped(u64, Nanos),
    /// Packets reach a member too late to wait for it.
    Excluded(u64),
    /// Packets reach a member in time again.
    Included(u64),
    /// A packet was shown to a member this much after its deadline.
    Late(u64, Nanos),
    /// A member's clock may be wrong by this much.
    Clock(u64, Nanos),
    /// The replicas of a participant issued different orders.
    Diverged(u64),
    /// A member said what cannot be, by this much, ns. Its stamp is ahead of the clock of whoever got it, or below the
    /// deadline of the packet that it claims to have seen. Or it names packets that nobody has sent.
    Implausible(u64, u64),
    /// A participant sent more than the door of this gateway takes, and was cut; packets of its connection.
    Flooded(u64, u64),
}

impl FairnessEvent {
    /// The event that three words are, as a member reports it; `None` if they are none.
    pub fn from_words([kind, member, value]: [u64; 3]) -> Option<FairnessEvent> {
        Some(match kind {
            0 => FairnessEvent::Evicted(member, value),
            1 => FairnessEvent::Admitted(member),
            2 => FairnessEvent::Skipped(member, value),
            3 => FairnessEvent::Readmitted(member),
            4 => FairnessEvent::Restamped(member, value),
            5 => FairnessEvent::Excluded(member),
            6 => FairnessEvent::Included(member),
            7 => FairnessEvent::Late(member, value),
            8 => FairnessEvent::Clock(member, value),
            9 => FairnessEvent::Diverged(member),
            11 => FairnessEvent::Implausible(member, value),
            12 => FairnessEvent::Flooded(member, value),
            _ => return None,
        })
    }

    /// Kind, member and value: what is hashed, and what a member sends.
    pub fn words(&self) -> [u64; 3] {
        match *self {
            FairnessEvent::Evicted(member, silent) => [0, member, silent],
            FairnessEvent::Admitted(member) => [1, member, 0],
            FairnessEvent::Skipped(member, waited) => [2, member, waited],
            FairnessEvent::Readmitted(member) => [3, member, 0],
            FairnessEvent::Restamped(member, stamp) => [4, member, stamp],
            FairnessEvent::Excluded(member) => [5, member, 0],
            FairnessEvent::Included(member) => [6, member, 0],
            FairnessEvent::Late(member, late) => [7, member, late],
            FairnessEvent::Clock(member, bound) => [8, member, bound],
            FairnessEvent::Diverged(participant) => [9, participant, 0],
            FairnessEvent::Implausible(member, by) => [11, member, by],
            FairnessEvent::Flooded(member, packets) => [12, member, packets],
        }
    }
}

/// An entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairnessEntry {
    /// Its number, from 1.
    pub number: u64,
    /// The epoch in which it happened.
    pub epoch: u32,
    /// When, by the clock of the root.
    pub at: Nanos,
    /// What.
    pub event: FairnessEvent,
    /// Hash of this entry and, through it, of all before.
    pub head: [u8; 32],
}

/// The last entries of an append-only log.
#[derive(Clone, Debug)]
pub struct FairnessLog {
    entries: VecDeque<FairnessEntry>,
    most: usize,
    number: u64,
    head: [u8; 32],
}

impl FairnessLog {
    /// An empty log that keeps `most` entries.
    pub fn new(most: usize) -> FairnessLog {
        FairnessLog { entries: VecDeque::new(), most: most.max(1), number: 0, head: [0; 32] }
    }

    /// Appends an event.
    pub fn append(&mut self, epoch: u32, at: Nanos, event: FairnessEvent) -> FairnessEntry {
        self.number += 1;
        self.head = next_head(&self.head, self.number, epoch, at, &event);
        let entry = FairnessEntry { number: self.number, epoch, at, event, head: self.head };
        if self.entries.len() == self.most {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        entry
    }

    /// The entries that are kept, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &FairnessEntry> {
        self.entries.iter()
    }

    /// Hash of all entries ever.
    pub fn head(&self) -> [u8; 32] {
        self.head
    }

    /// The number of the first of these entries that does not follow from the one before.
    pub fn broken_at(entries: &[FairnessEntry]) -> Option<u64> {
        let follows = |pair: &[FairnessEntry]| {
            let FairnessEntry { number, epoch, at, event, .. } = &pair[1];
            *number == pair[0].number + 1 && pair[1].head == next_head(&pair[0].head, *number, *epoch, *at, event)
        };
        entries.windows(2).find(|pair| !follows(pair)).map(|pair| pair[1].number)
    }
}

fn next_head(head: &[u8; 32], number: u64, epoch: u32, at: Nanos, event: &FairnessEvent) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("walras fairnet log v1");
    hasher.update(head).update(&number.to_be_bytes()).update(&epoch.to_be_bytes()).update(&at.to_be_bytes());
    event.words().iter().for_each(|word| {
        hasher.update(&word.to_be_bytes());
    });
    hasher.finalize().into()
}

/// When members are evicted and may join again.
#[derive(Clone, Copy, Debug)]
pub struct RosterRules {
    /// Longest time without a heartbeat, ns.
    pub silence: Nanos,
    /// Wait before joining again after the first eviction, ns; doubles with each that follows within ten such waits.
    pub rejoin: Nanos,
    /// Members at most.
    pub most: usize,
    /// Entries of the log that are kept.
    pub log: usize,
}

impl Default for RosterRules {
    fn default() -> RosterRules {
        RosterRules { silence: 300_000_000, rejoin: 1_000_000_000, most: 4_096, log: 65_536 }
    }
}

/// What the manager is told.
#[derive(Clone, Copy, Debug)]
pub enum RosterInput {
    /// A member wants to take part.
    Join(u64, MemberRole),
    /// A member leaves.
    Leave(u64),
    /// A member is alive in this epoch.
    Heartbeat(u64, u32),
    /// Something impaired fairness.
    Report(FairnessEvent),
    /// The member of this event cheated: it is evicted.
    Expel(FairnessEvent),
    /// Time passed.
    Tick,
}

/// What the manager does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RosterEffect {
    /// A new epoch begins with the present members.
    Epoch(u32),
    /// A member was evicted.
    Evicted(u64),
    /// A member may not join before this time.
    TooSoon(u64, Nanos),
    /// There is no place for another member.
    Full(u64),
    /// A heartbeat of a member of another epoch, or of none: it must join.
    Unknown(u64),
    /// A fairness event was logged.
    Logged(FairnessEntry),
}

#[derive(Clone, Copy, Debug)]
struct Present {
    role: MemberRole,
    heard: Nanos,
    since: u32,
}

#[derive(Clone, Copy, Debug)]
struct Absent {
    until: Nanos,
    wait: Nanos,
}

/// The members of the venue's edge.
#[derive(Clone, Debug)]
pub struct Roster {
    rules: RosterRules,
    epoch: u32,
    present: BTreeMap<u64, Present>,
    evicted: BTreeMap<u64, Absent>,
    log: FairnessLog,
}

impl Roster {
    /// Nobody yet. `epoch` is the last one of which anybody may have heard.
    pub fn new(epoch: u32, rules: RosterRules) -> Roster {
        let log = FairnessLog::new(rules.log);
        Roster { rules, epoch, present: BTreeMap::new(), evicted: BTreeMap::new(), log }
    }

    /// The present epoch.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Members of a role, ascending.
    pub fn members(&self, role: MemberRole) -> impl Iterator<Item = u64> + '_ {
        self.present.iter().filter(move |(_, present)| present.role == role).map(|(member, _)| *member)
    }

    /// Whether this is a member now.
    pub fn has(&self, member: u64) -> bool {
        self.present.contains_key(&member)
    }

    /// The log of fairness events.
    pub fn log(&self) -> &FairnessLog {
        &self.log
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: RosterInput, out: &mut Vec<RosterEffect>) {
        match input {
            RosterInput::Join(member, role) => self.on_join(now, member, role, out),
            RosterInput::Leave(member) => {
                if self.present.remove(&member).is_some() {
                    self.begin_epoch(out);
                }
            }
            RosterInput::Heartbeat(member, epoch) => self.on_heartbeat(now, member, epoch, out),
            RosterInput::Report(event) => self.note(now, event, out),
            RosterInput::Expel(event) => self.on_cheat(now, event, out),
            RosterInput::Tick => self.on_tick(now, out),
        }
    }

    fn note(&mut self, now: Nanos, event: FairnessEvent, out: &mut Vec<RosterEffect>) {
        out.push(RosterEffect::Logged(self.log.append(self.epoch, now, event)));
    }

    fn begin_epoch(&mut self, out: &mut Vec<RosterEffect>) {
        self.epoch += 1;
        out.push(RosterEffect::Epoch(self.epoch));
    }

    fn on_join(&mut self, now: Nanos, member: u64, role: MemberRole, out: &mut Vec<RosterEffect>) {
        if let Some(absent) = self.evicted.get(&member).filter(|absent| now < absent.until) {
            return out.push(RosterEffect::TooSoon(member, absent.until));
        }
        if self.present.len() >= self.rules.most && !self.present.contains_key(&member) {
            return out.push(RosterEffect::Full(member));
        }
        self.present.insert(member, Present { role, heard: now, since: self.epoch + 1 });
        self.begin_epoch(out);
        self.note(now, FairnessEvent::Admitted(member), out);
    }

    fn on_heartbeat(&mut self, now: Nanos, member: u64, epoch: u32, out: &mut Vec<RosterEffect>) {
        match self.present.get_mut(&member) {
            Some(present) if (present.since..=self.epoch).contains(&epoch) => present.heard = present.heard.max(now),
            _ => out.push(RosterEffect::Unknown(member)),
        }
    }

    fn on_tick(&mut self, now: Nanos, out: &mut Vec<RosterEffect>) {
        let silent = |present: &Present| now.saturating_sub(present.heard);
        let gone: Vec<(u64, Nanos)> = self.present.iter().map(|(member, present)| (*member, silent(present))).collect();
        let gone: Vec<(u64, Nanos)> = gone.into_iter().filter(|(_, silent)| *silent > self.rules.silence).collect();
        for (member, silent) in &gone {
            self.present.remove(member);
            self.bar(now, *member);
            out.push(RosterEffect::Evicted(*member));
            self.note(now, FairnessEvent::Evicted(*member, *silent), out);
        }
        if !gone.is_empty() {
            self.begin_epoch(out);
        }
        let memory = self.rules.rejoin.saturating_mul(10);
        self.evicted.retain(|_, absent| now < absent.until.saturating_add(absent.wait.saturating_mul(10).max(memory)));
    }

    /// Whoever is no member any more cheats nobody: what is still on its way from it is not worth a line.
    fn on_cheat(&mut self, now: Nanos, event: FairnessEvent, out: &mut Vec<RosterEffect>) {
        let [_, member, _] = event.words();
        let Some(present) = self.present.remove(&member) else { return };
        self.note(now, event, out);
        self.bar(now, member);
        out.push(RosterEffect::Evicted(member));
        self.note(now, FairnessEvent::Evicted(member, now.saturating_sub(present.heard)), out);
        self.begin_epoch(out);
    }

    fn bar(&mut self, now: Nanos, member: u64) {
        let before = self.evicted.get(&member).map(|absent| absent.wait.saturating_mul(2));
        let wait = before.unwrap_or(self.rules.rejoin);
        self.evicted.insert(member, Absent { until: now.saturating_add(wait), wait });
    }
}
