//! The door against arbitrary input: whatever bytes it gets, it answers or closes the connection, and keeps working.

mod fake;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use doors::roles::ENDPOINTS;
use doors::{Bound, Http};
use fake::Fake;
use fuzz::{Room, Target};
use primitives::{Address, AssetId, Body, Operation, SecretKey, to_hex};

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").into()
}

fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// How long to wait for an answer to a whole request, before the door is told that no more bytes follow.
const PATIENCE: Duration = Duration::from_millis(5);
/// A door that hangs this long fails the test, however slow the machine.
const HANGS: Duration = Duration::from_secs(60);

/// The status of the answer; `None` if the door closes without one.
fn answer(server: SocketAddr, request: &[u8], patience: Duration) -> Option<u16> {
    let mut stream = TcpStream::connect(server).expect("it listens");
    stream.set_read_timeout(Some(patience)).expect("set");
    // It may close before it has read everything.
    let _ = stream.write_all(request);
    let (mut answer, mut room, mut is_ended) = (Vec::new(), [0; 4_096], false);
    loop {
        match stream.read(&mut room) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&room[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                assert!(!is_ended, "no answer and no end");
                is_ended = true;
                let _ = stream.shutdown(Shutdown::Write);
                stream.set_read_timeout(Some(HANGS)).expect("set");
            }
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

#[test]
#[ignore = "long: `make soak` runs it"]
fn requests_of_strangers() {
    let key = SecretKey::from_seed([3; 32]);
    let operation = Operation::Pay { to: Address([9; 20]), asset: AssetId(0), amount: 7 };
    let transaction = Body { chain: 1, account: key.public().address(), sequence: 1, until: 50_000, operation }
        .sign(&primitives::Digest::default(), &key);
    let bytes = borsh::to_vec(&transaction).expect("in memory");
    let json = format!("{{\"transaction\":\"0x{}\"}}", to_hex(&bytes));
    let batch = format!("{{\"transactions\":[\"0x{0}\",\"0x{0}\"]}}", to_hex(&bytes));
    let account = Address([1; 20]);
    let mut seeds = vec![
        get("/v1/status"),
        get("/v1/blocks?limit=3&before=9"),
        get("/v1/blocks/1?offset=1&limit=2"),
        get(&format!("/v1/accounts/{account}")),
        get(&format!("/v1/accounts/{account}/proof")),
        get("/v1/markets/EUR/USD/candles?interval=60000&limit=5"),
        get("/v1/markets/EUR/USD/book?depth=5"),
        get("/v1/handovers?from=3"),
        get("/v1/stream?channels=blocks,trades:EUR-USD"),
        post("/v1/transactions", "application/json", json.as_bytes()),
        post("/v1/transactions", "application/octet-stream", &bytes),
        post("/v1/transactions?wait=true", "application/json", json.as_bytes()),
        post("/v1/transactions/batch", "application/json", batch.as_bytes()),
    ];
    seeds.extend(ENDPOINTS.iter().filter(|(method, ..)| *method == "GET").map(|(_, route, _)| get(route)));
    let words = [
        "%00",
        "%",
        "%ff",
        "..",
        "?limit=",
        "&limit=18446744073709551616",
        "=-1",
        "\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Content-Length: 9\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n",
        "{",
        "[[[[",
        "null",
        "1e999",
        "\\ud800",
        "EUR",
        "0x",
        "{address}",
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    runtime.block_on(async {
        let settings = Http { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Http::default() };
        let doors = Bound::new(settings).await.expect("a free port").open(Arc::new(Fake::new()));
        let server = SocketAddr::from(([127, 0, 0, 1], doors.address().port()));
        let fuzzed = tokio::task::spawn_blocking(move || {
            let room = Some(Room { base: 32 << 20, factor: 256 });
            let target = Target { words: &words, room, takes_seeds: false, ..Target::new("http", seeds) };
            let ran = target.run(|request| {
                let status = answer(server, request, PATIENCE);
                // The fake backend's archive fails on purpose when a block's receipts are requested as bytes.
                let archive = String::from_utf8_lossy(request).contains("/receipts");
                assert!(status.is_none_or(|status| status < 500 || status == 503 || archive), "{status:?}");
                let status = status.ok_or("closed")?;
                if status < 400 {
                    Ok(format!("status {}", word(status)))
                } else {
                    Err(format!("status {}", word(status)))
                }
            });
            assert!(ran.taken > ran.cases / 50, "hardly anything was answered: {ran:?}");
            assert_eq!(answer(server, &get("/v1/status"), HANGS), Some(200), "it still works");
        });
        fuzzed.await.expect("the test passes");
        doors.close().await;
    });
}

/// Maps a status to the kind of answer that it represents.
fn word(status: u16) -> String {
    status.to_string().chars().map(|digit| char::from(digit as u8 - b'0' + b'a')).collect()
}
