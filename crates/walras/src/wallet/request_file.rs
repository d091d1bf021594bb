//! A file that signers of an account with a policy pass on: what they sign, and their signatures so far.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use client::hexadecimal::hex_bytes;
use primitives::{
    Address, Body, ChangedBy, Digest, KeySignatures, KeysChange, Operation, PolicySigned, PublicKey, RecoverKeys,
    SecretKey, SetKeys, Transaction, TypedData, WalletSignature, policy_salt, to_hex,
};
use serde::{Deserialize, Serialize};

/// The first field of a file: what it is.
const FORMAT: &str = "walras request 1";
/// What a file asks its readers to sign.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    /// A request of the account.
    Request { body: Body, last: Digest },
    /// Another policy, by those who govern; with the key whose hash is the address.
    Set(KeysChange, PublicKey),
    /// Another policy, by the guardians.
    Recover(KeysChange),
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
    pub(super) fn typed(&self) -> TypedData {
        match &self.asked {
            Asked::Request { body, .. } => TypedData::of(body),
            Asked::Set(change, _) => TypedData::of_change(change, ChangedBy::Signers),
            Asked::Recover(change) => TypedData::of_change(change, ChangedBy::Guardians),
        }
    }

    pub(super) fn salt(&self) -> Digest {
        policy_salt(&self.network, &self.account(), &self.last())
    }

    fn hash(&self) -> [u8; 32] {
        self.typed().hash(self.chain, &self.salt())
    }

    /// What is signed, field by field, from the bytes alone.
    pub(super) fn words(&self) -> Vec<String> {
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

    pub(super) fn transaction(&self) -> anyhow::Result<Transaction> {
        match &self.asked {
            Asked::Request { body, last } => Ok(Transaction::by_policy(body.clone(), *last, self.signatures.clone())),
            _ => bail!("the file has a change of keys: send it by `walras wallet keys send --file … --key …`"),
        }
    }
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
