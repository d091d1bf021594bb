//! What a block does outside of the records of venues.

use primitives::{Address, Amount, AssetId, Digest, Sequence, Transaction, TransactionId};
use proofs::{Refusal, SettledFills};

use crate::places::contracts::reserved::is_reserved;
use crate::places::sums::Credit;

/// The asset of bonds and penalties.
pub(super) const BONDED: AssetId = AssetId(0);

/// What a block does outside of the records of venues.
pub(super) struct Step<'t> {
    /// The block's native transactions with their refusals, to find the id of one.
    pub transactions: &'t [&'t Transaction],
    pub refusals: &'t [Option<Refusal>],
    /// Units paid to accounts.
    pub credits: Vec<Credit>,
    /// Units of asset 0 that are burnt.
    pub burnt: Amount,
    /// Accounts whose deposits changed, some of them twice.
    pub accounts: Vec<Address>,
    /// Operations that pay and do nothing.
    pub void: Vec<(Address, Sequence)>,
    /// The settles that counted.
    pub settled: Vec<SettledFills>,
}

impl<'t> Step<'t> {
    pub(super) fn new(transactions: &'t [&'t Transaction], refusals: &'t [Option<Refusal>]) -> Step<'t> {
        let (credits, accounts, void, settled) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Step { transactions, refusals, credits, burnt: 0, accounts, void, settled }
    }

    /// The id of an admitted transaction.
    pub(super) fn id(&self, account: Address, sequence: Sequence) -> TransactionId {
        let all = self.transactions.iter().zip(self.refusals);
        let mut own = all
            .filter(|(one, refusal)| (one.body.account, one.body.sequence) == (account, sequence) && refusal.is_none());
        own.next().map_or(Digest([0; 32]), |(one, _)| one.id())
    }

    /// Units that left a bond: they are paid to an account, or burnt.
    pub(super) fn take_bond(&mut self, to: Option<Address>, units: Amount) {
        match to.filter(|to| !is_reserved(to)) {
            Some(to) if units > 0 => self.credits.push(Credit { to, asset: BONDED, amount: units }),
            _ => self.burnt += units,
        }
    }
}
