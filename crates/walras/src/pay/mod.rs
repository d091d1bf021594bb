//! `walras pay`: a purse for the payment lane. A deposit brings money from the ledger, a quorum's signatures move it
//! in one round trip, and a redemption returns it to the ledger.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use client::light::Pin;
use client::purse::{Asking, LaneNow, Purse, Seed, resolve_deposits};
use payments::AnswerScheme;
use primitives::Address;
use serde_json::json;

mod address;
mod advice;
pub mod audit;
mod deposit;
mod follow;
mod founded;
mod history;
mod home;
mod ledger_post;
mod qr;
mod receive;
mod repair;
mod send;
mod show;
mod trust;
mod watch;

use address::{Payee, address};
use advice::advised;
use deposit::deposit;
pub use follow::ListFile;
use founded::lane_of;
use home::{account_key, accounts, contest, redeem};
use receive::{receive, settle, verify};
use send::{Order, export, leave, send};

use crate::keystore::{self, Passphrase};
use crate::wallet::send::Sender;
use crate::wallet::server::Server;

/// What payments promise, and what they do not.
pub const PROMISES: &str = "\
What a payment promises:
  fast      A quorum of validators has signed it: no other payment of this money can be confirmed. It can lapse if the
            payer contests it and nobody settles or posts it for a lane epoch, and at a restart of the network if
            nobody shows its receipt in the time for claims.
  settled   A quorum has stored its certificate: it is final, also if the network restarts. Only the part that was paid
            from deposits made after the restart's snapshot goes back to their depositors.
  pending   It has no certificate yet: run `walras pay settle`. If it stays so, `walras pay contest` asks the ledger.

A restart of the network keeps settled payments. A fast one stands if its certificate is in a validator's log or in a
block, or if its receipt is shown to an operator in time (`walras pay export`). Afterwards run `walras pay follow`.

Contesting costs a fee for the validators' work, also if you are right. It must come before the middle of the second
lane epoch after the money's own. If more than a third of the validators fail, the case can expire: then the money
stays in escrow until the payment's receipt is shown, or the network restarts.

Whom you trust: the purse takes the validators' keys from the ledger only, with a proof that the chain's validators
have signed (`walras pay trust`). A purse needs a node for this, at --server; any node will do, and none can lie about
it. On a chain of one node there is no proof: there you trust that node.";

/// The location of the purse.
#[derive(Clone, clap::Args)]
pub struct PursePlace {
    /// The purse's folder.
    #[arg(long, value_name = "DIR", env = "WALRAS_PURSE", default_value = "walras-purse")]
    purse: PathBuf,
    /// File whose first line is the purse's passphrase; otherwise WALRAS_PASSPHRASE, otherwise a prompt.
    #[arg(long, value_name = "FILE")]
    purse_passphrase_file: Option<PathBuf>,
}

impl PursePlace {
    fn open(&self) -> anyhow::Result<Purse> {
        Ok(Purse::open(&self.purse)?)
    }

    /// Opens the seed of the purse.
    fn seed(&self, purse: &Purse) -> anyhow::Result<Seed> {
        Ok(purse.seed(&self.passphrase().known()?)?)
    }

    fn passphrase(&self) -> Passphrase {
        Passphrase::of(self.purse_passphrase_file.clone())
    }
}

/// Options of the access to the lane.
#[derive(Clone, clap::Args)]
pub struct Reach {
    #[command(flatten)]
    server: Server,
    /// How long to wait for a quorum, in seconds. A payment that is not confirmed by then is finished later.
    #[arg(long = "lane-patience", value_name = "SECONDS", default_value_t = 30)]
    lane_patience: u64,
}

impl Reach {
    fn patience(&self) -> Duration {
        Duration::from_secs(self.lane_patience)
    }
}

/// The keys with which validators sign a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scheme {
    /// The keys of shards, each in a tree over its answers: a certificate of some hundred bytes for each signer.
    Merkle,
    /// BLS keys: one aggregated signature of 48 bytes and a bitmap of its signers, if the lane epoch has such keys.
    Bls,
    /// Shares of the group key that the members made for the lane epoch, if they made one: 48 bytes.
    Threshold,
}

impl From<Scheme> for AnswerScheme {
    fn from(scheme: Scheme) -> AnswerScheme {
        match scheme {
            Scheme::Merkle => AnswerScheme::Tree,
            Scheme::Bls => AnswerScheme::Bls,
            Scheme::Threshold => AnswerScheme::Share,
        }
    }
}

/// Pays in the payment lane: a quorum confirms in one round trip.
#[derive(clap::Subcommand)]
pub enum Pay {
    /// Make a purse for the lane of a node, or of a genesis file.
    #[command(after_help = "Examples:
  walras pay new                                     # for the lane of the node at 127.0.0.1:8080
  walras pay new --purse alice --genesis exchange/genesis.json")]
    New {
        /// Take network and keys from this genesis file instead of from the node.
        #[arg(long, value_name = "FILE")]
        genesis: Option<PathBuf>,
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        server: Server,
    },
    /// Print a new lane address of this purse. With an amount it is a bill: an address that asks for the amount.
    #[command(after_help = "Examples:\n  walras pay address --purse bob
  walras pay address --purse bob --asset EUR --amount 12.50")]
    Address {
        /// The asset that it asks for.
        #[arg(long, requires = "amount")]
        asset: Option<String>,
        /// The amount that it asks for, in whole assets.
        #[arg(long, requires = "asset")]
        amount: Option<String>,
        #[command(flatten)]
        place: PursePlace,
    },
    /// Move money from a ledger account into the purse.
    #[command(after_help = "Example:\n  walras pay deposit --key alice.json --asset EUR --amount 100")]
    Deposit {
        /// The asset.
        #[arg(long)]
        asset: String,
        /// Amount, in whole assets.
        #[arg(long)]
        amount: String,
        #[command(flatten)]
        sender: Sender,
        #[command(flatten)]
        place: PursePlace,
    },
    /// Show the purse's money: settled, fast and pending.
    #[command(after_help = "Example:\n  walras pay balance")]
    Balance {
        /// Do not ask a node. Money that can only be returned to the ledger is then not shown separately.
        #[arg(long)]
        offline: bool,
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        server: Server,
    },
    /// List the purse's deposits, receipts and payments, oldest first, with their recipients and states. Payments
    /// that can have no further effect are forgotten with `walras pay settle`.
    #[command(after_help = "Example:\n  walras pay history --purse alice")]
    History {
        #[command(flatten)]
        place: PursePlace,
    },
    /// Pay a lane address, or a ledger account.
    ///
    /// The payment is fast after one round trip, and settled after a second one, unless --no-settle is given. Give the
    /// recipient the receipt: without it they have nothing.
    #[command(after_help = "Examples:
  walras pay send --to lane:5b01… --asset EUR --amount 12.50 --receipt coffee.txt
  walras pay send --to 0x53e0… --asset EUR --amount 12.50    # to an account: redeem the receipt afterwards
  walras pay send --to lane:5b01… --asset EUR --amount 12.50 --scheme bls    # a short receipt")]
    Send {
        /// A lane address, as `walras pay address` prints it, or an account of the ledger.
        #[arg(long)]
        to: Payee,
        /// The asset, unless the address asks for an amount.
        #[arg(long, requires = "amount")]
        asset: Option<String>,
        /// Amount, in whole assets.
        #[arg(long, requires = "asset")]
        amount: Option<String>,
        /// New file for the receipt, which the recipient needs; otherwise receipt-….txt here. Nothing is paid if it
        /// cannot be written, and no file is overwritten.
        #[arg(long, value_name = "FILE")]
        receipt: Option<PathBuf>,
        /// Leave settling to the recipient.
        #[arg(long)]
        no_settle: bool,
        /// The keys with which validators sign it.
        #[arg(long, value_enum, default_value_t = Scheme::Merkle)]
        scheme: Scheme,
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        reach: Reach,
    },
    /// Check a receipt and take its money into the purse.
    ///
    /// It settles the payment, which makes it final. With --no-settle the payment is only fast: the payer can contest
    /// it, and then it lapses unless you settle it within a lane epoch.
    #[command(after_help = "Example:\n  walras pay receive coffee.txt --purse bob")]
    Receive {
        /// File with receipts.
        file: PathBuf,
        /// Only check and keep it; settle later.
        #[arg(long)]
        no_settle: bool,
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        reach: Reach,
    },
    /// Finish and settle everything, and renew money that can be spent for the last time in this epoch.
    ///
    /// Money can be spent in its own lane epoch and the next one. In the epoch after that it can only go to the ledger
    /// account of its key, and after that it stays in escrow. `walras pay leave` gives this work to a watcher.
    #[command(after_help = "Example:\n  walras pay settle       # run it at least once in each lane epoch")]
    Settle {
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        reach: Reach,
    },
    /// Check a receipt offline, with only the keys of the lane. This proves that the payment is fast, not that it is
    /// settled.
    #[command(after_help = "Examples:
  walras pay verify coffee.txt --purse bob
  walras pay verify coffee.txt --genesis exchange/genesis.json")]
    Verify {
        /// File with receipts.
        file: PathBuf,
        /// Take network and keys from this genesis file instead of from the purse.
        #[arg(long, value_name = "FILE")]
        genesis: Option<PathBuf>,
        #[command(flatten)]
        place: PursePlace,
    },
    /// Write the receipts of one of the purse's payments again: to a file, and as QR codes in the terminal.
    #[command(after_help = "Examples:
  walras pay export 0x6e0b12 --qr
  walras pay export 0x6e0b12 --file coffee.txt")]
    Export {
        /// The payment's digest, or its first digits.
        payment: String,
        /// New file to write; otherwise standard output.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Draw QR codes.
        #[arg(long)]
        qr: bool,
        #[command(flatten)]
        place: PursePlace,
    },
    /// Move money back to a ledger account, or post receipts of payments to accounts.
    #[command(after_help = "Examples:
  walras pay redeem --key alice.json --asset EUR --amount 50    # to the key's account
  walras pay redeem --key bob.json coffee.txt                   # the amounts that a receipt pays to accounts
  walras pay redeem --key alice.json                            # the rest of an earlier command")]
    Redeem {
        /// Files with receipts of payments to accounts.
        files: Vec<PathBuf>,
        /// The asset.
        #[arg(long, requires = "amount")]
        asset: Option<String>,
        /// Amount, in whole assets.
        #[arg(long, requires = "asset")]
        amount: Option<String>,
        #[command(flatten)]
        sender: Sender,
        #[command(flatten)]
        place: PursePlace,
        /// How long to wait for a quorum, in seconds.
        #[arg(long = "lane-patience", value_name = "SECONDS", default_value_t = 30)]
        lane_patience: u64,
        /// The keys with which validators sign a new payment.
        #[arg(long, value_enum, default_value_t = Scheme::Merkle)]
        scheme: Scheme,
    },
    /// Contest the money of a payment that is stuck: the ledger decides whether the payment is valid or the money
    /// returns to the account of its key. It costs a fee for the work, also if you are right.
    ///
    /// All inputs of the payment are contested together. The fee is at least `case_deposit` of the lane for each of
    /// them (`/v1/lane`), from the account of --key. Of an expired case the unused part returns. A payment with a
    /// certificate cannot be contested. Contest before the middle of the second lane epoch after the money's own.
    #[command(after_help = "Example:\n  walras pay contest 0x6e0b12 --key alice.json")]
    Contest {
        /// The payment's digest, or its first digits.
        payment: String,
        #[command(flatten)]
        sender: Sender,
        #[command(flatten)]
        place: PursePlace,
    },
    /// Remove from the purse what nothing verifies, and ask the validators what it has spent: for a purse that a lying
    /// node led astray.
    #[command(after_help = "Example:\n  walras pay repair --purse alice")]
    Repair {
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        reach: Reach,
    },
    /// Show whom the purse believes about the ledger, or choose it anew.
    ///
    /// A purse takes the lane's keys only with a proof that the chain's validators have signed, starting from those of
    /// the genesis file or of the node with which it was made. The signatures of the lane's registrars alone are not
    /// enough: a registrar can sign two lists. Where validators change, the purse follows them at each use. After more
    /// than seven days without one, or after many changes, it needs a new start.
    #[command(after_help = "Examples:
  walras pay trust                                   # the newest validators, with a fingerprint to compare
  walras pay trust --genesis exchange/genesis.json   # start from the founders
  walras pay trust --pin 1200:0x6e0b…                # from what `walras light pin` printed for somebody you trust
  walras pay trust --own-node                        # from what your own node shows")]
    Trust {
        /// Start from the validators of this genesis file, from somebody you trust.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["pin", "own_node"])]
        genesis: Option<PathBuf>,
        /// Start from the validators of this state, which somebody you trust named.
        #[arg(long, value_name = "HEIGHT:DIGEST", conflicts_with = "own_node", value_parser = crate::light::pin)]
        pin: Option<Pin>,
        /// You run this node: start from the newest validators that it shows, without a proof.
        #[arg(long)]
        own_node: bool,
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        server: Server,
    },
    /// Follow the network over a restart: take what the agreed list carries over for the purse's keys.
    ///
    /// Settled money is on the list, and fast money whose certificate was found or shown. Pending payments are not;
    /// their inputs are. What was deposited after the snapshot is on the ledger again, at its depositor's account.
    /// Receipts of before are kept in a folder of their own, since they are evidence.
    #[command(after_help = "Example:
  walras pay follow --list lane-list.json --genesis genesis.json    # both from the new home of an operator")]
    Follow {
        /// The list that the operators agreed on: the file `lane-list.json` of a restarted home.
        #[arg(long, value_name = "FILE")]
        list: PathBuf,
        /// Take network and keys from this genesis file of the restarted network instead of from the node.
        #[arg(long, value_name = "FILE")]
        genesis: Option<PathBuf>,
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        server: Server,
    },
    /// Leave receipts of all the purse's money for a watcher (`walras pay watch`), which needs no key.
    #[command(after_help = "Example:\n  walras pay leave watched")]
    Leave {
        /// The watcher's folder.
        folder: PathBuf,
        #[command(flatten)]
        place: PursePlace,
    },
    /// List the ledger accounts to which money of this purse was returned, by this purse or by a watcher.
    #[command(after_help = "Example:\n  walras pay accounts")]
    Accounts {
        #[command(flatten)]
        place: PursePlace,
        #[command(flatten)]
        server: Server,
    },
    /// Write the key of an account to which money of this purse was returned, for `walras wallet`.
    #[command(after_help = "Example:\n  walras pay account-key 0x53e0… --out home.json")]
    AccountKey {
        /// The account.
        account: Address,
        /// Key file to write, encrypted with the purse's passphrase.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        place: PursePlace,
    },
    /// Settle receipts and return money of the lane to the ledger for wallets that are offline.
    Watch(watch::Watch),
    /// Prove that no money of the payment lane is lost or created.
    Audit(audit::LaneAudit),
}

impl Pay {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        self.done(json).map_err(advised)
    }

    fn done(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            Pay::New { genesis, place, server } => new(json, genesis, &place, &server),
            Pay::Address { asset, amount, place } => address(json, asset.zip(amount), &place),
            Pay::Deposit { asset, amount, sender, place } => deposit(json, &asset, &amount, &sender, &place),
            Pay::Balance { offline, place, server } => balance(json, offline, &place, &server),
            Pay::History { place } => history::history(json, &place),
            Pay::Send { to, asset, amount, receipt, no_settle, scheme, place, reach } => {
                let order = Order { to, given: asset.zip(amount), receipt, settles: !no_settle, scheme };
                send(json, &order, &place, &reach)
            }
            Pay::Receive { file, no_settle, place, reach } => receive(json, &file, !no_settle, &place, &reach),
            Pay::Settle { place, reach } => settle(json, &place, &reach),
            Pay::Verify { file, genesis, place } => verify(json, &file, genesis, &place),
            Pay::Export { payment, file, qr, place } => export(json, &payment, file, qr, &place),
            Pay::Redeem { files, asset, amount, sender, place, lane_patience, scheme } => {
                let asking = Asking { patience: Duration::from_secs(lane_patience), scheme: scheme.into() };
                redeem(json, &files, asset.zip(amount), &sender, &place, asking)
            }
            Pay::Contest { payment, sender, place } => contest(json, &payment, &sender, &place),
            Pay::Repair { place, reach } => repair::repair(json, &place, &reach),
            Pay::Trust { genesis, pin, own_node, place, server } => {
                trust::trust(json, trust::Start::of(genesis, pin, own_node), &place, &server)
            }
            Pay::Follow { list, genesis, place, server } => {
                follow::follow(json, genesis.as_deref(), &list, &place, &server)
            }
            Pay::Leave { folder, place } => leave(json, &folder, &place),
            Pay::Accounts { place, server } => accounts(json, &place, &server),
            Pay::AccountKey { account, out, place } => account_key(json, &account, &out, &place),
            Pay::Watch(watch) => watch.run(json),
            Pay::Audit(audit) => audit.run(json),
        }
    }
}

fn new(json: bool, genesis: Option<PathBuf>, place: &PursePlace, server: &Server) -> anyhow::Result<ExitCode> {
    let network = lane_of(genesis.as_deref(), server)?;
    Purse::create(&place.purse, &network, |seed| keystore::create(seed, &place.passphrase()).map(drop))?;
    let (fingerprint, purse) = (network.fingerprint(), place.purse.display());
    if json {
        println!(
            "{}",
            json!({"purse": place.purse, "network": network.id.to_string(), "fingerprint": fingerprint,
                "validators": network.members.len()})
        );
    } else {
        println!("Purse        {purse}");
        println!("Network      {}", network.id);
        println!("Fingerprint  {fingerprint} of {} validators' keys", network.members.len());
        println!("Compare the fingerprint with somebody you trust. The purse trusts these keys from now on.");
        if network.ledger.changes() {
            println!("The chain's validators change: `walras pay trust` prints their fingerprint, to compare as well.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn balance(json: bool, offline: bool, place: &PursePlace, server: &Server) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let now = match offline {
        true => None,
        false => {
            let now = LaneNow::ask(&server.node(), &purse.network).context("to work without a node, add --offline")?;
            resolve_deposits(&purse, &server.node(), Duration::ZERO)?;
            Some(now.epoch)
        }
    };
    show::balance(&purse, now, json)?;
    Ok(ExitCode::SUCCESS)
}
