//! What an operator sets of the doors: the section `[http]` of the configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

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
    /// Certificate chain (PEM) for TLS at `listen`; with it, plain HTTP is not answered.
    pub certificate: Option<PathBuf>,
    /// Its private key (PEM), which its owner alone can read.
    pub certificate_key: Option<PathBuf>,
    /// That a proxy which speaks TLS stands before the node, or that its network is private: without that or a
    /// certificate it listens on loopback alone.
    pub behind_proxy: bool,
    /// File with the operator's token, which its owner alone can read. Without it nobody is the operator.
    pub operator_token_file: Option<PathBuf>,
    /// File with the token that sending transactions takes, likewise. Without it everybody may send.
    pub submit_token_file: Option<PathBuf>,
    /// Origins, such as `https://desk.example`, whose pages may call this node (CORS).
    pub origins: Vec<String>,
    /// Host names, beside loopback ones and IP addresses, that a browser may call this node by.
    pub hosts: Vec<String>,
}

impl Http {
    /// With paths that are relative taken from a directory.
    pub fn within(mut self, directory: &Path) -> Http {
        for path in [
            &mut self.certificate,
            &mut self.certificate_key,
            &mut self.operator_token_file,
            &mut self.submit_token_file,
        ] {
            *path = path.take().map(|path| directory.join(path));
        }
        self
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
            operator_token_file: None,
            submit_token_file: None,
            origins: Vec::new(),
            hosts: Vec::new(),
        }
    }
}
