//! The thread that runs a root: it gathers what waits, steps, and only then tells.
//!
//! ```text
//!  loop { wait · blocks that are certified, commands that wait ──► step ──► (synced) ──► answers, events, settles }
//! ```
//!
//! While a long step of orders is written by another thread this one matches the next ([`venue::TwoStages`]). Whatever
//! else it does waits until all that was matched is durable and told: blocks, commands of the operator, looks at the
//! root, snapshots, and the end. What telling a step needs of the state is taken when the step is matched ([`Begun`]).

mod keeping;
mod opening;
mod telling;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use primitives::PublicKey;
use primitives::venue::{MarketId, OrderNumber};
use store::RealDisk;
use tokio::sync::oneshot;
use venue::{
    CertifiedFacts, ChainState, FillReader, MatchingStage, OrderRefusal, SessionNumber, ToldStep, TradeCommand,
    TwoStages, VenueInput, VenueRootError, facts_since, settles_of,
};

use crate::chain::{HeardBlock, VenueChain};
use crate::clock::clock_ms;
use crate::settings::PitSettings;
use crate::shared::{PitInput, PitShared, ReportsReply, RootQuestion};
use keeping::Shown;
use opening::NoRoot;
use telling::Begun;

/// The most inputs of a step: one record of the journal, one sync.
const INPUTS_OF_STEP: usize = 4_096;
/// How long looks at the root are begun between two steps: anybody may ask for an image of a book, and orders do not
/// wait for it.
const LOOKS_OF_TURN: Duration = Duration::from_micros(200);
/// How much longer than a look the thread works before the next one.
const WORK_OF_LOOK: u32 = 19;
/// The longest that the thread sleeps.
const IDLE: Duration = Duration::from_millis(500);
/// How long it sleeps while blocks wait for their certificates.
const UNCERTIFIED: Duration = Duration::from_millis(10);
/// How long it waits until it opens a root that failed: at first, and at most.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MOST: Duration = Duration::from_secs(60);

/// Whom the reports of a step answer.
struct ReportsQuestion {
    key: PublicKey,
    /// `None` if all orders of the key are meant.
    number: Option<OrderNumber>,
    reply: ReportsReply,
}

/// Whom a refusal of a step answers.
struct Operated {
    market: Option<MarketId>,
    reply: oneshot::Sender<Option<OrderRefusal>>,
}

/// What one turn gathers for a step.
#[derive(Default)]
struct Gathered {
    /// Inputs of all kinds; a list counts as its orders.
    size: usize,
    inputs: Vec<VenueInput>,
    asked: Vec<ReportsQuestion>,
    operated: Vec<Operated>,
    attached: Vec<(SessionNumber, u64, oneshot::Sender<()>)>,
    reached: Vec<oneshot::Sender<()>>,
    stops: bool,
}

pub(crate) struct Host {
    settings: PitSettings,
    shared: Arc<PitShared>,
    root: Option<TwoStages<RealDisk, Begun>>,
    /// Reads the root's fills.
    reader: Option<Arc<FillReader<RealDisk>>>,
    /// The last state that the root was told.
    told: Option<ChainState>,
    /// How many effects were passed on; unknown before the first root of this process.
    passed: Option<u64>,
    /// The links of sessions.
    links: HashMap<SessionNumber, u64>,
    /// Sessions of requests that are attached in the root.
    own_sessions: BTreeSet<SessionNumber>,
    /// When the next look may be made.
    look_at: Instant,
    /// Looks that wait, one of each request that is served.
    questions: VecDeque<RootQuestion>,
    /// Markets that cannot be opened.
    unopened: BTreeSet<MarketId>,
    busts: u64,
    try_at: Instant,
    /// How long to wait before the next try: twice as long each time, since each opening is a record.
    patience: Duration,
    snapshot: Option<JoinHandle<Result<(), VenueRootError>>>,
    /// Records that the two newest snapshots name.
    snapshots: [u64; 2],
}

impl Host {
    pub fn new(settings: PitSettings, shared: Arc<PitShared>) -> Host {
        Host {
            settings,
            shared,
            root: None,
            reader: None,
            look_at: Instant::now(),
            told: None,
            passed: None,
            links: HashMap::new(),
            own_sessions: BTreeSet::new(),
            questions: VecDeque::new(),
            unopened: BTreeSet::new(),
            busts: 0,
            try_at: Instant::now(),
            patience: AGAIN,
            snapshot: None,
            snapshots: [0; 2],
        }
    }

    /// The thread.
    pub fn run(mut self, inputs: &Receiver<PitInput>) {
        loop {
            let first = match inputs.recv_timeout(self.patience()) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut gathered = Gathered::default();
            let mut next = first;
            while let Some(input) = next {
                self.gather(input, &mut gathered);
                next = if gathered.size < INPUTS_OF_STEP { inputs.try_recv().ok() } else { None };
            }
            let stops = gathered.stops;
            self.turn(gathered);
            if stops {
                return self.end();
            }
        }
    }

    /// How long nothing need be done.
    fn patience(&self) -> Duration {
        let look = (!self.questions.is_empty()).then(|| self.look_at.saturating_duration_since(Instant::now()));
        let due = self.ahead().and_then(MatchingStage::wants_step_at_ms);
        let due = due.map_or(IDLE, |at| Duration::from_millis(at.saturating_sub(clock_ms()).max(1)));
        let waits = self.shared.heard(|heard| !heard.waiting.is_empty());
        due.min(if waits { UNCERTIFIED } else { IDLE }).min(look.unwrap_or(IDLE))
    }

    /// Sorts an input into what the step takes and whom it answers.
    fn gather(&mut self, input: PitInput, gathered: &mut Gathered) {
        gathered.size += 1;
        match input {
            PitInput::Trade { session, key, is_own_session, command, reply } => {
                self.attach_own(session, key, is_own_session, gathered);
                let number = number_of(&command);
                gathered.inputs.push(VenueInput::Trade(session, command));
                gathered.asked.push(ReportsQuestion { key, number, reply });
            }
            PitInput::List { session, is_own_session, list, replies } => {
                // A list takes as much of a step as its orders do.
                gathered.size += list.list().entries.len();
                let key = *list.key();
                self.attach_own(session, key, is_own_session, gathered);
                let numbers = list.list().entries.iter().map(|entry| Some(entry.order.number));
                let asked = numbers.zip(replies).map(|(number, reply)| ReportsQuestion { key, number, reply });
                gathered.asked.extend(asked);
                gathered.inputs.push(VenueInput::List(session, *list));
            }
            PitInput::Attach { session, link, key, ends_orders, dead_man_ms, reply } => {
                let keys = vec![key];
                gathered.inputs.push(VenueInput::Attach { session, keys, ends_orders, dead_man_ms });
                gathered.attached.push((session, link, reply));
                self.links.insert(session, link);
            }
            PitInput::Detach { session, link } => {
                // A session that has another link by now goes on.
                if self.links.get(&session) == Some(&link) {
                    self.links.remove(&session);
                    gathered.inputs.push(VenueInput::Detach(session));
                }
            }
            PitInput::Heartbeat(session) => gathered.inputs.push(VenueInput::Heartbeat(session)),
            PitInput::Operate { input, reply } => {
                let market = match &input {
                    VenueInput::OpenMarket(market, _) | VenueInput::Steer(market, _) => Some(*market),
                    _ => None,
                };
                gathered.inputs.push(input);
                gathered.operated.push(Operated { market, reply });
            }
            PitInput::Ask(question) => self.questions.push_back(question),
            PitInput::Reached(reply) => gathered.reached.push(reply),
            PitInput::Wake => {}
            PitInput::Stop => gathered.stops = true,
        }
    }

    /// The session of requests without one begins with its first request.
    fn attach_own(&mut self, session: SessionNumber, key: PublicKey, is_own_session: bool, gathered: &mut Gathered) {
        if is_own_session && self.root.is_some() && self.own_sessions.insert(session) {
            let (keys, ends_orders, dead_man_ms) = (vec![key], false, None);
            gathered.inputs.push(VenueInput::Attach { session, keys, ends_orders, dead_man_ms });
        }
    }

    fn turn(&mut self, gathered: Gathered) {
        if self.root.is_none() && Instant::now() >= self.try_at {
            self.open();
        }
        if self.root.is_none() {
            // Whoever waits for an answer learns that there is none.
            self.questions.clear();
            return;
        }
        if let Err(why) = self.turn_root(gathered) {
            self.fail(&why);
        }
    }

    fn turn_root(&mut self, mut gathered: Gathered) -> Result<(), NoRoot> {
        let written = self.stages().poll()?;
        self.tell_all(written)?;
        let mut inputs = self.blocks().map_err(NoRoot::Waits)?;
        let has_blocks = !inputs.is_empty();
        if has_blocks {
            inputs.extend(self.unopened_markets());
        }
        inputs.append(&mut gathered.inputs);
        let asks_more = gathered.stops || !gathered.operated.is_empty() || !gathered.reached.is_empty();
        let overlaps = !has_blocks && !asks_more && !self.has_look() && !self.has_keeping();
        self.step(&inputs, gathered, overlaps)?;
        if has_blocks {
            self.patience = AGAIN;
        }
        if self.stages().root().is_some() {
            self.look();
            self.keep()?;
            self.begin_next();
        }
        Ok(())
    }

    /// Both stages of the root.
    fn stages(&mut self) -> &mut TwoStages<RealDisk, Begun> {
        self.root.as_mut().expect("it runs")
    }

    /// The state that the next inputs are matched on: nobody is told of it.
    fn ahead(&self) -> Option<&MatchingStage> {
        self.root.as_ref()?.ahead()
    }

    /// Whether a look at the root is due.
    fn has_look(&self) -> bool {
        !self.questions.is_empty() && Instant::now() >= self.look_at
    }

    /// Answers waiting questions for a moment. The next ones wait until the thread has worked [`WORK_OF_LOOK`] times as
    /// long: matching has nearly all of the thread's time, however many ask.
    fn look(&mut self) {
        let Some(root) = self.root.as_ref().and_then(TwoStages::root) else { return };
        let begun = Instant::now();
        if self.questions.is_empty() || begun < self.look_at {
            return;
        }
        while begun.elapsed() < LOOKS_OF_TURN
            && let Some(question) = self.questions.pop_front()
        {
            question(root);
        }
        self.look_at = Instant::now() + begun.elapsed() * WORK_OF_LOOK;
    }

    /// Gives the root all inputs that wait, and passes on the effects. Those of a long step follow when it is written,
    /// if it may overlap with the next.
    fn step(&mut self, inputs: &[VenueInput], gathered: Gathered, overlaps: bool) -> Result<(), NoRoot> {
        // What came goes before what it caused, also where no step follows.
        let told = self.stages().effects_told();
        self.shared.ouch.write(told)?;
        if !overlaps {
            let written = self.stages().settle()?;
            self.tell_all(written)?;
        }
        let now = clock_ms();
        let due = self.ahead().and_then(MatchingStage::wants_step_at_ms);
        if inputs.is_empty() && due.is_none_or(|at| at > now) {
            if self.stages().root().is_some() {
                self.show();
            }
            return self.tell_nothing(gathered);
        }
        let (listed, links) = (self.listed(), self.links.len());
        let begun = self.stages().begin(now, inputs, |state, step| Begun {
            gathered,
            now_ms: now,
            tops: Begun::tops(state, step.markets()),
            shown: Shown::of(state, &listed, links),
        })?;
        self.tell_all(begun)?;
        if !overlaps {
            let written = self.stages().settle()?;
            self.tell_all(written)?;
        }
        Ok(())
    }

    /// Tells a step that is durable, if there is one.
    fn tell_all(&mut self, step: Option<ToldStep<Begun>>) -> Result<(), NoRoot> {
        step.map_or(Ok(()), |step| self.tell(step))
    }

    /// What certified blocks say that the root does not know, in order, none left out. Where the records of a block
    /// are not known any more, those of the next one that is are told with it: nothing is matched between them, since
    /// one step takes all.
    fn blocks(&mut self) -> Result<Vec<VenueInput>, String> {
        let (chain, ready) = self.shared.heard(|heard| {
            let certified = heard.chain.as_ref().map_or(0, |chain| chain.heights().certified);
            let count = heard.waiting.iter().take_while(|block| block.state.height() <= certified).count();
            (heard.chain.clone(), heard.waiting.drain(..count).collect::<Vec<_>>())
        });
        let Some(chain) = chain else { return Ok(Vec::new()) };
        let mut inputs = Vec::new();
        let mut next = self.ahead().and_then(MatchingStage::height).map(|height| height + 1);
        let newest = chain.heights().newest;
        for HeardBlock { state, settles } in ready {
            let height = state.height();
            if next.is_some_and(|next| height < next) {
                // The root knows it: from its journal, if this process has told it nothing.
                if next == Some(height + 1) && self.told.is_none() {
                    self.told = Some(state);
                }
                continue;
            }
            for missing in next.unwrap_or(height)..height {
                inputs.push(VenueInput::Certified(self.archived(&*chain, missing, newest)?));
            }
            let settles = match (settles, next) {
                (Some(settles), _) => settles_of(&settles, self.shared.venue),
                // A root that begins needs no settles of before.
                (None, None) => Vec::new(),
                (None, Some(_)) => self.archived(&*chain, height, newest)?.facts,
            };
            let mut facts = settles;
            facts.extend(facts_since(&state, self.told.as_ref(), self.shared.venue));
            inputs.push(VenueInput::Certified(CertifiedFacts { height, time_ms: state.time_ms(), newest, facts }));
            self.told = Some(state);
            next = Some(height + 1);
        }
        Ok(inputs)
    }

    /// What the archive says of a block: its time, and the fates of fills.
    fn archived(&self, chain: &dyn VenueChain, height: u64, newest: u64) -> Result<CertifiedFacts, String> {
        let found = chain.archived(height).map_err(|error| format!("block {height}: {error}"))?;
        let block = found.ok_or_else(|| {
            format!(
                "block {height} is not on this node any more, and the root needs it: it was away for longer than \
                 [store] keep_blocks, or the node fetched a state. Run it at a node that has the block, or fence the \
                 incarnation"
            )
        })?;
        let facts = settles_of(&block.settles, self.shared.venue);
        Ok(CertifiedFacts { height, time_ms: block.time_ms, newest, facts })
    }

    /// Opens listed markets that are not open.
    fn unopened_markets(&mut self) -> Vec<VenueInput> {
        let (Some(root), Some(state)) = (self.root.as_ref().and_then(TwoStages::ahead), &self.told) else {
            return Vec::new();
        };
        let listed = state.venues.markets_from(self.shared.venue, 0).map(|(market, terms)| (market, terms.quote));
        let is_closed = |market: &MarketId| root.book(*market).is_none() && !self.unopened.contains(market);
        let closed: Vec<_> = listed.filter(|(market, _)| is_closed(market)).collect();
        let mut opened = Vec::new();
        for (market, quote) in closed {
            match self.settings.config.market(quote, root.settings()) {
                Ok(settings) => opened.push(VenueInput::OpenMarket(market, settings)),
                Err(error) => {
                    tracing::error!(market, error, "a market stays closed");
                    self.unopened.insert(market);
                }
            }
        }
        opened
    }
}

/// The number that a command is about; `None` if it is about all.
fn number_of(command: &TradeCommand) -> Option<OrderNumber> {
    match command {
        TradeCommand::New(order) | TradeCommand::Replace(_, order) => Some(order.order().number),
        TradeCommand::Cancel { number, .. } | TradeCommand::Status(_, number) => Some(*number),
        TradeCommand::CancelAll { .. } => None,
    }
}
