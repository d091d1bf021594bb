//! Streams of a node: an account, as it changes.

use std::net::TcpStream;

use api::AccountEvent;
use primitives::Address;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use crate::error::ClientError;
use crate::node::NodeClient;

/// A node's stream about one account. Nothing that it says is verified.
pub struct AccountStream {
    node: NodeClient,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
}

/// A message of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// As the node wrote it.
    pub text: String,
    /// What it says.
    pub event: AccountEvent,
}

impl AccountStream {
    /// Begins to follow an account.
    ///
    /// # Errors
    /// [`ClientError::NoStream`] if no node answers.
    pub fn open(node: &NodeClient, account: &Address) -> Result<AccountStream, ClientError> {
        let url = format!("{}/v1/stream", node.url().replacen("http", "ws", 1));
        let silent = |cause| ClientError::NoStream { server: node.url().into(), cause: Box::new(cause) };
        let (mut socket, _) = tungstenite::connect(&url).map_err(silent)?;
        let request = format!("{{\"subscribe\":[\"account:{account}\"]}}");
        socket.send(Message::text(request)).map_err(silent)?;
        Ok(AccountStream { node: node.clone(), socket })
    }

    /// Waits for the next message: first the account as it is, then what each block does to it, and heartbeats.
    ///
    /// # Errors
    /// [`ClientError`]: the stream has ended, or the node refuses the request.
    pub fn wait(&mut self) -> Result<Followed, ClientError> {
        let server = || self.node.url().to_string();
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return self.read(text.to_string()),
                Ok(Message::Close(frame)) => {
                    let reason = frame.map_or("no reason given".into(), |frame| frame.reason.to_string());
                    return Err(ClientError::StreamEnded { server: server(), reason });
                }
                Ok(_) => {}
                Err(error) => {
                    return Err(ClientError::StreamEnded { server: server(), reason: error.to_string() });
                }
            }
        }
    }

    fn read(&self, text: String) -> Result<Followed, ClientError> {
        let foreign = |error: serde_json::Error| self.node.foreign(&error.to_string());
        match serde_json::from_str(&text).map_err(foreign)? {
            AccountEvent::Error { code, message } => {
                Err(ClientError::Refused { server: self.node.url().into(), status: 400, code, message })
            }
            event => Ok(Followed { text, event }),
        }
    }
}
