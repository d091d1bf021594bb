//! Seals as a place of the state. It holds no units: one digest, and one chunk. Whose genesis has no terms has no part.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest, RULES_OF_SEALS};
use proofs::{Refusal, RootPart, Schedule};

use super::board::BoardRecord;
use super::{SEAL_NOTICE, SEAL_SEATS, SealBoard, SealPost, Seals, Stored};
use crate::places::unsound::AuditError;
use crate::places::{
    Audited, ChunkFault, Custody, Moved, ReadChunks, Restored, Rules, Turn, bytes_of, in_place, tagged,
};
use crate::terms::{Genesis, GenesisError};

/// A seat's post about the key of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealEdit<'a> {
    pub key: u64,
    pub post: &'a [u8],
}

#[derive(BorshSerialize, BorshDeserialize)]
struct SealsChunk {
    stored: Stored,
    board: Option<BoardRecord>,
}

/// The fault of what a genesis says of seals.
fn genesis_fault(genesis: &Genesis) -> Option<&'static str> {
    genesis.seals?;
    let Some(membership) = &genesis.membership else {
        return Some("one node alone would read what is sealed: leave them out, or found a network of two or more");
    };
    let Schedule { delay, .. } = membership.terms.schedule;
    Some(match () {
        _ if genesis.rules < RULES_OF_SEALS => "the chain begins with rules that have none: leave them out",
        _ if !SEAL_SEATS.contains(&membership.founders.len()) => "a network with seals has 2 to 32 founders",
        _ if !SEAL_SEATS.contains(&(membership.terms.committee as usize)) => "a committee with seals has 2 to 32 seats",
        _ if !membership.terms.schedule.is_fixed() && delay < SEAL_NOTICE => {
            "a key ends with its committee, which must be known 8 heights before: raise the delay of epochs"
        }
        _ => return None,
    })
}

impl Custody for Option<Arc<Seals>> {
    const TAG: u8 = RootPart::SEALS;
    const NAME: &'static str = "seals";
    type Edit<'a> = SealEdit<'a>;
    /// The digest, if it changed.
    type Change = Option<Digest>;
    type Tries = Option<Digest>;
    type Reader = SealsReader;

    fn found(genesis: &Genesis, _: Digest) -> Self {
        genesis.seals.map(|terms| Arc::new(Seals::found(terms)))
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        genesis.seals.as_ref().map(bytes_of)
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        genesis_fault(genesis).map(GenesisError::Seals)
    }

    fn check(&self, _: &Rules, sender: Address, edit: SealEdit<'_>) -> Result<(), Refusal> {
        let seals = self.as_ref().ok_or(Refusal::NO_SEALS)?;
        let post = SealPost::parse(edit.post).ok_or(Refusal::BAD_SEAL_POST)?;
        seals.check(&sender, edit.key, &post)
    }

    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, SealEdit<'_>)]) -> Moved<Option<Digest>> {
        let Some((seals, acting)) = self.as_mut().zip(turn.acting.as_ref()) else { return Moved::default() };
        let height = turn.block.height;
        if edits.is_empty() && turn.names.is_none() && !seals.is_due(height, acting) {
            return Moved::default();
        }
        let of_seals = Arc::make_mut(seals);
        of_seals.stored.names = turn.names.take().unwrap_or_else(|| of_seals.stored.names.clone());
        let parsed =
            |(account, edit): &(Address, SealEdit<'_>)| Some((*account, edit.key, SealPost::parse(edit.post)?));
        let mut posts: Vec<_> = edits.iter().filter_map(parsed).collect();
        posts.sort_by_key(|(account, ..)| *account);
        of_seals.turn(height, acting, posts);
        Moved { change: Some(seals.record().root()), ..Moved::default() }
    }

    fn whole(&self) -> Option<Digest> {
        self.as_ref().map(|seals| seals.record().root())
    }

    fn follow(digest: &mut Option<Digest>, change: &Option<Digest>) {
        *digest = change.or(*digest);
    }

    fn part(digest: &mut Option<Digest>) -> Option<Digest> {
        *digest
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        let chunk = |seals: &Arc<Seals>| {
            let board = seals.board().map(|board| board.record().clone());
            tagged(Self::TAG, &SealsChunk { stored: seals.stored.clone(), board })
        };
        Box::new(self.iter().map(chunk))
    }

    fn entries(&self) -> u64 {
        u64::from(self.is_some())
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let fault = self.as_ref().and_then(|seals| seals.fault(audited.height));
        fault.map_or(Ok(audited.zero()), |why| Err(AuditError::Seals(why)))
    }
}

/// Reads the one chunk.
#[derive(Default)]
pub(crate) struct SealsReader(Option<Seals>);

impl ReadChunks<Option<Arc<Seals>>> for SealsReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        in_place(self.0.is_none())?;
        let SealsChunk { stored, board } = borsh::from_slice(bytes)?;
        let impossible = AuditError::Seals("the board of a key generation is impossible");
        let restored = |record| SealBoard::restored(record).ok_or(ChunkFault::Unsound(impossible));
        self.0 = Some(Seals { stored, board: board.map(restored).transpose()? });
        Ok(())
    }

    fn entries(&self) -> u64 {
        u64::from(self.0.is_some())
    }

    fn finish(self, _: &Restored) -> Result<Option<Arc<Seals>>, AuditError> {
        Ok(self.0.map(Arc::new))
    }
}
