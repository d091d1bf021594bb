//! Members of the lane with several shards each: in their nodes, and as processes of their own that are killed.

mod process;
mod purses;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lane::{LaneClient, LaneDirectory};
use payments::{FastReceipt, Holding, Output, OutputId, OutputProof, PaymentView, Recipient, RootCache, build_payment};
use primitives::{Body, Operation, SecretKey};
use process::{Process, agent, get, walras};
use purses::{Network, file, text};
use serde_json::{Value, json};

const VALIDATORS: usize = 4;
const PATIENT: [&str; 2] = ["--lane-patience", "600"];
/// Nothing is measured here but what is printed; the tests only have to end.
const PATIENCE: Duration = Duration::from_secs(600);

/// A shard in a process of its own. When dropped, it gets SIGKILL.
struct Shard {
    child: Child,
    home: std::path::PathBuf,
    number: u16,
}

impl Shard {
    fn command(home: &Path, number: u16, addresses: &str) -> Command {
        let mut command = walras();
        command.args(["shard", "--shard", &number.to_string(), "--home"]).arg(home);
        command.env("WALRAS_LANE__ADDRESSES", addresses).env("RUST_LOG", "info").stdout(Stdio::piped());
        command
    }

    /// Starts a shard and waits until it listens for its node.
    fn start(home: &Path, number: u16, addresses: &str) -> Shard {
        let log = File::options().create(true).append(true).open(home.join(format!("shard-{number}.log")));
        let mut child =
            Shard::command(home, number, addresses).stderr(log.expect("a log")).spawn().expect("walras starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let shard = Shard { child, home: home.into(), number };
        assert!(line.contains("waits for its node"), "{line}{}", shard.log());
        shard
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.join(format!("shard-{}.log", self.number))).unwrap_or_default()
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration in which shards that run apart listen for their node where nobody else does.
fn with_free_ports(config: &str) -> String {
    let mut parts = config.split("address = \"127.0.0.1:");
    let first = parts.next().expect("a part").to_string();
    parts.fold(first, |text, part| {
        let (_, rest) = part.split_once('"').expect("the end of an address");
        format!("{text}address = \"{}\"{rest}", sockets::free_address().expect("a free port"))
    })
}

/// A network whose shards are processes of their own.
struct Apart {
    network: Network,
    shards: Vec<Vec<Shard>>,
}

impl Apart {
    fn new(count: u16, epoch_heights: u64) -> Apart {
        let shards = count.to_string();
        let network = Network::founded(VALIDATORS, epoch_heights, &["--apart", "--shards", &shards], |_| {});
        let mut apart = Apart { network, shards: Vec::new() };
        // The ports that `init` chose may be in use on this machine.
        for member in 0..VALIDATORS {
            apart.network.nodes.remove(0).terminate();
            let path = apart.network.home(member).join("walras.toml");
            std::fs::write(&path, with_free_ports(&file(&path))).expect("written");
            let own = (0..count).map(|shard| Shard::start(&path.with_file_name(""), shard, &apart.network.addresses));
            let own = own.collect();
            apart.shards.push(own);
            let node = apart.network.start(member);
            apart.network.nodes.push(node);
        }
        apart
    }

    fn kill_shard(&mut self, member: usize, shard: usize) {
        drop(self.shards[member].remove(shard));
    }

    fn start_shard(&mut self, member: usize, shard: usize) {
        let started = Shard::start(&self.network.home(member), shard as u16, &self.network.addresses);
        self.shards[member].insert(shard, started);
    }

    /// What went on, if something did not.
    fn logs(&self) -> String {
        let shards = self.shards.iter().flatten().map(Shard::log);
        self.network.nodes.iter().map(Process::log).chain(shards).collect::<Vec<_>>().join("\n--\n")
    }

    fn stop(mut self) -> Network {
        self.network.stop();
        self.shards.clear();
        self.network
    }
}

fn address(network: &Network, purse: &str) -> String {
    network.pay(purse, &["address"])["address"].as_str().expect("an address").to_string()
}

/// Makes two purses, of which the first has so many EUR on the lane.
fn begin(network: &Network, amount: &str) {
    let issuer = network.path("issuer-key.json");
    network.pay("alice", &["new"]);
    network.pay("bob", &["new"]);
    let key = issuer.to_str().expect("text");
    let deposited = network.pay("alice", &["deposit", "--key", key, "--asset", "EUR", "--amount", amount]);
    assert_eq!(deposited["spendable"], true, "{deposited}");
}

/// One EUR goes from the first purse to the second one.
fn pay_one(network: &Network, receipt: &str) {
    let to = address(network, "bob");
    let order = ["send", "--to", &to, "--asset", "EUR", "--amount", "1", "--receipt", receipt, "--no-settle"];
    network.pay("alice", &[&order[..], &PATIENT].concat());
    let received = network.pay("bob", &[&["receive", receipt][..], &PATIENT].concat());
    assert_eq!(received["received"][0]["amount"], "100", "{received}");
}

#[test]
fn members_with_several_shards_in_their_nodes_pay() {
    let mut network = Network::founded(VALIDATORS, 100_000, &["--shards", "3"], |_| {});
    let (_, lane) = get(&agent(), network.server(), "/v1/lane");
    let counts = lane["addresses"].as_array().expect("members").iter().map(|of| of.as_array().map(Vec::len));
    assert_eq!(counts.collect::<Vec<_>>(), [Some(3); VALIDATORS]);
    for shard in 0..3 {
        let key = network.home(2).join(format!("data/lane/0/{shard}/shard-key"));
        assert!(std::fs::read(&key).expect("a key of its own").len() > 32, "it is encrypted");
    }
    begin(&network, "20");
    // Each payment's change has a key of its own, so all shards get to sign some.
    (0..6).for_each(|number| pay_one(&network, &format!("{number}.txt")));
    assert_eq!(network.balance("bob", "EUR").0, 600);
    network.stop();
    let audited = network.audit(VALIDATORS);
    let logs = audited["logs"].as_u64().expect("a number");
    assert!(logs >= 3 * VALIDATORS as u64, "{audited}");
}

#[test]
fn payments_go_on_while_shards_and_nodes_are_killed_and_no_unit_is_lost() {
    let mut apart = Apart::new(2, 100_000);
    begin(&apart.network, "50");
    pay_one(&apart.network, "0.txt");
    for round in 0..4 {
        // One member is without a shard, then another one without its node: a quorum of the others signs.
        let (member, shard) = (round % VALIDATORS, round % 2);
        apart.kill_shard(member, shard);
        pay_one(&apart.network, &format!("{round}a.txt"));
        apart.start_shard(member, shard);
        let other = 1 + round % (VALIDATORS - 1);
        apart.network.nodes.remove(other);
        pay_one(&apart.network, &format!("{round}b.txt"));
        let node = apart.network.start(other);
        apart.network.nodes.insert(other, node);
        pay_one(&apart.network, &format!("{round}c.txt"));
    }
    // Every shard and node has started again: all four sign, so any one may be silent.
    apart.kill_shard(3, 0);
    apart.kill_shard(3, 0);
    pay_one(&apart.network, "last.txt");
    assert_eq!(apart.network.balance("bob", "EUR").0, 1_400, "{}", apart.logs());
    let issuer = apart.network.path("issuer-key.json");
    let issuer = issuer.to_str().expect("text");
    let redeem = ["redeem", "--key", issuer, "--asset", "EUR", "--amount", "4"];
    apart.network.pay("bob", &[&redeem[..], &PATIENT].concat());
    let (_, lane) = get(&agent(), apart.network.server(), "/v1/lane");
    let eur = lane["assets"].as_array().expect("assets").iter().find(|asset| asset["asset"] == "EUR").expect("EUR");
    assert_eq!(eur["escrow"], "4600", "50 went in and 4 came back");
    let network = apart.stop();
    network.audit(VALIDATORS);
}

/// Each epoch has fresh keys, which only the shards have; a shard that is not there costs its range and no other.
#[test]
fn shards_that_run_apart_make_their_keys_of_each_epoch() {
    let mut apart = Apart::new(2, 150);
    begin(&apart.network, "20");
    apart.network.pass_until_epoch(1);
    pay_one(&apart.network, "1.txt");
    apart.kill_shard(2, 1);
    apart.network.pass_until_epoch(2);
    let (_, lane) = get(&agent(), apart.network.server(), "/v1/lane");
    assert_eq!(lane["epoch"], 2, "{}", apart.logs());
    pay_one(&apart.network, "2.txt");
    // Money is renewed in the epoch after its own.
    apart.network.pay("bob", &[&["settle"][..], &PATIENT].concat());
    // It is back: it signs nothing in an epoch for which it has offered no key, and makes the next one's.
    apart.start_shard(2, 1);
    apart.network.pass_until_epoch(3);
    pay_one(&apart.network, "3.txt");
    assert_eq!(apart.network.balance("bob", "EUR").0, 300, "{}", apart.logs());
    let key = |epoch: u64| apart.network.home(2).join(format!("data/lane/{epoch}/1/shard-key"));
    assert!(key(3).exists(), "{}", apart.logs());
    let network = apart.stop();
    network.audit(VALIDATORS);
}

#[test]
fn a_shard_is_started_once_and_only_as_its_node_knows_it() {
    let mut apart = Apart::new(1, 100_000);
    let home = apart.network.home(1);
    let addresses = apart.network.addresses.clone();
    let refused = |number: u16| {
        let output = Shard::command(&home, number, &addresses).output().expect("walras runs");
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let second = refused(0);
    assert!(second.contains("is used by another process"), "{second}");
    let unknown = refused(1);
    assert!(unknown.contains("numbered from 0"), "{unknown}");
    apart.kill_shard(1, 0);
    let path = home.join("walras.toml");
    let config = file(&path);
    let (before, rest) = config.rsplit_once("key = \"").expect("a key");
    let (_, after) = rest.split_once('"').expect("the end of a key");
    std::fs::write(&path, format!("{before}key = \"0x{}\"{after}", "0".repeat(64))).expect("written");
    let other = refused(0);
    assert!(other.contains("lists another key"), "{other}");
    std::fs::write(&path, &config).expect("written");
    apart.start_shard(1, 0);
    begin(&apart.network, "5");
    pay_one(&apart.network, "1.txt");
    apart.stop();
}

/// What `walras shard` says, which must succeed.
fn shard_command(network: &Network, words: &[&str], member: usize) -> Value {
    let mut command = walras();
    command.arg("shard").args(words).arg("--home").arg(network.home(member)).arg("--json");
    let output = command.output().expect("walras runs");
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The keys that a member has registered for the epochs that count, by epoch.
fn registered(network: &Network, member: usize) -> BTreeMap<u64, usize> {
    let (_, lane) = get(&agent(), network.server(), "/v1/lane");
    let all = lane["registrations"].as_array().expect("a list").clone();
    let own = all.iter().filter(|of| of["member"] == member);
    own.map(|of| (of["epoch"].as_u64().expect("a number"), of["keys"].as_array().expect("keys").len())).collect()
}

/// Waits for an epoch, and renews the payer's money there: it is spent in its own epoch and the next one.
fn pass(network: &Network, epoch: u64) {
    network.pass_until_epoch(epoch);
    network.pay("alice", &[&["settle"][..], &PATIENT].concat());
}

/// Passes epochs until the present one has so many keys of a member.
fn pass_until_registered(network: &Network, member: usize, keys: usize) -> u64 {
    loop {
        let (_, lane) = get(&agent(), network.server(), "/v1/lane");
        let epoch = lane["epoch"].as_u64().expect("a number");
        if registered(network, member).get(&epoch) == Some(&keys) {
            return epoch;
        }
        pass(network, epoch + 1);
    }
}

/// The number of shards is a fact of each epoch; purses follow the registered keys.
#[test]
fn a_member_adds_a_shard_and_drains_it_again() {
    let mut network = Network::new(VALIDATORS, 150);
    network.write_addresses();
    (0..VALIDATORS).for_each(|member| network.start_again(member));
    begin(&network, "30");
    let added = shard_command(&network, &["add"], 1);
    assert_eq!((&added["shard"], &added["registers"]), (&json!(1), &json!(2)), "{added}");
    network.start_again(1);
    // The node that purses ask lists one shard of member 1: the other members sign for the owners of the other one.
    let first = pass_until_registered(&network, 1, 2);
    (0..2).for_each(|number| pay_one(&network, &format!("a{number}.txt")));
    // Its operator learns the address. Now all members but one make a quorum, so both shards of member 1 must sign.
    let path = network.home(0).join("walras.toml");
    let (own, line) = (file(&network.home(1).join("walras.toml")), added["addresses"].as_str().expect("text"));
    assert!(own.contains(line), "{own}");
    let (one, _) = line.split_once(' ').expect("two");
    std::fs::write(&path, file(&path).replace(&format!("\"{one}\""), &format!("\"{line}\""))).expect("written");
    network.start_again(0);
    drop(network.nodes.remove(3));
    (0..3).for_each(|number| pay_one(&network, &format!("b{number}.txt")));
    let node = network.start(3);
    network.nodes.push(node);
    // Drained, it serves on for the money of its epochs.
    let drained = shard_command(&network, &["drain"], 1);
    assert_eq!((&drained["shard"], &drained["registers"]), (&json!(1), &json!(1)), "{drained}");
    network.start_again(1);
    let last = pass_until_registered(&network, 1, 1);
    assert!(first < last);
    (0..2).for_each(|number| pay_one(&network, &format!("c{number}.txt")));
    let list = shard_command(&network, &["list", "--server", network.server()], 1);
    let row = &list["shards"][1];
    assert_eq!((&row["shard"], &row["registers"], &row["node"]), (&json!(1), &json!(false), &json!("here")), "{list}");
    let mut early = walras();
    early.args(["shard", "remove", "--server", network.server(), "--home"]).arg(network.home(1));
    let early = early.output().expect("walras runs");
    assert!(text(&early.stderr).contains("shard 1 has a part in lane epoch"), "{}", text(&early.stderr));
    network.stop();
    network.audit(VALIDATORS);
}

/// What a load needs to know of a network: all of it follows from the genesis file.
struct Load {
    chain: u64,
    identity: primitives::Digest,
    rules: payments::LaneRules,
    directory: LaneDirectory,
}

const EUR: primitives::AssetId = primitives::AssetId(1);
const CHAINS: u64 = 16;

impl Load {
    fn of(network: &Network) -> Load {
        let (genesis, _) = ::founding::genesis_file::read_with_founding(&network.path("genesis.json")).expect("read");
        let ledger = ledger::Ledger::new(&genesis).expect("sound");
        let lane = ledger.lane().expect("there is one");
        let shards = |of: &str| of.split(' ').map(|text| text.parse().expect("an address")).collect();
        let addresses: Vec<Vec<SocketAddr>> = network.addresses.split(',').map(shards).collect();
        let committee = lane.committee(0).expect("the first epoch").clone();
        Load {
            chain: genesis.chain,
            identity: ledger.network(),
            rules: lane.rules(0),
            directory: LaneDirectory { committee, addresses, tls: true },
        }
    }

    /// Withdraws one coin for each chain of payments into the lane.
    fn deposit(&self, network: &Network, amount: u64) -> Vec<(SecretKey, Holding)> {
        let issuer = client::keystore::open_under(&network.path("issuer-key.json"), "correct horse").expect("opens");
        let (account, node) = (issuer.public().address(), client::NodeClient::at(network.server().to_string()));
        let coin = |number: u64| {
            let owner = owner(number, 0);
            let output = Output { to: Recipient::Key(owner.public()), asset: EUR, amount };
            let operation = Operation::Withdraw { to: owner.public(), asset: EUR, amount };
            let body = Body { chain: self.chain, account, sequence: 1 + number, until: 10_000, operation };
            node.submit(&body.sign(&self.identity, &issuer)).expect("taken");
            let id = OutputId::of_deposit(&self.rules.network, 0, &account, 1 + number);
            (owner, Holding { id, output, proof: OutputProof::Ledger })
        };
        (0..CHAINS).map(coin).collect()
    }

    /// Pays a coin on and on, from one key to the next.
    fn pay(&self, chain: u64, (mut owner, mut coin): (SecretKey, Holding), payments: u64, done: &AtomicU64) {
        let (mut client, mut roots) = (LaneClient::new(self.directory.clone()), RootCache::new(4_096));
        for number in 1..=payments {
            let next = self::owner(chain, number);
            let output = Output { to: Recipient::Key(next.public()), ..coin.output };
            let paid = build_payment(&self.rules, &owner, 0, 0, vec![coin], vec![output]).expect("correct");
            let certificate = client.confirm(&paid, PATIENCE).expect("a quorum signs");
            let view = PaymentView::parse(&paid.payment).expect("well-formed");
            let receipt = FastReceipt::of(&view, 0, certificate).expect("it has an output");
            coin = receipt.verify(&self.directory.committee, &mut roots).expect("it is certified");
            owner = next;
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn owner(chain: u64, number: u64) -> SecretKey {
    let mut seed = [9; 32];
    seed[..8].copy_from_slice(&chain.to_le_bytes());
    seed[8..16].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

/// Four members with four shards each, 20 processes, while shards and nodes are killed one after another. Run by name:
/// `cargo test -p walras --test lane_shards -- --ignored --nocapture`. `WALRAS_LANE_PAYMENTS` is how many payments.
#[test]
#[ignore = "20 processes and 10,000 payments take minutes"]
fn twenty_processes_pay_while_they_are_killed() {
    let payments: u64 = std::env::var("WALRAS_LANE_PAYMENTS").map_or(10_000, |count| count.parse().expect("a number"));
    let mut apart = Apart::new(4, 1_000_000);
    let load = Load::of(&apart.network);
    let coins = load.deposit(&apart.network, 1_000);
    let (begun, done) = (Instant::now(), AtomicU64::new(0));
    let (mut shard_kills, mut node_kills) = (0, 0);
    std::thread::scope(|scope| {
        let payers: Vec<_> = (0..)
            .zip(coins)
            .map(|(chain, coin)| {
                let (load, done) = (&load, &done);
                scope.spawn(move || load.pay(chain, coin, payments.div_ceil(CHAINS), done))
            })
            .collect();
        for round in 0.. {
            if payers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                break;
            }
            let (member, shard) = (round % VALIDATORS, (round / VALIDATORS) % 4);
            apart.kill_shard(member, shard);
            std::thread::sleep(Duration::from_millis(700));
            apart.start_shard(member, shard);
            shard_kills += 1;
            if round % 4 == 3 {
                let other = 1 + (round / 4) % (VALIDATORS - 1);
                apart.network.nodes.remove(other);
                std::thread::sleep(Duration::from_millis(700));
                let node = apart.network.start(other);
                apart.network.nodes.insert(other, node);
                node_kills += 1;
            }
            std::thread::sleep(Duration::from_millis(700));
        }
        payers.into_iter().for_each(|payer| payer.join().expect("it has paid"));
    });
    let (seconds, paid) = (begun.elapsed().as_secs_f64(), done.load(Ordering::Relaxed));
    println!("{paid} payments in {seconds:.1} s, {shard_kills} shards and {node_kills} nodes killed");
    let network = apart.stop();
    let audited = network.audit(VALIDATORS);
    println!("{audited}");
    assert!(paid >= payments && shard_kills > 4);
}
