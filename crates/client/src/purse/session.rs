//! A purse that is about to spend: its secrets, the lane, and what it has spent are known.

use std::time::Duration;

use payments::Recipient;
use primitives::{Amount, AssetId};

use super::error::PurseError;
use super::folder::Purse;
use super::keys::Seed;
use super::lanes::{Asking, Lanes};
use super::resolve::resolve_deposits;
use super::restore;
use super::spend::{self, Confirmed};
use crate::node::NodeClient;

/// See the module text.
pub struct Session<'a> {
    /// The purse.
    pub purse: &'a mut Purse,
    /// Its seed.
    pub seed: Seed,
    /// The lane.
    pub lanes: Lanes,
    /// Of a purse that was copied or restored: the number of payments that it did not know.
    pub found: Option<usize>,
}

/// Payments that were confirmed, and why one is not settled.
pub struct Paid {
    /// The payments.
    pub confirmed: Vec<Confirmed>,
    /// Why payments without a time of settling are not settled. Their receipts are valid, and settling can be tried
    /// again.
    pub unsettled: Vec<PurseError>,
}

impl<'a> Session<'a> {
    /// Asks a node for the lane; a purse that was copied or restored asks a quorum what it has spent.
    ///
    /// # Errors
    /// [`PurseError`].
    pub fn begin(
        purse: &'a mut Purse,
        seed: Seed,
        node: &NodeClient,
        asking: Asking,
    ) -> Result<Session<'a>, PurseError> {
        resolve_deposits(purse, node, Duration::ZERO)?;
        let mut lanes = Lanes::to_spend(node, &purse.network, asking)?;
        let found = match purse.is_copy() {
            true => Some(restore::ask(purse, &seed, &mut lanes)?),
            false => None,
        };
        Ok(Session { purse, seed, lanes, found })
    }

    /// Pays an amount; `settles` has a quorum acknowledge it, too.
    ///
    /// # Errors
    /// [`PurseError`]; [`PurseError::Unconfirmed`] of a payment that must be finished later.
    pub fn pay(&mut self, to: Recipient, quantity: (AssetId, Amount), settles: bool) -> Result<Paid, PurseError> {
        let payments = spend::begin(self.purse, &self.seed, &self.lanes, to, quantity)?;
        let mut paid = Paid { confirmed: Vec::new(), unsettled: Vec::new() };
        for payment in payments {
            paid.confirmed.push(spend::confirm(self.purse, &mut self.lanes, payment)?);
        }
        for one in paid.confirmed.iter_mut().filter(|_| settles) {
            paid.unsettled.extend(spend::settle(self.purse, &mut self.lanes, one).err());
        }
        Ok(paid)
    }
}
