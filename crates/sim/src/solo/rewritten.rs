//! Changes of a ledger's state by way of its snapshot: the ledger itself has no such operation.

use borsh::BorshDeserialize;
use ledger::{AccountKeys, AccountState, Ledger, Restore, RootPart, Snapshot};
use primitives::{Address, Amount, AssetId, Digest, Fraction, Height};

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

pub(super) fn credit(account: &mut AccountState, asset: AssetId, units: Amount) {
    match account.balances.binary_search_by_key(&asset, |(asset, _)| *asset) {
        Ok(at) => account.balances[at].1 += units,
        Err(_) if units == 0 => {}
        Err(at) => account.balances.insert(at, (asset, units)),
    }
}

pub(super) fn debit(account: &mut AccountState, asset: AssetId, units: Amount) {
    for (_, held) in account.balances.iter_mut().filter(|(held, _)| *held == asset) {
        *held -= units;
    }
    account.balances.retain(|(_, units)| *units > 0);
}

/// A snapshot's head: format and rules, chain, fee, ε, μ, limits, height, last block and its time, assets.
type Head = ((u8, u32), u64, Amount, Fraction, Fraction, ledger::Limits, Height, Digest, u64, Vec<ledger::Asset>);

/// Changes one account and the issue of an asset, by way of a snapshot: the ledger itself has no such operation.
pub(super) fn edit(
    ledger: &mut Ledger,
    address: &Address,
    change: impl FnOnce(&mut AccountState),
    issue: Option<(AssetId, i128)>,
) {
    let mut change = Some(change);
    rewrite(ledger, |kind, content| match (kind, issue) {
        (HEAD, Some((asset, units))) => change_head(content, |head| {
            let issued = &mut head.9[asset.0 as usize].issued;
            *issued = Amount::try_from(i128::from(*issued) + units).expect("in range");
        }),
        (ACCOUNTS, _) => change_account(content, address, |account| {
            change.take().expect("an account is in one chunk")(account);
        }),
        _ => {}
    });
}

fn change_head(content: &mut Vec<u8>, change: impl FnOnce(&mut Head)) {
    let mut rest = &content[..];
    let mut head: Head = BorshDeserialize::deserialize(&mut rest).expect("a head");
    change(&mut head);
    *content = [&borsh::to_vec(&head).expect("encodes"), rest].concat();
}

/// Tags of chunks.
const HEAD: u8 = 0;
pub(super) const ACCOUNTS: u8 = 1;
pub(super) const OFFERS_OF_PAIR: u8 = 2;
pub(super) const END: u8 = 255;

pub(super) fn change_account(content: &mut Vec<u8>, address: &Address, change: impl FnOnce(&mut AccountState)) {
    let mut accounts: Vec<AccountState> = borsh::from_slice(content).expect("accounts");
    accounts.iter_mut().find(|account| account.address == *address).map(change);
    *content = borsh::to_vec(&accounts).expect("encodes");
}
