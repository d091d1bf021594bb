//! A ledger that is mistaken about proposals.
//!
//! As in [`super::mistaken`] it is given what it would see, and makes no mistake itself; or its result is changed.

use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use ledger::{Coming, Ledger, OpenProposal, RootPart, VotedParameters};
use primitives::{Address, AssetId, Height, Operation, Parameter, ProposalWord, ProposedChange, Transaction};

use super::rewritten::rewrite;
use crate::world::EngineMistake;

/// Proposals in a snapshot, behind the rules.
#[derive(BorshSerialize, BorshDeserialize)]
struct BallotChunk {
    record: Option<VotedParameters>,
    coming: Vec<Coming>,
    changed: BTreeMap<Parameter, Height>,
    open: BTreeMap<Address, OpenProposal>,
    closing: BTreeSet<AssetId>,
}

/// Changes what is proposed, by way of a snapshot.
fn edit(ledger: &mut Ledger, change: impl Fn(&mut BallotChunk)) {
    let mut chunks = 0;
    rewrite(ledger, |kind, content| {
        chunks += u32::from(kind == RootPart::CHARTER);
        if kind == RootPart::CHARTER && chunks == 2 {
            let mut ballot = borsh::from_slice(content).expect("proposals");
            change(&mut ballot);
            *content = borsh::to_vec(&ballot).expect("encodes");
        }
    });
}

fn is_boundary(ledger: &Ledger, height: Height) -> bool {
    ledger.schedule().boundary_from(height) == height
}

/// Changes a ledger to what one with this mistake sees of every block.
pub(super) fn look(mistake: EngineMistake, ledger: &mut Ledger) {
    let next = ledger.height() + 1;
    let open = || ledger.proposals().open().values();
    match mistake {
        EngineMistake::ActsEarly if ledger.proposals().coming().first().is_some_and(|one| one.acts == next + 2) => {
            edit(ledger, |ballot| ballot.coming[0].acts -= 1);
        }
        EngineMistake::ProposalsNeverEnd if is_boundary(ledger, next) && open().any(|one| one.tallied == 3) => {
            edit(ledger, |ballot| ballot.open.values_mut().for_each(|one| one.tallied = one.tallied.min(2)));
        }
        _ => {}
    }
}

/// The ledger in which words are counted as one with this mistake counts them, before a boundary.
pub(super) fn counted(mistake: EngineMistake, ledger: &Ledger) -> Option<Ledger> {
    let is_of_words = matches!(mistake, EngineMistake::WordsCountTwice | EngineMistake::LastCommitteeDecides);
    if !is_of_words || !is_boundary(ledger, ledger.height() + 1) || ledger.proposals().open().is_empty() {
        return None;
    }
    let registered = ledger.validators();
    let staked: Vec<Address> =
        registered.registry.iter().filter(|one| one.is_staked()).map(|one| one.member.account).collect();
    let seats: Vec<Address> = registered.committees.last().into_iter().flatten().map(|member| member.account).collect();
    let mut other = ledger.clone();
    edit(&mut other, |ballot| {
        for proposal in ballot.open.values_mut() {
            let says_yes = |account: &Address| proposal.votes.get(account) == Some(&ProposalWord::Yes);
            let (yes, silent): (Vec<Address>, Vec<Address>) = staked.iter().copied().partition(says_yes);
            let more = match mistake {
                EngineMistake::LastCommitteeDecides if !seats.iter().all(says_yes) => 0,
                EngineMistake::LastCommitteeDecides => silent.len(),
                _ => yes.len(),
            };
            proposal.votes.extend(silent.into_iter().take(more).map(|account| (account, ProposalWord::Yes)));
        }
    });
    Some(other)
}

/// Changes a transaction to what a ledger with this mistake sees.
pub(super) fn see(mistake: EngineMistake, ledger: &Ledger, transaction: &mut Transaction) {
    let Operation::Propose(change) = &mut transaction.body.operation else { return };
    if let (EngineMistake::StepsUnbounded, ProposedChange::Parameter { parameter, value }) = (mistake, &mut **change) {
        *value = (*value).min(ledger.parameters().get(*parameter).saturating_mul(2));
    }
}

/// Changes the result of a block to that of a ledger with this mistake.
pub(super) fn distort(mistake: EngineMistake, before: &Ledger, ledger: &mut Ledger) {
    let old = before.proposals().open();
    let is_newer = |(proposer, new): (&Address, &OpenProposal)| {
        old.get(proposer).is_some_and(|old| old.id != new.id && old.votes != new.votes)
    };
    if mistake == EngineMistake::WordsOutliveProposal && ledger.proposals().open().iter().any(is_newer) {
        edit(ledger, |ballot| {
            for (proposer, new) in &mut ballot.open {
                let votes = old.get(proposer).filter(|old| old.id != new.id).map(|old| old.votes.clone());
                new.votes.extend(votes.into_iter().flatten());
            }
        });
    }
}
