//! Envelopes in a block: orders that nobody reads before their block is decided, opened into its own batch.
//!
//! Validators see all plain orders of a batch before they propose their own. An *envelope* hides a list of signed
//! orders from them (crate `sealing`). Its *name* is its signer, its payer and its number. Who makes opening keys, and
//! when, is decided elsewhere: here is what a block with its opening keys does.
//!
//! # Protocol
//!
//! *Upon a sub-block, before a vote*: by its bytes, each envelope is signed by one ed25519 key, its box is as long as
//! its size says, its point is one of the subgroup, and there are at most [`ENVELOPES_MAX`] divided by the seats
//! ([`are_envelopes_sound`]).
//!
//! *Upon a decided block* ([`opened`]): an envelope opens if its signature is valid, if h ≤ `until` ≤ h + 256, if its
//! key is in force at h, and if its name was opened at no earlier height. Of several with one name the one that ends
//! last opens, and of those the one with the highest id. No account is looked at: opening does not wait for the
//! execution of the block before. What stays closed costs nothing and uses up nothing.
//!
//! *Upon the block and its opening keys*, one for each envelope that opens, in the block's order, three passes:
//!
//! 1. *Plain* transactions are judged as if no envelope existed.
//! 2. *Fees*: an account's own envelopes before those of its session keys, each by ascending number, pay if what the
//!    first pass leaves suffices: of the balance, of the key's cap, of the free numbers. Of an unpaid envelope nothing
//!    counts. It is not even decrypted here.
//! 3. *The inside* of those that paid is decrypted, its signatures are verified, and it is judged on what is left:
//!    balances, caps, numbers, offers that are replaced, pairs that can be opened. The rules are those of the filter,
//!    over all envelopes of the block together.
//!
//! What passes joins the one batch of the block. *Upon the end of the block*, the names that it opened are noted
//! (`places::seals`).
//!
//! # Properties
//!
//! 1. *Plain ignores sealed*: which plain transactions count, and why others are refused, is the same without the
//!    block's envelopes.
//! 2. *Shuffling a block changes nothing* of its state.
//! 3. *An envelope opens once*, whatever copies of it are in how many sub-blocks and heights.
//! 4. *The inside counts nowhere else*: neither plain, nor in an envelope with another payer or number. What is plain
//!    counts in no envelope.
//! 5. *Who sends pays*: garbage pays as much as orders. What has not paid is not decrypted.
//! 6. *Refused operations use no number*: nobody burns the numbers of another account.
//! 7. *Wrong keys stop the block* and leave the state as it was ([`Fault::OpeningKeys`], [`Fault::OpeningKey`]).
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | a hidden overdraft takes back one's large visible offer after others have reacted | plain orders are judged alone; the overdraft refuses the sealed ones |
//! | a sealed cancel undoes one's visible replacement | a cancel does not find what a plain transaction replaces |
//! | a sealed order takes the number of one's visible order and ends later | a number that counts already is not free |
//! | opened bytes come back as a plain transaction, or in another envelope | signatures are bound to payer and number |
//! | a plain transaction of somebody else in an envelope, to have it count with what it would not | the same |
//! | a header of another's name that ends later, under a stranger's key | the signer is part of the name |
//! | the same, with a forged signature | it does not open |
//! | copies of an envelope in many sub-blocks and heights, one after a restart or in a fetched state | its name opens once, and ends before it is forgotten |
//! | an envelope that is paid by what it brings | fees are judged before anything in it |
//! | a session key drains its owner by envelopes | they count under its cap of asset 0 |
//! | envelopes that nobody can pay, in the places of a Byzantine proposer | these are its share of places alone; no work but their keys |
//! | pairs, opened by sealed orders before plain ones | pairs of plain orders are opened first |
//! | 64 envelopes of 32 operations | 2,048 signatures at most, of which all may be recoveries; a block's quotas do not count them |
//! | payments, venues, stakes, keys, envelopes in envelopes | an envelope holds orders, replacements and cancels |
//!
//! Time for the largest block: 64 pairings to open, one check of 64 keys, and 2,048 signatures, on all threads. Memory:
//! half a megabyte of text, and a megabyte of names.
//!
//! # Deviations
//!
//! - *A forged envelope costs its sub-block no vote*, as other forged transactions do not: its proposer loses the
//!   reward, and the envelope stays closed.
//! - *Signatures of several keys for one account* are not valid on envelopes or in them: the binding would be a third
//!   one. Such an account trades by session keys.
//! - *An envelope whose point is none* is garbage if a block has it: only a node that is alone decides such a block.
//! - *Fees*: a later envelope that costs less may be paid where an earlier one was not.

mod fees;
mod inside;
mod opened;
mod reading;

use std::collections::BTreeMap;

use primitives::{EnvelopeName, RULES_OF_ENVELOPES, Superblock, Transaction, TransactionId};
use proofs::{Outcome, SealedFate};
use rayon::prelude::*;
use sealing::{Envelope, Label, OpeningKey, SealingKey, check_keys};

use super::fault::Fault;
use super::filter::Filtered;
use crate::state::Ledger;

pub(crate) use inside::{Enclosed, filter_inside};
use opened::is_sealed;
pub use opened::{
    ENVELOPES_MAX, OpenedEnvelope, OpenedEnvelopes, OpeningRules, are_envelopes_sound, envelopes_per_sub_block, opened,
};
pub use reading::enclosed;

/// What opens the envelopes of a block, beside the block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsealing<'a> {
    /// The committee's keys in force at the block's height, each with its number.
    pub in_force: &'a [(u64, SealingKey)],
    /// The opening keys of the block's record: one for each envelope that opens, in the block's order.
    pub keys: &'a [OpeningKey],
    /// Whether they were checked before; else they are checked here.
    pub are_checked: bool,
}

/// An operation of an envelope, and what became of it.
#[derive(Clone, Debug)]
pub struct OpenedOperation {
    /// The index of the envelope among the block's native transactions.
    pub envelope: u32,
    /// The id of the operation in this envelope.
    pub id: TransactionId,
    /// The operation.
    pub transaction: Transaction,
    /// What became of it.
    pub outcome: Outcome,
}

/// What the envelopes of a block brought.
#[derive(Default)]
pub(crate) struct Unsealed {
    /// What became of those that opened, by index.
    pub fates: Vec<(u32, SealedFate)>,
    /// Their names.
    pub names: Vec<EnvelopeName>,
    /// The operations in those that paid, in the block's order.
    pub inside: Vec<Enclosed>,
}

impl Unsealed {
    /// Writes what became of envelopes into the outcomes, and takes those of the operations in them out, which stand
    /// behind those of the block's own transactions.
    pub(crate) fn outcomes(self, outcomes: &mut Vec<Outcome>) -> Vec<OpenedOperation> {
        self.fates.into_iter().for_each(|(index, fate)| outcomes[index as usize] = Outcome::Sealed(fate));
        let of_inside = outcomes.split_off(outcomes.len() - self.inside.len());
        let opened = |(one, outcome): (Enclosed, Outcome)| OpenedOperation {
            envelope: one.envelope,
            id: one.id(),
            transaction: one.transaction,
            outcome,
        };
        self.inside.into_iter().zip(of_inside).map(opened).collect()
    }
}

/// Opens the envelopes of a block whose plain transactions are judged: the fees of those that open, and what is in
/// those that pay. `valid` says whether the signature of each transaction is valid; `None` if all are.
///
/// # Errors
/// [`Fault`] if the opening keys are not those of the envelopes that open.
pub(crate) fn unseal(
    ledger: &Ledger,
    block: &Superblock,
    (transactions, valid): (&[&Transaction], Option<&[bool]>),
    unsealing: &Unsealing,
    filtered: &mut Filtered,
) -> Result<Unsealed, Fault> {
    if ledger.next_rules() < RULES_OF_ENVELOPES || !transactions.iter().any(|one| is_sealed(one)) {
        return match unsealing.keys.len() {
            0 => Ok(Unsealed::default()),
            got => Err(Fault::OpeningKeys { height: block.height, opened: 0, got }),
        };
    }
    let numbers: Vec<u64> = unsealing.in_force.iter().map(|(number, _)| *number).collect();
    let OpenedEnvelopes { opened, closed } = ledger.opening(block, valid, &numbers);
    check_opening_keys(block, &opened, unsealing)?;
    closed.into_iter().for_each(|(index, refusal)| filtered.refusals[index as usize] = Some(refusal));
    let unpaid = fees::pay(ledger, transactions, opened.iter().map(|envelope| envelope.index), filtered);
    unpaid.iter().for_each(|(index, refusal)| filtered.refusals[*index as usize] = Some(*refusal));
    let paid = opened.par_iter().zip(unsealing.keys).filter(|(one, _)| filtered.refusals[one.index as usize].is_none());
    let texts: Vec<(&OpenedEnvelope, Option<Vec<Transaction>>)> =
        paid.map(|(one, key)| (one, text(transactions[one.index as usize], &one.label, key))).collect();
    let mut unsealed = Unsealed {
        fates: unpaid.into_iter().map(|(index, refusal)| (index, SealedFate::Unpaid(refusal))).collect(),
        names: opened.iter().map(|envelope| envelope.name).collect(),
        inside: Vec::new(),
    };
    for (&OpenedEnvelope { index, name, .. }, text) in texts {
        let count = text.as_ref().map(Vec::len);
        let fate = count.map_or(SealedFate::Garbage, |count| SealedFate::Opened(count as u8));
        unsealed.fates.push((index, fate));
        let enclosed = |transaction| Enclosed { envelope: index, within: name.enclosure, transaction };
        unsealed.inside.extend(text.into_iter().flatten().map(enclosed));
    }
    Ok(unsealed)
}

/// What is in an envelope; `None` if it is garbage.
fn text(envelope: &Transaction, label: &Label, key: &OpeningKey) -> Option<Vec<Transaction>> {
    let (bytes, _) = envelope.envelope()?;
    let text = Envelope::parse(bytes).and_then(|envelope| envelope.open(label, key));
    text.ok().map(|text| text.0)
}

/// Checks that the opening keys are as many as the envelopes that open, and each that of its label.
fn check_opening_keys(block: &Superblock, opened: &[OpenedEnvelope], unsealing: &Unsealing) -> Result<(), Fault> {
    let (height, got) = (block.height, unsealing.keys.len());
    if opened.len() != got {
        return Err(Fault::OpeningKeys { height, opened: opened.len(), got });
    }
    if unsealing.are_checked {
        return Ok(());
    }
    let mut of_key: BTreeMap<u64, Vec<(Label, OpeningKey)>> = BTreeMap::new();
    for (envelope, key) in opened.iter().zip(unsealing.keys) {
        of_key.entry(envelope.key).or_default().push((envelope.label, *key));
    }
    let of = |number: &u64| unsealing.in_force.iter().find(|(known, _)| known == number).map(|(_, key)| key);
    let hold = of_key.par_iter().all(|(number, keys)| of(number).is_some_and(|of| check_keys(of, keys)));
    if hold { Ok(()) } else { Err(Fault::OpeningKey { height }) }
}
