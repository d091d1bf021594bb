//! Keys on disk: encrypted with a passphrase (Argon2id, XChaCha20-Poly1305), readable only by their owner.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use primitives::{Address, SecretKey, from_hex, to_hex};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Argon2id with one lane for new keys: 64 MiB, 3 passes. Tests open hundreds of keys: a debug build takes the setting
/// of OWASP that needs the least memory. A file names its setting, so every build opens every key.
const MEMORY_KIB: u32 = if cfg!(debug_assertions) { 7 << 10 } else { 64 << 10 };
const PASSES: u32 = if cfg!(debug_assertions) { 5 } else { 3 };
/// Maximum that a file may request, so that no file makes a wallet use gigabytes.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const PASSES_MAX: u32 = 16;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    address: String,
    public_key: String,
    argon2id: Kdf,
    xchacha20poly1305: Sealed,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kdf {
    memory_kib: u32,
    passes: u32,
    salt: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    nonce: String,
    ciphertext: String,
}

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

fn cipher(passphrase: &str, kdf: &Kdf) -> anyhow::Result<XChaCha20Poly1305> {
    ensure!(
        kdf.memory_kib <= MEMORY_KIB_MAX && kdf.passes <= PASSES_MAX,
        "the file requests {} KiB and {} passes; at most {MEMORY_KIB_MAX} and {PASSES_MAX} are allowed",
        kdf.memory_kib,
        kdf.passes
    );
    let params =
        Params::new(kdf.memory_kib, kdf.passes, 1, Some(32)).map_err(|error| anyhow::anyhow!("argon2id: {error}"))?;
    let salt: [u8; 16] = from_hex(&kdf.salt).context("salt")?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), &salt, &mut *key)
        .map_err(|error| anyhow::anyhow!("argon2id: {error}"))?;
    Ok(XChaCha20Poly1305::new((&*key).into()))
}

fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("the system provides no random numbers")?;
    Ok(bytes)
}

/// Makes a key and writes it; refuses to overwrite.
pub fn create(path: &Path, passphrase: &Passphrase) -> anyhow::Result<SecretKey> {
    // Checked before any prompt.
    ensure!(!path.exists(), "{} exists; a key is never overwritten", path.display());
    create_under(path, &passphrase.read_new()?)
}

/// Makes a key with a known passphrase and writes it; refuses to overwrite.
pub fn create_under(path: &Path, passphrase: &Zeroizing<String>) -> anyhow::Result<SecretKey> {
    let key = SecretKey::from_seed(*Zeroizing::new(random::<32>()?));
    seal(path, &key, passphrase)?;
    Ok(key)
}

/// Writes a known key; refuses to overwrite.
pub fn write(path: &Path, key: &SecretKey, passphrase: &Passphrase) -> anyhow::Result<()> {
    ensure!(!path.exists(), "{} exists; a key is never overwritten", path.display());
    seal(path, key, &passphrase.read_new()?)
}

fn seal(path: &Path, key: &SecretKey, passphrase: &Zeroizing<String>) -> anyhow::Result<()> {
    ensure!(!path.exists(), "{} exists; a key is never overwritten", path.display());
    let bytes = sealed(key, passphrase)?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    }
    let mut out = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| path.display().to_string())?;
    out.write_all(&bytes)?;
    out.sync_all()?;
    Ok(())
}

/// The bytes of a key's file.
pub fn sealed(key: &SecretKey, passphrase: &str) -> anyhow::Result<Vec<u8>> {
    let seed = Zeroizing::new(key.to_seed());
    let kdf = Kdf { memory_kib: MEMORY_KIB, passes: PASSES, salt: to_hex(&random::<16>()?) };
    let nonce = random::<24>()?;
    let address = key.public().address().to_string();
    let payload = Payload { msg: &*seed, aad: address.as_bytes() };
    let sealed = cipher(passphrase, &kdf)?.encrypt(&XNonce::from(nonce), payload);
    let ciphertext = sealed.map_err(|_| anyhow::anyhow!("the key cannot be encrypted"))?;
    let file = File {
        version: 1,
        address,
        public_key: key.public().to_string(),
        argon2id: kdf,
        xchacha20poly1305: Sealed { nonce: to_hex(&nonce), ciphertext: to_hex(&ciphertext) },
    };
    Ok((serde_json::to_string_pretty(&file)? + "\n").into_bytes())
}

fn read(path: &Path) -> anyhow::Result<File> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &[u8]) -> anyhow::Result<File> {
    let file: File = serde_json::from_slice(text).context("this is not a key file")?;
    ensure!(file.version == 1, "key file version {} is newer than this software", file.version);
    Ok(file)
}

/// The address of a key, without its passphrase.
pub fn address(path: &Path) -> anyhow::Result<Address> {
    Ok(read(path)?.address.parse()?)
}

/// Opens a key.
pub fn open(path: &Path, passphrase: &Passphrase) -> anyhow::Result<SecretKey> {
    let file = read_own(path)?;
    unsealed(&file, &passphrase.known()?).with_context(|| path.display().to_string())
}

/// Opens a key with a known passphrase.
pub fn open_under(path: &Path, passphrase: &str) -> anyhow::Result<SecretKey> {
    unsealed(&read_own(path)?, passphrase).with_context(|| path.display().to_string())
}

/// Reads a key file, which only its owner may be able to read.
fn read_own(path: &Path) -> anyhow::Result<File> {
    let file = read(path)?;
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o077;
    ensure!(mode == 0, "{} can be read by other users: run chmod 600 on it first", path.display());
    Ok(file)
}

/// The key in the bytes of its file.
pub fn opened(bytes: &[u8], passphrase: &str) -> anyhow::Result<SecretKey> {
    unsealed(&parse(bytes)?, passphrase)
}

fn unsealed(file: &File, passphrase: &str) -> anyhow::Result<SecretKey> {
    let cipher = cipher(passphrase, &file.argon2id)?;
    let nonce: [u8; 24] = from_hex(&file.xchacha20poly1305.nonce).context("nonce")?;
    let ciphertext: [u8; 48] = from_hex(&file.xchacha20poly1305.ciphertext).context("ciphertext")?;
    let payload = Payload { msg: &ciphertext, aad: file.address.as_bytes() };
    let Ok(seed) = cipher.decrypt(&XNonce::from(nonce), payload) else {
        bail!("the passphrase is wrong, or the file is damaged");
    };
    let seed = Zeroizing::new(seed);
    let key = SecretKey::from_seed(seed.as_slice().try_into().context("the file holds no 32-byte seed")?);
    ensure!(key.public().address().to_string() == file.address, "the address in the file does not belong to the key");
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_and_mistakes_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("written");
            Passphrase { passphrase_file: Some(path) }
        };
        let (right, wrong) = (write("right", "correct horse\n"), write("wrong", "battery staple\n"));
        let path = dir.path().join("keys/a.json");
        let key = create(&path, &right).expect("made");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(open(&path, &right).expect("opens").to_seed(), key.to_seed());
        assert_eq!(address(&path).expect("reads"), key.public().address());
        assert!(!std::fs::read_to_string(&path).expect("reads").contains(&to_hex(&key.to_seed())));
        let refused = |result: anyhow::Result<SecretKey>, words: &str| {
            let message = format!("{:#}", result.err().expect("refused"));
            assert!(message.contains(words), "{message}");
        };
        refused(open(&path, &wrong), "passphrase is wrong");
        refused(create(&path, &right), "never overwritten");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
        refused(open(&path, &right), "chmod 600");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
        let asks = |memory_kib: u32| format!("\"memory_kib\": {memory_kib}");
        let text = std::fs::read_to_string(&path).expect("reads").replace(&asks(MEMORY_KIB), &asks(99_999_999));
        std::fs::write(&path, text).expect("written");
        refused(open(&path, &right), "at most");
    }
}
