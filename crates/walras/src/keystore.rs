//! Key files for commands: the passphrase comes from a file, the environment or a prompt.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
pub use client::keystore::{address, create_under, open_under, opened, sealed};
use primitives::SecretKey;
use zeroize::Zeroizing;

/// The source of a passphrase.
#[derive(clap::Args, Clone)]
pub struct Passphrase {
    /// File whose first line is the passphrase; otherwise WALRAS_PASSPHRASE, otherwise a prompt.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl Passphrase {
    /// The first line of a file.
    pub fn of_file(path: PathBuf) -> Passphrase {
        Passphrase { passphrase_file: Some(path) }
    }

    /// The first line of the file, if given; otherwise the environment, otherwise a prompt.
    pub fn of(passphrase_file: Option<PathBuf>) -> Passphrase {
        Passphrase { passphrase_file }
    }

    /// Reads the passphrase of existing keys.
    pub fn known(&self) -> anyhow::Result<Zeroizing<String>> {
        self.read("Passphrase: ")
    }

    fn read(&self, prompt: &str) -> anyhow::Result<Zeroizing<String>> {
        if let Some(path) = &self.passphrase_file {
            let text = Zeroizing::new(std::fs::read_to_string(path).with_context(|| path.display().to_string())?);
            return Ok(Zeroizing::new(text.lines().next().unwrap_or("").to_string()));
        }
        if let Ok(passphrase) = std::env::var("WALRAS_PASSPHRASE") {
            return Ok(Zeroizing::new(passphrase));
        }
        let asked = rpassword::prompt_password(prompt);
        asked
            .map(Zeroizing::new)
            .context("no terminal to ask for the passphrase: give --passphrase-file or WALRAS_PASSPHRASE")
    }

    /// Reads the passphrase of a new key: prompted for twice.
    pub fn read_new(&self) -> anyhow::Result<Zeroizing<String>> {
        let passphrase = self.read("New passphrase: ")?;
        ensure!(!passphrase.is_empty(), "the passphrase is empty");
        if self.passphrase_file.is_none() && std::env::var_os("WALRAS_PASSPHRASE").is_none() {
            ensure!(*passphrase == *self.read("Repeat it: ")?, "the passphrases differ");
        }
        Ok(passphrase)
    }
}

/// Makes a key and writes it; refuses to overwrite.
pub fn create(path: &Path, passphrase: &Passphrase) -> anyhow::Result<SecretKey> {
    // Checked before any prompt.
    client::keystore::refuse_existing(path)?;
    Ok(create_under(path, &passphrase.read_new()?)?)
}

/// Writes a known key; refuses to overwrite.
pub fn write(path: &Path, key: &SecretKey, passphrase: &Passphrase) -> anyhow::Result<()> {
    client::keystore::refuse_existing(path)?;
    Ok(client::keystore::write_under(path, key, &passphrase.read_new()?)?)
}

/// Opens a key.
pub fn open(path: &Path, passphrase: &Passphrase) -> anyhow::Result<SecretKey> {
    client::keystore::check_private(path)?;
    Ok(open_under(path, &passphrase.known()?)?)
}
