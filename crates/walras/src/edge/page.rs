//! The page of fairness beside the demo's page, and its metrics.

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use edge::{EdgeStatus, HostHandle};
use pit::fairness_body;
use serde_json::Value;

use super::bundles::BundleShelf;

/// Longest request that is read, and how long all of it may take.
const REQUEST_BYTES: usize = 4_096;
const PATIENCE: Duration = Duration::from_secs(2);
const HTML: &str = include_str!("page.html");

/// Serves the page of a root until the process ends.
///
/// # Errors
/// If the address is taken.
pub fn serve(listen: SocketAddr, root: HostHandle, shelf: Arc<BundleShelf>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(listen)?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("fairness page".into()).spawn(move || {
        // One request after the other: each takes a moment, or ends by its time limit.
        for stream in listener.incoming().flatten() {
            drop(respond(stream, PATIENCE, || root.status(0), || shelf.page()));
        }
    })?;
    Ok(address)
}

fn respond(
    mut stream: TcpStream,
    patience: Duration,
    status: impl Fn() -> Option<EdgeStatus>,
    bundles: impl Fn() -> Value,
) -> io::Result<()> {
    stream.set_write_timeout(Some(patience))?;
    let end = Instant::now() + patience;
    let mut request = Vec::new();
    let mut buffer = [0; 1_024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        // A byte now and then must not keep the others waiting.
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..count]);
        if count == 0 || request.len() > REQUEST_BYTES {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(&request);
    let path = line.strip_prefix("GET ").and_then(|rest| rest.split_whitespace().next()).unwrap_or("");
    let (status, kind, body) = match (path, status()) {
        ("/", _) => ("200 OK", "text/html; charset=utf-8", HTML.to_string()),
        ("/v1/fairness", Some(status)) => ("200 OK", "application/json", fairness_body(&status).to_string()),
        ("/v1/bundles", Some(_)) => ("200 OK", "application/json", bundles().to_string()),
        ("/metrics", Some(status)) => ("200 OK", "text/plain; version=0.0.4", metrics(&status)),
        (_, None) => ("503 Service Unavailable", "text/plain", "the edge has ended\n".into()),
        _ => ("404 Not Found", "text/plain", "try /, /v1/fairness, /v1/bundles or /metrics\n".into()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// What `/metrics` answers, in the text format of Prometheus.
pub fn metrics(status: &EdgeStatus) -> String {
    let Some(root) = &status.root else { return String::new() };
    let mut text = String::new();
    let mut line = |name: &str, value: f64| {
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{name} {value}");
    };
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    line("walras_edge_epoch", f64::from(root.epoch));
    line("walras_edge_members{role=\"proxy\"}", root.proxies.len() as f64);
    line("walras_edge_members{role=\"gateway\"}", root.gateways.len() as f64);
    line("walras_edge_packets_total", root.sequence as f64);
    line("walras_edge_orders_total", status.counters.orders as f64);
    line("walras_edge_orders_restamped_total", status.counters.restamped as f64);
    line("walras_edge_bundles_total", status.counters.bundles as f64);
    line("walras_edge_bundled_late_total", status.counters.bundled_late as f64);
    line("walras_edge_evictions_total", status.counters.evictions as f64);
    line("walras_edge_headroom_seconds", seconds(root.headroom));
    for (name, figures) in [
        ("walras_edge_delivery_window_seconds", root.windows.width),
        ("walras_edge_lateness_seconds", root.windows.late),
        ("walras_edge_hold_seconds", root.windows.held),
    ] {
        line(&format!("{name}{{quantile=\"0.5\"}}"), seconds(figures[0]));
        line(&format!("{name}{{quantile=\"0.99\"}}"), seconds(figures[1]));
    }
    line("walras_edge_within_target_ratio", root.windows.within);
    line("walras_edge_proven_ratio", root.windows.proven);
    line("walras_edge_clock_error_seconds", root.windows.error_bound.map_or(f64::NAN, seconds));
    text
}

#[cfg(test)]
mod tests {
    use fairnet::{ClockMesh, EstimatorRules, ShownSample, Windows};
    use serde_json::json;

    use super::*;

    fn status(error_bound: Option<u64>) -> EdgeStatus {
        let mut windows = Windows::default();
        for late in [100, 600] {
            windows.add(&ShownSample { sequence: 4, delay: 9_000, held: 5_000, late, error_bound }, 2);
        }
        let root = edge::RootStatus {
            epoch: 3,
            widths: vec![1, 2],
            hedging: 0,
            proxies: Vec::new(),
            gateways: vec![1_000, 1_001],
            headroom: 50_000,
            queued: 0,
            sequence: 4,
            windows: windows.figures(edge::WINDOW_TARGET),
            delays: Vec::new(),
            at: 0,
            clocks: ClockMesh::new(EstimatorRules::default()),
            log: Vec::new(),
            log_head: [0; 32],
        };
        let (counters, losses) = Default::default();
        EdgeStatus { member: 0, counters, losses, streams: 2, unacknowledged: 0, root: Some(root) }
    }

    #[test]
    fn fairness_is_labelled_proven_only_if_every_clock_is_bounded() {
        let bounded = fairness_body(&status(Some(200)));
        assert_eq!(bounded["delivery_window"], json!({ "p50_us": 0.5, "p99_us": 0.5, "label": "proven" }));
        assert_eq!(bounded["share_proven_within_1_us"]["value"], 1.0);
        let unbounded = fairness_body(&status(None));
        assert_eq!(unbounded["delivery_window"]["label"], "estimated");
        assert_eq!(
            (&unbounded["clock_error_bound_us"], &unbounded["share_within_1_us"]["value"]),
            (&Value::Null, &json!(1.0))
        );
        assert_eq!(unbounded["share_proven_within_1_us"]["value"], 0.0);
    }

    #[test]
    fn fairness_page_and_metrics_are_served_over_http() {
        let (found, seen) = std::sync::mpsc::channel();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            drop(found.send(respond(stream, PATIENCE, || Some(status(Some(0))), || Value::Null)));
        });
        let mut client = TcpStream::connect(address).expect("it listens");
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("text");
        assert!(seen.recv().expect("it answers").is_ok());
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("walras_edge_epoch 3"), "{answer}");
    }

    /// It ends although a byte arrives long before any single wait would.
    #[test]
    fn fairness_page_waits_for_no_sender_of_single_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let served = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            drop(respond(stream, Duration::from_millis(100), || None, || Value::Null));
        });
        let mut client = TcpStream::connect(address).expect("it listens");
        while !served.is_finished() {
            drop(client.write_all(b"G"));
            std::thread::sleep(Duration::from_millis(5));
        }
        served.join().expect("it ends");
    }
}
