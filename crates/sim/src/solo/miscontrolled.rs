//! A ledger that is mistaken about what issuers control.
//!
//! As in [`super::mistaken`] it is given what it would see, and makes no mistake itself; or its result is changed.

use std::collections::BTreeMap;

use ledger::{
    Applied, EndReason, EndedOffer, HolderRecord, HolderStanding, Ledger, Outcome, Restore, RootPart, Snapshot,
};
use primitives::{Address, AssetControl, AssetId, HolderState, Operation, Superblock, Transaction};

use super::rewritten::END;
use crate::world::EngineMistake;

type Holders = BTreeMap<(AssetId, Address), HolderRecord>;

/// The place of controls in a snapshot: the controlled assets, and then what was said of holders.
#[derive(borsh::BorshSerialize, borsh::BorshDeserialize)]
enum ControlsChunk {
    Assets(Vec<(AssetId, AssetControl)>),
    Holders(Vec<((AssetId, Address), HolderRecord)>),
}

/// Changes what issuers have said of holders, by way of a snapshot.
fn edit_holders(ledger: &mut Ledger, change: impl FnOnce(&mut Holders)) {
    let mut holders: Holders = ledger.controls().holders().map(|(holder, record)| (*holder, *record)).collect();
    change(&mut holders);
    let entries = (ledger.controls().assets().len() + holders.len()) as u64;
    let mut restore = Restore::default();
    for mut chunk in Snapshot::of(ledger) {
        let is_controls = chunk[0] == RootPart::CONTROLS;
        let is_holders = is_controls && matches!(borsh::from_slice(&chunk[1..]), Ok(ControlsChunk::Holders(_)));
        if chunk[0] == END {
            let mut counts: Vec<(u8, u64)> = borsh::from_slice(&chunk[1..]).expect("counts");
            counts.iter_mut().filter(|(tag, _)| *tag == RootPart::CONTROLS).for_each(|(_, count)| *count = entries);
            chunk = [vec![END], borsh::to_vec(&counts).expect("encodes")].concat();
        }
        if !is_holders {
            restore.push(&chunk).expect("a chunk");
        }
        if is_controls && !is_holders && !holders.is_empty() {
            let all = ControlsChunk::Holders(holders.iter().map(|(holder, record)| (*holder, *record)).collect());
            let bytes = [vec![RootPart::CONTROLS], borsh::to_vec(&all).expect("encodes")].concat();
            restore.push(&bytes).expect("a chunk");
        }
    }
    *ledger = restore.finish().expect("a state in which money is conserved");
}

/// Changes the ledger to one that a mistake lets pass what a transaction does: a holder is open to it.
pub(crate) fn see(mistake: EngineMistake, ledger: &mut Ledger, transaction: &Transaction) {
    let sender = transaction.body.account;
    let uses: &[(AssetId, Address)] = match (mistake, &transaction.body.operation) {
        (EngineMistake::FrozenSpends, Operation::CreateOffer { sell, buy, .. }) => &[(*sell, sender), (*buy, sender)],
        (EngineMistake::FrozenSpends, Operation::Pay { asset, .. }) => &[(*asset, sender)],
        (EngineMistake::FrozenIsPaid, Operation::Pay { to, asset, .. }) => &[(*asset, *to)],
        (EngineMistake::FrozenIsPaid, Operation::Issue { to, asset, .. }) => &[(*asset, *to)],
        _ => return,
    };
    let is_frozen =
        |(asset, account): &&(AssetId, Address)| ledger.controls().standing(*asset, account) == HolderStanding::Frozen;
    let opened: Vec<(AssetId, Address)> = uses.iter().filter(is_frozen).copied().collect();
    let record = HolderRecord { is_open: true, since: ledger.height(), was_open: false };
    for holder in opened {
        let admits = ledger.controls().control(holder.0).admits();
        edit_holders(ledger, |holders| {
            holders.remove(&holder);
            holders.extend(admits.then_some((holder, record)));
        });
    }
}

/// Changes the result of a block to that of a ledger with this mistake.
pub(crate) fn distort(
    mistake: EngineMistake,
    before: &Ledger,
    ledger: &mut Ledger,
    block: &Superblock,
    applied: &mut Applied,
) {
    match mistake {
        EngineMistake::FreezeLost => {
            let Some(holder) = frozen_by(before, ledger, block, &applied.outcomes) else { return };
            let was = before.controls().record(holder.0, &holder.1).copied();
            edit_holders(ledger, |holders| {
                holders.remove(&holder);
                holders.extend(was.map(|record| (holder, record)));
            });
        }
        EngineMistake::FreezeDatedBack => {
            let Some(holder) = frozen_by(before, ledger, block, &applied.outcomes) else { return };
            edit_holders(ledger, |holders| {
                holders.entry(holder).and_modify(|record| record.since -= 1);
            });
        }
        EngineMistake::FrozenEndUntold => {
            let is_frozen = |ended: &EndedOffer| ended.why == EndReason::Frozen;
            if let Some(at) = applied.batch.ended.iter().position(is_frozen) {
                applied.batch.ended.remove(at);
            }
        }
        _ => {}
    }
}

/// The first holder that a block freezes, of those who were not.
fn frozen_by(before: &Ledger, ledger: &Ledger, block: &Superblock, outcomes: &[Outcome]) -> Option<(AssetId, Address)> {
    let native = block.sub_blocks.iter().flat_map(|sub| &sub.native);
    native.zip(outcomes).find_map(|(transaction, outcome)| match transaction.body.operation {
        Operation::SetHolder { asset, account, state: HolderState::Frozen, .. } => {
            let is_new = before.controls().record(asset, &account) != ledger.controls().record(asset, &account);
            (*outcome == Outcome::Applied && is_new).then_some((asset, account))
        }
        _ => None,
    })
}
