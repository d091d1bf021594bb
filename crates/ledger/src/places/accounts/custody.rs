//! Balances as a place of custody: one trie by address, and chunks by address.

use primitives::{Address, Amount, AssetId, Digest, MAX_ISSUED};
use proofs::{AccountSessions, AccountState, EvmRecord, RootPart, account_bytes_digest};
use rayon::prelude::*;
use trie::Trie;

use super::{Account, Accounts, shard_of};
use crate::places::unsound::AuditError;
use crate::places::{Audited, ChunkFault, Custody, ReadChunks, Restored, in_place, tagged};
use crate::terms::Genesis;

/// Accounts in a full chunk.
const ENTRIES: usize = 32_768;

type ValueDigest = [u8; 32];
/// Accounts with the digests of their states, by address.
pub(crate) type AccountDigests = Vec<([u8; 20], Option<ValueDigest>)>;

/// The digest of an account's present state; `room` is overwritten.
pub(crate) fn account_digest(account: &Account, room: &mut Vec<u8>) -> ValueDigest {
    room.clear();
    account.write_state(room);
    account_bytes_digest(room)
}

impl Custody for Accounts {
    const TAG: u8 = RootPart::BALANCES;
    const NAME: &'static str = "balances";
    type Edit<'a> = std::convert::Infallible;
    type Change = AccountDigests;
    type Tries = Trie<20>;
    type Reader = AccountReader;

    fn found(genesis: &Genesis, _: Digest) -> Accounts {
        let mut accounts = Accounts::default();
        for listing in &genesis.assets {
            accounts.get_or_insert(&listing.issuer);
        }
        for (account, asset, amount) in &genesis.balances {
            accounts.get_or_insert(account).credit(*asset, *amount);
        }
        for founder in genesis.membership.iter().flat_map(|all| &all.founders) {
            accounts.get_or_insert(&founder.account);
        }
        accounts
    }

    fn units(genesis: &Genesis) -> Box<dyn Iterator<Item = (Address, AssetId, Amount)> + '_> {
        Box::new(genesis.balances.iter().copied())
    }

    fn whole(&self) -> AccountDigests {
        let of_shard = self.shards().par_iter().map(|shard| {
            let (sorted, mut room) = (shard.sorted(), Vec::new());
            let entry = |account: &Account| (account.address().0, Some(account_digest(account, &mut room)));
            sorted.into_iter().map(entry).collect::<Vec<_>>()
        });
        of_shard.collect::<Vec<_>>().concat()
    }

    fn follow(trie: &mut Trie<20>, change: &AccountDigests) {
        trie.apply(change);
    }

    fn part(trie: &mut Trie<20>) -> Option<Digest> {
        Some(Digest(trie.root().0))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        Box::new(self.shards().iter().flat_map(|shard| {
            let states = |part: &[&Account]| part.iter().map(|account| account.state()).collect::<Vec<_>>();
            shard.sorted().chunks(ENTRIES).map(|part| tagged(Self::TAG, &states(part))).collect::<Vec<_>>()
        }))
    }

    fn entries(&self) -> u64 {
        self.len() as u64
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let sum = |mut sums: Vec<u128>, other: Vec<u128>| {
            sums.iter_mut().zip(other).for_each(|(sum, more)| *sum += more);
            sums
        };
        let of_shard = self.shards().par_iter().map(|shard| {
            let mut sums = audited.zero();
            for (asset, amount) in shard.iter().flat_map(|account| account.balances()) {
                *sums.get_mut(asset.0 as usize).ok_or(AuditError::UnknownAsset(asset))? += u128::from(amount);
            }
            Ok(sums)
        });
        of_shard.try_reduce(|| audited.zero(), |one, other| Ok(sum(one, other)))
    }
}

/// Reads accounts in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct AccountReader {
    accounts: Accounts,
    /// The last account, and the number of entries of its chunk.
    last: Option<(Address, usize)>,
}

impl AccountReader {
    /// Whether a snapshot writes these accounts next: by address, each chunk of one shard and full unless it is the
    /// shard's last, balances by asset and without zeros, session keys by slot and within their caps.
    fn follows(&self, states: &[AccountState]) -> bool {
        let Some(first) = states.first() else { return false };
        let shard = shard_of(&first.address);
        let is_next =
            |(last, entries): (Address, usize)| last < first.address && (shard_of(&last) < shard || entries == ENTRIES);
        let is_plain = |state: &AccountState| {
            state.balances.is_sorted_by(|a, b| a.0 < b.0)
                && state.balances.iter().all(|(_, units)| (1..=MAX_ISSUED).contains(units))
                && state.evm != Some(EvmRecord::default())
                && state.sessions != Some(AccountSessions::default())
                && state.sessions.as_ref().is_none_or(AccountSessions::is_sound)
        };
        self.last.is_none_or(is_next)
            && states.len() <= ENTRIES
            && states.is_sorted_by(|a, b| a.address < b.address)
            && states.iter().all(|state| shard_of(&state.address) == shard && is_plain(state))
    }
}

impl ReadChunks<Accounts> for AccountReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        let states: Vec<AccountState> = borsh::from_slice(bytes)?;
        in_place(self.follows(&states))?;
        self.last = states.last().map(|last| (last.address, states.len()));
        states.into_iter().for_each(|state| self.accounts.insert(Account::from_state(state)));
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.accounts.len() as u64
    }

    fn finish(self, _: &Restored) -> Result<Accounts, AuditError> {
        Ok(self.accounts)
    }
}
