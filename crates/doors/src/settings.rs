//! What an operator sets of the doors: the section `[http]` of the configuration.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The HTTP interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Where to listen. Loopback by default.
    pub listen: SocketAddr,
    /// Largest request body.
    pub body_bytes: usize,
    /// Most transactions in one batch call.
    pub batch_transactions: usize,
    /// Most requests served at once.
    pub concurrent_requests: usize,
    /// Another address for `/healthz`, `/readyz` and `/metrics`, which no client of the interface can crowd out.
    pub probes: Option<SocketAddr>,
    /// Most connections.
    pub connections: usize,
    /// Most connections from one address.
    pub connections_of_one: usize,
    /// How long a connection may take to send the head of its next request.
    pub head_seconds: u64,
    /// How long a request may take to send its body.
    pub body_seconds: u64,
    /// Bytes of request bodies that may be here at once.
    pub body_bytes_waiting: usize,
    /// Most WebSocket connections.
    pub stream_connections: usize,
    /// Host names, beside loopback ones and IP addresses, that a browser may call this node by.
    pub hosts: Vec<String>,
}

impl Default for Http {
    fn default() -> Http {
        Http {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            body_bytes: 16 << 20,
            batch_transactions: 10_000,
            concurrent_requests: 1_024,
            probes: None,
            connections: 4_096,
            connections_of_one: 1_024,
            head_seconds: 20,
            body_seconds: 30,
            body_bytes_waiting: 256 << 20,
            stream_connections: 1_024,
            hosts: Vec::new(),
        }
    }
}
