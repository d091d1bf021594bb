//! Custody at a venue by commands: deposits, trading keys, settles, what leaves, and what a false report costs.

mod process;

use std::path::{Path, PathBuf};
use std::process::Output;

use client::NodeClient;
use primitives::venue::{
    FillReport, OrderLife, OrderNumber, SelfTradeRule, Settle, SettledFill, SettledOrder, SignedOrder, VenueOperation,
    VenueOrder, VenueSide,
};
use primitives::{Address, Body, Digest, Operation, SecretKey, to_hex};
use process::{Process, agent, get, walras};
use serde_json::Value;
use tempfile::TempDir;

const RECEIVER: &str = "0x1111111111111111111111111111111111111111";
const SETTINGS: [(&str, &str); 1] = [("WALRAS_BLOCKS__INTERVAL_MS", "20")];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A node whose chain has venues, and traders with money and trading keys.
struct Market {
    folder: TempDir,
    node: Process,
    owner: PathBuf,
}

impl Market {
    fn new() -> Market {
        let folder = TempDir::new().expect("a folder");
        let home = folder.path().join("home");
        let assets = ["--asset", "USD:2", "--asset", "EUR:2", "--fee", "0.01", "--supply", "100000"];
        let made = walras().arg("init").args(assets).arg("--home").arg(&home).output();
        assert!(made.expect("walras runs").status.success());
        let genesis = home.join("genesis.json");
        let mut body: Value = serde_json::from_slice(&std::fs::read(&genesis).expect("there")).expect("JSON");
        body["venues"] = serde_json::json!({"delay": {"heights": 3, "ms": 1}, "bond_min": "1000",
            "bond_delay": {"heights": 1000, "ms": 1000}});
        std::fs::write(&genesis, body.to_string()).expect("written");
        let market = Market { node: Process::start(&home, &SETTINGS), owner: home.join("issuer-key.json"), folder };
        for person in ["alice", "bob", "alice-trading", "bob-trading"] {
            let made = walras().args(["wallet", "new", "--key"]).arg(market.key(person)).output().expect("walras runs");
            assert!(made.status.success(), "{}", text(&made.stderr));
        }
        for (person, asset) in [("alice", "USD"), ("bob", "EUR"), ("bob", "USD")] {
            let to = market.secret(person).public().address().to_string();
            market.done("owner", &["wallet", "pay", "--to", &to, "--asset", asset, "--amount", "1000"]);
        }
        market
    }

    fn key(&self, person: &str) -> PathBuf {
        if person == "owner" { self.owner.clone() } else { self.folder.path().join(format!("{person}.json")) }
    }

    fn secret(&self, person: &str) -> SecretKey {
        client::keystore::open_under(&self.key(person), "correct horse").expect("it opens")
    }

    fn run(&self, person: &str, arguments: &[&str]) -> Output {
        let mut command = walras();
        command.args(arguments).args(["--server", &self.node.server]);
        if !person.is_empty() {
            command.arg("--key").arg(self.key(person));
        }
        command.output().expect("walras runs")
    }

    /// What a command says that succeeds.
    fn done(&self, person: &str, arguments: &[&str]) -> String {
        let output = self.run(person, arguments);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}{}", text(&output.stderr));
        said
    }

    /// Why a command fails.
    fn refused(&self, person: &str, arguments: &[&str], because: &str) {
        let output = self.run(person, arguments);
        let told = text(&output.stderr);
        assert!(
            output.status.code() == Some(1) && told.contains(because),
            "{arguments:?}: {told}{}",
            text(&output.stdout)
        );
    }

    fn json(&self, person: &str, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.done(person, &[arguments, &["--json"]].concat())).expect("JSON")
    }

    fn client(&self) -> NodeClient {
        NodeClient::at(&self.node.server)
    }

    fn network(&self) -> Digest {
        self.client().terms().expect("an answer").network
    }

    /// An order of market 0 for one hundred and ten ticks, signed by the trading key of a person.
    fn order(&self, person: &str, side: VenueSide, lots: u32) -> SettledOrder {
        let secret = self.secret(&format!("{person}-trading"));
        let number = OrderNumber { incarnation: 0, day: 1, reference: lots };
        let order = VenueOrder {
            market: 0,
            number,
            floor: OrderNumber { reference: 0, ..number },
            side,
            life: OrderLife::Rests,
            self_trade: SelfTradeRule::ExpireBoth,
            tick: 110,
            lots,
            expiry: 100_000,
            until_ms: None,
            fee_cap_ppm: 0,
        };
        SignedOrder::sign(&self.network(), 0, &secret, order).into()
    }

    /// Settles a fill of both orders with this index, by the owner's account; returns its leaf.
    fn settle(&self, from: u64, buy: SettledOrder, sell: SettledOrder, lots: u32) -> Digest {
        let mut orders = vec![buy, sell];
        orders.sort_by_key(|order| (order.key, order.order.number));
        let at = |side| orders.iter().position(|order| order.order.side == side).expect("there") as u16;
        let (buy, sell) = (at(VenueSide::Buy), at(VenueSide::Sell));
        let fill = SettledFill { buy, sell, ..fill_of(lots) };
        let settle = Settle { venue: 0, incarnation: 0, from, orders, fills: vec![fill] };
        let (owner, node) = (self.secret("owner"), self.client());
        let account = owner.public().address();
        let (chain, network) = (node.terms().expect("an answer").chain, self.network());
        let sequence = node.sequence(&account).expect("an answer").1;
        let until = node.height().expect("an answer") + 200;
        let leaf = settle.leaves(&network)[0];
        let operation = Operation::Venue(Box::new(VenueOperation::Settle(settle)));
        let signed = Body { chain, account, sequence, until, operation }.sign(&network, &owner);
        let bytes = borsh::to_vec(&signed).expect("in memory");
        let taken = node.post("/v1/transactions?wait=committed", &bytes);
        let body: api::TransactionBody = taken.unwrap_or_else(|error| panic!("{error}: {}", self.node.log()));
        assert_eq!(body.outcome, Some(api::OutcomeBody::Applied), "{body:?}");
        leaf
    }

    fn report(&self, index: u64, leaf: Digest, to: Address) -> String {
        hex(&FillReport::new(&self.network(), (0, 0, index), leaf, to, &report_key()))
    }

    fn balance(&self, account: &Address, asset: &str) -> u64 {
        let body = self.client().account(account).expect("an answer").expect("it exists");
        let mut own = body.balances.iter().filter(|balance| balance.asset == asset);
        own.next().map_or(0, |balance| balance.available.parse().expect("units"))
    }
}

fn report_key() -> SecretKey {
    SecretKey::from_seed([9; 32])
}

fn fill_of(lots: u32) -> SettledFill {
    SettledFill { buy: 0, sell: 1, lots, tick: 110, fee_buy: 0, fee_sell: 0, taker: VenueSide::Buy }
}

fn hex(value: &impl borsh::BorshSerialize) -> String {
    format!("0x{}", to_hex(&borsh::to_vec(value).expect("in memory")))
}

/// A venue from its opening to its conviction, as a trader, an owner and an auditor see it.
#[test]
fn a_venue_settles_pays_out_and_answers_for_a_false_report() {
    let market = Market::new();
    let (owner, report) = (market.secret("owner").public().address().to_string(), report_key().public().to_string());
    let open = ["venue", "open", "--venue", "0", "--operator", &owner, "--report-key", &report, "--fee-cap", "0.2"];
    market.refused("owner", &[&open[..], &["--bond", "5"]].concat(), "a venue opens with at least 10 USD");
    market.done("owner", &[&open[..], &["--bond", "100"]].concat());
    // The same command again, as after a lost answer, opens no second venue.
    market.refused("owner", &[&open[..], &["--bond", "100"]].concat(), "the next free number is 1");
    let list = |lot, tick| {
        let pair = ["venue", "list", "--venue", "0", "--market", "0", "--base", "EUR", "--quote", "USD", "--lot", lot];
        let rest = ["--tick", tick, "--lots-max", "1000", "--fee-cap", "0.2", "--penalty", "0.01"];
        [&pair[..], &rest].concat()
    };
    market.refused("owner", &list("1", "0.001"), "is no whole number of units of USD, of which the least is 0.01 USD");
    market.done("owner", &list("1", "0.01"));

    let deposit = |asset, amount| ["wallet", "deposit", "--venue", "0", "--asset", asset, "--amount", amount];
    market.refused("alice", &deposit("XYZ", "1"), "no asset \"XYZ\"; there are USD, EUR");
    market.refused("alice", &deposit("USD", "1.234"), "1.234");
    market.refused("alice", &["wallet", "deposit", "--venue", "7", "--asset", "USD", "--amount", "1"], "no venue 7");
    market.refused("alice", &deposit("USD", "100000"), "overdraft");
    market.done("alice", &deposit("USD", "100"));
    market.done("bob", &deposit("EUR", "50"));
    for person in ["alice", "bob"] {
        let trading = market.key(&format!("{person}-trading"));
        let trading = trading.to_str().expect("text");
        let own = market.key(person);
        let of = |key, band| {
            let at = ["wallet", "authorize", "--venue", "0", "--trading-key", key, "--market", band];
            [&at[..], &["--lose", "USD:200", "--lose", "EUR:50"]].concat()
        };
        market.refused(person, &of(trading, "0:0.905:1.3"), "the next prices are 0.9 and 0.91");
        market.refused(person, &of(trading, "1"), "venue 0 has no market 1");
        market.refused(person, &of(own.to_str().expect("text"), "0"), "can withdraw and pay");
        market.done(person, &of(trading, "0:0.90:1.30"));
        market.refused(person, &of(trading, "0"), "was authorised at venue 0 before, by this account");
    }
    let alices = market.secret("alice-trading").public().to_string();
    let revoke = ["wallet", "revoke", "--venue", "0", "--trading-key", &alices];
    market.refused("bob", &revoke, "not of this account");

    // 40 lots at 1.10, and then 60 more, for which Alice has too little.
    let leaf =
        market.settle(0, market.order("alice", VenueSide::Buy, 40), market.order("bob", VenueSide::Sell, 41), 40);
    market.settle(1, market.order("alice", VenueSide::Buy, 80), market.order("bob", VenueSide::Sell, 80), 60);
    let shown = market.client().settled(0, 0).expect("they are settled");
    let verdicts: Vec<_> = shown.iter().map(|fill| (&*fill.shown.verdict, fill.shown.guilt.as_deref())).collect();
    assert_eq!((verdicts, shown[0].leaf), (vec![("applied", None), ("bust", Some("both"))], leaf));
    let (_, proof) = get(&agent(), &market.node.server, "/v1/venues/0/fills/0/1/proof");
    assert_eq!((&proof["fill"]["verdict"], &proof["fill"]["reason"]), (&"bust".into(), &"deposit".into()), "{proof}");
    let said = market.done("alice", &["wallet", "deposits"]);
    assert!(said.contains("venue 0: 56 USD free") && said.contains("venue 0: 40 EUR free"), "{said}");
    let said = market.done("alice", &["wallet", "trading-keys"]);
    assert!(said.contains("may lose 200 USD, 50 EUR; lost 44 USD, gained 40 EUR"), "{said}");
    let raise = ["wallet", "raise-floor", "--venue", "0", "--trading-key", &alices, "--below", "0:1:500"];
    market.refused("bob", &raise, "not of this account");
    let said = market.done("alice", &raise);
    assert!(said.contains("below 0:1:500 die at venue 0 once the delay is past"), "{said}");
    market.refused("alice", &raise, "is 0:1:500, or will be: --below names a higher number");
    let sound = market.json("", &["venue", "audit"]);
    assert_eq!(sound["custody"][1], serde_json::json!({"asset": "USD", "deposits": "10000", "bonds": "9940"}));
    assert_eq!(sound["venues"][0]["busts"][0]["index"], "1", "{sound}");

    // Out again, without the venue.
    let account = market.secret("alice").public().address();
    let (before, collect) = (market.balance(&account, "EUR"), ["wallet", "collect", "--venue", "0", "--asset", "EUR"]);
    market.done("alice", &[&collect[..], &["--all"]].concat());
    market.refused(
        "alice",
        &[&collect[..], &["--amount", "1"]].concat(),
        "a request for 40 EUR of this deposit is running",
    );
    // A node alone makes blocks of transactions only.
    (0..4).for_each(|_| {
        drop(market.done("owner", &["wallet", "pay", "--to", RECEIVER, "--asset", "USD", "--amount", "1"]))
    });
    assert_eq!(market.balance(&account, "EUR"), before + 4_000, "paid without the venue");
    market.refused("alice", &[&collect[..], &["--all"]].concat(), "no deposit of EUR at venue 0");

    // A report of the truth proves nothing; a fill that is never settled costs a penalty; a false report the bond.
    let accuse = |report: &str, because: &str| {
        market.refused("bob", &["venue", "accuse", "--report", report], because);
    };
    accuse(&market.report(0, leaf, account), "settled as it was reported");
    let (buy, sell) = (market.order("alice", VenueSide::Buy, 3), market.order("bob", VenueSide::Sell, 3));
    let digest = |order: &SettledOrder| order.order.digest(&market.network(), 0, &order.key);
    let unsettled = market.report(2, fill_of(3).leaf(&digest(&buy), &digest(&sell)), account);
    accuse(&unsettled, "not settled yet");
    let fence = ["venue", "fence", "--venue", "0", "--incarnation", "0"];
    market.refused("bob", &fence, "not_venue_owner");
    market.done("owner", &fence);
    market.refused("owner", &fence, "incarnation 0 is not ended twice");
    accuse(&unsettled, "never settled before its incarnation ended: claim it");
    let (buy, sell, fill) = (hex(&buy), hex(&sell), hex(&fill_of(3)));
    let claim = ["venue", "claim", "--report", &unsettled, "--buy", &buy, "--sell", &sell, "--fill", &fill];
    market.done("alice", &claim);
    market.refused("alice", &claim, "bad_claim");
    assert_eq!(market.client().venue(0).expect("there").bond, "9937");
    let had = market.balance(&account, "USD");
    let said = market.done("bob", &["venue", "accuse", "--report", &market.report(0, Digest([6; 32]), account)]);
    assert!(said.contains("venue 0 is convicted"), "{said}");
    assert_eq!(market.balance(&account, "USD"), had + 993, "a tenth of the bond, whoever accuses");
    let warned = text(&market.run("alice", &deposit("USD", "1")).stderr);
    assert!(warned.contains("warning: venue 0 was convicted"), "{warned}");
    let said = market.done("", &["venue", "keys", "--venue", "0"]);
    assert!(said.contains(&format!("incarnation 0: {report}; fenced in block")), "{said}");

    // The doors lay out the same operations, and refuse a field that they do not know.
    let prepared = |units: &str| {
        let operation =
            serde_json::json!({"type": "venue", "action": "deposit", "venue": 0, "asset": "USD", units: "5"});
        let body = serde_json::json!({"account": account.to_string(), "operation": operation}).to_string();
        let path = format!("{}/v1/transactions/prepare", market.node.server);
        let mut answer = agent().post(path).content_type("application/json").send(body).expect("an answer");
        answer.body_mut().read_json::<Value>().expect("JSON")
    };
    let shown = prepared("units");
    assert_eq!(shown["typed_data"]["primaryType"], "VenueDeposit", "{shown}");
    assert!(shown["says"].as_str().is_some_and(|says| says.contains("deposits 0.05 USD at venue 0")), "{shown}");
    assert!(prepared("unit")["error"]["message"].to_string().contains("units"));

    // From the home, too: the whole issue is accounted for, and money is nowhere else.
    let from_node = market.json("", &["venue", "audit"]);
    let home = market.owner.parent().and_then(Path::to_str).expect("a home");
    assert_eq!(market.json("", &["venue", "audit", "--home", home])["custody"], from_node["custody"]);
    assert_eq!(market.node.terminate().code(), Some(0));
}
