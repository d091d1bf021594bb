//! The homes of a network of validators: the files that `walras init --validators` writes, its errors, and that the
//! processes which run the homes form one exchange.

mod process;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use process::{Process, agent, get, walras};
use serde_json::Value;
use tempfile::TempDir;

/// Standard output of a command that must succeed, as JSON.
fn made(arguments: &[&str], home: &Path) -> Value {
    let mut command = walras();
    command.args(["init", "--json", "--supply", "1000"]).args(arguments).arg("--home").arg(home);
    let output = command.output().expect("walras runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The error message of a command that must fail.
fn refused(arguments: &[&str], home: &Path) -> String {
    let output = walras().args(arguments).arg("--home").arg(home).output().expect("walras runs");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_validator_gets_a_home_and_all_share_one_genesis() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("network");
    let report = made(&["--validators", "4"], &home);
    let genesis = read(&home.join("genesis.json"));
    let parsed: Value = serde_json::from_str(&genesis).expect("JSON");
    assert_eq!(parsed["consensus"]["engine"], "dbft");
    for index in 0..4 {
        let own = home.join(format!("validator-{index}"));
        assert_eq!(read(&own.join("genesis.json")), genesis);
        let key: Value = serde_json::from_str(&read(&own.join("validator-key.json"))).expect("JSON");
        let listed = &parsed["consensus"]["validators"][index];
        assert_eq!(key["public_key"], listed["key"]);
        assert_eq!(report["validators"][index]["key"], listed["key"]);
        // Votes, links and account have separate keys.
        let public = |name: &str| {
            let file: Value = serde_json::from_str(&read(&own.join(name))).expect("JSON");
            (file["public_key"].as_str().expect("a key").to_string(), file["address"].clone())
        };
        let ((links, _), (account, address)) = (public("link-key.json"), public("account-key.json"));
        let hex = links.strip_prefix("0x").unwrap_or(&links);
        assert_eq!(listed["address"], format!("{hex}@127.0.0.1:{}", 9100 + index));
        assert_eq!(listed["account"], address);
        assert!(links != account && listed["key"] != links.as_str() && listed["key"] != account.as_str());
        let config = read(&own.join("walras.toml"));
        for port in [8080 + index, 9100 + index] {
            assert!(config.contains(&format!("listen = \"127.0.0.1:{port}\"")), "{config}");
        }
        for (name, mode) in [
            ("validator-key.json", 0o600),
            ("link-key.json", 0o600),
            ("account-key.json", 0o600),
            ("data", 0o700),
            ("data/votes", 0o700),
        ] {
            let permissions = std::fs::metadata(own.join(name)).expect("there").permissions();
            assert_eq!(permissions.mode() & 0o777, mode, "{name}");
        }
        let logs = std::fs::read_dir(own.join("data/votes")).expect("a vote log");
        assert!(logs.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("votes-")));
    }
    assert!(refused(&["init", "--validators", "4"], &home).contains("is a home already"));
    // Another network has another identity, because its keys differ.
    let other = made(&["--validators", "4"], &folder.path().join("other"));
    assert_ne!(report["network"], other["network"]);
    // A newcomer's home uses the genesis of the network unchanged.
    let joined = folder.path().join("joined");
    let genesis_file = home.join("genesis.json");
    let arguments = ["init", "--genesis", genesis_file.to_str().expect("a plain path"), "--home"];
    assert!(walras().args(arguments).arg(&joined).output().expect("walras runs").status.success());
    assert_eq!(read(&joined.join("genesis.json")), genesis);
    let message = refused(&["node"], &joined);
    assert!(message.contains("a validator in the genesis"), "a network whose validators never change: {message}");
    std::fs::remove_file(joined.join("validator-key.json")).expect("a newcomer has a key of its own");
    let message = refused(&["node"], &joined);
    assert!(message.contains("validator-key.json is missing"), "{message}");
    std::fs::copy(folder.path().join("other/validator-0/validator-key.json"), joined.join("validator-key.json"))
        .expect("copied");
    let message = refused(&["node"], &joined);
    assert!(message.contains("a validator in the genesis"), "{message}");
}

#[test]
fn a_network_with_a_payment_lane_has_keys_and_places_for_it() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("network");
    made(&["--validators", "2", "--lane"], &home);
    let genesis: Value = serde_json::from_str(&read(&home.join("genesis.json"))).expect("JSON");
    for index in 0..2 {
        let own = home.join(format!("validator-{index}"));
        let key: Value = serde_json::from_str(&read(&own.join("lane-key.json"))).expect("JSON");
        assert_eq!(genesis["lane"]["registrars"][index], key["public_key"]);
        let first = own.join("data/lane/0/0/shard-key");
        assert_eq!(std::fs::metadata(&first).expect("there").permissions().mode() & 0o777, 0o600);
        let mode = std::fs::metadata(own.join("lane-key.json")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let config = read(&own.join("walras.toml"));
        assert!(config.contains("addresses = [\"127.0.0.1:7100\", \"127.0.0.1:7108\"]"), "{config}");
        assert!(config.contains(&format!("member = {index}")), "{config}");
    }
    let named = ["init", "--validators", "2", "--lane", "--address", "a.example:9100", "--address", "192.0.2.7:9200"];
    assert!(refused(&named, &folder.path().join("named")).contains("write an IP address instead of a name"));
}

#[test]
fn a_founded_venue_is_opened_by_one_command() {
    let folder = TempDir::new().expect("a folder");
    let network = made(&["--validators", "2", "--venue"], &folder.path().join("network"));
    let runs = |index: usize| {
        let home = network["validators"][index]["home"].as_str().expect("a home");
        read(&Path::new(home).join("walras.toml")).contains("\nrun = true\n")
    };
    assert_eq!([0, 1].map(runs), [true, false]);

    let home = folder.path().join("solo");
    let report = made(&["--venue"], &home);
    let free = || sockets::free_address().expect("a free port").to_string();
    let [listen, ouch, feed] = [free(), free(), free()];
    let settings = [
        ("WALRAS_VENUE__LISTEN", &*listen),
        ("WALRAS_VENUE__OUCH_LISTEN", &*ouch),
        ("WALRAS_VENUE__FEED_LISTEN", &*feed),
        ("WALRAS_VENUE__SNAPSHOT_LISTEN", &*feed),
    ];
    let node = Process::start(&home, &settings);
    let command = report["venue"]["open"].as_str().expect("a command");
    let words = command.split(' ').skip(1).chain(["--server", &node.server]);
    let opened = walras().args(words).output().expect("walras runs");
    assert!(opened.status.success(), "{}", String::from_utf8_lossy(&opened.stderr));
    let venue = get(&agent(), &node.server, "/v1/venues/0").1;
    assert_eq!(venue["operator"]["account"], report["venue"]["operator"], "{venue}");
    let begun = std::time::Instant::now();
    while get(&agent(), &format!("http://{listen}"), "/v1/venue").1["standing"] != "runs" {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not run: {}", node.log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A node that is the whole committee of its lane reports the lane's state.
#[test]
fn a_solo_node_takes_part_in_its_lane() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("solo");
    made(&["--lane"], &home);
    let address = sockets::free_ports(node::HOME_PORTS).expect("free ports").to_string();
    let node = Process::start(&home, &[("WALRAS_LANE__ADDRESSES", &address)]);
    let (status, lane) = get(&agent(), &node.server, "/v1/lane");
    let said = (status, &lane["epoch"], &lane["halted"], &lane["assets"][0]["escrow"]);
    assert_eq!(said, (200, &0.into(), &false.into(), &"0".into()));
    let key: Value = serde_json::from_str(&read(&home.join("lane-key.json"))).expect("JSON");
    assert_eq!(lane["registrars"][0], key["public_key"]);
    assert_ne!(lane["members"][0][0], key["public_key"], "a registrar signs nothing else");
    std::net::TcpStream::connect(address).unwrap_or_else(|error| panic!("no shard listens: {error}: {}", node.log()));
}

#[test]
fn ports_count_up_from_the_base() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("network");
    // From the default of a venue on: a new port is the old one of something else.
    let report = made(&["--validators", "2", "--lane", "--apart", "--base-port", "8070"], &home);
    let genesis: Value = serde_json::from_str(&read(&home.join("genesis.json"))).expect("JSON");
    for index in 0..2 {
        assert_eq!(report["validators"][index]["http"], format!("http://127.0.0.1:{}", 8070 + index));
        let announced = genesis["consensus"]["validators"][index]["address"].as_str().expect("an address");
        assert!(announced.ends_with(&format!("@127.0.0.1:{}", 8074 + index)), "{announced}");
        let config = read(&home.join(format!("validator-{index}/walras.toml")));
        let listens: Vec<&str> = config.lines().filter(|line| line.contains("listen = \"")).collect();
        let venue = 8076 + 3 * index;
        let ports = [8070 + index, 8072 + index, 8074 + index, venue, venue + 1, venue + 2, venue + 2];
        let listening = listens.iter().filter(|line| !line.starts_with('#'));
        let listening: Vec<&str> = listening.filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(listening, ports.map(|port| format!("127.0.0.1:{port}")), "{config}");
        assert!(config.contains("addresses = [\"127.0.0.1:8082\", \"127.0.0.1:8090\"]"), "{config}");
        assert!(config.contains(&format!("address = \"127.0.0.1:{}\"", 8098 + index)), "{config}");
    }
    let home = folder.path().join("high");
    let message = refused(&["init", "--validators", "4", "--base-port", "65520"], &home);
    assert!(message.contains("24 ports from there on go beyond 65535"), "{message}");
    let named = ["init", "--validators", "1", "--base-port", "20000", "--address", "192.0.2.7:9200"];
    assert!(refused(&named, &home).contains("cannot be used with"));
}

#[test]
fn addresses_are_taken_in_order_and_mistakes_are_named() {
    let folder = TempDir::new().expect("a folder");
    let named = ["--validators", "2", "--address", "a.example:9100", "--address", "192.0.2.7:9200", "--stake", "5"];
    let home = folder.path().join("named");
    let report = made(&named, &home);
    assert_eq!(report["validators"][0]["address"], "a.example:9100");
    assert!(read(&home.join("validator-0/walras.toml")).contains("listen = \"0.0.0.0:9100\""));
    assert!(read(&home.join("validator-1/walras.toml")).contains("listen = \"192.0.2.7:9200\""));
    let parsed: Value = serde_json::from_str(&read(&home.join("genesis.json"))).expect("JSON");
    assert_eq!(parsed["consensus"]["validators"][1]["stake"], "5000000");
    let fresh = folder.path().join("fresh");
    for (arguments, words) in [
        (&["init", "--validators", "0"][..], "0"),
        (&["init", "--contracts"], "31337 is the number of all development chains"),
        (&["init", "--contracts", "--chain", "7", "--genesis", "x.json"], "cannot be used with"),
        (&["init", "--validators", "2", "--address", "a.example:1"], "give one for each"),
        (&["init", "--validators", "1", "--address", "nowhere"], "host:port"),
        (&["init", "--validators", "2", "--engine", "solo"], "one node"),
        (&["init", "--engine", "dbft"], "--validators"),
        (&["init", "--validators", "2", "--engine", "raft"], "raft"),
        (&["init", "--address", "a.example:1"], "--validators"),
        (&["init", "--validators", "2", "--genesis", "x.json"], "cannot be used with"),
    ] {
        let message = refused(arguments, &fresh);
        assert!(message.contains(words), "{arguments:?}: {message}");
        let _ = std::fs::remove_dir_all(&fresh);
    }
}

#[test]
fn contracts_are_a_switch_and_their_gas_fits_the_committee() {
    let folder = TempDir::new().expect("a folder");
    let limits = |name: &str, arguments: &[&str]| {
        let home = folder.path().join(name);
        made(arguments, &home);
        let genesis: Value = serde_json::from_str(&read(&home.join("genesis.json"))).expect("JSON");
        let of = |name: &str| genesis["limits"][name].as_u64().expect("a number");
        [of("block_gas"), of("sub_block_gas"), of("least_base_fee")]
    };
    assert_eq!(limits("without", &["--chain", "7"]), [0, 0, 0]);
    let gas = ["--contracts", "--chain", "7", "--block-gas", "120000000"];
    let with = |more: &[&'static str]| [&gas[..], more].concat();
    assert_eq!(limits("solo", &gas), [120_000_000, 120_000_000, 5_000_000_000]);
    assert_eq!(limits("four", &with(&["--validators", "4"])), [120_000_000, 30_000_000, 5_000_000_000]);
    let drawn = with(&["--validators", "4", "--epoch-heights", "100", "--committee", "10"]);
    assert_eq!(limits("drawn", &drawn), [167_772_160, 16_777_216, 5_000_000_000]);
    // Without it the gas of a block follows from the slowest gas of the machine, up to the usual.
    let [block, sub_block, _] = limits("measured", &["--contracts", "--chain", "7"]);
    assert!((16_777_216..=120_000_000).contains(&block) && sub_block == block, "{block} {sub_block}");
}

/// A process for each validator, and the wallet of the issuer.
struct Network {
    folder: TempDir,
    running: Vec<Option<Process>>,
}

impl Network {
    fn start(size: usize) -> Network {
        let folder = TempDir::new().expect("a folder");
        let addresses: Vec<String> =
            (0..size).map(|_| sockets::free_address().expect("a free port").to_string()).collect();
        let arguments: Vec<&str> = addresses.iter().flat_map(|address| ["--address", address]).collect();
        made(&[&["--validators", &size.to_string()], &arguments[..]].concat(), folder.path());
        let mut network = Network { folder, running: (0..size).map(|_| None).collect() };
        (0..size).for_each(|index| network.run(index));
        network
    }

    fn home(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("validator-{index}"))
    }

    fn run(&mut self, index: usize) {
        self.running[index] = Some(Process::start(&self.home(index), &[("WALRAS_BLOCKS__INTERVAL_MS", "20")]));
    }

    fn server(&self, index: usize) -> &str {
        &self.running[index].as_ref().expect("it runs").server
    }

    /// Pays from the issuer through one validator, and waits until the payment is committed.
    fn pay(&self, through: usize, units: &str) {
        let mut command = walras();
        command.args(["wallet", "pay", "--to", RECEIVER, "--asset", "USD", "--amount", units, "--json", "--key"]);
        command.arg(self.folder.path().join("issuer-key.json")).env("WALRAS_SERVER", self.server(through));
        let output = command.output().expect("walras runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&answer["status"], &answer["outcome"]["result"]), (&"committed".into(), &"applied".into()));
    }

    /// Waits until a validator shows the total paid.
    fn sees(&self, index: usize, units: &str) {
        let (agent, path) = (agent(), format!("/v1/accounts/{RECEIVER}"));
        loop {
            let (status, account) = get(&agent, self.server(index), &path);
            if status == 200 && account["balances"][0]["available"] == units {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn block(&self, index: usize, height: u64) -> Value {
        get(&agent(), self.server(index), &format!("/v1/blocks/{height}")).1["block"].clone()
    }
}

const RECEIVER: &str = "0x1111111111111111111111111111111111111111";

/// All validators apply what one accepts, whichever of them is killed meanwhile; a restarted validator has the same
/// blocks; and a home runs once, wherever it was copied.
#[test]
fn four_processes_are_one_exchange() {
    let mut network = Network::start(4);
    network.pay(0, "1");
    (0..4).for_each(|index| network.sees(index, "1000000"));
    // Killed, not stopped.
    network.running[1] = None;
    network.pay(2, "2");
    network.run(1);
    network.sees(1, "3000000");
    network.pay(1, "3");
    (0..4).for_each(|index| network.sees(index, "6000000"));
    let height = get(&agent(), network.server(1), "/v1/status").1["height"].as_u64().expect("a height");
    for index in 0..4 {
        for height in [1, height / 2, height].into_iter().filter(|height| *height > 0) {
            while network.block(index, height).is_null() && !network.block(1, height).is_null() {
                std::thread::sleep(Duration::from_millis(20));
            }
            let digest = network.block(index, height);
            assert!(digest.is_string() && digest == network.block(1, height), "block {height} of {index}: {digest}");
        }
    }
    let message = refused(&["node", "--listen", "127.0.0.1:0"], &network.home(3));
    assert!(message.contains("cannot listen") || message.contains("in use by another process"), "{message}");
    // A copy of a home does not have the locks of the original.
    let copy = network.folder.path().join("copy");
    let copied = std::process::Command::new("cp").arg("-a").arg(network.home(3)).arg(&copy).status();
    assert!(copied.expect("cp runs").success());
    let output = walras()
        .args(["node", "--listen", "127.0.0.1:0", "--home"])
        .arg(&copy)
        .env("WALRAS_NETWORK__LISTEN", "127.0.0.1:0")
        .output()
        .expect("walras runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("key is in use by another process"), "{message}");
    network.sees(3, "6000000");
    network.pay(3, "4");
    (0..4).for_each(|index| network.sees(index, "10000000"));
    let ended = network.running.remove(0).expect("it runs").terminate();
    assert!(ended.success(), "{ended}");
}

/// Each validator in turn is paused and resumed, then each in turn is stopped in order and restarted: the others
/// never wait for it, and it catches up. `make net-test` takes seven.
#[test]
fn one_after_the_other_may_pause_and_be_restarted() {
    let size = std::env::var("WALRAS_NET_VALIDATORS").ok().and_then(|size| size.parse().ok()).unwrap_or(4);
    let mut network = Network::start(size);
    let mut paid = 0;
    // A validator that lags returns a used sequence number: the payment would be the same transaction as the one
    // before.
    let pay = |network: &Network, paid: &mut u64, through: usize| {
        if *paid > 0 {
            network.sees(through, &(1_000_000 * *paid).to_string());
        }
        *paid += 1;
        network.pay(through, "1");
    };
    for index in 0..size {
        network.running[index].as_ref().expect("it runs").signal("STOP");
        pay(&network, &mut paid, (index + 1) % size);
        network.running[index].as_ref().expect("it runs").signal("CONT");
        network.sees(index, &(1_000_000 * paid).to_string());
    }
    for index in 0..size {
        let ended = network.running[index].take().expect("it runs").terminate();
        assert!(ended.success(), "{ended}");
        pay(&network, &mut paid, (index + 1) % size);
        network.run(index);
        pay(&network, &mut paid, index);
    }
    (0..size).for_each(|index| network.sees(index, &(1_000_000 * paid).to_string()));
}
