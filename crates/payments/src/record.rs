//! The log of one shard: layout of records, and recovery.
//!
//! ```text
//! log     head record*
//! head    "walras-lane-log\x01" · key 32 · network 32 · home 8 · validator 1 · shard 2 · check 16
//! record  length 4 · kind 1 · payload [length] · check 16
//!         1 mark            · position 8
//!         2 payment         · payment · signature 64
//!         3 acknowledgement · summary
//!         4 bar             · digest 32 · into 8 · outputs 1      a candidate of a case
//!         5 view            · output 32 · digest 32               the one view of a case
//!         6 certificate     · summary · certificate               before what relies on it: an acknowledgement, or a
//!                                                                 payment of an output
//!         7 closed          · number 4                            the log ends: the network restarts
//! ```
//!
//! `check` is a keyed hash over the record's offset, kind and payload, under the key of the head, so that nothing that
//! clients send can look like a record. A batch of records begins with a *mark* that names how much of the log was
//! durable when the batch was made. Recovery reads up to the first record that is not intact. If an intact mark beyond
//! it says that this offset was durable, the log is damaged. Otherwise it is the torn tail of an unacknowledged write.

use primitives::{Digest, Signature};

use crate::request::CERTIFICATE_BYTES_MAX;
use crate::{
    CertifiedPayment, HomeEpoch, MuteReason, OutputId, PAYMENT_BYTES_MAX, PaymentBody, PaymentSummary, PaymentView,
};

const HEAD_TAG: &[u8; 16] = b"walras-lane-log\x01";
pub(crate) const HEAD_BYTES: usize = 16 + 32 + 32 + 8 + 1 + 2 + CHECK_BYTES;
const CHECK_BYTES: usize = 16;
const MARK_BYTES: usize = 4 + 1 + 8 + CHECK_BYTES;
/// Bytes of a record besides its payload.
const FRAME_BYTES: usize = 4 + 1 + CHECK_BYTES;
/// Bytes of the largest record that is read at random, for a payment or an acknowledgement.
const LOOKED_UP_BYTES_MAX: usize = FRAME_BYTES + PAYMENT_BYTES_MAX + 64;
const RECORD_BYTES_MAX: usize = FRAME_BYTES + PaymentSummary::BYTES + CERTIFICATE_BYTES_MAX;
const READ_BYTES: usize = 1 << 20;

/// Reads of a log, including everything that was appended. Bytes that a validator appends must be readable before its
/// next step.
pub trait LaneLog {
    /// Bytes of the log.
    fn length(&self) -> u64;
    /// Exactly `length` bytes from `offset`; `None` if they cannot be read.
    fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>>;
}

/// A log in memory.
impl LaneLog for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        self.get(start..start.checked_add(length)?).map(<[u8]>::to_vec)
    }
}

/// The owner of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOwner {
    /// The identity of the network.
    pub network: Digest,
    /// The home epoch.
    pub home: HomeEpoch,
    /// The validator's index.
    pub validator: u8,
    /// Its shard.
    pub shard: u16,
}

impl LogOwner {
    /// The owner that a log names; `None` if it has no whole head. Nothing else of the log is checked.
    pub fn of(log: &impl LaneLog) -> Option<LogOwner> {
        let head = log.read(0, HEAD_BYTES)?;
        let mut reader = crate::layout::Reader::new(head.get(16 + 32..)?);
        let (network, home, validator) = (reader.digest().ok()?, reader.u64().ok()?, reader.u8().ok()?);
        Some(LogOwner { network, home, validator, shard: u16::from_le_bytes(reader.array().ok()?) })
    }
}

/// A new log: the shell writes and syncs it *once*, when it registers the shard's key for a home epoch, before that
/// epoch begins. From then on a missing log means that signatures may be forgotten. `key` is random and secret.
pub fn new_log(owner: &LogOwner, key: [u8; 32]) -> Vec<u8> {
    let mut bytes = HEAD_TAG.to_vec();
    bytes.extend(key);
    bytes.extend(owner.network.0);
    bytes.extend(owner.home.to_le_bytes());
    bytes.push(owner.validator);
    bytes.extend(owner.shard.to_le_bytes());
    let check = LogKey(key).check(0, 0, &[&bytes]);
    bytes.extend(check);
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordKind {
    Mark = 1,
    Payment = 2,
    Acknowledgement = 3,
    Bar = 4,
    View = 5,
    Certificate = 6,
    Closed = 7,
}

/// The content of a record.
#[derive(Clone, Debug)]
pub(crate) enum Record<'a> {
    Mark(u64),
    /// The owner's signature, which follows the payment, is for audits. It is zeros for an exit that was made for a
    /// case or at the request of someone other than the owner.
    Payment(PaymentView<'a>, Signature),
    Acknowledgement(PaymentSummary),
    /// A barred candidate of a case.
    Bar(BarredPayment),
    /// The digest of the only view of a case.
    View(OutputId, Digest),
    /// A payment with the certificate that a later record relies on.
    Certificate(CertifiedPayment),
    /// The number of the restart that the log was closed for. Nothing follows.
    Closed(u32),
}

/// A candidate that a shard bars: its digest, and the data that identifies its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarredPayment {
    pub(crate) digest: Digest,
    pub(crate) into: HomeEpoch,
    pub(crate) outputs: u8,
}

impl BarredPayment {
    pub(crate) fn of(body: &PaymentBody) -> BarredPayment {
        let outputs = body.payment.outputs.len() as u8;
        BarredPayment { digest: body.digest, into: body.payment.into, outputs }
    }

    pub(crate) fn output_ids(self) -> impl Iterator<Item = OutputId> {
        (0..self.outputs).map(move |index| OutputId::of_payment(self.into, &self.digest, index))
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        [&self.digest.0[..], &self.into.to_le_bytes(), &[self.outputs]].concat()
    }
}

/// The key of a log's checks.
#[derive(Clone, Copy)]
pub(crate) struct LogKey([u8; 32]);

impl LogKey {
    /// The key of a log that could not be opened. Nothing is written with it, because the shard is mute.
    pub(crate) fn none() -> LogKey {
        LogKey([0; 32])
    }

    fn check(&self, offset: u64, kind: u8, payload: &[&[u8]]) -> [u8; CHECK_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&offset.to_le_bytes()).update(&[kind]);
        for part in payload {
            hasher.update(part);
        }
        hasher.finalize().as_bytes()[..CHECK_BYTES].try_into().expect("16 bytes")
    }

    /// Writes a record at `offset`.
    pub(crate) fn write(&self, to: &mut Vec<u8>, offset: u64, kind: RecordKind, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        to.reserve(FRAME_BYTES + length);
        to.extend((length as u32).to_le_bytes());
        to.push(kind as u8);
        parts.iter().for_each(|part| to.extend(*part));
        to.extend(self.check(offset, kind as u8, parts));
    }

    /// The record at the beginning of `bytes`, which start at `offset`, and its length; `None` if it is not intact.
    pub(crate) fn read<'a>(&self, bytes: &'a [u8], offset: u64) -> Option<(Record<'a>, usize)> {
        let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let total = length.checked_add(FRAME_BYTES).filter(|total| *total <= RECORD_BYTES_MAX)?;
        let (kind, payload, check) = (*bytes.get(4)?, bytes.get(5..5 + length)?, bytes.get(5 + length..total)?);
        if self.check(offset, kind, &[payload]) != check {
            return None;
        }
        let mut reader = crate::layout::Reader::new(payload);
        let record = match kind {
            1 => Record::Mark(reader.u64().ok()?),
            2 => {
                let payment = PaymentView::read(&mut reader).ok()?;
                Record::Payment(payment, reader.signature().ok()?)
            }
            3 => Record::Acknowledgement(PaymentSummary::read(&mut reader).ok()?),
            4 => Record::Bar(BarredPayment {
                digest: reader.digest().ok()?,
                into: reader.u64().ok()?,
                outputs: reader.u8().ok()?,
            }),
            5 => Record::View(OutputId(reader.array().ok()?), reader.digest().ok()?),
            6 => Record::Certificate(CertifiedPayment::read(&mut reader).ok()?),
            7 => Record::Closed(reader.u32().ok()?),
            _ => return None,
        };
        reader.end().ok()?;
        Some((record, total))
    }

    /// The record at `offset` of a log, as bytes from its beginning.
    pub(crate) fn fetch(log: &impl LaneLog, offset: u64) -> Option<Vec<u8>> {
        let left = log.length().checked_sub(offset)?;
        log.read(offset, left.min(LOOKED_UP_BYTES_MAX as u64) as usize)
    }

    /// The same for a record of a certificate.
    pub(crate) fn fetch_certificate(log: &impl LaneLog, offset: u64) -> Option<Vec<u8>> {
        let left = log.length().checked_sub(offset)?;
        log.read(offset, left.min(RECORD_BYTES_MAX as u64) as usize)
    }
}

/// Reads the log from its beginning, passes each intact record to `each`, and returns its key and the length of the
/// intact part.
pub(crate) fn recover(
    log: &impl LaneLog,
    owner: &LogOwner,
    mut each: impl FnMut(u64, Record<'_>),
) -> Result<(LogKey, u64), MuteReason> {
    if log.length() < HEAD_BYTES as u64 {
        return Err(MuteReason::DamagedLog);
    }
    let head = log.read(0, HEAD_BYTES).ok_or(MuteReason::UnreadableLog)?;
    let key: [u8; 32] = head[16..48].try_into().expect("32 bytes");
    if head[..16] != *HEAD_TAG
        || head[HEAD_BYTES - CHECK_BYTES..] != LogKey(key).check(0, 0, &[&head[..HEAD_BYTES - 16]])
    {
        return Err(MuteReason::DamagedLog);
    }
    if head != new_log(owner, key) {
        return Err(MuteReason::ForeignLog);
    }
    let key = LogKey(key);
    let mut offset = HEAD_BYTES as u64;
    while offset < log.length() {
        let length = (log.length() - offset).min(READ_BYTES as u64) as usize;
        let chunk = log.read(offset, length).ok_or(MuteReason::UnreadableLog)?;
        let mut at = 0;
        while let Some((record, total)) = key.read(&chunk[at..], offset + at as u64) {
            each(offset + at as u64, record);
            at += total;
        }
        if at == 0 {
            reject_damage(log, &key, offset)?;
            break;
        }
        offset += at as u64;
    }
    Ok((key, offset))
}

/// Searches for an intact mark beyond `torn` that says that the log was durable beyond it.
fn reject_damage(log: &impl LaneLog, key: &LogKey, torn: u64) -> Result<(), MuteReason> {
    let mut offset = torn;
    while offset < log.length() {
        let length = (log.length() - offset).min(READ_BYTES as u64) as usize;
        let chunk = log.read(offset, length).ok_or(MuteReason::UnreadableLog)?;
        for at in 0..chunk.len().saturating_sub(MARK_BYTES - 1) {
            let looks = chunk[at..at + 5] == [8, 0, 0, 0, RecordKind::Mark as u8];
            if looks && matches!(key.read(&chunk[at..], offset + at as u64), Some((Record::Mark(p), _)) if p > torn) {
                return Err(MuteReason::DamagedLog);
            }
        }
        if length < READ_BYTES {
            break;
        }
        offset += (length - MARK_BYTES + 1) as u64;
    }
    Ok(())
}
