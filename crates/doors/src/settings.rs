//! The operator's settings of the doors: the section `[http]` of the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The HTTP interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// The address to listen on, by default loopback.
    pub listen: SocketAddr,
    /// Maximum size of a request body.
    pub body_bytes: usize,
    /// Maximum number of transactions in one batch call.
    pub batch_transactions: usize,
    /// Maximum number of requests served at once.
    pub concurrent_requests: usize,
    /// An additional address for `/healthz`, `/readyz` and `/metrics` that clients of the interface cannot crowd out.
    pub probes: Option<SocketAddr>,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections from one address.
    pub connections_of_one: usize,
    /// How long a connection may take to send the head of its next request.
    pub head_seconds: u64,
    /// How long a request may take to send its body.
    pub body_seconds: u64,
    /// Maximum bytes of request bodies held at once.
    pub body_bytes_waiting: usize,
    /// Maximum number of WebSocket connections.
    pub stream_connections: usize,
    /// Certificate chain (PEM) for TLS at `listen`; with it, plain HTTP is not answered.
    pub certificate: Option<PathBuf>,
    /// Its private key (PEM); only its owner may be able to read it.
    pub certificate_key: Option<PathBuf>,
    /// Set if a proxy with TLS is in front of the node, or its network is private: without this or a certificate the
    /// node listens only on loopback.
    pub behind_proxy: bool,
    /// Proxies, as addresses or networks such as `10.0.0.0/8`, whose `X-Forwarded-For` names the client: the limits
    /// then count the client and not the proxy.
    pub trusted_proxies: Vec<String>,
    /// Whether the trusted proxies begin each connection with a header of the PROXY protocol (version 1 or 2).
    pub proxy_protocol: bool,
    /// Addresses or networks (of validators, probes, the operator's desks) whose connections are not displaced when
    /// all places are taken, up to sixteen of a /24 or /48.
    pub known: Vec<String>,
    /// A file with the operator's token; only its owner may be able to read it. Without it nobody is the operator.
    pub operator_token_file: Option<PathBuf>,
    /// A file with the token required for sending transactions, likewise. Without it everybody may send.
    pub submit_token_file: Option<PathBuf>,
    /// Origins, such as `https://desk.example`, whose pages may call this node (CORS).
    pub origins: Vec<String>,
    /// Host names, besides loopback ones and IP addresses, under which a browser may call this node.
    pub hosts: Vec<String>,
}

impl Http {
    /// The files that they may name.
    pub fn files(&mut self) -> [&mut Option<PathBuf>; 4] {
        [&mut self.certificate, &mut self.certificate_key, &mut self.operator_token_file, &mut self.submit_token_file]
    }
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
            certificate: None,
            certificate_key: None,
            behind_proxy: false,
            trusted_proxies: Vec::new(),
            proxy_protocol: false,
            known: Vec::new(),
            operator_token_file: None,
            submit_token_file: None,
            origins: Vec::new(),
            hosts: Vec::new(),
        }
    }
}
