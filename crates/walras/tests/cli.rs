//! The command line from end to end, by processes: a home, its node, wallets that trade on it, and every error.

mod process;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use process::{Process, agent, get, walras};
use serde_json::Value;
use tempfile::TempDir;

/// A home with two assets, and the folder that contains it.
struct World {
    folder: TempDir,
    home: PathBuf,
    issuer: String,
}

impl World {
    fn new() -> World {
        let folder = TempDir::new().expect("a folder");
        let home = folder.path().join("home");
        let assets = ["--asset", "USD:2", "--asset", "EUR:2", "--supply", "1000", "--fee", "0"];
        let arguments = [&["init", "--json"][..], &assets, &["--home"]].concat();
        let made = json(&good(walras().args(arguments).arg(&home).output()));
        let issuer = made["issuer"].as_str().expect("an issuer").to_string();
        World { folder, home, issuer }
    }

    fn start(&self) -> Process {
        Process::start(&self.home, &[("WALRAS_BLOCKS__INTERVAL_MS", "10")])
    }

    /// A second attempt to run the node, which must fail.
    fn refused(&self) -> String {
        bad(walras().args(["node", "--listen", "127.0.0.1:0", "--home"]).arg(&self.home).output(), 1)
    }

    fn issuer_key(&self) -> PathBuf {
        self.home.join("issuer-key.json")
    }
}

/// A wallet that uses a node.
struct Holder<'a> {
    key: PathBuf,
    server: &'a str,
}

impl Holder<'_> {
    fn run(&self, arguments: &str) -> std::io::Result<Output> {
        let mut command = walras();
        command.arg("wallet").args(arguments.split(' ')).arg("--key").arg(&self.key);
        command.env("WALRAS_SERVER", self.server).output()
    }

    fn json(&self, arguments: &str) -> Value {
        json(&good(self.run(&format!("{arguments} --json"))))
    }

    /// Units that it can spend, and units that are locked.
    fn units(&self, symbol: &str) -> (u64, u64) {
        let shown = self.json("show");
        let balances = shown["account"]["balances"].as_array().expect("balances");
        let Some(found) = balances.iter().find(|balance| balance["asset"] == symbol) else { return (0, 0) };
        let units = |name: &str| found[name].as_str().and_then(|units| units.parse().ok()).expect("units");
        (units("available"), units("locked"))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn good(output: std::io::Result<Output>) -> String {
    let output = output.expect("walras runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn bad(output: std::io::Result<Output>, code: i32) -> String {
    let output = output.expect("walras runs");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{} {message}", text(&output.stdout));
    message
}

fn json(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

/// Makes a key and registers an account for it through the issuer.
fn open_account<'a>(world: &World, issuer: &Holder<'a>, name: &str) -> (Holder<'a>, String) {
    let holder = Holder { key: world.folder.path().join(name), server: issuer.server };
    let made = holder.json("new");
    let public = made["public_key"].as_str().expect("a key");
    assert_eq!(issuer.json(&format!("create-account --new-key {public}"))["outcome"]["result"], "applied");
    let address = made["address"].as_str().expect("an address").to_string();
    // The output for people has upper-case letters that are a checksum.
    assert!(good(holder.run("address")).trim().eq_ignore_ascii_case(&address));
    (holder, address)
}

#[test]
fn wallets_pay_trade_cancel_issue_and_burn() {
    let world = World::new();
    let node = world.start();
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    let (alice, address) = open_account(&world, &issuer, "alice.json");
    assert_eq!(issuer.json("show")["account"]["address"], world.issuer);

    let paid = issuer.json(&format!("pay --to {address} --asset USD --amount 250.5"));
    assert_eq!((&paid["status"], &paid["outcome"]["result"]), (&"committed".into(), &"applied".into()));
    assert_eq!((alice.units("USD"), issuer.units("USD")), ((25_050, 0), (74_950, 0)));

    let small = bad(alice.run("offer --sell USD --buy EUR --amount 40.95 --limit 5"), 1);
    assert!(small.contains("sells at least 40.96 USD"), "{small}");
    let small = bad(alice.run("offer --sell USD --buy EUR --amount 50 --limit 0.5"), 1);
    assert!(small.contains("asks at least 40.96 EUR"), "{small}");
    let offered = alice.json("offer --sell USD --buy EUR --amount 100 --limit 0.5");
    assert_eq!((&offered["outcome"]["result"], &offered["outcome"]["left"]), (&"offered".into(), &"10000".into()));
    assert_eq!(alice.units("USD"), (15_050, 10_000));
    let id = alice.json("show")["offers"][0]["id"].as_str().expect("an id").to_string();

    let met = issuer.json("offer --sell EUR --buy USD --amount 50 --limit 1");
    let units = |name: &str| met["outcome"][name].as_str().and_then(|units| units.parse::<u64>().ok()).expect("units");
    assert!(units("sold") > 0 && units("bought") >= units("sold"), "{met}");
    let (received, locked) = (alice.units("EUR").0, alice.units("USD").1);
    // Alice gets at least half a EUR for each USD; commission and rounding are burnt.
    assert!(received > 0 && received <= units("sold") && 2 * received >= 10_000 - locked, "{received} {locked} {met}");

    if locked > 0 {
        assert_eq!(alice.json(&format!("cancel --offer {id}"))["outcome"]["result"], "cancelled");
    }
    assert_eq!(alice.units("USD").1, 0);
    assert_eq!(alice.json("show")["offers"], Value::Array(vec![]));

    let issued = |at: usize| get(&agent(), &node.server, "/v1/assets").1["assets"][at]["issued"].clone();
    let before = issued(0).as_str().and_then(|units| units.parse::<u64>().ok()).expect("units");
    assert_eq!(issuer.json(&format!("issue --to {address} --asset USD --amount 5"))["outcome"]["result"], "applied");
    assert_eq!(issued(0), (before + 500).to_string());
    assert_eq!(issuer.json("burn --asset USD --amount 7")["outcome"]["result"], "applied");
    assert_eq!(issued(0), (before - 200).to_string());

    // The same in the output for people.
    assert!(good(alice.run("show")).contains("USD"));
    assert!(good(alice.run(&format!("pay --to {} --asset USD --amount 0.01", world.issuer))).contains("in block"));
    assert_eq!(node.terminate().code(), Some(0));
}

fn full_disk() -> File {
    File::options().write(true).open("/dev/full").expect("a device that is full")
}

#[test]
fn a_log_that_nobody_takes_ends_and_delays_no_node() {
    let world = World::new();
    let (unread, to_unread) = std::io::pipe().expect("a pipe");
    let (gone, to_gone) = std::io::pipe().expect("a pipe");
    drop(gone);
    let logs: [(&str, Stdio); 3] =
        [("gone", to_gone.into()), ("full", full_disk().into()), ("unread", to_unread.into())];
    for (name, log) in logs {
        let settings = [("WALRAS_BLOCKS__INTERVAL_MS", "10"), ("RUST_LOG", "trace")];
        let node = Process::spawn_logging(walras(), &world.home, &settings, log).listening();
        let issuer = Holder { key: world.issuer_key(), server: &node.server };
        for _ in 0..3 {
            let burnt = issuer.json("burn --asset USD --amount 1 --again");
            assert_eq!(burnt["status"], "committed", "{name}: {burnt}");
        }
        assert_eq!(node.terminate().code(), Some(0), "{name}");
    }
    drop(unread);
}

#[test]
fn results_that_cannot_be_written_end_a_command_with_1() {
    let world = World::new();
    let node = world.start();
    let home = world.home.display().to_string();
    let inspect = ["config", "check", "--home", &home];
    let commands: [&[&str]; 6] = [
        &["help"],
        &["clear", "--help"],
        &["completions", "bash"],
        &["edge", "plan", "--participants", "100"],
        &["status", "--server", &node.server],
        &inspect,
    ];
    for arguments in commands {
        let told = bad(walras().args(arguments).stdout(full_disk()).output(), 1);
        assert!(told.contains("standard output: No space left") && !told.contains("panicked"), "{arguments:?} {told}");
        let (gone, to_gone) = std::io::pipe().expect("a pipe");
        drop(gone);
        let told = bad(walras().args(arguments).stdout(to_gone).output(), 0);
        assert!(told.is_empty(), "{arguments:?} {told}");
    }
    // A payment is made, and its command says that it failed otherwise than by not paying.
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    let (_, address) = open_account(&world, &issuer, "bob.json");
    let mut pay = walras();
    pay.args(["wallet", "pay", "--to", &address, "--asset", "USD", "--amount", "1", "--key"]).arg(world.issuer_key());
    let told = bad(pay.env("WALRAS_SERVER", &node.server).stdout(full_disk()).output(), 1);
    assert!(told.contains("what the command did stands"), "{told}");
    assert_eq!(issuer.units("USD").0, 99_900);
}

#[test]
fn a_torn_file_of_a_pending_transaction_stops_no_later_payment() {
    let world = World::new();
    let node = world.start();
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    let folder = world.home.join("issuer-key.json.pending");
    for (number, content) in [vec![], vec![7; 20], vec![0; 120]].iter().enumerate() {
        std::fs::create_dir_all(&folder).expect("a folder");
        let torn = folder.join(format!("0x{}", format!("{:02x}", number + 1).repeat(32)));
        std::fs::write(&torn, content).expect("written");
        let burnt = issuer.json(&format!("burn --asset USD --amount {}", number + 1));
        assert_eq!(burnt["status"], "committed", "{burnt}");
        assert!(!torn.exists() && !folder.exists(), "nothing is left over");
    }
}

#[test]
fn orders_end_and_are_replaced() {
    let world = World::new();
    let node = world.start();
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    let once = issuer.json("offer --sell USD --buy EUR --amount 100 --limit 5 --life one-batch");
    assert_eq!(once["outcome"]["returned"], "10000");
    let name = "0x000102030405060708090a0b0c0d0e0f";
    let rests = issuer.json(&format!("offer --sell USD --buy EUR --amount 100 --limit 5 --client {name}"));
    assert_eq!((&rests["outcome"]["left"], &rests["operation"]["client"]), (&"10000".into(), &name.into()));
    let id = rests["sequence"].as_str().expect("a number");
    let replaced = issuer.json(&format!("replace --offer {id} --amount 150 --limit 4"));
    let outcome = &replaced["outcome"];
    assert_eq!((&outcome["result"], &outcome["remained"]), (&"replaced".into(), &"10000".into()));
    assert_eq!((&outcome["left"], issuer.units("USD").1), (&"15000".into(), 15_000));
    assert!(bad(issuer.run(&format!("replace --offer {id} --amount 150 --limit 4")), 1).contains("no resting offer"));
    let id = replaced["sequence"].as_str().expect("a number");
    let cancelled = issuer.json(&format!("cancel --offer {id},999"));
    assert_eq!(cancelled["outcome"], serde_json::json!({"result": "cancelled", "found": 1, "missing": 0}));
    assert_eq!(issuer.units("USD").1, 0);
    assert_eq!(node.terminate().code(), Some(0));
}

/// Everybody has the bytes of what was refused. With the money in hand the same command sends them, and they count
/// once.
#[test]
fn a_refused_payment_is_sent_again_with_the_same_bytes() {
    let world = World::new();
    let node = world.start();
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    let (alice, address) = open_account(&world, &issuer, "alice.json");
    let back = format!("pay --to {} --asset EUR --amount 3", world.issuer);
    issuer.json(&format!("pay --to {address} --asset USD --amount 9"));
    let refused = alice.run(&back).expect("walras runs");
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    let id = text(&refused.stdout).trim().to_string();
    assert!(id.starts_with("transaction 0x"), "{id}");
    issuer.json(&format!("pay --to {address} --asset EUR --amount 9"));
    assert!(good(alice.run(&back)).starts_with(&id), "the same bytes");
    assert_eq!(alice.units("EUR").0, 600);
    assert!(!good(alice.run(&back)).contains(&id), "what took effect is forgotten, and the same again is new");
    assert_eq!(alice.units("EUR").0, 300);
    assert_eq!(node.terminate().code(), Some(0));
}

#[test]
fn a_wallets_mistakes_are_named() {
    let world = World::new();
    let node = world.start();
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    let to = format!("0x{}", "11".repeat(20));
    let pay = |asset: &str, amount: &str| issuer.run(&format!("pay --to {to} --asset {asset} --amount {amount}"));
    assert!(bad(pay("USD", "1000.01"), 1).contains("overdraft"));
    assert!(bad(pay("GBP", "1"), 1).contains("no asset \"GBP\"; there are USD, EUR"));
    assert!(bad(pay("USD", "0.001"), 1).contains("0.001"));
    let wrong = walras().args(["init", "--asset", "USD:many", "--home"]).arg(world.folder.path().join("new")).output();
    let wrong = bad(wrong, 1);
    assert!(wrong.contains("a whole number from 0 to 18, as in EUR:2") && !wrong.contains("invalid digit"), "{wrong}");
    assert!(bad(pay("USD", "0"), 1).contains("zero_amount"));
    assert!(bad(issuer.run("cancel --offer 99"), 1).contains("no resting offer 99"));
    assert!(bad(issuer.run("pay --to nobody --asset USD --amount 1"), 2).contains("nobody"));
    assert!(bad(issuer.run("spend"), 2).contains("spend"));
    assert!(bad(issuer.run("new"), 1).contains("never overwritten"));

    let mut command = walras();
    command.args(["wallet", "burn", "--asset", "USD", "--amount", "1", "--server", &node.server, "--key"]);
    let wrong = command.arg(world.issuer_key()).env("WALRAS_PASSPHRASE", "battery staple").output();
    assert!(bad(wrong, 1).contains("the passphrase is wrong"));
    assert_eq!(issuer.units("USD"), (100_000, 0), "mistakes change nothing");

    // No one listens on the discard port.
    let nowhere = Holder { key: world.issuer_key(), server: "http://127.0.0.1:9" };
    assert!(bad(nowhere.run("show"), 1).contains("no node answers at http://127.0.0.1:9"));
}

#[test]
fn a_node_refuses_what_it_cannot_run() {
    let world = World::new();
    let nowhere = world.folder.path().join("nowhere");
    let message = bad(walras().args(["node", "--home"]).arg(&nowhere).output(), 1);
    assert!(message.contains("is no home") && message.contains("walras init --home"), "{message}");
    assert!(bad(walras().args(["node", "--listen", "here"]).output(), 2).contains("here"));
    let again = bad(walras().args(["init", "--home"]).arg(&world.home).output(), 1);
    assert!(again.contains("is a home already"), "{again}");

    let node = world.start();
    assert!(world.refused().contains("in use by another process"));
    assert_eq!(node.terminate().code(), Some(0));

    std::fs::write(world.home.join("walras.toml"), "[blocks]\nintervall_ms = 5\n").expect("written");
    let message = world.refused();
    assert!(message.contains("walras.toml") && message.contains("did you mean \"interval_ms\"?"), "{message}");
    std::fs::write(world.home.join("walras.toml"), "").expect("written");
    let variable = walras().args(["node", "--home"]).arg(&world.home).env("WALRAS_BLOCKS__INTERVALL_MS", "5").output();
    assert!(bad(variable, 1).contains("WALRAS_BLOCKS__INTERVALL_MS"));
    let genesis = std::fs::read_to_string(world.home.join("genesis.json")).expect("read");
    std::fs::write(world.home.join("genesis.json"), "{\"chain\": }").expect("written");
    assert!(world.refused().contains("genesis.json"));
    // An edit of the genesis after the first block is reported as such.
    std::fs::write(world.home.join("genesis.json"), &genesis).expect("written");
    let node = world.start();
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    issuer.json(&format!("pay --to 0x{} --asset USD --amount 1", "11".repeat(20)));
    assert_eq!(node.terminate().code(), Some(0));
    let edited = genesis.replacen("100000", "100001", 1);
    assert_ne!(edited, genesis);
    std::fs::write(world.home.join("genesis.json"), edited).expect("written");
    let message = world.refused();
    assert!(message.contains("If genesis.json was edited") && message.contains("restore the original"), "{message}");
    std::fs::write(world.home.join("genesis.json"), genesis).expect("written");
    assert_eq!(world.start().terminate().code(), Some(0));
}

/// The only file whose name has this prefix.
fn file(data: &Path, prefix: &str) -> PathBuf {
    let names = std::fs::read_dir(data).expect("a store").map(|entry| entry.expect("an entry").path());
    let mut found =
        names.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    found.next().expect("a file")
}

#[test]
fn damage_is_named_with_file_and_offset() {
    let world = World::new();
    let node = world.start();
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    for _ in 0..2 {
        issuer.json(&format!("pay --to 0x{} --asset USD --amount 1", "11".repeat(20)));
    }
    assert_eq!(node.terminate().code(), Some(0));
    let inspect = || walras().args(["inspect", "--home"]).arg(&world.home).output();
    assert!(good(inspect()).contains("matches its digest"));

    let log = file(&world.home.join("data"), "blocks-");
    let sound = std::fs::read(&log).expect("read");
    // The file's header takes 96 bytes, a record's 64: this is in the payload of block 1.
    let mut damaged = sound.clone();
    damaged[96 + 64 + 10] ^= 1;
    std::fs::write(&log, &damaged).expect("written");
    let message = world.refused();
    let place = format!("{}, byte 96", log.display());
    assert!(message.contains(&place) && message.contains("fetch the state anew"), "{message}");
    let output = inspect().expect("walras runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("DAMAGED") && text(&output.stdout).contains("byte 96"));
    assert!(message.contains("inspect --salvage") && message.contains("snapshot restore"), "{message}");
    assert!(!text(&output.stdout).contains("1 to        0"), "{}", text(&output.stdout));
    let salvage = || walras().args(["inspect", "--salvage", "--json", "--home"]).arg(&world.home).output();
    let intact = || json(&text(&salvage().expect("walras runs").stdout))["intact"].clone();
    assert_eq!((&intact()["blocks"], &intact()["state"]), (&json("[1, 0]"), &json("0")), "block 1 is damaged");
    assert_eq!(std::fs::read(&log).expect("read"), damaged, "a damaged log is left as it is");
    // Damage further on leaves everything before it intact.
    let mut later = sound.clone();
    let last = later.len() - 90;
    later[last] ^= 1;
    std::fs::write(&log, &later).expect("written");
    assert_eq!((&intact()["blocks"], &intact()["state"]), (&json("[1, 1]"), &json("1")), "{}", intact());
    let said = text(&walras().args(["inspect", "--salvage", "--home"]).arg(&world.home).output().expect("runs").stdout);
    assert!(said.contains("heights 1 to 1, without a gap") && said.contains("up to height 1"), "{said}");

    // After the repair everything is there again.
    std::fs::write(&log, &sound).expect("written");
    let node = world.start();
    let issuer = Holder { key: world.issuer_key(), server: &node.server };
    assert_eq!(issuer.units("USD"), (99_800, 0));
    assert_eq!(node.terminate().code(), Some(0));
}

/// What payments promise is said where payers look: before they pay.
#[test]
fn the_help_of_payments_says_what_they_promise_and_cost() {
    let help = |arguments: &[&str]| {
        let shown = good(walras().arg("pay").args(arguments).arg("--help").output());
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (arguments, promise) in [
        (&[][..], "no other payment of this money can be confirmed"),
        (&[], "it is final, also if the network restarts"),
        (&[], "A restart of the network keeps settled payments"),
        (&[], "Contesting costs a fee for the validators' work, also if you are right"),
        (&[], "On a chain of one node there is no proof"),
        (&["receive"], "it lapses unless you settle it within a lane epoch"),
        (&["contest"], "Of an expired case the unused part returns"),
        (&["follow"], "Settled money is on the list"),
    ] {
        let shown = help(arguments);
        assert!(shown.contains(promise), "{arguments:?}: {shown}");
    }
}
