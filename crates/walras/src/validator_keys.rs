//! The keys of a validator in its home: one signs in consensus, one authenticates links, one controls the account. A
//! home that has only the first uses it for everything.

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use node::{Config, OwnKeys};
use primitives::{PublicKey, SecretKey, Signer, link_key};
use signer::RemoteSigner;
use zeroize::Zeroizing;

use crate::keystore::{self, Passphrase};

/// The key that signs in consensus.
pub const KEY_FILE: &str = "validator-key.json";
/// The key of the links.
pub const LINK_KEY_FILE: &str = "link-key.json";
/// The key of the account that stakes, receives rewards, and accuses.
pub const ACCOUNT_KEY_FILE: &str = "account-key.json";

/// The public halves of newly made keys.
pub struct MadeKeys {
    pub votes: PublicKey,
    pub links: PublicKey,
    pub account: PublicKey,
}

/// Makes all three in a home, under one passphrase.
pub fn make(home: &Path, passphrase: &Zeroizing<String>) -> anyhow::Result<MadeKeys> {
    let key = |name| keystore::create_under(&home.join(name), passphrase).map(|key| key.public());
    Ok(MadeKeys { votes: key(KEY_FILE)?, links: key(LINK_KEY_FILE)?, account: key(ACCOUNT_KEY_FILE)? })
}

/// The keys with which a home's node signs.
///
/// # Errors
/// If a key is missing, does not open, or its signer does not answer.
pub fn open(home: &Path, config: &Config, passphrase: &Passphrase) -> anyhow::Result<OwnKeys> {
    let other = |name: &str| {
        let path = home.join(name);
        path.exists().then(|| keystore::open(&path, passphrase)).transpose()
    };
    let (links, account) = (other(LINK_KEY_FILE)?, other(ACCOUNT_KEY_FILE)?);
    let Some(socket) = &config.network.signer else {
        let own = OwnKeys::one(keystore::open(&home.join(KEY_FILE), passphrase)?);
        return Ok(OwnKeys { links: links.unwrap_or(own.links), account: account.or(own.account), ..own });
    };
    let path = home.join(LINK_KEY_FILE);
    let Some(links) = links else {
        anyhow::bail!(
            "[network] signer needs a separate key for the links: make {} with `walras wallet new`",
            path.display()
        )
    };
    let votes: Arc<dyn Signer> = Arc::new(RemoteSigner::connect(socket)?);
    Ok(OwnKeys { votes, links, account })
}

/// A network address that includes the key of the links beside a validator's key, if there is one.
pub fn with_link_key(address: &str, validator_key: &Path, passphrase: &Passphrase) -> anyhow::Result<String> {
    let path = validator_key.with_file_name(LINK_KEY_FILE);
    let Some((_, host)) = link_key(address) else { return Ok(address.into()) };
    if validator_key.file_name().is_none_or(|name| name != KEY_FILE) || !path.exists() {
        return Ok(address.into());
    }
    let key: SecretKey = keystore::open(&path, passphrase)?;
    Ok(address_of(&key.public(), host))
}

/// A network address that includes the key of the links.
pub fn address_of(links: &PublicKey, host: &str) -> String {
    format!("{}@{host}", primitives::to_hex(&links.0))
}

/// Checks that the registered address does not announce another key of the links than the node's own.
///
/// # Errors
/// If it does: no other validator would accept a link of this node.
pub fn check(address: &str, votes: &PublicKey, links: &PublicKey) -> anyhow::Result<()> {
    let told = link_key(address).and_then(|(key, _)| key).unwrap_or(*votes);
    ensure!(
        told == *links,
        "the registered address says that this validator's links have the key {told}, but {LINK_KEY_FILE} is {links}: \
         restore the right file, or change the address with `walras wallet stake --validator-key … --address …`"
    );
    Ok(())
}
