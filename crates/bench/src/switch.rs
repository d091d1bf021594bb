//! A simulated network: a relay in user space between UDP sockets on loopback, with delay, jitter, loss, reordering,
//! a rate and cuts for each direction of each pair, changeable while it runs.
//!
//! For every ordered pair of validators `(i, j)` there is a socket that `i` calls instead of `j`
//! ([`Switch::address`]). Datagrams that arrive there from `i` are sent to `j` over the link `i → j`, and datagrams
//! from `j` are sent to `i` over the link `j → i`. Both see the relay's socket as the other's address, so a
//! connection works as if the relay did not exist.
//!
//! The fate of the n-th datagram of a link depends only on the seed, the link and n ([`CellFate`]); its *time* on the
//! sender. A datagram that is due at once, with none queued before it, is sent by the thread that received it. All
//! others wait in one heap for one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kernel::Dice;

/// The longest datagram of UDP.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Maximum bytes queued on one link; more is lost, as in a router.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The properties of one direction between two validators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchLink {
    /// Delay of every datagram.
    pub delay: Duration,
    /// Additional delay, between zero and this; order is kept.
    pub jitter: Duration,
    /// The share of datagrams that are lost, 0 to 1.
    pub loss: f64,
    /// The share of datagrams, 0 to 1, that are delayed by an additional delay plus jitter plus a millisecond, so
    /// that others overtake them.
    pub reordering: f64,
    /// Bytes per second; `None` is unlimited.
    pub bytes_per_second: Option<u64>,
    /// Whether any datagram is forwarded.
    pub connected: bool,
}

impl SwitchLink {
    /// Without delay and in order.
    pub const PERFECT: SwitchLink = SwitchLink {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        loss: 0.0,
        reordering: 0.0,
        bytes_per_second: None,
        connected: true,
    };

    /// A good connection with this delay: a fiftieth of jitter.
    pub fn of(delay: Duration) -> SwitchLink {
        SwitchLink { delay, jitter: delay / 50, ..SwitchLink::PERFECT }
    }
}

/// The traffic of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Forwarded datagrams.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Datagrams that were lost, or did not fit.
    pub lost: u64,
}

/// Decides the fate of each datagram of one direction.
#[derive(Debug)]
pub struct CellFate {
    /// The current properties of the link.
    pub link: SwitchLink,
    random: Dice,
    /// The time when the sender's end of the link is free again.
    free: Option<Instant>,
    /// The time when the last datagram that kept its order is due.
    last: Option<Instant>,
    waiting_bytes: usize,
    passed: Passed,
}

impl CellFate {
    /// A link whose random draws come from this seed.
    pub fn new(link: SwitchLink, seed: u64) -> CellFate {
        CellFate { link, random: Dice::new(seed), free: None, last: None, waiting_bytes: 0, passed: Passed::default() }
    }

    /// The time when a datagram of this size that arrives now is due at the other end; `None` if it is lost.
    pub fn of(&mut self, now: Instant, bytes: usize) -> Option<Instant> {
        // The same number of draws for each datagram, so that a change of the link does not change other draws.
        let [lost, jitter, held, longer] = [(); 4].map(|()| self.random.unit());
        let link = self.link;
        let full = self.waiting_bytes + bytes > WAITING_BYTES_MAX;
        if !link.connected || lost < link.loss || full {
            self.passed.lost += 1;
            return None;
        }
        let sent = match link.bytes_per_second {
            Some(rate) => {
                let takes = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
                *self.free.insert(self.free.map_or(now, |free| free.max(now)) + takes)
            }
            None => now,
        };
        let due = sent + link.delay + link.jitter.mul_f64(jitter);
        self.waiting_bytes += bytes;
        if held < link.reordering {
            return Some(due + (link.delay + link.jitter + Duration::from_millis(1)).mul_f64(longer));
        }
        Some(*self.last.insert(self.last.map_or(due, |last| last.max(due))))
    }

    /// Counts a forwarded datagram.
    fn pass(&mut self, bytes: usize) {
        self.waiting_bytes -= bytes;
        self.passed.datagrams += 1;
        self.passed.bytes += bytes as u64;
    }
}

/// A queued datagram.
struct Waiting {
    due: Instant,
    number: u64,
    /// The relay's socket that sends it.
    socket: usize,
    to: SocketAddr,
    direction: usize,
    bytes: Vec<u8>,
}

impl Waiting {
    /// The earliest first; among equal times, the first that arrived.
    fn order(&self) -> Reverse<(Instant, u64)> {
        Reverse((self.due, self.number))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

/// The state shared by the relay's threads.
struct Shared {
    validators: Vec<SocketAddr>,
    /// For each ordered pair.
    sockets: Vec<UdpSocket>,
    /// For each ordered pair: the direction from the first to the second.
    directions: Vec<Mutex<CellFate>>,
    waiting: Mutex<(BinaryHeap<Waiting>, u64)>,
    changed: Condvar,
    stopped: AtomicBool,
}

/// The relay. It stops when it is dropped.
pub struct Switch {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switch {
    /// A relay between validators that listen at these addresses, all links perfect.
    ///
    /// # Errors
    /// If sockets or threads cannot be created.
    pub fn start(validators: &[SocketAddr], seed: u64) -> io::Result<Switch> {
        let pairs = validators.len() * validators.len();
        let sockets: Vec<UdpSocket> =
            (0..pairs).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<io::Result<_>>()?;
        let addresses = sockets.iter().map(UdpSocket::local_addr).collect::<io::Result<_>>()?;
        let fate =
            |pair: usize| Mutex::new(CellFate::new(SwitchLink::PERFECT, seed ^ (pair as u64 + 1).wrapping_mul(SPREAD)));
        let shared = Arc::new(Shared {
            validators: validators.to_vec(),
            sockets,
            directions: (0..pairs).map(fate).collect(),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let mut switch = Switch { shared: shared.clone(), addresses, threads: Vec::new() };
        switch.spawn("switch", move |shared| shared.send_when_due())?;
        for pair in 0..pairs {
            if pair / validators.len() != pair % validators.len() {
                switch.spawn("switch-receiver", move |shared| shared.receive(pair))?;
            }
        }
        Ok(switch)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce(&Shared) + Send + 'static) -> io::Result<()> {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name(name.into()).stack_size(256 << 10);
        self.threads.push(thread.spawn(move || run(&shared))?);
        Ok(())
    }

    /// The address that `from` calls to reach `to`.
    pub fn address(&self, from: usize, to: usize) -> SocketAddr {
        self.addresses[self.shared.pair(from, to)]
    }

    /// Changes one direction.
    pub fn set(&self, from: usize, to: usize, link: SwitchLink) {
        self.direction(from, to).link = link;
    }

    /// Changes all directions.
    pub fn set_all(&self, link: impl Fn(usize, usize) -> SwitchLink) {
        self.each(|from, to, fate| fate.link = link(from, to));
    }

    /// Cuts every link between validators of different groups; a validator in no group is alone. Other links are
    /// joined.
    pub fn partition(&self, groups: &[&[usize]]) {
        let group = |validator: usize| groups.iter().position(|group| group.contains(&validator));
        let together = |from: usize, to: usize| group(from).is_some() && group(from) == group(to);
        self.each(|from, to, fate| fate.link.connected = together(from, to));
    }

    /// Joins every link again.
    pub fn heal(&self) {
        self.each(|_, _, fate| fate.link.connected = true);
    }

    /// The traffic from one validator to another.
    pub fn passed(&self, from: usize, to: usize) -> Passed {
        self.direction(from, to).passed
    }

    fn direction(&self, from: usize, to: usize) -> MutexGuard<'_, CellFate> {
        lock(&self.shared.directions[self.shared.pair(from, to)])
    }

    fn each(&self, change: impl Fn(usize, usize, &mut CellFate)) {
        let size = self.shared.validators.len();
        for (pair, fate) in self.shared.directions.iter().enumerate() {
            change(pair / size, pair % size, &mut lock(fate));
        }
    }
}

/// Spreads the numbers of links over the seeds.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Drop for Switch {
    fn drop(&mut self) {
        {
            // Not between the look of the sending thread and its wait: it would sleep for ever.
            let _waiting = lock(&self.shared.waiting);
            self.shared.stopped.store(true, Ordering::SeqCst);
        }
        self.shared.changed.notify_all();
        // A receiver sees the change when the next datagram arrives.
        for (socket, address) in self.shared.sockets.iter().zip(&self.addresses) {
            let _ = socket.send_to(&[], address);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn pair(&self, from: usize, to: usize) -> usize {
        assert!(from < self.validators.len() && to < self.validators.len(), "there is no link {from} to {to}");
        from * self.validators.len() + to
    }

    /// Receives datagrams at the socket by which the first of the pair reaches the second, from either of them.
    fn receive(&self, pair: usize) {
        let (from, to) = (pair / self.validators.len(), pair % self.validators.len());
        let ends = [(self.validators[from], to), (self.validators[to], from)];
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while !self.stopped.load(Ordering::SeqCst) {
            // An error here means that an earlier datagram reached nobody.
            let Ok((bytes, source)) = self.sockets[pair].recv_from(&mut buffer) else { continue };
            if source == ends[0].0 {
                self.forward(pair, pair, self.validators[to], &buffer[..bytes]);
            } else if source == ends[1].0 {
                self.forward(self.pair(to, from), pair, self.validators[from], &buffer[..bytes]);
            }
        }
    }

    fn forward(&self, direction: usize, socket: usize, to: SocketAddr, bytes: &[u8]) {
        let now = Instant::now();
        let mut fate = lock(&self.directions[direction]);
        let nothing_waits = fate.waiting_bytes == 0;
        let Some(due) = fate.of(now, bytes.len()) else { return };
        if due <= now && nothing_waits {
            fate.pass(bytes.len());
            let _ = self.sockets[socket].send_to(bytes, to);
            return;
        }
        drop(fate);
        let mut waiting = lock(&self.waiting);
        let number = waiting.1;
        waiting.1 += 1;
        waiting.0.push(Waiting { due, number, socket, to, direction, bytes: bytes.to_vec() });
        if waiting.0.peek().is_some_and(|first| first.number == number) {
            self.changed.notify_one();
        }
    }

    /// Sends queued datagrams when they are due.
    fn send_when_due(&self) {
        let mut waiting = lock(&self.waiting);
        while !self.stopped.load(Ordering::SeqCst) {
            let now = Instant::now();
            match waiting.0.peek().map(|first| first.due) {
                Some(due) if due <= now => {
                    let datagram = waiting.0.pop().expect("it was looked at");
                    drop(waiting);
                    lock(&self.directions[datagram.direction]).pass(datagram.bytes.len());
                    let _ = self.sockets[datagram.socket].send_to(&datagram.bytes, datagram.to);
                    waiting = lock(&self.waiting);
                }
                Some(due) => {
                    let result = self.changed.wait_timeout(waiting, due - now);
                    waiting = result.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// The ten regions in which Smart Red Belly was measured (§5).
pub const REGIONS: [&str; 10] =
    ["Cape Town", "Tokyo", "Mumbai", "Sydney", "Stockholm", "Milan", "Bahrain", "Northern Virginia", "Ohio", "Oregon"];

/// Round trips between the regions in milliseconds, above the diagonal: approximate values of public tables of cloud
/// latencies, good for comparing protocols, not for predicting a network.
const ROUND_TRIPS_MS: [[u16; 10]; 10] = [
    [0, 355, 270, 410, 180, 160, 225, 226, 235, 275],
    [0, 0, 128, 105, 250, 215, 165, 150, 133, 98],
    [0, 0, 0, 152, 155, 112, 38, 190, 198, 220],
    [0, 0, 0, 0, 275, 240, 190, 200, 188, 140],
    [0, 0, 0, 0, 0, 32, 115, 110, 115, 155],
    [0, 0, 0, 0, 0, 0, 95, 100, 112, 158],
    [0, 0, 0, 0, 0, 0, 0, 165, 185, 240],
    [0, 0, 0, 0, 0, 0, 0, 0, 12, 65],
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 50],
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
];
/// Delay within a region.
const NEAR: Duration = Duration::from_micros(250);

/// The one-way delay between two validators; the i-th is in region i modulo 10.
pub fn between_regions(from: usize, to: usize) -> Duration {
    let (a, b) = (from % REGIONS.len(), to % REGIONS.len());
    if a == b {
        return NEAR;
    }
    Duration::from_millis(ROUND_TRIPS_MS[a.min(b)][a.max(b)].into()) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    proptest! {
        /// Compares with the definition: every datagram that is not lost arrives between the delay and the sum of
        /// delay, jitter and reordering. Those that are not reordered keep their order.
        #[test]
        fn fates_are_as_the_link_says(
            delay in 0u64..200,
            jitter in 0u64..50,
            loss in 0.0..0.5f64,
            reordering in 0.0..0.5f64,
            gaps in proptest::collection::vec(0u64..20, 1..200),
            seed in any::<u64>(),
        ) {
            let link = SwitchLink { delay: ms(delay), jitter: ms(jitter), loss, reordering, ..SwitchLink::PERFECT };
            let run = || {
                let (mut fate, start) = (CellFate::new(link, seed), Instant::now());
                let mut now = start;
                gaps.iter().map(|gap| {
                    now += ms(*gap);
                    (now - start, fate.of(now, 100).map(|due| due - start))
                }).collect::<Vec<_>>()
            };
            let fates = run();
            prop_assert_eq!(&fates, &run());
            let longest = ms(2 * (delay + jitter) + 1);
            let mut latest = Duration::ZERO;
            for (sent, due) in fates.iter().filter_map(|(sent, due)| Some((*sent, (*due)?))) {
                prop_assert!(due >= sent + ms(delay) && due <= (sent + longest).max(latest));
                latest = latest.max(due);
            }
        }

        #[test]
        fn without_reordering_order_is_kept(jitter in 0u64..50, count in 2usize..100, seed in any::<u64>()) {
            let mut fate = CellFate::new(SwitchLink { delay: ms(10), jitter: ms(jitter), ..SwitchLink::PERFECT }, seed);
            let start = Instant::now();
            let due: Vec<Instant> = (0..count).filter_map(|i| fate.of(start + ms(i as u64), 9)).collect();
            prop_assert!(due.len() == count && due.is_sorted());
        }
    }

    #[test]
    fn shares_and_rates_are_kept() {
        let now = Instant::now();
        let mut fate = CellFate::new(SwitchLink { loss: 0.2, reordering: 0.1, delay: ms(5), ..SwitchLink::PERFECT }, 3);
        let due: Vec<Option<Instant>> = (0..20_000).map(|_| fate.of(now, 1)).collect();
        let lost = due.iter().filter(|due| due.is_none()).count();
        let held = due.iter().flatten().filter(|due| **due > now + ms(5)).count();
        assert!((3_700..4_300).contains(&lost) && (1_400..1_800).contains(&held), "{lost} {held}");
        let mut fate = CellFate::new(SwitchLink { bytes_per_second: Some(1_000_000), ..SwitchLink::PERFECT }, 3);
        let last = (0..1_000).filter_map(|_| fate.of(now, 1_000)).last().expect("all pass");
        assert_eq!(last, now + Duration::from_secs(1));
        fate.link.connected = false;
        assert_eq!(fate.of(now, 1), None);
        let mut fate = CellFate::new(SwitchLink { delay: ms(5), ..SwitchLink::PERFECT }, 3);
        let passed = (0..1_000).filter_map(|_| fate.of(now, 60_000)).count();
        assert_eq!(passed, WAITING_BYTES_MAX / 60_000, "the queue is bounded");
    }

    #[test]
    fn regions_are_symmetric() {
        for (a, b) in (0..20).flat_map(|a| (0..20).map(move |b| (a, b))) {
            assert_eq!(between_regions(a, b), between_regions(b, a));
            assert!((NEAR..ms(210)).contains(&between_regions(a, b)));
        }
        assert_eq!(between_regions(8, 19), ms(25), "Ohio to Oregon");
    }

    /// Sockets that represent validators.
    fn ends(count: usize) -> (Vec<UdpSocket>, Vec<SocketAddr>) {
        let sockets: Vec<UdpSocket> =
            (0..count).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds")).collect();
        let addresses = sockets.iter().map(|socket| socket.local_addr().expect("bound")).collect();
        (sockets, addresses)
    }

    fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut buffer = [0; 100];
        let (bytes, from) = socket.recv_from(&mut buffer).expect("received");
        (buffer[..bytes].to_vec(), from)
    }

    #[test]
    fn datagrams_go_both_ways_and_stop_at_cuts() {
        let (sockets, addresses) = ends(3);
        let switch = Switch::start(&addresses, 1).expect("starts");
        let (to_1, to_2) = (switch.address(0, 1), switch.address(0, 2));
        sockets[0].send_to(b"question", to_1).expect("sent");
        assert_eq!(receive(&sockets[1]), (b"question".to_vec(), to_1));
        sockets[1].send_to(b"answer", to_1).expect("sent");
        assert_eq!(receive(&sockets[0]), (b"answer".to_vec(), to_1));
        switch.partition(&[&[0, 2], &[1]]);
        sockets[0].send_to(b"lost", to_1).expect("sent");
        while switch.passed(0, 1).lost == 0 {
            std::thread::yield_now();
        }
        sockets[0].send_to(b"inside", to_2).expect("sent");
        assert_eq!(receive(&sockets[2]).0, b"inside");
        switch.heal();
        sockets[0].send_to(b"healed", to_1).expect("sent");
        assert_eq!(receive(&sockets[1]).0, b"healed");
        assert_eq!(switch.passed(0, 1), Passed { datagrams: 2, bytes: 14, lost: 1 });
        assert_eq!(switch.passed(1, 0), Passed { datagrams: 1, bytes: 6, lost: 0 });
    }

    /// The datagram that is sent first over the slow link arrives last.
    #[test]
    fn delays_order_what_arrives() {
        let (sockets, addresses) = ends(4);
        let switch = Switch::start(&addresses, 1).expect("starts");
        for (from, delay) in [(1, 300), (2, 200), (3, 100)] {
            switch.set(from, 0, SwitchLink::of(ms(delay)));
            sockets[from].send_to(&[from as u8], switch.address(from, 0)).expect("sent");
        }
        assert_eq!([(); 3].map(|()| receive(&sockets[0]).0[0]), [3, 2, 1]);
    }
}
