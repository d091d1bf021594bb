//! A ledger that is mistaken about assets after the genesis.
//!
//! As in [`super::mistaken`] it is given what it would see, and makes no mistake itself; or its result is changed.

use ledger::{Applied, AssetTerms, Ledger, ListingTerms, Outcome, Refusal, RootPart};
use primitives::{Address, Amount, AssetId, Closing, Height, Life, Operation, Superblock, Transaction};

use super::rewritten::{debit, edit, rewrite};
use crate::world::EngineMistake;

/// The places of listings in a snapshot: the terms of all first, and then those of assets.
#[derive(borsh::BorshSerialize, borsh::BorshDeserialize)]
enum ListingsChunk {
    Head(ListingTerms),
    Assets(Vec<(AssetId, AssetTerms)>),
}

/// Changes the terms of assets, by way of a snapshot.
fn edit_terms(ledger: &mut Ledger, change: impl Fn(AssetId, &mut AssetTerms)) {
    rewrite(ledger, |kind, content| {
        if kind == RootPart::LISTINGS {
            let mut chunk = borsh::from_slice(content).expect("listings");
            if let ListingsChunk::Assets(all) = &mut chunk {
                all.iter_mut().for_each(|(asset, terms)| change(*asset, terms));
            }
            *content = borsh::to_vec(&chunk).expect("encodes");
        }
    });
}

/// Changes a ledger to what one with this mistake sees of every block.
pub(crate) fn look(mistake: EngineMistake, ledger: &mut Ledger) {
    let next = ledger.height() + 1;
    if mistake == EngineMistake::ClosesLate && closes_by(ledger, next) {
        edit_terms(ledger, |_, terms| {
            terms.closes.iter_mut().filter(|last| **last <= next).for_each(|last| *last += 1);
        });
    }
}

/// Takes back what [`look`] changed, after a block.
pub(crate) fn look_away(mistake: EngineMistake, before: &Ledger, ledger: &mut Ledger) {
    let height = ledger.height();
    if mistake == EngineMistake::ClosesLate && closes_by(before, height) {
        edit_terms(ledger, |asset, terms| {
            let was = before.listings().closes(asset).filter(|last| *last <= height);
            terms.closes = was.or(terms.closes);
        });
    }
}

fn closes_by(ledger: &Ledger, height: Height) -> bool {
    let mut numbers = (0..ledger.assets().len() as u32).map(AssetId);
    numbers.any(|asset| ledger.listings().closes(asset).is_some_and(|last| last <= height))
}

/// Changes a transaction to what a ledger with this mistake sees, and the ledger where it would judge by another state.
pub(crate) fn see(mistake: EngineMistake, ledger: &mut Ledger, transaction: &mut Transaction) {
    let (account, height) = (transaction.body.account, ledger.height() + 1);
    match (mistake, &mut transaction.body.operation) {
        (EngineMistake::ListingFeesFound, Operation::ListAsset(listing)) => listing.fees = ledger.listing_fees(),
        // Only names of the genesis begin with this letter.
        (EngineMistake::NamesCopied, Operation::ListAsset(listing)) if listing.symbol.starts_with(['A', 'a']) => {
            listing.symbol = "X".into();
        }
        (EngineMistake::OffersOutlive, Operation::CreateOffer { sell, buy, life, .. }) => {
            let lasts = [sell, buy].into_iter().filter_map(|asset| ledger.listings().closes(*asset));
            if let Some(last) = lasts.min().filter(|last| *last >= height && *life != Life::OneBatch) {
                *life = Life::Until(last);
            }
        }
        (EngineMistake::RevokedLate, Operation::CloseAsset { asset, closing: Closing::Revoke }) => {
            let is_issuer = ledger.assets().get(asset.0 as usize).is_some_and(|record| record.issuer == account);
            if is_issuer && ledger.listings().closes(*asset) == Some(height) {
                edit_terms(ledger, |of, terms| {
                    terms.closes.iter_mut().filter(|_| of == *asset).for_each(|last| *last += 1);
                });
            }
        }
        _ => {}
    }
}

/// Changes the result of a block to that of a ledger with this mistake.
pub(crate) fn distort(mistake: EngineMistake, ledger: &mut Ledger, block: &Superblock, applied: &mut Applied) {
    match mistake {
        EngineMistake::NumbersByPlace => number_by_place(&mut applied.outcomes),
        EngineMistake::RefusedListingPays => {
            let fee = ledger.fee();
            let native = block.sub_blocks.iter().flat_map(|sub| &sub.native);
            let mut refused = native.zip(&applied.outcomes).filter_map(|(one, outcome)| {
                let Operation::ListAsset(listing) = &one.body.operation else { return None };
                let is_judged = outcome.refusal().is_some_and(|refusal| refusal != Refusal::DUPLICATE);
                is_judged.then_some((one.body.account, listing.fees * fee))
            });
            let held = |account: &Address| ledger.accounts().get(account).map_or(0, |one| one.balance(AssetId(0)));
            let Some((account, units)) = refused.find(|(account, units)| held(account) >= *units) else { return };
            take(ledger, account, AssetId(0), units);
            match applied.batch.burnt.first_mut() {
                Some((AssetId(0), burnt)) => *burnt += units,
                _ => applied.batch.burnt.insert(0, (AssetId(0), units)),
            }
        }
        EngineMistake::ReturnLost => {
            let closed = applied.batch.ended.iter().rev().find(|ended| ended.why == ledger::EndReason::Closed);
            let Some(ended) = closed.copied() else { return };
            take(ledger, ended.place.account, ended.pair.sell, ended.returned);
        }
        _ => {}
    }
}

/// The listings of a block get their numbers in its order.
fn number_by_place(outcomes: &mut [Outcome]) {
    let is_listed = |outcome: &&mut Outcome| matches!(outcome, Outcome::Listed(_));
    let listed = outcomes.iter_mut().filter(is_listed);
    let mut numbers: Vec<Outcome> = listed.map(|outcome| *outcome).collect();
    numbers.sort_by_key(|outcome| if let Outcome::Listed(number) = outcome { number.0 } else { 0 });
    outcomes.iter_mut().filter(is_listed).zip(numbers).for_each(|(outcome, number)| *outcome = number);
}

/// Units of an account vanish.
fn take(ledger: &mut Ledger, account: Address, asset: AssetId, units: Amount) {
    let change = |account: &mut ledger::AccountState| debit(account, asset, units);
    edit(ledger, &account, change, Some((asset, -i128::from(units))));
}
