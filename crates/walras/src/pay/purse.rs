//! A purse: a folder with a seed, the keys made of it, and the proofs of its money.
//!
//! | file | contents |
//! |---|---|
//! | `lane.json` | the lane that the purse is for, pinned when it was made |
//! | `proved-epochs.json` | the keys of lane epochs, which the ledger has proved (see `ledger_trust.rs`) |
//! | `validators.json` | the chain's newest validators that were proved, where they change |
//! | `seed.json` | the seed, encrypted like other keys |
//! | `keys.json` | the public keys made of the seed: one for each deposit, address and change |
//! | `deposits/` | withdrawals from the ledger that become outputs |
//! | `received/` | receipts of others' payments, and marks of those that are settled |
//! | `outbox/` | payments, durable before they are first sent, with their certificates |
//! | `posted/` | marks of payments whose certificate is in the ledger |
//! | `contested/` | marks of payments whose money the ledger was asked to decide about |
//! | `device` | a file that copies of the folder do not match: it shows a purse that it was restored |
//!
//! The purse's balance follows from these files: outputs of deposits, of received receipts and of own payments, minus
//! what own payments spend. A file gets its name once it is durable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use lane::{Outbox, SentPayment};
use payments::{FastReceipt, Holding, HomeEpoch, OutputId, OutputProof, PaymentView, REDEEM_EPOCHS, Recipient};
use primitives::{Address, Digest, PublicKey, SecretKey, TransactionId, to_hex};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Disk, RealDisk};
use zeroize::Zeroizing;

use super::deposit_file::Deposit;
use super::files::{CONTESTED, DEPOSITS, LANE, OUTBOX, POSTED, RECEIVED, read_json, write_json};
use super::held::Held;
use super::network::LaneNetwork;
use super::slip::Slip;
use crate::durable::write_durable;
use crate::keystore::{self, Passphrase};

const SEED: &str = "seed.json";
const KEYS: &str = "keys.json";
const DEVICE: &str = "device";
const DEVICE_MARK: &str = "device.json";
const SETTLED: &str = ".settled";
const KEY_CONTEXT: &str = "walras 2026 purse key v1";
/// Number of keys, beyond the last known one, among which a restored purse looks for keys of its earlier life.
const LOST_KEYS: u32 = 1_000;

/// A key of the purse: H(seed, salt, index). A restored purse draws another salt, so two copies of a purse never make
/// the same key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PurseKey {
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

/// The contents of a purse.
#[derive(Default)]
pub struct PurseContents {
    /// Outputs that no own payment spends.
    pub held: Vec<Held>,
    /// Outputs that own payments spend.
    pub spent: BTreeMap<OutputId, Held>,
    /// Own payments, by digest.
    pub sent: Vec<SentPayment>,
    /// Deposits that are not outputs yet.
    pub deposits: Vec<Deposit>,
}

/// The seed, kept only while keys are made of it.
pub struct Seed(Zeroizing<[u8; 32]>);

impl Seed {
    fn key(&self, salt: &str, index: u32) -> SecretKey {
        let bytes = Zeroizing::new([&self.0[..], salt.as_bytes(), &index.to_le_bytes()].concat());
        SecretKey::from_seed(Digest::of(KEY_CONTEXT, &bytes).0)
    }
}

/// See the module text.
pub struct Purse {
    folder: PathBuf,
    pub network: LaneNetwork,
    keys: Keys,
    pub outbox: Outbox<RealDisk>,
    /// Excludes other commands.
    _lock: File,
}

fn random_salt() -> anyhow::Result<String> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).context("the system provides no random numbers")?;
    Ok(to_hex(&salt))
}

fn lock(disk: &RealDisk, folder: &Path) -> anyhow::Result<File> {
    let lock = disk.lock().with_context(|| folder.display().to_string())?;
    lock.with_context(|| format!("{}: another command uses this purse; wait until it has ended", folder.display()))
}

impl Purse {
    /// Makes a purse for a lane.
    pub fn create(folder: &Path, network: &LaneNetwork, passphrase: &Passphrase) -> anyhow::Result<()> {
        ensure!(!folder.join(LANE).exists(), "{} is a purse already; choose another --purse", folder.display());
        let disk = RealDisk::new(folder).with_context(|| folder.display().to_string())?;
        let _lock = lock(&disk, folder)?;
        for part in [DEPOSITS, RECEIVED, POSTED, CONTESTED, OUTBOX] {
            RealDisk::new(folder.join(part)).with_context(|| folder.join(part).display().to_string())?;
        }
        let seed = folder.join(SEED);
        if !seed.exists() {
            keystore::create(&seed, passphrase)?;
        }
        write_json(&folder.join(KEYS), &Keys { salt: random_salt()?, keys: Vec::new() })?;
        mark_device(folder)?;
        // The last file makes it a purse.
        write_json(&folder.join(LANE), &network.encode())
    }

    /// Opens a purse; no other command can use it meanwhile.
    pub fn open(folder: &Path) -> anyhow::Result<Purse> {
        let missing = || format!("{0} is not a purse; make one with: walras pay new --purse {0}", folder.display());
        ensure!(folder.join(LANE).exists(), missing());
        let disk = RealDisk::existing(folder).with_context(|| folder.display().to_string())?;
        let _lock = lock(&disk, folder)?;
        super::plan::finish(folder)?;
        let outbox = folder.join(OUTBOX);
        let outbox = Outbox::new(RealDisk::new(&outbox).with_context(|| outbox.display().to_string())?);
        let network = read_network(folder)?;
        let keys: Keys = read_json(&folder.join(KEYS))?;
        // A key that is left out would hide its money.
        for PurseKey { public, .. } in &keys.keys {
            let damaged =
                || format!("{}: {public:?} is no key: restore the purse from a copy", folder.join(KEYS).display());
            public.parse::<PublicKey>().ok().with_context(damaged)?;
        }
        Ok(Purse { folder: folder.into(), network, keys, outbox, _lock })
    }

    pub fn seed(&self, passphrase: &Passphrase) -> anyhow::Result<Seed> {
        Ok(Seed(Zeroizing::new(keystore::open(&self.folder.join(SEED), passphrase)?.to_seed())))
    }

    /// Makes a key and stores it durably.
    pub fn new_key(&mut self, seed: &Seed) -> anyhow::Result<SecretKey> {
        let index = self.keys.keys.iter().filter(|key| key.salt == self.keys.salt).map(|key| key.index + 1).max();
        let (salt, index) = (self.keys.salt.clone(), index.unwrap_or(0));
        let key = seed.key(&salt, index);
        self.remember_key(salt, index, &key)?;
        Ok(key)
    }

    fn remember_key(&mut self, salt: String, index: u32, key: &SecretKey) -> anyhow::Result<()> {
        self.keys.keys.push(PurseKey { public: key.public().to_string(), salt, index });
        write_json(&self.folder.join(KEYS), &self.keys)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn owned(&self) -> BTreeMap<PublicKey, &PurseKey> {
        self.keys.keys.iter().filter_map(|key| Some((key.public.parse().ok()?, key))).collect()
    }

    /// The secret key of one of the purse's public keys.
    pub fn secret(&self, seed: &Seed, public: &PublicKey) -> anyhow::Result<SecretKey> {
        let owned = self.owned();
        let known = owned.get(public).with_context(|| format!("{public} is not a key of this purse"))?;
        let key = seed.key(&known.salt, known.index);
        ensure!(key.public() == *public, "{SEED} and {KEYS} belong to different purses: restore both from one copy");
        Ok(key)
    }

    /// The secret key of one of the purse's ledger accounts.
    pub fn secret_of_account(&self, seed: &Seed, account: &Address) -> anyhow::Result<SecretKey> {
        let owned = self.owned();
        let public = owned.keys().find(|key| key.address() == *account);
        self.secret(seed, public.with_context(|| format!("{account} is not the account of a key of this purse"))?)
    }

    /// The ledger accounts of all its keys.
    pub fn accounts(&self) -> Vec<Address> {
        self.owned().keys().map(PublicKey::address).collect()
    }

    /// Whether the purse owns a key.
    pub fn owns(&self, key: &PublicKey) -> bool {
        self.owned().contains_key(key)
    }

    /// Whether the folder is a copy, or was restored from one.
    pub fn is_copy(&self) -> bool {
        let mark = read_json::<Value>(&self.folder.join(DEVICE_MARK));
        !matches!((mark, device(&self.folder)), (Ok(mark), Ok(device)) if mark == device)
    }

    /// Records that the purse knows what was spent, so it no longer counts as a copy. New keys use another salt.
    pub fn settle_in(&mut self) -> anyhow::Result<()> {
        self.keys.salt = random_salt()?;
        write_json(&self.folder.join(KEYS), &self.keys)?;
        mark_device(&self.folder)
    }

    /// Looks for keys of its earlier life among these, and keeps those that it finds.
    pub fn find_lost_keys(&mut self, seed: &Seed, wanted: &[PublicKey]) -> anyhow::Result<()> {
        let salts: BTreeMap<String, u32> = self.keys.keys.iter().fold(BTreeMap::new(), |mut salts, key| {
            let last = salts.entry(key.salt.clone()).or_insert(0);
            *last = key.index.max(*last);
            salts
        });
        let present = (self.keys.salt.clone(), 0);
        let unknown: BTreeSet<PublicKey> = wanted.iter().filter(|key| !self.owns(key)).copied().collect();
        if unknown.is_empty() {
            return Ok(());
        }
        for (salt, last) in salts.into_iter().chain([present]).collect::<BTreeMap<_, _>>() {
            for index in last..last.saturating_add(LOST_KEYS) {
                let key = seed.key(&salt, index);
                if unknown.contains(&key.public()) && !self.owns(&key.public()) {
                    self.remember_key(salt.clone(), index, &key)?;
                }
            }
        }
        Ok(())
    }

    /// Records a withdrawal before it is sent, and again when more is known about it.
    pub fn keep_deposit(&self, deposit: &Deposit) -> anyhow::Result<()> {
        write_json(&self.folder.join(DEPOSITS).join(format!("{}.json", deposit.transaction)), deposit)
    }

    /// Removes a withdrawal that had no effect.
    pub fn forget_deposit(&self, deposit: &Deposit) -> anyhow::Result<()> {
        let path = self.folder.join(DEPOSITS).join(format!("{}.json", deposit.transaction));
        std::fs::remove_file(&path).with_context(|| path.display().to_string())
    }

    fn files(&self, part: &str) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.folder.join(part);
        let failed = || folder.display().to_string();
        let entries = std::fs::read_dir(&folder).with_context(failed)?;
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| Ok(entry.with_context(failed)?.path())).collect::<anyhow::Result<_>>()?;
        let is_done = |path: &PathBuf| path.extension().is_none_or(|end| end != "unfinished");
        paths.retain(|path| is_done(path) && path.file_name().is_some_and(|name| name != "lock"));
        paths.sort_unstable();
        Ok(paths)
    }

    /// Stores a verified receipt; false if it was already there.
    pub fn keep_receipt(&self, id: &OutputId, receipt: &FastReceipt) -> anyhow::Result<bool> {
        let path = self.folder.join(RECEIVED).join(id.to_string());
        let is_new = !path.exists();
        if is_new {
            write_durable(&path, Slip::Receipt(receipt.clone()).encode(&self.network.id).as_bytes())?;
        }
        Ok(is_new)
    }

    /// Records that the payment behind an output is settled.
    pub fn keep_settled(
        &self,
        held: &Held,
        digest: &Digest,
        proof: &payments::PaymentCertificate,
    ) -> anyhow::Result<()> {
        if !held.is_received {
            return Ok(self.outbox.settle(digest, proof)?);
        }
        let mut bytes = Vec::new();
        proof.write(&mut bytes);
        Ok(write_durable(&self.folder.join(RECEIVED).join(format!("{}{SETTLED}", held.holding.id)), &bytes)?)
    }

    /// Records that the ledger has the certificate of a payment.
    pub fn keep_posted(&self, digest: &Digest, transaction: &TransactionId) -> anyhow::Result<()> {
        Ok(write_durable(&self.folder.join(POSTED).join(digest.to_string()), transaction.to_string().as_bytes())?)
    }

    /// Records that the money of a payment is contested.
    pub fn keep_contested(&self, digest: &Digest) -> anyhow::Result<()> {
        Ok(write_durable(&self.folder.join(CONTESTED).join(digest.to_string()), &[])?)
    }

    pub fn is_contested(&self, digest: &Digest) -> bool {
        self.folder.join(CONTESTED).join(digest.to_string()).exists()
    }

    pub fn is_posted(&self, digest: &Digest) -> bool {
        self.folder.join(POSTED).join(digest.to_string()).exists()
    }

    /// All withdrawals from the ledger that are kept.
    pub fn deposits(&self) -> anyhow::Result<Vec<Deposit>> {
        self.files(DEPOSITS)?.iter().map(|path| read_json(path)).collect()
    }

    /// When the first file of a part was written whose name contains an id, milliseconds since 1970.
    pub fn written_ms(&self, part: &str, id: &str) -> Option<u64> {
        let files = self.files(part).ok()?;
        let named = files.iter().filter(|path| path.to_string_lossy().contains(id));
        let written = named.filter_map(|path| std::fs::metadata(path).ok()?.modified().ok()).min()?;
        let since = written.duration_since(std::time::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    }

    /// All contents of the purse.
    pub fn contents(&self) -> anyhow::Result<PurseContents> {
        let mut contents = PurseContents { sent: self.outbox.all()?, ..PurseContents::default() };
        let mut outputs: BTreeMap<OutputId, Held> = BTreeMap::new();
        for deposit in self.deposits()? {
            match deposit.held(&self.network.id)? {
                Some(held) => drop(outputs.insert(held.holding.id, held)),
                None => contents.deposits.push(deposit),
            }
        }
        for path in self.files(RECEIVED)? {
            if path.to_string_lossy().ends_with(SETTLED) {
                continue;
            }
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let damaged = || format!("{}: get the receipt again from the payer", path.display());
            let Slip::Receipt(receipt) = Slip::parse(&text, &self.network.id).with_context(damaged)? else { continue };
            let settled = PathBuf::from(format!("{}{SETTLED}", path.display())).exists();
            let held = self.held(&receipt, settled, true).with_context(damaged)?;
            outputs.extend(held.map(|held| (held.holding.id, held)));
        }
        for sent in &contents.sent {
            let Some(certificate) = &sent.certificate else { continue };
            let view = PaymentView::parse(&sent.payment.payment)?;
            let receipts =
                (0..view.outputs().count()).filter_map(|at| FastReceipt::of(&view, at as u8, certificate.clone()));
            for receipt in receipts {
                let held = self.held(&receipt, sent.is_settled, false)?;
                outputs.extend(held.map(|held| (held.holding.id, held)));
            }
        }
        for sent in &contents.sent {
            for input in PaymentView::parse(&sent.payment.payment)?.inputs() {
                contents.spent.extend(outputs.remove(&input.id).map(|held| (input.id, held)));
            }
        }
        contents.held = outputs.into_values().collect();
        Ok(contents)
    }

    /// Removes confirmed payments that can have no further effect, with what they spent: no committee signs or views
    /// anything about them, and the ledger redeems none of their outputs. Returns their number. So the cost of a
    /// purse depends on the last epochs, not on its whole life. Payments without a certificate are kept, and so is
    /// money that was never spent: its owner may ask where it went.
    pub fn forget_old(&self, now: HomeEpoch) -> anyhow::Result<usize> {
        let contents = self.contents()?;
        let mut over = Vec::new();
        for sent in contents.sent.iter().filter(|sent| sent.certificate.is_some()) {
            let view = PaymentView::parse(&sent.payment.payment)?;
            if now.saturating_sub(view.into_epoch().max(view.home())) > REDEEM_EPOCHS {
                over.push((sent.payment.digest, view.inputs().map(|input| input.id).collect::<Vec<_>>()));
            }
        }
        // Spent outputs are removed first, so that none ever seems unspent.
        for id in over.iter().flat_map(|(_, inputs)| inputs) {
            let receipt = self.folder.join(RECEIVED).join(id.to_string());
            remove(&receipt)?;
            remove(&PathBuf::from(format!("{}{SETTLED}", receipt.display())))?;
        }
        let spent: BTreeSet<&OutputId> = over.iter().flat_map(|(_, inputs)| inputs).collect();
        for path in self.files(DEPOSITS)? {
            let deposit: Deposit = read_json(&path)?;
            if deposit.held(&self.network.id)?.is_some_and(|held| spent.contains(&held.holding.id)) {
                remove(&path)?;
            }
        }
        let digests: Vec<Digest> = over.iter().map(|(digest, _)| *digest).collect();
        self.outbox.forget(&digests)?;
        for digest in &digests {
            [POSTED, CONTESTED].iter().try_for_each(|part| remove(&self.folder.join(part).join(digest.to_string())))?;
        }
        Ok(digests.len())
    }

    /// The value of a receipt to this purse; `None` if it is for another recipient.
    fn held(&self, receipt: &FastReceipt, is_settled: bool, is_received: bool) -> anyhow::Result<Option<Held>> {
        let Recipient::Key(owner) = receipt.output.to else { return Ok(None) };
        if !self.owns(&owner) {
            return Ok(None);
        }
        let id = receipt.proof.id_of(&self.network.id, &receipt.output)?;
        let proof = OutputProof::Payment(Box::new(receipt.proof.clone()));
        Ok(Some(Held {
            holding: Holding { id, output: receipt.output, proof },
            home: receipt.proof.summary.into,
            owner,
            payment: Some((receipt.proof.summary, receipt.proof.certificate.clone())),
            is_settled,
            is_received,
        }))
    }
}

/// Reads the lane of a purse without opening the purse.
pub fn read_network(folder: &Path) -> anyhow::Result<LaneNetwork> {
    let path = folder.join(LANE);
    let network = LaneNetwork::parse(&read_json(&path)?).with_context(|| format!("{} is damaged", path.display()))?;
    network.kept_in(folder)
}

/// The properties that distinguish the file `device` from its copies.
fn device(folder: &Path) -> std::io::Result<Value> {
    let of = std::fs::metadata(folder.join(DEVICE))?;
    Ok(serde_json::json!({"inode": of.ino(), "changed": [of.ctime(), of.ctime_nsec()]}))
}

/// Removes a file if it exists.
pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context(path.display().to_string()),
        _ => Ok(()),
    }
}

fn mark_device(folder: &Path) -> anyhow::Result<()> {
    // A new file is needed: the mark in the earlier file, which may be a copy, must not match.
    write_durable(&folder.join(DEVICE), &[])?;
    write_json(&folder.join(DEVICE_MARK), &device(folder)?)
}
