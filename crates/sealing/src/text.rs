//! What is inside an envelope.

use primitives::{BoxSize, Transaction};

use crate::SealFault;

/// The most operations of an envelope.
pub const SEALED_OPERATIONS_MAX: usize = 32;

/// Signed operations to be sealed, or that were opened. None at all is cover: an envelope that hides that there is
/// nothing to hide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedText(pub Vec<Transaction>);

impl SealedText {
    /// The text as it is sealed: a count, each operation behind its length, and zeros up to the smallest box that
    /// holds them.
    ///
    /// # Errors
    /// [`SealFault::TooMany`] or [`SealFault::TooLong`].
    pub fn padded(&self) -> Result<(BoxSize, Vec<u8>), SealFault> {
        if self.0.len() > SEALED_OPERATIONS_MAX {
            return Err(SealFault::TooMany(self.0.len()));
        }
        let mut bytes = vec![self.0.len() as u8];
        for operation in &self.0 {
            let operation = borsh::to_vec(operation).expect("writing to memory cannot fail");
            let length = u16::try_from(operation.len()).map_err(|_| SealFault::TooLong(operation.len()))?;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&operation);
        }
        let fits = BoxSize::ALL.into_iter().find(|size| bytes.len() <= size.bytes());
        let size = fits.ok_or(SealFault::TooLong(bytes.len()))?;
        bytes.resize(size.bytes(), 0);
        Ok((size, bytes))
    }

    /// The operations of a text: as many as its count says, each as long as its length says, and zeros behind them.
    ///
    /// # Errors
    /// [`SealFault::Garbage`].
    pub fn unpadded(text: &[u8]) -> Result<SealedText, SealFault> {
        SealedText::read(text).ok_or(SealFault::Garbage)
    }

    fn read(text: &[u8]) -> Option<SealedText> {
        let (&count, mut rest) = text.split_first()?;
        let mut next = || {
            let (length, behind) = rest.split_first_chunk()?;
            let (operation, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = behind;
            borsh::from_slice(operation).ok()
        };
        let operations = (0..count).map(|_| next()).collect::<Option<_>>()?;
        let is_padded = usize::from(count) <= SEALED_OPERATIONS_MAX && rest.iter().all(|byte| *byte == 0);
        is_padded.then_some(SealedText(operations))
    }
}
