//! `walras wallet`: keys, operations, balances, and the fate of transactions.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use primitives::{
    Address, Amount, AssetId, Evidence, Operation, PublicKey, Reference, ReferenceKind, ReferenceRule, Stake,
    TransactionId,
};

use crate::decimal::to_units;
use crate::keystore::{self, Passphrase};
use crate::validator_keys::with_link_key;
use client::hexadecimal::hex_bytes;

mod assets;
mod at_venues;
mod exact;
mod holders;
mod keys;
mod offers;
mod pools;
pub mod report;
mod request;
mod request_file;
mod sealed;
pub mod send;
pub mod server;
mod session;
mod show;

use assets::AssetCommand;
use at_venues::AtVenues;
use client::Assets;
use client::wallet::NetworkPin;
use keys::KeysCommand;
pub use keys::words as keys_words;
use offers::OfferCommand;
use pools::PoolCommand;
use request::RequestCommand;
use send::{Delivery, Sender};
use server::Server;
use session::SessionCommand;
use show::{show, watch};

/// Holds keys, sends any operation, looks at balances.
#[derive(clap::Subcommand)]
pub enum WalletCommand {
    /// Make a key.
    #[command(after_help = "Example:\n  walras wallet new --key alice.json")]
    New {
        /// File to write.
        #[arg(long)]
        key: PathBuf,
        #[command(flatten)]
        passphrase: Passphrase,
    },
    /// Print the address of a key file.
    #[command(after_help = "Example:\n  walras wallet address --key alice.json")]
    Address {
        /// The key file.
        #[arg(long)]
        key: PathBuf,
    },
    /// Show an account's balances and offers.
    #[command(
        visible_alias = "balances",
        after_help = "Examples:\n  walras wallet show --key alice.json\n  walras wallet show 0x53e0…"
    )]
    Show {
        /// The account; by default the key's.
        address: Option<Address>,
        /// The key file.
        #[arg(long, required_unless_present = "address")]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// Follow an account: outcomes, fills and balances as they arrive.
    #[command(after_help = "Example:\n  walras wallet watch --key alice.json")]
    Watch {
        /// The account; by default the key's.
        address: Option<Address>,
        /// The key file.
        #[arg(long, required_unless_present = "address")]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// Pay an account.
    #[command(after_help = "Examples:
  walras wallet pay --key alice.json --to 0x53e0… --asset EUR --amount 12.50
  walras wallet pay --key alice.json --to 0x53e0… --asset EUR --amount 12.50 --reference INV-2026-1107")]
    Pay {
        /// Receiving account.
        #[arg(long)]
        to: Address,
        #[command(flatten)]
        quantity: Quantity,
        #[command(flatten)]
        purpose: Purpose,
        #[command(flatten)]
        sender: Sender,
    },
    #[command(flatten)]
    Offers(OfferCommand),
    /// Register an account, or rotate this account's key.
    #[command(after_help = "Examples:
  walras wallet create-account --key alice.json --new-key 0x8a88…
  walras wallet create-account --key alice.json --new-key 0x8a88… --rotate")]
    CreateAccount {
        /// Public key of the new account, or this account's next key.
        #[arg(long)]
        new_key: PublicKey,
        /// Change this account's key to the new one instead of making an account.
        #[arg(long)]
        rotate: bool,
        #[command(flatten)]
        sender: Sender,
    },
    /// Issue units of an asset whose issuer this account is.
    #[command(
        after_help = "Example:\n  walras wallet issue --key issuer.json --to 0x53e0… --asset EUR --amount 1000000"
    )]
    Issue {
        /// Receiving account.
        #[arg(long)]
        to: Address,
        #[command(flatten)]
        quantity: Quantity,
        #[command(flatten)]
        purpose: Purpose,
        #[command(flatten)]
        sender: Sender,
    },
    /// Say whether payments to this account need a reference. The ledger refuses others from the next block on.
    #[command(after_help = "Examples:
  walras wallet receiving required --key shop.json
  walras wallet receiving optional --key shop.json")]
    Receiving {
        /// `required`, or `optional`.
        references: ReferenceRule,
        #[command(flatten)]
        sender: Sender,
    },
    /// Burn units of an asset whose issuer this account is.
    #[command(after_help = "Example:\n  walras wallet burn --key issuer.json --asset EUR --amount 1000")]
    Burn {
        #[command(flatten)]
        quantity: Quantity,
        #[command(flatten)]
        sender: Sender,
    },
    /// Become a validator, add to the stake, or change the validator's key or address.
    #[command(after_help = "Examples:
  walras wallet stake --key alice.json --amount 1000 --validator-key home/validator-key.json --address a.example:9100
  walras wallet stake --key alice.json --validator-key new-home/validator-key.json    # the next draw has this key")]
    Stake {
        /// Amount to add to the stake, in whole units of the first asset.
        #[arg(long, default_value = "0")]
        amount: String,
        /// Key file of the validator; by default the account's own key validates.
        #[arg(long, value_name = "FILE")]
        validator_key: Option<PathBuf>,
        /// File with the passphrase of the validator's key, if it has another one.
        #[arg(long, value_name = "FILE", requires = "validator_key")]
        validator_passphrase_file: Option<PathBuf>,
        /// Where other validators reach it (UDP); by default the current address.
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
        #[command(flatten)]
        sender: Sender,
    },
    /// Reduce the stake. The amount is paid back when it can no longer be punished.
    #[command(after_help = "Example:\n  walras wallet unstake --key alice.json --amount 1000")]
    Unstake {
        /// Amount to take from the stake, in whole units of the first asset.
        #[arg(long)]
        amount: String,
        #[command(flatten)]
        sender: Sender,
    },
    /// Show the fate of a transaction: committed (exit 0), refused (1), pending (3) or unknown to the node (4).
    #[command(after_help = "Example:\n  walras wallet status 0x6e0b…")]
    Status {
        /// The transaction's id, as printed before sending.
        id: TransactionId,
        #[command(flatten)]
        server: Server,
    },
    /// Send a transaction with an unknown result again, unchanged. It takes effect once.
    #[command(after_help = "Example:\n  walras wallet retry 0x6e0b… --key alice.json")]
    Retry {
        /// The transaction's id, as printed before sending.
        id: TransactionId,
        /// The key file, beside which the transaction is kept.
        #[arg(long)]
        key: PathBuf,
        #[command(flatten)]
        delivery: Delivery,
    },
    #[command(flatten)]
    AtVenues(AtVenues),
    /// Constant-product pools: open one, provide to one, leave it, see what is there.
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Assets: list one on the running chain, close one, see what there is.
    #[command(subcommand)]
    Asset(AssetCommand),
    /// Session keys: let a program's key cancel or trade for this account, within caps.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Keys of an institution: several signers with weights, guardians, changes that wait.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Requests of an account with several keys: make one, sign it, send it.
    #[command(subcommand)]
    Request(RequestCommand),
    /// Show that a validator contradicted itself: it loses a part of its stake and is never drawn again.
    #[command(after_help = "Example:\n  walras wallet accuse --key alice.json --evidence 0x0300…")]
    Accuse {
        /// The evidence, in hexadecimal, as a validator logs it.
        #[arg(long, value_name = "HEX")]
        evidence: String,
        #[command(flatten)]
        sender: Sender,
    },
}

/// What units are for.
#[derive(clap::Args, Clone)]
pub struct Purpose {
    /// What for: the receiver's reference, such as the number of an invoice. It is public for ever: no personal data.
    #[arg(long, value_name = "VALUE")]
    reference: Option<String>,
    /// What the reference is: a text of ASCII characters, a UUID such as a UETR, the SHA-256 of a message with a salt
    /// inside, or a number.
    #[arg(long, value_name = "KIND", default_value = "text", requires = "reference")]
    reference_kind: ReferenceKind,
}

impl Purpose {
    fn reference(&self) -> anyhow::Result<Option<Reference>> {
        let read = |value: &String| Reference::read(self.reference_kind, value);
        self.reference.as_ref().map(read).transpose().context("--reference")
    }
}

/// An amount of an asset.
#[derive(clap::Args, Clone)]
pub struct Quantity {
    /// The asset.
    #[arg(long)]
    asset: String,
    /// Amount, in whole assets.
    #[arg(long)]
    amount: String,
}

impl Quantity {
    fn units(&self, assets: &Assets) -> anyhow::Result<(AssetId, Amount)> {
        let listed = assets.find(&self.asset)?;
        Ok((listed.asset, to_units(&self.amount, listed.decimals)?))
    }
}

impl WalletCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            WalletCommand::New { key, passphrase } => {
                let public = keystore::create(&key, &passphrase)?.public();
                Ok(print_key(json, &key, &public.address(), Some(&public)))
            }
            WalletCommand::Address { key } => Ok(print_key(json, &key, &keystore::address(&key)?, None)),
            WalletCommand::Show { address, key, server } => show(json, account(address, key, &server)?, &server),
            WalletCommand::Watch { address, key, server } => watch(json, account(address, key, &server)?, &server),
            WalletCommand::Pay { to, quantity, purpose, sender } => sender.send(json, |_, _, assets| {
                let (asset, amount) = quantity.units(assets)?;
                Ok(match purpose.reference()? {
                    None => Operation::Pay { to, asset, amount },
                    Some(reference) => Operation::PayReferenced { to, asset, amount, reference },
                })
            }),
            WalletCommand::Offers(command) => command.run(json),
            WalletCommand::CreateAccount { new_key, rotate, sender } => sender.send(json, |_, own, _| {
                let account = if rotate { *own } else { new_key.address() };
                Ok(Operation::CreateAccount { account, key: new_key })
            }),
            WalletCommand::Issue { to, quantity, purpose, sender } => sender.send(json, |_, _, assets| {
                let (asset, amount) = quantity.units(assets)?;
                Ok(match purpose.reference()? {
                    None => Operation::Issue { to, asset, amount },
                    Some(reference) => Operation::IssueReferenced { to, asset, amount, reference },
                })
            }),
            WalletCommand::Receiving { references, sender } => {
                sender.send(json, |_, _, _| Ok(Operation::SetReceiving { references }))
            }
            WalletCommand::Burn { quantity, sender } => sender.send(json, |_, _, assets| {
                let (asset, amount) = quantity.units(assets)?;
                Ok(Operation::Burn { asset, amount })
            }),
            WalletCommand::Stake { amount, validator_key, validator_passphrase_file, address, sender } => {
                let passphrase = validator_passphrase_file.filter(|_| validator_key.is_some()).map(Passphrase::of_file);
                let passphrase = passphrase.unwrap_or_else(|| sender.passphrase.clone());
                let key = validator_key.unwrap_or_else(|| sender.key_file().to_path_buf());
                sender.send(json, |server, account, assets| {
                    stake(server, account, staked_units(&amount, assets)?, address, (&key, &passphrase))
                })
            }
            WalletCommand::Unstake { amount, sender } => {
                sender.send(json, |_, _, assets| Ok(Operation::Unstake { units: staked_units(&amount, assets)? }))
            }
            WalletCommand::Status { id, server } => send::status(json, &id, &server),
            WalletCommand::Retry { id, key, delivery } => send::retry(json, &key, &id, &delivery),
            WalletCommand::AtVenues(command) => command.run(json),
            WalletCommand::Pool(command) => command.run(json),
            WalletCommand::Asset(command) => command.run(json),
            WalletCommand::Session(command) => command.run(json),
            WalletCommand::Keys(command) => command.run(json),
            WalletCommand::Request(command) => command.run(json),
            WalletCommand::Accuse { evidence, sender } => sender.send(json, |_, _, _| accusation(&evidence)),
        }
    }
}

/// Stakes units for the validator of a key, at the network address that it has if no other one is given.
fn stake(
    server: &Server,
    account: &Address,
    units: Amount,
    address: Option<String>,
    (key, passphrase): (&Path, &Passphrase),
) -> anyhow::Result<Operation> {
    let address = address.map_or_else(|| network_address(server, account), Ok)?;
    let chain = server.node().terms()?.chain;
    let address = with_link_key(&address, key, passphrase)?;
    let validator = keystore::open(key, passphrase)?;
    Ok(Operation::Stake(Box::new(Stake::new(units, address, chain, account, &validator))))
}

fn accusation(evidence: &str) -> anyhow::Result<Operation> {
    let bytes = hex_bytes(evidence).context("--evidence: not a hexadecimal number of bytes")?;
    let evidence: Evidence = borsh::from_slice(&bytes).context("--evidence: these bytes are not evidence")?;
    Ok(Operation::Accuse(Box::new(evidence)))
}

/// Units of the first asset.
fn staked_units(amount: &str, assets: &Assets) -> anyhow::Result<Amount> {
    to_units(amount, assets.first()?.decimals)
}

/// The current network address of an account's validator.
fn network_address(server: &Server, account: &Address) -> anyhow::Result<String> {
    let registry = server.node().validators()?.validators;
    let own = registry.into_iter().find(|one| one.member.account == account.to_string());
    let address = own.map(|own| own.member.address).filter(|address| !address.is_empty());
    address.context("the registry has no address of this account's validator: give --address HOST:PORT")
}

fn print_key(json: bool, path: &Path, address: &Address, public: Option<&PublicKey>) -> ExitCode {
    match public {
        _ if json => {
            let public = public.map(ToString::to_string);
            println!("{}", serde_json::json!({"key": path, "address": address.to_string(), "public_key": public}));
        }
        // Only the address, for use by other commands.
        None => println!("{}", address.checked()),
        Some(public) => {
            println!("Address     {}", address.checked());
            println!("Public key  {public}");
            println!("Key file    {}", path.display());
        }
    }
    ExitCode::SUCCESS
}

/// The account to look at. Its key's network is compared with the node's.
fn account(address: Option<Address>, key: Option<PathBuf>, server: &Server) -> anyhow::Result<Address> {
    match (address, key) {
        (Some(address), _) => Ok(address),
        (None, Some(key)) => {
            let network = server.node().terms()?.network;
            let warning = NetworkPin::of(&key).warning(&network, &server.url)?;
            warning.iter().for_each(|warning| eprintln!("warning: {warning}"));
            Ok(keystore::address(&key)?)
        }
        (None, None) => bail!("give an address or --key"),
    }
}
