//! `walras wallet request`: what several keys sign for an account with a policy, in a file that they pass on.
//!
//! The file has the bytes that are signed, the id of the account's last change of keys, and the signatures so far.
//! Nobody needs a node to sign. What a signer sees is made from the bytes, and not from the words of whoever made the
//! file.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use api::{AccountKeysBody, PreparedBody};
use client::hexadecimal::hex_bytes;
use primitives::operations::Needs;
use primitives::{Address, Body, Digest, Height, KeyHolder, KeyPolicy, KeySignatures};
use serde_json::{Value, json};

use super::report::{self, Fate};
use super::request_file::{Asked, RequestFile};
use super::server::Server;
use crate::keystore::{self, Passphrase};

/// The pause between two queries about a request.
const PAUSE: Duration = Duration::from_millis(500);

/// Requests of an account with a policy: make one, sign it, send it. Nodes check it and store nothing before.
#[derive(clap::Subcommand)]
pub enum RequestCommand {
    /// Write a file with a request for an account's signers.
    #[command(after_help = "Example:
  walras wallet request make --account 0x53e0… --out rent.json \\
    --operation '{\"type\":\"pay\",\"to\":\"0x9a1b…\",\"asset\":\"EUR\",\"amount\":\"125000\"}'")]
    Make {
        /// The account.
        #[arg(long)]
        account: Address,
        /// What it asks for, as `/v1/transactions/prepare` takes it.
        #[arg(long, value_name = "JSON")]
        operation: String,
        /// How many heights it may take to sign and to count; by default as many as the network permits.
        #[arg(long)]
        heights: Option<Height>,
        /// File to write.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        server: Server,
    },
    /// Show what a file asks for, and who has signed.
    #[command(after_help = "Examples:
  walras wallet request show rent.json
  walras wallet request show rent.json --check          # asks a node what is missing
  walras wallet request show rent.json --typed-data     # what a wallet signs, by eth_signTypedData_v4")]
    Show {
        /// The file.
        file: PathBuf,
        /// Compare with the account's policy at a node.
        #[arg(long)]
        check: bool,
        /// Print the typed data alone.
        #[arg(long, conflicts_with = "check")]
        typed_data: bool,
        #[command(flatten)]
        server: Server,
    },
    /// Add a signature to a file.
    #[command(after_help = "Examples:
  walras wallet request sign rent.json --key alice.json
  walras wallet request sign rent.json --wallet 0xAb58… --signature 0x1c0f…")]
    Sign {
        /// The file.
        file: PathBuf,
        /// The key file of a signer.
        #[arg(long, required_unless_present = "wallet", conflicts_with = "wallet")]
        key: Option<PathBuf>,
        /// The address of a wallet that has signed the typed data.
        #[arg(long, requires = "signature")]
        wallet: Option<Address>,
        /// The wallet's signature.
        #[arg(long, value_name = "HEX", requires = "wallet")]
        signature: Option<String>,
        #[command(flatten)]
        passphrase: Passphrase,
    },
    /// Send a request that enough have signed, and wait for its block. A change of keys goes by `wallet keys send`.
    #[command(after_help = "Example:\n  walras wallet request send rent.json")]
    Send {
        /// The file.
        file: PathBuf,
        /// How long to wait for the block, in seconds; after that, exit with 3.
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        patience: u64,
        #[command(flatten)]
        server: Server,
    },
}

impl RequestFile {
    /// Who has signed and what is missing, by the policy that a node shows.
    fn standing(&self, keys: Option<&AccountKeysBody>) -> anyhow::Result<Standing> {
        let policy = keys.map(|keys| keys.policy.read().map_err(anyhow::Error::msg)).transpose()?;
        let last = keys.map_or_else(|| Digest::default().to_string(), |keys| keys.last.clone());
        let mut needed = Vec::new();
        match (&self.asked, &policy) {
            (Asked::Request { body, .. }, Some(policy)) => {
                let (named, weight) = match body.operation.row().needs {
                    Needs::Move => ("to move", policy.moves),
                    Needs::Govern => ("to govern", policy.governs),
                };
                needed.push(self.of_policy(named, policy, weight.into()));
            }
            (Asked::Request { .. }, None) => bail!("{} has no policy: its own key signs alone", self.account()),
            (Asked::Set(change, _), policy) => {
                let present = policy.as_ref().map(|policy| self.of_policy("to govern", policy, policy.governs.into()));
                needed.extend(present);
                needed.push(self.of_policy("to govern anew", &change.policy, change.policy.governs.into()));
            }
            (Asked::Recover(change), policy) => {
                let policy = policy.as_ref().context("the account has no policy, and so no guardians")?;
                let guards = policy.guards().map(|one| (one, 1)).collect();
                needed.push(self.weighed("guardians", guards, policy.guardians.into()));
                needed.push(self.of_policy("to govern anew", &change.policy, change.policy.governs.into()));
            }
        }
        Ok(Standing { is_stale: last != self.last().to_string(), needed })
    }

    fn of_policy(&self, named: &'static str, policy: &KeyPolicy, weight: u32) -> Needed {
        self.weighed(named, policy.signers().collect(), weight)
    }

    fn weighed(&self, named: &'static str, signers: Vec<(KeyHolder, u8)>, weight: u32) -> Needed {
        let signers: Vec<_> = signers.into_iter().map(|(one, own)| (one, own, self.signatures.has(one))).collect();
        let has = signers.iter().filter(|(.., has)| *has).map(|(_, own, _)| u32::from(*own)).sum();
        Needed { named, weight, has, signers }
    }
}

/// What a file lacks.
struct Standing {
    /// Whether the account has changed its keys since the file was made.
    is_stale: bool,
    needed: Vec<Needed>,
}

/// A weight that must sign, and who has.
struct Needed {
    named: &'static str,
    weight: u32,
    has: u32,
    signers: Vec<(KeyHolder, u8, bool)>,
}

fn named(holder: KeyHolder) -> String {
    match holder {
        KeyHolder::Key(key) => key.to_string(),
        KeyHolder::Wallet(wallet) => wallet.checked(),
    }
}

impl Standing {
    fn print(&self) {
        if self.is_stale {
            println!("The account has changed its keys since: make the request again, these signatures count no more.");
        }
        for Needed { named: what, weight, has, signers } in &self.needed {
            println!("Weight {what}: {has} of {weight}");
            for (holder, own, has) in signers {
                println!("  {} {own:>3}  {}", if *has { "signed " } else { "missing" }, named(*holder));
            }
        }
    }

    fn json(&self) -> Value {
        let signer = |one: &(KeyHolder, u8, bool)| {
            let (holder, weight, has) = *one;
            json!({"signer": named(holder), "weight": weight, "signed": has})
        };
        let needed = |one: &Needed| {
            json!({
                "for": one.named, "weight": one.weight, "signed": one.has,
                "signers": one.signers.iter().map(signer).collect::<Vec<_>>(),
            })
        };
        let is_whole = !self.is_stale && self.needed.iter().all(|one| one.has >= one.weight);
        let needed: Vec<Value> = self.needed.iter().map(needed).collect();
        json!({"stale": self.is_stale, "complete": is_whole, "needed": needed})
    }
}

impl RequestCommand {
    pub(super) fn run(self, as_json: bool) -> anyhow::Result<ExitCode> {
        match self {
            RequestCommand::Make { account, operation, heights, out, server } => {
                let file = make(&server, &account, &operation, heights)?;
                file.write(&out, true)?;
                shown(&file, as_json, None);
            }
            RequestCommand::Show { file, check, typed_data, server } => {
                let file = RequestFile::read(&file)?;
                if typed_data {
                    println!("{}", typed_json(&file));
                    return Ok(ExitCode::SUCCESS);
                }
                let standing = check.then(|| standing_at(&file, &server)).transpose()?;
                shown(&file, as_json, standing.as_ref());
            }
            RequestCommand::Sign { file: path, key, wallet, signature, passphrase } => {
                let mut file = RequestFile::read(&path)?;
                match (key, wallet, signature) {
                    (Some(key), ..) => file.sign(&keystore::open(&key, &passphrase)?),
                    (None, Some(wallet), Some(signature)) => file.add_wallet(wallet, &signature)?,
                    _ => bail!("give --key, or --wallet with --signature"),
                }
                file.write(&path, false)?;
                shown(&file, as_json, None);
            }
            RequestCommand::Send { file, patience, server } => {
                return send(&RequestFile::read(&file)?, as_json, Duration::from_secs(patience), &server);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What a wallet signs, in the form of `eth_signTypedData_v4`.
fn typed_json(file: &RequestFile) -> Value {
    let typed = file.typed();
    doors::json::typed_data(&typed, file.chain, &file.salt())
}

/// Asks a node for the body of a request.
fn make(server: &Server, account: &Address, operation: &str, heights: Option<Height>) -> anyhow::Result<RequestFile> {
    let node = server.node();
    let operation: Value = serde_json::from_str(operation).context("--operation: not JSON")?;
    let limits = node.limits()?;
    let until = node.height()?.saturating_add(heights.unwrap_or(limits.until_max));
    let asked = json!({"account": account.to_string(), "operation": operation, "until": until.to_string()});
    let prepared: PreparedBody = node.post("/v1/transactions/prepare", asked.to_string().as_bytes())?;
    let last = prepared.last.context("the account has no policy: its own key signs alone (`walras wallet pay` …)")?;
    let bytes = hex_bytes(&prepared.unsigned).context("the node's answer is not hexadecimal")?;
    // The kind of the signatures and the last change follow the body.
    let end = bytes.len().checked_sub(33).context("the node's answer is too short")?;
    let body: Body = borsh::from_slice(&bytes[..end]).context("the node's answer is not a request")?;
    ensure!(body.account == *account, "the node answered for another account");
    let last = last.parse().context("the node's last change of keys")?;
    let network = node.terms()?.network;
    let asked = Asked::Request { last, body };
    Ok(RequestFile { chain: node.terms()?.chain, network, asked, signatures: KeySignatures::default() })
}

fn standing_at(file: &RequestFile, server: &Server) -> anyhow::Result<Standing> {
    let account = server.node().account(&file.account())?.context("the account does not exist")?;
    file.standing(account.keys.as_ref())
}

/// Prints a file.
fn shown(file: &RequestFile, as_json: bool, standing: Option<&Standing>) {
    let signed: Vec<String> = file.signatures.holders().map(named).collect();
    if as_json {
        let standing = standing.map(Standing::json);
        let last = file.last().to_string();
        println!("{}", json!({"says": file.words(), "last": last, "signed": signed, "standing": standing}));
        return;
    }
    file.words().iter().for_each(|line| println!("{line}"));
    println!("network: {}", file.network);
    match standing {
        Some(standing) => standing.print(),
        None if signed.is_empty() => println!("Nobody has signed yet."),
        None => println!("Signed by {}", signed.join(", ")),
    }
}

/// Submits a request and waits for its block. Sending it twice is no danger: it counts once.
fn send(file: &RequestFile, as_json: bool, patience: Duration, server: &Server) -> anyhow::Result<ExitCode> {
    let (node, transaction) = (server.node(), file.transaction()?);
    let (id, begun) = (transaction.id(), Instant::now());
    if !as_json {
        println!("transaction {id}");
    }
    node.submit(&transaction)?;
    let mut fate = Fate::of(&node, &id)?;
    while !fate.is_final() && begun.elapsed() < patience {
        std::thread::sleep(PAUSE);
        fate = Fate::of(&node, &id)?;
    }
    Ok(report::print(&fate, as_json, &id, &node.assets()?))
}
