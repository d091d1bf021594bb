//! Sends operations: who sends, how it is numbered, where it goes, and what a person sees meanwhile.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
pub use client::wallet::Signatory;
use client::wallet::{Numbering, Pending, Progress, SealedSent, Wallet};
use client::{Assets, ClientError, OrderError, OrderForms};
use primitives::{Address, Digest, Height, Operation, Sequence, Transaction, TransactionId};

use super::report::{self, Fate};
use super::server::Server;
use crate::keystore::{self, Passphrase};

/// The sender and its options.
#[derive(clap::Args, Clone)]
pub struct Sender {
    /// The key file. With --session it only names the account.
    #[arg(long, required_unless_present = "session")]
    key: Option<PathBuf>,
    /// Key file of a session key of the account, which signs instead of the account's own key.
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
    /// The account, if the key was not made for it.
    #[arg(long, required_unless_present = "key")]
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
    pub fn send(
        self,
        json: bool,
        operation: impl FnOnce(&Server, &Address, &Assets) -> anyhow::Result<Operation>,
    ) -> anyhow::Result<ExitCode> {
        let signatory = self.signer()?;
        let operation = operation(&self.delivery.server, &signatory.account, &signatory.assets)?;
        let (id, fate) = self.submit(json, &signatory, &operation)?;
        Ok(self.delivery.report(json, &id, &fate, &signatory.assets))
    }

    /// Places an order: what the next batch would fill whole as an exact order, and what it does not fill as an offer.
    pub fn place(
        self,
        json: bool,
        forms: impl FnOnce(&Assets) -> Result<OrderForms, OrderError>,
    ) -> anyhow::Result<ExitCode> {
        let signatory = self.signer()?;
        let (forms, node) = (forms(&signatory.assets)?, self.delivery.server.node());
        // What an earlier call has sent without a result stands for the order.
        let kept = if self.again { None } else { self.wallet().kept(&signatory, |one| forms.contains(one))? };
        let mut operation = match (kept, &forms.exact) {
            (Some(kept), _) => kept,
            (None, Some(exact)) if forms.is_filled_at_once(&node)? => exact.clone(),
            (None, _) => forms.offer.clone(),
        };
        let (mut id, mut fate) = self.submit(json, &signatory, &operation)?;
        if report::is_unfilled_order(&fate) {
            eprintln!(
                "there was no room for an exact order: it goes as an offer at the price that the batch would charge"
            );
            operation = forms.tightened(&node)?;
            (id, fate) = self.submit(json, &signatory, &operation)?;
        }
        Ok(self.delivery.report(json, &id, &fate, &signatory.assets))
    }

    /// Signs an operation, delivers it and returns its fate. If another wallet takes its number first, it is signed
    /// again under another one.
    pub fn submit(
        &self,
        json: bool,
        signatory: &Signatory,
        operation: &Operation,
    ) -> anyhow::Result<(TransactionId, Fate)> {
        let sent = self.wallet().send(signatory, operation, &mut |progress| tell(json, &progress));
        sent.map_err(|error| self.explained(error))
    }

    /// Seals an operation, delivers its envelope and returns what became of both.
    pub fn send_sealed(
        &self,
        json: bool,
        trader: &Signatory,
        payer: Option<&(Wallet, Signatory)>,
        operation: &Operation,
    ) -> anyhow::Result<SealedSent> {
        let payer = payer.map(|(wallet, signatory)| (wallet, signatory));
        let operations = std::slice::from_ref(operation);
        let sent = self.wallet().send_sealed(trader, payer, operations, &mut |progress| tell(json, &progress));
        sent.map_err(|error| self.explained(error))
    }

    /// Whoever pays for envelopes, by its key file.
    pub fn payer(&self, key: PathBuf, passphrase: Option<Passphrase>) -> anyhow::Result<(Wallet, Signatory)> {
        let wallet = self.delivery.wallet(&key);
        let passphrase = passphrase.unwrap_or_else(|| self.passphrase.clone());
        let open = || keystore::open(&key, &passphrase);
        let signatory = wallet.signatory(keystore::address(&key)?, self.network, open)?;
        Ok((wallet, signatory))
    }

    /// Prints the result; the exit code reports the same.
    pub fn report(&self, json: bool, id: &TransactionId, fate: &Fate, assets: &Assets) -> ExitCode {
        self.delivery.report(json, id, fate, assets)
    }

    /// The node to talk to.
    pub fn server(&self) -> &Server {
        &self.delivery.server
    }

    /// The account that sends.
    pub fn account(&self) -> anyhow::Result<Address> {
        match self.account {
            Some(account) => Ok(account),
            None => Ok(keystore::address(self.key.as_ref().context("--key or --account names the account")?)?),
        }
    }

    /// The key file that signs.
    pub fn key_file(&self) -> &Path {
        self.session.as_ref().or(self.key.as_ref()).expect("the command line has one of them")
    }

    /// Whether to send although the same operation was sent before.
    pub fn is_again(&self) -> bool {
        self.again
    }

    /// Delivers a transaction that [`Sender::sign`] made and returns its fate.
    pub fn commit(&self, json: bool, transaction: &Transaction) -> anyhow::Result<Fate> {
        Ok(self.wallet().deliver(transaction, &mut |progress| tell(json, &progress))?)
    }

    /// Makes a transaction of an operation, signs it and stores it.
    pub fn sign(
        &self,
        operation: impl FnOnce(&Server, &Address, &Assets) -> anyhow::Result<Operation>,
    ) -> anyhow::Result<(Transaction, Assets)> {
        let signatory = self.signer()?;
        let operation = operation(&self.delivery.server, &signatory.account, &signatory.assets)?;
        let signed = self.wallet().sign(&signatory, operation, &mut |progress| tell(true, &progress));
        Ok((signed.map_err(|error| self.explained(error))?, signatory.assets))
    }

    /// What signing needs, from the key file and the node.
    pub fn signer(&self) -> anyhow::Result<Signatory> {
        let open = || keystore::open(self.key_file(), &self.passphrase);
        match self.session {
            None => self.wallet().signatory(self.account()?, self.network, open),
            Some(_) => self.wallet().session_signatory(self.account()?, self.network, open),
        }
    }

    fn wallet(&self) -> Wallet {
        let Sender { sequence, until, again, .. } = *self;
        Wallet { numbering: Numbering { sequence, until, again }, ..self.delivery.wallet(self.key_file()) }
    }

    /// An error with the commands that help.
    fn explained(&self, error: ClientError) -> anyhow::Error {
        match error {
            ClientError::SentBefore(id) => anyhow!(
                "the same operation was sent before as {id}, and its result is unknown: `walras wallet status {id}` \
                 shows it, `walras wallet retry {id} --key {}` sends it again unchanged. To do it twice, add --again",
                self.key_file().display()
            ),
            other => other.into(),
        }
    }
}

/// Sends a stored transaction again.
pub(super) fn retry(json: bool, key: &Path, id: &TransactionId, delivery: &Delivery) -> anyhow::Result<ExitCode> {
    let kept = Pending::of(key).get(id)?.with_context(|| {
        format!("no transaction {id} is stored beside {}: its result is known, or another key made it", key.display())
    })?;
    let wallet = delivery.wallet(key);
    let assets = wallet.node.assets()?;
    let fate = wallet.deliver(&kept, &mut |progress| tell(json, &progress))?;
    Ok(delivery.report(json, id, &fate, &assets))
}

/// Prints what a node knows about a transaction.
pub(super) fn status(json: bool, id: &TransactionId, server: &Server) -> anyhow::Result<ExitCode> {
    let node = server.node();
    Ok(report::print(&Fate::of(&node, id)?, json, id, &node.assets()?))
}

impl Delivery {
    fn wallet(&self, key: &Path) -> Wallet {
        let patience = if self.no_wait { Duration::ZERO } else { Duration::from_secs(self.patience) };
        Wallet { node: self.server.node(), key_file: key.into(), numbering: Numbering::default(), patience }
    }

    /// Prints the result; the exit code reports the same.
    fn report(&self, json: bool, id: &TransactionId, fate: &Fate, assets: &Assets) -> ExitCode {
        let code = report::print(fate, json, id, assets);
        if self.no_wait && matches!(fate, Fate::Waiting(_)) { ExitCode::SUCCESS } else { code }
    }
}

/// Prints what happens meanwhile.
fn tell(json: bool, progress: &Progress) {
    match progress {
        Progress::Sending(id) if json => eprintln!("transaction {id}"),
        Progress::Sending(id) => println!("transaction {id}"),
        Progress::Renumbered(error) => eprintln!("{error}; signed again under another number"),
        Progress::Lagging(waited, reason) => {
            eprintln!("waiting {} s, nothing is sent yet: {reason}", waited.as_secs());
        }
        Progress::Waiting(waited, fate) => {
            let reason = match fate {
                Fate::Waiting(Some(reason)) | Fate::Unknown(Some(reason)) => reason,
                Fate::Unknown(None) => "the node has lost it; it is sent again",
                _ => "for a block",
            };
            eprintln!("waiting {} s: {reason}", waited.as_secs());
        }
    }
}
