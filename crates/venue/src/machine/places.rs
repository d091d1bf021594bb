//! Places: of how many accounts and keys something is remembered.

use primitives::venue::OrderNumber;

use super::VenueMachine;
use crate::refusal::OrderRefusal;
use crate::state::Remembered;

/// Gives a key and its account a place, before anything of them is remembered. If there is none left, whoever has
/// been idle gives way.
pub(super) fn take_place(machine: &mut VenueMachine, at: u32) -> Result<(), OrderRefusal> {
    let account = machine.core.key(at).account;
    if machine.core.account(account).owner.is_none() {
        let owner = free_owner(machine).ok_or(OrderRefusal::TooManyAccounts)?;
        machine.core.owners[owner as usize] = account;
        machine.core.accounts[account as usize].owner = Some(owner);
    }
    machine.core.accounts[account as usize].used = machine.core.effects;
    take_place_of_key(machine, at)
}

/// A number in the books that no account has: a new one, or that of the account that has been idle for longest and
/// has no open order.
fn free_owner(machine: &mut VenueMachine) -> Option<u32> {
    let owners = machine.core.owners.len() as u32;
    if owners < machine.core.settings.limits.accounts {
        machine.core.owners.push(0);
        return Some(owners);
    }
    let idle = (0..).zip(&machine.core.owners).filter(|(_, account)| !machine.core.account(**account).has_open());
    let (owner, account) = idle.min_by_key(|(_, account)| machine.core.account(**account).used)?;
    let (owner, account): (u32, u32) = (owner, *account);
    machine.core.accounts[account as usize].owner = None;
    let keys = machine.core.account(account).keys.clone();
    keys.into_iter().for_each(|key| forget_numbers(machine, key, usize::MAX, None));
    Some(owner)
}

fn take_place_of_key(machine: &mut VenueMachine, at: u32) -> Result<(), OrderRefusal> {
    if machine.core.key(at).has_place() {
        return Ok(());
    }
    let most = machine.core.settings.limits.keys_of_account;
    let keys = machine.core.owner_of(at).keys.iter().copied();
    let others: Vec<u32> = keys.filter(|key| machine.core.key(*key).has_place()).collect();
    if others.len() < most as usize {
        return Ok(());
    }
    let is_idle = |key: &u32| machine.core.key(*key).numbers.values().all(|what| is_final(machine, what));
    let idle = others.into_iter().filter(is_idle).min_by_key(|key| (!machine.core.key(*key).is_revoked, *key));
    let idle = idle.ok_or(OrderRefusal::TooManyKeys(most))?;
    forget_numbers(machine, idle, usize::MAX, None);
    Ok(())
}

/// Whether a number may be forgotten.
fn is_final(machine: &VenueMachine, what: &Remembered) -> bool {
    match what {
        Remembered::Taken(slot) => machine.core.order(*slot).is_final(),
        Remembered::Refused(..) | Remembered::Overtaken => true,
    }
}

/// Forgets up to so many final numbers of a key but one, the lowest first. Numbers up to the highest forgotten one
/// are refused from then on.
pub(super) fn forget_numbers(machine: &mut VenueMachine, at: u32, most: usize, but: Option<OrderNumber>) {
    let numbers = machine.core.key(at).numbers.iter();
    let dropped: Vec<OrderNumber> = numbers
        .filter(|(of, what)| Some(**of) != but && is_final(machine, what))
        .map(|(of, _)| *of)
        .take(most)
        .collect();
    for number in dropped {
        let key = machine.core.key_mut(at);
        let what = key.numbers.remove(&number);
        key.stale = key.stale.max(Some(number));
        if let Some(Remembered::Taken(slot)) = what {
            machine.free_slot(slot);
        }
    }
}
