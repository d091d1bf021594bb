//! What the issuer of EUR does, in the books.

use primitives::venue::{Settle, SettledFill, VenueOperation};
use primitives::{Amount, AssetId, Height, Operation, Transaction};

use super::{Oracle, PlainDeposit, person_of};
use crate::market::people::{EUR, OWNER, Person, address};

impl Oracle {
    /// Empty blocks pass, at these times.
    pub fn pass(&mut self, times: impl Iterator<Item = u64>) {
        self.times.extend(times);
    }

    /// What a trader has outside of the venue; nothing of anybody else.
    pub fn balance(&self, person: Person, asset: AssetId) -> Amount {
        self.balances.get(&(person, asset)).copied().unwrap_or(0)
    }

    /// Whether a party to a fill is frozen, the venue's owner included, and that is past.
    pub(super) fn is_frozen(&self, body: &Settle, fill: &SettledFill) -> bool {
        let key = |at: u16| self.keys.get(&body.orders[usize::from(at)].key);
        let traders = [fill.buy, fill.sell].into_iter().filter_map(key).map(|key| key.person);
        let mut parties = traders.chain([OWNER]);
        parties.any(|person| !self.holders.trades(&address(person), |since| self.is_past(since)))
    }

    /// What the issuer of EUR did, behind all others of the block.
    pub(super) fn control(&mut self, height: Height, applied: &[&Transaction]) -> Result<(), String> {
        for one in applied {
            let account = match &one.body.operation {
                Operation::Recover(recovery) => recovery.from,
                Operation::Venue(operation) => match **operation {
                    VenueOperation::Recall { account, .. } => account,
                    _ => continue,
                },
                _ => continue,
            };
            if !self.holders.is_due(&account, height) {
                return Err(format!("{account} has not been frozen for a day, and its units are taken back"));
            }
            let Some(person) = person_of(&account) else { continue };
            match &one.body.operation {
                Operation::Recover(recovery) => {
                    self.take(person, EUR, recovery.amount);
                    self.issuer.recovered += 1;
                }
                _ => self.recall(person, height),
            }
        }
        for one in applied {
            if let Operation::SetHolder { account, state, .. } = one.body.operation {
                self.issuer.frozen += u64::from(self.holders.say(account, state, height));
            }
        }
        Ok(())
    }

    /// All that a holder has at the venue leaves, and its time begins anew.
    fn recall(&mut self, person: Person, height: Height) {
        let deposit = self.deposits.entry((person, EUR)).or_default();
        let units = deposit.free + deposit.leaving.map_or(0, |(units, _)| units);
        if units > 0 {
            *deposit = PlainDeposit { free: 0, leaving: Some((units, height)) };
            self.issuer.recalled += 1;
        }
    }
}
