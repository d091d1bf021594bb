//! Open doors in front of a fake node, and a client that shows what it is answered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use doors::{Bound, Http};

use crate::fake::Fake;

/// Settings of a door on loopback.
pub fn loopback() -> Http {
    Http { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Http::default() }
}

/// Runs `test` against doors with these settings; it runs in its own thread, as clients do.
pub fn with_doors<T: Send + 'static>(settings: Http, test: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let doors = Bound::new(settings).await.expect("a free port").open(Arc::new(Fake::new()));
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

pub fn call(server: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    exchange(&mut TcpStream::connect(server).expect("listens"), method, path, headers)
}
