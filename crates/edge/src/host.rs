//! The loop of a process or thread: `wait · step · perform`, for one member or several.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use fairnet::{EdgeInput, Nanos};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};

use crate::clock::EdgeClock;
use crate::station::{EdgeCommand, Source, Station};
use crate::status::EdgeStatus;

/// Commands that are taken before something else has its turn.
const COMMANDS: usize = 1_024;
/// Longest wait, so that a clock that is set does no harm, ns.
const WAIT_MAX: Nanos = 100_000_000;

/// How a host waits.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    /// The time.
    pub clock: EdgeClock,
    /// How long before a deadline the host wakes and then spins, ns. 0: it sleeps until the kernel wakes it, some 50 µs
    /// late.
    pub spin: Nanos,
}

/// Several members in one thread.
pub struct EdgeHost {
    options: HostOptions,
    stations: Vec<Station>,
    commands: Receiver<(usize, EdgeCommand)>,
    waker: UnixDatagram,
    /// Commands were left for the next turn.
    is_behind: bool,
}

/// Sends commands to a host from other threads. The host ends when every handle is gone.
#[derive(Clone)]
pub struct HostHandle {
    commands: Sender<(usize, EdgeCommand)>,
    waker: Arc<UnixDatagram>,
}

impl HostHandle {
    /// Sends a command to the member of this place. A host that has ended takes none.
    pub fn send(&self, station: usize, command: EdgeCommand) {
        if self.commands.send((station, command)).is_ok() {
            // If the buffer is full, the host has been woken.
            drop(self.waker.send(&[1]));
        }
    }

    /// How the member of this place is; `None` if the host has ended.
    pub fn status(&self, station: usize) -> Option<EdgeStatus> {
        let (sender, receiver) = channel();
        self.send(station, EdgeCommand::Status(sender));
        receiver.recv_timeout(Duration::from_secs(10)).ok()
    }
}

impl EdgeHost {
    /// A host of these members.
    ///
    /// # Errors
    /// If the system gives no sockets.
    pub fn new(options: HostOptions, stations: Vec<Station>) -> io::Result<(EdgeHost, HostHandle)> {
        let (waker, ours) = UnixDatagram::pair()?;
        waker.set_nonblocking(true)?;
        ours.set_nonblocking(true)?;
        let (sender, commands) = channel();
        let host = EdgeHost { options, stations, commands, waker: ours, is_behind: false };
        Ok((host, HostHandle { commands: sender, waker: Arc::new(waker) }))
    }

    /// Runs until every handle is gone.
    ///
    /// # Errors
    /// If a member's own socket is broken.
    pub fn run(mut self) -> io::Result<()> {
        let (now, state) = (self.options.clock.now(), self.options.clock.state());
        self.stations.iter_mut().for_each(|station| station.step(now, EdgeInput::Clock(state)));
        let mut ready = Vec::new();
        loop {
            self.wait(&mut ready)?;
            if !self.turn(&ready)? {
                return Ok(());
            }
        }
    }

    /// Waits until something can be received or is due; `ready` says of which member what can be received.
    fn wait(&mut self, ready: &mut Vec<(usize, Source)>) -> io::Result<()> {
        ready.clear();
        let (due, now) = (self.due(), self.options.clock.now());
        let left = due.saturating_sub(now);
        let sleep = if left == 0 || self.is_behind { 0 } else { left.saturating_sub(self.options.spin).min(WAIT_MAX) };
        let mut sources = Vec::new();
        let mut fds = vec![PollFd::new(self.waker.as_fd(), PollFlags::POLLIN)];
        for (at, station) in self.stations.iter().enumerate() {
            for (source, fd, flags) in station.sources() {
                sources.push((at, source));
                fds.push(PollFd::new(fd, flags));
            }
        }
        match ppoll(&mut fds, Some(Duration::from_nanos(sleep).into()), None) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
        ready.extend(sources.into_iter().zip(&fds[1..]).filter(|(_, fd)| is_ready(fd)).map(|(source, _)| source));
        let is_idle = ready.is_empty() && !is_ready(&fds[0]);
        if is_idle && self.options.spin > 0 {
            self.spin(due);
        }
        Ok(())
    }

    /// Waits for a moment that is near, without sleeping.
    fn spin(&mut self, due: Nanos) {
        while (self.options.clock.now()..).contains(&due) && due - self.options.clock.now() <= self.options.spin {
            std::hint::spin_loop();
        }
    }

    fn due(&self) -> Nanos {
        self.stations.iter().map(Station::due).min().unwrap_or(Nanos::MAX)
    }

    /// One turn; false if every handle is gone.
    fn turn(&mut self, ready: &[(usize, Source)]) -> io::Result<bool> {
        for (at, source) in ready {
            self.stations[*at].ready(&mut self.options.clock, *source)?;
        }
        let is_wanted = self.take_commands();
        for (at, station) in self.stations.iter_mut().enumerate() {
            let now = self.options.clock.now();
            let is_touched = is_wanted.1 || ready.iter().any(|(own, _)| *own == at);
            if is_touched || station.due() <= now {
                station.end_turn(now);
            }
        }
        Ok(is_wanted.0)
    }

    /// Whether somebody may still send commands, and whether somebody did.
    fn take_commands(&mut self) -> (bool, bool) {
        let mut buffer = [0; 64];
        while self.waker.recv(&mut buffer).is_ok() {}
        self.is_behind = false;
        for taken in 0..COMMANDS {
            match self.commands.try_recv() {
                Ok((at, command)) => {
                    let now = self.options.clock.now();
                    if let Some(station) = self.stations.get_mut(at) {
                        station.command(now, command);
                    }
                }
                Err(TryRecvError::Empty) => return (true, taken > 0),
                Err(TryRecvError::Disconnected) => return (false, true),
            }
        }
        self.is_behind = true;
        (true, true)
    }
}
