//! Parses the fixed layouts of this crate. Integers are little-endian.

use primitives::{Amount, Digest, MAX_ISSUED, PublicKey, Signature};

use crate::LaneRefusal;

/// The rest of a byte string that is not parsed yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], LaneRefusal> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(LaneRefusal::Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], LaneRefusal> {
        self.bytes(N).map(|bytes| bytes.try_into().expect("as long as asked for"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, LaneRefusal> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, LaneRefusal> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, LaneRefusal> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn digest(&mut self) -> Result<Digest, LaneRefusal> {
        self.array().map(Digest)
    }

    pub(crate) fn key(&mut self) -> Result<PublicKey, LaneRefusal> {
        self.array().map(PublicKey)
    }

    pub(crate) fn signature(&mut self) -> Result<Signature, LaneRefusal> {
        self.array().map(Signature)
    }

    /// Refuses bytes after the end.
    pub(crate) fn end(&self) -> Result<(), LaneRefusal> {
        if self.0.is_empty() { Ok(()) } else { Err(LaneRefusal::Malformed("it has bytes after its end")) }
    }
}

/// A number of units: 1 to `MAX_ISSUED`.
pub(crate) fn read_amount(reader: &mut Reader<'_>) -> Result<Amount, LaneRefusal> {
    match reader.u64()? {
        0 => Err(LaneRefusal::Malformed("an amount is zero")),
        amount if amount > MAX_ISSUED => Err(LaneRefusal::Malformed("an amount is larger than any asset's total")),
        amount => Ok(amount),
    }
}

pub(crate) fn write_payment(to: &mut Vec<u8>, payment: &[u8]) {
    to.extend(u16::try_from(payment.len()).expect("a payment has at most PAYMENT_BYTES_MAX bytes").to_le_bytes());
    to.extend(payment);
}

pub(crate) fn read_payment(reader: &mut Reader<'_>) -> Result<Vec<u8>, LaneRefusal> {
    let length = u16::from_le_bytes(reader.array()?);
    reader.bytes(length.into()).map(<[u8]>::to_vec)
}
