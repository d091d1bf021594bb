//! Changes of a ledger's state by way of its snapshot: the ledger itself has no such operation.

use ledger::{AccountKeys, Ledger, Restore, RootPart, Snapshot};
use primitives::Address;

/// Changes the keys of an account with a policy.
pub(crate) fn edit_keys(ledger: &mut Ledger, account: &Address, change: impl FnOnce(&mut AccountKeys)) {
    let Some(mut keys) = ledger.account_keys(account).cloned() else { return };
    change(&mut keys);
    rewrite(ledger, |kind, content| {
        if kind == RootPart::KEYS {
            let mut all: Vec<(Address, AccountKeys)> = borsh::from_slice(content).expect("keys");
            all.iter_mut().filter(|(one, _)| one == account).for_each(|(_, held)| held.clone_from(&keys));
            *content = borsh::to_vec(&all).expect("encodes");
        }
    });
}

/// Changes the chunks of a ledger's snapshot, each by its kind and its content.
pub(crate) fn rewrite(ledger: &mut Ledger, mut change: impl FnMut(u8, &mut Vec<u8>)) {
    let mut restore = Restore::default();
    for mut chunk in Snapshot::of(ledger) {
        let (kind, mut content) = (chunk[0], chunk.split_off(1));
        change(kind, &mut content);
        restore.push(&[vec![kind], content].concat()).expect("a chunk");
    }
    *ledger = restore.finish().expect("a state in which money is conserved");
}
