//! Whom issuers freeze or never admitted: they trade no market of the asset, and nobody does at a venue of theirs.
//!
//! Upon an order the root asks whether its account and the venue's owner may hold both assets of the market. Upon a
//! freeze that a certified block states, the open orders of the account in markets of the asset end, and all of such
//! markets if the account is the venue's owner. The root obeys at once, while the ledger counts a freeze once it is
//! past: so what was matched before is settled in time, and no fill busts by a freeze unless its settle is late.

use std::collections::BTreeSet;

use primitives::venue::MarketTerms;
use primitives::{Address, AssetId};

use super::VenueMachine;
use crate::facts::FreezableAsset;
use crate::mistake::VenueMistake;
use crate::refusal::{OrderEnd, OrderRefusal};

/// Of whom a block says something that orders depend on.
#[derive(Default)]
pub(super) struct Said {
    accounts: BTreeSet<Address>,
    /// It is about all accounts.
    is_of_all: bool,
}

/// From now on an issuer controls its asset, and nothing is said of holders.
pub(super) fn learn_controlled(
    machine: &mut VenueMachine,
    asset: AssetId,
    controlled: FreezableAsset,
    said: &mut Said,
) {
    machine.core.controls.assets.insert(asset, controlled);
    machine.core.controls.holders.retain(|(of, _), _| *of != asset);
    said.is_of_all = true;
}

/// An issuer has said something of an account. Of one without a key here that is nothing: it is told again with
/// the first key.
pub(super) fn learn_holder(machine: &mut VenueMachine, holder: (AssetId, Address), is_open: bool, said: &mut Said) {
    let core = &mut machine.core;
    let is_owner = core.controls.owner == Some(holder.1);
    let has_key = core.account_of.get(&holder.1).is_some_and(|at| !core.accounts[*at as usize].keys.is_empty());
    if is_owner || has_key {
        core.controls.holders.insert(holder, is_open);
        said.is_of_all |= is_owner;
        said.accounts.insert(holder.1);
    }
}

pub(super) fn learn_owner(machine: &mut VenueMachine, owner: Address, said: &mut Said) {
    said.is_of_all |= machine.core.controls.owner.replace(owner) != Some(owner);
}

/// Why an account may not hold an asset.
fn check_holder(machine: &VenueMachine, asset: AssetId, account: &Address) -> Result<(), OrderRefusal> {
    let Some(controlled) = machine.core.controls.assets.get(&asset).filter(|of| of.issuer != *account) else {
        return Ok(());
    };
    match machine.core.controls.holders.get(&(asset, *account)) {
        Some(true) => Ok(()),
        Some(false) => Err(OrderRefusal::HolderFrozen(asset)),
        None if controlled.admits && !machine.has(VenueMistake::AdmissionForgotten) => {
            Err(OrderRefusal::HolderNotAdmitted(asset))
        }
        None => Ok(()),
    }
}

/// F8: the account and the venue's owner may hold both assets of a market. A market of open assets costs two
/// look-ups in a map that is empty on a chain without controls.
pub(super) fn check_holders(machine: &VenueMachine, account: Address, terms: &MarketTerms) -> Result<(), OrderRefusal> {
    for asset in [terms.base, terms.quote] {
        let is_taken = machine.has(VenueMistake::FrozenTrades);
        check_holder(machine, asset, &account).or_else(|why| if is_taken { Ok(()) } else { Err(why) })?;
        let owner = machine.core.controls.owner.filter(|_| !machine.has(VenueMistake::FrozenOwnerEarns));
        let is_frozen = owner.is_some_and(|owner| check_holder(machine, asset, &owner).is_err());
        if is_frozen {
            return Err(OrderRefusal::OwnerFrozen(asset));
        }
    }
    Ok(())
}

/// Ends open orders whose account, or the venue's owner, may not hold an asset of their market any more.
pub(super) fn end_frozen(machine: &mut VenueMachine, said: &Said) {
    if machine.has(VenueMistake::FrozenRests) {
        return;
    }
    let of_account = |address: &Address| machine.core.account_of.get(address).map(|at| machine.core.account(*at));
    let keys: Vec<u32> = match said.is_of_all {
        true => (0..machine.core.keys.len() as u32).collect(),
        false => said.accounts.iter().filter_map(of_account).flat_map(|of| of.keys.clone()).collect(),
    };
    for key in keys {
        let account = machine.core.owner_of(key).address;
        for slot in machine.core.open_orders(key) {
            if check_holders(machine, account, &machine.market_of(slot).terms).is_err() {
                machine.end(slot, OrderEnd::Frozen);
            }
        }
    }
}
