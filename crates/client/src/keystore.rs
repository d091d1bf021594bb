//! Keys on disk: encrypted with a passphrase (Argon2id, XChaCha20-Poly1305), readable only by their owner.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
/// The passphrase of demos. Everybody knows it, so a long hash of it would protect nothing: it takes the least.
pub const PUBLIC_PASSPHRASE: &str = "demo";
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

/// Why a key cannot be made, kept or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file is there already.
    #[error("{} exists; a key is never overwritten", .0.display())]
    Exists(PathBuf),
    /// Others can read the file.
    #[error("{} can be read by other users: run chmod 600 on it first", .0.display())]
    Exposed(PathBuf),
    /// The system refuses.
    #[error("{}: {cause}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The bytes are no key file, or a damaged one.
    #[error("this is not a key file: {0}")]
    Damaged(String),
    /// The file is of a later version.
    #[error("key file version {0} is newer than this software")]
    Version(u32),
    /// Opening it would take too much memory or time.
    #[error("the file requests {0} KiB and {1} passes; at most {MEMORY_KIB_MAX} and {PASSES_MAX} are allowed")]
    Costly(u32, u32),
    /// The passphrase does not open it.
    #[error("the passphrase is wrong, or the file is damaged")]
    Passphrase,
    /// The system has no random numbers, or the cipher refuses.
    #[error("the key cannot be encrypted: {0}")]
    Sealing(String),
    /// About a file.
    #[error("{}: {error}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<KeyError>,
    },
}

impl KeyError {
    fn disk(path: &Path) -> impl FnOnce(io::Error) -> KeyError {
        move |cause| KeyError::Disk { path: path.into(), cause }
    }

    fn within(self, path: &Path) -> KeyError {
        KeyError::In { path: path.into(), error: Box::new(self) }
    }
}

fn cipher(passphrase: &str, kdf: &Kdf) -> Result<XChaCha20Poly1305, KeyError> {
    if kdf.memory_kib > MEMORY_KIB_MAX || kdf.passes > PASSES_MAX {
        return Err(KeyError::Costly(kdf.memory_kib, kdf.passes));
    }
    let damaged = |error: argon2::Error| KeyError::Damaged(format!("argon2id: {error}"));
    let params = Params::new(kdf.memory_kib, kdf.passes, 1, Some(32)).map_err(damaged)?;
    let salt: [u8; 16] = field("salt", &kdf.salt)?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), &salt, &mut *key)
        .map_err(damaged)?;
    Ok(XChaCha20Poly1305::new((&*key).into()))
}

fn field<const N: usize>(name: &str, hexadecimal: &str) -> Result<[u8; N], KeyError> {
    from_hex(hexadecimal).map_err(|error| KeyError::Damaged(format!("{name}: {error}")))
}

fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    let none = |error| KeyError::Sealing(format!("the system provides no random numbers: {error}"));
    getrandom::fill(&mut bytes).map_err(none)?;
    Ok(bytes)
}

/// Refuses a path at which there is a file.
///
/// # Errors
/// [`KeyError::Exists`].
pub fn refuse_existing(path: &Path) -> Result<(), KeyError> {
    if path.exists() { Err(KeyError::Exists(path.into())) } else { Ok(()) }
}

/// Makes a key and writes it; refuses to overwrite.
///
/// # Errors
/// [`KeyError`].
pub fn create_under(path: &Path, passphrase: &str) -> Result<SecretKey, KeyError> {
    let key = SecretKey::from_seed(*Zeroizing::new(random::<32>()?));
    write_under(path, &key, passphrase)?;
    Ok(key)
}

/// Writes a known key; refuses to overwrite.
///
/// # Errors
/// [`KeyError`].
pub fn write_under(path: &Path, key: &SecretKey, passphrase: &str) -> Result<(), KeyError> {
    refuse_existing(path)?;
    let bytes = sealed(key, passphrase)?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(KeyError::disk(parent))?;
    }
    // It gets its name once it is whole: a disk that is full leaves no key that cannot be opened.
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut unfinished = tempfile::Builder::new().prefix(".").suffix(".unfinished").tempfile_in(folder)?;
        unfinished.write_all(&bytes)?;
        unfinished.as_file().sync_all()?;
        unfinished.persist_noclobber(path).map_err(|error| error.error)?;
        std::fs::File::open(folder)?.sync_all()
    };
    write().map_err(KeyError::disk(path))
}

/// The bytes of a key's file.
///
/// # Errors
/// [`KeyError::Sealing`].
pub fn sealed(key: &SecretKey, passphrase: &str) -> Result<Vec<u8>, KeyError> {
    let seed = Zeroizing::new(key.to_seed());
    let (memory_kib, passes) =
        if passphrase == PUBLIC_PASSPHRASE { (Params::MIN_M_COST, Params::MIN_T_COST) } else { (MEMORY_KIB, PASSES) };
    let kdf = Kdf { memory_kib, passes, salt: to_hex(&random::<16>()?) };
    let nonce = random::<24>()?;
    let address = key.public().address().to_string();
    let payload = Payload { msg: &*seed, aad: address.as_bytes() };
    let sealed = cipher(passphrase, &kdf)?.encrypt(&XNonce::from(nonce), payload);
    let ciphertext = sealed.map_err(|error| KeyError::Sealing(error.to_string()))?;
    let file = File {
        version: 1,
        address,
        public_key: key.public().to_string(),
        argon2id: kdf,
        xchacha20poly1305: Sealed { nonce: to_hex(&nonce), ciphertext: to_hex(&ciphertext) },
    };
    let text = serde_json::to_string_pretty(&file).map_err(|error| KeyError::Sealing(error.to_string()))?;
    Ok((text + "\n").into_bytes())
}

fn read(path: &Path) -> Result<File, KeyError> {
    let text = std::fs::read(path).map_err(KeyError::disk(path))?;
    parse(&text).map_err(|error| error.within(path))
}

fn parse(text: &[u8]) -> Result<File, KeyError> {
    let file: File = serde_json::from_slice(text).map_err(|error| KeyError::Damaged(error.to_string()))?;
    if file.version == 1 { Ok(file) } else { Err(KeyError::Version(file.version)) }
}

/// The address of a key, without its passphrase.
///
/// # Errors
/// [`KeyError`].
pub fn address(path: &Path) -> Result<Address, KeyError> {
    let text = read(path)?.address;
    text.parse().map_err(|_| KeyError::Damaged(format!("address {text:?}")).within(path))
}

/// Refuses a key file that others can read.
///
/// # Errors
/// [`KeyError`].
pub fn check_private(path: &Path) -> Result<(), KeyError> {
    let mode = std::fs::metadata(path).map_err(KeyError::disk(path))?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { Err(KeyError::Exposed(path.into())) }
}

/// Opens a key, whose file only its owner may be able to read.
///
/// # Errors
/// [`KeyError`].
pub fn open_under(path: &Path, passphrase: &str) -> Result<SecretKey, KeyError> {
    let file = read(path)?;
    check_private(path)?;
    unsealed(&file, passphrase).map_err(|error| error.within(path))
}

/// The key in the bytes of its file.
///
/// # Errors
/// [`KeyError`].
pub fn opened(bytes: &[u8], passphrase: &str) -> Result<SecretKey, KeyError> {
    unsealed(&parse(bytes)?, passphrase)
}

fn unsealed(file: &File, passphrase: &str) -> Result<SecretKey, KeyError> {
    let cipher = cipher(passphrase, &file.argon2id)?;
    let nonce: [u8; 24] = field("nonce", &file.xchacha20poly1305.nonce)?;
    let ciphertext: [u8; 48] = field("ciphertext", &file.xchacha20poly1305.ciphertext)?;
    let payload = Payload { msg: &ciphertext, aad: file.address.as_bytes() };
    let seed = Zeroizing::new(cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| KeyError::Passphrase)?);
    let none = || KeyError::Damaged("the file holds no 32-byte seed".into());
    let key = SecretKey::from_seed(seed.as_slice().try_into().map_err(|_| none())?);
    if key.public().address().to_string() == file.address {
        return Ok(key);
    }
    Err(KeyError::Damaged("the address in the file does not belong to the key".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_and_mistakes_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let (right, wrong) = ("correct horse", "battery staple");
        let path = dir.path().join("keys/a.json");
        let key = create_under(&path, right).expect("made");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(open_under(&path, right).expect("opens").to_seed(), key.to_seed());
        assert_eq!(address(&path).expect("reads"), key.public().address());
        assert!(!std::fs::read_to_string(&path).expect("reads").contains(&to_hex(&key.to_seed())));
        let refused = |result: Result<SecretKey, KeyError>, words: &str| {
            let message = result.err().expect("refused").to_string();
            assert!(message.contains(words), "{message}");
        };
        refused(open_under(&path, wrong), "passphrase is wrong");
        refused(create_under(&path, right), "never overwritten");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
        refused(open_under(&path, right), "chmod 600");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
        let asks = |memory_kib: u32| format!("\"memory_kib\": {memory_kib}");
        let text = std::fs::read_to_string(&path).expect("reads").replace(&asks(MEMORY_KIB), &asks(99_999_999));
        std::fs::write(&path, text).expect("written");
        refused(open_under(&path, right), "at most");
        // Only the passphrase that everybody knows is hashed at no cost.
        let public = dir.path().join("public.json");
        let key = create_under(&public, PUBLIC_PASSPHRASE).expect("made");
        assert_eq!(open_under(&public, PUBLIC_PASSPHRASE).expect("opens").to_seed(), key.to_seed());
        assert!(std::fs::read_to_string(&public).expect("reads").contains(&asks(Params::MIN_M_COST)));
    }
}
