//! Envelopes, for the Python half: bytes in and out.

use ::sealing::{BoxSize, Envelope, EnvelopeTerms, Label, OpeningKey, SealedText, SealingKey};
use primitives::{Address, Digest, PublicKey};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Network, signer, number of the committee's key, payer, sequence number and last height.
type Terms = ([u8; 32], [u8; 32], u64, [u8; 20], u64, u64);

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn terms((network, signer, key, payer, sequence, until): Terms) -> EnvelopeTerms {
    let (network, signer, payer) = (Digest(network), PublicKey(signer), Address(payer));
    EnvelopeTerms { network, signer, key, payer, sequence, until }
}

fn size(number: u8) -> PyResult<BoxSize> {
    let found = BoxSize::ALL.get(usize::from(number)).copied();
    found.ok_or_else(|| wrong(format!("{number} is no size of a box: it is 0, 1 or 2")))
}

/// Size, point and box of an envelope that holds these signed operations.
#[pyfunction]
#[pyo3(signature = (committee, terms, operations, drawn, /))]
pub fn seal(
    py: Python<'_>,
    committee: [u8; 96],
    terms: Terms,
    operations: Vec<Vec<u8>>,
    drawn: [u8; 32],
) -> PyResult<(u8, Vec<u8>, Vec<u8>)> {
    let to = SealingKey::parse(&committee).map_err(wrong)?;
    let read = |(at, bytes): (usize, &Vec<u8>)| {
        borsh::from_slice(bytes).map_err(|_| wrong(format!("operation {at} is no signed transaction")))
    };
    let text = SealedText(operations.iter().enumerate().map(read).collect::<PyResult<_>>()?);
    let made = py.detach(|| ::sealing::seal(&to, &self::terms(terms), &text, &drawn)).map_err(wrong)?;
    Ok((made.size() as u8, made.point().to_vec(), made.sealed().to_vec()))
}

/// The label of an envelope.
#[pyfunction]
#[pyo3(signature = (terms, size, point, /))]
pub fn sealed_label(terms: Terms, size: u8, point: [u8; 96]) -> PyResult<[u8; 32]> {
    Ok(self::terms(terms).label(self::size(size)?, &point).0.0)
}

/// Whether a key opens the envelope of a label.
#[pyfunction]
#[pyo3(signature = (committee, label, key, /))]
pub fn opens(py: Python<'_>, committee: [u8; 96], label: [u8; 32], key: [u8; 48]) -> PyResult<bool> {
    let of = SealingKey::parse(&committee).map_err(wrong)?;
    Ok(py.detach(|| of.opens(&Label(Digest(label)), &OpeningKey(key))))
}

/// The signed operations of an envelope.
#[pyfunction]
#[pyo3(signature = (size, point, sealed, label, key, /))]
pub fn open_sealed(
    size: u8,
    point: [u8; 96],
    sealed: Vec<u8>,
    label: [u8; 32],
    key: [u8; 48],
) -> PyResult<Vec<Vec<u8>>> {
    let envelope = Envelope::new(self::size(size)?, point, sealed).map_err(wrong)?;
    let text = envelope.open(&Label(Digest(label)), &OpeningKey(key)).map_err(wrong)?;
    Ok(text.0.iter().map(|operation| borsh::to_vec(operation).expect("writing to memory cannot fail")).collect())
}
