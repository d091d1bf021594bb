//! Session keys of the batch market: an account lets an ed25519 key cancel or trade for it within bounds.
//!
//! **What happens.** Upon *authorise*, which the account's own key signs, a key is registered in the account's next
//! *slot*, with a scope (`cancel` or `trade`), a last height `until`, a timer `alive`, and caps for at most eight
//! assets. The key has signed network, account and slot, so that nobody registers the key of somebody else. A
//! transaction of the key has a number whose upper bits are the slot ([`primitives::slot_of`]). It is judged by the
//! window of the slot, and the id of its offer names the slot.
//!
//! - A key of either scope cancels any offer of the account, and stops any slot of it.
//! - A key of scope *trade* also places offers and exact orders, replaces offers of its own slot, and raises its timer.
//! - It does nothing else: it does not pay, withdraw, stake, provide, act at venues, authorise or revoke.
//!
//! For each asset the ledger counts what the key *used*: units that its transactions take from the balance, fees
//! included, less units that its offers return or bring. A transaction counts only if what it and the key's others in
//! the block take fits the cap. An asset without a cap has the cap 0, so that a key needs one for asset 0 to pay fees.
//!
//! Upon `Alive{slot, through}` with a later height, the timer of the slot becomes that height; of several in a block
//! the highest counts. With `through` 0 the slot is *stopped*: its timer becomes the height of the block. At the end of
//! block `alive`, after the batch, all open offers of the slot end (receipts: `lapsed`), and from the next block on
//! the key may only cancel, until its timer is raised. A stop beats any raise in its block, and what was signed before
//! it is void: all lower numbers of the slot if the key itself stops, else all numbers that are free. Upon *revoke*,
//! by the account's own key, the offers end in the same way and the slot is gone. A new key of the account *closes* all
//! its sessions: they do nothing more, and their offers end with their timers.
//!
//! **Properties.**
//!
//! - *A key loses at most its caps*, in units of each asset: what it took from the account in all, less what it
//!   brought, never exceeds the cap, whatever it trades with whom and at what price.
//! - *Shuffling a block changes nothing.* Whether a transaction counts follows from its body, from the state before the
//!   block, and from sums over those of its slot and its account.
//! - *A key silences nobody.* If all that an account's keys ask for exceeds its balance, transactions of session keys
//!   are removed first, and those of the owner are judged without them. What exceeds a cap removes transactions of that
//!   slot alone. Cancels and timers stand where their fees fit.
//! - *An end is certain*: it needs no price, no room and no counterparty. A block without session keys does nothing for
//!   this module.
//! - A slot is never given twice, and a number counts once.
//!
//! **Attacks.**
//!
//! - *A stolen key sells everything to its thief at a price he makes.* Caps: he gets at most them. Round trips gain
//!   nothing, since bought units lower what is used by as much as they are. What he brings himself he may take again.
//! - *Offers that overflow a cap together*, in one block: their sum is compared, in 128 bits. Units bought in a block
//!   give room in the next one.
//! - *Fees as a drain*: they count as used of asset 0. A key whose cap is spent on fees cannot even cancel; its timer
//!   ends its offers, and the owner cancels them.
//! - *A stolen key that asks for more than the balance*, block after block, so that the owner's transactions and its
//!   revocation are removed: the owner's are judged alone.
//! - *Mass ends*: a key has at most [`SLOT_OFFERS_MAX`] open offers, and each has paid for its removal when it was
//!   placed. At most `ENDS_MAX` offers of session keys lapse at one height, before what one block adds. Who finds a
//!   height crowded takes the next one, and to crowd many of them takes as many offers. A sub-block has a quota of
//!   stops and revocations ([`crate::SESSION_ENDS_PER_SUB_BLOCK`]). Who fills the quota delays those of others at a fee
//!   each, but neither the timer, which is the promise, nor a new key of the account, which closes all its sessions.
//! - *Revoke and an order in one block*: the order is in the batch of this block, within its cap. What is left of it
//!   ends after the batch.
//! - *Lapse against fill*: the batch of block `alive` comes first; what it sold is sold, and the rest returns once.
//! - *A delayed heartbeat* whose height is past by then: refused. It does not end the offers that a later heartbeat
//!   keeps.
//! - *A heartbeat or an order from before a stop*: its number is void.
//! - *Numbers that collide with the owner's*: the owner's are below 2^43, those of contracts' offers above 2^63. A
//!   thief of a session key cannot move the owner's window.
//! - *Replays*: a number counts once. An authorisation names the next slot, and so counts once whatever its number. The
//!   signature of the key names the slot.
//! - *One key in two slots* would live on when one is revoked: refused. *One key for two accounts* needs its signature
//!   for each; transactions name the account.
//! - *Who has stolen the account's key* authorises sessions that outlive its change: the change closes them, also those
//!   of the same block.
//! - *Replacing the owner's offer* would re-price units that the owner locked, past every cap: refused. The owner may
//!   replace a key's offer; its units are the owner's from then on. Of both in one block the owner's counts.
//! - *Squatting*: an account has 16 records, of which those that are over make room; each costs a hundred fees. Slots
//!   are counted in 20 bits: an account that has used them up has paid 10^8 fees.
//! - *A full book*, or a pair that cannot be opened: as for everybody.
//! - *Sleeping keys*: without heartbeats a key does nothing after `alive`, and nothing at all after `until`.
//!
//! **Where it is kept.** In the account's record, and not with the keys of venues: the filter judges a transaction and
//! the effects change window and budget with the account at hand, in its shard. The proof and the snapshot of an
//! account have its keys. A venue's key has a mandate for markets, no window, and ends only after a delay that the
//! operator counts on. A key of the batch market ends with its block. One registry would have two meanings for each
//! field. Which offers belong to which slot is derived (module `slots`).
//!
//! **Left out.** Any height up to the present one as a stop: see the delayed heartbeat. Caps in value: a valuation of a
//! thin batch is not worth relying on. Session keys that are keys of wallets: a program keeps an ed25519 key. Contracts
//! have no session keys.

mod check;
mod slots;
mod turn;

pub use check::Precedence;
pub(crate) use check::{SessionRules, is_relief};
pub use slots::SLOT_OFFERS_MAX;
pub(crate) use slots::{SlotId, SlotOffers};
pub(crate) use turn::{Released, SessionAct, SessionChange, SessionTurn, released};
