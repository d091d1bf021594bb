//! Errors of a client: which server, what it said, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use primitives::{Address, Digest, PublicKey, SessionSlot, TransactionId};

/// Why a client got no answer that it can use.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answered, or the connection broke. What was asked for may have been done.
    #[error("no node answers at {server}; give another address")]
    NoAnswer {
        /// The address.
        server: String,
        /// What failed.
        #[source]
        cause: Box<ureq::Error>,
    },
    /// Nobody answered who streams.
    #[error("no node answers at {server}; give another address")]
    NoStream {
        /// The address.
        server: String,
        /// What failed.
        #[source]
        cause: Box<tungstenite::Error>,
    },
    /// A stream has ended.
    #[error("the node at {server} closed the stream: {reason}; start again")]
    StreamEnded {
        /// The address.
        server: String,
        /// What the node said, or how the connection broke.
        reason: String,
    },
    /// The answer does not have the form of this version of a node.
    #[error("what answers at {server} is no walras node of this version ({what}); give another address")]
    Foreign {
        /// The address.
        server: String,
        /// What is wrong with the answer.
        what: String,
    },
    /// The node refused, with a reason.
    #[error("{code}: {message}")]
    Refused {
        /// The address.
        server: String,
        /// The status of HTTP.
        status: u16,
        /// A stable code.
        code: String,
        /// A sentence: what is wrong, and the remedy.
        message: String,
    },
    /// The node has not caught up, so its answers about an account may be out of date.
    #[error(
        "the node at {server} has not caught up ({reason}), and may return a used sequence number. Nothing was sent. \
         Try again later, give another address, or state the number"
    )]
    Lags {
        /// The address.
        server: String,
        /// Why it is not ready.
        reason: String,
    },
    /// The key is no session key of the account.
    #[error(
        "the key {key} is no session key of account {account}: its owner authorises it with `walras wallet session add`"
    )]
    NoSessionKey {
        /// The account.
        account: Address,
        /// The key.
        key: PublicKey,
    },
    /// The account has no session key in a slot.
    #[error("account {account} has no session key in slot {slot}: it was revoked, or its account made a newer one")]
    NoSession {
        /// The account.
        account: Address,
        /// The slot.
        slot: SessionSlot,
    },
    /// There is no such asset.
    #[error("no asset {symbol:?}; there are {known}")]
    NoAsset {
        /// The symbol.
        symbol: String,
        /// The symbols that there are.
        known: String,
    },
    /// The node is of another network than was named.
    #[error("the node at {server} is of network {found}, not of {named}: nothing was sent")]
    OtherNetwork {
        /// The address.
        server: String,
        /// The network of the node.
        found: Digest,
        /// The network that was named.
        named: Digest,
    },
    /// The key signed for another network before.
    #[error(
        "this key signed for network {known} before, and the node at {server} is of network {found}: nothing was sent. \
         Give the address of a node of the first one; if you mean the other, add --network {found}"
    )]
    KeyOfOtherNetwork {
        /// The address.
        server: String,
        /// The network of the node.
        found: Digest,
        /// The network of the key.
        known: Digest,
    },
    /// The same operation is under way.
    #[error(
        "the same operation was sent before as {0}, and its result is unknown: ask for its fate, or send it again \
         unchanged"
    )]
    SentBefore(TransactionId),
    /// There is no key to seal to.
    #[error(
        "{why}. Nothing was sent. Wait for a key, as {server}/v1/seal tells of it, or send the order plain: validators \
         then see it before its batch"
    )]
    NoSealingKey {
        /// The address of the node.
        server: String,
        /// Why there is none.
        why: String,
    },
    /// What cannot be sealed.
    #[error("{0}. Nothing was sent")]
    Unsealed(String),
    /// Others that use the account were faster each time.
    #[error("others that use this account take every number first; nothing was done. Try again later")]
    NumbersTaken,
    /// A file cannot be used.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
        /// The system's error, if there is one.
        #[source]
        cause: Option<io::Error>,
    },
}

impl ClientError {
    /// An error of the system about a file.
    pub fn file(path: &Path, what: impl Into<String>, cause: io::Error) -> ClientError {
        ClientError::File { path: path.into(), what: what.into(), cause: Some(cause) }
    }

    /// A file with wrong contents.
    pub fn contents(path: &Path, what: impl Into<String>) -> ClientError {
        ClientError::File { path: path.into(), what: what.into(), cause: None }
    }

    /// The code with which the node refused; `None` for every other error.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the node has no such thing. A node that does not answer is another error.
    pub fn is_absence(&self) -> bool {
        matches!(self, ClientError::Refused { status: 404, .. })
    }

    /// Whether it is unknown if a request that should change something did so: no answer came, or the node was
    /// stopping when it answered. A follower says for certain that it passed nothing on.
    pub fn leaves_doubt(&self) -> bool {
        match self {
            ClientError::NoAnswer { .. } | ClientError::Foreign { .. } => true,
            ClientError::Refused { status, code, .. } => *status >= 500 && code != "follows",
            _ => false,
        }
    }
}
