//! `walras signer`: holds a validator's key in a process other than its node.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use signer::Guard;
use store::RealDisk;

use crate::keystore::{self, Passphrase};

/// Holds a validator's key, and signs for its node only what does not contradict its earlier signatures.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras signer --key validator-key.json --guard ./guard --socket ./signer.sock --new   # a key that has never signed
  walras signer --key validator-key.json --guard ./guard --socket ./signer.sock

In the node's walras.toml: [network] signer = \"/path/to/signer.sock\". The node then needs no validator-key.json; it
keeps link-key.json. A process that can open the socket can have anything signed once: only its owner can access it.

The guard's folder is the log of what was signed. Never copy it to run it twice, never restore an older copy of it. A
signer that finds no log in it refuses to start, because it cannot know what it signed.")]
pub struct SignerCommand {
    /// The validator's key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Folder with the log of what was signed.
    #[arg(long, value_name = "DIR")]
    guard: PathBuf,
    /// Socket to listen on.
    #[arg(long, value_name = "FILE")]
    socket: PathBuf,
    /// Start the log of a key that has never signed anything, here or in a node.
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl SignerCommand {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let disk = || RealDisk::new(&self.guard).with_context(|| self.guard.display().to_string());
        let key = keystore::open(&self.key, &self.passphrase)?;
        if self.new {
            Guard::create(disk()?)?;
        }
        let guard = Guard::open(disk()?, key).map_err(|error| match error {
            signer::GuardError::Store(store::StoreError::VotesLost(place)) => anyhow::anyhow!(
                "{place} holds no log of what was signed: restore it, or add --new if the key never signed anything"
            ),
            error => error.into(),
        })?;
        println!("signing for {} at {}", guard.public(), self.socket.display());
        signer::serve(guard, &self.socket).with_context(|| self.socket.display().to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}
