//! What a seat posts about a sealing key, and its layout.
//!
//! ```text
//! register  1 · key 96 · proof of possession 48
//! deal      2 · dealing (payments::Dealing)
//! complain  3 · complaint (payments::Complaint)
//! fine      4
//! hold      5 · proof that the share is held 48
//! lost      6
//! ```

use borsh::{BorshDeserialize, BorshSerialize};
use payments::{BlsSignature, Complaint};

/// A step of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum SealStep {
    /// Seats register fresh keys.
    Register,
    /// Those that registered deal.
    Deal,
    /// They complain about wrong shares, or say that all are fine.
    Complain,
    /// They prove that they hold their shares.
    Hold,
}

impl SealStep {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            SealStep::Register => "register",
            SealStep::Deal => "deal",
            SealStep::Complain => "complain",
            SealStep::Hold => "hold",
        }
    }
}

/// A seat's post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealPost {
    /// It offers a fresh key.
    Register {
        /// The key: a compressed point of G2.
        key: [u8; 96],
        /// The proof that it has the secret.
        possession: BlsSignature,
    },
    /// It deals: the bytes of a [`payments::Dealing`].
    Deal(Vec<u8>),
    /// A dealing gave it a wrong share.
    Complain(Box<Complaint>),
    /// It has no more complaints.
    Fine,
    /// It holds its share.
    Hold(BlsSignature),
    /// It holds it no more.
    Lost,
}

impl SealPost {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            SealPost::Register { key, possession } => [&[1][..], key, &possession.0].concat(),
            SealPost::Deal(dealing) => [&[2][..], dealing].concat(),
            SealPost::Complain(complaint) => [&[3][..], &complaint.encode()].concat(),
            SealPost::Fine => vec![4],
            SealPost::Hold(proof) => [&[5][..], &proof.0].concat(),
            SealPost::Lost => vec![6],
        }
    }

    /// The post of these bytes; `None` if they are none.
    pub fn parse(bytes: &[u8]) -> Option<SealPost> {
        let (kind, body) = bytes.split_first()?;
        Some(match kind {
            1 => {
                let (key, possession) = body.split_first_chunk::<96>()?;
                SealPost::Register { key: *key, possession: BlsSignature(possession.try_into().ok()?) }
            }
            2 => SealPost::Deal(body.to_vec()),
            3 => SealPost::Complain(Box::new(Complaint::parse(body).ok()?)),
            4 if body.is_empty() => SealPost::Fine,
            5 => SealPost::Hold(BlsSignature(body.try_into().ok()?)),
            6 if body.is_empty() => SealPost::Lost,
            _ => return None,
        })
    }

    /// The step that awaits it. A loss is told while shares are held.
    pub(super) fn step(&self) -> SealStep {
        match self {
            SealPost::Register { .. } => SealStep::Register,
            SealPost::Deal(_) => SealStep::Deal,
            SealPost::Complain(_) | SealPost::Fine => SealStep::Complain,
            SealPost::Hold(_) | SealPost::Lost => SealStep::Hold,
        }
    }
}
