//! Payments that a client has sent and must finish; each is durable before it is first sent.

use std::collections::BTreeSet;
use std::io;

use payments::{LaneRefusal, OutputId, PaymentCertificate, PaymentView, SignedPayment};
use primitives::{Digest, Signature};
use store::{Disk, DiskFile};

const PAYMENT: &str = "payment-";
const CERTIFICATE: &str = "certificate-";
const ACKNOWLEDGEMENT: &str = "acknowledgement-";
const UNFINISHED: &str = ".unfinished";

/// Why an outbox refuses.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// A disk error.
    #[error("the outbox {0}: {1}")]
    Disk(String, io::Error),
    /// A file is not a payment.
    #[error("{0} is damaged: restore it from a copy, or ask the validators which payment spends its money")]
    Damaged(String),
    /// Another payment spends the same output.
    #[error(
        "output {output} is spent by payment {by}, which was begun before: finish that one, or its money is frozen"
    )]
    Spent {
        /// The output.
        output: OutputId,
        /// The other payment.
        by: Digest,
    },
    /// The bytes are not a payment.
    #[error(transparent)]
    Malformed(#[from] LaneRefusal),
}

/// A payment of an outbox, and its progress.
#[derive(Clone, Debug)]
pub struct SentPayment {
    /// The payment.
    pub payment: SignedPayment,
    /// The certificate of confirmations, once there is one: receipts are *fast*.
    pub certificate: Option<PaymentCertificate>,
    /// Whether a quorum has acknowledged the certificate: receipts are *settled*.
    pub is_settled: bool,
}

/// A directory of payments, each with its certificate once there is one.
#[derive(Debug)]
pub struct Outbox<D: Disk>(D);

impl<D: Disk> Outbox<D> {
    /// The outbox in this directory.
    pub fn new(disk: D) -> Outbox<D> {
        Outbox(disk)
    }

    /// Makes a payment durable, so that it may be sent. Does nothing if it is already stored.
    ///
    /// # Errors
    /// [`OutboxError::Spent`] if another stored payment spends one of its outputs, or a disk error.
    pub fn insert(&self, payment: &SignedPayment) -> Result<(), OutboxError> {
        let inputs: Vec<OutputId> = PaymentView::parse(&payment.payment)?.inputs().map(|input| input.id).collect();
        for SentPayment { payment: earlier, .. } in self.all()? {
            if earlier.digest == payment.digest {
                return Ok(());
            }
            let spent: Vec<OutputId> = PaymentView::parse(&earlier.payment)?.inputs().map(|input| input.id).collect();
            if let Some(output) = inputs.iter().find(|output| spent.contains(output)) {
                return Err(OutboxError::Spent { output: *output, by: earlier.digest });
            }
        }
        let mut bytes = (payment.payment.len() as u32).to_le_bytes().to_vec();
        bytes.extend(&payment.payment);
        bytes.extend(payment.digest.0);
        bytes.extend(payment.signature.0);
        bytes.extend(&payment.request);
        self.write(&format!("{PAYMENT}{}", payment.digest), &bytes)
    }

    /// Stores the certificate of a payment.
    ///
    /// # Errors
    /// A disk error.
    pub fn finish(&self, payment: &Digest, certificate: &PaymentCertificate) -> Result<(), OutboxError> {
        let mut bytes = Vec::new();
        certificate.write(&mut bytes);
        self.write(&format!("{CERTIFICATE}{payment}"), &bytes)
    }

    /// Stores the acknowledgements of a payment's certificate.
    ///
    /// # Errors
    /// A disk error.
    pub fn settle(&self, payment: &Digest, acknowledgement: &PaymentCertificate) -> Result<(), OutboxError> {
        let mut bytes = Vec::new();
        acknowledgement.write(&mut bytes);
        self.write(&format!("{ACKNOWLEDGEMENT}{payment}"), &bytes)
    }

    /// The payments that have no certificate yet; send them again unchanged.
    ///
    /// # Errors
    /// [`OutboxError::Damaged`] names a file, or a disk error.
    pub fn unfinished(&self) -> Result<Vec<SignedPayment>, OutboxError> {
        let unfinished = self.all()?.into_iter().filter(|sent| sent.certificate.is_none());
        Ok(unfinished.map(|sent| sent.payment).collect())
    }

    /// Every payment, by digest.
    ///
    /// # Errors
    /// As for [`Outbox::unfinished`].
    pub fn all(&self) -> Result<Vec<SentPayment>, OutboxError> {
        let files = self.0.list().map_err(|error| OutboxError::Disk(self.0.place(), error))?;
        let mut names: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let is_payment = |name: &&String| name.starts_with(PAYMENT) && !name.ends_with(UNFINISHED);
        let payment = |name: &String| {
            let other = |kind: &str| format!("{kind}{}", &name[PAYMENT.len()..]);
            let has = |name: &String| names.binary_search(name).is_ok();
            let certified = Some(other(CERTIFICATE)).filter(|name| has(name));
            let certificate = certified.map(|name| self.read(&name, |bytes| PaymentCertificate::parse(bytes).ok()));
            Ok(SentPayment {
                payment: self.read(name, signed)?,
                certificate: certificate.transpose()?,
                is_settled: has(&other(ACKNOWLEDGEMENT)),
            })
        };
        names.iter().filter(is_payment).map(payment).collect()
    }

    /// Removes finished payments. If a crash leaves a part of one, the next call removes it.
    ///
    /// # Errors
    /// A disk error.
    pub fn forget(&self, payments: &[Digest]) -> Result<(), OutboxError> {
        let failed = |error| OutboxError::Disk(self.0.place(), error);
        let gone: BTreeSet<String> = payments.iter().map(Digest::to_string).collect();
        let files: BTreeSet<String> = self.0.list().map_err(failed)?.into_iter().map(|(name, _)| name).collect();
        let is_over = |digest: &str| gone.contains(digest) || !files.contains(&format!("{PAYMENT}{digest}"));
        // The payment first: a payment without its certificate would look unfinished.
        for kind in [PAYMENT, CERTIFICATE, ACKNOWLEDGEMENT] {
            let over = |name: &&String| name.strip_prefix(kind).is_some_and(is_over) && !name.ends_with(UNFINISHED);
            files.iter().filter(over).try_for_each(|name| self.0.remove(name)).map_err(failed)?;
            self.0.sync_directory().map_err(failed)?;
        }
        Ok(())
    }

    fn read<T>(&self, name: &str, parse: impl Fn(&[u8]) -> Option<T>) -> Result<T, OutboxError> {
        let failed = |error| OutboxError::Disk(format!("{}/{name}", self.0.place()), error);
        let file = self.0.open(name, false).map_err(failed)?;
        let mut bytes = vec![0; file.length().map_err(failed)? as usize];
        file.read_at(0, &mut bytes).map_err(failed)?;
        parse(&bytes).ok_or_else(|| OutboxError::Damaged(format!("{}/{name}", self.0.place())))
    }

    /// Writes a file as a whole: it gets its name once it is durable.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), OutboxError> {
        let unfinished = format!("{name}{UNFINISHED}");
        let written = || {
            if self.0.list()?.iter().any(|(other, _)| *other == unfinished) {
                self.0.remove(&unfinished)?;
            }
            let file = self.0.create(&unfinished)?;
            file.write_at(0, bytes)?;
            file.sync()?;
            self.0.rename(&unfinished, name)?;
            self.0.sync_directory()
        };
        written().map_err(|error| OutboxError::Disk(format!("{}/{name}", self.0.place()), error))
    }
}

fn signed(bytes: &[u8]) -> Option<SignedPayment> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (payment, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (digest, rest) = rest.split_first_chunk::<32>()?;
    let (signature, request) = rest.split_first_chunk::<64>()?;
    let is_whole = PaymentView::parse(payment).ok()?.digest() == Digest(*digest);
    is_whole.then(|| SignedPayment {
        payment: payment.to_vec(),
        digest: Digest(*digest),
        signature: Signature(*signature),
        request: request.to_vec(),
    })
}
