//! A log that was closed for a restart, and what it contributes.

use std::collections::BTreeMap;

use primitives::Digest;

use crate::layout::{Reader, read_payment, write_payment};
use crate::record::{Record, RecordKind, recover};
use crate::{CertifiedPayment, LaneLog, LaneRefusal, LogOwner, MuteReason, PaymentBody};

/// The length of the intact part of a log, to which the shell cuts it, and the bytes that close it after that: none if
/// it is closed already. The shell appends them and syncs the log before it publishes anything that is in it.
///
/// # Errors
/// The reason why the log cannot be read: then it is no evidence.
pub fn closing(log: &impl LaneLog, owner: &LogOwner, restart: u32) -> Result<(u64, Vec<u8>), MuteReason> {
    let mut is_closed = false;
    let (key, intact) = recover(log, owner, |_, record| is_closed |= matches!(record, Record::Closed(_)))?;
    let mut bytes = Vec::new();
    if !is_closed {
        key.write(&mut bytes, intact, RecordKind::Mark, &[&intact.to_le_bytes()]);
        let offset = intact + bytes.len() as u64;
        key.write(&mut bytes, offset, RecordKind::Closed, &[&restart.to_le_bytes()]);
    }
    Ok((intact, bytes))
}

/// The content of a closed log.
///
/// ```text
/// closed log   network 32 · home 8 · validator 1 · shard 2 · restart 4 · length 8 · count 4 · (length 2 · payment)[]
///              · count 4 · (summary · certificate)[]
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedLog {
    /// The owner of the log.
    pub owner: LogOwner,
    /// The number of the restart that it was closed for.
    pub restart: u32,
    /// Bytes of the log before it was closed.
    pub length: u64,
    /// The payments that its member was bound to, by digest.
    pub payments: BTreeMap<Digest, PaymentBody>,
    /// The certificates that it holds, by the digest of the payment. None is verified.
    pub certificates: BTreeMap<Digest, CertifiedPayment>,
}

impl ClosedLog {
    /// Reads a log; `None` if it is not closed.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn read(log: &impl LaneLog, owner: LogOwner) -> Result<Option<ClosedLog>, MuteReason> {
        let (mut payments, mut certificates, mut closed) = (BTreeMap::new(), BTreeMap::new(), None);
        recover(log, &owner, |offset, record| match record {
            _ if closed.is_some() => {}
            Record::Payment(view, _) => {
                let body = PaymentBody { digest: view.digest(), payment: view.to_payment() };
                payments.insert(body.digest, body);
            }
            Record::Certificate(of) => drop(certificates.insert(of.digest(&owner.network), of)),
            Record::Closed(restart) => closed = Some((restart, offset)),
            Record::Mark(_) | Record::Acknowledgement(_) | Record::Bar(_) | Record::View(..) => {}
        })?;
        Ok(closed.map(|(restart, length)| ClosedLog { owner, restart, length, payments, certificates }))
    }

    /// Writes its layout.
    ///
    /// # Panics
    /// If it has more than 2^32 payments: a log has room for fewer.
    pub fn write(&self, to: &mut Vec<u8>) {
        let LogOwner { network, home, validator, shard } = self.owner;
        to.extend(network.0);
        to.extend(home.to_le_bytes());
        to.push(validator);
        to.extend(shard.to_le_bytes());
        to.extend(self.restart.to_le_bytes());
        to.extend(self.length.to_le_bytes());
        write_count(to, self.payments.len());
        self.payments.values().for_each(|body| write_payment(to, &body.payment.encode()));
        write_count(to, self.certificates.len());
        self.certificates.values().for_each(|of| of.write(to));
    }

    /// Parses a closed log that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`ClosedLog::write`] does not write.
    pub fn parse(bytes: &[u8]) -> Result<ClosedLog, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let (network, home, validator) = (reader.digest()?, reader.u64()?, reader.u8()?);
        let owner = LogOwner { network, home, validator, shard: u16::from_le_bytes(reader.array()?) };
        let (restart, length) = (reader.u32()?, reader.u64()?);
        let (mut payments, mut certificates) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..reader.u32()? {
            let body = PaymentBody::parse(&read_payment(&mut reader)?)?;
            payments.insert(body.digest, body);
        }
        for _ in 0..reader.u32()? {
            let of = CertifiedPayment::read(&mut reader)?;
            certificates.insert(of.digest(&network), of);
        }
        reader.end()?;
        Ok(ClosedLog { owner, restart, length, payments, certificates })
    }
}

pub(super) fn write_count(to: &mut Vec<u8>, count: usize) {
    to.extend(u32::try_from(count).expect("fewer than a log has room for").to_le_bytes());
}
