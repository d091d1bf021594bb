//! What the thread of the root shares with the doors.

mod edge_sessions;
mod refusal;
mod sessions;

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use edge::HostHandle;
use primitives::venue::MarketId;
use primitives::{Address, Height, PublicKey, Sequence};
use sockets::{BudgetLimits, Gate};
use store::RealDisk;
use tokio::sync::{broadcast, oneshot, watch};
use venue::{
    ChainState, CheckedOrderList, FillReader, MarketImage, OrderRefusal, RequestScope, RequestStamps, SessionNumber,
    TradeCommand, TradeReport, VenueInput, VenuePause, VenueRoot, VenueStop,
};

use crate::chain::{ChainTerms, HeardBlock, RulesEnd, VenueChain};
use crate::clock::clock_ms;
use crate::events::{BookTop, StepEvents, TOP_LEVELS};
use crate::feed::FeedHub;
use crate::ouch::OuchHub;
use crate::tape::Tape;
pub(crate) use edge_sessions::{EdgeSessionsInput, EdgeSessionsSender};
pub use refusal::PitRefusal;
pub(crate) use sessions::{Attaching, refusal_of};

/// Inputs that wait for the root's thread; further ones are refused.
pub(crate) const INPUTS: usize = 16_384;
/// Blocks that wait for their certificates; the host reads older ones from the archive.
const BLOCKS: usize = 1_024;
/// Steps that a listener may be behind before it is cut.
const EVENTS: usize = 4_096;
/// Looks at the root that wait for its thread, and reads of the journal at once; of one client that wait at its turn.
const LOOKS: usize = 8;
const READS: usize = 1;
const WAITING_OF_ONE: usize = 1_024;
/// What may prove false: a full budget costs a core a twentieth of a second, and its refill a hundredth.
const BUDGET: BudgetLimits = BudgetLimits { burst: 512, per_second: 128, clients: 65_536 };

/// The immediate reports about what an input asked for.
pub(crate) type ReportsReply = oneshot::Sender<Vec<TradeReport>>;

/// An image of a market, with its best levels; `None` if the market is not open.
pub(crate) type Image = Option<Arc<(MarketImage, BookTop)>>;

/// Fills of the journal, for readers beside the root's thread.
#[derive(Clone)]
pub(crate) struct Fills {
    pub reader: Arc<FillReader<RealDisk>>,
    /// How many there are, and how many of them are settled or bust.
    pub counts: (u64, u64),
    /// The last record that is told.
    pub record: u64,
}

/// What stands in front of workers that traders and strangers load, in turns of the clients.
pub(crate) struct Gates {
    /// Signatures of orders and requests, of whoever sends them.
    pub checks: Arc<Gate>,
    /// What attached sessions say: a link whose signatures are false ends, and no other session pays for it.
    pub sessions: Arc<Gate>,
    /// Looks at the root, which its own thread serves between two steps.
    pub looks: Arc<Gate>,
    /// Reads of the journal.
    pub reads: Arc<Gate>,
}

impl Gates {
    fn new() -> Gates {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Gates {
            checks: Gate::new(cores, WAITING_OF_ONE, Some(BUDGET)),
            sessions: Gate::new(cores, WAITING_OF_ONE, None),
            looks: Gate::new(LOOKS, WAITING_OF_ONE, None),
            reads: Gate::new(READS, WAITING_OF_ONE, None),
        }
    }
}

/// What is asked of the root with its own thread.
pub(crate) type RootQuestion = Box<dyn FnOnce(&VenueRoot<RealDisk>) + Send>;

/// What the root's thread is told.
pub(crate) enum PitInput {
    /// A session says something. The session of requests without one is attached by itself.
    Trade { session: SessionNumber, key: PublicKey, is_own_session: bool, command: TradeCommand, reply: ReportsReply },
    /// A session places a list; a reply for each of its orders, or none where answers go to the session.
    List { session: SessionNumber, is_own_session: bool, list: Box<CheckedOrderList>, replies: Vec<ReportsReply> },
    /// A session has a link.
    Attach {
        session: SessionNumber,
        link: u64,
        key: PublicKey,
        ends_orders: bool,
        dead_man_ms: Option<u64>,
        reply: oneshot::Sender<()>,
    },
    /// A link broke.
    Detach { session: SessionNumber, link: u64 },
    /// A session lives.
    Heartbeat(SessionNumber),
    /// The operator says something.
    Operate { input: VenueInput, reply: oneshot::Sender<Option<OrderRefusal>> },
    /// Looks at the root.
    Ask(RootQuestion),
    /// Answered once the root has taken what came before.
    Reached(oneshot::Sender<()>),
    /// There is a block, or one was certified.
    Wake,
    /// Ends the thread.
    Stop,
}

/// How a pit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PitStanding {
    /// The root runs.
    Runs,
    /// There is no root yet, and why.
    Waits(String),
    /// The root failed, and is opened again by itself.
    Failed(String),
    /// The root has stopped for ever.
    Stopped(VenueStop),
}

/// A settle in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettleInFlight {
    /// Its number.
    pub sequence: Sequence,
    /// Its last height.
    pub until: Height,
}

/// What everybody may see of a pit.
#[derive(Clone, Debug)]
pub struct PitView {
    /// How it stands.
    pub standing: PitStanding,
    /// What requests are signed for; `None` before the first root.
    pub scope: Option<RequestScope>,
    /// Why matching pauses.
    pub paused: Option<VenuePause>,
    /// The last certified height that the root knows.
    pub height: Option<Height>,
    /// Fills of the incarnation.
    pub fills: u64,
    /// Those that are settled or bust.
    pub settled: u64,
    /// Those that the ledger made bust since the node started.
    pub busts: u64,
    /// The settle in flight.
    pub in_flight: Option<SettleInFlight>,
    /// The number of the last record of the journal.
    pub record: u64,
    /// Whether lists of orders are taken.
    pub takes_lists: bool,
    /// Open markets.
    pub markets: Vec<MarketId>,
    /// Sessions with a link.
    pub links: usize,
}

impl PitView {
    fn new() -> PitView {
        let standing = PitStanding::Waits("the node is starting".into());
        PitView {
            standing,
            scope: None,
            paused: None,
            height: None,
            fills: 0,
            settled: 0,
            busts: 0,
            in_flight: None,
            record: 0,
            takes_lists: false,
            markets: Vec::new(),
            links: 0,
        }
    }
}

/// The pipelines, and what they told.
#[derive(Default)]
pub(crate) struct Heard {
    pub chain: Option<Arc<dyn VenueChain>>,
    pub waiting: VecDeque<HeardBlock>,
    /// The newest state.
    pub newest: Option<ChainState>,
    /// The terms of the chain, which never change.
    pub terms: Option<ChainTerms>,
}

/// Shared by the root's thread and the doors.
pub(crate) struct PitShared {
    pub venue: u32,
    inputs: SyncSender<PitInput>,
    heard: Mutex<Heard>,
    pub view: watch::Sender<PitView>,
    pub events: broadcast::Sender<Arc<StepEvents>>,
    stamps: Mutex<RequestStamps>,
    pub gates: Gates,
    /// Fills to read; `None` while no root runs.
    fills: Mutex<Option<Fills>>,
    /// Who waits for the next image of a market.
    images: Mutex<HashMap<MarketId, Vec<oneshot::Sender<Image>>>>,
    pub ouch: OuchHub,
    pub feed: Arc<FeedHub>,
    /// What executed of late.
    pub tape: Tape,
    /// The root of the venue's edge, if there is one.
    pub edge: OnceLock<HostHandle>,
    /// The sessions behind its edge.
    edge_sessions: OnceLock<EdgeSessionsSender>,
    links: std::sync::atomic::AtomicU64,
}

impl PitShared {
    pub fn new(venue: u32, inputs: SyncSender<PitInput>) -> PitShared {
        PitShared {
            venue,
            inputs,
            heard: Mutex::default(),
            view: watch::Sender::new(PitView::new()),
            events: broadcast::Sender::new(EVENTS),
            stamps: Mutex::default(),
            gates: Gates::new(),
            fills: Mutex::default(),
            images: Mutex::default(),
            ouch: OuchHub::default(),
            feed: Arc::default(),
            tape: Tape::default(),
            edge: OnceLock::new(),
            edge_sessions: OnceLock::new(),
            links: std::sync::atomic::AtomicU64::new(1),
        }
    }

    pub fn heard<T>(&self, with: impl FnOnce(&mut Heard) -> T) -> T {
        with(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A block was applied, or a pipeline began with a state.
    pub fn hear(&self, block: HeardBlock) {
        self.heard(|heard| {
            heard.newest = Some(block.state.clone());
            heard.waiting.push_back(block);
            if heard.waiting.len() > BLOCKS {
                heard.waiting.pop_front();
            }
        });
        self.wake();
    }

    pub fn wake(&self) {
        // If the queue is full, the thread is awake.
        drop(self.inputs.try_send(PitInput::Wake));
    }

    /// Gives something to the root's thread.
    pub fn send(&self, input: PitInput) -> Result<(), PitRefusal> {
        self.inputs.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => PitRefusal::Busy,
            TrySendError::Disconnected(_) => PitRefusal::NotRunning("the node is stopping".into()),
        })
    }

    /// Whoever tells the venue's edge.
    pub fn open_edge_sessions(&self, sender: EdgeSessionsSender) {
        // There is one edge.
        drop(self.edge_sessions.set(sender));
    }

    /// The root has told something; the thread of the sessions may have ended.
    pub fn tell_edge_sessions(&self, input: EdgeSessionsInput) {
        if let Some(sessions) = self.edge_sessions.get() {
            drop(sessions.send(input));
        }
    }

    /// Ends the root's thread after what waits.
    pub fn stop(&self) {
        self.tell_edge_sessions(EdgeSessionsInput::Stop);
        // The receiver is gone if the thread has ended.
        drop(self.inputs.send(PitInput::Stop));
    }

    /// Fills can be read up to here; `None`: no root runs.
    pub fn show_fills(&self, fills: Option<Fills>) {
        *self.fills.lock().unwrap_or_else(PoisonError::into_inner) = fills;
    }

    /// Fills to read.
    pub fn fills(&self) -> Option<Fills> {
        self.fills.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An image of a market, made after this call. All who wait for one get the same: however many ask, the root's
    /// thread makes one of each market at a time.
    pub async fn image(self: &Arc<Self>, market: MarketId) -> Result<Image, PitRefusal> {
        self.scope()?;
        let (sender, image) = oneshot::channel();
        let is_first = {
            let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = images.entry(market).or_default();
            waiting.push(sender);
            waiting.len() == 1
        };
        if is_first {
            let asked = ImageAsked { shared: Some(self.clone()), market };
            self.send(PitInput::Ask(Box::new(move |root| asked.answer(root))))?;
        }
        image.await.map_err(|_| PitRefusal::BeginsAgain)
    }

    /// What requests are signed for, if the root runs.
    pub fn scope(&self) -> Result<RequestScope, PitRefusal> {
        let view = self.view.borrow();
        match (&view.standing, view.scope) {
            (PitStanding::Runs, Some(scope)) => Ok(scope),
            (PitStanding::Waits(why) | PitStanding::Failed(why), _) => Err(PitRefusal::NotRunning(why.clone())),
            (PitStanding::Stopped(why), _) => Err(PitRefusal::NotRunning(why.to_string())),
            (PitStanding::Runs, None) => Err(PitRefusal::NotRunning("the node is starting".into())),
        }
    }

    /// Whether the newest state has a trading key: inputs of others must not reach the journal.
    pub fn check_key(&self, key: &PublicKey) -> Result<(), PitRefusal> {
        let newest = self.heard(|heard| heard.newest.clone());
        let is_known = newest.is_some_and(|state| state.venues.key(self.venue, key).is_some());
        if is_known { Ok(()) } else { Err(PitRefusal::UnknownKey) }
    }

    /// The account of which a key may have a drop copy: one that it has authorised, may lose nothing, and so cannot
    /// trade.
    pub fn watched_by(&self, key: &PublicKey) -> Option<Address> {
        let newest = self.heard(|heard| heard.newest.clone())?;
        let of = newest.venues.key(self.venue, key)?;
        (of.mandate.caps.is_empty() && of.revoked.is_none()).then_some(of.owner)
    }

    /// Whether new orders may be taken.
    pub fn check_orders(&self) -> Result<(), PitRefusal> {
        let (chain, newest) = self.heard(|heard| {
            let delay = |state: &ChainState| (state.height(), state.venues.terms().delay.heights);
            (heard.chain.clone(), heard.newest.as_ref().map(delay))
        });
        let Some(chain) = chain else { return Ok(()) };
        let is_near = |end: &RulesEnd| newest.is_some_and(|(height, delay)| end.is_near(height, delay));
        match chain.ends().filter(is_near) {
            _ if chain.is_disk_full() => Err(PitRefusal::DiskFull),
            Some(RulesEnd { rules, height }) => Err(PitRefusal::NeedsRules { rules, height }),
            None => Ok(()),
        }
    }

    /// Uses the stamp of a request whose signature was checked.
    pub fn claim_stamp(&self, key: &PublicKey, stamp_ms: u64) -> Result<(), PitRefusal> {
        let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(stamps.claim(clock_ms(), key, stamp_ms)?)
    }

    /// Names a session of a key whose request to attach it was checked.
    pub fn claim_session(&self, key: &PublicKey, session: u32) -> Result<(), PitRefusal> {
        let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(stamps.claim_session(clock_ms(), key, session)?)
    }

    /// Forgets old stamps.
    pub fn forget_stamps(&self) {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner).forget(clock_ms());
    }

    /// A number for a new link.
    pub fn new_link(&self) -> u64 {
        self.links.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

/// An image that is asked of the root. Where the root does not run, those who wait learn so.
struct ImageAsked {
    /// `None` once they are answered: who asks later asks again.
    shared: Option<Arc<PitShared>>,
    market: MarketId,
}

impl ImageAsked {
    /// Who has asked until now.
    fn waiting(&mut self) -> Vec<oneshot::Sender<Image>> {
        let Some(shared) = self.shared.take() else { return Vec::new() };
        let mut images = shared.images.lock().unwrap_or_else(PoisonError::into_inner);
        images.remove(&self.market).unwrap_or_default()
    }

    fn answer(mut self, root: &VenueRoot<RealDisk>) {
        let waiting = self.waiting();
        let image = root.image(self.market).zip(root.book(self.market));
        let image = image.map(|(image, book)| Arc::new((image, BookTop::of(book, TOP_LEVELS))));
        for sender in waiting {
            // Who asked may be gone.
            drop(sender.send(image.clone()));
        }
    }
}

impl Drop for ImageAsked {
    fn drop(&mut self) {
        drop(self.waiting());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::sync::mpsc::sync_channel;

    use primitives::venue::{Delay, VenueOperator};
    use primitives::{Digest, SecretKey};
    use venue::{SettlingTerms, VenueKeys, VenueLimits, VenueOptions, VenueSettings};

    use super::*;

    /// The root of a venue without markets.
    pub(crate) fn root(folder: &Path) -> VenueRoot<RealDisk> {
        let key = |seed| SecretKey::from_seed([seed; 32]);
        let (operator, report) = (key(1), key(2));
        let account = operator.public().address();
        let terms = SettlingTerms {
            chain: 1,
            fee: 1,
            delay: Delay { heights: 64, ms: 60_000 },
            bond_min: 10_000,
            settle_bytes: 1 << 13,
            entries_max: 200,
            life_max: 10_000,
        };
        let stated = VenueOperator { account, report_key: report.public() };
        let (network, limits) = (Digest([1; 32]), VenueLimits::default());
        let settings = VenueSettings { network, venue: 0, incarnation: 0, operator: stated, terms, limits };
        let disk = RealDisk::new(folder.join("root")).expect("a folder");
        VenueRoot::create(disk, settings, VenueKeys { account, operator, report }, VenueOptions::default())
            .expect("sound")
    }

    /// Anybody may ask for images of books, and each walks a whole book.
    #[tokio::test]
    async fn however_many_ask_the_matching_thread_makes_one_image_of_a_market_at_a_time() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let root = root(folder.path());
        let (queue, inputs) = sync_channel(INPUTS);
        let shared = Arc::new(PitShared::new(0, queue));
        let scope = RequestScope { network: Digest([1; 32]), venue: 0, incarnation: 0 };
        shared.view.send_modify(|view| (view.standing, view.scope) = (PitStanding::Runs, Some(scope)));
        for round in 0..2 {
            let ask = |_| {
                let shared = shared.clone();
                tokio::spawn(async move { shared.image(7).await })
            };
            let waits: Vec<_> = (0..50).map(ask).collect();
            while shared.images.lock().expect("no panic").get(&7).map_or(0, Vec::len) < 50 {
                tokio::task::yield_now().await;
            }
            let Ok(PitInput::Ask(question)) = inputs.try_recv() else { panic!("round {round}: it is asked") };
            assert!(inputs.try_recv().is_err(), "once");
            question(&root);
            for wait in waits {
                assert!(wait.await.expect("it ends").expect("answered").is_none(), "the market is not open");
            }
        }
        // A root that fails drops what was asked.
        let asked = tokio::spawn({
            let shared = shared.clone();
            async move { shared.image(7).await }
        });
        while shared.images.lock().expect("no panic").get(&7).is_none() {
            tokio::task::yield_now().await;
        }
        drop(inputs.try_recv());
        assert!(matches!(asked.await.expect("it ends"), Err(PitRefusal::BeginsAgain)));
    }
}
