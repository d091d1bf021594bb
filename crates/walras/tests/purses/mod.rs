//! A network of validator processes with a payment lane, and purses that pay on it.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Process, agent, get, walras};

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A network of validators with a lane, each a process.
pub struct Network {
    folder: TempDir,
    pub addresses: String,
    /// What the names of the homes begin with; their indexes follow.
    homes: String,
    pub nodes: Vec<Process>,
}

impl Network {
    pub fn new(validators: usize, epoch_heights: u64) -> Network {
        Network::founded(validators, epoch_heights, &[], |_| {})
    }

    /// A network founded with more arguments for `walras init`, and with changes to its genesis.
    pub fn founded(validators: usize, epoch_heights: u64, arguments: &[&str], edit: impl Fn(&mut Value)) -> Network {
        let folder = TempDir::new().expect("a folder");
        let count = validators.to_string();
        let epoch = epoch_heights.to_string();
        let mut init = walras();
        init.args(["init", "--validators", &count, "--lane", "--lane-epoch-heights", &epoch]);
        init.args(["--asset", "USD:2", "--asset", "EUR:2", "--supply", "1000"]);
        for _ in 0..validators {
            init.arg("--address").arg(sockets::free_address().expect("a free port").to_string());
        }
        let output = init.args(arguments).arg("--home").arg(folder.path()).output().expect("walras runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let homes = (0..validators).map(|index| folder.path().join(format!("validator-{index}")));
        for home in homes.chain([folder.path().into()]) {
            let path = home.join("genesis.json");
            let mut genesis = serde_json::from_str(&file(&path)).expect("JSON");
            edit(&mut genesis);
            std::fs::write(&path, serde_json::to_string_pretty(&genesis).expect("JSON")).expect("written");
        }
        let lane_address = |_| sockets::free_ports(node::HOME_PORTS).expect("free ports").to_string();
        let after = |name: &str| arguments.iter().position(|one| *one == name).and_then(|at| arguments.get(at + 1));
        let shards: usize = after("--shards").map_or(1, |count| count.parse().expect("a number"));
        let of_member = |_| (0..shards).map(lane_address).collect::<Vec<String>>().join(" ");
        let addresses: Vec<String> = (0..validators).map(of_member).collect();
        let homes = "validator-".to_string();
        let mut network = Network { folder, addresses: addresses.join(","), homes, nodes: Vec::new() };
        network.nodes = (0..validators).map(|index| network.start(index)).collect();
        network
    }

    pub fn start(&self, index: usize) -> Process {
        let settings = [("WALRAS_BLOCKS__INTERVAL_MS", "20"), ("WALRAS_LANE__ADDRESSES", self.addresses.as_str())];
        let count = if self.addresses.is_empty() { 1 } else { 2 };
        Process::start(&self.home(index), &settings[..count])
    }

    /// From the next start of a node on, its own file has the addresses of all shards.
    pub fn write_addresses(&mut self) {
        let quoted: Vec<String> = self.addresses.split(',').map(|of| format!("\"{of}\"")).collect();
        for index in 0..self.nodes.len() {
            let path = self.home(index).join("walras.toml");
            let config = file(&path);
            let (before, rest) = config.split_once("\naddresses = [").expect("a list");
            let (_, after) = rest.split_once(']').expect("its end");
            let text = format!("{before}\naddresses = [{}]{after}", quoted.join(", "));
            std::fs::write(&path, text).expect("written");
        }
        self.addresses.clear();
    }

    /// Ends a node in order, and starts it again.
    pub fn start_again(&mut self, index: usize) {
        assert_eq!(self.nodes.remove(index).terminate().code(), Some(0));
        let node = self.start(index);
        self.nodes.insert(index, node);
    }

    pub fn home(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("{}{index}", self.homes))
    }

    /// Stops all nodes in order.
    pub fn stop(&mut self) {
        self.nodes.drain(..).for_each(|node| assert_eq!(node.terminate().code(), Some(0)));
    }

    /// Starts nodes in other homes, at the same addresses.
    pub fn start_in(&mut self, homes: &str, validators: usize) {
        self.homes = homes.into();
        self.nodes = (0..validators).map(|index| self.start(index)).collect();
    }

    pub fn server(&self) -> &str {
        &self.nodes[0].server
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, purse: &str, arguments: &[&str]) -> Command {
        let mut command = walras();
        command.arg("pay").args(arguments).arg("--purse").arg(self.path(purse));
        command.current_dir(self.folder.path()).env("WALRAS_SERVER", self.server());
        command
    }

    pub fn run(&self, purse: &str, arguments: &[&str]) -> Output {
        self.command(purse, arguments).output().expect("walras runs")
    }

    /// The output of a command that must succeed.
    pub fn pay(&self, purse: &str, arguments: &[&str]) -> Value {
        let output = self.run(purse, &[arguments, &["--json"]].concat());
        let logs: Vec<String> = self.nodes.iter().map(Process::log).collect();
        assert!(output.status.success(), "{arguments:?}: {}\n{}", text(&output.stderr), logs.join("\n"));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
    }

    pub fn refused(&self, purse: &str, arguments: &[&str]) -> String {
        let output = self.run(purse, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    /// Units of an asset in a purse: settled, fast and pending.
    pub fn balance(&self, purse: &str, asset: &str) -> (u64, u64, u64) {
        let balance = self.pay(purse, &["balance"]);
        let rows = balance["balances"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["asset"] == asset);
        let units = |name: &str| row.map_or(0, |row| row[name].as_str().expect("units").parse().expect("a number"));
        (units("settled"), units("fast"), units("pending"))
    }

    /// Units of an asset that an account can spend.
    pub fn account(&self, key: &str, asset: &str) -> u64 {
        let address = walras().args(["wallet", "address", "--key"]).arg(self.path(key)).output().expect("walras runs");
        let (status, account) = get(&agent(), self.server(), &format!("/v1/accounts/{}", text(&address.stdout).trim()));
        if status == 404 {
            return 0;
        }
        let balances = account["balances"].as_array().expect("balances");
        let found = balances.iter().find(|balance| balance["asset"] == asset);
        found.map_or(0, |balance| balance["available"].as_str().expect("units").parse().expect("a number"))
    }

    /// A payer of 4 EUR that gets SIGKILL between storing the payment and sending it: nobody listens at the addresses
    /// that its node returns.
    pub fn kill_before_it_sends(&self, purse: &str, to: &str) {
        let nowhere = Liar::new(self.server(), |path, body| {
            if path == "/v1/lane" {
                for shards in body["addresses"].as_array_mut().expect("addresses") {
                    *shards = serde_json::json!(["127.0.0.1:1"]);
                }
            }
        });
        let order = ["send", "--to", to, "--asset", "EUR", "--amount", "4", "--server", &nowhere.url];
        let mut payer = self.command(purse, &order).spawn().expect("walras starts");
        let outbox = self.path(purse).join("outbox");
        let written = || {
            let names =
                std::fs::read_dir(&outbox).expect("an outbox").map(|entry| entry.expect("an entry").file_name());
            let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
            names.iter().any(|name| name.starts_with("payment-") && !name.ends_with(".unfinished"))
        };
        while !written() {
            assert!(payer.try_wait().expect("a child").is_none(), "the payer ended before it wrote");
            std::thread::sleep(Duration::from_millis(5));
        }
        payer.kill().expect("SIGKILL");
        payer.wait().expect("it ended");
    }

    /// One pass of a watcher: the numbers of what it settled, returned to the ledger and posted.
    pub fn watch(&self, key: &str) -> (u64, u64, u64) {
        let looked = self.look(key);
        let count = |name: &str| looked[name].as_u64().expect("a number");
        (count("settled"), count("sent_home"), count("posted"))
    }

    pub fn look(&self, key: &str) -> Value {
        let mut watch = walras();
        watch.args(["pay", "watch", "--once", "--json", "--server", self.server(), "--key", key, "--receipts"]);
        let output = watch.arg(self.path("watched")).output().expect("walras runs");
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The audit of all homes must find no fault.
    pub fn audit(&self, validators: usize) -> Value {
        let mut audit = walras();
        audit.args(["pay", "audit", "--json"]);
        for index in 0..validators {
            audit.arg("--home").arg(self.home(index));
        }
        let output = audit.output().expect("walras runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Makes blocks, so that lane time advances, until this epoch.
    pub fn pass_until_epoch(&self, epoch: u64) {
        self.pass_until("/v1/lane", "epoch", epoch);
    }

    /// Makes blocks until this height.
    pub fn pass_until_height(&self, height: u64) {
        self.pass_until("/v1/status", "height", height);
    }

    fn pass_until(&self, path: &str, name: &str, least: u64) {
        loop {
            let (_, found) = get(&agent(), self.server(), path);
            if found[name].as_u64().expect("a number") >= least {
                return;
            }
            let mut wallet = walras();
            wallet.args(["wallet", "pay", "--again", "--asset", "USD", "--amount", "0.01", "--to"]);
            wallet.args(["0x1111111111111111111111111111111111111111", "--server", self.server(), "--key"]);
            let output = wallet.arg(self.path("issuer-key.json")).output().expect("walras runs");
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
    }
}

/// A server that answers as a node does, except for a change to the JSON at each path.
pub struct Liar {
    pub url: String,
    is_done: Arc<AtomicBool>,
}

impl Liar {
    pub fn new(server: &str, lie: impl Fn(&str, &mut Value) + Send + 'static) -> Liar {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (server, is_done) = (server.to_string(), Arc::new(AtomicBool::new(false)));
        let over = is_done.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                Liar::answer(stream.expect("a connection"), &server, &lie);
            }
        });
        Liar { url, is_done }
    }

    fn answer(stream: TcpStream, server: &str, lie: &impl Fn(&str, &mut Value)) {
        let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
        let mut first = String::new();
        reader.read_line(&mut first).expect("a request");
        let mut line = String::from("-");
        while !line.trim().is_empty() {
            line.clear();
            reader.read_line(&mut line).expect("a head");
        }
        let path = first.split(' ').nth(1).expect("a path");
        let (status, mut body) = get(&agent(), server, path);
        lie(path, &mut body);
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n");
        let mut stream = stream;
        drop(write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()));
        drop(stream.flush());
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Release);
        drop(TcpStream::connect(self.url.trim_start_matches("http://")));
    }
}

pub fn file(path: &Path) -> String {
    let mut content = String::new();
    std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut content)).expect("a file");
    content
}
