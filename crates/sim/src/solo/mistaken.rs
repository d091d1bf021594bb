//! A ledger that is mistaken about accounts of institutions accepts what the ledger refuses.
//!
//! What it would see in place of a transaction, and of its state, is given to the ledger, which makes no mistake.

use ledger::{AccountKeys, Ledger};
use primitives::operations::Needs;
use primitives::{
    KeyPolicy, KeySignature, KeySignatures, Operation, PolicySigned, Reference, ReferenceKind, ReferenceRule,
    Signature, SignedBy, SignedByWallet, Transaction, WalletKey,
};

use super::rewritten::edit_keys;
use super::{miscontrolled, mislisted, misvoted};
use crate::world::EngineMistake;

/// Changes a ledger and a transaction to what a ledger with this mistake sees.
pub(crate) fn see(mistake: EngineMistake, ledger: &mut Ledger, transaction: &mut Transaction) {
    mislisted::see(mistake, ledger, transaction);
    misvoted::see(mistake, ledger, transaction);
    miscontrolled::see(mistake, ledger, transaction);
    let (account, operation) = (transaction.body.account, &mut transaction.body.operation);
    match (mistake, operation) {
        (EngineMistake::CompletesEarly, Operation::CompleteKeys { account }) => edit_keys(ledger, account, |keys| {
            keys.waiting.iter_mut().for_each(|waiting| waiting.due = 0);
        }),
        (EngineMistake::RecoversBesideChange, Operation::RecoverKeys(recover)) => {
            edit_keys(ledger, &recover.change.account, |keys| keys.waiting = None);
        }
        (EngineMistake::ReferencesNotAsked, Operation::SetReceiving { references }) => {
            *references = ReferenceRule::Optional;
        }
        (EngineMistake::ReferencesAskedFor, Operation::SetReceiving { references }) => {
            *references = ReferenceRule::Required;
        }
        (EngineMistake::ReferencedPaysLess, Operation::PayReferenced { amount, .. }) if *amount > 1 => *amount -= 1,
        (EngineMistake::BarePayments, operation @ Operation::Pay { .. }) => name(ledger, operation),
        (_, operation) => {
            let needs = operation.row().needs;
            let SignedBy::Policy(signed) = &mut transaction.signed_by else { return };
            let Some(keys) = ledger.account_keys(&account) else { return };
            if is_taken(mistake, keys, signed, needs) {
                **signed = PolicySigned { last: keys.last, signatures: all_of(&keys.policy) };
            }
        }
    }
}

/// Whether the mistake makes these signatures suffice.
fn is_taken(mistake: EngineMistake, keys: &AccountKeys, signed: &PolicySigned, needs: Needs) -> bool {
    let needed = |policy: &KeyPolicy| u32::from(if needs == Needs::Move { policy.moves } else { policy.governs });
    let weighs = |policy: &KeyPolicy| policy.signed(&signed.signatures).is_some_and(|sum| sum >= needed(policy));
    let stands_twice = signed.signatures.keys.windows(2).any(|two| two[0].key == two[1].key);
    let waits = || keys.waiting.as_ref().is_some_and(|waiting| weighs(&waiting.policy));
    match mistake {
        EngineMistake::KeyCountsTwice => stands_twice && signed.last == keys.last && weighs(&keys.policy),
        EngineMistake::StalePolicySigns => !stands_twice && signed.last != keys.last,
        EngineMistake::WaitingPolicySigns => !stands_twice && !weighs(&keys.policy) && waits(),
        _ => false,
    }
}

/// Signatures of all signers of a policy, which nobody verifies any more.
fn all_of(policy: &KeyPolicy) -> KeySignatures {
    let signature = Signature([0; 64]);
    let of_wallet = WalletKey::from_bytes([1; 32]).expect("in range").sign(&[1; 32]);
    KeySignatures {
        keys: policy.keys.iter().map(|one| KeySignature { key: one.key, signature }).collect(),
        wallets: policy.wallets.iter().map(|one| SignedByWallet { wallet: one.wallet, signature: of_wallet }).collect(),
    }
}

/// Gives a payment a reference if its receiver needs one.
fn name(ledger: &Ledger, operation: &mut Operation) {
    let &mut Operation::Pay { to, asset, amount } = operation else { return };
    if ledger.accounts().get(&to).is_some_and(|account| account.needs_reference()) {
        let reference = Reference { kind: ReferenceKind::Number, bytes: [0; 8][..].into() };
        *operation = Operation::PayReferenced { to, asset, amount, reference };
    }
}
