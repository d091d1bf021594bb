//! Policies as a place of the state. It holds no units: one trie by account, and chunks by account. A chain on which no
//! account has a policy has no part for them.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, AskedChange, Digest};
use proofs::{AccountKeys, RootPart};
use trie::Trie;

use crate::places::shared_map::SharedMap;
use crate::places::unsound::AuditError;
use crate::places::{Audited, ChunkFault, Custody, Moved, ReadChunks, Restored, Turn, in_place, tagged};
use crate::terms::Genesis;

/// Accounts in a full chunk.
const ENTRIES: usize = 1_024;

/// The policies of all accounts that have one.
#[derive(Clone, Default)]
pub(crate) struct Keys(SharedMap<Address, Arc<AccountKeys>>);

/// What an operation does to the keys of an account.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeysEdit<'a> {
    /// It asks for a change.
    Change(AskedChange<'a>),
    /// It completes the change that waits.
    Complete(Address),
}

/// An account with its keys, as a chunk has it.
#[derive(BorshSerialize, BorshDeserialize)]
struct Entry {
    account: Address,
    keys: AccountKeys,
}

impl KeysEdit<'_> {
    /// The account whose keys are concerned.
    pub(crate) fn account(&self) -> Address {
        match self {
            KeysEdit::Change(asked) => asked.change.account,
            KeysEdit::Complete(account) => *account,
        }
    }
}

impl Keys {
    pub(super) fn shared(&self, account: &Address) -> Option<&Arc<AccountKeys>> {
        self.0.get(account)
    }

    pub(super) fn set(&mut self, account: Address, keys: AccountKeys) {
        self.0.insert(account, Arc::new(keys));
    }

    /// The accounts that have a policy.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Address> {
        self.0.iter().map(|(account, _)| account)
    }

    /// How many accounts have a policy.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Custody for Keys {
    const TAG: u8 = RootPart::KEYS;
    const NAME: &'static str = "keys";
    type Edit<'a> = KeysEdit<'a>;
    type Change = Vec<([u8; 20], Option<[u8; 32]>)>;
    type Tries = Option<Trie<20>>;
    type Reader = KeysReader;

    fn found(_: &Genesis, _: Digest) -> Keys {
        Keys::default()
    }

    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, KeysEdit<'_>)]) -> Moved<Self::Change> {
        let height = turn.block.height;
        let mut change = Vec::with_capacity(edits.len());
        for (_, edit) in edits {
            let account = edit.account();
            turn.rekeyed.extend(self.edit(*edit, height));
            turn.concerned.push(account);
            change.extend(self.get(&account).map(|keys| (account.0, Some(keys.value()))));
        }
        change.sort_unstable();
        Moved { change, ..Moved::default() }
    }

    fn whole(&self) -> Self::Change {
        self.0.iter().map(|(account, keys)| (account.0, Some(keys.value()))).collect()
    }

    fn follow(trie: &mut Option<Trie<20>>, change: &Self::Change) {
        if !change.is_empty() {
            trie.get_or_insert_default().apply(change);
        }
    }

    fn part(trie: &mut Option<Trie<20>>) -> Option<Digest> {
        trie.as_mut().map(|trie| Digest(trie.root().0))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        let entry =
            |(account, keys): (&Address, &Arc<AccountKeys>)| Entry { account: *account, keys: (**keys).clone() };
        let mut rest = self.0.iter().map(entry);
        let chunk = move || Some(rest.by_ref().take(ENTRIES).collect::<Vec<Entry>>()).filter(|part| !part.is_empty());
        Box::new(std::iter::from_fn(chunk).map(|part| tagged(Self::TAG, &part)))
    }

    fn entries(&self) -> u64 {
        self.0.len() as u64
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let fault = self.0.iter().find_map(|(account, keys)| keys.fault(account));
        let is_marked = |account: &Address| audited.accounts.get(account).is_some_and(|one| one.has_policy());
        let marked = || audited.accounts.shards().iter().flat_map(|shard| shard.iter()).filter(|one| one.has_policy());
        match fault {
            Some(why) => Err(AuditError::Keys(why)),
            None if !self.accounts().all(is_marked) => Err(AuditError::Keys("an account does not know its policy")),
            None if marked().count() != self.len() => Err(AuditError::Keys("an account's policy is missing")),
            None => Ok(audited.zero()),
        }
    }
}

/// Reads policies in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct KeysReader {
    keys: Keys,
    /// The last account, and the number of entries of its chunk.
    last: Option<(Address, usize)>,
}

impl ReadChunks<Keys> for KeysReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        let part: Vec<Entry> = borsh::from_slice(bytes)?;
        let is_next = |first: &Entry| {
            self.last.is_none_or(|(last, entries)| last < first.account && entries == ENTRIES)
                && part.len() <= ENTRIES
                && part.is_sorted_by(|a, b| a.account < b.account)
        };
        in_place(part.first().is_some_and(is_next))?;
        self.last = part.last().map(|last| (last.account, part.len()));
        part.into_iter().for_each(|Entry { account, keys }| self.keys.set(account, keys));
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.keys.entries()
    }

    fn finish(self, _: &Restored) -> Result<Keys, AuditError> {
        Ok(self.keys)
    }
}
