//! The node that a command uses.

use client::NodeClient;

/// The node to use.
#[derive(clap::Args, Clone)]
pub struct Server {
    /// Address of a node.
    #[arg(long = "server", value_name = "URL", env = "WALRAS_SERVER", default_value = "http://127.0.0.1:8080")]
    pub url: String,
}

impl Server {
    /// The client of this node.
    pub fn node(&self) -> NodeClient {
        NodeClient::at(&self.url)
    }
}
