//! Open doors in front of a fake node, and a client that shows what it is answered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use doors::{Bound, Http};
use tungstenite::Message;
use tungstenite::protocol::frame::coding::CloseCode;

use crate::fake::Fake;

/// Settings of a door on loopback.
pub fn loopback() -> Http {
    Http { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Http::default() }
}

/// Runs `test` against doors with these settings; it runs in its own thread, as clients do.
#[allow(dead_code, reason = "some tests bring their own node")]
pub fn with_doors<T: Send + 'static>(settings: Http, test: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    with_node(settings, Arc::new(Fake::new()), test)
}

/// As [`with_doors`], in front of this node.
pub fn with_node<T: Send + 'static>(
    settings: Http,
    node: Arc<Fake>,
    test: impl FnOnce(SocketAddr) -> T + Send + 'static,
) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let doors = Bound::new(settings).await.expect("a free port").open(node);
        let address = SocketAddr::from(([127, 0, 0, 1], doors.address().port()));
        let result = tokio::task::spawn_blocking(move || test(address)).await.expect("the test passes");
        doors.close().await;
        result
    })
}

/// Status and whole answer.
pub fn exchange(stream: &mut (impl Read + Write), method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    // A peer may end TLS without a close message.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {answer:?}")), answer)
}

#[allow(dead_code, reason = "some tests send bodies")]
pub fn call(server: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    exchange(&mut TcpStream::connect(server).expect("listens"), method, path, headers)
}

/// Status and JSON of the answer to a call with a body; `null` if it is not JSON.
#[allow(dead_code, reason = "not every test sends bodies")]
pub fn send(server: SocketAddr, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, serde_json::Value) {
    let mut stream = TcpStream::connect(server).expect("listens");
    let kind = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{kind}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    // A body that is refused is not read to its end.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| panic!("no head: {path}"));
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, serde_json::from_slice(&answer[end + 4..]).unwrap_or_default())
}

/// The answer to a `GET` that succeeds.
#[allow(dead_code, reason = "not every test reads")]
pub fn get(server: SocketAddr, path: &str) -> serde_json::Value {
    let (status, body) = send(server, "GET", path, "", &[]);
    assert_eq!(status, 200, "{path}: {body}");
    body
}

/// The bytes of a field that is `0x` and hexadecimal digits.
#[allow(dead_code, reason = "not every test reads bytes")]
pub fn bytes(text: &serde_json::Value) -> Vec<u8> {
    let digits = text.as_str().and_then(|text| text.strip_prefix("0x")).unwrap_or_else(|| panic!("{text}"));
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).expect("hexadecimal");
    digits.as_bytes().chunks(2).map(byte).collect()
}

/// Why the other side closes a connection: what it sends before is passed over.
#[allow(dead_code, reason = "not every test has a WebSocket")]
pub fn ended(socket: &mut tungstenite::WebSocket<TcpStream>) -> (CloseCode, String) {
    loop {
        match socket.read() {
            Ok(Message::Close(Some(frame))) => return (frame.code, frame.reason.to_string()),
            Ok(_) => {}
            Err(error) => panic!("closed without a reason: {error}"),
        }
    }
}
