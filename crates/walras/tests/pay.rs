//! Money on the payment lane, between processes: ledger → lane → lane → ledger, a payer that is killed between
//! storing a payment and sending it, a purse that is restored from a copy, and lane epochs that end.

mod process;
mod purses;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use process::{agent, get, walras};
use purses::{Network, file, text};
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn money_goes_from_the_ledger_over_the_lane_to_the_ledger() {
    let network = Network::new(4, 100_000);
    let issuer = network.path("issuer-key.json");
    let issuer = issuer.to_str().expect("text");
    let made = network.pay("alice", &["new"]);
    let genesis = network.path("genesis.json");
    let trusted = network.pay("bob", &["new", "--genesis", genesis.to_str().expect("text")]);
    assert_eq!(made["fingerprint"], trusted["fingerprint"], "the node returns the genesis' keys");
    assert!(network.refused("alice", &["new"]).contains("is a purse already"));
    assert!(network.refused("nobody", &["balance"]).contains("walras pay new"));

    // Ledger → lane.
    let before = network.account("issuer-key.json", "EUR");
    let deposited = network.pay("alice", &["deposit", "--key", issuer, "--asset", "EUR", "--amount", "100"]);
    assert_eq!(deposited["spendable"], true, "{deposited}");
    assert_eq!(network.balance("alice", "EUR"), (10_000, 0, 0));
    assert_eq!(network.account("issuer-key.json", "EUR"), before - 10_000);

    // Lane → lane, with change, while one of four validators is silent.
    network.nodes[3].signal("STOP");
    let address = network.pay("bob", &["address"])["address"].as_str().expect("an address").to_string();
    let order = ["send", "--to", &address, "--asset", "EUR", "--amount", "30.25", "--receipt", "r.txt", "--no-settle"];
    let sent = network.pay("alice", &order);
    let payment = sent["payments"][0]["payment"].as_str().expect("a digest").to_string();
    assert!(sent["payments"][0]["fast_ms"].as_f64().is_some_and(|time| time > 0.0), "{sent}");
    assert_eq!(network.balance("alice", "EUR"), (0, 6_975, 0), "change is fast");
    let receipt = network.path("r.txt");
    let verified = network.run("bob", &["verify", "r.txt"]);
    let said = text(&verified.stdout);
    assert!(verified.status.success() && said.contains("30.25 EUR") && said.contains("proves fast only"), "{said}");
    assert!(network.refused("alice", &["receive", "r.txt"]).contains("not belong to this purse"));
    let damaged = file(&receipt).replacen("00", "01", 1);
    std::fs::write(network.path("bad.txt"), damaged).expect("written");
    network.refused("bob", &["verify", "bad.txt"]);
    network.refused("bob", &["receive", "bad.txt"]);
    // Digits of the network, and of the home epoch of the payment behind the output.
    for (name, digit, said) in
        [("elsewhere.txt", 2 * 2, "open the purse of that network"), ("epoch.txt", 2 * 79, "are not known here")]
    {
        let slip = file(&receipt);
        let (head, digits) = slip.trim().split_at("WALRAS:".len());
        let changed = if &digits[digit..=digit] == "7" { "3" } else { "7" };
        let text = format!("{head}{}{changed}{}", &digits[..digit], &digits[digit + 1..]);
        std::fs::write(network.path(name), text).expect("written");
        for command in ["verify", "receive"] {
            let told = network.refused("bob", &[command, name]);
            assert!(told.contains(said) && told.contains(name), "{told}");
        }
    }
    assert_eq!(network.balance("bob", "EUR"), (0, 0, 0));
    let received = network.pay("bob", &["receive", "r.txt"]);
    assert_eq!(
        (&received["received"][0]["amount"], &received["received"][0]["settled"]),
        (&"3025".into(), &true.into())
    );
    assert_eq!(network.pay("bob", &["receive", "r.txt"])["received"][0]["new"], false);
    assert_eq!(network.balance("bob", "EUR"), (3_025, 0, 0), "taken once");
    assert_eq!(network.pay("alice", &["settle"])["settled"], 1);

    // Money moves only when the place for its receipt is held, and no receipt is overwritten.
    let (held, kept) = (network.balance("alice", "EUR"), file(&receipt));
    for place in ["nowhere/r.txt", "/dev/full", "r.txt"] {
        let order = ["send", "--to", &address, "--asset", "EUR", "--amount", "1", "--receipt", place];
        let told = network.refused("alice", &order);
        assert!(told.contains("nothing was paid") && told.contains(place), "{told}");
    }
    assert_eq!((network.balance("alice", "EUR"), file(&receipt)), (held, kept));
    network.refused("alice", &["export", &payment, "--file", "bad.txt"]);

    // What stays in the purse has no receipt, and everything is in the history.
    let own = network.pay("alice", &["address"])["address"].as_str().expect("an address").to_string();
    let order = ["send", "--to", &own, "--asset", "EUR", "--amount", "3", "--receipt", "own.txt"];
    let moved = network.pay("alice", &order);
    assert!(moved["receipt"].is_null() && !network.path("own.txt").exists(), "{moved}");
    let moved = moved["payments"][0]["payment"].as_str().expect("a digest").to_string();
    assert!(network.refused("alice", &["export", &moved]).contains("no receipt"));
    let history = network.pay("alice", &["history"]);
    let kinds: Vec<_> = history["history"].as_array().expect("rows").iter().map(|row| row["kind"].clone()).collect();
    assert_eq!(kinds, ["deposited", "sent", "moved"], "{history}");
    let row = &history["history"][1];
    assert_eq!((&row["amount"], &row["to"]), (&"3025".into(), &address.as_str().into()), "{row}");
    assert_eq!(network.pay("bob", &["history"])["history"][0]["kind"], "received");
    let too_much = network.refused("alice", &["send", "--to", &own, "--asset", "EUR", "--amount", "9999"]);
    assert!(too_much.contains("9929.25 EUR are missing"), "{too_much}");
    assert_eq!(network.balance("alice", "EUR"), (6_975, 0, 0));
    network.nodes[3].signal("CONT");
    let again = network.pay("alice", &["export", &payment[..12], "--file", "again.txt"]);
    assert_eq!(file(&network.path("again.txt")), file(&receipt), "{again}");
    let drawn = network.run("alice", &["export", &payment[..12], "--qr"]);
    assert!(drawn.status.success() && text(&drawn.stdout).contains('█'), "{}", text(&drawn.stderr));

    // Mistakes are rejected before anything is signed.
    let mistyped = address.replacen(&address[5..7], if &address[5..7] == "00" { "11" } else { "00" }, 1);
    assert!(
        network.refused("alice", &["send", "--to", &mistyped, "--asset", "EUR", "--amount", "1"]).contains("mistyped")
    );
    let too_much = ["send", "--to", &address, "--asset", "EUR", "--amount", "69.76"];
    assert!(network.refused("alice", &too_much).contains("cannot make up this amount"));
    assert!(
        network.refused("alice", &["send", "--to", &address, "--asset", "XYZ", "--amount", "1"]).contains("USD, EUR")
    );

    // Lane → ledger: to the payer's own account, and to another's, whose owner redeems the receipt.
    let key = network.path("bob-key.json");
    let key = key.to_str().expect("text");
    assert!(walras().args(["wallet", "new", "--key", key]).output().expect("runs").status.success());
    let redeemed = network.pay("alice", &["redeem", "--key", issuer, "--asset", "EUR", "--amount", "50"]);
    assert_eq!(redeemed["waiting_claims"], 0, "{redeemed}");
    assert_eq!(network.account("issuer-key.json", "EUR"), before - 5_000);
    let account = walras().args(["wallet", "address", "--key", key]).output().expect("runs");
    let account = text(&account.stdout).trim().to_string();
    network.pay("bob", &["send", "--to", &account, "--asset", "EUR", "--amount", "30", "--receipt", "home.txt"]);
    for _ in 0..2 {
        // A copy pays its fee and has no other effect.
        network.pay("alice", &["redeem", "--key", issuer, "home.txt"]);
        assert_eq!(network.account("bob-key.json", "EUR"), 3_000);
    }
    assert_eq!(network.balance("bob", "EUR").0, 25);
    let (_, lane) = get(&agent(), network.server(), "/v1/lane");
    let eur = lane["assets"].as_array().expect("assets").iter().find(|asset| asset["asset"] == "EUR").expect("EUR");
    assert_eq!(eur["escrow"], (1_975 + 25).to_string(), "what is left in the lane");
    for node in network.nodes {
        assert_eq!(node.terminate().code(), Some(0));
    }
}

#[test]
fn a_payer_that_is_killed_before_it_sends_finishes_the_same_payment() {
    let network = Network::new(4, 100_000);
    let issuer = network.path("issuer-key.json");
    network.pay("alice", &["new"]);
    network.pay("bob", &["new"]);
    let deposit = ["deposit", "--key", issuer.to_str().expect("text"), "--asset", "EUR", "--amount", "10"];
    network.pay("alice", &deposit);
    let address = network.pay("bob", &["address"])["address"].as_str().expect("an address").to_string();
    network.kill_before_it_sends("alice", &address);
    assert_eq!(network.balance("alice", "EUR"), (0, 0, 600), "its money is reserved, its change is pending");
    let second = ["send", "--to", &address, "--asset", "EUR", "--amount", "8"];
    assert!(network.refused("alice", &second).contains("cannot make up"), "the same output is not spent again");
    let settled = network.pay("alice", &["settle"]);
    assert_eq!((&settled["finished"], &settled["settled"]), (&1.into(), &1.into()), "{settled}");
    assert_eq!(network.balance("alice", "EUR"), (600, 0, 0));
    let payments = network.pay("alice", &["balance"])["payments"].clone();
    assert_eq!(payments.as_array().map(Vec::len), Some(1), "{payments}");
    let digest = payments[0]["payment"].as_str().expect("a digest");
    network.pay("alice", &["export", digest, "--file", "late.txt"]);
    assert_eq!(network.pay("bob", &["receive", "late.txt"])["received"][0]["amount"], "400");
    // A damaged key is reported, and hides no money.
    let keys = network.path("alice").join("keys.json");
    let damaged = file(&keys).replacen("\"public\": \"", "\"public\": \"z", 1);
    std::fs::write(&keys, damaged).expect("written");
    let why = network.refused("alice", &["balance"]);
    assert!(why.contains("keys.json") && why.contains("restore the purse"), "{why}");
}

fn units_of(account: &Value) -> &str {
    let balances = account["balances"].as_array().expect("balances");
    let eur = balances.iter().find(|balance| balance["asset"] == "EUR").expect("EUR");
    eur["available"].as_str().expect("units")
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(status.success());
}

#[test]
fn a_restored_purse_asks_what_it_spent_and_lane_epochs_end_without_loss() {
    // An idle network makes a block per second: the first epoch lasts this many seconds, enough for everything in it.
    let network = Network::new(4, 200);
    let issuer = network.path("issuer-key.json");
    let issuer = issuer.to_str().expect("text");
    network.pay("alice", &["new"]);
    network.pay("bob", &["new"]);
    network.pay("carol", &["new"]);
    network.pay("alice", &["deposit", "--key", issuer, "--asset", "EUR", "--amount", "10"]);
    copy(&network.path("alice"), &network.path("backup"));
    let address = network.pay("bob", &["address"])["address"].as_str().expect("an address").to_string();
    let offline = network.pay("carol", &["address"])["address"].as_str().expect("an address").to_string();
    let pay = |purse: &str, to: &str, amount: &str, receipt: &str| {
        let quantity = ["--asset", "EUR", "--amount", amount, "--receipt", receipt];
        network.pay(purse, &[&["send", "--no-settle", "--to", to], &quantity[..]].concat())
    };
    pay("alice", &address, "4", "one.txt");
    pay("alice", &offline, "1", "two.txt");
    network.pay("bob", &["receive", "one.txt"]);
    // Carol goes offline and leaves her receipts with a watcher.
    network.pay("carol", &["receive", "two.txt", "--no-settle"]);
    network.pay("carol", &["deposit", "--key", issuer, "--asset", "EUR", "--amount", "2"]);
    assert_eq!(network.pay("carol", &["leave", "watched"])["left"], 2);
    assert_eq!(network.watch(issuer), (1, 0, 0), "it settles her receipt");
    assert_eq!(network.watch(issuer), (0, 0, 0));

    // The copy holds 10, of which 5 are spent: it learns of both payments and continues with the change.
    assert_eq!(network.pay("backup", &["balance"])["copied"], true);
    assert_eq!(network.balance("backup", "EUR").0, 1_000);
    pay("backup", &address, "2", "three.txt");
    assert_eq!(network.balance("backup", "EUR"), (0, 300, 0));
    assert_eq!(network.pay("backup", &["balance"])["copied"], false);
    network.pay("bob", &["receive", "three.txt"]);
    assert_eq!(network.balance("bob", "EUR").0, 600);

    // Dave is killed before he sends, and returns when the epoch of his payment is over: nobody confirms it any more.
    network.pay("dave", &["new"]);
    network.pay("dave", &["deposit", "--key", issuer, "--asset", "EUR", "--amount", "7"]);
    network.kill_before_it_sends("dave", &address);
    assert_eq!(get(&agent(), network.server(), "/v1/lane").1["epoch"], 0, "all of it is in the first epoch");

    // Money of an epoch is renewed in the next epoch, and can still be spent in the one after that.
    network.pass_until_epoch(1);
    assert_eq!(network.pay("bob", &["settle"])["renewed"], 2);
    let stuck = network.pay("dave", &["balance"])["payments"][0]["payment"].as_str().expect("a digest").to_string();
    let said = network.refused("dave", &["settle", "--lane-patience", "5"]);
    assert!(said.contains("build it for the present epoch") && said.contains("walras pay contest"), "{said}");
    network.pay("dave", &["contest", &stuck[..12], "--key", issuer]);
    while get(&agent(), network.server(), "/v1/lane").1["open_cases"] != 0 {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(network.balance("dave", "EUR"), (0, 0, 0));
    network.pay("dave", &["settle", "--lane-patience", "5"]);
    let home = network.pay("dave", &["accounts"])["accounts"].clone();
    assert_eq!(home.as_array().expect("accounts").iter().map(units_of).collect::<Vec<_>>(), ["700"]);
    network.pass_until_epoch(2);
    let redeemed = network.pay("bob", &["redeem", "--key", issuer, "--asset", "EUR", "--amount", "6"]);
    assert_eq!(redeemed["redeemed"].as_array().map(Vec::len), Some(1), "one owner, one payment: {redeemed}");
    let said = network.refused("carol", &["receive", "two.txt"]);
    assert!(said.contains("the receipt is of lane epoch 0, and now is 2"), "{said}");
    // Money that nobody renewed is returned to the account of its key, and from there can go anywhere.
    assert_eq!(network.pay("backup", &["balance"])["balances"][0]["home_only"], "300");
    let settled = network.pay("backup", &["settle"]);
    assert_eq!(settled["sent_home"], 1, "{settled}");
    network.pay("backup", &["redeem", "--key", issuer]);
    assert_eq!(network.watch(issuer), (0, 2, 2), "it returns to the ledger what Carol did not move");
    assert_eq!(network.watch(issuer), (0, 0, 0));
    let home = network.pay("carol", &["accounts"])["accounts"].clone();
    let mut units: Vec<&str> = home.as_array().expect("accounts").iter().map(units_of).collect();
    units.sort_unstable();
    assert_eq!(units, ["100", "200"]);
    let account = home[0]["account"].as_str().expect("an account");
    network.pay("carol", &["account-key", account, "--out", "home.json"]);
    assert_eq!(network.account("home.json", "EUR").to_string(), units_of(&home[0]));
    let (_, lane) = get(&agent(), network.server(), "/v1/lane");
    let eur = lane["assets"].as_array().expect("assets").iter().find(|asset| asset["asset"] == "EUR").expect("EUR");
    assert_eq!(eur["escrow"], "0", "everything was returned to the ledger");

    // The audit of running nodes finds no fault. A log says with its next block that the last one is durable.
    let height = get(&agent(), network.server(), "/v1/status").1["height"].as_u64().expect("a height");
    network.pass_until_height(height + 1);
    let mut audit = walras();
    audit.args(["pay", "audit", "--json"]);
    for index in 0..3 {
        audit.arg("--home").arg(network.path(&format!("validator-{index}")));
    }
    let output = audit.output().expect("walras runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let of = |name: &str| report["escrow"].as_array().expect("rows")[0][name].clone();
    assert_eq!([of("deposits"), of("escrow")], ["1900", "0"], "{report}");
    let paid = |name: &str| of(name).as_str().expect("units").parse::<u64>().expect("a number");
    assert_eq!(paid("redemptions") + paid("verdicts"), 1_900, "{report}");
    assert!(report["deposits_counted_in_blocks"] == true && report["logs"].as_u64() >= Some(9), "{report}");
    assert!(report["payments"].as_u64() >= Some(7), "{report}");
    let mut audit = walras();
    audit.args(["pay", "audit", "--home"]).arg(network.path("validator-0"));
    let output = audit.output().expect("walras runs");
    assert!(text(&output.stderr).contains("1 validators' logs are given, 3 are needed"), "{}", text(&output.stderr));
}

/// The demo prints how to try the lane; the printed lines work unchanged.
#[test]
fn the_lines_that_the_demo_prints_move_money() {
    let folder = TempDir::new().expect("a folder");
    let mut demo = walras();
    demo.args(["demo", "--validators", "1", "--traders", "2", "--assets", "2", "--rate", "5", "--interval-ms", "50"]);
    demo.args(["--listen", "127.0.0.1:0", "--home"]).arg(folder.path().join("demo"));
    let mut demo = demo.stdout(Stdio::piped()).spawn().expect("walras starts");
    let mut lines = BufReader::new(demo.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.starts_with("Payments in one round trip")), "the demo says how to pay");
    let script: Vec<String> = lines.by_ref().take(6).map(|line| line.trim().to_string()).collect();
    // A reader that stops reading would stop the demo.
    let reader = std::thread::spawn(move || lines.for_each(drop));
    let bin = Path::new(env!("CARGO_BIN_EXE_walras")).parent().expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    let mut shell = Command::new("sh");
    shell.args(["-ec", &script.join("\n")]).current_dir(folder.path()).env("PATH", path);
    let output = shell.output().expect("sh runs");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}\n{said}{}", script.join("\n"), text(&output.stderr));
    for words in ["deposited 100 EUR", "paid 12.5 EUR", "Fast ", "received 12.5 EUR", "Settled: final", "redeemed 12.5"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let stopped = Command::new("kill").arg(demo.id().to_string()).status();
    assert!(stopped.expect("kill runs").success());
    assert_eq!(demo.wait().expect("it ended").code(), Some(0));
    reader.join().expect("a reader");
}

/// An unsigned exit with a stranger's key in the outbox, as a lying node once got into a restored purse, hides all
/// money. The repair removes it, and keeps what is verified.
#[test]
fn a_purse_that_believed_a_lie_is_repaired() {
    let network = Network::new(4, 100_000);
    let issuer = network.path("issuer-key.json");
    network.pay("alice", &["new"]);
    network.pay("bob", &["new"]);
    let deposit = ["deposit", "--key", issuer.to_str().expect("text"), "--asset", "EUR", "--amount", "10"];
    network.pay("alice", &deposit);
    let address = network.pay("bob", &["address"])["address"].as_str().expect("an address").to_string();
    network.pay("alice", &["send", "--to", &address, "--asset", "EUR", "--amount", "4", "--receipt", "r.txt"]);
    network.pay("alice", &deposit);
    let files = std::fs::read_dir(network.path("alice/deposits")).expect("a folder").map(|entry| entry.expect("one"));
    let facts: Vec<Value> = files
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".json"))
        .map(|entry| serde_json::from_str(&file(&entry.path())).expect("JSON"))
        .collect();
    let lane: Value = serde_json::from_str(&file(&network.path("alice/lane.json"))).expect("JSON");
    let id = lane["network"].as_str().expect("an identity").parse().expect("a digest");
    let outbox = lane::Outbox::new(store::RealDisk::new(network.path("alice/outbox")).expect("a folder"));
    let stranger = primitives::SecretKey::from_seed([77; 32]).public();
    for fact in facts {
        let account = fact["account"].as_str().expect("an account").parse().expect("an address");
        let output = payments::OutputId::of_deposit(&id, 0, &account, fact["sequence"].as_u64().expect("a number"));
        let spent = payments::SpentOutput { id: output, asset: primitives::AssetId(1), amount: 1 };
        let lie = payments::Payment::exit(id, 0, stranger, spent);
        let (payment, signature) = (lie.encode(), primitives::Signature([0; 64]));
        let digest = payments::PaymentBody::new(lie).digest;
        let request = payments::spend_request(&payment, &signature, &[payments::OutputProof::Ledger]);
        // The deposit that is really spent has a payment already.
        drop(outbox.insert(&payments::SignedPayment { payment, digest, signature, request }));
    }
    assert_eq!(network.balance("alice", "EUR").0, 600, "the second deposit is hidden");
    let repaired = network.pay("alice", &["repair"]);
    assert_eq!((repaired["removed"].as_array().map(Vec::len), &repaired["found"]), (Some(1), &0.into()), "{repaired}");
    assert_eq!(network.balance("alice", "EUR").0, 1_600);
    assert_eq!(network.pay("alice", &["repair"])["removed"].as_array().map(Vec::len), Some(0));
    network.pay("alice", &["send", "--to", &address, "--asset", "EUR", "--amount", "16", "--receipt", "all.txt"]);
    assert_eq!(get(&agent(), network.server(), "/v1/lane").1["tls"], true, "shards speak TLS unless told otherwise");
}
