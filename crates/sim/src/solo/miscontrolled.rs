//! A ledger that is mistaken about what issuers control.
//!
//! As in [`super::mistaken`] it is given what it would see, and makes no mistake itself; or its result is changed.

use std::collections::BTreeMap;

use ledger::{Applied, HolderRecord, HolderStanding, Ledger, Outcome, Refusal, Restore, RootPart, Snapshot};
use primitives::{Address, AssetControl, AssetId, HolderState, Operation, Superblock, Transaction};

use super::rewritten::{ACCOUNTS, END, change_account, credit, debit, rewrite};
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

/// Changes the ledger to one that a mistake lets pass what a transaction does.
pub(crate) fn see(mistake: EngineMistake, ledger: &mut Ledger, transaction: &Transaction) {
    let Operation::Pay { to, asset, .. } = transaction.body.operation else { return };
    let standing = |account: &Address| ledger.controls().standing(asset, account);
    let holder = match mistake {
        EngineMistake::FrozenSpends => {
            Some(transaction.body.account).filter(|of| standing(of) == HolderStanding::Frozen)
        }
        EngineMistake::FrozenIsPaid => Some(to).filter(|of| standing(of) == HolderStanding::Frozen),
        EngineMistake::StrangersArePaid => Some(to).filter(|of| standing(of) == HolderStanding::NotAdmitted),
        _ => None,
    };
    let Some(account) = holder else { return };
    let record = HolderRecord { is_open: true, since: ledger.height(), was_open: false };
    let admits = ledger.controls().control(asset).admits();
    edit_holders(ledger, |holders| {
        holders.remove(&(asset, account));
        holders.extend(admits.then_some(((asset, account), record)));
    });
}

/// Changes the result of a block to that of a ledger with this mistake.
pub(crate) fn distort(
    mistake: EngineMistake,
    before: &Ledger,
    ledger: &mut Ledger,
    block: &Superblock,
    applied: &mut Applied,
) {
    let native = block.sub_blocks.iter().flat_map(|sub| &sub.native);
    let mut all = native.zip(&mut applied.outcomes);
    match mistake {
        EngineMistake::RecoversEarly => {
            let held = |account: &Address, asset| before.accounts().get(account).map_or(0, |one| one.balance(asset));
            let early = |(transaction, outcome): &(&Transaction, &mut Outcome)| match &transaction.body.operation {
                Operation::Recover(of) => {
                    let is_early = outcome.refusal() == Some(Refusal::NOT_FROZEN_LONG);
                    is_early && held(&of.from, of.asset) >= of.amount
                }
                _ => false,
            };
            let Some((transaction, outcome)) = all.find(early) else { return };
            let Operation::Recover(of) = &transaction.body.operation else { return };
            *outcome = Outcome::Applied;
            rewrite(ledger, |kind, content| {
                if kind == ACCOUNTS {
                    change_account(content, &of.from, |account| debit(account, of.asset, of.amount));
                    change_account(content, &of.to, |account| credit(account, of.asset, of.amount));
                }
            });
        }
        EngineMistake::FreezeLost => {
            let lost = |(transaction, outcome): (&Transaction, &mut Outcome)| match transaction.body.operation {
                Operation::SetHolder { asset, account, state: HolderState::Frozen, .. } => {
                    let is_new = before.controls().record(asset, &account) != ledger.controls().record(asset, &account);
                    (*outcome == Outcome::Applied && is_new).then_some((asset, account))
                }
                _ => None,
            };
            let Some(holder) = all.find_map(lost) else { return };
            let was = before.controls().record(holder.0, &holder.1).copied();
            edit_holders(ledger, |holders| {
                holders.remove(&holder);
                holders.extend(was.map(|record| (holder, record)));
            });
        }
        _ => {}
    }
}
