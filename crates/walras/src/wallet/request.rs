//! `walras wallet request`: what several keys sign for an account with a policy, in a file that they pass on.
//!
//! The file has the bytes that are signed, the id of the account's last change of keys, and the signatures so far.
//! Nobody needs a node to sign. What a signer sees is made from the bytes, and not from the words of whoever made the
//! file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use api::{AccountKeysBody, PreparedBody};
use client::hexadecimal::hex_bytes;
use primitives::operations::Needs;
use primitives::{
    Address, Body, ChangedBy, Digest, Height, KeyChange, KeyHolder, KeyPolicy, KeySignatures, Operation, PolicySigned,
    PublicKey, RecoverKeys, SecretKey, SetKeys, Transaction, TypedData, WalletSignature, policy_salt, to_hex,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::report::{self, Fate};
use super::server::Server;
use crate::keystore::{self, Passphrase};

/// The first field of a file: what it is.
const FORMAT: &str = "walras request 1";
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

/// What a file asks its readers to sign.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    /// A request of the account.
    Request { body: Body, last: Digest },
    /// Another policy, by those who govern; with the key whose hash is the address.
    Set(KeyChange, PublicKey),
    /// Another policy, by the guardians.
    Recover(KeyChange),
}

/// A file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestFile {
    pub chain: u64,
    pub network: Digest,
    pub asked: Asked,
    pub signatures: KeySignatures,
}

/// Its form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: String,
    /// `request`, `set_keys` or `recover_keys`.
    asks: String,
    chain: String,
    network: String,
    last: String,
    /// The body of a request, or the change.
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    /// In words, for people; nothing depends on it.
    says: Vec<String>,
    signatures: String,
}

fn encoded(value: &impl borsh::BorshSerialize) -> String {
    format!("0x{}", to_hex(&borsh::to_vec(value).expect("writing to memory cannot fail")))
}

fn decoded<T: borsh::BorshDeserialize>(field: &str, text: &str) -> anyhow::Result<T> {
    let bytes = hex_bytes(text).with_context(|| format!("{field}: not hexadecimal"))?;
    borsh::from_slice(&bytes).with_context(|| format!("{field}: the bytes are damaged, or of another version"))
}

impl RequestFile {
    /// Reads a file, and checks that each signature in it is valid.
    pub(super) fn read(path: &Path) -> anyhow::Result<RequestFile> {
        let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        RequestFile::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<RequestFile> {
        let Written { format, asks, chain, network, last, content, first, says: _, signatures } =
            serde_json::from_str(text).context("this is no file of `walras wallet request make` or `keys set`")?;
        ensure!(format == FORMAT, "its format is {format:?}, and this version of walras reads {FORMAT:?}");
        let last: Digest = last.parse().context("last")?;
        let asked = match (&*asks, first) {
            ("request", None) => Asked::Request { body: decoded("content", &content)?, last },
            ("set_keys", Some(first)) => Asked::Set(decoded("content", &content)?, first.parse().context("first")?),
            ("recover_keys", None) => Asked::Recover(decoded("content", &content)?),
            _ => bail!("asks: {asks:?} is not request, set_keys or recover_keys, or `first` does not fit it"),
        };
        let file = RequestFile {
            chain: chain.parse().context("chain")?,
            network: network.parse().context("network")?,
            asked,
            signatures: decoded("signatures", &signatures)?,
        };
        ensure!(file.last() == last, "last: the change names {}", file.last());
        file.check()?;
        Ok(file)
    }

    /// Whether each signature is valid.
    fn check(&self) -> anyhow::Result<()> {
        if let Asked::Request { body, .. } = &self.asked {
            ensure!(body.chain == self.chain, "chain: the request is for chain {}", body.chain);
        }
        let (bytes, hash) = (self.signing_bytes(), self.hash());
        let of_key = |one: &&primitives::KeySignature| !one.key.verify(&bytes, &one.signature);
        if let Some(forged) = self.signatures.keys.iter().find(of_key) {
            bail!("signatures: that of {} is not valid for this content", forged.key);
        }
        let of_wallet = |one: &&primitives::SignedByWallet| one.signature.recover(&hash) != Some(one.wallet);
        if let Some(forged) = self.signatures.wallets.iter().find(of_wallet) {
            bail!("signatures: that of wallet {} is not valid for this content", forged.wallet.checked());
        }
        Ok(())
    }

    pub(super) fn last(&self) -> Digest {
        match &self.asked {
            Asked::Request { last, .. } => *last,
            Asked::Set(change, _) | Asked::Recover(change) => change.last,
        }
    }

    pub(super) fn account(&self) -> Address {
        match &self.asked {
            Asked::Request { body, .. } => body.account,
            Asked::Set(change, _) | Asked::Recover(change) => change.account,
        }
    }

    /// What ed25519 keys sign.
    fn signing_bytes(&self) -> Vec<u8> {
        match &self.asked {
            Asked::Request { body, last } => PolicySigned::signing_bytes(body, last, &self.network),
            Asked::Set(change, _) => change.signing_bytes(ChangedBy::Signers, &self.network),
            Asked::Recover(change) => change.signing_bytes(ChangedBy::Guardians, &self.network),
        }
    }

    /// What wallets sign.
    fn typed(&self) -> TypedData {
        match &self.asked {
            Asked::Request { body, .. } => TypedData::of(body),
            Asked::Set(change, _) => TypedData::of_change(change, ChangedBy::Signers),
            Asked::Recover(change) => TypedData::of_change(change, ChangedBy::Guardians),
        }
    }

    fn salt(&self) -> Digest {
        policy_salt(&self.network, &self.account(), &self.last())
    }

    fn hash(&self) -> [u8; 32] {
        self.typed().hash(self.chain, &self.salt())
    }

    /// What is signed, field by field, from the bytes alone.
    fn words(&self) -> Vec<String> {
        let typed = self.typed();
        let fields = typed.fields.iter().map(|(name, value)| format!("{name}: {}", value.text()));
        [typed.primary.to_string()].into_iter().chain(fields).collect()
    }

    /// Writes it; `is_new` refuses a file that is there.
    pub(super) fn write(&self, path: &Path, is_new: bool) -> anyhow::Result<()> {
        let (asks, content, first) = match &self.asked {
            Asked::Request { body, .. } => ("request", encoded(body), None),
            Asked::Set(change, first) => ("set_keys", encoded(change), Some(first.to_string())),
            Asked::Recover(change) => ("recover_keys", encoded(change), None),
        };
        let written = Written {
            format: FORMAT.into(),
            asks: asks.into(),
            chain: self.chain.to_string(),
            network: self.network.to_string(),
            last: self.last().to_string(),
            content,
            first,
            says: self.words(),
            signatures: encoded(&self.signatures),
        };
        let text = serde_json::to_string_pretty(&written).expect("plain data") + "\n";
        ensure!(!is_new || !path.exists(), "{} exists: name another file", path.display());
        // A file that ends early would lose the signatures that it had.
        let beside = path.with_extension("new");
        fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).with_context(|| path.display().to_string())
    }

    pub(super) fn sign(&mut self, key: &SecretKey) {
        let own = KeySignatures::of_key(key.public(), key.sign(&self.signing_bytes()));
        self.signatures = own.with(&self.signatures);
    }

    pub(super) fn add_wallet(&mut self, wallet: Address, signature: &str) -> anyhow::Result<()> {
        let bytes = hex_bytes(signature).context("--signature: not hexadecimal")?;
        let signature = WalletSignature::from_bytes(&bytes).context("--signature")?;
        let signer = signature.recover(&self.hash());
        ensure!(
            signer == Some(wallet),
            "--signature: it is not that of {} on this content; `walras wallet request show --typed-data` prints what \
             the wallet signs",
            wallet.checked()
        );
        self.signatures = KeySignatures::of_wallet(wallet, signature).with(&self.signatures);
        Ok(())
    }

    /// The operation that sends a change.
    pub(super) fn change(self) -> anyhow::Result<Operation> {
        let signatures = self.signatures;
        match self.asked {
            Asked::Set(change, first) => Ok(Operation::SetKeys(Box::new(SetKeys { change, first, signatures }))),
            Asked::Recover(change) => Ok(Operation::RecoverKeys(Box::new(RecoverKeys { change, signatures }))),
            Asked::Request { .. } => {
                bail!("the file has a request, and not a change of keys: send it by `walras wallet request send`")
            }
        }
    }

    fn transaction(&self) -> anyhow::Result<Transaction> {
        match &self.asked {
            Asked::Request { body, last } => Ok(Transaction::by_policy(body.clone(), *last, self.signatures.clone())),
            _ => bail!("the file has a change of keys: send it by `walras wallet keys send --file … --key …`"),
        }
    }

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
        let signer = |(holder, weight, has): &(KeyHolder, u8, bool)| json!({"signer": named(*holder), "weight": weight, "signed": has});
        let needed = |one: &Needed| {
            json!({
                "for": one.named, "weight": one.weight, "signed": one.has,
                "signers": one.signers.iter().map(signer).collect::<Vec<_>>(),
            })
        };
        let is_whole = !self.is_stale && self.needed.iter().all(|one| one.has >= one.weight);
        json!({"stale": self.is_stale, "complete": is_whole, "needed": self.needed.iter().map(needed).collect::<Vec<_>>()})
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

#[cfg(test)]
mod tests {
    use primitives::{AssetId, WalletKey};

    use super::*;

    fn file() -> RequestFile {
        let account = SecretKey::from_seed([1; 32]).public().address();
        let operation = Operation::Pay { to: Address([9; 20]), asset: AssetId(1), amount: 5 };
        let body = Body { chain: 7, account, sequence: 3, until: 900, operation };
        let asked = Asked::Request { body, last: Digest([4; 32]) };
        RequestFile { chain: 7, network: Digest([2; 32]), asked, signatures: KeySignatures::default() }
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn a_request_passes_from_signer_to_signer_in_a_file() {
        let (folder, mut made) = (folder(), file());
        let path = folder.path().join("rent.json");
        made.write(&path, true).expect("new");
        assert!(made.write(&path, true).is_err(), "it overwrites nothing");
        let wallet = WalletKey::from_bytes([5; 32]).expect("in range");
        for seed in [11, 12] {
            let mut read = RequestFile::read(&path).expect("sound");
            read.sign(&SecretKey::from_seed([seed; 32]));
            read.write(&path, false).expect("written");
        }
        made = RequestFile::read(&path).expect("sound");
        let signature = format!("0x{}", to_hex(&wallet.sign(&made.hash()).0));
        made.add_wallet(wallet.address(), &signature).expect("the wallet's");
        let transaction = made.transaction().expect("a request");
        assert!(transaction.is_signed(&Digest([2; 32])) && transaction.check().is_ok());
        assert_eq!(transaction.signature_count(), 3);
        assert!(made.words().contains(&"amount: 5".to_string()));
    }

    /// The attack: somebody changes the content after others have signed, or passes on a signature that does not hold.
    #[test]
    fn a_file_whose_signatures_are_for_something_else_is_not_read() {
        let (folder, mut made) = (folder(), file());
        let path = folder.path().join("rent.json");
        made.sign(&SecretKey::from_seed([11; 32]));
        let Asked::Request { body, .. } = &mut made.asked else { panic!("a request") };
        body.sequence = 4;
        made.write(&path, true).expect("new");
        let error = format!("{:#}", RequestFile::read(&path).expect_err("forged"));
        assert!(error.contains("is not valid for this content"), "{error}");
        let wallet = WalletKey::from_bytes([5; 32]).expect("in range");
        let signature = format!("0x{}", to_hex(&wallet.sign(&[1; 32]).0));
        assert!(file().add_wallet(wallet.address(), &signature).is_err());
    }
}
