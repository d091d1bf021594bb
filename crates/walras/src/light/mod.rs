//! `walras light`: verifies what a quorum of validators has signed, with only the genesis file.
//!
//! Certificates are signed by the committee of their epoch. Starting from the founders, whom the genesis names, the
//! client follows the handovers (`node::handover`) to the epoch of the certificate that it verifies, and accepts only
//! what the committee before has signed. With `--remember` it stores how far it has come, and starts there the next
//! time; with `--trust HEIGHT:DIGEST` it starts from a pinned state. [`trust`] says how far it follows committees
//! from there.

mod client;
mod lane;
pub mod trust;
mod venues;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ledger::Genesis;
use primitives::venue::VenueId;
use primitives::{Address, TransactionId};
use serde_json::Value;

pub use self::client::Client;
pub use self::client::decode;
use self::trust::{Pin, span};
use crate::decimal::from_units;

/// Verifies an account or a receipt of an untrusted node with only certificates and the genesis file.
#[derive(clap::Subcommand)]
pub enum Light {
    /// Prove an account's balances.
    #[command(after_help = "Examples:
  walras light account --genesis genesis.json --server http://127.0.0.1:8080 0x1111111111111111111111111111111111111111
  walras light account --genesis genesis.json --server https://a.example --witness https://b.example \\
    --trust 1200:0x6e0b… --remember committee.json 0x1111111111111111111111111111111111111111")]
    Account {
        #[command(flatten)]
        source: Source,
        /// The account.
        address: Address,
    },
    /// Prove the fate of a transaction.
    #[command(after_help = "Example:
  walras light transaction --genesis genesis.json --server http://127.0.0.1:8080 0x6e0b…")]
    Transaction {
        #[command(flatten)]
        source: Source,
        /// Its id.
        id: TransactionId,
    },
    /// Prove an account's deposit at a venue of continuous markets.
    #[command(after_help = "Example:
  walras light deposit --genesis genesis.json --venue 0 --asset USD 0x1111111111111111111111111111111111111111")]
    Deposit {
        #[command(flatten)]
        source: Source,
        /// The account.
        address: Address,
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// The asset.
        #[arg(long)]
        asset: String,
    },
    /// Prove a venue: its owner, operator and bond, and the tree of the fills that it settled.
    #[command(after_help = "Example:\n  walras light venue --genesis genesis.json --venue 0")]
    Venue {
        #[command(flatten)]
        source: Source,
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
    },
    /// Print the HEIGHT:DIGEST that others who trust you can give as --trust.
    #[command(after_help = "Example:
  walras light pin --genesis genesis.json --server http://127.0.0.1:8080 --own-node")]
    Pin {
        #[command(flatten)]
        source: Source,
        /// You run this node: trust the newest committee that it shows, without a proof.
        #[arg(long, conflicts_with = "trust")]
        own_node: bool,
    },
}

/// The nodes to ask, and the sources to trust.
#[derive(Clone, clap::Args)]
pub struct Source {
    /// The genesis file, from somebody you trust.
    #[arg(long, value_name = "FILE")]
    genesis: PathBuf,
    /// Any node of the network.
    #[arg(long, env = "WALRAS_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// Another node, of another operator, that must show the same; can be repeated.
    #[arg(long = "witness", value_name = "URL")]
    witnesses: Vec<String>,
    /// Start from this state, which somebody you trust gave you: `walras light pin` prints it.
    #[arg(long, value_name = "HEIGHT:DIGEST")]
    trust: Option<Pin>,
    /// A file that stores the last proved committee; the next run starts there instead of at the genesis.
    #[arg(long, value_name = "FILE")]
    remember: Option<PathBuf>,
    /// Maximum age of the stored committee: less than the time until a stake is paid back.
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = span)]
    trust_period: Duration,
    /// Maximum age of the newest block.
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = span)]
    max_age: Duration,
}

impl Light {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let (Light::Account { source, .. }
        | Light::Transaction { source, .. }
        | Light::Deposit { source, .. }
        | Light::Venue { source, .. }
        | Light::Pin { source, .. }) = &self;
        let (mut client, genesis) = Client::new(source)?;
        let proved = match &self {
            Light::Account { address, .. } => client.account(&genesis, address)?,
            Light::Transaction { id, .. } => client.transaction(id)?,
            Light::Deposit { address, venue, asset, .. } => client.deposit(&genesis, address, *venue, asset)?,
            Light::Venue { venue, .. } => client.venue(*venue)?,
            Light::Pin { own_node, .. } => client.pin(*own_node)?,
        };
        client.remember()?;
        if json {
            println!("{proved}");
        } else {
            println!("{}", in_words(&proved, &genesis));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The proved fact in words, with amounts in decimals.
fn in_words(proved: &Value, genesis: &Genesis) -> String {
    let text = |name: &str| proved[name].as_str().unwrap_or("?");
    let amount = |(symbol, units): (&String, &Value)| {
        let decimals = genesis.assets.iter().find(|asset| asset.symbol == *symbol).map_or(0, |asset| asset.decimals);
        let units = units.as_str().and_then(|units| units.parse().ok()).unwrap_or(0);
        format!("{} {symbol}", from_units(units, decimals))
    };
    let height = &proved["height"];
    if let Some(pin) = proved["pin"].as_str() {
        return pin.to_string();
    }
    if proved["venue"].is_u64() {
        return format!("{} at height {height}\n{}", venues::in_words(proved, genesis), signers(proved));
    }
    let fact = match (&proved["account"], proved["exists"] == true, proved["spendable"].as_object()) {
        (Value::Null, ..) => match proved["outcome"].as_str() {
            Some("committed") => format!("{} is committed in block {height}", text("transaction")),
            Some(code) => format!("{} is refused in block {height}: {code}", text("transaction")),
            None => format!("{} is not in block {height}", text("transaction")),
        },
        (_, false, _) => format!("{} does not exist at height {height}", text("account")),
        (_, true, spendable) => {
            let amounts: Vec<String> = spendable.into_iter().flatten().map(amount).collect();
            let held = if amounts.is_empty() { "nothing".into() } else { amounts.join(", ") };
            format!("{} can spend {held} at height {height}", text("account"))
        }
    };
    format!("{fact}\n{}", signers(proved))
}

/// Who signed a proved fact.
fn signers(proved: &Value) -> String {
    let (signed, validators, epoch) = (&proved["signed_by"], &proved["validators"], &proved["epoch"]);
    let witnesses = match proved["witnesses"].as_u64() {
        None | Some(0) => String::new(),
        Some(count) => format!(" Witnesses that show the same: {count}."),
    };
    format!("Signed by {signed} of the {validators} validators of epoch {epoch}.{witnesses}")
}

#[cfg(test)]
mod tests {
    use ledger::Listing;
    use serde_json::json;

    use super::*;

    #[test]
    fn people_read_decimals() {
        let issuer = Address([9; 20]);
        let assets = vec![Listing::new("USD", 2, issuer), Listing::new("BTC", 8, issuer)];
        let genesis = Genesis { assets, ..Genesis::default() };
        let signed = json!({"height": 7, "signed_by": 3, "validators": 4, "epoch": 1});
        let said = |more: Value| {
            let mut proved = signed.clone();
            proved.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            in_words(&proved, &genesis)
        };
        let rich = said(json!({"account": "0x11", "exists": true, "spendable": {"BTC": "150000000", "USD": "5"}}));
        assert!(rich.starts_with("0x11 can spend 1.5 BTC, 0.05 USD at height 7\n"), "{rich}");
        assert!(rich.ends_with("Signed by 3 of the 4 validators of epoch 1."), "{rich}");
        let absent = said(json!({"account": "0x11", "exists": false, "spendable": null}));
        assert!(absent.starts_with("0x11 does not exist at height 7"), "{absent}");
        let refused = said(json!({"transaction": "0x22", "outcome": "overdraft"}));
        assert!(refused.starts_with("0x22 is refused in block 7: overdraft"), "{refused}");
    }
}
