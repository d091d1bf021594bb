//! The charter as a place of the state. It holds no units: one digest, and one chunk.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::{Address, Digest, Height, ProposalWord, ProposedChange, TransactionId, Upgrade};
use proofs::{ChainRules, Charter, ComingRules, RootPart};

use super::tally::{Boundary, confirm};
use super::{Ballot, ChainCharter, LAW, Scene, Voters, fault, write};
use crate::places::unsound::AuditError;
use crate::places::{
    Audited, ChunkFault, Custody, Drawn, Moved, ReadChunks, Restored, Turn, bytes_of, in_place, tagged,
};
use crate::terms::{Genesis, GenesisError, manifest};

/// What an operation does to the charter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CharterEdit<'a> {
    /// The sender says something about the rules.
    Rules(RulesEdit),
    /// It proposes a change; its transaction has this id.
    Propose(&'a ProposedChange, TransactionId),
    /// It says whether it wants the proposal of this id.
    Vote(TransactionId, ProposalWord),
}

/// What an account says about the rules.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RulesEdit {
    /// It approves them.
    Approve { upgrade: Upgrade, at: Height },
    /// It takes that back.
    Unapprove { rules: u32, at: Height },
}

impl Custody for Arc<ChainCharter> {
    const TAG: u8 = RootPart::CHARTER;
    const NAME: &'static str = "charter";
    type Edit<'a> = CharterEdit<'a>;
    /// The digest, if it changed.
    type Change = Option<Digest>;
    type Tries = Option<Digest>;
    type Reader = CharterReader;

    fn found(genesis: &Genesis, _: Digest) -> Self {
        let meant = manifest(genesis.rules).expect("checked with the genesis");
        let charter = Charter::new(genesis.charter, ChainRules::new(genesis.rules, meant));
        Arc::new(ChainCharter { charter, proposals: Arc::default() })
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        Some(bytes_of(&genesis.charter))
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        genesis.charter_fault().map(GenesisError::Charter)
    }

    /// First the boundary, by the state before the block; then what accounts say; then what acts from the next height
    /// on.
    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, CharterEdit<'_>)]) -> Moved<Option<Digest>> {
        let height = turn.block.height;
        let is_due = turn.is_alone && self.charter.rules.coming.is_some_and(|coming| coming.acts == height + 1);
        if edits.is_empty() && turn.drawn.is_none() && !is_due && turn.entering.is_none() {
            return Moved::default();
        }
        let ChainCharter { charter, proposals } = Arc::make_mut(self);
        if let Some(Drawn { before, seats }) = &turn.drawn {
            let (registered, memory) = (before, turn.limits.until_max);
            Boundary { registered, drawn: seats, height, memory }.apply(charter);
            let (voters, schedule) = (Voters::of(before, seats), before.terms.schedule);
            let acts = schedule.first_height(schedule.last_drawn(height) + 1);
            let is_open = !proposals.open().is_empty();
            with_scene(turn, |scene| {
                if is_open {
                    Arc::make_mut(proposals).tally(&voters, &scene, acts);
                }
            });
        }
        for (account, edit) in edits {
            if let CharterEdit::Rules(edit) = edit {
                write(charter, *account, *edit, height);
            }
        }
        if turn.is_alone {
            let changes = edits.iter().filter_map(|(_, edit)| proposed(edit).map(|(change, _)| change.clone()));
            let acts = height.saturating_add(charter.terms.notice_min).max(height + 2);
            with_scene(turn, |scene| Arc::make_mut(proposals).decide(changes, &scene, acts));
            decide_alone(charter, height);
        } else {
            hear(proposals, turn, edits);
        }
        turn.listings = None;
        if turn.entering.is_some() {
            Arc::make_mut(proposals).begin(height + 1);
        }
        Moved { change: Some(self.digest()), ..Moved::default() }
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
        let proposals = Some(&self.proposals).filter(|proposals| !proposals.is_nothing());
        let charter = std::iter::once_with(|| tagged(Self::TAG, &self.charter));
        Box::new(charter.chain(proposals.map(|proposals| tagged(Self::TAG, &**proposals))))
    }

    fn entries(&self) -> u64 {
        1 + u64::from(!self.proposals.is_nothing())
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let fault = fault(&self.charter, audited.height, audited.schedule);
        let fault = fault.or_else(|| self.proposals.fault(audited.height));
        fault.map_or(Ok(audited.zero()), |why| Err(AuditError::Charter(why)))
    }
}

/// What is judged by the state before a turn's block. Only a boundary, and a node alone, judge here.
fn with_scene(turn: &mut Turn<'_>, judge: impl FnOnce(Scene<'_>)) {
    // Nobody else may hold the listings when their own place changes them.
    let Some(listings) = turn.listings.take() else { return };
    let &mut Turn {
        block,
        now,
        records: assets,
        least_units,
        committee,
        ref stakes,
        ref controls,
        ref lane_assets,
        ..
    } = turn;
    let staked = stakes.values().map(|units| u128::from(*units)).sum();
    let (law, height, listings) = (LAW, block.height, &*listings);
    let (controls, lane) = (&**controls, lane_assets.as_deref());
    judge(Scene { law, height, now, committee, staked, listings, assets, least_units, controls, lane });
}

/// The proposal that an edit makes.
fn proposed<'a>(edit: &CharterEdit<'a>) -> Option<(&'a ProposedChange, TransactionId)> {
    match *edit {
        CharterEdit::Propose(change, id) => Some((change, id)),
        CharterEdit::Rules(_) | CharterEdit::Vote(..) => None,
    }
}

/// Proposals first, and then words: one about what this block has replaced is about nothing.
fn hear(proposals: &mut Arc<Ballot>, turn: &Turn<'_>, edits: &[(Address, CharterEdit<'_>)]) {
    if edits.iter().all(|(_, edit)| matches!(edit, CharterEdit::Rules(_))) {
        return;
    }
    let proposals = Arc::make_mut(proposals);
    for (account, (change, id)) in edits.iter().filter_map(|(account, edit)| Some((account, proposed(edit)?))) {
        proposals.propose(turn.now, *account, id, change.clone());
    }
    proposals.make_room(&turn.stakes);
    for (account, edit) in edits {
        if let CharterEdit::Vote(id, word) = edit {
            proposals.vote(*account, id, *word);
        }
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
pub(crate) struct CharterReader {
    charter: Option<Charter>,
    proposals: Option<Ballot>,
}

impl ReadChunks<Arc<ChainCharter>> for CharterReader {
    /// First the rules with their approvals; then what is proposed, if something ever was.
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        if self.charter.is_none() {
            self.charter = Some(borsh::from_slice(bytes)?);
            return Ok(());
        }
        let proposals: Ballot = borsh::from_slice(bytes)?;
        in_place(!proposals.is_nothing() && self.proposals.replace(proposals).is_none())
    }

    fn entries(&self) -> u64 {
        self.charter.iter().count() as u64 + self.proposals.iter().count() as u64
    }

    fn finish(self, _: &Restored) -> Result<Arc<ChainCharter>, AuditError> {
        let charter = self.charter.ok_or(AuditError::Charter("it is missing"))?;
        Ok(Arc::new(ChainCharter { charter, proposals: Arc::new(self.proposals.unwrap_or_default()) }))
    }
}
