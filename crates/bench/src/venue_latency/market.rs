//! A node with a venue of one market, traders with deposits and keys, and one order that rests for all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use api::{PlacedBody, PlacedResult, ReportBody};
use doors::Http;
use ledger::{Genesis, Listing, VenueTerms};
use node::{Answer, Config, Node};
use pit::PitView;
use pit::bridge::BridgeNews;
use pit::door::bodies::order_body;
use pit::{Pit, PitSettings, PitStanding, VenueConfig, prepare_incarnation};
use primitives::venue::{
    Delay, KeyScope, Mandate, MarketMandate, MarketTerms, OrderLife, OrderNumber, SelfTradeRule, SignedOrder,
    VenueOperation, VenueOperator, VenueOrder, VenueSide, possession_bytes,
};
use primitives::{AssetId, Body, Digest, Fraction, Operation, SecretKey, Transaction};
use serde_json::json;
use tokio::sync::watch;
use venue::{RequestScope, VenueKeys};

use crate::exchange::Error;

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const VENUE: u32 = 0;
const CHAIN: u64 = 1;
const BALANCE: u64 = 1 << 50;
const DEPOSIT: u64 = 1 << 45;
const TICK: u32 = 100;
const LOTS: u32 = 1 << 20;
/// Milliseconds between blocks: entries of orders end, and fills settle, as fast as a chain allows.
const INTERVAL_MS: u64 = 50;
/// Heights that an order lives. What it leaves behind ends with it, and a key has few such entries.
pub(super) const LIFE: u64 = 32;
/// Bytes of a settle: as many as there can be, or settles would bound the rate.
const SETTLE_BYTES: u32 = 1 << 20;
/// Heights that the order lives from which all take.
const RESTS: u64 = 80_000;
/// Unsettled fills with which a rate may begin.
const FEW: u64 = 500;
/// How long all fills of a rate take to settle at most.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);
/// Of those who trade, the one who quotes.
const MAKER: usize = usize::MAX;

fn seeded(kind: u8, number: usize) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
    SecretKey::from_seed(seed)
}

fn owner() -> SecretKey {
    seeded(0xa0, 0)
}

fn operator() -> SecretKey {
    seeded(0xa1, 0)
}

fn account(trader: usize) -> SecretKey {
    seeded(0xa2, trader)
}

/// The key that a trader trades with.
pub(super) fn trading(trader: usize) -> SecretKey {
    seeded(0xa3, trader)
}

/// The market, and what runs it.
pub(super) struct Market {
    pub(super) runtime: tokio::runtime::Runtime,
    node: Node,
    pub(super) pit: Arc<Pit>,
    folder: PathBuf,
    traders: usize,
    next: AtomicU32,
}

fn genesis(traders: usize, delay: Delay) -> Genesis {
    let people = (0..traders).chain([MAKER]).map(account).chain([owner(), operator()]);
    let terms = VenueTerms {
        delay,
        settle_bytes: SETTLE_BYTES,
        entries_max: 1 << 24,
        venues_max: 1,
        per_block: 1 << 18,
        ..VenueTerms::default()
    };
    Genesis {
        chain: CHAIN,
        fee: 1,
        mu: Fraction::power_of_two(10),
        assets: ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, owner().public().address())).to_vec(),
        balances: people.flat_map(|key| [USD, EUR].map(|asset| (key.public().address(), asset, BALANCE))).collect(),
        venues: Some(terms),
        ..Genesis::default()
    }
}

fn config(quiet_ms: u64) -> Config {
    let mut config = Config::default();
    // The node makes a block before its venue takes the chain for dead.
    config.venue.quiet_ms = quiet_ms;
    config.http.listen.set_port(0);
    config.blocks.interval_ms = INTERVAL_MS;
    config.blocks.threads = 1;
    config.history.keep = false;
    config
}

/// Room for all traders at one address.
fn doors_for(traders: usize) -> Http {
    let most = 16 * traders + 64;
    Http { stream_connections: most, connections_of_one: most, connections: most, ..Http::default() }
}

impl Market {
    /// Starts a node and its venue, and opens the market for so many traders.
    pub(super) fn open(folder: &Path, traders: usize, delay: Delay) -> Result<Market, Error> {
        let runtime = tokio::runtime::Runtime::new()?;
        let node = runtime.block_on(Node::start(
            config(delay.ms / 2),
            &genesis(traders, delay),
            &folder.join("data"),
            None,
        ))?;
        let venues = folder.join("venues");
        prepare_incarnation(&venues, VENUE, 0)?;
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let config = VenueConfig {
            run: true,
            listen: any,
            ouch_listen: any,
            feed_listen: any,
            snapshot_listen: any,
            covers_entries: false,
            quiet_ms: delay.ms / 2,
            ..VenueConfig::default()
        };
        let account = operator().public().address();
        let keys = move || VenueKeys { account, operator: operator(), report: seeded(0xa4, 0) };
        let settings = PitSettings { config, directory: venues, keys: Box::new(keys), edge: None };
        let pit = Arc::new(runtime.block_on(Pit::start(settings, &doors_for(traders)))?);
        let market = Market { runtime, node, pit, folder: folder.into(), traders, next: AtomicU32::new(1) };
        market.found(folder, account)?;
        Ok(market)
    }

    fn found(&self, folder: &Path, operator: primitives::Address) -> Result<(), Error> {
        let network = self.network();
        let operator = VenueOperator { account: operator, report_key: seeded(0xa4, 0).public() };
        let terms = MarketTerms {
            base: EUR,
            quote: USD,
            lot_units: 1,
            tick_units: 1,
            lots_max: LOTS,
            fee_cap_ppm: 10_000,
            penalty: 1,
        };
        let opened = [
            VenueOperation::Open { venue: VENUE, operator, fee_cap_ppm: 10_000, bond: 1 << 40 },
            VenueOperation::List { venue: VENUE, market: 0, terms },
        ];
        // Each stands on the one before.
        for (operation, sequence) in opened.into_iter().zip(1..) {
            self.execute(vec![sign(&owner(), sequence, operation, &network)])?;
        }
        self.node.exchange().serve_venue(&self.pit, operator.account, folder)?;
        let people = (0..self.traders).chain([MAKER]);
        self.execute(people.flat_map(|trader| fund(trader, &network)).collect())?;
        let known = Some(self.node.exchange().read(ledger::Ledger::height));
        let is_up = || {
            let view = self.pit.view();
            view.height >= known && view.standing == PitStanding::Runs && view.paused.is_none() && view.markets == [0]
        };
        if crate::consensus::wait_until(is_up) { Ok(()) } else { Err(format!("{:?}", self.pit.view()).into()) }
    }

    /// Submits these, and waits until all are applied.
    fn execute(&self, transactions: Vec<Transaction>) -> Result<(), Error> {
        for some in transactions.chunks(256) {
            let answers = self.node.exchange().submit(some.to_vec(), true)?.blocking_recv()?;
            for answer in answers {
                match answer {
                    Answer::Committed(..) => {}
                    Answer::Pending(_, Some(durable)) => drop(durable.blocking_recv()?),
                    _ => return Err("the node refuses what opens the market".into()),
                }
            }
        }
        Ok(())
    }

    pub(super) fn network(&self) -> Digest {
        self.node.exchange().read(ledger::Ledger::network)
    }

    pub(super) fn height(&self) -> u64 {
        self.pit.view().height.unwrap_or(0)
    }

    /// Fills that no block has settled yet.
    pub(super) fn unsettled(&self) -> u64 {
        let view = self.pit.view();
        view.fills - view.settled
    }

    /// Waits until few fills are unsettled: what a rate leaves behind must not pause the next one. The last few settle
    /// when the next block comes, and an idle chain makes none for a while.
    pub(super) fn until_few_unsettled(&self) -> Result<(), Error> {
        let begun = Instant::now();
        while self.unsettled() > FEW {
            if begun.elapsed() > SETTLES_WITHIN {
                return Err(format!("{} fills are not settled after a minute", self.unsettled()).into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    pub(super) fn scope(&self) -> RequestScope {
        RequestScope { network: self.network(), venue: VENUE, incarnation: 0 }
    }

    /// What a bridge must know of the venue, as it changes.
    pub(super) fn news(&self) -> watch::Receiver<Option<BridgeNews>> {
        let (scope, pit) = (self.scope(), self.pit.clone());
        let of = move || {
            let PitView { height, takes_lists, .. } = pit.view();
            height.map(|height| BridgeNews { scope, height, takes_lists })
        };
        let (sender, receiver) = watch::channel(of());
        self.runtime.spawn(async move {
            while sender.send(of()).is_ok() {
                tokio::time::sleep(Duration::from_millis(INTERVAL_MS)).await;
            }
        });
        receiver
    }

    /// Where what belongs to the market is kept.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn traders(&self) -> usize {
        self.traders
    }

    /// So many references that no order has; returns the first.
    pub(super) fn references(&self, count: usize) -> u32 {
        self.next.fetch_add(count as u32, Ordering::Relaxed)
    }

    /// The day whose sessions number orders.
    fn day(&self) -> u16 {
        (pit::clock_ms() / 86_400_000) as u16
    }

    /// An order that takes one lot of what rests.
    pub(super) fn buy(&self, trader: usize, reference: u32) -> SignedOrder {
        self.order(trader, reference, (VenueSide::Buy, OrderLife::ImmediateOrCancel, 1), LIFE)
    }

    fn order(
        &self,
        trader: usize,
        reference: u32,
        (side, life, lots): (VenueSide, OrderLife, u32),
        heights: u64,
    ) -> SignedOrder {
        let order = VenueOrder {
            market: 0,
            number: OrderNumber { incarnation: 0, day: self.day(), reference },
            floor: OrderNumber { incarnation: 0, day: 0, reference: 0 },
            side,
            life,
            self_trade: SelfTradeRule::ExpireTaker,
            tick: TICK,
            lots,
            expiry: self.height() + heights,
            until_ms: None,
            fee_cap_ppm: 10_000,
        };
        let key = trading(trader);
        SignedOrder::sign(&self.network(), VENUE, &key, order)
    }

    /// Lets lots rest that all can take.
    pub(super) fn refill(&self) -> Result<(), Error> {
        let rests = self.order(MAKER, self.references(1), (VenueSide::Sell, OrderLife::Rests, LOTS), RESTS);
        let body = json!({ "orders": [order_body(&rests, None)] }).to_string();
        let url = format!("http://{}/v1/venue/orders", self.pit.address());
        let placed = ureq::post(&url).content_type("application/json").send(body);
        let placed: PlacedBody = placed.map_err(|error| error.to_string())?.body_mut().read_json()?;
        let is_taken = |reports: &[ReportBody]| reports.iter().any(|report| report.accepted.is_some());
        match &placed.results[..] {
            [PlacedResult::Reports(reports)] if is_taken(reports) => Ok(()),
            refused => Err(format!("the order that all take from is refused: {refused:?}").into()),
        }
    }

    /// Stops the venue and its node.
    pub(super) fn stop(self) {
        self.pit.stop();
        self.runtime.block_on(self.node.stop());
        self.runtime.shutdown_background();
    }
}

fn sign(key: &SecretKey, sequence: u64, operation: VenueOperation, network: &Digest) -> Transaction {
    let (account, operation) = (key.public().address(), Operation::Venue(Box::new(operation)));
    Body { chain: CHAIN, account, sequence, until: 1_000, operation }.sign(network, key)
}

/// A trader's deposits and key.
fn fund(trader: usize, network: &Digest) -> Vec<Transaction> {
    let (of, public) = (account(trader), trading(trader).public());
    let possession = trading(trader).sign(&possession_bytes(network, VENUE, &of.public().address(), &public));
    let markets = vec![MarketMandate { market: 0, tick_min: 1, tick_max: 10 * TICK }];
    let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(USD, DEPOSIT), (EUR, DEPOSIT)] };
    let authorize = VenueOperation::Authorize { venue: VENUE, key: public, mandate, possession };
    let deposits = [USD, EUR].map(|asset| VenueOperation::Deposit { venue: VENUE, asset, units: DEPOSIT });
    deposits.into_iter().chain([authorize]).zip(1..).map(|(what, at)| sign(&of, at, what, network)).collect()
}
