//! `walras clear` and `walras verify` as processes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::RowAccessor;
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use tempfile::TempDir;

const OFFERS: &str = "sell,buy,amount,min_price\n\
    EUR,USD,1000000,1.08\nUSD,EUR,1200000,0.90\nUSD,JPY,500000,148.5\nJPY,EUR,50000000,0.0060\n\
    EUR,JPY,300000,161.123456789012345678\nGBP,EUR,1000,1.1\n";

fn walras(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_walras")).args(args).output().expect("walras runs")
}

fn write(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a file is written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn cleared(offers: &Path, more: &[&str]) -> Value {
    let output = walras(&[&["clear", "--json", "--offers", text(offers)], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn verified(offers: &Path, clearing: &Path) -> (i32, String) {
    let output = walras(&["verify", "--offers", text(offers), "--clearing", text(clearing)]);
    (output.status.code().expect("an exit code"), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_clear_prints_verifies() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    for more in [&[][..], &["--epsilon", "0"], &["--solver", "tatonnement", "--mu", "0.01"]] {
        let clearing = cleared(&offers, more);
        assert_eq!(clearing["full"], true);
        assert!(clearing["prices"]["EUR"].is_string() && clearing["solver"]["seconds"].is_number());
        assert_eq!(clearing["fills"][0]["row"], 1);
        let path = write(&folder, "clearing.json", &clearing.to_string());
        assert_eq!(verified(&offers, &path), (0, String::new()));
    }
}

/// GBP is sold and never bought: it has no price, and `verify` asks for none.
#[test]
fn an_absent_price_is_absent() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    let clearing = cleared(&offers, &["--explain", "6"]);
    let prices = clearing["prices"].as_object().expect("prices");
    assert_eq!(prices.keys().collect::<Vec<_>>(), ["EUR", "JPY", "USD"]);
    let without = write(&folder, "without.csv", &OFFERS.replace("GBP,EUR,1000,1.1\n", ""));
    assert_eq!(clearing["unrealized_utility_ratio"], cleared(&without, &[])["unrealized_utility_ratio"]);
    let notes = clearing["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("interior-point method"))));
    let path = write(&folder, "clearing.json", &clearing.to_string());
    assert_eq!(verified(&offers, &path), (0, String::new()));
}

#[test]
fn verify_names_the_first_violation() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    let good = cleared(&offers, &[]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut bad = good.clone();
        change(&mut bad);
        verified(&offers, &write(&folder, "bad.json", &bad.to_string()))
    };
    type Change<'a> = &'a dyn Fn(&mut Value);
    let cases: [(Change, &str); 6] = [
        (&|c| c["trades"][0]["sold"] = "999999999".into(), "trade EUR/JPY sells 999999999 units"),
        (&|c| c["fills"][0]["bought"] = "2000000".into(), "fills: row 1 sells 1000000"),
        (&|c| c["trades"] = Value::Array(vec![]), "is below (1-mu) of the rate but not filled in full"),
        (&|c| c["prices"]["EUR"] = "1e5".into(), "prices: asset EUR: price \"1e5\" is not a plain decimal"),
        (&|c| drop(c["prices"].as_object_mut().map(|p| p.remove("USD"))), "prices: none for asset USD"),
        (&|c| drop(c.as_object_mut().map(|c| c.remove("mu"))), "not a clearing"),
    ];
    for (change, text) in cases {
        let (code, message) = with(change);
        assert!(code == 1 && message.contains(text), "{code} {message}");
    }
}

#[test]
fn bad_usage_and_bad_files_differ() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", "sell,buy,amount,min_price\nEUR,USD,1,x\n");
    let bad_file = walras(&["clear", "--offers", text(&offers)]);
    assert_eq!(bad_file.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad_file.stderr).contains("offers.csv: line 2, column 4 (min_price)"));
    assert_eq!(walras(&["clear"]).status.code(), Some(2));
    assert_eq!(walras(&["clear", "--offers", text(&offers), "--mu", "0"]).status.code(), Some(2));
}

/// A column of a Parquet file that a test writes; `None` is a missing value.
enum Column<'a> {
    Text(&'a [Option<&'a str>]),
    Int(&'a [i64]),
    Real(&'a [f64]),
}

fn write_parquet(folder: &TempDir, name: &str, columns: &[(&str, Column)], compression: Compression) -> PathBuf {
    let path = folder.path().join(name);
    let field = |(name, column): &(&str, Column)| match column {
        Column::Text(_) => format!("optional binary {name} (UTF8);"),
        Column::Int(_) => format!("required int64 {name};"),
        Column::Real(_) => format!("required double {name};"),
    };
    let fields: String = columns.iter().map(field).collect();
    let schema = parse_message_type(&format!("message offers {{ {fields} }}")).expect("a schema");
    let properties = WriterProperties::builder().set_compression(compression).build();
    let file = File::create(&path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    for (_, column) in columns {
        let mut next = group.next_column().expect("a column").expect("as many as the schema has");
        match column {
            Column::Text(texts) => {
                let there: Vec<i16> = texts.iter().map(|text| i16::from(text.is_some())).collect();
                let bytes: Vec<ByteArray> = texts.iter().flatten().map(|text| ByteArray::from(*text)).collect();
                next.typed::<ByteArrayType>().write_batch(&bytes, Some(&there), None)
            }
            Column::Int(values) => next.typed::<Int64Type>().write_batch(values, None, None),
            Column::Real(values) => next.typed::<DoubleType>().write_batch(values, None, None),
        }
        .expect("values are written");
        next.close().expect("the column is written");
    }
    group.close().expect("the group is written");
    writer.close().expect("the file is written");
    path
}

const SELL: [Option<&str>; 4] = [Some("EUR"), Some("USD"), Some("USD"), Some("JPY")];
const BUY: [Option<&str>; 4] = [Some("USD"), Some("EUR"), Some("JPY"), Some("EUR")];
const AMOUNTS: [i64; 4] = [1_000_000, 1_200_000, 500_000, 50_000_000];
const LIMITS: [f64; 4] = [1.08, 0.9, 148.5, 0.006];

/// From here on, doubles have no number for some whole ones.
const TWO_53: f64 = 9_007_199_254_740_992.0;

/// Sums of whole numbers that a program wrote as doubles may have lost a unit, and nobody can see it in the file.
#[test]
fn an_amount_that_floating_point_may_have_rounded_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let said = |amount: &str| {
        let offers = write(&folder, "offers.csv", &format!("sell,buy,amount,min_price\nEUR,USD,{amount},1\n"));
        let output = walras(&["clear", "--offers", text(&offers)]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for rounded in ["9007199254740992.0", "9.007199254740992e15", "1e17"] {
        let (code, words) = said(rounded);
        assert!(code == Some(1) && words.contains("cast the column to BIGINT or text"), "{rounded}: {words}");
    }
    for exact in ["9007199254740993", "9007199254740991.0", "9007199254740991", "1e15"] {
        assert_eq!(said(exact).0, Some(0), "{exact}");
    }
}

/// The same offers, with a point in every number and exponents.
const FRAME: &str = "sell,buy,amount,min_price\nEUR,USD,1000000.0,1.08\nUSD,EUR,1.2e6,9e-01\n\
                     USD,JPY,500000.00,1.485E2\nJPY,EUR,50000000.0,6e-03\n";

#[test]
fn parquet_clears_and_verifies_as_csv_does() {
    let folder = TempDir::new().expect("a folder");
    let rows = (0..4).map(|i| {
        let (sell, buy) = (SELL[i].expect("a symbol"), BUY[i].expect("a symbol"));
        format!("{sell},{buy},{},{}\n", AMOUNTS[i], LIMITS[i])
    });
    let csv = write(&folder, "offers.csv", &format!("sell,buy,amount,min_price\n{}", rows.collect::<String>()));
    let texts = LIMITS.map(|limit| limit.to_string());
    let texts: Vec<Option<&str>> = texts.iter().map(|text| Some(text.as_str())).collect();
    // The order of columns, the type of the limit and additional columns do not matter.
    let real = [
        ("min_price", Column::Real(&LIMITS)),
        ("sell", Column::Text(&SELL)),
        ("note", Column::Int(&AMOUNTS)),
        ("buy", Column::Text(&BUY)),
        ("amount", Column::Int(&AMOUNTS)),
    ];
    let whole = AMOUNTS.map(|amount| amount as f64);
    let text = [
        ("sell", Column::Text(&SELL)),
        ("buy", Column::Text(&BUY)),
        ("amount", Column::Real(&whole)),
        ("min_price", Column::Text(&texts)),
    ];
    let files = [
        write_parquet(&folder, "real.parquet", &real, Compression::SNAPPY),
        write_parquet(&folder, "text.parquet", &text, Compression::UNCOMPRESSED),
        // The default of Polars, and one that DuckDB offers.
        write_parquet(&folder, "zstd.parquet", &real, Compression::ZSTD(Default::default())),
        write_parquet(&folder, "gzip.parquet", &text, Compression::GZIP(Default::default())),
        // As pandas and DuckDB write numbers.
        write(&folder, "frame.csv", FRAME),
    ];
    let timeless = |mut clearing: Value| {
        clearing["solver"]["seconds"] = Value::Null;
        clearing
    };
    let expected = timeless(cleared(&csv, &[]));
    for file in files {
        assert_eq!(timeless(cleared(&file, &[])), expected);
        let claim = write(&folder, "clearing.json", &cleared(&file, &[]).to_string());
        assert_eq!(verified(&file, &claim), (0, String::new()));
    }
}

#[test]
fn fills_are_written_as_asked() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    let (parquet, csv) = (folder.path().join("fills.parquet"), folder.path().join("fills.csv"));
    let clearing = cleared(&offers, &["--fills", text(&parquet)]);
    cleared(&offers, &["--fills", text(&csv)]);
    let fills = clearing["fills"].as_array().expect("a list");
    let reader = SerializedFileReader::new(File::open(&parquet).expect("a file")).expect("Parquet");
    let rows: Vec<[i64; 3]> = reader
        .get_row_iter(None)
        .expect("rows")
        .map(|row| row.expect("a row"))
        .map(|row| [0, 1, 2].map(|column| row.get_long(column).expect("an integer")))
        .collect();
    let lines = std::fs::read_to_string(&csv).expect("a file");
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("row,sold,bought"));
    assert!(rows.len() == fills.len() && !rows.is_empty());
    for (fill, row) in fills.iter().zip(rows) {
        let [sold, bought] = ["sold", "bought"].map(|name| fill[name].as_str().expect("a text").to_string());
        assert_eq!([fill["row"].to_string(), sold, bought], row.map(|number| number.to_string()));
        assert_eq!(lines.next().expect("a line"), row.map(|number| number.to_string()).join(","));
    }
    let unknown = walras(&["clear", "--offers", text(&offers), "--fills", "fills.txt"]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn bad_parquet_names_row_column_and_remedy() {
    let folder = TempDir::new().expect("a folder");
    let problem = |columns: &[(&str, Column)]| {
        let path = write_parquet(&folder, "bad.parquet", columns, Compression::SNAPPY);
        let output = walras(&["clear", "--offers", text(&path)]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (sell, buy) = (Column::Text(&[Some("A"), None]), Column::Text(&[Some("B"), Some("C")]));
    let (amount, limit) = (Column::Int(&[1, 2]), Column::Real(&[1.0, 1.0]));
    let missing = problem(&[("sell", sell), ("buy", buy), ("amount", amount), ("min_price", limit)]);
    assert!(missing.contains("bad.parquet: row 2, column sell: a value is missing"), "{missing}");
    let (a, b) = (|| Column::Text(&[Some("A"), Some("A")]), || Column::Text(&[Some("B"), Some("C")]));
    let cases: [(Column, Column, &str); 6] = [
        (Column::Int(&[1, -2]), Column::Real(&[1.0, 1.0]), "row 2, column amount: amount \"-2\" is not a whole number"),
        (Column::Real(&[1.5, 2.0]), Column::Real(&[1.0, 1.0]), "row 1, column amount: amount \"1.5\" is not a whole"),
        (
            Column::Real(&[TWO_53 - 1.0, TWO_53]),
            Column::Real(&[1.0, 1.0]),
            "row 2, column amount: amount 9007199254740992.0 is written in floating point",
        ),
        (
            Column::Real(&[1.0, 1e17]),
            Column::Real(&[1.0, 1.0]),
            "so it may be another: cast the column to BIGINT or text",
        ),
        (Column::Int(&[1, 2]), Column::Real(&[1.0, f64::NAN]), "row 2, column min_price: price \"NaN\" is not"),
        (Column::Int(&[1, 2]), Column::Real(&[0.0, 1.0]), "row 1, column min_price: price 0 is out of range"),
    ];
    for (amount, limit, expected) in cases {
        let got = problem(&[("sell", a()), ("buy", b()), ("amount", amount), ("min_price", limit)]);
        assert!(got.contains(expected), "{got}");
    }
    let got = problem(&[("sell", a()), ("buy", b()), ("amount", Column::Int(&[1, 2]))]);
    assert!(got.contains("no column \"min_price\": its columns must include sell, buy, amount, min_price"), "{got}");
    let not = write(&folder, "not.parquet", OFFERS);
    let got = String::from_utf8_lossy(&walras(&["clear", "--offers", text(&not)]).stderr).into_owned();
    assert!(got.contains("not.parquet: ") && got.contains("give a Parquet file"), "{got}");
}

#[test]
fn offers_are_explained_by_row() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    let clearing = cleared(&offers, &["--explain", "6", "--explain", "1"]);
    let explanations = clearing["explanations"].as_array().expect("a list");
    assert_eq!(explanations.iter().map(|said| said["row"].as_u64()).collect::<Vec<_>>(), [Some(6), Some(1)]);
    assert_eq!((&explanations[0]["sold"], &explanations[0]["amount"]), (&"0".into(), &"1000".into()));
    assert_eq!(explanations[1]["sold"], clearing["fills"][0]["sold"]);
    let claim = write(&folder, "clearing.json", &clearing.to_string());
    assert_eq!(verified(&offers, &claim), (0, String::new()));
    let plain = walras(&["clear", "--offers", text(&offers), "--explain", "6"]);
    let said = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(said.contains("row 6: 1000 GBP at 1.1 EUR or better: does not trade"), "{said}");
    let outside = walras(&["clear", "--offers", text(&offers), "--explain", "7"]);
    assert_eq!(outside.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&outside.stderr).contains("--explain 7: the file has rows 1 to 6"));
}

const POOLS: &str = "a,b,reserve_a,reserve_b,fee\nUSD,EUR,90000000,82000000,2^-9\nUSD,JPY,1000000,10,0\n";
const BUYS: &str = "buy,sell,bought,most\nEUR,USD,777,900\nEUR,USD,10,1\nUSD,EUR,12345,20000\n";

#[test]
fn pools_and_buy_orders_clear_and_verify() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    let (pools, buys) = (write(&folder, "pools.csv", POOLS), write(&folder, "buys.csv", BUYS));
    let more = ["--pools", text(&pools), "--buys", text(&buys)];
    let asked = ["--explain", "buys:1", "--explain", "buys:2", "--explain", "pools:1", "--explain", "1"];
    let clearing = cleared(&offers, &[&more[..], &asked].concat());
    let list = |name: &str| clearing[name].as_array().cloned().unwrap_or_default();
    let rows = |name: &str| list(name).iter().filter_map(|one| one["row"].as_u64()).collect::<Vec<_>>();
    assert_eq!(clearing["full"], true);
    assert!(rows("pools").contains(&1), "{clearing}");
    assert_eq!(rows("buys"), [1, 3]);
    let notes: Vec<String> = list("notes").iter().filter_map(|note| note.as_str().map(str::to_owned)).collect();
    assert!(notes[0].contains("777 EUR for at most 900 USD: is filled and pays"), "{notes:?}");
    assert!(notes[1].ends_with("is not filled, as it would cost more."), "{notes:?}");
    assert!(notes[2].starts_with("pools, row 1: values a USD at 0.91") && notes[2].contains("It gives"), "{notes:?}");

    let verify = |claim: &Value, more: &[&str]| {
        let path = write(&folder, "clearing.json", &claim.to_string());
        let output = walras(&[&["verify", "--offers", text(&offers), "--clearing", text(&path)], more].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(verify(&clearing, &more), (Some(0), String::new()));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut bad = clearing.clone();
        change(&mut bad);
        verify(&bad, &more).1
    };
    let got = with(&|c| c["buys"][0]["paid"] = "1".into());
    assert!(got.contains("buys, row 1: does not cost what the list says"), "{got}");
    let got = with(&|c| c["pools"][0]["bought"] = "1".into());
    assert!(got.contains("pools, row 1: does not trade as the rule of pools says"), "{got}");
    let got = with(&|c| c["pools"] = Value::Array(vec![]));
    assert!(got.contains("trades less than a full clearing must") || got.contains("is not conserved"), "{got}");
    assert_eq!(verify(&clearing, &[]).0, Some(1));

    let plain = walras(&[&["clear", "--offers", text(&offers), "--explain", "pools:2"], &more[..]].concat());
    let said = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(said.contains("orders for exact amounts are filled") && said.contains("pools, row 2: values"), "{said}");
}

#[test]
fn bad_pools_and_buy_orders_name_their_file() {
    let folder = TempDir::new().expect("a folder");
    let offers = write(&folder, "offers.csv", OFFERS);
    let problem = |flag: &str, lines: &str| {
        let file = write(&folder, &format!("{}.csv", &flag[2..]), lines);
        let output = walras(&["clear", "--offers", text(&offers), flag, text(&file)]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let cases = [
        ("--pools", "a,b,reserve_a,reserve_b\n", "pools.csv: line 1: no column \"fee\""),
        ("--pools", "a,b,reserve_a,reserve_b,fee\nA,A,1,1,0\n", "line 2, column 2 (b): the pool holds A twice"),
        ("--pools", "a,b,reserve_a,reserve_b,fee\nA,B,1,0,0\n", "column 4 (reserve_b): reserve_b 0 is out of range"),
        ("--pools", "a,b,reserve_a,reserve_b,fee\nA,B,1,1,2\n", "pools.csv: line 2, column 5 (fee)"),
        ("--buys", "buy,sell,bought,most\nA,A,1,1\n", "buys.csv: line 2, column 2 (sell): A is bought with itself"),
        ("--buys", "buy,sell,bought,most\nA,B,1,x\n", "column 4 (most): most \"x\" is not a whole number"),
        ("--buys", "buy,sell,bought,most\nA,EUR,1,9223372036854775807\n", "column 4 (most): more than"),
    ];
    for (flag, lines, expected) in cases {
        let got = problem(flag, lines);
        assert!(got.contains(expected), "{got}");
    }
    let outside = walras(&["clear", "--offers", text(&offers), "--explain", "pools:1"]);
    assert_eq!(outside.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&outside.stderr).contains("--explain pools:1: the file has no such rows"));
    assert_eq!(walras(&["clear", "--offers", text(&offers), "--explain", "others:1"]).status.code(), Some(2));
}

/// A reader may close the pipe early, as `head` does.
#[test]
fn a_reader_that_goes_away_causes_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("offers.csv");
    std::fs::write(&file, "sell,buy,amount,min_price\nEUR,USD,1000000,1.08\nUSD,EUR,1200000,0.90\n").expect("written");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_walras"))
        .args(["clear", "--offers"])
        .arg(&file)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("panicked"), "{:?} {said}", output.status);
}

/// Two groups of assets, in one of which no whole units are a full clearing.
#[test]
fn groups_that_are_not_full_are_named_and_checked() {
    let folder = TempDir::new().expect("a folder");
    let rows = "AAA,BBB,5,0.7\nBBB,AAA,2,0.7\nBBB,AAA,3,0.5\nAAA,BBB,4,0.7\n";
    let offers = write(&folder, "offers.csv", &format!("{OFFERS}{rows}"));
    let clearing = cleared(&offers, &[]);
    assert_eq!((&clearing["full"], &clearing["short"]), (&false.into(), &serde_json::json!(["AAA"])), "{clearing}");
    let told = walras(&["clear", "--offers", text(&offers)]);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("groups that are not full, each by its first asset: AAA; all others are"), "{told}");

    let verify = |short: Value| {
        let claim = write(&folder, "clearing.json", &{
            let mut claim = clearing.clone();
            claim["short"] = short;
            claim.to_string()
        });
        verified(&offers, &claim)
    };
    assert_eq!(verify(serde_json::json!(["AAA"])).0, 0);
    // One that names no group claims nothing of any.
    assert_eq!(verify(serde_json::json!([])).0, 0);
    for (short, words) in [
        (serde_json::json!(["EUR"]), "AAA"),
        (serde_json::json!(["BBB"]), "name each group once, by its lowest asset"),
        (serde_json::json!(["AAA", "AAA"]), "name each group once"),
        (serde_json::json!(["XYZ"]), "short: asset XYZ is in none of the offers"),
    ] {
        let (status, told) = verify(short.clone());
        assert!(status == 1 && told.contains(words), "{short}: {told}");
    }
}
