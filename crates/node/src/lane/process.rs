//! One shard in a process of its own: the shell of a [`ShardEnd`].
//!
//! ```text
//! node ═ line ═► ShardEnd ─► key, log, LaneShard of home h, h−1, h−2 …
//!                   ▲                     │
//!                   └──────── reports ────┘
//! ```
//!
//! It uses `data/lane` of its home as a node does, for its own shard alone: `EPOCH/SHARD/` has key and log of an epoch,
//! `apart-SHARD/` what it was told first ([`member::apart::ShardPins`]). That folder is locked.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use lane::{LaneShard, ShardError};
use member::ShardTerm;
use member::apart::{ShardEnd, ShardEndEffect, ShardPins, ShardTask};
use payments::{HomeEpoch, LaneBls, LaneEffect, ShardOffer};
use primitives::{Digest, PublicKey, SecretKey};
use sockets::Acquaintances;
use store::{Disk, RealDisk};

use super::keys::{self, LaneKeySafe};
use super::line::{Line, LineEvent, answer};
use super::restart::lane_closed_for;
use super::room::{ShardReports, ShardRoom};
use super::seat::LaneStartError;
use super::shown::figures;

/// Reports and events that wait for the shard's thread.
const QUEUE: usize = 1_024;
/// How often that thread looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How often the node is told what the shard has done.
const COUNT: Duration = Duration::from_secs(1);

/// What one shard is started with in a process of its own.
pub struct ShardSeat {
    /// The member's index in the committee.
    pub member: u8,
    /// The shard.
    pub shard: u16,
    /// The addresses of all shards of the committee, by member and shard.
    pub addresses: Vec<Vec<SocketAddr>>,
    /// The IP address at which it listens for clients, if not that of its address.
    pub bind: Option<IpAddr>,
    /// Whether they all speak TLS.
    pub tls: bool,
    /// Whom its operator knows.
    pub known: Acquaintances,
    /// How it encrypts the keys that it makes; `None` if it does not.
    pub safe: Option<LaneKeySafe>,
    /// The key that it shows its node.
    pub link: SecretKey,
    /// The key that its node shows: the registrar of its member.
    pub registrar: PublicKey,
    /// Where its node dials it.
    pub listen: SocketAddr,
}

/// What the shard's thread hears.
enum Heard {
    Line(LineEvent),
    /// A report of a home that was started in this life.
    Reported(u64, HomeEpoch, Box<LaneEffect>),
}

/// A shard in a process of its own.
pub struct ShardProcess {
    shard: u16,
    registrar: PublicKey,
    room: ShardRoom,
    pins: PathBuf,
    end: ShardEnd,
    line: Option<Line>,
    homes: BTreeMap<HomeEpoch, LaneShard>,
    told: SyncSender<Heard>,
    heard: Receiver<Heard>,
    listener: Option<(TcpListener, SecretKey)>,
    address: SocketAddr,
    _lock: <RealDisk as Disk>::Lock,
}

impl ShardProcess {
    /// Opens what the shard keeps, and listens for its node. `data` is the data directory of its home.
    ///
    /// # Errors
    /// [`LaneStartError`] says what prevents it.
    pub fn start(seat: ShardSeat, data: &Path) -> Result<ShardProcess, LaneStartError> {
        let folder = data.join("lane").join(format!("apart-{}", seat.shard));
        let unusable = |error| LaneStartError::Directory(folder.display().to_string(), error);
        if let Some(restart) = lane_closed_for(data).map_err(unusable)? {
            return Err(LaneStartError::Closed(restart));
        }
        let disk = RealDisk::new(&folder).map_err(unusable)?;
        let lock = disk.lock().map_err(unusable)?.ok_or_else(|| ShardError::InUse(disk.place()))?;
        let pins_file = folder.join("pins");
        let pins = read_pins(&pins_file).map_err(unusable)?;
        let listener = TcpListener::bind(seat.listen);
        let listener = listener.map_err(|error| LaneStartError::Directory(seat.listen.to_string(), error))?;
        let address = listener.local_addr().map_err(unusable)?;
        let ShardSeat { member, shard, addresses, bind, tls, known, safe, link, registrar, .. } = seat;
        let directory = data.join("lane");
        let stored = own_homes(&directory, shard).map_err(unusable)?;
        let room = ShardRoom { member, addresses, bind, tls, known, safe, fixed: None, directory };
        let (told, heard) = sync_channel(QUEUE);
        Ok(ShardProcess {
            shard,
            registrar,
            room,
            pins: pins_file,
            end: ShardEnd::new(pins, stored),
            line: None,
            homes: BTreeMap::new(),
            told,
            heard,
            listener: Some((listener, link)),
            address,
            _lock: lock,
        })
    }

    /// Where it listens for its node.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs until it is told to stop.
    ///
    /// # Errors
    /// [`LaneStartError`] if the disk does not keep what the shard must not forget: it then stops at once.
    pub fn run(mut self, stop: &Arc<AtomicBool>) -> Result<(), LaneStartError> {
        let (listener, link) = self.listener.take().expect("it runs once");
        let (told, wanted, node) = (self.told.clone(), stop.clone(), self.registrar);
        let tell = move |event| told.send(Heard::Line(event)).is_ok();
        let listen = move || answer(&listener, (&link, node), tell, || !wanted.load(Ordering::Acquire));
        let listening = std::thread::Builder::new().name("shard-listener".into()).spawn(listen);
        listening.map_err(|error| LaneStartError::Thread(error.to_string()))?;
        let mut next_count = Instant::now();
        while !stop.load(Ordering::Acquire) {
            if next_count <= Instant::now() {
                next_count = Instant::now() + COUNT;
                self.count()?;
            }
            let effects = match self.heard.recv_timeout(LOOK) {
                Ok(Heard::Line(event)) => self.on_line(event),
                Ok(Heard::Reported(life, home, report)) => self.end.reported(life, home, *report),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => unreachable!("it holds a sender itself"),
            };
            self.perform(effects)?;
        }
        Ok(())
    }

    /// Tells the node what it has done in each home.
    fn count(&mut self) -> Result<(), LaneStartError> {
        let counts: Vec<_> = self.homes.iter().map(|(home, shard)| (*home, figures(shard))).collect();
        counts.into_iter().try_for_each(|(home, figures)| {
            let effects = self.end.counted(home, figures);
            self.perform(effects)
        })
    }

    fn on_line(&mut self, event: LineEvent) -> Vec<ShardEndEffect> {
        let is_present = |id| self.line.as_ref().is_some_and(|line| line.id == id);
        match event {
            // The newest connection counts: the node dials again when it has lost one.
            LineEvent::Opened(line) => {
                tracing::info!(shard = self.shard, "the node is connected");
                self.line = Some(line);
                self.end.connected()
            }
            LineEvent::Frame(id, frame, _turn) if is_present(id) => self.end.frame(&frame),
            LineEvent::Closed(id) if is_present(id) => {
                tracing::warn!(shard = self.shard, "the node is gone: what runs goes on, and no new epoch begins");
                self.close();
                Vec::new()
            }
            LineEvent::Frame(..) | LineEvent::Closed(_) => Vec::new(),
        }
    }

    fn close(&mut self) {
        self.line = None;
        self.end.disconnected();
    }

    /// Performs effects in order; results of work come before what follows.
    fn perform(&mut self, effects: Vec<ShardEndEffect>) -> Result<(), LaneStartError> {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                ShardEndEffect::Send(frame) => {
                    if self.line.as_ref().is_some_and(|line| !line.send(frame)) {
                        self.close();
                    }
                }
                ShardEndEffect::Close => self.close(),
                ShardEndEffect::Do(task) => {
                    let results = self.work(task)?;
                    results.into_iter().rev().for_each(|result| effects.push_front(result));
                }
            }
        }
        Ok(())
    }

    fn work(&mut self, task: ShardTask) -> Result<Vec<ShardEndEffect>, LaneStartError> {
        match task {
            ShardTask::Pin(pins) => write_pins(&self.pins, &pins).map_err(|error| self.room.unusable(error))?,
            ShardTask::Prepare { home, network, bls, makes_log } => {
                return Ok(self.prepare(home, network, bls, makes_log));
            }
            ShardTask::Start(home, term) => return Ok(self.start_home(home, &term)),
            ShardTask::Tell(home, fact) => self.homes.get(&home).into_iter().for_each(|of| of.tell(fact.clone())),
            ShardTask::StopListening(home) => self.homes.get_mut(&home).into_iter().for_each(LaneShard::stop_listening),
            ShardTask::Stop(home) => drop(self.homes.remove(&home)),
            ShardTask::StopAll => self.homes.clear(),
            ShardTask::Remove(home) => {
                let removed = self.room.remove(home, |shard| shard == self.shard);
                self.end.removed(home, removed);
            }
            ShardTask::Forget(home) => drop(self.room.forget(home, |shard| shard == self.shard)),
            ShardTask::Refuse(home, why) => {
                tracing::error!(home, shard = self.shard, "{why}");
                return Ok(self.end.started(home, member::ShardStart::Mute));
            }
            ShardTask::Alarm(what) => tracing::error!(shard = self.shard, "{what}"),
        }
        Ok(Vec::new())
    }

    fn prepare(&mut self, home: HomeEpoch, network: Digest, bls: LaneBls, makes_log: bool) -> Vec<ShardEndEffect> {
        let logged = if makes_log { self.room.make_log(network, home, self.shard) } else { Ok(()) };
        let made = logged.and_then(|()| self.room.make_key(home, self.shard));
        let place = (home, self.room.member, self.shard);
        let offer = made.map(|key| ShardOffer::make(&network, place, &key, bls, &self.registrar));
        if let Err(error) = &offer {
            tracing::error!(%error, home, "cannot make key and log of a lane epoch: fix the error, or this shard signs \
                nothing in it");
        }
        self.end.prepared(home, offer.ok())
    }

    fn start_home(&mut self, home: HomeEpoch, term: &ShardTerm) -> Vec<ShardEndEffect> {
        // A home that ran is started anew, as after a restart.
        drop(self.homes.remove(&home));
        let (start, started) = self.room.start(home, self.shard, term, self.reports(home));
        self.homes.extend(started.map(|started| (home, started)));
        self.end.started(home, start)
    }

    fn reports(&self, home: HomeEpoch) -> ShardReports {
        let (told, life) = (self.told.clone(), self.end.life());
        Box::new(move |report| match told.try_send(Heard::Reported(life, home, Box::new(report))) {
            Err(TrySendError::Full(_)) => tracing::warn!(home, "a report is dropped: the node asks for it again"),
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
        })
    }
}

/// The homes of which a shard has a folder.
fn own_homes(lane: &Path, shard: u16) -> io::Result<Vec<HomeEpoch>> {
    let mut own = Vec::new();
    for home in keys::homes(lane) {
        own.extend(keys::shards(lane, home)?.contains(&shard).then_some(home));
    }
    Ok(own)
}

fn read_pins(path: &Path) -> io::Result<ShardPins> {
    let damaged = || io::Error::other("the file `pins` is damaged: without it this shard may sign nothing. Restore it");
    match std::fs::read(path) {
        Ok(bytes) => ShardPins::parse(&bytes).ok_or_else(damaged),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ShardPins::default()),
        Err(error) => Err(error),
    }
}

fn write_pins(path: &Path, pins: &ShardPins) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(&pins.encode())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    File::open(path.parent().expect("a folder"))?.sync_all()
}
