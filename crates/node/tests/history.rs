//! The history of accounts over the life of a node. It is there again after a stop, follows blocks that were made while
//! it was off, and says from where on it knows.

use std::path::Path;
use std::sync::{PoisonError, RwLock};

use ledger::{Genesis, Listing};
use node::{Config, Node};
use primitives::{AssetId, Body, ClientId, Fraction, Life, Operation, SecretKey, Transaction};
use serde_json::{Value, json};

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn genesis() -> Genesis {
    let issuer = key(9).public().address();
    let assets = vec![Listing::new("USD", 2, issuer), Listing::new("EUR", 2, issuer)];
    let balances = (1..=2).flat_map(|p| (0..2).map(move |a| (key(p).public().address(), AssetId(a), 1_000_000)));
    let (epsilon, mu) = (Fraction::ZERO, Fraction::power_of_two(10));
    Genesis { chain: 7, fee: 1, epsilon, mu, assets, balances: balances.collect(), ..Genesis::default() }
}

fn config() -> Config {
    let mut config = Config::default();
    config.http.listen.set_port(0);
    config.blocks.interval_ms = 5;
    config
}

fn signed(person: u8, sequence: u64, operation: Operation) -> Transaction {
    let account = key(person).public().address();
    Body { chain: 7, account, sequence, until: 50_000, operation }.sign(&genesis().digest(), &key(person))
}

fn offer(person: u8, sequence: u64, sell: u32, amount: u64) -> Transaction {
    let (sell, buy, limit) = (AssetId(sell), AssetId(1 - sell), "0.9".parse().expect("a price"));
    let client = ClientId([sequence as u8; 16]);
    signed(person, sequence, Operation::CreateOffer { sell, buy, amount, limit, life: Life::Rests, client })
}

fn pay(sequence: u64) -> Transaction {
    signed(1, sequence, Operation::Pay { to: key(2).public().address(), asset: AssetId(1), amount: 10 + sequence })
}

/// A process that begins has all open files of this one for a moment, and with them the lock of a store: no store may
/// be opened again meanwhile. Tests of this file run side by side.
static BEGINS: RwLock<()> = RwLock::new(());

/// Begins or ends a process while no node of these tests runs.
#[cfg(feature = "postgres")]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    let _alone = BEGINS.write().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Runs a node over a directory: commits these transactions one block after the other, and asks these paths.
fn run(config: Config, data: &Path, transactions: Vec<Transaction>, paths: &[String]) -> Vec<Value> {
    let _runs = BEGINS.read().unwrap_or_else(PoisonError::into_inner);
    let (runtime, paths) = (tokio::runtime::Runtime::new().expect("threads"), paths.to_vec());
    runtime.block_on(async {
        let node = Node::start(config, &genesis(), data, None).await.expect("starts");
        for transaction in transactions {
            let answers = node.exchange().submit(vec![transaction], true).expect("open").await.expect("an answer");
            match answers.into_iter().next() {
                Some(node::Answer::Pending(_, Some(block))) => drop(block.await.expect("a block")),
                other => panic!("{other:?}"),
            }
        }
        let (server, height) = (node.address(), node.exchange().read(ledger::Ledger::height));
        // The index follows the blocks on a thread of its own, if there is one.
        let ask = move || {
            let is_behind = || get(server, &of(1, "orders"))["height"].as_u64().is_some_and(|indexed| indexed < height);
            while is_behind() {
                std::thread::yield_now();
            }
            paths.iter().map(|path| get(server, path)).collect()
        };
        let answers = tokio::task::spawn_blocking(ask).await.expect("answered");
        node.stop().await;
        answers
    })
}

fn get(server: std::net::SocketAddr, path: &str) -> Value {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(server).expect("listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    serde_json::from_str(answer.split_once("\r\n\r\n").expect("a head").1).expect("JSON")
}

fn of(person: u8, what: &str) -> String {
    format!("/v1/accounts/{}/{what}", key(person).public().address())
}

/// All that is asked about person 1.
fn all() -> Vec<String> {
    ["orders", "fills", "transfers", "balances", "orders/1"].map(|what| of(1, what)).to_vec()
}

fn trading() -> Vec<Transaction> {
    vec![offer(1, 1, 0, 100_000), offer(2, 1, 1, 40_000), pay(2), offer(2, 2, 1, 90_000), pay(3)]
}

#[test]
fn a_node_that_restarts_has_the_history_that_it_had() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let before = run(config(), &data, trading(), &all());
    let [orders, fills, transfers, balances, order] = &before[..] else { panic!("five answers") };
    assert_eq!(orders["orders"].as_array().map(Vec::len), Some(1), "{orders}");
    assert_eq!(fills["fills"].as_array().map(Vec::len), Some(2), "{fills}");
    assert_eq!(transfers["transfers"].as_array().map(Vec::len), Some(2), "{transfers}");
    assert_eq!((&order["status"], &order["sold"]), (&json!("ended"), &json!("100000")), "{order}");
    let newest = &balances["balances"][0];
    assert_eq!(newest["balances"][0], json!({"asset": "USD", "available": "899997", "locked": "0"}), "{balances}");
    assert_eq!(run(config(), &data, vec![], &all()), before);
    // Rows of before and after a restart are one history.
    let more = run(config(), &data, vec![pay(4)], &all());
    assert_eq!(more[2]["transfers"].as_array().map(Vec::len), Some(3), "{}", more[2]);
    assert_eq!(more[2]["known_from"], 1);
}

#[test]
fn an_index_that_was_off_or_lost_is_made_from_the_blocks_that_are_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let before = run(config(), &data, trading(), &all());
    let mut off = config();
    off.history.keep = false;
    let none = run(off, &data, vec![pay(4)], &[of(1, "orders")]);
    assert_eq!(none[0]["error"]["code"], "no_history");
    let followed = run(config(), &data, vec![], &all());
    assert_eq!(followed[1], with_height(&before[1], &followed[1]), "the fills are those of before");
    assert_eq!(followed[2]["transfers"].as_array().map(Vec::len), Some(3));
    std::fs::remove_dir_all(data.join("history")).expect("it was there");
    let made = run(config(), &data, vec![], &all());
    assert_eq!((&made[0], &made[1], &made[2]), (&followed[0], &followed[1], &followed[2]));
}

#[cfg(feature = "postgres")]
#[test]
fn a_history_in_postgres_is_the_one_in_files() {
    let Some(mut server) = apart(relational::TestServer::start) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut sql = config();
    sql.history.postgres = Some(server.address());
    let in_files = run(config(), &data, trading(), &all());
    let in_postgres = run(sql.clone(), &data, vec![], &all());
    for (files, postgres) in in_files.iter().zip(&in_postgres).take(3) {
        assert_eq!(files, postgres);
    }
    assert_eq!(in_files[4], in_postgres[4], "the definite answer about an order");
    // The database ends and begins while the node is off, and blocks are made that it does not hear of.
    apart(|| server.crash());
    let in_files = run(config(), &data, vec![pay(4)], &all());
    let in_postgres = run(sql.clone(), &data, vec![], &all());
    assert_eq!((&in_files[0], &in_files[1], &in_files[2]), (&in_postgres[0], &in_postgres[1], &in_postgres[2]));
    // What is made while it listens has balances, too.
    let more = run(sql.clone(), &data, vec![pay(5)], &all());
    assert_eq!(more[3]["balances"][0]["balances"][1]["asset"], "EUR", "{}", more[3]);
    // Without the database the node runs, and says so.
    sql.history.postgres = Some("host=/nowhere user=walras dbname=walras".into());
    let without = run(sql, &data, vec![pay(6)], &[of(1, "orders"), "/v1/status".into()]);
    assert_eq!(without[0]["error"]["code"], "history_failed", "{}", without[0]);
    assert!(without[1]["height"].as_u64().is_some_and(|height| height > 6));
    apart(|| drop(server));
}

/// An answer as it would be at another's height.
fn with_height(answer: &Value, other: &Value) -> Value {
    let mut answer = answer.clone();
    answer["height"] = other["height"].clone();
    answer
}

#[test]
fn a_damaged_index_does_not_stop_the_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    run(config(), &data, trading(), &[]);
    let is_run = |path: &std::path::PathBuf| path.extension().is_some_and(|of| of == "run");
    let files = std::fs::read_dir(data.join("history")).expect("an index").map(|entry| entry.expect("a file").path());
    let run_file = files.into_iter().find(is_run).expect("a run");
    let mut bytes = std::fs::read(&run_file).expect("readable");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&run_file, bytes).expect("written");
    let answers = run(config(), &data, vec![pay(4)], &[of(1, "orders"), "/v1/status".into()]);
    assert_eq!(answers[0]["error"]["code"], "history_failed");
    assert!(answers[1]["height"].as_u64().is_some_and(|height| height > 5));
}

#[test]
fn where_blocks_are_gone_the_history_begins_again_and_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut few = config();
    (few.store.checkpoint_blocks, few.store.keep_blocks) = (2, 1);
    few.history.keep = false;
    // What is kept is forgotten by whole files: several starts make several files.
    for first in [1, 11, 21] {
        run(few.clone(), &data, (first..first + 10).map(pay).collect(), &[]);
    }
    few.history.keep = true;
    let answers = run(few, &data, vec![pay(31)], &[of(1, "transfers"), of(1, "transfers?since=1")]);
    let known_from = answers[0]["known_from"].as_u64().expect("a height");
    if known_from > 1 {
        assert_eq!(answers[1]["error"]["code"], "history_gone", "{}", answers[1]);
        assert!(answers[0]["transfers"].as_array().is_some_and(|rows| !rows.is_empty()));
    } else {
        panic!("the store has forgotten no block: {answers:?}");
    }
}

/// Two bodies of one number: the one that ends later takes the other's place, and whoever waits for that is told so at
/// once, however long the next block takes.
#[test]
fn who_waits_for_a_displaced_transaction_is_told_what_displaced_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let mut slow = config();
    slow.blocks.interval_ms = 1_000_000;
    runtime.block_on(async {
        let node = Node::start(slow, &genesis(), &dir.path().join("data"), None).await.expect("starts");
        let (first, account) = (pay(1), key(1).public().address());
        let operation = first.body.operation.clone();
        let later = Body { chain: 7, account, sequence: 1, until: 50_001, operation };
        let later = later.sign(&genesis().digest(), &key(1));
        let (before, by) = (first.id(), later.id());
        let submit = |one| node.exchange().submit(vec![one], true).expect("open");
        let waits = match submit(first).await.expect("an answer").pop() {
            Some(node::Answer::Pending(_, Some(receiver))) => receiver,
            other => panic!("{other:?}"),
        };
        assert!(matches!(submit(later).await.expect("an answer")[0], node::Answer::Pending(..)));
        let told = waits.await.expect("an answer");
        assert!(matches!(told, node::Awaited::Displaced(id) if id == by), "{told:?}");
        let server = node.address();
        let ask = move || get(server, &format!("/v1/transactions/{before}"));
        let answer = tokio::task::spawn_blocking(ask).await.expect("answered");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(&by.to_string()) && message.contains("taken its place"), "{message}");
        node.stop().await;
    });
}
