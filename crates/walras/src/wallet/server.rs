//! The node that a command uses.

use anyhow::bail;
use client::{ClientError, NodeClient};
use serde_json::Value;

/// The node to use.
#[derive(clap::Args, Clone)]
pub struct Server {
    /// Address of a node.
    #[arg(long = "server", value_name = "URL", env = "WALRAS_SERVER", default_value = "http://127.0.0.1:8080")]
    pub url: String,
}

/// An answer: its status, and its JSON.
pub struct Answered {
    pub status: u16,
    pub body: Value,
}

impl Answered {
    /// The body, or the node's error as an error.
    pub fn sound(self) -> anyhow::Result<Value> {
        match &self.body["error"] {
            Value::Null => Ok(self.body),
            error => bail!("{}: {}", text(&error["code"]), text(&error["message"])),
        }
    }
}

impl Server {
    /// The client of this node.
    pub fn node(&self) -> NodeClient {
        NodeClient::at(&self.url)
    }

    /// The JSON at a path, or the node's error as an error.
    pub fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(self.node().get(path)?)
    }

    /// The node's answer at a path, errors included.
    pub fn ask(&self, path: &str) -> anyhow::Result<Answered> {
        let (status, bytes) = self.node().bytes(path)?;
        let foreign =
            |error: serde_json::Error| ClientError::Foreign { server: self.url.clone(), what: error.to_string() };
        Ok(Answered { status, body: serde_json::from_slice(&bytes).map_err(foreign)? })
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}
