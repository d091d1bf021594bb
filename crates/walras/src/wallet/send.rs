//! Sends a transaction so that it is never lost track of: its id is printed and the transaction stored before it is
//! sent; waiting is visible and bounded; it can be sent again unchanged.
//!
//! Its sequence number is above those of all transactions that the node knows and that are stored here. If another
//! wallet with the same key was faster and used the number, the operation is signed again under another one: the first
//! transaction can never take effect.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use primitives::{
    Address, Body, Digest, Height, Operation, SecretKey, Sequence, Transaction, TransactionId, UNTIL_USUAL,
};

use super::fate::Fate;
use super::pending::Pending;
use super::reservation::{Pin, Reservation};
use super::server::{Answered, Assets, Server, text};
use crate::keystore::{self, Passphrase};

/// Maximum wait for a node that lags, before anything is signed.
const LAG_PATIENCE: Duration = Duration::from_secs(30);
/// The first pause between two queries, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// Waiting is reported after the first time, then at the second interval.
const TELL: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));

/// How often an operation is signed under another number because its number was used meanwhile.
const RENUMBERED_MAX: u32 = 20;
/// A node's codes for a number that another transaction has.
const NUMBER_TAKEN: [&str; 3] = ["sequence_used", "sequence_conflict", "sequence_too_old"];

/// The sender and its options.
#[derive(clap::Args, Clone)]
pub struct Sender {
    /// The key file.
    #[arg(long)]
    pub(super) key: PathBuf,
    /// The account, if the key was not made for it.
    #[arg(long)]
    account: Option<Address>,
    /// Sequence number, if not the next free one.
    #[arg(long)]
    sequence: Option<Sequence>,
    /// The last height at which it may count; by default 256 after the node's.
    #[arg(long, value_name = "HEIGHT")]
    until: Option<Height>,
    /// Send although the same operation was sent before and its result is unknown.
    #[arg(long)]
    again: bool,
    /// Identity of the network to sign for; by default the network that the key signed for before.
    #[arg(long, value_name = "DIGEST")]
    network: Option<Digest>,
    #[command(flatten)]
    pub(super) passphrase: Passphrase,
    #[command(flatten)]
    delivery: Delivery,
}

/// Where to send, and how long to wait.
#[derive(clap::Args, Clone)]
pub struct Delivery {
    /// Return once the transaction is pending, without waiting for its block.
    #[arg(long)]
    no_wait: bool,
    /// How long to wait for the block, in seconds; after that, exit with 3.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, conflicts_with = "no_wait")]
    patience: u64,
    #[command(flatten)]
    server: Server,
}

impl Sender {
    /// Makes a transaction of an operation, signs it and delivers it.
    pub(super) fn send(
        self,
        json: bool,
        operation: impl FnOnce(&Server, &Address, &Assets) -> anyhow::Result<Operation>,
    ) -> anyhow::Result<ExitCode> {
        let signer = self.signer()?;
        let operation = operation(&self.delivery.server, &signer.account, &signer.assets)?;
        let (id, fate) = self.submit(json, &signer, &operation)?;
        Ok(self.delivery.report(json, &id, &fate, &signer.assets))
    }

    /// Signs an operation, delivers it and returns its fate. If another wallet takes its number first, it is signed
    /// again under another one.
    pub fn submit(
        &self,
        json: bool,
        signer: &Signatory,
        operation: &Operation,
    ) -> anyhow::Result<(TransactionId, Fate)> {
        let pending = Pending::of(&self.key);
        for _ in 0..RENUMBERED_MAX {
            let transaction = self.sign_numbered(signer, operation.clone())?;
            match self.delivery.outcome(json, &transaction, &pending) {
                Err(NotSent::NumberTaken(error)) if self.sequence.is_none() => {
                    eprintln!("{error}; signed again under another number");
                }
                Err(NotSent::NumberTaken(error) | NotSent::Other(error)) => return Err(error),
                Ok(fate) => return Ok((transaction.id(), fate)),
            }
        }
        bail!("others that use this account take every number first; nothing was done. Try again later")
    }

    /// The node to talk to.
    pub fn server(&self) -> &Server {
        &self.delivery.server
    }

    /// The account that sends.
    pub fn account(&self) -> anyhow::Result<Address> {
        self.account.map_or_else(|| keystore::address(&self.key), Ok)
    }

    /// Whether to send although the same operation was sent before.
    pub fn is_again(&self) -> bool {
        self.again
    }

    /// Delivers a transaction that [`Sender::sign`] made and returns its fate.
    pub fn commit(&self, json: bool, transaction: &Transaction) -> anyhow::Result<Fate> {
        self.delivery.outcome(json, transaction, &Pending::of(&self.key)).map_err(NotSent::into_error)
    }

    /// Makes a transaction of an operation, signs it and stores it.
    pub fn sign(
        &self,
        operation: impl FnOnce(&Server, &Address, &Assets) -> anyhow::Result<Operation>,
    ) -> anyhow::Result<(Transaction, Assets)> {
        let signer = self.signer()?;
        let operation = operation(&self.delivery.server, &signer.account, &signer.assets)?;
        let transaction = self.sign_numbered(&signer, operation)?;
        Ok((transaction, signer.assets))
    }

    /// What signing needs, from the key file and the node.
    pub fn signer(&self) -> anyhow::Result<Signatory> {
        let server = &self.delivery.server;
        let (chain, network) = server.chain()?;
        Pin::of(&self.key).check(&network, self.network, &server.url)?;
        let (account, assets) = (self.account()?, server.assets()?);
        Ok(Signatory { chain, network, account, assets, key: keystore::open(&self.key, &self.passphrase)? })
    }

    /// Signs an operation under a free number, and stores it.
    fn sign_numbered(&self, signer: &Signatory, operation: Operation) -> anyhow::Result<Transaction> {
        let (server, pending, account) = (&self.delivery.server, Pending::of(&self.key), signer.account);
        let _reservation = Reservation::wait(&self.key)?;
        // The node is asked after the stored ones are read: what is no longer stored then, it has counted.
        let (stored, same) = stored(&pending, server, &account, &operation)?;
        if let Some(id) = same.filter(|_| !self.again) {
            bail!(
                "the same operation was sent before as {id}, and its result is unknown: `walras wallet status {id}` \
                 shows it, `walras wallet retry {id} --key {}` sends it again unchanged. To do it twice, add --again",
                self.key.display()
            );
        }
        let sequence = match self.sequence {
            Some(sequence) => sequence,
            None => next_sequence(server, &account, stored)?,
        };
        let Signatory { chain, network, key, .. } = signer;
        let until = match self.until {
            Some(until) => until,
            None => server.height()?.saturating_add(UNTIL_USUAL),
        };
        let transaction = Body { chain: *chain, account, sequence, until, operation }.sign(network, key);
        pending.keep(&transaction)?;
        Ok(transaction)
    }
}

/// What signing needs.
pub struct Signatory {
    chain: u64,
    network: Digest,
    account: Address,
    pub(crate) assets: Assets,
    key: SecretKey,
}

/// A number above those that the node knows of an account, and above the highest stored one if that is in the window.
fn next_sequence(server: &Server, account: &Address, stored: Option<Sequence>) -> anyhow::Result<Sequence> {
    server.wait_until_caught_up()?;
    let state = server.get(&format!("/v1/accounts/{account}"))?;
    let number = |name: &str| text(&state["sequence"][name]).parse::<Sequence>();
    let (highest, next) = number("highest")
        .and_then(|highest| Ok((highest, number("next")?)))
        .context("the node returns no next sequence number")?;
    let above = stored.map_or(0, |stored| stored.saturating_add(1));
    let fits = above <= highest.saturating_add(ledger::SEQUENCE_WINDOW);
    Ok(if fits { next.max(above) } else { next })
}

/// The highest number of an account's stored transactions, and one of the same operation, if there is one. Those with a
/// known result are removed.
fn stored(
    pending: &Pending,
    server: &Server,
    account: &Address,
    operation: &Operation,
) -> anyhow::Result<(Option<Sequence>, Option<TransactionId>)> {
    let (mut highest, mut same) = (None, None);
    for kept in pending.all()?.into_iter().filter(|kept| kept.body.account == *account) {
        let id = kept.id();
        if Fate::of(server, &id)?.is_final() {
            pending.forget(&id);
            continue;
        }
        highest = highest.max(Some(kept.body.sequence));
        if kept.body.operation == *operation {
            same = Some(id);
        }
    }
    Ok((highest, same))
}

/// Sends a stored transaction again.
pub(super) fn retry(
    json: bool,
    key: &std::path::Path,
    id: &TransactionId,
    delivery: &Delivery,
) -> anyhow::Result<ExitCode> {
    let pending = Pending::of(key);
    let kept = pending.get(id)?.with_context(|| {
        format!("no transaction {id} is stored beside {}: its result is known, or another key made it", key.display())
    })?;
    delivery.deliver(json, &kept, &pending, &delivery.server.assets()?)
}

/// Prints what a node knows about a transaction.
pub(super) fn status(json: bool, id: &TransactionId, server: &Server) -> anyhow::Result<ExitCode> {
    Ok(Fate::of(server, id)?.print(json, id, &server.assets()?))
}

impl Delivery {
    /// Prints the id, sends, waits, and prints the result.
    fn deliver(
        &self,
        json: bool,
        transaction: &Transaction,
        pending: &Pending,
        assets: &Assets,
    ) -> anyhow::Result<ExitCode> {
        let fate = self.outcome(json, transaction, pending).map_err(NotSent::into_error)?;
        Ok(self.report(json, &transaction.id(), &fate, assets))
    }

    /// Prints the result; the exit code reports the same.
    fn report(&self, json: bool, id: &TransactionId, fate: &Fate, assets: &Assets) -> ExitCode {
        let code = fate.print(json, id, assets);
        if self.no_wait && matches!(fate, Fate::Waiting(_)) { ExitCode::SUCCESS } else { code }
    }

    /// Prints the id, sends and waits.
    fn outcome(&self, json: bool, transaction: &Transaction, pending: &Pending) -> Result<Fate, NotSent> {
        let id = transaction.id();
        if json {
            eprintln!("transaction {id}");
        } else {
            println!("transaction {id}");
        }
        let fate = match self.post(transaction) {
            Ok(()) if self.no_wait => Fate::Waiting(None),
            Ok(()) => self.follow(transaction),
            Err(Sent::Refused(code, error)) => {
                pending.forget(&id);
                let is_taken = NUMBER_TAKEN.contains(&code.as_str());
                return Err(if is_taken { NotSent::NumberTaken(error) } else { NotSent::Other(error) });
            }
            Err(Sent::Unknown(reason)) => Fate::Unknown(Some(reason)),
        };
        if fate.is_final() {
            pending.forget(&id);
        }
        Ok(fate)
    }

    fn post(&self, transaction: &Transaction) -> Result<(), Sent> {
        let bytes = borsh::to_vec(transaction).map_err(|error| Sent::Refused(String::new(), error.into()))?;
        match self.server.post("/v1/transactions", &bytes) {
            Err(error) => Err(Sent::Unknown(format!("{error:#}"))),
            Ok(Answered { status: 200..=299, .. }) => Ok(()),
            // A node that is stopping may have accepted it.
            Ok(Answered { status: 500.., body }) if body["error"]["code"] != "follows" => {
                Err(Sent::Unknown(text(&body["error"]["message"]).into()))
            }
            Ok(answered) => {
                let code = text(&answered.body["error"]["code"]).to_string();
                let error = answered.sound().err().unwrap_or_else(|| anyhow!("the node's answer is no error"));
                Err(Sent::Refused(code, error))
            }
        }
    }

    /// Waits for the result, up to the patience. Sends the transaction again to a node that has lost it.
    fn follow(&self, transaction: &Transaction) -> Fate {
        let (id, begun, patience) = (transaction.id(), Instant::now(), Duration::from_secs(self.patience));
        let (mut pause, mut tell) = (PAUSES.0, TELL.0);
        loop {
            let fate = Fate::of(&self.server, &id).unwrap_or_else(|error| Fate::Unknown(Some(format!("{error:#}"))));
            if fate.is_final() || begun.elapsed() >= patience {
                return fate;
            }
            if matches!(fate, Fate::Unknown(None)) {
                // The effect of the answer is seen in the next query.
                let _ = self.post(transaction);
            }
            if begun.elapsed() >= tell {
                print_waiting(begun.elapsed(), &fate);
                tell = begun.elapsed() + TELL.1;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

/// Why there is no fate: the node rejected the transaction.
enum NotSent {
    /// Another transaction has its number.
    NumberTaken(anyhow::Error),
    Other(anyhow::Error),
}

impl NotSent {
    fn into_error(self) -> anyhow::Error {
        match self {
            NotSent::NumberTaken(error) | NotSent::Other(error) => error,
        }
    }
}

/// The reason why sending failed.
enum Sent {
    /// The node rejected it, with this code.
    Refused(String, anyhow::Error),
    /// It is unknown whether the node accepted it.
    Unknown(String),
}

fn print_waiting(waited: Duration, fate: &Fate) {
    let reason = match fate {
        Fate::Waiting(Some(reason)) | Fate::Unknown(Some(reason)) => reason,
        Fate::Unknown(None) => "the node has lost it; it is sent again",
        _ => "for a block",
    };
    eprintln!("waiting {} s: {reason}", waited.as_secs());
}

impl Server {
    /// Waits while the node lags behind the others or has just started: its sequence numbers of an account may be out
    /// of date, and a transaction that repeats a committed one would seem to be committed. Does not wait out a stall
    /// in which the validators that the node cannot reach are too few to continue without the others.
    fn wait_until_caught_up(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut tell = TELL.0;
        loop {
            let Some((code, message)) = self.unready()? else { return Ok(()) };
            if code == "no_quorum" && self.others_stall_too()? {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < LAG_PATIENCE,
                "the node has not caught up ({message}), and may return a used sequence number. Nothing was \
                 sent. Try again later, give another --server, or the number with --sequence"
            );
            if begun.elapsed() >= tell {
                eprintln!("waiting {} s, nothing is sent yet: {message}", begun.elapsed().as_secs());
                tell = begun.elapsed() + TELL.1;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Whether the validators that the node cannot reach are too few to decide anything.
    fn others_stall_too(&self) -> anyhow::Result<bool> {
        let status = self.get("/v1/validator")?;
        let number = |name: &str| status[name].as_u64().with_context(|| format!("the node returns no {name}"));
        let seen = number("connected")? + u64::from(status["follows"] == false);
        Ok(number("validators")?.saturating_sub(seen) < number("needed")?)
    }
}
