//! The second pass: which envelopes pay.

use std::collections::{BTreeMap, BTreeSet};

use primitives::{Amount, AssetId, Sequence, SessionSlot, Transaction, slot_of};
use proofs::Refusal;

use crate::block::checks::check_in;
use crate::block::claims::{AccountClaims, Standing, room};
use crate::block::filter::{Admitted, Filtered};
use crate::block::once::Sum;
use crate::places::accounts::{Account, shard_of};
use crate::state::Ledger;

/// What an account, or a session key of it, has left for the fees of envelopes.
struct Purse<'l> {
    ledger: &'l Ledger,
    account: &'l Account,
    /// Units of asset 0 that count already, in all and by session key.
    spent: BTreeMap<Option<SessionSlot>, u128>,
    numbers: BTreeSet<Sequence>,
}

impl<'l> Purse<'l> {
    /// What is left after transactions that count.
    fn after(ledger: &'l Ledger, account: &'l Account, standing: &[Standing]) -> Purse<'l> {
        let mut claims = AccountClaims::default();
        claims.stand(standing, ledger.fee);
        let of = |(sum, units): &(Sum, u128)| match sum {
            Sum::Spent(AssetId(0)) => Some((None, *units)),
            Sum::Key(slot, AssetId(0)) => Some((Some(*slot), *units)),
            _ => None,
        };
        let numbers = standing.iter().map(|one| one.transaction.body.sequence).collect();
        Purse { ledger, account, spent: claims.sums.iter().filter_map(of).collect(), numbers }
    }

    /// Pays for an envelope, or says why not.
    fn pay(&mut self, envelope: &Transaction) -> Result<(), Refusal> {
        let sequence = envelope.body.sequence;
        let cost = u128::from(envelope.cost(self.ledger.fee));
        let slot = Some(slot_of(sequence)).filter(|slot| *slot > 0);
        let left = |of: Option<SessionSlot>, most: Amount| {
            u128::from(most).saturating_sub(self.spent.get(&of).copied().unwrap_or(0))
        };
        let limit = |sum| room(self.ledger, sum, self.account);
        match slot {
            _ if self.numbers.contains(&sequence) => return Err(Refusal::SEQUENCE_CONFLICT),
            Some(of) if cost > left(slot, limit(Sum::Key(of, AssetId(0)))) => return Err(Refusal::SESSION_CAP),
            _ if cost > left(None, limit(Sum::Spent(AssetId(0)))) => return Err(Refusal::OVERDRAFT),
            _ => {}
        }
        self.numbers.insert(sequence);
        for of in [None].into_iter().chain(slot.map(Some)) {
            *self.spent.entry(of).or_default() += cost;
        }
        Ok(())
    }
}

/// Judges the fees of envelopes that opened, given by their indices: an account's own before those of its session keys,
/// by ascending number, each if what is left suffices. Those that pay are admitted; the others are returned with their
/// reasons.
pub(super) fn pay(
    ledger: &Ledger,
    transactions: &[&Transaction],
    envelopes: impl Iterator<Item = u32>,
    filtered: &mut Filtered,
) -> Vec<(u32, Refusal)> {
    let mut unpaid = Vec::new();
    let mut by_payer: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
    for index in envelopes {
        let transaction = transactions[index as usize];
        let shard = shard_of(&transaction.body.account);
        match check_in(ledger, &ledger.places.accounts.shards()[shard], transaction, true, false) {
            Ok((position, _)) => by_payer.entry((shard, position)).or_default().push(index),
            Err(refusal) => unpaid.push((index, refusal)),
        }
    }
    let mut paid = Vec::new();
    for ((shard, position), mut own) in by_payer {
        let number = |index: &u32| transactions[*index as usize].body.sequence;
        own.sort_unstable_by_key(|index| (slot_of(number(index)) > 0, number(index)));
        let standing = filtered.standing(transactions, shard, position);
        let account = ledger.places.accounts.shards()[shard].at(position);
        let mut purse = Purse::after(ledger, account, &standing);
        for index in own {
            match purse.pay(transactions[index as usize]) {
                Ok(()) => paid.push((shard, Admitted { index, position, found: 0, is_idle: false })),
                Err(refusal) => unpaid.push((index, refusal)),
            }
        }
    }
    filtered.admit(transactions, paid);
    unpaid
}
