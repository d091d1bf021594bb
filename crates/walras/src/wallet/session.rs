//! `walras wallet session`: keys of programs that cancel or trade for an account, within caps.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use api::{AccountBody, SessionBody, SessionBudgetBody};
use client::Assets;
use primitives::{
    Address, Height, Operation, SESSION_CAPS_MAX, SessionCap, SessionOperation, SessionScope, SessionSlot,
    SessionTerms, session_possession_bytes,
};
use serde_json::json;

use super::account;
use super::send::Sender;
use super::server::Server;
use crate::decimal::to_units;
use crate::keystore::{self, Passphrase};

/// Heights for which a session key is authorised, and after which its offers end without a heartbeat, unless the user
/// says otherwise.
const HEIGHTS: Height = 100_000;

/// Session keys of an account.
#[derive(clap::Subcommand)]
pub enum SessionCommand {
    /// Let a key cancel, or cancel and trade, for this account. It cannot pay, and uses no more than its caps.
    #[command(after_help = "Example, a bot that may use 500 USD and 400 EUR, and must be heard every 600 blocks:
  walras wallet new --key bot.json
  walras wallet session add --key alice.json --session-key bot.json --cap USD:500 --cap EUR:400 --alive 600
  walras wallet offer --session bot.json --account 0x53e0… --sell EUR --buy USD --amount 100 --limit 1.10")]
    Add {
        /// Key file of the session key, which signs that it agrees.
        #[arg(long, value_name = "FILE")]
        session_key: PathBuf,
        /// File with the passphrase of the session key, if it has another one.
        #[arg(long, value_name = "FILE")]
        session_passphrase_file: Option<PathBuf>,
        /// Let it only cancel offers, and stop other session keys.
        #[arg(long)]
        cancel_only: bool,
        /// Let it only do what one person or node owes: approve rules, accuse, post duties of the lane; and cancel.
        #[arg(long, conflicts_with = "cancel_only")]
        duty: bool,
        /// Let it only cancel, and freeze holders of assets that this account issues: of each as many as its cap says.
        #[arg(long, conflicts_with_all = ["cancel_only", "duty"])]
        control: bool,
        /// How many heights it lasts.
        #[arg(long, value_name = "HEIGHTS", default_value_t = HEIGHTS)]
        lasts: Height,
        /// After how many heights its offers end, unless it is heard before; by default when it ends itself.
        #[arg(long, value_name = "HEIGHTS")]
        alive: Option<Height>,
        /// The most that it may use of an asset: locked and sold less bought, fees included. Of others it uses nothing,
        /// so that it needs a cap for the first asset to pay its fees. With --control a cap of another asset is how
        /// many of its holders it may freeze.
        #[arg(long = "cap", value_name = "ASSET:AMOUNT", required = true)]
        caps: Vec<String>,
        #[command(flatten)]
        sender: Sender,
    },
    /// Show an account's session keys: how they stand, and what they have used.
    #[command(after_help = "Example:\n  walras wallet session list --key alice.json")]
    List {
        /// The account; by default the key's.
        address: Option<Address>,
        /// The key file.
        #[arg(long, required_unless_present = "address")]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// End a session key and its offers. Its slot is never given again.
    #[command(after_help = "Example:\n  walras wallet session revoke --key alice.json --slot 3")]
    Revoke {
        /// The slot, as `session list` shows it.
        #[arg(long)]
        slot: SessionSlot,
        #[command(flatten)]
        sender: Sender,
    },
    /// Keep the offers of a session key alive for some heights more, or end all of them at once.
    #[command(after_help = "Examples, a heartbeat by the key itself; all its offers off:
  walras wallet session alive --session bot.json --account 0x53e0… --slot 3 --heights 600
  walras wallet session alive --session bot.json --account 0x53e0… --slot 3 --stop")]
    Alive {
        /// The slot.
        #[arg(long)]
        slot: SessionSlot,
        /// How many heights after the present one its offers may rest.
        #[arg(long, required_unless_present = "stop")]
        heights: Option<Height>,
        /// End its offers with the next block; it may not trade until its timer is raised.
        #[arg(long, conflicts_with = "heights")]
        stop: bool,
        #[command(flatten)]
        sender: Sender,
    },
}

fn scope(cancel_only: bool, duty: bool, control: bool) -> SessionScope {
    match () {
        () if cancel_only => SessionScope::Cancel,
        () if duty => SessionScope::Duty,
        () if control => SessionScope::Control,
        () => SessionScope::Trade,
    }
}

fn operation(operation: SessionOperation) -> Operation {
    Operation::Session(Box::new(operation))
}

/// The caps of a key of a scope, by asset. One of scope *control* has caps of holders, but for the first asset.
fn caps(texts: &[String], scope: SessionScope, assets: &Assets) -> anyhow::Result<Box<[SessionCap]>> {
    let cap = |text: &String| -> anyhow::Result<SessionCap> {
        let (symbol, amount) =
            text.split_once(':').with_context(|| format!("--cap: {text:?} is not ASSET:AMOUNT, as in USD:500"))?;
        let listed = assets.find(symbol)?;
        let units = match scope == SessionScope::Control && listed.asset.0 > 0 {
            true => amount.parse().with_context(|| format!("--cap: {text:?} has no number of holders"))?,
            false => to_units(amount, listed.decimals)?,
        };
        Ok(SessionCap { asset: listed.asset, units })
    };
    let mut caps: Vec<SessionCap> = texts.iter().map(cap).collect::<Result<_, _>>()?;
    caps.sort();
    ensure!(caps.windows(2).all(|two| two[0].asset < two[1].asset), "--cap: an asset is given twice");
    ensure!(caps.len() <= SESSION_CAPS_MAX, "--cap: at most {SESSION_CAPS_MAX} assets");
    let first = assets.first()?;
    if caps.iter().all(|cap| cap.asset != first.asset) {
        eprintln!("warning: without a cap for {} the key cannot pay fees, and so can do nothing", first.symbol);
    }
    Ok(caps.into())
}

impl SessionCommand {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            SessionCommand::Add {
                session_key,
                session_passphrase_file,
                cancel_only,
                duty,
                control,
                lasts,
                alive,
                caps: texts,
                sender,
            } => {
                let passphrase = session_passphrase_file.map_or_else(|| sender.passphrase.clone(), Passphrase::of_file);
                sender.send(json, |server, own, assets| {
                    let scope = scope(cancel_only, duty, control);
                    let (node, caps) = (server.node(), caps(&texts, scope, assets)?);
                    let secret = keystore::open(&session_key, &passphrase)?;
                    let key = secret.public();
                    let found = node.account(own)?.context("the account does not exist")?;
                    let height = node.height()?;
                    let until = height.saturating_add(lasts);
                    let alive = alive.map_or(until, |heights| height.saturating_add(heights).min(until));
                    let slot = found.session_slots + 1;
                    let bytes = session_possession_bytes(&node.terms()?.network, own, slot, &key);
                    let terms = SessionTerms { slot, key, scope, until, alive, caps };
                    Ok(operation(SessionOperation::Authorize { possession: secret.sign(&bytes), terms }))
                })
            }
            SessionCommand::List { address, key, server } => {
                let address = account(address, key, &server)?;
                let node = server.node();
                let found: AccountBody = node.get(&format!("/v1/accounts/{address}"))?;
                if json {
                    println!("{}", json!({"account": address.to_string(), "sessions": found.sessions}));
                } else {
                    let assets = node.assets()?;
                    println!(
                        "{} has {} session keys at height {}",
                        address.checked(),
                        found.sessions.len(),
                        found.height
                    );
                    found.sessions.iter().for_each(|session| println!("{}", in_words(session, &assets)));
                }
                Ok(ExitCode::SUCCESS)
            }
            SessionCommand::Revoke { slot, sender } => {
                sender.send(json, |_, _, _| Ok(operation(SessionOperation::Revoke { slot })))
            }
            SessionCommand::Alive { slot, heights, stop: _, sender } => sender.send(json, |server, _, _| {
                let through = match heights {
                    Some(heights) => server.node().height()?.saturating_add(heights),
                    None => 0,
                };
                Ok(operation(SessionOperation::Alive { slot, through }))
            }),
        }
    }
}

fn in_words(session: &SessionBody, assets: &Assets) -> String {
    let SessionBody { slot, key, scope, status, ends, alive, caps, .. } = session;
    let cap = |SessionBudgetBody { asset, units, used }: &SessionBudgetBody| {
        let used = match used.strip_prefix('-') {
            Some(gained) => format!("gained {}", assets.money(gained, asset)),
            None => format!("used {}", assets.money(used, asset)),
        };
        format!("\n    {used} of {}", assets.money(units, asset))
    };
    let caps: String = caps.iter().map(cap).collect();
    format!(
        "  slot {slot}: {status}, may {scope}, until block {ends}; its offers end with block {alive}\n    {key}{caps}"
    )
}
