//! The keys of a purse: H(seed, salt, index). A restored purse draws another salt, so two copies of a purse never make
//! the same key.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use primitives::{Address, Digest, PublicKey, SecretKey, to_hex};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::error::PurseError;
use super::files::{read_json, write_json};
use crate::error::ClientError;

const KEY_CONTEXT: &str = "walras 2026 purse key v1";
/// Number of keys, beyond the last known one, among which a restored purse looks for keys of its earlier life.
const LOST_KEYS: u32 = 1_000;

/// The seed, kept only while keys are made of it.
pub struct Seed(Zeroizing<[u8; 32]>);

impl Seed {
    pub(super) fn of(key: &SecretKey) -> Seed {
        Seed(Zeroizing::new(key.to_seed()))
    }

    fn key(&self, salt: &str, index: u32) -> SecretKey {
        let bytes = Zeroizing::new([&self.0[..], salt.as_bytes(), &index.to_le_bytes()].concat());
        SecretKey::from_seed(Digest::of(KEY_CONTEXT, &bytes).0)
    }
}

/// A key, as its file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PurseKey {
    public: String,
    salt: String,
    index: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Keys {
    /// Salt of the next key.
    salt: String,
    keys: Vec<PurseKey>,
}

/// The keys that a purse has made of its seed: public halves, in a file of its folder.
#[derive(Clone, Debug)]
pub struct KeyRing {
    path: PathBuf,
    file: Keys,
    /// Where each key is in the file.
    at: BTreeMap<PublicKey, usize>,
}

fn random_salt() -> Result<String, PurseError> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|_| PurseError::NoRandomness)?;
    Ok(to_hex(&salt))
}

impl KeyRing {
    pub(super) fn create(path: &Path) -> Result<(), PurseError> {
        Ok(write_json(path, &Keys { salt: random_salt()?, keys: Vec::new() })?)
    }

    pub(super) fn open(path: &Path) -> Result<KeyRing, ClientError> {
        let file: Keys = read_json(path)?;
        let mut at = BTreeMap::new();
        for (index, key) in file.keys.iter().enumerate() {
            // A key that is left out would hide its money.
            let wrong =
                || ClientError::contents(path, format!("{:?} is no key: restore the purse from a copy", key.public));
            at.insert(key.public.parse().map_err(|_| wrong())?, index);
        }
        Ok(KeyRing { path: path.into(), file, at })
    }

    /// Makes a key and stores it durably.
    ///
    /// # Errors
    /// [`ClientError`] of the disk.
    pub fn make(&mut self, seed: &Seed) -> Result<SecretKey, ClientError> {
        let own = self.file.keys.iter().filter(|key| key.salt == self.file.salt);
        let index = own.map(|key| key.index + 1).max().unwrap_or(0);
        let salt = self.file.salt.clone();
        let key = seed.key(&salt, index);
        self.remember(salt, index, &key)?;
        Ok(key)
    }

    fn remember(&mut self, salt: String, index: u32, key: &SecretKey) -> Result<(), ClientError> {
        self.at.insert(key.public(), self.file.keys.len());
        self.file.keys.push(PurseKey { public: key.public().to_string(), salt, index });
        write_json(&self.path, &self.file)
    }

    /// Whether the purse owns a key.
    pub fn owns(&self, key: &PublicKey) -> bool {
        self.at.contains_key(key)
    }

    /// The secret half of a public key.
    ///
    /// # Errors
    /// [`PurseError::NotOwned`], or [`PurseError::OtherSeed`] if the seed is of another purse.
    pub fn secret(&self, seed: &Seed, public: &PublicKey) -> Result<SecretKey, PurseError> {
        let known = &self.file.keys[*self.at.get(public).ok_or(PurseError::NotOwned(*public))?];
        let key = seed.key(&known.salt, known.index);
        if key.public() == *public { Ok(key) } else { Err(PurseError::OtherSeed) }
    }

    /// The secret key of one of the purse's ledger accounts.
    ///
    /// # Errors
    /// [`PurseError::NoAccount`], or [`PurseError::OtherSeed`].
    pub fn secret_of_account(&self, seed: &Seed, account: &Address) -> Result<SecretKey, PurseError> {
        let public = self.at.keys().find(|key| key.address() == *account);
        self.secret(seed, public.ok_or(PurseError::NoAccount(*account))?)
    }

    /// The ledger accounts of all keys.
    pub fn accounts(&self) -> Vec<Address> {
        self.at.keys().map(PublicKey::address).collect()
    }

    /// Draws another salt for later keys.
    pub(super) fn renew_salt(&mut self) -> Result<(), PurseError> {
        self.file.salt = random_salt()?;
        Ok(write_json(&self.path, &self.file)?)
    }

    /// Looks among `wanted` for keys of an earlier life of the purse, and keeps those that it finds.
    ///
    /// # Errors
    /// [`ClientError`] of the disk.
    pub fn find_lost(&mut self, seed: &Seed, wanted: &[PublicKey]) -> Result<(), ClientError> {
        let unknown: BTreeSet<PublicKey> = wanted.iter().filter(|key| !self.owns(key)).copied().collect();
        if unknown.is_empty() {
            return Ok(());
        }
        // The last known index of each salt.
        let mut salts = BTreeMap::from([(self.file.salt.clone(), 0)]);
        for key in &self.file.keys {
            let last = salts.entry(key.salt.clone()).or_insert(0);
            *last = key.index.max(*last);
        }
        for (salt, last) in salts {
            for index in last..last.saturating_add(LOST_KEYS) {
                let key = seed.key(&salt, index);
                if unknown.contains(&key.public()) && !self.owns(&key.public()) {
                    self.remember(salt.clone(), index, &key)?;
                }
            }
        }
        Ok(())
    }
}
