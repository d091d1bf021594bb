//! The contract phase of a block: it runs between settlement and digests, on the accounts after the native phase.

mod developer;

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use primitives::{Address, Amount, AssetId, Digest, Height, Superblock};
use proofs::{Batch, ContractReceipts, EthereumLog, EthereumReceipt, EvmRecord, Pair, Place, SlotKey, slot_key};
use revm::primitives::{U256, U256 as Wei};

use super::fault::Fault;
use crate::contracts::{
    AccountInfo, BookEdit, EvmBlock, EvmContent, EvmContext, EvmExecution, EvmJob, EvmOutcome, EvmPlace, EvmProgram,
    GAS_ASSET, LedgerState, OffersSlot, Ordered, Sections, Undo, holder_of, in_order, seen, settlement, shown_nonce,
    split, units_slot, wei_of,
};
use crate::places::contracts::BLOCK_HASHES;
use crate::places::contracts::reserved::{OFFERS, token_at};
use crate::places::offers::{Edit, PairChange};
use crate::places::sums::Sums;
use crate::state::Ledger;
use developer::make_edits;

/// The base fee changes by at most one part in this many from height to height.
const BASE_FEE_PARTS: u64 = 64;

/// What the phase changed, for digests and receipts.
#[derive(Default)]
pub(crate) struct Phase {
    pub receipts: ContractReceipts,
    /// Accounts that it wrote, by address.
    pub accounts: Vec<Address>,
    /// Slots that it wrote, in order.
    pub slots: Vec<(SlotKey, Option<[u8; 32]>)>,
    /// Changes of the book, by pair and place.
    pub pairs: Vec<PairChange>,
    /// The former values of what it wrote.
    pub undo: Undo,
    /// The base fee after the block, where a developer has chosen it.
    next_base_fee: Option<u64>,
    /// Offers that are added or removed; they become `pairs`.
    edits: Vec<(Pair, Edit)>,
}

/// The books of a phase, in wei.
#[derive(Default)]
struct Books {
    /// Change of the wei that accounts hold.
    held: i128,
    /// Wei taken from accounts by transactions.
    lost: i128,
    /// The part of them for proposers.
    tips: i128,
    /// Change of other assets in accounts, which tokens and offers moved.
    assets: BTreeMap<AssetId, i128>,
    /// Change of units that offers lock.
    locked: Sums,
}

/// Executes a block's Ethereum transactions, after this batch.
///
/// # Errors
/// [`Fault::Wei`] if wei appeared or vanished, [`Fault::Conservation`] if units of another asset did.
pub(crate) fn execute_contracts(ledger: &mut Ledger, block: &Superblock, batch: &Batch) -> Result<Phase, Fault> {
    let Some(head) = ledger.places.contracts.head() else { return Ok(Phase::default()) };
    let base_fee = head.base_fee;
    let mut phase = Phase { receipts: ContractReceipts { base_fee, ..Default::default() }, ..Phase::default() };
    phase.receipts.receipts.extend(settlement(block.height, &block.parent, batch));
    if block.ethereum_len() > 0 {
        execute_lanes(ledger, block, base_fee, &mut phase)?;
    }
    let gas_used = phase.receipts.gas_used();
    let (gas, floor) = (ledger.limits.block_gas, ledger.limits.least_base_fee);
    let next = phase.next_base_fee.unwrap_or_else(|| next_base_fee(base_fee, gas_used, gas, floor));
    ledger.places.contracts.head_mut().base_fee = next;
    Ok(phase)
}

fn execute_lanes(ledger: &mut Ledger, block: &Superblock, base_fee: u64, phase: &mut Phase) -> Result<(), Fault> {
    let Sections { standing, skipped, edits } =
        in_order(block, ledger.transaction_rules(block.height), ledger.limits.sub_block_gas, ledger.is_developers);
    phase.receipts.skipped = skipped;
    let is_edited = !edits.is_empty();
    make_edits(ledger, edits, phase);
    let contexts: Vec<Arc<EvmContext>> =
        (0..block.sub_blocks.len()).map(|sub| Arc::new(ledger.ethereum_context(block, sub, base_fee))).collect();
    let job = |one: &Ordered| EvmJob {
        space: 0,
        context: contexts[one.sub_block].clone(),
        transaction: one.transaction.to_job(&one.sender),
    };
    let jobs: Vec<EvmJob> = standing.iter().map(job).collect();
    ledger.count_crowd();
    let book_facts = ledger.book_facts();
    let state = LedgerState {
        book: std::mem::take(&mut ledger.places.book),
        book_facts,
        accounts: ledger.places.accounts.clone(),
        contracts: ledger.places.contracts.clone(),
        wei_per_unit: ledger.wei_per_unit(),
        tokens: ledger.tokens(),
        controls: ledger.shared_controls(),
        held: ledger.held.clone(),
        height: block.height,
    };
    let (EvmBlock { outcomes, writes }, state, _) = ledger.engine.run(EvmProgram { state, jobs });
    ledger.places.book = state.book;
    drop((state.accounts, state.contracts));
    let mut books = Books::default();
    let mut tips: HashMap<usize, u128> = HashMap::new();
    let mut created = Vec::new();
    for (one, outcome) in standing.iter().zip(outcomes) {
        match outcome {
            EvmOutcome::Skipped(why) => phase.receipts.skipped.push((one.position, why)),
            EvmOutcome::Executed(execution) => {
                books.charge(block.height, &execution)?;
                *tips.entry(one.sub_block).or_default() += wei(execution.tip);
                created.extend_from_slice(&execution.contracts);
                phase.receipts.receipts.push(receipt(one, *execution));
            }
        }
    }
    phase.receipts.skipped.sort_unstable_by_key(|(position, _)| *position);
    write_all(ledger, writes, &mut books, phase);
    edit_book(ledger, &mut books, phase);
    books.check_assets(block.height)?;
    for contract in created {
        let account = ledger.places.accounts.get_or_insert(&Address(contract.0.0));
        account.set_evm(EvmRecord { is_contract: true, ..account.evm() });
    }
    pay_tips(ledger, block, &tips, &mut books, phase);
    if is_edited {
        // The later of two writes to a slot is kept.
        phase.slots.reverse();
        phase.slots.sort_by_key(|(key, _)| *key);
        phase.slots.dedup_by_key(|(key, _)| *key);
    }
    burn_wei(ledger, block.height, &books, phase)
}

/// Writes accounts and slots.
fn write_all(ledger: &mut Ledger, writes: Vec<(EvmPlace, EvmContent)>, books: &mut Books, phase: &mut Phase) {
    for (place, content) in writes {
        let address = Address(place.address.0.0);
        match (place.slot, content) {
            (None, EvmContent::Account(info)) => {
                write_account(ledger, &address, info, books, &mut phase.undo);
                phase.accounts.push(address);
            }
            (Some(slot), EvmContent::Slot(value)) => {
                let slot = slot.to_be_bytes();
                let key = slot_key(&address, &slot);
                if let Some((asset, holder)) = token_at(&address).zip(holder_of(&slot)) {
                    let before = write_balance(ledger, asset, &holder, value, books);
                    phase.undo.slots.entry(key).or_insert(before);
                    phase.accounts.push(holder);
                    continue;
                }
                match OffersSlot::of(&slot) {
                    OffersSlot::Edit(owner, id) if address == OFFERS => {
                        phase.edit(&owner, id, value);
                        continue;
                    }
                    OffersSlot::Opened if address == OFFERS => continue,
                    _ => {}
                }
                let value = (!value.is_zero()).then(|| value.to_be_bytes());
                let before = ledger.places.contracts.set_slot(key, value);
                phase.undo.slots.entry(key).or_insert(before);
                phase.slots.push((key, value));
            }
            (None, EvmContent::Slot(_)) | (Some(_), EvmContent::Account(_)) => {
                unreachable!("contents fit their places")
            }
        }
    }
}

/// Writes a balance that a token moved back to the account; returns the former value of the slot.
fn write_balance(
    ledger: &mut Ledger,
    asset: AssetId,
    holder: &Address,
    value: U256,
    books: &mut Books,
) -> Option<[u8; 32]> {
    let account = ledger.places.accounts.get_or_insert(holder);
    let (before, after) = (account.balance(asset), Amount::try_from(value).expect("issued units have 64 bits"));
    account.set_balance(asset, after);
    *books.assets.entry(asset).or_default() += i128::from(after) - i128::from(before);
    units_slot(before)
}

/// Applies to the book the offers that contracts placed and cancelled.
fn edit_book(ledger: &mut Ledger, books: &mut Books, phase: &mut Phase) {
    let mut edits = std::mem::take(&mut phase.edits);
    edits.sort_unstable_by_key(|(pair, edit)| (*pair, edit.place));
    let change = |of_pair: &[(Pair, Edit)]| {
        let edits = of_pair.iter().map(|(_, edit)| *edit).collect();
        PairChange { pair: of_pair[0].0, through: None, edits }
    };
    phase.pairs = edits.chunk_by(|one, other| one.0 == other.0).map(change).collect();
    books.locked = ledger.places.book.edit(&phase.pairs);
    let (held, controls) = (&mut ledger.held, &ledger.places.controls);
    for (pair, Edit { place, amount, .. }) in edits.iter().filter(|_| !controls.is_empty()) {
        match amount {
            Some(_) => held.come(controls, *pair, place),
            None => held.leave(controls, *pair, place),
        }
    }
}

fn write_account(
    ledger: &mut Ledger,
    address: &Address,
    info: Option<AccountInfo>,
    books: &mut Books,
    undo: &mut Undo,
) {
    let wei_per_unit = ledger.wei_per_unit();
    let account = ledger.places.accounts.get_or_insert(address);
    undo.note(*address, seen(account, wei_per_unit));
    let (before, shown, old) = (account.evm(), shown_nonce(account), wei_of(account, wei_per_unit));
    let info = info.unwrap_or_default();
    let new = wei(info.balance);
    let (units, remainder) = split(new, wei_per_unit);
    let code = if info.is_empty_code_hash() { Digest::default() } else { Digest(info.code_hash.0) };
    let nonce = if info.nonce == shown { before.nonce } else { info.nonce };
    account.set_balance(GAS_ASSET, units);
    account.set_evm(EvmRecord { nonce, remainder, code, ..before });
    if code != before.code {
        if code != Digest::default() {
            ledger.places.contracts.share(code, || info.code.expect("new code comes with its account"));
        }
        if before.code != Digest::default() {
            undo.code.extend(ledger.places.contracts.release(&before.code).map(|code| (before.code, code)));
        }
    }
    books.held += new as i128 - old as i128;
}

/// Pays proposers after the last transaction. The tips of a proposer without an account are burnt.
fn pay_tips(
    ledger: &mut Ledger,
    block: &Superblock,
    tips: &HashMap<usize, u128>,
    books: &mut Books,
    phase: &mut Phase,
) {
    let (wei_per_unit, chosen) = (ledger.wei_per_unit(), ledger.chosen_block(block).coinbase);
    for sub_block in 0..block.sub_blocks.len() {
        let tip = tips.get(&sub_block).copied().unwrap_or(0);
        let proposer = chosen.or_else(|| ledger.proposer_account(block, sub_block));
        let Some(proposer) = proposer.filter(|_| tip > 0) else { continue };
        let account = ledger.places.accounts.get_or_insert(&proposer);
        phase.undo.note(proposer, seen(account, wei_per_unit));
        let (units, remainder) = split(wei_of(account, wei_per_unit) + tip, wei_per_unit);
        account.set_balance(GAS_ASSET, units);
        account.set_evm(EvmRecord { remainder, ..account.evm() });
        books.held += tip as i128;
        books.tips += tip as i128;
        phase.accounts.push(proposer);
    }
    phase.accounts.sort_unstable();
    phase.accounts.dedup();
}

/// Burns wei that left the accounts and were paid to no one: whole units leave the issue, the rest is carried.
fn burn_wei(ledger: &mut Ledger, height: Height, books: &Books, phase: &mut Phase) -> Result<(), Fault> {
    let burnt = books.lost - books.tips;
    let wei_per_unit = ledger.wei_per_unit();
    let locked = books.locked.get(GAS_ASSET.0 as usize) * i128::from(wei_per_unit);
    let held = books.held + locked;
    if burnt < 0 || held != -burnt {
        return Err(Fault::Wei { height, held, burnt });
    }
    let head = ledger.places.contracts.head_mut();
    let (units, carried) = split(u128::from(head.carried) + burnt as u128, wei_per_unit);
    head.carried = carried;
    let issued = &mut ledger.assets[GAS_ASSET.0 as usize].issued;
    *issued = issued.checked_sub(units).ok_or(Fault::Wei { height, held, burnt })?;
    phase.receipts.burnt = burnt as u128;
    Ok(())
}

/// Stores the digest of the block that was applied, for later blocks.
pub(crate) fn note_hash(ledger: &mut Ledger) {
    let digest = ledger.last_block;
    if ledger.places.contracts.head().is_some() {
        let hashes = &mut ledger.places.contracts.head_mut().hashes;
        hashes.push_back(digest);
        if hashes.len() > BLOCK_HASHES {
            hashes.pop_front();
        }
    }
}

impl Phase {
    /// Records the edit of an offer.
    fn edit(&mut self, owner: &Address, id: u64, value: Wei) {
        let Some(BookEdit { pair, limit, amount, is_placed, until }) = BookEdit::of_word(value) else { return };
        let place = Place { limit, account: *owner, id };
        self.undo.offers.insert((pair, place), (!is_placed).then_some(amount));
        self.edits.push((pair, Edit { place, amount: is_placed.then_some(amount), until }));
    }
}

impl Books {
    /// Checks that tokens and offers only moved existing units; asset 0 is counted in wei.
    fn check_assets(&self, height: Height) -> Result<(), Fault> {
        for number in (0..self.locked.len()).chain(self.assets.keys().map(|asset| asset.0 as usize)) {
            let asset = AssetId(number as u32);
            let (tokens, offers) = (self.assets.get(&asset).copied().unwrap_or(0), self.locked.get(number));
            if asset != GAS_ASSET && tokens + offers != 0 {
                let places = vec![("tokens", tokens), ("offers", offers)];
                return Err(Fault::Conservation { height, asset, places, issued: 0 });
            }
        }
        Ok(())
    }

    /// Adds the cost of a transaction: its fee, and more only where a contract destroyed itself.
    fn charge(&mut self, height: Height, execution: &EvmExecution) -> Result<(), Fault> {
        let lost = execution.lost;
        let fee = U256::from(execution.gas_used) * U256::from(execution.gas_price);
        if lost < fee || lost > Wei::from(i128::MAX) || (lost > fee && !execution.is_destructive) {
            return Err(Fault::Wei {
                height,
                held: i128::try_from(lost).unwrap_or(i128::MAX),
                burnt: wei(fee) as i128,
            });
        }
        self.lost += wei(lost) as i128;
        Ok(())
    }
}

fn wei(amount: U256) -> u128 {
    u128::try_from(amount).expect("wei that exist have 128 bits")
}

fn receipt(one: &Ordered, execution: EvmExecution) -> EthereumReceipt {
    let log = |log: revm::primitives::Log| EthereumLog {
        address: Address(log.address.0.0),
        topics: log.data.topics().iter().map(|topic| topic.0).collect(),
        data: log.data.data.to_vec(),
    };
    EthereumReceipt {
        id: one.transaction.hash(),
        position: Some(one.position),
        sender: one.sender,
        status: execution.status,
        gas_used: execution.gas_used,
        gas_price: execution.gas_price,
        contract: execution.created.map(|contract| Address(contract.0.0)),
        logs: execution.logs.into_iter().map(log).collect(),
    }
}

/// The base fee after a block that used this much gas: if half of the limit is used, the fee does not change.
fn next_base_fee(base_fee: u64, gas_used: u64, gas_limit: u64, floor: u64) -> u64 {
    let target = (gas_limit / 2).max(1);
    let step = |distance: u64| {
        let change = u128::from(base_fee) * u128::from(distance) / u128::from(target) / u128::from(BASE_FEE_PARTS);
        u64::try_from(change).unwrap_or(u64::MAX).min(base_fee / BASE_FEE_PARTS)
    };
    let next = match gas_used.checked_sub(target) {
        Some(0) => base_fee,
        Some(above) => base_fee.saturating_add(step(above.min(target)).max(1)),
        None => base_fee - step(target - gas_used),
    };
    next.max(floor)
}
