//! A loaded node is killed at random points, and loses nothing that it acknowledged.
//!
//! Several clients send transactions to the real binary and record every acknowledgement. The process gets SIGKILL
//! repeatedly, also while it starts. After each restart every client checks its records against the node. At the end
//! all blocks are replayed from genesis, and must give the recorded heights and outcomes, and the node's root.

mod process;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kernel::Dice;
use ledger::{Genesis, Ledger, Listing, Roots, Signatures};
use primitives::{
    Address, AssetId, Body, Fraction, Operation, Price, SecretKey, Sequence, Superblock, Transaction, TransactionId,
};
use process::{Process, agent, get, walras};
use serde_json::Value;
use tempfile::TempDir;

const SEED: u64 = 20_260_728;
/// Kills of a loaded node.
const KILLS: u64 = 50;
/// Every n-th start is killed before the node listens, or just after.
const STARTS_KILLED: u64 = 5;
const CLIENTS: u64 = 4;
const ACCOUNTS: u64 = 3;
const ASSETS: u64 = 4;
const CHAIN: u64 = 77;
const SETTINGS: [(&str, &str); 3] = [
    ("WALRAS_BLOCKS__INTERVAL_MS", "5"),
    ("WALRAS_STORE__CHECKPOINT_BLOCKS", "7"),
    // As many blocks as possible: a few transactions each.
    ("WALRAS_BLOCKS__TRANSACTIONS", "16"),
];

struct Account {
    key: SecretKey,
    address: Address,
    next: Sequence,
    /// Offers that it made and has not cancelled; some will have traded.
    offers: Vec<Operation>,
}

/// The acknowledgement of a transaction that a client received.
struct Acknowledged {
    id: TransactionId,
    height: u64,
    outcome: Value,
    account: Address,
    sequence: Sequence,
}

/// A client with its own records.
struct Client {
    random: Dice,
    agent: ureq::Agent,
    accounts: Vec<Account>,
    everybody: Vec<Address>,
    notes: Vec<Acknowledged>,
    /// Number of records that were checked against the node after a restart.
    checked: usize,
    /// Sent, and not answered when the node was killed.
    unknown: Vec<Transaction>,
    /// Number of these that were found after the restart.
    survived: u64,
}

fn key(client: u64, account: u64) -> SecretKey {
    SecretKey::from_seed([(1 + client * ACCOUNTS + account) as u8; 32])
}

fn everybody() -> Vec<Address> {
    let accounts = (0..CLIENTS).flat_map(|client| (0..ACCOUNTS).map(move |account| key(client, account)));
    accounts.map(|key| key.public().address()).collect()
}

fn genesis() -> Genesis {
    let issuer = everybody()[0];
    let holdings = |address: Address| (0..ASSETS).map(move |asset| (address, AssetId(asset as u32), 1_000_000_000));
    Genesis {
        chain: CHAIN,
        fee: 3,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: (0..ASSETS).map(|asset| Listing::new(format!("A{asset}"), 2, issuer)).collect(),
        balances: everybody().into_iter().flat_map(holdings).collect(),
        ..Genesis::default()
    }
}

impl Client {
    fn new(client: u64) -> Client {
        let account = |account| {
            let key = key(client, account);
            Account { address: key.public().address(), key, next: 1, offers: Vec::new() }
        };
        Client {
            random: Dice::new(SEED ^ (client + 1)),
            agent: agent(),
            accounts: (0..ACCOUNTS).map(account).collect(),
            everybody: everybody(),
            notes: Vec::new(),
            checked: 0,
            unknown: Vec::new(),
            survived: 0,
        }
    }

    fn draw(&mut self) -> Transaction {
        let account = self.random.below(ACCOUNTS) as usize;
        let operation = match self.random.below(10) {
            0..4 => self.pay(account),
            4 | 5 if !self.accounts[account].offers.is_empty() => self.cancel(account),
            _ => self.offer(),
        };
        let account = &mut self.accounts[account];
        let body = Body { chain: CHAIN, account: account.address, sequence: account.next, until: 50_000, operation };
        if let Operation::CreateOffer { sell, buy, limit, .. } = body.operation {
            account.offers.push(Operation::cancel(sell, buy, limit, account.next));
        }
        account.next += 1;
        body.sign(&genesis().digest(), &account.key)
    }

    fn pay(&mut self, account: usize) -> Operation {
        let own = self.accounts[account].address;
        let others: Vec<Address> = self.everybody.iter().filter(|other| **other != own).copied().collect();
        let to = others[self.random.below(others.len() as u64) as usize];
        // One in twenty exceeds every balance.
        let amount = if self.random.below(20) == 0 { 1 << 50 } else { 1 + self.random.below(100_000) };
        Operation::Pay { to, asset: AssetId(self.random.below(ASSETS) as u32), amount }
    }

    fn cancel(&mut self, account: usize) -> Operation {
        let at = self.random.below(self.accounts[account].offers.len() as u64) as usize;
        self.accounts[account].offers.swap_remove(at)
    }

    fn offer(&mut self) -> Operation {
        let sell = self.random.below(ASSETS) as u32;
        let buy = (sell + 1 + self.random.below(ASSETS - 1) as u32) % ASSETS as u32;
        let limit = Price::from_f64(self.random.between(0.95, 1.03)).expect("in range");
        let amount = 4_000 + self.random.below(1_000_000);
        Operation::offer(AssetId(sell), AssetId(buy), amount, limit)
    }

    /// Sends until the node is down.
    fn load(&mut self, server: &str, acknowledged: &AtomicU64) {
        loop {
            let count = 1 + self.random.below(6);
            let transactions: Vec<Transaction> = (0..count).map(|_| self.draw()).collect();
            if !self.send(server, transactions, acknowledged) {
                return;
            }
        }
    }

    /// Sends transactions and records the answers; false if the node is down or stopping.
    fn send(&mut self, server: &str, transactions: Vec<Transaction>, acknowledged: &AtomicU64) -> bool {
        let body = borsh::to_vec(&transactions).expect("encodes");
        let url = format!("{server}/v1/transactions/batch?wait=committed");
        let answer = self.agent.post(url).content_type("application/octet-stream").send(&body[..]);
        let Ok(Ok(answer)) = answer.map(|mut answer| answer.body_mut().read_json::<Value>()) else {
            self.unknown.extend(transactions);
            return false;
        };
        let results = answer["results"].as_array().unwrap_or_else(|| panic!("the node refused the call: {answer}"));
        assert_eq!(results.len(), transactions.len());
        for (transaction, result) in transactions.into_iter().zip(results) {
            if result["status"] == "committed" {
                self.note(&transaction, result);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            } else if result["status"] == "pending" || result["error"]["code"] == "not_ready" {
                self.unknown.push(transaction);
            } else {
                assert!(result["error"]["code"].is_string(), "{result}");
            }
        }
        true
    }

    fn note(&mut self, transaction: &Transaction, result: &Value) {
        self.notes.push(Acknowledged {
            id: transaction.id(),
            height: result["height"].as_u64().expect("a height"),
            outcome: result["outcome"].clone(),
            account: transaction.body.account,
            sequence: transaction.body.sequence,
        });
    }

    /// After a restart: the new records, and a sample of the others, are in the block that the client was told.
    fn check(&mut self, server: &str) {
        let sample = (0..20.min(self.checked)).map(|_| self.random.below(self.checked as u64) as usize);
        let sample: Vec<usize> = sample.chain(self.checked..self.notes.len()).collect();
        sample.into_iter().for_each(|at| self.check_note(server, at));
        self.checked = self.notes.len();
        self.check_sequences(server);
        self.settle_unknown(server);
    }

    fn check_note(&self, server: &str, at: usize) {
        let note = &self.notes[at];
        let (status, found) = get(&self.agent, server, &format!("/v1/transactions/{}", note.id));
        assert_eq!(status, 200, "transaction {} of block {} is LOST: {found}", note.id, note.height);
        assert_eq!(
            (&found["height"], &found["outcome"]),
            (&note.height.into(), &note.outcome),
            "transaction {} CHANGED",
            note.id
        );
    }

    /// No sequence number that took effect is free again.
    fn check_sequences(&mut self, server: &str) {
        for account in &mut self.accounts {
            let (status, body) = get(&self.agent, server, &format!("/v1/accounts/{}", account.address));
            assert_eq!(status, 200, "{body}");
            let highest =
                body["sequence"]["highest"].as_str().and_then(|text| text.parse::<u64>().ok()).expect("a number");
            let own = self.notes.iter().filter(|note| note.account == account.address);
            let used = own.filter(|note| note.outcome["result"] != "refused").map(|note| note.sequence);
            assert!(highest >= used.max().unwrap_or(0), "sequence numbers of {} went back", account.address);
            account.next = account.next.min(highest + 32).max(highest + 1);
        }
    }

    /// A transaction without an answer is in a block or it is not; if not, it can be sent again.
    fn settle_unknown(&mut self, server: &str) {
        for transaction in std::mem::take(&mut self.unknown) {
            let (status, found) = get(&self.agent, server, &format!("/v1/transactions/{}", transaction.id()));
            if status == 200 {
                self.survived += 1;
                self.note(&transaction, &found);
            } else {
                assert_eq!(status, 404, "{found}");
                let alive = self.send(server, vec![transaction], &AtomicU64::new(0));
                assert!(alive, "the node died by itself");
            }
        }
    }
}

/// For every asset, the balances of all accounts equal the issue.
fn check_balances(server: &str) {
    let agent = agent();
    let mut sums: HashMap<String, u64> = HashMap::new();
    for address in everybody() {
        let (_, account) = get(&agent, server, &format!("/v1/accounts/{address}"));
        for balance in account["balances"].as_array().expect("balances") {
            let units = |name: &str| balance[name].as_str().and_then(|units| units.parse::<u64>().ok()).expect("units");
            *sums.entry(balance["asset"].to_string()).or_default() += units("available") + units("locked");
        }
    }
    for asset in get(&agent, server, "/v1/assets").1["assets"].as_array().expect("assets") {
        assert_eq!(sums[&asset["symbol"].to_string()].to_string(), asset["issued"], "{asset}");
    }
}

/// Loads the node, kills it after a random number of acknowledgements and a moment, and returns that number.
fn load_and_kill(node: Process, clients: &mut [Client], random: &mut Dice) -> u64 {
    let acknowledged = AtomicU64::new(0);
    let (enough, moment) = (random.below(120), Duration::from_micros(random.below(12_000)));
    let server = node.server.clone();
    std::thread::scope(|scope| {
        let load = |client| scope.spawn(|| Client::load(client, &server, &acknowledged));
        let threads: Vec<_> = clients.iter_mut().map(load).collect();
        while acknowledged.load(Ordering::Relaxed) < enough {
            assert!(!threads.iter().any(|thread| thread.is_finished()), "the node died by itself: {}", node.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(moment);
        drop(node);
    });
    acknowledged.into_inner()
}

/// Replays every block from genesis: heights, outcomes, numbers used once, root.
fn replay(server: &str, clients: &[Client]) -> u64 {
    let agent = agent();
    let mut ledger = Ledger::new(&genesis()).expect("sound");
    let mut roots = Roots::of(&ledger);
    let mut outcomes = HashMap::new();
    let mut used = HashSet::new();
    let (_, status) = get(&agent, server, "/v1/status");
    let height = status["height"].as_u64().expect("a height");
    let mut root = None;
    for height in 1..=height {
        let mut response = agent.get(format!("{server}/v1/blocks/{height}/raw")).call().expect("the node answers");
        let block: Superblock = borsh::from_slice(&response.body_mut().read_to_vec().expect("bytes")).expect("a block");
        let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        root = Some(roots.apply(&applied.changes));
        for (transaction, outcome) in block.sub_blocks.iter().flat_map(|sub| &sub.native).zip(&applied.outcomes) {
            if outcome.refusal().is_none() {
                let body = &transaction.body;
                assert!(used.insert((body.account, body.sequence)), "a sequence number was used twice: {body:?}");
            }
            let outcome = serde_json::to_value(doors::json::outcome(outcome)).expect("JSON");
            outcomes.insert((transaction.id(), height), outcome);
        }
    }
    ledger.audit().expect("balances add up");
    for note in clients.iter().flat_map(|client| &client.notes) {
        assert_eq!(outcomes.get(&(note.id, note.height)), Some(&note.outcome), "block {}", note.height);
    }
    assert_eq!(root.map(|root| root.to_string().into()), Some(newest_root(server, height)));
    height
}

fn newest_root(server: &str, height: u64) -> Value {
    loop {
        let state = get(&agent(), server, "/v1/status").1["state"].take();
        if state["height"] == height {
            return state["root"].clone();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn make_home(folder: &TempDir) -> std::path::PathBuf {
    let (home, file) = (folder.path().join("home"), folder.path().join("genesis.json"));
    founding::genesis_file::write(&file, &genesis()).expect("written");
    let made = walras().args(["init", "--home"]).arg(&home).arg("--genesis").arg(&file).output().expect("walras runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    home
}

/// Starts the node; some starts are killed before they complete.
fn restart(home: &Path, random: &mut Dice, killed: &mut u64) -> Process {
    while random.below(STARTS_KILLED) == 0 {
        let node = Process::spawn(home, &SETTINGS);
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        drop(node);
        *killed += 1;
    }
    Process::start(home, &SETTINGS)
}

#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    let folder = TempDir::new().expect("a folder");
    let home = make_home(&folder);
    let mut random = Dice::new(SEED);
    let mut clients: Vec<Client> = (0..CLIENTS).map(Client::new).collect();
    let (mut while_starting, mut acknowledged) = (0, 0);
    for _ in 0..KILLS {
        let node = restart(&home, &mut random, &mut while_starting);
        check_all(&node, &mut clients);
        acknowledged += load_and_kill(node, &mut clients, &mut random);
    }
    let node = restart(&home, &mut random, &mut while_starting);
    clients.iter_mut().for_each(|client| client.checked = 0);
    check_all(&node, &mut clients);
    let blocks = replay(&node.server, &clients);
    assert_eq!(node.terminate().code(), Some(0));
    let inspected = walras().args(["inspect", "--home"]).arg(&home).output().expect("walras runs");
    assert!(inspected.status.success(), "{}", String::from_utf8_lossy(&inspected.stdout));
    let survived: u64 = clients.iter().map(|client| client.survived).sum();
    println!(
        "kill test: {KILLS} kills under load and {while_starting} while starting, {acknowledged} acknowledgements, \
         none lost; {survived} more were committed and unanswered; {blocks} blocks replayed to the same root"
    );
}

/// Every client checks its records against the node.
fn check_all(node: &Process, clients: &mut [Client]) {
    check_balances(&node.server);
    std::thread::scope(|scope| {
        for client in clients {
            scope.spawn(|| client.check(&node.server));
        }
    });
}
