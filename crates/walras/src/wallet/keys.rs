//! `walras wallet keys`: the policy of an account, and changes of it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use api::{AccountKeysBody, KeyPolicyBody};
use primitives::{Address, Digest, KeySignatures, KeysChange, Operation, PublicKey, SessionsFate};
use serde_json::json;

use super::account;
use super::request_file::{Asked, RequestFile};
use super::send::Sender;
use super::server::Server;

/// Keys of an institution: several signers with weights, guardians, changes that wait.
#[derive(clap::Subcommand)]
pub enum KeysCommand {
    /// Show an account's policy, and the change of it that waits.
    #[command(after_help = "Example:\n  walras wallet keys show 0x53e0…")]
    Show {
        /// The account; by default the key's.
        address: Option<Address>,
        /// The key file.
        #[arg(long, required_unless_present = "address")]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// Write a file with a change of keys, for those who govern the account, and those who will.
    #[command(after_help = "Example, three of five spend and change keys, one of the five a wallet:
  cat > policy.json <<END
  {\"keys\":[{\"key\":\"0x8a88…\",\"weight\":1},{\"key\":\"0x17c0…\",\"weight\":1},{\"key\":\"0x93d2…\",\"weight\":1},
           {\"key\":\"0x4e5f…\",\"weight\":1}],\"wallets\":[{\"wallet\":\"0xAb58…\",\"weight\":1}],
   \"move\":3,\"govern\":3,
   \"guardian_keys\":[{\"key\":\"0x6b1a…\"},{\"key\":\"0x2c44…\"}],\"guardians\":2,\"delay\":86400}
END
  walras wallet keys set --account 0x53e0… --policy policy.json --first 0x0d71… --out change.json
  walras wallet request sign change.json --key alice.json      # and so on, the account's present key first of all
  walras wallet keys send change.json --key anybody.json")]
    Set {
        #[command(flatten)]
        change: ChangeFile,
        /// The public key whose hash is the account's address; only for its first policy.
        #[arg(long, value_name = "KEY")]
        first: Option<PublicKey>,
    },
    /// Write a file with another policy for an account whose keys are lost, for its guardians and its new signers.
    #[command(after_help = "Example:
  walras wallet keys recover --account 0x53e0… --policy policy.json --out recovery.json
  walras wallet request sign recovery.json --key guardian.json
  walras wallet keys send recovery.json --key anybody.json")]
    Recover {
        #[command(flatten)]
        change: ChangeFile,
    },
    /// Send a change of keys that enough have signed. Any account may, and pays for it.
    #[command(after_help = "Example:\n  walras wallet keys send change.json --key anybody.json")]
    Send {
        /// The file of `keys set` or `keys recover`.
        file: PathBuf,
        #[command(flatten)]
        sender: Sender,
    },
    /// Make a change act whose wait is over. Any account may.
    #[command(after_help = "Example:\n  walras wallet keys complete --of 0x53e0… --key anybody.json")]
    Complete {
        /// The account whose keys change.
        #[arg(long, value_name = "ADDRESS")]
        of: Address,
        #[command(flatten)]
        sender: Sender,
    },
}

/// A change to be signed.
#[derive(clap::Args, Clone)]
pub struct ChangeFile {
    /// The account.
    #[arg(long)]
    account: Address,
    /// The file with the policy, in JSON.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Keep the account's session keys; by default they close.
    #[arg(long)]
    keep_sessions: bool,
    /// File to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    server: Server,
}

impl KeysCommand {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            KeysCommand::Show { address, key, server } => show(json, &account(address, key, &server)?, &server),
            KeysCommand::Set { change, first } => change.write(json, |change, keys| {
                let shown = keys.map(|keys| keys.first.parse()).transpose().context("the node's answer")?;
                let first = first.or(shown).context(
                    "--first: the account has no policy yet: name the public key whose hash is its address, as `walras \
                     wallet new` printed it",
                )?;
                ensure!(
                    first.address() == change.account,
                    "--first: {first} is the key of {}, and not of {}; a wallet's address gets no policy",
                    first.address().checked(),
                    change.account.checked()
                );
                Ok(Asked::Set(change, first))
            }),
            KeysCommand::Recover { change } => change.write(json, |change, keys| {
                keys.context("the account has no policy, and so no guardians")?;
                Ok(Asked::Recover(change))
            }),
            KeysCommand::Send { file, sender } => {
                let file = RequestFile::read(&file)?;
                sender.send(json, |server, _, _| {
                    let network = server.node().terms()?.network;
                    ensure!(file.network == network, "the file is for network {}, and this is {network}", file.network);
                    file.change()
                })
            }
            KeysCommand::Complete { of, sender } => {
                sender.send(json, |_, _, _| Ok(Operation::CompleteKeys { account: of }))
            }
        }
    }
}

impl ChangeFile {
    /// Writes the file of a change.
    fn write(
        self,
        as_json: bool,
        asked: impl FnOnce(KeysChange, Option<&AccountKeysBody>) -> anyhow::Result<Asked>,
    ) -> anyhow::Result<ExitCode> {
        let ChangeFile { account, policy, keep_sessions, out, server } = self;
        let text = std::fs::read_to_string(&policy).with_context(|| format!("{} cannot be read", policy.display()))?;
        let body: KeyPolicyBody = serde_json::from_str(&text).with_context(|| policy.display().to_string())?;
        let policy = body.read().map_err(anyhow::Error::msg).with_context(|| policy.display().to_string())?;
        ensure!(policy.is_plain(), "{}", primitives::Malformed::KeyPolicy);
        let node = server.node();
        let found =
            node.account(&account)?.context("the account does not exist: the first payment to it creates it")?;
        let last = found.keys.as_ref().map(|keys| keys.last.parse()).transpose().context("the node's answer")?;
        let sessions = if keep_sessions { SessionsFate::Keep } else { SessionsFate::Close };
        let change = KeysChange { account, last: last.unwrap_or_else(Digest::default), policy, sessions };
        let terms = node.terms()?;
        let asked = asked(change, found.keys.as_ref())?;
        let signatures = KeySignatures::default();
        RequestFile { chain: terms.chain, network: terms.network, asked, signatures }.write(&out, true)?;
        match as_json {
            true => println!("{}", json!({"file": out})),
            false => println!("{}: pass it to its signers (`walras wallet request sign`)", out.display()),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(as_json: bool, account: &Address, server: &Server) -> anyhow::Result<ExitCode> {
    let found = server.node().account(account)?.context("the account does not exist")?;
    if as_json {
        println!("{}", json!({"account": found.address, "height": found.height, "keys": found.keys}));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(keys) = &found.keys else {
        println!("{} has no policy: one key signs alone.", account.checked());
        return Ok(ExitCode::SUCCESS);
    };
    print!("{}", words(keys));
    Ok(ExitCode::SUCCESS)
}

/// The keys of an account for people, one line each.
pub fn words(keys: &AccountKeysBody) -> String {
    let mut lines = vec![format!("Last change of keys {}", keys.last)];
    lines.extend(policy_words(&keys.policy));
    if let Some(waiting) = &keys.waiting {
        lines.push(format!(
            "A change by its {} waits; anybody completes it from height {} on:",
            waiting.by, waiting.due
        ));
        lines.extend(policy_words(&waiting.policy));
        lines.push(format!("Session keys: {}", waiting.sessions));
    }
    lines.join("\n") + "\n"
}

fn policy_words(policy: &KeyPolicyBody) -> impl Iterator<Item = String> + '_ {
    let weights = format!(
        "Weight {} spends, weight {} changes keys; a change waits {} heights.",
        policy.moves, policy.govern, policy.delay
    );
    let keys = policy.keys.iter().map(|one| format!("  {:>3}  {}", one.weight, one.key));
    let wallets = policy.wallets.iter().map(|one| format!("  {:>3}  wallet {}", one.weight, one.wallet));
    let guarded =
        (policy.guardians > 0).then(|| format!("{} of these guardians recover the account:", policy.guardians));
    let guardians = policy.guardian_keys.iter().map(|one| format!("       {}", one.key));
    let guardian_wallets = policy.guardian_wallets.iter().map(|one| format!("       wallet {}", one.wallet));
    [weights].into_iter().chain(keys).chain(wallets).chain(guarded).chain(guardians).chain(guardian_wallets)
}
