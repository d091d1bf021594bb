//! The folder of a purse, and what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lane::{Outbox, SentPayment};
use payments::{
    FastReceipt, Holding, HomeEpoch, LaneCarryOver, LaneRefusal, Output, OutputId, OutputProof, PaymentCertificate,
    PaymentView, REDEEM_EPOCHS, Recipient,
};
use primitives::{Digest, PublicKey, TransactionId};
use serde_json::Value;
use store::{Disk, RealDisk};

use super::deposit::Deposit;
use super::error::{Invalid, PurseError, SlipError};
use super::files::{
    CONTESTED, DEPOSITS, LANE, OUTBOX, POSTED, PROVED, RECEIVED, make_folder, of, read_json, remove, write_json,
};
use super::held::HeldOutput;
use super::keys::{KeyRing, Seed};
use super::network::LaneNetwork;
use super::plan::{self, PLAN, Plan};
use super::slip::Slip;
use super::trust::LedgerTrust;
use crate::durable::write_durable;
use crate::error::ClientError;
use crate::keystore;

const SEED: &str = "seed.json";
const KEYS: &str = "keys.json";
const DEVICE: &str = "device";
const DEVICE_MARK: &str = "device.json";
const SETTLED: &str = ".settled";
/// The folder for payments that nothing verifies.
const ASIDE: &str = "removed";

/// The contents of a purse.
#[derive(Default)]
pub struct PurseContents {
    /// Outputs that no own payment spends.
    pub held: Vec<HeldOutput>,
    /// Outputs that own payments spend.
    pub spent: BTreeMap<OutputId, HeldOutput>,
    /// Own payments, by digest.
    pub sent: Vec<SentPayment>,
    /// Deposits that are not outputs yet.
    pub deposits: Vec<Deposit>,
}

/// A purse that is open: no other program uses it meanwhile.
pub struct Purse {
    folder: PathBuf,
    /// The lane that it is for.
    pub network: LaneNetwork,
    /// Its keys.
    pub keys: KeyRing,
    /// Its payments.
    pub outbox: Outbox<RealDisk>,
    /// Excludes other commands.
    _lock: File,
}

fn lock(disk: &RealDisk, folder: &Path) -> Result<File, PurseError> {
    let lock = disk.lock().map_err(of(folder))?;
    lock.ok_or_else(|| PurseError::InUse(folder.into()))
}

impl Purse {
    /// Whether a folder has a purse.
    pub fn exists(folder: &Path) -> bool {
        folder.join(LANE).exists()
    }

    /// Makes a purse for a lane. `make_seed` makes the seed's key file at the given path, if there is none.
    ///
    /// # Errors
    /// [`PurseError::Exists`], [`PurseError::InUse`], what `make_seed` returns, or an error of the disk.
    pub fn create<E: From<PurseError>>(
        folder: &Path,
        network: &LaneNetwork,
        make_seed: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        if Purse::exists(folder) {
            return Err(PurseError::Exists(folder.into()).into());
        }
        let disk = RealDisk::new(folder).map_err(|cause| PurseError::from(of(folder)(cause)))?;
        let _lock = lock(&disk, folder)?;
        let prepared = || {
            [DEPOSITS, RECEIVED, POSTED, CONTESTED, OUTBOX].iter().try_for_each(|part| make_folder(&folder.join(part)))
        };
        prepared().map_err(PurseError::from)?;
        let seed = folder.join(SEED);
        if !seed.exists() {
            make_seed(&seed)?;
        }
        let finish = || {
            KeyRing::create(&folder.join(KEYS))?;
            mark_device(folder)?;
            // The last file makes it a purse.
            Ok::<_, PurseError>(write_json(&folder.join(LANE), &network.encode())?)
        };
        Ok(finish()?)
    }

    /// Opens a purse; no other command can use it meanwhile.
    ///
    /// # Errors
    /// [`PurseError::NoPurse`], [`PurseError::InUse`], or [`PurseError::Node`] with the file that cannot be used.
    pub fn open(folder: &Path) -> Result<Purse, PurseError> {
        if !Purse::exists(folder) {
            return Err(PurseError::NoPurse(folder.into()));
        }
        let disk = RealDisk::existing(folder).map_err(of(folder))?;
        let _lock = lock(&disk, folder)?;
        plan::finish(folder)?;
        let outbox = folder.join(OUTBOX);
        let outbox = Outbox::new(RealDisk::new(&outbox).map_err(of(&outbox))?);
        let network = read_network(folder)?;
        let keys = KeyRing::open(&folder.join(KEYS))?;
        Ok(Purse { folder: folder.into(), network, keys, outbox, _lock })
    }

    /// Opens the seed with its passphrase.
    ///
    /// # Errors
    /// [`PurseError::Key`].
    pub fn seed(&self, passphrase: &str) -> Result<Seed, PurseError> {
        let path = self.folder.join(SEED);
        keystore::check_private(&path)?;
        Ok(Seed::of(&keystore::open_under(&path, passphrase)?))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the folder is a copy, or was restored from one.
    pub fn is_copy(&self) -> bool {
        let mark = read_json::<Value>(&self.folder.join(DEVICE_MARK));
        !matches!((mark, device(&self.folder)), (Ok(mark), Ok(device)) if mark == device)
    }

    /// Records that the purse knows what was spent, so it no longer counts as a copy. New keys use another salt.
    ///
    /// # Errors
    /// [`PurseError::Node`] with the error of the disk.
    pub fn settle_in(&mut self) -> Result<(), PurseError> {
        self.keys.renew_salt()?;
        Ok(mark_device(&self.folder)?)
    }

    /// Records a withdrawal before it is sent, and again when more is known about it.
    ///
    /// # Errors
    /// [`ClientError`] of the disk.
    pub fn keep_deposit(&self, deposit: &Deposit) -> Result<(), ClientError> {
        write_json(&self.deposit_file(deposit), deposit)
    }

    /// Removes a withdrawal that had no effect.
    ///
    /// # Errors
    /// [`ClientError`] of the disk.
    pub fn forget_deposit(&self, deposit: &Deposit) -> Result<(), ClientError> {
        remove(&self.deposit_file(deposit))
    }

    fn deposit_file(&self, deposit: &Deposit) -> PathBuf {
        self.folder.join(DEPOSITS).join(format!("{}.json", deposit.transaction))
    }

    fn files(&self, part: &str) -> Result<Vec<PathBuf>, ClientError> {
        let folder = self.folder.join(part);
        let entries = std::fs::read_dir(&folder).map_err(of(&folder))?;
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>().map_err(of(&folder))?;
        let is_done = |path: &PathBuf| path.extension().is_none_or(|end| end != "unfinished");
        paths.retain(|path| is_done(path) && path.file_name().is_some_and(|name| name != "lock"));
        paths.sort_unstable();
        Ok(paths)
    }

    /// Stores a verified receipt; false if it was already there.
    ///
    /// # Errors
    /// [`ClientError`] of the disk.
    pub fn keep_receipt(&self, id: &OutputId, receipt: &FastReceipt) -> Result<bool, ClientError> {
        let path = self.folder.join(RECEIVED).join(id.to_string());
        let is_new = !path.exists();
        if is_new {
            write_durable(&path, Slip::Receipt(receipt.clone()).encode(&self.network.id).as_bytes())?;
        }
        Ok(is_new)
    }

    /// Records that the payment behind an output is settled.
    ///
    /// # Errors
    /// [`PurseError`] of the disk.
    pub fn keep_settled(
        &self,
        held: &HeldOutput,
        digest: &Digest,
        proof: &PaymentCertificate,
    ) -> Result<(), PurseError> {
        if !held.is_received {
            return Ok(self.outbox.settle(digest, proof)?);
        }
        let mut bytes = Vec::new();
        proof.write(&mut bytes);
        Ok(write_durable(&self.folder.join(RECEIVED).join(format!("{}{SETTLED}", held.holding.id)), &bytes)?)
    }

    /// Records that the ledger has the certificate of a payment.
    ///
    /// # Errors
    /// [`ClientError`] of the disk.
    pub fn keep_posted(&self, digest: &Digest, transaction: &TransactionId) -> Result<(), ClientError> {
        write_durable(&self.folder.join(POSTED).join(digest.to_string()), transaction.to_string().as_bytes())
    }

    /// Records that the money of a payment is contested.
    ///
    /// # Errors
    /// [`ClientError`] of the disk.
    pub fn keep_contested(&self, digest: &Digest) -> Result<(), ClientError> {
        write_durable(&self.folder.join(CONTESTED).join(digest.to_string()), &[])
    }

    /// Whether the ledger was asked to decide about the money of a payment.
    pub fn is_contested(&self, digest: &Digest) -> bool {
        self.folder.join(CONTESTED).join(digest.to_string()).exists()
    }

    /// Whether the ledger has the certificate of a payment.
    pub fn is_posted(&self, digest: &Digest) -> bool {
        self.folder.join(POSTED).join(digest.to_string()).exists()
    }

    /// Stores whom the purse believes from now on about the ledger. Whatever was proved from the earlier start is
    /// forgotten.
    ///
    /// # Errors
    /// [`ClientError`] of the disk.
    pub fn trust(&mut self, ledger: LedgerTrust) -> Result<(), ClientError> {
        // A crash between the two leaves the earlier validators with nothing proved from them, which is sound.
        remove(&self.folder.join(PROVED))?;
        self.network.ledger = ledger;
        write_json(&self.folder.join(LANE), &self.network.encode())
    }

    /// Puts a payment that nothing verifies aside: it counts no more, and its bytes stay in the folder.
    ///
    /// # Errors
    /// [`PurseError`] of the disk.
    pub fn put_aside(&self, sent: &SentPayment) -> Result<(), PurseError> {
        let aside = self.folder.join(ASIDE);
        make_folder(&aside)?;
        write_durable(&aside.join(sent.payment.digest.to_string()), &sent.payment.request)?;
        Ok(self.outbox.forget(&[sent.payment.digest])?)
    }

    /// Follows the network over a restart: takes what the agreed list carries over for the keys of this purse, and
    /// moves everything of before into a folder of its own, since it is evidence. `list` must be that of `network`,
    /// whose identity contains the list's digest. Returns the outputs carried over, and the folder.
    ///
    /// # Errors
    /// [`PurseError`] of the disk; what was begun is finished when the purse is opened.
    pub fn follow(
        mut self,
        seed: &Seed,
        network: &LaneNetwork,
        list: &LaneCarryOver,
    ) -> Result<(usize, PathBuf), PurseError> {
        let owner = |output: &Output| match output.to {
            Recipient::Key(key) => Some(key),
            Recipient::Account(_) => None,
        };
        let keys: Vec<PublicKey> = list.outputs.values().filter_map(owner).collect();
        self.keys.find_lost(seed, &keys)?;
        let own = list.outputs.iter().filter(|(_, output)| owner(output).is_some_and(|key| self.keys.owns(&key)));
        let deposits: Vec<Deposit> = own.filter_map(|(id, output)| Deposit::carried(id, output)).collect();
        let before = format!("before-{}", &network.id.to_string()[2..10]);
        let plan = Plan { lane: network.encode(), before, deposits };
        write_json(&self.folder.join(PLAN), &plan)?;
        plan::finish(&self.folder)?;
        Ok((plan.deposits.len(), self.folder.join(&plan.before)))
    }

    /// All withdrawals from the ledger that are kept.
    ///
    /// # Errors
    /// [`ClientError`] with the file that cannot be used.
    pub fn deposits(&self) -> Result<Vec<Deposit>, ClientError> {
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
    ///
    /// # Errors
    /// [`PurseError`] with the file that cannot be used.
    pub fn contents(&self) -> Result<PurseContents, PurseError> {
        let mut contents = PurseContents { sent: self.outbox.all()?, ..PurseContents::default() };
        let mut outputs: BTreeMap<OutputId, HeldOutput> = BTreeMap::new();
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
            let damaged = |cause: SlipError| PurseError::Receipt { path: path.clone(), cause: Box::new(cause) };
            let text = std::fs::read_to_string(&path).map_err(of(&path))?;
            let Slip::Receipt(receipt) = Slip::parse(&text, &self.network.id).map_err(damaged)? else { continue };
            let settled = PathBuf::from(format!("{}{SETTLED}", path.display())).exists();
            let held = self.held(&receipt, settled, true).map_err(|cause| damaged(cause.into()))?;
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
    ///
    /// # Errors
    /// [`PurseError`] with the file that cannot be used.
    pub fn forget_old(&self, now: HomeEpoch) -> Result<usize, PurseError> {
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
    fn held(
        &self,
        receipt: &FastReceipt,
        is_settled: bool,
        is_received: bool,
    ) -> Result<Option<HeldOutput>, LaneRefusal> {
        let Recipient::Key(owner) = receipt.output.to else { return Ok(None) };
        if !self.keys.owns(&owner) {
            return Ok(None);
        }
        let id = receipt.proof.id_of(&self.network.id, &receipt.output)?;
        let proof = OutputProof::Payment(Box::new(receipt.proof.clone()));
        Ok(Some(HeldOutput {
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
///
/// # Errors
/// [`PurseError::Node`] with the file that cannot be used.
pub fn read_network(folder: &Path) -> Result<LaneNetwork, PurseError> {
    let path = folder.join(LANE);
    let damaged = |error: Invalid| ClientError::contents(&path, format!("it is damaged: {error}"));
    LaneNetwork::parse(&read_json(&path)?).map_err(damaged)?.kept_in(folder)
}

/// Pins a lane in a folder that is no purse, such as a watcher's.
///
/// # Errors
/// [`ClientError`] of the disk.
pub fn pin_network(folder: &Path, network: &LaneNetwork) -> Result<(), ClientError> {
    write_json(&folder.join(LANE), &network.encode())
}

/// The properties that distinguish the file `device` from its copies.
fn device(folder: &Path) -> std::io::Result<Value> {
    let of = std::fs::metadata(folder.join(DEVICE))?;
    Ok(serde_json::json!({"inode": of.ino(), "changed": [of.ctime(), of.ctime_nsec()]}))
}

fn mark_device(folder: &Path) -> Result<(), ClientError> {
    // A new file is needed: the mark in the earlier file, which may be a copy, must not match.
    let path = folder.join(DEVICE);
    write_durable(&path, &[])?;
    write_json(&folder.join(DEVICE_MARK), &device(folder).map_err(of(&path))?)
}
