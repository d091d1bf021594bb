//! The demo's venue: two continuous markets beside the batch markets, opened by ordinary operations, with market makers
//! and a taker who send signed orders like anybody else: over HTTP, or over OUCH through the gateways of the venue's
//! edge.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::{OrderBody, RequestBody};
use kernel::Dice;
use pit::door::VenueStatusBody;
use pit::door::bodies::{order_body, request_body};
use primitives::venue::{
    KeyScope, Mandate, MarketId, MarketMandate, MarketTerms, OrderLife, OrderNumber, SelfTradeRule, SignedOrder,
    VenueOperation, VenueOperator, VenueOrder, VenueSide, possession_bytes,
};
use primitives::{AssetId, Body, Digest, Operation, SecretKey, Transaction, UNTIL_USUAL};
use serde_json::{Value, json};
use venue::{RequestScope, TraderAsk, TraderRequest};

use crate::demo_network::DemoNetwork;
use crate::demo_ouch::{DemoOuch, OuchTally};
use crate::demo_people::{DEMO_VENUE, MARKETS, Person, key, people};
use crate::init::DEMO_CHAIN;

/// Units that a trader deposits of each asset.
const DEPOSIT: u64 = 500_000_000_000;
const BOND: u64 = 100_000_000_000;
/// The most that an order pays in fees, in millionths.
const FEE_CAP: u32 = 2_000;
/// How often makers quote anew.
const QUOTES: Duration = Duration::from_secs(1);
/// How often what the ledger must know is sent again until it does.
const AGAIN: Duration = Duration::from_secs(3);
/// Quotes of a maker on each side.
const LEVELS: u32 = 3;
/// Of the people, the first so many quote; the next one takes.
const MAKERS: usize = 2;
/// Numbers of orders that a second of the day leaves to a demo that begins in it.
const REFERENCES: u32 = 10_000;
/// Heights that their orders live.
const LIFE: u64 = 1_000;

/// How far the venue is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DemoStage {
    Opens,
    Lists(MarketId),
    Funds,
    Trades,
}

/// The venue of a demo, and those who trade there.
pub struct DemoVenue {
    address: SocketAddr,
    operator: VenueOperator,
    owner: SecretKey,
    people: Vec<Person>,
    markets: usize,
    prices: Vec<f64>,
    random: Dice,
    stage: DemoStage,
    acted: Option<Instant>,
    reference: u32,
    stamp_ms: u64,
    agent: ureq::Agent,
    /// Of each person, if the venue has an edge.
    sessions: Vec<DemoOuch>,
    scope: Option<RequestScope>,
}

/// An order of one of the people: who, market, side, tick, lots, life.
type Wanted = (usize, usize, VenueSide, u32, u32, OrderLife);

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

impl DemoVenue {
    /// The venue whose doors are at an address, on a chain of so many assets; and the doors of its gateways, if it has
    /// an edge.
    pub fn new(
        address: SocketAddr,
        operator: VenueOperator,
        doors: Vec<SocketAddr>,
        assets: usize,
        seed: u64,
    ) -> DemoVenue {
        let people = people();
        // Two gateways run in one process: neighbours begin at different processes.
        let session = |person: usize| DemoOuch::new(doors.clone(), 2 * person % doors.len());
        let sessions = if doors.is_empty() { Vec::new() } else { (0..people.len()).map(session).collect() };
        let patience = Some(Duration::from_secs(2));
        let agent = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(patience).build();
        let markets = MARKETS.len().min(assets - 1);
        DemoVenue {
            address,
            operator,
            owner: key(0, 0),
            people,
            markets,
            prices: MARKETS.iter().map(|(.., price)| *price).collect(),
            random: Dice::new(seed),
            stage: DemoStage::Opens,
            acted: None,
            // A session of a day takes no number twice, and a demo may begin again on the same day.
            reference: (now_ms() / 1_000 % 86_400) as u32 * REFERENCES,
            stamp_ms: 0,
            agent: agent.into(),
            sessions,
            scope: None,
        }
    }

    /// Opens the venue step by step, and then trades.
    pub fn tend(&mut self, network: &DemoNetwork, say: &impl Fn(String)) {
        let pause = if self.stage == DemoStage::Trades { QUOTES } else { AGAIN };
        if let Some(scope) = self.scope {
            let people = self.people.iter();
            people.zip(&mut self.sessions).for_each(|(person, session)| session.tend(&scope, &person.trading));
        }
        let is_due = self.acted.is_none_or(|acted| acted.elapsed() >= pause);
        if self.stage != DemoStage::Trades && self.is_done(network) {
            self.stage = self.next_stage();
            self.acted = None;
            if self.stage == DemoStage::Trades {
                say(format!("the venue's {} continuous markets are open, and makers quote", self.markets));
            }
            return;
        }
        if is_due {
            self.acted = Some(Instant::now());
            match self.stage {
                DemoStage::Trades => self.trade(),
                _ => drop(network.submit(0, &self.operations(network))),
            }
        }
    }

    fn next_stage(&self) -> DemoStage {
        match self.stage {
            DemoStage::Opens => DemoStage::Lists(0),
            DemoStage::Lists(market) if (market as usize) + 1 < self.markets => DemoStage::Lists(market + 1),
            DemoStage::Lists(_) => DemoStage::Funds,
            DemoStage::Funds | DemoStage::Trades => DemoStage::Trades,
        }
    }

    /// Whether the ledger has what this stage asks for.
    fn is_done(&self, network: &DemoNetwork) -> bool {
        let node = network.node(0);
        let markets = node.venue(DEMO_VENUE).ok().map(|venue| venue.markets);
        match self.stage {
            DemoStage::Opens => markets.is_some(),
            DemoStage::Lists(market) => markets.is_some_and(|known| known > market),
            DemoStage::Funds => self
                .people
                .iter()
                .all(|person| matches!(node.trading_key(DEMO_VENUE, &person.trading.public()), Ok(Some(_)))),
            DemoStage::Trades => true,
        }
    }

    /// What this stage asks the ledger for. Its numbers are the same each time, so it counts once.
    fn operations(&self, network: &DemoNetwork) -> Vec<Transaction> {
        let (identity, until) = (*network.identity(), network.next_height() + UNTIL_USUAL);
        let sign = |key: &SecretKey, sequence: u64, operation: VenueOperation| {
            let (account, operation) = (key.public().address(), Operation::Venue(Box::new(operation)));
            Body { chain: DEMO_CHAIN, account, sequence, until, operation }.sign(&identity, key)
        };
        let (venue, fee_cap_ppm) = (DEMO_VENUE, FEE_CAP);
        match self.stage {
            DemoStage::Opens => {
                let operator = self.operator;
                vec![sign(&self.owner, 1, VenueOperation::Open { venue, operator, fee_cap_ppm, bond: BOND })]
            }
            DemoStage::Lists(market) => {
                let (base, lot_units, tick_units, _) = MARKETS[market as usize];
                let (lots_max, penalty, quote) = (100_000, 1, AssetId(0));
                let terms = MarketTerms { base, quote, lot_units, tick_units, lots_max, fee_cap_ppm, penalty };
                vec![sign(&self.owner, 2 + u64::from(market), VenueOperation::List { venue, market, terms })]
            }
            DemoStage::Funds => self.people.iter().flat_map(|person| self.fund(person, &identity, sign)).collect(),
            DemoStage::Trades => Vec::new(),
        }
    }

    fn fund(
        &self,
        person: &Person,
        identity: &Digest,
        sign: impl Fn(&SecretKey, u64, VenueOperation) -> Transaction,
    ) -> Vec<Transaction> {
        let venue = DEMO_VENUE;
        let assets: Vec<AssetId> =
            [AssetId(0)].into_iter().chain(MARKETS[..self.markets].iter().map(|market| market.0)).collect();
        let account = person.account.public().address();
        let public = person.trading.public();
        let possession = person.trading.sign(&possession_bytes(identity, venue, &account, &public));
        let of_market = |market| MarketMandate { market, tick_min: 1, tick_max: 60_000 };
        let mandate = Mandate {
            scope: KeyScope::Venue,
            markets: (0..self.markets as u32).map(of_market).collect(),
            caps: assets.iter().map(|asset| (*asset, DEPOSIT)).collect(),
        };
        let authorize = VenueOperation::Authorize { venue, key: public, mandate, possession };
        let deposits = assets.iter().map(|asset| VenueOperation::Deposit { venue, asset: *asset, units: DEPOSIT });
        let all = deposits.chain([authorize]).zip(1..);
        all.map(|(operation, sequence)| sign(&person.account, sequence, operation)).collect()
    }

    /// Makers quote anew around prices that walk, and a taker takes some.
    fn trade(&mut self) {
        let Some(status) = self.status().filter(|status| status.standing == "runs" && status.paused.is_none()) else {
            return;
        };
        let scope = status.incarnation.zip(status.network.and_then(|network| network.parse().ok()));
        let Some(((incarnation, network), height)) = scope.zip(status.height) else { return };
        let (scope, day) = (RequestScope { network, venue: DEMO_VENUE, incarnation }, status.day);
        self.scope = Some(scope);
        let wanted = self.wanted();
        self.withdraw(&scope);
        let orders: Vec<(usize, SignedOrder)> = wanted
            .into_iter()
            .map(|(person, market, side, tick, lots, life)| {
                self.reference += 1;
                let number = OrderNumber { incarnation, day, reference: self.reference };
                let floor = OrderNumber { incarnation, day: 0, reference: 0 };
                let (self_trade, until_ms, fee_cap_ppm) = (SelfTradeRule::ExpireTaker, None, FEE_CAP);
                let (market, expiry) = (market as u32, height + LIFE);
                let order = VenueOrder {
                    market,
                    number,
                    floor,
                    side,
                    life,
                    self_trade,
                    tick,
                    lots,
                    expiry,
                    until_ms,
                    fee_cap_ppm,
                };
                let trading = &self.people[person].trading;
                (person, SignedOrder::sign(&scope.network, DEMO_VENUE, trading, order))
            })
            .collect();
        if self.sessions.is_empty() {
            let bodies: Vec<OrderBody> = orders.iter().map(|(_, order)| order_body(order, None)).collect();
            self.post("/v1/venue/orders", &json!({ "orders": bodies }));
        }
        for (person, order) in &orders {
            self.sessions.get_mut(*person).into_iter().for_each(|session| session.enter(order));
        }
    }

    /// What makers and the taker want next.
    fn wanted(&mut self) -> Vec<Wanted> {
        let mut orders = Vec::new();
        for market in 0..self.markets {
            self.prices[market] *= 1.0 + (self.random.unit() - 0.5) * 0.001;
            let mid = (self.prices[market].round() as u32).clamp(100, 50_000);
            for maker in 0..MAKERS {
                for level in 0..LEVELS {
                    let away = 1 + 2 * level + maker as u32;
                    let lots = 20 + 10 * level;
                    for (side, tick) in [(VenueSide::Buy, mid - away), (VenueSide::Sell, mid + away)] {
                        orders.push((maker, market, side, tick, lots, OrderLife::PostOnly));
                    }
                }
            }
            let lots = 1 + (self.random.unit() * 30.0) as u32;
            let (side, tick) =
                if self.random.unit() < 0.5 { (VenueSide::Buy, mid + 10) } else { (VenueSide::Sell, mid - 10) };
            orders.push((MAKERS, market, side, tick, lots, OrderLife::ImmediateOrCancel));
        }
        orders
    }

    /// Ends what makers quoted before, the way it came.
    fn withdraw(&mut self, scope: &RequestScope) {
        for maker in 0..MAKERS {
            if let Some(session) = self.sessions.get_mut(maker) {
                self.reference += 1;
                session.cancel_all(self.reference);
            } else {
                let body = self.request(scope, maker, TraderAsk::CancelAll { market: None, side: None });
                self.post("/v1/venue/requests", &json!(body));
            }
        }
    }

    fn request(&mut self, scope: &RequestScope, person: usize, ask: TraderAsk) -> RequestBody {
        self.stamp_ms = now_ms().max(self.stamp_ms + 1);
        request_body(&TraderRequest::sign(scope, &self.people[person].trading, self.stamp_ms, ask))
    }

    /// What is lost is quoted anew.
    fn post(&self, path: &str, body: &Value) {
        let url = format!("http://{}{path}", self.address);
        drop(self.agent.post(url).content_type("application/json").send(body.to_string()));
    }

    fn status(&self) -> Option<VenueStatusBody> {
        let url = format!("http://{}/v1/venue", self.address);
        self.agent.get(url).call().ok()?.body_mut().read_json().ok()
    }

    /// What all sessions were told, and how many are open.
    fn over_ouch(&self) -> Option<(OuchTally, usize)> {
        let sum = |sum: OuchTally, of: OuchTally| OuchTally {
            accepted: sum.accepted + of.accepted,
            executed: sum.executed + of.executed,
            rejected: sum.rejected + of.rejected,
            connections: sum.connections + of.connections,
        };
        let all = self.sessions.iter().map(DemoOuch::tally).reduce(sum)?;
        Some((all, self.sessions.iter().filter(|session| session.is_open()).count()))
    }

    /// How the venue stands, in one line.
    pub fn line(&self) -> String {
        let over_ouch = self.over_ouch().map_or(String::new(), |(of, open)| {
            let OuchTally { accepted, executed, rejected, connections } = of;
            format!(
                "; through its gateways {accepted} orders accepted, {executed} executions, {rejected} rejected, {open} \
                 sessions open, {connections} connections"
            )
        });
        match self.status() {
            Some(status) => {
                let pause = status.paused.map_or(String::new(), |why| format!(", paused: {}", why.message));
                let why = status.why.map_or(String::new(), |why| format!(", {}: {why}", status.standing));
                let (fills, settled, busts) = (status.fills, status.settled, status.busts);
                format!("venue: {fills} fills, {settled} settled, {busts} bust{pause}{why}{over_ouch}")
            }
            None => "venue: down".into(),
        }
    }

    /// How it stands, for programs.
    pub fn report(&self) -> Value {
        self.status().map_or(Value::Null, |status| {
            let VenueStatusBody { fills, settled, busts, markets, .. } = status;
            let over_ouch = self.over_ouch().map(|(of, open)| {
                json!({ "accepted": of.accepted, "executed": of.executed, "rejected": of.rejected,
                    "open_sessions": open, "connections": of.connections })
            });
            json!({ "fills": fills, "settled": settled, "busts": busts, "markets": markets, "over_ouch": over_ouch })
        })
    }
}
