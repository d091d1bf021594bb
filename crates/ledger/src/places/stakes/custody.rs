//! Stakes as a place of custody: the whole registry is one digest and one chunk.

use std::sync::Arc;

use primitives::{Address, Amount, AssetId, Digest, SubBlock, Superblock};
use proofs::{Refusal, RootPart, Validators};

use super::{LaneStakes, RegistryEdit, Stakes};
use crate::places::seals::Acting;
use crate::places::sums::Sums;
use crate::places::unsound::AuditError;
use crate::places::{
    Audited, ChunkFault, Custody, Drawn, Moved, ReadChunks, Restored, Rules, Turn, bytes_of, in_place, tagged,
};
use crate::terms::{Genesis, GenesisError, Membership, STAKED};

impl Custody for Arc<Stakes> {
    const TAG: u8 = RootPart::STAKES;
    const NAME: &'static str = "stakes and rewards";
    type Edit<'a> = RegistryEdit<'a>;
    type Change = Digest;
    type Tries = Digest;
    type Reader = StakeReader;

    fn found(genesis: &Genesis, last_block: Digest) -> Self {
        let Membership { mut terms, reward_pool, founders } = genesis.membership.clone().unwrap_or_default();
        terms.network = genesis.network(last_block);
        Arc::new(Stakes::found(terms, reward_pool, &founders))
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        genesis.membership.as_ref().map(bytes_of)
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        genesis.membership.as_ref().and_then(|membership| membership.check().err())
    }

    fn units(genesis: &Genesis) -> Box<dyn Iterator<Item = (Address, AssetId, Amount)> + '_> {
        Box::new(genesis.membership.iter().flat_map(Membership::bonded))
    }

    fn check(&self, rules: &Rules, sender: Address, edit: RegistryEdit<'_>) -> Result<(), Refusal> {
        Stakes::check(self, rules.chain, &sender, edit, rules.height, rules.limits.validators as usize)
    }

    /// Sub-blocks with an invalid transaction earn nothing. The lane has convicted some accounts; the stakes of others
    /// back lane members and stay locked.
    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, RegistryEdit<'_>)]) -> Moved<Digest> {
        let Turn { block, limits, refusals, convicted, .. } = turn;
        let entering = turn.entering.as_ref().map(|coming| coming.values.registry(self.registered.terms));
        if self.is_untouched_by(block, edits.len() + convicted.len()) && entering.is_none() {
            return Moved { change: self.registered.digest(), ..Moved::default() };
        }
        let (answering, heights_max) = (std::mem::take(&mut turn.answering), turn.answering_heights);
        let lane = LaneStakes { convicted, answering, heights_max };
        let earning = earning(block, refusals);
        let is_boundary = self.registered.terms.schedule.is_boundary(block.height);
        let before = is_boundary.then(|| self.registered.clone());
        let most = limits.validators as usize;
        let moved = Arc::make_mut(self).apply(block, &earning, edits, &lane, most, &turn.readiness);
        if let Some(terms) = entering {
            Arc::make_mut(self).registered.terms = terms;
        }
        turn.drawn = before.map(|before| Drawn { before, seats: self.seated().map(|member| member.account).collect() });
        // The block may have drawn a committee, which ends the keys of the present one.
        turn.acting = turn.acting.take().map(|_| Acting::after(&self.registered, turn.block.height));
        let mut held = Sums::default();
        held.add(STAKED, moved.bonded);
        Moved { credits: moved.credits, held, change: self.registered.digest(), ..Moved::default() }
    }

    fn whole(&self) -> Digest {
        self.registered.digest()
    }

    fn follow(digest: &mut Digest, change: &Digest) {
        *digest = *change;
    }

    fn part(digest: &mut Digest) -> Option<Digest> {
        Some(*digest)
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        Box::new(std::iter::once_with(|| tagged(Self::TAG, &self.registered)))
    }

    fn entries(&self) -> u64 {
        1
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        self.fault(audited.height).map_or(Ok(()), |fault| Err(AuditError::Validators(fault)))?;
        let mut held = audited.zero();
        held[STAKED.0 as usize] = self.registered.bonded();
        Ok(held)
    }
}

/// The proposers whose sub-blocks contain no invalid transaction of either kind. An Ethereum transaction is invalid
/// if its signature recovers to no address; invalid bytes are rejected before a vote.
fn earning(block: &Superblock, refusals: &[Option<Refusal>]) -> Vec<u32> {
    let mut rest = refusals;
    let mut is_sound = |sub: &&SubBlock| {
        let (own, others) = rest.split_at(sub.native.len());
        rest = others;
        !own.iter().flatten().any(|refusal| refusal.is_false()) && sub.senders.iter().all(Option::is_some)
    };
    block.sub_blocks.iter().filter(|sub| is_sound(sub)).map(|sub| sub.proposer).collect()
}

/// Reads the registry.
#[derive(Default)]
pub(crate) struct StakeReader(Option<Validators>);

impl ReadChunks<Arc<Stakes>> for StakeReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        in_place(self.0.replace(borsh::from_slice(bytes)?).is_none())
    }

    fn entries(&self) -> u64 {
        self.0.iter().count() as u64
    }

    fn finish(self, _: &Restored) -> Result<Arc<Stakes>, AuditError> {
        self.0.map(|registered| Arc::new(Stakes { registered })).ok_or(AuditError::Validators("it is missing"))
    }
}
