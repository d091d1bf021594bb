//! Why a purse cannot do something: what failed, and what to do about it.

use std::io;
use std::path::PathBuf;

use lane::{LaneClientError, OutboxError};
use payments::{HomeEpoch, LaneRefusal, OutputId, Recipient};
use primitives::{Address, Amount, AssetId, Digest, PublicKey, UnitsError};

use crate::error::ClientError;
use crate::keystore::KeyError;
use crate::light::LightError;

/// A text that does not have the form that was expected; the value names that form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {0}")]
pub struct Invalid(pub &'static str);

/// Why a purse did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum PurseError {
    /// The node did not answer, refused, or a file cannot be used.
    #[error(transparent)]
    Node(#[from] ClientError),
    /// The chain's validators prove nothing.
    #[error(transparent)]
    Light(#[from] LightError),
    /// The seed cannot be made, kept or opened.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The stored payments refuse it, or cannot be used.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// The members of the lane refuse, or too few have answered.
    #[error(transparent)]
    Lane(#[from] LaneClientError),
    /// The rules of the lane forbid it.
    #[error(transparent)]
    Refused(#[from] LaneRefusal),
    /// A text is no amount of an asset.
    #[error(transparent)]
    Amount(#[from] UnitsError),
    /// A text in the purse's files does not have the form that was expected.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A receipt of the purse cannot be read any more.
    #[error("{}: get the receipt again from the payer", path.display())]
    Receipt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: Box<SlipError>,
    },
    /// The system has no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
    /// Somebody else uses the folder.
    #[error("{}: another command uses this purse; wait until it has ended", .0.display())]
    InUse(PathBuf),
    /// The folder has a purse already.
    #[error("{} is a purse already", .0.display())]
    Exists(PathBuf),
    /// The folder has no purse.
    #[error("{} is not a purse", .0.display())]
    NoPurse(PathBuf),
    /// Seed and keys do not fit each other.
    #[error("the seed and the list of keys belong to different purses: restore both from one copy")]
    OtherSeed,
    /// The key belongs to somebody else.
    #[error("{0} is not a key of this purse")]
    NotOwned(PublicKey),
    /// The account belongs to somebody else.
    #[error("{0} is not the account of a key of this purse")]
    NoAccount(Address),
    /// The lane carries no such asset.
    #[error(
        "the lane carries no asset {symbol:?}; there are {known}, as far as this purse knows: `walras pay balance` \
         asks a node for others"
    )]
    NotCarried {
        /// The symbol.
        symbol: String,
        /// The symbols that there are.
        known: String,
    },
    /// The lane takes no deposits of an asset.
    #[error("the lane takes no deposits of {symbol} in this lane epoch; what is in it can be paid and redeemed")]
    NoWayIn {
        /// The symbol.
        symbol: String,
    },
    /// The node tells of an asset what the purse knows otherwise.
    #[error(
        "the node at {server} calls asset {asset} {symbol:?} with {decimals} decimals, and this purse knows another \
         name for it, or another asset of this name: nothing was sent; ask another node"
    )]
    OtherAsset {
        /// Its address.
        server: String,
        /// The asset.
        asset: AssetId,
        /// The symbol.
        symbol: String,
        /// The decimal places.
        decimals: u8,
    },
    /// The node is of another lane.
    #[error("the node at {server} has another lane than this purse, or other keys: nothing was sent")]
    OtherLane {
        /// Its address.
        server: String,
    },
    /// The node names keys that the ledger does not have.
    #[error("the keys of the lane, at {server}, are not those that the ledger has")]
    OtherKeys {
        /// Its address.
        server: String,
        /// What is wrong with them.
        #[source]
        cause: Option<Box<LaneRefusal>>,
    },
    /// The node names a group key that the members have not made.
    #[error("the group key of lane epoch {epoch}, at {server}, is not that of its members")]
    OtherBoard {
        /// Its address.
        server: String,
        /// The lane epoch.
        epoch: HomeEpoch,
        /// What is wrong with it.
        #[source]
        cause: Box<LaneRefusal>,
    },
    /// The node's validators are of another network.
    #[error("the validators, at {server}, are of another network")]
    OtherValidators {
        /// Its address.
        server: String,
    },
    /// The node shows a block that its validators have not signed.
    #[error("the node at {server} shows a block that its validators have not signed")]
    Unsigned {
        /// Its address.
        server: String,
        /// What is wrong with the certificate.
        #[source]
        cause: proofs::CertificateError,
    },
    /// Nobody has signed a block yet, so there is nobody to believe.
    #[error("no quorum of validators has signed a block yet, says the node at {server}")]
    NothingSigned {
        /// Its address.
        server: String,
    },
    /// The node does not know where the members are.
    #[error("the node at {server} does not know where the lane's shards are")]
    NoAddresses {
        /// Its address.
        server: String,
    },
    /// The node has another output than was deposited.
    #[error("the node's output {output}, at {server}, differs from the deposit")]
    OtherOutput {
        /// Its address.
        server: String,
        /// The output.
        output: OutputId,
    },
    /// The keys of the lane are not proved.
    #[error("the lane's keys are not proved, so nothing was sent")]
    Unproved(#[source] LightError),
    /// What the purse believed is too old.
    #[error("the purse cannot follow the chain's validators from where it stopped")]
    OldTrust(#[source] LightError),
    /// The purse was made before purses knew about validators.
    #[error("the purse does not know the chain's validators, who prove the lane's keys")]
    NoValidators,
    /// A pin is of no use where committees never change.
    #[error("the validators of this network never change: it needs no pin")]
    FixedValidators,
    /// The lane takes no payments now.
    #[error("the lane is halted: nothing was sent. Try again later")]
    Halted,
    /// The committee has no keys for the scheme.
    #[error("nothing was sent")]
    Scheme(#[source] LaneClientError),
    /// The purse has not enough of an asset.
    #[error(
        "the purse cannot make up this amount: {missing} are missing, with fees and least outputs; pending money can \
         be spent once it is settled"
    )]
    Missing {
        /// What is missing, in decimals.
        missing: String,
        /// The asset.
        asset: AssetId,
        /// The same in units.
        units: Amount,
    },
    /// A payment was sent, and no quorum has confirmed it.
    #[error("payment {payment} is not confirmed")]
    Unconfirmed {
        /// Its digest.
        payment: Digest,
        /// Why.
        #[source]
        cause: LaneClientError,
    },
    /// The members did not say what a restored purse has spent.
    #[error("the purse was copied or restored, and the validators did not answer what it has spent since")]
    Untold(#[source] LaneClientError),
    /// The purse made no such payment.
    #[error("the purse made no payment {0}")]
    NoPayment(String),
    /// Several payments begin with these digits.
    #[error("{0} matches several payments: write more digits")]
    Ambiguous(String),
    /// The receipt is of no use to this purse.
    #[error(transparent)]
    NotForUs(#[from] ReceiptFault),
}

/// Why a text is no receipt that can be read.
#[derive(Debug, thiserror::Error)]
pub enum SlipError {
    /// It begins with something else.
    #[error("a receipt begins with WALRAS:")]
    Prefix,
    /// It is too long.
    #[error("the text is longer than any receipt")]
    Long,
    /// It is not hexadecimal.
    #[error("a receipt is hexadecimal after WALRAS:")]
    Digits,
    /// It ends too early.
    #[error("the receipt ends too early")]
    Short,
    /// It has a number that is not known. A changed digit is likelier than a newer format.
    #[error(
        "its {name} is {number}, which is not known. The text is damaged: get the receipt again from the payer. If \
         theirs has the same first ten characters, it was made by a newer walras"
    )]
    Strange {
        /// What the number is.
        name: &'static str,
        /// The number.
        number: u8,
    },
    /// It is of another network.
    #[error("the receipt is of another network, {0}: open the purse of that network")]
    OtherNetwork(Digest),
    /// A deposit has impossible values.
    #[error("a deposit is damaged")]
    Deposit,
    /// The receipt in the file is no certificate of this lane.
    #[error(transparent)]
    Refused(#[from] LaneRefusal),
    /// The file has no line with a receipt.
    #[error("the file contains no receipt")]
    Empty,
    /// The file cannot be read.
    #[error(transparent)]
    Unread(#[from] io::Error),
}

/// Why a purse does not take a receipt.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptFault {
    /// It pays accounts of the ledger: its certificate is posted there.
    #[error("this receipt pays ledger accounts")]
    PaysAccounts,
    /// It does not hold.
    #[error("the receipt proves nothing: {0}")]
    Unproved(LaneRefusal),
    /// It proves no output.
    #[error("the receipt proves no output")]
    NoOutput,
    /// It pays somebody else.
    #[error("the receipt pays somebody else than this purse")]
    OtherOwner(Recipient),
    /// Its money cannot be spent any more.
    #[error("the receipt is of lane epoch {home}, and now is {now}: too late to spend it. Ask for a new payment")]
    Late {
        /// The home of its output.
        home: HomeEpoch,
        /// The present lane epoch.
        now: HomeEpoch,
    },
}

/// What somebody can do about a [`PurseError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurseRemedy {
    /// The error says it already, or its cause does.
    AsSaid,
    /// What its cause, an error of the light client, says.
    AsLightSays,
    /// Ask another node.
    AnotherNode,
    /// Ask a member of the lane.
    AMember,
    /// Try again later, or take the lane from a genesis file.
    Genesis,
    /// Choose another folder.
    OtherFolder,
    /// Make a purse.
    MakeOne,
    /// Name the chain's validators once.
    NameValidators,
    /// Learn whom a purse believes, and choose a newer start.
    NewStart,
    /// Pay under trees, which each lane epoch has keys for.
    Trees,
    /// Look at what can be spent.
    Look,
    /// Send the same bytes again; then contest.
    SendAgain,
    /// Post it to the ledger.
    Post,
}

impl PurseError {
    /// What to do.
    pub fn remedy(&self) -> PurseRemedy {
        match self {
            PurseError::Light(_) => PurseRemedy::AsLightSays,
            PurseError::OtherLane { .. }
            | PurseError::OtherKeys { .. }
            | PurseError::OtherBoard { .. }
            | PurseError::OtherValidators { .. }
            | PurseError::Unsigned { .. }
            | PurseError::OtherOutput { .. } => PurseRemedy::AnotherNode,
            PurseError::NoAddresses { .. } => PurseRemedy::AMember,
            PurseError::NothingSigned { .. } => PurseRemedy::Genesis,
            PurseError::Exists(_) => PurseRemedy::OtherFolder,
            PurseError::NoPurse(_) => PurseRemedy::MakeOne,
            PurseError::NoValidators => PurseRemedy::NameValidators,
            PurseError::Unproved(_) | PurseError::OldTrust(_) => PurseRemedy::NewStart,
            PurseError::Scheme(_) => PurseRemedy::Trees,
            PurseError::Missing { .. } | PurseError::NoPayment(_) => PurseRemedy::Look,
            PurseError::Unconfirmed { .. } => PurseRemedy::SendAgain,
            PurseError::NotForUs(ReceiptFault::PaysAccounts) => PurseRemedy::Post,
            _ => PurseRemedy::AsSaid,
        }
    }
}
