//! Snapshots and exports of a home whose node runs, and their use by a new node.

mod process;

use std::path::Path;
use std::process::Output;

use ledger::PoolTerms;
use ledger::contracts::{EthereumKey, EthereumRequest, OFFERS, contract_address, token_address};
use parquet::file::reader::{FileReader, SerializedFileReader};
use primitives::{
    Address, AssetControl, AssetId, Body, ClientId, Digest, ExactSide, Fraction, Life, OfferPlace, OfferReplacement,
    Operation, PlainListing, PoolKey, PoolOperation, Price, ProposedChange, Reference, ReferenceKind, SecretKey,
    Transaction,
};
use process::{Process, agent, get, walras};
use serde_json::Value;
use tempfile::TempDir;

const CHAIN: u64 = 78;
const ASSETS: u32 = 3;
/// Checkpoints as often as possible, so that a snapshot begins with one.
const SETTINGS: [(&str, &str); 2] = [("WALRAS_BLOCKS__INTERVAL_MS", "5"), ("WALRAS_STORE__CHECKPOINT_BLOCKS", "4")];

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn address(number: u8) -> Address {
    key(number).public().address()
}

fn genesis() -> ledger::Genesis {
    let holdings = |number| (0..ASSETS).map(move |asset| (address(number), AssetId(asset), 1_000_000));
    ledger::Genesis {
        chain: CHAIN,
        fee: 2,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: (0..ASSETS).map(|asset| ledger::Listing::new(format!("A{asset}"), 2, address(1))).collect(),
        balances: (1..=3).flat_map(holdings).collect(),
        pools: Some(PoolTerms::default()),
        ..ledger::Genesis::default()
    }
}

fn new_home(folder: &Path, name: &str) -> std::path::PathBuf {
    let home = folder.join(name);
    std::fs::create_dir(&home).expect("a home");
    founding::genesis_file::write(&home.join("genesis.json"), &genesis()).expect("written");
    home
}

/// An account's transaction of a number.
fn signed(account: u8, sequence: u64, operation: Operation) -> Transaction {
    Body { chain: CHAIN, account: address(account), sequence, until: 50_000, operation }
        .sign(&genesis().digest(), &key(account))
}

/// Sends transactions together, and waits until they are committed; returns the answers.
fn post(server: &str, transactions: &Vec<Transaction>) -> Vec<Value> {
    let body = borsh::to_vec(transactions).expect("encodes");
    let url = format!("{server}/v1/transactions/batch?wait=committed");
    let mut answer = agent().post(url).content_type("application/octet-stream").send(&body[..]).expect("answers");
    let answer: Value = answer.body_mut().read_json().expect("JSON");
    let results = answer["results"].as_array().expect("results");
    assert!(results.iter().all(|result| result["height"].is_u64()), "{answer}");
    results.clone()
}

/// Sends a block's worth of offers and payments, and waits until they are committed; returns their height.
fn trade(server: &str, sequence: u64) -> u64 {
    let offer = |account: u8, sell: u32, amount: u64| {
        let limit = Price::from_f64(if sequence.is_multiple_of(3) { 1.5 } else { 0.9 }).expect("in range");
        signed(account, sequence, Operation::offer(AssetId(sell), AssetId((sell + 1) % ASSETS), amount, limit))
    };
    let transactions: Vec<_> = (1..=3).map(|n| offer(n, u32::from(n) - 1, 5_000 + sequence * 10)).collect();
    let height = |result: &Value| result["height"].as_u64().expect("committed");
    post(server, &transactions).iter().map(height).max().expect("some")
}

fn ran(output: std::io::Result<Output>) -> Value {
    let output = output.expect("walras starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn refused(output: std::io::Result<Output>) -> String {
    let output = output.expect("walras starts");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_snapshot_of_a_running_node_begins_another() {
    let folder = TempDir::new().expect("a folder");
    let home = new_home(folder.path(), "first");
    let node = Process::start(&home, &SETTINGS);
    let height = (1..=22).map(|sequence| trade(&node.server, sequence)).max().expect("blocks");
    let file = folder.path().join("state.snapshot");
    let create =
        || walras().args(["snapshot", "create", "--json", "--home"]).arg(&home).arg("--out").arg(&file).output();
    let made = ran(create());
    assert!(made["height"].as_u64() >= Some(height), "{made}");
    assert!(refused(create()).contains("exists"), "a snapshot is never overwritten");
    // Clients get the root from the node: each block contains the root before it.
    let root = made["state_root"].as_str().expect("a root");
    let next = trade(&node.server, 23);
    let (_, block) = get(&agent(), &node.server, &format!("/v1/blocks/{}", next - 1));
    assert_eq!(block["state_root"], root);

    let second = new_home(folder.path(), "second");
    let restore = |root: &str| {
        let mut command = walras();
        command.args(["snapshot", "restore", "--json", "--root", root, "--home"]).arg(&second).arg(&file).output()
    };
    let other = format!("0x{}", "00".repeat(32));
    assert!(refused(restore(&other)).contains("not the expected state"));
    assert_eq!(ran(restore(root))["height"], made["height"]);
    assert!(refused(restore(root)).contains("empty home"), "a store is never overwritten");
    drop(node);

    let node = Process::start(&second, &SETTINGS);
    let (_, status) = get(&agent(), &node.server, "/v1/status");
    assert_eq!((&status["height"], &status["state"]["root"]), (&made["height"], &made["state_root"]));
    assert!(trade(&node.server, 24) > height, "it continues");
    let (_, account) = get(&agent(), &node.server, &format!("/v1/accounts/{}", address(1)));
    assert_eq!(account["sequence"]["highest"], "24");
    assert!(node.terminate().success());
    let node = Process::start(&second, &SETTINGS);
    let (_, status) = get(&agent(), &node.server, "/v1/status");
    assert!(status["height"].as_u64() > made["height"].as_u64(), "what it added is there");
}

#[test]
fn damage_to_a_snapshot_is_named() {
    let folder = TempDir::new().expect("a folder");
    let home = new_home(folder.path(), "home");
    let node = Process::start(&home, &SETTINGS);
    trade(&node.server, 1);
    assert!(node.terminate().success());
    let file = folder.path().join("state.snapshot");
    ran(walras().args(["snapshot", "create", "--json", "--home"]).arg(&home).arg("--out").arg(&file).output());
    let sound = std::fs::read(&file).expect("a snapshot");
    let verify = || walras().args(["snapshot", "verify", "--json"]).arg(&file).output();
    ran(verify());
    for at in (0..sound.len()).step_by(97).chain([sound.len() - 1]) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&file, &bytes).expect("written");
        let said = refused(verify());
        assert!(said.contains("state.snapshot") && said.contains("another copy"), "byte {at}: {said}");
    }
    std::fs::write(&file, &sound[..sound.len() / 2]).expect("written");
    assert!(refused(verify()).contains("state.snapshot"));
}

#[test]
fn a_snapshot_begins_a_home_that_is_new() {
    let folder = TempDir::new().expect("a folder");
    let home = new_home(folder.path(), "home");
    let node = Process::start(&home, &SETTINGS);
    let height = trade(&node.server, 1);
    assert!(node.terminate().success());
    let file = folder.path().join("state.snapshot");
    ran(walras().args(["snapshot", "create", "--json", "--home"]).arg(&home).arg("--out").arg(&file).output());
    let second = folder.path().join("new");
    let restore = |more: &[&std::ffi::OsStr]| {
        let mut command = walras();
        command.args(["snapshot", "restore", "--json"]).arg(&file).arg("--home").arg(&second).args(more).output()
    };
    let said = refused(restore(&[]));
    assert!(said.contains("use --genesis FILE to make a new home"), "{said}");
    let genesis = home.join("genesis.json");
    let restored = ran(restore(&["--genesis".as_ref(), genesis.as_ref()]));
    assert_eq!(restored["height"].as_u64(), Some(height));
    let node = Process::start(&second, &SETTINGS);
    assert_eq!(get(&agent(), &node.server, "/v1/status").1["height"].as_u64(), Some(height));
    assert!(node.terminate().success());
    // The genesis of another chain is rejected.
    let other = new_home(folder.path(), "other").join("genesis.json");
    std::fs::write(&other, std::fs::read_to_string(&other).expect("read").replacen('{', "{ ", 1)).expect("written");
    assert!(refused(restore(&["--genesis".as_ref(), other.as_ref()])).contains("differs from --genesis"));
}

/// Rows of a file, each column as text.
fn read_rows(path: &Path) -> Vec<Vec<String>> {
    let file = std::fs::File::open(path).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row"));
    rows.map(|row| row.get_column_iter().map(|(_, field)| field.to_string().replace('"', "")).collect()).collect()
}

/// Rows of one table of all days, each column as text.
fn rows(out: &Path, table: &str) -> Vec<Vec<String>> {
    let days: Vec<_> = std::fs::read_dir(out.join(table)).expect("a table").map(|day| day.expect("a day")).collect();
    let read = |day: &std::fs::DirEntry| {
        assert!(day.file_name().to_string_lossy().starts_with("day=20"));
        read_rows(&day.path().join(format!("{table}.parquet")))
    };
    days.iter().flat_map(read).collect()
}

#[test]
fn an_export_tells_what_the_node_tells() {
    let folder = TempDir::new().expect("a folder");
    let home = new_home(folder.path(), "home");
    let node = Process::start(&home, &SETTINGS);
    let height = (1..=9).map(|sequence| trade(&node.server, sequence)).max().expect("blocks");
    let out = folder.path().join("history");
    let export = || walras().args(["export", "--json", "--home"]).arg(&home).arg("--out").arg(&out).output();
    let told = ran(export());
    assert_eq!((told["first"].as_u64(), told["last"].as_u64()), (Some(1), Some(height)));

    let blocks = rows(&out, "blocks");
    assert_eq!(blocks.len() as u64, height);
    for block in &blocks {
        let (_, told) = get(&agent(), &node.server, &format!("/v1/blocks/{}", block[0]));
        assert_eq!((&told["block"], &told["state_root"]), (&block[2].as_str().into(), &block[4].as_str().into()));
        assert_eq!(told["transactions"].to_string(), block[5]);
    }
    let fills: u64 = blocks.iter().map(|block| block[7].parse::<u64>().expect("a number")).sum();
    let trades = rows(&out, "trades");
    assert!(fills > 0 && trades.len() as u64 == fills);
    for trade in &trades {
        let number = |at: usize| trade[at].parse::<f64>().expect("a number");
        assert!(number(5) / number(4) >= number(9), "below its limit: {trade:?}");
    }
    assert_eq!(rows(&out, "prices").len() as u64 % u64::from(ASSETS), 0);
    // Every amount has its decimals beside it, and one table describes the units of all assets.
    let (_, listed) = get(&agent(), &node.server, "/v1/assets");
    let listed = listed["assets"].as_array().expect("assets");
    let decimals = |symbol: &str| {
        let asset = listed.iter().find(|asset| asset["symbol"] == symbol).expect("listed");
        asset["decimals"].to_string()
    };
    for trade in &trades {
        assert_eq!((&trade[12], &trade[13]), (&decimals(&trade[2]), &decimals(&trade[3])), "{trade:?}");
    }
    let assets = read_rows(&out.join("assets/assets.parquet"));
    assert_eq!(assets.len(), listed.len());
    for (row, asset) in assets.iter().zip(listed) {
        let told =
            [asset["asset"].to_string(), asset["symbol"].as_str().expect("text").into(), asset["decimals"].to_string()];
        assert_eq!(row[..3], told);
        assert_eq!((&asset["issuer"], &asset["least_units"]), (&row[3].as_str().into(), &row[4].as_str().into()));
    }
    for price in rows(&out, "prices") {
        let pairs = trades.iter().filter(|trade| trade[0] == price[0]);
        let traded = pairs.into_iter().any(|trade| [&trade[2], &trade[3]].contains(&&price[2]));
        assert_eq!((&price[5], &price[6]), (&decimals(&price[2]), &traded.to_string()), "{price:?}");
    }
    let balances = rows(&out, "balances");
    assert!(balances.len() >= 9, "three accounts with three assets each");
    for row in balances {
        assert_eq!(row[5], decimals(&row[2]));
        let (_, account) = get(&agent(), &node.server, &format!("/v1/accounts/{}", row[1]));
        let of_asset = |balance: &&Value| balance["asset"] == row[2].as_str();
        let told = account["balances"].as_array().expect("balances").iter().find(of_asset).expect("the asset");
        assert_eq!((&told["available"], &told["locked"]), (&row[3].as_str().into(), &row[4].as_str().into()));
    }
    // A second export writes the same days again.
    ran(export());
    assert_eq!(rows(&out, "trades"), trades);
    let before = ran(walras()
        .args(["export", "--json", "--to", "1999-12-31", "--home"])
        .arg(&home)
        .arg("--out")
        .arg(&out)
        .output());
    assert_eq!(before["rows"]["blocks"], 0);
}

/// Orders are told with their lives and names, exact ones with their bounds, and all with what became of them; pools
/// with what they traded and hold, and whose they are.
#[test]
fn orders_and_pools_are_exported() {
    let folder = TempDir::new().expect("a folder");
    let home = new_home(folder.path(), "home");
    let node = Process::start(&home, &SETTINGS);
    let price = |text: &str| text.parse::<Price>().expect("a price");
    let named = |sell: u32, buy: u32, amount: u64, limit: &str, life: Life, client: ClientId| {
        let (sell, buy, limit) = (AssetId(sell), AssetId(buy), price(limit));
        Operation::CreateOffer { sell, buy, amount, limit, life, client }
    };
    let offer = |sell, buy, amount, limit: &str, life| named(sell, buy, amount, limit, life, ClientId::NONE);
    let exact = |bound| {
        let (sell, buy, side, client) = (AssetId(0), AssetId(1), ExactSide::Buy, ClientId::NONE);
        Operation::Exact { sell, buy, side, units: 5_000, bound, client }
    };
    let pool = PoolKey { a: AssetId(0), b: AssetId(1), class: 0 };
    let open = Operation::Pool(Box::new(PoolOperation::Open { pool, x: 200_000, y: 200_000 }));
    post(&node.server, &vec![signed(3, 1, open)]);
    let lives = named(0, 1, 10_000, "5", Life::Until(40_000), ClientId([7; 16]));
    let once = offer(2, 0, 10_000, "5", Life::OneBatch);
    post(&node.server, &vec![signed(1, 1, lives), signed(2, 1, once), signed(2, 2, exact(1))]);
    // An offer that sells in part leaves room for an exact order of its own batch. Where blocks part the two, they are
    // sent again.
    let is_filled = |answer: &Value| answer["outcome"]["why"] == "filled";
    let meets = |at: u64| {
        let sells = offer(1, 0, 60_000, "0.9", Life::OneBatch);
        let buys = offer(0, 1, 5_000, "0.9", Life::OneBatch);
        let sent = vec![signed(3, at, sells), signed(2, at + 1, buys), signed(1, at, exact(20_000))];
        is_filled(&post(&node.server, &sent)[2])
    };
    let met = (2..).find(|at| meets(*at)).expect("a filled order");
    let old = OfferPlace { sell: AssetId(0), buy: AssetId(1), limit: price("5"), offer: 1 };
    let (life, client) = (Life::Rests, ClientId::NONE);
    let replacement = OfferReplacement { old, remains: 10_000, amount: 12_000, limit: price("4"), life, client };
    post(&node.server, &vec![signed(1, met + 1, Operation::Replace(Box::new(replacement)))]);

    let uetr = Reference::read(ReferenceKind::Uuid, "8a562c67-ca16-48ba-b074-65581be6f001").expect("a UUID");
    let paid = Operation::PayReferenced { to: address(2), asset: AssetId(1), amount: 7, reference: uetr };
    post(&node.server, &vec![signed(1, met + 2, paid)]);

    let out = folder.path().join("history");
    let export = |more: &[&str]| {
        let mut command = walras();
        command.args(["export", "--json", "--home"]).arg(&home).arg("--out").arg(&out).args(more).output()
    };
    let told = ran(export(&[]));
    let transfers = rows(&out, "transfers");
    let (one, two) = (address(1).to_string(), address(2).to_string());
    let said = |at: usize| transfers[at][3..].to_vec();
    let uetr = ["uuid", "8a562c67-ca16-48ba-b074-65581be6f001", "2"];
    assert_eq!(said(0), [&[&one, "payment", "false", "A1", "7", &two], &uetr[..]].concat());
    assert_eq!(said(1), [&[&two, "payment", "true", "A1", "7", &one], &uetr[..]].concat());
    assert_eq!((transfers.len(), &told["rows"]["transfers"]), (2, &2.into()));
    let asked = |id: &str| get(&agent(), &node.server, &format!("/v1/transactions/{id}")).1;
    let orders = rows(&out, "orders");
    assert_eq!(told["rows"]["orders"], orders.len());
    for row in &orders {
        let told = asked(&row[2]);
        let (outcome, operation) = (&told["outcome"], &told["operation"]);
        let is_replace = operation["type"] == "replace";
        assert_eq!((&row[0], &row[4]), (&told["height"].to_string(), &told["sequence"].as_str().expect("text").into()));
        assert_eq!(row[5] == "null", !is_replace, "{row:?}");
        for (field, cell) in [("amount", 8), ("limit", 9)] {
            assert_eq!(operation[field], row[cell], "{field}: {row:?}");
        }
        for (field, cell) in [("sold", 14), ("bought", 15), ("left", 16), ("returned", 17)] {
            assert_eq!(outcome[field], row[cell], "{field}: {row:?}");
        }
        assert_eq!(row[13], if is_replace { "replaced" } else { "placed" });
        let client = operation["client"].as_str().unwrap_or("null");
        assert_eq!(row[12], client, "{row:?}");
    }
    let lives: Vec<[&str; 2]> = orders.iter().map(|row| [row[10].as_str(), row[11].as_str()]).collect();
    assert_eq!(lives[..2], [["until", "40000"], ["one batch", "null"]]);
    assert_eq!(orders.last().map(|row| [row[10].as_str(), row[5].as_str()]), Some(["rests", "1"]));

    let exacts = rows(&out, "exacts");
    for row in &exacts {
        let told = asked(&row[2]);
        assert_eq!([&told["operation"]["units"], &told["operation"]["bound"]], [&row[8], &row[9]]);
        for (field, cell) in [("why", 11), ("sold", 12), ("bought", 13), ("returned", 14)] {
            assert_eq!(told["outcome"][field], row[cell], "{field}: {row:?}");
        }
    }
    assert!(exacts.last().is_some_and(|row| row[11] == "filled" && row[13] == "5000"), "{exacts:?}");
    let whys: std::collections::BTreeSet<String> = rows(&out, "ended").into_iter().map(|row| row[8].clone()).collect();
    assert!(whys.contains("one_batch") && whys.contains("replaced"), "{whys:?}");
    let (last, at) = (told["last"].to_string(), (met + 1).to_string());
    let rests = [&last, "A0", "A1", &address(1).to_string(), &at, "12000", "4", "null", "2"];
    assert_eq!(rows(&out, "offers"), [rests.map(String::from)]);

    let (_, pools) = get(&agent(), &node.server, "/v1/pools");
    let [held] = &rows(&out, "pools")[..] else { panic!("one pool: {pools}") };
    for (field, cell) in [("reserve_a", 5), ("reserve_b", 6), ("shares", 7)] {
        assert_eq!(pools["pools"][0][field], held[cell], "{field}: {pools}");
    }
    let holder = &rows(&out, "holdings")[0];
    assert_eq!((&holder[1], &holder[5]), (&address(3).to_string(), &((1u64 << 24) - (1 << 16)).to_string()));
    let traded = rows(&out, "pool_trades");
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let moved: i64 = traded.iter().map(|row| if row[2] == "A1" { -number(&row[5]) } else { number(&row[6]) }).sum();
    assert_eq!(200_000 + moved, number(&held[6]), "what it sold and bought of A1 is what it has: {traded:?}");
    assert!(!traded.is_empty());
    // Without the replay there are no states.
    std::fs::remove_dir_all(&out).expect("removed");
    let told = ran(export(&["--no-balances"]));
    assert_eq!((&told["rows"]["offers"], &told["rows"]["pools"]), (&0.into(), &0.into()));
    assert_eq!(told["rows"]["exacts"], exacts.len());
}

/// No receipt names an asset that a vote has listed: the state does, with a replay and without.
#[test]
fn an_asset_that_a_vote_listed_is_exported_by_its_name() {
    let folder = TempDir::new().expect("a folder");
    let home = new_home(folder.path(), "home");
    let charter = ledger::CharterTerms { operator: address(1), notice_min: 2, patience: 40 };
    let listings = ledger::ListingTerms { policy: ledger::ListingPolicy::Voted, ..ledger::ListingTerms::default() };
    let genesis = ledger::Genesis { charter, listings, ..genesis() };
    founding::genesis_file::write(&home.join("genesis.json"), &genesis).expect("written");
    let node = Process::start(&home, &SETTINGS);
    let send = |sequence, operation| {
        let body = Body { chain: CHAIN, account: address(1), sequence, until: 50_000, operation };
        post(&node.server, &vec![body.sign(&genesis.digest(), &key(1))])
    };
    let (issuer, symbol, control, document) = (address(1), "YEN".into(), AssetControl::Open, Digest::default());
    let (decimals, least_units, supply_max) = (0, 4_096, 1_000_000);
    let yen = PlainListing { issuer, symbol, decimals, control, least_units, supply_max, document };
    send(1, Operation::Propose(Box::new(ProposedChange::List(yen))));
    let is_listed =
        || get(&agent(), &node.server, "/v1/assets").1["assets"].as_array().is_some_and(|all| all.len() == 4);
    let pay = |sequence| send(sequence, Operation::Pay { to: address(2), asset: AssetId(0), amount: 1 });
    let next = (2..).find(|sequence| is_listed() || pay(*sequence).is_empty()).expect("a height comes");
    send(next, Operation::Issue { to: address(2), asset: AssetId(ASSETS), amount: 77 });
    let out = folder.path().join("history");
    for more in [&[][..], &["--no-balances"]] {
        ran(walras().args(["export", "--json", "--home"]).arg(&home).arg("--out").arg(&out).args(more).output());
        let issued: Vec<Vec<String>> =
            rows(&out, "transfers").into_iter().filter(|row| row[7] == "77").map(|row| row[6..8].to_vec()).collect();
        assert!(!issued.is_empty() && issued.iter().all(|row| *row == ["YEN", "77"]), "{more:?}: {issued:?}");
        let assets = read_rows(&out.join("assets/assets.parquet"));
        assert_eq!(assets.last().map(|row| row[1].as_str()), Some("YEN"), "{more:?}");
    }
}

/// The effects of contracts are in three tables, and `inspect` shows the same accounts.
#[test]
fn receipts_logs_and_contracts_are_exported() {
    const COUNTER: &[u8] = &[0x5f, 0x54, 0x60, 1, 0x01, 0x80, 0x5f, 0x55, 0x5f, 0x52, 0x60, 32, 0x5f, 0xa0, 0x00];
    let folder = TempDir::new().expect("a folder");
    let home = new_home(folder.path(), "home");
    let key = EthereumKey::from_seed([3; 32]).expect("a key");
    let other = EthereumKey::from_seed([4; 32]).expect("a key");
    let path = home.join("genesis.json");
    let mut genesis = founding::genesis_file::read(&path).expect("sound");
    genesis.limits = genesis.limits.with_contracts(1);
    genesis.balances.push((key.address(), AssetId(0), 100_000));
    genesis.balances.extend([0, 1].map(|asset| (other.address(), AssetId(asset), 100_000)));
    founding::genesis_file::write(&path, &genesis).expect("written");
    let node = Process::start(&home, &SETTINGS);
    let counter = contract_address(&key.address(), 0);
    let creation = [&[0x60, COUNTER.len() as u8, 0x80, 0x60, 9, 0x5f, 0x39, 0x5f, 0xf3], COUNTER].concat();
    let run = |key: &EthereumKey, nonce: u64, to: Option<Address>, data: Vec<u8>| {
        let (gas_limit, max_fee) = (200_000, 100_000_000_000);
        let request = EthereumRequest { chain: CHAIN, nonce, to, gas_limit, max_fee, data, ..Default::default() };
        let url = format!("{}/v1/ethereum", node.server);
        let call = agent().post(url).content_type("application/octet-stream");
        let sent: Value = call.send(&key.sign(&request)[..]).expect("answers").body_mut().read_json().expect("JSON");
        let hash = sent["hash"].as_str().unwrap_or_else(|| panic!("{sent}")).to_string();
        while get(&agent(), &node.server, &format!("/v1/ethereum/{hash}")).1["status"] != "committed" {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    for nonce in 0..3 {
        let (to, data) = if nonce == 0 { (None, creation.clone()) } else { (Some(counter), Vec::new()) };
        run(&key, nonce, to, data);
    }
    let export = |name: &str| {
        let out = folder.path().join(name);
        let told = ran(walras().args(["export", "--json", "--home"]).arg(&home).arg("--out").arg(&out).output());
        (out, told)
    };
    let (out, told) = export("history");
    assert_eq!((&told["rows"]["receipts"], &told["rows"]["logs"]), (&3.into(), &2.into()), "{told}");
    // Offers of contracts have numbers from 2^63 on.
    let place = |sell, buy| {
        let tokens = [sell, buy].map(|asset| [&[0; 12][..], &token_address(AssetId(asset)).0].concat());
        let amounts = [20_000u64, 18_000].map(|units| [&[0; 24][..], &units.to_be_bytes()].concat());
        [&[0x6b, 0x13, 0x79, 0x9b][..], &tokens.concat(), &amounts.concat()].concat()
    };
    run(&key, 3, Some(OFFERS), place(0, 1));
    run(&other, 0, Some(OFFERS), place(1, 0));
    // They join the batch of the next block.
    run(&key, 4, Some(counter), Vec::new());
    let (traded, _) = export("traded");
    let offers: Vec<u64> = rows(&traded, "trades").iter().map(|row| row[11].parse().expect("a number")).collect();
    assert_eq!(offers, [1 << 63, 1 << 63]);
    node.terminate();
    let receipts = rows(&out, "receipts");
    assert!(receipts.iter().all(|row| row[4] == key.address().to_string() && row[6] == "succeeded"), "{receipts:?}");
    assert_eq!(receipts[0][5], counter.to_string());
    let logs = rows(&out, "logs");
    assert!(logs[1][9].ends_with("02") && logs[1][4] == counter.to_string(), "{logs:?}");
    let contracts = rows(&out, "contracts");
    let of = |address: Address| contracts.iter().find(|row| row[1] == address.to_string()).expect("a row");
    assert_eq!((of(key.address())[2].as_str(), of(counter)[4].as_str(), of(counter)[5].as_str()), ("3", "true", "1"));
    let inspected = ran(walras().args(["inspect", "--contracts", "--json", "--home"]).arg(&home).output());
    let found = &inspected["contracts"];
    assert_eq!(found["slots"], 1, "{found}");
    let accounts = found["accounts"].as_array().expect("accounts");
    let of = |address: Address| accounts.iter().find(|one| one["account"] == address.to_string()).expect("an account");
    assert_eq!((&of(key.address())["nonce"], &of(counter)["slots"]), (&"5".into(), &1.into()), "{found}");
}
