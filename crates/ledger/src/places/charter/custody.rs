//! The charter as a place of the state. It holds no units: one digest, and one chunk.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::{Address, Digest, Height, Upgrade};
use proofs::{ChainRules, Charter, ComingRules, RootPart};

use super::tally::{Boundary, confirm};
use super::{fault, write};
use crate::places::unsound::AuditError;
use crate::places::{
    Audited, ChunkFault, Custody, Drawn, Moved, ReadChunks, Restored, Turn, bytes_of, in_place, tagged,
};
use crate::terms::{Genesis, GenesisError, manifest};

/// What an account says about the rules.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CharterEdit {
    /// It approves them.
    Approve { upgrade: Upgrade, at: Height },
    /// It takes that back.
    Unapprove { rules: u32, at: Height },
}

impl Custody for Arc<Charter> {
    const TAG: u8 = RootPart::CHARTER;
    const NAME: &'static str = "charter";
    type Edit<'a> = CharterEdit;
    /// The digest, if it changed.
    type Change = Option<Digest>;
    type Tries = Option<Digest>;
    type Reader = CharterReader;

    fn found(genesis: &Genesis, _: Digest) -> Self {
        let meant = manifest(genesis.rules).expect("checked with the genesis");
        Arc::new(Charter::new(genesis.charter, ChainRules::new(genesis.rules, meant)))
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        Some(bytes_of(&genesis.charter))
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        genesis.charter_fault().map(GenesisError::Charter)
    }

    /// First the boundary, by the state before the block; then what accounts say.
    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, CharterEdit)]) -> Moved<Option<Digest>> {
        let height = turn.block.height;
        let is_due = turn.is_alone && self.rules.coming.is_some_and(|coming| coming.acts == height + 1);
        if edits.is_empty() && turn.drawn.is_none() && !is_due {
            return Moved::default();
        }
        let charter = Arc::make_mut(self);
        if let Some(Drawn { before, seats }) = &turn.drawn {
            let (registered, memory) = (before, turn.limits.until_max);
            Boundary { registered, drawn: seats, height, memory }.apply(charter);
        }
        edits.iter().for_each(|(account, edit)| write(charter, *account, *edit, height));
        if turn.is_alone {
            decide_alone(charter, height);
        }
        Moved { change: Some(charter.digest()), ..Moved::default() }
    }

    fn whole(&self) -> Option<Digest> {
        Some(self.digest())
    }

    fn follow(digest: &mut Option<Digest>, change: &Option<Digest>) {
        *digest = change.or(*digest);
    }

    fn part(digest: &mut Option<Digest>) -> Option<Digest> {
        *digest
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        Box::new(std::iter::once_with(|| tagged(Self::TAG, &**self)))
    }

    fn entries(&self) -> u64 {
        1
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        fault(self, audited.height, audited.schedule).map_or(Ok(audited.zero()), |why| Err(AuditError::Charter(why)))
    }
}

/// On a chain of one node: what the operator approves acts after its notice, unless it is taken back.
fn decide_alone(charter: &mut Charter, height: Height) {
    let approved = charter.consent(&charter.terms.operator).and_then(|own| own.next);
    let acts = |notice: Height| height.saturating_add(notice).max(height + 2);
    let kept = charter.rules.coming.filter(|coming| Some(coming.upgrade) == approved);
    let begun = |upgrade: Upgrade| ComingRules { upgrade, acts: acts(upgrade.notice), tries: 0, is_patient: false };
    charter.rules.coming = kept.or(approved.map(begun));
    if let Some(coming) = charter.rules.coming.filter(|coming| coming.acts == height + 1) {
        confirm(charter, BTreeMap::new(), &coming);
    }
}

/// Reads the charter.
#[derive(Default)]
pub(crate) struct CharterReader(Option<Charter>);

impl ReadChunks<Arc<Charter>> for CharterReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        in_place(self.0.replace(borsh::from_slice(bytes)?).is_none())
    }

    fn entries(&self) -> u64 {
        self.0.iter().count() as u64
    }

    fn finish(self, _: &Restored) -> Result<Arc<Charter>, AuditError> {
        self.0.map(Arc::new).ok_or(AuditError::Charter("it is missing"))
    }
}
