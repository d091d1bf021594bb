//! A wallet in a network that has stalled: the payment is never lost track of, and never made twice.

mod process;

use std::path::{Path, PathBuf};
use std::process::Output;

use client::NodeClient;
use primitives::venue::{
    FillReport, OrderLife, OrderNumber, SelfTradeRule, Settle, SettledFill, SettledOrder, VenueOperation, VenueOrder,
    VenueSide,
};
use primitives::{Address, Body, Digest, Operation, SecretKey, to_hex};
use process::{Process, agent, get, walras};
use serde_json::Value;
use tempfile::TempDir;

const RECEIVER: &str = "0x1111111111111111111111111111111111111111";
const SETTINGS: [(&str, &str); 1] = [("WALRAS_BLOCKS__INTERVAL_MS", "20")];

/// Homes of four validators, and the issuer's key.
struct Network(TempDir);

impl Network {
    fn new() -> Network {
        let folder = TempDir::new().expect("a folder");
        let mut init = walras();
        init.args(["init", "--validators", "4", "--asset", "USD:2", "--supply", "1000"]);
        for _ in 0..4 {
            init.arg("--address").arg(sockets::free_address().expect("a free port").to_string());
        }
        let output = init.arg("--home").arg(folder.path()).output().expect("walras runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        Network(folder)
    }

    fn start(&self, index: usize) -> Process {
        Process::start(&self.0.path().join(format!("validator-{index}")), &SETTINGS)
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("issuer-key.json")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wallet(server: &str, arguments: &[&str], key: Option<&Path>) -> Output {
    let mut command = walras();
    command.arg("wallet").args(arguments).args(["--server", server]);
    if let Some(key) = key {
        command.arg("--key").arg(key);
    }
    command.output().expect("walras runs")
}

/// Its exit code and its output for people.
fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), text(&output.stdout))
}

fn wait_until(what: &str, node: &Process, holds: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{what}: {}", node.log());
}

#[test]
fn a_payment_in_a_stalled_network_is_not_lost() {
    let network = Network::new();
    let nodes = [network.start(0), network.start(1)];
    let key = network.key();
    let (first, second) = (nodes[0].server.clone(), nodes[1].server.clone());
    wait_until("two validators are connected", &nodes[0], || {
        get(&agent(), &first, "/v1/status").1["stalled"]
            .as_str()
            .is_some_and(|stalled| stalled.contains("2 of 4 validators connected, 3 needed"))
    });

    let pay = ["pay", "--to", RECEIVER, "--asset", "USD", "--amount", "12.50"];
    let output = wallet(&first, &[&pay[..], &["--patience", "3"]].concat(), Some(&key));
    let (code, said) = told(&output);
    assert_eq!(code, Some(3), "{said}{}", text(&output.stderr));
    let id =
        said.lines().next().and_then(|line| line.strip_prefix("transaction ")).expect("the id comes first").to_string();
    assert!(said.contains("is pending. Stalled: 2 of 4 validators connected, 3 needed"), "{said}");
    assert!(said.contains("walras wallet status"), "{said}");
    let waiting = text(&output.stderr);
    assert!(waiting.contains("waiting 2 s: Stalled: 2 of 4 validators connected"), "{waiting}");

    // A status query reports it as pending.
    let (code, said) = told(&wallet(&first, &["status", &id], None));
    assert!(code == Some(3) && said.contains("is pending"), "{code:?} {said}");
    let (code, said) = told(&wallet(&first, &["status", &format!("0x{}", "77".repeat(32))], None));
    assert!(code == Some(4) && said.contains("unknown to this node"), "{code:?} {said}");
    // The same payment by mistake is refused.
    let output = wallet(&first, &pay, Some(&key));
    let refused = text(&output.stderr);
    assert!(output.status.code() == Some(1) && refused.contains(&id) && refused.contains("--again"), "{refused}");
    // The same transaction may also be sent to another validator.
    let (code, said) = told(&wallet(&second, &["retry", &id, "--no-wait"], Some(&key)));
    assert!(code == Some(0) && said.contains(&id), "{code:?} {said}");

    let third = network.start(2);
    wait_until("the payment is committed", &third, || wallet(&second, &["status", &id], None).status.code() == Some(0));
    let (_, said) = told(&wallet(&second, &["status", &id], None));
    assert!(said.contains(&format!("paid 12.5 USD to {RECEIVER}")), "{said}");
    let (code, said) = told(&wallet(&first, &["retry", &id], Some(&key)));
    assert!(code == Some(0) && said.contains("committed in block"), "{code:?} {said}");
    let json = wallet(&second, &["status", &id, "--json"], None);
    let body: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&body["status"], &body["operation"]["amount"]), (&"committed".into(), &"1250".into()));
    let (_, account) = get(&agent(), &second, &format!("/v1/accounts/{RECEIVER}"));
    assert_eq!(account["balances"][0]["available"], "1250", "paid once");

    // Its result is known, so nothing is stored, and the next payment is another transaction.
    let output = wallet(&second, &["retry", &id], Some(&key));
    assert!(text(&output.stderr).contains("its result is known"), "{}", text(&output.stderr));
    let (code, said) = told(&wallet(&second, &pay, Some(&key)));
    assert!(code == Some(0) && !said.contains(&id), "{code:?} {said}");
    let output = wallet(&second, &["pay", "--to", RECEIVER, "--asset", "USD", "--amount", "5000"], Some(&key));
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("overdraft"), "{}", text(&output.stderr));
}

/// Events of an account are reported in the decimals of its assets.
#[test]
fn an_account_is_watched_in_decimals() {
    use std::io::{BufRead, BufReader};

    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("home");
    let made = walras().args(["init", "--asset", "USD:2", "--supply", "1000", "--home"]).arg(&home).output();
    assert!(made.expect("walras runs").status.success());
    let node = Process::start(&home, &SETTINGS);
    let key = home.join("issuer-key.json");
    let mut command = walras();
    command.args(["wallet", "watch", "--server", &node.server, "--key"]).arg(&key);
    let mut watching = command.stdout(std::process::Stdio::piped()).spawn().expect("walras starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("piped")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    assert!(line().ends_with("holds 1000 USD"));
    let pay = ["pay", "--to", RECEIVER, "--asset", "USD", "--amount", "12.5"];
    assert_eq!(told(&wallet(&node.server, &pay, Some(&key))).0, Some(0));
    // The payment, and a fee of one unit.
    let told = line();
    assert!(told.ends_with("1 own transactions; holds 987.49 USD"), "{told}");
    watching.kill().expect("it runs");
    watching.wait().expect("it ended");
    assert_eq!(node.terminate().code(), Some(0));
}

/// A home of one node with one asset of two decimals, and a fee of one unit.
fn solo(folder: &TempDir) -> (Process, PathBuf) {
    let home = folder.path().join("home");
    let assets = ["--asset", "USD:2", "--asset", "EUR:2", "--fee", "0.01", "--supply", "1000"];
    let made = walras().arg("init").args(assets).arg("--home").arg(&home).output();
    assert!(made.expect("walras runs").status.success());
    (Process::start(&home, &SETTINGS), home.join("issuer-key.json"))
}

#[test]
fn payments_of_one_key_that_are_sent_at_once_are_all_made() {
    const AT_ONCE: usize = 6;
    let folder = TempDir::new().expect("a folder");
    let (node, key) = solo(&folder);
    let pay = |n: usize| {
        let (server, key) = (node.server.clone(), key.clone());
        std::thread::spawn(move || {
            let amount = format!("0.0{n}");
            wallet(&server, &["pay", "--to", RECEIVER, "--asset", "USD", "--amount", &amount], Some(&key))
        })
    };
    let sent: Vec<_> = (1..=AT_ONCE).map(pay).collect();
    for one in sent {
        let output = one.join().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let (_, account) = get(&agent(), &node.server, &format!("/v1/accounts/{RECEIVER}"));
    assert_eq!(account["balances"][0]["available"], (1..=AT_ONCE).sum::<usize>().to_string());
}

/// Another wallet with the same key, on another machine, sees neither the lock nor the stored transactions.
#[test]
fn a_number_that_another_wallet_used_is_replaced() {
    let folder = TempDir::new().expect("a folder");
    let (node, key) = solo(&folder);
    let copies: Vec<PathBuf> = (0..3).map(|n| folder.path().join(format!("copy-{n}.json"))).collect();
    for copy in &copies {
        std::fs::copy(&key, copy).expect("copied");
    }
    let pay = |n: usize, key: &PathBuf| {
        let (server, key) = (node.server.clone(), key.clone());
        std::thread::spawn(move || {
            let amount = format!("0.0{n}");
            wallet(&server, &["pay", "--to", RECEIVER, "--asset", "USD", "--amount", &amount], Some(&key))
        })
    };
    let sent: Vec<_> = (1..).zip(&copies).map(|(n, copy)| pay(n, copy)).collect();
    for one in sent {
        let output = one.join().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}

#[test]
fn a_refused_transaction_is_told_as_refused_with_what_is_missing() {
    let folder = TempDir::new().expect("a folder");
    let (node, key) = solo(&folder);
    let alice = folder.path().join("alice.json");
    assert!(walras().args(["wallet", "new", "--key"]).arg(&alice).output().expect("walras runs").status.success());
    let output = walras().args(["wallet", "address", "--key"]).arg(&alice).output().expect("walras runs");
    let to = text(&output.stdout).trim().to_string();
    let pay = ["pay", "--to", &to, "--asset", "EUR", "--amount", "10"];
    assert_eq!(told(&wallet(&node.server, &pay, Some(&key))).0, Some(0));
    // Alice has EUR, but nothing for the fee.
    let back = ["pay", "--to", RECEIVER, "--asset", "EUR", "--amount", "1"];
    let output = wallet(&node.server, &back, Some(&alice));
    let refused = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{refused}");
    assert!(refused.contains("it needs 0.01 USD for its fee and has 0 USD"), "{refused}");
    let id = text(&output.stdout).trim().strip_prefix("transaction ").expect("the id").to_string();
    let (code, said) = told(&wallet(&node.server, &["status", &id], None));
    assert!(code == Some(1) && said.starts_with("refused: ") && said.contains("overdraft"), "{code:?} {said}");
    assert!(!said.contains("retry") && !said.contains("lost"), "{said}");
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
        let signature = Some(secret.sign(&order.signing_bytes(&self.network(), 0)));
        SettledOrder { key: secret.public(), order, signature }
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
        let body: api::TransactionBody = node.post("/v1/transactions?wait=committed", &bytes).expect("taken");
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
}
