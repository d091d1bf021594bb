//! Why a light client believes nothing: what the node said, and what to do about it.

use std::time::Duration;

use primitives::{Digest, Height};

use crate::error::ClientError;

/// Why nothing was proved.
#[derive(Debug, thiserror::Error)]
pub enum LightError {
    /// The node did not answer, refused, or a file cannot be used. It is never a certificate that is still missing.
    #[error(transparent)]
    Node(#[from] ClientError),
    /// A witness did not answer, or refused.
    #[error("the witness {server}")]
    Witness {
        /// Its address.
        server: String,
        /// The answer of that node.
        #[source]
        cause: Box<ClientError>,
    },
    /// The node answers, and no quorum has signed the block in all this time.
    #[error("no certificate of {what} appears at {server}: the network has stalled, or the node lags")]
    NotCertified {
        /// The node's address.
        server: String,
        /// What is not certified.
        what: String,
    },
    /// The node certifies nothing.
    #[error("the node at {server} makes blocks alone, so nobody signs them")]
    Solo {
        /// Its address.
        server: String,
    },
    /// What the node shows does not prove what it says.
    #[error("{what}, at {server}")]
    Unproved {
        /// The node's address.
        server: String,
        /// What is wrong.
        what: String,
    },
    /// Those that the client trusts have not signed what the node shows.
    #[error(
        "{what}. Either the genesis is of another network than the node at {server}: get the file from an operator of \
         a validator; or the node is faulty: trust none of its answers until then"
    )]
    Unsigned {
        /// The node's address.
        server: String,
        /// What is not signed.
        what: String,
    },
    /// The node shows another state than the pin names.
    #[error(
        "the node at {server} shows another state of block {height} than the pin names: it is of another network, or \
         its history is not that of this network"
    )]
    OtherState {
        /// The node's address.
        server: String,
        /// The height of the pin.
        height: Height,
    },
    /// The validators signed another state than the pin names.
    #[error(
        "the validators of this genesis signed another state of block {height} than the pin names: either the pin is \
         of another network, or more than a third of these validators have signed two histories. Trust no answer of \
         this network until its operators have said which"
    )]
    TwoHistories {
        /// The height of the pin.
        height: Height,
    },
    /// The pin is no state from which a client can start.
    #[error("the state of block {height} shows no committee, so nobody can start from it")]
    NoCommittee {
        /// The height of the pin.
        height: Height,
    },
    /// The certificate is of an epoch before the client's first one.
    #[error("the certificate is of epoch {epoch}, before epoch {first}, where this client starts ({begun_with})")]
    BeforeTrust {
        /// The epoch of the certificate.
        epoch: u64,
        /// The first trusted epoch.
        first: u64,
        /// What the client started from.
        begun_with: &'static str,
    },
    /// The keys that signed stand for no stake any more.
    #[error(
        "the answer is of epoch {epoch}, and this client starts from the validators of epoch {from} ({begun_with}): \
         their stakes have been paid back since, so their keys prove nothing any more"
    )]
    PaidBack {
        /// The epoch of the certificate.
        epoch: u64,
        /// The first trusted epoch.
        from: u64,
        /// What the client started from.
        begun_with: &'static str,
    },
    /// The same about an old block, which witnesses could confirm.
    #[error(
        "block {height} is of epoch {epoch}, whose validators' stakes have been paid back: their signatures alone \
         prove nothing any more, unless a witness shows the same block"
    )]
    Unwitnessed {
        /// The block.
        height: Height,
        /// Its epoch.
        epoch: u64,
    },
    /// What the client trusts was proved too long ago.
    #[error(
        "the remembered committee was proved {} hours ago, and the trust period is {} hours: its validators may have \
         sold their keys since",
        age.as_secs() / 3_600,
        period.as_secs() / 3_600
    )]
    OldTrust {
        /// Time since the proof.
        age: Duration,
        /// The trust period.
        period: Duration,
    },
    /// The newest block is too old, or not of this time.
    #[error(
        "block {height}, the newest that the node shows, is {} seconds {}: the node lags or hides later blocks, the \
         network has stalled, or this machine's clock is wrong",
        off.as_secs(),
        if *is_ahead { "ahead of this machine's clock" } else { "old" }
    )]
    Stale {
        /// The block.
        height: Height,
        /// By how much.
        off: Duration,
        /// Whether the block's time is ahead of this machine's.
        is_ahead: bool,
    },
    /// A witness shows another statement than the node.
    #[error(
        "the witness {witness} shows another block {height} than {server}: one of the two has a history that is not \
         this network's, or belongs to another network. Trust neither"
    )]
    Contradicted {
        /// The witness.
        witness: String,
        /// The node's address.
        server: String,
        /// The block.
        height: Height,
    },
    /// The file of a committee is of another network than the client.
    #[error("{file}: belongs to another network than the genesis, which is {network}")]
    OtherMemory {
        /// The file.
        file: String,
        /// The client's network.
        network: Digest,
    },
    /// The transaction is in no block.
    #[error("the transaction is in no block yet, says the node at {server}")]
    Pending {
        /// The node's address.
        server: String,
    },
}

/// What somebody can do about a [`LightError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LightRemedy {
    /// Ask another node.
    AnotherNode,
    /// Start from a newer state that a trusted party names.
    NewPin,
    /// Start from the genesis, or ask about a later height.
    OtherStart,
    /// Ask witnesses.
    Witnesses,
    /// Ask another node, set the clock, or accept older blocks.
    Clock,
    /// Give another file, or the genesis that fits it.
    OtherMemory,
    /// Try again later.
    Later,
    /// The error says it already.
    AsSaid,
}

impl LightError {
    /// What to do.
    pub fn remedy(&self) -> LightRemedy {
        match self {
            LightError::Node(_) | LightError::Witness { .. } | LightError::TwoHistories { .. } => LightRemedy::AsSaid,
            LightError::NotCertified { .. }
            | LightError::Solo { .. }
            | LightError::Unproved { .. }
            | LightError::Unsigned { .. }
            | LightError::OtherState { .. } => LightRemedy::AnotherNode,
            LightError::PaidBack { .. }
            | LightError::OldTrust { .. }
            | LightError::Contradicted { .. }
            | LightError::NoCommittee { .. } => LightRemedy::NewPin,
            LightError::BeforeTrust { .. } => LightRemedy::OtherStart,
            LightError::Unwitnessed { .. } => LightRemedy::Witnesses,
            LightError::Stale { .. } => LightRemedy::Clock,
            LightError::OtherMemory { .. } => LightRemedy::OtherMemory,
            LightError::Pending { .. } => LightRemedy::Later,
        }
    }

    /// Whether the node could not be asked. Then nothing is known of its answer.
    pub fn is_silence(&self) -> bool {
        match self {
            LightError::Node(error) => matches!(error, ClientError::NoAnswer { .. }),
            LightError::Witness { cause, .. } => matches!(**cause, ClientError::NoAnswer { .. }),
            _ => false,
        }
    }
}
