//! Processes: four validators change to other rules by vote, with programs of two versions, load, and kills around the
//! first height of the new rules. The older program is this one, told to follow no rules above the older ones. And they
//! vote another fee over the command line, with one of them killed around its first height.

mod process;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use process::{Process, agent, get, walras};
use serde_json::Value;
use tempfile::TempDir;

/// However slow the machine is.
const PATIENCE: Duration = Duration::from_secs(600);
const EPOCH_HEIGHTS: u64 = 40;
const OLD: [(&str, &str); 2] = [("WALRAS_NETWORK__NEWEST_RULES", "11"), ("WALRAS_NETWORK__APPROVE", "12")];
const NEW: [(&str, &str); 1] = [("WALRAS_NETWORK__APPROVE", "12")];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Network {
    folder: TempDir,
    nodes: Vec<Option<Process>>,
    sent: u64,
}

impl Network {
    /// Founds four validators under rules 11, whose patience and notice are short.
    fn founded() -> Network {
        Network::under(11, "0")
    }

    /// The same under other rules, with a fee.
    fn under(rules: u32, fee: &str) -> Network {
        let folder = TempDir::new().expect("a folder");
        let epoch = EPOCH_HEIGHTS.to_string();
        let mut init = walras();
        init.args(["init", "--validators", "4", "--asset", "USD:2", "--supply", "1000000", "--fee", fee]);
        init.args(["--epoch-heights", &epoch]);
        for _ in 0..4 {
            init.arg("--address").arg(sockets::free_address().expect("a free port").to_string());
        }
        let output = init.arg("--home").arg(folder.path()).output().expect("walras runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let network = Network { folder, nodes: (0..4).map(|_| None).collect(), sent: 0 };
        for home in (0..4).map(|index| network.home(index)).chain([network.folder.path().into()]) {
            let path = home.join("genesis.json");
            let mut genesis: Value = serde_json::from_slice(&std::fs::read(&path).expect("there")).expect("JSON");
            genesis["rules"] = rules.into();
            genesis["charter"] = serde_json::json!({"notice_min": 10, "patience": 60});
            genesis["consensus"]["heartbeat_ms"] = 100.into();
            genesis["consensus"]["interval_ms"] = 20.into();
            std::fs::write(&path, serde_json::to_string_pretty(&genesis).expect("JSON")).expect("written");
        }
        network
    }

    fn home(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("validator-{index}"))
    }

    /// Starts a node, or kills and starts it again.
    fn start(&mut self, index: usize, settings: &[(&str, &str)]) {
        self.nodes[index] = None;
        self.nodes[index] = Some(Process::start(&self.home(index), settings));
    }

    fn server(&self, index: usize) -> &str {
        &self.nodes[index].as_ref().expect("it runs").server
    }

    fn get(&self, index: usize, path: &str) -> (u16, Value) {
        get(&agent(), self.server(index), path)
    }

    fn height(&self, index: usize) -> u64 {
        self.get(index, "/v1/status").1["height"].as_u64().expect("a height")
    }

    fn upgrade(&self, index: usize) -> Value {
        self.get(index, "/v1/upgrade").1
    }

    fn logs(&self) -> String {
        self.nodes.iter().flatten().map(Process::log).collect::<Vec<_>>().join("\n")
    }

    /// Waits until it holds.
    fn until(&self, what: &str, holds: impl Fn(&Network) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "{what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A client pays through a node; the payment is committed when this returns.
    fn pay(&mut self, index: usize) {
        self.sent += 1;
        let to = format!("0x{:040x}", 77);
        self.run(index, &["wallet", "pay", "--to", &to, "--asset", "USD", "--amount", "1", "--key", "issuer-key.json"]);
    }

    /// A command at a node, which must succeed; what it says.
    fn run(&self, index: usize, arguments: &[&str]) -> String {
        let (code, said) = command(self.folder.path(), self.server(index), arguments);
        assert!(code == Some(0), "{arguments:?}: {said}\n{}", self.logs());
        said
    }

    /// The units of asset 0 that the issuer has.
    fn issuers(&self, index: usize) -> u64 {
        let said = self.run(index, &["wallet", "show", "--json", "--key", "issuer-key.json"]);
        let account: Value = serde_json::from_str(&said).expect("JSON");
        account["account"]["balances"][0]["available"].as_str().expect("units").parse().expect("a number")
    }

    /// A height at which all nodes have the same block and state.
    fn agree_at(&self, height: u64) {
        let block = |index: usize| {
            let block = self.get(index, &format!("/v1/blocks/{height}")).1;
            ["block", "parent", "state_root", "receipts_root"].map(|field| block[field].clone())
        };
        let blocks: Vec<_> = (0..4).map(block).collect();
        assert!(blocks.iter().all(|of| *of == blocks[0] && of.iter().all(Value::is_string)), "{height}: {blocks:#?}");
    }

    fn end(mut self) {
        self.nodes.drain(..).flatten().for_each(|node| assert_eq!(node.terminate().code(), Some(0)));
    }

    /// Units that were paid, as a node has them.
    fn paid(&self, index: usize) -> String {
        let (_, account) = self.get(index, &format!("/v1/accounts/0x{:040x}", 77));
        account["balances"][0]["available"].as_str().unwrap_or("0").to_string()
    }
}

/// The exit code and the words of a command.
fn command(home: &Path, server: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = walras().args(arguments).env("WALRAS_SERVER", server).current_dir(home).output().expect("walras runs");
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Nodes that know the new rules go on through kills at the last old height and the first new ones. The one that does
/// not stops at the last old height, answers reads, does not exit, and goes on from its log with the new program.
#[test]
fn a_node_without_rules_stops_before_them_and_loses_nothing() {
    let mut network = Network::founded();
    (0..4).for_each(|index| network.start(index, &OLD));
    network.pay(0);
    // Operators install the new program, one after the other; the last one does not.
    for index in 0..3 {
        network.start(index, &NEW);
        network.pay(index);
    }
    network.until("three approve", |network| {
        let approved = &network.upgrade(0)["approved"][0];
        approved["rules"] == 12 && approved["accounts"].as_array().is_some_and(|all| all.len() == 3)
    });
    assert_eq!(network.upgrade(3)["known"], 11);
    network.until("the rules are confirmed", |network| network.upgrade(0)["confirmed"] == 12);
    let first = network.upgrade(0)["since"].as_u64().expect("a height");
    network.pay(1);
    // Kills at F − 1, F and F + 1, by SIGKILL.
    for (index, height) in [(0, first - 1), (1, first), (2, first + 1)] {
        let watched = (index + 1) % 3;
        network.until("the height comes", |network| network.height(watched) >= height);
        network.start(index, &NEW);
    }
    network.until("the new rules act", |network| (0..3).all(|index| network.height(index) > first + 2));
    network.pay(2);

    // The old program has all blocks up to the last old height, and says what it needs.
    network.until("the old program stops", |network| network.height(3) == first - 1);
    let (status, unready) = network.get(3, "/readyz");
    assert_eq!((status, &unready["error"]["code"]), (503, &"needs_rules".into()), "{unready}");
    assert_eq!(network.get(3, &format!("/v1/blocks/{}", first - 1)).0, 200, "it answers reads");
    assert_eq!(network.get(3, &format!("/v1/blocks/{first}")).0, 404, "and has nothing of the new rules");
    let metrics = agent().get(format!("{}/metrics", network.server(3))).call().expect("answers");
    let metrics = metrics.into_body().read_to_string().expect("text");
    assert!(metrics.contains("walras_rules_agreed 12") && metrics.contains("walras_rules_known 11"), "{metrics}");
    let (code, said) = command(network.folder.path(), network.server(3), &["upgrade", "status"]);
    assert!(code == Some(1) && said.contains("this node knows up to 11"), "{said}");
    let (code, said) = command(network.folder.path(), network.server(0), &["upgrade", "status"]);
    assert!(code == Some(0) && said.contains("rules 12"), "{said}");
    let refused = command(
        network.folder.path(),
        network.server(3),
        &[
            "wallet",
            "pay",
            "--to",
            &format!("0x{:040x}", 77),
            "--asset",
            "USD",
            "--amount",
            "1",
            "--key",
            "issuer-key.json",
        ],
    );
    assert!(refused.0 == Some(1) && refused.1.contains("rules 12"), "{refused:?}");
    assert!(network.nodes[3].as_ref().expect("kept").log().contains("install a version of walras"));

    // The old program again: the same. Then the new one: it continues from its log, and is ready again.
    network.start(3, &OLD);
    network.until("it reads", |network| network.height(3) == first - 1);
    network.pay(0);
    network.start(3, &NEW);
    let now = network.height(0);
    network.until("it has caught up", |network| network.height(3) >= now);
    network.until("it is ready", |network| network.upgrade(0)["unready"].as_array().is_some_and(Vec::is_empty));
    network.until("it takes transactions", |network| {
        let ready = agent().get(format!("{}/readyz", network.server(3))).call().expect("answers");
        ready.status() == 200
    });
    network.pay(3);

    // No height is lost, and no state differs.
    let paid = (100 * network.sent).to_string();
    network.until("all have paid", |network| (0..4).all(|index| network.paid(index) == paid));
    (first - 3..first + 3).for_each(|height| network.agree_at(height));
    network.end();
}

/// Three of four validators want a dearer fee. It acts at its height on all, on the one that was killed before it too.
#[test]
fn a_voted_fee_acts_at_its_height_on_all_nodes() {
    let mut network = Network::under(16, "0.01");
    (0..4).for_each(|index| network.start(index, &[]));
    let key = |index: usize| format!("validator-{index}/account-key.json");
    // Founders propose and vote with what `walras init` gave them.
    let proposal = ["upgrade", "propose", "parameter", "--name", "fee", "--value"];
    let (code, said) =
        command(network.folder.path(), network.server(0), &[&proposal[..], &["3", "--key", &key(0)]].concat());
    assert!(code == Some(1) && said.contains("step_too_large"), "{said}");
    println!("{}", network.run(0, &[&proposal[..], &["2", "--key", &key(0)]].concat()));
    let open = |network: &Network, index| network.get(index, "/v1/parameters").1["proposals"][0]["id"].clone();
    network.until("all know it", |network| (0..4).all(|index| open(network, index).is_string()));
    let id = open(&network, 1).as_str().expect("it is open").to_string();
    for index in 0..3 {
        println!("{}", network.run(index, &["upgrade", "vote", "--proposal", &id, "--key", &key(index)]));
    }
    println!("{}", network.run(3, &["upgrade", "parameters"]));
    let acts = |network: &Network| network.get(0, "/v1/parameters").1["coming"][0]["acts"].as_u64();
    network.until("it passes", |network| acts(network).is_some());
    println!("{}", network.run(3, &["upgrade", "parameters"]));
    let first = acts(&network).expect("it waits");
    network.until("an epoch before", |network| network.height(0) + 4 >= first);
    // By SIGKILL; the others pass the height meanwhile.
    network.nodes[3] = None;
    network.until("it acts", |network| (0..3).all(|index| network.height(index) > first));
    network.start(3, &[]);
    let now = network.height(0);
    network.until("it has caught up", |network| network.height(3) >= now);
    let fee = |index: usize| network.get(index, "/v1/limits").1["fee"].clone();
    assert_eq!((0..4).map(fee).collect::<Vec<_>>(), ["2"; 4]);
    let before = network.issuers(0);
    network.pay(3);
    network.until("it is paid", |network| (0..4).all(|index| network.paid(index) == "100"));
    assert_eq!(before - network.issuers(0), 102);
    (first - 3..first + 1).for_each(|height| network.agree_at(height));
    // Stakes of the genesis may be paid back by now, and its keys prove nothing then: a pin is newer.
    let said = network.run(3, &["light", "pin", "--own-node", "--genesis", "genesis.json", "--json"]);
    let pin: Value = serde_json::from_str(&said).expect("JSON");
    let pin = pin["pin"].as_str().expect("a pin");
    let proved = network.run(3, &["light", "parameters", "--genesis", "genesis.json", "--trust", pin, "--json"]);
    let proved: Value = serde_json::from_str(&proved).expect("JSON");
    assert_eq!((&proved["first"]["fee"], &proved["now"]["fee"]), (&"1".into(), &"2".into()), "{proved}");
    println!("{}", network.run(3, &["upgrade", "parameters"]));
    network.end();
}
