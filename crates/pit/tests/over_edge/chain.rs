//! A chain in this process: the real ledger, blocks when a test wants them, and the venue above it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ledger::{Genesis, Ledger, Listing, SettledFills, Signatures, VenueTerms};
use pit::{
    ArchivedBlock, ChainHeights, ChainState, ChainTerms, EdgeSettings, Pit, PitSettings, PitStanding, RulesEnd,
    VenueChain, VenueConfig, prepare_incarnation,
};
use primitives::venue::{
    Delay, KeyScope, Mandate, MarketMandate, MarketTerms, VenueOperation, VenueOperator, possession_bytes,
};
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Height, Operation, SecretKey, SubBlock, Superblock, Transaction,
};
use tempfile::TempDir;
use venue::VenueKeys;

pub const SECRET: [u8; 32] = [23; 32];
const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const OWNER: u8 = 1;
const OPERATOR: u8 = 2;
pub const ANN: u8 = 3;
pub const BEN: u8 = 4;
pub const CLEO: u8 = 5;
const TRADERS: [u8; 3] = [ANN, BEN, CLEO];
const VENUE: u32 = 0;
/// Between blocks that nobody asked for.
const BEAT: std::time::Duration = std::time::Duration::from_millis(200);

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

pub fn trading(person: u8) -> SecretKey {
    SecretKey::from_seed([100 + person; 32])
}

fn reporting() -> SecretKey {
    SecretKey::from_seed([200; 32])
}

fn genesis() -> Genesis {
    let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, address(9))).to_vec();
    let balances = (1..=8).flat_map(|person| [USD, EUR].map(|asset| (address(person), asset, 1_000_000_000))).collect();
    let terms = VenueTerms {
        delay: Delay { heights: 64, ms: 60_000 },
        bond_min: 10_000,
        bond_delay: Delay { heights: 1_000, ms: 600_000 },
        settle_bytes: 1 << 13,
        entries_max: 200,
        penalty_min: 1,
        venues_max: 2,
        per_block: 2_000,
        life_max: 10_000,
    };
    Genesis {
        chain: 1,
        fee: 1,
        mu: Fraction::power_of_two(10),
        assets,
        balances,
        venues: Some(terms),
        ..Genesis::default()
    }
}

struct Blocks {
    ledger: Ledger,
    archive: Vec<(u64, Vec<SettledFills>)>,
    pool: Vec<Transaction>,
    sequences: [u64; 16],
}

/// What the venue's thread asks of one pipeline, as long as that is there.
struct Line(Arc<Mutex<Blocks>>, Arc<AtomicBool>);

impl Line {
    fn is_there(&self) -> bool {
        self.1.load(Ordering::SeqCst)
    }
}

impl VenueChain for Line {
    fn heights(&self) -> ChainHeights {
        if !self.is_there() {
            return ChainHeights { certified: 0, newest: 0 };
        }
        let height = self.0.lock().expect("no panic").ledger.height();
        ChainHeights { certified: height, newest: height }
    }

    fn archived(&self, height: Height) -> Result<Option<ArchivedBlock>, String> {
        if !self.is_there() {
            return Err("the node is stopping".into());
        }
        let blocks = self.0.lock().expect("no panic");
        let of = (height as usize).checked_sub(1).and_then(|at| blocks.archive.get(at));
        Ok(of.map(|(time_ms, settles)| ArchivedBlock { time_ms: *time_ms, settles: settles.clone() }))
    }

    fn submit(&self, settle: &Transaction) {
        if self.is_there() {
            self.0.lock().expect("no panic").pool.push(settle.clone());
        }
    }

    fn is_disk_full(&self) -> bool {
        false
    }

    fn ends(&self) -> Option<RulesEnd> {
        None
    }
}

pub struct Chain {
    pub pit: Pit,
    pub network: Digest,
    blocks: Arc<Mutex<Blocks>>,
    /// Whether the present pipeline is there.
    pipeline: Mutex<Arc<AtomicBool>>,
    _folder: TempDir,
}

impl Chain {
    /// A chain, and a venue with an edge that waits for it.
    pub async fn new(rules: fairnet::EdgeRules) -> Arc<Chain> {
        let ledger = Ledger::new(&genesis()).expect("sound");
        let folder = TempDir::new().expect("a folder");
        prepare_incarnation(folder.path(), VENUE, 0).expect("prepared");
        let any = "127.0.0.1:0".parse().expect("an address");
        let config = VenueConfig {
            run: true,
            listen: any,
            ouch_listen: any,
            feed_listen: any,
            snapshot_listen: any,
            edge_listen: Some(any),
            quiet_ms: 30_000,
            taker_ppm: 0,
            covers_entries: false,
            ..VenueConfig::default()
        };
        let keys = || VenueKeys { account: address(OPERATOR), operator: key(OPERATOR), report: reporting() };
        let edge =
            EdgeSettings { listen: [any; 2], secret: SECRET, rules, clock_error: Some(0), spin: 0, is_encrypted: true };
        let settings = PitSettings { config, directory: folder.path().into(), keys: Box::new(keys), edge: Some(edge) };
        let pit = Pit::start(settings, &doors::Http::default()).await.expect("free ports");
        let network = ledger.network();
        let blocks = Blocks { ledger, archive: Vec::new(), pool: Vec::new(), sequences: [0; 16] };
        Arc::new(Chain {
            pit,
            network,
            blocks: Arc::new(Mutex::new(blocks)),
            pipeline: Mutex::default(),
            _folder: folder,
        })
    }

    /// Opens the venue and its market, and gives traders deposits and keys; waits until it trades.
    pub fn open(self: &Arc<Chain>) {
        let operator = VenueOperator { account: address(OPERATOR), report_key: reporting().public() };
        let open = VenueOperation::Open { venue: VENUE, operator, fee_cap_ppm: 10_000, bond: 100_000 };
        self.block(vec![(OWNER, open)]);
        self.begin_again();
        let terms = MarketTerms {
            base: EUR,
            quote: USD,
            lot_units: 10,
            tick_units: 2,
            lots_max: 1_000,
            fee_cap_ppm: 10_000,
            penalty: 5,
        };
        self.block(vec![(OWNER, VenueOperation::List { venue: VENUE, market: 0, terms })]);
        let deposit = |asset| VenueOperation::Deposit { venue: VENUE, asset, units: 100_000 };
        self.block(TRADERS.iter().flat_map(|person| [(*person, deposit(USD)), (*person, deposit(EUR))]).collect());
        self.block(TRADERS.iter().map(|person| (*person, self.authorize(*person))).collect());
        let height = self.height();
        self.until(|view| {
            let is_up = view.standing == PitStanding::Runs && view.paused.is_none() && view.markets == [0];
            is_up && view.height >= Some(height)
        });
        self.beat();
    }

    /// A pipeline is connected, with the present state.
    pub fn begin_again(&self) {
        // No block comes between.
        let mut pipeline = self.pipeline.lock().expect("no panic");
        let (state, terms) = {
            let blocks = self.blocks.lock().expect("no panic");
            (state_of(&blocks.ledger), ChainTerms::of(&blocks.ledger).expect("it has venues"))
        };
        *pipeline = Arc::new(AtomicBool::new(true));
        self.pit.connect(Arc::new(Line(self.blocks.clone(), pipeline.clone())), terms, state);
    }

    /// The pipeline ends, and its pool with it. Blocks go on, and the venue hears of none.
    pub fn end_pipeline(&self) {
        self.pipeline.lock().expect("no panic").store(false, Ordering::SeqCst);
        self.blocks.lock().expect("no panic").pool.clear();
    }

    /// So many blocks.
    pub fn unheard(&self, blocks: u32) {
        (0..blocks).for_each(|_| self.block(Vec::new()));
    }

    fn authorize(&self, person: u8) -> VenueOperation {
        let public = trading(person).public();
        let possession = trading(person).sign(&possession_bytes(&self.network, VENUE, &address(person), &public));
        let markets = vec![MarketMandate { market: 0, tick_min: 1, tick_max: 10_000 }];
        let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(USD, 1_000_000), (EUR, 1_000_000)] };
        VenueOperation::Authorize { venue: VENUE, key: public, mandate, possession }
    }

    /// A block now and then, as on every chain: without any, matching pauses.
    fn beat(self: &Arc<Chain>) {
        let chain = Arc::downgrade(self);
        std::thread::spawn(move || {
            while let Some(chain) = chain.upgrade() {
                chain.block(Vec::new());
                drop(chain);
                std::thread::sleep(BEAT);
            }
        });
    }

    /// Waits until the venue stands so.
    pub fn until(&self, is: impl Fn(&pit::PitView) -> bool) {
        while !is(&self.pit.view()) {
            std::thread::yield_now();
        }
    }

    /// Blocks until so many fills are settled, none of them bust.
    pub fn settle(&self, fills: u64) {
        while self.pit.view().settled < fills {
            self.block(Vec::new());
            let height = self.blocks.lock().expect("no panic").ledger.height();
            self.until(|view| view.height >= Some(height));
        }
        assert_eq!((self.pit.view().fills, self.pit.view().busts), (fills, 0));
    }

    /// What the venue says of its edge, over HTTP.
    pub fn fairness(&self) -> String {
        let mut stream = TcpStream::connect(self.pit.address()).expect("it listens");
        stream.write_all(b"GET /v1/fairness HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    /// The last height.
    pub fn height(&self) -> Height {
        self.blocks.lock().expect("no panic").ledger.height()
    }

    /// A block of operations that must apply, with the settles of the pool.
    fn block(&self, operations: Vec<(u8, VenueOperation)>) {
        // Blocks are heard in their order.
        let pipeline = self.pipeline.lock().expect("no panic");
        let mut blocks = self.blocks.lock().expect("no panic");
        let count = operations.len();
        let height = blocks.ledger.height();
        let mut native = Vec::new();
        for (person, operation) in operations {
            blocks.sequences[usize::from(person)] += 1;
            let sequence = blocks.sequences[usize::from(person)];
            let operation = Operation::Venue(Box::new(operation));
            let body = Body { chain: 1, account: address(person), sequence, until: height + 100, operation };
            native.push(body.sign(&self.network, &key(person)));
        }
        let mut pool = std::mem::take(&mut blocks.pool);
        pool.dedup();
        native.extend(pool);
        let (parent, last) = (blocks.ledger.last_block(), blocks.archive.last().map_or(0, |(time_ms, _)| *time_ms));
        let time_ms = pit::clock_ms().max(last + 1);
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height: height + 1, parent, time_ms, sub_blocks, ..Superblock::default() };
        let applied = blocks.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        let failed = applied.outcomes[..count].iter().find(|of| **of != ledger::Outcome::Applied);
        assert!(failed.is_none(), "{failed:?}");
        blocks.archive.push((time_ms, applied.venues.clone()));
        let state = state_of(&blocks.ledger);
        drop(blocks);
        if pipeline.load(Ordering::SeqCst) {
            self.pit.hear(state, applied.venues);
        }
    }
}

fn state_of(ledger: &Ledger) -> ChainState {
    ChainState::of(ledger, &address(OPERATOR)).expect("the chain has venues")
}
