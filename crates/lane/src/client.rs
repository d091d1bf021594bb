//! A client of the lane: it sends the same bytes to all validators until a quorum has answered.

mod spender;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use payments::{
    AnswerCollector, AnswerScheme, BlsCollector, FastReceipt, HomeEpoch, LaneCommittee, LaneRefusal,
    PaymentCertificate, PaymentSummary, PaymentView, RootCache, SettledReceipt, SignedPayment, StatementKind,
    settle_request,
};
use primitives::Digest;

use crate::tls::{LaneReceiver, LaneSender, connect};
use crate::wire::{HEAD_BYTES, PositionOf, PositionQuery, REPLY_BYTES_MAX, Reply, read_head, read_reply, write_frame};

/// How long a validator may take to report a position.
const TOLD: Duration = Duration::from_secs(2);
/// After this time the same bytes are sent again to validators that have not answered.
const AGAIN: Duration = Duration::from_millis(500);
/// Pause between two attempts to reach a validator whose position is requested.
const PAUSE: Duration = Duration::from_millis(200);
const ROOTS_PER_VALIDATOR: usize = 4_096;
const READ_BYTES: usize = 64 << 10;
/// Replies queued for the client. If the queue is full, senders wait.
const REPLIES: usize = 1_024;

/// The addresses of a committee's shards.
#[derive(Clone, Debug)]
pub struct LaneDirectory {
    /// The committee with its keys.
    pub committee: LaneCommittee,
    /// For each validator, the addresses of its shards. How many of them it has is what its keys in the committee say:
    /// others are not asked, and one without an address does not answer.
    pub addresses: Vec<Vec<SocketAddr>>,
    /// Whether they use TLS, each under its registered key.
    pub tls: bool,
}

impl LaneDirectory {
    /// Connects to a shard.
    fn connect(&self, validator: u8, shard: u16) -> Option<(LaneSender, LaneReceiver)> {
        let address = *self.addresses.get(usize::from(validator))?.get(usize::from(shard))?;
        let key = if self.tls { Some(self.committee.key(validator, shard).ok()?) } else { None };
        connect(address, key).ok()
    }
}

/// Why a payment has no certificate yet. In every case the same bytes may be sent again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneClientError {
    /// So many validators refuse that no quorum is left.
    #[error("refused by {} of {validators} validators: {}", .refusals.len(), list(.refusals))]
    Refused {
        /// Validators of the committee.
        validators: usize,
        /// The validators that refuse, with their reasons.
        refusals: BTreeMap<u8, String>,
    },
    /// Not enough validators have answered in time.
    #[error(
        "{answered} of {needed} needed answers in time{}: the payment may still be confirmed. \
         Send the same bytes again; do not pay this money to anyone else",
        also(.refusals)
    )]
    Unanswered {
        /// Number of answers received.
        answered: usize,
        /// The quorum.
        needed: usize,
        /// The validators that refuse, with their reasons.
        refusals: BTreeMap<u8, String>,
    },
    /// Not enough validators have reported in time which payment spends an output.
    #[error(
        "{answered} of {needed} needed validators told in time what spends the output{}: ask again before you spend it",
        also(.refusals)
    )]
    Untold {
        /// Number of answers received.
        answered: usize,
        /// The quorum.
        needed: usize,
        /// The validators that refuse, with their reasons.
        refusals: BTreeMap<u8, String>,
    },
    /// The epoch has no keys for the requested scheme.
    #[error(
        "the members have no keys for this scheme in lane epoch {0}: ask for answers in trees, or wait for the next \
         lane epoch (the first one of a network, also after a restart, has no BLS keys)"
    )]
    NoSuchScheme(HomeEpoch),
    /// The request or the receipt is malformed.
    #[error(transparent)]
    Malformed(#[from] LaneRefusal),
}

fn list(refusals: &BTreeMap<u8, String>) -> String {
    let texts: BTreeSet<&str> = refusals.values().map(String::as_str).collect();
    texts.into_iter().collect::<Vec<_>>().join("; ")
}

fn also(refusals: &BTreeMap<u8, String>) -> String {
    if refusals.is_empty() { String::new() } else { format!(" ({})", list(refusals)) }
}

/// A message of a reader thread.
enum Came {
    Reply(Reply),
    /// The connection has ended.
    Gone,
}

/// The writing end of a connection.
struct Connected {
    sender: LaneSender,
    /// Distinguishes successive connections to one shard.
    generation: u64,
}

/// A client for one thread. It opens connections when they are needed, and opens them again when they end.
pub struct LaneClient {
    directory: LaneDirectory,
    roots: RootCache,
    links: HashMap<(u8, u16), Connected>,
    replies: Receiver<(u8, u16, u64, Came)>,
    told: SyncSender<(u8, u16, u64, Came)>,
    numbers: u32,
    generations: u64,
    scheme: AnswerScheme,
}

/// The answers to one request, under the scheme that it asked for.
enum Collector {
    Trees(AnswerCollector, BTreeSet<u8>),
    Bls(BlsCollector),
}

impl Collector {
    fn new(scheme: AnswerScheme, kind: StatementKind, summary: PaymentSummary) -> Collector {
        match scheme {
            AnswerScheme::Tree => Collector::Trees(AnswerCollector::new(kind, summary), BTreeSet::new()),
            AnswerScheme::Bls => Collector::Bls(BlsCollector::new(kind, summary)),
            AnswerScheme::Share => Collector::Bls(BlsCollector::of_shares(kind, summary)),
        }
    }

    /// Adds a reply of a shard of this validator; returns the certificate once there are enough. A wrong answer does
    /// not count: its validator is asked again. BLS answers are verified only together: no validator can answer for
    /// another.
    fn add(
        &mut self,
        from: u8,
        (kind, digest): (StatementKind, &Digest),
        committee: &LaneCommittee,
        roots: &mut RootCache,
        reply: Reply,
    ) -> Option<PaymentCertificate> {
        match (self, reply) {
            (Collector::Trees(collector, answered), Reply::Answer { kind: of, digest: about, answer })
                if (of, &about) == (kind, digest) =>
            {
                let validator = answer.validator;
                let certificate = collector.add(committee, roots, answer).ok()?;
                answered.insert(validator);
                certificate
            }
            (Collector::Bls(collector), Reply::BlsAnswer { kind: of, digest: about, validator, signature })
                if (of, &about) == (kind, digest) && validator == from && !collector.has(from) =>
            {
                collector.add(committee, from, signature)
            }
            _ => None,
        }
    }

    fn has(&self, validator: u8) -> bool {
        match self {
            Collector::Trees(_, answered) => answered.contains(&validator),
            Collector::Bls(collector) => collector.has(validator),
        }
    }
}

impl LaneClient {
    /// A client of these shards.
    pub fn new(directory: LaneDirectory) -> LaneClient {
        let (told, replies) = sync_channel(REPLIES);
        let (roots, links, scheme) = (RootCache::new(ROOTS_PER_VALIDATOR), HashMap::new(), AnswerScheme::Tree);
        LaneClient { directory, roots, links, replies, told, numbers: 0, generations: 0, scheme }
    }

    /// The same client, which asks for answers under this scheme from now on.
    ///
    /// # Errors
    /// [`LaneClientError::NoSuchScheme`] if the committee has no keys for it.
    pub fn under(mut self, scheme: AnswerScheme) -> Result<LaneClient, LaneClientError> {
        let committee = &self.directory.committee;
        let has_keys = match scheme {
            AnswerScheme::Tree => true,
            AnswerScheme::Bls => committee.has_bls(),
            AnswerScheme::Share => committee.group().is_ok(),
        };
        if !has_keys {
            return Err(LaneClientError::NoSuchScheme(committee.epoch()));
        }
        self.scheme = scheme;
        Ok(self)
    }

    /// The committee that it sends to.
    pub fn committee(&self) -> &LaneCommittee {
        &self.directory.committee
    }

    /// Gets a payment confirmed. Make its request durable first (see [`crate::Outbox`]): a payment that was sent and
    /// forgotten freezes its money.
    ///
    /// # Errors
    /// [`LaneClientError`]; the same bytes may be sent again.
    pub fn confirm(
        &mut self,
        payment: &SignedPayment,
        patience: Duration,
    ) -> Result<PaymentCertificate, LaneClientError> {
        let summary = PaymentView::parse(&payment.payment)?.summary();
        self.collect(StatementKind::Confirmation, summary, &payment.request, patience)
    }

    /// Settles a fast receipt. Anyone who has the receipt may do this.
    ///
    /// # Errors
    /// [`LaneClientError`]; it may be tried again.
    pub fn settle(&mut self, receipt: &FastReceipt, patience: Duration) -> Result<SettledReceipt, LaneClientError> {
        let acknowledgement = self.acknowledge(receipt.proof.summary, &receipt.proof.certificate, patience)?;
        Ok(SettledReceipt { fast: receipt.clone(), acknowledgement })
    }

    /// Collects acknowledgements of a certificate. With q of them all receipts of the payment are settled.
    ///
    /// # Errors
    /// [`LaneClientError`]; it may be tried again.
    pub fn acknowledge(
        &mut self,
        summary: PaymentSummary,
        certificate: &PaymentCertificate,
        patience: Duration,
    ) -> Result<PaymentCertificate, LaneClientError> {
        let request = settle_request(&summary, certificate);
        self.collect(StatementKind::Acknowledgement, summary, &request, patience)
    }

    fn collect(
        &mut self,
        kind: StatementKind,
        summary: PaymentSummary,
        request: &[u8],
        patience: Duration,
    ) -> Result<PaymentCertificate, LaneClientError> {
        let committee = self.directory.committee.clone();
        let (needed, validators) = (committee.quorums().certificate, self.directory.addresses.len());
        let (digest, request) = (summary.digest(&committee.network()), self.scheme.ask(request));
        let mut collector = Collector::new(self.scheme, kind, summary);
        let until = Instant::now() + patience;
        let mut asked = BTreeMap::new();
        // Validators whose refusal is final.
        let (mut done, mut refusals) = (BTreeSet::new(), BTreeMap::new());
        let mut send_at = Instant::now();
        loop {
            let now = Instant::now();
            if now >= send_at {
                for validator in (0..validators as u8).filter(|v| !collector.has(*v) && !done.contains(v)) {
                    let Ok(shard) = committee.shard_of(validator, &summary.owner) else { continue };
                    if let Some(number) = self.send(validator, shard, &request) {
                        asked.insert(number, validator);
                    }
                }
                send_at = now + AGAIN;
            }
            let wait = send_at.min(until).saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(wait) {
                Ok((validator, shard, generation, Came::Gone)) => self.forget(validator, shard, generation),
                Ok((validator, _, _, Came::Reply(Reply::Refusal { number, again, text }))) => {
                    // A refusal is not signed. It counts only if it comes from the validator that was asked.
                    if asked.get(&number) != Some(&validator) {
                        continue;
                    }
                    refusals.insert(validator, text);
                    if !again {
                        done.insert(validator);
                    }
                    let refused = done.iter().filter(|validator| !collector.has(**validator)).count();
                    if validators - refused < needed {
                        return Err(LaneClientError::Refused { validators, refusals });
                    }
                }
                Ok((from, _, _, Came::Reply(reply))) => {
                    let about = (kind, &digest);
                    if let Some(certificate) = collector.add(from, about, &committee, &mut self.roots, reply) {
                        return Ok(certificate);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if Instant::now() >= until {
                let answered = (0..validators as u8).filter(|validator| collector.has(*validator)).count();
                refusals.retain(|validator, _| !collector.has(*validator));
                return Err(LaneClientError::Unanswered { answered, needed, refusals });
            }
        }
    }

    /// Sends a request; returns its number, if it could be sent.
    fn send(&mut self, validator: u8, shard: u16, request: &[u8]) -> Option<u32> {
        self.numbers = self.numbers.wrapping_add(1);
        let mut frame = Vec::with_capacity(HEAD_BYTES + request.len());
        write_frame(&mut frame, self.numbers, request);
        if !self.links.contains_key(&(validator, shard)) {
            self.connect(validator, shard)?;
        }
        let link = self.links.get_mut(&(validator, shard))?;
        if link.sender.send(&frame).is_err() {
            let generation = link.generation;
            self.forget(validator, shard, generation);
            return None;
        }
        Some(self.numbers)
    }

    fn connect(&mut self, validator: u8, shard: u16) -> Option<()> {
        let (sender, reading) = self.directory.connect(validator, shard)?;
        self.generations += 1;
        let (generation, told) = (self.generations, self.told.clone());
        let read = move || {
            read_replies(reading, None, None, |reply| {
                told.send((validator, shard, generation, Came::Reply(reply))).is_ok()
            });
            // The client may no longer exist.
            drop(told.send((validator, shard, generation, Came::Gone)));
        };
        std::thread::Builder::new().name("lane-replies".into()).spawn(read).ok()?;
        self.links.insert((validator, shard), Connected { sender, generation });
        Some(())
    }

    fn forget(&mut self, validator: u8, shard: u16, generation: u64) {
        if self.links.get(&(validator, shard)).is_some_and(|link| link.generation == generation) {
            self.links.remove(&(validator, shard));
        }
    }
}

impl Drop for LaneClient {
    fn drop(&mut self) {
        // Readers hold the other half.
        self.links.values().for_each(|link| link.sender.close());
    }
}

/// Reads replies until the connection ends, a reply is malformed, no one wants more, or the deadline passes.
fn read_replies(
    mut from: LaneReceiver,
    asked: Option<&PositionOf>,
    until: Option<Instant>,
    mut each: impl FnMut(Reply) -> bool,
) {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        if let Some(until) = until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || from.set_timeout(Some(left)).is_err() {
                return;
            }
        }
        match from.receive(&mut chunk) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            _ => return,
        }
        let mut at = 0;
        loop {
            match read_head(&bytes[at..], REPLY_BYTES_MAX) {
                Ok(Some((body, number))) if bytes.len() - at >= HEAD_BYTES + body => {
                    let start = at + HEAD_BYTES;
                    at = start + body;
                    let Ok(reply) = read_reply(number, &bytes[start..at], asked) else { return };
                    if !each(reply) {
                        return;
                    }
                }
                Ok(_) => break,
                Err(_) => return,
            }
        }
        bytes.drain(..at);
    }
}

/// The highest position that the shard of `query` has signed, as far as n − f validators, including itself, know.
/// Asks every shard of each other validator until enough validators have answered, or `is_stopped`. A validator answers
/// if all shards do that it has in this committee.
pub(crate) fn highest_told(peers: &LaneDirectory, query: PositionQuery, is_stopped: impl Fn() -> bool) -> Option<u64> {
    let LaneDirectory { committee, addresses, .. } = peers;
    let faulty = (addresses.len() - 1) / 3;
    let needed = addresses.len() - faulty - 1;
    let mut highest = None;
    let mut told: BTreeSet<usize> = BTreeSet::new();
    while told.len() < needed && !is_stopped() {
        for validator in 0..addresses.len() {
            let shards = committee.keys_of(validator as u8).len();
            if validator == usize::from(query.validator) || told.contains(&validator) || shards == 0 {
                continue;
            }
            let positions: Option<Vec<_>> =
                (0..shards).map(|shard| position(peers, (validator as u8, shard as u16), query)).collect();
            if let Some(positions) = positions {
                told.insert(validator);
                highest = positions.into_iter().flatten().fold(highest, |most, position| most.max(Some(position)));
            }
        }
        if told.len() < needed {
            std::thread::sleep(PAUSE);
        }
    }
    highest
}

/// What one shard knows of the position; `None` if it does not answer, or answers wrongly.
fn position(peers: &LaneDirectory, (validator, shard): (u8, u16), query: PositionQuery) -> Option<Option<u64>> {
    let committee = &peers.committee;
    let (mut sender, receiver) = peers.connect(validator, shard)?;
    let mut frame = Vec::new();
    write_frame(&mut frame, 1, &query.encode());
    sender.send(&frame).ok()?;
    let mut reply = None;
    let asked = PositionOf { network: committee.network(), query };
    // One deadline for the whole reply: a peer that sends one byte at a time cannot delay a start.
    read_replies(receiver, Some(&asked), Some(Instant::now() + TOLD), |first| {
        reply = Some(first);
        false
    });
    let Some(Reply::Position { signed, .. }) = reply else { return None };
    let Some((header, signature)) = signed else { return Some(None) };
    // Only the shard itself can have signed this position.
    let key = committee.key(query.validator, query.shard).ok()?;
    key.verify(&header.bytes(), &signature).then_some(Some(header.position))
}
