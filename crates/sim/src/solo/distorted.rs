//! Results of the ledger as one with a mistake would give them: the ledger itself makes none.

use ledger::contracts::ethereum::keccak256;
use ledger::contracts::{EthereumReceipt, EthereumTransaction, EvmStatus, FIRST_CONTRACT_OFFER, OFFERS, token_at};
use ledger::{
    AccountState, Applied, EndedOffer, Fault, Ledger, NO_END, Offer, Outcome, Pair, Place, SessionRecord, Signatures,
};
use primitives::{Address, Amount, AssetId, Body, Operation, Price, Sequence, Superblock, Transaction, slot_of};

use super::mistaken::see;
use super::rewritten::{ACCOUNTS, END, OFFERS_OF_PAIR, change_account, credit, debit, edit, rewrite};
use super::{miscontrolled, mislisted, misvoted};
use crate::world::{EngineMistake, Mistake};

/// Applies a block as the ledger does, and then changes the result as a ledger with this mistake would.
pub(crate) fn execute(
    ledger: &mut Ledger,
    block: &Superblock,
    signatures: Signatures,
    mistake: Option<Mistake>,
) -> Result<Applied, Fault> {
    let before = ledger.clone();
    let Some(mistake) = mistake.and_then(Mistake::of_engine) else {
        return ledger.apply(block, signatures, &mut |_| {});
    };
    mislisted::look(mistake, ledger);
    misvoted::look(mistake, ledger);
    let mut seen = block.clone();
    let transactions = seen.sub_blocks.iter_mut().flat_map(|sub| &mut sub.native);
    transactions.for_each(|transaction| see(mistake, ledger, transaction));
    // What is seen in place of a signature is none.
    let signatures = if seen == *block { signatures } else { Signatures::Valid };
    let counted = misvoted::counted(mistake, ledger);
    let mut applied = ledger.apply(&seen, signatures, &mut |_| {})?;
    if let Some(mut other) = counted {
        let others = other.apply(&seen, signatures, &mut |_| {})?;
        // Words that make no difference are not counted otherwise.
        if other.proposals().coming() != ledger.proposals().coming() {
            (*ledger, applied) = (other, others);
        }
    }
    mislisted::look_away(mistake, &before, ledger);
    distort(mistake, &before, ledger, block, &mut applied);
    mislisted::distort(mistake, ledger, block, &mut applied);
    misvoted::distort(mistake, &before, ledger);
    miscontrolled::distort(mistake, &before, ledger, block, &mut applied);
    Ok(applied)
}

fn distort(mistake: EngineMistake, before: &Ledger, ledger: &mut Ledger, block: &Superblock, applied: &mut Applied) {
    let mut effective = transactions(block).zip(&applied.outcomes).filter(|(_, outcome)| outcome.refusal().is_none());
    let fee = ledger.fee();
    match mistake {
        EngineMistake::SequenceNotMarked => {
            let Some((first, _)) = effective.next() else { return };
            let old = before.accounts().get(&first.body.account).map(|account| *account.window()).unwrap_or_default();
            edit(ledger, &first.body.account, |account| account.window = old, None);
        }
        EngineMistake::RefundTwice => {
            let Some(EndedOffer { pair, place, returned: units, .. }) = applied.batch.ended.first().copied() else {
                return;
            };
            let (account, asset) = (place.account, pair.sell);
            edit(ledger, &account, |account| credit(account, asset, units), Some((asset, units.into())));
        }
        EngineMistake::FeeNotBurnt => {
            let Some((first, _)) = effective.next() else { return };
            edit(
                ledger,
                &first.body.account,
                |account| credit(account, AssetId(0), fee),
                Some((AssetId(0), fee.into())),
            );
            less_burnt(applied, AssetId(0), fee);
        }
        EngineMistake::RoundedUp => {
            let Some(fill) = applied.batch.fills.first_mut() else { return };
            fill.bought += 1;
            let (account, pair) = (fill.place.account, fill.pair);
            let trade = applied.batch.trades.iter_mut().find(|trade| trade.pair == pair).expect("fills are of trades");
            trade.bought += 1;
            edit(ledger, &account, |account| credit(account, pair.buy, 1), Some((pair.buy, 1)));
            less_burnt(applied, pair.buy, 1);
        }
        EngineMistake::TradeOverstated => {
            if let Some(trade) = applied.batch.trades.first_mut() {
                trade.sold += 1;
            }
        }
        EngineMistake::RewardTwice => {
            let epoch = before.schedule().epoch_of(block.height);
            let Some(proposer) = before.committee(epoch).and_then(|committee| committee.first()) else { return };
            let reward = before.validators().terms.reward;
            let asset = AssetId(0);
            edit(ledger, &proposer.account, |account| credit(account, asset, reward), Some((asset, reward.into())));
        }
        EngineMistake::OfferOfARevertedCall => {
            let reverted = applied.contracts.receipts.iter().filter(|receipt| receipt.status == EvmStatus::Reverted);
            let placed = reverted.filter_map(|receipt| reverted_offer(block, receipt));
            let held =
                |owner: &Address, asset| ledger.accounts().get(owner).map_or(0, |account| account.balance(asset));
            let mut kept = placed.filter(|(pair, offer)| held(&offer.place.account, pair.sell) >= offer.amount);
            if let Some((pair, offer)) = kept.next() {
                keep(ledger, pair, offer);
            }
        }
        EngineMistake::ReplaceNotCharged => {
            let replaced = effective.filter(|(_, outcome)| matches!(outcome, Outcome::Replaced(_)));
            let added = |(transaction, _): (&Transaction, _)| match &transaction.body.operation {
                Operation::Replace(replace) if slot_of(transaction.body.sequence) > 0 && replace.debit() > 0 => {
                    Some((transaction.body.account, transaction.body.sequence, replace.old.sell, replace.debit()))
                }
                _ => None,
            };
            let Some((account, sequence, asset, units)) = replaced.filter_map(added).next() else { return };
            edit_session(ledger, (account, sequence), |session| {
                session.budget_mut(asset).into_iter().for_each(|budget| budget.release(units));
            });
        }
        EngineMistake::SessionNumberNotMarked => {
            let mut of_sessions = effective.filter(|(transaction, _)| slot_of(transaction.body.sequence) > 0);
            let Some((Body { account, sequence, .. }, _)) = of_sessions.next().map(|(one, met)| (&one.body, met))
            else {
                return;
            };
            let session = before.accounts().get(account).and_then(|account| account.session(slot_of(*sequence)));
            let Some(old) = session.map(|session| session.window) else { return };
            edit_session(ledger, (*account, *sequence), |session| session.window = old);
        }
        _ => {}
    }
}

/// Changes the record of the session key that a number belongs to.
fn edit_session(
    ledger: &mut Ledger,
    (account, sequence): (Address, Sequence),
    change: impl FnOnce(&mut SessionRecord),
) {
    let change = |account: &mut AccountState| {
        let mut records = account.sessions.iter_mut().flat_map(|sessions| &mut sessions.records);
        records.find(|session| session.slot == slot_of(sequence)).map(change);
    };
    edit(ledger, &account, change, None);
}

/// Lets every session key live as long as it may.
pub(crate) fn forget_timers(ledger: &mut Ledger) {
    rewrite(ledger, |kind, content| {
        if kind == ACCOUNTS {
            let mut accounts: Vec<AccountState> = borsh::from_slice(content).expect("accounts");
            let sessions = accounts.iter_mut().filter_map(|account| account.sessions.as_mut());
            sessions.flat_map(|sessions| &mut sessions.records).for_each(|session| session.alive = session.until);
            *content = borsh::to_vec(&accounts).expect("encodes");
        }
    });
}

/// The offer that a contract placed before its call reverted.
fn reverted_offer(block: &Superblock, receipt: &EthereumReceipt) -> Option<(Pair, Offer)> {
    const WORD: usize = 32;
    let lanes = block.sub_blocks.iter().flat_map(|sub| &sub.ethereum);
    let parts = EthereumTransaction::decode(lanes.into_iter().nth(receipt.position? as usize)?).ok()?.parts();
    let (to, rest) = parts.input.split_at_checked(WORD)?;
    let (function, arguments) = rest.split_at_checked(4)?;
    let is_placing = function == &keccak256("place(address,address,uint64,uint64)")[..4];
    if !is_placing || to[12..] != OFFERS.0 {
        return None;
    }
    let word = |at: usize| arguments.get(WORD * at..WORD * (at + 1));
    let token = |at: usize| token_at(&Address(word(at)?[12..].try_into().ok()?));
    let amount = |at: usize| Some(u64::from_be_bytes(word(at)?[24..].try_into().ok()?));
    let pair = Pair { sell: token(0)?, buy: token(1)? };
    let limit = Price::ratio_rounding_up(amount(3)?, amount(2)?)?;
    let place = Place { limit, account: parts.to?, id: FIRST_CONTRACT_OFFER + (1 << 40) };
    let is_kept = amount(2)? >= 4_096 && amount(3)? >= 4_096 && pair.sell != AssetId(0);
    is_kept.then_some((pair, Offer { place, amount: amount(2)?, until: NO_END }))
}

/// Debits an account and adds a resting offer of it, by way of a snapshot, if other offers of the pair rest.
fn keep(ledger: &mut Ledger, pair: Pair, offer: Offer) {
    if ledger.book().get(pair).is_none_or(|offers| offers.get(&offer.place).is_some()) {
        return;
    }
    rewrite(ledger, |kind, content| match kind {
        ACCOUNTS => change_account(content, &offer.place.account, |account| debit(account, pair.sell, offer.amount)),
        OFFERS_OF_PAIR => {
            let (of, mut offers): (Pair, Vec<Offer>) = borsh::from_slice(content).expect("offers");
            if of == pair {
                let at = offers.partition_point(|other| other.place < offer.place);
                offers.insert(at, offer);
            }
            *content = borsh::to_vec(&(of, offers)).expect("encodes");
        }
        END => {
            let mut counts: Vec<(u8, u64)> = borsh::from_slice(content).expect("counts");
            counts.iter_mut().filter(|(tag, _)| *tag == OFFERS_OF_PAIR).for_each(|(_, count)| *count += 1);
            *content = borsh::to_vec(&counts).expect("encodes");
        }
        _ => {}
    });
}

pub(crate) fn transactions(block: &Superblock) -> impl Iterator<Item = &Transaction> {
    block.sub_blocks.iter().flat_map(|sub| &sub.native)
}

fn less_burnt(applied: &mut Applied, asset: AssetId, units: Amount) {
    for burnt in applied.batch.burnt.iter_mut().filter(|burnt| burnt.0 == asset) {
        burnt.1 = burnt.1.saturating_sub(units);
    }
    applied.batch.burnt.retain(|(_, units)| *units > 0);
}
