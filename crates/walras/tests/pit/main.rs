//! A venue at a node of its own: orders over HTTP, WebSocket, OUCH and FIX through bridges, executed and then settled,
//! also when the node is killed meanwhile. Its market data, and its next incarnation.

mod by_tshark;
mod follower;
mod full_disk;
mod killed;
mod lost;
mod order_system;
mod over_fix;
mod over_nassau;
mod over_quickfix;
mod over_quickfixj;
mod over_stream;
mod participant;
mod past;
// The other tests use the rest of it.
#[allow(dead_code)]
#[path = "../process/mod.rs"]
mod process;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use api::RequestBody;
use follower::Follower;
use participant::Ouch;
use pit::door::VenueStatusBody;
use pit::door::bodies::{order_body, request_body};
use primitives::venue::{
    OrderLife, OrderNumber, SelfTradeRule, SignedOrder, SignedReport, VenueOrder, VenueReport, VenueSide,
};
use primitives::{Digest, SecretKey};
use process::{Process, agent, walras};
use protocols::ouch::{OuchEnter, OuchInbound, OuchOutbound};
use serde_json::{Value, json};
use tempfile::TempDir;
use venue::{RequestScope, TraderAsk, TraderRequest};

const PEOPLE: [&str; 2] = ["alice", "bob"];

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// A home whose node runs venue 0, and traders with deposits and keys.
struct Market {
    folder: TempDir,
    node: Option<Process>,
    /// What runs the node's binary; nothing if it is run as it is.
    wrapper: Vec<String>,
    venue: String,
    ouch: String,
    follower: Follower,
    scope: RequestScope,
    next: u32,
}

impl Market {
    fn new() -> Market {
        Market::run_by(TempDir::new().expect("a folder"), Vec::new())
    }

    fn run_by(folder: TempDir, wrapper: Vec<String>) -> Market {
        let home = folder.path().join("home");
        let assets = ["--asset", "USD:2", "--asset", "EUR:2", "--fee", "0.01", "--supply", "1000000"];
        let made = walras().arg("init").args(assets).arg("--home").arg(&home).output();
        assert!(made.expect("walras runs").status.success());
        let genesis = home.join("genesis.json");
        let mut body: Value = serde_json::from_slice(&std::fs::read(&genesis).expect("there")).expect("JSON");
        body["venues"] = json!({ "bond_min": "1000", "bond_delay": {"heights": 100_000, "ms": 100_000} });
        std::fs::write(&genesis, body.to_string()).expect("written");
        let scope = RequestScope { network: Digest([0; 32]), venue: 0, incarnation: 0 };
        let (venue, ouch) = (String::new(), String::new());
        let follower = Follower::new();
        let mut market = Market { folder, node: None, wrapper, venue, ouch, follower, scope, next: 0 };
        let prepared =
            market.command("", &["venue", "prepare", "--venue", "0", "--json", "--home", home.to_str().expect("text")]);
        let prepared: Value = serde_json::from_str(&prepared).expect("JSON");
        market.start();
        market.found(&prepared);
        market
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn key(&self, person: &str) -> PathBuf {
        if person == "owner" {
            self.home().join("issuer-key.json")
        } else {
            self.folder.path().join(format!("{person}.json"))
        }
    }

    fn trading(&self, person: &str) -> SecretKey {
        let name = if person == "alice-watch" { person.into() } else { format!("{person}-trading") };
        client::keystore::open_under(&self.key(&name), "correct horse").expect("it opens")
    }

    /// What a command says that succeeds.
    fn command(&self, person: &str, arguments: &[&str]) -> String {
        let mut command = walras();
        command.args(arguments);
        if let Some(node) = self.node.as_ref().filter(|_| !person.is_empty()) {
            command.args(["--server", &node.server]).arg("--key").arg(self.key(person));
        }
        let output = command.output().expect("walras runs");
        let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}{told}");
        said.into_owned()
    }

    fn start(&mut self) {
        // A node that starts again has its addresses.
        if self.ouch.is_empty() {
            let [venue, ouch] = [(); 2].map(|()| sockets::free_address().expect("a free port").to_string());
            (self.venue, self.ouch) = (format!("http://{venue}"), ouch);
        }
        let venue = self.venue.trim_start_matches("http://");
        let settings = [
            ("WALRAS_BLOCKS__INTERVAL_MS", "20"),
            ("WALRAS_VENUE__RUN", "true"),
            ("WALRAS_VENUE__LISTEN", venue),
            ("WALRAS_VENUE__OUCH_LISTEN", &*self.ouch),
            ("WALRAS_VENUE__MAKER_PPM", "-500"),
            ("WALRAS_VENUE__TAKER_PPM", "1000"),
            ("WALRAS_VENUE__COVERS_ENTRIES", "false"),
            ("WALRAS_VENUE__SNAPSHOT_RECORDS", "20"),
        ];
        let [to, feed, snapshots] = self.follower.addresses();
        let feed = [
            ("WALRAS_VENUE__FEED_TO", &*to),
            ("WALRAS_VENUE__FEED_LISTEN", &*feed),
            ("WALRAS_VENUE__SNAPSHOT_LISTEN", &*snapshots),
        ];
        let mut command = walras();
        if let [first, rest @ ..] = &self.wrapper[..] {
            let binary = command.get_program().to_owned();
            let mut wrapped = std::process::Command::new(first);
            wrapped.args(rest).arg(binary);
            for (name, value) in command.get_envs() {
                match value {
                    Some(value) => wrapped.env(name, value),
                    None => wrapped.env_remove(name),
                };
            }
            command = wrapped;
        }
        let node = Process::spawn_by(command, &self.home(), &[&settings[..], &feed].concat());
        self.node = Some(node.listening());
    }

    /// Opens the venue with a market, and gives traders what they need.
    fn found(&mut self, prepared: &Value) {
        let (operator, report_key) =
            (prepared["operator"].as_str().expect("text"), prepared["report_key"].as_str().expect("text"));
        let open = ["venue", "open", "--venue", "0", "--operator", operator, "--report-key", report_key];
        self.command("owner", &[&open[..], &["--fee-cap", "0.2", "--bond", "10000"]].concat());
        let list = ["venue", "list", "--venue", "0", "--market", "0", "--base", "EUR", "--quote", "USD", "--lot", "1"];
        let terms = ["--tick", "0.01", "--lots-max", "100000", "--fee-cap", "0.2", "--penalty", "0.01"];
        self.command("owner", &[&list[..], &terms].concat());
        self.command("owner", &["wallet", "pay", "--to", operator, "--asset", "USD", "--amount", "10000"]);
        for person in PEOPLE {
            for key in [person.to_string(), format!("{person}-trading")] {
                let path = self.key(&key);
                self.command("", &["wallet", "new", "--key", path.to_str().expect("text")]);
            }
            let to = client::keystore::address(&self.key(person)).expect("a key").to_string();
            for asset in ["USD", "EUR"] {
                self.command("owner", &["wallet", "pay", "--to", &to, "--asset", asset, "--amount", "10000"]);
                let deposit = ["wallet", "deposit", "--venue", "0", "--asset", asset, "--amount", "9000"];
                self.command(person, &deposit);
            }
            let trading = self.key(&format!("{person}-trading"));
            let at = ["wallet", "authorize", "--venue", "0", "--trading-key", trading.to_str().expect("text")];
            self.command(
                person,
                &[&at[..], &["--market", "0:0.50:2.00", "--lose", "USD:9000", "--lose", "EUR:9000"]].concat(),
            );
        }
        // A key that may lose nothing watches.
        let path = self.key("alice-watch");
        let watch = path.to_str().expect("text");
        self.command("", &["wallet", "new", "--key", watch]);
        let at = ["wallet", "authorize", "--venue", "0", "--trading-key", watch, "--market", "0:0.50:2.00"];
        self.command("alice", &at);
        let status = self.until(|status| status.standing == "runs" && status.paused.is_none() && status.markets == [0]);
        self.scope.network = status.network.expect("it runs").parse().expect("a digest");
    }

    fn status(&self) -> VenueStatusBody {
        let mut answer = agent().get(format!("{}/v1/venue", self.venue)).call().expect("it answers");
        answer.body_mut().read_json().expect("a status")
    }

    /// Waits until the venue stands so. A wait that does not end is a failure that the log explains.
    fn until(&self, holds: impl Fn(&VenueStatusBody) -> bool) -> VenueStatusBody {
        for _ in 0..15_000 {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{:?}: {}", self.status(), self.node.as_ref().expect("it runs").log());
    }

    /// A reader of the feed that loses packets comes to the book of the engine.
    fn follow(&mut self) {
        let url = format!("{}/v1/venue/markets/0/book?depth=100", self.venue);
        let book: Value = agent().get(url).call().expect("it answers").body_mut().read_json().expect("JSON");
        assert!(book["asks"].as_array().is_some_and(|asks| !asks.is_empty()), "{book}");
        self.follower.until(&json!([book["bids"], book["asks"]]));
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer =
            agent().post(format!("{}{path}", self.venue)).content_type("application/json").send(body.to_string());
        let mut answer = answer.expect("it answers");
        (answer.status().as_u16(), answer.body_mut().read_json().expect("JSON"))
    }

    fn order(&mut self, person: &str, side: VenueSide, tick: u32, lots: u32) -> SignedOrder {
        self.next += 1;
        let day = (now_ms() / 86_400_000) as u16;
        let incarnation = self.scope.incarnation;
        let number = OrderNumber { incarnation, day, reference: self.next };
        let order = VenueOrder {
            market: 0,
            number,
            floor: OrderNumber { incarnation, day: 0, reference: 0 },
            side,
            life: OrderLife::Rests,
            self_trade: SelfTradeRule::ExpireTaker,
            tick,
            lots,
            expiry: 5_000,
            until_ms: None,
            fee_cap_ppm: 2_000,
        };
        self.sign(person, order)
    }

    fn sign(&self, person: &str, order: VenueOrder) -> SignedOrder {
        let trading = self.trading(person);
        SignedOrder::sign(&self.scope.network, 0, &trading, order)
    }

    /// Places an order over HTTP; returns its immediate reports.
    fn place(&self, order: &SignedOrder) -> Value {
        let (status, answer) = self.post("/v1/venue/orders", &json!({ "orders": [order_body(order, None)] }));
        assert_eq!(status, 200, "{answer}");
        answer["results"][0].clone()
    }

    fn request(&self, person: &str, ask: TraderAsk) -> RequestBody {
        // Stamps are used once.
        std::thread::sleep(std::time::Duration::from_millis(2));
        request_body(&TraderRequest::sign(&self.scope, &self.trading(person), now_ms(), ask))
    }

    fn ask(&self, person: &str, ask: TraderAsk) -> Value {
        let (status, answer) = self.post("/v1/venue/requests", &json!(self.request(person, ask)));
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Waits until all fills are settled.
    fn settled(&self, fills: u64) {
        let status = self.until(|status| status.fills == fills && status.settled == fills);
        assert_eq!(status.busts, 0, "{status:?}");
    }
}

/// A report of a fill, as doors and files have it.
fn report_of(text: &str) -> VenueReport {
    let digits = text.trim_start_matches("0x").as_bytes();
    let digit = |digit: u8| char::from(digit).to_digit(16).expect("a digit") as u8;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|two| digit(two[0]) << 4 | digit(two[1])).collect();
    VenueReport::of_bytes(&bytes).expect("a report")
}

fn kinds(result: &Value) -> Vec<&str> {
    let reports = result["reports"].as_array().unwrap_or_else(|| panic!("{result}"));
    reports.iter().map(|report| report["type"].as_str().expect("text")).collect()
}

/// A bridge, which ends with the test.
struct Bridge(Child);

impl Drop for Bridge {
    fn drop(&mut self) {
        drop((self.0.kill(), self.0.wait()));
    }
}

fn enter(user_ref: u32, side: u8, price: u64, quantity: u32) -> OuchInbound {
    OuchInbound::Enter(OuchEnter {
        user_ref,
        side,
        quantity,
        symbol: pit::ouch::symbol_of(0),
        price,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        sweep: b'N',
        cross: b'N',
        client_order: *b"mine          ",
    })
}

#[test]
fn orders_are_executed_and_settled_over_every_way_in_and_a_killed_node_goes_on() {
    let mut market = Market::new();
    over_http(&mut market);
    over_stream::orders(&mut market);
    over_stream::unread(&mut market);
    over_a_bridge(&mut market);
    over_fix::orders(&mut market);
    market.follow();
    killed::while_trading(&mut market);
    lost::numbers(&mut market);
    // The feed has another session now.
    market.follow();
    let by_others = over_quickfix::orders(&mut market) + over_nassau::orders(&mut market);
    let by_others = by_others + over_quickfixj::orders(&mut market);
    market.settled(26 + by_others);
    market.follow();
    fenced(&mut market);
    let node = market.node.as_ref().expect("it runs");
    let mut metrics = agent().get(format!("{}/metrics", node.server)).call().expect("it answers");
    let metrics = metrics.body_mut().read_to_string().expect("text");
    for line in ["walras_venue_matching{venue=\"0\"} 1", "walras_venue_settled_fills{venue=\"0\"} 1"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let audit: Value = serde_json::from_str(&{
        let node = market.node.as_ref().expect("it runs");
        let output =
            walras().args(["venue", "audit", "--json", "--server", &node.server]).output().expect("walras runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    })
    .expect("JSON");
    assert_eq!(audit["venues"][0]["busts"].as_array().map(Vec::len), Some(0), "{audit}");
}

fn over_http(market: &mut Market) {
    let sell = market.order("bob", VenueSide::Sell, 110, 40);
    assert_eq!(kinds(&market.place(&sell)), ["accepted"]);
    // A retry after a lost answer gets the first one.
    let first = market.place(&sell);
    assert_eq!(kinds(&first), ["accepted"]);
    let buy = market.order("alice", VenueSide::Buy, 112, 15);
    let bought = market.place(&buy);
    assert_eq!(kinds(&bought), ["accepted", "executed"]);
    let executed = &bought["reports"][1]["executed"];
    assert_eq!(
        (&executed["tick"], &executed["lots"], &executed["fee"]),
        (&110.into(), &15.into(), &"1".into()),
        "{bought}"
    );
    let report = report_of(executed["report"].as_str().expect("text"));
    assert!(matches!(report, VenueReport::Step(_)), "the chain's rules have steps");
    assert!(report.is_signed(&market.scope.network), "it convicts the venue if it is not settled so");
    market.settled(1);
    let status = market.ask("alice", TraderAsk::Status(buy.order.number));
    assert_eq!(status["reports"][0]["status"]["settled"], 15, "{status}");
    let status = market.ask("bob", TraderAsk::Status(sell.order.number));
    assert_eq!(status["position"], json!({ "orders_ahead": 0, "lots_ahead": "0", "lots": 25 }), "{status}");
    let fills = market.ask("bob", TraderAsk::Fills(0));
    assert_eq!(
        (fills["fills"].as_array().map(Vec::len), &fills["fills"][0]["side"]),
        (Some(1), &"sell".into()),
        "{fills}"
    );

    // What cannot be: a foreign signature, a used stamp, too much money; each with a code and a remedy.
    let forged = SignedOrder { order: VenueOrder { lots: 41, ..sell.order }, ..sell };
    assert_eq!(market.place(&forged)["error"]["code"], "signature");
    let request = json!(market.request("bob", TraderAsk::CancelAll { market: None, side: None }));
    let again = market.request("bob", TraderAsk::Cancel { number: sell.order.number, keeps: 30 });
    assert_eq!(market.post("/v1/venue/requests", &json!(again)).0, 200);
    let (status, refused) = market.post("/v1/venue/requests", &json!(again));
    assert_eq!((status, &refused["error"]["code"]), (409, &"stamp".into()), "{refused}");
    let rich = market.order("alice", VenueSide::Buy, 120, 9_000);
    let refused = market.place(&rich);
    assert_eq!(refused["reports"][0]["refused"]["code"], "funds", "{refused}");
    let (_, book) = {
        let mut answer = agent().get(format!("{}/v1/venue/markets/0/book", market.venue)).call().expect("it answers");
        (answer.status(), answer.body_mut().read_json::<Value>().expect("JSON"))
    };
    assert_eq!((&book["asks"], &book["bids"]), (&json!([[110, 15, 1]]), &json!([])), "{book}");
    let ended = market.post("/v1/venue/requests", &request);
    assert_eq!(kinds(&ended.1), ["ended"], "{}", ended.1);
    // Nobody operates without the token.
    assert_eq!(market.post("/v1/venue/operator", &json!({ "halt": { "market": 0 } })).0, 401);
}

fn over_a_bridge(market: &mut Market) {
    let reports = market.folder.path().join("reports.txt");
    let mut command = walras();
    command.args(["bridge", "--listen", "127.0.0.1:0", "--life", "5000", "--gather-us", "500", "--trading-key"]);
    command.arg(market.key("alice-trading")).args(["--venue", &market.venue, "--ouch", &market.ouch]);
    let mut child = command.arg("--reports").arg(&reports).stdout(Stdio::piped()).spawn().expect("walras runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    let _bridge = Bridge(child);
    let address = line.trim().strip_prefix("plain OUCH on ").unwrap_or_else(|| panic!("{line}"));
    market.until(|status| status.sessions == 1);
    // Bob's sale at 130 waits.
    let mut ouch = Ouch::connect(address);
    ouch.send(enter(1_000_000, b'B', 131, 3));
    let accepted = ouch.next(|message| matches!(message, OuchOutbound::Accepted(_)));
    let OuchOutbound::Accepted(of) = accepted else { panic!("{accepted:?}") };
    assert_eq!((of.user_ref, of.client_order), (1_000_000, *b"mine          "));
    let executed = ouch.next(|message| matches!(message, OuchOutbound::Executed(_)));
    assert!(matches!(executed, OuchOutbound::Executed(of) if (of.quantity, of.price, of.liquidity) == (3, 130, b'R')));
    ouch.send(enter(1_000_001, b'B', 90, 3));
    ouch.next(|message| matches!(message, OuchOutbound::Accepted(_)));
    ouch.send(OuchInbound::Cancel(protocols::ouch::OuchCancel { user_ref: 1_000_001, quantity: 0 }));
    let canceled = ouch.next(|message| matches!(message, OuchOutbound::Canceled(_)));
    assert!(matches!(canceled, OuchOutbound::Canceled(of) if (of.user_ref, of.quantity) == (1_000_001, 3)));
    ouch.send(enter(1_000_002, b'B', 1_000, 3));
    let rejected = ouch.next(|message| matches!(message, OuchOutbound::Rejected(_)));
    let (band, _) = pit::codes::refusal_name(&venue::OrderRefusal::Band(1));
    assert!(matches!(rejected, OuchOutbound::Rejected(of) if of.reason == band), "{rejected:?}");
    // What comes within a moment is signed as one list, and answered one by one.
    let ladder: Vec<u32> = (1_000_003..1_000_011).collect();
    ladder.iter().for_each(|of| ouch.send(enter(*of, b'B', 80, 3)));
    for of in &ladder {
        let accepted = ouch.next(|message| matches!(message, OuchOutbound::Accepted(_)));
        assert!(matches!(accepted, OuchOutbound::Accepted(first) if first.user_ref == *of), "{accepted:?}");
    }
    for of in ladder {
        ouch.send(OuchInbound::Cancel(protocols::ouch::OuchCancel { user_ref: of, quantity: 0 }));
        ouch.next(|message| matches!(message, OuchOutbound::Canceled(_)));
    }
    market.settled(3);
    let kept = std::fs::read_to_string(&reports).expect("reports");
    let report = report_of(kept.trim());
    assert!(report.fill().index == 2 && report.is_signed(&market.scope.network));
    market.next = 2_000_000;
}

/// The owner fences the incarnation: its orders are void, and the next one trades where its operator has prepared it.
fn fenced(market: &mut Market) {
    let home = market.home();
    let prepare = ["venue", "prepare", "--venue", "0", "--incarnation", "1", "--home", home.to_str().expect("text")];
    market.command("", &prepare);
    let old = market.order("bob", VenueSide::Sell, 140, 1);
    assert_eq!(kinds(&market.place(&old)), ["accepted"]);
    market.command("owner", &["venue", "fence", "--venue", "0", "--incarnation", "0"]);
    market.until(|status| status.incarnation == Some(1) && status.standing == "runs" && status.paused.is_none());
    market.scope.incarnation = 1;
    let stale = market.place(&old);
    assert_eq!(stale["reports"][0]["refused"]["code"], "incarnation", "{stale}");
    assert!(past::told(market).0.is_empty(), "trades are those of the incarnation");
    let (sell, buy) = (market.order("bob", VenueSide::Sell, 101, 1), market.order("alice", VenueSide::Buy, 101, 1));
    market.place(&sell);
    assert_eq!(kinds(&market.place(&buy)), ["accepted", "executed"]);
    market.settled(1);
    // Its books begin empty, and so do its readers'.
    let rests = market.order("bob", VenueSide::Sell, 150, 1);
    assert_eq!(kinds(&market.place(&rests)), ["accepted"]);
    market.follow();
}
