//! A wallet in a network that has stalled: the payment is never lost track of, and never made twice.

mod process;

use std::path::{Path, PathBuf};
use std::process::Output;

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

/// What the library hears of a running node: every channel, and a book that equals the one that is read.
#[test]
fn a_library_follows_blocks_markets_and_an_account() {
    use api::{BookBody, ChannelState, StreamMessage};
    use client::{Channel, LocalBook, NodeClient, Stream};

    let folder = TempDir::new().expect("a folder");
    let (node, key) = founded(&folder, &["--supply", "1000000"]);
    let output = walras().args(["wallet", "address", "--key"]).arg(&key).output().expect("walras runs");
    let owner = text(&output.stdout).trim().parse().expect("an address");
    let at = NodeClient::at(node.server.clone());
    let market = || "EUR/USD".to_string();
    let channels = [
        Channel::Blocks,
        Channel::Batches,
        Channel::Trades(Some(market())),
        Channel::Book(market()),
        Channel::Ticker(market()),
        Channel::Candles(market(), "1m".into()),
        Channel::Account(owner),
    ];
    let mut stream = Stream::open(&at, &channels.clone().map(|channel| (channel, None))).expect("a stream");
    let mut book = LocalBook::of(market());
    let mut begun = Vec::new();
    while begun.len() < channels.len() {
        if let StreamMessage::Snapshot(snapshot) = stream.wait().expect("a message").event {
            begun.push(snapshot.channel);
            if let ChannelState::Book(levels) = snapshot.state {
                book.take(levels).expect("whole");
            }
        }
    }
    assert_eq!(begun, channels.clone().map(|channel| channel.to_string()));

    for (sell, buy, limit) in
        [("EUR", "USD", "1.09"), ("EUR", "USD", "1.1"), ("USD", "EUR", "0.5"), ("USD", "EUR", "0.92")]
    {
        let offer = ["offer", "--sell", sell, "--buy", buy, "--amount", "1000", "--limit", limit];
        assert_eq!(told(&wallet(&node.server, &offer, Some(&key))).0, Some(0));
    }
    let mut heard = std::collections::BTreeSet::new();
    let all = ["account", "batch", "block", "book", "candle", "ticker", "trade"];
    while heard.len() < all.len() {
        match stream.wait().expect("a message").event {
            StreamMessage::Block(_) => drop(heard.insert("block")),
            StreamMessage::Batch(_) => drop(heard.insert("batch")),
            StreamMessage::Trade(_) => drop(heard.insert("trade")),
            StreamMessage::Ticker(_) => drop(heard.insert("ticker")),
            StreamMessage::Candle(_) => drop(heard.insert("candle")),
            StreamMessage::Account(_) => drop(heard.insert("account")),
            StreamMessage::Book(change) => {
                book.change(change).expect("it continues the book");
                heard.insert("book");
            }
            _ => {}
        }
    }
    assert_eq!(heard.into_iter().collect::<Vec<_>>(), all);
    let height = book.height();
    stream.unsubscribe(&channels[..3]).expect("sent");
    drop(stream);
    // It goes on from where it was, and is the node's book in the end.
    let mut stream = Stream::open(&at, &[(Channel::Book(market()), height)]).expect("a stream");
    let offer = ["offer", "--sell", "EUR", "--buy", "USD", "--amount", "2000", "--limit", "1.2"];
    assert_eq!(told(&wallet(&node.server, &offer, Some(&key))).0, Some(0));
    let whole: BookBody = at.get("/v1/markets/EUR/USD/book").expect("a book");
    while book.sells() != whole.sells {
        match stream.wait().expect("a message").event {
            StreamMessage::Book(change) => book.change(change).expect("it continues the book"),
            StreamMessage::Snapshot(_) => panic!("it could go on"),
            _ => {}
        }
    }
    assert_eq!(book.buys(), whole.buys);
    assert_eq!(node.terminate().code(), Some(0));
}

#[test]
fn a_library_logs_in_and_reads_the_history_of_its_account() {
    use api::{ChannelState, StreamMessage};
    use client::{Channel, ClientError, HistoryPage, NodeClient, Stream};
    use primitives::{ClientId, SecretKey};

    let folder = TempDir::new().expect("a folder");
    let (node, file) = founded(&folder, &["--supply", "1000000"]);
    let key = client::keystore::open_under(&file, "correct horse").expect("the issuer's key");
    let owner = key.public().address();
    let at = NodeClient::at(node.server.clone());
    let mut stream = Stream::open(&at, &[(Channel::Blocks, None)]).expect("a stream");
    // Another key is refused by name, and so is the channel without a login.
    let refused = stream.log_in(&owner, &SecretKey::from_seed([9; 32])).expect_err("another key");
    assert_eq!(refused.code(), Some("login_refused"), "{refused}");
    assert!(matches!(&refused, ClientError::Refused { server, .. } if *server == node.server), "{refused}");
    stream.log_in(&owner, &key).expect("its own key");
    stream.subscribe(&[(Channel::Orders(owner), None)]).expect("sent");
    let mut until = |is: &dyn Fn(&StreamMessage) -> bool| while !is(&stream.wait().expect("a message").event) {};
    until(&|event| matches!(event, StreamMessage::Snapshot(begun) if matches!(begun.state, ChannelState::Orders(_))));

    let offer = ["offer", "--sell", "EUR", "--buy", "USD", "--amount", "1000", "--limit", "1.1"];
    assert_eq!(told(&wallet(&node.server, &offer, Some(&file))).0, Some(0));
    until(&|event| matches!(event, StreamMessage::Orders(_)));
    let page = HistoryPage { limit: Some(1), ..HistoryPage::NEWEST };
    let orders = at.history_orders(&owner, &page).expect("a history");
    let number = orders.orders[0].sequence.parse().expect("a number");
    let fate = at.order_fate(&owner, number).expect("an answer").expect("it is known");
    assert_eq!((fate.status.as_ref(), fate.sold.as_str()), ("resting", "0"));
    assert_eq!(at.order_fate(&owner, number + 7).expect("an answer"), None);
    assert_eq!(at.order_fate_of_client(&owner, &ClientId([3; 16])).expect("an answer"), None);
    assert!(at.history_fills(&owner, Some(number), &page).expect("a history").fills.is_empty());
    assert!(at.history_transfers(&owner, &page).expect("a history").transfers.is_empty());
    assert_eq!(at.history_balances(&owner, &page).expect("a history").balances.len(), 1);
}

/// A home of one node with one asset of two decimals, and a fee of one unit.
fn solo(folder: &TempDir) -> (Process, PathBuf) {
    founded(folder, &["--supply", "1000"])
}

/// The same with other options of its founding.
fn founded(folder: &TempDir, options: &[&str]) -> (Process, PathBuf) {
    let home = folder.path().join("home");
    let assets = ["--asset", "USD:2", "--asset", "EUR:2", "--fee", "0.01"];
    let made = walras().arg("init").args(assets).args(options).arg("--home").arg(&home).output();
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
        assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
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
        assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
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

#[test]
fn a_pool_is_opened_provided_to_traded_with_and_left() {
    let folder = TempDir::new().expect("a folder");
    let (node, key) = founded(&folder, &["--supply", "1000000", "--pools"]);
    let done = |arguments: &[&str]| {
        let output = wallet(&node.server, arguments, Some(&key));
        let (code, said) = (output.status.code(), text(&output.stdout));
        assert_eq!(code, Some(0), "{arguments:?}: {said}{}", text(&output.stderr));
        said
    };
    let pool = |action, more: &[&str]| done(&[&["pool", action, "--pair", "USD/EUR"], more].concat());
    // Before it is signed: 1/256 of both amounts never comes back, whoever leaves.
    let open = wallet(&node.server, &["pool", "open", "--pair", "EUR/USD", "--amounts", "10000,10800"], Some(&key));
    let told = text(&open.stderr);
    assert!(told.contains("of these 39.07 EUR and 42.19 USD stay in the pool for ever"), "{told}");
    assert!(text(&open.stdout).contains("paid 10800 USD and 10000 EUR"), "{}", text(&open.stdout));
    assert!(pool("provide", &["--amounts", "108,100"]).contains("paid 106.94 USD and 99.01 EUR for 166110 shares"));
    // A hundred dollars at almost any price: the pool alone is on the other side.
    done(&["offer", "--sell", "USD", "--buy", "EUR", "--amount", "100", "--limit", "0.8", "--life", "one-batch"]);
    let (_, pools) = get(&agent(), &node.server, "/v1/pools");
    assert_eq!(pools["pools"][0]["reserve_a"], "1100694", "it bought them: {pools}");
    assert!(pool("leave", &["--all"]).contains("for 16877790 shares of the pool"));
    assert!(done(&["pool", "list"]).contains("holds shares of 0 pools"));
    assert_eq!(node.terminate().code(), Some(0));
}

/// An exact order is filled exactly, or says why not; then the command fails.
#[test]
fn an_exact_order_is_filled_exactly_or_says_why_not() {
    let folder = TempDir::new().expect("a folder");
    let (node, key) = founded(&folder, &["--supply", "10000000"]);
    let sent = |arguments: &[&str]| {
        let output = wallet(&node.server, arguments, Some(&key));
        (output.status.code(), text(&output.stdout).to_string() + &text(&output.stderr))
    };
    const BUY: [&str; 7] = ["exact", "--buy", "EUR", "--amount", "50", "--pay", "USD"];
    const SELL: [&str; 7] = ["exact", "--sell", "EUR", "--amount", "50", "--receive", "USD"];
    let (code, said) = sent(&[&BUY[..], &["--most", "60"]].concat());
    assert!(code == Some(1) && said.contains("there is no price"), "{said}");
    let rests = |sell, buy, limit| {
        let offer = ["offer", "--sell", sell, "--buy", buy, "--amount", "100000", "--limit", limit];
        assert_eq!(sent(&offer).0, Some(0));
    };
    // Whoever sells in part leaves room for an order of the same batch. Where blocks part the two, they are sent again.
    let meets = |(sell, buy): (&str, &str), exact: &[&str], words: &str| {
        let offer = ["offer", "--sell", sell, "--buy", buy, "--amount", "500", "--limit", "0.8", "--life", "one-batch"];
        std::thread::scope(|scope| {
            let other = scope.spawn(|| sent(&offer));
            let (code, said) = sent(exact);
            assert_eq!(other.join().expect("it ends").0, Some(0));
            assert_eq!(code == Some(0), said.contains(words), "{said}");
            code == Some(0)
        })
    };
    rests("EUR", "USD", "1.08");
    let most = [&BUY[..], &["--most", "60"]].concat();
    while !meets(("USD", "EUR"), &most, "for 50 EUR") {}
    // Both of an order beyond its bound and of one without a price everything returns.
    let (code, said) = sent(&[&SELL[..], &["--least", "60"]].concat());
    assert!(code == Some(1) && said.contains("not filled") && said.contains("50 EUR returned"), "{said}");
    let output = walras().args(["wallet", "address", "--key"]).arg(&key).output().expect("walras runs");
    let (_, offers) = get(&agent(), &node.server, &format!("/v1/accounts/{}/offers", text(&output.stdout).trim()));
    let id = offers["offers"][0]["id"].as_str().expect("it rests");
    assert_eq!(sent(&["cancel", "--offer", id]).0, Some(0));
    rests("USD", "EUR", "0.9");
    let least = [&SELL[..], &["--least", "50"]].concat();
    while !meets(("EUR", "USD"), &least, "sold 50 EUR for") {}
    let (code, said) = sent(&["exact", "--sell", "EUR", "--amount", "0.01", "--receive", "USD", "--least", "1"]);
    assert!(code == Some(1) && said.contains("of at least"), "{said}");
    let (code, said) = sent(&["exact", "--buy", "EUR", "--amount", "50", "--pay", "EUR", "--most", "60"]);
    assert!(code == Some(1) && said.contains("two different assets"), "{said}");
    assert_eq!(node.terminate().code(), Some(0));
}

/// A bot's key trades within its caps; its offers end when it is stopped, and nothing is left of it when it is revoked.
#[test]
fn a_session_key_trades_within_its_caps_until_it_is_stopped_and_revoked() {
    let folder = TempDir::new().expect("a folder");
    let (node, key) = founded(&folder, &["--supply", "1000000"]);
    let bot = folder.path().join("bot.json");
    assert!(walras().args(["wallet", "new", "--key"]).arg(&bot).output().expect("walras runs").status.success());
    let own = |arguments: &[&str]| {
        let output = wallet(&node.server, arguments, Some(&key));
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let file = bot.to_str().expect("text");
    let output = walras().args(["wallet", "address", "--key"]).arg(&key).output().expect("walras runs");
    let account = text(&output.stdout).trim().to_string();
    let of_bot = |arguments: &[&str]| {
        let signed = [arguments, &["--session", file, "--account", &account]].concat();
        let output = wallet(&node.server, &signed, None);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let offers = || {
        let (_, body) = get(&agent(), &node.server, &format!("/v1/accounts/{account}/offers"));
        body["offers"].as_array().map_or(0, Vec::len)
    };
    let add = ["session", "add", "--session-key", file, "--cap", "USD:500", "--cap", "EUR:120"];
    assert_eq!(own(&add).0, Some(0));
    let listed = own(&["session", "list"]).1;
    assert!(listed.contains("slot 1: ") && listed.contains("may trade") && listed.contains("of 500 USD"), "{listed}");
    let offer = |amount| ["offer", "--sell", "EUR", "--buy", "USD", "--amount", amount, "--limit", "2"];
    let (code, said) = of_bot(&offer("100"));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(offers(), 1);
    let (code, said) = of_bot(&offer("100"));
    assert!(code == Some(1) && said.contains("needs 100 EUR and its cap leaves 20 EUR"), "beyond its cap: {said}");
    let (code, said) = of_bot(&["pay", "--to", RECEIVER, "--asset", "USD", "--amount", "1"]);
    assert!(code == Some(1) && said.contains("slot 1"), "it pays nobody: {said}");
    assert!(own(&["session", "list"]).1.contains("used 100 EUR"), "{}", own(&["session", "list"]).1);
    let alive = |how: &[&str]| of_bot(&[&["session", "alive", "--slot", "1"], how].concat());
    assert_eq!(alive(&["--stop"]).0, Some(0));
    assert_eq!(offers(), 0, "its offers end with the block");
    let (code, said) = of_bot(&offer("50"));
    assert!(code == Some(1) && said.contains("slot 1"), "it is stopped: {said}");
    assert_eq!(alive(&["--heights", "1000"]).0, Some(0));
    assert_eq!(of_bot(&offer("50")).0, Some(0));
    assert_eq!(own(&["session", "revoke", "--slot", "1"]).0, Some(0));
    assert_eq!(offers(), 0);
    assert!(own(&["session", "list"]).1.contains("has 0 session keys"));
    let (code, said) = of_bot(&offer("50"));
    assert!(code != Some(0), "{said}");
    assert_eq!(node.terminate().code(), Some(0));
}
